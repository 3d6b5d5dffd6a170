//! What the steps of a trip take: each becomes work for a unit, with the results that it waits for.

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::steps::{TripFence, TripStep};
use super::trip::PlannedTrip;
use crate::codegen::target::{DeviceModel, DeviceParameter, LANES, RowSwap, SHARED_LINE, Target};
use crate::index::IndexVec;
use crate::ir::layout::Layout;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::op::Exactness;
use crate::passes::schedule::graph::dependence_graph::{Dependence, Edge, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;

/// Dwords per lane of the widest access.
const WIDEST: u32 = 4;

/// Trips over which values are followed.
const MOST_TRIPS: u32 = 8;

/// What an instruction is for the unit that executes it.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum UnitWork {
    /// A matrix core, for so many clk.
    Matrix(f64),
    /// The vector ALU, for so many clk.
    Vector(f64),
    /// LDS: so many dwords per lane.
    ReadShared(u32),
    /// Likewise.
    WriteShared(u32),
    /// The way to the caches.
    Load(LoadWork),
    /// Likewise, and then LDS.
    LoadToShared(LoadWork),
    /// The way to the caches.
    Store(u32),
    /// None.
    TripFence(TripFence),
}

/// What a load brings.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct LoadWork {
    /// Dwords per lane.
    pub dwords: u32,
    /// Bytes of the lines of the vector cache for each byte of the tile: more than one where a row of the
    /// tile is shorter than a line.
    pub lines: u32,
    /// Trips that a line of L2 lasts: the first of them brings it, and the others find it there.
    pub lasts: u32,
}

/// An instruction of a trip.
#[derive(Clone, Debug)]
pub(crate) struct TripInstruction {
    /// What it is.
    pub work: UnitWork,
    /// The results that it waits for.
    pub operands: SmallVec<[TripOperand; 4]>,
}

/// A result that an instruction waits for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TripOperand {
    /// The number of the instruction that makes it.
    pub from: u32,
    /// Trips between the two.
    pub trips: u32,
}

/// The instructions of a trip in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct TripProgram {
    /// They.
    pub instructions: Vec<TripInstruction>,
    /// The most trips between a result and its use.
    pub longest: u32,
}

/// Makes the program.
struct ProgramWriter<'a> {
    view: SchedulerView<'a>,
    found: &'a LoopGraph,
    trip: &'a PlannedTrip,
    device: &'static DeviceModel,
    target: Target,
    program: TripProgram,
    /// For each load, bytes of a row of its tile.
    rows: IndexVec<NodeId, u32>,
    /// The instruction that makes the value of each node, and the one that waits for its operands.
    maker: IndexVec<NodeId, Option<u32>>,
    taker: IndexVec<NodeId, Option<u32>>,
}

/// Bits of the number of a lane in its row.
const ROW_BITS: u32 = 4;

impl TripProgram {
    /// The instructions of a trip.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn of(view: SchedulerView, found: &LoopGraph, trip: &PlannedTrip) -> Result<TripProgram, Bug> {
        let target = view.settings()?.target();
        let device = DeviceModel::nearest(target);
        let program = TripProgram::default();
        let (rows, maker) = (found.graph.table(SHARED_LINE as u32), found.graph.table(None));
        let taker = found.graph.table(None);
        let mut writer = ProgramWriter { view, found, trip, device, target, program, rows, maker, taker };
        writer.short_rows()?;
        for &step in &trip.steps {
            match step {
                TripStep::TripFence(fence) => writer.emit(UnitWork::TripFence(fence)),
                TripStep::Node(node) => writer.node(node)?,
            }
        }
        if trip.moved > 0 {
            writer.emit(UnitWork::Vector(device.get(DeviceParameter::Valu) * f64::from(trip.moved)));
        }
        writer.operands();
        Ok(writer.program)
    }
}

impl TripProgram {
    /// Its loads.
    fn loads(&self) -> impl Iterator<Item = LoadWork> {
        self.instructions.iter().filter_map(|instruction| match instruction.work {
            UnitWork::Load(load) | UnitWork::LoadToShared(load) => Some(load),
            UnitWork::Matrix(_)
            | UnitWork::Vector(_)
            | UnitWork::ReadShared(_)
            | UnitWork::WriteShared(_)
            | UnitWork::Store(_)
            | UnitWork::TripFence(_) => None,
        })
    }

    /// Bytes of the lines of the vector cache that a wave's trip loads.
    pub(super) fn loaded_lines(&self) -> u32 {
        self.loads().map(|load| 4 * LANES * load.dwords * load.lines).sum()
    }

    /// Trips after which the loads of all lines begin anew.
    pub(super) fn line_trips(&self) -> u32 {
        self.loads().map(|load| load.lasts).max().unwrap_or(1)
    }

