//! What authors write and read: Rust and text, messages about mistakes, logs, kernels after every
//! pass.

mod authoring;
mod debug_logs;
mod determinism;
mod diagnostics;
mod filetests;
mod language;
mod stages;
mod wave_operations;
