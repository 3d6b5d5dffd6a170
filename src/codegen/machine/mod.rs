//! Machine code of one kernel before it becomes bytes, and the passes over it.
//!
//! ```text
//! lowering -> allocate -> waits -> hazards -> branches -> code
//! ```
mod access;
pub mod allocate;
mod body;
pub mod branches;
pub mod check;
mod hazard_rows;
pub mod hazards;
mod liveness;
mod matrix_rows;
mod occupancy;
mod repairs;
mod replay;
pub mod text;
pub mod waits;

pub use body::{Block, Body, MachineInst, RegisterFile, VirtualRegister};
