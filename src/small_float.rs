//! The 4-bit and 6-bit floats of OCP's "Microscaling formats" as Rust values. The names say how many bits are
//! exponent and fraction. There are neither infinities nor NaNs.
//!
//! They are storage, as [`f16`](struct@crate::prelude::f16) is: widen them to `f32` to compute. A conversion
//! rounds once, to nearest even. What is too large becomes the largest number with its sign; a NaN, of either
//! sign, becomes the largest number.
//!
//! Memory has several in a unit, as [`PackedUnit`] says: the first of them in the lowest bits.

use crate::float16::rounded_magnitude;
use crate::ir::types::{DType, PackedUnit};

/// A format.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SmallFormat {
    /// Bits of the exponent.
    pub(crate) exponent: u32,
    /// Bits of the fraction.
    pub(crate) fraction: u32,
}

const E2M1: SmallFormat = SmallFormat { exponent: 2, fraction: 1 };
const E2M3: SmallFormat = SmallFormat { exponent: 2, fraction: 3 };
const E3M2: SmallFormat = SmallFormat { exponent: 3, fraction: 2 };

impl SmallFormat {
    /// The format of a dtype, if it is one of these.
    pub(crate) const fn of(dtype: DType) -> Option<SmallFormat> {
        match dtype {
            DType::F4E2M1 => Some(E2M1),
            DType::F6E2M3 => Some(E2M3),
            DType::F6E3M2 => Some(E3M2),
            _ => None,
        }
    }

    /// Bits of a number.
    pub(crate) const fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    /// The bias of the exponent.
    pub(crate) const fn bias(self) -> u32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The encoding of the largest number, which is that of all bits but the sign.
    const fn most(self) -> u8 {
        (1 << (self.bits() - 1)) - 1
    }

    /// The largest number.
    pub(crate) const fn largest(self) -> f32 {
        self.decode(self.most())
    }

    /// The nearest encoding.
    const fn encode(self, value: f64) -> u8 {
        let most = self.most();
        if value.is_nan() {
            return most;
        }
        let sign = if value.is_sign_negative() { most + 1 } else { 0 };
        let nearest = rounded_magnitude(value, self.fraction, self.bias());
        sign | if nearest < most as u64 { nearest as u8 } else { most }
    }

    /// The value of an encoding.
    pub(crate) const fn decode(self, bits: u8) -> f32 {
        let magnitude = (bits & self.most()) as u32;
        // With the exponent in place the value is off by a power of two; the product is exact.
        let value =
            f32::from_bits(magnitude << (23 - self.fraction)) * f32::from_bits((254 - self.bias()) << 23);
        if bits & (self.most() + 1) != 0 { -value } else { value }
    }
}

macro_rules! small_float {
    ($(#[doc = $about:literal])* $name:ident, $format:ident) => {
        $(#[doc = $about])*
        #[allow(non_camel_case_types)]
        #[derive(Copy, Clone, Default)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The value of an encoding: of the low bits.
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits & (2 * $format.most() + 1))
            }

            /// The encoding, in the low bits.
            pub const fn to_bits(self) -> u8 {
                self.0
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
        }

        crate::narrow_float::traits_by_f32!($name);
    };
}

small_float! {
    /// 2 bits of exponent, 1 of fraction: 0, 0.5, 1, 1.5, 2, 3, 4 and 6, of both signs.
    f4e2m1, E2M1
}

small_float! {
    /// 2 bits of exponent, 3 of fraction: eighths up to 2 and so on up to 7.5, of both signs.
    f6e2m3, E2M3
}

small_float! {
    /// 3 bits of exponent, 2 of fraction: sixteenths up to 0.5 and so on up to 28, of both signs.
    f6e3m2, E3M2
}

/// Rows of so many encodings as bytes. What the last unit of a row has no elements for is 0.
pub(crate) fn packed_rows(codes: &[u8], length: usize, packing: PackedUnit) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(codes.len());
    let (together, bits) = (packing.elements as usize, packing.bits());
    for unit in codes.chunks(length.max(1)).flat_map(|row| row.chunks(together)) {
        let first = bytes.len();
        bytes.resize(first + packing.bytes() as usize, 0);
        for (at, code) in unit.iter().enumerate() {
            let (byte, shift) = (at * bits as usize / 8, at as u32 * bits % 8);
            let [low, high] = (u16::from(*code) << shift).to_le_bytes();
            bytes[first + byte] |= low;
            if high != 0 {
                bytes[first + byte + 1] |= high;
            }
        }
    }
    bytes
}

