//! The instructions of a trip: what each is for the unit that executes it, and which results it waits for.

use cranelift_entity::entity_impl;
use smallvec::SmallVec;

use super::steps::TripControl;
use crate::codegen::target::{DeviceModel, DeviceParameter, LdsKind};

/// Bytes of an instruction that waits.
const WAIT_BYTES: u32 = 4;

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
    pub(super) fn late(&self) -> u64 {
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
    pub(super) bytes: SmallVec<[u8; 8]>,
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
    pub(super) fn place_refills(&mut self, device: &DeviceModel) {
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
    pub(super) fn reorder(&mut self, order: &[u32]) {
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
    pub(super) fn merged(mut self) -> TripProgram {
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
    pub(super) fn move_values(&mut self, moves: usize) {
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
    pub(super) fn place_waits(&mut self) {
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
