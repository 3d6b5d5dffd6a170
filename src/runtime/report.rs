//! The compiler's report about its result: resources, occupancy, LDS conflicts, the main loop, the schedule,
//! and times.

use std::fmt;
use std::time::Duration;

use crate::codegen::isa::{Effect, Meaning, OpInfo, Unit};
use crate::codegen::machine::allocate::Spills;
use crate::codegen::machine::{MachineInst, RegisterFile};
use crate::codegen::target::OccupancyLimit;
use crate::ir::diagnostic::Location;
use crate::ir::expr::{LastingName, lasting_name};
pub use crate::passes::analysis::reduction_trees::ReductionTree;
pub use crate::passes::layout::conversion_ways::ConversionWay;
pub use crate::passes::schedule::apply::choice::{
    CandidateOutcome, EstimatedTrip, ScheduleCandidate, ScheduleChoice, TripBound, TripNeeds,
};

/// Report of one compilation.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Report {
    /// Architectural VGPRs.
    pub vgprs: u32,
    /// Accumulation VGPRs.
    pub agprs: u32,
    /// SGPRs, without those that the hardware adds.
    pub sgprs: u32,
    /// LDS bytes per workgroup.
    pub lds_bytes: u32,
    /// Scratch bytes per work-item.
    pub scratch_bytes: u32,
    /// Dwords of kernel arguments that firmware loads into SGPRs.
    pub kernarg_preload_dwords: u32,
    /// The values that did not stay in the registers of their kind; none if all did.
    pub spills: Option<SpillReport>,
    /// Bytes of machine code.
    pub code_bytes: u32,
    /// Machine instructions.
    pub instructions: u32,
    /// Barriers among them: places in the code, of which those in loops are met in every trip.
    pub barriers: u32,
    /// Waves that a SIMD holds at once.
    pub waves_per_simd: u32,
    /// What limits that number.
    pub limited_by: OccupancyLimit,
    /// LDS accesses: what is accessed, and its bank conflict degree (1: none).
    pub lds_accesses: Vec<LdsAccessReport>,
    /// Accesses of global memory that are not as wide as they could be.
    pub split_accesses: Vec<SplitAccessReport>,
    /// Accesses of global memory that leave elements out.
    pub masked_accesses: Vec<MaskedAccessReport>,
    /// Reads of shared memories that do not go through LDS.
    pub unshared_reads: Vec<UnsharedReadReport>,
    /// Values that operations need spread over the lanes in another way than they are, in program order.
    pub conversions: Vec<ConversionReport>,
    /// In which order the kernel adds up: for each reduction, matrix product and loop that accumulates a
    /// hash, in program order. Where the hashes of two compilations of one kernel are equal, the same data
    /// give the same bits, except for the payloads of NaNs and the results of atomic updates.
    pub reductions: Vec<ReductionTree>,
    /// Stores to global memory.
    pub stores: StoreCounts,
    /// Instruction mix of the main loop, if there is one: of the loops that do not take the tiles in which
    /// masks hide something, the one with most instructions.
    pub main_loop: Option<InstructionMix>,
    /// Instructions of the kernel that are left out most of the time, and are not in that mix: products with
    /// factors that are one ([`UnitFactors`](crate::prelude::UnitFactors)), and masks in tiles of which they
    /// hide nothing ([`MaskedTiles`](crate::prelude::MaskedTiles)).
    pub seldom_instructions: u32,
    /// Branches around masks, in all copies of loops of several products: they are taken in tiles of which
    /// masks hide nothing.
    pub branches_of_masks: u32,
    /// Loops that there are instead of those that masks divide
    /// ([`MaskedTiles`](crate::prelude::MaskedTiles)).
    pub loops_of_masks: u32,
    /// Schedule asked for.
    #[serde(with = "lasting_name")]
    pub schedule_requested: LastingName,
    /// Schedule applied.
    #[serde(with = "lasting_name")]
    pub schedule_applied: LastingName,
    /// Why it is another one; empty if it is not.
    pub schedule_why: String,
    /// For each loop whose schedule the compiler chose, what a trip was estimated to take under every
    /// strategy, or why that does not suit the loop.
    pub schedule_choices: Vec<ScheduleChoice>,
    /// Tiles that are loaded straight into LDS.
    pub direct_loads: u32,
    /// Why other tiles are not, if that was asked for; empty if all are.
    pub direct_loads_why: String,
    /// Number of expanded nodes.
    pub expanded_nodes: u32,
    /// Time of each phase, in order; none of an executable that was read from a file.
    #[serde(skip)]
    pub phases: Vec<(&'static str, Duration)>,
}

