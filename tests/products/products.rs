//! Products of f64, and of two 8-bit floats of different dtypes, against plain loops, on shapes that tiles
//! divide and others, of known and open sizes, with every order of the factors' dimensions. Products of
//! computed factors over dimensions that no tile divides: only the elements that exist are summed up.

use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, of_numbers, tensor, zeros};
use groundswell_testing::judged::verified;

const SHAPES: [[usize; 3]; 11] = [
    [1, 1, 1],
    [16, 16, 32],
    [64, 64, 64],
    [5, 40, 7],
    [33, 17, 100],
    [70, 50, 130],
    [128, 32, 33],
    [1, 100, 64],
    [100, 1, 65],
    [31, 65, 3],
    [96, 80, 256],
];

fn case(mma: Mma, [m, n, k]: [usize; 3], at: usize) -> Case {
    let [dm, dn, dk] = symbols(["M", "N", "K"]);
    let [left, right] = mma.inputs();
    let (turned, sum) = ([at & 1 != 0, at & 2 != 0], mma.accumulator());
    let edge = i64::from(mma.m());
    let kernel = Kernel::trace("product", |w| {
        w.distribute([workgroup(dm, 2 * edge, 0), workgroup(dn, edge, 1), tile(dk, 32), wave(dm, edge)]);
        w.mma_type(mma);
        let dims = |row, turned| if turned { [dk, row] } else { [row, dk] };
        let space = if at & 4 != 0 { Global } else { Shared };
        let a = w.memory("a", dims(dm, turned[0]), space, left);
        let b = w.memory("b", dims(dn, turned[1]), space, right);
        let c = w.memory("c", [dm, dn], Global, sum);
        let zero = w.register([dm, dn], sum, 0.0);
        let [sums] = w.iterate(dk, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
        w.write(sums, c);
    })
    .expect("well-formed");
    let value = |row: usize, column: usize, seed: usize| number(row * k + column + seed);
    let laid = |rows: usize, turned: bool, seed: usize| -> Vec<f64> {
        match turned {
            false => (0..rows * k).map(|at| value(at / k, at % k, seed)).collect(),
            true => (0..rows * k).map(|at| value(at % rows, at / rows, seed)).collect(),
        }
    };
    let mut expected = Vec::new();
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        expected.push((0..k).map(|at| value(row, at, 1) * value(column, at, 5)).sum());
    }
    let shape = |rows: usize, turned: bool| if turned { [k, rows] } else { [rows, k] };
    Case {
        name: format!("{mma} {m}x{n}x{k} {at}"),
        kernel,
        sizes: vec![("M", m as i64), ("N", n as i64), ("K", k as i64)],
        dynamic: if at.is_multiple_of(3) { vec!["M", "N", "K"] } else { vec![] },
        schedule: [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo][at % 4].clone(),
        inputs: vec![
            of_numbers(left, &shape(m, turned[0]), &laid(m, turned[0], 1)),
            of_numbers(right, &shape(n, turned[1]), &laid(n, turned[1], 5)),
            zeros(sum, &[m, n]),
        ],
        expected,
    }
}

#[test]
fn products_of_f64() {
    for (at, shape) in SHAPES.into_iter().chain(SHAPES).enumerate() {
        case(Mma::F64_16x16x4_F64, shape, at).check();
    }
}

#[test]
fn products_of_two_8_bit_dtypes() {
    let mixed = [
        Mma::F32_16x16x32_F8E4M3FNUZ_F8E5M2FNUZ,
        Mma::F32_16x16x32_F8E5M2FNUZ_F8E4M3FNUZ,
        Mma::F32_32x32x16_F8E4M3FNUZ_F8E5M2FNUZ,
        Mma::F32_32x32x16_F8E5M2FNUZ_F8E4M3FNUZ,
    ];
    for (number, mma) in mixed.into_iter().enumerate() {
        for (at, shape) in SHAPES.into_iter().enumerate() {
            case(mma, shape, at + number).check();
        }
    }
}

