//! Maxima of scaled values under fast math, which are scaled after they are found: a softmax over products,
//! masked or not, gives what plain loops in f64 give, whatever the sign of its scale, and its scale and
//! difference are one instruction.

use groundswell::interpreter::Tensor;
use groundswell::prelude::*;
use groundswell_testing::judged::verified;
use groundswell_testing::loops::largest_loop;
use half::f16;

const ROWS: usize = 64;
const COLUMNS: usize = 96;
const DEPTH: usize = 32;

/// Where the scale of the products comes from.
#[derive(Copy, Clone, Debug)]
enum Scale {
    /// An argument of the launch.
    Argument(f32),
    Constant(f32),
}

impl Scale {
    fn value(self) -> f64 {
        let (Scale::Argument(value) | Scale::Constant(value)) = self;
        value.into()
    }
}

/// Which columns a row has.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Mask {
    All,
    /// Those up to its own number and some more.
    Causal,
}

const MORE: usize = 20;

/// For each of `ROWS` rows, the sums over `COLUMNS` of powers of scaled products less their extremum, as a
/// loop over tiles of columns carries them: with `most`, the largest or smallest scaled product so far.
fn softmax(scale: Scale, most: Most, mask: Mask) -> Kernel {
    let [m, n, d] = symbols(["M", "N", "D"]);
    Kernel::trace("softmax", |w| {
        w.distribute([tile(n, 32), workgroup(m, 32, 0), wave(m, 16)]);
        w.mma_type(MatrixShape::M16x16);
        let argument = w.scalar("scale", F32);
        let rows = w.read(w.memory("rows", [m, d], Global, F16));
        let columns = w.memory("columns", [n, d], Shared, F16);
        let [extrema, sums] = ["extrema", "sums"].map(|name| w.memory(name, [m], Global, F32));
        let first = w.register([m], F32, most.first());
        let zero = w.register([m], F32, 0.0);
        let [extremum, sum] = w.iterate(n, [first, zero], |w, [before, sum]| {
            let products = w.mma(w.read(columns), rows, w.register([n, m], F32, 0.0));
            let scaled = match scale {
                Scale::Argument(_) => products * argument,
                Scale::Constant(constant) => products * constant,
            };
            let scaled = match mask {
                Mask::All => scaled,
                Mask::Causal => {
                    let last = w.self_index(m) + MORE as i32;
                    let is_in = w.self_index(n).broadcast([n, m]).less_equal(last);
                    w.select(is_in, scaled, most.first())
                }
            };
            let extremum = match most {
                Most::Largest => before.maximum(scaled.max(n)),
                Most::Smallest => before.minimum(scaled.min(n)),
            };
            let sign = most.sign() as f32;
            let power = ((scaled - extremum) * sign).exp2();
            [extremum, sum * ((before - extremum) * sign).exp2() + power.sum(n)]
        });
        w.write(extremum, extrema);
        w.write(sum, sums);
    })
    .unwrap()
}

#[derive(Copy, Clone, PartialEq, Debug)]
enum Most {
    Largest,
    Smallest,
}

impl Most {
    fn first(self) -> f64 {
        -f64::INFINITY * self.sign()
    }

    /// The factor of differences from the extremum with which none is above zero.
    fn sign(self) -> f64 {
        if self == Most::Largest { 1.0 } else { -1.0 }
    }
}

/// Extremum and sum of a row, in f64.
fn expected(row: &[f16], columns: &[f16], scale: f64, most: Most) -> [f64; 2] {
    let scaled = columns.chunks_exact(DEPTH).map(|column| {
        let product: f64 = row.iter().zip(column).map(|(a, b)| a.to_f64() * b.to_f64()).sum();
        product * scale
    });
    let scaled: Vec<f64> = scaled.collect();
    let larger = |a: f64, &b: &f64| if (b - a) * most.sign() > 0.0 { b } else { a };
    let extremum = scaled.iter().fold(most.first(), larger);
    [extremum, scaled.iter().map(|x| ((x - extremum) * most.sign()).exp2()).sum()]
}

