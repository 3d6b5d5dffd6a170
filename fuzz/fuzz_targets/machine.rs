//! The parser and the printer of machine text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::machine(data) {
        panic!("{fault}");
    }
});
