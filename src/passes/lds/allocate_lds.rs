//! Places of the LDS buffers. Buffers that never hold data at the same time may share memory: those of
//! different loops always do, those of one loop only when there is not enough for all, because every sharing
//! costs a barrier.
//!
//! Offsets are given after scheduling, so that copies and lifetimes are known, in the order of buffers, and
//! by size if that leaves holes. A schedule asks for its copies before there are places: where not all
//! buffers fit beside each other, it counts those that are alive where the loop's own are, with innermost
//! loops as one position each (`schedule/graph/lds_use`).

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use smallvec::{SmallVec, smallvec};

use super::lds_lifetimes::{Grain, LdsLifetimes, LdsProgram, LdsSpan};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::ExprArena;
use crate::ir::kernel::{KernelName, Locations};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes;
use crate::passes::PassResult;
use crate::passes::facts::{Expressions, LdsBuffer, LdsBytes, Settings};
use crate::passes::loops::expand::Expansion;

/// Nodes as far as accesses of LDS are concerned: few components, because there are many expanded nodes.
pub(super) type LdsNodes<'w, 's> = Query<'w, 's, (&'static Op, &'static Operands, &'static Origin)>;

/// Which expanded accesses are at coordinates: these fill only some of a buffer.
#[derive(SystemParam)]
pub(crate) struct MappedPieces<'w, 's> {
    mappings: Query<'w, 's, (), With<Mapping>>,
    expansions: Query<'w, 's, &'static Expansion>,
}

impl MappedPieces<'_, '_> {
    fn contains(&self, access: Entity) -> bool {
        !self.mappings.is_empty()
            && self.expansions.get(access).is_ok_and(|piece| self.mappings.contains(piece.logical))
    }
}

/// A kernel whose accesses are expanded.
struct PlacedProgram<'a, 'w, 's> {
    bodies: &'a Query<'w, 's, &'static Body>,
    nodes: &'a LdsNodes<'w, 's>,
    mapped: &'a MappedPieces<'w, 's>,
    trips: &'a Query<'w, 's, &'static Trip>,
    expressions: &'a ExprArena,
}

impl LdsProgram for PlacedProgram<'_, '_, '_> {
    type Fault = Diagnostic;

    fn body(&self, region: Entity) -> Result<&[Entity], Diagnostic> {
        Ok(nodes::body(self.bodies, region)?)
    }

    fn look(&self, node: Entity) -> Result<(Op, Option<Entity>), Diagnostic> {
        let (&op, operands, _) = self.nodes.get(node)?;
        Ok((op, accessed(self.nodes, op, operands)?))
    }

    fn is_mapped(&self, access: Entity) -> bool {
        self.mapped.contains(access)
    }

    fn surely_runs(&self, looped: Entity) -> bool {
        self.trips.get(looped).is_ok_and(|trip| trip.surely_runs(self.expressions))
    }
}

