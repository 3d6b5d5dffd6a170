//! Wait states along the executed path: for every wave, the instructions that it executed last, with the wait
//! states between them.
//!
//! Most code runs straight ahead, and there the instructions before a given one are always the same; that is
//! judged once per instruction. Only close after a taken branch is the path walked back, with remembered
//! answers of the rules, and only if something in front of the branch asks for more wait states still. So a
//! wave notes where it jumps, and nothing for each instruction.

use crate::codegen::rules::{Between, FARTHEST, InstructionView, required, undisputed};

use super::facts::{InstructionFacts, Table};

/// The path of one wave up to now: what it went through straight ahead between its last jumps.
pub(super) struct Window {
    /// A ring.
    recent: [StraightRun; RECENT],
    count: usize,
    /// The step that the last jump led to, or the first one.
    landed: u32,
    /// Nothing in front of that step asks for wait states of a step at this position or after it, among
    /// those that follow straight ahead.
    until: u32,
    /// The same, or 0 if it has turned out that nothing in front asks for wait states of those that follow
    /// straight ahead. After another jump others may follow.
    checked_until: u32,
}

/// Steps that were executed one after the other, up to a jump.
#[derive(Copy, Clone, Default)]
struct StraightRun {
    first: u32,
    last: u32,
}

/// More jumps than any rule asks for wait states.
const RECENT: usize = 32;

/// Answers of the rules.
pub(super) struct Answers {
    /// Pair of steps and what is between them, and the answer.
    known: Vec<(u64, WaitStates)>,
    /// Jumps as pairs of steps, and whether nothing that leads straight to the first one asks for wait states
    /// of what follows the second one.
    jumps: Vec<(u64, bool)>,
}

/// Wait states between two instructions: as many as anybody asks for, and those that nobody disputes.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
struct WaitStates {
    needed: u32,
    undisputed: u32,
}

/// An instruction that comes too soon.
#[derive(Copy, Clone)]
pub(super) struct TooSoon {
    pub first: u32,
    pub needed: u32,
    /// Of those, the ones that nobody disputes.
    pub undisputed: u32,
    pub present: u32,
}

impl TooSoon {
    /// True if there are as many wait states as nobody disputes.
    pub(super) fn is_tolerated(&self) -> bool {
        self.present >= self.undisputed
    }
}

impl Answers {
    /// None yet.
    pub(super) fn new() -> Answers {
        Answers { known: vec![(u64::MAX, WaitStates::default()); 4096], jumps: vec![(u64::MAX, false); 1024] }
    }

    /// True if no step after the jump comes too soon, provided that everything in front of it that could
    /// matter lies straight in front of it.
    fn is_harmless(&mut self, table: &Table, from: u32, to: u32) -> bool {
        let key = u64::from(from) << 32 | u64::from(to);
        let place = hash(key) as usize % self.jumps.len();
        if self.jumps[place].0 != key {
            let mut path = Window::new(0);
            path.follow(table, from, to);
            let is_near = |then: &u32| table.facts.get(*then as usize).is_some_and(|f| !path.is_straight(f));
            let mut near = (to..).take_while(is_near);
            let is_harmless = near.all(|then| path.too_soon(table, self, then).is_none());
            self.jumps[place] = (key, is_harmless);
        }
        self.jumps[place].1
    }

    fn required(&mut self, table: &Table, first: u32, then: u32, between: Between) -> WaitStates {
        let bits = u64::from(between.dgemm) | u64::from(between.acc) << 1;
        let key = u64::from(first) << 32 | u64::from(then) << 2 | bits;
        let place = hash(key) as usize % self.known.len();
        if self.known[place].0 != key {
            self.known[place] = (key, ask(table, first, then, between));
        }
        self.known[place].1
    }
}

/// The upper bits of the product depend on all of the key.
fn hash(key: u64) -> u32 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

fn ask(table: &Table, first: u32, then: u32, between: Between) -> WaitStates {
    let inst = |step: u32| table.facts[step as usize].inst.as_ref();
    let (Some(first), Some(then)) = (inst(first), inst(then)) else { return WaitStates::default() };
    let (first, then) = (InstructionView::new(first, false), InstructionView::new(then, false));
    let needed = required(&first, &then, between, table.arch);
    let undisputed = if needed == 0 { 0 } else { undisputed(&first, &then, between, table.arch) };
    WaitStates { needed, undisputed }
}

/// The first of the instructions before `then` in the order of the code that is too close, on the way back.
pub(super) fn straight(table: &Table, answers: &mut Answers, then: u32) -> Option<TooSoon> {
    too_soon((0..then).rev(), table, answers, then)
}

