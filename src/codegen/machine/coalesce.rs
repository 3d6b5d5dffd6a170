//! Removes copies: registers that a copy connects and that never hold different values at once become one
//! register, or one a part of the other.
//!
//! A tuple that is put together or taken apart by moves thus takes its parts from where they are made and
//! leaves them where they are used. A matrix instruction ties its accumulator in the same way: if C ends
//! where D begins, both are one. Copies in inner loops come first. What cannot be joined (because a place is
//! given, or the values overlap on one path) is left as a hint: the placer takes the same place if it happens
//! to be free.
//!
//! Two registers can be joined if no part holds a value of both at any position. A copy reads before it
//! writes, so a source that ends in the copy is no obstacle.

use super::access::as_copy;
use super::body::Body;
use super::liveness::{Liveness, NONE, Segment};
use super::loops::Loops;
use super::place::alignment;
use crate::codegen::isa::{Inst, Meaning, Operand};

/// Two virtual operands that should be in the same place.
#[derive(Copy, Clone)]
struct Affinity {
    weight: u64,
    inst: u32,
    /// The registers, and how much higher the place of the second one is.
    a: u32,
    b: u32,
    offset: i32,
    /// First parts of the two operands.
    firsts: [u32; 2],
    /// For C and D of a matrix instruction: where, and in which parts (counted from the start of the
    /// operand), both may hold a value.
    shared: Option<Shared>,
}

/// A position at which two registers may hold values in the same parts, which are one operand of each.
#[derive(Copy, Clone)]
struct Shared {
    position: u32,
    parts: u32,
}

/// Another register whose place would make a copy unnecessary: own place = place of `other` + `offset`.
#[derive(Copy, Clone, Debug)]
pub(super) struct Hint {
    /// The register.
    pub other: u32,
    /// Difference of the places.
    pub offset: i32,
    next: u32,
}

/// What has been joined, and hints for the rest.
#[derive(Default)]
pub(super) struct Coalescer {
    affinities: Vec<Affinity>,
    /// The register that each register was joined to, and the part of it at which it starts; the register
    /// itself if it was not joined.
    parents: Vec<(u32, u32)>,
    /// Registers that were joined to another, in this order.
    joined: Vec<u32>,
    /// First hint of each register, most important first.
    first_hint: Vec<u32>,
    hints: Vec<Hint>,
    merged: Vec<Segment>,
    /// The last segment of each register, or [`NONE`] if it has not been looked up.
    lasts: Vec<u32>,
    /// The segment before each one, or [`NONE`]: known for registers whose last one is.
    previous: Vec<u32>,
    /// Of each register, the segment that was looked at last: the next look is mostly near to it.
    fingers: Vec<u32>,
    /// Registers that are C or D of a matrix instruction.
    accumulates: Vec<bool>,
    /// Steps that joining has taken, and may take: long histories are not walked again and again.
    steps: usize,
    most_steps: usize,
    /// Steps to the roots of registers and along their segments, which nothing has to bound: they are few.
    walked: usize,
}

/// Whether registers are joined or only get hints.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Joining {
    /// Joined where possible.
    Join,
    /// Left apart, which makes placing easier when there is little room.
    HintOnly,
}

impl Coalescer {
    /// Joins registers of `body`: the segments in `liveness` of a joined register move to the one it is part
    /// of.
    pub(super) fn join(
        &mut self,
        body: &Body,
        liveness: &mut Liveness,
        loops: &Loops,
        is_fixed: impl Fn(u32) -> bool,
        joining: Joining,
    ) {
        self.collect(body, loops, &liveness.operands.connecting);
        self.start(body, liveness);
        self.first_hint.clear();
        self.hints.clear();
        if self.affinities.is_empty() {
            return;
        }
        self.first_hint.resize(body.registers.len(), NONE);
        self.affinities.sort_unstable_by_key(|a| (std::cmp::Reverse(a.weight), a.inst));
        for index in 0..self.affinities.len() {
            let affinity = self.affinities[index];
            let fixed = is_fixed(affinity.a) || is_fixed(affinity.b);
            if joining == Joining::Join && !fixed {
                self.try_join(body, liveness, &affinity);
            }
        }
        self.shorten_paths();
        // From the least important on, since each one goes before those already there.
        for index in (0..self.affinities.len()).rev() {
            let Affinity { a, b, offset, shared, .. } = self.affinities[index];
            let ((a, a_part), (b, b_part)) = (self.root(a), self.root(b));
            if a != b && shared.is_none() {
                let offset = offset + a_part as i32 - b_part as i32;
                self.hint(b, a, offset);
                self.hint(a, b, -offset);
            }
        }
    }

