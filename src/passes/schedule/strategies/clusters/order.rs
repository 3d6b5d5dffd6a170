//! The schedule: which cluster each operation belongs to, and what waves wait for at the end of each.

use super::super::products::lists::TileNodes;
use super::super::products::tags::NodeTags;
use super::places::OperationPart;
use super::shares::VectorShare;
use super::{ClusterTile, Clusters};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Control;
use crate::ir::schedule::{Cluster, Directive, Nodes, PipelineStage, ScheduleTracer, WaveSchedule};

/// The schedule of a loop in clusters, whose nodes have these tags.
///
/// # Errors
/// A schedule that cannot be written, which is a bug of this compiler.
pub(super) fn schedule_of_clusters(clusters: &Clusters, tags: &NodeTags) -> Result<WaveSchedule, Diagnostic> {
    WaveSchedule::trace("clusters", |s| {
        let mut tags = tags.iter();
        let mut next = || tags.next().unwrap_or_default();
        let looped = s.get_node_by_tag(next());
        let products: Vec<Nodes> = clusters.products.iter().map(|_| s.get_node_by_tag(next())).collect();
        let seldom: Vec<Nodes> = clusters.seldom.iter().map(|_| s.get_node_by_tag(next())).collect();
        let mut shares: Vec<[Vec<Nodes>; 2]> = Vec::new();
        for share in &clusters.shares {
            shares.push(shared_nodes(s, s.get_node_by_tag(next()), share));
        }
        let tiles: Vec<TileNodes> = clusters.tiles.iter().map(|tile| tile.nodes(s, next())).collect();
        let lists = Lists { s, clusters, products, seldom, shares, tiles };
        let placed = lists.placed();
        let per_trip = 2 * clusters.products.len();
        let pipelined = s.pipeline(looped, |p| {
            p.multi_buffer_count(clusters.copies);
            for trip in placed.chunks(per_trip) {
                p.set_stage(trip.to_vec());
            }
        });
        let kernel = pipelined.kernel();
        let mut order = Vec::new();
        for number in 0..clusters.products.len() {
            let ends = number + 1 < clusters.products.len();
            order.extend([lists.memory(kernel, number), lists.product(kernel, number, ends)]);
        }
        s.reorder_graph(kernel, order);
        s.insert_at_end(kernel, Directive::Control(Control::WorkgroupBarrier));
        s.insert_before(kernel, Directive::SharedMemoryBarrier);
        if clusters.unrolled > 1 {
            s.unroll(kernel, clusters.unrolled);
        }
        s.stagger(kernel);
    })
}

/// The nodes of an operation in its two clusters.
fn shared_nodes(s: &ScheduleTracer, nodes: Nodes, share: &VectorShare) -> [Vec<Nodes>; 2] {
    match share.along {
        Some(dim) if share.early > 0 && share.early < share.parts => {
            let parts = s.partition_by_dim_into(nodes, dim, share.parts as usize);
            let (early, late) = parts.split_at(share.early as usize);
            [early.to_vec(), late.to_vec()]
        }
        _ if share.early > 0 => [vec![nodes], Vec::new()],
        _ => [Vec::new(), vec![nodes]],
    }
}

/// The nodes of all operations.
struct Lists<'a> {
    s: &'a ScheduleTracer,
    clusters: &'a Clusters,
    products: Vec<Nodes>,
    seldom: Vec<Nodes>,
    shares: Vec<[Vec<Nodes>; 2]>,
    tiles: Vec<TileNodes>,
}

