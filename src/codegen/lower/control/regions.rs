//! The nodes of a region.

use bevy_ecs::prelude::*;

use super::ControlLayer;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;
use crate::ir::op::{AlongDimOp, CarriedOp, ConstantOp, ElementWiseOp, OpClass, OpFamily, OrderOp, Runs};

/// The most virtual registers: those that the allocator adds need numbers as well.
const MAX_REGISTERS: usize = 1 << 20;

impl ControlLayer<'_> {
    /// Writes the nodes of a region.
    pub(super) fn region(&mut self, region: Entity) -> Result<(), Diagnostic> {
        // Instructions after the region belong to the node that owns it.
        let around = self.emitter.source;
        self.widened_pairs.clear();
        let nodes = &self.get::<Body>(region)?.0[..];
        let (mut rest, mut may_skip, mut priority) = (nodes, false, 0);
        while let Some((&node, others)) = rest.split_first() {
            let expanded = self.expanded(node)?;
            if !self.may_precede_writes(&expanded)? {
                self.emitter.write_all_late();
            }
            if self.emitter.late_constants.is_waiting() && !self.may_precede_constants(&expanded)? {
                self.emitter.write_late_constants();
            }
            self.emitter.source = expanded.origin.0;
            if self.kernel.has_seldom_masks {
                if self.is_on_demand(node, *expanded.op) {
                    rest = others;
                    let here = self.emitter.mark().inst;
                    self.emitter.note_node(node, here);
                    continue;
                }
                let run = self.select_unless_unmasked(rest)?;
                if run > 0 {
                    rest = &rest[run..];
                    continue;
                }
                self.demand_condition(&expanded)?;
            }
            if may_skip {
                let run = self.with_unit_factors(rest)?;
                if run > 0 && self.multiply_unless_one(&rest[..run], priority)? {
                    (rest, may_skip) = (&rest[run..], false);
                    continue;
                }
            }
            rest = others;
            may_skip = *expanded.op == Op::Control(Control::SkipUnitFactors);
            if let Op::Control(Control::SetWavePriority(level)) = *expanded.op {
                priority = level;
            }
            let start = self.emitter.mark().inst;
            self.node(node, &expanded)?;
            self.emitter.note_node(node, start);
            if expanded.op.is_product() {
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
        self.emitter.write_late_constants();
        self.widened_pairs.clear();
        self.emitter.source = around;
        Ok(())
    }

    /// True if a node may come before the initial values that were put off: what loads from memory at no
    /// value's coordinates, as such a value may be one of them, and what stands between such loads.
    fn may_precede_constants(&self, node: &ExpandedNodeItem) -> Result<bool, Diagnostic> {
        match node.op.row().class {
            OpClass::Declaration | OpClass::Carried => Ok(true),
            OpClass::Access if node.op.is_write() && !node.op.copies() => Ok(false),
            OpClass::Access => {
                for &operand in &node.operands.0 {
                    if self.get::<Op>(operand)?.row().class != OpClass::Declaration {
                        return Ok(false);
                    }
                }
                Ok(node.op.copies() || *self.get::<Op>(node.memory()?)? == Op::Memory)
            }
            OpClass::Constant
            | OpClass::ElementWise
            | OpClass::Rearrangement
            | OpClass::Contraction
            | OpClass::Reduction
            | OpClass::Scan
            | OpClass::Region
            | OpClass::Order => Ok(false),
        }
    }

    /// True if a node may come before writes to LDS that were put off.
    fn may_precede_writes(&self, node: &ExpandedNodeItem) -> Result<bool, Diagnostic> {
        let is_constant = node.op.row().class == OpClass::Constant;
        if self.emitter.late.is_empty() || node.op.is_product() || is_constant {
            return Ok(true);
        }
        if !node.op.loads() || self.kernel.world.get::<Mapping>(node.expansion()?.logical).is_some() {
            return Ok(false);
        }
        let memory = node.memory()?;
        Ok(*self.get::<Op>(memory)? == Op::Allocate && !self.emitter.late.are_of(memory))
    }

    fn node(&mut self, node: Entity, expanded: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        let (op, operands) = (*expanded.op, &expanded.operands.0[..]);
        match op.family() {
            OpFamily::Declaration(_) => Ok(()),
            OpFamily::Constant(constant) => self.constant(node, expanded, constant),
            OpFamily::Access(access) => self.access(node, access, expanded),
            OpFamily::ElementWise(ElementWiseOp::Decode(decoding)) => {
                self.decode(node, expanded.expansion()?, decoding, operands)
            }
            OpFamily::ElementWise(ElementWiseOp::Encode(dtype)) => {
                self.encode(node, expanded.expansion()?, dtype, operands)
            }
            OpFamily::ElementWise(element_wise) => {
                self.elementwise(node, expanded.expansion()?, (op, element_wise), operands)
            }
            OpFamily::Rearrangement(_) => self.rearrange(node, expanded.expansion()?, operands),
            OpFamily::Contraction(product) => {
                self.product(node, product, expanded.expansion()?.slice, operands)
            }
            OpFamily::AlongDim(AlongDimOp::Reduce(reduction)) => {
                self.reduce(node, expanded.expansion()?, reduction, operands)
            }
            OpFamily::AlongDim(AlongDimOp::Scan(scan)) => {
                self.scan(node, expanded.expansion()?, scan, operands)
            }
            OpFamily::AlongDim(AlongDimOp::Sort(_)) => {
                Err(Diagnostic::bug("a sort that no pass has made a network of"))
            }
            OpFamily::Region(_) => self.whole_region(node, op, operands),
            // Their places are set together with their loop.
            OpFamily::Carried(CarriedOp::IterArg(_)) => Ok(()),
            OpFamily::Carried(CarriedOp::LoopResult(number)) => self.loop_result(node, number, operands),
            OpFamily::Order(order) => self.order(node, order, operands),
        }
    }

    /// A region with what stands before and after its nodes.
    fn whole_region(&mut self, node: Entity, op: Op, operands: &[Entity]) -> Result<(), Diagnostic> {
        match op.runs().ok_or_else(|| Diagnostic::bug("not a region"))? {
            Runs::ForTiles(axis) => {
                if let Some(entered) = self.enter_loop(node, axis, operands)? {
                    self.region(node)?;
                    self.leave_loop(node, entered)?;
                }
                Ok(())
            }
            Runs::ForStages(axis) => {
                let entered = self.enter_pipeline(node, axis, operands)?;
                self.region(node)?;
                self.leave_loop(node, entered)
            }
            Runs::UnderConditions { .. } => {
                let entered = self.enter_condition(node, op, operands)?;
                self.region(node)?;
                self.leave_condition(node, entered)
            }
        }
    }

    fn order(&mut self, node: Entity, op: OrderOp, operands: &[Entity]) -> Result<(), Diagnostic> {
        match op {
            OrderOp::Barrier => self.emitter.barrier(Some(node), 0),
            OrderOp::Control(control) => self.synchronize(node, control),
            OrderOp::SetSymbol(symbol) => return self.set_symbol(symbol, operands[0]),
        }
        Ok(())
    }

    fn constant(
        &mut self,
        node: Entity,
        expanded: &ExpandedNodeItem,
        op: ConstantOp,
    ) -> Result<(), Diagnostic> {
        match op {
            ConstantOp::Register(constant) => self.register(node, expanded.expansion()?, constant),
            ConstantOp::SelfIndex(dim) => self.self_index(node, expanded.expansion()?, dim),
            ConstantOp::Size(dim) => self.size(node, dim),
            ConstantOp::WorkgroupId(axis) => self.workgroup_id(node, axis),
            ConstantOp::Iteration(dim) => self.iteration(node, expanded.expansion()?, dim),
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