impl Report {
    /// True if it may name lines or tags of the kernel.
    pub(super) fn names_sources(&self) -> bool {
        let has_reasons = !self.schedule_why.is_empty() || !self.direct_loads_why.is_empty();
        let has_reasons = has_reasons || !self.schedule_choices.is_empty();
        let names_accesses = !self.lds_accesses.is_empty() || !self.split_accesses.is_empty();
        let names_accesses = names_accesses || !self.unshared_reads.is_empty();
        names_accesses || !self.conversions.is_empty() || self.spills.is_some() || has_reasons
    }
}

/// Registers that were too few, and where their values went.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct SpillReport {
    /// How many 32-bit registers went where, and the instructions that this costs.
    pub counts: Spills,
    /// The file that was too small.
    pub file: RegisterFile,
    /// The most registers of that file alive at once.
    pub peak: u32,
    /// Where the author wrote the operation at which they are alive.
    pub location: Option<Location>,
}

impl fmt::Display for SpillReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spills { to_scratch, to_lanes, to_agprs, rematerialised, inserted, .. } = self.counts;
        let moved = [
            (to_scratch, "vector registers spilled to scratch"),
            (to_lanes, "SGPRs spilled to VGPRs"),
            (to_agprs, "VGPRs moved to AGPRs"),
            (rematerialised, "constants made again"),
        ];
        for (count, what) in moved.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{count} {what}, ")?;
        }
        write!(f, "{inserted} instructions for it; most {} alive: {}", self.file, self.peak)?;
        match &self.location {
            Some(location) => write!(f, " at {location}"),
            None => Ok(()),
        }
    }
}

/// One LDS access of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct LdsAccessReport {
    /// `read`, [`LdsAccessReport::TRANSPOSING_READ`], `update` or `write`.
    #[serde(with = "lasting_name")]
    pub kind: LastingName,
    /// Tag of the access, or its author location.
    pub what: String,
    /// Where the author wrote it.
    pub location: Option<Location>,
    /// Distinct dwords that one bank must serve in the worst group of lanes.
    pub conflict_degree: u32,
}

impl LdsAccessReport {
    /// The kind of a read that turns its tile on the way.
    pub const TRANSPOSING_READ: &'static str = "transposing read";
}

/// An access whose instructions move fewer elements than a lane has side by side.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct SplitAccessReport {
    /// `read`, `write` or `update`.
    #[serde(with = "lasting_name")]
    pub kind: LastingName,
    /// Tag of the access, or its author location.
    pub what: String,
    /// Where the author wrote it.
    pub location: Option<Location>,
    /// Elements that one instruction moves for each lane.
    pub elements: u32,
    /// Elements that it could move, if they were neighbours.
    pub possible: u32,
    /// Why it moves no more.
    #[serde(with = "lasting_name")]
    pub why: LastingName,
}

/// An access of global memory that leaves elements out: those outside of the memory.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct MaskedAccessReport {
    /// `read`, `write` or `update`.
    #[serde(with = "lasting_name")]
    pub kind: LastingName,
    /// The memory.
    pub memory: String,
    /// The dimensions along which there may be such elements, each with the reason: `M (1000 in tiles of
    /// 128)`.
    pub dims: Vec<String>,
    /// Why these are left out; empty if only coordinates may be outside.
    #[serde(with = "lasting_name")]
    pub why: LastingName,
}

/// A read of a shared memory that does not go through LDS: every lane loads its own elements from global
/// memory.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct UnsharedReadReport {
    /// Tag of the read, or its author location.
    pub what: String,
    /// The memory.
    pub memory: String,
    /// Where the author wrote it.
    pub location: Option<Location>,
    /// Why it does not.
    #[serde(with = "lasting_name")]
    pub why: LastingName,
}