/// Whole numbers, so that products are exact, some of them far from the others.
fn factors(count: usize, seed: usize) -> Vec<f16> {
    let number = |at: usize| (at * 37 + seed * at / 5 + seed) % 17;
    (0..count).map(|at| f16::from_f32(number(at) as f32 - 8.0)).collect()
}

#[test]
fn a_softmax_is_right_whatever_the_sign_of_its_scale() {
    let [m, n, d] = symbols(["M", "N", "D"]);
    let scales = [0.125, -0.125, 1.0, -3.0, 0.0, -0.0, 1e-40, -1e-40, 2e-3, -2e-3];
    let sources = scales.iter().map(|&scale| Scale::Argument(scale));
    let sources = sources.chain([0.125, -0.125, -3.0, 0.0, 1e-40].map(Scale::Constant));
    let (rows, columns) = (factors(ROWS * DEPTH, 3), factors(COLUMNS * DEPTH, 11));
    for target in [Target::GFX908, Target::GFX90A, Target::GFX942, Target::GFX950] {
        for scale in sources.clone() {
            for (most, mask) in [
                (Most::Largest, Mask::All),
                (Most::Smallest, Mask::All),
                (Most::Largest, Mask::Causal),
                (Most::Smallest, Mask::Causal),
            ] {
                let kernel = softmax(scale, most, mask);
                let options = Options::new(target).fast_math().set(m, 64).set(n, 96).set(d, 32);
                let executable = verified(&kernel, &options);
                let device = Device::simulator(target);
                let factors = [(&rows, ROWS), (&columns, COLUMNS)].map(|(factors, count)| {
                    let bytes: Vec<u8> = factors.iter().flat_map(|x| x.to_le_bytes()).collect();
                    device.upload_tensor(&Tensor::from_bytes(&[count, DEPTH], F16, &bytes).unwrap()).unwrap()
                });
                let results = [(); 2].map(|()| device.upload(&[f32::NAN; ROWS]).unwrap());
                let launch = device.launch(&executable).scalar(scale.value() as f32);
                let launch =
                    factors.iter().chain(&results).fold(launch, |launch, buffer| launch.buffer(buffer));
                launch.run().unwrap();
                let [extrema, sums] = results.each_ref().map(|buffer| buffer.download::<f32>().unwrap());
                for row in 0..ROWS {
                    let of_row = &rows[row * DEPTH..][..DEPTH];
                    let count = if mask == Mask::All { COLUMNS } else { COLUMNS.min(row + MORE + 1) };
                    let [extremum, sum] = expected(of_row, &columns[..count * DEPTH], scale.value(), most);
                    let found = [extrema[row], sums[row]].map(f64::from);
                    let is_near =
                        |found: f64, right: f64| (found - right).abs() <= 1e-5 * right.abs() + 1e-38;
                    let title = format!("{target}, {scale:?}, {most:?}, {mask:?}, row {row}");
                    assert!(is_near(found[0], extremum), "{title}: extremum {} for {extremum}", found[0]);
                    assert!(is_near(found[1], sum), "{title}: sum {} for {sum}", found[1]);
                }
            }
        }
    }
}

#[test]
fn scale_and_difference_are_one_instruction_of_a_trip() {
    let [m, n, d] = symbols(["M", "N", "D"]);
    let options = Options::new(Target::GFX942).set(m, 64).set(n, 96).set(d, 32);
    let count = |options: &Options, scale: Scale, mask: Mask, what: &str| {
        let kernel = softmax(scale, Most::Largest, mask);
        let text = verified(&kernel, options).assembly().unwrap();
        largest_loop(&text).expect("a loop").iter().filter(|line| line.contains(what)).count()
    };
    for scale in [Scale::Argument(0.5), Scale::Constant(0.5), Scale::Constant(-0.5)] {
        for mask in [Mask::All, Mask::Causal] {
            // 32 columns of 16 rows are eight values of a lane.
            let fast = options.clone().fast_math();
            let products = count(&options, scale, mask, "v_mul_f32");
            assert!(count(&fast, scale, mask, "v_fma_f32") >= 8, "{scale:?}, {mask:?}");
            assert!(count(&fast, scale, mask, "v_mul_f32") + 8 <= products, "{scale:?}, {mask:?}");
        }
    }
}
