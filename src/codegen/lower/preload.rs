//! Kernel arguments that firmware loads into SGPRs, and the prologue for firmware that cannot.
//!
//! Firmware that preloads enters a kernel 256 bytes after its entry; older firmware enters at the entry,
//! where the prologue does the same loads and goes on to the same place. Source: LLVM's "User Guide for
//! AMDGPU Backend", section "Preloaded Kernel Arguments".

use crate::codegen::isa::{Arch, EncodeError, Inst, Opcode, Operand, WaitCounts, encode};

/// Bytes from the entry to where firmware that preloads enters.
pub(crate) const PROLOGUE_BYTES: u32 = 256;

const PROLOGUE_WORDS: usize = PROLOGUE_BYTES as usize / 4;

/// First SGPR of the preloaded dwords in a kernel without scratch: they follow the pointer to the segment in
/// `s[0:1]`.
pub(crate) const FIRST_SGPR: u32 = 2;

/// Loads by size: dwords and instruction, largest first.
const LOADS: [(u32, Opcode); 4] = [
    (8, Opcode::SLoadDwordx8),
    (4, Opcode::SLoadDwordx4),
    (2, Opcode::SLoadDwordx2),
    (1, Opcode::SLoadDword),
];

/// The 64 words, for `arch`, in front of a kernel whose first `dwords` of arguments are preloaded, to the
/// SGPRs from `to` on.
///
/// # Errors
/// None that the given instructions can cause.
pub(crate) fn prologue(arch: Arch, dwords: u32, to: u32) -> Result<Vec<u32>, EncodeError> {
    let mut words = Vec::with_capacity(PROLOGUE_WORDS);
    let mut done = 0;
    while done < dwords {
        let first = to + done;
        // A load of four or more dwords needs SGPRs from a multiple of four on, one of two dwords an even
        // one.
        let fits = |width: u32| width <= dwords - done && first.is_multiple_of(width.min(4));
        let (width, op) = LOADS.into_iter().find(|load| fits(load.0)).unwrap_or(LOADS[3]);
        let operands = [Operand::sgpr(first), Operand::sgpr(0)];
        encode(&Inst::new(op, &operands).imm(4 * done), arch, &mut words)?;
        done += width;
    }
    let loaded = WaitCounts { lgkm: 0, ..WaitCounts::NONE };
    encode(&Inst::new(Opcode::SWaitcnt, &[]).imm(loaded.to_imm()), arch, &mut words)?;
    // Counted from the end of the branch.
    let over = PROLOGUE_WORDS - words.len() - 1;
    encode(&Inst::new(Opcode::SBranch, &[]).imm(over as u32), arch, &mut words)?;
    while words.len() < PROLOGUE_WORDS {
        encode(&Inst::new(Opcode::SNop, &[]), arch, &mut words)?;
    }
    Ok(words)
}
