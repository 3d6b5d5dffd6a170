//! Atomic updates: histograms, sums of columns and rows by many workgroups, scatter-add, every operation, and
//! what they give back, on shapes that no tile divides. The reference of each is a plain loop.

use groundswell::check::with_findings;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::prelude::*;
use groundswell::simulator::{CheckOptions, FindingKind};
use groundswell_testing::atomics::joined;
use groundswell_testing::exact_case::{Case, number, of_numbers, tensor, zeros};
use groundswell_testing::judged::verified;
use groundswell_testing::matrix_shapes::SHAPES;

/// Updates by one value.
fn updates() -> impl Iterator<Item = AtomicOp> {
    AtomicOp::ALL.iter().copied().filter(|op| op.values() == 1)
}

#[test]
fn every_operation_updates_each_element_once() {
    for op in updates() {
        for dtype in op.dtypes(Global) {
            // Elements of 16 bits are updated in pairs.
            for [m, n] in SHAPES.map(|[m, n]| [m, if dtype.bytes() == 2 { n.next_multiple_of(2) } else { n }])
            {
                for dynamic in [vec![], vec!["M", "N"]] {
                    let [dm, dn] = symbols(["M", "N"]);
                    let kernel = Kernel::trace("updates", |w| {
                        w.distribute((dtype.bytes() == 2).then(|| assume_divisible(dn, 2)));
                        w.distribute([workgroup(dm, 16, 0), workgroup(dn, 64, 1), wave(dm, 8), wave(dn, 64)]);
                        let x = w.memory("x", [dm, dn], Global, dtype);
                        let y = w.memory("y", [dm, dn], Global, dtype);
                        w.atomic(op, w.read(x), y);
                    })
                    .expect("well-formed");
                    let old: Vec<f64> = (0..m * n).map(|at| number(at + 3)).collect();
                    let mut case = Case::plain(
                        format!("{op:?} {dtype} {m}x{n}"),
                        kernel,
                        &[("M", m), ("N", n)],
                        vec![tensor(dtype, &[m, n]), of_numbers(dtype, &[m, n], &old)],
                    );
                    case.dynamic = dynamic;
                    case.expected =
                        old.iter().enumerate().map(|(at, &o)| joined(op, o, number(at))).collect();
                    case.check();
                }
            }
        }
    }
}

#[test]
fn replaced_elements_are_given_back() {
    for op in updates() {
        for [m, n] in SHAPES {
            let [dm, dn] = symbols(["M", "N"]);
            let kernel = Kernel::trace("replaced", |w| {
                w.distribute([workgroup(dm, 16, 0), workgroup(dn, 64, 1), wave(dm, 8), wave(dn, 64)]);
                let [x, y, z] = ["x", "y", "z"].map(|name| w.memory(name, [dm, dn], Global, I32));
                let before = w.atomic(op, w.read(x), y);
                w.write(before * 2 + 1, z);
            })
            .expect("well-formed");
            let old: Vec<f64> = (0..m * n).map(|at| number(at + 3)).collect();
            let mut case = Case::plain(
                format!("before {op:?} {m}x{n}"),
                kernel,
                &[("M", m), ("N", n)],
                vec![tensor(I32, &[m, n]), of_numbers(I32, &[m, n], &old), zeros(I32, &[m, n])],
            );
            case.expected = old.iter().map(|o| o * 2.0 + 1.0).collect();
            case.check();
        }
    }
}

const CHIPS: [Target; 5] = [Target::GFX906, Target::GFX908, Target::GFX90A, Target::GFX942, Target::GFX950];

/// A launch for a chip in run mode, or in check mode with a seed, where nothing may be found. Gives back the
/// last buffer.
fn launched(executable: &Executable, inputs: &[Tensor], seed: Option<u64>) -> Vec<f64> {
    let device = Device::simulator(executable.target());
    let buffers: Vec<Buffer> =
        inputs.iter().map(|tensor| device.upload_tensor(tensor).expect("fits")).collect();
    let launch = buffers.iter().fold(device.launch(executable), |launch, buffer| launch.buffer(buffer));
    match seed {
        None => {
            launch.run().expect("it runs");
        }
        Some(seed) => {
            let report = launch.check(&CheckOptions { seed }).expect("it runs");
            assert!(report.is_clean(), "{report}");
        }
    }
    let last = inputs.len() - 1;
    let bytes = buffers[last].read_bytes().expect("it is there");
    let (shape, dtype) = (inputs[last].shape(), inputs[last].dtype());
    Tensor::from_bytes(shape, dtype, &bytes).expect("its bytes").to_f64()
}

