//! What follows for an expression from what is known of its parts.
use super::arena::{Atom, AtomId, Monomial, Term};
use super::facts::{Facts, Range, SymbolFacts};
use super::rational::{self, Rational, gcd_rational, integer};
use super::{Expr, ExprArena, ExprError, Symbol};

impl ExprArena {
    pub(super) fn facts(&self, e: Expr) -> Facts {
        self.nodes[e].facts
    }

    pub(super) fn monomial_facts(&self, monomial: Monomial) -> Facts {
        self.products[monomial].facts
    }

    fn atom_facts(&self, atom: AtomId) -> Facts {
        self.atoms[atom].facts
    }

    /// What is assumed of a symbol.
    pub(crate) fn symbol_range(&self, symbol: Symbol) -> Range {
        self.facts_of_symbol(symbol).range
    }

    /// The largest integer known to divide the expression; 0 for the expression 0, which everything divides,
    /// and 1 when nothing is known.
    #[cfg(test)]
    pub fn divisor(&self, e: Expr) -> i64 {
        let facts = self.facts(e);
        if facts.is_integer() { *facts.content.numer() } else { 1 }
    }

    /// Whether the expression is known to be an integer (coefficients may be fractions: `K/32`).
    pub(crate) fn is_integer(&self, e: Expr) -> bool {
        self.facts(e).is_integer()
    }

    /// Whether `divisor` is known to divide the expression.
    pub fn is_multiple_of(&self, e: Expr, divisor: i64) -> bool {
        let facts = self.facts(e);
        facts.is_integer() && divisor != 0 && i128::from(*facts.content.numer()) % i128::from(divisor) == 0
            || *facts.content.numer() == 0
    }

    pub(super) fn facts_of_symbol(&self, symbol: Symbol) -> Facts {
        let SymbolFacts { lo, hi, divisor, .. } =
            self.symbol_facts.get(&symbol).copied().unwrap_or(SymbolFacts::DEFAULT);
        Facts { range: Range { lo, hi }, content: integer(divisor) }
    }

    pub(super) fn facts_of_atom(&self, atom: Atom) -> Result<Facts, ExprError> {
        let Some((a, b)) = atom.operands() else {
            return Ok(Facts { range: Range::ALL, content: integer(1) });
        };
        let (a, b) = (self.facts(a), self.facts(b));
        let content = gcd_rational(a.content, b.content)?;
        Ok(match atom {
            Atom::FloorDiv(..) => Facts { range: quotient_range(a.range, b), content: integer(1) },
            Atom::Mod(..) => Facts { range: remainder_range(a, b, content), content },
            Atom::Min(..) => {
                let lo = a.range.lo.zip(b.range.lo).map(|(a, b)| a.min(b));
                let hi = a.range.hi.into_iter().chain(b.range.hi).min();
                Facts { range: Range { lo, hi }, content }
            }
            Atom::Max(..) | Atom::Symbol(_) => {
                let lo = a.range.lo.into_iter().chain(b.range.lo).max();
                let hi = a.range.hi.zip(b.range.hi).map(|(a, b)| a.max(b));
                Facts { range: Range { lo, hi }, content }
            }
        })
    }

    pub(super) fn facts_of_product(&self, factors: &[AtomId]) -> Result<Facts, ExprError> {
        let [first, rest @ ..] = factors else { return Ok(Facts::of_constant(integer(1))) };
        let mut product = self.atom_facts(*first);
        for atom in rest {
            let facts = self.atom_facts(*atom);
            product = Facts {
                range: multiply_ranges(product.range, facts.range),
                content: multiply_contents(product.content, facts.content)?,
            };
        }
        Ok(product)
    }

