//! Check mode: kernels with one planted fault each, which has to be found and named, and their clean twins,
//! in which nothing may be found whatever the seed.

use std::sync::Arc;

use groundswell::assembler::{AssemblerOptions, assemble};
use groundswell::isa::{Arch, decode};
use groundswell::object::{
    KernelCode, KernelInfo, KernelResources, ObjectFile, SourceLines, SourcePlace, WorkgroupSize, write,
};
use groundswell::prelude::*;
use groundswell::simulator::{
    CheckOptions, CheckReport, Erratum, Finding, FindingKind, LaunchConfig, Memory, MemoryAccess, SimError,
    Simulator, Touch, Unordered, Use, WaitCounter,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SEEDS: u64 = 50;

/// A kernel in assembler text and how it is launched. It gets the addresses of `buffers` as arguments.
#[derive(Clone)]
struct Case {
    body: String,
    vgprs: u32,
    agprs: u32,
    sgprs: u32,
    lds: u32,
    scratch: u32,
    grid: u32,
    block: u32,
    /// Sizes; those with contents are filled by the host.
    buffers: Vec<(usize, bool)>,
    target: &'static str,
}

/// Loads both addresses to s[4:7], lane times four to v1.
const PROLOGUE: &str = "s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
s_waitcnt lgkmcnt(0)
";

impl Case {
    fn new(body: &str) -> Case {
        Case {
            body: format!("{PROLOGUE}{body}"),
            vgprs: 32,
            agprs: 0,
            sgprs: 32,
            lds: 0,
            scratch: 0,
            grid: 1,
            block: 64,
            buffers: vec![(4096, true), (4096, false)],
            target: "gfx942",
        }
    }

    fn lds(mut self, bytes: u32) -> Case {
        self.lds = bytes;
        self
    }

    fn block(mut self, items: u32) -> Case {
        self.block = items;
        self
    }

    fn grid(mut self, workgroups: u32) -> Case {
        self.grid = workgroups;
        self
    }

    fn buffers(mut self, buffers: [(usize, bool); 2]) -> Case {
        self.buffers = buffers.to_vec();
        self
    }

    /// The same with `from` replaced by `to`, which has to be there.
    fn with(&self, from: &str, to: &str) -> Case {
        assert!(self.body.contains(from), "no `{from}` in\n{}", self.body);
        Case { body: self.body.replacen(from, to, 1), ..self.clone() }
    }

    fn object(&self) -> Vec<u8> {
        let Case { body, lds, scratch, sgprs, target, .. } = self;
        let accum = self.vgprs.next_multiple_of(4);
        let all = if self.agprs == 0 { self.vgprs } else { accum + self.agprs };
        let accum = match target.starts_with("gfx908") {
            true => String::new(),
            false => format!(".amdhsa_accum_offset {accum}\n"),
        };
        let text = format!(
            ".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\n.text\n.globl test\n.p2align 8\n.type test,@function\n\
             test:\n{body}\n.size test, . - test\n.rodata\n.p2align 6\n.amdhsa_kernel test\n\
             .amdhsa_group_segment_fixed_size {lds}\n.amdhsa_private_segment_fixed_size {scratch}\n\
             .amdhsa_kernarg_size 16\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
             .amdhsa_next_free_vgpr {all}\n.amdhsa_next_free_sgpr {sgprs}\n{accum}\
             .end_amdhsa_kernel\n"
        );
        let options = AssemblerOptions::default();
        assemble(&text, options).unwrap_or_else(|faults| panic!("{faults}\n{text}")).object
    }

    fn check(&self, seed: u64) -> CheckReport {
        self.check_object(&self.object(), seed).unwrap_or_else(|error| panic!("{error}\n{}", self.body))
    }

    fn check_object(&self, object: &[u8], seed: u64) -> Result<CheckReport, SimError> {
        let processor = self.target.split(':').next().unwrap_or_default();
        let target = Target::from_name(processor).expect("a known target");
        let mut simulator = Simulator::new(target);
        let module = simulator.load(object)?;
        let mut kernarg = Vec::new();
        for &(bytes, written) in &self.buffers {
            let address = simulator.alloc(bytes as u64)?;
            if written {
                simulator.write(address, &vec![1; bytes])?;
            }
            kernarg.extend(address.to_le_bytes());
        }
        let config = LaunchConfig::new([self.grid, 1, 1], [self.block, 1, 1]).instruction_budget(100_000);
        simulator.check(&module, "test", config, &kernarg, &CheckOptions { seed })
    }

    /// Checks that nothing is found.
    fn is_clean(&self) {
        let object = self.object();
        for seed in 0..SEEDS {
            let report =
                self.check_object(&object, seed).unwrap_or_else(|error| panic!("{error}\n{}", self.body));
            assert!(report.is_clean(), "{report}\n{}", self.body);
        }
    }

    /// Checks that with every seed there is a note at the instruction that is as `is` says.
    fn notes(&self, instruction: &str, is: impl Fn(&FindingKind) -> bool) {
        let object = self.object();
        for seed in 0..10 {
            let report =
                self.check_object(&object, seed).unwrap_or_else(|error| panic!("{error}\n{}", self.body));
            let noted = report.notes.iter().any(|f| is(&f.kind) && f.at.instruction.starts_with(instruction));
            assert!(noted, "not noted at `{instruction}`: {report}\n{}", self.body);
        }
    }

    /// Checks that with every seed a finding at the instruction is as `is` says, and that nothing is found
    /// elsewhere.
    fn finds(&self, instruction: &str, is: impl Fn(&FindingKind) -> bool) -> CheckReport {
        let object = self.object();
        let mut last = None;
        for seed in 0..10 {
            let report =
                self.check_object(&object, seed).unwrap_or_else(|error| panic!("{error}\n{}", self.body));
            let found =
                report.findings.iter().any(|f| is(&f.kind) && f.at.instruction.starts_with(instruction));
            assert!(found, "not found at `{instruction}`: {report}\n{}", self.body);
            last = Some(report);
        }
        last.expect("ten seeds")
    }
}

fn copy_kernel() -> Case {
    Case::new(
        "global_load_dword v2, v1, s[4:5]
s_waitcnt vmcnt(0)
global_store_dword v1, v2, s[6:7]
s_endpgm",
    )
    .buffers([(256, true), (256, false)])
}

/// Two waves write LDS, meet, and read what the other wrote.
fn exchange() -> Case {
    Case::new(
        "v_xor_b32_e32 v2, 0x100, v1
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
s_barrier
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
global_store_dword v1, v3, s[6:7]
s_endpgm",
    )
    .lds(512)
    .block(128)
}

#[test]
fn a_copy_is_clean_and_missing_waits_are_found() {
    copy_kernel().is_clean();
    copy_kernel().with("s_waitcnt vmcnt(0)\n", "").finds("global_store_dword", |kind| {
        *kind
            == FindingKind::MissingWait {
                register: "v2".into(),
                touch: Touch::Read,
                counter: WaitCounter::Vmcnt,
                at_most: 0,
            }
    });
    copy_kernel().with("s_waitcnt lgkmcnt(0)\n", "").finds("global_load_dword", |kind| {
        matches!(kind, FindingKind::MissingWait { register, counter: WaitCounter::Lgkmcnt, .. } if register == "s4")
    });
}

#[test]
fn a_counted_wait_has_to_cover_the_load_that_is_used() {
    let case = Case::new(
        "global_load_dword v2, v1, s[4:5]
global_load_dword v3, v1, s[4:5] offset:256
global_load_dword v4, v1, s[4:5] offset:512
s_waitcnt vmcnt(1)
v_add_u32_e32 v2, v2, v3
s_waitcnt vmcnt(0)
v_add_u32_e32 v2, v2, v4
global_store_dword v1, v2, s[6:7]
s_endpgm",
    );
    case.is_clean();
    case.with("vmcnt(1)", "vmcnt(2)").finds(
        "v_add_u32",
        |kind| matches!(kind, FindingKind::MissingWait { register, at_most: 1, .. } if register == "v3"),
    );
    // A flat load completes in no order, so a count has no meaning.
    let flat = case
        .with("global_load_dword v4, v1, s[4:5] offset:512", "v_mov_b32_e32 v5, s5\nv_add_co_u32_e32 v4, vcc, s4, v1\ns_nop 1\nv_addc_co_u32_e32 v5, vcc, 0, v5, vcc\nflat_load_dword v4, v[4:5]")
        .with("s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0) lgkmcnt(0)");
    flat.finds("v_add_u32", |kind| matches!(kind, FindingKind::MissingWait { at_most: 0, .. }));
    flat.with("vmcnt(1)", "vmcnt(0) lgkmcnt(0)").is_clean();
}

/// A counter holds no more than 15 or 63, so with that many younger operations in order the oldest is over.
#[test]
fn what_a_counter_cannot_count_is_over() {
    let reads = |count: u32, more: &str| {
        let body = (0..count).map(|n| format!("ds_read_b32 v{}, v1 offset:{}\n", n + 2, 4 * n));
        let body =
            body.collect::<String>() + more + "v_add_u32_e32 v0, v2, v2\ns_waitcnt vmcnt(0) lgkmcnt(0)\n";
        let fill = "ds_write_b32 v1, v1\nds_write_b32 v1, v1 offset:256\ns_waitcnt lgkmcnt(0)\n";
        Case::new(&format!("{fill}{body}global_store_dword v1, v0, s[6:7]\ns_endpgm")).lds(1024)
    };
    let missing = |kind: &FindingKind| matches!(kind, FindingKind::MissingWait { register, counter: WaitCounter::Lgkmcnt, .. } if register == "v2");
    reads(16, "").is_clean();
    reads(15, "").finds("v_add_u32", missing);
    // Scalar loads complete in no order: how many are in flight says nothing about one of them.
    reads(16, "s_load_dword s12, s[4:5], 0x0\n").is_clean();
    reads(15, "s_load_dword s12, s[4:5], 0x0\n").finds("v_add_u32", missing);
    let loads = |count: u32| {
        let body = (0..count).map(|n| format!("global_load_dword v{}, v1, s[4:5] offset:{}\n", n + 2, 4 * n));
        let body = body.collect::<String>() + "v_add_u32_e32 v0, v2, v2\ns_waitcnt vmcnt(0)\n";
        Case { vgprs: 80, ..Case::new(&format!("{body}global_store_dword v1, v0, s[6:7]\ns_endpgm")) }
    };
    loads(64).is_clean();
    loads(63).finds("v_add_u32", |kind| {
        matches!(kind, FindingKind::MissingWait { register, counter: WaitCounter::Vmcnt, at_most: 62, .. } if register == "v2")
    });
}

#[test]
fn overwriting_the_result_of_a_load_in_flight_is_found() {
    let case = copy_kernel().with("s_waitcnt vmcnt(0)", "v_mov_b32_e32 v2, v0\ns_waitcnt vmcnt(0)");
    case.finds("v_mov_b32", |kind| matches!(kind, FindingKind::MissingWait { touch: Touch::Overwrite, .. }));
    // Vector memory is in order.
    let again = "global_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)";
    copy_kernel().with("s_waitcnt vmcnt(0)", again).is_clean();
}

#[test]
fn one_element_too_many_is_out_of_bounds() {
    let report = copy_kernel().buffers([(256, true), (252, false)]).finds("global_store_dword", |kind| {
        matches!(kind, FindingKind::OutOfBounds { memory: Memory::Device, bytes: 4, size: 252, .. })
    });
    assert_eq!((report.findings.len(), report.findings[0].lanes.0), (1, 1 << 63));
    copy_kernel().buffers([(252, true), (256, false)]).finds("global_load_dword", |kind| {
        matches!(kind, FindingKind::OutOfBounds { memory: Memory::Device, .. })
    });
}

#[test]
fn uninitialised_registers_are_found_where_they_are_read() {
    let case = copy_kernel().with("global_store", "v_add_f32_e32 v2, v2, v3\nglobal_store");
    let report = case.finds("v_add_f32", |kind| {
        *kind == FindingKind::UninitialisedRegister { register: "v3".into(), used_in: Use::Store }
    });
    assert!(report.findings[0].other.as_ref().is_some_and(|o| o.instruction.starts_with("global_store")));
    case.with("v_add_f32", "v_mov_b32_e32 v3, 0\nv_add_f32").is_clean();
    let used = |register: &'static str, used: Use| {
        move |kind: &FindingKind| {
            *kind == FindingKind::UninitialisedRegister { register: register.into(), used_in: used }
        }
    };
    copy_kernel().with("v2, v1, s[4:5]", "v2, v9, s[4:5]").finds("global_load", used("v9", Use::Address));
    copy_kernel()
        .with("s_waitcnt vmcnt", "s_cbranch_vccz 0\ns_waitcnt vmcnt")
        .finds("s_cbranch_vccz", used("vcc_lo", Use::Branch));
    copy_kernel()
        .with("s_waitcnt vmcnt", "s_and_b64 exec, exec, s[20:21]\ns_waitcnt vmcnt")
        .finds("s_and_b64", used("s20", Use::Exec));
    // Zero and anything is zero, whatever it is.
    copy_kernel()
        .with("s_waitcnt vmcnt", "s_mov_b64 s[20:21], 0\ns_and_b64 vcc, s[20:21], s[22:23]\ns_or_b64 exec, exec, vcc\ns_waitcnt vmcnt")
        .is_clean();
}

