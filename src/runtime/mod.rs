//! Running kernels: compilation and its cache, devices, buffers, launches, and the simulator.
//!
//! - [`compile`]: one compilation, kernel to code object; [`cache`]: avoids compiling twice; [`report`]:
//!   facts about the result, [`summary`]: the same as text
//! - [`executable`]: its result, `stored`: the same as bytes; [`bundle`]: those for several chips; [`schedule_view`]: what became of its
//!   loops
//! - [`device`], [`buffer`], [`stream`], [`launch`], [`logs`]: running it
//! - [`hip`]: GPUs through HIP; [`interop`]: memory and streams of others
//! - [`check`]: comparing what a device computed with the reference interpreter
//! - [`sim`]: the simulator, which knows nothing of the above
pub(crate) mod buffer;
pub(crate) mod bundle;
pub mod cache;
pub mod check;
pub(crate) mod compile;
pub(crate) mod device;
pub(crate) mod executable;
mod explain;
#[cfg(test)]
mod growth;
pub(crate) mod hip;
pub(crate) mod interop;
pub(crate) mod launch;
pub(crate) mod logs;
mod placement;
pub mod report;
pub(crate) mod schedule_view;
pub mod sim;
mod stored;
pub(crate) mod stream;
pub mod summary;
