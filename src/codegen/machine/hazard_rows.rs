//! The hazards that software covers with wait states, as data: which instruction writes (or reads) what,
//! which one must not come too soon after it, and how many wait states there must be between the two in each
//! generation of chips. Results of matrix instructions have their own table, `matrix_rows`.
//!
//! Sources: AMD's instruction set guides (Vega 7nm section 4.5, MI100 and MI200 4.5 and 7.2, CDNA3 4.5 and
//! 7.5, CDNA4 4.5 and 7.6) and LLVM's GCNHazardRecognizer.cpp; where they differ, the larger number counts.
//! The comment at the end of a row names the source if it is not both.

use super::access::{
    MODE, MODE_VSKIP, Ranges, RegisterRange, TRAPSTS, accesses, hardware_register, hidden_read,
    implicit_ranges, is_gds, is_lds_dma, is_valu, is_vmem,
};
use super::matrix_rows::{COLUMNS, MatrixClass, longest_of, matrix_class};
use crate::codegen::isa::{
    Arch, Calc, Element, Field, Implicit, Inst, Meaning, OpInfo, Opcode, Operand, OperandClass, OperandSpec,
    Role, Sdwa, Select, Unit,
};

/// Kind of instruction, as the guides classify them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum HazardClass {
    Valu,
    ValuOrMatrix,
    ValuButTrans,
    Trans,
    /// A result that is shifted into its place: SDWA with a part of the destination, op_sel with the high
    /// half or a byte.
    Shifted,
    /// A conversion to 16 bits or less that leaves the rest of the register alone.
    PartConversion,
    /// A conversion to 8 or 4 bits.
    SmallConversion,
    Dpp,
    /// `v_permlane16_swap`, `v_permlane32_swap`.
    SwapRows,
    Dot,
    Dgemm,
    FmaF64,
    Matrix,
    AccRead,
    AccWrite,
    /// Instructions that use AGPRs, where these are a file of their own.
    MatrixOrAccWrite,
    Salu,
    Vmem,
    /// VMEM and LDS.
    Memory,
    /// Vector memory that reads or writes LDS at M0's base.
    LdsDma,
    /// LDS instructions with M0 as their base.
    LdsThroughM0,
    /// Global data share and GWS.
    Gds,
    /// VMEM stores and atomics of more than 64 bits.
    WideStore,
    DivFmas,
    /// `v_readlane`, `v_writelane`.
    LaneSelect,
    /// `v_readlane`, `v_readfirstlane`.
    LaneRead,
    /// All three.
    Lane,
    /// `s_sendmsg`, `s_sendmsghalt`, `s_ttracedata`.
    Message,
    /// `s_movrels`, `s_movreld`.
    MoveRelative,
    /// `v_interp_*`.
    Interpolation,
    SetRegister,
    /// `s_getreg`, `s_setreg`.
    HardwareRegister,
    SetTrapStatus,
    ReturnFromException,
    SetVskip,
    GetMode,
    /// `s_setreg` of MODE.vskip.
    SetModeVskip,
    /// Every vector instruction.
    Vector,
}

impl HazardClass {
    /// How many there are.
    pub(super) const COUNT: usize = HazardClass::Vector as usize + 1;

