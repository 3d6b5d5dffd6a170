//! The backward pass of attention: the gradients of Q, K and V, of a bias, and of the logits of sinks.
//!
//! [`AttentionBackward`] makes its kernels. None of them keeps the weights of the forward pass: each computes
//! them anew from queries, keys and the logarithms of the sums, `P = 2^(S - log2 sum)`. With the gradient `dP
//! = dO Vᵀ` of the weights, that of the scores is `dS = P (dP - delta)`, where `delta` is the sum over a row
//! of `dO O`; and then
//!
//! - `dV = Pᵀ dO` and `dK = scale * dSᵀ Q` sum over queries: a workgroup has a tile of keys, and walks along
//!   the queries of all heads that share them
//! - `dQ = scale * dS K` sums over keys: a workgroup has a tile of queries, as in the forward pass
//!
//! No two workgroups add to the same element, so that results have the same bits on every run. The parts:
//!
//! - `kernels`, `choices`, `builder`, `checks`: which kernels there are, and what an author chooses, says and
//!   is refused
//! - `rows`: what the kernels need of each row: the negated logarithms of the sums, and `delta`
//! - `queries`: dQ
//! - `keys`: dK and dV, each alone or both at once
//! - `sinks`, `bias`: the gradients of the logits of sinks, and of a bias
//! - `tensors`: how values are read from tensors, and written to them
//! - `tiles`: tiles, waves and matrix instructions

mod bias;
mod builder;
mod checks;
mod choices;
mod kernels;
mod keys;
mod queries;
mod rows;
mod sinks;
mod tensors;
mod tiles;

pub use choices::AttentionBackward;
pub use kernels::BackwardKernel;
pub use tiles::GradientTile;
