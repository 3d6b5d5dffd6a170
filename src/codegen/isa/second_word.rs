//! The 64-bit encodings of the DPP and SDWA forms: a short encoding whose first source is a marker, and a
//! second word with the source itself (CDNA3 ISA guide, "VOP_SDWA", "VOP_DPP").

use super::dpp::{self, Dpp};
use super::error::{DecodeError, EncodeError};
use super::layout::{BitRange, Encoding, EncodingLayout};
use super::sdwa::{self, Sdwa};
use super::spec::{Field, OpInfo, OperandClass};
use super::{Inst, Modifiers, Omod, Opcode, Operand};
use crate::codegen::arch::Arch;

/// Number of a literal among the sources.
const LITERAL: u32 = 255;

/// True if SRC0 of a short encoding announces a second word of these kinds.
#[inline]
pub(super) fn is_announced(src0: u32) -> bool {
    matches!(src0, dpp::MARKER | sdwa::MARKER)
}

/// Both words.
pub(super) fn encode(inst: &Inst, info: &OpInfo, arch: Arch) -> Result<[u32; 2], EncodeError> {
    let op = inst.op;
    let layout = Encoding::of(info.format).layout();
    let is_sdwa = inst.modifiers.has_sdwa();
    let immediate = EncodeError::Immediate { op, imm: inst.imm };
    if !is_immediate(inst.imm, info, arch, is_sdwa) {
        return Err(immediate);
    }
    let mut words = Words { first: layout.fixed, second: u64::from(inst.imm) };
    if info.format.is_comparison() {
        words.second &= !u64::from(sdwa::RESULT);
    }
    words.first |= layout.opcode.place(info.code.into()).ok_or(immediate)?;
    let marker = if is_sdwa { sdwa::MARKER } else { dpp::MARKER };
    words.first |= layout.field(Field::Src0).place(marker).ok_or(immediate)?;
    for (index, spec) in info.operands.iter().enumerate() {
        let operand = inst.operands[index];
        let wrong = match operand.is_virtual() {
            true => EncodeError::Virtual { op, index },
            false => EncodeError::Operand { op, index, operand },
        };
        words.operand(layout, spec.field, spec.class, operand, is_sdwa).ok_or(wrong)?;
    }
    words.signs(inst.modifiers, is_sdwa);
    Ok([words.first as u32, words.second as u32])
}

/// True if the immediate is a control of the form, and nothing else.
pub(super) fn is_immediate(imm: u32, info: &OpInfo, arch: Arch, is_sdwa: bool) -> bool {
    match (is_sdwa, Sdwa::from_imm(imm)) {
        (false, _) => imm & !dpp::MEANINGFUL == 0 && Dpp::from_imm(imm).is_legal(arch, info.is_wide()),
        (true, Some(sdwa)) => sdwa.to_imm() == imm && (info.selects_result() || sdwa.has_no_result()),
        (true, None) => false,
    }
}

struct Words {
    first: u64,
    second: u64,
}

impl Words {
    fn operand(
        &mut self,
        layout: &EncodingLayout,
        field: Field,
        class: OperandClass,
        operand: Operand,
        is_sdwa: bool,
    ) -> Option<()> {
        let vgpr = operand.as_vgpr();
        // Inline constants count as scalar; there is no room for a literal.
        let scalar = operand.number().filter(|&number| is_sdwa && number < LITERAL);
        match (field, class) {
            (Field::Src0, _) => {
                self.second |= sdwa::SRC0.place(vgpr.or(scalar)?)?;
                self.second |= sdwa::IS_SCALAR[0].place(scalar.is_some().into())?;
            }
            (Field::Src1, _) => {
                self.first |= layout.field(Field::Src1).place(vgpr.or(scalar)?)?;
                self.second |= sdwa::IS_SCALAR[1].place(scalar.is_some().into())?;
            }
            (Field::Dst, OperandClass::Mask) if operand == Operand::VCC => {}
            (Field::Dst, OperandClass::Mask) => {
                self.second |= sdwa::MASK.place(scalar?)? | sdwa::HAS_MASK.place(1)?;
            }
            (Field::Dst, _) => self.first |= layout.field(Field::Dst).place(vgpr?)?,
            _ if operand != Operand::VCC => return None,
            _ => {}
        }
        Some(())
    }

