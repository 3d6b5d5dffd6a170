//! The simulator: run, check and time mode.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::simulator(data) {
        panic!("{fault}");
    }
});
