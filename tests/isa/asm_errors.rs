//! Faults of bad assembler text: line, column and message. In the files of `tests/asm` each bad line
//! has its faults after it, as `//! COLUMN: MESSAGE`; `BLESS=1` writes them.

use groundswell_testing::places::root;

use groundswell::assembler::{AssemblerOptions, assemble};

fn faults(text: &str) -> Vec<(usize, usize, String)> {
    let faults = assemble(text, AssemblerOptions::default()).expect_err("the text is wrong").0;
    faults.into_iter().map(|fault| (fault.line, fault.column, fault.fault.to_string())).collect()
}

fn check(name: &str) -> usize {
    let path = root().join("tests/asm").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    // A quote that is not closed would reach into what is expected.
    let bare: String =
        text.lines().map(|line| line.split("//!").next().unwrap_or("").to_owned() + "\n").collect();
    let found = faults(&bare);
    let mut blessed = String::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (index, line) in text.lines().enumerate() {
        let (code, expected) = line.split_once("//!").unwrap_or((line, ""));
        let of_line = found.iter().filter(|(line, ..)| *line == index + 1);
        let said: Vec<String> = of_line.map(|(_, column, message)| format!("{column}: {message}")).collect();
        let said = said.join(" | ");
        count += usize::from(!said.is_empty());
        if said != expected.trim() {
            wrong.push(format!(
                "{}: {}\n  said:     {said}\n  expected: {}",
                index + 1,
                code.trim(),
                expected.trim()
            ));
        }
        let code = code.trim_end();
        blessed += &if said.is_empty() { format!("{code}\n") } else { format!("{code:60} //! {said}\n") };
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, blessed).unwrap();
        return count;
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    count
}

#[test]
fn every_bad_line_is_told_with_its_column() {
    let count = check("bad.s") + check("bad_more.s");
    assert!(count >= 100, "only {count} bad lines");
}

#[test]
fn what_is_missing_at_the_end_is_told() {
    let target = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n";
    for (text, expected) in [
        (
            "s_nop 0",
            "1:1: no target: neither `.amdgcn_target` before this nor the caller says which chip it is for",
        ),
        ("/* a", "1:1: the text ends inside a comment"),
        (".amdgpu_metadata\n---\n", "2:1: `.amdgpu_metadata` without `.end_amdgpu_metadata`"),
        ("TARGET.amdhsa_kernel k\n", "2:1: `.amdhsa_kernel` without `.end_amdhsa_kernel`"),
        ("TARGETs_branch nowhere\n", "2:10: `nowhere` is not defined"),
        ("TARGET.globl nowhere\n", "2:1: `nowhere` is not defined"),
        (
            "TARGETs_branch far\n.zero 0x30000\nfar:\n",
            "2:10: the distance of a branch in words goes from -32768 to 32767, 49152 is outside",
        ),
        ("TARGETs_branch odd\n.byte 1\nodd:\n", "2:10: branches go to multiples of four bytes"),
        ("TARGET.quad x\nx:\n", "2:7: an address here needs a relocation, which is not supported"),
        ("TARGET.set a, b\n.set b, a\n.long a\n", "4:7: `a` depends on itself or on too many others"),
        ("TARGET.byte x\n.set x, 256\n", "2:7: 256 does not fit an operand of 8 bits"),
        ("TARGETs_mov_b32 s0, x-4\nx:\n", "2:15: an address here needs a relocation, which is not supported"),
        ("TARGETs_mov_b32 s0, x@rel64\nx:\n", "2:15: a literal holds 32 bits"),
        ("TARGET.byte a-b\n.data\na:\n.text\nb:\n", "2:7: this is not a number that is known here"),
        (
            "TARGET.p2align 8\nk:\n.rodata\n.p2align 6\n.byte 1\nBLOCK",
            "18:1: `k.kd` does not lie at a multiple of 64 bytes",
        ),
        ("TARGET.long 1\nk:\n.rodata\n.p2align 6\nBLOCK", "3:1: `k` does not lie at a multiple of 256 bytes"),
        (".amdgpu_metadata\n---\n...\n.end_amdgpu_metadata\n", "2:1: the metadata is empty"),
        (".amdgpu_metadata\n- a\n.end_amdgpu_metadata\n", "2:1: metadata is a mapping"),
        (".amdgpu_metadata\na: b\n.end_amdgpu_metadata\n", "2:1: metadata has no list `amdhsa.version`"),
        (".amdgpu_metadata\na: \"b\n.end_amdgpu_metadata\n", "2:1: a quote is not closed"),
        (".amdgpu_metadata\na: 1\na: 2\n.end_amdgpu_metadata\n", "3:1: `a` is there twice"),
        (".amdgpu_metadata\na: &x 1\n.end_amdgpu_metadata\n", "2:1: this kind of YAML is not read"),
        (
            "TARGET.amdgpu_metadata\namdhsa.kernels: []\namdhsa.target: amdgcn-amd-amdhsa--gfx90a\namdhsa.version:\n- 1\n- 2\n.end_amdgpu_metadata\n",
            "4:1: metadata is for amdgcn-amd-amdhsa--gfx90a, the text for amdgcn-amd-amdhsa--gfx942",
        ),
    ] {
        const BLOCK: &str = ".amdhsa_kernel k\n\n\n\n\n\n.amdhsa_next_free_vgpr 4\n.amdhsa_next_free_sgpr 4\n.amdhsa_accum_offset 4\n\n\n.end_amdhsa_kernel\n";
        let text = text.replace("TARGET", target).replace("BLOCK", BLOCK);
        let said: Vec<String> = faults(&text)
            .into_iter()
            .map(|(line, column, message)| format!("{line}:{column}: {message}"))
            .collect();
        assert_eq!(said.join(" | "), expected, "{text}");
    }
}

