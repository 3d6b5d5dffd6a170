//! Storage: expressions, monomials and atoms, each interned by content.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use super::facts::{Facts, Range, SymbolFacts};
use super::handle::Expr;
use super::memo::{Memo, MemoKey, MemoOperation};
use super::rational::{Rational, integer};
use super::table::InternTable;
use super::{ExprError, Symbol};
use crate::index::Stretches;
use cranelift_entity::{PrimaryMap, entity_impl, iter_entity_range};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::Hasher;

/// A handle to an atom of one arena; atoms are numbered as they are first met.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AtomId(u32);
entity_impl!(AtomId, "atom");

/// What an expression is a polynomial of.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Atom {
    /// A named integer.
    Symbol(Symbol),
    /// The quotient rounded towards minus infinity.
    FloorDiv(Expr, Expr),
    /// What [`Atom::FloorDiv`] leaves; it has the sign of the divisor.
    Mod(Expr, Expr),
    /// The smaller of two.
    Min(Expr, Expr),
    /// The larger of two.
    Max(Expr, Expr),
}

impl Atom {
    /// The two operands; a symbol has none.
    pub fn operands(self) -> Option<(Expr, Expr)> {
        match self {
            Atom::Symbol(_) => None,
            Atom::FloorDiv(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => Some((a, b)),
        }
    }

    fn hash(self) -> u32 {
        let (kind, a, b) = match self {
            Atom::Symbol(symbol) => (0, symbol.id(), 0),
            Atom::FloorDiv(a, b) => (1, a.as_u32(), b.as_u32()),
            Atom::Mod(a, b) => (2, a.as_u32(), b.as_u32()),
            Atom::Min(a, b) => (3, a.as_u32(), b.as_u32()),
            Atom::Max(a, b) => (4, a.as_u32(), b.as_u32()),
        };
        let mut hasher = FxHasher::default();
        hasher.write_u64(u64::from(a) << 32 | u64::from(b));
        hasher.write_u64(kind);
        hasher.finish() as u32
    }
}

/// An interned, sorted, non-empty product of atoms.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Monomial(u32);
entity_impl!(Monomial, "product");

/// A place in the list of all terms.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct TermId(u32);
entity_impl!(TermId, "");

/// A place in the list of the factors of all products.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct FactorId(u32);
entity_impl!(FactorId, "");

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Term {
    pub(super) coefficient: Rational,
    pub(super) monomial: Monomial,
}

/// A polynomial under construction: terms by ascending monomial, no zero coefficients.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Poly {
    pub(super) constant: Rational,
    pub(super) terms: SmallVec<[Term; 8]>,
}

impl Poly {
    pub(super) fn int(value: i64) -> Poly {
        Poly { constant: integer(value), terms: SmallVec::new() }
    }
}

#[derive(Copy, Clone, Debug)]
pub(super) struct ExprNode {
    constant: Rational,
    first: TermId,
    end: TermId,
    depth: u32,
    pub(super) facts: Facts,
}

#[derive(Copy, Clone, Debug)]
pub(super) struct InternedProduct {
    first: FactorId,
    end: FactorId,
    depth: u32,
    pub(super) facts: Facts,
}

#[derive(Copy, Clone, Debug)]
pub(super) struct AtomData {
    atom: Atom,
    depth: u32,
    pub(super) facts: Facts,
}

/// Bounds that keep every walk over an expression short and every recursion shallow.
const MAX_TERMS: usize = 4096;
const MAX_DEGREE: usize = 64;
const MAX_DEPTH: u32 = 192;

/// Owns expressions and what is known of their symbols.
///
/// [`ExprArena::clear`] forgets everything but keeps the memory, so a pooled arena stops allocating.
#[derive(Clone, Debug)]
pub struct ExprArena {
    pub(super) nodes: PrimaryMap<Expr, ExprNode>,
    terms: PrimaryMap<TermId, Term>,
    pub(super) products: PrimaryMap<Monomial, InternedProduct>,
    factors: PrimaryMap<FactorId, AtomId>,
    pub(super) atoms: PrimaryMap<AtomId, AtomData>,
    node_table: InternTable<Expr>,
    product_table: InternTable<Monomial>,
    atom_table: InternTable<AtomId>,
    pub(super) symbol_facts: FxHashMap<Symbol, SymbolFacts>,
    pub(super) memo: Memo,
}

impl Default for ExprArena {
    fn default() -> Self {
        ExprArena::new()
    }
}

impl ExprArena {
    /// An arena that holds 0 and 1 and knows nothing.
    pub fn new() -> ExprArena {
        let mut arena = ExprArena {
            nodes: PrimaryMap::default(),
            terms: PrimaryMap::default(),
            products: PrimaryMap::default(),
            factors: PrimaryMap::default(),
            atoms: PrimaryMap::default(),
            node_table: InternTable::default(),
            product_table: InternTable::default(),
            atom_table: InternTable::default(),
            symbol_facts: FxHashMap::default(),
            memo: Memo::default(),
        };
        arena.enter_constants();
        arena
    }

