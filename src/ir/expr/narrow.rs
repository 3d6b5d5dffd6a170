//! Whether kernels, which compute in 32 bits, get an expression right: sums and products may wrap on the way
//! to a result that fits, but what is divided or compared has to fit.

use smallvec::SmallVec;

use super::arena::Atom;
use super::{Expr, ExprArena, Symbol};

/// Both bounds are included.
pub(crate) type NumberBounds = (i128, i128);

/// What 32-bit integers hold.
const NARROW: NumberBounds = (i32::MIN as i128, i32::MAX as i128);

/// Bounds of expressions that have been judged.
type Known = SmallVec<[(Expr, NumberBounds); 16]>;

impl ExprArena {
    /// Bounds of an expression that is computed in 32 bits, for symbols within bounds of their own; `None` if
    /// it may leave the range of these integers.
    pub(crate) fn narrow_bounds(
        &self,
        e: Expr,
        symbol: &impl Fn(Symbol) -> NumberBounds,
    ) -> Option<NumberBounds> {
        self.narrow(e, symbol, &mut Known::new())
    }

    fn narrow(
        &self,
        e: Expr,
        symbol: &impl Fn(Symbol) -> NumberBounds,
        known: &mut Known,
    ) -> Option<NumberBounds> {
        if let Some(&(_, bounds)) = known.iter().find(|(own, _)| *own == e) {
            return Some(bounds);
        }
        let constant = self.constant(e);
        let denominators = self.terms(e).map(|(coefficient, _)| *coefficient.denom());
        let common = denominators.chain([*constant.denom()]).try_fold(1i128, |all, d| {
            let d = i128::from(d);
            let both = all.checked_mul(d)? / gcd(all, d);
            (both <= NARROW.1).then_some(both)
        })?;
        let scaled = |numerator: i64, denominator: i64| {
            i128::from(numerator).checked_mul(common / i128::from(denominator))
        };
        let constant = scaled(*constant.numer(), *constant.denom())?;
        let mut sum = (constant, constant);
        for (coefficient, atoms) in self.terms(e) {
            let factor = scaled(*coefficient.numer(), *coefficient.denom())?;
            let mut product = (factor, factor);
            for &atom in atoms {
                product = times(product, self.narrow_atom(self.atom(atom), symbol, known)?)?;
            }
            sum = (sum.0.checked_add(product.0)?, sum.1.checked_add(product.1)?);
        }
        // It is divided once, at the end.
        let fits = sum.0 >= NARROW.0 && sum.1 <= NARROW.1;
        let bounds = (sum.0.div_euclid(common), sum.1.div_euclid(common));
        known.push((e, bounds));
        fits.then_some(bounds)
    }

    fn narrow_atom(
        &self,
        atom: Atom,
        symbol: &impl Fn(Symbol) -> NumberBounds,
        known: &mut Known,
    ) -> Option<NumberBounds> {
        let (a, b) = match atom {
            Atom::Symbol(own) => return Some(symbol(own)),
            Atom::FloorDiv(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => (a, b),
        };
        let (a, b) = (self.narrow(a, symbol, known)?, self.narrow(b, symbol, known)?);
        let most = |(lo, hi): NumberBounds| lo.abs().max(hi.abs());
        Some(match atom {
            Atom::Min(..) => (a.0.min(b.0), a.1.min(b.1)),
            Atom::Max(..) => (a.0.max(b.0), a.1.max(b.1)),
            Atom::FloorDiv(..) if b.0 > 0 => {
                let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(a, b)| a.div_euclid(b));
                (corners.into_iter().min()?, corners.into_iter().max()?)
            }
            // The quotient of the least integer and -1 is one too large.
            Atom::FloorDiv(..) => (-most(a) - 1, most(a).min(NARROW.1)),
            Atom::Mod(..) if b.0 > 0 && a.0 >= 0 => (0, a.1.min(b.1 - 1)),
            Atom::Mod(..) if b.0 > 0 => (0, b.1 - 1),
            Atom::Mod(..) | Atom::Symbol(_) => (-most(b), most(b)),
        })
    }
}

fn times(a: NumberBounds, b: NumberBounds) -> Option<NumberBounds> {
    let corners =
        [a.0.checked_mul(b.0)?, a.0.checked_mul(b.1)?, a.1.checked_mul(b.0)?, a.1.checked_mul(b.1)?];
    Some((corners.into_iter().min()?, corners.into_iter().max()?))
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NumberBounds are those of all values, and what leaves 32 bits on the way to a division is found.
    #[test]
    fn bounds_hold_every_value() {
        let [x, y] = super::super::symbols(["x", "y"]);
        let cases = [
            "x - y",
            "x // (y + 1)",
            "(3*x - 7) % (y + 2)",
            "min(x, y - 3) * x",
            "(x // 2 + y) // 3",
            "max(2*x, 5) - x",
        ];
        for text in cases {
            let mut arena = ExprArena::new();
            let e = arena.parse(text).unwrap();
            let bounds = |symbol: Symbol| if symbol == x { (0, 9) } else { (0, 6) };
            let (lo, hi) = arena.narrow_bounds(e, &bounds).unwrap();
            for at in 0..70 {
                let value = arena.evaluate(e, &|symbol| Some(if symbol == x { at % 10 } else { at / 10 }));
                assert!((lo..=hi).contains(&i128::from(value.unwrap())), "{text}: {lo} to {hi}");
            }
        }
        let mut arena = ExprArena::new();
        let limits = |symbol: Symbol| if symbol == y { (1, 1 << 20) } else { (0, 100) };
        for (text, fits) in
            [("y*2047", true), ("y*2048", false), ("y*y // y % 7", true), ("y*y % (x + 1)", false)]
        {
            let e = arena.parse(text).unwrap();
            assert_eq!(arena.narrow_bounds(e, &limits).is_some(), fits, "{text}");
        }
    }
}
