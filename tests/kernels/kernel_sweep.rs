//! Every ready kernel on twenty shapes, aligned, ragged and of single elements, static and dynamic: the
//! interpreter gives what plain loops in f64 give, the machine code what the interpreter gives, and check
//! mode finds nothing in five orders of execution. A kernel without plain loops fails.

use std::collections::BTreeMap;

use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::{Parameter, Size, Verify, compile_uncached};
use groundswell::kernels::{Choices, KernelEntry, list};
use groundswell::options::DebugInfo;
use groundswell::prelude::*;
use groundswell::simulator::FindingKind;
use groundswell_testing::ready_references::{ReadyLaunch, argument, reference};
use groundswell_testing::ready_shapes::{SHAPES, shape};

/// Orders in which check mode executes each launch.
const SEEDS: u64 = 5;

fn options(values: &[(&'static str, i64)], open: &[&'static str]) -> Options {
    let options = Options::new(Target::GFX942).debug_info(DebugInfo::None);
    values.iter().fold(options, |options, &(name, value)| match open.contains(&name) {
        true => options.dynamic(name),
        false => options.set(name, value),
    })
}

/// The interpreter gives what plain loops give, exactly where all numbers are exact.
fn equals_loops(
    entry: &KernelEntry,
    kernel: &Kernel,
    executable: &Executable,
    values: &[(&'static str, i64)],
) {
    let title = format!("{} {values:?}", entry.name);
    let size = |name: &str| values.iter().find(|value| value.0 == name).map(|value| value.1);
    let mut inputs = Vec::new();
    let mut names = Vec::new();
    for parameter in executable.parameters() {
        let Parameter::Buffer { name, dtype, shape, .. } = parameter else { continue };
        let elements = |along: &Size| match along {
            Size::Static(size) => *size as usize,
            Size::Dynamic(symbol) => {
                // A dimension that follows another one has no size of its own.
                let (base, by) = symbol.scaled_from().unwrap_or((*symbol, 1));
                (size(base.name()).expect("a size") as usize).div_ceil(by as usize)
            }
        };
        let shape: Vec<usize> = shape.iter().map(elements).collect();
        let known = match &name[..] {
            "q" | "k" | "v" | "do" | "minus_delta" if entry.name.contains("backward") => {
                format!("backward_{name}")
            }
            name => name.to_owned(),
        };
        inputs.push(argument(&known, *dtype, &shape, values));
        names.push(name.to_string());
    }
    let arguments: BTreeMap<String, Vec<f64>> =
        names.iter().cloned().zip(inputs.iter().map(Tensor::to_f64)).collect();
    let expected = reference(entry.name, &ReadyLaunch { sizes: values, arguments });
    let expected =
        expected.unwrap_or_else(|| panic!("{} has no plain loops in ready_references", entry.name));
    let after = Interpreter::run(kernel, &|symbol: Symbol| size(symbol.name()), &inputs);
    let after = after.unwrap_or_else(|fault| panic!("{title}: {fault}"));
    // What is no sum or product of small integers is rounded.
    let is_any = |parts: &[&str]| parts.iter().any(|part| entry.name.contains(part));
    let of_attention = is_any(&["attention", "decode", "extend"]);
    let of_weights = is_any(&["int4_gemm", "mxfp4_gemm"]);
    let of_experts = entry.name.starts_with("moe_") && entry.name != "moe_sort";
    let is_rounded =
        of_attention || of_weights || of_experts || is_any(&["softmax", "norm", "gelu", "silu", "positions"]);
    // Weights are rounded to the inputs' dtype before they are multiplied with values: bf16 has 8 bits, f16
    // 11.
    let (rounding, least) = match entry.name.contains("attention") {
        // Gradients of scores are rounded, too, and of either sign.
        true if entry.name.contains("backward") => (-4, 0.25),
        true => (-6, 1.0),
        false if of_attention => (-10, 8.0),
        // The output is bf16.
        false if of_weights || of_experts => (-8, 1.0),
        false => (-10, 1.0),
    };
    assert!(!expected.is_empty());
    for (output, expected) in expected {
        let at =
            names.iter().position(|name| name == output).unwrap_or_else(|| panic!("{title}: no {output}"));
        let found = after[at].to_f64();
        assert_eq!(found.len(), expected.len(), "{title}: {output}");
        for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let bound = if is_rounded { 2f64.powi(rounding) * expected.abs().max(least) } else { 0.0 };
            let is_close = found == expected || (found - expected).abs() <= bound;
            let is_close = is_close || found.is_nan() && expected.is_nan();
            assert!(is_close, "{title}: {output} has {found} at {place}, not {expected}");
        }
    }
}

fn holds(entry: &KernelEntry) {
    let kernel = entry.kernel(&Choices::default()).expect("the defaults fit");
    let twin = Kernel::parse(&kernel.to_string(), "twin.gsw").expect("its own text");
    let device = Device::simulator(Target::GFX942);
    for number in 0..SHAPES {
        let (values, open) = shape(entry, number);
        let title = format!("{} {values:?} open {open:?}", entry.name);
        let compiled = |kernel: &Kernel| {
            compile_uncached(kernel, &options(&values, &open), Verify::Off)
                .unwrap_or_else(|fault| panic!("{title}: {fault}"))
        };
        let executable = compiled(&kernel);
        assert_eq!(compiled(&twin).object(), executable.object(), "{title}: the text is another kernel");
        equals_loops(entry, &kernel, &executable, &values);
        let value = |symbol: Symbol| values.iter().find(|value| value.0 == symbol.name()).map(|v| v.1);
        let ran = against_interpreter(&kernel, &executable, &device, &value, number as u64)
            .unwrap_or_else(|fault| panic!("{title}: {fault}"));
        assert!(ran.comparison.ok, "{title}: {:?}", ran.comparison);
        for seed in 0..SEEDS {
            let (report, comparison) = with_findings(&kernel, &executable, &device, &value, seed)
                .unwrap_or_else(|fault| panic!("{title}: {fault}"));
            // Workgroups that share a small tile may store the same.
            let is_note = |kind: &FindingKind| matches!(kind, FindingKind::RepeatedStore { .. });
            assert!(report.findings.iter().all(|finding| is_note(&finding.kind)), "{title}: {report}");
            assert!(comparison.ok, "{title} seed {seed}: {comparison:?}");
        }
    }
}

/// The ready kernels in parts, which run at the same time.
fn part_holds(part: usize) {
    let entries = list().iter().skip(part).step_by(PARTS);
    entries.for_each(holds);
}

/// Parts of the ready kernels: a test for each.
const PARTS: usize = 5;

#[test]
fn ready_kernels_of_the_first_part_hold() {
    part_holds(0);
}

#[test]
fn ready_kernels_of_the_second_part_hold() {
    part_holds(1);
}

#[test]
fn ready_kernels_of_the_third_part_hold() {
    part_holds(2);
}

#[test]
fn ready_kernels_of_the_fourth_part_hold() {
    part_holds(3);
}

#[test]
fn ready_kernels_of_the_fifth_part_hold() {
    part_holds(4);
}
