//! Runs the checks of the fuzz targets on a fixed sequence of random inputs; `GROUNDSWELL_FUZZ_CASES` says
//! how many per check where that is more than usual, and `GROUNDSWELL_FUZZ_SEED` which ones.
//! A failing input is made smaller before it is shown.

use groundswell_testing::case_files::expanded;
use groundswell_testing::places::root;
use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use groundswell::author::Kernel;
use groundswell::author::Symbol;
use groundswell::object::{BundleEntry, compress_bundle, write_bundle};
use groundswell::options::Options;
use groundswell::target::Target;
use groundswell_testing::checks::{self, CHECKS, Check, Outcome, Verdict};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn cases(usual: usize) -> usize {
    let asked = std::env::var("GROUNDSWELL_FUZZ_CASES").ok();
    asked.map_or(usual, |text| usual.max(text.parse().expect("GROUNDSWELL_FUZZ_CASES is a number")))
}

/// What random inputs begin with, unless others are asked for.
fn inputs_from(usual: u64) -> StdRng {
    let asked = std::env::var("GROUNDSWELL_FUZZ_SEED").ok();
    StdRng::seed_from_u64(
        asked.map_or(usual, |text| text.parse().expect("GROUNDSWELL_FUZZ_SEED is a number")),
    )
}

fn check(name: &str) -> Check {
    CHECKS.iter().find(|row| row.0 == name).expect("there is such a check").1
}

/// A panic is a fault like others.
fn fault(check: CheckOf<'_>, data: &[u8]) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| check(data))) {
        Ok(result) => result.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(format!("panicked: {}", text.unwrap_or_default()))
        }
    }
}

/// Fewer and smaller bytes that still fail, and how.
fn smaller(check: CheckOf<'_>, mut data: Vec<u8>, mut found: String) -> (Vec<u8>, String) {
    let mut length = data.len();
    while length > 0 {
        let mut at = 0;
        while at < data.len() {
            let mut fewer = data.clone();
            fewer.drain(at..(at + length).min(data.len()));
            match fault(check, &fewer) {
                Some(fault) => (data, found) = (fewer, fault),
                None => at += length,
            }
        }
        length /= 2;
    }
    for at in 0..data.len() {
        for byte in 0..data[at].min(8) {
            let mut lower = data.clone();
            lower[at] = byte;
            if let Some(fault) = fault(check, &lower) {
                (data, found) = (lower, fault);
                break;
            }
        }
    }
    (data, found)
}

/// Faults that are shown at most.
const MOST_FAULTS: usize = 10;

/// What is done with an input.
type CheckOf<'a> = &'a dyn Fn(&[u8]) -> Result<(), String>;

fn run(name: &str, inputs: impl Iterator<Item = Vec<u8>>) {
    run_each(name, &check(name), |_| None, inputs);
}

/// As [`run`]; returns how many of the inputs came to the outcome `wanted`.
fn run_counting<T: PartialEq>(
    name: &str,
    outcome: fn(&[u8]) -> Result<T, String>,
    wanted: &T,
    inputs: impl Iterator<Item = Vec<u8>>,
) -> usize {
    let count = Cell::new(0);
    let check = |data: &[u8]| {
        count.set(count.get() + usize::from(outcome(data)? == *wanted));
        Ok(())
    };
    // Bytes are choices, and fewer of them make another kernel: the kernel itself is made smaller.
    let kernel = |data: &[u8]| if name == "language" { checks::smaller_kernel(data) } else { None };
    run_each(name, &check, kernel, inputs);
    count.get()
}

