//! Rows in order: the kernel `sort`, and the largest elements of a dimension, against loops in plain Rust, as
//! the interpreter and, in check mode, machine code compute them.

use groundswell::kernels::{SortOrder, sort};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, of_numbers, zeros};

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
            let sizes = vec![("M", m as i64), ("N", n as i64), ("BLOCK_M", [1, 4, 2][at % 3])];
            Case {
                name: format!("sort {m}x{n} {dtype} {order:?}"),
                kernel: sort(dtype, order).expect("well-formed"),
                sizes,
                dynamic: if at % 2 == 0 { vec![] } else { vec!["M"] },
                schedule: Schedule::None,
                inputs: vec![of_numbers(dtype, &[m, n], &a), zeros(dtype, &[m, n])],
                expected: a.chunks(n).flat_map(|row| sorted(row, order)).collect(),
            }
            .check();
        }
    }
    assert!(sort(I32, SortOrder::Ascending).is_err());
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

/// The words for sorts.
const SORTS: [fn(Value, Symbol) -> Value; 4] =
    [Value::sort, Value::sort_descending, Value::argsort, Value::argsort_descending];

/// What is done with what is sorted.
#[derive(Copy, Clone, PartialEq, Debug)]
enum SortedUse {
    /// It is written.
    Written,
    /// It is written once more, to the same elements, after a look at it.
    Computed,
    /// A computed value is sorted, in a conditional.
    InConditional,
}

/// The elements, or their places, along one dimension in order.
fn in_order(dtype: DType, along: usize, spread: usize, sort: usize, used: SortedUse) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    let dims = [m, n];
    let out_dtype = if sort < 2 { dtype } else { I32 };
    let traced = Kernel::trace("in_order", |w| {
        SPREADS[spread](w, [dims[along], dims[1 - along]]);
        let a = w.memory("a", [m, n], Global, dtype);
        let b = w.memory("b", [m, n], Global, out_dtype);
        let x = w.read(a);
        match used {
            SortedUse::Written => w.write(SORTS[sort](x, dims[along]), b),
            SortedUse::Computed => {
                let sorted = SORTS[sort](x, dims[along]);
                let same = sorted.equal(sorted);
                w.write(w.select(same, sorted, w.register([m, n], out_dtype, f64::from(7))), b);
            }
            SortedUse::InConditional => {
                let x = w.select(x.equal(x), x, x);
                let none = w.register([m, n], out_dtype, 0.0);
                let [sorted] =
                    w.conditional(w.size(m).greater(0), [none], |_, [_]| [SORTS[sort](x, dims[along])]);
                w.write(sorted, b);
            }
        }
    });
    traced.unwrap_or_else(|e| panic!("{dtype} {along} {spread} {sort} {used:?}: {e}"))
}

/// Numbers that a dtype holds.
fn numbers_of(dtype: DType, count: usize) -> Vec<f64> {
    let whole = |x: f64| if x.is_finite() { (x * 4.0).trunc() } else { 100.0 };
    let extremes = |x: f64, most: f64| if x == 100.0 { most } else { x };
    let numbers = numbers(count).into_iter();
    match dtype {
        I8 => numbers.map(|x| extremes(whole(x), 127.0)).collect(),
        I32 => numbers.map(|x| extremes(whole(x), i32::MAX.into())).collect(),
        I64 => numbers.map(|x| extremes(whole(x), (1i64 << 52) as f64)).collect(),
        F8E4M3Fnuz | F8E5M2Fnuz => {
            numbers.map(|x| if x.is_infinite() { x.signum() * 9.0 } else { x }).collect()
        }
        _ => numbers.collect(),
    }
}

