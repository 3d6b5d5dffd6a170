//! Clusters: a memory cluster in front of the cluster of each product, and two groups of waves one cluster
//! apart.
//!
//! It suits loops whose products stand in chains with arithmetic between them, as those of attention do. A
//! memory cluster reads all factors that its product takes from LDS, and refills LDS; the product's cluster
//! has the matrix instructions and beside them, ordered by what they cost, vector arithmetic of the
//! iterations before and after it. Half of the waves runs one cluster late: while one wave of a SIMD
//! multiplies, the other one reads. So matrix cores and vector units are busy at the same time, where
//! [`two_phase`](super::two_phase) keeps a wave with vector arithmetic beside one with products, and no
//! matrix instruction waits for LDS.
//!
//! Time is counted in clusters from the beginning of an iteration: even ones move data, odd ones multiply
//! (`places`). Vector arithmetic between two products runs in the clusters of the other ones between, in
//! two shares that take about as long (`shares`). Memory clusters go first where both waves could issue,
//! because there are more instructions in front of their data than of a product. AMD's tutorials on Gluon
//! for gfx950 and FlyDSL's attention have these clusters; here they follow from the units that operations
//! need.
//!
//! - `places`: the cluster of each operation
//! - `shares`: how arithmetic is divided between two clusters
//! - `tiles`: when what comes through LDS is loaded, written and read
//! - `order`: the schedule
//! - `unsuitable`: why a loop gets none

mod order;
mod places;
mod shares;
mod tiles;
mod unsuitable;

use bevy_ecs::prelude::*;

use self::order::schedule_of_clusters;
use self::places::{ClusteredOperation, OperationPlaces};
use self::shares::VectorShare;
use self::tiles::ClusterTile;
use self::unsuitable::NotClustered;
use super::products::tags::NodeTags;
use crate::ir::diagnostic::Diagnostic;
use crate::passes::schedule::apply::copies::LdsRoom;
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::SchedulerView;

/// Writes down the schedule of a loop in clusters, or says why the loop is not suited to that.
///
/// # Errors
/// A schedule that cannot be written, which is a bug of this compiler.
pub(crate) fn write(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
) -> Result<Result<WrittenSchedule, String>, Diagnostic> {
    write_shifted(view, node, found, 0)
}

/// The same with so many parts of operations more in the first of their two clusters of matrix instructions,
/// as far as there are any.
///
/// # Errors
/// As [`write`].
pub(crate) fn write_shifted(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
    more_early: i32,
) -> Result<Result<WrittenSchedule, String>, Diagnostic> {
    match classify(view, node, found, more_early) {
        Ok(clusters) => {
            let (tags, tagged) = NodeTags::plain(&clusters.named());
            Ok(Ok(WrittenSchedule::new(schedule_of_clusters(&clusters, &tags)?, tagged)))
        }
        Err(NotClustered::Broken(bug)) => Err(bug.into()),
        Err(why) => Ok(Err(why.to_string())),
    }
}

/// A loop in clusters.
#[derive(Clone, Debug)]
struct Clusters {
    /// The logical loop.
    looped: Entity,
    /// The products, in the order of the kernel: the cluster of each has its number.
    products: Vec<ClusteredOperation>,
    /// Operations that are left out most of the time, which stand in memory clusters.
    seldom: Vec<ClusteredOperation>,
    /// Vector arithmetic, each operation after those that it needs.
    shares: Vec<VectorShare>,
    /// What comes through LDS.
    tiles: Vec<ClusterTile>,
    /// Copies of the tiles in LDS.
    copies: u32,
    /// Trips that are written one after the other, so that values change registers without copies.
    unrolled: u32,
}

impl Clusters {
    /// The nodes that the schedule speaks of: those of the loop, of each product, of each other operation
    /// and of each tile.
    fn named(&self) -> Vec<(&'static str, Vec<Entity>)> {
        let one = |name, logical| (name, vec![logical]);
        let mut named = vec![one("loop", self.looped)];
        named.extend(self.products.iter().map(|own| one("product", own.logical)));
        named.extend(self.seldom.iter().map(|own| one("seldom", own.logical)));
        named.extend(self.shares.iter().map(|own| one("other", own.logical)));
        for tile in &self.tiles {
            let mut own = vec![tile.load];
            own.extend((!tile.is_direct()).then_some(tile.write));
            own.push(tile.read);
            named.push(("tile", own));
        }
        named
    }
}

/// Trips that are written one after the other: a value that lives into the next trip and its successor
/// there have registers of their own.
const UNROLLED: u32 = 2;

/// True if the memory cluster of this number has nothing to do.
fn moves_nothing(number: u32, places: &OperationPlaces, tiles: &[ClusterTile]) -> bool {
    let is_at = |cluster: i32| (cluster - number as i32).rem_euclid(places.per_trip as i32) == 0;
    let moved = tiles.iter().flat_map(|tile| [tile.loaded, tile.written, tile.read_at]);
    !moved.chain(places.seldom().iter().map(|own| own.cluster as i32)).any(is_at)
}

/// Finds the clusters of a loop's operations.
///
/// # Errors
/// Why it has none.
fn classify(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
    more_early: i32,
) -> Result<Clusters, NotClustered> {
    let (waves, target) = (view.waves()?, view.settings()?.target());
    if waves == 0 || !waves.is_multiple_of(2 * target.simds_per_compute_unit) {
        return Err(NotClustered::Waves(waves));
    }
    let looped = view.node(node)?.piece(node).logical;
    if found.body().any(|node| found.is_fence(node)) {
        return Err(NotClustered::Others("barriers or controls"));
    }
    let places = OperationPlaces::of(view, found)?;
    let tiles = tiles::of(view, found, &places)?;
    if (0..places.per_trip).step_by(2).any(|number| moves_nothing(number, &places, &tiles)) {
        return Err(NotClustered::Others("a product in front of which nothing is moved"));
    }
    let mut of_nodes = places.of_nodes(found);
    let shares = shares::of(view, found, &places, &mut of_nodes, more_early)?;
    places.check(found, &of_nodes)?;
    let copies = tiles.iter().map(|tile| tile.copies).max().unwrap_or(1);
    LdsRoom::of(view, found)?.copies(copies, copies)?;
    // Iterations of the pipeline before its first trip, and two unrolled trips.
    let enough = places.stages() + 2 * UNROLLED;
    let unrolls = view.most_iterations(node)?.is_none_or(|most| most >= enough);
    Ok(Clusters {
        looped,
        products: places.products(),
        seldom: places.seldom(),
        shares,
        copies,
        unrolled: if unrolls { copies.max(UNROLLED) } else { 1 },
        tiles,
    })
}
