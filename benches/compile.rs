//! Compile times: whole, per phase, cached, and how they grow with the number of expanded nodes.
//!
//! The names of the GEMM benchmarks hold tile, waves, whether sizes are dynamic, and the number of expanded
//! nodes. `growth` doubles the nodes from row to row: the time per node must not rise.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use groundswell::cache::Cache;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::internals::facts::ExpandedCount;
use groundswell::internals::with_workspace;
use groundswell::kernels::{Gemm, Waves, copy};
use groundswell::prelude::*;

/// Workgroup tile and waves.
type Tile = ([i64; 3], [u32; 2]);

const TILES: [Tile; 4] =
    [([64, 64, 32], [2, 2]), ([128, 128, 32], [2, 2]), ([128, 256, 64], [4, 2]), ([256, 256, 64], [4, 2])];

/// About 70, 140, 280, 560 expanded nodes.
const GROWTH: [Tile; 4] =
    [([64, 128, 32], [2, 2]), ([128, 128, 32], [2, 2]), ([128, 256, 32], [2, 2]), ([256, 256, 32], [2, 2])];

/// The schedules that are measured.
const SCHEDULES: [Schedule; 4] = [Schedule::None, Schedule::Prefetch, Schedule::Modulo, Schedule::PingPong];

/// What is known of the sizes at compile time.
#[derive(Copy, Clone, PartialEq)]
enum Sizes {
    Static,
    Dynamic,
}

fn gemm((tile, waves): Tile, sizes: Sizes) -> (Kernel, Options) {
    let kernel = Gemm::any_shape().waves(Waves::new(waves[0], waves[1])).kernel().expect("a valid kernel");
    let mut options = Options::new(Target::GFX942);
    for (name, value) in ["BLOCK_M", "BLOCK_N", "BLOCK_K"].into_iter().zip(tile) {
        options = options.set(Symbol::new(name), value);
    }
    for name in ["M", "N", "K"] {
        let symbol = Symbol::new(name);
        options = if sizes == Sizes::Dynamic { options.dynamic(symbol) } else { options.set(symbol, 4096) };
    }
    (kernel, options)
}

fn copy_kernel() -> (Kernel, Options) {
    let kernel = copy(F32, Waves::new(2, 2)).expect("a valid kernel");
    let values = [("M", 4096), ("N", 4096), ("BLOCK_M", 64), ("BLOCK_N", 64)];
    let set = |options: Options, (name, value): (&str, i64)| options.set(Symbol::new(name), value);
    (kernel, values.into_iter().fold(Options::new(Target::GFX942), set))
}

fn cold(kernel: &Kernel, options: &Options) -> Executable {
    compile_uncached(kernel, options, Verify::Off).expect("compiles")
}

fn name((tile, waves): Tile, sizes: Sizes, nodes: u32) -> String {
    let [m, n, k] = tile;
    let kind = if sizes == Sizes::Dynamic { " dynamic" } else { "" };
    format!("gemm {m}x{n}x{k} {}x{} waves{kind}, {nodes} nodes", waves[0], waves[1])
}

fn whole(c: &mut Criterion) {
    let mut group = c.benchmark_group("cold");
    let (kernel, options) = copy_kernel();
    let nodes = cold(&kernel, &options).report().expanded_nodes;
    group.bench_function(format!("copy, {nodes} nodes"), |b| b.iter(|| cold(&kernel, black_box(&options))));
    for sizes in [Sizes::Static, Sizes::Dynamic] {
        for tile in TILES {
            let (kernel, options) = gemm(tile, sizes);
            let nodes = cold(&kernel, &options).report().expanded_nodes;
            group.bench_function(name(tile, sizes, nodes), |b| b.iter(|| cold(&kernel, black_box(&options))));
        }
    }
    group.finish();
}

fn cached(c: &mut Criterion) {
    let mut group = c.benchmark_group("cached");
    for (what, (kernel, options)) in [("copy", copy_kernel()), ("gemm", gemm(TILES[1], Sizes::Static))] {
        kernel.compile(&options).expect("compiles");
        group.bench_function(what, |b| b.iter(|| kernel.compile(black_box(&options))));
    }
    group.finish();
}

/// A hit of the cache on disk; names hold the bytes of the object.
fn cached_on_disk(c: &mut Criterion) {
    let mut group = c.benchmark_group("cached on disk");
    let directory = std::env::temp_dir().join(format!("groundswell-bench-{}", std::process::id()));
    let cache = Cache::at(&directory).expect("it can be made");
    for (what, (kernel, options)) in [("copy", copy_kernel()), ("gemm", gemm(TILES[1], Sizes::Static))] {
        let bytes = cache.compile(&kernel, &options).expect("compiles").object().len();
        group.bench_function(format!("{what}, {bytes} bytes"), |b| {
            b.iter(|| cache.compile(&kernel, black_box(&options)))
        });
    }
    group.finish();
    std::fs::remove_dir_all(&directory).expect("it is there");
}

fn trace(c: &mut Criterion) {
    c.bench_function("trace gemm", |b| b.iter(|| Gemm::any_shape().kernel().expect("a valid kernel")));
}

