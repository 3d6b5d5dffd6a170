//! What an instruction does to registers, read off its row: the one view that all passes of this module
//! share.

use crate::codegen::isa::{
    Calc, Element, Field, Format, Implicit, Inst, Meaning, OpInfo, Operand, OperandClass, OperandSpec, Role,
    Unit,
};

/// One operand of an instruction that is a register, virtual or physical.
#[derive(Copy, Clone, Debug)]
pub(super) struct RegisterAccess {
    /// First register.
    pub operand: Operand,
    /// Number of 32-bit registers.
    pub width: u32,
    /// Read, written or both.
    pub role: Role,
    /// Where the encoding holds it.
    pub field: Field,
}

impl RegisterAccess {
    /// True if the register is read.
    pub(super) fn reads(&self) -> bool {
        self.role != Role::Def
    }

    /// True if the register is written.
    pub(super) fn writes(&self) -> bool {
        self.role != Role::Use
    }

    /// The physical registers, for a physical operand.
    pub(super) fn range(&self) -> Option<RegisterRange> {
        self.operand.number().map(|start| RegisterRange { start: start as u16, len: self.width as u16 })
    }
}

/// Register operands of `inst`, in the order of its row.
#[inline]
pub(super) fn accesses(inst: &Inst) -> impl Iterator<Item = RegisterAccess> + '_ {
    let specs = inst.op.info().operands;
    // What an instruction does to its operands differs from what its row says only by modifiers.
    let by_row = !inst.modifiers.may_change_roles();
    specs.iter().zip(&inst.operands).enumerate().filter_map(move |(index, (spec, &operand))| {
        let register = !operand.is_none() && !operand.is_constant();
        register.then(|| RegisterAccess {
            operand,
            width: width(inst, index, spec),
            role: if by_row { spec.role } else { inst.role(index) },
            field: spec.field,
        })
    })
}

/// Width of an operand; asks the instruction only where the row does not say it.
#[inline]
pub(super) fn width(inst: &Inst, index: usize, spec: &OperandSpec) -> u32 {
    match spec.class {
        OperandClass::BufferAddress
        | OperandClass::GlobalAddress
        | OperandClass::MatrixFormatted
        | OperandClass::ImageAddress(_)
        | OperandClass::ImageData => inst.width(index).into(),
        // A status may follow the data of a load.
        OperandClass::VgprOrAgpr if inst.modifiers.has_tfe() => inst.width(index).into(),
        _ => spec.width.into(),
    }
}

/// Consecutive registers in the operand number space.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct RegisterRange {
    /// First number.
    pub start: u16,
    /// How many.
    pub len: u16,
}

impl RegisterRange {
    /// FLAT_SCRATCH, where chips keep it in SGPRs.
    pub(super) const FLAT_SCRATCH: RegisterRange = RegisterRange { start: 102, len: 2 };
    /// VCC.
    pub(super) const VCC: RegisterRange = RegisterRange { start: 106, len: 2 };
    /// M0.
    pub(super) const M0: RegisterRange = RegisterRange { start: 124, len: 1 };
    /// EXEC.
    pub(super) const EXEC: RegisterRange = RegisterRange { start: 126, len: 2 };
    /// SCC, at its number as a data source.
    pub(super) const SCC: RegisterRange = RegisterRange { start: 253, len: 1 };

    /// True if a register is in both.
    #[inline]
    pub(super) fn overlaps(self, other: RegisterRange) -> bool {
        self.start < other.start + other.len && other.start < self.start + self.len
    }

    /// True for VGPRs and AGPRs.
    #[inline]
    pub(super) fn is_vector(self) -> bool {
        u32::from(self.start) >= Operand::FIRST_VGPR
    }

    /// True for SGPRs, VCC and M0.
    #[inline]
    pub(super) fn is_scalar(self) -> bool {
        self.start < RegisterRange::EXEC.start
    }

