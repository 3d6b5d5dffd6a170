//! Schedules to look at.
//!
//! - [`view`]: what was done to each loop, gathered on demand
//! - [`graph_text`]: dependences as a listing and as a drawing
//! - [`table`]: cycles as a table that can be read back; [`operations`]: an author's schedule likewise, with
//!   `stages` for strategies that place nodes by phases
//! - [`timeline`]: a page

pub(crate) mod graph_text;
pub(crate) mod operations;
mod stages;
pub(crate) mod table;
pub(crate) mod timeline;
pub(crate) mod view;
