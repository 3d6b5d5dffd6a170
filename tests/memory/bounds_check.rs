//! Checks of bounds: coordinates that leave their memories are errors of the launch, in run and check mode,
//! and everything else is as it was.

use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;
use groundswell_testing::exact_case::{number, of_numbers, tensor, zeros};
use groundswell_testing::judged::verified;

/// What a launch leaves in its last buffer, or its fault. With a seed in check mode.
fn launched(
    executable: &Executable,
    inputs: &[Tensor],
    sizes: &[(&str, usize)],
    seed: Option<u64>,
) -> Result<Vec<f64>, Diagnostic> {
    let device = Device::simulator(Target::GFX942);
    let buffers: Vec<Buffer> = inputs.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
    let mut launch = device.launch(executable);
    for buffer in &buffers {
        launch = launch.buffer(buffer);
    }
    for &(symbol, size) in sizes {
        launch = launch.set(symbol, size);
    }
    match seed {
        None => drop(launch.run()?),
        Some(seed) => {
            let report = launch.check(&CheckOptions { seed })?;
            assert!(report.findings.is_empty(), "{}", report.findings[0]);
        }
    }
    let last = inputs.last().expect("an input");
    let bytes = buffers.last().expect("a buffer").read_bytes().expect("readable");
    Ok(Tensor::from_bytes(last.shape(), last.dtype(), &bytes).expect("whole").to_f64())
}

const SHAPES: [[usize; 2]; 10] =
    [[1, 1], [3, 5], [16, 64], [17, 65], [37, 130], [64, 1], [1, 200], [33, 257], [20, 70], [32, 128]];

/// Rows that a table names, read, written and updated, by several waves and in loops: all inside, and one of
/// them outside.
#[test]
fn rows_that_a_table_names() {
    let [dm, dn, rows] = symbols(["M", "N", "ROWS"]);
    for (number_of_case, [m, n]) in SHAPES.into_iter().enumerate() {
        for dynamic in [false, true] {
            for kind in ["read", "write", "update", "loop"] {
                let kernel = Kernel::trace("rows", |w| {
                    w.distribute([workgroup(dm, 16, 0), wave(dm, 8)]);
                    w.distribute([if kind == "loop" { tile(dn, 32) } else { workgroup(dn, 64, 1) }]);
                    let ids = w.memory("ids", [dm], Global, I32);
                    match kind {
                        "write" | "update" => {
                            let x = w.memory("x", [dm, dn], Global, I32);
                            let table = w.memory("table", [rows, dn], Global, I32);
                            if kind == "write" {
                                w.write_at(w.read(x), table, (w.read(ids), dn));
                            } else {
                                w.scatter_add(w.read(x), w.read(ids), rows, table);
                            }
                        }
                        _ => {
                            let table = w.memory("table", [rows, dn], Global, I32);
                            let out = w.memory("out", [dm, dn], Global, I32);
                            let moved = |w: &Tracer| {
                                w.write(w.read_at(table, (w.read(ids), dn), [dm, dn]), out);
                            };
                            if kind == "loop" {
                                let [] = w.iterate(dn, [], |w, []| {
                                    moved(w);
                                    []
                                });
                            } else {
                                moved(w);
                            }
                        }
                    }
                })
                .expect("well-formed");
                let mut options = Options::new(Target::GFX942).bounds_check();
                let sizes = [("M", m), ("N", n), ("ROWS", m + 1)];
                for (symbol, size) in sizes {
                    options = if dynamic { options.dynamic(symbol) } else { options.set(symbol, size) };
                }
                let sizes: &[(&str, usize)] = if dynamic { &sizes } else { &[] };
                let executable = verified(&kernel, &options);
                let mut ids: Vec<f64> = (0..m).map(|at| (m - at) as f64).collect();
                let shapes = if kind == "write" || kind == "update" { [m, m + 1] } else { [m + 1, m] };
                let inputs = |ids: &[f64]| {
                    let first = tensor(I32, &[shapes[0], n]);
                    let last = if kind == "update" {
                        tensor(I32, &[shapes[1], n])
                    } else {
                        zeros(I32, &[shapes[1], n])
                    };
                    [of_numbers(I32, &[m], ids), first, last]
                };
                let name = format!("{kind} {m}x{n} dynamic {dynamic}");
                let seed = (number_of_case % 2 == 0).then_some(number_of_case as u64);
                let got = launched(&executable, &inputs(&ids), sizes, seed);
                let got = got.unwrap_or_else(|fault| panic!("{name}: {fault}"));
                let expected: Vec<f64> = (0..shapes[1] * n)
                    .map(|at| match (kind, at / n) {
                        ("read" | "loop", row) => number((m - row) * n + at % n),
                        ("write", 0) => 0.0,
                        ("write", row) => number((m - row) * n + at % n),
                        (_, 0) => number(at),
                        (_, row) => number(at) + number((m - row) * n + at % n),
                    })
                    .collect();
                assert_eq!(got, expected, "{name}");
                for (wrong, size) in [(m + 9, m + 1), (0, m + 1)] {
                    ids[m / 2] = if wrong == 0 { -3.0 } else { wrong as f64 };
                    for seed in [None, Some(7)] {
                        let fault = launched(&executable, &inputs(&ids), sizes, seed).expect_err(&name);
                        let text = fault.to_string();
                        let place = format!("`table` is {} along ROWS, which has {size}", ids[m / 2] as i64);
                        assert!(text.contains(&place) && text.contains("bounds_check.rs"), "{name}: {text}");
                    }
                }
            }
        }
    }
}