impl Lists<'_> {
    fn per_trip(&self) -> i32 {
        2 * self.clusters.products.len() as i32
    }

    /// What each cluster of an iteration holds, from the trip of its first load on.
    fn placed(&self) -> Vec<Vec<Nodes>> {
        let Lists { clusters, .. } = self;
        let mut placed: Vec<(i32, Nodes)> = Vec::new();
        let operations = clusters.products.iter().zip(&self.products);
        let operations = operations.chain(clusters.seldom.iter().zip(&self.seldom));
        placed.extend(operations.map(|(own, &nodes)| (own.cluster as i32, nodes)));
        for (share, lists) in clusters.shares.iter().zip(&self.shares) {
            for (list, later) in lists.iter().zip([0, 2]) {
                placed.extend(list.iter().map(|&nodes| (share.cluster as i32 + later, nodes)));
            }
        }
        for (tile, nodes) in clusters.tiles.iter().zip(&self.tiles) {
            placed.extend([(tile.loaded, nodes.load), (tile.read_at, nodes.read)]);
            placed.extend(nodes.write.map(|write| (tile.written, write)));
        }
        let earliest = placed.iter().map(|own| own.0).min().unwrap_or(0).div_euclid(self.per_trip());
        let mut of_clusters: Vec<Vec<Nodes>> = Vec::new();
        for (cluster, nodes) in placed {
            let cluster = (cluster - earliest * self.per_trip()) as usize;
            if of_clusters.len() <= cluster {
                of_clusters.resize((cluster + 1).next_multiple_of(self.per_trip() as usize), Vec::new());
            }
            of_clusters[cluster].push(nodes);
        }
        of_clusters
    }

    fn own(&self, kernel: PipelineStage, nodes: &Nodes) -> Nodes {
        self.s.filter_nodes(*nodes, Some(kernel), None)
    }

    /// True if a cluster of an iteration is the one of this number in each trip.
    fn is_at(&self, cluster: i32, number: i32) -> bool {
        (cluster - number).rem_euclid(self.per_trip()) == 0
    }

    /// The memory cluster of a product.
    fn memory(&self, kernel: PipelineStage, product: usize) -> Cluster {
        let number = 2 * product as i32;
        let own = |nodes: &Nodes| self.own(kernel, nodes);
        let tiles = || self.clusters.tiles.iter().zip(&self.tiles);
        let at = |cluster: i32| self.is_at(cluster, number);
        let reads: Vec<Nodes> =
            tiles().filter(|(tile, _)| at(tile.read_at)).map(|(_, own_nodes)| own(&own_nodes.read)).collect();
        let loads: Vec<Nodes> =
            tiles().filter(|(tile, _)| at(tile.loaded)).map(|(_, own_nodes)| own(&own_nodes.load)).collect();
        let writes = tiles()
            .filter(|(tile, _)| at(tile.written))
            .filter_map(|(_, own_nodes)| own_nodes.write.as_ref());
        let writes: Vec<Nodes> = writes.map(own).collect();
        let seldom =
            self.clusters.seldom.iter().zip(&self.seldom).filter(|(placed, _)| at(placed.cluster as i32));
        let skip = |part| {
            let OperationPart::Seldom(why) = part else { return None };
            why.control().map(Directive::Control)
        };
        let seldom: Vec<(Vec<Directive>, Nodes)> =
            seldom.map(|(placed, nodes)| (Vec::from_iter(skip(placed.part)), own(nodes))).collect();
        let [yielding, urgent] = [0, 1].map(|level| Directive::Control(Control::SetWavePriority(level)));
        let fixed = Directive::Control(Control::SchedulingBarrier);
        let waits: Vec<Directive> = self
            .loads_under_way(number)
            .map(Control::WaitForLoads)
            .map(Directive::Control)
            .into_iter()
            .collect();
        let done = Directive::Control(Control::WaitForShared(0));
        let barrier = Directive::Control(Control::WorkgroupBarrier);
        let moves = (reads, fixed, loads, writes, fixed);
        self.s.cluster((urgent, moves, seldom, yielding, waits, (done, barrier, fixed)))
    }

    /// Loads that may be under way at the end of a memory cluster, if the next one reads what was loaded
    /// straight into LDS a trip before it: those that came after.
    fn loads_under_way(&self, number: i32) -> Option<u8> {
        let tiles = &self.clusters.tiles;
        let is_next = |tile: &&ClusterTile| tile.is_direct() && self.is_at(tile.read_at, number + 2);
        tiles.iter().find(is_next)?;
        let later = tiles.iter().filter(|tile| !self.is_at(tile.loaded, number + 2));
        Some(u8::try_from(later.map(|tile| tile.loads).sum::<u32>()).unwrap_or(u8::MAX))
    }

    /// The cluster of a product, which ends with a barrier unless the trip does.
    fn product(&self, kernel: PipelineStage, product: usize, ends: bool) -> Cluster {
        let number = 2 * product as i32 + 1;
        let by_cost = Directive::Control(Control::InterleaveByCost);
        let fixed = Directive::Control(Control::SchedulingBarrier);
        let mut others = Vec::new();
        for (share, lists) in self.clusters.shares.iter().zip(&self.shares) {
            for (list, later) in lists.iter().zip([0, 2]) {
                if self.is_at(share.cluster as i32 + later, number) {
                    others.extend(list.iter().map(|nodes| self.own(kernel, nodes)));
                }
            }
        }
        let barrier = Directive::Control(Control::WorkgroupBarrier);
        let end: Vec<Directive> = if ends { vec![barrier, fixed] } else { Vec::new() };
        self.s.cluster((by_cost, self.own(kernel, &self.products[product]), others, fixed, end))
    }
}
