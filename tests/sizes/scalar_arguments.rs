//! Scalar arguments: the interpreter, compiled and simulated code, and loops in plain Rust give the same;
//! what the code object and the launch say of them.

use groundswell::compile::Parameter;
use groundswell::object::{ArgumentKind, ObjectFile};
use groundswell::prelude::*;
use groundswell_testing::judged::verified;
use groundswell_testing::oracle::Workspace;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Values that arithmetic treats in ways of their own, and ordinary ones.
const FLOATS: [f32; 12] = [
    0.0,
    -0.0,
    1.0,
    -2.5,
    1e-40,
    -f32::from_bits(1),
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    1.0 / 3.0,
];
const INTEGERS: [i32; 7] = [0, 1, -1, 7, -300, i32::MIN, i32::MAX];

fn float(rng: &mut StdRng) -> f32 {
    match rng.random_range(0..3) {
        0 => FLOATS[rng.random_range(0..FLOATS.len())],
        1 => f32::from_bits(rng.random()),
        _ => rng.random_range(-4.0..4.0),
    }
}

fn integer(rng: &mut StdRng) -> i32 {
    if rng.random() { INTEGERS[rng.random_range(0..INTEGERS.len())] } else { rng.random() }
}

/// What a kernel is launched with: its arguments in order.
enum Argument {
    Tensor(Tensor),
    Scalar(ScalarValue),
}

fn tensors(arguments: &[Argument]) -> Vec<Tensor> {
    let tensor = |argument: &Argument| match argument {
        Argument::Tensor(tensor) => tensor.clone(),
        Argument::Scalar(value) => value.to_tensor(),
    };
    arguments.iter().map(tensor).collect()
}

/// The arguments after a run of the compiled kernel on the simulator.
fn simulated(executable: &Executable, arguments: &[Argument]) -> Vec<Tensor> {
    let device = Device::simulator(Target::GFX942);
    let upload = |argument: &Argument| match argument {
        Argument::Tensor(tensor) => Some(device.upload_tensor(tensor).unwrap()),
        Argument::Scalar(_) => None,
    };
    let buffers: Vec<Option<Buffer>> = arguments.iter().map(upload).collect();
    let mut launch = device.launch(executable);
    for (argument, buffer) in arguments.iter().zip(&buffers) {
        launch = match (argument, buffer) {
            (Argument::Scalar(value), _) => launch.scalar(*value),
            (_, Some(buffer)) => launch.buffer(buffer),
            _ => launch,
        };
    }
    launch.run().unwrap();
    let after = |(tensor, buffer): (Tensor, &Option<Buffer>)| match buffer {
        Some(buffer) => {
            Tensor::from_bytes(tensor.shape(), tensor.dtype(), &buffer.read_bytes().unwrap()).unwrap()
        }
        None => tensor,
    };
    tensors(arguments).into_iter().zip(&buffers).map(after).collect()
}

fn compile(kernel: &Kernel, options: Options) -> Executable {
    verified(kernel, &options)
}

/// The bits of a number; all NaNs are one.
fn bits(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}

fn floats(tensor: &Tensor) -> Vec<u32> {
    tensor.as_slice::<f32>().unwrap().iter().map(|&value| bits(value)).collect()
}

/// A random expression over an element `x`, two scalars and constants.
#[derive(Clone, Debug)]
enum Tree {
    X,
    Alpha,
    Beta,
    Constant(i32),
    Negated(Box<Tree>),
    Pair(BinaryOp, Box<Tree>, Box<Tree>),
    /// The first two are compared: `a < b ? c : d`.
    Choice(Box<[Tree; 4]>),
}

/// Operations of floats that are rounded correctly.
const OF_FLOATS: [BinaryOp; 6] =
    [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Min, BinaryOp::Max];

/// Those of integers are all exact.
fn operations(dtype: DType) -> Vec<BinaryOp> {
    if dtype.is_float() {
        return OF_FLOATS.to_vec();
    }
    BinaryOp::ALL.iter().copied().filter(|op| op.row().operands.admit(dtype)).collect()
}

/// Numbers that divisors have code of their own for, and others.
const CONSTANTS: [i32; 16] =
    [0, 1, -1, 2, -2, 3, -3, 5, 7, 10, 64, 100, 641, 1 << 20, 16_777_215, -16_777_215];

