//! Latent decoding.

use groundswell::kernels::LatentDecode;
use groundswell::prelude::*;
use groundswell::simulator::time::{DeviceModel, TimeOptions};
use groundswell_testing::exact_case::{of_numbers, zeros};
use groundswell_testing::judged::verified;

use super::cases::{Argument, Numbers, Pages, assert_log_near, assert_near, attention, bound, launched};

/// Heads, new tokens, latent and rotated elements, tokens of a page, lengths, parts.
type Shape = (usize, usize, [usize; 2], usize, &'static [usize], u32);

const SHAPES: [Shape; 20] = [
    (16, 1, [512, 64], 1, &[1], 1),
    (16, 1, [512, 64], 64, &[33, 0], 2),
    (32, 1, [512, 64], 64, &[65], 2),
    (128, 1, [512, 64], 1, &[17], 1),
    (64, 1, [512, 64], 64, &[21], 1),
    (16, 2, [512, 64], 1, &[2, 1], 1),
    (1, 1, [512, 64], 16, &[40], 3),
    (5, 3, [512, 64], 64, &[20], 1),
    (16, 1, [64, 64], 1, &[100, 15, 16], 2),
    (32, 1, [128, 64], 64, &[64, 63], 2),
    (20, 1, [256, 64], 16, &[16, 48], 1),
    (64, 1, [128, 64], 1, &[90], 4),
    (16, 4, [128, 64], 64, &[3, 70, 0], 2),
    (128, 1, [64, 64], 64, &[129], 2),
    (96, 1, [64, 64], 16, &[31], 1),
    (7, 1, [192, 64], 7, &[50, 1], 2),
    (16, 1, [320, 64], 16, &[18], 1),
    (2, 9, [64, 64], 3, &[30, 8], 2),
    (48, 1, [256, 64], 1, &[32], 5),
    (16, 1, [448, 64], 64, &[65, 2], 2),
];

#[derive(Copy, Clone)]
struct Run {
    target: Target,
    inputs: DType,
    cache: DType,
    fixed: Option<u32>,
    is_open: bool,
    seed: Option<u64>,
}

fn judge(run: Run, (heads, new, [latent, rotated], page, lengths, parts): Shape) {
    let Run { target, inputs, cache: stored, fixed, is_open, seed } = run;
    let row = latent + rotated;
    let title = format!(
        "{heads} x {new} x {row}, pages of {page}, {lengths:?} in {parts}, {inputs} {stored} on {target}"
    );
    let mut numbers = Numbers(heads as u64 * 31 + row as u64);
    let pages = Pages::new(lengths, page, &mut numbers);
    let batch = lengths.len();
    let q: Vec<f64> = (0..batch * new * heads * row).map(|_| numbers.part()).collect();
    let cache = pages.cache(row, f64::NAN, || numbers.part());
    // What one of a narrow cache stands for: small, so that integers hold all numbers.
    let of_one = match stored {
        F16 | Bf16 => 1.0,
        I8 => 0.125,
        _ => 0.5,
    };
    let decode = LatentDecode::new(heads as u32).row(latent as u32, rotated as u32).page(page as u32);
    let decode = decode.inputs(inputs).cache(stored).scale(0.125).log_sum_exp();
    let decode = fixed.map_or(decode, |keys| decode.deterministic(keys));
    let longest = *lengths.iter().max().expect("some");
    let parts = if fixed.is_some() { decode.parts(1, longest as u64, 1) } else { parts } as usize;
    let options = decode.options(target, new as u32).set("PARTS", parts as u32);
    let (options, open) = bound(options, &pages.sizes(), is_open);
    let [table, of_lengths] = pages.tables();
    let kernel = verified(&decode.kernel().expect("a kernel"), &options);
    let results = [vec![batch, 1, parts, new * heads, latent], vec![batch, 1, parts, new * heads]];
    let results = [&results[0], &results[1], &results[1]].map(|shape| zeros(F32, shape));
    let memories = [
        of_numbers(inputs, &[batch, new, heads, row], &q),
        of_numbers(
            stored,
            &[pages.pages, page, 1, row],
            &cache.iter().map(|x| x / of_one).collect::<Vec<_>>(),
        ),
        table,
        of_lengths.clone(),
    ];
    let scale = match stored {
        F16 | Bf16 => None,
        I8 => Some(of_numbers(F32, &[1], &[of_one]).into()),
        _ => Some(Argument::Scalar(of_one as f32)),
    };
    let results = results.into_iter().map(Argument::from);
    let arguments: Vec<Argument> =
        memories.into_iter().map(Argument::from).chain(scale).chain(results).collect();
    let after = launched(&title, &kernel, &arguments, &open, seed);
    let mut arguments: Vec<Argument> = after[after.len() - 3..].iter().cloned().map(Argument::from).collect();
    if fixed.is_some() {
        arguments.push(of_lengths.into());
    }
    arguments.push(zeros(inputs, &[batch, new, heads, latent]).into());
    arguments.push(zeros(F32, &[batch, new, heads]).into());
    let combine = verified(&decode.combine().expect("a kernel"), &options);
    let open: Vec<_> = open.into_iter().filter(|size| size.0 == "B").collect();
    let after = launched(&title, &combine, &arguments, &open, seed);
    let [out, log] = [2, 1].map(|back| after[after.len() - back].to_f64());
    for (b, &length) in lengths.iter().enumerate() {
        for token in 0..new {
            let seen = (length + token + 1).saturating_sub(new);
            let rows: Vec<&[f64]> = (0..seen).map(|n| &cache[pages.place(b, n) * row..][..row]).collect();
            let rows: Vec<(&[f64], &[f64])> = rows.iter().map(|row| (*row, &row[..latent])).collect();
            for head in 0..heads {
                let at = (b * new + token) * heads + head;
                let expected = attention(&q[at * row..][..row], 0.125, &rows, latent);
                let title = format!("{title}: sequence {b}, token {token}, head {head}");
                assert_near(&title, &out[at * latent..][..latent], &expected, inputs);
                assert_log_near(&title, log[at], &expected);
            }
        }
    }
}

#[test]
fn latent_decoding_gives_what_plain_loops_give() {
    for (number, shape) in SHAPES.into_iter().enumerate() {
        let target = [Target::GFX942, Target::GFX950, Target::GFX90A][number % 3];
        let inputs = [Bf16, Bf16, F16][number % 3];
        let fixed = (number % 4 == 1).then_some(32);
        let seed = (number % 7 == 1).then_some(number as u64);
        judge(Run { target, inputs, cache: inputs, fixed, is_open: number % 2 == 1, seed }, shape);
    }
}

#[test]
fn narrow_latent_caches_give_what_plain_loops_give() {
    for (number, shape) in SHAPES.into_iter().enumerate() {
        let (target, narrow) = match number % 4 {
            0 => (Target::GFX942, F8E4M3Fnuz),
            1 => (Target::GFX950, F8E4M3Fn),
            2 => (Target::GFX942, F8E5M2Fnuz),
            _ => (Target::GFX950, F8E5M2),
        };
        let inputs = [F16, Bf16][number / 4 % 2];
        for (cache, is_open) in [(narrow, number % 3 == 1), (I8, number % 3 == 0)] {
            judge(Run { target, inputs, cache, fixed: None, is_open, seed: None }, shape);
        }
    }
}

#[test]
fn check_mode_finds_nothing_in_any_order() {
    for seed in 0..5 {
        let seed = Some(seed);
        let run =
            Run { target: Target::GFX942, inputs: Bf16, cache: Bf16, fixed: None, is_open: false, seed };
        judge(run, SHAPES[9]);
    }
}

#[test]
fn one_sequence_keeps_most_compute_units_busy() {
    let decode = LatentDecode::new(32);
    assert_eq!(decode.parts(1, 8192, 304), 256);
    assert_eq!(decode.parts(1, 21, 304), 1);
    // 1152 workgroups for twice 608 places, where four parts would leave every sixth place empty.
    assert_eq!(decode.parts(128, 16384, 304), 9);
    assert_eq!(decode.parts(128, 4096, 304), 4);
    assert_eq!(decode.parts(128, 16384, 256), 4);
    assert_eq!(decode.deterministic(256).parts(1, 8192, 304), 32);
}

/// A row comes from memory once, in loads of 16 bytes: eight of the latent part and one of the rotated part
/// for each lane, beside one of the page table.
#[test]
fn rows_are_loaded_once_and_wide() {
    for target in [Target::GFX90A, Target::GFX942, Target::GFX950] {
        for schedule in [Schedule::None, Schedule::Prefetch] {
            let decode = LatentDecode::new(32).page(64);
            let options = decode.options(target, 1).set("PARTS", 4).set("B", 16).schedule(schedule);
            let options = options.set("PAGES", 1024).set("MAX_PAGES", 64).deny(Deny::UnsharedReads);
            let executable = verified(&decode.kernel().expect("a kernel"), &options);
            let report = executable.report();
            let rows = |of: &str| report.split_accesses.iter().any(|split| split.what.contains(of));
            assert!(!rows("latent") && !rows("rotated"), "{target}: {report}");
            assert_eq!(report.main_loop.as_ref().map(|mix| mix.global_load), Some(10), "{target}: {report}");
            assert!(report.lds_bytes < 20 << 10, "{target}: {report}");
        }
    }
}

/// In time mode long sequences are read at a large share of the rate of a kernel that only reads: 3.96 TB per
/// second on MI300X and 6.35 on MI355X, as `docs/attention.md` has it.
#[test]
fn long_sequences_are_read_at_the_speed_of_memory() {
    const BATCH: u32 = 128;
    const KEYS: u32 = 4096;
    for (device, rate, share) in [(DeviceModel::MI300X, 3.96, 0.70), (DeviceModel::MI355X, 6.35, 0.66)] {
        let decode = LatentDecode::new(32).page(64);
        let pages = BATCH * KEYS / 64;
        let options = decode.options(device.target, 1).set("PARTS", 4).set("B", BATCH);
        let options = options.set("PAGES", pages).set("MAX_PAGES", KEYS / 64).schedule(Schedule::Automatic);
        let executable = decode.kernel().expect("a kernel").compile(&options).expect("it compiles");
        let simulator = Device::simulator(device.target);
        let mut numbers = Numbers(7);
        let mut table: Vec<i32> = (0..pages as i32).collect();
        for at in (1..table.len()).rev() {
            table.swap(at, (numbers.next() % (at as u64 + 1)) as usize);
        }
        let [cache_bytes, rows] = [u64::from(pages) * 64 * 576 * 2, u64::from(BATCH) * 4 * 32];
        let room = |bytes: u64| simulator.allocate(bytes).expect("it fits");
        let buffers = [
            room(u64::from(BATCH) * 32 * 576 * 2),
            room(cache_bytes),
            simulator.upload(&table).expect("it fits"),
            simulator.upload(&vec![KEYS as i32; BATCH as usize]).expect("it fits"),
            room(rows * 512 * 4),
            room(rows * 4),
            room(rows * 4),
        ];
        let launch = simulator.launch(&executable);
        let launch = buffers.iter().fold(launch, |launch, buffer| launch.buffer(buffer));
        let report = launch.time(&TimeOptions::new(device)).expect("it runs");
        let found = cache_bytes as f64 / report.estimate.microseconds * 1e-6;
        assert!(found >= share * rate, "{}: {found} TB/s", device.target);
    }
}
