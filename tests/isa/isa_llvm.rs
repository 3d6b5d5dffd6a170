//! The instruction table against LLVM: instructions generated from the rows of every chip are encoded,
//! decoded and printed by us, assembled by llvm-mc and printed by llvm-objdump, and all have to agree. For
//! gfx950, which LLVM 19 does not know, the clang of the Zig toolchain assembles.
//!
//! Where LLVM takes a liberty that we do not, the corpus avoids the case. The whole list:
//!
//! - inline floats in 16-bit integer sources print as their bits, which llvm-mc then reads as a literal
//!   ([`is_readable`]);
//! - scope bits of `buffer_wbl2` on gfx90a, which LLVM's compiler sets and its assembler cannot say
//!   ([`is_readable`]);
//! - bits of simm16 without meaning in `s_waitcnt`, and named geometry and system messages (the corpus has
//!   neither);
//! - `ds_swizzle_b32` masks that are not the first of those that do the same (likewise);
//! - a 64-bit encoded `v_nop`, which prints as the 32-bit one (the table has the latter only);
//! - gathers of 16 bits into the last registers, and the status of an image atomic, which LLVM's disassembler
//!   does not read as its assembler writes them ([`is_beyond_its_reader`]; `tests/asm` has such atomics);
//! - the newer LLVM in the Zig toolchain has ways of its own ([`is_avoided_by_newer`]): no `v_readlane_b32`
//!   to M0, no returning float atomics on AGPRs (refused, or with a scope bit missing).
#![expect(clippy::disallowed_types, reason = "counted, never iterated")]

use std::collections::{BTreeMap, HashSet};

use groundswell::isa::{
    Arch, DecodeError, Inst, Meaning, Operand, OperandClass, decode, encode, parse_inst, size_in_bytes,
};
use groundswell_testing::corpus::corpus;
use groundswell_testing::instructions::{complain, encoded, is_readable, text};
use groundswell_testing::oracle::Workspace;
use groundswell_testing::random_words::{assembled, disassembled, random_words};

/// Data of images that LLVM's disassembler does not read as its assembler writes them: two registers that it
/// first takes for the four that a gather has otherwise, and the status of an atomic, which it does not
/// count.
fn is_beyond_its_reader(inst: &Inst) -> bool {
    let is_last = (253..256).any(|first| inst.operands[0] == Operand::vgpr(first));
    match inst.op.info().meaning {
        Meaning::ImageGather => inst.modifiers.has_d16() && is_last,
        Meaning::ImageAtomic(..) => inst.modifiers.has_tfe(),
        _ => false,
    }
}

/// What the newer LLVM does its own way.
fn is_avoided_by_newer(inst: &Inst) -> bool {
    let result = inst.operands[0];
    match inst.op.info().meaning {
        Meaning::ReadFirstLane | Meaning::ReadLane => result == Operand::M0,
        Meaning::AtomicReturn(_, element) => element.is_float() && result.as_agpr().is_some(),
        _ => false,
    }
}

fn instructions(arch: Arch) -> Vec<Inst> {
    let newer = arch == Arch::Gfx950;
    corpus(arch, |inst| {
        is_readable(inst, arch) && !is_beyond_its_reader(inst) && !(newer && is_avoided_by_newer(inst))
    })
}

/// Bytes and text of the listing of an object, one entry per instruction.
fn listing(workspace: &Workspace, arch: Arch) -> Vec<(String, Vec<u32>)> {
    let listing = workspace.run(&format!("llvm-objdump-19 -d --mcpu={arch} corpus.o"));
    let mut found = Vec::new();
    for line in listing.lines() {
        let Some((text, bytes)) = line.split_once("//") else { continue };
        let Some((_, bytes)) = bytes.split_once(':') else { continue };
        let words = bytes.split_whitespace().map_while(|word| u32::from_str_radix(word, 16).ok()).collect();
        found.push((text.split_whitespace().collect::<Vec<_>>().join(" "), words));
    }
    found
}

fn llvm_agrees(arch: Arch) {
    let Some(workspace) = Workspace::with_tools(&["llvm-mc-19", "llvm-objdump-19"]) else { return };
    let corpus = instructions(arch);
    workspace.write("corpus.s", corpus.iter().map(|inst| text(inst, arch) + "\n").collect::<String>());
    workspace.run(&format!(
        "llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu={arch} -filetype=obj corpus.s -o corpus.o"
    ));
    let listing = listing(&workspace, arch);
    assert_eq!(listing.len(), corpus.len());
    let mut wrong = Vec::new();
    for (inst, (theirs, words)) in corpus.iter().zip(&listing) {
        let (ours, code) = (text(inst, arch), encoded(inst, arch));
        if code != *words {
            wrong.push(format!("{ours}: ours {code:08x?}, LLVM {words:08x?}"));
        } else if ours != *theirs {
            wrong.push(format!("ours {ours} | LLVM {theirs}"));
        }
    }
    complain(&format!("LLVM on {arch}, {} instructions", corpus.len()), &wrong);
}

