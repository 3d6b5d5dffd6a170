//! What check mode reports: kinds of findings with their data, and how they read.

use std::fmt;
use std::ops::Range;

use super::super::error::MemoryAccess;
use super::super::progress::Overrun;
use crate::codegen::object::SourceLine;
use crate::codegen::rules::Erratum;

/// Who the advice of a finding is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum AdviceReader {
    /// Authors of instructions: in assembler text, or in a language that leaves memory and its order to them.
    #[default]
    Instructions,
    /// Authors of kernels whose compiler places waits, barriers and registers.
    Kernels,
}

/// One thing that is wrong, however often it happened.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Finding {
    /// What is wrong.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub kind: FindingKind,
    /// Kernel name.
    pub kernel: String,
    /// The instruction where it shows.
    pub at: Site,
    /// Another instruction that is involved: the load, the earlier access, the use.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub other: Option<Site>,
    /// Workgroup ids of the first case.
    pub workgroup: [u32; 3],
    /// Wave inside that workgroup.
    pub wave: u32,
    /// Lanes of that wave that are affected.
    pub lanes: Lanes,
    /// How often it happened, over all waves.
    pub count: u64,
    /// For an undefined value with which nothing has happened but that it was stored to device memory: the
    /// addresses where it still is when the launch has ended. It does no harm unless somebody reads it there.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub stored: Option<Vec<Range<u64>>>,
    /// Who the advice is for.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub reader: AdviceReader,
}

impl Finding {
    /// What it is if nobody reads the undefined value that was stored: a note. Other findings stay as they
    /// are.
    #[must_use]
    pub fn unread(&self) -> Finding {
        let undefined = match &self.kind {
            _ if self.stored.is_none() => return self.clone(),
            FindingKind::UninitialisedRegister { register, .. } => register.clone(),
            FindingKind::UninitialisedMemory { memory, address, .. } => format!("{memory} at {address:#x}"),
            _ => return self.clone(),
        };
        Finding { kind: FindingKind::UnreadStore { undefined }, ..self.clone() }
    }
}

/// An instruction of the code object.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Site {
    /// Assembler text; the words where the bytes are no instruction.
    pub instruction: String,
    /// Address in the code object, as disassemblers print it.
    pub address: u64,
    /// The author's line, if the object says.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub source: Option<FindingSource>,
}

/// A place in the author's source.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FindingSource {
    /// File, as the object names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if it is not known.
    pub column: u32,
}

impl From<SourceLine<'_>> for FindingSource {
    fn from(line: SourceLine<'_>) -> FindingSource {
        FindingSource { file: line.file.into_owned(), line: line.line, column: line.column }
    }
}

/// A set of lanes; in JSON a hexadecimal number in a string, as numbers there have 53 bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Lanes(pub u64);

#[cfg(feature = "serde")]
impl serde::Serialize for Lanes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{:#x}", self.0))
    }
}

/// A memory.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Memory {
    /// LDS of the workgroup.
    Lds,
    /// Device memory.
    Device,
    /// Private memory of a lane.
    Scratch,
}

/// A wait counter.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[allow(missing_docs)] // Their names in assembler text.
pub enum WaitCounter {
    Vmcnt,
    Lgkmcnt,
    Expcnt,
}

/// What an instruction does to a register.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[allow(missing_docs)]
pub enum Touch {
    Read,
    Overwrite,
}

/// Where an undefined value makes a difference.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Use {
    /// In an address or a descriptor.
    Address,
    /// In data that go to device memory.
    Store,
    /// In the condition or the target of a branch.
    Branch,
    /// In EXEC.
    Exec,
    /// In the number of a lane or of a register.
    Lane,
    /// In a mode of the wave.
    Mode,
}

