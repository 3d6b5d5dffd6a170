//! An inference loop with kernels that were built ahead of time: a layer of a perceptron (a product, a bias
//! and ReLU, a softmax) for batches of any size.
//!
//! Here one program does both halves. In a product, the first one is the crate's `build.rs`, whose typed Rust
//! module replaces the launches by name, and the program takes groundswell with the feature `runtime` alone.

use groundswell::kernels::{Choices, Gemm, find};
use groundswell::package::{KernelPackage, PackageBuilder};
use groundswell::prelude::*;

/// Inputs and outputs of the layer.
const INPUTS: u32 = 96;
const OUTPUTS: u32 = 40;

/// The half of `build.rs`.
fn build() -> Result<Vec<u8>, Diagnostic> {
    let layer = Gemm::any_shape().bias().relu();
    let sizes = [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 32)];
    let options = sizes.iter().fold(Options::new(Target::USUAL), |o, &(name, size)| o.set(name, size));
    // Only the size of the batch is open.
    let options = options.dynamic("M").set("N", OUTPUTS).set("K", INPUTS);
    let softmax = find("softmax").ok_or_else(|| Diagnostic::invalid("no softmax"))?;
    let values = softmax.values(&|name| (name == "N").then_some(OUTPUTS.into()));
    let rows = values.into_iter().filter(|(name, _)| *name != "M");
    let rows = rows.fold(Options::new(Target::USUAL).dynamic("M"), |o, (name, size)| o.set(name, size));
    PackageBuilder::new([Target::GFX90A, Target::GFX942, Target::GFX950].map(Into::into))
        .kernel("layer", &layer.kernel()?, &options)?
        .kernel("softmax", &softmax.kernel(&Choices { dtype: Some(F32), ..Choices::default() })?, &rows)?
        .package()
}

fn main() -> Result<(), Diagnostic> {
    let package = KernelPackage::read(build()?)?;
    let device = Device::open()?;
    let [layer, softmax] = ["layer", "softmax"].map(|name| package.executable(name, &device));
    let (layer, softmax) = (layer?, softmax?);
    println!("{}: {} kernels, nothing is compiled from here on", device.name(), package.kernels().len());

    let weights = device.upload(&vec![f16::from_f32(0.01); (INPUTS * OUTPUTS) as usize])?;
    let bias: Vec<f32> = (0..OUTPUTS).map(|at| at as f32 / 100.0).collect();
    let bias = device.upload(&bias)?;
    let stream = device.stream()?;
    for batch in [1u32, 7, 64, 130] {
        let inputs = device.upload(&vec![f16::ONE; (batch * INPUTS) as usize])?;
        let sums = device.upload(&vec![0f32; (batch * OUTPUTS) as usize])?;
        let outputs = device.upload(&vec![0f32; (batch * OUTPUTS) as usize])?;
        let launch = device.launch(layer).buffer(&inputs).buffer(&weights).buffer(&sums).buffer(&bias);
        launch.set("M", batch).enqueue(&stream)?;
        device.launch(softmax).buffer(&sums).buffer(&outputs).set("M", batch).enqueue(&stream)?;
        stream.synchronize()?;
        let outputs = outputs.download::<f32>()?;
        let row = &outputs[outputs.len() - OUTPUTS as usize..];
        let total: f32 = row.iter().sum();
        assert!((total - 1.0).abs() < 1e-4, "the last row adds up to {total}");
        println!(
            "batch of {batch}: the largest of the last row is {:.4}",
            row.iter().fold(0f32, |a, &b| a.max(b))
        );
    }
    Ok(())
}
