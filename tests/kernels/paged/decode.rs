//! Decoding in parts, and whole.

use groundswell::check::compare;
use groundswell::kernels::PagedDecode;
use groundswell::prelude::*;
use groundswell_testing::exact_case::{of_numbers, zeros};
use groundswell_testing::judged::verified;

use super::cases::{
    Argument, Expected, Numbers, Pages, assert_log_near, assert_near, attention, bound, launched,
};

/// Shapes of decoding.
#[derive(Clone)]
struct Shape {
    heads: [u32; 3],
    new: usize,
    page: usize,
    lengths: Vec<usize>,
    parts: u32,
}

fn shape(heads: [u32; 3], new: usize, page: usize, lengths: &[usize], parts: u32) -> Shape {
    Shape { heads, new, page, lengths: lengths.to_vec(), parts }
}

/// Ragged lengths, one key, none, fewer than a tile and than new tokens; groups of every kind; heads of all
/// sizes; pages of 1, 16, 64 and 128 and of odd sizes; one part, more parts than there are keys.
fn shapes() -> Vec<Shape> {
    vec![
        shape([8, 1, 128], 1, 16, &[1], 1),
        shape([8, 2, 128], 1, 1, &[100, 33], 2),
        shape([16, 2, 128], 1, 64, &[65, 0, 64], 3),
        shape([4, 4, 128], 1, 128, &[129, 300], 2),
        shape([3, 1, 64], 1, 16, &[31, 32, 33], 2),
        shape([6, 2, 80], 1, 16, &[47, 5], 2),
        shape([2, 2, 96], 2, 16, &[70, 1, 2], 2),
        shape([4, 2, 88], 3, 7, &[2, 64, 0], 4),
        shape([8, 2, 256], 1, 16, &[40], 1),
        shape([16, 1, 128], 2, 16, &[129, 3], 5),
        shape([32, 1, 64], 1, 64, &[200, 17], 2),
        shape([5, 5, 32], 4, 3, &[4, 50], 3),
        shape([64, 8, 64], 1, 16, &[21], 1),
        shape([40, 1, 128], 2, 16, &[33, 96], 2),
        shape([2, 1, 16], 1, 1, &[7, 1, 64, 0], 8),
        shape([7, 7, 1], 1, 5, &[20], 2),
        shape([4, 2, 100], 1, 64, &[63, 65], 2),
        shape([8, 4, 192], 1, 16, &[34], 2),
        shape([12, 3, 128], 1, 128, &[127, 128], 1),
        shape([8, 8, 64], 5, 1, &[3, 5, 37], 2),
    ]
}

/// Queries, caches and tables, and the numbers that they stand for.
struct Inputs {
    pages: Pages,
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
}

impl Inputs {
    fn new(shape: &Shape, garbage: f64, seed: u64) -> Inputs {
        let mut numbers = Numbers(seed);
        let pages = Pages::new(&shape.lengths, shape.page, &mut numbers);
        let [heads, kv, dim] = shape.heads.map(|size| size as usize);
        let count = shape.lengths.len() * shape.new * heads * dim;
        let q = (0..count).map(|_| numbers.part() * 2.0).collect();
        let k = pages.cache(kv * dim, garbage, || numbers.part());
        let v = pages.cache(kv * dim, garbage, || numbers.part());
        Inputs { pages, q, k, v }
    }

    /// What query `token` of sequence `b` gets at a head; elements of the caches count `k_scale` and
    /// `v_scale`.
    fn expected(&self, shape: &Shape, [b, token, head]: [usize; 3], scales: [&[f64]; 2]) -> Expected {
        let [heads, kv, dim] = shape.heads.map(|size| size as usize);
        let of_keys = head / (heads / kv);
        let scaled = |cache: &[f64], n: usize, scale: &[f64]| -> Vec<f64> {
            let at = (self.pages.place(b, n) * kv + of_keys) * dim;
            cache[at..at + dim].iter().map(|x| x * scale[of_keys % scale.len()]).collect()
        };
        let seen = (shape.lengths[b] + token + 1).saturating_sub(shape.new).min(shape.lengths[b]);
        let rows: Vec<[Vec<f64>; 2]> =
            (0..seen).map(|n| [scaled(&self.k, n, scales[0]), scaled(&self.v, n, scales[1])]).collect();
        let rows: Vec<(&[f64], &[f64])> = rows.iter().map(|[k, v]| (&k[..], &v[..])).collect();
        let at = ((b * shape.new + token) * heads + head) * dim;
        attention(&self.q[at..at + dim], 1.0 / (dim as f64).sqrt(), &rows, dim)
    }
}

