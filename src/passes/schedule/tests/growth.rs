//! How the work of scheduling grows with the loop, counted and not timed: GEMM tiles of up to 4,000 nodes for
//! eight waves, on the chip that has the LDS for them.

use std::fmt::Write as _;

use bevy_ecs::prelude::*;

use crate::codegen::target::Target;
use crate::ir::expr::Symbol;
use crate::ir::kernel::Kernel;
use crate::ir::node::*;
use crate::ir::walk;
use crate::passes::loops::expand::ExpandedCount;
use crate::passes::options::{Options, Schedule};
use crate::passes::schedule::apply::copies::WALKED;
use crate::passes::schedule::apply::record::{Applied, Outcome, ScheduleRecord};
use crate::passes::schedule::author::reorder::{ClusterPiece, reorder_counted};
use crate::passes::schedule::graph::dependences::{LoopGraph, dependences_in_place};
use crate::passes::schedule::graph::resources::ResourceModel;
use crate::passes::schedule::graph::view::SchedulerView;
use crate::passes::schedule::strategies::phases::place_counted;
use crate::passes::workspace::{Verify, Workspace, with_workspace};

const GEMM: &str = "kernel gemm {
  workgroup M, BLOCK_M, 0
  workgroup N, BLOCK_N, 1
  tile K, BLOCK_K
  wave M, BLOCK_M // 2
  wave N, BLOCK_N // 4
  mma f32_16x16x16_f16
  a = memory [M, K] shared f16
  b = memory [N, K] shared f16
  c = memory [M, N] global f32
  %zero = register [M, N] f32 0.0
  %sum = iterate K (%acc = %zero) {
    %x = read a
    %y = read b
    %next = mma %x, %y, %acc
    yield %next
  }
  write %sum, c
}";

/// About 400, 800, 1,600, 3,200 and 4,000 nodes.
const TILES: [[i64; 3]; 5] =
    [[256, 512, 32], [512, 512, 32], [1024, 512, 32], [1024, 1024, 32], [1152, 1152, 32]];

/// The most dependences per node: a product has two factors and an accumulator, an access of LDS has two
/// junctions.
const EDGES_PER_NODE: usize = 4;

/// Schedules a tile; returns what `see` makes of it, and how many nodes it has.
fn scheduled<R>(
    tile: [i64; 3],
    schedule: Schedule,
    see: impl FnOnce(&mut Workspace, &Applied) -> R,
) -> (R, u64) {
    let kernel = Kernel::parse(GEMM, "gemm.gsw").unwrap();
    let mut options = Options::new(Target::GFX950).schedule(schedule.clone());
    for ((size, block), extent) in
        [("M", "BLOCK_M"), ("N", "BLOCK_N"), ("K", "BLOCK_K")].into_iter().zip(tile)
    {
        options = options.set(Symbol::new(block), extent).set(Symbol::new(size), 8 * extent);
    }
    with_workspace(|workspace| {
        workspace.load(&kernel, &options);
        workspace.run(Some("schedule_loops"), Verify::Off, &mut Vec::new()).unwrap();
        let root = workspace.root;
        let nodes = workspace.world.get::<ExpandedCount>(root).unwrap().0;
        let record = workspace.world.get::<ScheduleRecord>(root).unwrap().clone();
        assert_eq!((record.applied(), record.why()), (schedule.name(), String::new()), "{tile:?}");
        let Outcome::Applied(applied) = &record.loops[0].outcome else { panic!("{tile:?}: refused") };
        (see(workspace, applied), nodes.into())
    })
}

fn assert_sparse(found: &LoopGraph) {
    let (nodes, edges) = (found.graph.nodes().len(), found.graph.edges().len());
    assert!(edges <= EDGES_PER_NODE * nodes, "{edges} dependences of {nodes} nodes");
}

#[test]
fn prefetch_grows_with_the_loop() {
    let mut most = 0;
    for tile in TILES {
        let (steps, nodes) = scheduled(tile, Schedule::Prefetch, |_, applied| {
            assert_sparse(&applied.found);
            let (phases, steps) = place_counted(&applied.found.graph, applied.assignment.interval).unwrap();
            assert_eq!(phases, applied.assignment.cycles);
            steps
        });
        assert!(steps <= 20 * nodes, "{tile:?}: {steps} steps for {nodes} nodes");
        most = most.max(nodes);
    }
    assert!((3_900..4_100).contains(&most), "{most}");
}

#[test]
fn ping_pong_grows_with_the_loop() {
    let mut most = 0;
    for tile in TILES {
        let (steps, nodes) = scheduled(tile, Schedule::PingPong, |workspace, applied| {
            assert_sparse(&applied.found);
            let found =
                dependences_in_place(SchedulerView::new(workspace), applied.steady, &ResourceModel::ABSTRACT)
                    .unwrap();
            let world = &mut workspace.world;
            assert_sparse(&found);
            let is_argument = |&node: &Entity| matches!(world.get::<Op>(node), Some(Op::IterArg(_)));
            let body = walk::body(world, applied.steady);
            let order: Vec<Entity> = body.iter().copied().filter(|node| !is_argument(node)).collect();
            let pieces = order.iter().copied().map(ClusterPiece::Node).collect();
            let (again, steps) = reorder_counted(world, &found, &[pieces]).unwrap();
            assert_eq!(again[again.len() - order.len()..], order);
            steps
        });
        assert!(steps <= 10 * nodes, "{tile:?}: {steps} steps for {nodes} nodes");
        most = most.max(nodes);
    }
    assert!((3_900..4_100).contains(&most), "{most}");
}

/// The kernel with that many loops, one after the other.
fn loops(count: usize) -> String {
    let (head, rest) = GEMM.split_once("  %sum").unwrap();
    let mut text = head.to_owned();
    for at in 0..count {
        let before = if at == 0 { "%zero".to_owned() } else { format!("%sum{}", at - 1) };
        let body = "    %x = read a\n    %y = read b\n    %next = mma %x, %y, %acc\n    yield %next\n  }\n";
        let own = ["%x", "%y", "%next", "%acc"];
        let body = own.iter().fold(body.to_owned(), |body, name| body.replace(name, &format!("{name}{at}")));
        writeln!(text, "  %sum{at} = iterate K (%acc{at} = {before}) {{\n{}", body.trim_end()).unwrap();
    }
    let (_, end) = rest.rsplit_once("write %sum").unwrap();
    text + &format!("  write %sum{}{end}", count - 1)
}

#[test]
fn lds_of_many_loops_is_added_up_once() {
    for schedule in [Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
        for count in [5, 20] {
            let kernel = Kernel::parse(&loops(count), "loops.gsw").unwrap();
            let mut options = Options::new(Target::GFX950).schedule(schedule.clone());
            for (symbol, value) in
                [("M", 64), ("N", 64), ("K", 512), ("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 16)]
            {
                options = options.set(Symbol::new(symbol), value);
            }
            with_workspace(|workspace| {
                workspace.load(&kernel, &options);
                WALKED.set(0);
                workspace.run(Some("schedule_loops"), Verify::Off, &mut Vec::new()).unwrap();
                let record = workspace.world.get::<ScheduleRecord>(workspace.root).unwrap();
                assert_eq!((record.loops.len(), record.applied()), (count, schedule.name()));
                let nodes = walk::body(&workspace.world, workspace.root).len();
                let walked = WALKED.get();
                // Before the first loop is rebuilt, and what rebuilding adds is looked at by nobody.
                assert!(walked > 0 && walked <= nodes, "{schedule:?}: {walked} steps for {nodes} nodes");
            });
        }
    }
}
