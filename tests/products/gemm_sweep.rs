//! GEMM on the simulator against the reference interpreter: shapes that tiles divide and do not divide, every
//! tile, wave grid and matrix instruction, static and dynamic sizes; on every chip with its own instructions,
//! and with products of lanes on gfx906. The full product is long, so a plain run takes a sample that meets
//! every value of every axis. `GROUNDSWELL_SWEEP=full` takes all of it. `GROUNDSWELL_SWEEP=5` takes a fifth
//! for gfx942, and for other chips as much less as a plain run takes: most of the compiler is the same.

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::diagnostic::Kind;
use groundswell::prelude::*;
use groundswell_testing::meaning;

/// Which operand order a GEMM has.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Form {
    /// b is `[N, K]`.
    Abt,
    /// b is `[K, N]`.
    Ab,
}

#[derive(Copy, Clone, Debug)]
struct Case {
    target: Target,
    shape: [i64; 3],
    tile: [i64; 3],
    waves: [i64; 2],
    mma: Mma,
    form: Form,
    dynamic: bool,
}

impl Case {
    /// Whether the workgroups' tiles hold few products, so that they can be compared after every pass.
    fn is_small(&self) -> bool {
        let covered = self.shape.iter().zip(self.tile).map(|(size, tile)| (size + tile - 1) / tile * tile);
        covered.product::<i64>() <= 1 << 16
    }
}

fn gemm(case: &Case) -> Kernel {
    let [m, n, k, bm, bn, bk] = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    Kernel::trace("gemm", |w| {
        let [wm, wn] = case.waves;
        w.distribute([
            workgroup(m, bm, 0),
            workgroup(n, bn, 1),
            tile(k, bk),
            wave(m, bm / wm),
            wave(n, bn / wn),
        ]);
        w.mma_type(case.mma);
        let a = w.memory("a", [m, k], Shared, case.mma.input());
        let b_shape = if case.form == Form::Abt { [n, k] } else { [k, n] };
        let b = w.memory("b", b_shape, Shared, case.mma.inputs()[1]);
        let c = w.memory("c", [m, n], Global, case.mma.accumulator());
        let zero = w.register([m, n], case.mma.accumulator(), 0.0);
        let [acc] = w.iterate(k, [zero], |w, [acc]| {
            let a = w.read(a).tag("read_a");
            let b = w.read(b).tag("read_b");
            [w.mma(a, b, acc).tag("mma")]
        });
        w.write(acc, c);
    })
    .expect("the kernel is valid")
}

