//! The float formats of the chips as data: field widths, bias, and what the top of the range means.

use crate::codegen::isa::{Arch, Element};

use super::powers::load_exponent;

/// What the largest exponent stands for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Top {
    /// Infinity and NaN (IEEE 754).
    Ieee,
    /// Numbers; all ones is NaN (OCP fp8).
    OnesAreNan,
    /// Numbers; the bits of minus zero are NaN, and there is one zero (FNUZ, "NANOO").
    MinusZeroIsNan,
    /// Numbers alone (OCP fp6, bf6 and fp4).
    Finite,
}

/// A float format: sign, exponent, mantissa.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct FloatFormat {
    /// Bits of the exponent.
    pub exponent_bits: u32,
    /// Bits of the mantissa that are stored.
    pub mantissa_bits: u32,
    /// The bias of the exponent field.
    pub bias: i32,
    /// The largest exponent.
    pub top: Top,
}

const fn format(exponent_bits: u32, mantissa_bits: u32, bias: i32, top: Top) -> FloatFormat {
    FloatFormat { exponent_bits, mantissa_bits, bias, top }
}

pub(super) const F64: FloatFormat = format(11, 52, 1023, Top::Ieee);
pub(super) const F32: FloatFormat = format(8, 23, 127, Top::Ieee);
pub(super) const F16: FloatFormat = format(5, 10, 15, Top::Ieee);
pub(super) const BF16: FloatFormat = format(8, 7, 127, Top::Ieee);
/// 8-bit floats of gfx950 (OCP 8-bit Floating Point Specification; CDNA4 ISA guide).
pub(super) const FP8_OCP: FloatFormat = format(4, 3, 7, Top::OnesAreNan);
/// See [`FP8_OCP`].
pub(super) const BF8_OCP: FloatFormat = format(5, 2, 15, Top::Ieee);
/// 8-bit floats of gfx942 (CDNA3 ISA guide, "FP8 and BF8").
pub(super) const FP8_FNUZ: FloatFormat = format(4, 3, 8, Top::MinusZeroIsNan);
/// See [`FP8_FNUZ`].
pub(super) const BF8_FNUZ: FloatFormat = format(5, 2, 16, Top::MinusZeroIsNan);
/// OCP Microscaling Formats Specification.
pub(super) const FP6: FloatFormat = format(2, 3, 1, Top::Finite);
/// See [`FP6`].
pub(super) const BF6: FloatFormat = format(3, 2, 3, Top::Finite);
/// See [`FP6`].
pub(super) const FP4: FloatFormat = format(2, 1, 1, Top::Finite);

