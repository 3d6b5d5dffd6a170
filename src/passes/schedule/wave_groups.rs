//! Barriers of waves that do not run in step: when some waves meet a barrier more before a loop than others, they run the loop a piece
//! behind them, and the barriers of its body pair up differently.
//!
//! A pass of the loop has `barriers` of them, so barriers cut time into epochs: what stands behind `e` barriers of the body is in epoch
//! `pass * barriers + e + offset` of a wave that has met `offset` barriers more. An access is over for all waves to see in the epoch
//! in which its wave waits for it: at the first barrier with an LDS fence, or at the first use of what a read brings. Two accesses of
//! one place by waves of any two groups are in order if the earlier is over in an epoch before that of the later.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::node::*;
use crate::passes::allocate_lds::buffer_of;
use crate::passes::expand::Expansion;
use crate::passes::facts::LdsBuffer;

/// On a loop: its waves do not run in step, and each group has met so many barriers more than the others before it.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub struct Staggered(pub SmallVec<[u32; 4]>);

/// Two accesses of LDS that no barrier keeps in order.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Unordered {
    /// What has to be over first,
    pub earlier: Entity,
    /// before this begins,
    pub later: Entity,
    /// so many passes of the loop after it.
    pub passes: u32,
    /// Barriers that the waves of the first have met more than the others.
    pub earlier_offset: u32,
    /// The same of the second's.
    pub later_offset: u32,
}

/// An LDS access of the body.
struct Access {
    node: Entity,
    buffer: Entity,
    write: bool,
    ahead: u32,
    /// Barriers of the body before it.
    epoch: u32,
    /// The epoch in which it is over.
    over: u32,
}

/// Looks for accesses of LDS in the steady state `node` that its barriers leave unordered, for waves with these offsets.
pub fn unordered(world: &World, node: Entity, offsets: &[u32]) -> Option<Unordered> {
    let body = world.get::<Body>(node).map(|b| &b.0[..]).unwrap_or_default();
    let (accesses, barriers) = accesses_of(world, body);
    let mut extremes: Vec<Extreme> = Vec::new();
    for access in &accesses {
        match extremes.iter_mut().find(|e| e.is_of(access)) {
            Some(known) => known.widen(access),
            None => extremes.push(Extreme::of(access)),
        }
    }
    for writes in extremes.iter().filter(|e| e.write) {
        for reads in extremes.iter().filter(|e| !e.write && e.buffer == writes.buffer) {
            let copies = world.get::<LdsBuffer>(writes.buffer).map_or(1, |lds| lds.copies);
            // What an iteration has written it reads `ahead` passes later; what it reads is overwritten when the copy comes around.
            let Some(passes) = writes.ahead.checked_sub(reads.ahead) else { continue };
            let pairs =
                [Some((writes, reads, passes)), copies.checked_sub(passes).map(|p| (reads, writes, p))];
            for (earlier, later, passes) in pairs.into_iter().flatten() {
                for &earlier_offset in offsets {
                    for &later_offset in offsets {
                        let over = earlier.last_over.0 + earlier_offset;
                        let begins = passes * barriers + later.first.0 + later_offset;
                        if begins <= over {
                            let (earlier, later) = (earlier.last_over.1, later.first.1);
                            return Some(Unordered { earlier, later, passes, earlier_offset, later_offset });
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
    write: bool,
    ahead: u32,
    first: (u32, Entity),
    last_over: (u32, Entity),
}

impl Extreme {
    fn of(access: &Access) -> Extreme {
        let &Access { node, buffer, write, ahead, epoch, over } = access;
        Extreme { buffer, write, ahead, first: (epoch, node), last_over: (over, node) }
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

/// The LDS accesses of a body, and how many barriers it has.
fn accesses_of(world: &World, body: &[Entity]) -> (Vec<Access>, u32) {
    let mut accesses: Vec<Access> = Vec::new();
    // Accesses that no fence has come behind yet, and reads by what they bring.
    let mut open: Vec<usize> = Vec::new();
    let mut epoch = 0;
    for &node in body {
        for operand in world.get::<Operands>(node).map(|o| &o.0[..]).unwrap_or_default() {
            open.retain(|&at| {
                let used = accesses[at].node == *operand;
                if used {
                    accesses[at].over = epoch;
                }
                !used
            });
        }
        match world.get::<Op>(node) {
            Some(Op::Barrier) => {
                open.drain(..).for_each(|at| accesses[at].over = epoch);
                epoch += 1;
            }
            Some(Op::Control(Control::WorkgroupBarrier)) => epoch += 1,
            _ => {}
        }
        if let Some(buffer) = buffer_of(world, node) {
            let write = world.get::<Op>(node) == Some(&Op::Write);
            let ahead = world.get::<Expansion>(node).map_or(0, |e| e.iteration.ahead);
            open.push(accesses.len());
            accesses.push(Access { node, buffer, write, ahead, epoch, over: u32::MAX });
        }
    }
    // What is open at the end is over in the next pass: at its first fence, if there is one.
    let mut epochs = 0;
    let mut fence = None;
    for &node in body {
        match world.get::<Op>(node) {
            Some(Op::Barrier) => {
                fence = Some(epochs);
                break;
            }
            Some(Op::Control(Control::WorkgroupBarrier)) => epochs += 1,
            _ => {}
        }
    }
    for at in open {
        // Without any fence nothing is ever over; half of the range leaves room for sums.
        accesses[at].over = fence.map_or(u32::MAX / 2, |fence| epoch + fence);
    }
    (accesses, epoch)
}
