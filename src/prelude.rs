//! Everything that writing, compiling and running a kernel takes.
//!
//! | to write a kernel | |
//! | --- | --- |
//! | [`Kernel`] | a kernel: traced from a closure, or parsed from text; printed, it is its text |
//! | [`Tracer`] | what the closure is given: memories, scalars, registers, loops, arithmetic |
//! | [`Value`] | a value of the kernel; has the operators of Rust |
//! | [`TopElement`] | one of the largest elements along a dimension |
//! | [`MemoryRef`] | a tensor argument |
//! | [`symbols`], [`Symbol`] | named integers: dimensions, tile sizes |
//! | [`MemoryLayout`] | where the elements of one with strides are |
//! | [`SymExpr`] | an expression over them, such as `m / 2` |
//! | [`Coordinate`], [`IntoCoordinates`] | where in a memory an element of a value is, for mapped accesses |
//! | [`workgroup`], [`tile`], [`wave`] | which part of a dimension a workgroup, an iteration, a wave takes |
//! | [`iterations`], [`iterations_by`] | which iterations loops run |
//! | [`persistent`] | how many workgroups share all tiles |
//! | [`emulate`] | in which dtype products of block floats are taken where the chip has none |
//! | [`cached_order`], [`grouped_order`], [`xcd_order`], [`reorder`], [`Reordering`] | who has which tile |
//! | [`workgroup_id`], [`grid_size`] | places in the grid, for orders and iterations |
//! | [`iteration_of`] | the iteration of a loop around, for iterations |
//! | [`assume_divisible`], [`assume_at_least`], [`assume_at_most`] | what is promised of a dynamic size |
//! | [`Constraint`], [`HardwareConstraint`] | what these make, and what follows from them for waves |
//! | [`DType`]: [`F16`], [`Bf16`], [`F32`], [`F64`] | element types of kernels: floats |
//! | [`I8`], [`I16`], [`I32`], [`I64`] | integers |
//! | [`F8E4M3Fnuz`], [`F8E5M2Fnuz`], [`F8E4M3Fn`], [`F8E5M2`], [`F8E8M0`] | those with 8-bit floats |
//! | [`F4E2M1`] | that of 4-bit floats, two in a byte |
//! | [`F6E2M3`], [`F6E3M2`] | those of 6-bit floats, 32 in six words |
//! | [`f16`](struct@f16), [`bf16`] | 16-bit floats as Rust values |
//! | [`f8e4m3fnuz`], [`f8e5m2fnuz`], [`f8e4m3fn`], [`f8e5m2`], [`f8e8m0`] | 8-bit floats as Rust values |
//! | [`f4e2m1`], [`f6e2m3`], [`f6e3m2`] | 4-bit and 6-bit floats as Rust values |
//! | [`AddressSpace`]: [`Global`], [`Shared`] | read a memory directly, or by way of LDS |
//! | [`Mma`], [`MatrixShape`], [`MmaType`] | matrix instructions |
//! | [`UnaryOp`], [`BinaryOp`], [`TernaryOp`], [`Predicate`], [`ReductionOp`] | arithmetic as data |
//! | [`AtomicOp`] | what an atomic update leaves in a memory |
//! | [`Control`] | orders to waves, for kernels that schedule themselves |
//! | [`WorkgroupBarrier`], [`ConditionalBarrier`] | orders to wait for the other waves |
//! | [`SchedulingBarrier`], [`SetWavePriority`] | orders that do not wait |
//! | [`InterleaveByCost`], [`SkipUnitFactors`] | orders by cost, and branches around products |
//! | [`WaitForLoads`], [`WaitForShared`] | orders to wait for the wave's own accesses |
//! | [`WaveCondition`], [`WaveBound`] | which waves a conditional barrier holds |
//!
//! | to compile it | |
//! | --- | --- |
//! | [`Options`], [`SetBy`] | target, sizes, schedule, limits; who set a size |
//! | [`Target`], [`TargetId`], [`FeatureSetting`] | the chip, and the modes that it is in |
//! | [`Deny`] | what must not happen: spills, bank conflicts, split accesses, results that vary |
//! | [`Schedule`] | how loops run |
//! | [`GlobalToShared`], [`KernargPreload`] | how tiles come into LDS, who loads arguments |
//! | [`UnitFactors`] | how sums are multiplied with factors that are one most of the time |
//! | [`MaskedTiles`] | whether loops visit tiles that are masked entirely |
//! | [`ObjectVersion`], [`DebugInfo`] | what the object says |
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
pub use crate::float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0};
pub use crate::float16::{bf16, f16};
pub use crate::ir::builder::{MemoryRef, Tracer, Value};
pub use crate::ir::constraint::{
    Constraint, Reordering, assume_at_least, assume_at_most, assume_divisible, cached_order, emulate,
    grid_size, grouped_order, iteration_of, iterations, iterations_by, persistent, reorder, tile, wave,
    workgroup, workgroup_id, xcd_order,
};
pub use crate::ir::control::HardwareConstraint;
pub use crate::ir::coordinates::{Coordinate, IntoCoordinates};
pub use crate::ir::derived_reductions::TopElement;
pub use crate::ir::diagnostic::{Diagnostic, Diagnostics, Location};
pub use crate::ir::expr::{SymExpr, Symbol, symbols};
pub use crate::ir::interpreter::{Interpreter, Tensor};
pub use crate::ir::kernel::Kernel;
pub use crate::ir::layout::{MatrixShape, Mma, MmaType};
pub use crate::ir::memory_layout::MemoryLayout;
pub use crate::ir::op::Control::{
    self, ConditionalBarrier, InterleaveByCost, SchedulingBarrier, SetWavePriority, SkipUnitFactors,
    WaitForLoads, WaitForShared, WorkgroupBarrier,
};
pub use crate::ir::op::{
    AtomicOp, BinaryOp, Predicate, ReductionOp, TernaryOp, UnaryOp, WaveBound, WaveCondition,
};
pub use crate::ir::schedule::Directive::{self, SharedMemoryBarrier};
pub use crate::ir::schedule::table::ScheduleTable;
pub use crate::ir::schedule::{
    Cluster, Interleave, NodeType, Nodes, PipelineStage, PipelinedLoop, ScheduleTracer, WaveSchedule,
};
pub use crate::ir::types::AddressSpace::{self, Global, Shared};
pub use crate::ir::types::DType::{
    self, Bf16, F4E2M1, F6E2M3, F6E3M2, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, F16, F32, F64, I8,
    I16, I32, I64,
};
pub use crate::passes::options::{
    DebugInfo, Deny, GlobalToShared, KernargPreload, MaskedTiles, Options, Schedule, SetBy, UnitFactors,
};
pub use crate::runtime::buffer::Buffer;
pub use crate::runtime::check;
pub use crate::runtime::device::Device;
pub use crate::runtime::executable::Executable;
pub use crate::runtime::launch::ScalarValue;
pub use crate::small_float::{f4e2m1, f6e2m3, f6e3m2};
