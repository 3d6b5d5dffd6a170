//! The hazard rules again, as conditions instead of tables.
//!
//! Numbers in comments are those of the sections of the CDNA3 guide where it has the rule; the other rules
//! come from the MI100 and MI200 guides and LLVM's GCNHazardRecognizer.cpp.

use super::Authority;
use super::matrix::{MatrixPipe, after_matrix, class};
use super::view::{EXEC, InstructionView, M0, UsedRegisters, VCC};
use crate::codegen::isa::{
    Arch, Calc, Element, Field, Format, Generation, Meaning, Opcode, Operand, OperandClass, Role, Sdwa,
    Select, Unit,
};

/// No rule asks for more wait states.
pub(crate) const FARTHEST: u32 = 20;

/// The instructions between two others.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub(crate) struct Between {
    pub dgemm: bool,
    pub acc: bool,
}

/// Wait states that must lie between `first` and `then`.
pub(crate) fn required(first: &InstructionView, then: &InstructionView, between: Between, arch: Arch) -> u32 {
    HazardPair { first, then, between, arch, by: Authority::Either }.asked()
}

/// Wait states that both LLVM and AMD's manual ask for between `first` and `then`: code that has fewer of
/// those that are [`required`] is shipped by AMD, or made by its compiler.
pub(crate) fn undisputed(
    first: &InstructionView,
    then: &InstructionView,
    between: Between,
    arch: Arch,
) -> u32 {
    HazardPair { first, then, between, arch, by: Authority::Both }.asked()
}

/// The most wait states that a rule asked for so far.
struct AskedStates(u32);

impl AskedStates {
    fn at_least(&mut self, states: u32, condition: bool) {
        if condition {
            self.0 = self.0.max(states);
        }
    }
}

/// An operand in a register that a matrix or dot instruction multiplies.
fn is_factor(r: &UsedRegisters) -> bool {
    r.is_vector() && matches!(r.field, Some(Field::Src0 | Field::Src1))
}

fn is_vector_read(r: &UsedRegisters) -> bool {
    r.is_vector() && r.is_read
}

fn writes_exec(view: &InstructionView) -> bool {
    view.writes_register(EXEC) || view.writes_register(EXEC + 1)
}

/// Two instructions, and whose rules about them count.
struct HazardPair<'a> {
    first: &'a InstructionView<'a>,
    then: &'a InstructionView<'a>,
    between: Between,
    arch: Arch,
    by: Authority,
}

