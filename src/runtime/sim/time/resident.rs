//! What is resident on a compute unit: its SIMDs, the waves on them, the workgroups that these belong to.

use smallvec::SmallVec;

use super::super::execute::{Lds, WidenedCache};
use super::super::rounds::Rounds;
use super::super::wave::Wave;
use super::costs::Rows;
use super::counters::{AnyOrder, InOrder};
use super::record::LoopVisit;

/// Never, unless something happens.
pub(super) const NEVER: u64 = u64::MAX;

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
