//! The parser and the printer of machine text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = checks::machine(data) {
        panic!("{fault}");
    }
});
