//! The program, and what it and other processes leave on disk.

#[path = "../common/mod.rs"]
mod common;

mod cli;
mod cli_exit_codes;
mod cli_limits;
mod cli_outputs;
mod disk_cache;