/// Symbols that are deep expressions of each other, in a thread with little stack.
#[test]
fn deep_expressions_do_not_exhaust_the_stack() {
    let mut text = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n".to_owned();
    for index in 1..=19 {
        text += &format!(".set a{index}, {}a{}\n", "-".repeat(63), index - 1);
    }
    text += &format!(".long a19\n.set a0, 1\n.long {}1\n", "(".repeat(490));
    let assembled = std::thread::Builder::new().stack_size(512 << 10).spawn(move || faults(&text));
    let said = assembled.expect("a thread starts").join().expect("it ends by itself");
    assert_eq!(said, [(23, 71, "this is too long or nested too deeply".to_owned())]);
}

#[test]
fn kernels_that_cannot_be_are_told() {
    let block = |lines: &str| {
        format!(
            ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.p2align 8\nk:\n.rodata\n.p2align 6\n.amdhsa_kernel k\n{lines}\n.end_amdhsa_kernel\n"
        )
    };
    for (lines, expected) in [
        ("", "`.amdhsa_next_free_vgpr` is missing"),
        (".amdhsa_next_free_vgpr 4", "`.amdhsa_next_free_sgpr` is missing"),
        (".amdhsa_next_free_vgpr 4\n.amdhsa_next_free_sgpr 4", "`.amdhsa_accum_offset` is missing"),
        ("BASE\n.amdhsa_accum_offset 6", "`.amdhsa_accum_offset` is a multiple of 4, from 4 on"),
        ("BASE\n.amdhsa_accum_offset 8", "`.amdhsa_accum_offset` is more than `.amdhsa_next_free_vgpr`"),
        (
            "BASE\n.amdhsa_accum_offset 4\n.amdhsa_user_sgpr_count 1\n.amdhsa_user_sgpr_dispatch_ptr 1",
            "`.amdhsa_user_sgpr_count` is 1, but 2 are asked for",
        ),
        (
            "BASE\n.amdhsa_accum_offset 4\n.amdhsa_user_sgpr_kernarg_preload_length 17",
            "17 user SGPRs are asked for, there are 16",
        ),
        (
            "BASE\n.amdhsa_accum_offset 4\n.amdhsa_kernarg_size 4\n.amdhsa_user_sgpr_kernarg_preload_length 2",
            "more of the kernel arguments is preloaded than `.amdhsa_kernarg_size`",
        ),
    ] {
        let text = block(&lines.replace("BASE", ".amdhsa_next_free_vgpr 4\n.amdhsa_next_free_sgpr 4"));
        let messages: Vec<String> = faults(&text).into_iter().map(|(.., message)| message).collect();
        assert_eq!(messages, [expected], "{text}");
    }
}
