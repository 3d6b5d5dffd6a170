//! Check mode on kernels of this crate and of clang: nothing is found in them whatever the seed. What is
//! found once a wait, a barrier or a nop is taken out: `sim_mutation.rs`.

use groundswell::simulator::FindingKind;
use groundswell::target::Target;
use groundswell_testing::checked::{CLANG, Checked, Contents, Launched};
use groundswell_testing::clang;
use groundswell_testing::ours::ours;
use groundswell_testing::places::root;

const SEEDS: u64 = 50;

fn is_clean(name: &str, checked: &Checked) {
    for seed in 0..SEEDS {
        let report = checked.check(seed).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(report.is_clean(), "{name}: {report}");
    }
}

#[test]
fn kernels_of_this_crate_are_clean() {
    for target in [Target::GFX90A, Target::GFX942, Target::GFX950] {
        for kernel in ours(target) {
            let name = format!("{} for {target}", kernel.name);
            is_clean(&name, &kernel.checked(kernel.executable.object()));
        }
    }
}

fn all_are_clean(level: &str, processor: &str) {
    for (file, launches) in CLANG {
        let Some(object) = clang::compile(file, processor, level) else { return };
        for launch in launches {
            let mut launch = *launch;
            // Without optimisation the first guess of a compare-and-swap and the swap itself take their
            // address from different registers, so that the guess of another wave looks like a
            // race.
            if level == "-O0" && launch.kernel == "atomics_of_all_kinds" {
                launch.block = [64, 1, 1];
            }
            let name = format!("{level} {processor} {}", launch.kernel);
            is_clean(
                &name,
                &Checked::clang(&object, &launch).unwrap_or_else(|error| panic!("{name}: {error}")),
            );
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
    let Some(object) = clang::compile("sim/kernels.c", "gfx942", "-O3 -g") else { return };
    let short: Launched = Launched {
        kernel: "saxpy",
        grid: [4, 1, 1],
        block: [256, 1, 1],
        dynamic_lds: 0,
        buffers: &[(3996, Contents::Random), (4000, Contents::Random)],
        numbers: &[0x3f80_0000, 1000],
    };
    let report = Checked::clang(&object, &short).and_then(|checked| checked.check(0)).expect("it runs");
    let finding = report.findings.iter().find(|f| matches!(f.kind, FindingKind::OutOfBounds { .. }));
    let source = finding.and_then(|f| f.at.source.as_ref()).expect("compiled with -g");
    let text = std::fs::read_to_string(root().join("tests/sim/kernels.c")).unwrap();
    let line = text.lines().nth(source.line as usize - 1).expect("a line of the file");
    assert!(source.file.ends_with("kernels.c") && line.contains("a * x[i] + y[i]"), "{source:?}: {line}");
}
