//! A kernel of chained products as text, with what it is compiled and run with: what it has to be.

use std::fmt;

use groundswell::author::{Kernel, Symbol};
use groundswell::check::with_findings;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::device::Device;
use groundswell::diagnostic::Kind;
use groundswell::options::{GlobalToShared, MaskedTiles, Options, Schedule, UnitFactors};
use groundswell::simulator::{FindingKind, Limits};
use groundswell::target::Target;

use super::super::{Outcome, stages};

/// Many times what the longest of these kernels takes: a loop that does not end is found soon.
const LIMITS: Limits = Limits { instructions: 20_000_000, time: None };

/// A dimension, its size, and whether only the launch knows it.
pub(super) type Size = (&'static str, i64, bool);

pub(super) struct Case {
    pub(super) text: String,
    pub(super) sizes: Vec<Size>,
    pub(super) target: Target,
    pub(super) schedule: Schedule,
    pub(super) loads: GlobalToShared,
    pub(super) masked: MaskedTiles,
    pub(super) factors: UnitFactors,
    /// How far results may be off, relative to the largest of their row: the factor of a second product may
    /// be rounded to the neighbouring number.
    pub(super) tolerance: f64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { text, sizes, target, schedule, loads, masked, factors, .. } = self;
        writeln!(
            f,
            "; {target} {sizes:?} {schedule:?}, loads to LDS {loads:?}, masked tiles {masked:?}, factors \
             {factors:?}\n{text}"
        )
    }
}

impl Case {
    fn options(&self) -> Options {
        let options = Options::new(self.target)
            .schedule(self.schedule.clone())
            .global_to_shared(self.loads)
            .masked_tiles(self.masked)
            .unit_factors(self.factors);
        self.sizes.iter().fold(options, |options, &(name, size, is_open)| {
            let symbol = Symbol::new(name);
            if is_open { options.dynamic(symbol) } else { options.set(symbol, size) }
        })
    }

    /// What is wrong with it, if anything is.
    pub(super) fn run(&self) -> Result<Outcome, String> {
        let kernel = Kernel::parse(&self.text, "fuzz").map_err(|faults| format!("not read: {faults:?}"))?;
        let options = self.options();
        let verified = compile_uncached(&kernel, &options, Verify::AfterEachPass);
        let executable = match compile_uncached(&kernel, &options, Verify::Off) {
            Err(fault) if fault.kind == Kind::Bug => return Err(format!("compile: {fault}")),
            Err(_) => return Ok(Outcome::Refused),
            Ok(executable) => executable,
        };
        verified.map_err(|fault| format!("compiled, but the verifier says: {fault}"))?;
        let value = |s: Symbol| self.sizes.iter().find(|size| size.0 == s.name()).map(|size| size.1);
        let device = Device::simulator(self.target).with_limits(LIMITS);
        let judged = |seed: u64| {
            let (report, comparison) = with_findings(&kernel, &executable, &device, &value, seed)
                .map_err(|fault| format!("run: {fault}"))?;
            // Waves may load the same small tile.
            let is_note = |kind: &FindingKind| matches!(kind, FindingKind::RepeatedStore { .. });
            if !report.findings.iter().all(|finding| is_note(&finding.kind)) {
                return Err(format!("findings: {report}"));
            }
            match comparison.ok || comparison.max_rel_err <= self.tolerance {
                true => Ok(()),
                false => Err(format!("wrong result: {comparison:?}")),
            }
        };
        // That a last bit decides over a comparison or a rounding is rare: a fault shows with other numbers,
        // too.
        if let Err(fault) = judged(3)
            && judged(1003).is_err()
            && judged(2003).is_err()
        {
            return Err(fault);
        }
        stages::check(&kernel, &options, &executable, &value, self.text.len())?;
        Ok(Outcome::Ran)
    }
}
