//! Machine code of one kernel before it becomes bytes, and the passes over it.
mod body;

pub use body::{Block, Body, MachineInst, RegisterFile, VirtualRegister};
