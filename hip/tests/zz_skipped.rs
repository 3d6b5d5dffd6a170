//! The last test binary: it counts the tests of this crate that were skipped for lack of a tool.

#[path = "../../tests/common/skipped.rs"]
#[expect(dead_code, reason = "other test binaries note what they skip")]
mod skipped;

#[test]
fn skipped_tests_are_counted() {
    skipped::tell(&skipped::summary());
}
