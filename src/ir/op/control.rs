//! Operations on waves, time and order, as nodes hold them.

use super::arithmetic::Predicate;
use super::row::{MemoryEffect, NodeRole, OpClass, OpRow, Purity, ROW};

const ORDER: OpRow =
    OpRow { class: OpClass::Order, purity: Purity::Effect, memory: MemoryEffect::Fence, ..ROW };

pub(super) const BARRIER: OpRow = OpRow { word: "barrier", doc: "LDS fence and workgroup barrier.", ..ORDER };

pub(super) const SET_SYMBOL: OpRow = OpRow {
    word: "set_symbol",
    takes: Some(&[NodeRole::Value]),
    memory: MemoryEffect::None,
    doc: "The value of a symbol in the iterations of loops, from here to the end of the region around it.",
    ..ORDER
};

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
    /// From here to the next wait, barrier or priority, instructions stand in the order that takes the
    /// fewest clocks by what they cost, if it is in a loop. It is not an instruction.
    InterleaveByCost,
    /// A wave goes around the products that come next, if all of their factors are one that a loop has
    /// found to be one most of the time ([`UnitFactors`](crate::prelude::UnitFactors)). It is a branch.
    SkipUnitFactors,
    /// Waits until at most so many loads from global memory are under way.
    WaitForLoads(u8),
    /// Waits until at most so many accesses of LDS are under way.
    WaitForShared(u8),
}

impl Control {
    /// Their rows, in the order of the enum.
    pub(super) const ROWS: &'static [OpRow] = &[
        OpRow {
            word: "workgroup_barrier",
            doc: "Waits for all waves of the workgroup, and for no memory.",
            ..ORDER
        },
        OpRow { word: "conditional_barrier", doc: "A workgroup barrier for some of the waves.", ..ORDER },
        OpRow { word: "set_wave_priority", doc: "Priority of the wave from here on.", ..ORDER },
        OpRow { word: "scheduling_barrier", doc: "Nothing moves across.", ..ORDER },
        OpRow {
            word: "interleave_by_cost",
            doc: "Instructions up to the next wait are ordered by cost.",
            ..ORDER
        },
        OpRow {
            word: "skip_unit_factors",
            doc: "The products that come next are left out if their factors are one.",
            ..ORDER
        },
        OpRow { word: "wait_for_loads", doc: "Waits until at most so many loads are under way.", ..ORDER },
        OpRow {
            word: "wait_for_shared",
            doc: "Waits until at most so many accesses of LDS are under way.",
            ..ORDER
        },
    ];

    /// Its row.
    pub(super) const fn row(&self) -> &'static OpRow {
        match self {
            Control::WorkgroupBarrier => &Control::ROWS[0],
            Control::ConditionalBarrier(_) => &Control::ROWS[1],
            Control::SetWavePriority(_) => &Control::ROWS[2],
            Control::SchedulingBarrier => &Control::ROWS[3],
            Control::InterleaveByCost => &Control::ROWS[4],
            Control::SkipUnitFactors => &Control::ROWS[5],
            Control::WaitForLoads(_) => &Control::ROWS[6],
            Control::WaitForShared(_) => &Control::ROWS[7],
        }
    }
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
