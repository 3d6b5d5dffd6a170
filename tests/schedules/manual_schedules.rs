//! Authors' schedules against the compiler's own: the same machine code where they say the same, and code as
//! tight as it has to be. What each operation does, and what is said about mistakes, stands in
//! `files/schedules` and `files/schedule_loops`.

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::compile::listing;
use groundswell::compile::{ScheduleView, schedule_of};
use groundswell::internals::schedules::{
    Cut, Roles, schedule as ping_pong_schedule, schedule_of_early_loads,
};
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell::text::parse_file;
use groundswell_testing::judged::verified;
use groundswell_testing::loops::{emitted, loops};

/// The page on schedules.
const PAGE: &str = include_str!("../../docs/schedules.md");

/// The schedule that the page shows as text.
fn documented() -> WaveSchedule {
    let start = PAGE.find("schedule prefetch {").expect("the page shows a schedule");
    let (text, _) = PAGE[start..].split_once("```").expect("the schedule is a block");
    WaveSchedule::parse(text, "schedules.md").unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn two_pp_cluster() -> WaveSchedule {
    ping_pong_schedule(&roles(), &Cut::EVEN).expect("a schedule")
}

/// What ping-pong applies where a wave has registers for a tile on its way.
fn early_pp_cluster() -> WaveSchedule {
    schedule_of_early_loads(&roles()).expect("a schedule")
}

fn roles() -> Roles<'static> {
    Roles { k_loop: "k_loop", lhs: "read_a", rhs: "read_b", scales: None, mma: "mma", k: Symbol::new("K") }
}

/// How a kernel is compiled.
#[derive(Copy, Clone, Debug)]
struct Case {
    shape: [i64; 3],
    tile: [i64; 3],
    waves: Waves,
    dynamic: bool,
}

const LARGE: Case =
    Case { shape: [4096; 3], tile: [128, 256, 64], waves: Waves { m: 2, n: 4 }, dynamic: false };

impl Case {
    fn kernel(&self) -> Kernel {
        Gemm::any_shape().waves(self.waves).kernel().expect("a kernel")
    }

    fn options(&self) -> Options {
        let names = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]);
        let sizes = self.shape.iter().chain(&self.tile);
        names.into_iter().zip(sizes).enumerate().fold(
            Options::new(Target::GFX942),
            |options, (at, (symbol, &size))| match at {
                2 if self.dynamic => options.dynamic(symbol),
                _ => options.set(symbol, size),
            },
        )
    }

    fn with(&self, schedule: Schedule) -> Executable {
        verified(&self.kernel(), &self.options().schedule(schedule))
    }

    fn by(&self, schedule: &WaveSchedule) -> Executable {
        verified(&self.kernel(), &self.options().wave_schedule(schedule))
    }
}

const CASES: [Case; 3] = [
    LARGE,
    Case { shape: [256, 256, 128], tile: [64, 64, 32], waves: Waves { m: 2, n: 2 }, dynamic: false },
    Case { shape: [50, 70, 100], tile: [32, 32, 16], waves: Waves { m: 1, n: 1 }, dynamic: false },
];

#[test]
fn the_documented_example_is_prefetch() {
    let schedule = documented();
    for case in CASES.iter().flat_map(|&case| [case, Case { dynamic: true, ..case }]) {
        let expected = case.with(Schedule::Prefetch);
        assert_eq!(expected.report().schedule_applied, "prefetch", "{case:?}");
        let manual = case.by(&schedule);
        assert_eq!(manual.report().schedule_applied, "manual", "{case:?}");
        assert_eq!(manual.code(), expected.code(), "{case:?}");
        // The same, written down after the kernel and read back.
        let text = format!("{}\n{schedule}", case.kernel());
        let (kernel, read) = parse_file(&text, "gemm.gsw").unwrap_or_else(|faults| panic!("{faults:?}"));
        let read = read.expect("a schedule after the kernel");
        let from_text = verified(&kernel, &case.options().wave_schedule(&read));
        assert_eq!(from_text.code(), expected.code(), "{case:?}");
    }
}

#[test]
fn ping_pong_is_a_schedule_that_authors_can_write() {
    let text = early_pp_cluster().to_string();
    let read = WaveSchedule::parse(&text, "ping_pong.gsw").unwrap_or_else(|faults| panic!("{faults:?}"));
    for tile in [[128, 256, 64], [128, 128, 64], [256, 128, 64]] {
        for dynamic in [false, true] {
            let case = Case { tile, dynamic, ..LARGE };
            let expected = case.with(Schedule::PingPong);
            assert_eq!(expected.report().schedule_why, "", "{case:?}");
            assert_eq!(case.by(&read).code(), expected.code(), "{case:?}");
        }
    }
}

