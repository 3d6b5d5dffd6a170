//! Schedules of small loops: legal ones are applied and right, others refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::schedules(data) {
        panic!("{fault}");
    }
});
