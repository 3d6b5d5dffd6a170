//! Loops whose carried values are more than a sum: swapped, repeated, unused, constant, from outside, shared
//! by two matrix instructions, and trip counts under an assumption. The kernels are in `tests/cases/loops`;
//! each is run under every schedule and for several sizes, known and dynamic, in run and in check mode, and
//! must give what the interpreter gives.

use groundswell_testing::judged::verified;
use groundswell_testing::places::root;
use groundswell_testing::schedules::ALL as SCHEDULES;
use std::fs;
use std::path::Path;

use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::interpreter::Interpreter;
use groundswell::prelude::*;
use groundswell_testing::meaning;
use rayon::prelude::*;

/// Values of K: fewer iterations than stages, as many, more, and some that tiles do not divide.
const SIZES: [i64; 7] = [32, 48, 64, 128, 160, 200, 320];

/// Name and text of every kernel.
fn kernels() -> Vec<(String, String)> {
    let folder = root().join("tests/cases/loops");
    let entries = fs::read_dir(folder).expect("the folder of cases is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.sort();
    let read = |path: &Path| fs::read_to_string(path).expect("cases are text");
    paths.iter().map(|path| (path.display().to_string(), read(path))).collect()
}

/// What K is assumed to be a multiple of.
fn assumed(text: &str) -> i64 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("assume K % "));
    line.and_then(|rest| rest.split(' ').next()).map_or(1, |by| by.parse().expect("a number"))
}

fn size_of(symbol: Symbol, k: i64) -> Option<i64> {
    match symbol.name() {
        "M" | "N" => Some(64),
        "J" => Some(40),
        "K" => Some(k),
        _ => None,
    }
}

fn options(kernel: &Kernel, schedule: &Schedule, k: i64, dynamic: bool) -> Options {
    let options = Options::new(Target::GFX942).schedule(schedule.clone());
    kernel.symbols().into_iter().fold(options, |options, symbol| match size_of(symbol, k) {
        Some(_) if dynamic && symbol.name() == "K" => options.dynamic(symbol),
        Some(size) => options.set(symbol, size),
        None => options,
    })
}

/// Runs one kernel for one size, and says what is wrong.
fn run(text: &str, schedule: &Schedule, k: i64, dynamic: bool) -> Result<(), String> {
    let kernel = Kernel::parse(text, "case").map_err(|faults| format!("{faults:?}"))?;
    let options = options(&kernel, schedule, k, dynamic);
    let executable = compile_uncached(&kernel, &options, Verify::AfterEachPass).map_err(|e| e.to_string())?;
    let (value, device) = (|symbol| size_of(symbol, k), Device::simulator(Target::GFX942));
    // The size with a remainder is compared after every pass, where it is known.
    if k == 48 && !dynamic {
        meaning::compare(&kernel, &options, &value)?;
    }
    let (report, checked) =
        with_findings(&kernel, &executable, &device, &value, 5).map_err(|e| e.to_string())?;
    let run = against_interpreter(&kernel, &executable, &device, &value, 6).map_err(|e| e.to_string())?;
    match report.is_clean() && checked.ok && run.comparison.ok {
        true => Ok(()),
        false => Err(format!("{report}\ncheck mode: {checked:?}\nrun mode: {:?}", run.comparison)),
    }
}

#[test]
fn carried_values_are_right_under_every_schedule() {
    let kernels = kernels();
    let mut cases = Vec::new();
    for (name, text) in &kernels {
        for k in SIZES.into_iter().filter(|k| k % assumed(text) == 0) {
            for schedule in SCHEDULES {
                cases.extend([false, true].map(|dynamic| (name, text, schedule.clone(), k, dynamic)));
            }
        }
    }
    let faults: Vec<String> = cases
        .par_iter()
        .filter_map(|&(name, text, ref schedule, k, dynamic)| {
            let fault = run(text, schedule, k, dynamic).err()?;
            Some(format!("{name}, {schedule:?}, K = {k}, dynamic {dynamic}: {fault}"))
        })
        .collect();
    let shown: String = faults.iter().take(8).map(|fault| format!("\n{fault}\n")).collect();
    assert!(faults.is_empty(), "{} of {} fail:{shown}", faults.len(), cases.len());
}

