//! The schedule for tiles that go through registers and have registers to wait in: loads come after the LDS
//! writes of the tile before.

use super::super::products::lists::through_registers;
use super::Roles;
use super::clusters::take_turns;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Control;
use crate::ir::schedule::{Directive, WaveSchedule};

/// The ping-pong schedule in which a tile is loaded right after the one before it has been written to LDS, so
/// that it has almost a whole trip to arrive, and not half of one. On the time model of MI300X, all compute
/// units busy, a trip of 128 x 256 x 64 takes 2252 clk in this way, and 2424 with loads beside LDS reads; its
/// matrix instructions take 2048.
///
/// # Errors
/// As [`schedule`](super::schedule).
pub fn schedule_of_early_loads(roles: &Roles<'_>) -> Result<WaveSchedule, Diagnostic> {
    let fence = Directive::SharedMemoryBarrier;
    let barrier = Directive::Control(Control::WorkgroupBarrier);
    let priority = |level| Directive::Control(Control::SetWavePriority(level));
    let fixed = Directive::Control(Control::SchedulingBarrier);
    WaveSchedule::trace("early_pp_cluster", |s| {
        let k_loop = s.get_node_by_tag(roles.k_loop);
        let [(load_lhs, read_lhs, write_lhs), (load_rhs, read_rhs, write_rhs)] =
            [roles.lhs, roles.rhs].map(|tag| through_registers(s, tag));
        let mma = s.get_node_by_tag(roles.mma);
        let pipelined = s.pipeline(k_loop, |p| {
            p.set_stage(((), (load_lhs, load_rhs)));
            p.set_stage(((), (write_lhs, write_rhs)));
            p.set_stage(((read_lhs, read_rhs), mma));
        });
        let kernel = pipelined.kernel();
        let of_kernel = |list| s.filter_nodes(list, Some(kernel), None);
        let [mma_0, mma_1] = s.partition_by_dim::<2>(of_kernel(mma), roles.k);
        let read = s.cluster((of_kernel(read_lhs), of_kernel(read_rhs), fixed, fence, fixed));
        let first = s.cluster((priority(1), mma_0, priority(0), fixed, barrier, fixed));
        let writes = (of_kernel(write_lhs), of_kernel(write_rhs));
        let loads = (of_kernel(load_lhs), of_kernel(load_rhs));
        let write = s.cluster((writes, fixed, loads, fixed, fence, fixed));
        let second = s.cluster((priority(1), mma_1, priority(0), fixed));
        s.reorder_graph(kernel, (read, first, write, second));
        take_turns(s, kernel);
    })
}
