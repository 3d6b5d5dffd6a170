//! The rooms of the tests: few binaries, as each is linked with the whole crate; no file that none of them
//! has; and no path of a test, named anywhere, that leads nowhere.

use std::fs;
use std::path::{Path, PathBuf};

use crate::floors::sources_in;
use groundswell_testing::places::root;

/// Most test binaries.
const BINARIES: usize = 25;

/// What is in a folder, files and folders, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    entries
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

#[test]
fn tests_are_few_binaries_that_have_all_files() {
    let mut binaries = 0;
    // Cargo looks for none by itself, as two packages share the folder.
    let manifests = ["Cargo.toml", "tests/Cargo.toml"];
    let manifests = manifests.map(|file| fs::read_to_string(root().join(file)).expect("a manifest")).concat();
    let mut count = |file: &Path| {
        let named = file.strip_prefix(root().join("tests")).expect("it is a test").display().to_string();
        let paths = [format!("path = \"{named}\"\n"), format!("path = \"tests/{named}\"\n")];
        assert!(paths.iter().any(|path| manifests.contains(path)), "{named} is built by no package");
        binaries += 1;
    };
    for entry in entries(&root().join("tests")) {
        let roots = [entry.join("main.rs"), entry.join("lib.rs")];
        let Some(head) = roots.iter().find(|path| path.exists()) else {
            if is_source(&entry) {
                count(&entry);
            }
            continue;
        };
        if head.ends_with("main.rs") {
            count(head);
        }
        let text = fs::read_to_string(head).expect("a source file");
        assert!(text.starts_with("//! "), "{} says what its tests are about", head.display());
        for file in entries(&entry).iter().filter(|path| is_source(path) && *path != head) {
            let name = file.file_stem().expect("a name").to_string_lossy();
            assert!(text.contains(&format!("mod {name};\n")), "{} belongs to no binary", file.display());
        }
    }
    assert!(binaries <= BINARIES, "{binaries} test binaries, at most {BINARIES} are allowed");
}

/// Paths `tests/*.rs` in a text, those of folders in other folders left out.
fn named_tests(text: &str) -> impl Iterator<Item = &str> {
    let begins = text.match_indices("tests/").map(|found| found.0).filter(|&at| {
        let before = &text[..at];
        before.ends_with("../") || !before.ends_with(|c: char| c == '/' || c == '_' || c.is_alphanumeric())
    });
    let path = |at| {
        let rest: &str = &text[at..];
        let is_outside = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.'));
        rest[..rest.find(is_outside).unwrap_or(rest.len())].trim_end_matches('.')
    };
    begins.map(path).filter(|path| path.ends_with(".rs"))
}

#[test]
fn tests_are_where_others_say_that_they_are() {
    let folders = ["src", "tests", "benches", "examples"].map(|folder| root().join(folder));
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| sources_in(folder)).collect();
    let pages = ["docs", "docs/decisions"].map(|folder| entries(&root().join(folder)));
    files.extend(pages.into_iter().flatten().filter(|path| path.is_file()));
    files.extend(["ARCHITECTURE.md", "README.md"].map(|page| root().join(page)));
    let mut named = 0;
    for file in files {
        for path in named_tests(&fs::read_to_string(&file).expect("text")) {
            assert!(root().join(path).exists(), "{} names {path}, which is not there", file.display());
            named += 1;
        }
    }
    assert!(named > 20, "the paths are not found");
}
