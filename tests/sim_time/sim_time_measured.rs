//! Time mode against micro-benchmarks that others have measured on gfx942 and gfx950: LDS, its queue, what
//! runs beside matrix instructions, and the path of vector memory. docs/time-model.md has the same rows.
//!
//! GT: ROCm/gfx950-gluon-tutorials (AMD), thread traces and counters.

use groundswell::simulator::time::{DeviceModel, TimeOptions};
use groundswell_testing::timed::{Loop, close, repeat};

/// Instructions of a loop's body.
const TIMES: usize = 512;

/// Clk of an instruction of the slowest wave in a loop of nothing else, by so many waves of a workgroup.
fn stream(device: &'static DeviceModel, prologue: &str, instruction: &str, waves: u32) -> f64 {
    let body = repeat(instruction, TIMES);
    let mut kernel =
        Loop { device, prologue, body, waves, lds: 65536, buffer: &[0; 16384], ..Loop::default() };
    kernel.slope([2, 6])[1] / TIMES as f64
}

/// v1 is 16 times the lane.
const WIDE: &str = "v_and_b32 v1, 63, v0\n    v_lshlrev_b32 v1, 4, v1";

#[test]
fn lds_reads_take_their_bytes_at_the_rate_of_the_chip() {
    let half = "v_and_b32 v1, 63, v0\n    v_lshlrev_b32 v1, 3, v1";
    for (device, prologue, text, waves, measured) in [
        (DeviceModel::MI300X, WIDE, "ds_read_b128 v[4:7], v1", 4, 32.0),
        (DeviceModel::MI355X, WIDE, "ds_read_b128 v[4:7], v1", 1, 8.0),
        (DeviceModel::MI355X, WIDE, "ds_read_b128 v[4:7], v1", 4, 16.0),
        (DeviceModel::MI355X, half, "ds_read_b64 v[4:5], v1", 4, 8.0),
        (DeviceModel::MI355X, half, "ds_read_b64_tr_b16 v[4:5], v1", 4, 8.0),
    ] {
        let clk = stream(device, prologue, text, waves);
        // At the end the younger wave of a pair is alone, and its 15 counted reads do not fill 69 clk.
        let tolerance = if text.starts_with("ds_read_b64") { 0.08 } else { 0.035 };
        close(&format!("{} {text}, {waves} waves", device.name), clk, measured, tolerance);
    }
}

/// GT, experiments/lds_throughput_validation: lane i reads row i mod 16, 32 bytes further on for each 16
/// lanes; rows are 1024 bytes and a padding.
#[test]
fn lds_conflicts_cost_their_degree_and_misaligned_reads_a_clk_per_lane() {
    let prologue = |padding: u32, more: u32| {
        format!(
            "v_and_b32 v1, 15, v0
    v_mul_u32_u24 v2, {}, v1
    v_lshrrev_b32 v1, 1, v1
    v_mul_u32_u24 v1, {more}, v1
    v_add_u32 v1, v1, v2
    v_and_b32 v3, 63, v0
    v_lshrrev_b32 v3, 4, v3
    v_lshlrev_b32 v3, 5, v3
    v_add_u32 v1, v1, v3",
            1024 + padding
        )
    };
    for (padding, more, alone, together) in [
        (16, 32, 8.0, 16.0),
        (16, 0, 8.0, 32.0),
        (32, 0, 8.0, 32.0),
        (64, 0, 8.0, 32.0),
        (128, 0, 16.0, 64.0),
        (256, 0, 32.0, 128.0),
        (4, 0, 64.0, 256.0),
    ] {
        for (waves, measured) in [(1, alone), (4, together)] {
            let text = "ds_read_b128 v[4:7], v1";
            let clk = stream(DeviceModel::MI355X, &prologue(padding, more), text, waves);
            close(&format!("padding {padding} and {more}, {waves} waves"), clk, measured, 0.035);
        }
    }
}

