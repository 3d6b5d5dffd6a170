//! Products of f64, and of two 8-bit floats of different dtypes, against plain loops, on shapes that tiles
//! divide and others, of known and open sizes, with every order of the factors' dimensions.

mod common;

use common::exact_case::{Case, number, of_numbers, tensor, zeros};
use groundswell::prelude::*;

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
