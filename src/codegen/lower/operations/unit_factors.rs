//! Products with factors that are one most of the time: computed in place, under a branch that a wave takes
//! around them where all of its factors are one.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::machine::{InstId, RegisterFile, VirtualRegister};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::UnitFactor;
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

/// As many products as this for each factor that is asked about, and a branch around them pays.
const LEAST_PRODUCTS: usize = 8;

/// A product in place: the register of its value, and its factor.
#[derive(Copy, Clone)]
struct ProductInPlace {
    value: Operand,
    factor: Scalar,
}

impl OperationLayer<'_> {
    /// How many of some nodes, from the first on, are marked as products with factors that are mostly one.
    pub(crate) fn with_unit_factors(&self, nodes: &[Entity]) -> Result<usize, Diagnostic> {
        let mut count = 0;
        for &node in nodes {
            let is_marked =
                *self.get::<Op>(node)? == Op::Binary(BinaryOp::Mul) && self.unit_factor(node).is_some();
            if !is_marked {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    fn unit_factor(&self, node: Entity) -> Option<UnitFactor> {
        self.kernel.world.get::<UnitFactor>(Expansion::at(self.kernel.world, node).logical).copied()
    }

    /// Computes such nodes under a branch, if all of them can be computed in place and a branch pays, in a
    /// wave of this priority.
    ///
    /// # Errors
    /// Broken kernels.
    pub(crate) fn multiply_unless_one(&mut self, nodes: &[Entity], priority: u8) -> Result<bool, Diagnostic> {
        let mut values: SmallVec<[(Entity, Entity, Operand); 8]> = SmallVec::new();
        for &node in nodes {
            let Some(UnitFactor(at)) = self.unit_factor(node) else { return Ok(false) };
            let &[x, y] = &self.get::<Operands>(node)?.0[..] else { return Ok(false) };
            let (value, factor) = if at == 1 { (x, y) } else { (y, x) };
            let Some(registers) = self.replaceable(node, value)? else { return Ok(false) };
            values.push((node, factor, registers));
        }
        let mut products: SmallVec<[ProductInPlace; 64]> = SmallVec::new();
        let mut factors: SmallVec<[Operand; 8]> = SmallVec::new();
        for &(node, factor, registers) in &values {
            let logical = Expansion::at(self.kernel.world, node).logical;
            let matching = self.matching(logical, factor)?;
            for at in 0..self.elements(logical) {
                let factor = self.element(factor, matching.element(at), DType::F32)?;
                if let Scalar::Reg(register) = factor
                    && !factors.contains(&register)
                {
                    factors.push(register);
                }
                products.push(ProductInPlace { value: registers.offset(at), factor });
            }
        }
        if factors.is_empty() || products.len() < LEAST_PRODUCTS * factors.len() {
            return Ok(false);
        }
        let start = self.emitter.mark().inst;
        let asked = self.multiply_under_branch(&products, &factors, priority);
        // What is left out most of the time is no part of what the nodes cost.
        let end = self.emitter.mark().inst;
        for (at, &node) in nodes.iter().enumerate() {
            self.emitter.note_span(node, if at == 0 { start..asked } else { end..end });
        }
        for (node, _, registers) in values {
            self.renew_contents(&[ValuePlace::Registers(registers)]);
            self.set_place(node, ValuePlace::Registers(registers));
        }
        Ok(true)
    }

    /// The registers of a value that nothing but `node` uses, and that are written anew whenever this point
    /// is reached: what replaces it may take their place.
    pub(super) fn replaceable(&mut self, node: Entity, value: Entity) -> Result<Option<Operand>, Diagnostic> {
        let logical = Expansion::at(self.kernel.world, node).logical;
        let ValuePlace::Registers(registers) = *self.place(value)? else { return Ok(None) };
        let width = self.elements(logical);
        let whole = VirtualRegister { file: RegisterFile::Vgpr, width: width as u8 };
        let is_whole = registers
            .as_virtual()
            .is_some_and(|(id, part)| part == 0 && self.emitter.body.registers[id] == whole);
        let is_free =
            self.contents(registers).is_some_and(|known| known.uses == 1 && known.depth >= self.depth());
        let matching = self.matching(logical, value)?;
        let is_alike = (0..width).all(|at| matching.element(at) == at);
        Ok((is_whole && is_free && is_alike).then_some(registers))
    }

    /// Writes the question, the branch and the products, and returns the first instruction of the products.
    /// Packed ones never run beside a matrix instruction: a wave of no priority would wait until the others
    /// of its SIMD have multiplied (1150 clk in a loop of attention in two phases on gfx942).
    fn multiply_under_branch(
        &mut self,
        products: &[ProductInPlace],
        factors: &[Operand],
        priority: u8,
    ) -> InstId {
        let one = Operand::constant(1f32.to_bits());
        // Lanes whose factor is not one; what is no number is not one either.
        let mut lanes = Operand::ZERO;
        for &factor in factors {
            let mask = self.emitter.sgpr(2);
            self.emitter.op(Opcode::VCmpNeqF32, &[mask, one, factor]);
            if lanes == Operand::ZERO {
                lanes = mask;
            } else {
                let all = self.emitter.sgpr(2);
                self.emitter.op(Opcode::SOrB64, &[all, lanes, mask]);
                lanes = all;
            }
        }
        self.emitter.op(Opcode::SCmpLgU64, &[lanes, Operand::ZERO]);
        let around = self.emitter.branch_ahead(Opcode::SCbranchScc0);
        self.emitter.note_seldom();
        let first = self.emitter.mark().inst;
        let is_packed = priority > 0 && self.may_pair_elements(Op::Binary(BinaryOp::Mul), [DType::F32; 2], 2);
        for pair in products.chunks(2) {
            let mut starts = [self.emitter.mark(); 2];
            for (product, start) in pair.iter().zip(&mut starts) {
                *start = self.emitter.mark();
                let sources = [product.factor, Scalar::Reg(product.value)];
                self.emitter.with(Opcode::VMulF32, product.value, &sources);
            }
            if is_packed && pair.len() == 2 {
                self.pair_elements(starts, products.len() as u32 / 2, None);
            }
        }
        let after = self.emitter.next_block(None);
        self.emitter.patch(around, after);
        first
    }
}
