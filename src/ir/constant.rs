//! The constants of `register` nodes, and what they are in each dtype. Compiler and interpreter ask here, so
//! that both have the same bits and the same verdict.
//!
//! A constant is an f64 or an i64. Decimal text becomes the nearest f64 first, as Rust's own literals do; a
//! number without point and exponent is an integer and exact. From there to the dtype it is rounded once, to
//! nearest even: beyond the largest number to infinity, below the least denormal to zero. Integer dtypes take
//! the integers that they hold and nothing else.

use super::diagnostic::Diagnostic;
use super::types::DType;
use crate::float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0};
use crate::float16::{bf16, f16};
use crate::small_float::{f4e2m1, f6e2m3, f6e3m2};

/// The constant of a `register` node, in the node's dtype.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Constant {
    /// For floating dtypes.
    Float(f64),
    /// For integer dtypes; where a floating dtype is asked for, the same number.
    Integer(i64),
}

impl From<f64> for Constant {
    fn from(value: f64) -> Constant {
        Constant::Float(value)
    }
}

impl From<i64> for Constant {
    fn from(value: i64) -> Constant {
        Constant::Integer(value)
    }
}

impl Constant {
    /// The dtype of a constant that meets no operand to take one from: f32 or i32.
    pub(crate) fn dtype_alone(self) -> DType {
        match self {
            Constant::Float(_) => DType::F32,
            Constant::Integer(_) => DType::I32,
        }
    }

    /// The constant as the text form reads it in `dtype`: an integer where a float is asked for is the float,
    /// unless an f64 does not hold it.
    pub(crate) fn read_as(self, dtype: DType) -> Constant {
        match self {
            Constant::Integer(value) if dtype.is_float() && value as f64 as i128 == value.into() => {
                Constant::Float(value as f64)
            }
            constant => constant,
        }
    }

    /// The bits of the constant as an element of `dtype`; those of narrower types are the low bits, with
    /// zeros above them.
    ///
    /// # Errors
    /// When an integer dtype does not hold the number.
    ///
    /// # Example
    /// ```
    /// use groundswell::internals::Constant;
    /// use groundswell::prelude::*;
    /// assert_eq!(Constant::Float(65519.999999999).bits(F16), Ok(0x7bff));
    /// assert_eq!(Constant::Integer(-1).bits(I8), Ok(0xff));
    /// assert!(Constant::Integer(300).bits(I8).is_err());
    /// ```
    pub fn bits(self, dtype: DType) -> Result<u64, Diagnostic> {
        let bits: u32 = match dtype {
            DType::F64 => return Ok(self.double().to_bits()),
            DType::I64 => return self.integer(dtype, i64::MIN, i64::MAX).map(|value| value as u64),
            DType::F32 => single(self.wide()),
            DType::F16 => f16::from_f64(self.wide()).to_bits().into(),
            DType::Bf16 => bf16::from_f64(self.wide()).to_bits().into(),
            DType::I32 => self.integer(dtype, i32::MIN.into(), i32::MAX.into())? as u32,
            DType::I16 => u32::from(self.integer(dtype, i16::MIN.into(), i16::MAX.into())? as u16),
            DType::I8 => u32::from(self.integer(dtype, i8::MIN.into(), i8::MAX.into())? as u8),
            DType::I1 => self.integer(dtype, 0, 1)? as u32,
            DType::F8E4M3Fnuz => f8e4m3fnuz::from_f64(self.wide()).to_bits().into(),
            DType::F8E5M2Fnuz => f8e5m2fnuz::from_f64(self.wide()).to_bits().into(),
            DType::F8E4M3Fn => f8e4m3fn::from_f64(self.wide()).to_bits().into(),
            DType::F8E5M2 => f8e5m2::from_f64(self.wide()).to_bits().into(),
            DType::F8E8M0 => f8e8m0::from_f64(self.wide()).to_bits().into(),
            DType::F4E2M1 => f4e2m1::from_f64(self.wide()).to_bits().into(),
            DType::F6E2M3 => f6e2m3::from_f64(self.wide()).to_bits().into(),
            DType::F6E3M2 => f6e3m2::from_f64(self.wide()).to_bits().into(),
        };
        Ok(bits.into())
    }

