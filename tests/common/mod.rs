//! What several test files share: generated instructions ([`corpus`]), kernels to compile ([`kernels`]), the LLVM tools to compare with ([`oracle`]) and a simulated device ([`simulated`]).
#![allow(dead_code, reason = "each test file uses a part")]

pub mod corpus;
pub mod kernels;
pub mod oracle;
pub mod simulated;