impl Tree {
    fn random(rng: &mut StdRng, depth: u32, dtype: DType) -> Tree {
        let below = |rng: &mut StdRng| Box::new(Tree::random(rng, depth - 1, dtype));
        match rng.random_range(if depth == 0 { 0..5 } else { 4..12 }) {
            0 => Tree::X,
            1 | 2 => Tree::Alpha,
            3 => Tree::Beta,
            4 => Tree::Constant(CONSTANTS[rng.random_range(0..CONSTANTS.len())]),
            5 => Tree::Negated(below(rng)),
            6 => Tree::Choice(Box::new(std::array::from_fn(|_| *below(rng)))),
            _ => {
                let operations = operations(dtype);
                let op = operations[rng.random_range(0..operations.len())];
                Tree::Pair(op, below(rng), below(rng))
            }
        }
    }

    #[expect(clippy::erasing_op, reason = "the product is one of the kernel")]
    fn trace(&self, w: &Tracer, [x, alpha, beta]: [Value; 3]) -> Value {
        let trace = |tree: &Tree| tree.trace(w, [x, alpha, beta]);
        match self {
            Tree::X => x,
            Tree::Alpha => alpha,
            Tree::Beta => beta,
            // Two bare numbers would not have the scalars' dtype.
            Tree::Constant(value) => alpha * 0 + *value,
            Tree::Negated(inner) => -trace(inner),
            Tree::Pair(op, a, b) => {
                let a = trace(a);
                match (op, &**b) {
                    (BinaryOp::FloorDiv, Tree::Constant(b)) => return a.floor_div(*b),
                    (BinaryOp::Rem, Tree::Constant(b)) => return a % *b,
                    _ => {}
                }
                let b = trace(b);
                match op {
                    BinaryOp::Add => a + b,
                    BinaryOp::Sub => a - b,
                    BinaryOp::Mul => a * b,
                    BinaryOp::Div => a / b,
                    BinaryOp::Min => a.minimum(b),
                    BinaryOp::Max => a.maximum(b),
                    BinaryOp::FloorDiv => a.floor_div(b),
                    BinaryOp::Rem => a % b,
                    BinaryOp::Pow => a.pow(b),
                    BinaryOp::Atan2 => a.atan2(b),
                    BinaryOp::And => a & b,
                    BinaryOp::Or => a | b,
                    BinaryOp::Xor => a ^ b,
                    BinaryOp::ShiftLeft => a << b,
                    BinaryOp::ShiftRight => a >> b,
                }
            }
            Tree::Choice(of) => {
                let [a, b, c, d] = [&of[0], &of[1], &of[2], &of[3]].map(trace);
                w.select(a.less(b), c, d)
            }
        }
    }

    fn of_floats(&self, [x, alpha, beta]: [f32; 3]) -> f32 {
        let of = |tree: &Tree| tree.of_floats([x, alpha, beta]);
        match self {
            Tree::X => x,
            Tree::Alpha => alpha,
            Tree::Beta => beta,
            Tree::Constant(value) => alpha * 0.0 + *value as f32,
            Tree::Negated(inner) => -of(inner),
            Tree::Pair(op, a, b) => {
                let (a, b) = (of(a), of(b));
                match op {
                    BinaryOp::Add => a + b,
                    BinaryOp::Sub => a - b,
                    BinaryOp::Mul => a * b,
                    BinaryOp::Div => a / b,
                    BinaryOp::Min if a.is_nan() || b.is_nan() => {
                        if a.is_nan() {
                            b
                        } else {
                            a
                        }
                    }
                    BinaryOp::Max if a.is_nan() || b.is_nan() => {
                        if a.is_nan() {
                            b
                        } else {
                            a
                        }
                    }
                    BinaryOp::Min => {
                        if a < b || (a == b && a.is_sign_negative()) {
                            a
                        } else {
                            b
                        }
                    }
                    BinaryOp::Max => {
                        if a > b || (a == b && a.is_sign_positive()) {
                            a
                        } else {
                            b
                        }
                    }
                    op => unreachable!("{op:?} has no floats"),
                }
            }
            Tree::Choice(tree) => {
                let [a, b, c, d] = &**tree;
                if of(a) < of(b) { of(c) } else { of(d) }
            }
        }
    }

