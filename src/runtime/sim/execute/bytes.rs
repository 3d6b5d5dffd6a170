//! Vector instructions on bytes: sums of absolute differences, averages, saturation.

use crate::codegen::isa::{Calc, Element};

use super::super::error::Stopped;
use super::super::program::Step;
use super::super::wave::{LANES, Wave};
use super::lanes::{Lane, map1, map3, unsupported};

/// Which bytes take part in a sum of absolute differences.
#[derive(Copy, Clone, PartialEq, Eq)]
enum SummedBytes {
    All,
    /// Those where the second source is not zero.
    Masked,
}

/// Sum of absolute differences of four bytes.
fn difference(a: u32, b: u32, part: SummedBytes) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.filter(|&(_, b)| part == SummedBytes::All || b != 0).map(|(a, b)| u32::from(a.abs_diff(b))).sum()
}

/// Executes a sum of absolute differences with 32-bit result. With clamp the last addition saturates.
pub(super) fn sum_of_differences(w: &mut Wave, s: &Step, calc: Calc, element: Element) {
    let add = if s.modifiers.has_clamp() { u32::saturating_add } else { u32::wrapping_add };
    map3(w, s, |a: u32, b: u32, c: u32| match (calc, element) {
        (Calc::MaskedSumAbsDiff, _) => add(difference(a, b, SummedBytes::Masked), c),
        (Calc::SumAbsDiffHigh, _) => add(difference(a, b, SummedBytes::All) << 16, c),
        (_, Element::U8) => add(difference(a, b, SummedBytes::All), c),
        (_, Element::U16) => add((a & 0xffff).abs_diff(b & 0xffff) + (a >> 16).abs_diff(b >> 16), c),
        _ => add(a.abs_diff(b), c),
    });
}

/// Executes V_QSAD_PK_U16_U8, V_MQSAD_PK_U16_U8 and V_MQSAD_U32_U8: four sums at rising byte offsets of the
/// first source.
pub(super) fn quad_sums(w: &mut Wave, s: &Step, calc: Calc, element: Element) {
    let part = if calc == Calc::QuadSumAbsDiff { SummedBytes::All } else { SummedBytes::Masked };
    let clamps = s.modifiers.has_clamp();
    let (a, b) = (u64::read(w, s, 1, 0), u32::read(w, s, 2, 1));
    let sums: [[u32; LANES]; 4] =
        std::array::from_fn(|i| std::array::from_fn(|l| difference((a[l] >> (8 * i)) as u32, b[l], part)));
    if element == Element::U16 {
        let c = u64::read(w, s, 3, 2);
        let values = std::array::from_fn(|l| {
            (0..4).fold(0u64, |packed, i| {
                let (sum, addend) = (sums[i][l] as u16, (c[l] >> (16 * i)) as u16);
                let total = if clamps { sum.saturating_add(addend) } else { sum.wrapping_add(addend) };
                packed | u64::from(total) << (16 * i)
            })
        });
        u64::write(w, s, values);
        return;
    }
    let add = if clamps { u32::saturating_add } else { u32::wrapping_add };
    // All sources are read before the first result is written: they may overlap.
    let c: [_; 4] = std::array::from_fn(|i| w.lanes(s.operands[3].offset(i)));
    for i in 0..4 {
        w.set_lanes(s.operands[0].offset(i), &std::array::from_fn(|l| add(sums[i][l], c[i][l])));
    }
}

/// Average of bytes; the lowest bit of c's byte rounds up.
pub(super) fn lerp(a: u32, b: u32, c: u32) -> u32 {
    (0..4).fold(0, |all, i| {
        let byte = |v: u32| v >> (8 * i) & 0xff;
        all | (byte(a) + byte(b) + (byte(c) & 1)) >> 1 << (8 * i)
    })
}

/// Executes V_SAT_PK_U8_I16.
pub(super) fn saturate_bytes(w: &mut Wave, s: &Step) {
    map1(w, s, |a: u32| {
        let byte = |v: u32| (v as i16).clamp(0, 255) as u32;
        byte(a) | byte(a >> 16) << 8
    });
}

/// Executes V_ASHR_PK_I8_I32 and V_ASHR_PK_U8_I32; the half of the register that op_sel does not name stays.
pub(super) fn shift_pack(w: &mut Wave, s: &Step, element: Element) -> Result<(), Stopped> {
    let (low, high) = match element {
        Element::I8 => (-128, 127),
        Element::U8 => (0, 255),
        _ => return Err(unsupported()),
    };
    let (a, b, c) = (i32::read(w, s, 1, 0), i32::read(w, s, 2, 1), u32::read(w, s, 3, 2));
    let byte = |v: i32, shift: u32| ((v >> (shift & 31)).clamp(low, high) as u32) & 0xff;
    super::lanes::write_half(w, s, std::array::from_fn(|l| byte(a[l], c[l]) | byte(b[l], c[l]) << 8));
    Ok(())
}
