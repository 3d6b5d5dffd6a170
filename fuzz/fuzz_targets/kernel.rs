//! Whole kernels: compiled, run on the simulator, compared with the reference interpreter.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::kernel(data) {
        panic!("{fault}");
    }
});