/// Compiles and runs one case; `Ok(false)` if the combination cannot work and the compiler says so.
fn check(case: &Case) -> Result<bool, String> {
    let names = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    let kernel = gemm(case);
    let mut options = Options::new(case.target);
    for (at, &symbol) in names.iter().enumerate() {
        let value = if at < 3 { case.shape[at] } else { case.tile[at - 3] };
        options = if at < 3 && case.dynamic { options.dynamic(symbol) } else { options.set(symbol, value) };
    }
    let fail = |what: &str, error: &dyn std::fmt::Display| format!("{case:?}: {what}: {error}");
    let [tm, tn, tk] = case.tile;
    let fits = tm / case.waves[0] % i64::from(case.mma.m()) == 0
        && tn / case.waves[1] % i64::from(case.mma.n()) == 0
        && tk % i64::from(case.mma.k()) == 0
        && tm >= case.waves[0]
        && tn >= case.waves[1];
    let most = if case.target == Target::GFX906 { 128 } else { 256 };
    let executable = match compile_uncached(&kernel, &options, Verify::AfterEachPass) {
        Ok(_) if !fits => {
            return Err(fail("compiled", &"but the tile is not a multiple of the matrix instruction"));
        }
        Ok(executable) => executable,
        Err(error) if error.kind == Kind::Invalid && !fits => return Ok(false),
        // A wave that alone holds more accumulators than either register file has, or than the only one has
        // beside the factors.
        Err(error) if error.kind == Kind::Limit && tm * tn / case.waves[0] / case.waves[1] > 64 * most => {
            return Ok(false);
        }
        Err(error) => return Err(fail("compile", &error)),
    };
    let [m, n, k] = case.shape.map(|s| s as usize);
    let ([input, right], output) = (case.mma.inputs(), case.mma.accumulator());
    let b_shape = if case.form == Form::Abt { vec![n, k] } else { vec![k, n] };
    let tensors = [
        Tensor::random(&[m, k], input, 1).map_err(|e| e.to_string())?,
        Tensor::random(&b_shape, right, 2).map_err(|e| e.to_string())?,
        Tensor::random(&[m, n], output, 3).map_err(|e| e.to_string())?,
    ];
    let value = |s: Symbol| {
        let at = names.iter().position(|&n| n == s)?;
        Some(if at < 3 { case.shape[at] } else { case.tile[at - 3] })
    };
    if case.is_small() {
        meaning::compare(&kernel, &options, &value).map_err(|e| fail("passes", &e))?;
    }
    let expected = Interpreter::run(&kernel, &value, &tensors).map_err(|e| fail("interpreter", &e))?;
    let device = Device::simulator(case.target);
    let upload = |t: &Tensor| device.upload_tensor(t).map_err(|e| fail("upload", &e));
    let buffers = [upload(&tensors[0])?, upload(&tensors[1])?, upload(&tensors[2])?];
    let mut launch = device.launch(&executable);
    for buffer in &buffers {
        launch = launch.buffer(buffer);
    }
    if case.dynamic {
        for &symbol in &names[..3] {
            launch = launch.set(symbol, value(symbol).unwrap_or(0));
        }
    }
    launch.run().map_err(|e| fail("launch", &e))?;
    let bytes = buffers[2].read_bytes().map_err(|e| fail("download", &e))?;
    let got = Tensor::from_bytes(&[m, n], output, &bytes).map_err(|e| fail("download", &e))?;
    let (got, want) = (got.to_f64(), expected[2].to_f64());
    let tolerance = if output.is_float() { 1e-3 } else { 0.0 };
    for row in 0..m {
        let (got, want) = (&got[row * n..][..n], &want[row * n..][..n]);
        let magnitude = want.iter().fold(0f64, |a, b| a.max(b.abs()));
        for (column, (g, w)) in got.iter().zip(want).enumerate() {
            if (g - w).abs() > tolerance * magnitude || g.is_nan() {
                return Err(fail("result", &format!("c[{row}, {column}] is {g}, should be {w}")));
            }
        }
    }
    Ok(true)
}

const SIZES: [i64; 12] = [1, 16, 17, 63, 64, 65, 127, 128, 129, 200, 257, 512];
const TILES: [[i64; 3]; 5] = [[64, 64, 32], [128, 128, 32], [128, 256, 64], [32, 32, 16], [16, 16, 16]];
const WAVES: [[i64; 2]; 4] = [[1, 1], [2, 2], [4, 2], [2, 4]];

/// A chip, what it multiplies by, and the part of the product that a plain run takes.
struct Chip {
    target: Target,
    mmas: &'static [Mma],
    /// What the tiles' sizes along K are multiplied by, where instructions take more of K.
    deeper: i64,
    part: usize,
}

/// The part that a plain run takes of the chip on which most cases run.
const LARGEST_PART: usize = 29;

const GFX942: Chip = Chip {
    target: Target::GFX942,
    mmas: &[
        Mma::F32_16x16x16_F16,
        Mma::F32_32x32x8_F16,
        Mma::F32_16x16x16_BF16,
        Mma::F32_32x32x8_BF16,
        Mma::I32_16x16x32_I8,
        Mma::I32_32x32x16_I8,
    ],
    deeper: 1,
    part: LARGEST_PART,
};

const GFX950: Chip = Chip {
    target: Target::GFX950,
    mmas: &[
        Mma::F32_16x16x32_F16,
        Mma::F32_32x32x16_F16,
        Mma::F32_16x16x32_BF16,
        Mma::F32_32x32x16_BF16,
        Mma::I32_16x16x64_I8,
        Mma::I32_32x32x32_I8,
    ],
    deeper: 2,
    part: 151,
};