/// A loop that is shorter than its pipeline runs as it was written, and not again after the pipeline: K
/// needs no device to count.
#[test]
fn sums_of_ones_count_the_iterations() {
    let (_, text) =
        kernels().into_iter().find(|case| case.0.ends_with("assume_dynamic.gsw")).expect("it is there");
    let kernel = Kernel::parse(&text, "case").expect("a kernel");
    for schedule in SCHEDULES {
        let executable =
            compile_uncached(&kernel, &options(&kernel, &schedule, 0, true), Verify::AfterEachPass);
        let executable = executable.expect("it compiles");
        for k in (1..=12).map(|tiles| 32 * tiles) {
            let device = Device::simulator(Target::GFX942);
            let ones = |rows| {
                device
                    .upload_tensor(&Tensor::from_slice(&[rows, k], &vec![f16::ONE; rows * k]).expect("ones"))
            };
            let (a, b) = (ones(64).expect("a"), ones(64).expect("b"));
            let c = device.upload_tensor(&Tensor::zeros(&[64, 64], DType::F32).expect("zeros")).expect("c");
            let launch = device.launch(&executable).buffer(&a).buffer(&b).buffer(&c);
            launch.set(Symbol::new("K"), k as i64).run().expect("it runs");
            let bytes = c.read_bytes().expect("a result");
            let sums = Tensor::from_bytes(&[64, 64], DType::F32, &bytes).expect("a tensor").to_f64();
            assert!(sums.iter().all(|&sum| sum == k as f64), "{schedule:?}, K = {k}: {}", sums[0]);
        }
    }
}

const NEST: &str = "kernel nest {
  workgroup M, 64, 0
  workgroup N, 64, 1
  tile K, 16
  mma f32_16x16x16_f16
  a = memory [M, K] shared f16
  b = memory [N, K] shared f16
  c = memory [M, N] global f32
  %z = register [M, N] f32 0.0
  %s = iterate K (%p = %z) {
    %q = iterate K (%r = %p) {
      %x = read a
      %y = read b
      %n = mma %x, %y, %r
      yield %n
    }
    yield %q
  }
  write %s, c
}
";

/// Compiler, verifier and interpreter refuse it in the same words, at the inner loop.
#[test]
fn a_loop_in_a_loop_over_the_same_dimension_is_refused_by_everybody() {
    let kernel = Kernel::parse(NEST, "nest.gsw").expect("a kernel");
    let options = options(&kernel, &Schedule::None, 64, false);
    let mut faults: Vec<Diagnostic> = [Verify::Off, Verify::AfterEachPass]
        .into_iter()
        .map(|verify| compile_uncached(&kernel, &options, verify).expect_err("it is refused"))
        .collect();
    let tensors =
        [DType::F16, DType::F16, DType::F32].map(|dtype| Tensor::zeros(&[64, 64], dtype).expect("zeros"));
    faults.push(Interpreter::run(&kernel, &|_| Some(64), &tensors).expect_err("it is refused"));
    for fault in faults {
        assert_eq!(fault.message, "a loop over K is inside a loop over K");
        assert_eq!(fault.location.expect("a place").line, 11);
    }
}

/// Values that move on by one place take one move each: none is brought out of the way first.
#[test]
fn a_queue_of_carried_values_moves_once() {
    let text = "kernel queue {
  workgroup M, 64, 0
  tile K, 16
  wave M, 64
  x = memory [M] global f32
  y = memory [M] global f32
  a = memory [M, K] global f32
  %x = read x
  %p, %q, %r, %s = iterate K (%p0 = %x, %q0 = %x, %r0 = %x, %s0 = %x) {
    %a = read a
    %sum = reduce_sum %a over K
    %n = add %p0, %sum
    yield %q0, %r0, %s0, %n
  }
  %pq = add %p, %q
  %rs = add %r, %s
  %all = add %pq, %rs
  write %all, y
}";
    let kernel = Kernel::parse(text, "queue").expect("well-formed");
    let executable = verified(&kernel, &options(&kernel, &Schedule::None, 64, false));
    let code = executable.assembly().expect("text");
    let lines: Vec<&str> = code.lines().collect();
    let start = lines.iter().position(|line| line.contains(".L0:")).expect("a loop");
    let end = lines.iter().position(|line| line.contains("s_cbranch_scc0 .L0")).expect("its end");
    let moves = lines[start..end].iter().filter(|line| line.contains("v_mov_b32")).count();
    // Each is in four registers.
    assert!(moves <= 4 * 4, "{moves} moves in\n{}", lines[start..end].join("\n"));
}
