//! Compiled kernels against LLVM: our assembly text through its assembler and linker gives the code, the
//! descriptor and the metadata of our own object; its disassembler knows every instruction of ours; its
//! reader prints our metadata.

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::prelude::*;
use groundswell_testing::kernels::{self, Case};
use groundswell_testing::oracle::{Workspace, assert_equivalent};

/// Checks one kernel; `Err` says what LLVM sees differently.
fn check(space: &Workspace, case: &Case) -> Result<(), String> {
    let executable =
        compile_uncached(&case.kernel, &case.options, Verify::Off).map_err(|error| error.to_string())?;
    let text = executable.assembly().map_err(|error| error.to_string())?;
    assert_equivalent(executable.object(), &space.assemble(executable.target(), &text));
    space.write("ours.co", executable.object());
    let listing = space.run("llvm-objdump-19 -d ours.co");
    if !listing.contains(&format!("<{}>:", executable.name())) || !listing.contains("s_endpgm") {
        return Err(format!("the kernel is not in the listing\n{listing}"));
    }
    if let Some(line) = listing.lines().find(|line| line.contains("<unknown>")) {
        return Err(format!("LLVM does not know {line}"));
    }
    let ours = space.run("llvm-readelf-19 --notes ours.co");
    if !ours.contains("NT_AMDGPU_METADATA")
        || !ours.contains(&format!(".name:           {}\n", executable.name()))
    {
        return Err(format!("the kernel is not in the metadata\n{ours}"));
    }
    Ok(())
}

fn check_all(cases: &[Case]) {
    let tools = ["llvm-mc-19", "ld.lld-19", "llvm-objdump-19", "llvm-readelf-19"];
    let failures: Vec<String> = std::thread::scope(|scope| {
        let half = cases.len().div_ceil(2);
        let workers: Vec<_> = cases
            .chunks(half)
            .map(|cases| {
                scope.spawn(move || {
                    let Some(space) = Workspace::with_tools(&tools) else { return Vec::new() };
                    let failure =
                        |case: &Case| check(&space, case).err().map(|e| format!("{}: {e}", case.name));
                    cases.iter().filter_map(failure).collect()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{} of {}\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}

#[test]
fn llvm_agrees_about_gemms() {
    check_all(&kernels::gemms());
}

#[test]
fn llvm_agrees_about_elementwise_kernels() {
    check_all(&kernels::elementwise_kernels());
}

#[test]
fn a_wave_tile_of_128_by_128_accumulates_in_agprs() {
    let tiles = kernels::Gemm { block: [256, 256, 32], waves: [2, 2], ..kernels::PLAIN };
    let case = kernels::gemm("large", &tiles);
    let executable = compile_uncached(&case.kernel, &case.options, Verify::Off).unwrap();
    let report = executable.report();
    assert!(report.agprs > 0 && report.vgprs + report.agprs > 256 && report.scratch_bytes == 0, "{report:?}");
    assert!(executable.assembly().unwrap().contains("v_mfma_f32_16x16x16_f16 a["));
}

#[test]
fn llvm_agrees_about_spill_code() {
    let mut case = kernels::gemm("spilled", &kernels::PLAIN);
    case.options = case.options.max_vgprs(24);
    let executable = compile_uncached(&case.kernel, &case.options, Verify::Off).unwrap();
    assert!(executable.report().scratch_bytes > 0, "{:?}", executable.report());
    check_all(&[case]);
}

/// Branches by way of islands.
#[test]
fn llvm_agrees_about_loops_longer_than_a_branch_reaches() {
    let schedule = WaveSchedule::trace("unrolled", |s| s.unroll(s.get_node_by_tag("k_loop"), 301));
    let mut case = kernels::gemm("long", &kernels::PLAIN);
    case.options = Options::new(Target::GFX942).wave_schedule(&schedule.unwrap());
    let text = "kernel gemm {\n  workgroup M, 64, 0\n  workgroup N, 64, 1\n  tile K, 64\n  mma f32_16x16x16_f16\n  \
                a = memory [M, K] shared f16\n  b = memory [N, K] shared f16\n  c = memory [M, N] global f32\n  \
                %zero = register [M, N] f32 0.0\n  %sum = iterate K (%acc = %zero) @k_loop {\n    %a = read a\n    \
                %b = read b\n    %m = mma %a, %b, %acc\n    yield %m\n  }\n  write %sum, c\n}\n";
    case.kernel = Kernel::parse(text, "long.gsw").unwrap();
    case.options =
        ["M", "N"].into_iter().fold(case.options, |options, size| options.set(size, 64)).set("K", 64 * 700);
    let executable = compile_uncached(&case.kernel, &case.options, Verify::Off).unwrap();
    assert!(executable.report().code_bytes > 1 << 18, "{:?}", executable.report());
    check_all(&[case]);
}
