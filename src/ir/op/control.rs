//! Operations on waves, time and order, as nodes hold them.

use super::Predicate;

/// Operations that impose an order on waves, memory and the hardware's scheduler.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Control {
    /// Waits for all waves of the workgroup, and for no memory.
    WorkgroupBarrier,
    /// A workgroup barrier for the waves that the condition names; the others go on.
    ConditionalBarrier(WaveCondition),
    /// Priority of the wave from here on, 0 to 3.
    SetWavePriority(u8),
    /// Nothing moves across it. It is not an instruction.
    SchedulingBarrier,
    /// Waits until at most so many loads from global memory are under way.
    WaitForLoads(u8),
    /// Waits until at most so many accesses of LDS are under way.
    WaitForShared(u8),
}

/// A condition on the number of a wave in its workgroup.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct WaveCondition {
    /// How the wave's number compares with the bound.
    pub predicate: Predicate,
    /// What it is compared with.
    pub bound: WaveBound,
}

impl WaveCondition {
    /// True for wave number `wave` of `waves`.
    pub fn holds(&self, wave: u32, waves: u32) -> bool {
        let bound = match self.bound {
            WaveBound::Wave(number) => number,
            WaveBound::WavesOver(divisor) => waves / divisor.max(1),
        };
        match self.predicate {
            Predicate::Eq => wave == bound,
            Predicate::Ne => wave != bound,
            Predicate::Lt => wave < bound,
            Predicate::Le => wave <= bound,
            Predicate::Gt => wave > bound,
            Predicate::Ge => wave >= bound,
        }
    }
}

/// Number of a wave.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum WaveBound {
    /// This number.
    Wave(u32),
    /// The waves of a workgroup, divided by this number.
    WavesOver(u32),
}
