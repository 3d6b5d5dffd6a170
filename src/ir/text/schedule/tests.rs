//! Printing and parsing of schedules against tracing: one schedule, whichever way it is written; and the text
//! of every message.

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::symbols;
use crate::ir::kernel::Kernel;
use crate::ir::node::BinaryOp;
use crate::ir::node::Control::{SchedulingBarrier, SetWavePriority, WaitForLoads, WorkgroupBarrier};
use crate::ir::schedule::Directive::SharedMemoryBarrier;
use crate::ir::schedule::{Interleave, NodeType, WaveSchedule};
use crate::ir::text::parse_file;
use crate::ir::types::AddressSpace::Global;

fn parse(text: &str) -> WaveSchedule {
    WaveSchedule::parse(text, "s.gsw").unwrap_or_else(|faults| panic!("{text}\n{}", listing(&faults)))
}

fn listing(faults: &[Diagnostic]) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

/// The faults of statements after a few definitions, which take lines 2 to 5.
fn faults(statements: &str) -> String {
    let text = format!(
        "schedule s {{\n  k_loop = get_node_by_tag \"k_loop\"\n  mma = get_node_by_tag \"mma\"\n  \
         load = get_node_by_tag \"load\"\n  c0 = cluster [mma]\n{statements}}}\n"
    );
    let faults = WaveSchedule::parse(&text, "s").expect_err("the schedule has a fault");
    let text = listing(&faults);
    // Every fault says what to do, except those of the grammar itself, which say what is expected.
    for fault in &faults {
        assert!(fault.help.is_some() || fault.message.starts_with("expected"), "{text}");
        assert!(fault.location.is_some(), "{text}");
    }
    text
}

const STAGES: &str = "\
schedule stages {
  k_loop = get_node_by_tag \"k_loop\"
  tile_read = get_node_by_tag_and_type \"tile\" read
  tile_read_global, tile_read_others = partition_by_address_space tile_read global
  tile_write = get_node_by_tag_and_type \"tile\" write
  mma = get_node_by_tag \"mma\"
  k_loop_pipeline = pipeline k_loop {
    set_stage (tile_read_global) (tile_write)
    set_stage (tile_read_others) (mma)
  }
}
";

#[test]
fn a_pipeline_is_one_traced_and_written() {
    let traced = WaveSchedule::trace("stages", |s| {
        let k_loop = s.get_node_by_tag("k_loop");
        let (load, read) =
            s.partition_by_address_space(s.get_node_by_tag_and_type("tile", NodeType::Read), Global);
        let write = s.get_node_by_tag_and_type("tile", NodeType::Write);
        let mma = s.get_node_by_tag("mma");
        s.pipeline(k_loop, |p| {
            p.set_stage([load, write]);
            p.set_stage([read, mma]);
        });
    })
    .expect("the schedule has no mistakes");
    assert_eq!(traced.to_string(), STAGES);
    let parsed = parse(STAGES);
    assert_eq!(parsed, traced);
    assert_eq!(parsed.to_string(), STAGES);
    let names = parsed.value_names();
    assert_eq!(names[2..4], ["tile_read_global", "tile_read_others"]);
    assert_eq!(names.last().map(String::as_str), Some("k_loop_pipeline.epilogue"));
}

const EVERYTHING: &str = "\
schedule everything {
  k_loop = get_node_by_tag \"the \\\"K\\\" loop\"
  mma = get_node_by_tag \"mma\"
  adds = get_node_by_tag_and_type \"mma\" add
  third = get_node_by_tag_and_iteration \"mma\" 2
  global, shared = partition_by_address_space third global
  half, rest = partition_by_dim mma K 2
  odd = partition_by_dim mma \"a dim\" 1
  one = getitem half 0
  loop = pipeline k_loop {
    eliminate_epilogue
    multi_buffer_count 3
    set_stage (global, shared) () (adds)
    set_stage () (mma) ()
  }
  inner = filter_nodes mma stage loop.kernel type mma
  outer = filter_nodes mma stage loop.prologue
  reads = filter_nodes mma type read
  all = filter_nodes mma
  first = cluster [set_wave_priority 1, half, barrier, one, wait_for_loads 62]
  second = cluster [first, workgroup_barrier, scheduling_barrier]
  mix = interleave_ops (mma, adds) [global interval 4 start_offset 2, (shared, odd) start_after_groups [0], () interval 2]
  plain = interleave_ops mma []
  reorder_graph loop.kernel [first, second, mix]
  reorder_graph loop.prologue [outer]
  insert_before mma set_wave_priority 0
  insert_after loop.kernel conditional_barrier ge waves / 2
  insert_before mma conditional_barrier lt 4
  insert_at_start loop.kernel barrier
  insert_at_end k_loop scheduling_barrier
  stagger loop.kernel
  unroll loop.kernel 2
  schedule_loop half two_phase
}
";

