//! Layouts: which lane and register holds which element of every value.
//!
//! - `assign_layouts`: the pass, as a list of stages
//! - `layout_sources`, `layout_spread`: where layouts come from, and what takes them over
//! - `mma_layouts`: matrix instructions as sources of layouts
//! - `chained_products`: which k a lane holds where a factor is computed, as results of products are
//! - `store_columns`: which columns of a matrix product a lane holds, so that stores are wide
//! - `access_costs`: what accesses of global memory cost in a layout
//! - `convert_layouts`: conversions between layouts where two meet, with `conversion_ways` (what they cost,
//!   and which were made)
//! - `lds_tiles`: which reads go through LDS, and can be read from there in another layout
//! - `element_layouts`: layouts of elements, and what other rooms ask of them

mod access_costs;
pub(crate) mod assign_layouts;
mod chained_products;
pub(crate) mod conversion_ways;
mod convert_layouts;
pub(crate) mod element_layouts;
mod layout_sources;
mod layout_spread;
mod lds_tiles;
mod mma_layouts;
mod store_columns;
