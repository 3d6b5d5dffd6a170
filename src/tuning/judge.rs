//! What a candidate takes: its kernels are compiled, and a sample of time mode judges them.

use super::template::InstanceKernel;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::passes::workspace::Verify;
use crate::runtime::check::timed;
use crate::runtime::compile::compile_uncached;
use crate::runtime::device::Device;
use crate::runtime::executable::Executable;
use crate::runtime::sim::time::{Estimate, Fidelity, Pipe, TimeOptions, TimeReport};

/// The time of a candidate, and what it consists of.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CandidateTime {
    /// Microseconds of all its launches, with what launching costs.
    pub microseconds: f64,
    /// The resource that bounds the main loop of the longest launch, if it has one.
    pub bound: Option<&'static str>,
    /// Parts of the time of the longest launch.
    pub shares: TimeShares,
    /// Registers of a lane: vector ones and accumulation ones.
    pub registers: [u32; 2],
    /// Bytes of LDS of a workgroup.
    pub lds_bytes: u32,
    /// Bytes of scratch of a lane: what did not fit into registers.
    pub scratch_bytes: u32,
    /// Launches.
    pub launches: u32,
    /// False if branches depend on what is computed, so that everything was executed on random data.
    pub sampled: bool,
}

/// Parts of the time of a launch, between 0 and 1.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TimeShares {
    /// Matrix cores of a compute unit are busy.
    pub matrix: f64,
    /// Vector ALUs are.
    pub valu: f64,
    /// LDS is.
    pub lds: f64,
    /// The path to vector memory is.
    pub vector_memory: f64,
    /// Waves are in the main loop.
    pub main_loop: f64,
    /// Compute units have nothing to do because the last round of workgroups is not full.
    pub tail: f64,
}

impl CandidateTime {
    /// In what this time is better than another one most, if it is by a per cent at least.
    pub(super) fn advantage(&self, other: &CandidateTime) -> Option<String> {
        let (own, others) = (&self.shares, &other.shares);
        // Each with what it says of the better one, and whether more of it is better.
        let differences = [
            ("its matrix cores are busy for", own.matrix, others.matrix, 1.0),
            ("its waves are in the main loop for", own.main_loop, others.main_loop, 1.0),
            ("its last round leaves idle", own.tail, others.tail, -1.0),
        ];
        let gain = |&(_, own, other, better): &(&str, f64, f64, f64)| better * (own - other);
        let widest = differences.iter().max_by(|a, b| gain(a).total_cmp(&gain(b)));
        if let Some(&(text, own, other, _)) = widest.filter(|widest| gain(widest) >= LEAST_SHARE) {
            return Some(format!("{text} {:.0} % instead of {:.0}", 100.0 * own, 100.0 * other));
        }
        let (own, others) = (self.launches, other.launches);
        (own < others).then(|| format!("launches: {own} instead of {others}"))
    }
}

/// Shares of the time that differ by less are the same.
const LEAST_SHARE: f64 = 0.01;

/// Judges the kernels of a candidate, of whose workgroups `rounds` rounds are simulated.
///
/// # Errors
/// A kernel that does not compile or whose launch is refused.
pub(super) fn judge(kernels: &[InstanceKernel], options: &TimeOptions) -> Result<CandidateTime, Diagnostic> {
    let device = Device::simulator(options.device.target);
    let mut judged: Option<(f64, CandidateTime)> = None;
    let mut microseconds = 0.0;
    for kernel in kernels {
        let executable = compile_uncached(&kernel.kernel, &kernel.options, Verify::Off)?;
        let report = time(&executable, kernel, &device, options)?;
        let own = report.estimate.microseconds;
        microseconds += report.estimate.microseconds_with_launch;
        if judged.as_ref().is_none_or(|longest| longest.0 < own) {
            judged = Some((own, of_launch(&executable, &report)));
        }
    }
    let Some((_, mut longest)) = judged else {
        return Err(Diagnostic::invalid("the template has made no kernel")
            .help("return at least one kernel from `Template::instantiate`"));
    };
    (longest.microseconds, longest.launches) = (microseconds, kernels.len() as u32);
    Ok(longest)
}

fn time(
    executable: &Executable,
    kernel: &InstanceKernel,
    device: &Device,
    options: &TimeOptions,
) -> Result<TimeReport, Diagnostic> {
    let value = |symbol: Symbol| kernel.sizes.iter().find(|size| size.0 == symbol).map(|size| size.1);
    timed(executable, device, &value, 0, options)
}

/// The estimate for one launch, as a candidate's.
fn of_launch(executable: &Executable, time: &TimeReport) -> CandidateTime {
    let report = executable.report();
    let utilisation = |pipe| time.pipes.iter().find(|p| p.pipe == pipe).map_or(0.0, |p| p.utilisation);
    let Estimate { rounds, .. } = time.estimate;
    let lives: u64 = time.unit.waves.iter().map(|wave| wave.end - wave.start).sum();
    let in_loop = time.main_loop.as_ref().map_or(0.0, |it| it.clk_per_iteration * it.iterations as f64);
    CandidateTime {
        microseconds: 0.0,
        bound: time.main_loop.as_ref().map(|it| it.bound.name),
        shares: TimeShares {
            matrix: utilisation(Pipe::Matrix),
            valu: utilisation(Pipe::Valu),
            lds: utilisation(Pipe::Lds),
            vector_memory: utilisation(Pipe::Vector),
            main_loop: (in_loop / lives.max(1) as f64).min(1.0),
            tail: 1.0 - rounds / rounds.ceil().max(1.0),
        },
        registers: [report.vgprs, report.agprs],
        lds_bytes: report.lds_bytes,
        scratch_bytes: report.scratch_bytes,
        launches: 1,
        sampled: time.extent.fidelity == Fidelity::Sampled,
    }
}
