//! Logs: what launches hand back is what a plain loop computes, whatever the schedule, the waves, the dtype
//! and the sizes. The interpreter is asked as well.

use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::Parameter;
use groundswell::device::LoggedTensor;
use groundswell::kernels::Gemm;
use groundswell::prelude::*;
use groundswell_testing::exact_case::{number, tensor, zeros};
use groundswell_testing::meaning;

/// Runs a kernel with `sizes`, of which those in `dynamic` are left open; gives back its logs.
fn logs(
    title: &str,
    kernel: &Kernel,
    sizes: &[(&str, usize)],
    dynamic: &[&str],
    schedule: Schedule,
    inputs: &[Tensor],
) -> Vec<LoggedTensor> {
    let mut options = Options::new(Target::GFX942).schedule(schedule);
    for &(name, size) in sizes {
        options = match dynamic.contains(&name) {
            true => options.dynamic(name),
            false => options.set(name, size as u32),
        };
    }
    let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{title}: {fault}"));
    let size = |name: &str| sizes.iter().find(|size| size.0 == name).map(|size| size.1 as i64);
    let value = |symbol: Symbol| size(symbol.name());
    let text = kernel.to_string();
    let again = Kernel::parse(&text, "again.gsw").unwrap_or_else(|fault| panic!("{title}: {fault}\n{text}"));
    assert_eq!(again.to_string(), text, "{title}");
    if sizes.iter().map(|size| size.1).product::<usize>() < 300 {
        meaning::compare(kernel, &options, &value).unwrap_or_else(|fault| panic!("{title}: {fault}"));
        meaning::reads_back(title, kernel, &options);
    }
    let device = Device::simulator(Target::GFX942);
    let buffers: Vec<Buffer> = inputs.iter().map(|input| device.upload_tensor(input).unwrap()).collect();
    let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
    let launch = dynamic.iter().fold(launch, |launch, &name| launch.set(name, size(name).unwrap()));
    let result = launch.run().unwrap_or_else(|fault| panic!("{title}: {fault}"));
    let checked = against_interpreter(kernel, &executable, &device, &value, 3).unwrap();
    assert!(checked.comparison.ok, "{title}: {:?}", checked.comparison);
    let (findings, _) = with_findings(kernel, &executable, &device, &value, 3).unwrap();
    assert!(findings.is_clean(), "{title}: {findings:?}");
    result.logs
}

fn assert_logged(title: &str, log: &LoggedTensor, shape: &[usize], expected: &[f64]) {
    assert_eq!(log.tensor.shape(), shape, "{title}: {}", log.name);
    let found = log.tensor.to_f64();
    let same = found.iter().zip(expected).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
    assert!(same && found.len() == expected.len(), "{title}: {log}\n{expected:?}");
}

#[test]
fn values_are_logged_whole() {
    for dtype in [F64, F32, F16, Bf16, I64, I32, I8] {
        for [m, n] in [[1, 1], [3, 5], [4, 64], [37, 130], [65, 257]] {
            for (waves, dynamic) in [(1, vec![]), (4, vec!["M"])] {
                let [dm, dn] = symbols(["M", "N"]);
                let kernel = Kernel::trace("whole", |w| {
                    w.distribute([workgroup(dm, 4, 0), wave(dm, 4 / waves)]);
                    let [x, y] = ["x", "y"].map(|name| w.memory(name, [dm, dn], Global, dtype));
                    let value = w.read(x) * 3;
                    w.debug_log(value, "tripled");
                    let back = value.at((dm, Coordinate::from(w.size(dn)) - 1 - dn), [dm, dn]);
                    w.debug_log(back, "back");
                    w.debug_log(w.size(dn) * 2, "twice");
                    w.write(back - value, y);
                })
                .unwrap();
                let title = format!("{dtype} {m}x{n} {waves} waves");
                let inputs = [tensor(dtype, &[m, n]), zeros(dtype, &[m, n])];
                let sizes = [("M", m), ("N", n)];
                let logs = logs(&title, &kernel, &sizes, &dynamic, Schedule::None, &inputs);
                let names: Vec<&str> = logs.iter().map(|log| &*log.name).collect();
                assert_eq!(names, ["tripled", "back", "twice"]);
                let tripled: Vec<f64> = (0..m * n).map(|at| number(at) * 3.0).collect();
                assert_logged(&title, &logs[0], &[m, n], &tripled);
                let back: Vec<f64> = (0..m * n).map(|at| number(at / n * n + n - 1 - at % n) * 3.0).collect();
                assert_logged(&title, &logs[1], &[m, n], &back);
                assert_logged(&title, &logs[2], &[1], &[2.0 * n as f64]);
                let at = logs[0].at.as_ref().unwrap();
                assert!(at.file.ends_with("debug_logs.rs") && at.line > 50, "{at}");
            }
        }
    }
}

