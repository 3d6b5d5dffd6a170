//! Schedules: which iteration an operation of a loop belongs to in the steady state, and in which order operations are emitted.
//!
//! - [`graph`]: the dependences of a loop body, as data
//! - [`resources`]: units and delays of the machine; `target_model`: those of the chips
//! - [`assignment`]: a cycle for every node
//! - [`components`], [`bounds`], [`longest`], [`reservations`]: what schedulers ask of a graph and a machine
//! - [`modulo`], with [`exact`] for small graphs: the least interval
//! - [`prefetch`], [`four_stage`]: stages by kinds of operations, placed by [`phases`]
//! - [`refusal`]: why there is no schedule

pub mod assignment;
pub mod bounds;
pub mod components;
pub mod exact;
pub mod four_stage;
pub mod graph;
mod in_order;
mod iterative;
pub mod longest;
pub mod modulo;
pub mod phases;
pub mod prefetch;
pub mod refusal;
pub mod reservations;
pub mod resources;
mod settle;
mod target_model;
#[cfg(test)]
mod trials;
