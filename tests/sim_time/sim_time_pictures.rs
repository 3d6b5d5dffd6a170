//! The trace and the page of time mode: the complete life of every wave, and the stalls of the report.

use std::collections::BTreeMap;

use groundswell::simulator::time::{DeviceModel, Stall, TimeOptions, TimeReport};
use groundswell_testing::timed::{Loop, gemm, repeat};
use serde_json::Value;

/// A kernel whose waves reach their barriers at different times, and which idles, sleeps, branches and ends
/// with stores under way.
fn uneven() -> TimeReport {
    let prologue = "v_lshlrev_b32 v1, 4, v0\n    v_and_b32 v2, 0xff, v1";
    let body = repeat(
        "global_load_dwordx4 v[4:7], v1, s[4:5]
    s_waitcnt vmcnt(0)
    s_barrier
    v_mfma_f32_16x16x16_bf16 v[16:19], v[20:21], v[22:23], v[16:19]
    v_add_f32 v24, v16, v26
    ds_write_b64 v2, v[4:5]
    s_nop 7
    s_sleep 1
    s_barrier
    global_store_dword v1, v24, s[4:5]",
        3,
    );
    let kernel = Loop {
        prologue,
        body,
        waves: 6,
        workgroups: 700,
        iterations: 4,
        buffer: &[0; 16384],
        ..Loop::default()
    };
    kernel.run_with(&TimeOptions::new(DeviceModel::MI300X).events(1_000_000)).expect("runs")
}

fn reports() -> [TimeReport; 2] {
    let gemm = gemm(DeviceModel::MI300X, 512, [128, 128, 32]);
    [uneven(), gemm.run(&TimeOptions::new(DeviceModel::MI300X).events(1_000_000)).expect("runs")]
}

fn stall(report: &TimeReport, stall: Stall) -> u64 {
    report.stalls.iter().find(|s| s.stall == stall).map_or(0, |s| s.clk)
}

#[test]
fn the_trace_has_every_clk_of_every_wave_and_every_stall() {
    for report in reports() {
        let trace: Value = serde_json::from_str(&report.trace()).expect("JSON");
        let mut names = BTreeMap::new();
        let mut slices: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
        let mut stalls: BTreeMap<String, u64> = BTreeMap::new();
        for event in trace["traceEvents"].as_array().expect("a list") {
            let number = |key: &str| event[key].as_u64().expect("a number");
            let track = (number("pid"), number("tid"));
            // Tracks of pipes.
            if track.0 == 10 {
                continue;
            }
            if event["name"] == "thread_name" {
                names.insert(event["args"]["name"].as_str().expect("text").to_owned(), track);
            }
            if event["ph"] == "X" {
                slices.entry(track).or_default().push((number("ts"), number("ts") + number("dur")));
                if event["cat"] == "stall" {
                    *stalls.entry(event["name"].as_str().expect("text").to_owned()).or_default() +=
                        number("dur");
                }
            }
        }
        assert!(!report.unit.waves.is_empty());
        for wave in &report.unit.waves {
            let track = names[&format!("workgroup {} wave {}", wave.workgroup, wave.wave)];
            let slices = slices.get_mut(&track).expect("a wave does something");
            slices.sort_unstable();
            let mut at = wave.start;
            for &(start, end) in &*slices {
                assert_eq!(start, at, "{wave:?}: a gap or an overlap");
                at = end;
            }
            assert_eq!(at, wave.end, "{wave:?}");
        }
        assert!(stall(&report, Stall::Barrier) > 0);
        for expected in &report.stalls {
            assert_eq!(stalls.get(expected.name).copied().unwrap_or(0), expected.clk, "{}", expected.name);
        }
    }
}

#[test]
fn the_page_has_the_same_stalls_and_the_lines_of_the_author() {
    for report in reports() {
        let page = report.page();
        let data = page.split_once("const data = ").expect("a place for data").1;
        let data: Value =
            serde_json::from_str(data.lines().next().expect("a line").trim_end_matches(';')).expect("JSON");
        let mut sums = vec![0; Stall::ALL.len()];
        let mut issued = 0;
        for wait in data["waits"].as_array().expect("a list") {
            let [start, end, stall] = [2, 3, 4].map(|n| wait[n].as_u64().expect("a number"));
            sums[stall as usize] += end - start;
        }
        issued += data["issues"].as_array().expect("a list").len() as u64;
        assert_eq!(issued, report.unit.instructions);
        for expected in &report.stalls {
            assert_eq!(sums[expected.stall as usize], expected.clk, "{}", expected.name);
        }
        // What was assembled from text has no lines, what was compiled has those of its author.
        let with_lines = report.instructions.iter().filter(|i| i.source.is_some()).count();
        assert_eq!(with_lines > 0, report.kernel == "gemm", "{}", report.kernel);
        let told = data["report"]["instructions"].as_array().expect("a list");
        assert_eq!(told.iter().filter(|i| i["source"]["line"].as_u64() > Some(0)).count(), with_lines);
    }
}

/// A kernel that computes without matrix instructions is at work in the picture and on the page, which say
/// what each colour is and have others on a dark ground.
#[test]
fn what_every_unit_does_has_a_colour() {
    let body = repeat("v_exp_f32 v24, v25\n    v_fma_f32 v26, v24, v25, v26", 40);
    let kernel = Loop { body, waves: 4, workgroups: 4, iterations: 6, ..Loop::default() };
    let report = kernel.run_with(&TimeOptions::new(DeviceModel::MI300X).events(100_000)).expect("runs");
    let picture = report.picture();
    for legend in ["vector instructions<", "matrix instructions<", "LDS<", "global memory<"] {
        assert!(picture.contains(legend), "{legend}");
    }
    // Of the only wave of the SIMD and of its vector ALU.
    assert_eq!(picture.matches("<path fill=\"#cc79a7\"").count(), 2, "{picture}");
    let page = report.page();
    let data = page.split_once("const data = ").expect("a place for data").1;
    let data: Value =
        serde_json::from_str(data.lines().next().expect("a line").trim_end_matches(';')).expect("JSON");
    let [pipes, colours] = ["pipes", "pipe_colours"].map(|key| data[key].as_array().expect("a list"));
    let mut distinct: Vec<&str> = colours.iter().filter_map(Value::as_str).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((distinct.len(), colours.len()), (pipes.len(), pipes.len()));
    for text in [&picture, &page] {
        assert!(text.contains("@media (prefers-color-scheme: dark)"));
    }
}
