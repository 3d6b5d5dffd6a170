//! Two phases: while one wave of a SIMD multiplies, the other one does everything else of its iteration.
//!
//! It suits loops whose products stand in chains with arithmetic between them, as those of attention do. The
//! operations of an iteration get half trips by the units that they occupy and by what they need (`halves`):
//! products run in the first half of a trip, together with the LDS reads of their factors, and vector
//! arithmetic and global loads in the second half, of the trip that their operands allow. So a trip holds the
//! products of several iterations, and nothing in a half waits for anything else in it but in its own order.
//! Half of the waves runs half a trip late, and a barrier after each half keeps it so.
//!
//! Tiles are written to LDS so early that both groups have written before either reads, and into as many
//! copies as it takes that both have read before either writes (`tiles`). Reads stand between the products
//! (`reads`), so that few registers hold factors at a time; the last products come after the barrier of their
//! half, beside the first reads of the other group (`late_products`). All of it is written down as an
//! author's schedule (`order`).
//!
//! - `halves`: in which half trip each operation of an iteration runs
//! - `tiles`: when what comes through LDS is loaded, written and read
//! - `product_order`: the matrix instructions of a trip
//! - `reads`: after which products LDS is read
//! - `late_products`: which products come after the barrier
//! - `order`: the schedule
//! - `unsuitable`: why a loop gets none

mod halves;
mod late_products;
mod order;
mod product_order;
mod reads;
mod tiles;
mod unsuitable;

use std::cmp::Reverse;

use bevy_ecs::prelude::*;

use self::halves::{HalfOperation, HalfTrips, OperationId, Phase};
use self::late_products::LateProducts;
use self::order::schedule_of_two_phases;
use self::product_order::{ProductOrder, WalkedDim};
use self::reads::ReadGroup;
use self::tiles::{StagedTile, StagedTiles};
use self::unsuitable::NotTwoPhases;
use super::products::tags::NodeTags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::nodes::Bug;
use crate::passes::schedule::apply::copies::LdsRoom;
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::{SchedulerView, Seldom};

/// Writes down the schedule of a loop in two phases, or says why the loop is not suited to that.
///
/// # Errors
/// A schedule that cannot be written, which is a bug of this compiler.
pub(crate) fn write(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
) -> Result<Result<WrittenSchedule, String>, Diagnostic> {
    match classify(view, node, found) {
        Ok(phases) => {
            let (tags, tagged) = NodeTags::plain(&phases.named());
            Ok(Ok(WrittenSchedule::new(schedule_of_two_phases(&phases, &tags)?, tagged)))
        }
        Err(NotTwoPhases::Broken(bug)) => Err(bug.into()),
        Err(why) => Ok(Err(why.to_string())),
    }
}

/// An operation that runs as it stands, without LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct PlacedOperation {
    logical: Entity,
    /// Half trips from the beginning of the pipeline.
    half: u32,
    /// Why it is left out most of the time, if it is.
    seldom: Option<Seldom>,
}

/// A loop in two phases.
#[derive(Clone, PartialEq, Eq, Debug)]
struct TwoPhases {
    /// The logical loop.
    looped: Entity,
    /// The products, in the order in which a trip has them.
    products: Vec<PlacedOperation>,
    /// The operations of the other phase likewise.
    others: Vec<PlacedOperation>,
    /// What comes through LDS.
    tiles: StagedTiles,
    /// The dimension along which products walk each read.
    walked: Vec<Option<WalkedDim>>,
    /// Reads between products.
    groups: Vec<ReadGroup>,
    /// Products after the barrier of their half.
    late: Option<LateProducts>,
    /// Matrix instructions in front of that barrier.
    count: u32,
    /// LDS writes among them.
    writes: u32,
    /// Copies of the tiles in LDS.
    copies: u32,
    /// Trips that are written one after the other, so that addresses of copies are constants.
    unrolled: u32,
}

