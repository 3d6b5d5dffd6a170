//! Operand legality: the faults that an assembler would report, found before encoding.

use super::encode::encoding;
use super::meaning::{Calc, Meaning};
use super::spec::{Field, Format, Implicit, OpInfo, OperandClass, OperandKinds, OperandSpec, Role};
use super::{Inst, Opcode, Operand, second_word};
use crate::codegen::arch::Arch;

/// Why an instruction is not legal.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OperandError {
    /// An operand is not of the class that the row wants.
    #[error("`{}`: operand {index} cannot be {operand:?}", .op.mnemonic())]
    Class {
        /// Instruction.
        op: Opcode,
        /// Operand.
        index: usize,
        /// The operand.
        operand: Operand,
    },
    /// An operand after the last one of the row.
    #[error("`{}` has only {index} operands", .op.mnemonic())]
    TooMany {
        /// Instruction.
        op: Opcode,
        /// First operand too many.
        index: usize,
    },
    /// A register tuple starts at a number that is not a multiple of what the file wants.
    #[error("`{}`: operand {index}, {operand:?}, is not aligned", .op.mnemonic())]
    Alignment {
        /// Instruction.
        op: Opcode,
        /// Operand.
        index: usize,
        /// The operand.
        operand: Operand,
    },
    /// A register tuple leaves its file.
    #[error("`{}`: operand {index}, {operand:?}, goes beyond the register file", .op.mnemonic())]
    Range {
        /// Instruction.
        op: Opcode,
        /// Operand.
        index: usize,
        /// The operand.
        operand: Operand,
    },
    /// A literal in the 64-bit encoding.
    #[error("`{}`: no literal in the 64-bit encoding", .op.mnemonic())]
    Literal {
        /// Instruction.
        op: Opcode,
    },
    /// A vector instruction reads more than one scalar register or literal.
    #[error("`{}` reads more than one scalar value", .op.mnemonic())]
    ConstantBus {
        /// Instruction.
        op: Opcode,
    },
    /// Data operands in different files, or D and C of a matrix instruction.
    #[error("`{}`: operand {index}, {operand:?}, is in another register file than the first", .op.mnemonic())]
    File {
        /// Instruction.
        op: Opcode,
        /// Operand.
        index: usize,
        /// The operand.
        operand: Operand,
    },
    /// C of a matrix instruction overlaps D without being the same.
    #[error("`{}`: C overlaps D in part", .op.mnemonic())]
    Overlap {
        /// Instruction.
        op: Opcode,
    },
    /// Modifiers that the row does not have on this chip.
    #[error("`{}` does not have these modifiers on {arch}", .op.mnemonic())]
    Modifiers {
        /// Instruction.
        op: Opcode,
        /// Chip.
        arch: Arch,
    },
    /// The chip has no such instruction.
    #[error("`{}` does not exist on {arch}, only on {}", .op.mnemonic(), .op.info().arches)]
    Arch {
        /// Instruction.
        op: Opcode,
        /// Chip.
        arch: Arch,
    },
    /// The components that an image instruction names are none that it has.
    #[error("`{}` does not have these components", .op.mnemonic())]
    Components {
        /// Instruction.
        op: Opcode,
    },
    /// A DPP or SDWA control that means nothing on the chip.
    #[error("`{}` cannot have this DPP or SDWA control on {arch}", .op.mnemonic())]
    Control {
        /// Instruction.
        op: Opcode,
        /// Chip.
        arch: Arch,
    },
}

/// Checks one instruction for `arch`. Virtual registers are assumed to be what their place needs.
pub fn check(inst: &Inst, arch: Arch) -> Result<(), OperandError> {
    let op = inst.op;
    let info = op.info();
    if !info.arches.contains(arch) {
        return Err(OperandError::Arch { op, arch });
    }
    if !inst.modifiers.within(info.modifiers_on(arch, inst.modifiers)) {
        return Err(OperandError::Modifiers { op, arch });
    }
    if !inst.has_legal_components() {
        return Err(OperandError::Components { op });
    }
    let is_sdwa = inst.modifiers.has_sdwa();
    if inst.modifiers.has_second_word() && !second_word::is_immediate(inst.imm, info, arch, is_sdwa) {
        return Err(OperandError::Control { op, arch });
    }
    let count = info.operands.len();
    if let Some(beyond) = inst.operands[count..].iter().position(|operand| !operand.is_none()) {
        return Err(OperandError::TooMany { op, index: count + beyond });
    }
    for index in 0..count {
        check_operand(inst, info, arch, index)?;
    }
    check_files(inst, info, arch)?;
    check_scratch(inst, info, arch)?;
    if info.format.is_vop() {
        check_literal(inst, info)?;
        check_constant_bus(inst, info)?;
    }
    if let Meaning::Mfma(..) | Meaning::FormattedMfma(_) = info.meaning {
        check_overlap(inst)?;
    }
    Ok(())
}

