//! Time mode and the size of the grid: a launch is never faster than one of its workgroups alone, and more
//! workgroups never take less time.

use groundswell::assembler::{AssemblerOptions, assemble};
use groundswell::kernels::Waves;
use groundswell::prelude::Schedule;
use groundswell::simulator::time::{DeviceModel, LoopBound, Resource, TimeOptions};
use groundswell::simulator::{LaunchConfig, Simulator};
use groundswell_testing::by_hand;
use groundswell_testing::timed::{Loop, Timed, repeat, shaped_gemm};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Room for the loads of all workgroups.
const BYTES: u64 = 1 << 24;

/// A kernel `k` of one of these bodies; v1 is the work-item times four, v2 the place of the workgroup, v3 of
/// the work-item.
fn kernel(device: &'static DeviceModel, body: &str, waves: u32) -> Timed {
    let code = format!(
        "s_load_dwordx4 s[4:7], s[0:1], 0x0
v_and_b32_e32 v0, 0x3ff, v0
v_lshlrev_b32_e32 v1, 2, v0
s_lshl_b32 s8, s2, 12
v_mov_b32_e32 v2, s8
v_add_u32_e32 v3, v2, v1
s_waitcnt lgkmcnt(0)
{body}
s_endpgm"
    );
    let directives = [".amdhsa_kernarg_size 16", ".amdhsa_group_segment_fixed_size 4096"];
    load(device, &by_hand::object(device.target, &code, &directives), waves)
}

fn load(device: &'static DeviceModel, object: &[u8], waves: u32) -> Timed {
    let mut simulator = Simulator::new(device.target);
    let module = simulator.load(object).expect("an object for the target");
    let kernarg = [0; 2].map(|_| simulator.alloc(BYTES).expect("memory").to_le_bytes()).concat();
    let config = LaunchConfig::new([1; 3], [64 * waves, 1, 1]);
    Timed { simulator, module, kernel: "k".to_owned(), config, kernarg }
}

/// Checks estimates for rising grids.
fn rises(what: &str, device: &'static DeviceModel, timed: &mut Timed, grids: &[u32]) {
    let mut before: Option<(u32, f64)> = None;
    for &grid in grids {
        timed.config.grid = [grid, 1, 1];
        let clk = timed.run(&TimeOptions::new(device)).unwrap_or_else(|e| panic!("{e}: {what}")).estimate.clk;
        if let Some((fewer, least)) = before {
            assert!(clk >= least, "{grid} workgroups take {clk} clk, {fewer} take {least}: {what}");
        }
        before = Some((grid, clk));
    }
}

const GRIDS: [u32; 12] = [1, 2, 7, 8, 9, 37, 76, 152, 304, 608, 1216, 3000];

#[test]
fn more_workgroups_of_the_smallest_kernel_never_take_less_time() {
    let text = include_str!("../sim/tiny.s");
    let object =
        assemble(text, AssemblerOptions::default()).unwrap_or_else(|faults| panic!("{faults}")).object;
    rises("tiny.s", DeviceModel::MI300X, &mut load(DeviceModel::MI300X, &object, 1), &GRIDS);
}

/// Parts of bodies: loads that all workgroups share, loads of their own, stores, arithmetic, LDS, barriers.
const PARTS: [&str; 9] = [
    "global_load_dword v4, v1, s[4:5]\ns_waitcnt vmcnt(0)",
    "global_load_dword v5, v1, s[4:5] offset:2048\nglobal_load_dword v6, v1, s[4:5] offset:1024\ns_waitcnt vmcnt(0)",
    "global_load_dword v7, v3, s[4:5]\ns_waitcnt vmcnt(0)",
    "global_load_dword v8, v3, s[4:5] offset:512",
    "global_store_dword v3, v1, s[6:7]",
    "s_load_dwordx8 s[12:19], s[4:5], 0x400\ns_waitcnt lgkmcnt(0)",
    "v_mul_f32_e32 v9, v1, v2\nv_add_f32_e32 v9, v9, v9\nv_add_f32_e32 v9, v9, v9",
    "ds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v10, v1",
    "v_add_u32_e32 v3, 0x100, v3",
];

#[test]
fn more_workgroups_of_random_kernels_never_take_less_time() {
    let mut random = StdRng::seed_from_u64(12);
    for number in 0..16 {
        let parts: Vec<&str> =
            (0..random.random_range(1..12)).map(|_| PARTS[random.random_range(0..PARTS.len())]).collect();
        let (body, waves) = (parts.join("\n"), random.random_range(1..5));
        let device = if number % 3 == 0 { DeviceModel::MI210 } else { DeviceModel::MI300X };
        rises(&format!("{waves} waves of\n{body}"), device, &mut kernel(device, &body, waves), &GRIDS);
    }
}

/// Parts, waves of a workgroup, device.
type Company = (&'static [usize], u32, &'static DeviceModel);