/// In global memory every chip makes every update, with an instruction or by exchange: of rows of many
/// workgroups that meet in one, and with what was there before. Sizes are no multiples of tiles.
#[test]
fn every_chip_makes_every_update_of_global_memory() {
    let [m, n] = [37, 70];
    let [dm, dn] = symbols(["M", "N"]);
    for (number_of_chip, target) in CHIPS.into_iter().enumerate() {
        for op in updates() {
            for dtype in op.dtypes(Global) {
                for used in [false, true] {
                    let kernel = Kernel::trace("updates", |w| {
                        w.distribute([workgroup(dm, 8, 0), workgroup(dn, 64, 1), wave(dm, 4), wave(dn, 64)]);
                        let x = w.read(w.memory("x", [dm, dn], Global, dtype));
                        if used {
                            let before = w.atomic(op, x, w.memory("y", [dm, dn], Global, dtype));
                            w.write(before, w.memory("before", [dm, dn], Global, dtype));
                        } else {
                            w.atomic_at(op, x, w.memory("y", [dn], Global, dtype), [dn]);
                        }
                    })
                    .expect("well-formed");
                    let options = Options::new(target).set("M", m as i64).set("N", n as i64);
                    let title = format!("{target} {op:?} {dtype} used {used}");
                    let executable = verified(&kernel, &options);
                    let (shape, rows) = if used { (vec![m, n], m) } else { (vec![n], 1) };
                    let old: Vec<f64> = (0..rows * n).map(|at| number(at + 3)).collect();
                    let mut inputs = vec![tensor(dtype, &[m, n]), of_numbers(dtype, &shape, &old)];
                    let mut expected = old;
                    if used {
                        inputs.push(zeros(dtype, &[m, n]));
                    } else {
                        for at in 0..m * n {
                            expected[at % n] = joined(op, expected[at % n], number(at));
                        }
                    }
                    for seed in [None, Some(number_of_chip as u64)] {
                        let got = launched(&executable, &inputs, seed);
                        if (op, used) == (AtomicOp::Exchange, false) {
                            // Any row may have been the last.
                            let is_there =
                                |(at, &got): (usize, &f64)| (0..m).any(|row| number(row * n + at) == got);
                            assert!(got.iter().enumerate().all(is_there), "{title}");
                        } else {
                            assert_eq!(got, expected, "{title}");
                        }
                    }
                }
            }
        }
    }
}

/// An update of LDS is made, or refused with the chips that make it, which do.
#[test]
fn updates_of_lds_that_a_chip_lacks_name_those_that_have_them() {
    let n = Symbol::new("N");
    for op in updates() {
        for dtype in op.dtypes(Shared) {
            let kernel = Kernel::trace("sums", |w| {
                // Two elements for each lane, because narrow ones are updated in pairs.
                w.distribute([workgroup(n, 128, 0)]);
                let sums = w.allocate([n], dtype);
                w.write(w.register([n], dtype, 0.0), sums);
                w.atomic(op, w.read(w.memory("x", [n], Global, dtype)), sums);
                w.write(w.read(sums), w.memory("y", [n], Global, dtype));
            })
            .expect("well-formed");
            let made = CHIPS
                .map(|target| compile_uncached(&kernel, &Options::new(target).set("N", 256), Verify::Off));
            let able = CHIPS.iter().zip(&made).filter(|(_, made)| made.is_ok()).map(|(chip, _)| chip.name);
            let able = able.collect::<Vec<_>>().join(", ");
            for (target, made) in CHIPS.iter().zip(&made) {
                let Err(fault) = made else { continue };
                let text = format!("{target} has no instruction for `atomic_add` of {dtype}");
                assert!(fault.message.contains(&text), "{fault}");
                let place = fault.location.as_ref();
                assert!(place.is_some_and(|at| at.file.ends_with("atomics.rs")), "{fault}");
                let help = fault.help.as_deref().unwrap_or_default();
                assert!(help.starts_with(&format!("compile for {able}, or")), "{fault}: only {able} have it");
            }
        }
    }
}

