//! The state of a process: its simulated device, made at the first call that needs it.
//!
//! Settings come from the environment, because the program knows nothing of them; `groundswell hip` sets
//! them:
//!
//! | variable | |
//! | --- | --- |
//! | `GROUNDSWELL_HIP_TARGET` | the chip; without it the first one that the program has code for |
//! | `GROUNDSWELL_HIP_MODE` | `run`, `check` or `time` |
//! | `GROUNDSWELL_HIP_SEED` | of check mode |
//! | `GROUNDSWELL_HIP_ORDER` | of the waves of a workgroup in run mode |
//! | `GROUNDSWELL_HIP_BUDGET` | instructions that a wave may execute |
//! | `GROUNDSWELL_HIP_TIMEOUT` | seconds that all launches of the process may take together |
//! | `GROUNDSWELL_HIP_PROGRESS` | not empty: long launches show on a terminal how far they are |
//! | `GROUNDSWELL_HIP_REPORT` | a directory for a report of each process |
//! | `GROUNDSWELL_HIP_LOG` | reasons of errors on standard error |
//! | `HSA_XNACK` | as for AMD's runtime: 1 is a chip that retries after page faults, 0 one that does not |

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use groundswell::simulator::{Limits, Simulator, WaveOrder};
use groundswell::target::{FeatureSetting, Target, TargetId};

use crate::contexts::Context;
use crate::error::{Code, HipError, HipResult};
use crate::graph_runs::Exec;
use crate::handles::{HandleKind, Handles};
use crate::modules::{LoadedFunction, LoadedModule};
use crate::order::Order;
use crate::pools::Pool;
use crate::registration::Registered;
use crate::report::Report;
use crate::reservations::Physical;
use crate::space::AddressSpace;
use crate::streams::{Event, Stream};

/// A version of HIP that a library stands for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum HipVersion {
    V5,
    V6,
    V7,
}

impl HipVersion {
    /// The number that `hipRuntimeGetVersion` answers: that of the last release with this soname that was
    /// looked at, 5.2.21153 of Debian, 6.4.43484, and 7.2.53211 of ROCm 7.2.4.
    pub fn number(self) -> i32 {
        match self {
            HipVersion::V5 => 50_221_153,
            HipVersion::V6 => 60_443_484,
            HipVersion::V7 => 70_253_211,
        }
    }
}

static VERSION: OnceLock<HipVersion> = OnceLock::new();

/// Sets the version that the library stands for; the first one holds.
pub(crate) fn set_version(version: HipVersion) {
    let _ = VERSION.set(version);
}

/// The version that the library stands for.
pub(crate) fn version() -> HipVersion {
    *VERSION.get_or_init(|| HipVersion::V6)
}

/// How kernels are launched.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Fast.
    Run,
    /// In an adversarial order, with findings.
    Check,
    /// As in `run`, and timed.
    Time,
}

/// What the environment says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The chip.
    pub target: Option<TargetId>,
    /// How kernels are launched.
    pub mode: Mode,
    /// Seed of check mode.
    pub seed: u64,
    /// Order of the waves of a workgroup in run mode.
    pub order: WaveOrder,
    /// Limits: instructions of a wave, and time of all launches together.
    pub limits: Limits,
    /// Long launches show how far they are.
    pub progress: bool,
    /// Whether the chip retries memory accesses after page faults, where its name leaves that open.
    pub xnack: FeatureSetting,
}

