//! Schedules in time mode: what an iteration of the large tile takes under each, and how busy ping-pong keeps
//! the matrix cores.

use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::{F16, Kernel, Schedule};
use groundswell::simulator::time::{DeviceModel, TimeOptions};
use groundswell_testing::timed::{Timed, product, shaped_gemm};

const TILE: [i64; 3] = [128, 256, 64];

/// Clk of an iteration in which the matrix cores do nothing else: 64 instructions of 16 clk by each of the
/// two waves of a SIMD.
const MATRIX_CLK: f64 = 2048.0;

/// Clk of an iteration of tiles of [`TILE`] on MI300X.
fn iteration(schedule: Schedule, result: [i64; 2]) -> f64 {
    steady(DeviceModel::MI300X, TILE, schedule, result)
}

/// Clk of an iteration in the steady state: what a workgroup takes more for K = 4096 than for 1024, by the
/// iterations that it runs more.
fn steady(device: &'static DeviceModel, tile: [i64; 3], schedule: Schedule, [m, n]: [i64; 2]) -> f64 {
    let clk = |k: i64| {
        let kernel = shaped_gemm(device, [m, n, k], tile, Waves::new(2, 4), schedule.clone());
        kernel.run(&TimeOptions::new(device).rounds(1)).expect("the GEMM runs").unit.clk as f64
    };
    (clk(4096) - clk(1024)) / ((4096 - 1024) / tile[2]) as f64
}

/// The tile that measured kernels of AMD multiply, with all compute units busy: these keep the matrix cores
/// busy for 97.8 % of a loop on gfx942 and for 99.8 % on gfx950.
#[test]
fn large_tiles_keep_the_matrix_cores_busy_on_a_full_device() {
    // An instruction takes 32 clk on gfx90a, and 16 on the others; on gfx950 it multiplies twice as many.
    for (device, matrix, least) in [
        (DeviceModel::MI210, 8192.0, 0.93),
        (DeviceModel::MI300X, 4096.0, 0.97),
        (DeviceModel::MI355X, 2048.0, 0.98),
    ] {
        let clk = steady(device, [256, 256, 64], Schedule::PingPong, [4096, 4096]);
        assert!(matrix / clk >= least, "{clk} clk instead of {matrix}");
    }
}

/// Most of the factors of so large a product come from memory. With everything, from the first wave to the
/// last result, MI300X keeps its matrix cores busy for 95 % of the rounds that 1024 workgroups take, and
/// MI355X for 93 % (docs/schedules.md).
#[test]
fn the_largest_products_are_bound_by_matrix_cores_or_memory() {
    for (device, schedule, matrix, steady, whole) in [
        (DeviceModel::MI300X, Schedule::Quadrants, 4096.0, 0.99, 0.95),
        (DeviceModel::MI355X, Schedule::PingPong, 2048.0, 0.98, 0.92),
    ] {
        let (edge, tile) = (8192, [256, 256, 64]);
        let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).output(F16).kernel().expect("a valid kernel");
        let timed = product(device, &kernel, [[edge; 3], tile], schedule, &[edge * edge * 2; 3]);
        let report = timed.run(&TimeOptions::new(device)).expect("the product runs");
        let trip = report.main_loop.as_ref().expect("it has a loop").clk_per_iteration;
        assert!(matrix / trip >= steady, "{}: {trip} clk instead of {matrix}", device.name);
        let (rounds, clk) = (report.estimate.rounds.ceil(), report.estimate.clk);
        let part = matrix * (edge / tile[2]) as f64 * rounds / clk;
        assert!(part >= whole, "{}: {clk} clk, {part:.3} of the matrix cores", device.name);
    }
}

/// 128 workgroups, so that not all compute units load at once.
#[test]
fn ping_pong_keeps_the_matrix_cores_busy() {
    let [none, prefetch, ping_pong] = [Schedule::None, Schedule::Prefetch, Schedule::PingPong]
        .map(|schedule| iteration(schedule, [2048, 2048]));
    assert!(none >= prefetch && prefetch > ping_pong, "{none}, {prefetch} and {ping_pong} clk");
    assert!(MATRIX_CLK / ping_pong >= 0.9, "{ping_pong} clk instead of {MATRIX_CLK}");
}

