//! The hazards that software covers with wait states, as data: which instruction writes (or reads) what, which one must
//! not come too soon behind it, and how many wait states there must be between the two on each target.
//!
//! Sources: AMD's instruction set guides (MI200 sections 4.5 and 7.2, CDNA3 4.5 and 7.5, CDNA4 4.5 and 7.6) and LLVM's
//! GCNHazardRecognizer.cpp; where they differ, the larger number. Rows that need an instruction which the table does not
//! have (DPP, SDWA, SMFMAC, permlane swaps, fp8 conversions) come with that instruction.

use super::access::{Range, Ranges, accesses, implicit_ranges, is_valu, is_vmem};
use crate::codegen::isa::{
    Arch, Calc, Element, Field, Format, Implicit, Inst, Meaning, OpInfo, Operand, OperandClass, Role, Unit,
};

/// Column of a chip in the tables, which begin with gfx90a.
pub(super) fn column(arch: Arch) -> usize {
    (arch as usize).saturating_sub(Arch::Gfx90a as usize)
}

/// Kind of instruction, as the guides sort them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Valu,
    ValuOrMatrix,
    ValuButDot,
    ValuButTrans,
    Trans,
    /// A result that lands in the high half of a register.
    HighHalf,
    Dot,
    Dgemm,
    FmaF64,
    Matrix,
    Salu,
    Vmem,
    /// VMEM and LDS.
    Memory,
    LoadToLds,
    /// VMEM stores of more than 64 bits.
    WideStore,
    DivFmas,
    /// `v_readlane`, `v_writelane`.
    LaneSelect,
    /// `v_readlane`, `v_readfirstlane`.
    LaneRead,
    /// All three.
    Lane,
    Message,
    SetRegister,
    GetRegister,
    /// Every vector instruction.
    Vector,
}

impl Who {
    /// Whether an opcode is of this kind.
    pub fn contains(self, info: &OpInfo) -> bool {
        use Meaning as M;
        let valu = is_valu(info);
        let matrix = matches!(info.unit, Unit::Mfma(_));
        let dot = matches!(info.meaning, M::Dot(_));
        match self {
            Who::Valu => valu,
            Who::ValuOrMatrix => valu || matrix,
            Who::ValuButDot => valu && !dot,
            Who::ValuButTrans => info.unit == Unit::Valu,
            Who::Trans => info.unit == Unit::Trans,
            Who::HighHalf => info.meaning == M::FmaMixHigh || has_op_sel(info),
            Who::Dot => dot,
            Who::Dgemm => matches!(info.meaning, M::Mfma(_, Element::F64, ..)),
            Who::FmaF64 => valu && info.meaning == M::Vector(Calc::Fma, Element::F64),
            Who::Matrix => matrix,
            Who::Salu => info.unit == Unit::Salu,
            Who::Vmem => is_vmem(info),
            Who::Memory => is_vmem(info) || info.unit == Unit::Lds,
            Who::LoadToLds => matches!(info.meaning, M::LoadToLds(_)),
            Who::WideStore => {
                is_vmem(info) && info.operands.iter().any(|o| o.field == Field::Data0 && o.width > 2) && {
                    matches!(info.meaning, M::Store(_) | M::Atomic(..) | M::AtomicReturn(..))
                }
            }
            Who::DivFmas => matches!(info.meaning, M::Vector(Calc::DivFmas, _)),
            Who::LaneSelect => matches!(info.meaning, M::ReadLane | M::WriteLane),
            Who::LaneRead => matches!(info.meaning, M::ReadLane | M::ReadFirstLane),
            Who::Lane => matches!(info.meaning, M::ReadLane | M::ReadFirstLane | M::WriteLane),
            Who::Message => info.meaning == M::SendMessage,
            Who::SetRegister => info.meaning == M::SetHardwareRegister,
            Who::GetRegister => matches!(info.meaning, M::GetHardwareRegister | M::SetHardwareRegister),
            Who::Vector => valu || matrix || is_vmem(info) || info.unit == Unit::Lds,
        }
    }
}

