//! Prints the tables of docs/time-model.md: what time mode estimates for this crate's GEMM and for a copy, as
//! Markdown.
//!
//! `cargo run --release --example time_model`

use groundswell::kernels::Waves;
use groundswell::prelude::Schedule;
use groundswell::simulator::time::{ClockChoice, DeviceModel, TimeOptions, TimeReport};
use timed::{copy, scheduled_gemm};

#[path = "../tests/common/timed.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod timed;

/// Sizes of square matrices that publications list.
const EDGES: [i64; 4] = [1024, 2048, 4096, 8192];

/// Tiles of a workgroup (M, N, K), waves along M and N, and how they are scheduled.
const KERNELS: [([i64; 3], [u32; 2], Schedule); 6] = [
    ([128, 128, 64], [2, 2], Schedule::None),
    ([256, 128, 64], [2, 2], Schedule::None),
    ([256, 256, 64], [2, 2], Schedule::None),
    ([128, 256, 64], [2, 4], Schedule::Prefetch),
    ([128, 256, 64], [2, 4], Schedule::PingPong),
    ([256, 256, 64], [2, 4], Schedule::PingPong),
];

/// Devices with matrix cores for 16 bits that publications compare.
const DEVICES: [&DeviceModel; 2] = [DeviceModel::MI300X, DeviceModel::MI355X];

/// The clock that estimates are judged at, and the one of the data sheet.
const CLOCKS: [ClockChoice; 2] = [ClockChoice::Sustained, ClockChoice::Greatest];

fn main() {
    println!(
        "| device | M = N = K | tile | schedule | MHz | us | us with launch | TFLOP/s | matrix cores busy |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for device in DEVICES {
        for edge in EDGES {
            for (block, [m, n], schedule) in KERNELS {
                let kernel = scheduled_gemm(device, edge, block, Waves::new(m, n), schedule.clone());
                for clock in CLOCKS {
                    let report = kernel.run(&TimeOptions::new(device).clock(clock));
                    print_gemm(edge, block, &schedule, &report.expect("the GEMM runs"));
                }
            }
        }
    }
    println!();
    println!("| device | MiB copied | MHz | us | TB/s |");
    println!("|---|---|---|---|---|");
    for device in [DeviceModel::MI210, DeviceModel::MI300X] {
        for workgroups in [16_384, 65_536] {
            for clock in CLOCKS {
                let report = copy(device, workgroups).run(&TimeOptions::new(device).clock(clock));
                let report = report.expect("the copy runs");
                let (e, mebibytes) = (&report.estimate, workgroups / 256);
                println!(
                    "| {} | {mebibytes} | {:.0} | {:.1} | {:.2} |",
                    device.name, report.clock.megahertz, e.microseconds, e.bandwidth
                );
            }
        }
    }
}

fn print_gemm(edge: i64, [m, n, k]: [i64; 3], schedule: &Schedule, report: &TimeReport) {
    let e = &report.estimate;
    let operations = 2.0 * (edge as f64).powi(3);
    let with_launch = operations / e.microseconds_with_launch / 1e6;
    let matrix = report.pipes.iter().find(|p| p.name == "matrix").map_or(0.0, |p| 100.0 * p.utilisation);
    println!(
        "| {} | {edge} | {m}x{n}x{k} | {} | {:.0} | {:.1} | {:.1} | {with_launch:.0} | {matrix:.0}% |",
        report.device,
        schedule.name(),
        report.clock.megahertz,
        e.microseconds,
        e.microseconds_with_launch
    );
}
