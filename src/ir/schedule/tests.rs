//! Tracing: what is recorded, and which mistakes are found without a kernel. Rules are shared with the text
//! form, whose tests show every message.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Directive::SharedMemoryBarrier;
use super::*;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Symbol, symbols};
use crate::ir::node::Control;
use crate::ir::node::Control::{SetWavePriority, WaitForLoads};
use crate::ir::types::AddressSpace::{Global, Register};

fn fault(body: impl FnOnce(&ScheduleTracer)) -> Diagnostic {
    WaveSchedule::trace("s", body).expect_err("the schedule has a mistake")
}

fn message(body: impl FnOnce(&ScheduleTracer)) -> String {
    let fault = fault(body);
    assert!(fault.location.is_some(), "every mistake has a place");
    assert!(fault.help.is_some(), "every mistake has a way out");
    fault.message
}

fn hash(schedule: &WaveSchedule) -> u64 {
    let mut hasher = DefaultHasher::new();
    schedule.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn values_are_numbered_as_operations_define_them() {
    let [k] = symbols(["K"]);
    let schedule = WaveSchedule::trace("numbers", |s| {
        let load = s.get_node_by_tag("load");
        let (global, _) = s.partition_by_address_space(load, Global);
        let [_, second, _] = s.partition_by_dim(global, k);
        let pipelined = s.pipeline(s.get_node_by_tag("loop"), |p| p.set_stage((second,)));
        s.filter_nodes(second, pipelined.epilogue(), None);
        s.cluster((second, WaitForLoads(3)));
    })
    .unwrap();
    let results: Vec<_> = schedule.operations().iter().map(|scheduled| scheduled.results.clone()).collect();
    assert_eq!(results, [0..1, 1..3, 3..6, 6..7, 7..10, 10..11, 11..12]);
    use ValueKind::{Cluster, Epilogue, Kernel, Nodes, Prologue};
    let mut kinds = vec![Nodes; 7];
    kinds.extend([Prologue, Kernel, Epilogue, Nodes, Cluster]);
    assert_eq!(schedule.value_kinds(), kinds);
    for (at, scheduled) in schedule.operations().iter().enumerate() {
        for value in scheduled.results.clone() {
            let found = schedule.definition(ValueId(value)).expect("every value is defined");
            assert_eq!(found.results, schedule.operations()[at].results);
        }
    }
    assert!(schedule.definition(ValueId(12)).is_none());
    let Operation::FilterNodes { list, stage, node_type: None } = schedule.operations()[5].operation else {
        panic!("{schedule}");
    };
    assert_eq!((list, stage), (ValueId(4), Some(ValueId(9))));
    let Operation::Pipeline(pipeline) = &schedule.operations()[4].operation else { panic!("{schedule}") };
    assert_eq!((pipeline.target, pipeline.initiation_interval()), (ValueId(6), 1));
}

#[test]
fn operations_know_the_authors_lines() {
    let first = line!() + 1;
    let schedule = WaveSchedule::trace("lines", |s| {
        let k_loop = s.get_node_by_tag("k_loop");
        let mma = s.get_node_by_tag("mma");
        s.pipeline(k_loop, |p| {
            p.set_stage((mma,));
        });
    })
    .unwrap();
    assert_eq!(schedule.location().line, first);
    let lines: Vec<u32> = schedule.operations().iter().map(|s| s.location.line - first).collect();
    assert_eq!(lines, [1, 2, 3]);
    let Operation::Pipeline(pipeline) = &schedule.operations()[2].operation else { panic!("{schedule}") };
    assert_eq!(pipeline.stages[0].location.line - first, 4);
    assert_eq!(&*pipeline.stages[0].location.file, file!());
}

#[test]
fn schedules_that_do_the_same_are_equal_wherever_they_are_written() {
    let trace = |tag: &'static str| {
        WaveSchedule::trace("same", move |s| s.stagger(s.get_node_by_tag(tag))).expect("no mistake")
    };
    let here = WaveSchedule::trace("same", |s| s.stagger(s.get_node_by_tag("k_loop"))).unwrap();
    assert_eq!(here, trace("k_loop"));
    assert_eq!(hash(&here), hash(&trace("k_loop")));
    assert_ne!(here.sources(), trace("k_loop").sources());
    assert_ne!(here, trace("other"));
    let text = here.to_string().replace("k_loop = ", "x = ").replace("stagger k_loop", "stagger x");
    let parsed = WaveSchedule::parse(&text, "s.gsw").unwrap();
    assert_eq!(parsed, here);
    assert_eq!(parsed.to_string(), text);
    assert_eq!(here.clone(), here);
}

