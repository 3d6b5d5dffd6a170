//! A loop as schedulers see it.
//!
//! - [`loops`]: the loops that schedulers look at
//! - [`dependence_graph`]: the dependences of a loop body, as data; [`mod@dependences`]: how they are found
//! - [`resources`]: units and delays of a machine; `target_model`: those of the chips
//! - [`assignment`]: a cycle for every node
//! - [`coordinates`]: where an expanded node lies in its tile
//! - [`keys`]: names of nodes that stay the same; [`words`]: nodes in words

pub mod assignment;
pub mod coordinates;
pub mod dependence_graph;
pub mod dependences;
pub mod keys;
pub mod loops;
pub mod resources;
mod target_model;
pub mod words;
