//! The ready kernels over rows and columns: the interpreter equals loops in f64, and compiled code, in check
//! mode, equals the interpreter, for rows of many lengths.

use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::kernels::{self, Choices};
use groundswell::prelude::*;
use groundswell_testing::judged::assert_right;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Aligned, ragged, single and odd.
const SHAPES: [[usize; 2]; 22] = [
    [1, 1],
    [1, 2],
    [3, 1],
    [300, 1],
    [5, 3],
    [1, 64],
    [7, 63],
    [3, 65],
    [33, 17],
    [4, 128],
    [9, 100],
    [2, 255],
    [2, 256],
    [3, 257],
    [1, 500],
    [2, 512],
    [3, 777],
    [2, 1024],
    [1, 1025],
    [3, 2048],
    [1, 3001],
    [1, 8192],
];

const DTYPES: [DType; 3] = [F16, Bf16, F32];

/// What a kernel has to compute.
struct Expected {
    /// For each memory in order: its shape by `rows` and `columns`, and whether it is a result.
    memories: &'static [(Shape, Role)],
    /// The results in f64, in order.
    compute: fn(&Inputs) -> Vec<Vec<f64>>,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Shape {
    Matrix,
    Rows,
    Columns,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Role {
    Input,
    /// Of the inputs' dtype.
    Result,
    /// Of another dtype.
    ResultOf(DType),
}

struct Inputs {
    rows: usize,
    columns: usize,
    tensors: Vec<Vec<f64>>,
}

impl Inputs {
    fn row(&self, row: usize) -> &[f64] {
        &self.tensors[0][row * self.columns..][..self.columns]
    }

    fn by_row(&self, of: impl Fn(&[f64]) -> Vec<f64>) -> Vec<Vec<f64>> {
        vec![(0..self.rows).flat_map(|row| of(self.row(row))).collect()]
    }
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let sum: f64 = row.iter().map(|x| x.exp()).sum();
    row.iter().map(|x| x.exp() / sum).collect()
}

fn layer_norm(row: &[f64]) -> Vec<f64> {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    rms_norm(&row.iter().map(|x| x - mean).collect::<Vec<_>>())
}

fn rms_norm(row: &[f64]) -> Vec<f64> {
    let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    row.iter().map(|x| x / (mean + 1e-5).sqrt()).collect()
}

fn weighted(inputs: &Inputs, norm: fn(&[f64]) -> Vec<f64>, weight: usize, bias: Option<usize>) -> Vec<f64> {
    let rows = inputs.by_row(norm).remove(0);
    let column = |at: usize| at % inputs.columns;
    let bias = |at: usize| bias.map_or(0.0, |bias| inputs.tensors[bias][column(at)]);
    rows.iter().enumerate().map(|(at, x)| x * inputs.tensors[weight][column(at)] + bias(at)).collect()
}

/// The inputs with the residual, their second, added to the first.
fn with_residual(inputs: &Inputs) -> Inputs {
    let mut tensors = inputs.tensors.clone();
    tensors[0] = tensors[0].iter().zip(&tensors[1]).map(|(x, residual)| x + residual).collect();
    Inputs { tensors, ..*inputs }
}

fn expected(name: &str) -> Expected {
    use Role::{Input, Result, ResultOf};
    use Shape::{Columns, Matrix, Rows};
    const MAP: &[(Shape, Role)] = &[(Matrix, Input), (Matrix, Result)];
    match name {
        "softmax" => Expected { memories: MAP, compute: |inputs| inputs.by_row(softmax) },
        "log_softmax" => Expected {
            memories: MAP,
            compute: |inputs| inputs.by_row(|row| softmax(row).iter().map(|x| x.ln()).collect()),
        },
        "layer_norm" => Expected {
            memories: &[(Matrix, Input), (Columns, Input), (Columns, Input), (Matrix, Result)],
            compute: |inputs| vec![weighted(inputs, layer_norm, 1, Some(2))],
        },
        "layer_norm_residual" => Expected {
            memories: &[
                (Matrix, Input),
                (Matrix, Input),
                (Columns, Input),
                (Columns, Input),
                (Matrix, Result),
                (Matrix, Result),
            ],
            compute: |inputs| {
                let sum = with_residual(inputs);
                vec![weighted(&sum, layer_norm, 2, Some(3)), sum.tensors[0].clone()]
            },
        },
        "rms_norm" => Expected {
            memories: &[(Matrix, Input), (Columns, Input), (Matrix, Result)],
            compute: |inputs| vec![weighted(inputs, rms_norm, 1, None)],
        },
        "rms_norm_residual" => Expected {
            memories: &[
                (Matrix, Input),
                (Matrix, Input),
                (Columns, Input),
                (Matrix, Result),
                (Matrix, Result),
            ],
            compute: |inputs| {
                let sum = with_residual(inputs);
                vec![weighted(&sum, rms_norm, 2, None), sum.tensors[0].clone()]
            },
        },
        "row_sum" => Expected {
            memories: &[(Matrix, Input), (Rows, ResultOf(F32))],
            compute: |inputs| inputs.by_row(|row| vec![row.iter().sum()]),
        },
        "row_max" => Expected {
            memories: &[(Matrix, Input), (Rows, Result)],
            compute: |inputs| inputs.by_row(|row| vec![row.iter().copied().fold(f64::MIN, f64::max)]),
        },
        "row_argmax" => Expected {
            memories: &[(Matrix, Input), (Rows, ResultOf(I32))],
            compute: |inputs| {
                inputs.by_row(|row| {
                    let mut best = 0;
                    for (at, &x) in row.iter().enumerate() {
                        if x > row[best] {
                            best = at;
                        }
                    }
                    vec![best as f64]
                })
            },
        },
        "cumsum" => Expected {
            memories: MAP,
            compute: |inputs| inputs.by_row(|row| (0..row.len()).map(|at| row[..=at].iter().sum()).collect()),
        },
        "cumsum_exclusive" => Expected {
            memories: MAP,
            compute: |inputs| inputs.by_row(|row| (0..row.len()).map(|at| row[..at].iter().sum()).collect()),
        },
        "column_sum" => Expected {
            memories: &[(Matrix, Input), (Columns, ResultOf(F32))],
            compute: |inputs| {
                let column = |column| (0..inputs.rows).map(|row| inputs.row(row)[column]).sum();
                vec![(0..inputs.columns).map(column).collect()]
            },
        },
        _ => panic!("{name} is not a kernel over rows"),
    }
}

/// Quarters between -4 and 4: exact in every dtype, so the first of equal elements matters.
fn random(rng: &mut StdRng, dtype: DType, shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    let elements: Vec<f32> = (0..count).map(|_| rng.random_range(-16..=16) as f32 / 4.0).collect();
    match dtype {
        F16 => Tensor::from_slice(shape, &elements.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>()),
        Bf16 => Tensor::from_slice(shape, &elements.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>()),
        _ => Tensor::from_slice(shape, &elements),
    }
    .unwrap()
}

/// The largest error of a rounded result, in parts of it.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        F16 => 2f64.powi(-10),
        Bf16 => 2f64.powi(-7),
        F32 => 2f64.powi(-19),
        _ => 0.0,
    }
}

