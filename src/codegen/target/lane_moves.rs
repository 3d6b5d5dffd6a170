//! How the lanes of a wave take registers of each other, from the cheapest way on: as a source of a vector
//! instruction (DPP), within half a wave by `ds_swizzle`, and in any other way by `ds_bpermute`.
//!
//! DPP reaches lanes of the same row of 16 (CDNA3 ISA guide, "Data Parallel Primitives"). Nothing on gfx90a
//! and gfx942 exchanges rows without LDS hardware; `v_permlane16_swap` and `v_permlane32_swap` are new with
//! gfx950: they exchange rows of two registers ([`RowSwap`]).

use super::Target;
use crate::codegen::isa::Opcode;
use crate::ir::layout::within_wave::LaneMap;

/// Rows of 16 or 32 lanes that change places between two registers: those of the first one with the bit in
/// their lanes' numbers, and those of the second one without it (CDNA4 ISA guide, `V_PERMLANE16_SWAP_B32` and
/// `V_PERMLANE32_SWAP_B32`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct RowSwap {
    /// What exchanges them.
    pub(crate) opcode: Opcode,
    /// Which of the two registers has the elements afterwards.
    pub(crate) result: usize,
}

impl RowSwap {
    /// The instruction that exchanges rows of lanes whose numbers differ in a bit, if the chip has it.
    pub(crate) fn opcode(target: Target, bit: u32) -> Option<Opcode> {
        let opcode = match bit {
            4 => Opcode::VPermlane16SwapB32,
            5 => Opcode::VPermlane32SwapB32,
            _ => return None,
        };
        target.executes(opcode).then_some(opcode)
    }

    /// The exchange that gives lanes elements of two registers, where the bits of `choosing` in their numbers
    /// decide from which, and `lanes` says from which lanes the ones without and with the bit take them: both
    /// results of an exchange are an own element here and one of the other row there.
    pub(crate) fn of(target: Target, choosing: u32, lanes: &[LaneMap]) -> Option<RowSwap> {
        let &[without, with] = lanes else { return None };
        let result = match [without.as_xor()?, with.as_xor()?] {
            [0, other] if other == choosing => 0,
            [other, 0] if other == choosing => 1,
            _ => return None,
        };
        let opcode = RowSwap::opcode(target, choosing.trailing_zeros())?;
        choosing.is_power_of_two().then_some(RowSwap { opcode, result })
    }
}

/// A way for lanes to take a register of other lanes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LaneMove {
    /// Each lane has it already.
    Stay,
    /// Within each four lanes: the lane that each of them takes it from.
    Quad([u32; 4]),
    /// From the lane so many lanes further on in its row, or before it.
    Shift(i32),
    /// From the lane a quarter of a row away, in two instructions: in both directions.
    QuarterRow,
    /// From the lane half a row away.
    HalfRow,
    /// Within each 32 lanes: bits of the lane number that stay, then bits that change.
    Swizzle { and: u32, xor: u32 },
    /// From the lane whose number a register holds.
    Permute(LaneMap),
}

impl LaneMove {
    /// The cheapest way.
    pub(crate) fn of(map: &LaneMap) -> LaneMove {
        let keeps = |at: usize| map.bits[at] == 1 << at;
        let kept_from = |first: usize| (first..map.bits.len()).all(keeps);
        if kept_from(2) && map.first < 4 && map.bits[..2].iter().all(|&adds| adds < 4) {
            let lanes = [0, 1, 2, 3].map(|lane| map.source(lane));
            return if lanes == [0, 1, 2, 3] { LaneMove::Stay } else { LaneMove::Quad(lanes) };
        }
        match map.as_xor() {
            Some(4) if map.known & 4 != 0 => LaneMove::Shift(if map.value & 4 == 0 { 4 } else { -4 }),
            Some(4) => LaneMove::QuarterRow,
            Some(8) => LaneMove::HalfRow,
            _ if kept_from(5) && map.first < 32 && (0..5).all(|at| keeps(at) || map.bits[at] == 0) => {
                LaneMove::Swizzle { and: map.bits[..5].iter().sum(), xor: map.first }
            }
            _ => LaneMove::Permute(map.of_all_lanes()),
        }
    }

    /// Whether LDS hardware moves it, though no bytes of LDS.
    pub(crate) fn waits_for_lds(self) -> bool {
        matches!(self, LaneMove::Swizzle { .. } | LaneMove::Permute(_))
    }

    /// Instructions for each register.
    pub(crate) fn instructions(self) -> u32 {
        match self {
            LaneMove::Stay => 0,
            LaneMove::QuarterRow => 2,
            LaneMove::Quad(_) | LaneMove::Shift(_) | LaneMove::HalfRow => 1,
            LaneMove::Swizzle { .. } | LaneMove::Permute(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::layout::within_wave::LANE_BITS;

    /// The lane that a lane takes a register from; `None` where a move gives nothing of use.
    fn source(way: LaneMove, lane: u32) -> Option<u32> {
        let in_row = |at: u32| (at / 16 == lane / 16).then_some(at);
        match way {
            LaneMove::Stay => Some(lane),
            LaneMove::Quad(lanes) => Some(lane & !3 | lanes[(lane & 3) as usize]),
            LaneMove::Shift(by) => in_row(lane.wrapping_add_signed(by)),
            LaneMove::QuarterRow => Some(lane ^ 4),
            LaneMove::HalfRow => Some(lane & !15 | (lane + 8) & 15),
            LaneMove::Swizzle { and, xor } => Some(lane & 32 | lane & and & 31 ^ xor),
            LaneMove::Permute(map) => Some(map.source(lane)),
        }
    }

    /// Exchanges, copies of a bit, turned bits, and shifts where only half of the lanes count.
    #[test]
    fn moves_do_what_maps_say() {
        let same: [u32; LANE_BITS] = std::array::from_fn(|at| 1 << at);
        let mut maps = Vec::new();
        for first in 0..64 {
            maps.push(LaneMap { first, bits: same, known: 0, value: 0 });
            for at in 0..LANE_BITS {
                let mut copied = LaneMap { first, bits: same, known: 0, value: 0 };
                copied.bits[at] = 0;
                maps.push(copied);
                for value in [0, 1 << at] {
                    maps.push(LaneMap { first, bits: same, known: 1 << at, value });
                }
                for other in 0..LANE_BITS {
                    let mut turned = LaneMap { first, bits: same, known: 0, value: 0 };
                    turned.bits.swap(at, other);
                    maps.push(turned);
                }
            }
        }
        for map in maps {
            let way = LaneMove::of(&map);
            for lane in (0..64).filter(|lane| lane & map.known == map.value) {
                assert_eq!(source(way, lane), Some(map.source(lane)), "{map:?} as {way:?} in lane {lane}");
            }
        }
    }

    #[test]
    fn lanes_of_a_row_do_without_lds() {
        let same: [u32; LANE_BITS] = std::array::from_fn(|at| 1 << at);
        for (xor, instructions) in [(1, 1), (2, 1), (3, 1), (4, 2), (8, 1)] {
            let way = LaneMove::of(&LaneMap { first: xor, bits: same, known: 0, value: 0 });
            assert!(!way.waits_for_lds() && way.instructions() == instructions, "{way:?}");
        }
        assert!(LaneMove::of(&LaneMap { first: 16, bits: same, known: 0, value: 0 }).waits_for_lds());
    }
}
