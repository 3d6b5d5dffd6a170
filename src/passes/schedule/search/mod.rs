//! A search for a schedule that is better than those that strategies find: from what they write for a loop,
//! by small changes, each of which is estimated as `auto` estimates strategies.
//!
//! A search begins with the schedules that strategies write down for the loop as an author would, and with
//! those that divide shares between clusters in another way. From the shortest of them it goes on from change
//! to change ([`moves`]) as long as a trip gets shorter; then from the next one. It is bounded by the number
//! of candidates and looks at them in a fixed order, so it finds the same in every compilation. What it finds
//! is tried where it counts: a candidate is taken only if the kernel compiles with it, which those who ask
//! see to.
//!
//! - `climb`: the search in one loop
//! - [`moves`]: the changes
//! - [`block`]: the schedules of all loops as one block that names nodes by their places

pub(crate) mod block;
pub(crate) mod climb;
mod moves;
