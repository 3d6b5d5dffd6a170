//! Speed of the simulator's time mode, in simulated wave instructions per second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use groundswell::codegen::assembler::{AssemblerOptions, assemble};
use groundswell::runtime::sim::time::{Device, TimeOptions};
use groundswell::runtime::sim::{LaunchConfig, Module, Simulator};

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

struct Loaded {
    simulator: Simulator,
    module: Module,
    kernarg: Vec<u8>,
    waves: u32,
}

impl Loaded {
    fn new(body: &str, waves: u32) -> Loaded {
        let text = format!(
            "    .amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"
    .globl k
    .p2align 8
    .type k,@function
k:
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_and_b32 v2, 63, v0
    v_lshlrev_b32 v2, 4, v2
    v_lshlrev_b32 v1, 4, v0
    s_waitcnt lgkmcnt(0)
    s_movk_i32 s10, 200
loop:
{body}
    s_sub_u32 s10, s10, 1
    s_cmp_lg_u32 s10, 0
    s_cbranch_scc1 loop
    s_endpgm
    .size k, . - k
    .rodata
    .p2align 6
    .amdhsa_kernel k
      .amdhsa_next_free_vgpr 96
      .amdhsa_next_free_sgpr 32
      .amdhsa_accum_offset 96
      .amdhsa_group_segment_fixed_size 16384
      .amdhsa_user_sgpr_kernarg_segment_ptr 1
      .amdhsa_kernarg_size 8
    .end_amdhsa_kernel
"
        );
        let object = assemble(&text, AssemblerOptions::default()).expect("the benchmark assembles").object;
        let mut simulator = Simulator::new(Device::MI300X.target);
        let module = simulator.load(&object).expect("the object loads");
        let buffer = simulator.alloc(1 << 16).expect("small");
        Loaded { simulator, module, kernarg: buffer.to_le_bytes().to_vec(), waves }
    }

    /// Instructions that were simulated.
    fn run(&self) -> u64 {
        let config = LaunchConfig::new([1, 1, 1], [64 * self.waves, 1, 1]);
        let options = TimeOptions::new(Device::MI300X);
        let report = self.simulator.time(&self.module, "k", config, &self.kernarg, &options);
        report.expect("the kernel runs").unit.instructions
    }
}

fn sim_time(c: &mut Criterion) {
    let bodies = [
        ("gemm_like", gemm_like()),
        ("fma_f32", "    v_fma_f32 v3, v1, v2, v3\n".repeat(32)),
        ("ds_read_b128", "    ds_read_b128 v[12:15], v2\n".repeat(32)),
        ("global_load_dwordx4", "    global_load_dwordx4 v[4:7], v1, s[4:5]\n".repeat(32)),
    ];
    let mut group = c.benchmark_group("sim_time");
    for (name, body) in &bodies {
        let loaded = Loaded::new(body, 16);
        group.throughput(Throughput::Elements(loaded.run()));
        group.bench_function(*name, |b| b.iter(|| loaded.run()));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(std::time::Duration::from_secs(2));
    targets = sim_time
}
criterion_main!(benches);