    /// Joins C and D of matrix instructions, and the registers that copies connect with them, as long as no
    /// other value is in the way: the body keeps its accumulators in place. Registers of the same width are
    /// joined as a whole, to the one with the smallest number. True if any were joined.
    pub(super) fn tie(
        &mut self,
        body: &Body,
        liveness: &mut Liveness,
        loops: &Loops,
        is_fixed: impl Fn(u32) -> bool,
    ) -> bool {
        self.collect(body, loops, &liveness.operands.connecting);
        if self.affinities.iter().all(|affinity| affinity.shared.is_none()) {
            return false;
        }
        self.accumulates.clear();
        self.accumulates.resize(body.registers.len(), false);
        for affinity in self.affinities.iter().filter(|affinity| affinity.shared.is_some()) {
            self.accumulates[affinity.a as usize] = true;
            self.accumulates[affinity.b as usize] = true;
        }
        self.start(body, liveness);
        // From the last result back to what a loop carries: that has more pieces than the rest, so it is best
        // joined once.
        let order =
            |a: &Affinity| (std::cmp::Reverse(a.weight), a.shared.is_none(), std::cmp::Reverse(a.inst));
        self.affinities.sort_unstable_by_key(order);
        for index in 0..self.affinities.len() {
            let affinity = self.affinities[index];
            let Affinity { a, b, offset, shared, .. } = affinity;
            let accumulates = self.accumulates[a as usize] || self.accumulates[b as usize];
            let width = |id: u32| body.registers[id as usize].width;
            if offset != 0 || width(a) != width(b) || !accumulates || is_fixed(a) || is_fixed(b) {
                continue;
            }
            let (a, b) = (self.find(a).0, self.find(b).0);
            let (outer, inner) = (a.min(b), a.max(b));
            if outer != inner
                && !self.outlives_result(liveness, &affinity)
                && !self.interfere(liveness, outer, inner, 0, shared)
            {
                self.merge(liveness, outer, inner, 0);
                self.parents[inner as usize] = (outer, 0);
                self.joined.push(inner);
            }
        }
        self.shorten_paths();
        !self.joined.is_empty()
    }

    /// Steps taken so far, of both kinds.
    #[cfg(test)]
    pub fn steps(&self) -> usize {
        self.steps + self.walked
    }

    /// Makes every register its own root, and resets the count of steps.
    fn start(&mut self, body: &Body, liveness: &Liveness) {
        self.parents.clear();
        self.parents.extend((0..body.registers.len() as u32).map(|id| (id, 0)));
        self.joined.clear();
        self.lasts.clear();
        self.lasts.resize(body.registers.len(), NONE);
        self.most_steps = self.steps + 32 * (body.insts.len() + body.registers.len());
        self.previous.clear();
        self.previous.resize(liveness.segments.len(), NONE);
        self.fingers.clear();
        self.fingers.extend_from_slice(&liveness.first);
    }

    /// The root of a register may have been joined to another one later: going from the last to the first,
    /// each register finds its root one step away.
    fn shorten_paths(&mut self) {
        for index in (0..self.joined.len()).rev() {
            let id = self.joined[index];
            self.parents[id as usize] = self.root(id);
        }
    }

    /// The register that `id` is part of, and its first part there.
    pub(super) fn root(&self, id: u32) -> (u32, u32) {
        let (mut root, mut part) = (id, 0);
        loop {
            let (parent, first) = self.parents[root as usize];
            if parent == root {
                return (root, part);
            }
            (root, part) = (parent, part + first);
        }
    }

    /// The same, and shortens the path to it: what has been joined many times is found as fast.
    fn find(&mut self, id: u32) -> (u32, u32) {
        let (mut root, mut part) = (id, 0);
        loop {
            let (parent, first) = self.parents[root as usize];
            if parent == root {
                return (root, part);
            }
            let (above, further) = self.parents[parent as usize];
            self.parents[root as usize] = (above, first + further);
            self.walked += 1;
            (root, part) = (above, part + first + further);
        }
    }

