//! Floor division and modulo.
//!
//! Both reduce the same way. A quotient `a / b` is taken apart into
//! `a = b*whole + rest + scale*dividend` and `b = scale*divisor`, where `whole` is an integer and `rest`
//! never decides the quotient, so that
//!
//! * `floor(a / b) = whole + floor(dividend / divisor)`
//! * `a mod b = rest + scale * (dividend mod divisor)`
//!
//! and only the small quotient that is left becomes an atom, if it is not zero.
use super::arena::{Atom, AtomId, Monomial, Poly, Term};
use super::arithmetic::{add_polys, scale_poly};
use super::memo::MemoOperation;
use super::rational::{self, Rational, gcd, integer};
use super::{Expr, ExprArena, ExprError};
use smallvec::SmallVec;

/// A quotient taken apart; see the module's introduction.
struct Quotient {
    whole: Poly,
    rest: Poly,
    dividend: Poly,
    divisor: Poly,
    scale: Rational,
    /// The part of the scale that is not a number.
    factor: Option<Monomial>,
    /// Nothing is left to round: the dividend lies between zero and the divisor.
    settled: bool,
}

impl ExprArena {
    /// `a / b` rounded towards minus infinity.
    pub fn floor_div(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        match b {
            Expr::ZERO => Err(ExprError::DivisionByZero),
            Expr::ONE if self.is_integer(a) => Ok(a),
            _ if a == Expr::ZERO => Ok(Expr::ZERO),
            _ => match self.quotient_of_integers(a, b) {
                Some(quotient) => Ok(self.int(quotient)),
                None => self.remembered(MemoOperation::FloorDiv, a, b, |arena| arena.compute_floor_div(a, b)),
            },
        }
    }

    /// The quotient of two integer constants, which most sizes and tiles are.
    fn quotient_of_integers(&self, a: Expr, b: Expr) -> Option<i64> {
        rational::floor_div(self.as_integer(a)?, self.as_integer(b)?)
    }

    fn compute_floor_div(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        let quotient = self.take_apart(a, b)?;
        let whole = self.finish(quotient.whole)?;
        if quotient.settled {
            return Ok(whole);
        }
        let (dividend, divisor) = (self.finish(quotient.dividend)?, self.intern(&quotient.divisor)?);
        let left = if (dividend, divisor) == (a, b) {
            self.left_over_quotient(a, b)?
        } else {
            // The rest may reduce further; once nothing changes, it is in its only form.
            self.floor_div(dividend, divisor)?
        };
        self.add(whole, left)
    }

    /// `a - b * floor(a / b)`
    pub fn modulo(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        match b {
            Expr::ZERO => Err(ExprError::DivisionByZero),
            Expr::ONE if self.is_integer(a) => Ok(Expr::ZERO),
            _ if a == Expr::ZERO => Ok(Expr::ZERO),
            _ => self.remembered(MemoOperation::Mod, a, b, |arena| arena.compute_modulo(a, b)),
        }
    }

    fn compute_modulo(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        let quotient = self.take_apart(a, b)?;
        let inner = if quotient.settled {
            self.finish(quotient.dividend)?
        } else {
            let unwrapped = self.unwrap_remainders(quotient.dividend, &quotient.divisor)?;
            let dividend = self.least_residues(unwrapped, &quotient.divisor)?;
            let (dividend, divisor) = (self.finish(dividend)?, self.intern(&quotient.divisor)?);
            if (dividend, divisor) == (a, b) {
                self.operation(Atom::Mod(a, b))?
            } else {
                self.modulo(dividend, divisor)?
            }
        };
        let mut scaled = self.scale(inner, quotient.scale)?;
        if let Some(monomial) = quotient.factor {
            let terms = SmallVec::from_slice(&[Term { coefficient: integer(1), monomial }]);
            let factor = self.intern(&Poly { constant: integer(0), terms })?;
            scaled = self.mul(scaled, factor)?;
        }
        let rest = self.finish(quotient.rest)?;
        self.add(rest, scaled)
    }

    /// `a / b` rounded towards plus infinity.
    pub(crate) fn ceil_div(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        let integers = self.is_integer(a) && self.is_integer(b);
        match self.as_integer(b) {
            Some(d) if integers && d > 0 => {
                let up = self.int(d - 1);
                let a = self.add(a, up)?;
                self.floor_div(a, b)
            }
            None if integers && self.range(b).at_least(0) => {
                let less = self.sub(a, Expr::ONE)?;
                let quotient = self.floor_div(less, b)?;
                self.add(quotient, Expr::ONE)
            }
            _ => {
                let negated = self.neg(a)?;
                let quotient = self.floor_div(negated, b)?;
                self.neg(quotient)
            }
        }
    }

