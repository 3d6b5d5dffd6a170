//! The schedule for loads straight into LDS that reads whole tiles at once, so that their copy in LDS can be
//! loaded anew half a trip later.
//!
//! Memory clusters have the higher priority: their addresses have to be ready in time, and a wave with matrix
//! instructions takes every slot that is left over (AMD's tutorials on Gluon for gfx950, `a16w16`). On the
//! time model of MI355X a trip of 256 x 256 x 64 with two copies of both tiles takes 2056 clk in this way,
//! 2096 without priorities, and 2140 with the higher one for matrix instructions; these themselves take 2048.
//!
//! Scales of block floats are few bytes in rows of a few: they are loaded into registers, and written to LDS
//! a trip later beside the loads that come alone, so that no wave loads what others have loaded. On the
//! same model a trip of 256 x 256 x 256 with 4-bit factors takes 2056 clk; its matrix instructions take 2048.
//!
//! It takes two copies of the tiles, or more where a trip is shorter than the latency of memory. If LDS
//! takes longer for the reads than the other group for its matrix instructions, the reads of half of one
//! factor come with the loads (`TileReads`): their copy is loaded again in the next trip. Waits are counted,
//! and `judge/in_flight` counts with them when it proves that the groups of waves do not meet.

use super::super::products::lists::{straight_to_lds, through_registers};
use super::{Cut, Roles, TileReads};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Control;
use crate::ir::schedule::{Directive, Nodes, WaveSchedule};

/// The ping-pong schedule of a kernel whose factors are loaded straight into LDS: one cluster of memory
/// operations reads a tile whole, and the other one loads another into the copy that has been read. Loads
/// of one factor come beside the reads, and have half a trip less than those of the other, which have a
/// whole one, or as many as there are copies but one. They have half a trip more if their factor, the left
/// one, has a copy more.
///
/// # Errors
/// As [`schedule`](super::schedule).
pub fn schedule_of_whole_tiles(roles: &Roles<'_>, cut: &Cut) -> Result<WaveSchedule, Diagnostic> {
    let barrier = Directive::Control(Control::WorkgroupBarrier);
    let [yielding, urgent] = [0, 1].map(|level| Directive::Control(Control::SetWavePriority(level)));
    let fixed = Directive::Control(Control::SchedulingBarrier);
    let lds_done = Directive::Control(Control::WaitForShared(0));
    let copies = alone_and_beside_reads(cut.copies, cut.copies);
    let under_way = loads_under_way(cut.copies, cut.loads, cut.scale_loads);
    let loaded = Directive::Control(Control::WaitForLoads(u8::try_from(under_way).unwrap_or(u8::MAX)));
    WaveSchedule::trace("whole_tile_pp_cluster", |s| {
        let k_loop = s.get_node_by_tag(roles.k_loop);
        let [(load_lhs, read_lhs), (load_rhs, read_rhs)] =
            [roles.lhs, roles.rhs].map(|tag| straight_to_lds(s, tag));
        let [load_alone, load_beside] = alone_and_beside_reads(cut.copies, [load_lhs, load_rhs]);
        let scales: Vec<_> =
            roles.scales.into_iter().flatten().map(|tag| through_registers(s, tag)).collect();
        let load_scales: Vec<_> = scales.iter().map(|&(load, ..)| load).collect();
        let read_scales: Vec<_> = scales.iter().map(|&(_, read, _)| read).collect();
        let write_scales: Vec<_> = scales.iter().map(|&(.., write)| write).collect();
        let mma = s.get_node_by_tag(roles.mma);
        let pipelined = s.pipeline(k_loop, |p| {
            // Stages before that of the reads. With a copy more, the loads beside reads are in the first one.
            let (last, stage_beside) = (copies[0] - 1, u32::from(copies[1] == copies[0]));
            for stage in 0..copies[0] {
                let beside = if stage == stage_beside { vec![load_beside] } else { Vec::new() };
                let mut second = if stage == 0 { vec![load_alone] } else { Vec::new() };
                match stage {
                    _ if stage == last => second.extend(&write_scales),
                    _ if stage + 1 == last => second.extend(&load_scales),
                    _ => {}
                }
                p.set_stage((beside, second));
            }
            p.set_stage(((read_lhs, read_rhs, read_scales.clone()), mma));
        });
        let kernel = pipelined.kernel();
        let of_kernel = |list| s.filter_nodes(list, Some(kernel), None);
        let all_of_kernel = |lists: &[Nodes]| lists.iter().map(|&list| of_kernel(list)).collect::<Vec<_>>();
        let halves = cut.halves.unwrap_or(roles.k);
        let [mma_0, mma_1] = s.partition_by_dim::<2>(of_kernel(mma), halves);
        let mut of_factors = [read_lhs, read_rhs].map(of_kernel);
        let mut late = Vec::new();
        if cut.tile_reads == TileReads::SecondHalfLater {
            let [_, beside] = alone_and_beside_reads(cut.copies, [0, 1]);
            let [first, second] = s.partition_by_dim::<2>(of_factors[beside], halves);
            of_factors[beside] = first;
            late.push((second, fixed));
        }
        let reads = (all_of_kernel(&read_scales), of_factors.to_vec());
        let loads = of_kernel(load_beside);
        let read = s.cluster((urgent, reads, fixed, loads, fixed, lds_done, yielding, barrier, fixed));
        let first = s.cluster((mma_0, fixed, barrier, fixed));
        let load = match (scales.is_empty(), late.is_empty()) {
            (true, true) => {
                s.cluster((urgent, of_kernel(load_alone), fixed, loaded, yielding, barrier, fixed))
            }
            (true, false) => {
                let loads = (late, of_kernel(load_alone), fixed);
                s.cluster((urgent, loads, loaded, lds_done, yielding, barrier, fixed))
            }
            (false, _) => {
                let (writes, scales) = (all_of_kernel(&write_scales), all_of_kernel(&load_scales));
                let loads = (late, writes, fixed, scales, fixed, of_kernel(load_alone), fixed);
                s.cluster((urgent, loads, loaded, lds_done, yielding, barrier, fixed))
            }
        };
        let second = s.cluster((mma_1, fixed));
        s.reorder_graph(kernel, (read, first, load, second));
        s.insert_at_end(kernel, barrier);
        // In front of the loop the compiler lets waves meet, once the tiles of the first trip are there.
        s.stagger(kernel);
    })
}

/// Loads of a wave that are still under way when a trip needs those before them: so many have to fit into a
/// wait.
pub(super) fn loads_under_way(copies: [u32; 2], loads: [u32; 2], scale_loads: u32) -> u32 {
    let [of_alone, of_beside] = alone_and_beside_reads(copies, copies);
    let [alone, beside] = alone_and_beside_reads(copies, loads);
    (of_alone - 1) * alone + (of_beside - 2) * beside + scale_loads
}

/// What the factors have, that of the one whose loads come alone first: the left one, unless it has a copy
/// more.
pub(super) fn alone_and_beside_reads<T: Copy>(copies: [u32; 2], [left, right]: [T; 2]) -> [T; 2] {
    if copies[0] > copies[1] { [right, left] } else { [left, right] }
}
