//! Run mode: what clang's kernels compute, what ends kernels that never end, and what workgroups see of each
//! other.

mod sim_clang;
mod sim_clang_chips;
mod sim_limits;
mod sim_pairs;
