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
use crate::ir::node::{MmaChoice, Op};
use crate::ir::nodes::Bug;

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
