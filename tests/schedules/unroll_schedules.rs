//! Unrolled loops in authors' schedules: the result is the interpreter's for every factor and trip count,
//! check mode finds nothing, and the machine code has what unrolling is for.

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell::schedule::PipelineTracer;
use groundswell_testing::judged::assert_right;
use groundswell_testing::loops::largest_loop;

const TILE: i64 = 32;

/// Sizes of one case, and whether they are known at compile time.
#[derive(Copy, Clone, Debug)]
struct Case {
    shape: [i64; 3],
    dynamic: bool,
}

fn tiles(count: i64, dynamic: bool) -> Case {
    Case { shape: [TILE, TILE, count * TILE], dynamic }
}

fn gemm() -> Kernel {
    Gemm::any_shape().waves(Waves::new(2, 2)).kernel().expect("a kernel")
}

fn compiled(kernel: &Kernel, schedule: &WaveSchedule, case: Case) -> Result<Executable, Diagnostic> {
    let names = symbols(["M", "N", "K"]);
    let mut options = Options::new(Target::GFX942).wave_schedule(schedule);
    for symbol in symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]) {
        options = options.set(symbol, TILE);
    }
    for (symbol, size) in names.into_iter().zip(case.shape) {
        options = if case.dynamic { options.dynamic(symbol) } else { options.set(symbol, size) };
    }
    compile_uncached(kernel, &options, Verify::AfterEachPass)
}

/// Compiles, runs and checks one case.
fn run(kernel: &Kernel, schedule: &WaveSchedule, case: Case) -> Executable {
    let executable = compiled(kernel, schedule, case).unwrap_or_else(|e| panic!("{case:?}: {e}\n{schedule}"));
    let names = symbols(["M", "N", "K"]);
    let value = |s: Symbol| Some(names.iter().position(|&n| n == s).map_or(TILE, |at| case.shape[at]));
    assert_right(kernel, &executable, &value, 7, format_args!("{case:?} {schedule}"));
    executable
}

/// What of one iteration a pipeline places.
#[derive(Copy, Clone)]
struct Parts {
    loads: [Nodes; 2],
    writes: [Nodes; 2],
    reads: [Nodes; 2],
    mma: Nodes,
}

/// Parts of the nodes that `select` names by tag.
fn parts(s: &ScheduleTracer, select: impl Fn(&str) -> Nodes) -> Parts {
    let of = |tag: &str| {
        let all = select(tag);
        let writes = s.filter_nodes(all, None, NodeType::Write);
        let (loads, reads) = s.partition_by_address_space(s.filter_nodes(all, None, NodeType::Read), Global);
        (loads, writes, reads)
    };
    let (a, b) = (of("read_a"), of("read_b"));
    Parts { loads: [a.0, b.0], writes: [a.1, b.1], reads: [a.2, b.2], mma: select("mma") }
}

/// How a pipeline is cut into stages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Stages {
    /// Global loads and LDS writes, then LDS reads and products.
    Two,
    /// Global loads, LDS writes, LDS reads and products.
    Three,
    /// Global loads, nothing, the rest: what is loaded waits in registers for two passes.
    Waiting,
}

const ALL: [Stages; 3] = [Stages::Two, Stages::Three, Stages::Waiting];

