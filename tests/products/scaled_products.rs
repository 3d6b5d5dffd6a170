//! Products of block floats: MXFP4, MXFP6 and MXFP8 by the instructions of gfx950, and by ordinary products
//! where the factors are multiplied with their scales first. The reference is a plain loop over numbers.

use groundswell::kernels::{ScaleOrder, Waves, block_float_gemm};
use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;
use groundswell_testing::block_floats::{SHAPES, number, scale};
use groundswell_testing::exact_case::of_numbers;
use groundswell_testing::floats::random;
use groundswell_testing::judged::verified;
use groundswell_testing::meaning;
use groundswell_testing::oracle::{Workspace, assert_equivalent};

struct Inputs {
    shape: [usize; 3],
    factors: [Vec<f64>; 2],
    scales: [Vec<f64>; 2],
}

impl Inputs {
    fn of(shape @ [m, n, k]: [usize; 3]) -> Inputs {
        let blocks = k.div_ceil(32);
        let factors = [m, n].map(|rows| (0..rows * k).map(|at| number(at + rows)).collect());
        let scales = [m, n].map(|rows| (0..rows * blocks).map(|at| scale(at + rows)).collect());
        Inputs { shape, factors, scales }
    }

    fn tensors(&self, dtypes: [DType; 2]) -> Vec<Tensor> {
        let [m, n, k] = self.shape;
        let blocks = k.div_ceil(32);
        let [a, b] = &self.factors;
        let [a_scale, b_scale] = &self.scales;
        vec![
            of_numbers(dtypes[0], &[m, k], a),
            of_numbers(dtypes[1], &[n, k], b),
            of_numbers(F8E8M0, &[m, blocks], a_scale),
            of_numbers(F8E8M0, &[n, blocks], b_scale),
            of_numbers(F32, &[m, n], &vec![1.0; m * n]),
        ]
    }

    fn sums(&self) -> Vec<f64> {
        let [m, n, k] = self.shape;
        let blocks = k.div_ceil(32);
        let sum = |at: usize| {
            let (i, j) = (at / n, at % n);
            let term = |l: usize| {
                let scales = self.scales[0][i * blocks + l / 32] * self.scales[1][j * blocks + l / 32];
                self.factors[0][i * k + l] * self.factors[1][j * k + l] * scales
            };
            (0..k).map(term).sum::<f64>()
        };
        (0..m * n).map(sum).collect()
    }
}

fn assert_equal(what: &str, got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let equal = got == expected || got.is_nan() && expected.is_nan();
        assert!(equal, "{what}: {got} at {at}, should be {expected}");
    }
}

/// Sizes that are left open until launch.
fn open(number: usize) -> &'static [&'static str] {
    [&[][..], &["M", "N", "K"], &["K"], &["M"]][number % 4]
}

fn options(target: Target, [m, n, k]: [usize; 3], open: &[&str]) -> Options {
    let tile = [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 128)];
    let options =
        tile.into_iter().fold(Options::new(target), |options, (name, size)| options.set(name, size));
    [("M", m), ("N", n), ("K", k)].into_iter().fold(options, |options, (name, size)| {
        if open.contains(&name) { options.dynamic(name) } else { options.set(name, size) }
    })
}

/// What a launch leaves in C; check mode executes in the order of the seed, run mode if there is none.
fn launched(
    executable: &Executable,
    target: Target,
    (inputs, dtypes): (&Inputs, [DType; 2]),
    open: &[&str],
    seed: Option<u64>,
) -> Vec<f64> {
    let device = Device::simulator(target);
    let tensors = inputs.tensors(dtypes);
    let buffers: Vec<Buffer> = tensors.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
    let mut launch = buffers.iter().fold(device.launch(executable), |launch, buffer| launch.buffer(buffer));
    for (name, size) in ["M", "N", "K"].into_iter().zip(inputs.shape) {
        if open.contains(&name) {
            launch = launch.set(name, size as i64);
        }
    }
    match seed {
        None => drop(launch.run().expect("runs")),
        Some(seed) => {
            let report = launch.check(&CheckOptions { seed }).expect("runs");
            assert!(report.findings.is_empty(), "{}", report.findings[0]);
        }
    }
    let [m, n, _] = inputs.shape;
    let bytes = buffers[4].read_bytes().expect("readable");
    Tensor::from_bytes(&[m, n], F32, &bytes).expect("whole").to_f64()
}

