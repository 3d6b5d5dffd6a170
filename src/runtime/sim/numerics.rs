//! Number formats and the rounding of single operations, as the vector unit does them.
//!
//! Everything is written as arithmetic and selects on plain integers and floats, so that loops over lanes
//! vectorise. Rounding is to nearest even throughout; [`exact`](super::exact) has the other modes.

use crate::float16::f16;

use super::formats::{FloatFormat, Top};

/// f16 bits (in the low half; the high half is ignored) to f32. Exact; denormals are kept.
#[inline(always)]
pub(super) fn from_f16(bits: u32) -> f32 {
    // With the exponent field in place the value is 2^112 too small, which holds for denormals as well.
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    let special = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(magnitude.to_bits() | special | (bits & 0x8000) << 16)
}

/// f32 to f16 bits, to nearest even.
#[inline(always)]
pub(super) fn to_f16(value: f32) -> u32 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Normal results: move the exponent's bias and round at bit 13.
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
    // Denormal results are multiples of 2^-24, which is the spacing of f32 in [0.5, 1).
    let denormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let small = if magnitude < (127 - 14) << 23 { denormal } else { normal };
    // 65520 and up round to infinity.
    let finite = if magnitude >= 0x477f_f000 { 0x7c00 } else { small };
    let all = if magnitude > 0x7f80_0000 { 0x7e00 | magnitude >> 13 & 0x1ff } else { finite };
    all | bits >> 16 & 0x8000
}

/// f64 to f16 bits with one rounding.
pub(super) fn f64_to_f16(value: f64) -> u32 {
    u32::from(f16::from_f64(value).to_bits())
}

/// f32 to f16 bits towards zero; finite values stay finite.
pub(super) fn to_f16_toward_zero(value: f32) -> u32 {
    let nearest = to_f16(value);
    let back = from_f16(nearest);
    // One step down in magnitude if rounding went up; infinity from a finite value becomes the largest
    // number.
    if back.abs() > value.abs() { nearest - 1 } else { nearest }
}

/// bf16 bits (low half) to f32.
#[inline(always)]
pub(super) fn from_bf16(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

/// The 8-bit floats of gfx942 (FNUZ: one zero, 0x80 is NaN, no infinities) to f32: `exponent` bits of
/// exponent, bias `2^(exponent - 1)`.
#[inline(always)]
pub(super) fn from_fnuz8(bits: u32, exponent: u32) -> f32 {
    let mantissa = 7 - exponent;
    let bias = 1 << (exponent - 1);
    let magnitude =
        f32::from_bits((bits & 0x7f) << (23 - mantissa)) * f32::from_bits((127 + 127 - bias) << 23);
    let value = f32::from_bits(magnitude.to_bits() | (bits & 0x80) << 24);
    if bits & 0xff == 0x80 { f32::NAN } else { value }
}

/// Bits of an 8-bit or smaller float (higher bits are ignored) to f32. Exact.
#[inline(always)]
pub(super) fn from_small(format: &FloatFormat, bits: u32) -> f32 {
    let sign = format.sign(true) as u32;
    let magnitude = bits & (sign - 1);
    let scale = f32::from_bits(((127 + 127 - format.bias) as u32) << 23);
    let value = f32::from_bits(magnitude << (23 - format.mantissa_bits)) * scale;
    let value = if bits & sign != 0 { -value } else { value };
    let negative_zero = magnitude == 0 && bits & sign != 0;
    match format.top {
        Top::Finite => value,
        Top::MinusZeroIsNan if negative_zero => f32::NAN,
        Top::MinusZeroIsNan => value,
        _ if u64::from(magnitude) <= format.largest() => value,
        Top::Ieee if u64::from(magnitude) == format.largest() + 1 => f32::INFINITY.copysign(value),
        _ => f32::NAN,
    }
}

/// Rounds an f32 to the 10 bits of mantissa of xf32.
#[inline(always)]
pub(super) fn to_xf32(value: f32) -> f32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff;
    f32::from_bits(if value.is_nan() { bits } else { rounded })
}

