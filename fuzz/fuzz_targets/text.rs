//! The parser and the printer of text kernels.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::text(data) {
        panic!("{fault}");
    }
});
