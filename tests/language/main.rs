//! What authors write and read: Rust and text, messages about mistakes, logs, kernels after every pass, the
//! documentation.

#[path = "../common/mod.rs"]
mod common;

mod authoring;
mod debug_logs;
mod determinism;
mod diagnostics;
mod documentation;
mod filetests;
mod gallery;
mod language;
mod stages;
mod wave_operations;
