//! `groundswell bench`: compile times, cold and cached, per phase, and how they grow with the expanded nodes;
//! and what the first compilation of a process costs beyond later ones.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use groundswell::compile::SEARCHED_SCHEDULES;
use groundswell::internals::schedules::{NONE, PING_PONG, Strategy};
use groundswell::internals::summary::duration;
use groundswell::prelude::*;
use serde_json::{Value, json};

use super::arguments::{Bench, KernelArguments};
use super::failure::Failure;
use super::job::{Job, Times, median};
use super::json;
use super::outcome::VerbOutcome;
use super::standard_input;
use super::terminal::{Style, paint, progress};

/// What is measured when no kernel is named: kernel, tile of M, N, K, waves, and schedule.
const DEFAULTS: &[(&str, [i64; 3], [i64; 2], &Strategy)] = &[
    ("copy", [0; 3], [0; 2], &NONE),
    ("gemm", [64, 64, 32], [2, 2], &NONE),
    ("gemm", [128, 128, 32], [2, 2], &NONE),
    ("gemm", [128, 256, 64], [2, 4], &NONE),
    ("gemm", [256, 256, 64], [2, 4], &NONE),
    ("gemm", [128, 256, 64], [2, 4], &PING_PONG),
];

/// Least number of cold compilations.
const COMPILES: usize = 25;

/// Lookups in the cache, in groups: a single one is shorter than a clock can measure.
const LOOKUPS: (usize, u32) = (25, 100);

struct BenchRow {
    title: String,
    nodes: u32,
    instructions: u32,
    times: Times,
    cached: Duration,
}

/// The first compilation of this process, which is the first of what is measured first. It makes what later
/// ones find ready: the pooled world with the systems of its passes, the memory of the machine passes, tables
/// that are built for opcodes when they occur, and the pages of the program itself.
struct FirstCompilation<'a> {
    kernel: &'a str,
    time: Duration,
    /// Beyond the median of the later ones.
    more: Duration,
}

impl FirstCompilation<'_> {
    fn of(row: &BenchRow) -> FirstCompilation<'_> {
        let (first, later) = (row.times.first, row.times.total);
        FirstCompilation { kernel: &row.title, time: first, more: first.saturating_sub(later) }
    }

    fn line(&self) -> String {
        let (time, more) = (duration(self.time), duration(self.more));
        format!("\nfirst compile in this process ({}): {time}, {more} more than later ones\n", self.kernel)
    }

    fn to_json(&self) -> Value {
        json!({
            "kernel": self.kernel,
            "compile_us": json::microseconds(self.time),
            "more_than_later_us": json::microseconds(self.more),
        })
    }
}

/// The verb.
pub fn bench(arguments: &Bench) -> Result<VerbOutcome, Failure> {
    let jobs: Vec<(String, KernelArguments)> = match &arguments.kernels[..] {
        [] => DEFAULTS.iter().map(|(name, tile, waves, by)| default_job(name, *tile, *waves, by)).collect(),
        names => names.iter().map(|name| named_job(name, arguments)).collect(),
    };
    let bar = progress("measuring");
    let mut rows = Vec::new();
    for (title, mut job) in jobs {
        bar.set_message(title.clone());
        job.set.extend(arguments.set.iter().cloned());
        job.target = vec![arguments.target.clone()];
        rows.push(measure(title, &Job::new(&job)?)?);
    }
    bar.finish_and_clear();
    let first = rows.first().map(FirstCompilation::of);
    let mut text = table(&rows);
    let mut report = json!({ "target": arguments.target, "benches": to_json(&rows) });
    if let Some(first) = first {
        text += &first.line();
        report["first_compile"] = first.to_json();
    }
    Ok(VerbOutcome::done(text, report))
}

fn default_job(
    name: &str,
    tile: [i64; 3],
    waves: [i64; 2],
    schedule: &'static Strategy,
) -> (String, KernelArguments) {
    let mut job = KernelArguments { schedule, ..plain(name) };
    let named = |dims: &[&str], values: &[i64]| -> Vec<(String, i64)> {
        dims.iter().zip(values).map(|(dim, &value)| (dim.to_string(), value)).collect()
    };
    if tile != [0; 3] {
        job.tile = named(&["M", "N", "K"], &tile);
        job.waves = named(&["M", "N"], &waves);
    }
    (title(&job), job)
}

/// A kernel that is named, spread and scheduled as the arguments say.
fn named_job(name: &str, arguments: &Bench) -> (String, KernelArguments) {
    let job = KernelArguments {
        tile: arguments.tile.clone(),
        waves: arguments.waves.clone(),
        schedule: arguments.schedule,
        ..plain(name)
    };
    (title(&job), job)
}