fn growth(c: &mut Criterion) {
    let mut group = c.benchmark_group("growth");
    for tile in GROWTH {
        let (kernel, options) = gemm(tile, Sizes::Static);
        let nodes = cold(&kernel, &options).report().expanded_nodes;
        group.throughput(Throughput::Elements(u64::from(nodes)));
        group.bench_with_input(BenchmarkId::from_parameter(nodes), &options, |b, options| {
            b.iter(|| cold(&kernel, options));
        });
    }
    group.finish();
}

/// A chain of additions of 64x64 tiles for four waves, 16 instructions each, from text to code object.
fn growth_of_chains(c: &mut Criterion) {
    let mut group = c.benchmark_group("growth of chains");
    group.sample_size(10);
    for length in [1_250u64, 2_500, 5_000, 10_000] {
        let mut text =
            "kernel chain {\n  workgroup M, 64, 0\n  workgroup N, 64, 1\n  wave M, 32\n  wave N, 32\n  \
                        a = memory [M, N] global f32\n  c = memory [M, N] global f32\n  %v0 = read a\n"
                .to_owned();
        for at in 0..length {
            text += &format!("  %v{} = add %v{at}, %v0\n", at + 1);
        }
        text += &format!("  write %v{length}, c\n}}\n");
        let options = Options::new(Target::GFX942).set(Symbol::new("M"), 512).set(Symbol::new("N"), 512);
        group.throughput(Throughput::Elements(length));
        group.bench_with_input(BenchmarkId::from_parameter(length), &text, |b, text| {
            b.iter(|| cold(&Kernel::parse(text, "chain.gsw").expect("a valid kernel"), &options));
        });
    }
    group.finish();
}

/// The four schedules of one tile of 8 waves, at the sizes at which the time model is asked for them.
fn schedules(c: &mut Criterion) {
    let mut group = c.benchmark_group("schedule of gemm 128x256x64");
    for schedule in SCHEDULES {
        let (kernel, options) = gemm(([128, 256, 64], [2, 4]), Sizes::Static);
        let options = options.schedule(schedule.clone());
        group.bench_function(format!("{schedule:?}"), |b| b.iter(|| cold(&kernel, black_box(&options))));
    }
    group.finish();
}

/// The pass that schedules, alone, for tiles of 8 waves with about 400, 800, 1,600, 3,200 and 4,000 expanded
/// nodes. Only a chip with more LDS than 64 KiB holds them.
fn growth_of_scheduling(c: &mut Criterion) {
    const TILES: [[i64; 3]; 5] =
        [[256, 512, 32], [512, 512, 32], [1024, 512, 32], [1024, 1024, 32], [1152, 1152, 32]];
    const PASS: &str = "schedule_loops";
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a valid kernel");
    for schedule in [Schedule::Prefetch, Schedule::PingPong] {
        let mut group = c.benchmark_group(format!("growth of scheduling {schedule:?}"));
        for tile in TILES {
            let mut options = Options::new(Target::GFX950).schedule(schedule.clone());
            for ((size, block), extent) in
                [("M", "BLOCK_M"), ("N", "BLOCK_N"), ("K", "BLOCK_K")].into_iter().zip(tile)
            {
                options = options.set(Symbol::new(block), extent).set(Symbol::new(size), 8 * extent);
            }
            let run = || {
                with_workspace(|workspace| {
                    let mut times = Vec::with_capacity(32);
                    workspace.load(&kernel, &options);
                    workspace.run(Some(PASS), Verify::Off, &mut times).expect("schedules");
                    let nodes = workspace.world.get::<ExpandedCount>(workspace.root).map_or(0, |c| c.0);
                    let pass = times.into_iter().filter(|time| time.0 == PASS);
                    (nodes, pass.map(|time| time.1).sum::<Duration>())
                })
            };
            let nodes = run().0;
            group.throughput(Throughput::Elements(u64::from(nodes)));
            group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
                b.iter_custom(|iterations| (0..iterations).map(|_| run().1).sum::<Duration>());
            });
        }
        group.finish();
    }
}

/// What line information in the object costs.
fn lines(c: &mut Criterion) {
    let mut group = c.benchmark_group("lines");
    let (kernel, options) = gemm(TILES[3], Sizes::Dynamic);
    for (name, debug) in [("with", DebugInfo::Lines), ("without", DebugInfo::None)] {
        let options = options.clone().debug_info(debug);
        let report = cold(&kernel, &options).report().clone();
        let at = report.phases.iter().position(|phase| phase.0 == "object").expect("it is written last");
        group.bench_function(format!("{name}, {} instructions", report.instructions), |b| {
            b.iter_custom(|iterations| {
                (0..iterations).map(|_| cold(&kernel, &options).report().phases[at].1).sum::<Duration>()
            });
        });
    }
    group.finish();
}

fn phases(c: &mut Criterion) {
    let mut group = c.benchmark_group("phase of gemm 128x128x32");
    let (kernel, options) = gemm(TILES[1], Sizes::Static);
    let names: Vec<&str> = cold(&kernel, &options).report().phases.iter().map(|p| p.0).collect();
    for (at, phase) in names.into_iter().enumerate() {
        group.bench_function(phase, |b| {
            b.iter_custom(|iterations| {
                (0..iterations).map(|_| cold(&kernel, &options).report().phases[at].1).sum::<Duration>()
            });
        });
    }
    group.finish();
}

criterion_group!(
    benches,
    whole,
    cached,
    cached_on_disk,
    trace,
    growth,
    growth_of_chains,
    schedules,
    growth_of_scheduling,
    lines,
    phases
);
criterion_main!(benches);
