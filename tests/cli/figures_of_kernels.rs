//! Figures of ready kernels in docs/kernels.md and docs/time-model.md: each is what the program says. Those
//! that take time mode are computed when figures are written ([`figures`]), the others always.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::figures::{self, Row};
use crate::places::Directory;
use crate::program::json;

/// A row, and how its cells after the first one are computed.
struct Figure {
    page: &'static str,
    table: &'static str,
    first: String,
    cells: Box<dyn Fn() -> Vec<String> + Send + Sync>,
}

impl Figure {
    fn new(
        (page, table): (&'static str, &'static str),
        first: impl Into<String>,
        cells: impl Fn() -> Vec<String> + Send + Sync + 'static,
    ) -> Figure {
        Figure { page, table, first: first.into(), cells: Box::new(cells) }
    }

    fn row(&self) -> Row<'_> {
        Row { page: self.page, table: self.table, first: &self.first }
    }
}

/// The report of the program with arguments that spaces separate.
fn report(arguments: &str) -> Value {
    let words: Vec<&str> = arguments.split_whitespace().chain(["--json"]).collect();
    let (value, code) = json(&words);
    assert_eq!(code, Some(0), "{arguments}: {value}");
    value
}

/// The report of a kernel's launch in time mode.
fn timed(kernel: &str, clock: &str) -> Value {
    report(&format!("run {kernel} --time --no-check --clock {clock}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

const CLOCKS: [&str; 2] = ["sustained", "greatest"];

/// Microseconds of a launch at both clocks.
fn microseconds(kernel: &str) -> [f64; 2] {
    CLOCKS.map(|clock| number(&timed(kernel, clock)["sim"]["time"]["estimate"]["microseconds"]))
}

/// A figure at the sustained clock, and in brackets at the greatest.
fn both([sustained, greatest]: [f64; 2], digits: usize) -> String {
    format!("{sustained:.digits$} ({greatest:.digits$})")
}

/// Instructions of the main loop as they stand in a report.
fn loop_counts(kernel: &str) -> Vec<String> {
    let report = report(&format!("compile {kernel}"));
    let counts = ["mfma", "valu", "salu", "lds_read", "lds_write", "global_load"];
    counts.map(|count| report["loop"][count].to_string()).to_vec()
}

/// Main loops of products at their defaults.
fn loops() -> Vec<Figure> {
    let kernels = [
        "gemm",
        "gemm_ab",
        "gemm_atb",
        "gemm_atbt",
        "gemm_i8_scaled",
        "gemm_f8_scaled",
        "gemm_f8_blocks",
        "batched_gemm",
        "split_k_gemm",
        "grouped_gemm",
        "chained_gemm",
        "conv2d",
        "conv2d_grouped",
        "conv2d_nchw",
    ];
    let row = |kernel: &'static str| {
        Figure::new(("kernels.md", "loops"), format!("`{kernel}`"), move || loop_counts(kernel))
    };
    kernels.into_iter().map(row).collect()
}

/// Kernels that move memory: what they are run with, and how many matrices of 8192 x 8192 they move.
const MOVES: [(&str, &str, f64); 19] = [
    ("`copy`", "copy --dtype f16 -s M=8192 -s N=8192", 2.0),
    ("`transpose`", "transpose --dtype f16 -s M=8192 -s N=8192", 2.0),
    ("`permute` of 8 x 2048 x 32 x 128", "permute --dtype f16 -s D0=8 -s D1=2048 -s D2=32 -s D3=128", 2.0),
    ("`add`", "add --dtype f16 -s M=8192 -s N=8192", 3.0),
    ("`add_columns`", "add_columns --dtype f16 -s M=8192 -s N=8192", 2.0),
    ("`silu_mul`", "silu_mul --dtype f16 -s M=8192 -s N=8192", 3.0),
    ("`gelu`", "gelu --dtype f16 -s M=8192 -s N=8192", 2.0),
    ("`rope` of 8192 tokens, 64 heads", "rope --dtype f16 -s T=8192 -s HEADS=64", 2.0),
    ("`softmax`", "softmax --dtype f16 -s M=8192 -s N=8192", 2.0),
    ("`log_softmax`", "log_softmax --dtype f16 -s M=8192 -s N=8192", 2.0),
    ("`layer_norm`", "layer_norm --dtype f16 -s M=8192 -s N=8192", 2.0),
    ("`rms_norm`", "rms_norm --dtype f16 -s M=8192 -s N=8192", 2.0),
    ("`layer_norm_residual`", "layer_norm_residual --dtype f16 -s M=8192 -s N=8192", 4.0),
    ("`rms_norm_residual`", "rms_norm_residual --dtype f16 -s M=8192 -s N=8192", 4.0),
    ("`row_sum`", "row_sum --dtype f16 -s M=8192 -s N=8192", 1.0),
    ("`row_max`", "row_max --dtype f16 -s M=8192 -s N=8192", 1.0),
    ("`row_argmax`", "row_argmax --dtype f16 -s M=8192 -s N=8192", 1.0),
    ("`cumsum`", "cumsum --dtype f16 -s M=8192 -s N=8192", 2.0),
    ("`column_sum`", "column_sum --dtype f16 -s M=8192 -s N=8192", 1.0),
];

fn moves() -> Vec<Figure> {
    let row = |(first, kernel, matrices): (&str, &'static str, f64)| {
        Figure::new(("kernels.md", "moves"), first, move || {
            let [times, copies] = [kernel, MOVES[0].1].map(microseconds);
            let bound = copies.map(|copy| copy * matrices / 2.0);
            let instructions = report(&format!("compile {kernel}"))["instructions"].to_string();
            let share = format!("{:.0}%", 100.0 * bound[0] / times[0]);
            vec![both(times, 1), both(bound, 1), share, instructions]
        })
    };
    MOVES.into_iter().map(row).collect()
}

/// Clk of an iteration at the sustained clock.
fn clk_of_iteration(kernel: &str) -> String {
    format!("{:.0}", number(&timed(kernel, CLOCKS[0])["sim"]["cycles_per_iteration"]))
}

/// MXFP4 in the order of scales of `gemm_mx`, and as quantisers write them.
const SCALES_SIDE_BY_SIDE: &str = include_str!("../data/preshuffled_mxfp4.gsw");

fn scales() -> Vec<Figure> {
    let rows = SCALES_SIDE_BY_SIDE
        .replace("[K/256, M, 8]", "[M, K/32]")
        .replace("[K/256, N, 8]", "[N, K/32]")
        .replace(" at [K/32 // 8, M, K/32 % 8] as [M, K/32]", "")
        .replace(" at [K/32 // 8, N, K/32 % 8] as [N, K/32]", "");
    let tile = "-s M=4096 -s N=4096 -s K=8192 --target gfx950 --tile M=256,N=256,K=256 --waves M=4,N=2";
    let row = |(first, text): (&str, String)| {
        Figure::new(("kernels.md", "scales"), first, move || {
            let directory = Directory::new(&format!("figures_of_scales_{}", text.len()));
            let file = directory.file("mxfp4.gsw");
            std::fs::write(&file, &text).expect("a file");
            let clk = |schedule: &str| clk_of_iteration(&format!("{file} {tile} --schedule {schedule}"));
            ["prefetch", "modulo", "pingpong"].map(clk).to_vec()
        })
    };
    [
        ("`[M, K/32]`, `ScaleOrder::Rows`", rows),
        ("`[K/256, M, 8]`, `ScaleOrder::SideBySide`", SCALES_SIDE_BY_SIDE.to_owned()),
    ]
    .into_iter()
    .map(row)
    .collect()
}

/// Factors that gfx950 turns by its reads of LDS, 256 x 256 tiles.
fn turned() -> Vec<Figure> {
    let row = |(kernel, dtype, k): (&'static str, &'static str, u32)| {
        let first = format!("`{kernel}`, {dtype}, 256 x 256 x {k}");
        Figure::new(("kernels.md", "turned factors"), first, move || {
            let of = |schedule: &str| {
                let kernel = format!(
                    "{kernel} --dtype {dtype} -s M=4096 -s N=4096 -s K=4096 --target gfx950 --tile M=256,N=256,K={k} \
                     --waves M=2,N=4 --schedule {schedule}"
                );
                format!(
                    "{} ({})",
                    clk_of_iteration(&kernel),
                    report(&format!("compile {kernel}"))["loop"]["lds_write"]
                )
            };
            ["prefetch", "pingpong"].map(of).to_vec()
        })
    };
    let kernels = ["gemm_ab", "gemm_atb"].into_iter();
    kernels
        .flat_map(|kernel| [(kernel, "f16", 64), (kernel, "i8", 128), (kernel, "f8e4m3fn", 128)])
        .map(row)
        .collect()
}

/// Stores of results: tile, options, dtype of C.
fn stores() -> Vec<Figure> {
    let tiles = [
        (
            "gfx942, 128 x 128 x 32, prefetch",
            "--target gfx942 --tile M=128,N=128,K=32 --waves M=2,N=2 --schedule prefetch",
        ),
        (
            "gfx942, 256 x 256 x 64, ping-pong",
            "--target gfx942 --tile M=256,N=256,K=64 --waves M=2,N=4 --pingpong",
        ),
        (
            "gfx950, 256 x 256 x 64, ping-pong",
            "--target gfx950 --tile M=256,N=256,K=64 --waves M=2,N=4 --pingpong",
        ),
    ];
    let row = |(tile, options): (&str, &'static str), dtype: &'static str| {
        Figure::new(("kernels.md", "stores"), format!("{tile}, {dtype}"), move || {
            let kernel = format!("gemm {options} --out-dtype {dtype} -s M=4096 -s N=4096");
            let compiled = report(&format!("compile {kernel} -s K=4096"));
            let widths = compiled["stores"].as_array().expect("stores").iter();
            let widths = widths.map(|width| format!("{} of {} bytes", width["count"], width["bytes"]));
            let clk = |k| {
                format!("{:.0}", number(&timed(&format!("{kernel} -s K={k}"), CLOCKS[0])["sim"]["cycles"]))
            };
            vec![widths.collect::<Vec<String>>().join(", "), clk(64), clk(512), clk(4096)]
        })
    };
    tiles.into_iter().flat_map(|tile| ["f16", "f32"].map(|dtype| row(tile, dtype))).collect()
}

/// Tiles of products of f16 on a chip that is full of them: what holds up their loops.
fn tiles() -> Vec<Figure> {
    const TILES: [([u32; 3], [u32; 2], &str); 10] = [
        ([32, 32, 128], [2, 2], "modulo"),
        ([32, 64, 128], [2, 2], "modulo"),
        ([64, 64, 64], [2, 2], "interleaved"),
        ([64, 64, 128], [2, 2], "interleaved"),
        ([64, 128, 64], [2, 2], "interleaved"),
        ([96, 128, 64], [2, 2], "interleaved"),
        ([128, 128, 64], [2, 4], "interleaved"),
        ([128, 256, 64], [2, 4], "interleaved"),
        ([192, 256, 64], [2, 4], "pingpong"),
        ([256, 256, 64], [2, 4], "quadrants"),
    ];
    // The compute units of MI300X and MI355X as rows and columns of tiles.
    let chips = [("gfx942", [16, 19]), ("gfx950", [16, 16])];
    let row = |(target, [rows, columns]): (&'static str, [u32; 2]),
               ([m, n, k], [along_m, along_n], schedule): ([u32; 3], [u32; 2], &'static str)| {
        let first = format!("{target}, {m} x {n} x {k}, `{schedule}`");
        Figure::new(("kernels.md", "tiles"), first, move || {
            let launch = |workgroups: u32, steps: u32| {
                let (m_size, n_size, k_size) = (m * rows * workgroups, n * columns, k * steps);
                let kernel = format!(
                    "gemm --target {target} --tile M={m},N={n},K={k} --waves M={along_m},N={along_n} --schedule \
                     {schedule} --out-dtype f16 -s M={m_size} -s N={n_size} -s K={k_size}"
                );
                timed(&kernel, CLOCKS[0])["sim"].clone()
            };
            let fitting = launch(1, 16)["time"]["workgroups_per_unit"].as_u64().expect("a number") as u32;
            let [few, many] = [16, 48].map(|steps| launch(fitting, steps));
            let clk = |sim: &Value| number(&sim["cycles"]);
            let busy = |sim: &Value| number(&sim["mfma_utilisation"]) * clk(sim);
            let share = (busy(&many) - busy(&few)) / (clk(&many) - clk(&few));
            let bound = &many["time"]["main_loop"]["bound"];
            let needs = bound["needs"].as_array().expect("what a trip needs");
            let l2 = &needs.iter().find(|need| need["name"] == "L2").expect("a resource")["transfer"];
            let l2 = format!("{:.0} of {:.0}", number(&l2["asked"]), number(&l2["had"]));
            let name = bound["name"].as_str().expect("a name").to_owned();
            vec![fitting.to_string(), format!("{:.0}%", 100.0 * share), name, l2]
        })
    };
    chips.into_iter().flat_map(|chip| TILES.map(|tile| row(chip, tile))).collect()
}

/// Products beside published ones: TFLOP/s with the launch, for sizes of both factors' edges.
fn products() -> Vec<Figure> {
    let tiles = [
        ("without a schedule, tiles of 128x128x64", "--tile M=128,N=128,K=64 --waves M=2,N=2"),
        ("without a schedule, tiles of 256x128x64", "--tile M=256,N=128,K=64 --waves M=2,N=2"),
        ("without a schedule, tiles of 256x256x64", "--tile M=256,N=256,K=64 --waves M=2,N=2"),
        ("prefetch, tiles of 128x256x64", "--tile M=128,N=256,K=64 --waves M=2,N=4 --schedule prefetch"),
        ("pingpong, tiles of 128x256x64", "--tile M=128,N=256,K=64 --waves M=2,N=4 --pingpong"),
        ("pingpong, tiles of 256x256x64", "--tile M=256,N=256,K=64 --waves M=2,N=4 --pingpong"),
    ];
    let row = |target: &'static str, table: &'static str, (first, options): (&str, &'static str)| {
        Figure::new(("time-model.md", table), format!("**model**, {first}"), move || {
            let of = |edge: i64| {
                let kernel = format!("gemm --target {target} {options} -s M={edge} -s N={edge} -s K={edge}");
                let operations = 2.0 * (edge as f64).powi(3);
                let rate = |clock| {
                    let time = &timed(&kernel, clock)["sim"]["time"]["estimate"]["microseconds_with_launch"];
                    operations / number(time) / 1e6
                };
                both(CLOCKS.map(rate), 0)
            };
            [1024, 2048, 4096, 8192].map(of).into_iter().chain(["not run".to_owned()]).collect()
        })
    };
    let devices = [("gfx942", "products MI300X"), ("gfx950", "products MI355X")].into_iter();
    devices.flat_map(|(target, table)| tiles.map(|tile| row(target, table, tile))).collect()
}

/// Copies beside published ones: TB/s of 64 and 256 MiB.
fn copies() -> Vec<Figure> {
    let row = |(device, target, published): (&'static str, &'static str, &'static str)| {
        Figure::new(("time-model.md", "copies"), device, move || {
            let of = |rows: u32| {
                let kernel = format!("copy --target {target} -s M={rows} -s N=8192");
                let rate = |clock| number(&timed(&kernel, clock)["sim"]["time"]["estimate"]["bandwidth"]);
                both(CLOCKS.map(rate), 2)
            };
            vec![of(4096), of(16384), published.to_owned()]
        })
    };
    [
        ("MI100", "gfx908", "1.01 (triad) [7]"),
        ("MI210", "gfx90a", "1.25 to 1.29 (triad) [7]"),
        ("MI300X", "gfx942", "4.11 (copy) [4]"),
    ]
    .map(row)
    .into_iter()
    .collect()
}

#[test]
fn pages_have_the_instructions_of_loops() {
    let wrong = loops().iter().filter_map(|figure| figure.row().holds(&(figure.cells)()).err()).collect();
    figures::none_is_wrong(wrong);
}

/// Hours of simulated launches in minutes. Without being asked for a table this computes its first row, and
/// looks that the others are there; of products beside published ones, whose rows take longest, all are.
#[test]
fn pages_have_the_times_of_kernels() {
    let sampled = [moves(), scales(), turned(), stores(), tiles(), copies()];
    let firsts = sampled.iter().map(|table| (table[0].table, table[0].first.clone()));
    let firsts: Vec<(&str, String)> = firsts.collect();
    let is_first = |figure: &Figure| {
        firsts.iter().any(|(table, first)| *table == figure.table && *first == figure.first)
    };
    let all: Vec<Figure> = sampled.into_iter().flatten().chain(products()).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(figure) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let judged = match figures::are_written(figure.table) || is_first(figure) {
                true => figure.row().holds(&(figure.cells)()),
                false => figure.row().is_there(),
            };
            wrong.lock().expect("no test panics with it").extend(judged.err());
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    figures::none_is_wrong(wrong.into_inner().expect("no test panics with it"));
}
