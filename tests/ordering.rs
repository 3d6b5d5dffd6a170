//! Rows in order: the kernel `sort`, and the largest elements of a dimension, against loops in plain Rust, as
//! the interpreter and, in check mode, machine code compute them.

mod common;

use common::exact_case::{Case, of_numbers, zeros};
use groundswell::kernels::{SortOrder, sort, sort_digits};
use groundswell::prelude::*;

/// Rows and their length.
const SHAPES: [(usize, usize); 22] = [
    (1, 1),
    (3, 1),
    (1, 2),
    (5, 3),
    (4, 4),
    (2, 5),
    (9, 7),
    (1, 13),
    (16, 16),
    (7, 31),
    (33, 32),
    (2, 33),
    (6, 64),
    (3, 65),
    (1, 100),
    (5, 128),
    (2, 130),
    (4, 256),
    (1, 300),
    (2, 512),
    (1, 700),
    (1, 1024),
];

/// Small numbers in no order, many of them equal, some of them special.
fn numbers(count: usize) -> Vec<f64> {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
    (0..count)
        .map(|at| match (at * 37 + at / 11) % 29 {
            of @ 0..4 => special[of],
            of => of as f64 / 4.0 - 4.0,
        })
        .collect()
}

/// In order, NaNs last.
fn sorted(row: &[f64], order: SortOrder) -> Vec<f64> {
    let (mut numbers, nans): (Vec<f64>, Vec<f64>) = row.iter().partition(|x| !x.is_nan());
    numbers.sort_by(|x, y| x.partial_cmp(y).expect("no NaN"));
    if order == SortOrder::Descending {
        numbers.reverse();
    }
    numbers.into_iter().chain(nans).collect()
}

#[test]
fn sorted_rows_equal_a_loop() {
    for (at, (m, n)) in SHAPES.into_iter().enumerate() {
        for order in [SortOrder::Ascending, SortOrder::Descending] {
            let dtype = [F16, Bf16, F32][(at + order as usize) % 3];
            let a = numbers(m * n);
            let mut sizes = vec![("M", m as i64), ("BLOCK_M", [1, 4, 2][at % 3])];
            sizes.extend(sort_digits(n as u32));
            Case {
                name: format!("sort {m}x{n} {dtype} {order:?}"),
                kernel: sort(dtype, n as u32, order).expect("well-formed"),
                sizes,
                dynamic: if at % 2 == 0 { vec![] } else { vec!["M"] },
                schedule: Schedule::None,
                inputs: vec![of_numbers(dtype, &[m, n], &a), zeros(dtype, &[m, n])],
                expected: a.chunks(n).flat_map(|row| sorted(row, order)).collect(),
            }
            .check();
        }
    }
    assert!(sort(I32, 8, SortOrder::Ascending).is_err());
    assert!(sort(F32, 0, SortOrder::Ascending).is_err() && sort(F32, 1025, SortOrder::Ascending).is_err());
}

/// How a value is spread whose largest elements are asked for.
const SPREADS: [fn(&Tracer, [Symbol; 2]); 4] = [
    |w, [_, kept]| w.distribute([workgroup(kept, 4, 0)]),
    |w, [folded, kept]| w.distribute([workgroup(kept, 2, 0), wave(folded, 64)]),
    |w, [_, kept]| w.distribute([workgroup(kept, 16, 0), wave(kept, 4)]),
    |w, [folded, kept]| w.distribute([workgroup(kept, 4, 0), wave(kept, 2), wave(folded, 128)]),
];

const COUNT: u32 = 3;

/// The largest elements along either dimension; `is_place` says which half of them is written. The second
/// largest elements are found again, among those that are not greater than 2, in a conditional.
fn largest(along: usize, spread: usize, is_place: bool) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    let dims = [m, n];
    let [folded, kept] = [dims[along], dims[1 - along]];
    let count = Symbol::from(COUNT + 1);
    let traced = Kernel::trace("largest", |w| {
        SPREADS[spread](w, [folded, kept]);
        let a = w.memory("a", [m, n], Global, F32);
        let out = w.memory("out", [kept, count], Global, if is_place { I32 } else { F32 });
        let x = w.read(a);
        let mut found = x.topk(folded, COUNT);
        let small = w.select(x.greater(2.0), f64::NAN, x);
        let low = found[1];
        let [value, place] = w.conditional(w.size(kept).greater(1), [low.value, low.place], |_, _| {
            let second = small.topk(folded, 2)[1];
            [second.value, second.place]
        });
        found.push(TopElement { value, place });
        for (at, element) in (0i64..).zip(found) {
            let chosen = if is_place { element.place } else { element.value };
            w.write_at(chosen, out, [kept.into(), SymExpr::from(at)]);
        }
    });
    traced.unwrap_or_else(|e| panic!("{along} {spread}: {e}"))
}

/// The values and places of `count` elements in falling order.
fn largest_of(line: &[f64], count: usize) -> Vec<(f64, f64)> {
    let mut order: Vec<usize> = (0..line.len()).filter(|&at| !line[at].is_nan()).collect();
    order.sort_by(|&x, &y| line[y].partial_cmp(&line[x]).expect("no NaN"));
    let found = order.into_iter().map(|at| (line[at], at as f64));
    found.chain(std::iter::repeat((f64::NAN, 0.0))).take(count).collect()
}

#[test]
fn the_largest_elements_of_a_dimension_equal_a_loop() {
    let shapes = [[1, 1], [1, 2], [5, 1], [3, 5], [16, 64], [4, 200], [37, 130], [70, 3], [2, 256], [9, 17]];
    for (at, shape) in shapes.into_iter().enumerate() {
        for turn in 0..4 {
            let (along, spread, is_place) = (turn % 2, (at + turn) % 4, turn / 2 == 1);
            let (kept, folded) = (shape[1 - along], shape[along]);
            if spread % 2 == 1 && folded > 256 {
                continue;
            }
            let a = numbers(shape[0] * shape[1]);
            let line = |row: usize| -> Vec<f64> {
                let element = |column| if along == 1 { row * folded + column } else { column * kept + row };
                (0..folded).map(|column| a[element(column)]).collect()
            };
            let expected = (0..kept).flat_map(|row| {
                let mut found = largest_of(&line(row), COUNT as usize);
                let small: Vec<f64> = line(row).iter().map(|&x| if x > 2.0 { f64::NAN } else { x }).collect();
                found.push(if kept > 1 { largest_of(&small, 2)[1] } else { found[1] });
                found.into_iter().map(|(value, place)| if is_place { place } else { value })
            });
            Case {
                name: format!("largest of {shape:?} along {along} spread {spread} places {is_place}"),
                kernel: largest(along, spread, is_place),
                sizes: vec![("M", shape[0] as i64), ("N", shape[1] as i64)],
                dynamic: if at % 2 == 0 { vec![] } else { vec![["N", "M"][along]] },
                schedule: Schedule::None,
                inputs: vec![
                    of_numbers(F32, &shape, &a),
                    zeros(if is_place { I32 } else { F32 }, &[kept, COUNT as usize + 1]),
                ],
                expected: expected.collect(),
            }
            .check();
        }
    }
}
