//! Writes the program of a trip: the steps that waves take become instructions, by what nodes become.

use std::ops::Range;

use bevy_ecs::prelude::Entity;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, iter_entity_range};
use smallvec::{SmallVec, smallvec};

use super::interleaving::{OrderedInstruction, interleaved};
use super::node_code::{CodeId, NodeCode, NodeInstruction};
use super::program::{
    LoadWork, MatrixWork, TripInstruction, TripOperand, TripPlace, TripProgram, UnitWork, VectorWork,
};
use super::steps::{CodeOrder, TripControl, TripStep};
use super::trip::PlannedTrip;
use crate::codegen::target::{CostKind, DeviceModel, DeviceParameter, SHARED_LINE, TURN, VectorKind};
use crate::ir::nodes::{self, Bug};
use crate::passes::schedule::graph::dependence_graph::{Edge, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::{SchedulerView, Seldom};

/// The most trips that a line of L2 is taken to last: shorter rows are those of scales, which are few, and
/// all trips in which lines differ are run.
const MOST_LASTING: u32 = 8;

/// What stands behind an instruction of a trip before instructions are taken together.
#[derive(Copy, Clone)]
struct TripSource {
    /// The instruction of a node, if it is one.
    code: PackedOption<CodeId>,
    /// Its stage.
    stage: u32,
}

/// The rows of a tile.
#[derive(Copy, Clone)]
struct TileRows {
    /// Bytes of one.
    bytes: u32,
    /// Sets of the vector cache in which they belong.
    sets: u32,
}

impl TileRows {
    /// Of what is no tile.
    const NONE: TileRows = TileRows { bytes: SHARED_LINE as u32, sets: 1 };
}

/// Makes the program.
struct ProgramWriter<'a> {
    view: SchedulerView<'a>,
    found: &'a LoopGraph,
    trip: &'a PlannedTrip,
    code: &'a NodeCode,
    device: &'static DeviceModel,
    program: TripProgram,
    /// What stands behind each instruction.
    sources: Vec<TripSource>,
    /// For each load, the rows of its tile.
    rows: PrimaryMap<NodeId, TileRows>,
}

impl TripProgram {
    /// The instructions of a trip of the loop `node`.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn of(
        view: SchedulerView,
        node: Entity,
        found: &LoopGraph,
        trip: &PlannedTrip,
    ) -> Result<TripProgram, Bug> {
        let device = DeviceModel::nearest(view.settings()?.target());
        let code = nodes::fact::<NodeCode>(view.world, view.root, "a kernel that has not been lowered")?;
        let (program, rows) = (TripProgram::default(), found.graph.table(TileRows::NONE));
        let mut writer =
            ProgramWriter { view, found, trip, code, device, program, sources: Vec::new(), rows };
        writer.short_rows()?;
        // Of how often a branch leaves out products nothing is known: they count in a wave of no priority,
        // whose instructions stand one by one beside the matrix instructions of another wave.
        let (mut skips, mut goes_first) = (false, false);
        for &step in &trip.steps {
            match step {
                TripStep::Control(control) => {
                    if let TripControl::Priority(level) = control {
                        goes_first = level > 0;
                    }
                    skips = goes_first && control == TripControl::SkipUnitFactors;
                    writer.emit(UnitWork::Control(control));
                }
                TripStep::Node(node)
                    if skips
                        && view.seldom(found.nodes[node].expansion.logical) == Some(Seldom::UnitFactor) => {}
                TripStep::Node(node) => {
                    skips = false;
                    writer.node(node);
                }
            }
        }
        let moves = writer.program.instructions.len();
        if trip.moved > 0 {
            let clk = device.count(DeviceParameter::Valu) * u64::from(trip.moved);
            writer.emit(UnitWork::Vector(VectorWork { clk, pairs: true, overlaps: true }));
        }
        writer.instructions(code.end_of(node), TileRows::NONE, 0);
        writer.operands();
        let marked = writer.marked_regions();
        if trip.order == CodeOrder::Interleaved || !marked.is_empty() {
            writer.interleave(moves, &marked);
        }
        if trip.moved > 0 {
            writer.program.move_values(moves);
        }
        let mut program = writer.program.merged();
        program.place_waits();
        program.place_refills(device);
        Ok(program)
    }
}

