//! Lane permutations of the LDS hardware: no memory is touched.

use crate::codegen::isa::Permutation;

use super::super::program::Step;
use super::super::wave::{LANES, VectorRow, Wave};
use super::lds::addresses;

/// ds_permute_b32 and ds_bpermute_b32: inactive lanes send nothing, and lanes that no lane sends to get zero.
/// If two lanes send to the same one, the higher one wins.
pub(super) fn permute(w: &mut Wave, s: &Step, direction: Permutation) {
    let values = permuted(w, s, direction, &w.lanes(s.operands[2]));
    w.set_lanes(s.operands[0], &values);
}

/// The result of permuting `data`.
pub(in super::super) fn permuted(w: &Wave, s: &Step, direction: Permutation, data: &VectorRow) -> VectorRow {
    let lanes = addresses(w, s, 1, s.imm).map(|a| (a / 4) as usize % LANES);
    let exec = w.exec();
    let active = |l: usize| exec >> l & 1 != 0;
    match direction {
        Permutation::Backward => std::array::from_fn(|l| if active(lanes[l]) { data[lanes[l]] } else { 0 }),
        Permutation::Forward => {
            let mut values = [0; LANES];
            (0..LANES).filter(|&l| active(l)).for_each(|l| values[lanes[l]] = data[l]);
            values
        }
    }
}

/// Offsets from here on are a decomposition for fast Fourier transforms.
const FFT: u32 = 0xe000;
/// Offsets from here on rotate.
const ROTATE: u32 = 0xc000;
/// Offsets from here on permute four lanes; smaller ones are bit masks.
const QUAD: u32 = 0x8000;

/// The lane that lane `lane` of ds_swizzle_b32 gets its value from; all stay inside their 32 lanes (CDNA3 ISA
/// guide, "DS_SWIZZLE_B32").
fn source(pattern: u32, lane: u32) -> u32 {
    let (half, lane) = (lane & 32, lane & 31);
    let inside = if pattern >= FFT {
        let mask = pattern & 31;
        // Reversed bits, less those of the mask, which stay.
        let reversed = lane.reverse_bits() >> 27 >> mask.count_ones();
        if mask == 31 { lane } else { (reversed | lane & mask) & 31 }
    } else if pattern >= ROTATE {
        let (mask, by) = (pattern & 31, pattern >> 5 & 31);
        let rotated = if pattern >> 10 & 1 != 0 { lane.wrapping_sub(by) } else { lane + by };
        lane & mask | rotated & !mask & 31
    } else if pattern >= QUAD {
        lane & !3 | pattern >> (2 * (lane & 3)) & 3
    } else {
        (lane & pattern | pattern >> 5 & 31) ^ pattern >> 10 & 31
    };
    half | inside
}

/// ds_swizzle_b32: inactive lanes give zero.
pub(super) fn swizzle(w: &mut Wave, s: &Step) {
    let values = swizzled(w, s, &w.lanes(s.operands[1]));
    w.set_lanes(s.operands[0], &values);
}

/// The result of swizzling `data`.
pub(in super::super) fn swizzled(w: &Wave, s: &Step, data: &VectorRow) -> VectorRow {
    let exec = w.exec();
    std::array::from_fn(|l| {
        let from = source(s.imm, l as u32) as usize;
        if exec >> from & 1 != 0 { data[from] } else { 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_swizzles() {
        let from = |pattern: u32| -> Vec<u32> { (0..40).map(|lane| source(pattern, lane)).collect() };
        assert_eq!(from(0x1f | 1 << 10)[..4], [1, 0, 3, 2], "swap");
        assert_eq!(from(QUAD | 0b00_01_10_11)[32..36], [35, 34, 33, 32], "quad");
        assert_eq!(from(ROTATE | 3 << 5)[..3], [3, 4, 5], "rotate left");
        assert_eq!(from(ROTATE | 3 << 5)[29..33], [0, 1, 2, 35], "stays in 32 lanes");
        assert_eq!(from(ROTATE | 1 << 10 | 3 << 5)[..4], [29, 30, 31, 0], "rotate right");
        assert_eq!(from(ROTATE | 1 << 5 | 0x1c)[..5], [1, 2, 3, 0, 5], "rotate inside four");
        assert_eq!(from(FFT)[..5], [0, 16, 8, 24, 4], "reversed bits");
        assert_eq!(from(FFT | 0x1f)[..4], [0, 1, 2, 3], "nothing");
        for pattern in 0..=u16::MAX {
            (0..64).for_each(|lane| assert!(source(pattern.into(), lane) / 32 == lane / 32, "{pattern:#x}"));
        }
    }
}
