//! Tasks that reduce nothing.

use groundswell::prelude::*;
use groundswell::tasks::Task;

use super::{EXACT, OF_F16, OF_F32, judge, random};

#[test]
fn chains_are_one_kernel_and_read_everything_once() {
    let [m, n] = symbols(["M", "N"]);
    for (dtype, tolerance) in [(F32, OF_F32), (F16, OF_F16)] {
        let task = Task::define("gate", |t| {
            let [a, b] = ["a", "b"].map(|name| t.input(name, [m, n], dtype));
            let scale = t.input("scale", [n], dtype);
            let bias = t.input("bias", [m], F32);
            let wide = t.compute("wide", [m, n], |[i, j]| a.at([i, j]).cast(F32) * scale.at([j]).cast(F32));
            // `wide` is read twice.
            let gate = t.compute("gate", [m, n], |[i, j]| wide.at([i, j]).silu() + wide.at([i, j]) * 0.25);
            let y = t.compute("y", [m, n], |[i, j]| {
                (gate.at([i, j]) * b.at([i, j]).cast(F32) + bias.at([i])).cast(dtype)
            });
            t.output(y);
            t.output(gate);
        })
        .unwrap();
        assert!(task.is_elementwise() && task.is_injective() && !task.is_bijective());
        for [rows, columns] in [[64, 512], [33, 77], [1, 5], [300, 3]] {
            let shape = [rows, columns];
            let inputs = [
                random(&shape, dtype, 1),
                random(&shape, dtype, 2),
                random(&[columns], dtype, 3),
                random(&[rows], F32, 4),
            ];
            let sizes = [(m, rows as i64), (n, columns as i64)];
            assert_eq!(judge(&task, &sizes, &[], &inputs, tolerance), 1);
            assert_eq!(judge(&task, &sizes, &[m, n], &inputs, tolerance), 1);
        }
    }
}

#[test]
fn accesses_are_of_16_bytes_and_vectors_of_any_rank_are_vectors() {
    let task = Task::define("double", |t| {
        let x = t.input("x", [7, 5, 512], F16);
        t.output(t.compute("y", [7, 5, 512], |[i, j, k]| x.at([i, j, k]) + x.at([i, j, k])));
    })
    .unwrap();
    let program = task.kernels(Target::GFX942, &[]).unwrap();
    let kernel = &program.kernels()[0];
    assert!(kernel.kernel().to_string().contains("x = memory [axis_2] global f16"), "{}", kernel.kernel());
    let listing = kernel.kernel().compile(kernel.options()).unwrap().assembly().unwrap();
    assert!(listing.contains("load_dwordx4") && listing.contains("store_dwordx4"), "{listing}");
    judge(&task, &[], &[], &[random(&[7, 5, 512], F16, 1)], EXACT);
}

#[test]
fn dimensions_in_another_order_are_turned() {
    let [a, b, c] = symbols(["A", "B", "C"]);
    for dtype in [F32, F16, I8] {
        let turned = Task::define("turned", |t| {
            let x = t.input("x", [a, b], dtype);
            t.output(t.compute("y", [b, a], |[i, j]| x.at([j, i])));
            t.inverse_map(x, |[i, j]| [j.into(), i.into()]);
        })
        .unwrap();
        assert!(turned.is_bijective() && !turned.is_elementwise());
        let rotated = Task::define("rotated", |t| {
            let x = t.input("x", [a, b, c], dtype);
            t.output(t.compute("y", [c, a, b], |[i, j, k]| x.at([j, k, i])));
        })
        .unwrap();
        for [p, q, r] in [[64, 128, 3], [70, 33, 65], [1, 9, 2]] {
            let sizes = [(a, p), (b, q), (c, r)];
            let [p, q, r] = [p, q, r].map(|extent| extent as usize);
            judge(&turned, &sizes, &[], &[random(&[p, q], dtype, 1)], EXACT);
            judge(&rotated, &sizes, &[], &[random(&[p, q, r], dtype, 1)], EXACT);
        }
    }
}

#[test]
fn indices_may_be_expressions_and_elements() {
    let [m, n, rows] = symbols(["M", "N", "ROWS"]);
    let gather = Task::define("gather", |t| {
        let table = t.input("table", [rows, n], F32);
        let ids = t.input("ids", [m], I32);
        t.output(t.compute("y", [m, n], |[i, j]| table.at((ids.at([i]), j)) * 2.0));
    })
    .unwrap();
    let ids = Tensor::from_slice(&[6], &[3i32, 0, -1, 4, 2, 5]).unwrap();
    let sizes = [(m, 6), (n, 70), (rows, 5)];
    judge(&gather, &sizes, &[], &[random(&[5, 70], F32, 1), ids], EXACT);
    // Reversed, shifted with zeros beyond the ends, every second one, and a place as a number.
    let shifted = Task::define("shifted", |t| {
        let x = t.input("x", [n], F32);
        let square = t.compute("square", [n], |[i]| x.at([i]) * x.at([i]) + 1.0);
        t.output(t.compute("y", [n], |[i]| {
            let place = t.index(i).cast(F32);
            x.at([n - 1 - i]) + square.at([i - 1]) + square.at([i + 1]) + x.at([2 * i]) + place
        }));
    })
    .unwrap();
    for size in [1, 7, 300] {
        let x = random(&[size as usize], F32, 2);
        judge(&shifted, &[(n, size)], &[], std::slice::from_ref(&x), OF_F32);
        judge(&shifted, &[(n, size)], &[n], &[x], OF_F32);
    }
    // A triangle: of a square matrix, whose two dimensions have one size.
    let lower = Task::define("lower", |t| {
        let x = t.input("x", [n, n], F32);
        t.output(t.compute("y", [n, n], |[i, j]| {
            let below = t.index(j).compare(Predicate::Le, t.index(i));
            below.select(x.at([i, j]) - x.at([j, i]), 0.0)
        }));
    })
    .unwrap();
    judge(&lower, &[(n, 67)], &[], &[random(&[67, 67], F32, 3)], OF_F32);
    let diagonal = Task::define("diagonal", |t| {
        let x = t.input("x", [n, n], F32);
        t.output(t.compute("y", [n], |[i]| x.at([i, i])));
    })
    .unwrap();
    judge(&diagonal, &[(n, 67)], &[], &[random(&[67, 67], F32, 3)], EXACT);
}

#[test]
fn integers_wrap_and_casts_round() {
    let n = Symbol::new("N");
    let task = Task::define("integers", |t| {
        let x = t.input("x", [n], I8);
        let y = t.input("y", [n], F32);
        t.output(t.compute("product", [n], |[i]| x.at([i]) * x.at([i])));
        t.output(t.compute("wide", [n], |[i]| x.at([i]).cast(I32).binary(BinaryOp::FloorDiv, 3)));
        t.output(t.compute("whole", [n], |[i]| (y.at([i]) * 100.0).cast(I32)));
        t.output(t.compute("half", [n], |[i]| y.at([i]).cast(F16)));
    })
    .unwrap();
    judge(&task, &[(n, 333)], &[], &[random(&[333], I8, 1), random(&[333], F32, 2)], EXACT);
}