/// GT, gemm/gfx942: rows of 128 bytes whose 16-byte chunks are exchanged by (row / p) mod 8; counters say 8
/// clk per instruction for p = 1, and 16 for reads with p = 2.
#[test]
fn a_swizzle_of_every_second_row_conflicts_on_gfx942() {
    for (shift, measured) in [(0, 32.0), (1, 64.0)] {
        let prologue = format!(
            "v_and_b32 v1, 15, v0
    v_lshrrev_b32 v2, {shift}, v1
    v_and_b32 v2, 7, v2
    v_and_b32 v3, 63, v0
    v_lshrrev_b32 v3, 4, v3
    v_xor_b32 v2, v2, v3
    v_lshlrev_b32 v2, 4, v2
    v_lshlrev_b32 v1, 7, v1
    v_add_u32 v1, v1, v2"
        );
        let clk = stream(DeviceModel::MI300X, &prologue, "ds_read_b128 v[4:7], v1", 4);
        close(&format!("swizzle, p = {}", 1 << shift), clk, measured, 0.035);
    }
}

#[test]
fn lds_writes_hold_their_wave() {
    for device in [DeviceModel::MI300X, DeviceModel::MI355X] {
        let text = "ds_write_b128 v1, v[4:7]";
        close(&format!("{} {text}, alone", device.name), stream(device, WIDE, text, 1), 20.0, 0.035);
        close(&format!("{} {text}, 4 waves", device.name), stream(device, WIDE, text, 4), 32.0, 0.035);
    }
    // In a loop of four waves, with matrix instructions between the writes: 30.4 clk for a write.
    let prologue = WIDE;
    let pair = "ds_write_b128 v1, v[4:7]\n    v_mfma_f32_16x16x16_f16 v[8:11], v[12:13], v[14:15], v[8:11]";
    let clk = stream(DeviceModel::MI300X, prologue, pair, 4);
    close("write and matrix instruction, less the latter's turn", clk - 4.0, 30.4, 0.1);
    // Reads do not hold it: two of them and four matrix instructions take as long as these.
    let matrix = "v_mfma_f32_16x16x16_f16 v[8:11], v[12:13], v[14:15], v[8:11]\n    ".repeat(4);
    let text = format!("ds_read_b128 v[4:7], v1\n    {matrix}ds_read_b128 v[16:19], v1\n    {matrix}");
    close(
        "two reads in eight matrix instructions",
        stream(DeviceModel::MI300X, prologue, &text, 4),
        128.0,
        0.03,
    );
}

/// When each instruction of that name was issued, by a wave alone.
fn issues(kernel: &Loop<'_>, name: &str) -> Vec<u64> {
    let report = kernel.run_with(&TimeOptions::new(kernel.device).events(4096)).expect("the loop runs");
    report.issues().filter(|(text, _)| text.starts_with(name)).map(|(_, clk)| clk).collect()
}

/// GT, docs/lds_throughput: the first eight reads of a burst issue 4 to 8 clk apart, the ninth waits for the
/// first result, 50 to 70 clk after the first issue, then one per service time.
#[test]
fn a_pair_of_simds_queues_eight_lds_instructions() {
    let body = "    s_waitcnt lgkmcnt(0)\n".to_owned() + &repeat("ds_read_b128 v[4:7], v1", 15);
    let device = DeviceModel::MI355X;
    // The second pass finds its code in the cache.
    let kernel = Loop { device, prologue: WIDE, body, iterations: 2, ..Loop::default() };
    let issued = &issues(&kernel, "ds_read_b128")[15..];
    let apart: Vec<u64> = issued.windows(2).map(|pair| pair[1] - pair[0]).collect();
    eprintln!("burst of reads: {apart:?}");
    assert!(apart[..7].iter().all(|clk| (4..=8).contains(clk)), "{apart:?}");
    let ninth = issued[8] - issued[0];
    assert!((50..=70).contains(&ninth), "the ninth after {ninth} clk");
    assert!(apart[8..].iter().all(|&clk| clk == 8), "{apart:?}");
}

/// GT, gemm/inter_wave: SIMD 0 shares a queue with SIMD 2 and SIMD 1 with SIMD 3; waves go to SIMDs in the
/// order 0, 2, 1, 3 (thread traces).
#[test]
fn waves_side_by_side_share_a_port_of_lds() {
    for (device, alone) in [(DeviceModel::MI300X, 16.0), (DeviceModel::MI355X, 8.0)] {
        let clk = |waves| stream(device, WIDE, "ds_read_b128 v[4:7], v1", waves);
        close(&format!("{}: one wave", device.name), clk(1), alone, 0.035);
        close(&format!("{}: two waves", device.name), clk(2), 2.0 * alone, 0.035);
    }
}

