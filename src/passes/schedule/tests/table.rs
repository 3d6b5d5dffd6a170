//! Tables written, edited and read back.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::ir::diagnostic::Kind;
use crate::ir::schedule::table::ScheduleTable;
use crate::kernels::{Gemm, Waves};
use crate::passes::workspace::Verify;
use crate::prelude::*;
use crate::runtime::compile::compile_uncached;
use crate::runtime::schedule_view::{ScheduleView, schedule_of};

fn gemm() -> Kernel {
    Gemm::any_shape().waves(Waves::new(1, 1)).kernel().unwrap()
}

fn options(k: Option<i64>) -> Options {
    let mut options = Options::new(Target::GFX942);
    for (name, value) in [("M", 64), ("N", 64), ("BLOCK_M", 32), ("BLOCK_N", 32), ("BLOCK_K", 32)] {
        options = options.set(Symbol::new(name), value);
    }
    match k {
        Some(k) => options.set(Symbol::new("K"), k),
        None => options.dynamic(Symbol::new("K")),
    }
}

fn text(schedule: Schedule) -> String {
    schedule_of(&gemm(), &options(Some(256)).schedule(schedule), ScheduleView::Table).unwrap()
}

fn parsed(text: &str) -> ScheduleTable {
    ScheduleTable::parse(text, "gemm.table").unwrap_or_else(|faults| panic!("{faults:?}\n{text}"))
}

fn compiled(options: &Options) -> Result<Executable, Diagnostic> {
    compile_uncached(&gemm(), options, Verify::AfterEachPass)
}

/// The text with another cycle for a node.
fn moved(text: &str, node: &str, cycle: &str) -> String {
    let mut found = false;
    let lines = text.lines().map(|line| {
        let cells: Vec<&str> = line.split('|').collect();
        match cells.first().is_some_and(|cell| cell.trim() == node) && cells.len() == 7 {
            true => {
                found = true;
                format!("{}|{cycle}|{}\n", cells[0], cells[2..].join("|"))
            }
            false => format!("{line}\n"),
        }
    });
    let lines: String = lines.collect();
    assert!(found, "no row {node} in\n{text}");
    lines
}

/// The fault of compiling with a table.
fn fault(text: &str) -> String {
    compiled(&options(Some(256)).schedule_table(&parsed(text))).unwrap_err().to_string()
}

