//! The parts of a launch before its first instruction: its checks, its kernel arguments, and the state that
//! each wave starts with.
//!
//! Initial registers follow LLVM's "User Guide for AMDGPU Backend", section "Initial Kernel Execution State".

use std::time::{Duration, Instant};

use crate::codegen::object::{DescriptorField, InitialSgprs, WorkgroupSize};
use crate::codegen::target::{Feature, MOST_WORKGROUPS, Occupancy, Target};

use super::error::{Fault, FaultKind, SimError, Stopped, StoppedWave};
use super::execute::{SCRATCH_OF_WAVES, WAVE_OFFSET, hardware_id, private_descriptor};
use super::kernarg;
use super::launch_config::LaunchConfig;
use super::memory::{DeviceAllocation, DeviceMemory, MemoryView};
use super::module::{LoadedKernel, Module};
use super::program::Program;
use super::progress::{LaunchProgress, Overrun};
use super::wave::{EXEC, LANES, PRIVATE_APERTURE, Progress, SHARED_APERTURE, Wave};

/// Where a launch has its kernel arguments, its dispatch packet and its queue: below all allocations.
const KERNARG_ADDRESS: u64 = 0x8000_0000;
const PACKET_ADDRESS: u64 = 0x4000_0000;
const QUEUE_ADDRESS: u64 = 0x2000_0000;
/// Kernel arguments have whole cache lines to themselves. Compilers rely on being able to load past their end
/// (LLVM, `AMDGPUSubtarget::getKernArgSegmentSize`: three dwords are loaded as four).
const KERNARG_LINE: u64 = 64;

/// Memory of one launch in addition to the host's allocations, and its kernel arguments.
pub(super) struct Segments {
    extra: [DeviceAllocation; 3],
    kernarg: Vec<u8>,
    size: LaunchSize,
}

/// What the checks of a launch find out.
#[derive(Copy, Clone)]
struct LaunchSize {
    /// MODE register.
    mode: u32,
    lds_bytes: u32,
    /// Scratch of a work-item.
    private_bytes: u32,
}

impl Segments {
    /// Checks a launch and lays out its own memory.
    pub(super) fn new(
        target: Target,
        kernel: &LoadedKernel,
        config: &LaunchConfig,
        arguments: &[u8],
    ) -> Result<Segments, SimError> {
        let refuse = |reason: String| SimError::Launch { kernel: kernel.name.clone(), reason };
        let size = check(target, kernel, config).map_err(refuse)?;
        let kernarg = kernarg::fill(kernel, config, arguments, QUEUE_ADDRESS).map_err(refuse)?;
        let packet = kernarg::packet(kernel, config, [size.lds_bytes, size.private_bytes], KERNARG_ADDRESS);
        let extra = [
            DeviceAllocation::with_contents(QUEUE_ADDRESS, &queue())?,
            DeviceAllocation::with_contents(PACKET_ADDRESS, &packet)?,
            DeviceAllocation::in_lines(KERNARG_ADDRESS, &kernarg, KERNARG_LINE)?,
        ];
        Ok(Segments { extra, kernarg, size })
    }

    /// Memory as the launch sees it.
    pub(super) fn view<'a>(&'a self, memory: &'a DeviceMemory) -> MemoryView<'a> {
        memory.view(&self.extra)
    }
}

/// The queue of a launch: zero, except for the upper halves of the apertures (LLVM, "User Guide for AMDGPU
/// Backend", "Flat Scratch" and "Queue Ptr").
fn queue() -> [u8; 256] {
    let mut queue = [0; 256];
    queue[0x40..0x44].copy_from_slice(&SHARED_APERTURE.to_le_bytes());
    queue[0x44..0x48].copy_from_slice(&PRIVATE_APERTURE.to_le_bytes());
    queue
}

/// Everything that the workgroups of a launch share.
pub(super) struct LaunchContext<'a> {
    pub kernel: &'a LoadedKernel,
    /// The step that a wave begins with.
    pub entry: usize,
    pub program: &'a Program,
    pub memory: &'a MemoryView<'a>,
    pub config: LaunchConfig,
    pub sgprs: InitialSgprs,
    kernarg: &'a [u8],
    packs_item_ids: bool,
    mode: u32,
    pub lds_bytes: u32,
    /// Bytes of scratch of a work-item.
    pub private_bytes: u32,
    /// Waves of a workgroup. The last ones of a partial workgroup have no work-items and end before they
    /// begin.
    pub waves: usize,
    /// When it has to be over.
    deadline: Option<Instant>,
    /// How far it is.
    progress: LaunchProgress,
}

