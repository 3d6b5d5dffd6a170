//! Ready products of matrices against plain loops: every form, dtype of the output and way to share K.

use groundswell::kernels::{
    Form, Gemm, StreamK, Waves, block_scaled_gemm, chained_gemm, find, grouped_gemm, split_k, split_k_atomic,
    stream_k,
};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, made, number, of_numbers, small, zeros};

/// M, N and K: aligned, ragged, single and odd.
const SHAPES: [[usize; 3]; 20] = [
    [1, 1, 1],
    [32, 32, 32],
    [64, 64, 64],
    [33, 50, 40],
    [17, 70, 96],
    [1, 64, 100],
    [64, 1, 33],
    [5, 5, 5],
    [16, 48, 128],
    [100, 31, 7],
    [31, 33, 31],
    [65, 65, 65],
    [2, 130, 20],
    [128, 32, 16],
    [40, 40, 200],
    [3, 3, 300],
    [63, 64, 65],
    [80, 16, 48],
    [1, 1, 77],
    [70, 90, 1],
];

const TILE: [(&str, usize); 3] = [("BLOCK_M", 32), ("BLOCK_N", 32), ("BLOCK_K", 32)];

fn symbols_of(shape: [usize; 3]) -> Vec<(&'static str, i64)> {
    let sizes = ["M", "N", "K"].into_iter().zip(shape).chain(TILE);
    sizes.map(|(name, size)| (name, size as i64)).collect()
}

