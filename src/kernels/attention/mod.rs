//! Attention: `O = softmax(scale * Q Kᵀ) V` for each head of a batch, and its variants.
//!
//! [`Attention`] is the builder of the forward kernels. Its parts, an idea each:
//!
//! - `choices`, `builder`, `checks`: what an author chooses, says and is refused
//! - `forward`: the kernel itself: one loop over tiles of keys
//! - `running`: the softmax of rows of which a tile at a time is seen: maximum, sum and weighted values
//! - `scores`: from products of queries and keys to scores: the scale, functions of scores, and masks
//! - `score_steps`: the functions and masks that are ready: causal, windows, bias, ALiBi, soft caps
//! - `head_parts`, `rotary`: the elements of heads as the products take them, and turned by their positions
//! - `scales`: those of 8-bit tensors
//! - `sequences`: which rows of the tensors a workgroup has, where sequences are packed
//! - `heads`, `tensors`: the dimensions, and queries, keys, values and output in memory
//! - `places`: where a score is
//! - `tiles`: tile, waves and matrix instruction that suit a head and a chip
//!
//! All are made of the public language: what is fast about them is the compiler's doing, and a variant that
//! an author writes is compiled in the same way.

mod builder;
mod checks;
mod choices;
mod forward;
mod head_parts;
mod heads;
mod places;
mod rotary;
mod running;
mod scales;
mod score_steps;
mod scores;
mod sequences;
mod tensors;
mod tiles;

pub use choices::{Attention, AttentionLayout, AttentionScales};
pub use score_steps::{BiasShape, Diagonal};
pub use tiles::AttentionTile;
