//! Epilogues of matrix products: results leave in wide stores, and are those of plain loops in every dtype,
//! form and size, with what is done to them before they are written.

use groundswell::kernels::{Form, Gemm, Waves};
use groundswell::prelude::*;
use groundswell::report::Report;
use groundswell_testing::exact_case::{Case, made, number, small, zeros};

/// M, N and K: tiles of 64 x 128 that fit and that do not, rows that begin at whole dwords and that do not.
const SHAPES: [[usize; 3]; 20] = [
    [64, 128, 32],
    [1, 1, 1],
    [65, 130, 40],
    [64, 129, 32],
    [17, 8, 33],
    [33, 4, 64],
    [128, 256, 16],
    [5, 7, 9],
    [70, 131, 50],
    [16, 120, 96],
    [3, 252, 20],
    [1, 128, 100],
    [100, 12, 31],
    [63, 136, 7],
    [2, 200, 65],
    [90, 127, 32],
    [31, 256, 1],
    [64, 1, 64],
    [40, 144, 48],
    [66, 133, 77],
];

const OUTPUTS: [DType; 6] = [F16, I8, Bf16, F32, F8E4M3Fnuz, F8E5M2Fnuz];

/// The number that an output of the dtype has in place of an integer.
fn stored(dtype: DType, x: f64) -> f64 {
    match dtype {
        I8 => x.clamp(-128.0, 127.0),
        F16 => f16::from_f64(x).to_f64(),
        Bf16 => bf16::from_f64(x).to_f64(),
        F8E4M3Fnuz => f8e4m3fnuz::from_f64(x).to_f64(),
        F8E5M2Fnuz => f8e5m2fnuz::from_f64(x).to_f64(),
        _ => x,
    }
}

fn open(at: usize) -> Vec<&'static str> {
    [&[][..], &["M", "N", "K"], &["N"], &["M"]][at % 4].to_vec()
}

/// The shape `at`, with the choices that its number and `turn` make.
fn product(at: usize, turn: usize) -> Case {
    let [m, n, k] = SHAPES[at];
    let output = OUTPUTS[(at + turn) % OUTPUTS.len()];
    let form = [Form::ABt, Form::AB, Form::AtB, Form::AtBt][(at + turn / 2) % 4];
    let waves = [Waves::new(2, 1), Waves::new(2, 2), Waves::new(1, 4)][(at + turn) % 3];
    let shape = [MatrixShape::M16x16, MatrixShape::M32x32][usize::from((at + turn) % 5 == 4)];
    let (a_turned, b_turned) = (matches!(form, Form::AtB | Form::AtBt), matches!(form, Form::AB | Form::AtB));
    let of_a = |i: usize, l: usize| small(if a_turned { l * m + i } else { i * k + l });
    let of_b = |j: usize, l: usize| small(3 + if b_turned { l * n + j } else { j * k + l });
    let inputs = vec![
        made(F16, &if a_turned { [k, m] } else { [m, k] }, small),
        made(F16, &if b_turned { [k, n] } else { [n, k] }, |at| small(3 + at)),
        zeros(output, &[m, n]),
    ];
    let gemm = Gemm::any_shape().inputs(F16).form(form).waves(waves).matrix(shape).output(output);
    let sum = |i: usize, j: usize| -> f64 { (0..k).map(|l| of_a(i, l) * of_b(j, l)).sum() };
    Case {
        name: format!("{form:?} {m}x{n}x{k} {output} {turn}"),
        kernel: gemm.relu().kernel().expect("well-formed"),
        sizes: sizes_of([m, n, k]),
        dynamic: open(at + turn),
        schedule: [Schedule::None, Schedule::Prefetch, Schedule::Modulo][(at + turn) % 3].clone(),
        inputs,
        expected: (0..m * n).map(|at| stored(output, sum(at / n, at % n).max(0.0))).collect(),
    }
}

fn sizes_of([m, n, k]: [usize; 3]) -> Vec<(&'static str, i64)> {
    let tile = [("BLOCK_M", 64), ("BLOCK_N", 128), ("BLOCK_K", 32)];
    [("M", m as i64), ("N", n as i64), ("K", k as i64)].into_iter().chain(tile).collect()
}

#[test]
fn products_of_every_output_equal_a_loop() {
    for at in 0..SHAPES.len() {
        (0..3).for_each(|turn| drop(product(at, turn).check()));
    }
}