/// The kernel for shapes on a chip, every other one open until launch, in run and in check mode.
fn for_shapes(
    shapes: &[[usize; 3]],
    (target, dtypes, matrix): (Target, [DType; 2], MatrixShape),
    change: &dyn Fn(Options) -> Options,
) {
    let kernel =
        block_float_gemm(dtypes, ScaleOrder::Rows, matrix.into(), Waves::new(2, 2)).expect("well-formed");
    for (at, shape) in shapes.iter().copied().enumerate() {
        let what = format!("{dtypes:?} {matrix} {shape:?} on {target}");
        let inputs = Inputs::of(shape);
        let expected = inputs.sums();
        let size = |symbol: Symbol| {
            let tile = [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 128)];
            let sizes = ["M", "N", "K"].into_iter().zip(shape.map(|size| size as i64)).chain(tile);
            sizes.into_iter().find(|(name, _)| *name == symbol.name()).map(|(_, size)| size)
        };
        let after = Interpreter::run(&kernel, &size, &inputs.tensors(dtypes)).expect("a meaning");
        assert_equal(&format!("{what}: the interpreter"), &after[4].to_f64(), &expected);
        let options = change(options(target, shape, open(at)));
        let executable = verified(&kernel, &options);
        if at % 8 == 0 {
            meaning::compare(&kernel, &options, &size).unwrap_or_else(|fault| panic!("{what}: {fault}"));
            meaning::reads_back(&what, &kernel, &options);
        }
        let seed = (at % 2 == 0).then_some(at as u64);
        assert_equal(&what, &launched(&executable, target, (&inputs, dtypes), open(at), seed), &expected);
    }
}

/// The kernel for all shapes with factors of one dtype.
fn for_all_shapes(target: Target, dtype: DType, matrix: MatrixShape, change: &dyn Fn(Options) -> Options) {
    for_shapes(&SHAPES, (target, [dtype; 2], matrix), change);
}

#[test]
fn instructions_of_gfx950_multiply_4_bit_floats() {
    for matrix in MatrixShape::ALL {
        for_all_shapes(Target::GFX950, F4E2M1, matrix, &|options| options);
    }
}

#[test]
fn instructions_of_gfx950_multiply_8_bit_floats() {
    for (dtype, matrix) in [(F8E4M3Fn, MatrixShape::M16x16), (F8E5M2, MatrixShape::M32x32)] {
        for_all_shapes(Target::GFX950, dtype, matrix, &|options| options);
    }
}

#[test]
fn instructions_of_gfx950_multiply_6_bit_floats() {
    for (dtype, matrix) in [(F6E2M3, MatrixShape::M16x16), (F6E3M2, MatrixShape::M32x32)] {
        for_all_shapes(Target::GFX950, dtype, matrix, &|options| options);
    }
}

/// Every dtype on the left with every other one on the right, a few shapes each.
#[test]
fn factors_have_dtypes_of_their_own() {
    let dtypes = [F4E2M1, F6E2M3, F6E3M2, F8E4M3Fn, F8E5M2];
    let pairs = dtypes.into_iter().flat_map(|left| dtypes.map(|right| [left, right]));
    for (at, pair @ [left, right]) in pairs.enumerate() {
        if left != right {
            let shapes = [0, 7, 14].map(|more| SHAPES[(at + more) % SHAPES.len()]);
            let matrix = MatrixShape::ALL[at % 2];
            let schedule = [Schedule::None, Schedule::Prefetch, Schedule::Modulo][at % 3].clone();
            for_shapes(&shapes, (Target::GFX950, pair, matrix), &|o: Options| o.schedule(schedule.clone()));
        }
    }
    let of_pair =
        |target, pair, matrix| for_shapes(&SHAPES[1..6], (target, pair, matrix), &|options| options);
    of_pair(Target::GFX942, [F6E2M3, F4E2M1], MatrixShape::M16x16);
    of_pair(Target::GFX90A, [F8E5M2, F6E3M2], MatrixShape::M32x32);
}