    fn integer(self, dtype: DType, least: i64, most: i64) -> Result<i64, Diagnostic> {
        let way_out = match dtype {
            DType::I16 | DType::I8 => "cast to i32 first to compute with larger ones",
            _ => "use a floating dtype for others",
        };
        let help = format!("{dtype} holds whole numbers from {least} to {most}: {way_out}");
        match self {
            Constant::Integer(value) if (least..=most).contains(&value) => Ok(value),
            Constant::Integer(value) => {
                Err(Diagnostic::invalid(format!("{value} is not a value of {dtype}")).help(help))
            }
            Constant::Float(value) => {
                Err(Diagnostic::invalid(format!("{value:?} is not a value of {dtype}")).help(help))
            }
        }
    }

    /// The nearest f64.
    fn double(self) -> f64 {
        match self {
            Constant::Float(value) => value,
            Constant::Integer(value) => value as f64,
        }
    }

    /// An f64 that rounds to every narrower format as the constant itself does.
    fn wide(self) -> f64 {
        match self {
            Constant::Float(value) => value,
            Constant::Integer(value) => odd(value),
        }
    }
}

/// The nearest f32, to even. A NaN becomes quiet and keeps the highest bits of its payload; what a conversion
/// does to them is not defined.
fn single(value: f64) -> u32 {
    if !value.is_nan() {
        return (value as f32).to_bits();
    }
    let bits = value.to_bits();
    (bits >> 32) as u32 & 1 << 31 | f32::NAN.to_bits() | (bits >> 29) as u32 & 0x7f_ffff
}