    fn of_integers(&self, [x, alpha, beta]: [i32; 3]) -> i32 {
        let of = |tree: &Tree| tree.of_integers([x, alpha, beta]);
        match self {
            Tree::X => x,
            Tree::Alpha => alpha,
            Tree::Beta => beta,
            Tree::Constant(value) => *value,
            Tree::Negated(inner) => of(inner).wrapping_neg(),
            Tree::Pair(op, a, b) => {
                let (a, b) = (of(a), of(b));
                match op {
                    BinaryOp::Add => a.wrapping_add(b),
                    BinaryOp::Sub => a.wrapping_sub(b),
                    BinaryOp::Mul => a.wrapping_mul(b),
                    BinaryOp::Div if b == 0 => 0,
                    BinaryOp::Div => a.wrapping_div(b),
                    BinaryOp::Min => a.min(b),
                    BinaryOp::Max => a.max(b),
                    // In 64 bits, where nothing overflows.
                    BinaryOp::FloorDiv if b == 0 => 0,
                    BinaryOp::FloorDiv => (f64::from(a) / f64::from(b)).floor() as i64 as i32,
                    BinaryOp::Rem if b == 0 => a,
                    BinaryOp::Rem => {
                        let rest = i64::from(a).rem_euclid(i64::from(b));
                        (if b < 0 && rest != 0 { rest + i64::from(b) } else { rest }) as i32
                    }
                    BinaryOp::And => a & b,
                    BinaryOp::Or => a | b,
                    BinaryOp::Xor => a ^ b,
                    BinaryOp::ShiftLeft => a << (b & 31),
                    BinaryOp::ShiftRight => a >> (b & 31),
                    BinaryOp::Pow | BinaryOp::Atan2 => unreachable!("they have no integers"),
                }
            }
            Tree::Choice(tree) => {
                let [a, b, c, d] = &**tree;
                if of(a) < of(b) { of(c) } else { of(d) }
            }
        }
    }

    fn kernel(&self, dtype: DType) -> Kernel {
        let [m] = symbols(["M"]);
        let kernel = Kernel::trace("tree", |w| {
            w.distribute([workgroup(m, 64, 0)]);
            let alpha = w.scalar("alpha", dtype);
            let a = w.memory("a", [m], Global, dtype);
            let beta = w.scalar("beta", dtype);
            let b = w.memory("b", [m], Global, dtype);
            let x = w.read(a);
            // Trees without `x` have no dimension of their own; the condition never holds.
            w.write(w.select(x.less(x), x, self.trace(w, [x, alpha, beta])), b);
        });
        kernel.unwrap()
    }
}

const SIZE: usize = 100;

#[test]
fn random_expressions_over_random_scalars_are_what_plain_rust_computes() {
    let mut rng = StdRng::seed_from_u64(12);
    for round in 0..60 {
        let [tree, of_integers] = [F32, I32].map(|dtype| Tree::random(&mut rng, 1 + round % 3, dtype));
        let preload = if round % 2 == 0 { KernargPreload::Off } else { KernargPreload::Fitting };
        let options = Options::new(Target::GFX942).set("M", SIZE).kernarg_preload(preload);
        let [kernel, integer_kernel] = [tree.kernel(F32), of_integers.kernel(I32)];
        let [executable, integer_code] = [&kernel, &integer_kernel].map(|k| compile(k, options.clone()));
        for _ in 0..4 {
            let x: Vec<f32> = (0..SIZE).map(|_| float(&mut rng)).collect();
            let (alpha, beta) = (float(&mut rng), float(&mut rng));
            let arguments = [
                Argument::Scalar(alpha.into()),
                Argument::Tensor(Tensor::from_slice(&[SIZE], &x).unwrap()),
                Argument::Scalar(beta.into()),
                Argument::Tensor(Tensor::zeros(&[SIZE], F32).unwrap()),
            ];
            let expected: Vec<u32> = x.iter().map(|&x| bits(tree.of_floats([x, alpha, beta]))).collect();
            let ran = simulated(&executable, &arguments);
            assert_eq!(floats(&ran[3]), expected, "{tree:?} {alpha:?} {beta:?}");
            let meant = Interpreter::run(&kernel, &|_| Some(SIZE as i64), &tensors(&arguments)).unwrap();
            assert_eq!(floats(&meant[3]), expected, "interpreter: {tree:?} {alpha:?} {beta:?}");

            let x: Vec<i32> = (0..SIZE).map(|_| integer(&mut rng)).collect();
            let (alpha, beta) = (integer(&mut rng), integer(&mut rng));
            let arguments = [
                Argument::Scalar(alpha.into()),
                Argument::Tensor(Tensor::from_slice(&[SIZE], &x).unwrap()),
                Argument::Scalar(beta.into()),
                Argument::Tensor(Tensor::zeros(&[SIZE], I32).unwrap()),
            ];
            let tree = &of_integers;
            let expected: Vec<i32> = x.iter().map(|&x| tree.of_integers([x, alpha, beta])).collect();
            let ran = simulated(&integer_code, &arguments);
            assert_eq!(ran[3].as_slice::<i32>(), Some(&expected[..]), "{tree:?} {alpha} {beta}");
            let meant =
                Interpreter::run(&integer_kernel, &|_| Some(SIZE as i64), &tensors(&arguments)).unwrap();
            assert_eq!(meant[3].as_slice::<i32>(), Some(&expected[..]), "interpreter: {tree:?}");
        }
    }
}

