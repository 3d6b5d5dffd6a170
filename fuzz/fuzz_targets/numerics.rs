//! Element-wise kernels at the edges of number formats, compared with the reference interpreter.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::numerics(data) {
        panic!("{fault}");
    }
});
