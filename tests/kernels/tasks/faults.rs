//! What is wrong with a task is said when it is defined, scheduled or run: with its names and numbers.

use groundswell::prelude::*;
use groundswell::tasks::{ReduceKind, Task, TaskAttribute, TaskTracer};

#[track_caller]
fn fault(body: impl for<'t> FnOnce(&'t TaskTracer)) -> String {
    let fault = Task::define("faulty", body).expect_err("a fault");
    assert!(fault.location.as_ref().is_some_and(|at| at.file.ends_with("faults.rs")), "{fault}");
    fault.message
}

#[test]
fn faults_of_definitions_have_names_and_places() {
    let [m, n] = symbols(["M", "N"]);
    let unbound = fault(|t| {
        let x = t.input("x", [m, n], F32);
        let mut leaked = None;
        t.compute("y", [m, n], |[i, j]| {
            leaked = Some(j);
            x.at([i, j])
        });
        t.output(t.compute("z", [m], |[i]| x.at([i, leaked.unwrap()])));
    });
    assert!(unbound.ends_with("is an index of another tensor or reduction, and not bound here"), "{unbound}");
    let mixed = fault(|t| {
        let (x, y) = (t.input("x", [n], F32), t.input("y", [n], F16));
        t.output(t.compute("z", [n], |[i]| x.at([i]) + y.at([i])));
    });
    assert_eq!(mixed, "f32 and f16 are combined: cast one of them first");
    let rank = fault(|t| {
        let x = t.input("x", [m, n], F32);
        t.output(t.compute("y", [m], |[i]| x.at([i])));
    });
    assert_eq!(rank, "x has 2 dimensions, and 1 indices are given");
    let without_output = fault(|t| {
        t.input("x", [n], F32);
    });
    assert_eq!(without_output, "the task faulty has no output");
    let twice = fault(|t| {
        t.input("x", [n], F32);
        t.input("x", [n], F32);
    });
    assert_eq!(twice, "two tensors have the name x");
    let condition = fault(|t| {
        let x = t.input("x", [n], F32);
        t.output(t.compute("y", [n], |[i]| x.at([i]).compare(Predicate::Gt, 0.0)));
    });
    assert_eq!(condition, "the elements of y are conditions: cast them, to i8 or i32");
    let average = fault(|t| {
        let x = t.input("x", [n], I32);
        t.output(t.compute("y", [1], |[_]| t.reduce([n], ReduceKind::Average, I32, |[j]| x.at([j]))));
    });
    assert!(average.contains("does not accumulate in i32"), "{average}");
    let deep = fault(|t| {
        let x = t.input("x", [n], F32);
        t.output(t.compute("y", [n], |[i]| (0..100_000).fold(x.at([i]), |sum, _| sum + 1.0)));
    });
    assert!(deep.contains("more than 256 operations in a chain"), "{deep}");
    // Shared elements do not make a walk long.
    let shared = Task::define("shared", |t| {
        let x = t.input("x", [n], F32);
        t.output(t.compute("y", [n], |[i]| (0..100).fold(x.at([i]), |sum, _| (sum + sum) * 0.5)));
    })
    .unwrap();
    let x = Tensor::from_slice(&[1], &[3f32]).unwrap();
    assert_eq!(shared.evaluate(&[(n, 1)], &[x]).unwrap()[0].to_f64(), [3.0]);
    shared.kernels(Target::GFX942, &[(n, 1)]).unwrap();
    // Long chains of tensors, and such that are read at many places, are cut where kernels would be too
    // large.
    let long = Task::define("long", |t| {
        let mut x = t.input("x", [n], F32);
        for stage in 0..300 {
            x = t.compute(&format!("y{stage}"), [n], |[i]| x.at([i]) * 0.5 + 1.0);
        }
        t.output(x);
    })
    .unwrap();
    assert_eq!(long.kernels(Target::GFX942, &[(n, 64)]).unwrap().kernels().len(), 300);
    let stencil = Task::define("stencil", |t| {
        let mut x = t.input("x", [n], F32);
        for stage in 0..14 {
            x = t.compute(&format!("y{stage}"), [n], |[i]| (x.at([i - 1]) + x.at([i + 1])) * 0.5);
        }
        t.output(x);
    })
    .unwrap();
    assert_eq!(stencil.kernels(Target::GFX942, &[(n, 64)]).unwrap().kernels().len(), 14);
}

#[test]
fn inverse_maps_are_checked_by_evaluation() {
    let [m, n] = symbols(["M", "N"]);
    let flat = |invert: fn(Symbol, Symbol, Symbol) -> SymExpr| {
        Task::define("flat", |t| {
            let x = t.input("x", [m, n], F32);
            t.output(t.compute("y", [m * n], |[i]| x.at([i / n, i % n])));
            t.inverse_map(x, |[i, j]| [invert(i, j, n)]);
        })
    };
    let right = flat(|i, j, n| i * n + j).unwrap();
    assert!(right.is_bijective() && right.is_injective() && !right.is_elementwise());
    let wrong = flat(|i, j, n| i + j * n).unwrap_err().message;
    assert!(
        wrong.starts_with("the inverse map of x does not invert: the output element [1] reads"),
        "{wrong}"
    );
    let twice = Task::define("twice", |t| {
        let x = t.input("x", [n], F32);
        t.output(t.compute("y", [n], |[i]| x.at([i]) + x.at([n - 1 - i])));
        t.inverse_map(x, |[i]| [i.into()]);
    });
    assert!(twice.unwrap_err().message.contains("elements of the output read it 2 times"));
}

#[test]
fn assertions_and_attributes_are_kept() {
    let [m, n] = symbols(["M", "N"]);
    let task = Task::define("even", |t| {
        let x = t.input("x", [n], F32);
        t.require(n % 2, Predicate::Eq, 0, "N is even");
        t.attribute("axis", 1);
        t.attribute("rows", m);
        t.output(t.compute("y", [n], |[i]| x.at([i]) * 2.0));
    })
    .unwrap();
    assert_eq!(task.attribute("axis"), Some(&TaskAttribute::Size(1.into())));
    assert_eq!(task.attribute("rows"), Some(&TaskAttribute::Size(m.into())));
    assert_eq!(task.attribute("other"), None);
    assert_eq!(task.symbols(), [n]);
    let broken = task.kernels(Target::GFX942, &[(n, 3)]).err().expect("a fault").message;
    assert_eq!(broken, "the task even does not hold what it requires: N is even");
    // An open size is checked when it is known.
    let program = task.kernels(Target::GFX942, &[]).unwrap();
    let device = Device::simulator(Target::GFX942);
    let x = Tensor::zeros(&[3], F32).unwrap();
    assert_eq!(program.run(&device, &[x]).unwrap_err().message, broken);
    let of_f16 = Tensor::zeros(&[4], F16).unwrap();
    let other = program.run(&device, &[of_f16]).unwrap_err().message;
    assert_eq!(other, "the input x is f32 of shape [4], and f16 of shape [4] is given");
    assert!(program.run(&device, &[]).is_err());
    let known = Task::define("known", |t| {
        t.require(3, Predicate::Gt, 4, "three is more than four");
    });
    assert!(known.unwrap_err().message.ends_with("three is more than four"));
}