/// All compute units load 48 KiB per iteration at once. L2 has 30 bytes per clk for each, so that takes 1638
/// clk, and the LDS writes of ping-pong wait for their loads: the order of the schedules stays, and how busy
/// the matrix cores are is L2's matter.
#[test]
fn ping_pong_is_the_fastest_on_a_full_device() {
    let [none, prefetch, ping_pong] = [Schedule::None, Schedule::Prefetch, Schedule::PingPong]
        .map(|schedule| iteration(schedule, [4096, 4096]));
    assert!(none >= prefetch && prefetch > ping_pong, "{none}, {prefetch} and {ping_pong} clk");
}

/// A trip of small tiles is about as long as a load takes, which is enough where loads have a whole one. At
/// the sustained clock, and with L2's rate for lines that compute units share, the smallest ones gain little.
#[test]
fn small_tiles_gain_by_taking_turns() {
    // Prefetching of the smaller ones takes 857 clk since sums begin as zeros after the first loads. It took
    // 884 before; turns take 832 both times.
    for (tile, [m, n], most) in [([128, 128, 32], [2048, 2432], 0.8), ([64, 64, 64], [1024, 1216], 0.98)] {
        let [prefetch, ping_pong] = [Schedule::Prefetch, Schedule::PingPong]
            .map(|schedule| steady(DeviceModel::MI300X, tile, schedule, [m, n]));
        assert!(ping_pong < most * prefetch, "{tile:?}: {ping_pong} and {prefetch} clk");
    }
}

/// A product of 4-bit floats whose scales lie as eight of a row, those of 256 of K, and then those of the
/// next row.
const MXFP4: &str = include_str!("../data/preshuffled_mxfp4.gsw");

/// A SIMD takes 32 clk for an instruction of 32 x 32 x 64 with scales, and each of its two waves has 32.
#[test]
fn products_of_4_bit_floats_keep_the_matrix_cores_busy() {
    let text = MXFP4.replace("WAVES_M", "4").replace("WAVES_N", "2");
    let kernel = Kernel::parse(&text, "mxfp4.gsw").expect("well-formed");
    let device = DeviceModel::MI355X;
    for edge in [512, 4096] {
        let clk = |k: i64| {
            let buffers = [edge * k / 2, edge * k / 2, edge * k / 32, edge * k / 32, edge * edge * 4];
            let sizes = [[edge, edge, k], [256; 3]];
            let timed = product(device, &kernel, sizes, Schedule::PingPong, &buffers);
            timed.run(&TimeOptions::new(device).rounds(1)).expect("the product runs").unit.clk as f64
        };
        let iteration = (clk(8192) - clk(2048)) / 24.0;
        assert!(2048.0 / iteration >= 0.92, "{edge}: {iteration} clk instead of 2048");
    }
}

/// Where memory lies depends on what a process has allocated before, and in which order.
#[test]
fn a_launch_takes_as_long_wherever_its_memory_lies() {
    let (device, shape) = (DeviceModel::MI300X, [1024, 1024, 512]);
    let mut timed = shaped_gemm(device, shape, [128, 128, 64], Waves::new(2, 2), Schedule::Prefetch);
    let [m, n, k] = shape.map(|size: i64| size as u64);
    let clk = |timed: &Timed| {
        let report = timed.run(&TimeOptions::new(device)).expect("the product runs");
        (report.unit.clk, report.estimate.clk)
    };
    let first = clk(&timed);
    for (between, order) in [(1, [0, 1, 2]), (70_001, [2, 0, 1]), (0x13_5700, [1, 2, 0])] {
        let mut addresses = [0; 3];
        for buffer in order {
            timed.simulator.alloc(between).expect("a little");
            let bytes = [m * k * 2, n * k * 2, m * n * 4][buffer];
            addresses[buffer] = timed.simulator.alloc(bytes).expect("another buffer");
        }
        timed.kernarg = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        assert_eq!(clk(&timed), first, "{between} bytes between buffers in the order {order:?}");
    }
}
