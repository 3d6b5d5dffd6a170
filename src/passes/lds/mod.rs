//! LDS: what goes through it, how it lies there, how long it stays, and who waits for whom.
//!
//! - `promote_to_lds`: loads that several waves or matrix instructions share get a buffer
//! - `made_again`: values that say where rows of tiles are, made again for loads
//! - `distribute_loads`: which lane loads which part of a buffer
//! - `load_to_lds`: loads straight to LDS, where the options ask for them
//! - `arrange_lds`: the layout of a buffer, without bank conflicts where this is possible
//! - `lds_lifetimes`, `allocate_lds`: when buffers hold data, and at which offsets they are
//! - `place_barriers`: which waves wait for which

pub(crate) mod allocate_lds;
pub(crate) mod arrange_lds;
pub(crate) mod distribute_loads;
pub(crate) mod lds_lifetimes;
pub(crate) mod load_to_lds;
mod made_again;
pub(crate) mod place_barriers;
pub(crate) mod promote_to_lds;