#[test]
fn matrix_instructions_take_their_passes_on_gfx950() {
    let scale = ", v40, v41 op_sel:[0,0,0] op_sel_hi:[0,0,0]";
    for (text, measured) in [
        ("v_mfma_f32_16x16x32_f16 v[8:11], v[0:3], v[4:7], v[8:11]".to_owned(), 16.0),
        ("v_mfma_f32_32x32x16_f16 v[16:31], v[0:3], v[4:7], v[16:31]".to_owned(), 32.0),
        ("v_mfma_f32_16x16x128_f8f6f4 v[8:11], v[16:23], v[24:31], v[8:11]".to_owned(), 32.0),
        ("v_mfma_f32_16x16x128_f8f6f4 v[8:11], v[0:3], v[4:7], v[8:11] cbsz:4 blgp:4".to_owned(), 16.0),
        (
            format!(
                "v_mfma_scale_f32_16x16x128_f8f6f4 v[8:11], v[0:3], v[4:7], v[8:11]{scale} cbsz:4 blgp:4"
            ),
            16.0,
        ),
        ("v_mfma_f32_32x32x64_f8f6f4 v[16:31], v[0:3], v[4:7], v[16:31] cbsz:4 blgp:4".to_owned(), 32.0),
        (
            format!(
                "v_mfma_scale_f32_32x32x64_f8f6f4 v[16:31], v[0:3], v[4:7], v[16:31]{scale} cbsz:4 blgp:4"
            ),
            32.0,
        ),
    ] {
        close(&text, stream(DeviceModel::MI355X, "", &text, 1), measured, 0.035);
    }
}

/// GT, gemm/inter_wave/a4w4/v1_combineBsc: two LDS instructions of another wave beside a matrix instruction
/// of 16 clk, one beside a scaled one, five beside a scaled 32x32x64.
#[test]
fn lds_instructions_start_beside_matrix_instructions() {
    let scale = ", v40, v41 op_sel:[0,0,0] op_sel_hi:[0,0,0] cbsz:4 blgp:4";
    for (matrix, clk, beside) in [
        ("v_mfma_f32_16x16x32_f16 v[8:11], v[0:3], v[4:7], v[8:11]".to_owned(), 16, 2),
        (format!("v_mfma_scale_f32_16x16x128_f8f6f4 v[8:11], v[0:3], v[4:7], v[8:11]{scale}"), 16, 1),
        (format!("v_mfma_scale_f32_32x32x64_f8f6f4 v[16:31], v[0:3], v[4:7], v[16:31]{scale}"), 32, 5),
    ] {
        // Waves 0 and 4 are on one SIMD; the others end. Wave 0 runs longer than wave 4.
        let reads = repeat("ds_read_b32 v50, v51", beside * 64);
        let prologue = "v_readfirstlane_b32 s3, v0
    s_and_b32 s6, s3, 255
    s_cmp_eq_u32 s6, 0
    s_cbranch_scc1 both
    s_endpgm
both:
    v_mov_b32 v51, 0
    v_mov_b32 v52, 0";
        let body = repeat(&matrix, 80)
            + "    s_branch next\n    .p2alignl 6, 3212836864\nreader:\n"
            + &reads
            + "next:";
        let body = format!("    s_cmp_lg_u32 s3, 0\n    s_cbranch_scc1 reader\n{body}");
        let device = DeviceModel::MI355X;
        let kernel = Loop { device, prologue, body, waves: 5, iterations: 4, ..Loop::default() };
        let options = TimeOptions::new(device).events(1 << 14);
        let report = kernel.run_with(&options).expect("the loop runs");
        let read: Vec<u64> =
            report.issues().filter(|(text, _)| text.starts_with("ds_read")).map(|(_, clk)| clk).collect();
        let (count, last) = (beside * 64, read.len() - 1);
        let took = (read[last - 8] - read[last - count + 9]) as f64 / (count - 17) as f64;
        close(&format!("a read beside {matrix}"), took, f64::from(clk) / beside as f64, 0.06);
    }
}

