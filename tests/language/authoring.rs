//! Forms that the author's API allows: calls inside of calls, numbers on either side of an operator,
//! numbers in `select`, compound assignment, names and integers of any type; what a `main` that fails prints;
//! ready kernels for a shape. Results are compared with plain loops or with the interpreter.

use groundswell::check::against_interpreter;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::diagnostic::Kind;
use groundswell::kernels::{Form, Gemm, Waves, copy};
use groundswell::prelude::*;
use groundswell::simulator::time;
use groundswell::simulator::time::TimeOptions;
use groundswell::simulator::{LaunchConfig, Simulator};
use groundswell_testing::judged::verified;

const ROWS: usize = 37;
const COLUMNS: usize = 75;

/// `c = body(a)` for each element of a 37 x 75 tensor, on the simulator and by the interpreter; both must say
/// what `expected` says.
fn elementwise(
    (dtype, values): (DType, &dyn Fn(usize) -> f64),
    body: impl Fn(&Tracer, Value) -> Value,
    expected: impl Fn(f64) -> f64,
) {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("elementwise", |w| {
        w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1)]);
        let [a, c] = ["a", "c"].map(|name| w.memory(name, [m, n], Global, dtype));
        w.write(body(w, w.read(a)), c);
    })
    .unwrap();
    // The text form holds all of it.
    let parsed = Kernel::parse(&kernel.to_string(), "elementwise.gsw").unwrap();
    assert_eq!(parsed.to_string(), kernel.to_string());
    let numbers: Vec<f64> = (0..ROWS * COLUMNS).map(values).collect();
    let input = match dtype {
        F32 => Tensor::from_slice(&[ROWS, COLUMNS], &numbers.iter().map(|&x| x as f32).collect::<Vec<_>>()),
        _ => Tensor::from_slice(&[ROWS, COLUMNS], &numbers.iter().map(|&x| x as i32).collect::<Vec<_>>()),
    }
    .unwrap();
    let zeros = Tensor::zeros(&[ROWS, COLUMNS], dtype).unwrap();
    let sizes = |s: Symbol| if s == m { Some(ROWS as i64) } else { Some(COLUMNS as i64) };
    let interpreted = Interpreter::run(&kernel, &sizes, &[input.clone(), zeros.clone()]).unwrap();
    let options = Options::new(Target::GFX942).set(m, ROWS as i64).set(n, COLUMNS as i64);
    let executable = verified(&kernel, &options);
    let device = Device::simulator(Target::GFX942);
    let (a, c) = (device.upload_tensor(&input).unwrap(), device.upload_tensor(&zeros).unwrap());
    device.launch(&executable).buffer(&a).buffer(&c).run().unwrap();
    let ran = Tensor::from_bytes(&[ROWS, COLUMNS], dtype, &c.read_bytes().unwrap()).unwrap();
    let wanted: Vec<f64> = numbers.iter().map(|&x| expected(x)).collect();
    assert_eq!(interpreted[1].to_f64(), wanted);
    assert_eq!(ran.to_f64(), wanted);
}

/// Small integers of both signs, as floats exact in every step below.
fn small(at: usize) -> f64 {
    (at % 23) as f64 - 11.0
}

/// Powers of two of both signs.
fn powers(at: usize) -> f64 {
    (if at.is_multiple_of(2) { 1.0 } else { -1.0 }) * 2f64.powi(at as i32 % 11 - 5)
}

#[test]
fn numbers_stand_on_either_side_of_an_operator() {
    elementwise((F32, &small), |_, x| 2.0 * x, |x| 2.0 * x);
    elementwise((F32, &small), |_, x| 3.0 - x, |x| 3.0 - x);
    elementwise((F32, &small), |_, x| (0.5 + x).abs(), |x| (0.5 + x).abs());
    elementwise((F32, &powers), |_, x| 1.0 / x, |x| 1.0 / x);
    elementwise((I32, &small), |_, x| 7 - 2 * x, |x| 7.0 - 2.0 * x);
    elementwise((I32, &small), |_, x| 100 / x, |x| if x == 0.0 { 0.0 } else { (100.0 / x).trunc() });
}

