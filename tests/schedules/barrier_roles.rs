//! What the barriers of loops whose waves take turns are for: without one that is said to keep accesses of
//! LDS in order check mode finds a race, without one that is said to keep the pace it finds nothing, and the
//! loop takes longer.

use groundswell::internals::schedules::{BarrierRole, barriers_of};
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell::simulator::time::{DeviceModel, TimeOptions};
use groundswell::simulator::{LaunchConfig, Simulator};
use groundswell_testing::checked::Checked;
use groundswell_testing::mutants::{told_barriers, without_barrier};

const WAVES: Waves = Waves { m: 2, n: 4 };

/// A product by eight waves.
struct Product {
    sizes: Vec<(Symbol, i64)>,
    executable: Executable,
    barriers: Vec<(usize, BarrierRole)>,
}

impl Product {
    fn new(target: Target, schedule: Schedule, shape: [i64; 3], tile: [i64; 3]) -> Product {
        let names = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]);
        let sizes: Vec<_> = names.into_iter().zip(shape.into_iter().chain(tile)).collect();
        let options = Options::new(target).schedule(schedule.clone());
        let options = sizes.iter().fold(options, |options, &(symbol, size)| options.set(symbol, size));
        let kernel = Gemm::any_shape().waves(WAVES).kernel().expect("a kernel");
        let executable = kernel.compile(&options).expect("it compiles");
        assert_eq!(executable.report().schedule_applied, schedule.name());
        let told = barriers_of(&kernel, &options).expect("it compiles");
        let barriers = told_barriers(executable.object(), executable.name(), &told);
        assert!(!barriers.is_empty(), "{target}: a loop in turns");
        Product { sizes, executable, barriers }
    }

    /// Its object without a barrier.
    fn without(&self, barrier: usize) -> Vec<u8> {
        without_barrier(self.executable.object(), self.executable.name(), barrier)
    }

    fn value(&self, symbol: Symbol) -> Option<i64> {
        self.sizes.iter().find(|(own, _)| *own == symbol).map(|(_, size)| *size)
    }

    /// What check mode finds in an object with one of some seeds.
    fn finding(&self, object: &[u8]) -> Option<String> {
        let checked = Checked::executable(&self.executable, object, &|symbol| self.value(symbol));
        (0..4).find_map(|seed| match checked.check(seed) {
            Ok(report) => report.findings.first().map(|finding| finding.kind.to_string()),
            Err(error) => Some(error.to_string()),
        })
    }

    /// Clk of a trip of the loop on a device that is as busy as the launch makes it.
    fn trip(&self, device: &'static DeviceModel, object: &[u8]) -> f64 {
        let mut simulator = Simulator::new(device.target);
        let module = simulator.load(object).expect("the object loads");
        let value = |name: &str| self.value(Symbol::new(name)).expect("a size") as u64;
        let [m, n, k] = ["M", "N", "K"].map(value);
        let mut kernarg = Vec::new();
        for bytes in [m * k * 2, n * k * 2, m * n * 4] {
            let address = simulator.alloc(bytes).expect("memory is large enough");
            kernarg.extend(address.to_le_bytes());
        }
        let grid = self.executable.grid(&|symbol| self.value(symbol)).expect("bound");
        let config = LaunchConfig::new(grid, self.executable.block());
        let options = TimeOptions::new(device).rounds(1);
        let report = simulator.time(&module, self.executable.name(), config, &kernarg, &options);
        report.expect("it runs").main_loop.expect("a loop").clk_per_iteration
    }
}

/// How many barriers keep accesses in order and the pace, once check mode has confirmed it for each.
fn confirmed(target: Target, schedule: Schedule, tile: [i64; 3]) -> [usize; 2] {
    let [m, n, k] = tile;
    let product = Product::new(target, schedule, [m, n, 7 * k], tile);
    assert_eq!(product.finding(product.executable.object()), None);
    let mut counts = [0; 2];
    for &(barrier, role) in &product.barriers {
        let found = product.finding(&product.without(barrier));
        let is_race = found.as_ref().is_some_and(|found| found.contains("race"));
        match role {
            BarrierRole::Order => assert!(is_race, "{target} {tile:?}: barrier {barrier}: {found:?}"),
            BarrierRole::Pace => assert_eq!(found, None, "{target} {tile:?}: barrier {barrier}"),
        }
        counts[role as usize] += 1;
    }
    counts
}

/// With tiles of 128 rows a load brings rows that early waves write and others that late ones do, each in
/// front of reads that come late enough anyway.
#[test]
fn check_mode_agrees_about_loops_by_quadrants() {
    let large = [256, 256, 64];
    assert_eq!(confirmed(Target::GFX942, Schedule::Quadrants, large), [4, 4]);
    assert_eq!(confirmed(Target::GFX942, Schedule::Quadrants, [128, 256, 64]), [0, 8]);
    assert_eq!(confirmed(Target::GFX950, Schedule::Quadrants, large), [8, 0]);
}

#[test]
fn check_mode_agrees_about_loops_in_turns() {
    assert_eq!(confirmed(Target::GFX942, Schedule::PingPong, [256, 256, 64]), [4, 0]);
    assert_eq!(confirmed(Target::GFX942, Schedule::PingPong, [128, 256, 64]), [4, 0]);
    assert_eq!(confirmed(Target::GFX950, Schedule::PingPong, [256, 256, 64]), [4, 0]);
}

/// Both groups compute at once for a part of each trip, and wait for LDS at once for another.
#[test]
fn a_barrier_that_keeps_the_pace_is_worth_it() {
    let device = DeviceModel::MI300X;
    let sizes = [[2048, 4096, 1024], [128, 256, 64]];
    let product = Product::new(device.target, Schedule::Quadrants, sizes[0], sizes[1]);
    let all = product.trip(device, product.executable.object());
    let mut paced = 0;
    for &(barrier, role) in &product.barriers {
        if role == BarrierRole::Pace {
            let without = product.trip(device, &product.without(barrier));
            println!("barrier {barrier}: {all} clk a trip, and {without} without it");
            assert!(without >= 1.05 * all, "barrier {barrier}: {without} and {all} clk");
            paced += 1;
        }
    }
    assert_eq!(paced, 8);
}