    /// Where an operand of the vector ALU may lead while VGPRs are indexed: the index that is added is not
    /// known.
    pub(super) fn indexed(self) -> RegisterRange {
        let end = Operand::FIRST_AGPR as u16;
        if self.is_vector() && self.start < end {
            RegisterRange { len: end - self.start, ..self }
        } else {
            self
        }
    }

    /// The SGPRs from here on: what relative addressing may reach.
    fn and_following_scalars(self) -> RegisterRange {
        RegisterRange {
            len: RegisterRange::VCC.start + RegisterRange::VCC.len - self.start.min(RegisterRange::VCC.start),
            ..self
        }
    }

    /// The numbers.
    pub(super) fn numbers(self) -> std::ops::Range<usize> {
        usize::from(self.start)..usize::from(self.start + self.len)
    }
}

/// Implicit registers as ranges.
pub(super) fn implicit_ranges(set: Implicit) -> impl Iterator<Item = RegisterRange> {
    const ALL: [(Implicit, RegisterRange); 4] = [
        (Implicit::SCC, RegisterRange::SCC),
        (Implicit::VCC, RegisterRange::VCC),
        (Implicit::EXEC, RegisterRange::EXEC),
        (Implicit::M0, RegisterRange::M0),
    ];
    ALL.into_iter().filter(move |(one, _)| set.contains(*one)).map(|(_, range)| range)
}

/// A short list without allocation: no row has more operands and implicit registers than fit.
#[derive(Copy, Clone)]
pub(super) struct Ranges {
    ranges: [RegisterRange; 10],
    len: u8,
}

impl Ranges {
    /// No ranges.
    pub(super) const EMPTY: Ranges = Ranges { ranges: [RegisterRange { start: 0, len: 0 }; 10], len: 0 };

    /// Appends.
    pub(super) fn push(&mut self, range: RegisterRange) {
        self.ranges[usize::from(self.len)] = range;
        self.len += 1;
    }

    /// Appends the register that a special constant stands for: VCCZ, EXECZ, SCC.
    #[inline]
    fn push_flag(&mut self, operand: Operand) {
        match operand {
            Operand::VCCZ => self.push(RegisterRange::VCC),
            Operand::EXECZ => self.push(RegisterRange::EXEC),
            Operand::SCC => self.push(RegisterRange::SCC),
            _ => {}
        }
    }

    /// The ranges.
    pub(super) fn as_slice(&self) -> &[RegisterRange] {
        &self.ranges[..usize::from(self.len)]
    }

    /// Replaces every range.
    pub(super) fn widen(&mut self, by: impl Fn(RegisterRange) -> RegisterRange) {
        self.ranges[..usize::from(self.len)].iter_mut().for_each(|range| *range = by(*range));
    }

    /// Makes SGPRs stand for all that follow them, too.
    fn reach_following_scalars(&mut self) {
        self.widen(|range| {
            if range.start < RegisterRange::VCC.start { range.and_following_scalars() } else { range }
        });
    }

    /// True if a register of `range` is in the list.
    #[inline]
    pub(super) fn touches(&self, range: RegisterRange) -> bool {
        self.as_slice().iter().any(|&own| own.overlaps(range))
    }
}

/// Registers that an instruction reads without naming them, in addition to what its row says: FLAT_SCRATCH
/// for flat and scratch addresses, M0 where only part of it is written.
#[inline]
pub(super) fn hidden_read(info: &OpInfo) -> Option<RegisterRange> {
    use Format::{Flat, FlatRtn, Scratch, ScratchLds};
    use Meaning::{SetGprIndex, SetGprIndexMode, SetGprIndexOn};
    let (found, range) = match info.unit {
        Unit::Vmem | Unit::Flat => {
            (matches!(info.format, Flat | FlatRtn | Scratch | ScratchLds), RegisterRange::FLAT_SCRATCH)
        }
        Unit::Salu => {
            (matches!(info.meaning, SetGprIndex | SetGprIndexOn | SetGprIndexMode), RegisterRange::M0)
        }
        _ => return None,
    };
    found.then_some(range)
}

