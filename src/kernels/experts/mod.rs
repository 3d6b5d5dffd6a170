//! Mixtures of experts: each token goes to the few experts that a router chooses for it.
//!
//! - `builder`: [`MixtureOfExperts`] and its kernels in the order in which they run
//! - `routing`: the experts of each token and their weights
//! - `sorting`: tokens by expert, where the rows of each expert are filled up to whole blocks
//! - `axes`: the dimensions of both products of rows with the matrices of their experts
//! - `products`: these of 16-bit floats, one expert for each block of rows
//! - `scaled_products`: the same of 8-bit and 4-bit floats with scales
//! - `scaled_factors`: the factors of these, and the hidden rows that become one
//! - `combining`: what the experts of a token give, weighted and added in the order of its choices

mod axes;
mod builder;
mod combining;
mod products;
mod routing;
mod scaled_factors;
mod scaled_products;
mod sorting;

pub use builder::MixtureOfExperts;