#[test]
fn vector_instructions_run_beside_matrix_instructions_of_gfx950() {
    let matrix = "v_mfma_f32_32x32x16_f16 v[16:31], v[0:3], v[4:7], v[16:31]\n    ";
    let clk = |rest: String| stream(DeviceModel::MI355X, "", &(matrix.to_owned() + &rest), 1);
    let many = |text: &str, count: usize| vec![text; count].join("\n    ");
    for (text, fit) in [
        ("v_mul_f32 v40, v41, v42", 6),
        ("v_cvt_f32_f16 v40, v41", 6),
        ("v_cvt_pkrtz_f16_f32 v40, v41, v42", 6),
        ("v_cvt_pk_bf16_f32 v40, v41, v42", 6),
        ("v_exp_f32 v40, v41", 3),
    ] {
        close(&format!("{fit} {text} beside 32x32x16"), clk(many(text, fit)), 32.0, 0.035);
        let more = clk(many(text, fit + 1));
        assert!(more >= 35.5, "{} of {text}: {more}", fit + 1);
    }
    // Not before 12 clk after its end.
    close(
        "v_pk_mul_f32 after 32x32x16",
        clk("v_pk_mul_f32 v[40:41], v[42:43], v[44:45]".into()),
        48.0,
        0.035,
    );
}

#[test]
fn conversions_are_plain_and_satisfied_waits_take_a_turn() {
    for device in [DeviceModel::MI210, DeviceModel::MI300X, DeviceModel::MI355X] {
        for text in ["v_cvt_f16_f32 v4, v5", "v_cvt_f32_i32 v4, v5", "v_cvt_pkrtz_f16_f32 v4, v5, v6"] {
            close(&format!("{} {text}", device.name), stream(device, "", text, 1), 4.0, 0.035);
        }
        close("s_waitcnt lgkmcnt(0)", stream(device, "", "s_waitcnt lgkmcnt(0)", 1), 4.0, 0.035);
    }
}

/// GT, docs/tcp_bound_tile_model: clk of an instruction in the L1, coalesced.
#[test]
fn loads_occupy_the_vector_cache_by_their_width() {
    for device in [DeviceModel::MI300X, DeviceModel::MI355X] {
        for (shift, text, measured) in [
            (2, "global_load_dword v4, v1, s[4:5]", 4.0),
            (3, "global_load_dwordx2 v[4:5], v1, s[4:5]", 16.0),
            (4, "global_load_dwordx4 v[4:7], v1, s[4:5]", 16.0),
        ] {
            let prologue = format!("v_and_b32 v1, 63, v0\n    v_lshlrev_b32 v1, {shift}, v1");
            close(&format!("{} {text}", device.name), stream(device, &prologue, text, 1), measured, 0.035);
        }
    }
}

/// GT, gemm/gfx942: rows of 64 bytes touch 16 lines per instruction where rows of 128 bytes touch 8, and
/// cost about twice.
#[test]
fn rows_of_64_bytes_cost_twice() {
    let text = "global_load_dwordx4 v[4:7], v1, s[4:5]";
    let rows = |lanes: u32| {
        let prologue = format!(
            "v_and_b32 v1, 63, v0
    v_lshrrev_b32 v2, {lanes}, v1
    v_lshlrev_b32 v2, 8, v2
    v_and_b32 v1, {}, v1
    v_lshlrev_b32 v1, 4, v1
    v_add_u32 v1, v1, v2",
            (1 << lanes) - 1
        );
        stream(DeviceModel::MI300X, &prologue, text, 1)
    };
    close("rows of 128 bytes", rows(3), 16.0, 0.035);
    close("rows of 64 bytes", rows(2), 32.0, 0.035);
}

/// GT, docs/tcp_bound_tile_model: 32 KB in flight and some 12 instructions queued, so of a burst of loads
/// from memory 44 are issued before the first has returned, and the next one waits for it.
#[test]
fn a_unit_has_44_kb_of_loads_under_way() {
    let device = DeviceModel::MI355X;
    let prologue = "v_lshlrev_b32 v1, 4, v0\n    v_mov_b32 v3, 0x400";
    let loads = repeat("global_load_dwordx4 v[4:7], v1, s[4:5]\n    v_add_u32 v1, v1, v3", 60);
    let body = "    s_waitcnt vmcnt(0)\n".to_owned() + &loads;
    // The second pass finds its code in the cache.
    let kernel = Loop { device, prologue, body, iterations: 2, room: 1 << 30, ..Loop::default() };
    let issued = &issues(&kernel, "global_load_dwordx4")[60..];
    let waits = issued.windows(2).position(|pair| pair[1] - pair[0] > 200);
    eprintln!("loads: {:?}", issued.iter().map(|clk| clk - issued[0]).collect::<Vec<_>>());
    assert!(waits.is_some_and(|at| (43..=46).contains(&(at + 1))), "{waits:?}");
}
