//! Instructions: their table, their bytes and their text, against LLVM and against AMD's published tables.

mod asm_errors;
mod asm_inst;
mod asm_llvm;
mod asm_object;
mod clang_code;
mod hazards_llvm;
mod isa_llvm;
mod mfma_layouts;
mod mfma_rows;
