//! Every ready kernel on twenty shapes, aligned, ragged and of single elements, static and dynamic: what the
//! program's interpreter gives, and clean in check mode. With `GROUNDSWELL_SWEEP=1` in the environment, check
//! mode executes every launch in five orders, and otherwise one launch of each kernel. That the interpreter
//! gives what plain loops give is in the tests of the kernels themselves.

use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::{Verify, compile_uncached};
use groundswell::kernels::{Choices, KernelEntry, list};
use groundswell::options::DebugInfo;
use groundswell::prelude::*;
use groundswell::simulator::FindingKind;

const SHAPES: usize = 20;

/// Sizes of rows and columns, some of them whole tiles.
const SIZES: [i64; SHAPES] = [1, 64, 5, 33, 128, 2, 65, 16, 100, 7, 96, 31, 3, 130, 32, 17, 48, 8, 127, 72];

/// Sizes of images, and of dimensions that are multiplied with others.
const FEW: [i64; 5] = [4, 7, 3, 12, 9];

/// What a symbol is in the shape with a number; none where its default or the others say it.
fn size(symbol: &str, number: usize, at: usize) -> Option<i64> {
    let few = FEW[(number * 3 + at) % FEW.len()];
    match symbol {
        "M" | "N" | "K" | "T" | "PAIRS" | "BINS" => Some(SIZES[(number * (2 * at + 1) + 5 * at) % SHAPES]),
        "ROWS" => Some(32 << (number % 3)),
        "H" | "W" | "D0" | "D1" | "HEADS" => Some(few),
        "D2" | "D3" => Some(2 * few + 3),
        "B" | "BLOCKS" | "EXPERTS" | "WORKGROUPS" | "WORKERS" | "SPLITS" => Some(few.min(5)),
        "HF" | "WF" => Some(1 + (number as i64 + at as i64) % 3),
        "C" | "NF" | "C1" | "N1" => Some(8 * few),
        _ => None,
    }
}

/// A kernel's symbols in the shape with a number, and those that are left open.
fn shape(entry: &KernelEntry, number: usize) -> (Vec<(&'static str, i64)>, Vec<&'static str>) {
    // Images of convolutions and rows that follow from others keep what they mean.
    let is_image = entry.symbols.iter().any(|symbol| symbol.name == "HO");
    let given = |name: &str| {
        let at = entry.symbols.iter().position(|symbol| symbol.name == name)?;
        match name {
            "M" | "K" if is_image => None,
            "N" if is_image => Some(1 + number as i64 % 3),
            _ => size(name, number, at),
        }
    };
    let values = entry.values(&given);
    let has_derived = |name: &str| entry.symbols.iter().any(|symbol| symbol.name == name);
    let is_open = |name: &&str| match *name {
        "M" => number % 2 == 1,
        "N" | "K" => number % 4 == 3 && has_derived("BLOCK_N") && has_derived("BLOCK_K"),
        _ => false,
    };
    let open = values.iter().map(|value| value.0).filter(is_open).collect();
    (values, open)
}

fn options(values: &[(&'static str, i64)], open: &[&'static str]) -> Options {
    let options = Options::new(Target::GFX942).debug_info(DebugInfo::None);
    values.iter().fold(options, |options, &(name, value)| match open.contains(&name) {
        true => options.dynamic(name),
        false => options.set(name, value),
    })
}

fn holds(entry: &KernelEntry) {
    let kernel = entry.kernel(&Choices::default()).expect("the defaults fit");
    let twin = Kernel::parse(&kernel.to_string(), "twin.gsw").expect("its own text");
    let device = Device::simulator(Target::GFX942);
    let is_long = std::env::var_os("GROUNDSWELL_SWEEP").is_some();
    for number in 0..SHAPES {
        let (values, open) = shape(entry, number);
        let title = format!("{} {values:?} open {open:?}", entry.name);
        let compiled = |kernel: &Kernel| {
            compile_uncached(kernel, &options(&values, &open), Verify::Off)
                .unwrap_or_else(|fault| panic!("{title}: {fault}"))
        };
        let executable = compiled(&kernel);
        assert_eq!(compiled(&twin).object(), executable.object(), "{title}: the text is another kernel");
        let value = |symbol: Symbol| values.iter().find(|value| value.0 == symbol.name()).map(|v| v.1);
        let ran = against_interpreter(&kernel, &executable, &device, &value, number as u64)
            .unwrap_or_else(|fault| panic!("{title}: {fault}"));
        assert!(ran.comparison.ok, "{title}: {:?}", ran.comparison);
        let seeds = if is_long { 5 } else { u64::from(number == 3) };
        for seed in 0..seeds {
            let (report, comparison) = with_findings(&kernel, &executable, &device, &value, seed)
                .unwrap_or_else(|fault| panic!("{title}: {fault}"));
            // Workgroups that share a small tile may store the same.
            let is_note = |kind: &FindingKind| matches!(kind, FindingKind::RepeatedStore { .. });
            assert!(report.findings.iter().all(|finding| is_note(&finding.kind)), "{title}: {report}");
            assert!(comparison.ok, "{title} seed {seed}: {comparison:?}");
        }
    }
}

/// The ready kernels in two halves, which run at the same time.
fn every_other(first: usize) {
    let entries = list().iter().skip(first).step_by(2);
    entries.for_each(holds);
}

#[test]
fn every_other_ready_kernel_holds() {
    every_other(0);
}

#[test]
fn the_others_hold() {
    every_other(1);
}
