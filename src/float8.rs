//! The 8-bit floats as Rust values. The names say how many bits are exponent and fraction, and which values
//! there are: `f8e4m3fnuz` and `f8e5m2fnuz` have finite values, one NaN (0x80) and one zero; `f8e4m3fn` has
//! finite values, two zeros and two NaNs; `f8e5m2` has infinities as IEEE's formats do. The first two are
//! what gfx942 computes with, the last two are those of OCP's "8-bit floating point specification", which
//! gfx950 computes with. `f8e8m0` is the scale of OCP's "Microscaling formats": a power of two, without a
//! sign and without a zero.
//!
//! They are storage, as [`f16`](struct@crate::prelude::f16) is: widen them to `f32` to compute. Every
//! conversion rounds once, to nearest even. What is too large becomes an infinity where there is one, and
//! otherwise a NaN. For `f8e8m0` the middle between two powers of two becomes the larger one, as the
//! significand of both is odd; what lies below the smallest one, zero among it, becomes that one, and what is
//! negative becomes a NaN.

use crate::float16::rounded_magnitude;

/// What the largest encodings of a format stand for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Float8Specials {
    /// An infinity, and NaNs above it.
    Infinities,
    /// One NaN of each sign.
    SignedNan,
    /// Numbers; the negative zero is the NaN.
    NegativeZero,
    /// One NaN; there is no sign, and the exponent of zero is one like the others.
    UnsignedNan,
}

/// A format.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Float8Format {
    /// Bits of the fraction.
    pub(crate) fraction: u32,
    /// The bias of the exponent.
    pub(crate) bias: u32,
    /// What is not a number.
    pub(crate) specials: Float8Specials,
}

/// The format of [`f8e4m3fnuz`].
pub(crate) const E4M3FNUZ: Float8Format =
    Float8Format { fraction: 3, bias: 8, specials: Float8Specials::NegativeZero };
/// The format of [`f8e5m2fnuz`].
pub(crate) const E5M2FNUZ: Float8Format =
    Float8Format { fraction: 2, bias: 16, specials: Float8Specials::NegativeZero };
/// The format of [`f8e4m3fn`].
pub(crate) const E4M3FN: Float8Format =
    Float8Format { fraction: 3, bias: 7, specials: Float8Specials::SignedNan };
/// The format of [`f8e5m2`].
pub(crate) const E5M2: Float8Format =
    Float8Format { fraction: 2, bias: 15, specials: Float8Specials::Infinities };
/// The format of [`f8e8m0`].
pub(crate) const E8M0: Float8Format =
    Float8Format { fraction: 0, bias: 127, specials: Float8Specials::UnsignedNan };

impl Float8Format {
    /// The encoding, without its sign, that everything beyond the largest number has.
    pub(crate) const fn overflow(self) -> u8 {
        match self.specials {
            Float8Specials::Infinities => 0x7c,
            Float8Specials::SignedNan => 0x7f,
            Float8Specials::NegativeZero => 0x80,
            Float8Specials::UnsignedNan => 0xff,
        }
    }

    /// The nearest encoding.
    const fn encode(self, value: f64) -> u8 {
        if matches!(self.specials, Float8Specials::UnsignedNan) {
            // With a bias that is one larger every encoding is that of a normal number, plus one.
            let above = rounded_magnitude(value, self.fraction, self.bias + 1).saturating_sub(1);
            let is_nan = value.is_nan() || value < 0.0 || above > 0xff;
            return if is_nan { 0xff } else { above as u8 };
        }
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let magnitude = if value.is_nan() {
            match self.specials {
                Float8Specials::Infinities => 0x7e,
                Float8Specials::SignedNan => 0x7f,
                Float8Specials::NegativeZero => return 0x80,
                Float8Specials::UnsignedNan => return 0xff,
            }
        } else {
            let nearest = rounded_magnitude(value, self.fraction, self.bias);
            if nearest < self.overflow() as u64 { nearest as u8 } else { self.overflow() }
        };
        match self.specials {
            Float8Specials::NegativeZero if magnitude == 0 || magnitude == 0x80 => magnitude,
            _ => sign | magnitude,
        }
    }

    /// The value of an encoding.
    pub(crate) const fn decode(self, bits: u8) -> f32 {
        if matches!(self.specials, Float8Specials::UnsignedNan) {
            return match bits {
                0 => f32::from_bits(1 << 22),
                0xff => f32::NAN,
                _ => f32::from_bits((bits as u32) << 23),
            };
        }
        let magnitude = bits & 0x7f;
        let value = match (self.specials, bits, magnitude) {
            (Float8Specials::NegativeZero, 0x80, _) | (Float8Specials::SignedNan, _, 0x7f) => f32::NAN,
            (Float8Specials::Infinities, _, 0x7c) => f32::INFINITY,
            (Float8Specials::Infinities, _, 0x7d..) => f32::NAN,
            // With the exponent in place the value is off by a power of two; the product is exact.
            _ => {
                f32::from_bits((magnitude as u32) << (23 - self.fraction))
                    * f32::from_bits((254 - self.bias) << 23)
            }
        };
        if bits & 0x80 != 0 && !value.is_nan() { -value } else { value }
    }
}

