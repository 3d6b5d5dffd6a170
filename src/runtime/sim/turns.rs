//! Turns of waves: how far a wave goes before the others do, and whether it waits for one of them.
//!
//! A wave that comes back to an instruction with the registers that it had there before, and that has stored
//! nothing in between, does the same again until somebody else changes memory. So it waits, and there is no
//! use in letting it go on now. Loops that count their trips or read a clock are not found out; they get
//! their turns like all other waves. States are compared in a few instructions at the end of a turn, so that
//! waves that compute pay nothing for it.
//!
//! The turn of a wave that computes is cut into pieces, so that the waves of a workgroup stay together as
//! [`WaveOrder`](super::wave_order::WaveOrder) says; a wave that waits has a short one.

use std::ops::Range;

use crate::codegen::isa::Meaning;

use super::error::{FaultKind, Stopped};
use super::execute::{ExecutionContext, Footprint, MemorySpace, footprints, run, step};
use super::program::{Action, Step};
use super::rounds::{WaveState, has_effect};
use super::stats::InstructionClass;
use super::wave::{Progress, Wave};

/// How a turn has ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum TurnEnd {
    /// The wave is at a barrier or has ended.
    Stopped,
    /// It could go on.
    UsedUp,
    /// Only what others store could get it any further.
    Waits,
    /// Likewise, and it is where it was when it waited the last time.
    WaitsStill,
}

/// Instructions of a wave's turn: at first and as long as it uses them, and when it has just waited.
const LONGEST: u64 = 1 << 16;
const SHORTEST: u64 = 1 << 7;
/// Instructions at the end of a turn in which states are compared; and after every [`LONG_PROBE_AFTER`]
/// instructions, for loops whose states repeat less often.
const PROBE: u64 = 1 << 9;
const LONG_PROBE: u64 = 1 << 14;
const LONG_PROBE_AFTER: u64 = 1 << 22;

/// How long the turns of a wave are.
#[derive(Debug)]
pub(super) struct Pace {
    instructions: u64,
    /// Instructions that it has executed when its turn begins and when it ends.
    turn: Range<u64>,
    /// The fingerprint of its state when it waited the last time.
    waited: Option<u64>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { instructions: LONGEST, turn: 0..0, waited: None }
    }
}

/// What is remembered of a wave while its states are compared. Kept for the sake of its memory.
#[derive(Default)]
pub(super) struct Probe {
    state: WaveState,
    footprints: Vec<Footprint>,
}

impl Pace {
    /// The turn of a wave begins.
    pub(super) fn begin(&mut self, wave: &Wave) {
        self.turn = wave.executed..wave.executed.saturating_add(self.instructions);
    }

    /// Lets a wave go on for that many instructions of its turn; none if there is more of it.
    pub(super) fn go_on(
        &mut self,
        wave: &mut Wave,
        instructions: u64,
        probe: &mut Probe,
        context: &mut ExecutionContext<'_>,
    ) -> Result<Option<TurnEnd>, Stopped> {
        let budget = context.budget;
        context.budget = budget.min(self.turn.end).min(wave.executed.saturating_add(instructions));
        let result = run(wave, context);
        context.budget = budget;
        match result {
            Err(Stopped { kind: FaultKind::Budget(_), .. }) if wave.executed < budget => {}
            result => return result.map(|()| Some(TurnEnd::Stopped)),
        }
        if wave.executed < self.turn.end {
            return Ok(None);
        }
        self.ends(wave, probe, context).map(Some)
    }

    /// The turn of a wave is used up.
    fn ends(
        &mut self,
        wave: &mut Wave,
        probe: &mut Probe,
        context: &mut ExecutionContext<'_>,
    ) -> Result<TurnEnd, Stopped> {
        let is_due = self.turn.start / LONG_PROBE_AFTER != wave.executed / LONG_PROBE_AFTER;
        let end = probe.compare(wave, context, if is_due { LONG_PROBE } else { PROBE })?;
        if end != TurnEnd::Waits {
            self.instructions = (2 * self.instructions).min(LONGEST);
            return Ok(end);
        }
        self.instructions = SHORTEST;
        let before = self.waited.replace(probe.state.fingerprint());
        Ok(if before == self.waited { TurnEnd::WaitsStill } else { end })
    }
}

/// What the instructions since a remembered state have done.
#[derive(Copy, Clone, Default)]
struct Done {
    /// They have accessed something that registers do not show.
    accessed: bool,
    /// They have stored to private memory.
    stored_privately: bool,
}

impl Probe {
    /// Executes some instructions, and finds out whether they lead back to where they began.
    fn compare(
        &mut self,
        wave: &mut Wave,
        context: &mut ExecutionContext<'_>,
        instructions: u64,
    ) -> Result<TurnEnd, Stopped> {
        let (mut trips, mut done, mut is_remembered) = (0u64, Done::default(), false);
        for _ in 0..instructions {
            let at = wave.pc;
            if let Some(next) = context.program.steps.get(at).filter(|step| has_effect(step.class)) {
                done.accessed = true;
                match self.stores(wave, next)? {
                    None => {}
                    Some(MemorySpace::Private) => done.stored_privately = true,
                    Some(MemorySpace::Lds | MemorySpace::Device) => is_remembered = false,
                }
            }
            step(wave, context)?;
            if wave.progress != Progress::Running {
                return Ok(TurnEnd::Stopped);
            }
            if wave.pc > at {
                continue;
            }
            if is_remembered
                && self.state.is(wave)
                && (!done.stored_privately || self.state.has_private(wave))
            {
                return if done.accessed {
                    Ok(TurnEnd::Waits)
                } else {
                    Err(Stopped::wave(FaultKind::NoProgress))
                };
            }
            trips += 1;
            if trips.is_power_of_two() {
                self.state.remember(wave);
                // Only for loops that store to it, as there may be a lot of it.
                if done.stored_privately {
                    self.state.remember_private(wave);
                }
                (done, is_remembered) = (Done::default(), true);
            }
        }
        Ok(TurnEnd::UsedUp)
    }

    /// The memory that an instruction stores to; none if the wave itself would see in its registers what the
    /// instruction has changed, as it does for an atomic that returns what was there.
    fn stores(&mut self, wave: &Wave, step: &Step) -> Result<Option<MemorySpace>, Stopped> {
        let (Action::Do(meaning) | Action::Adjusted(meaning)) = step.action else { return Ok(None) };
        let stores = match step.class {
            InstructionClass::LdsWrite | InstructionClass::GlobalStore => true,
            InstructionClass::Atomic => !matches!(meaning, Meaning::AtomicReturn(..)),
            _ => false,
        };
        if !stores {
            return Ok(None);
        }
        self.footprints.clear();
        footprints(wave, step, &mut self.footprints)?;
        let shared = self.footprints.iter().find(|footprint| footprint.space != MemorySpace::Private);
        Ok(shared.or(self.footprints.first()).map(|footprint| footprint.space))
    }
}
