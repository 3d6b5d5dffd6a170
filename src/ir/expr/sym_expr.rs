//! What an author writes before any arena exists: owned expression trees with operators.
use super::rational::floor_div;
use super::{Expr, ExprArena, ExprError, Symbol};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::sync::Arc;

/// A symbolic integer expression. `/` is floor division and `%` the modulo that goes with it.
/// Trees deeper than 512 operations become an error when they are interned, so that no walk over a tree can
/// exhaust the stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SymExpr {
    node: Arc<SymNode>,
    depth: u16,
}

/// The operation at the top of an expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum SymNode {
    Int(i128),
    Symbol(Symbol),
    Operation(SymOp, SymExpr, SymExpr),
    TooDeep,
}

/// An operation on two expressions.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum SymOp {
    Add,
    Sub,
    Mul,
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max,
}

impl SymOp {
    /// The result for two integers; nothing for a divisor of zero, and where an `i64` is too small.
    fn of_integers(self, a: i64, b: i64) -> Option<i64> {
        match self {
            SymOp::Add => a.checked_add(b),
            SymOp::Sub => a.checked_sub(b),
            SymOp::Mul => a.checked_mul(b),
            SymOp::FloorDiv => floor_div(a, b),
            SymOp::CeilDiv => floor_div(a.checked_neg()?, b)?.checked_neg(),
            SymOp::Mod => a.checked_sub(floor_div(a, b)?.checked_mul(b)?),
            SymOp::Min => Some(a.min(b)),
            SymOp::Max => Some(a.max(b)),
        }
    }
}

const MAX_DEPTH: u16 = 512;

impl SymExpr {
    fn leaf(node: SymNode) -> SymExpr {
        SymExpr { node: Arc::new(node), depth: 0 }
    }

    /// An operation on two expressions.
    pub(crate) fn operation(op: SymOp, a: SymExpr, b: SymExpr) -> SymExpr {
        let depth = 1 + a.depth.max(b.depth);
        if depth > MAX_DEPTH {
            return SymExpr { node: Arc::new(SymNode::TooDeep), depth: MAX_DEPTH };
        }
        SymExpr { node: Arc::new(SymNode::Operation(op, a, b)), depth }
    }

    /// The operation at the top.
    pub(crate) fn node(&self) -> &SymNode {
        &self.node
    }

    /// The quotient rounded towards plus infinity.
    pub fn ceil_div(self, divisor: impl Into<SymExpr>) -> SymExpr {
        SymExpr::operation(SymOp::CeilDiv, self, divisor.into())
    }

    /// The smaller of two.
    pub fn min(self, other: impl Into<SymExpr>) -> SymExpr {
        SymExpr::operation(SymOp::Min, self, other.into())
    }

    /// The larger of two.
    pub fn max(self, other: impl Into<SymExpr>) -> SymExpr {
        SymExpr::operation(SymOp::Max, self, other.into())
    }

    /// The value, if this is a literal.
    pub fn as_integer(&self) -> Option<i64> {
        match *self.node {
            SymNode::Int(value) => i64::try_from(value).ok(),
            _ => None,
        }
    }

