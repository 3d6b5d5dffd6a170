//! Attention over a paged cache.
//!
//! - `paged`: heads, the table of pages, how keys are divided, scales of narrow caches
//! - `over_cache`: the loop over keys in pages
//! - `partial`: the softmax of a part of the keys
//! - `decode`: a few new queries over all keys of a sequence, in parts
//! - `latent`: the same where all heads share the rows of the cache
//! - `combine`: joins the parts
//! - `extend`: many new queries over keys in pages and over each other
//! - `append`: new keys and values into the cache

mod append;
mod combine;
mod decode;
mod extend;
mod latent;
mod over_cache;
mod paged;
mod partial;

pub(in crate::kernels) use latent::latent_rows;
pub(in crate::kernels) use paged::{row_tile, wave_dim};

pub use append::paged_append;
pub use decode::PagedDecode;
pub use extend::PagedExtend;
pub use latent::LatentDecode;
