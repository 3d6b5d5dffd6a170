//! Ready products of matrices against plain loops: every form, dtype of the output and way to share K.

mod common;

use common::exact_case::{Case, number, of_numbers, zeros};
use groundswell::kernels::{Form, Gemm};
use groundswell::prelude::*;

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

/// Numbers between -2 and 2, so that all sums are exact in f16.
fn small(at: usize) -> f64 {
    (number(at) / 3.0).trunc()
}

fn matrix(dtype: DType, shape: &[usize], of: impl Fn(usize) -> f64) -> Tensor {
    of_numbers(dtype, shape, &(0..shape.iter().product()).map(of).collect::<Vec<_>>())
}

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
            let dtype = [F16, Bf16, F32, I8][(at + of_form) % 4];
            let sums = if dtype == I8 { I32 } else { F32 };
            let (a_turned, b_turned) =
                (matches!(form, Form::AtB | Form::AtBt), matches!(form, Form::AB | Form::AtB));
            let of_a = |i: usize, l: usize| small(if a_turned { l * m + i } else { i * k + l });
            let of_b = |j: usize, l: usize| small(3 + if b_turned { l * n + j } else { j * k + l });
            let sum = |i: usize, j: usize| (0..k).map(|l| of_a(i, l) * of_b(j, l)).sum();
            let a_shape = if a_turned { [k, m] } else { [m, k] };
            let b_shape = if b_turned { [k, n] } else { [n, k] };
            let inputs = vec![
                matrix(dtype, &a_shape, small),
                matrix(dtype, &b_shape, |at| small(3 + at)),
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
        ];
        for (inputs, output) in [all[at % 9], all[(at + 3) % 9], all[(at + 7) % 9]] {
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
                    matrix(inputs, &[m, k], small),
                    matrix(inputs, &[n, k], |at| small(3 + at)),
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
                matrix(I8, &[m, k], small),
                matrix(I8, &[n, k], |at| small(3 + at)),
                zeros(output, &[m, n]),
                matrix(F32, &[n], scale),
                matrix(F32, &[n], bias),
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
