//! Time mode against measurements: micro-benchmarks whose figures are published for MI300X (sources in the
//! table of parameters), matrix instructions against AMD's pass counts, copies against achievable bandwidth.

use groundswell_testing::matrix_table::records;
use std::collections::BTreeMap;

use groundswell::prelude::{Device, Kernel, Options};
use groundswell::simulator::time::{
    ClockChoice, Confidence, DeviceModel, Pipe, Stall, TimeOptions, TimeReport,
};
use groundswell::simulator::{FaultKind, SimError};
use groundswell_testing::timed::{Loop, close, copy, gemm, repeat};

/// Clk per instruction of the fastest and the slowest wave with 1 to 4 waves per SIMD.
fn by_waves(instruction: &str, misaligned: bool) -> [[f64; 2]; 4] {
    // Long enough for the branch not to matter.
    let times = if instruction.starts_with("v_mfma") { 256 } else { 1024 };
    [1, 2, 3, 4].map(|waves| {
        let shift = if misaligned { "    s_nop 0\n" } else { "" };
        let body = shift.to_owned() + &repeat(instruction, times);
        let [fastest, slowest, _] = Loop { body, waves: 4 * waves, ..Loop::default() }.slope([2, 6]);
        [fastest / times as f64, slowest / times as f64]
    })
}

#[track_caller]
fn check_waves(what: &str, instruction: &str, misaligned: bool, expected: [f64; 4], fastest: f64) {
    for (waves, ([fast, slow], expected)) in
        by_waves(instruction, misaligned).into_iter().zip(expected).enumerate()
    {
        close(&format!("{what}, {} waves, slowest", waves + 1), slow, expected, 0.02);
        close(&format!("{what}, {} waves, fastest", waves + 1), fast, fastest, 0.02);
    }
}

#[test]
fn benchmark_1_2_one_valu_instruction_per_turn_and_the_oldest_wave_wins() {
    check_waves("#1 #2 v_add_f32 v,s,v", "v_add_f32 v1, s2, v1", false, [4.0, 8.0, 12.0, 16.0], 4.0);
}

#[test]
fn benchmark_3_two_waves_pair_instructions_that_read_vgprs_only() {
    check_waves("#3 v_add_f32 v,v,v", "v_add_f32 v1, v2, v1", false, [4.0, 4.0, 8.0, 8.0], 4.0);
    check_waves("#3 v_fma_f32 v,v,v,v", "v_fma_f32 v1, v2, v3, v1", false, [4.0, 4.0, 8.0, 8.0], 4.0);
}

#[test]
fn benchmark_4_misaligned_instructions_lose_a_turn_in_five() {
    let expected = [5.0, 8.75, 12.81, 16.80];
    check_waves("#4 misaligned v_fma_f32 with SGPR", "v_fma_f32 v1, s2, v3, v1", true, expected, 5.0);
}

#[test]
fn benchmark_5_misaligned_instructions_that_pair() {
    let expected = [5.0, 5.0, 7.5, 10.0];
    check_waves("#5 misaligned v_add_f64", "v_add_f64 v[2:3], v[4:5], v[2:3]", true, expected, 5.0);
}

#[test]
fn benchmark_6_transcendentals_take_four_turns() {
    let [_, clk, _] = Loop { body: repeat("v_exp_f32 v1, v2", 512), ..Loop::default() }.slope([2, 6]);
    close("#6 v_exp_f32", clk / 512.0, 16.0, 0.01);
    let device = DeviceModel::MI355X;
    let [_, clk, _] = Loop { device, body: repeat("v_exp_f32 v1, v2", 512), ..Loop::default() }.slope([2, 6]);
    close("#6 v_exp_f32, gfx950", clk / 512.0, 8.0, 0.02);
}

#[test]
fn benchmark_7_matrix_instructions_go_to_the_oldest_wave() {
    let instruction = "v_mfma_f32_16x16x16_bf16 v[4:7], v[0:1], v[2:3], v[4:7]";
    check_waves("#7 mfma 16x16x16 bf16", instruction, false, [16.0, 32.0, 48.0, 64.0], 16.0);
}

