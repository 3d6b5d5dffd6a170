//! The code of a section as text: instructions, labels for the places that branches go to, data for bytes
//! that are not instructions.

use std::fmt::Write;

use crate::codegen::isa::{Arch, Inst, Meaning, Opcode, Operand, decode, encode, parse_inst, write_inst};

/// Code between two boundaries.
#[derive(Clone, Debug)]
pub(super) struct CodeLine {
    /// Offset in the section.
    pub offset: usize,
    /// Its bytes.
    pub bytes: usize,
    pub content: LineContent,
}

/// The content of a line.
#[derive(Clone, Debug)]
pub(super) enum LineContent {
    /// An instruction, or data that begins like one.
    Inst(Inst),
    /// A word that cannot begin an instruction.
    Word,
    /// Single bytes.
    Bytes,
}

/// The longest instruction has four words.
const MOST_WORDS: usize = 4;

/// Decodes code line by line; no line crosses a boundary. Boundaries come in order.
pub(super) struct CodeLines<'a, B: Iterator<Item = usize>> {
    code: &'a [u8],
    boundaries: B,
    arch: Arch,
    at: usize,
    /// Where the piece between two boundaries ends, and whether it holds whole words.
    end: usize,
    is_whole: bool,
}

/// The lines of code.
pub(super) fn lines<B: Iterator<Item = usize>>(code: &[u8], boundaries: B, arch: Arch) -> CodeLines<'_, B> {
    CodeLines { code, boundaries, arch, at: 0, end: 0, is_whole: true }
}

impl<B: Iterator<Item = usize>> Iterator for CodeLines<'_, B> {
    type Item = CodeLine;

    fn next(&mut self) -> Option<CodeLine> {
        let offset = self.at;
        if offset == self.code.len() {
            return None;
        }
        if offset == self.end {
            let next = self.boundaries.find(|&boundary| boundary > offset);
            self.end = next.map_or(self.code.len(), |boundary| boundary.min(self.code.len()));
            self.is_whole = offset.is_multiple_of(4);
        }
        let rest = &self.code[offset..self.end];
        let (content, bytes) = match rest.len() >= 4 && self.is_whole {
            true => one(rest, self.arch),
            false => (LineContent::Bytes, rest.len()),
        };
        self.at += bytes;
        Some(CodeLine { offset, bytes, content })
    }
}

/// Up to four words.
fn words(bytes: &[u8]) -> ([u32; MOST_WORDS], usize) {
    let (all, mut words) = (bytes.as_chunks::<4>().0, [0; MOST_WORDS]);
    for (word, &bytes) in words.iter_mut().zip(all) {
        *word = u32::from_le_bytes(bytes);
    }
    (words, all.len().min(MOST_WORDS))
}

fn one(bytes: &[u8], arch: Arch) -> (LineContent, usize) {
    let (words, count) = words(bytes);
    match decode(&words[..count], arch) {
        Ok((inst, length)) => (LineContent::Inst(inst), 4 * length.clamp(1, count)),
        Err(_) => (LineContent::Word, 4),
    }
}

/// Texts of instructions, and whether they give back the bytes. The memory is kept between calls.
#[derive(Default)]
pub(super) struct Texts {
    text: String,
    again: Vec<u32>,
}

impl Texts {
    /// The text of an instruction, if it gives these bytes.
    pub(super) fn faithful(&mut self, inst: &Inst, bytes: &[u8], arch: Arch) -> Option<&str> {
        self.text.clear();
        self.again.clear();
        let (words, count) = words(bytes);
        // Writing to a string cannot fail.
        let _ = write_inst(&mut self.text, inst, arch, None);
        let parsed = parse_inst(&self.text, arch);
        let is_same = parsed.is_ok_and(|parsed| encode(&parsed.inst, arch, &mut self.again).is_ok())
            && self.again == words[..count];
        is_same.then_some(&*self.text)
    }
}

/// The text of an instruction.
pub(super) fn text(inst: &Inst, arch: Arch, label: Option<&str>) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_inst(&mut out, inst, arch, label);
    out
}

/// Where an instruction at this offset branches to, if it is a branch.
pub(super) fn target(inst: &Inst, offset: usize) -> Option<usize> {
    let is_branch = matches!(inst.op.info().meaning, Meaning::Branch(_) | Meaning::Call | Meaning::ForkIf);
    let words = i64::from(inst.imm as u16 as i16);
    is_branch.then(|| usize::try_from(offset as i64 + 4 + 4 * words).ok()).flatten()
}

/// A literal that is half of the distance from the program counter to an address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Distance {
    /// Offset of the line that holds it.
    pub offset: usize,
    /// The address, with that of the code's beginning as 0.
    pub target: i64,
    /// The high half.
    pub is_high: bool,
}

/// The distances in `s_getpc_b64` followed by the addition of a distance: the literals of the two additions.
pub(super) fn distances(lines: [&CodeLine; 3]) -> Option<[Distance; 2]> {
    let [LineContent::Inst(getpc), LineContent::Inst(low), LineContent::Inst(high)] =
        lines.map(|line| &line.content)
    else {
        return None;
    };
    if getpc.op != Opcode::SGetpcB64 {
        return None;
    }
    let [register, ..] = getpc.operands;
    let next = register.number().filter(|&number| number < 127).map(|number| Operand::physical(number + 1));
    let adds = |inst: &Inst, op: Opcode, to: Option<Operand>| {
        let [result, first, second, ..] = inst.operands;
        inst.op == op && Some(result) == to && result == first && second == Operand::LITERAL
    };
    if !adds(low, Opcode::SAddU32, Some(register)) || !adds(high, Opcode::SAddcU32, next) {
        return None;
    }
    let distance = (u64::from(high.imm) << 32 | u64::from(low.imm)) as i64;
    let target = distance.wrapping_add(lines[1].offset as i64);
    let half = |line: &CodeLine, is_high| Distance { offset: line.offset, target, is_high };
    Some([half(lines[1], false), half(lines[2], true)])
}

/// The text of an addition with a symbol in place of its literal.
pub(super) fn with_symbol(inst: &Inst, arch: Arch, label: &str, is_high: bool) -> String {
    let plain = text(inst, arch, None);
    let head = plain.rsplit_once(", ").map_or(plain.as_str(), |(head, _)| head);
    // The literal lies four bytes after the first addition, and twelve after the address that `s_getpc_b64`
    // gives.
    let mut out = String::new();
    let _ = match is_high {
        false => write!(out, "{head}, {label}@rel32@lo+4"),
        true => write!(out, "{head}, {label}@rel32@hi+12"),
    };
    out
}