/// How a case is run.
#[derive(Copy, Clone)]
struct Run {
    target: Target,
    inputs: DType,
    cache: DType,
    /// Keys of a part, if that is fixed.
    fixed: Option<u32>,
    is_open: bool,
    seed: Option<u64>,
}

impl Run {
    fn decode(self, shape: &Shape) -> PagedDecode {
        let [heads, kv, dim] = shape.heads;
        let decode = PagedDecode::new(heads, kv, dim).page(shape.page as u32).inputs(self.inputs);
        let decode = if self.cache == self.inputs { decode } else { decode.cache(self.cache) };
        self.fixed.map_or(decode, |keys| decode.deterministic(keys))
    }

    /// Queries, caches, tables and scales, and scales as numbers.
    fn arguments(self, shape: &Shape, inputs: &Inputs) -> (Vec<Argument>, [Vec<f64>; 2]) {
        let [heads, kv, dim] = shape.heads.map(|size| size as usize);
        let (batch, page) = (shape.lengths.len(), shape.page);
        let q = of_numbers(self.inputs, &[batch, shape.new, heads, dim], &inputs.q);
        // Small scales, so that narrow caches hold whole numbers.
        let (store, scales) = match self.cache {
            I8 => (8.0, [0, 1].map(|at| (0..kv).map(|h| f64::from(1 << ((h + at) % 2)) / 8.0).collect())),
            F16 | Bf16 => (1.0, [vec![1.0], vec![1.0]]),
            _ => (1.0, [vec![0.5], vec![2.0]]),
        };
        let cache = |numbers: &[f64]| {
            let numbers: Vec<f64> = numbers.iter().map(|x| x * store).collect();
            of_numbers(self.cache, &[inputs.pages.pages, page, kv, dim], &numbers)
        };
        let [table, lengths] = inputs.pages.tables();
        let mut arguments: Vec<Argument> =
            [q, cache(&inputs.k), cache(&inputs.v), table, lengths].map(Argument::from).into();
        for scale in &scales {
            match self.cache {
                I8 => arguments.push(of_numbers(F32, &[kv], scale).into()),
                F16 | Bf16 => {}
                _ => arguments.push(Argument::Scalar(scale[0] as f32)),
            }
        }
        (arguments, scales.map(|scales| scales.iter().map(|scale| scale * store).collect()))
    }

    fn title(self, shape: &Shape) -> String {
        let Run { target, inputs, cache, fixed, is_open, .. } = self;
        let Shape { heads, new, page, lengths, parts } = shape;
        format!(
            "{heads:?} x {new}, pages of {page}, {lengths:?} in {parts}, {inputs} {cache} on {target}, {fixed:?}, open {is_open}"
        )
    }

    /// Parts and their sum: the output and the log-sum-exp.
    fn in_parts(self, shape: &Shape, inputs: &Inputs) -> [Tensor; 2] {
        let title = self.title(shape);
        let decode = self.decode(shape).log_sum_exp();
        let [heads, kv, dim] = shape.heads.map(|size| size as usize);
        let (batch, rows) = (shape.lengths.len(), shape.new * heads / kv);
        let parts = match self.fixed {
            Some(_) => decode.parts(1, *shape.lengths.iter().max().expect("some") as u64, 1),
            None => shape.parts,
        };
        let options = decode.options(self.target, shape.new as u32).set("PARTS", parts);
        let (options, open) = bound(options, &inputs.pages.sizes(), self.is_open);
        let executable = verified(&decode.kernel().expect("a kernel"), &options);
        let (mut arguments, _) = self.arguments(shape, inputs);
        let results = [vec![batch, kv, parts as usize, rows, dim], vec![batch, kv, parts as usize, rows]];
        let results = [&results[0], &results[1], &results[1]]
            .map(|shape| of_numbers(F32, shape, &vec![f64::NAN; shape.iter().product()]));
        arguments.extend(results.map(Argument::from));
        let after = launched(&title, &executable, &arguments, &open, self.seed);
        let parts = after[after.len() - 3..].to_vec();
        let combine = verified(&decode.combine().expect("a kernel"), &options);
        let mut arguments: Vec<Argument> = parts.into_iter().map(Argument::from).collect();
        if self.fixed.is_some() {
            arguments.push(inputs.pages.tables()[1].clone().into());
        }
        let out = zeros(self.inputs, &[batch, shape.new, heads, dim]);
        arguments.extend([out, zeros(F32, &[batch, shape.new, heads])].map(Argument::from));
        let open: Vec<_> = open.into_iter().filter(|size| size.0 == "B").collect();
        let mut after = launched(&title, &combine, &arguments, &open, self.seed);
        let log = after.pop().expect("written");
        [after.pop().expect("written"), log]
    }