impl TwoPhases {
    /// The nodes that the schedule speaks of: those of the loop, of each product, of each other operation and
    /// of each tile.
    fn named(&self) -> Vec<(&'static str, Vec<Entity>)> {
        let of = |name, list: &[PlacedOperation]| -> Vec<(&'static str, Vec<Entity>)> {
            list.iter().map(|operation| (name, vec![operation.logical])).collect()
        };
        let mut named = vec![("loop", vec![self.looped])];
        named.extend(of("product", &self.products));
        named.extend(of("other", &self.others));
        for (tile, number) in self.tiles.tiles.iter().zip(0..) {
            let mut own = vec![tile.load];
            own.extend((!tile.is_direct()).then_some(tile.write));
            let mut reads = self.tiles.reads.iter().filter(|read| read.tile == number);
            own.extend(reads.next().map(|read| read.logical));
            named.push(("tile", own));
            named.extend(reads.map(|read| ("read", vec![read.logical])));
        }
        named
    }
}

/// Finds the half trips of a loop's operations.
///
/// # Errors
/// Why it is not such a loop.
fn classify(view: SchedulerView, node: Entity, found: &LoopGraph) -> Result<TwoPhases, NotTwoPhases> {
    let (waves, target) = (view.waves()?, view.settings()?.target());
    if waves == 0 || !waves.is_multiple_of(2 * target.simds_per_compute_unit) {
        return Err(NotTwoPhases::Waves(waves));
    }
    if found.body().any(|node| found.is_fence(node)) {
        return Err(NotTwoPhases::Others("barriers or controls"));
    }
    let mut halves = HalfTrips::of(found)?;
    let mut tiles = tiles::of(view, found, &mut halves)?;
    halves.check(found)?;
    let [products, others] = in_order(&halves);
    let copies = tiles.tiles.iter().map(|tile| tile.copies).max().unwrap_or(1);
    LdsRoom::of(view, found)?.copies(copies, copies)?;
    let nodes = ProductOrder::of(found, &halves, &products);
    let walked =
        (tiles.reads.iter().map(|read| nodes.parts(view, found, read))).collect::<Result<Vec<_>, Bug>>()?;
    let reads = (&tiles.reads[..], &walked[..]);
    let mut groups = reads::groups(view, found, (&nodes, None), reads)?;
    let late = late_products::of(view, found, &nodes, groups[0].clk)?;
    if late.is_some() {
        groups = reads::groups(view, found, (&nodes, late), reads)?;
    }
    let earliest = halves.earliest().div_euclid(2) * 2;
    let last = halves.operations.values().map(|own| own.half - earliest).max().unwrap_or(0);
    tiles.shift(earliest);
    let pieces = |logical| found.nodes.values().filter(|own| own.expansion.logical == logical).count() as u32;
    let written = |tile: &&StagedTile| !tile.is_direct() && Phase::of(tile.written) == Phase::Products;
    let writes = tiles.tiles.iter().filter(written).map(|tile| pieces(tile.write)).sum();
    let placed = |id: OperationId| {
        let own = &halves.operations[id];
        let half = u32::try_from(own.half - earliest).unwrap_or(0);
        PlacedOperation { logical: own.logical, half, seldom: view.seldom(own.logical) }
    };
    // Iterations of the pipeline before its first trip, and two unrolled trips.
    let enough = last as u32 / 2 + 2 * copies;
    let unrolls = view.most_iterations(node)?.is_none_or(|most| most >= enough);
    Ok(TwoPhases {
        looped: view.node(node)?.piece(node).logical,
        count: late.map_or(nodes.count(), |late| late.barrier),
        late,
        products: products.into_iter().map(placed).collect(),
        others: others.into_iter().map(placed).collect(),
        writes,
        walked,
        groups,
        copies,
        unrolled: if unrolls { copies } else { 1 },
        tiles,
    })
}

/// The products, and the other operations that have a place of their own, in the order of a trip: in a half
/// trip those of the oldest iteration come first.
fn in_order(halves: &HalfTrips) -> [Vec<OperationId>; 2] {
    let own = |(id, own): (OperationId, &HalfOperation)| {
        (own.class != Class::Free && !halves.is_moved[id]).then_some(id)
    };
    let mut ids: Vec<OperationId> = halves.operations.iter().filter_map(own).collect();
    ids.sort_by_key(|&id| (Reverse(halves.operations[id].half), id));
    let (products, others) = ids.into_iter().partition(|&id| halves.operations[id].class == Class::Mma);
    [products, others]
}