#[test]
fn compound_assignment() {
    let body = |w: &Tracer, x: Value| {
        let mut y = x;
        y += 1.0;
        y *= x;
        y -= w.select(x.less(0.0), x, 2.0);
        y /= 4.0f32;
        y
    };
    elementwise((F32, &small), body, |x| ((x + 1.0) * x - if x < 0.0 { x } else { 2.0 }) / 4.0);
    let steps = |_: &Tracer, x: Value| {
        let mut y = 3 * x;
        y -= 1;
        y /= 2;
        y
    };
    elementwise((I32, &small), steps, |x| ((3.0 * x - 1.0) / 2.0).trunc());
}

#[test]
fn select_takes_numbers() {
    let sign = |w: &Tracer, x: Value| w.select(x.greater(0.0), 1.0, w.select(x.less(0.0), -1.0, 0.0));
    elementwise((F32, &small), sign, |x| if x == 0.0 { 0.0 } else { x.signum() });
    elementwise((F32, &small), |w, x| w.select(x.less(2.0), x, 2.0), |x| x.min(2.0));
    elementwise((I32, &small), |w, x| w.select(x.equal(3), 1, 0) + x, |x| x + f64::from(x == 3.0));
}

#[test]
fn calls_stand_inside_of_calls_and_keep_their_lines() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let (mut first, mut write) = (0, 0);
    let kernel = Kernel::trace("gemm", |w| {
        w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), tile(k, 16)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let a = w.memory("a", [m, k], Shared, F16);
        let b = w.memory("b", [n, k], Shared, F16);
        let c = w.memory("c", [m, n], Global, F32);
        first = line!() + 2;
        let [sum] = w.iterate(k, [w.register([m, n], F32, 0.0)], |w, [sum]| {
            [w.mma(
                w.read(a),
                w.read(b), // two lines below the call that it is an argument of
                sum,
            )]
        });
        write = line!() + 1;
        w.write(2.0 * sum, c);
    })
    .unwrap();
    let options = Options::new(Target::GFX942).set(m, 40).set(n, 33).set(k, 48);
    let executable = verified(&kernel, &options);
    // LDS accesses are reported by the line of their read, which is inside of the call of `mma`.
    let accesses = &executable.report().lds_accesses;
    let lines = |kind: &str| -> Vec<u32> {
        let of_kind = accesses.iter().filter(|access| access.kind == kind);
        of_kind.map(|access| access.location.as_ref().expect("traced").line).collect()
    };
    assert_eq!(lines("read"), [first + 1, first + 2]);
    assert!(accesses.iter().all(|a| &*a.location.as_ref().unwrap().file == file!()));
    // What is wrong with the last line is blamed on it.
    let tiled = Kernel::trace("wrong", |w| {
        let (a, c) = (w.memory("a", [m, k], Global, F16), w.memory("c", [m, n], Global, F32));
        write = line!() + 1;
        w.write(1.0 - w.read(a), c);
    });
    let options = Options::new(Target::GFX942).set(m, 40).set(n, 33).set(k, 48);
    let fault = compile_uncached(&tiled.unwrap(), &options, Verify::Off).unwrap_err();
    assert_eq!((fault.kind, fault.location.map(|l| l.line)), (Kind::Invalid, Some(write)));
}

/// Reads, compiles, and stops at the first fault, as a `main` does.
fn main_of_a_program(text: &str) -> Result<(), Diagnostic> {
    let kernel = Kernel::parse(text, "scale.gsw")?;
    kernel.compile(&Options::new(Target::GFX942).set("M", 64))?;
    Ok(())
}

/// What Rust prints when `main` returns a fault.
fn printed(text: &str) -> String {
    format!("Error: {:?}\n", main_of_a_program(text).unwrap_err())
}

const SCALE: &str = "kernel scale {
  workgroup M, 64, 0
  a = memory [M] global f32
  b = memory [M] global f16
  %x = read a
  write %x, b
}
";