impl HazardPair<'_> {
    /// Wait states by all rules.
    fn asked(&self) -> u32 {
        let mut need = AskedStates(after_matrix(self.first, self.then, self.arch, self.by));
        if self.first.is_valu() {
            self.after_valu(&mut need);
            match self.generation() {
                Generation::Cdna1 => self.after_valu_of_cdna1(&mut need),
                generation if generation >= Generation::Cdna3 => self.after_valu_since_cdna3(&mut need),
                _ => {}
            }
        }
        if let Some(data) = wide_store_data(self.first) {
            let overwritten = self.then.writes().any(|r| r.meets(&data));
            let vector_inst = self.then.is_valu() || self.then.is_matrix();
            need.at_least(after_wide_store(self.first, self.arch), overwritten && vector_inst);
        }
        self.after_settings(&mut need);
        let fma64 = self.then.is_valu() && self.then.info.meaning == Meaning::Vector(Calc::Fma, Element::F64);
        need.at_least(2, self.is_disputed() && class(self.first, self.arch) == Some(MatrixPipe::D) && fma64);
        need.0
    }

    fn generation(&self) -> Generation {
        self.arch.generation()
    }

    /// True if rows count that LLVM has and the manual has not, or the other way round.
    fn is_disputed(&self) -> bool {
        self.by == Authority::Either
    }

    /// True if the second instruction uses what the first one writes.
    fn meet(&self, is_first: fn(&UsedRegisters) -> bool, is_then: impl Fn(&UsedRegisters) -> bool) -> bool {
        let written = self.first.writes().filter(|r| is_first(r));
        written.into_iter().any(|w| self.then.registers.iter().any(|t| is_then(t) && t.meets(w)))
    }

    /// True if the second instruction uses vector registers that the first one writes.
    fn meet_in_vectors(&self, is_then: impl Fn(&UsedRegisters) -> bool) -> bool {
        self.meet(UsedRegisters::is_vector, is_then)
    }

    /// After a vector instruction, on every chip or on some.
    fn after_valu(&self, need: &mut AskedStates) {
        let HazardPair { first, then, .. } = *self;
        let (disputed, generation, what) = (self.is_disputed(), self.generation(), then.info.meaning);
        let unified = generation >= Generation::Cdna2;
        let cdna4 = generation == Generation::Cdna4;
        let vcc = first.writes_register(VCC) || first.writes_register(VCC + 1);
        let exec = writes_exec(first);
        let address_scalar = |r: &UsedRegisters| r.is_scalar() && r.is_read;
        let dpp = then.inst.modifiers.has_dpp();
        let lane_select = matches!(what, Meaning::ReadLane | Meaning::WriteLane);
        let swaps_rows = matches!(what, Meaning::SwapRows(_));
        let div_fmas = matches!(what, Meaning::Vector(Calc::DivFmas, _));
        let reads = |operand: Operand| then.inst.operands.contains(&operand);

        need.at_least(5, then.is_vmem() && self.meet(UsedRegisters::is_scalar, address_scalar));
        need.at_least(5, disputed && then.is_vmem() && exec);
        let selects = |r: &UsedRegisters| r.field == Some(Field::Src1);
        need.at_least(4, lane_select && self.meet(UsedRegisters::is_scalar, selects));
        need.at_least(4, div_fmas && vcc);
        need.at_least(5, then.is_valu() && (vcc && reads(Operand::VCCZ) || exec && reads(Operand::EXECZ)));
        need.at_least(5, then.is_valu() && dpp && exec);
        need.at_least(2, then.is_valu() && dpp && self.meet_in_vectors(UsedRegisters::is_vector));
        let small = cdna4 && converts_to_small_float(first) && then.is_valu();
        need.at_least(1, small && self.meet_in_vectors(UsedRegisters::is_vector));
        need.at_least(2, cdna4 && swaps_rows && self.meet_in_vectors(UsedRegisters::is_vector));
        need.at_least(4, cdna4 && swaps_rows && exec);
        need.at_least(4, then.is_matrix() && exec);
        let dot = matches!(first.info.meaning, Meaning::Dot(_));
        let plain = unified && then.is_matrix() && (disputed || !dot);
        need.at_least(2, plain && self.meet_in_vectors(is_vector_read));
        let dgemm = generation == Generation::Cdna2 && self.between.dgemm && then.is_memory();
        need.at_least(2, disputed && dgemm && self.meet_in_vectors(is_vector_read));
        if unified && dot {
            let same = first.inst.op == then.inst.op && dpp == first.inst.modifiers.has_dpp();
            let vector_inst = then.is_valu() || then.is_matrix() && disputed || then.is_memory();
            need.at_least(3, same && self.meet_in_vectors(is_factor));
            need.at_least(3, !same && vector_inst && self.meet_in_vectors(UsedRegisters::is_vector));
        }
    }

    /// After a vector instruction of CDNA 3 and later.
    fn after_valu_since_cdna3(&self, need: &mut AskedStates) {
        let HazardPair { first, then, .. } = *self;
        let (disputed, what) = (self.is_disputed(), then.info.meaning);
        let exec = writes_exec(first);
        let number = then.reads().any(|r| r.field.is_some() && (r.has(EXEC) || r.has(EXEC + 1)));
        let lane_read = matches!(what, Meaning::ReadLane | Meaning::ReadFirstLane);
        // A mask of lanes or a carry is read without a wait, says the CDNA3 guide (4.5, "VALU writes SGPR");
        // LLVM waits for it as for any operand.
        let mask = then.info.operands.iter().find(|spec| spec.class == OperandClass::MaskSource);
        let mask = mask.filter(|_| !disputed).map(|spec| spec.field);
        let named_scalar = |r: &UsedRegisters| r.is_scalar() && r.is_read && r.field.is_some();
        let operand = |r: &UsedRegisters| named_scalar(r) && (mask.is_none() || r.field != mask);
        let vector_inst = then.is_valu() || then.is_matrix();
        need.at_least(2, vector_inst && self.meet(UsedRegisters::is_scalar, operand));
        need.at_least(1, lane_read && self.meet_in_vectors(is_vector_read));
        need.at_least(4, (lane_read || what == Meaning::WriteLane) && exec);
        need.at_least(2, then.is_valu() && exec && number);
        let trans = first.info.unit == Unit::Trans && then.info.unit == Unit::Valu;
        need.at_least(1, trans && self.meet_in_vectors(is_vector_read));
        let shifts = shifts_result(first) && then.is_valu();
        need.at_least(1, shifts && self.meet_in_vectors(UsedRegisters::is_vector));
        let parts = converts_part(first) && converts_part(then);
        let is_written = |r: &UsedRegisters| r.is_vector() && r.is_written;
        need.at_least(1, disputed && parts && self.meet_in_vectors(is_written));
    }

    /// After a vector instruction of CDNA 1, whose accumulation registers are a file of their own.
    fn after_valu_of_cdna1(&self, need: &mut AskedStates) {
        let HazardPair { first, then, .. } = *self;
        let acc_write = then.inst.op == Opcode::VAccvgprWriteB32;
        let by_acc_write = first.inst.op == Opcode::VAccvgprWriteB32;
        let by_acc_read = first.inst.op == Opcode::VAccvgprReadB32;
        let addend = |r: &UsedRegisters| r.is_vector() && r.field == Some(Field::Src2);
        let uses = then.is_matrix() || acc_write;
        need.at_least(2, uses && self.meet(UsedRegisters::is_vgpr, is_vector_read));
        need.at_least(4, acc_write && writes_exec(first));
        need.at_least(1, by_acc_write && then.is_matrix() && self.meet_in_vectors(addend));
        need.at_least(3, by_acc_write && then.is_matrix() && self.meet_in_vectors(is_factor));
        let back = by_acc_write && then.inst.op == Opcode::VAccvgprReadB32;
        need.at_least(3, back && self.meet_in_vectors(is_vector_read));
        let close = then.is_memory() && (by_acc_read || self.between.acc);
        need.at_least(2, self.is_disputed() && close && self.meet_in_vectors(is_vector_read));
    }

    /// After an instruction that sets M0, a hardware register or VSKIP.
    fn after_settings(&self, need: &mut AskedStates) {
        let HazardPair { first, then, .. } = *self;
        let (set, what) = (first.info.meaning, then.info.meaning);
        if first.info.unit == Unit::Salu && first.writes_register(M0) {
            let implicit = then.reads().any(|r| r.has(M0) && r.field.is_none());
            need.at_least(1, then.is_gds());
            // Sent, streamed through M0, or moved relative to it; not instructions that only set parts of it.
            let only_sets_index =
                matches!(what, Meaning::SetGprIndex | Meaning::SetGprIndexOn | Meaning::SetGprIndexMode);
            need.at_least(1, implicit && !only_sets_index);
        }
        if set == Meaning::SetHardwareRegister {
            let (register, bits) = first.hardware_register();
            let is_access = matches!(what, Meaning::SetHardwareRegister | Meaning::GetHardwareRegister);
            need.at_least(2, is_access && then.hardware_register().0 == register);
            let vector_inst = then.is_valu() || then.is_matrix() || then.is_memory();
            need.at_least(2, register == 1 && bits.contains(&28) && vector_inst);
        }
        let gets_mode = what == Meaning::GetHardwareRegister && then.hardware_register().0 == 1;
        need.at_least(2, set == Meaning::SetVskip && gets_mode);
    }
}