#[test]
fn the_large_tile_has_one_tight_loop() {
    let manual = documented();
    let two_pp = two_pp_cluster();
    for (name, executable) in [
        ("prefetch", LARGE.with(Schedule::Prefetch)),
        ("manual prefetch", LARGE.by(&manual)),
        ("ping-pong", LARGE.with(Schedule::PingPong)),
        ("manual ping-pong", LARGE.by(&two_pp)),
    ] {
        let report = executable.report();
        let mix = report.main_loop.expect("a loop");
        assert_eq!(
            (mix.mfma, mix.valu, mix.other),
            (64, 0, if name.contains("ping") { 4 } else { 0 }),
            "{name}: {mix:?}"
        );
        assert!(mix.salu <= 6, "{name}: {mix:?}");
        assert_eq!((mix.lds_read, mix.lds_write, mix.global_load), (16, 6, 6), "{name}: {mix:?}");
        assert_eq!(mix.barrier, if name.contains("ping") { 4 } else { 2 }, "{name}: {mix:?}");
        let text = listing(executable.code(), executable.target().arch).expect("it is listed");
        assert_eq!(loops(&text).len(), 1, "{name}");
        assert_eq!(report.scratch_bytes, 0, "{name}");
        assert!(report.spills.is_none(), "{name}: {:?}", report.spills);
        assert!(report.vgprs + report.agprs <= 256, "{name}: {} and {}", report.vgprs, report.agprs);
        assert!(report.lds_bytes <= 64 << 10, "{name}: {}", report.lds_bytes);
        assert!(report.lds_accesses.iter().all(|access| access.conflict_degree == 1), "{name}");
    }
}

/// Instructions that a schedule decides on.
const SCHEDULED: [(&str, &str); 7] = [
    ("buffer_load", "global load"),
    ("ds_write", "LDS write"),
    ("ds_read", "LDS read"),
    ("v_mfma", "product"),
    ("s_barrier", "barrier"),
    ("s_setprio 1", "priority 1"),
    ("s_setprio 0", "priority 0"),
];

#[test]
fn the_order_of_ping_pong_is_the_order_of_the_code() {
    let expected = [
        ("LDS read", 8),
        ("global load", 2),
        ("LDS read", 8),
        ("global load", 4),
        ("barrier", 1),
        ("priority 1", 1),
        ("product", 32),
        ("priority 0", 1),
        ("barrier", 1),
        ("LDS write", 6),
        ("barrier", 1),
        ("priority 1", 1),
        ("product", 32),
        ("priority 0", 1),
        ("barrier", 1),
    ];
    assert_eq!(emitted(&LARGE.by(&two_pp_cluster()), &SCHEDULED), expected);
    let loaded_early = [
        ("LDS read", 16),
        ("barrier", 1),
        ("priority 1", 1),
        ("product", 32),
        ("priority 0", 1),
        ("barrier", 1),
        ("LDS write", 6),
        ("global load", 6),
        ("barrier", 1),
        ("priority 1", 1),
        ("product", 32),
        ("priority 0", 1),
        ("barrier", 1),
    ];
    assert_eq!(emitted(&LARGE.with(Schedule::PingPong), &SCHEDULED), loaded_early);
}

/// Groups of a number of operations of a kind, as scheduling group barriers ask for them elsewhere.
#[test]
fn groups_of_operations_are_emitted_as_they_are_interleaved() {
    let schedule = WaveSchedule::trace("groups", |s| {
        let k_loop = s.get_node_by_tag("k_loop");
        let of = |tag| {
            let reads = s.get_node_by_tag_and_type(tag, NodeType::Read);
            let (global, shared) = s.partition_by_address_space(reads, Global);
            (global, shared, s.get_node_by_tag_and_type(tag, NodeType::Write))
        };
        let (a, b, mma) = (of("read_a"), of("read_b"), s.get_node_by_tag("mma"));
        let pipelined = s.pipeline(k_loop, |p| {
            p.set_stage([(a.0, b.0), (a.2, b.2)]);
            p.set_stage(((a.1, b.1), (mma,)));
        });
        let kernel = pipelined.kernel();
        let own = |list| s.filter_nodes(list, Some(kernel), None);
        let loads: Vec<Nodes> = [(own(a.0), 2), (own(b.0), 4)]
            .into_iter()
            .flat_map(|(list, count)| (0..count).map(move |at| (list, at)))
            .map(|(list, at)| s.getitem(list, at))
            .collect();
        let products = s.interleave_ops(own(mma), [Interleave::of(loads).start_offset(7).interval(8)]);
        let reads = s.cluster((own(a.1), own(b.1)));
        s.reorder_graph(kernel, (reads, s.cluster(products), s.cluster((own(a.2), own(b.2)))));
    });
    let code = emitted(&LARGE.by(&schedule.expect("a schedule")), &SCHEDULED);
    let barrier = ("barrier", 1);
    let groups = [("product", 8), ("global load", 1)].repeat(6);
    let expected =
        [&[barrier, ("LDS read", 16)], &groups[..], &[("product", 16), barrier, ("LDS write", 6)]].concat();
    assert_eq!(code, expected);
}

