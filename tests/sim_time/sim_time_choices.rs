//! Tiles of matrix products, whose costs on each chip stand in `src/choice/candidates.rs`: they are what time
//! mode says, and what a shape gets is close to the best of them.

use std::fs;

use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::{Executable, F16, Options, Schedule};
use groundswell::simulator::time::{DeviceModel, DeviceParameter, TimeOptions, TimeReport};
use groundswell_testing::figures;
use groundswell_testing::places::root;
use groundswell_testing::timed::launched;

/// A line of the table.
struct TimedCandidate {
    device: &'static DeviceModel,
    /// Its place in the file.
    line: usize,
    tile: [i64; 3],
    waves: Waves,
    schedule: Schedule,
    /// Workgroups of a compute unit; ends and steps of one workgroup alone and of as many as fill the chip.
    costs: [u64; 5],
}

const FILE: &str = "src/choice/candidates.rs";

fn schedule(name: &str) -> Schedule {
    match name {
        "Prefetch" => Schedule::Prefetch,
        "Interleaved" => Schedule::Interleaved,
        "Modulo" => Schedule::Modulo,
        "PingPong" => Schedule::PingPong,
        "Quadrants" => Schedule::Quadrants,
        other => panic!("{FILE} has the schedule {other}"),
    }
}

impl TimedCandidate {
    /// Reads `row([m, n, bytes of k], [waves], Schedule::Name, resident, [ends, step], [ends, step]),`.
    fn read(device: &'static DeviceModel, line: usize, text: &str) -> TimedCandidate {
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
        let numbers: Vec<u64> = numbers.collect();
        let name = text.split("Schedule::").nth(1).and_then(|rest| rest.split(',').next());
        let [m, n, k_bytes] = [0, 1, 2].map(|at| numbers[at] as i64);
        TimedCandidate {
            device,
            line,
            tile: [m, n, k_bytes / 2],
            waves: Waves::new(numbers[3] as u32, numbers[4] as u32),
            schedule: schedule(name.expect("a schedule")),
            costs: numbers[5..].try_into().expect("five costs"),
        }
    }

    fn text(&self, [resident, ends_alone, alone, ends_full, full]: [u64; 5]) -> String {
        let TimedCandidate { tile: [m, n, k], waves, schedule, .. } = self;
        let Waves { m: along_m, n: along_n } = waves;
        format!(
            "    row([{m}, {n}, {}], [{along_m}, {along_n}], Schedule::{schedule:?}, {resident}, [{ends_alone}, \
             {alone}], [{ends_full}, {full}]),",
            k * 2
        )
    }

    fn compile(&self, [m, n, k]: [i64; 3]) -> Executable {
        let kernel = Gemm::any_shape().output(F16).waves(self.waves).kernel().expect("a kernel");
        let sizes = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]
            .into_iter()
            .zip([m, n, k].into_iter().chain(self.tile));
        let options = Options::new(self.device.target).schedule(self.schedule.clone());
        let options = sizes.fold(options, |options, (name, value)| options.set(name, value));
        kernel.compile(&options).unwrap_or_else(|fault| panic!("{:?}: {fault}", self.tile))
    }

    fn time(&self, shape: [i64; 3]) -> TimeReport {
        time(self.device, &self.compile(shape), shape)
    }

    /// clk of a launch of `tiles` with sums of so many steps.
    fn clocks(&self, [rows, columns]: [i64; 2], steps: i64) -> f64 {
        let [m, n, k] = self.tile;
        self.time([m * rows, n * columns, k * steps]).estimate.clk
    }

    fn measure(&self) -> [u64; 5] {
        let line = |tiles: [i64; 2]| {
            let [few, many] = STEPS.map(|steps| self.clocks(tiles, steps));
            let step = (many - few) / (STEPS[1] - STEPS[0]) as f64;
            (few - step * STEPS[0] as f64, step, many)
        };
        let [m, n, k] = self.tile;
        let resident = i64::from(self.time([m, n, k * STEPS[0]]).workgroups_per_unit).max(1);
        let (ends_alone, alone, _) = line([1, 1]);
        let [rows, columns] = most_square(self.device.value(DeviceParameter::ComputeUnits).value as i64);
        let (mut ends, mut step, many) = line([rows * resident, columns]);
        // Short sums can be slower for each step than long ones, which share more: then the line begins as
        // that of one workgroup.
        if ends < ends_alone {
            (ends, step) = (ends_alone, (many - ends_alone) / STEPS[1] as f64);
        }
        let costs = [ends_alone, alone, ends, step / resident as f64].map(|clk| clk.round().max(0.0) as u64);
        [resident as u64, costs[0], costs[1], costs[2], costs[3]]
    }
}