#[test]
fn columns_and_rows_are_joined_by_many_workgroups() {
    for op in [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max] {
        for dtype in op.dtypes(Global).filter(|dtype| dtype.bytes() > 2) {
            for [m, n] in SHAPES {
                for of_rows in [false, true] {
                    let [dm, dn] = symbols(["M", "N"]);
                    let kept = if of_rows { dm } else { dn };
                    let kernel = Kernel::trace("joined", |w| {
                        w.distribute([workgroup(dm, 8, 0), workgroup(dn, 32, 1), wave(dm, 4)]);
                        let x = w.memory("x", [dm, dn], Global, dtype);
                        let y = w.memory("y", [kept], Global, dtype);
                        w.atomic_at(op, w.read(x), y, [kept]);
                    })
                    .expect("well-formed");
                    let size = if of_rows { m } else { n };
                    let mut expected: Vec<f64> = (0..size).map(|at| number(at + 1)).collect();
                    let before = of_numbers(dtype, &[size], &expected);
                    for at in 0..m * n {
                        let to = if of_rows { at / n } else { at % n };
                        expected[to] = joined(op, expected[to], number(at));
                    }
                    let name = format!("{op:?} {dtype} {m}x{n} rows {of_rows}");
                    let sizes = [("M", m), ("N", n)];
                    let inputs = vec![tensor(dtype, &[m, n]), before];
                    Case { expected, ..Case::plain(name, kernel, &sizes, inputs) }.check();
                }
            }
        }
    }
}

/// Sums of rows made by a reduction are held by several lanes and waves, one of which adds.
#[test]
fn copies_of_an_element_are_added_once() {
    for [m, n] in SHAPES {
        for mapped in [false, true] {
            let [dm, dn] = symbols(["M", "N"]);
            let kernel = Kernel::trace("sums", |w| {
                w.distribute([workgroup(dm, 4, 0), wave(dn, 64)]);
                let x = w.memory("x", [dm, dn], Global, I32);
                let y = w.memory("y", [dm], Global, I32);
                let sums = w.read(x).sum(dn);
                match mapped {
                    true => w.atomic_at(AtomicOp::Add, sums, y, [dm]),
                    false => w.atomic(AtomicOp::Add, sums, y),
                };
            })
            .expect("well-formed");
            let name = format!("sums {m}x{n} mapped {mapped}");
            let inputs = vec![tensor(I32, &[m, n]), tensor(I32, &[m])];
            let row = |at: usize| (0..n).map(|k| number(at * n + k)).sum::<f64>() + number(at);
            let expected = (0..m).map(row).collect();
            Case { expected, ..Case::plain(name, kernel, &[("M", m), ("N", n)], inputs) }.check();
        }
    }
}

#[test]
fn histograms_count_what_is_inside() {
    let [dn, bins] = symbols(["N", "BINS"]);
    for n in [1usize, 7, 64, 1000, 4097] {
        for count in [1usize, 5, 12, 300] {
            let kernel = Kernel::trace("histogram", |w| {
                w.distribute([workgroup(dn, 256, 0), wave(dn, 64)]);
                let x = w.memory("x", [dn], Global, I32);
                let counts = w.memory("counts", [bins], Global, I32);
                w.atomic_at(AtomicOp::Add, w.register([dn], I32, 1.0), counts, [w.read(x)]);
            })
            .expect("well-formed");
            let mut expected = vec![0.0; count];
            // Negative values and large ones are in no bin.
            for bin in (0..n).map(number).filter(|&x| x >= 0.0 && x < count as f64) {
                expected[bin as usize] += 1.0;
            }
            let inputs = vec![tensor(I32, &[n]), zeros(I32, &[count])];
            let sizes = [("N", n), ("BINS", count)];
            Case { expected, ..Case::plain(format!("{n} in {count}"), kernel, &sizes, inputs) }.check();
        }
    }
}

#[test]
fn rows_are_added_where_a_table_says() {
    let [dm, dn, rows] = symbols(["M", "N", "ROWS"]);
    for [m, n] in SHAPES {
        for dtype in [F32, I32] {
            let kernel = Kernel::trace("scatter_add", |w| {
                w.distribute([workgroup(dm, 16, 0), workgroup(dn, 64, 1), wave(dm, 8)]);
                let ids = w.memory("ids", [dm], Global, I32);
                let x = w.memory("x", [dm, dn], Global, dtype);
                let table = w.memory("table", [rows, dn], Global, dtype);
                w.atomic_at(AtomicOp::Add, w.read(x), table, (w.read(ids), dn));
            })
            .expect("well-formed");
            let ids: Vec<f64> = (0..m).map(|at| (at * 5 % 7) as f64).collect();
            let mut expected: Vec<f64> = (0..7 * n).map(number).collect();
            for (row, id) in ids.iter().enumerate() {
                (0..n).for_each(|k| expected[*id as usize * n + k] += number(row * n + k));
            }
            let inputs = vec![of_numbers(I32, &[m], &ids), tensor(dtype, &[m, n]), tensor(dtype, &[7, n])];
            let sizes = [("M", m), ("N", n), ("ROWS", 7)];
            Case { expected, ..Case::plain(format!("{m}x{n} {dtype}"), kernel, &sizes, inputs) }.check();
        }
    }
}