/// Why two accesses are not ordered.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Unordered {
    /// No barrier lies between them.
    NoBarrier,
    /// A barrier does, but the first access was not waited for before it.
    NotWaited,
    /// They are in different workgroups, and there is no release and acquire between the two.
    OtherWorkgroup,
    /// The first one was released, but its stores were not written back from the L2 of their die.
    NotWrittenBack,
    /// The first one was released, but this wave has not invalidated the caches that may hold older data.
    NotInvalidated,
    /// Both are atomic or have scope bits, but not for the whole device, and the waves are in different
    /// workgroups.
    NarrowScope,
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case"))]
pub enum FindingKind {
    /// A register is used that a load in flight (the other instruction) will still write.
    MissingWait {
        /// The register.
        register: String,
        /// Read or overwritten.
        touch: Touch,
        /// The counter to wait for.
        counter: WaitCounter,
        /// The largest count that would do.
        at_most: u8,
    },
    /// A register that was never written makes a difference (in the other instruction, if that is not the one
    /// that reads it).
    UninitialisedRegister {
        /// The register.
        register: String,
        /// Where it makes a difference.
        used_in: Use,
    },
    /// Memory that was never written is loaded and makes a difference (in the other instruction).
    UninitialisedMemory {
        /// Which memory.
        memory: Memory,
        /// First such byte.
        address: u64,
        /// Where it makes a difference.
        used_in: Use,
    },
    /// Two waves access the same bytes, and the accesses are not ordered.
    Race {
        /// Which memory.
        memory: Memory,
        /// What the other instruction does, which was executed first.
        first: MemoryAccess,
        /// What this instruction does.
        then: MemoryAccess,
        /// First byte that both touch.
        address: u64,
        /// What is missing to order them.
        reason: Unordered,
        /// The wave of the other instruction.
        other_wave: u32,
        /// Its workgroup.
        other_workgroup: [u32; 3],
    },
    /// Two waves store the same value to the same bytes, and the stores are not ordered: a note, as it makes
    /// no difference.
    RepeatedStore {
        /// Which memory.
        memory: Memory,
        /// First byte that both store.
        address: u64,
        /// The wave of the other instruction.
        other_wave: u32,
        /// Its workgroup.
        other_workgroup: [u32; 3],
    },
    /// Undefined data that were stored to device memory, and that nobody has read: a note.
    UnreadStore {
        /// What was never written.
        undefined: String,
    },
    /// An access outside what is allocated.
    OutOfBounds {
        /// Which memory.
        memory: Memory,
        /// Load, store or atomic.
        access: MemoryAccess,
        /// First byte of the first lane.
        address: u64,
        /// Bytes per lane.
        bytes: u32,
        /// Start of the nearest allocation below.
        base: u64,
        /// Its size.
        size: u64,
    },
    /// An access to an allocation that was given back.
    Freed {
        /// Load, store or atomic.
        access: MemoryAccess,
        /// First byte of the first lane.
        address: u64,
        /// Bytes per lane.
        bytes: u32,
        /// Where the allocation began.
        base: u64,
        /// The size that it had.
        size: u64,
    },
    /// An access through a buffer descriptor that ends up in another allocation than the one that the
    /// descriptor's base lies in.
    LeavesBuffer {
        /// Load, store or atomic.
        access: MemoryAccess,
        /// First byte of the first lane.
        address: u64,
        /// Bytes per lane.
        bytes: u32,
        /// Base address in the descriptor.
        descriptor: u64,
        /// Start of the allocation that holds it.
        base: u64,
        /// Its size.
        size: u64,
    },
    /// A buffer descriptor, used for this access, that extends beyond the allocation that its base lies in: a
    /// note, as the access itself stays inside.
    WideDescriptor {
        /// Base address in the descriptor.
        descriptor: u64,
        /// Bytes that it spans.
        records: u32,
        /// Start of the allocation that holds the base.
        base: u64,
        /// Its size.
        size: u64,
    },
    /// An access to an address that is not a multiple of the required alignment.
    Misaligned {
        /// Which memory.
        memory: Memory,
        /// Load, store or atomic.
        access: MemoryAccess,
        /// First byte of the first lane.
        address: u64,
        /// The required alignment.
        alignment: u32,
    },
    /// Too few wait states after the other instruction.
    Hazard {
        /// Wait states that are required between the two.
        needed: u32,
        /// Wait states that there are.
        present: u32,
    },
    /// Fewer wait states after the other instruction than one of LLVM and AMD's manual asks for, but as many
    /// as the other does.
    ToleratedHazard {
        /// Wait states that the stricter of them asks for.
        kept: u32,
        /// Wait states that both ask for.
        asked: u32,
        /// Wait states that there are.
        present: u32,
    },
    /// VCCZ does not follow writes of half of VCC.
    StaleVccz,
    /// A load into half of a register, whose other half the other instruction has loaded: it is zero now.
    ClearedHalf,
    /// The chip executes this form of the instruction wrongly.
    Erratum(Erratum),
    /// A run of memory instructions that a replay after a page fault gets wrong (XNACK).
    Replay,
    /// A barrier (this instruction) that some lanes bypassed and then went on.
    DivergentBarrier {
        /// Those lanes.
        missing: Lanes,
    },
    /// A barrier at which no lane of the wave was active, before lanes of it went on.
    EmptyBarrier,
    /// The code uses data or mode registers that the kernel descriptor does not allocate.
    RegisterBeyondAllocation {
        /// The register.
        register: String,
        /// How many of its kind there are.
        allocated: u32,
    },
    /// Control runs over the end of the kernel's function: `s_endpgm` is missing.
    PastEnd,
    /// The bytes are no instruction, or none starts where control went.
    IllegalInstruction,
    /// Something is in flight at a barrier of a chip whose barriers must not be interrupted.
    WaitBeforeBarrier,
    /// The wave executed more instructions than the launch allows.
    Endless {
        /// The limit.
        budget: u64,
    },
    /// The wave goes round a loop that changes no register and touches no memory: it never ends.
    NoProgress,
    /// The wave waits at a barrier of the grid that the others never come to, or that more waves open than
    /// there are.
    UnmetBarrier,
    /// The launch took longer on the host than it may, and was stopped.
    TimedOut(Overrun),
    /// `s_trap`.
    Trap {
        /// Its number.
        number: u32,
    },
    /// The simulator does not execute this instruction, or this form of it: the wave was not followed any
    /// further.
    Unsupported {
        /// Why.
        what: &'static str,
    },
}