#[test]
fn benchmark_8_matrix_instructions_on_the_vector_alu() {
    let f32 = repeat("v_mfma_f32_16x16x4_f32 v[4:7], v0, v1, v[4:7]", 256);
    let f64 = repeat("v_mfma_f64_16x16x4_f64 v[8:15], v[0:1], v[2:3], v[8:15]", 256);
    for (what, body) in [("#8 mfma 16x16x4 f32", f32), ("#8 mfma 16x16x4 f64", f64)] {
        let [_, clk, _] = Loop { body, ..Loop::default() }.slope([2, 6]);
        close(what, clk / 256.0, 32.0, 0.01);
    }
}

#[test]
fn benchmark_9_10_11_vector_instructions_beside_a_matrix_instruction() {
    let matrix = "v_mfma_f32_16x16x16_bf16 v[4:7], v[0:1], v[2:3], v[4:7]\n";
    let clk = |rest: &str| {
        let body = repeat(&format!("{matrix}{rest}"), 256);
        Loop { body, ..Loop::default() }.slope([2, 6])[1] / 256.0
    };
    for (count, expected) in [16.0, 16.0, 16.0, 16.0, 20.0].into_iter().enumerate() {
        close(
            &format!("#9 mfma and {count} v_mul_f32"),
            clk(&repeat("v_mul_f32 v20, v21, v22", count)),
            expected,
            0.015,
        );
    }
    close("#10 mfma and v_exp_f32", clk("    v_exp_f32 v20, v21"), 20.0, 0.015);
    close("#11 mfma and v_pk_mul_f32", clk("    v_pk_mul_f32 v[20:21], v[22:23], v[24:25]"), 28.0, 0.015);
}

#[test]
fn benchmark_12_pointer_chases_in_lds() {
    for (device, narrow, wide) in [
        (DeviceModel::MI300X, 52.0, 64.0),
        (DeviceModel::MI210, 50.0, 62.0),
        (DeviceModel::MI355X, 56.0, 64.0),
    ] {
        let prologue = "v_mov_b32 v2, 0";
        for (text, expected) in [("ds_read_b32 v2, v2", narrow), ("ds_read_b128 v[2:5], v2", wide)] {
            let body = repeat(&format!("{text}\n    s_waitcnt lgkmcnt(0)"), 256);
            let [_, clk, _] = Loop { device, prologue, body, ..Loop::default() }.slope([2, 6]);
            // Times that are not a multiple of a turn are rounded up to one.
            close(&format!("#12 {} {text}", device.name), clk / 256.0, f64::ceil(expected / 4.0) * 4.0, 0.01);
        }
    }
}

#[test]
fn benchmark_13_14_streams_from_lds() {
    let prologue = "v_lshlrev_b32 v1, 4, v0\n    v_and_b32 v1, 0x3ff, v1\n    v_lshlrev_b32 v2, 2, v0\n    v_and_b32 v2, 0xff, v2";
    let wide = repeat("ds_read_b128 v[4:7], v1", 512);
    let narrow = repeat("ds_read_b32 v8, v2", 512);
    let [_, clk, _] = Loop { prologue, body: wide.clone(), ..Loop::default() }.slope([2, 6]);
    close("#13 ds_read_b128, one wave", clk / 512.0, 16.0, 0.015);
    let [_, clk, _] = Loop { prologue, body: narrow, ..Loop::default() }.slope([2, 6]);
    close("#13 ds_read_b32, one wave", clk / 512.0, 4.0, 0.02);
    // The first two waves share a pair.
    let [.., clk] = Loop { prologue, body: wide, waves: 4, ..Loop::default() }.slope([2, 6]);
    close("#14 ds_read_b128, two pairs, of the unit", clk / 2048.0, 8.0, 0.02);
}

