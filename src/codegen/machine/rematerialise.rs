//! Registers that are cheaper to make again than to keep: those with a single write that moves a constant,
//! or that XORs a constant with a register that holds its value anyway, as the addresses of a swizzled buffer
//! are made of the first of them.
//!
//! Such a register is not stored anywhere when it has to leave: its only write is removed, and is repeated
//! before each instruction that reads it. The write obeys EXEC like the reader does, so it fills the lanes
//! that are read. The base is written once too, and in no loop, so that it holds what the other was made of
//! wherever it is alive.

use super::access::{RegisterAccess, accesses};
use super::body::{InstId, MachineBody};
use super::liveness::{Liveness, Position};
use super::loops::LoopDepths;
use crate::codegen::isa::{Implicit, Inst, Meaning, Opcode, Operand, VReg};
use cranelift_entity::SecondaryMap;

/// What writes each register.
#[derive(Copy, Clone, Default)]
enum SingleWrite {
    /// Nothing has yet.
    #[default]
    Never,
    /// This instruction alone, and all of it.
    Once { inst: InstId, in_loop: bool },
    /// Several do.
    Varies,
}

/// How a register is made again.
#[derive(Copy, Clone)]
pub(super) struct Recipe {
    /// The instruction that makes it.
    pub(super) inst: InstId,
    /// The register that it reads, which has to be there where the other is made again.
    pub(super) base: Option<VReg>,
}

/// The instructions that alone write a register, by register.
#[derive(Default)]
pub(super) struct Recipes {
    writes: SecondaryMap<VReg, SingleWrite>,
}

impl Recipes {
    /// Looks at every write.
    pub(super) fn compute(&mut self, body: &MachineBody, loops: &LoopDepths) {
        self.writes.clear();
        self.writes.resize(body.registers.len());
        for (block, data) in body.blocks.iter() {
            let in_loop = loops.weight(block) > 1;
            for inst in data.insts() {
                let made = &body.insts[inst].inst;
                for RegisterAccess { operand, width, .. } in accesses(made).filter(RegisterAccess::writes) {
                    let Some((id, first)) = operand.as_virtual() else { continue };
                    let whole = first == 0 && width == u32::from(body.registers[id].width);
                    let writes = &mut self.writes[id];
                    *writes = match *writes {
                        SingleWrite::Never if whole => SingleWrite::Once { inst, in_loop },
                        _ => SingleWrite::Varies,
                    };
                }
            }
        }
    }

    /// How a register is made again, if it can be.
    pub(super) fn of(&self, body: &MachineBody, register: VReg) -> Option<Recipe> {
        let SingleWrite::Once { inst, .. } = self.writes[register] else { return None };
        let made = &body.insts[inst].inst;
        if moves_constant(made) {
            return Some(Recipe { inst, base: None });
        }
        let (base, _) = changed_by_constant(made)?.as_virtual()?;
        let whole =
            body.registers[base].width == 1 && body.registers[base].file == body.registers[register].file;
        let never_changes = matches!(self.writes[base], SingleWrite::Once { in_loop: false, .. });
        (whole && never_changes).then_some(Recipe { inst, base: Some(base) })
    }
}

/// Whether a register holds its value where an instruction reads.
pub(super) fn holds_value(liveness: &Liveness, register: VReg, reader: InstId) -> bool {
    let at = Position::read(reader);
    liveness.of(register).any(|segment| segment.start <= at && at <= segment.end)
}

/// The register of 32 bits that an instruction XORs with a constant.
fn changed_by_constant(inst: &Inst) -> Option<Operand> {
    let [_, constant, base, ..] = inst.operands;
    let fits = inst.op == Opcode::VXorB32 && constant.is_constant() && inst.modifiers.is_empty();
    fits.then_some(base)
}

/// True for a move of a constant to a whole register.
pub(super) fn moves_constant(inst: &Inst) -> bool {
    let info = inst.op.info();
    let source = inst.operands[1];
    // VCCZ, EXECZ and SCC have numbers among the constants, but are not constants.
    let constant = source.is_constant() && !matches!(source, Operand::VCCZ | Operand::EXECZ | Operand::SCC);
    match info.meaning {
        Meaning::Scalar(crate::codegen::isa::Calc::Mov, _)
        | Meaning::Vector(crate::codegen::isa::Calc::Mov, _) => constant && inst.modifiers.is_empty(),
        Meaning::MoveImmediate => info.reads == Implicit::NONE,
        _ => false,
    }
}
