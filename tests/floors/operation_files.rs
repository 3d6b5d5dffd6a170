//! How many files a new operation has to be written into: those that name all operations of its class have to
//! name the new one, too, or the compiler or a test rejects them. Each class has a ceiling that only falls.

use std::collections::BTreeSet;

use groundswell::internals::node::{AtomicOp, BinaryOp, ReductionOp, ScanOp, SortOp, UnaryOp};

use crate::floors::{without_tests, written_files};

/// Operations of a class: what paths to them begin with, and their names.
struct OperationClass {
    name: &'static str,
    enums: &'static [&'static str],
    operations: Vec<String>,
    /// Files that name them by the rows of a macro, which are no paths.
    rows: usize,
    /// The most files.
    most: usize,
}

fn all<T: std::fmt::Debug>(operations: &[T]) -> Vec<String> {
    operations.iter().map(|op| format!("{op:?}")).collect()
}

fn named(operations: &[&str]) -> Vec<String> {
    operations.iter().map(|&op| op.to_owned()).collect()
}

fn classes() -> Vec<OperationClass> {
    let class = |name, enums, operations, rows, most| OperationClass { name, enums, operations, rows, most };
    vec![
        class("element-wise, of one value", &["UnaryOp"], all(UnaryOp::ALL), 1, 4),
        class("element-wise, of two values", &["BinaryOp"], all(BinaryOp::ALL), 1, 4),
        class("reduction", &["ReductionOp"], all(ReductionOp::ALL), 0, 5),
        class("scan", &["ScanOp"], all(ScanOp::ALL), 1, 1),
        class("sort", &["SortOp"], all(SortOp::ALL), 1, 1),
        class("atomic", &["AtomicOp"], all(AtomicOp::ALL), 1, 3),
        class("contraction", &["ContractionOp", "Op"], named(&["Mma", "ScaledMma"]), 0, 4),
        class("access", &["AccessOp", "Op"], named(&["Read", "Write", "Atomic", "GlobalToShared"]), 1, 2),
        class("region", &["RegionOp", "Op"], named(&["Iterate", "Conditional", "While", "Pipeline"]), 1, 2),
    ]
}

/// The operations of a class that a text names: the words after `Enum::`.
fn names<'a>(text: &'a str, class: &OperationClass) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for of in class.enums {
        let path = format!("{of}::");
        for (at, _) in text.match_indices(&path) {
            if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = &text[at + path.len()..];
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            found.insert(&rest[..end]);
        }
    }
    found
}

/// A text without comments.
fn code(source: &str) -> String {
    let lines =
        without_tests(source).lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn operations_are_named() {
    let class = &classes()[1];
    let text = code("BinaryOp::Add | super::BinaryOp::Sub // BinaryOp::Mul\nMyBinaryOp::Div");
    assert_eq!(names(&text, class).into_iter().collect::<Vec<_>>(), ["Add", "Sub"]);
}

#[test]
fn a_new_operation_is_written_into_few_files() {
    let files: Vec<(String, String)> =
        written_files("src").into_iter().map(|(file, source)| (file, code(&source))).collect();
    let mut wrong = String::new();
    for class in classes() {
        let names_all = |text: &str| {
            let names = names(text, &class);
            class.operations.iter().all(|op| names.contains(&**op))
        };
        let found: Vec<&str> =
            files.iter().filter(|(_, text)| names_all(text)).map(|(file, _)| &**file).collect();
        let count = found.len() + class.rows;
        if count != class.most {
            let (name, most) = (class.name, class.most);
            wrong += &format!("{name}: {count} files, and the ceiling is {most}\n  {}\n", found.join("\n  "));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