/// The faults of reading it.
fn unread(text: &str) -> String {
    let faults = ScheduleTable::parse(text, "gemm.table").unwrap_err();
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[test]
fn what_is_written_reads_back_to_the_same_code() {
    for schedule in [Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
        for k in [Some(256), Some(200), None] {
            let options = options(k);
            let asked = options.clone().schedule(schedule.clone());
            let table = schedule_of(&gemm(), &asked, ScheduleView::Table).unwrap();
            let loaded = options.clone().schedule_table(&parsed(&table));
            let (first, second) = (compiled(&asked).unwrap(), compiled(&loaded).unwrap());
            assert_eq!(first.report().schedule_applied, schedule.name());
            assert_eq!(second.report().schedule_applied, "table", "{}", second.report().schedule_why);
            assert_eq!(first.code(), second.code(), "{schedule:?} {k:?}\n{table}");
            let again = schedule_of(&gemm(), &loaded, ScheduleView::Table).unwrap();
            let name = format!("requested: {}\n", schedule.name());
            assert_eq!(again, table.replace(&name, "requested: table\n"));
        }
    }
}

#[test]
fn the_pipeline_of_an_authors_schedule_is_a_table_with_its_buffers() {
    let schedule = WaveSchedule::trace("deep", |s| {
        let k_loop = s.get_node_by_tag("k_loop");
        let part = |tag: &str| {
            let reads = s.get_node_by_tag_and_type(tag, NodeType::Read);
            let (global, shared) = s.partition_by_address_space(reads, Global);
            (global, shared, s.get_node_by_tag_and_type(tag, NodeType::Write))
        };
        let (load_a, read_a, write_a) = part("read_a");
        let (load_b, read_b, write_b) = part("read_b");
        let mma = s.get_node_by_tag("mma");
        s.pipeline(k_loop, |p| {
            p.multi_buffer_count(3);
            p.set_stage(((load_a, load_b), (write_a, write_b)));
            p.set_stage(((read_a, read_b), mma));
        });
    })
    .unwrap();
    let manual = options(Some(256)).wave_schedule(&schedule);
    let table = schedule_of(&gemm(), &manual, ScheduleView::Table).unwrap();
    assert!(table.contains("buffers: 3\n"), "{table}");
    let loaded = options(Some(256)).schedule_table(&parsed(&table));
    let (first, second) = (compiled(&manual).unwrap(), compiled(&loaded).unwrap());
    assert_eq!(first.code(), second.code());
    assert_eq!(first.report().lds_bytes, second.report().lds_bytes);
}

#[test]
fn only_nodes_and_cycles_decide() {
    let table = text(Schedule::Modulo);
    let mut short = String::new();
    for line in table.lines() {
        let cells: Vec<&str> = line.split('|').collect();
        match cells.len() {
            7 => short.push_str(&format!("{}|{}\n", cells[0], cells[1])),
            1 if line.contains("stages") || line.contains("requested") => {}
            1 => short.push_str(&format!("{line}\n")),
            _ => {}
        }
    }
    assert!(short.len() < table.len() / 2);
    let [first, second] =
        [table, short].map(|text| compiled(&options(Some(256)).schedule_table(&parsed(&text))).unwrap());
    assert_eq!(first.code(), second.code());
}

#[test]
fn an_edited_cycle_changes_the_code() {
    let table = text(Schedule::Prefetch);
    // The loads of b between the LDS writes of a and of b.
    let edited = moved(&moved(&table, "read_global.2.0.0", "1"), "write_shared.4.0.0", "1");
    let [first, second] =
        [table, edited].map(|text| compiled(&options(Some(256)).schedule_table(&parsed(&text))).unwrap());
    assert_ne!(first.code(), second.code());
    assert_eq!(first.report().main_loop.map(|m| m.mfma), second.report().main_loop.map(|m| m.mfma));
}

#[test]
fn a_broken_dependence_names_both_nodes_and_the_legal_cycle() {
    let table = moved(&text(Schedule::Prefetch), "write_shared.3.0.0", "4");
    let fault = fault(&table);
    for part in [
        "the LDS read \"read_a\" (replica 0) reads what is written by the LDS write \"read_a\" (replica 0) of the same iteration",
        "is in stage 1 slot 0 (cycle 2)",
        "is in stage 2 slot 0 (cycle 4)",
        "the first legal place is stage 2 slot 0 (cycle 4)",
        "--> gemm.table:",
    ] {
        assert!(fault.contains(part), "{part} is not in\n{fault}");
    }
}

#[test]
fn tables_that_claim_a_machine_keep_its_delays_and_units() {
    let table = text(Schedule::Modulo);
    assert!(table.contains("checks: machine\n") && table.contains("model: gfx942\n"), "{table}");
    // Loads keep the path to global memory busy all the time, so none can start a cycle earlier.
    let row = |line: &&str| line.trim_start().starts_with("read_global.");
    let cell = |line: &str, at: usize| line.split('|').nth(at).unwrap().trim().to_owned();
    let loads = table.lines().filter(row).map(|line| (cell(line, 1).parse::<u32>().unwrap(), cell(line, 0)));
    let (cycle, last) = loads.max().unwrap();
    let message = fault(&moved(&table, &last, &(cycle - 1).to_string()));
    assert!(message.contains("2 units `global` are used in cycle"), "{message}");
    assert!(message.contains("of the interval, and gfx942 has 1") && message.contains(&last), "{message}");
    assert!(message.contains("cycle") && message.contains("has a free one"), "{message}");
    // By order alone a read's user may start in the same cycle as the read; with delays it may not.
    let read = table.lines().find(|line| line.trim_start().starts_with("read_global.1.0.0")).unwrap();
    let cycle = read.split('|').nth(1).unwrap().trim().to_owned();
    let hasty = moved(&table, "write_shared.3.0.0", &cycle);
    let message = fault(&hasty);
    assert!(message.contains("is over: that begins in cycle"), "{message}");
    assert!(
        message.contains("the LDS write \"read_a\"") && message.contains("the global read of a"),
        "{message}"
    );
    let relaxed = hasty.replace("checks: machine", "checks: order");
    assert!(compiled(&options(Some(256)).schedule_table(&parsed(&relaxed))).is_ok());
    let other = table.replace("model: gfx942", "model: gfx950");
    assert!(fault(&other).contains("the table is for gfx950, and this is compiled for gfx942"));
}

#[test]
fn rows_must_be_those_of_the_loop() {
    let table = text(Schedule::Prefetch);
    let without: String =
        table.lines().filter(|line| !line.contains("  mma.7.1.0 ")).map(|line| format!("{line}\n")).collect();
    assert_ne!(without, table);
    let message = fault(&without);
    assert!(message.contains("(mma.7.1.0) has no cycle") && message.contains("matrix product"), "{message}");
    let strange = format!("{table}  mma.7.99.0 | 3\n");
    let message = fault(&strange);
    assert!(message.contains("loop 0 has no node mma.7.99.0"), "{message}");
    assert!(message.contains("did you mean mma.7."), "{message}");
    let twice = format!("{table}  mma.7.1.0 | 3\n");
    assert!(unread(&twice).contains("the node mma.7.1.0 stands here twice"));
    let message = fault(&table.replace("loop 0 over K", "loop 1 over K"));
    assert!(message.contains("the kernel has no loop 1"), "{message}");
    let message = fault(&table.replace("loop 0 over K", "loop 0 over M"));
    assert!(message.contains("loop 0 runs over K, not over M"), "{message}");
}

#[test]
fn mistakes_are_told_with_line_and_column() {
    for (text, said) in [
        ("", "the table has no loop\n  --> gemm.table:1:1"),
        ("loop 0 over K\n", "loop 0 has no interval\n  --> gemm.table:1:1"),
        ("loop 0 over K\ninterval: 0\n", "`0` is not an interval\n  --> gemm.table:2:11"),
        ("loop 0 over K\ninterval: 99999999999\n", "`99999999999` is not an interval"),
        ("loop x over K\n", "a loop is written `loop N over DIM`"),
        ("loop 0 over K\ninterval: 2\nloop 0 over K\n", "loop 0 has two tables"),
        ("interval: 2\n", "`interval` belongs to a loop"),
        ("loop 0 over K\nintervall: 2\n", "did you mean `interval`?"),
        ("loop 0 over K\ninterval: 2\nchecks: all\n", "`all` is not something to check"),
        ("loop 0 over K\ninterval: 2\nbuffers: 0\n", "`0` is not a number of LDS buffers"),
        ("loop 0 over K\ninterval: 2\ndrain: off\n", "`off` is not where a loop ends"),
        ("loop 0 over K\ninterval: 2\na | 1\n", "a row without a table"),
        ("a | 1\n", "a row belongs to a loop"),
        ("loop 0 over K\ninterval: 2\nnode | what\n", "nodes need a column `cycle`"),
        ("loop 0 over K\ninterval: 2\nnode | slot | cycle\nx | 1\n", "the node x has no cycle"),
        ("loop 0 over K\ninterval: 2\nnode | cycle\nä | -1\n", "`-1` is not a cycle\n  --> gemm.table:4:5"),
        ("loop 0 over K\ninterval: 2\nnode | cycle\nx | 4294967295\n", "`4294967295` is not a cycle"),
        ("what is this\n", "`what is this` is not a line of a table"),
    ] {
        let message = unread(text);
        assert!(message.contains(said), "{text:?} says\n{message}");
    }
    let many = "nonsense\n".repeat(50);
    assert_eq!(ScheduleTable::parse(&many, "t").unwrap_err().len(), 20);
}

#[test]
fn pipelines_that_are_too_long_are_refused() {
    let table = text(Schedule::Prefetch);
    // Unrolling a dynamic loop could mean unrolling all of its iterations.
    let table = moved(&table, "read_global.1.0.0", "0").replace("interval: 2", "interval: 1");
    let far: String = table
        .lines()
        .map(|line| {
            match line.trim_start().starts_with("mma.") || line.trim_start().starts_with("carried.") {
                true => format!("{}| 1000000000\n", line.split('|').next().unwrap()),
                false => format!("{line}\n"),
            }
        })
        .collect();
    let fault = compiled(&options(None).schedule_table(&parsed(&far))).unwrap_err();
    assert_eq!(fault.kind, Kind::Limit, "{fault}");
    assert!(fault.message.contains("stages of"), "{fault}");
    // This takes LDS for all the iterations between writing and reading.
    let apart = far
        .lines()
        .map(|line| match line.trim_start().starts_with("read_shared.") {
            true => format!("{}| 900\n", line.split('|').next().unwrap()),
            false => format!("{}\n", line.replace("1000000000", "1000")),
        })
        .collect::<String>();
    let fault = compiled(&options(None).schedule_table(&parsed(&apart))).unwrap_err();
    assert!(fault.message.contains("its LDS buffers would take"), "{fault}");
    // A loop that is known to be shorter stays as it was.
    let deep = text(Schedule::FourStage);
    let short = compiled(&options(Some(64)).schedule_table(&parsed(&deep))).unwrap();
    assert_eq!(short.report().schedule_applied, "none");
    assert!(short.report().schedule_why.contains("iterations"), "{}", short.report().schedule_why);
}

#[test]
fn damaged_tables_give_faults_and_no_panics() {
    let tables = [text(Schedule::Prefetch), text(Schedule::Modulo)];
    let mut rng = StdRng::seed_from_u64(5);
    let (mut read, mut applied) = (0, 0);
    for case in 0..300 {
        let lines: Vec<&str> = tables[case % 2].lines().collect();
        let mut damaged: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        for _ in 0..rng.random_range(1..3) {
            let at = rng.random_range(0..damaged.len());
            let other = damaged[rng.random_range(0..damaged.len())].clone();
            match rng.random_range(0..5) {
                0 => damaged[at] = other,
                1 => {
                    damaged.remove(at);
                }
                2 => damaged[at] = damaged[at].replace('1', "2"),
                3 => damaged[at] = damaged[at].chars().filter(|_| rng.random_bool(0.9)).collect(),
                _ => damaged[at] = damaged[at].replace(|c: char| c.is_ascii_digit(), "7"),
            }
        }
        let damaged = damaged.join("\n");
        let Ok(table) = ScheduleTable::parse(&damaged, "gemm.table") else { continue };
        read += 1;
        match compiled(&options(Some(256)).schedule_table(&table)) {
            Ok(_) => applied += 1,
            Err(fault) => assert_ne!(fault.kind, Kind::Bug, "{fault}\n{damaged}"),
        }
    }
    assert!(read > 100 && applied > 20, "{read} read, {applied} applied");
}

#[test]
fn views_of_all_schedules_are_complete() {
    for schedule in Schedule::named() {
        let name = schedule.name();
        let asked = options(Some(256)).schedule(schedule);
        let view = |view| schedule_of(&gemm(), &asked, view).unwrap();
        let (graph, dot) = (view(ScheduleView::Graph), view(ScheduleView::Dot));
        let dependences = graph.lines().filter(|line| line.contains(" latency ")).count();
        assert_eq!(dot.matches(" -> ").count(), dependences, "{name}");
        assert_eq!(dot.matches('{').count(), dot.matches('}').count());
        assert!(dot.contains("style=dashed") && graph.contains("distance 1"), "{name}");
        let page = view(ScheduleView::Timeline);
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        for outside in ["http", "<script", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{name}: {outside}");
        }
        for tag in ["table", "section", "div", "span", "tr", "td", "th", "p"] {
            let opened =
                page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{name}: {tag}");
        }
    }
}

#[test]
fn the_page_of_ping_pong_shows_the_wave_groups_side_by_side() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().unwrap();
    let mut options = Options::new(Target::GFX942).schedule(Schedule::PingPong);
    for (name, value) in
        [("M", 256), ("N", 256), ("K", 512), ("BLOCK_M", 128), ("BLOCK_N", 256), ("BLOCK_K", 64)]
    {
        options = options.set(Symbol::new(name), value);
    }
    let page = schedule_of(&kernel, &options, ScheduleView::Timeline).unwrap();
    assert!(page.contains("waves 0-3<small>ahead</small>"), "{page}");
    assert!(page.contains("waves 4-7<small>one barrier late</small>"), "{page}");
    assert!(page.contains("cluster 3, of the previous trip"), "{page}");
}
