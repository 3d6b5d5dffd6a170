//! Loops that add reductions to what they carry: the exchange among lanes and waves comes after the loop
//! where nothing can see the sums on the way, and stays in the loop where something does.

use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::loops::largest_loop;
use groundswell_testing::meaning;

/// Barriers and instructions for LDS in the largest loop.
fn exchanges(executable: &Executable) -> usize {
    let exchange = |line: &&&str| line.contains("s_barrier") || line.contains("\tds_");
    let text = executable.assembly().unwrap();
    largest_loop(&text).unwrap_or_default().iter().filter(exchange).count()
}

/// A kernel over `[M, N]` of f32 with one result for each column, and eight waves that share the rows.
fn over_rows(body: impl FnOnce(&Tracer, MemoryRef, Symbol, Value) -> Value) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    Kernel::trace("over_rows", |w| {
        w.distribute([tile(m, 64), workgroup(n, 16, 0), wave(m, 8)]);
        let a = w.memory("a", [m, n], Global, F32);
        let b = w.memory("b", [n], Global, F32);
        let start = w.register([n], F32, 2.5);
        w.write(body(w, a, m, start), b);
    })
    .unwrap()
}

/// The interpreter against `expected` of each column, and compiled code against the interpreter.
fn judge(kernel: &Kernel, carried: bool, expected: fn(&[f64]) -> f64) {
    let [m, n] = symbols(["M", "N"]);
    for rows in [1usize, 8, 63, 64, 65, 200] {
        let columns = 20;
        let elements: Vec<f32> = (0..rows * columns).map(|at| (at * 7 % 13) as f32 - 6.0).collect();
        let a = Tensor::from_slice(&[rows, columns], &elements).unwrap();
        let b = Tensor::zeros(&[columns], F32).unwrap();
        let size = |symbol: Symbol| {
            [(m, rows), (n, columns)].into_iter().find(|known| known.0 == symbol).map(|known| known.1 as i64)
        };
        let found = Interpreter::run(kernel, &size, &[a, b]).unwrap()[1].to_f64();
        for (column, &found) in found.iter().enumerate() {
            let of_column: Vec<f64> =
                (0..rows).map(|row| f64::from(elements[row * columns + column])).collect();
            assert_eq!(found, expected(&of_column), "column {column} of {rows} rows");
        }
        let options = Options::new(Target::GFX942).set(n, columns as i64);
        for (options, is_static) in [(options.clone().set(m, rows as i64), true), (options.dynamic(m), false)]
        {
            let executable = verified(kernel, &options);
            for seed in 0..3 {
                assert_right(kernel, &executable, &size, seed, format_args!("{rows} rows"));
            }
            meaning::compare(kernel, &options, &size).unwrap();
            if rows == 200 && is_static {
                meaning::reads_back("over_rows", kernel, &options);
                assert_eq!(exchanges(&executable) == 0, carried, "{}", executable.assembly().unwrap());
            }
        }
    }
}

#[test]
fn a_sum_is_joined_after_its_loop() {
    let kernel = over_rows(|w, a, m, start| {
        let [sum] = w.iterate(m, [start], |w, [sum]| [sum + w.read(a).sum(m)]);
        sum
    });
    judge(&kernel, true, |column| column.iter().sum::<f64>() + 2.5);
}

#[test]
fn the_reduction_may_come_first() {
    let kernel = over_rows(|w, a, m, start| {
        let [least] = w.iterate(m, [start], |w, [least]| [w.read(a).min(m).minimum(least)]);
        least
    });
    judge(&kernel, true, |column| column.iter().fold(2.5, |least, &x| least.min(x)));
}

/// A sum without dimensions has no layout, whatever it is joined to.
#[test]
fn a_sum_of_everything_is_joined_to_a_value_with_dimensions() {
    let kernel = over_rows(|w, _, m, start| {
        let [sum] = w.iterate(m, [start], |w, [sum]| [sum + w.self_index(m).cast(F32).sum(m)]);
        sum
    });
    judge(&kernel, false, |column| (0..column.len()).sum::<usize>() as f64 + 2.5);
}

