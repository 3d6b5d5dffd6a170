//! From instructions to bytes.

use super::buffer_format::BufferFormat;
use super::error::EncodeError;
use super::layout::{
    BitRange, Encoding, EncodingLayout, GPR_INDEX_MODE, SIMM16, graphics, long_opcode, memory, segment, vop,
};
use super::meaning::Meaning;
use super::spec::{Field, Format, OpInfo, OperandClass, OperandKinds, OperandSpec};
use super::{Inst, Modifiers, Opcode, Operand, second_word};
use crate::codegen::arch::Arch;

/// The encoding that an instruction takes: the 32-bit one where the row has one that can express it, as
/// llvm-mc does. DPP and SDWA put a second word after the 32-bit one.
#[inline]
pub(super) fn encoding(inst: &Inst, info: &OpInfo) -> Encoding {
    let short = Encoding::of(info.format);
    if !info.format.has_e64() || inst.modifiers.has_second_word() || fits_short(inst, info) {
        short
    } else if info.operands.iter().any(|spec| spec.field == Field::Sdst) {
        Encoding::Vop3b
    } else {
        Encoding::Vop3a
    }
}

/// True if the 32-bit encoding can express an instruction of VOP1, VOP2 or VOPC.
#[inline]
pub(super) fn fits_short(inst: &Inst, info: &OpInfo) -> bool {
    inst.modifiers.is_empty()
        && info.operands.iter().zip(inst.operands).all(|(spec, operand)| match spec.class {
            OperandClass::Mask | OperandClass::MaskSource => operand == Operand::VCC,
            _ => spec.field != Field::Src1 || operand.as_vgpr().is_some(),
        })
}

/// Size of the encoding.
pub fn size_in_bytes(inst: &Inst) -> u32 {
    let info = inst.op.info();
    let second = inst.modifiers.has_second_word() || inst.operands.contains(&Operand::LITERAL);
    encoding(inst, info).layout().bytes + if second { 4 } else { 0 }
}

/// True if the instruction takes a 64-bit encoding, in which no literal can be.
#[cfg(test)]
pub(crate) fn is_long(inst: &Inst) -> bool {
    inst.modifiers.has_second_word() || encoding(inst, inst.op.info()).layout().bytes >= 8
}

/// Appends the encoding of one instruction as `arch` has it.
pub fn encode(inst: &Inst, arch: Arch, out: &mut Vec<u32>) -> Result<(), EncodeError> {
    let (op, info) = (inst.op, inst.op.info());
    if !info.arches.contains(arch) {
        return Err(EncodeError::Arch { op, arch });
    }
    if !inst.modifiers.is_empty() && !inst.modifiers.within(info.modifiers_on(arch, inst.modifiers)) {
        return Err(EncodeError::Modifiers { op, arch });
    }
    if inst.modifiers.has_second_word() {
        out.extend(second_word::encode(inst, info, arch)?);
        return Ok(());
    }
    let encoding = encoding(inst, info);
    let layout = encoding.layout();
    let mut writer = EncodingWriter { inst, arch, word: layout.fixed };
    let code = if matches!(encoding, Encoding::Vop3a | Encoding::Vop3b) {
        long_opcode(info.format, info.code)
    } else {
        info.code
    };
    writer.put(layout.opcode, code.into())?;
    let (mut literal, mut fit) = (false, true);
    for (spec, &operand) in info.operands.iter().zip(&inst.operands) {
        literal |= operand == Operand::LITERAL;
        fit &= writer.operand(operand, spec, layout.field(spec.field));
    }
    if !fit {
        return Err(misplaced(inst, arch, layout));
    }
    writer.rest(encoding, info.format)?;

    if literal && layout.bytes >= 8 {
        return Err(EncodeError::Literal { op: inst.op });
    }
    if encoding == Encoding::MaiScaled {
        let scales = writer.scales()?;
        out.extend([scales as u32, (scales >> 32) as u32]);
    }
    out.push(writer.word as u32);
    if layout.bytes >= 8 {
        out.push((writer.word >> 32) as u32);
    } else if literal {
        out.push(inst.imm);
    }
    Ok(())
}

