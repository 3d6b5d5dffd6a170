//! The operations of the language on f64, from the functions of the standard library and from series: what
//! [`Task::evaluate`](super::Task::evaluate) means by them, apart from how kernels compute them.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

use crate::prelude::*;

/// The value of an operation on one number; nothing for one on bits.
pub(super) fn unary(op: UnaryOp, x: f64) -> Option<f64> {
    Some(match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Reciprocal => x.recip(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::RoundEven => x.round_ties_even(),
        UnaryOp::Round => x.round(),
        UnaryOp::Rsqrt => x.sqrt().recip(),
        UnaryOp::Cbrt => x.cbrt(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log10 => x.log10(),
        UnaryOp::Log1p => x.ln_1p(),
        UnaryOp::Expm1 => x.exp_m1(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Sinh => x.sinh(),
        UnaryOp::Cosh => x.cosh(),
        UnaryOp::Erf => error_function(x),
        UnaryOp::Sigmoid => sigmoid(x),
        UnaryOp::Silu => x * sigmoid(x),
        UnaryOp::Gelu => x * 0.5 * (1.0 + error_function(x * FRAC_1_SQRT_2)),
        UnaryOp::GeluTanh => x * 0.5 * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044715 * x * x * x)).tanh()),
        UnaryOp::Not => return None,
    })
}

/// The value of an operation on two numbers; nothing for one on integers or bits.
pub(super) fn binary(op: BinaryOp, a: f64, b: f64) -> Option<f64> {
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Pow => a.powf(b),
        BinaryOp::Atan2 => a.atan2(b),
        BinaryOp::FloorDiv
        | BinaryOp::Rem
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight => return None,
    })
}

/// The value of an operation on two integers of `bits` bits, before it wraps; nothing for one on floats.
pub(super) fn of_integers(op: BinaryOp, a: i64, b: i64, bits: u32) -> Option<i64> {
    let floor = || {
        if b == 0 { 0 } else { a.wrapping_div_euclid(b) - i64::from(b < 0 && a.wrapping_rem_euclid(b) != 0) }
    };
    let count = (b & i64::from(bits - 1)) as u32;
    Some(match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => {
            if b == 0 {
                0
            } else {
                a.wrapping_div(b)
            }
        }
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::FloorDiv => floor(),
        BinaryOp::Rem => a.wrapping_sub(floor().wrapping_mul(b)),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::ShiftLeft => a << count,
        BinaryOp::ShiftRight => a >> count,
        BinaryOp::Pow | BinaryOp::Atan2 => return None,
    })
}

fn sigmoid(x: f64) -> f64 {
    (1.0 + (-x).exp()).recip()
}

/// The error function: its series near zero, and the continued fraction of its complement further out.
fn error_function(x: f64) -> f64 {
    let size = x.abs();
    if x.is_nan() || size > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    if size < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..100 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return FRAC_2_SQRT_PI * sum;
    }
    let fraction = (1..=60).rev().fold(size, |below, n| size + f64::from(n) / 2.0 / below);
    x.signum() * (1.0 - (-size * size).exp() / (PI.sqrt() * fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_the_tabulated_one() {
        // NIST's Digital Library of Mathematical Functions, 7.23, and the identity erf(-x) = -erf(x).
        let table = [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
        ];
        for (x, expected) in table {
            assert!((error_function(x) - expected).abs() < 1e-14, "{x}: {}", error_function(x));
            assert!((error_function(-x) + expected).abs() < 1e-14);
        }
        assert!((error_function(2.499_999) - error_function(2.500_001)).abs() < 1e-8);
        assert_eq!(error_function(f64::INFINITY), 1.0);
    }

    #[test]
    fn integers_are_divided_as_the_language_divides() {
        let of = |op, a, b| of_integers(op, a, b, 32).unwrap();
        assert_eq!(
            [of(BinaryOp::Div, -7, 2), of(BinaryOp::FloorDiv, -7, 2), of(BinaryOp::Rem, -7, 2)],
            [-3, -4, 1]
        );
        assert_eq!([of(BinaryOp::FloorDiv, 7, -2), of(BinaryOp::Rem, 7, -2)], [-4, -1]);
        assert_eq!([of(BinaryOp::Div, 7, 0), of(BinaryOp::Rem, 7, 0)], [0, 7]);
        assert_eq!([of(BinaryOp::ShiftLeft, 1, 33), of(BinaryOp::ShiftRight, -8, 1)], [2, -4]);
    }
}