#[test]
fn benchmark_15_bank_conflicts() {
    let mut conflicts = Vec::new();
    for (shift, (expected, tolerance)) in
        [(3.2, 0.02), (4.2, 0.06), (8.0, 0.02), (16.0, 0.02), (32.0, 0.02), (64.0, 0.02)]
            .into_iter()
            .enumerate()
    {
        let prologue = &format!("v_and_b32 v1, 63, v0\n    v_lshlrev_b32 v1, {}, v1", shift + 2);
        let mut kernel =
            Loop { prologue, body: repeat("ds_read_b32 v8, v1", 256), waves: 16, ..Loop::default() };
        let [.., clk] = kernel.slope([2, 6]);
        close(&format!("#15 b32, lane stride {}", 1 << shift), clk / (16.0 * 256.0), expected, tolerance);
        let report = kernel.run();
        let reads = report.instructions.iter().filter(|i| i.text.starts_with("ds_read"));
        let (issued, clk) = reads.fold((0, 0), |sum, i| (sum.0 + i.issued, sum.1 + i.bank_conflicts));
        conflicts.push(clk / issued);
    }
    assert_eq!(conflicts, [0, 2, 6, 14, 30, 62], "clk beyond the two of an access without conflicts");
}

#[test]
fn benchmark_16_loads_that_hit_l1() {
    let prologue = "v_lshlrev_b32 v1, 4, v0";
    let body = repeat("global_load_dwordx4 v[4:7], v1, s[4:5]", 256);
    let [_, clk, _] = Loop { prologue, body, buffer: &[0; 1024], ..Loop::default() }.slope([2, 6]);
    close("#16 global_load_dwordx4, L1 hits", clk / 256.0, 16.0, 0.015);
}

/// Offsets that lead through `lines` lines of 128 bytes, each the next one, and back.
fn chain(lines: u32) -> Vec<u8> {
    let mut bytes = vec![0; lines as usize * 128];
    for line in 0..lines {
        let next = (line + 1) % lines * 128;
        bytes[line as usize * 128..][..4].copy_from_slice(&next.to_le_bytes());
    }
    bytes
}

#[test]
fn benchmark_17_pointer_chases_in_memory() {
    const UNROLLED: usize = 128;
    let levels = [
        // Device, lines of the chain, loads before and after, latency.
        (DeviceModel::MI300X, "L1", 64, [128, 1024], 116.0),
        (DeviceModel::MI300X, "L2", 8192, [8192, 16384], 208.0),
        (DeviceModel::MI300X, "Infinity Cache", 65536, [65536, 73728], 447.0),
        (DeviceModel::MI300X, "HBM", 16384, [4096, 12288], 865.0),
        (DeviceModel::MI210, "L1", 64, [128, 1024], 125.0),
        (DeviceModel::MI210, "L2", 8192, [8192, 16384], 240.0),
        (DeviceModel::MI210, "HBM", 16384, [4096, 12288], 600.0),
    ];
    for (device, level, lines, loads, expected) in levels {
        let body = repeat("global_load_dword v1, v1, s[4:5]\n    s_waitcnt vmcnt(0)", UNROLLED);
        // What fits into the Infinity Cache is there.
        let room = if level == "HBM" { 1 << 29 } else { 0 };
        let mut kernel = Loop {
            device,
            prologue: "v_mov_b32 v1, 0",
            body,
            buffer: &chain(lines),
            room,
            ..Loop::default()
        };
        // A pointer chase leaves the power to the clock.
        let [_, clk, _] = kernel.slope_at(ClockChoice::Greatest, loads.map(|n| n / UNROLLED as u32));
        // One turn more where the latency is not a multiple of it.
        let tolerance = 4.0 / expected;
        close(&format!("#17 {} {level}", device.name), clk / UNROLLED as f64, expected, tolerance);
    }
}

#[test]
fn benchmark_18_pointer_chase_in_the_scalar_cache() {
    let body = repeat("s_load_dword s6, s[4:5], s6\n    s_waitcnt lgkmcnt(0)", 256);
    let [_, clk, _] = Loop { prologue: "s_mov_b32 s6, 0", body, ..Loop::default() }.slope([2, 6]);
    close("#18 s_load_dword", clk / 256.0, 48.0, 0.01);
}

