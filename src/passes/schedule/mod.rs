//! Schedules: which iteration an operation of a loop belongs to in the steady state, and in which order operations are emitted.
//!
//! - [`graph`]: the dependences of a loop body, as data
//! - [`resources`]: units and delays of the machine
//! - [`assignment`]: a cycle for every node

pub mod assignment;
pub mod graph;
pub mod resources;
