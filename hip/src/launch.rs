//! Launches: arguments are laid out as the kernel's metadata says, and the kernel runs to its end.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::time::Instant;

use groundswell::object::{ArgumentKind, KernelMetadata};
use groundswell::simulator::time::{DeviceModel, TimeOptions};
use groundswell::simulator::{
    CheckOptions, FaultKind, FindingKind, LaunchConfig, Memory, SimError, Simulator, TouchedBytes,
};

use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{Dim3, In, exports, host_bytes};
use crate::handles::Handle;
use crate::heap;
use crate::host_calls;
use crate::modules::LoadedFunction;
use crate::occupancy;
use crate::operations::{Operation, submit};
use crate::order::HostThen;
use crate::progress::Showing;
use crate::registration;
use crate::runtime::{Mode, Runtime, runtime};
use crate::space::MemoryKind;
use crate::streams::record_now;

/// The shape of a launch.
#[derive(Copy, Clone)]
pub(crate) struct Shape {
    /// Workgroups, partial ones included.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Work-items of the last, partial workgroups.
    pub remainder: [u32; 3],
    pub dynamic_lds: usize,
}

/// How workgroups of a launch depend on each other.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Residency {
    /// They do not.
    Independent,
    /// All of them have to be on the device at the same time.
    Cooperative,
}

/// A kernel with its arguments, ready to be launched as often as one likes.
pub(crate) struct KernelCall {
    pub function: Arc<LoadedFunction>,
    /// What the program calls the kernel.
    pub host: u64,
    pub shape: Shape,
    residency: Residency,
    /// The explicit arguments.
    segment: Box<[u8]>,
    /// Where each of them is, for programs that ask.
    pointers: Box<[u64]>,
}

/// A launch that was found to be in order.
#[derive(Copy, Clone)]
struct KernelLaunch<'a> {
    function: &'a LoadedFunction,
    config: LaunchConfig,
    /// The explicit arguments.
    segment: &'a [u8],
}

/// Where a launch has its arguments.
#[derive(Copy, Clone)]
pub(crate) enum Arguments {
    /// A pointer to each.
    Pointers(In<u64>),
    /// All in one buffer.
    Buffer { address: u64, bytes: usize },
}

/// The most blocks along y and z (hipamd/src/hip_module.cpp of 6.4.3).
const MOST_BLOCKS: u32 = 65_536;

/// The markers in `extra` (`HIP_LAUNCH_PARAM_*`).
const BUFFER_POINTER: u64 = 1;
const BUFFER_SIZE: u64 = 2;
const END: u64 = 3;

impl Arguments {
    /// What a module launch is given: exactly one of the two.
    pub(crate) fn new(pointers: In<u64>, extra: In<u64>, kernel: &KernelMetadata) -> HipResult<Arguments> {
        match (pointers.address() != 0, extra.address() != 0) {
            (true, true) => Err(invalid("arguments are given twice: as pointers and in a buffer")),
            (true, false) => Ok(Arguments::Pointers(pointers)),
            (false, false) if explicit(kernel).next().is_none() => Ok(Arguments::Pointers(pointers)),
            (false, false) => Err(invalid(format!("kernel `{}` is given no arguments", kernel.name))),
            (false, true) => {
                let [first, address, second, size, end] =
                    [0, 1, 2, 3, 4].map(|at| extra.after(at).get().unwrap_or_default());
                if [first, second, end] != [BUFFER_POINTER, BUFFER_SIZE, END] || size == 0 {
                    return Err(invalid(
                        "`extra` is not { BUFFER_POINTER, buffer, BUFFER_SIZE, &size, END } in this order",
                    ));
                }
                // SAFETY: the caller passes a pointer to a `size_t` after BUFFER_SIZE.
                let size = unsafe { host_bytes(size, 8) };
                let bytes = size.iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
                Ok(Arguments::Buffer { address, bytes: bytes as usize })
            }
        }
    }

    /// The bytes of the explicit arguments as the kernel's segment has them.
    fn segment(self, kernel: &KernelMetadata) -> HipResult<Vec<u8>> {
        let end = explicit(kernel).map(|argument| argument.offset + argument.size).max().unwrap_or(0);
        let mut segment = vec![0; end as usize];
        for (number, argument) in explicit(kernel).enumerate() {
            let place = &mut segment[argument.offset as usize..][..argument.size as usize];
            let address = match self {
                Arguments::Pointers(pointers) => pointers.after(number).value()?,
                Arguments::Buffer { address, bytes } => {
                    if bytes < (argument.offset + argument.size) as usize {
                        return Err(invalid(format!(
                            "the buffer of arguments has {bytes} bytes, and argument {number} of `{}` ends at byte {}",
                            kernel.name,
                            argument.offset + argument.size
                        )));
                    }
                    address + u64::from(argument.offset)
                }
            };
            if address == 0 {
                return Err(invalid(format!(
                    "the pointer to argument {number} of `{}` is null",
                    kernel.name
                )));
            }
            // SAFETY: the caller passes a pointer to a value of the argument's size.
            place.copy_from_slice(unsafe { host_bytes(address, place.len()) });
        }
        Ok(segment)
    }
}