#[test]
fn company_never_helps() {
    let cases: [Company; 5] = [
        // The second workgroup found code that the first one still waited for, and loaded for both.
        (&[7, 4, 7, 0], 1, DeviceModel::MI210),
        (&[1, 6, 8, 6, 2, 7, 2, 1, 5, 5], 1, DeviceModel::MI210),
        // What other dies bring did not pass the compute unit's own way to memory.
        (&[4, 5, 1, 7, 5, 7, 7], 1, DeviceModel::MI300X),
        // A wave of the second workgroup had its turn before the last one of the first.
        (&[3, 8, 5, 5, 1, 0, 5], 3, DeviceModel::MI210),
        (&[3, 1, 0, 5, 0, 7], 3, DeviceModel::MI300X),
    ];
    for (parts, waves, device) in cases {
        let body = parts.iter().map(|&part| PARTS[part]).collect::<Vec<_>>().join("\n");
        rises(&format!("{waves} waves of\n{body}"), device, &mut kernel(device, &body, waves), &GRIDS);
    }
}

/// Workgroups load lines of their own, and then the same ones in a loop. The loop is what takes long, so its
/// lines say what compute units share: 38 of a die, and 8 dies.
#[test]
fn a_loop_says_what_is_shared() {
    let own = repeat("global_load_dword v4, v3, s[4:5]\n    v_add_u32_e32 v3, 0x100, v3", 16);
    let report = Loop {
        prologue: &format!(
            "v_lshlrev_b32 v1, 2, v0\n    s_lshl_b32 s8, s2, 12\n    v_add_u32 v3, s8, v1\n{own}"
        ),
        body: "    global_load_dword v5, v1, s[4:5]\n    v_add_u32_e32 v1, 0x100, v1\n    s_waitcnt vmcnt(0)"
            .to_owned(),
        iterations: 64,
        workgroups: 304,
        room: BYTES,
        ..Loop::default()
    }
    .run();
    let sharing = [report.sharing.die, report.sharing.device];
    assert_eq!(sharing, [1.0 / 38.0, 1.0 / 8.0]);
}

/// Of two workgroups the older one goes first, and the younger one is alone at the end: what the loop needs
/// is never more than the time that it takes.
#[test]
fn a_bound_takes_no_more_than_all_of_the_loop() {
    let products: String = (0..32)
        .map(|n| {
            format!(
                "\n    v_mfma_f32_16x16x16_f16 v[{0}:{1}], v[4:5], v[6:7], v[{0}:{1}]",
                16 + 4 * n,
                19 + 4 * n
            )
        })
        .collect();
    for workgroups in [304, 608, 1216] {
        let report = Loop {
            prologue: "v_lshlrev_b32 v1, 4, v0",
            body: format!("    global_load_dwordx4 v[4:7], v1, s[4:5]\n    s_waitcnt vmcnt(0){products}"),
            iterations: 64,
            waves: 4,
            workgroups,
            room: 1 << 16,
            registers: 256,
            accumulators: 256,
            lds: 0,
            ..Loop::default()
        }
        .run();
        let bound = report.main_loop.expect("a loop").bound;
        assert_eq!(bound.resource, Resource::Matrix, "{bound}");
        let share = bound.share.expect("it goes round");
        assert!((0.7..=1.0).contains(&share), "{workgroups}: {bound}");
    }
}

/// The bound of a product's main loop while all compute units of a MI300X are busy.
fn bound(tile: [i64; 3], waves: Waves, schedule: Schedule) -> (LoopBound, String) {
    let product = shaped_gemm(DeviceModel::MI300X, [4096, 4096, 1024], tile, waves, schedule);
    let report = product.run(&TimeOptions::new(DeviceModel::MI300X).rounds(1)).expect("it runs");
    (report.main_loop.clone().expect("a loop over K").bound, report.profile())
}

/// A trip of 64 x 64 x 64 loads 16 KB for 256 clk of matrix instructions, one of 256 x 256 x 64 loads 64 KB
/// for 4096. A compute unit of MI300X has 30 bytes of L2 per clk, and up to 44 of lines that others read.
#[test]
fn the_report_names_what_bounds_the_main_loop() {
    let (small, text) = bound([64, 64, 64], Waves::new(2, 2), Schedule::Prefetch);
    let need = |bound: &LoopBound, resource| {
        let need = bound.needs.iter().find(|need| need.resource == resource);
        need.unwrap_or_else(|| panic!("{resource:?}: {bound}")).clone()
    };
    let l2 = need(&small, Resource::L2).transfer.expect("L2 is shared");
    assert_eq!(small.resource, Resource::L2, "{small}");
    assert!((36.0..44.0).contains(&l2.had), "{small}");
    assert!((60.0..66.0).contains(&l2.asked) && small.share.is_some_and(|share| share > 0.7), "{small}");
    assert!(text.contains("  bound      L2: "), "{text}");
    let (large, text) = bound([256, 256, 64], Waves::new(2, 4), Schedule::PingPong);
    let l2 = need(&large, Resource::L2).transfer.expect("L2 is shared");
    assert_eq!((large.resource, large.clk), (Resource::Matrix, 4096.0), "{large}");
    assert!((15.0..17.0).contains(&l2.asked) && large.share.is_some_and(|share| share > 0.85), "{large}");
    assert!(text.contains("  bound      matrix cores: 4096 clk"), "{text}");
}