/// `shown` makes an input smaller in its own way and says what is shown of it, if it has one.
fn run_each(
    name: &str,
    check: CheckOf<'_>,
    shown: impl Fn(&[u8]) -> Option<String>,
    inputs: impl Iterator<Item = Vec<u8>>,
) {
    let mut faults: Vec<(usize, (Vec<u8>, String))> = Vec::new();
    let mut count = 0;
    for (number, data) in inputs.enumerate() {
        let Some(found) = fault(check, &data) else { continue };
        count += 1;
        if faults.len() < MOST_FAULTS {
            let small = match shown(&data) {
                Some(shown) => (data, shown),
                None => smaller(check, data, found),
            };
            if !faults.iter().any(|(_, known)| *known == small) {
                faults.push((number, small));
            }
        }
    }
    let shown: String = faults
        .iter()
        .map(|(number, (data, fault))| format!("\ninput {number}: {}\n{fault}\n", data.escape_ascii()))
        .collect();
    assert!(faults.is_empty(), "{name}: {count} inputs fail; some, made smaller:\n{shown}");
}

fn random_bytes(rng: &mut StdRng, most: usize) -> Vec<u8> {
    let length = rng.random_range(0..=most);
    (0..length).map(|_| rng.random()).collect()
}

/// One of `seeds` with some bytes changed, dropped, repeated or replaced by pieces of other seeds.
fn mutated(rng: &mut StdRng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut data = seeds[rng.random_range(0..seeds.len())].clone();
    for _ in 0..rng.random_range(0..6) {
        let at = rng.random_range(0..=data.len());
        let end = (at + rng.random_range(0..12)).min(data.len());
        match rng.random_range(0..4) {
            0 if at < data.len() => data[at] = rng.random(),
            1 => drop(data.drain(at..end)),
            2 => drop(data.splice(at..at, data[at..end].to_vec())),
            _ => {
                let other = &seeds[rng.random_range(0..seeds.len())];
                let from = rng.random_range(0..=other.len());
                let to = (from + rng.random_range(0..20)).min(other.len());
                data.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
    data
}

/// The kernels of all test files.
fn text_seeds() -> Vec<Vec<u8>> {
    fn collect(folder: &Path, seeds: &mut Vec<Vec<u8>>) {
        let entries = fs::read_dir(folder).expect("the folder of test files is there");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                collect(&path, seeds);
            } else {
                let text = fs::read_to_string(&path).expect("test files are text");
                let text = expanded(&text, "; === ").expect("cases are like others");
                let kernels = text.split("\nkernel ").skip(1);
                seeds.extend(
                    kernels
                        .filter_map(|k| k.split("\n}").next())
                        .map(|k| format!("kernel {k}\n}}\n").into_bytes()),
                );
            }
        }
    }
    let mut seeds = Vec::new();
    collect(&root().join("tests/files"), &mut seeds);
    seeds
}

#[test]
fn text_kernels_are_read_or_refused() {
    let mut rng = inputs_from(1);
    let seeds = text_seeds();
    run("text", (0..cases(2000)).map(|_| mutated(&mut rng, &seeds)));
}

const SCHEDULE: &str = "schedule s {
  k_loop = get_node_by_tag \"k loop\"
  mma = get_node_by_tag_and_type \"mma\" mma
  late = get_node_by_tag_and_iteration \"mma\" 1
  a, b = partition_by_address_space late global
  c, d = partition_by_dim mma K 2
  p = pipeline k_loop {
    eliminate_epilogue
    multi_buffer_count 3
    set_stage (a, b) () (c)
    set_stage () (d) ()
  }
  e = filter_nodes c stage p.kernel type mma
  f = getitem e 0
  g = cluster [set_wave_priority 1, e, barrier, f, wait_for_loads 6]
  h = interleave_ops (c, d) [a interval 4 start_offset 2, (b, f) start_after_groups [0]]
  reorder_graph p.kernel [g, h]
  insert_before c conditional_barrier ge waves / 2
  insert_at_start p.prologue scheduling_barrier
  insert_cond_barrier_after lt 4 c
  stagger p.kernel
  unroll p.kernel 2
  tag_nodes \"others\" [\"loop.0\", \"loop.0.mma.7\"]
  load_to_lds
}
";