    /// Forgets every expression and every assumption; older handles become invalid. Memory is kept.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.terms.clear();
        self.products.clear();
        self.factors.clear();
        self.atoms.clear();
        self.node_table.clear();
        self.product_table.clear();
        self.atom_table.clear();
        self.symbol_facts.clear();
        self.memo.clear();
        self.enter_constants();
    }

    fn enter_constants(&mut self) {
        let zero = self.int(0);
        let one = self.int(1);
        debug_assert_eq!((zero, one), (Expr::ZERO, Expr::ONE));
    }

    /// Number of distinct expressions held.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing has been built but the two constants that every arena holds.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 2
    }

    /// An integer constant.
    pub fn int(&mut self, value: i64) -> Expr {
        self.rational(integer(value))
    }

    /// A rational constant.
    pub fn rational(&mut self, value: Rational) -> Expr {
        self.intern_parts(value, &[], Facts::of_constant(value), 0)
    }

    /// A symbol as an expression.
    pub fn symbol(&mut self, symbol: Symbol) -> Expr {
        let facts = self.facts_of_symbol(symbol);
        let atom = self.intern_atom(Atom::Symbol(symbol), 0, facts);
        self.atom_expr(atom)
    }

    /// The constant part of the polynomial.
    pub fn constant(&self, e: Expr) -> Rational {
        self.nodes[e].constant
    }

    /// The terms of the polynomial: coefficient and the atoms multiplied, in the arena's order.
    pub fn terms(&self, e: Expr) -> impl ExactSizeIterator<Item = (Rational, &[AtomId])> {
        self.node_terms(e).iter().map(|term| (term.coefficient, self.factors(term.monomial)))
    }

    /// What an atom is.
    pub fn atom(&self, atom: AtomId) -> Atom {
        self.atoms[atom].atom
    }

    /// The value, if the expression is an integer constant.
    pub(crate) fn as_integer(&self, e: Expr) -> Option<i64> {
        self.as_rational(e).filter(|value| *value.denom() == 1).map(|value| *value.numer())
    }

    /// The value, if the expression is a constant.
    pub(crate) fn as_rational(&self, e: Expr) -> Option<Rational> {
        let node = &self.nodes[e];
        (node.first == node.end).then_some(node.constant)
    }

    /// The atom, if the expression is one atom and nothing else.
    pub(crate) fn as_atom(&self, e: Expr) -> Option<Atom> {
        let node = &self.nodes[e];
        match self.node_terms(e) {
            [term] if node.constant == integer(0) && term.coefficient == integer(1) => {
                self.single_atom(term.monomial)
            }
            _ => None,
        }
    }

    /// What the expression can be, as far as is known.
    pub fn range(&self, e: Expr) -> Range {
        self.nodes[e].facts.range
    }

    pub(super) fn node_terms(&self, e: Expr) -> &[Term] {
        let node = &self.nodes[e];
        self.terms.range(node.first..node.end)
    }

    pub(super) fn poly(&self, e: Expr) -> Poly {
        Poly { constant: self.constant(e), terms: SmallVec::from_slice(self.node_terms(e)) }
    }

    pub(super) fn factors(&self, monomial: Monomial) -> &[AtomId] {
        let product = &self.products[monomial];
        self.factors.range(product.first..product.end)
    }

    pub(super) fn single_atom(&self, monomial: Monomial) -> Option<Atom> {
        match self.factors(monomial) {
            [atom] => Some(self.atom(*atom)),
            _ => None,
        }
    }

    /// Interns a finished polynomial.
    pub(super) fn intern(&mut self, poly: &Poly) -> Result<Expr, ExprError> {
        let hash = hash_parts(poly.constant, &poly.terms);
        if let Some(found) = self.find_parts(hash, poly.constant, &poly.terms) {
            return Ok(found);
        }
        if poly.terms.len() > MAX_TERMS {
            return Err(ExprError::TooLarge);
        }
        let facts = self.facts_of_sum(poly.constant, &poly.terms)?;
        let depth = poly.terms.iter().map(|term| self.products[term.monomial].depth).max();
        Ok(self.push_parts(hash, poly.constant, &poly.terms, facts, depth.unwrap_or(0)))
    }

    fn intern_parts(&mut self, constant: Rational, terms: &[Term], facts: Facts, depth: u32) -> Expr {
        let hash = hash_parts(constant, terms);
        match self.find_parts(hash, constant, terms) {
            Some(found) => found,
            None => self.push_parts(hash, constant, terms, facts, depth),
        }
    }

    fn find_parts(&self, hash: u32, constant: Rational, terms: &[Term]) -> Option<Expr> {
        let same = |e: Expr| self.nodes[e].constant == constant && self.node_terms(e) == terms;
        self.node_table.find(hash, same)
    }

    fn push_parts(
        &mut self,
        hash: u32,
        constant: Rational,
        terms: &[Term],
        facts: Facts,
        depth: u32,
    ) -> Expr {
        let first = self.terms.next_key();
        self.terms.extend(terms.iter().copied());
        let e = self.nodes.push(ExprNode { constant, first, end: self.terms.next_key(), depth, facts });
        self.node_table.insert(hash, e);
        e
    }

    /// Interns an operation on two expressions as an atom, without simplifying it.
    pub(super) fn operation(&mut self, atom: Atom) -> Result<Expr, ExprError> {
        let (a, b) = atom.operands().unwrap_or((Expr::ZERO, Expr::ZERO));
        let depth = 1 + self.nodes[a].depth.max(self.nodes[b].depth);
        if depth > MAX_DEPTH {
            return Err(ExprError::TooLarge);
        }
        let facts = self.facts_of_atom(atom)?;
        let atom = self.intern_atom(atom, depth, facts);
        Ok(self.atom_expr(atom))
    }

    pub(super) fn find_atom(&self, atom: Atom) -> Option<AtomId> {
        self.atom_table.find(atom.hash(), |at| self.atoms[at].atom == atom)
    }

    fn intern_atom(&mut self, atom: Atom, depth: u32, facts: Facts) -> AtomId {
        if let Some(found) = self.find_atom(atom) {
            return found;
        }
        let id = self.atoms.push(AtomData { atom, depth, facts });
        self.atom_table.insert(atom.hash(), id);
        id
    }

    /// An atom as an expression.
    pub(crate) fn atom_expr(&mut self, atom: AtomId) -> Expr {
        let AtomData { depth, facts, .. } = self.atoms[atom];
        let monomial = self.intern_product(&[atom], depth, facts);
        self.intern_parts(integer(0), &[Term { coefficient: integer(1), monomial }], facts, depth)
    }

    /// Interns a product of atoms, which are sorted here.
    pub(super) fn product(&mut self, factors: &mut SmallVec<[AtomId; 8]>) -> Result<Monomial, ExprError> {
        if factors.len() > MAX_DEGREE {
            return Err(ExprError::TooLarge);
        }
        factors.sort_unstable();
        let facts = self.facts_of_product(factors)?;
        let depth = factors.iter().map(|&atom| self.atoms[atom].depth).max().unwrap_or(0);
        Ok(self.intern_product(factors, depth, facts))
    }

    pub(super) fn find_product(&self, factors: &[AtomId]) -> Option<Monomial> {
        self.product_table.find(hash_factors(factors), |at| self.factors(at) == factors)
    }

    fn intern_product(&mut self, factors: &[AtomId], depth: u32, facts: Facts) -> Monomial {
        if let Some(found) = self.find_product(factors) {
            return found;
        }
        let first = self.factors.next_key();
        self.factors.extend(factors.iter().copied());
        let end = self.factors.next_key();
        let product = self.products.push(InternedProduct { first, end, depth, facts });
        self.product_table.insert(hash_factors(factors), product);
        product
    }

    /// Recomputes all facts after a new assumption.
    ///
    /// An atom's operands hold only older atoms, so one walk in order is enough.
    pub(super) fn refresh_facts(&mut self) -> Result<(), ExprError> {
        for at in self.atoms.keys() {
            let atom = self.atoms[at].atom;
            if let Some((a, b)) = atom.operands() {
                self.refresh_node(a)?;
                self.refresh_node(b)?;
            }
            self.atoms[at].facts = match atom {
                Atom::Symbol(symbol) => self.facts_of_symbol(symbol),
                _ => self.facts_of_atom(atom)?,
            };
        }
        self.nodes.keys().try_for_each(|e| self.refresh_node(e))
    }

    fn refresh_node(&mut self, e: Expr) -> Result<(), ExprError> {
        let ExprNode { constant, first, end, .. } = self.nodes[e];
        for at in iter_entity_range(first..end) {
            let monomial = self.terms[at].monomial;
            self.products[monomial].facts = self.facts_of_product(self.factors(monomial))?;
        }
        self.nodes[e].facts = self.facts_of_sum(constant, self.node_terms(e))?;
        Ok(())
    }
}

