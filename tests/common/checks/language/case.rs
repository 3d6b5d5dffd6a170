//! A kernel as text with its sizes and options: what it has to be.

use std::fmt;

use groundswell::author::{Kernel, Symbol};
use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::{Verify, compile_uncached};
use groundswell::device::Device;
use groundswell::diagnostic::Kind;
use groundswell::internals::node::{Op, Operands, ValueType};
use groundswell::internals::{KernelResults, walk, with_workspace};
use groundswell::options::{GlobalToShared, Options, Schedule};
use groundswell::simulator::FindingKind;
use groundswell::target::Target;

use super::super::{Outcome, stages};
use super::generator::Size;

/// Chips, by the seed of a case.
const CHIPS: [Target; 6] =
    [Target::GFX942, Target::GFX90A, Target::GFX950, Target::GFX908, Target::GFX942, Target::GFX906];

/// Operations that make floats whole.
const WHOLE: [&str; 5] = ["floor", "ceil", "trunc", "round", "round_even"];

#[derive(Clone)]
pub(super) struct Case {
    pub(super) text: String,
    pub(super) sizes: Vec<Size>,
    pub(super) schedule: Schedule,
    pub(super) loads: GlobalToShared,
    pub(super) seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { text, sizes, schedule, loads, seed } = self;
        let target = self.target();
        writeln!(f, "; {target} {sizes:?} {schedule:?}, loads to LDS {loads:?}, seed {seed}\n{text}")
    }
}

impl Case {
    fn target(&self) -> Target {
        CHIPS[self.seed as usize / 8 % CHIPS.len()]
    }

    /// What is wrong with it, if anything is.
    pub(super) fn run(&self) -> Result<Outcome, String> {
        let Case { text, sizes, schedule, loads, seed } = self;
        let kernel = match Kernel::parse(text, "fuzz") {
            Ok(kernel) => kernel,
            Err(faults) => {
                // What the verifier refuses is no mistake of the text, and neither is a dimension along
                // which elements cannot share a unit.
                let shown: Vec<String> = faults.iter().map(ToString::to_string).collect();
                let along = |fault: &String| {
                    ["f4e2m1", "f6e2m3", "f6e3m2"]
                        .iter()
                        .any(|dtype| fault.contains(&format!("is {dtype}, and its last dimension")))
                };
                if shown.iter().all(along) {
                    return Ok(Outcome::Refused);
                }
                return Err(format!("not read: {}", shown.join("\n")));
            }
        };
        let options = Options::new(self.target()).schedule(schedule.clone());
        let mut options = options.global_to_shared(*loads);
        for (name, size, is_open) in sizes {
            let symbol = Symbol::new(name);
            options = if *is_open { options.dynamic(symbol) } else { options.set(symbol, *size) };
        }
        let executable = match compile_uncached(&kernel, &options, Verify::AfterEachPass) {
            Ok(executable) => executable,
            Err(fault) if fault.kind == Kind::Bug => return Err(format!("compile: {fault}")),
            Err(_) => return Ok(Outcome::Refused),
        };
        let device = Device::simulator(self.target());
        let value = |s: Symbol| sizes.iter().find(|size| size.0 == s.name()).map(|size| size.1);
        // All of them would take too long.
        if seed.is_multiple_of(8) {
            stages::compare(&kernel, &options, KernelResults::of(&kernel, &options, &value, *seed))?;
        }
        let rounding = Rounding::of(&kernel, &options);
        let compared = |seed: u64| {
            let ran = against_interpreter(&kernel, &executable, &device, &value, seed)
                .map_err(|e| e.to_string())?;
            match rounding {
                Rounding::Exact if ran.comparison.max_abs_err > 0.0 => {
                    Err(format!("run mode, where all is exact: {:?}", ran.comparison))
                }
                _ if !ran.comparison.ok => Err(format!("run mode: {:?}", ran.comparison)),
                _ => Ok(()),
            }
        };
        rounding.judge(*seed, compared)?;
        // Races between tiles are seen in no other mode.
        if seed.is_multiple_of(4) || text.contains("persistent") {
            let checked = |seed: u64| {
                let (report, comparison) =
                    with_findings(&kernel, &executable, &device, &value, seed).map_err(|e| e.to_string())?;
                // Waves may load the same small tile.
                let is_note = |kind: &FindingKind| matches!(kind, FindingKind::RepeatedStore { .. });
                if !report.findings.iter().all(|finding| is_note(&finding.kind)) || !comparison.ok {
                    return Err(format!("check mode: {comparison:?} {report}"));
                }
                Ok(())
            };
            rounding.judge(*seed, checked)?;
        }
        Ok(Outcome::Ran)
    }
}

/// How much of a kernel's results the rows of its operations promise.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Rounding {
    /// All that it computes is rounded in one way only: results are compared bit by bit.
    Exact,
    /// Something may be rounded in several ways, and results are close to each other.
    Near,
    /// As `Near`, and floats become whole numbers or conditions, so that a last bit may decide over a result.
    Deciding,
}

impl Rounding {
    fn of(kernel: &Kernel, options: &Options) -> Rounding {
        with_workspace(|workspace| {
            workspace.load(kernel, options);
            if workspace.run(Some("infer_types"), Verify::Off, &mut Vec::new()).is_err() {
                return Rounding::Near;
            }
            let (world, root) = (&workspace.world, workspace.root);
            let nodes = walk::nodes(world, root);
            let dtype_of = |node| world.get::<ValueType>(node).and_then(|ty| ty.dtype);
            let is_exact = |node| {
                let exactness = world.get::<Op>(node).map(|op| op.row().exactness);
                exactness.zip(dtype_of(node)).is_none_or(|(exactness, dtype)| exactness.is_of(dtype))
            };
            let is_float = |node| dtype_of(node).is_some_and(|dtype| dtype.is_float());
            let decides = |node| {
                let has_floats = |operands: &Operands| operands.0.iter().any(|&operand| is_float(operand));
                let makes_whole = |op: &Op| WHOLE.contains(&op.row().word);
                let reads_floats = world.get::<Operands>(node).is_some_and(has_floats);
                reads_floats && !is_float(node) || world.get::<Op>(node).is_some_and(makes_whole)
            };
            match nodes.iter().all(|&node| is_exact(node)) {
                true => Rounding::Exact,
                false if nodes.iter().any(|&node| decides(node)) => Rounding::Deciding,
                false => Rounding::Near,
            }
        })
    }
    /// Whether what is found of a kernel with the numbers of a seed is a fault. One shows with other numbers,
    /// too; that a last bit decides is rare.
    fn judge(self, seed: u64, found: impl Fn(u64) -> Result<(), String>) -> Result<(), String> {
        match found(seed) {
            Err(_) if self == Rounding::Deciding => {
                (1..=2).try_for_each(|other| found(seed.wrapping_add(other * 1000)))
            }
            found => found,
        }
    }
}
