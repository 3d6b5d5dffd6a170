//! The scaling and fixing steps of the division sequence (CDNA3 ISA guide, V_DIV_SCALE and V_DIV_FIXUP).

use crate::codegen::isa::Element;

use super::super::error::Stopped;
use super::super::numerics::{exponent_f32, exponent_f64, load_exponent};
use super::super::program::Step;
use super::super::wave::{LANES, Wave};
use super::lanes::Lane;
use super::valu::unsupported;

/// Constants of the scaling rule for one width.
struct Rule {
    /// Difference of exponents from which the quotient is too large.
    far: i32,
    /// Power of two that values are scaled by.
    scale: i32,
    /// Numerators with at most this exponent field are scaled up.
    small: i32,
    /// Least normal number.
    least: f64,
}

const RULE_32: Rule = Rule { far: 96, scale: 64, small: 23, least: f32::MIN_POSITIVE as f64 };
const RULE_64: Rule = Rule { far: 768, scale: 128, small: 53, least: f64::MIN_POSITIVE };

/// The scaled value and whether the quotient must be scaled back, for `value` which is the `denominator` or the `numerator`.
/// `exponents` are the exponent fields of denominator and numerator.
fn scaled(rule: &Rule, value: f64, denominator: f64, numerator: f64, exponents: (i32, i32)) -> (f64, bool) {
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
        (if is_denominator { times(rule.scale) } else { value }, true)
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

macro_rules! fixup {
    ($name:ident, $type:ident, $exponent:ident, $far:literal, $largest:literal) => {
        /// V_DIV_FIXUP: the quotient with its special cases put right.
        pub(super) fn $name(quotient: $type, denominator: $type, numerator: $type) -> $type {
            use super::super::numerics::Float;
            let sign = if denominator.is_sign_negative() != numerator.is_sign_negative() { -1.0 } else { 1.0 };
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
            } else if $exponent(denominator) == $largest {
                $type::INFINITY * sign
            } else {
                quotient.copysign(sign)
            }
        }
    };
}

fixup!(fixup_f32, f32, exponent_f32, -150, 255);
fixup!(fixup_f64, f64, exponent_f64, -1075, 2047);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixup_puts_special_quotients_right() {
        assert_eq!(fixup_f32(3.0, -2.0, 6.0), -3.0);
        assert!(fixup_f32(1.0, 0.0, 0.0).is_nan());
        assert_eq!(fixup_f32(1.0, -0.0, 2.0), f32::NEG_INFINITY);
        assert_eq!(fixup_f32(1.0, f32::INFINITY, -2.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(fixup_f64(1.0, f64::NAN, 2.0).is_nan(), true);
    }

    #[test]
    fn ordinary_operands_are_not_scaled() {
        let exponents = (exponent_f32(3.0), exponent_f32(7.0));
        assert_eq!(scaled(&RULE_32, 3.0, 3.0, 7.0, exponents), (3.0, false));
        assert_eq!(scaled(&RULE_32, 7.0, 3.0, 7.0, exponents), (7.0, false));
    }
}
