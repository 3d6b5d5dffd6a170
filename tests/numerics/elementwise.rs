//! Element-wise operations on the simulator against the interpreter: every operation in every dtype, casts
//! between all dtypes, broadcasting, selects, on shapes that the tile does not divide. Arithmetic is exact
//! (rounded once); the roots, powers and logarithms of the hardware are good to a unit in the last place or
//! two.

use groundswell_testing::judged::verified;
use std::sync::atomic::{AtomicUsize, Ordering};

use groundswell::internals::node::{Op, ResultType};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, tensor, zeros};
use groundswell_testing::meaning;

const ROWS: i64 = 37;
const COLUMNS: i64 = 75;

/// Kernels so far: each sixteenth is compared after every pass.
static CHECKED: AtomicUsize = AtomicUsize::new(0);

/// How far a result may be off, relative to the expected value.
#[derive(Copy, Clone)]
enum Tolerance {
    Exact,
    Relative(f64),
}

/// Runs `c = body(a, b)` with inputs of `input` and results of `output`; b has the dimensions that `b_dims`
/// names.
fn check(
    what: &str,
    (input, output): (DType, DType),
    values: [fn(usize) -> f64; 2],
    tolerance: Tolerance,
    b_dims: &str,
    body: impl Fn(&Tracer, Value, Value) -> Value,
) {
    let [m, n, bm, bn] = symbols(["M", "N", "BLOCK_M", "BLOCK_N"]);
    let kernel = Kernel::trace("elementwise", |w| {
        w.distribute([workgroup(m, bm, 0), workgroup(n, bn, 1), wave(m, bm / 2), wave(n, bn)]);
        let a = w.memory("a", [m, n], Global, input);
        let b = match b_dims {
            "MN" => w.memory("b", [m, n], Global, input),
            "N" => w.memory("b", [n], Global, input),
            _ => w.memory("b", [m], Global, input),
        };
        let c = w.memory("c", [m, n], Global, output);
        let (a, b) = (w.read(a), w.read(b));
        let result = body(w, a, b);
        w.write(result, c);
    })
    .expect("the kernel is valid");
    let bindings = [(m, ROWS), (n, COLUMNS), (bm, 32), (bn, 32)];
    let options = bindings.iter().fold(Options::new(Target::GFX942), |o, &(s, v)| o.set(s, v));
    let executable = verified(&kernel, &options);
    let tensor = |shape: &[usize], value: fn(usize) -> f64| {
        let count: usize = shape.iter().product();
        let numbers: Vec<f64> = (0..count).map(value).collect();
        let tensor = match input {
            F32 => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as f32).collect::<Vec<_>>()),
            F16 => Tensor::from_slice(shape, &numbers.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>()),
            Bf16 => {
                Tensor::from_slice(shape, &numbers.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>())
            }
            I32 => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as i32).collect::<Vec<_>>()),
            _ => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as i64 as i8).collect::<Vec<_>>()),
        };
        tensor.expect("the shape holds the numbers")
    };
    let (rows, columns) = (ROWS as usize, COLUMNS as usize);
    let b_shape = match b_dims {
        "MN" => vec![rows, columns],
        "N" => vec![columns],
        _ => vec![rows],
    };
    let inputs = [
        tensor(&[rows, columns], values[0]),
        tensor(&b_shape, values[1]),
        Tensor::zeros(&[rows, columns], output).expect("a small tensor"),
    ];
    let sizes = |s: Symbol| bindings.iter().find(|b| b.0 == s).map(|b| b.1);
    if CHECKED.fetch_add(1, Ordering::Relaxed).is_multiple_of(16) {
        meaning::compare(&kernel, &options, &sizes)
            .unwrap_or_else(|e| panic!("{what} {input} to {output}: {e}"));
    }
    let expected = Interpreter::run(&kernel, &sizes, &inputs).unwrap_or_else(|e| panic!("{what}: {e}"));
    let device = Device::simulator(Target::GFX942);
    let buffers: Vec<Buffer> = inputs.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
    let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
    launch.run().unwrap_or_else(|e| panic!("{what} {input} to {output}: {e}"));
    let bytes = buffers[2].read_bytes().expect("readable");
    let got = Tensor::from_bytes(&[rows, columns], output, &bytes).expect("whole").to_f64();
    for (at, (g, w)) in got.iter().zip(expected[2].to_f64()).enumerate() {
        let same = match tolerance {
            _ if g.is_nan() || w.is_nan() => g.is_nan() && w.is_nan(),
            _ if *g == w => true,
            Tolerance::Exact => false,
            Tolerance::Relative(most) => (g - w).abs() <= most * w.abs(),
        };
        let [x, y] = [0, 1].map(|i: usize| inputs[i].to_f64());
        let y = if y.len() == x.len() {
            y[at]
        } else {
            y[if b_dims == "N" { at % columns } else { at / columns }]
        };
        assert!(same, "{what} {input} to {output} of {} and {y} is {g}, should be {w}", x[at]);
    }
}

