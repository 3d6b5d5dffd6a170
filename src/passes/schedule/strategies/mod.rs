//! Schedules that the compiler finds.
//!
//! - [`rows`]: the strategies, one row each; [`strategy`]: what a row holds, and how it schedules a loop
//! - [`automatic`]: for each loop the strategy that takes the fewest clocks
//! - [`components`]: the order of a graph, and its circles
//! - [`prefetch`], [`four_stage`]: stages by kinds of operations, placed by [`phases`]
//! - [`modulo`]: the least interval that a machine and the dependences allow
//! - [`ping_pong`]: two waves of a SIMD take turns
//! - [`interleaved`]: each wave moves data between its matrix instructions
//! - [`clusters`]: products with arithmetic between their matrix instructions, beside clusters that read LDS
//! - [`two_phase`]: half of the waves multiplies while the other half does everything else
//! - [`products`]: loops that multiply what they load, for which ping-pong and interleaving write schedules
//! - [`refusal`]: why there is no schedule

pub(crate) mod automatic;
pub(crate) mod clusters;
pub(crate) mod components;
pub(crate) mod four_stage;
pub(crate) mod interleaved;
pub(crate) mod modulo;
pub(crate) mod phases;
pub(crate) mod ping_pong;
pub(crate) mod prefetch;
pub(crate) mod products;
pub(crate) mod refusal;
pub(crate) mod rows;
pub(crate) mod strategy;
pub(crate) mod two_phase;
