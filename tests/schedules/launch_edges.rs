//! The clk of a launch in time mode beside its loops: before the first matrix instruction, after the last
//! one, and where workgroups take tiles in an order that shares little.

use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::{DType, F16, F32, Schedule};
use groundswell::simulator::time::{DeviceModel, TimeOptions, TimeReport};
use groundswell_testing::timed::product;

/// A product in tiles of 256 x 256 x 64.
fn timed(device: &'static DeviceModel, schedule: Schedule, output: DType, shape: [i64; 3]) -> TimeReport {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).output(output).kernel().expect("a valid kernel");
    let [m, n, k] = shape;
    let buffers = [m * k * 2, n * k * 2, m * n * i64::from(output.bytes())];
    let product = product(device, &kernel, [shape, [256, 256, 64]], schedule, &buffers);
    product.run(&TimeOptions::new(device).rounds(1)).expect("the product runs")
}

/// A workgroup waits for its first tile alone, and for its arguments once the offsets of lanes are there.
/// Sums begin as zeros after the first loads. It rounds results while others are stored. The figures are
/// the clk that a launch of six trips took beside its matrix instructions without that, and the most that it
/// takes now.
#[test]
fn ends_of_workgroups_are_short() {
    for (device, schedule, output, matrix, before, now) in [
        (DeviceModel::MI355X, Schedule::PingPong, F16, 2048, 15798, 14_000),
        (DeviceModel::MI355X, Schedule::Quadrants, F16, 2048, 16886, 15_400),
        (DeviceModel::MI355X, Schedule::PingPong, F32, 2048, 23014, 22_100),
        (DeviceModel::MI300X, Schedule::Quadrants, F16, 4096, 17297, 15_500),
    ] {
        let report = timed(device, schedule.clone(), output, [4096, 4096, 384]);
        let ends = report.unit.clk - 6 * matrix;
        assert!(ends <= now, "{} {schedule:?} {output}: {ends} clk, {before} before", device.name);
    }
}

/// 31 x 31 tiles, of which the hardware's order gives each die all rows: 2316 clk a trip.
#[test]
fn odd_grids_share_what_dies_read() {
    let report = timed(DeviceModel::MI355X, Schedule::PingPong, F16, [31 * 256, 31 * 256, 1024]);
    let trip = report.main_loop.as_ref().expect("it has a loop").clk_per_iteration;
    assert!(trip <= 2090.0, "{trip} clk");
}
