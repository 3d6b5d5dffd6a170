//! The ready kernels, on every chip.

#[path = "../common/mod.rs"]
mod common;

mod chips;
mod convolutions;
mod data_kernels;
mod generic;
mod kernel_sweep;
mod ready_kernels;
mod row_kernels;