/// The first of the instructions on the way back that `then` follows too soon; one that is tolerated only if
/// there is no other.
fn too_soon(
    back: impl Iterator<Item = u32>,
    table: &Table,
    answers: &mut Answers,
    then: u32,
) -> Option<TooSoon> {
    let mut way = WayBack::default();
    let mut tolerated = None;
    for first in back {
        if way.states >= FARTHEST {
            break;
        }
        match way.step(table, answers, first, then) {
            Some(found) if found.is_tolerated() => tolerated = tolerated.or(Some(found)),
            Some(found) => return Some(found),
            None => {}
        }
    }
    tolerated
}

impl Window {
    /// Nothing executed before `entry`: the instructions before it in memory have not been.
    pub(super) fn new(entry: u32) -> Window {
        let recent = [StraightRun::default(); RECENT];
        Window { recent, count: 0, landed: entry, until: 0, checked_until: 0 }
    }

    /// The step from which on everything has been executed in one go.
    pub(super) fn landed(&self) -> u32 {
        self.landed
    }

    /// True if only instructions directly in front of the step with these facts matter to it.
    #[inline(always)]
    pub(super) fn is_straight(&self, facts: &InstructionFacts) -> bool {
        facts.wait_states.position >= self.checked_until
    }

    /// The first instruction on the way back that `then` follows too soon.
    pub(super) fn too_soon(&self, table: &Table, answers: &mut Answers, then: u32) -> Option<TooSoon> {
        let jumps = (1..=self.count.min(RECENT)).map(|back| self.recent[(self.count - back) % RECENT]);
        let own = self.landed..then;
        let stretches = std::iter::once(own).chain(jumps.map(|stretch| stretch.first..stretch.last + 1));
        too_soon(stretches.flat_map(|steps| steps.rev()), table, answers, then)
    }

    /// The step `from` has led to `to` instead of the one after it.
    pub(super) fn jumped(&mut self, table: &Table, answers: &mut Answers, from: u32, to: u32) {
        let end = table
            .facts
            .get(from as usize)
            .map_or(0, |facts| facts.wait_states.position + facts.wait_states.states);
        let is_harmless = self.until <= end && answers.is_harmless(table, from, to);
        self.follow(table, from, to);
        if is_harmless {
            self.checked_until = 0;
        }
    }

    fn follow(&mut self, table: &Table, from: u32, to: u32) {
        let Some(facts) = table.facts.get(from as usize) else { return };
        let end = facts.wait_states.position + facts.wait_states.states;
        let left = facts.wait_states.pending.max(self.until.saturating_sub(end));
        self.recent[self.count % RECENT] = StraightRun { first: self.landed, last: from };
        self.count += 1;
        self.landed = to;
        self.until = table.facts.get(to as usize).map_or(0, |facts| facts.wait_states.position + left);
        self.checked_until = self.until;
    }
}

/// The instructions that have been passed on the way back from one.
#[derive(Default)]
struct WayBack {
    states: u32,
    between: Between,
}

impl WayBack {
    /// Passes `first`; says so if `then` follows it too soon.
    fn step(&mut self, table: &Table, answers: &mut Answers, first: u32, then: u32) -> Option<TooSoon> {
        let facts = table.facts.get(first as usize)?;
        let present = self.states;
        let mut found = None;
        if facts.wait_states.reach > present {
            let WaitStates { needed, undisputed } = answers.required(table, first, then, self.between);
            if needed > present {
                found = Some(TooSoon { first, needed, undisputed, present });
            }
        }
        self.states += facts.wait_states.states;
        self.between.dgemm |= facts.wait_states.passes_by[0];
        self.between.acc |= facts.wait_states.passes_by[1];
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::random::Random;
    use super::*;
    use crate::codegen::isa::{Arch, Inst, decode};
    use crate::codegen::rules::pending;

    /// Instructions that use few registers, so that many of them use the same.
    fn some(arch: Arch, random: &mut Random) -> Vec<Inst> {
        let few = [0xff80_0703, 0xf80e_0703];
        let words = std::iter::repeat_with(|| {
            let both = random.next();
            [both as u32 & few[0], (both >> 32) as u32 & few[1] | 0x0402_0100, 0, 0]
        });
        words.take(4000).filter_map(|words| Some(decode(&words, arch).ok()?.0)).take(400).collect()
    }

    #[test]
    fn no_rule_asks_for_more_than_is_pending() {
        let mut pairs = 0;
        for arch in Arch::ALL {
            let insts = some(arch, &mut Random::new(1, 1));
            let views: Vec<InstructionView> = insts.iter().map(|i| InstructionView::new(i, false)).collect();
            for first in &views {
                let most = pending(first, arch);
                for (then, bits) in views.iter().zip((0..4).cycle()) {
                    let between = Between { dgemm: bits & 1 != 0, acc: bits & 2 != 0 };
                    let needed = required(first, then, between, arch);
                    assert!(needed <= most, "{:?}, {:?}: {needed} of {most}", first.inst, then.inst);
                    pairs += usize::from(needed != 0);
                }
            }
        }
        assert!(pairs > 100, "{pairs}");
    }
}
