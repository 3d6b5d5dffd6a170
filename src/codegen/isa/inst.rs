//! The instruction record that every part of the machine layer shares.

use super::{Arch, Calc, Dpp, Field, Meaning, Modifiers, Opcode, Operand, OperandClass, Role, Sdwa};

/// Most operands that an instruction of the table has.
pub(crate) const MAX_OPERANDS: usize = 6;

/// One machine instruction: an opcode, its operands in the order of its row in the table (assembler order:
/// results first), one 32-bit immediate and the modifiers.
///
/// What [`imm`](Inst::imm) holds depends on the format: the literal of an operand that is
/// [`Operand::LITERAL`]; the byte offset of a memory instruction (for `read2`/`write2` forms offset0 in bits
/// 7:0 and offset1 in bits 15:8); simm16 of SOPK and SOPP (for a branch before layout: the target block; for
/// `s_setreg_imm32_b32` simm16 is in the modifiers, and this is its literal); a [`Dpp`] or [`Sdwa`] in those
/// forms; the attribute of an interpolation, its channel in bits 1:0 and, in the long form, the parameter of
/// `v_interp_mov_f32` from bit 8 on; for an image instruction, how many registers its address has beyond the
/// least that the row allows, which the encoding does not say.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Inst {
    /// Which instruction.
    pub op: Opcode,
    /// Literal, offset or simm16.
    pub imm: u32,
    /// Everything that is written after the operands in assembler text.
    pub modifiers: Modifiers,
    /// Operands in the order of the row; unused places are [`Operand::NONE`].
    pub operands: [Operand; MAX_OPERANDS],
}

// Only scaled matrix instructions have a sixth operand, which costs four bytes.
const _: () = assert!(size_of::<Inst>() <= 36);

impl Inst {
    /// An instruction without modifiers and immediate.
    pub fn new(op: Opcode, operands: &[Operand]) -> Inst {
        let mut all = [Operand::NONE; MAX_OPERANDS];
        all[..operands.len()].copy_from_slice(operands);
        Inst { op, imm: 0, modifiers: Modifiers::default(), operands: all }
    }

    /// The same with an immediate.
    pub fn imm(mut self, imm: u32) -> Inst {
        self.imm = imm;
        self
    }

    /// The same with modifiers.
    pub fn modifiers(mut self, modifiers: Modifiers) -> Inst {
        self.modifiers = modifiers;
        self
    }

    /// Passes of four cycles of a matrix instruction on `arch`; 0 for others.
    pub fn passes(&self, arch: Arch) -> u8 {
        self.op.info().passes_with(arch, self.modifiers)
    }

    /// Number of 32-bit registers that operand `index` covers: what the row says, except for the addresses of
    /// buffer and global instructions, which depend on modifiers and on the scalar base.
    #[inline]
    pub fn width(&self, index: usize) -> u8 {
        let spec = &self.op.info().operands[index];
        match spec.class {
            OperandClass::BufferAddress if self.modifiers.has_offen() && self.modifiers.has_idxen() => 2,
            OperandClass::VgprOrAgpr if spec.field == Field::Data0 && self.has_status() => spec.width + 1,
            OperandClass::ImageAddress(_) => spec.width.saturating_add(self.imm.min(0xff) as u8),
            OperandClass::ImageData => self.image_data_width(),
            OperandClass::GlobalAddress if !self.scalar_base().is_none() => 1,
            OperandClass::MatrixFormatted => match spec.field {
                Field::Src0 => formatted_width(self.modifiers.get_cbsz()),
                _ => formatted_width(self.modifiers.get_blgp()),
            },
            _ => spec.width,
        }
    }

    /// Whether operand `index` is read, written or both: as the row says, except for results that are kept in
    /// part: lanes that DPP does not write, parts of a register that SDWA and op_sel leave unchanged.
    #[inline]
    pub fn role(&self, index: usize) -> Role {
        let info = self.op.info();
        let spec = &info.operands[index];
        let tied = match spec.role {
            Role::Def => spec.field == Field::Dst && self.keeps_part_of_result(),
            // Some atomics return the former value in their data if asked to.
            Role::Use => index == 0 && info.returns_if_asked() && self.modifiers.has_sc0(),
            Role::DefUse => false,
        };
        if tied { Role::DefUse } else { spec.role }
    }

    /// True if part of the result register survives.
    #[inline]
    fn keeps_part_of_result(&self) -> bool {
        let info = self.op.info();
        if self.modifiers.has_dpp() {
            return !Dpp::from_imm(self.imm).writes_all_lanes();
        }
        if self.modifiers.has_sdwa() {
            return !info.format.is_comparison()
                && Sdwa::from_imm(self.imm).is_none_or(Sdwa::keeps_destination);
        }
        info.format.is_vop3() && self.modifiers.get_op_sel() & 0b1000 != 0
    }

    /// True if a status follows the data.
    #[inline]
    fn has_status(&self) -> bool {
        self.modifiers.has_tfe() && self.op.info().format.is_mubuf()
    }

    /// Registers of an image instruction's data: one per component, or one per two of 16 bits, and a status
    /// (LLVM, AMDGPUAsmParser.cpp, `validateMIMGDataSize`).
    fn image_data_width(&self) -> u8 {
        let components = match self.op.info().meaning {
            Meaning::ImageGather => 4,
            _ => self.modifiers.get_dmask().count_ones().max(1) as u8,
        };
        let data = if self.modifiers.has_d16() { components.div_ceil(2) } else { components };
        data + u8::from(self.modifiers.has_tfe())
    }

    /// True if the components that an image instruction names are some that it has, in as many registers as
    /// it has a form for (LLVM, AMDGPUAsmParser.cpp, `validateMIMGAtomicDMask` and `validateMIMGGatherDMask`;
    /// the widths of MIMGInstructions.td). Other instructions have none.
    pub(super) fn has_legal_components(&self) -> bool {
        let dmask = self.modifiers.get_dmask();
        match self.op.info().meaning {
            Meaning::ImageGather => dmask.is_power_of_two() && self.image_data_width() != 3,
            Meaning::ImageAtomic(calc, _) => {
                let missing = if calc == Calc::CompareSwap { 1 } else { 4 };
                matches!(dmask, 0x1 | 0x3 | 0xf) && self.image_data_width() != missing
            }
            _ => true,
        }
    }

    /// The scalar base of a global or scratch instruction.
    fn scalar_base(&self) -> Operand {
        let base = self.op.info().operands.iter().position(|spec| spec.class == OperandClass::ScalarBase);
        base.map_or(Operand::NONE, |index| self.operands[index])
    }
}

/// Registers of 32 elements of a format: 8 bits (fp8, bf8), 6 bits (fp6, bf6) or 4 bits (fp4) each (CDNA4 ISA
/// guide, "V_MFMA_F32_16X16X128_F8F6F4").
const fn formatted_width(format: u32) -> u8 {
    match format {
        0 | 1 => 8,
        2 | 3 => 6,
        _ => 4,
    }
}
