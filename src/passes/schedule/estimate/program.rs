//! What the steps of a trip take: each becomes work for a unit, with the results that it waits for.

use std::ops::Range;

use bevy_ecs::prelude::Entity;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, entity_impl, iter_entity_range};
use smallvec::{SmallVec, smallvec};

use super::interleaving::{OrderedInstruction, interleaved};
use super::node_code::{CodeId, NodeCode, NodeInstruction};
use super::steps::{CodeOrder, TripControl, TripStep};
use super::trip::PlannedTrip;
use crate::codegen::target::{
    CostKind, DeviceModel, DeviceParameter, LdsKind, SHARED_LINE, TURN, VectorKind,
};
use crate::ir::nodes::{self, Bug};
use crate::passes::schedule::graph::dependence_graph::{Edge, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;

/// Bytes of an instruction that waits.
const WAIT_BYTES: u32 = 4;

/// The most trips that a line of L2 is taken to last: shorter rows are those of scales, which are few, and
/// all trips in which lines differ are run.
const MOST_LASTING: u32 = 8;

/// The most clk of vector instructions that are taken together.
const TOGETHER: u64 = 32;

/// What an instruction is for the unit that executes it.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum UnitWork {
    /// A matrix core.
    Matrix(MatrixWork),
    /// The vector ALU; several instructions one after the other.
    Vector(VectorWork),
    /// None that waves compete for: so many turns of its wave.
    Turns(u32),
    /// LDS: so many dwords per lane.
    Lds { kind: LdsKind, dwords: u32 },
    /// The way to the caches.
    Load(LoadWork),
    /// Likewise, and then LDS.
    LoadToLds(LoadWork),
    /// The way to the caches: so many bytes per lane.
    Store(u32),
    /// None.
    Control(TripControl),
}

impl UnitWork {
    /// True if waves of a workgroup meet there.
    pub(super) fn is_barrier(&self) -> bool {
        let barriers = [TripControl::SharedMemoryBarrier, TripControl::WorkgroupBarrier];
        matches!(self, UnitWork::Control(control) if barriers.contains(control))
    }

    /// True if its result is there later than its wave goes on.
    fn takes_time(&self) -> bool {
        matches!(self, UnitWork::Matrix(_) | UnitWork::Lds { .. } | UnitWork::Load(_))
    }

    /// Clk from when its result may be accumulated on to when others may read it.
    fn late(&self) -> u64 {
        if let UnitWork::Matrix(MatrixWork { results, .. }) = self { results[1] - results[0] } else { 0 }
    }
}

/// A matrix instruction: clk from its issue on.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct MatrixWork {
    /// Until the next one.
    pub occupancy: u64,
    /// Until its wave goes on.
    pub issue: u64,
    /// Until a vector instruction of any wave.
    pub blocks: u64,
    /// Until an access of memory.
    pub memory: u64,
    /// Until its result may be accumulated on, and until others may read it.
    pub results: [u64; 2],
}

/// Vector instructions.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct VectorWork {
    /// Clk.
    pub clk: u64,
    /// They may share turns with those of another wave that may.
    pub pairs: bool,
    /// They may issue while a matrix instruction runs.
    pub overlaps: bool,
}

/// What a load brings.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct LoadWork {
    /// Bytes per lane.
    pub bytes: u32,
    /// Bytes of the lines of the vector cache for each byte of the tile: more than one where a row of the
    /// tile is shorter than a line.
    pub lines: u32,
    /// Trips that a line of L2 lasts: the first of them brings it, and the others find it there.
    pub lasts: u32,
    /// Sets of the vector cache in which the rows of its tile belong.
    pub sets: u32,
}

/// An instruction of a trip.
#[derive(Clone, Debug)]
pub(crate) struct TripInstruction {
    /// What it is.
    pub work: UnitWork,
    /// The results that it waits for.
    pub operands: SmallVec<[TripOperand; 4]>,
    /// A wait stands in front of it.
    pub waits: bool,
    /// Turns that are lost in front of it, because the code does not come fast enough.
    pub refills: u32,
    /// Bytes of each of the instructions that it stands for.
    bytes: SmallVec<[u8; 8]>,
}

