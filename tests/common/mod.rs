//! What several test files share: generated instructions ([`corpus`]) and what is done with each ([`instructions`]), kernels to
//! compile ([`kernels`]), the LLVM tools to compare with ([`oracle`]), a simulated device ([`simulated`]), and
//! kernels for time mode ([`timed`]).
#![allow(dead_code, reason = "each test file uses a part")]

pub mod corpus;
pub mod instructions;
pub mod kernels;
pub mod oracle;
pub mod simulated;
pub mod timed;