/// Undefined bits may be copied and computed with; every case is found once they decide something.
#[test]
fn undefined_bits_that_decide_nothing_are_no_finding() {
    let used = |register: &'static str, used: Use| {
        move |kind: &FindingKind| {
            *kind == FindingKind::UninitialisedRegister { register: register.into(), used_in: used }
        }
    };
    let before_store = |text: &str| copy_kernel().with("global_store", &format!("{text}\nglobal_store"));
    for (clean, from, to, register) in [
        // The high half of a 64-bit addend, of a shift, of a sum.
        (
            "v_mov_b32_e32 v8, 0\nv_mad_u64_u32 v[10:11], s[8:9], v2, v0, v[8:9]\nv_mov_b32_e32 v2, v10",
            "v2, v10",
            "v2, v11",
            "v9",
        ),
        (
            "v_mov_b32_e32 v8, 0\nv_mad_i64_i32 v[10:11], s[8:9], v2, v0, v[8:9]\nv_mov_b32_e32 v2, v10",
            "v2, v10",
            "v2, v11",
            "v9",
        ),
        (
            "v_mov_b32_e32 v8, 0\nv_lshlrev_b64 v[10:11], 3, v[8:9]\nv_mov_b32_e32 v2, v10",
            "v2, v10",
            "v2, v11",
            "v9",
        ),
        (
            "v_add_co_u32_e32 v10, vcc, v2, v0\ns_nop 1\nv_addc_co_u32_e32 v11, vcc, v8, v0, vcc\nv_mov_b32_e32 v2, v10",
            "v2, v10",
            "v2, v11",
            "v8",
        ),
        // Packed f32 with one register for both sides.
        (
            "v_mov_b32_e32 v8, 0\nv_mov_b32_e32 v3, 0\nv_pk_mul_f32 v[10:11], v[2:3], v[8:9] op_sel_hi:[1,0]\nv_mov_b32_e32 v2, v11",
            " op_sel_hi:[1,0]",
            "",
            "v9",
        ),
        ("v_and_b32_e32 v2, 0, v8", "0, v8", "1, v8", "v8"),
        ("v_xor_b32_e32 v2, v8, v8", "v8, v8", "v8, v0", "v8"),
        ("s_mov_b32 s8, 0x0c0c0100\nv_perm_b32 v2, v8, v2, s8", "0x0c0c0100", "0x0c0c0500", "v8"),
        ("s_mov_b32 s8, -1\nv_bfi_b32 v2, s8, v2, v8", "s8, -1", "s8, 15", "v8"),
        ("v_alignbit_b32 v2, v8, v2, 0", "v2, 0", "v2, 1", "v8"),
        // Halves and bytes are stored as they are.
        (
            "v_and_b32_e32 v2, 0xffff, v2\nv_lshl_or_b32 v3, v8, 16, v2\nv_and_b32_e32 v2, 0xffff, v3",
            "0xffff, v3",
            "0x10000, v3",
            "v8",
        ),
        // A lane that is not read.
        (
            "v_writelane_b32 v8, s4, 3\ns_nop 0\nv_readlane_b32 s8, v8, 3\ns_nop 1\nv_mov_b32_e32 v2, s8",
            "v8, 3\ns_nop 1",
            "v8, 4\ns_nop 1",
            "v8",
        ),
        // Copies through LDS hardware and private memory keep what they copy.
        (
            "v_and_b32_e32 v3, 4, v1\nds_bpermute_b32 v9, v3, v0\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v2, v9",
            "v3, v0",
            "v3, v8",
            "v8",
        ),
    ] {
        let case = before_store(clean);
        case.is_clean();
        let name = clean.rsplit('\n').next().expect("a line");
        assert!(clean.contains(from), "{name}");
        case.with(from, to).finds("", used(register, Use::Store));
    }
    let mut spilled = before_store(
        "v_lshl_or_b32 v3, v8, 4, 5\nscratch_store_dword off, v3, off offset:4\nscratch_load_dword v4, off, off offset:4
s_waitcnt vmcnt(0)\nv_and_b32_e32 v2, 15, v4",
    );
    spilled.scratch = 16;
    spilled.is_clean();
    spilled.with("15, v4", "31, v4").finds("v_lshl_or", used("v8", Use::Store));
    // Bytes and halves are stored without the rest of their register.
    let short = before_store("v_lshl_or_b32 v2, v8, 16, 7").with("global_store_dword", "global_store_short");
    short.is_clean();
    short.with("_short", "_short_d16_hi").finds("", used("v8", Use::Store));
    // What decides.
    let lane = before_store("v_readlane_b32 s8, v0, s20\nv_mov_b32_e32 v2, s8");
    lane.finds("v_readlane", used("s20", Use::Lane));
    before_store("s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s20").finds("s_setreg", used("s20", Use::Mode));
    before_store("s_and_b32 s8, s20, 1\ns_cmp_eq_u32 s8, 0\ns_cbranch_scc1 0")
        .finds("", used("s20", Use::Branch));
    before_store("s_and_b32 s8, s20, 1\ns_cmp_eq_u32 s8, 2\ns_cbranch_scc1 0").is_clean();
    // Rows of a matrix that are not stored.
    let matrix = before_store(
        "v_mov_b32_e32 v8, 0\nv_mov_b32_e32 v9, 0\ns_nop 1\nv_mfma_f32_16x16x16_f16 v[12:15], v[8:9], v[8:9], v[12:15]
s_nop 7\nv_mov_b32_e32 v3, v12",
    );
    matrix.is_clean();
    matrix.with("v3, v12", "v2, v13").finds("v_mfma", used("v13", Use::Store));
}

/// What is stored with undefined bits has the same undefined bits when it is loaded; a finding names where
/// they were made.
#[test]
fn undefined_bits_stay_where_they_are_in_lds() {
    let made = |register: &'static str| {
        move |kind: &FindingKind| {
            *kind == FindingKind::UninitialisedRegister { register: register.into(), used_in: Use::Store }
        }
    };
    let through = |text: &str| copy_kernel().lds(1024).with("global_store", &format!("{text}\nglobal_store"));
    // The high half of v3 is undefined.
    let half = "v_lshl_or_b32 v3, v8, 16, 5\n";
    let read = "s_waitcnt lgkmcnt(0)\nv_and_b32_e32 v2, 0xffff, v4";
    for text in [
        "ds_write_b32 v1, v3\nds_read_b32 v4, v1\n",
        "ds_write2_b32 v1, v0, v3 offset1:64\nds_read2_b32 v[4:5], v1 offset0:64 offset1:0\n",
        "ds_write_b32 v1, v3\nds_read_u16_d16 v4, v1\n",
        "ds_write_b16 v1, v0 offset:512\nds_write_b32 v1, v3\nds_read_b32 v4, v1\n",
    ] {
        let case = through(&format!("{half}{text}{read}"));
        case.is_clean();
        let decides = case.with("0xffff, v4", "0x10000, v4");
        match text.contains("_d16") {
            // The register keeps its own high half, which was never written; with SRAM ECC that is zero.
            true => {
                decides.is_clean();
                Case { target: "gfx908:xnack-", ..decides }.finds("v_and_b32", made("v4"))
            }
            false => decides.finds("v_lshl_or", made("v8")),
        };
    }
    // Another wave than the one that has made it.
    let other = exchange().with("ds_write_b32 v1, v0", &format!("{half}ds_write_b32 v1, v3"));
    other.finds("v_lshl_or", made("v8"));
    other.with("global_store", "v_and_b32_e32 v3, 0xffff, v3\nglobal_store").is_clean();
    // The value is stored again, and defined.
    let again = through(&format!(
        "{half}ds_write_b32 v1, v3\nds_write_b32 v1, v0\nds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)"
    ));
    again.is_clean();
    // What is loaded to LDS straight from memory that nobody has written.
    let direct = through(
        "v_readfirstlane_b32 s8, v1\ns_mov_b32 m0, s8\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]\ns_waitcnt vmcnt(0)
ds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)",
    );
    direct.is_clean();
    let unwritten = direct
        .with("global_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\n", "")
        .buffers([(256, false), (256, false)]);
    unwritten.finds("global_load_lds", |kind| {
        matches!(kind, FindingKind::UninitialisedMemory { memory: Memory::Device, used_in: Use::Store, .. })
    });
}