impl<'a> LaunchContext<'a> {
    /// A launch of `kernel` of `module`, over `view` of the memory of `segments`.
    ///
    /// # Errors
    /// No instruction begins where the kernel does.
    pub(super) fn new(
        target: Target,
        module: &'a Module,
        kernel: &'a LoadedKernel,
        config: LaunchConfig,
        segments: &'a Segments,
        view: &'a MemoryView<'a>,
    ) -> Result<LaunchContext<'a>, SimError> {
        let items: usize = config.block.iter().map(|&n| n as usize).product();
        Ok(LaunchContext {
            kernel,
            entry: module.entry(kernel)?,
            program: module.program(kernel),
            memory: view,
            config,
            sgprs: kernel.descriptor.initial_sgprs(target),
            kernarg: &segments.kernarg,
            packs_item_ids: target.has(Feature::PackedWorkitemIds),
            mode: segments.size.mode,
            lds_bytes: segments.size.lds_bytes,
            private_bytes: segments.size.private_bytes,
            waves: items.div_ceil(LANES),
            // A limit beyond the clock's range is no limit.
            deadline: config
                .time_limit
                .and_then(|limit| Instant::now().checked_add(limit.saturating_sub(config.time_spent))),
            progress: LaunchProgress::new(),
        })
    }

    /// So many workgroups are about to be simulated.
    pub(super) fn begins(&self, workgroups: u64) {
        let all = std::iter::once(&self.progress).chain(self.config.progress);
        all.for_each(|progress| progress.begin(workgroups));
    }

    /// A workgroup has ended.
    pub(super) fn workgroup_ended(&self) {
        let all = std::iter::once(&self.progress).chain(self.config.progress);
        all.for_each(LaunchProgress::one_ended);
    }

    /// The arguments as 64-bit words: all pointers, and other things.
    pub(super) fn argument_words(&self) -> impl Iterator<Item = u64> {
        let words = self.kernarg.chunks_exact(8);
        words.map(|word| word.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)))
    }

    /// Start and bytes of the allocations that arguments point to. Memories that are only named in memory do
    /// not count.
    pub(super) fn memories(&self) -> Vec<(u64, u64)> {
        let addresses: Vec<u64> = self.argument_words().collect();
        let holds = |start: u64, bytes: u64| addresses.iter().any(|a| a.wrapping_sub(start) < bytes);
        self.memory.extents().filter(|&(start, bytes)| holds(start, bytes)).collect()
    }

    /// An error if the launch has taken longer on the host than it may.
    pub(super) fn check_time(&self) -> Result<(), Stopped> {
        match self.deadline {
            Some(end) if Instant::now() >= end => Err(Stopped::wave(FaultKind::TimedOut(self.overrun()))),
            _ => Ok(()),
        }
    }

    #[cold]
    fn overrun(&self) -> Overrun {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (ended, workgroups) = self.progress.workgroups();
        Overrun {
            milliseconds: milliseconds(self.config.time_limit.unwrap_or_default()),
            spent_before: milliseconds(self.config.time_spent),
            ended,
            workgroups,
        }
    }

    /// Workgroups along each axis.
    pub(super) fn grid(&self) -> [u64; 3] {
        self.config.grid.map(u64::from)
    }

    /// Number of workgroups.
    pub(super) fn workgroups(&self) -> u64 {
        self.config.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// The fault at which a launch of a module's kernel stopped.
    #[cold]
    pub(super) fn fault(&self, module: &Module, at: StoppedWave) -> Fault {
        let (address, instruction) = module.describe(self.kernel, at.step);
        Fault {
            kernel: self.kernel.name.clone(),
            workgroup: self.coordinates(at.workgroup),
            wave: at.wave as u32,
            lane: at.stopped.lane,
            address,
            instruction,
            kind: at.stopped.kind,
        }
    }

    /// Ids of a workgroup.
    pub(super) fn coordinates(&self, workgroup: u64) -> [u32; 3] {
        let [x, y, _] = self.config.grid.map(u64::from);
        [workgroup % x, workgroup / x % y, workgroup / x / y].map(|id| id as u32)
    }

    /// Work-items of a workgroup along each dimension.
    pub(super) fn shape(&self, ids: [u32; 3]) -> [u32; 3] {
        let LaunchConfig { grid, block, remainder, .. } = self.config;
        let is_partial = |axis: usize| remainder[axis] != 0 && ids[axis] + 1 == grid[axis];
        std::array::from_fn(|axis| if is_partial(axis) { remainder[axis] } else { block[axis] })
    }

    /// Registers of a wave before its first instruction.
    pub(super) fn start(&self, w: &mut Wave, index: usize, ids: [u32; 3]) {
        w.reset(self.program, self.private_bytes);
        self.fill(w, index, ids);
    }

    /// The same for a wave that uses only some rows of vector registers: the others may be anything.
    pub(super) fn start_with_rows(&self, w: &mut Wave, index: usize, ids: [u32; 3], rows: &[usize]) {
        w.reset_rows(self.program, self.private_bytes, rows);
        self.fill(w, index, ids);
    }

    fn fill(&self, w: &mut Wave, index: usize, ids: [u32; 3]) {
        w.pc = self.entry;
        w.mode = self.mode;
        w.hardware_id = hardware_id(index);
        let shape = self.shape(ids).map(|n| n as usize);
        let items: usize = shape.iter().product();
        let live = items.saturating_sub(index * LANES).min(LANES);
        if live == 0 {
            w.progress = Progress::Ended;
            return;
        }
        w.set_pair(EXEC, u64::MAX >> (LANES - live));
        self.user_sgprs(w);
        self.system_sgprs(w, items.div_ceil(LANES), index, ids);
        self.item_ids(w, index, shape);
    }

    fn user_sgprs(&self, w: &mut Wave) {
        let pairs = [
            (self.sgprs.dispatch_ptr, PACKET_ADDRESS),
            (self.sgprs.queue_ptr, QUEUE_ADDRESS),
            (self.sgprs.kernarg_segment_ptr, KERNARG_ADDRESS),
            (self.sgprs.dispatch_id, 0),
            // Every wave finds its own scratch at the same addresses.
            (self.sgprs.flat_scratch_init, SCRATCH_OF_WAVES),
        ];
        for (first, value) in pairs.into_iter().filter_map(|(first, value)| Some((first?, value))) {
            w.set_pair(first as usize, value);
        }
        if let Some(first) = self.sgprs.private_segment_buffer {
            w.s[first as usize..][..4].copy_from_slice(&private_descriptor(SCRATCH_OF_WAVES));
        }
        if let Some(first) = self.sgprs.private_segment_size {
            w.s[first as usize] = self.private_bytes;
        }
        if let Some(first) = self.sgprs.kernarg_preload {
            let descriptor = &self.kernel.descriptor;
            let offset = descriptor.get(DescriptorField::KernargPreloadOffset) as usize;
            let length = descriptor.get(DescriptorField::KernargPreloadLength) as usize;
            let dwords = self.kernarg.chunks_exact(4).skip(offset).take(length);
            for (register, b) in w.s[first as usize..].iter_mut().zip(dwords) {
                *register = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            }
        }
    }

    fn system_sgprs(&self, w: &mut Wave, waves: usize, index: usize, ids: [u32; 3]) {
        for (first, id) in self.sgprs.workgroup_ids.into_iter().zip(ids) {
            if let Some(first) = first {
                w.s[first as usize] = id;
            }
        }
        if let Some(first) = self.sgprs.workgroup_info {
            w.s[first as usize] = u32::from(index == 0) << 31 | waves as u32;
        }
        if let Some(first) = self.sgprs.scratch_wave_offset {
            w.s[first as usize] = WAVE_OFFSET;
        }
    }

    /// Ids of the work-items: packed into v0, or in a register per dimension.
    fn item_ids(&self, w: &mut Wave, index: usize, [dx, dy, dz]: [usize; 3]) {
        let dimensions = self.kernel.descriptor.get(DescriptorField::WorkitemId) as usize + 1;
        for lane in 0..(dx * dy * dz - index * LANES).min(LANES) {
            let item = index * LANES + lane;
            let ids = [item % dx, item / dx % dy, item / dx / dy].map(|id| id as u32);
            for (axis, id) in ids.into_iter().enumerate().take(dimensions) {
                if self.packs_item_ids {
                    w.rows[0][lane] |= id << (10 * axis);
                } else if let Some(row) = w.rows.get_mut(axis) {
                    row[lane] = id;
                }
            }
        }
    }
}