/// AMD's table of matrix instructions: mnemonic, passes, registers of D, A, B, and whether A is sparse.
fn published(gfx: &str) -> Vec<(String, u32, [u32; 3], bool)> {
    let of_chip = records().into_iter().filter(|row| row.get("gfx") == gfx);
    let told = of_chip.map(|row| {
        let registers = ["d_regs", "a_regs", "b_regs"].map(|column| row.number(column));
        (row.get("mnemonic").to_owned(), row.number("passes"), registers, row.number("sparse") != 0)
    });
    told.collect()
}

fn registers(first: u32, count: u32) -> String {
    if count == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + count - 1) }
}

#[test]
fn loops_of_matrix_instructions_take_the_published_passes() {
    const TIMES: usize = 64;
    for (device, least) in [(DeviceModel::MI210, 27), (DeviceModel::MI300X, 32)] {
        let mut timed = 0;
        for (name, passes, [d, a, b], sparse) in published(device.target.name) {
            let body: String = (0..TIMES as u32)
                .map(|n| {
                    let d = registers(32 + n % 3 * 32, d);
                    let c = if sparse { "v30" } else { &d };
                    format!("    {name} {d}, {}, {}, {c}\n", registers(0, a), registers(8, b))
                })
                .collect();
            // Of two passes the second finds its code in the cache.
            let kernel = Loop { device, body, iterations: 2, ..Loop::default() };
            let report = match kernel.run_with(&TimeOptions::new(device).events(4096)) {
                Ok(report) => report,
                Err(SimError::Fault(fault)) if matches!(fault.kind, FaultKind::Unsupported(_)) => continue,
                Err(error) => panic!("{name}: {error}"),
            };
            timed += 1;
            let matrix = report
                .issues()
                .filter(|(text, _)| text.starts_with("v_mfma") || text.starts_with("v_smfmac"));
            let issued: Vec<u64> = matrix.map(|(_, clk)| clk).collect();
            assert_eq!(issued.len(), 2 * TIMES, "{name}");
            for pair in issued[TIMES..].windows(2) {
                assert_eq!(pair[1] - pair[0], u64::from(4 * passes), "{name} on {}", device.name);
            }
        }
        assert!(timed >= least, "only {timed} instructions of {} were timed", device.name);
    }
}

#[test]
fn results_of_matrix_instructions_are_waited_for() {
    // gfx942, four passes: usable after 7 wait states, so in the eighth turn; by the same instruction in the
    // fourth.
    let matrix = "v_mfma_f32_16x16x16_bf16 v[4:7], v[0:1], v[2:3], v[4:7]\n";
    let body = repeat(&format!("{matrix}    v_add_f32 v20, v4, v4"), 128);
    let [_, clk, _] = Loop { body, ..Loop::default() }.slope([2, 6]);
    close("mfma and a use of its result", clk / 128.0, 36.0, 0.015);
}

fn copied(device: &'static DeviceModel, workgroups: u32) -> TimeReport {
    copy(device, workgroups).run(&TimeOptions::new(device)).expect("the copy runs")
}

/// Published: MI300X copies at 4.11 TB/s (Azure AI benchmarking guide), MI210 runs STREAM triad at 1.25 to
/// 1.29 and reads at 1.35 TB/s (gpu-benches).
#[test]
fn copies_reach_the_achievable_bandwidth() {
    for (device, published) in [(DeviceModel::MI300X, 4.11), (DeviceModel::MI210, 1.30)] {
        let report = copied(device, 65_536);
        close(&format!("copy on {}, TB/s", device.name), report.estimate.bandwidth, published, 0.15);
        assert!(report.estimate.extrapolated && report.unit.workgroups < report.unit.assigned);
        assert_eq!(report.unit.traffic.loaded, report.unit.traffic.stored);
    }
}

#[test]
fn a_launch_takes_longer_the_more_workgroups_it_has() {
    let [few, many] = [1000, 10_000].map(|n| copied(DeviceModel::MI300X, n).estimate.microseconds);
    assert!(many > few, "{many} us against {few} us");
}