/// The arguments that the author declares; others are filled in.
fn explicit(kernel: &KernelMetadata) -> impl Iterator<Item = &groundswell::object::ArgumentInfo> {
    let is_hidden =
        |kind: &ArgumentKind| matches!(kind, ArgumentKind::Other(name) if name.starts_with("hidden_"));
    kernel.arguments.iter().filter(move |argument| !is_hidden(&argument.kind))
}

impl Shape {
    pub(crate) fn new(grid: [u32; 3], block: [u32; 3], dynamic_lds: usize) -> Shape {
        Shape { grid, block, remainder: [0; 3], dynamic_lds }
    }

    /// A grid in work-items.
    fn of_items(items: [u32; 3], block: [u32; 3], dynamic_lds: usize) -> Shape {
        let config = LaunchConfig::items(items, block);
        Shape { grid: config.grid, block, remainder: config.remainder, dynamic_lds }
    }

    /// What HIP refuses before the device sees it (hipamd/src/hip_module.cpp of 6.4.3).
    fn check(&self, runtime: &Runtime, kernel: &KernelMetadata) -> HipResult {
        let target = runtime.target.target();
        if self.block.contains(&0) {
            return Err(HipError::new(Code::InvalidConfiguration, format!("the block is {:?}", self.block)));
        }
        if self.grid.contains(&0) {
            return Err(invalid(format!("the grid is {:?}", self.grid)));
        }
        let items = self.block.iter().fold(1u64, |all, &size| all.saturating_mul(size.into()));
        if items > u64::from(target.max_workgroup_size) {
            return Err(invalid(format!(
                "{items} work-items in a block, and the chip takes {}",
                target.max_workgroup_size
            )));
        }
        if items > u64::from(kernel.workgroup_size.max()) {
            let reason = format!(
                "{items} work-items in a block, and `{}` was compiled for {} (__launch_bounds__)",
                kernel.name,
                kernel.workgroup_size.max()
            );
            return Err(HipError::new(Code::LaunchFailure, reason));
        }
        if self.grid[1..].iter().any(|&size| size > MOST_BLOCKS) {
            let reason = format!("{:?} blocks are more than {MOST_BLOCKS} along y or z", self.grid);
            return Err(HipError::new(Code::InvalidConfiguration, reason));
        }
        if self.grid.iter().zip(&self.block).any(|(&grid, &block)| grid.checked_mul(block).is_none()) {
            let reason = format!("{:?} blocks of {:?} are too many work-items", self.grid, self.block);
            return Err(HipError::new(Code::InvalidConfiguration, reason));
        }
        let lds = self.dynamic_lds.saturating_add(kernel.group_segment_fixed_size as usize);
        if lds > target.max_lds_per_workgroup as usize {
            return Err(invalid(format!(
                "{lds} bytes of LDS, and a workgroup has {}",
                target.max_lds_per_workgroup
            )));
        }
        Ok(())
    }
}

impl KernelCall {
    /// A kernel with a copy of its arguments.
    ///
    /// # Errors
    /// The shape or the arguments do not fit.
    pub(crate) fn new(
        function: Arc<LoadedFunction>,
        host: u64,
        shape: Shape,
        residency: Residency,
        arguments: Arguments,
    ) -> HipResult<KernelCall> {
        let runtime = runtime()?;
        let kernel = function.metadata()?;
        shape.check(runtime, kernel)?;
        if residency == Residency::Cooperative {
            check_resident(runtime, &function, &shape)?;
        }
        let segment: Box<[u8]> = arguments.segment(kernel)?.into();
        let start = segment.as_ptr() as u64;
        let pointers = explicit(kernel).map(|argument| start + u64::from(argument.offset)).collect();
        Ok(KernelCall { function, host, shape, residency, segment, pointers })
    }

    /// A pointer to each argument, for as long as the call lives.
    pub(crate) fn pointers(&self) -> In<u64> {
        In::to(&self.pointers)
    }
}

