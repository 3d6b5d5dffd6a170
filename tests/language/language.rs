//! docs/language.md: its text kernels mean what they say, and its table of operations is that of the crate.
//! Its Rust kernels are tests of the documentation. `BLESS=1` writes the table anew.

use groundswell::internals::node::Op;
use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::places::root;

const PAGE: &str = include_str!("../../docs/language.md");

/// Operations that no author writes.
const MADE_BY_PASSES: [&str; 7] =
    ["pipeline", "argument", "result", "global_to_shared", "rearrange", "decode", "encode"];

/// The text kernels of the page, each with the sizes in its first line.
fn kernels() -> Vec<(Vec<(String, i64)>, &'static str)> {
    let blocks = PAGE.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let sizes = |line: &str| {
        let words = line.trim_start_matches(';').split_whitespace();
        words
            .map(|word| word.split_once('=').unwrap())
            .map(|(name, size)| (name.into(), size.parse().unwrap()))
            .collect()
    };
    blocks.map(|block| block.split_once('\n').unwrap()).map(|(first, text)| (sizes(first), text)).collect()
}

#[test]
fn text_kernels_mean_what_they_say() {
    let kernels = kernels();
    assert!(kernels.len() >= 5);
    for (sizes, text) in kernels {
        let kernel = Kernel::parse(text, "language.md").unwrap_or_else(|faults| panic!("{text}\n{faults}"));
        let options = sizes.iter().fold(Options::new(Target::GFX942), |options, (name, size)| {
            options.set(Symbol::new(name), *size)
        });
        let executable = verified(&kernel, &options);
        let value = |symbol: Symbol| options.value(symbol);
        assert_right(&kernel, &executable, &value, 3, text);
    }
}

#[test]
fn the_table_of_operations_is_complete() {
    let mut table = String::from("\n| word | operands | bits | what it does |\n| --- | --- | --- | --- |\n");
    for row in Op::rows().filter(|row| !MADE_BY_PASSES.contains(&row.word)) {
        let (operands, bits) = (row.operands.name(), row.exactness.name());
        let count = row.takes.map_or("any number of".to_owned(), |takes| takes.len().to_string());
        table += &format!("| `{}` | {count}, {operands} | {bits} | {} |\n", row.word, row.doc);
    }
    table.push('\n');
    let (before, rest) = PAGE.split_once("<!-- operations: written by the test of this page -->").unwrap();
    let (found, after) = rest.split_once("<!-- end -->").unwrap();
    if std::env::var_os("BLESS").is_some() {
        let page = format!(
            "{before}<!-- operations: written by the test of this page -->{table}<!-- end -->{after}"
        );
        std::fs::write(root().join("docs/language.md"), page).unwrap();
    } else {
        assert_eq!(found, table, "set BLESS=1 to write the table");
    }
}
