//! What must hold of a schedule before it is applied, and of a kernel after it.
//!
//! - [`verify`]: dependences and LDS buffers of an assignment
//! - [`usage`]: units of the machine in each cycle
//! - [`wave_groups`]: barriers of waves that do not run in step
//! - [`in_flight`]: when an access of LDS is over

mod in_flight;
pub(crate) mod usage;
pub(crate) mod verify;
pub(crate) mod wave_groups;
