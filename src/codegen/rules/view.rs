//! Registers of an instruction as the verifier sees them, put together from its row without the passes' help.

use crate::codegen::isa::{Field, Format, Implicit, Inst, Meaning, OpInfo, Operand, Role, Unit};

const FLAT_SCRATCH: u32 = 102;
pub(crate) const VCC: u32 = 106;
pub(crate) const M0: u32 = 124;
pub(crate) const EXEC: u32 = 126;
const SCC: u32 = 253;
const FIRST_VGPR: u32 = Operand::FIRST_VGPR;
const FIRST_AGPR: u32 = Operand::FIRST_AGPR;

/// Consecutive registers that an instruction uses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct UsedRegisters {
    pub first: u32,
    pub end: u32,
    pub is_read: bool,
    pub is_written: bool,
    /// Where the encoding names them, if it does.
    pub field: Option<Field>,
}

impl UsedRegisters {
    pub(crate) fn meets(&self, other: &UsedRegisters) -> bool {
        self.first < other.end && other.first < self.end
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        (self.first..self.end).contains(&number)
    }

    pub(crate) fn is_vector(&self) -> bool {
        self.first >= FIRST_VGPR
    }

    pub(crate) fn is_vgpr(&self) -> bool {
        (FIRST_VGPR..FIRST_AGPR).contains(&self.first)
    }

    /// SGPRs, VCC, M0.
    pub(crate) fn is_scalar(&self) -> bool {
        self.first < EXEC
    }
}

/// An instruction with all registers that it uses.
pub(crate) struct InstructionView<'a> {
    pub inst: &'a Inst,
    pub info: &'static OpInfo,
    pub registers: Vec<UsedRegisters>,
}

impl<'a> InstructionView<'a> {
    /// `indexed`: an index may be added to VGPR numbers of the vector ALU.
    pub(crate) fn new(inst: &'a Inst, indexed: bool) -> InstructionView<'a> {
        let info = inst.op.info();
        let mut registers = Vec::new();
        for (index, spec) in info.operands.iter().enumerate() {
            let role = inst.role(index);
            let (is_read, is_written) = (role != Role::Def, role != Role::Use);
            let operand = inst.operands[index];
            let flag = match operand {
                Operand::VCCZ => Some((VCC, 2)),
                Operand::EXECZ => Some((EXEC, 2)),
                Operand::SCC => Some((SCC, 1)),
                _ => None,
            };
            if let Some((first, count)) = flag {
                registers.push(UsedRegisters { first, end: first + count, is_read, is_written, field: None });
            }
            if operand.is_constant() {
                continue;
            }
            let Some(first) = operand.number() else { continue };
            let mut end = first + u32::from(inst.width(index));
            if indexed && matches!(info.unit, Unit::Valu | Unit::Trans) && first >= FIRST_VGPR {
                end = end.max(FIRST_AGPR);
            }
            let relative = match info.meaning {
                Meaning::MoveFromRelative(_) => is_read,
                Meaning::MoveToRelative(_) => is_written,
                _ => false,
            };
            if relative && first < VCC {
                end = VCC + 2;
            }
            registers.push(UsedRegisters { first, end, is_read, is_written, field: Some(spec.field) });
        }
        let all = [(Implicit::SCC, SCC, 1), (Implicit::VCC, VCC, 2), (Implicit::EXEC, EXEC, 2)];
        for (set, first, count) in all.into_iter().chain([(Implicit::M0, M0, 1)]) {
            let (is_read, is_written) = (info.reads.contains(set), info.writes.contains(set));
            if is_read || is_written {
                registers.push(UsedRegisters { first, end: first + count, is_read, is_written, field: None });
            }
        }
        let through_scratch =
            matches!(info.format, Format::Flat | Format::FlatRtn | Format::Scratch | Format::ScratchLds);
        if through_scratch {
            let (first, end) = (FLAT_SCRATCH, FLAT_SCRATCH + 2);
            registers.push(UsedRegisters { first, end, is_read: true, is_written: false, field: None });
        }
        InstructionView { inst, info, registers }
    }

    pub(crate) fn reads(&self) -> impl Iterator<Item = &UsedRegisters> {
        self.registers.iter().filter(|r| r.is_read)
    }

    pub(crate) fn writes(&self) -> impl Iterator<Item = &UsedRegisters> {
        self.registers.iter().filter(|r| r.is_written)
    }

    pub(crate) fn writes_register(&self, number: u32) -> bool {
        self.writes().any(|r| r.has(number))
    }

    pub(crate) fn is_valu(&self) -> bool {
        matches!(self.info.unit, Unit::Valu | Unit::Trans)
    }

    pub(crate) fn is_matrix(&self) -> bool {
        matches!(self.info.unit, Unit::Mfma(_))
    }

    pub(crate) fn is_vmem(&self) -> bool {
        matches!(self.info.unit, Unit::Vmem | Unit::Flat)
    }

    /// VMEM and LDS.
    pub(crate) fn is_memory(&self) -> bool {
        self.is_vmem() || self.info.unit == Unit::Lds
    }

    /// Global data share and GWS.
    pub(crate) fn is_gds(&self) -> bool {
        self.info.format == Format::Gws || self.info.format == Format::Ds && self.inst.modifiers.has_gds()
    }

    /// VMEM that moves data to or from LDS.
    pub(crate) fn is_lds_dma(&self) -> bool {
        use Meaning::{LoadFormatToLds, LoadToLds, StoreFromLdsToMemory};
        matches!(self.info.meaning, LoadToLds(_) | LoadFormatToLds | StoreFromLdsToMemory)
    }

    /// Control goes to or comes from code that is not part of the body.
    pub(crate) fn is_border(&self) -> bool {
        use Meaning::{Call, Fork, ForkIf, JoinFork, ReturnFromException, SetPc, SwapPc};
        matches!(self.info.meaning, Call | Fork | ForkIf | JoinFork | ReturnFromException | SetPc | SwapPc)
    }

    /// Number and bits of the hardware register that `s_getreg` and `s_setreg` name.
    pub(crate) fn hardware_register(&self) -> (u32, std::ops::Range<u32>) {
        let has_literal = self.inst.operands[0] == Operand::LITERAL;
        let bits = if has_literal { self.inst.modifiers.get_hwreg() } else { self.inst.imm };
        let (low, count) = (bits >> 6 & 31, (bits >> 11 & 31) + 1);
        (bits & 63, low..low + count)
    }

    /// True if it changes memory (or LDS by vector memory).
    pub(crate) fn changes_memory(&self) -> bool {
        use Meaning::*;
        !matches!(
            self.info.meaning,
            Load(_)
                | LoadFormat(_)
                | LoadFormatHalf(_)
                | LoadFormatHigh
                | ScalarLoad(_)
                | ScalarBufferLoad(_)
                | ScalarScratchLoad(_)
                | ProbeAddress
                | ImageLoad
                | ImageLoadPacked
                | ImageSample
                | ImageGather
                | ImageQuery
                | ReadTime
                | ReadRealTime
                | ScalarCacheInvalidate
                | ScalarCacheWriteBack
                | CacheInvalidate
                | CacheWriteBack
        )
    }
}