/// An error unless the device holds all workgroups at the same time.
fn check_resident(runtime: &Runtime, function: &LoadedFunction, shape: &Shape) -> HipResult {
    let groups = shape.grid.iter().fold(1u64, |all, &size| all.saturating_mul(size.into()));
    let most = occupancy::resident(runtime, function, shape.block.iter().product(), shape.dynamic_lds)?;
    if groups <= most {
        return Ok(());
    }
    let reason = format!(
        "a cooperative launch of {groups} workgroups of `{}`, and the device holds {most} at the same time",
        function.name
    );
    Err(HipError::new(Code::CooperativeLaunchTooLarge, reason))
}

impl Runtime {
    /// Runs a kernel.
    ///
    /// # Errors
    /// The shape or the arguments do not fit, or the kernel fails; the latter is also printed, as nobody
    /// looks at errors of launches.
    pub(crate) fn launch(&self, call: &KernelCall, stream: Handle) -> HipResult {
        self.check_for_fault()?;
        self.count_launch();
        let KernelCall { function, shape, segment, residency, .. } = call;
        let (function, kernel) = (&**function, function.metadata()?);
        let wants_heap = kernel.arguments.iter().any(|argument| argument.kind.name() == "hidden_heap_v1");
        let heap = if wants_heap { heap::for_launch(self)? } else { 0 };
        let calls = host_calls::for_launch(self, kernel)?;
        let config =
            LaunchConfig { remainder: shape.remainder, ..LaunchConfig::new(shape.grid, shape.block) }
                .dynamic_lds(shape.dynamic_lds as u32)
                .host_calls(calls)
                .heap(heap)
                .limits(self.settings.limits)
                .order(self.settings.order)
                .time_spent(self.spent());
        let sync = match residency {
            Residency::Independent => None,
            Residency::Cooperative => Some(self.grid_sync(shape)?),
        };
        let config = config.cooperative(sync.unwrap_or(0));
        let showing = self.settings.progress.then(|| Showing::start(&function.name)).flatten();
        let config = showing.iter().fold(config, |config, showing| config.progress(showing.progress()));
        let begin = Instant::now();
        let launch = KernelLaunch { function, config, segment };
        let result = match self.settings.mode {
            Mode::Run => self.run(&self.simulator(), &launch),
            Mode::Check => {
                let used = self.check(&self.simulator(), &launch);
                let name = || format!("kernel `{}`", function.name);
                used.map(|used| self.note(stream, HostThen::GoesOn, || (name(), used)))
            }
            Mode::Time => self.time(&self.simulator(), &launch),
        };
        self.spend(begin.elapsed());
        drop(showing);
        host_calls::finish(calls);
        if let Some(structure) = sync {
            self.simulator_to_change().free(structure)?;
        }
        let result = result.map_err(|error| {
            let code = match &error {
                SimError::Fault(fault) => match fault.kind {
                    FaultKind::Memory { .. } | FaultKind::Freed { .. } => Code::IllegalAddress,
                    FaultKind::TimedOut(_) | FaultKind::Budget(_) | FaultKind::Standstill(_) => {
                        Code::LaunchTimeOut
                    }
                    _ => Code::LaunchFailure,
                },
                _ => HipError::from(error.clone()).code,
            };
            let text = match &error {
                SimError::Fault(fault) => match fault.kind {
                    FaultKind::Freed { address, .. } => format!("{error}{}", self.explain_freed(address)),
                    _ => error.to_string(),
                },
                _ => error.to_string(),
            };
            if matches!(error, SimError::Fault(_)) {
                eprintln!("groundswell: {text}");
                self.fail(code);
            }
            self.report.failed(&function.name, &text);
            HipError::new(code, text)
        });
        // What check mode has found is an error of the launch as well, as it is in run mode.
        result.and_then(|()| self.check_for_fault())
    }

    /// What the workgroups of a cooperative launch wait for each other with: one grid of so many workgroups
    /// (ROCm device libraries, `ockl/src/cg.cl`, `mg_info`; older ones use a barrier of the hardware and look
    /// at the address alone).
    fn grid_sync(&self, shape: &Shape) -> HipResult<u64> {
        const BYTES: usize = 64;
        const GRIDS: usize = 12;
        const ALL_ITEMS: usize = 24;
        const WORKGROUPS: usize = 40;
        let count = |sizes: [u32; 3]| sizes.iter().map(|&size| u64::from(size)).product::<u64>();
        let groups = count(shape.grid);
        let mut structure = [0; BYTES];
        structure[GRIDS..][..4].copy_from_slice(&1u32.to_le_bytes());
        structure[ALL_ITEMS..][..8].copy_from_slice(&(groups * count(shape.block)).to_le_bytes());
        structure[WORKGROUPS..][..4].copy_from_slice(&(groups as u32).to_le_bytes());
        let mut simulator = self.simulator_to_change();
        let address = simulator.alloc(BYTES as u64)?;
        simulator.write(address, &structure)?;
        Ok(address)
    }

