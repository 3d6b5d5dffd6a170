//! The messages that authors get, as the program prints them: each text kernel under `tests/gallery` has one
//! mistake, and the file beside it is what comes out. The first line of a kernel is the command. With
//! `BLESS=1` in the environment the messages are written anew; read them as somebody who has never seen the
//! compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::places::root;

fn folder() -> PathBuf {
    root().join("tests/gallery")
}

/// The kernels of the gallery, in order.
fn kernels() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("the gallery").map(|entry| entry.expect("readable"));
    let mut kernels: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    kernels.retain(|path| path.extension().is_some_and(|extension| extension == "gsw"));
    kernels.sort();
    kernels
}

/// What the program says of a kernel, and its exit code.
fn message(kernel: &Path) -> String {
    let text = std::fs::read_to_string(kernel).expect("readable");
    let command = text.lines().next().and_then(|line| line.strip_prefix("; groundswell "));
    let command = command.unwrap_or_else(|| panic!("{} does not begin with a command", kernel.display()));
    let output = Command::new(env!("CARGO_BIN_EXE_groundswell"))
        .args(command.split_whitespace())
        .current_dir(folder())
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    format!("{said}exit code {}\n", output.status.code().expect("an exit code"))
}

#[test]
fn messages_are_what_the_gallery_shows() {
    let kernels = kernels();
    assert!(kernels.len() >= 20, "{}", kernels.len());
    let mut changed = Vec::new();
    for kernel in &kernels {
        let (said, shown) = (message(kernel), kernel.with_extension("txt"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&shown, &said).expect("writable");
        } else if std::fs::read_to_string(&shown).ok().as_deref() != Some(&said) {
            changed.push(format!("{}:\n{said}", shown.display()));
        }
    }
    assert!(changed.is_empty(), "BLESS=1 writes these anew:\n{}", changed.join("\n"));
}

/// Every message names the author's line, shows it, and says a way out.
#[test]
fn messages_have_a_place_and_a_way_out() {
    for kernel in kernels() {
        let name = kernel.file_name().expect("a file").to_string_lossy().into_owned();
        let said = message(&kernel);
        assert!(said.starts_with("error: "), "{said}");
        assert!(said.contains(&format!("  --> {name}:")), "{said}");
        assert!(said.contains("\n  help: "), "{said}");
        assert!(said.contains("exit code 1") || said.contains("exit code 3"), "{said}");
    }
}