/// The encodings in rows of so many in such bytes.
pub(crate) fn unpacked_rows(bytes: &[u8], length: usize, packing: PackedUnit) -> Vec<u8> {
    let (together, bits) = (packing.elements as usize, packing.bits());
    let row_bytes = length.div_ceil(together) * packing.bytes() as usize;
    let mut codes = Vec::new();
    for row in bytes.chunks(row_bytes.max(1)) {
        let units = row.chunks(packing.bytes() as usize);
        let unpacked = units.flat_map(|unit| (0..together).map(move |at| code_in(unit, at, bits)));
        codes.extend(unpacked.take(length));
    }
    codes
}

/// Encoding number `at` of those of so many bits that lie in bytes one after the other.
pub(crate) fn code_in(bytes: &[u8], at: usize, bits: u32) -> u8 {
    let (byte, shift) = (at * bits as usize / 8, at as u32 * bits % 8);
    let pair = [byte, byte + 1].map(|at| bytes.get(at).copied().unwrap_or(0));
    (u16::from_le_bytes(pair) >> shift) as u8 & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OCP Microscaling Formats, 5.3.2 and 5.3.3.
    #[test]
    fn the_numbers_are_those_of_ocp() {
        assert_eq!([0u8, 1, 2, 7].map(|bits| f4e2m1::from_bits(bits).to_f32()), [0.0, 0.5, 1.0, 6.0]);
        assert_eq!([1u8, 7, 8, 31].map(|bits| f6e2m3::from_bits(bits).to_f32()), [0.125, 0.875, 1.0, 7.5]);
        assert_eq!(
            [1u8, 3, 4, 31].map(|bits| f6e3m2::from_bits(bits).to_f32()),
            [0.0625, 0.1875, 0.25, 28.0]
        );
        assert_eq!(f6e3m2::from_bits(63).to_f32(), -28.0);
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_and_held_within_the_largest() {
        for bits in 0..64u8 {
            assert_eq!(f6e2m3::from_f32(f6e2m3::from_bits(bits).to_f32()).to_bits(), bits);
            assert_eq!(f6e3m2::from_f32(f6e3m2::from_bits(bits).to_f32()).to_bits(), bits);
        }
        // Halfway: to the even one.
        assert_eq!(f6e2m3::from_f32(1.0625).to_f32(), 1.0);
        assert_eq!(f6e2m3::from_f32(1.1875).to_f32(), 1.25);
        assert_eq!(f6e3m2::from_f32(0.03125).to_f32(), 0.0);
        assert_eq!(f6e3m2::from_f32(-1e9).to_f32(), -28.0);
        assert_eq!(f6e2m3::from_f32(f32::INFINITY).to_f32(), 7.5);
        assert_eq!(f6e2m3::from_f32(-f32::NAN).to_f32(), 7.5);
    }

    #[test]
    fn packed_rows_read_back() {
        for (dtype, length) in [(DType::F4E2M1, 5), (DType::F6E2M3, 32), (DType::F6E3M2, 37)] {
            let packing = dtype.packing().expect("a packed dtype");
            let codes: Vec<u8> = (0..3 * length as u8)
                .map(|at| at.wrapping_mul(7).wrapping_add(1) % (1 << dtype.bits()))
                .collect();
            let bytes = packed_rows(&codes, length, packing);
            assert_eq!(bytes.len() as u64, 3 * dtype.row_bytes(length as u64).expect("a small row"));
            assert_eq!(unpacked_rows(&bytes, length, packing), codes, "{dtype}");
        }
        let words = packed_rows(&[1, 2, 3, 4, 5, 6], 6, DType::F6E2M3.packing().expect("a packed dtype"));
        assert_eq!(words[..5], [0x81, 0x30, 0x10, 0x85, 0x01]);
    }
}
