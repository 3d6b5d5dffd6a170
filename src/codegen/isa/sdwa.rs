//! SDWA: parts of registers as sources and result of a short vector instruction (CDNA3 ISA guide, "SDWA").
//!
//! An instruction in this form has the flag [`Modifiers::sdwa`](super::Modifiers::sdwa), and its immediate is
//! an [`Sdwa`].

use std::fmt::{self, Write};

use super::layout::{BitRange, range};

/// Part of a register.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Select {
    /// Bits 7:0.
    Byte0,
    /// Bits 15:8.
    Byte1,
    /// Bits 23:16.
    Byte2,
    /// Bits 31:24.
    Byte3,
    /// Bits 15:0.
    Word0,
    /// Bits 31:16.
    Word1,
    /// All.
    #[default]
    Dword,
}

/// Bits of the destination that are not selected.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Unused {
    /// Become zero.
    #[default]
    Pad,
    /// Become copies of the sign.
    SignExtend,
    /// Stay.
    Preserve,
}

/// The content of the second word of the encoding, except for the first source and the signs.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Sdwa {
    /// Part of the result that is written.
    pub dst: Select,
    /// The rest of the result.
    pub unused: Unused,
    /// Parts of the sources.
    pub sources: [Select; 2],
}

const DST: BitRange = range(8, 3);
const UNUSED: BitRange = range(11, 2);
const SOURCES: [BitRange; 2] = [range(16, 3), range(24, 3)];

/// First source in the second word.
pub(super) const SRC0: BitRange = range(0, 8);
/// The source is a scalar register.
pub(super) const IS_SCALAR: [BitRange; 2] = [range(23, 1), range(31, 1)];
/// Sign extension, negation and absolute value of both sources.
pub(super) const SIGN_EXTEND: [BitRange; 2] = [range(19, 1), range(27, 1)];
/// See [`SIGN_EXTEND`].
pub(super) const NEGATE: [BitRange; 2] = [range(20, 1), range(28, 1)];
/// See [`SIGN_EXTEND`].
pub(super) const ABSOLUTE: [BitRange; 2] = [range(21, 1), range(29, 1)];
/// Part of the result and the treatment of the rest.
pub(super) const RESULT: u32 = 0x1f << DST.low;
/// The same for a result that is written as a whole.
pub(super) const NO_RESULT: u32 = (Select::Dword as u32) << DST.low;
/// Clamp of the result.
pub(super) const CLAMP: BitRange = range(13, 1);
/// Output modifier.
pub(super) const OMOD: BitRange = range(14, 2);
/// Mask result of a comparison, where results of others have their part.
pub(super) const MASK: BitRange = range(8, 7);
/// The mask result is not VCC.
pub(super) const HAS_MASK: BitRange = range(15, 1);
/// SRC0 of the first word says that the second one is SDWA.
pub(super) const MARKER: u32 = 249;

const SELECTS: [(Select, &str); 7] = [
    (Select::Byte0, "BYTE_0"),
    (Select::Byte1, "BYTE_1"),
    (Select::Byte2, "BYTE_2"),
    (Select::Byte3, "BYTE_3"),
    (Select::Word0, "WORD_0"),
    (Select::Word1, "WORD_1"),
    (Select::Dword, "DWORD"),
];

const UNUSEDS: [(Unused, &str); 3] =
    [(Unused::Pad, "UNUSED_PAD"), (Unused::SignExtend, "UNUSED_SEXT"), (Unused::Preserve, "UNUSED_PRESERVE")];

impl Select {
    /// The part of that name.
    pub fn from_name(name: &str) -> Option<Select> {
        SELECTS.iter().find(|(_, text)| *text == name).map(|(select, _)| *select)
    }

    /// Name in assembler text.
    pub const fn name(self) -> &'static str {
        SELECTS[self as usize].1
    }
}

impl Unused {
    /// The treatment of that name.
    pub fn from_name(name: &str) -> Option<Unused> {
        UNUSEDS.iter().find(|(_, text)| *text == name).map(|(unused, _)| *unused)
    }

    /// Name in assembler text.
    pub const fn name(self) -> &'static str {
        UNUSEDS[self as usize].1
    }
}

impl Sdwa {
    /// As the immediate of an instruction.
    pub const fn to_imm(self) -> u32 {
        (self.dst as u32) << DST.low
            | (self.unused as u32) << UNUSED.low
            | (self.sources[0] as u32) << SOURCES[0].low
            | (self.sources[1] as u32) << SOURCES[1].low
    }

    /// From the immediate of an instruction; none if it is not of this form.
    pub fn from_imm(imm: u32) -> Option<Sdwa> {
        let word = u64::from(imm);
        let select = |range: BitRange| SELECTS.get(range.read(word) as usize).map(|(select, _)| *select);
        Some(Sdwa {
            dst: select(DST)?,
            unused: UNUSEDS.get(UNUSED.read(word) as usize)?.0,
            sources: [select(SOURCES[0])?, select(SOURCES[1])?],
        })
    }

    /// True if the result is written as a whole, as masks are.
    pub(super) const fn has_no_result(self) -> bool {
        self.to_imm() & RESULT == NO_RESULT
    }

    /// True if part of the former destination is kept.
    pub(crate) fn keeps_destination(self) -> bool {
        self.dst != Select::Dword && self.unused == Unused::Preserve
    }
}

/// Parts of an instruction with so many sources; comparisons have no part of a result.
pub(super) fn write_sdwa(f: &mut dyn Write, sdwa: Sdwa, sources: usize, has_dst: bool) -> fmt::Result {
    if has_dst {
        write!(f, " dst_sel:{} dst_unused:{}", sdwa.dst.name(), sdwa.unused.name())?;
    }
    for (index, source) in sdwa.sources.iter().take(sources).enumerate() {
        write!(f, " src{index}_sel:{}", source.name())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_immediates_give_back_what_they_say() {
        for (select, name) in SELECTS {
            assert_eq!((Select::from_name(name), select.name()), (Some(select), name));
            for (unused, name) in UNUSEDS {
                assert_eq!((Unused::from_name(name), unused.name()), (Some(unused), name));
                let sdwa = Sdwa { dst: select, unused, sources: [Select::Byte1, select] };
                assert_eq!(Sdwa::from_imm(sdwa.to_imm()), Some(sdwa));
            }
        }
        assert_eq!(Sdwa::from_imm(7 << 16), None);
        assert_eq!(Sdwa::from_imm(3 << 11), None);
    }
}