#[test]
fn llvm_assembles_our_text_to_our_bytes_and_prints_our_text_on_gfx906() {
    llvm_agrees(Arch::Gfx906);
}

#[test]
fn llvm_assembles_our_text_to_our_bytes_and_prints_our_text_on_gfx908() {
    llvm_agrees(Arch::Gfx908);
}

#[test]
fn llvm_assembles_our_text_to_our_bytes_and_prints_our_text_on_gfx90a() {
    llvm_agrees(Arch::Gfx90a);
}

#[test]
fn llvm_assembles_our_text_to_our_bytes_and_prints_our_text_on_gfx942() {
    llvm_agrees(Arch::Gfx942);
}

const ZIG: &str = "python3 -m ziglang clang -cc1as -triple amdgcn-amd-amdhsa -target-cpu gfx950 -filetype obj corpus.s \
                   -o corpus.o";

#[test]
fn clang_assembles_our_text_to_our_bytes_on_gfx950() {
    let Some(workspace) = Workspace::with_zig() else { return };
    let arch = Arch::Gfx950;
    let corpus = instructions(arch);
    workspace.write("corpus.s", corpus.iter().map(|inst| text(inst, arch) + "\n").collect::<String>());
    workspace.run(ZIG);
    let object = workspace.read("corpus.o");
    let theirs: Vec<u32> = groundswell_testing::oracle::text_section(&object)
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let (mut at, mut wrong) = (0, Vec::new());
    for inst in &corpus {
        let ours = encoded(inst, arch);
        let words = theirs.get(at..at + ours.len()).unwrap_or_default();
        at += ours.len();
        if words != ours {
            wrong.push(format!("{}: ours {ours:08x?}, clang {words:08x?}", text(inst, arch)));
        }
    }
    complain("clang on gfx950", &wrong);
    assert_eq!(at, theirs.len());
}

/// What the issue of a complete table asks for.
#[test]
fn the_corpus_of_each_chip_is_large() {
    for (arch, least) in [(Arch::Gfx90a, 20_000), (Arch::Gfx942, 20_000), (Arch::Gfx950, 20_000)] {
        let distinct: HashSet<Inst> = instructions(arch).into_iter().collect();
        assert!(distinct.len() >= least, "{arch}: {} instructions", distinct.len());
    }
}

#[test]
fn decoding_gives_back_what_was_encoded() {
    for arch in Arch::ALL {
        let mut wrong = Vec::new();
        for inst in corpus(arch, |_| true) {
            let words = encoded(&inst, arch);
            assert_eq!(4 * words.len() as u32, size_in_bytes(&inst), "{inst}");
            let decoded = decode(&words, arch);
            if decoded != Ok((normal(&inst), words.len())) {
                wrong.push(format!("{inst}: {:?}\n  {decoded:?}", normal(&inst)));
            }
        }
        complain(&format!("decode on {arch}"), &wrong);
    }
}

/// Of the records that encode alike the one that the decoder gives: e64 is set only where the short form
/// would do.
fn normal(inst: &Inst) -> Inst {
    let without = inst.modifiers(inst.modifiers.without_e64());
    if size_in_bytes(&without) == 8 && !without.operands.contains(&Operand::LITERAL) {
        without
    } else {
        *inst
    }
}

/// What LLVM takes and we refuse, or take to be something else.
fn is_left_out(text: &str, arch: Arch) -> bool {
    // The sign of an integer, which LLVM prints as its extension and reads back from there.
    let has_integer_sign =
        text.contains("sext(") && !text.contains("_sdwa") || text.starts_with("v_ldexp_f16_dpp");
    // LLVM 19 only; newer ones refuse them here.
    let not_here =
        arch == Arch::Gfx942 && (text.starts_with("buffer_wbinvl1") || text.contains("_lds_dword"));
    // A float, of which LLVM takes the low half of 64 bits, and a result where nothing can be written.
    let is_float = text.ends_with(".0") || text.ends_with(".5") || text.ends_with(".15915494");
    let is_odd = text.starts_with("s_setreg_imm32_b32") && is_float
        || text
            .split_once(' ')
            .is_some_and(|(name, rest)| name.starts_with("v_") && rest.starts_with("src_"));
    not_here || has_integer_sign || is_odd
}