/// Numbers of both signs, large and small, repeating with different periods.
fn mixed(at: usize) -> f64 {
    const NUMBERS: [f64; 17] = [
        0.0, 1.0, -1.0, 0.5, 3.0, -7.25, 100.0, -127.0, 0.015625, 2.5, -0.375, 11.0, 63.0, -64.0, 5.0, -2.0,
        127.0,
    ];
    NUMBERS[at % NUMBERS.len()]
}

fn divisors(at: usize) -> f64 {
    const NUMBERS: [f64; 13] = [1.0, -1.0, 3.0, 7.0, -2.0, 10.0, 0.25, 127.0, -5.0, 6.0, 9.0, -11.0, 2.0];
    NUMBERS[at % NUMBERS.len()]
}

fn positive(at: usize) -> f64 {
    0.01 + (at % 101) as f64 * 0.37
}

fn moderate(at: usize) -> f64 {
    (at % 61) as f64 * 0.25 - 7.5
}

const DTYPES: [DType; 5] = [F32, F16, Bf16, I32, I8];

#[test]
fn arithmetic_is_exact() {
    for dtype in DTYPES {
        let same = (dtype, dtype);
        let values = [mixed as fn(usize) -> f64, |at| mixed(at * 5 + 3)];
        check("add", same, values, Tolerance::Exact, "MN", |_, a, b| a + b);
        check("sub", same, values, Tolerance::Exact, "MN", |_, a, b| a - b);
        check("mul", same, values, Tolerance::Exact, "MN", |_, a, b| a * b);
        check("min", same, values, Tolerance::Exact, "MN", |_, a, b| a.minimum(b));
        check("max", same, values, Tolerance::Exact, "MN", |_, a, b| a.maximum(b));
        check("neg", same, values, Tolerance::Exact, "MN", |_, a, b| -a + b);
        check("abs", same, values, Tolerance::Exact, "MN", |_, a, b| a.abs() - b);
        check("div", same, [mixed, divisors], Tolerance::Exact, "MN", |_, a, b| a / b);
    }
}

#[test]
fn division_by_zero_and_extremes() {
    fn numerators(at: usize) -> f64 {
        [0.0, 5.0, -5.0, f64::from(i32::MIN), f64::from(i32::MAX)][at % 5]
    }
    fn denominators(at: usize) -> f64 {
        [0.0, -1.0, 1.0, 3.0, f64::from(i32::MIN), -7.0, f64::from(i32::MAX)][at % 7]
    }
    check("div", (I32, I32), [numerators, denominators], Tolerance::Exact, "MN", |_, a, b| a / b);
    check("div", (F32, F32), [numerators, denominators], Tolerance::Exact, "MN", |_, a, b| a / b);
    fn bytes(at: usize) -> f64 {
        (at % 256) as f64 - 128.0
    }
    fn small(at: usize) -> f64 {
        (at % 23) as f64 - 11.0
    }
    check("div", (I8, I8), [bytes, small], Tolerance::Exact, "MN", |_, a, b| a / b);
}

