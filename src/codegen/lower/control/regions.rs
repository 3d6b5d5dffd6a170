//! The nodes of a region.

use bevy_ecs::prelude::*;

use super::ControlLayer;
use crate::codegen::isa::Opcode;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;
use crate::ir::op::OpClass;

/// The most virtual registers: those that the allocator adds need numbers as well.
const MAX_REGISTERS: usize = 1 << 20;

impl ControlLayer<'_> {
    /// Writes the nodes of a region.
    pub(super) fn region(&mut self, region: Entity) -> Result<(), Diagnostic> {
        // Instructions after the region belong to the node that owns it.
        let around = self.emitter.source;
        self.widened_pairs.clear();
        for &node in &self.get::<Body>(region)?.0 {
            let expanded = self.expanded(node)?;
            if !self.may_precede_writes(&expanded)? {
                self.emitter.write_all_late();
            }
            self.emitter.source = expanded.origin.0;
            let start = self.emitter.mark().inst;
            self.node(node, &expanded)?;
            self.emitter.note_node(node, start);
            if is_product(expanded.op) {
                self.emitter.write_next_late();
            }
            if self.emitter.body.registers.len() > MAX_REGISTERS {
                let text = format!("the tiles of one wave take more than {MAX_REGISTERS} virtual registers");
                return Err(Diagnostic::new(Kind::Limit, text)
                    .at(self.kernel.locations.get(self.emitter.source))
                    .help("use smaller tiles, or more waves"));
            }
        }
        self.emitter.write_all_late();
        self.widened_pairs.clear();
        self.emitter.source = around;
        Ok(())
    }

    /// True if a node may come before writes to LDS that were put off.
    fn may_precede_writes(&self, node: &ExpandedNodeItem) -> Result<bool, Diagnostic> {
        if self.emitter.late.is_empty() || is_product(node.op) {
            return Ok(true);
        }
        if *node.op != Op::Read || self.kernel.world.get::<Mapping>(node.expansion()?.logical).is_some() {
            return Ok(false);
        }
        let memory = node.memory()?;
        Ok(*self.get::<Op>(memory)? == Op::Allocate && !self.emitter.late.are_of(memory))
    }

    fn node(&mut self, node: Entity, expanded: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        let (op, operands) = (*expanded.op, &expanded.operands.0[..]);
        match op {
            Op::Iterate(axis) => {
                if let Some(entered) = self.enter_loop(node, axis, operands)? {
                    self.region(node)?;
                    self.leave_loop(node, entered)?;
                }
                Ok(())
            }
            Op::Pipeline(axis) => {
                let entered = self.enter_pipeline(node, axis, operands)?;
                self.region(node)?;
                self.leave_loop(node, entered)
            }
            Op::Conditional | Op::While => {
                let entered = self.enter_condition(node, op, operands)?;
                self.region(node)?;
                self.leave_condition(node, entered)
            }
            // Their places are set together with their loop.
            Op::IterArg(_) => Ok(()),
            Op::LoopResult(number) => self.loop_result(node, number, operands),
            Op::Read | Op::Write | Op::Atomic(_) | Op::GlobalToShared => self.access(node, expanded),
            Op::Mma(MmaChoice::Explicit(mma)) | Op::ScaledMma(MmaChoice::Explicit(mma)) => {
                let slice = expanded.expansion()?.slice;
                self.mma(node, mma, slice, operands)
            }
            Op::Barrier => {
                self.emitter.op(Opcode::SBarrier, &[]);
                Ok(())
            }
            Op::Control(control) => {
                self.synchronize(control);
                Ok(())
            }
            Op::SetSymbol(symbol) => self.set_symbol(symbol, operands[0]),
            Op::SelfIndex(dim) => self.self_index(node, expanded.expansion()?, dim),
            Op::Size(dim) => self.size(node, dim),
            Op::WorkgroupId(axis) => self.workgroup_id(node, axis),
            Op::Iteration(dim) => self.iteration(node, expanded.expansion()?, dim),
            Op::Rearrange => self.rearrange(node, expanded.expansion()?, operands),
            Op::Reduce(reduction) => self.reduce(node, expanded.expansion()?, reduction, operands),
            Op::Scan(scan) => self.scan(node, expanded.expansion()?, scan, operands),
            Op::Decode(decoding) => self.decode(node, expanded.expansion()?, decoding, operands),
            Op::Encode(dtype) => self.encode(node, expanded.expansion()?, dtype, operands),
            Op::Sort(_) => Err(Diagnostic::bug("a sort that no pass has made a network of")),
            Op::Memory | Op::Scalar | Op::Allocate => Ok(()),
            Op::Mma(MmaChoice::Kernel | MmaChoice::Shape(_))
            | Op::ScaledMma(MmaChoice::Kernel | MmaChoice::Shape(_)) => {
                Err(Diagnostic::bug("an mma without instruction"))
            }
            Op::Register(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Ternary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Convert(_)
            | Op::Broadcast => self.elementwise(node, expanded.expansion()?, op, operands),
        }
    }

    fn loop_result(&mut self, node: Entity, number: u32, owner: &[Entity]) -> Result<(), Diagnostic> {
        // The loop noted the places of its results under its own init operands' positions.
        let owned = owner.first().and_then(|&owner| self.results.get(owner));
        let place = owned.and_then(|results| results.get(number as usize));
        let place = *place.ok_or_else(|| Diagnostic::bug("a loop result without loop"))?;
        self.set_place(node, place);
        Ok(())
    }
}

/// True for products of matrices.
pub(crate) fn is_product(op: &Op) -> bool {
    op.row().class == OpClass::Contraction
}