impl FloatFormat {
    /// Format of elements of that kind on a chip.
    pub(super) fn of(element: Element, arch: Arch) -> Option<&'static FloatFormat> {
        let ocp = arch.has_ocp_floats();
        Some(match element {
            Element::F64 => &F64,
            Element::F32 | Element::F32x2 => &F32,
            Element::F16 | Element::F16x2 => &F16,
            Element::Bf16 | Element::Bf16x2 => &BF16,
            Element::Fp8 if ocp => &FP8_OCP,
            Element::Bf8 if ocp => &BF8_OCP,
            Element::Fp8 => &FP8_FNUZ,
            Element::Bf8 => &BF8_FNUZ,
            Element::Fp6 => &FP6,
            Element::Bf6 => &BF6,
            Element::Fp4 => &FP4,
            _ => return None,
        })
    }

    /// Width in bits.
    pub(super) const fn bits(&self) -> u32 {
        1 + self.exponent_bits + self.mantissa_bits
    }

    /// The sign bit.
    pub(super) const fn sign(&self, negative: bool) -> u64 {
        (negative as u64) << (self.exponent_bits + self.mantissa_bits)
    }

    /// Zero of that sign, if there are two.
    pub(super) fn zero(&self, negative: bool) -> u64 {
        if self.top == Top::MinusZeroIsNan { 0 } else { self.sign(negative) }
    }

    /// The largest finite number.
    pub(super) fn largest(&self) -> u64 {
        let end = self.sign(true);
        match self.top {
            Top::Ieee => end - (1 << self.mantissa_bits) - 1,
            Top::OnesAreNan => end - 2,
            Top::MinusZeroIsNan | Top::Finite => end - 1,
        }
    }

    /// Infinity or its replacement: NaN, or in formats without either the largest number.
    pub(super) fn infinity(&self, negative: bool) -> u64 {
        match self.top {
            Top::Ieee => self.sign(negative) | (self.largest() + 1),
            Top::Finite => self.sign(negative) | self.largest(),
            _ => self.nan(negative),
        }
    }

    /// A quiet NaN, or in formats without one the largest number.
    pub(super) fn nan(&self, negative: bool) -> u64 {
        match self.top {
            Top::Ieee => self.infinity(negative) | 1 << (self.mantissa_bits - 1),
            Top::OnesAreNan => self.sign(negative) | (self.largest() + 1),
            Top::MinusZeroIsNan => self.sign(true),
            Top::Finite => self.sign(negative) | self.largest(),
        }
    }

    /// The value of bits of this format; higher bits are ignored. Exact.
    pub(super) fn decode(&self, bits: u64) -> f64 {
        let bits = bits & (u64::MAX >> (64 - self.bits()));
        let negative = bits & self.sign(true) != 0;
        let magnitude = bits & !self.sign(true);
        let special = match self.top {
            Top::Ieee if magnitude == self.largest() + 1 => Some(f64::INFINITY),
            Top::MinusZeroIsNan if bits == self.sign(true) => Some(f64::NAN),
            Top::Ieee | Top::OnesAreNan if magnitude > self.largest() => Some(f64::NAN),
            _ => None,
        };
        let value = special.unwrap_or_else(|| {
            let field = (magnitude >> self.mantissa_bits) as i32;
            let fraction = magnitude & ((1 << self.mantissa_bits) - 1);
            let mantissa = if field == 0 { fraction } else { fraction | 1 << self.mantissa_bits };
            let power = field.max(1) - self.bias - self.mantissa_bits as i32;
            load_exponent(mantissa as f64, power)
        });
        if negative { -value } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exact::{Overflow, Rounding};
    use super::*;

    fn nearest(format: &FloatFormat, value: f64) -> u64 {
        format.encode(value, 0, Rounding::NearestEven, Overflow::Special)
    }

    const ALL: [&FloatFormat; 9] = [&F16, &BF16, &FP8_OCP, &BF8_OCP, &FP8_FNUZ, &BF8_FNUZ, &FP6, &BF6, &FP4];

    #[test]
    fn every_value_survives() {
        for format in ALL {
            for bits in 0..1u64 << format.bits() {
                let value = format.decode(bits);
                if !value.is_nan() {
                    assert_eq!(nearest(format, value), bits, "{format:?} {value}");
                }
            }
        }
    }

    #[test]
    fn values_agree_with_the_specifications() {
        let largest = [65504.0, 3.3895313892515355e38, 448.0, 57344.0, 240.0, 57344.0, 7.5, 28.0, 6.0];
        let least = [-24, -133, -9, -16, -10, -17, -3, -4, -1];
        for (format, (largest, least)) in ALL.iter().zip(largest.into_iter().zip(least)) {
            assert_eq!(format.decode(format.largest()), largest, "{format:?}");
            assert_eq!(format.decode(1), 2.0f64.powi(least), "{format:?}");
        }
        assert_eq!((F16.nan(false), FP8_OCP.nan(true), BF8_FNUZ.nan(false)), (0x7e00, 0xff, 0x80));
        assert_eq!(
            (F16.infinity(true), FP8_OCP.infinity(false), BF8_OCP.infinity(true)),
            (0xfc00, 0x7f, 0xfc)
        );
        assert!(FP8_FNUZ.decode(0x80).is_nan() && BF8_OCP.decode(0x7d).is_nan());
    }

    #[test]
    fn overflow_and_ties() {
        assert_eq!(nearest(&FP8_OCP, 464.0), 0x7e, "half way to 480 goes to the even 448");
        assert_eq!(nearest(&FP8_OCP, 465.0), 0x7f);
        assert_eq!(nearest(&FP8_FNUZ, 247.0), 0x7f);
        assert_eq!(nearest(&FP8_FNUZ, 248.0), 0x80);
        assert_eq!(nearest(&FP4, 5.0), 6, "a tie between 4 and 6");
        assert_eq!(nearest(&FP4, 2.5), 4);
        assert_eq!(nearest(&FP4, -100.0), 0xf);
        assert_eq!(FP8_OCP.encode(1e9, 0, Rounding::NearestEven, Overflow::Saturates), 0x7e);
        assert_eq!(nearest(&FP8_FNUZ, -1e-9), 0, "there is one zero");
    }

    #[test]
    fn random_bits_round_up_as_often_as_the_rest_is_large() {
        // 1 + 3/4 of a unit of fp8.
        let value = 1.0 + 0.75 / 8.0;
        let ups = (0..16u32)
            .filter(|step| {
                FP8_OCP.encode(value, 0, Rounding::Stochastic(step << 28), Overflow::Special) == 0x39
            })
            .count();
        assert_eq!(ups, 12);
    }
}