#[test]
fn barriers_priorities_and_idle_cycles() {
    let report = Loop { body: repeat("s_barrier", 64), waves: 8, iterations: 2, ..Loop::default() }.run();
    let waiting: u64 = report.instructions.iter().map(|i| i.stalls[Stall::Barrier as usize]).sum();
    assert!(waiting > 0);
    let clk = |body: &str| Loop { body: repeat(body, 128), ..Loop::default() }.slope([2, 6])[1] / 128.0;
    close("s_nop 7", clk("s_nop 7"), 32.0, 0.01);
    close("s_sleep 2", clk("s_sleep 2"), 100.0, 0.01);
    close("s_add_u32", clk("s_add_u32 s6, s6, s6"), 4.0, 0.07);
    // A wave of higher priority wins over an older one.
    let prologue = "v_readfirstlane_b32 s3, v0
    s_cmp_lg_u32 s3, 256
    s_cbranch_scc1 loop_starts
    s_setprio 3
loop_starts:";
    let body = repeat("v_add_f32 v1, s2, v1", 512);
    let report = Loop { prologue, body, waves: 8, iterations: 8, ..Loop::default() }.run();
    let length = |wave: u32| {
        let wave = report.unit.waves.iter().find(|w| w.wave == wave).expect("the wave ran");
        wave.end - wave.start
    };
    assert!(length(4) < length(0), "wave 4 with priority {}, wave 0 without {}", length(4), length(0));
}

#[test]
fn the_clock_counter_counts_clk() {
    let body = "    s_memtime s[12:13]\n    s_waitcnt lgkmcnt(0)\n".to_owned()
        + &repeat("v_exp_f32 v1, v2", 64)
        + "    s_memtime s[14:15]
    s_waitcnt lgkmcnt(0)
    s_sub_u32 s12, s14, s12
    v_mov_b32 v1, s12
    v_mov_b32 v2, 0
    global_store_dword v2, v1, s[4:5]\n";
    let timed = Loop { body, ..Loop::default() }.load().expect("loads");
    timed.run(&TimeOptions::new(DeviceModel::MI300X)).expect("runs");
    let buffer = u64::from_le_bytes(timed.kernarg[..8].try_into().expect("an address"));
    let bytes = timed.simulator.read(buffer, 4).expect("a dword");
    let clk = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    assert!((1024..1200).contains(&clk), "64 instructions of 16 clk took {clk}");
}

#[test]
fn the_same_launch_gives_the_same_report() {
    let prologue = "v_lshlrev_b32 v1, 4, v0";
    let body =
        repeat("global_load_dwordx4 v[4:7], v1, s[4:5]\n    v_exp_f32 v2, v3\n    ds_read_b32 v8, v3", 32);
    let kernel = Loop {
        prologue,
        body,
        waves: 4,
        workgroups: 700,
        iterations: 3,
        buffer: &[0; 4096],
        ..Loop::default()
    };
    let text = || {
        let report = kernel.run_with(&TimeOptions::new(DeviceModel::MI300X).events(1000)).expect("runs");
        (serde_json::to_string(&report).expect("plain data"), report.trace(), report.page(), report.profile())
    };
    assert_eq!(text(), text());
}

#[test]
fn doubtful_numbers_are_named() {
    let report = Loop { body: repeat("v_cvt_f16_f32 v1, v2", 4), ..Loop::default() }.run();
    let names: Vec<String> = report.rests_on.iter().map(|d| format!("{:?}", d.parameter)).collect();
    assert!(
        names.contains(&"Conversion".to_owned()) && !names.contains(&"TakenBranch".to_owned()),
        "{names:?}"
    );
    assert!(report.rests_on.iter().all(|d| d.confidence >= Confidence::Low && !d.text.is_empty()));
}