    fn take_apart(&mut self, a: Expr, b: Expr) -> Result<Quotient, ExprError> {
        let mut quotient = Quotient {
            whole: Poly::int(0),
            rest: Poly::int(0),
            dividend: self.poly(a),
            divisor: self.poly(b),
            scale: integer(1),
            factor: None,
            settled: false,
        };
        quotient.clear_fractions()?;
        if !quotient.divisor.terms.is_empty() {
            self.reduce_by_polynomial(&mut quotient)?;
        }
        if quotient.divisor.terms.is_empty() && !quotient.settled {
            self.reduce_by_integer(&mut quotient)?;
        }
        Ok(quotient)
    }

    /// The divisor is a positive integer and so is every coefficient an integer.
    fn reduce_by_integer(&mut self, quotient: &mut Quotient) -> Result<(), ExprError> {
        loop {
            quotient.cancel_common_factor()?;
            let d = *quotient.divisor.constant.numer();
            self.take_multiples(quotient, d)?;
            let range = self.facts_of_sum(quotient.dividend.constant, &quotient.dividend.terms)?.range;
            if let (Some(lo), Some(hi)) = (range.lo, range.hi)
                && lo.div_euclid(d) == hi.div_euclid(d)
            {
                quotient.take_whole(lo.div_euclid(d))?;
                quotient.settled = true;
                return Ok(());
            }
            if !self.split_low_part(quotient, d)? && !quotient.has_common_factor() {
                return Ok(());
            }
        }
    }

    /// Moves the parts that are certainly multiples of `d` out of the dividend.
    fn take_multiples(&self, quotient: &mut Quotient, d: i64) -> Result<(), ExprError> {
        let mut left: SmallVec<[Term; 8]> = SmallVec::new();
        let mut out: SmallVec<[Term; 8]> = SmallVec::new();
        for term in &quotient.dividend.terms {
            let facts = self.monomial_facts(term.monomial);
            let ratio = rational::div(term.coefficient, integer(d))?;
            if is_multiple(term.coefficient, facts.content, d) {
                out.push(Term { coefficient: ratio, ..*term });
                continue;
            }
            let whole = if facts.is_integer() { rational::trunc(ratio) } else { 0 };
            if whole != 0 {
                out.push(Term { coefficient: integer(whole), ..*term });
            }
            let coefficient = integer(*term.coefficient.numer() - whole * d);
            left.push(Term { coefficient, ..*term });
        }
        quotient.dividend.terms = left;
        quotient.whole = add_polys(&quotient.whole, integer(1), &Poly { constant: integer(0), terms: out })?;
        quotient.take_whole(rational::floor(quotient.dividend.constant).div_euclid(d))
    }

    /// If part of the dividend is a multiple of some g that divides the divisor, and the other part stays
    /// between two neighbouring multiples of g, then the other part cannot decide the quotient and is a
    /// remainder.
    fn split_low_part(&self, quotient: &mut Quotient, d: i64) -> Result<bool, ExprError> {
        // The rest has no place for symbols that have been cancelled; what is left is divided anew, and then
        // there are none.
        if quotient.factor.is_some() {
            return Ok(false);
        }
        let terms = &quotient.dividend.terms;
        let part = |term: &Term| common_part(term.coefficient, self.monomial_facts(term.monomial).content, d);
        let mut steps: SmallVec<[i64; 16]> = terms.iter().map(part).collect();
        steps.sort_unstable_by(|a, b| b.cmp(a));
        let mut running = 0;
        for at in 0..steps.len() {
            running = gcd(running.into(), steps[at].into()) as i64;
            steps.push(running);
        }
        steps.sort_unstable_by(|a, b| b.cmp(a));
        steps.dedup();
        for step in steps.into_iter().take_while(|step| *step > 1) {
            let (high, low): (SmallVec<[Term; 8]>, SmallVec<[Term; 8]>) =
                terms.iter().copied().partition(|term| part(term) % step == 0);
            let range = self.facts_of_sum(quotient.dividend.constant, &low)?.range;
            let (Some(lo), Some(hi)) = (range.lo, range.hi) else { continue };
            let multiple = lo.div_euclid(step);
            if multiple != hi.div_euclid(step) {
                continue;
            }
            let kept = integer(multiple.checked_mul(step).ok_or(ExprError::Overflow)?);
            let low = Poly {
                constant: rational::add(quotient.dividend.constant, rational::neg(kept)?)?,
                terms: low,
            };
            if low == Poly::int(0) {
                continue;
            }
            quotient.rest = add_polys(&quotient.rest, quotient.scale, &low)?;
            quotient.dividend = Poly { constant: kept, terms: high };
            return Ok(true);
        }
        Ok(false)
    }

