//! Expressions as values, registers of expressions, and symbols that are set to values: in Rust and as text,
//! on aligned and ragged shapes, static and dynamic. The reference of each is a plain loop.

use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, of_numbers, tensor, zeros};

const SHAPES: [(i64, i64, &[&str]); 10] = [
    (64, 64, &[]),
    (32, 128, &["M"]),
    (1, 1, &[]),
    (20, 70, &[]),
    (33, 65, &["N"]),
    (7, 130, &["M", "N"]),
    (100, 3, &["M"]),
    (17, 64, &["M", "N"]),
    (48, 31, &[]),
    (5, 200, &["N"]),
];

fn parsed(text: &str) -> Kernel {
    Kernel::parse(text, "test.gsw").unwrap_or_else(|faults| panic!("{faults}"))
}

/// The kernel on all shapes, where `element` gives what has to be at a row and a column.
fn check(
    kernel: &Kernel,
    inputs: impl Fn(usize, usize) -> Vec<Tensor>,
    element: impl Fn(i64, i64, i64, i64) -> f64,
) {
    for (number, (rows, columns, dynamic)) in SHAPES.into_iter().enumerate() {
        let expected = (0..rows * columns).map(|at| element(at / columns, at % columns, rows, columns));
        let case = Case {
            name: format!("{rows} x {columns}, {dynamic:?} dynamic"),
            kernel: parsed(&kernel.to_string()),
            sizes: vec![("M", rows), ("N", columns)],
            dynamic: dynamic.to_vec(),
            schedule: Schedule::None,
            inputs: inputs(rows as usize, columns as usize),
            expected: expected.collect(),
        };
        case.check_in_order(None);
        let seeds = if number == 3 { 1..=5 } else { number as u64 + 1..=number as u64 + 1 };
        seeds.for_each(|seed| drop(case.check_in_order(Some(seed))));
    }
}

/// Every operation of expressions, of sizes, places in the grid and values.
#[test]
fn an_expression_is_a_value() {
    let [m, n] = symbols(["M", "N"]);
    let traced = Kernel::trace("expressions", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
        let out = w.memory("out", [m, n], Global, I32);
        let column = Coordinate::from(w.self_index(n));
        let row = Coordinate::from(w.self_index(m).broadcast([m, n]));
        let a = (column.clone() - 7) / 3 + (row.clone() * 5 - column.clone()) % (m / 2 + 1);
        let b = Coordinate::from(grid_size(0) * 3 - workgroup_id(1)).ceil_div(2);
        w.write(w.apply_expr(a.min(m + n).max(-n) + (column - row).ceil_div(4) * b), out);
    })
    .expect("a kernel");
    let text = parsed(
        "kernel expressions {
           workgroup M, 16, 0
           workgroup N, 64, 1
           out = memory [M, N] global i32
           %c = self_index N
           %m = self_index M
           %r = broadcast %m [M, N]
           %x = apply_expr max(min((%c - 7) // 3 + (%r * 5 - %c) % (M // 2 + 1), M + N), -N)
           %y = apply_expr %x + ceildiv(%c - %r, 4) * ceildiv(grid_0 * 3 - workgroup_1, 2)
           write %y, out
         }",
    );
    for kernel in [traced, text] {
        check(
            &kernel,
            |rows, columns| vec![zeros(I32, &[rows, columns])],
            |i, j, m, n| {
                let a = (j - 7).div_euclid(3) + (i * 5 - j).rem_euclid(m / 2 + 1);
                let up = |a: i64, b: i64| -(-a).div_euclid(b);
                (a.min(m + n).max(-n) + up(j - i, 4) * up(up(m, 16) * 3 - j / 64, 2)) as f64
            },
        );
    }
}

/// Registers of expressions: in other dtypes, without symbols, of values.
#[test]
fn a_register_is_made_of_an_expression() {
    let [m, n] = symbols(["M", "N"]);
    let traced = Kernel::trace("registers", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
        let shift = w.scalar("shift", I32);
        let out = w.memory("out", [m, n], Global, F32);
        let a = w.register_of([m, n], F32, n / 2 + 1);
        let b = w.register_of([m, n], F16, SymExpr::from(6i64) * 7).cast(F32);
        let c = w.register_of([m, n], F32, Coordinate::from(shift) * workgroup_id(0));
        let d = w.register_of([], F32, m % 3);
        w.write(a + b + c + d, out);
    })
    .expect("a kernel");
    let text = parsed(
        "kernel registers {
           workgroup M, 16, 0
           workgroup N, 64, 1
           shift = scalar i32
           out = memory [M, N] global f32
           %a = register [M, N] f32 (N // 2 + 1)
           %h = register [M, N] f16 (6 * 7)
           %b = cast %h f32
           %c = register [M, N] f32 (shift * workgroup_0)
           %d = register [] f32 (M % 3)
           %x = add %a, %b
           %y = add %x, %c
           %z = add %y, %d
           write %z, out
         }",
    );
    assert_eq!(traced.to_string(), text.to_string());
    check(
        &traced,
        |rows, columns| vec![of_numbers(I32, &[], &[-5.0]), zeros(F32, &[rows, columns])],
        |i, _, m, n| (n / 2 + 1 + 42 - 5 * (i / 16) + m % 3) as f64,
    );
}

