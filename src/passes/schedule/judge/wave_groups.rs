//! Barriers of waves that do not run in step: when some waves meet more barriers before a loop than others,
//! they run the loop that much later, and the barriers of its body pair up differently.
//!
//! A trip of the loop has `barriers` barriers, and these cut time into epochs: for a wave that has met
//! `offset` barriers more than others, a node after `e` barriers of the body is in epoch `trip * barriers + e
//! + offset`. An access is over, as far as other waves can see, in the epoch in which its wave waits for it:
//! at the first barrier with an LDS fence, or at the first use of the value that it reads. Two accesses of
//! one place by waves of any two groups are in order if the earlier one is over in an epoch before that of
//! the later one.
//!
//! Only loops are proved in this way. In straight-line code between conditional barriers there may be no
//! access to LDS and no barrier.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::walk;
use crate::passes::allocate_lds::buffer_of;
use crate::passes::expand::{Base, Expansion, Iteration};
pub(crate) use crate::passes::facts::Staggered;
use crate::passes::facts::{Geometry, LdsBuffer};
use crate::passes::schedule::graph::dependences::trips_between;
use crate::passes::schedule::graph::words::{describe, place};

/// Two accesses of LDS that no barrier keeps in order.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unordered {
    /// The access that has to be over first.
    pub earlier: Entity,
    /// The access that has to wait.
    pub later: Entity,
    /// Trips of the loop between the two.
    pub trips: u32,
    /// How many barriers more than the others the waves of the first access have met.
    pub earlier_offset: u32,
    /// The same for the waves of the second.
    pub later_offset: u32,
}

/// Counts the barriers that each wave meets, marks loops whose waves do not run in step, and looks for
/// accesses of LDS that are unordered there. Returns the first fault, if there is one.
pub(crate) fn check(world: &mut World, root: Entity) -> Option<Diagnostic> {
    let regions = walk::regions(world, root);
    regions.into_iter().find_map(|region| check_region(world, root, region))
}

/// True if conditional barriers in front of `node`, in its region, put its waves out of step.
pub(crate) fn out_of_step(world: &World, root: Entity, region: Entity, node: Entity) -> bool {
    Met::before(world, root, region, node).offsets().len() > 1
}

/// The waves of a workgroup in groups that run a loop in step: how many barriers more than the others each
/// group has met, and its waves.
pub(crate) fn groups_of(world: &World, root: Entity, node: Entity) -> Vec<(u32, Vec<u32>)> {
    match walk::region_of(world, root, node) {
        Some(region) => Met::before(world, root, region, node).groups(),
        None => Met::new(world, root).groups(),
    }
}

fn check_region(world: &mut World, root: Entity, region: Entity) -> Option<Diagnostic> {
    let parts = |&node: &Entity| conditional_barrier(world, node).is_some();
    if !world.get::<Body>(region).is_some_and(|body| body.0.iter().any(parts)) {
        return None;
    }
    let body = walk::body(world, region);
    let mut met = Met::new(world, root);
    for &node in &body {
        met.count(world, node);
    }
    if let Some(fault) = met.unbalanced(world, root) {
        return Some(fault);
    }
    let mut met = Met::new(world, root);
    // Since the waves parted there have been only control operations.
    let mut at_once = true;
    let mut offsets = met.offsets();
    for node in body {
        if met.count(world, node) {
            offsets = met.offsets();
        }
        if offsets.len() == 1 {
            at_once = true;
            continue;
        }
        match world.get::<Op>(node) {
            Some(Op::Control(Control::WorkgroupBarrier) | Op::Barrier) => {
                return Some(apart_fault(world, root, node, met.last, "pairs up with another barrier"));
            }
            Some(Op::Control(_)) => {}
            Some(Op::Iterate(_)) if !at_once => {
                return Some(apart_fault(world, root, node, met.last, "does not begin where waves part"));
            }
            Some(Op::Iterate(_)) if !holds_loop(world, node) => {
                if let Some(pair) = unordered(world, node, &offsets) {
                    let parted = met.last.and_then(|last| place(world, root, last));
                    return Some(unordered_fault(world, root, pair).at(parted));
                }
                world.entity_mut(node).insert(Staggered(offsets.clone()));
                at_once = false;
            }
            _ if buffer_of(world, node).is_some() || world.get::<Body>(node).is_some() => {
                let why = "accesses LDS in an order that no barrier keeps";
                return Some(apart_fault(world, root, node, met.last, why));
            }
            _ => at_once = false,
        }
    }
    None
}

fn conditional_barrier(world: &World, node: Entity) -> Option<WaveCondition> {
    match world.get::<Op>(node) {
        Some(&Op::Control(Control::ConditionalBarrier(condition))) => Some(condition),
        _ => None,
    }
}

fn holds_loop(world: &World, node: Entity) -> bool {
    let body = world.get::<Body>(node).map(|b| &b.0[..]).unwrap_or_default();
    body.iter().any(|&inner| world.get::<Body>(inner).is_some())
}

