//! The schedule: one list of an iteration's matrix instructions with everything else between them.

use super::super::products::Roles;
use super::super::products::lists::{straight_to_lds, through_registers};
use super::{Moves, Spacing};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Control;
use crate::ir::schedule::{Directive, Interleave, WaveSchedule};

/// The schedule of a kernel with these tags in which each wave moves data between its matrix instructions.
/// The first half of an iteration's factors is read in the iteration before, and the second half beside the
/// matrix instructions of the first.
///
/// # Errors
/// None for tags and symbols that exist; the schedule itself is judged when a kernel is compiled with it.
pub fn schedule_of_interleaved(roles: &Roles<'_>, spacing: &Spacing) -> Result<WaveSchedule, Diagnostic> {
    match spacing.moves {
        Moves::ThroughRegisters { writes, first_write } => {
            schedule_through_registers(roles, spacing, [writes, first_write])
        }
        Moves::Direct { copies, under_way } => schedule_of_direct_loads(roles, spacing, [copies, under_way]),
    }
}

fn schedule_through_registers(
    roles: &Roles<'_>,
    spacing: &Spacing,
    [writes, first_write]: [u32; 2],
) -> Result<WaveSchedule, Diagnostic> {
    WaveSchedule::trace("interleaved", |s| {
        let k_loop = s.get_node_by_tag(roles.k_loop);
        let [(load_lhs, read_lhs, write_lhs), (load_rhs, read_rhs, write_rhs)] =
            [roles.lhs, roles.rhs].map(|tag| through_registers(s, tag));
        let mma = s.get_node_by_tag(roles.mma);
        let [[mma_0, mma_1], [lhs_0, lhs_1], [rhs_0, rhs_1]] =
            [mma, read_lhs, read_rhs].map(|list| s.partition_by_dim::<2>(list, roles.k));
        let pipelined = s.pipeline(k_loop, |p| {
            p.set_stage(((), (load_lhs, load_rhs)));
            p.set_stage(((), (write_lhs, write_rhs, lhs_0, rhs_0)));
            p.set_stage(((lhs_1, rhs_1, mma_0), mma_1));
        });
        let kernel = pipelined.kernel();
        let of_kernel = |list| s.filter_nodes(list, Some(kernel), None);
        let [first_write_lhs, first_read] = [write_lhs, lhs_0].map(of_kernel);
        let second_half = Interleave::of((of_kernel(lhs_1), of_kernel(rhs_1))).interval(spacing.reads);
        let writes = Interleave::of((first_write_lhs, of_kernel(write_rhs)))
            .interval(writes)
            .start_offset(first_write);
        let loads = Interleave::of((of_kernel(load_lhs), of_kernel(load_rhs)))
            .interval(spacing.loads)
            .start_offset(spacing.first_load);
        let first_half = Interleave::of((first_read, of_kernel(rhs_0)))
            .interval(spacing.reads)
            .start_offset(spacing.first_read);
        let order = s.interleave_ops(
            (of_kernel(mma_0), of_kernel(mma_1)),
            [second_half, writes, first_half.start_after_groups([1]), loads],
        );
        s.reorder_graph(kernel, s.cluster(order));
        s.insert_before(first_write_lhs, Directive::SharedMemoryBarrier);
        s.insert_before(first_read, Directive::SharedMemoryBarrier);
    })
}

fn schedule_of_direct_loads(
    roles: &Roles<'_>,
    spacing: &Spacing,
    [copies, under_way]: [u32; 2],
) -> Result<WaveSchedule, Diagnostic> {
    let barrier = Directive::Control(Control::WorkgroupBarrier);
    let read = Directive::Control(Control::WaitForShared(0));
    let loaded = Directive::Control(Control::WaitForLoads(u8::try_from(under_way).unwrap_or(u8::MAX)));
    WaveSchedule::trace("interleaved_direct", |s| {
        let k_loop = s.get_node_by_tag(roles.k_loop);
        let [(load_lhs, read_lhs), (load_rhs, read_rhs)] =
            [roles.lhs, roles.rhs].map(|tag| straight_to_lds(s, tag));
        let mma = s.get_node_by_tag(roles.mma);
        let [[mma_0, mma_1], [lhs_0, lhs_1], [rhs_0, rhs_1]] =
            [mma, read_lhs, read_rhs].map(|list| s.partition_by_dim::<2>(list, roles.k));
        let pipelined = s.pipeline(k_loop, |p| {
            p.set_stage(((), (load_lhs, load_rhs)));
            for _ in 2..copies {
                p.set_stage(((), ()));
            }
            p.set_stage(((), (lhs_0, rhs_0)));
            p.set_stage(((lhs_1, rhs_1, mma_0), mma_1));
        });
        let kernel = pipelined.kernel();
        let of_kernel = |list| s.filter_nodes(list, Some(kernel), None);
        let [first_load, first_read] = [load_lhs, lhs_0].map(of_kernel);
        let second_half = Interleave::of((of_kernel(lhs_1), of_kernel(rhs_1))).interval(spacing.reads);
        let loads = Interleave::of((first_load, of_kernel(load_rhs)))
            .interval(spacing.loads)
            .start_offset(spacing.first_load);
        let first_half = Interleave::of((first_read, of_kernel(rhs_0)))
            .interval(spacing.reads)
            .start_offset(spacing.first_read);
        let order = s.interleave_ops(
            (of_kernel(mma_0), of_kernel(mma_1)),
            [second_half, loads.start_after_groups([0]), first_half],
        );
        s.reorder_graph(kernel, s.cluster(order));
        s.insert_before(first_load, read);
        s.insert_before(first_load, barrier);
        s.insert_before(first_read, loaded);
        s.insert_before(first_read, barrier);
    })
}
