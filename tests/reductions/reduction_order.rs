//! The order of reductions: an element has the same bits however many others there are, and equal hashes of
//! the report say equal bits.

use groundswell::compile::{Verify, compile_uncached};
use groundswell::kernels::{RowTile, column_sum, log_softmax, row_sum, softmax};
use groundswell::prelude::*;
use groundswell_testing::judged::verified;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Numbers of many magnitudes, so that sums in another order round in another way.
fn floats(rng: &mut StdRng, count: usize) -> Vec<f32> {
    (0..count).map(|_| rng.random_range(-1f32..1.0) * (rng.random_range(-6f32..6.0)).exp()).collect()
}

/// The bits that a kernel leaves in its last memory.
fn bits(
    kernel: &Kernel,
    options: &Options,
    sizes: &[(&str, i64)],
    inputs: &[&[f32]],
    out: usize,
) -> Vec<u32> {
    let executable = verified(kernel, options);
    run(&executable, sizes, inputs, out)
}

fn run(executable: &Executable, sizes: &[(&str, i64)], inputs: &[&[f32]], out: usize) -> Vec<u32> {
    let device = Device::simulator(Target::GFX942);
    let inputs: Vec<Buffer> = inputs.iter().map(|input| device.upload(input).unwrap()).collect();
    let result = device.upload(&vec![0f32; out]).unwrap();
    let mut launch = device.launch(executable);
    for input in &inputs {
        launch = launch.buffer(input);
    }
    launch = launch.buffer(&result);
    for &(name, size) in sizes {
        launch = launch.set(Symbol::new(name), size);
    }
    launch.run().unwrap();
    result.download::<f32>().unwrap().iter().map(|x| x.to_bits()).collect()
}

/// Numbers of rows of all kinds.
const ROWS: [usize; 10] = [1, 2, 3, 4, 7, 8, 17, 33, 64, 100];

fn options(symbols: &[(&str, i64)]) -> Options {
    let set = |options: Options, &(name, value): &(&str, i64)| options.set(Symbol::new(name), value);
    symbols.iter().fold(Options::new(Target::GFX942), set)
}

/// A kernel over `[M, N]` without any tile.
fn untiled(what: &str) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    Kernel::trace("untiled", |w| {
        let a = w.memory("a", [m, n], Global, F32);
        match what {
            "row_sum" => w.write(w.read(a).sum(n), w.memory("b", [m], Global, F32)),
            "column_sum" => w.write(w.read(a).sum(m), w.memory("b", [n], Global, F32)),
            "softmax" => {
                let x = w.read(a);
                let powers = (x - x.max(n)).exp();
                w.write(powers / powers.sum(n), w.memory("b", [m, n], Global, F32));
            }
            "layer_norm" => {
                let x = w.read(a);
                let centered = x - x.mean(n);
                let variance = (centered * centered).mean(n);
                w.write(centered * (variance + 1e-5).rsqrt(), w.memory("b", [m, n], Global, F32));
            }
            _ => {
                // Both ways at once: the rows decide the layout, and the columns may not follow.
                let x = w.read(a);
                let along_rows = (x * x).sum(n);
                w.write(x.sum(m), w.memory("b", [n], Global, F32));
                w.write(along_rows, w.memory("c", [m], Global, F32));
            }
        }
    })
    .unwrap()
}

#[test]
fn both_ways_of_one_value_have_orders_of_their_own() {
    let mut rng = StdRng::seed_from_u64(5);
    let a = floats(&mut rng, 64 * 64);
    let kernel = untiled("both");
    let sums = |rows: usize, columns: usize| {
        let part: Vec<f32> = (0..rows).flat_map(|row| a[row * 64..][..columns].iter().copied()).collect();
        let options = options(&[("M", rows as i64), ("N", columns as i64)]);
        let executable = verified(&kernel, &options);
        let device = Device::simulator(Target::GFX942);
        let a = device.upload(&part).unwrap();
        let [b, c] = [columns, rows].map(|size| device.upload(&vec![0f32; size]).unwrap());
        device.launch(&executable).buffer(&a).buffer(&b).buffer(&c).run().unwrap();
        [b, c]
            .map(|sums| -> Vec<u32> { sums.download::<f32>().unwrap().iter().map(|x| x.to_bits()).collect() })
    };
    for size in [8, 20, 64] {
        let ([of_columns, _], [_, of_rows]) = (sums(size, 64), sums(64, size));
        for other in [1, 3, 16, 33, 50] {
            assert_eq!(sums(size, other)[0], of_columns[..other], "{other} columns of {size}");
            assert_eq!(sums(other, size)[1], of_rows[..other], "{other} rows of {size}");
        }
    }
}

