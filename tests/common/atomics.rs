//! What atomic updates do, in plain Rust.

use groundswell::prelude::*;

/// What one update of an element leaves there.
pub fn joined(op: AtomicOp, old: f64, new: f64) -> f64 {
    let (a, b) = (old as i32, new as i32);
    match op {
        AtomicOp::Add => old + new,
        AtomicOp::Min => old.min(new),
        AtomicOp::Max => old.max(new),
        AtomicOp::And => f64::from(a & b),
        AtomicOp::Or => f64::from(a | b),
        AtomicOp::Xor => f64::from(a ^ b),
        AtomicOp::Exchange => new,
        AtomicOp::CompareExchange => unreachable!("it takes two values"),
    }
}
