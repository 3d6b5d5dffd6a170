//! Runs the machine passes on the texts in `tests/files/machine`. A file is a list of cases:
//!
//! ```text
//! ; case a load is waited for where it is used
//! ; run waits                      any of: interleave allocate drop-branches waits hazards branches
//! ; limits vgprs=8                 optional; also sgprs, agprs, vectors, scratch (bytes)
//! ; fixed %0=s[0:1]                optional
//! ; target gfx90a                  optional, gfx942 otherwise; several must all give the same
//! ; promise no-xnack               optional; also lds-after-barriers
//! bb0:
//!     ...
//! ; ---
//! expected output
//! ```
//!
//! Where most lines come out as they go in, both texts are one: lines that begin with `+` come out in
//! addition, and lines that begin with `-` do not come out.
//!
//! Whatever comes out must also satisfy the machine verifier. `BLESS=1` rewrites the expected output.

use groundswell_testing::case_files::{LineChange, changes};
use groundswell_testing::places::root;
use std::fmt::Write;

use groundswell::internals::machine::allocate::{Allocation, AllocationError, Allocator, RegisterLimits};
use groundswell::internals::machine::branches::{Code, drop_branches_to_next, encode_body};
use groundswell::internals::machine::check::{
    Allocated, MachineFault, check_allocation, check_hazards, check_operands, check_order, check_replay,
    check_waits,
};
use groundswell::internals::machine::hazards::{HazardResolver, Xnack};
use groundswell::internals::machine::waits::{LdsLoads, WaitInserter};
use groundswell::internals::machine::{MachineBody, interleave, text};
use groundswell::isa::{Operand, VReg};
use groundswell::target::{DeviceModel, Target};

#[derive(Default)]
struct Case<'a> {
    header: Vec<&'a str>,
    input: String,
    expected: String,
}

fn cases(file: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case> = Vec::new();
    let mut in_output = false;
    for line in file.lines() {
        if line.starts_with("; case ") {
            cases.push(Case::default());
            in_output = false;
        }
        let case = cases.last_mut().expect("a file starts with `; case`");
        match line {
            "; ---" => {
                in_output = true;
                case.expected.clear();
            }
            _ if in_output => writeln!(case.expected, "{line}").unwrap(),
            _ if line.starts_with("; ") => case.header.push(line),
            _ if line.starts_with('+') => writeln!(case.expected, "{}", unmarked(line)).unwrap(),
            _ if line.starts_with('-') => writeln!(case.input, "{}", unmarked(line)).unwrap(),
            _ => {
                writeln!(case.input, "{line}").unwrap();
                writeln!(case.expected, "{line}").unwrap();
            }
        }
    }
    cases
}

/// A line without the sign in front of it, which stands in place of a space.
fn unmarked(line: &str) -> String {
    let rest = &line[1..];
    if rest.starts_with(' ') { format!(" {rest}") } else { rest.to_owned() }
}

/// Input and output as one text if most of it is in both.
fn as_one(input: &str, output: &str) -> Option<String> {
    let (input, output): (Vec<&str>, Vec<&str>) = (input.lines().collect(), output.lines().collect());
    let changes = changes(&input, &output);
    let same = changes.iter().filter(|(change, _)| *change == LineChange::Same).count();
    let line = |&(change, line): &(LineChange, &str)| {
        let rest = line.strip_prefix(' ').unwrap_or(line);
        match change {
            LineChange::Same => format!("{line}\n"),
            LineChange::Removed => format!("-{rest}\n"),
            LineChange::Added => format!("+{rest}\n"),
        }
    };
    (2 * same >= input.len().max(output.len())).then(|| changes.iter().map(line).collect())
}

fn option<'a>(case: &'a Case, name: &str) -> impl Iterator<Item = &'a str> {
    let prefix = format!("; {name} ");
    let values = case.header.iter().filter_map(move |line| line.strip_prefix(prefix.as_str()));
    values.flat_map(str::split_whitespace)
}

fn limits(case: &Case, target: Target) -> RegisterLimits {
    let mut limits = RegisterLimits {
        accumulation: target.agprs,
        flat_scratch: target.flat_scratch,
        ..RegisterLimits::MAX
    };
    for limit in option(case, "limits") {
        let (name, value) = limit.split_once('=').expect("name=value");
        let value = value.parse().expect("a number");
        match name {
            "sgprs" => limits.sgprs = value,
            "vgprs" => limits.vgprs = value,
            "agprs" => limits.agprs = value,
            "vectors" => limits.vectors = value,
            "scratch" => limits.scratch_bytes = value,
            _ => panic!("no limit is called {name}"),
        }
    }
    limits
}

