//! Conditionals and while loops: conditions of numbers of workgroups and iterations, of sizes, scalars and
//! data, with and without values, one inside of another and in loops, on aligned and ragged shapes, static
//! and dynamic, with all schedules. The reference of each is a plain loop.

use groundswell::prelude::*;
use groundswell::simulator::Limits;
use groundswell_testing::exact_case::{Case, number, tensor, zeros};
use groundswell_testing::schedules::GENERAL as SCHEDULES;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SEEDS: u64 = 5;

/// Sizes of the cases: aligned and ragged ones, some of them dynamic, and a schedule.
struct Shapes {
    random: StdRng,
    number: usize,
}

struct Shape {
    number: usize,
    name: String,
    rows: usize,
    columns: usize,
    dynamic: Vec<&'static str>,
    schedule: Schedule,
}

impl Shapes {
    fn new(seed: u64) -> Shapes {
        Shapes { random: StdRng::seed_from_u64(seed), number: 0 }
    }
}

impl Iterator for Shapes {
    type Item = Shape;

    fn next(&mut self) -> Option<Shape> {
        let aligned = self.random.random_bool(0.3);
        let mut size = |most: usize| match aligned {
            true => 32 * self.random.random_range(1..=most / 32),
            false => self.random.random_range(1..=most),
        };
        let (rows, columns) = (size(100), size(150));
        let dynamic: Vec<_> = ["M", "K"].into_iter().filter(|_| self.random.random_bool(0.4)).collect();
        let schedule = SCHEDULES[self.number % SCHEDULES.len()].clone();
        self.number += 1;
        let name = format!("{}: {rows} x {columns}, {dynamic:?} dynamic, {schedule:?}", self.number);
        Some(Shape { number: self.number, name, rows, columns, dynamic, schedule })
    }
}

impl Shape {
    fn check(self, kernel: Result<Kernel, Diagnostic>, inputs: Vec<Tensor>, expected: Vec<f64>) {
        let kernel = kernel.unwrap_or_else(|fault| panic!("{}: {fault}", self.name));
        let symbols = kernel.symbols();
        let is_used = |name: &str| symbols.iter().any(|symbol| symbol.name() == name);
        let sizes = [("M", self.rows as i64), ("K", self.columns as i64)];
        let case = Case {
            sizes: sizes.into_iter().filter(|(name, _)| is_used(name)).collect(),
            dynamic: self.dynamic.into_iter().filter(|name| is_used(name)).collect(),
            name: self.name,
            kernel,
            schedule: self.schedule,
            inputs,
            expected,
        };
        check(&case, self.number);
    }
}

/// Run mode, and check mode in an order of its own; each eighth case in all orders.
fn check(case: &Case, number: usize) {
    case.check_in_order(None);
    let number = number as u64;
    let seeds = if number.is_multiple_of(8) { 1..=SEEDS } else { number % SEEDS + 1..=number % SEEDS + 1 };
    seeds.for_each(|seed| drop(case.check_in_order(Some(seed))));
}

fn scalar(value: i32) -> Tensor {
    Tensor::scalar(value)
}

/// The odd tiles of each row are summed, by some workgroups twice, and some workgroups write nothing.
#[test]
fn numbers_of_iterations_and_workgroups_decide() {
    let [m, k] = symbols(["M", "K"]);
    for (at, shape) in Shapes::new(1).take(20).enumerate() {
        let (rows, columns, first) = (shape.rows, shape.columns, at as i32 % 4);
        let kernel = Kernel::trace("odd_tiles", |w| {
            w.distribute([workgroup(m, 16, 0), tile(k, 32)]);
            let a = w.memory("a", [m, k], Global, F32);
            let first = w.scalar("first", I32);
            let sums = w.memory("sums", [m], Global, F32);
            let zero = w.register([m], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| {
                let odd = (w.iteration(k) % 2).equal(1);
                w.conditional(odd, [sum], |w, [sum]| {
                    let part = w.read(a).sum(k);
                    w.conditional((w.workgroup_id(0) % 2).equal(0), [sum + part], |_, [sum]| [sum + part])
                })
            });
            w.conditional(w.workgroup_id(0).greater_equal(first), [], |w, []| {
                w.write(sum, sums);
                []
            });
        });
        let a = tensor(F32, &[rows, columns]);
        let values = a.to_f64();
        let expected = (0..rows).map(|row| {
            let workgroup = row / 16;
            if (workgroup as i32) < first {
                return 0.0;
            }
            let odd = (0..columns).filter(|column| column / 32 % 2 == 1);
            let sum: f64 = odd.map(|column| values[row * columns + column]).sum();
            if workgroup % 2 == 0 { 2.0 * sum } else { sum }
        });
        let expected = expected.collect();
        shape.check(kernel, vec![a, scalar(first), zeros(F32, &[rows])], expected);
    }
}

