//! The two 16-bit floats as Rust values: IEEE binary16 ([`f16`](struct@f16)) and the upper half of binary32
//! ([`bf16`]).
//!
//! They are storage. To compute, widen them to `f32`, which holds every value of both, and round the result
//! back. Every conversion to 16 bits rounds once, to nearest even, from the exact value; what is too large
//! becomes an infinity, and denormals are kept. A NaN becomes quiet and keeps as much of its payload as fits.
//!
//! With the feature `half` the types of the crate of that name convert from and to these, and buffers hold
//! them as they are.

/// Bits of the fraction, and the bias of the exponent.
#[derive(Copy, Clone)]
struct NarrowFormat {
    fraction: u32,
    bias: u32,
}

const BINARY16: NarrowFormat = NarrowFormat { fraction: 10, bias: 15 };
const BFLOAT16: NarrowFormat = NarrowFormat { fraction: 7, bias: 127 };

/// The magnitude of a number, to nearest even, as the bits of a format with `fraction` bits of fraction and
/// that bias of the exponent, as if its exponent had no end.
pub(crate) const fn rounded_magnitude(value: f64, fraction: u32, bias: u32) -> u64 {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    // Below this the position of the last bit does not change: denormals. A denormal f64 is far below any of
    // them.
    let least = 1 - bias as i32;
    let above = if exponent > least { (exponent - least) as u64 } else { 0 };
    let below = if exponent < least { (least - exponent) as u32 } else { 0 };
    let dropped = 52 - fraction + below;
    if dropped > 53 {
        return 0;
    }
    let significand = bits & ((1 << 52) - 1) | 1 << 52;
    let (kept, rest, half) = (significand >> dropped, significand & ((1 << dropped) - 1), 1 << (dropped - 1));
    let up = rest > half || rest == half && kept & 1 != 0;
    // The leading one of the significand, and a carry out of it, count the exponent up.
    (above << fraction) + kept + up as u64
}

impl NarrowFormat {
    const fn one(self) -> u16 {
        (self.bias << self.fraction) as u16
    }

    const fn infinity(self) -> u16 {
        ((2 * self.bias + 1) << self.fraction) as u16
    }

    const fn quiet_nan(self) -> u16 {
        self.infinity() | 1 << (self.fraction - 1)
    }

    /// The nearest value. A NaN keeps the upper bits of its fraction.
    const fn round(self, value: f64) -> u16 {
        let bits = value.to_bits();
        let sign = (bits >> 48) as u16 & 0x8000;
        let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
        let fraction = bits & ((1 << 52) - 1);
        if exponent == 1024 {
            let payload = (fraction >> (52 - self.fraction)) as u16;
            return sign | if fraction == 0 { self.infinity() } else { self.quiet_nan() | payload };
        }
        let magnitude = rounded_magnitude(value, self.fraction, self.bias);
        sign | if magnitude < self.infinity() as u64 { magnitude as u16 } else { self.infinity() }
    }

    /// The same value as f32.
    #[inline(always)]
    const fn widen(self, bits: u16) -> f32 {
        let sign = (bits as u32 & 0x8000) << 16;
        let magnitude = (bits as u32 & 0x7fff) << (23 - self.fraction);
        let widened = if bits & 0x7fff < self.infinity() {
            // The exponent is off by the difference of the biases; multiplying by a power of two is exact,
            // also for denormals.
            (f32::from_bits(magnitude) * f32::from_bits((254 - self.bias) << 23)).to_bits()
        } else {
            let quiet = if bits & 0x7fff > self.infinity() { 1 << 22 } else { 0 };
            0x7f80_0000 | magnitude | quiet
        };
        f32::from_bits(sign | widened)
    }
}

