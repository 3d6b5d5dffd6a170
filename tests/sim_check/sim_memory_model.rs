//! Check mode and memory between waves: a producer leaves data and sets a flag, a consumer waits for the flag
//! and takes them. Every combination of caches written back and forgotten, scopes and waits has to be judged
//! as LLVM's memory model says, with every seed.

use groundswell::assembler::{AssemblerOptions, assemble};
use groundswell::prelude::*;
use groundswell::simulator::{
    CheckOptions, CheckReport, FindingKind, LaunchConfig, Memory, Simulator, Unordered,
};
use groundswell_testing::by_hand;
use groundswell_testing::places::root;

/// Room for data, results after them, and the flag.
const BYTES: usize = 40_000;
const FLAG: usize = 0x8000;

/// Checks kernel `k` of a code object on two workgroups of `block` work-items.
fn check(target: &str, object: &[u8], (grid, block): (u32, u32), seed: u64) -> CheckReport {
    let mut simulator = Simulator::new(Target::from_name(target).expect("a known target"));
    let module = simulator.load(object).expect("an object for the target");
    let mut kernarg = Vec::new();
    for _ in 0..2 {
        let address = simulator.alloc(BYTES as u64).expect("little memory");
        simulator.write(address, &[0; BYTES]).expect("inside");
        kernarg.extend(address.to_le_bytes());
    }
    let config = LaunchConfig::new([grid, 1, 1], [block, 1, 1]).instruction_budget(1_000_000);
    simulator.check(&module, "k", config, &kernarg, &CheckOptions { seed }).expect("no fault")
}