/// The accumulator starts with a value that is read, and the result is used in arithmetic.
#[test]
fn sums_of_f64_go_on() {
    let [dm, dn, dk] = symbols(["M", "N", "K"]);
    for [m, n, k] in SHAPES {
        let kernel = Kernel::trace("product", |w| {
            w.distribute([workgroup(dm, 16, 0), workgroup(dn, 16, 1), tile(dk, 16)]);
            w.mma_type(Mma::F64_16x16x4_F64);
            let [a, b] = [("a", dm), ("b", dn)].map(|(name, row)| w.memory(name, [row, dk], Shared, F64));
            let c = w.memory("c", [dm, dn], Global, F64);
            let d = w.memory("d", [dm, dn], Global, F64);
            let [sums] = w.iterate(dk, [w.read(c)], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
            w.write(sums * 2.0 + w.read(c), d);
        })
        .expect("well-formed");
        let mut expected = Vec::new();
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let start = number(row * n + column);
            let sum: f64 = (0..k).map(|at| number(row * k + at) * number(column * k + at)).sum();
            expected.push((start + sum) * 2.0 + start);
        }
        Case {
            name: format!("{m}x{n}x{k}"),
            kernel,
            sizes: vec![("M", m as i64), ("N", n as i64), ("K", k as i64)],
            dynamic: vec![],
            schedule: Schedule::None,
            inputs: vec![
                tensor(F64, &[m, k]),
                tensor(F64, &[n, k]),
                tensor(F64, &[m, n]),
                zeros(F64, &[m, n]),
            ],
            expected,
        }
        .check();
    }
}

/// What is done to a factor: in a kernel, with a scalar at hand, and to a number.
struct Computed {
    name: &'static str,
    values: fn(&Tracer, Value, Value) -> Value,
    numbers: fn(f64, f64) -> f64,
}

/// What makes something of the zeros beyond the end: a number, an infinity, or what is not a number.
const COMPUTED: [Computed; 7] = [
    Computed { name: "x", values: |_, x, _| x, numbers: |x, _| x },
    Computed { name: "x + 1", values: |_, x, _| x + 1.0, numbers: |x, _| x + 1.0 },
    Computed { name: "1 / x", values: |_, x, _| x.reciprocal(), numbers: |x, _| 1.0 / x },
    Computed { name: "exp2 x", values: |_, x, _| x.exp2(), numbers: |x, _| x.exp2() },
    Computed { name: "x times a scalar", values: |_, x, s| x * s, numbers: |x, s| x * s },
    Computed {
        name: "x times infinity",
        values: |_, x, _| x * f64::INFINITY,
        numbers: |x, _| x * f64::INFINITY,
    },
    Computed {
        name: "x where it exists",
        values: |w, x, _| {
            let [k] = symbols(["K"]);
            w.select(w.self_index(k).less(w.size(k)), x, w.register([], F32, 7.0))
        },
        numbers: |x, _| x,
    },
];

#[test]
fn what_stands_beyond_the_end_takes_no_part_whatever_is_made_of_it() {
    let [dm, dn, dk] = symbols(["M", "N", "K"]);
    let [m, n] = [16, 16];
    let powers = |at: usize| [1.0, 2.0, -2.0, 4.0, -1.0][(at * 7 + at / 5) % 5];
    for (at, left) in COMPUTED.iter().enumerate() {
        for (number, right) in COMPUTED.iter().enumerate() {
            let (target, number) =
                (Target::ALL[(at + number) % Target::ALL.len()], at * COMPUTED.len() + number);
            let k = [20, 5, 33][number % 3];
            // The sum of a loop, in tiles of different sizes, and of the whole dimension.
            for elements in [Some(16), Some(64), None] {
                let scale = [f64::INFINITY, 2.0][number % 2];
                let kernel = Kernel::trace("product", |w| {
                    w.distribute([workgroup(dm, 16, 0), workgroup(dn, 16, 1)]);
                    if let Some(elements) = elements {
                        w.distribute([tile(dk, elements)]);
                    }
                    w.mma_type(MatrixShape::M16x16);
                    let s = w.scalar("s", F32);
                    let space = if number % 4 < 2 { Global } else { Shared };
                    let [a, b] =
                        [("a", dm), ("b", dn)].map(|(name, row)| w.memory(name, [row, dk], space, F32));
                    let c = w.memory("c", [dm, dn], Global, F32);
                    let zero = w.register([dm, dn], F32, 0.0);
                    let product = |w: &Tracer, sum: Value| {
                        w.mma((left.values)(w, w.read(a), s), (right.values)(w, w.read(b), s), sum)
                    };
                    let sum = match elements {
                        Some(_) => w.iterate(dk, [zero], |w, [sum]| [product(w, sum)])[0],
                        None => product(w, zero),
                    };
                    w.write(sum, c);
                })
                .expect("well-formed");
                let mut expected = Vec::new();
                for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                    let element = |at: usize| {
                        let (x, y) = (powers(row * k + at), powers(column * k + at + 3));
                        (left.numbers)(x, scale) * (right.numbers)(y, scale)
                    };
                    expected.push((0..k).map(element).sum());
                }
                let numbers = |rows: usize, first: usize| {
                    of_numbers(
                        F32,
                        &[rows, k],
                        &(0..rows * k).map(|at| powers(at + first)).collect::<Vec<_>>(),
                    )
                };
                Case {
                    name: format!("{} by {} in {elements:?} of {k} on {target}", left.name, right.name),
                    kernel,
                    sizes: vec![("M", m as i64), ("N", n as i64), ("K", k as i64)],
                    dynamic: if elements.is_some() && number % 5 == 0 { vec!["K"] } else { vec![] },
                    schedule: [Schedule::None, Schedule::Prefetch, Schedule::Automatic][number % 3].clone(),
                    inputs: vec![
                        Tensor::scalar(scale as f32),
                        numbers(m, 0),
                        numbers(n, 3),
                        zeros(F32, &[m, n]),
                    ],
                    expected,
                }
                .check_on(target, None);
            }
        }
    }
}