/// Formats whose modifiers have op_sel with bit 3 for the result.
fn has_op_sel(info: &OpInfo) -> bool {
    is_valu(info) && !matches!(info.format, Format::Vop3p | Format::Vop3pMix | Format::Mai)
}

/// Which registers of the instruction count.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// None in particular: the instruction as such.
    Itself,
    /// Written SGPRs and VCC.
    WrittenScalars,
    /// Written VCC.
    WrittenVcc,
    /// Written EXEC.
    WrittenExec,
    /// Written M0.
    WrittenM0,
    /// Written VGPRs and AGPRs.
    WrittenVectors,
    /// The same of a result in the high half.
    WrittenHighHalf,
    /// Read SGPRs and VCC, named as operands.
    ReadScalars,
    /// Read VGPRs and AGPRs.
    ReadVectors,
    /// Read or written VGPRs and AGPRs.
    AnyVectors,
    /// A and B of a dot product.
    Factors,
    /// The lane number of `v_readlane` and `v_writelane`.
    LaneNumber,
    /// VCC, read without being named.
    ImplicitVcc,
    /// EXEC, read as a number.
    ExecNumber,
    /// VCCZ or EXECZ, read as a number: stands for VCC or EXEC.
    ZeroFlag,
    /// M0, read without being named.
    ImplicitM0,
    /// Data of a store whose scalar offset, if it has one, is no register.
    StoreData,
    /// Hardware register of `s_getreg` and `s_setreg`.
    HardwareRegister,
}

impl What {
    /// False if no instruction of this row has such registers; a cheap way to rule rows out.
    pub fn possible(self, info: &OpInfo) -> bool {
        let writes = |classes: &[OperandClass]| {
            info.operands.iter().any(|o| o.role != Role::Use && classes.contains(&o.class))
        };
        let scalar_result = || writes(&[OperandClass::ScalarDst, OperandClass::Mask, OperandClass::Sgpr]);
        let vector_result = || writes(&[OperandClass::Vgpr, OperandClass::Agpr, OperandClass::VgprOrAgpr]);
        match self {
            What::WrittenScalars | What::WrittenVcc => scalar_result() || info.writes.contains(Implicit::VCC),
            What::WrittenExec => scalar_result() || info.writes.contains(Implicit::EXEC),
            What::WrittenM0 => scalar_result(),
            What::WrittenVectors | What::WrittenHighHalf => vector_result(),
            _ => true,
        }
    }

    /// The registers, as ranges of operand numbers; `None` for [`What::Itself`].
    pub fn of(self, inst: &Inst) -> Option<Ranges> {
        let info = inst.op.info();
        let mut ranges = Ranges::EMPTY;
        let in_scalars = |range: Range| range.start < Range::M0.start;
        for access in accesses(inst) {
            let Some(range) = access.range() else { continue };
            let counts = match self {
                What::WrittenScalars => access.writes() && in_scalars(range),
                What::WrittenVcc => access.writes() && range.overlaps(Range::VCC),
                What::WrittenExec => access.writes() && range.overlaps(Range::EXEC),
                What::WrittenM0 => access.writes() && range == Range::M0,
                What::WrittenVectors => access.writes() && range.is_vector(),
                What::WrittenHighHalf => {
                    let high = !has_op_sel(info) || inst.modifiers.get_op_sel() & 8 != 0;
                    access.writes() && range.is_vector() && high
                }
                What::ReadScalars => access.reads() && in_scalars(range),
                What::ReadVectors => access.reads() && range.is_vector(),
                What::AnyVectors => range.is_vector(),
                What::Factors => range.is_vector() && matches!(access.field, Field::Src0 | Field::Src1),
                What::LaneNumber => access.field == Field::Src1,
                What::ExecNumber => access.reads() && range.overlaps(Range::EXEC),
                What::StoreData => access.field == Field::Data0 && !has_scalar_offset(inst),
                _ => false,
            };
            if counts {
                ranges.push(range);
            }
        }
        let implicit = |set: Implicit, only: Range, ranges: &mut Ranges| {
            implicit_ranges(set).filter(|range| *range == only).for_each(|range| ranges.push(range));
        };
        match self {
            What::Itself => return None,
            What::WrittenScalars | What::WrittenVcc => implicit(info.writes, Range::VCC, &mut ranges),
            What::WrittenExec => implicit(info.writes, Range::EXEC, &mut ranges),
            What::ImplicitVcc => implicit(info.reads, Range::VCC, &mut ranges),
            What::ImplicitM0 => implicit(info.reads, Range::M0, &mut ranges),
            What::ZeroFlag => {
                for operand in inst.operands {
                    match operand {
                        Operand::VCCZ => ranges.push(Range::VCC),
                        Operand::EXECZ => ranges.push(Range::EXEC),
                        _ => {}
                    }
                }
            }
            What::HardwareRegister => {
                let hwreg = match info.operands.first() {
                    Some(spec) if spec.class == OperandClass::Literal => inst.modifiers.get_hwreg(),
                    _ => inst.imm,
                };
                ranges.push(Range { start: (hwreg & 63) as u16, len: 1 });
            }
            _ => {}
        }
        Some(ranges)
    }
}