#[test]
fn rows_without_a_tile_do_not_change_the_bits_of_others() {
    let mut rng = StdRng::seed_from_u64(3);
    for columns in [1, 3, 8, 20, 64, 130] {
        let a = floats(&mut rng, 100 * columns);
        for what in ["row_sum", "softmax", "layer_norm"] {
            let kernel = untiled(what);
            let mut all: Option<Vec<u32>> = None;
            for rows in ROWS.into_iter().rev() {
                let out = if what == "row_sum" { rows } else { rows * columns };
                let options = options(&[("M", rows as i64), ("N", columns as i64)]);
                let bits = bits(&kernel, &options, &[], &[&a[..rows * columns]], out);
                let all = all.get_or_insert_with(|| bits.clone());
                assert_eq!(bits, all[..bits.len()], "{what} of {rows} rows of {columns}");
            }
        }
    }
}

#[test]
fn columns_without_a_tile_do_not_change_the_bits_of_others() {
    let mut rng = StdRng::seed_from_u64(4);
    for rows in [1, 8, 20, 64, 100] {
        let a = floats(&mut rng, rows * 100);
        let kernel = untiled("column_sum");
        let mut all: Option<Vec<u32>> = None;
        for columns in ROWS.into_iter().rev() {
            let part: Vec<f32> =
                (0..rows).flat_map(|row| a[row * 100..][..columns].iter().copied()).collect();
            let options = options(&[("M", rows as i64), ("N", columns as i64)]);
            let bits = bits(&kernel, &options, &[], &[&part], columns);
            let all = all.get_or_insert_with(|| bits.clone());
            assert_eq!(bits, all[..columns], "{columns} columns of {rows}");
        }
    }
}

/// `c[m, n] = sum over k of a[m, k] b[n, k]`, in f32.
fn product() -> Kernel {
    let [m, n, k, block_m, block_k] = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_K"]);
    Kernel::trace("product", |w| {
        w.distribute([workgroup(m, block_m, 0), workgroup(n, 32, 1), tile(k, block_k), wave(m, 16)]);
        w.mma_type(Mma::F32_16x16x4_F32);
        let [a, b] = [("a", m), ("b", n)].map(|(name, dim)| w.memory(name, [dim, k], Shared, F32));
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
        w.write(sum, c);
    })
    .unwrap()
}

/// Row sums, softmax and products with tiles: their rows are a size like any other, known or not.
#[test]
fn rows_with_a_tile_do_not_change_the_bits_of_others() {
    let mut rng = StdRng::seed_from_u64(6);
    let product = product();
    let (deep, wide) = (50, 32);
    let (x, y) = (floats(&mut rng, 100 * deep), floats(&mut rng, wide * deep));
    let mut all: Option<Vec<u32>> = None;
    for rows in ROWS.into_iter().rev() {
        let size = ("M", rows as i64);
        let of_product = [("K", deep as i64), ("N", wide as i64), ("BLOCK_M", 32), ("BLOCK_K", 16)];
        let known = options(&of_product).set(Symbol::new("M"), rows as i64);
        let open = options(&of_product).dynamic(Symbol::new("M"));
        for (options, sizes) in [(known, &[][..]), (open, &[size][..])] {
            let bits = bits(&product, &options, sizes, &[&x[..rows * deep], &y], rows * wide);
            let all = all.get_or_insert_with(|| bits.clone());
            assert_eq!(bits, all[..bits.len()], "{rows} rows of a product, {sizes:?}");
        }
    }
    let columns = 100;
    let a = floats(&mut rng, 100 * columns);
    for (kernel, each) in [(row_sum(F32), 1), (softmax(F32), columns), (log_softmax(F32), columns)] {
        let kernel = kernel.unwrap();
        let mut all: Option<Vec<u32>> = None;
        for rows in ROWS.into_iter().rev() {
            let known = RowTile::of(columns as i64).set_in(options(&[("N", columns as i64)]));
            let open = known.clone().dynamic(Symbol::new("M"));
            let known = known.set(Symbol::new("M"), rows as i64);
            for (options, sizes) in [(known, &[][..]), (open, &[("M", rows as i64)][..])] {
                let bits = bits(&kernel, &options, sizes, &[&a[..rows * columns]], rows * each);
                let all = all.get_or_insert_with(|| bits.clone());
                assert_eq!(bits, all[..bits.len()], "{rows} rows, {sizes:?}");
            }
        }
    }
}