fn hash_parts(constant: Rational, terms: &[Term]) -> u32 {
    let mut hasher = FxHasher::default();
    let rational = |hasher: &mut FxHasher, value: Rational| {
        hasher.write_i64(*value.numer());
        if *value.denom() != 1 {
            hasher.write_i64(*value.denom());
        }
    };
    rational(&mut hasher, constant);
    for term in terms {
        rational(&mut hasher, term.coefficient);
        hasher.write_u32(term.monomial.as_u32());
    }
    hasher.finish() as u32
}

fn hash_factors(factors: &[AtomId]) -> u32 {
    let mut hasher = FxHasher::default();
    factors.iter().for_each(|atom| hasher.write_u32(atom.as_u32()));
    hasher.finish() as u32
}

impl ExprArena {
    /// The result of an operation, computed the first time.
    pub(super) fn remembered(
        &mut self,
        operation: MemoOperation,
        a: Expr,
        b: Expr,
        compute: impl FnOnce(&mut ExprArena) -> Result<Expr, ExprError>,
    ) -> Result<Expr, ExprError> {
        let key: MemoKey = (operation, a, b);
        let hash = Memo::hash(key);
        if let Some(result) = self.memo.get(hash, key) {
            return Ok(result);
        }
        let result = compute(self)?;
        self.memo.insert(hash, key, result);
        Ok(result)
    }
}