/// Everything that an instruction of physical registers reads and writes, implicit registers included.
#[derive(Copy, Clone)]
pub(super) struct TouchedRegisters {
    /// Read.
    pub uses: Ranges,
    /// Written.
    pub defs: Ranges,
}

impl TouchedRegisters {
    /// None.
    pub(super) const NONE: TouchedRegisters = TouchedRegisters { uses: Ranges::EMPTY, defs: Ranges::EMPTY };

    /// The registers of one instruction.
    pub(super) fn of(inst: &Inst) -> TouchedRegisters {
        let mut touched = TouchedRegisters::NONE;
        touched.refill(inst);
        touched
    }

    /// Makes them those of one instruction: a list in place is not moved.
    pub(super) fn refill(&mut self, inst: &Inst) {
        let (info, touched) = (inst.op.info(), self);
        (touched.uses.len, touched.defs.len) = (0, 0);
        let by_row = !inst.modifiers.may_change_roles();
        for (index, (spec, operand)) in info.operands.iter().zip(&inst.operands).enumerate() {
            let Some(start) = operand.number() else { continue };
            if operand.is_constant() {
                touched.uses.push_flag(*operand);
                continue;
            }
            let range = RegisterRange { start: start as u16, len: width(inst, index, spec) as u16 };
            let role = if by_row { spec.role } else { inst.role(index) };
            if role != Role::Def {
                touched.uses.push(range);
            }
            if role != Role::Use {
                touched.defs.push(range);
            }
        }
        // Most instructions read EXEC and nothing else that they do not name.
        if info.reads == Implicit::EXEC {
            touched.uses.push(RegisterRange::EXEC);
        } else if info.reads != Implicit::NONE {
            implicit_ranges(info.reads).for_each(|range| touched.uses.push(range));
        }
        if info.writes != Implicit::NONE {
            implicit_ranges(info.writes).for_each(|range| touched.defs.push(range));
        }
        if let Some(range) = hidden_read(info) {
            touched.uses.push(range);
        }
        if info.unit == Unit::Salu {
            match info.meaning {
                Meaning::MoveFromRelative(_) => touched.uses.reach_following_scalars(),
                Meaning::MoveToRelative(_) => touched.defs.reach_following_scalars(),
                _ => {}
            }
        }
    }
}

/// True for the instructions that the vector memory counters and hazards call VMEM: buffer, global, scratch
/// and flat.
pub(super) fn is_vmem(info: &OpInfo) -> bool {
    matches!(info.unit, Unit::Vmem | Unit::Flat)
}

/// True for vector ALU instructions, transcendental ones included, matrix ones not.
pub(super) fn is_valu(info: &OpInfo) -> bool {
    matches!(info.unit, Unit::Valu | Unit::Trans)
}

/// True for instructions that change memory or LDS, or drop what the scalar cache would have written.
pub(super) fn writes_memory(info: &OpInfo) -> bool {
    info.may_store() || matches!(info.meaning, Meaning::ScalarCacheDiscard(_))
}

/// True for vector memory instructions that touch LDS at M0's base: loads to LDS, and the store from LDS.
pub(super) fn is_lds_dma(info: &OpInfo) -> bool {
    use Meaning::{LoadFormatToLds, LoadToLds, StoreFromLdsToMemory};
    matches!(info.meaning, LoadToLds(_) | LoadFormatToLds | StoreFromLdsToMemory)
}

/// True for instructions of the global data share, GWS included.
pub(super) fn is_gds(inst: &Inst) -> bool {
    match inst.op.info().format {
        Format::Gws => true,
        Format::Ds => inst.modifiers.has_gds(),
        _ => false,
    }
}

/// True where control leaves the body for unknown code, or comes back from it.
#[inline]
pub(super) fn leaves_body(info: &OpInfo) -> bool {
    use Meaning::*;
    info.unit == Unit::Branch
        && matches!(info.meaning, Call | SetPc | SwapPc | ReturnFromException | Fork | ForkIf | JoinFork)
}

