//! What a kernel is.
pub mod expr;
pub mod layout;
pub mod types;