impl Settings {
    /// Reads them through `variable`.
    ///
    /// # Errors
    /// One of them has a value that is not known, which is named.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let parse = |name: &str| variable(name).filter(|value| !value.is_empty());
        let wrong = |name: &str, value: &str, known: &str| format!("{name} is `{value}`, not {known}");
        let target = match parse("GROUNDSWELL_HIP_TARGET") {
            None => None,
            Some(name) => {
                let known = || Target::ALL.map(|target| target.name).join(", ");
                let id: TargetId =
                    name.parse().map_err(|_| wrong("GROUNDSWELL_HIP_TARGET", &name, &known()))?;
                Some(id.chip())
            }
        };
        let mode = match parse("GROUNDSWELL_HIP_MODE").as_deref() {
            None | Some("run") => Mode::Run,
            Some("check") => Mode::Check,
            Some("time") => Mode::Time,
            Some(other) => return Err(wrong("GROUNDSWELL_HIP_MODE", other, "run, check or time")),
        };
        let number = |name: &str| match parse(name) {
            None => Ok(None),
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| wrong(name, &text, "a number")),
        };
        let mut limits = Limits::default();
        if let Some(budget) = number("GROUNDSWELL_HIP_BUDGET")? {
            limits.instructions = budget;
        }
        if let Some(text) = parse("GROUNDSWELL_HIP_TIMEOUT") {
            let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let time =
                seconds.ok_or_else(|| wrong("GROUNDSWELL_HIP_TIMEOUT", &text, "a number of seconds"))?;
            limits.time = Some(time);
        }
        let progress = parse("GROUNDSWELL_HIP_PROGRESS").is_some();
        // ROCr takes what is neither 0 nor 1 for nothing (core/util/flag.h).
        let xnack = match parse("HSA_XNACK").as_deref() {
            Some("0") => FeatureSetting::Off,
            Some("1") => FeatureSetting::On,
            _ => FeatureSetting::Any,
        };
        let seed = number("GROUNDSWELL_HIP_SEED")?.unwrap_or(0);
        let order = match parse("GROUNDSWELL_HIP_ORDER") {
            None => WaveOrder::default(),
            Some(text) => {
                text.parse().map_err(|reason| format!("GROUNDSWELL_HIP_ORDER is unknown: {reason}"))?
            }
        };
        Ok(Settings { target, mode, seed, order, limits, progress, xnack })
    }

    /// The chip that is simulated: the one that is named, the first one that the program has code for, or the
    /// usual one.
    pub(crate) fn chip(&self, registered: impl FnOnce() -> Option<TargetId>) -> TargetId {
        self.set_up(self.target.or_else(registered).unwrap_or(Target::USUAL.into()).chip())
    }

    /// The chip, with the mode of XNACK that it is set up in if its name leaves that open and it has one.
    fn set_up(&self, chip: TargetId) -> TargetId {
        match chip.xnack() {
            FeatureSetting::Any => chip.with_xnack(self.xnack).unwrap_or(chip),
            FeatureSetting::Unsupported | FeatureSetting::Off | FeatureSetting::On => chip,
        }
    }
}

/// The device of the process and what belongs to it.
pub(crate) struct Runtime {
    pub settings: Settings,
    pub target: TargetId,
    simulator: RwLock<Simulator>,
    pub space: AddressSpace,
    pub modules: Handles<LoadedModule>,
    pub functions: Handles<LoadedFunction>,
    pub streams: Handles<Stream>,
    pub events: Handles<Event>,
    pub execs: Handles<Exec>,
    pub pools: Handles<Pool>,
    pub contexts: Handles<Context>,
    pub physical: Handles<Physical>,
    pub report: Report,
    /// In check mode: what comes before what.
    pub order: Option<Order>,
    /// Who has made it: a process that is forked off has it, too.
    pub process: u32,
    /// The error of a kernel, which every later call that uses the device answers with until it is reset.
    fault: AtomicI32,
    /// Nanoseconds of the host that launches have taken.
    spent: AtomicU64,
    /// Kernels that were launched.
    launches: AtomicU64,
    /// In time mode: picoseconds that kernels have taken.
    simulated: AtomicU64,
    begin: Instant,
}

static RUNTIME: OnceLock<Result<Runtime, HipError>> = OnceLock::new();

/// The process's runtime.
///
/// # Errors
/// The settings are wrong.
pub(crate) fn runtime() -> HipResult<&'static Runtime> {
    let runtime = RUNTIME.get_or_init(|| {
        let runtime = Runtime::new();
        if let Err(error) = &runtime {
            eprintln!("groundswell: {error}");
        }
        runtime
    });
    runtime.as_ref().map_err(Clone::clone)
}

/// The process's runtime, if something has asked for it.
pub(crate) fn runtime_if_used() -> Option<&'static Runtime> {
    RUNTIME.get().and_then(|runtime| runtime.as_ref().ok())
}

impl Runtime {
    fn new() -> HipResult<Runtime> {
        let settings = Settings::read(|name| std::env::var(name).ok())
            .map_err(|reason| HipError::new(Code::NotInitialized, reason))?;
        let target = settings.chip(Registered::first_target);
        Report::write_at_exit();
        Ok(Runtime {
            order: (settings.mode == Mode::Check).then(Order::default),
            settings,
            target,
            simulator: RwLock::new(Simulator::new(target)),
            space: AddressSpace::new(),
            modules: Handles::new(HandleKind::Module),
            functions: Handles::new(HandleKind::Function),
            streams: Handles::new(HandleKind::Stream),
            events: Handles::new(HandleKind::Event),
            execs: Handles::new(HandleKind::Exec),
            pools: Handles::new(HandleKind::Pool),
            contexts: Handles::new(HandleKind::Context),
            physical: Handles::new(HandleKind::Physical),
            report: Report::default(),
            process: std::process::id(),
            fault: AtomicI32::new(0),
            spent: AtomicU64::new(0),
            launches: AtomicU64::new(0),
            simulated: AtomicU64::new(0),
            begin: Instant::now(),
        })
    }

