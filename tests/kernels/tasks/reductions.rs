//! Tasks that reduce: each kind and dtype, along rows, columns and several dimensions, over nothing, and
//! with what is computed of the results.

use groundswell::prelude::*;
use groundswell::tasks::{ArgReduceKind, ReduceKind, Task};

use super::{EXACT, OF_F16, OF_F32, Tolerance, judge, random};

const NUMBERS: [ReduceKind; 4] = [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Average];

/// `y[i]` of `x[i, j]`, or of `x[j, i]`.
fn reduction(kind: ReduceKind, [dtype, accumulate]: [DType; 2], by_rows: bool) -> Task {
    let [m, n] = symbols(["M", "N"]);
    Task::define("reduction", |t| {
        let x = t.input("x", if by_rows { [m, n] } else { [n, m] }, dtype);
        t.output(t.compute("y", [m], |[i]| {
            t.reduce([n], kind, accumulate, |[j]| if by_rows { x.at([i, j]) } else { x.at([j, i]) })
        }));
    })
    .unwrap()
}

#[test]
fn every_kind_along_rows_and_columns() {
    let [m, n] = symbols(["M", "N"]);
    for by_rows in [true, false] {
        for (dtypes, tolerance) in [([F32; 2], OF_F32), ([F16, F32], OF_F32), ([Bf16, F32], OF_F32)] {
            for kind in NUMBERS {
                let task = reduction(kind, dtypes, by_rows);
                assert!(!task.is_injective());
                for [rows, columns] in [[5, 64], [67, 300], [1, 1]] {
                    let shape = if by_rows { [rows, columns] } else { [columns, rows] };
                    let sizes = [(m, rows as i64), (n, columns as i64)];
                    assert_eq!(judge(&task, &sizes, &[], &[random(&shape, dtypes[0], 5)], tolerance), 1);
                }
            }
        }
    }
}

#[test]
fn accumulators_have_the_dtype_that_is_asked_for() {
    let [m, n] = symbols(["M", "N"]);
    // 4096 ones: a sum in f16 stays at 2048.
    let ones = Tensor::from_slice(&[2, 4096], &[f16::from_f32(1.0); 8192]).unwrap();
    let task = reduction(ReduceKind::Sum, [F16, F32], true);
    judge(&task, &[(m, 2), (n, 4096)], &[], std::slice::from_ref(&ones), EXACT);
    judge(&task, &[(m, 2), (n, 4096)], &[n], &[ones], EXACT);
    // 8-bit integers do not wrap in 32 bits.
    for kind in [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Product] {
        let task = reduction(kind, [I8, I32], true);
        judge(&task, &[(m, 9), (n, 200)], &[], &[random(&[9, 200], I8, 6)], EXACT);
        let task = reduction(kind, [I32, I32], false);
        judge(&task, &[(m, 9), (n, 200)], &[], &[random(&[200, 9], I32, 6)], EXACT);
    }
}

#[test]
fn nothing_and_infinities_reduce_to_where_reductions_begin() {
    let [m, n] = symbols(["M", "N"]);
    let lowest = Tensor::from_slice(&[2, 3], &[f32::NEG_INFINITY; 6]).unwrap();
    let nan = [f32::NAN, f32::NAN, f32::NAN, 1.0, f32::NAN, f32::INFINITY];
    let nan = Tensor::from_slice(&[2, 3], &nan).unwrap();
    for kind in [ReduceKind::Max, ReduceKind::Min] {
        let task = reduction(kind, [F32; 2], true);
        for open in [&[][..], &[n]] {
            judge(&task, &[(m, 2), (n, 3)], open, std::slice::from_ref(&lowest), EXACT);
            judge(&task, &[(m, 2), (n, 3)], open, std::slice::from_ref(&nan), EXACT);
        }
    }
    let empty = Tensor::zeros(&[3, 0], F32).unwrap();
    let whole = Tensor::zeros(&[3, 0], I32).unwrap();
    for kind in [ReduceKind::Sum, ReduceKind::Product, ReduceKind::Max, ReduceKind::Min, ReduceKind::Average]
    {
        for open in [&[][..], &[n]] {
            let sizes = [(m, 3), (n, 0)];
            judge(&reduction(kind, [F32; 2], true), &sizes, open, std::slice::from_ref(&empty), EXACT);
            if kind != ReduceKind::Average {
                judge(&reduction(kind, [I32; 2], true), &sizes, open, std::slice::from_ref(&whole), EXACT);
            }
        }
    }
}