#[test]
fn every_operation_reads_back_as_it_was_printed() {
    let parsed = parse(EVERYTHING);
    assert_eq!(parsed.to_string(), EVERYTHING);
    assert_eq!(parsed.operations().len(), EVERYTHING.lines().count() - 2 - 5);
}

#[test]
fn every_operation_is_traced_as_it_is_written() {
    let [k, odd] = symbols(["K", "a dim"]);
    let traced = WaveSchedule::trace("everything", |s| {
        let k_loop = s.get_node_by_tag("the \"K\" loop");
        let mma = s.get_node_by_tag("mma");
        let adds = s.get_node_by_tag_and_type("mma", NodeType::Binary(BinaryOp::Add));
        let third = s.get_node_by_tag_and_iteration("mma", 2);
        let (global, shared) = s.partition_by_address_space(third, Global);
        let [half, _] = s.partition_by_dim(mma, k);
        let odd = s.partition_by_dim_into(mma, odd, 1)[0];
        let one = s.getitem(half, 0);
        let pipelined = s.pipeline(k_loop, |p| {
            p.multi_buffer_count(3);
            p.eliminate_epilogue();
            p.set_stage(((global, shared), (), adds));
            p.set_stage(((), mma, ()));
        });
        s.filter_nodes(mma, pipelined.kernel(), NodeType::Mma);
        let outer = s.filter_nodes(mma, pipelined.prologue(), None);
        s.filter_nodes(mma, None, NodeType::Read);
        s.filter_nodes(mma, None, None);
        let first = s.cluster((SetWavePriority(1), half, SharedMemoryBarrier, one, WaitForLoads(62)));
        let second = s.cluster((first, WorkgroupBarrier, SchedulingBarrier));
        let groups = [
            Interleave::of(global).interval(4).start_offset(2),
            Interleave::of((shared, odd)).start_after_groups([0]),
            Interleave::of(()).interval(2),
        ];
        let mix = s.interleave_ops((mma, adds), groups);
        s.interleave_ops(mma, []);
        s.reorder_graph(pipelined.kernel(), (first, second, mix));
        s.reorder_graph(pipelined.prologue(), outer);
        s.insert_before(mma, SetWavePriority(0));
        let hardware = s.get_hardware_constraint();
        let late = hardware.wave_id.greater_equal(hardware.waves_per_block / 2);
        s.insert_cond_barrier_after(late, pipelined.kernel());
        s.insert_cond_barrier_before(hardware.wave_id.less(4), mma);
        s.insert_at_start(pipelined.kernel(), SharedMemoryBarrier);
        s.insert_at_end(k_loop, SchedulingBarrier);
        s.stagger(pipelined.kernel());
        s.unroll(pipelined.kernel(), 2);
        s.schedule_loop(half, "two_phase");
    })
    .expect("the schedule has no mistakes");
    assert_eq!(traced, parse(EVERYTHING));
    let printed = traced.to_string();
    assert_eq!(parse(&printed).to_string(), printed);
    assert_eq!(parse(&printed), traced);
}

#[test]
fn short_forms_print_at_length() {
    let text = "schedule s { x = get_node_by_tag \"barrier\"\n _, _ = partition_by_address_space x global\n\
                pipeline x { set_stage (x) }\n insert_cond_barrier_after ne waves x\n y = interleave_ops (x) [(x)] }";
    let expected = "\
schedule s {
  x = get_node_by_tag \"barrier\"
  x_global, x_others = partition_by_address_space x global
  x_pipeline = pipeline x {
    set_stage (x)
  }
  insert_after x conditional_barrier ne waves / 1
  y = interleave_ops x [x]
}
";
    assert_eq!(parse(text).to_string(), expected);
    assert_eq!(parse(expected).to_string(), expected);
    assert_eq!(parse(expected), parse(text));
}