    /// Whether instructions of an opcode can be of this kind.
    pub(super) fn contains(self, info: &OpInfo) -> bool {
        use Meaning as M;
        let valu = is_valu(info);
        let matrix = matches!(info.unit, Unit::Mfma(_));
        let through_m0 = info.reads.contains(Implicit::M0);
        let is_op = |op: Opcode| std::ptr::eq(info, op.info());
        match self {
            HazardClass::Valu => valu,
            HazardClass::ValuOrMatrix => valu || matrix,
            HazardClass::ValuButTrans => info.unit == Unit::Valu,
            HazardClass::Trans => info.unit == Unit::Trans,
            HazardClass::Shifted => {
                valu && (info.meaning == M::FmaMixHigh || has_op_sel(info) || may_be_sdwa(info))
            }
            HazardClass::PartConversion => is_part_conversion(info),
            HazardClass::SmallConversion => is_small_conversion(info),
            HazardClass::Dpp => valu && info.dpp_modifiers.has_dpp(),
            HazardClass::SwapRows => matches!(info.meaning, M::SwapRows(_)),
            HazardClass::Dot => matches!(info.meaning, M::Dot(_)),
            HazardClass::Dgemm => matrix_class(info, Arch::USUAL) == Some(MatrixClass::Dgemm),
            HazardClass::FmaF64 => valu && info.meaning == M::Vector(Calc::Fma, Element::F64),
            HazardClass::Matrix => matrix,
            HazardClass::AccRead => is_op(Opcode::VAccvgprReadB32),
            HazardClass::AccWrite => is_op(Opcode::VAccvgprWriteB32),
            HazardClass::MatrixOrAccWrite => matrix || HazardClass::AccWrite.contains(info),
            HazardClass::Salu => info.unit == Unit::Salu,
            HazardClass::Vmem => is_vmem(info),
            HazardClass::Memory => is_vmem(info) || info.unit == Unit::Lds,
            HazardClass::LdsDma => is_lds_dma(info),
            HazardClass::LdsThroughM0 => info.unit == Unit::Lds && through_m0,
            HazardClass::Gds => info.format.is_ds(),
            HazardClass::WideStore => {
                let wide = |o: &&OperandSpec| o.field == Field::Data0 && o.width > 2;
                is_vmem(info) && info.operands.iter().find(wide).is_some_and(|o| o.role != Role::Def)
            }
            HazardClass::DivFmas => matches!(info.meaning, M::Vector(Calc::DivFmas, _)),
            HazardClass::LaneSelect => matches!(info.meaning, M::ReadLane | M::WriteLane),
            HazardClass::LaneRead => matches!(info.meaning, M::ReadLane | M::ReadFirstLane),
            HazardClass::Lane => matches!(info.meaning, M::ReadLane | M::ReadFirstLane | M::WriteLane),
            HazardClass::Message => matches!(info.meaning, M::SendMessage | M::TraceData),
            HazardClass::MoveRelative => {
                matches!(info.meaning, M::MoveFromRelative(_) | M::MoveToRelative(_))
            }
            HazardClass::Interpolation => info.meaning == M::Interpolate,
            HazardClass::SetRegister | HazardClass::SetTrapStatus | HazardClass::SetModeVskip => {
                info.meaning == M::SetHardwareRegister
            }
            HazardClass::HardwareRegister => {
                matches!(info.meaning, M::GetHardwareRegister | M::SetHardwareRegister)
            }
            HazardClass::ReturnFromException => info.meaning == M::ReturnFromException,
            HazardClass::SetVskip => info.meaning == M::SetVskip,
            HazardClass::GetMode => info.meaning == M::GetHardwareRegister,
            HazardClass::Vector => valu || matrix || is_vmem(info) || info.unit == Unit::Lds,
        }
    }

    /// True if the opcode alone does not decide it.
    pub(super) fn depends_on_form(self) -> bool {
        matches!(
            self,
            HazardClass::Shifted
                | HazardClass::Dpp
                | HazardClass::Gds
                | HazardClass::SetTrapStatus
                | HazardClass::GetMode
                | HazardClass::SetModeVskip
        )
    }

    /// Whether an instruction of such an opcode is of this kind.
    #[inline]
    pub(super) fn holds(self, inst: &Inst) -> bool {
        let names = |register| hardware_register(inst).is_some_and(|(named, _)| named == register);
        match self {
            HazardClass::Shifted => is_shifted(inst),
            HazardClass::Dpp => inst.modifiers.has_dpp(),
            HazardClass::Gds => is_gds(inst),
            HazardClass::SetTrapStatus => names(TRAPSTS),
            HazardClass::GetMode => names(MODE),
            HazardClass::SetModeVskip => {
                names(MODE) && hardware_register(inst).is_some_and(|(_, bits)| bits.contains(&MODE_VSKIP))
            }
            _ => true,
        }
    }
}

