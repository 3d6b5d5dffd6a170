//! What must hold of a schedule before it is applied, and of a kernel after it.
//!
//! - [`verify`]: dependences and LDS buffers of an assignment
//! - [`usage`]: units of the machine in each cycle
//! - [`wave_groups`]: barriers of waves that do not run in step
//! - [`entry`]: accesses in front of such loops
//! - [`trip_barriers`]: what the barriers of a loop are for
//! - [`in_flight`]: when an access of LDS is over

mod entry;
mod in_flight;
pub(crate) mod trip_barriers;
pub(crate) mod usage;
pub(crate) mod verify;
pub(crate) mod wave_groups;
