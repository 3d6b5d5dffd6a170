//! The reader of code objects.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::object(data) {
        panic!("{fault}");
    }
});
