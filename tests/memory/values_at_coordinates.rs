//! Values read at coordinates: elements that change places inside of a workgroup, under every schedule, of
//! values that come from loads, arithmetic, reductions, products and loops. The reference of each is a plain
//! loop.

use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, tensor, zeros};
use groundswell_testing::matrix_shapes::SHAPES;

/// How a row's elements change places: what an element becomes, by its column and the columns of the row.
type Move = (&'static str, fn(Symbol, Value) -> Coordinate, fn(i64, i64) -> i64);

const MOVES: [Move; 6] = [
    ("reversed", |n, size| Coordinate::from(size) - 1 - n, |n, size| size - 1 - n),
    ("exchanged", |n, _| (n / 32 * 32 + (n % 32 + 16) % 32).into(), |n, _| n ^ 16),
    ("moved", |n, _| (n - 3).into(), |n, _| n - 3),
    ("turned", |n, size| (Coordinate::from(n) + 7) % size, |n, size| (n + 7) % size),
    ("every third", |n, _| (n * 3 + 1).into(), |n, _| n * 3 + 1),
    ("repeated", |n, _| (n / 4).into(), |n, _| n / 4),
];

#[test]
fn elements_of_rows_change_places() {
    const DTYPES: [DType; 7] = [F64, F32, F16, Bf16, I64, I32, I8];
    for (first, (name, coordinate, place)) in MOVES.into_iter().enumerate() {
        for (at, [m, n]) in SHAPES.into_iter().enumerate() {
            for dtype in [DTYPES[(first + at) % 7], DTYPES[(first + at + 3) % 7]] {
                for waves in [1, 4] {
                    let [dm, dn] = symbols(["M", "N"]);
                    let kernel = Kernel::trace("moved", |w| {
                        w.distribute([workgroup(dm, 4, 0), wave(dm, 4 / waves)]);
                        let [x, y] = ["x", "y"].map(|name| w.memory(name, [dm, dn], Global, dtype));
                        let value = -w.read(x);
                        let moved = value.at((dm, coordinate(dn, w.size(dn))), [dm, dn]);
                        w.write(moved * 3 + value, y);
                    })
                    .expect("well-formed");
                    let inputs = vec![tensor(dtype, &[m, n]), zeros(dtype, &[m, n])];
                    let title = format!("{name} {dtype} {m}x{n} {waves} waves");
                    let mut case = Case::plain(title, kernel, &[("M", m), ("N", n)], inputs);
                    if waves == 4 {
                        case.dynamic = vec!["M"];
                    }
                    case.expected = (0..m * n)
                        .map(|at| {
                            let from = usize::try_from(place((at % n) as i64, n as i64)).ok();
                            let from = from.filter(|&from| from < n);
                            -from.map_or(0.0, |from| number(at / n * n + from)) * 3.0 - number(at)
                        })
                        .collect();
                    case.check();
                }
            }
        }
    }
}

/// One element of each row, a part of it, and its elements as a matrix.
#[test]
fn values_are_taken_apart_and_put_together() {
    for (m, a, b) in [(1, 1, 1), (5, 3, 7), (4, 16, 4), (9, 8, 33), (3, 64, 2)] {
        let n = a * b;
        let [dm, dn, da, db] = symbols(["M", "N", "A", "B"]);
        let kernel = Kernel::trace("apart", |w| {
            w.distribute([workgroup(dm, 2, 0)]);
            let x = w.memory("x", [dm, dn], Global, F32);
            let y = w.memory("y", [dm, db, da], Global, F32);
            let value = w.read(x) + 1;
            // The matrix [A, B] that a row is, transposed; its middle row; its last element.
            let turned = value.at((dm, Coordinate::from(da) * w.size(db) + db), [dm, db, da]);
            let row = value.at((dm, Coordinate::from(w.size(da)) / 2 * w.size(db) + db), [dm, db]);
            let last = value.at((dm, Coordinate::from(w.size(dn)) - 1), [dm]);
            w.write(turned * 100 + row * 10 + last, y);
        })
        .expect("well-formed");
        let inputs = vec![tensor(F32, &[m, n]), zeros(F32, &[m, b, a])];
        let sizes = [("M", m), ("N", n), ("A", a), ("B", b)];
        let mut case = Case::plain(format!("{m} rows of {a} x {b}"), kernel, &sizes, inputs);
        let value = |row: usize, at: usize| number(row * n + at) + 1.0;
        for row in 0..m {
            for j in 0..b {
                for i in 0..a {
                    let [turned, middle] = [i * b + j, a / 2 * b + j].map(|at| value(row, at));
                    case.expected.push(turned * 100.0 + middle * 10.0 + value(row, n - 1));
                }
            }
        }
        case.check();
    }
}

/// Values that a loop makes in each iteration, carries, and leaves, under every schedule.
#[test]
fn values_of_loops_are_read_at_coordinates() {
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
        for n in [1, 16, 64, 200] {
            for waves in [1, 4] {
                let [dm, dn, dp] = symbols(["M", "N", "P"]);
                let kernel = Kernel::trace("looped", |w| {
                    w.distribute([workgroup(dm, 8, 0), wave(dm, 8 / waves), tile(dn, 16)]);
                    let x = w.memory("x", [dm, dn, dp], Global, F32);
                    let y = w.memory("y", [dm, dp], Global, F32);
                    let zero = w.register([dm, dp], F32, 1.0);
                    let last = Coordinate::from(w.size(dp)) - 1;
                    let [sum] = w.iterate(dn, [zero], |w, [sum]| {
                        let part = (w.read(x) * 2).at((dm, dn, last.clone() - dp), [dm, dn, dp]);
                        // The carried value is turned in each iteration.
                        [sum.at((dm, (Coordinate::from(dp) + 1) % w.size(dp)), [dm, dp]) + part.sum(dn)]
                    });
                    w.write(sum.at((dm, last - dp), [dm, dp]), y);
                })
                .expect("well-formed");
                let (m, p) = (11, 8);
                let inputs = vec![tensor(F32, &[m, n, p]), zeros(F32, &[m, p])];
                let name = format!("{schedule:?} {n} {waves} waves");
                let mut case = Case::plain(name, kernel, &[("M", m), ("N", n), ("P", p)], inputs);
                case.schedule = schedule.clone();
                for row in 0..m {
                    let mut sum = vec![1.0; p];
                    for first in (0..n).step_by(16) {
                        sum.rotate_left(1);
                        for (at, sum) in sum.iter_mut().enumerate() {
                            for column in first..n.min(first + 16) {
                                *sum += 2.0 * number((row * n + column) * p + p - 1 - at);
                            }
                        }
                    }
                    sum.reverse();
                    case.expected.extend(sum);
                }
                case.check();
            }
        }
    }
}

