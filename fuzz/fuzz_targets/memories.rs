//! Kernels on memories of all shapes: refused when they race, else run, compared and checked.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::memories(data) {
        panic!("{fault}");
    }
});
