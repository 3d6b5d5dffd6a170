//! DPP: the first source from another lane (CDNA3 ISA guide, "DPP").

use crate::codegen::isa::{Dpp, Field, Meaning, OpInfo};

use super::super::error::Stopped;
use super::super::program::Step;
use super::super::wave::{EXEC, LANES, Wave};
use super::operands::{position, scratch};
use super::{ExecutionContext, execute};

/// Lanes of a row.
const ROW: usize = 16;

/// The lane that lane `l` reads from, if there is one.
fn source(control: u32, l: usize) -> Option<usize> {
    let (row, within, by) = (l & !(ROW - 1), l % ROW, (control & 15) as usize);
    let inside = |lane: usize| (lane < ROW).then_some(row + lane);
    match control {
        0..=0xff => Some(l & !3 | (control >> (2 * (l & 3)) & 3) as usize),
        0x101..=0x10f => inside(within + by),
        0x111..=0x11f => within.checked_sub(by).map(|lane| row + lane),
        0x121..=0x12f => Some(row + (within + ROW - by) % ROW),
        0x130 => (l + 1 < LANES).then_some(l + 1),
        0x134 => Some((l + 1) % LANES),
        0x138 => l.checked_sub(1),
        0x13c => Some((l + LANES - 1) % LANES),
        0x140 => Some(row + ROW - 1 - within),
        0x141 => Some(l & !7 | (7 - l % 8)),
        // The last lane of a row to the next row; lane 31 to the upper half.
        0x142 => row.checked_sub(1),
        0x143 => (l >= 32).then_some(31),
        0x150..=0x15f => Some(row + by),
        _ => None,
    }
}

/// The lane that each lane reads from, if any, and the lanes that are written. A lane whose source does not
/// exist or is off reads zero with `bound_ctrl` and is not written without it; lanes that the masks leave out
/// are not written.
pub(in super::super) fn lanes(imm: u32, exec: u64) -> ([Option<usize>; LANES], u64) {
    let dpp = Dpp::from_imm(imm);
    let lanes: [Option<usize>; LANES] =
        std::array::from_fn(|l| source(dpp.control, l).filter(|&from| exec >> from & 1 != 0));
    let mut written = 0u64;
    for (l, from) in lanes.iter().enumerate() {
        let masked = dpp.row_mask >> (l / ROW) & 1 != 0 && dpp.bank_mask >> (l / 4 % 4) & 1 != 0;
        let readable = from.is_some() || dpp.bound_control;
        written |= u64::from(masked && readable) << l;
    }
    (lanes, written & exec)
}

/// Executes the step with its first source rearranged.
pub(super) fn run(
    w: &mut Wave,
    context: &mut ExecutionContext<'_>,
    mut s: Step,
    info: &OpInfo,
    meaning: Meaning,
) -> Result<Option<usize>, Stopped> {
    let exec = w.exec();
    let Some(index) = position(info, Field::Src0) else { return execute(w, context, &s, meaning) };
    let (lanes, written) = lanes(s.imm, exec);
    let place = scratch(w, 0);
    for register in 0..usize::from(info.operands[index].width.min(2)) {
        let values = w.lanes(s.operands[index].offset(register));
        if let Some(row) = place.offset(register).row() {
            w.rows[row] = lanes.map(|from| from.map_or(0, |lane| values[lane]));
        }
    }
    s.operands[index] = place;
    w.set_pair(EXEC, written);
    let next = execute(w, context, &s, meaning);
    w.set_pair(EXEC, exec);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_name_lanes() {
        let from = |name: &str, argument| {
            let control = Dpp::control(name, argument).expect("a control");
            move |l| source(control, l)
        };
        assert_eq!([0, 14, 15].map(from("row_shl", 1)), [Some(1), Some(15), None]);
        assert_eq!([17, 16, 31].map(from("row_shr", 1)), [Some(16), None, Some(30)]);
        assert_eq!([16, 17, 31].map(from("row_ror", 1)), [Some(31), Some(16), Some(30)]);
        assert_eq!([15, 63].map(from("wave_shl", 1)), [Some(16), None]);
        assert_eq!([15, 63].map(from("wave_rol", 1)), [Some(16), Some(0)]);
        assert_eq!([16, 0].map(from("wave_shr", 1)), [Some(15), None]);
        assert_eq!([16, 0].map(from("wave_ror", 1)), [Some(15), Some(63)]);
        assert_eq!([0, 20].map(from("row_mirror", 0)), [Some(15), Some(27)]);
        assert_eq!([0, 12].map(from("row_half_mirror", 0)), [Some(7), Some(11)]);
        assert_eq!([5, 20, 40, 63].map(from("row_bcast", 15)), [None, Some(15), Some(31), Some(47)]);
        assert_eq!([5, 31, 40, 63].map(from("row_bcast", 31)), [None, None, Some(31), Some(31)]);
        assert_eq!([5, 31, 40].map(from("row_newbcast", 3)), [Some(3), Some(19), Some(35)]);
        let control = Dpp::quad_perm([3, 2, 1, 0]);
        assert_eq!([0, 5].map(|l| source(control, l)), [Some(3), Some(6)]);
    }
}
