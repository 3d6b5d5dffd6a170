//! Where loads straight into LDS go: into the region after the one that reads last what they overwrite.
//!
//! The halves of an iteration are read in four turns: the first half of the kept factor in the last region of
//! the trip before, and the others in the first three regions of the trip. So what is read in turn `t` is
//! loaded anew in region `t`.

use bevy_ecs::prelude::*;

use super::halves::apart;
use super::{Factor, QuadrantMoves, REGIONS, SCALES};
use crate::ir::control::MAX_LOADS;
use crate::ir::layout::{Dim, Layout};
use crate::ir::nodes::Bug;
use crate::passes::schedule::graph::buffer_parts::parts_with;
use crate::passes::schedule::graph::coordinates::PlacesAlong;
use crate::passes::schedule::strategies::products::operations::Operations;

/// The turns in which the halves of a factor are read.
const KEPT: [usize; 2] = [0, 2];
const SHARED: [usize; 2] = [1, 3];

/// A load straight into LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct DirectLoad {
    /// The number of its factor, and its own number among the loads of the factor.
    side: usize,
    number: u32,
    /// The turns that read what it brings.
    is_read: [bool; REGIONS],
}

impl DirectLoad {
    /// The region after the last turn that reads what it overwrites.
    fn region(&self) -> usize {
        self.is_read.iter().rposition(|&is_read| is_read).unwrap_or(0)
    }
}

/// The regions of the loads of both factors, which are cut along `cut`, with so many copies of the tiles in
/// LDS, and the layouts that loads need for that, if these are not their own. Scales are loaded last of their
/// region.
pub(super) fn direct(
    operations: &Operations,
    factors: &[[Entity; 3]; 2],
    (cut, shared): ([Dim; 2], Factor),
    (copies, scale_loads): (u32, u32),
) -> Result<(QuadrantMoves, [Option<Layout>; 2]), Bug> {
    let [shared, _] = shared.and_other();
    // In the order of issue: by region, and then by factor.
    let mut issued = Vec::new();
    let mut layouts = [None, None];
    for (side, (&[read, load, _], dim)) in factors.iter().zip(cut).enumerate() {
        let turns = if side == shared { SHARED } else { KEPT };
        layouts[side] = apart(operations.view, load, dim)?;
        let layout = layouts[side].as_ref();
        issued.extend(of_factor(operations, (read, load, dim), layout, (side, turns))?);
    }
    issued.sort_by_key(DirectLoad::region);
    let mut loads: Box<[[Vec<u32>; REGIONS]; 2]> = Box::default();
    let mut ends = [0; REGIONS];
    for load in &issued {
        loads[load.side][load.region()].push(load.number);
        ends[load.region()..].iter_mut().for_each(|end| *end += 1);
    }
    ends[SCALES..].iter_mut().for_each(|end| *end += i64::from(scale_loads));
    let per_trip = ends[REGIONS - 1];
    // At the end of the region before a turn: loads since the beginning of the trip that the turn belongs to.
    let since = [ends[2] - per_trip, 0, ends[0], ends[1]];
    let mut under_way = [None; REGIONS];
    for (turn, since) in since.into_iter().enumerate() {
        // What comes after the last load that the turn needs, as many trips earlier as there are copies.
        let Some(last) = issued.iter().rposition(|load| load.is_read[turn]) else { continue };
        let scales = if issued[last].region() > SCALES { scale_loads } else { 0 };
        let after = i64::from(copies) * per_trip - (last as i64 + 1 + i64::from(scales)) + since;
        under_way[(turn + 2) % REGIONS] = Some(after.clamp(0, MAX_LOADS) as u8);
    }
    Ok((QuadrantMoves::Direct { copies, loads, under_way }, layouts))
}

/// The loads of a factor, in this layout if it is not their own, whose halves along `dim` are read in these
/// turns.
fn of_factor(
    operations: &Operations,
    (read, load, dim): (Entity, Entity, Dim),
    layout: Option<&Layout>,
    (side, turns): (usize, [usize; 2]),
) -> Result<Vec<DirectLoad>, Bug> {
    let view = operations.view;
    let pieces = |own: Entity| {
        let all = operations.pairs().filter(|(_, logical)| *logical == own);
        all.map(|(node, _)| node.entity).collect::<Vec<Entity>>()
    };
    let [reads, loads] = [read, load].map(pieces);
    let mut along = PlacesAlong::new(view, dim);
    let places = reads.iter().map(|&node| along.of(node)).collect::<Result<Vec<_>, Bug>>()?;
    let mut distinct = places.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let half = |place| usize::from(2 * distinct.partition_point(|known| known < place) >= distinct.len());
    let Some(&first) = reads.first() else { return Ok(Vec::new()) };
    let buffer = view.node(first)?.memory()?;
    let other = layout.map(|layout| (load, layout));
    let parts = parts_with(view, buffer, &[&reads[..], &loads[..]].concat(), other)?;
    let count = parts.iter().max().map_or(0, |&last| last as usize + 1);
    let mut is_read = vec![[false; REGIONS]; count];
    for (&part, place) in parts.iter().zip(&places) {
        is_read[part as usize][turns[half(place)]] = true;
    }
    let loaded = parts[reads.len()..].iter().zip(0..);
    Ok(loaded.map(|(&part, number)| DirectLoad { side, number, is_read: is_read[part as usize] }).collect())
}
