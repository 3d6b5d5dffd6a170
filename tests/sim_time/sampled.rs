//! Samples of time mode: they say what the whole does, to within a few per cent, and put candidates in the
//! same order; launches that cannot be sampled are executed in full, and say why.

use groundswell::assembler::{AssemblerOptions, assemble};
use groundswell::check::timed;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::kernels::{Gemm, Waves, list};
use groundswell::prelude::*;
use groundswell::simulator::time::{DeviceModel, Fidelity, TimeOptions, TimeReport};
use groundswell::simulator::{LaunchConfig, Simulator};
use groundswell::target::TargetId;
use groundswell::templates::Matmul;
use groundswell::tuning::{InstanceKernel, SearchLevel, Template};

/// The most by which a sample may differ from the whole.
const TOLERANCE: f64 = 0.03;

/// A kernel's time by both.
fn both(executable: &Executable, device: &'static DeviceModel) -> [TimeReport; 2] {
    let simulated = Device::simulator(device.target);
    [Fidelity::Full, Fidelity::Sampled].map(|fidelity| {
        let options = TimeOptions::new(device).fidelity(fidelity);
        timed(executable, &simulated, &|_| None, 1, &options).expect("it can be timed")
    })
}

fn ratio([whole, sample]: &[TimeReport; 2]) -> f64 {
    sample.estimate.clk / whole.estimate.clk
}

#[test]
fn samples_of_ready_kernels_say_what_the_whole_does() {
    let mut worst = (0.0, String::new());
    let mut sampled = 0;
    for entry in list() {
        let kernel = entry.kernel(&Default::default()).expect("a ready kernel");
        let options = entry
            .values(&|_| None)
            .into_iter()
            .fold(Options::new(Target::GFX942), |o, (name, value)| o.set(name, value));
        let executable = compile_uncached(&kernel, &options, Verify::Off).expect(entry.name);
        let both = both(&executable, DeviceModel::MI300X);
        let off = (ratio(&both) - 1.0).abs();
        assert!(off <= TOLERANCE, "{}: {off:.4}", entry.name);
        sampled += usize::from(both[1].extent.fidelity == Fidelity::Sampled);
        assert_eq!(both[1].extent.fidelity == Fidelity::Full, both[1].extent.why.is_some(), "{}", entry.name);
        if off > worst.0 {
            worst = (off, entry.name.to_owned());
        }
    }
    // Most have addresses and branches that depend on no data.
    assert!(2 * sampled > list().len(), "{sampled} samples, the worst {worst:?}");
}

#[test]
fn samples_of_products_say_what_the_whole_does() {
    let tiles = [
        ([256, 256, 64], Waves::new(4, 2), Schedule::PingPong),
        ([128, 128, 64], Waves::new(2, 2), Schedule::Prefetch),
        ([64, 64, 64], Waves::new(2, 2), Schedule::Interleaved),
        ([32, 64, 128], Waves::new(2, 2), Schedule::None),
    ];
    for device in [DeviceModel::MI300X, DeviceModel::MI355X] {
        for ([m, n, k], waves, schedule) in tiles.clone() {
            for size in [[4096, 4096, 4096], [512, 1024, 16384], [1000, 3000, 2000]] {
                let gemm = Gemm::new(size[0], size[1], size[2]).output(F16).tile(m, n, k).waves(waves);
                let executable = gemm.schedule(schedule.clone()).compile(device.target).expect("a product");
                let both = both(&executable, device);
                let off = (ratio(&both) - 1.0).abs();
                assert!(off <= TOLERANCE, "{} {size:?} {m}x{n}x{k} {schedule:?}: {off:.4}", device.name);
                assert_eq!(both[1].extent.fidelity, Fidelity::Sampled);
                let [whole, sample] = both.map(|report| report.estimate.tera_operations);
                assert!((sample / whole - 1.0).abs() <= TOLERANCE, "{whole} {sample}");
            }
        }
    }
}

/// Places in the order of size.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rank as f64;
    }
    ranks
}

#[test]
fn samples_put_candidates_in_the_order_of_the_whole() {
    let matmul = Matmul::new([1024, 1536, 2048]);
    let points = matmul.space(Target::GFX942, SearchLevel::One).and_then(|space| space.enumerate());
    let points = points.expect("a space").points;
    let mut times = [Vec::new(), Vec::new()];
    for point in &points {
        let kernels = matmul.instantiate(TargetId::from(Target::GFX942), point).expect("an instance");
        let [InstanceKernel { kernel, options, .. }] = kernels.as_slice() else { continue };
        let executable = compile_uncached(kernel, options, Verify::Off).expect("it compiles");
        for (times, report) in times.iter_mut().zip(both(&executable, DeviceModel::MI300X)) {
            times.push(report.estimate.clk);
        }
    }
    let count = times[0].len() as f64;
    assert!(count >= 20.0, "{count} candidates");
    let [whole, sample] = times.map(|times| ranks(&times));
    let apart: f64 = whole.iter().zip(&sample).map(|(a, b)| (a - b).powi(2)).sum();
    let correlation = 1.0 - 6.0 * apart / (count * (count * count - 1.0));
    assert!(correlation >= 0.98, "rank correlation {correlation:.4}");
}

