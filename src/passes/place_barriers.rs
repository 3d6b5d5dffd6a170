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
use super::schedule::wave_groups::Staggered;
use super::{PassResult, kernel_entity};
use crate::ir::node::*;

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
        let Expansion { logical, iteration, .. } =
            world.get::<Expansion>(node).copied().unwrap_or(Expansion::of(node));
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
    written: SmallVec<[Area; 8]>,
    read: SmallVec<[Area; 8]>,
}

fn add(list: &mut SmallVec<[Area; 8]>, area: Area) {
    if !list.contains(&area) {
        list.push(area);
    }
}

impl Touched {
    fn join(&mut self, other: &Touched) {
        other.written.iter().for_each(|&area| add(&mut self.written, area));
        other.read.iter().for_each(|&area| add(&mut self.read, area));
    }

    fn map(&mut self, change: impl Fn(Area) -> Area) {
        for list in [&mut self.written, &mut self.read] {
            let old = std::mem::take(list);
            old.into_iter().for_each(|area| add(list, change(area)));
        }
    }

    fn clear(&mut self) {
        self.written.clear();
        self.read.clear();
    }

    fn is_subset(&self, other: &Touched) -> bool {
        self.written.iter().all(|area| other.written.contains(area))
            && self.read.iter().all(|area| other.read.contains(area))
    }
}

/// The pass; see the module.
pub fn place_barriers(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    if world.get::<Geometry>(root).is_some_and(|g| g.wave_count() > 1) {
        place_in_region(world, root, &mut Touched::default());
    }
    Ok(())
}

fn place_in_region(world: &mut World, region: Entity, touched: &mut Touched) {
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
                    new.push((at - controls, spawn_barrier(world, node)));
                    touched.clear();
                }
                note_accesses(world, node, touched);
            }
            Some(Op::Iterate(_)) => {
                place_in_loop(world, node, touched);
                // Behind a pipeline's loop its iterations go on; elsewhere another loop counts its own.
                if !matches!(world.get::<Op>(region), Some(Op::Pipeline(_))) {
                    touched.map(|area| Area { ahead: None, ..area });
                }
            }
            Some(Op::Pipeline(_)) => {
                let before = touched.clone();
                place_in_region(world, node, touched);
                touched.map(|area| Area { ahead: None, ..area });
                touched.join(&before);
            }
            Some(Op::Barrier) => touched.clear(),
            Some(&op) if op.is_access() => {
                if let Some(area) = Area::of(world, node) {
                    let hazard = match op {
                        Op::Read => touched.written.iter().any(|other| area.meets(other)),
                        _ => {
                            touched.written.iter().any(|other| area.overwrites(other))
                                || touched.read.iter().any(|other| area.meets(other))
                        }
                    };
                    if hazard {
                        new.push((at, spawn_barrier(world, node)));
                        touched.clear();
                    }
                    add(if op.is_write() { &mut touched.written } else { &mut touched.read }, area);
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
fn place_in_loop(world: &mut World, node: Entity, touched: &mut Touched) {
    let mut entry = touched.clone();
    let per_pass = Unrolled::of(world, node);
    loop {
        *touched = entry.clone();
        place_in_region(world, node, touched);
        touched.map(|area| area.next_pass(per_pass));
        if touched.is_subset(&entry) {
            break;
        }
        entry.join(touched);
    }
    // The loop may not run at all.
    *touched = entry;
}

fn is_control(world: &World, node: Entity) -> bool {
    matches!(world.get::<Op>(node), Some(Op::Control(_)))
}

/// Adds everything that a loop touches, in whatever iteration.
fn note_accesses(world: &World, node: Entity, touched: &mut Touched) {
    for &inner in world.get::<Body>(node).map(|b| &b.0[..]).unwrap_or_default() {
        if let Some(area) = Area::of(world, inner).map(|area| Area { ahead: None, ..area }) {
            let write = world.get::<Op>(inner).is_some_and(|op| op.is_write());
            add(if write { &mut touched.written } else { &mut touched.read }, area);
        }
    }
}

fn spawn_barrier(world: &mut World, before: Entity) -> Entity {
    let origin = world.get::<Origin>(before).copied().unwrap_or(Origin(u32::MAX));
    world.spawn((Op::Barrier, Operands::default(), ValueType::unknown(), origin)).id()
}
