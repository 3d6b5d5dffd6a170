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
use super::body::{BlockId, InstId, MachineBody, RegisterFile};
use super::liveness::{LiveSegment, Liveness, Position, SegmentId};
use super::loops::LoopDepths;
use super::operands::alignment;
use crate::codegen::isa::{Inst, Meaning, Operand, VReg};
use crate::index::{Links, Neighbours};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};

/// The number of a hint among all of a body.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct HintId(u32);
entity_impl!(HintId, "");

/// Two virtual operands that should be in the same place.
#[derive(Copy, Clone)]
struct Affinity {
    weight: u32,
    inst: InstId,
    /// The registers, and how much higher the place of the second one is.
    a: VReg,
    b: VReg,
    offset: i32,
    /// First parts of the two operands.
    firsts: [u32; 2],
    /// For C and D of a matrix instruction: where, and in which parts (counted from the start of the
    /// operand), both may hold a value.
    shared: Option<SharedPosition>,
}

/// A position at which two registers may hold values in the same parts, which are one operand of each.
#[derive(Copy, Clone)]
struct SharedPosition {
    position: Position,
    parts: u32,
}

/// Another register whose place would make a copy unnecessary: own place = place of `other` + `offset`.
#[derive(Copy, Clone, Debug)]
pub(super) struct Hint {
    /// The register.
    pub other: VReg,
    /// Difference of the places.
    pub offset: i32,
    next: PackedOption<HintId>,
}

/// What has been joined, and hints for the rest.
#[derive(Default)]
pub(super) struct Coalescer {
    affinities: Vec<Affinity>,
    /// Keys of them in the order in which they are tied.
    order: Vec<u64>,
    /// The register that each register was joined to, and the part of it at which it starts; the register
    /// itself if it was not joined.
    parents: PrimaryMap<VReg, (VReg, u32)>,
    /// Registers that were joined to another, in this order.
    joined: Vec<VReg>,
    /// First hint of each register, most important first.
    first_hint: SecondaryMap<VReg, PackedOption<HintId>>,
    hints: PrimaryMap<HintId, Hint>,
    merged: Vec<LiveSegment>,
    walks: SegmentWalks,
    /// Registers that are C or D of a matrix instruction.
    accumulates: SecondaryMap<VReg, bool>,
    /// Steps that joining has taken, and may take: long histories are not walked again and again.
    steps: usize,
    most_steps: usize,
    /// Steps to the roots of registers and along their segments, which nothing has to bound: they are few.
    walked: usize,
}

/// The findings of walks over the segments of registers.
#[derive(Default)]
struct SegmentWalks {
    /// The last segment of each register, or none if it has not been looked up.
    lasts: SecondaryMap<VReg, PackedOption<SegmentId>>,
    /// The segment before each one, if any: known for registers whose last one is.
    previous: SecondaryMap<SegmentId, PackedOption<SegmentId>>,
    /// Of each register, the segment that was looked at last: the next look is mostly near to it.
    fingers: PrimaryMap<VReg, PackedOption<SegmentId>>,
}

/// Whether registers are joined or only get hints.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Joining {
    /// Joined where possible.
    Join,
    /// Left apart, which makes placing easier when there is little room.
    HintOnly,
}

/// Which registers become one before anything leaves its file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Tied {
    /// C and D of matrix instructions, and what copies connect with them.
    Accumulators,
    /// The VGPRs that any copy connects.
    VectorCopies,
}

