//! Pages of the public face that gather what several rooms hold. The other pages are rooms themselves, named
//! in `lib.rs`; what neither names is private.

#[cfg(feature = "compiler")]
pub mod author {
    //! What a kernel is written with, beside the names that the [`prelude`](crate::prelude) explains: the
    //! types that its functions take and give.
    //!
    //! A kernel is traced from a closure over a [`Tracer`], or parsed from [text](crate::text):
    //!
    //! ```
    //! use groundswell::author::{Constraint, DType, Kernel};
    //! let kernel = Kernel::parse("kernel fill {\n  workgroup M, 64, 0\n  a = memory [M] global f32\n  \
    //!     %one = register [M] f32 1.0\n  write %one, a\n}", "fill.gsw")?;
    //! assert_eq!(kernel.name(), "fill");
    //! # Ok::<(), groundswell::prelude::Diagnostics>(())
    //! ```

    pub use crate::float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0};
    pub use crate::float16::{bf16, f16};
    pub use crate::ir::builder::{MemoryRef, Tracer, Value, ValueOperand};
    pub use crate::ir::constraint::{
        Constraint, Reordering, assume_at_least, assume_at_most, assume_divisible, cached_order, grid_size,
        grouped_order, iteration_of, iterations, iterations_by, reorder, tile, wave, workgroup, workgroup_id,
        xcd_order,
    };
    pub use crate::ir::control::{HardwareConstraint, WaveId, WavesPerBlock};
    pub use crate::ir::coordinates::{Coordinate, IntoCoordinates};
    pub use crate::ir::derived_reductions::TopElement;
    pub use crate::ir::expr::{ParseError, ParseErrorKind, SymExpr, Symbol, symbols};
    pub use crate::ir::kernel::Kernel;
    pub use crate::ir::layout::{MatrixShape, Mma, MmaType};
    pub use crate::ir::op::{
        AtomicOp, BinaryOp, CodeForm, Control, Conversion, Decoding, Predicate, Reduction, ReductionOp, Scan,
        ScanOp, Sort, SortOp, TernaryOp, UnaryOp, WaveBound, WaveCondition,
    };
    pub use crate::ir::reduced_dims::ReducedDims;
    pub use crate::ir::types::{AddressSpace, DType};
    pub use crate::small_float::{f4e2m1, f6e2m3, f6e3m2};
}

#[cfg(feature = "compiler")]
pub mod compile {
    //! From a kernel to a code object: what [`Kernel::compile`](crate::author::Kernel::compile) gives, the
    //! same without the cache, and a compilation looked at step by step.
    //!
    //! ```
    //! use groundswell::compile::{Verify, compile_uncached};
    //! use groundswell::kernels::Gemm;
    //! use groundswell::prelude::*;
    //! let gemm = Gemm::new(64, 64, 32);
    //! let options = gemm.options(Target::GFX942);
    //! let executable = compile_uncached(&gemm.kernel()?, &options, Verify::AfterEachPass)?;
    //! assert!(executable.report().instructions > 0);
    //! # Ok::<(), Diagnostic>(())
    //! ```

    pub use crate::passes::PIPELINE;
    pub use crate::passes::workspace::Verify;
    pub use crate::runtime::bundle::Bundle;
    pub use crate::runtime::compile::{
        FoundLoop, MACHINE_PASSES, SEARCHED_SCHEDULES, SearchedSchedule, compile_uncached, fitting_options,
        kernel_with_reasons, machine_code_after, machine_code_with_reasons, search_schedule,
    };
    pub use crate::runtime::compiled::{link, listing, relocatable};
    pub use crate::runtime::executable::{BoundsCheck, Executable, Parameter, Size};
    pub use crate::runtime::schedule_view::{ScheduleView, schedule_of};
}

#[cfg(feature = "compiler")]
pub mod mapping {
    //! Task mappings: which worker does which tasks in which order. [`spatial`] gives each task a worker of
    //! its own, [`repeat`] gives one worker all of them, and products put one mapping inside another.
    //!
    //! ```
    //! use groundswell::mapping::{MappingError, repeat};
    //! // A tile of 128 x 8 elements, by 128 work-items.
    //! let tile = repeat([8, 1]).spatial([16, 8]);
    //! for worker in 0..tile.workers()? {
    //!     for [i, k] in tile.on(worker)? {
    //!         assert_eq!((i % 16, k), (worker / 8, worker % 8));
    //!     }
    //! }
    //! # Ok::<(), MappingError>(())
    //! ```

    pub use crate::ir::layout::MmaConfig;
    pub use crate::ir::layout::task_mapping::{
        LinearForm, MappingError, TaskMapping, auto_map, col_repeat, col_spatial, predicated_auto_map,
        repeat, spatial,
    };
    pub use crate::ir::task_lowering::LoweredTasks;
}

pub mod device {
    //! Where kernels run: devices, their memory, and launches.

    pub use crate::float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0};
    pub use crate::float16::{bf16, f16};
    pub use crate::ir::expr::Symbol;
    pub use crate::ir::types::DType;
    pub use crate::runtime::buffer::{Buffer, DeviceElement};
    pub use crate::runtime::device::{Device, GpuInfo};
    pub use crate::runtime::executable::{BoundsCheck, Executable, Parameter, Size};
    pub use crate::runtime::interop::{DLDataType, DLDevice, DLManagedTensor, DLTensor};
    pub use crate::runtime::launch::{Launch, LaunchResult, ScalarValue};
    pub use crate::runtime::logs::LoggedTensor;
    pub use crate::runtime::stream::{Download, Event, Stream};
}