/// The fault of the first operand that does not fit.
#[cold]
fn misplaced(inst: &Inst, arch: Arch, layout: &EncodingLayout) -> EncodeError {
    let mut writer = EncodingWriter { inst, arch, word: 0 };
    let fits =
        |(operand, spec): (&Operand, &OperandSpec)| writer.operand(*operand, spec, layout.field(spec.field));
    let index =
        inst.operands.iter().zip(inst.op.info().operands).map(fits).position(|fits| !fits).unwrap_or(0);
    let (op, operand) = (inst.op, inst.operands[index]);
    if operand.is_virtual() {
        EncodeError::Virtual { op, index }
    } else {
        EncodeError::Operand { op, index, operand }
    }
}

struct EncodingWriter<'a> {
    inst: &'a Inst,
    arch: Arch,
    word: u64,
}

impl EncodingWriter<'_> {
    /// Puts in a number that is part of the instruction's immediate or modifiers.
    #[inline]
    fn put(&mut self, range: BitRange, value: u32) -> Result<(), EncodeError> {
        let placed =
            range.place(value).ok_or(EncodeError::Immediate { op: self.inst.op, imm: self.inst.imm })?;
        self.word |= placed;
        Ok(())
    }

    #[inline]
    fn flag(&mut self, range: BitRange, value: bool) {
        self.word |= u64::from(value) << range.low;
    }

    /// Puts in an operand, if it fits; most of an encoding are operands, so which one did not is asked later.
    #[inline]
    fn operand(&mut self, operand: Operand, spec: &OperandSpec, range: BitRange) -> bool {
        let is_kind = OperandKinds::of(operand).inside(spec.class.kinds());
        // Absent or implied operands have no bits; the formats below say which number stands for an absent
        // one.
        let Some(number) = operand.number().filter(|_| !range.is_absent()) else { return is_kind };
        let in_sources = if number >= Operand::FIRST_AGPR { number - 256 } else { number };
        let value = if range.width == 8 && spec.class.is_vector() { in_sources & 0xff } else { in_sources };
        let (placed, fits) = range.placed(value);
        self.word |= placed;
        is_kind & fits
    }

    /// Everything except opcode and operands.
    #[inline]
    fn rest(&mut self, encoding: Encoding, format: Format) -> Result<(), EncodeError> {
        match encoding {
            Encoding::Sopk | Encoding::Sopp => self.simm16(),
            Encoding::Sopc if self.inst.op.info().takes_immediate() => {
                self.put(GPR_INDEX_MODE, self.inst.imm)
            }
            Encoding::Vop3a if format.is_long_interpolation() => self.interpolation(),
            Encoding::Vop3a | Encoding::Vop3b => self.vop3(encoding),
            Encoding::Vop3p => self.vop3p(format),
            Encoding::Mai | Encoding::MaiScaled => self.mai(),
            Encoding::Smem => self.smem(),
            Encoding::Ds => self.ds(format),
            Encoding::Mubuf => self.mubuf(format),
            Encoding::Mtbuf => self.mtbuf(),
            Encoding::Flat => self.flat(format),
            Encoding::Mimg => self.mimg(),
            Encoding::Exp => self.exp(),
            Encoding::Vintrp => {
                if self.inst.op.info().operands.len() == 1 {
                    self.put(graphics::PARAMETER, self.inst.modifiers.get_parameter())?;
                }
                self.put(graphics::ATTRIBUTE, self.inst.imm)
            }
            _ => Ok(()),
        }
    }

    /// A compressed export has two registers, each for two places.
    fn exp(&mut self) -> Result<(), EncodeError> {
        let inst = self.inst;
        let flags = inst.modifiers.get_export_flags();
        let is_compressed = flags & 1 != 0;
        let mut enabled = 0;
        for (index, operand) in inst.operands.iter().enumerate().take(inst.op.info().operands.len()) {
            let places = match (is_compressed, index) {
                (false, _) => 1 << index,
                (true, 0) => 0b0011,
                (true, 1) => 0b1100,
                (true, _) if operand.is_none() => continue,
                (true, _) => return Err(EncodeError::Operand { op: inst.op, index, operand: *operand }),
            };
            enabled |= if operand.is_none() { 0 } else { places };
        }
        self.put(graphics::ENABLED, enabled)?;
        self.put(graphics::TARGET, inst.imm)?;
        self.put(graphics::EXPORT_FLAGS, flags)
    }

    fn simm16(&mut self) -> Result<(), EncodeError> {
        let imm = match self.inst.op {
            Opcode::SSetregImm32B32 => self.inst.modifiers.get_hwreg(),
            _ => self.inst.imm,
        };
        if imm != 0 && !self.inst.op.info().takes_immediate() {
            return Err(EncodeError::Immediate { op: self.inst.op, imm });
        }
        // Both readings of 16 bits are accepted: as a positive number and sign-extended.
        let signed = imm as i32;
        self.put(SIMM16, if (-0x8000..0).contains(&signed) { imm & 0xffff } else { imm })
    }

    /// The attribute takes the place of the first source.
    fn interpolation(&mut self) -> Result<(), EncodeError> {
        let (imm, modifiers) = (self.inst.imm, self.inst.modifiers);
        self.put(graphics::LONG_ATTRIBUTE, imm >> 2 & 0x3f)?;
        self.put(graphics::LONG_CHANNEL, imm & 3)?;
        if imm >> 8 != 0 {
            if self.inst.op.info().operands.len() > 1 {
                return Err(EncodeError::Immediate { op: self.inst.op, imm });
            }
            self.put(graphics::LONG_PARAMETER, imm >> 8)?;
        }
        self.put(graphics::LONG_HIGH, modifiers.get_op_sel())?;
        self.put(vop::ABS, modifiers.get_abs())?;
        self.flag(vop::CLAMP, modifiers.has_clamp());
        self.put(vop::OMOD, modifiers.get_omod() as u32)?;
        self.put(vop::NEG, modifiers.get_neg())
    }

    fn vop3(&mut self, encoding: Encoding) -> Result<(), EncodeError> {
        let modifiers = self.inst.modifiers;
        if modifiers.is_empty() {
            return Ok(());
        }
        // The truth table of three sources takes the bits of signs and output modifier.
        let table = modifiers.get_bitop3();
        if table != 0 {
            self.put(vop::NEG, table & 0b111)?;
            self.put(vop::ABS, table >> 3 & 0b111)?;
            self.put(vop::OMOD, table >> 6)?;
            return self.put(vop::OP_SEL, modifiers.get_op_sel());
        }
        if encoding == Encoding::Vop3a {
            self.put(vop::ABS, modifiers.get_abs())?;
            self.put(vop::OP_SEL, modifiers.get_op_sel())?;
        }
        self.flag(vop::CLAMP, modifiers.has_clamp());
        self.put(vop::OMOD, modifiers.get_omod() as u32)?;
        self.put(vop::NEG, modifiers.get_neg())
    }

    fn vop3p(&mut self, format: Format) -> Result<(), EncodeError> {
        let modifiers = self.inst.modifiers;
        let op_sel_hi = modifiers.get_op_sel_hi_flip() ^ default_op_sel_hi(format);
        self.put(vop::ABS, modifiers.get_neg_hi())?;
        self.put(vop::PACKED_OP_SEL, modifiers.get_op_sel())?;
        self.flag(vop::CLAMP, modifiers.has_clamp());
        self.put(vop::OP_SEL_HI_2, op_sel_hi >> 2)?;
        self.put(vop::OP_SEL_HI_01, op_sel_hi & 0b11)?;
        self.put(vop::NEG, modifiers.get_neg_lo())
    }

    fn mai(&mut self) -> Result<(), EncodeError> {
        let modifiers = self.inst.modifiers;
        let [d, a, b, c, ..] = self.inst.operands;
        let in_acc = d.as_agpr().is_some();
        // D and C share one bit that says in which file they are; the index of a sparse one is a VGPR always.
        let has_c =
            matches!(self.inst.op.info().operands.get(3), Some(spec) if spec.class == OperandClass::MatrixC);
        if has_c && !c.is_constant() && c.as_agpr().is_some() != in_acc {
            return Err(EncodeError::Operand { op: self.inst.op, index: 3, operand: c });
        }
        self.put(vop::CBSZ, modifiers.get_cbsz())?;
        let scaled = self.inst.op.info().format == Format::MaiScaled;
        self.put(vop::ABID, modifiers.get_abid() | u32::from(scaled))?;
        self.put(vop::BLGP, modifiers.get_blgp())?;
        if self.arch.has_unified_registers() {
            self.flag(vop::ACC_CD, in_acc);
        } else if !in_acc {
            return Err(EncodeError::Operand { op: self.inst.op, index: 0, operand: d });
        }
        self.flag(vop::ACC_A, a.as_agpr().is_some());
        self.flag(vop::ACC_B, b.as_agpr().is_some());
        Ok(())
    }

    fn smem(&mut self) -> Result<(), EncodeError> {
        let inst = self.inst;
        let Some(index) = inst.op.info().scalar_offset() else { return Ok(()) };
        self.flag(memory::SMEM_GLC, inst.modifiers.has_sc0());
        if inst.op.info().meaning == Meaning::ProbeAddress {
            self.put(Encoding::Smem.layout().field(Field::Dst), inst.modifiers.get_probe())?;
        }
        let offset = inst.operands[index];
        if !offset.is_none() && inst.imm == 0 && !inst.modifiers.has_zero_offset() {
            // A scalar offset alone is encoded in the offset field, which is the older form that LLVM
            // prefers.
            let field = Encoding::Smem.layout().field(Field::Offset);
            let number = field.read(self.word);
            self.word &= (1 << field.low) - 1;
            return self.put(memory::SMEM_OFFSET, number);
        }
        self.flag(memory::SMEM_SGPR_ENABLE, !offset.is_none());
        self.flag(memory::SMEM_IMM, true);
        if inst.op.info().has_buffer_descriptor() {
            return self.put(memory::SMEM_BUFFER_OFFSET, inst.imm);
        }
        self.signed(memory::SMEM_OFFSET)
    }

    /// Puts the immediate as a signed number.
    fn signed(&mut self, range: BitRange) -> Result<(), EncodeError> {
        let (imm, unused) = (self.inst.imm, 32 - range.width);
        if ((imm << unused) as i32 >> unused) as u32 != imm {
            return Err(EncodeError::Immediate { op: self.inst.op, imm });
        }
        self.put(range, imm << unused >> unused)
    }

    /// The file of the data operands, which have to agree.
    fn data_in_acc(&self) -> Result<bool, EncodeError> {
        let mut file = if self.arch.has_unified_registers() { None } else { Some(false) };
        for (index, spec) in self.inst.op.info().operands.iter().enumerate() {
            if spec.class.is_vgpr_or_agpr() {
                let operand = self.inst.operands[index];
                let here = operand.as_agpr().is_some();
                if *file.get_or_insert(here) != here {
                    return Err(EncodeError::Operand { op: self.inst.op, index, operand });
                }
            }
        }
        Ok(file.unwrap_or(false))
    }

    /// The first half of a matrix instruction with scales.
    fn scales(&self) -> Result<u64, EncodeError> {
        let select = self.inst.modifiers.get_scale_select();
        let mut word = vop::LOAD_SCALES | vop::op_sel_of_scales(select);
        for (index, spec) in self.inst.op.info().operands.iter().enumerate() {
            let range = match spec.field {
                Field::ScaleA => vop::SCALE_A,
                Field::ScaleB => vop::SCALE_B,
                _ => continue,
            };
            let operand = self.inst.operands[index];
            let placed = operand.number().and_then(|number| range.place(number));
            word |= placed.ok_or(EncodeError::Operand { op: self.inst.op, index, operand })?;
        }
        Ok(word)
    }

    fn ds(&mut self, format: Format) -> Result<(), EncodeError> {
        let acc = self.data_in_acc()?;
        self.flag(memory::DS_ACC, acc);
        self.flag(memory::DS_GDS, format == Format::Gws || self.inst.modifiers.has_gds());
        self.put(memory::DS_OFFSET, self.inst.imm)
    }

    fn mubuf(&mut self, format: Format) -> Result<(), EncodeError> {
        let acc = self.data_in_acc()?;
        let modifiers = self.inst.modifiers;
        self.flag(memory::ACC, acc);
        self.flag(memory::MUBUF_OFFEN, modifiers.has_offen());
        self.flag(memory::MUBUF_IDXEN, modifiers.has_idxen());
        self.flag(memory::MUBUF_SC0, modifiers.has_sc0() || format.returns());
        self.flag(memory::MUBUF_SC1, modifiers.has_sc1());
        self.flag(memory::MUBUF_NT, modifiers.has_nt());
        self.flag(memory::MUBUF_LDS, format.is_to_lds());
        self.flag(memory::TFE, modifiers.has_tfe());
        if format == Format::MubufBare {
            return Ok(());
        }
        self.buffer_address(modifiers)?;
        self.put(memory::MUBUF_OFFSET, self.inst.imm)
    }

    fn mtbuf(&mut self) -> Result<(), EncodeError> {
        let acc = self.data_in_acc()?;
        let modifiers = self.inst.modifiers;
        self.flag(memory::ACC, acc);
        self.flag(memory::MUBUF_OFFEN, modifiers.has_offen());
        self.flag(memory::MUBUF_IDXEN, modifiers.has_idxen());
        self.flag(memory::MUBUF_SC0, modifiers.has_sc0());
        self.flag(memory::MTBUF_SC1, modifiers.has_sc1());
        self.flag(memory::MTBUF_NT, modifiers.has_nt());
        self.put(memory::MTBUF_FORMAT, modifiers.get_format_flip() ^ BufferFormat::USUAL.to_bits())?;
        self.buffer_address(modifiers)?;
        self.put(memory::MUBUF_OFFSET, self.inst.imm)
    }

    fn mimg(&mut self) -> Result<(), EncodeError> {
        let acc = self.data_in_acc()?;
        let modifiers = self.inst.modifiers;
        self.put(memory::IMAGE_DMASK, modifiers.get_dmask())?;
        for (range, is_set) in [
            (memory::IMAGE_ACC, acc),
            (memory::IMAGE_TFE, modifiers.has_tfe()),
            (memory::IMAGE_UNORM, modifiers.has_unorm()),
            (memory::IMAGE_SC0, modifiers.has_sc0()),
            (memory::IMAGE_SC1, modifiers.has_sc1()),
            (memory::IMAGE_NT, modifiers.has_nt()),
            (memory::IMAGE_DA, modifiers.has_da()),
            (memory::IMAGE_A16, modifiers.has_a16()),
            (memory::IMAGE_LWE, modifiers.has_lwe()),
            (memory::IMAGE_D16, modifiers.has_d16()),
        ] {
            self.flag(range, is_set);
        }
        Ok(())
    }

    /// The address exists exactly when an offset or an index is taken from it.
    fn buffer_address(&self, modifiers: Modifiers) -> Result<(), EncodeError> {
        let wanted = modifiers.wants_buffer_address();
        for (index, spec) in self.inst.op.info().operands.iter().enumerate() {
            let operand = self.inst.operands[index];
            if spec.class == OperandClass::BufferAddress && operand.is_none() == wanted {
                return Err(EncodeError::Operand { op: self.inst.op, index, operand });
            }
        }
        Ok(())
    }

    fn flat(&mut self, format: Format) -> Result<(), EncodeError> {
        let acc = self.data_in_acc()?;
        let modifiers = self.inst.modifiers;
        self.flag(memory::ACC, acc);
        self.put(memory::SEGMENT, segment(format))?;
        self.flag(memory::FLAT_SC0, modifiers.has_sc0() || format.returns());
        self.flag(memory::FLAT_SC1, modifiers.has_sc1());
        self.flag(memory::FLAT_NT, modifiers.has_nt());
        if matches!(format, Format::Flat | Format::FlatRtn) {
            return self.put(memory::FLAT_OFFSET, self.inst.imm);
        }
        let mut scratch_address = None;
        for (index, spec) in self.inst.op.info().operands.iter().enumerate() {
            let operand = self.inst.operands[index];
            match spec.class {
                OperandClass::ScalarBase => {
                    if operand.is_none() {
                        self.put(Encoding::Flat.layout().field(Field::Offset), memory::NO_BASE)?;
                    }
                    // Before both addresses could be given, each was encoded in the absence of the other.
                    if !self.arch.adds_scratch_addresses() && scratch_address == Some(!operand.is_none()) {
                        return Err(EncodeError::Operand { op: self.inst.op, index, operand });
                    }
                }
                OperandClass::ScratchAddress => scratch_address = Some(!operand.is_none()),
                _ => {}
            }
        }
        if self.arch.adds_scratch_addresses() {
            self.flag(memory::SCRATCH_VADDR, scratch_address == Some(true));
        } else {
            self.flag(memory::FLAT_LDS, format.is_to_lds());
        }
        self.signed(memory::GLOBAL_OFFSET)
    }
}

