//! What a launch consists of before its first instruction: its checks, its kernel arguments, and the state that each wave
//! starts with.
//!
//! Initial registers follow LLVM's "User Guide for AMDGPU Backend", section "Initial Kernel Execution State".

use crate::codegen::object::{Field, InitialSgprs};
use crate::codegen::target::{Feature, FlatScratch, Target};

use super::error::SimError;
use super::execute::check_mode;
use super::kernarg;
use super::memory::{Allocation, Memory, View};
use super::module::{LoadedKernel, Module};
use super::program::Program;
use super::wave::{EXEC, LANES, Wave};

/// Where a launch has its kernel arguments and its dispatch packet: below all allocations.
const KERNARG_ADDRESS: u64 = 0x8000_0000;
const PACKET_ADDRESS: u64 = 0x4000_0000;

/// How to launch a kernel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LaunchConfig {
    /// Workgroups.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub block: [u32; 3],
    /// Bytes of LDS beyond what the kernel declares.
    pub dynamic_lds: u32,
    /// Instructions that one wave may execute before it is taken for endless.
    pub instruction_budget: u64,
}

impl LaunchConfig {
    /// A grid of workgroups of that shape, without dynamic LDS.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> LaunchConfig {
        LaunchConfig { grid, block, dynamic_lds: 0, instruction_budget: 1_000_000_000 }
    }

    /// The same with dynamic LDS.
    #[must_use]
    pub fn dynamic_lds(mut self, bytes: u32) -> LaunchConfig {
        self.dynamic_lds = bytes;
        self
    }

    /// The same with another budget.
    #[must_use]
    pub fn instruction_budget(mut self, instructions: u64) -> LaunchConfig {
        self.instruction_budget = instructions;
        self
    }
}

/// Memory of one launch beside what the host allocated, and its kernel arguments.
pub(super) struct Segments {
    extra: [Allocation; 2],
    kernarg: Vec<u8>,
    mode: u32,
    lds_bytes: u32,
}

impl Segments {
    /// Checks a launch and lays out what it brings along.
    pub fn new(
        target: Target,
        kernel: &LoadedKernel,
        config: &LaunchConfig,
        arguments: &[u8],
    ) -> Result<Segments, SimError> {
        let refuse = |reason: String| SimError::Launch { kernel: kernel.name.clone(), reason };
        let (mode, lds_bytes) = check(target, kernel, config).map_err(refuse)?;
        let kernarg = kernarg::fill(kernel, config, arguments).map_err(refuse)?;
        let packet = kernarg::packet(kernel, config, lds_bytes, KERNARG_ADDRESS);
        let extra = [
            Allocation::with_contents(PACKET_ADDRESS, &packet)?,
            Allocation::with_contents(KERNARG_ADDRESS, &kernarg)?,
        ];
        Ok(Segments { extra, kernarg, mode, lds_bytes })
    }

    /// Memory as the launch sees it.
    pub fn view<'a>(&'a self, memory: &'a Memory) -> View<'a> {
        memory.view(&self.extra)
    }
}

/// Everything that the workgroups of a launch share.
pub(super) struct Launch<'a> {
    pub kernel: &'a LoadedKernel,
    pub program: &'a Program,
    pub memory: &'a View<'a>,
    pub config: LaunchConfig,
    pub sgprs: InitialSgprs,
    kernarg: &'a [u8],
    mode: u32,
    pub lds_bytes: u32,
    pub waves: usize,
}

