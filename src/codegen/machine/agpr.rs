//! Which operands may be accumulation registers. On gfx90a and later AGPRs are the second half of one
//! register file: matrix instructions take A, B, C and D from there, loads and stores their data; the other
//! vector instructions do not.
//!
//! Data operands of one memory instruction share a file, and so do C and D of a matrix instruction (CDNA3 ISA
//! guide, the ACC bit of the memory formats, ACC_CD of MFMA).
//!
//! On gfx908 AGPRs are a file of their own: C and D of matrix instructions have to be there, A and B may be,
//! and nothing else takes them but `v_accvgpr_read_b32` and `v_accvgpr_write_b32` (CDNA ISA guide, "Matrix
//! Arithmetic Instructions").

use super::access::as_copy;
use crate::codegen::isa::{Inst, Operand, OperandClass, Role, Unit};
use crate::codegen::target::AccumulationFile;

/// True if operand `index` can be an AGPR.
pub(super) fn takes_agpr(inst: &Inst, index: usize, file: AccumulationFile) -> bool {
    use OperandClass::{Agpr, ImageData, MatrixC, MatrixFormatted, VgprOrAgpr};
    let info = inst.op.info();
    match (info.operands[index].class, file) {
        (_, AccumulationFile::None) => false,
        (Agpr | MatrixC | MatrixFormatted, _) => true,
        (VgprOrAgpr | ImageData, AccumulationFile::Unified { .. }) => true,
        (VgprOrAgpr, AccumulationFile::Separate) => matches!(info.unit, Unit::Mfma(_)),
        _ => false,
    }
}

/// True if operand `index` has to be an AGPR where these have a file of their own: C or D.
pub(super) fn accumulates(inst: &Inst, index: usize) -> bool {
    let info = inst.op.info();
    matches!(info.unit, Unit::Mfma(_))
        && takes_agpr(inst, index, AccumulationFile::Separate)
        && is_bound(inst, index)
}

/// True if operand `index` must be in the same file as the other operands of which this is true.
fn is_bound(inst: &Inst, index: usize) -> bool {
    let info = inst.op.info();
    let spec = &info.operands[index];
    match spec.class {
        OperandClass::ImageData => true,
        OperandClass::VgprOrAgpr => !matches!(info.unit, Unit::Mfma(_)) || spec.role != Role::Use,
        OperandClass::MatrixC => !inst.operands[index].is_constant(),
        _ => false,
    }
}

/// True if operand `index` can be an AGPR while the others are where `in_agpr` says.
pub(super) fn may_be_agpr(
    inst: &Inst,
    index: usize,
    file: AccumulationFile,
    in_agpr: impl Fn(Operand) -> bool,
) -> bool {
    takes_agpr(inst, index, file)
        && (!is_bound(inst, index)
            || (0..inst.op.info().operands.len())
                .filter(|&other| other != index && is_bound(inst, other))
                .all(|other| in_agpr(inst.operands[other])))
}

/// True for a move that can write an AGPR instead: of a VGPR or an inline constant.
pub(super) fn becomes_agpr_write(inst: &Inst) -> bool {
    let source = inst.operands[1];
    let moves = inst.op == crate::codegen::isa::Opcode::VMovB32 && inst.modifiers.is_empty();
    let constant = super::rematerialise::moves_constant(inst) && source != Operand::LITERAL;
    moves && (constant || as_copy(inst).is_some())
}
