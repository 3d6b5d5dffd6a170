//! Products of packed factors whose memory has the product's other dimension innermost, `[K, N]` and `[K, M]`
//! of 4-bit and 6-bit floats: on gfx950 reads of LDS turn them. The reference is a plain loop over numbers.

use groundswell::compile::{Verify, compile_uncached};
use groundswell::internals::with_workspace;
use groundswell::kernels::Waves;
use groundswell::prelude::*;
use groundswell::text::Detail;
use groundswell_testing::block_floats::{SHAPES, number, scale};
use groundswell_testing::exact_case::{Case, of_numbers, ones};
use groundswell_testing::judged::verified;
use groundswell_testing::meaning;
use groundswell_testing::oracle::{Workspace, assert_equivalent};
use groundswell_testing::schedules::OF_PRODUCTS as SCHEDULES;

/// A factor: its dtype, and whether its memory has the summed dimension in front.
#[derive(Copy, Clone, Debug)]
struct Factor {
    dtype: DType,
    is_turned: bool,
}

const fn straight(dtype: DType) -> Factor {
    Factor { dtype, is_turned: false }
}

const fn turned(dtype: DType) -> Factor {
    Factor { dtype, is_turned: true }
}

#[derive(Clone, Debug)]
struct Product {
    factors: [Factor; 2],
    has_scales: bool,
    matrix: MatrixShape,
    waves: Waves,
    space: AddressSpace,
}

impl Product {
    fn of(factors: [Factor; 2], has_scales: bool, matrix: MatrixShape) -> Product {
        Product { factors, has_scales, matrix, waves: Waves::new(2, 2), space: Shared }
    }

    /// Asserts that reads of LDS turn each factor that lies so.
    fn assert_reads(&self, text: &str) {
        for factor in self.factors.into_iter().filter(|factor| factor.is_turned) {
            let read = match factor.dtype.bits() {
                6 => "ds_read_b96_tr_b6",
                8 => "ds_read_b64_tr_b8",
                _ => "ds_read_b64_tr_b4",
            };
            assert!(text.contains(read), "{self:?}: {text}");
        }
    }

    fn kernel(&self) -> Kernel {
        let [m, n, k] = symbols(["M", "N", "K"]);
        let [bm, bn, bk] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
        let waves = [wave(m, bm / i64::from(self.waves.m)), wave(n, bn / i64::from(self.waves.n))];
        Kernel::trace("product", |w| {
            w.distribute([workgroup(m, bm, 0), workgroup(n, bn, 1), tile(k, bk)]);
            w.distribute(waves);
            if self.has_scales {
                // Only chips without such products do.
                w.distribute([emulate(Bf16)]);
            }
            w.mma_type(self.matrix);
            let [a, b] = [("a", m, 0), ("b", n, 1)].map(|(name, own, at)| {
                let Factor { dtype, is_turned } = self.factors[at];
                w.memory(name, if is_turned { [k, own] } else { [own, k] }, self.space, dtype)
            });
            let scales = self.has_scales.then(|| {
                [("a_scale", m), ("b_scale", n)]
                    .map(|(name, own)| w.memory(name, [own, k.scaled(32)], self.space, F8E8M0))
            });
            let c = w.memory("c", [m, n], Global, F32);
            let zero = w.register([m, n], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| {
                let [a, b] = [w.read(a).tag("a"), w.read(b).tag("b")];
                [match scales {
                    None => w.mma(a, b, sum),
                    Some([x, y]) => w.scaled_mma(a, w.read(x), b, w.read(y), sum),
                }]
            });
            w.write(sum, c);
        })
        .expect("well-formed")
    }

