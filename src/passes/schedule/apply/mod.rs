//! Loops rebuilt by assignments.
//!
//! - [`rebuild`]: a loop by its assignment, step by step
//! - [`copies`]: how many copies of LDS buffers it takes
//! - [`pressure`]: registers of the steady state, and an order that takes fewer
//! - [`mod@pipeline`]: prologue, steady state and epilogue
//! - [`unroll`]: several iterations in one round of a loop
//! - [`record`]: what was done, and why not

pub mod copies;
pub mod pipeline;
pub mod pressure;
pub mod rebuild;
pub mod record;
pub mod unroll;
