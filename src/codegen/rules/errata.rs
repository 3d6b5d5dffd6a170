//! Forms of single instructions that a chip executes wrongly, whatever stands around them: the errata that no
//! wait state solves. Lowering never writes them, and check mode finds them, in our code as in that of
//! others.

use crate::codegen::isa::{
    Arch, Calc, Element, Format, Generation, Inst, Meaning, Opcode, Operand, OperandClass,
};

/// A form of an instruction that a chip executes wrongly.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Erratum {
    /// CDNA3 converts 8-bit floats to f32 unreliably in the VOP1 encoding (LLVM, `FeatureCvtFP8Vop1Bug`).
    Float8InVop1,
    /// CDNA4 loses the low lane's accumulation of `v_pk_fma_f32` now and then if both lanes take the high
    /// half of the second source alone (ROCm/rocMLIR, pull request 2459).
    PackedFmaHighSource,
    /// A scratch access with a scalar base and a negative immediate offset may fault (LLVM,
    /// `FeatureNegativeScratchOffsetBug`).
    NegativeScratchOffset,
    /// From CDNA2 on the amount of a 64-bit shift is read wrongly from a VGPR 8 n + 7 after which the wave
    /// has no more (LLVM, `FeatureShift64HighRegBug`, and pull request 183839 for CDNA3 and CDNA4).
    ShiftByLastRegister,
}

impl Erratum {
    /// What happens.
    pub const fn text(self) -> &'static str {
        match self {
            Erratum::Float8InVop1 => "this chip converts 8-bit floats unreliably in the VOP1 encoding",
            Erratum::PackedFmaHighSource => {
                "this chip may lose the low lane's sum where the second source's high half goes to both lanes"
            }
            Erratum::NegativeScratchOffset => {
                "a scratch access with a scalar base and a negative offset may fault on this chip"
            }
            Erratum::ShiftByLastRegister => {
                "this chip reads the amount of a 64-bit shift wrongly from the last VGPR that a wave has"
            }
        }
    }

    /// The way out.
    pub const fn advice(self) -> &'static str {
        match self {
            Erratum::Float8InVop1 => "take the SDWA form, with `src0_sel:BYTE_0` for the lowest byte",
            Erratum::PackedFmaHighSource => "swap the factors, or copy the half to both registers first",
            Erratum::NegativeScratchOffset => "add the offset to the base",
            Erratum::ShiftByLastRegister => "take another register, or have one more VGPR allocated",
        }
    }
}

/// The erratum that `inst` runs into on a chip where the wave has the VGPRs below `end`.
pub(crate) fn erratum(inst: &Inst, arch: Arch, end: u32) -> Option<Erratum> {
    let generation = arch.generation();
    let meaning = inst.op.info().meaning;
    let converts = matches!(meaning, Meaning::Convert(Element::F32, Element::Fp8 | Element::Bf8));
    if converts && generation == Generation::Cdna3 && !inst.modifiers.has_sdwa() {
        return Some(Erratum::Float8InVop1);
    }
    let selects = [inst.modifiers.get_op_sel(), inst.modifiers.get_op_sel_hi_flip()];
    if inst.op == Opcode::VPkFmaF32 && generation == Generation::Cdna4 && selects == [0b010, 0] {
        return Some(Erratum::PackedFmaHighSource);
    }
    if has_negative_scratch_offset(inst) {
        return Some(Erratum::NegativeScratchOffset);
    }
    let by_last = shift_amount(inst).is_some_and(|amount| amount % 8 == 7 && amount + 1 >= end);
    (by_last && generation >= Generation::Cdna2).then_some(Erratum::ShiftByLastRegister)
}

/// The number of the VGPR that a 64-bit shift takes its amount from.
pub(crate) fn shift_amount(inst: &Inst) -> Option<u32> {
    use {Calc::ShiftLeftRev, Calc::ShiftRightRev, Element::B64, Element::I64, Element::U64};
    let shifts =
        matches!(inst.op.info().meaning, Meaning::Vector(ShiftLeftRev | ShiftRightRev, B64 | I64 | U64));
    inst.operands[1].as_vgpr().filter(|_| shifts)
}

fn has_negative_scratch_offset(inst: &Inst) -> bool {
    let info = inst.op.info();
    let base = info.operands.iter().position(|spec| spec.class == OperandClass::ScalarBase);
    let has_base = base.is_some_and(|base| inst.operands[base] != Operand::NONE);
    matches!(info.format, Format::Scratch | Format::ScratchLds) && has_base && (inst.imm as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::isa::Modifiers;

    fn v(number: u32) -> Operand {
        Operand::vgpr(number)
    }

    #[test]
    fn forms_are_wrong_on_their_chips_alone() {
        let none = Modifiers::new();
        let convert = Inst::new(Opcode::VCvtF32Bf8, &[v(0), v(1)]);
        let shift = Inst::new(Opcode::VLshlrevB64, &[v(0), v(7), v(2)]);
        let fma = |op_sel, flip| {
            Inst::new(Opcode::VPkFmaF32, &[v(0), v(2), v(4), v(6)])
                .modifiers(none.op_sel(op_sel).op_sel_hi_flip(flip))
        };
        let base = Inst::new(Opcode::ScratchLoadDword, &[v(0), Operand::NONE, Operand::sgpr(4)]);
        let on = |inst: Inst, end: u32| Arch::ALL.map(|arch| erratum(&inst, arch, end));
        let chips = |names: &[&str], what| Arch::ALL.map(|arch| names.contains(&arch.name()).then_some(what));
        assert_eq!(on(convert, 256), chips(&["gfx942"], Erratum::Float8InVop1));
        assert_eq!(on(convert.modifiers(none.sdwa()), 256), [None; Arch::ALL.len()]);
        let newer = ["gfx90a", "gfx942", "gfx950"];
        assert_eq!(on(shift, 8), chips(&newer, Erratum::ShiftByLastRegister));
        assert_eq!(on(shift, 9), [None; Arch::ALL.len()]);
        let last = Inst::new(Opcode::VAshrrevI64, &[v(0), v(255), v(2)]);
        assert_eq!(on(last, 256), chips(&newer, Erratum::ShiftByLastRegister));
        assert_eq!(on(fma(0b010, 0), 256), chips(&["gfx950"], Erratum::PackedFmaHighSource));
        assert_eq!(on(fma(0b010, 0b010), 256), [None; Arch::ALL.len()]);
        assert_eq!(on(fma(0b110, 0), 256), [None; Arch::ALL.len()]);
        assert_eq!(on(base.imm(-4i32 as u32), 256), Arch::ALL.map(|_| Some(Erratum::NegativeScratchOffset)));
        assert_eq!(on(base.imm(4), 256), [None; Arch::ALL.len()]);
    }
}
