//! Checked rational arithmetic: every result is exact and reduced, or an overflow. Products are computed in
//! `i128` and narrowed at the end, so that nothing overflows on the way.
use std::cmp::Ordering;

use super::ExprError;

/// A coefficient: a reduced fraction whose denominator is positive, so that equal numbers are equal in every
/// part.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rational {
    numerator: i64,
    denominator: i64,
}

impl Rational {
    /// A fraction whose parts are already reduced.
    const fn new_raw(numerator: i64, denominator: i64) -> Rational {
        Rational { numerator, denominator }
    }

    /// A whole number.
    pub(crate) const fn from_integer(value: i64) -> Rational {
        Rational::new_raw(value, 1)
    }

    /// The numerator.
    pub(crate) const fn numer(&self) -> &i64 {
        &self.numerator
    }

    /// The denominator, which is positive.
    pub(crate) const fn denom(&self) -> &i64 {
        &self.denominator
    }
}

impl Ord for Rational {
    fn cmp(&self, other: &Rational) -> Ordering {
        let (an, ad, bn, bd) = parts(*self, *other);
        (an * bd).cmp(&(bn * ad))
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Rational) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

pub(super) fn gcd64(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `numerator / denominator`, reduced; the denominator is not zero.
fn reduced(numerator: i128, denominator: i128) -> Result<Rational, ExprError> {
    let divisor = gcd(numerator, denominator) * denominator.signum();
    let narrow = |value: i128| i64::try_from(value).map_err(|_| ExprError::Overflow);
    Ok(Rational::new_raw(narrow(numerator / divisor)?, narrow(denominator / divisor)?))
}

pub(super) const fn integer(value: i64) -> Rational {
    Rational::from_integer(value)
}

pub(super) fn add(a: Rational, b: Rational) -> Result<Rational, ExprError> {
    if *a.denom() == 1 && *b.denom() == 1 {
        return a.numer().checked_add(*b.numer()).map(integer).ok_or(ExprError::Overflow);
    }
    let (an, ad, bn, bd) = parts(a, b);
    // Two products below 2^126 each: the sum fits.
    reduced(an * bd + bn * ad, ad * bd)
}

pub(super) fn mul(a: Rational, b: Rational) -> Result<Rational, ExprError> {
    if *a.denom() == 1 && *b.denom() == 1 {
        return a.numer().checked_mul(*b.numer()).map(integer).ok_or(ExprError::Overflow);
    }
    let (an, ad, bn, bd) = parts(a, b);
    reduced(an * bn, ad * bd)
}

pub(super) fn div(a: Rational, b: Rational) -> Result<Rational, ExprError> {
    if *b.numer() == 0 {
        return Err(ExprError::DivisionByZero);
    }
    let (an, ad, bn, bd) = parts(a, b);
    reduced(an * bd, ad * bn)
}

pub(super) fn neg(a: Rational) -> Result<Rational, ExprError> {
    Ok(Rational::new_raw(a.numer().checked_neg().ok_or(ExprError::Overflow)?, *a.denom()))
}

/// The largest integer not above `a`.
pub(super) fn floor(a: Rational) -> i64 {
    if *a.denom() == 1 { *a.numer() } else { a.numer().div_euclid(*a.denom()) }
}

/// `a / b` rounded towards minus infinity; nothing for a divisor of zero, and where an `i64` is too small.
pub(super) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let towards_zero = a.checked_div(b)?;
    Some(towards_zero - i64::from(a % b != 0 && (a < 0) != (b < 0)))
}

/// The integer next to `a` on the side of zero.
pub(super) fn trunc(a: Rational) -> i64 {
    if *a.denom() == 1 { *a.numer() } else { a.numer() / a.denom() }
}

/// The greatest rational of which both are integer multiples; zero counts as a multiple of everything.
pub(super) fn gcd_rational(a: Rational, b: Rational) -> Result<Rational, ExprError> {
    if *a.denom() == 1 && *b.denom() == 1 {
        let divisor = gcd64(a.numer().unsigned_abs(), b.numer().unsigned_abs());
        return i64::try_from(divisor).map(integer).map_err(|_| ExprError::Overflow);
    }
    let (an, ad, bn, bd) = parts(a, b);
    reduced(gcd(an * bd, bn * ad), ad * bd)
}

/// Least common multiple of two positive integers.
pub(super) fn lcm(a: i64, b: i64) -> Result<i64, ExprError> {
    let divisor = gcd(a.into(), b.into()).max(1);
    i64::try_from(i128::from(a) / divisor * i128::from(b)).map_err(|_| ExprError::Overflow)
}

fn parts(a: Rational, b: Rational) -> (i128, i128, i128, i128) {
    ((*a.numer()).into(), (*a.denom()).into(), (*b.numer()).into(), (*b.denom()).into())
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
