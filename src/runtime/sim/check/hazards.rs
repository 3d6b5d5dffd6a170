//! Wait states along the executed path: for every wave, the instructions that it executed last, with the wait
//! states between them.
//!
//! Most code runs straight ahead, and there the instructions before a given one are always the same; that is
//! judged once per instruction. Only close after a taken branch is the path walked back, with remembered
//! answers of the rules.

use crate::codegen::rules::{Between, FARTHEST, InstructionView, required};

use super::facts::{InstructionFacts, Table};

/// Recent steps of one wave.
pub(super) struct Window {
    /// A ring.
    recent: [RecentStep; RECENT],
    count: usize,
    /// Wait states so far.
    clock: u32,
    /// Wait states when control last did not go straight ahead.
    jumped: u32,
}

/// A step that was executed.
#[derive(Copy, Clone)]
struct RecentStep {
    step: u32,
    /// The number of wait states when it had been executed.
    clock: u32,
    /// The number of wait states from which on no rule asks for more after it.
    until: u32,
    /// The same after it and all steps before it.
    all_until: u32,
    /// See [`InstructionFacts::passes_by`].
    passes_by: [bool; 2],
}

/// More steps than any rule asks for wait states.
const RECENT: usize = 32;

/// Answers of the rules.
pub(super) struct Answers {
    /// Pair of steps and what is between them, and the answer.
    known: Vec<(u64, u32)>,
}

/// An instruction that comes too soon.
pub(super) struct TooSoon {
    pub first: u32,
    pub needed: u32,
    pub present: u32,
}

impl Answers {
    /// None yet.
    pub(super) fn new() -> Answers {
        Answers { known: vec![(u64::MAX, 0); 4096] }
    }

    fn required(&mut self, table: &Table, first: u32, then: u32, between: Between) -> u32 {
        let bits = u64::from(between.dgemm) | u64::from(between.acc) << 1;
        let key = u64::from(first) << 32 | u64::from(then) << 2 | bits;
        let place =
            (first.wrapping_mul(0x9e37) ^ then.wrapping_mul(5) ^ bits as u32) as usize % self.known.len();
        if self.known[place].0 != key {
            self.known[place] = (key, ask(table, first, then, between));
        }
        self.known[place].1
    }
}

fn ask(table: &Table, first: u32, then: u32, between: Between) -> u32 {
    let inst = |step: u32| table.facts[step as usize].inst.as_ref();
    let (Some(first), Some(then)) = (inst(first), inst(then)) else { return 0 };
    let (first, then) = (InstructionView::new(first, false), InstructionView::new(then, false));
    required(&first, &then, between, table.arch)
}

/// The worst of the instructions before `then` in the order of the code, if any is too close.
pub(super) fn straight(table: &Table, answers: &mut Answers, then: u32) -> Option<TooSoon> {
    let mut states = 0;
    let mut between = Between::default();
    for first in (0..then).rev() {
        let facts = &table.facts[first as usize];
        if states >= FARTHEST {
            break;
        }
        if facts.reach > states {
            let needed = answers.required(table, first, then, between);
            if needed > states {
                return Some(TooSoon { first, needed, present: states });
            }
        }
        states += facts.states;
        between.dgemm |= facts.passes_by[0];
        between.acc |= facts.passes_by[1];
    }
    None
}

impl Window {
    /// Nothing executed.
    pub(super) fn new() -> Window {
        // At the entry nothing is pending: the instructions before it in memory have not been executed.
        let none = RecentStep { step: 0, clock: 0, until: 0, all_until: 0, passes_by: [false; 2] };
        Window { recent: [none; RECENT], count: 0, clock: FARTHEST, jumped: FARTHEST }
    }

    /// True if everything close enough to matter directly precedes the next step.
    #[inline(always)]
    pub(super) fn is_straight(&self) -> bool {
        self.clock - self.jumped >= FARTHEST
    }

    /// The first instruction on the way back that `then` follows too soon.
    pub(super) fn too_soon(&self, table: &Table, answers: &mut Answers, then: u32) -> Option<TooSoon> {
        let mut between = Between::default();
        for back in 1..=self.count.min(RECENT) {
            let RecentStep { step: first, clock, until, all_until, passes_by } =
                self.recent[(self.count - back) % RECENT];
            let present = self.clock - clock;
            if present >= FARTHEST || all_until <= self.clock {
                break;
            }
            if until > self.clock {
                let needed = answers.required(table, first, then, between);
                if needed > present {
                    return Some(TooSoon { first, needed, present });
                }
            }
            between.dgemm |= passes_by[0];
            between.acc |= passes_by[1];
        }
        None
    }

    /// A step has been executed.
    #[inline(always)]
    pub(super) fn executed(&mut self, step: u32, facts: &InstructionFacts, jumps: bool) {
        let before = self.recent[self.count.wrapping_sub(1) % RECENT].all_until;
        self.clock = self.clock.wrapping_add(facts.states);
        let (clock, passes_by, until) = (self.clock, facts.passes_by, self.clock + facts.reach);
        self.recent[self.count % RECENT] =
            RecentStep { step, clock, until, all_until: before.max(until), passes_by };
        self.count += 1;
        if jumps {
            self.jumped = self.clock;
        }
        if self.clock > u32::MAX / 2 {
            self.rebase();
        }
    }

    #[cold]
    fn rebase(&mut self) {
        let by = self.clock - 2 * FARTHEST;
        self.clock -= by;
        self.jumped = self.jumped.saturating_sub(by);
        for recent in &mut self.recent {
            for clock in [&mut recent.clock, &mut recent.until, &mut recent.all_until] {
                *clock = clock.saturating_sub(by);
            }
        }
    }
}
