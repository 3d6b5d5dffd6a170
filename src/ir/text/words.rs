//! The words that statements are made of, and the faults of words that are unknown or out of place.

use super::derived::DERIVED_WORDS;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{Control, Op};
use crate::ir::op::{NodeRole, OpClass, OpRow};
use crate::spelling::closest;

/// Words that start a constraint.
pub(super) const CONSTRAINTS: &[&str] =
    &["workgroup", "tile", "wave", "iterations", "persistent", "reorder", "mma", "emulate", "assume"];

/// Words that declare an argument of the kernel.
const ARGUMENTS: &[&str] = &["memory", "scalar"];

/// Statements without a result.
const ACTIONS: &[&str] = &[
    "write",
    "set_symbol",
    "follow",
    "global_to_shared",
    "barrier",
    "yield",
    "iterate",
    "conditional",
    "while",
];

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
    if ACTIONS.contains(&word) || Control::WORDS.contains(&word) {
        return Diagnostic::invalid(format!("`{word}` has no result"))
            .help(format!("write `{word}` without `%name =`"));
    }
    if ARGUMENTS.contains(&word) {
        return Diagnostic::invalid(format!("`{word}` declares an argument, which has a name without `%`"))
            .help(format!("write `name = {word} ...`"));
    }
    let fault = Diagnostic::invalid(format!("there is no operation `{word}`"));
    match closest(word, operations()) {
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
    match closest(word, ACTIONS.iter().chain(&Control::WORDS).chain(CONSTRAINTS).copied()) {
        Some(close) => fault.help(format!("did you mean `{close}`?")),
        None => fault,
    }
}
