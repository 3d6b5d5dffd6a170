//! Gives the compiler a name for its own sources: what one build has compiled, another one only takes from a
//! cache if it is the same compiler.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
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