/// A product whose rows are turned, by data, in a conditional.
#[test]
fn products_are_read_at_data() {
    for [m, n, k] in [[16, 16, 16], [20, 48, 33], [64, 64, 8], [1, 5, 3]] {
        let [dm, dn, dk] = symbols(["M", "N", "K"]);
        let kernel = Kernel::trace("products", |w| {
            w.distribute([workgroup(dm, 32, 0), tile(dk, 16), wave(dm, 16), wave(dn, 32)]);
            w.mma_type(Mma::F32_16x16x16_F16);
            let [a, b] = [w.memory("a", [dm, dk], Shared, F16), w.memory("b", [dn, dk], Shared, F16)];
            let ids = w.memory("ids", [dm, dn], Global, I32);
            let y = w.memory("y", [dm, dn], Global, F32);
            let zero = w.register([dm, dn], F32, 0.0);
            let [sum] = w.iterate(dk, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
            let [found] = w.conditional(w.size(dk).greater(3), [sum], |w, [sum]| {
                [sum.at((dm, w.read(ids)), [dm, dn]) - 1]
            });
            w.write(found, y);
        })
        .expect("well-formed");
        let ids: Vec<f64> = (0..m * n).map(|at| ((at * 7) % (n + 2)) as f64 - 1.0).collect();
        let ids_tensor = groundswell_testing::exact_case::of_numbers(I32, &[m, n], &ids);
        let [a, b] = [tensor(F16, &[m, k]), tensor(F16, &[n, k])];
        let inputs = vec![a, b, ids_tensor, zeros(F32, &[m, n])];
        let mut case = Case::plain(format!("{m}x{n}x{k}"), kernel, &[("M", m), ("N", n), ("K", k)], inputs);
        let sum = |row: usize, column: usize| -> f64 {
            (0..k).map(|at| number(row * k + at) * number(column * k + at)).sum()
        };
        for row in 0..m {
            for column in 0..n {
                let id = ids[row * n + column];
                let chosen = if id >= 0.0 && id < n as f64 { sum(row, id as usize) } else { 0.0 };
                case.expected.push(if k > 3 { chosen - 1.0 } else { sum(row, column) });
            }
        }
        case.check();
    }
}

/// A value with its dimensions in another order is the same value: nothing moves.
#[test]
fn dimensions_change_places_without_data() {
    for [m, n] in SHAPES {
        let [dm, dn] = symbols(["M", "N"]);
        let kernel = Kernel::trace("permuted", |w| {
            w.distribute([workgroup(dm, 4, 0), workgroup(dn, 64, 1)]);
            let x = w.memory("x", [dm, dn], Global, F32);
            let y = w.memory("y", [dm, dn], Global, F32);
            let value = w.read(x).broadcast([dn, dm]);
            w.write(value * 2 + value.broadcast([dm, dn]), y);
        })
        .expect("well-formed");
        let inputs = vec![tensor(F32, &[m, n]), zeros(F32, &[m, n])];
        let mut case = Case::plain(format!("{m}x{n}"), kernel, &[("M", m), ("N", n)], inputs);
        case.expected = (0..m * n).map(|at| number(at) * 3.0).collect();
        let executable = case.check();
        assert_eq!(executable.report().lds_bytes, 0);
    }
}

/// A value without dimensions has no coordinates.
#[test]
fn single_values_are_read_at_no_coordinates() {
    let text = "kernel single {
  workgroup P, 2, 0
  x = memory [N] global f32
  y = memory [P, N] global f32
  %x = read x
  %s = reduce_sum %x over N
  %all = read %s at [] as [N]
  %r = broadcast %all [P, N]
  write %r, y
}
";
    for (p, n) in [(1, 1), (3, 5), (2, 64), (5, 130)] {
        let kernel = Kernel::parse(text, "single.gsw").expect("well-formed");
        let inputs = vec![tensor(F32, &[n]), zeros(F32, &[p, n])];
        let mut case = Case::plain(format!("{p} x {n}"), kernel, &[("P", p), ("N", n)], inputs);
        let sum: f64 = (0..n).map(number).sum();
        case.expected = vec![sum; p * n];
        case.check();
    }
}
