//! What must hold of a schedule before it is applied, and of a kernel after it.
//!
//! - [`verify`]: dependences and LDS buffers of an assignment
//! - [`usage`]: units of the machine in each cycle
//! - [`wave_groups`]: barriers of waves that do not run in step

pub mod usage;
pub mod verify;
pub mod wave_groups;
