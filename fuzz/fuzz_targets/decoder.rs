//! The instruction decoder, the printer and the encoder.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::decoder(data) {
        panic!("{fault}");
    }
});
