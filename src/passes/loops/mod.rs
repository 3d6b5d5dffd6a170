//! Loops: what they carry and fold, where they leave their memories, and the pieces that their bodies become.
//!
//! - `carry_parts`, `split_reductions`: what loops add up in parts, and what several waves reduce
//! - `mark_bounds`: accesses that can leave their memory, and how that is kept from happening
//! - `masked_tiles`: loops of their own for the tiles in which masks hide something
//! - `peel_remainders`: an iteration of its own for what is left of a size
//! - `loop_pieces`: how these two divide a loop
//! - `padded_factors`: which factors of products bring more than zeros from beyond the end of a dimension
//! - `mask_folds`: what reductions and products must leave out
//! - `expand`: one node per machine-sized piece, with `late_reads` (the order of reads in front of products
//!   of lanes) and `early_writes` (the order of what comes after loops)

pub(crate) mod carry_parts;
mod early_writes;
pub(crate) mod expand;
mod late_reads;
mod loop_pieces;
pub(crate) mod mark_bounds;
pub(crate) mod mask_folds;
pub(crate) mod masked_tiles;
pub(crate) mod padded_factors;
pub(crate) mod peel_remainders;
pub(crate) mod split_reductions;
