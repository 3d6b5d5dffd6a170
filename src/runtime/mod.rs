//! Running kernels: compilation and its cache, devices, buffers, launches, and the simulator.
//!
//! - [`compile`]: one compilation, kernel to code object; [`cache`]: avoids compiling twice; [`report`]:
//!   facts about the result, [`summary`]: the same as text
//! - [`executable`]: its result, `compiled`, `compiled_code`: what the compiler says of it, `stored`: the
//!   same as bytes; [`bundle`]: those for several chips; [`package`]: those that ship; [`schedule_view`]:
//!   what became of loops
//! - [`device`] (`backend`: `gpu` or `simulated`), [`buffer`], [`stream`], [`launch`], [`logs`]: running it
//! - [`hip`]: GPUs through HIP; [`interop`]: memory and streams of others
//! - `tensors`, [`check`]: comparing what a device computed with the reference interpreter
//! - [`sim`]: the simulator, which knows nothing of the above
//!
//! Without the compiler (feature `compiler`) what runs finished kernels on GPUs.
mod aliases;
mod backend;
pub(crate) mod buffer;
#[cfg(feature = "compiler")]
pub(crate) mod bundle;
#[cfg(feature = "compiler")]
pub mod cache;
#[cfg(feature = "compiler")]
pub mod check;
#[cfg(feature = "compiler")]
pub(crate) mod compile;
#[cfg(feature = "compiler")]
pub(crate) mod compiled;
#[cfg(feature = "compiler")]
mod compiled_code;
pub(crate) mod device;
pub(crate) mod executable;
#[cfg(feature = "compiler")]
mod explain;
mod gpu;
#[cfg(all(test, feature = "compiler"))]
mod growth;
pub(crate) mod hip;
pub(crate) mod interop;
pub(crate) mod launch;
#[cfg(feature = "compiler")]
pub(crate) mod logs;
#[cfg(not(feature = "compiler"))]
pub(crate) mod no_logs;
pub mod package;
mod placement;
#[cfg(feature = "compiler")]
pub mod report;
#[cfg(feature = "compiler")]
pub(crate) mod schedule_view;
#[cfg(feature = "compiler")]
pub mod sim;
#[cfg(feature = "compiler")]
mod simulated;
mod stored;
pub(crate) mod stream;
#[cfg(feature = "compiler")]
pub mod summary;
#[cfg(feature = "compiler")]
mod tensors;

#[cfg(not(feature = "compiler"))]
pub(crate) use no_logs as logs;