/// Random stores and loads of LDS and private memory, with a table of undefined bits in the test: a finding
/// comes exactly if an undefined bit is used. Stores to device memory are all defined there.
#[test]
fn random_undefined_bits_travel_through_memory() {
    let mut random = StdRng::seed_from_u64(7);
    let mut found = [0; 3];
    for number in 0..300 {
        let memory = number % 3;
        let access = |name: &str, data: &str, at: u32| match (memory, name.starts_with("store")) {
            (0, true) => format!("ds_write{} v10, {data} offset:{at}", &name[5..]),
            (0, false) => format!("ds_read{} {data}, v10 offset:{at}", &name[4..]),
            (1, true) => format!("scratch_{name} off, {data}, off offset:{at}"),
            (1, false) => format!("scratch_{name} {data}, off, off offset:{at}"),
            (_, true) => format!("global_{name} v10, {data}, s[6:7] offset:{at}"),
            (_, false) => format!("global_{name} {data}, v10, s[6:7] offset:{at}"),
        };
        let width = |bytes: u32, store: bool| match (memory, bytes, store) {
            (0, 1, true) => "_b8",
            (0, 1, false) => "_u8",
            (0, 2, true) => "_b16",
            (0, 2, false) => "_u16",
            (0, 4, _) => "_b32",
            (0, ..) => "_b64",
            (_, 1, true) => "_byte",
            (_, 1, false) => "_ubyte",
            (_, 2, true) => "_short",
            (_, 2, false) => "_ushort",
            (_, 4, _) => "_dword",
            _ => "_dwordx2",
        };
        // v14 and v15 are defined below a bit of their own, v12 and v13 throughout.
        let defined = [random.random_range(1..32), random.random_range(1..32u32)];
        let mut text = format!(
            "v_lshlrev_b32_e32 v10, 4, v0\nv_mov_b32_e32 v12, 7\nv_mov_b32_e32 v13, 7\n\
                                v_lshl_or_b32 v14, v8, {}, 1\nv_lshl_or_b32 v15, v9, {}, 1\n",
            defined[0], defined[1]
        );
        let mut undefined = [0xffu8; 16];
        for _ in 0..random.random_range(0..8) {
            let bytes = 1 << random.random_range(0..4u32);
            let at = random.random_range(0..16 / bytes) * bytes;
            let partly = memory != 2 && random.random_bool(0.5);
            let data = match (partly, bytes) {
                (true, 8) => "v[14:15]",
                (true, _) => "v14",
                (false, 8) => "v[12:13]",
                (false, _) => "v12",
            };
            text += &access(&format!("store{}", width(bytes, true)), data, at);
            text += "\ns_waitcnt vmcnt(0) lgkmcnt(0)\n";
            for byte in 0..bytes as usize {
                let bits = u32::MAX << defined[byte / 4];
                undefined[at as usize + byte] = if partly { bits.to_le_bytes()[byte % 4] } else { 0 };
            }
        }
        let bytes = 1 << random.random_range(0..4u32);
        let at = random.random_range(0..16 / bytes) * bytes;
        let dword = if bytes == 8 { random.random_range(0..2) } else { 0 };
        text +=
            &access(&format!("load{}", width(bytes, false)), if bytes == 8 { "v[4:5]" } else { "v4" }, at);
        let mut loaded = [0; 4];
        for (byte, bits) in loaded.iter_mut().enumerate().take(bytes.min(4) as usize) {
            *bits = undefined[(at + 4 * dword) as usize + byte];
        }
        let bad = u32::from_le_bytes(loaded);
        let decides = bad != 0 && random.random_bool(0.5);
        let mask = match decides {
            true => loop {
                let bit = 1 << random.random_range(0..32u32);
                if bad & bit != 0 {
                    break bit;
                }
            },
            false => !bad,
        };
        text += &format!(
            "\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_mov_b32 s8, {mask:#x}\nv_and_b32_e32 v2, s8, v{}\n",
            4 + dword
        );
        let mut case = copy_kernel()
            .buffers([(256, true), (2048, false)])
            .lds(1024)
            .with("global_store", &format!("{text}global_store"));
        case.scratch = 16;
        let report = case.check(number);
        assert_eq!(!report.is_clean(), decides, "{report}\n{}", case.body);
        found[memory as usize] += usize::from(decides);
    }
    assert!(found.iter().all(|&found| found > 20), "{found:?}");
}

#[test]
fn uninitialised_memory_is_found_where_it_is_loaded() {
    let memory = |memory: Memory| move |kind: &FindingKind| matches!(kind, FindingKind::UninitialisedMemory { memory: m, used_in: Use::Store, .. } if *m == memory);
    let lds = copy_kernel().lds(256).with(
        "global_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)",
        "ds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)",
    );
    lds.finds("ds_read_b32", memory(Memory::Lds));
    lds.with("ds_read_b32", "ds_write_b32 v1, v0\nds_read_b32").is_clean();
    copy_kernel().buffers([(256, false), (256, false)]).finds("global_load", memory(Memory::Device));
    let mut scratch =
        copy_kernel().with("global_load_dword v2, v1, s[4:5]", "scratch_load_dword v2, off, off offset:4");
    scratch.scratch = 16;
    scratch.finds("scratch_load", memory(Memory::Scratch));
    scratch.with("scratch_load", "scratch_store_dword off, v0, off offset:4\nscratch_load").is_clean();
}

/// Undefined data that a store has brought to device memory are undefined where they are loaded again, and
/// the report says where they are left.
#[test]
fn undefined_data_in_device_memory_are_followed() {
    let case = Case::new(
        "s_mov_b32 exec_hi, 0
v_mov_b32_e32 v3, 1
s_mov_b64 exec, -1
global_store_dword v1, v3, s[6:7]
s_waitcnt vmcnt(0)
global_load_dword v4, v1, s[6:7]
s_waitcnt vmcnt(0)
v_readlane_b32 s8, v4, 31
s_cmp_eq_u32 s8, 0
s_cbranch_scc1 over
over:
s_endpgm",
    );
    let stores = |kind: &FindingKind| matches!(kind, FindingKind::UninitialisedRegister { register, used_in: Use::Store } if register == "v3");
    let report = case.finds("global_store_dword", stores);
    let [finding] = &report.findings[..] else { panic!("{report}") };
    let left = finding.stored.clone().expect("stored only");
    assert_eq!(left.iter().map(|bytes| bytes.end - bytes.start).collect::<Vec<_>>(), [128]);
    assert_eq!(left[0].start % 256, 128);
    let noted = finding.unread();
    assert!(matches!(&noted.kind, FindingKind::UnreadStore { undefined } if undefined == "v3"));
    assert!(noted.to_string().starts_with("note"), "{noted}");
    // A lane that is undefined decides: that is what is told, and not that it was stored as well.
    let report = case.with("v4, 31", "v4, 32").finds("global_store_dword", |kind| {
        matches!(kind, FindingKind::UninitialisedRegister { used_in: Use::Branch, .. })
    });
    assert!(report.findings.iter().all(|finding| finding.stored.is_none()), "{report}");
    // What is stored there afterwards replaces it.
    let over = "global_store_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_load_dword v4";
    let case = case.with("global_load_dword v4", over).with("v4, 31", "v4, 32");
    let report = case.finds("global_store_dword", stores);
    assert_eq!(report.findings[0].stored, Some(Vec::new()), "{report}");
}

#[test]
fn races_on_lds_are_found() {
    exchange().is_clean();
    let race = |first: MemoryAccess, then: MemoryAccess, why: Unordered| {
        move |kind: &FindingKind| {
            matches!(kind, FindingKind::Race { memory: Memory::Lds, first: f, then: t, reason, .. }
                if (*f, *t) == (first, then) && *reason == why)
        }
    };
    let either = |kind: &FindingKind| {
        race(MemoryAccess::Store, MemoryAccess::Load, Unordered::NoBarrier)(kind)
            || race(MemoryAccess::Load, MemoryAccess::Store, Unordered::NoBarrier)(kind)
    };
    exchange().with("s_barrier\n", "").finds("ds_", either);
    let no_wait = exchange().with("s_waitcnt lgkmcnt(0)\ns_barrier", "s_barrier");
    no_wait.finds("ds_read_b32", race(MemoryAccess::Store, MemoryAccess::Load, Unordered::NotWaited));
    // Both waves write the same bytes.
    let same = exchange().with("ds_write_b32 v1, v0", "v_and_b32_e32 v4, 0xfc, v1\nds_write_b32 v4, v0");
    same.finds("ds_write_b32", race(MemoryAccess::Store, MemoryAccess::Store, Unordered::NoBarrier));
    // Both write the same values one after the other: whoever comes last leaves the last one.
    let turns = exchange()
        .with(
            "ds_write_b32 v1, v0",
            "v_and_b32_e32 v4, 0xfc, v1\nv_mov_b32_e32 v5, 1\nds_write_b32 v4, v5\n\
             v_mov_b32_e32 v6, 2\nds_write_b32 v4, v6",
        )
        .with("ds_read_b32 v3, v2", "ds_read_b32 v3, v4");
    turns.is_clean();
    let stores = race(MemoryAccess::Store, MemoryAccess::Store, Unordered::NoBarrier);
    // The last values differ, whether somebody reads them or not.
    turns.with("v_mov_b32_e32 v6, 2", "v_lshrrev_b32_e32 v6, 6, v0").finds("ds_write_b32", stores);
    turns
        .with("v_mov_b32_e32 v6, 2", "v_lshrrev_b32_e32 v6, 6, v0")
        .with("ds_read_b32 v3, v4", "v_mov_b32_e32 v3, 0")
        .finds("ds_write_b32", stores);
    // Somebody looks in between, or stores something else after a barrier.
    turns.with("v_mov_b32_e32 v6, 2", "ds_read_b32 v7, v4\nv_mov_b32_e32 v6, 2").finds("ds_", |kind| {
        matches!(kind, FindingKind::Race { memory: Memory::Lds, reason: Unordered::NoBarrier, .. })
    });
    turns
        .with("v_mov_b32_e32 v6, 2", "v_lshrrev_b32_e32 v6, 6, v0")
        .with("s_barrier\n", "s_barrier\nds_write_b32 v4, v5\ns_waitcnt lgkmcnt(0)\ns_barrier\n")
        .finds("ds_write_b32", stores);
    // A buffer that is used again before its readers have what they read.
    let again = exchange().with(
        "ds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\n",
        "ds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_write_b32 v1, v3\n",
    );
    again.is_clean();
    // It stores another value: what has been read already would be read again from a store of the same one.
    again
        .with(
            "ds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_write_b32 v1, v3",
            "ds_read_b32 v3, v2\ns_barrier\nds_write_b32 v1, v1\ns_waitcnt lgkmcnt(0)",
        )
        .finds("ds_write_b32", race(MemoryAccess::Load, MemoryAccess::Store, Unordered::NotWaited));
    // Atomics do not race with each other.
    let atomics = exchange().with(
        "ds_write_b32 v1, v0",
        "v_mov_b32_e32 v4, 0\nds_write_b32 v1, v4\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_add_u32 v4, v0",
    );
    atomics.is_clean();
    atomics
        .with("ds_add_u32 v4, v0", "ds_write_b32 v4, v0")
        .finds("ds_write_b32", race(MemoryAccess::Store, MemoryAccess::Store, Unordered::NoBarrier));
}

