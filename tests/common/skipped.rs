//! Tests that are skipped for lack of a tool: each is reported at once, past the capture of output, and noted
//! in a file of its test binary, so that the last test binary, `zz_skipped`, can count them all.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Once;

use crate::places::scratch;

/// With this in the environment, a test that would be skipped fails.
pub const REQUIRED: &str = "GROUNDSWELL_REQUIRE_ORACLES";

/// Another folder for the notes.
pub const FOLDER: &str = "GROUNDSWELL_SKIPPED_FOLDER";

fn folder() -> PathBuf {
    let usual = || scratch().join("skipped");
    std::env::var_os(FOLDER).map_or_else(usual, PathBuf::from)
}

/// The name of this test binary, without the hash that cargo puts behind it.
fn binary() -> String {
    let path = std::env::current_exe().expect("this is a program");
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    name.rsplit_once('-').map_or(name.clone(), |(name, _)| name.to_owned())
}

/// Forgets what this test binary noted when it ran before. Whoever looks for tools calls it first.
pub fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // There is none as a rule.
        let _ = fs::remove_file(folder().join(binary()));
    });
}

/// The test that runs is skipped because something is missing.
pub fn note(missing: &str) {
    assert!(std::env::var_os(REQUIRED).is_none(), "{missing} is missing");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let binary = binary();
    tell(&format!("skipped: {test} of {binary}: {missing} is missing\n"));
    fs::create_dir_all(folder()).unwrap();
    let file = File::options().create(true).append(true).open(folder().join(binary));
    file.and_then(|mut file| file.write_all(format!("{missing}\n").as_bytes())).unwrap();
}

/// Writes to standard error itself, which the test harness does not capture.
pub fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// All notes of all test binaries, for people; nothing is said if nothing was skipped. They are forgotten
/// then.
pub fn summary() -> String {
    let mut missing: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
    let notes = fs::read_dir(folder()).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut notes: Vec<PathBuf> = notes.collect();
    notes.sort();
    for path in notes {
        let binary = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for tool in fs::read_to_string(&path).unwrap().lines() {
            let (count, binaries) = missing.entry(tool.to_owned()).or_default();
            *count += 1;
            if binaries.last() != Some(&binary) {
                binaries.push(binary.clone());
            }
        }
        fs::remove_file(path).unwrap();
    }
    if missing.is_empty() {
        return String::new();
    }
    let all: usize = missing.values().map(|(count, _)| count).sum();
    let tests = if all == 1 { "test" } else { "tests" };
    let mut text = format!("\nskipped for lack of tools: {all} {tests}\n");
    for (tool, (count, binaries)) in missing {
        text += &format!("  {count:4} without {tool}: {}\n", binaries.join(", "));
    }
    text + &format!("README.md says what to install; with {REQUIRED}=1 a test that is skipped fails\n\n")
}