#[test]
fn conditions_are_joined() {
    let [m, n] = symbols(["M", "N"]);
    for by_rows in [true, false] {
        let task = Task::define("conditions", |t| {
            let x = t.input("x", if by_rows { [m, n] } else { [n, m] }, F32);
            for (name, kind, above) in
                [("all", ReduceKind::And, -0.9), ("any", ReduceKind::Or, 0.9), ("none", ReduceKind::Or, 2.0)]
            {
                t.output(t.compute(name, [m], |[i]| {
                    let condition = t.reduce([n], kind, I32, |[j]| {
                        let x = if by_rows { x.at([i, j]) } else { x.at([j, i]) };
                        x.compare(Predicate::Gt, above)
                    });
                    condition.cast(I32)
                }));
            }
        })
        .unwrap();
        let shape = if by_rows { [50, 20] } else { [20, 50] };
        assert_eq!(judge(&task, &[(m, 50), (n, 20)], &[], &[random(&shape, F32, 8)], EXACT), 1);
    }
}

#[test]
fn places_of_extremes_are_the_first_of_equal_ones() {
    let [m, n] = symbols(["M", "N"]);
    for by_rows in [true, false] {
        let task = Task::define("places", |t| {
            let x = t.input("x", if by_rows { [m, n] } else { [n, m] }, F32);
            for (name, extreme) in [("largest", ArgReduceKind::Max), ("smallest", ArgReduceKind::Min)] {
                t.output(t.compute(name, [m], |[i]| {
                    t.arg_reduce(n, extreme, |j| if by_rows { x.at([i, j]) } else { x.at([j, i]) })
                }));
            }
        })
        .unwrap();
        // Few numbers, so that many are equal; NaNs and infinities among them.
        let numbers = [0.0, 1.0, -1.0, 1.0, f32::NAN, -1.0, f32::NEG_INFINITY, 0.5];
        let of = |at: usize| numbers[(at * 7 + at / 5 + at / 33) % 8];
        let elements: Vec<f32> = (0..40 * 33).map(of).collect();
        let shape = if by_rows { [40, 33] } else { [33, 40] };
        let x = Tensor::from_slice(&shape, &elements).unwrap();
        let sizes = [(m, 40), (n, 33)];
        assert_eq!(judge(&task, &sizes, &[], std::slice::from_ref(&x), EXACT), 1);
        judge(&task, &sizes, &[n], &[x], EXACT);
        let lowest = Tensor::from_slice(&[2, 2], &[f32::NAN, f32::NEG_INFINITY, f32::NAN, f32::NAN]).unwrap();
        judge(&task, &[(m, 2), (n, 2)], &[], &[lowest], EXACT);
    }
}

