//! The schedule: which half trip each operation belongs to, reads among the products, and a barrier after
//! each half, or in front of the last products of it.

use super::super::products::lists::TileNodes;
use super::super::products::tags::NodeTags;
use super::halves::Phase;
use super::late_products::LateProducts;
use super::{PlacedOperation, TwoPhases};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Control;
use crate::ir::schedule::{
    Cluster, Directive, Interleave, Nodes, PipelineStage, ScheduleTracer, WaveSchedule,
};
use crate::passes::schedule::graph::view::Seldom;

/// The schedule of a loop in two phases, whose nodes have these tags.
///
/// # Errors
/// A schedule that cannot be written, which is a bug of this compiler.
pub(super) fn schedule_of_two_phases(
    phases: &TwoPhases,
    tags: &NodeTags,
) -> Result<WaveSchedule, Diagnostic> {
    WaveSchedule::trace("two_phase", |s| {
        let mut tags = tags.iter();
        let mut next = || tags.next().unwrap_or_default();
        let looped = s.get_node_by_tag(next());
        let mut listed = |list: &[PlacedOperation]| -> Vec<Nodes> {
            list.iter().map(|_| s.get_node_by_tag(next())).collect()
        };
        let (products, others) = (listed(&phases.products), listed(&phases.others));
        let (mut tiles, mut reads) = (Vec::new(), Vec::new());
        for (tile, number) in phases.tiles.tiles.iter().zip(0..) {
            let nodes = tile.nodes(s, next());
            reads.push(nodes.read);
            tiles.push(nodes);
            let others = phases.tiles.reads.iter().filter(|read| read.tile == number).skip(1);
            reads.extend(others.map(|_| s.get_node_by_tag(next())));
        }
        let half_trips = half_trips(phases, (&products, &others), (&tiles, &reads));
        let pipelined = s.pipeline(looped, |p| {
            p.multi_buffer_count(phases.copies);
            for trip in half_trips.chunks(2) {
                p.set_stage(trip.to_vec());
            }
        });
        let kernel = pipelined.kernel();
        let steady = Steady { s, kernel, phases, tiles: &tiles, reads: &reads };
        let [first, second] = [steady.products(&products), steady.others(&others)];
        s.reorder_graph(kernel, (first, second));
        // Loads straight into LDS that begin in this half have until the end of the next one.
        s.insert_at_end(kernel, Directive::Control(Control::WaitForShared(0)));
        s.insert_at_end(kernel, Directive::Control(Control::WorkgroupBarrier));
        s.insert_before(kernel, Directive::SharedMemoryBarrier);
        if phases.unrolled > 1 {
            s.unroll(kernel, phases.unrolled);
        }
        s.stagger(kernel);
    })
}

/// What each half trip of the pipeline holds.
fn half_trips(
    phases: &TwoPhases,
    (products, others): (&[Nodes], &[Nodes]),
    (tiles, reads): (&[TileNodes], &[Nodes]),
) -> Vec<Vec<Nodes>> {
    let mut halves: Vec<Vec<Nodes>> = Vec::new();
    let mut put = |half: u32, nodes: Nodes| {
        let count = (half as usize + 1).next_multiple_of(2);
        if halves.len() < count {
            halves.resize(count, Vec::new());
        }
        halves[half as usize].push(nodes);
    };
    for (operation, &nodes) in phases.products.iter().zip(products).chain(phases.others.iter().zip(others)) {
        put(operation.half, nodes);
    }
    for (tile, nodes) in phases.tiles.tiles.iter().zip(tiles) {
        put(tile.loaded as u32, nodes.load);
        if let Some(write) = nodes.write {
            put(tile.written as u32, write);
        }
    }
    for (read, &nodes) in phases.tiles.reads.iter().zip(reads) {
        put(read.half as u32, nodes);
    }
    halves
}

/// A trip of the steady state while it is written down.
struct Steady<'a> {
    s: &'a ScheduleTracer,
    kernel: PipelineStage,
    phases: &'a TwoPhases,
    tiles: &'a [TileNodes],
    reads: &'a [Nodes],
}

impl Steady<'_> {
    fn own(&self, nodes: Nodes) -> Nodes {
        self.s.filter_nodes(nodes, Some(self.kernel), None)
    }

    /// The phase that multiplies.
    fn products(&self, products: &[Nodes]) -> Cluster {
        let Steady { s, phases, .. } = *self;
        let [low, high, highest] = [0, 1, 2].map(|level| Directive::Control(Control::SetWavePriority(level)));
        let fixed = Directive::Control(Control::SchedulingBarrier);
        let reads = self.reads.iter().zip(&phases.walked);
        let parts: Vec<Vec<Nodes>> = reads
            .map(|(&nodes, walked)| match walked {
                Some(dim) => s.partition_by_dim_into(self.own(nodes), dim.symbol, dim.parts as usize),
                None => vec![self.own(nodes)],
            })
            .collect();
        let mut groups = phases.groups.iter().map(|group| {
            let nodes = group.parts.iter().filter_map(|own| parts.get(own.read)?.get(own.part as usize));
            (group, nodes.copied().collect::<Vec<Nodes>>())
        });
        let early = groups.next().map(|(_, nodes)| nodes).unwrap_or_default();
        let mut between: Vec<Interleave> = groups
            .map(|(group, nodes)| Interleave::of(nodes).interval(group.interval).start_offset(group.first))
            .collect();
        let writes = self.writes(Phase::Products);
        if !writes.is_empty() {
            let interval = (phases.count / (phases.writes + 1)).max(1);
            between.push(Interleave::of(writes).interval(interval).start_offset(interval));
        }
        let mut products: Vec<Nodes> = products.iter().map(|&nodes| self.own(nodes)).collect();
        let mut late = Vec::new();
        if let Some(LateProducts { walked, parts, .. }) = phases.late
            && let Some(last) = products.pop()
        {
            products.extend(s.partition_by_dim_into(last, walked.symbol, walked.parts as usize));
            late = products.split_off(products.len() - parts as usize);
        }
        let order = s.interleave_ops(products, between);
        let barrier = (fixed, Directive::SharedMemoryBarrier, fixed);
        match late.is_empty() {
            true => s.cluster((early, high, order, low, barrier)),
            false => s.cluster((early, high, order, barrier, highest, late, low, fixed)),
        }
    }

    /// The other phase.
    fn others(&self, others: &[Nodes]) -> Cluster {
        let Steady { s, phases, .. } = *self;
        let fixed = Directive::Control(Control::SchedulingBarrier);
        let loads: Vec<Nodes> = self.tiles.iter().map(|nodes| self.own(nodes.load)).collect();
        let with_nodes = phases.tiles.reads.iter().zip(self.reads).filter(|(read, _)| !read.is_factor());
        let reads: Vec<Nodes> = with_nodes.map(|(_, &nodes)| self.own(nodes)).collect();
        let skip = |own: &PlacedOperation| own.seldom.and_then(Seldom::control).map(Directive::Control);
        let others = others.iter().zip(&phases.others);
        let others: Vec<_> =
            others.map(|(&nodes, own)| (Vec::from_iter(skip(own)), self.own(nodes))).collect();
        s.cluster((self.writes(Phase::Others), loads, fixed, reads, others, fixed))
    }

    /// The LDS writes of one of the phases.
    fn writes(&self, phase: Phase) -> Vec<Nodes> {
        let tiles = self.phases.tiles.tiles.iter().zip(self.tiles);
        let own = tiles.filter(|(tile, _)| Phase::of(tile.written) == phase);
        own.filter_map(|(_, nodes)| Some(self.own(nodes.write?))).collect()
    }
}