fn check_operand(inst: &Inst, info: &OpInfo, arch: Arch, index: usize) -> Result<(), OperandError> {
    let (op, operand) = (inst.op, inst.operands[index]);
    let spec = &info.operands[index];
    let class = OperandError::Class { op, index, operand };
    if operand.is_virtual() {
        let wants_register = !matches!(spec.class, OperandClass::Literal);
        return if wants_register { Ok(()) } else { Err(class) };
    }
    if !OperandKinds::of(operand).inside(spec.class.kinds()) {
        return Err(class);
    }
    match spec.class {
        OperandClass::Sgpr | OperandClass::ScalarBase | OperandClass::Mask | OperandClass::MaskSource
            if !is_general(operand, spec) =>
        {
            return Err(class);
        }
        _ if operand == Operand::LDS_DIRECT && !takes_lds_direct(inst, index, arch) => return Err(class),
        OperandClass::BufferAddress => {
            let wanted = inst.modifiers.wants_buffer_address();
            if operand.is_none() == wanted {
                return Err(class);
            }
        }
        OperandClass::ImageAddress(_) if !takes_width(spec, inst.width(index)) => return Err(class),
        // The field before the second word has eight bits: VGPRs, in SDWA also scalar values, and VCC for
        // masks.
        OperandClass::VectorSource if inst.modifiers.has_dpp() && operand.as_vgpr().is_none() => {
            return Err(class);
        }
        OperandClass::VectorSource if inst.modifiers.has_sdwa() && operand == Operand::LITERAL => {
            return Err(class);
        }
        // Until the register files were one, C had to be AGPRs or one of the registers among the constants
        // (LLVM, FeatureMFMAInlineLiteralBug), and an AGPR was written from a VGPR or a constant.
        OperandClass::MatrixC
            if !arch.has_unified_registers()
                && operand.as_agpr().is_none()
                && !matches!(operand.number(), Some(235..=239 | 251..=253)) =>
        {
            return Err(class);
        }
        OperandClass::VectorInline
            if info.operands[0].class == OperandClass::Agpr
                && !arch.has_unified_registers()
                && (operand.is_scalar_register()
                    || matches!(operand.number(), Some(235..=239 | 251..=253))) =>
        {
            return Err(class);
        }
        _ => {}
    }
    let implied = matches!(spec.field, Field::Sdst | Field::Src2);
    if implied && inst.modifiers.has_second_word() && operand != Operand::VCC {
        return Err(class);
    }
    check_tuple(inst, arch, index)
}

/// True if the address of an image instruction can have so many registers: from the least to the most, or
/// eight in place of the most from five on (LLVM, MIMGInstructions.td, `MIMG_Sampler_AddrSizes`). Other
/// operands have one width.
pub(super) const fn takes_width(spec: &OperandSpec, width: u8) -> bool {
    match spec.class {
        OperandClass::ImageAddress(most) => {
            spec.width <= width && width <= most || width == 8 && 5 <= most && most <= 8
        }
        _ => width == spec.width,
    }
}

/// True if a scalar register can be where SGPRs are wanted. EXEC can be a mask and an address, but neither
/// data nor a descriptor; M0 can be the offset of scratch alone (LLVM's register classes `SReg_64_XEXEC`,
/// `SReg_64` and `SReg_32_XEXEC_HI`).
fn is_general(operand: Operand, spec: &OperandSpec) -> bool {
    let is_address = spec.class == OperandClass::ScalarBase || spec.field == Field::Base && spec.width == 2;
    match operand {
        Operand::EXEC => is_address || spec.class != OperandClass::Sgpr,
        Operand::M0 => is_address && spec.width == 1,
        _ => !operand.is_scalar_register() || operand.number() < Some(124),
    }
}

