//! Packages: kernels compiled ahead of time for several chips, in one file with an index of signatures.
//!
//! A package is written by `groundswell build`, or in a `build.rs` by [`PackageBuilder`], together with a
//! Rust module that has a typed function for each kernel, and a header and a bundle for C. A program that
//! only launches them takes the crate with `default-features = false, features = ["runtime"]`: the compiler
//! is not built then.
//!
//! - `file`: reading a package, and which of its kernels runs on a device
//! - `view`: buffers as tensors of a dtype and a rank, the arguments of the typed functions
//! - `write`, `built_kernel`: the package and the sources beside it; `rust_source`, `c_source`,
//!   `expression_source`: these

#[cfg(feature = "compiler")]
mod built_kernel;
#[cfg(feature = "compiler")]
mod c_source;
#[cfg(feature = "compiler")]
mod expression_source;
mod file;
#[cfg(feature = "compiler")]
mod rust_source;
mod view;
#[cfg(feature = "compiler")]
mod write;

pub use file::{KernelPackage, PackagedKernel};
pub use view::TensorView;
#[cfg(feature = "compiler")]
pub use write::{BuiltFiles, PackageBuilder};