/// How many workgroups fit.
pub(super) fn occupancy(target: Target, kernel: &LoadedKernel, launch: &LaunchContext<'_>) -> Occupancy {
    occupancy_of(target, kernel, launch.lds_bytes, launch.waves as u32)
}

fn occupancy_of(target: Target, kernel: &LoadedKernel, lds_bytes: u32, waves: u32) -> Occupancy {
    let descriptor = &kernel.descriptor;
    target.occupancy(
        descriptor.allocated_vgprs(target),
        // From gfx90a on every wave has room for all of its SGPRs (LLVM, AMDGPUBaseInfo.cpp,
        // getTotalNumSGPRs).
        descriptor.allocated_sgprs(target).min(target.sgpr_file / target.max_waves_per_simd),
        lds_bytes,
        waves,
    )
}

/// The resources that a launch needs, or what is wrong with it.
fn check(target: Target, kernel: &LoadedKernel, config: &LaunchConfig) -> Result<LaunchSize, String> {
    let descriptor = &kernel.descriptor;
    if config.grid.contains(&0) || config.block.contains(&0) {
        return Err(format!("empty grid {:?} or workgroup {:?}", config.grid, config.block));
    }
    if config.remainder.iter().zip(&config.block).any(|(partial, block)| partial >= block) {
        return Err(format!("partial workgroups {:?} of {:?}", config.remainder, config.block));
    }
    let items = config.block.iter().fold(1, |n: u64, &b| n.saturating_mul(b.into()));
    let most = kernel.metadata.as_ref().map_or(target.max_workgroup_size, |m| m.workgroup_size.max());
    if items > u64::from(most.min(target.max_workgroup_size)) {
        return Err(format!("{items} work-items in a workgroup, at most {most} are allowed"));
    }
    if let Some(WorkgroupSize::Exactly(shape)) = kernel.metadata.as_ref().map(|m| m.workgroup_size)
        && shape != config.block
    {
        return Err(format!("workgroups of {:?} work-items, only {shape:?} are allowed", config.block));
    }
    let workgroups = config.grid.iter().try_fold(1u64, |n, &g| n.checked_mul(g.into()));
    let grid_items = config.grid.iter().zip(&config.block).try_fold(0, |_, (&g, &b)| g.checked_mul(b));
    if workgroups.is_none() || grid_items.is_none() {
        return Err(format!("grid {:?} is too large", config.grid));
    }
    if config.grid[1..].iter().any(|&along| along > MOST_WORKGROUPS) {
        let [_, y, z] = config.grid;
        return Err(format!("{y} workgroups along Y and {z} along Z, at most {MOST_WORKGROUPS} are allowed"));
    }
    let lds = u64::from(descriptor.group_segment_fixed_size) + u64::from(config.dynamic_lds);
    if lds > u64::from(target.max_lds_per_workgroup) {
        return Err(format!("{lds} bytes of LDS, the device has {}", target.max_lds_per_workgroup));
    }
    let waves = items.div_ceil(LANES as u64) as u32;
    let room = occupancy_of(target, kernel, lds as u32, waves);
    if room.workgroups_per_compute_unit == 0 {
        let (vgprs, one) = (descriptor.allocated_vgprs(target), occupancy_of(target, kernel, 0, 1));
        return Err(format!(
            "no compute unit holds a workgroup of {waves} waves with {vgprs} VGPRs each, but at most {} of them",
            one.workgroups_per_compute_unit
        ));
    }
    // The needs of functions that the compiler could not follow are added.
    let dynamic = if descriptor.get(DescriptorField::DynamicStack) != 0 { DYNAMIC_STACK } else { 0 };
    let private_bytes = descriptor.private_segment_fixed_size.saturating_add(dynamic);
    if private_bytes > LARGEST_PRIVATE {
        return Err(format!("{private_bytes} bytes of scratch per work-item"));
    }
    let field = |field| descriptor.get(field);
    let mode = field(DescriptorField::RoundMode32)
        | field(DescriptorField::RoundMode16And64) << 2
        | field(DescriptorField::DenormMode32) << 4
        | field(DescriptorField::DenormMode16And64) << 6
        | field(DescriptorField::Dx10Clamp) << 8
        | field(DescriptorField::IeeeMode) << 9
        | field(DescriptorField::Fp16Overflow) << 23;
    Ok(LaunchSize { mode, lds_bytes: lds as u32, private_bytes })
}

/// The most bytes of scratch per work-item: 4 GiB divided among all lanes of the chip.
const LARGEST_PRIVATE: u32 = 1 << 18;
/// Scratch for functions whose need is not known when a kernel with a dynamic stack is compiled.
const DYNAMIC_STACK: u32 = 1 << 14;
