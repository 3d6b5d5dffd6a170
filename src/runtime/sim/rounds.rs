//! Loops that never end: a wave that comes back to the same instruction with the same registers, and has
//! touched no memory on the way, goes round for ever.
//!
//! States are compared at branches that go back (Brent's algorithm): the state after so many rounds as a
//! power of two is remembered, and every later one is compared with it. Most loops touch memory or change a
//! scalar register in every round, so that next to nothing is compared.

use super::stats::Class;
use super::wave::{Row, Wave};

/// Rounds without an effect before states are compared.
const PATIENCE: u64 = 1024;

/// What a wave has done since it last touched memory.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Branches that went back.
    taken: u64,
    remembered: Option<Box<State>>,
}

/// Everything that decides what a wave does next, memory aside.
#[derive(Debug)]
struct State {
    scalars: [u32; 128],
    others: (usize, bool, u32, u32),
    rows: Vec<Row>,
}

impl State {
    fn of(w: &Wave) -> State {
        State { scalars: w.s, others: others(w), rows: w.rows.clone() }
    }

    fn is(&self, w: &Wave) -> bool {
        self.scalars == w.s && self.others == others(w) && self.rows == w.rows
    }
}

fn others(w: &Wave) -> (usize, bool, u32, u32) {
    (w.pc, w.scc, w.mode, w.trap_status)
}

impl Rounds {
    /// The wave has done something that a comparison of registers does not show.
    #[inline(always)]
    pub fn reset(&mut self) {
        self.taken = 0;
    }

    /// A branch has gone back; true if the wave will do the same for ever.
    #[inline]
    pub fn back(&mut self, w: &Wave) -> bool {
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
            self.remembered = Some(Box::new(State::of(w)));
        }
        false
    }
}

/// True if an instruction of that class may do or see what registers do not show.
pub(super) fn has_effect(class: Class) -> bool {
    !matches!(class, Class::Mfma | Class::Valu | Class::Salu | Class::Branch | Class::Wait | Class::Nop)
}
