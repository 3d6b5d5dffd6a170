//! Two errata that wait states do not solve, and the instructions that do.
//!
//! - A write of one half of VCC leaves VCCZ as it was (up to gfx950; LLVM, `partialVCCWritesUpdateVCCZ`): who
//!   looks at VCCZ next is preceded by a copy of VCC onto itself.
//! - From CDNA2 on the amount of a 64-bit shift is read wrongly from a VGPR 8 n + 7 after which the kernel
//!   has no more (LLVM, `hasShift64HighRegBug`, and pull request 183839 for CDNA3 and CDNA4): the last pair
//!   of registers changes places with another one around the shift.

use super::access::{RegisterRange, accesses};
use super::body::MachineBody;
use crate::codegen::isa::{
    Arch, BranchCondition, Calc, Element, Generation, Implicit, Inst, Meaning, Opcode, Operand, Role, Unit,
};

/// Copies VCC onto itself, which sets VCCZ.
pub(super) fn copy_vcc() -> Inst {
    Inst::new(Opcode::SMovB64, &[Operand::VCC, Operand::VCC])
}

/// Whether VCCZ is stale after `inst`, if `inst` changes that.
#[inline]
pub(super) fn changes_vccz(inst: &Inst) -> Option<bool> {
    let info = inst.op.info();
    if !matches!(info.unit, Unit::Salu | Unit::Smem | Unit::Valu) {
        return None;
    }
    if info.writes.contains(Implicit::VCC) {
        return Some(false);
    }
    // It may write any register after the one that it names.
    if matches!(info.meaning, Meaning::MoveToRelative(_)) {
        return Some(true);
    }
    // No tuple extends into VCC from below, so a write to VCC begins there; results are the first two
    // operands.
    let written = |index: usize| {
        let is_vcc = matches!(inst.operands[index], Operand::VCC | VCC_HIGH);
        is_vcc && index < info.operands.len() && inst.role(index) != Role::Use
    };
    (0..2).find(|&index| written(index)).map(|index| inst.width(index) < 2)
}

const VCC_HIGH: Operand = Operand::VCC.offset(1);

/// True if `inst` looks at VCCZ.
pub(super) fn reads_vccz(inst: &Inst) -> bool {
    let meaning = inst.op.info().meaning;
    matches!(meaning, Meaning::Branch(BranchCondition::VccZero | BranchCondition::VccNotZero))
        || inst.operands.contains(&Operand::VCCZ)
}

/// First VGPR after all that `body` touches, if the chip has the bug of 64-bit shifts, and some shift may run
/// into it.
pub(super) fn end_of_vgprs(body: &MachineBody, arch: Arch) -> Option<u16> {
    let has_bug = arch.generation() >= Generation::Cdna2;
    (has_bug && body.insts.values().any(|i| shift_amount(&i.inst).is_some())).then(|| {
        let ranges = body.insts.values().flat_map(|i| accesses(&i.inst).filter_map(|access| access.range()));
        let vgprs = ranges.filter(|range| is_vgpr(*range));
        vgprs.map(|range| range.start + range.len).max().unwrap_or(Operand::FIRST_VGPR as u16)
    })
}

fn is_vgpr(range: RegisterRange) -> bool {
    (Operand::FIRST_VGPR..Operand::FIRST_AGPR).contains(&u32::from(range.start))
}

/// The number of the VGPR that a 64-bit shift takes its amount from, if it is 8 n + 7.
fn shift_amount(inst: &Inst) -> Option<u32> {
    use Calc::{ShiftLeftRev, ShiftRightRev};
    use Element::{B64, I64, U64};
    // Few instructions have such an operand, and these are the only ones that are looked up.
    let amount = inst.operands[1].as_vgpr().filter(|amount| amount % 8 == 7)?;
    let meaning = inst.op.info().meaning;
    matches!(meaning, Meaning::Vector(ShiftLeftRev | ShiftRightRev, B64 | I64 | U64)).then_some(amount)
}

/// The instructions that do the same as the shift `inst` without the bug; none if the bug does not affect it.
/// `end` is the first VGPR that the kernel does not touch.
pub(super) fn replaced_shift(inst: &Inst, end: u16) -> Option<[Inst; 6]> {
    let amount = shift_amount(inst)?;
    if Operand::FIRST_VGPR + amount + 1 != u32::from(end) {
        return None;
    }
    let last = Operand::vgpr(amount - 1);
    let is_free = |pair: u32| {
        let pair = RegisterRange { start: (Operand::FIRST_VGPR + pair) as u16, len: 2 };
        accesses(inst).filter_map(|access| access.range()).all(|range| !range.overlaps(pair))
    };
    // Source and result leave at least one of the three pairs below the last one free.
    let free = (0..6).step_by(2).find(|&pair| is_free(pair)).map(Operand::vgpr)?;
    let swap = |part: u32| Inst::new(Opcode::VSwapB32, &[free.offset(part), last.offset(part)]);
    let mut shift = *inst;
    for operand in &mut shift.operands {
        if *operand == last || *operand == last.offset(1) {
            *operand = free.offset(if *operand == last { 0 } else { 1 });
        }
    }
    // Loads into the pair may be in flight.
    let wait = Inst::new(Opcode::SWaitcnt, &[]).imm(0);
    Some([wait, swap(0), swap(1), shift, swap(0), swap(1)])
}