/// A pipeline over the iterations of a pass.
fn pipeline(
    s: &ScheduleTracer,
    k_loop: Nodes,
    stages: Stages,
    iterations: &[Parts],
    more: impl Fn(&mut PipelineTracer<'_>),
) -> PipelinedLoop {
    s.pipeline(k_loop, |p| {
        let none = || vec![Vec::<Nodes>::new(); 2 * iterations.len()];
        let slots = |of: &dyn Fn(&Parts) -> [Vec<Nodes>; 2]| -> Vec<Vec<Nodes>> {
            iterations.iter().flat_map(of).collect()
        };
        let computed = |p: &Parts| [p.reads.to_vec(), vec![p.mma]];
        match stages {
            Stages::Two => {
                p.set_stage(slots(&|p| [p.loads.to_vec(), p.writes.to_vec()]));
                p.set_stage(slots(&computed));
            }
            Stages::Three => {
                p.set_stage(slots(&|p| [p.loads.to_vec(), Vec::new()]));
                p.set_stage(slots(&|p| [p.writes.to_vec(), Vec::new()]));
                p.set_stage(slots(&computed));
            }
            Stages::Waiting => {
                p.set_stage(slots(&|p| [Vec::new(), p.loads.to_vec()]));
                p.set_stage(none());
                p.set_stage(slots(&|p| [p.writes.to_vec(), [&p.reads[..], &[p.mma]].concat()]));
            }
        }
        more(p);
    })
}

fn nothing_more(_: &mut PipelineTracer<'_>) {}

fn unrolled(factors: &[u32]) -> WaveSchedule {
    let schedule = WaveSchedule::trace("unrolled", |s| {
        for &factor in factors {
            s.unroll(s.get_node_by_tag("k_loop"), factor);
        }
    });
    schedule.expect("a schedule")
}

fn unrolled_and_pipelined(factor: u32, stages: Stages) -> WaveSchedule {
    let schedule = WaveSchedule::trace("unrolled_and_pipelined", |s| {
        let k_loop = s.get_node_by_tag("k_loop");
        s.unroll(k_loop, factor);
        let iterations: Vec<Parts> = (0..factor)
            .map(|iteration| parts(s, |tag| s.get_node_by_tag_and_iteration(tag, iteration)))
            .collect();
        pipeline(s, k_loop, stages, &iterations, nothing_more);
    });
    schedule.expect("a schedule")
}

fn pipelined_and_unrolled(
    factor: Option<u32>,
    stages: Stages,
    more: impl Fn(&mut PipelineTracer<'_>),
) -> WaveSchedule {
    let schedule = WaveSchedule::trace("pipelined_and_unrolled", |s| {
        let all = parts(s, |tag| s.get_node_by_tag(tag));
        let pipelined = pipeline(s, s.get_node_by_tag("k_loop"), stages, &[all], more);
        if let Some(factor) = factor {
            s.unroll(pipelined.kernel(), factor);
        }
    });
    schedule.expect("a schedule")
}

/// Every trip count from 1 to 9, known and not.
fn run_all_trip_counts(schedule: &WaveSchedule) {
    let kernel = gemm();
    for dynamic in [false, true] {
        for count in 1..=9 {
            run(&kernel, schedule, tiles(count, dynamic));
        }
    }
}

#[test]
fn unrolled_loops_are_right() {
    for factor in 2..=4 {
        run_all_trip_counts(&unrolled(&[factor]));
    }
}

#[test]
fn loops_unrolled_twice_are_right() {
    run_all_trip_counts(&unrolled(&[2, 2]));
    run_all_trip_counts(&unrolled(&[3, 2]));
}

#[test]
fn unrolled_loops_in_pipelines_are_right() {
    for factor in 2..=4 {
        for stages in ALL {
            // A static trip count below the factor leaves no second iteration to place: that is not refused.
            run_all_trip_counts(&unrolled_and_pipelined(factor, stages));
        }
    }
}

#[test]
fn unrolled_kernels_of_pipelines_are_right() {
    for factor in 2..=4 {
        for stages in ALL {
            run_all_trip_counts(&pipelined_and_unrolled(Some(factor), stages, nothing_more));
        }
    }
}

#[test]
fn remainders_follow_unrolled_loops() {
    let kernel = gemm();
    for dynamic in [false, true] {
        for k in [20, 40, 72, 104, 200, 296] {
            let case = Case { shape: [50, 40, k], dynamic };
            run(&kernel, &unrolled(&[2]), case);
            run(&kernel, &unrolled_and_pipelined(2, Stages::Three), case);
            run(&kernel, &pipelined_and_unrolled(Some(3), Stages::Two, nothing_more), case);
        }
    }
}

/// Two LDS copies and three iterations in a trip, three copies and two iterations, and so on: copies follow
/// the iteration.
#[test]
fn copies_that_a_pass_does_not_bring_around_are_right() {
    for (factor, copies) in [(3, 2), (2, 3), (2, 5), (4, 3)] {
        run_all_trip_counts(&pipelined_and_unrolled(Some(factor), Stages::Three, |p| {
            p.multi_buffer_count(copies);
        }));
    }
}

#[test]
fn pipelines_without_epilogue_are_right_when_unrolled() {
    for factor in [2, 3] {
        for stages in ALL {
            run_all_trip_counts(&pipelined_and_unrolled(Some(factor), stages, |p| p.eliminate_epilogue()));
        }
    }
}

/// The lines of the largest loop of a kernel.
fn main_loop(executable: &Executable) -> Vec<String> {
    let text = executable.assembly().expect("assembly");
    let lines = largest_loop(&text).unwrap_or_default();
    lines.into_iter().map(|line| line.trim().to_owned()).collect()
}

fn count(lines: &[String], is: impl Fn(&str) -> bool) -> usize {
    lines.iter().filter(|line| is(line)).count()
}

fn is_vector_alu(line: &str) -> bool {
    line.starts_with("v_") && !line.starts_with("v_mfma")
}

#[test]
fn unrolling_by_the_lds_copies_leaves_no_address_arithmetic() {
    let kernel = gemm();
    let case = tiles(34, false);
    let once = main_loop(&run(&kernel, &pipelined_and_unrolled(None, Stages::Three, nothing_more), case));
    assert!(count(&once, is_vector_alu) > 0, "{once:#?}");
    let schedules = [
        pipelined_and_unrolled(Some(2), Stages::Three, nothing_more),
        pipelined_and_unrolled(Some(4), Stages::Three, nothing_more),
        unrolled_and_pipelined(2, Stages::Two),
    ];
    for schedule in &schedules {
        let body = main_loop(&run(&kernel, schedule, case));
        assert_eq!(count(&body, is_vector_alu), 0, "{body:#?}\n{schedule}");
        assert!(count(&body, |line| line.starts_with("ds_read")) > 0, "{body:#?}");
        assert!(
            count(&body, |line| line.starts_with("v_mfma"))
                >= 2 * count(&once, |line| line.starts_with("v_mfma"))
        );
    }
}

#[test]
fn unrolling_by_the_length_of_chains_leaves_no_register_moves() {
    let kernel = gemm();
    let case = tiles(34, false);
    let moves =
        |body: &[String]| count(body, |line| line.starts_with("v_mov") || line.starts_with("v_accvgpr"));
    let once = main_loop(&run(&kernel, &pipelined_and_unrolled(None, Stages::Waiting, nothing_more), case));
    assert!(moves(&once) > 0, "{once:#?}");
    let twice = pipelined_and_unrolled(Some(2), Stages::Waiting, nothing_more);
    let twice = main_loop(&run(&kernel, &twice, case));
    assert_eq!(moves(&twice), 0, "{twice:#?}");
}

#[test]
fn a_loop_that_is_too_short_stays_as_it_is() {
    let kernel = gemm();
    let executable = run(&kernel, &unrolled(&[4]), tiles(3, false));
    let why = &executable.report().schedule_why;
    assert_eq!(why, "a trip count of 3 is too small to unroll the loop 4 times");
    let longer = run(&kernel, &unrolled(&[4]), tiles(4, false));
    assert_eq!((longer.report().schedule_applied, &longer.report().schedule_why[..]), ("manual", ""));
    let schedule = pipelined_and_unrolled(Some(4), Stages::Two, nothing_more);
    let executable = run(&kernel, &schedule, tiles(4, false));
    assert_eq!(executable.report().schedule_applied, "manual");
    let why = &executable.report().schedule_why;
    assert_eq!(why, "a trip count of 3 is too small to unroll the loop 4 times");
}

/// What is wrong with a schedule for the GEMM.
fn fault(body: impl FnOnce(&ScheduleTracer)) -> Diagnostic {
    let schedule = WaveSchedule::trace("wrong", body).expect("a schedule");
    compiled(&gemm(), &schedule, tiles(8, false)).map(|_| ()).expect_err("a fault")
}

#[test]
fn mistakes_are_explained() {
    let no_loop = fault(|s| s.unroll(s.get_node_by_tag_and_type("mma", NodeType::Mma), 2));
    assert!(no_loop.message.contains("loop"), "{no_loop}");
    let not_unrolled = fault(|s| {
        s.get_node_by_tag_and_iteration("mma", 1);
    });
    assert_eq!(not_unrolled.message, "no copy of \"mma\" is of iteration 1");
    assert_eq!(not_unrolled.help.as_deref(), Some("unroll its loop first"));
    let beyond = fault(|s| {
        s.unroll(s.get_node_by_tag("k_loop"), 2);
        s.get_node_by_tag_and_iteration("mma", 2);
    });
    assert_eq!(beyond.help.as_deref(), Some("its loop runs 2 iterations in a trip, counted from 0"));
    let staggered = fault(|s| {
        s.stagger(s.get_node_by_tag("k_loop"));
        s.unroll(s.get_node_by_tag("k_loop"), 2);
    });
    assert_eq!(staggered.help.as_deref(), Some("unroll it first, then stagger it"));
    let large = fault(|s| s.unroll(s.get_node_by_tag("k_loop"), 1 << 16));
    assert!(large.message.contains("65536 is the most"), "{large}");
    for fault in [no_loop, not_unrolled, beyond, staggered, large] {
        let file = fault.location.as_ref().map(|at| at.file.to_string()).unwrap_or_default();
        assert!(file.ends_with("unroll_schedules.rs"), "{fault}");
    }
}

#[test]
fn only_innermost_loops_are_unrolled() {
    let [m, k, p] = symbols(["M", "K", "P"]);
    let kernel = Kernel::trace("nested", |w| {
        w.distribute([workgroup(m, 64, 0), tile(k, 16), tile(p, 16)]);
        let (a, c) = (w.memory("a", [m], Global, F32), w.memory("c", [m], Global, F32));
        let zero = w.register([m], F32, 0.0);
        let [sum] = w.iterate(p, [zero], |w, [outer]| {
            let [sum] = w.iterate(k, [outer], |w, [inner]| {
                let a = w.read(a);
                [inner + a]
            });
            [sum.tag_loop("inner")]
        });
        w.write(sum.tag_loop("outer"), c);
    });
    let kernel = kernel.expect("a kernel");
    let compile = |tag: &str| {
        let schedule = WaveSchedule::trace("nested", |s| s.unroll(s.get_node_by_tag(tag), 2));
        let options = Options::new(Target::GFX942).wave_schedule(&schedule.expect("a schedule"));
        let options = options.set(m, 64).set(k, 64).set(p, 64);
        compile_uncached(&kernel, &options, Verify::AfterEachPass)
    };
    let error = compile("outer").map(|_| ()).expect_err("a fault");
    assert!(error.message.ends_with("holds another loop"), "{error}");
    assert_eq!(error.help.as_deref(), Some("only innermost loops can be unrolled"));
    compile("inner").expect("the inner loop is unrolled");
}

/// A pipeline with an unrolled kernel whose waves are a barrier apart, with a number of barriers between LDS
/// writes and reads.
fn staggered(barriers: u32) -> WaveSchedule {
    let schedule = WaveSchedule::trace("staggered", |s| {
        let all = parts(s, |tag| s.get_node_by_tag(tag));
        let pipelined = pipeline(s, s.get_node_by_tag("k_loop"), Stages::Two, &[all], |p| {
            p.multi_buffer_count(2);
        });
        let kernel = pipelined.kernel();
        s.unroll(kernel, 2);
        for iteration in 0..2 {
            let own = |tag: &str| {
                let nodes = s.get_node_by_tag_and_iteration(tag, iteration);
                s.filter_nodes(nodes, Some(kernel), None)
            };
            let own = parts(s, own);
            for _ in 0..barriers {
                s.insert_before(own.reads[0], SharedMemoryBarrier);
            }
            s.insert_before(own.mma, SharedMemoryBarrier);
        }
        s.insert_before(kernel, SharedMemoryBarrier);
        s.stagger(kernel);
    });
    schedule.expect("a schedule")
}

#[test]
fn unrolled_loops_can_be_staggered() {
    run_all_trip_counts(&staggered(2));
}

/// The late waves write what those ahead already read.
#[test]
fn unrolled_loops_with_too_few_barriers_cannot_be_staggered() {
    let error = compiled(&gemm(), &staggered(1), tiles(8, false)).map(|_| ()).expect_err("a fault");
    assert!(error.message.starts_with("no barrier keeps the LDS write"), "{error}");
}

/// The nodes of both iterations of a trip in an order: `L`oads, LDS `w`rites and `r`eads, and `m`atrix
/// products, by iteration.
fn in_order(s: &ScheduleTracer, of: [Parts; 2], order: &[(char, usize)]) -> Vec<Cluster> {
    let list = |&(what, iteration): &(char, usize)| {
        let of = of[iteration];
        match what {
            'L' => of.loads.to_vec(),
            'w' => of.writes.to_vec(),
            'r' => of.reads.to_vec(),
            _ => vec![of.mma],
        }
    };
    order.iter().map(|step| s.cluster(list(step))).collect()
}

fn reordered_loop(order: &[(char, usize)]) -> WaveSchedule {
    let schedule = WaveSchedule::trace("reordered", |s| {
        let k_loop = s.get_node_by_tag("k_loop");
        s.unroll(k_loop, 2);
        let of = [0, 1].map(|at| parts(s, |tag| s.get_node_by_tag_and_iteration(tag, at)));
        s.reorder_graph(k_loop, in_order(s, of, order));
    });
    schedule.expect("a schedule")
}

fn reordered_kernel(order: &[(char, usize)]) -> WaveSchedule {
    let schedule = WaveSchedule::trace("reordered", |s| {
        let all = parts(s, |tag| s.get_node_by_tag(tag));
        let kernel = pipeline(s, s.get_node_by_tag("k_loop"), Stages::Three, &[all], nothing_more).kernel();
        s.unroll(kernel, 2);
        let own = |tag: &str, at| s.filter_nodes(s.get_node_by_tag_and_iteration(tag, at), kernel, None);
        let of = [0, 1].map(|at| parts(s, |tag| own(tag, at)));
        s.reorder_graph(kernel, in_order(s, of, order));
    });
    schedule.expect("a schedule")
}

#[test]
fn unrolled_loops_are_reordered_as_far_as_lds_copies_allow() {
    let kernel = gemm();
    let case = tiles(7, false);
    let refused = |schedule: &WaveSchedule| {
        let error = compiled(&kernel, schedule, case).map(|_| ()).expect_err("a fault");
        assert!(error.message.contains("has to come before"), "{error}");
    };
    // One copy: the second iteration writes what the first has read.
    let order = [('L', 0), ('L', 1), ('w', 0), ('r', 0), ('w', 1), ('m', 0), ('r', 1), ('m', 1)];
    run(&kernel, &reordered_loop(&order), case);
    refused(&reordered_loop(&[
        ('L', 0),
        ('L', 1),
        ('w', 0),
        ('w', 1),
        ('r', 0),
        ('r', 1),
        ('m', 0),
        ('m', 1),
    ]));
    // In the pipeline the LDS writes of the first copy are of the iteration that the second one reads.
    let order = [('L', 0), ('L', 1), ('w', 0), ('r', 0), ('m', 0), ('r', 1), ('w', 1), ('m', 1)];
    run(&kernel, &reordered_kernel(&order), case);
    refused(&reordered_kernel(&[
        ('r', 0),
        ('r', 1),
        ('w', 0),
        ('w', 1),
        ('L', 0),
        ('L', 1),
        ('m', 0),
        ('m', 1),
    ]));
}
