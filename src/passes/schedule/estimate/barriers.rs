//! Where a trip's barriers will be: those of `place_barriers`, for one loop and without its neighbours.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::steps::{TripControl, TripStep};
use crate::passes::schedule::apply::copies::PlannedCopies;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::LoopGraph;
use cranelift_entity::PrimaryMap;

/// An access of one of a loop's LDS buffers.
#[derive(Copy, Clone)]
struct TripAccess {
    buffer: usize,
    writes: bool,
}

/// What has been done to a copy of a buffer since the last barrier.
#[derive(Copy, Clone)]
struct Touched {
    buffer: usize,
    copy: u32,
    writes: bool,
}

/// The nodes in their order, with a barrier wherever a copy of a buffer is written and read on both sides.
pub(super) fn placed(
    found: &LoopGraph,
    assignment: &Assignment,
    order: &[NodeId],
    copies: &PlannedCopies,
) -> Vec<TripStep> {
    let mut access: PrimaryMap<NodeId, Option<TripAccess>> = found.graph.table(None);
    let mut buffers: SmallVec<[Entity; 4]> = SmallVec::new();
    for fill in &found.buffers {
        let buffer = buffers.iter().position(|&known| known == fill.buffer).unwrap_or_else(|| {
            buffers.push(fill.buffer);
            buffers.len() - 1
        });
        fill.writes.iter().for_each(|&node| access[node] = Some(TripAccess { buffer, writes: true }));
        fill.reads.iter().for_each(|&node| access[node] = Some(TripAccess { buffer, writes: false }));
    }
    let count = |buffer: usize| {
        copies.iter().find(|known| Some(&known.0) == buffers.get(buffer)).map_or(1, |known| known.1.max(1))
    };
    let counts: SmallVec<[u32; 4]> = (0..buffers.len()).map(count).collect();
    let mut before = vec![false; order.len()];
    let mut touched: SmallVec<[Touched; 16]> = SmallVec::new();
    // After as many trips as there are stages and copies nothing new comes around the back edge.
    let stages = assignment.stages();
    let trips = stages + counts.iter().copied().max().unwrap_or(1) + 1;
    for trip in stages..stages + trips {
        for (at, &node) in order.iter().enumerate() {
            let Some(TripAccess { buffer, writes }) = access[node] else { continue };
            let copy = (trip + stages - assignment.stage(node)) % counts[buffer];
            let meets = |one: &Touched| (one.buffer, one.copy) == (buffer, copy) && one.writes != writes;
            before[at] |= touched.iter().any(meets);
            if before[at] {
                touched.clear();
            }
            let is_known = |one: &Touched| (one.buffer, one.copy, one.writes) == (buffer, copy, writes);
            if !touched.iter().any(is_known) {
                touched.push(Touched { buffer, copy, writes });
            }
        }
    }
    let mut steps = Vec::with_capacity(order.len() + 4);
    for (&node, before) in order.iter().zip(before) {
        if before {
            steps.push(TripStep::Control(TripControl::SharedMemoryBarrier));
        }
        steps.push(TripStep::Node(node));
    }
    steps
}