impl<'a> Launch<'a> {
    /// A launch of `kernel` of `module`, over `view` of the memory of `segments`.
    pub fn new(
        target: Target,
        module: &'a Module,
        kernel: &'a LoadedKernel,
        config: LaunchConfig,
        segments: &'a Segments,
        view: &'a View<'a>,
    ) -> Launch<'a> {
        let items: usize = config.block.iter().map(|&n| n as usize).product();
        Launch {
            kernel,
            program: module.program(kernel),
            memory: view,
            config,
            sgprs: kernel.descriptor.initial_sgprs(target),
            kernarg: &segments.kernarg,
            mode: segments.mode,
            lds_bytes: segments.lds_bytes,
            waves: items.div_ceil(LANES),
        }
    }

    /// Number of workgroups.
    pub fn workgroups(&self) -> u64 {
        self.config.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Ids of a workgroup.
    pub fn coordinates(&self, workgroup: u64) -> [u32; 3] {
        let [x, y, _] = self.config.grid.map(u64::from);
        [workgroup % x, workgroup / x % y, workgroup / x / y].map(|id| id as u32)
    }

    /// Registers of a wave before its first instruction.
    pub fn start(&self, w: &mut Wave, index: usize, ids: [u32; 3]) {
        w.reset(self.program, self.kernel.descriptor.private_segment_fixed_size);
        w.pc = self.kernel.entry;
        w.mode = self.mode;
        let pairs = [
            (self.sgprs.dispatch_ptr, PACKET_ADDRESS),
            (self.sgprs.kernarg_segment_ptr, KERNARG_ADDRESS),
            (self.sgprs.dispatch_id, 0),
        ];
        for (first, value) in pairs.into_iter().filter_map(|(first, value)| Some((first?, value))) {
            w.set_pair(first as usize, value);
        }
        if let Some(first) = self.sgprs.private_segment_size {
            w.s[first as usize] = self.kernel.descriptor.private_segment_fixed_size;
        }
        if let Some(first) = self.sgprs.kernarg_preload {
            let descriptor = &self.kernel.descriptor;
            let offset = descriptor.get(Field::KernargPreloadOffset) as usize;
            let length = descriptor.get(Field::KernargPreloadLength) as usize;
            let dwords = self.kernarg.chunks_exact(4).skip(offset).take(length);
            for (register, b) in w.s[first as usize..].iter_mut().zip(dwords) {
                *register = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            }
        }
        for (first, id) in self.sgprs.workgroup_ids.into_iter().zip(ids) {
            if let Some(first) = first {
                w.s[first as usize] = id;
            }
        }
        let [dx, dy, dz] = self.config.block.map(|n| n as usize);
        let live = (dx * dy * dz - index * LANES).min(LANES);
        w.set_pair(EXEC, if live == LANES { u64::MAX } else { (1 << live) - 1 });
        let dimensions = self.kernel.descriptor.get(Field::WorkitemId);
        for lane in 0..live {
            let item = index * LANES + lane;
            let (x, y, z) = (item % dx, item / dx % dy, item / dx / dy);
            let y = if dimensions >= 1 { y } else { 0 };
            let z = if dimensions >= 2 { z } else { 0 };
            w.rows[0][lane] = (x | y << 10 | z << 20) as u32;
        }
    }
}

/// MODE register and LDS size of a launch, or what is wrong with it.
fn check(target: Target, kernel: &LoadedKernel, config: &LaunchConfig) -> Result<(u32, u32), String> {
    let descriptor = &kernel.descriptor;
    if config.grid.contains(&0) || config.block.contains(&0) {
        return Err(format!("empty grid {:?} or workgroup {:?}", config.grid, config.block));
    }
    if !target.has(Feature::PackedWorkitemIds) {
        return Err(format!("{target} starts work-items in registers that are not simulated"));
    }
    let items = config.block.iter().fold(1, |n: u64, &b| n.saturating_mul(b.into()));
    let most = kernel.metadata.as_ref().map_or(target.max_workgroup_size, |m| m.workgroup_size.max());
    if items > u64::from(most.min(target.max_workgroup_size)) {
        return Err(format!("{items} work-items in a workgroup, at most {most} are allowed"));
    }
    let workgroups = config.grid.iter().try_fold(1u64, |n, &g| n.checked_mul(g.into()));
    let grid_items = config.grid.iter().zip(&config.block).try_fold(0, |_, (&g, &b)| g.checked_mul(b));
    if workgroups.is_none() || grid_items.is_none() {
        return Err(format!("grid {:?} is too large", config.grid));
    }
    let lds = u64::from(descriptor.group_segment_fixed_size) + u64::from(config.dynamic_lds);
    if lds > u64::from(target.max_lds_per_workgroup) {
        return Err(format!("{lds} bytes of LDS, the device has {}", target.max_lds_per_workgroup));
    }
    if descriptor.private_segment_fixed_size > LARGEST_PRIVATE {
        return Err(format!("{} bytes of scratch per work-item", descriptor.private_segment_fixed_size));
    }
    if descriptor.private_segment_fixed_size > 0 && target.flat_scratch == FlatScratch::Absolute {
        return Err("scratch with absolute addresses is not simulated".to_owned());
    }
    let field = |field| descriptor.get(field);
    let mode = field(Field::RoundMode32)
        | field(Field::RoundMode16And64) << 2
        | field(Field::DenormMode32) << 4
        | field(Field::DenormMode16And64) << 6
        | field(Field::Dx10Clamp) << 8
        | field(Field::IeeeMode) << 9;
    check_mode(mode).map_err(|what| format!("{what} is not simulated"))?;
    Ok((mode, lds as u32))
}

/// Most bytes of scratch that a work-item may have: what 4 GiB for all lanes of the chip leave.
const LARGEST_PRIVATE: u32 = 1 << 18;