/// `c = alpha * a bT + beta * c`, in f32 like the sums; the result is cast.
fn scaled_product() -> Kernel {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let kernel = Kernel::trace("scaled", |w| {
        w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), tile(k, 16), wave(m, 16), wave(n, 16)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let [a, b] = [("a", [m, k]), ("b", [n, k])].map(|(name, shape)| w.memory(name, shape, Shared, F16));
        let alpha = w.scalar("alpha", F32);
        let c = w.memory("c", [m, n], Global, F16);
        let beta = w.scalar("beta", F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
        w.write((alpha * sum + w.read(c).cast(F32) * beta).cast(F16), c);
    });
    kernel.unwrap()
}

#[test]
fn the_epilogue_of_a_product_is_scaled() {
    let kernel = scaled_product();
    let mut rng = StdRng::seed_from_u64(3);
    let [m, n, k] = [37usize, 40, 50];
    let sizes = |s: Symbol| match s.name() {
        "M" => Some(m as i64),
        "N" => Some(n as i64),
        _ => Some(k as i64),
    };
    let mut small = |count: usize| -> Vec<f16> {
        (0..count).map(|_| f16::from_f32(rng.random_range(-8i8..9).into())).collect()
    };
    let (a, b, c) = (small(m * k), small(n * k), small(m * n));
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::FourStage] {
        let options =
            Options::new(Target::GFX942).schedule(schedule.clone()).set("M", m).set("N", n).set("K", k);
        let executable = compile(&kernel, options);
        for (alpha, beta) in [(0.5f32, -2.0f32), (-1.0, 0.0), (f32::NAN, 1.0), (1e-40, 1.0)] {
            let arguments = [
                Argument::Tensor(Tensor::from_slice(&[m, k], &a).unwrap()),
                Argument::Tensor(Tensor::from_slice(&[n, k], &b).unwrap()),
                Argument::Scalar(alpha.into()),
                Argument::Tensor(Tensor::from_slice(&[m, n], &c).unwrap()),
                Argument::Scalar(beta.into()),
            ];
            // Sums of small integers are exact in f32.
            let element = |at: usize| {
                let (row, column) = (at / n, at % n);
                let sum: f32 = (0..k).map(|i| a[row * k + i].to_f32() * b[column * k + i].to_f32()).sum();
                bits(f16::from_f32(alpha * sum + c[at].to_f32() * beta).to_f32())
            };
            let expected: Vec<u32> = (0..m * n).map(element).collect();
            let halves = |tensor: &Tensor| -> Vec<u32> {
                tensor.as_slice::<f16>().unwrap().iter().map(|value| bits(value.to_f32())).collect()
            };
            assert!(
                halves(&simulated(&executable, &arguments)[3]) == expected,
                "{schedule:?} {alpha} {beta}"
            );
            let meant = Interpreter::run(&kernel, &sizes, &tensors(&arguments)).unwrap();
            assert!(halves(&meant[3]) == expected, "interpreter: {alpha} {beta}");
        }
    }
}

