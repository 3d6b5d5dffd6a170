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
//!     w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1), tile(k, 32), wave(m, 32), wave(n, 32)]);
//!     w.mma_type(Mma::F32_16x16x16_F16);
//!     let a = w.memory("a", [m, k], Shared, F16);
//!     let b = w.memory("b", [n, k], Shared, F16);
//!     let c = w.memory("c", [m, n], Global, F32);
//!     let zero = w.register([m, n], F32, 0.0);
//!     let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
//!     w.write(sum, c);
//! })?;
//!
//! let executable = gemm.compile(&Options::new(Target::GFX942).set(m, 100).set(n, 70).set(k, 48))?;
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
//! | [`ir::schedule`] | how loops are pipelined, and how to say it yourself |
//! | [`ir::text`] | kernels as text, without Rust |
//! | [`runtime::cache`] | what is compiled once only, and how much is kept |
//! | [`runtime::sim`] | the simulator: run, check and time any AMDHSA code object |
//!
//! # Features
//!
//! | | |
//! | --- | --- |
//! | `cli` (default) | the program `groundswell` |
//! | `serde` | findings and reports of the simulator as JSON, the page and the trace of time mode |
//! | `half` | conversions from and to the types of the crate `half`, and buffers of them |
//!
//! A library that compiles kernels wants `default-features = false`: 60 crates instead of 88, build scripts
//! and macros included.
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
//! | vector registers of a wave | 512 on gfx942, fewer with several waves per SIMD; what does not fit is spilled and reported |
//! | waves of a workgroup | 16 |
//! | LDS of a workgroup | 64 KiB on gfx942 |
#![warn(missing_docs)]
#![deny(unsafe_code)]

// Unit tests share the random instructions of the integration tests, which refer to the crate by name.
#[cfg(test)]
extern crate self as groundswell;

pub mod codegen;
pub mod float16;
pub mod ir;
pub mod kernels;
pub mod passes;
pub mod runtime;
mod workers;

/// Short answers with programs that run: row sums, bias, transposed and several outputs, dynamic sizes, the
/// report, schedules, time, check mode, ahead of time.
#[doc = include_str!("../docs/how-do-i.md")]
pub mod how_do_i {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod prelude {
    //! Everything that writing, compiling and running a kernel takes.
    //!
    //! | to write a kernel | |
    //! | --- | --- |
    //! | [`Kernel`] | a kernel: traced from a closure, or parsed from text; printed, it is its text |
    //! | [`Tracer`] | what the closure is given: memories, scalars, registers, loops, arithmetic |
    //! | [`Value`] | a value of the kernel; has the operators of Rust |
    //! | [`MemoryRef`] | a tensor argument |
    //! | [`symbols`], [`Symbol`] | named integers: dimensions, tile sizes |
    //! | [`SymExpr`] | an expression over them, such as `m / 2` |
    //! | [`workgroup`], [`tile`], [`wave`] | which part of a dimension a workgroup, an iteration, a wave takes |
    //! | [`assume_divisible`], [`assume_at_least`] | what is promised of a dynamic size |
    //! | [`Constraint`], [`HardwareConstraint`] | what these make, and what follows from them for waves |
    //! | [`DType`]: [`F16`], [`Bf16`], [`F32`], [`I8`], [`I32`] | element types of kernels |
    //! | [`f16`](struct@f16), [`bf16`] | 16-bit floats as Rust values |
    //! | [`AddressSpace`]: [`Global`], [`Shared`] | read a memory directly, or by way of LDS |
    //! | [`Mma`] | matrix instructions |
    //! | [`UnaryOp`], [`BinaryOp`] | arithmetic as data |
    //! | [`Control`]: [`WorkgroupBarrier`], [`ConditionalBarrier`], [`SchedulingBarrier`], [`SetWavePriority`], [`WaitForLoads`] | orders to waves, for kernels that schedule themselves |
    //! | [`WaveCondition`], [`WaveBound`] | which waves a conditional barrier holds |
    //!
    //! | to compile it | |
    //! | --- | --- |
    //! | [`Options`], [`SetBy`] | target, sizes, schedule, limits; who set a size |
    //! | [`Target`], [`TargetId`], [`FeatureSetting`] | the chip, and the modes that it is in |
    //! | [`Deny`] | what must not happen: spills, bank conflicts |
    //! | [`Schedule`] | how loops run |
    //! | [`GlobalToShared`], [`KernargPreload`], [`ObjectVersion`], [`DebugInfo`] | how tiles come into LDS, who loads arguments, what the object says |
    //! | [`Executable`] | the result: code object, launch data, report |
    //! | [`Diagnostic`], [`Diagnostics`], [`Location`] | what is wrong, where, why, and a way out |
    //!
    //! | to run and check it | |
    //! | --- | --- |
    //! | [`Device`] | where kernels run; the built-in simulator |
    //! | [`Buffer`] | memory of a device |
    //! | [`ScalarValue`] | the value of a scalar argument |
    //! | [`Tensor`], [`Interpreter`] | whole tensors on the host, and what a kernel means for them |
    //! | [`check`] | comparing a device's result with the interpreter's |
    //!
    //! | to write a schedule | |
    //! | --- | --- |
    //! | [`WaveSchedule`], [`ScheduleTracer`] | a schedule, traced from a closure |
    //! | [`Nodes`], [`NodeType`] | operations picked by tag and kind |
    //! | [`PipelinedLoop`], [`PipelineStage`], [`Cluster`], [`Interleave`] | what is done with them |
    //! | [`Directive`]: [`SharedMemoryBarrier`] | what a schedule puts between them |
    //! | [`ScheduleTable`] | the cycle of every operation, as a file |

    pub use crate::codegen::target::{FeatureSetting, ObjectVersion, Target, TargetId};
    pub use crate::float16::{bf16, f16};
    pub use crate::ir::builder::{MemoryRef, Tracer, Value};
    pub use crate::ir::constraint::{Constraint, assume_at_least, assume_divisible, tile, wave, workgroup};
    pub use crate::ir::control::HardwareConstraint;
    pub use crate::ir::diagnostic::{Diagnostic, Diagnostics, Location};
    pub use crate::ir::expr::{SymExpr, Symbol, symbols};
    pub use crate::ir::interpreter::{Interpreter, Tensor};
    pub use crate::ir::kernel::Kernel;
    pub use crate::ir::layout::Mma;
    pub use crate::ir::node::Control::{
        self, ConditionalBarrier, SchedulingBarrier, SetWavePriority, WaitForLoads, WorkgroupBarrier,
    };
    pub use crate::ir::node::{BinaryOp, UnaryOp, WaveBound, WaveCondition};
    pub use crate::ir::schedule::Directive::{self, SharedMemoryBarrier};
    pub use crate::ir::schedule::table::ScheduleTable;
    pub use crate::ir::schedule::{
        Cluster, Interleave, NodeType, Nodes, PipelineStage, PipelinedLoop, ScheduleTracer, WaveSchedule,
    };
    pub use crate::ir::types::AddressSpace::{self, Global, Shared};
    pub use crate::ir::types::DType::{self, Bf16, F16, F32, I8, I32};
    pub use crate::passes::options::{
        DebugInfo, Deny, GlobalToShared, KernargPreload, Options, Schedule, SetBy,
    };
    pub use crate::runtime::buffer::Buffer;
    pub use crate::runtime::check;
    pub use crate::runtime::device::Device;
    pub use crate::runtime::executable::Executable;
    pub use crate::runtime::launch::ScalarValue;
}
