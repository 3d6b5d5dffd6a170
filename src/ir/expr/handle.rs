//! What stands for an expression outside the arena.

/// A handle to an expression of one arena. Equal handles are equal expressions.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Expr(pub(super) u32);

impl Expr {
    /// The constant 0, the same handle in every arena.
    pub const ZERO: Expr = Expr(0);
    /// The constant 1, the same handle in every arena.
    pub const ONE: Expr = Expr(1);
}
