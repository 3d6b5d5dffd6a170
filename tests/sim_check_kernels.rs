//! Check mode on kernels of this crate and of clang: nothing is found in them whatever the seed, and what is weakened is found.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use groundswell::codegen::isa::{Arch, Meaning, decode};
use groundswell::codegen::object::ObjectFile;
use groundswell::kernels::{Gemm, Waves, copy};
use groundswell::prelude::*;
use groundswell::runtime::executable::{Parameter, Size};
use groundswell::runtime::sim::{
    CheckOptions, CheckReport, FindingKind, LaunchConfig, Module, SimError, Simulator,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SEEDS: u64 = 50;

/// Launches a compiled kernel under check on random data.
fn check_executable(executable: &Executable, value: &impl Fn(Symbol) -> Option<i64>, seeds: u64) {
    let mut rng = StdRng::seed_from_u64(1);
    let mut simulator = Simulator::new(executable.target());
    let module = simulator.load(executable.object()).expect("our object");
    let mut kernarg = vec![0; executable.kernarg_bytes() as usize];
    for parameter in executable.parameters() {
        match parameter {
            Parameter::Buffer { dtype, shape, written, offset, .. } => {
                let size = |size: &Size| match size {
                    Size::Static(n) => u64::from(*n),
                    Size::Dynamic(symbol) => value(*symbol).expect("bound") as u64,
                };
                let bytes = shape.iter().map(size).product::<u64>() * u64::from(dtype.bytes());
                let address = simulator.alloc(bytes).expect("small");
                if !written {
                    let data: Vec<u8> = (0..bytes).map(|_| rng.random_range(0..0x3c)).collect();
                    simulator.write(address, &data).expect("just allocated");
                }
                kernarg[*offset as usize..][..8].copy_from_slice(&address.to_le_bytes());
            }
            Parameter::Symbol { symbol, offset } => {
                let value = value(*symbol).expect("bound") as i32;
                kernarg[*offset as usize..][..4].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    let config = LaunchConfig::new(executable.grid(value).expect("bound"), executable.block());
    for seed in 0..seeds {
        let report = simulator
            .check(&module, executable.name(), config, &kernarg, &CheckOptions { seed })
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(report.is_clean(), "{report}");
    }
}

fn bound(bindings: &[(&'static str, i64)]) -> impl Fn(Symbol) -> Option<i64> {
    move |symbol: Symbol| bindings.iter().find(|b| b.0 == symbol.name()).map(|b| b.1)
}

#[test]
fn ready_kernels_are_clean() {
    let compile = |kernel: &Kernel, bindings: &[(&'static str, i64)]| {
        let options = bindings.iter().fold(Options::new(Target::GFX942), |o, b| o.set(Symbol::new(b.0), b.1));
        kernel.compile(&options).expect("it compiles")
    };
    for dtype in [F32, F16, I8] {
        let bindings = [("M", 33), ("N", 129), ("BLOCK_M", 4), ("BLOCK_N", 64)];
        let kernel = copy(dtype, Waves::new(2, 1)).expect("a kernel");
        check_executable(&compile(&kernel, &bindings), &bound(&bindings), 10);
    }
    for [m, n, k] in [[64, 64, 64], [33, 50, 40]] {
        let bindings = [("M", m), ("N", n), ("K", k), ("BLOCK_M", 32), ("BLOCK_N", 32), ("BLOCK_K", 32)];
        for gemm in [Gemm::new(), Gemm::new().inputs(I8), Gemm::new().scale(0.5).bias().relu().residual()] {
            let kernel = gemm.kernel().expect("a kernel");
            check_executable(&compile(&kernel, &bindings), &bound(&bindings), SEEDS);
        }
    }
}

/// Every wait, barrier and nop of our GEMM, weakened in turn: what has to be there is missed.
#[test]
fn weakened_kernels_are_found() {
    let bindings = [("M", 64), ("N", 64), ("K", 96), ("BLOCK_M", 32), ("BLOCK_N", 32), ("BLOCK_K", 32)];
    let kernel = Gemm::new().kernel().expect("a kernel");
    let options = bindings.iter().fold(Options::new(Target::GFX942), |o, b| o.set(Symbol::new(b.0), b.1));
    let executable = kernel.compile(&options).expect("it compiles");
    let object = executable.object();
    let file = ObjectFile::parse(object).expect("our object");
    let kernel = &file.kernels[0];
    let start = object.windows(kernel.code.len()).position(|w| w == kernel.code).expect("its code");
    let words: Vec<u32> =
        kernel.code.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    let mut at = 0;
    let (mut mutants, mut missed) = (0, Vec::new());
    while at < words.len() {
        let (inst, length) = decode(&words[at..], Arch::Gfx942).expect("our code decodes");
        let nop: Option<u32> = match inst.op.info().meaning {
            Meaning::Wait | Meaning::Barrier => Some(0xbf80_0000),
            _ => None,
        };
        if let Some(nop) = nop {
            let mut mutant = object.to_vec();
            mutant[start + 4 * at..][..4].copy_from_slice(&nop.to_le_bytes());
            mutants += 1;
            if !is_found(&mutant, &executable, &bindings) {
                missed.push(format!("{:#x}: {inst}", 4 * at));
            }
        }
        at += length;
    }
    assert!(mutants > 5, "{mutants} mutants");
    assert!(missed.is_empty(), "{} of {mutants} mutants are not found: {missed:#?}", missed.len());
}

fn is_found(object: &[u8], executable: &Executable, bindings: &[(&'static str, i64)]) -> bool {
    let mut simulator = Simulator::new(Target::GFX942);
    let module: Module = simulator.load(object).expect("still an object");
    let mut kernarg = vec![0; executable.kernarg_bytes() as usize];
    for parameter in executable.parameters() {
        let Parameter::Buffer { offset, .. } = parameter else { continue };
        let address = simulator.alloc(1 << 16).expect("small");
        simulator.write(address, &vec![0x11; 1 << 16]).expect("just allocated");
        kernarg[*offset as usize..][..8].copy_from_slice(&address.to_le_bytes());
    }
    let config = LaunchConfig::new(executable.grid(&bound(bindings)).expect("bound"), executable.block());
    let config = config.instruction_budget(1_000_000);
    (0..4).any(|seed| {
        let report = simulator.check(&module, executable.name(), config, &kernarg, &CheckOptions { seed });
        !report.expect("it runs").is_clean()
    })
}

/// Clang's object of a file of kernels, or nothing where clang is missing and not required.
fn clang(file: &str, level: &str, processor: &str) -> Option<Vec<u8>> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let out = std::env::temp_dir().join(format!("groundswell-check-{}-{number}.co", std::process::id()));
    let result = Command::new("clang-19")
        .args(["-x", "c", "--target=amdgcn-amd-amdhsa", &format!("-mcpu={processor}"), level])
        .args(["-g", "-nogpulib", "-o"])
        .arg(&out)
        .arg(format!("{}/tests/{file}", env!("CARGO_MANIFEST_DIR")))
        .output();
    match result {
        Ok(result) if result.status.success() => {
            let bytes = std::fs::read(&out).expect("clang has written its output");
            std::fs::remove_file(&out).expect("the file was read the line before");
            Some(bytes)
        }
        Ok(result) => panic!("clang-19: {}", String::from_utf8_lossy(&result.stderr)),
        Err(error) => {
            let required = std::env::var_os("GROUNDSWELL_REQUIRE_ORACLES").is_some_and(|v| v == "1");
            assert!(!required, "clang-19 is required: {error}");
            eprintln!("skipped: clang-19 is not installed");
            None
        }
    }
}

/// Kernel, grid, block, sizes of the buffers (the first one is the result, which the host has written where `true`), numbers.
type Launched = (&'static str, [u32; 3], [u32; 3], &'static [(usize, bool)], &'static [u32]);

const LAUNCHES: &[Launched] = &[
    ("saxpy", [4, 1, 1], [256, 1, 1], &[(4000, true), (4000, true)], &[0x3f80_0000, 1000]),
    ("transpose", [3, 2, 1], [32, 8, 1], &[(4 * 70 * 45, false), (4 * 70 * 45, true)], &[70, 45]),
    ("reduce", [1, 1, 1], [256, 1, 1], &[(4, false), (4 * 1777, true)], &[1777]),
    ("histogram", [16, 1, 1], [64, 1, 1], &[(64, true), (4096, true)], &[]),
    ("divide", [4, 1, 1], [64, 1, 1], &[(1024, false), (1024, true), (1024, true)], &[]),
    ("divide_double", [2, 1, 1], [64, 1, 1], &[(1024, false), (1024, true), (1024, true)], &[]),
    ("root", [4, 1, 1], [64, 1, 1], &[(1024, false), (1024, true)], &[]),
    ("integers", [2, 1, 1], [64, 1, 1], &[(4096, false), (512, true), (512, true)], &[]),
    ("collatz", [2, 1, 1], [64, 1, 1], &[(400, false)], &[100]),
    ("halves", [2, 1, 1], [64, 1, 1], &[(256, false), (256, true), (256, true)], &[]),
    ("shuffle", [1, 1, 1], [64, 1, 1], &[(256, false), (256, true)], &[]),
    ("scratch", [1, 1, 1], [64, 1, 1], &[(256, false), (256, true)], &[20]),
    ("bytes", [2, 1, 1], [64, 1, 1], &[(128, false), (129, true)], &[]),
    (
        "gemm",
        [2, 3, 1],
        [64, 1, 1],
        &[(4 * 48 * 32, false), (2 * 48 * 64, true), (2 * 32 * 64, true)],
        &[32, 64],
    ),
];

/// Those of the other file.
const MORE: &[Launched] = &[
    ("saxpy_wide", [2, 1, 1], [256, 1, 1], &[(8000, true), (8000, true)], &[0x3f80_0000, 500]),
    ("reduction", [1, 1, 1], [256, 1, 1], &[(4, false), (4000, true)], &[1000]),
    ("reduction_in_a_wave", [1, 1, 1], [64, 1, 1], &[(4, false), (256, true)], &[]),
    ("gemm", [1, 2, 1], [64, 1, 1], &[(8192, false), (8192, true), (4096, true)], &[32, 64]),
    ("gemm_types", [1, 1, 1], [64, 1, 1], &[(1024, true), (2048, true), (1024, true), (1024, true)], &[]),
    ("histogram", [2, 1, 1], [256, 1, 1], &[(1024, true), (4000, true)], &[1000]),
    ("atomics", [1, 1, 1], [64, 1, 1], &[(16, true), (512, true), (256, false), (256, true)], &[]),
    ("scan", [1, 1, 1], [1024, 1, 1], &[(4096, false), (4096, true)], &[]),
    ("halves", [1, 1, 1], [64, 1, 1], &[(256, false), (256, true), (256, true), (132, true)], &[]),
    ("narrow", [1, 1, 1], [64, 1, 1], &[(101, true), (204, true), (404, true)], &[100]),
    ("doubles", [1, 1, 1], [64, 1, 1], &[(512, false), (1024, true), (264, true)], &[]),
    ("integers", [1, 1, 1], [64, 1, 1], &[(2048, false), (512, true), (256, true)], &[]),
    ("stack", [1, 1, 1], [64, 1, 1], &[(256, false), (256, true)], &[20]),
    ("calls", [1, 1, 1], [64, 1, 1], &[(512, true)], &[5]),
    ("dots", [1, 1, 1], [64, 1, 1], &[(256, false), (260, true), (260, true)], &[]),
];

fn launch_clang(object: &[u8], launch: &Launched, seed: u64) -> Result<CheckReport, SimError> {
    let (kernel, grid, block, buffers, numbers) = *launch;
    let target = ObjectFile::parse(object).expect("clang's object").target;
    let mut simulator = Simulator::new(target);
    let module = simulator.load(object)?;
    let mut kernarg = Vec::new();
    let mut rng = StdRng::seed_from_u64(7);
    for &(bytes, written) in buffers {
        let address = simulator.alloc(bytes as u64)?;
        if written {
            simulator.write(address, &(0..bytes).map(|_| rng.random_range(1..0x3c)).collect::<Vec<u8>>())?;
        }
        kernarg.extend(address.to_le_bytes());
    }
    numbers.iter().for_each(|n| kernarg.extend(n.to_le_bytes()));
    kernarg.resize(kernarg.len().next_multiple_of(8), 0);
    let config = LaunchConfig::new(grid, block).instruction_budget(1_000_000);
    simulator.check(&module, kernel, config, &kernarg, &CheckOptions { seed })
}

fn all_are_clean(level: &str, processor: &str) {
    for (file, launches) in [("sim/kernels.c", LAUNCHES), ("data/clang_kernels.c", MORE)] {
        let Some(object) = clang(file, level, processor) else { return };
        for launch in launches {
            for seed in 0..SEEDS {
                let report = launch_clang(&object, launch, seed)
                    .unwrap_or_else(|error| panic!("{level} {processor} {}: {error}", launch.0));
                assert!(report.is_clean(), "{level} {processor} {}: {report}", launch.0);
            }
        }
    }
}

#[test]
fn kernels_of_clang_are_clean_on_gfx942() {
    all_are_clean("-O3", "gfx942");
}

#[test]
fn kernels_of_clang_are_clean_on_gfx90a() {
    all_are_clean("-O3", "gfx90a");
}

#[test]
fn unoptimised_kernels_of_clang_are_clean() {
    all_are_clean("-O0", "gfx942");
    all_are_clean("-O0", "gfx90a");
}

#[test]
fn findings_in_kernels_of_clang_name_their_lines() {
    let Some(object) = clang("sim/kernels.c", "-O3", "gfx942") else { return };
    let launch: Launched =
        ("saxpy", [4, 1, 1], [256, 1, 1], &[(3996, true), (4000, true)], &[0x3f80_0000, 1000]);
    let report = launch_clang(&object, &launch, 0).expect("it runs");
    let finding = report.findings.iter().find(|f| matches!(f.kind, FindingKind::OutOfBounds { .. }));
    let source = finding.and_then(|f| f.at.source.as_ref()).expect("compiled with -g");
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sim/kernels.c")).unwrap();
    let line = text.lines().nth(source.line as usize - 1).expect("a line of the file");
    assert!(source.file.ends_with("kernels.c") && line.contains("a * x[i] + y[i]"), "{source:?}: {line}");
}