/// Steps of the sums that are measured.
const STEPS: [i64; 2] = [16, 48];

/// A chip full of tiles: so many rows and columns of them.
fn most_square(units: i64) -> [i64; 2] {
    let rows = (1..=units).filter(|rows| units % rows == 0).min_by_key(|rows| (rows - units / rows).abs());
    rows.map_or([1, units], |rows| [rows, units / rows])
}

fn time(device: &'static DeviceModel, executable: &Executable, [m, n, k]: [i64; 3]) -> TimeReport {
    let grid = executable.grid(&|_| None).expect("a grid without open symbols");
    let buffers = [m * k * 2, n * k * 2, m * n * 2];
    launched(executable, device, grid, (&buffers, &[])).run(&TimeOptions::new(device)).expect("a time")
}

fn candidates() -> Vec<TimedCandidate> {
    let text = fs::read_to_string(root().join(FILE)).expect("the table is there");
    let mut device = None;
    let mut rows = Vec::new();
    for (line, text) in text.lines().enumerate() {
        if let Some(name) = text.strip_prefix("const ").and_then(|rest| rest.split(':').next()) {
            device = DeviceModel::from_name(name);
        } else if text.starts_with("    row(") {
            rows.push(TimedCandidate::read(device.expect("rows are those of a device"), line, text));
        }
    }
    rows
}

/// Costs of candidates are what time mode says: all of them where they are written, some otherwise.
#[test]
fn candidates_cost_what_time_mode_says() {
    let (rows, is_written) = (candidates(), figures::are_written("candidates"));
    assert!(rows.len() > 100, "{} candidates", rows.len());
    let path = root().join(FILE);
    let mut lines: Vec<String> =
        fs::read_to_string(&path).expect("the table is there").lines().map(str::to_owned).collect();
    // A ninth of the table has some rows of every chip.
    let asked = rows.iter().enumerate().filter(|(at, _)| is_written || at % 9 == 4);
    let mut faults = Vec::new();
    for (_, row) in asked {
        let found = row.measure();
        let is_close = |(found, noted): (u64, u64)| found.abs_diff(noted) * 20 <= noted + 200;
        if !found.into_iter().zip(row.costs).all(is_close) {
            faults.push(format!("{}, {:?}: {:?} are {found:?}", row.device.name, row.tile, row.costs));
        }
        lines[row.line] = row.text(found);
    }
    if is_written {
        fs::write(path, lines.join("\n") + "\n").expect("the table can be written");
        return;
    }
    let how = "GROUNDSWELL_FIGURES=candidates cargo test --release --workspace --test sim_time candidates";
    assert!(faults.is_empty(), "{}\n{how} writes the table anew", faults.join("\n"));
}

/// Of some shapes the chosen candidate takes at most a quarter longer than the best one, and 5 % in the mean.
#[test]
fn choices_are_close_to_the_best_candidate() {
    const SHAPES: [[i64; 3]; 3] = [[1024, 1024, 1024], [64, 4096, 2048], [700, 900, 1100]];
    const DEVICES: [&DeviceModel; 3] = [DeviceModel::MI210, DeviceModel::MI300X, DeviceModel::MI355X];
    let candidates = candidates();
    let mut regrets = Vec::new();
    for (device, shape) in DEVICES.into_iter().flat_map(|device| SHAPES.map(|shape| (device, shape))) {
        let [m, n, k] = shape;
        let chosen = Gemm::new(m, n, k).output(F16).compile(device.target).expect("a choice");
        let chosen = time(device, &chosen, shape).estimate.clk;
        let of_device = candidates.iter().filter(|one| one.device.name == device.name);
        let best = of_device.map(|one| one.time(shape).estimate.clk).fold(f64::INFINITY, f64::min);
        eprintln!("{} {shape:?}: {chosen} clk, the best one {best}", device.name);
        regrets.push(chosen / best);
    }
    let mean = regrets.iter().map(|regret| regret.ln()).sum::<f64>() / regrets.len() as f64;
    assert!(mean.exp() < 1.05 && regrets.iter().all(|&regret| regret < 1.25), "{regrets:?}");
}
