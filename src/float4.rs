//! The 4-bit float of OCP's "Microscaling formats" as a Rust value: a sign, two bits of exponent and one of
//! fraction. There are neither infinities nor NaNs.
//!
//! It is storage, as [`f16`](struct@crate::prelude::f16) is: widen it to `f32` to compute. A conversion
//! rounds once, to nearest even. What is too large becomes 6 with its sign; a NaN, of either sign, becomes 6.

/// The numbers without a sign, by their encodings.
const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// 2 bits of exponent, 1 of fraction: 0, 0.5, 1, 1.5, 2, 3, 4 and 6, of both signs.
#[allow(non_camel_case_types)]
#[derive(Copy, Clone, Default)]
#[repr(transparent)]
pub struct f4e2m1(u8);

impl f4e2m1 {
    /// The value of an encoding: the low four bits.
    pub const fn from_bits(bits: u8) -> f4e2m1 {
        f4e2m1(bits & 15)
    }

    /// The encoding, in the low four bits.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// The nearest value.
    pub const fn from_f32(value: f32) -> f4e2m1 {
        f4e2m1::from_f64(value as f64)
    }

    /// The nearest value.
    pub const fn from_f64(value: f64) -> f4e2m1 {
        let sign = if value.is_sign_negative() && !value.is_nan() { 8 } else { 0 };
        // The middle between two numbers belongs to the one whose fraction is 0.
        let magnitude = match value.abs() {
            ..=0.25 => 0,
            ..0.75 => 1,
            ..=1.25 => 2,
            ..1.75 => 3,
            ..=2.5 => 4,
            ..3.5 => 5,
            ..=5.0 => 6,
            _ => 7,
        };
        f4e2m1(sign | magnitude)
    }

    /// The same value as `f32`.
    pub const fn to_f32(self) -> f32 {
        let magnitude = MAGNITUDES[(self.0 & 7) as usize];
        if self.0 & 8 == 0 { magnitude } else { -magnitude }
    }

    /// The same value as `f64`.
    pub const fn to_f64(self) -> f64 {
        self.to_f32() as f64
    }
}

crate::narrow_float::traits_by_f32!(f4e2m1);

/// Rows of so many elements as bytes, two elements in each: the earlier one in the lower half. A row of an
/// odd number of elements ends with half a byte of 0.
pub(crate) fn packed_rows(elements: &[f4e2m1], length: usize) -> impl Iterator<Item = u8> + '_ {
    let pairs = elements.chunks(length.max(1)).flat_map(|row| row.chunks(2));
    pairs.map(|pair| pair[0].to_bits() | pair.get(1).map_or(0, |high| high.to_bits() << 4))
}

/// The elements of rows of so many in such bytes.
pub(crate) fn unpacked_rows(bytes: &[u8], length: usize) -> impl Iterator<Item = f4e2m1> + '_ {
    let rows = bytes.chunks(length.div_ceil(2).max(1));
    rows.flat_map(move |row| {
        let elements = row.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        elements.take(length).map(f4e2m1::from_bits)
    })
}