/// Every element takes a number from one counter: each number is given once.
#[test]
fn tickets_are_given_once() {
    let [dn, one] = symbols(["N", "ONE"]);
    let kernel = Kernel::trace("tickets", |w| {
        w.distribute([workgroup(dn, 128, 0), wave(dn, 64)]);
        let counter = w.memory("counter", [one], Global, I32);
        let out = w.memory("out", [dn], Global, I32);
        w.write(w.atomic_at(AtomicOp::Add, w.register([dn], I32, 1.0), counter, [0]), out);
    })
    .expect("well-formed");
    for n in [1i64, 63, 300] {
        let options = Options::new(Target::GFX942).set(dn, n).set(one, 1);
        let executable = verified(&kernel, &options);
        let device = Device::simulator(Target::GFX942);
        let counter = device.upload_tensor(&zeros(I32, &[1])).expect("fits");
        let out = device.upload_tensor(&zeros(I32, &[n as usize])).expect("fits");
        device.launch(&executable).buffer(&counter).buffer(&out).run().expect("runs");
        let numbers = |buffer: &Buffer, count: usize| {
            let bytes = buffer.read_bytes().expect("readable");
            Tensor::from_bytes(&[count], I32, &bytes).expect("whole").to_f64()
        };
        let mut given = numbers(&out, n as usize);
        given.sort_by(f64::total_cmp);
        assert_eq!(given, (0..n).map(|at| at as f64).collect::<Vec<_>>());
        assert_eq!(numbers(&counter, 1), [n as f64]);
    }
}

/// Each iteration of a loop adds its part.
#[test]
fn loops_update_in_every_iteration() {
    let [dm, dn] = symbols(["M", "N"]);
    let kernel = || {
        Kernel::trace("by_tiles", |w| {
            w.distribute([workgroup(dm, 16, 0), tile(dn, 32), wave(dm, 8)]);
            let x = w.memory("x", [dm, dn], Global, I32);
            let y = w.memory("y", [dn], Global, I32);
            let [] = w.iterate(dn, [], |w, []| {
                w.atomic_at(AtomicOp::Add, w.read(x), y, [dn]);
                []
            });
        })
        .expect("well-formed")
    };
    for [m, n] in SHAPES {
        for schedule in [Schedule::None, Schedule::Prefetch, Schedule::Modulo] {
            let inputs = vec![tensor(I32, &[m, n]), tensor(I32, &[n])];
            let column = |at: usize| (0..m).map(|row| number(row * n + at)).sum::<f64>() + number(at);
            let expected = (0..n).map(column).collect();
            let name = format!("by tiles {m}x{n} {schedule:?}");
            let case = Case::plain(name, kernel(), &[("M", m), ("N", n)], inputs);
            Case { expected, schedule, ..case }.check();
        }
    }
}

/// What cannot be compiled says why, and what to do.
#[test]
fn updates_without_a_meaning_are_refused() {
    let [dm, dn] = symbols(["M", "N"]);
    let fault = |constraints: Vec<Constraint>, dtype: DType, op: AtomicOp, of_rows: bool| {
        let kernel = Kernel::trace("refused", |w| {
            w.distribute(constraints);
            let x = w.memory("x", [dm, dn], Global, dtype);
            let y = w.memory("y", [dm], Global, dtype);
            let value = if of_rows { w.read(x).sum(dn) } else { w.read(x) };
            w.atomic_at(op, value, y, [dm]);
        });
        let options = Options::new(Target::GFX942).set(dm, 64).set(dn, 64);
        let compiled = kernel.map_err(|faults| faults.to_string());
        let compiled = compiled.and_then(|kernel| {
            compile_uncached(&kernel, &options, Verify::AfterEachPass).map_err(|fault| fault.to_string())
        });
        compiled.map(drop).expect_err("it is refused")
    };
    let tiles = || vec![workgroup(dm, 16, 0), workgroup(dn, 64, 1)];
    let text = fault(tiles(), F16, AtomicOp::Add, false);
    assert!(text.contains("updated in pairs") && text.contains("f32"), "{text}");
    let text = fault(tiles(), Bf16, AtomicOp::Add, false);
    assert!(text.contains("`atomic_add` does not take [M, N] bf16"), "{text}");
    assert!(text.contains("LDS alone") && text.contains("i32, f32, i64, f64 and f16"), "{text}");
    let text = fault(tiles(), F32, AtomicOp::Max, false);
    assert!(text.contains("`atomic_max` does not take [M, N] f32") && text.contains("cast"), "{text}");
    let text = fault(vec![workgroup(dm, 16, 0)], F16, AtomicOp::Exchange, true);
    assert!(text.contains("f16"), "{text}");
    let spread = Kernel::trace("spread", |w| {
        w.distribute(tiles());
        let y = w.memory("y", [dm], Global, I32);
        let z = w.memory("z", [dm, dn], Global, I32);
        w.atomic(AtomicOp::Add, w.register([dm], I32, 1.0), y);
        w.write(w.register([dm, dn], I32, 1.0), z);
    });
    let text = spread.map(drop).expect_err("every workgroup along N would add").to_string();
    assert!(text.contains("every workgroup along N would update `y`"), "{text}");
    assert!(text.contains("broadcast the value to N"), "{text}");
}