/// The first iterations of two loops, one inside of the other, the last of each row, and chosen ones.
#[test]
fn iterations_are_logged_side_by_side() {
    const KEPT: [usize; 2] = [2, 3];
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
        for [m, j, k] in [[1, 1, 1], [5, 17, 40], [4, 64, 32], [9, 40, 130]] {
            let [dm, dj, dk] = symbols(["M", "J", "K"]);
            let kernel = Kernel::trace("nested", |w| {
                w.distribute([workgroup(dm, 4, 0), tile(dj, 8), tile(dk, 16)]);
                let x = w.memory("x", [dm, dj, dk], Global, F32);
                let y = w.memory("y", [dm], Global, F32);
                let zero = w.register([dm], F32, 0.0);
                let [sum] = w.iterate(dj, [zero], |w, [sum]| {
                    let [inner] = w.iterate(dk, [sum], |w, [sum]| {
                        let part = w.read(x).sum([dj, dk]);
                        w.debug_log_iterations(part, "parts", [(dj, 2), (dk, 3)]);
                        let third = w.iteration(dk).equal(2);
                        w.conditional(third, [], |w, []| {
                            w.debug_log_iterations(part, "third", [(dj, 4)]);
                            []
                        });
                        [sum + part]
                    });
                    w.debug_log(inner, "last");
                    [inner]
                });
                w.write(sum, y);
            })
            .unwrap();
            let title = format!("{schedule:?} {m}x{j}x{k}");
            let inputs = [tensor(F32, &[m, j, k]), zeros(F32, &[m])];
            let sizes = [("M", m), ("J", j), ("K", k)];
            let logs = logs(&title, &kernel, &sizes, &[], schedule.clone(), &inputs);
            let part = |row: usize, [tile_j, tile_k]: [usize; 2]| -> f64 {
                let of_j = (tile_j * 8..j.min(tile_j * 8 + 8)).flat_map(|at_j| {
                    (tile_k * 16..k.min(tile_k * 16 + 16))
                        .map(move |at_k| number((row * j + at_j) * k + at_k))
                });
                of_j.sum()
            };
            let tiles = [j.div_ceil(8), k.div_ceil(16)];
            let logged = |row: usize, tile: [usize; 2]| {
                if tile[0] < tiles[0] && tile[1] < tiles[1] { part(row, tile) } else { f64::NAN }
            };
            let parts: Vec<f64> = (0..KEPT[0] * KEPT[1])
                .flat_map(|slot| (0..m).map(move |row| (slot, row)))
                .map(|(slot, row)| logged(row, [slot / KEPT[1], slot % KEPT[1]]))
                .collect();
            assert_logged(&title, &logs[0], &[6, m], &parts);
            let third: Vec<f64> = (0..4 * m).map(|at| logged(at % m, [at / m, 2])).collect();
            assert_logged(&title, &logs[1], &[4, m], &third);
            let all = |row: usize| -> f64 {
                (0..tiles[0])
                    .flat_map(|a| (0..tiles[1]).map(move |b| [a, b]))
                    .map(|tile| part(row, tile))
                    .sum()
            };
            assert_logged(&title, &logs[2], &[m], &(0..m).map(all).collect::<Vec<_>>());
        }
    }
}

