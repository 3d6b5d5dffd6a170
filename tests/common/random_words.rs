//! Random instruction words of every encoding, and what LLVM's tools make of them.

use std::collections::BTreeSet;

use crate::oracle::Workspace;
use groundswell::isa::Arch;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Words of one instruction and of what may follow it.
pub type Words = [u32; 4];

/// An encoding: the bits that it begins with and how many they are, where its opcode is, how many opcodes
/// have a place there.
struct Family {
    fixed: u32,
    leading: u32,
    opcode: u32,
    opcodes: u32,
}

const fn family(fixed: u32, leading: u32, opcode: u32, opcodes: u32) -> Family {
    Family { fixed, leading, opcode, opcodes }
}

/// CDNA3 ISA guide, "Microcode formats"; Vega ISA guide for MIMG, EXP and VINTRP.
const FAMILIES: [Family; 18] = [
    family(0xbe80_0000, 9, 8, 1 << 8),
    family(0x8000_0000, 2, 23, 0x60),
    family(0xbf00_0000, 9, 16, 1 << 7),
    family(0xb000_0000, 4, 23, 0x1d),
    family(0xbf80_0000, 9, 16, 1 << 7),
    family(0xc000_0000, 6, 18, 1 << 8),
    family(0x7e00_0000, 7, 9, 1 << 8),
    family(0x0000_0000, 1, 25, 0x3e),
    family(0x7c00_0000, 7, 17, 1 << 8),
    family(0xd000_0000, 6, 16, 1 << 10),
    family(0xd380_0000, 9, 16, 1 << 7),
    family(0xd800_0000, 6, 17, 1 << 8),
    family(0xe000_0000, 6, 18, 1 << 7),
    family(0xe800_0000, 6, 15, 1 << 4),
    family(0xdc00_0000, 6, 18, 1 << 7),
    family(0xf000_0000, 6, 18, 1 << 7),
    family(0xc400_0000, 6, 26, 1),
    family(0xd400_0000, 6, 16, 1 << 2),
];

impl Family {
    /// An instruction of an opcode: few bits set as often as many, sources that are registers or constants
    /// as often as any number, and the markers of literals, DPP and SDWA.
    fn words(&self, opcode: u32, rng: &mut StdRng) -> Words {
        let mut bits = || {
            let all: u32 = rng.random();
            match rng.random_range(0..4) {
                0 => all & rng.random::<u32>() & rng.random::<u32>(),
                1 => all & rng.random::<u32>(),
                _ => all,
            }
        };
        let [first, mut second] = [bits(), bits()];
        let width = 32 - (self.opcodes - 1).leading_zeros();
        let own = ((1 << width) - 1) << self.opcode | !(u32::MAX >> self.leading);
        let mut first = first & !own | self.fixed | opcode << self.opcode;
        if self.leading == 7 || self.leading == 1 {
            let marker = [0xf9, 0xfa, 0xff].choose(rng).copied().unwrap_or(0);
            first = if rng.random_bool(0.3) { first & !0x1ff | marker } else { first };
        }
        if self.fixed >> 28 == 0xd && rng.random_bool(0.5) {
            second &= 0xf800_0000;
            for place in [0, 9, 18] {
                let register = 256 + 2 * rng.random_range(0..128);
                let source = [register, register, 2 * rng.random_range(0..51), 106, 126, 242, 253];
                second |= source.choose(rng).copied().unwrap_or(0) << place;
            }
            first &= !1;
        }
        [first, second, rng.random(), rng.random()]
    }
}

/// This many words, the same number for every opcode of every encoding.
pub fn random_words(seed: u64, count: usize) -> Vec<Words> {
    let rng = &mut StdRng::seed_from_u64(seed);
    let opcodes: usize = FAMILIES.iter().map(|family| family.opcodes as usize).sum();
    let each = count.div_ceil(opcodes);
    let all = FAMILIES.iter().flat_map(|family| (0..family.opcodes).map(move |opcode| (family, opcode)));
    all.flat_map(|(family, opcode)| (0..each).map(|_| family.words(opcode, rng)).collect::<Vec<_>>())
        .collect()
}

