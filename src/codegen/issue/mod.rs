//! A wave that has its SIMD for itself, and the order in which it issues the instructions of a region
//! soonest. Who knows the instructions, machine code or what nodes will become, says what each costs and
//! which comes after which.
//!
//! - `cost`, `wave`: what instructions take, and when a wave issues them
//! - `order`: list scheduling of a region
//! - `memory`: which accesses of memory come after which
//! - `registers`: how many registers are alive

mod cost;
mod memory;
mod order;
mod registers;
mod wave;

pub(crate) use cost::{IssueCost, IssueRates, IssueUnit};
pub(crate) use memory::MemoryOrder;
pub(crate) use order::{IssueOrder, IssueTies, RegionGraph};
pub(crate) use registers::{LiveRegisters, ValueAccess};
pub(crate) use wave::IssuingWave;

/// Fewer matrix instructions than these leave nothing to gain.
const FEWEST_PRODUCTS: usize = 4;

/// A body gets a new order if a trip takes a wave less by one part in so many.
const WORTHWHILE: u64 = 32;

/// True if a body has matrix instructions and so much vector work beside them that waves do both in turns.
pub(crate) fn has_work_beside(products: usize, vector: usize) -> bool {
    products >= FEWEST_PRODUCTS && vector >= products
}

/// True if a trip of `after` clk is worth the new order of one that takes `before`.
pub(crate) fn pays(before: u64, after: u64) -> bool {
    before.saturating_sub(after) * WORTHWHILE > before
}