/// A kernel and tile that ping-pong does not suit, the schedule that it gets instead, and why.
fn fallback(kernel: &Kernel, case: &Case) -> (&'static str, String) {
    let executable = verified(kernel, &case.options().schedule(Schedule::PingPong));
    let report = executable.report();
    (report.schedule_applied, report.schedule_why.clone())
}

#[test]
fn ping_pong_says_why_it_does_not_suit() {
    let few = Case { tile: [64, 64, 64], waves: Waves { m: 2, n: 2 }, ..LARGE };
    let why = "a workgroup has 4 waves: ping-pong takes two for each of the four SIMDs, or four";
    assert_eq!(fallback(&few.kernel(), &few), ("prefetch", why.to_owned()));
    let thin = Case { tile: [128, 128, 16], ..LARGE };
    let why = "a tile has 1 steps along the loop's dimension, which are not two equal parts";
    assert_eq!(fallback(&thin.kernel(), &thin), ("prefetch", why.to_owned()));
    let bf16 = Gemm::any_shape().inputs(Bf16).waves(LARGE.waves).kernel().expect("a kernel");
    assert_eq!(fallback(&bf16, &LARGE), ("pingpong", String::new()));
    let small = Case { tile: [64, 64, 64], ..LARGE };
    assert_eq!(fallback(&small.kernel(), &small), ("pingpong", String::new()));
    // Sixteen bytes of a lane are two steps of i8, so a tile of 64 is one read, and half of the matrix
    // instructions; the loads are under way for a whole trip.
    let i8 = Gemm::any_shape().inputs(I8).waves(LARGE.waves).kernel().expect("a kernel");
    assert_eq!(fallback(&i8, &LARGE), ("pingpong", String::new()));
    let long = Case { tile: [128, 256, 128], ..LARGE };
    assert_eq!(fallback(&i8, &long), ("pingpong", String::new()));
    let steps = Gemm::any_shape().waves(LARGE.waves).bias().relu().kernel().expect("a kernel");
    assert_eq!(fallback(&steps, &LARGE), ("pingpong", String::new()));
}

/// No schedule makes a fault of its own of what the tiles alone are too large for.
#[test]
fn tiles_beyond_lds_are_refused_alike_under_every_schedule() {
    let large = Case { tile: [256, 256, 128], ..LARGE };
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::Modulo, Schedule::PingPong] {
        let options = large.options().schedule(schedule.clone());
        let fault =
            compile_uncached(&large.kernel(), &options, Verify::AfterEachPass).expect_err("too large");
        let text = "the tiles need 131072 bytes of LDS, and a workgroup has 65536";
        assert_eq!(fault.message, text, "{schedule:?}");
        assert!(fault.location.is_some_and(|at| &*at.file == file!()), "{schedule:?}");
    }
}

/// A product of sums: two matrix products over K in one loop.
#[test]
fn ping_pong_takes_one_product() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let body = |first: bool| {
        Kernel::trace("two", move |w| {
            w.distribute([workgroup(m, 128, 0), workgroup(n, 128, 1), tile(k, 64), wave(m, 64), wave(n, 32)]);
            w.mma_type(Mma::F32_16x16x16_F16);
            let a = w.memory("a", [m, k], if first { Shared } else { Global }, F16);
            let b = w.memory("b", [n, k], Shared, F16);
            let c = w.memory("c", [m, n], Global, F32);
            let zero = w.register([m, n], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| {
                let (a, b) = (w.read(a), w.read(b));
                let sum = w.mma(a, b, sum);
                [if first { w.mma(a, b, sum) } else { sum }]
            });
            w.write(sum, c);
        })
        .expect("a kernel")
    };
    let why = "the loop has more than one matrix product";
    assert_eq!(fallback(&body(true), &LARGE), ("prefetch", why.to_owned()));
    let why = "the left factor of the product is not loaded through LDS";
    assert_eq!(fallback(&body(false), &LARGE), ("prefetch", why.to_owned()));
}

