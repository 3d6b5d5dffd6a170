//! Schedules that the compiler finds.
//!
//! - [`rows`]: the strategies, one row each; [`strategy`]: what a row holds, and how it schedules a loop
//! - [`components`]: the order of a graph, and its circles
//! - [`prefetch`], [`four_stage`]: stages by kinds of operations, placed by [`phases`]
//! - [`modulo`]: the least interval that a machine and the dependences allow
//! - [`ping_pong`]: two waves of a SIMD take turns
//! - [`refusal`]: why there is no schedule

pub mod components;
pub mod four_stage;
pub mod modulo;
pub mod phases;
pub mod ping_pong;
pub mod prefetch;
pub mod refusal;
pub mod rows;
pub mod strategy;