#[test]
fn pictures_are_complete_and_need_nothing_else() {
    let prologue = "v_lshlrev_b32 v1, 4, v0";
    let body = repeat("global_load_dwordx4 v[4:7], v1, s[4:5]\n    s_waitcnt vmcnt(0)\n    s_barrier", 4);
    let kernel = Loop { prologue, body, waves: 4, iterations: 5, buffer: &[0; 4096], ..Loop::default() };
    let report = kernel.run_with(&TimeOptions::new(DeviceModel::MI300X).events(100_000)).expect("runs");
    let trace: serde_json::Value = serde_json::from_str(&report.trace()).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let issues = events.iter().filter(|e| e["cat"] == "issue").count() as u64;
    assert_eq!(issues, report.unit.instructions);
    let tracks = events.iter().filter(|e| e["name"] == "thread_name" && e["pid"].as_u64() < Some(10)).count();
    assert_eq!(tracks, 4, "a track per wave");
    for pipe in ["vector memory 0", "scalar 0", "branch 0"] {
        assert!(events.iter().any(|e| e["args"]["name"] == pipe), "{pipe}");
    }
    let page = report.page();
    assert!(!page.contains("http") && !page.contains("src=") && !page.contains("/*DATA*/"));
    assert!(page.contains("global_load_dwordx4 v[4:7], v1, s[4:5]"));
    let profile = report.profile();
    assert!(profile.contains("waitcnt") && profile.contains("most expensive instructions"), "{profile}");
    let busy = report.pipes.iter().find(|p| p.pipe == Pipe::Vector).expect("every pipe is there");
    assert!(busy.utilisation > 0.0 && busy.utilisation <= 1.0);
}

/// Slices of a track must be nested or apart, or viewers draw them wrongly.
fn assert_nested(track: (u64, u64), slices: &mut [(u64, u64)]) {
    slices.sort_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
    let mut open: Vec<u64> = Vec::new();
    for &mut (start, end) in slices {
        open.retain(|&other| other > start);
        assert!(open.last().is_none_or(|&other| end <= other), "track {track:?}: {start} to {end}, {open:?}");
        open.push(end);
    }
}

/// Asserts that a trace is in Chrome's Trace Event Format, of which it uses complete events and names of
/// processes and threads. Returns the names of pipes.
fn assert_trace(report: &TimeReport) -> Vec<String> {
    let trace: serde_json::Value = serde_json::from_str(&report.trace()).expect("JSON");
    let (mut processes, mut threads) = (BTreeMap::new(), BTreeMap::new());
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for event in trace["traceEvents"].as_array().expect("a list") {
        let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("{key} of {event}"));
        let (process, thread) = (number("pid"), number("tid"));
        let name = event["name"].as_str().expect("a name");
        assert!(!name.is_empty(), "{event}");
        match event["ph"].as_str().expect("a phase") {
            "M" => {
                let value = event["args"]["name"].as_str().expect("a name in args").to_owned();
                let before = match name {
                    "process_name" => processes.insert(process, value),
                    "thread_name" => threads.insert((process, thread), value),
                    _ => panic!("metadata {name}"),
                };
                assert!(before.is_none(), "two names: {event}");
            }
            "X" => {
                assert!(event["cat"].is_string(), "{event}");
                let start = number("ts");
                tracks.entry((process, thread)).or_default().push((start, start + number("dur")));
            }
            other => panic!("phase {other}"),
        }
    }
    assert_eq!(tracks.len(), threads.len(), "names for all tracks and no others");
    for (track, slices) in &mut tracks {
        assert!(threads.contains_key(track) && processes.contains_key(&track.0), "{track:?} has no name");
        assert_nested(*track, slices);
    }
    let pipes = threads.into_iter().filter(|(track, _)| processes[&track.0] == "pipes");
    pipes.map(|(_, name)| name).collect()
}