/// Where results must have the same bits in every launch, updates whose order matters are refused.
#[test]
fn updates_whose_order_matters_can_be_denied() {
    let [dm, dn] = symbols(["M", "N"]);
    let compiled = |dtype: DType, write: &dyn Fn(&Tracer, Value, MemoryRef, Value)| {
        let kernel = Kernel::trace("ordered", |w| {
            w.distribute([workgroup(dm, 16, 0), workgroup(dn, 64, 1)]);
            let ids = w.memory("ids", [dm], Global, I32);
            let x = w.memory("x", [dm, dn], Global, dtype);
            let y = w.memory("y", [dm, dn], Global, dtype);
            write(w, w.read(x), y, w.read(ids));
        });
        let options = Options::new(Target::GFX942).set(dm, 64).set(dn, 64);
        let denied = options.clone().deny(Deny::Nondeterministic);
        let kernel = kernel.expect("well-formed");
        verified(&kernel, &options);
        let fault = compile_uncached(&kernel, &denied, Verify::AfterEachPass).map(drop);
        fault.map_err(|fault| fault.to_string())
    };
    for op in updates().filter(|&op| op != AtomicOp::Exchange) {
        assert_eq!(
            compiled(I32, &|w, x, y, ids| {
                w.atomic_at(op, x, y, (ids, dn));
            }),
            Ok(())
        );
    }
    let refused = |dtype, write: &dyn Fn(&Tracer, Value, MemoryRef, Value), what: &str| {
        let text = compiled(dtype, write).expect_err("its order matters");
        assert!(text.contains(what) && text.contains("tests/memory/atomics.rs"), "{text}");
        assert!(text.contains("may differ from one launch to the next"), "{text}");
    };
    refused(
        F32,
        &|w, x, y, _| {
            w.atomic(AtomicOp::Add, x, y);
        },
        "floats are added atomically",
    );
    refused(
        I32,
        &|w, x, y, _| {
            w.atomic(AtomicOp::Exchange, x, y);
        },
        "elements are exchanged",
    );
    refused(I32, &|w, x, y, ids| w.write_at(x, y, (ids, dn)), "coordinates that are made of values");
    let ticket = |w: &Tracer, x: Value, y: MemoryRef, _: Value| w.write(w.atomic(AtomicOp::Add, x, y), y);
    refused(I32, &ticket, "what an atomic update gives back is used");
}