fn has_scalar_offset(inst: &Inst) -> bool {
    inst.op.info().format.is_mubuf()
        && accesses(inst).any(|access| access.field == Field::Offset && access.operand.is_scalar_register())
}

/// A further condition of a row.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum When {
    /// None.
    Always,
    /// Both are the same instruction.
    SameOpcode,
    /// They are not.
    OtherOpcode,
    /// A DGEMM stands between them.
    DgemmBetween,
}

/// One hazard: `then` must stay `waits` wait states behind `first`, if the registers of both meet.
#[derive(Debug)]
pub(super) struct Row {
    pub first: (Who, What),
    pub then: (Who, What),
    pub when: When,
    /// By [`Arch`].
    pub waits: [u8; 3],
}

const fn row(first: (Who, What), then: (Who, What), when: When, waits: [u8; 3]) -> Row {
    Row { first, then, when, waits }
}

/// Longest number of wait states in [`ROWS`].
pub(super) const LONGEST_ROW: u32 = 5;

/// Everything but results of matrix instructions.
pub(super) static ROWS: &[Row] = &{
    use What::*;
    use When::*;
    use Who::*;
    [
        row((Valu, WrittenScalars), (Vmem, ReadScalars), Always, [5, 5, 5]),
        row((Valu, WrittenM0), (LoadToLds, ImplicitM0), Always, [5, 5, 5]),
        row((Valu, WrittenExec), (Vmem, Itself), Always, [5, 5, 5]),
        row((Valu, WrittenScalars), (LaneSelect, LaneNumber), Always, [4, 4, 4]),
        row((Valu, WrittenM0), (LaneSelect, LaneNumber), Always, [4, 4, 4]),
        row((Valu, WrittenVcc), (DivFmas, ImplicitVcc), Always, [4, 4, 4]),
        row((Valu, WrittenVcc), (Valu, ZeroFlag), Always, [5, 5, 5]),
        row((Valu, WrittenExec), (Valu, ZeroFlag), Always, [5, 5, 5]),
        row((Valu, WrittenScalars), (Valu, ReadScalars), Always, [0, 2, 2]),
        row((Valu, WrittenVectors), (LaneRead, ReadVectors), Always, [0, 1, 1]),
        row((Valu, WrittenExec), (Lane, Itself), Always, [0, 4, 4]),
        row((Valu, WrittenExec), (Valu, ExecNumber), Always, [0, 2, 2]),
        row((Trans, WrittenVectors), (ValuButTrans, ReadVectors), Always, [0, 1, 1]),
        row((HighHalf, WrittenHighHalf), (Valu, AnyVectors), Always, [0, 1, 1]),
        row((WideStore, StoreData), (ValuOrMatrix, WrittenVectors), Always, [1, 2, 2]),
        row((WideStore, StoreData), (Memory, WrittenVectors), Always, [1, 1, 1]),
        row((Salu, WrittenM0), (Message, ImplicitM0), Always, [1, 1, 1]),
        row((Salu, WrittenM0), (LoadToLds, ImplicitM0), Always, [1, 1, 1]),
        row((SetRegister, HardwareRegister), (GetRegister, HardwareRegister), Always, [2, 2, 2]),
        row((Valu, WrittenVectors), (Memory, ReadVectors), DgemmBetween, [2, 0, 0]),
        row((Dgemm, Itself), (FmaF64, Itself), Always, [2, 2, 2]),
        row((Dot, WrittenVectors), (Dot, Factors), SameOpcode, [3, 3, 3]),
        row((Dot, WrittenVectors), (Vector, AnyVectors), OtherOpcode, [3, 3, 3]),
        row((ValuButDot, WrittenVectors), (Matrix, ReadVectors), Always, [2, 2, 2]),
        row((Valu, WrittenExec), (Matrix, Itself), Always, [4, 4, 4]),
    ]
};

