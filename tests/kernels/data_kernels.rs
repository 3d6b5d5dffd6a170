//! Ready kernels that move data, update tables or compute element by element, against plain loops: whole
//! tiles and ragged ones, static and dynamic sizes.

use groundswell::kernels::{
    Elementwise, OperandShape, Rope, RopePairs, RowTile, Waves, histogram, permute, permute_others,
    scatter_add, topk,
};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, of_numbers, tensor, zeros};
use groundswell_testing::judged::assert_right;
use groundswell_testing::ready_references::erf;

/// Aligned, ragged, single and odd.
const SHAPES: [[usize; 2]; 20] = [
    [1, 1],
    [1, 2],
    [2, 1],
    [3, 5],
    [16, 64],
    [16, 256],
    [17, 257],
    [37, 130],
    [64, 1],
    [1, 200],
    [65, 257],
    [32, 8],
    [5, 512],
    [100, 3],
    [15, 255],
    [48, 65],
    [2, 1000],
    [33, 33],
    [128, 16],
    [7, 77],
];

/// Static and dynamic sizes take turns.
fn open(at: usize, dims: &[&'static str]) -> Vec<&'static str> {
    match at % 3 {
        0 => Vec::new(),
        1 => dims.to_vec(),
        _ => dims[..1].to_vec(),
    }
}

fn case(
    name: String,
    kernel: Kernel,
    sizes: &[(&'static str, usize)],
    inputs: Vec<Tensor>,
    expected: Vec<f64>,
) -> Case {
    Case { expected, ..Case::plain(name, kernel, sizes, inputs) }
}

#[test]
fn histograms_equal_loops() {
    let counts = [1usize, 5, 12, 300];
    for (at, n) in [1usize, 7, 64, 255, 1000, 4097].into_iter().enumerate() {
        for (other, bins) in counts.into_iter().enumerate() {
            let mut expected: Vec<f64> = (0..bins).map(|bin| bin as f64).collect();
            let before = of_numbers(I32, &[bins], &expected);
            for bin in (0..n).map(number).filter(|&x| x >= 0.0 && x < bins as f64) {
                expected[bin as usize] += 1.0;
            }
            let sizes = [("N", n), ("BINS", bins), ("BLOCK_N", 256), ("WAVE_N", 64)];
            let inputs = vec![tensor(I32, &[n]), before];
            let kernel = histogram().expect("well-formed");
            let dynamic = open(at + other, &["N", "BINS"]);
            let case = case(format!("histogram of {n} in {bins}"), kernel, &sizes, inputs, expected);
            Case { dynamic, ..case }.check();
        }
    }
}

#[test]
fn scatter_add_equals_a_loop() {
    for (at, [m, n]) in SHAPES.into_iter().enumerate() {
        for dtype in [F32, I32] {
            let rows = [1, 7, 40][at % 3];
            // Some of them are outside, on either side.
            let mut ids: Vec<f64> = (0..m).map(|i| ((i * 29) % (rows + 4)) as f64 - 2.0).collect();
            if let [first, .., last] = &mut ids[..] {
                (*first, *last) = (f64::from(i32::MIN), f64::from(i32::MAX));
            }
            let mut expected: Vec<f64> = (0..rows * n).map(number).collect();
            for (i, &id) in ids.iter().enumerate().filter(|(_, id)| (0.0..rows as f64).contains(id)) {
                (0..n).for_each(|j| expected[id as usize * n + j] += number(i * n + j));
            }
            let kernel = scatter_add(dtype, Waves::new(4, 1)).expect("well-formed");
            let sizes = [("M", m), ("N", n), ("ROWS", rows), ("BLOCK_M", 16), ("BLOCK_N", 256)];
            let inputs = vec![of_numbers(I32, &[m], &ids), tensor(dtype, &[m, n]), tensor(dtype, &[rows, n])];
            let dynamic = open(at, &["M", "N", "ROWS"]);
            let name = format!("scatter_add {m}x{n} into {rows} {dtype}");
            Case { dynamic, ..case(name, kernel, &sizes, inputs, expected) }.check();
        }
    }
    let fault = scatter_add(F16, Waves::new(1, 1)).expect_err("no such addition");
    assert_eq!(fault.message, "scatter_add adds f32 and i32, not f16");
}

#[test]
fn permutations_equal_loops() {
    const DIMS: [&str; 4] = ["D0", "D1", "D2", "D3"];
    let orders: [&[usize]; 14] = [
        &[0, 1],
        &[1, 0],
        &[0, 2, 1],
        &[2, 1, 0],
        &[1, 0, 2],
        &[2, 0, 1],
        &[0, 1, 2],
        &[0, 2, 1, 3],
        &[3, 2, 1, 0],
        &[0, 1, 3, 2],
        &[2, 3, 0, 1],
        &[1, 3, 0, 2],
        &[3, 0, 1, 2],
        &[1, 0, 2, 3],
    ];
    let sizes = [[2usize, 3, 5, 7], [2, 32, 2, 64], [1, 1, 1, 1], [9, 2, 2, 33], [2, 3, 70, 3]];
    let mut count = 0;
    for (at, order) in orders.into_iter().enumerate() {
        for sizes in [sizes[0], sizes[1], sizes[2 + at % 3]] {
            let rank = order.len();
            // The tiled ones of few dimensions are the large ones.
            let shape: Vec<usize> = sizes[4 - rank..].to_vec();
            let dtype = [F16, F32, Bf16, I8, I32][count % 5];
            let a = tensor(dtype, &shape);
            let numbers = a.to_f64();
            let target: Vec<usize> = order.iter().map(|&dim| shape[dim]).collect();
            let mut expected = vec![0.0; numbers.len()];
            for (at, &x) in numbers.iter().enumerate() {
                let mut place = vec![0; rank];
                let mut rest = at;
                for dim in (0..rank).rev() {
                    place[dim] = rest % shape[dim];
                    rest /= shape[dim];
                }
                let to = order.iter().fold(0, |to, &dim| to * shape[dim] + place[dim]);
                expected[to] = x;
            }
            let others = permute_others(order).iter().map(|&dim| shape[dim]).product();
            let mut symbols: Vec<(&'static str, usize)> = DIMS.into_iter().zip(shape.clone()).collect();
            symbols.extend([("BLOCK_X", 32), ("BLOCK_Y", 32)]);
            let mut open = match count % 3 {
                0 => Vec::new(),
                _ => DIMS[..rank].to_vec(),
            };
            if rank == 4 {
                symbols.push(("OTHERS", others));
                open.extend((count % 3 == 2).then_some("OTHERS"));
            }
            let kernel = permute(dtype, order, Waves::new(2, 2)).expect("an order");
            let name = format!("permute {shape:?} to {order:?} {dtype}");
            let case = case(name, kernel, &symbols, vec![a, zeros(dtype, &target)], expected);
            Case { dynamic: open, ..case }.check();
            count += 1;
        }
    }
    for order in [&[][..], &[0], &[0, 0], &[0, 2], &[0, 1, 2, 3, 4], &[usize::MAX, 0]] {
        let fault = permute(F16, order, Waves::new(1, 1)).expect_err("no order");
        assert!(fault.message.ends_with("is no order of two to four dimensions"), "{fault}");
    }
}

fn rope_sizes([t, heads, pairs]: [usize; 3]) -> [(&'static str, usize); 6] {
    let wave = pairs.next_power_of_two();
    [("T", t), ("HEADS", heads), ("PAIRS", pairs), ("BLOCK_T", 4), ("BLOCK_H", 8), ("WAVE_P", wave)]
}

#[test]
fn rope_with_tables_equals_a_loop() {
    let mut count = 0;
    for [t, heads, pairs] in [
        [1usize, 1, 1],
        [4, 8, 64],
        [5, 3, 32],
        [1, 32, 64],
        [17, 1, 8],
        [3, 9, 48],
        [9, 2, 5],
        [2, 5, 128],
        [8, 4, 16],
        [6, 7, 33],
    ] {
        for pairing in [RopePairs::Halves, RopePairs::Interleaved] {
            let dtype = [F16, Bf16, F32][count % 3];
            let shape = match pairing {
                RopePairs::Halves => [t, heads, 2, pairs],
                RopePairs::Interleaved => [t, heads, pairs, 2],
            };
            let x = tensor(dtype, &shape);
            let (cos, sin) = (
                tensor(F32, &[t, pairs]),
                of_numbers(F32, &[t, pairs], &(0..t * pairs).map(|at| number(at + 4)).collect::<Vec<_>>()),
            );
            let (of_x, of_cos, of_sin) = (x.to_f64(), cos.to_f64(), sin.to_f64());
            let mut expected = vec![0.0; of_x.len()];
            for (token, head, pair) in
                (0..t * heads * pairs).map(|at| (at / pairs / heads, at / pairs % heads, at % pairs))
            {
                let start = (token * heads + head) * 2 * pairs;
                let (one, other) = match pairing {
                    RopePairs::Halves => (start + pair, start + pair + pairs),
                    RopePairs::Interleaved => (start + 2 * pair, start + 2 * pair + 1),
                };
                let (cos, sin) = (of_cos[token * pairs + pair], of_sin[token * pairs + pair]);
                expected[one] = of_x[one] * cos - of_x[other] * sin;
                expected[other] = of_x[other] * cos + of_x[one] * sin;
            }
            let sizes = rope_sizes([t, heads, pairs]);
            let inputs = vec![x, cos, sin, zeros(dtype, &shape)];
            let kernel = Rope::new(dtype).pairs(pairing).kernel().expect("well-formed");
            let name = format!("rope {t} x {heads} x {pairs} {dtype} {pairing:?}");
            let dynamic = open(count, &["T", "HEADS"]);
            Case { dynamic, ..case(name, kernel, &sizes, inputs, expected) }.check();
            count += 1;
        }
    }
    assert!(count >= 20);
    assert_eq!(Rope::new(I8).kernel().expect_err("integers").message, "rope turns f16, bf16 and f32, not i8");
    for base in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Rope::new(F16).positions(base).kernel().is_err());
    }
}

/// Numbers of `dtype` between -4 and 4.
fn quarters(dtype: DType, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f64> = (0..count).map(|at| ((at * 29 + at / 3) % 33) as f64 / 4.0 - 4.0).collect();
    of_numbers(dtype, shape, &numbers)
}

/// The interpreter is close to `expected`, and the machine code, in check mode, to the interpreter.
fn close(name: &str, kernel: &Kernel, sizes: &[(&str, usize)], inputs: &[Tensor], expected: &[f64]) {
    let value = |symbol: Symbol| sizes.iter().find(|s| s.0 == symbol.name()).map(|s| s.1 as i64);
    let after = Interpreter::run(kernel, &value, inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
    let last = after.last().expect("an output");
    let bound = match last.dtype() {
        F16 => 2f64.powi(-10),
        Bf16 => 2f64.powi(-7),
        _ => 2f64.powi(-19),
    };
    for (at, (found, expected)) in last.to_f64().iter().zip(expected).enumerate() {
        let error = (found - expected).abs();
        assert!(error <= bound * expected.abs().max(1.0), "{name}: {found} at {at}, not {expected}");
    }
    let options = sizes
        .iter()
        .fold(Options::new(Target::GFX942), |o, &(symbol, size)| o.set(Symbol::new(symbol), size as i64));
    let executable = kernel.compile(&options).unwrap_or_else(|e| panic!("{name}: {e}"));
    for seed in 0..3 {
        assert_right(kernel, &executable, &value, seed, name);
    }
}

#[test]
fn rope_of_positions_is_close_to_a_loop() {
    for (number, [t, heads, pairs]) in
        [[1usize, 1, 1], [4, 8, 64], [5, 3, 32], [7, 2, 9]].into_iter().enumerate()
    {
        let dtype = [F16, Bf16, F32, F32][number];
        let x = quarters(dtype, &[t, heads, 2, pairs]);
        let positions: Vec<f64> = (0..t).map(|token| (token * 3) as f64).collect();
        let of_x = x.to_f64();
        let mut expected = vec![0.0; of_x.len()];
        for at in 0..t * heads * pairs {
            let (row, pair) = (at / pairs, at % pairs);
            let angle = positions[row / heads] * 1e4f64.powf(-(pair as f64) / pairs as f64);
            let (one, other) = (row * 2 * pairs + pair, row * 2 * pairs + pair + pairs);
            expected[one] = of_x[one] * angle.cos() - of_x[other] * angle.sin();
            expected[other] = of_x[other] * angle.cos() + of_x[one] * angle.sin();
        }
        let sizes = rope_sizes([t, heads, pairs]);
        let inputs = [x, of_numbers(I32, &[t], &positions), zeros(dtype, &[t, heads, 2, pairs])];
        let kernel = Rope::new(dtype).positions(1e4).kernel().expect("well-formed");
        close(&format!("positions {t} x {heads} x {pairs}"), &kernel, &sizes, &inputs, &expected);
    }
}

#[test]
fn sums_and_products_with_broadcasts_equal_loops() {
    for (at, [m, n]) in SHAPES.into_iter().enumerate() {
        for (other, shape) in
            [OperandShape::Matrix, OperandShape::Rows, OperandShape::Columns].into_iter().enumerate()
        {
            let dtype = [F16, Bf16, F32, I32, I8][(at + other) % 5];
            let is_sum = (at + other) % 2 == 0;
            let builder =
                if is_sum { Elementwise::add(dtype, shape) } else { Elementwise::mul(dtype, shape) };
            let (of_b, place): (Vec<usize>, fn(usize, usize) -> usize) = match shape {
                OperandShape::Matrix => (vec![m, n], |at, _| at),
                OperandShape::Rows => (vec![m], |at, n| at / n),
                OperandShape::Columns => (vec![n], |at, n| at % n),
            };
            let b = tensor(dtype, &of_b);
            let numbers = b.to_f64();
            let joined = |at: usize| match is_sum {
                true => number(at) + numbers[place(at, n)],
                false => number(at) * numbers[place(at, n)],
            };
            let expected = (0..m * n).map(joined).collect();
            let sizes = [("M", m), ("N", n), ("BLOCK_M", 16), ("BLOCK_N", 256)];
            let inputs = vec![tensor(dtype, &[m, n]), b, zeros(dtype, &[m, n])];
            let name = format!("{m}x{n} {dtype} {shape:?} sum {is_sum}");
            let kernel = builder.kernel().expect("well-formed");
            let dynamic = open(at + other, &["M", "N"]);
            Case { dynamic, ..case(name, kernel, &sizes, inputs, expected) }.check();
        }
    }
    let rows = Elementwise::new("rows", F32, [OperandShape::Rows], |[a]| a);
    assert_eq!(rows.kernel().expect_err("no shape").message, "the first operand has to be a matrix");
    let gelu = Elementwise::gelu(I32).kernel();
    let options = Options::new(Target::GFX942).set("M", 1).set("N", 1).set("BLOCK_M", 16).set("BLOCK_N", 256);
    assert!(gelu.and_then(|kernel| kernel.compile(&options)).is_err());
    assert!(Elementwise::gelu(F16).waves(Waves::new(0, 1)).kernel().is_err());
}

#[test]
fn activations_are_close_to_loops() {
    for (at, [m, n]) in SHAPES.into_iter().enumerate() {
        let dtype = [F16, Bf16, F32][at % 3];
        let (a, b) = (quarters(dtype, &[m, n]), tensor(dtype, &[m, n]));
        let (of_a, of_b) = (a.to_f64(), b.to_f64());
        let sizes = [("M", m), ("N", n), ("BLOCK_M", 16), ("BLOCK_N", 256)];
        let out = zeros(dtype, &[m, n]);
        let gated: Vec<f64> = of_a.iter().zip(&of_b).map(|(a, b)| a / (1.0 + (-a).exp()) * b).collect();
        let kernel = Elementwise::silu_mul(dtype).kernel().expect("well-formed");
        close(&format!("silu_mul {m}x{n}"), &kernel, &sizes, &[a.clone(), b, out.clone()], &gated);
        let gelu: Vec<f64> = of_a.iter().map(|x| x * (1.0 + erf(x / 2f64.sqrt())) / 2.0).collect();
        let kernel = Elementwise::gelu(dtype).kernel().expect("well-formed");
        close(&format!("gelu {m}x{n}"), &kernel, &sizes, &[a, out], &gelu);
    }
}

/// Places are the last output; values are compared with the interpreter, whose places and values belong to
/// each other.
#[test]
fn topk_equals_sorted_rows() {
    for (at, [m, n]) in SHAPES.into_iter().enumerate() {
        let dtype = [F16, Bf16, F32][at % 3];
        let count = [1u32, 3, 8][at % 3];
        let a = quarters(dtype, &[m, n]);
        let numbers = a.to_f64();
        let (mut values, mut places) = (Vec::new(), Vec::new());
        for row in numbers.chunks(n) {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&x, &y| row[y].total_cmp(&row[x]));
            order.truncate(count as usize);
            values.extend(order.iter().map(|&place| row[place]));
            places.extend(order.iter().map(|&place| place as f64));
            // Once nothing is left.
            let missing = (count as usize).saturating_sub(n);
            values.extend(std::iter::repeat_n(f64::NAN, missing));
            places.extend(std::iter::repeat_n(0.0, missing));
        }
        let tile = RowTile::of(n as i64).symbols().map(|(name, size)| (name, size as usize));
        let sizes = [("M", m), ("N", n), tile[0], tile[1], tile[2]];
        let kernel = topk(dtype, count).expect("well-formed");
        let shape = [m, count as usize];
        let inputs = [a, zeros(dtype, &shape), zeros(I32, &shape)];
        let name = format!("topk {count} of {m}x{n} {dtype}");
        let value = |symbol: Symbol| sizes.iter().find(|s| s.0 == symbol.name()).map(|s| s.1 as i64);
        let after = Interpreter::run(&kernel, &value, &inputs).expect("it runs")[1].to_f64();
        for (found, expected) in after.iter().zip(&values) {
            assert!(found == expected || found.is_nan() && expected.is_nan(), "{name}: {after:?}");
        }
        close(&name, &kernel, &sizes, &inputs, &places);
    }
    assert!(topk(I32, 1).is_err() && topk(F16, 0).is_err() && topk(F16, 65).is_err());
}

/// The `count` largest elements of each row by the ready kernel, and their places.
fn largest(rows: &[[f32; 4]], count: u32) -> (Vec<f32>, Vec<i32>) {
    let kernel = topk(F32, count).expect("well-formed");
    let options = Options::new(Target::GFX942).set("M", rows.len()).set("N", 4);
    let executable = kernel.compile(&RowTile::of(4).set_in(options)).expect("it compiles");
    let device = Device::simulator(Target::GFX942);
    let all = rows.len() * count as usize;
    let a = device.upload(&rows.concat()).expect("fits");
    let (values, places) =
        (device.upload(&vec![9f32; all]).expect("fits"), device.upload(&vec![9i32; all]).expect("fits"));
    device.launch(&executable).buffer(&a).buffer(&values).buffer(&places).run().expect("it runs");
    (values.download().expect("readable"), places.download().expect("readable"))
}

#[test]
fn topk_leaves_nan_to_the_end_and_takes_infinities() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [[nan, -inf, nan, 2.0], [inf, nan, inf, -inf], [nan; 4], [-inf; 4]];
    let (values, places) = largest(&rows, 3);
    let expected = [2.0, -inf, nan, inf, inf, -inf, nan, nan, nan, -inf, -inf, -inf];
    assert!(values.iter().zip(expected).all(|(x, y)| *x == y || x.is_nan() && y.is_nan()), "{values:?}");
    assert_eq!(places, [3, 1, 0, 0, 2, 3, 0, 0, 0, 0, 1, 2]);
}

/// The place is that of the first zero, and no value has the sign of another one.
#[test]
fn topk_gives_zeros_of_one_sign() {
    let rows = [[-0.0f32, 0.0, -1.0, -0.0], [-0.0, -0.0, -2.0, -1.0], [0.0, -0.0, 0.0, -1.0]];
    let (values, places) = largest(&rows, 2);
    assert!(values.iter().all(|value| value.to_bits() == 0), "{values:?}");
    assert_eq!(places, [0, 1, 0, 1, 0, 1]);
}

/// The last dimension changes, so tiles are turned in LDS, and both sides move 16 bytes per lane.
#[test]
fn turned_tiles_of_four_dimensions_move_in_wide_accesses() {
    for dtype in [I8, F16, F32] {
        let sizes = [("D0", 64), ("D1", 2), ("D2", 3), ("D3", 64), ("OTHERS", 6)];
        let options = sizes.iter().fold(Options::new(Target::GFX942), |o, &(name, size)| o.set(name, size));
        let options = options.set("BLOCK_X", 64).set("BLOCK_Y", 64);
        let kernel = permute(dtype, &[3, 2, 1, 0], Waves::new(2, 2)).expect("an order");
        let executable = kernel.compile(&options).expect("it compiles");
        let listing = executable.assembly().expect("a listing");
        let count = |prefix: &str| listing.lines().filter(|l| l.trim_start().starts_with(prefix)).count();
        // 256 lanes with 16 bytes each.
        let wide = 64 * 64 * dtype.bytes() as usize / (256 * 16);
        for prefix in ["buffer_load_dwordx4", "buffer_load", "buffer_store_dwordx4", "buffer_store"] {
            assert_eq!(count(prefix), wide, "{prefix} of {dtype}");
        }
    }
}