/// A kernel of one wave whose instructions are given; the address of a buffer is in s[4:5].
fn sampled(body: &str) -> TimeReport {
    let device = DeviceModel::MI300X;
    let text = format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.globl k\n.p2align 8\n.type k,@function\nk:\n\
         s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n{body}\ns_endpgm\n.size k, . - k\n.rodata\n\
         .p2align 6\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 32\n.amdhsa_next_free_sgpr 32\n\
         .amdhsa_accum_offset 16\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
         .amdhsa_group_segment_fixed_size 1024\n.amdhsa_kernarg_size 8\n.end_amdhsa_kernel\n"
    );
    let object = assemble(&text, AssemblerOptions::default()).expect("assembles").object;
    let mut simulator = Simulator::new(device.target);
    let module = simulator.load(&object).expect("loads");
    let buffer = simulator.alloc(4096).expect("memory");
    let mut words = [0u8; 4096];
    // The first word says how many trips there are.
    words[0] = 9;
    simulator.write(buffer, &words).expect("its own");
    let config = LaunchConfig::new([1, 1, 1], [64, 1, 1]);
    let options = TimeOptions::new(device).fidelity(Fidelity::Sampled);
    simulator.time(&module, "k", config, &buffer.to_le_bytes(), &options).expect("it can be timed")
}

fn trips(report: &TimeReport) -> u64 {
    report.main_loop.as_ref().map_or(0, |it| it.iterations)
}

#[test]
fn what_branches_depend_on_is_executed() {
    let counted = "s_mov_b32 s8, 40\nL:\nv_add_f32 v1, v1, v1\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 L";
    let report = sampled(counted);
    assert_eq!(
        (trips(&report), report.extent.reads_memory, report.unit.instructions),
        (39, false, 3 + 4 * 40 + 1)
    );
    // Through memory.
    let loaded = "s_load_dword s8, s[4:5], 0x0\ns_waitcnt lgkmcnt(0)\nL:\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\n\
                  s_cbranch_scc1 L";
    let report = sampled(loaded);
    assert_eq!((trips(&report), report.extent.reads_memory), (8, true));
    // Through LDS, and a vector register.
    let through_lds = "v_mov_b32 v1, 0\nv_mov_b32 v2, 7\nds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\nds_read_b32 v3, v1\n\
                       s_waitcnt lgkmcnt(0)\nv_readfirstlane_b32 s8, v3\nL:\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\n\
                       s_cbranch_scc1 L";
    let report = sampled(through_lds);
    assert_eq!((trips(&report), report.extent.fidelity), (6, Fidelity::Sampled));
}

#[test]
fn lanes_that_were_switched_off_keep_their_addresses() {
    // The second half of the lanes has the address of before EXEC was changed.
    let body = "v_lshlrev_b32 v1, 2, v0\ns_mov_b64 s[10:11], exec\ns_mov_b64 exec, 0xffffffff\nv_mov_b32 v1, 0\n\
                s_mov_b64 exec, s[10:11]\nglobal_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)";
    let report = sampled(body);
    let lines: u64 =
        report.instructions.iter().filter(|i| i.text.starts_with("global_load")).map(|i| i.lines).sum();
    assert_eq!(lines, 2, "one line of the first half, and one of the second");
}

#[test]
fn launches_that_wait_for_each_other_are_executed_in_full() {
    let body = "v_mov_b32 v1, 0\nv_mov_b32 v2, 1\nglobal_atomic_add v3, v1, v2, s[4:5] sc0\ns_waitcnt vmcnt(0)\n\
                v_readfirstlane_b32 s8, v3\nL:\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 L";
    let report = sampled(body);
    assert_eq!((report.extent.fidelity, trips(&report)), (Fidelity::Full, 8));
    assert_eq!(report.extent.why, Some("its workgroups wait for each other"));
    let report = sampled(
        "s_getpc_b64 s[8:9]\ns_add_u32 s8, s8, 16\ns_addc_u32 s9, s9, 0\ns_setpc_b64 s[8:9]\ns_nop 0\ns_nop 0",
    );
    assert_eq!(report.extent.why, Some("its code jumps to computed addresses"));
}