/// Pipe of a matrix instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum MatrixClass {
    /// Everything else.
    Xdl,
    /// F32 inputs, from gfx942 on.
    Sgemm,
    /// F64.
    Dgemm,
}

/// Class and passes of a matrix instruction.
pub(super) fn matrix_class(info: &OpInfo, target: Arch) -> Option<(MatrixClass, u8)> {
    let Unit::Mfma(passes) = info.unit else { return None };
    let class = match info.meaning {
        Meaning::Mfma(_, Element::F64, ..) => MatrixClass::Dgemm,
        Meaning::Mfma(_, Element::F32, ..) if target != Arch::Gfx90a => MatrixClass::Sgemm,
        _ => MatrixClass::Xdl,
    };
    Some((class, passes))
}

/// What a later instruction does with the registers of a matrix instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum MatrixUse {
    /// Its D is the later one's C exactly, both have the same number of passes; class of the later one.
    CSame(MatrixClass),
    /// The same with another number of passes.
    CSameRegisters(MatrixClass),
    /// Its D overlaps the later one's C.
    COverlap(MatrixClass),
    /// Its D is in A or B of a matrix instruction.
    AOrB,
    /// Its D is read or written by the vector ALU, or loaded into.
    Valu,
    /// Its D is read by a memory instruction.
    Memory,
    /// Its C is written by the vector ALU or loaded into.
    WritesC,
}

/// Number of different [`MatrixUse`] values.
pub(super) const MATRIX_USES: usize = 13;

impl MatrixUse {
    /// Dense index.
    pub const fn index(self) -> usize {
        match self {
            MatrixUse::CSame(class) => class as usize,
            MatrixUse::CSameRegisters(class) => 3 + class as usize,
            MatrixUse::COverlap(class) => 6 + class as usize,
            MatrixUse::AOrB => 9,
            MatrixUse::Valu => 10,
            MatrixUse::Memory => 11,
            MatrixUse::WritesC => 12,
        }
    }
}

/// Column of a number of passes.
pub(super) const fn passes_column(passes: u8) -> usize {
    match passes {
        2 => 0,
        4 => 1,
        8 => 2,
        _ => 3,
    }
}

/// One hazard of a matrix result: wait states by [`Arch`] and by passes 2, 4, 8, 16. DGEMM has two shapes, which
/// stand under their passes on gfx90a and gfx942: 4x4x4 under 4, 16x16x4 under 8.
pub(super) struct MatrixRow {
    pub first: MatrixClass,
    pub then: MatrixUse,
    pub waits: [[u8; 4]; 3],
}

const fn matrix(first: MatrixClass, then: MatrixUse, waits: [[u8; 4]; 3]) -> MatrixRow {
    MatrixRow { first, then, waits }
}

/// Longest number of wait states in [`MATRIX_ROWS`].
pub(super) const LONGEST_MATRIX_ROW: u32 = 20;

