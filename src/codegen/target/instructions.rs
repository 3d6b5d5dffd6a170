//! Which instructions code for a target may have.

use super::TargetInfo;
use crate::codegen::isa::Opcode;

impl TargetInfo {
    /// True if code for it may have that instruction: all chips that it is for execute it, in the same way.
    pub fn executes(&self, op: Opcode) -> bool {
        let sets = self.instruction_sets();
        // The 8-bit floats of one chip are other numbers than those of another (LLVM, "AMDGPU Generic
        // Processors").
        let is_alike = sets.iter().all(|set| set.has_ocp_floats() == self.arch.has_ocp_floats());
        sets.iter().all(|&set| op.on(set)) && (is_alike || !op.info().meaning.is_about_float8())
    }

    /// True if it rounds two f32 to a 16-bit float in one instruction.
    pub(crate) fn rounds_pairs(&self) -> bool {
        self.executes(Opcode::VCvtPkBf16F32) && self.executes(Opcode::VCvtPkF16F32)
    }

    /// The read of LDS that turns elements of so many bits among sixteen lanes, 8 bytes for each, or 12 of
    /// elements of 6 bits.
    pub fn transposing_read(&self, bits: u32) -> Option<Opcode> {
        let op = match bits {
            16 => Opcode::DsReadB64TrB16,
            8 => Opcode::DsReadB64TrB8,
            6 => Opcode::DsReadB96TrB6,
            4 => Opcode::DsReadB64TrB4,
            _ => return None,
        };
        self.executes(op).then_some(op)
    }

    /// Whether it converts narrow floats with a scale for each conversion.
    pub fn has_scaled_conversions(&self) -> bool {
        self.executes(Opcode::VCvtScalef32PkF32Fp4)
    }
}