#[test]
fn sorts_along_any_dimension_equal_a_loop() {
    let shapes = [[1, 1], [3, 2], [5, 1], [2, 9], [16, 64], [4, 100], [37, 13], [70, 3], [2, 256], [9, 17]];
    let dtypes = [F32, F16, I32, Bf16, F64, I8, I64, F8E4M3Fnuz];
    for (at, shape) in shapes.into_iter().enumerate() {
        for turn in 0..16 {
            let (along, sort, number) = (turn % 2, turn / 2 % 4, at + turn * 3);
            let spread = if along == 0 { (number % 2) * 2 } else { number % 4 };
            let (kept, folded) = (shape[1 - along], shape[along]);
            let mut dtype = dtypes[(at * 5 + turn) % 8];
            if sort > 1 && dtype.bits() == 64 {
                dtype = F16;
            }
            if spread % 2 == 1 && folded > 128 {
                continue;
            }
            let used = [SortedUse::Written, SortedUse::Computed, SortedUse::InConditional][number % 3];
            // A NaN is not equal to itself, which would replace it.
            let used = if dtype.is_float() && used == SortedUse::Computed && sort < 2 {
                SortedUse::InConditional
            } else {
                used
            };
            let a = numbers_of(dtype, shape[0] * shape[1]);
            let index = |row: usize, column: usize| match along {
                1 => row * folded + column,
                _ => column * kept + row,
            };
            let mut expected = vec![0.0; a.len()];
            for row in 0..kept {
                let mut order: Vec<usize> = (0..folded).collect();
                order.sort_by(|&one, &other| {
                    let (one, other) = (a[index(row, one)], a[index(row, other)]);
                    let keys = |x: f64| (x.is_nan(), if sort % 2 == 1 { -x } else { x });
                    let ((is_nan, one), (other_is_nan, other)) = (keys(one), keys(other));
                    let numbers = one.partial_cmp(&other).unwrap_or(std::cmp::Ordering::Equal);
                    // -0 is less than +0.
                    let zeros = one.is_sign_positive().cmp(&other.is_sign_positive());
                    let zeros = if one == 0.0 && other == 0.0 && dtype.is_float() && dtype != F8E4M3Fnuz {
                        zeros
                    } else {
                        std::cmp::Ordering::Equal
                    };
                    is_nan.cmp(&other_is_nan).then(numbers).then(zeros)
                });
                for (place, &from) in order.iter().enumerate() {
                    expected[index(row, place)] = if sort < 2 { a[index(row, from)] } else { from as f64 };
                }
            }
            Case {
                name: format!("{dtype} {shape:?} along {along} spread {spread} sort {sort} {used:?}"),
                kernel: in_order(dtype, along, spread, sort, used),
                sizes: vec![("M", shape[0] as i64), ("N", shape[1] as i64)],
                dynamic: if at % 2 == 0 { vec![] } else { vec![["N", "M"][along]] },
                schedule: Schedule::None,
                inputs: vec![
                    of_numbers(dtype, &shape, &a),
                    zeros(if sort < 2 { dtype } else { I32 }, &shape),
                ],
                expected,
            }
            .check();
        }
    }
}

#[test]
fn zeros_of_both_signs_are_in_order_and_elements_at_places_are_sorted() {
    let [m, n] = symbols(["M", "N"]);
    for descending in [0, 1] {
        let traced = Kernel::trace("bits", |w| {
            w.distribute([workgroup(m, 4, 0)]);
            let a = w.memory("a", [m, n], Global, F32);
            let b = w.memory("b", [m, n], Global, I32);
            let x = w.read(a);
            let places = SORTS[2 + descending](x, n);
            let (sorted, gathered) = (SORTS[descending](x, n), x.at((m, places), [m, n]));
            let bits = [sorted, gathered].map(|x| w.select(x.equal(x), x, f64::NAN).bitcast(I32));
            w.write(w.select(bits[0].equal(bits[1]), bits[0], -1), b);
        });
        let a = numbers(5 * 300).into_iter().map(|x| if x.abs() < 1.0 { x * -0.0 } else { x });
        let a: Vec<f64> = a.collect();
        let expected = a.chunks(300).flat_map(|row| {
            let mut row: Vec<f32> = row.iter().map(|&x| x as f32).filter(|x| !x.is_nan()).collect();
            row.sort_by(f32::total_cmp);
            if descending == 1 {
                row.reverse();
            }
            row.resize(300, f32::NAN);
            row.into_iter().map(|x| f64::from(x.to_bits() as i32)).collect::<Vec<_>>()
        });
        Case {
            name: format!("zeros {descending}"),
            kernel: traced.expect("well-formed"),
            sizes: vec![("M", 5), ("N", 300)],
            dynamic: vec![],
            schedule: Schedule::None,
            inputs: vec![of_numbers(F32, &[5, 300], &a), zeros(I32, &[5, 300])],
            expected: expected.collect(),
        }
        .check();
    }
}