/// Attention over keys that no tile divides, as anyone would write it. Logits are far below zero, so that
/// what stands in the place of keys that do not exist would be infinite in f16.
const ATTENTION: &str = "kernel attention {
  workgroup M, 16, 0
  tile L, TILE
  mma 16x16
  q = memory [M, K] global f16
  k = memory [L, K] shared f16
  v = memory [D, L] global f16
  o = memory [M, D] global f32
  %low = register [M] f32 -1000000.0
  %none = register [M] f32 0.0
  %zero = register [M, D] f32 0.0
  %x = read q
  %m, %s, %acc = iterate L (%m0 = %low, %s0 = %none, %a0 = %zero) {
    %y = read k
    %z = register [L, M] f32 0.0
    %p = mma %y, %x, %z
    %top = reduce_max %p over L
    %m1 = max %m0, %top
    %d = sub %p, %m1
    %e = exp %d
    %dm = sub %m0, %m1
    %f = exp %dm
    %es = reduce_sum %e over L
    %s1 = mul %s0, %f
    %s2 = add %s1, %es
    %eh = cast %e f16
    %w = read v
    %a1 = mul %a0, %f
    %a2 = mma %eh, %w, %a1
    yield %m1, %s2, %a2
  }
  %r = div %acc, %s
  write %r, o
}";

#[test]
fn attention_over_keys_that_no_tile_divides() {
    let [m, k, d, l] = [16, 32, 16, 20];
    let key = |at: usize| -1.0 - (at * 5 % 7) as f64 / 8.0;
    let mut expected = Vec::new();
    let logits: Vec<f64> = (0..l).map(|key_at| (0..k).map(|at| key(key_at * k + at)).sum()).collect();
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|logit| (logit - top).exp()).collect();
    for column in 0..d {
        let weighted: f64 =
            weights.iter().enumerate().map(|(at, weight)| weight * number(column * l + at)).sum();
        expected.push(weighted / weights.iter().sum::<f64>());
    }
    for target in Target::ALL.iter().filter(|target| target.name != "gfx906") {
        for tile in ["32", "16", "64"] {
            let kernel =
                Kernel::parse(&ATTENTION.replace("TILE", tile), "attention.gsw").expect("well-formed");
            let sizes = [("M", m), ("K", k), ("D", d), ("L", l)];
            let options = sizes
                .iter()
                .fold(Options::new(*target), |options, &(symbol, size)| options.set(symbol, size as i64));
            let inputs = [
                of_numbers(F16, &[m, k], &vec![1.0; m * k]),
                of_numbers(F16, &[l, k], &(0..l * k).map(key).collect::<Vec<_>>()),
                of_numbers(F16, &[d, l], &(0..d * l).map(number).collect::<Vec<_>>()),
                zeros(F32, &[m, d]),
            ];
            let value = |symbol: Symbol| {
                sizes.iter().find(|(name, _)| *name == symbol.name()).map(|size| size.1 as i64)
            };
            let meant = Interpreter::run(&kernel, &value, &inputs).expect("it runs");
            let executable = verified(&kernel, &options);
            let device = Device::simulator(*target);
            let buffers: Vec<Buffer> =
                inputs.iter().map(|input| device.upload_tensor(input).expect("fits")).collect();
            let launch =
                buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
            launch.run().expect("it runs");
            let bytes = buffers[3].read_bytes().expect("readable");
            let got = Tensor::from_bytes(&[m, d], F32, &bytes).expect("whole");
            for (who, got) in [("the interpreter", meant[3].to_f64()), ("the machine code", got.to_f64())] {
                for (at, got) in got.into_iter().enumerate() {
                    let want = expected[at % d];
                    assert!(
                        (got - want).abs() <= 0.01 * want.abs().max(1.0),
                        "{who}, {target}, tiles of {tile}: {got} at {at}, should be {want}"
                    );
                }
            }
        }
    }
}