#[test]
fn the_trace_is_in_the_trace_event_format() {
    let prologue = "v_lshlrev_b32 v1, 4, v0\n    v_and_b32 v2, 0x3ff, v1\n    s_mov_b32 s6, 0";
    let body = repeat(
        "global_load_dwordx4 v[4:7], v1, s[4:5]
    ds_read_b128 v[8:11], v2
    ds_read_b32 v12, v2
    ds_write_b64 v2, v[14:15]
    v_mfma_f32_16x16x16_bf16 v[16:19], v[20:21], v[22:23], v[16:19]
    v_add_f32 v24, v25, v26
    v_exp_f32 v27, v28
    s_load_dword s7, s[4:5], s6
    s_waitcnt vmcnt(0) lgkmcnt(0)
    global_store_dword v1, v24, s[4:5]
    s_barrier",
        3,
    );
    let kernel = Loop { prologue, body, waves: 16, iterations: 4, buffer: &[0; 16384], ..Loop::default() };
    let report = kernel.run_with(&TimeOptions::new(DeviceModel::MI300X).events(100_000)).expect("runs");
    let names = assert_trace(&report);
    let mut pipes: Vec<&str> = names.iter().map(|n| n.trim_end_matches([' ', '0', '1', '2', '3'])).collect();
    pipes.dedup();
    assert_eq!(pipes, ["VALU", "matrix", "scalar", "LDS", "vector memory", "branch"]);
    // Of this one, times are fractions of a clk.
    let gemm = gemm(DeviceModel::MI300X, 512, [128, 128, 32]);
    assert_trace(&gemm.run(&TimeOptions::new(DeviceModel::MI300X).events(100_000)).expect("runs"));
}

#[test]
fn refusals_are_errors() {
    let kernel = Loop::default();
    let wrong = kernel.run_with(&TimeOptions::new(DeviceModel::MI210));
    assert!(matches!(wrong, Err(SimError::Launch { .. })), "{wrong:?}");
    let clock = kernel.run_with(&TimeOptions::new(DeviceModel::MI300X).clock(0.0));
    assert!(matches!(clock, Err(SimError::Launch { .. })));
    let body = "    v_mov_b32 v1, 0x7ffffff0\n    global_load_dword v1, v1, s[4:5]\n".to_owned();
    let fault = Loop { body, ..Loop::default() }.run_with(&TimeOptions::new(DeviceModel::MI300X));
    assert!(matches!(fault, Err(SimError::Fault(_))), "{fault:?}");
}

/// A product has as many operations on every chip, by matrix instructions or by those that multiply lanes.
#[test]
fn products_have_their_operations_on_every_chip() {
    for device in DeviceModel::ALL {
        let report = gemm(device, 256, [128, 128, 32]).run(&TimeOptions::new(device)).expect("runs");
        let operations = report.estimate.tera_operations * report.estimate.microseconds * 1e6;
        let product = 2.0 * 256f64.powi(3);
        assert!((operations / product - 1.0).abs() < 0.02, "{}: {operations} of {product}", device.name);
    }
}

/// Workgroup `n` of 608 adds up `n / 8 + 1` tiles: the launch takes as long as the last ones, and as products
/// have as much work in each workgroup, nothing is said of them.
#[test]
fn workgroups_of_different_work_are_timed_by_what_they_do() {
    let device = DeviceModel::MI300X;
    let text = "kernel sums {
  workgroup M, 1, 0
  tile K, 256
  iterations K, 0, workgroup_0 // 8 + 1
  x = memory [K] global f32
  y = memory [M] global f32
  %none = register [] f32 0.0
  %sum = iterate K (%before = %none) {
    %x = read x
    %part = reduce_sum %x over K
    %next = add %before, %part
    yield %next
  }
  %all = broadcast %sum [M]
  write %all, y
}
";
    let kernel = Kernel::parse(text, "sums.gsw").unwrap_or_else(|fault| panic!("{fault}"));
    let options = Options::new(device.target).set("M", 608).set("K", 256 * 76);
    let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{fault}"));
    let simulator = Device::simulator(device.target);
    let [x, y] = [256 * 76, 608].map(|count| simulator.upload(&vec![1f32; count]).expect("fits"));
    let launch = simulator.launch(&executable).buffer(&x).buffer(&y);
    let report = launch.time(&TimeOptions::new(device)).expect("runs");
    let [least, most] = report.unit.clk_of_workgroups.expect("they differ");
    assert!(most > 10.0 * least, "{least} to {most} clk");
    assert!((0.9 * most..2.0 * most).contains(&report.estimate.clk), "{} of {most}", report.estimate.clk);
    assert!(report.profile().contains("  uneven     workgroups take "), "{}", report.profile());
    let even = gemm(device, 256, [128, 128, 32]).run(&TimeOptions::new(device)).expect("runs");
    assert_eq!(even.unit.clk_of_workgroups, None);
}
