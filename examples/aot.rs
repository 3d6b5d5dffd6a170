//! Ahead of time: two kernels in one code object on disk, as a build script would write it, read back and
//! run.

use groundswell::compile::link;
use groundswell::kernels::{Gemm, Waves, copy};
use groundswell::object::ObjectFile;
use groundswell::prelude::*;
use groundswell::simulator::{LaunchConfig, Simulator};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::new(Target::GFX942).set("M", 8).set("N", 64).set("BLOCK_M", 4).set("BLOCK_N", 64);
    let copy = copy(F32, Waves::new(4, 1))?.compile(&options)?;
    let gemm = Gemm::new(256, 256, 256).compile(Target::GFX942)?;

    let path = std::env::temp_dir().join(format!("groundswell-aot-{}.hsaco", std::process::id()));
    std::fs::write(&path, link(&[&copy, &gemm])?)?;
    let bytes = std::fs::read(&path)?;
    std::fs::remove_file(&path)?;

    let object = ObjectFile::parse(&bytes)?;
    println!("{} bytes for {}", bytes.len(), object.target);
    for kernel in &object.kernels {
        let Some(metadata) = &kernel.metadata else { continue };
        println!(
            "  {}: {} bytes of code, {} VGPRs, {} bytes of LDS, arguments {:?}",
            kernel.name,
            kernel.code.len(),
            metadata.vgpr_count,
            metadata.group_segment_fixed_size,
            metadata.arguments.iter().map(|a| a.name.as_str()).collect::<Vec<_>>()
        );
    }

    // The simulator takes the file as the HIP runtime would: a module, a kernel's name, a grid and argument
    // bytes.
    let mut simulator = Simulator::new(object.target);
    let module = simulator.load(&bytes)?;
    let data: Vec<u8> = (0..8 * 64).flat_map(|x: i32| (x as f32).to_le_bytes()).collect();
    let (a, b) = (simulator.alloc(data.len() as u64)?, simulator.alloc(data.len() as u64)?);
    simulator.write(a, &data)?;
    let kernarg: Vec<u8> = [a, b].iter().flat_map(|address| address.to_le_bytes()).collect();
    simulator.launch(&module, "copy", LaunchConfig::new([2, 1, 1], copy.block()), &kernarg)?;
    if simulator.read(b, data.len())? != data {
        return Err("the copy differs".into());
    }
    println!("copied {} bytes with the kernel from the file", data.len());
    Ok(())
}
