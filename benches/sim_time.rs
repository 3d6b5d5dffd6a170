//! Speed of the simulator's time mode, in simulated wave instructions per second (at least 1e6 are wanted).
//!
//! Loops of one kind of instruction on a full compute unit, the mixture that a GEMM's main loop is made of,
//! and two whole launches, a GEMM and a copy. A launch is as fast as its instructions plus what comes before
//! them: the sampling of other workgroups, which counts as no instruction.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use groundswell::simulator::time::{DeviceModel, Fidelity, TimeOptions};
use timed::{Loop, Timed, copy, gemm, repeat};

#[path = "../tests/common/timed.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod timed;

/// Waves that fill a compute unit at 128 registers each.
const WAVES: u32 = 16;

const PROLOGUE: &str = "v_lshlrev_b32 v1, 4, v0
    v_and_b32 v2, 63, v0
    v_lshlrev_b32 v2, 4, v2
    v_mov_b32 v3, v1
    v_lshlrev_b32 v8, 8, v0
    s_movk_i32 s6, 0x4000";

/// What a GEMM's main loop is made of: loads, LDS both ways, a barrier, and 16 matrix instructions.
const GEMM_LIKE: &str = "
    global_load_dwordx4 v[4:7], v1, s[4:5]
    global_load_dwordx4 v[8:11], v1, s[4:5] offset:1024
    ds_read_b128 v[12:15], v2
    ds_read_b128 v[16:19], v2 offset:4096
    s_waitcnt lgkmcnt(0)
    MATRIX
    s_waitcnt vmcnt(0)
    s_barrier
    ds_write_b128 v2, v[4:7]
    ds_write_b128 v2, v[8:11] offset:4096
    s_waitcnt lgkmcnt(0)
    s_barrier
";

fn gemm_like() -> String {
    let matrix: Vec<String> = (0..16)
        .map(|n| {
            let d = 32 + 4 * n;
            let (a, b) = (12 + 2 * (n % 2), 16 + 2 * (n / 2 % 2));
            format!(
                "v_mfma_f32_16x16x16_f16 v[{d}:{}], v[{a}:{}], v[{b}:{}], v[{d}:{}]",
                d + 3,
                a + 1,
                b + 1,
                d + 3
            )
        })
        .collect();
    GEMM_LIKE.replace("MATRIX", &matrix.join("\n    "))
}

fn measure(c: &mut Criterion, group: &str, name: &str, timed: &Timed) {
    let options = TimeOptions::new(DeviceModel::MI300X);
    let run = || timed.run(&options).expect("the kernel runs").unit.instructions;
    let mut group = c.benchmark_group(group);
    group.throughput(Throughput::Elements(run()));
    group.bench_function(name, |b| b.iter(run));
    group.finish();
}

fn loops(c: &mut Criterion) {
    let bodies = [
        ("gemm_like", gemm_like(), 200, 1 << 16),
        ("fma_f32", repeat("v_fma_f32 v3, v1, v2, v3", 32), 200, 0),
        ("ds_read_b128", repeat("ds_read_b128 v[12:15], v2", 32), 200, 0),
        ("load_from_l1", repeat("global_load_dwordx4 v[4:7], v1, s[4:5]", 32), 200, 1 << 16),
        // Every load is of 16 KiB that have not been loaded before.
        (
            "load_from_memory",
            repeat("global_load_dwordx4 v[4:7], v3, s[4:5]\n    v_add_u32 v3, s6, v3", 16),
            200,
            64 << 20,
        ),
        ("load_scattered", repeat("global_load_dword v4, v8, s[4:5]", 32), 50, 1 << 18),
    ];
    for (name, body, iterations, bytes) in bodies {
        let buffer = &vec![0; bytes];
        let kernel = Loop { prologue: PROLOGUE, body, iterations, waves: WAVES, buffer, ..Loop::default() };
        measure(c, "loop", name, &kernel.load().expect("the kernel loads"));
    }
}

fn launches(c: &mut Criterion) {
    measure(c, "launch", "gemm_2048", &gemm(DeviceModel::MI300X, 2048, [256, 256, 64]));
    measure(c, "launch", "copy_64_mib", &copy(DeviceModel::MI300X, 16_384));
    // At most 50 ms are wanted of a sample.
    let large = gemm(DeviceModel::MI300X, 4096, [256, 256, 64]);
    let options = TimeOptions::new(DeviceModel::MI300X).fidelity(Fidelity::Sampled);
    let sample = || large.run(&options).expect("the kernel runs").estimate.clk;
    c.benchmark_group("launch").bench_function("gemm_4096_sampled", |b| b.iter(sample));
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(std::time::Duration::from_secs(2));
    targets = loops, launches
}
criterion_main!(benches);
