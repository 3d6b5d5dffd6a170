//! What nodes of a loop cost before the loop is lowered: an access and a product are one instruction each,
//! and what that costs is said by the table of instructions, which time mode, estimates and the interleaving
//! of machine code have as well.

use bevy_ecs::prelude::*;

use super::dependence_graph::NodeId;
use super::dependences::LoopGraph;
use super::resources::Class;
use super::view::SchedulerView;
use crate::codegen::issue::{IssueCost, IssueRates};
use crate::codegen::target::{CostKind, DeviceModel, DeviceParameter, LdsKind, SIMDS, Target, VectorKind};
use crate::ir::node::{Conversion, MmaChoice, Op, UnaryOp};
use crate::ir::nodes::Bug;
use crate::ir::op::OpClass;
use crate::ir::types::DType;
use crate::passes::facts::RoundsPlainly;
use crate::passes::options::FloatFunctions;

/// Instructions that a power takes beside its own where it looks after denormal numbers.
const CAREFUL_POWER: u64 = 4;

/// Instructions for two elements that are rounded to bf16, and of those that may round NaNs like numbers.
const ROUNDING: u64 = 11;
const PLAIN_ROUNDING: u64 = 5;

/// The costs of a loop's nodes, of a wave on each SIMD.
pub(crate) struct NodeCosts<'a> {
    view: SchedulerView<'a>,
    found: &'a LoopGraph,
    target: Target,
    device: &'static DeviceModel,
    rates: IssueRates,
    /// The last product and its cost: most are alike.
    product: Option<(Op, IssueCost)>,
}

impl<'a> NodeCosts<'a> {
    /// Those of a loop.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn of(view: SchedulerView<'a>, found: &'a LoopGraph) -> Result<NodeCosts<'a>, Bug> {
        let target = view.settings()?.target();
        let device = DeviceModel::nearest(target);
        Ok(NodeCosts { view, found, target, device, rates: IssueRates::of(device), product: None })
    }

    /// The class of a node of the loop's body and its cost, if it is one instruction.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn cost(&mut self, node: NodeId) -> Result<(Class, Option<IssueCost>), Bug> {
        let (own, graph_node) = (&self.found.nodes[node], &self.found.graph.nodes()[node]);
        let class = graph_node.class;
        let kind = match class {
            Class::Mma => return Ok((class, self.product(own.op))),
            Class::ReadShared => CostKind::Lds { kind: LdsKind::Read, dwords: own.registers },
            Class::WriteShared => {
                CostKind::Lds { kind: LdsKind::Write, dwords: self.written(graph_node.entity)? }
            }
            Class::ReadGlobal => memory(VectorKind::Load, own.registers),
            Class::GlobalToShared => memory(VectorKind::LoadToLds, own.registers),
            Class::WriteGlobal => memory(VectorKind::Store, self.written(graph_node.entity)?),
            Class::Valu | Class::Shuffle | Class::Free => return Ok((class, None)),
        };
        Ok((class, Some(self.rates.cost(&kind, 1))))
    }

    /// Clk of the vector unit for arithmetic: an instruction for each register of its result, and of what a
    /// reduction takes; more of them where a cast rounds, or a power looks after denormal numbers.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn vector_clk(&self, node: NodeId) -> Result<u64, Bug> {
        let own = &self.found.nodes[node];
        let seen = self.view.node(self.found.graph.nodes()[node].entity)?;
        let taken = || -> Result<u64, Bug> {
            let registers = seen.operands.0.iter().map(|&operand| self.view.registers(operand));
            Ok(u64::from(registers.sum::<Result<u32, Bug>>()?))
        };
        let [valu, power] =
            [DeviceParameter::Valu, DeviceParameter::Trans].map(|unit| self.device.count(unit));
        let made = u64::from(own.registers);
        Ok(match (own.op, seen.ty.dtype) {
            (Op::Unary(UnaryOp::Exp | UnaryOp::Exp2), _)
                if self.view.settings()?.requested_functions() != FloatFunctions::Fast =>
            {
                (power + CAREFUL_POWER * valu) * made
            }
            (Op::Unary(UnaryOp::Exp | UnaryOp::Exp2 | UnaryOp::Log | UnaryOp::Log2 | UnaryOp::Tanh), _) => {
                power * made
            }
            (Op::Convert(Conversion::Cast), dtype) => {
                let is_plain = self.view.world.get::<RoundsPlainly>(own.expansion.logical).is_some();
                match dtype {
                    Some(DType::F16) if !self.target.rounds_pairs() => valu * taken()?,
                    Some(DType::Bf16) if !self.target.rounds_pairs() => {
                        valu * taken()? * if is_plain { PLAIN_ROUNDING } else { ROUNDING } / 2
                    }
                    _ => valu * made,
                }
            }
            (op, _) if op.row().class == OpClass::Reduction => valu * taken()?,
            _ => valu * made,
        })
    }

    /// Clk from a read of LDS to its data, after the queue that the reads of a whole cluster make.
    pub(crate) fn latency_in_cluster(&self) -> u32 {
        self.device.count(DeviceParameter::LdsLatencyQueued) as u32
    }

    /// Vector registers of what a node writes.
    fn written(&self, node: Entity) -> Result<u32, Bug> {
        self.view.registers(self.view.node(node)?.operands.at(0)?)
    }

    fn product(&mut self, op: Op) -> Option<IssueCost> {
        if let Some((known, cost)) = self.product
            && known == op
        {
            return Some(cost);
        }
        let MmaChoice::Explicit(mma) = op.product()? else { return None };
        let instruction = match op.takes_scales() {
            true => self.target.scaled_matrix_instruction(mma),
            false => self.target.matrix_instruction(mma),
        };
        let cost = instruction?.cost(self.device, self.target.arch);
        let cost = self.rates.cost(&cost.kind, cost.turns);
        Some(self.product.insert((op, cost)).1)
    }
}

fn memory(kind: VectorKind, registers: u32) -> CostKind {
    CostKind::Vector { kind, bytes: 4 * registers, bypasses_l1: false }
}

/// How many waves of a workgroup a SIMD has, of which each takes its units for as long as one.
pub(crate) fn per_simd(waves: u32) -> u32 {
    waves.div_ceil(SIMDS as u32).max(1)
}