impl ProgramWriter<'_> {
    fn emit(&mut self, work: UnitWork) {
        self.push(work, 4, TripSource { code: None.into(), stage: 0 });
    }

    fn push(&mut self, work: UnitWork, bytes: u8, source: TripSource) {
        let bytes = smallvec![bytes];
        let one = TripInstruction { work, operands: SmallVec::new(), waits: false, refills: 0, bytes };
        self.program.instructions.push(one);
        self.sources.push(source);
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
                    let bytes = (extent * buffer.element_bytes).max(1);
                    let sets = self.sets(
                        last.map(|&dim| self.view.size(dim)).transpose()?.flatten(),
                        buffer.element_bytes,
                    );
                    self.rows[load] = TileRows { bytes, sets };
                }
            }
        }
        Ok(())
    }

    /// Sets of the vector cache in which rows of so many elements belong that follow each other: all in one,
    /// if nothing is known about them.
    fn sets(&self, elements: Option<i64>, element_bytes: u32) -> u32 {
        let sets = self.device.count(DeviceParameter::L1Sets) as i64;
        let line = self.device.count(DeviceParameter::L1Line) as i64;
        let apart = elements.map_or(0, |elements| elements.saturating_mul(element_bytes.into()));
        let apart = apart % (sets * line);
        (1..=sets).find(|used| apart * used % (sets * line) == 0).unwrap_or(sets) as u32
    }

    /// Writes the instructions of a node, or its control.
    fn node(&mut self, node: NodeId) {
        let entity = self.found.graph.nodes()[node].entity;
        match TripControl::of(self.found.nodes[node].op) {
            Some(fence) => self.emit(UnitWork::Control(fence)),
            None => {
                let stage = self.trip.assignment.stage(node);
                self.instructions(self.code.of(entity), self.rows[node], stage);
            }
        }
    }

    /// Instructions of a node of a stage, whose loads are of such rows.
    fn instructions(&mut self, code: Range<CodeId>, row: TileRows, stage: u32) {
        for id in iter_entity_range(code) {
            let instruction = self.code.instruction(id);
            let work = self.work(instruction, row);
            self.push(work, instruction.bytes, TripSource { code: id.into(), stage });
        }
    }

    /// The work of an instruction for its unit.
    fn work(&self, instruction: &NodeInstruction, row: TileRows) -> UnitWork {
        let NodeInstruction { kind, turns, .. } = *instruction;
        let load = |bytes: u32| {
            let line = self.device.count(DeviceParameter::L1Line) as u32;
            let lasts = (SHARED_LINE as u32 / row.bytes).clamp(1, MOST_LASTING);
            LoadWork { bytes, lines: (line / row.bytes).max(1), lasts, sets: row.sets }
        };
        match kind {
            CostKind::Valu { clk, pairs, overlaps } => UnitWork::Vector(VectorWork { clk, pairs, overlaps }),
            CostKind::Matrix { occupancy, blocks, memory, result, accumulate, .. } => {
                let issue = TURN * u64::from(turns);
                UnitWork::Matrix(MatrixWork {
                    occupancy,
                    issue,
                    blocks,
                    memory,
                    results: [accumulate, result],
                })
            }
            CostKind::Lds { kind, dwords } => UnitWork::Lds { kind, dwords },
            CostKind::Vector { kind: VectorKind::Load, bytes, .. } => UnitWork::Load(load(bytes)),
            CostKind::Vector { kind: VectorKind::LoadToLds, bytes, .. } => UnitWork::LoadToLds(load(bytes)),
            CostKind::Vector { kind: VectorKind::Store | VectorKind::Atomic, bytes, .. } => {
                UnitWork::Store(bytes)
            }
            CostKind::Nop { clk } | CostKind::Sleep { clk } => UnitWork::Turns(turns + (clk / TURN) as u32),
            CostKind::Vector { kind: VectorKind::Control, .. }
            | CostKind::Scalar
            | CostKind::ScalarMemory
            | CostKind::Branch
            | CostKind::Wait { .. }
            | CostKind::Barrier
            | CostKind::Priority { .. }
            | CostKind::End => UnitWork::Turns(turns),
        }
    }

    /// The first instructions of regions that the schedule wants ordered by cost.
    fn marked_regions(&self) -> Vec<usize> {
        let is_mark = |one: &TripInstruction| one.work == UnitWork::Control(TripControl::Interleave);
        let instructions = self.program.instructions.iter().enumerate();
        instructions.filter(|(_, one)| is_mark(one)).map(|(at, _)| at + 1).collect()
    }

    /// Interleaves the first so many instructions: in regions that are marked or, if none is and waves do not
    /// compete by priorities, in all of them.
    fn interleave(&mut self, count: usize, marked: &[usize]) {
        let insts: Option<Vec<OrderedInstruction>> = self.program.instructions[..count]
            .iter()
            .zip(&self.sources)
            .map(|(one, source)| {
                let fixed = |kind| OrderedInstruction {
                    kind,
                    turns: 1,
                    registers: 0,
                    is_fixed: true,
                    operands: &one.operands,
                };
                match (source.code.expand(), one.work) {
                    (Some(code), _) => {
                        let &NodeInstruction { kind, turns, registers, is_fixed, .. } =
                            self.code.instruction(code);
                        let operands = &one.operands[..];
                        Some(OrderedInstruction { kind, turns, registers, is_fixed, operands })
                    }
                    (None, UnitWork::Control(TripControl::Priority(_))) if marked.is_empty() => None,
                    (None, _) => Some(fixed(CostKind::Barrier)),
                }
            })
            .collect();
        let Some(order) = insts.and_then(|insts| interleaved(&insts, marked, self.device)) else { return };
        self.program.reorder(&order);
    }

    /// What each instruction waits for: in the pipeline results of an earlier stage are of an earlier trip.
    fn operands(&mut self) {
        let mut makers: SecondaryMap<CodeId, PackedOption<TripPlace>> =
            SecondaryMap::with_capacity(self.code.len());
        for (source, at) in self.sources.iter().zip(0..) {
            if let Some(code) = source.code.expand() {
                makers[code] = TripPlace::new(at).into();
            }
        }
        let ProgramWriter { program, sources, code, .. } = self;
        let lates: Vec<u64> = program.instructions.iter().map(|one| one.work.late()).collect();
        for (at, (one, source)) in program.instructions.iter_mut().zip(&*sources).enumerate() {
            let Some(id) = source.code.expand() else { continue };
            one.operands.extend(code.instruction(id).operands.iter().filter_map(|operand| {
                let from = makers[operand.from].expand()?.index();
                let trips = (source.stage + operand.trips).saturating_sub(sources[from].stage);
                let late = if operand.accumulates { 0 } else { lates[from] };
                // What several nodes have in common, as a part of an address, has been measured with one of
                // them, and is computed with the first one in this order.
                (trips > 0 || from < at).then_some(TripOperand { from: from as u32, trips, late })
            }));
        }
    }
}