/// True if a source can come straight from LDS: the first one of 32 bits at most, up to gfx908, unless the
/// instruction exchanges its sources (LLVM, AMDGPUAsmParser.cpp, `validateLdsDirect`).
pub(super) fn takes_lds_direct(inst: &Inst, index: usize, arch: Arch) -> bool {
    use Calc::{ShiftLeftRev, ShiftRightRev, SubRev};
    use Meaning::{CarryInOut, CarryOut, Packed, Vector};
    let spec = &inst.op.info().operands[index];
    let is_reversed = matches!(
        inst.op.info().meaning,
        Vector(SubRev | ShiftLeftRev | ShiftRightRev, _)
            | Packed(SubRev | ShiftLeftRev | ShiftRightRev, _)
            | CarryOut(SubRev)
            | CarryInOut(SubRev)
    );
    spec.class == OperandClass::VectorSource
        && spec.field == Field::Src0
        && spec.width == 1
        && !arch.has_unified_registers()
        && !is_reversed
        && !inst.modifiers.has_second_word()
}

fn check_tuple(inst: &Inst, arch: Arch, index: usize) -> Result<(), OperandError> {
    let (op, operand) = (inst.op, inst.operands[index]);
    let width = u32::from(inst.width(index));
    // Global wave sync reads one register, but needs it where a pair could be (LLVM, FeatureGFX90AInsts).
    let aligned = width > 1 || inst.op.info().format == Format::Gws;
    let Some(number) = operand.number().filter(|_| aligned && !operand.is_constant()) else {
        return Ok(());
    };
    let (first, end) = match number {
        0..102 => (0, 102),
        102..108 => (number & !1, (number & !1) + 2),
        108..124 => (108, 124),
        124..256 => (number & !1, (number & !1) + 2),
        256..512 => (256, 512),
        _ => (512, 768),
    };
    // SGPR pairs are even, larger SGPR tuples by four; VGPR tuples are even from gfx90a on (LLVM
    // SIRegisterInfo.td), but for one instruction (AMDGPUAsmParser.cpp, `validateVGPRAlign`).
    let alignment = match number {
        0..128 if width > 2 => 4,
        256.. if op == Opcode::DsReadB96TrB6 => 1,
        256.. if !arch.has_unified_registers() => 1,
        _ => 2,
    };
    if !(number - first).is_multiple_of(alignment) {
        return Err(OperandError::Alignment { op, index, operand });
    }
    if number + width > end {
        return Err(OperandError::Range { op, index, operand });
    }
    Ok(())
}

/// Data operands of a memory instruction share a file, and so do D and C of a matrix instruction.
fn check_files(inst: &Inst, info: &OpInfo, arch: Arch) -> Result<(), OperandError> {
    let is_matrix = matches!(info.format, Format::Mai | Format::MaiScaled);
    // Before the files were one, memory instructions only took VGPRs and matrix results only AGPRs.
    let mut first: Option<bool> = if arch.has_unified_registers() { None } else { Some(is_matrix) };
    for (index, spec) in info.operands.iter().enumerate() {
        let operand = inst.operands[index];
        let bound = match spec.class {
            OperandClass::ImageData => true,
            OperandClass::VgprOrAgpr => !is_matrix || spec.role != Role::Use,
            OperandClass::MatrixC => !operand.is_constant(),
            _ => false,
        };
        if !bound || operand.is_virtual() {
            continue;
        }
        let here = operand.as_agpr().is_some();
        if *first.get_or_insert(here) != here {
            return Err(OperandError::File { op: inst.op, index, operand });
        }
    }
    Ok(())
}

/// Before a scratch access could have both addresses at once, one of them had to be there.
fn check_scratch(inst: &Inst, info: &OpInfo, arch: Arch) -> Result<(), OperandError> {
    let place = |class| info.operands.iter().position(|spec| spec.class == class);
    let (Some(vector), Some(scalar)) = (place(OperandClass::ScratchAddress), place(OperandClass::ScalarBase))
    else {
        return Ok(());
    };
    let operand = inst.operands[scalar];
    if !arch.adds_scratch_addresses() && inst.operands[vector].is_none() == operand.is_none() {
        return Err(OperandError::Class { op: inst.op, index: scalar, operand });
    }
    Ok(())
}

fn check_literal(inst: &Inst, info: &OpInfo) -> Result<(), OperandError> {
    let long = encoding(inst, info).layout().bytes >= 8;
    if long && inst.operands.contains(&Operand::LITERAL) {
        return Err(OperandError::Literal { op: inst.op });
    }
    Ok(())
}

