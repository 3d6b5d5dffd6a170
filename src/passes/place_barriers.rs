//! Workgroup barriers, where and only where an LDS hazard between waves needs one: before a read of what another wave may just have
//! written, and before a write over what another wave may still read. Loop bodies are walked until nothing new comes around the back
//! edge, and a kernel of one wave needs none: a wave's LDS operations are executed in order.
//!
//! Accesses of pipelined and unrolled loops use the copy of their buffer that belongs to their iteration, so two of them meet only where their
//! iterations differ by a multiple of the number of copies.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::allocate_lds::buffer_of;
use super::expand::{Base, Expansion};
use super::facts::{Geometry, LdsBuffer};
use super::schedule::judge::wave_groups::Staggered;
use super::{PassResult, kernel_entity};
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;

/// A part of LDS: of a buffer, the copy that belongs to one iteration, counted from the running pass.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Area {
    buffer: Entity,
    /// The logical node that accesses it.
    logical: Entity,
    start: u32,
    end: u32,
    copies: i32,
    /// `None`: may be any copy.
    ahead: Option<i32>,
}

impl Area {
    fn of(world: &World, node: Entity) -> Option<Area> {
        let buffer = buffer_of(world, node)?;
        let (start, end, copies) = world
            .get::<LdsBuffer>(buffer)
            .map_or((0, u32::MAX, 1), |b| (b.offset, b.offset + b.all_bytes(), b.copies as i32));
        let Expansion { logical, iteration, .. } = Expansion::at(world, node);
        let ahead = match iteration.base {
            Base::Written => None,
            Base::Start | Base::Pass | Base::End => Some(iteration.ahead as i32 % copies),
        };
        Some(Area { buffer, logical, start, end, copies, ahead })
    }

    /// True if a write of this area may come between another wave's write of the other and its readers: not when one node does
    /// both, whose parts lie side by side, each always written by the same wave.
    fn overwrites(&self, other: &Area) -> bool {
        self.logical != other.logical && self.meets(other)
    }

    fn meets(&self, other: &Area) -> bool {
        if self.buffer != other.buffer {
            return self.start < other.end && other.start < self.end;
        }
        match (self.ahead, other.ahead) {
            (Some(a), Some(b)) => (a - b) % self.copies == 0,
            _ => true,
        }
    }

    /// True if what meets the one meets the other.
    fn is_same_place(&self, other: &Area) -> bool {
        self.ahead == other.ahead
            && (self.start, self.end, self.copies) == (other.start, other.end, other.copies)
            && (self.ahead.is_none() || self.buffer == other.buffer)
    }

    /// The same area as the next pass sees it, `iterations` later.
    fn next_pass(mut self, iterations: u32) -> Area {
        let passed = (iterations % self.copies.unsigned_abs()) as i32;
        self.ahead = self.ahead.map(|ahead| (ahead - passed).rem_euclid(self.copies));
        self
    }
}

/// Parts of LDS touched since the last barrier.
#[derive(Clone, Default, PartialEq)]
struct Touched {
    written: Areas,
    read: Areas,
}

/// Parts of LDS and who touches them. What does not belong to one iteration is told apart by its place alone: buffers of different
/// loops share memory, and there are few places.
#[derive(Clone, Default, PartialEq)]
struct Areas(SmallVec<[Area; 8]>);

impl Areas {
    fn add(&mut self, area: Area) {
        if !self.covers(&area) {
            self.0.push(area);
        }
    }

    /// True if nothing can meet or overwrite the area and nothing in the list. What two nodes touch, any node overwrites.
    fn covers(&self, area: &Area) -> bool {
        let mut toucher = None;
        self.0.iter().filter(|known| known.is_same_place(area)).any(|known| {
            known.logical == area.logical
                || toucher.replace(known.logical).is_some_and(|one| one != known.logical)
        })
    }

    fn meet(&self, area: &Area) -> bool {
        self.0.iter().any(|known| area.meets(known))
    }
}

impl Touched {
    fn add(&mut self, area: Area, op: Op) {
        match op.is_write() {
            true => self.written.add(area),
            // Who reads makes no difference.
            false => self.read.add(Area { logical: Entity::PLACEHOLDER, ..area }),
        }
    }

    fn join(&mut self, other: &Touched) {
        other.written.0.iter().for_each(|&area| self.written.add(area));
        other.read.0.iter().for_each(|&area| self.read.add(area));
    }

    fn map(&mut self, change: impl Fn(Area) -> Area) {
        for list in [&mut self.written, &mut self.read] {
            let old = std::mem::take(list);
            old.0.into_iter().for_each(|area| list.add(change(area)));
        }
    }

    fn clear(&mut self) {
        self.written.0.clear();
        self.read.0.clear();
    }

