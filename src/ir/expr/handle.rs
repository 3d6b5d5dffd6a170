//! What stands for an expression outside the arena.

use cranelift_entity::entity_impl;

/// A handle to an expression of one arena. Equal handles are equal expressions.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expr(u32);
entity_impl!(Expr, "expression");

impl Expr {
    /// The constant 0, the same handle in every arena.
    pub const ZERO: Expr = Expr(0);
    /// The constant 1, the same handle in every arena.
    pub const ONE: Expr = Expr(1);
}