/// A condition that is false, and a loop without iterations, log nothing.
#[test]
fn what_is_not_logged_is_no_number() {
    for (dtype, nothing) in [(F32, f64::NAN), (F16, f64::NAN), (I32, 0.0)] {
        let m = Symbol::new("M");
        let kernel = Kernel::trace("never", |w| {
            w.distribute([workgroup(m, 16, 0)]);
            let [x, y] = ["x", "y"].map(|name| w.memory(name, [m], Global, dtype));
            let value = w.read(x);
            let large = w.size(m).greater(100);
            w.conditional(large, [], |w, []| {
                w.debug_log(value, "rarely");
                []
            });
            w.write(value, y);
        })
        .unwrap();
        for size in [7, 100, 101] {
            let inputs = [tensor(dtype, &[size]), zeros(dtype, &[size])];
            let logs = logs("never", &kernel, &[("M", size)], &["M"], Schedule::None, &inputs);
            let expected = |at: usize| if size > 100 { number(at) } else { nothing };
            assert_logged("never", &logs[0], &[size], &(0..size).map(expected).collect::<Vec<_>>());
        }
    }
}

/// The sums of a product after each iteration, under the schedules of the ready kernel's form.
#[test]
fn accumulators_are_logged() {
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
        for [m, n, k] in [[32, 32, 64], [50, 37, 100]] {
            let [dm, dn, dk] = symbols(["M", "N", "K"]);
            let kernel = Kernel::trace("product", |w| {
                w.distribute([workgroup(dm, 32, 0), workgroup(dn, 32, 1), tile(dk, 16)]);
                w.distribute([wave(dm, 16), wave(dn, 16)]);
                w.mma_type(Mma::F32_16x16x16_F16);
                let [a, b] =
                    [("a", dm), ("b", dn)].map(|(name, rows)| w.memory(name, [rows, dk], Shared, F16));
                let c = w.memory("c", [dm, dn], Global, F32);
                let zero = w.register([dm, dn], F32, 0.0);
                let [sum] = w.iterate(dk, [zero], |w, [sum]| {
                    let (x, y) = (w.read(a), w.read(b));
                    w.debug_log(x, "left");
                    let next = w.mma(x, y, sum);
                    w.debug_log_iterations(next, "sums", [(dk, 2)]);
                    [next]
                });
                w.write(sum, c);
            })
            .unwrap();
            let title = format!("{schedule:?} {m}x{n}x{k}");
            let inputs = [tensor(F16, &[m, k]), tensor(F16, &[n, k]), zeros(F32, &[m, n])];
            let sizes = [("M", m), ("N", n), ("K", k)];
            let logs = logs(&title, &kernel, &sizes, &[], schedule.clone(), &inputs);
            assert_logged(&title, &logs[0], &[m, k], &(0..m * k).map(number).collect::<Vec<_>>());
            let sum = |row: usize, column: usize, end: usize| -> f64 {
                (0..end.min(k)).map(|at| number(row * k + at) * number(column * k + at)).sum()
            };
            let sums: Vec<f64> =
                (0..2 * m * n).map(|at| sum(at / n % m, at % n, (at / (m * n) + 1) * 16)).collect();
            assert_logged(&title, &logs[1], &[2, m, n], &sums);
        }
    }
}

#[test]
fn a_kernel_with_logs_is_another_kernel() {
    let copy = |logs: bool| {
        let m = Symbol::new("M");
        let kernel = Kernel::trace("copy", |w| {
            w.distribute([workgroup(m, 64, 0)]);
            let [x, y] = ["x", "y"].map(|name| w.memory(name, [m], Global, F32));
            let value = w.read(x);
            if logs {
                w.debug_log(value, "value");
            }
            w.write(value, y);
        });
        kernel.unwrap().compile(&Options::new(Target::GFX942).set(m, 64)).unwrap()
    };
    let [with, without] = [copy(true), copy(false)];
    assert_eq!(copy(false).object(), without.object());
    assert_ne!(with.object(), without.object());
    let is_log = |parameter: &Parameter| matches!(parameter, Parameter::Log { .. });
    assert_eq!((with.parameters().len(), without.parameters().len()), (3, 2));
    assert!(is_log(&with.parameters()[2]), "logs come after the author's arguments");
    let gemm = Gemm::new(64, 64, 32);
    assert!(
        !gemm
            .kernel()
            .unwrap()
            .compile(&gemm.options(Target::GFX942))
            .unwrap()
            .parameters()
            .iter()
            .any(is_log)
    );
}
