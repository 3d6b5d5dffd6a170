//! Kernels that say their distribution by a task mapping: they are those with the constraints that it means,
//! compute what the interpreter says, and refuse mappings that no constraints say.

use groundswell::author::Mma;
use groundswell::mapping::{MmaConfig, TaskMapping, repeat, spatial};
use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};

/// A product whose result is distributed by `tiles`.
fn product(tiles: &TaskMapping) -> Result<Kernel, Diagnostic> {
    let [m, n, k] = symbols(["M", "N", "K"]);
    Kernel::trace("product", |w| {
        w.distribute_workitems([m, n], tiles);
        w.distribute([tile(k, 32)]);
        let [a, b] = [w.memory("a", [m, k], Shared, F16), w.memory("b", [n, k], Shared, F16)];
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
        w.write(sum, c);
    })
}

fn judge(kernel: &Kernel, sizes: [i64; 3]) -> Executable {
    let symbols = symbols(["M", "N", "K"]);
    let sized = symbols.into_iter().zip(sizes);
    let options =
        sized.clone().fold(Options::new(Target::GFX942), |options, (symbol, size)| options.set(symbol, size));
    let executable = verified(kernel, &options);
    let value = |symbol: Symbol| sized.clone().find(|sized| sized.0 == symbol).map(|sized| sized.1);
    assert_right(kernel, &executable, &value, 1, format!("{sizes:?}"));
    executable
}

#[test]
fn products_by_the_mapping_of_their_accumulators_are_those_by_constraints() {
    let [m, n] = symbols(["M", "N"]);
    for (mma, shape) in
        [(Mma::F32_16x16x16_F16, MatrixShape::M16x16), (Mma::F32_32x32x8_F16, MatrixShape::M32x32)]
    {
        let config = MmaConfig::new(mma).unwrap();
        let edge = i64::from(config.m());
        let tiles = spatial([2, 2]).repeat([64 / config.m(), 64 / config.n()]) * config.c_store_map();
        assert_eq!(tiles.shape().unwrap(), [128, 128]);
        let kernel = product(&tiles).unwrap();
        let said = kernel.to_string();
        // `spatial(2,2)` counts columns first, and so do waves along axis 0.
        for constraint in ["workgroup N, 128, 0", "workgroup M, 128, 1", "wave M, 64", "wave N, 64"] {
            assert!(said.contains(constraint), "{constraint} in {said}");
        }
        let by_constraints = Kernel::trace("product", |w| {
            w.distribute([workgroup(n, 128, 0), wave(n, 64), workgroup(m, 128, 1), wave(m, 64)]);
            w.mma_type(shape);
            w.distribute([tile(Symbol::new("K"), 32)]);
            let k = Symbol::new("K");
            let [a, b] = [w.memory("a", [m, k], Shared, F16), w.memory("b", [n, k], Shared, F16)];
            let c = w.memory("c", [m, n], Global, F32);
            let zero = w.register([m, n], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
            w.write(sum, c);
        });
        assert_eq!(said, by_constraints.unwrap().to_string());
        judge(&kernel, [2 * 128, 128 + edge, 64]);
        judge(&kernel, [130, 70, 40]);
    }
}

#[test]
fn waves_by_a_mapping_take_its_boxes() {
    let [m, n] = symbols(["M", "N"]);
    for mapping in
        ["spatial(1,4)*repeat(16,64)", "spatial(2,2, ranks=[1,0])*repeat(4,4)*repeat(4,64)", "repeat(8,64)"]
    {
        let kernel = Kernel::trace("double", |w| {
            w.distribute_waves([m, n], &mapping.parse().unwrap());
            let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
            w.write(w.read(a) * 2.0, b);
        })
        .unwrap();
        judge(&kernel, [70, 300, 1]);
    }
}

#[test]
fn mappings_that_no_constraints_say_are_refused() {
    let refused = |tiles: &TaskMapping| {
        let fault = product(tiles).unwrap_err();
        assert!(fault.location.as_ref().is_some_and(|at| at.file.ends_with("task_mappings.rs")), "{fault}");
        fault.message
    };
    let config = MmaConfig::new(Mma::F32_16x16x16_F16).unwrap();
    let c = config.c_store_map();
    assert_eq!(
        refused(&(repeat([4, 4]).spatial([2, 2]) * c)),
        "repeat(4,4)*spatial(2,2)*spatial(4,16)*repeat(4,1) cannot distribute a kernel: the elements of a wave \
         are several pieces along dimension 1"
    );
    assert!(refused(&spatial([2, 2]).repeat([4, 4])).contains("its 4 workers are no whole number of waves"));
    assert!(refused(&spatial([8, 8]).repeat([2, 2])).contains("no matrix instruction gives its lanes"));
    assert!(refused(&spatial([3, 64])).contains("no matrix instruction"));
    assert!(refused(&spatial([6, 64])).contains("no matrix instruction"));
    assert!(refused(&(spatial([3, 1]).spatial([64, 3]))).contains("no digit of its workers ends at the 64"));
    assert!(refused(&(spatial([2, 2]) * c).projection([0])).contains("several workers have the same tasks"));
    assert!(refused(&(repeat([0, 1]) * c)).contains("it has no tasks"));
    assert!(refused(&spatial([64])).contains("it has 1 dimensions, and 2 are distributed"));
    assert!(refused(&spatial([2, 2]).ranks([5])).contains("are no order of its 2 dimensions"));
}
