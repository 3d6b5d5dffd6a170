//! The simulated compute unit as a trace in Chrome's JSON format, for Perfetto and `chrome://tracing`: a
//! track per wave, grouped by SIMD, and a track per pipe. A microsecond of the trace is a clk.

use serde::Serialize;
use serde_json::{Value, json};

use super::record::Pipe;
use super::report::TimeReport;

/// Process of the pipes; SIMD `i` is process `i + 1`.
const PIPES: u32 = 10;

#[derive(Serialize)]
struct TraceSlice<'a> {
    name: &'a str,
    cat: &'static str,
    ph: &'static str,
    ts: u64,
    dur: u64,
    pid: u32,
    tid: u64,
}

impl TimeReport {
    /// The kept events as a trace; empty tracks if [`events`](super::TimeOptions::events) was not asked for.
    pub fn trace(&self) -> String {
        let timeline = &self.timeline;
        let mut all: Vec<Value> = Vec::new();
        let mut name = |kind: &str, pid: u32, tid: u64, name: String| {
            all.push(json!({"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}));
        };
        for simd in 0..4 {
            name("process_name", simd + 1, 0, format!("SIMD {simd}"));
        }
        name("process_name", PIPES, 0, "pipes".to_owned());
        let seen = timeline.seen();
        for (age, &(workgroup, wave, simd)) in timeline.waves.iter().enumerate().take(seen) {
            let text = format!("workgroup {workgroup} wave {wave}");
            name("thread_name", simd + 1, age as u64, text);
        }
        let mut units: Vec<(Pipe, u8)> = timeline.busy.iter().map(|b| (b.pipe, b.unit)).collect();
        units.sort_unstable();
        units.dedup();
        for &(pipe, unit) in &units {
            name("thread_name", PIPES, track(pipe, unit), format!("{} {unit}", pipe.name()));
        }
        let text = |step: u32| {
            let index = (step as usize).checked_sub(timeline.first);
            index.and_then(|i| self.instructions.get(i)).map_or("", |i| i.text.as_str())
        };
        let mut slices = Vec::new();
        let mut slice = |name, cat, wave: u32, start, end| {
            let simd = timeline.waves.get(wave as usize).map_or(0, |w| w.2);
            let (pid, tid) = (simd + 1, wave.into());
            slices.push(TraceSlice { name, cat, ph: "X", ts: start, dur: end - start, pid, tid });
        };
        for event in &timeline.events {
            slice(text(event.step), "issue", event.wave, event.issued, event.end);
        }
        for wait in &timeline.waits {
            slice(wait.stall.name(), "stall", wait.wave, wait.start, wait.end);
        }
        for busy in &timeline.busy {
            slices.push(TraceSlice {
                name: text(busy.step),
                cat: "pipe",
                ph: "X",
                ts: busy.start,
                dur: busy.end - busy.start,
                pid: PIPES,
                tid: track(busy.pipe, busy.unit),
            });
        }
        slices.sort_by_key(|s| (s.pid, s.tid, s.ts));
        // Numbers and strings: serialising them cannot fail.
        all.extend(slices.iter().filter_map(|slice| serde_json::to_value(slice).ok()));
        json!({"traceEvents": all, "displayTimeUnit": "ms", "otherData": {"unit": "1 us is 1 clk"}})
            .to_string()
    }
}

fn track(pipe: Pipe, unit: u8) -> u64 {
    pipe as u64 * 10 + u64::from(unit)
}
