//! Vector ALU: operations on one value per lane, carries, selects and moves between lanes.

use crate::codegen::isa::{Calc, Element, Half, Meaning};

use super::super::error::{FaultKind, Stopped};
use super::super::numerics::{f64_to_f16, flush, from_f16, load_exponent, maximum, median, minimum};
use super::super::program::{Place, Step};
use super::super::wave::{LANES, VCC, Wave};
use super::division;
use super::host;
use super::lanes::{F16, Lane, map1, map2, map3};
use super::salu::leading_sign;

#[cold]
pub(super) fn unsupported() -> Stopped {
    Stopped::wave(FaultKind::Unsupported("this vector operation"))
}

/// Executes one `Vector` instruction. Each type has a function of its own, as the frame of one for all would be large.
pub(super) fn calculate(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    use Element::*;
    if s.modifiers.has_clamp() && !matches!(element, F16 | F32 | F64) {
        return saturating(w, s, calc, element);
    }
    match element {
        F32 => host::float32(w, s, calc),
        F16 => host::float16(w, s, calc),
        F64 => host::float64(w, s, calc),
        B64 | U64 | I64 => host::wide(w, s, calc, element),
        B16 | U16 | I16 => host::short(w, s, calc, element),
        _ => host::integer(w, s, calc, element),
    }
}

/// Integer sums that stop at the ends of their range.
fn saturating(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    match (calc, element) {
        (Calc::Add, Element::U32) => map2(w, s, u32::saturating_add),
        (Calc::Sub, Element::U32) => map2(w, s, u32::saturating_sub),
        (Calc::SubRev, Element::U32) => map2(w, s, |a: u32, b: u32| b.saturating_sub(a)),
        (Calc::Add, Element::U16) => map2(w, s, u16::saturating_add),
        (Calc::Sub, Element::U16) => map2(w, s, u16::saturating_sub),
        (Calc::SubRev, Element::U16) => map2(w, s, |a: u16, b: u16| b.saturating_sub(a)),
        _ => return Err(Stopped::wave(FaultKind::Unsupported("clamp on this integer operation"))),
    }
    Ok(())
}

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
        (Calc::SumAbsDiff, _) => map3(w, s, |a: u32, b: u32, c: u32| {
            let byte = |v: u32, i: u32| v >> (8 * i) & 0xff;
            (0..4).fold(c, |sum, i| sum.wrapping_add(byte(a, i).abs_diff(byte(b, i))))
        }),
        _ => return Err(unsupported()),
    }
    Ok(())
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
        Calc::ShiftLeftAdd => map3(w, s, |a: u64, b: u32, c: u64| (a << (b & 63)).wrapping_add(c)),
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// Sources and results of the approximating f32 instructions are never denormal (LLVM, SIISelLowering.cpp, lowers `exp2`,
/// `log2`, `sqrt` and division around that).
#[inline(always)]
fn without_denormals(f: impl Fn(f32) -> f32) -> impl Fn(f32) -> f32 {
    move |a| flush(f(flush(a)))
}

/// Sine of a number of revolutions.
fn sine(a: f32) -> f32 {
    (f64::from(a - a.trunc()) * std::f64::consts::TAU).sin() as f32
}

/// Cosine of a number of revolutions.
fn cosine(a: f32) -> f32 {
    (f64::from(a - a.trunc()) * std::f64::consts::TAU).cos() as f32
}

fn fract(a: f32) -> f32 {
    (a - a.floor()).min(f32::from_bits(0x3f7f_ffff))
}

