//! Launching a kernel: checks, kernel arguments, the state that waves start with, and the workgroups in parallel.
//!
//! Initial registers follow LLVM's "User Guide for AMDGPU Backend", section "Initial Kernel Execution State". The waves of
//! a workgroup take turns on one host thread: each runs until a barrier or its end. A barrier opens when all waves that
//! have not ended wait at it, as on hardware (CDNA3 ISA guide, S_BARRIER).

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::codegen::object::{Field, InitialSgprs, WorkgroupSize};
use crate::codegen::target::{Feature, FlatScratch, Target};

use super::error::{Fault, SimError, Stopped};
use super::execute::{Cache, Context, Lds, check_mode, run};
use super::kernarg;
use super::memory::{Allocation, Memory, View};
use super::module::{LoadedKernel, Module};
use super::program::Program;
use super::stats::LaunchStats;
use super::wave::{EXEC, LANES, Progress, Wave};

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

/// Everything that the workgroups of a launch share.
struct Launch<'a> {
    kernel: &'a LoadedKernel,
    program: &'a Program,
    memory: &'a View<'a>,
    config: LaunchConfig,
    sgprs: InitialSgprs,
    kernarg: &'a [u8],
    mode: u32,
    lds_bytes: u32,
    waves: usize,
}

/// What a host thread keeps from workgroup to workgroup.
#[derive(Default)]
struct Worker {
    waves: Vec<Wave>,
    lds: Lds,
    caches: [Cache; 2],
    stats: LaunchStats,
}

/// Where a workgroup stopped.
struct Failure {
    workgroup: u64,
    wave: usize,
    step: usize,
    stopped: Stopped,
}

/// Runs a kernel to its end.
pub(super) fn launch(
    memory: &Memory,
    target: Target,
    module: &Module,
    name: &str,
    config: LaunchConfig,
    kernarg: &[u8],
) -> Result<LaunchStats, SimError> {
    let kernel = module.kernel(name).ok_or_else(|| SimError::NoKernel(name.to_owned()))?;
    let refuse = |reason: String| SimError::Launch { kernel: name.to_owned(), reason };
    let (mode, lds_bytes) = check(target, kernel, &config).map_err(refuse)?;
    let kernarg = kernarg::fill(kernel, &config, kernarg).map_err(refuse)?;
    let packet = kernarg::packet(kernel, &config, lds_bytes, KERNARG_ADDRESS);
    let extra = [
        Allocation::with_contents(PACKET_ADDRESS, &packet)?,
        Allocation::with_contents(KERNARG_ADDRESS, &kernarg)?,
    ];
    let items: usize = config.block.iter().map(|&n| n as usize).product();
    let launch = Launch {
        kernel,
        program: module.program(kernel),
        memory: &memory.view(&extra),
        config,
        sgprs: kernel.descriptor.initial_sgprs(target),
        kernarg: &kernarg,
        mode,
        lds_bytes,
        waves: items.div_ceil(LANES),
    };
    let workgroups: u64 = config.grid.iter().map(|&n| u64::from(n)).product();
    match launch.all(workgroups) {
        Ok(stats) => Ok(stats),
        Err(failure) => {
            let (address, instruction) = module.describe(kernel, failure.step);
            Err(SimError::Fault(Box::new(Fault {
                kernel: name.to_owned(),
                workgroup: launch.coordinates(failure.workgroup),
                wave: failure.wave as u32,
                lane: failure.stopped.lane,
                address,
                instruction,
                kind: failure.stopped.kind,
            })))
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

impl Launch<'_> {
    /// Runs all workgroups. They start in order, so that of several that fail the first is always reported.
    fn all(&self, workgroups: u64) -> Result<LaunchStats, Failure> {
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let outcome: Mutex<(LaunchStats, Option<Failure>)> = Mutex::default();
        let work = || {
            let mut worker = Worker::default();
            let mut failure = None;
            while !failed.load(Relaxed) {
                let workgroup = next.fetch_add(1, Relaxed);
                if workgroup >= workgroups {
                    break;
                }
                if let Err(error) = self.workgroup(&mut worker, workgroup) {
                    failed.store(true, Relaxed);
                    failure = Some(error);
                }
            }
            // A poisoned lock means that another worker panicked, which rayon passes on.
            let mut outcome = outcome.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            outcome.0.merge(&worker.stats);
            let earlier = |f: &Failure| outcome.1.as_ref().is_none_or(|first| f.workgroup < first.workgroup);
            if failure.as_ref().is_some_and(earlier) {
                outcome.1 = failure;
            }
        };
        let threads = (rayon::current_num_threads() as u64).min(workgroups);
        if threads <= 1 {
            work();
        } else {
            rayon::scope(|scope| (0..threads).for_each(|_| scope.spawn(|_| work())));
        }
        let (stats, failure) = outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        failure.map_or(Ok(stats), Err)
    }

    /// Ids of a workgroup.
    fn coordinates(&self, workgroup: u64) -> [u32; 3] {
        let [x, y, _] = self.config.grid.map(u64::from);
        [workgroup % x, workgroup / x % y, workgroup / x / y].map(|id| id as u32)
    }

    fn workgroup(&self, worker: &mut Worker, workgroup: u64) -> Result<(), Failure> {
        worker.waves.resize_with(self.waves, Wave::new);
        worker.lds.reset(self.lds_bytes);
        let ids = self.coordinates(workgroup);
        for (index, wave) in worker.waves.iter_mut().enumerate() {
            self.start(wave, index, ids);
        }
        let mut context = Context {
            program: self.program,
            memory: self.memory,
            lds: &mut worker.lds,
            caches: &mut worker.caches,
            budget: self.config.instruction_budget,
        };
        loop {
            for (index, wave) in worker.waves.iter_mut().enumerate() {
                run(wave, &mut context).map_err(|stopped| Failure {
                    workgroup,
                    wave: index,
                    step: wave.pc,
                    stopped,
                })?;
            }
            let mut waiting = false;
            for wave in worker.waves.iter_mut().filter(|w| w.progress == Progress::AtBarrier) {
                wave.progress = Progress::Running;
                waiting = true;
            }
            if !waiting {
                break;
            }
        }
        for wave in &mut worker.waves {
            worker.stats.waves += 1;
            worker.stats.add(&std::mem::take(&mut wave.counts));
        }
        Ok(())
    }

    /// Registers of a wave before its first instruction.
    fn start(&self, w: &mut Wave, index: usize, ids: [u32; 3]) {
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