/// The kernel with its tile and schedule, as `gemm 128x128x32 modulo`.
fn title(job: &KernelArguments) -> String {
    let tile: Vec<String> = job.tile.iter().map(|(_, size)| size.to_string()).collect();
    let tile = tile.join("x");
    let schedule = if job.schedule.name == NONE.name { "" } else { job.schedule.name };
    let parts = [standard_input::title(&job.kernel), &tile, schedule];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn plain(kernel: &str) -> KernelArguments {
    KernelArguments {
        kernel: kernel.to_string(),
        set: Vec::new(),
        tile: Vec::new(),
        waves: Vec::new(),
        dynamic: Vec::new(),
        mma: None,
        dtype: None,
        out_dtype: None,
        target: vec![Target::USUAL.name.to_string()],
        schedule: &NONE,
        search_candidates: SEARCHED_SCHEDULES,
        pingpong: false,
        global_to_shared: None,
        fast_math: false,
        always_rescale: false,
        visit_masked: false,
        emulate: None,
        bounds_check: false,
        deny: Vec::new(),
        schedule_file: None,
        folder: PathBuf::new(),
    }
}

fn measure(title: String, job: &Job) -> Result<BenchRow, Failure> {
    let (executable, times) = job.compile(COMPILES)?;
    job.kernel.compile(&job.options)?;
    let (groups, each) = LOOKUPS;
    let mut lookups = Vec::new();
    for _ in 0..groups {
        let start = Instant::now();
        for _ in 0..each {
            std::hint::black_box(job.kernel.compile(std::hint::black_box(&job.options))?);
        }
        lookups.push(start.elapsed() / each);
    }
    let report = executable.report();
    Ok(BenchRow {
        title,
        nodes: report.expanded_nodes,
        instructions: report.instructions,
        times,
        cached: median(lookups),
    })
}

/// Nodes and time as multiples of those of the row before.
fn growth(rows: &[BenchRow], at: usize) -> Option<(f64, f64)> {
    let before = rows.get(at.checked_sub(1)?)?;
    let row = rows.get(at)?;
    let time = row.times.total.as_secs_f64() / before.times.total.as_secs_f64().max(1e-9);
    Some((f64::from(row.nodes) / f64::from(before.nodes.max(1)), time))
}

fn to_json(rows: &[BenchRow]) -> Vec<Value> {
    rows.iter()
        .enumerate()
        .map(|(at, row)| {
            let growth = growth(rows, at).map(|(nodes, time)| json!({ "nodes": nodes, "time": time }));
            json!({
                "kernel": row.title,
                "expanded_nodes": row.nodes,
                "instructions": row.instructions,
                "compile_us": json::microseconds(row.times.total),
                "cached_us": json::microseconds(row.cached),
                "phases_us": json::phases(&row.times.phases),
                "growth": growth,
            })
        })
        .collect()
}

fn table(rows: &[BenchRow]) -> String {
    let mut out = String::new();
    let width = rows.iter().map(|r| r.title.chars().count()).max().unwrap_or(0).max(6);
    let head = format!(
        "{:width$} {:>7} {:>7} {:>10} {:>9} {:>9}  {}",
        "kernel", "nodes", "instrs", "cold", "ns/node", "cached", "growth: nodes, time"
    );
    let _ = writeln!(out, "{}", paint(Style::Bold, &head));
    for (at, row) in rows.iter().enumerate() {
        let per_node = row.times.total.as_nanos() as f64 / f64::from(row.nodes.max(1));
        let growth = growth(rows, at).map_or(String::new(), |(n, t)| format!("x {n:.2}, x {t:.2}"));
        let line = format!(
            "{:width$} {:>7} {:>7} {:>10} {per_node:>9.0} {:>9}  {growth}",
            row.title,
            row.nodes,
            row.instructions,
            duration(row.times.total),
            duration(row.cached)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let width_of = |row: &BenchRow| row.title.chars().count().max(6);
    let titles: String = rows.iter().map(|row| format!(" {:>w$}", row.title, w = width_of(row))).collect();
    let _ = writeln!(out, "\n{}", paint(Style::Bold, &format!("{:18}{titles}", "us per phase")));
    let Some(first) = rows.first() else { return out };
    for (phase, &(name, _)) in first.times.phases.iter().enumerate() {
        let _ = write!(out, "{name:18}");
        for row in rows {
            let time = row.times.phases.get(phase).map(|p| p.1).unwrap_or_default();
            let _ = write!(out, " {:>w$.1}", json::microseconds(time), w = width_of(row));
        }
        out.push('\n');
    }
    out
}