#[test]
fn a_main_that_returns_a_diagnostic_prints_it_with_the_lines_of_the_text() {
    assert_eq!(
        printed(SCALE),
        "Error: a value [M] f32 is written to a memory [M] f16
  --> scale.gsw:6:3
   |
 6 |   write %x, b
   |   ^^^^^
  help: cast the value
"
    );
    // All faults of a text are reported, not only the first.
    let text = SCALE.replace("read a", "reed a").replace("write %x", "\twrite %y");
    assert_eq!(
        printed(&text),
        "Error: there is no operation `reed`
  --> scale.gsw:5:8
   |
 5 |   %x = reed a
   |        ^^^^
  help: did you mean `read`?

Error: `%y` is not defined
  --> scale.gsw:6:10
   |
 6 |    write %y, b
   |          ^^
  help: a name is defined above its first use
"
    );
    // A long line is cut, and `Display` shows no lines at all.
    let long = text.replace("reed a", &format!("reed a ; {}", "x".repeat(1000)));
    assert!(printed(&long).lines().all(|line| line.len() < 220));
    let faults = Kernel::parse(&text, "scale.gsw").unwrap_err();
    assert_eq!(faults.len(), 2);
    assert!(
        faults.to_string().starts_with("error: there is no operation `reed`\n  --> scale.gsw:5:8\n  help")
    );
    // The interpreter's faults show the text as well.
    let kernel =
        Kernel::parse(&SCALE.replace("b = memory [M] global f16", "b = memory [N] global f32"), "s.gsw");
    let tensors = [4, 5].map(|size| Tensor::zeros(&[size], F32).unwrap());
    let sizes = |s: Symbol| if s.name() == "M" { Some(4) } else { Some(5) };
    let fault = Interpreter::run(&kernel.unwrap(), &sizes, &tensors).unwrap_err();
    assert!(format!("{fault:?}").contains("\n 6 |   write %x, b\n   |   ^^^^^"), "{fault:?}");
}

#[test]
fn values_of_symbols_are_integers_of_any_type_for_symbols_or_names() {
    let m = Symbol::new("M");
    let kernel = Kernel::parse(&SCALE.replace("f16", "f32"), "scale.gsw").unwrap();
    let base = || Options::new(Target::GFX942);
    let sizes =
        [base().set("M", 100usize), base().set(m, 100u8), base().set(m, 100i128), base().set("M", 100u64)];
    for options in &sizes {
        assert_eq!(options.value("M"), Some(100));
        assert_eq!(*options, base().set(m, 100), "who set a value is no part of the key");
        kernel.compile(options).unwrap();
    }
    // What no size can be is refused when it is compiled.
    let message = |options: Options| kernel.compile(&options).unwrap_err().message;
    assert_eq!(message(base().set("M", u64::MAX)), "M = 18446744073709551615 is out of range");
    assert_eq!(message(base().set("M", -(1i128 << 100))), format!("M = -{} is out of range", 1i128 << 100));
    assert_eq!(message(base().set("M", -1i8)), "M = -1 is not a size");
    // The same at launch.
    let executable = kernel.compile(&base().dynamic("M")).unwrap();
    let device = Device::simulator(Target::GFX942);
    let buffer = device.upload(&[1f32; 5]).unwrap();
    let launch = || device.launch(&executable).buffer(&buffer).buffer(&buffer);
    launch().set("M", 5usize).run().unwrap();
    assert!(launch().set("M", u64::MAX).run().unwrap_err().message.ends_with("is not a size"));
}