/// Results of matrix instructions. What is not there needs no wait states.
pub(super) static MATRIX_ROWS: &[MatrixRow] = &{
    use MatrixClass::*;
    use MatrixUse::*;
    const NO: [u8; 4] = [0; 4];
    const P: [u8; 4] = [2, 4, 8, 16];
    const P1: [u8; 4] = [3, 5, 9, 17];
    const P2: [u8; 4] = [4, 6, 10, 18];
    const P3: [u8; 4] = [5, 7, 11, 19];
    // gfx950: one more than gfx942 except after two passes.
    const P4: [u8; 4] = [5, 8, 12, 20];
    const FIRST: [u8; 4] = [2, 0, 0, 0];
    [
        matrix(Xdl, CSame(Xdl), [NO, FIRST, FIRST]),
        matrix(Xdl, CSameRegisters(Xdl), [P, P1, P2]),
        matrix(Xdl, COverlap(Xdl), [P, P1, P2]),
        matrix(Xdl, CSame(Sgemm), [NO, P1, [3, 6, 10, 18]]),
        matrix(Xdl, CSameRegisters(Sgemm), [NO, P1, [3, 6, 10, 18]]),
        matrix(Xdl, COverlap(Sgemm), [NO, P1, [3, 6, 10, 18]]),
        matrix(Xdl, CSame(Dgemm), [P1, P1, [3, 6, 10, 18]]),
        matrix(Xdl, CSameRegisters(Dgemm), [P1, P1, [3, 6, 10, 18]]),
        matrix(Xdl, COverlap(Dgemm), [P1, P1, [3, 6, 10, 18]]),
        matrix(Xdl, AOrB, [P3, P3, P4]),
        matrix(Xdl, Valu, [P3, P3, P4]),
        matrix(Xdl, Memory, [P3, P3, P4]),
        matrix(Xdl, WritesC, [[1, 7, 11, 19], [1, 3, 7, 15], [1, 3, 7, 15]]),
        matrix(Sgemm, CSame(Sgemm), [NO, FIRST, FIRST]),
        matrix(Sgemm, CSameRegisters(Sgemm), [NO, P, P]),
        matrix(Sgemm, COverlap(Sgemm), [NO, P, P]),
        matrix(Sgemm, CSame(Xdl), [NO, FIRST, FIRST]),
        matrix(Sgemm, CSameRegisters(Xdl), [NO, P, FIRST]),
        matrix(Sgemm, COverlap(Xdl), [NO, P, NO]),
        matrix(Sgemm, CSame(Dgemm), [NO, P, P]),
        matrix(Sgemm, CSameRegisters(Dgemm), [NO, P, P]),
        matrix(Sgemm, COverlap(Dgemm), [NO, P, P]),
        matrix(Sgemm, AOrB, [NO, P2, P2]),
        matrix(Sgemm, Valu, [NO, P2, P2]),
        matrix(Sgemm, Memory, [NO, P2, P2]),
        matrix(Dgemm, CSame(Dgemm), [[0, 4, 0, 0], [0, 4, 0, 0], [0, 4, 0, 0]]),
        matrix(Dgemm, CSameRegisters(Dgemm), [[0, 4, 9, 0], [0, 4, 9, 0], [0, 4, 17, 0]]),
        matrix(Dgemm, COverlap(Dgemm), [[0, 4, 9, 0], [0, 4, 9, 0], [0, 4, 17, 0]]),
        matrix(Dgemm, CSame(Sgemm), [NO, [0, 4, 9, 0], [0, 4, 17, 0]]),
        matrix(Dgemm, CSameRegisters(Sgemm), [NO, [0, 4, 9, 0], [0, 4, 17, 0]]),
        matrix(Dgemm, COverlap(Sgemm), [NO, [0, 4, 9, 0], [0, 4, 17, 0]]),
        matrix(Dgemm, AOrB, [[0, 6, 11, 0], [0, 6, 11, 0], [0, 6, 19, 0]]),
        matrix(Dgemm, Valu, [[0, 6, 11, 0], [0, 6, 11, 0], [0, 6, 19, 0]]),
        matrix(Dgemm, Memory, [[0, 9, 18, 0], [0, 9, 18, 0], [0, 9, 18, 0]]),
    ]
};
