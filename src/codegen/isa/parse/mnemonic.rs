//! From mnemonics to rows of the table.

use std::sync::LazyLock;

use strsim::levenshtein;

use super::super::{Arch, Arches, Format, Opcode};
use super::error::InstructionFault;

/// The encoding that a mnemonic's suffix asks for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum MnemonicForm {
    /// The shortest one that can express it.
    Any,
    /// `_e32`
    Short,
    /// `_e64`
    Long,
    /// `_dpp`
    Dpp,
    /// `_sdwa`
    Sdwa,
}

const SUFFIXES: [(&str, MnemonicForm); 4] = [
    ("_e32", MnemonicForm::Short),
    ("_e64", MnemonicForm::Long),
    ("_dpp", MnemonicForm::Dpp),
    ("_sdwa", MnemonicForm::Sdwa),
];

/// Every mnemonic with its row, in alphabetical order, including names on some chips.
static NAMES: LazyLock<Vec<(&'static str, Opcode)>> = LazyLock::new(|| {
    let mut names = Vec::with_capacity(Opcode::ALL.len() + 64);
    for &op in Opcode::ALL {
        let info = op.info();
        names.push((info.mnemonic, op));
        names.extend(info.alias.map(|(alias, _)| (alias, op)));
    }
    names.sort_by_key(|&(name, op)| (name, op));
    names
});

/// The rows of a mnemonic without suffix.
fn rows(name: &str) -> &'static [(&'static str, Opcode)] {
    let names = &*NAMES;
    let start = names.partition_point(|(known, _)| *known < name);
    let count = names[start..].iter().take_while(|(known, _)| *known == name).count();
    &names[start..start + count]
}

fn split(name: &str) -> (&str, MnemonicForm) {
    let found = SUFFIXES.iter().find_map(|&(suffix, form)| Some((name.strip_suffix(suffix)?, form)));
    found.unwrap_or((name, MnemonicForm::Any))
}

/// Older names, which chips take that have the instruction and no other one of the name (LLVM,
/// VOP3PInstructions.td, `MnemonicAlias` and `VOP3P_Real_MFMA_gfx940_aliases`).
const ALIASES: [(&str, &str); 11] = [
    ("v_accvgpr_read", "v_accvgpr_read_b32"),
    ("v_accvgpr_write", "v_accvgpr_write_b32"),
    ("v_mfma_f32_32x32x4bf16_1k", "v_mfma_f32_32x32x4_2b_bf16"),
    ("v_mfma_f32_16x16x4bf16_1k", "v_mfma_f32_16x16x4_4b_bf16"),
    ("v_mfma_f32_4x4x4bf16_1k", "v_mfma_f32_4x4x4_16b_bf16"),
    ("v_mfma_f32_32x32x8bf16_1k", "v_mfma_f32_32x32x8_bf16"),
    ("v_mfma_f32_16x16x16bf16_1k", "v_mfma_f32_16x16x16_bf16"),
    ("v_mfma_f32_16x16x8xf32", "v_mfma_f32_16x16x8_xf32"),
    ("v_mfma_f32_32x32x4xf32", "v_mfma_f32_32x32x4_xf32"),
    ("v_mfma_i32_32x32x16i8", "v_mfma_i32_32x32x16_i8"),
    ("v_mfma_i32_16x16x32i8", "v_mfma_i32_16x16x32_i8"),
];

/// What is known about the operands before they are read.
#[derive(Copy, Clone, Debug)]
pub(super) struct Hints {
    /// `lds` is among the modifiers.
    pub to_lds: bool,
    /// `glc` or `sc0` is among them.
    pub returns: bool,
    /// Signs or output modifiers are there.
    pub is_long: bool,
}

impl Hints {
    pub(super) fn of(rest: &str) -> Hints {
        let word = |wanted: &str| {
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == wanted)
        };
        let long_words = ["clamp", "mul", "div", "abs", "neg"];
        let is_long = rest.contains(['-', '|']) || long_words.into_iter().any(word);
        Hints { to_lds: word("lds"), returns: word("sc0") || word("glc"), is_long }
    }
}

