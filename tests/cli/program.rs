//! The program as scripts see it: run with arguments, its one JSON object.

use std::process::{Command, Output};

use crate::places::root;
use serde_json::Value;

/// The program with arguments, in the crate's folder.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_groundswell"));
    command.args(arguments).current_dir(root());
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
