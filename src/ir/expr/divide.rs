//! Floor division and modulo.
use super::arena::Atom;
use super::{Expr, ExprArena, ExprError};

impl ExprArena {
    /// `a / b` rounded towards minus infinity.
    pub fn floor_div(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        self.operation(Atom::FloorDiv(a, b))
    }

    /// `a - b * floor(a / b)`
    pub fn modulo(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        self.operation(Atom::Mod(a, b))
    }

    /// `a / b` rounded towards plus infinity.
    pub fn ceil_div(&mut self, a: Expr, b: Expr) -> Result<Expr, ExprError> {
        let negated = self.neg(a)?;
        let quotient = self.floor_div(negated, b)?;
        self.neg(quotient)
    }
}
