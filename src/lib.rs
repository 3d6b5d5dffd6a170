//! Groundswell compiles tile-level GPU kernels to AMD CDNA machine code inside the calling process.
#![warn(missing_docs)]
#![deny(unsafe_code)]

pub mod codegen;
pub mod ir;
pub mod passes;
pub mod runtime;