    /// Bytes of its code, about. Nodes that are not one instruction for each register have several: compiled
    /// loops have about twelve bytes for each vector instruction that is counted here, waits included.
    pub(crate) fn code_bytes(&self, device: &DeviceModel) -> u64 {
        let bytes = |work: UnitWork| match work {
            UnitWork::Vector(clk) => 12 * (clk / device.get(DeviceParameter::Valu)).ceil() as u64,
            UnitWork::Matrix(_)
            | UnitWork::ReadShared(_)
            | UnitWork::WriteShared(_)
            | UnitWork::Load(_)
            | UnitWork::LoadToShared(_)
            | UnitWork::Store(_)
            | UnitWork::TripFence(_) => 8,
        };
        self.instructions.iter().map(|instruction| bytes(instruction.work)).sum()
    }
}

impl ProgramWriter<'_> {
    fn emit(&mut self, work: UnitWork) {
        self.program.instructions.push(TripInstruction { work, operands: SmallVec::new() });
    }

    /// An access of so many dwords per lane, by instructions as wide as they can be.
    fn accesses(&mut self, dwords: u32, work: impl Fn(u32) -> UnitWork) {
        let mut left = dwords.max(1);
        while left > 0 {
            self.emit(work(left.min(WIDEST)));
            left = left.saturating_sub(WIDEST);
        }
    }

    /// Finds the loads of tiles whose rows are shorter than lines of caches: the rest of a line is a later
    /// trip's.
    fn short_rows(&mut self) -> Result<(), Bug> {
        let graph = &self.found.graph;
        for fill in &self.found.buffers {
            let buffer = self.view.buffer(fill.buffer)?;
            for &write in &fill.writes {
                let is_direct = graph.nodes()[write].class == Class::GlobalToShared;
                let is_load = |edge: &&Edge| graph.nodes()[edge.from].class == Class::ReadGlobal;
                let load = match graph.entering(write).find(is_load) {
                    _ if is_direct => write,
                    Some(edge) => edge.from,
                    None => continue,
                };
                let seen = self.view.node(graph.nodes()[load].entity)?;
                let memory = self.view.node(seen.operands.at(0)?)?;
                let last = memory.ty.dims.last();
                let extent = buffer.dims.iter().zip(&buffer.extents).find(|own| Some(own.0) == last);
                if let Some((_, &extent)) = extent {
                    self.rows[load] = (extent * buffer.element_bytes).max(1);
                }
            }
        }
        Ok(())
    }

    /// The instructions of a node, as wide as they can be.
    fn node(&mut self, node: NodeId) -> Result<(), Bug> {
        let own = self.found.nodes[node];
        let class = self.found.graph.nodes()[node].class;
        let first = self.program.instructions.len() as u32;
        let written = match class {
            Class::WriteShared | Class::WriteGlobal => self.written(node)?,
            Class::ReadShared
            | Class::ReadGlobal
            | Class::GlobalToShared
            | Class::Mma
            | Class::Valu
            | Class::Shuffle
            | Class::Free => 0,
        };
        let row = self.rows[node];
        let load = |dwords: u32| {
            let line = self.device.count(DeviceParameter::L1Line) as u32;
            let lasts = (SHARED_LINE as u32 / row).max(1);
            LoadWork { dwords, lines: (line / row).max(1), lasts }
        };
        match class {
            Class::ReadShared => self.accesses(own.registers, UnitWork::ReadShared),
            Class::WriteShared => self.accesses(written, UnitWork::WriteShared),
            Class::ReadGlobal => {
                self.accesses(own.registers, |dwords| UnitWork::Load(load(dwords)));
            }
            Class::WriteGlobal => self.accesses(written, UnitWork::Store),
            Class::GlobalToShared => {
                let bytes = self.target.lds_load_widths.first().map_or(4, |&bytes| bytes);
                self.emit(UnitWork::LoadToShared(load(bytes / 4)));
            }
            Class::Mma => self.product(own.op),
            Class::Valu if let Op::Reduce(reduction) = own.op => {
                self.reduction(node, reduction)?;
                let end = self.program.instructions.len() as u32;
                (self.taker[node], self.maker[node]) = (Some(first), Some(end.saturating_sub(1)));
                return Ok(());
            }
            Class::Valu | Class::Shuffle => {
                let each = match own.op.row().exactness {
                    Exactness::Exact | Exactness::Ordered => DeviceParameter::Valu,
                    Exactness::Bounded => DeviceParameter::Trans,
                };
                let clk = self.device.get(each) * f64::from(own.registers.max(1));
                self.emit(UnitWork::Vector(clk));
            }
            Class::Free => match TripFence::of(own.op) {
                Some(fence) => self.emit(UnitWork::TripFence(fence)),
                None => return Ok(()),
            },
        }
        // Data has to be there for the first of several writes, and is there after the last of several reads.
        let is_written = matches!(class, Class::WriteShared | Class::WriteGlobal);
        let end = self.program.instructions.len() as u32;
        self.maker[node] = Some(if is_written { first } else { end.saturating_sub(1) });
        self.taker[node] = self.maker[node];
        Ok(())
    }

    /// What a lane joins of its own, and then an exchange for each bit of the lane's number by which the
    /// elements are spread: from row to row by way of LDS, where the chip has no instruction that exchanges
    /// rows (`src/codegen/lower/operations/reduce.rs`).
    fn reduction(&mut self, node: NodeId, reduction: Reduction) -> Result<(), Bug> {
        let valu = self.device.get(DeviceParameter::Valu);
        let seen = self.view.node(self.found.graph.nodes()[node].entity)?;
        let results = self.found.nodes[node].registers.max(1);
        let mut joined = 0;
        for &operand in &seen.operands.0 {
            joined += self.view.registers(operand)?;
        }
        let joins = match reduction.op {
            // Three at a time.
            ReductionOp::Min | ReductionOp::Max => joined.saturating_sub(results).div_ceil(2),
            ReductionOp::Sum | ReductionOp::Product => joined.saturating_sub(results),
        };
        let each = |count: u32| UnitWork::Vector(valu * f64::from(count.max(1)));
        self.emit(each(joins));
        let layout = |piece: Entity| -> Result<Option<&Layout>, Bug> {
            Ok(self.view.layout(self.view.node(piece)?.piece(piece).logical))
        };
        let operand = seen.operands.0.first().map_or(Ok(None), |&operand| layout(operand))?;
        let own = layout(self.found.graph.nodes()[node].entity)?;
        let apart = reduction.parts.zip(own).map(|(parts, own)| own.lane_bits(parts));
        let bits = operand.map_or(0, |from| from.lane_bits(reduction.dim)) & !apart.unwrap_or(0);
        for bit in (0..LANES.ilog2()).filter(|bit| bits >> bit & 1 == 1) {
            match RowSwap::opcode(self.target, bit) {
                Some(_) => self.emit_after(each(3 * results)),
                None if bit < ROW_BITS => self.emit_after(each(results)),
                None => {
                    self.emit_after(UnitWork::ReadShared(1));
                    self.emit_after(each(results));
                }
            }
        }
        Ok(())
    }

    /// An instruction that waits for the one before it.
    fn emit_after(&mut self, work: UnitWork) {
        let before = (self.program.instructions.len() as u32).checked_sub(1);
        let operands = before.map(|from| TripOperand { from, trips: 0 }).into_iter().collect();
        self.program.instructions.push(TripInstruction { work, operands });
    }

    /// Dwords per lane of what a node writes.
    fn written(&self, node: NodeId) -> Result<u32, Bug> {
        let entity = self.found.graph.nodes()[node].entity;
        self.view.registers(self.view.node(entity)?.operands.at(0)?)
    }

    /// A matrix instruction or, where the chip has none, products of pairs on the vector ALU.
    fn product(&mut self, op: Op) {
        let Some(MmaChoice::Explicit(mma)) = op.product() else { return self.emit(UnitWork::Vector(0.0)) };
        let turn = self.device.get(DeviceParameter::Turn);
        match self.target.matrix_instruction(mma) {
            Some(instruction) => {
                self.emit(UnitWork::Matrix(turn * f64::from(instruction.passes)));
            }
            None => {
                let products = mma.m() * mma.n() * mma.k();
                self.emit(UnitWork::Vector(turn * f64::from(products.div_ceil(2 * LANES))));
            }
        }
    }

    /// What each instruction waits for: results, by way of nodes that take no time.
    fn operands(&mut self) {
        let (graph, assignment) = (&self.found.graph, &self.trip.assignment);
        let mut open: Vec<(NodeId, u32)> = Vec::new();
        for (node, taker) in self.taker.enumerated() {
            let Some(taker) = *taker else { continue };
            let mut operands: SmallVec<[TripOperand; 4]> = SmallVec::new();
            open.clear();
            open.push((node, 0));
            let mut next = 0;
            while let Some(&(user, distance)) = open.get(next) {
                next += 1;
                for edge in graph.entering(user).filter(|edge| edge.kind == Dependence::Value) {
                    let distance = distance + edge.distance;
                    let later =
                        (assignment.stage(node) + distance).saturating_sub(assignment.stage(edge.from));
                    match self.maker[edge.from] {
                        Some(from) => operands.push(TripOperand { from, trips: later }),
                        // Values that nothing makes may be handed on in circles.
                        None if open.contains(&(edge.from, distance)) || distance > MOST_TRIPS => {}
                        None => open.push((edge.from, distance)),
                    }
                }
            }
            let longest = operands.iter().map(|operand| operand.trips).max().unwrap_or(0);
            self.program.longest = self.program.longest.max(longest);
            self.program.instructions[taker as usize].operands = operands;
        }
    }
}
