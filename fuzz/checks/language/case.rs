//! A kernel as text with its sizes and options: what it has to be.

use std::fmt;

use groundswell::author::{Kernel, Symbol};
use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::{Verify, compile_uncached};
use groundswell::device::Device;
use groundswell::diagnostic::Kind;
use groundswell::internals::node::{Op, ValueType};
use groundswell::internals::{KernelResults, walk, with_workspace};
use groundswell::options::{GlobalToShared, Options, Schedule};
use groundswell::simulator::FindingKind;
use groundswell::target::Target;

use super::super::{Outcome, stages};
use super::generator::Size;

/// Chips, by the seed of a case.
const CHIPS: [Target; 4] = [Target::GFX942, Target::GFX90A, Target::GFX950, Target::GFX942];

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
                // What the verifier refuses is no mistake of the text.
                let shown: Vec<String> = faults.iter().map(ToString::to_string).collect();
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
        let ran =
            against_interpreter(&kernel, &executable, &device, &value, *seed).map_err(|e| e.to_string())?;
        if is_exact(&kernel, &options) && ran.comparison.max_abs_err > 0.0 {
            return Err(format!("run mode, where all is exact: {:?}", ran.comparison));
        }
        if !ran.comparison.ok {
            return Err(format!("run mode: {:?}", ran.comparison));
        }
        if seed.is_multiple_of(4) {
            let (report, comparison) =
                with_findings(&kernel, &executable, &device, &value, *seed).map_err(|e| e.to_string())?;
            // Waves may load the same small tile.
            let is_note = |kind: &FindingKind| matches!(kind, FindingKind::RepeatedStore { .. });
            if !report.findings.iter().all(|finding| is_note(&finding.kind)) || !comparison.ok {
                return Err(format!("check mode: {comparison:?} {report}"));
            }
        }
        Ok(Outcome::Ran)
    }
}

/// Whether all that a kernel computes is rounded in one way only, as the rows of its operations say.
fn is_exact(kernel: &Kernel, options: &Options) -> bool {
    with_workspace(|workspace| {
        workspace.load(kernel, options);
        let typed = workspace.run(Some("infer_types"), Verify::Off, &mut Vec::new());
        let (world, root) = (&workspace.world, workspace.root);
        typed.is_ok()
            && walk::nodes(world, root).iter().all(|&node| {
                let dtype = world.get::<ValueType>(node).and_then(|ty| ty.dtype);
                let exactness = world.get::<Op>(node).map(|op| op.row().exactness);
                exactness.zip(dtype).is_none_or(|(exactness, dtype)| exactness.is_of(dtype))
            })
    })
}
