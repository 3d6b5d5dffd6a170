//! A JIT for the shapes that arrive: each new shape is compiled in about a millisecond, an old one is found
//! in memory in about a microsecond, and a directory keeps all of them for the next process.

use std::time::Instant;

use groundswell::cache::{self, Cache};
use groundswell::kernels::Gemm;
use groundswell::prelude::*;

fn main() -> Result<(), Diagnostic> {
    let directory = std::env::temp_dir().join(format!("groundswell-jit-{}", std::process::id()));
    let on_disk = Cache::at(&directory)?;
    cache::set_directory(Some(on_disk.clone()));
    let device = Device::open()?;
    // One place in the source: objects hold lines, so the same kernel from another place is another entry.
    let compiled = |[m, n, k]: [usize; 3]| {
        let gemm = Gemm::new(m, n, k);
        gemm.kernel()?.compile(&gemm.options(device.target()))
    };
    for (at, [m, n, k]) in
        [[64, 128, 96], [33, 128, 96], [64, 128, 96], [1, 200, 64], [33, 128, 96]].into_iter().enumerate()
    {
        let begin = Instant::now();
        let executable = compiled([m, n, k])?;
        let time = begin.elapsed();
        let [a, b] = [m * k, n * k].map(|count| device.upload(&vec![f16::ONE; count]));
        let (a, b, c) = (a?, b?, device.upload(&vec![0f32; m * n])?);
        device.launch(&executable).buffer(&a).buffer(&b).buffer(&c).run()?;
        assert!(c.download::<f32>()?.iter().all(|&sum| sum == k as f32));
        println!("request {at}, {m}x{n}x{k}: executable after {:.0} us", time.as_secs_f64() * 1e6);
    }
    // What the next process has: the memory is empty, the directory is not.
    cache::clear();
    compiled([33, 128, 96])?;
    println!("{} compilations, {} taken from the directory", on_disk.counts().misses, on_disk.counts().hits);
    assert_eq!((on_disk.counts().misses, on_disk.counts().hits), (3, 1));
    std::fs::remove_dir_all(&directory).map_err(|error| Diagnostic::invalid(error.to_string()))
}