    fn signs(&mut self, modifiers: Modifiers, is_sdwa: bool) {
        for source in 0..2 {
            let (negate, absolute) = sign_ranges(source, is_sdwa);
            self.flag(negate, modifiers.get_neg() >> source);
            self.flag(absolute, modifiers.get_abs() >> source);
            if is_sdwa {
                self.flag(sdwa::SIGN_EXTEND[source], modifiers.get_sign_extend() >> source);
            }
        }
        if is_sdwa {
            self.flag(sdwa::CLAMP, modifiers.has_clamp().into());
            self.second |= u64::from(modifiers.get_omod() as u32) << sdwa::OMOD.low;
        }
    }

    fn flag(&mut self, range: BitRange, bits: u32) {
        self.second |= u64::from(bits & 1) << range.low;
    }
}

/// Where negation and absolute value of a source are.
fn sign_ranges(source: usize, is_sdwa: bool) -> (BitRange, BitRange) {
    match is_sdwa {
        true => (sdwa::NEGATE[source], sdwa::ABSOLUTE[source]),
        false => (dpp::NEGATE[source], dpp::ABSOLUTE[source]),
    }
}

/// The instruction of an opcode whose short encoding announced a second word.
pub(super) fn decode(op: Opcode, first: u32, second: u32, arch: Arch) -> Result<Inst, DecodeError> {
    let info = op.info();
    let layout = Encoding::of(info.format).layout();
    let (first, word) = (u64::from(first), u64::from(second));
    let is_sdwa = layout.field(Field::Src0).read(first) == sdwa::MARKER;
    let mut inst = Inst::new(op, &[]);
    for (index, spec) in info.operands.iter().enumerate() {
        let vector_or_scalar = |number: u32, source: usize| {
            let scalar = is_sdwa && sdwa::IS_SCALAR[source].read(word) != 0;
            Operand::physical(if scalar { number & 0xff } else { number & 0xff | Operand::FIRST_VGPR })
        };
        inst.operands[index] = match (spec.field, spec.class) {
            (Field::Src0, _) => vector_or_scalar(sdwa::SRC0.read(word), 0),
            (Field::Src1, _) => vector_or_scalar(layout.field(Field::Src1).read(first), 1),
            (Field::Dst, OperandClass::Mask) if sdwa::HAS_MASK.read(word) != 0 => {
                Operand::physical(sdwa::MASK.read(word))
            }
            (Field::Dst, OperandClass::Mask) => Operand::VCC,
            (Field::Dst, _) => Operand::vgpr(layout.field(Field::Dst).read(first)),
            _ => Operand::VCC,
        };
        // The number of a literal is among the scalar ones, but there is no third word for it.
        if inst.operands[index] == Operand::LITERAL {
            return Err(DecodeError::Operand { op, index });
        }
    }
    inst.modifiers = modifiers(word, is_sdwa, info.format.is_comparison());
    inst.imm = if is_sdwa {
        // Where a comparison has its mask, others have the part of their result.
        let parts =
            if info.format.is_comparison() { second & !sdwa::RESULT | sdwa::NO_RESULT } else { second };
        Sdwa::from_imm(parts).ok_or(DecodeError::Control { op })?.to_imm()
    } else {
        Dpp::from_imm(second).to_imm()
    };
    if !is_immediate(inst.imm, info, arch, is_sdwa) {
        return Err(DecodeError::Control { op });
    }
    Ok(inst)
}

fn modifiers(word: u64, is_sdwa: bool, is_comparison: bool) -> Modifiers {
    let (mut neg, mut abs, mut sign_extend) = (0, 0, 0);
    for source in 0..2 {
        let (negate, absolute) = sign_ranges(source, is_sdwa);
        neg |= negate.read(word) << source;
        abs |= absolute.read(word) << source;
        sign_extend |= sdwa::SIGN_EXTEND[source].read(word) << source;
    }
    let all = Modifiers::new().neg(neg).abs(abs);
    if !is_sdwa {
        return all.dpp();
    }
    let all = all.sdwa().sign_extend(sign_extend);
    // Where a comparison has its mask, others have the treatment of their result.
    if is_comparison {
        return all;
    }
    let omod = Omod::from_bits(sdwa::OMOD.read(word));
    let all = all.omod(omod);
    if sdwa::CLAMP.read(word) != 0 { all.clamp() } else { all }
}
