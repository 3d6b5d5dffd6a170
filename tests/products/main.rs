//! Products of matrices: every form, dtype, tile and instruction, and what is done with the sums.

mod epilogues;
mod gemm_sweep;
mod product_kernels;
mod products;
mod scaled_products;
mod turned_units;