    fn case(&self, shape: [usize; 3], tile: [usize; 3]) -> Case {
        let [m, n, k] = shape;
        let blocks = k.div_ceil(32);
        let rows = [m, n];
        let element = |side: usize, row: usize, at: usize| number(row * k + at + rows[side]);
        let scaling = |side: usize, row: usize, block: usize| match self.has_scales {
            true => scale(row * blocks + block + rows[side]),
            false => 1.0,
        };
        let mut inputs = Vec::new();
        for (side, factor) in self.factors.into_iter().enumerate() {
            let (row, all) = (rows[side], 0..rows[side] * k);
            inputs.push(match factor.is_turned {
                false => {
                    let numbers: Vec<f64> = all.map(|at| element(side, at / k, at % k)).collect();
                    of_numbers(factor.dtype, &[row, k], &numbers)
                }
                true => {
                    let numbers: Vec<f64> = all.map(|at| element(side, at % row, at / row)).collect();
                    of_numbers(factor.dtype, &[k, row], &numbers)
                }
            });
        }
        for side in (0..2).filter(|_| self.has_scales) {
            let all: Vec<f64> =
                (0..rows[side] * blocks).map(|at| scaling(side, at / blocks, at % blocks)).collect();
            inputs.push(of_numbers(F8E8M0, &[rows[side], blocks], &all));
        }
        inputs.push(ones(F32, &[m, n]));
        let names = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"];
        let sizes: Vec<_> = names.into_iter().zip(shape.into_iter().chain(tile)).collect();
        let mut case = Case::plain(format!("{self:?} {shape:?} {tile:?}"), self.kernel(), &sizes, inputs);
        let sum = |i: usize, j: usize| {
            let term = |l: usize| {
                let scales = scaling(0, i, l / 32) * scaling(1, j, l / 32);
                element(0, i, l) * element(1, j, l) * scales
            };
            (0..k).map(term).sum::<f64>()
        };
        case.expected = (0..m * n).map(|at| sum(at / n, at % n)).collect();
        case
    }

    fn options(&self, shape: [usize; 3], tile: [usize; 3], target: Target) -> Options {
        let names = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"];
        let sizes = names.into_iter().zip(shape.into_iter().chain(tile));
        sizes.fold(Options::new(target), |options, (name, size)| options.set(name, size as i64))
    }
}

const TILE: [usize; 3] = [64, 64, 128];

/// Sizes that are left open until launch.
fn open(number: usize) -> Vec<&'static str> {
    [&[][..], &["M", "N", "K"], &["K"], &["N"]][number % 4].to_vec()
}

/// Factors of which at least one is turned.
const FACTORS: [[Factor; 2]; 16] = [
    [straight(F4E2M1), turned(F4E2M1)],
    [turned(F4E2M1), turned(F4E2M1)],
    [turned(F4E2M1), straight(F4E2M1)],
    [straight(F8E4M3Fn), turned(F4E2M1)],
    [turned(F4E2M1), turned(F8E5M2)],
    [straight(F6E2M3), turned(F4E2M1)],
    [turned(F8E4M3Fn), turned(F4E2M1)],
    [turned(F4E2M1), straight(F6E3M2)],
    [straight(F6E2M3), turned(F6E2M3)],
    [turned(F6E3M2), turned(F6E3M2)],
    [turned(F6E2M3), straight(F6E2M3)],
    [turned(F6E3M2), straight(F4E2M1)],
    [turned(F4E2M1), turned(F6E2M3)],
    [straight(F8E5M2), turned(F6E3M2)],
    [turned(F6E2M3), turned(F8E4M3Fn)],
    [turned(F6E2M3), turned(F6E3M2)],
];

/// Orders of 4-bit and of 6-bit factors: the second, the first, or both turned.
const ALIKE: [[[Factor; 2]; 3]; 2] =
    [[FACTORS[0], FACTORS[1], FACTORS[2]], [FACTORS[8], FACTORS[9], FACTORS[10]]];

