//! Attention against its definition in f64.
//!
//! - `definition`: what attention computes, as plain loops, and by how much a kernel may miss it
//! - `trial`: a kernel that is interpreted and executed on numbers, and compared with the definition
//! - the tests: `forward`, `variants`, `masked_tiles`, `packed`, `quantised`, `refusals`, `page`
//! - `gradients`, `backward_trial`, `backward` and `backward_packed`: the same of the backward pass

mod backward;
mod backward_packed;
mod backward_trial;
mod definition;
mod forward;
mod gradients;
mod masked_tiles;
mod packed;
mod page;
mod quantised;
mod refusals;
mod trial;
mod variants;