/// What stands behind an instruction of a trip before instructions are taken together.
#[derive(Copy, Clone)]
struct TripSource {
    /// The instruction of a node, if it is one.
    code: PackedOption<CodeId>,
    /// Its stage.
    stage: u32,
}

/// A result that an instruction waits for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TripOperand {
    /// The number of the instruction that makes it.
    pub from: u32,
    /// Trips between the two.
    pub trips: u32,
    /// Clk after that until it can be read: matrix instructions hand theirs on late, except to those that
    /// accumulate on them.
    pub late: u64,
}

/// The place of an instruction in a trip.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(super) struct TripPlace(u32);
entity_impl!(TripPlace, "trip");

/// The instructions of a trip in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct TripProgram {
    /// They.
    pub instructions: Vec<TripInstruction>,
    /// The most trips between a result and its use.
    pub longest: u32,
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
        for &step in &trip.steps {
            match step {
                TripStep::Control(fence) => writer.emit(UnitWork::Control(fence)),
                TripStep::Node(node) => writer.node(node),
            }
        }
        let moves = writer.program.instructions.len();
        if trip.moved > 0 {
            let clk = device.count(DeviceParameter::Valu) * u64::from(trip.moved);
            writer.emit(UnitWork::Vector(VectorWork { clk, pairs: true, overlaps: true }));
        }
        writer.instructions(code.end_of(node), TileRows::NONE, 0);
        writer.operands();
        if trip.order == CodeOrder::Interleaved {
            writer.interleave(moves);
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

impl TripProgram {
    /// The place in which the result of an instruction in a trip is kept until it is needed no more.
    #[inline]
    pub(super) fn place(&self, instruction: u32, trip: u32) -> usize {
        let depth = self.longest + 1;
        (instruction * depth + trip % depth) as usize
    }

    /// Its loads.
    pub(super) fn loads(&self) -> impl Iterator<Item = LoadWork> {
        self.instructions.iter().filter_map(|instruction| {
            let (UnitWork::Load(load) | UnitWork::LoadToLds(load)) = instruction.work else { return None };
            Some(load)
        })
    }

    /// Trips after which the loads of all lines begin anew.
    pub(super) fn line_trips(&self) -> u32 {
        self.loads().map(|load| load.lasts).max().unwrap_or(1)
    }

    /// Bytes of its code.
    pub(crate) fn code_bytes(&self) -> u64 {
        let bytes = self.instructions.iter().flat_map(|instruction| &instruction.bytes);
        bytes.map(|&bytes| u64::from(bytes)).sum()
    }

    /// Finds the turns that are lost because instructions of eight bytes that do not lie at multiples of
    /// eight follow each other, for a loop that starts at one.
    fn place_refills(&mut self, device: &DeviceModel) {
        let most = device.count(DeviceParameter::MisalignedRun).max(1) as u32;
        let (mut at, mut run) = (0u32, 0);
        for instruction in &mut self.instructions {
            if instruction.waits {
                (at, run) = (at + WAIT_BYTES, 0);
            }
            for &bytes in &instruction.bytes {
                if run >= most {
                    run = 0;
                    instruction.refills += 1;
                }
                run = if bytes == 8 && at % 8 == 4 { run + 1 } else { 0 };
                at += u32::from(bytes);
            }
        }
    }

    /// Gives the first instructions this order.
    fn reorder(&mut self, order: &[u32]) {
        let mut places: Vec<u32> = (0..self.instructions.len() as u32).collect();
        for (&from, to) in order.iter().zip(0..) {
            places[from as usize] = to;
        }
        for operand in self.instructions.iter_mut().flat_map(|one| &mut one.operands) {
            operand.from = places[operand.from as usize];
        }
        let before: Vec<TripInstruction> = self.instructions.drain(..order.len()).collect();
        let mut before: Vec<Option<TripInstruction>> = before.into_iter().map(Some).collect();
        let moved = order.iter().filter_map(|&from| before[from as usize].take());
        let moved: Vec<TripInstruction> = moved.collect();
        self.instructions.splice(0..0, moved);
    }

    /// The same with vector instructions taken together that follow each other and wait for nothing. Results
    /// of vector and scalar instructions are there when the wave issues the next one.
    fn merged(mut self) -> TripProgram {
        let mut merged = TripProgram::default();
        let slow: Vec<bool> = self.instructions.iter().map(|one| one.work.takes_time()).collect();
        let mut places: Vec<u32> = Vec::with_capacity(self.instructions.len());
        for mut one in self.instructions.drain(..) {
            one.operands.retain(|operand| slow[operand.from as usize]);
            let before = merged.instructions.last_mut();
            if !one.operands.is_empty() || !before.is_some_and(|before| before.takes(&one)) {
                merged.instructions.push(one);
            }
            places.push(merged.instructions.len() as u32 - 1);
        }
        for operand in merged.instructions.iter_mut().flat_map(|one| &mut one.operands) {
            operand.from = places[operand.from as usize];
            merged.longest = merged.longest.max(operand.trips);
        }
        merged
    }

    /// Lets the instruction that moves values to where the next trip finds them wait for these.
    fn move_values(&mut self, moves: usize) {
        let mut moved: SmallVec<[u32; 32]> = SmallVec::new();
        for (instruction, number) in self.instructions.iter().zip(0..) {
            let outlives =
                |operand: &&TripOperand| operand.trips > 1 || operand.trips == 1 && number > operand.from;
            moved.extend(instruction.operands.iter().filter(outlives).map(|operand| operand.from));
        }
        moved.sort_unstable();
        moved.dedup();
        let operands = moved.into_iter().map(|from| TripOperand { from, trips: 0, late: 0 });
        self.instructions[moves].operands.extend(operands);
    }

    /// Finds the instructions in front of which waits stand: those whose operands come from memory or LDS,
    /// unless one before them has waited for these or for later ones. Counts of both are in order.
    fn place_waits(&mut self) {
        let length = self.instructions.len() as i64;
        // Numbers of the last instructions that are known to be over, of LDS and of memory.
        let mut over = [i64::MIN; 2];
        for number in 0..self.instructions.len() {
            let mut waits = false;
            for operand in &self.instructions[number].operands {
                let maker = &self.instructions[operand.from as usize].work;
                let of_lds = matches!(maker, UnitWork::Lds { .. });
                if !of_lds && !matches!(maker, UnitWork::Load(_)) {
                    continue;
                }
                let counter = usize::from(!of_lds);
                let made = i64::from(operand.from) - i64::from(operand.trips) * length;
                if made > over[counter] {
                    over[counter] = made;
                    waits = true;
                }
            }
            if let UnitWork::Control(TripControl::SharedMemoryBarrier) = self.instructions[number].work {
                (waits, over[0]) = (true, number as i64);
            }
            self.instructions[number].waits = waits;
        }
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

    /// Interleaves the first so many instructions, unless waves compete by priorities there.
    fn interleave(&mut self, count: usize) {
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
                    (None, UnitWork::Control(TripControl::Priority(_))) => None,
                    (None, _) => Some(fixed(CostKind::Barrier)),
                }
            })
            .collect();
        let Some(order) = insts.and_then(|insts| interleaved(&insts, self.device)) else { return };
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
        for (one, source) in program.instructions.iter_mut().zip(&*sources) {
            let Some(id) = source.code.expand() else { continue };
            one.operands.extend(code.instruction(id).operands.iter().filter_map(|operand| {
                let from = makers[operand.from].expand()?.index();
                let trips = (source.stage + operand.trips).saturating_sub(sources[from].stage);
                let late = if operand.accumulates { 0 } else { lates[from] };
                Some(TripOperand { from: from as u32, trips, late })
            }));
        }
    }
}

impl TripInstruction {
    /// Takes the next one as well, if both are vector instructions of a kind and not too many come together.
    fn takes(&mut self, next: &TripInstruction) -> bool {
        let (UnitWork::Vector(own), UnitWork::Vector(work)) = (&mut self.work, next.work) else {
            return false;
        };
        let is_alike = (own.pairs, own.overlaps) == (work.pairs, work.overlaps);
        if !is_alike || own.clk + work.clk > TOGETHER {
            return false;
        }
        own.clk += work.clk;
        self.bytes.extend_from_slice(&next.bytes);
        true
    }
}