    fn is_subset(&self, other: &Touched) -> bool {
        self.written.0.iter().all(|area| other.written.covers(area))
            && self.read.0.iter().all(|area| other.read.covers(area))
    }
}

/// The pass; see the module.
pub fn place_barriers(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    if world.get::<Geometry>(root).is_some_and(|g| g.wave_count() > 1) {
        Placer::default().region(world, root, &mut Touched::default());
    }
    Ok(())
}

/// Walks regions; what it has found of loops it does not find again.
#[derive(Default)]
struct Placer {
    /// What was touched in front of a loop when it was walked last, and after it.
    walked: NodeMap<(Touched, Touched)>,
    /// Barriers placed so far.
    placed: usize,
}

impl Placer {
    fn barrier(&mut self, world: &mut World, before: Entity) -> Entity {
        self.placed += 1;
        let origin = world.get::<Origin>(before).copied().unwrap_or(Origin(u32::MAX));
        world.spawn((Op::Barrier, Operands::default(), ValueType::unknown(), origin)).id()
    }

    fn region(&mut self, world: &mut World, region: Entity, touched: &mut Touched) {
        // New barriers and the places that they come to.
        let mut new: SmallVec<[(usize, Entity); 8]> = SmallVec::new();
        let mut at = 0;
        while let Some(&node) = world.get::<Body>(region).and_then(|body| body.0.get(at)) {
            match world.get::<Op>(node) {
                // Its schedule has proved its own barriers, and one more would pair up with others.
                Some(Op::Iterate(_)) if world.get::<Staggered>(node).is_some() => {
                    if *touched != Touched::default() {
                        // In front of the barriers that put the waves out of step.
                        let before = world.get::<Body>(region).map(|body| &body.0[..at]).unwrap_or_default();
                        let controls = before.iter().rev().take_while(|&&n| is_control(world, n)).count();
                        new.push((at - controls, self.barrier(world, node)));
                        touched.clear();
                    }
                    note_accesses(world, node, touched);
                }
                Some(Op::Iterate(_)) => {
                    self.iterate(world, node, touched);
                    // Behind a pipeline's loop its iterations go on; elsewhere another loop counts its own.
                    if !matches!(world.get::<Op>(region), Some(Op::Pipeline(_))) {
                        touched.map(|area| Area { ahead: None, ..area });
                    }
                }
                Some(Op::Pipeline(_)) => {
                    let before = touched.clone();
                    self.region(world, node, touched);
                    touched.map(|area| Area { ahead: None, ..area });
                    touched.join(&before);
                }
                Some(Op::Barrier) => touched.clear(),
                Some(&op) if op.is_access() => {
                    if let Some(area) = Area::of(world, node) {
                        let hazard = match op {
                            Op::Read => touched.written.meet(&area),
                            _ => {
                                touched.written.0.iter().any(|other| area.overwrites(other))
                                    || touched.read.meet(&area)
                            }
                        };
                        if hazard {
                            new.push((at, self.barrier(world, node)));
                            touched.clear();
                        }
                        touched.add(area, op);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        if let Some(mut body) = world.get_mut::<Body>(region) {
            new.into_iter().rev().for_each(|(at, barrier)| body.0.insert(at, barrier));
        }
    }

    /// Walks a loop first with what came before, then with what its iterations leave behind, until that is nothing new.
    fn iterate(&mut self, world: &mut World, node: Entity, touched: &mut Touched) {
        if let Some((before, behind)) = self.walked.get(node)
            && before == touched
        {
            touched.clone_from(behind);
            return;
        }
        let (before, placed) = (touched.clone(), self.placed);
        let mut entry = touched.clone();
        let per_pass = Unrolled::of(world, node);
        loop {
            *touched = entry.clone();
            self.region(world, node, touched);
            touched.map(|area| area.next_pass(per_pass));
            if touched.is_subset(&entry) {
                break;
            }
            entry.join(touched);
        }
        // The loop may not run at all.
        *touched = entry;
        // With new barriers inside, the same walk may find less.
        if placed == self.placed {
            self.walked.insert(node, (before, touched.clone()));
        }
    }
}

fn is_control(world: &World, node: Entity) -> bool {
    matches!(world.get::<Op>(node), Some(Op::Control(_)))
}

/// Adds everything that a loop touches, in whatever iteration.
fn note_accesses(world: &World, node: Entity, touched: &mut Touched) {
    for &inner in world.get::<Body>(node).map(|b| &b.0[..]).unwrap_or_default() {
        if let (Some(area), Some(&op)) = (Area::of(world, inner), world.get::<Op>(inner)) {
            touched.add(Area { ahead: None, ..area }, op);
        }
    }
}