    /// The divisor holds symbols.
    fn reduce_by_polynomial(&mut self, quotient: &mut Quotient) -> Result<(), ExprError> {
        loop {
            if quotient.divisor.constant == integer(0) && quotient.divisor.terms.len() == 1 {
                self.take_multiples_of_monomial(quotient)?;
            } else {
                take_multiples_of_sum(quotient)?;
            }
            quotient.cancel_common_factor()?;
            if self.settle_by_range(quotient)? || !self.cancel_common_atoms(quotient)? {
                return Ok(());
            }
            if quotient.divisor.terms.is_empty() {
                return Ok(());
            }
        }
    }

    fn take_multiples_of_monomial(&mut self, quotient: &mut Quotient) -> Result<(), ExprError> {
        let divisor = quotient.divisor.terms[0];
        let mut out = Poly::int(0);
        let mut left = Poly { constant: quotient.dividend.constant, terms: SmallVec::new() };
        for term in std::mem::take(&mut quotient.dividend.terms) {
            let Some(mut atoms) = without(self.factors(term.monomial), self.factors(divisor.monomial)) else {
                left.terms.push(term);
                continue;
            };
            let ratio = rational::div(term.coefficient, divisor.coefficient)?;
            let (others, content) = if atoms.is_empty() {
                (None, integer(1))
            } else {
                let monomial = self.product(&mut atoms)?;
                (Some(monomial), self.monomial_facts(monomial).content)
            };
            let whole = match rational::mul(ratio, content) {
                Ok(multiple) if *multiple.denom() == 1 && *content.denom() == 1 => ratio,
                _ if *content.denom() == 1 => integer(rational::trunc(ratio)),
                _ => integer(0),
            };
            if whole != integer(0) {
                let taken = match others {
                    None => Poly { constant: whole, terms: SmallVec::new() },
                    Some(monomial) => Poly {
                        constant: integer(0),
                        terms: SmallVec::from_slice(&[Term { coefficient: whole, monomial }]),
                    },
                };
                out = add_polys(&out, integer(1), &taken)?;
            }
            let taken = rational::neg(rational::mul(whole, divisor.coefficient)?)?;
            let coefficient = rational::add(term.coefficient, taken)?;
            if coefficient != integer(0) {
                left.terms.push(Term { coefficient, ..term });
            }
        }
        quotient.whole = add_polys(&quotient.whole, integer(1), &out)?;
        quotient.dividend = left;
        Ok(())
    }

    /// Whether the dividend lies in `0..divisor` or in `-divisor..0`, so that its quotient is 0 or -1.
    fn settle_by_range(&self, quotient: &mut Quotient) -> Result<bool, ExprError> {
        if quotient.dividend == Poly::int(0) {
            quotient.settled = true;
            return Ok(true);
        }
        let Quotient { dividend, divisor, .. } = &*quotient;
        let dividend_range = self.facts_of_sum(dividend.constant, &dividend.terms)?.range;
        let divisor_facts = self.facts_of_sum(divisor.constant, &divisor.terms)?;
        if !divisor_facts.is_integer() {
            return Ok(false);
        }
        // A non-negative integer that is a valid divisor is at least one.
        let least = divisor_facts.range.lo.filter(|lo| *lo >= 0).map(|lo| lo.max(1));
        let Some(least) = least else { return Ok(false) };
        if dividend_range.at_least(0) {
            let gap = add_polys(divisor, integer(-1), dividend)?;
            let gap = self.facts_of_sum(gap.constant, &gap.terms)?.range;
            if gap.at_least(1) || dividend_range.at_most(least - 1) {
                quotient.settled = true;
            }
        } else if dividend_range.at_most(-1) {
            let gap = add_polys(divisor, integer(1), dividend)?;
            let gap = self.facts_of_sum(gap.constant, &gap.terms)?.range;
            if gap.at_least(0) || dividend_range.at_least(-least) {
                quotient.whole = add_polys(&quotient.whole, integer(-1), &Poly::int(1))?;
                quotient.dividend = add_polys(&quotient.dividend, integer(1), &quotient.divisor)?;
                quotient.settled = true;
            }
        }
        Ok(quotient.settled)
    }