/// A product whose later tiles are left out: their loads into LDS, and the barriers that these need, stand in
/// the conditional.
#[test]
fn products_of_some_tiles() {
    let [m, n, k] = [Symbol::new("M"), Symbol::new("N"), Symbol::new("K")];
    for (at, shape) in Shapes::new(2).take(20).enumerate() {
        let (rows, columns, depth) = (shape.rows, 40, shape.columns);
        let limit = [0, 1, 2, 3, 100][at % 5];
        let space = if at % 3 == 0 { Global } else { Shared };
        let kernel = Kernel::trace("some_tiles", |w| {
            w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), tile(k, 32), wave(m, 16), wave(n, 16)]);
            w.mma_type(Mma::F32_16x16x16_F16);
            let [a, b] = [w.memory("a", [m, k], space, F16), w.memory("b", [n, k], space, F16)];
            let limit = w.scalar("limit", I32);
            let c = w.memory("c", [m, n], Global, F32);
            let one = w.register([m, n], F32, 1.0);
            let [sum] = w.iterate(k, [one], |w, [sum]| {
                w.conditional(w.iteration(k).less(limit), [sum], |w, [sum]| {
                    [w.mma(w.read(a), w.read(b), sum)]
                })
            });
            w.write(sum, c);
        });
        let kernel = kernel.unwrap_or_else(|fault| panic!("{fault}"));
        let [a, b] = [tensor(F16, &[rows, depth]), tensor(F16, &[columns, depth])];
        let (x, y) = (a.to_f64(), b.to_f64());
        let taken = depth.min(32 * limit as usize);
        let element = |at: usize| {
            let (i, j) = (at / columns, at % columns);
            1.0 + (0..taken).map(|k| x[i * depth + k] * y[j * depth + k]).sum::<f64>()
        };
        let case = Case {
            name: shape.name,
            kernel,
            sizes: vec![("M", rows as i64), ("N", columns as i64), ("K", depth as i64)],
            dynamic: shape.dynamic,
            schedule: shape.schedule,
            inputs: vec![a, b, scalar(limit), zeros(F32, &[rows, columns])],
            expected: (0..rows * columns).map(element).collect(),
        };
        check(&case, at);
    }
}

/// One workgroup of four waves decides by a sum over all of its data.
#[test]
fn data_decide_for_all_waves() {
    let [m, k] = symbols(["M", "K"]);
    for (at, shape) in Shapes::new(3).take(20).enumerate() {
        let (rows, columns) = (shape.rows, shape.columns);
        let shape = Shape { dynamic: vec![], ..shape };
        let kernel = Kernel::trace("sign_of_sum", |w| {
            w.distribute([wave(k, 64)]);
            let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, k], Global, F32));
            let x = w.read(a);
            let total = x.sum(m).sum(k);
            let [y] = w.conditional(total.greater(0.0), [x], |_, [x]| [x * x + total]);
            w.write(y, b);
        });
        let negative = if at % 2 == 0 { -1.0 } else { 1.0 };
        let values: Vec<f64> = (0..rows * columns)
            .map(|at| negative * (number(at) + if number(at) < 0.0 { 2.0 } else { 0.0 }))
            .collect();
        let total: f64 = values.iter().sum();
        let expected = values.iter().map(|x| if total > 0.0 { x * x + total } else { *x }).collect();
        let a = groundswell_testing::exact_case::of_numbers(F32, &[rows, columns], &values);
        shape.check(kernel, vec![a, zeros(F32, &[rows, columns])], expected);
    }
}