#[test]
fn a_report_shows_the_summary_of_the_program() {
    let executable = Gemm::new(64, 64, 512).tile(64, 64, 32).compile(Target::GFX942).unwrap();
    let (report, text) = (executable.report(), executable.report().to_string());
    let names: Vec<&str> = text.lines().map(|line| line[..10].trim_end()).collect();
    assert_eq!(
        names,
        ["compiled", "registers", "LDS", "occupancy", "main loop", "stores", "order", "schedule"],
        "{text}"
    );
    let lines: Vec<&str> = text.lines().map(|line| &line[11..]).collect();
    assert!(
        lines[0].ends_with(&format!("{} instructions, {} bytes", report.instructions, report.code_bytes))
    );
    assert_eq!(lines[1], format!("{} VGPRs, 0 AGPRs, {} SGPRs, no scratch", report.vgprs, report.sgprs));
    assert_eq!(lines[2], format!("{} bytes, no bank conflicts", report.lds_bytes));
    let order = &report.reductions[0];
    assert!(lines[6].starts_with(&format!("{} over {} {:016x}", order.operation, order.dim, order.hash)));
    assert_eq!(lines[7], "prefetch");
}

/// The line of a fault of this file.
fn line_of(fault: &Diagnostic) -> Option<u32> {
    fault.location.as_ref().filter(|at| &*at.file == file!()).map(|at| at.line)
}

#[test]
fn faults_of_ready_kernels_lie_where_they_were_asked_for() {
    let line = line!() + 1;
    let fault = Gemm::new(64, 64, 64).tile(32, 32, 24).compile(Target::GFX942).unwrap_err();
    let at = fault.location.clone().unwrap();
    assert_eq!(line_of(&fault), Some(line));
    assert_eq!(
        fault.to_string(),
        format!(
            "error: a wave covers 24 elements of K, which is not a multiple of the 16 of F32_16x16x16_F16
  --> {at}
  note: BLOCK_K = 24 is set here
  help: use a larger tile of K, fewer waves, or a smaller matrix instruction"
        )
    );
    // Symbols that the options bind are blamed on the options.
    let kernel = Gemm::any_shape().kernel().unwrap();
    let sizes = Options::new(Target::GFX942).set("M", 64).set("N", 64).set("K", 64);
    let line = line!() + 1;
    let odd = sizes.clone().set("BLOCK_N", 33);
    let fault = kernel.compile(&odd.set("BLOCK_M", 32).set("BLOCK_K", 32)).unwrap_err();
    assert_eq!(line_of(&fault), Some(line), "{fault}");
    assert_eq!(fault.notes[0].0, "BLOCK_N = 33 is set here");
    let line = line!() + 1;
    let open = sizes.clone().dynamic("BLOCK_M");
    let fault = kernel.compile(&open.set("BLOCK_N", 32).set("BLOCK_K", 32)).unwrap_err();
    assert_eq!(line_of(&fault), Some(line), "{fault}");
    assert_eq!(fault.notes[0].0, "BLOCK_M is left open here");
    // Too much of something is the tile's fault, and without a tile the kernel's.
    let line = line!() + 1;
    let fault = Gemm::new(4096, 4096, 64).tile(1024, 1024, 256).compile(Target::GFX942).unwrap_err();
    assert_eq!((fault.kind, line_of(&fault)), (Kind::Limit, Some(line)), "{fault}");
    let line = line!() + 1;
    let fault = Gemm::new(64, 0, 64).compile(Target::GFX942).unwrap_err();
    assert_eq!((fault.message.as_str(), line_of(&fault)), ("N = 0 is not a size", Some(line)));
    let line = line!() + 1;
    let fault = Gemm::any_shape().inputs(I32).kernel().unwrap_err();
    assert_eq!(line_of(&fault), Some(line));
    let line = line!() + 1;
    let fault = copy(F32, Waves::new(0, 1)).unwrap_err();
    assert_eq!(line_of(&fault), Some(line));
    // An epilogue is its author's.
    let mut line = 0;
    let kernel = Gemm::any_shape().epilogue(|_, sum| sum + sum.cast(F16)).kernel().unwrap();
    line += line!() - 1;
    let options = sizes.set("BLOCK_M", 32).set("BLOCK_N", 32).set("BLOCK_K", 32);
    assert_eq!(line_of(&kernel.compile(&options).unwrap_err()), Some(line));
}

