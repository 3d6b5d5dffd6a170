//! DPP: the first source of a short vector instruction taken from another lane (CDNA3 ISA guide, "DPP").
//!
//! An instruction in this form has the flag [`Modifiers::dpp`](super::Modifiers::dpp), and its immediate is a
//! [`Dpp`].

use std::fmt::{self, Write};

use super::layout::{BitRange, range};
use super::{Arch, Generation};

/// The content of the second word of the encoding, except for the first source and its sign.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Dpp {
    /// From which lane: the hardware's `DPP_CTRL`.
    pub control: u32,
    /// Rows of 16 lanes that are written, a bit each.
    pub row_mask: u32,
    /// Banks of 4 lanes in each row that are written, a bit each.
    pub bank_mask: u32,
    /// A source lane that does not exist or is off counts as 0; otherwise the destination lane keeps its
    /// value.
    pub bound_control: bool,
}

const CONTROL: BitRange = range(8, 9);
const BOUND_CONTROL: BitRange = range(19, 1);
const BANK_MASK: BitRange = range(24, 4);
const ROW_MASK: BitRange = range(28, 4);

/// Where the negations and absolute values of both sources are.
pub(super) const NEGATE: [BitRange; 2] = [range(20, 1), range(22, 1)];
/// See [`NEGATE`].
pub(super) const ABSOLUTE: [BitRange; 2] = [range(21, 1), range(23, 1)];
/// SRC0 of the first word says that the second one is DPP.
pub(super) const MARKER: u32 = 250;

/// A family of controls: name in assembler text, first number, smallest and largest argument, first chip.
struct DppFamily {
    name: &'static str,
    base: u32,
    low: u32,
    high: u32,
    since: Generation,
}

const fn family(name: &'static str, base: u32, low: u32, high: u32) -> DppFamily {
    DppFamily { name, base, low, high, since: Generation::Gcn5 }
}

/// A control's number is the family's base plus the argument.
const FAMILIES: [DppFamily; 8] = [
    family("row_shl", 0x100, 1, 15),
    family("row_shr", 0x110, 1, 15),
    family("row_ror", 0x120, 1, 15),
    family("wave_shl", 0x12f, 1, 1),
    family("wave_rol", 0x133, 1, 1),
    family("wave_shr", 0x137, 1, 1),
    family("wave_ror", 0x13b, 1, 1),
    DppFamily { name: "row_newbcast", base: 0x150, low: 0, high: 15, since: Generation::Cdna2 },
];

/// Controls without a free argument: text and number.
const FIXED: [(&str, u32); 4] = [
    ("row_mirror", 0x140),
    ("row_half_mirror", Dpp::HALF_MIRROR),
    ("row_bcast:15", 0x142),
    ("row_bcast:31", 0x143),
];

impl Dpp {
    /// The control that mirrors each half row: the lane whose number differs in its three lowest bits.
    pub const HALF_MIRROR: u32 = 0x141;

    /// All lanes, with the source lanes that `control` selects.
    pub const fn new(control: u32) -> Dpp {
        Dpp { control, row_mask: 0xf, bank_mask: 0xf, bound_control: false }
    }

    /// The same, lanes without a source reading 0.
    #[must_use]
    pub const fn bound(mut self) -> Dpp {
        self.bound_control = true;
        self
    }

    /// Control of a permutation inside each group of four lanes.
    pub const fn quad_perm(lanes: [u32; 4]) -> u32 {
        lanes[0] & 3 | (lanes[1] & 3) << 2 | (lanes[2] & 3) << 4 | (lanes[3] & 3) << 6
    }

    /// Number of the control with that name and argument (`row_shl`, 3), if there is one.
    pub fn control(name: &str, argument: u32) -> Option<u32> {
        let family = FAMILIES.iter().find(|family| family.name == name);
        if let Some(family) = family {
            return (family.low..=family.high).contains(&argument).then(|| family.base + argument);
        }
        let fixed = FIXED.iter().find(|(text, _)| match text.split_once(':') {
            Some((word, number)) => word == name && number.parse() == Ok(argument),
            None => *text == name && argument == 0,
        });
        fixed.map(|(_, control)| *control)
    }

    /// True for names that [`control`](Self::control) takes with an argument after a colon.
    pub(crate) fn takes_argument(name: &str) -> bool {
        name == "row_bcast" || FAMILIES.iter().any(|family| family.name == name)
    }