/// Compare and exchange: of elements that meet, one finds its match; what all of them find is checked for one
/// element each, in global memory and in LDS, used and not used.
#[test]
fn elements_are_exchanged_where_they_match() {
    for dtype in [I32, I64] {
        for [m, n] in SHAPES {
            for dynamic in [vec![], vec!["M", "N"]] {
                for (in_lds, used) in [(false, false), (false, true), (true, true)] {
                    let [dm, dn] = symbols(["M", "N"]);
                    let kernel = Kernel::trace("matched", |w| {
                        w.distribute([workgroup(dm, 16, 0), workgroup(dn, 64, 1), wave(dm, 8), wave(dn, 64)]);
                        let [x, y] = ["x", "y"].map(|name| w.memory(name, [dm, dn], Global, dtype));
                        let z = w.memory("z", [dm, dn], Global, dtype);
                        let x = w.read(x);
                        let expected = x & 1;
                        if in_lds {
                            let buffer = w.allocate([dm, dn], dtype);
                            w.write(w.read(y) & 1, buffer);
                            let before = w.compare_exchange(expected, x, buffer);
                            w.write(before * 1000 + w.read(buffer), z);
                        } else {
                            let before = w.compare_exchange(expected, x, y);
                            if used {
                                w.write(before * 1000, z);
                            }
                        }
                    })
                    .expect("well-formed");
                    let old: Vec<f64> = (0..m * n).map(|at| (at % 3) as f64).collect();
                    let inputs =
                        vec![tensor(dtype, &[m, n]), of_numbers(dtype, &[m, n], &old), zeros(dtype, &[m, n])];
                    let name = format!("matched {dtype} {m}x{n} lds {in_lds} used {used} {dynamic:?}");
                    let element = |at: usize| {
                        let new = number(at) as i64;
                        let old = if in_lds { old[at] as i64 & 1 } else { old[at] as i64 };
                        let left = if old == new & 1 { new } else { old };
                        match (in_lds, used) {
                            (true, _) => old * 1000 + left,
                            (false, true) => old * 1000,
                            (false, false) => 0,
                        }
                    };
                    let expected = (0..m * n).map(|at| element(at) as f64).collect();
                    let case = Case::plain(name, kernel, &[("M", m), ("N", n)], inputs);
                    Case { expected, dynamic: dynamic.clone(), ..case }.check();
                }
            }
        }
    }
}

/// A lane holds sixteen elements of a product side by side. Twice as many, with the expected ones, do not go
/// into the largest tuple of registers if each has 64 bits.
#[test]
fn products_are_exchanged_where_they_match() {
    let (m, n, k) = (40, 33, 8);
    for last in ["found", "c"] {
        let other = if last == "c" { "found" } else { "c" };
        let text = format!(
            "kernel matched {{
  workgroup M, 32, 0
  workgroup N, 32, 1
  mma f32_32x32x8_f16
  a = memory [M, K] global f16
  b = memory [N, K] global f16
  {other} = memory [M, N] global i64
  {last} = memory [M, N] global i64
  %a = read a
  %b = read b
  %zero = register [M, N] f32 0.0
  %product = mma %a, %b, %zero
  %new = cast %product i64
  %expected = register [M, N] i64 1
  %old = atomic_compare_exchange %expected, %new, c
  write %old, found
}}"
        );
        let kernel = Kernel::parse(&text, "matched").unwrap_or_else(|faults| panic!("{faults}"));
        let [a, b]: [Vec<f64>; 2] =
            [m * k, n * k].map(|count| (0..count).map(|at| (at % 5) as f64 - 2.0).collect());
        let old: Vec<f64> = (0..m * n).map(|at| (at % 3) as f64).collect();
        let mut inputs =
            vec![of_numbers(F16, &[m, k], &a), of_numbers(F16, &[n, k], &b), zeros(I64, &[m, n])];
        inputs.insert(if last == "c" { 3 } else { 2 }, of_numbers(I64, &[m, n], &old));
        let product = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[at % n * k + i]).sum::<f64>();
        let left = |(at, &old): (usize, &f64)| if old == 1.0 { product(at) } else { old };
        let expected = match last {
            "c" => old.iter().enumerate().map(left).collect(),
            _ => old.clone(),
        };
        let case = Case::plain(format!("matched {last}"), kernel, &[("M", m), ("N", n), ("K", k)], inputs);
        Case { expected, ..case }.check_in_order(Some(1));
    }
}