#[test]
fn other_chips_multiply_factors_with_their_scales() {
    for_all_shapes(Target::GFX942, F4E2M1, MatrixShape::M16x16, &|options| options);
    for_all_shapes(Target::GFX90A, F8E5M2, MatrixShape::M32x32, &|options| options.emulate(F32));
    for_all_shapes(Target::GFX950, F8E4M3Fn, MatrixShape::M16x16, &|options| options.emulate(F16));
    for_shapes(&SHAPES[..10], (Target::GFX950, [F4E2M1; 2], MatrixShape::M32x32), &|o| o.emulate(Bf16));
    for_shapes(&SHAPES[5..15], (Target::GFX950, [F6E3M2, F8E5M2], MatrixShape::M16x16), &|o| o.emulate(F32));
}

#[test]
fn a_scale_that_is_no_number_makes_none_of_its_block() {
    let shape = [20, 20, 100];
    for (target, dtype) in [
        (Target::GFX950, F4E2M1),
        (Target::GFX950, F6E3M2),
        (Target::GFX950, F8E4M3Fn),
        (Target::GFX942, F4E2M1),
    ] {
        let mut inputs = Inputs::of(shape);
        // The last block of row 3 of A, where elements are zeros too.
        inputs.scales[0][3 * 4 + 3] = f64::NAN;
        inputs.factors[0][3 * 100 + 96..4 * 100].fill(0.0);
        let kernel =
            block_float_gemm([dtype; 2], ScaleOrder::Rows, MatrixShape::M16x16.into(), Waves::new(1, 1))
                .expect("well-formed");
        let executable = kernel.compile(&options(target, shape, &[])).expect("compiles");
        let sums = inputs.sums();
        assert_eq!(sums.iter().filter(|sum| sum.is_nan()).count(), 20);
        assert_equal("NaN", &launched(&executable, target, (&inputs, [dtype; 2]), &[], None), &sums);
    }
}

/// Bytes of elements with these codes.
fn packed(codes: &[u8], bits: u32) -> Vec<u8> {
    match bits {
        4 => codes.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect(),
        6 => {
            let word = |four: &[u8]| four.iter().rev().fold(0u32, |word, &code| word << 6 | u32::from(code));
            codes.chunks(4).flat_map(|four| word(four).to_le_bytes().into_iter().take(3)).collect()
        }
        _ => codes.to_vec(),
    }
}

/// Dtypes of factors and their bits.
const FACTORS: [(DType, u32); 5] = [(F4E2M1, 4), (F6E2M3, 6), (F6E3M2, 6), (F8E4M3Fn, 8), (F8E5M2, 8)];

/// Any scales, among them NaN and both ends of the range, and any elements: zeros of both signs, denormal and
/// infinite ones and NaN. A row of A has one element that is no zero, so a sum is one product, rounded once.
fn any_numbers([m, n, k]: [usize; 3], (dtype, bits): (DType, u32)) -> Vec<Tensor> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || (random(&mut state) >> 56) as u8;
    let (sign, code) = (1u8 << (bits - 1), (0xffu32 >> (8 - bits)) as u8);
    let a: Vec<u8> =
        (0..m * k).map(|at| random() & if at % k == at / k * 7 % k { code } else { sign }).collect();
    // Three of four rows of B are finite: their exponents lack a bit.
    let finite = |row: usize| if row.is_multiple_of(4) { code } else { code & !0x40 };
    let b: Vec<u8> = (0..n * k).map(|at| random() & finite(at / k)).collect();
    let mut scales = |rows: usize| -> Vec<u8> {
        (0..rows * k / 32).map(|at| [0, 1, 127, 253, 254, random(), random()][at % 7]).collect()
    };
    let mut of_scales = [scales(m), scales(n)];
    of_scales.iter_mut().for_each(|scales| scales[11] = 0xff);
    vec![
        Tensor::from_bytes(&[m, k], dtype, &packed(&a, bits)).expect("whole"),
        Tensor::from_bytes(&[n, k], dtype, &packed(&b, bits)).expect("whole"),
        Tensor::from_bytes(&[m, k / 32], F8E8M0, &of_scales[0]).expect("whole"),
        Tensor::from_bytes(&[n, k / 32], F8E8M0, &of_scales[1]).expect("whole"),
        of_numbers(F32, &[m, n], &vec![1.0; m * n]),
    ]
}