#[test]
fn loops_carry_scalars() {
    // `v` starts as one scalar and becomes the other; `count` sums what has no dimension.
    let text = "kernel carried {
  workgroup M, 64, 0
  tile K, 16
  alpha = scalar f32
  beta = scalar f32
  a = memory [M, K] global f32
  b = memory [M] global f32
  %zero = register [M] f32 0.0
  %v, %count, %sum = iterate K (%v = alpha, %count = beta, %sum = %zero) {
    %next = add %count, alpha
    %more = add %sum, %v
    yield beta, %next, %more
  }
  %both = add %v, %count
  %out = add %sum, %both
  write %out, b
}
";
    let kernel = Kernel::parse(text, "carried.gsw").unwrap();
    let (alpha, beta) = (0.5f32, 3.0f32);
    for (k, iterations) in [(16, 1), (40, 3), (64, 4)] {
        let size = |s: Symbol| if s.name() == "M" { Some(64) } else { Some(k) };
        let count = (0..iterations).fold(beta, |count, _| count + alpha);
        let sum = (0..iterations).fold(0.0, |sum, at| sum + if at == 0 { alpha } else { beta });
        let expected = [bits(sum + (beta + count)); 64];
        let arguments = [
            Argument::Scalar(alpha.into()),
            Argument::Scalar(beta.into()),
            Argument::Tensor(Tensor::zeros(&[64, k as usize], F32).unwrap()),
            Argument::Tensor(Tensor::zeros(&[64], F32).unwrap()),
        ];
        let meant = Interpreter::run(&kernel, &size, &tensors(&arguments)).unwrap();
        assert_eq!(floats(&meant[3]), expected, "interpreter: K = {k}");
        for schedule in [Schedule::None, Schedule::Prefetch] {
            let options = Options::new(Target::GFX942).set("M", 64).set("K", k).schedule(schedule.clone());
            let ran = simulated(&compile(&kernel, options), &arguments);
            assert_eq!(floats(&ran[3]), expected, "{schedule:?} K = {k}");
        }
    }
}

#[test]
fn check_mode_and_time_mode_take_scalars() {
    let kernel = scaled_product();
    let sizes = |_: Symbol| Some(64);
    let options = Options::new(Target::GFX942).set("M", 64).set("N", 64).set("K", 64);
    let executable = compile(&kernel, options);
    let device = Device::simulator(Target::GFX942);
    let given = [("beta".to_owned(), ScalarValue::from(2.0f32))];
    let inputs = check::Inputs { seed: 5, scalars: &given };
    let (report, comparison) = check::with_findings(&kernel, &executable, &device, &sizes, inputs).unwrap();
    assert!(report.is_clean() && comparison.ok, "{report} {comparison:?}");
    let wrong = [("gamma".to_owned(), ScalarValue::from(2.0f32))];
    let inputs = check::Inputs { seed: 5, scalars: &wrong };
    let fault = check::against_interpreter(&kernel, &executable, &device, &sizes, inputs).unwrap_err();
    assert_eq!(fault.message, "`scaled` has no scalar argument `gamma`");
    let wrong = [("beta".to_owned(), ScalarValue::from(2))];
    let inputs = check::Inputs { seed: 5, scalars: &wrong };
    let fault = check::against_interpreter(&kernel, &executable, &device, &sizes, inputs).unwrap_err();
    assert_eq!(fault.message, "the scalar `beta` is f32, and its value is i32");
}

fn axpy() -> Kernel {
    let [m] = symbols(["M"]);
    let kernel = Kernel::trace("axpy", |w| {
        w.distribute([workgroup(m, 64, 0)]);
        let x = w.memory("x", [m], Global, F32);
        let alpha = w.scalar("alpha", F32);
        let y = w.memory("y", [m], Global, F32);
        let shift = w.scalar("shift", I32);
        w.write(alpha * w.read(x) + w.read(y) + shift.cast(F32), y);
    });
    kernel.unwrap()
}

