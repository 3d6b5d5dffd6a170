//! What can go wrong in a simulation: errors of the host interface, and faults of a running wave.

use std::fmt;

use super::progress::Overrun;

/// What to do about a wave that has used up its instructions.
pub(super) const RAISE_BUDGET: &str = "look for a loop that comes to no end, or raise the budget of instructions (`--budget` in the program); a limit of time (`--timeout`) stops such waves, too";

/// What to do about a launch that has used up its time, about which nothing else is known: it may be right.
pub(super) const RAISE_TIMEOUT: &str = "launch with smaller sizes, or raise the limit of time (`--timeout` in the program): long work and work that never ends look alike here";

/// What to do about waves that have waited for too long while nothing changed.
const END_STANDSTILL: &str =
    "look for waves that wait for each other, or raise the limit of time (`--timeout` in the program)";

/// An error of the simulator.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
pub enum SimError {
    /// The host has no memory for an allocation of the simulated device.
    #[error("cannot allocate {bytes} bytes of simulated device memory")]
    OutOfMemory {
        /// Size that was asked for.
        bytes: u64,
    },
    /// A host copy does not lie inside one allocation.
    #[error("{bytes} bytes at {address:#x} are not inside one allocation")]
    BadAddress {
        /// First byte.
        address: u64,
        /// Length of the copy.
        bytes: u64,
    },
    /// `free` of something that is not the start of an allocation.
    #[error("{address:#x} is not the start of an allocation")]
    NotAllocated {
        /// What was given.
        address: u64,
    },
    /// Memory of the host that cannot be lent to the device.
    #[error("memory at {address:#x} cannot be lent to the device: {reason}")]
    Lent {
        /// Where it begins.
        address: u64,
        /// What is wrong.
        reason: String,
    },
    /// The code object cannot be read.
    #[error("code object: {0}")]
    Object(String),
    /// The code object, or every one of a bundle, is for another target.
    #[error("code object: {0}")]
    OtherTarget(String),
    /// The code object holds no kernel of that name.
    #[error("the code object has no kernel `{0}`")]
    NoKernel(String),
    /// A launch configuration that the hardware or the kernel descriptor does not allow.
    #[error("launch of `{kernel}`: {reason}")]
    Launch {
        /// Kernel name.
        kernel: String,
        /// What is wrong.
        reason: String,
    },
    /// A wave did something that it must not do.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
}

impl SimError {
    /// What to do about it, where more can be said than the error itself says.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            SimError::Fault(fault) => match fault.kind {
                FaultKind::Budget(_) => Some(RAISE_BUDGET),
                FaultKind::NoProgress => {
                    Some("let what ends the loop depend on something that changes in it")
                }
                FaultKind::TimedOut(_) => Some(RAISE_TIMEOUT),
                FaultKind::Standstill(_) => Some(END_STANDSTILL),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A wave stopped at an instruction that could not be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Kernel name.
    pub kernel: String,
    /// Workgroup ids.
    pub workgroup: [u32; 3],
    /// Wave inside the workgroup.
    pub wave: u32,
    /// Lane, where one lane is to blame.
    pub lane: Option<u32>,
    /// Address of the instruction in the code object, as disassemblers print it.
    pub address: u64,
    /// The instruction as assembler text (empty if it does not decode).
    pub instruction: String,
    /// What happened.
    pub kind: FaultKind,
}

/// Why a wave stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// An access that touches no allocation.
    Memory {
        /// Load, store or atomic.
        access: MemoryAccess,
        /// First byte.
        address: u64,
        /// Number of bytes of the access of this lane.
        bytes: u32,
    },
    /// An access to an allocation that was given back.
    Freed {
        /// Load, store or atomic.
        access: MemoryAccess,
        /// First byte.
        address: u64,
        /// Number of bytes of the access of this lane.
        bytes: u32,
        /// Where the allocation began.
        base: u64,
        /// The size that it had.
        size: u64,
    },
    /// An LDS access past the workgroup's LDS.
    Lds {
        /// Load, store or atomic.
        access: MemoryAccess,
        /// First byte.
        address: u32,
        /// Size of the workgroup's LDS.
        size: u32,
    },
    /// An atomic access that is not naturally aligned.
    Misaligned {
        /// First byte.
        address: u64,
    },
    /// The simulator does not execute this instruction, or this form of it.
    Unsupported(&'static str),
    /// The bytes at the program counter are no instruction.
    Undecodable,
    /// The program counter left the code, or points into the middle of an instruction.
    ProgramCounter {
        /// Where it points, relative to the start of the code.
        target: i64,
    },
    /// The wave executed more instructions than the launch allows.
    Budget(u64),
    /// The wave goes round a loop that changes no register and touches no memory.
    NoProgress,
    /// The launch took longer on the host than it may.
    TimedOut(Overrun),
    /// All waves that are left wait for memory to change, and nothing has changed it for that long.
    Standstill(std::time::Duration),
    /// `s_trap`.
    Trap(u32),
}

