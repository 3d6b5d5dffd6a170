//! What is resident on a compute unit: its SIMDs, the waves on them, the workgroups that these belong to.

use smallvec::SmallVec;

use super::super::execute::{Lds, WidenedCache};
use super::super::rounds::Rounds;
use super::super::wave::Wave;
use super::costs::{Rows, StepCost};
use super::counters::{AnyOrder, InOrder};
use super::record::LoopVisit;
use crate::codegen::target::{CostKind, DeviceModel, DeviceParameter};

/// Never, unless something happens.
pub(super) const NEVER: u64 = u64::MAX;

/// Fixed numbers of a compute unit in the form in which the model uses them: clk, but for the first.
#[derive(Debug)]
pub(super) struct UnitNumbers {
    /// Misaligned instructions in a row after which a turn is lost.
    pub misaligned_run: u64,
    pub cold_line: u64,
    pub cold_start: u64,
    pub warm_start: u64,
    pub taken_branch: u64,
    pub barrier_release: u64,
    pub packed_after_matrix: u64,
    pub one_memory_port: bool,
    /// The code has scaled matrix instructions.
    pub scaled: bool,
    pub wave_interval: u64,
    pub turnaround: u64,
}

impl UnitNumbers {
    /// Those of a device for the steps of a program.
    pub(super) fn of(device: &DeviceModel, costs: &[StepCost]) -> UnitNumbers {
        let count = |parameter| device.count(parameter);
        let is_scaled =
            |cost: &StepCost| matches!(cost.instruction.kind, CostKind::Matrix { scaled: true, .. });
        UnitNumbers {
            misaligned_run: count(DeviceParameter::MisalignedRun).max(1),
            cold_line: count(DeviceParameter::ColdLine),
            cold_start: count(DeviceParameter::ColdStart),
            warm_start: count(DeviceParameter::WarmStart),
            taken_branch: count(DeviceParameter::TakenBranch),
            barrier_release: count(DeviceParameter::BarrierRelease),
            packed_after_matrix: count(DeviceParameter::PackedAfterMatrix),
            one_memory_port: count(DeviceParameter::OneMemoryPort) != 0,
            scaled: costs.iter().any(is_scaled),
            wave_interval: count(DeviceParameter::WaveInterval),
            turnaround: count(DeviceParameter::Turnaround),
        }
    }
}

/// A matrix result that is not ready yet.
#[derive(Copy, Clone, Debug)]
pub(super) struct PendingResult {
    pub rows: Rows,
    pub opcode: u32,
    /// When it may be read, and when the same instruction may accumulate on it.
    pub readable: u64,
    pub accumulable: u64,
}

/// A wave on a SIMD. Slots are used again.
#[derive(Debug)]
pub(super) struct WaveSlot {
    pub wave: Wave,
    pub caches: [WidenedCache; 2],
    pub group: usize,
    /// Number in its workgroup, and in the order of all launches.
    pub index: usize,
    pub age: u64,
    pub simd: usize,
    pub priority: u8,
    /// Since when it waits at a barrier, and when the next instruction may try to issue.
    pub since: u64,
    pub ready: u64,
    pub vm: InOrder,
    pub lgkm: AnyOrder,
    pub pending: SmallVec<[PendingResult; 4]>,
    /// Misaligned instructions one after the other since the last lost turn.
    pub misaligned: u64,
    /// Line of code that its buffer holds.
    pub line: u64,
    /// When it last was at each loop's branch.
    pub loops: Vec<LoopVisit>,
    /// Loops that it goes round.
    pub rounds: Rounds,
    /// Step of the barrier that it waits at.
    pub barrier: Option<usize>,
    pub started: u64,
    pub issued: u64,
}

impl WaveSlot {
    pub(super) fn new() -> WaveSlot {
        WaveSlot {
            wave: Wave::new(),
            caches: Default::default(),
            group: 0,
            index: 0,
            age: 0,
            simd: 0,
            priority: 0,
            since: 0,
            ready: NEVER,
            vm: InOrder::default(),
            lgkm: AnyOrder::default(),
            pending: SmallVec::new(),
            misaligned: 0,
            line: u64::MAX,
            loops: Vec::new(),
            rounds: Rounds::default(),
            barrier: None,
            started: 0,
            issued: 0,
        }
    }
}

/// A workgroup.
#[derive(Debug, Default)]
pub(super) struct ResidentGroup {
    pub workgroup: u64,
    pub lds: Lds,
    /// Its slots, ended waves included.
    pub slots: Vec<usize>,
    pub alive: usize,
    pub waiting: usize,
    pub started: u64,
    /// When the last of its ended waves has left.
    pub ended: u64,
}

/// One SIMD.
#[derive(Debug, Default)]
pub(super) struct Simd {
    /// Slots in the order of their priority.
    pub order: SmallVec<[usize; 10]>,
    /// When the vector ALU accepts an instruction, when it accepts one beside a matrix instruction, when the
    /// matrix core accepts one, and when LDS and vector memory do beside a matrix instruction.
    pub valu: u64,
    pub beside: u64,
    pub matrix: u64,
    pub memory: u64,
    /// The wave that used the matrix core last.
    pub owner: u64,
    /// The slot of the wave that wrote to LDS last.
    pub writer: usize,
    /// When a buffer can be filled in a lost turn.
    pub refill: u64,
}