#[test]
fn loads_to_lds_are_waited_for_by_vmcnt() {
    let case = exchange().with(
        "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)",
        "v_readfirstlane_b32 s8, v1\ns_mov_b32 m0, s8\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]\ns_waitcnt vmcnt(0)",
    );
    case.is_clean();
    case.with("s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)").finds("ds_read_b32", |kind| {
        matches!(kind, FindingKind::Race { memory: Memory::Lds, reason: Unordered::NotWaited, .. })
    });
    case.with("s_nop 0\n", "")
        .finds("global_load_lds", |kind| *kind == FindingKind::Hazard { needed: 1, present: 0 });
}

#[test]
fn races_on_device_memory_are_found() {
    let case = copy_kernel().grid(2);
    let differing = case.with("s_waitcnt vmcnt(0)\n", "s_waitcnt vmcnt(0)\nv_add_u32_e32 v2, s2, v2\n");
    differing.finds("global_store_dword", |kind| {
        matches!(kind, FindingKind::Race { memory: Memory::Device, reason: Unordered::OtherWorkgroup, .. })
    });
    let apart = case.with(
        "s_waitcnt lgkmcnt(0)\n",
        "s_waitcnt lgkmcnt(0)\ns_lshl_b32 s8, s2, 8\nv_add_u32_e32 v1, s8, v1\n",
    );
    apart.clone().buffers([(512, true), (512, false)]).is_clean();
    // Within a workgroup a barrier is enough.
    let exchange = exchange()
        .with("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)", "global_store_dword v1, v0, s[6:7]")
        .with(
            "ds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)",
            "global_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)\ns_barrier",
        );
    exchange.is_clean();
    exchange.with("s_barrier\n", "").finds("global_", |kind| {
        matches!(kind, FindingKind::Race { memory: Memory::Device, reason: Unordered::NoBarrier, .. })
    });
}

/// Every workgroup but the last leaves a value; the last one to come adds them up.
const LAST_ONE: &str = "v_mov_b32_e32 v2, 0
s_lshl_b32 s8, s2, 2
v_mov_b32_e32 v3, s8
v_cmp_eq_u32_e32 vcc, 0, v0
s_and_saveexec_b64 s[10:11], vcc
global_store_dword v3, v0, s[4:5] offset:256
buffer_wbl2 sc1
s_waitcnt vmcnt(0) lgkmcnt(0)
v_mov_b32_e32 v4, 1
global_atomic_add v5, v2, v4, s[4:5] sc0
s_waitcnt vmcnt(0)
buffer_inv sc1
v_readfirstlane_b32 s9, v5
s_cmp_lg_u32 s9, 3
s_cbranch_scc1 end
global_load_dword v6, v2, s[4:5] offset:256
global_load_dword v7, v2, s[4:5] offset:260
global_load_dword v8, v2, s[4:5] offset:264
global_load_dword v9, v2, s[4:5] offset:268
s_waitcnt vmcnt(0)
v_add3_u32 v6, v6, v7, v8
v_add_u32_e32 v6, v6, v9
global_store_dword v2, v6, s[6:7]
end:
s_endpgm";

#[test]
fn workgroups_that_hand_over_do_not_race() {
    let mut case = Case::new(LAST_ONE).grid(4);
    // The counter starts at zero, which a byte pattern of ones would not.
    case.body = case.body.replace("s_cmp_lg_u32 s9, 3", "s_sub_u32 s9, s9, 0x01010101\ns_cmp_lg_u32 s9, 3");
    case.is_clean();
    let race = |expected: Unordered| {
        move |kind: &FindingKind| match kind {
            FindingKind::Race { memory: Memory::Device, reason, .. } => *reason == expected,
            _ => false,
        }
    };
    case.with("buffer_inv sc1\n", "").finds("global_load_dword", race(Unordered::NotInvalidated));
    case.with("buffer_wbl2 sc1\n", "").finds("global_load_dword", race(Unordered::NotWrittenBack));
    let waits = "s_waitcnt vmcnt(0) lgkmcnt(0)\nv_mov";
    case.with(waits, "v_mov").finds("global_load_dword", race(Unordered::OtherWorkgroup));
}

#[test]
fn misaligned_accesses_are_found() {
    let case = exchange().with("ds_write_b32 v1, v0", "v_lshlrev_b32_e32 v4, 4, v0\nv_mov_b32_e32 v5, 0\nds_write_b64 v4, v[0:1]\nds_write_b64 v4, v[0:1] offset:8");
    let read = case.with("ds_read_b32 v3, v2", "ds_read_b128 v[8:11], v4\nv_lshlrev_b32_e32 v3, 1, v1");
    let read = Case { lds: 4096, ..read };
    read.is_clean();
    // The device is in a mode in which that is right, and slow.
    let misaligned = read.with("v[8:11], v4", "v[8:11], v4 offset:8");
    misaligned.is_clean();
    misaligned.notes("ds_read_b128", |kind| {
        matches!(kind, FindingKind::Misaligned { memory: Memory::Lds, alignment: 16, .. })
    });
    copy_kernel()
        .with(
            "global_store_dword v1, v2, s[6:7]",
            "v_lshlrev_b32_e32 v1, 1, v1\nglobal_atomic_add_x2 v1, v[2:3], s[4:5] offset:4",
        )
        .finds("global_atomic_add_x2", |kind| matches!(kind, FindingKind::Misaligned { alignment: 8, .. }));
}

#[test]
fn divergent_barriers_are_found() {
    let half = "v_cmp_gt_u32_e32 vcc, 32, v0\ns_and_saveexec_b64 s[10:11], vcc\ns_barrier\ns_or_b64 exec, exec, s[10:11]\n";
    let case = copy_kernel().with("global_load", &format!("{half}global_load"));
    case.finds("s_barrier", |kind| matches!(kind, FindingKind::DivergentBarrier { .. }));
    // Lanes that are not needed any more may stay away.
    copy_kernel().with("s_endpgm", &format!("{half}s_endpgm")).is_clean();
    // A wave that has ended is not waited for.
    exchange().with("s_waitcnt lgkmcnt(0)\nglobal", "s_waitcnt lgkmcnt(0)\nv_readfirstlane_b32 s8, v0\ns_cmp_eq_u32 s8, 0\ns_cbranch_scc1 over\ns_barrier\nover:\nglobal").is_clean();
}

#[test]
fn leaving_the_kernel_is_found() {
    let case = copy_kernel().with("\ns_endpgm", "");
    case.finds("global_store_dword", |kind| *kind == FindingKind::PastEnd);
    copy_kernel()
        .with("s_endpgm", "s_cmp_eq_u32 s2, s2\ns_cbranch_scc1 next\ns_endpgm\nnext:\ns_nop 0")
        .finds("s_nop", |kind| *kind == FindingKind::PastEnd);
    copy_kernel()
        .with("s_endpgm", ".long 0xffffffff\ns_endpgm")
        .finds("", |kind| *kind == FindingKind::IllegalInstruction);
    copy_kernel()
        .with("s_endpgm", "again:\ns_branch again")
        .finds("s_branch", |kind| *kind == FindingKind::NoProgress);
    copy_kernel()
        .with("s_endpgm", "again:\ns_add_u32 s8, s8, 1\ns_branch again")
        .with("global_load", "s_mov_b32 s8, 0\nglobal_load")
        .finds("s_", |kind| matches!(kind, FindingKind::Endless { .. }));
}

#[test]
fn accesses_beyond_lds_and_scratch_are_found() {
    let case = Case { lds: 508, ..exchange() };
    case.finds("ds_write_b32", |kind| {
        *kind
            == FindingKind::OutOfBounds {
                memory: Memory::Lds,
                access: MemoryAccess::Store,
                address: 508,
                bytes: 4,
                base: 0,
                size: 508,
            }
    });
    let mut scratch =
        copy_kernel().with("global_store", "scratch_store_dword off, v0, off offset:16\nglobal_store");
    scratch.scratch = 16;
    scratch.finds("scratch_store", |kind| {
        matches!(kind, FindingKind::OutOfBounds { memory: Memory::Scratch, size: 16, .. })
    });
}

#[test]
fn hazards_are_found() {
    let mfma = "v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[0:1], 0
s_nop 6
v_add_u32_e32 v2, v2, v8
";
    let case = copy_kernel().with("global_store", &format!("{mfma}global_store"));
    case.is_clean();
    case.with("s_nop 6\n", "")
        .finds("v_add_u32", |kind| *kind == FindingKind::Hazard { needed: 7, present: 0 });
    case.with("s_nop 6", "s_nop 5")
        .finds("v_add_u32", |kind| *kind == FindingKind::Hazard { needed: 7, present: 6 });
    // Over the back edge of a loop.
    let turning = "s_mov_b32 s8, 3
s_nop 15
turn:
v_add_u32_e32 v2, v2, v0
s_sub_u32 s8, s8, 1
v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[0:1], 0
s_cmp_lg_u32 s8, 0
s_cbranch_scc1 turn
s_nop 15
";
    let case = copy_kernel().with("global_store", &format!("v_mov_b32_e32 v3, 0\n{turning}global_store"));
    let case = case.with("v[2:3], v[0:1], 0", "v[0:1], v[0:1], 0");
    case.is_clean();
    case.with("v2, v2, v0", "v2, v8, v0")
        .with("s_nop 15", "v_mov_b32_e32 v8, 0\ns_nop 15")
        .finds("v_add_u32", |kind| *kind == FindingKind::Hazard { needed: 7, present: 2 });
    let vccz = "s_mov_b64 vcc, 0\ns_mov_b32 vcc_lo, 0\ns_mov_b64 vcc, vcc\ns_cbranch_vccz 0\n";
    let case = copy_kernel().with("global_store", &format!("{vccz}global_store"));
    case.is_clean();
    case.with("s_mov_b64 vcc, vcc\n", "").finds("s_cbranch_vccz", |kind| *kind == FindingKind::StaleVccz);
}

