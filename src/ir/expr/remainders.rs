//! Remainders written as quotients, and what divisions cost.
//!
//! An address that takes a number apart, as that of a convolution does, holds quotients and remainders of the
//! same number. `a mod b` is `a - b*floor(a / b)`: written so, the terms of neighbouring digits often cancel
//! and fewer divisions are left. It is not the canonical form, because a remainder has a range that the
//! difference does not show.
use super::arena::{Atom, AtomId};
use super::{Expr, ExprArena, ExprError};
use smallvec::SmallVec;

/// Remainders that one expression may lose: those of more would be an expression of many terms.
const MOST_REPLACED: usize = 16;

impl ExprArena {
    /// The expression with `a - b*floor(a / b)` for each `a mod b` that is a factor of one of its terms.
    /// Remainders inside of quotients stay.
    pub(crate) fn without_remainders(&mut self, e: Expr) -> Result<Expr, ExprError> {
        let mut e = e;
        for _ in 0..MOST_REPLACED {
            let is_remainder = |atom: &&AtomId| matches!(self.atom(**atom), Atom::Mod(..));
            let found = self.terms(e).flat_map(|(_, atoms)| atoms).find(is_remainder).copied();
            let Some(atom) = found else { break };
            let Atom::Mod(a, b) = self.atom(atom) else { break };
            let quotient = self.joined_quotient(a, b)?;
            let whole = self.mul(quotient, b)?;
            let difference = self.sub(a, whole)?;
            e = self.with_atom_as(e, atom, difference)?;
        }
        Ok(e)
    }

    /// `floor(a / b)`, where a quotient in the dividend is joined with it: with positive integers `b` and `c`
    /// and an integer `x`, `floor((x + floor(y / c)) / b)` is `floor((c*x + y) / (b*c))`.
    fn joined_quotient(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        let inner = self.terms(a).find_map(|(coefficient, atoms)| match (atoms, *coefficient.numer()) {
            (&[atom], 1) if *coefficient.denom() == 1 => match self.atom(atom) {
                Atom::FloorDiv(y, c) if self.as_integer(c).is_some_and(|c| c > 0) => Some((atom, y, c)),
                _ => None,
            },
            _ => None,
        });
        let Some((atom, y, c)) = inner.filter(|_| self.as_integer(b).is_some_and(|b| b > 0)) else {
            return self.floor_div(a, b);
        };
        let atom = self.atom_expr(atom);
        let rest = self.sub(a, atom)?;
        if !self.is_integer(rest) {
            return self.floor_div(a, b);
        }
        let scaled = self.mul(rest, c)?;
        let (dividend, divisor) = (self.add(scaled, y)?, self.mul(b, c)?);
        self.floor_div(dividend, divisor)
    }

    /// The expression with another factor in place of an atom of its terms.
    fn with_atom_as(&mut self, e: Expr, replaced: AtomId, by: Expr) -> Result<Expr, ExprError> {
        let terms: SmallVec<[_; 8]> =
            self.terms(e).map(|(c, atoms)| (c, SmallVec::<[AtomId; 4]>::from_slice(atoms))).collect();
        let mut sum = self.rational(self.constant(e));
        for (coefficient, atoms) in terms {
            let mut product = self.rational(coefficient);
            for atom in atoms {
                let factor = if atom == replaced { by } else { self.atom_expr(atom) };
                product = self.mul(product, factor)?;
            }
            sum = self.add(sum, product)?;
        }
        Ok(sum)
    }

    /// About how many instructions the divisions in an expression take, each counted once: a shift or a mask
    /// for powers of two, otherwise a product and a shift, with another product and a difference for a
    /// remainder; and the product of a division with a coefficient that is no shift.
    pub(crate) fn division_cost(&self, e: Expr) -> u32 {
        let mut cost = 0;
        let mut seen: SmallVec<[AtomId; 16]> = SmallVec::new();
        let mut work: SmallVec<[Expr; 16]> = SmallVec::from_slice(&[e]);
        while let Some(e) = work.pop() {
            for (coefficient, atoms) in self.terms(e) {
                for &atom in atoms {
                    let Some((a, b)) = self.atom(atom).operands() else { continue };
                    let is_shift =
                        self.as_integer(b).is_some_and(|b| b > 0 && b.unsigned_abs().is_power_of_two());
                    let own = match self.atom(atom) {
                        Atom::FloorDiv(..) | Atom::Mod(..) if is_shift => 1,
                        Atom::FloorDiv(..) => 2,
                        Atom::Mod(..) => 4,
                        Atom::Min(..) | Atom::Max(..) | Atom::Symbol(_) => 1,
                    };
                    if !coefficient.numer().unsigned_abs().is_power_of_two() || *coefficient.numer() < 0 {
                        cost += 2;
                    }
                    if !seen.contains(&atom) {
                        seen.push(atom);
                        cost += own;
                        work.extend([a, b]);
                    }
                }
            }
        }
        cost
    }
}
