//! The words that statements are made of, and the faults of words that are unknown or out of place.

use super::derived::DERIVED_WORDS;
use super::foreign;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{Control, Op};
use crate::ir::op::{NodeRole, OpClass, OpRow, RegionHead, STORES};
use crate::spelling::closest;

/// Words that start a constraint.
pub(super) const CONSTRAINTS: &[&str] =
    &["workgroup", "tile", "wave", "iterations", "persistent", "reorder", "mma", "emulate", "assume"];

/// Words that declare an argument of the kernel.
const ARGUMENTS: &[&str] = &["memory", "scalar"];

/// Statements without a result, apart from writes and regions.
const ACTIONS: &[&str] = &["set_symbol", "follow", "global_to_shared", "barrier", "yield"];

/// All statements without a result.
fn actions() -> impl Iterator<Item = &'static str> {
    let stores = STORES.iter().map(|op| op.row().word);
    stores.chain(ACTIONS.iter().copied()).chain(RegionHead::words())
}

/// Words of operations with a result that an author may write.
fn operations() -> impl Iterator<Item = &'static str> {
    let written = |row: &&OpRow| match row.gives {
        NodeRole::Value => row.class != OpClass::Carried,
        NodeRole::Memory => true,
        NodeRole::Loop => row.word != "pipeline",
        NodeRole::Nothing => false,
    };
    ["constant", "scatter_add"]
        .into_iter()
        .chain(DERIVED_WORDS.iter().copied())
        .chain(Op::rows().filter(written).map(|row| row.word))
}

/// The fault of a word that is not the name of an operation.
pub(super) fn unknown_operation(word: &str) -> Diagnostic {
    if actions().any(|action| action == word) || Control::WORDS.contains(&word) {
        return Diagnostic::invalid(format!("`{word}` has no result"))
            .help(format!("write `{word}` without `%name =`"));
    }
    if ARGUMENTS.contains(&word) {
        return Diagnostic::invalid(format!("`{word}` declares an argument, which has a name without `%`"))
            .help(format!("write `name = {word} ...`"));
    }
    let fault = Diagnostic::invalid(format!("there is no operation `{word}`"));
    meant(fault, word, operations())
}

/// The fault of a word, with the word that was meant, if one can be told.
fn meant<'a>(fault: Diagnostic, word: &str, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    if let Some(help) = foreign::operation(word) {
        return fault.help(help);
    }
    match closest(word, known) {
        Some(close) => fault.help(format!("did you mean `{close}`?")),
        None => fault,
    }
}

/// The fault of a word that cannot start a statement here.
pub(super) fn stray_word(word: &str) -> Diagnostic {
    if word == "yield" {
        return Diagnostic::invalid("`yield` outside of a loop").help("results leave a kernel by `write`");
    }
    if operations().any(|operation| operation == word) {
        let fault = Diagnostic::invalid(format!("the result of `{word}` has no name"));
        let target = if ARGUMENTS.contains(&word) { "name" } else { "%name" };
        return fault.help(format!("write `{target} = {word} ...`"));
    }
    if CONSTRAINTS.contains(&word) {
        return Diagnostic::invalid(format!("`{word}` inside a loop"))
            .help("constraints hold for the whole kernel");
    }
    let fault = Diagnostic::invalid(format!("no statement starts with `{word}`"));
    meant(fault, word, actions().chain(Control::WORDS.iter().chain(CONSTRAINTS).copied()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::foreign::{DTYPES, UNSIGNED, WAYS, WORDS};
    use super::*;
    use crate::ir::types::DType;

    /// Whether a line of a kernel may have this word for what it does.
    fn is_word(word: &str) -> bool {
        let statements = Control::WORDS.iter().chain(CONSTRAINTS).chain(ARGUMENTS).copied();
        operations().chain(actions()).chain(statements).chain(["debug_log"]).any(|own| own == word)
    }

    #[test]
    fn every_foreign_word_leads_to_one_of_ours() {
        for (own, _) in WORDS {
            let (word, predicate) = own.split_once(' ').unwrap_or((own, ""));
            assert!(is_word(word), "{own}");
            assert_eq!(!predicate.is_empty(), word == "compare", "{own}");
        }
        for word in ["max", "min", "mul", "compare", "reduce_max", "sub", "exp", "reduce_sum", "div", "read"]
        {
            assert!(is_word(word), "{word}, which a way mentions");
        }
    }

    #[test]
    fn no_foreign_word_is_ours_or_has_two_meanings() {
        let mut seen = BTreeSet::new();
        for word in WORDS.iter().flat_map(|row| row.1).chain(WAYS.iter().flat_map(|row| row.0)) {
            assert!(!is_word(word), "{word} is ours");
            assert!(seen.insert(*word), "{word} stands there twice");
        }
        let mut seen = BTreeSet::new();
        for name in DTYPES.iter().chain(UNSIGNED).flat_map(|row| row.1) {
            assert!(DType::from_name(name).is_none(), "{name} is ours");
            assert!(seen.insert(*name), "{name} stands there twice");
        }
    }

    #[test]
    fn every_dtype_has_foreign_names() {
        for dtype in DType::all() {
            assert!(DTYPES.iter().any(|row| row.0 == dtype), "{dtype}");
        }
    }
}
