//! Running kernels.
pub mod sim;