#[test]
fn text_schedules_are_read_or_refused() {
    let check = check("text");
    assert_eq!(check(SCHEDULE.as_bytes()), Ok(()));
    groundswell::schedule::WaveSchedule::parse(SCHEDULE, "s").expect("the schedule is right");
    let mut rng = inputs_from(9);
    // One line of it in mutation, too: in a text that has other faults nothing is recorded.
    let mut seeds = vec![SCHEDULE.as_bytes().to_vec(), format!("kernel k {{\n}}\n{SCHEDULE}").into_bytes()];
    let head: String = SCHEDULE.split_inclusive('\n').take(13).collect();
    seeds.extend(SCHEDULE.lines().skip(13).map(|line| format!("{head}{line}\n}}\n").into_bytes()));
    run("text", (0..cases(2000)).map(|_| mutated(&mut rng, &seeds)));
}

#[test]
fn any_words_decode_or_not() {
    let mut rng = inputs_from(2);
    // Words of known encodings are rare among all words: take the upper bits of one now and then.
    let families: [u32; 14] = [
        0x8000_0000,
        0xb000_0000,
        0xbe80_0000,
        0xbf00_0000,
        0xbf80_0000,
        0xc000_0000,
        0xd000_0000,
        0xd380_0000,
        0xd3d0_0000,
        0xd800_0000,
        0xdc00_0000,
        0xe000_0000,
        0x7e00_0000,
        0x7c00_0000,
    ];
    let inputs = (0..cases(2000)).map(|_| {
        (0..64)
            .flat_map(|_| {
                let family = families[rng.random_range(0..families.len())];
                let word: u32 = rng.random();
                let word = if rng.random() { family | word & 0x03ff_ffff } else { word };
                word.to_le_bytes()
            })
            .collect()
    });
    run("decoder", inputs.collect::<Vec<_>>().into_iter());
}

/// Words of the encodings that compute kernels use, for the simulator.
#[test]
fn any_code_is_simulated_or_stopped() {
    let mut rng = inputs_from(8);
    let families: [(u32, u32); 12] = [
        (0x8000_0000, 0x3fff_ffff),
        (0xbe80_0000, 0x007f_ffff),
        (0xbf80_0000, 0x001f_0007),
        (0xc000_0000, 0x03ff_ffff),
        (0xd100_0000, 0x00ff_00ff),
        (0xd380_0000, 0x007f_ffff),
        (0xd3d0_0000, 0x003f_ffff),
        (0xd800_0000, 0x01ff_0fff),
        (0xdc00_0000, 0x03ff_ffff),
        (0xe000_0000, 0x03ff_ffff),
        (0x7e00_0000, 0x01ff_ffff),
        (0x0000_0000, 0x7fff_ffff),
    ];
    let inputs = (0..cases(600)).map(|_| {
        let mut bytes = vec![rng.random(), rng.random()];
        for _ in 0..rng.random_range(4..80) {
            let (family, mask) = families[rng.random_range(0..families.len())];
            // Second words with small register numbers, so that many are legal.
            let words = [family | rng.random::<u32>() & mask, rng.random::<u32>() & 0x1f1f_1f1f];
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        bytes
    });
    run("simulator", inputs.collect::<Vec<_>>().into_iter());
}

const COPY: &str = "kernel copy {
  workgroup M, 64, 0
  a = memory [M] global f32
  b = memory [M] global f32
  %x = read a
  write %x, b
}
";

#[test]
fn any_bytes_are_an_object_or_not() {
    let mut rng = inputs_from(3);
    let kernel = Kernel::parse(COPY, "copy").expect("the kernel is right");
    let options = Options::new(Target::GFX942).dynamic(Symbol::new("M"));
    let object = kernel.compile(&options).expect("the kernel compiles").object().to_vec();
    // A file of the host that has it inside twice, once compressed.
    let entry = BundleEntry { target: Target::GFX942.into(), bytes: &object };
    let bundle = write_bundle(&[entry]);
    let mut host = compress_bundle(&bundle).expect("it is small");
    host.resize(host.len().next_multiple_of(4096), 0);
    host.extend(bundle);
    let forms = [object, host];
    let inputs: Vec<Vec<u8>> = (0..cases(2000))
        .map(|_| {
            let mut data = forms[usize::from(rng.random_range(0..4) == 0)].clone();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..data.len());
                data[at] = if rng.random() { rng.random() } else { data[at] ^ (1 << rng.random_range(0..8)) };
            }
            if rng.random_range(0..4) == 0 {
                data.truncate(rng.random_range(0..data.len()));
            }
            data
        })
        .collect();
    run("object", inputs.into_iter());
}