#[test]
fn made_up_names_are_free_and_legible() {
    let traced = WaveSchedule::trace("names", |s| {
        for tag in ["a", "a", "barrier", "2nd tag", "", "é", "a_2"] {
            s.get_node_by_tag(tag);
        }
        let mut list = s.get_node_by_tag("a");
        for _ in 0..20 {
            list = s.getitem(list, 7);
        }
    })
    .unwrap();
    let names = traced.value_names();
    assert_eq!(names[..8], ["a", "a_2", "barrier_2", "_2nd_tag", "nodes", "nodes_2", "a_2_2", "a_3"]);
    assert!(names.iter().all(|name| name.len() <= 44), "{names:?}");
    assert_eq!(parse(&traced.to_string()), traced);
    // The author's names are never made up for something else.
    let text = "schedule s {\n  _ = get_node_by_tag \"x\"\n  x = get_node_by_tag \"y\"\n}\n";
    assert_eq!(parse(text).value_names(), ["x_2", "x"]);
}

#[test]
fn a_file_may_hold_a_kernel_and_its_schedule() {
    let kernel = "kernel k {\n  workgroup_barrier\n}\n";
    let both = format!("; a comment\n{kernel}\n{STAGES}\n; the end\n");
    let (read, schedule) = parse_file(&both, "both.gsw").unwrap();
    assert_eq!(read.to_string(), kernel);
    let schedule = schedule.expect("the file has a schedule");
    assert_eq!(schedule, parse(STAGES));
    assert_eq!(schedule.location().to_string(), "both.gsw:6:1");
    assert_eq!(schedule.operations()[1].location.to_string(), "both.gsw:8:3");
    assert_eq!(Kernel::parse(&both, "both.gsw").unwrap().to_string(), kernel);
    let (read, schedule) = parse_file(kernel, "k.gsw").unwrap();
    assert_eq!((read.to_string().as_str(), schedule), (kernel, None));
    let wrong = |text: &str| listing(&parse_file(text, "f").expect_err("the text has a fault"));
    // Faults of both parts are reported.
    assert_eq!(
        wrong("kernel k {\n  workgroup_barier\n}\nschedule s {\n  stager\n}\n"),
        "error: no statement starts with `workgroup_barier`\n  --> f:2:3\n  help: did you mean `workgroup_barrier`?\n\
         error: there is no operation `stager`\n  --> f:5:3\n  help: did you mean `stagger`?\n"
    );
    assert_eq!(
        wrong(&format!("{kernel}schedule s {{\n}}\nschedule t {{\n}}\n")),
        "error: expected the end of the text, found `schedule`\n  --> f:6:1\n  help: a text holds one kernel, and after it one schedule\n"
    );
}

#[test]
fn blocks_that_do_not_end_are_faults() {
    let wrong = |text: &str| listing(&WaveSchedule::parse(text, "s").expect_err("the text has a fault"));
    assert_eq!(wrong(""), "error: expected `schedule`, found the end of the text\n  --> s:1:1\n");
    assert_eq!(wrong("schedule {"), "error: expected the schedule's name, found `{`\n  --> s:1:10\n");
    assert_eq!(
        wrong("schedule s {\n"),
        "error: expected the `}` of the schedule, found the end of the text\n  --> s:2:1\n  note: it was opened here\n    --> s:1:12\n"
    );
    assert_eq!(
        wrong("schedule s {\n x = get_node_by_tag \"x\"\n pipeline x {\n"),
        "error: expected the `}` of the pipeline, found the end of the text\n  --> s:4:1\n  note: it was opened here\n    --> s:3:13\n\
         error: expected the `}` of the schedule, found the end of the text\n  --> s:4:1\n  note: it was opened here\n    --> s:1:12\n"
    );
    assert_eq!(
        wrong("schedule s {\n}\nx"),
        "error: expected the end of the text, found `x`\n  --> s:3:1\n  help: a text holds one schedule\n"
    );
    let many = format!("schedule s {{\n{}}}\n", "  nonsense\n".repeat(100));
    assert_eq!(WaveSchedule::parse(&many, "s").expect_err("the text has faults").len(), 20);
}

