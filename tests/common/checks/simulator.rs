//! The simulator's three modes on any code.

use groundswell::isa::decode;
use groundswell::object::{KernelCode, KernelInfo, KernelResources, WorkgroupSize, write};
use groundswell::simulator::time::{DeviceModel, TimeOptions};
use groundswell::simulator::{CheckOptions, LaunchConfig, Simulator};
use groundswell::target::Target;

/// Instructions that a wave may execute: endless loops are common.
const BUDGET: u64 = 500;
/// Dwords of code that are looked at.
const MOST_CODE: usize = 256;

/// Bytes taken for the code of a kernel with a buffer, LDS and scratch: it runs, is checked and is timed, or
/// stops with an error, in bounded time and memory. The first byte says for which chip, the second is the
/// seed. What does not decode is left out, so that more than the first few instructions run.
pub fn simulator(data: &[u8]) -> Result<(), String> {
    let [chip, seed, words @ ..] = data else { return Ok(()) };
    let target = Target::ALL[usize::from(*chip) % Target::ALL.len()];
    let words: Vec<u32> = words.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
    let words = &words[..words.len().min(MOST_CODE)];
    let (mut at, mut code) = (0, Vec::new());
    while at < words.len() {
        match decode(&words[at..], target.arch) {
            Ok((_, length)) => {
                code.extend(words[at..at + length].iter().flat_map(|word| word.to_le_bytes()));
                at += length;
            }
            Err(_) => at += 1,
        }
    }
    code.extend(0xbf81_0000u32.to_le_bytes());
    let resources = KernelResources {
        vgprs: 64,
        sgprs: 64,
        lds_bytes: 2048,
        scratch_bytes: 64,
        kernarg_bytes: 16,
        ..KernelResources::default()
    };
    let info = KernelInfo {
        name: "k".into(),
        resources,
        arguments: [].into(),
        workgroup_size: WorkgroupSize::AtMost(128),
    };
    let object = write(target, &[KernelCode { info: &info, code: &code, lines: None }])
        .map_err(|error| format!("no object: {error}"))?;
    let mut simulator = Simulator::new(target);
    let failed = |error: groundswell::simulator::SimError| error.to_string();
    let module = simulator.load(&object).map_err(failed)?;
    let buffer = simulator.alloc(4096).map_err(failed)?;
    simulator.write(buffer, &[3; 4096]).map_err(failed)?;
    let kernarg: Vec<u8> = [buffer, 4096].iter().flat_map(|v| v.to_le_bytes()).collect();
    let config = LaunchConfig::new([2, 1, 1], [128, 1, 1]).instruction_budget(BUDGET);
    // Faults are as good an end as any; panics and endless runs are not.
    let _ = simulator.launch(&module, "k", config, &kernarg);
    let _ = simulator.check(&module, "k", config, &kernarg, &CheckOptions { seed: u64::from(*seed) });
    if let Some(device) = DeviceModel::of(target) {
        let _ = simulator.time(&module, "k", config, &kernarg, &TimeOptions::new(device).events(64));
    }
    Ok(())
}
