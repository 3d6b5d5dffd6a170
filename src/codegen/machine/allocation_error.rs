//! Why a body cannot be allocated: where most registers are alive, and what was spilled before.

use super::body::{InstId, RegisterFile};
use crate::codegen::isa::{Operand, VReg};

/// The place where most registers of a file are alive.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Peak {
    /// Number of 32-bit registers alive at once.
    pub registers: u32,
    /// The instruction (before allocation).
    pub inst: InstId,
    /// Its author location.
    pub source: u32,
}

/// What has been spilled so far.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Spills {
    /// 32-bit vector registers that live in scratch.
    pub to_scratch: u32,
    /// Bytes of scratch per work-item.
    pub scratch_bytes: u32,
    /// 32-bit SGPRs that live in lanes of VGPRs.
    pub to_lanes: u32,
    /// 32-bit registers that were put into AGPRs because the VGPRs are too few. They are not spilled.
    pub to_agprs: u32,
    /// 32-bit registers that are made again where they are read. They are not spilled.
    pub rematerialised: u32,
    /// Instructions inserted for all of these.
    pub inserted: u32,
}

/// Why a body cannot be allocated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AllocationError {
    /// More registers are alive at once than the file has, or the free ones are scattered, and no other
    /// register can leave.
    #[error("out of {file}: {} are needed at once, {available} are available", .peak.registers)]
    Exhausted {
        /// Register file.
        file: RegisterFile,
        /// The limit.
        available: u32,
        /// Where most registers are alive that cannot leave, and how many. If the file has enough for those,
        /// this is the register that found no place among the scattered free ones: how many it would need,
        /// and where it starts.
        peak: Peak,
        /// Where most registers of the file are alive in the body before allocation, and how many.
        all: Peak,
        /// What has left its file before allocation failed.
        spills: Spills,
    },
    /// A register with a given place cannot have it.
    #[error("{register} cannot be placed at {place:?}")]
    FixedPlace {
        /// Virtual register.
        register: VReg,
        /// The place.
        place: Operand,
    },
    /// An operand names no register or goes beyond its end.
    #[error("operand {operand} of instruction {inst} does not lie in its virtual register")]
    BadOperand {
        /// Instruction.
        inst: InstId,
        /// Operand.
        operand: u32,
    },
    /// An instruction looks at lanes of an accumulator that are off, on a chip whose AGPRs have a file of
    /// their own: the moves between the files do not reach these.
    #[error("instruction {inst} looks at lanes of an accumulator that are off")]
    LanesOfAccumulator {
        /// Instruction.
        inst: InstId,
    },
}
