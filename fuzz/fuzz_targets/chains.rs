//! Chained products in a loop, as attention has them: compiled, run on the simulator in check mode, compared
//! with the reference interpreter.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::chains(data) {
        panic!("{fault}");
    }
});
