//! Integer expressions over symbols, hash-consed in an arena and kept in one canonical form.
//!
//! An expression is a polynomial: a constant plus terms, each a rational coefficient times a product of
//! *atoms*. An atom is a symbol, or a floor division, modulo, minimum or maximum of two expressions.
//! Simplification happens on construction and uses what is known of the symbols (range, divisibility), so two
//! expressions that simplify to the same form have equal handles. Symbols are non-negative unless an
//! assumption says otherwise.
//!
//! * [`ExprArena`] owns expressions; [`Expr`] is a handle into one. Facts should be stated before expressions
//!   are built: later facts sharpen ranges but do not rewrite existing expressions.
//! * [`SymExpr`] is what authors write before any arena exists, with the usual operators.
//! * The printed form (`M*BLOCK_K + 3*floordiv(x, 4)`) depends on the value only, and parses back to it.
//!
//! Division and modulo round towards minus infinity. A value for which a divisor is zero has no meaning:
//! simplification may replace it by anything.
mod arena;
mod arithmetic;
mod assumptions;
mod derived_facts;
mod divide;
mod evaluate;
mod extremum;
mod facts;
mod handle;
mod memo;
mod narrow;
mod parse;
mod print;
mod rational;
mod remainders;
mod substitute;
mod sym_expr;
mod symbol;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use arena::{Atom, ExprArena};
pub(crate) use evaluate::EvalError;
pub(crate) use facts::Range;
pub use handle::Expr;
pub(crate) use narrow::NumberBounds;
pub use parse::{ParseError, ParseErrorKind};
pub(crate) use rational::Rational;
pub use sym_expr::SymExpr;
pub(crate) use sym_expr::{SymNode, SymOp};
pub(crate) use symbol::{LastingName, lasting_name};
pub use symbol::{Symbol, symbols};
pub(crate) use table::InternTable;

/// Why an expression could not be built.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum ExprError {
    /// A coefficient or constant left the range of 64-bit integers.
    #[error("a coefficient does not fit in 64 bits")]
    Overflow,
    /// The divisor is the constant zero.
    #[error("division by zero")]
    DivisionByZero,
    /// Too many terms, too high a degree or too deep a nesting.
    #[error("the expression is too large")]
    TooLarge,
    /// An assumption leaves no value for the symbol.
    #[error("no value of {0} satisfies the assumptions made about it")]
    NoValue(Symbol),
    /// A symbol was allowed to be negative after expressions had been simplified on the assumption that it is
    /// not.
    #[error("{0} was used as a non-negative integer before it was assumed to reach below zero")]
    LateAssumption(Symbol),
    /// A divisor in an assumption has to be positive.
    #[error("{1} cannot divide {0}: a divisor is positive")]
    BadDivisor(Symbol, i64),
}