#[test]
fn machine_text_is_read_or_refused() {
    let mut rng = inputs_from(4);
    let seeds: Vec<Vec<u8>> = [
        "bb0:\n  v_mov_b32 %0:v1, 0\n  ds_read_b128 %1:v4, %0 offset:16\n  v_mfma_f32_16x16x16_f16 %2:v4, %1[0:1], %1[2:3], %2\n  s_cbranch_scc1 bb0\n",
        "bb0:\n  s_load_dwordx2 s[4:5], s[0:1], 0x10\n  s_waitcnt lgkmcnt(0)\nbb1:\n  s_add_u32 %0:s1, s4, 0x1234\n  s_cbranch_scc0 bb1\nbb2:\n  s_endpgm\n",
        "bb0:\n  buffer_load_dwordx4 %0:v4, %1:v1, s[4:7], s8 offen offset:32\n  v_cndmask_b32 %2:v1, %1, v3, vcc\n  s_barrier nowait\n  buffer_store_dword %2, %1, s[4:7], 0 offen sc0 nt\n  s_endpgm\n",
        "bb0:\n  v_cmpx_eq_u32 vcc, v0, v1\n  v_add_u32_dpp v1, v0, v2 row_shr:1 row_mask:0xf bank_mask:0xf\n  s_mov_b32 vcc_lo, s0\n  s_cbranch_vccz bb0\nbb1:\n  v_mov_b32 v4, v1\n  v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]\n  v_accvgpr_read_b32 v8, a1\n  s_endpgm\n",
        "bb0:\n  ds_read_b32 v1, v0\n  flat_load_dword v2, v[4:5]\n  global_load_dword v3, v0, s[0:1]\n  s_load_dword s4, s[0:1], 0x0\nbb1:\n  v_add_f32 v6, v1, v2\n  ds_write_b32 v0, v3 gds\n  v_mov_b32 v3, s4\n  s_barrier\n  s_cbranch_scc1 bb1\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    run("machine", (0..cases(2000)).map(|_| mutated(&mut rng, &seeds)));
}

#[test]
fn assembler_text_is_assembled_or_refused() {
    let mut rng = inputs_from(6);
    let spellings = include_str!("../asm/spellings.s");
    let mut lines: Vec<Vec<u8>> =
        spellings.lines().map(|line| format!("\x03{line}\n").into_bytes()).collect();
    lines.extend(include_str!("../asm/bad_more.s").lines().map(|line| format!("\x02{line}\n").into_bytes()));
    run("assembler", (0..cases(4000)).map(|_| mutated(&mut rng, &lines)));
    let file = b"\x03.globl k\n.p2align 8\n.type k,@function\nk:\n1: s_branch 1b\n.L1: s_cbranch_scc0 .L1\n s_getpc_b64 s[2:3]\n \
        s_add_u32 s2, s2, t@rel32@lo+4\n s_addc_u32 s3, s3, t@rel32@hi+12\n s_endpgm\n.size k, . - k\n.rodata\n.p2align 6\n\
        .amdhsa_kernel k\n.amdhsa_next_free_vgpr .amdgcn.next_free_vgpr\n.amdhsa_next_free_sgpr 8\n.amdhsa_accum_offset 4\n\
        .end_amdhsa_kernel\nt: .long 1, 2, t2 - t\n.ascii \"a\\n\"\n.fill 3, 2, 7\nt2:\n.set x, t2 - t\n.section .d,\"MS\",@progbits,1\n\
        .asciz \"b\"\n.amdgpu_metadata\n---\namdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n    \
        .kernarg_segment_size: 0\n    .kernarg_segment_align: 4\n    .group_segment_fixed_size: 0\n    \
        .private_segment_fixed_size: 0\n    .wavefront_size: 64\n    .sgpr_count: 8\n    .vgpr_count: 1\n    \
        .max_flat_workgroup_size: 64\namdhsa.version: [1, 2]\n...\n.end_amdgpu_metadata\n";
    let check = check("assembler");
    assert_eq!(check(file), Ok(()), "the file itself is right");
    let files = [file.to_vec()];
    run("assembler", (0..cases(1000)).map(|_| mutated(&mut rng, &files)));
}

#[test]
fn random_kernels_give_what_the_interpreter_gives() {
    let mut rng = inputs_from(5);
    let count = cases(200);
    let inputs = (0..count).map(|_| random_bytes(&mut rng, 60));
    let ran = run_counting("kernel", checks::kernel_outcome, &Outcome::Ran, inputs);
    assert!(ran * 2 >= count, "only {ran} of {count} kernels could be compiled");
}

#[test]
fn memories_of_all_shapes_are_right_or_refused() {
    let mut rng = inputs_from(12);
    let count = cases(100);
    let inputs = (0..count).map(|_| random_bytes(&mut rng, 60));
    let ran = run_counting("memories", checks::memories_outcome, &Outcome::Ran, inputs);
    assert!(ran * 4 >= count, "only {ran} of {count} kernels could be compiled");
}

#[test]
fn kernels_of_the_whole_language_are_right_or_refused() {
    let mut rng = inputs_from(13);
    let count = cases(1000);
    let inputs = (0..count).map(|_| random_bytes(&mut rng, 300));
    let ran = run_counting("language", checks::language_outcome, &Outcome::Ran, inputs);
    assert!(ran * 2 >= count, "only {ran} of {count} kernels could be compiled");
}

#[test]
fn the_edges_of_number_formats_are_as_the_interpreter_says() {
    let mut rng = inputs_from(11);
    run("numerics", (0..cases(400)).map(|_| random_bytes(&mut rng, 40)));
}

#[test]
fn random_loops_give_what_the_interpreter_gives() {
    let mut rng = inputs_from(11);
    let count = cases(300);
    let inputs = (0..count).map(|_| random_bytes(&mut rng, 200));
    let ran = run_counting("loops", checks::loops_outcome, &Outcome::Ran, inputs);
    assert!(ran * 4 >= count * 3, "only {ran} of {count} kernels could be compiled");
}

#[test]
fn chained_products_give_what_the_interpreter_gives() {
    let mut rng = inputs_from(14);
    // Check mode takes up to a second for each.
    let count = cases(100) / 2;
    let inputs = (0..count).map(|_| random_bytes(&mut rng, 160));
    let ran = run_counting("chains", checks::chains_outcome, &Outcome::Ran, inputs);
    assert!(ran * 2 >= count, "only {ran} of {count} kernels could be compiled");
}

#[test]
fn products_of_computed_factors_are_what_plain_loops_give() {
    let mut rng = inputs_from(12);
    let count = cases(300);
    let inputs = (0..count).map(|_| random_bytes(&mut rng, 60));
    let ran = run_counting("factors", checks::factors_outcome, &Outcome::Ran, inputs);
    assert!(ran * 4 >= count * 3, "only {ran} of {count} kernels could be compiled");
}

#[test]
fn schedules_are_applied_or_refused() {
    let mut rng = inputs_from(10);
    let count = cases(100);
    let inputs = (0..count).map(|_| random_bytes(&mut rng, 80));
    let applied = run_counting("schedules", checks::schedule_verdict, &Verdict::Applied, inputs);
    assert!(applied * 4 >= count, "only {applied} of {count} schedules could be applied");
}
