//! Values that operations need spread over the lanes in different ways: what compiles equals the interpreter,
//! after every pass and on the simulator, with no finding.

mod common;

use common::meaning;
use groundswell::check::with_findings;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::prelude::*;

/// Compiles a kernel for some sizes, and compares it with the interpreter after every pass and when it runs.
fn judge(kernel: &Kernel, sizes: &[(Symbol, i64)]) -> Executable {
    let value = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol).map(|size| size.1);
    let options =
        sizes.iter().fold(Options::new(Target::GFX942), |options, &(symbol, size)| options.set(symbol, size));
    let name = format!("{} {sizes:?}", kernel.name());
    let executable =
        compile_uncached(kernel, &options, Verify::AfterEachPass).unwrap_or_else(|e| panic!("{name}: {e}"));
    let device = Device::simulator(Target::GFX942);
    for seed in 0..2 {
        let (report, comparison) = with_findings(kernel, &executable, &device, &value, seed)
            .unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert!(report.findings.is_empty(), "{name}: {report}");
        assert!(comparison.ok, "{name}: {comparison:?}");
    }
    meaning::compare(kernel, &options, &value).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    executable
}

/// Instructions of an executable whose name begins with `prefix`.
fn count(executable: &Executable, prefix: &str) -> usize {
    let listing = executable.assembly().unwrap();
    listing.lines().filter(|line| line.trim_start().starts_with(prefix)).count()
}

#[test]
fn transposes_load_and_store_wide() {
    let [m, n] = symbols(["M", "N"]);
    for dtype in [F32, F16, I8] {
        let kernel = Kernel::trace("transpose", |w| {
            w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1), wave(m, 16)]);
            let a = w.memory("a", [m, n], Global, dtype);
            let b = w.memory("b", [n, m], Global, dtype);
            w.write(w.read(a), b);
        })
        .unwrap();
        for sizes in [[64, 64], [128, 192], [65, 66], [1, 100], [100, 1], [77, 130]] {
            let executable = judge(&kernel, &[(m, sizes[0]), (n, sizes[1])]);
            if dtype == F16 && sizes == [128, 192] {
                assert_eq!(count(&executable, "buffer_load_dwordx4"), 2);
                assert_eq!(count(&executable, "buffer_store_dwordx4"), 2);
            }
        }
    }
}

#[test]
fn products_of_products() {
    let [m, k, d, n] = symbols(["M", "K", "D", "N"]);
    let chained = Kernel::trace("chained", |w| {
        w.distribute([workgroup(m, 32, 0), tile(k, 16)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let q = w.memory("q", [m, d], Global, F16);
        let keys = w.memory("k", [k, d], Global, F16);
        let v = w.memory("v", [n, k], Global, F16);
        let o = w.memory("o", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [out] = w.iterate(k, [zero], |w, [sum]| {
            let scores = w.mma(w.read(q), w.read(keys), w.register([m, k], F32, 0.0));
            [w.mma(scores.cast(F16), w.read(v), sum)]
        });
        w.write(out, o);
    })
    .unwrap();
    for sizes in [[32, 16, 16, 16], [64, 48, 32, 32], [60, 70, 32, 16], [1, 1, 16, 16]] {
        judge(&chained, &[(m, sizes[0]), (k, sizes[1]), (d, sizes[2]), (n, sizes[3])]);
    }
}

#[test]
fn two_matrix_instructions_on_one_value() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    for shared in [Shared, Global] {
        let kernel = Kernel::trace("mixed", |w| {
            w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), tile(k, 16)]);
            let a = w.memory("a", [m, k], shared, F16);
            let b = w.memory("b", [n, k], shared, F16);
            let c = w.memory("c", [m, n], Global, F32);
            let zero = w.register([m, n], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| {
                let (a, b) = (w.read(a), w.read(b));
                let half = w.mma_with(Mma::F32_16x16x16_F16, a, b, sum);
                [w.mma_with(Mma::F32_32x32x8_F16, a, b, half)]
            });
            w.write(sum, c);
        })
        .unwrap();
        for sizes in [[32, 32, 32], [64, 32, 48], [33, 70, 40]] {
            judge(&kernel, &[(m, sizes[0]), (n, sizes[1]), (k, sizes[2])]);
        }
    }
}

#[test]
fn rows_of_a_product_are_folded_and_divide_it() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let kernel = Kernel::trace("normalised", |w| {
        w.distribute([workgroup(m, 32, 0), tile(k, 16), wave(m, 16)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let a = w.memory("a", [m, k], Shared, F16);
        let b = w.memory("b", [n, k], Shared, F16);
        let c = w.memory("c", [m, n], Global, F32);
        let rows = w.memory("rows", [m], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
        let most = sum.max(n);
        w.write(most, rows);
        w.write((sum - most).exp2(), c);
    })
    .unwrap();
    for sizes in [[32, 32, 16], [64, 16, 48], [40, 20, 33]] {
        judge(&kernel, &[(m, sizes[0]), (n, sizes[1]), (k, sizes[2])]);
    }
}

#[test]
fn carried_values_and_their_successors_in_two_layouts() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    // The product is carried beside a value that a store wants in another layout.
    let kernel = Kernel::trace("carried", |w| {
        w.distribute([workgroup(m, 32, 0), workgroup(n, 64, 1), tile(k, 16)]);
        let a = w.memory("a", [m, k], Global, F16);
        let b = w.memory("b", [n, k], Global, F16);
        let x = w.memory("x", [n, m], Global, F16);
        let c = w.memory("c", [n, m], Global, F16);
        let zero = w.register([m, n], F32, 0.0);
        let [sum, last] = w.iterate(k, [zero, zero], |w, [sum, before]| {
            let next = w.mma_with(Mma::F32_32x32x8_F16, w.read(a), w.read(b), sum);
            [next, sum.maximum(before)]
        });
        let x = w.read(x).cast(F32);
        w.write((sum - last + x).cast(F16), c);
    })
    .unwrap();
    for sizes in [[32, 64, 32], [64, 64, 48], [33, 70, 40]] {
        judge(&kernel, &[(m, sizes[0]), (n, sizes[1]), (k, sizes[2])]);
    }
}
