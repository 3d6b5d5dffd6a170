//! Multiplying by powers of two.

/// `value * 2^exponent`, rounded once.
pub(super) fn load_exponent(value: f64, exponent: i32) -> f64 {
    let power = |exponent: i32| f64::from_bits(((1023 + exponent) as u64) << 52);
    // A larger exponent turns every value into zero or infinity.
    let (mut result, mut left) = (value, exponent.clamp(-3300, 3300));
    while left > 1023 {
        result *= power(1023);
        left -= 1023;
    }
    // Steps of 53 less than the range of normal numbers: where such a step rounds, the remaining steps end at
    // zero.
    while left < -1022 {
        result *= power(-969);
        left += 969;
    }
    result * power(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_loaded_with_one_rounding() {
        assert_eq!(load_exponent(1.5, 10), 1536.0);
        assert_eq!(load_exponent(1.0, -1074), f64::from_bits(1));
        assert_eq!(load_exponent(1.5, -1074), f64::from_bits(2));
        assert_eq!(load_exponent(f64::from_bits(1), 2000), 2.0f64.powi(926));
        assert_eq!(load_exponent(1.0, i32::MAX), f64::INFINITY);
        assert_eq!(load_exponent(-1.0, i32::MIN).to_bits(), (-0.0f64).to_bits());
        assert_eq!(load_exponent(2.0f64.powi(1000), -2000), 2.0f64.powi(-1000));
        assert_eq!(load_exponent(f64::INFINITY, -1500), f64::INFINITY);
    }
}