/// Every third column from a first one on, as long as there is one and the sum of the columns stays small.
#[test]
fn while_loops_walk_along_values() {
    let [m, k] = symbols(["M", "K"]);
    for (at, shape) in Shapes::new(4).take(20).enumerate() {
        let (rows, columns) = (shape.rows, shape.columns);
        let (first, step) = ([0, 2, 200, -1][at % 4], [1, 3, 7][at % 3]);
        let kernel = Kernel::trace("steps", |w| {
            w.distribute([workgroup(m, 16, 0)]);
            let a = w.memory("a", [m, k], Global, F32);
            let [first, step] = ["first", "step"].map(|name| w.scalar(name, I32));
            let out = w.memory("out", [m], Global, F32);
            let zero = w.register([m], F32, 0.0);
            let end = w.size(k);
            let [_, sum] = w.iterate_while(
                [first, zero],
                |_, [column, _]| column.less(end),
                |w, [column, sum]| [column + step, sum + sum + w.read_at(a, (m, column), [m])],
            );
            w.write(sum, out);
        });
        let a = tensor(F32, &[rows, columns]);
        let values = a.to_f64();
        let row = |row: usize| {
            let (mut column, mut sum) = (first, 0f32);
            while column < columns as i32 {
                let x = if column < 0 { 0.0 } else { values[row * columns + column as usize] };
                sum = sum + sum + x as f32;
                column += step;
            }
            f64::from(sum)
        };
        let expected = (0..rows).map(row).collect();
        shape.check(kernel, vec![a, scalar(first), scalar(step), zeros(F32, &[rows])], expected);
    }
}

/// Loops in while loops, conditionals in these, and a while loop in a conditional in a loop.
#[test]
fn one_inside_of_another() {
    let [m, k] = symbols(["M", "K"]);
    for (at, shape) in Shapes::new(5).take(20).enumerate() {
        let (rows, columns) = (shape.rows, shape.columns);
        let rounds = at as i32 % 4;
        let kernel = Kernel::trace("nest", |w| {
            w.distribute([workgroup(m, 16, 0), tile(k, 16)]);
            let a = w.memory("a", [m, k], Global, F32);
            let rounds = w.scalar("rounds", I32);
            let out = w.memory("out", [m], Global, F32);
            let zero = w.register([m], F32, 0.0);
            let none = w.register([], I32, 0.0);
            let [_, sum] = w.iterate_while(
                [none, zero],
                |_, [round, _]| round.less(rounds),
                |w, [round, sum]| {
                    let [sum] = w.iterate(k, [sum], |w, [sum]| {
                        let part = w.read(a).sum(k);
                        let [part] = w.conditional(w.iteration(k).equal(round), [part], |w, [part]| {
                            // Doubled as often as the round says.
                            let [_, part] = w.iterate_while(
                                [round, part],
                                |_, [left, _]| left.greater(0),
                                |_, [left, part]| [left - 1, part + part],
                            );
                            [part]
                        });
                        [sum + part]
                    });
                    [round + 1, sum]
                },
            );
            w.write(sum, out);
        });
        let a = tensor(F32, &[rows, columns]);
        let values = a.to_f64();
        let row = |row: usize| {
            let mut sum = 0.0;
            for round in 0..rounds as usize {
                for (column, x) in values[row * columns..][..columns].iter().enumerate() {
                    sum += if column / 16 == round { x * f64::from(1 << round) } else { *x };
                }
            }
            sum
        };
        let expected = (0..rows).map(row).collect();
        shape.check(kernel, vec![a, scalar(rounds), zeros(F32, &[rows])], expected);
    }
}

/// A memory is read and written in a branch, and read again after it.
#[test]
fn branches_change_what_they_read() {
    let [m, k] = symbols(["M", "K"]);
    for (at, shape) in Shapes::new(6).take(20).enumerate() {
        let (rows, columns) = (shape.rows, shape.columns);
        let mode = at as i32 % 3;
        let kernel = Kernel::trace("in_place", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(k, 32, 1)]);
            let mode = w.scalar("mode", I32);
            let a = w.memory("a", [m, k], Global, F32);
            w.conditional(mode.greater(0), [], |w, []| {
                w.write(w.read(a) + 1.0, a);
                w.conditional(mode.equal(2), [], |w, []| {
                    w.write(w.read(a) * 2.0, a);
                    []
                });
                []
            });
            w.write(w.read(a) - 3.0, a);
        });
        let a = tensor(F32, &[rows, columns]);
        let after = |x: f64| match mode {
            0 => x - 3.0,
            1 => x - 2.0,
            _ => (x + 1.0) * 2.0 - 3.0,
        };
        let expected = a.to_f64().into_iter().map(after).collect();
        shape.check(kernel, vec![scalar(mode), a], expected);
    }
}

