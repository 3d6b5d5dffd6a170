//! The value of an expression for given values of its symbols.
use super::arena::Atom;
use super::rational::{self, Rational, integer};
use super::{Expr, ExprArena, ExprError, Symbol};

/// Why an expression has no value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub(crate) enum EvalError {
    /// A symbol has no value.
    #[error("{0} has no value")]
    MissingSymbol(Symbol),
    /// A divisor is zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A value does not fit in 64 bits.
    #[error("the value does not fit in 64 bits")]
    Overflow,
    /// The value is a fraction where an integer is needed.
    #[error("the value {numerator}/{denominator} is not an integer")]
    NotAnInteger {
        /// Numerator.
        numerator: i64,
        /// Denominator.
        denominator: i64,
    },
}

impl From<ExprError> for EvalError {
    fn from(error: ExprError) -> EvalError {
        match error {
            ExprError::DivisionByZero => EvalError::DivisionByZero,
            _ => EvalError::Overflow,
        }
    }
}

impl ExprArena {
    /// The integer value of an expression.
    pub(crate) fn evaluate(&self, e: Expr, value: &impl Fn(Symbol) -> Option<i64>) -> Result<i64, EvalError> {
        let result = self.evaluate_rational(e, value)?;
        let (numerator, denominator) = (*result.numer(), *result.denom());
        if denominator == 1 { Ok(numerator) } else { Err(EvalError::NotAnInteger { numerator, denominator }) }
    }

    /// The exact value of an expression.
    pub(crate) fn evaluate_rational(
        &self,
        e: Expr,
        value: &impl Fn(Symbol) -> Option<i64>,
    ) -> Result<Rational, EvalError> {
        let mut sum = self.constant(e);
        for (coefficient, atoms) in self.terms(e) {
            let mut product = coefficient;
            for atom in atoms {
                product = rational::mul(product, self.evaluate_atom(self.atom(*atom), value)?)?;
            }
            sum = rational::add(sum, product)?;
        }
        Ok(sum)
    }

    fn evaluate_atom(
        &self,
        atom: Atom,
        value: &impl Fn(Symbol) -> Option<i64>,
    ) -> Result<Rational, EvalError> {
        if let Atom::Symbol(symbol) = atom {
            return value(symbol).map(integer).ok_or(EvalError::MissingSymbol(symbol));
        }
        let (a, b) = atom.operands().unwrap_or((Expr::ZERO, Expr::ZERO));
        let (a, b) = (self.evaluate_rational(a, value)?, self.evaluate_rational(b, value)?);
        Ok(match atom {
            Atom::Min(..) => a.min(b),
            Atom::Max(..) | Atom::Symbol(_) => a.max(b),
            Atom::FloorDiv(..) => integer(rational::floor(rational::div(a, b)?)),
            Atom::Mod(..) => {
                let quotient = integer(rational::floor(rational::div(a, b)?));
                rational::add(a, rational::neg(rational::mul(quotient, b)?)?)?
            }
        })
    }
}