/// The hashes of a kernel's orders, and the bits that it gives.
type Found = (Vec<u64>, Vec<u32>, String);

fn judge(found: &[Found], distinct: usize) {
    for (hashes, bits, what) in found {
        for (other, others, which) in found {
            assert_eq!(hashes == other, bits == others, "{what} and {which}");
        }
    }
    let mut known: Vec<&Vec<u64>> = found.iter().map(|found| &found.0).collect();
    known.sort();
    known.dedup();
    assert!(known.len() >= distinct, "only {} orders: {known:?}", known.len());
    assert!(known.len() < found.len(), "all {} orders differ", known.len());
}

fn found(kernel: &Kernel, options: &Options, inputs: &[&[f32]], out: usize) -> Found {
    let executable = compile_uncached(kernel, options, Verify::Off).unwrap();
    let hashes = executable.report().reductions.iter().map(|tree| tree.hash).collect();
    (hashes, run(&executable, &[], inputs, out), format!("{:?}", options.bindings()))
}

#[test]
fn hashes_of_rows_say_which_bits_are_equal() {
    let mut rng = StdRng::seed_from_u64(7);
    let (rows, columns) = (64, 700);
    let a = floats(&mut rng, rows * columns);
    let kernel = row_sum(F32).unwrap();
    let mut all = Vec::new();
    for (block_m, wave_m) in [(1, 1), (2, 1), (4, 4), (8, 2)] {
        for wave_n in [64, 128, 200, 256, 512, 1024] {
            if (1024 / wave_n) * (block_m / wave_m) > 16 {
                continue;
            }
            let tile = [("BLOCK_M", block_m), ("WAVE_M", wave_m), ("WAVE_N", wave_n)];
            let options = options(&[("M", rows as i64), ("N", columns as i64)]);
            let set = |options: Options, (name, value)| options.set(Symbol::new(name), value);
            let options = tile.into_iter().fold(options, set);
            if compile_uncached(&kernel, &options, Verify::Off).is_ok() {
                all.push(found(&kernel, &options, &[&a], rows));
            }
        }
    }
    judge(&all, 3);
}

#[test]
fn hashes_of_loops_say_which_bits_are_equal() {
    let mut rng = StdRng::seed_from_u64(8);
    let (rows, columns) = (300, 70);
    let a = floats(&mut rng, rows * columns);
    let kernel = column_sum(F32).unwrap();
    let mut all = Vec::new();
    for block_n in [16, 64, 128] {
        for block_m in [8, 16, 64] {
            for wave_m in [8, 16, 32] {
                if block_m % wave_m == 0 {
                    let tile = [("BLOCK_M", block_m), ("BLOCK_N", block_n), ("WAVE_M", wave_m)];
                    let sizes = [("M", rows as i64), ("N", columns as i64)];
                    all.push(found(&kernel, &options(&[&tile[..], &sizes].concat()), &[&a], columns));
                }
            }
        }
    }
    judge(&all, 4);
}