/// Factors with scales for blocks, and scales, that are computed: in one instruction, and multiplied first.
#[test]
fn computed_factors_and_scales_of_blocks() {
    let text = |form: &str| {
        let (x, sx) = match form {
            "plain" => ("", ""),
            "shifted" => ("    %x = sub 2.0, %x0\n", ""),
            _ => ("    %x = sub 2.0, %x0\n", "    %sx = max %sx0, %sx0\n"),
        };
        let (of_x, of_sx) =
            (if x.is_empty() { "%x0" } else { "%x" }, if sx.is_empty() { "%sx0" } else { "%sx" });
        format!(
            "kernel blocks {{
  workgroup M, 16, 0
  workgroup N, 16, 1
  tile K, 128
  mma 16x16
  a = memory [M, K] global f8e4m3fn
  sa = memory [M, K/32] global f8e8m0
  b = memory [N, K] global f8e4m3fn
  sb = memory [N, K/32] global f8e8m0
  c = memory [M, N] global f32
  %zero = register [M, N] f32 0.0
  %sum = iterate K (%acc = %zero) {{
    %x0 = read a
    %sx0 = read sa
    %y0 = read b
    %sy = read sb
{x}{sx}    %y = add %y0, 1.0
    %next = scaled_mma {of_x}, {of_sx}, %y, %sy, %acc
    yield %next
  }}
  write %sum, c
}}"
        )
    };
    let (m, n) = (16, 16);
    for (form, k) in [("plain", 160usize), ("shifted", 160), ("shifted", 40), ("scaled", 200), ("scaled", 33)]
    {
        let blocks = k.div_ceil(32);
        let scale = |at: usize| [0.5, 1.0, 2.0][at % 3];
        let all = |count: usize, of: &dyn Fn(usize) -> f64| (0..count).map(of).collect::<Vec<_>>();
        let inputs = vec![
            of_numbers(F8E4M3Fn, &[m, k], &all(m * k, &number)),
            of_numbers(F8E8M0, &[m, blocks], &all(m * blocks, &scale)),
            of_numbers(F8E4M3Fn, &[n, k], &all(n * k, &|at| number(at + 2))),
            of_numbers(F8E8M0, &[n, blocks], &all(n * blocks, &scale)),
            zeros(F32, &[m, n]),
        ];
        let mut expected = Vec::new();
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let element = |at: usize| {
                let x = number(row * k + at);
                let x = if form == "plain" { x } else { 2.0 - x };
                let y = number(column * k + at + 2) + 1.0;
                x * scale(row * blocks + at / 32) * y * scale(column * blocks + at / 32)
            };
            expected.push((0..k).map(element).sum());
        }
        let kernel =
            |text: String| Kernel::parse(&text, "blocks.gsw").unwrap_or_else(|faults| panic!("{faults:?}"));
        let emulated = text(form).replace("  mma 16x16\n", "  mma 16x16\n  emulate f32\n");
        for (target, text) in [(Target::GFX950, text(form)), (Target::GFX942, emulated)] {
            Case {
                name: format!("{form} {k} on {target}"),
                kernel: kernel(text),
                sizes: vec![("M", m as i64), ("N", n as i64), ("K", k as i64)],
                dynamic: vec![],
                schedule: Schedule::None,
                inputs: inputs.clone(),
                expected: expected.clone(),
            }
            .check_on(target, None);
        }
    }
}

/// A mask that is left in a remainder takes a comparison and a selection for each element: its constants are
/// made once.
#[test]
fn constants_of_masks_are_made_once() {
    let kernel = Kernel::parse(&ATTENTION.replace("TILE", "32"), "attention.gsw").expect("well-formed");
    let sizes = [("M", 16), ("K", 32), ("D", 16), ("L", 84)];
    let options =
        sizes.iter().fold(Options::new(Target::GFX942), |options, &(name, size)| options.set(name, size));
    let executable = kernel.compile(&options).expect("it compiles");
    let code = executable.assembly().expect("text");
    let count =
        |words: &[&str]| code.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    let masked = count(&["v_cndmask_b32"]);
    assert!(masked >= 16 && count(&["v_cmp_"]) == masked, "{code}");
    assert_eq!(count(&["v_mov_b32", "0x7fc00000"]), 1, "a NaN takes part in no maximum\n{code}");
    assert!(count(&["v_mov_b32"]) < masked, "{code}");
}