/// What an update gives back goes through LDS to where it is used. Lanes without an element of their own read
/// there what nobody has written; they store nothing, which check mode knows.
#[test]
fn lanes_without_elements_store_nothing() {
    let texts = [
        "kernel added {
  workgroup M, 32, 0
  least = memory [M] global i32
  sums = memory [L] global i32
  %number = workgroup_id 0
  %all = broadcast %number [M]
  %old = atomic_min %all, least at [M]
  %before = atomic_add %old, sums at [M // 3]
}",
        "kernel stored {
  wave N, 32
  a = memory [N, M] global f32
  b = memory [N, M] global f32
  new = memory [M] global i32
  first = memory [L] global i32
  %x = read a
  write %x, b
  %number = workgroup_id 0
  %all = broadcast %number [M]
  %old = atomic_exchange %all, new at [M]
  write %old, first at [M]
}",
        // What is outside of the memory was never written, and two waves store copies of it.
        "kernel padding {
  workgroup M, 64, 0
  wave N, 32
  a = memory [M, N] global f32
  b = memory [M] global i32
  c = memory [N, M] global f8e5m2
  %x = read a
  %y = cast %x f8e5m2
  %i = self_index M
  %old = atomic_compare_exchange %i, %i, b at [M]
  %z = cast %old f8e5m2
  %sum = add %y, %z
  write %sum, c
}",
    ];
    for text in texts {
        let kernel = Kernel::parse(text, "lanes").unwrap_or_else(|faults| panic!("{faults}"));
        let sizes = [("M", 5), ("N", 33), ("L", 3)].map(|(name, size)| (Symbol::new(name), size));
        let options =
            sizes.iter().fold(Options::new(Target::GFX942), |options, &(name, size)| options.set(name, size));
        let executable = verified(&kernel, &options);
        let device = Device::simulator(Target::GFX942);
        let value = |symbol: Symbol| options.value(symbol);
        for seed in 0..5 {
            let (report, comparison) =
                with_findings(&kernel, &executable, &device, &value, seed).expect("runs");
            // Waves that hold copies of an element store the same.
            let is_note = |kind: &FindingKind| matches!(kind, FindingKind::RepeatedStore { .. });
            assert!(report.findings.iter().all(|finding| is_note(&finding.kind)), "{report}");
            assert!(comparison.ok, "{comparison:?}");
        }
    }
}

/// Of several elements that want one place, one gets it.
#[test]
fn places_are_taken_once() {
    let [dn, slots] = symbols(["N", "SLOTS"]);
    let kernel = Kernel::trace("taken", |w| {
        w.distribute([workgroup(dn, 128, 0), wave(dn, 64)]);
        let owners = w.memory("owners", [slots], Global, I32);
        let out = w.memory("out", [dn], Global, I32);
        let me = w.self_index(dn) + 1;
        let before = w.compare_exchange_at(w.register([dn], I32, 0.0), me, owners, [w.self_index(dn) % 7]);
        w.write(w.select(before.equal(0), w.register([dn], I32, 1.0), 0), out);
    })
    .expect("well-formed");
    for n in [5i64, 64, 300] {
        let options = Options::new(Target::GFX942).set(dn, n).set(slots, 7);
        let executable = verified(&kernel, &options);
        let device = Device::simulator(Target::GFX942);
        let owners = device.upload_tensor(&zeros(I32, &[7])).expect("fits");
        let out = device.upload_tensor(&zeros(I32, &[n as usize])).expect("fits");
        device.launch(&executable).buffer(&owners).buffer(&out).run().expect("runs");
        let numbers = |buffer: &Buffer, count: usize| {
            let bytes = buffer.read_bytes().expect("readable");
            Tensor::from_bytes(&[count], I32, &bytes).expect("whole").to_f64()
        };
        let (owners, out) = (numbers(&owners, 7), numbers(&out, n as usize));
        assert_eq!(out.iter().sum::<f64>(), n.min(7) as f64);
        for (slot, &owner) in owners.iter().enumerate().filter(|owner| *owner.1 > 0.0) {
            assert_eq!((owner as usize - 1) % 7, slot);
            assert_eq!(out[owner as usize - 1], 1.0);
        }
    }
}

/// Sums of rows are held by several lanes and waves; all of them learn what was there before.
#[test]
fn copies_of_an_element_learn_what_was_replaced() {
    for [m, n] in SHAPES {
        for (in_lds, in_loop) in [(false, false), (true, false), (false, true)] {
            let [dm, dn] = symbols(["M", "N"]);
            let kernel = Kernel::trace("told", |w| {
                w.distribute([workgroup(dm, 4, 0), wave(dn, 64)]);
                if in_loop {
                    w.distribute([tile(dn, 128)]);
                }
                let x = w.memory("x", [dm, dn], Global, I32);
                let y = w.memory("y", [dm], Global, I32);
                let z = w.memory("z", [dm, dn], Global, I32);
                let told = |w: &Tracer| {
                    let (x, to) = (w.read(x), if in_lds { w.allocate([dm], I32) } else { y });
                    if in_lds {
                        w.write(w.read(y), to);
                    }
                    let before = w.atomic(AtomicOp::Max, x.max(dn), to);
                    w.write(x - before, z);
                };
                if in_loop {
                    let [] = w.iterate(dn, [], |w, []| {
                        told(w);
                        []
                    });
                } else {
                    told(w);
                }
            })
            .expect("well-formed");
            let mut before: Vec<f64> = (0..m).map(number).collect();
            let inputs = vec![tensor(I32, &[m, n]), tensor(I32, &[m]), zeros(I32, &[m, n])];
            let mut expected = vec![0.0; m * n];
            let width = if in_loop { 128 } else { n };
            for first in (0..n).step_by(width) {
                for row in 0..m {
                    let columns = first..n.min(first + width);
                    let most = columns.clone().map(|k| number(row * n + k)).fold(f64::MIN, f64::max);
                    columns.for_each(|k| expected[row * n + k] = number(row * n + k) - before[row]);
                    before[row] = before[row].max(most);
                }
            }
            let name = format!("told {m}x{n} lds {in_lds} loop {in_loop}");
            Case { expected, ..Case::plain(name, kernel, &[("M", m), ("N", n)], inputs) }.check();
        }
    }
}