impl PartialOrd for Lanes {
    fn partial_cmp(&self, other: &Lanes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Lanes {
    fn cmp(&self, other: &Lanes) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// Ranges of lanes: `0-31,40`.
impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0;
        let mut comma = "";
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            write!(f, "{comma}{first}")?;
            if count > 1 {
                write!(f, "-{}", first + count - 1)?;
            }
            comma = ",";
            let end = first + count;
            left = if end == 64 { 0 } else { left >> end << end };
        }
        Ok(())
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Memory::Lds => "LDS",
            Memory::Device => "device memory",
            Memory::Scratch => "scratch",
        })
    }
}

impl fmt::Display for WaitCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitCounter::Vmcnt => "vmcnt",
            WaitCounter::Lgkmcnt => "lgkmcnt",
            WaitCounter::Expcnt => "expcnt",
        })
    }
}

impl Use {
    fn phrase(self) -> &'static str {
        match self {
            Use::Address => "an address",
            Use::Store => "stored data",
            Use::Branch => "a branch",
            Use::Exec => "EXEC",
            Use::Lane => "the number of a lane or of a register",
            Use::Mode => "a mode of the wave",
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FindingKind::*;
        match self {
            MissingWait { register, touch: Touch::Read, .. } => {
                write!(f, "{register} is read while a load into it is in flight")
            }
            MissingWait { register, touch: Touch::Overwrite, .. } => {
                write!(f, "{register} is overwritten while a load into it is in flight")
            }
            UninitialisedRegister { register, used_in } => {
                write!(
                    f,
                    "{register} is read without having been written, and ends up in {}",
                    used_in.phrase()
                )
            }
            UninitialisedMemory { memory, address, used_in } => {
                let what = used_in.phrase();
                write!(
                    f,
                    "{memory} at {address:#x} is loaded without having been written, and ends up in {what}"
                )
            }
            Race { memory, first, then, address, .. } => {
                let article = if *first == MemoryAccess::Atomic { "an" } else { "a" };
                write!(
                    f,
                    "race on {memory} at {address:#x}: this {then} against {article} {first} of another wave"
                )
            }
            UnreadStore { undefined } => write!(
                f,
                "{undefined} is read without having been written, and is stored where nobody reads it"
            ),
            RepeatedStore { memory, address, .. } => {
                write!(f, "{memory} at {address:#x} is stored by two waves, the same value each time")
            }
            OutOfBounds { memory: Memory::Device, access, address, bytes, base, size } => {
                write!(f, "{access} of {bytes} bytes at {address:#x}, outside every allocation")?;
                match address.checked_sub(*base) {
                    Some(offset) => {
                        write!(f, " (the one at {base:#x} has {size} bytes, this is byte {offset})")
                    }
                    // There is none below.
                    None => Ok(()),
                }
            }
            Freed { access, address, bytes, base, size } => write!(
                f,
                "{access} of {bytes} bytes at {address:#x}, in memory that was freed (byte {} of the {size} \
                 bytes at {base:#x})",
                address - base
            ),
            OutOfBounds { memory, access, address, bytes, size, .. } => {
                write!(f, "{access} of {bytes} bytes at byte {address} of {memory}, which has {size} bytes")
            }
            LeavesBuffer { access, address, bytes, descriptor, base, size } => {
                write!(
                    f,
                    "{access} of {bytes} bytes at {address:#x}, in another allocation than the base of its "
                )?;
                write!(f, "descriptor ({descriptor:#x}, in the one at {base:#x} of {size} bytes)")
            }
            WideDescriptor { descriptor, records, base, size } => {
                write!(
                    f,
                    "a descriptor spans {records} bytes from {descriptor:#x} on, and its allocation, {size} bytes "
                )?;
                write!(f, "from {base:#x} on, ends before that")
            }
            Misaligned { memory, access, address, alignment } => {
                write!(f, "{access} of {memory} at {address:#x}, which is not a multiple of {alignment}")
            }
            Hazard { needed, present } => {
                write!(
                    f,
                    "{needed} wait states are needed between these two instructions, there are {present}"
                )
            }
            ToleratedHazard { kept, asked, present } => {
                write!(
                    f,
                    "LLVM and AMD's manual differ about the wait states between these two instructions ({kept} or \
                     {asked}), there are {present}"
                )
            }
            StaleVccz => f.write_str("VCCZ is stale: half of VCC was written before"),
            ClearedHalf => f.write_str(
                "this load clears the other half of its register, which was loaded before: with SRAM ECC, as on this \
                 chip, the whole register is written",
            ),
            Erratum(erratum) => f.write_str(erratum.text()),
            Replay => {
                f.write_str("a replay after a page fault would get this run of memory instructions wrong")
            }
            DivergentBarrier { missing } => {
                write!(f, "barrier without lanes {missing}, which go on after it")
            }
            EmptyBarrier => f.write_str(
                "no lane of the wave is active at this barrier, and the wave takes part all the same: its later barriers \
                 meet other ones of the other waves",
            ),
            RegisterBeyondAllocation { register, allocated } => {
                write!(f, "{register} is not allocated: the kernel descriptor asks for {allocated}")
            }
            PastEnd => f.write_str("control runs over the end of the kernel"),
            IllegalInstruction => f.write_str("no instruction"),
            WaitBeforeBarrier => f.write_str("memory operations are in flight at a barrier"),
            Endless { budget } => write!(f, "the wave did not end within {budget} instructions"),
            UnmetBarrier => f.write_str("the barrier of the grid never opens: not enough waves come to it"),
            NoProgress => f.write_str("the wave goes round this loop for ever: it changes nothing"),
            TimedOut(overrun) => overrun.fmt(f),
            Trap { number } => write!(f, "trap {number}"),
            Unsupported { what } => write!(f, "the simulator does not execute this: {what}"),
        }
    }
}

