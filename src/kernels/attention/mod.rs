//! Attention: `O = softmax(scale * Q Kᵀ) V` for each head of a batch, and its variants.
//!
//! [`Attention`] is the builder of the forward kernels. Its parts, an idea each:
//!
//! - `choices`, `builder`, `checks`: what an author chooses, says and is refused
//! - `forward`: the kernel itself: one loop over tiles of keys
//! - `running`: the softmax of rows of which a tile at a time is seen: maximum, sum and weighted values
//! - `scores`: from products of queries and keys to scores: the scale, functions of scores, and masks
//! - `score_steps`: the functions and masks that are ready: causal, windows, bias, ALiBi, soft caps
//! - `biases`: their shapes
//! - `head_parts`, `rotary`: the elements of heads as the products take them, and turned by their positions
//! - `scales`: those of 8-bit tensors
//! - `sequences`: which rows of the tensors a workgroup has, where sequences are packed
//! - `heads`, `tensors`: the dimensions, and queries, keys, values and output in memory
//! - `places`: where a score is
//! - `tiles`: tile, waves and matrix instruction that suit a head and a chip
//! - `backward`: the gradients of queries, keys and values
//!
//! Over a cache whose keys and values lie in pages:
//!
//! - `paged`: heads, the table of pages, how keys are divided, scales of narrow caches
//! - `over_cache`: the loop over keys in pages
//! - `partial`: the softmax of a part of the keys
//! - `decode`: a few new queries over all keys of a sequence, in parts
//! - `latent`: the same where all heads share the rows of the cache
//! - `combine`: joins the parts
//! - `extend`: many new queries over keys in pages and over each other
//! - `append`: new keys and values into the cache
//!
//! All are made of the public language: what is fast about them is the compiler's doing, and a variant that
//! an author writes is compiled in the same way.

mod append;
mod backward;
mod biases;
mod builder;
mod checks;
mod choices;
mod combine;
mod decode;
mod extend;
mod forward;
mod head_parts;
mod heads;
mod latent;
mod over_cache;
mod paged;
mod partial;
mod places;
mod rotary;
mod running;
mod scales;
mod score_steps;
mod scores;
mod sequences;
mod tensors;
mod tiles;

pub(in crate::kernels) use latent::latent_rows;
pub(in crate::kernels) use paged::{row_tile, wave_dim};

pub use append::paged_append;
pub use backward::{AttentionBackward, BackwardKernel, GradientTile};
pub use biases::BiasShape;
pub use choices::{Attention, AttentionLayout, AttentionScales};
pub use decode::PagedDecode;
pub use extend::PagedExtend;
pub use latent::LatentDecode;
pub use score_steps::Diagonal;
pub use tiles::AttentionTile;
