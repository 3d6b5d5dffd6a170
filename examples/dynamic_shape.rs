//! One executable for all shapes: M, N and K are left open and given at each launch.

use groundswell::check::against_interpreter;
use groundswell::kernels::Gemm;
use groundswell::prelude::*;

fn main() -> Result<(), Diagnostic> {
    let gemm = Gemm::any_shape().kernel()?;
    let [m, n, k] = symbols(["M", "N", "K"]);
    let [bm, bn, bk] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    let options = Options::new(Target::GFX942).dynamic(m).dynamic(n).dynamic(k);
    let options = options.set(bm, 64).set(bn, 64).set(bk, 32);
    let executable = gemm.compile(&options)?;
    println!("{} bytes of kernel arguments", executable.kernarg_bytes());

    let device = Device::open()?;
    for shape in [[64, 64, 64], [1, 1, 1], [100, 30, 50], [129, 257, 200]] {
        let value = |symbol: Symbol| {
            let dims = [m, n, k].into_iter().zip(shape);
            dims.chain([(bm, 64), (bn, 64), (bk, 32)]).find(|s| s.0 == symbol).map(|s| s.1)
        };
        let checked = against_interpreter(&gemm, &executable, &device, &value, 3)?;
        let [x, y, _] = checked.launch.grid;
        println!(
            "{shape:?}: {x} x {y} workgroups, largest relative error {:e}",
            checked.comparison.max_rel_err
        );
        if !checked.comparison.ok {
            return Err(Diagnostic::invalid(format!("the product is wrong for {shape:?}")));
        }
    }

    // What does not fit is refused before anything runs.
    let value = |symbol: Symbol| if symbol == m { None } else { Some(64) };
    match executable.grid(&value) {
        Err(fault) => println!("\nwithout M:\n{fault}"),
        Ok(grid) => return Err(Diagnostic::invalid(format!("a grid without M: {grid:?}"))),
    }
    Ok(())
}
