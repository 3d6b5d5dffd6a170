//! When what comes through LDS is loaded, written and read.
//!
//! Waves of the late group do in half trip `h + 1` what those of the other group do in half trip `h`. So a
//! tile that is written in half trip `w` may be read from half trip `w + 2` on, and if it is read for the
//! last time in half trip `r`, its place may be written again from `r + 2` on. A load straight into LDS that
//! begins in half trip `w` is over at the end of `w + 1`, so that its tile may be read from `w + 3` on.

use bevy_ecs::prelude::*;

use super::super::products::lists::TileNodes;
use super::halves::{HalfTrips, Phase};
use super::unsuitable::NotTwoPhases;
use crate::ir::schedule::ScheduleTracer;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::{LoopBuffer, LoopGraph};
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;
use crate::passes::schedule::graph::words::describe_at;

/// A logical read of a tile from LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct TileRead {
    /// The number of the tile.
    pub tile: usize,
    pub logical: Entity,
    pub half: i32,
}

impl TileRead {
    /// True if products use it first.
    pub(super) fn is_factor(&self) -> bool {
        Phase::of(self.half) == Phase::Products
    }
}

/// Something that comes through LDS: its logical nodes and their half trips.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct StagedTile {
    pub load: Entity,
    /// The load, if it goes straight into LDS.
    pub write: Entity,
    pub loaded: i32,
    pub written: i32,
    /// Copies that it needs in LDS.
    pub copies: u32,
}

impl StagedTile {
    pub(super) fn is_direct(&self) -> bool {
        self.load == self.write
    }

    /// Its nodes, which have a tag.
    pub(super) fn nodes(&self, s: &ScheduleTracer, tag: &str) -> TileNodes {
        if self.is_direct() { TileNodes::direct(s, tag) } else { TileNodes::staged(s, tag) }
    }
}

/// What comes through LDS, and the reads of it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct StagedTiles {
    pub tiles: Vec<StagedTile>,
    /// Those of each tile, the first ones first.
    pub reads: Vec<TileRead>,
}

impl StagedTiles {
    /// Counts half trips from this one on.
    pub(super) fn shift(&mut self, earliest: i32) {
        let written = self.tiles.iter_mut().flat_map(|tile| [&mut tile.loaded, &mut tile.written]);
        for half in written.chain(self.reads.iter_mut().map(|read| &mut read.half)) {
            *half -= earliest;
        }
    }
}

/// The tiles of a loop; their operations get their half trips.
///
/// # Errors
/// If something else goes through LDS.
pub(super) fn of(
    view: SchedulerView,
    found: &LoopGraph,
    halves: &mut HalfTrips,
) -> Result<StagedTiles, NotTwoPhases> {
    let mut tiles = StagedTiles::default();
    for buffer in &found.buffers {
        add(view, found, (halves, buffer), &mut tiles)?;
    }
    let moves = tiles.tiles.iter().flat_map(|tile| [(tile.load, tile.loaded), (tile.write, tile.written)]);
    for (logical, half) in moves.chain(tiles.reads.iter().map(|read| (read.logical, read.half))) {
        if let Some((id, _)) = halves.operations.iter().find(|(_, own)| own.logical == logical) {
            halves.operations[id].half = half;
            halves.is_moved[id] = true;
        }
    }
    let is_shared = |class| matches!(class, Class::ReadShared | Class::WriteShared | Class::GlobalToShared);
    let other = halves.operations.iter().find(|(id, own)| is_shared(own.class) && !halves.is_moved[*id]);
    match other {
        Some((_, own)) => Err(NotTwoPhases::RoundTrip(describe_at(view.world, view.root, own.logical))),
        None => Ok(tiles),
    }
}

fn add(
    view: SchedulerView,
    found: &LoopGraph,
    (halves, buffer): (&HalfTrips, &LoopBuffer),
    tiles: &mut StagedTiles,
) -> Result<(), NotTwoPhases> {
    let logical = |node: NodeId| found.nodes[node].expansion.logical;
    let Some(&write) = buffer.writes.first() else {
        return Err(NotTwoPhases::RoundTrip("what was written before the loop".to_owned()));
    };
    let round_trip = || NotTwoPhases::RoundTrip(describe_at(view.world, view.root, logical(write)));
    if buffer.writes.iter().any(|&other| logical(other) != logical(write)) {
        return Err(round_trip());
    }
    let load = found.loaded_by(view, write)?.ok_or_else(round_trip)?;
    let mut reads: Vec<TileRead> = Vec::new();
    for &node in &buffer.reads {
        let half =
            halves.first_use(found, node).ok_or(NotTwoPhases::Others("LDS reads that nothing uses"))?;
        match reads.iter_mut().find(|read| read.logical == logical(node)) {
            Some(known) => known.half = known.half.min(half),
            None => reads.push(TileRead { tile: tiles.tiles.len(), logical: logical(node), half }),
        }
    }
    reads.sort_by_key(|read| read.half);
    let [Some(first), Some(last)] = [reads.first(), reads.last()].map(|read| read.map(|read| read.half))
    else {
        return Err(round_trip());
    };
    // Loads leave the matrix cores alone in the other phase. Writes of factors come with the products: two
    // copies of a tile are enough then. Loads straight into LDS are over at the end of the next half trip.
    let (is_direct, is_factor) = (load == logical(write), Phase::of(first) == Phase::Products);
    let written = first
        - match (is_direct, is_factor) {
            (false, _) => 2,
            (true, true) => 3,
            (true, false) => 4,
        };
    let loaded = written - if is_direct { 0 } else { i32::from(is_factor) + 2 * i32::from(!is_factor) };
    // A place is written again two half trips for each copy later.
    let copies = ((last + 2 - written) as u32).div_ceil(2);
    tiles.tiles.push(StagedTile { load, write: logical(write), loaded, written, copies });
    tiles.reads.extend(reads);
    Ok(())
}