/// A loop that an author leaves to a strategy has that strategy's code.
#[test]
fn a_strategy_by_its_name_is_that_strategy() {
    for schedule in Schedule::named() {
        let named = WaveSchedule::trace("named", |s| {
            s.schedule_loop(s.get_node_by_tag("k_loop"), schedule.name());
        });
        let named = named.expect("the schedule has no mistakes");
        let plain = |options: Options| options.global_to_shared(GlobalToShared::Off);
        let kernel = LARGE.kernel();
        let by_name = verified(&kernel, &plain(LARGE.options().wave_schedule(&named)));
        let alone = verified(&kernel, &plain(LARGE.options().schedule(schedule.clone())));
        assert_eq!(by_name.code(), alone.code(), "{schedule:?}");
        let [by_name, alone] = [&by_name, &alone].map(|executable| executable.report().schedule_applied);
        assert_eq!(by_name, alone, "{schedule:?}");
    }
}

/// What `--emit operations` writes is the schedule itself: the block gives the same code as the strategy.
#[test]
fn what_strategies_write_can_be_taken_over() {
    let mut written = 0;
    for (tile, waves) in [([128, 256, 64], Waves { m: 2, n: 4 }), ([128, 128, 32], Waves { m: 2, n: 2 })] {
        let case = Case { tile, waves, ..LARGE };
        for schedule in Schedule::named().filter(|schedule| *schedule != Schedule::None) {
            let kernel = case.kernel();
            let plain = |options: Options| options.global_to_shared(GlobalToShared::Off);
            let options = plain(case.options().schedule(schedule.clone()));
            let text = schedule_of(&kernel, &options, ScheduleView::Operations).expect("a schedule");
            assert!(!text.contains('@'), "the kernel has all tags:\n{text}");
            let read = WaveSchedule::parse(&text, "written.gsw").unwrap_or_else(|e| panic!("{e:?}\n{text}"));
            assert_eq!(WaveSchedule::parse(&read.to_string(), "again.gsw").expect("it reads"), read);
            let by_text = verified(&kernel, &plain(case.options().wave_schedule(&read)));
            assert_eq!(by_text.code(), verified(&kernel, &options).code(), "{schedule:?}:\n{text}");
            written += u32::from(!text.contains("schedule_loop"));
        }
    }
    assert!(written >= 4, "{written} of them in operations");
}

/// A text kernel with the tags that the comments of a block ask for.
fn with_tags_of(kernel: &str, block: &str) -> String {
    let mut lines: Vec<String> = kernel.lines().map(str::to_owned).collect();
    for comment in block.lines().filter_map(|line| line.strip_prefix(";   @")) {
        let (tag, operations) = comment.split_once(": ").expect("a tag and what has to get it");
        for place in operations.split(", ").filter_map(|operation| operation.split_once(":")) {
            let line: usize = place.1.split(':').next().and_then(|line| line.parse().ok()).expect("a line");
            let tagged = format!(" @{tag}");
            let line = &mut lines[line - 1];
            if !line.ends_with(&tagged) {
                let end = line.find(" {").unwrap_or(line.len());
                line.insert_str(end, &tagged);
            }
        }
    }
    lines.join("\n")
}

/// A loop without products, and without tags for what it does.
const SUMS_OF_SQUARES: &str = "kernel sums_of_squares {
  workgroup N, 64, 0
  tile M, 32
  wave N, 64
  a = memory [M, N] global f32
  sums = memory [N] global f32
  %zero = register [N] f32 0.0
  %sum = iterate M (%before = %zero) @rows {
    %x = read a
    %square = mul %x, %x
    %part = reduce_sum %square over M
    %next = add %before, %part
    yield %next
  }
  write %sum, sums
}
";