/// An integer as an f64, rounded to odd where it has more than 53 bits: the last bit stands for all lost
/// ones, so that rounding the result to a format of fewer bits is as good as rounding the integer.
fn odd(value: i64) -> f64 {
    let magnitude = value.unsigned_abs();
    let lost = (u64::BITS - magnitude.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
    let kept = magnitude >> lost;
    let sticky = u64::from(kept << lost != magnitude);
    let rounded = ((kept | sticky) << lost) as f64;
    if value < 0 { -rounded } else { rounded }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    /// The nearest of all finite values of a format, with ties to the even one, found by comparison with
    /// midpoints, which an f64 holds exactly. `values` are the non-negative ones in order, and one more step
    /// in place of infinity.
    fn nearest(values: &[f64], value: f64) -> usize {
        let at = values.partition_point(|&v| v <= value.abs()).max(1) - 1;
        let Some(&next) = values.get(at + 1) else { return at };
        let middle = (values[at] + next) / 2.0;
        at + usize::from(value.abs() > middle || value.abs() == middle && at % 2 == 1)
    }

    /// Numbers around every value of a format: the value, the midpoint to the next one, and both moved by the
    /// least and by small steps.
    fn around(values: &[f64]) -> impl Iterator<Item = f64> + '_ {
        values.windows(2).flat_map(|pair| [pair[0], (pair[0] + pair[1]) / 2.0]).flat_map(|v| {
            let steps = [-(1i64 << 33), -(1 << 31), -1000, -1, 0, 1, 1000, 1 << 31, 1 << 33];
            steps.map(|step| f64::from_bits(v.to_bits().saturating_add_signed(step)))
        })
    }

    #[test]
    fn every_neighbourhood_rounds_once_to_nearest_even() {
        let half = (0..0x7c00u16).map(|b| f16::from_bits(b).to_f64()).chain([65536.0]);
        let brain = (0..0x7f80u16).map(|b| bf16::from_bits(b).to_f64()).chain([2f64.powi(128)]);
        for (dtype, values) in [(DType::F16, half.collect::<Vec<_>>()), (DType::Bf16, brain.collect())] {
            let round = |value| Constant::Float(value).bits(dtype).unwrap();
            for value in around(&values).chain([f64::MAX, f64::from_bits(1), 1e300, 1e-300]) {
                let expected = nearest(&values, value) as u64;
                assert_eq!(round(value), expected, "{value:e}");
                assert_eq!(round(-value), expected | 1 << 15, "-{value:e}");
            }
        }
    }

    /// The bits of the f32 nearest to a number, found by comparison with the midpoint of its neighbours,
    /// which an f64 holds exactly.
    fn nearest_single(value: f64) -> u32 {
        let wide = |bits: u32| if bits == 0x7f80_0000 { 2f64.powi(128) } else { f32::from_bits(bits).into() };
        let mut below = (value.abs() as f32).to_bits().min(0x7f7f_ffff);
        below -= u32::from(wide(below) > value.abs());
        let middle = (wide(below) + wide(below + 1)) / 2.0;
        let up = value.abs() > middle || value.abs() == middle && below & 1 == 1;
        (value.to_bits() >> 32) as u32 & 1 << 31 | (below + u32::from(up))
    }

    #[test]
    fn f32_is_rounded_once_to_nearest_even() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            // Exponents around f32's range; mantissas with long runs of equal bits make ties and near ties.
            let exponent = 1023 - 160 + state % 300;
            let mantissa = (state >> 12) & !((1 << (state >> 58 & 31)) - 1) & ((1 << 52) - 1);
            let value = f64::from_bits((state & 1 << 63) | exponent << 52 | mantissa);
            assert_eq!(
                Constant::Float(value).bits(DType::F32),
                Ok(nearest_single(value).into()),
                "{value:e}"
            );
        }
    }

    #[test]
    fn special_values_stay_what_they_are() {
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            let width = dtype.bits();
            let sign = 1u64 << (width - 1);
            let infinity = Constant::Float(f64::INFINITY).bits(dtype).unwrap();
            assert_eq!(Constant::Float(f64::NEG_INFINITY).bits(dtype), Ok(infinity | sign));
            assert_eq!(Constant::Float(-0.0).bits(dtype), Ok(sign));
            for nan in [f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)] {
                assert!(Constant::Float(nan).bits(dtype).unwrap() > infinity);
            }
        }
        assert_eq!(Constant::Float(f64::NAN).bits(DType::F32), Ok(f32::NAN.to_bits().into()));
    }

    #[test]
    fn integers_are_rounded_from_all_their_bits() {
        // If it went through the nearest f64, this would be a tie.
        let above_a_tie = (1i64 << 60) + (1 << 52) + 1;
        assert_eq!(Constant::Integer(above_a_tie).bits(DType::Bf16), Ok(0x5d81));
        assert_eq!(Constant::Integer(above_a_tie - 1).bits(DType::Bf16), Ok(0x5d80));
        for value in [0, 1, -1, i64::MAX, i64::MIN, (1 << 60) + (1 << 36) + 1, 0x1ff_ffff] {
            assert_eq!(
                Constant::Integer(value).bits(DType::F32),
                Ok((value as f32).to_bits().into()),
                "{value}"
            );
        }
        assert_eq!(Constant::Integer(65519).bits(DType::F16), Ok(0x7bff));
        assert_eq!(Constant::Integer(65520).bits(DType::F16), Ok(0x7c00));
    }

    #[test]
    fn integer_dtypes_take_what_they_hold() {
        let integers = [
            (DType::I8, -128, 127),
            (DType::I16, -32768, 32767),
            (DType::I32, i32::MIN.into(), i32::MAX.into()),
        ];
        for (dtype, least, most) in integers {
            let mask = u64::MAX >> (64 - dtype.bits());
            for value in [least, -1, 0, most] {
                assert_eq!(Constant::Integer(value).bits(dtype), Ok(value as u64 & mask));
            }
            for value in [least - 1, most + 1, i64::MIN, i64::MAX] {
                let fault = Constant::Integer(value).bits(dtype).unwrap_err();
                assert_eq!(fault.message, format!("{value} is not a value of {dtype}"));
                assert!(fault.help.is_some_and(|help| help.contains(&format!("{least} to {most}"))));
            }
            assert!(Constant::Float(2.0).bits(dtype).is_err());
        }
    }

    #[test]
    fn what_has_64_bits_is_exact() {
        for value in [i64::MIN, -1, 0, (1 << 53) + 1, i64::MAX] {
            assert_eq!(Constant::Integer(value).bits(DType::I64), Ok(value as u64));
            assert_eq!(Constant::Integer(value).bits(DType::F64), Ok((value as f64).to_bits()));
        }
        for value in [-0.0, 0.1, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN] {
            assert_eq!(Constant::Float(value).bits(DType::F64), Ok(value.to_bits()));
        }
    }
}
