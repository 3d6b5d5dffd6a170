//! Sizes, scalars and dimensions: known, open, promised, computed, scaled, and those that follow others.

mod assumptions;
mod constant_dims;
mod expressions;
mod following_dims;
mod scalar_arguments;
mod scaled_dims;