/// Statements and their faults.
const FAULTS: &[(&str, &str)] = &[
    // Words.
    ("unrol k_loop 2", "there is no operation `unrol`\n  --> s:6:1\n  help: did you mean `unroll`?"),
    (
        "x = load mma",
        "there is no operation `load`\n  --> s:6:5\n  help: the operations are listed in the documentation of schedules' text form",
    ),
    (
        "set_stage (mma)",
        "`set_stage` outside of a pipeline\n  --> s:6:1\n  help: write it inside the braces of `pipeline k_loop { ... }`",
    ),
    (
        "barrier",
        "`barrier` stands nowhere\n  --> s:6:1\n  help: write `insert_before place barrier ...`, or put it into a cluster",
    ),
    (
        "%x = cluster [mma]",
        "expected a statement or `}`, found `%`\n  --> s:6:1\n  help: names of a schedule's values have no `%`",
    ),
    // Names.
    ("stagger k_lop", "`k_lop` is not defined\n  --> s:6:9\n  help: did you mean `k_loop`?"),
    (
        "stagger nowhere",
        "`nowhere` is not defined\n  --> s:6:9\n  help: a name is defined above its first use",
    ),
    (
        "mma = cluster [load]",
        "`mma` is defined twice\n  --> s:6:1\n  note: the first definition is here\n    --> s:3:3\n  help: a name stands for one value in the whole schedule",
    ),
    (
        "barrier = cluster [load]",
        "`barrier` is a word of schedules\n  --> s:6:1\n  help: take another name for the value",
    ),
    (
        "x = getitem c0 1",
        "`c0` is a cluster, and a list of nodes is expected\n  --> s:6:13\n  help: name the lists that it was made of",
    ),
    (
        "x = filter_nodes mma stage load",
        "`load` is a list of nodes, and a part of a pipeline like `loop.kernel` is expected\n  --> s:6:28\n  help: `loop = pipeline ...` gives `loop.kernel` and the other parts",
    ),
    (
        "stagger mma.kernel",
        "`mma` is not a pipeline and has no parts\n  --> s:6:9\n  note: it is defined here\n    --> s:3:3\n  help: a part is named `loop.kernel` after `loop = pipeline ...`",
    ),
    (
        "p = pipeline k_loop {\nset_stage (mma)\n}\nstagger p",
        "`p` is a whole pipeline\n  --> s:9:9\n  help: name a part of it: `p.prologue`, `p.kernel`, `p.epilogue`",
    ),
    (
        "p = pipeline k_loop {\nset_stage (mma)\n}\nstagger p.kernal",
        "a pipeline has no part `kernal`\n  --> s:9:11\n  help: did you mean `kernel`?",
    ),
    (
        "p = pipeline k_loop {\nset_stage (mma)\n}\nx = getitem p.kernel 0",
        "`p.kernel` is a part of a pipeline, and a list of nodes is expected\n  --> s:9:13\n  help: `filter_nodes` with `stage` gives the nodes of a part",
    ),
    // Results.
    ("x = stagger k_loop", "`stagger` has no result\n  --> s:6:1\n  help: write `stagger` without `name =`"),
    ("getitem mma 0", "the result of `getitem` has no name\n  --> s:6:1\n  help: write `name = getitem ...`"),
    (
        "partition_by_address_space mma global",
        "the result of `partition_by_address_space` has no name\n  --> s:6:1\n  help: write `name, other = partition_by_address_space ...`: it has 2 results",
    ),
    (
        "x = partition_by_address_space mma global",
        "`partition_by_address_space` has 2 results, and 1 is named\n  --> s:6:1\n  help: `_` stands for a result that is not used",
    ),
    (
        "x, y = partition_by_dim mma K 3",
        "`partition_by_dim` has 3 results, and 2 are named\n  --> s:6:1\n  help: `_` stands for a result that is not used",
    ),
    // Operands.
    (
        "x = get_node_by_tag mma",
        "expected a tag, found `mma`\n  --> s:6:21\n  help: tags are quoted: `\"read_a\"`",
    ),
    (
        "x = get_node_by_tag_and_type \"a\" writ",
        "there is no type of nodes `writ`\n  --> s:6:34\n  help: did you mean `write`?",
    ),
    (
        "x = get_node_by_tag_and_type \"a\" barrier",
        "there is no type of nodes `barrier`\n  --> s:6:34\n  help: the types are {types}",
    ),
    (
        "x = getitem mma -1",
        "-1 is out of range\n  --> s:6:17\n  help: numbers in schedules are 0 to 4294967295",
    ),
    ("x, y = partition_by_address_space mma lds", "expected `global` or `shared`, found `lds`\n  --> s:6:39"),
    (
        "x, y = partition_by_address_space mma register",
        "no read or write is in register space\n  --> s:6:39\n  help: divide by global or by shared",
    ),
    (
        "x = partition_by_dim mma K 0",
        "a list cannot be divided into 0\n  --> s:6:28\n  help: ask for 1 to 65536 parts",
    ),
    (
        "schedule_loop k_loop prefetch\nschedule_loop k_loop modulo",
        "this loop is scheduled twice\n  --> s:7:15\n  note: it is scheduled here first\n    --> s:6:1\n  help: give it one strategy, or stages",
    ),
    (
        "schedule_loop k_loop",
        "expected a schedule, found the end of the line\n  --> s:6:21\n  help: write a word of `--schedule`: `schedule_loop k_loop prefetch`",
    ),
    (
        "p = pipeline k_loop {\nset_stage (mma)\n}\nschedule_loop k_loop prefetch",
        "this loop is scheduled twice\n  --> s:9:15\n  note: it is scheduled here first\n    --> s:6:1\n  help: give it one strategy, or stages",
    ),
    ("unroll k_loop 1", "a loop cannot be unrolled 1 times\n  --> s:6:15\n  help: the factor is 2 to 65536"),
    (
        "insert_before mma barier",
        "expected an operation to insert, found `barier`\n  --> s:6:19\n  help: did you mean `barrier`?",
    ),
    (
        "insert_before mma",
        "expected an operation to insert, found the end of the line\n  --> s:6:18\n  help: there are workgroup_barrier, conditional_barrier, set_wave_priority, scheduling_barrier, interleave_by_cost, skip_unit_factors, wait_for_loads, wait_for_shared, barrier",
    ),
    (
        "x = cluster [mma, set_wave_prioritty 1]",
        "`set_wave_prioritty` is not defined\n  --> s:6:19\n  help: did you mean `set_wave_priority`?\nerror: expected `]`, found `1`\n  --> s:6:38",
    ),
    (
        "insert_before mma set_wave_priority 4",
        "4 is not a priority of a wave\n  --> s:6:37\n  help: priorities are 0 (as waves start) to 3",
    ),
    (
        "insert_before mma wait_for_loads 63",
        "a wait cannot leave 63 loads under way\n  --> s:6:34\n  help: 0 to 62 loads can be left; with more there is nothing to wait for",
    ),
    (
        "insert_before mma conditional_barrier lt waves / 0",
        "no wave's number is compared with this\n  --> s:6:42\n  help: a bound is a number from 0, or the waves of a workgroup over a number from 1",
    ),
    (
        "insert_before mma conditional_barrier lt waves // 2",
        "expected `/`, found `//`\n  --> s:6:48\n  help: write `waves / 2`, which is rounded down too",
    ),
    (
        "insert_before mma conditional_barrier lt half",
        "expected a wave's number or `waves`, found `half`\n  --> s:6:42\n  help: write `ge 4` or `ge waves / 2`",
    ),
    (
        "insert_cond_barrier_before above 4 mma",
        "expected a predicate, found `above`\n  --> s:6:28\n  help: the predicates are eq, ne, lt, le, gt, ge",
    ),
    // Pipelines.
    (
        "pipeline k_loop {\n}",
        "a pipeline without stages\n  --> s:6:1\n  help: set its stages inside it, one after the other",
    ),
    (
        "pipeline k_loop {\nset_stage\n}",
        "a stage without clusters\n  --> s:7:1\n  help: give it one per slot of the initiation interval",
    ),
    (
        "pipeline k_loop {\nset_stage (mma) (load)\nset_stage (mma)\n}",
        "all stages of a pipeline have the same number of clusters, and this one has 1 cluster\n  --> s:8:1\n  note: the first stage has 2 clusters\n    --> s:7:1\n  help: write `()` for a slot in which a stage does nothing",
    ),
    (
        "pipeline k_loop {\nset_stage (mma)\nset_stage (load, mma)\n}",
        "a list of nodes is scheduled twice\n  --> s:8:1\n  note: it is scheduled here first\n    --> s:7:1\n  note: it is this list\n    --> s:3:3\n  help: every node has one stage and one slot",
    ),
    (
        "pipeline k_loop {\nset_stage (mma)\n}\npipeline k_loop {\nset_stage (mma)\n}",
        "this loop is pipelined twice\n  --> s:9:1\n  note: it is pipelined here first\n    --> s:6:1\n  help: set all stages in one pipeline",
    ),
    (
        "pipeline k_loop {\nmulti_buffer_count 0\nset_stage (mma)\n}",
        "an LDS buffer cannot have so many copies\n  --> s:6:1\n  help: the count is 1 to 65536; without one, there are as many copies as the stages need",
    ),
    (
        "p = pipeline k_loop {\nset_stge (mma)\n}\nstagger p.kernel",
        "no statement of a pipeline starts with `set_stge`\n  --> s:7:1\n  help: did you mean `set_stage`?",
    ),
    (
        "pipeline k_loop {\nx = cluster [mma]\n}",
        "no statement of a pipeline starts with `x`\n  --> s:7:1\n  help: put it before the pipeline or after it",
    ),
    (
        "p = pipeline k_loop {\neliminate_epilogue\nset_stage (mma)\n}\ninsert_at_end p.epilogue barrier",
        "this pipeline has no epilogue\n  --> s:10:15\n  note: its epilogue is eliminated here\n    --> s:6:1\n  help: its last iterations run in its kernel",
    ),
    (
        "p = pipeline k_loop {\nset_stage (mma)\n}\nunroll p.epilogue 2",
        "the epilogue of a pipeline is neither a loop nor a node\n  --> s:9:8\n  help: loops are unrolled: take the pipeline's kernel",
    ),
    (
        "p = pipeline k_loop {\nset_stage (mma)\n}\nstagger p.prologue",
        "the prologue of a pipeline is neither a loop nor a node\n  --> s:9:9\n  help: waves are staggered for a loop: take the pipeline's kernel",
    ),
    (
        "p = pipeline k_loop {\nset_stage (mma)\n}\ninsert_after p.prologue barrier",
        "the prologue of a pipeline is neither a loop nor a node\n  --> s:9:14\n  help: insert at its start or at its end",
    ),
    // Orders.
    (
        "x = cluster [barrier]",
        "a cluster without nodes\n  --> s:6:13\n  help: put a list of nodes into it: an inserted operation needs a node as its place",
    ),
    (
        "reorder_graph k_loop []",
        "an order without clusters\n  --> s:6:22\n  help: name all clusters in the order that they should have",
    ),
    (
        "reorder_graph k_loop [c0, load, c0]",
        "a cluster has two places in one order\n  --> s:6:22\n  note: it is this cluster\n    --> s:5:3\n  help: every node has one place",
    ),
    (
        "x = interleave_ops () [load]",
        "nothing to interleave with\n  --> s:6:20\n  help: name the list between whose nodes the others go",
    ),
    (
        "x = interleave_ops mma [load interval 0]",
        "group 0 has the interval 0\n  --> s:6:24\n  help: an interval is at least 1: a node of the group after every node of the base",
    ),
    (
        "x = interleave_ops mma [load start_after_groups [2], k_loop]",
        "group 0 starts after group 2, which does not exist\n  --> s:6:24\n  help: groups are numbered from 0, and there are groups 0 to 1",
    ),
    (
        "x = interleave_ops mma [load start_after_groups [1], k_loop start_after_groups [0]]",
        "group 0 never starts\n  --> s:6:24\n  help: it starts after groups that start after it; leave one of them out",
    ),
];

#[test]
fn faults_say_what_where_why_and_the_way_out() {
    let types: Vec<_> = NodeType::all().map(|(_, name)| name).collect();
    let types = types.join(", ");
    let mut wrong = String::new();
    for (statements, expected) in FAULTS {
        let expected = expected.replace("{types}", &types);
        let found = faults(&format!("{statements}\n"));
        if found != format!("error: {expected}\n") {
            wrong += &format!("{statements}\n{found}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
