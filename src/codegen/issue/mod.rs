//! In which order a wave issues the instructions of a region, for machine code and for the estimates of
//! schedules alike: list scheduling by what instructions cost.
//!
//! - `costs`: what instructions take of a wave and of the units of its SIMD
//! - `wave`: when a wave issues them
//! - `order`: what has to come before what, and the order that takes the wave the least

mod costs;
mod order;
mod wave;

pub(crate) use costs::{IssueCost, IssueRates, IssueUnit};
pub(crate) use order::{IssueOrder, RegionGraph, RegisterLimit};
pub(crate) use wave::IssuingWave;
