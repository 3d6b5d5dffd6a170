//! Run mode: what clang's kernels compute, and what ends kernels that never end.

#[path = "../common/mod.rs"]
mod common;

mod sim_clang;
mod sim_clang_chips;
mod sim_limits;