/// The pass itself; see the module.
pub(crate) fn allocate_lds(
    kernel: Single<(Entity, &Settings, &Locations, &Expressions), With<KernelName>>,
    bodies: Query<&'static Body>,
    trips: Query<&'static Trip>,
    accesses: LdsNodes,
    mapped: MappedPieces,
    mut placed: Query<&mut LdsBuffer>,
    mut commands: Commands,
) -> PassResult {
    let (root, settings, locations, Expressions(expressions)) = *kernel;
    let target = settings.0.target();
    let (limit, granule) = (target.max_lds_per_workgroup, target.lds_granule);
    let mut buffers: SmallVec<[Entity; 8]> = SmallVec::new();
    for &node in nodes::body(&bodies, root)? {
        if *accesses.get(node)?.0 == Op::Allocate {
            buffers.push(node);
        }
    }
    let program =
        PlacedProgram { bodies: &bodies, nodes: &accesses, mapped: &mapped, trips: &trips, expressions };
    let mut total = 0u64;
    for grain in [Grain::Loops, Grain::Accesses] {
        let lifetimes = LdsLifetimes::of(&program, root, grain)?;
        // Wherever they are placed, those that are alive together lie side by side.
        total = 0;
        for (buffer, _) in lifetimes.spans.iter() {
            total += u64::from(placed.get(buffer)?.all_bytes());
        }
        if total <= granule.into() {
            // Together they take the least that a workgroup can have: sharing would save nothing.
            total = place_apart(&mut placed, &buffers, &lifetimes)?;
            break;
        }
        // Two lie side by side or share their place, in either order.
        let least = match buffers.len() > 2 || total > limit.into() {
            true => most_alive(&placed, &lifetimes)?,
            false => total,
        };
        if least > limit.into() {
            total = least;
            continue;
        }
        total = place_tightly(&mut placed, &buffers, &lifetimes, least)?;
        if total <= limit.into() {
            break;
        }
    }
    if total > limit.into() {
        let size = |node: &Entity| placed.get(*node).map_or(0, |buffer| buffer.bytes);
        let largest = buffers.iter().copied().max_by_key(size).unwrap_or(root);
        let at = accesses.get(largest).ok().and_then(|(_, _, origin)| locations.get(origin.0));
        return Err(too_large(size(&largest), total, limit).at(at));
    }
    commands.entity(root).insert(LdsBytes(total as u32));
    Ok(())
}

fn too_large(largest: u32, total: u64, limit: u32) -> Diagnostic {
    let text = format!("the tiles need {total} bytes of LDS, and a workgroup has {limit}");
    Diagnostic::new(Kind::Limit, text)
        .note(format!("the largest tile takes {largest} bytes"), None)
        .help("use smaller tiles, or read this memory as global")
}

/// The LDS buffer that a node with this operation and these operands accesses.
pub(super) fn accessed(nodes: &LdsNodes, op: Op, operands: &Operands) -> Result<Option<Entity>, Diagnostic> {
    if !op.is_access() {
        return Ok(None);
    }
    let memory = operands.last()?;
    Ok((*nodes.get(memory)?.0 == Op::Allocate).then_some(memory))
}

/// The most bytes that hold data at one position.
fn most_alive(placed: &Query<&mut LdsBuffer>, lifetimes: &LdsLifetimes) -> Result<u64, Diagnostic> {
    let mut changes = vec![0i64; lifetimes.positions as usize + 1];
    for (buffer, spans) in lifetimes.spans.iter() {
        let bytes = i64::from(placed.get(buffer)?.all_bytes());
        for &[first, last] in spans {
            changes[first as usize] += bytes;
            changes[last as usize + 1] -= bytes;
        }
    }
    let (mut now, mut most) = (0, 0);
    for change in changes {
        now += change;
        most = most.max(now);
    }
    Ok(most.unsigned_abs())
}

/// Widest access of LDS, in bytes: places are multiples of it.
const WIDEST_ACCESS: u32 = 16;

/// Gives every buffer a place of its own; returns the bytes of all of them.
fn place_apart(
    found: &mut Query<&mut LdsBuffer>,
    buffers: &[Entity],
    lifetimes: &LdsLifetimes,
) -> Result<u64, Diagnostic> {
    let mut end = 0u32;
    for &buffer in buffers.iter().filter(|&&buffer| lifetimes.spans.get(buffer).is_some()) {
        let mut found = found.get_mut(buffer)?;
        found.offset = end.next_multiple_of(WIDEST_ACCESS);
        end = found.offset + found.all_bytes();
    }
    Ok(end.into())
}

