//! The scaling and fixing steps of the division sequence (CDNA3 ISA guide, V_DIV_SCALE and V_DIV_FIXUP).

use crate::codegen::isa::Element;

use super::super::error::Stopped;
use super::super::formats::{self, FloatFormat};
use super::super::numerics::{exponent_f32, exponent_f64};
use super::super::powers::load_exponent;
use super::super::program::Step;
use super::super::wave::{LANES, Wave};
use super::lanes::{Lane, unsupported};

/// Constants of the scaling rule for one width.
struct ScalingRule {
    /// Difference of exponents from which the quotient is too large.
    far: i32,
    /// Power of two that values are scaled by.
    scale: i32,
    /// Numerators with at most this exponent field are scaled up.
    small: i32,
    /// Least normal number.
    least: f64,
}

const RULE_32: ScalingRule = ScalingRule { far: 96, scale: 64, small: 23, least: f32::MIN_POSITIVE as f64 };
const RULE_64: ScalingRule = ScalingRule { far: 768, scale: 128, small: 53, least: f64::MIN_POSITIVE };

/// The scaled value and whether the quotient must be scaled back, for `value` which is the `denominator` or
/// the `numerator`. `exponents` are the exponent fields of denominator and numerator.
fn scaled(
    rule: &ScalingRule,
    value: f64,
    denominator: f64,
    numerator: f64,
    exponents: (i32, i32),
) -> (f64, bool) {
    let denormal = |v: f64| v != 0.0 && v.abs() < rule.least;
    let times = |power: i32| load_exponent(value, power);
    let is_denominator = value.to_bits() == denominator.to_bits();
    let is_numerator = value.to_bits() == numerator.to_bits();
    if denominator == 0.0 || numerator == 0.0 {
        (f64::NAN, false)
    } else if exponents.1 - exponents.0 >= rule.far {
        (if is_denominator { times(rule.scale) } else { value }, true)
    } else if denormal(denominator) {
        (times(rule.scale), false)
    } else if denormal(1.0 / denominator) && denormal(numerator / denominator) {
        // The guide prints the scaling of the previous case, which makes the denominator infinite; scaling
        // down gives the quotient.
        (if is_denominator { times(-rule.scale) } else { value }, true)
    } else if denormal(1.0 / denominator) {
        (times(-rule.scale), false)
    } else if denormal(numerator / denominator) {
        (if is_numerator { times(rule.scale) } else { value }, true)
    } else if exponents.1 <= rule.small {
        (times(rule.scale), false)
    } else {
        (value, false)
    }
}

/// V_DIV_SCALE: sources are the value to scale, the denominator and the numerator.
pub(super) fn scale(w: &mut Wave, s: &Step, element: Element) -> Result<(), Stopped> {
    let mut mask = 0;
    match element {
        Element::F32 => {
            let (a, b, c) = (f32::read(w, s, 2, 0), f32::read(w, s, 3, 1), f32::read(w, s, 4, 2));
            let mut values = [0.0; LANES];
            for l in 0..LANES {
                let exponents = (exponent_f32(b[l]), exponent_f32(c[l]));
                let (value, flag) = scaled(&RULE_32, a[l].into(), b[l].into(), c[l].into(), exponents);
                values[l] = value as f32;
                mask |= u64::from(flag) << l;
            }
            f32::write(w, s, values);
        }
        Element::F64 => {
            let (a, b, c) = (f64::read(w, s, 2, 0), f64::read(w, s, 3, 1), f64::read(w, s, 4, 2));
            let mut values = [0.0; LANES];
            for l in 0..LANES {
                let exponents = (exponent_f64(b[l]), exponent_f64(c[l]));
                let (value, flag) = scaled(&RULE_64, a[l], b[l], c[l], exponents);
                values[l] = value;
                mask |= u64::from(flag) << l;
            }
            f64::write(w, s, values);
        }
        _ => return Err(unsupported()),
    }
    w.set_scalar_wide(s.operands[1], mask & w.exec());
    Ok(())
}

/// Rounding error of `a + b = sum`, exact.
fn error_of_sum(a: f64, b: f64, sum: f64) -> f64 {
    let b_part = sum - a;
    (a - (sum - b_part)) + (b - b_part)
}

/// Power of two that V_DIV_FMAS scales a quotient back by, for its addend.
pub(super) fn rescaling(format: &FloatFormat, addend: f64) -> i32 {
    let power = if format.bits() == 32 { RULE_32.scale } else { RULE_64.scale };
    if addend.abs() >= 2.0 { power } else { -power }
}

