//! Sums and products of polynomials.
use super::arena::{Atom, AtomId, Monomial, Poly, Term};
use super::memo::MemoOperation;
use super::rational::{self, Rational, integer};
use super::{Expr, ExprArena, ExprError};
use smallvec::SmallVec;

impl ExprArena {
    /// `a + b`
    pub fn add(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        match (a, b) {
            (Expr::ZERO, other) | (other, Expr::ZERO) => return Ok(other),
            _ => {}
        }
        if let (Some(a), Some(b)) = (self.as_rational(a), self.as_rational(b)) {
            return Ok(self.rational(rational::add(a, b)?));
        }
        let sum = add_scaled(
            self.constant(a),
            self.node_terms(a),
            integer(1),
            self.constant(b),
            self.node_terms(b),
        )?;
        self.finish(sum)
    }

    /// `a - b`
    pub fn sub(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        if b == Expr::ZERO {
            return Ok(a);
        }
        let sum = add_scaled(
            self.constant(a),
            self.node_terms(a),
            integer(-1),
            self.constant(b),
            self.node_terms(b),
        )?;
        self.finish(sum)
    }

    /// `-a`
    pub fn neg(&mut self, a: Expr) -> Result<Expr, ExprError> {
        self.scale(a, integer(-1))
    }

    /// `factor * a`
    pub fn scale(&mut self, a: Expr, factor: Rational) -> Result<Expr, ExprError> {
        if let Some(value) = self.as_rational(a) {
            return Ok(self.rational(rational::mul(value, factor)?));
        }
        let scaled = scale_poly(&self.poly(a), factor)?;
        self.finish(scaled)
    }

    /// `a / divisor`, exactly: a fraction stays a coefficient. Rounding is [`ExprArena::floor_div`]'s.
    pub(crate) fn div_exact(&mut self, a: Expr, divisor: i64) -> Result<Expr, ExprError> {
        self.scale(a, rational::div(integer(1), integer(divisor))?)
    }

    /// `a * b`
    pub fn mul(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        match (self.as_rational(a), self.as_rational(b)) {
            (Some(factor), _) => return self.scale(b, factor),
            (_, Some(factor)) => return self.scale(a, factor),
            _ => {}
        }
        let (a, b) = (a.min(b), a.max(b));
        self.remembered(MemoOperation::Mul, a, b, |arena| {
            let product = arena.multiply(&arena.poly(a), &arena.poly(b))?;
            arena.finish(product)
        })
    }

    /// The sum of many: `add` folded.
    #[cfg(test)]
    pub fn sum(&mut self, parts: impl IntoIterator<Item = Expr>) -> Result<Expr, ExprError> {
        parts.into_iter().try_fold(Expr::ZERO, |sum, part| self.add(sum, part))
    }

    pub(super) fn multiply(&mut self, a: &Poly, b: &Poly) -> Result<Poly, ExprError> {
        let mut product = scale_poly(a, b.constant)?;
        let linear = scale_poly(&Poly { constant: integer(0), terms: b.terms.clone() }, a.constant)?;
        product = add_polys(&product, integer(1), &linear)?;
        let mut cross: SmallVec<[Term; 8]> = SmallVec::new();
        for x in &a.terms {
            for y in &b.terms {
                let monomial = self.multiply_monomials(x.monomial, y.monomial)?;
                cross.push(Term { coefficient: rational::mul(x.coefficient, y.coefficient)?, monomial });
            }
            if cross.len() > 1 << 16 {
                return Err(ExprError::TooLarge);
            }
        }
        let cross = collect(cross)?;
        add_polys(&product, integer(1), &Poly { constant: integer(0), terms: cross })
    }

    pub(super) fn multiply_monomials(&mut self, a: Monomial, b: Monomial) -> Result<Monomial, ExprError> {
        let mut factors: SmallVec<[AtomId; 8]> = SmallVec::from_slice(self.factors(a));
        factors.extend_from_slice(self.factors(b));
        self.product(&mut factors)
    }

