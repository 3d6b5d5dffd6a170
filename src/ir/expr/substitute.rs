//! The symbols that an expression holds, and substitution for them.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use super::arena::{Atom, AtomId, Poly, Term};
use super::arithmetic::add_scaled;
use super::rational::gcd;
use super::{Expr, ExprArena, ExprError, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

impl ExprArena {
    /// The symbols of an expression, each once, in order of name.
    pub fn symbols(&self, e: Expr) -> SmallVec<[Symbol; 8]> {
        let atoms = self.terms(e).flat_map(|(_, atoms)| atoms.iter().copied());
        let mut found = self.symbols_of(atoms.collect());
        found.sort();
        found
    }

    /// The symbols below some atoms, each once.
    fn symbols_of(&self, mut work: SmallVec<[AtomId; 16]>) -> SmallVec<[Symbol; 8]> {
        let mut found: SmallVec<[Symbol; 8]> = SmallVec::new();
        // Most expressions have few symbols and no operations, and take no memory then.
        let mut seen: FxHashSet<AtomId> = FxHashSet::default();
        while let Some(atom) = work.pop() {
            match self.atom(atom) {
                Atom::Symbol(symbol) => {
                    if !found.contains(&symbol) {
                        found.push(symbol);
                    }
                }
                operation => {
                    let operands = operation.operands().filter(|_| seen.insert(atom));
                    for e in operands.into_iter().flat_map(|(a, b)| [a, b]) {
                        work.extend(self.terms(e).flat_map(|(_, atoms)| atoms.iter().copied()));
                    }
                }
            }
        }
        found
    }

    /// A number that divides whatever an expression changes by when `symbol` changes; `None` if there is none
    /// but one, or if the expression does not depend on the symbol.
    pub(crate) fn unit_along(&self, e: Expr, symbol: Symbol) -> Option<i64> {
        let mut unit = 0;
        for (coefficient, atoms) in self.terms(e) {
            if !self.symbols_of(SmallVec::from_slice(atoms)).contains(&symbol) {
                continue;
            }
            if *coefficient.denom() != 1 {
                return None;
            }
            unit = gcd(unit, i128::from(*coefficient.numer()).abs());
        }
        i64::try_from(unit).ok().filter(|&unit| unit > 1)
    }

    /// The expression with symbols replaced; a symbol for which `replace` returns `None` stays. `replace` is
    /// called once for each symbol that occurs.
    pub(crate) fn substitute(
        &mut self,
        e: Expr,
        replace: &mut impl FnMut(Symbol) -> Option<Expr>,
    ) -> Result<Expr, ExprError> {
        let mut done = FxHashMap::default();
        self.substitute_expr(e, replace, &mut done)
    }

    fn substitute_expr(
        &mut self,
        e: Expr,
        replace: &mut impl FnMut(Symbol) -> Option<Expr>,
        done: &mut FxHashMap<AtomId, Option<Expr>>,
    ) -> Result<Expr, ExprError> {
        let terms = self.poly(e).terms;
        let mut changed = false;
        for term in &terms {
            let atoms: SmallVec<[AtomId; 8]> = SmallVec::from_slice(self.factors(term.monomial));
            for atom in atoms {
                if !done.contains_key(&atom) {
                    let new = self.substitute_atom(atom, replace, done)?;
                    done.insert(atom, new);
                }
                changed |= done[&atom].is_some();
            }
        }
        if !changed {
            return Ok(e);
        }
        // Terms that stay are kept together, and what the others become is added to them: the sums in between
        // are no expressions of their own.
        let stays = |term: &Term| self.factors(term.monomial).iter().all(|atom| done[atom].is_none());
        let (kept, changing): (SmallVec<[Term; 8]>, SmallVec<[Term; 8]>) =
            terms.iter().copied().partition(stays);
        let mut sum = Poly { constant: self.constant(e), terms: kept };
        for term in changing {
            let atoms: SmallVec<[AtomId; 8]> = SmallVec::from_slice(self.factors(term.monomial));
            let mut product = None;
            for atom in atoms {
                let factor = match done[&atom] {
                    Some(new) => new,
                    None => self.atom_expr(atom),
                };
                product = Some(match product {
                    Some(product) => self.mul(product, factor)?,
                    None => factor,
                });
            }
            let product = product.unwrap_or(Expr::ONE);
            let (constant, terms) = (self.constant(product), self.node_terms(product));
            sum = add_scaled(sum.constant, &sum.terms, term.coefficient, constant, terms)?;
        }
        self.finish(sum)
    }

    /// What an atom becomes, or `None` if it stays.
    fn substitute_atom(
        &mut self,
        atom: AtomId,
        replace: &mut impl FnMut(Symbol) -> Option<Expr>,
        done: &mut FxHashMap<AtomId, Option<Expr>>,
    ) -> Result<Option<Expr>, ExprError> {
        let operation = self.atom(atom);
        let Some((a, b)) = operation.operands() else {
            return Ok(match operation {
                Atom::Symbol(symbol) => replace(symbol),
                _ => None,
            });
        };
        let new_a = self.substitute_expr(a, replace, done)?;
        let new_b = self.substitute_expr(b, replace, done)?;
        if (new_a, new_b) == (a, b) {
            return Ok(None);
        }
        match operation {
            Atom::FloorDiv(..) => self.floor_div(new_a, new_b),
            Atom::Mod(..) => self.modulo(new_a, new_b),
            Atom::Min(..) => self.min(new_a, new_b),
            Atom::Max(..) | Atom::Symbol(_) => self.max(new_a, new_b),
        }
        .map(Some)
    }
}