/// Branches that do nothing, whose values nobody uses, and whose conditions are always or never true.
#[test]
fn odd_branches() {
    let [m, k] = symbols(["M", "K"]);
    for shape in Shapes::new(7).take(20) {
        let (rows, columns) = (shape.rows, shape.columns);
        let kernel = Kernel::trace("odd", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(k, 32, 1)]);
            let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, k], Global, F16));
            let zero = w.register([], I32, 0.0);
            let [always, never] = [zero.equal(0), zero.not_equal(0)];
            let x = w.read(a);
            w.conditional(always, [], |_, []| []);
            let [_unused] = w.conditional(always, [x], |_, [x]| [x * x]);
            // What one branch hands on swapped, the other one leaves.
            let [x, y] = w.conditional(always, [x, x + x], |_, [x, y]| [y, x]);
            let [x, y] = w.conditional(never, [x, y], |_, [x, y]| [y, x]);
            let [x, _] = w.iterate_while([x, y], |_, _| never, |_, [x, y]| [y, x]);
            let [z] = w.conditional(always, [x], |w, [_]| [w.register([m, k], F16, 3.0)]);
            let [z] = w.conditional(never | always, [z], |_, [z]| [z]);
            w.write(x + z, b);
        });
        let a = tensor(F16, &[rows, columns]);
        let expected = a.to_f64().into_iter().map(|x| 2.0 * x + 3.0).collect();
        shape.check(kernel, vec![a, zeros(F16, &[rows, columns])], expected);
    }
}

/// Conditions of rows, of columns and of a single place are repeated like numbers, in any order.
#[test]
fn conditions_are_repeated_along_dimensions() {
    let [m, k] = symbols(["M", "K"]);
    for shape in Shapes::new(9).take(12) {
        let (rows, columns) = (shape.rows, shape.columns);
        let kernel = Kernel::trace("repeated", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(k, 32, 1)]);
            let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, k], Global, F16));
            let x = w.read(a);
            let odd = (w.self_index(m) % 2).equal(1).broadcast([m, k]);
            let late = w.self_index(k).greater(3).broadcast([k, m]);
            let always = w.register([], I32, 0.0).equal(0).broadcast([m, k]);
            let doubled = w.select(odd & late & always, x + x, x);
            w.write(w.select(odd, doubled, doubled + 1.0), b);
        });
        let a = tensor(F16, &[rows, columns]);
        let expected = a.to_f64().into_iter().enumerate().map(|(at, x)| {
            let (row, column) = (at / columns, at % columns);
            let is_odd = row % 2 == 1;
            let doubled = if is_odd && column > 3 { 2.0 * x } else { x };
            if is_odd { doubled } else { doubled + 1.0 }
        });
        let expected = expected.collect();
        shape.check(kernel, vec![a, zeros(F16, &[rows, columns])], expected);
    }
}

/// A loop that makes no progress ends with an error of the interpreter, and of the simulator's budget.
#[test]
fn a_loop_without_progress_is_an_error() {
    let m = Symbol::new("M");
    let kernel = Kernel::trace("endless", |w| {
        w.distribute([workgroup(m, 64, 0)]);
        let a = w.memory("a", [m], Global, F32);
        let zero = w.register([], I32, 0.0);
        let [x, _] = w.iterate_while([w.read(a), zero], |_, [_, i]| i.equal(0), |_, [x, i]| [x + 1.0, i + i]);
        w.write(x, a);
    })
    .expect("a kernel");
    let a = tensor(F32, &[64]);
    let fault =
        Interpreter::run(&kernel, &|_| Some(64), std::slice::from_ref(&a)).expect_err("it does not end");
    assert!(fault.message.contains("does not end"), "{fault}");
    let executable = kernel.compile(&Options::new(Target::GFX942).set(m, 64)).expect("it compiles");
    let limits = Limits { instructions: 10_000, time: None };
    let device = Device::simulator(Target::GFX942).with_limits(limits);
    let a = device.upload_tensor(&a).expect("fits");
    let fault = device.launch(&executable).buffer(&a).run().expect_err("it does not end");
    assert!(fault.to_string().contains("instructions"), "{fault}");
}