#[test]
fn every_order_on_twenty_shapes() {
    let mut number = 0;
    for (at, shape) in SHAPES.into_iter().enumerate() {
        for has_scales in [true, false] {
            for of_factors in [0, 3, 8, 13] {
                let factors = FACTORS[(at + of_factors + at / 8) % FACTORS.len()];
                let product = Product::of(factors, has_scales, MatrixShape::ALL[(at + of_factors) % 2]);
                let mut case = product.case(shape, TILE);
                case.schedule = SCHEDULES[number % 4].clone();
                case.dynamic = open(number / 4 + at);
                let seed = number.is_multiple_of(2).then_some(number as u64);
                let executable = case.check_on(Target::GFX950, seed);
                product.assert_reads(&executable.assembly().expect("text"));
                number += 1;
            }
        }
    }
}

/// The interpreter after every pass, and texts of every stage.
#[test]
fn meaning_after_every_pass() {
    for (at, factors) in FACTORS.into_iter().enumerate() {
        let product = Product::of(factors, at % 2 == 0, MatrixShape::ALL[at / 2 % 2]);
        let shape = [[70, 33, 300], [64, 64, 256], [33, 65, 129]][at % 3];
        let options = product.options(shape, TILE, Target::GFX950);
        let options = options.schedule(SCHEDULES[at % SCHEDULES.len()].clone());
        let kernel = product.kernel();
        meaning::compare(&kernel, &options, &|_| None).unwrap_or_else(|e| panic!("{product:?}: {e}"));
        meaning::reads_back(&format!("{product:?}"), &kernel, &options);
    }
}

/// Tiles and waves as products on the chip have them, through registers and straight to LDS: no conflicts or
/// few, no vector arithmetic on codes, LLVM's bytes.
#[test]
fn tiles_lie_in_lds_as_in_memory() {
    let space = Workspace::with_zig();
    let tiles = [
        ([128, 128, 128], Waves::new(2, 2)),
        ([256, 256, 256], Waves::new(2, 4)),
        ([64, 128, 256], Waves::new(1, 4)),
        ([64, 64, 128], Waves::new(1, 1)),
        ([32, 32, 512], Waves::new(2, 2)),
        ([64, 256, 128], Waves::new(2, 2)),
    ];
    for (at, (tile, waves)) in tiles.into_iter().enumerate() {
        for (of_factors, factors) in ALIKE.into_iter().flatten().enumerate() {
            for matrix in MatrixShape::ALL {
                // Waves have whole units of memories.
                let edge = if factors[0].dtype.bits() == 6 { 32 } else { i64::from(matrix.edge()) };
                let [m, n, k] = tile;
                if (m as i64) / i64::from(waves.m) < edge || (n as i64) / i64::from(waves.n) < edge {
                    continue;
                }
                for loads in [GlobalToShared::Off, GlobalToShared::Fitting] {
                    let has_scales = (at + of_factors) % 2 == 0;
                    let product = Product { waves, ..Product::of(factors, has_scales, matrix) };
                    let title = format!("{product:?} {tile:?} {loads:?}");
                    let schedule = SCHEDULES[(at + of_factors) % SCHEDULES.len()].clone();
                    let options = product.options([m, n, 3 * k], tile, Target::GFX950);
                    let options = options.schedule(schedule).global_to_shared(loads);
                    let executable = verified(&product.kernel(), &options);
                    let (text, report) = (executable.assembly().expect("text"), executable.report());
                    product.assert_reads(&text);
                    for single in ["v_bfe_i32", "v_ashrrev_i32"] {
                        assert!(!text.contains(single), "{title}: {single} {text}");
                    }
                    // Lanes that multiply 16 columns find the same half of each 16 bytes of a row.
                    let is_narrow = matrix == MatrixShape::M16x16;
                    let names = ["a", "b"].into_iter().zip(factors);
                    let is_turned = |what: &str| names.clone().any(|(name, of)| name == what && of.is_turned);
                    for access in report.lds_accesses.iter().filter(|access| is_turned(&access.what)) {
                        let shares = is_narrow && access.kind == "transposing read";
                        let most = if shares { 2 } else { 1 };
                        assert!(access.conflict_degree <= most, "{title}: {access:?}");
                    }
                    if let Some(space) = space.as_ref().filter(|_| at < 2) {
                        assert_equivalent(executable.object(), &space.assemble(Target::GFX950, &text));
                    }
                }
            }
        }
    }
}