/// Denormals to zeros of the same sign.
#[inline(always)]
pub(super) fn flush(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

/// Properties of a type that the vector unit's float operations need.
pub(super) trait Float: Copy + PartialOrd {
    /// Quiet NaN stays, signalling NaN becomes quiet.
    fn quiet(self) -> Self;
    /// NaN of any kind.
    fn is_nan(self) -> bool;
    /// Signalling NaN.
    fn is_signalling(self) -> bool;
    /// Sign bit set.
    fn is_negative(self) -> bool;
}

macro_rules! float {
    ($type:ident, $quiet:expr) => {
        impl Float for $type {
            #[inline(always)]
            fn quiet(self) -> Self {
                if <$type>::is_nan(self) { <$type>::from_bits(self.to_bits() | $quiet) } else { self }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }
            #[inline(always)]
            fn is_signalling(self) -> bool {
                <$type>::is_nan(self) && self.to_bits() & $quiet == 0
            }
            #[inline(always)]
            fn is_negative(self) -> bool {
                self.is_sign_negative()
            }
        }
    };
}

float!(f32, 1 << 22);
float!(f64, 1 << 51);

/// Whether minimum and maximum follow IEEE 754-2008: MODE's IEEE bit.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Nans {
    /// Any NaN loses against a number.
    Lose,
    /// A quiet one loses, a signalling one is returned quiet.
    Signal,
}

/// Lesser of two, -0 below +0 (CDNA4 ISA guide, V_MIN_F32).
#[inline(always)]
pub(super) fn lesser<T: Float>(nans: Nans, a: T, b: T) -> T {
    let smaller = if a < b || a == b && a.is_negative() { a } else { b };
    select(nans, a, b, smaller)
}

/// Greater of two, -0 below +0 (CDNA4 ISA guide, V_MAX_F32).
#[inline(always)]
pub(super) fn greater<T: Float>(nans: Nans, a: T, b: T) -> T {
    let larger = if a > b || a == b && !a.is_negative() { a } else { b };
    select(nans, a, b, larger)
}

/// Lesser of two; a NaN loses against a number.
#[inline(always)]
pub(super) fn minimum<T: Float>(a: T, b: T) -> T {
    lesser(Nans::Lose, a, b)
}

/// Greater of two; a NaN loses against a number.
#[inline(always)]
pub(super) fn maximum<T: Float>(a: T, b: T) -> T {
    greater(Nans::Lose, a, b)
}

/// `ordered`, unless one of both is a NaN.
#[inline(always)]
fn select<T: Float>(nans: Nans, a: T, b: T, ordered: T) -> T {
    let number = if a.is_nan() { b } else { ordered };
    let number = if b.is_nan() && !a.is_nan() { a } else { number };
    match nans {
        Nans::Lose => number,
        Nans::Signal => {
            let number = if b.is_signalling() { b.quiet() } else { number };
            if a.is_signalling() { a.quiet() } else { number }
        }
    }
}

/// Lesser of two, NaN if either is (IEEE 754-2019 minimum).
pub(super) fn minimum_or_nan<T: Float>(a: T, b: T) -> T {
    if a.is_nan() || b.is_nan() { either_nan(a, b) } else { lesser(Nans::Lose, a, b) }
}

/// Greater of two, NaN if either is (IEEE 754-2019 maximum).
pub(super) fn maximum_or_nan<T: Float>(a: T, b: T) -> T {
    if a.is_nan() || b.is_nan() { either_nan(a, b) } else { greater(Nans::Lose, a, b) }
}

fn either_nan<T: Float>(a: T, b: T) -> T {
    if a.is_nan() { a.quiet() } else { b.quiet() }
}

/// Middle of three; with a NaN among them the least (CDNA3 ISA guide, V_MED3_F32).
pub(super) fn median(nans: Nans, a: f32, b: f32, c: f32) -> f32 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return lesser(nans, lesser(nans, a, b), c);
    }
    greater(nans, lesser(nans, a, b), lesser(nans, greater(nans, a, b), c))
}

/// Exponent field of an f64.
pub(super) fn exponent_f64(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7ff) as i32
}