    /// As the immediate of an instruction.
    pub const fn to_imm(self) -> u32 {
        (self.control & 0x1ff) << CONTROL.low
            | (self.bound_control as u32) << BOUND_CONTROL.low
            | (self.bank_mask & 0xf) << BANK_MASK.low
            | (self.row_mask & 0xf) << ROW_MASK.low
    }

    /// From the immediate of an instruction (or the second word of its encoding).
    pub const fn from_imm(imm: u32) -> Dpp {
        let word = imm as u64;
        Dpp {
            control: CONTROL.read(word),
            row_mask: ROW_MASK.read(word),
            bank_mask: BANK_MASK.read(word),
            bound_control: BOUND_CONTROL.read(word) != 0,
        }
    }

    /// True if every active lane gets a new value whichever lanes are active.
    pub(crate) const fn writes_all_lanes(self) -> bool {
        self.row_mask == 0xf && self.bank_mask == 0xf && (self.bound_control || self.reads_in_range())
    }

    /// True if no lane's source lies outside the row or wave.
    const fn reads_in_range(self) -> bool {
        matches!(self.control, 0..=0xff | 0x120..=0x12f | 0x134 | 0x13c | 0x140 | 0x141 | 0x150..=0x15f)
    }

    /// True if the control exists on `arch`; instructions on 64 bits only have `row_newbcast`.
    pub(super) fn is_legal(self, arch: Arch, wide: bool) -> bool {
        if wide {
            return arch.generation() >= Generation::Cdna2 && (0x150..=0x15f).contains(&self.control);
        }
        let in_family = |family: &DppFamily| {
            arch.generation() >= family.since
                && (family.base + family.low..=family.base + family.high).contains(&self.control)
        };
        self.control <= 0xff
            || FAMILIES.iter().any(in_family)
            || FIXED.iter().any(|&(_, control)| control == self.control)
    }
}

/// Control and masks as assembler text.
pub(super) fn write_dpp(f: &mut dyn Write, dpp: Dpp) -> fmt::Result {
    let lane = |index: u32| dpp.control >> (2 * index) & 3;
    let family = FAMILIES
        .iter()
        .find(|family| (family.base + family.low..=family.base + family.high).contains(&dpp.control));
    match (family, FIXED.iter().find(|(_, control)| *control == dpp.control)) {
        (Some(family), _) => write!(f, " {}:{}", family.name, dpp.control - family.base)?,
        (None, Some((text, _))) => write!(f, " {text}")?,
        _ => write!(f, " quad_perm:[{},{},{},{}]", lane(0), lane(1), lane(2), lane(3))?,
    }
    write!(f, " row_mask:{:#x} bank_mask:{:#x}", dpp.row_mask, dpp.bank_mask)?;
    f.write_str(if dpp.bound_control { " bound_ctrl:1" } else { "" })
}

/// Bits of the immediate that have a meaning.
pub(super) const MEANINGFUL: u32 = 0xff08_ff00 | 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_has_one_text_that_gives_it_back() {
        let mut legal = 0;
        for control in 0..0x200 {
            let dpp = Dpp::new(control);
            if !dpp.is_legal(Arch::Gfx942, false) {
                continue;
            }
            legal += 1;
            let mut text = String::new();
            assert!(write_dpp(&mut text, dpp).is_ok());
            let word = text.split_whitespace().next().expect("a control is written");
            let found = match word.split_once(':') {
                Some(("quad_perm", list)) => {
                    let lanes: Vec<u32> =
                        list.trim_matches(['[', ']']).split(',').filter_map(|n| n.parse().ok()).collect();
                    Some(Dpp::quad_perm([lanes[0], lanes[1], lanes[2], lanes[3]]))
                }
                Some((name, argument)) => Dpp::control(name, argument.parse().expect("a number")),
                None => Dpp::control(word, 0),
            };
            assert_eq!(found, Some(control), "{text}");
        }
        assert_eq!(legal, 256 + 45 + 4 + 16 + 4);
    }

    #[test]
    fn the_immediate_keeps_everything() {
        let dpp = Dpp { control: 0x142, row_mask: 0xa, bank_mask: 0x5, bound_control: true };
        assert_eq!(Dpp::from_imm(dpp.to_imm()), dpp);
        assert_eq!(dpp.to_imm() & !MEANINGFUL, 0);
        assert!(!dpp.writes_all_lanes());
        assert!(Dpp::new(0x1b).writes_all_lanes());
        assert!(!Dpp::new(0x111).writes_all_lanes());
        assert!(Dpp::new(0x111).bound().writes_all_lanes());
    }
}
