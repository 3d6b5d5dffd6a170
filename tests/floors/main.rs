//! How the crate is built: rooms and what they may use, the figures of its source, and the crates that it
//! needs.

mod dependencies;
mod floors;
mod guards;
mod new_operations;
mod operation_files;
mod rooms;
