//! What the steps of a trip take: each becomes work for a unit, with the results that it waits for.

use bevy_ecs::prelude::Entity;
use smallvec::{SmallVec, smallvec};

use super::node_code::{NodeCode, NodeInstruction};
use super::steps::{TripControl, TripStep};
use super::trip::PlannedTrip;
use crate::codegen::target::{
    CostKind, DeviceModel, DeviceParameter, LdsKind, SHARED_LINE, TURN, VectorKind,
};
use crate::ir::nodes::{self, Bug};
use crate::passes::schedule::graph::dependence_graph::{Dependence, Edge, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;
use cranelift_entity::PrimaryMap;

/// Bytes of an instruction that waits.
const WAIT_BYTES: u32 = 4;

/// Trips over which values are followed.
const MOST_TRIPS: u32 = 8;

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

/// A result that an instruction waits for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TripOperand {
    /// The number of the instruction that makes it.
    pub from: u32,
    /// Trips between the two.
    pub trips: u32,
    /// Clk after that until it can be read: matrix instructions hand theirs on to others late.
    pub late: u64,
}

impl TripOperand {
    fn new(from: u32, trips: u32) -> TripOperand {
        TripOperand { from, trips, late: 0 }
    }
}

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
    /// For each load, the rows of its tile.
    rows: PrimaryMap<NodeId, TileRows>,
    /// The instruction that makes the value of each node, and the one that waits for its operands.
    maker: PrimaryMap<NodeId, Option<u32>>,
    taker: PrimaryMap<NodeId, Option<u32>>,
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
        let program = TripProgram::default();
        let (rows, maker) = (found.graph.table(TileRows::NONE), found.graph.table(None));
        let taker = found.graph.table(None);
        let mut writer = ProgramWriter { view, found, trip, code, device, program, rows, maker, taker };
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
        writer.instructions(code.end_of(node), TileRows::NONE);
        writer.operands();
        if trip.moved > 0 {
            writer.program.move_values(moves);
        }
        writer.program.delay_results();
        writer.program.place_waits();
        writer.program.place_refills(device);
        Ok(writer.program)
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

    /// Delays results of matrix instructions for others: only the next matrix instruction with the same
    /// accumulator follows at once.
    fn delay_results(&mut self) {
        let late = |work: &UnitWork| match work {
            UnitWork::Matrix(MatrixWork { results, .. }) => results[1] - results[0],
            UnitWork::Vector(_)
            | UnitWork::Turns(_)
            | UnitWork::Lds { .. }
            | UnitWork::Load(_)
            | UnitWork::LoadToLds(_)
            | UnitWork::Store(_)
            | UnitWork::Control(_) => 0,
        };
        let lates: Vec<u64> = self.instructions.iter().map(|instruction| late(&instruction.work)).collect();
        let others = |one: &&mut TripInstruction| !matches!(one.work, UnitWork::Matrix(_));
        for operand in self.instructions.iter_mut().filter(others).flat_map(|one| &mut one.operands) {
            operand.late = lates[operand.from as usize];
        }
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
        let operands = moved.into_iter().map(|from| TripOperand::new(from, 0));
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
        self.program.instructions.push(TripInstruction {
            work,
            operands: SmallVec::new(),
            waits: false,
            refills: 0,
            bytes: smallvec![4],
        });
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
        let first = self.program.instructions.len() as u32;
        match TripControl::of(self.found.nodes[node].op) {
            Some(fence) => self.emit(UnitWork::Control(fence)),
            None => self.instructions(self.code.of(entity), self.rows[node]),
        }
        let end = self.program.instructions.len() as u32;
        if end > first {
            (self.taker[node], self.maker[node]) = (Some(first), Some(end - 1));
        }
    }

    /// Instructions of a node, whose loads are of such rows.
    fn instructions(&mut self, code: &[NodeInstruction], row: TileRows) {
        let first = self.program.instructions.len();
        // The place of each of them, for those that wait for it.
        let mut places: SmallVec<[u32; 32]> = SmallVec::new();
        for (number, instruction) in code.iter().enumerate() {
            let work = self.work(instruction, row);
            let after = instruction.after.and_then(|after| places.get(number - after as usize).copied());
            let before = self.program.instructions.get_mut(first..).and_then(|own| own.last_mut());
            if after.is_some() || !before.is_some_and(|before| before.takes(work, instruction.bytes)) {
                let operands = after.map(|from| TripOperand::new(from, 0)).into_iter().collect();
                let bytes = smallvec![instruction.bytes];
                let one = TripInstruction { work, operands, waits: false, refills: 0, bytes };
                self.program.instructions.push(one);
            }
            places.push(self.program.instructions.len() as u32 - 1);
        }
    }

    /// The work of an instruction for its unit.
    fn work(&self, &NodeInstruction { kind, turns, .. }: &NodeInstruction, row: TileRows) -> UnitWork {
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

    /// What each instruction waits for: results, by way of nodes that take no time.
    fn operands(&mut self) {
        let (graph, assignment) = (&self.found.graph, &self.trip.assignment);
        let mut open: Vec<(NodeId, u32)> = Vec::new();
        for (node, taker) in self.taker.iter() {
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
                        Some(from) => operands.push(TripOperand::new(from, later)),
                        // Values that nothing makes may be handed on in circles.
                        None if open.contains(&(edge.from, distance)) || distance > MOST_TRIPS => {}
                        None => open.push((edge.from, distance)),
                    }
                }
            }
            let longest = operands.iter().map(|operand| operand.trips).max().unwrap_or(0);
            self.program.longest = self.program.longest.max(longest);
            self.program.instructions[taker as usize].operands.extend(operands);
        }
    }
}

impl TripInstruction {
    /// Takes the next one as well, if both are vector instructions of a kind and not too many come together.
    fn takes(&mut self, next: UnitWork, bytes: u8) -> bool {
        let (UnitWork::Vector(own), UnitWork::Vector(next)) = (&mut self.work, next) else { return false };
        let is_alike = (own.pairs, own.overlaps) == (next.pairs, next.overlaps);
        if !is_alike || own.clk + next.clk > TOGETHER {
            return false;
        }
        own.clk += next.clk;
        self.bytes.push(bytes);
        true
    }
}