/// The row that a mnemonic means on `arch`, or on any chip where none is given. Several rows share one where
/// the result depends on modifiers.
pub(super) fn find(
    name: &str,
    arch: Option<Arch>,
    hints: impl Fn() -> Hints,
) -> Result<(Opcode, MnemonicForm), InstructionFault> {
    let (base, form) = split(name);
    let is_here = |op: Opcode| arch.is_none_or(|arch| op.on(arch));
    let own = rows(base);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == base && !own.iter().any(|&(_, op)| is_here(op)));
    let rows = match alias.map(|(_, name)| rows(name)) {
        Some(others) if own.is_empty() || others.iter().any(|&(_, op)| is_here(op)) => others,
        _ => own,
    };
    let mut here = rows.iter().map(|(_, op)| *op).filter(|&op| is_here(op));
    let Some(first) = here.next() else {
        return Err(missing(name, rows, arch));
    };
    let Some(second) = here.next() else { return Ok((first, form)) };
    let Hints { to_lds, returns, is_long } = hints();
    let wants_long = form == MnemonicForm::Long || form == MnemonicForm::Any && is_long;
    let score = |op: &Opcode| {
        let format = op.info().format;
        let has_form = match format {
            Format::Vintrp => !wants_long,
            Format::VintrpLong => wants_long,
            _ => form != MnemonicForm::Short || !format.is_vop() || format.has_e64(),
        };
        let fits = [format.is_to_lds() == to_lds, format.returns() == returns, has_form]
            .into_iter()
            .filter(|fits| *fits)
            .count();
        (fits, op.spelling() == Arch::USUAL)
    };
    // The first of those that fit best.
    let mut best = first;
    for op in [second].into_iter().chain(here) {
        if score(&op) > score(&best) {
            best = op;
        }
    }
    Ok((best, form))
}

fn missing(name: &str, rows: &[(&str, Opcode)], arch: Option<Arch>) -> InstructionFault {
    let Some(arch) = arch.filter(|_| !rows.is_empty()) else {
        return InstructionFault::Mnemonic { name: name.to_owned(), nearest: nearest(split(name).0) };
    };
    let arches = rows.iter().fold(Arches::NONE, |all, (_, op)| all.union(op.info().arches));
    InstructionFault::Arch { name: name.to_owned(), arch, arches }
}

/// The known mnemonic with the fewest changes, if they are few.
fn nearest(name: &str) -> Option<&'static str> {
    const MOST_CHANGES: usize = 2;
    if name.len() > 64 || !name.is_ascii() {
        return None;
    }
    let candidates = NAMES.iter().map(|(known, _)| *known);
    let near = candidates.filter(|known| known.len().abs_diff(name.len()) <= MOST_CHANGES);
    let best = near.map(|known| (levenshtein(known, name), known)).min()?;
    (best.0 <= MOST_CHANGES).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_name_on_every_chip_that_has_it() {
        for &op in Opcode::ALL {
            let info = op.info();
            for arch in info.arches.iter() {
                let hints = || Hints {
                    to_lds: info.format.is_to_lds(),
                    returns: info.format.returns(),
                    is_long: info.format == Format::VintrpLong,
                };
                assert_eq!(
                    find(info.mnemonic_on(arch), Some(arch), hints),
                    Ok((op, MnemonicForm::Any)),
                    "{op:?} {arch}"
                );
            }
        }
    }

    #[test]
    fn misspelled_names_get_a_hint() {
        let fault = |name| find(name, Some(Arch::Gfx942), || Hints::of("")).unwrap_err().to_string();
        assert_eq!(fault("v_mov_b23"), "no instruction is called `v_mov_b23`; there is `v_mov_b32`");
        assert_eq!(fault("quux"), "no instruction is called `quux`");
        assert_eq!(
            fault("v_madmk_f32"),
            "`v_madmk_f32` does not exist on gfx942, only on gfx906, gfx908, gfx90a"
        );
    }
}
