//! What runs how often and in which order: conditions, loops and their iterations, tiles and workgroups.

mod conditions;
mod loop_iterations;
mod loops;
mod persistent;
mod workgroup_order;