    /// The symbol, if this is one and nothing else.
    pub fn as_symbol(&self) -> Option<Symbol> {
        match *self.node {
            SymNode::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// The dimension that it names: a symbol, or a number and nothing else.
    pub fn as_dimension(&self) -> Option<Symbol> {
        match *self.node {
            SymNode::Symbol(symbol) => Some(symbol),
            SymNode::Int(size) => u32::try_from(size).ok().map(Symbol::from),
            _ => None,
        }
    }

    /// The expression with symbols replaced; a symbol for which `replace` has nothing stays.
    pub fn replaced(&self, replace: &impl Fn(Symbol) -> Option<SymExpr>) -> SymExpr {
        match &*self.node {
            SymNode::Symbol(symbol) => replace(*symbol).unwrap_or_else(|| self.clone()),
            SymNode::Operation(op, a, b) => SymExpr::operation(*op, a.replaced(replace), b.replaced(replace)),
            SymNode::Int(_) | SymNode::TooDeep => self.clone(),
        }
    }

    /// The value, if every symbol in it has one and nothing overflows. No arena is needed for that.
    pub fn value(&self, of: &impl Fn(Symbol) -> Option<i64>) -> Option<i64> {
        match &*self.node {
            SymNode::Int(value) => i64::try_from(*value).ok(),
            SymNode::Symbol(symbol) => of(*symbol),
            SymNode::TooDeep => None,
            SymNode::Operation(op, a, b) => op.of_integers(a.value(of)?, b.value(of)?),
        }
    }

    /// Calls `see` with each symbol that stands in it.
    pub fn visit(&self, see: &mut impl FnMut(Symbol)) {
        match &*self.node {
            SymNode::Symbol(symbol) => see(*symbol),
            SymNode::Operation(_, a, b) => {
                a.visit(see);
                b.visit(see);
            }
            SymNode::Int(_) | SymNode::TooDeep => {}
        }
    }

    /// The canonical expression in an arena, simplified by what the arena knows.
    pub fn intern(&self, arena: &mut ExprArena) -> Result<Expr, ExprError> {
        match &*self.node {
            SymNode::Int(value) => Ok(arena.int(i64::try_from(*value).map_err(|_| ExprError::Overflow)?)),
            SymNode::Symbol(symbol) => Ok(arena.symbol(*symbol)),
            SymNode::TooDeep => Err(ExprError::TooLarge),
            SymNode::Operation(op, a, b) => {
                let (a, b) = (a.intern(arena)?, b.intern(arena)?);
                match op {
                    SymOp::Add => arena.add(a, b),
                    SymOp::Sub => arena.sub(a, b),
                    SymOp::Mul => arena.mul(a, b),
                    SymOp::FloorDiv => arena.floor_div(a, b),
                    SymOp::CeilDiv => arena.ceil_div(a, b),
                    SymOp::Mod => arena.modulo(a, b),
                    SymOp::Min => arena.min(a, b),
                    SymOp::Max => arena.max(a, b),
                }
            }
        }
    }
}

impl Symbol {
    /// The quotient rounded towards plus infinity.
    pub fn ceil_div(self, divisor: impl Into<SymExpr>) -> SymExpr {
        SymExpr::from(self).ceil_div(divisor)
    }
}

impl From<Symbol> for SymExpr {
    fn from(symbol: Symbol) -> SymExpr {
        SymExpr::leaf(symbol.value().map_or(SymNode::Symbol(symbol), |value| SymNode::Int(value.into())))
    }
}

impl From<&SymExpr> for SymExpr {
    fn from(e: &SymExpr) -> SymExpr {
        e.clone()
    }
}

macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for SymExpr {
            fn from(value: $integer) -> SymExpr {
                // Every 64-bit integer fits in 128 bits.
                SymExpr::leaf(SymNode::Int(value as i128))
            }
        }
    )*};
}
from_integers!(i64, i32, u32, usize);

/// The left side is one of few types, the right side anything that becomes an expression. Of the literals
/// only `i64` can be on the left: with a choice of integer types the compiler could not tell which one `2 *
/// m` means.
macro_rules! operators {
    ($($trait:ident $method:ident $op:expr;)*) => {$(
        impl<R: Into<SymExpr>> $trait<R> for SymExpr {
            type Output = SymExpr;
            fn $method(self, other: R) -> SymExpr {
                SymExpr::operation($op, self, other.into())
            }
        }
        impl<R: Into<SymExpr>> $trait<R> for &SymExpr {
            type Output = SymExpr;
            fn $method(self, other: R) -> SymExpr {
                SymExpr::operation($op, self.clone(), other.into())
            }
        }
        impl<R: Into<SymExpr>> $trait<R> for Symbol {
            type Output = SymExpr;
            fn $method(self, other: R) -> SymExpr {
                SymExpr::operation($op, self.into(), other.into())
            }
        }
        impl $trait<SymExpr> for i64 {
            type Output = SymExpr;
            fn $method(self, other: SymExpr) -> SymExpr {
                SymExpr::operation($op, self.into(), other)
            }
        }
        impl $trait<Symbol> for i64 {
            type Output = SymExpr;
            fn $method(self, other: Symbol) -> SymExpr {
                SymExpr::operation($op, self.into(), other.into())
            }
        }
    )*};
}

operators! {
    Add add SymOp::Add;
    Sub sub SymOp::Sub;
    Mul mul SymOp::Mul;
    Div div SymOp::FloorDiv;
    Rem rem SymOp::Mod;
}

impl Neg for SymExpr {
    type Output = SymExpr;
    fn neg(self) -> SymExpr {
        SymExpr::operation(SymOp::Sub, 0i64.into(), self)
    }
}