/// V_DIV_FMAS of a lane whose quotient was scaled: fused multiply-add, scaled back, all with one rounding.
pub(super) fn fmas_f32(a: f32, b: f32, c: f32) -> f32 {
    let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + addend;
    let error = error_of_sum(product, addend, sum);
    // Rounded to odd, which keeps the rounding to f32 from seeing a tie where there is none.
    let odd = if error != 0.0 && sum.is_finite() && sum.to_bits() & 1 == 0 {
        let outward = (error > 0.0) == (sum > 0.0);
        f64::from_bits(if outward { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
    } else {
        sum
    };
    load_exponent(odd, rescaling(&formats::F32, c.into())) as f32
}

/// The same for f64.
pub(super) fn fmas_f64(a: f64, b: f64, c: f64) -> f64 {
    let value = a.mul_add(b, c);
    let power = rescaling(&formats::F64, c);
    if power > 0 {
        return load_exponent(value, power);
    }
    // Bits that are shifted out of the mantissa where the scaled result is denormal.
    let lost = 128 + 1 - exponent_f64(value);
    if lost <= 0 || exponent_f64(value) == 0 || value.is_nan() {
        return load_exponent(value, -128);
    }
    let product = a * b;
    let sum = product + c;
    let error = (sum - value) + error_of_sum(product, c, sum) + a.mul_add(b, -product);
    let error = if value < 0.0 { -error } else { error };
    let mantissa = value.to_bits() & ((1 << 52) - 1) | 1 << 52;
    if lost > 54 {
        return 0.0f64.copysign(value);
    }
    let (kept, rest, half) = (mantissa >> lost, mantissa & ((1 << lost) - 1), 1u64 << (lost - 1));
    let up = rest > half || rest == half && (error > 0.0 || error == 0.0 && kept & 1 == 1);
    f64::from_bits(kept + u64::from(up)).copysign(value)
}

macro_rules! fixup {
    ($name:ident, $type:ident, $exponent:ident, $far:literal) => {
        /// V_DIV_FIXUP: the quotient with its special cases corrected.
        pub(super) fn $name(quotient: $type, denominator: $type, numerator: $type) -> $type {
            use super::super::numerics::Float;
            let sign =
                if denominator.is_sign_negative() != numerator.is_sign_negative() { -1.0 } else { 1.0 };
            if numerator.is_nan() {
                Float::quiet(numerator)
            } else if denominator.is_nan() {
                Float::quiet(denominator)
            } else if denominator == 0.0 && numerator == 0.0
                || denominator.is_infinite() && numerator.is_infinite()
            {
                -$type::NAN.copysign(1.0)
            } else if denominator == 0.0 || numerator.is_infinite() {
                $type::INFINITY * sign
            } else if denominator.is_infinite() || numerator == 0.0 {
                (0.0 as $type).copysign(sign)
            } else if $exponent(numerator) - $exponent(denominator) < $far {
                (0.0 as $type).copysign(sign)
            } else if quotient.is_nan() {
                // The refinement steps ran into infinities: the quotient is beyond the largest number.
                $type::INFINITY * sign
            } else {
                quotient.copysign(sign)
            }
        }
    };
}

/// The same for f16, whose quotient is computed in f32 and never runs into a limit.
pub(super) fn fixup_f16(quotient: f32, denominator: f32, numerator: f32) -> f32 {
    let special = |v: f32| v == 0.0 || !v.is_finite();
    if special(denominator) || special(numerator) {
        return fixup_f32(quotient, denominator, numerator);
    }
    let negative = denominator.is_sign_negative() != numerator.is_sign_negative();
    quotient.copysign(if negative { -1.0 } else { 1.0 })
}

fixup!(fixup_f32, f32, exponent_f32, -150);
fixup!(fixup_f64, f64, exponent_f64, -1075);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixup_puts_special_quotients_right() {
        assert_eq!(fixup_f32(3.0, -2.0, 6.0), -3.0);
        assert!(fixup_f32(1.0, 0.0, 0.0).is_nan());
        assert_eq!(fixup_f32(1.0, -0.0, 2.0), f32::NEG_INFINITY);
        assert_eq!(fixup_f32(1.0, f32::INFINITY, -2.0).to_bits(), (-0.0f32).to_bits());
        assert!(fixup_f64(1.0, f64::NAN, 2.0).is_nan());
        assert_eq!(fixup_f32(f32::NAN, 1e-40, -1e30), f32::NEG_INFINITY);
    }

    #[test]
    fn ordinary_operands_are_not_scaled() {
        let exponents = (exponent_f32(3.0), exponent_f32(7.0));
        assert_eq!(scaled(&RULE_32, 3.0, 3.0, 7.0, exponents), (3.0, false));
        assert_eq!(scaled(&RULE_32, 7.0, 3.0, 7.0, exponents), (7.0, false));
    }
}