#[test]
fn several_sums_of_one_loop_are_each_joined_after_it() {
    let kernel = over_rows(|w, a, m, start| {
        let [sum, most] = w.iterate(m, [start, start], |w, [sum, most]| {
            let x = w.read(a);
            [sum + (x * x).sum(m), most.maximum(x.max(m))]
        });
        sum * most
    });
    judge(&kernel, true, |column| {
        let sum = column.iter().map(|x| x * x).sum::<f64>() + 2.5;
        sum * column.iter().fold(2.5, |most: f64, &x| most.max(x))
    });
}

#[test]
fn a_sum_in_an_outer_loop_begins_with_what_the_loop_before_left() {
    let [m, n, rounds] = symbols(["M", "N", "R"]);
    let kernel = Kernel::trace("rounds", |w| {
        w.distribute([tile(rounds, 1), tile(m, 32), workgroup(n, 16, 0), wave(m, 16)]);
        let a = w.memory("a", [m, n], Global, F32);
        let b = w.memory("b", [n], Global, F32);
        let zero = w.register([n], F32, 0.0);
        let [sum] =
            w.iterate(rounds, [zero], |w, [sum]| w.iterate(m, [sum], |w, [sum]| [sum + w.read(a).sum(m)]));
        w.write(sum, b);
    })
    .unwrap();
    let size = |symbol: Symbol| {
        [(m, 50), (n, 16), (rounds, 3)].into_iter().find(|known| known.0 == symbol).map(|known| known.1)
    };
    let options = Options::new(Target::GFX942).set(m, 50).set(n, 16).set(rounds, 3);
    let executable = verified(&kernel, &options);
    assert_right(&kernel, &executable, &size, 1, kernel.name());
    meaning::compare(&kernel, &options, &size).unwrap();
}

#[test]
fn zeros_keep_their_sign() {
    let kernel = over_rows(|w, a, m, _| {
        let start = w.register([Symbol::new("N")], F32, -0.0);
        let [sum] = w.iterate(m, [start], |w, [sum]| [sum + w.read(a).sum(m)]);
        sum
    });
    let options = Options::new(Target::GFX942).set("M", 70).set("N", 16);
    let executable = kernel.compile(&options).unwrap();
    let device = Device::simulator(Target::GFX942);
    let a = device.upload(&[-0f32; 70 * 16]).unwrap();
    let b = device.upload(&[1f32; 16]).unwrap();
    device.launch(&executable).buffer(&a).buffer(&b).run().unwrap();
    assert!(b.download::<f32>().unwrap().iter().all(|x| x.to_bits() == (-0f32).to_bits()));
}

#[test]
fn what_sees_a_sum_on_the_way_gets_it() {
    // The carried value is looked at.
    let kernel = over_rows(|w, a, m, start| {
        let [sum] = w.iterate(m, [start], |w, [sum]| {
            let x = w.read(a);
            [sum + (x + (sum * 0.0).broadcast([m, Symbol::new("N")])).sum(m)]
        });
        sum
    });
    judge(&kernel, false, |column| column.iter().sum::<f64>() + 2.5);
    // The reduction is.
    let kernel = over_rows(|w, a, m, start| {
        let [sum, most] = w.iterate(m, [start, start], |w, [sum, most]| {
            let part = w.read(a).max(m);
            [sum.maximum(part), most.maximum(part)]
        });
        sum + most
    });
    judge(&kernel, false, |column| 2.0 * column.iter().fold(2.5, |most: f64, &x| most.max(x)));
    // Another operation joins them.
    let kernel = over_rows(|w, a, m, start| {
        let [least] = w.iterate(m, [start], |w, [least]| [least.minimum(w.read(a).max(m))]);
        least + 0.0
    });
    judge(&kernel, false, |column| {
        column.chunks(64).fold(2.5, |least, rows| least.min(rows.iter().copied().fold(f64::MIN, f64::max)))
    });
}