    /// Interns a polynomial after joining quotients with their remainders: `d*floor(x/d) + x mod d` is `x`.
    pub(super) fn finish(&mut self, mut poly: Poly) -> Result<Expr, ExprError> {
        if poly.terms.len() >= 2 {
            while let Some(joined) = self.join_remainder(&poly)? {
                poly = joined;
            }
        }
        self.intern(&poly)
    }

    fn join_remainder(&self, poly: &Poly) -> Result<Option<Poly>, ExprError> {
        for (at, term) in poly.terms.iter().enumerate() {
            let Some(Atom::Mod(a, b)) = self.single_atom(term.monomial) else { continue };
            let Some(quotient) = self.find_atom(Atom::FloorDiv(a, b)) else { continue };
            let mut factors: SmallVec<[AtomId; 8]> = SmallVec::new();
            factors.push(quotient);
            let factor = match (self.as_rational(b), self.node_terms(b)) {
                (Some(divisor), _) => divisor,
                (None, [divisor]) if self.constant(b) == integer(0) => {
                    factors.extend_from_slice(self.factors(divisor.monomial));
                    factors.sort_unstable();
                    divisor.coefficient
                }
                _ => continue,
            };
            let Some(monomial) = self.find_product(&factors) else { continue };
            let expected = Term { coefficient: rational::mul(factor, term.coefficient)?, monomial };
            if poly.terms.contains(&expected) {
                let mut rest = poly.clone();
                rest.terms.remove(at);
                rest.terms.retain(|other| *other != expected);
                return add_polys(&rest, term.coefficient, &self.poly(a)).map(Some);
            }
        }
        Ok(None)
    }
}

pub(super) fn scale_poly(poly: &Poly, factor: Rational) -> Result<Poly, ExprError> {
    if factor == integer(0) {
        return Ok(Poly::int(0));
    }
    let mut scaled = Poly { constant: rational::mul(poly.constant, factor)?, terms: SmallVec::new() };
    for term in &poly.terms {
        scaled.terms.push(Term { coefficient: rational::mul(term.coefficient, factor)?, ..*term });
    }
    Ok(scaled)
}

/// `a + factor * b`
pub(super) fn add_polys(a: &Poly, factor: Rational, b: &Poly) -> Result<Poly, ExprError> {
    add_scaled(a.constant, &a.terms, factor, b.constant, &b.terms)
}

pub(super) fn add_scaled(
    a_constant: Rational,
    a: &[Term],
    factor: Rational,
    b_constant: Rational,
    b: &[Term],
) -> Result<Poly, ExprError> {
    let constant = rational::add(a_constant, rational::mul(b_constant, factor)?)?;
    let mut terms = SmallVec::new();
    let (mut i, mut j) = (0, 0);
    loop {
        match (a.get(i), b.get(j)) {
            (None, None) => return Ok(Poly { constant, terms }),
            (Some(x), y) if y.is_none_or(|y| x.monomial < y.monomial) => {
                terms.push(*x);
                i += 1;
            }
            (Some(x), Some(y)) if x.monomial == y.monomial => {
                let coefficient = rational::add(x.coefficient, rational::mul(y.coefficient, factor)?)?;
                if coefficient != integer(0) {
                    terms.push(Term { coefficient, ..*x });
                }
                i += 1;
                j += 1;
            }
            (_, Some(y)) => {
                terms.push(Term { coefficient: rational::mul(y.coefficient, factor)?, ..*y });
                j += 1;
            }
            (Some(_), None) => unreachable!("the first arm takes every term of a when b is at its end"),
        }
    }
}

/// Sorts terms and adds up those of one monomial.
pub(super) fn collect(mut terms: SmallVec<[Term; 8]>) -> Result<SmallVec<[Term; 8]>, ExprError> {
    terms.sort_unstable_by_key(|term| term.monomial);
    let mut out: SmallVec<[Term; 8]> = SmallVec::new();
    for term in terms {
        match out.last_mut() {
            Some(last) if last.monomial == term.monomial => {
                last.coefficient = rational::add(last.coefficient, term.coefficient)?;
            }
            _ => out.push(term),
        }
    }
    out.retain(|term| term.coefficient != integer(0));
    Ok(out)
}