/// A result that goes through a shifter: in part of a register, chosen by SDWA or op_sel.
fn shifts_result(view: &InstructionView) -> bool {
    let op_sel = view.inst.modifiers.get_op_sel();
    if view.inst.modifiers.has_sdwa() {
        let part = Sdwa::from_imm(view.inst.imm).map(|sdwa| sdwa.dst);
        return !view.info.format.is_comparison() && part != Some(Select::Dword);
    }
    let by_vop3 = view.info.format.is_vop3() && !view.inst.modifiers.has_dpp();
    match view.info.meaning {
        Meaning::FmaMixHigh => true,
        Meaning::ConvertScaledStochastic(Element::Fp4, _) => true,
        Meaning::ConvertScaledStochastic(..)
        | Meaning::ConvertScaled(Element::Fp4, _)
        | Meaning::ConvertStochastic(Element::Fp8 | Element::Bf8, _) => op_sel & 12 != 0,
        _ => by_vop3 && op_sel >= 8,
    }
}

/// Conversions to 8 and 4 bits, whose results CDNA4 does not forward (LLVM issues 117844 and 140218, which
/// quote AMD's document and experiments; LLVM itself waits only where op_sel places the result).
fn converts_to_small_float(view: &InstructionView) -> bool {
    let (Meaning::PackConvert(to, _)
    | Meaning::ConvertStochastic(to, _)
    | Meaning::ConvertScaled(to, _)
    | Meaning::ConvertScaledStochastic(to, _)) = view.info.meaning
    else {
        return false;
    };
    matches!(to, Element::Fp8 | Element::Bf8 | Element::Fp4)
}