/// Which hardware register `s_getreg` and `s_setreg` name, and which of its bits.
pub(super) fn hardware_register(inst: &Inst) -> Option<(u32, std::ops::Range<u32>)> {
    let info = inst.op.info();
    if !matches!(info.meaning, Meaning::GetHardwareRegister | Meaning::SetHardwareRegister) {
        return None;
    }
    let literal = info.operands.first().is_some_and(|spec| spec.class == OperandClass::Literal);
    let bits = if literal { inst.modifiers.get_hwreg() } else { inst.imm };
    let low = bits >> 6 & 31;
    Some((bits & 63, low..low + (bits >> 11 & 31) + 1))
}

/// Number of the hardware register MODE.
pub(super) const MODE: u32 = 1;
/// Number of the hardware register TRAPSTS.
pub(super) const TRAPSTS: u32 = 3;
/// Bit of MODE that makes VGPRs indexed (Vega ISA guide, "MODE register").
const MODE_GPR_INDEX: u32 = 27;
/// Bit of MODE that skips vector instructions.
pub(super) const MODE_VSKIP: u32 = 28;

/// Whether VGPRs may be indexed after `inst`, if it changes that.
#[inline]
pub(super) fn changes_indexing(inst: &Inst) -> Option<bool> {
    if inst.op.info().unit != Unit::Salu {
        return None;
    }
    match inst.op.info().meaning {
        Meaning::SetGprIndexOn => Some(true),
        Meaning::SetGprIndexOff => Some(false),
        Meaning::SetHardwareRegister => {
            let (register, bits) = hardware_register(inst)?;
            (register == MODE && bits.contains(&MODE_GPR_INDEX)).then_some(true)
        }
        _ => None,
    }
}

/// True if the results may not share a register with any source: matrix instructions must not overwrite A or
/// B, and a scalar load of several registers may be replayed after it has written some of them (LLVM:
/// `NoDstOverlap` in VOP3PInstructions.td, the `_ec` forms of SMInstructions.td).
pub(super) fn is_early_clobber(inst: &Inst) -> bool {
    match inst.op.info().unit {
        Unit::Mfma(_) => true,
        Unit::Smem => !inst.op.info().operands.is_empty() && inst.width(0) > 1,
        _ => false,
    }
}

/// True if an instruction reads or writes vector registers of lanes that are off, or may do so.
pub(super) fn ignores_exec(inst: &Inst) -> bool {
    let info = inst.op.info();
    !info.reads.contains(Implicit::EXEC) || matches!(info.meaning, Meaning::ReadFirstLane)
}

/// What an instruction does to the set of active lanes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ExecWrite {
    /// Nothing.
    None,
    /// Makes all lanes active.
    All,
    /// Something else.
    Some,
}

/// How `inst` writes EXEC.
pub(super) fn exec_write(inst: &Inst) -> ExecWrite {
    let info = inst.op.info();
    if info.writes.contains(Implicit::EXEC) {
        return ExecWrite::Some;
    }
    let writes = info.operands.iter().zip(&inst.operands).any(|(spec, operand)| {
        spec.role != Role::Use && (*operand == Operand::EXEC || *operand == Operand::EXEC.offset(1))
    });
    match (writes, info.meaning) {
        (false, _) => ExecWrite::None,
        (true, Meaning::Scalar(Calc::Mov, Element::B64))
            if Some(inst.operands[1]) == Operand::inline_integer(-1) =>
        {
            ExecWrite::All
        }
        _ => ExecWrite::Some,
    }
}

/// Destination and source of an instruction that only copies a register of one file to another of any file.
pub(crate) fn as_copy(inst: &Inst) -> Option<(Operand, Operand)> {
    let copies =
        matches!(inst.op.info().meaning, Meaning::Scalar(Calc::Mov, _) | Meaning::Vector(Calc::Mov, _));
    let source = inst.operands[1];
    (copies && inst.modifiers.is_empty() && !source.is_none() && !source.is_constant())
        .then_some((inst.operands[0], source))
}