/// A turned factor costs its reads, and no vector arithmetic.
#[test]
fn the_loop_has_no_vector_instructions() {
    for factors in ALIKE.into_iter().flatten() {
        let product = Product::of(factors, false, MatrixShape::M16x16);
        let options = product.options([128, 128, 512], TILE, Target::GFX950);
        let executable = product.kernel().compile(&options).expect("compiles");
        let mix = executable.report().main_loop.expect("a loop");
        let turned = factors.iter().filter(|factor| factor.is_turned).count() as u32;
        let is_of_words = factors[0].dtype.bits() == 6;
        // Six words are brought by two reads in any order, and written in two parts.
        let accesses = if is_of_words { (8, 4) } else { (4 * turned + 2 * (2 - turned), 2) };
        let (reads, writes) = accesses;
        assert_eq!((mix.mfma, mix.valu, mix.lds_read, mix.lds_write), (4, 0, reads, writes), "{product:?}");
    }
}

/// Waves that take turns, with whole tiles and a part of one at the end.
#[test]
fn waves_take_turns() {
    let sizes = [[128, 128, 2048], [128, 128, 1536], [128, 128, 1040]];
    for (at, (factors, shape)) in ALIKE[0].into_iter().zip(sizes).enumerate() {
        for has_scales in [true, false] {
            let product = Product::of(factors, has_scales, MatrixShape::ALL[at % 2]);
            take_turns(&product, (shape, [128, 128, 256]), &[None, Some(1), Some(2)]);
        }
    }
    // Tiles of words go through registers, for which there are no clusters of products with scales.
    let sizes = [[256, 256, 512], [256, 200, 640], [256, 256, 400]];
    for (at, shape) in sizes.into_iter().enumerate() {
        let product = Product::of(ALIKE[1][at % 2], false, MatrixShape::M32x32);
        take_turns(&product, (shape, [256, 256, 128]), &[None, Some(1)]);
    }
    // With the first factor turned a trip takes less than loads do in turns, in time mode as well.
    let product = Product::of(ALIKE[1][2], false, MatrixShape::M32x32);
    let product = Product { waves: Waves::new(4, 2), ..product };
    let mut case = product.case(sizes[2], [256, 256, 128]);
    case.schedule = Schedule::PingPong;
    let report = case.check_on(Target::GFX950, Some(1)).report().clone();
    assert_eq!(report.schedule_applied, "prefetch");
    assert!(report.schedule_why.starts_with("taking turns would need"), "{}", report.schedule_why);
}

fn take_turns(product: &Product, (shape, tile): ([usize; 3], [usize; 3]), seeds: &[Option<u64>]) {
    let product = Product { waves: Waves::new(4, 2), ..product.clone() };
    let mut case = product.case(shape, tile);
    case.schedule = Schedule::PingPong;
    for &seed in seeds {
        let executable = case.check_on(Target::GFX950, seed);
        assert_eq!(executable.report().schedule_applied, "pingpong", "{}", case.name);
        product.assert_reads(&executable.assembly().expect("text"));
    }
}

/// Factors of batches, one of which two products share, and of a memory that is read outside of the loop.
#[test]
fn other_kernels_have_them_as_well() {
    for dtype in [F4E2M1, F6E3M2] {
        two_products(dtype);
    }
}

