//! Checked rational arithmetic: every result is exact and reduced, or an overflow. Products are computed in
//! `i128` and narrowed at the end, so that nothing overflows on the way.

use num_integer::Integer;
use num_rational::Ratio;

use super::ExprError;

/// A coefficient: a reduced fraction whose denominator is positive, so that equal numbers are equal in every
/// part.
pub(crate) type Rational = Ratio<i64>;

pub(super) fn gcd(a: i128, b: i128) -> i128 {
    a.gcd(&b)
}

pub(super) fn gcd64(a: u64, b: u64) -> u64 {
    a.gcd(&b)
}

fn wide(a: Rational) -> Ratio<i128> {
    Ratio::new_raw((*a.numer()).into(), (*a.denom()).into())
}

fn narrow(a: Ratio<i128>) -> Result<Rational, ExprError> {
    let narrow = |part: i128| i64::try_from(part).map_err(|_| ExprError::Overflow);
    Ok(Ratio::new_raw(narrow(*a.numer())?, narrow(*a.denom())?))
}

pub(super) fn integer(value: i64) -> Rational {
    Ratio::from_integer(value)
}

pub(super) fn add(a: Rational, b: Rational) -> Result<Rational, ExprError> {
    if a.is_integer() && b.is_integer() {
        return a.numer().checked_add(*b.numer()).map(integer).ok_or(ExprError::Overflow);
    }
    narrow(wide(a) + wide(b))
}

pub(super) fn mul(a: Rational, b: Rational) -> Result<Rational, ExprError> {
    if a.is_integer() && b.is_integer() {
        return a.numer().checked_mul(*b.numer()).map(integer).ok_or(ExprError::Overflow);
    }
    narrow(wide(a) * wide(b))
}

pub(super) fn div(a: Rational, b: Rational) -> Result<Rational, ExprError> {
    if *b.numer() == 0 {
        return Err(ExprError::DivisionByZero);
    }
    narrow(wide(a) / wide(b))
}

pub(super) fn neg(a: Rational) -> Result<Rational, ExprError> {
    let numerator = a.numer().checked_neg().ok_or(ExprError::Overflow)?;
    Ok(Ratio::new_raw(numerator, *a.denom()))
}

/// The largest integer not above `a`.
pub(super) fn floor(a: Rational) -> i64 {
    if a.is_integer() { *a.numer() } else { Integer::div_floor(a.numer(), a.denom()) }
}

/// `a / b` rounded towards minus infinity; nothing for a divisor of zero, and where an `i64` is too small.
pub(super) fn floor_div(a: i64, b: i64) -> Option<i64> {
    a.checked_div(b).map(|_| Integer::div_floor(&a, &b))
}

/// The integer next to `a` on the side of zero.
pub(super) fn trunc(a: Rational) -> i64 {
    a.to_integer()
}

/// The greatest rational of which both are integer multiples; zero counts as a multiple of everything.
pub(super) fn gcd_rational(a: Rational, b: Rational) -> Result<Rational, ExprError> {
    if a.is_integer() && b.is_integer() {
        let divisor = gcd64(a.numer().unsigned_abs(), b.numer().unsigned_abs());
        return i64::try_from(divisor).map(integer).map_err(|_| ExprError::Overflow);
    }
    let (a, b) = (wide(a), wide(b));
    narrow(Ratio::new(gcd(a.numer() * b.denom(), b.numer() * a.denom()), a.denom() * b.denom()))
}

/// Least common multiple of two positive integers.
pub(super) fn lcm(a: i64, b: i64) -> Result<i64, ExprError> {
    i64::try_from(i128::from(a).lcm(&b.into())).map_err(|_| ExprError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_reduced_and_exact_or_an_overflow() {
        let r = Rational::new_raw;
        assert_eq!(add(r(1, 2), r(1, 2)), Ok(integer(1)));
        assert_eq!(mul(r(2, 3), r(3, 4)), Ok(r(1, 2)));
        assert_eq!(div(r(1, 2), r(-1, 4)), Ok(integer(-2)));
        assert_eq!(gcd_rational(r(3, 4), r(1, 2)), Ok(r(1, 4)));
        assert!(r(-1, 2) < integer(0) && r(1, 3) < r(1, 2) && r(i64::MAX, 2) > r(i64::MAX - 1, 2));
        assert_eq!(floor(r(-1, 2)), -1);
        assert_eq!(trunc(r(-1, 2)), 0);
        assert_eq!(floor_div(i64::MIN, -1), None);
        assert_eq!(neg(integer(i64::MIN)), Err(ExprError::Overflow));
        assert_eq!(div(integer(i64::MIN), integer(-1)), Err(ExprError::Overflow));
        assert_eq!(add(integer(i64::MAX), integer(1)), Err(ExprError::Overflow));
        assert_eq!(div(integer(1), integer(0)), Err(ExprError::DivisionByZero));
    }

    /// Denominators whose product is far beyond 64 bits, and the smallest numerator.
    #[test]
    fn nothing_overflows_on_the_way() {
        let (large, least) = (Rational::new_raw(1, i64::MAX), Rational::new_raw(i64::MIN, i64::MAX));
        assert_eq!(add(large, large), Ok(Rational::new_raw(2, i64::MAX)));
        assert_eq!(mul(least, Rational::new_raw(i64::MAX, 2)), Ok(integer(i64::MIN / 2)));
        assert_eq!(div(least, large), Ok(integer(i64::MIN)));
        assert_eq!(gcd_rational(least, large), Ok(large));
        assert_eq!(add(least, integer(-1)), Err(ExprError::Overflow));
        assert!(floor(least) == -2 && trunc(least) == -1);
    }
}