#[test]
fn faults_and_spills_of_ready_kernels_name_what_their_user_wrote() {
    let line = line!() + 1;
    let gemm = Gemm::new(256, 256, 64).waves(Waves::new(3, 2));
    let fault = gemm.compile(Target::GFX942).unwrap_err();
    let note = |text: &str| fault.notes.iter().find(|note| note.0.contains(text)).map(|note| note.1.clone());
    assert_eq!(line_of(&fault), Some(line), "{fault}");
    assert!(note("3 waves along M are set here").is_some(), "{fault}");
    let line = line!() + 1;
    let copied = copy(F32, Waves::new(5, 1)).unwrap();
    let options =
        Options::new(Target::GFX942).set("M", 64).set("N", 64).set("BLOCK_M", 16).set("BLOCK_N", 64);
    let fault = copied.compile(&options).unwrap_err();
    let told = fault.notes.iter().find(|note| note.0 == "5 waves along M are asked for here");
    let told = told.unwrap_or_else(|| panic!("{fault}"));
    assert_eq!(told.1.as_ref().map(|at| at.line), Some(line));
    let spilling = |gemm: Gemm| {
        let kernel = gemm.kernel().unwrap();
        let options = gemm.options(Target::GFX942).max_vgprs(160);
        kernel.compile(&options).unwrap().report().spills.clone().expect("128 x 128 of one wave")
    };
    // The same kernel from two places: each gets its own.
    for _ in 0..2 {
        let first = spilling(Gemm::new(256, 256, 64).tile(128, 128, 32).waves(Waves::new(1, 1)));
        let second = spilling(Gemm::new(256, 256, 64).tile(128, 128, 32).waves(Waves::new(1, 1)));
        let [first, second] = [first, second].map(|spills| spills.location.expect("a place"));
        assert_eq!((&*first.file, &*second.file), (file!(), file!()));
        assert_eq!(second.line, first.line + 1);
    }
}

#[test]
fn a_gemm_of_any_shape_compiles_with_its_defaults_and_is_right() {
    let shapes = [[1, 1, 1], [64, 64, 64], [100, 60, 500], [16, 1000, 300], [500, 8, 260], [200, 300, 64]];
    for (at, [m, n, k]) in shapes.into_iter().enumerate() {
        let dtype = [F16, Bf16, F32, I8][at % 4];
        let form = [Form::ABt, Form::AB][at / 2 % 2];
        let gemm = Gemm::new(m, n, k).inputs(dtype).form(form);
        let (kernel, options) = (gemm.kernel().unwrap(), gemm.options(Target::GFX942));
        let executable = gemm.compile(Target::GFX942).unwrap();
        let value = |symbol: Symbol| options.value(symbol);
        let device = Device::simulator(Target::GFX942);
        let checked = against_interpreter(&kernel, &executable, &device, &value, 1).unwrap();
        assert!(checked.comparison.ok, "{m} x {n} x {k} of {dtype}");
    }
}

/// On every chip what is chosen fits every dtype, form and matrix instruction, without spilling.
#[test]
fn tiles_that_are_chosen_fit_every_product_of_every_chip() {
    const SHAPES: [[u32; 3]; 14] = [
        [16, 16, 128],
        [64, 64, 256],
        [16, 4096, 4096],
        [100, 12288, 3072],
        [4096, 40, 700],
        [512; 3],
        [1024; 3],
        [1024, 6144, 4096],
        [2048; 3],
        [2048, 4096, 4096],
        [3000; 3],
        [4096; 3],
        [6144, 6144, 2048],
        [9000; 3],
    ];
    let mut compiled = 0;
    for target in Target::ALL {
        for (shape, dtype) in
            SHAPES.iter().flat_map(|shape| [F16, Bf16, F32, I8, F64, F8E4M3Fnuz].map(|dtype| (shape, dtype)))
        {
            for (form, matrix) in [
                (Form::ABt, MatrixShape::M16x16),
                (Form::AB, MatrixShape::M32x32),
                (Form::AtB, MatrixShape::M16x16),
            ] {
                let gemm = Gemm::new(shape[0], shape[1], shape[2]).inputs(dtype).form(form).matrix(matrix);
                let title = format!("{shape:?} of {dtype} on {target}, {form:?}, {matrix}");
                let executable = match gemm.compile(target) {
                    Ok(executable) => executable,
                    Err(fault) if fault.kind == Kind::Unsupported => continue,
                    Err(fault) => panic!("{title}: {fault}"),
                };
                compiled += 1;
                // Addresses that are made again from another one are no spills: nothing is stored.
                let spilled = executable.report().spills.as_ref().filter(|spills| spills.counts.any());
                assert!(spilled.is_none(), "{title}: {spilled:?}");
            }
        }
    }
    assert!(compiled > 800, "{compiled} products");
}