/// Formats whose modifiers have op_sel with bit 3 for the result.
fn has_op_sel(info: &OpInfo) -> bool {
    is_valu(info) && info.format.is_vop3()
}

fn may_be_sdwa(info: &OpInfo) -> bool {
    info.sdwa_modifiers.has_sdwa() && !info.format.is_comparison()
}

/// Conversions that keep part of their destination, as the row says.
fn is_part_conversion(info: &OpInfo) -> bool {
    use Meaning::{ConvertScaled, ConvertScaledStochastic, ConvertStochastic, PackConvert};
    let converts = matches!(
        info.meaning,
        PackConvert(..) | ConvertStochastic(..) | ConvertScaled(..) | ConvertScaledStochastic(..)
    );
    converts && info.operands.first().is_some_and(|spec| spec.role == Role::DefUse)
}

fn is_small_conversion(info: &OpInfo) -> bool {
    use Element::{Bf8, Fp4, Fp8};
    use Meaning::{ConvertScaled, ConvertScaledStochastic, ConvertStochastic, PackConvert};
    matches!(
        info.meaning,
        PackConvert(Fp8 | Bf8 | Fp4, _)
            | ConvertStochastic(Fp8 | Bf8 | Fp4, _)
            | ConvertScaled(Fp8 | Bf8 | Fp4, _)
            | ConvertScaledStochastic(Fp8 | Bf8 | Fp4, _)
    )
}

fn is_shifted(inst: &Inst) -> bool {
    let info = inst.op.info();
    // LLVM: the stochastic conversions to FP4 count in every form.
    if matches!(info.meaning, Meaning::FmaMixHigh | Meaning::ConvertScaledStochastic(Element::Fp4, _)) {
        return true;
    }
    if inst.modifiers.is_empty() {
        return false;
    }
    if inst.modifiers.has_sdwa() {
        return may_be_sdwa(info) && Sdwa::from_imm(inst.imm).is_none_or(|sdwa| sdwa.dst != Select::Dword);
    }
    if inst.modifiers.has_dpp() {
        return false;
    }
    // Bit 3 is the high half; bits 3:2 are the byte where conversions write one.
    let result = match info.meaning {
        Meaning::ConvertStochastic(Element::Fp8 | Element::Bf8, _)
        | Meaning::ConvertScaled(Element::Fp4, _)
        | Meaning::ConvertScaledStochastic(..) => 0b1100,
        _ => 0b1000,
    };
    has_op_sel(info) && inst.modifiers.get_op_sel() & result != 0
}

/// Which registers of the instruction count.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum CountedRegisters {
    /// None in particular: the instruction as such.
    Itself,
    /// Written SGPRs, VCC and M0.
    WrittenScalars,
    /// Written VCC.
    WrittenVcc,
    /// Written EXEC.
    WrittenExec,
    /// Written M0.
    WrittenM0,
    /// Written VGPRs and AGPRs.
    WrittenVectors,
    /// Written VGPRs.
    WrittenVgprs,
    /// Read SGPRs, VCC and M0, named as operands (and FLAT_SCRATCH).
    ReadScalars,
    /// Read VGPRs and AGPRs.
    ReadVectors,
    /// Read or written VGPRs and AGPRs.
    AnyVectors,
    /// A and B of a dot product or of a matrix instruction.
    Factors,
    /// C of a matrix instruction.
    Addend,
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
    /// Data of a store whose scalar offset, if it has one, is not a register.
    StoreData,
    /// Data of a store whose scalar offset is a register.
    StoreDataAtScalarOffset,
    /// Hardware register of `s_getreg` and `s_setreg`.
    HardwareRegister,
}

