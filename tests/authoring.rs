//! What the author's API lets one write: calls inside of calls, numbers on either side of an operator, numbers in `select`, compound
//! assignment. Each is a kernel that a newcomer would write, and its results are compared with plain loops.

use groundswell::ir::diagnostic::Kind;
use groundswell::passes::workspace::Verify;
use groundswell::prelude::*;
use groundswell::runtime::compile::compile_uncached;

const ROWS: usize = 37;
const COLUMNS: usize = 75;

/// `c = body(a)` for each element of a 37 x 75 tensor, on the simulator and by the interpreter; both must say what `expected` says.
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
    let executable = compile_uncached(&kernel, &options, Verify::AfterEachPass).unwrap();
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
    let executable = compile_uncached(&kernel, &options, Verify::AfterEachPass).unwrap();
    // LDS accesses are reported by the line of their read, which stands inside of the call of `mma`.
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