/// Conversions that write part of a register and keep the rest.
fn converts_part(view: &InstructionView) -> bool {
    let to = match view.info.meaning {
        Meaning::PackConvert(to, _)
        | Meaning::ConvertStochastic(to, _)
        | Meaning::ConvertScaled(to, _)
        | Meaning::ConvertScaledStochastic(to, _) => to,
        _ => return false,
    };
    let narrow = matches!(to, Element::Fp8 | Element::Bf8 | Element::Fp4 | Element::F16 | Element::Bf16);
    narrow && view.info.tied() == Some(0)
}

/// The wait states that the ISA guides ask for between a store of much data and a load over that data. LLVM
/// never inserts them, and no result arrives that early: our code obeys the rule, code of others is not
/// blamed.
pub(crate) fn required_before_load(first: &InstructionView, then: &InstructionView, arch: Arch) -> u32 {
    let overwritten = |data: UsedRegisters| then.is_memory() && then.writes().any(|r| r.meets(&data));
    let waits =
        wide_store_data(first).filter(|data| overwritten(*data)).map(|_| after_wide_store(first, arch));
    waits.unwrap_or(0).min(1)
}

/// More than 64 bits of data that a store or atomic reads late. Those of images do not, as their descriptors
/// have 256 bits (LLVM, GCNHazardRecognizer.cpp, `createsVALUHazard`).
fn wide_store_data(view: &InstructionView) -> Option<UsedRegisters> {
    let data = view.registers.iter().find(|r| r.field == Some(Field::Data0))?;
    if view.info.format == Format::Mimg {
        return None;
    }
    (view.is_vmem() && data.is_read && data.end - data.first > 2).then_some(*data)
}

/// Wait states until such data may be overwritten. MUBUF with a scalar offset takes one longer to start,
/// which is enough before gfx942 (from there on one more is needed: MI350X, llvm-project issue 197267; LLVM
/// up to 22 does not know that).
fn after_wide_store(view: &InstructionView, arch: Arch) -> u32 {
    let by_register = |r: &UsedRegisters| r.field == Some(Field::Offset) && r.first < 128;
    let scalar_offset = view.info.format.is_mubuf() && view.registers.iter().any(by_register);
    let states = if arch.generation() >= Generation::Cdna3 { 2 } else { 1 };
    states - u32::from(scalar_offset)
}

/// Wait states until nothing after `first` can come too soon, whichever instruction it is.
pub(crate) fn pending(first: &InstructionView, arch: Arch) -> u32 {
    let generation = arch.generation();
    if let Some(class) = class(first, arch) {
        let p = u32::from(first.inst.passes(arch));
        return match class {
            MatrixPipe::D if p == 4 => 9,
            MatrixPipe::D => {
                if generation == Generation::Cdna4 {
                    19
                } else {
                    18
                }
            }
            MatrixPipe::S => p + 2,
            MatrixPipe::X if generation == Generation::Cdna1 => p + 2,
            MatrixPipe::X => p + 3 + u32::from(generation == Generation::Cdna4 && p != 2),
        };
    }
    if first.is_valu() {
        let scalar = first.writes().any(|r| r.first < 128);
        let dot = generation >= Generation::Cdna2 && matches!(first.info.meaning, Meaning::Dot(_));
        let acc = generation == Generation::Cdna1 && first.inst.op == Opcode::VAccvgprWriteB32;
        let vector = first.writes().any(|r| r.is_vector());
        return if scalar {
            5
        } else if dot || acc {
            3
        } else if vector {
            2
        } else {
            0
        };
    }
    if wide_store_data(first).is_some() {
        return after_wide_store(first, arch);
    }
    match first.info.meaning {
        Meaning::SetHardwareRegister | Meaning::SetVskip => 2,
        _ if first.info.unit == Unit::Salu && first.writes_register(M0) => 1,
        _ => 0,
    }
}

/// True if `view` is one of the two that move data between the register files.
pub(crate) fn is_acc_move(view: &InstructionView) -> bool {
    matches!(view.inst.op, Opcode::VAccvgprReadB32 | Opcode::VAccvgprWriteB32)
}

/// True for multi-register scalar loads into their own base, which a replay would not find any more.
pub(crate) fn overwrites_own_base(view: &InstructionView) -> bool {
    view.info.format == Format::Smem
        && !view.info.operands.is_empty()
        && view.inst.role(0) == Role::Def
        && view.inst.width(0) > 1
        && view.writes().any(|w| view.reads().any(|r| r.meets(w)))
}