impl Neg for Symbol {
    type Output = SymExpr;
    fn neg(self) -> SymExpr {
        -SymExpr::from(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::symbols;
    use super::*;

    #[test]
    fn operators_intern_to_what_they_say() {
        let [m, n] = symbols(["M", "N"]);
        let mut arena = ExprArena::new();
        let e = (2 * m + n * 3 - 1) / 4 + (m.ceil_div(128) % n).min(7usize).max(-n);
        let parsed =
            arena.parse("floordiv(2*M + 3*N - 1, 4) + max(min(ceildiv(M, 128) % N, 7), -N)").unwrap();
        assert_eq!(e.intern(&mut arena), Ok(parsed));
        assert_eq!(
            (&e + &e).intern(&mut arena),
            arena.mul(parsed, Expr::ZERO).and_then(|_| arena.add(parsed, parsed))
        );
    }

    #[test]
    fn too_deep_a_tree_is_an_error_when_interned() {
        let x = Symbol::new("x");
        let deep = (0..100_000).fold(SymExpr::from(x), |e, _| e / 3 + 1);
        assert_eq!(deep.intern(&mut ExprArena::new()), Err(ExprError::TooLarge));
        assert_eq!(SymExpr::from(usize::MAX).intern(&mut ExprArena::new()), Err(ExprError::Overflow));
    }

    /// Expressions of `M` and `N` and numbers, some close to the ends of what numbers hold.
    fn expressions() -> impl Strategy<Value = SymExpr> {
        let number = prop_oneof![-9i64..10, Just(i64::MIN), Just(i64::MAX), -1000i64..1000];
        let leaf = prop_oneof![
            number.prop_map(SymExpr::from),
            Just(SymExpr::from(Symbol::new("M"))),
            Just(SymExpr::from(Symbol::new("N"))),
        ];
        let operations = [
            SymOp::Add,
            SymOp::Sub,
            SymOp::Mul,
            SymOp::FloorDiv,
            SymOp::CeilDiv,
            SymOp::Mod,
            SymOp::Min,
            SymOp::Max,
        ];
        leaf.prop_recursive(4, 24, 2, move |inner| {
            (prop::sample::select(operations.to_vec()), inner.clone(), inner)
                .prop_map(|(op, a, b)| SymExpr::operation(op, a, b))
        })
    }

    /// The value in numbers that are wide enough, of which every step has to fit into 64 bits.
    fn exact(expr: &SymExpr, of: &impl Fn(Symbol) -> i64) -> Option<i64> {
        let SymNode::Operation(op, a, b) = expr.node() else {
            return expr.as_integer().or_else(|| expr.as_symbol().map(of));
        };
        let (a, b) = (i128::from(exact(a, of)?), i128::from(exact(b, of)?));
        let down = |a: i128, b: i128| {
            let (quotient, rest) = (a.checked_div_euclid(b)?, a.checked_rem_euclid(b)?);
            // Euclid's rest is never negative; with a negative divisor its quotient is rounded up.
            Some(if b < 0 && rest != 0 { quotient - 1 } else { quotient })
        };
        let value = match op {
            SymOp::Add => a + b,
            SymOp::Sub => a - b,
            SymOp::Mul => a * b,
            SymOp::FloorDiv => down(a, b)?,
            SymOp::CeilDiv => -down(-a, b)?,
            SymOp::Mod => a - down(a, b)? * b,
            SymOp::Min => a.min(b),
            SymOp::Max => a.max(b),
        };
        i64::try_from(value).ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Without an arena as with one, and as numbers that never overflow.
        #[test]
        fn values_of_symbols_give_the_value(expr in expressions(), m in -50i64..50, n in -3i64..2000) {
            let of = |symbol: Symbol| if symbol.name() == "M" { m } else { n };
            let value = expr.value(&|symbol| Some(of(symbol)));
            if let Some(value) = value {
                prop_assert_eq!(Some(value), exact(&expr, &of));
            }
            let mut arena = ExprArena::new();
            let bound = expr.replaced(&|symbol| Some(SymExpr::from(of(symbol))));
            let interned = bound.intern(&mut arena).ok().and_then(|expr| arena.as_integer(expr));
            if let (Some(value), Some(interned)) = (value, interned) {
                prop_assert_eq!(value, interned);
            }
        }
    }
}