/// Exponent field of an f32.
pub(super) fn exponent_f32(value: f32) -> i32 {
    (value.to_bits() >> 23 & 0xff) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn f16_to_f32_is_exact_for_every_value() {
        for bits in 0..=u16::MAX {
            let expected = f16::from_bits(bits).to_f32();
            let got = from_f16(u32::from(bits));
            assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "{bits:#x}");
        }
    }

    #[test]
    fn f32_to_f16_rounds_to_nearest_even() {
        for step in 0..0x1_0000u32 {
            for low in [0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x7fff, 0x8000] {
                let value = f32::from_bits(step << 16 | low);
                let expected = f16::from_f32(value);
                let got = to_f16(value);
                if value.is_nan() {
                    assert!(f16::from_bits(got as u16).is_nan());
                } else {
                    assert_eq!(got, u32::from(expected.to_bits()), "{value:e}");
                }
            }
        }
    }

    #[test]
    fn f16_toward_zero_never_grows() {
        for value in
            [1.0f32, 1.0009, -1.0009, 65519.9, 70000.0, -1e30, 1e-8, 3.0e-8, 0.1, 2.0f32.powi(-24) * 1.75]
        {
            let got = from_f16(to_f16_toward_zero(value));
            assert!(got.abs() <= value.abs() && got.is_finite(), "{value:e} -> {got:e}");
            let next = from_f16(to_f16_toward_zero(value) + 1);
            assert!(next.abs() > value.abs(), "{value:e} -> {got:e}");
        }
        assert_eq!(to_f16_toward_zero(f32::INFINITY), 0x7c00);
    }

    #[test]
    fn fnuz_formats() {
        assert_eq!(from_fnuz8(0x7f, 4), 240.0);
        assert_eq!(from_fnuz8(0x7f, 5), 57344.0);
        assert_eq!(from_fnuz8(0x40, 4), 1.0);
        assert_eq!(from_fnuz8(0xc0, 5), -1.0);
        assert_eq!(from_fnuz8(0x01, 4), 2.0f32.powi(-10));
        assert_eq!(from_fnuz8(0x01, 5), 2.0f32.powi(-17));
        assert!(from_fnuz8(0x80, 4).is_nan() && from_fnuz8(0x80, 5).is_nan());
        assert_eq!(from_fnuz8(0, 4).to_bits(), 0);
    }

    #[test]
    fn small_floats_are_those_of_their_format() {
        use super::super::formats::*;
        for format in [&FP8_OCP, &BF8_OCP, &FP8_FNUZ, &BF8_FNUZ, &FP6, &BF6, &FP4] {
            for bits in 0..1u32 << format.bits() {
                let (got, expected) = (from_small(format, bits), format.decode(bits.into()) as f32);
                let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
                assert!(same, "{format:?} {bits:#x}: {got} {expected}");
            }
        }
    }

    #[test]
    fn bf16_and_xf32() {
        assert_eq!(from_bf16(u32::from(bf16::from_f32(-1.5).to_bits())), -1.5);
        assert_eq!(to_xf32(1.0 + 2.0f32.powi(-10)), 1.0 + 2.0f32.powi(-10));
        assert_eq!(to_xf32(1.0 + 2.0f32.powi(-11)), 1.0);
        assert_eq!(to_xf32(1.0 + 1.5 * 2.0f32.powi(-10)), 1.0 + 2.0 * 2.0f32.powi(-10));
    }

    #[test]
    fn minimum_and_maximum_order_zeros_and_ignore_quiet_nans() {
        for nans in [Nans::Lose, Nans::Signal] {
            let (min, max) = (lesser::<f32>, greater::<f32>);
            assert!(min(nans, 0.0, -0.0).is_sign_negative() && min(nans, -0.0, 0.0).is_sign_negative());
            assert!(max(nans, 0.0, -0.0).is_sign_positive() && max(nans, -0.0, 0.0).is_sign_positive());
            assert_eq!((min(nans, f32::NAN, 2.0), max(nans, 2.0, f32::NAN)), (2.0, 2.0));
            assert_eq!(median(nans, 3.0, 1.0, 2.0), 2.0);
        }
        let signalling = f32::from_bits(0x7f80_0001);
        assert_eq!(lesser(Nans::Lose, signalling, 2.0), 2.0);
        assert_eq!(lesser(Nans::Signal, signalling, 2.0).to_bits(), 0x7fc0_0001);
        assert_eq!(greater(Nans::Signal, 2.0, signalling).to_bits(), 0x7fc0_0001);
        assert!(minimum_or_nan(f32::NAN, 1.0).is_nan() && maximum_or_nan(1.0, f32::NAN).is_nan());
        assert_eq!((minimum_or_nan(1.0, -1.0), maximum_or_nan(-0.0, 0.0)), (-1.0, 0.0));
    }
}