    /// Hints for a register, most important first.
    pub(super) fn hints(&self, id: usize) -> impl Iterator<Item = Hint> + '_ {
        let mut next = self.first_hint.get(id).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let hint = *self.hints.get(next as usize)?;
            next = hint.next;
            Some(hint)
        })
    }

    fn hint(&mut self, id: u32, other: u32, offset: i32) {
        let first = &mut self.first_hint[id as usize];
        self.hints.push(Hint { other, offset, next: *first });
        *first = self.hints.len() as u32 - 1;
    }

    /// Finds what copies and matrix instructions connect; `connecting` are those instructions.
    fn collect(&mut self, body: &Body, loops: &Loops, connecting: &[u32]) {
        self.affinities.clear();
        let mut block = 0;
        for &index in connecting {
            while body.blocks[block].end <= index {
                block += 1;
            }
            let inst = &body.insts[index as usize].inst;
            let copy = as_copy(inst).map(|operands| (operands, None));
            let tied = || {
                let operands = accumulator(inst)?;
                let parts = ((1u64 << inst.width(0)) - 1) as u32;
                Some((operands, Some(Shared { position: 2 * index + 1, parts })))
            };
            let Some(((to, from), shared)) = copy.or_else(tied) else { continue };
            let (Some((a, a_first)), Some((b, b_first))) = (to.as_virtual(), from.as_virtual()) else {
                continue;
            };
            if a != b && body.registers[a as usize].file == body.registers[b as usize].file {
                let offset = a_first as i32 - b_first as i32;
                let weight = loops.weight(block);
                let firsts = [a_first, b_first];
                self.affinities.push(Affinity { weight, inst: index, a, b, offset, firsts, shared });
            }
        }
    }

    fn try_join(&mut self, body: &Body, liveness: &mut Liveness, affinity: &Affinity) {
        let ((a, a_part), (b, b_part)) = (self.find(affinity.a), self.find(affinity.b));
        // How much higher b starts.
        let offset = affinity.offset + a_part as i32 - b_part as i32;
        if a == b {
            return;
        }
        let width = |id: u32| i32::from(body.registers[id as usize].width);
        let (outer, inner, offset) = if offset >= 0 && offset + width(b) <= width(a) {
            (a, b, offset)
        } else if offset <= 0 && width(a) - offset <= width(b) {
            (b, a, -offset)
        } else {
            return;
        };
        let (file, offset) = (body.registers[inner as usize].file, offset as u32);
        let first = if outer == a { affinity.firsts[0] + a_part } else { affinity.firsts[1] + b_part };
        let shared = affinity.shared.map(|s| Shared { parts: s.parts << first, ..s });
        if offset.is_multiple_of(alignment(file, width(inner) as u32))
            && !self.outlives_result(liveness, affinity)
            && !self.interfere(liveness, outer, inner, offset, shared)
        {
            self.merge(liveness, outer, inner, offset);
            self.parents[inner as usize] = (outer, offset);
            self.joined.push(inner);
        }
    }

    /// True if C of a matrix instruction holds a value after the instruction. A result without readers does
    /// not meet that value anywhere else.
    fn outlives_result(&mut self, liveness: &Liveness, affinity: &Affinity) -> bool {
        let Some(Shared { position, parts }) = affinity.shared else { return false };
        let (accumulator, part) = self.find(affinity.b);
        let parts = parts << (affinity.firsts[1] + part);
        let at = self.seek(liveness, accumulator, position + 1);
        let segment = liveness.segments.get(at as usize);
        segment.is_some_and(|segment| segment.start <= position + 1 && segment.parts & parts != 0)
    }

    /// True if a part holds a value of both registers anywhere but at `shared`.
    fn interfere(
        &mut self,
        liveness: &Liveness,
        outer: u32,
        inner: u32,
        offset: u32,
        shared: Option<Shared>,
    ) -> bool {
        if self.steps < self.most_steps && self.in_turn(liveness, outer, inner).is_some() {
            self.steps += 1;
            return false;
        }
        let (mut x, mut y) = self.meeting(liveness, outer, inner);
        while let (Some(o), Some(i)) = (liveness.segments.get(x as usize), liveness.segments.get(y as usize))
        {
            let (start, end) = (o.start.max(i.start), o.end.min(i.end));
            let allowed = match shared {
                Some(shared) if start == end && start == shared.position => shared.parts,
                _ => 0,
            };
            if start <= end && o.parts & (i.parts << offset) & !allowed != 0 || self.steps >= self.most_steps
            {
                return true;
            }
            self.steps += 1;
            if o.end <= i.end {
                x = o.next;
            } else {
                y = i.next;
            }
        }
        false
    }

    /// The last segment of a register, or [`NONE`].
    fn last(&mut self, liveness: &Liveness, register: u32) -> u32 {
        let last = &mut self.lasts[register as usize];
        if *last == NONE {
            let mut next = liveness.first[register as usize];
            while let Some(segment) = liveness.segments.get(next as usize) {
                self.previous[next as usize] = *last;
                *last = next;
                next = segment.next;
                self.walked += 1;
            }
        }
        *last
    }

    /// The first segment of a register that ends at `position` or later, or [`NONE`].
    fn seek(&mut self, liveness: &Liveness, register: u32, position: u32) -> u32 {
        self.last(liveness, register);
        let ends = |at: u32| liveness.segments[at as usize].end;
        let mut at = self.fingers[register as usize];
        if at == NONE {
            return NONE;
        }
        while self.previous[at as usize] != NONE && ends(self.previous[at as usize]) >= position {
            at = self.previous[at as usize];
            self.walked += 1;
        }
        while ends(at) < position {
            let next = liveness.segments[at as usize].next;
            if next == NONE {
                self.fingers[register as usize] = at;
                return NONE;
            }
            at = next;
            self.walked += 1;
        }
        self.fingers[register as usize] = at;
        at
    }

    /// Of each of two registers, the first segment that ends where the other one holds its first value or
    /// later.
    fn meeting(&mut self, liveness: &Liveness, a: u32, b: u32) -> (u32, u32) {
        let firsts = [a, b].map(|register| liveness.first[register as usize]);
        match firsts.map(|first| liveness.segments.get(first as usize)) {
            [Some(x), Some(y)] => (self.seek(liveness, a, y.start), self.seek(liveness, b, x.start)),
            _ => (firsts[0], firsts[1]),
        }
    }

    /// Which of two registers no longer holds a value when the other gets its first one, with its last
    /// segment: the earlier one comes first.
    fn in_turn(&mut self, liveness: &Liveness, a: u32, b: u32) -> Option<(u32, u32)> {
        let ends = |this: &mut Self, register: u32| {
            let last = this.last(liveness, register);
            let segment = |at: u32| liveness.segments.get(at as usize);
            Some((segment(liveness.first[register as usize])?.start, segment(last)?.end))
        };
        let (x, y) = (ends(self, a)?, ends(self, b)?);
        if x.1 < y.0 {
            Some((a, b))
        } else if y.1 < x.0 {
            Some((b, a))
        } else {
            None
        }
    }

    /// Gives the segments of `inner` to `outer`.
    fn merge(&mut self, liveness: &mut Liveness, outer: u32, inner: u32, offset: u32) {
        if offset > 0 {
            let mut next = liveness.first[inner as usize];
            while let Some(segment) = liveness.segments.get_mut(next as usize) {
                segment.parts <<= offset;
                next = segment.next;
            }
        }
        match self.in_turn(liveness, outer, inner) {
            Some((front, back)) => {
                self.steps += 1;
                let joint = self.lasts[front as usize];
                let first = liveness.first[front as usize];
                let following = liveness.first[back as usize];
                let after = liveness.segments[following as usize];
                let before = &mut liveness.segments[joint as usize];
                before.next = following;
                let mut last = self.lasts[back as usize];
                if before.end + 1 == after.start && before.parts == after.parts {
                    (before.end, before.next) = (after.end, after.next);
                    last = if last == following { joint } else { last };
                }
                if let Some(previous) = self.previous.get_mut(before.next as usize) {
                    *previous = joint;
                }
                self.fingers[outer as usize] = joint;
                liveness.first[outer as usize] = first;
                self.lasts[outer as usize] = last;
            }
            None => {
                let lasts = [self.last(liveness, outer), self.last(liveness, inner)];
                let (first, last) = self.interleave(liveness, outer, inner, lasts);
                liveness.first[outer as usize] = first;
                self.lasts[outer as usize] = last;
            }
        }
        liveness.first[inner as usize] = NONE;
    }

    /// The first and the last of the segments of both registers in order. `lasts` are those of each alone.
    fn interleave(&mut self, liveness: &mut Liveness, a: u32, b: u32, lasts: [u32; 2]) -> (u32, u32) {
        let firsts = [a, b].map(|register| liveness.first[register as usize]);
        let meeting: [u32; 2] = self.meeting(liveness, a, b).into();
        // What one of them holds before the other holds anything stays as it is, but for the last segment of
        // it, which may grow.
        let before = |at: u32| self.previous.get(at as usize).copied().filter(|&before| before != NONE);
        let starts = meeting.map(|at| before(at).unwrap_or(at));
        let kept = starts.map(|at| before(at).unwrap_or(NONE));
        let (early, anchor) = if kept[1] == NONE { (0, kept[0]) } else { (1, kept[1]) };
        let segments = &liveness.segments;
        let walk = |mut next: u32| {
            std::iter::from_fn(move || {
                let segment = *segments.get(next as usize)?;
                next = segment.next;
                Some(segment)
            })
        };
        let (mut own, mut other) = (walk(starts[0]), walk(starts[1]));
        let (mut x, mut y) = (own.next(), other.next());
        self.merged.clear();
        let merged = &mut self.merged;
        let mut emit = |segment: Segment| match merged.last_mut() {
            Some(last) if last.end + 1 == segment.start && last.parts == segment.parts => {
                last.end = segment.end;
                last.next = segment.next;
            }
            _ => merged.push(segment),
        };
        let rest = loop {
            let (a, b) = match (x, y) {
                (Some(a), Some(b)) => (a, b),
                // What follows the last one stays as it is.
                (Some(one), None) => {
                    emit(one);
                    break lasts[0];
                }
                (None, Some(one)) => {
                    emit(one);
                    break lasts[1];
                }
                (None, None) => break NONE,
            };
            if a.start != b.start {
                // Up to where the later one starts, or the whole.
                let (early, late) = if a.start < b.start { (a, b) } else { (b, a) };
                let end = early.end.min(late.start - 1);
                emit(Segment { end, next: NONE, ..early });
                let rest = (end < early.end).then_some(Segment { start: end + 1, ..early });
                match a.start < b.start {
                    true => x = rest.or_else(|| own.next()),
                    false => y = rest.or_else(|| other.next()),
                }
                continue;
            }
            let end = a.end.min(b.end);
            emit(Segment { end, parts: a.parts | b.parts, next: NONE, ..a });
            let after = |s: Segment| (end < s.end).then_some(Segment { start: end + 1, ..s });
            x = after(a).or_else(|| own.next());
            y = after(b).or_else(|| other.next());
        };
        self.steps += self.merged.len();
        let mut next = self.merged.last().map_or(NONE, |last| last.next);
        // The segment that is made first, unless others follow it.
        let last = if next == NONE { segments.len() as u32 } else { rest };
        for segment in self.merged.iter().rev() {
            let at = liveness.segments.len() as u32;
            liveness.segments.push(Segment { next, ..*segment });
            self.previous.push(NONE);
            if let Some(previous) = self.previous.get_mut(next as usize) {
                *previous = at;
            }
            next = at;
        }
        self.fingers[a as usize] = next;
        if anchor == NONE {
            return (next, last);
        }
        self.previous[next as usize] = anchor;
        liveness.segments[anchor as usize].next = next;
        (firsts[early], last)
    }
}

/// D and C of a matrix instruction whose C is another register than D and than A and B.
fn accumulator(inst: &Inst) -> Option<(Operand, Operand)> {
    if !matches!(inst.op.info().meaning, Meaning::Mfma(..) | Meaning::FormattedMfma(_)) {
        return None;
    }
    let [d, a, b, c, ..] = inst.operands;
    let id = |operand: Operand| operand.as_virtual().map(|(id, _)| id);
    let (to, from) = (id(d)?, id(c)?);
    let free = to != from && [a, b].iter().all(|source| id(*source) != Some(from) && id(*source) != Some(to));
    free.then_some((d, c))
}
