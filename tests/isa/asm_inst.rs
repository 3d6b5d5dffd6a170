//! The parser of instructions: what our printer writes reads back as the same instruction for every row of
//! every chip, and other spellings that LLVM's assembler takes give the same bytes.

use groundswell::isa::{Arch, decode, parse_inst};
use groundswell_testing::corpus::corpus;
use groundswell_testing::instructions::{complain, encoded, is_readable, text};
use groundswell_testing::oracle::Workspace;

#[test]
fn what_is_printed_reads_back_as_the_same_instruction() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for arch in Arch::ALL {
        for inst in corpus(arch, |inst| is_readable(inst, arch)) {
            count += 1;
            let (words, printed) = (encoded(&inst, arch), text(&inst, arch));
            let (normal, _) = decode(&words, arch).expect("what was encoded decodes");
            match parse_inst(&printed, arch) {
                Ok(parsed) if parsed.reference.is_some() => {
                    wrong.push(format!("{arch} {printed}: a reference"))
                }
                Ok(parsed) if encoded(&parsed.inst, arch) != words => {
                    let again = encoded(&parsed.inst, arch);
                    wrong.push(format!("{arch} {printed}: {again:08x?} not {words:08x?}"));
                }
                Ok(parsed) if parsed.inst != normal => {
                    wrong.push(format!("{arch} {printed}: {:?} not {normal:?}", parsed.inst));
                }
                Ok(_) => {}
                Err(error) => wrong.push(format!("{arch} {printed}: {error}")),
            }
        }
    }
    complain(&format!("parser, {count} instructions"), &wrong);
}

/// Hand-written spellings and the chips that they are for.
const SPELLINGS: &str = include_str!("../asm/spellings.s");

fn spellings(arch: Arch) -> Vec<&'static str> {
    let mut on = false;
    let mut lines = Vec::new();
    for line in SPELLINGS.lines() {
        match line.strip_prefix("// on:") {
            Some(chips) => on = chips.split_whitespace().any(|chip| chip == arch.name()),
            None if on && !line.is_empty() && !line.starts_with("//") => lines.push(line),
            None => {}
        }
    }
    lines
}

/// Encodings in what an assembler prints, by instruction.
fn encodings(printed: &str) -> Vec<Vec<u8>> {
    let bytes = |list: &str| {
        list.split(',')
            .map(|byte| u8::from_str_radix(byte.trim().trim_start_matches("0x"), 16).unwrap())
            .collect()
    };
    let lists = printed.lines().filter_map(|line| line.split_once("encoding: [")?.1.split_once(']'));
    lists.map(|(list, _)| bytes(list)).collect()
}

fn spells_as_llvm(arch: Arch, printed: &str) {
    let (lines, theirs) = (spellings(arch), encodings(printed));
    assert_eq!(lines.len(), theirs.len());
    let mut wrong = Vec::new();
    for (line, theirs) in lines.iter().zip(&theirs) {
        match parse_inst(line, arch) {
            Ok(parsed) => {
                let ours: Vec<u8> =
                    encoded(&parsed.inst, arch).iter().flat_map(|word| word.to_le_bytes()).collect();
                if ours != *theirs {
                    wrong.push(format!("{line}: ours {ours:02x?}, LLVM {theirs:02x?}"));
                }
            }
            Err(error) => wrong.push(format!("{line}: {error}")),
        }
    }
    complain(&format!("spellings on {arch}"), &wrong);
}

#[test]
fn other_spellings_give_the_bytes_that_llvm_gives() {
    let Some(workspace) = Workspace::with_tools(&["llvm-mc-19"]) else { return };
    let mut lines = 0;
    for arch in [Arch::Gfx906, Arch::Gfx908, Arch::Gfx90a, Arch::Gfx942] {
        workspace.write("spellings.s", spellings(arch).join("\n") + "\n");
        let printed = workspace
            .run(&format!("llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu={arch} -show-encoding spellings.s"));
        spells_as_llvm(arch, &printed);
        lines += spellings(arch).len();
    }
    assert!(lines > 1500, "only {lines} lines");
}

#[test]
fn other_spellings_give_the_bytes_that_clang_gives_on_gfx950() {
    let Some(workspace) = Workspace::with_zig() else { return };
    workspace.write("spellings.s", spellings(Arch::Gfx950).join("\n") + "\n");
    workspace.run(
        "python3 -m ziglang clang -cc1as -triple amdgcn-amd-amdhsa -target-cpu gfx950 -filetype asm -show-encoding \
         spellings.s -o spellings.out",
    );
    let printed = workspace.read("spellings.out");
    spells_as_llvm(Arch::Gfx950, &String::from_utf8_lossy(&printed));
}