    /// Moves atoms that occur in every term of both to the scale, when neither has a constant. Returns
    /// whether there were any.
    fn cancel_common_atoms(&mut self, quotient: &mut Quotient) -> Result<bool, ExprError> {
        let Quotient { dividend, divisor, .. } = &*quotient;
        if dividend.constant != integer(0) || divisor.constant != integer(0) || dividend.terms.is_empty() {
            return Ok(false);
        }
        let mut common: SmallVec<[AtomId; 8]> = SmallVec::from_slice(self.factors(divisor.terms[0].monomial));
        for term in divisor.terms.iter().chain(&dividend.terms) {
            common = intersection(&common, self.factors(term.monomial));
        }
        if common.is_empty() {
            return Ok(false);
        }
        let dividend = self.divide_terms(&quotient.dividend, &common)?;
        let divisor = self.divide_terms(&quotient.divisor, &common)?;
        (quotient.dividend, quotient.divisor) = (dividend, divisor);
        common.extend(quotient.factor.iter().flat_map(|factor| self.factors(*factor)).copied());
        quotient.factor = Some(self.product(&mut common)?);
        quotient.make_divisor_positive()?;
        Ok(true)
    }

    fn divide_terms(&mut self, poly: &Poly, atoms: &[AtomId]) -> Result<Poly, ExprError> {
        let mut constant = poly.constant;
        let mut terms: SmallVec<[Term; 8]> = SmallVec::new();
        for term in &poly.terms {
            let mut left = without(self.factors(term.monomial), atoms).unwrap_or_default();
            if left.is_empty() {
                constant = rational::add(constant, term.coefficient)?;
            } else {
                terms.push(Term { monomial: self.product(&mut left)?, ..*term });
            }
        }
        terms.sort_unstable_by_key(|term| term.monomial);
        Ok(Poly { constant, terms })
    }

    /// `floor(a / b)` of what the reduction left, as an expression.
    fn left_over_quotient(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        let dividend = self.poly(a);
        let all_negative = dividend.terms.iter().all(|term| *term.coefficient.numer() < 0);
        if let Some(d) = self.as_integer(b)
            && self.is_integer(a)
            && all_negative
        {
            // -ceil(x / d), so that rounding up has one form however it was written.
            let mut positive = scale_poly(&dividend, integer(-1))?;
            positive.constant = rational::add(positive.constant, integer(d - 1))?;
            let positive = self.finish(positive)?;
            let quotient = self.floor_div(positive, b)?;
            return self.neg(quotient);
        }
        // floor((floor(x / c) + k) / b) is floor((x + k*c) / (c*b)) for a positive integer b.
        if let [Term { coefficient, monomial }] = dividend.terms[..]
            && coefficient == integer(1)
            && *dividend.constant.denom() == 1
            && let Some(Atom::FloorDiv(x, c)) = self.single_atom(monomial)
            && self.is_integer(b)
            && self.range(b).at_least(0)
        {
            let shift = self.scale(c, dividend.constant)?;
            let (x, c) = (self.add(x, shift)?, self.mul(c, b)?);
            return self.floor_div(x, c);
        }
        self.operation(Atom::FloorDiv(a, b))
    }

    /// Replaces terms `c * (x mod m)` by `c * x` where the divisor divides `c * m`: what the inner modulo
    /// took away is a multiple of the divisor.
    fn unwrap_remainders(&self, mut dividend: Poly, divisor: &Poly) -> Result<Poly, ExprError> {
        for term in dividend.terms.clone() {
            let Some(Atom::Mod(x, m)) = self.single_atom(term.monomial) else { continue };
            let divides = if *term.coefficient.denom() != 1 {
                false
            } else if divisor.terms.is_empty() {
                is_multiple(term.coefficient, self.facts(m).content, *divisor.constant.numer())
            } else {
                self.poly(m) == *divisor
            };
            if divides {
                let mut wrapped = Poly::int(0);
                wrapped.terms.push(term);
                dividend = add_polys(&dividend, integer(-1), &wrapped)?;
                dividend = add_polys(&dividend, term.coefficient, &self.poly(x))?;
            }
        }
        Ok(dividend)
    }

    /// Brings coefficients into `0..divisor`, where that is sound: residues have one form.
    fn least_residues(&self, mut dividend: Poly, divisor: &Poly) -> Result<Poly, ExprError> {
        if divisor.terms.is_empty() {
            for term in &mut dividend.terms {
                if *term.coefficient.numer() < 0 && self.monomial_facts(term.monomial).is_integer() {
                    term.coefficient = rational::add(term.coefficient, divisor.constant)?;
                }
            }
        }
        Ok(dividend)
    }
}

