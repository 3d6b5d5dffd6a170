//! Waves that wait for what another one stores, and would only look again: they are left alone until what
//! they look at has changed.
//!
//! A wave that comes back to an access that waits (`polls`) with the registers that it had there before, and
//! that others have seen nothing of in between, does the same again as long as the memory that it has loaded
//! from holds the same. Of that memory the words are remembered, and one more trip shows that they stayed
//! what they were while it looked. Loops that count their trips or read a clock are not found out; they get
//! their turns like all other waves. To leave a wave alone is an order of waves like another, so no finding
//! depends on it.
//!
//! If nobody else can go on, more workgroups begin.

use crate::codegen::isa::Meaning;

use super::super::error::MemoryAccess;
use super::super::execute::{Footprint, Lds, MemorySpace};
use super::super::memory::MemoryView;
use super::super::rounds::WaveState;
use super::super::wave::Wave;
use super::facts::InstructionFacts;

/// The most words that are remembered of a wave.
const MOST_WORDS: usize = 256;
/// Visits to accesses that wait before a wave is left alone again that was woken in vain: the first time, and
/// at most. Such waves wait for the host, or for ever, until a limit stops them.
const LEAST_PATIENCE: u64 = 16;
const MOST_PATIENCE: u64 = 1 << 16;

/// How far it is known that a wave only looks.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum PollingStage {
    /// It is not known.
    #[default]
    Open,
    /// One trip has changed nothing.
    Repeats,
    /// One more has not either: it is left alone.
    Parked,
}

/// What is known of a wave's looking at memory.
#[derive(Debug, Default)]
pub(super) struct Polling {
    stage: PollingStage,
    /// Accesses that wait, since it has last done something else that others see.
    visits: u64,
    /// Visits before states are compared.
    patience: u64,
    state: WaveState,
    is_remembered: bool,
    /// It has stored to private memory.
    stored_privately: bool,
    /// Words that it has loaded since its state was remembered, in order, and what they held.
    places: Vec<(bool, u64)>,
    held: Vec<u32>,
    /// Where the last of them was found.
    hint: usize,
}

impl Polling {
    /// Nothing is known, as of a wave that has just begun or has done something that others see.
    #[inline]
    pub(super) fn reset(&mut self) {
        if self.visits > 0 {
            (self.stage, self.visits, self.patience) = (PollingStage::Open, 0, 0);
            (self.is_remembered, self.stored_privately) = (false, false);
            self.places.clear();
        }
    }

    /// True if the wave is left alone.
    #[inline]
    pub(super) fn is_parked(&self) -> bool {
        self.stage == PollingStage::Parked
    }

    /// True if what it accesses has to be noted.
    #[inline]
    pub(super) fn is_followed(&self) -> bool {
        self.visits > 0
    }

    /// The wave has come to an access that waits, with nothing in flight that has yet to take effect; true if
    /// it is to be left alone from now on.
    #[cold]
    pub(super) fn comes_to_wait(&mut self, wave: &Wave, memory: &MemoryView<'_>, lds: &Lds) -> bool {
        self.visits += 1;
        if self.visits < self.patience {
            return false;
        }
        let is_back = self.is_remembered
            && self.state.is(wave)
            && (!self.stored_privately || self.state.has_private(wave));
        if is_back {
            let has_stayed = self.holds_still(memory, lds);
            self.stage = match self.stage {
                PollingStage::Repeats if has_stayed => PollingStage::Parked,
                _ => PollingStage::Repeats,
            };
            if !has_stayed {
                self.hold(memory, lds);
            }
        } else if self.visits.is_power_of_two() {
            self.state.remember(wave);
            // Only of waves that store to it, as there may be a lot of it.
            if self.stored_privately {
                self.state.remember_private(wave);
            }
            (self.stage, self.is_remembered) = (PollingStage::Open, true);
            self.places.clear();
            self.held.clear();
        }
        self.is_parked()
    }

    /// Notes what an instruction is about to access.
    #[cold]
    pub(super) fn note(&mut self, found: &[Footprint], facts: &InstructionFacts) {
        let returns =
            facts.inst.as_ref().is_some_and(|i| matches!(i.op.info().meaning, Meaning::AtomicReturn(..)));
        for footprint in found.iter().filter(|footprint| footprint.lanes != 0) {
            match (footprint.space, footprint.access) {
                (MemorySpace::Private, MemoryAccess::Load) => {}
                (MemorySpace::Private, _) => {
                    // What was remembered before does not say what it held.
                    self.is_remembered &= self.stored_privately;
                    self.stored_privately = true;
                }
                (space, MemoryAccess::Load) => self.note_words(footprint, space),
                // An atomic that returns what was there shows in registers what it changes.
                (space, MemoryAccess::Atomic) if returns => self.note_words(footprint, space),
                _ => return self.reset(),
            }
        }
        if self.places.len() > MOST_WORDS {
            self.reset();
        }
    }

    fn note_words(&mut self, footprint: &Footprint, space: MemorySpace) {
        let mut last = None;
        for lane in (0..64).filter(|lane| footprint.lanes >> lane & 1 != 0) {
            let start = footprint.address[lane];
            let end = start.saturating_add(footprint.bytes[lane].into());
            if last.replace((start, end)) == Some((start, end)) {
                continue;
            }
            for word in start / 4..end.div_ceil(4) {
                let place = (space == MemorySpace::Lds, 4 * word);
                if let Err(at) = self.places.binary_search(&place) {
                    self.places.insert(at, place);
                }
            }
        }
    }

    /// True if the words hold what they held.
    fn holds_still(&mut self, memory: &MemoryView<'_>, lds: &Lds) -> bool {
        let Polling { places, held, hint, .. } = self;
        places.len() == held.len()
            && places.iter().zip(&*held).all(|(&place, &held)| word(place, memory, lds, hint) == held)
    }

    fn hold(&mut self, memory: &MemoryView<'_>, lds: &Lds) {
        let Polling { places, held, hint, .. } = self;
        held.clear();
        held.extend(places.iter().map(|&place| word(place, memory, lds, hint)));
    }

    /// True if a wave that is left alone has still nothing to do; if not, it goes on.
    pub(super) fn waits_still(&mut self, memory: &MemoryView<'_>, lds: &Lds) -> bool {
        let stays = self.holds_still(memory, lds);
        if !stays {
            self.reset();
        }
        stays
    }

    /// The wave goes on though nothing has changed, because nobody else can.
    pub(super) fn goes_on_in_vain(&mut self) {
        let patience = (2 * self.patience).clamp(LEAST_PATIENCE, MOST_PATIENCE);
        self.reset();
        (self.visits, self.patience) = (1, patience);
    }
}

/// A word of LDS, or of device memory; what lies outside of that never changes.
fn word((is_lds, address): (bool, u64), memory: &MemoryView<'_>, lds: &Lds, hint: &mut usize) -> u32 {
    if is_lds {
        let inside = address + 4 <= u64::from(lds.bytes());
        return if inside { lds.load(address as u32, 4) } else { 0 };
    }
    memory.find(hint, address, 4).map_or(0, |(allocation, offset)| allocation.load(offset, 4))
}