/// A symbol stands for a value from where it is set on: in coordinates and in expressions, anew after it is
/// set again, and inside of a region up to its end.
#[test]
fn symbols_are_set_to_values() {
    let [m, n, shift] = symbols(["M", "N", "SHIFT"]);
    let traced = Kernel::trace("shifted", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
        let by = w.scalar("by", I32);
        let [a, out] = ["a", "out"].map(|name| w.memory(name, [m, n], Global, F32));
        w.set_symbol(shift, by);
        let x = w.read_at(a, (m + shift, n), [m, n]);
        let [y] = w.conditional(by.greater(1), [x], |w, [x]| {
            w.set_symbol(shift, w.apply_expr(shift + 1));
            [x + w.read_at(a, (m, n - shift), [m, n])]
        });
        let z = w.apply_expr(shift * 2).cast(F32);
        w.set_symbol(shift, w.size(n));
        w.write(y + z + w.read_at(a, (m, shift - 1 - n), [m, n]), out);
    });
    // The inner value ends with its region, and what was set before is there again.
    let text = "kernel shifted {
           workgroup M, 16, 0
           workgroup N, 64, 1
           by = scalar i32
           a = memory [M, N] global f32
           out = memory [M, N] global f32
           set_symbol SHIFT, by
           %x = read a at [M + SHIFT, N] as [M, N]
           %more = compare gt by, 1
           %y = conditional %more (%x1 = %x) {
             %next = apply_expr SHIFT + 1
             set_symbol SHIFT, %next
             %b = read a at [M, N - SHIFT] as [M, N]
             %s = add %x1, %b
             yield %s
           }
           %twice = apply_expr SHIFT * 2
           %z = cast %twice f32
           %n = size N
           set_symbol SHIFT, %n
           %yz = add %y, %z
           %turned = read a at [M, SHIFT - 1 - N] as [M, N]
           %r = add %yz, %turned
           write %r, out
         }";
    for kernel in [traced.expect("a kernel"), parsed(text)] {
        for by in [0, 1, 3] {
            let a = |rows: i64, columns: i64, i: i64, j: i64| {
                let inside = i < rows && (0..columns).contains(&j);
                if inside { number((i * columns + j) as usize) } else { 0.0 }
            };
            check(
                &kernel,
                |rows, columns| {
                    let shape = [rows, columns];
                    vec![of_numbers(I32, &[], &[f64::from(by)]), tensor(F32, &shape), zeros(F32, &shape)]
                },
                |i, j, m, n| {
                    let by = i64::from(by);
                    let second = if by > 1 { a(m, n, i, j - by - 1) } else { 0.0 };
                    a(m, n, i + by, j) + second + (2 * by) as f64 + a(m, n, i, n - 1 - j)
                },
            );
        }
    }
}

/// Mistakes in Rust are errors with a way out; those of text are in the gallery.
#[test]
fn symbols_that_cannot_be_set() {
    let [m, s] = symbols(["M", "S"]);
    let fault = |body: &dyn Fn(&Tracer)| {
        let fault = Kernel::trace("wrong", |w| {
            w.distribute([workgroup(m, 64, 0)]);
            body(w);
        });
        fault.expect_err("a fault")
    };
    /// What the fault says, and the body of the kernel that has it.
    type Faulty<'a> = (&'a str, &'a dyn Fn(&Tracer));
    let cases: [Faulty; 4] = [
        ("a dimension", &|w| {
            let out = w.memory("out", [m], Global, I32);
            w.set_symbol(m, w.size(m));
            w.write(w.self_index(m), out);
        }),
        ("was set to a value", &|w| {
            w.set_symbol(s, w.workgroup_id(0));
            w.memory("out", [s], Global, I32);
        }),
        ("no dimension is spread over axis 1", &|w| {
            w.apply_expr(grid_size(1) + 1);
        }),
        ("ends before", &|w| {
            let one = w.register([], I32, 1.0);
            w.conditional(w.size(m).greater(3), [one], |w, [x]| {
                w.set_symbol(s, x);
                [x]
            });
            w.apply_expr(s + 1);
        }),
    ];
    for (text, body) in cases {
        let fault = fault(body);
        assert!(fault.message.contains(text) && fault.help.is_some(), "{text}: {fault:?}");
    }
}
