//! The schedule: which region an operation belongs to, and what stands between regions.

use super::super::super::products::Roles;
use super::super::super::products::lists::{straight_to_lds, through_registers};
use super::{QuadrantMoves, Quadrants, REGIONS, SCALES};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Control;
use crate::ir::schedule::{ClusterEntry, Directive, Nodes, ScheduleTracer, WaveSchedule};

/// Lists of operations, for each region of a trip.
type OfRegions = [Vec<Nodes>; REGIONS];

/// The ping-pong schedule of four memory and four compute regions for a kernel with these tags: each compute
/// region multiplies half of the rows with half of the columns, and the halves of one factor share registers.
///
/// # Errors
/// None for tags and symbols that exist; the schedule itself is judged when a kernel is compiled with it.
pub fn schedule_of_quadrants(roles: &Roles<'_>, quadrants: &Quadrants) -> Result<WaveSchedule, Diagnostic> {
    let name = match quadrants.moves {
        QuadrantMoves::ThroughRegisters => "quadrant_pp_cluster",
        QuadrantMoves::Direct { .. } => "direct_quadrant_pp_cluster",
    };
    WaveSchedule::trace(name, |s| {
        let k_loop = s.get_node_by_tag(roles.k_loop);
        let mut parts = MovedParts::default();
        let tags = [roles.lhs, roles.rhs];
        let (direct, read) = match &quadrants.moves {
            QuadrantMoves::ThroughRegisters => {
                (OfRegions::default(), tags.map(|tag| parts.through_registers(s, tag)))
            }
            QuadrantMoves::Direct { loads, .. } => {
                let factors = tags.map(|tag| straight_to_lds(s, tag));
                (direct_loads(s, loads, factors.map(|(load, _)| load)), factors.map(|(_, read)| read))
            }
        };
        // In the list of what goes through registers factors come before scales.
        let factors = parts.writes.len();
        let of_scales: Vec<Nodes> =
            roles.scales.into_iter().flatten().map(|tag| parts.through_registers(s, tag)).collect();
        let mma = s.get_node_by_tag(roles.mma);
        let [shared, kept] = quadrants.shared.and_other();
        let halves = |list, side: usize| s.partition_by_dim::<2>(list, quadrants.halves[side]);
        let ([shared_0, shared_1], [kept_0, kept_1]) =
            (halves(read[shared], shared), halves(read[kept], kept));
        let [first, second] = halves(mma, shared);
        let ([mma_0, mma_1], [mma_2, mma_3]) = (halves(first, kept), halves(second, kept));
        let products = [mma_0, mma_1, mma_2, mma_3];
        let first_reads = [&of_scales[..], &[shared_0]].concat();
        // The last region reads for the next iteration.
        let reads: OfRegions = [first_reads, vec![kept_1], vec![shared_1], vec![kept_0]];
        // Scales and the kept factor are read until the second region, the shared one until the third. A
        // factor that has been written is loaded anew a region later. Scales are loaded at once: waves wait
        // for loads in their order, and so for all that are older than those of the scales.
        let [mut writes, mut loads] = [OfRegions::default(), OfRegions::default()];
        for (at, (&write, &load)) in parts.writes.iter().zip(&parts.loads).enumerate() {
            let is_shared = at < factors && at == shared;
            let region = if is_shared { REGIONS - 1 } else { SCALES };
            writes[region].push(write);
            loads[if at < factors { (region + 1) % REGIONS } else { region }].push(load);
        }

        let copies = quadrants.copies();
        let last = if parts.loads.is_empty() { copies as usize } else { copies.max(2) as usize };
        let mut stages = vec![OfRegions::default(); last + 1];
        for region in 0..REGIONS {
            let reading = if region + 1 < REGIONS { last } else { last - 1 };
            stages[reading][region].extend_from_slice(&reads[region]);
            stages[last][region].push(products[region]);
            stages[last - copies as usize][region].extend_from_slice(&direct[region]);
            stages[last - 1][region].extend_from_slice(&writes[region]);
            // A load in the first region is as late as one in the last region of the trip before.
            let loading = if region == 0 { last - 1 } else { last.saturating_sub(2) };
            stages[loading][region].extend_from_slice(&loads[region]);
        }
        let pipelined = s.pipeline(k_loop, |p| {
            p.multi_buffer_count(copies);
            stages.into_iter().for_each(|stage| p.set_stage(stage.to_vec()));
        });

        let kernel = pipelined.kernel();
        let of_kernel = |lists: &[Nodes]| {
            lists
                .iter()
                .map(|&list| ClusterEntry::from(s.filter_nodes(list, Some(kernel), None)))
                .collect::<Vec<_>>()
        };
        let control = |control| vec![ClusterEntry::from(Directive::Control(control))];
        let fixed = control(Control::SchedulingBarrier);
        let barrier = control(Control::WorkgroupBarrier);
        let mut clusters = Vec::new();
        for region in 0..REGIONS {
            let mut memory = Vec::new();
            for lists in [&reads, &writes, &direct, &loads].map(|lists| &lists[region]) {
                if !lists.is_empty() {
                    memory.extend([of_kernel(lists), fixed.clone()].concat());
                }
            }
            if let Some(under_way) = quadrants.under_way(region) {
                memory.extend(control(Control::WaitForLoads(under_way)));
            }
            memory.extend(control(Control::WaitForShared(0)));
            memory.extend([&barrier[..], &fixed].concat());
            let mut compute = [of_kernel(&[products[region]]), fixed.clone()].concat();
            if region + 1 < REGIONS {
                compute.extend([&barrier[..], &fixed].concat());
            }
            clusters.extend([s.cluster(memory), s.cluster(compute)]);
        }
        s.reorder_graph(kernel, clusters);
        s.insert_at_end(kernel, Directive::Control(Control::WorkgroupBarrier));
        s.stagger(kernel);
    })
}

/// What goes through registers into LDS.
#[derive(Default)]
struct MovedParts {
    loads: Vec<Nodes>,
    writes: Vec<Nodes>,
}

impl MovedParts {
    /// Notes loads and writes of a tag, and returns its reads of LDS.
    fn through_registers(&mut self, s: &ScheduleTracer, tag: &str) -> Nodes {
        let (load, read, write) = through_registers(s, tag);
        self.loads.push(load);
        self.writes.push(write);
        read
    }
}

/// The loads of both factors in their regions; `places` are their numbers in the lists `all`.
fn direct_loads(s: &ScheduleTracer, places: &[[Vec<u32>; REGIONS]; 2], all: [Nodes; 2]) -> OfRegions {
    let mut loads = OfRegions::default();
    for (places, all) in places.iter().zip(all) {
        let count: usize = places.iter().map(Vec::len).sum();
        for (lists, numbers) in loads.iter_mut().zip(places) {
            match numbers.len() == count {
                true => lists.push(all),
                false => lists.extend(numbers.iter().map(|&number| s.getitem(all, number))),
            }
        }
    }
    loads
}
