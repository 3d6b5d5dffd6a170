//! Assembler text of whole code objects, both ways: [`assemble`] makes a loadable object of a text in LLVM's
//! syntax, [`disassemble`] a text of any loadable object.
//!
//! One walk over the lines puts bytes into sections and notes places that depend on symbols (`fixups`); when
//! all sizes are known the object is laid out, and these places are filled in. Instructions are read by
//! `isa::parse`, directives have a table in `directives` and files by what they are about (`data`,
//! `section_directives`, `symbol_directives`), kernel descriptors and metadata a file each
//! (`kernel`, `yaml`).
//!
//! Macros, repetitions and conditions are those of LLVM's assembler (`macros`, `conditions`): the walk takes
//! its lines from `input`, which puts the lines of an expansion before those that follow it.
//!
//! Addresses in writable data (`.quad symbol`) are left to the loader. Not supported: other relocations
//! (everything has to be resolved inside the file), and `.amdgpu_lds`, whose symbols no linker of LLVM
//! resolves.
//!
//! `disassemble` followed by `assemble` gives back all bytes of objects that this crate wrote, including
//! debug sections. Of other objects it gives back the sections with code and data, the descriptors and the
//! metadata; the distance from a descriptor to its code, and addresses in general, are those of our layout,
//! and code that finds data relative to itself is rewritten with symbols where it is the usual `s_getpc_b64`
//! sequence.

mod assemble;
mod conditions;
mod data;
mod directives;
mod disassemble;
mod error;
mod expansion;
mod fixups;
mod flow;
mod image;
mod include;
mod input;
mod kernel;
mod labels;
mod listing;
mod macros;
mod metadata;
mod output;
mod scalar;
mod section_directives;
mod sections;
mod source;
mod strings;
mod symbol_directives;
mod symbols;
mod values;
mod walk;
mod yaml;

pub use assemble::{MAX_TEXT_BYTES, assemble, assemble_in};
pub use disassemble::{DisassembleError, Disassembly, Listing, disassemble};
pub use error::{AssemblerError, Faults};
pub use output::Assembled;
pub use walk::{AssemblerOptions, Note};
