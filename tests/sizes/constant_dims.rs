//! Dimensions that are numbers: what kernels mean, what code they become, how they are written, and what is
//! refused.

use groundswell::check::with_findings;
use groundswell::compile::PIPELINE;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::compile::{Parameter, Size};
use groundswell::internals::with_workspace;
use groundswell::prelude::*;
use groundswell::text::Detail;
use groundswell_testing::judged::verified;

/// C = A Bᵀ whose third dimension is `k`.
fn product(k: impl Into<Symbol>) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    let k = k.into();
    let kernel = Kernel::trace("product", |w| {
        w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), tile(k, 16), wave(m, 16), wave(n, 16)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let [a, b] = [("a", m), ("b", n)].map(|(name, rows)| w.memory(name, [rows, k], Shared, F16));
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
        w.write(sum, c);
    });
    kernel.unwrap()
}

#[test]
fn a_number_is_a_symbol_with_that_value() {
    let options = Options::new(Target::GFX942).set("M", 70).dynamic("N");
    for k in [16u32, 40, 64] {
        for schedule in [Schedule::None, Schedule::Prefetch] {
            let options = options.clone().schedule(schedule.clone());
            let number = verified(&product(k), &options);
            let symbol = verified(&product("K"), &options.clone().set("K", k));
            assert!(number.code() == symbol.code(), "K = {k}, {schedule:?}");
            let Parameter::Buffer { shape, .. } = &number.parameters()[0] else { panic!("a memory") };
            assert_eq!(shape[..], [Size::Static(70), Size::Static(k)]);
        }
    }
}

#[test]
fn products_over_a_number_are_what_plain_rust_computes() {
    let (m, n) = (37usize, 50usize);
    let size = |s: Symbol| match s.name() {
        "M" => Some(m as i64),
        "N" => Some(n as i64),
        // A number has its own size.
        _ => None,
    };
    for k in [16usize, 40, 64] {
        let kernel = product(k as u32);
        let [a, b] = [(m, 1), (n, 2)].map(|(rows, seed)| Tensor::random(&[rows, k], F16, seed).unwrap());
        let c = Tensor::zeros(&[m, n], F32).unwrap();
        let [x, y] =
            [&a, &b].map(|t| t.as_slice::<f16>().unwrap().iter().map(|v| v.to_f32()).collect::<Vec<_>>());
        // Sums of multiples of 1/256 are exact.
        let element = |at: usize| (0..k).map(|i| x[at / n * k + i] * y[at % n * k + i]).sum();
        let expected: Vec<f32> = (0..m * n).map(element).collect();
        let meant = Interpreter::run(&kernel, &size, &[a.clone(), b.clone(), c.clone()]).unwrap();
        assert!(meant[2].as_slice::<f32>() == Some(&expected[..]), "interpreter: K = {k}");
        let executable = verified(&kernel, &Options::new(Target::GFX942).set("M", m).set("N", n));
        let device = Device::open().unwrap();
        let [a, b, c] = [a, b, c].map(|tensor| device.upload_tensor(&tensor).unwrap());
        device.launch(&executable).buffer(&a).buffer(&b).buffer(&c).run().unwrap();
        assert!(c.download::<f32>().unwrap() == expected, "K = {k}");
    }
}

#[test]
fn constraints_name_a_number_by_itself() {
    let m = Symbol::new("M");
    let row = Kernel::trace("rows", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(48, 32, 1), wave(48, 16)]);
        let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, 48.into()], Global, F32));
        let scale = w.memory("scale", [48.into()], Global, F32);
        w.write(w.read(a) * w.read(scale), b);
    });
    let row = row.unwrap();
    assert_eq!(row.symbols(), [m]);
    let executable = verified(&row, &Options::new(Target::GFX942).dynamic(m));
    let device = Device::open().unwrap();
    for size in [1, 20, 64] {
        assert_eq!(executable.grid(&|_| Some(size)).unwrap(), [(size as u32).div_ceil(16), 2, 1]);
        let (report, comparison) = with_findings(&row, &executable, &device, &|_| Some(size), 3).unwrap();
        assert!(report.is_clean() && comparison.ok, "{size}: {report}");
    }
    let again = Kernel::parse(&row.to_string(), "rows.gsw").unwrap();
    assert_eq!((again.to_string(), again.identity()), (row.to_string(), row.identity()));
    let spread = Kernel::trace("spread", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(48, 48, 1)]);
        let [a, b] = [("a", 48.into()), ("b", m)].map(|(name, dim)| w.memory(name, [dim], Global, F32));
        w.write(w.read(b) + 1.0, b);
        w.write(w.read(a), a);
    });
    let fault = spread.expect_err("`b` is updated by all workgroups along 48").to_string();
    assert!(fault.contains("`b` is updated by every workgroup along 48"), "{fault}");
}

#[test]
fn numbers_that_are_no_dimensions_are_refused() {
    let m = Symbol::new("M");
    let shape = |shape: [Symbol; 2]| {
        let kernel = Kernel::trace("shape", |w| {
            w.memory("a", shape, Global, F32);
        });
        kernel.expect_err("the shape is wrong").to_string()
    };
    let fault = shape([64.into(), 64.into()]);
    assert!(
        fault.contains("dimension 64 occurs twice") && fault.contains("use a symbol for the other"),
        "{fault}"
    );
    assert!(shape([m, 0.into()]).contains("0 is not a size"));
    assert!(shape([m, 3_000_000_000u32.into()]).contains("3000000000 is not a size"));
    let kernel = product(64);
    let fault = |options: Options| match compile_uncached(&kernel, &options, Verify::Off) {
        Ok(_) => panic!("a number was set"),
        Err(fault) => fault.message,
    };
    let options = Options::new(Target::GFX942).set("M", 64).set("N", 64);
    assert_eq!(fault(options.clone().set("64", 32)), "64 is a number, and not a symbol");
    assert_eq!(fault(options.clone().dynamic("64")), "64 is a number, and not a symbol");
}

/// The text of every stage names such a dimension by its number, and goes on to the same code.
#[test]
fn stages_of_kernels_with_numbers_read_back() {
    let kernel = product(40);
    let options = Options::new(Target::GFX942).set("M", 70).dynamic("N").schedule(Schedule::Prefetch);
    let whole = verified(&kernel, &options);
    for pass in PIPELINE {
        let text = with_workspace(|workspace| {
            workspace.load(&kernel, &options);
            workspace.run(Some(pass.name), Verify::Off, &mut Vec::new())?;
            Ok::<String, Diagnostic>(workspace.text(Detail::Stage))
        });
        let text = text.unwrap();
        let again = Kernel::parse(&text, "stage.gsw");
        let again = again.unwrap_or_else(|faults| panic!("after {}:\n{text}\n{faults:?}", pass.name));
        assert_eq!(again.text(Detail::Stage), text, "after {}", pass.name);
        assert!(verified(&again, &options).code() == whole.code(), "after {}", pass.name);
    }
}