impl Quotient {
    /// Moves a whole number of divisors out of the dividend.
    fn take_whole(&mut self, count: i64) -> Result<(), ExprError> {
        if count != 0 {
            self.whole = add_polys(&self.whole, integer(1), &Poly::int(count))?;
            self.dividend = add_polys(&self.dividend, rational::neg(integer(count))?, &self.divisor)?;
        }
        Ok(())
    }

    fn rescale(&mut self, factor: Rational) -> Result<(), ExprError> {
        self.dividend = scale_poly(&self.dividend, factor)?;
        self.divisor = scale_poly(&self.divisor, factor)?;
        self.scale = rational::div(self.scale, factor)?;
        Ok(())
    }

    fn numbers(&self) -> impl Iterator<Item = Rational> {
        let of = |poly: &Poly| -> SmallVec<[Rational; 8]> {
            poly.terms.iter().map(|term| term.coefficient).chain([poly.constant]).collect()
        };
        of(&self.dividend).into_iter().chain(of(&self.divisor))
    }

    fn clear_fractions(&mut self) -> Result<(), ExprError> {
        let common = self.numbers().try_fold(1, |common, number| match *number.denom() {
            1 => Ok(common),
            denominator => rational::lcm(common, denominator),
        })?;
        if common != 1 {
            self.rescale(integer(common))?;
        }
        self.make_divisor_positive()
    }

    fn make_divisor_positive(&mut self) -> Result<(), ExprError> {
        let divisor = &self.divisor;
        let coefficients = divisor.terms.iter().map(|term| term.coefficient);
        let negative = coefficients.chain([divisor.constant]).all(|number| *number.numer() <= 0);
        if negative { self.rescale(integer(-1)) } else { Ok(()) }
    }

    fn common_factor(&self) -> i128 {
        self.numbers().fold(0, |common, number| gcd(common, (*number.numer()).into()))
    }

    fn has_common_factor(&self) -> bool {
        self.common_factor() > 1
    }

    fn cancel_common_factor(&mut self) -> Result<(), ExprError> {
        match i64::try_from(self.common_factor()) {
            Ok(factor) if factor > 1 => self.rescale(rational::div(integer(1), integer(factor))?),
            _ => Ok(()),
        }
    }
}

/// Takes as many whole divisors as every term of the divisor allows.
fn take_multiples_of_sum(quotient: &mut Quotient) -> Result<(), ExprError> {
    let mut count: Option<i64> = None;
    for term in &quotient.divisor.terms {
        let found = quotient.dividend.terms.iter().find(|other| other.monomial == term.monomial);
        let Some(found) = found else { return Ok(()) };
        let ratio = rational::trunc(rational::div(found.coefficient, term.coefficient)?);
        count = match count {
            Some(so_far) if so_far.signum() != ratio.signum() => return Ok(()),
            Some(so_far) if so_far.unsigned_abs() <= ratio.unsigned_abs() => Some(so_far),
            _ => Some(ratio),
        };
    }
    quotient.take_whole(count.unwrap_or(0))
}

/// Whether an integer coefficient times a multiple of `content` is a multiple of `d`.
fn is_multiple(coefficient: Rational, content: Rational, d: i64) -> bool {
    *content.denom() == 1
        && i128::from(*coefficient.numer()) * i128::from(*content.numer()) % i128::from(d) == 0
}

/// The greatest divisor of `d` that certainly divides the term; 1 if the term may be a fraction.
fn common_part(coefficient: Rational, content: Rational, d: i64) -> i64 {
    if *content.denom() != 1 {
        return 1;
    }
    let multiple = i128::from(*coefficient.numer()) * i128::from(*content.numer());
    // A divisor of d, which fits.
    gcd(multiple, d.into()) as i64
}

/// A sorted list without the elements of another (with multiplicity), if it holds them all.
fn without(all: &[AtomId], taken: &[AtomId]) -> Option<SmallVec<[AtomId; 8]>> {
    let mut left: SmallVec<[AtomId; 8]> = SmallVec::from_slice(all);
    for atom in taken {
        let at = left.iter().position(|other| other == atom)?;
        left.remove(at);
    }
    Some(left)
}

fn intersection(a: &[AtomId], b: &[AtomId]) -> SmallVec<[AtomId; 8]> {
    let mut left: SmallVec<[AtomId; 8]> = SmallVec::from_slice(b);
    let mut common = SmallVec::new();
    for atom in a {
        if let Some(at) = left.iter().position(|other| other == atom) {
            left.remove(at);
            common.push(*atom);
        }
    }
    common
}