impl CountedRegisters {
    /// False if no instruction of this row has such registers; a cheap way to rule out rows.
    pub(super) fn possible(self, info: &OpInfo) -> bool {
        let writes = |classes: &[OperandClass]| {
            info.operands.iter().any(|o| o.role != Role::Use && classes.contains(&o.class))
        };
        let scalar_result = || writes(&[OperandClass::ScalarDst, OperandClass::Mask, OperandClass::Sgpr]);
        match self {
            CountedRegisters::WrittenScalars | CountedRegisters::WrittenVcc => {
                scalar_result() || info.writes.contains(Implicit::VCC)
            }
            CountedRegisters::WrittenExec => scalar_result() || info.writes.contains(Implicit::EXEC),
            CountedRegisters::WrittenM0 => {
                writes(&[OperandClass::ScalarDst]) || info.writes.contains(Implicit::M0)
            }
            CountedRegisters::WrittenVectors => {
                use OperandClass::{Agpr, ImageData, Vgpr, VgprOrAgpr};
                writes(&[Vgpr, Agpr, VgprOrAgpr, ImageData])
            }
            CountedRegisters::WrittenVgprs => {
                writes(&[OperandClass::Vgpr, OperandClass::VgprOrAgpr, OperandClass::ImageData])
            }
            _ => true,
        }
    }

    /// The registers, as ranges of operand numbers; `None` for [`CountedRegisters::Itself`].
    pub(super) fn of(self, inst: &Inst) -> Option<Ranges> {
        if self == CountedRegisters::Itself {
            return None;
        }
        let mut ranges = Ranges::EMPTY;
        self.visit(inst, &mut |range| ranges.push(range));
        Some(ranges)
    }

