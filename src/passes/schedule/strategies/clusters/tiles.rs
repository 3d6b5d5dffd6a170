//! When what comes through LDS is loaded, written and read.
//!
//! A tile is read whole in the memory cluster `r` in front of the first cluster that takes it: that of a
//! product, or of vector arithmetic beside one. Waves of the late
//! group do in cluster `c + 1` what those of the other group do in cluster `c`, so a tile that is written
//! in cluster `w` may be read from `w + 2` on, and its place may be written again two clusters after it has
//! been read. Writes from registers come two clusters before the read, so one copy is enough; the registers
//! are loaded in the trip before. A load straight into LDS begins a trip before the read, and waves wait
//! for it two clusters before that: it takes two copies.

use bevy_ecs::prelude::*;

use super::super::products::lists::TileNodes;
use super::places::OperationPlaces;
use super::unsuitable::NotClustered;
use crate::ir::schedule::ScheduleTracer;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::{LoopBuffer, LoopGraph};
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;
use crate::passes::schedule::graph::words::describe_at;

/// Something that comes through LDS: its logical nodes and their clusters, which for loads and writes may
/// be those of earlier iterations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ClusterTile {
    pub load: Entity,
    /// The load, if it goes straight into LDS.
    pub write: Entity,
    pub read: Entity,
    pub loaded: i32,
    pub written: i32,
    pub read_at: i32,
    /// Load instructions of a wave.
    pub loads: u32,
    /// Copies that it needs in LDS.
    pub copies: u32,
}

impl ClusterTile {
    pub(super) fn is_direct(&self) -> bool {
        self.load == self.write
    }

    /// Its nodes, which have a tag.
    pub(super) fn nodes(&self, s: &ScheduleTracer, tag: &str) -> TileNodes {
        if self.is_direct() { TileNodes::direct(s, tag) } else { TileNodes::staged(s, tag) }
    }
}

/// The tiles of a loop.
///
/// # Errors
/// If something else goes through LDS or comes from memory.
pub(super) fn of(
    view: SchedulerView,
    found: &LoopGraph,
    places: &OperationPlaces,
) -> Result<Vec<ClusterTile>, NotClustered> {
    let mut tiles = Vec::new();
    for buffer in &found.buffers {
        tiles.push(tile(view, found, places, buffer)?);
    }
    let moves = |own: Entity| tiles.iter().any(|tile| [tile.load, tile.write, tile.read].contains(&own));
    let other = found.body().find(|&node| {
        let class = found.graph.nodes()[node].class;
        let is_access = matches!(
            class,
            Class::ReadGlobal | Class::ReadShared | Class::WriteShared | Class::GlobalToShared
        );
        is_access && !moves(found.nodes[node].expansion.logical)
    });
    match other {
        Some(node) => {
            let what = describe_at(view.world, view.root, found.nodes[node].expansion.logical);
            Err(NotClustered::RoundTrip(what))
        }
        None => Ok(tiles),
    }
}

fn tile(
    view: SchedulerView,
    found: &LoopGraph,
    places: &OperationPlaces,
    buffer: &LoopBuffer,
) -> Result<ClusterTile, NotClustered> {
    let logical = |node: NodeId| found.nodes[node].expansion.logical;
    let Some(&write) = buffer.writes.first() else {
        return Err(NotClustered::RoundTrip("what was written before the loop".to_owned()));
    };
    let round_trip = || NotClustered::RoundTrip(describe_at(view.world, view.root, logical(write)));
    let read = buffer.reads.first().map(|&node| logical(node)).ok_or_else(round_trip)?;
    let is_one = |nodes: &[NodeId], own: Entity| nodes.iter().all(|&node| logical(node) == own);
    if !is_one(&buffer.writes, logical(write)) || !is_one(&buffer.reads, read) {
        return Err(round_trip());
    }
    let load = found.loaded_by(view, write)?.ok_or_else(round_trip)?;
    let is_direct = load == logical(write);
    let mut first = None::<u32>;
    for &node in &buffer.reads {
        let used = places.first_use(found, node);
        let used = used.ok_or(NotClustered::Others("LDS reads that are not used beside products"))?;
        first = Some(first.map_or(used, |known| known.min(used)));
    }
    // Memory clusters are in front of those that multiply and compute.
    let read_at = first.map(|first| first as i32 - 1).ok_or_else(round_trip)?;
    let loaded = read_at - places.per_trip as i32;
    let loads = found.body().filter(|&node| logical(node) == load).count() as u32;
    Ok(ClusterTile {
        load,
        write: logical(write),
        read,
        loaded,
        written: if is_direct { loaded } else { read_at - 2 },
        read_at,
        loads,
        copies: 1 + u32::from(is_direct),
    })
}
