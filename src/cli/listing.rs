//! Machine code with offsets and encodings, as `disasm` and `compile --emit machine` show it.

use std::fmt::Write;

use groundswell::isa;
use groundswell::isa::Arch;

/// One line of a listing.
pub struct Line<'a> {
    /// Offset in bytes.
    pub offset: usize,
    /// The encoding.
    pub words: &'a [u32],
    /// The instruction, or a directive for words that are not an instruction.
    pub text: String,
    /// Whether it is an instruction.
    pub known: bool,
}

/// Decodes all words. Those that cannot start an instruction become data, one at a time.
pub fn lines(code: &[u32], arch: Arch) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = code.get(at..).filter(|rest| !rest.is_empty())?;
        let mut text = String::new();
        let (count, known) = match isa::decode(rest, arch) {
            Ok((inst, count)) => {
                let known = isa::write_inst(&mut text, &inst, arch, None).is_ok();
                (count.clamp(1, rest.len()), known)
            }
            Err(_) => {
                let _ = write!(text, ".long {:#010x}", rest[0]);
                (1, false)
            }
        };
        let line = Line { offset: at * 4, words: &rest[..count], text, known };
        at += count;
        Some(line)
    })
}

/// For people.
pub fn text(code: &[u32], arch: Arch) -> String {
    let mut out = String::new();
    for line in lines(code, arch) {
        let words: Vec<String> = line.words.iter().map(|w| format!("{w:08x}")).collect();
        let _ = writeln!(out, "{:6x}  {:18} {}", line.offset, words.join(" "), line.text);
    }
    out
}