/// Halves in pairs: rows that a table says, products of matrices, what was there before.
#[test]
fn halves_are_added_in_pairs() {
    let [dm, dn, rows] = symbols(["M", "N", "ROWS"]);
    for [m, n] in [[1usize, 2], [3, 6], [16, 64], [37, 130], [64, 2], [5, 200]] {
        for dynamic in [vec![], vec!["M", "N", "ROWS"]] {
            for used in [false, true] {
                let kernel = Kernel::trace("halves", |w| {
                    w.distribute([workgroup(dm, 16, 0), workgroup(dn, 64, 1), wave(dm, 8)]);
                    w.distribute([assume_divisible(dn, 2)]);
                    let ids = w.memory("ids", [dm], Global, I32);
                    let x = w.memory("x", [dm, dn], Global, F16);
                    let table = w.memory("table", [rows, dn], Global, F16);
                    let before = w.atomic_at(AtomicOp::Add, w.read(x), table, (w.read(ids), dn));
                    if used {
                        let z = w.memory("z", [dm, dn], Global, F16);
                        w.write(before * 2.0, z);
                    }
                })
                .expect("well-formed");
                let ids: Vec<f64> = (0..m).map(|at| (at * 5 % (m + 2)) as f64).collect();
                // What was there before is known if every row is met once.
                let ids = if used { (0..m).map(|at| (m - 1 - at) as f64).collect() } else { ids };
                let mut table: Vec<f64> = (0..m * n).map(number).collect();
                let mut inputs =
                    vec![of_numbers(I32, &[m], &ids), tensor(F16, &[m, n]), of_numbers(F16, &[m, n], &table)];
                let before = |at: usize| 2.0 * table[ids[at / n] as usize * n + at % n];
                let expected = if used {
                    inputs.push(zeros(F16, &[m, n]));
                    (0..m * n).map(before).collect()
                } else {
                    for (row, &id) in ids.iter().enumerate().filter(|id| (*id.1 as usize) < m) {
                        (0..n).for_each(|k| table[id as usize * n + k] += number(row * n + k));
                    }
                    table
                };
                let sizes = [("M", m), ("N", n), ("ROWS", m)];
                let case =
                    Case::plain(format!("halves {m}x{n} used {used} {dynamic:?}"), kernel, &sizes, inputs);
                Case { expected, dynamic: dynamic.clone(), ..case }.check();
            }
        }
    }
    for [m, n, k] in [[16, 16, 16], [70, 50, 40], [64, 128, 33]] {
        let dk = Symbol::new("K");
        let kernel = Kernel::trace("added_product", |w| {
            w.distribute([workgroup(dm, 64, 0), workgroup(dn, 64, 1), tile(dk, 32), wave(dm, 32)]);
            w.mma_type(Mma::F32_16x16x16_F16);
            let a = w.memory("a", [dm, dk], Shared, F16);
            let b = w.memory("b", [dn, dk], Shared, F16);
            let c = w.memory("c", [dm, dn], Global, F16);
            let zero = w.register([dm, dn], F32, 0.0);
            let [sum] = w.iterate(dk, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
            w.atomic(AtomicOp::Add, sum.cast(F16), c);
        })
        .expect("well-formed");
        let small = |at: usize| (at % 3) as f64 - 1.0;
        let [a, b] = [m * k, n * k].map(|count| (0..count).map(small).collect::<Vec<_>>());
        let dot = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[at % n * k + i]).sum::<f64>();
        let expected = (0..m * n).map(|at| number(at) + dot(at)).collect();
        let inputs = vec![of_numbers(F16, &[m, k], &a), of_numbers(F16, &[n, k], &b), tensor(F16, &[m, n])];
        let sizes = [("M", m), ("N", n), ("K", k)];
        Case { expected, ..Case::plain(format!("added product {m}x{n}x{k}"), kernel, &sizes, inputs) }
            .check();
    }
}
