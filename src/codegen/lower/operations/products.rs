//! Matrix instructions.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::{Inst, Meaning, Modifiers, Opcode, Operand, VReg};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::machine::{RegisterFile, VirtualRegister};
use crate::codegen::target::{AccumulationFile, Target};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::layout::Mma;
use crate::ir::node::MmaChoice;
use crate::ir::op::ContractionOp;
use crate::ir::types::DType;

impl OperationLayer<'_> {
    /// Emits the instruction of an expanded product.
    pub(crate) fn product(
        &mut self,
        node: Entity,
        op: ContractionOp,
        slice: u32,
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let MmaChoice::Explicit(mma) = op.choice() else {
            return Err(Diagnostic::bug("an mma without instruction"));
        };
        let instruction = match op {
            ContractionOp::Mma(_) => self.target.matrix_instruction(mma),
            ContractionOp::ScaledMma(_) => self.target.scaled_matrix_instruction(mma),
        };
        let instruction = instruction.ok_or_else(|| lacks(self.target, mma).at(self.at(node)))?;
        let (&[lhs, rhs, acc], scales) =
            operands.split_first_chunk().ok_or_else(|| Diagnostic::bug("an mma without three operands"))?;
        // A product with scales takes a part of these: a byte of their registers.
        let (slice, byte) = if scales.is_empty() { (slice, 0) } else { (0, slice) };
        let mut factors = [Operand::LITERAL; 2];
        for (at, &factor) in [lhs, rhs].iter().enumerate() {
            let bytes = mma.held(at).dtype.bytes();
            let held = self.in_registers(factor, slice + mma.taken_elements(at), bytes)?;
            factors[at] = held.offset(slice * bytes / 4);
        }
        let [a, b] = factors;
        let c = self.summand(acc, mma)?;
        let sum = if mma.input() == DType::Bf16 && mma.is_of_lanes() {
            self.multiply_bf16(a, b, c)
        } else {
            let sum = self.sum_registers(instruction.opcode, c, mma.accumulator_registers());
            let mut sources: SmallVec<[Operand; 6]> = SmallVec::from_slice(&[sum, a, b, c]);
            for &scale in scales {
                sources.push(self.in_registers(scale, byte + 1, 1)?);
            }
            let [of_a, of_b] = instruction.formats.map(u32::from);
            let modifiers = Modifiers::new().cbsz(of_a).blgp(of_b).scale_select(byte | byte << 2);
            self.emitter.push(Inst::new(instruction.opcode, &sources).modifiers(modifiers));
            sum
        };
        self.set_place(node, ValuePlace::Registers(sum));
        Ok(())
    }

    /// The sum that a product adds to. Zeros, with which most sums begin, need no registers at all (CDNA3
    /// guide, 7.1: SrcC is a register or an inline constant); gfx908 takes registers alone (LLVM,
    /// `FeatureMFMAInlineLiteralBug`).
    fn summand(&mut self, acc: Entity, mma: Mma) -> Result<Operand, Diagnostic> {
        if let ValuePlace::Constant(bits) = *self.place(acc)?
            && self.target.agprs != AccumulationFile::Separate
            && let (constant, _) = Scalar::Const(i64::from(bits as u32)).source()
            && constant != Operand::LITERAL
            && (mma.accumulator().bits() == 32 || bits == 0)
        {
            return Ok(constant);
        }
        self.in_registers(acc, mma.accumulator_registers(), 4)
    }

    /// The registers of a sum: those of the accumulator `c` if this is the only use of what they hold, and if
    /// they are written anew whenever this point is reached. Otherwise they are its own, and where liveness
    /// allows it the allocator makes them one, which takes longer.
    fn sum_registers(&mut self, opcode: Opcode, c: Operand, width: u32) -> Operand {
        let is_matrix = matches!(opcode.info().meaning, Meaning::Mfma(..) | Meaning::FormattedMfma(_));
        let whole = VirtualRegister { file: RegisterFile::Vgpr, width: width as u8 };
        let is_whole = |(id, part): (VReg, u32)| part == 0 && self.emitter.body.registers[id] == whole;
        let in_place = is_matrix
            && c.as_virtual().is_some_and(is_whole)
            && self.contents(c).is_some_and(|known| known.uses == 1 && known.depth >= self.depth());
        if !in_place {
            return self.emitter.vgpr(width);
        }
        self.renew_contents(&[ValuePlace::Registers(c)]);
        c
    }
}

/// The fault of a matrix instruction that a chip does not have.
pub(crate) fn lacks(target: Target, mma: Mma) -> Diagnostic {
    let with: Vec<&str> =
        Target::ALL.iter().filter(|t| t.matrix_instruction(mma).is_some()).map(|t| t.name).collect();
    let is_other =
        |other: &Mma| other.inputs() == mma.inputs() && target.matrix_instruction(*other).is_some();
    if let Some(other) = Mma::all().find(is_other) {
        let text =
            format!("{target} has no matrix instruction {mma}; it multiplies {} by others", mma.input());
        return Diagnostic::new(Kind::Unsupported, text).help(format!(
            "say the shape of the result alone (`mma 16x16`, `MatrixShape`), which here becomes {other} or another \
             one, or compile for {}",
            with.join(" or ")
        ));
    }
    let text = format!("{target} has no matrix instruction {mma}: it does not multiply {}", mma.input());
    let others = match with.as_slice() {
        [] => String::new(),
        with => format!("compile for {}, or ", with.join(" or ")),
    };
    Diagnostic::new(Kind::Unsupported, text).help(format!("{others}cast to a dtype that the chip multiplies"))
}
