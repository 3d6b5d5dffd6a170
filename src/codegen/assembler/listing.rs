//! The code of a section as text: instructions, labels for what branches go to, data for what is no instruction.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::codegen::isa::{Arch, Inst, Meaning, Opcode, Operand, decode, encode, parse_inst, write_inst};

/// Code between two boundaries.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Offset in the section.
    pub offset: usize,
    /// Its bytes.
    pub bytes: usize,
    pub content: Content,
}

/// What stands in a line.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// An instruction whose text gives its bytes back.
    Inst(Inst),
    /// Words that no instruction's text gives, and what they may mean.
    Words(Option<Inst>),
    /// Single bytes.
    Bytes,
}

/// Decodes code; nothing reaches over a boundary.
pub(super) fn lines(code: &[u8], boundaries: &BTreeSet<usize>, arch: Arch) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let end = boundaries.range(at + 1..).next().map_or(code.len(), |&end| end.min(code.len()));
        let whole = at % 4 == 0;
        let words: Vec<u32> =
            code[at..end].as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let mut done = 0;
        while whole && done < words.len() {
            let offset = at + 4 * done;
            let (content, length) = one(&words[done..], arch);
            lines.push(Line { offset, bytes: 4 * length, content });
            done += length;
        }
        let behind = at + 4 * done;
        if behind < end {
            lines.push(Line { offset: behind, bytes: end - behind, content: Content::Bytes });
        }
        at = end;
    }
    lines
}

/// The longest instruction has four words.
const MOST_WORDS: usize = 4;

fn one(words: &[u32], arch: Arch) -> (Content, usize) {
    let window = &words[..words.len().min(MOST_WORDS)];
    let Ok((inst, length)) = decode(window, arch) else { return (Content::Words(None), 1) };
    let length = length.clamp(1, window.len());
    let faithful = is_faithful(&inst, &window[..length], arch);
    (if faithful { Content::Inst(inst) } else { Content::Words(Some(inst)) }, length)
}

/// True if the text of the instruction gives these words.
fn is_faithful(inst: &Inst, words: &[u32], arch: Arch) -> bool {
    let mut again = Vec::with_capacity(MOST_WORDS);
    let parsed = parse_inst(&text(inst, arch, None), arch);
    parsed.is_ok_and(|parsed| encode(&parsed.inst, arch, &mut again).is_ok()) && again == words
}

/// The text of an instruction.
pub(super) fn text(inst: &Inst, arch: Arch, label: Option<&str>) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_inst(&mut out, inst, arch, label);
    out
}

/// Where a branch at this offset goes, if it is one.
pub(super) fn target(line: &Line) -> Option<usize> {
    let Content::Inst(inst) = &line.content else { return None };
    let is_branch = matches!(inst.op.info().meaning, Meaning::Branch(_) | Meaning::Call | Meaning::ForkIf);
    let words = i64::from(inst.imm as u16 as i16);
    is_branch.then(|| usize::try_from(line.offset as i64 + 4 + 4 * words).ok()).flatten()
}

/// A literal that is half of the distance from the program counter to an address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Distance {
    /// The address, with that of the code's beginning as 0.
    pub target: i64,
    /// The high half.
    pub is_high: bool,
}

/// Finds `s_getpc_b64` with the addition of a distance behind it: by line, what its literal is.
pub(super) fn distances(lines: &[Line]) -> BTreeMap<usize, Distance> {
    let mut found = BTreeMap::new();
    for (index, window) in lines.windows(3).enumerate() {
        let [Some(getpc), Some(low), Some(high)] = [0, 1, 2].map(|at| instruction(&window[at])) else {
            continue;
        };
        let [register, ..] = getpc.operands;
        let next =
            register.number().filter(|&number| number < 127).map(|number| Operand::physical(number + 1));
        let adds = |inst: &Inst, op: Opcode, to: Option<Operand>| {
            let [result, first, second, ..] = inst.operands;
            inst.op == op && Some(result) == to && result == first && second == Operand::LITERAL
        };
        if getpc.op == Opcode::SGetpcB64
            && adds(&low, Opcode::SAddU32, Some(register))
            && adds(&high, Opcode::SAddcU32, next)
        {
            let distance = (u64::from(high.imm) << 32 | u64::from(low.imm)) as i64;
            let target = distance.wrapping_add(window[1].offset as i64);
            found.insert(index + 1, Distance { target, is_high: false });
            found.insert(index + 2, Distance { target, is_high: true });
        }
    }
    found
}

/// The instruction of a line; a literal that could be inline is one, too.
fn instruction(line: &Line) -> Option<Inst> {
    match line.content {
        Content::Inst(inst) | Content::Words(Some(inst)) => Some(inst),
        _ => None,
    }
}

/// The text of an addition with a symbol in place of its literal.
pub(super) fn with_symbol(inst: &Inst, arch: Arch, label: &str, is_high: bool) -> String {
    let plain = text(inst, arch, None);
    let head = plain.rsplit_once(", ").map_or(plain.as_str(), |(head, _)| head);
    // The literal lies four bytes behind the first addition, and twelve behind the place that was got.
    let mut out = String::new();
    let _ = match is_high {
        false => write!(out, "{head}, {label}@rel32@lo+4"),
        true => write!(out, "{head}, {label}@rel32@hi+12"),
    };
    out
}
