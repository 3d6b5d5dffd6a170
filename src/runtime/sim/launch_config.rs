//! How a kernel is launched: its grid, and the limits at which it is stopped.

use std::time::Duration;

use super::progress::LaunchProgress;
use super::wave_order::WaveOrder;

/// How to launch a kernel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LaunchConfig {
    /// Workgroups, partial ones included.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub block: [u32; 3],
    /// Work-items of the last workgroup along each dimension if that is a partial one, else zero.
    pub remainder: [u32; 3],
    /// What the work-items' global ids start from, for kernels that ask for it.
    pub global_offset: [u64; 3],
    /// Bytes of LDS beyond what the kernel declares.
    pub dynamic_lds: u32,
    /// Where the host takes calls of kernels (`hidden_hostcall_buffer`), or zero.
    pub host_calls: u64,
    /// The structure that `malloc` in kernels keeps its heap in (`hidden_heap_v1`), or zero.
    pub heap: u64,
    /// The structure with which the workgroups of a cooperative launch wait for each other
    /// (`hidden_multigrid_sync_arg`), or zero. All of them make progress together.
    pub grid_sync: u64,
    /// In which order the waves of a workgroup go on in run mode.
    pub order: WaveOrder,
    /// Instructions that one wave may execute before it is considered endless.
    pub instruction_budget: u64,
    /// Time that the host may take before the launch is stopped.
    pub time_limit: Option<Duration>,
    /// How much of that time earlier launches have taken.
    pub time_spent: Duration,
    /// Where to note how far the launch is, for whoever shows it.
    pub progress: Option<&'static LaunchProgress>,
}

/// The limits of a launch. Loops that touch no memory and change no register are found before these are
/// reached.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Instructions of one wave.
    pub instructions: u64,
    /// Time on the host; none by default.
    pub time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Limits {
        // Some hundred times as many as a wave of the longest kernels that are worth waiting for, and seconds
        // on the host.
        Limits { instructions: 100_000_000, time: None }
    }
}

impl LaunchConfig {
    /// A grid of workgroups of that shape, without dynamic LDS.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> LaunchConfig {
        LaunchConfig {
            grid,
            block,
            remainder: [0; 3],
            global_offset: [0; 3],
            dynamic_lds: 0,
            host_calls: 0,
            heap: 0,
            grid_sync: 0,
            order: WaveOrder::default(),
            instruction_budget: Limits::default().instructions,
            time_limit: Limits::default().time,
            time_spent: Duration::ZERO,
            progress: None,
        }
    }

    /// A grid of this many work-items, in workgroups of that shape; the last ones may be partial.
    pub fn items(items: [u32; 3], block: [u32; 3]) -> LaunchConfig {
        let per_axis = |f: fn(u32, u32) -> Option<u32>| {
            std::array::from_fn(|axis| f(items[axis], block[axis]).unwrap_or(0))
        };
        let grid = per_axis(|n, block| (block > 0).then(|| n.div_ceil(block)));
        LaunchConfig { remainder: per_axis(u32::checked_rem), ..LaunchConfig::new(grid, block) }
    }

    /// The same with global ids that start elsewhere.
    #[must_use]
    pub fn global_offset(mut self, offset: [u64; 3]) -> LaunchConfig {
        self.global_offset = offset;
        self
    }

    /// The same with dynamic LDS.
    #[must_use]
    pub fn dynamic_lds(mut self, bytes: u32) -> LaunchConfig {
        self.dynamic_lds = bytes;
        self
    }

    /// The same with a buffer in which the host takes calls of kernels, such as `printf`.
    #[must_use]
    pub fn host_calls(mut self, buffer: u64) -> LaunchConfig {
        self.host_calls = buffer;
        self
    }

    /// The same with a heap for `malloc` in kernels.
    #[must_use]
    pub fn heap(mut self, structure: u64) -> LaunchConfig {
        self.heap = structure;
        self
    }

    /// The same as a cooperative launch, whose workgroups may wait for each other.
    #[must_use]
    pub fn cooperative(mut self, structure: u64) -> LaunchConfig {
        self.grid_sync = structure;
        self
    }

    /// The same with the waves of a workgroup in another order.
    #[must_use]
    pub fn order(mut self, order: WaveOrder) -> LaunchConfig {
        self.order = order;
        self
    }

    /// The same with another budget.
    #[must_use]
    pub fn instruction_budget(mut self, instructions: u64) -> LaunchConfig {
        self.instruction_budget = instructions;
        self
    }

    /// The same with another limit of time on the host.
    #[must_use]
    pub fn time_limit(mut self, time: Duration) -> LaunchConfig {
        self.time_limit = Some(time);
        self
    }

    /// The same after earlier launches have taken some of the time.
    #[must_use]
    pub fn time_spent(mut self, time: Duration) -> LaunchConfig {
        self.time_spent = time;
        self
    }

    /// The same with a place for noting how far the launch is.
    #[must_use]
    pub fn progress(mut self, progress: &'static LaunchProgress) -> LaunchConfig {
        self.progress = Some(progress);
        self
    }

    /// The same with other limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> LaunchConfig {
        LaunchConfig { instruction_budget: limits.instructions, time_limit: limits.time, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_of_work_items_have_partial_workgroups() {
        let config = LaunchConfig::items([100, 7, 64], [32, 7, 1]);
        assert_eq!((config.grid, config.remainder), ([4, 1, 64], [4, 0, 0]));
        let empty = LaunchConfig::items([1, 1, 1], [0, 1, 1]);
        assert_eq!((empty.grid, empty.remainder), ([0, 1, 1], [0, 0, 0]));
    }
}
