//! Loops rebuilt by assignments.
//!
//! - [`rebuild`]: a loop by its assignment, step by step
//! - [`copies`]: how many copies of LDS buffers it takes
//! - [`pressure`]: registers of the steady state, and an order that takes fewer
//! - [`lifetimes`]: how long values of the steady state live, and what that asks of its loop
//! - [`mod@pipeline`]: prologue, steady state and epilogue
//! - [`unroll`]: several iterations in one trip of a loop
//! - [`choice`]: the schedules that a loop could have, what each would take, and which one it got
//! - [`record`]: what was done, and why not; [`written`]: schedules that strategies write for it

pub(crate) mod choice;
pub(crate) mod copies;
pub(crate) mod lifetimes;
pub(crate) mod pipeline;
pub(crate) mod pressure;
pub(crate) mod rebuild;
pub(crate) mod record;
pub(crate) mod unroll;
pub(crate) mod written;