fn judge(name: &str, dtype: DType, shape: [usize; 2], seeds: u64) {
    let what = format!("{name} of {dtype} {shape:?}");
    let entry = kernels::find(name).unwrap();
    let kernel = entry.kernel(&Choices { dtype: Some(dtype), ..Choices::default() }).unwrap();
    let [rows, columns] = shape;
    let size = |name: &str| match name {
        "M" => Some(rows as i64),
        "N" => Some(columns as i64),
        _ => None,
    };
    let mut options = Options::new(Target::GFX942);
    for (name, value) in entry.values(&size) {
        options = options.set(Symbol::new(name), size(name).unwrap_or(value));
    }
    let value = |symbol: Symbol| options.value(symbol);

    let expected = expected(name);
    let mut rng = StdRng::seed_from_u64((rows * 10_000 + columns) as u64);
    let tensors: Vec<Tensor> = expected
        .memories
        .iter()
        .map(|&(shape, role)| {
            let shape: &[usize] = match shape {
                Shape::Matrix => &[rows, columns],
                Shape::Rows => &[rows],
                Shape::Columns => &[columns],
            };
            match role {
                Role::Input => random(&mut rng, dtype, shape),
                Role::Result => Tensor::zeros(shape, dtype).unwrap(),
                Role::ResultOf(dtype) => Tensor::zeros(shape, dtype).unwrap(),
            }
        })
        .collect();
    let inputs = Inputs { rows, columns, tensors: tensors.iter().map(Tensor::to_f64).collect() };
    let after = Interpreter::run(&kernel, &value, &tensors).unwrap_or_else(|e| panic!("{what}: {e}"));
    let results = expected.memories.iter().zip(&after).filter(|(memory, _)| memory.1 != Role::Input);
    for ((memory, found), expected) in results.zip((expected.compute)(&inputs)) {
        let dtype = if let Role::ResultOf(dtype) = memory.1 { dtype } else { dtype };
        for (at, (found, expected)) in found.to_f64().into_iter().zip(expected).enumerate() {
            // Softmax is small throughout; results of sums that cancel are as exact as their largest terms.
            let scale = if name == "softmax" { expected } else { expected.abs() + 4.0 };
            let exact = matches!(name, "row_max" | "row_argmax");
            let bound = if exact { 0.0 } else { rounding(dtype) * scale };
            // The least f16 that is not zero is 2^-24.
            let bound = if exact { bound } else { bound + 2f64.powi(-25) };
            assert!((found - expected).abs() <= bound, "{what}: element {at} is {found}, not {expected}");
        }
    }

    let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    for seed in 0..seeds {
        assert_right(&kernel, &executable, &value, seed, &what);
    }
}

