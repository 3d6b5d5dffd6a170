//! Loops rebuilt by assignments.
//!
//! - [`rebuild`]: a loop by its assignment, step by step
//! - [`copies`]: how many copies of LDS buffers it takes
//! - [`pressure`]: registers of the steady state, and an order that takes fewer
//! - [`lifetimes`]: how long values of the steady state live, and what that asks of its loop
//! - [`mod@pipeline`]: prologue, steady state and epilogue
//! - [`unroll`]: several iterations in one trip of a loop
//! - [`record`]: what was done, and why not

pub mod copies;
pub mod lifetimes;
pub mod pipeline;
pub mod pressure;
pub mod rebuild;
pub mod record;
pub mod unroll;
