//! The schedules: which cluster an operation belongs to, and the barriers and priorities between clusters.

use super::super::products::lists::{straight_to_lds, through_registers};
use super::{Cut, Roles};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::node::Control;
use crate::ir::schedule::{Directive, Interleave, Nodes, PipelineStage, ScheduleTracer, WaveSchedule};

/// The ping-pong schedule of two clusters of memory operations and two of matrix instructions, for a kernel
/// with these tags.
///
/// # Errors
/// None for tags and symbols that exist; the schedule itself is judged when a kernel is compiled with it.
pub fn schedule(roles: &Roles<'_>, cut: &Cut) -> Result<WaveSchedule, Diagnostic> {
    let fence = Directive::SharedMemoryBarrier;
    let priority = |level| Directive::Control(Control::SetWavePriority(level));
    let fixed = Directive::Control(Control::SchedulingBarrier);
    WaveSchedule::trace("two_pp_cluster", |s| {
        let k_loop = s.get_node_by_tag(roles.k_loop);
        let (global_load_lhs, local_load_lhs, local_write_lhs) = through_registers(s, roles.lhs);
        let (global_load_rhs, local_load_rhs, local_write_rhs) = through_registers(s, roles.rhs);
        let mma = s.get_node_by_tag(roles.mma);
        let pipelined = s.pipeline(k_loop, |p| {
            p.set_stage(((global_load_lhs, global_load_rhs), (local_write_lhs, local_write_rhs)));
            p.set_stage(((local_load_lhs, local_load_rhs), mma));
        });
        let kernel = pipelined.kernel();
        let of_kernel = |list| s.filter_nodes(list, Some(kernel), None);
        let [(lhs_0, lhs_1), (rhs_0, rhs_1)] =
            [(local_load_lhs, cut.read_parts[0]), (local_load_rhs, cut.read_parts[1])]
                .map(|(reads, parts)| read_parts(s, of_kernel(reads), roles.k, parts));
        let [mma_0, mma_1] = s.partition_by_dim::<2>(of_kernel(mma), roles.k);
        let loads = [global_load_lhs, global_load_rhs].map(of_kernel);
        let items = |side: usize, range: std::ops::Range<u32>| {
            range.map(|at| s.getitem(loads[side], at)).collect::<Vec<_>>()
        };
        let early = |side: usize| match (cut.loads[side], cut.late_loads[side]) {
            (_, 0) => vec![loads[side]],
            (all, late) => items(side, 0..all.saturating_sub(late)),
        };
        let late: Vec<Nodes> = [0, 1]
            .into_iter()
            .flat_map(|side| {
                items(side, cut.loads[side].saturating_sub(cut.late_loads[side])..cut.loads[side])
            })
            .collect();
        let first_products = match late.len() as u32 {
            0 => mma_0,
            count => {
                let half = cut.products / 2;
                let group = Interleave::of(late).start_offset(half).interval((half / count).max(1));
                match cut.columns {
                    None => s.interleave_ops(mma_0, [group]),
                    Some((dim, parts)) => {
                        s.interleave_ops(s.partition_by_dim_into(mma_0, dim, parts as usize), [group])
                    }
                }
            }
        };
        let read = s
            .cluster(((lhs_0, rhs_0, fixed, early(0), fixed), (lhs_1, rhs_1, fixed, early(1), fence, fixed)));
        let first = s.cluster((priority(1), first_products, priority(0), fence, fixed));
        let write = s.cluster((of_kernel(local_write_lhs), of_kernel(local_write_rhs), fence, fixed));
        let second = s.cluster((priority(1), mma_1, priority(0), fixed));
        s.reorder_graph(kernel, (read, first, write, second));
        take_turns(s, kernel);
    })
}

/// The ping-pong schedule of a kernel whose factors are loaded straight into LDS: no cluster writes to LDS,
/// and loads have time until the end of the second memory cluster.
///
/// # Errors
/// As [`schedule`].
pub fn schedule_of_direct_loads(roles: &Roles<'_>, cut: &Cut) -> Result<WaveSchedule, Diagnostic> {
    let fence = Directive::SharedMemoryBarrier;
    let barrier = Directive::Control(Control::WorkgroupBarrier);
    let priority = |level| Directive::Control(Control::SetWavePriority(level));
    let fixed = Directive::Control(Control::SchedulingBarrier);
    let under_way = u8::try_from(cut.loads[0] + cut.loads[1]).unwrap_or(u8::MAX);
    let wait = Directive::Control(Control::WaitForLoads(under_way));
    WaveSchedule::trace("async_two_pp_cluster", |s| {
        let k_loop = s.get_node_by_tag(roles.k_loop);
        let [(load_lhs, local_load_lhs), (load_rhs, local_load_rhs)] =
            [roles.lhs, roles.rhs].map(|tag| straight_to_lds(s, tag));
        let mma = s.get_node_by_tag(roles.mma);
        let pipelined = s.pipeline(k_loop, |p| {
            p.set_stage(((load_lhs, load_rhs), ()));
            p.set_stage(((local_load_lhs, local_load_rhs), mma));
        });
        let kernel = pipelined.kernel();
        let of_kernel = |list| s.filter_nodes(list, Some(kernel), None);
        let [(lhs_0, lhs_1), (rhs_0, rhs_1)] =
            [(local_load_lhs, cut.read_parts[0]), (local_load_rhs, cut.read_parts[1])]
                .map(|(reads, parts)| read_parts(s, of_kernel(reads), roles.k, parts));
        let [mma_0, mma_1] = s.partition_by_dim::<2>(of_kernel(mma), roles.k);
        let loads = (of_kernel(load_lhs), of_kernel(load_rhs));
        let read = s.cluster((lhs_0, rhs_0, fixed, loads, fixed, barrier, fixed));
        let first = s.cluster((priority(1), mma_0, priority(0), fixed, wait, barrier, fixed));
        // Where no reads are left for the second memory cluster, its barrier comes before the matrix
        // instructions.
        let second = match cut.read_parts {
            [1, 1] => s.cluster((fence, fixed, priority(1), mma_1, priority(0), fixed)),
            _ => s.cluster((lhs_1, rhs_1, fixed, fence, fixed, priority(1), mma_1, priority(0), fixed)),
        };
        s.reorder_graph(kernel, (read, first, second));
        take_turns(s, kernel);
    })
}

/// The reads of each half along `k`; those that bring both halves at once come first.
fn read_parts(s: &ScheduleTracer, reads: Nodes, k: Symbol, parts: u32) -> (Nodes, Vec<Nodes>) {
    match parts {
        1 => (reads, Vec::new()),
        _ => {
            let [first, second] = s.partition_by_dim::<2>(reads, k);
            (first, vec![second])
        }
    }
}

/// Barriers that hold back one half of the waves by one cluster.
pub(super) fn take_turns(s: &ScheduleTracer, kernel: PipelineStage) {
    s.insert_at_end(kernel, Directive::SharedMemoryBarrier);
    s.insert_before(kernel, Directive::SharedMemoryBarrier);
    s.stagger(kernel);
}