    pub(super) fn facts_of_sum(&self, constant: Rational, terms: &[Term]) -> Result<Facts, ExprError> {
        let mut content = constant;
        let mut denominator = *constant.denom();
        for term in terms {
            let facts = self.monomial_facts(term.monomial);
            content = gcd_rational(content, multiply_contents(term.coefficient, facts.content)?)?;
            if *term.coefficient.denom() != 1 {
                denominator = rational::lcm(denominator, *term.coefficient.denom())?;
            }
        }
        if terms.is_empty() {
            return Ok(Facts::of_constant(constant));
        }
        let over = |value: Rational| i128::from(*value.numer()) * i128::from(denominator / value.denom());
        let (mut lo, mut hi) = (Some(over(constant)), Some(over(constant)));
        for term in terms {
            let factor = over(term.coefficient);
            let Range { lo: low, hi: high } = self.monomial_facts(term.monomial).range;
            let (low, high) = if factor > 0 { (low, high) } else { (high, low) };
            lo = scaled_sum(lo, factor, low);
            hi = scaled_sum(hi, factor, high);
        }
        // An integer lies inside the rounded bounds; any other value only between the next integers.
        let denominator = i128::from(denominator);
        let floor = |value: i128| value.div_euclid(denominator);
        let ceil = |value: i128| -(-value).div_euclid(denominator);
        let (lo, hi) = match *content.denom() {
            1 => (lo.map(ceil), hi.map(floor)),
            _ => (lo.map(floor), hi.map(ceil)),
        };
        let (lo, hi) = (lo.and_then(narrow_lo), hi.and_then(narrow_hi));
        Ok(Facts { range: Range { lo, hi }, content })
    }
}

fn scaled_sum(sum: Option<i128>, factor: i128, bound: Option<i64>) -> Option<i128> {
    // Kept far from the ends so that the rounding afterwards cannot overflow.
    let sum = sum?.checked_add(factor.checked_mul(bound?.into())?)?;
    (sum.unsigned_abs() < 1 << 126).then_some(sum)
}

fn narrow_lo(value: i128) -> Option<i64> {
    (value >= i64::MIN.into()).then(|| value.min(i64::MAX.into()) as i64)
}

fn narrow_hi(value: i128) -> Option<i64> {
    (value <= i64::MAX.into()).then(|| value.max(i64::MIN.into()) as i64)
}

/// The product of two contents, or a divisor of it when that does not fit.
fn multiply_contents(a: Rational, b: Rational) -> Result<Rational, ExprError> {
    let product = match rational::mul(a, b) {
        Ok(product) => product,
        Err(_) if *b.denom() == 1 => a,
        Err(_) if *a.denom() == 1 => b,
        Err(error) => return Err(error),
    };
    if *product.numer() >= 0 { Ok(product) } else { rational::neg(product).or(Ok(integer(1))) }
}

fn multiply_ranges(a: Range, b: Range) -> Range {
    if a.at_least(0) && b.at_least(0) {
        let product = |x: Option<i64>, y: Option<i64>| Some(i128::from(x?) * i128::from(y?));
        let zero = a.hi == Some(0) || b.hi == Some(0);
        let hi = if zero { Some(0) } else { product(a.hi, b.hi).and_then(narrow_hi) };
        return Range { lo: product(a.lo, b.lo).and_then(narrow_lo), hi };
    }
    let (Some(al), Some(ah), Some(bl), Some(bh)) = (a.lo, a.hi, b.lo, b.hi) else { return Range::ALL };
    let corners = [(al, bl), (al, bh), (ah, bl), (ah, bh)].map(|(x, y)| i128::from(x) * i128::from(y));
    let lo = corners.iter().copied().min().and_then(narrow_lo);
    let hi = corners.iter().copied().max().and_then(narrow_hi);
    Range { lo, hi }
}

/// Bounds of `floor(a / b)`. A non-negative integer divisor is at least one, or there is no value.
fn quotient_range(a: Range, b: Facts) -> Range {
    let Some(least) = b.range.lo.filter(|lo| *lo >= 0 && b.is_integer()).map(|lo| lo.max(1)) else {
        return Range::ALL;
    };
    let toward_zero = |value: i64, limit: i64| match b.range.hi {
        Some(greatest) => value.div_euclid(greatest.max(least)),
        None => limit,
    };
    let lo = a.lo.map(|lo| if lo >= 0 { toward_zero(lo, 0) } else { lo.div_euclid(least) });
    let hi = a.hi.map(|hi| if hi >= 0 { hi.div_euclid(least) } else { toward_zero(hi, -1) });
    Range { lo, hi }
}

/// Bounds of `a mod b`; the remainder is a multiple of what divides both.
fn remainder_range(a: Facts, b: Facts, content: Rational) -> Range {
    if !b.range.at_least(0) {
        return Range::ALL;
    }
    let step = if *content.denom() == 1 { (*content.numer()).max(1) } else { 0 };
    let below = b.range.hi.map(|hi| (hi - step.min(hi)).max(0));
    let hi = if a.range.at_least(0) { below.into_iter().chain(a.range.hi).min() } else { below };
    Range { lo: Some(0), hi }
}