impl FaultKind {
    /// The same, of memory that was freed if its address lies there; `freed` knows where that began and how
    /// large it was.
    pub(super) fn or_freed(self, freed: impl Fn(u64) -> Option<(u64, u64)>) -> FaultKind {
        let FaultKind::Memory { access, address, bytes } = self else { return self };
        match freed(address) {
            Some((base, size)) => FaultKind::Freed { access, address, bytes, base, size },
            None => self,
        }
    }
}

/// Direction of a memory access.
#[derive(Debug, Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum MemoryAccess {
    /// Memory to registers.
    Load,
    /// Registers to memory.
    Store,
    /// Read, modify, write.
    Atomic,
}

impl fmt::Display for MemoryAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryAccess::Load => "load",
            MemoryAccess::Store => "store",
            MemoryAccess::Atomic => "atomic",
        })
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Memory { access, address, bytes } => {
                write!(f, "{access} of {bytes} bytes at {address:#x}, outside every allocation")
            }
            FaultKind::Freed { access, address, bytes, base, size } => write!(
                f,
                "{access} of {bytes} bytes at {address:#x}, in memory that was freed (byte {} of the {size} \
                 bytes at {base:#x})",
                address - base
            ),
            FaultKind::Lds { access, address, size } => {
                write!(f, "LDS {access} at byte {address}, the workgroup has {size} bytes")
            }
            FaultKind::Misaligned { address } => write!(f, "misaligned atomic access at {address:#x}"),
            FaultKind::Unsupported(what) => write!(f, "not supported: {what}"),
            FaultKind::Undecodable => f.write_str("not an instruction"),
            FaultKind::ProgramCounter { target } => {
                write!(f, "no instruction starts at offset {target:#x} of the code")
            }
            FaultKind::Budget(n) => write!(f, "wave did not end within {n} instructions"),
            FaultKind::NoProgress => {
                f.write_str("the wave goes round this loop for ever: it changes nothing")
            }
            FaultKind::TimedOut(overrun) => overrun.fmt(f),
            FaultKind::Standstill(time) => write!(
                f,
                "the wave, like all that are left, waits for memory to change, and nothing has changed it for {time:?}"
            ),
            FaultKind::Trap(n) => write!(f, "s_trap {n}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(f, "kernel `{}`, workgroup ({x}, {y}, {z}), wave {}", self.kernel, self.wave)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        write!(f, ", at {:#x}", self.address)?;
        if !self.instruction.is_empty() {
            write!(f, " `{}`", self.instruction)?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl std::error::Error for Fault {}

/// The part of a [`Fault`] that the executing code knows; the dispatcher adds the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stopped {
    /// Lane to blame.
    pub lane: Option<u32>,
    /// What happened.
    pub kind: FaultKind,
}

/// A wave of a workgroup that stopped.
#[derive(Debug)]
pub(super) struct StoppedWave {
    /// Linear number of its workgroup.
    pub workgroup: u64,
    /// Its number in that.
    pub wave: usize,
    /// The step of the program at which it stopped.
    pub step: usize,
    /// The reason.
    pub stopped: Stopped,
}

impl Stopped {
    /// A fault of the whole wave.
    #[cold]
    pub(super) fn wave(kind: FaultKind) -> Stopped {
        Stopped { lane: None, kind }
    }

    /// A fault of one lane.
    #[cold]
    pub(super) fn lane(lane: usize, kind: FaultKind) -> Stopped {
        Stopped { lane: Some(lane as u32), kind }
    }
}
