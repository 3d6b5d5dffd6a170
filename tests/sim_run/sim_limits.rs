//! Kernels that never end are stopped in every mode and with every grid: loops that change nothing at once,
//! others by the budget of instructions or by the time on the host. Waves that wait for others cost little
//! while they do, and run mode lets waves go on in the order that it is asked for.

use std::time::{Duration, Instant};

use groundswell::prelude::*;
use groundswell::simulator::time::{DeviceModel as Chip, TimeOptions};
use groundswell::simulator::{
    CheckOptions, FaultKind, FindingKind, LaunchConfig, Limits, Module, SimError, Simulator, WaveOrder,
};
use groundswell_testing::by_hand;

/// What stopped a launch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum End {
    Regular,
    NoProgress,
    Budget,
    Time,
}

/// A device with the kernel `k` of a body, and 4096 bytes of zero, whose address is its argument.
fn device_with(body: &str) -> (Simulator, Module, [u8; 8]) {
    let code = format!(
        "s_load_dwordx2 s[4:5], s[0:1], 0x0
v_mov_b32_e32 v1, 0
s_mov_b32 s8, 0
s_waitcnt lgkmcnt(0)
{body}
s_endpgm"
    );
    let object = by_hand::object("gfx942", &code, &[".amdhsa_kernarg_size 8"]);
    let mut simulator = Simulator::new(Target::GFX942);
    let module = simulator.load(&object).expect("an object for the target");
    let address = simulator.alloc(4096).expect("little memory");
    simulator.write(address, &[0; 4096]).expect("inside");
    (simulator, module, address.to_le_bytes())
}

/// Runs a body in each mode.
fn modes(body: &str, grid: u32, limits: Limits) -> [End; 3] {
    let (simulator, module, kernarg) = device_with(body);
    let config = LaunchConfig::new([grid, 1, 1], [256, 1, 1]).limits(limits);
    let fault = |error: SimError| match error {
        SimError::Fault(fault) => match fault.kind {
            FaultKind::NoProgress => End::NoProgress,
            FaultKind::Budget(_) => End::Budget,
            FaultKind::TimedOut(_) => End::Time,
            _ => panic!("{fault}"),
        },
        other => panic!("{other}"),
    };
    let ran = simulator.launch(&module, "k", config, &kernarg);
    let report =
        simulator.check(&module, "k", config, &kernarg, &CheckOptions { seed: 3 }).expect("no fault");
    let found = report.findings.iter().map(|f| match f.kind {
        FindingKind::NoProgress => End::NoProgress,
        FindingKind::Endless { .. } => End::Budget,
        FindingKind::TimedOut { .. } => End::Time,
        _ => panic!("{report}"),
    });
    let checked = found.reduce(|first, other| if first == other { first } else { panic!("{report}") });
    let timed = simulator.time(&module, "k", config, &kernarg, &TimeOptions::new(Chip::MI300X));
    [
        ran.map_or_else(fault, |_| End::Regular),
        checked.unwrap_or(End::Regular),
        timed.map_or_else(fault, |_| End::Regular),
    ]
}

#[test]
fn loops_that_change_nothing_are_found_at_once_in_every_mode_and_grid() {
    let bodies = [
        "again:\ns_branch again",
        "again:\ns_nop 3\nv_mov_b32_e32 v2, v1\ns_sleep 1\ns_branch again",
        // Comes back to the same registers after a few rounds only.
        "again:\ns_add_u32 s8, s8, 1\ns_and_b32 s8, s8, 7\ns_branch again",
        // Wherever the load is by then.
        "global_load_dword v2, v1, s[4:5]\nagain:\ns_branch again",
    ];
    let start = Instant::now();
    for body in bodies {
        for grid in [1, 3, 700] {
            assert_eq!(modes(body, grid, Limits::default()), [End::NoProgress; 3], "{grid} x {body}");
        }
    }
    // Fifteen seconds were allowed for each of the 36 launches.
    assert!(start.elapsed() < Duration::from_secs(180), "{:?}", start.elapsed());
}

#[test]
fn loops_that_end_are_left_alone() {
    let bodies = [
        "again:\ns_add_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0x2000\ns_cbranch_scc1 again",
        // Nothing but a vector register changes from round to round.
        "v_mov_b32_e32 v2, 0x1800\nagain:\nv_add_u32_e32 v1, 1, v1\nv_cmp_ne_u32_e32 vcc, v1, v2\ns_cbranch_vccnz again",
        // Nothing but memory does.
        "v_mov_b32_e32 v2, 1\nagain:\nglobal_atomic_add v3, v1, v2, s[4:5] sc0\ns_waitcnt vmcnt(0)\n\
         v_readfirstlane_b32 s9, v3\ns_mov_b32 s10, 0x1000\ns_cmp_lt_u32 s9, s10\nv_mov_b32_e32 v3, 0\ns_mov_b32 s9, 0\n\
         s_cbranch_scc1 again",
    ];
    for body in bodies {
        assert_eq!(modes(body, 2, Limits::default()), [End::Regular; 3], "{body}");
    }
}

