//! Groundswell compiles tile-level GPU kernels to AMD CDNA machine code inside the calling process, in about
//! a millisecond: no LLVM, no MLIR, no Python, no ROCm toolchain.
//!
//! A kernel is written over whole tensors with symbolic shapes; constraints, kept apart, say how it is spread
//! over the machine.
//!
//! ```
//! use groundswell::prelude::*;
//!
//! let [m, n, k] = symbols(["M", "N", "K"]);
//! let gemm = Kernel::trace("gemm", |w| {
//!     w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1), tile(k, 32)]);
//!     w.distribute([wave(m, 32), wave(n, 32)]);
//!     w.mma_type(Mma::F32_16x16x16_F16);
//!     let a = w.memory("a", [m, k], Shared, F16);
//!     let b = w.memory("b", [n, k], Shared, F16);
//!     let c = w.memory("c", [m, n], Global, F32);
//!     let zero = w.register([m, n], F32, 0.0);
//!     let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
//!     w.write(sum, c);
//! })?;
//!
//! let options = Options::new(Target::GFX942).set(m, 100).set(n, 70).set(k, 48);
//! let executable = gemm.compile(&options)?;
//! let device = Device::open()?;
//! let a = device.upload(&vec![f16::ONE; 100 * 48])?;
//! let b = device.upload(&vec![f16::ONE; 70 * 48])?;
//! let c = device.upload(&vec![0f32; 100 * 70])?;
//! device.launch(&executable).buffer(&a).buffer(&b).buffer(&c).run()?;
//! assert!(c.download::<f32>()?.iter().all(|&x| x == 48.0));
//! # Ok::<(), Diagnostic>(())
//! ```
//!
//! | to read next | |
//! | --- | --- |
//! | [`prelude`] | every name that a kernel, its compilation and its launch take, in one table |
//! | [`how_do_i`] | short answers, each a program that runs |
//! | [`kernels`] | ready kernels: copies and matrix products with any epilogue |
//! | [`schedule`] | how loops are pipelined, and how to say it yourself |
//! | [`text`] | kernels as text, without Rust |
//! | [`cache`] | what is compiled only once, and how much is kept |
//! | [`package`] | kernels that are compiled ahead of time, and ship without the compiler |
//! | [`simulator`] | run, check and time any AMDHSA code object |
//!
//! | to look up | |
//! | --- | --- |
//! | [`author`] | the types that kernels are written with |
//! | [`tasks`] | what operators compute, apart from how, and kernels for it |
//! | [`mapping`] | which worker does which tasks, as products of factors |
//! | [`options`], [`compile`], [`report`] | what a compilation is asked for, what it gives and reports |
//! | [`device`], [`check`], [`interpreter`] | where kernels run, and what they ought to compute |
//! | [`diagnostic`] | what is wrong, where, why, and a way out |
//! | [`assembler`], [`object`], [`isa`], [`target`] | assembly text, code objects, instructions, chips |
//!
//! # Features
//!
//! | | |
//! | --- | --- |
//! | `cli` (default) | the program `groundswell` |
//! | `compiler` | everything but the program: the language, the compiler, the simulator, devices |
//! | `runtime` | launching kernels built ahead of time ([`package`]) on GPUs, without the compiler |
//! | `serde` | findings and reports of the simulator as JSON, the page and the trace of time mode |
//! | `half` | conversions from and to the types of the crate `half`, and buffers of them |
//!
//! A library that compiles kernels wants `default-features = false, features = ["compiler"]`: 74 crates
//! instead of 104, build scripts and macros included. One that launches finished kernels wants `runtime`
//! alone: 20 crates.
//!
//! # Limits
//!
//! A limit is an error with its number, never an abort.
//!
//! | | most |
//! | --- | --- |
//! | dimensions of a kernel | 256 |
//! | operations of a kernel | 65,536 |
//! | elements of one tensor of the interpreter | 2^28 |
//! | vector registers of a wave | 512, fewer with several waves per SIMD; the rest is spilled |
//! | waves of a workgroup | 16 |
//! | LDS of a workgroup | 64 KiB, 160 KiB on gfx950 |
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(unreachable_pub))]
#![deny(unsafe_code)]
// A build that only launches has no use for much of what it shares with the compiler.
#![cfg_attr(not(feature = "compiler"), allow(dead_code, unused_imports, unreachable_pub))]

// Unit tests share the random instructions of the integration tests, which refer to the crate by name.
#[cfg(test)]
extern crate self as groundswell;

#[cfg(feature = "compiler")]
mod choice;
mod codegen;
mod face;
mod float16;
mod float8;
mod index;
mod ir;
#[cfg(feature = "compiler")]
pub mod kernels;
mod narrow_float;
#[cfg(feature = "compiler")]
mod passes;
#[cfg(feature = "compiler")]
pub mod prelude;
mod runtime;
#[cfg(feature = "compiler")]
mod small_float;
mod spelling;
#[cfg(feature = "compiler")]
pub mod tasks;
#[cfg(feature = "compiler")]
pub mod templates;
#[cfg(feature = "compiler")]
pub mod tuning;
#[cfg(feature = "compiler")]
mod workers;

#[doc(inline)]
pub use codegen::target;
#[cfg(feature = "compiler")]
#[doc(inline)]
pub use codegen::{assembler, isa, object};
#[doc(inline)]
pub use face::device;
#[cfg(feature = "compiler")]
#[doc(inline)]
pub use face::{author, compile, mapping};
#[doc(inline)]
pub use ir::diagnostic;
#[cfg(feature = "compiler")]
#[doc(inline)]
pub use ir::{interpreter, schedule, text};
#[cfg(feature = "compiler")]
#[doc(inline)]
pub use passes::options;
#[doc(inline)]
pub use runtime::package;
#[cfg(feature = "compiler")]
#[doc(inline)]
pub use runtime::{cache, check, report, sim as simulator};

#[cfg(feature = "compiler")]
#[doc(hidden)]
pub mod internals;

/// Short answers with programs that run: row sums, bias, transposed and several outputs, dynamic sizes, the
/// report, schedules, time, check mode, ahead of time.
#[doc = include_str!(concat!(env!("OUT_DIR"), "/how-do-i.md"))]
pub mod how_do_i {}

/// What a kernel can say, in Rust and as text.
#[doc = include_str!(concat!(env!("OUT_DIR"), "/language.md"))]
pub mod language {}

#[cfg(all(doctest, feature = "compiler"))]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/attention.md"))]
mod attention {}

#[cfg(all(doctest, feature = "compiler"))]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/kernels.md"))]
mod ready_kernels {}

#[cfg(all(doctest, feature = "compiler"))]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/tuning.md"))]
mod tuning_page {}

#[cfg(all(doctest, feature = "compiler"))]
#[doc = include_str!("../README.md")]
mod readme {}
