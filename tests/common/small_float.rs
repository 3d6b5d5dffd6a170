//! 4-bit and 6-bit floats by a list of their numbers and a search through it, and shapes for tests of them.

use groundswell::prelude::*;

use crate::exact_case::of_numbers;

/// A format as OCP's "Microscaling formats" describes it.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SmallFloat {
    pub dtype: DType,
    /// Bits of the exponent and of the fraction.
    pub bits: [u32; 2],
    /// Its largest number.
    pub largest: f64,
}

pub const F4: SmallFloat = SmallFloat { dtype: F4E2M1, bits: [2, 1], largest: 6.0 };
pub const SMALL_FLOATS: [SmallFloat; 3] = [
    F4,
    SmallFloat { dtype: F6E2M3, bits: [2, 3], largest: 7.5 },
    SmallFloat { dtype: F6E3M2, bits: [3, 2], largest: 28.0 },
];

/// Sizes of M and K: whole bytes and tiles, odd rows, and neither.
pub const SHAPES: [[usize; 2]; 20] = [
    [16, 64],
    [32, 128],
    [8, 256],
    [16, 2],
    [16, 96],
    [1, 1],
    [1, 3],
    [3, 33],
    [5, 63],
    [7, 65],
    [16, 100],
    [17, 127],
    [20, 129],
    [33, 201],
    [2, 257],
    [4, 320],
    [31, 31],
    [9, 95],
    [15, 192],
    [19, 161],
];

impl SmallFloat {
    /// The bit of the sign.
    fn sign(self) -> u8 {
        1 << (self.bits[0] + self.bits[1])
    }

    /// The number of a code.
    pub fn number_of(self, code: u8) -> f64 {
        let [exponent_bits, fraction_bits] = self.bits;
        let magnitude = code & (self.sign() - 1);
        let (exponent, fraction) = (magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1));
        let bias = (1i32 << (exponent_bits - 1)) - 1;
        let step = 2f64.powi(1 - bias - fraction_bits as i32);
        let number = match exponent {
            0 => f64::from(fraction) * step,
            _ => f64::from(fraction + (1 << fraction_bits)) * step * 2f64.powi(i32::from(exponent) - 1),
        };
        if code & self.sign() == 0 { number } else { -number }
    }

    /// The code of the nearest number; of two that are equally near the even one. A NaN becomes the largest.
    pub fn nearest_code(self, x: f64) -> u8 {
        let most = self.sign() - 1;
        if x.is_nan() {
            return most;
        }
        let sign = if x.is_sign_negative() { self.sign() } else { 0 };
        let magnitude = x.abs().min(2.0 * self.largest);
        let away = |code: u8| (self.number_of(code) - magnitude).abs();
        let better = |best: u8, code: u8| match away(code).total_cmp(&away(best)) {
            std::cmp::Ordering::Less => code,
            std::cmp::Ordering::Equal if code.is_multiple_of(2) => code,
            _ => best,
        };
        sign | (1..=most).fold(0, better)
    }

    /// The number that is nearest to `x`; of two that are equally near the one with the even code.
    pub fn nearest(self, x: f64) -> f64 {
        self.number_of(self.nearest_code(x))
    }

    /// Numbers in an order that meets every one at every place of a unit.
    pub fn number(self, at: usize) -> f64 {
        self.number_of((at * 7 + at / 16 * 5 + at / 64) as u8 & (2 * self.sign() - 1))
    }

    /// Those of them up to 2 and so on, sums of products of which are exact in f32.
    pub fn modest(self, at: usize) -> f64 {
        let number = self.number(at);
        if number.abs() > 2.0 && self.largest > 8.0 { number.signum() } else { number }
    }

    /// Shapes for tests of it: those of 6 bits take several times the code.
    pub fn shapes(self) -> impl Iterator<Item = [usize; 2]> {
        SHAPES.into_iter().step_by(if self == F4 { 1 } else { 3 })
    }

    pub fn numbers(self, shape: &[usize]) -> Tensor {
        let all: Vec<f64> = (0..shape.iter().product()).map(|at| self.number(at)).collect();
        of_numbers(self.dtype, shape, &all)
    }
}