/// Random words are read by LLVM, its texts assembled by it and by us, and what it assembled read by both.
/// `GROUNDSWELL_FUZZ_CASES` asks for more words than usual.
fn agrees_on_random_words(workspace: &Workspace, arch: Arch) {
    const USUAL: usize = 8_000;
    let asked = std::env::var("GROUNDSWELL_FUZZ_CASES").ok();
    let count = asked.map_or(USUAL, |text| USUAL.max(text.parse().expect("a number")));
    // LLVM 19 does not know gfx950: texts of an older chip are given to both assemblers.
    let reader = if arch == Arch::Gfx950 { Arch::Gfx942 } else { arch };
    let mut texts: Vec<String> = Vec::new();
    for words in random_words(count as u64, count).chunks(4000) {
        let found = disassembled(workspace, reader, words).into_iter().flatten();
        texts.extend(found.filter(|text| !text.contains("/*")));
    }
    texts.sort();
    texts.dedup();
    let (mut canonical, mut wrong) = (BTreeMap::new(), Vec::new());
    for (text, theirs) in texts.iter().zip(assembled(workspace, arch, &texts)) {
        let Some(theirs) = theirs.filter(|_| !is_left_out(text, arch)) else { continue };
        match parse_inst(text, arch) {
            Ok(parsed) if encoded(&parsed.inst, arch) == theirs => {}
            Ok(parsed) => {
                wrong.push(format!("{text}: ours {:08x?}, LLVM {theirs:08x?}", encoded(&parsed.inst, arch)));
            }
            Err(error) => wrong.push(format!("{text}: {error}")),
        }
        canonical.insert(theirs, text);
    }
    let padded = |words: &Vec<u32>| std::array::from_fn(|at| words.get(at).copied().unwrap_or(0xbf80_0000));
    let words: Vec<_> = canonical.keys().map(padded).collect();
    let read = words.chunks(4000).flat_map(|words| disassembled(workspace, reader, words));
    for (words, theirs) in canonical.keys().zip(read) {
        let Some(theirs) = theirs.filter(|text| !text.contains("/*")) else { continue };
        match decode(words, arch) {
            Ok((inst, length)) if length == words.len() => {
                let ours = text(&inst, arch);
                if ours != theirs {
                    wrong.push(format!("{words:08x?}: ours {ours} | LLVM {theirs}"));
                }
            }
            other => wrong.push(format!("{words:08x?}: {other:?} | LLVM {theirs}")),
        }
    }
    println!("{arch}: {} texts, {} encodings", texts.len(), canonical.len());
    complain(&format!("random words on {arch}"), &wrong);
    assert!(canonical.len() > count / 10, "{arch}: only {} encodings", canonical.len());
}

#[test]
fn random_words_are_read_and_written_as_by_llvm() {
    let Some(workspace) = Workspace::with_tools(&["llvm-mc-19"]) else { return };
    for arch in [Arch::Gfx906, Arch::Gfx908, Arch::Gfx90a, Arch::Gfx942] {
        agrees_on_random_words(&workspace, arch);
    }
}

#[test]
fn texts_of_random_words_are_written_as_by_clang_on_gfx950() {
    if Workspace::with_tools(&["llvm-mc-19"]).is_none() {
        return;
    }
    let Some(workspace) = Workspace::with_zig() else { return };
    agrees_on_random_words(&workspace, Arch::Gfx950);
}

/// An instruction of one chip is none, or another one, on a chip that has not got it.
#[test]
fn chips_know_only_their_own_instructions() {
    for arch in Arch::ALL {
        for inst in corpus(arch, |_| true) {
            for other in Arch::ALL.into_iter().filter(|&other| !inst.op.on(other)) {
                assert!(encode(&inst, other, &mut Vec::new()).is_err(), "{inst} on {other}");
                match decode(&encoded(&inst, arch), other) {
                    Ok((found, _)) => assert!(found.op.on(other) && found.op != inst.op, "{inst} on {other}"),
                    Err(error) => assert_ne!(error, DecodeError::Truncated, "{inst} on {other}"),
                }
            }
        }
    }
}

/// Numbers as an author writes them: the bits of 1 and of 1/(2 pi) in every format, alone and in pairs, the
/// ends of what is inline, and neighbours of these.
const NUMBERS: [&str; 26] = [
    "0x3c00",
    "0x3118",
    "0x3f80",
    "0x3e22",
    "0x3e23",
    "0x3f800000",
    "0x3e22f983",
    "0x3ff00000",
    "0x3ff0000000000000",
    "0x3fc45f306dc9c882",
    "0x3c003c00",
    "0x3f803f80",
    "0xb800",
    "0xbf000000",
    "0xbfe0000000000000",
    "64",
    "65",
    "-16",
    "-17",
    "0xfff0",
    "0xfffffff0",
    "0xfffffffffffffff0",
    "1.0",
    "0.5",
    "-4.0",
    "0.15915494",
];

