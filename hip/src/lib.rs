//! HIP's runtime library over Groundswell's simulator: an unmodified HIP program, linked to `libamdhip64`,
//! runs on a simulated chip. `groundswell hip -- PROGRAM` sets it up.
//!
//! - [`runtime`]: the process's device, made at the first call, and its settings
//! - [`space`]: device memory at addresses of the host, so that both see pinned and managed memory
//! - `memory`, `pools`, `reservations`, `copies`, `boxes`: allocating, mapping, copying, filling
//! - `registration`, `modules`, [`image`]: kernels and variables of the program and of modules
//! - `launch`, `occupancy`: launches, and how many fit
//! - `streams`, `operations`: streams and events. Every operation is complete before its call returns, so
//!   they are in order
//! - `order`: operations that nothing orders, for check mode
//! - `capture`, `graphs`, `graph_nodes`, `graph_runs`: streams that are captured, and graphs
//! - `devices`, `properties`, `contexts`, `limits`: what programs ask about the device, and set
//! - `addresses`: where functions are
//! - `caller`: where the program calls from
//! - `names`: names of kernels and of codes
//! - [`host_calls`], `heap`: `printf`, `assert` and `malloc` of kernels
//! - [`hsa`]: what programs ask HSA's runtime about the device, a library of its own
//! - `progress`: how far a launch is, on a terminal
//! - [`report`]: what check mode and time mode found, for `groundswell hip`
//! - `absent`: functions of HIP that are not there, each of which says so
//!
//! The functions of HIP keep HIP's names.
//!
//! A program that waits in a kernel for what the host does after the launch does not end here. The
//! workgroups of a cooperative launch all start, if the device could hold them, and meet at `ds_gws_barrier`
//! or at a structure in memory, as the device libraries have it. A block of memory has whole pages: what
//! lies in its last one past its end is no fault, as on hardware, but a warning in run mode and a finding in
//! check mode. In time mode the estimate works on a copy of memory (`Simulator::copy`), whose pages are
//! copied when they are first used, and events tell the time of the device; a launch that waits for the host
//! or for workgroups on other compute units has none, which the report says.
//!
//! There is one library with the names and versioned symbols of `libamdhip64` of HIP 5, 6 and 7, and one of
//! `libhsa-runtime64` with the few functions that tell the chip. They are programs to cargo, because rustc
//! gives libraries a version script of its own (`build.rs`); `symbols.txt` is the table of what is there,
//! and since which version of HIP.
#![allow(non_snake_case)]
#![warn(missing_docs)]

mod absent;
mod addresses;
mod boxes;
mod caller;
mod capture;
mod contexts;
mod copies;
mod devices;
pub mod error;
mod ffi;
mod graph_nodes;
mod graph_runs;
mod graphs;
mod handles;
mod heap;
pub mod host_calls;
pub mod hsa;
pub mod image;
mod launch;
mod limits;
mod memory;
mod modules;
mod names;
mod occupancy;
mod operations;
mod order;
mod pools;
mod printf;
mod progress;
mod properties;
mod registration;
pub mod report;
mod reservations;
pub mod runtime;
pub mod space;
mod streams;

/// Called by each of HIP's libraries before anything else: which version of HIP it stands for.
pub fn stands_for(version: runtime::HipVersion) {
    runtime::set_version(version);
}