#[inline(always)]
pub(super) fn float32(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> {
    match calc {
        Calc::Add => map2(w, s, |a: f32, b: f32| a + b),
        Calc::Sub => map2(w, s, |a: f32, b: f32| a - b),
        Calc::SubRev => map2(w, s, |a: f32, b: f32| b - a),
        Calc::Mul => map2(w, s, |a: f32, b: f32| a * b),
        Calc::MulAdd => map3(w, s, |a: f32, b: f32, c: f32| a * b + c),
        Calc::Fma => map3(w, s, f32::mul_add),
        Calc::Min => map2(w, s, minimum::<f32>),
        Calc::Max => map2(w, s, maximum::<f32>),
        Calc::Min3 => map3(w, s, |a: f32, b, c| minimum(minimum(a, b), c)),
        Calc::Max3 => map3(w, s, |a: f32, b, c| maximum(maximum(a, b), c)),
        Calc::Med3 => map3(w, s, median),
        Calc::Fract => map1(w, s, fract),
        Calc::Trunc => map1(w, s, f32::trunc),
        Calc::Ceil => map1(w, s, f32::ceil),
        Calc::RoundEven => map1(w, s, f32::round_ties_even),
        Calc::Floor => map1(w, s, f32::floor),
        Calc::Exp2 => map1(w, s, without_denormals(|a| f64::from(a).exp2() as f32)),
        Calc::Log2 => map1(w, s, without_denormals(|a| f64::from(a).log2() as f32)),
        Calc::Reciprocal => map1(w, s, without_denormals(|a| 1.0 / a)),
        Calc::ReciprocalSqrt => map1(w, s, without_denormals(|a| (1.0 / f64::from(a).sqrt()) as f32)),
        Calc::Sqrt => map1(w, s, without_denormals(f32::sqrt)),
        Calc::Sin => map1(w, s, sine),
        Calc::Cos => map1(w, s, cosine),
        Calc::LoadExponent => map2(w, s, |a: f32, b: i32| load_exponent(a.into(), b) as f32),
        Calc::DivFixup => map3(w, s, division::fixup_f32),
        Calc::DivFmas => {
            let scaled = w.pair(VCC);
            let (a, b, c) = (f32::read(w, s, 1, 0), f32::read(w, s, 2, 1), f32::read(w, s, 3, 2));
            let values = std::array::from_fn(|l| match scaled >> l & 1 {
                0 => a[l].mul_add(b[l], c[l]),
                _ => division::fmas_f32(a[l], b[l], c[l]),
            });
            f32::write(w, s, values);
        }
        _ => return Err(unsupported()),
    }
    Ok(())
}

#[inline(always)]
pub(super) fn float16(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> {
    let one = |f: fn(f32) -> f32| move |a: F16| F16(f(a.0));
    match calc {
        Calc::Add => map2(w, s, |a: F16, b: F16| F16(a.0 + b.0)),
        Calc::Sub => map2(w, s, |a: F16, b: F16| F16(a.0 - b.0)),
        Calc::SubRev => map2(w, s, |a: F16, b: F16| F16(b.0 - a.0)),
        Calc::Mul => map2(w, s, |a: F16, b: F16| F16(a.0 * b.0)),
        Calc::Fma => map3(w, s, |a: F16, b: F16, c: F16| F16(fma_f16(a.0, b.0, c.0))),
        Calc::Min => map2(w, s, |a: F16, b: F16| F16(minimum(a.0, b.0))),
        Calc::Max => map2(w, s, |a: F16, b: F16| F16(maximum(a.0, b.0))),
        Calc::Fract => map1(w, s, |a: F16| F16((a.0 - a.0.floor()).min(from_f16(0x3bff)))),
        Calc::Trunc => map1(w, s, one(f32::trunc)),
        Calc::Ceil => map1(w, s, one(f32::ceil)),
        Calc::RoundEven => map1(w, s, one(f32::round_ties_even)),
        Calc::Floor => map1(w, s, one(f32::floor)),
        Calc::Exp2 => map1(w, s, one(f32::exp2)),
        Calc::Log2 => map1(w, s, one(f32::log2)),
        Calc::Reciprocal => map1(w, s, one(|a| 1.0 / a)),
        Calc::ReciprocalSqrt => map1(w, s, one(|a| 1.0 / a.sqrt())),
        Calc::Sqrt => map1(w, s, one(f32::sqrt)),
        Calc::Sin => map1(w, s, one(sine)),
        Calc::Cos => map1(w, s, one(cosine)),
        Calc::LoadExponent => {
            map2(w, s, |a: F16, b: i16| F16(load_exponent(a.0.into(), b.into()) as f32));
        }
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// f16 fused multiply-add as an f32 that still rounds to the right f16. The f64 sum is exact wherever its place against a
/// rounding boundary matters: product and addend span less than 53 bits there.
pub(super) fn fma_f16(a: f32, b: f32, c: f32) -> f32 {
    from_f16(f64_to_f16(f64::from(a) * f64::from(b) + f64::from(c)))
}

#[inline(always)]
pub(super) fn float64(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> {
    match calc {
        Calc::Add => map2(w, s, |a: f64, b: f64| a + b),
        Calc::Mul => map2(w, s, |a: f64, b: f64| a * b),
        Calc::Fma => map3(w, s, f64::mul_add),
        Calc::Min => map2(w, s, minimum::<f64>),
        Calc::Max => map2(w, s, maximum::<f64>),
        Calc::Fract => map1(w, s, |a: f64| (a - a.floor()).min(f64::from_bits(0x3fef_ffff_ffff_ffff))),
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

/// Executes one of the vector instructions that are not lane-wise arithmetic.
pub(super) fn move_or_carry(w: &mut Wave, s: &Step, meaning: Meaning) -> Result<(), Stopped> {
    let [d, a, b, c, carry_in, _] = s.operands;
    match meaning {
        Meaning::VectorNop => {}
        Meaning::ReadFirstLane => {
            let lane = if w.exec() == 0 { 0 } else { w.exec().trailing_zeros() as usize };
            let value = w.lanes(a)[lane];
            w.set_scalar(d, value);
        }
        Meaning::ReadLane => {
            let value = w.lanes(a)[w.scalar(b) as usize % LANES];
            w.set_scalar(d, value);
        }
        Meaning::WriteLane => {
            let (value, lane) = (w.scalar(a), w.scalar(b) as usize % LANES);
            if let Some(row) = d.row() {
                w.rows[row][lane] = value;
            }
        }
        Meaning::Swap => {
            let (x, y) = (w.lanes(d), w.lanes(a));
            w.set_lanes(d, &y);
            w.set_lanes(a, &x);
        }
        Meaning::SelectLane => {
            let (no, yes, mask) = (signed(w, s, a, 0), signed(w, s, b, 1), w.scalar_wide(c));
            w.set_lanes(d, &std::array::from_fn(|l| if mask >> l & 1 != 0 { yes[l] } else { no[l] }));
        }
        Meaning::CarryOut(calc) => carry(w, s, calc, b, c, 0)?,
        Meaning::CarryInOut(calc) => carry(w, s, calc, b, c, w.scalar_wide(carry_in))?,
        Meaning::MulAddWide(element) => {
            let (x, y, z) = (w.lanes(b), w.lanes(c), w.lanes_wide(carry_in));
            let mut carries = 0;
            let values = std::array::from_fn(|l| {
                let product = if element == Element::I32 {
                    (i64::from(x[l] as i32) * i64::from(y[l] as i32)) as u64
                } else {
                    u64::from(x[l]) * u64::from(y[l])
                };
                let (sum, unsigned) = product.overflowing_add(z[l]);
                let overflow = if element == Element::I32 {
                    (product as i64).overflowing_add(z[l] as i64).1
                } else {
                    unsigned
                };
                carries |= u64::from(overflow) << l;
                sum
            });
            w.set_lanes_wide(d, &values);
            w.set_scalar_wide(a, carries & w.exec());
        }
        Meaning::MaskedBitCount(half) => {
            let (mask, base) = (w.lanes(a), w.lanes(b));
            let below = |l: usize| match half {
                Half::Low => ((1u64 << l.min(32)) - 1) as u32,
                Half::High => ((1u64 << l.saturating_sub(32)) - 1) as u32,
            };
            let values = std::array::from_fn(|l| (mask[l] & below(l)).count_ones().wrapping_add(base[l]));
            w.set_lanes(d, &values);
        }
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// A 32-bit source whose sign the modifiers may change.
fn signed(w: &Wave, s: &Step, place: Place, source: u32) -> [u32; LANES] {
    let clear = if s.modifiers.get_abs() >> source & 1 != 0 { 0x7fff_ffff } else { u32::MAX };
    let flip = if s.modifiers.get_neg() >> source & 1 != 0 { 0x8000_0000 } else { 0 };
    w.lanes(place).map(|v| v & clear ^ flip)
}

/// Sum or difference with a carry per lane in and out; inactive lanes carry nothing out.
fn carry(w: &mut Wave, s: &Step, calc: Calc, a: Place, b: Place, carries: u64) -> Result<(), Stopped> {
    let (x, y) = (w.lanes(a), w.lanes(b));
    let (x, y) = if calc == Calc::SubRev { (y, x) } else { (x, y) };
    let adds = match calc {
        Calc::Add => true,
        Calc::Sub | Calc::SubRev => false,
        _ => return Err(unsupported()),
    };
    let clamp = s.modifiers.has_clamp();
    let mut out = 0;
    let values = std::array::from_fn(|l| {
        let carry = carries >> l & 1;
        let (x, y) = (u64::from(x[l]), u64::from(y[l]));
        let result = if adds { x + y + carry } else { x.wrapping_sub(y).wrapping_sub(carry) };
        let over = result >> 32 != 0;
        out |= u64::from(over) << l;
        if clamp && over { if adds { u32::MAX } else { 0 } } else { result as u32 }
    });
    w.set_lanes(s.operands[0], &values);
    w.set_scalar_wide(s.operands[1], out & w.exec());
    Ok(())
}