/// What time mode estimates for a product on MI300X, in microseconds without the launch.
fn estimated(gemm: &Gemm, [m, n, k]: [u64; 3]) -> f64 {
    let executable = gemm.compile(Target::GFX942).unwrap();
    let mut simulator = Simulator::new(Target::GFX942);
    let module = simulator.load(executable.object()).unwrap();
    let buffers = [m * k * 2, n * k * 2, m * n * 4].map(|bytes| simulator.alloc(bytes).unwrap());
    let kernarg: Vec<u8> = buffers.iter().flat_map(|address| address.to_le_bytes()).collect();
    let config = LaunchConfig::new(executable.grid(&|_| None).unwrap(), executable.block());
    let options = TimeOptions::new(time::DeviceModel::MI300X);
    simulator.time(&module, executable.name(), config, &kernarg, &options).unwrap().estimate.microseconds
}

#[test]
fn defaults_beat_a_fixed_tile_at_every_kind_of_shape() {
    // How many times as fast at least: small, skinny, few workgroups with a long sum, medium.
    for (shape, factor) in
        [([256; 3], 4.0), ([16, 2048, 2048], 4.0), ([128, 128, 2048], 4.0), ([1024; 3], 2.0)]
    {
        let gemm = || Gemm::new(shape[0], shape[1], shape[2]);
        let fixed = gemm().tile(128, 128, 32).waves(Waves::new(2, 2)).schedule(Schedule::None);
        let (chosen, fixed) = (estimated(&gemm(), shape), estimated(&fixed, shape));
        assert!(chosen * factor < fixed, "{shape:?}: {chosen:.2} us, and {fixed:.2} us with a fixed tile");
    }
}

#[test]
fn a_value_with_fewer_dims_is_repeated_and_a_fault_says_how() {
    let [m, n] = symbols(["M", "N"]);
    let kernel = |widened: bool| {
        Kernel::trace("outer", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(n, 16, 1)]);
            let (a, b) = (w.memory("a", [m], Global, F32), w.memory("b", [n], Global, F32));
            let c = w.memory("c", [m, n], Global, F32);
            let column = match widened {
                true => w.read(a).broadcast([m, n]),
                false => w.read(a),
            };
            w.write(column + w.read(b), c);
        })
        .unwrap()
    };
    let options = Options::new(Target::GFX942).set(m, 20).set(n, 30);
    let fault = kernel(false).compile(&options).unwrap_err();
    assert_eq!(fault.message, "[M] f32 and [N] f32 have no common shape");
    let way_out = "one operand must have all dimensions of the other: repeat it with `broadcast %x [M, N]` (in \
                   Rust, `broadcast([..])`)";
    assert_eq!(fault.help.as_deref(), Some(way_out));
    // What the message says works.
    let executable = kernel(true).compile(&options).unwrap();
    let device = Device::simulator(Target::GFX942);
    let (a, b) = (
        (0..20).map(|x| x as f32).collect::<Vec<_>>(),
        (0..30).map(|x| x as f32 * 100.0).collect::<Vec<_>>(),
    );
    let [a, b, c] = [a, b, vec![0f32; 600]].map(|data| device.upload(&data).unwrap());
    device.launch(&executable).buffer(&a).buffer(&b).buffer(&c).run().unwrap();
    let sums = c.download::<f32>().unwrap();
    assert!(sums.iter().enumerate().all(|(at, &sum)| sum == (at / 30) as f32 + (at % 30) as f32 * 100.0));
}
