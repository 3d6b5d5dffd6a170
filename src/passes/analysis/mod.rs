//! Analysis: what a kernel's sizes, types and accesses are, before anything about it changes.
//!
//! - [`bind_symbols`]: the sizes of a launch, or the bounds that are known of them; each dimension's share of
//!   a workgroup and of a wave (`binder`: what its steps share)
//! - [`loop_iterations`], [`workgroup_order`]: how often loops run, and which workgroup has which tile
//!   (`cached_order`: the order that suits a grid and a chip)
//! - [`infer_types`]: the type of every value, with `arrival` (results that depend on the order of
//!   workgroups, where the options deny them)
//! - `memory_strides`, `mapped_accesses`: how memories lie, and what accesses with a mapping reach
//! - `counted_dims`: dimensions that count parts
//! - `fractions`, `positive_values`: values from 0 to 1, and values above 0
//! - `read_sources`: what a value that is read at coordinates can be read from
//! - `tiles_of_values`: tiles whose rows stand where values say, and that go through LDS all the same
//! - `find_in_place`: which arguments may be one tensor
//! - `find_plain_roundings`: casts to bf16 that may round NaNs as they round numbers
//! - `find_unit_factors`: factors that are one most of the time
//! - [`reduction_trees`]: in which order reductions add up, for the report

mod arrival;
pub(crate) mod bind_symbols;
mod binder;
mod cached_order;
pub(super) mod counted_dims;
pub(super) mod find_in_place;
pub(super) mod find_plain_roundings;
pub(super) mod find_unit_factors;
pub(super) mod fractions;
pub(crate) mod infer_types;
pub(crate) mod loop_iterations;
pub(super) mod mapped_accesses;
pub(super) mod memory_strides;
pub(super) mod positive_values;
pub(super) mod read_sources;
pub(crate) mod reduction_trees;
pub(super) mod tiles_of_values;
mod workgroup_order;
