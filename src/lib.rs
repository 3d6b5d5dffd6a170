//! Groundswell compiles tile-level GPU kernels to AMD CDNA machine code inside the calling process, in about a millisecond: no LLVM, no
//! MLIR, no Python, no ROCm toolchain.
//!
//! A kernel is written over whole tensors with symbolic shapes; constraints, kept apart, say how it is spread over the machine.
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
#![warn(missing_docs)]
#![deny(unsafe_code)]

pub mod codegen;
pub mod float16;
pub mod ir;
pub mod kernels;
pub mod passes;
pub mod runtime;
mod workers;

/// Everything that writing, compiling and running a kernel takes.
pub mod prelude {
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
    pub use crate::ir::schedule::{
        Cluster, Interleave, NodeType, Nodes, PipelineStage, PipelinedLoop, ScheduleTracer, WaveSchedule,
    };
    pub use crate::ir::types::AddressSpace::{self, Global, Shared};
    pub use crate::ir::types::DType::{self, Bf16, F16, F32, I8, I32};
    pub use crate::passes::options::{
        DebugInfo, Deny, GlobalToShared, KernargPreload, Options, Schedule, SetBy,
    };
    pub use crate::passes::schedule::table::ScheduleTable;
    pub use crate::runtime::buffer::Buffer;
    pub use crate::runtime::check;
    pub use crate::runtime::device::Device;
    pub use crate::runtime::executable::Executable;
}