/// LLVM up to 22 asks for no wait states in either case.
#[test]
fn hazards_that_llvm_does_not_know_are_found() {
    let store = "s_mov_b64 s[8:9], s[6:7]
s_mov_b32 s10, 4096
s_mov_b32 s11, 0x27000
s_mov_b32 s12, 1024
v_lshlrev_b32_e32 v3, 4, v0
v_mov_b32_e32 v8, 0
v_mov_b32_e32 v9, 0
v_mov_b32_e32 v10, 0
v_mov_b32_e32 v11, 0
buffer_store_dwordx4 v[8:11], v3, s[8:11], s12 offen
s_nop 0
v_mov_b32_e32 v9, 1
s_endpgm";
    let case = Case::new(store);
    case.is_clean();
    let needs = |needed, present| move |kind: &FindingKind| *kind == FindingKind::Hazard { needed, present };
    case.with("s_nop 0\n", "").finds("v_mov_b32", needs(1, 0));
    case.with("s_nop 0", "s_mov_b64 exec, -1").is_clean();
    case.with("s12 offen", "0 offen").finds("v_mov_b32", needs(2, 1));
    case.with("s_nop 0\n", "s_branch over\ns_nop 15\nover:\n").is_clean();
    let over = "s_branch over\ns_nop 15\nover:\n";
    case.with("s12 offen\ns_nop 0\n", &format!("0 offen\n{over}")).finds("v_mov_b32", needs(2, 1));
    let mut older = case.with("s_nop 0\n", "");
    older.target = "gfx90a";
    older.is_clean();

    let chain = "v_mov_b32_e32 v8, 0
v_mov_b32_e32 v9, 0
s_nop 1
v_mfma_f32_16x16x16_f16 v[12:15], v[8:9], v[8:9], 0
s_nop 4
v_mfma_f32_16x16x16_bf16 v[12:15], v[8:9], v[8:9], v[12:15]
s_endpgm";
    let case = Case::new(chain);
    case.is_clean();
    case.with("s_nop 4", "s_nop 3").finds("v_mfma_f32_16x16x16_bf16", needs(5, 4));
    case.with("s_nop 4\n", over).finds("v_mfma_f32_16x16x16_bf16", needs(5, 1));
    case.with("s_nop 4\n", "").with("_bf16", "_f16").is_clean();
}

/// DPP leaves lanes without a source as they are; what the others get comes from the source.
#[test]
fn undefined_lanes_that_dpp_moves_are_those_of_its_source() {
    let case = Case::new(
        "s_mov_b32 s8, 0x10001
s_mov_b32 s9, s8
s_mov_b64 exec, 0xffff
v_mov_b32_e32 v3, 1
s_mov_b64 exec, -1
s_nop 4
v_mov_b32_dpp v4, v3 row_shr:1 row_mask:0xf bank_mask:0xf
v_cndmask_b32_e64 v5, v4, 0, s[8:9]
global_store_dword v1, v5, s[6:7]
s_endpgm",
    );
    let report = case.finds(
        "v_mov_b32_dpp",
        |kind| matches!(kind, FindingKind::UninitialisedRegister { register, used_in: Use::Store } if register == "v3"),
    );
    assert_eq!(report.findings.len(), 1, "{report}");
    // The lanes that keep what nobody wrote are not selected; if they are, it shows.
    let written = case.with("s_mov_b64 exec, 0xffff\n", "");
    written.is_clean();
    written.with("0x10001", "0x10000").finds(
        "v_mov_b32_dpp",
        |kind| matches!(kind, FindingKind::UninitialisedRegister { register, .. } if register == "v4"),
    );
}

/// A loop that counts with compare-and-swap: its first guess need not be right.
#[test]
fn a_load_in_front_of_a_compare_and_swap_is_no_race() {
    let case = Case::new(
        "s_mov_b64 exec, 1
v_mov_b32_e32 v4, 0
global_load_dword v3, v4, s[4:5] offset:16
again:
s_waitcnt vmcnt(0)
v_add_u32_e32 v2, 1, v3
global_atomic_cmpswap v5, v4, v[2:3], s[4:5] offset:16 sc0
s_waitcnt vmcnt(0)
v_cmp_ne_u32_e32 vcc, v5, v3
v_mov_b32_e32 v3, v5
s_cbranch_vccnz again
s_endpgm",
    );
    let case = case.grid(4);
    case.is_clean();
    let once = case.with("s_cbranch_vccnz again\n", "");
    let races = |kind: &FindingKind| matches!(kind, FindingKind::Race { .. });
    // The result is not compared, compared elsewhere, or compared after another address.
    once.with("cmpswap v5, v4, v[2:3]", "add v5, v4, v2").finds("global_", races);
    once.with("offset:16\nagain", "offset:20\nagain")
        .with("s_endpgm", "global_atomic_add v4, v2, s[4:5] offset:20\ns_endpgm")
        .finds("global_", races);
    once.with("again:", "v_mov_b32_e32 v4, v4").finds("global_", races);
    // The address is the same for all lanes, so the guess is a scalar load.
    let load = "s_load_dword s8, s[4:5], 0x10\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v3, s8\nagain";
    let scalar = case.with("global_load_dword v3, v4, s[4:5] offset:16\nagain", load);
    scalar.is_clean();
    let moved = scalar.with("v_mov_b32_e32 v4, 0", "v_mov_b32_e32 v4, 12");
    moved.with("offset:16", "offset:4").is_clean();
    // The swap is elsewhere, or what was guessed is stored before the swap has verified it.
    let loaded = |kind: &FindingKind| {
        matches!(
            kind,
            FindingKind::Race { first: MemoryAccess::Load, then: MemoryAccess::Atomic, .. }
                | FindingKind::Race { first: MemoryAccess::Atomic, then: MemoryAccess::Load, .. }
        )
    };
    scalar.with("again:", "global_atomic_add v4, v4, s[4:5] offset:16\nagain:").is_clean();
    moved
        .with("again:", "v_mov_b32_e32 v6, 1\nglobal_atomic_add v4, v6, s[4:5] offset:4\nagain:")
        .with("cmpswap v5, v4, v[2:3], s[4:5] offset:16", "cmpswap v5, v4, v[2:3], s[4:5] offset:8")
        .finds("", loaded);
    scalar.with("again:", "global_store_dword v4, v3, s[6:7]\nagain:").finds("", loaded);
    case.with("again:\ns_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0)\nglobal_store_dword v4, v3, s[6:7]\nagain:")
        .finds("", loaded);
}

/// What the simulator cannot execute ends the wave, and what was found until then is reported.
#[test]
fn findings_in_front_of_an_unsupported_instruction_are_kept() {
    let case = copy_kernel().with("s_endpgm", "s_sethalt 1\ns_endpgm");
    case.finds("s_sethalt", |kind| matches!(kind, FindingKind::Unsupported { .. }));
    let wrong = case.with("s_waitcnt vmcnt(0)\n", "");
    wrong.finds("s_sethalt", |kind| matches!(kind, FindingKind::Unsupported { .. }));
    wrong.finds("global_store_dword", |kind| matches!(kind, FindingKind::MissingWait { .. }));
}

#[test]
fn registers_beyond_the_allocation_are_found() {
    let case = copy_kernel().with("global_store", "v_mov_b32_e32 v40, v0\nglobal_store");
    case.finds("v_mov_b32", |kind| {
        *kind == FindingKind::RegisterBeyondAllocation { register: "v40".into(), allocated: 32 }
    });
    Case { vgprs: 41, ..case }.is_clean();
    let agpr = copy_kernel().with("global_store", "v_accvgpr_write_b32 a4, v0\nglobal_store");
    agpr.finds(
        "v_accvgpr_write",
        |kind| matches!(kind, FindingKind::RegisterBeyondAllocation { register, .. } if register == "a4"),
    );
    Case { agprs: 8, ..agpr }.is_clean();
}

#[test]
fn replays_matter_where_pages_may_fault() {
    let run = "s_load_dwordx2 s[12:13], s[12:13], 0x0\n";
    let with = format!("s_mov_b64 s[12:13], s[4:5]\n{run}s_waitcnt lgkmcnt(0)\nglobal_store");
    let case = copy_kernel().with("global_store", &with);
    case.is_clean();
    for target in ["gfx90a:xnack-", "gfx942:xnack-"] {
        Case { target, ..case.clone() }.is_clean();
    }
    // An object that does not say may run where pages are retried, and its runs are parted for that; but
    // compilers let one of its loads overwrite its own base.
    for target in ["gfx90a:xnack+", "gfx908:xnack+", "gfx942:xnack+", "gfx90a", "gfx908", "gfx942"] {
        let case = Case { target, ..case.clone() };
        match target.ends_with('+') {
            true => _ = case.finds("s_load_dwordx2", |kind| *kind == FindingKind::Replay),
            false => case.is_clean(),
        }
        let case = Case { target, ..copy_kernel() };
        case.is_clean();
        let run = "global_load_dword v2, v1, s[4:5]\ns_nop 0\nglobal_load_dword v1, v1, s[4:5]\n";
        let case = case.with("global_load_dword v2, v1, s[4:5]\n", run);
        let case =
            case.with("global_store_dword v1, v2", "v_lshlrev_b32_e32 v1, 2, v0\nglobal_store_dword v1, v2");
        case.is_clean();
        let run = case.with("s_nop 0\n", "");
        run.finds("global_load_dword v1", |kind| *kind == FindingKind::Replay);
        // A branch in between has ended the run, and so has a jump to the second load.
        case.with("s_nop 0", "s_branch to\nto:").is_clean();
        run.with("global_load_dword v2, v1", "s_branch to\nglobal_load_dword v2, v1")
            .with("global_load_dword v1, v1", "to:\nglobal_load_dword v1, v1")
            .with("v1, v2, s[6:7]", "v1, v0, s[6:7]")
            .is_clean();
    }
}

#[test]
fn a_report_is_the_same_for_the_same_seed_and_reads_well() {
    let case = exchange().with("s_barrier\n", "").grid(3);
    let json = |seed| serde_json::to_string(&case.check(seed)).expect("it can be written");
    for seed in 0..5 {
        assert_eq!(json(seed), json(seed));
    }
    let report = copy_kernel().buffers([(256, true), (252, false)]).check(0);
    let value = serde_json::to_value(&report).expect("it can be written");
    assert_eq!(value["findings"][0]["kind"], "out_of_bounds");
    assert_eq!(value["findings"][0]["lanes"], "0x8000000000000000");
    assert_eq!(value["findings"][0]["memory"], "device");
    let text = report.to_string();
    assert!(
        text.contains("error: store of 4 bytes at") && text.contains("help: mask the lanes off"),
        "{text}"
    );
}

/// Words that decode, in any order: whatever they do, there is a report or an error.
#[test]
fn random_code_is_checked_without_panic() {
    let mut rng = StdRng::seed_from_u64(11);
    let info = KernelInfo {
        name: "test".into(),
        resources: KernelResources {
            vgprs: 256,
            sgprs: 96,
            lds_bytes: 4096,
            scratch_bytes: 64,
            kernarg_bytes: 16,
            ..KernelResources::default()
        },
        arguments: [].into(),
        workgroup_size: WorkgroupSize::AtMost(128),
    };
    let case = copy_kernel().block(128).grid(2);
    let mut ended = 0;
    for seed in 0..400 {
        let mut code = Vec::new();
        for _ in 0..60 {
            let words = loop {
                let words = [rng.random::<u32>(), rng.random()];
                if let Ok((_, length)) = decode(&words, Arch::Gfx942) {
                    break words[..length].to_vec();
                }
            };
            code.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        }
        code.extend(0xbf81_0000u32.to_le_bytes());
        let object = write(Target::GFX942, &[KernelCode { info: &info, code: &code, lines: None }]).unwrap();
        ended += u32::from(case.check_object(&object, seed).is_ok());
    }
    assert!(ended > 40, "{ended} of 400 programs ran to an end");
}

