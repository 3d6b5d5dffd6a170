//! A ready GEMM with an epilogue of our own: C = gelu(A Bᵀ * scale + bias), in bf16, fused into the kernel.

use groundswell::check::against_interpreter;
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;

/// x * sigmoid(1.702 x), the usual approximation of GELU.
fn gelu(x: Value) -> Value {
    let e = (x * (-1.702 * std::f64::consts::LOG2_E)).exp2();
    x * (1.0 + e).reciprocal()
}

fn main() -> Result<(), Diagnostic> {
    let gemm = Gemm::new(100, 72, 96)
        .inputs(Bf16)
        .tile(64, 64, 32)
        .waves(Waves::new(2, 2))
        .scale(0.125)
        .bias()
        .epilogue(|_, x| gelu(x))
        .output(Bf16);
    let kernel = gemm.kernel()?;
    println!("{kernel}");

    let options = gemm.options(Target::GFX942);
    let executable = kernel.compile(&options)?;
    println!("{}", executable.report());
    let value = |symbol: Symbol| options.value(symbol);
    let checked = against_interpreter(&kernel, &executable, &Device::open()?, &value, 7)?;
    let found = checked.comparison;
    println!("largest error {:.3e}, {:.3e} of its row", found.max_abs_err, found.max_rel_err);
    if found.ok { Ok(()) } else { Err(Diagnostic::invalid("the result is wrong")) }
}