macro_rules! float8 {
    ($(#[doc = $about:literal])* $name:ident, $format:ident) => {
        $(#[doc = $about])*
        #[allow(non_camel_case_types)]
        #[derive(Copy, Clone, Default)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The value of an encoding.
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits)
            }

            /// The encoding.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The value of an encoding.
            pub const fn from_le_bytes(bytes: [u8; 1]) -> $name {
                $name(bytes[0])
            }

            /// The encoding.
            pub const fn to_le_bytes(self) -> [u8; 1] {
                [self.0]
            }

            /// The nearest value.
            pub const fn from_f32(value: f32) -> $name {
                $name($format.encode(value as f64))
            }

            /// The nearest value.
            pub const fn from_f64(value: f64) -> $name {
                $name($format.encode(value))
            }

            /// The same value as `f32`.
            pub const fn to_f32(self) -> f32 {
                $format.decode(self.0)
            }

            /// The same value as `f64`.
            pub const fn to_f64(self) -> f64 {
                self.to_f32() as f64
            }

            /// True for a NaN.
            pub const fn is_nan(self) -> bool {
                self.to_f32().is_nan()
            }
        }

        crate::narrow_float::traits_by_f32!($name);
    };
}

float8! {
    /// 4 bits of exponent, 3 of fraction, up to 240; 0x80 is the NaN.
    f8e4m3fnuz, E4M3FNUZ
}

float8! {
    /// 5 bits of exponent, 2 of fraction, up to 57344; 0x80 is the NaN.
    f8e5m2fnuz, E5M2FNUZ
}

float8! {
    /// 4 bits of exponent, 3 of fraction, up to 448; 0x7f and 0xff are NaNs.
    f8e4m3fn, E4M3FN
}

float8! {
    /// 5 bits of exponent, 2 of fraction, up to 57344, with infinities.
    f8e5m2, E5M2
}

float8! {
    /// 8 bits of exponent alone: powers of two from 2^-127 to 2^127; 0xff is the NaN.
    f8e8m0, E8M0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encodings of the numbers that are not negative, in order.
    fn numbers(format: Float8Format) -> u8 {
        if format.specials == Float8Specials::NegativeZero { 0x80 } else { format.overflow() }
    }

    /// Largest and smallest numbers: OCP's specification, table 2, and AMD's CDNA3 guide for the other two.
    #[test]
    fn the_ends_are_those_of_the_specifications() {
        let ends = |format: Float8Format| {
            let last = numbers(format) - 1;
            (format.decode(last), format.decode(1))
        };
        assert_eq!(ends(E4M3FN), (448.0, 2f32.powi(-9)));
        assert_eq!(ends(E5M2), (57344.0, 2f32.powi(-16)));
        assert_eq!(ends(E4M3FNUZ), (240.0, 2f32.powi(-10)));
        assert_eq!(ends(E5M2FNUZ), (57344.0, 2f32.powi(-17)));
        assert!(E4M3FNUZ.decode(0x80).is_nan() && E5M2FNUZ.decode(0x80).is_nan());
        assert!(E4M3FN.decode(0xff).is_nan() && E5M2.decode(0x7d).is_nan());
        assert_eq!(E5M2.decode(0xfc), f32::NEG_INFINITY);
        assert_eq!(E4M3FN.decode(0x80).to_bits(), (-0f32).to_bits());
    }

    #[test]
    fn every_number_and_every_tie_rounds_to_the_nearest() {
        for format in [E4M3FNUZ, E5M2FNUZ, E4M3FN, E5M2] {
            let last = numbers(format) - 1;
            for bits in 0..=last {
                let value = f64::from(format.decode(bits));
                // The number that would follow the largest one stands for what is beyond.
                let step = |a: u8, b: u8| f64::from(format.decode(b)) - f64::from(format.decode(a));
                let next =
                    if bits < last { value + step(bits, bits + 1) } else { value + step(bits - 1, bits) };
                let up = if bits < last { bits + 1 } else { format.overflow() };
                let tie = (value + next) / 2.0;
                let even = if bits & 1 == 0 { bits } else { up };
                for (x, expected) in
                    [(value, bits), (tie, even), (tie.next_down(), bits), (tie.next_up(), up)]
                {
                    assert_eq!(format.encode(x), expected, "{format:?} {x}");
                    let unsigned = expected == 0 || expected == 0x80;
                    let sign = match format.specials {
                        Float8Specials::NegativeZero if unsigned => 0,
                        _ => 0x80,
                    };
                    assert_eq!(format.encode(-x), expected | sign, "{format:?} -{x}");
                }
            }
            assert_eq!(format.encode(f64::INFINITY), format.overflow());
            assert!(format.decode(format.encode(f64::NAN)).is_nan());
        }
    }

    /// OCP's "Microscaling formats", section 5.4.1: a bias of 127, no infinities, no zero, one NaN.
    #[test]
    fn scales_are_powers_of_two() {
        for bits in 0..0xffu8 {
            let value = 2f64.powi(i32::from(bits) - 127);
            assert_eq!(f64::from(E8M0.decode(bits)), value);
            for (x, expected) in [
                (value, bits),
                (1.5 * value, bits + 1),
                ((1.5 * value).next_down(), bits),
                (value.next_down(), bits),
                (-value, 0xff),
            ] {
                assert_eq!(E8M0.encode(x), expected, "{x}");
            }
        }
        assert!(E8M0.decode(0xff).is_nan());
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, -f64::MIN_POSITIVE] {
            assert_eq!(E8M0.encode(x), 0xff, "{x}");
        }
        for x in [0.0, -0.0, f64::MIN_POSITIVE, 5e-324] {
            assert_eq!(E8M0.encode(x), 0, "{x}");
        }
    }
}