/// Assembles a file of `tests/sim/handover`.
fn case(name: &str) -> Vec<u8> {
    let path = root().join(format!("tests/sim/handover/{name}.s"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assemble(&text, AssemblerOptions::default()).unwrap_or_else(|faults| panic!("{faults}")).object
}

fn reasons(report: &CheckReport) -> Vec<Unordered> {
    let reason = |kind: &FindingKind| match kind {
        FindingKind::Race { reason, .. } => Some(*reason),
        _ => None,
    };
    report.findings.iter().filter_map(|f| reason(&f.kind)).collect()
}

#[test]
fn flags_between_workgroups_order_what_they_hand_over() {
    for name in ["pc_ok", "pc_atomic"] {
        let object = case(name);
        for seed in 0..200 {
            let report = check("gfx942", &object, (2, 256), seed);
            assert!(report.is_clean(), "{name}, seed {seed}: {report}");
        }
    }
}

#[test]
fn missing_scopes_are_found_with_every_seed() {
    let cases = [
        ("pc_no_wbl2", Unordered::NotWrittenBack),
        ("pc_inv_sc0", Unordered::NotInvalidated),
        ("pc_flag_sc0", Unordered::NarrowScope),
    ];
    for (name, expected) in cases {
        let object = case(name);
        for seed in 0..40 {
            let report = check("gfx942", &object, (2, 256), seed);
            assert_eq!(reasons(&report), [expected], "{name}, seed {seed}: {report}");
        }
    }
}

/// A producer and a consumer.
#[derive(Copy, Clone, Debug)]
struct Pair {
    target: &'static str,
    split: bool,
    /// In one workgroup, as its two waves.
    together: bool,
    data_store: &'static str,
    write_back: &'static str,
    waits: bool,
    flag_store: &'static str,
    flag_load: &'static str,
    invalidate: &'static str,
    data_load: &'static str,
}

impl Pair {
    fn object(&self) -> Vec<u8> {
        let Pair { target, data_store, write_back, flag_store, flag_load, invalidate, data_load, .. } = *self;
        let producer = if self.together { "s20" } else { "s2" };
        let wait = if self.waits { "s_waitcnt vmcnt(0)" } else { "" };
        let code = format!(
            "s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshrrev_b32_e32 v2, 6, v0
v_and_b32_e32 v0, 63, v0
v_lshlrev_b32_e32 v1, 2, v0
s_nop 3
v_readfirstlane_b32 s20, v2
s_waitcnt lgkmcnt(0)
v_mov_b32_e32 v6, {FLAG:#x}
v_mov_b32_e32 v7, 1
s_cmp_eq_u32 {producer}, 0
s_cbranch_scc0 consumer
v_add_u32_e32 v3, 100, v0
global_store_dword v1, v3, s[6:7] {data_store}
{write_back}
{wait}
{flag_store}
s_endpgm
consumer:
s_sleep 1
{flag_load}
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s25, v7
s_cmp_eq_u32 s25, 0
s_cbranch_scc1 consumer
{invalidate}
global_load_dword v8, v1, s[6:7] {data_load}
s_waitcnt vmcnt(0)
global_store_dword v1, v8, s[6:7] offset:1024
s_endpgm"
        );
        let split = format!(".amdhsa_tg_split {}", u32::from(self.split));
        by_hand::object(target, &code, &[".amdhsa_kernarg_size 16", &split])
    }

    fn launch(&self) -> (u32, u32) {
        if self.together { (1, 128) } else { (2, 64) }
    }

    /// Checks a few seeds against what must be found.
    fn judge(&self, is_right: bool) {
        let object = self.object();
        for seed in 0..2 {
            let report = check(self.target, &object, self.launch(), seed);
            assert_eq!(report.is_clean(), is_right, "{self:?}, seed {seed}: {report}");
            assert_eq!(reasons(&report).is_empty(), is_right, "{self:?}, seed {seed}: {report}");
        }
    }
}

/// Store and load of a flag with these modifiers.
const STORES: [(&str, &str); 3] = [
    ("sc0", "global_store_dword v6, v7, s[6:7] sc0"),
    ("sc1", "global_store_dword v6, v7, s[6:7] sc1"),
    ("atomic", "global_atomic_or v6, v7, s[6:7]"),
];
const LOADS: [(&str, &str); 3] = [
    ("sc0", "global_load_dword v7, v6, s[6:7] sc0"),
    ("sc1", "global_load_dword v7, v6, s[6:7] sc1"),
    ("atomic", "v_mov_b32_e32 v7, 0\nglobal_atomic_or v7, v6, v7, s[6:7] sc0"),
];

#[test]
fn every_combination_between_workgroups_from_gfx942_on() {
    for target in ["gfx942", "gfx950"] {
        for data_store in ["", "sc0", "sc1", "nt"] {
            for write_back in ["", "buffer_wbl2 sc0", "buffer_wbl2 sc1", "buffer_wbl2 sc0 sc1"] {
                for waits in [false, true] {
                    for (stored, flag_store) in STORES {
                        for (loaded, flag_load) in LOADS {
                            for invalidate in ["", "buffer_inv sc0", "buffer_inv sc1"] {
                                for data_load in ["", "sc0", "sc1"] {
                                    let known = stored != "sc0" && loaded != "sc0";
                                    let back = data_store == "sc1" || write_back.contains("sc1");
                                    let fresh = data_load == "sc1" || invalidate.contains("sc1");
                                    // One chip for each combination is enough.
                                    let turn = data_store.len() + write_back.len() + invalidate.len();
                                    if (turn + stored.len()).is_multiple_of(2) != (target == "gfx942") {
                                        continue;
                                    }
                                    let pair = Pair {
                                        target,
                                        split: false,
                                        together: false,
                                        data_store,
                                        write_back,
                                        waits,
                                        flag_store,
                                        flag_load,
                                        invalidate,
                                        data_load,
                                    };
                                    // Two atomics do not race, whatever they find.
                                    let atomic = data_store == "sc1" && data_load == "sc1";
                                    pair.judge(known && (atomic || waits && back && fresh));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_combination_between_workgroups_of_gfx90a() {
    let flag_loads = [
        "global_load_dword v7, v6, s[6:7] glc",
        "v_mov_b32_e32 v7, 0\nglobal_atomic_or v7, v6, v7, s[6:7] glc",
    ];
    let flag_stores = ["global_store_dword v6, v7, s[6:7]", "global_atomic_or v6, v7, s[6:7]"];
    for waits in [false, true] {
        for flag_store in flag_stores {
            for flag_load in flag_loads {
                for invalidate in ["", "buffer_invl2", "buffer_wbinvl1_vol"] {
                    // Not with glc on the load of the data: as stores have no scope there, that is a flag
                    // itself.
                    let pair = Pair {
                        target: "gfx90a",
                        split: false,
                        together: false,
                        data_store: "",
                        write_back: "",
                        waits,
                        flag_store,
                        flag_load,
                        invalidate,
                        data_load: "",
                    };
                    pair.judge(waits && invalidate == "buffer_wbinvl1_vol");
                }
            }
        }
    }
}

#[test]
fn waves_of_a_workgroup_share_a_cache_unless_it_is_split() {
    for split in [false, true] {
        for waits in [false, true] {
            for (_, flag_store) in STORES {
                for (_, flag_load) in LOADS {
                    for invalidate in ["", "buffer_inv sc0", "buffer_inv sc1"] {
                        for data_load in ["", "sc0"] {
                            let pair = Pair {
                                target: "gfx942",
                                split,
                                together: true,
                                data_store: "",
                                write_back: "",
                                waits,
                                flag_store,
                                flag_load,
                                invalidate,
                                data_load,
                            };
                            let fresh = !invalidate.is_empty() || data_load == "sc0";
                            pair.judge(!split || waits && fresh);
                        }
                    }
                }
            }
        }
    }
}

/// Two waves, or two workgroups, with a body of their own; `s20` is the wave.
fn body(body: &str, split: bool) -> Vec<u8> {
    let code = format!(
        "s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_lshrrev_b32_e32 v2, 6, v0
v_and_b32_e32 v9, 63, v0
v_lshlrev_b32_e32 v9, 2, v9
v_mov_b32_e32 v5, 7
s_nop 3
v_readfirstlane_b32 s20, v2
s_waitcnt lgkmcnt(0)
{body}
s_endpgm"
    );
    let lds = format!(".amdhsa_group_segment_fixed_size {}", if split { 0 } else { 512 });
    let split = format!(".amdhsa_tg_split {}", u32::from(split));
    by_hand::object("gfx942", &code, &[".amdhsa_kernarg_size 16", &lds, &split])
}

#[test]
fn a_barrier_of_a_split_workgroup_needs_waits_and_an_invalidation() {
    let exchange = |wait: &str, invalidate: &str| {
        format!(
            "v_xor_b32_e32 v2, 0x100, v1
global_store_dword v1, v0, s[6:7]
{wait}
s_barrier
{invalidate}
global_load_dword v3, v2, s[6:7]
s_waitcnt vmcnt(0)
global_store_dword v1, v3, s[6:7] offset:1024"
        )
    };
    let (wait, invalidate) = ("s_waitcnt vmcnt(0)", "buffer_inv sc0");
    for seed in 0..50 {
        let found = |split, wait: &str, invalidate: &str| {
            reasons(&check("gfx942", &body(&exchange(wait, invalidate), split), (1, 128), seed))
        };
        assert_eq!(found(false, "", ""), [], "seed {seed}");
        assert_eq!(found(true, wait, invalidate), [], "seed {seed}");
        assert_eq!(found(true, "", invalidate), [Unordered::NotWaited], "seed {seed}");
        assert_eq!(found(true, wait, ""), [Unordered::NotInvalidated], "seed {seed}");
    }
}

#[test]
fn what_other_waves_stored_is_passed_on() {
    // Every wave stores, the first one writes back and sets the flag after a barrier.
    let text = "s_cmp_eq_u32 s2, 0
s_cbranch_scc0 consumer
global_store_dword v1, v0, s[6:7]
s_barrier
s_cmp_eq_u32 s20, 0
s_cbranch_scc0 end
buffer_wbl2 sc1
s_waitcnt vmcnt(0)
v_mov_b32_e32 v6, 0x8000
global_store_dword v6, v5, s[6:7] sc1
s_branch end
consumer:
v_mov_b32_e32 v6, 0x8000
s_cmp_eq_u32 s20, 0
s_cbranch_scc0 after
poll:
s_sleep 1
global_load_dword v7, v6, s[6:7] sc1
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s25, v7
s_cmp_eq_u32 s25, 0
s_cbranch_scc1 poll
buffer_inv sc1
after:
s_barrier
global_load_dword v8, v1, s[6:7]
s_waitcnt vmcnt(0)
global_store_dword v1, v8, s[6:7] offset:1024
end:";
    let (good, bad) = (body(text, false), body(&text.replace("buffer_wbl2 sc1\n", ""), false));
    for seed in 0..50 {
        let report = check("gfx942", &good, (2, 128), seed);
        assert!(report.is_clean(), "seed {seed}: {report}");
        let report = check("gfx942", &bad, (2, 128), seed);
        assert_eq!(reasons(&report), [Unordered::NotWrittenBack], "seed {seed}: {report}");
    }
}

#[test]
fn two_stores_of_the_same_value_are_a_note() {
    let stores = [
        (Memory::Device, (1, 128), "global_store_dword v9, v5, s[6:7]"),
        (Memory::Device, (1, 128), "v_mov_b32_e32 v4, 9\nglobal_store_dwordx2 v1, v[4:5], s[6:7]"),
        (Memory::Device, (2, 64), "global_store_dword v9, v5, s[6:7]"),
        (Memory::Device, (2, 64), "global_store_byte v0, v5, s[6:7]"),
        (Memory::Device, (2, 64), "global_store_dword v9, v5, s[6:7] sc0"),
        (Memory::Lds, (1, 128), "ds_write_b32 v9, v5"),
        (Memory::Lds, (1, 128), "v_mov_b32_e32 v6, v5\nds_write2_b32 v9, v5, v6 offset1:1"),
        (Memory::Lds, (1, 128), "ds_write_b8 v9, v5"),
    ];
    for (number, (memory, launch, store)) in stores.into_iter().enumerate() {
        for seed in 0..8 {
            let report = check("gfx942", &body(store, false), launch, seed);
            let different = store.contains("x2");
            let notes = report.notes.iter().filter(
                |note| matches!(note.kind, FindingKind::RepeatedStore { memory: m, .. } if m == memory),
            );
            assert_eq!(report.is_clean(), !different, "{number}, seed {seed}: {report}");
            assert_eq!(notes.count(), usize::from(!different), "{number}, seed {seed}: {report}");
            // The wave or the workgroup makes the values differ.
            let which = if launch.0 == 2 { "s2" } else { "s20" };
            let other = format!("v_mov_b32_e32 v5, {which}\n{store}");
            let report = check("gfx942", &body(&other, false), launch, seed);
            assert!(!report.is_clean(), "{number}, seed {seed}: {report}");
        }
    }
}

/// Two waves store the same, and one or both read it: whichever store comes last, they find that value. A
/// read before that, or another value, is a race still.
#[test]
fn a_value_that_several_have_stored_can_be_read() {
    let device =
        ["global_store_dword v9, v5, s[6:7]\n", "global_load_dword v7, v9, s[6:7]\ns_waitcnt vmcnt(0)\n"];
    let lds = ["ds_write_b32 v9, v5\n", "ds_read_b32 v7, v9\ns_waitcnt lgkmcnt(0)\n"];
    // Only the first wave or workgroup does it.
    let first =
        |body: &str, which: &str| format!("s_cmp_lg_u32 {which}, 0\ns_cbranch_scc1 rest\n{body}rest:\n");
    const BARRIER: &str = "s_waitcnt lgkmcnt(0)\ns_barrier\n";
    const OTHER: &str = "v_mov_b32_e32 v5, 8\n";
    for (launch, which, [store, read]) in
        [((1, 128), "s20", device), ((2, 64), "s2", device), ((1, 128), "s20", lds)]
    {
        let is_one = launch.0 == 1;
        let cases = [
            (format!("{store}{read}"), true),
            (format!("{store}{}", first(read, which)), true),
            (format!("{store}{read}{store}{read}"), true),
            (format!("{}{store}", first(read, which)), false),
            (format!("{}{store}{read}", first(read, which)), false),
            (format!("v_mov_b32_e32 v5, {which}\n{store}{read}"), false),
            (first(&format!("{store}{read}{OTHER}"), which) + store, false),
            // One of them has not stored it.
            (format!("{}{read}", first(store, which)), false),
            // Another value that both store, and what is read before and after a barrier.
            (format!("{store}{read}{BARRIER}{OTHER}{store}{read}"), is_one),
            (format!("{store}{read}{BARRIER}{OTHER}{store}{read}{BARRIER}{read}{BARRIER}{store}"), is_one),
            (format!("{store}{read}{OTHER}{store}{read}"), false),
            (format!("{store}{read}{BARRIER}{read}{OTHER}{store}{read}"), false),
        ];
        for (number, (text, is_right)) in cases.iter().enumerate() {
            let object = body(text, false);
            for seed in 0..20 {
                let report = check("gfx942", &object, launch, seed);
                assert_eq!(report.is_clean(), *is_right, "{launch:?}, {number}, seed {seed}: {report}");
                let notes = report.notes.iter();
                let repeated = notes.filter(|n| matches!(n.kind, FindingKind::RepeatedStore { .. })).count();
                assert!(!is_right || repeated > 0, "{launch:?}, {number}, seed {seed}: {report}");
            }
        }
    }
}

/// Copies of a value are the same where they are defined, if they are undefined in the same bits: lanes store
/// such copies of what lies outside of a tensor. A value of which more is defined is another one.
#[test]
fn copies_that_are_undefined_alike_are_the_same_value() {
    // The low half of v13 comes from v12, which nothing has written; its high half is the number of the wave
    // or the same in both.
    let half = |high: &str| format!("v_and_b32_e32 v13, 0xffff, v12\nv_lshl_or_b32 v13, {high}, 16, v13\n");
    let defined = "s_cmp_eq_u32 s20, 0\ns_cbranch_scc1 rest\nv_mov_b32_e32 v13, 0x50000\nrest:\n";
    for store in ["ds_write_b32 v9, v13", "ds_write_b16 v9, v13\nds_write_b16_d16_hi v9, v13 offset:2"] {
        for (made, is_right) in [(half("5"), true), (half("s20"), false), (half("5") + defined, false)] {
            let object = body(&format!("{made}{store}"), false);
            for seed in 0..8 {
                let report = check("gfx942", &object, (1, 128), seed);
                assert_eq!(report.is_clean(), is_right, "{store} of {made}, seed {seed}: {report}");
            }
        }
    }
}

/// The third wave knows what the second has stored, and nothing of the first, which has stored the same.
#[test]
fn of_several_equal_stores_a_read_needs_one_and_a_store_all() {
    let case = |last: &str| {
        let text = format!(
            "v_mov_b32_e32 v10, 0
s_cmp_eq_u32 s20, 2
s_cbranch_scc1 third
global_store_dword v9, v5, s[6:7]
s_cmp_eq_u32 s20, 0
s_cbranch_scc1 end
s_waitcnt vmcnt(0)
s_mov_b64 exec, 1
global_store_dword v10, v5, s[4:5] sc0
s_branch end
third:
global_load_dword v11, v10, s[4:5] sc0
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s21, v11
s_cmp_eq_u32 s21, 0
s_cbranch_scc1 third
{last}
end:"
        );
        body(&text, false)
    };
    let read = case("global_load_dword v7, v9, s[6:7]\ns_waitcnt vmcnt(0)");
    let same = case("global_store_dword v9, v5, s[6:7]");
    let other = case("v_mov_b32_e32 v5, 8\ns_nop 1\nglobal_store_dword v9, v5, s[6:7]");
    for seed in 0..50 {
        for right in [&read, &same] {
            let report = check("gfx942", right, (1, 192), seed);
            assert!(report.is_clean(), "seed {seed}: {report}");
        }
        let report = check("gfx942", &other, (1, 192), seed);
        assert_eq!(reasons(&report), [Unordered::NoBarrier], "seed {seed}: {report}");
    }
}