#[test]
fn any_scale_goes_with_any_element() {
    let shape @ [m, n, k] = [32, 32, 256];
    for (dtype, bits) in FACTORS {
        let tensors = any_numbers(shape, (dtype, bits));
        let [x, y, of_x, of_y] = [0, 1, 2, 3].map(|at| tensors[at].to_f64());
        let scaled = |values: &[f64], scales: &[f64], at: usize| values[at] * scales[at / 32];
        let sum = |(i, j): (usize, usize)| {
            let term = |l: usize| scaled(&x, &of_x, i * k + l) * scaled(&y, &of_y, j * k + l);
            f64::from((0..k).map(term).sum::<f64>() as f32)
        };
        let expected: Vec<f64> = (0..m * n).map(|at| sum((at / n, at % n))).collect();
        assert!(expected.iter().any(|sum| sum.is_nan()) && expected.iter().any(|sum| sum.is_finite()));
        for matrix in MatrixShape::ALL {
            let kernel = block_float_gemm([dtype; 2], ScaleOrder::Rows, matrix.into(), Waves::new(1, 1))
                .expect("well-formed");
            let size = |symbol: Symbol| {
                let sizes =
                    [("M", m), ("N", n), ("K", k), ("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 128)];
                sizes.into_iter().find(|(name, _)| *name == symbol.name()).map(|(_, size)| size as i64)
            };
            let after = Interpreter::run(&kernel, &size, &tensors).expect("a meaning");
            assert_equal(&format!("{dtype} {matrix}: the interpreter"), &after[4].to_f64(), &expected);
            let executable = kernel.compile(&options(Target::GFX950, shape, &[])).expect("compiles");
            let got = products(&executable, Target::GFX950, &tensors);
            assert_equal(&format!("{dtype} {matrix}"), &got, &expected);
        }
    }
}

/// What a launch with these tensors leaves in the last one.
fn products(executable: &Executable, target: Target, tensors: &[Tensor]) -> Vec<f64> {
    let device = Device::simulator(target);
    let buffers: Vec<Buffer> = tensors.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
    let launch = buffers.iter().fold(device.launch(executable), |launch, buffer| launch.buffer(buffer));
    launch.run().expect("runs");
    let bytes = buffers[4].read_bytes().expect("readable");
    Tensor::from_bytes(tensors[4].shape(), F32, &bytes).expect("whole").to_f64()
}

/// Instructions that convert with a scale, and arithmetic, make the same of any element and any scale.
#[test]
fn emulation_is_the_same_with_and_without_conversions() {
    let shape = [32, 32, 256];
    for (dtype, bits) in FACTORS {
        let mut tensors = any_numbers(shape, (dtype, bits));
        // Scaled elements of B stay finite, so that zeros of A are zeros of products.
        tensors[3] = of_numbers(F8E8M0, &[32, 8], &[1.0; 256]);
        let kernel =
            block_float_gemm([dtype; 2], ScaleOrder::Rows, MatrixShape::M16x16.into(), Waves::new(1, 1))
                .expect("well-formed");
        for emulated in [F32, F16, Bf16] {
            let [with, without] = [Target::GFX950, Target::GFX942].map(|target| {
                let options = options(target, shape, &[]).emulate(emulated);
                let executable = kernel.compile(&options).expect("compiles");
                (executable.assembly().expect("a listing"), products(&executable, target, &tensors))
            });
            assert_equal(&format!("{dtype} in {emulated}"), &with.1, &without.1);
            assert!(with.1.iter().any(|sum| sum.is_nan()) && with.1.iter().any(|sum| sum.is_finite()));
            assert!(with.0.contains("v_cvt_scalef32_pk_") && !without.0.contains("v_cvt_scalef32_pk_"));
            // Scales are taken as they are; arithmetic has another number for the smallest of them.
            let [limited, of_arithmetic] = [&with.0, &without.0].map(|text| text.contains("v_max_u32"));
            assert!(of_arithmetic && limited == (bits == 6), "{dtype} in {emulated}");
        }
    }
}

#[test]
fn scaled_objects_are_those_of_llvm() {
    let Some(space) = Workspace::with_zig() else { return };
    for (dtypes, matrix, mnemonic) in [
        ([F4E2M1; 2], MatrixShape::M16x16, "v_mfma_scale_f32_16x16x128_f8f6f4"),
        ([F4E2M1; 2], MatrixShape::M32x32, "v_mfma_scale_f32_32x32x64_f8f6f4"),
        ([F8E5M2; 2], MatrixShape::M16x16, "v_mfma_scale_f32_16x16x128_f8f6f4"),
        ([F6E2M3, F6E3M2], MatrixShape::M16x16, "v_mfma_scale_f32_16x16x128_f8f6f4"),
        ([F8E4M3Fn, F4E2M1], MatrixShape::M32x32, "v_mfma_scale_f32_32x32x64_f8f6f4"),
        ([F4E2M1, F6E3M2], MatrixShape::M16x16, "v_mfma_scale_f32_16x16x128_f8f6f4"),
    ] {
        let kernel =
            block_float_gemm(dtypes, ScaleOrder::Rows, matrix.into(), Waves::new(2, 2)).expect("well-formed");
        let open: &[&str] = if dtypes == [F8E5M2; 2] { &["K"] } else { &[] };
        let options = options(Target::GFX950, [64, 64, 256], open);
        for schedule in [Schedule::None, Schedule::Prefetch] {
            let executable = kernel.compile(&options.clone().schedule(schedule)).expect("compiles");
            let text = executable.assembly().expect("text");
            assert!(text.contains(mnemonic), "{text}");
            assert_equivalent(executable.object(), &space.assemble(executable.target(), &text));
        }
    }
}

/// 4-bit factors stay two in a byte from memory to the matrix core.
#[test]
fn no_4_bit_factor_is_unpacked_in_the_loop() {
    let kernel =
        block_float_gemm([F4E2M1; 2], ScaleOrder::Rows, MatrixShape::M16x16.into(), Waves::new(2, 2))
            .expect("well-formed");
    let executable = kernel.compile(&options(Target::GFX950, [64, 64, 1024], &[])).expect("compiles");
    let text = executable.assembly().expect("text");
    assert!(text.contains("ds_read_b128"), "{text}");
    for word in ["v_lshrrev_b32", "v_cvt", "v_and_or_b32"] {
        let body = text.split("v_mfma").count();
        assert!(body > 1, "{text}");
        let between = text.split("v_mfma").skip(1).take(body - 2).any(|part| part.contains(word));
        assert!(!between, "{word}: {text}");
    }
}

/// Scales that the author has in another order, in which a lane's four are side by side and its neighbours'
/// next to them: eight blocks of a row, and then those of the next row.
const REORDERED: &str = include_str!("../data/preshuffled_mxfp4.gsw");

#[test]
fn one_dword_of_reordered_scales_serves_four_instructions() {
    reordered("global");
}

/// Rows of eight bytes lie in LDS so that lanes find all banks, with dwords exchanged in every other sixteen
/// rows.
#[test]
fn reordered_scales_have_no_bank_conflicts() {
    reordered("shared");
}

/// Multiplies with reordered scales that are in memories of `space`.
fn reordered(space: &str) {
    let text = REORDERED.replace("shared f8e8m0", &format!("{space} f8e8m0"));
    let kernel = Kernel::parse(&text, "reordered.gsw").expect("well-formed");
    let tile = [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 256), ("WAVES_M", 2), ("WAVES_N", 2)];
    for (at, [m, n, k]) in [[64, 64, 1024], [40, 70, 700], [1, 33, 256]].into_iter().enumerate() {
        let inputs = Inputs::of([m, n, k]);
        let mut tensors = inputs.tensors([F4E2M1; 2]);
        let blocks = k.div_ceil(32);
        for (rows, tensor, scales) in [(m, 2, &inputs.scales[0]), (n, 3, &inputs.scales[1])] {
            let tiles = k.div_ceil(256);
            let of = |place: usize| {
                let (tile, row, block) = (place / 8 / rows, place / 8 % rows, place % 8);
                let block = tile * 8 + block;
                // The rest of a last group is anything.
                if block < blocks { scales[row * blocks + block] } else { f64::NAN }
            };
            let numbers: Vec<f64> = (0..tiles * rows * 8).map(of).collect();
            tensors[tensor] = of_numbers(F8E8M0, &[tiles, rows, 8], &numbers);
        }
        let sizes = [("M", m), ("N", n), ("K", k)];
        let options = sizes
            .into_iter()
            .chain(tile)
            .fold(Options::new(Target::GFX950), |o, (name, size)| o.set(name, size));
        let options = options.schedule([Schedule::None, Schedule::Prefetch, Schedule::Modulo][at].clone());
        let options = options.deny(Deny::BankConflicts).deny(Deny::Spills);
        let executable = verified(&kernel, &options);
        let text = executable.assembly().expect("text");
        let count = |word: &str| text.lines().filter(|line| line.trim_start().starts_with(word)).count();
        if (at, space) == (0, "global") {
            // Of each factor a dword for the four instructions of an iteration.
            assert_eq!(count("v_mfma_scale_f32_32x32x64_f8f6f4"), 4, "{text}");
            assert_eq!((count("buffer_load_dword "), count("buffer_load_ubyte ")), (2, 0), "{text}");
            for select in ["op_sel:[1,1", "op_sel_hi:[1,1"] {
                assert!(text.contains(select), "{select}: {text}");
            }
        }
        let device = Device::simulator(Target::GFX950);
        let buffers: Vec<Buffer> = tensors.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
        let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
        let report = launch.check(&CheckOptions { seed: at as u64 }).expect("runs");
        assert!(report.findings.is_empty(), "{}", report.findings[0]);
        let bytes = buffers[4].read_bytes().expect("readable");
        let sums = Tensor::from_bytes(&[m, n], F32, &bytes).expect("whole").to_f64();
        assert_equal("reordered", &sums, &inputs.sums());
    }
}

/// Whole tiles straight into LDS, scales through registers; the loop is long enough for all stages, or ends
/// in a part of a tile.
#[test]
fn waves_take_turns_with_scales() {
    for (dtype, matrix, k) in [
        (F4E2M1, MatrixShape::M16x16, 2048),
        (F4E2M1, MatrixShape::M32x32, 1536),
        (F8E4M3Fn, MatrixShape::M16x16, 1040),
        (F8E5M2, MatrixShape::M32x32, 1024),
    ] {
        let kernel = block_float_gemm([dtype; 2], ScaleOrder::Rows, matrix.into(), Waves::new(4, 2))
            .expect("well-formed");
        let shape = [128, 128, k];
        let inputs = Inputs::of(shape);
        let sizes = [("M", 128), ("N", 128), ("K", k as i64)];
        let tile = [("BLOCK_M", 128), ("BLOCK_N", 128), ("BLOCK_K", 256)];
        let options = Options::new(Target::GFX950).schedule(Schedule::PingPong);
        let options =
            sizes.into_iter().chain(tile).fold(options, |options, (name, size)| options.set(name, size));
        let executable = verified(&kernel, &options);
        let report = executable.report();
        assert_eq!(report.schedule_applied, "pingpong", "{dtype} {matrix} {k}");
        // Where a part of a tile is left, its factors as well.
        assert_eq!(
            report.direct_loads,
            if usize::is_multiple_of(k, 256) { 2 } else { 4 },
            "{dtype} {matrix} {k}"
        );
        for seed in [None, Some(1), Some(2)] {
            let got = launched(&executable, Target::GFX950, (&inputs, [dtype; 2]), &[], seed);
            assert_equal(&format!("{dtype} {matrix} {k} {seed:?}"), &got, &inputs.sums());
        }
    }
}

/// What the workgroup widens at the tiles of the ready kernel stays in registers on its way to LDS.
#[test]
fn emulation_does_not_spill() {
    for target in [Target::GFX908, Target::GFX90A, Target::GFX942] {
        for dtype in [F4E2M1, F8E4M3Fn] {
            let kernel =
                block_float_gemm([dtype; 2], ScaleOrder::Rows, MatrixShape::M16x16.into(), Waves::new(2, 2))
                    .expect("well-formed");
            for schedule in [Schedule::None, Schedule::Prefetch] {
                let options = options(target, [256, 256, 1024], &[]).schedule(schedule);
                let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{target}: {fault}"));
                assert_eq!(executable.report().scratch_bytes, 0, "{target} {dtype}");
            }
        }
    }
}