/// The fault of a node that runs while waves are out of step, and is not the loop that may.
fn apart_fault(world: &World, root: Entity, node: Entity, parted: Option<Entity>, why: &str) -> Diagnostic {
    let what = match world.get::<Op>(node) {
        Some(Op::Barrier | Op::Control(_)) => "a barrier".to_owned(),
        _ => describe(world, root, node),
    };
    let fault = Diagnostic::invalid(format!("{what} between conditional barriers {why}"));
    let fault = match place(world, root, node) {
        Some(at) => fault.note("it is written here", Some(at)),
        None => fault,
    };
    let fault = fault.at(parted.and_then(|node| place(world, root, node)));
    fault.help("let waves part right before a loop without loops in it, and meet right after it")
}

/// Conditional barriers that each wave has met.
struct Met {
    counts: SmallVec<[u32; 16]>,
    last: Option<Entity>,
}

impl Met {
    /// None so far, by any wave of the kernel.
    fn new(world: &World, root: Entity) -> Met {
        let waves = world.get::<Geometry>(root).map_or(1, Geometry::wave_count);
        Met { counts: SmallVec::from_elem(0, waves as usize), last: None }
    }

    /// The barriers that waves have met in a region when they come to a node of it.
    fn before(world: &World, root: Entity, region: Entity, node: Entity) -> Met {
        let mut met = Met::new(world, root);
        for other in walk::body(world, region).into_iter().take_while(|&other| other != node) {
            met.count(world, other);
        }
        met
    }

    /// Counts a conditional barrier for the waves that meet it; true if `node` is one.
    fn count(&mut self, world: &World, node: Entity) -> bool {
        let condition = conditional_barrier(world, node);
        if let Some(condition) = condition {
            let waves = self.counts.len() as u32;
            for (met, wave) in self.counts.iter_mut().zip(0..) {
                *met += u32::from(condition.holds(wave, waves));
            }
            self.last = Some(node);
        }
        condition.is_some()
    }

    /// For every wave, how many barriers more it has met than the waves that have met the fewest.
    fn surplus(&self) -> impl Iterator<Item = u32> {
        let fewest = self.counts.iter().copied().min().unwrap_or(0);
        self.counts.iter().map(move |met| met - fewest)
    }

    /// The distinct values of [`Met::surplus`]; one value if all waves are in step.
    fn offsets(&self) -> SmallVec<[u32; 4]> {
        let mut offsets: SmallVec<[u32; 4]> = self.surplus().collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// The groups, with the waves of each.
    fn groups(&self) -> Vec<(u32, Vec<u32>)> {
        let waves = |offset| self.surplus().zip(0..).filter(|one| one.0 == offset).map(|one| one.1).collect();
        self.offsets().into_iter().map(|offset| (offset, waves(offset))).collect()
    }

    /// The fault of a region in which some waves meet more barriers than others.
    fn unbalanced(&self, world: &World, root: Entity) -> Option<Diagnostic> {
        let (most, fewest) = (self.counts.iter().max()?, self.counts.iter().min()?);
        let of = |count| self.counts.iter().position(|met| met == count).unwrap_or(0);
        (most != fewest).then(|| {
            let barriers = if *most == 1 { "barrier" } else { "barriers" };
            let text = format!(
                "wave {} meets {most} conditional {barriers} here and wave {} meets {fewest}: one of them would wait for ever",
                of(most),
                of(fewest)
            );
            let at = self.last.and_then(|node| place(world, root, node));
            let fault = Diagnostic::invalid(text).at(at);
            fault.help("let every wave meet as many: some before the loop, the others after it")
        })
    }
}

fn unordered_fault(world: &World, root: Entity, pair: Unordered) -> Diagnostic {
    let Unordered { earlier, later, trips, earlier_offset, later_offset } = pair;
    let [first, second] = [earlier, later].map(|node| describe(world, root, node));
    let group = |offset| match offset {
        0 => "waves that run ahead".to_owned(),
        1 => "waves that are one barrier late".to_owned(),
        more => format!("waves that are {more} barriers late"),
    };
    let when = match trips {
        0 => "the same trip of the loop".to_owned(),
        1 => "the next trip of the loop".to_owned(),
        more => format!("{more} trips of the loop later"),
    };
    let text = format!(
        "no barrier keeps {first} of {} in front of {second} of {} in {when}",
        group(earlier_offset),
        group(later_offset)
    );
    Diagnostic::invalid(text)
        .note("what has to be over first is here", place(world, root, earlier))
        .note("what has to wait is here", place(world, root, later))
        .help("put a shared memory barrier between them that both groups meet")
}

/// An LDS access of the body.
struct Access {
    node: Entity,
    buffer: Entity,
    /// Copies of the buffer that iterations use in turn.
    copies: u32,
    write: bool,
    ahead: u32,
    /// Barriers of the body before it.
    epoch: u32,
    /// The epoch in which it is over.
    over: u32,
}

/// Looks for accesses of LDS in the steady state `node` that its barriers leave unordered, for waves with
/// these offsets.
pub(crate) fn unordered(world: &World, node: Entity, offsets: &[u32]) -> Option<Unordered> {
    let body = world.get::<Body>(node).map(|b| &b.0[..]).unwrap_or_default();
    let (accesses, barriers) = accesses_of(world, body);
    let per_trip = Unrolled::of(world, node);
    let mut extremes: Vec<Extreme> = Vec::new();
    for access in &accesses {
        match extremes.iter_mut().find(|e| e.is_of(access)) {
            Some(known) => known.widen(access),
            None => extremes.push(Extreme::of(access)),
        }
    }
    for writes in extremes.iter().filter(|e| e.write) {
        for reads in extremes.iter().filter(|e| !e.write && e.buffer == writes.buffer) {
            // An iteration reads what it has written some trips later; what it reads is overwritten when the
            // same copy is used again.
            let read = trips_between(writes.ahead, reads.ahead, 0, per_trip);
            let overwritten = trips_between(reads.ahead, writes.ahead, writes.copies, per_trip);
            let pairs = [read.map(|p| (writes, reads, p)), overwritten.map(|p| (reads, writes, p))];
            for (earlier, later, trips) in pairs.into_iter().flatten() {
                for &earlier_offset in offsets {
                    for &later_offset in offsets {
                        let over = earlier.last_over.0 + earlier_offset;
                        let begins = trips * barriers + later.first.0 + later_offset;
                        if begins <= over {
                            let (earlier, later) = (earlier.last_over.1, later.first.1);
                            return Some(Unordered { earlier, later, trips, earlier_offset, later_offset });
                        }
                    }
                }
            }
        }
    }
    None
}

/// First and last of the accesses that are alike.
struct Extreme {
    buffer: Entity,
    copies: u32,
    write: bool,
    ahead: u32,
    first: (u32, Entity),
    last_over: (u32, Entity),
}

impl Extreme {
    fn of(access: &Access) -> Extreme {
        let &Access { node, buffer, copies, write, ahead, epoch, over } = access;
        Extreme { buffer, copies, write, ahead, first: (epoch, node), last_over: (over, node) }
    }