/// A kernel without the option is as it was, and one whose coordinates are certainly inside needs no checks.
#[test]
fn nothing_is_added_where_nothing_leaves() {
    let [dm, dn] = symbols(["M", "N"]);
    let kernel = Kernel::trace("turned", |w| {
        w.distribute([workgroup(dm, 16, 0), workgroup(dn, 64, 1)]);
        let x = w.memory("x", [dn, dm], Global, F32);
        let y = w.memory("y", [dm, dn], Global, F32);
        w.write(w.read_at(x, [dn, dm], [dm, dn]), y);
    })
    .expect("well-formed");
    let options = Options::new(Target::GFX942).set(dm, 37).set(dn, 130);
    let compiled = |options: &Options| verified(&kernel, options).object().to_vec();
    assert_eq!(compiled(&options), compiled(&options.clone().bounds_check()));
    assert_ne!(options, options.clone().bounds_check());
}

/// Of several accesses the first in the program that has left its memory is named, with its line.
#[test]
fn the_access_is_named() {
    let dn = Symbol::new("N");
    let text = "kernel shifted {
  workgroup N, 64, 0
  a = memory [N] global f32
  b = memory [N] global f32
  bounds_checks = memory [N] global f32
  %x = read a at [N + 1 - 1] as [N]
  %y = read a at [N - 2] as [N]
  %z = read b at [N + 3] as [N]
  %s = add %x, %y
  %t = add %s, %z
  write %t, bounds_checks
}
";
    let kernel = Kernel::parse(text, "shifted.gsw").expect("well-formed");
    for n in [1usize, 5, 64, 100, 300] {
        let options = Options::new(Target::GFX942).set(dn, n).bounds_check();
        let executable = verified(&kernel, &options);
        let inputs = [tensor(F32, &[n]), tensor(F32, &[n]), zeros(F32, &[n])];
        for seed in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
            let fault = launched(&executable, &inputs, &[], seed).expect_err("it leaves a");
            let text = fault.to_string();
            let place = format!("`a` is {} along N, which has {n}", if n == 1 { -2 } else { -1 });
            assert!(text.contains(&place) && text.contains("shifted.gsw:7"), "{text}");
        }
    }
}
