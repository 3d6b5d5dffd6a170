//! What the process's launches came to, as JSON for `groundswell hip`: written when the process ends, into
//! the directory that `GROUNDSWELL_HIP_REPORT` names, as a file for each process.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use groundswell::simulator::time::TimeReport;
use groundswell::simulator::{CheckReport, Finding, LaunchConfig, LaunchStats, MorePlaces};
use serde_json::{Value, json};

use crate::order::Unordered;
use crate::runtime::runtime_if_used;

/// Most findings, and launches on the line of time, that are kept.
const MOST: usize = 1000;

/// The launches of the process.
#[derive(Default)]
pub struct Report {
    launches: Mutex<Launches>,
}

#[derive(Default)]
struct Launches {
    kernels: BTreeMap<String, KernelLaunches>,
    findings: Vec<ToldCause>,
    notes: Vec<ToldCause>,
    unread: Vec<Unread>,
    faults: Vec<String>,
    warnings: Vec<String>,
    spans: Vec<Value>,
    left_out: usize,
}

/// Findings of one cause, over all launches.
struct ToldCause {
    /// The first one; none for what is no finding of a launch, which has a cause of its own.
    found: Option<Finding>,
    /// The same with its text.
    first: Value,
    /// At other places.
    more: Vec<Value>,
}

impl ToldCause {
    fn to_json(&self) -> Value {
        let mut value = self.first.clone();
        let places = self.more.iter().filter_map(|other| other["at"]["address"].as_u64());
        let more = MorePlaces(&places.collect::<Vec<_>>()).to_string();
        value["text"] = json!(format!("{}{more}", value["text"].as_str().unwrap_or_default()));
        value["more"] = json!(self.more);
        value
    }
}

/// Undefined data that were stored to memory of the device, where nobody has read them so far.
struct Unread {
    found: Finding,
    /// What it is if somebody does.
    finding: Value,
    /// What it is otherwise.
    note: Value,
    bytes: Vec<Range<u64>>,
}

#[derive(Default)]
struct KernelLaunches {
    launches: u64,
    workgroups: u64,
    instructions: u64,
    microseconds: f64,
    /// Launches in time mode that have no time.
    untimed: u64,
    /// A launch has accessed something past the end of an allocation.
    past_end: bool,
    /// That of the longest launch in time mode.
    time: Option<(f64, Value)>,
}

impl Launches {
    fn keep<T>(list: &mut Vec<T>, left_out: &mut usize, value: T) {
        match list.len() < MOST {
            true => list.push(value),
            false => *left_out += 1,
        }
    }

    /// Keeps a finding unless it is known; with those of its cause, if there are some.
    fn add(list: &mut Vec<ToldCause>, left_out: &mut usize, found: Finding, value: Value) {
        let is_of =
            |cause: &&mut ToldCause| cause.found.as_ref().is_some_and(|known| known.cause() == found.cause());
        match list.iter_mut().find(is_of) {
            Some(known) if std::iter::once(&known.first).chain(&known.more).any(|old| same(old, &value)) => {}
            Some(known) => Launches::keep(&mut known.more, left_out, value),
            None => {
                let cause = ToldCause { found: Some(found), first: value, more: Vec::new() };
                Launches::keep(list, left_out, cause);
            }
        }
    }

    /// The notes, among them what nobody has read so far.
    fn all_notes(&self) -> Vec<Value> {
        let mut unread = Vec::new();
        for it in &self.unread {
            Launches::add(&mut unread, &mut 0, it.found.unread(), it.note.clone());
        }
        self.notes.iter().chain(&unread).map(ToldCause::to_json).collect()
    }

    fn kernel(&mut self, name: &str) -> &mut KernelLaunches {
        self.kernels.entry(name.to_owned()).or_default()
    }
}

fn workgroups(config: &LaunchConfig) -> u64 {
    config.grid.iter().map(|&size| u64::from(size)).product()
}

impl Report {
    fn launches(&self) -> MutexGuard<'_, Launches> {
        // A poisoned lock guards lists that are whole after each change.
        self.launches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A launch in run mode.
    pub fn ran(&self, name: &str, config: &LaunchConfig, stats: &LaunchStats) {
        let mut launches = self.launches();
        let kernel = launches.kernel(name);
        kernel.launches += 1;
        kernel.workgroups += workgroups(config);
        kernel.instructions += stats.instructions;
        if let Some((base, bytes)) = stats.past_end
            && !std::mem::replace(&mut kernel.past_end, true)
        {
            let warning = format!(
                "`{name}` accesses memory past the end of an allocation ({bytes} bytes at {base:#x}), in its last page; \
                 hardware does not notice, check mode says where"
            );
            eprintln!("groundswell: {warning}");
            launches.warnings.push(warning);
        }
    }

    /// A launch in check mode. The same finding of several launches of a kernel is told once. `is_private`
    /// says which memory the host sees only by copying; `explain` adds to the text of a finding what the
    /// host knows.
    pub fn checked(
        &self,
        name: &str,
        config: &LaunchConfig,
        report: &CheckReport,
        is_private: impl Fn(u64) -> bool,
        explain: impl Fn(&Finding) -> String,
    ) {
        let mut launches = self.launches();
        let kernel = launches.kernel(name);
        kernel.launches += 1;
        kernel.workgroups += workgroups(config);
        kernel.instructions += report.instructions;
        let told = |finding: &Finding| {
            let mut value = json!(finding);
            value["kernel"] = json!(name);
            value["text"] = json!(finding.to_string() + &explain(finding));
            value
        };
        let Launches { findings, notes, unread, left_out, .. } = &mut *launches;
        for finding in &report.findings {
            let value = told(finding);
            let stored = finding.stored.as_ref();
            match stored.filter(|bytes| bytes.iter().all(|range| is_private(range.start))) {
                Some(bytes) => match unread.iter_mut().find(|known| same(&known.finding, &value)) {
                    Some(known) => known.bytes.extend_from_slice(bytes),
                    None => {
                        let note = told(&finding.unread());
                        let found = finding.clone();
                        unread.push(Unread { found, finding: value, note, bytes: bytes.clone() });
                    }
                },
                None => Launches::add(findings, left_out, finding.clone(), value),
            }
        }
        report.notes.iter().for_each(|note| Launches::add(notes, left_out, note.clone(), told(note)));
        drop(launches);
        if !report.findings.is_empty() {
            self.write();
        }
    }

