//! Minimum and maximum.
use super::arena::Atom;
use super::arithmetic::add_polys;
use super::memo::MemoOperation;
use super::rational::integer;
use super::{Expr, ExprArena, ExprError, Range};
use smallvec::SmallVec;

#[derive(Copy, Clone, PartialEq, Eq)]
enum Extremum {
    Min,
    Max,
}

impl Extremum {
    fn atom(self, a: Expr, b: Expr) -> Atom {
        match self {
            Extremum::Min => Atom::Min(a, b),
            Extremum::Max => Atom::Max(a, b),
        }
    }

    fn operands(self, atom: Option<Atom>) -> Option<(Expr, Expr)> {
        match (self, atom?) {
            (Extremum::Min, Atom::Min(a, b)) | (Extremum::Max, Atom::Max(a, b)) => Some((a, b)),
            _ => None,
        }
    }
}

impl ExprArena {
    /// The smaller of two.
    pub fn min(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        self.remembered(MemoOperation::Min, a, b, |arena| arena.extremum(Extremum::Min, a, b))
    }

    /// The larger of two.
    pub fn max(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        self.remembered(MemoOperation::Max, a, b, |arena| arena.extremum(Extremum::Max, a, b))
    }

    /// Flattens nests of the same kind, drops operands that another one dominates, and rebuilds in an order
    /// of their own, so that order and grouping of the arguments do not matter, nor what was built before
    /// them: a text that is read back gives the same nest. A constant comes first, as the limit that several
    /// extrema share.
    fn extremum(&mut self, kind: Extremum, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        let mut operands: SmallVec<[Expr; 8]> = SmallVec::new();
        self.flatten(kind, a, &mut operands);
        self.flatten(kind, b, &mut operands);
        let is_variable = |e: Expr| self.as_integer(e).is_none();
        operands
            .sort_by(|&x, &y| is_variable(x).cmp(&is_variable(y)).then_with(|| self.structural_cmp(x, y)));
        operands.dedup();
        let mut kept: SmallVec<[Expr; 8]> = SmallVec::new();
        for candidate in operands {
            let mut beaten = false;
            let mut beats: SmallVec<[bool; 8]> = SmallVec::new();
            for other in &kept {
                let difference = self.difference_range(candidate, *other)?;
                let (loses, wins) = match kind {
                    Extremum::Min => (difference.at_least(0), difference.at_most(0)),
                    Extremum::Max => (difference.at_most(0), difference.at_least(0)),
                };
                beaten |= loses;
                beats.push(wins);
            }
            if !beaten {
                let mut beats = beats.into_iter();
                kept.retain(|_| beats.next() != Some(true));
                kept.push(candidate);
            }
        }
        let (first, rest) = kept.split_first().expect("the first operand is never beaten by an empty list");
        rest.iter().try_fold(*first, |folded, next| self.operation(kind.atom(folded, *next)))
    }

    fn flatten(&self, kind: Extremum, e: Expr, operands: &mut SmallVec<[Expr; 8]>) {
        // The left operand holds the rest of a nest, the right one is never of the same kind.
        let mut rest = e;
        while let Some((nest, last)) = kind.operands(self.as_atom(rest)) {
            operands.push(last);
            rest = nest;
        }
        operands.push(rest);
    }

    fn difference_range(&self, a: Expr, b: Expr) -> Result<Range, ExprError> {
        let difference = add_polys(&self.poly(a), integer(-1), &self.poly(b))?;
        Ok(self.facts_of_sum(difference.constant, &difference.terms)?.range)
    }
}