    fn is_of(&self, access: &Access) -> bool {
        (self.buffer, self.write, self.ahead) == (access.buffer, access.write, access.ahead)
    }

    fn widen(&mut self, access: &Access) {
        if access.epoch < self.first.0 {
            self.first = (access.epoch, access.node);
        }
        if access.over > self.last_over.0 {
            self.last_over = (access.over, access.node);
        }
    }
}

/// An access that no fence has followed yet, and whose value has not been used yet.
const OPEN: u32 = u32::MAX;

/// The LDS accesses of a body, and how many barriers it has.
fn accesses_of(world: &World, body: &[Entity]) -> (Vec<Access>, u32) {
    let mut accesses: Vec<Access> = Vec::new();
    // Number of each access by entity index, plus one.
    let size = body.iter().map(|node| node.index_u32() as usize + 1).max().unwrap_or(0);
    let mut number = vec![0u32; size];
    // All accesses before this one are over.
    let mut first_open = 0;
    let mut epoch = 0;
    let mut first_fence = None;
    for &node in body {
        let op = world.get::<Op>(node);
        let operands = world.get::<Operands>(node).map(|o| &o.0[..]).unwrap_or_default();
        for operand in operands {
            let used = number.get(operand.index_u32() as usize).and_then(|number| number.checked_sub(1));
            if let Some(access) = used.map(|at| &mut accesses[at as usize])
                && access.over == OPEN
            {
                access.over = epoch;
            }
        }
        match op {
            Some(Op::Barrier) => {
                close(&mut accesses[first_open..], epoch);
                first_open = accesses.len();
                first_fence.get_or_insert(epoch);
                epoch += 1;
            }
            Some(Op::Control(Control::WorkgroupBarrier)) => epoch += 1,
            _ => {}
        }
        if let Some(buffer) = buffer_of(world, node) {
            let write = op.is_some_and(|op| op.is_write());
            let Iteration { base, ahead } =
                world.get::<Expansion>(node).map(|e| e.iteration).unwrap_or_default();
            // In a loop as written, all iterations use the first copy.
            let copies = if base == Base::Written {
                1
            } else {
                world.get::<LdsBuffer>(buffer).map_or(1, |lds| lds.copies)
            };
            accesses.push(Access { node, buffer, copies, write, ahead, epoch, over: OPEN });
            number[node.index_u32() as usize] = accesses.len() as u32;
        }
    }
    // What is open at the end is over in the next trip: at its first fence, if there is one. Without any
    // fence nothing is ever over; half of the range leaves room for sums.
    close(&mut accesses[first_open..], first_fence.map_or(u32::MAX / 2, |fence| epoch + fence));
    (accesses, epoch)
}

/// Accesses that are still open are over in this epoch.
fn close(accesses: &mut [Access], epoch: u32) {
    accesses.iter_mut().filter(|access| access.over == OPEN).for_each(|access| access.over = epoch);
}
