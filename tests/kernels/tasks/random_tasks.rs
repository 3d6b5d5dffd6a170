//! Random tasks: chains over matrices, rows and columns with shifts and gathers, reductions of both kinds of
//! dimension, and what is computed of them, for sizes that are no multiples of anything.

use groundswell::prelude::*;
use groundswell::tasks::{ArgReduceKind, ReduceKind, Task, TaskElement};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Tolerance, judge, random};

/// A random element of these leaves.
fn element<'t>(rng: &mut StdRng, depth: u32, leaves: &[TaskElement<'t>]) -> TaskElement<'t> {
    if depth == 0 || rng.random_ratio(1, 6) {
        return leaves[rng.random_range(0..leaves.len())];
    }
    let a = element(rng, depth - 1, leaves);
    match rng.random_range(0..8) {
        0 => a.tanh(),
        1 => a.abs() * 0.5,
        2 => {
            let ops = [UnaryOp::Sigmoid, UnaryOp::Neg, UnaryOp::Sin];
            a.unary(ops[rng.random_range(0..ops.len())])
        }
        3 => {
            let condition = a.compare(Predicate::Gt, 0.125);
            condition.select(element(rng, depth - 1, leaves), 0.25)
        }
        4 => a.binary(BinaryOp::Max, element(rng, depth - 1, leaves)),
        5 => a - element(rng, depth - 1, leaves),
        6 => a * element(rng, depth - 1, leaves),
        _ => a + element(rng, depth - 1, leaves),
    }
}

fn task(seed: u64) -> Task {
    let [m, n] = symbols(["M", "N"]);
    let rng = &mut StdRng::seed_from_u64(seed);
    let kinds = [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Average];
    let [along_rows, along_columns] = [(); 2].map(|()| kinds[rng.random_range(0..kinds.len())]);
    let parts = rng.random_range(0..4);
    let task = Task::define("random", |t| {
        let x = t.input("x", [m, n], F32);
        let turned = t.input("turned", [n, m], F32);
        let [u, v] = [t.input("u", [m], F32), t.input("v", [n], F32)];
        let ids = t.input("ids", [m], I32);
        let of_inputs = |[i, j]: [Symbol; 2]| {
            vec![
                x.at([i, j]),
                x.at((i + 1, j - 1)),
                x.at((ids.at([i]), j)),
                turned.at([j, i]),
                u.at([i]),
                v.at([j]),
                t.index(i * 2 - j).cast(F32) * 0.01,
            ]
        };
        let first = t.compute("first", [m, n], |at| element(rng, 3, &of_inputs(at)).tanh());
        let rows = t.compute("rows", [m], |[i]| {
            t.reduce([n], along_rows, F32, |[j]| {
                let leaves = [first.at([i, j]), v.at([j]), u.at([i])];
                element(rng, 2, &leaves).tanh()
            }) * 0.1
        });
        let columns = t.compute("columns", [n], |[j]| {
            t.reduce([m], along_columns, F32, |[i]| {
                let mut leaves = of_inputs([i, j]);
                leaves.push(first.at([i, j]));
                element(rng, 2, &leaves).tanh()
            }) * 0.1
        });
        let last = t.compute("last", [m, n], |[i, j]| {
            let mut leaves = of_inputs([i, j]);
            leaves.extend([first.at([i, j]), rows.at([i]), rows.at([i])]);
            if parts != 1 {
                leaves.push(columns.at([j]));
            }
            element(rng, 3, &leaves).tanh()
        });
        t.output(last);
        if parts > 1 {
            t.output(rows);
        }
        if parts == 3 {
            t.output(
                t.compute("place", [m], |[i]| t.arg_reduce(n, ArgReduceKind::Max, |j| v.at([j]) * u.at([i]))),
            );
        }
    });
    task.unwrap_or_else(|fault| panic!("seed {seed}: {fault:?}"))
}

#[test]
fn kernels_of_random_tasks_compute_what_they_mean() {
    let [m, n] = symbols(["M", "N"]);
    let (mut most, mut one) = (0, 0);
    for seed in 0..40 {
        let mut rng = StdRng::seed_from_u64(1000 + seed);
        let [rows, columns] = [rng.random_range(1..40), rng.random_range(1..90usize)];
        let ids: Vec<i32> = (0..rows).map(|_| rng.random_range(-1..=rows as i32)).collect();
        let inputs = [
            random(&[rows, columns], F32, seed),
            random(&[columns, rows], F32, seed + 1),
            random(&[rows], F32, seed + 2),
            random(&[columns], F32, seed + 3),
            Tensor::from_slice(&[rows], &ids).unwrap(),
        ];
        let sizes = [(m, rows as i64), (n, columns as i64)];
        let kernels = judge(&task(seed), &sizes, &[], &inputs, Tolerance(1e-4));
        (most, one) = (most.max(kernels), one + usize::from(kernels == 1));
    }
    assert!(most >= 3 && one >= 5, "{most} kernels at most, {one} times one");
}
