//! The printed form. It is ordered by structure and names, never by handles, so equal values print
//! equally in every arena.
use super::arena::{Atom, AtomId, Term};
use super::rational::{self, Rational, integer};
use super::{Expr, ExprArena};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;

/// An expression with the arena it lives in, for `{}`.
#[derive(Copy, Clone)]
pub struct DisplayExpr<'a> {
    arena: &'a ExprArena,
    expr: Expr,
}

/// Where an atom stands: only the sum around a whole term can make up for the difference between the two
/// roundings.
#[derive(Copy, Clone)]
enum AtomPosition {
    Term,
    Factor,
}

impl ExprArena {
    /// The expression as text that [`ExprArena::parse`] reads back.
    pub fn display(&self, expr: Expr) -> DisplayExpr<'_> {
        DisplayExpr { arena: self, expr }
    }

    /// An order of expressions by structure and symbol names; it agrees between arenas.
    pub(crate) fn structural_cmp(&self, a: Expr, b: Expr) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        let (left, right) = (self.sorted_terms(a), self.sorted_terms(b));
        for (x, y) in left.iter().zip(&right) {
            let order = self.compare_factors(self.factors(x.monomial), self.factors(y.monomial));
            let order = order.then_with(|| y.coefficient.cmp(&x.coefficient));
            if order != Ordering::Equal {
                return order;
            }
        }
        right.len().cmp(&left.len()).then_with(|| self.constant(a).cmp(&self.constant(b)))
    }

    /// The terms of an expression and their factors, as [`ExprArena::terms`], in an order that agrees between
    /// arenas.
    pub(crate) fn terms_in_order(&self, e: Expr) -> Vec<(Rational, Vec<AtomId>)> {
        let factors = |term: &Term| self.sorted_atoms(self.factors(term.monomial)).to_vec();
        self.sorted_terms(e).iter().map(|term| (term.coefficient, factors(term))).collect()
    }

    fn sorted_terms(&self, e: Expr) -> SmallVec<[Term; 8]> {
        let mut terms: SmallVec<[Term; 8]> = SmallVec::from_slice(self.node_terms(e));
        terms.sort_by(|x, y| self.compare_factors(self.factors(x.monomial), self.factors(y.monomial)));
        terms
    }

    /// Higher degree first, then atom by atom.
    fn compare_factors(&self, a: &[AtomId], b: &[AtomId]) -> Ordering {
        b.len().cmp(&a.len()).then_with(|| {
            let (a, b) = (self.sorted_atoms(a), self.sorted_atoms(b));
            let differing = a.iter().zip(&b).map(|(x, y)| self.compare_atoms(*x, *y));
            differing.into_iter().find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
        })
    }

    fn sorted_atoms(&self, atoms: &[AtomId]) -> SmallVec<[AtomId; 8]> {
        let mut atoms: SmallVec<[AtomId; 8]> = SmallVec::from_slice(atoms);
        atoms.sort_by(|x, y| self.compare_atoms(*x, *y));
        atoms
    }

    fn compare_atoms(&self, x: AtomId, y: AtomId) -> Ordering {
        if x == y {
            return Ordering::Equal;
        }
        let rank = |atom: Atom| match atom {
            Atom::Symbol(_) => 0,
            Atom::FloorDiv(..) => 1,
            Atom::Mod(..) => 2,
            Atom::Min(..) => 3,
            Atom::Max(..) => 4,
        };
        let (x, y) = (self.atom(x), self.atom(y));
        rank(x).cmp(&rank(y)).then_with(|| match (x, y) {
            (Atom::Symbol(x), Atom::Symbol(y)) => x.cmp(&y),
            _ => {
                let (xs, ys) = (self.sorted_operands(x), self.sorted_operands(y));
                let pairs = xs.iter().zip(&ys).map(|(x, y)| self.structural_cmp(*x, *y));
                let differing = pairs.into_iter().find(|order| *order != Ordering::Equal);
                differing.unwrap_or_else(|| xs.len().cmp(&ys.len()))
            }
        })
    }

    /// Operands as printed: those of nested minima and maxima flat and by structure, others in their order.
    fn sorted_operands(&self, atom: Atom) -> SmallVec<[Expr; 8]> {
        let mut operands: SmallVec<[Expr; 8]> = SmallVec::new();
        let is_min = matches!(atom, Atom::Min(..));
        let Some((mut rest, last)) = atom.operands() else { return operands };
        operands.push(last);
        if matches!(atom, Atom::FloorDiv(..) | Atom::Mod(..)) {
            operands.insert(0, rest);
            return operands;
        }
        loop {
            match self.as_atom(rest) {
                Some(Atom::Min(a, b)) if is_min => (rest, _) = (a, operands.push(b)),
                Some(Atom::Max(a, b)) if !is_min => (rest, _) = (a, operands.push(b)),
                _ => break,
            }
        }
        operands.push(rest);
        operands.sort_by(|a, b| self.structural_cmp(*a, *b));
        operands
    }

    /// If the quotient reads better when rounded up, with the constant of the dividend left out: by how much
    /// the quotient that is rounded down is less than the one in the text.
    ///
    /// `floordiv(x + d - 1, d)` is `ceildiv(x, d)`, where the 1 is a larger step if x and d are known to be
    /// multiples of one; for a divisor `b` that is not a constant the canonical form of `ceildiv(x, b)` is
    /// `floordiv(x - 1, b) + 1`.
    fn rounded_up(&self, a: Expr, b: Expr) -> Option<i64> {
        match self.as_integer(b) {
            Some(d) => {
                let content = self.facts_of_sum(integer(0), self.node_terms(a)).ok()?.content;
                let step = rational::gcd_rational(content, integer(d)).ok()?;
                let rounds_up = *step.denom() == 1 && self.constant(a) == integer(d - step.numer());
                (rounds_up && self.constant(a) != integer(0)).then_some(0)
            }
            None => {
                let canonical = self.constant(a) == integer(-1)
                    && self.is_integer(a)
                    && self.is_integer(b)
                    && self.range(b).at_least(0);
                canonical.then_some(1)
            }
        }
    }

    fn write_sum(&self, f: &mut fmt::Formatter<'_>, e: Expr, constant: Rational) -> fmt::Result {
        let terms = self.sorted_terms(e);
        let mut constant = constant;
        for term in &terms {
            if let [atom] = self.factors(term.monomial)
                && let Atom::FloorDiv(a, b) = self.atom(*atom)
                && self.rounded_up(a, b) == Some(1)
            {
                let shift = rational::neg(term.coefficient).and_then(|c| rational::add(constant, c));
                constant = shift.map_err(|_| fmt::Error)?;
            }
        }
        if terms.is_empty() {
            return write_rational(f, constant);
        }
        for (at, term) in terms.iter().enumerate() {
            let (numerator, denominator) = (*term.coefficient.numer(), *term.coefficient.denom());
            f.write_str(match (at, numerator < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            })?;
            let magnitude = numerator.unsigned_abs();
            if magnitude != 1 {
                write!(f, "{magnitude}*")?;
            }
            let atoms = self.sorted_atoms(self.factors(term.monomial));
            for (at, atom) in atoms.iter().enumerate() {
                if at > 0 {
                    f.write_str("*")?;
                }
                self.write_atom(
                    f,
                    *atom,
                    if atoms.len() == 1 { AtomPosition::Term } else { AtomPosition::Factor },
                )?;
            }
            if denominator != 1 {
                write!(f, "/{denominator}")?;
            }
        }
        if constant != integer(0) {
            f.write_str(if *constant.numer() < 0 { " - " } else { " + " })?;
            write!(f, "{}", constant.numer().unsigned_abs())?;
            if *constant.denom() != 1 {
                write!(f, "/{}", constant.denom())?;
            }
        }
        Ok(())
    }

    fn write_atom(&self, f: &mut fmt::Formatter<'_>, atom: AtomId, position: AtomPosition) -> fmt::Result {
        let operation = self.atom(atom);
        let name = match operation {
            Atom::Symbol(symbol) if is_plain(symbol.name()) => return f.write_str(symbol.name()),
            Atom::Symbol(symbol) => return write!(f, "\"{}\"", symbol.name().escape_default()),
            Atom::FloorDiv(a, b) => match (self.rounded_up(a, b), position) {
                (Some(0), _) | (Some(1), AtomPosition::Term) => {
                    f.write_str("ceildiv(")?;
                    self.write_sum(f, a, integer(0))?;
                    f.write_str(", ")?;
                    self.write_sum(f, b, self.constant(b))?;
                    return f.write_str(")");
                }
                _ => "floordiv(",
            },
            Atom::Mod(..) => "mod(",
            Atom::Min(..) => "min(",
            Atom::Max(..) => "max(",
        };
        f.write_str(name)?;
        for (at, operand) in self.sorted_operands(operation).iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            self.write_sum(f, *operand, self.constant(*operand))?;
        }
        f.write_str(")")
    }
}

/// True for names that are written without quotes in expressions.
fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn write_rational(f: &mut fmt::Formatter<'_>, value: Rational) -> fmt::Result {
    write!(f, "{}", value.numer())?;
    if *value.denom() != 1 {
        write!(f, "/{}", value.denom())?;
    }
    Ok(())
}

impl fmt::Display for DisplayExpr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.arena.write_sum(f, self.expr, self.arena.constant(self.expr))
    }
}

impl fmt::Debug for DisplayExpr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