fn judge_shapes(name: &str) {
    for (number, shape) in SHAPES.into_iter().enumerate() {
        let seeds = if [6, 17].contains(&number) { 5 } else { 1 };
        judge(name, DTYPES[number % DTYPES.len()], shape, seeds);
    }
}

#[test]
fn softmax_holds() {
    judge_shapes("softmax");
}

#[test]
fn log_softmax_holds() {
    judge_shapes("log_softmax");
}

#[test]
fn layer_norm_holds() {
    judge_shapes("layer_norm");
    judge_shapes("layer_norm_residual");
}

#[test]
fn rms_norm_holds() {
    judge_shapes("rms_norm");
    judge_shapes("rms_norm_residual");
}

#[test]
fn row_reductions_hold() {
    judge_shapes("row_sum");
    judge_shapes("row_max");
    judge_shapes("row_argmax");
}

#[test]
fn running_sums_hold() {
    judge_shapes("cumsum");
    judge_shapes("cumsum_exclusive");
}

#[test]
fn column_sum_holds() {
    judge_shapes("column_sum");
    judge("column_sum", F16, [1000, 70], 1);
}

#[test]
fn the_longest_rows_hold() {
    judge("rms_norm", F16, [1, 16384], 1);
    judge("softmax", F32, [1, 65536], 1);
}

#[test]
fn the_text_form_is_the_same_kernel() {
    for entry in kernels::list() {
        let text = entry.kernel(&Choices::default()).unwrap().to_string();
        let read =
            Kernel::parse(&text, "twin.gsw").unwrap_or_else(|faults| panic!("{}: {faults:?}", entry.name));
        assert_eq!(read.to_string(), text);
        let compile = |kernel: &Kernel| {
            let options = entry
                .values(&|_| None)
                .into_iter()
                .fold(Options::new(Target::GFX942), |options, (name, value)| options.set(name, value));
            kernel
                .compile(&options)
                .unwrap_or_else(|fault| panic!("{}: {fault}", entry.name))
                .report()
                .instructions
        };
        assert_eq!(compile(&read), compile(&entry.kernel(&Choices::default()).unwrap()), "{}", entry.name);
    }
}