impl FindingKind {
    /// True if it does no harm: it is reported, and the launch still counts as clean.
    pub(crate) fn is_note(&self) -> bool {
        match self {
            FindingKind::RepeatedStore { .. }
            | FindingKind::WideDescriptor { .. }
            | FindingKind::ToleratedHazard { .. }
            | FindingKind::UnreadStore { .. } => true,
            // Only atomics need their alignment.
            FindingKind::Misaligned { access, .. } => *access != MemoryAccess::Atomic,
            _ => false,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}: `{}`", self.address, self.instruction)?;
        if let Some(source) = &self.source {
            write!(f, "  ({}:{})", source.file, source.line)?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        writeln!(f, "{}: {}", if self.kind.is_note() { "note" } else { "error" }, self.kind)?;
        writeln!(f, "  --> {}", self.at)?;
        if let Some(other) = &self.other {
            writeln!(f, "  with {other}")?;
        }
        write!(f, "   = kernel `{}`, workgroup ({x}, {y}, {z}), wave {}", self.kernel, self.wave)?;
        if self.lanes.0 != 0 {
            write!(f, ", lanes {}", self.lanes)?;
        }
        if let FindingKind::Race { other_wave, other_workgroup: [x, y, z], .. }
        | FindingKind::RepeatedStore { other_wave, other_workgroup: [x, y, z], .. } = &self.kind
        {
            write!(f, "; the other: workgroup ({x}, {y}, {z}), wave {other_wave}")?;
        }
        if self.count > 1 {
            write!(f, "; {} times", self.count)?;
        }
        write!(f, "\n   = help: {}", self.hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_read_as_ranges() {
        let text = |mask: u64| Lanes(mask).to_string();
        assert_eq!(text(0), "");
        assert_eq!(text(u64::MAX), "0-63");
        assert_eq!(text(0x8000_0000_0000_000b), "0-1,3,63");
    }
}