    /// What is known of memory that was freed: how it was allocated, and who gave it back.
    fn explain_freed(&self, address: u64) -> String {
        self.space.find_freed(address).map_or_else(String::new, |freed| {
            format!("; it was {} bytes of {}, and {}", freed.block.bytes, freed.block.kind, freed.by)
        })
    }

    /// Runs a kernel as fast as it goes.
    fn run(&self, simulator: &Simulator, kernel: &KernelLaunch<'_>) -> Result<(), SimError> {
        let KernelLaunch { function, config, segment } = *kernel;
        let stats = simulator.launch(&function.module.module, &function.name, config, segment)?;
        self.report.ran(&function.name, &config, &stats);
        Ok(())
    }

    /// Runs a kernel in check mode; returns what memory it has used. What hardware would have stopped at
    /// becomes the device's error.
    fn check(&self, simulator: &Simulator, kernel: &KernelLaunch<'_>) -> Result<TouchedBytes, SimError> {
        let KernelLaunch { function, config, segment } = *kernel;
        let options = CheckOptions { seed: self.settings.seed };
        let checked = simulator.check(&function.module.module, &function.name, config, segment, &options)?;
        let is_private =
            |address| self.space.find(address).is_some_and(|block| block.kind == MemoryKind::Device);
        self.report.checked(&function.name, &config, &checked, is_private, |finding| match finding.kind {
            FindingKind::Freed { address, .. } => self.explain_freed(address),
            _ => String::new(),
        });
        for finding in &checked.findings {
            match finding.kind {
                // Hardware does not stop at what lies in the last page of an allocation.
                FindingKind::OutOfBounds { memory: Memory::Device, address, bytes, base, .. }
                    if self.space.has_page(base, address, bytes) => {}
                FindingKind::OutOfBounds { memory: Memory::Device, .. } | FindingKind::Freed { .. } => {
                    self.fail(Code::IllegalAddress);
                }
                FindingKind::Trap { .. }
                | FindingKind::IllegalInstruction
                | FindingKind::Unsupported { .. } => self.fail(Code::LaunchFailure),
                FindingKind::Endless { .. } | FindingKind::TimedOut { .. } => self.fail(Code::LaunchTimeOut),
                _ => {}
            }
        }
        Ok(checked.touched)
    }

