//! Schedules to look at.
//!
//! - [`view`]: what was done to each loop, gathered on demand
//! - [`graph_text`]: dependences as a listing and as a drawing
//! - [`table`]: cycles as a table that can be read back
//! - [`timeline`]: a page

pub mod graph_text;
pub mod table;
pub mod timeline;
pub mod view;
