//! Real devices through HIP's C interface, opened at run time: this crate builds without ROCm, and a program
//! that uses it starts without a driver.
//!
//! - `library`: finding and opening `libamdhip64`
//! - `api`: its functions, one row each, and safe calls of them
//! - `failure`: what a call answered, as a diagnostic
//! - `architecture`: which chip a device is
//! - `device`: a device with its memory, modules and launches
//!
//! All `unsafe` of the runtime is here: HIP is C. Each place says why it may do what it does.
#![allow(unsafe_code)]

mod api;
mod architecture;
mod device;
mod failure;
mod library;

pub(super) use device::{HipDevice, HipEvent, HipStream, PinnedMemory, devices};
