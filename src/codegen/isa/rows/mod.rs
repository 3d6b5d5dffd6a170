//! The rows of the instruction table, one file per family of formats.
//!
//! Each file is a macro that appends its rows to those it is given and hands on all of them, so that one enum
//! can be made from many files. A row reads
//!
//! ```text
//! Name "mnemonic" Format(opcode) [operands in assembler order] Unit Meaning,
//!     reads(implicit), writes(implicit), on(chips that have it), alias(chips, "what they call it");
//! ```
//!
//! A name is the mnemonic with every part between underscores capitalised and joined; an underscore stays
//! where two digits would meet: `v_mfma_f32_32x32x8_f16` is `VMfmaF32_32x32x8F16`. Forms of one mnemonic with
//! different results have rows of their own: `...Rtn` for atomics that return the old value, `...Lds` for
//! loads to LDS, `...Long` for interpolations in the encoding of VOP3, `...Short` for a short encoding that
//! later chips dropped. A row without `on` is on every chip.
//!
//! The test `isa_llvm` compares each row with LLVM on every chip that has it, and random words of every
//! encoding too, which show rows that are missing (`GROUNDSWELL_FUZZ_CASES` asks for more words). The
//! instructions that it leaves out are a list with reasons.
#[macro_use]
mod scalar;
#[macro_use]
mod smem;
#[macro_use]
mod vector;
#[macro_use]
mod compare;
#[macro_use]
mod vector3;
#[macro_use]
mod packed;
#[macro_use]
mod matrix;
#[macro_use]
mod lds;
#[macro_use]
mod buffer;
#[macro_use]
mod flat;
#[macro_use]
mod image;
pub(super) mod kinds;
