//! The program as scripts see it: run with arguments, its one JSON object, a directory for its files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The program with arguments, in the crate's folder.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_groundswell"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// What it does with them.
pub fn groundswell(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program was built for this test")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The one JSON object that a verb prints, and its exit code.
pub fn json(arguments: &[&str]) -> (Value, Option<i32>) {
    let output = groundswell(arguments);
    let out = text(&output.stdout);
    assert_eq!(out.lines().count(), 1, "{arguments:?} printed\n{out}{}", text(&output.stderr));
    let value: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{arguments:?}: {e}\n{out}"));
    assert!(value.is_object());
    (value, output.status.code())
}

/// A directory of this test, empty and gone afterwards.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the target directory can be written");
        Directory(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Names of what is in it, sorted.
    pub fn entries(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("it was created");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("it is readable").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
