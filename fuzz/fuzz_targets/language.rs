//! Kernels of the whole language: refused with a reason, or run, compared and checked.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::language(data) {
        panic!("{fault}");
    }
});