    /// Times a kernel on a copy of the device's memory, because time mode runs some of the workgroups, and
    /// then runs it. Of what the host writes meanwhile the copy sees at most the first, so a launch that
    /// waits for the host, or for workgroups on other compute units, has no time.
    fn time(&self, simulator: &Simulator, kernel: &KernelLaunch<'_>) -> Result<(), SimError> {
        let KernelLaunch { function, config, segment } = *kernel;
        let begun = Instant::now();
        let is_cooperative = config.grid_sync != 0;
        if is_cooperative {
            self.report
                .untimed(&function.name, "its workgroups wait for each other, and one compute unit is timed");
        }
        if let Some(model) = DeviceModel::of(self.target.target()).filter(|_| !is_cooperative) {
            let copy = simulator.copy(|address| address == config.host_calls)?;
            let options = TimeOptions::new(model);
            // What kernels print is printed by the real launch.
            let timed = host_calls::silently(|| {
                copy.time(&function.module.module, &function.name, config, segment, &options)
            });
            match timed {
                Ok(timed) => {
                    let begin = self.clock();
                    self.pass(timed.estimate.microseconds_with_launch);
                    self.report.timed(&function.name, begin, &timed);
                }
                Err(SimError::Fault(fault)) if comes_to_no_end(&fault.kind) => {
                    self.report.untimed(&function.name, &fault.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        // Both count towards the limit.
        let config = config.time_spent(config.time_spent + begun.elapsed());
        self.run(simulator, &KernelLaunch { config, ..*kernel })
    }
}

/// True if waves were stopped that went on for too long.
fn comes_to_no_end(kind: &FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::Budget(_) | FaultKind::TimedOut(_) | FaultKind::Standstill(_) | FaultKind::NoProgress
    )
}

fn launch_registered(
    host: u64,
    grid: Dim3,
    block: Dim3,
    arguments: In<u64>,
    lds: usize,
    stream: Handle,
) -> HipResult {
    let runtime = runtime()?;
    let function = registration::function(runtime, host)?;
    let shape = Shape::new(grid.sizes(), block.sizes(), lds);
    let call =
        KernelCall::new(function, host, shape, Residency::Independent, Arguments::Pointers(arguments))?;
    submit(stream, Operation::Kernel(Arc::new(call)))
}

fn launch_function(
    function: Handle,
    shape: Shape,
    stream: Handle,
    pointers: In<u64>,
    extra: In<u64>,
) -> HipResult {
    let host = function;
    let function = runtime()?.functions.get(function)?;
    let arguments = Arguments::new(pointers, extra, function.metadata()?)?;
    let call = KernelCall::new(function, host, shape, Residency::Independent, arguments)?;
    submit(stream, Operation::Kernel(Arc::new(call)))
}

/// A launch whose workgroups are all on the device at the same time.
fn launch_cooperative(
    function: HipResult<Arc<LoadedFunction>>,
    host: u64,
    shape: Shape,
    arguments: In<u64>,
    stream: Handle,
) -> HipResult {
    let call =
        KernelCall::new(function?, host, shape, Residency::Cooperative, Arguments::Pointers(arguments))?;
    submit(stream, Operation::Kernel(Arc::new(call)))
}

/// Records the events of a launch in a stream that the caller asks for, before and after it.
fn record(events: [Handle; 2], stream: Handle, launch: impl FnOnce() -> HipResult) -> HipResult {
    let record = |event: Handle| match event {
        0 => Ok(()),
        _ => record_now(runtime()?, event, stream),
    };
    record(events[0])?;
    launch()?;
    record(events[1])
}

exports! {
    fn hipLaunchKernel(
        host: u64,
        grid: Dim3,
        block: Dim3,
        arguments: In<u64>,
        lds: usize,
        stream: u64,
    ) also hipLaunchKernel_spt {
        launch_registered(host, grid, block, arguments, lds, stream)
    }

    fn hipExtLaunchKernel(
        host: u64,
        grid: Dim3,
        block: Dim3,
        arguments: In<u64>,
        lds: usize,
        stream: u64,
        start: Handle,
        stop: Handle,
        _flags: c_int,
    ) {
        record([start, stop], stream, || launch_registered(host, grid, block, arguments, lds, stream))
    }

    fn hipModuleLaunchKernel(
        function: Handle,
        gx: c_uint,
        gy: c_uint,
        gz: c_uint,
        bx: c_uint,
        by: c_uint,
        bz: c_uint,
        lds: c_uint,
        stream: u64,
        pointers: In<u64>,
        extra: In<u64>,
    ) {
        launch_function(
            function,
            Shape::new([gx, gy, gz], [bx, by, bz], lds as usize),
            stream,
            pointers,
            extra,
        )
    }

    fn hipExtModuleLaunchKernel(
        function: Handle,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        lds: usize,
        stream: u64,
        pointers: In<u64>,
        extra: In<u64>,
        start: Handle,
        stop: Handle,
        _flags: u32,
    ) also _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j {
        let shape = Shape::of_items([gx, gy, gz], [bx, by, bz], lds);
        record([start, stop], stream, || launch_function(function, shape, stream, pointers, extra))
    }

    fn _Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_(
        function: Handle,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        lds: usize,
        stream: u64,
        pointers: In<u64>,
        extra: In<u64>,
        start: Handle,
        stop: Handle,
    ) {
        let shape = Shape::of_items([gx, gy, gz], [bx, by, bz], lds);
        record([start, stop], stream, || launch_function(function, shape, stream, pointers, extra))
    }

    // It has no result, so nobody looks at this one.
    fn _ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv(
        host: u64,
        grid: In<Dim3>,
        block: In<Dim3>,
        lds: u32,
        stream: u64,
        arguments: In<u64>,
    ) {
        launch_registered(host, grid.value()?, block.value()?, arguments, lds as usize, stream)
    }

    fn hipLaunchCooperativeKernel(
        host: u64,
        grid: Dim3,
        block: Dim3,
        arguments: In<u64>,
        lds: c_uint,
        stream: u64,
    ) also hipLaunchCooperativeKernel_spt {
        let shape = Shape::new(grid.sizes(), block.sizes(), lds as usize);
        launch_cooperative(registration::function(runtime()?, host), host, shape, arguments, stream)
    }

    fn hipModuleLaunchCooperativeKernel(
        function: Handle,
        gx: c_uint,
        gy: c_uint,
        gz: c_uint,
        bx: c_uint,
        by: c_uint,
        bz: c_uint,
        lds: c_uint,
        stream: u64,
        arguments: In<u64>,
    ) {
        let shape = Shape::new([gx, gy, gz], [bx, by, bz], lds as usize);
        launch_cooperative(runtime()?.functions.get(function), function, shape, arguments, stream)
    }
}