#[test]
fn launches_name_the_scalar_that_is_wrong() {
    let executable = compile(&axpy(), Options::new(Target::GFX942).set("M", 64));
    let device = Device::simulator(Target::GFX942);
    let [x, y] = [1.0f32, 2.0].map(|value| device.upload(&[value; 64]).unwrap());
    let launch = || device.launch(&executable).buffer(&x).buffer(&y);
    let message = |launch: groundswell::device::Launch| launch.run().unwrap_err().to_string();
    let fault = message(launch());
    assert!(fault.contains("no value for the scalar `alpha`"), "{fault}");
    let fault = message(launch().scalar(1.5f32));
    assert!(fault.contains("no value for the scalar `shift`"), "{fault}");
    let fault = message(launch().scalar(2).scalar(1.5f32));
    assert!(fault.contains("the scalar `alpha` is f32, and its value is i32"), "{fault}");
    assert!(fault.contains("1.0f32"), "{fault}");
    let fault = message(launch().scalar(1.5f32).scalar(2).scalar(3));
    assert!(fault.contains("`axpy` got 3 scalars, too many"), "{fault}");
    let fault = message(launch().scalar(1.5f32).scalar(2).set("alpha", 3));
    assert!(fault.contains("`axpy` has no dynamic symbol alpha"), "{fault}");
    launch().scalar(1.5f32).scalar(-2).run().unwrap();
    assert_eq!(y.download::<f32>().unwrap(), [1.5; 64]);
}

#[test]
fn arguments_lie_in_the_segment_as_they_are_declared() {
    let executable = compile(&axpy(), Options::new(Target::GFX942).dynamic("M"));
    let file = ObjectFile::parse(executable.object()).unwrap();
    let metadata = file.kernels[0].metadata.as_ref().unwrap();
    let found: Vec<_> =
        metadata.arguments.iter().map(|a| (a.name.as_str(), a.kind.clone(), a.offset, a.size)).collect();
    let (buffer, value) = (ArgumentKind::GlobalBuffer, ArgumentKind::ByValue);
    assert_eq!(
        found,
        [
            ("x", buffer.clone(), 0, 8),
            ("alpha", value.clone(), 8, 4),
            ("y", buffer, 16, 8),
            ("shift", value.clone(), 24, 4),
            ("M", value, 28, 4),
        ]
    );
    assert_eq!((metadata.kernarg_segment_size, metadata.kernarg_segment_align), (32, 8));
    let scalars = executable.parameters().iter().filter_map(|parameter| match parameter {
        Parameter::Scalar { name, dtype, offset } => Some((&**name, *dtype, *offset)),
        _ => None,
    });
    assert_eq!(scalars.collect::<Vec<_>>(), [("alpha", F32, 8), ("shift", I32, 24)]);
}

/// Kinds, offsets and sizes of arguments, and the segment, as `llvm-readobj --notes` prints them. Clang
/// writes no names.
fn notes(text: &str) -> Vec<String> {
    const KEYS: [&str; 5] =
        [".offset:", ".size:", ".value_kind:", ".kernarg_segment_size:", ".kernarg_segment_align:"];
    let lines = text.lines().map(|line| line.trim().trim_start_matches("- "));
    let lines = lines.filter(|line| KEYS.iter().any(|key| line.starts_with(key)));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn clang_lays_out_the_same_arguments_in_the_same_way() {
    let Some(space) = Workspace::with_tools(&["clang-19", "llvm-readobj-19"]) else { return };
    let source = "__attribute__((amdgpu_kernel)) void axpy(
        __attribute__((address_space(1))) float *x, float alpha, __attribute__((address_space(1))) float *y,
        int shift) { y[0] = alpha * x[0] + y[0] + (float)shift; }";
    space.write("axpy.c", source);
    let flags = "-x c --target=amdgcn-amd-amdhsa -mcpu=gfx942 -O2 -nogpulib -mcode-object-version=5";
    space.run(&format!("clang-19 {flags} axpy.c -o theirs.co"));
    let executable = compile(&axpy(), Options::new(Target::GFX942).set("M", 64));
    space.write("ours.co", executable.object());
    let [ours, theirs] =
        ["ours.co", "theirs.co"].map(|file| notes(&space.run(&format!("llvm-readobj-19 --notes {file}"))));
    assert!(ours.iter().filter(|line| line.contains("by_value")).count() == 2, "{ours:?}");
    assert_eq!(ours, theirs);
}