#[test]
fn rows_that_are_reduced_and_read_again_are_one_kernel() {
    let [m, n] = symbols(["M", "N"]);
    let softmax = Task::define("softmax", |t| {
        let x = t.input("x", [m, n], F32);
        let largest =
            t.compute("largest", [m], |[i]| t.reduce([n], ReduceKind::Max, F32, |[j]| x.at([i, j])));
        let power = t.compute("power", [m, n], |[i, j]| (x.at([i, j]) - largest.at([i])).exp());
        let sum = t.compute("sum", [m], |[i]| t.reduce([n], ReduceKind::Sum, F32, |[j]| power.at([i, j])));
        t.output(t.compute("y", [m, n], |[i, j]| power.at([i, j]) / sum.at([i])));
    })
    .unwrap();
    let norm = Task::define("layer_norm", |t| {
        let x = t.input("x", [m, n], F16);
        let weight = t.input("weight", [n], F16);
        let wide = t.compute("wide", [m, n], |[i, j]| x.at([i, j]).cast(F32));
        let mean =
            t.compute("mean", [m], |[i]| t.reduce([n], ReduceKind::Average, F32, |[j]| wide.at([i, j])));
        let apart = t.compute("apart", [m, n], |[i, j]| wide.at([i, j]) - mean.at([i]));
        let variance = t.compute("variance", [m], |[i]| {
            t.reduce([n], ReduceKind::Average, F32, |[j]| apart.at([i, j]) * apart.at([i, j]))
        });
        let y = t.compute("y", [m, n], |[i, j]| {
            let scaled = apart.at([i, j]) * (variance.at([i]) + 1e-5).rsqrt();
            (scaled * weight.at([j]).cast(F32)).cast(F16)
        });
        t.output(y);
        t.output(mean);
    })
    .unwrap();
    for [rows, columns] in [[4, 1024], [67, 300], [3, 5], [64, 64]] {
        let sizes = [(m, rows as i64), (n, columns as i64)];
        let x = random(&[rows, columns], F32, 1);
        assert_eq!(judge(&softmax, &sizes, &[], std::slice::from_ref(&x), OF_F32), 1);
        // With open rows: a kernel for each reduction, with loops, and one for the result.
        assert_eq!(judge(&softmax, &sizes, &[n], &[x], OF_F32), 3);
        let inputs = [random(&[rows, columns], F16, 1), random(&[columns], F16, 2)];
        assert_eq!(judge(&norm, &sizes, &[], &inputs, OF_F16), 1);
    }
}

#[test]
fn several_dimensions_are_reduced_together() {
    let [b, c, h, w] = symbols(["B", "C", "H", "W"]);
    let sizes = [(b, 3), (c, 5), (h, 6), (w, 10)];
    let x = random(&[3, 5, 6, 10], F32, 4);
    let tasks = [
        Task::define("pooled", |t| {
            let x = t.input("x", [b, c, h, w], F32);
            t.output(t.compute("y", [b, c], |[i, j]| {
                t.reduce([h, w], ReduceKind::Average, F32, |[k, l]| x.at([i, j, k, l]))
            }));
        }),
        Task::define("channels", |t| {
            let x = t.input("x", [b, c, h, w], F32);
            t.output(t.compute("y", [c], |[j]| {
                t.reduce([b, h, w], ReduceKind::Sum, F32, |[i, k, l]| x.at([i, j, k, l]))
            }));
        }),
        Task::define("whole", |t| {
            let x = t.input("x", [b, c, h, w], F32);
            t.output(t.compute("y", [0i64; 0], |[]| {
                t.reduce([b, c, h, w], ReduceKind::Max, F32, |[i, j, k, l]| x.at([i, j, k, l]))
            }));
        }),
        Task::define("middle", |t| {
            let x = t.input("x", [b, c, h, w], F32);
            t.output(t.compute("y", [b, w], |[i, l]| {
                t.reduce([c, h], ReduceKind::Sum, F32, |[j, k]| x.at([i, j, k, l]))
            }));
        }),
    ];
    for task in tasks {
        assert_eq!(judge(&task.unwrap(), &sizes, &[], std::slice::from_ref(&x), OF_F32), 1);
    }
}

#[test]
fn products_of_matrices_are_computed_too() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let product = Task::define("product", |t| {
        let a = t.input("a", [m, k], F32);
        let b = t.input("b", [k, n], F32);
        t.output(t.compute("c", [m, n], |[i, j]| {
            t.reduce([k], ReduceKind::Sum, F32, |[l]| a.at([i, l]) * b.at([l, j])) + 1.0
        }));
    })
    .unwrap();
    for [rows, columns, depth] in [[5, 70, 130], [16, 16, 16], [2, 2, 2]] {
        let sizes = [(m, rows as i64), (n, columns as i64), (k, depth as i64)];
        let inputs = [random(&[rows, depth], F32, 1), random(&[depth, columns], F32, 2)];
        judge(&product, &sizes, &[], &inputs, Tolerance(1e-4));
    }
}