#[test]
fn the_budget_stops_loops_that_count() {
    let limits = Limits { instructions: 200_000, time: None };
    let body = "again:\ns_add_u32 s8, s8, 1\ns_branch again";
    for grid in [1, 700] {
        assert_eq!(modes(body, grid, limits), [End::Budget; 3]);
    }
}

#[test]
fn the_limit_of_time_stops_waves_that_never_end() {
    let limits = Limits { time: Some(Duration::from_millis(100)), ..Limits::default() };
    let bodies = [
        "again:\nglobal_load_dword v2, v1, s[4:5] sc1\ns_waitcnt vmcnt(0)\nv_readfirstlane_b32 s9, v2\n\
         s_cmp_eq_u32 s9, 0\ns_cbranch_scc1 again",
        "again:\ns_barrier\ns_branch again",
    ];
    for body in bodies {
        let start = Instant::now();
        assert_eq!(modes(body, 1, limits), [End::Time; 3], "{body}");
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }
}

/// A load of the first dword into s9.
const LOOK: &str = "global_load_dword v2, v1, s[4:5] sc1\ns_waitcnt vmcnt(0)\nv_readfirstlane_b32 s9, v2\n";

#[test]
fn waves_that_wait_for_nobody_are_stopped_and_the_first_is_named() {
    let (simulator, module, kernarg) =
        device_with(&format!("again:\n{LOOK}s_cmp_eq_u32 s9, 0\ns_cbranch_scc1 again"));
    for grid in [1, 5] {
        let config = LaunchConfig::new([grid, 1, 1], [256, 1, 1]);
        let error = simulator.launch(&module, "k", config, &kernarg).expect_err("nobody writes");
        let SimError::Fault(fault) = error else { panic!("{error}") };
        assert!(matches!(fault.kind, FaultKind::Standstill(_)), "{fault}");
        assert_eq!((fault.workgroup, fault.wave), ([0; 3], 0));
    }
}

#[test]
fn waves_and_workgroups_wait_for_those_after_them() {
    // Each of the 4 waves of 9 workgroups counts once all later ones have: the last wave begins. One lane of
    // each looks and stores.
    let body = format!(
        "v_lshrrev_b32_e32 v4, 6, v0\nv_readfirstlane_b32 s10, v4\ns_lshl_b32 s11, s2, 2\ns_add_u32 s10, s10, s11\n\
         s_sub_u32 s10, 35, s10\ns_mov_b64 exec, 1\nagain:\n{LOOK}s_cmp_lg_u32 s9, s10\ns_cbranch_scc1 again\n\
         s_add_u32 s9, s9, 1\nv_mov_b32_e32 v2, s9\nglobal_store_dword v1, v2, s[4:5] sc1\ns_waitcnt vmcnt(0)"
    );
    let (simulator, module, kernarg) = device_with(&body);
    let config = LaunchConfig::new([9, 1, 1], [256, 1, 1]);
    let stats = simulator.launch(&module, "k", config, &kernarg).expect("they end");
    assert_eq!(stats.waves, 36);
    let found = simulator.read(u64::from_le_bytes(kernarg), 4).expect("inside");
    assert_eq!(found, 36u32.to_le_bytes());
}

/// Each wave of a workgroup of 256 waits until the wave before it has set its flag, and sets its own.
const CHAIN: &str = "v_and_b32_e32 v0, 0x3ff, v0
v_lshrrev_b32_e32 v4, 6, v0
v_mov_b32_e32 v5, 1
s_nop 1
v_readfirstlane_b32 s9, v4
s_lshl_b32 s10, s2, 2
s_add_u32 s9, s9, s10
s_lshl_b32 s10, s9, 2
v_mov_b32_e32 v4, s10
s_cmp_eq_u32 s9, 0
s_cbranch_scc1 sets
waits:
s_sleep 1
global_load_dword v3, v4, s[4:5] offset:-4 sc1
s_waitcnt vmcnt(0)
buffer_inv sc1
v_readfirstlane_b32 s11, v3
s_cmp_eq_u32 s11, 0
s_cbranch_scc1 waits
sets:
global_store_dword v4, v5, s[4:5] sc1
s_waitcnt vmcnt(0)";