#[test]
fn findings_name_the_line_of_the_author() {
    let object = copy_kernel().object();
    let file = ObjectFile::parse(&object).expect("just assembled");
    let code = file.kernels[0].code;
    let mut lines = SourceLines::default();
    let name = lines.file(&Arc::from("kernel.rs"));
    let words: Vec<u32> = code.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    let (mut at, mut line) = (0, 100);
    while at < words.len() {
        let (_, length) = decode(&words[at..], Arch::Gfx942).expect("an instruction");
        lines.push(4 * at as u32, Some(SourcePlace { file: name, line, column: 1 }));
        (at, line) = (at + length, line + 1);
    }
    let info = KernelInfo {
        name: "test".into(),
        resources: KernelResources { vgprs: 8, sgprs: 16, kernarg_bytes: 16, ..KernelResources::default() },
        arguments: [].into(),
        workgroup_size: WorkgroupSize::AtMost(64),
    };
    let with_lines = write(Target::GFX942, &[KernelCode { info: &info, code, lines: Some(&lines) }]).unwrap();
    let case = copy_kernel().buffers([(256, true), (252, false)]);
    let report = case.check_object(&with_lines, 0).expect("it runs");
    let source = report.findings[0].at.source.as_ref().expect("the object says");
    // Three instructions of the prologue, a load and a wait come before the store.
    assert_eq!((source.file.as_str(), source.line), ("kernel.rs", 105));
}

/// Forms of instructions that some chips execute wrongly, and the same done in another way.
#[test]
fn errata_of_single_instructions_are_found() {
    let kernel = |target, instructions: &str| {
        let with = format!("{instructions}\nglobal_store_dword");
        Case { target, vgprs: 8, ..copy_kernel().with("global_store_dword", &with) }
    };
    let is = |erratum| move |kind: &FindingKind| *kind == FindingKind::Erratum(erratum);
    for (text, instruction, erratum, chips, sound) in [
        (
            "v_cvt_f32_bf8_e32 v5, v2",
            "v_cvt_f32_bf8",
            Erratum::Float8InVop1,
            &["gfx942"][..],
            "v_cvt_f32_bf8_sdwa v5, v2 src0_sel:BYTE_0",
        ),
        (
            "v_mov_b32 v7, 1\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\nv_lshlrev_b64 v[4:5], v7, v[4:5]",
            "v_lshlrev_b64",
            Erratum::ShiftByLastRegister,
            &["gfx90a", "gfx942", "gfx950"],
            "v_mov_b32 v6, 1\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\nv_lshlrev_b64 v[4:5], v6, v[4:5]",
        ),
        (
            "v_mov_b32 v4, 0\nv_mov_b32 v5, 0\nv_pk_fma_f32 v[4:5], v[4:5], v[4:5], v[4:5] op_sel:[0,1,0]",
            "v_pk_fma_f32",
            Erratum::PackedFmaHighSource,
            &["gfx950"],
            "v_mov_b32 v4, 0\nv_mov_b32 v5, 0\nv_pk_fma_f32 v[4:5], v[4:5], v[4:5], v[4:5] op_sel:[1,0,0]",
        ),
        (
            "s_mov_b32 s8, 8\nscratch_store_dword off, v2, s8 offset:-4",
            "scratch_store_dword",
            Erratum::NegativeScratchOffset,
            &["gfx942", "gfx950"],
            "s_mov_b32 s8, 0\nscratch_store_dword off, v2, s8 offset:4",
        ),
    ] {
        for target in ["gfx90a", "gfx942", "gfx950"] {
            let has = |case: Case| Case { scratch: 16, ..case };
            let known = target != "gfx90a" || !instruction.starts_with("v_cvt");
            // Scratch of gfx90a has to be set up by the kernel.
            if !known || erratum == Erratum::NegativeScratchOffset && target == "gfx90a" {
                continue;
            }
            match chips.contains(&target) {
                true => _ = has(kernel(target, text)).finds(instruction, is(erratum)),
                false => has(kernel(target, text)).is_clean(),
            }
            has(kernel(target, sound)).is_clean();
        }
    }
}

/// Results of conversions to 8 and 4 bits are not forwarded on gfx950.
#[test]
fn small_conversions_of_gfx950_take_a_wait_state() {
    let kernel = |between: &str| {
        let with = format!(
            "v_mov_b32 v5, 1.0\nv_cvt_pk_fp8_f32 v3, v5, v5\n{between}v_add_u32_e32 v4, v3, v3\nglobal_store_dword"
        );
        Case { target: "gfx950", ..copy_kernel().with("global_store_dword", &with) }
    };
    // The upper half of the register is not written.
    let defined = |case: Case| case.with("v_mov_b32 v5, 1.0\n", "v_mov_b32 v5, 1.0\nv_mov_b32 v3, 0\n");
    defined(kernel("s_nop 0\n")).is_clean();
    defined(kernel("")).finds("v_add_u32", |kind| *kind == FindingKind::Hazard { needed: 1, present: 0 });
    Case { target: "gfx942", ..defined(kernel("")) }.is_clean();
}

/// `buffer_inv` is counted by vmcnt.
#[test]
fn an_invalidation_is_counted() {
    let case = copy_kernel().with("s_waitcnt vmcnt(0)\n", "buffer_inv sc1\ns_waitcnt vmcnt(1)\n");
    case.is_clean();
    case.with("vmcnt(1)", "vmcnt(2)").finds(
        "global_store_dword",
        |kind| matches!(kind, FindingKind::MissingWait { register, at_most: 1, .. } if register == "v2"),
    );
}

/// Chips with SRAM ECC write the whole register where others write half of it.
#[test]
fn the_second_half_clears_the_first() {
    let loads =
        "global_load_short_d16 v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\nglobal_load_short_d16_hi v2, v1, s[4:5]\n";
    let case = copy_kernel().with("global_load_dword v2, v1, s[4:5]\n", &format!("v_mov_b32 v2, 0\n{loads}"));
    for target in ["gfx90a", "gfx942", "gfx950"] {
        let case = Case { target, ..case.clone() };
        let report = case.finds("global_load_short_d16_hi", |kind| *kind == FindingKind::ClearedHalf);
        assert!(report.findings[0].other.is_some(), "{report}");
    }
    Case { target: "gfx908:xnack-", ..case.clone() }.is_clean();
    // The first half has been used.
    case.with("global_load_short_d16_hi", "v_mov_b32 v3, v2\nglobal_load_short_d16_hi").is_clean();
    // Either of the two is executed, or control comes from elsewhere.
    case.with("global_load_short_d16_hi", "s_branch on\non:\nglobal_load_short_d16_hi").is_clean();
    // Two registers.
    case.with("global_load_short_d16_hi v2", "global_load_short_d16_hi v3")
        .with("global_store_dword", "v_or_b32 v2, v2, v3\nglobal_store_dword")
        .is_clean();
}

/// What a matrix instruction leaves pending is waited for across several jumps.
#[test]
fn wait_states_are_counted_across_jumps_in_a_row() {
    let zeros: String = (8..16).map(|register| format!("v_mov_b32 v{register}, 0\n")).collect();
    let product = "v_mfma_f32_16x16x4f32 v[8:11], v12, v13, v[8:11]\n";
    let kernel = |jumps: &str, states: &str| {
        let with =
            format!("{zeros}s_nop 7\n{product}{jumps}{states}v_add_f32 v14, v8, v8\nglobal_store_dword");
        copy_kernel().with("global_store_dword", &with)
    };
    let jumps = "s_branch first\nsecond:\ns_branch third\nfirst:\ns_branch second\nthird:\n";
    for jumps in ["", "s_branch third\nthird:\n", jumps] {
        kernel(jumps, "s_nop 15\ns_nop 7\n").is_clean();
        kernel(jumps, "").finds("v_add_f32", |kind| matches!(kind, FindingKind::Hazard { .. }));
    }
}

/// A barrier of the grid opens for the number of waves that it names; fewer wait in vain.
#[test]
fn barriers_of_the_grid_that_too_few_waves_meet_are_found() {
    let kernel = |waves: u32| {
        let meets = format!("s_mov_b32 m0, 0\nv_mov_b32 v2, {}\nds_gws_barrier v2 gds\n", waves - 1);
        Case::new(&(meets + "s_waitcnt lgkmcnt(0) expcnt(0)\ns_endpgm")).block(128).grid(3)
    };
    kernel(6).is_clean();
    kernel(7).finds("ds_gws_barrier", |kind| *kind == FindingKind::UnmetBarrier);
}

#[test]
fn a_load_is_in_flight_for_its_own_lanes_alone() {
    let case = Case::new(
        "v_mov_b32_e32 v2, 0
s_mov_b64 exec, 0x20
global_load_dword v2, v1, s[4:5]
s_mov_b64 exec, 1
global_store_dword v1, v2, s[6:7]
s_waitcnt vmcnt(0)
s_endpgm",
    );
    case.is_clean();
    let in_flight = |kind: &FindingKind| matches!(kind, FindingKind::MissingWait { .. });
    case.with("s_mov_b64 exec, 1", "s_mov_b64 exec, 0x21").finds("global_store_dword", in_flight);
    // Some look at lanes that they are not for.
    case.with("global_store_dword v1, v2", "v_readlane_b32 s8, v2, 5\nglobal_store_dword v1, v1")
        .finds("v_readlane_b32", in_flight);
    let dpp = "s_nop 1\nv_mov_b32_dpp v3, v2 row_shl:5 row_mask:0xf bank_mask:0xf bound_ctrl:0\n";
    case.with("global_store_dword v1, v2", &format!("{dpp}global_store_dword v1, v1"))
        .finds("v_mov_b32_dpp", in_flight);
}

/// As split products hand over in assembly: the flag is written and awaited by the scalar unit.
#[test]
fn flags_of_the_scalar_unit_are_no_race() {
    let case = Case::new(
        "s_cmp_eq_u32 s2, 0
s_cbranch_scc0 wait
s_mov_b32 s20, 2
s_store_dword s20, s[6:7], 0x200 glc
s_waitcnt lgkmcnt(0)
s_endpgm
wait:
s_sleep 1
s_load_dword s21, s[6:7], 0x200 glc
s_waitcnt lgkmcnt(0)
s_cmp_eq_u32 s21, 2
s_cbranch_scc0 wait
v_mov_b32_e32 v2, 7
global_store_dword v1, v2, s[6:7]
s_endpgm",
    )
    .buffers([(4096, true), (4096, true)])
    .grid(2);
    case.is_clean();
    let race = |kind: &FindingKind| matches!(kind, FindingKind::Race { .. });
    let plain = case.with("s_load_dword s21, s[6:7], 0x200 glc", "s_load_dword s21, s[6:7], 0x200");
    let plain = plain.with("s_store_dword s20, s[6:7], 0x200 glc", "s_store_dword s20, s[6:7], 0x200");
    plain.with("s_cbranch_scc0 wait\nv_mov", "s_nop 0\nv_mov").finds("s_load_dword", race);
}