/// On gfx9 a vector instruction reads one scalar register (or pair) or one literal (CDNA3 ISA guide, "Scalar
/// operands").
fn check_constant_bus(inst: &Inst, info: &OpInfo) -> Result<(), OperandError> {
    // Reads count as one only if they are of the same registers: `vcc` and `vcc_lo` are two.
    let mut read = info.reads.contains(Implicit::VCC).then_some((Operand::VCC, 2));
    for (index, spec) in info.operands.iter().enumerate() {
        let operand = inst.operands[index];
        let special = matches!(operand.number(), Some(235..=239 | 251..=253 | 255));
        // The number of the written lane comes from M0 on another path (LLVM,
        // `validateConstantBusLimitations`).
        let is_lane =
            info.meaning == Meaning::WriteLane && spec.field == Field::Src1 && operand == Operand::M0;
        if spec.role == Role::Def || is_lane || !(operand.is_scalar_register() || special) {
            continue;
        }
        let this = (operand, spec.width);
        if *read.get_or_insert(this) != this {
            return Err(OperandError::ConstantBus { op: inst.op });
        }
    }
    Ok(())
}

/// The same registers or none in common; LLVM's assembler allows parts for D of up to four registers.
fn check_overlap(inst: &Inst) -> Result<(), OperandError> {
    let [d, _, _, c, ..] = inst.operands;
    let width = u32::from(inst.width(0));
    let (Some(d), Some(c)) = (d.number(), c.number().filter(|_| !c.is_constant())) else { return Ok(()) };
    if width > 4 && d != c && d < c + width && c < d + width {
        return Err(OperandError::Overlap { op: inst.op });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::isa::{Modifiers, VReg};

    const V: fn(u32) -> Operand = Operand::vgpr;
    const S: fn(u32) -> Operand = Operand::sgpr;
    const A: fn(u32) -> Operand = Operand::agpr;

    #[test]
    fn legal_instructions_pass() {
        let legal = [
            Inst::new(Opcode::VAddF32, &[V(0), S(1), V(2)]),
            Inst::new(Opcode::VAddF32, &[V(0), S(1), S(1)]),
            Inst::new(Opcode::VAddF32, &[V(0), Operand::LITERAL, V(2)]).imm(0x1234),
            Inst::new(Opcode::SLoadDwordx4, &[S(4), S(2), Operand::NONE]),
            Inst::new(
                Opcode::VAddF32,
                &[
                    Operand::virtual_register(VReg::from_u32(7), 0),
                    Operand::virtual_register(VReg::from_u32(8), 3),
                    V(0),
                ],
            ),
            Inst::new(Opcode::VMfmaF32_32x32x8F16, &[A(0), V(0), V(2), A(0)]),
        ];
        for inst in legal {
            assert_eq!(check(&inst, Arch::Gfx942), Ok(()), "{inst}");
        }
    }

    #[test]
    fn each_rule_refuses_what_breaks_it() {
        let none = Modifiers::new();
        let mfma = |d, a, b, c| Inst::new(Opcode::VMfmaF32_32x32x8F16, &[d, a, b, c]);
        let refused = [
            (Inst::new(Opcode::VAddF32, &[S(0), V(1), V(2)]), "cannot be"),
            (Inst::new(Opcode::VAddF32, &[V(0), A(1), V(2)]), "cannot be"),
            (Inst::new(Opcode::VNotB32, &[V(0), V(1), V(2)]), "has only 2 operands"),
            (Inst::new(Opcode::VAddF64, &[V(1), V(2), V(4)]), "not aligned"),
            (Inst::new(Opcode::SLoadDwordx4, &[S(2), S(4), Operand::NONE]), "not aligned"),
            (Inst::new(Opcode::DsReadB128, &[V(254), V(0)]), "goes beyond"),
            (Inst::new(Opcode::VFmaF32, &[V(0), Operand::LITERAL, V(1), V(2)]).imm(9), "no literal"),
            (Inst::new(Opcode::VAddF32, &[V(0), V(1), Operand::LITERAL]).imm(9), "no literal"),
            (Inst::new(Opcode::VFmaF32, &[V(0), S(1), S(2), V(2)]), "more than one scalar"),
            (Inst::new(Opcode::VDivFmasF32, &[V(0), S(1), V(1), V(2)]), "more than one scalar"),
            (Inst::new(Opcode::DsWrite2B32, &[V(0), V(1), A(2)]), "another register file"),
            (mfma(A(0), V(0), V(2), V(16)), "another register file"),
            (mfma(A(0), V(0), V(2), A(8)), "overlaps"),
            (Inst::new(Opcode::VAddU32, &[V(0), V(1), V(2)]).modifiers(none.neg(1)), "these modifiers"),
            (Inst::new(Opcode::BufferLoadDword, &[V(0), V(1), S(4), S(0)]), "cannot be"),
        ];
        for (inst, reason) in refused {
            let error = check(&inst, Arch::Gfx942).expect_err(&inst.to_string()).to_string();
            assert!(error.contains(reason), "{inst}: {error}");
        }
    }
}
