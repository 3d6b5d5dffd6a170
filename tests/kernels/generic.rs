//! One object for several chips: ready kernels for a generic target give on each of its chips what the
//! interpreter gives, LLVM makes the same object of their text, and everything else is refused.

use groundswell::assembler::{AssemblerOptions, assemble, disassemble};
use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::{Verify, compile_uncached};
use groundswell::kernels::{Choices, Form, Gemm, KernelEntry, Waves, copy, list};
use groundswell::object::{ObjectFile, object_for};
use groundswell::prelude::*;
use groundswell::simulator::{FindingKind, Simulator};
use groundswell::target::{ObjectVersion, TargetId};
use groundswell_testing::judged::verified;
use groundswell_testing::oracle::{Workspace, assert_equivalent};
use groundswell_testing::ready_shapes::shape;

const GENERIC: Target = Target::GFX9_4_GENERIC;

/// Kernels of 8-bit floats, which are other numbers on each of the chips.
const REFUSED: [&str; 4] = ["gemm_f8_blocks", "gemm_f8_scaled", "moe_down_f8", "moe_gate_up_f8"];

fn options(entry: &KernelEntry, number: usize) -> Options {
    let (values, open) = shape(entry, number);
    values.iter().fold(Options::new(GENERIC), |options, &(name, value)| {
        if open.contains(&name) { options.dynamic(name) } else { options.set(name, value) }
    })
}

/// Sizes of shape 3 are open.
#[test]
fn ready_kernels_hold_on_every_chip() {
    let devices: Vec<Device> = GENERIC.chips().map(Device::simulator).collect();
    assert_eq!(devices.len(), 2);
    for entry in list() {
        let kernel = entry.kernel(&Choices::default()).expect("the defaults fit");
        for number in [8, 3] {
            let (values, _) = shape(entry, number);
            let title = format!("{} {values:?}", entry.name);
            let compiled = compile_uncached(&kernel, &options(entry, number), Verify::AfterEachPass);
            if REFUSED.contains(&entry.name) {
                let text = compiled.expect_err("no such instruction").to_string();
                assert!(text.contains("gfx9-4-generic has no matrix instruction"), "{text}");
                continue;
            }
            let executable = compiled.unwrap_or_else(|fault| panic!("{title}: {fault}"));
            let value = |symbol: Symbol| values.iter().find(|value| value.0 == symbol.name()).map(|v| v.1);
            for device in &devices {
                let title = format!("{title} on {}", device.target());
                let (report, comparison) = with_findings(&kernel, &executable, device, &value, number as u64)
                    .unwrap_or_else(|fault| panic!("{title}: {fault}"));
                let is_note = |kind: &FindingKind| matches!(kind, FindingKind::RepeatedStore { .. });
                assert!(report.findings.iter().all(|finding| is_note(&finding.kind)), "{title}: {report}");
                assert!(comparison.ok, "{title}: {comparison:?}");
            }
        }
    }
}

#[test]
fn llvm_makes_the_same_objects() {
    let Some(space) = Workspace::with_zig() else { return };
    let mut made = 0;
    for (at, entry) in list().iter().enumerate().filter(|(_, entry)| !REFUSED.contains(&entry.name)) {
        let kernel = entry.kernel(&Choices::default()).expect("the defaults fit");
        let options = options(entry, at % 20);
        let options = if at % 3 == 0 {
            options.for_target("gfx9-4-generic:xnack-".parse::<TargetId>().expect("an id"))
        } else {
            options
        };
        let executable = compile_uncached(&kernel, &options, Verify::Off).expect("a kernel");
        let text = executable.assembly().expect("text");
        let llvm = space.assemble(executable.target_id(), &text);
        assert_equivalent(executable.object(), &llvm);
        // The machine, the modes and the version of the target.
        assert_eq!(executable.object()[0x30..0x34], llvm[0x30..0x34], "{}", entry.name);
        let ours = assemble(&text, AssemblerOptions::default()).expect("our own text");
        assert_equivalent(&ours.object, &llvm);
        assert_eq!(ours.object[0x30..0x34], llvm[0x30..0x34], "{}", entry.name);
        let again = disassemble(executable.object()).expect("our own object").text;
        let again = assemble(&again, AssemblerOptions::default()).expect("our own text");
        assert_eq!(again.object[0x30..0x34], llvm[0x30..0x34], "{}", entry.name);
        made += 1;
    }
    assert!(made > 40, "{made}");
}