    /// The simulator, for launches and copies.
    pub(crate) fn simulator(&self) -> RwLockReadGuard<'_, Simulator> {
        // A launch that panicked has left bytes of memory undecided, nothing else.
        self.simulator.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The simulator, for what adds memory to it or takes some away.
    pub(crate) fn simulator_to_change(&self) -> RwLockWriteGuard<'_, Simulator> {
        self.simulator.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many kernels were launched so far.
    pub(crate) fn launches(&self) -> u64 {
        self.launches.load(Relaxed)
    }

    /// Notes that a kernel is launched.
    pub(crate) fn count_launch(&self) {
        self.launches.fetch_add(1, Relaxed);
    }

    /// The host waits for all that the device was given.
    pub(crate) fn host_waits(&self) {
        if let Some(order) = &self.order {
            order.host_waits_for_all();
        }
    }

    /// Notes that a kernel has failed.
    pub(crate) fn fail(&self, code: Code) {
        self.fault.store(code as i32, Relaxed);
    }

    /// The device is reset.
    pub(crate) fn forget_fault(&self) {
        self.fault.store(0, Relaxed);
    }

    /// An error if a kernel has failed.
    pub(crate) fn check_for_fault(&self) -> HipResult {
        match self.fault.load(Relaxed) {
            0 => Ok(()),
            code if code == Code::IllegalAddress as i32 => {
                Err(HipError::new(Code::IllegalAddress, "a kernel has accessed memory that is not there"))
            }
            code if code == Code::LaunchTimeOut as i32 => {
                Err(HipError::new(Code::LaunchTimeOut, "a kernel came to no end"))
            }
            _ => Err(HipError::new(Code::LaunchFailure, "a kernel has failed")),
        }
    }

    /// Time of the host that launches have taken.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Relaxed))
    }

    /// A launch has taken that much time of the host.
    pub(crate) fn spend(&self, time: Duration) {
        self.spent.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    /// Time of the device: that of its kernels in time mode, otherwise that of the host.
    pub(crate) fn clock(&self) -> Duration {
        match self.settings.mode {
            Mode::Time => Duration::from_nanos(self.simulated.load(Relaxed) / 1000),
            Mode::Run | Mode::Check => self.begin.elapsed(),
        }
    }

    /// A kernel has taken that many microseconds of the device.
    pub(crate) fn pass(&self, microseconds: f64) {
        self.simulated.fetch_add((microseconds * 1e6) as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(values: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::read(|name| values.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn settings_are_read_and_wrong_ones_named() {
        let defaults = settings(&[]).expect("nothing is asked for");
        assert_eq!((defaults.target, defaults.mode, defaults.seed), (None, Mode::Run, 0));
        assert!(!defaults.progress);
        let all = settings(&[
            ("GROUNDSWELL_HIP_TARGET", "gfx90a:xnack-"),
            ("GROUNDSWELL_HIP_MODE", "check"),
            ("GROUNDSWELL_HIP_SEED", "7"),
            ("GROUNDSWELL_HIP_ORDER", "last-to-first"),
            ("GROUNDSWELL_HIP_BUDGET", "99"),
            ("GROUNDSWELL_HIP_TIMEOUT", "1.5"),
            ("GROUNDSWELL_HIP_PROGRESS", "1"),
        ])
        .expect("all are right");
        assert_eq!(all.target.map(|id| id.to_string()), Some("gfx90a:xnack-".to_owned()));
        assert_eq!((all.mode, all.seed, all.limits.instructions), (Mode::Check, 7, 99));
        assert_eq!((defaults.order, all.order), (WaveOrder::default(), WaveOrder::LastToFirst));
        assert_eq!((all.limits.time, all.progress), (Some(Duration::from_millis(1500)), true));
        for (variable, chip, is) in [
            ("1", "gfx90a", "gfx90a:xnack+"),
            ("0", "gfx90a", "gfx90a:xnack-"),
            ("1", "gfx90a:xnack-", "gfx90a:xnack-"),
            ("yes", "gfx90a", "gfx90a"),
        ] {
            let settings = settings(&[("HSA_XNACK", variable)]).expect("nothing else is asked for");
            assert_eq!(settings.set_up(chip.parse().expect("it is a chip")).to_string(), is);
        }
        for (name, value, says) in [
            ("GROUNDSWELL_HIP_TARGET", "gfx1100", "gfx942"),
            ("GROUNDSWELL_HIP_MODE", "fast", "run, check or time"),
            ("GROUNDSWELL_HIP_SEED", "x", "a number"),
            ("GROUNDSWELL_HIP_ORDER", "sorted", "round-robin"),
            ("GROUNDSWELL_HIP_TIMEOUT", "-1", "a number of seconds"),
        ] {
            let reason = settings(&[(name, value)]).expect_err(value);
            assert!(reason.contains(name) && reason.contains(says), "{reason}");
        }
    }
}