impl Coalescer {
    /// Joins registers of `body`: the segments in `liveness` of a joined register move to the one it is part
    /// of.
    pub(super) fn join(
        &mut self,
        body: &MachineBody,
        liveness: &mut Liveness,
        loops: &LoopDepths,
        is_fixed: impl Fn(VReg) -> bool,
        joining: Joining,
    ) {
        self.collect(body, loops, &liveness.operands.connecting);
        self.start(body, liveness);
        self.first_hint.clear();
        self.hints.clear();
        if self.affinities.is_empty() {
            return;
        }
        self.first_hint.resize(body.registers.len());
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

    /// Joins what `tied` names of the registers that matrix instructions and copies connect, as long as no
    /// other value is in the way. Registers of the same width are joined as a whole, to the one with the
    /// smallest number. True if any were joined.
    pub(super) fn tie(
        &mut self,
        body: &MachineBody,
        liveness: &mut Liveness,
        loops: &LoopDepths,
        is_fixed: impl Fn(VReg) -> bool,
        tied: Tied,
    ) -> bool {
        self.collect(body, loops, &liveness.operands.connecting);
        if self.affinities.is_empty() {
            return false;
        }
        for affinity in self.affinities.iter().filter(|affinity| affinity.shared.is_some()) {
            self.accumulates[affinity.a] = true;
            self.accumulates[affinity.b] = true;
        }
        if tied == Tied::Accumulators && !self.accumulates.values().any(|accumulates| *accumulates) {
            return false;
        }
        self.start(body, liveness);
        // From the last result back to what a loop carries: that has more pieces than the rest, so it is best
        // joined once. Affinities are in program order and large, so that keys are sorted in their place:
        // weight, matrix instructions first, and the place counted from the end.
        self.order.clear();
        self.order.extend(self.affinities.iter().rev().zip(0u32..).map(|(affinity, from_end)| {
            let weight = u64::from(u32::MAX - affinity.weight);
            weight << 32 | u64::from(affinity.shared.is_none()) << 31 | u64::from(from_end)
        }));
        self.order.sort_unstable();
        for index in 0..self.order.len() {
            let from_end = self.order[index] as usize & 0x7fff_ffff;
            let affinity = self.affinities[self.affinities.len() - 1 - from_end];
            let Affinity { a, b, offset, shared, .. } = affinity;
            let wanted = match tied {
                Tied::Accumulators => self.accumulates[a] || self.accumulates[b],
                Tied::VectorCopies => body.registers[a].file == RegisterFile::Vgpr,
            };
            let width = |id: VReg| body.registers[id].width;
            if offset != 0 || width(a) != width(b) || !wanted || is_fixed(a) || is_fixed(b) {
                continue;
            }
            let (a, b) = (self.find(a).0, self.find(b).0);
            let (outer, inner) = (a.min(b), a.max(b));
            if outer != inner
                && !self.outlives_result(liveness, &affinity)
                && !self.interfere(liveness, outer, inner, 0, shared)
            {
                self.merge(liveness, outer, inner, 0);
                self.parents[inner] = (outer, 0);
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
    fn start(&mut self, body: &MachineBody, liveness: &Liveness) {
        self.parents.clear();
        self.parents.extend(body.registers.keys().map(|id| (id, 0)));
        self.joined.clear();
        self.walks.lasts.clear();
        self.walks.lasts.resize(body.registers.len());
        self.most_steps = self.steps + 32 * (body.insts.len() + body.registers.len());
        self.walks.previous.clear();
        self.walks.previous.resize(liveness.segments.len());
        self.walks.fingers.clear();
        self.walks.fingers.extend(liveness.first.values().copied());
    }

    /// The root of a register may have been joined to another one later: going from the last to the first,
    /// each register finds its root one step away.
    fn shorten_paths(&mut self) {
        for index in (0..self.joined.len()).rev() {
            let id = self.joined[index];
            self.parents[id] = self.root(id);
        }
    }

    /// The register that `id` is part of, and its first part there.
    pub(super) fn root(&self, id: VReg) -> (VReg, u32) {
        let (mut root, mut part) = (id, 0);
        loop {
            let (parent, first) = self.parents[root];
            if parent == root {
                return (root, part);
            }
            (root, part) = (parent, part + first);
        }
    }

    /// The same, and shortens the path to it: what has been joined many times is found as fast.
    fn find(&mut self, id: VReg) -> (VReg, u32) {
        let (mut root, mut part) = (id, 0);
        loop {
            let (parent, first) = self.parents[root];
            if parent == root {
                return (root, part);
            }
            let (above, further) = self.parents[parent];
            self.parents[root] = (above, first + further);
            self.walked += 1;
            (root, part) = (above, part + first + further);
        }
    }

    /// Hints for a register, most important first.
    pub(super) fn hints(&self, id: VReg) -> impl Iterator<Item = Hint> + '_ {
        let mut next = self.first_hint[id];
        std::iter::from_fn(move || {
            let hint = *self.hints.at(next)?;
            next = hint.next;
            Some(hint)
        })
    }

    fn hint(&mut self, id: VReg, other: VReg, offset: i32) {
        let first = &mut self.first_hint[id];
        *first = self.hints.push(Hint { other, offset, next: *first }).into();
    }

    /// Finds what copies and matrix instructions connect, and the registers in which the latter add to what
    /// is there; `connecting` are those instructions.
    fn collect(&mut self, body: &MachineBody, loops: &LoopDepths, connecting: &[InstId]) {
        self.affinities.clear();
        self.accumulates.clear();
        self.accumulates.resize(body.registers.len());
        let mut block = BlockId::from_u32(0);
        for &index in connecting {
            while body.blocks[block].end <= index {
                block = block.next();
            }
            let inst = &body.insts[index].inst;
            let copy = as_copy(inst).map(|operands| (operands, None));
            let tied = || {
                let operands = accumulator(inst)?;
                let parts = ((1u64 << inst.width(0)) - 1) as u32;
                Some((operands, Some(SharedPosition { position: Position::read(index), parts })))
            };
            let Some(((to, from), shared)) = copy.or_else(tied) else {
                if let Some(register) = sum_in_place(inst) {
                    self.accumulates[register] = true;
                }
                continue;
            };
            let (Some((a, a_first)), Some((b, b_first))) = (to.as_virtual(), from.as_virtual()) else {
                continue;
            };
            if a != b && body.registers[a].file == body.registers[b].file {
                let offset = a_first as i32 - b_first as i32;
                let weight = loops.weight(block);
                let firsts = [a_first, b_first];
                self.affinities.push(Affinity { weight, inst: index, a, b, offset, firsts, shared });
            }
        }
    }

    fn try_join(&mut self, body: &MachineBody, liveness: &mut Liveness, affinity: &Affinity) {
        let ((a, a_part), (b, b_part)) = (self.find(affinity.a), self.find(affinity.b));
        // How much higher b starts.
        let offset = affinity.offset + a_part as i32 - b_part as i32;
        if a == b {
            return;
        }
        let width = |id: VReg| i32::from(body.registers[id].width);
        let (outer, inner, offset) = if offset >= 0 && offset + width(b) <= width(a) {
            (a, b, offset)
        } else if offset <= 0 && width(a) - offset <= width(b) {
            (b, a, -offset)
        } else {
            return;
        };
        let (file, offset) = (body.registers[inner].file, offset as u32);
        let first = if outer == a { affinity.firsts[0] + a_part } else { affinity.firsts[1] + b_part };
        let shared = affinity.shared.map(|s| SharedPosition { parts: s.parts << first, ..s });
        if offset.is_multiple_of(alignment(file, width(inner) as u32))
            && !self.outlives_result(liveness, affinity)
            && !self.interfere(liveness, outer, inner, offset, shared)
        {
            self.merge(liveness, outer, inner, offset);
            self.parents[inner] = (outer, offset);
            self.joined.push(inner);
        }
    }

    /// True if C of a matrix instruction holds a value after the instruction. A result without readers does
    /// not meet that value anywhere else.
    fn outlives_result(&mut self, liveness: &Liveness, affinity: &Affinity) -> bool {
        let Some(SharedPosition { position, parts }) = affinity.shared else { return false };
        let (accumulator, part) = self.find(affinity.b);
        let parts = parts << (affinity.firsts[1] + part);
        let at = self.seek(liveness, accumulator, position.next());
        let segment = liveness.segments.at(at);
        segment.is_some_and(|segment| segment.start <= position.next() && segment.parts & parts != 0)
    }

    /// True if a part holds a value of both registers anywhere but at `shared`.
    fn interfere(
        &mut self,
        liveness: &Liveness,
        outer: VReg,
        inner: VReg,
        offset: u32,
        shared: Option<SharedPosition>,
    ) -> bool {
        if self.steps < self.most_steps && self.in_turn(liveness, outer, inner).is_some() {
            self.steps += 1;
            return false;
        }
        // No parts at some position, rather than no position: nothing is compared that is not there.
        let nowhere = SharedPosition { position: Position::START, parts: 0 };
        let SharedPosition { position, parts } = shared.unwrap_or(nowhere);
        let (mut x, mut y) = self.meeting(liveness, outer, inner);
        while let (Some(o), Some(i)) = (liveness.segments.at(x), liveness.segments.at(y)) {
            let (start, end) = (o.start.max(i.start), o.end.min(i.end));
            let allowed = if start == end && start == position { parts } else { 0 };
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

    /// The last segment of a register.
    fn last(&mut self, liveness: &Liveness, register: VReg) -> PackedOption<SegmentId> {
        let last = &mut self.walks.lasts[register];
        if last.is_none() {
            let mut next = liveness.first[register];
            while let Some(at) = next.expand() {
                self.walks.previous[at] = *last;
                *last = next;
                next = liveness.segments[at].next;
                self.walked += 1;
            }
        }
        *last
    }

    /// The first segment of a register that ends at `position` or later.
    fn seek(&mut self, liveness: &Liveness, register: VReg, position: Position) -> PackedOption<SegmentId> {
        self.last(liveness, register);
        let ends = |at: SegmentId| liveness.segments[at].end;
        let Some(mut at) = self.walks.fingers[register].expand() else { return PackedOption::default() };
        while let Some(previous) =
            self.walks.previous[at].expand().filter(|&previous| ends(previous) >= position)
        {
            at = previous;
            self.walked += 1;
        }
        while ends(at) < position {
            let Some(next) = liveness.segments[at].next.expand() else {
                self.walks.fingers[register] = at.into();
                return PackedOption::default();
            };
            at = next;
            self.walked += 1;
        }
        self.walks.fingers[register] = at.into();
        at.into()
    }

    /// Of each of two registers, the first segment that ends where the other one holds its first value or
    /// later.
    fn meeting(
        &mut self,
        liveness: &Liveness,
        a: VReg,
        b: VReg,
    ) -> (PackedOption<SegmentId>, PackedOption<SegmentId>) {
        let firsts = [a, b].map(|register| liveness.first[register]);
        match firsts.map(|first| liveness.segments.at(first)) {
            [Some(x), Some(y)] => (self.seek(liveness, a, y.start), self.seek(liveness, b, x.start)),
            _ => (firsts[0], firsts[1]),
        }
    }

    /// Which of two registers no longer holds a value when the other gets its first one, with its last
    /// segment: the earlier one comes first.
    fn in_turn(&mut self, liveness: &Liveness, a: VReg, b: VReg) -> Option<(VReg, VReg)> {
        let ends = |this: &mut Self, register: VReg| {
            let last = this.last(liveness, register);
            let segment = |at| liveness.segments.at(at);
            Some((segment(liveness.first[register])?.start, segment(last)?.end))
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
    fn merge(&mut self, liveness: &mut Liveness, outer: VReg, inner: VReg, offset: u32) {
        if offset > 0 {
            let mut next = liveness.first[inner];
            while let Some(segment) = liveness.segments.at_mut(next) {
                segment.parts <<= offset;
                next = segment.next;
            }
        }
        match self.in_turn(liveness, outer, inner) {
            Some((front, back)) => {
                self.steps += 1;
                let (joint, following) = (self.walks.lasts[front], liveness.first[back]);
                let first = liveness.first[front];
                let mut last = self.walks.lasts[back];
                if let Some(&after) = liveness.segments.at(following)
                    && let Some(before) = liveness.segments.at_mut(joint)
                {
                    before.next = following;
                    if before.end.next() == after.start && before.parts == after.parts {
                        (before.end, before.next) = (after.end, after.next);
                        last = if last == following { joint } else { last };
                    }
                    if let Some(after) = before.next.expand() {
                        self.walks.previous[after] = joint;
                    }
                }
                self.walks.fingers[outer] = joint;
                liveness.first[outer] = first;
                self.walks.lasts[outer] = last;
            }
            None => {
                let lasts = [self.last(liveness, outer), self.last(liveness, inner)];
                let (first, last) = self.interleave(liveness, outer, inner, lasts);
                liveness.first[outer] = first;
                self.walks.lasts[outer] = last;
            }
        }
        liveness.first[inner] = PackedOption::default();
    }

    /// The first and the last of the segments of both registers in order. `lasts` are those of each alone.
    fn interleave(
        &mut self,
        liveness: &mut Liveness,
        a: VReg,
        b: VReg,
        lasts: [PackedOption<SegmentId>; 2],
    ) -> (PackedOption<SegmentId>, PackedOption<SegmentId>) {
        let firsts = [a, b].map(|register| liveness.first[register]);
        let meeting: [PackedOption<SegmentId>; 2] = self.meeting(liveness, a, b).into();
        // What one of them holds before the other holds anything stays as it is, but for the last segment of
        // it, which may grow.
        let before =
            |at: PackedOption<SegmentId>| at.map(|at| self.walks.previous[at]).filter(PackedOption::is_some);
        let starts = meeting.map(|at| before(at).unwrap_or(at));
        let kept = starts.map(|at| before(at).unwrap_or_default());
        let (early, anchor) = if kept[1].is_none() { (0, kept[0]) } else { (1, kept[1]) };
        let segments = &liveness.segments;
        let walk = |mut next: PackedOption<SegmentId>| {
            std::iter::from_fn(move || {
                let segment = *segments.at(next)?;
                next = segment.next;
                Some(segment)
            })
        };
        let (mut own, mut other) = (walk(starts[0]), walk(starts[1]));
        let (mut x, mut y) = (own.next(), other.next());
        self.merged.clear();
        let merged = &mut self.merged;
        let mut emit = |segment: LiveSegment| match merged.last_mut() {
            Some(last) if last.end.next() == segment.start && last.parts == segment.parts => {
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
                (None, None) => break PackedOption::default(),
            };
            if a.start != b.start {
                // Up to where the later one starts, or the whole.
                let (early, late) = if a.start < b.start { (a, b) } else { (b, a) };
                let end = early.end.min(late.start.back());
                emit(LiveSegment { end, next: PackedOption::default(), ..early });
                let rest = (end < early.end).then_some(LiveSegment { start: end.next(), ..early });
                match a.start < b.start {
                    true => x = rest.or_else(|| own.next()),
                    false => y = rest.or_else(|| other.next()),
                }
                continue;
            }
            let end = a.end.min(b.end);
            emit(LiveSegment { end, parts: a.parts | b.parts, next: PackedOption::default(), ..a });
            let after = |s: LiveSegment| (end < s.end).then_some(LiveSegment { start: end.next(), ..s });
            x = after(a).or_else(|| own.next());
            y = after(b).or_else(|| other.next());
        };
        self.steps += self.merged.len();
        let mut next = self.merged.last().map_or_else(PackedOption::default, |last| last.next);
        // The segment that is made first, unless others follow it.
        let last = if next.is_none() { segments.next_key().into() } else { rest };
        for segment in self.merged.iter().rev() {
            let at = liveness.segments.push(LiveSegment { next, ..*segment }).into();
            if let Some(next) = next.expand() {
                self.walks.previous[next] = at;
            }
            next = at;
        }
        self.walks.fingers[a] = next;
        let Some(kept) = liveness.segments.at_mut(anchor) else { return (next, last) };
        kept.next = next;
        if let Some(next) = next.expand() {
            self.walks.previous[next] = anchor;
        }
        (firsts[early], last)
    }
}

/// The register that a matrix instruction adds to.
fn sum_in_place(inst: &Inst) -> Option<VReg> {
    let [d, _, _, c, ..] = inst.operands;
    (d == c).then(|| d.as_virtual()).flatten().map(|(id, _)| id)
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