#[test]
fn functions_are_close() {
    for (dtype, ulp) in [(F32, 3e-7), (F16, 1e-3), (Bf16, 8e-3)] {
        let same = (dtype, dtype);
        let close = Tolerance::Relative(ulp);
        check("exp2", same, [moderate, moderate], close, "MN", |_, a, b| (a.exp2() + b.exp2()) * 0.5);
        check("exp", same, [moderate, moderate], close, "MN", |_, a, b| (a.exp() + b.exp()) * 0.5);
        check("tanh", same, [moderate, moderate], close, "MN", |_, a, _| a.tanh());
        check("log2", same, [|at| 2.0 + positive(at), positive], close, "MN", |_, a, _| a.log2());
        check("sqrt", same, [positive, positive], close, "MN", |_, a, _| a.sqrt());
        check("reciprocal", same, [positive, positive], close, "MN", |_, a, _| a.reciprocal());
    }
}

#[test]
fn comparisons_select() {
    for dtype in DTYPES {
        let values = [mixed as fn(usize) -> f64, |at| mixed(at * 3 + 1)];
        type Compare = fn(Value, Value) -> Value;
        let predicates: [(&str, Compare); 6] = [
            ("eq", |a, b| a.equal(b)),
            ("ne", |a, b| a.not_equal(b)),
            ("lt", |a, b| a.less(b)),
            ("le", |a, b| a.less_equal(b)),
            ("gt", |a, b| a.greater(b)),
            ("ge", |a, b| a.greater_equal(b)),
        ];
        for (name, compare) in predicates {
            check(name, (dtype, dtype), values, Tolerance::Exact, "MN", |w, a, b| {
                let condition = compare(a, b);
                w.select(condition, a + b, b)
            });
        }
    }
    fn nans(at: usize) -> f64 {
        if at.is_multiple_of(3) { f64::NAN } else { mixed(at) }
    }
    check("lt", (F32, F32), [nans, mixed], Tolerance::Exact, "MN", |w, a, b| {
        let condition = a.less(b);
        w.select(condition, b, b + 1.0)
    });
    check("ne", (F32, F32), [nans, mixed], Tolerance::Exact, "MN", |w, a, b| {
        let condition = a.not_equal(b);
        w.select(condition, b, b + 1.0)
    });
    check("min", (F32, F32), [nans, mixed], Tolerance::Exact, "MN", |_, a, b| a.minimum(b));
}

#[test]
fn casts_between_all_dtypes() {
    fn wide(at: usize) -> f64 {
        const NUMBERS: [f64; 12] =
            [0.0, 1.5, -1.5, 300.7, -300.7, 65504.0, -70000.0, 3e9, -3e9, 0.1, -128.4, 127.6];
        NUMBERS[at % NUMBERS.len()]
    }
    for from in DTYPES {
        for to in DTYPES {
            check("cast", (from, to), [wide, mixed], Tolerance::Exact, "MN", |_, a, _| a.cast(to));
        }
    }
    fn nan(_: usize) -> f64 {
        f64::NAN
    }
    for to in DTYPES {
        check("cast of NaN", (F32, to), [nan, mixed], Tolerance::Exact, "MN", |_, a, _| a.cast(to));
    }
}

#[test]
fn values_with_fewer_dimensions_broadcast() {
    for dtype in DTYPES {
        for dims in ["N", "M"] {
            check("broadcast", (dtype, dtype), [mixed, mixed], Tolerance::Exact, dims, |_, a, b| a + b);
            check("broadcast", (dtype, dtype), [mixed, mixed], Tolerance::Exact, dims, |_, a, b| b - a);
        }
        check("constants", (dtype, dtype), [mixed, mixed], Tolerance::Exact, "MN", |_, a, b| {
            if dtype.is_float() { a * 2.0 - b * 3.0 + 1.0 } else { a * 2 - b * 3 + 1 }
        });
    }
}

