//! Groundswell for C, C++, Python and whoever else calls C: kernels are parsed or taken from the ready ones,
//! compiled, launched on devices, checked and timed. The header is `include/groundswell.h`, which cbindgen
//! makes of these files (`tests/header.rs` holds it).
//!
//! Objects are pointers that belong to the caller until they are given to their `free`; each may be freed
//! while others that were made of it live on. A function that fails returns NULL or a number that is not 0,
//! and `groundswell_error` then has the text for the calling thread. Texts are UTF-8 and end with a zero byte;
//! NULL where a text or an object has to be is an error and no crash. Objects may be used by any thread, but
//! those that are changed (options, launches, a buffer that is told its dtype) by one at a time.
//!
//! - `failure`: results and the last error; `text`: texts in both directions
//! - `kernel`, `options`, `executable`: compiling; `device`, `buffer`, `launch`: running
#![warn(missing_docs)]

mod buffer;
mod device;
mod executable;
mod failure;
mod kernel;
mod launch;
mod options;
mod text;

pub use buffer::*;
pub use device::*;
pub use executable::*;
pub use failure::groundswell_error;
pub use kernel::*;
pub use launch::*;
pub use options::*;
pub use text::{groundswell_string_free, groundswell_version};

/// Pointers carry objects past the compiler's checks of threads, so these are made here.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<GroundswellKernel>();
    shared::<GroundswellOptions>();
    shared::<GroundswellExecutable>();
    shared::<GroundswellDevice>();
    shared::<GroundswellBuffer>();
    shared::<GroundswellLaunch>();
};