/// Products keep the distances of both chips, of which gfx950 has the longer ones: the machine verifier looks
/// for those of each.
#[test]
fn products_under_schedules_hold_on_every_chip() {
    let schedules =
        [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo, Schedule::PingPong];
    for (at, dtype) in [F16, Bf16, F32, F64, I8].into_iter().enumerate() {
        for (turn, schedule) in schedules.iter().enumerate() {
            let form = [Form::ABt, Form::AB, Form::AtB, Form::AtBt][(at + turn) % 4];
            let gemm = Gemm::any_shape().inputs(dtype).form(form).waves(Waves::new(2, 4));
            let kernel = gemm.kernel().expect("a kernel");
            let values = [
                ("M", 100),
                ("N", 150),
                ("K", 70),
                ("BLOCK_M", 64),
                ("BLOCK_N", 128),
                ("BLOCK_K", i64::from(64.min(128 / dtype.bytes()))),
            ];
            let options = Options::new(GENERIC).schedule(schedule.clone());
            let options = values.iter().fold(options, |options, &(name, value)| options.set(name, value));
            let title = format!("{dtype} {form:?} {schedule:?}");
            let executable = verified(&kernel, &options);
            let value = |symbol: Symbol| values.iter().find(|value| value.0 == symbol.name()).map(|v| v.1);
            for chip in GENERIC.chips() {
                let device = Device::simulator(chip);
                let ran = against_interpreter(&kernel, &executable, &device, &value, at as u64)
                    .unwrap_or_else(|fault| panic!("{title}: {fault}"));
                assert!(ran.comparison.ok, "{title}: {:?}", ran.comparison);
                let (report, _) = with_findings(&kernel, &executable, &device, &value, at as u64)
                    .unwrap_or_else(|fault| panic!("{title}: {fault}"));
                assert!(report.is_clean(), "{title}: {report}");
            }
        }
    }
}

fn copies(target: impl Into<TargetId>) -> Options {
    let sizes = [("M", 20), ("N", 70), ("BLOCK_M", 16), ("BLOCK_N", 64)];
    sizes.iter().fold(Options::new(target), |options, &(name, size)| options.set(name, size))
}

#[test]
fn other_chips_refuse_it_by_name() {
    let kernel = copy(F32, Waves::new(4, 1)).expect("a kernel");
    let executable = kernel.compile(&copies(GENERIC)).expect("it copies");
    let file = ObjectFile::parse(executable.object()).expect("an object");
    assert_eq!((file.target, file.abi_version), (GENERIC, ObjectVersion::V6.abi_version()));
    for chip in Target::ALL {
        let loaded = Simulator::new(chip).load(executable.object());
        match GENERIC.covers(chip) {
            true => drop(loaded.expect("one of its chips")),
            false => {
                let text = loaded.expect_err("none of its chips").to_string();
                assert!(
                    text.contains(&format!("it is for gfx9-4-generic, the simulated device is a {chip}")),
                    "{text}"
                );
            }
        }
    }
    // An object that relies on something newer.
    let mut newer = executable.object().to_vec();
    newer[0x33] = 2;
    let text = ObjectFile::parse(&newer).expect_err("unknown").to_string();
    assert!(text.contains("generic version"), "{text}");
}

#[test]
fn older_objects_are_refused() {
    let kernel = copy(F32, Waves::new(4, 1)).expect("a kernel");
    let fault = kernel.compile(&copies(GENERIC).object_version(ObjectVersion::V5)).expect_err("too old");
    assert!(fault.to_string().contains("gfx9-4-generic takes objects of version 6, not 5"), "{fault}");
    let text = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx9-4-generic\"\n.amdhsa_code_object_version 5\n";
    assert!(assemble(text, AssemblerOptions::default()).is_err());
}

#[test]
fn instructions_that_a_chip_lacks_are_refused() {
    let instructions = [
        "v_cvt_pk_fp8_f32 v0, v1, v2",
        "v_mfma_f32_16x16x32_fp8_fp8 a[0:3], v[0:1], v[2:3], a[0:3]",
        "v_mfma_f32_16x16x8_xf32 a[0:3], v[0:1], v[2:3], a[0:3]",
        "v_permlane16_swap_b32 v0, v1",
    ];
    for instruction in instructions {
        let text = format!(".amdgcn_target \"amdgcn-amd-amdhsa--gfx9-4-generic\"\n{instruction}\n");
        let faults = assemble(&text, AssemblerOptions::default()).expect_err(instruction);
        assert!(faults.to_string().contains(instruction.split(' ').next().expect("a word")), "{faults}");
    }
    let text = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx9-4-generic\"\nv_mfma_f64_16x16x4_f64 a[0:7], v[0:1], v[2:3], a[0:7]\n";
    assert!(assemble(text, AssemblerOptions::default()).is_ok());
}

/// A bundle's entry for the chip itself comes first, wherever it stands.
#[test]
fn bundles_have_it_for_chips_without_an_entry() {
    let kernel = copy(F32, Waves::new(4, 1)).expect("a kernel");
    let targets = [GENERIC, Target::GFX90A, Target::GFX942].map(TargetId::from);
    let bundle = kernel.compile_for(&copies(GENERIC), &targets).expect("a bundle");
    let bytes = bundle.to_bytes();
    for (chip, expected) in [(Target::GFX90A, 1), (Target::GFX942, 2), (Target::GFX950, 0)] {
        let expected = &bundle.executables()[expected];
        let device = Device::simulator(chip);
        assert_eq!(device.pick(&bundle).expect("an entry").target(), expected.target(), "{chip}");
        assert!(object_for(&bytes, chip.into()).expect("an entry") == expected.object(), "{chip}");
        assert!(Simulator::new(chip).load(&bytes).is_ok(), "{chip}");
    }
    let fault = Device::simulator(Target::GFX908).pick(&bundle).expect_err("no entry").to_string();
    assert!(fault.contains("the bundle is for gfx9-4-generic, gfx90a, gfx942, not for gfx908"), "{fault}");
}
