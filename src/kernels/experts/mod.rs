//! Mixtures of experts: each token goes to the few experts that a router chooses for it.
//!
//! - `builder`: [`MixtureOfExperts`] and its kernels in the order in which they run
//! - `routing`: the experts of each token and their weights
//! - `sorting`: tokens by expert, where the rows of each expert are filled up to whole blocks
//! - `products`: both products of rows with the matrices of their experts, one expert for each block
//! - `combining`: what the experts of a token give, weighted and added in the order of its choices

mod builder;
mod combining;
mod products;
mod routing;
mod sorting;

pub use builder::MixtureOfExperts;
