//! Schedules that an author wrote, applied to a kernel.
//!
//! - [`manual`]: the author's operations, one after the other
//! - `evaluation`: a schedule while that goes on; `tags`: the nodes that its tags name; `named_nodes`: tags
//!   that it gives itself
//! - `selection`: lists of nodes
//! - `editing`: what is inserted and put in another order; [`reorder`]: orders that keep dependences
//! - [`table`]: tables of cycles, matched node by node

mod editing;
mod evaluation;
pub(super) mod manual;
mod named_nodes;
pub(super) mod reorder;
pub(super) mod selection;
pub(super) mod table;
pub(super) mod tags;