fn two_products(dtype: DType) {
    let [m, n, k, l] = symbols(["M", "N", "K", "L"]);
    let (rows, columns, depth) = (20, 40, 200);
    let kernel = Kernel::trace("two", |w| {
        w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), workgroup(l, 1, 2), tile(k, 128)]);
        w.mma_type(MatrixShape::M16x16);
        let a = w.memory("a", [l, m, k], Shared, dtype);
        let b = w.memory("b", [l, k, n], Shared, dtype);
        let c = w.memory("c", [l, m, n], Global, F32);
        let zero = w.register([l, m, n], F32, 0.0);
        let [one, other] = w.iterate(k, [zero, zero], |w, [one, other]| {
            let [a, b] = [w.read(a), w.read(b)];
            [w.mma(a, b, one), w.mma(a, b, other)]
        });
        w.write(one + other * 2.0, c);
    })
    .expect("well-formed");
    let batches = 3;
    let [a, b] = [batches * rows * depth, batches * depth * columns];
    let numbers = [a, b].map(|count| (0..count).map(number).collect::<Vec<f64>>());
    let inputs = vec![
        of_numbers(dtype, &[batches, rows, depth], &numbers[0]),
        of_numbers(dtype, &[batches, depth, columns], &numbers[1]),
        ones(F32, &[batches, rows, columns]),
    ];
    let sizes = [("L", batches), ("M", rows), ("N", columns), ("K", depth)];
    let mut case = Case::plain("two products".to_owned(), kernel, &sizes, inputs);
    let element = |at: usize| {
        let (batch, i, j) = (at / (rows * columns), at / columns % rows, at % columns);
        let term = |x: usize| {
            numbers[0][(batch * rows + i) * depth + x] * numbers[1][(batch * depth + x) * columns + j]
        };
        3.0 * (0..depth).map(term).sum::<f64>()
    };
    case.expected = (0..batches * rows * columns).map(element).collect();
    for open in [vec![], vec!["L", "K"]] {
        case.dynamic = open;
        let executable = case.check_on(Target::GFX950, Some(3));
        let read = if dtype == F4E2M1 { "ds_read_b64_tr_b4" } else { "ds_read_b96_tr_b6" };
        assert!(executable.assembly().expect("text").contains(read));
    }
}

/// What no read of LDS turns, and chips without such reads, take the way through codes.
#[test]
fn others_unpack_codes() {
    for (target, space) in [(Target::GFX942, Shared), (Target::GFX90A, Shared), (Target::GFX950, Global)] {
        for factors in [FACTORS[0], FACTORS[8]] {
            let product = Product { space, ..Product::of(factors, true, MatrixShape::M16x16) };
            for shape in [SHAPES[3], SHAPES[0]] {
                let executable = product.case(shape, TILE).check_on(target, Some(1));
                assert!(!executable.assembly().expect("text").contains("_tr_"), "{target} {space}");
            }
        }
    }
}

fn text_after(pass: &str, kernel: &Kernel, options: &Options) -> String {
    with_workspace(|workspace| {
        workspace.load(kernel, options);
        workspace.run(Some(pass), Verify::Off, &mut Vec::new()).expect("a product");
        workspace.text(Detail::Stage)
    })
}

/// What is wrong with a text, as it is read or when it is compiled.
fn fault(text: &str, options: &Options) -> String {
    match Kernel::parse(text, "product.gsw") {
        Ok(kernel) => compile_uncached(&kernel, options, Verify::Off).expect_err(text).to_string(),
        Err(faults) => faults.into_iter().map(|fault| fault.to_string()).collect(),
    }
}