    /// Shows `see` the same ranges one after the other.
    pub(super) fn visit(self, inst: &Inst, see: &mut dyn FnMut(RegisterRange)) {
        let info = inst.op.info();
        let is_vgpr =
            |range: RegisterRange| range.is_vector() && u32::from(range.start) < Operand::FIRST_AGPR;
        for access in accesses(inst) {
            let Some(range) = access.range() else { continue };
            let counts = match self {
                CountedRegisters::WrittenScalars => access.writes() && range.is_scalar(),
                CountedRegisters::WrittenVcc => access.writes() && range.overlaps(RegisterRange::VCC),
                CountedRegisters::WrittenExec => access.writes() && range.overlaps(RegisterRange::EXEC),
                CountedRegisters::WrittenM0 => access.writes() && range == RegisterRange::M0,
                CountedRegisters::WrittenVectors => access.writes() && range.is_vector(),
                CountedRegisters::WrittenVgprs => access.writes() && is_vgpr(range),
                CountedRegisters::ReadScalars => access.reads() && range.is_scalar(),
                CountedRegisters::ReadVectors => access.reads() && range.is_vector(),
                CountedRegisters::AnyVectors => range.is_vector(),
                CountedRegisters::Factors => {
                    range.is_vector() && matches!(access.field, Field::Src0 | Field::Src1)
                }
                CountedRegisters::Addend => range.is_vector() && access.field == Field::Src2,
                CountedRegisters::LaneNumber => access.field == Field::Src1,
                CountedRegisters::ExecNumber => access.reads() && range.overlaps(RegisterRange::EXEC),
                CountedRegisters::StoreData => access.field == Field::Data0 && !has_scalar_offset(inst),
                CountedRegisters::StoreDataAtScalarOffset => {
                    access.field == Field::Data0 && has_scalar_offset(inst)
                }
                _ => false,
            };
            if counts {
                see(range);
            }
        }
        let mut implicit = |set: Implicit, only: RegisterRange| {
            implicit_ranges(set).filter(|range| *range == only).for_each(&mut *see);
        };
        match self {
            CountedRegisters::WrittenScalars | CountedRegisters::WrittenVcc => {
                implicit(info.writes, RegisterRange::VCC);
            }
            CountedRegisters::WrittenExec => implicit(info.writes, RegisterRange::EXEC),
            CountedRegisters::WrittenM0 => implicit(info.writes, RegisterRange::M0),
            CountedRegisters::ReadScalars => hidden_read(info).into_iter().for_each(see),
            CountedRegisters::ImplicitVcc => implicit(info.reads, RegisterRange::VCC),
            CountedRegisters::ImplicitM0 => implicit(info.reads, RegisterRange::M0),
            CountedRegisters::ZeroFlag => {
                for operand in inst.operands {
                    match operand {
                        Operand::VCCZ => see(RegisterRange::VCC),
                        Operand::EXECZ => see(RegisterRange::EXEC),
                        _ => {}
                    }
                }
            }
            CountedRegisters::HardwareRegister => {
                let register = hardware_register(inst).map_or(0, |(register, _)| register);
                see(RegisterRange { start: register as u16, len: 1 });
            }
            _ => {}
        }
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
    /// Both are the same instruction in the same form.
    SameOpcode,
    /// They are not the same.
    OtherOpcode,
    /// A DGEMM stands between them.
    DgemmBetween,
    /// `v_accvgpr_read` or `v_accvgpr_write` stands between them.
    AccBetween,
}

/// One hazard: `then` must stay `waits` wait states away from `first`, if the registers of both overlap.
#[derive(Debug)]
pub(super) struct HazardRow {
    pub first: (HazardClass, CountedRegisters),
    pub then: (HazardClass, CountedRegisters),
    pub when: When,
    /// By [`Generation`].
    pub waits: [u8; COLUMNS],
}

const fn row(
    first: (HazardClass, CountedRegisters),
    then: (HazardClass, CountedRegisters),
    when: When,
    waits: [u8; COLUMNS],
) -> HazardRow {
    HazardRow { first, then, when, waits }
}

/// The largest number of wait states in [`ROWS`].
pub(super) const LONGEST_ROW: u32 = {
    let (mut longest, mut row) = (0, 0);
    while row < ROWS.len() {
        longest = longest_of(&ROWS[row].waits, longest);
        row += 1;
    }
    longest as u32
};

/// Everything but results of matrix instructions. Columns: GCN 5, CDNA 1 to 4.
#[rustfmt::skip]
pub(super) static ROWS: &[HazardRow] = &{
    use CountedRegisters::*;
    use When::*;
    use HazardClass::*;
    [
        // Scalar results of the vector ALU.
        row((Valu, WrittenScalars), (Vmem, ReadScalars), Always, [5, 5, 5, 5, 5]),
        row((Valu, WrittenM0), (LdsDma, ImplicitM0), Always, [5, 5, 5, 5, 5]), // LLVM
        row((Valu, WrittenExec), (Vmem, Itself), Always, [5, 5, 5, 5, 5]), // LLVM
        row((Valu, WrittenScalars), (LaneSelect, LaneNumber), Always, [4, 4, 4, 4, 4]),
        row((Valu, WrittenVcc), (DivFmas, ImplicitVcc), Always, [4, 4, 4, 4, 4]),
        row((Valu, WrittenVcc), (Valu, ZeroFlag), Always, [5, 5, 5, 5, 5]), // guides
        row((Valu, WrittenExec), (Valu, ZeroFlag), Always, [5, 5, 5, 5, 5]), // guides
        row((Valu, WrittenScalars), (ValuOrMatrix, ReadScalars), Always, [0, 0, 0, 2, 2]), // carry-in: LLVM
        row((Valu, WrittenExec), (Lane, Itself), Always, [0, 0, 0, 4, 4]),
        row((Valu, WrittenExec), (Valu, ExecNumber), Always, [0, 0, 0, 2, 2]),
        row((Valu, WrittenExec), (Dpp, Itself), Always, [5, 5, 5, 5, 5]),
        row((Valu, WrittenExec), (SwapRows, Itself), Always, [0, 0, 0, 0, 4]),
        row((Valu, WrittenExec), (Matrix, Itself), Always, [0, 4, 4, 4, 4]),
        row((Valu, WrittenExec), (AccWrite, Itself), Always, [0, 4, 0, 0, 0]),
        // Vector results of the vector ALU.
        row((Valu, WrittenVectors), (Dpp, AnyVectors), Always, [2, 2, 2, 2, 2]),
        row((Valu, WrittenVectors), (LaneRead, ReadVectors), Always, [0, 0, 0, 1, 1]),
        row((Valu, WrittenVectors), (SwapRows, AnyVectors), Always, [0, 0, 0, 0, 2]),
        row((Trans, WrittenVectors), (ValuButTrans, ReadVectors), Always, [0, 0, 0, 1, 1]),
        row((Shifted, WrittenVectors), (Valu, AnyVectors), Always, [0, 0, 0, 1, 1]),
        // LLVM issues 117844 and 140218; LLVM waits only where op_sel places the result.
        row((SmallConversion, WrittenVectors), (Valu, AnyVectors), Always, [0, 0, 0, 0, 1]),
        row((PartConversion, WrittenVectors), (PartConversion, WrittenVectors), Always, [0, 0, 0, 1, 1]), // guides
        row((Valu, WrittenVectors), (Memory, ReadVectors), DgemmBetween, [0, 0, 2, 0, 0]), // LLVM
        row((Valu, WrittenVectors), (Matrix, ReadVectors), Always, [0, 0, 2, 2, 2]),
        row((Dot, WrittenVectors), (Dot, Factors), SameOpcode, [0, 0, 3, 3, 3]),
        row((Dot, WrittenVectors), (Vector, AnyVectors), OtherOpcode, [0, 0, 3, 3, 3]),
        // The separate AGPRs of CDNA 1.
        row((Valu, WrittenVgprs), (MatrixOrAccWrite, ReadVectors), Always, [0, 2, 0, 0, 0]),
        row((AccWrite, WrittenVectors), (Matrix, Addend), Always, [0, 1, 0, 0, 0]),
        row((AccWrite, WrittenVectors), (Matrix, Factors), Always, [0, 3, 0, 0, 0]),
        row((AccWrite, WrittenVectors), (AccRead, ReadVectors), Always, [0, 3, 0, 0, 0]),
        row((AccRead, WrittenVectors), (Memory, ReadVectors), Always, [0, 2, 0, 0, 0]), // LLVM
        row((Valu, WrittenVectors), (Memory, ReadVectors), AccBetween, [0, 2, 0, 0, 0]), // LLVM
        // Data of stores.
        row((WideStore, StoreData), (ValuOrMatrix, WrittenVectors), Always, [1, 1, 1, 2, 2]),
        row((WideStore, StoreData), (Memory, WrittenVectors), Always, [1, 1, 1, 1, 1]), // guides
        // LLVM up to 22 has no wait states after a scalar offset. That holds before gfx942; from there on
        // stores lose data (seen on an MI350X, llvm-project issue 197267).
        row((WideStore, StoreDataAtScalarOffset), (ValuOrMatrix, WrittenVectors), Always, [0, 0, 0, 1, 1]),
        row((WideStore, StoreDataAtScalarOffset), (Memory, WrittenVectors), Always, [0, 0, 0, 1, 1]),
        // M0.
        row((Salu, WrittenM0), (Message, ImplicitM0), Always, [1, 1, 1, 1, 1]),
        row((Salu, WrittenM0), (Gds, Itself), Always, [1, 1, 1, 1, 1]),
        row((Salu, WrittenM0), (LdsThroughM0, ImplicitM0), Always, [1, 1, 1, 1, 1]),
        row((Salu, WrittenM0), (LdsDma, ImplicitM0), Always, [1, 1, 1, 1, 1]),
        row((Salu, WrittenM0), (MoveRelative, ImplicitM0), Always, [1, 1, 1, 1, 1]),
        row((Salu, WrittenM0), (Interpolation, ImplicitM0), Always, [1, 1, 0, 0, 0]),
        // Hardware registers.
        row((SetRegister, CountedRegisters::HardwareRegister), (HazardClass::HardwareRegister, CountedRegisters::HardwareRegister), Always, [2, 2, 2, 2, 2]),
        row((SetTrapStatus, Itself), (ReturnFromException, Itself), Always, [1, 1, 1, 1, 1]),
        row((SetVskip, Itself), (GetMode, Itself), Always, [2, 2, 2, 2, 2]), // guides
        row((SetModeVskip, Itself), (Vector, Itself), Always, [2, 2, 2, 2, 2]), // guides
        // The pipe of F64.
        row((Dgemm, Itself), (FmaF64, Itself), Always, [0, 0, 2, 2, 2]), // LLVM
    ]
};