/// `op_sel_hi` has both halves of a packed operation take one register, so the other one is not read.
#[test]
fn what_is_undefined_comes_from_the_register_that_is_read() {
    let case = Case::new(
        "v_mov_b32_e32 v3, 0
ds_read_b32 v2, v3
v_mov_b32_e32 v8, 1.0
v_mov_b32_e32 v4, 1.0
v_mov_b32_e32 v5, 1.0
s_waitcnt lgkmcnt(0)
v_pk_fma_f32 v[6:7], v[8:9], v[2:3], v[4:5] op_sel_hi:[0,1,1]
global_store_dwordx2 v3, v[6:7], s[6:7]
s_endpgm",
    )
    .lds(256);
    let of_lds =
        |kind: &FindingKind| matches!(kind, FindingKind::UninitialisedMemory { memory: Memory::Lds, .. });
    let report = case.finds("ds_read_b32", of_lds);
    assert_eq!(report.findings.len(), 1, "{report}");
    let both = case.with(" op_sel_hi:[0,1,1]", "").with("ds_read_b32 v2, v3", "v_mov_b32_e32 v2, 0");
    let of_v9 = |kind: &FindingKind| matches!(kind, FindingKind::UninitialisedRegister { register, .. } if register == "v9");
    both.finds("v_pk_fma_f32", of_v9);
}

/// The manual of gfx90a asks for eleven wait states before an addend of a matrix instruction is overwritten,
/// LLVM keeps seven.
#[test]
fn wait_states_of_which_llvm_keeps_fewer_are_a_note() {
    let mut case = copy_kernel().with(
        "global_store",
        "v_mfma_f32_16x16x16f16 v[8:11], v[0:1], v[0:1], v[12:15]
s_nop 6
v_mov_b32_e32 v12, 0
global_store",
    );
    case.target = "gfx90a";
    let is = |needed: u32, present: u32| {
        move |kind: &FindingKind| *kind == FindingKind::Hazard { needed, present }
    };
    case.notes("v_mov_b32", |kind| *kind == FindingKind::ToleratedHazard { kept: 11, asked: 7, present: 7 });
    case.with("s_nop 6", "s_nop 10").is_clean();
    case.with("s_nop 6", "s_nop 5").finds("v_mov_b32", is(11, 6));
    // Both ask for eleven before the result is overwritten, but the manual does not speak of loads.
    case.with("v_mov_b32_e32 v12, 0", "v_mov_b32_e32 v8, 0").finds("v_mov_b32", is(11, 7));
    case.with("v_mov_b32_e32 v12, 0", "global_load_dword v8, v1, s[4:5]\ns_waitcnt vmcnt(0)")
        .notes("global_load", |kind| matches!(kind, FindingKind::ToleratedHazard { kept: 11, asked: 0, .. }));
}

/// Rows that one of LLVM and the manual has alone are notes, too.
#[test]
fn wait_states_of_one_source_are_a_note() {
    let rows = [
        (
            3,
            "v_dot2_f32_f16 v8, v0, v0, v0\nv_mfma_f32_4x4x4_16b_f16 v[12:15], v[8:9], v[8:9], 0\n",
            "v_mfma",
        ),
        (
            5,
            "v_cmpx_le_i32_e32 vcc, v0, v0\nglobal_load_dword v3, v1, s[4:5]\ns_waitcnt vmcnt(0)\n",
            "global_load",
        ),
        (
            1,
            "v_cvt_pk_fp8_f32 v3, v0, v0\nv_cvt_pk_fp8_f32 v3, v0, v0 op_sel:[0,0,1]\n",
            "v_cvt_pk_fp8_f32 v3, v0, v0 op_sel",
        ),
    ];
    for (kept, code, at) in rows {
        let case = copy_kernel().with("global_store", &format!("{code}global_store"));
        case.notes(at, |kind| *kind == FindingKind::ToleratedHazard { kept, asked: 0, present: 0 });
    }
}

/// AMD's manual asks for no wait states before a mask of lanes, and AMD's own kernels have one; LLVM keeps
/// two.
#[test]
fn wait_states_that_only_llvm_keeps_are_a_note() {
    let compare = "v_cmp_lt_i32_e64 s[8:9], v0, v1\ns_nop 0\nv_cndmask_b32_e64 v2, v0, v2, s[8:9]\n";
    let case = copy_kernel().with("global_store", &format!("{compare}global_store"));
    case.is_clean();
    let tolerated = FindingKind::ToleratedHazard { kept: 2, asked: 0, present: 1 };
    case.notes("v_cndmask_b32", |kind| *kind == tolerated);
    // An operand is another matter.
    case.with("v_cndmask_b32_e64 v2, v0, v2, s[8:9]", "v_add_u32_e32 v2, s8, v2")
        .finds("v_add_u32", |kind| *kind == FindingKind::Hazard { needed: 2, present: 1 });
    // A real hazard does not hide after a tolerated one.
    let dot = case.with("v_cmp_lt_i32", "v_dot2_f32_f16 v3, v0, v0, v0\nv_cmp_lt_i32");
    dot.with("s_nop 0\nv_cndmask_b32_e64 v2, v0", "v_cndmask_b32_e64 v2, v3")
        .finds("v_cndmask_b32", |kind| *kind == FindingKind::Hazard { needed: 3, present: 1 });
}