const GFX90A: Chip = Chip {
    target: Target::GFX90A,
    mmas: &[
        Mma::F32_16x16x16_F16,
        Mma::F32_32x32x8_F16,
        Mma::F32_16x16x16_BF16,
        Mma::F32_32x32x8_BF16,
        Mma::I32_16x16x16_I8,
        Mma::I32_32x32x8_I8,
    ],
    deeper: 1,
    part: 151,
};

const GFX908: Chip = Chip {
    target: Target::GFX908,
    mmas: &[
        Mma::F32_16x16x16_F16,
        Mma::F32_32x32x8_F16,
        Mma::F32_16x16x8_BF16,
        Mma::F32_32x32x4_BF16,
        Mma::I32_16x16x16_I8,
        Mma::I32_32x32x8_I8,
    ],
    deeper: 1,
    part: 151,
};

const GFX906: Chip = Chip {
    target: Target::GFX906,
    mmas: &[Mma::F32_8x8x2_F16, Mma::F32_8x8x2_BF16, Mma::I32_8x8x4_I8],
    deeper: 1,
    part: 151,
};

/// 72 mixed triples: every size in every place, next to ever different ones.
fn shapes() -> Vec<[i64; 3]> {
    (0..6)
        .flat_map(|turn| {
            (0..12)
                .map(move |at| [SIZES[at], SIZES[(at * 5 + turn) % 12], SIZES[(at * 7 + turn * 5 + 3) % 12]])
        })
        .collect()
}

fn cases(chip: &Chip) -> Vec<Case> {
    let target = chip.target;
    let mut all = Vec::new();
    for (s, &shape) in shapes().iter().enumerate() {
        for (t, &[tile_m, tile_n, tile_k]) in TILES.iter().enumerate() {
            let tile = [tile_m, tile_n, tile_k * chip.deeper];
            for (w, &waves) in WAVES.iter().enumerate() {
                for (i, &mma) in chip.mmas.iter().enumerate() {
                    for (d, dynamic) in [false, true].into_iter().enumerate() {
                        let form = if (s + t + w + i + d) % 4 == 3 { Form::Ab } else { Form::Abt };
                        all.push(Case { target, shape, tile, waves, mma, form, dynamic });
                    }
                }
            }
        }
    }
    let part = match std::env::var("GROUNDSWELL_SWEEP") {
        Ok(text) if text == "full" => 1,
        Ok(text) => {
            let of_largest: usize = text.parse().expect("GROUNDSWELL_SWEEP is `full` or a number");
            (of_largest * chip.part).div_ceil(LARGEST_PART)
        }
        Err(_) => chip.part,
    };
    // Coprime to the length of every axis: any part of the product mixes the values of all axes, whatever its
    // size.
    const STRIDE: usize = 10_691;
    (0..all.len().div_ceil(part)).map(|at| all[at * STRIDE % all.len()]).collect()
}

#[test]
fn gemm_equals_the_interpreter() {
    sweep(&GFX942);
}

#[test]
fn gemm_of_gfx950_equals_the_interpreter() {
    sweep(&GFX950);
}

#[test]
fn gemm_of_gfx90a_equals_the_interpreter() {
    sweep(&GFX90A);
}

#[test]
fn gemm_of_gfx908_equals_the_interpreter() {
    sweep(&GFX908);
}

#[test]
fn gemm_of_gfx906_equals_the_interpreter() {
    sweep(&GFX906);
}

fn sweep(chip: &Chip) {
    let cases = cases(chip);
    let (mut ran, mut refused, mut failures) = (0, 0, 0);
    for (at, case) in cases.iter().enumerate() {
        if at > 0 && at % 500 == 0 {
            println!("{at} of {}: {ran} ran, {refused} refused, {failures} failed", cases.len());
        }
        if std::env::var_os("GROUNDSWELL_SWEEP_TRACE").is_some() {
            eprintln!("{case:?}");
        }
        match check(case) {
            Ok(true) => ran += 1,
            Ok(false) => refused += 1,
            Err(text) => {
                println!("{text}");
                failures += 1;
            }
        }
    }
    println!("{ran} cases ran, {refused} cannot work and were refused, {failures} failed");
    assert_eq!(failures, 0, "of {} cases", cases.len());
    assert!(ran > refused, "most combinations must be real ones");
}
