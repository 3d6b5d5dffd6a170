//! Small shapes of every ready kernel, on the simulator against the interpreter.

use super::*;
use crate::prelude::*;

type Bindings<'a> = &'a [(&'a str, i64)];

const TILES: [(&str, i64); 3] = [("BLOCK_M", 32), ("BLOCK_N", 32), ("BLOCK_K", 32)];

/// Compiles for the bindings, runs and compares. Names in `dynamic` are left open until launch.
fn hold(kernel: &Kernel, bindings: Bindings, dynamic: &[&str]) {
    let mut options = Options::new(Target::GFX942);
    for &(name, value) in bindings {
        let symbol = Symbol::new(name);
        options = if dynamic.contains(&name) { options.dynamic(symbol) } else { options.set(symbol, value) };
    }
    let value = |s: Symbol| bindings.iter().find(|b| b.0 == s.name()).map(|b| b.1);
    let device = Device::simulator(Target::GFX942);
    let checked = kernel
        .compile(&options)
        .and_then(|executable| check::against_interpreter(kernel, &executable, &device, &value, 1))
        .unwrap_or_else(|fault| panic!("{bindings:?} dynamic {dynamic:?}: {fault}\n{kernel}"));
    let found = checked.comparison;
    assert!(found.ok, "{bindings:?} dynamic {dynamic:?}: {found:?}\n{kernel}");
}

fn gemm_holds(gemm: &Gemm) {
    let kernel = gemm.kernel().expect("the options fit");
    for [m, n, k] in [[64, 64, 64], [33, 50, 40], [1, 1, 1], [17, 70, 96]] {
        let mut bindings = vec![("B", 2), ("M", m), ("N", n), ("K", k)];
        bindings.extend(TILES);
        hold(&kernel, &bindings, &[]);
    }
}

#[test]
fn copy_holds_for_every_dtype_and_for_shapes_that_no_tile_divides() {
    for dtype in [F32, F16, Bf16, I32, I8] {
        let kernel = copy(dtype, Waves::new(2, 1)).expect("the options fit");
        for (m, n) in [(16, 128), (1, 1), (5, 67), (33, 129)] {
            let bindings = [("M", m), ("N", n), ("BLOCK_M", 4), ("BLOCK_N", 64)];
            hold(&kernel, &bindings, &[]);
            hold(&kernel, &bindings, &["M", "N"]);
        }
    }
}

#[test]
fn gemm_holds_for_every_input_dtype_and_matrix_shape() {
    for dtype in [F16, Bf16, F32, I8] {
        gemm_holds(&Gemm::any_shape().inputs(dtype));
        gemm_holds(&Gemm::any_shape().inputs(dtype).matrix(MatrixShape::M32x32).waves(Waves::new(1, 1)));
    }
    gemm_holds(&Gemm::any_shape().inputs(F64));
}

#[test]
fn gemm_holds_with_b_in_rows() {
    for dtype in [F16, Bf16, I8] {
        gemm_holds(&Gemm::any_shape().inputs(dtype).form(Form::AB));
    }
}

#[test]
fn gemm_holds_for_dynamic_shapes() {
    let kernel = Gemm::any_shape().kernel().expect("the options fit");
    for [m, n, k] in [[64, 64, 64], [33, 50, 40], [1, 1, 1]] {
        let mut bindings = vec![("M", m), ("N", n), ("K", k)];
        bindings.extend(TILES);
        hold(&kernel, &bindings, &["M"]);
        hold(&kernel, &bindings, &["M", "N", "K"]);
    }
}

#[test]
fn epilogues_hold() {
    gemm_holds(&Gemm::any_shape().scale(0.125));
    gemm_holds(&Gemm::any_shape().bias());
    gemm_holds(&Gemm::any_shape().relu());
    gemm_holds(&Gemm::any_shape().residual());
    gemm_holds(&Gemm::any_shape().scale(0.5).bias().relu().residual());
    gemm_holds(&Gemm::any_shape().inputs(I8).bias().relu());
    gemm_holds(&Gemm::any_shape().inputs(F64).scale(0.5).bias().relu().residual());
    gemm_holds(&Gemm::any_shape().inputs(F64).row_scales().channel_scales());
    gemm_holds(&Gemm::any_shape().inputs(I8).epilogue(|_, sum| sum.cast(F32) * 0.25).output(F32));
    gemm_holds(&Gemm::any_shape().inputs(I8).epilogue(|_, sum| sum.cast(F32) * 0.25).output(I8));
}

#[test]
fn narrower_outputs_hold() {
    gemm_holds(&Gemm::any_shape().output(F16));
    gemm_holds(&Gemm::any_shape().inputs(Bf16).relu().output(Bf16));
}

#[test]
fn batched_gemm_holds() {
    gemm_holds(&Gemm::any_shape().batched());
    gemm_holds(&Gemm::any_shape().batched().form(Form::AB).bias().residual());
}

#[test]
fn the_loop_and_its_operations_are_tagged() {
    let text = Gemm::any_shape().kernel().expect("the options fit").to_string();
    for tag in ["@k_loop", "@read_a", "@read_b", "@mma"] {
        assert_eq!(text.matches(tag).count(), 1, "{tag} in\n{text}");
    }
}

#[test]
fn what_cannot_be_made_is_said() {
    let faults = [
        Gemm::any_shape().inputs(I32).kernel().err().map(|d| d.message),
        chained_gemm(F64, Waves::new(1, 1)).err().map(|d| d.message),
        block_scaled_gemm(F64, Waves::new(1, 1)).err().map(|d| d.message),
        Gemm::any_shape().waves(Waves::new(0, 1)).kernel().err().map(|d| d.message),
        copy(F32, Waves::new(1, 0)).err().map(|d| d.message),
    ];
    assert_eq!(
        faults.map(Option::unwrap_or_default),
        [
            "no matrix instruction multiplies i32",
            "no chain of matrix instructions multiplies f64",
            "no matrix instruction multiplies f64 into f32",
            "0 x 1 waves are no workgroup",
            "1 x 0 waves are no workgroup"
        ]
    );
}

#[test]
fn every_row_of_the_table_is_made_with_its_defaults_and_compiles() {
    for entry in list() {
        let kernel = entry.kernel(&Choices::default()).expect("the defaults fit");
        let options = entry
            .symbols
            .iter()
            .fold(Options::new(Target::GFX942), |options, s| options.set(Symbol::new(s.name), s.value));
        let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{}: {fault}", entry.name));
        assert!(!executable.object().is_empty());
        assert_eq!(find(entry.name).map(|e| e.name), Some(entry.name));
    }
}