#[test]
fn hashes_of_products_say_which_bits_are_equal() {
    let mut rng = StdRng::seed_from_u64(9);
    let (rows, wide, deep) = (40, 32, 150);
    let (a, b) = (floats(&mut rng, rows * deep), floats(&mut rng, wide * deep));
    let mut all = Vec::new();
    for block_m in [16, 32, 64] {
        for block_k in [8, 16, 32, 64, 128] {
            let sizes = [("M", rows as i64), ("N", wide as i64), ("K", deep as i64)];
            let options = options(&[&sizes[..], &[("BLOCK_M", block_m), ("BLOCK_K", block_k)]].concat());
            all.push(found(&product(), &options, &[&a, &b], rows * wide));
        }
    }
    judge(&all, 2);
}

/// Random tiles and waves of a kernel over `[B, M, N]` that folds one of the dimensions: what the others
/// have in common with a larger case has the same bits.
#[test]
fn random_tiles_do_not_depend_on_kept_sizes() {
    let mut rng = StdRng::seed_from_u64(10);
    let dims = symbols(["B", "M", "N"]);
    let mut compared = 0;
    for _ in 0..40 {
        let folded = rng.random_range(0..3);
        let mut large = [6usize, 40, 70].map(|most| rng.random_range(1..=most));
        large[folded] = large[folded].max(3);
        let tiles: Vec<Option<i64>> = (0..3)
            .map(|at| (at != folded && rng.random_bool(0.4)).then(|| 1 << rng.random_range(0..5)))
            .collect();
        let wave_of_folded = rng.random_bool(0.3).then(|| large[folded].div_ceil(2) as i64);
        let scans = rng.random_bool(0.3);
        let kernel = Kernel::trace("random", |w| {
            for (at, &tile) in tiles.iter().enumerate() {
                if let Some(tile) = tile {
                    w.distribute([workgroup(dims[at], tile, at as u32)]);
                }
            }
            if let Some(elements) = wave_of_folded {
                w.distribute([wave(dims[folded], elements)]);
            }
            let x = w.read(w.memory("a", dims, Global, F32));
            let other = (folded + 1) % 3;
            // Another reduction may reach the value first.
            let x = if tiles[other].is_none() && rng.random_bool(0.5) { x * x.max(dims[other]) } else { x };
            let x = if scans { x.cumsum(dims[folded]) } else { x - x.sum(dims[folded]) };
            w.write(x, w.memory("b", dims, Global, F32));
        })
        .unwrap();
        let a = floats(&mut rng, large.iter().product());
        let mut small = large.map(|size| rng.random_range(1..=size));
        small[folded] = large[folded];
        // The maximum of the other dimension is that of a part.
        if kernel.text(groundswell::text::Detail::Source).contains("reduce_max") {
            let other = (folded + 1) % 3;
            small[other] = large[other];
        }
        let at =
            |place: [usize; 3], sizes: [usize; 3]| (place[0] * sizes[1] + place[1]) * sizes[2] + place[2];
        let mut part = Vec::new();
        for b in 0..small[0] {
            for m in 0..small[1] {
                part.extend((0..small[2]).map(|n| a[at([b, m, n], large)]));
            }
        }
        let sums = |sizes: [usize; 3], a: &[f32]| {
            let set = |options: Options, (&dim, size): (&Symbol, usize)| options.set(dim, size as i64);
            let options = dims.iter().zip(sizes).fold(Options::new(Target::GFX942), set);
            let executable = compile_uncached(&kernel, &options, Verify::AfterEachPass).ok()?;
            Some(run(&executable, &[], &[a], a.len()))
        };
        // Some tiles are too large for a wave.
        let (Some(all), Some(few)) = (sums(large, &a), sums(small, &part)) else { continue };
        compared += 1;
        for b in 0..small[0] {
            for m in 0..small[1] {
                for n in 0..small[2] {
                    let (few, all) = (few[at([b, m, n], small)], all[at([b, m, n], large)]);
                    assert_eq!(few, all, "{kernel}: {small:?} of {large:?} at {:?}", [b, m, n]);
                }
            }
        }
    }
    assert!(compared > 25, "{compared} cases");
}
