//! A matrix product written out, compiled for one shape, run, and compared with the reference interpreter.

use std::time::Instant;

use groundswell::check::compare;
use groundswell::prelude::*;

fn main() -> Result<(), Diagnostic> {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let [bm, bn, bk] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    let gemm = Kernel::trace("gemm", |w| {
        w.distribute([
            workgroup(m, bm, 0),
            workgroup(n, bn, 1),
            tile(k, bk),
            wave(m, bm / 2),
            wave(n, bn / 2),
        ]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let a = w.memory("a", [m, k], Shared, F16);
        let b = w.memory("b", [n, k], Shared, F16);
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let a = w.read(a).tag("read_a");
            let b = w.read(b).tag("read_b");
            [w.mma(a, b, sum).tag("mma")]
        });
        w.write(sum, c);
    })?;

    let sizes = [(m, 256), (n, 384), (k, 128), (bm, 128), (bn, 128), (bk, 32)];
    let options = sizes.iter().fold(Options::new(Target::GFX942), |options, &(s, v)| options.set(s, v));
    // Bank conflicts and spills are errors here, not surprises.
    let options = options.deny(Deny::BankConflicts).deny(Deny::Spills);

    gemm.compile(&options)?;
    let start = Instant::now();
    let executable = gemm.compile(&options)?;
    println!("compiled again, from the cache, in {:?}", start.elapsed());
    println!("{}", executable.report());

    let a = Tensor::random(&[256, 128], F16, 1)?;
    let b = Tensor::random(&[384, 128], F16, 2)?;
    let c = Tensor::zeros(&[256, 384], F32)?;
    let device = Device::open()?;
    let buffers = [device.upload_tensor(&a)?, device.upload_tensor(&b)?, device.upload_tensor(&c)?];
    let start = Instant::now();
    device.launch(&executable).buffer(&buffers[0]).buffer(&buffers[1]).buffer(&buffers[2]).run()?;
    println!("ran on the {} in {:?}", device.name(), start.elapsed());

    let result = Tensor::from_bytes(c.shape(), F32, &buffers[2].read_bytes()?)?;
    let value = |symbol: Symbol| sizes.iter().find(|s| s.0 == symbol).map(|s| s.1);
    let expected = Interpreter::run(&gemm, &value, &[a, b, c])?;
    let found = compare(&result, &expected[2])?;
    println!("largest relative error against the interpreter: {:e}", found.max_rel_err);
    if found.ok { Ok(()) } else { Err(Diagnostic::invalid("the product is wrong")) }
}