/// Places buffers in their order or, if that takes more than `least` bytes, by size or by when they live if
/// this takes fewer: small buffers that live long leave holes in which larger ones find no place. Returns the
/// bytes of all of them.
fn place_tightly(
    found: &mut Query<&mut LdsBuffer>,
    buffers: &[Entity],
    lifetimes: &LdsLifetimes,
    least: u64,
) -> Result<u64, Diagnostic> {
    let in_order = place(found, buffers, lifetimes)?;
    if in_order <= least {
        return Ok(in_order);
    }
    let [mut by_size, mut by_life] = [(); 2].map(|()| SmallVec::<[Entity; 8]>::from_slice(buffers));
    by_size.sort_by_key(|&buffer| found.get(buffer).map_or(0, |found| u32::MAX - found.all_bytes()));
    by_life.sort_by_key(|&buffer| lifetimes.spans.get(buffer).map_or(0, |spans| spans[0][0]));
    let mut best = (in_order, buffers);
    for order in [&by_size[..], &by_life[..]] {
        let total = place(found, order, lifetimes)?;
        if total < best.0 {
            best = (total, order);
        }
    }
    place(found, best.1, lifetimes)
}

/// Gives every buffer, in this order, the lowest place that is free while it lives; returns the bytes of all
/// of them.
fn place(
    found: &mut Query<&mut LdsBuffer>,
    buffers: &[Entity],
    lifetimes: &LdsLifetimes,
) -> Result<u64, Diagnostic> {
    let mut placed = PlacedBuffers::new(buffers.len(), lifetimes.positions);
    let mut total = 0;
    let mut busy: SmallVec<[(u32, u32); 16]> = SmallVec::new();
    for &buffer in buffers {
        // A buffer without accesses needs no place.
        let Some(spans) = lifetimes.spans.get(buffer) else { continue };
        let mut found = found.get_mut(buffer)?;
        let bytes = found.all_bytes();
        let mut offset = 0u32;
        busy.clear();
        for &span in spans {
            placed.beside(span, |start, end| busy.push((start, end)));
        }
        // Lowest ends first: a place after one neighbour may collide with the next.
        busy.sort_unstable();
        for &(start, end) in &busy {
            if start < offset.saturating_add(bytes) {
                offset = offset.max(end);
            }
        }
        found.offset = offset;
        let end = offset.saturating_add(bytes);
        for &span in spans {
            placed.add(span, offset, end);
        }
        total = total.max(end);
    }
    Ok(total.into())
}

/// Buffers that have a place, found by when they live: the life of the kernel in about as many spans as there
/// are buffers.
struct PlacedBuffers {
    /// Positions per span, as a power of two.
    shift: u32,
    /// In each span the buffers that live there, except those that live long.
    spans: SmallVec<[SmallVec<[Neighbour; 2]>; 8]>,
    long: SmallVec<[Neighbour; 8]>,
}

/// First and last position of a buffer's life, where it starts and where it ends.
type Neighbour = (u32, u32, u32, u32);

/// Spans that a buffer may be entered in.
const MAX_SPANS: u32 = 8;

impl PlacedBuffers {
    fn new(buffers: usize, end: u32) -> PlacedBuffers {
        let shift = (end / (buffers as u32).max(1)).max(1).ilog2();
        PlacedBuffers {
            shift,
            spans: smallvec![SmallVec::new(); (end >> shift) as usize + 1],
            long: SmallVec::new(),
        }
    }

    fn spans_of(&self, [first, last]: LdsSpan) -> std::ops::RangeInclusive<usize> {
        (first >> self.shift) as usize..=(last >> self.shift) as usize
    }

    fn add(&mut self, life: LdsSpan, start: u32, end: u32) {
        let neighbour = (life[0], life[1], start, end);
        let spans = self.spans_of(life);
        if spans.end() - spans.start() >= MAX_SPANS as usize {
            self.long.push(neighbour);
        } else {
            self.spans[spans].iter_mut().for_each(|span| span.push(neighbour));
        }
    }

    /// Calls `see` with the places of the buffers that live at the same time, with some of them more than
    /// once.
    fn beside(&self, life: LdsSpan, mut see: impl FnMut(u32, u32)) {
        let near = self.spans[self.spans_of(life)].iter().flatten();
        for &(first, last, start, end) in near.chain(&self.long) {
            if first <= life[1] && life[0] <= last {
                see(start, end);
            }
        }
    }
}
