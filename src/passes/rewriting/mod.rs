//! Rewriting: logical nodes that become others with the same meaning, before layouts are chosen.
//!
//! - `simplify`: what is the same in all iterations, what is there twice, and what nobody uses; with
//!   `addresses`, a limit that is judged before the work
//! - `fold_places`: selections by places that are the same for all elements that exist
//! - `narrow_broadcasts`: arithmetic on repeated values, done before they are repeated
//! - `scale_maxima`: maxima that are scaled after they are found, under fast math
//! - `contract_products`: sums of products that are rounded once, under fast math
//! - `choose_instructions`: matrix instructions of a chip for the shapes that kernels say
//! - `multiply_scales`: factors with scales for blocks, as ordinary factors
//! - `type_logs`: logs become memories with the types of what is written to them; `check_bounds` writes to
//!   logs what leaves its memory
//! - `pack_small_floats`: 4-bit and 6-bit floats become bytes, words and integers, with `packed_factors`
//!   (products of them) and `turned_units` (such factors whose memory has the product's other dimension
//!   innermost), `packed_reads`, `packed_rows` (words along the rows of a memory) and `small_float_codes`
//! - `sort_rows`: sorts become networks of exchanges along the digits of places
//! - `repeat_blocks`: values along dimensions that follow others are repeated along these
//! - `stage_values`: values that are read at coordinates go through LDS
//! - `node_maker`: arithmetic that passes add

mod addresses;
mod check_bounds;
pub(crate) mod choose_instructions;
pub(crate) mod contract_products;
pub(crate) mod fold_places;
pub(crate) mod multiply_scales;
pub(crate) mod narrow_broadcasts;
mod node_maker;
pub(crate) mod pack_small_floats;
mod packed_factors;
mod packed_reads;
mod packed_rows;
pub(crate) mod repeat_blocks;
pub(crate) mod scale_maxima;
pub(crate) mod simplify;
mod small_float_codes;
pub(super) mod sort_rows;
pub(crate) mod stage_values;
mod turned_units;
pub(crate) mod type_logs;
