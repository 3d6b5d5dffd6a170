//! Loops that never end: a wave that comes back to the same instruction with the same registers, and has
//! accessed no memory in between, loops for ever.
//!
//! States are compared at backward branches (Brent's algorithm): the state after each power of two of trips
//! is remembered, and every later one is compared with it. Most loops access memory or change a scalar
//! register on every trip, so that next to nothing is compared.

use super::stats::InstructionClass;
use super::wave::{VectorRow, Wave};

/// Trips without an effect before states are compared.
const PATIENCE: u64 = 1024;

/// What a wave has done since it last accessed memory.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Branches that went back.
    taken: u64,
    remembered: Option<Box<WaveState>>,
}

/// Everything that decides what a wave does next, except memory.
#[derive(Debug)]
struct WaveState {
    scalars: [u32; 128],
    others: (usize, bool, u32, u32),
    rows: Vec<VectorRow>,
}

impl WaveState {
    fn of(w: &Wave) -> WaveState {
        WaveState { scalars: w.s, others: others(w), rows: w.rows.clone() }
    }

    fn is(&self, w: &Wave) -> bool {
        self.scalars == w.s && self.others == others(w) && self.rows == w.rows
    }
}

fn others(w: &Wave) -> (usize, bool, u32, u32) {
    (w.pc, w.scc, w.mode, w.trap_status)
}

impl Rounds {
    /// To be called when the wave has done something that a comparison of registers does not show.
    #[inline(always)]
    pub(super) fn reset(&mut self) {
        self.taken = 0;
    }

    /// A branch has gone back; true if the wave will do the same for ever.
    #[inline]
    pub(super) fn back(&mut self, w: &Wave) -> bool {
        self.taken += 1;
        self.taken >= PATIENCE && self.compare(w)
    }

    #[cold]
    fn compare(&mut self, w: &Wave) -> bool {
        let known = self.remembered.as_ref().filter(|_| self.taken > PATIENCE);
        if known.is_some_and(|state| state.is(w)) {
            return true;
        }
        if self.taken.is_power_of_two() {
            self.remembered = Some(Box::new(WaveState::of(w)));
        }
        false
    }
}

/// True if an instruction of that class may have or see effects that registers do not show.
pub(super) fn has_effect(class: InstructionClass) -> bool {
    !matches!(
        class,
        InstructionClass::Mfma
            | InstructionClass::Valu
            | InstructionClass::Salu
            | InstructionClass::Branch
            | InstructionClass::Wait
            | InstructionClass::Nop
    )
}
