//! What a build makes of files that are not compiled as they are.
//!
//! The compiler gets a name for its own sources: what one build has compiled, another one only takes from a
//! cache if it is the same compiler. Pages of `docs` become documentation whose examples are compiled and
//! run: a page shows the code that matters, and what makes a program of it is added here, where no reader of
//! the page sees it (rustdoc hides lines that begin with `# `, other viewers of Markdown show them).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Pages with examples that are parts of programs.
const PAGES: [&str; 5] = ["attention.md", "how-do-i.md", "kernels.md", "language.md", "tuning.md"];

fn main() {
    name_the_sources();
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names a folder for what a build makes"));
    for page in PAGES {
        let source = Path::new("docs").join(page);
        println!("cargo::rerun-if-changed={}", source.display());
        let text = fs::read_to_string(&source).expect("the pages of the crate can be read");
        let made = folder.join(page);
        let text = with_whole_programs(&text);
        // What has not changed keeps its time, so that nothing is compiled again.
        if fs::read_to_string(&made).is_ok_and(|before| before == text) {
            continue;
        }
        fs::write(&made, text).expect("what a build makes can be written");
    }
}

/// The page with every example of Rust that has no `main` made a program: the prelude before it, and after it
/// the result that lets it use `?`.
fn with_whole_programs(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + page.len() / 8);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        if !line.starts_with("```") {
            continue;
        }
        let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let is_part = line == "```rust" && !code.iter().any(|line| line.starts_with("fn main()"));
        if is_part && !code.contains(&"use groundswell::prelude::*;") {
            out += "# use groundswell::prelude::*;\n";
        }
        for line in code {
            out += line;
            out.push('\n');
        }
        out += if is_part { "# Ok::<(), Diagnostic>(())\n```\n" } else { "```\n" };
    }
    out
}

/// Sets `GROUNDSWELL_BUILD` to a hash of all that the compiler is made of.
fn name_the_sources() {
    println!("cargo::rerun-if-changed=src");
    let mut files = Vec::new();
    list(Path::new("src"), &mut files);
    // What objects are written with; a crate that uses this one has the versions in a file of its own.
    files.extend(["Cargo.toml", "Cargo.lock"].map(PathBuf::from).into_iter().filter(|file| file.exists()));
    files.sort();
    // FNV-1a.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.to_string_lossy().replace('\\', "/");
        let text = fs::read(&file).expect("the sources of the crate can be read");
        for byte in name.bytes().chain([0]).chain(text).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=GROUNDSWELL_BUILD={hash:016x}");
}

/// All source files of a folder.
fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list(&path, files),
            _ if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            _ => {}
        }
    }
}