fn fixed(case: &Case) -> Vec<(VReg, Operand)> {
    let place = |text: &str| {
        let number = text[1..].trim_matches(['[', ']']).split(':').next().expect("a number");
        let number = number.parse().expect("a number");
        if text.starts_with('s') { Operand::sgpr(number) } else { Operand::vgpr(number) }
    };
    option(case, "fixed")
        .map(|pair| {
            let (register, at) = pair.split_once('=').expect("%register=place");
            (VReg::from_u32(register[1..].parse().expect("a number")), place(at))
        })
        .collect()
}

/// What did not stay in its file, and where most VGPRs were alive.
fn moved(a: &Allocation) -> String {
    let s = &a.spills;
    let counts = [
        ("rematerialised", s.rematerialised),
        ("to AGPRs", s.to_agprs),
        ("to lanes", s.to_lanes),
        ("to scratch", s.to_scratch),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{n} {what}")).collect();
    if counts.is_empty() {
        return String::new();
    }
    let [sgprs, vgprs, _] = a.peaks;
    let scratch = if s.scratch_bytes > 0 { format!(", {} bytes", s.scratch_bytes) } else { String::new() };
    let (file, peak) = if s.to_lanes > 0 { ("SGPRs", sgprs) } else { ("VGPRs", vgprs) };
    let peak = format!("peak {} {file} at line {}", peak.registers, peak.source);
    format!("; {}{scratch}; {} instructions inserted; {peak}\n", counts.join(", "), s.inserted)
}

fn no_faults(name: &str, faults: Vec<MachineFault>, body: &MachineBody) {
    assert!(faults.is_empty(), "{name}: {faults:#?}\n{}", text::print(body));
}

/// Output of a case, which is the same on all its targets.
fn run(case: &Case) -> String {
    let mut targets: Vec<&str> = option(case, "target").collect();
    if targets.is_empty() {
        targets.push("gfx942");
    }
    let outputs: Vec<String> = targets.iter().map(|target| run_on(case, target)).collect();
    for (target, output) in targets.iter().zip(&outputs) {
        assert_eq!(output, &outputs[0], "{}: {target} differs from {}", case.header[0], targets[0]);
    }
    outputs.into_iter().next().unwrap_or_default()
}

fn run_on(case: &Case, target: &str) -> String {
    let mut body = text::parse(&case.input).unwrap_or_else(|error| panic!("{error}\n{}", case.input));
    let printed = text::print(&body);
    let again = text::print(&text::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}")));
    assert_eq!(printed, again, "print, parse, print");
    let name = case.header[0];
    let chip = Target::from_name(target).unwrap_or_else(|| panic!("no target is called {target}"));
    let target = chip.arch;
    let has = |name| option(case, "promise").any(|promise| promise == name);
    let lds_loads = if has("lds-after-barriers") { LdsLoads::AfterBarriers } else { LdsLoads::Anywhere };
    let xnack = if has("no-xnack") { Xnack::Off } else { Xnack::MayBeOn };
    let mut out = String::new();
    for pass in option(case, "run") {
        let before = body.clone();
        match pass {
            "interleave" => {
                interleave(&mut body, &[], (target, DeviceModel::nearest(chip)));
                no_faults(name, check_order(&before, &body), &body);
            }
            "allocate" => {
                let mut allocator = Allocator::default();
                let inputs = fixed(case);
                match allocator.allocate(&mut body, &limits(case, chip), &inputs) {
                    Ok(a) => {
                        let vcc = if a.vcc { ", vcc" } else { "" };
                        writeln!(out, "; sgprs {}, vgprs {}, agprs {}{vcc}", a.sgprs, a.vgprs, a.agprs)
                            .unwrap();
                        out += &moved(&a);
                        let faults = check_allocation(&Allocated {
                            before: &before,
                            after: &body,
                            origins: allocator.origins(),
                            inputs: &inputs,
                            scratch_bytes: a.spills.scratch_bytes,
                        });
                        no_faults(name, faults, &body);
                        no_faults(name, check_operands(&body, target), &body);
                    }
                    Err(error) => {
                        let at = match &error {
                            AllocationError::Exhausted { peak, .. } => format!(", at line {}", peak.source),
                            _ => String::new(),
                        };
                        return format!("; error: {error}{at}\n");
                    }
                }
            }
            "waits" => {
                let mut inserter = WaitInserter::new(target);
                inserter.set_lds_loads(lds_loads);
                inserter.insert(&mut body);
                no_faults(name, check_waits(&before, &body, target, lds_loads), &body);
            }
            "hazards" => {
                let mut resolver = HazardResolver::new(target);
                resolver.set_xnack(xnack);
                resolver.resolve(&mut body);
                no_faults(name, check_hazards(&body, target), &body);
                if xnack == Xnack::MayBeOn {
                    no_faults(name, check_replay(&body), &body);
                }
                // Moving instructions must not uncover a load.
                if check_waits(&before, &before, target, lds_loads).is_empty() {
                    no_faults(name, check_waits(&body, &body, target, lds_loads), &body);
                }
            }
            "drop-branches" => drop_branches_to_next(&mut body),
            "branches" => {
                drop_branches_to_next(&mut body);
                let mut code = Code::default();
                match encode_body(&body, target, &mut code) {
                    Ok(()) => {
                        let words: Vec<String> =
                            code.words.iter().map(|word| format!("{word:08x}")).collect();
                        writeln!(
                            out,
                            "; {} bytes, blocks at {:?}",
                            code.size(),
                            code.blocks.as_values_slice()
                        )
                        .unwrap();
                        writeln!(out, "; {}", words.join(" ")).unwrap();
                    }
                    Err(error) => return format!("; error: {error}\n"),
                }
            }
            _ => panic!("no pass is called {pass}"),
        }
    }
    out + &text::print(&body)
}

#[test]
fn machine_files() {
    let bless = std::env::var_os("BLESS").is_some();
    let folder = root().join("tests/files/machine");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut count = 0;
    for path in paths {
        let file = std::fs::read_to_string(&path).unwrap();
        let mut blessed = String::new();
        for case in cases(&file) {
            let output = run(&case);
            if !bless {
                assert_eq!(
                    output.trim_end(),
                    case.expected.trim_end(),
                    "{}: {}",
                    path.display(),
                    case.header[0]
                );
            }
            let input = case.input.trim_end();
            let both = as_one(input, &output).unwrap_or_else(|| format!("{input}\n; ---\n{output}"));
            writeln!(blessed, "{}\n{both}", case.header.join("\n")).unwrap();
            count += 1;
        }
        if bless {
            std::fs::write(&path, blessed.trim_end().to_owned() + "\n").unwrap();
        }
    }
    assert!(count >= 350, "only {count} cases");
}

#[test]
fn texts_that_are_no_bodies_are_refused() {
    for (text, line, message) in [
        ("bb1:", 1, "expected bb0"),
        ("s_branch bb1", 1, "there is no bb1"),
        ("s_branch bb4294967295", 1, "there is no bb4294967295"),
        ("v_mov_b32 v0, %4294967295", 1, "%4294967295 is not declared"),
        ("s_nop 0\ns_cbranch_scc1 bb0\ns_branch bb0", 3, "a branch ends its block: expected bb1"),
        ("v_mov_b32 v0, %0", 1, "%0 is not declared"),
        ("v_mov_b32 %0:v1, 0\nv_mov_b32 %0:v1, 0", 2, "%0 is declared twice"),
        ("v_mov_b32 %0[1]:v1, 0", 1, "%0 has 1 registers"),
        ("v_mov_b32 %0:v33, 0", 1, "`%0:v33` is not a register"),
        ("v_mov_b32 %99999999:v1, 0", 1, "`%99999999:v1` is not a register"),
    ] {
        let error = text::parse(text).expect_err(text).to_string();
        let place = format!("line {line}: ");
        assert!(error.starts_with(&place) && error.ends_with(message), "{text}: {error}");
    }
    for text in
        ["v_mfma_f32_32x32x1_2b_f32 a[240:271], v0, v1, 0", "v_mov_b64 v[255:256], 0", "s_mov_b32 s104, 0"]
    {
        assert!(text::parse(text).is_err(), "{text}");
    }
}
