//! The smallest kernel: trace it, compile it, run it, look at the result.

use groundswell::prelude::*;

fn main() -> Result<(), Diagnostic> {
    let [m, n] = symbols(["M", "N"]);
    let copy = Kernel::trace("copy", |w| {
        // A workgroup of four waves copies 16 x 256 elements, each wave 4 x 256 of them.
        w.distribute([workgroup(m, 16, 0), workgroup(n, 256, 1), wave(m, 4)]);
        let a = w.memory("a", [m, n], Global, F32);
        let b = w.memory("b", [m, n], Global, F32);
        w.write(w.read(a), b);
    })?;
    println!("{copy}");

    // 100 x 1000: no tile divides it, so the last workgroups are masked.
    let executable = copy.compile(&Options::new(Target::GFX942).set(m, 100).set(n, 1000))?;
    print!(
        "{}",
        groundswell::compile::listing(executable.code(), executable.target().arch).unwrap_or_default()
    );

    let device = Device::open()?;
    let data: Vec<f32> = (0..100 * 1000).map(|x| x as f32).collect();
    let (a, b) = (device.upload(&data)?, device.upload(&vec![0f32; data.len()])?);
    let launch = device.launch(&executable).buffer(&a).buffer(&b).run()?;
    if b.download::<f32>()? != data {
        return Err(Diagnostic::invalid("the copy differs"));
    }
    let [x, y, _] = launch.grid;
    println!("\n{x} x {y} workgroups on the {} copied {} elements", device.name(), data.len());
    Ok(())
}