/// A pattern that unrolled code repeats is one finding with its places, and what is wrong besides stands
/// beside it. So are notes, which come after all findings.
#[test]
fn findings_of_one_cause_are_told_as_one() {
    let compare = "v_cmp_lt_i32_e64 s[8:9], v0, v1\ns_nop 0\n";
    let hazard = format!("{compare}v_add_u32_e32 v3, s8, v0\n");
    let tolerated = format!("{compare}v_cndmask_b32_e64 v3, v0, v1, s[8:9]\n");
    let case = exchange().with("s_barrier\n", &format!("{}{}", tolerated.repeat(200), hazard.repeat(300)));
    let report = case.check(0);
    let is_hazard = |finding: &Finding| matches!(finding.kind, FindingKind::Hazard { .. });
    assert_eq!(report.findings.iter().filter(|finding| is_hazard(finding)).count(), 300);
    assert_eq!(report.notes.len(), 200);
    // Two races, LDS that was never written, and the hazard.
    let causes = report.causes();
    assert_eq!(causes.len(), 4, "{report}");
    let of_hazard = causes.iter().filter(|cause| is_hazard(cause.first)).collect::<Vec<_>>();
    let [hazard] = of_hazard[..] else { panic!("{report}") };
    assert_eq!(hazard.more.len(), 299);
    assert!(hazard.more.is_sorted_by_key(|finding| finding.at.address));
    let races = causes.iter().filter(|cause| matches!(cause.first.kind, FindingKind::Race { .. }));
    assert!(races.map(|race| race.more.len()).eq([0, 0]), "{report}");
    assert_eq!(report.noted_causes().len(), 1);
    let text = report.to_string();
    assert_eq!(text.matches("--> ").count(), 5, "{text}");
    let second = hazard.more[0].at.address;
    assert!(text.contains(&format!("= and 299 more places like it: {second:#x}, ")), "{text}");
    assert!(text.contains("= and 199 more places like it"), "{text}");
    assert!(text.find("race on LDS") < text.find("note: LLVM and"), "{text}");
    assert!(text.ends_with("4 findings at 303 places"), "{text}");
    let value = serde_json::to_value(&report).expect("it can be written");
    let findings = value["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 4);
    let more = findings.iter().map(|finding| finding["more"].as_array().map_or(0, Vec::len));
    assert_eq!(more.sum::<usize>(), 299);
    assert_eq!(value["notes"][0]["more"].as_array().map(Vec::len), Some(199));
}

/// The `else` of an `if` round a barrier, without a branch round it: a wave that is not for it takes part,
/// too.
#[test]
fn a_barrier_without_lanes_says_so() {
    let case = exchange().with(
        "s_barrier\n",
        "s_barrier
v_cmp_lt_u32_e32 vcc, 63, v0
s_and_saveexec_b64 s[2:3], vcc
s_barrier
s_mov_b64 exec, s[2:3]
s_barrier
",
    );
    let report = case.finds("s_barrier", |kind| *kind == FindingKind::EmptyBarrier);
    let text = report.to_string();
    assert!(text.contains("no lane of the wave is active at this barrier"), "{text}");
    case.with("s_and_saveexec_b64 s[2:3], vcc", "s_and_saveexec_b64 s[2:3], exec").is_clean();
}

/// A kernel that is right, and changes of it (text, text instead) that make a race, with the beginnings of
/// the two instructions that a finding has to name.
struct RaceKind {
    name: &'static str,
    right: Case,
    races: Vec<(&'static str, &'static str, [&'static str; 2])>,
}

/// Code of two waves that each have 64 places of LDS: v2 is the own place, v3 that of the other wave.
fn two_waves(body: &str) -> Case {
    Case::new(&format!(
        "v_lshlrev_b32_e32 v2, 2, v0\nv_xor_b32_e32 v3, 0x100, v2\n{body}\nglobal_store_dword v2, v4, s[6:7]\ns_endpgm"
    ))
    .lds(2048)
    .block(128)
}

/// Code of one wave; it leaves a result in v4.
fn one_wave(body: &str) -> Case {
    Case::new(&format!("{body}\nglobal_store_dword v1, v4, s[6:7]\ns_endpgm"))
}

const BARRIER: &str = "s_waitcnt lgkmcnt(0)\ns_barrier\n";
const ONLY_WAITS: &str = "s_waitcnt lgkmcnt(0)\n";

/// Races in registers: results of loads that nobody has waited for.
fn register_races() -> Vec<RaceKind> {
    let kind = |name, body: &str, races| RaceKind { name, right: one_wave(body), races };
    let load_4 = "global_load_dword v4, v1, s[4:5]\n";
    let load_5 = "global_load_dword v5, v1, s[4:5] offset:4\n";
    let add = "v_add_f32_e32 v4, v4, v5";
    let wait = "s_waitcnt vmcnt(0)\n";
    vec![
        kind(
            "a load's result is stored",
            &format!("{load_4}{wait}"),
            vec![("vmcnt(0)", "vmcnt(1)", ["global_load", "global_store"])],
        ),
        kind(
            "a scalar load's result is read",
            "s_load_dword s8, s[4:5], 0x0\ns_waitcnt lgkmcnt(0) vmcnt(0)\ns_add_u32 s8, s8, 1\nv_mov_b32_e32 v4, s8",
            vec![("lgkmcnt(0) vmcnt(0)", "vmcnt(0)", ["s_load", "s_add"])],
        ),
        kind(
            "the newer of two loads",
            &format!("{load_4}{load_5}{wait}{add}"),
            vec![
                ("vmcnt(0)", "vmcnt(1)", ["global_load", "v_add"]),
                ("vmcnt(0)", "vmcnt(2)", ["global_load", "v_add"]),
            ],
        ),
        kind(
            "vector and scalar loads have their own counters",
            &format!(
                "{load_4}s_load_dword s8, s[4:5], 0x0\ns_waitcnt vmcnt(0) lgkmcnt(0)\nv_add_f32_e32 v4, s8, v4"
            ),
            vec![
                ("vmcnt(0) lgkmcnt(0)\nv_add", "vmcnt(0)\nv_add", ["s_load", "v_add"]),
                ("vmcnt(0) lgkmcnt(0)\nv_add", "lgkmcnt(0)\nv_add", ["global_load", "v_add"]),
            ],
        ),
        kind(
            "scalar loads return in any order",
            "s_load_dword s8, s[4:5], 0x0\ns_load_dword s9, s[4:5], 0x40\ns_waitcnt vmcnt(0) lgkmcnt(0)\nv_mov_b32_e32 v4, s8",
            vec![("vmcnt(0) lgkmcnt(0)", "lgkmcnt(1)", ["s_load", "v_mov"])],
        ),
        kind(
            "a load's result is overwritten by the ALU",
            &format!("{load_4}{wait}v_add_f32_e32 v4, v1, v1"),
            vec![("vmcnt(0)", "vmcnt(1)", ["global_load", "v_add"])],
        ),
        kind(
            "a load's result is overwritten by a matrix instruction",
            &format!(
                "v_mov_b32_e32 v8, 0\nglobal_load_dwordx4 v[4:7], v1, s[4:5]\n{wait}v_mfma_f32_4x4x1_16b_f32 v[4:7], v8, v8, 0\ns_nop 7"
            ),
            vec![("vmcnt(0)", "vmcnt(1)", ["global_load", "v_mfma"])],
        ),
        kind(
            "a scalar load's result is overwritten",
            "s_load_dword s8, s[4:5], 0x0\ns_waitcnt lgkmcnt(0) vmcnt(0)\ns_mov_b32 s8, 1\nv_mov_b32_e32 v4, s8",
            vec![
                ("lgkmcnt(0) vmcnt(0)", "vmcnt(0)", ["s_load", "s_mov"]),
                (
                    "s_waitcnt lgkmcnt(0) vmcnt(0)\ns_mov_b32 s8, 1",
                    "s_load_dword s8, s[4:5], 0x40\ns_waitcnt lgkmcnt(0)",
                    ["s_load", "s_load"],
                ),
            ],
        ),
        kind(
            "64-bit results",
            &format!("global_load_dwordx2 v[6:7], v1, s[4:5]\n{wait}v_fma_f64 v[4:5], v[6:7], 1.0, 1.0"),
            vec![
                ("vmcnt(0)", "vmcnt(1)", ["global_load", "v_fma"]),
                (
                    "s_waitcnt vmcnt(0)\nv_fma_f64 v[4:5], v[6:7], 1.0",
                    "v_fma_f64 v[6:7], 1.0, 1.0",
                    ["global_load", "v_fma"],
                ),
            ],
        ),
        kind(
            "a flat load uses both counters",
            "v_mov_b32_e32 v7, s5\nv_add_co_u32_e32 v6, vcc, s4, v1\nv_addc_co_u32_e32 v7, vcc, 0, v7, vcc\n\
             flat_load_dword v4, v[6:7]\ns_waitcnt vmcnt(0) lgkmcnt(0)\nv_mov_b32_e32 v4, v4",
            vec![
                ("vmcnt(0) lgkmcnt(0)\nv_mov", "vmcnt(0)\nv_mov", ["flat_load", "v_mov"]),
                ("vmcnt(0) lgkmcnt(0)\nv_mov", "lgkmcnt(0)\nv_mov", ["flat_load", "v_mov"]),
            ],
        ),
        RaceKind {
            name: "stores to scratch count, too",
            right: Case {
                scratch: 64,
                ..one_wave(
                    "v_mov_b32_e32 v6, 1\nglobal_load_dword v4, v1, s[4:5]\nscratch_store_byte off, v6, off\n\
                     scratch_store_byte off, v6, off offset:1\ns_waitcnt vmcnt(2)",
                )
            },
            races: vec![("scratch_store_byte off, v6, off offset:1\n", "", ["global_load", "global_store"])],
        },
        kind(
            "an atomic's result",
            &format!("v_mov_b32_e32 v5, 1\nglobal_atomic_add v4, v1, v5, s[4:5] sc0\n{wait}"),
            vec![("vmcnt(0)", "vmcnt(1)", ["global_atomic", "global_store"])],
        ),
        RaceKind {
            name: "a result of LDS",
            right: one_wave("ds_write_b32 v1, v0\nds_read_b32 v4, v1\ns_waitcnt lgkmcnt(0)").lds(256),
            races: vec![(
                "ds_read_b32 v4, v1\ns_waitcnt lgkmcnt(0)",
                "ds_read_b32 v4, v1\ns_waitcnt lgkmcnt(1)",
                ["ds_read", "global_store"],
            )],
        },
        RaceKind {
            right: one_wave(&format!("{load_4}{wait}")).grid(4),
            name: "many workgroups",
            races: vec![("vmcnt(0)", "vmcnt(1)", ["global_load", "global_store"])],
        },
    ]
}

/// Races in LDS, of one wave with another, and of loads to LDS with what follows them.
fn lds_races() -> Vec<RaceKind> {
    let kind = |name, body: &str, races| RaceKind { name, right: two_waves(body), races };
    let read = "ds_read_b32 v4, v3\ns_waitcnt lgkmcnt(0)";
    // A part of the lanes is switched off round an instruction.
    let masked =
        |mask: &str, body: &str| format!("s_mov_b64 s[8:9], exec\n{mask}\n{body}s_mov_b64 exec, s[8:9]\n");
    let some = "s_mov_b64 exec, 0xfffffff";
    vec![
        kind(
            "another wave's store is read",
            &format!("ds_write_b32 v2, v0\n{BARRIER}{read}"),
            vec![(BARRIER, ONLY_WAITS, ["ds_write", "ds_read"]), (BARRIER, "", ["ds_write", "ds_read"])],
        ),
        kind(
            "what another wave reads is overwritten",
            &format!("ds_write_b32 v2, v0\n{BARRIER}{read}\n{BARRIER}ds_write_b32 v2, v3"),
            vec![(
                "s_waitcnt lgkmcnt(0)\ns_waitcnt lgkmcnt(0)\ns_barrier\n",
                "s_waitcnt lgkmcnt(0)\n",
                ["ds_write", "ds_read"],
            )],
        ),
        kind(
            "two waves store to one place",
            &format!(
                "v_and_b32_e32 v5, 0xff, v2\nds_write_b32 v2, v0\n{BARRIER}ds_read_b32 v4, v2\ns_waitcnt lgkmcnt(0)"
            ),
            vec![("ds_write_b32 v2, v0", "ds_write_b32 v5, v0", ["ds_write", "ds_write"])],
        ),
        kind(
            "stores of some lanes",
            &format!(
                "{}{BARRIER}v_mov_b32_e32 v4, 0\n{}",
                masked(some, "ds_write_b32 v2, v0\n"),
                masked(some, &format!("{read}\n"))
            ),
            vec![(BARRIER, ONLY_WAITS, ["ds_write", "ds_read"])],
        ),
        kind(
            "operations of one wave are in order, whatever lanes do them",
            &format!(
                "ds_write_b32 v2, v0\n{BARRIER}{}ds_read_b32 v4, v2\ns_waitcnt lgkmcnt(0)",
                masked("s_mov_b32 exec_hi, 0", "ds_write_b32 v2, v0 offset:128\n")
            ),
            // One lane more stores to a place of the next wave.
            vec![("exec_hi, 0", "exec_hi, 1", ["ds_write", "ds_read"])],
        ),
        kind(
            "two places of one instruction",
            &format!(
                "v_lshlrev_b32_e32 v5, 3, v0\nv_xor_b32_e32 v6, 0x200, v5\nds_write2_b32 v5, v0, v2 offset0:0 offset1:1\n{BARRIER}ds_read2_b32 v[4:5], v6 offset0:0 offset1:1\ns_waitcnt lgkmcnt(0)"
            ),
            vec![(BARRIER, ONLY_WAITS, ["ds_write2", "ds_read2"])],
        ),
        kind(
            "flat accesses of LDS",
            &format!(
                "s_mov_b64 s[8:9], src_shared_base\nv_mov_b32_e32 v7, s9\nv_mov_b32_e32 v6, v2\n\
                 flat_store_dword v[6:7], v0\ns_waitcnt vmcnt(0)\n{BARRIER}v_mov_b32_e32 v6, v3\n\
                 flat_load_dword v4, v[6:7]\ns_waitcnt vmcnt(0) lgkmcnt(0)"
            ),
            vec![(BARRIER, ONLY_WAITS, ["flat_store", "flat_load"])],
        ),
        kind(
            "loads to LDS",
            &format!(
                "v_and_b32_e32 v5, 0xff, v2\nv_readfirstlane_b32 s8, v2\ns_mov_b32 m0, s8\ns_nop 0\nglobal_load_lds_dword v2, s[4:5]\ns_waitcnt vmcnt(0)\n{BARRIER}{read}"
            ),
            vec![
                ("vmcnt(0)", "vmcnt(1)", ["global_load_lds", "ds_read"]),
                (BARRIER, "", ["global_load_lds", "ds_read"]),
            ],
        ),
        kind(
            "loads to LDS over what is read",
            &format!(
                "ds_write_b32 v2, v0\nv_readfirstlane_b32 s8, v2\ns_mov_b32 m0, s8\n{BARRIER}{read}\ns_barrier\nglobal_load_lds_dword v2, s[4:5]\ns_waitcnt vmcnt(0)"
            ),
            vec![("s_barrier\nglobal_load_lds", "global_load_lds", ["global_load_lds", "ds_read"])],
        ),
    ]
}

/// Every kind of race that AMD's emulator rocjitsu has tests for, and some more: all are found, and nothing
/// in the kernels that are right (`docs/trust.md` lists them).
#[test]
fn every_kind_of_race_is_found_and_no_other() {
    for kind in register_races().into_iter().chain(lds_races()) {
        for target in ["gfx942:xnack-", "gfx950:xnack-"] {
            let right = Case { target, ..kind.right.clone() };
            right.is_clean();
            for (from, to, [first, second]) in &kind.races {
                let case = right.with(from, to);
                for seed in 0..10 {
                    let report = case.check(seed);
                    let names = |finding: &groundswell::simulator::Finding| {
                        let at = &finding.at.instruction;
                        let other = finding.other.as_ref().map_or("", |site| &site.instruction);
                        at.starts_with(first) && other.starts_with(second)
                            || at.starts_with(second) && other.starts_with(first)
                    };
                    let found = report.findings.iter().any(names);
                    assert!(found, "{} on {target}, seed {seed}: {report}\n{}", kind.name, case.body);
                }
            }
        }
    }
}
