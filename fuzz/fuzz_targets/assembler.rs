//! The assembler, the disassembler and the parser of instructions.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(fault) = groundswell_testing::checks::assembler(data) {
        panic!("{fault}");
    }
});
