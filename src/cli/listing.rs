//! Machine code with offsets and encodings, as `disasm` and `compile --emit machine` show it.

use std::fmt::Write;

use groundswell::codegen::isa::{self, Arch};

/// One line of a listing.
pub struct Line {
    /// Offset in bytes.
    pub offset: usize,
    /// The encoding.
    pub words: Vec<u32>,
    /// The instruction, or a directive for words that are none.
    pub text: String,
    /// Whether it is an instruction.
    pub known: bool,
}

/// Decodes all words. Those that no instruction begins with become data, one at a time.
pub fn lines(code: &[u32], arch: Arch) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let mut text = String::new();
        let (count, known) = match isa::decode(&code[at..], arch) {
            Ok((inst, count)) => {
                let known = isa::write_inst(&mut text, &inst, arch, None).is_ok();
                (count.clamp(1, code.len() - at), known)
            }
            Err(_) => {
                let _ = write!(text, ".long {:#010x}", code[at]);
                (1, false)
            }
        };
        lines.push(Line { offset: at * 4, words: code[at..at + count].to_vec(), text, known });
        at += count;
    }
    lines
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
