//! What the author states about sizes, places and loops, with the options of a compilation: the steps of
//! [`bind_symbols`](super::bind_symbols) bind it in turns.

use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::{ExprArena, SymExpr, Symbol};
use crate::ir::kernel::{DimTable, Locations};
use crate::passes::options::Options;

/// The statements of the author, and the tables that the steps of binding share.
pub(super) struct Binder<'a> {
    pub options: &'a Options,
    pub arena: &'a mut ExprArena,
    pub dims: &'a DimTable,
    /// Each with the index of its place.
    pub constraints: &'a [(Constraint, u32)],
    pub locations: &'a Locations,
}

/// The dimension of a constraint must be a plain symbol or a number.
pub(super) fn plain_symbol(expr: &SymExpr, at: Option<Location>) -> Result<Symbol, Diagnostic> {
    let Some(symbol) = expr.as_dimension() else {
        let fault = Diagnostic::invalid(format!("{expr} is not a dimension")).at(at);
        return Err(fault.help("constrain plain symbols"));
    };
    if let Some((base, _)) = symbol.scaled_from() {
        let fault = Diagnostic::invalid(format!("{symbol} has a constraint of its own")).at(at);
        return Err(fault.help(format!("{symbol} is spread as {base} is: constrain {base}")));
    }
    Ok(symbol)
}