/// A constant that nothing else in a text looks like.
const PLACE: &str = "57";

/// Those that newer LLVMs extend to 32 bits in a literal of 16, or refuse as a literal of a double.
const AVOIDED_BY_NEWER: [&str; 2] = ["-17", "0.15915494"];

/// Instructions in which a source is the constant [`PLACE`], up to three for each row and source, each with
/// every one of [`NUMBERS`], which is to stand there instead.
fn texts_with_numbers(arch: Arch) -> Vec<(String, &'static str)> {
    let place = PLACE.parse().ok().and_then(Operand::inline_integer).expect("it is inline");
    let mut seen: BTreeMap<(String, usize), usize> = BTreeMap::new();
    let mut texts = Vec::new();
    let newer = arch == Arch::Gfx950;
    for inst in instructions(arch) {
        for at in 0..inst.operands.len() {
            let mut operands = inst.operands;
            // Constants as masks of lanes are printed by LLVM's disassembler and refused by its assembler.
            let spec = inst.op.info().operands.get(at).filter(|spec| spec.class != OperandClass::MaskSource);
            if operands[at].is_none() || spec.is_none() {
                continue;
            }
            operands[at] = place;
            let changed = Inst { operands, ..inst };
            let mut code = Vec::new();
            if changed.operands.contains(&Operand::LITERAL) || encode(&changed, arch, &mut code).is_err() {
                continue;
            }
            let text = text(&changed, arch);
            let name = text.split(' ').next().unwrap_or_default().to_owned();
            let count = seen.entry((name, at)).or_default();
            if *count == 3 || text.match_indices(PLACE).count() != 1 || reads_numbers_its_own_way(&text) {
                continue;
            }
            *count += 1;
            let numbers = NUMBERS.iter().filter(|number| !(newer && AVOIDED_BY_NEWER.contains(number)));
            texts.extend(numbers.map(|number| (text.clone(), *number)));
        }
    }
    texts
}

/// Where LLVM's assembler has rules of its own for numbers: signs before the high half of a double, sources
/// of SDWA, and literals that an instruction cannot have.
fn reads_numbers_its_own_way(text: &str) -> bool {
    ["neg(57)", "|57|", "sext(57)", "_sdwa", "s_set_gpr_idx_on"].iter().any(|own| text.contains(own))
}

/// Which numbers are inline says what data an assembler takes an operand to be, and so what the inline
/// constants stand for.
fn numbers_are_inline_where_llvm_has_them(workspace: &Workspace, arch: Arch) {
    let cases = texts_with_numbers(arch);
    let texts: Vec<String> = cases.iter().map(|(text, number)| text.replace(PLACE, number)).collect();
    let ours = |text: &str| parse_inst(text, arch).map(|parsed| encoded(&parsed.inst, arch));
    let mut wrong = Vec::new();
    let mut taken = 0;
    for ((text, number), theirs) in cases.iter().zip(assembled(workspace, arch, &texts)) {
        let mut own = ours(&text.replace(PLACE, number));
        taken += usize::from(own.is_ok());
        // LLVM drops bits of numbers that are too wide, which we refuse.
        let too_wide = own.as_ref().is_err_and(|error| error.to_string().contains("does not fit an operand"));
        if too_wide && theirs.is_some() {
            let digits = number.strip_prefix("0x").unwrap_or_else(|| panic!("{number} in {text}"));
            let bits = u64::from_str_radix(digits, 16).expect("a number");
            let narrowed =
                [0xffff, 0xffff_ffff].map(|mask| ours(&text.replace(PLACE, &(bits & mask).to_string())));
            let same = narrowed.into_iter().find(|narrowed| narrowed.as_ref().ok() == theirs.as_ref());
            own = same.unwrap_or(own);
        }
        if own.as_ref().ok() != theirs.as_ref() {
            wrong.push(format!("{text} with {number}: ours {own:08x?}, LLVM {theirs:08x?}"));
        }
    }
    println!("{arch}: {} texts, {taken} taken", texts.len());
    complain(&format!("numbers on {arch}"), &wrong);
    assert!(taken > 10_000, "{arch}: only {taken} texts are taken");
}

#[test]
fn numbers_are_inline_where_llvm_and_clang_have_them() {
    let Some(workspace) = Workspace::with_tools(&["llvm-mc-19"]) else { return };
    for arch in [Arch::Gfx906, Arch::Gfx908, Arch::Gfx90a, Arch::Gfx942] {
        numbers_are_inline_where_llvm_has_them(&workspace, arch);
    }
    let Some(workspace) = Workspace::with_zig() else { return };
    numbers_are_inline_where_llvm_has_them(&workspace, Arch::Gfx950);
}
