//! Places of the LDS buffers. Buffers that never hold something at the same time may share memory: those of different loops always do,
//! those of one loop only when there is not enough for all, because every sharing costs a barrier.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::facts::{LdsBuffer, LdsBytes, Settings};
use super::{PassResult, kernel_entity};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::Locations;
use crate::ir::node::*;
use crate::ir::walk;

/// How finely lifetimes are told apart.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Grain {
    /// A buffer that a loop uses lives as long as the loop.
    Loops,
    /// A buffer that each iteration fills anew lives from its first to its last access.
    Accesses,
}

/// From the first to the last position at which a buffer holds something.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Lifetime {
    buffer: Entity,
    first: u32,
    last: u32,
    /// What its first access is.
    filled: bool,
}

/// One per buffer.
type Lifetimes = SmallVec<[Lifetime; 8]>;

/// The pass; see the module.
pub fn allocate_lds(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let limit = world.get::<Settings>(root).map_or(0, |s| s.0.target().max_lds_per_workgroup);
    let buffers: SmallVec<[Entity; 8]> = walk::body(world, root)
        .into_iter()
        .filter(|&node| world.get::<Op>(node) == Some(&Op::Allocate))
        .collect();
    let mut total = 0;
    for grain in [Grain::Loops, Grain::Accesses] {
        let mut lifetimes = Lifetimes::new();
        region_lifetimes(world, root, grain, &mut 0, &mut lifetimes);
        total = place(world, &buffers, &lifetimes);
        if total <= limit {
            break;
        }
    }
    if total > limit {
        return Err(too_large(world, root, &buffers, total, limit));
    }
    world.entity_mut(root).insert(LdsBytes(total));
    Ok(())
}

fn too_large(world: &World, root: Entity, buffers: &[Entity], total: u32, limit: u32) -> Diagnostic {
    let size = |node: &Entity| world.get::<LdsBuffer>(*node).map_or(0, |b| b.bytes);
    let largest = buffers.iter().copied().max_by_key(size).unwrap_or(root);
    let at = world.get::<Origin>(largest).and_then(|o| world.get::<Locations>(root)?.get(o.0));
    let text = format!("the tiles need {total} bytes of LDS, and a workgroup has {limit}");
    Diagnostic::new(Kind::Limit, text)
        .at(at)
        .note(format!("the largest tile takes {} bytes", size(&largest)), None)
        .help("use smaller tiles, or read this memory as global")
}

/// The LDS buffer that a node accesses.
pub(super) fn buffer_of(world: &World, node: Entity) -> Option<Entity> {
    if !world.get::<Op>(node).is_some_and(|op| op.is_access()) {
        return None;
    }
    let memory = world.get::<Operands>(node).and_then(|o| o.0.last().copied())?;
    (world.get::<Op>(memory) == Some(&Op::Allocate)).then_some(memory)
}

/// Adds the lifetimes of the buffers that a region uses, at positions counted by `clock`.
fn region_lifetimes(world: &World, region: Entity, grain: Grain, clock: &mut u32, lifetimes: &mut Lifetimes) {
    for &node in world.get::<Body>(region).map(|b| &b.0[..]).unwrap_or_default() {
        *clock += 1;
        if let Some(buffer) = buffer_of(world, node) {
            let filled = world.get::<Op>(node).is_some_and(|op| op.is_write());
            extend(lifetimes, Lifetime { buffer, first: *clock, last: *clock, filled });
        }
        if world.get::<Body>(node).is_some() {
            let begin = *clock;
            let mut inner = Lifetimes::new();
            region_lifetimes(world, node, grain, clock, &mut inner);
            *clock += 1;
            let repeats = matches!(world.get::<Op>(node), Some(Op::Iterate(_)));
            for mut lifetime in inner {
                // What an iteration reads first, another one has left there.
                if grain == Grain::Loops || (repeats && !lifetime.filled) {
                    (lifetime.first, lifetime.last) = (begin, *clock);
                }
                extend(lifetimes, lifetime);
            }
        }
    }
}

fn extend(lifetimes: &mut Lifetimes, lifetime: Lifetime) {
    match lifetimes.iter_mut().find(|l| l.buffer == lifetime.buffer) {
        Some(known) => known.last = known.last.max(lifetime.last),
        None => lifetimes.push(lifetime),
    }
}

/// Gives every buffer the lowest place that is free for its whole life, in order; returns the bytes of all together.
fn place(world: &mut World, buffers: &[Entity], lifetimes: &[Lifetime]) -> u32 {
    let mut placed: SmallVec<[(Lifetime, u32, u32); 8]> = SmallVec::new();
    let mut total = 0;
    for &buffer in buffers {
        let Some(mut found) = world.get_mut::<LdsBuffer>(buffer) else { continue };
        let bytes = found.all_bytes();
        let Some(&life) = lifetimes.iter().find(|l| l.buffer == buffer) else { continue };
        let mut offset = 0;
        // Lowest ends first: a place behind one neighbour may collide with the next.
        let mut busy: SmallVec<[(u32, u32); 8]> = placed
            .iter()
            .filter(|(other, ..)| other.first <= life.last && life.first <= other.last)
            .map(|&(_, start, end)| (start, end))
            .collect();
        busy.sort_unstable();
        for (start, end) in busy {
            if start < offset + bytes {
                offset = offset.max(end);
            }
        }
        found.offset = offset;
        let end = offset.saturating_add(bytes);
        placed.push((life, offset, end));
        total = total.max(end);
    }
    total
}