/// Stands between the words of two cases.
const MARK: &str = "s_nop 0x1234";

/// The text of the first instruction of each case, where LLVM has one. Its disassembler crashes on some
/// words, which are left out.
pub fn disassembled(workspace: &Workspace, arch: Arch, cases: &[Words]) -> Vec<Option<String>> {
    let bytes = |words: &[u32]| {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        bytes.map(|byte| format!("{byte:#04x}")).collect::<Vec<_>>().join(",")
    };
    let mark = bytes(&[0xbf80_1234]);
    let lines: Vec<String> = cases.iter().map(|words| format!("[{}]\n[{mark}]\n", bytes(words))).collect();
    workspace.write("words.txt", lines.concat());
    let ran = workspace
        .try_run(&format!("llvm-mc-19 -disassemble -triple=amdgcn-amd-amdhsa -mcpu={arch} words.txt"));
    let Some((printed, complaints)) = ran else {
        if cases.len() <= 1 {
            return vec![None; cases.len()];
        }
        let (left, right) = cases.split_at(cases.len() / 2);
        let mut all = disassembled(workspace, arch, left);
        all.extend(disassembled(workspace, arch, right));
        return all;
    };
    let refused = complained(&complaints, "words.txt", Some(2));
    let mut found = Vec::with_capacity(cases.len());
    let mut first = None;
    for line in printed.lines().map(str::trim).filter(|line| !line.is_empty() && *line != ".text") {
        if line == MARK {
            let is_refused = refused.contains(&(2 * found.len() + 1));
            found.push(first.take().filter(|_| !is_refused));
        } else if first.is_none() {
            first = Some(line.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    assert_eq!(found.len(), cases.len());
    found
}

/// Lines that a tool complained about, those with a given column if one is given.
fn complained(complaints: &str, file: &str, column: Option<u32>) -> BTreeSet<usize> {
    let place = |line: &str| {
        let (line, rest) = line.strip_prefix(file)?.strip_prefix(':')?.split_once(':')?;
        let (at, rest) = rest.split_once(':')?;
        let is_complaint = rest.starts_with(" error:") || rest.starts_with(" warning:");
        let is_there = column.is_none_or(|column| at == column.to_string());
        (is_complaint && is_there).then(|| line.parse().ok())?
    };
    complaints.lines().filter_map(place).collect()
}

/// The words of each text, where LLVM takes it.
pub fn assembled(workspace: &Workspace, arch: Arch, texts: &[String]) -> Vec<Option<Vec<u32>>> {
    let mut refused = BTreeSet::new();
    loop {
        let kept = texts.iter().enumerate().filter(|(at, _)| !refused.contains(at));
        let numbers: Vec<usize> = kept.clone().map(|(at, _)| at).collect();
        workspace.write("texts.s", kept.map(|(_, text)| format!("{text}\n")).collect::<String>());
        // LLVM 19 does not know it.
        let command = match arch {
            Arch::Gfx950 => "python3 -m ziglang clang -cc1as -triple amdgcn-amd-amdhsa -target-cpu gfx950 \
                             -filetype asm -show-encoding texts.s -o -"
                .to_owned(),
            _ => format!("llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu={arch} -show-encoding texts.s"),
        };
        let (printed, complaints) = workspace.try_run(&command).expect("the assembler does not crash");
        let wrong = complained(&complaints, "texts.s", None);
        if !wrong.is_empty() {
            refused.extend(wrong.into_iter().map(|line| numbers[line - 1]));
            continue;
        }
        let mut all = vec![None; texts.len()];
        let lists =
            printed.lines().filter_map(|line| Some(line.split_once("encoding: [")?.1.split_once(']')?.0));
        let encodings: Vec<Vec<u32>> = lists.map(words_of).collect();
        assert_eq!(encodings.len(), numbers.len());
        numbers.into_iter().zip(encodings).for_each(|(at, words)| all[at] = Some(words));
        return all;
    }
}

/// Bytes in what an assembler prints, as words.
fn words_of(list: &str) -> Vec<u32> {
    let byte = |text: &str| u8::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap_or(0);
    let bytes: Vec<u8> = list.split(',').map(byte).collect();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}