    /// Two operations of the program that nothing orders.
    pub(crate) fn unordered(&self, found: &Unordered) {
        let mut launches = self.launches();
        let Launches { findings, left_out, .. } = &mut *launches;
        let cause = ToldCause { found: None, first: found.to_json(), more: Vec::new() };
        Launches::keep(findings, left_out, cause);
        drop(launches);
        self.write();
    }

    /// The host reads memory of the device; `is_written` says whether something defined is there. Undefined
    /// data that somebody reads are a finding.
    pub fn read(&self, bytes: Range<u64>, is_written: impl Fn(Range<u64>) -> bool) {
        let mut launches = self.launches();
        let Launches { findings, unread, left_out, .. } = &mut *launches;
        let before = unread.len();
        unread.retain_mut(|stored| {
            let read = stored.bytes.iter().any(|range| {
                let both = range.start.max(bytes.start)..range.end.min(bytes.end);
                !both.is_empty() && !is_written(both)
            });
            if read {
                Launches::add(findings, left_out, stored.found.clone(), stored.finding.take());
            }
            !read
        });
        let is_new = unread.len() < before;
        drop(launches);
        if is_new {
            self.write();
        }
    }

    /// A launch in time mode, which began at `begin` of the device's time.
    pub fn timed(&self, name: &str, begin: Duration, report: &TimeReport) {
        let microseconds = report.estimate.microseconds_with_launch;
        let mut launches = self.launches();
        let kernel = launches.kernel(name);
        kernel.microseconds += microseconds;
        if kernel.time.as_ref().is_none_or(|(longest, _)| microseconds > *longest) {
            kernel.time = Some((microseconds, json!(report)));
        }
        let span = json!({
            "name": name, "ph": "X", "pid": std::process::id(), "tid": 0,
            "ts": begin.as_nanos() as f64 / 1e3, "dur": microseconds,
            "args": { "grid": report.grid, "block": report.block },
        });
        let Launches { spans, left_out, .. } = &mut *launches;
        Launches::keep(spans, left_out, span);
    }

    /// A launch that has no time, because its estimate came to no end.
    pub fn untimed(&self, name: &str, reason: &str) {
        let mut launches = self.launches();
        let kernel = launches.kernel(name);
        kernel.untimed += 1;
        if kernel.untimed == 1 {
            eprintln!(
                "groundswell: a launch of `{name}` is not timed, it waits for what is not simulated: {reason}"
            );
        }
    }

    /// A launch that failed. It is written at once: who fails may not come to a proper end.
    pub fn failed(&self, name: &str, error: &str) {
        let mut launches = self.launches();
        launches.kernel(name).launches += 1;
        if launches.faults.len() < MOST {
            launches.faults.push(error.to_owned());
        }
        drop(launches);
        self.write();
    }

    /// Writes the report, if one is asked for.
    fn write(&self) {
        let Some(directory) = std::env::var_os("GROUNDSWELL_HIP_REPORT") else { return };
        let path = PathBuf::from(directory).join(format!("{}.json", std::process::id()));
        if let Err(error) = std::fs::write(&path, self.to_json().to_string()) {
            eprintln!("groundswell: cannot write {}: {error}", path.display());
        }
    }

    /// All of it.
    pub fn to_json(&self) -> Value {
        let launches = self.launches();
        let kernels = launches.kernels.iter().map(|(name, kernel)| {
            json!({
                "kernel": name,
                "launches": kernel.launches,
                "workgroups": kernel.workgroups,
                "instructions": kernel.instructions,
                "us": kernel.microseconds,
                "untimed": kernel.untimed,
                "time": kernel.time.as_ref().map(|(_, report)| report),
            })
        });
        json!({
            "process": std::process::id(),
            "program": std::env::args_os().next().unwrap_or_default().to_string_lossy(),
            "kernels": kernels.collect::<Vec<_>>(),
            "findings": launches.findings.iter().map(ToldCause::to_json).collect::<Vec<_>>(),
            "notes": launches.all_notes(),
            "faults": launches.faults,
            "warnings": launches.warnings,
            "trace": launches.spans,
            "left_out": launches.left_out,
        })
    }

    /// Has the report written when the process ends.
    pub(crate) fn write_at_exit() {
        extern "C" fn write() {
            // A process that was forked from the one that has launched kernels has nothing to tell.
            if let Some(runtime) = runtime_if_used().filter(|runtime| runtime.process == std::process::id()) {
                runtime.report.write();
            }
        }
        // SAFETY: the function takes nothing and touches only what lives as long as the process. If the
        // system has no room for it, there is no report.
        unsafe { libc::atexit(write) };
    }
}

/// Whether two findings are the same but for lanes, waves and addresses: of one kind, at one instruction.
fn same(a: &Value, b: &Value) -> bool {
    ["kernel", "kind", "at", "text"].iter().all(|&key| a[key] == b[key])
}
