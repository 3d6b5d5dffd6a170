//! Reductions, scans and orders of rows.

#[path = "../common/mod.rs"]
mod common;

mod carried_parts;
mod ordering;
mod reduction_order;
mod reductions;
mod scaled_maxima;
mod scans;
mod several_dims;
mod spread;