#[test]
fn stages_of_different_lengths_are_refused_with_both_places() {
    let mut places = (0, 0);
    let fault = fault(|s| {
        let [a, b, k_loop] = ["a", "b", "k_loop"].map(|tag| s.get_node_by_tag(tag));
        s.pipeline(k_loop, |p| {
            places.0 = line!() + 1;
            p.set_stage(((a,), ()));
            places.1 = line!() + 1;
            p.set_stage((b,));
        });
    });
    assert_eq!(
        fault.message,
        "all stages of a pipeline have the same number of clusters, and this one has 1 cluster"
    );
    assert_eq!(fault.location.map(|at| at.line), Some(places.1));
    assert_eq!(fault.notes.len(), 1);
    assert_eq!(fault.notes[0].0, "the first stage has 2 clusters");
    assert_eq!(fault.notes[0].1.as_ref().map(|at| at.line), Some(places.0));
}

#[test]
fn tuples_arrays_and_vectors_are_the_same_slots() {
    type Set = fn(&mut PipelineTracer<'_>, Nodes, Nodes);
    let trace = |set: Set| {
        WaveSchedule::trace("s", move |s| {
            let [a, b, k_loop] = ["a", "b", "k_loop"].map(|tag| s.get_node_by_tag(tag));
            s.pipeline(k_loop, |p| set(p, a, b));
        })
        .expect("no mistake")
    };
    let tuple = trace(|p, a, b| p.set_stage(((a,), (b,))));
    for set in [
        (|p, a, b| p.set_stage([(a,), (b,)])) as Set,
        |p, a, b| p.set_stage([a, b]),
        |p, a, b| p.set_stage((a, b)),
        |p, a, b| p.set_stage(([a], vec![b])),
        |p, a, b| p.set_stage(vec![vec![a], vec![b]]),
        |p, a, b| p.set_stage([&[a][..], &[b]]),
    ] {
        assert_eq!(trace(set), tuple);
    }
    assert_ne!(trace(|p, a, b| p.set_stage(((a, b), ()))), tuple);
    assert_eq!(
        trace(|p, a, b| p.set_stage(((), (a, (b,)), [] as [Nodes; 0]))),
        trace(|p, a, b| p.set_stage(((), (a, b), ())))
    );
}

#[test]
fn the_first_mistake_is_returned() {
    let expected = line!() + 2;
    let fault = fault(|s| {
        s.unroll(s.get_node_by_tag("k_loop"), 1);
        s.unroll(s.get_node_by_tag("k_loop"), 0);
    });
    assert_eq!(fault.message, "a loop cannot be unrolled 1 times");
    assert_eq!(fault.location.map(|at| at.line), Some(expected));
}

#[test]
fn values_of_another_trace_are_refused() {
    let mut lost = None;
    let first = WaveSchedule::trace("first", |s| lost = Some(s.get_node_by_tag("a"))).unwrap();
    assert_eq!(first.operations().len(), 1);
    let lost = lost.unwrap();
    let text = "a value of another schedule is used here";
    assert_eq!(message(|s| s.stagger(lost)), text);
    let cluster = message(|s| {
        s.cluster((lost, SetWavePriority(1)));
    });
    assert_eq!(cluster, text);
    let stage = fault(|s| {
        s.pipeline(s.get_node_by_tag("k_loop"), |p| {
            p.set_stage((lost,));
        });
    });
    assert_eq!(stage.message, text);
    assert!(stage.location.is_some_and(|at| at.line > line!() - 6));
}

#[test]
fn mistakes_are_found_without_a_kernel() {
    type Mistake = fn(&ScheduleTracer);
    let cases: &[(&str, Mistake)] = &[
        ("the prologue of a pipeline is neither a loop nor a node", |s| s.stagger(pipelined(s).prologue())),
        ("this pipeline has no epilogue", |s| {
            s.insert_at_end(pipelined(s).epilogue(), Control::WorkgroupBarrier);
        }),
        ("no read or write is in register space", |s| {
            s.partition_by_address_space(nodes(s), Register);
        }),
        ("a list cannot be divided into 0", |s| {
            let [] = s.partition_by_dim(nodes(s), Symbol::new("K"));
        }),
        ("a list cannot be divided into 4294967295", |s| {
            s.partition_by_dim_into(nodes(s), Symbol::new("K"), usize::MAX);
        }),
        ("a pipeline without stages", |s| {
            s.pipeline(nodes(s), |_| ());
        }),
        ("a stage without clusters", |s| {
            s.pipeline(nodes(s), |p| p.set_stage(()));
        }),
        ("an LDS buffer cannot have so many copies", |s| {
            let a = nodes(s);
            s.pipeline(nodes(s), |p| {
                p.multi_buffer_count(0);
                p.set_stage((a,));
            });
        }),
        ("a list of nodes is scheduled twice", |s| {
            let a = nodes(s);
            s.pipeline(nodes(s), |p| p.set_stage((a, (), a)));
        }),
        ("this loop is pipelined twice", |s| {
            let (a, k_loop) = (nodes(s), nodes(s));
            s.pipeline(k_loop, |p| p.set_stage((a,)));
            s.pipeline(k_loop, |p| p.set_stage((a,)));
        }),
        ("a cluster without nodes", |s| {
            s.cluster((SharedMemoryBarrier, SetWavePriority(1)));
        }),
        ("an order without clusters", |s| s.reorder_graph(nodes(s), ())),
        ("a cluster has two places in one order", |s| {
            let a = nodes(s);
            s.reorder_graph(nodes(s), (a, s.cluster(a), a));
        }),
        ("nothing to interleave with", |s| {
            s.interleave_ops((), [Interleave::of(nodes(s))]);
        }),
        ("group 0 has the interval 0", |s| {
            s.interleave_ops(nodes(s), [Interleave::of(nodes(s)).interval(0)]);
        }),
        ("group 0 starts after group 1, which does not exist", |s| {
            s.interleave_ops(nodes(s), [Interleave::of(nodes(s)).start_after_groups([1])]);
        }),
        ("group 0 never starts", |s| {
            s.interleave_ops(nodes(s), [Interleave::of(nodes(s)).start_after_groups([0])]);
        }),
        ("4 is not a priority of a wave", |s| s.insert_before(nodes(s), SetWavePriority(4))),
        ("a wait cannot leave 63 loads under way", |s| {
            s.cluster([ClusterEntry::from(WaitForLoads(63)), nodes(s).into()]);
        }),
        ("no wave's number is compared with this", |s| {
            let hardware = s.get_hardware_constraint();
            s.insert_cond_barrier_after(hardware.wave_id.less(hardware.waves_per_block / 0), nodes(s));
        }),
        ("no wave's number is compared with this", |s| {
            s.insert_cond_barrier_before(s.get_hardware_constraint().wave_id.equal(-1), nodes(s));
        }),
    ];
    for (expected, body) in cases {
        assert_eq!(message(body), *expected);
    }
    let bad = WaveSchedule::trace("two words", |_| ()).expect_err("that is no name");
    assert_eq!(bad.message, "`two words` is not a schedule's name");
}

fn nodes(s: &ScheduleTracer) -> Nodes {
    s.get_node_by_tag("a")
}

/// A loop that is pipelined without an epilogue.
fn pipelined(s: &ScheduleTracer) -> PipelinedLoop {
    let mma = s.get_node_by_tag("mma");
    s.pipeline(s.get_node_by_tag("k_loop"), |p| {
        p.eliminate_epilogue();
        p.set_stage((mma,));
    })
}