/// Stages that the compiler found are those that an author can set, whatever the loop does.
#[test]
fn stages_of_any_loop_can_be_taken_over() {
    let gemm = include_str!("../../examples/gemm.gsw").replace(" @read_a", "").replace(" @mma", "");
    let attention = include_str!("../../examples/attention.gsw").to_owned();
    // The author's tags are words that the block would take itself.
    let same_words = SUMS_OF_SQUARES
        .replace("%x, %x", "%x, %x @load")
        .replace("%part\n    yield", "%part @loop\n    yield");
    assert_eq!(same_words.matches(" @").count(), 3, "{same_words}");
    let kernels = [
        (gemm, "M=1024,N=1024,K=1024,BLOCK_M=128,BLOCK_N=256,BLOCK_K=64,WAVES_M=2,WAVES_N=4"),
        (SUMS_OF_SQUARES.to_owned(), "M=256,N=128"),
        (same_words, "M=256,N=128"),
        (attention, "H=2,M=256,N=256,D=64"),
    ];
    for (text, values) in &kernels {
        let options = values.split(',').fold(Options::new(Target::GFX942), |options, set| {
            let (symbol, value) = set.split_once('=').expect("a symbol and its value");
            options.set(Symbol::new(symbol), value.parse::<i64>().expect("a number"))
        });
        let options = options.global_to_shared(GlobalToShared::Off);
        let kernel = Kernel::parse(text, "kernel.gsw").expect("it reads");
        for schedule in [Schedule::Prefetch, Schedule::FourStage] {
            let by_strategy = options.clone().schedule(schedule.clone());
            let block = schedule_of(&kernel, &by_strategy, ScheduleView::Operations).expect("a schedule");
            let tagged = Kernel::parse(&with_tags_of(text, &block), "tagged.gsw").expect("it reads");
            let read = WaveSchedule::parse(&block, "block.gsw").unwrap_or_else(|e| panic!("{e:?}\n{block}"));
            let by_block = verified(&tagged, &options.clone().wave_schedule(&read));
            assert_eq!(by_block.code(), verified(&kernel, &by_strategy).code(), "{schedule:?}:\n{block}");
            assert!(block.contains("set_stage"), "{block}");
        }
    }
}

/// Operations without tags of their own get new ones, of which the comments say what they are for.
#[test]
fn tags_that_a_written_schedule_needs_are_told() {
    let text = include_str!("../../examples/gemm.gsw");
    let bare = text.replace(" @read_a", "").replace(" @mma", " @read_b");
    let sizes = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K", "WAVES_M", "WAVES_N"];
    let values = [1024, 1024, 1024, 128, 256, 64, 2, 4];
    let options = symbols(sizes)
        .into_iter()
        .zip(values)
        .fold(Options::new(Target::GFX942), |options, (symbol, value)| options.set(symbol, value));
    let kernel = Kernel::parse(&bare, "bare.gsw").expect("the example reads");
    let pingpong = options.clone().schedule(Schedule::PingPong);
    let written = schedule_of(&kernel, &pingpong, ScheduleView::Operations).expect("a schedule");
    let comments: Vec<&str> = written.lines().filter(|line| line.starts_with(';')).collect();
    let tile = |memory: &str, tag: &str, line: u32| {
        let parts = ["the LDS read", "the LDS write", memory];
        parts.map(|what| format!("{what}{tag} at bare.gsw:{line}:5")).join(", ")
    };
    let expected = [
        "; loop 0 over K: pingpong".to_owned(),
        format!(";   @lhs: {}", tile("the global read of a", "", 24)),
        format!(";   @rhs: {}", tile("the global read of b", " \"read_b\"", 25)),
        ";   @mma: the matrix product \"read_b\" at bare.gsw:26:5".to_owned(),
    ];
    assert_eq!(comments, expected);
}

/// A strategy that knows one iteration leaves loops alone whose trips have several.
#[test]
fn an_unrolled_loop_gets_no_schedule_of_one_iteration() {
    for name in ["pingpong", "quadrants", "interleaved", "auto"] {
        let schedule = WaveSchedule::trace("unrolled", |s| {
            let k_loop = s.get_node_by_tag("k_loop");
            s.unroll(k_loop, 2);
            s.schedule_loop(k_loop, name);
        });
        let executable = LARGE.by(&schedule.expect("the schedule has no mistakes"));
        let report = executable.report();
        let (applied, why) = (report.schedule_applied, &report.schedule_why);
        assert!(!["pingpong", "quadrants", "interleaved"].contains(&applied), "{name}: {applied} {why}");
        // `auto` has other candidates and need not say why these are none.
        assert!(name == "auto" || why.contains("2 iterations: it is unrolled already"), "{name}: {why}");
    }
}