#[test]
fn a_text_with_them_is_judged() {
    let product = Product::of(FACTORS[0], true, MatrixShape::M16x16);
    let options = product.options([64, 64, 256], TILE, Target::GFX950);
    let text_after = |pass: &str| text_after(pass, &product.kernel(), &options);
    let units = "!turned_units(N N/2 as K K/2, 2 of 4 bits)";
    let packed = text_after("pack_small_floats");
    assert!(packed.contains(units), "{packed}");
    let arranged = text_after("arrange_lds");
    assert!(arranged.contains(units) && arranged.contains("!transposing(N*16)"), "{arranged}");
    for (text, from, to, why) in [
        (&packed, "2 of 4 bits", "2 of 8 bits", "units that are not made of so many elements"),
        (&packed, "2 of 4 bits", "0 of 4 bits", "but turns units of"),
        (&packed, "as K K/2", "as M K/2", "but turns units of"),
        (&packed, "N N/2 as", "K K/2 as", "but turns units of"),
        (&packed, "[K, N/2] shared i8", "[K, N/2] global i8", "units of a memory that does not go through"),
        (&arranged, "!transposing(N*16)", "!transposing(N*8)", "elements that no read of LDS turns"),
        (&arranged, "!transposing(N*16)", "!transposing(K*16)", "elements that no read of LDS turns"),
        (&arranged, "!transposing(N*16)", "", "units of LDS that no instruction turns"),
    ] {
        let got = fault(&text.replace(from, to), &options);
        assert!(got.contains(why), "{to}: {got}");
    }
    for text in [&packed, &arranged] {
        let kernel = Kernel::parse(text, "product.gsw").expect("a text");
        let options = options.clone().for_target(Target::GFX942);
        let fault = compile_uncached(&kernel, &options, Verify::Off).expect_err("no such read").to_string();
        assert!(fault.contains("gfx942 has no reads of LDS that turn elements of 4 bits"), "{fault}");
    }
}

#[test]
fn a_text_with_words_is_judged() {
    let product = Product::of(FACTORS[8], true, MatrixShape::M16x16);
    let options = product.options([64, 64, 256], TILE, Target::GFX950);
    let text_after = |pass: &str| text_after(pass, &product.kernel(), &options);
    let (packed, arranged) = (text_after("pack_small_floats"), text_after("arrange_lds"));
    assert!(packed.contains("!turned_units(N N/32 6 as K K/32 6, 32 of 6 bits)"), "{packed}");
    assert!(arranged.contains("!transposing(N*16)") && arranged.contains("room 4 for 3"), "{arranged}");
    let (apart, rows) =
        ("an access of words of LDS that have room between them", "a read that turns rows of 12 bytes");
    for (text, from, to, why) in [
        (&packed, "32 of 6 bits", "32 of 4 bits", "units that are not made of so many elements"),
        (&packed, "N N/32 6 as", "N N/32 as", "but turns units of"),
        (&arranged, ", room 4 for 3", "", rows),
        (&arranged, "room 4 for 3", "room 8 for 3", rows),
        (&arranged, "room 4 for 3", "room 2 for 3", "how many elements of a buffer have the room"),
        (&arranged, "register 6*3:1, lane 6*2:3", "register 6*6:1, lane _*2", apart),
        (&arranged, "register 6*3:1, lane 6*2:3", "register 6*3:1, lane 6*2:4", apart),
        (&arranged, "!transposing(N*16)", "!transposing(N*8)", "elements that no read of LDS turns"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let got = fault(&text.replace(from, to), &options);
        assert!(got.contains(why), "{to}: {got}");
    }
}

/// Numbers have no units: memories of packed elements do not end with them either.
#[test]
fn a_number_is_not_summed_over_in_units() {
    let text = "kernel product {
  workgroup M, 32, 0
  workgroup N, 32, 1
  mma 16x16
  a = memory [128, M] shared f4e2m1
  b = memory [128, N] shared f4e2m1
  c = memory [M, N] global f32
  %x = read a
  %y = read b
  %zero = register [M, N] f32 0.0
  %sum = mma %x, %y, %zero
  write %sum, c
}";
    let kernel = Kernel::parse(text, "product.gsw").expect("well-formed");
    let options = Options::new(Target::GFX950).set("M", 64).set("N", 64);
    let fault = kernel.compile(&options).expect_err("no units").to_string();
    assert!(fault.contains("bytes of two along 128, and no memory holds them so"), "{fault}");
}