/// A value that was brought to another layout.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ConversionReport {
    /// Tag of the value, or its author location.
    pub what: String,
    /// Where the author wrote it.
    pub location: Option<Location>,
    /// The operation that needs the other layout: `mma at k.gsw:9:7`. A loop hands the value on.
    pub user: String,
    /// How it was done: the way that the model says costs a wave least.
    pub way: ConversionWay,
    /// The layout that the value is made in: for registers, replicas (pieces of one instruction each), lanes
    /// and waves, how many elements along which dimension they count, and how far apart if not side by side.
    pub from: String,
    /// The layout that it is needed in.
    pub to: String,
    /// Vector instructions of a wave, as the model counts them.
    pub vector_instructions: u32,
    /// Instructions of a wave that LDS executes: exchanges between lanes, or reads and writes.
    pub lds_instructions: u32,
}

/// The widths of stores, in bytes of a lane.
const STORE_BYTES: [u32; 5] = [1, 2, 4, 8, 16];

/// How many instructions store to global memory, by the bytes that one stores for each lane.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct StoreCounts([u32; STORE_BYTES.len()]);

impl StoreCounts {
    /// Counts those among instructions.
    pub fn of<'a>(insts: impl Iterator<Item = &'a MachineInst>) -> StoreCounts {
        let mut counts = StoreCounts::default();
        for inst in insts {
            let info = inst.inst.op.info();
            if let (Unit::Vmem | Unit::Flat, Meaning::Store(memory)) = (info.unit, info.meaning) {
                let width = STORE_BYTES.iter().position(|&bytes| bytes >= memory.bytes());
                counts.0[width.unwrap_or(STORE_BYTES.len() - 1)] += 1;
            }
        }
        counts
    }

    /// Widths in bytes, and how many instructions have them: those that there are, the widest first.
    pub fn entries(&self) -> impl Iterator<Item = (u32, u32)> {
        STORE_BYTES.into_iter().zip(self.0).rev().filter(|(_, count)| *count > 0)
    }

    /// All of them.
    pub fn total(&self) -> u32 {
        self.0.iter().sum()
    }
}

/// Instructions by kind.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub struct InstructionMix {
    pub mfma: u32,
    pub valu: u32,
    pub salu: u32,
    pub lds_read: u32,
    pub lds_write: u32,
    pub global_load: u32,
    pub global_store: u32,
    pub wait: u32,
    pub nop: u32,
    pub barrier: u32,
    pub other: u32,
}

impl InstructionMix {
    /// Counts instructions.
    pub fn of<'a>(insts: impl IntoIterator<Item = &'a MachineInst>) -> InstructionMix {
        let mut mix = InstructionMix::default();
        for inst in insts {
            *mix.slot(inst.inst.op.info()) += 1;
        }
        mix
    }

    fn slot(&mut self, info: &OpInfo) -> &mut u32 {
        match info.unit {
            Unit::Mfma(_) => &mut self.mfma,
            Unit::Valu | Unit::Trans => &mut self.valu,
            Unit::Salu | Unit::Smem | Unit::Branch => &mut self.salu,
            Unit::Lds => match info.meaning.effect() {
                Effect::Store | Effect::StoreFromLds => &mut self.lds_write,
                _ => &mut self.lds_read,
            },
            Unit::Vmem | Unit::Flat => match info.meaning.effect() {
                Effect::Load | Effect::LoadToLds | Effect::Atomic => &mut self.global_load,
                Effect::Store | Effect::StoreFromLds => &mut self.global_store,
                Effect::None => &mut self.other,
            },
            Unit::Wait => &mut self.wait,
            Unit::Nop => &mut self.nop,
            Unit::Barrier => &mut self.barrier,
            Unit::Other => match info.meaning {
                Meaning::VectorNop => &mut self.nop,
                _ => &mut self.other,
            },
        }
    }

    /// Names and counts, in a fixed order.
    pub fn entries(&self) -> [(&'static str, u32); 11] {
        [
            ("mfma", self.mfma),
            ("valu", self.valu),
            ("salu", self.salu),
            ("lds_read", self.lds_read),
            ("lds_write", self.lds_write),
            ("global_load", self.global_load),
            ("global_store", self.global_store),
            ("wait", self.wait),
            ("nop", self.nop),
            ("barrier", self.barrier),
            ("other", self.other),
        ]
    }

    /// All instructions.
    pub fn total(&self) -> u32 {
        self.entries().iter().map(|e| e.1).sum()
    }
}