#[test]
fn other_dtypes_and_counts_of_waves_are_refused() {
    let entry = kernels::find("softmax").unwrap();
    let integers = entry.kernel(&Choices { dtype: Some(I32), ..Choices::default() });
    assert_eq!(integers.err().unwrap().message, "kernels over rows take f16, bf16 and f32, not i32");
    let waves = entry.kernel(&Choices { waves: Some(kernels::Waves::new(1, 2)), ..Choices::default() });
    assert_eq!(waves.err().unwrap().message, "the waves of softmax are not chosen by their number");
}

#[test]
fn any_all_argmin_and_rows_of_nothing_but_nan() {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("predicates", |w| {
        w.distribute([workgroup(m, 4, 0)]);
        let a = w.memory("a", [m, n], Global, F32);
        let results = ["argmax", "argmin", "any", "all"].map(|name| w.memory(name, [m], Global, I32));
        let x = w.read(a);
        let small = x.less(2.0);
        w.write(x.argmax(n), results[0]);
        w.write(x.argmin(n), results[1]);
        w.write(w.select(small.any(n), 1, 0), results[2]);
        w.write(w.select(small.all(n), 1, 0), results[3]);
    })
    .unwrap();
    let nan = f32::NAN;
    let rows = [
        [nan, nan, nan],
        [nan, 2.0, 5.0],
        [1.0, 1.0, 1.0],
        [-0.0, 0.0, 1.0],
        [3.0, f32::NEG_INFINITY, f32::INFINITY],
    ];
    let a = Tensor::from_slice(&[5, 3], &rows.concat()).unwrap();
    let value = |symbol: Symbol| if symbol == m { Some(5) } else { Some(3) };
    let zeros = Tensor::zeros(&[5], I32).unwrap();
    let tensors = [a, zeros.clone(), zeros.clone(), zeros.clone(), zeros];
    let expected: [[i32; 5]; 4] = [[0, 2, 0, 2, 2], [0, 1, 0, 0, 1], [0, 0, 1, 1, 1], [0, 0, 1, 1, 0]];
    let after = Interpreter::run(&kernel, &value, &tensors).unwrap();
    let executable = kernel.compile(&Options::new(Target::GFX942).set(m, 5).set(n, 3)).unwrap();
    let device = Device::simulator(Target::GFX942);
    let a = device.upload(&rows.concat()).unwrap();
    let results = [(); 4].map(|()| device.upload(&[0i32; 5]).unwrap());
    let launch = results.iter().fold(device.launch(&executable).buffer(&a), |launch, b| launch.buffer(b));
    launch.run().unwrap();
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!(after[at + 1].to_f64(), expected.map(f64::from), "{at}");
        assert_eq!(results[at].download::<i32>().unwrap(), expected, "{at}");
    }
}

#[test]
fn one_barrier_for_each_exchange_between_waves() {
    let barriers = |name: &str, columns: i64| {
        let entry = kernels::find(name).unwrap();
        let size = |name: &str| match name {
            "M" => Some(8),
            "N" => Some(columns),
            _ => None,
        };
        let set = |options: Options, (name, value)| options.set(Symbol::new(name), value);
        let options = entry.values(&size).into_iter().fold(Options::new(Target::GFX942), set);
        let kernel = entry.kernel(&Choices::default()).unwrap();
        kernel.compile(&options).unwrap().report().barriers
    };
    for (name, exchanges) in [("row_sum", 1), ("softmax", 2), ("layer_norm", 2), ("cumsum", 1)] {
        assert_eq!(barriers(name, 4096), exchanges, "{name} of long rows");
        assert_eq!(barriers(name, 512), 0, "{name} of short rows");
    }
}