#[test]
fn a_chain_of_waits_costs_check_mode_as_much_as_it_has_waves() {
    let mut before = 0;
    // The last chain has more waves than run at the same time.
    for waves in [64u32, 256, 2048] {
        let (mut simulator, module, _) = device_with(CHAIN);
        let flags = simulator.alloc(4 * u64::from(waves)).expect("little memory");
        simulator.write(flags, &vec![0; 4 * waves as usize]).expect("inside");
        let config = LaunchConfig::new([waves / 4, 1, 1], [256, 1, 1]);
        let check = || {
            simulator.write(flags, &vec![0; 4 * waves as usize]).expect("inside");
            let options = CheckOptions { seed: 5 };
            simulator.check(&module, "k", config, &flags.to_le_bytes(), &options).expect("no fault")
        };
        let (report, again) = (check(), check());
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.instructions, again.instructions);
        // Of its 20 instructions a wave executes those of the loop a few times.
        assert!(report.instructions < 150 * u64::from(waves), "{waves}: {}", report.instructions);
        assert!(report.instructions > before, "{waves}: {}", report.instructions);
        before = report.instructions;
        let set = simulator.read(flags, 4 * waves as usize).expect("inside");
        assert!(set.chunks(4).all(|flag| flag == 1u32.to_le_bytes()), "{waves}");
    }
}

#[test]
fn who_waits_for_nobody_is_stopped_in_check_mode() {
    // Nobody sets the first flag.
    let (simulator, module, kernarg) =
        device_with(&CHAIN.replace("s_cmp_eq_u32 s9, 0", "s_cmp_eq_u32 s9, 99"));
    let config = LaunchConfig::new([2, 1, 1], [256, 1, 1]);
    let limits = [
        Limits { instructions: 20_000, time: None },
        Limits { time: Some(Duration::from_millis(300)), ..Limits::default() },
    ];
    for limits in limits {
        let launch = (config.limits(limits), u64::from_le_bytes(kernarg) + 4);
        let report =
            simulator.check(&module, "k", launch.0, &launch.1.to_le_bytes(), &CheckOptions { seed: 1 });
        let report = report.expect("no fault");
        let ends =
            |kind: &FindingKind| matches!(kind, FindingKind::Endless { .. } | FindingKind::TimedOut { .. });
        assert!(report.findings.iter().any(|finding| ends(&finding.kind)), "{report}");
    }
}

/// Two waves add what both have left in LDS, and leave something else there some instructions later. Between
/// the two belongs a barrier.
fn two_sums(between: &str) -> String {
    let work = "v_xor_b32_e32 v7, 0, v7\n".repeat(40);
    format!(
        "v_and_b32_e32 v0, 0x3ff, v0
v_lshrrev_b32_e32 v4, 6, v0
v_lshlrev_b32_e32 v5, 2, v4
v_add_u32_e32 v6, 1, v4
v_mov_b32_e32 v7, 0
ds_write_b32 v5, v6
s_waitcnt lgkmcnt(0)
s_barrier
ds_read_b64 v[8:9], v7
s_waitcnt lgkmcnt(0)
v_add_u32_e32 v10, v8, v9
{work}v_mul_u32_u24_e32 v11, 10, v10
{between}
ds_write_b32 v5, v11
s_waitcnt lgkmcnt(0)
s_barrier
global_store_dword v5, v10, s[4:5]"
    )
}

#[test]
fn waves_go_on_in_turns_and_in_the_order_that_is_asked_for() {
    let run = |between: &str, order: WaveOrder| {
        let (simulator, module, kernarg) = device_with(&two_sums(between));
        let config = LaunchConfig::new([1; 3], [128, 1, 1]).dynamic_lds(64).order(order);
        simulator.launch(&module, "k", config, &kernarg).expect("no fault");
        let sums = simulator.read(u64::from_le_bytes(kernarg), 8).expect("inside");
        [sums[0], sums[4]]
    };
    let orders = ["round-robin", "round-robin:1", "first-to-last", "last-to-first", "random:1", "random:2"];
    for order in orders.map(|name| name.parse().expect("an order")) {
        assert_eq!(run("s_barrier", order), [3, 3], "{order}");
    }
    // Without the barrier the waves are right as long as they stay together, as on hardware.
    assert_eq!(run("", WaveOrder::default()), [3, 3]);
    assert_eq!(run("", WaveOrder::RoundRobin { turn: 1 }), [3, 3]);
    assert_eq!(run("", WaveOrder::FirstToLast), [3, 32]);
    assert_eq!(run("", WaveOrder::LastToFirst), [31, 3]);
}

#[test]
fn devices_pass_limits_on() {
    let [m, n] = symbols(["M", "N"]);
    let copy = Kernel::trace("copy", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1), wave(m, 4)]);
        let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
        let x = w.read(a);
        w.write(x, b);
    });
    let copy = copy.expect("a valid kernel");
    let options = Options::new(Target::GFX942).set(m, 64).set(n, 64);
    let executable = copy.compile(&options).expect("it compiles");
    let limits = Limits { instructions: 3, time: None };
    let device = Device::simulator(Target::GFX942);
    for (device, ends) in [(device.clone(), true), (device.with_limits(limits), false)] {
        let [a, b] = [1.0f32, 2.0].map(|x| device.upload(&[x; 64 * 64]).expect("little memory"));
        let result = device.launch(&executable).buffer(&a).buffer(&b).run();
        assert_eq!(result.is_ok(), ends, "{result:?}");
    }
}
