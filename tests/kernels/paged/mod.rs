//! Attention over paged caches: decoding in parts and whole, latent decoding, extending, and appending,
//! judged by f64 computations that are written here from what attention means.

mod append;
pub mod cases;
mod decode;
mod extend;
mod latent;
mod refusals;