#[test]
fn preloaded_scalars_are_in_registers() {
    let kernel = axpy();
    let options = Options::new(Target::GFX942).set("M", 64);
    let executable = compile(&kernel, options.clone().kernarg_preload(KernargPreload::Fitting));
    assert_eq!(executable.report().kernarg_preload_dwords, 7);
    let plain = compile(&kernel, options);
    let arguments = [
        Argument::Tensor(Tensor::random(&[64], F32, 1).unwrap()),
        Argument::Scalar((-0.25f32).into()),
        Argument::Tensor(Tensor::random(&[64], F32, 2).unwrap()),
        Argument::Scalar((-7).into()),
    ];
    assert!(simulated(&executable, &arguments) == simulated(&plain, &arguments));
}

#[test]
fn text_reads_back_and_tells_kernels_apart() {
    let kernel = axpy();
    let text = kernel.to_string();
    assert!(text.contains("  alpha = scalar f32\n") && text.contains("mul alpha, %"), "{text}");
    let again = Kernel::parse(&text, "axpy.gsw").unwrap();
    assert_eq!(again.to_string(), text);
    assert_eq!(again.identity(), kernel.identity());
    let other = Kernel::parse(&text.replace("alpha", "beta"), "axpy.gsw").unwrap();
    assert_ne!(other.identity(), kernel.identity(), "the name stands in the object");
}

#[test]
fn the_interpreter_says_what_it_wants_for_a_scalar() {
    let kernel = axpy();
    let [x, y] = [1, 2].map(|seed| Tensor::random(&[64], F32, seed).unwrap());
    let run = |inputs: &[Tensor]| Interpreter::run(&kernel, &|_| Some(64), inputs).unwrap_err().message;
    assert_eq!(
        run(&[x.clone(), y.clone()]),
        "kernel `axpy` has 2 memories and 2 scalars, but 2 tensors are given"
    );
    let fault = run(&[x.clone(), Tensor::scalar(1), y.clone(), Tensor::scalar(1)]);
    assert_eq!(fault, "scalar `alpha` is f32[], but its tensor is i32[]");
    let after =
        Interpreter::run(&kernel, &|_| Some(64), &[x, Tensor::scalar(1f32), y, Tensor::scalar(1)]).unwrap();
    assert_eq!(after[1], Tensor::scalar(1f32), "scalars stay what they are");
}

/// A literal and a scalar argument do not fit into one vector instruction.
#[test]
fn literals_meet_scalars_on_either_side() {
    let m = Symbol::new("M");
    for word in ["add", "sub", "mul", "min", "max", "div"] {
        for (dtype, literal) in [("f32", "3.25"), ("i32", "1000")] {
            for operands in [format!("s, {literal}"), format!("{literal}, s")] {
                let text = format!(
                    "kernel literal {{\n  workgroup M, 64, 0\n  s = scalar {dtype}\n  \
                     a = memory [M] global {dtype}\n  b = memory [M] global {dtype}\n  %x = read a\n  \
                     %y = {word} {operands}\n  %z = compare lt {operands}\n  \
                     %v = select %z, %x, %y\n  %w = max %x, %v\n  write %w, b\n}}\n"
                );
                let kernel = Kernel::parse(&text, "literal.gsw").unwrap_or_else(|f| panic!("{text}\n{f:?}"));
                let executable = compile(&kernel, Options::new(Target::GFX942).set(m, SIZE));
                let data: Vec<i32> = (0..SIZE as i32).map(|x| x * 37 - 1800).collect();
                let floats: Vec<f32> = data.iter().map(|&x| x as f32 / 8.0).collect();
                let (scalar, input, output) = match dtype {
                    "f32" => ((-1.75f32).into(), Tensor::from_slice(&[SIZE], &floats), F32),
                    _ => ((-77i32).into(), Tensor::from_slice(&[SIZE], &data), I32),
                };
                let arguments = [
                    Argument::Scalar(scalar),
                    Argument::Tensor(input.unwrap()),
                    Argument::Tensor(Tensor::zeros(&[SIZE], output).unwrap()),
                ];
                let ran = simulated(&executable, &arguments);
                let meant = Interpreter::run(&kernel, &|_| Some(SIZE as i64), &tensors(&arguments)).unwrap();
                assert_eq!(ran[2].to_f64(), meant[2].to_f64(), "{text}");
            }
        }
    }
}