    /// In one kernel, which the interpreter runs, too.
    fn whole(self, shape: &Shape, inputs: &Inputs) -> Tensor {
        let title = format!("whole {}", self.title(shape));
        let decode = self.decode(shape);
        let [heads, _, dim] = shape.heads.map(|size| size as usize);
        let options = decode.options(self.target, shape.new as u32).set("PARTS", 1);
        let (options, open) = bound(options, &inputs.pages.sizes(), self.is_open);
        let kernel = decode.whole().expect("a kernel");
        let executable = verified(&kernel, &options);
        let (mut arguments, _) = self.arguments(shape, inputs);
        arguments.push(zeros(self.inputs, &[shape.lengths.len(), shape.new, heads, dim]).into());
        let found = launched(&title, &executable, &arguments, &open, self.seed).pop().expect("written");
        let tensors: Vec<Tensor> = arguments
            .into_iter()
            .map(|argument| match argument {
                Argument::Tensor(tensor) => tensor,
                Argument::Scalar(scalar) => of_numbers(F32, &[], &[f64::from(scalar)]),
            })
            .collect();
        let sizes = inputs.pages.sizes();
        let value = |symbol: Symbol| {
            let own = sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
            own.or_else(|| options.value(symbol))
        };
        let after =
            Interpreter::run(&kernel, &value, &tensors).unwrap_or_else(|fault| panic!("{title}: {fault}"));
        let meant = after.last().expect("written");
        assert!(compare(&found, meant).expect("one shape").ok, "{title}: not what the interpreter gives");
        found
    }

    /// All results against plain loops.
    fn judge(self, shape: &Shape, seed: u64) {
        let garbage = if self.cache == I8 { 15.0 } else { f64::NAN };
        let inputs = Inputs::new(shape, garbage, seed);
        let (_, scales) = self.arguments(shape, &inputs);
        let [out, log] = self.in_parts(shape, &inputs);
        let whole = self.whole(shape, &inputs);
        let [heads, _, dim] = shape.heads.map(|size| size as usize);
        let (out, log, whole) = (out.to_f64(), log.to_f64(), whole.to_f64());
        for b in 0..shape.lengths.len() {
            for token in 0..shape.new {
                for head in 0..heads {
                    let expected = inputs.expected(shape, [b, token, head], [&scales[0], &scales[1]]);
                    let row = (b * shape.new + token) * heads + head;
                    let title = format!("{}: sequence {b}, token {token}, head {head}", self.title(shape));
                    assert_near(&title, &out[row * dim..][..dim], &expected, self.inputs);
                    assert_near(
                        &format!("whole {title}"),
                        &whole[row * dim..][..dim],
                        &expected,
                        self.inputs,
                    );
                    assert_log_near(&title, log[row], &expected);
                }
            }
        }
    }
}

const USUAL: Run =
    Run { target: Target::GFX942, inputs: F16, cache: F16, fixed: None, is_open: false, seed: None };

#[test]
fn decoding_gives_what_plain_loops_give() {
    for (number, shape) in shapes().iter().enumerate() {
        for inputs in [F16, Bf16] {
            let is_open = (number + usize::from(inputs == F16)).is_multiple_of(2);
            let seed = number.is_multiple_of(4).then_some(number as u64);
            Run { inputs, cache: inputs, is_open, seed, ..USUAL }.judge(shape, number as u64);
        }
    }
}

#[test]
fn parts_of_a_fixed_length_give_what_plain_loops_give() {
    for (number, shape) in shapes().iter().enumerate() {
        let fixed = Some([32, 64, 96][number % 3]);
        let inputs = [F16, Bf16][number % 2];
        Run { fixed, inputs, cache: inputs, is_open: number % 3 == 1, ..USUAL }.judge(shape, number as u64);
    }
}

#[test]
fn narrow_caches_give_what_plain_loops_give() {
    for (number, shape) in shapes().iter().enumerate() {
        let (target, cache) = match number % 4 {
            0 => (Target::GFX942, F8E4M3Fnuz),
            1 => (Target::GFX950, F8E4M3Fn),
            2 => (Target::GFX942, F8E5M2Fnuz),
            _ => (Target::GFX950, F8E5M2),
        };
        let inputs = [F16, Bf16][number / 4 % 2];
        Run { target, inputs, cache, is_open: number % 3 == 1, ..USUAL }.judge(shape, number as u64);
        Run { target, inputs, cache: I8, is_open: number % 3 == 0, ..USUAL }.judge(shape, number as u64);
    }
}

