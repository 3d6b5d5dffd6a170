//! Reductions over several dimensions at once: the interpreter equals loops in f64, and compiled code equals
//! both, in check mode.

use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::prelude::*;
use groundswell::text::Detail;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::meaning;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How a kernel over `[B, M, N]` spreads its dimensions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Spread {
    /// Nothing has a tile.
    Open,
    /// Workgroups have some of B.
    Batches,
    /// And their waves share M and N.
    Waves,
}

const SHAPES: [[usize; 3]; 20] = [
    [1, 1, 1],
    [2, 1, 1],
    [1, 7, 1],
    [3, 1, 9],
    [2, 2, 2],
    [5, 4, 64],
    [4, 8, 16],
    [3, 16, 16],
    [1, 33, 5],
    [2, 3, 65],
    [7, 5, 31],
    [2, 64, 4],
    [3, 17, 64],
    [1, 10, 100],
    [4, 32, 32],
    [2, 9, 127],
    [9, 2, 3],
    [2, 40, 40],
    [1, 64, 64],
    [6, 13, 21],
];

fn distribute(w: &Tracer, spread: Spread, [_, rows, columns]: [usize; 3]) {
    let [b, m, n] = symbols(["B", "M", "N"]);
    let half = |size: usize| (size as u64).next_power_of_two().div_ceil(2).cast_signed();
    match spread {
        Spread::Open => {}
        Spread::Batches => w.distribute([workgroup(b, 2, 0)]),
        Spread::Waves => {
            w.distribute([workgroup(b, 4, 0), wave(b, 2), wave(m, half(rows)), wave(n, half(columns))]);
        }
    }
}

/// Sums, greatest elements and their places over M and N, and sums over all of a constant number of values.
fn kernel(spread: Spread, sizes: [usize; 3]) -> Kernel {
    let [b, m, n] = symbols(["B", "M", "N"]);
    Kernel::trace("several", |w| {
        distribute(w, spread, sizes);
        let x = w.read(w.memory("x", [b, m, n], Global, F32));
        w.write(x.sum([m, n]), w.memory("sums", [b], Global, F32));
        w.write(x.max([n, m]), w.memory("most", [b], Global, F32));
        w.write(x.argmax([m, n]), w.memory("places", [b], Global, I32));
        w.write(x.mean([m, n]), w.memory("means", [b], Global, F32));
        let small = w.select(x.less(3.0).all([m, n]), 1, 0);
        w.write(small, w.memory("small", [b], Global, I32));
    })
    .unwrap()
}

fn expected(x: &[f64], [batches, rows, columns]: [usize; 3]) -> [Vec<f64>; 5] {
    let mut all: [Vec<f64>; 5] = Default::default();
    for batch in 0..batches {
        let part = &x[batch * rows * columns..][..rows * columns];
        let (mut sum, mut most, mut place, mut small) = (0.0, f64::NEG_INFINITY, 0, 1.0);
        for row in 0..rows {
            for column in 0..columns {
                let one = part[row * columns + column];
                sum += one;
                if one > most {
                    (most, place) = (one, row * columns + column);
                }
                if one >= 3.0 {
                    small = 0.0;
                }
            }
        }
        let mean = sum / (rows * columns) as f64;
        for (list, one) in all.iter_mut().zip([sum, most, place as f64, mean, small]) {
            list.push(one);
        }
    }
    all
}

fn judge(spread: Spread, sizes: [usize; 3], dynamic: bool, rng: &mut StdRng) {
    let what = format!("{spread:?} {sizes:?} dynamic {dynamic}");
    let [batches, rows, columns] = sizes;
    let kernel = kernel(spread, sizes);
    let value = |symbol: Symbol| {
        let at = ["B", "M", "N"].iter().position(|name| *name == symbol.name())?;
        Some(sizes[at] as i64)
    };
    let most = if rng.random_bool(0.5) { 2 } else { 4 };
    let x: Vec<f32> = (0..batches * rows * columns).map(|_| rng.random_range(-most..=most) as f32).collect();
    let mut memories = vec![Tensor::from_slice(&sizes, &x).unwrap()];
    for dtype in [F32, F32, I32, F32, I32] {
        memories.push(match dtype {
            I32 => Tensor::from_slice(&[batches], &vec![0i32; batches]).unwrap(),
            _ => Tensor::from_slice(&[batches], &vec![0f32; batches]).unwrap(),
        });
    }
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let after =
        Interpreter::run(&kernel, &value, &memories).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    for (found, expected) in after[1..].iter().zip(expected(&wide, sizes)) {
        for (found, expected) in found.to_f64().iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-6 * expected.abs(), "{what}: {found}, not {expected}");
        }
    }
    let names = ["B", "M", "N"].into_iter().zip(sizes).skip(usize::from(dynamic));
    let mut options = Options::new(Target::GFX942);
    for (name, size) in names {
        options = options.set(Symbol::new(name), size as i64);
    }
    if dynamic {
        options = options.dynamic(Symbol::new("B"));
    }
    let executable = verified(&kernel, &options);
    for seed in 0..5 {
        assert_right(&kernel, &executable, &value, seed, &what);
    }
    if rows * columns < 100 {
        meaning::compare(&kernel, &options, &value).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    }
}

#[test]
fn shapes_and_waves_of_all_kinds() {
    let mut rng = StdRng::seed_from_u64(1);
    for (at, sizes) in SHAPES.into_iter().enumerate() {
        for spread in [Spread::Open, Spread::Batches, Spread::Waves] {
            judge(spread, sizes, spread != Spread::Open && at % 3 == 0, &mut rng);
        }
    }
}

#[test]
fn the_text_form_says_the_same() {
    let text = "kernel both {
  workgroup B, 2, 0
  a = memory [B, M, N] global f32
  b = memory [B] global f32
  %x = read a
  %s = reduce_sum %x over [M, N]
  write %s, b
}
";
    let [b, m, n] = symbols(["B", "M", "N"]);
    let traced = Kernel::trace("both", |w| {
        w.distribute([workgroup(b, 2, 0)]);
        let a = w.memory("a", [b, m, n], Global, F32);
        let out = w.memory("b", [b], Global, F32);
        w.write(w.read(a).sum([m, n]), out);
    })
    .unwrap();
    let parsed = Kernel::parse(text, "both.gsw").unwrap();
    assert_eq!(parsed.text(Detail::Source), traced.text(Detail::Source));
    assert!(Kernel::parse(&text.replace("[M, N]\n  write", "[M, M]\n  write"), "twice.gsw").is_ok_and(
        |kernel| {
            let options = Options::new(Target::GFX942).set(b, 2).set(m, 2).set(n, 2);
            kernel.compile(&options).is_err_and(|fault| fault.message.contains("reduce_sum"))
        }
    ));
}
