//! What stands for an expression outside the arena.

use crate::index::define_id;

define_id! {
    /// A handle to an expression of one arena. Equal handles are equal expressions.
    pub struct Expr, "expression"
}

impl Expr {
    /// The constant 0, the same handle in every arena.
    pub const ZERO: Expr = Expr::from_u32(0);
    /// The constant 1, the same handle in every arena.
    pub const ONE: Expr = Expr::from_u32(1);
}