#[test]
fn all_chips_decode() {
    for target in [Target::GFX906, Target::GFX908, Target::GFX90A, Target::GFX950] {
        for number in [2, 6, 9, 13, 18] {
            let inputs = if number % 2 == 0 { F16 } else { Bf16 };
            let seed = (number == 6).then_some(3);
            Run { target, inputs, cache: inputs, seed, ..USUAL }.judge(&shapes()[number], number as u64);
        }
    }
}

#[test]
fn check_mode_finds_nothing_in_any_order() {
    for number in [3, 7, 13] {
        let inputs = Inputs::new(&shapes()[number], f64::NAN, 1);
        for seed in 0..5 {
            Run { seed: Some(seed), ..USUAL }.in_parts(&shapes()[number], &inputs);
        }
    }
}

/// The bits of a sequence follow from it alone: not from the others, from how many parts there are, nor from
/// the pages that it is in.
#[test]
fn parts_of_a_fixed_length_give_the_same_bits_in_every_batch() {
    let heads = [16, 2, 128];
    let run = Run { fixed: Some(64), ..USUAL };
    let lengths = [300usize, 77, 64, 129, 1];
    let all = shape(heads, 1, 16, &lengths, 1);
    let inputs = Inputs::new(&all, f64::NAN, 5);
    let together = run.in_parts(&all, &inputs).map(|tensor| tensor.to_f64());
    for (b, &length) in lengths.iter().enumerate() {
        let alone = shape(heads, 1, 1, &[length], 1);
        let row = 2 * 128;
        let pages = Pages::new(&[length], 1, &mut Numbers(9));
        let moved = |cache: &[f64]| {
            let mut to = vec![f64::NAN; pages.pages * row];
            for n in 0..length {
                let from = inputs.pages.place(b, n) * row;
                to[pages.place(0, n) * row..][..row].copy_from_slice(&cache[from..from + row]);
            }
            to
        };
        let q = inputs.q[b * 16 * 128..][..16 * 128].to_vec();
        let own = Inputs { q, k: moved(&inputs.k), v: moved(&inputs.v), pages };
        let [out, log] = run.in_parts(&alone, &own).map(|tensor| tensor.to_f64());
        assert_eq!(out[..], together[0][b * 16 * 128..][..16 * 128], "sequence {b}");
        assert_eq!(log[..], together[1][b * 16..][..16], "sequence {b}");
    }
}

#[test]
fn the_number_of_parts_follows_from_the_work() {
    let decode = PagedDecode::new(64, 8, 128);
    // One sequence of few keys is not divided, one of many keys into parts of 128.
    assert_eq!(decode.parts(1, 21, 304), 1);
    assert_eq!(decode.parts(1, 8192, 304), 64);
    // So many that there are twelve waves for each compute unit, and no more.
    assert_eq!(decode.parts(64, 4096, 304), 8);
    assert_eq!(decode.parts(1000, 4096, 304), 1);
    assert_eq!(decode.parts(0, 0, 0), 1);
    assert_eq!(decode.deterministic(256).parts(64, 4096, 304), 16);
}

/// Every lane reads as much of a row as an instruction brings, also of values, which lie across: no element
/// alone.
#[test]
fn caches_are_read_in_whole_rows() {
    for (cache, wide) in
        [(F16, "buffer_load_dwordx4"), (Bf16, "buffer_load_dwordx4"), (I8, "buffer_load_dwordx2")]
    {
        let inputs = if cache == I8 { F16 } else { cache };
        for target in [Target::GFX90A, Target::GFX942, Target::GFX950] {
            let run = Run { target, inputs, cache, ..USUAL };
            let shape = &shapes()[2];
            let decode = run.decode(shape);
            for kernel in [decode.kernel(), decode.whole()] {
                let sizes = [("PARTS", 1), ("B", 64), ("PAGES", 5000), ("MAX_PAGES", 80)];
                let options = decode.options(target, 1);
                let options = sizes.iter().fold(options, |options, &(name, size)| options.set(name, size));
                let executable = verified(&kernel.expect("a kernel"), &options.deny(Deny::SplitAccesses));
                let listing = executable.assembly().expect("a listing");
                let count = |prefix: &str| {
                    listing.lines().filter(|line| line.trim_start().starts_with(prefix)).count()
                };
                // 32 keys of 128 elements for 64 lanes: keys and values.
                assert!(count(wide) >= 16, "{cache} on {target}: {} wide loads", count(wide));
                let narrow =
                    ["buffer_load_ushort", "buffer_load_ubyte", "buffer_load_sbyte", "buffer_load_short"];
                for narrow in narrow {
                    assert_eq!(count(narrow), 0, "{cache} on {target}: {narrow}");
                }
            }
        }
    }
}
