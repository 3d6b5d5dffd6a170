//! The loops of the vector ALU: operations on one value per lane, by type ([`host`](super::host) compiles
//! them for the CPU).

use crate::codegen::isa::{Calc, Element};

use super::super::error::Stopped;
use super::super::numerics::{
    Nans, f64_to_f16, flush, from_f16, greater, lesser, maximum_or_nan, median, minimum_or_nan,
};
use super::super::powers::load_exponent;
use super::super::program::Step;
use super::super::wave::{VCC, Wave};
use super::lanes::{F16, Lane, map1, map2, map3, unsupported};
use super::rounded::{self, ROUND_16, ROUND_32, ROUND_64};
use super::salu::leading_sign;
use super::special::{self, fract, frexp};
use super::{bytes, division};

#[inline(always)]
pub(super) fn integer(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    use Element::*;
    let signed24 = |v: u32| (v << 8) as i32 >> 8;
    let unsigned24 = |v: u32| v & 0xff_ffff;
    match (calc, element) {
        (Calc::Mov, _) => map1(w, s, |a: u32| a),
        (Calc::Not, _) => map1(w, s, |a: u32| !a),
        (Calc::And, _) => map2(w, s, |a: u32, b: u32| a & b),
        (Calc::Or, _) => map2(w, s, |a: u32, b: u32| a | b),
        (Calc::Xor, _) => map2(w, s, |a: u32, b: u32| a ^ b),
        (Calc::Xnor, _) => map2(w, s, |a: u32, b: u32| !(a ^ b)),
        (Calc::AndOr, _) => map3(w, s, |a: u32, b: u32, c: u32| a & b | c),
        (Calc::Or3, _) => map3(w, s, |a: u32, b: u32, c: u32| a | b | c),
        (Calc::XorAdd, _) => map3(w, s, |a: u32, b: u32, c: u32| (a ^ b).wrapping_add(c)),
        (Calc::ReverseBits, _) => map1(w, s, u32::reverse_bits),
        (Calc::CountOnesAdd, _) => map2(w, s, |a: u32, b: u32| a.count_ones().wrapping_add(b)),
        (Calc::FirstOneFromLow, _) => {
            map1(w, s, |a: u32| if a == 0 { u32::MAX } else { a.trailing_zeros() });
        }
        (Calc::FirstOneFromHigh, I32) => map1(w, s, |a: i32| leading_sign(a)),
        (Calc::FirstOneFromHigh, _) => {
            map1(w, s, |a: u32| if a == 0 { u32::MAX } else { a.leading_zeros() });
        }
        (Calc::Mul, I24) => map2(w, s, |a: u32, b: u32| signed24(a).wrapping_mul(signed24(b))),
        (Calc::Mul, U24) => map2(w, s, |a: u32, b: u32| unsigned24(a).wrapping_mul(unsigned24(b))),
        (Calc::MulHigh, I24) => {
            map2(w, s, |a: u32, b: u32| ((i64::from(signed24(a)) * i64::from(signed24(b))) >> 32) as i32)
        }
        (Calc::MulHigh, U24) => {
            map2(w, s, |a: u32, b: u32| ((u64::from(unsigned24(a)) * u64::from(unsigned24(b))) >> 32) as u32)
        }
        (Calc::MulAdd, I24) => {
            map3(w, s, |a: u32, b: u32, c: i32| signed24(a).wrapping_mul(signed24(b)).wrapping_add(c))
        }
        (Calc::MulAdd, U24) => {
            map3(w, s, |a: u32, b: u32, c: u32| unsigned24(a).wrapping_mul(unsigned24(b)).wrapping_add(c))
        }
        (Calc::Add, _) => map2(w, s, u32::wrapping_add),
        (Calc::Sub, _) => map2(w, s, u32::wrapping_sub),
        (Calc::SubRev, _) => map2(w, s, |a: u32, b: u32| b.wrapping_sub(a)),
        (Calc::Add3, _) => map3(w, s, |a: u32, b: u32, c: u32| a.wrapping_add(b).wrapping_add(c)),
        (Calc::Mul, _) => map2(w, s, u32::wrapping_mul),
        (Calc::MulHigh, I32) => map2(w, s, |a: i32, b: i32| ((i64::from(a) * i64::from(b)) >> 32) as i32),
        (Calc::MulHigh, _) => map2(w, s, |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        (Calc::Min, I32) => map2(w, s, |a: i32, b: i32| a.min(b)),
        (Calc::Min, _) => map2(w, s, |a: u32, b: u32| a.min(b)),
        (Calc::Max, I32) => map2(w, s, |a: i32, b: i32| a.max(b)),
        (Calc::Max, _) => map2(w, s, |a: u32, b: u32| a.max(b)),
        (Calc::Min3, I32) => map3(w, s, |a: i32, b: i32, c: i32| a.min(b).min(c)),
        (Calc::Min3, _) => map3(w, s, |a: u32, b: u32, c: u32| a.min(b).min(c)),
        (Calc::Max3, I32) => map3(w, s, |a: i32, b: i32, c: i32| a.max(b).max(c)),
        (Calc::Max3, _) => map3(w, s, |a: u32, b: u32, c: u32| a.max(b).max(c)),
        (Calc::Med3, I32) => map3(w, s, |a: i32, b: i32, c: i32| a.min(b).max(a.max(b).min(c))),
        (Calc::Med3, _) => map3(w, s, |a: u32, b: u32, c: u32| a.min(b).max(a.max(b).min(c))),
        (Calc::ShiftLeftRev, _) => map2(w, s, |a: u32, b: u32| b << (a & 31)),
        (Calc::ShiftRightRev, I32) => map2(w, s, |a: u32, b: i32| b >> (a & 31)),
        (Calc::ShiftRightRev, _) => map2(w, s, |a: u32, b: u32| b >> (a & 31)),
        (Calc::ShiftLeftAdd, _) => map3(w, s, |a: u32, b: u32, c: u32| (a << (b & 31)).wrapping_add(c)),
        (Calc::AddShiftLeft, _) => map3(w, s, |a: u32, b: u32, c: u32| a.wrapping_add(b) << (c & 31)),
        (Calc::ShiftLeftOr, _) => map3(w, s, |a: u32, b: u32, c: u32| a << (b & 31) | c),
        (Calc::BitFieldMask, _) => map2(w, s, |a: u32, b: u32| ((1u32 << (a & 31)) - 1) << (b & 31)),
        (Calc::BitFieldExtract, I32) => map3(w, s, |a: i32, b: u32, c: u32| {
            let (offset, width) = (b & 31, c & 31);
            let unused = 64 - width.max(1);
            if width == 0 { 0 } else { ((i64::from(a) >> offset) << unused >> unused) as i32 }
        }),
        (Calc::BitFieldExtract, _) => {
            map3(w, s, |a: u32, b: u32, c: u32| a >> (b & 31) & ((1u32 << (c & 31)) - 1));
        }
        (Calc::BitFieldInsert, _) => map3(w, s, |a: u32, b: u32, c: u32| a & b | !a & c),
        (Calc::AlignBit, _) => map3(w, s, |a: u32, b: u32, c: u32| (join(a, b) >> (c & 31)) as u32),
        (Calc::AlignByte, _) => map3(w, s, |a: u32, b: u32, c: u32| (join(a, b) >> (8 * (c & 3))) as u32),
        (Calc::PermuteBytes, _) => map3(w, s, |a: u32, b: u32, c: u32| permute_bytes(join(a, b), c)),
        _ => return rare(w, s, calc, element),
    }
    Ok(())
}

/// Integer instructions that are rare in hot loops.
#[inline(never)]
fn rare(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    match calc {
        Calc::LerpBytes => map3(w, s, bytes::lerp),
        Calc::SumAbsDiff | Calc::SumAbsDiffHigh | Calc::MaskedSumAbsDiff => {
            bytes::sum_of_differences(w, s, calc, element);
        }
        Calc::QuadSumAbsDiff | Calc::MaskedQuadSumAbsDiff => bytes::quad_sums(w, s, calc, element),
        Calc::PseudoRandom => map1(w, s, special::next_random),
        Calc::BitOperation3 => {
            let table = s.modifiers.get_bitop3();
            map3(w, s, |a: u32, b: u32, c: u32| any_of_three(table, a, b, c));
        }
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// Every bit of the result is the bit of the truth table with the number that the three source bits form, a's
/// bit being the highest (CDNA4 ISA guide, V_BITOP3_B32).
fn any_of_three(table: u32, a: u32, b: u32, c: u32) -> u32 {
    let side = |bits: u32, one: u32| if one != 0 { bits } else { !bits };
    (0..8)
        .filter(|row| table >> row & 1 != 0)
        .fold(0, |all, row| all | side(a, row >> 2 & 1) & side(b, row >> 1 & 1) & side(c, row & 1))
}

/// `{high, low}`
#[inline(always)]
fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// V_PERM_B32 of the CDNA3 ISA guide.
fn permute_bytes(source: u64, select: u32) -> u32 {
    let byte = |selector: u32| match selector {
        0..=7 => (source >> (8 * selector)) as u8,
        // Sign of the odd bytes' halves, smeared over a byte.
        8..=11 => ((source >> (16 * (selector - 8) + 15) & 1) as u8).wrapping_neg(),
        12 => 0,
        _ => 0xff,
    };
    u32::from_le_bytes(select.to_le_bytes().map(|s| byte(u32::from(s))))
}

#[inline(always)]
pub(super) fn short(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    let signed = element == Element::I16;
    match calc {
        Calc::Add => map2(w, s, u16::wrapping_add),
        Calc::Sub => map2(w, s, u16::wrapping_sub),
        Calc::SubRev => map2(w, s, |a: u16, b: u16| b.wrapping_sub(a)),
        Calc::Mul => map2(w, s, u16::wrapping_mul),
        Calc::Min if signed => map2(w, s, |a: i16, b: i16| a.min(b)),
        Calc::Min => map2(w, s, |a: u16, b: u16| a.min(b)),
        Calc::Max if signed => map2(w, s, |a: i16, b: i16| a.max(b)),
        Calc::Max => map2(w, s, |a: u16, b: u16| a.max(b)),
        Calc::ShiftLeftRev => map2(w, s, |a: u16, b: u16| b << (a & 15)),
        Calc::ShiftRightRev if signed => map2(w, s, |a: u16, b: i16| b >> (a & 15)),
        Calc::ShiftRightRev => map2(w, s, |a: u16, b: u16| b >> (a & 15)),
        _ => return rare_short(w, s, calc, element),
    }
    Ok(())
}

/// 16-bit instructions that are rare in hot loops.
#[inline(never)]
fn rare_short(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    let signed = element == Element::I16;
    match calc {
        Calc::MulAdd => map3(w, s, |a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c)),
        Calc::Min3 if signed => map3(w, s, |a: i16, b: i16, c: i16| a.min(b).min(c)),
        Calc::Min3 => map3(w, s, |a: u16, b: u16, c: u16| a.min(b).min(c)),
        Calc::Max3 if signed => map3(w, s, |a: i16, b: i16, c: i16| a.max(b).max(c)),
        Calc::Max3 => map3(w, s, |a: u16, b: u16, c: u16| a.max(b).max(c)),
        Calc::Med3 if signed => map3(w, s, |a: i16, b: i16, c: i16| a.min(b).max(a.max(b).min(c))),
        Calc::Med3 => map3(w, s, |a: u16, b: u16, c: u16| a.min(b).max(a.max(b).min(c))),
        Calc::BitOperation3 => {
            let table = s.modifiers.get_bitop3();
            map3(w, s, |a: u16, b: u16, c: u16| any_of_three(table, a.into(), b.into(), c.into()) as u16);
        }
        Calc::SumAbsDiff => bytes::sum_of_differences(w, s, calc, element),
        Calc::QuadSumAbsDiff | Calc::MaskedQuadSumAbsDiff => bytes::quad_sums(w, s, calc, element),
        _ => return Err(unsupported()),
    }
    Ok(())
}

#[inline(always)]
pub(super) fn wide(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    match calc {
        Calc::Mov => map1(w, s, |a: u64| a),
        Calc::ShiftLeftRev => map2(w, s, |a: u32, b: u64| b << (a & 63)),
        Calc::ShiftRightRev if element == Element::I64 => map2(w, s, |a: u32, b: i64| b >> (a & 63)),
        Calc::ShiftRightRev => map2(w, s, |a: u32, b: u64| b >> (a & 63)),
        // Shifts by more than four count as none (CDNA4 ISA guide, V_LSHL_ADD_U64).
        Calc::ShiftLeftAdd => map3(w, s, |a: u64, b: u32, c: u64| {
            let shift = b & 7;
            (a << if shift > 4 { 0 } else { shift }).wrapping_add(c)
        }),
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// Sources and results of the approximating f32 instructions are never denormal (LLVM, SIISelLowering.cpp,
/// lowers `exp2`, `log2`, `sqrt` and division around that).
#[inline(always)]
fn without_denormals(f: impl Fn(f32) -> f32) -> impl Fn(f32) -> f32 {
    move |a| flush(f(flush(a)))
}

/// How minimum and maximum treat NaNs.
#[inline(always)]
pub(super) fn nans(w: &Wave) -> Nans {
    if w.is_ieee() { Nans::Signal } else { Nans::Lose }
}

#[inline(always)]
pub(super) fn float32(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> {
    if w.mode & ROUND_32 != 0 && rounded::calculate(w, s, calc, Element::F32) {
        return Ok(());
    }
    match (calc, nans(w)) {
        (Calc::Add, _) => map2(w, s, |a: f32, b: f32| a + b),
        (Calc::Sub, _) => map2(w, s, |a: f32, b: f32| a - b),
        (Calc::SubRev, _) => map2(w, s, |a: f32, b: f32| b - a),
        (Calc::Mul, _) => map2(w, s, |a: f32, b: f32| a * b),
        (Calc::Fma, _) => map3(w, s, f32::mul_add),
        (Calc::Min, Nans::Lose) => map2(w, s, |a: f32, b: f32| lesser(Nans::Lose, a, b)),
        (Calc::Min, Nans::Signal) => map2(w, s, |a: f32, b: f32| lesser(Nans::Signal, a, b)),
        (Calc::Max, Nans::Lose) => map2(w, s, |a: f32, b: f32| greater(Nans::Lose, a, b)),
        (Calc::Max, Nans::Signal) => map2(w, s, |a: f32, b: f32| greater(Nans::Signal, a, b)),
        (Calc::Min3, nans) => map3(w, s, |a: f32, b, c| lesser(nans, lesser(nans, a, b), c)),
        (Calc::Max3, nans) => map3(w, s, |a: f32, b, c| greater(nans, greater(nans, a, b), c)),
        (Calc::Med3, nans) => map3(w, s, |a, b, c| median(nans, a, b, c)),
        (Calc::Fract, _) => map1(w, s, |a: f32| fract(a, f32::from_bits(0x3f7f_ffff))),
        (Calc::Trunc, _) => map1(w, s, f32::trunc),
        (Calc::Ceil, _) => map1(w, s, f32::ceil),
        (Calc::RoundEven, _) => map1(w, s, f32::round_ties_even),
        (Calc::Floor, _) => map1(w, s, f32::floor),
        (Calc::Exp2, _) => map1(w, s, without_denormals(|a| f64::from(a).exp2() as f32)),
        (Calc::Log2, _) => map1(w, s, without_denormals(|a| f64::from(a).log2() as f32)),
        (Calc::Reciprocal, _) => map1(w, s, without_denormals(|a| 1.0 / a)),
        (Calc::ReciprocalSqrt, _) => map1(w, s, without_denormals(|a| (1.0 / f64::from(a).sqrt()) as f32)),
        (Calc::Sqrt, _) => map1(w, s, without_denormals(f32::sqrt)),
        (Calc::LoadExponent, _) => map2(w, s, |a: f32, b: i32| load_exponent(a.into(), b) as f32),
        (Calc::DivFixup, _) => map3(w, s, division::fixup_f32),
        (Calc::DivFmas, _) => {
            let scaled = w.pair(VCC);
            let (a, b, c) = (f32::read(w, s, 1, 0), f32::read(w, s, 2, 1), f32::read(w, s, 3, 2));
            let values = std::array::from_fn(|l| match scaled >> l & 1 {
                0 => a[l].mul_add(b[l], c[l]),
                _ => division::fmas_f32(a[l], b[l], c[l]),
            });
            f32::write(w, s, values);
        }
        _ => return rare_f32(w, s, calc),
    }
    Ok(())
}

/// f32 instructions that are rare in hot loops.
#[inline(never)]
fn rare_f32(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> {
    match calc {
        Calc::MulAdd | Calc::MulAddLegacy => rounded::multiply_add(w, s, calc, Element::F32),
        Calc::MulLegacy => map2(w, s, |a: f32, b: f32| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }),
        Calc::Sin => map1(w, s, special::sine),
        Calc::Cos => map1(w, s, special::cosine),
        Calc::Minimum3 => map3(w, s, |a: f32, b, c| minimum_or_nan(minimum_or_nan(a, b), c)),
        Calc::Maximum3 => map3(w, s, |a: f32, b, c| maximum_or_nan(maximum_or_nan(a, b), c)),
        Calc::CubeId | Calc::CubeSc | Calc::CubeTc | Calc::CubeMa => {
            map3(w, s, |a: f32, b: f32, c: f32| special::cube(calc, a, b, c));
        }
        Calc::FrexpExponent => map1(w, s, |a: f32| frexp(a.into()).1),
        Calc::FrexpMantissa => map1(w, s, |a: f32| frexp(a.into()).0 as f32),
        _ => return Err(unsupported()),
    }
    Ok(())
}

#[inline(always)]
pub(super) fn float16(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> {
    if w.mode & ROUND_16 != 0 && rounded::calculate(w, s, calc, Element::F16) {
        return Ok(());
    }
    let one = |f: fn(f32) -> f32| move |a: F16| F16(f(a.0));
    match (calc, nans(w)) {
        (Calc::Add, _) => map2(w, s, |a: F16, b: F16| F16(a.0 + b.0)),
        (Calc::Sub, _) => map2(w, s, |a: F16, b: F16| F16(a.0 - b.0)),
        (Calc::SubRev, _) => map2(w, s, |a: F16, b: F16| F16(b.0 - a.0)),
        (Calc::Mul, _) => map2(w, s, |a: F16, b: F16| F16(a.0 * b.0)),
        (Calc::Fma, _) => map3(w, s, |a: F16, b: F16, c: F16| F16(fma_f16(a.0, b.0, c.0))),
        (Calc::Min, nans) => map2(w, s, |a: F16, b: F16| F16(lesser(nans, a.0, b.0))),
        (Calc::Max, nans) => map2(w, s, |a: F16, b: F16| F16(greater(nans, a.0, b.0))),
        (Calc::Fract, _) => map1(w, s, |a: F16| F16(fract(a.0, from_f16(0x3bff)))),
        (Calc::Trunc, _) => map1(w, s, one(f32::trunc)),
        (Calc::Ceil, _) => map1(w, s, one(f32::ceil)),
        (Calc::RoundEven, _) => map1(w, s, one(f32::round_ties_even)),
        (Calc::Floor, _) => map1(w, s, one(f32::floor)),
        (Calc::Exp2, _) => map1(w, s, one(f32::exp2)),
        (Calc::Log2, _) => map1(w, s, one(f32::log2)),
        (Calc::Reciprocal, _) => map1(w, s, one(|a| 1.0 / a)),
        (Calc::ReciprocalSqrt, _) => map1(w, s, one(|a| 1.0 / a.sqrt())),
        (Calc::Sqrt, _) => map1(w, s, one(f32::sqrt)),
        (Calc::LoadExponent, _) => {
            map2(w, s, |a: F16, b: i16| F16(load_exponent(a.0.into(), b.into()) as f32));
        }
        (_, nans) => return rare_f16(w, s, calc, nans),
    }
    Ok(())
}

/// f16 instructions that are rare in hot loops.
#[inline(never)]
fn rare_f16(w: &mut Wave, s: &Step, calc: Calc, nans: Nans) -> Result<(), Stopped> {
    let three = |f: fn(Nans, f32, f32, f32) -> f32| move |a: F16, b: F16, c: F16| F16(f(nans, a.0, b.0, c.0));
    match calc {
        Calc::MulAdd => rounded::multiply_add(w, s, calc, Element::F16),
        Calc::Min3 => map3(w, s, three(|n, a, b, c| lesser(n, lesser(n, a, b), c))),
        Calc::Max3 => map3(w, s, three(|n, a, b, c| greater(n, greater(n, a, b), c))),
        Calc::Med3 => map3(w, s, three(median)),
        Calc::Sin => map1(w, s, |a: F16| F16(special::sine(a.0))),
        Calc::Cos => map1(w, s, |a: F16| F16(special::cosine(a.0))),
        Calc::FrexpExponent => map1(w, s, |a: F16| frexp(a.0.into()).1 as i16),
        Calc::FrexpMantissa => map1(w, s, |a: F16| F16(frexp(a.0.into()).0 as f32)),
        Calc::DivFixup => map3(w, s, three(|_, a, b, c| division::fixup_f16(a, b, c))),
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// f16 fused multiply-add as an f32 that still rounds to the right f16. The f64 sum is exact wherever it
/// matters for rounding: product and addend span less than 53 bits there.
pub(super) fn fma_f16(a: f32, b: f32, c: f32) -> f32 {
    from_f16(f64_to_f16(f64::from(a) * f64::from(b) + f64::from(c)))
}

#[inline(always)]
pub(super) fn float64(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> {
    if w.mode & ROUND_64 != 0 && rounded::calculate(w, s, calc, Element::F64) {
        return Ok(());
    }
    let nans = nans(w);
    match calc {
        Calc::Add => map2(w, s, |a: f64, b: f64| a + b),
        Calc::Mul => map2(w, s, |a: f64, b: f64| a * b),
        Calc::Fma => map3(w, s, f64::mul_add),
        Calc::Min => map2(w, s, |a: f64, b: f64| lesser(nans, a, b)),
        Calc::Max => map2(w, s, |a: f64, b: f64| greater(nans, a, b)),
        Calc::Fract => map1(w, s, |a: f64| {
            let (fraction, below_one) = (a - a.floor(), f64::from_bits(0x3fef_ffff_ffff_ffff));
            if fraction > below_one { below_one } else { fraction }
        }),
        Calc::FrexpExponent => map1(w, s, |a: f64| frexp(a).1),
        Calc::FrexpMantissa => map1(w, s, |a: f64| frexp(a).0),
        Calc::TrigPreop => map2(w, s, special::trig_preop),
        Calc::Trunc => map1(w, s, f64::trunc),
        Calc::Ceil => map1(w, s, f64::ceil),
        Calc::RoundEven => map1(w, s, f64::round_ties_even),
        Calc::Floor => map1(w, s, f64::floor),
        Calc::Reciprocal => map1(w, s, |a: f64| 1.0 / a),
        Calc::ReciprocalSqrt => map1(w, s, |a: f64| 1.0 / a.sqrt()),
        Calc::Sqrt => map1(w, s, f64::sqrt),
        Calc::LoadExponent => map2(w, s, |a: f64, b: i32| load_exponent(a, b)),
        Calc::DivFixup => map3(w, s, division::fixup_f64),
        Calc::DivFmas => {
            let scaled = w.pair(VCC);
            let (a, b, c) = (f64::read(w, s, 1, 0), f64::read(w, s, 2, 1), f64::read(w, s, 3, 2));
            let values = std::array::from_fn(|l| match scaled >> l & 1 {
                0 => a[l].mul_add(b[l], c[l]),
                _ => division::fmas_f64(a[l], b[l], c[l]),
            });
            f64::write(w, s, values);
        }
        _ => return Err(unsupported()),
    }
    Ok(())
}
