//! Products of computed factors over ragged dimensions: compiled with two tiles, run on the simulator,
//! compared with plain loops.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::factors(data) {
        panic!("{fault}");
    }
});
