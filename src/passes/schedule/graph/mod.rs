//! A loop as schedulers see it.
//!
//! - [`loops`]: the loops that schedulers look at
//! - [`dependence_graph`]: the dependences of a loop body, as data; [`mod@dependences`]: how they are found
//! - [`resources`]: units and delays of a machine; `target_model`: those of the chips
//! - [`node_costs`]: what the instructions cost that nodes will be
//! - [`view`]: the kernel under scheduling
//! - [`assignment`]: a cycle for every node
//! - [`coordinates`]: where an expanded node lies in its tile
//! - [`buffer_parts`]: which accesses of an LDS buffer have no element in common
//! - [`lds_use`]: what LDS holds at each place of the kernel
//! - [`numbers`]: numbers of nodes, found by entity
//! - [`keys`]: names of nodes that stay the same, and [`node_names`], of all loops; [`words`]: nodes in words

pub(crate) mod assignment;
pub(crate) mod buffer_parts;
pub(crate) mod coordinates;
pub(crate) mod dependence_graph;
pub(crate) mod dependences;
pub(crate) mod keys;
pub(crate) mod lds_use;
pub(crate) mod loops;
pub(crate) mod node_costs;
pub(crate) mod node_names;
pub(crate) mod numbers;
pub(crate) mod resources;
mod target_model;
pub(crate) mod view;
pub(crate) mod words;
