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

/// Everything that decides what a wave does next, except memory that it shares.
#[derive(Debug)]
pub(super) struct WaveState {
    scalars: [u32; 128],
    others: (usize, bool, u32, u32),
    rows: Vec<VectorRow>,
    /// Private memory, if that was asked for.
    private: Option<Vec<u32>>,
}

impl Default for WaveState {
    fn default() -> WaveState {
        WaveState { scalars: [0; 128], others: (0, false, 0, 0), rows: Vec::new(), private: None }
    }
}

impl WaveState {
    /// Becomes that of a wave, without private memory.
    pub(super) fn remember(&mut self, w: &Wave) {
        (self.scalars, self.others) = (w.s, others(w));
        self.rows.clone_from(&w.rows);
        self.private = None;
    }

    /// Remembers private memory, too.
    pub(super) fn remember_private(&mut self, w: &Wave) {
        self.private = Some(w.private.clone());
    }

    /// True if the registers of the wave are these.
    pub(super) fn is(&self, w: &Wave) -> bool {
        self.scalars == w.s && self.others == others(w) && self.rows == w.rows
    }

    /// A number that two states have in common by chance only.
    pub(super) fn fingerprint(&self) -> u64 {
        // Multiplication by an odd number and rotation lose nothing of what came before.
        let add = |sum: u64, word: &u32| {
            (sum.rotate_left(23) ^ u64::from(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let (pc, scc, mode, trap_status) = self.others;
        let others = [pc as u32, scc.into(), mode, trap_status];
        others.iter().chain(&self.scalars).chain(self.rows.as_flattened()).fold(0, add)
    }

    /// True if its private memory was remembered and is the same still.
    pub(super) fn has_private(&self, w: &Wave) -> bool {
        self.private.as_ref().is_some_and(|private| *private == w.private)
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
            self.remembered.get_or_insert_default().remember(w);
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