/// op_sel_hi of assembler text without modifiers.
pub(super) const fn default_op_sel_hi(format: Format) -> u32 {
    match format {
        Format::Vop3p => 0b111,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::isa::VReg;

    fn words(inst: Inst) -> Result<Vec<u32>, EncodeError> {
        let mut out = Vec::new();
        encode(&inst, Arch::Gfx942, &mut out).map(|()| out)
    }

    #[test]
    fn the_short_encoding_is_taken_where_it_can_be() {
        let add = |a, b| Inst::new(Opcode::VAddF32, &[Operand::vgpr(0), a, b]);
        assert_eq!(words(add(Operand::sgpr(1), Operand::vgpr(2))), Ok(vec![0x0200_0401]));
        assert_eq!(words(add(Operand::vgpr(2), Operand::sgpr(1))), Ok(vec![0xd101_0000, 0x0000_0302]));
        let forced = add(Operand::vgpr(1), Operand::vgpr(2)).modifiers(Modifiers::new().e64());
        assert_eq!(words(forced), Ok(vec![0xd101_0000, 0x0002_0501]));
        let literal = add(Operand::LITERAL, Operand::vgpr(2)).imm(0x4049_0fdb);
        assert_eq!(words(literal), Ok(vec![0x0200_04ff, 0x4049_0fdb]));
        assert_eq!((size_in_bytes(&literal), is_long(&literal), is_long(&forced)), (8, false, true));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_no_words() {
        let [v, s] = [Operand::vgpr(0), Operand::sgpr(4)];
        let load = Inst::new(Opcode::BufferLoadDword, &[v, Operand::NONE, s, Operand::ZERO]);
        let refused = [
            Inst::new(Opcode::VMovB32, &[Operand::virtual_register(VReg::from_u32(1), 0), v]),
            Inst::new(Opcode::VMovB32, &[s, v]),
            Inst::new(Opcode::VFmaF32, &[v, Operand::LITERAL, v, v]),
            load.imm(4096),
            load.modifiers(Modifiers::new().offen()),
            load.modifiers(Modifiers::new().clamp()),
            Inst::new(Opcode::BufferLoadDword, &[v, Operand::NONE, Operand::sgpr(2), Operand::ZERO]),
            Inst::new(Opcode::GlobalLoadDword, &[v, v, Operand::NONE]).imm(4096),
            Inst::new(Opcode::SBranch, &[]).imm(0x1_0000),
            Inst::new(Opcode::SBarrier, &[]).imm(1),
        ];
        for inst in refused {
            let mut out = Vec::new();
            assert!(encode(&inst, Arch::Gfx942, &mut out).is_err(), "{inst}");
            assert!(out.is_empty(), "{inst}");
        }
    }

    #[test]
    fn simm16_may_be_signed_or_not() {
        let branch = Inst::new(Opcode::SBranch, &[]);
        assert_eq!(words(branch.imm(-5i32 as u32)), words(branch.imm(0xfffb)));
    }
}
