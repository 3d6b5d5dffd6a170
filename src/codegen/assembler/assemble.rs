//! From a text to an object: the walk over its lines, then the layout.

use std::path::Path;

use super::error::{AssemblerError, Faults, other};
use super::output::{self, Assembled};
use super::walk::{AssemblerOptions, TextAssembler};

/// The most bytes of a text. It is read in time in proportion to its length; its object takes fewer bytes,
/// its symbols and what depends on them about twenty times as many.
pub const MAX_TEXT_BYTES: usize = 2 << 30;

/// Makes a loadable object of a text.
///
/// # Errors
/// Faults by line, up to a hundred of them; or that the text has more than [`MAX_TEXT_BYTES`].
///
/// # Example
/// ```
/// use groundswell::assembler::{AssemblerOptions, assemble};
/// use groundswell::object::ObjectFile;
/// let text = "
///     .amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"
///     .globl stop
///     .p2align 8
///     .type stop,@function
/// stop:
///     s_endpgm
///     .size stop, . - stop
///     .rodata
///     .p2align 6
///     .amdhsa_kernel stop
///       .amdhsa_next_free_vgpr 1
///       .amdhsa_next_free_sgpr 0
///       .amdhsa_accum_offset 4
///     .end_amdhsa_kernel
/// ";
/// let assembled = assemble(text, AssemblerOptions::default())?;
/// let object = ObjectFile::parse(&assembled.object).expect("it is an object");
/// assert_eq!(object.kernels[0].code, [0x00, 0x00, 0x81, 0xbf]);
/// # Ok::<(), groundswell::assembler::Faults>(())
/// ```
pub fn assemble(text: &str, options: AssemblerOptions) -> Result<Assembled, Faults> {
    assemble_text(text, None, options)
}

/// The same for the text of a file in `folder`, beside which `.include` finds other files.
///
/// # Errors
/// Those of [`assemble`], and that a file cannot be read.
pub fn assemble_in(folder: &Path, text: &str, options: AssemblerOptions) -> Result<Assembled, Faults> {
    assemble_text(text, Some(folder), options)
}

fn assemble_text(text: &str, folder: Option<&Path>, options: AssemblerOptions) -> Result<Assembled, Faults> {
    if text.len() > MAX_TEXT_BYTES {
        let fault = format!("the text has {} bytes, and may have {MAX_TEXT_BYTES}", text.len());
        return Err(Faults(vec![AssemblerError::new(1, 1, other(fault))]));
    }
    output::finish(TextAssembler::read(text, folder, options))
}