macro_rules! float16 {
    ($(#[doc = $about:literal])* $name:ident, $format:ident) => {
        $(#[doc = $about])*
        #[allow(non_camel_case_types)]
        #[derive(Copy, Clone, Default)]
        #[repr(transparent)]
        pub struct $name(u16);

        impl $name {
            /// Zero.
            pub const ZERO: $name = $name(0);
            /// One.
            pub const ONE: $name = $name($format.one());
            /// Positive infinity.
            pub const INFINITY: $name = $name($format.infinity());
            /// Negative infinity.
            pub const NEG_INFINITY: $name = $name(0x8000 | $format.infinity());
            /// A quiet NaN.
            pub const NAN: $name = $name($format.quiet_nan());
            /// The largest finite value.
            pub const MAX: $name = $name($format.infinity() - 1);
            /// The smallest positive value that is not denormal.
            pub const MIN_POSITIVE: $name = $name(1 << $format.fraction);

            /// The value of an encoding.
            pub const fn from_bits(bits: u16) -> $name {
                $name(bits)
            }

            /// The encoding.
            pub const fn to_bits(self) -> u16 {
                self.0
            }

            /// The value of an encoding in little-endian bytes.
            pub const fn from_le_bytes(bytes: [u8; 2]) -> $name {
                $name(u16::from_le_bytes(bytes))
            }

            /// The encoding in little-endian bytes.
            pub const fn to_le_bytes(self) -> [u8; 2] {
                self.0.to_le_bytes()
            }

            /// The nearest value.
            pub const fn from_f32(value: f32) -> $name {
                let bits = value.to_bits();
                if bits & 0x7fff_ffff > 0x7f80_0000 {
                    // The effect of a conversion to f64 on the bits of a NaN is not defined.
                    let payload = (bits & 0x7f_ffff) >> (23 - $format.fraction);
                    return $name((bits >> 16 & 0x8000 | payload) as u16 | $format.quiet_nan());
                }
                $name($format.round(value as f64))
            }

            /// The nearest value.
            pub const fn from_f64(value: f64) -> $name {
                $name($format.round(value))
            }

            /// The same value as `f32`.
            #[inline]
            pub const fn to_f32(self) -> f32 {
                $format.widen(self.0)
            }

            /// The same value as `f64`.
            #[inline]
            pub const fn to_f64(self) -> f64 {
                self.to_f32() as f64
            }

            /// True for a NaN.
            pub const fn is_nan(self) -> bool {
                self.0 & 0x7fff > $format.infinity()
            }
        }

        crate::narrow_float::traits_by_f32!($name);

        #[cfg(feature = "half")]
        impl From<half::$name> for $name {
            fn from(value: half::$name) -> $name {
                $name(value.to_bits())
            }
        }

        #[cfg(feature = "half")]
        impl From<$name> for half::$name {
            fn from(value: $name) -> half::$name {
                half::$name::from_bits(value.0)
            }
        }
    };
}

float16! {
    /// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
    f16, BINARY16
}

float16! {
    /// bfloat16: 8 bits of exponent as `f32` has, 7 of fraction.
    bf16, BFLOAT16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The encoding nearest to a finite value, found by looking at all of them; of two that are equally near,
    /// the even one. Infinity counts as the value that would follow the largest finite one.
    fn nearest(value: f64, infinity: u16, widen: impl Fn(u16) -> f64) -> u16 {
        let finite =
            |bits: u16| if bits == infinity { 2.0 * widen(bits - 1) - widen(bits - 2) } else { widen(bits) };
        // The last one that is not above the value; the distances of an f64 to values with few bits are exact
        // near them.
        let (mut low, mut high) = (0, infinity);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if finite(middle) <= value.abs() { low = middle } else { high = middle - 1 }
        }
        let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
        if low == infinity {
            return sign | infinity;
        }
        let (down, up) = (value.abs() - finite(low), finite(low + 1) - value.abs());
        let is_up = up < down || up == down && low & 1 != 0;
        sign | (low + u16::from(is_up))
    }

    #[test]
    fn widening_agrees_with_the_crate_half_for_every_encoding() {
        for bits in 0..=u16::MAX {
            assert_eq!(
                f16::from_bits(bits).to_f32().to_bits(),
                half::f16::from_bits(bits).to_f32().to_bits()
            );
            assert_eq!(
                bf16::from_bits(bits).to_f32().to_bits(),
                half::bf16::from_bits(bits).to_f32().to_bits()
            );
        }
    }

    #[test]
    fn every_value_rounds_to_itself_and_every_nan_to_itself_made_quiet() {
        for bits in 0..=u16::MAX {
            let (x, y) = (f16::from_bits(bits), bf16::from_bits(bits));
            assert_eq!(f16::from_f32(x.to_f32()).to_bits(), if x.is_nan() { bits | 0x200 } else { bits });
            assert_eq!(bf16::from_f32(y.to_f32()).to_bits(), if y.is_nan() { bits | 0x40 } else { bits });
        }
    }

    #[test]
    fn ties_and_their_neighbours_round_once() {
        for bits in 0..0x7bffu16 {
            let (low, high) = (f16::from_bits(bits).to_f64(), f16::from_bits(bits + 1).to_f64());
            let tie = (low + high) / 2.0;
            assert_eq!(f16::from_f64(tie).to_bits(), bits + (bits & 1), "{tie:e}");
            assert_eq!(f16::from_f64(tie.next_down()).to_bits(), bits);
            assert_eq!(f16::from_f64(-tie.next_up()).to_bits(), 0x8000 | (bits + 1));
        }
        // If it went through f32, this would be a tie, and then infinity.
        assert_eq!(f16::from_f64(65_519.999_999_999), f16::MAX);
        assert_eq!(f16::from_f64(65_520.0), f16::INFINITY);
        assert_eq!(bf16::from_f64(f64::MIN_POSITIVE / 2.0), bf16::ZERO);
        assert!(f16::from_f64(f64::NAN).is_nan() && bf16::from_f32(f32::NAN).is_nan());
    }

    proptest! {
        #[test]
        fn doubles_round_to_the_nearest(mantissa in 1.0..2.0f64, exponent in -150..130i32, negative: bool) {
            let value = mantissa * 2f64.powi(exponent) * if negative { -1.0 } else { 1.0 };
            let expected = nearest(value, 0x7c00, |bits| f16::from_bits(bits).to_f64());
            prop_assert_eq!(f16::from_f64(value).to_bits(), expected);
            let expected = nearest(value, 0x7f80, |bits| bf16::from_bits(bits).to_f64());
            prop_assert_eq!(bf16::from_f64(value).to_bits(), expected);
        }

        #[test]
        fn singles_round_as_the_crate_half_rounds_them(bits: u32) {
            let value = f32::from_bits(bits);
            prop_assert_eq!(f16::from_f32(value).to_bits(), half::f16::from_f32(value).to_bits());
            prop_assert_eq!(bf16::from_f32(value).to_bits(), half::bf16::from_f32(value).to_bits());
        }
    }
}
