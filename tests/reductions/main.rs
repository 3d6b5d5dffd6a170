//! Reductions, scans and orders of rows.

mod carried_parts;
mod ordering;
mod reduction_order;
mod reductions;
mod scaled_maxima;
mod scans;
mod several_dims;
mod spread;