fn open(at: usize, dims: &[&'static str]) -> Vec<&'static str> {
    match at % 3 {
        0 => Vec::new(),
        1 => dims.to_vec(),
        _ => dims[..1].to_vec(),
    }
}

#[test]
fn every_form_equals_a_loop() {
    let forms = [Form::ABt, Form::AB, Form::AtB, Form::AtBt];
    for (at, [m, n, k]) in SHAPES.into_iter().enumerate() {
        for (of_form, form) in forms.into_iter().enumerate() {
            let dtype = [F16, Bf16, F32, I8, F64][(at + of_form) % 5];
            let sums = match dtype {
                I8 => I32,
                F64 => F64,
                _ => F32,
            };
            let (a_turned, b_turned) =
                (matches!(form, Form::AtB | Form::AtBt), matches!(form, Form::AB | Form::AtB));
            let of_a = |i: usize, l: usize| small(if a_turned { l * m + i } else { i * k + l });
            let of_b = |j: usize, l: usize| small(3 + if b_turned { l * n + j } else { j * k + l });
            let sum = |i: usize, j: usize| (0..k).map(|l| of_a(i, l) * of_b(j, l)).sum();
            let a_shape = if a_turned { [k, m] } else { [m, k] };
            let b_shape = if b_turned { [k, n] } else { [n, k] };
            let inputs = vec![
                made(dtype, &a_shape, small),
                made(dtype, &b_shape, |at| small(3 + at)),
                zeros(sums, &[m, n]),
            ];
            Case {
                name: format!("{form:?} {m}x{n}x{k} {dtype}"),
                kernel: Gemm::any_shape().inputs(dtype).form(form).kernel().expect("well-formed"),
                sizes: symbols_of([m, n, k]),
                dynamic: open(at, &["M", "N", "K"]),
                schedule: [Schedule::None, Schedule::Prefetch, Schedule::Modulo][at % 3].clone(),
                inputs,
                expected: (0..m * n).map(|at| sum(at / n, at % n)).collect(),
            }
            .check();
        }
    }
}

#[test]
fn outputs_of_every_dtype_equal_a_loop() {
    for (at, [m, n, k]) in SHAPES.into_iter().enumerate() {
        let all = [
            (F16, F16),
            (F16, I8),
            (Bf16, Bf16),
            (F32, F16),
            (F16, I32),
            (I8, I32),
            (I8, I8),
            (I8, F16),
            (I8, F32),
            (F64, F64),
            (F64, F32),
            (F64, I32),
            (F64, I8),
        ];
        for (inputs, output) in [0, 3, 7, 10].map(|turn| all[(at + turn) % all.len()]) {
            let sum =
                |i: usize, j: usize| -> f64 { (0..k).map(|l| small(i * k + l) * small(3 + j * k + l)).sum() };
            let clamp = |x: f64| match output {
                I8 => x.clamp(-128.0, 127.0),
                // Eight bits of bf16: to even.
                Bf16 => bf16::from_f64(x).to_f64(),
                _ => x,
            };
            Case {
                name: format!("{inputs} to {output} {m}x{n}x{k}"),
                kernel: Gemm::any_shape().inputs(inputs).output(output).kernel().expect("well-formed"),
                sizes: symbols_of([m, n, k]),
                dynamic: open(at, &["M", "N", "K"]),
                schedule: Schedule::None,
                inputs: vec![
                    made(inputs, &[m, k], small),
                    made(inputs, &[n, k], |at| small(3 + at)),
                    zeros(output, &[m, n]),
                ],
                expected: (0..m * n).map(|at| clamp(sum(at / n, at % n))).collect(),
            }
            .check();
        }
    }
}

/// Sums of i8 with a scale and a bias for each column. The output is not the last memory, so the machine code
/// is compared with the interpreter, and the interpreter with the loop.
#[test]
fn scaled_sums_of_integers_equal_a_loop() {
    for (at, [m, n, k]) in SHAPES.into_iter().enumerate() {
        for output in [I8, if at % 2 == 0 { F32 } else { F16 }] {
            let kernel = Gemm::any_shape()
                .inputs(I8)
                .channel_scales()
                .bias()
                .output(output)
                .kernel()
                .expect("well-formed");
            let sum =
                |i: usize, j: usize| -> f64 { (0..k).map(|l| small(i * k + l) * small(3 + j * k + l)).sum() };
            let (scale, bias) = (|j: usize| 2f64.powi((j % 4) as i32 - 2), |j: usize| number(j + 1));
            let converted = |x: f64| match output {
                I8 => x.round_ties_even().clamp(-128.0, 127.0),
                _ => x,
            };
            let expected: Vec<f64> =
                (0..m * n).map(|at| converted(sum(at / n, at % n) * scale(at % n) + bias(at % n))).collect();
            let inputs = [
                made(I8, &[m, k], small),
                made(I8, &[n, k], |at| small(3 + at)),
                zeros(output, &[m, n]),
                made(F32, &[n], scale),
                made(F32, &[n], bias),
            ];
            let name = format!("scaled to {output} {m}x{n}x{k}");
            let sizes = symbols_of([m, n, k]);
            let value = |symbol: Symbol| sizes.iter().find(|s| s.0 == symbol.name()).map(|s| s.1);
            let after = Interpreter::run(&kernel, &value, &inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(after[2].to_f64(), expected, "{name}");
            let options =
                sizes.iter().fold(Options::new(Target::GFX942), |o, &(symbol, size)| o.set(symbol, size));
            let executable = kernel.compile(&options).unwrap_or_else(|e| panic!("{name}: {e}"));
            let device = Device::simulator(Target::GFX942);
            let buffers: Vec<Buffer> =
                inputs.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
            let launch = buffers.iter().fold(device.launch(&executable), |launch, b| launch.buffer(b));
            let seed = at as u64;
            let report = launch
                .check(&groundswell::simulator::CheckOptions { seed })
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(report.findings.is_empty(), "{name}: {}", report.findings[0]);
            let bytes = buffers[2].read_bytes().expect("readable");
            let got = Tensor::from_bytes(&[m, n], output, &bytes).expect("whole").to_f64();
            assert_eq!(got, expected, "{name}");
        }
    }
}

/// Sizes with all parts whole, with a ragged one, and with parts that have nothing.
const SPLIT: [([usize; 3], usize); 20] = [
    ([1, 1, 1], 1),
    ([1, 1, 1], 3),
    ([32, 32, 128], 4),
    ([33, 50, 100], 3),
    ([17, 70, 96], 2),
    ([1, 64, 500], 8),
    ([64, 1, 33], 2),
    ([5, 5, 5], 5),
    ([16, 48, 256], 8),
    ([10, 31, 300], 7),
    ([31, 33, 65], 2),
    ([65, 65, 65], 1),
    ([2, 130, 20], 4),
    ([40, 32, 64], 2),
    ([4, 40, 200], 6),
    ([3, 3, 1000], 16),
    ([63, 64, 65], 2),
    ([8, 16, 48], 3),
    ([1, 1, 777], 9),
    ([7, 90, 31], 4),
];

#[test]
fn products_in_parts_equal_a_loop() {
    for (at, ([m, n, k], splits)) in SPLIT.into_iter().enumerate() {
        let dtype = [F16, Bf16, F32][at % 3];
        let part = k.div_ceil(splits).div_ceil(32) * 32;
        let (of_a, of_b) = (|i: usize, l: usize| small(i * k + l), |j: usize, l: usize| small(3 + j * k + l));
        let mut sizes = symbols_of([m, n, k]);
        sizes.extend([("SPLITS", splits), ("PART", part), ("PART_STRIDE", part)].map(|(s, x)| (s, x as i64)));
        let inputs =
            |out: Tensor| vec![made(dtype, &[m, k], small), made(dtype, &[n, k], |at| small(3 + at)), out];
        let over = |i: usize, j: usize, from: usize, to: usize| -> f64 {
            (from.min(k)..to.min(k)).map(|l| of_a(i, l) * of_b(j, l)).sum()
        };
        let parts: Vec<f64> = (0..splits * m * n)
            .map(|at| (at / (m * n), at / n % m, at % n))
            .map(|(s, i, j)| over(i, j, s * part, (s + 1) * part))
            .collect();
        let kernels = split_k(dtype, Waves::new(2, 2)).expect("well-formed");
        let schedule = [Schedule::None, Schedule::Prefetch][at % 2].clone();
        Case {
            name: format!("parts of {m}x{n}x{k} in {splits} {dtype}"),
            kernel: kernels.product,
            sizes: sizes.clone(),
            dynamic: open(at, &["M", "N", "K"]),
            schedule: schedule.clone(),
            inputs: inputs(zeros(F32, &[splits, m, n])),
            expected: parts.clone(),
        }
        .check();
        let total = |at: usize| over(at / n, at % n, 0, k);
        Case {
            name: format!("sum of {m}x{n} in {splits}"),
            kernel: kernels.sum,
            sizes: ["M", "N", "SPLITS", "BLOCK_M", "BLOCK_N", "BLOCK_S"]
                .into_iter()
                .zip([m, n, splits, 1, 1024, 8])
                .map(|(name, size)| (name, size as i64))
                .collect(),
            dynamic: open(at, &["SPLITS", "M", "N"]),
            schedule: schedule.clone(),
            inputs: vec![of_numbers(F32, &[splits, m, n], &parts), zeros(F32, &[m, n])],
            expected: (0..m * n).map(total).collect(),
        }
        .check();
        Case {
            name: format!("atomic sum of {m}x{n}x{k} in {splits} {dtype}"),
            kernel: split_k_atomic(dtype, Waves::new(2, 2)).expect("well-formed"),
            sizes,
            dynamic: open(at, &["M", "N", "K"]),
            schedule,
            inputs: inputs(made(F32, &[m, n], number)),
            expected: (0..m * n).map(|at| total(at) + number(at)).collect(),
        }
        .check();
    }
    assert!(split_k(I8, Waves::new(1, 1)).is_err() && split_k_atomic(I32, Waves::new(1, 1)).is_err());
}

/// Sizes and workers: fewer, as many and more than there are tiles or steps.
const STREAM: [([usize; 3], usize); 20] = [
    ([1, 1, 1], 1),
    ([1, 1, 1], 3),
    ([64, 64, 64], 1),
    ([96, 96, 96], 4),
    ([33, 50, 100], 3),
    ([17, 70, 96], 2),
    ([1, 64, 500], 8),
    ([64, 1, 33], 2),
    ([5, 5, 5], 5),
    ([16, 48, 256], 7),
    ([10, 31, 300], 4),
    ([70, 70, 65], 5),
    ([65, 65, 31], 4),
    ([2, 130, 20], 3),
    ([40, 32, 64], 6),
    ([4, 40, 200], 13),
    ([3, 3, 1000], 16),
    ([63, 64, 65], 11),
    ([100, 100, 48], 3),
    ([7, 90, 130], 2),
];

#[test]
fn products_in_even_shares_equal_a_loop() {
    for (at, ([m, n, k], workers)) in STREAM.into_iter().enumerate() {
        let dtype = [F16, Bf16, F32][at % 3];
        let (column_tiles, steps) = (n.div_ceil(32), k.div_ceil(32));
        let all = m.div_ceil(32) * column_tiles * steps;
        let share = all.div_ceil(workers);
        // One more than is touched at most: what has no steps is zero.
        let segments = share.div_ceil(steps) + 1;
        let product_of = |i: usize, j: usize, l: usize| -> f64 {
            if i < m && j < n && l < k { small(i * k + l) * small(3 + j * k + l) } else { 0.0 }
        };
        let mut parts = vec![0.0; workers * segments * 32 * 32];
        for worker in 0..workers {
            let mine = worker * share..(worker + 1) * share;
            for step in mine.start..mine.end.min(all) {
                let tile = step / steps;
                let segment = worker * segments + tile - mine.start / steps;
                for (i, j) in (0..32 * 32).map(|at| (at / 32, at % 32)) {
                    let (row, column) = (tile / column_tiles * 32 + i, tile % column_tiles * 32 + j);
                    let of_k = step % steps * 32..(step % steps + 1) * 32;
                    parts[(segment * 32 + i) * 32 + j] +=
                        of_k.map(|l| product_of(row, column, l)).sum::<f64>();
                }
            }
        }
        let mut sizes = symbols_of([m, n, k]);
        let further = [
            ("WORKERS", workers),
            ("SEGMENTS", segments),
            ("TILE_M", 32),
            ("TILE_N", 32),
            ("SHARE", share),
            ("STEPS", steps),
            ("COLUMN_TILES", column_tiles),
            ("CONTRIBUTIONS", steps.div_ceil(share) + 1),
        ];
        sizes.extend(further.map(|(name, size)| (name, size as i64)));
        let kernels = stream_k(dtype, Waves::new(2, 2)).expect("well-formed");
        let shape = [workers, segments, 32, 32];
        let schedules = [Schedule::None, Schedule::Prefetch, Schedule::Modulo, Schedule::FourStage];
        Case {
            name: format!("shares of {m}x{n}x{k} by {workers} {dtype}"),
            kernel: kernels.product,
            sizes: sizes.iter().copied().filter(|size| size.0 != "CONTRIBUTIONS").collect(),
            dynamic: open(at, &["M", "N", "K"]),
            schedule: schedules[at % 4].clone(),
            inputs: vec![
                made(dtype, &[m, k], small),
                made(dtype, &[n, k], |at| small(3 + at)),
                zeros(F32, &shape),
            ],
            expected: parts.clone(),
        }
        .check();
        Case {
            name: format!("sum of shares of {m}x{n}x{k} by {workers}"),
            kernel: kernels.sum,
            sizes: sizes.into_iter().filter(|size| !["K", "BLOCK_K"].contains(&size.0)).collect(),
            dynamic: open(at, &["M", "N"]),
            schedule: Schedule::None,
            inputs: vec![of_numbers(F32, &shape, &parts), zeros(F32, &[m, n])],
            expected: (0..m * n).map(|at| (0..k).map(|l| product_of(at / n, at % n, l)).sum()).collect(),
        }
        .check();
        run_in_shares([m, n, k], workers);
    }
    assert!(stream_k(I8, Waves::new(1, 1)).is_err());
}

/// Both kernels one after the other, with the options that the library computes.
fn run_in_shares([m, n, k]: [usize; 3], workers: usize) {
    let kernels = stream_k(F16, Waves::new(2, 2)).expect("well-formed");
    let sizes = [m, n, k].map(|size| size as u32);
    let (product, sum) = StreamK::options(Target::GFX942, sizes, workers as u32);
    let product = kernels.product.compile(&product).expect("compiles");
    let sum = kernels.sum.compile(&sum).expect("compiles");
    assert!(sum.report().split_accesses.is_empty() || n % 64 != 0, "{}", sum.report());
    let device = Device::open().expect("the simulator");
    let a = device.upload_tensor(&made(F16, &[m, k], small)).expect("fits");
    let b = device.upload_tensor(&made(F16, &[n, k], |at| small(3 + at))).expect("fits");
    let segments = find("stream_k_gemm").expect("a ready kernel").values(&|name| {
        let given = [("M", m), ("N", n), ("K", k), ("WORKERS", workers)];
        given.iter().find(|value| value.0 == name).map(|value| value.1 as i64)
    });
    let segments = segments.iter().find(|value| value.0 == "SEGMENTS").expect("a symbol").1;
    // What the first kernel leaves alone would be seen.
    let parts = vec![f32::NAN; workers * segments as usize * 64 * 64];
    let parts = device.upload(&parts).expect("fits");
    let c = device.upload(&vec![f32::NAN; m * n]).expect("fits");
    device.launch(&product).buffer(&a).buffer(&b).buffer(&parts).run().expect("runs");
    device.launch(&sum).buffer(&parts).buffer(&c).run().expect("runs");
    let got = c.download::<f32>().expect("readable");
    for (at, got) in got.into_iter().enumerate() {
        let of = |l: usize| small(at / n * k + l) * small(3 + at % n * k + l);
        assert_eq!(f64::from(got), (0..k).map(of).sum::<f64>(), "{m}x{n}x{k} by {workers} at {at}");
    }
}

#[test]
fn products_with_the_matrices_of_experts_equal_a_loop() {
    let mut at = 0;
    for [blocks, n, k, experts] in [
        [1usize, 1, 1, 1],
        [3, 64, 64, 2],
        [5, 33, 40, 4],
        [2, 70, 100, 3],
        [4, 16, 32, 8],
        [1, 130, 5, 2],
        [6, 31, 65, 1],
        [2, 64, 200, 5],
        [3, 5, 33, 3],
        [2, 100, 1, 2],
    ] {
        for rows in [32usize, 64] {
            let dtype = [F16, Bf16, F32, I8][at % 4];
            let sums = if dtype == I8 { I32 } else { F32 };
            // One of them is no expert, and another one is too large.
            let ids: Vec<f64> =
                (0..blocks).map(|block| ((block * 5 + at) % (experts + 2)) as f64 - 1.0).collect();
            let of = |block: usize, row: usize, column: usize| -> f64 {
                if !(0.0..experts as f64).contains(&ids[block]) {
                    return 0.0;
                }
                let (a, b) = ((block * rows + row) * k, (ids[block] as usize * n + column) * k);
                (0..k).map(|l| small(a + l) * small(3 + b + l)).sum()
            };
            let symbols = ["BLOCKS", "ROWS", "N", "K", "EXPERTS", "BLOCK_N", "BLOCK_K"];
            let sizes = symbols.into_iter().zip([blocks, rows, n, k, experts, 32, 32]);
            Case {
                name: format!("{blocks} blocks of {rows} x {n} x {k}, {experts} experts, {dtype}"),
                kernel: grouped_gemm(dtype, Waves::new(2, 2)).expect("well-formed"),
                sizes: sizes.map(|(name, size)| (name, size as i64)).collect(),
                dynamic: open(at, &["BLOCKS", "EXPERTS", "N", "K"]),
                schedule: [Schedule::None, Schedule::Prefetch][at % 2].clone(),
                inputs: vec![
                    made(dtype, &[blocks, rows, k], small),
                    made(dtype, &[experts, n, k], |at| small(3 + at)),
                    of_numbers(I32, &[blocks], &ids),
                    zeros(sums, &[blocks, rows, n]),
                ],
                expected: (0..blocks * rows * n).map(|at| of(at / n / rows, at / n % rows, at % n)).collect(),
            }
            .check();
            at += 1;
        }
    }
    assert!(at >= 20 && grouped_gemm(I32, Waves::new(1, 1)).is_err());
}

#[test]
fn chains_of_two_products_equal_a_loop() {
    for (at, [m, l, k]) in SHAPES.into_iter().enumerate() {
        let (n, dtype) = ([1, 32, 40, 64, 70][at % 5], [F16, Bf16, F32][at % 3]);
        let first =
            |i: usize, j: usize| -> f64 { (0..k).map(|e| small(i * k + e) * small(3 + j * k + e)).sum() };
        // Sums of the first product are rounded.
        let rounded = |x: f64| match dtype {
            F16 => f16::from_f64(x).to_f64(),
            Bf16 => bf16::from_f64(x).to_f64(),
            _ => x,
        };
        let rows: Vec<f64> = (0..m * l).map(|at| rounded(first(at / l, at % l))).collect();
        let last =
            |i: usize, j: usize| -> f64 { (0..l).map(|e| rows[i * l + e] * small(5 + j * l + e)).sum() };
        let symbols = ["M", "L", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_L", "WAVE_K"];
        let sizes = symbols.into_iter().zip([m, l, n, k, 32, 64, 32, k.next_power_of_two().max(16)]);
        Case {
            name: format!("chain {m}x{l}x{k}, {n} columns, {dtype}"),
            kernel: chained_gemm(dtype, Waves::new(2, 1)).expect("well-formed"),
            sizes: sizes.map(|(name, size)| (name, size as i64)).collect(),
            dynamic: open(at, &["M", "L", "N"]),
            schedule: [Schedule::None, Schedule::Prefetch, Schedule::Modulo][at % 3].clone(),
            inputs: vec![
                made(dtype, &[m, k], small),
                made(dtype, &[l, k], |at| small(3 + at)),
                made(dtype, &[n, l], |at| small(5 + at)),
                zeros(F32, &[m, n]),
            ],
            expected: (0..m * n).map(|at| last(at / n, at % n)).collect(),
        }
        .check();
    }
    assert!(chained_gemm(I8, Waves::new(1, 1)).is_err());
}

#[test]
fn products_with_scales_of_blocks_equal_a_loop() {
    for (at, [m, n, k]) in SHAPES.into_iter().enumerate() {
        let (dtype, block, scale_n) =
            ([F8E4M3Fnuz, F16, F8E5M2Fnuz][at % 3], [32usize, 64][at % 2], [16usize, 5][at % 2]);
        let (blocks, rows) = (k.div_ceil(block), n.div_ceil(scale_n));
        // Powers of two, so that all sums are exact.
        let scale = |at: usize| [0.5, 1.0, 2.0, -4.0][at % 4];
        let scales = |shape: [usize; 2], first: usize| made(F32, &shape, |at| scale(at + first));
        let of = |i: usize, j: usize| -> f64 {
            let part = |l: usize| small(i * k + l) * small(3 + j * k + l);
            let scaled = |l: usize| scale(l / block * m + i) * scale(1 + j / scale_n * blocks + l / block);
            (0..k).map(|l| part(l) * scaled(l)).sum()
        };
        let symbols = ["M", "N", "K", "BLOCKS", "ROWS", "SCALE_N", "BLOCK_M", "BLOCK_N", "BLOCK_K"];
        let sizes = symbols.into_iter().zip([m, n, k, blocks, rows, scale_n, 32, 32, block]);
        Case {
            name: format!("blocks of {block} in {m}x{n}x{k} {dtype}"),
            kernel: block_scaled_gemm(dtype, Waves::new(2, 2)).expect("well-formed"),
            sizes: sizes.map(|(name, size)| (name, size as i64)).collect(),
            dynamic: open(at, &["M", "N", "K"]),
            schedule: [Schedule::None, Schedule::Prefetch, Schedule::Modulo][at % 3].clone(),
            inputs: vec![
                made(dtype, &[m, k], small),
                made(dtype, &[n, k], |at| small(3 + at)),
                scales([blocks, m], 0),
                scales([rows, blocks], 1),
                zeros(F32, &[m, n]),
            ],
            expected: (0..m * n).map(|at| of(at / n, at % n)).collect(),
        }
        .check();
    }
    assert!(block_scaled_gemm(I8, Waves::new(1, 1)).is_err());
}

#[test]
fn products_of_bytes_with_both_scales_equal_a_loop() {
    for (at, [m, n, k]) in SHAPES.into_iter().enumerate() {
        let dtype = [F8E4M3Fnuz, F8E5M2Fnuz][at % 2];
        let scale = |at: usize| [0.5, 1.0, 2.0, -4.0][at % 4];
        let of =
            |i: usize, j: usize| -> f64 { (0..k).map(|l| small(i * k + l) * small(3 + j * k + l)).sum() };
        // C comes before the scales, so that the interpreter's result is compared with the loop, and the
        // machine code with the interpreter.
        let kernel =
            Gemm::any_shape().inputs(dtype).row_scales().channel_scales().kernel().expect("well-formed");
        let sizes = symbols_of([m, n, k]);
        let value = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
        let inputs = [
            made(dtype, &[m, k], small),
            made(dtype, &[n, k], |at| small(3 + at)),
            zeros(F32, &[m, n]),
            made(F32, &[m], scale),
            made(F32, &[n], |at| scale(at + 1)),
        ];
        let after = Interpreter::run(&kernel, &value, &inputs).expect("runs");
        let expected: Vec<f64> =
            (0..m * n).map(|at| of(at / n, at % n) * scale(at / n) * scale(at % n + 1)).collect();
        assert_eq!(after[2].to_f64(), expected, "{m}x{n}x{k} {dtype}");
        let mut options = Options::new(Target::GFX942);
        for &(name, size) in &sizes {
            options = options.set(name, size);
        }
        let device = Device::open().expect("the simulator");
        let checked = kernel.compile(&options).and_then(|executable| {
            groundswell::check::against_interpreter(&kernel, &executable, &device, &value, 1)
        });
        assert!(checked.expect("runs").comparison.ok, "{m}x{n}x{k} {dtype}");
    }
}

/// The first product goes to the second one in the lanes that it is in: no write to LDS but those of B and C.
/// No form has arithmetic or a bank conflict in its loop, whatever the dtype of its output; in some, elements
/// change their registers.
#[test]
fn loops_of_all_forms_have_no_arithmetic_beside_their_products() {
    let tiles: [([i64; 3], [u32; 2], Schedule, &str); 3] = [
        ([128, 128, 32], [2, 2], Schedule::Prefetch, "prefetch"),
        ([128, 256, 64], [2, 4], Schedule::PingPong, "pingpong"),
        ([256, 256, 64], [2, 4], Schedule::PingPong, "pingpong"),
    ];
    for form in [Form::ABt, Form::AB, Form::AtB, Form::AtBt] {
        for (tile, waves, schedule, name) in &tiles {
            for output in [F32, F16] {
                let gemm = Gemm::any_shape().form(form).waves(Waves::new(waves[0], waves[1])).output(output);
                let sizes = ["M", "N", "K"].map(|name| (name, 1024));
                let sizes = sizes.into_iter().chain(["BLOCK_M", "BLOCK_N", "BLOCK_K"].into_iter().zip(*tile));
                let options = Options::new(Target::GFX942).schedule(schedule.clone());
                let options = sizes.fold(options, |options, (name, size)| options.set(name, size));
                let executable = gemm.kernel().and_then(|kernel| kernel.compile(&options));
                let executable = executable.unwrap_or_else(|e| panic!("{form:?} {tile:?}: {e}"));
                let report = executable.report();
                let mix = report.main_loop.as_ref().expect("it has a loop");
                // A lane brings 16 bytes of two rows of the larger A, and exchanges their elements for half
                // as many writes: 8 registers of each of 2 loads.
                let exchanges = matches!(form, Form::AtB | Form::AtBt) && tile[0] == 256;
                assert_eq!(mix.valu, if exchanges { 16 } else { 0 }, "{form:?} {tile:?} {output}: {mix:?}");
                assert_eq!(report.schedule_applied, *name, "{form:?} {tile:?}");
                let conflicts = report.lds_accesses.iter().filter(|access| access.conflict_degree > 1);
                assert_eq!(conflicts.count(), 0, "{form:?} {tile:?} {output}");
            }
        }
    }
}

#[test]
fn the_first_of_two_chained_products_stays_in_registers() {
    let sizes = [("M", 128), ("L", 256), ("N", 64), ("K", 64)];
    let tiles = [("BLOCK_M", 128), ("BLOCK_N", 64), ("BLOCK_L", 32), ("WAVE_K", 64)];
    for dtype in [F16, Bf16, F32] {
        let options = sizes.into_iter().chain(tiles);
        let options =
            options.fold(Options::new(Target::GFX942), |options, (name, size)| options.set(name, size));
        let executable = chained_gemm(dtype, Waves::new(4, 1)).and_then(|kernel| kernel.compile(&options));
        let executable = executable.unwrap_or_else(|e| panic!("{dtype}: {e}"));
        let report = executable.report();
        let written: Vec<&str> =
            report.lds_accesses.iter().filter(|a| a.kind == "write").map(|a| &*a.what).collect();
        assert_eq!(written, ["read_b", "read_c"], "{dtype}");
    }
}

/// Sums begin with constants of every kind: those that an instruction takes itself, and others. A loop that
/// runs once begins like no loop at all, and the initial value is used after it, too.
#[test]
fn sums_that_begin_with_constants_equal_a_loop() {
    let mut at = 0;
    for first in [0, 1, -16, 64, 65, 1000] {
        for k in [32usize, 20, 64, 1] {
            let (m, n, dtype) = (33, 17, [F16, I8, Bf16][at % 3]);
            let sums = if dtype == I8 { I32 } else { F32 };
            let [rows, columns, deep, block_k] = symbols(["M", "N", "K", "BLOCK_K"]);
            let looped = at % 2 == 0;
            let kernel = Kernel::trace("begun", |w| {
                w.distribute([workgroup(rows, 32, 0), workgroup(columns, 32, 1)]);
                w.distribute([if looped { tile(deep, block_k) } else { wave(deep, block_k) }]);
                w.distribute([wave(rows, 32), wave(columns, 32)]);
                w.mma_type(Mma::all().find(|mma| mma.input() == dtype && mma.m() == 16).expect("one"));
                let a = w.memory("a", [rows, deep], Shared, dtype);
                let b = w.memory("b", [columns, deep], Global, dtype);
                let c = w.memory("c", [rows, columns], Global, sums);
                let begun = w.register([rows, columns], sums, f64::from(first));
                let sum = match looped {
                    true => w.iterate(deep, [begun], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)])[0],
                    false => w.mma(w.read(a), w.read(b), begun),
                };
                w.write(sum - begun - begun, c);
            });
            let of =
                |i: usize, j: usize| -> f64 { (0..k).map(|l| small(i * k + l) * small(3 + j * k + l)).sum() };
            let sizes = ["M", "N", "K", "BLOCK_K"].into_iter().zip([m, n, k, if looped { 32 } else { 64 }]);
            Case {
                name: format!("sums from {first} of {k} {dtype}, loop {looped}"),
                kernel: kernel.expect("well-formed"),
                sizes: sizes.map(|(name, size)| (name, size as i64)).collect(),
                dynamic: open(at, &["M", "N"]),
                schedule: [Schedule::None, Schedule::Prefetch, Schedule::Modulo][at % 3].clone(),
                inputs: vec![
                    made(dtype, &[m, k], small),
                    made(dtype, &[n, k], |at| small(3 + at)),
                    zeros(sums, &[m, n]),
                ],
                expected: (0..m * n).map(|at| of(at / n, at % n) - f64::from(first)).collect(),
            }
            .check();
            at += 1;
        }
    }
}
