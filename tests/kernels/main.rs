//! The ready kernels, on every chip.

mod attention;
mod chips;
mod convolutions;
mod data_kernels;
mod experts;
mod four_bit;
mod generic;
mod kernel_sweep;
mod paged;
mod ready_kernels;
mod refused;
mod row_kernels;
mod tasks;