/// A sum over two tiled dimensions, one loop in the other, with sizes that the tiles do not divide: both
/// loops advance one memory.
#[test]
fn nested_loops_advance_together() {
    let [m, n, p, q, bm, bn] = symbols(["M", "N", "P", "Q", "BLOCK_M", "BLOCK_N"]);
    let kernel = Kernel::trace("nested", |w| {
        w.distribute([
            workgroup(m, bm, 0),
            workgroup(n, bn, 1),
            wave(m, bm),
            wave(n, bn),
            tile(p, 1),
            tile(q, 16),
        ]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let a = w.memory("a", [p, m, q], Global, F16);
        let b = w.memory("b", [p, n, q], Global, F16);
        let c = w.memory("c", [p, m, n], Global, F32);
        w.iterate(p, [], |w, []| {
            let one = w.register([p, m, n], F32, 1.0);
            let [sum] = w.iterate(q, [one], |w, [sum]| {
                let (a, b) = (w.read(a), w.read(b));
                [w.mma(a, b, sum)]
            });
            w.write(sum, c);
            []
        });
    })
    .expect("the kernel is valid");
    let bindings = [(m, 20), (n, 33), (p, 3), (q, 40), (bm, 16), (bn, 16)];
    let options = bindings.iter().fold(Options::new(Target::GFX942), |o, &(s, v)| o.set(s, v));
    let executable = verified(&kernel, &options);
    let inputs = [
        Tensor::random(&[3, 20, 40], F16, 1).expect("small"),
        Tensor::random(&[3, 33, 40], F16, 2).expect("small"),
        Tensor::zeros(&[3, 20, 33], F32).expect("small"),
    ];
    let sizes = |s: Symbol| bindings.iter().find(|b| b.0 == s).map(|b| b.1);
    let expected = Interpreter::run(&kernel, &sizes, &inputs).unwrap_or_else(|e| panic!("{e}"));
    let device = Device::simulator(Target::GFX942);
    let buffers: Vec<Buffer> = inputs.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
    let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
    launch.run().unwrap_or_else(|e| panic!("{e}"));
    let got =
        Tensor::from_bytes(&[3, 20, 33], F32, &buffers[2].read_bytes().expect("readable")).expect("whole");
    let wrong = got.to_f64().iter().zip(expected[2].to_f64()).position(|(g, w)| *g != w);
    assert_eq!(wrong, None, "the first wrong element");
}

/// A value and the same bits as another dtype share registers, and each is used after the other has changed:
/// the loop carries a sum, and the bits of the sum before.
#[test]
fn bits_of_carried_values_are_values_of_their_own() {
    let [m, n, k, bm, bn] = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N"]);
    let kernel = Kernel::trace("before", |w| {
        w.distribute([workgroup(m, bm, 0), workgroup(n, bn, 1), wave(m, bm), wave(n, bn), tile(k, 16)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let (a, b) = (w.memory("a", [m, k], Global, F16), w.memory("b", [n, k], Global, F16));
        let (c, d) = (w.memory("c", [m, n], Global, F32), w.memory("d", [m, n], Global, I32));
        let sum = w.register([m, n], F32, 0.0);
        let bits = w.register([m, n], I32, -1.0);
        let [sum, bits] = w.iterate(k, [sum, bits], |w, [sum, _]| {
            let next = w.mma(w.read(a), w.read(b), sum);
            [next, sum.bitcast(I32)]
        });
        let other = sum.bitcast(I32);
        w.write(sum, c);
        w.write(bits - other, d);
    })
    .expect("the kernel is valid");
    let inputs = [
        Tensor::random(&[20, 80], F16, 1).expect("small"),
        Tensor::random(&[33, 80], F16, 2).expect("small"),
        Tensor::zeros(&[20, 33], F32).expect("small"),
        Tensor::zeros(&[20, 33], I32).expect("small"),
    ];
    let bindings = [(m, 20), (n, 33), (k, 80), (bm, 16), (bn, 16)];
    let sizes = |s: Symbol| bindings.iter().find(|b| b.0 == s).map(|b| b.1);
    let expected = Interpreter::run(&kernel, &sizes, &inputs).unwrap_or_else(|e| panic!("{e}"));
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::Modulo] {
        let options = Options::new(Target::GFX942).schedule(schedule.clone());
        let options = bindings.iter().fold(options, |o, &(s, v)| o.set(s, v));
        let executable = verified(&kernel, &options);
        let device = Device::simulator(Target::GFX942);
        let buffers: Vec<Buffer> = inputs.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
        let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
        launch.run().unwrap_or_else(|e| panic!("{e}"));
        for at in [2, 3] {
            let bytes = buffers[at].read_bytes().expect("readable");
            assert!(bytes == expected[at].to_bytes(), "memory {at} with {schedule:?}");
        }
    }
}

/// What a row of the table of operations admits, machine and interpreter can do; what it does not, both
/// refuse.
#[test]
fn every_row_holds_in_every_dtype() {
    let mut words: Vec<&str> = Op::rows().map(|row| row.word).collect();
    assert!(Op::rows().all(|row| !row.word.is_empty() && !row.doc.is_empty()));
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Op::rows().count(), "two operations have one word: {words:?}");
    for row in Op::element_wise().map(|op| op.row()) {
        for from in DTYPES {
            let targets = match row.result {
                ResultType::Converted(_) => DTYPES.to_vec(),
                _ => vec![from],
            };
            for to in targets {
                let (operands, sizes) = match (row.result, row.takes.map_or(0, <[_]>::len)) {
                    (ResultType::Chosen, _) => ("%c, %x, %x".to_owned(), true),
                    (ResultType::Converted(sizes), _) => (format!("%x {to}"), sizes.admit(from, to)),
                    (_, count) => (vec!["%x"; count].join(", "), true),
                };
                let text = format!(
                    "kernel k {{\n  workgroup N, 256, 0\n  a = memory [N] global {from}\n  c = memory [N] global {to}\n  \
                     %x = read a\n  %c = compare lt %x, %x\n  %y = {} {operands}\n  write %y, c\n}}\n",
                    row.word
                );
                let kernel = Kernel::parse(&text, "k").unwrap_or_else(|faults| panic!("{text}{faults:?}"));
                let options = Options::new(Target::GFX942).set(Symbol::new("N"), 256);
                let tensors = [from, to].map(|dtype| Tensor::zeros(&[256], dtype).expect("small"));
                let compiles = kernel.compile(&options).is_ok();
                let runs = Interpreter::run(&kernel, &|_| Some(256), &tensors).is_ok();
                let admitted = row.operands.admit(from) && sizes;
                assert_eq!([compiles, runs], [admitted; 2], "{} of {from} to {to}", row.word);
            }
        }
    }
}

/// A workgroup has rows of every length as a whole, in kernels that neither reduce nor keep anything in LDS.
#[test]
fn whole_dimensions_have_every_size() {
    let shapes =
        [[1, 65], [9, 100], [3, 127], [5, 130], [4, 33], [2, 200], [7, 511], [1, 513], [6, 1000], [10, 23]];
    for [m, n] in shapes {
        for (waves, is_turned) in [(1, false), (1, true), (4, false), (4, true)] {
            let [dm, dn] = symbols(["M", "N"]);
            let shape = if is_turned { [dn, dm] } else { [dm, dn] };
            let kernel = Kernel::trace("whole", |w| {
                w.distribute([workgroup(dm, 4, 0), wave(dm, 4 / waves)]);
                let [x, z] = [w.memory("x", [dm, dn], Global, F16), w.memory("z", [dn], Global, F16)];
                let y = w.memory("y", shape, Global, F16);
                w.write(w.read(x) + w.read(z), y);
            })
            .expect("well-formed");
            let result = if is_turned { [n, m] } else { [m, n] };
            let places = (0..m * n).map(|at| if is_turned { (at % m, at / m) } else { (at / n, at % n) });
            let expected = places.map(|(row, column)| number(row * n + column) + number(column)).collect();
            Case {
                name: format!("{m}x{n}, {waves} waves, turned {is_turned}"),
                kernel,
                sizes: vec![("M", m as i64), ("N", n as i64)],
                dynamic: if n % 2 == 0 { vec!["M"] } else { Vec::new() },
                schedule: Schedule::None,
                inputs: vec![tensor(F16, &[m, n]), tensor(F16, &[n]), zeros(F16, &result)],
                expected,
            }
            .check();
        }
    }
}
