//! The last test binary: it counts the tests of all others that were skipped for lack of a tool.

use groundswell_testing::places::scratch;
use std::process::{Command, Output};

use groundswell_testing::oracle::Workspace;
use groundswell_testing::skipped;

#[test]
fn tests_that_were_skipped_are_counted() {
    let summary = skipped::summary();
    skipped::tell(&summary);
    assert!(summary.is_empty() || std::env::var_os(skipped::REQUIRED).is_none(), "tests were skipped");
}

/// Set for the process that runs the test below for [`a_skip_is_told_and_counted`].
const PROBE: &str = "GROUNDSWELL_SKIP_PROBE";

#[test]
fn probe() {
    if std::env::var_os(PROBE).is_some() {
        assert!(Workspace::with_tools(&["no-such-tool"]).is_none());
    }
}

#[test]
fn a_skip_is_told_and_counted() {
    let folder = scratch().join("skipped-probe");
    let _ = std::fs::remove_dir_all(&folder);
    let run = |test: &str, requires: bool| -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test]).env(PROBE, "1").env(skipped::FOLDER, &folder);
        match requires {
            true => command.env(skipped::REQUIRED, "1"),
            false => command.env_remove(skipped::REQUIRED),
        };
        command.output().unwrap()
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let counted = "tests_that_were_skipped_are_counted";

    let skipped = run("probe", false);
    assert!(skipped.status.success());
    assert!(said(&skipped).contains("probe of zz_skipped: no-such-tool is missing"), "{}", said(&skipped));
    let summary = run(counted, false);
    assert!(summary.status.success());
    let expected = "skipped for lack of tools: 1 test\n     1 without no-such-tool: zz_skipped\n";
    assert!(said(&summary).contains(expected), "{}", said(&summary));
    assert_eq!(said(&run(counted, false)), "", "what was counted is forgotten");

    assert!(!run("probe", true).status.success());
    run("probe", false);
    assert!(!run(counted, true).status.success());
    let _ = std::fs::remove_dir_all(&folder);
}