/// What is added to the sums, and what becomes of them: a row of f32 and a matrix of f16, both of which are
/// read as wide as the result is written.
#[test]
fn what_is_added_is_read_as_the_result_is_written() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let [block_m, block_n, block_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    for (at, [rows, columns, depth]) in SHAPES.into_iter().enumerate() {
        let kernel = Kernel::trace("gemm", |w| {
            w.distribute([workgroup(m, block_m, 0), workgroup(n, block_n, 1), tile(k, block_k)]);
            w.distribute([wave(m, 32), wave(n, 64)]);
            w.mma_type(Mma::F32_16x16x16_F16);
            let a = w.memory("a", [m, k], Shared, F16);
            let b = w.memory("b", [n, k], Shared, F16);
            let bias = w.memory("bias", [n], Global, F32);
            let residual = w.memory("residual", [m, n], Global, F16);
            let c = w.memory("c", [m, n], Global, F16);
            let zero = w.register([m, n], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
            let place = w.self_index(n).cast(F32);
            w.write((sum + w.read(bias)).cast(F16) + w.read(residual) + place.cast(F16), c);
        })
        .expect("well-formed");
        let sum = |i: usize, j: usize| -> f64 {
            (0..depth).map(|l| small(i * depth + l) * small(3 + j * depth + l)).sum()
        };
        let of = |i: usize, j: usize| sum(i, j) + number(j) + number(i * columns + j) + j as f64;
        let case = Case {
            name: format!("added to {rows}x{columns}x{depth}"),
            kernel,
            sizes: sizes_of([rows, columns, depth]),
            dynamic: open(at),
            schedule: [Schedule::Prefetch, Schedule::None][at % 2].clone(),
            inputs: vec![
                made(F16, &[rows, depth], small),
                made(F16, &[columns, depth], |at| small(3 + at)),
                made(F32, &[columns], number),
                made(F16, &[rows, columns], number),
                zeros(F16, &[rows, columns]),
            ],
            expected: (0..rows * columns).map(|at| of(at / columns, at % columns)).collect(),
        };
        let executable = case.check();
        if at == 0 {
            let listing = executable.assembly().expect("the instructions");
            assert!(!listing.contains("buffer_store_short"), "{listing}");
            assert!(!listing.contains("buffer_load_ushort"), "{listing}");
        }
    }
}

fn report(gemm: Gemm, tile: [i64; 3], schedule: Schedule) -> Report {
    let mut options = Options::new(Target::GFX942).schedule(schedule);
    for (name, value) in ["BLOCK_M", "BLOCK_N", "BLOCK_K"].into_iter().zip(tile) {
        options = options.set(name, value).set(&name[6..], 4096);
    }
    gemm.kernel().expect("well-formed").compile(&options).expect("compiles").report().clone()
}

/// A lane stores as many bytes at a time as the columns of its wave's tile allow, up to 16, and the loop is
/// as free of conflicts as with narrow stores.
#[test]
fn stores_are_as_wide_as_tiles_allow() {
    let cases = [
        ([128, 128, 32], [2, 2], F16, (8, 16)),
        ([128, 128, 32], [2, 2], I8, (4, 16)),
        ([128, 128, 32], [4, 1], Bf16, (16, 8)),
        ([256, 256, 64], [2, 4], F16, (8, 32)),
        ([256, 256, 64], [4, 2], F16, (16, 16)),
        ([256, 256, 64], [4, 2], F8E4M3Fnuz, (8, 16)),
    ];
    for (tile, waves, output, stores) in cases {
        for form in [Form::ABt, Form::AB, Form::AtB, Form::AtBt] {
            let gemm = Gemm::any_shape().form(form).waves(Waves::new(waves[0], waves[1])).output(output);
            let report = report(gemm, tile, Schedule::Prefetch);
            let found: Vec<(u32, u32)> = report.stores.entries().collect();
            assert_eq!(found, [stores], "{form:?} {tile:?} {waves:?} {output}");
            let free = report.lds_accesses.iter().all(|access| access.conflict_degree == 1);
            assert!(free, "{form:?} {tile:?} {output}: {:?}", report.lds_accesses);
            assert_eq!(report.scratch_bytes, 0, "{form:?} {tile:?} {output}");
        }
    }
}
