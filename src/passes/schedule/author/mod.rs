//! Schedules that an author wrote, applied to a kernel.
//!
//! - [`manual`]: the author's operations, one after the other
//! - `selection`: lists of nodes
//! - `editing`: what is inserted and put in another order; [`reorder`]: orders that keep dependences
//! - [`table`]: tables of cycles, matched node by node

mod editing;
pub(super) mod manual;
pub(super) mod reorder;
mod selection;
pub(super) mod table;
