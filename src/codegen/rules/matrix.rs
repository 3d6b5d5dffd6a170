//! The rules for results of matrix instructions, by formula.

use super::Authority;
use super::view::{InstructionView, UsedRegisters};
use crate::codegen::isa::{Arch, Element, Field, Generation, Meaning, Unit};

/// Pipe of a matrix instruction.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum MatrixPipe {
    X,
    S,
    D,
}

pub(crate) fn class(view: &InstructionView, arch: Arch) -> Option<MatrixPipe> {
    match view.info.meaning {
        Meaning::Mfma(_, Element::F64, ..) => Some(MatrixPipe::D),
        Meaning::Mfma(_, Element::F32, ..) if arch.multiplies_f32_on_valu() => Some(MatrixPipe::S),
        _ => matches!(view.info.unit, Unit::Mfma(_)).then_some(MatrixPipe::X),
    }
}

/// The registers that a matrix instruction adds to: for a sparse one its result.
fn addend(view: &InstructionView) -> Option<UsedRegisters> {
    let sparse = matches!(view.info.meaning, Meaning::SparseMfma(..));
    let field = if sparse { Field::Dst } else { Field::Src2 };
    view.reads().find(|r| r.field == Some(field)).copied()
}

/// Wait states that must lie between the matrix instruction `first` and `then`, as somebody asks for them, or
/// everybody does.
pub(crate) fn after_matrix(
    first: &InstructionView,
    then: &InstructionView,
    arch: Arch,
    by: Authority,
) -> u32 {
    let Some(pipe) = class(first, arch) else { return 0 };
    let Some(registers) = first.writes().find(|r| r.field == Some(Field::Dst)) else { return 0 };
    let result = MatrixResult {
        first,
        registers,
        pipe,
        passes: u32::from(first.inst.passes(arch)),
        generation: arch.generation(),
        by,
    };
    match class(then, arch) {
        Some(to) => result.before_matrix(then, to, u32::from(then.inst.passes(arch))),
        None if then.is_valu() || then.is_memory() => result.before_others(then),
        None => 0,
    }
}

/// The result of a matrix instruction until others may touch it.
struct MatrixResult<'a> {
    first: &'a InstructionView<'a>,
    registers: &'a UsedRegisters,
    pipe: MatrixPipe,
    passes: u32,
    generation: Generation,
    by: Authority,
}

impl MatrixResult<'_> {
    fn is_read_as(&self, r: &UsedRegisters) -> bool {
        r.is_read && r.meets(self.registers)
    }

    fn is_cdna4(&self) -> bool {
        self.generation == Generation::Cdna4
    }

    /// A matrix instruction of the double-precision pipe that takes few passes.
    fn is_small(&self) -> bool {
        self.passes == 4
    }

    /// One wait state that CDNA 4 adds, unless the instruction takes two passes.
    fn late(&self) -> u32 {
        u32::from(self.is_cdna4() && self.passes != 2)
    }

    /// Wait states before a matrix instruction of pipe `to`.
    fn before_matrix(&self, then: &InstructionView, to: MatrixPipe, passes: u32) -> u32 {
        let c = addend(then);
        let is_factor = then.registers.iter().any(|r| self.is_read_as(r) && Some(*r) != c);
        let multiplied = if is_factor { self.before_factor() } else { 0 };
        let added = c.filter(|c| c.meets(self.registers));
        added.map_or(0, |c| self.before_addend(then, to, passes, &c)).max(multiplied)
    }

    /// Wait states before it is multiplied.
    fn before_factor(&self) -> u32 {
        match self.pipe {
            MatrixPipe::X if self.generation == Generation::Cdna1 => 4,
            MatrixPipe::X => self.passes + 3 + self.late(),
            MatrixPipe::S => self.passes + 2,
            MatrixPipe::D if self.is_small() => 6,
            MatrixPipe::D if self.is_cdna4() => 19,
            MatrixPipe::D => 11,
        }
    }

    /// Wait states before it is added to, as `c`.
    fn before_addend(&self, then: &InstructionView, to: MatrixPipe, passes: u32, c: &UsedRegisters) -> u32 {
        use MatrixPipe::{D, S, X};
        let (p, generation, d) = (self.passes, self.generation, self.registers);
        let same_registers = (c.first, c.end) == (d.first, d.end);
        // From gfx942 on a chain forwards its accumulator only while it stays on one opcode.
        let one_chain = generation < Generation::Cdna3 || self.first.inst.op == then.inst.op;
        let same = same_registers && one_chain && p == passes;
        let forwarded = if p == 2 && generation >= Generation::Cdna3 { 2 } else { 0 };
        // LLVM compares the registers alone, and knows no wait of the XDL pipe for an SGEMM's result.
        let by_llvm = match (self.pipe, to) {
            (X, _) | (S, S) if same_registers && one_chain => forwarded,
            (S, X) if same_registers => forwarded,
            (S, X) => 0,
            _ => u32::MAX,
        };
        let by_any = match (self.pipe, to) {
            (X, X) | (S, S) if same => forwarded,
            (X, _) if generation == Generation::Cdna1 => 2,
            (X, X) if generation == Generation::Cdna2 => p,
            (X, X) => p + 1 + u32::from(self.is_cdna4()),
            (X, _) => p + 1 + self.late(),
            (S, X) if self.is_cdna4() => {
                if same_registers {
                    forwarded
                } else {
                    0
                }
            }
            (S, _) => p,
            (D, X) => 0,
            (D, D) if same && !self.is_small() => 0,
            (D, _) if self.is_small() => 4,
            (D, _) if self.is_cdna4() => 17,
            (D, _) => 9,
        };
        if self.by == Authority::Both { by_any.min(by_llvm) } else { by_any }
    }

    /// Wait states before a vector or memory instruction.
    fn before_others(&self, then: &InstructionView) -> u32 {
        let (p, late) = (self.passes, self.late());
        let (valu_reads, valu_writes, memory_reads) = match self.pipe {
            MatrixPipe::X if self.generation == Generation::Cdna1 => (p + 2, p - 1, 0),
            MatrixPipe::X => (p + 3 + late, p + 3 + late, p + 3 + late),
            MatrixPipe::S => (p + 2, p + 2, p + 2),
            MatrixPipe::D if self.is_small() => (6, 6, 9),
            MatrixPipe::D if self.is_cdna4() => (19, 19, 18),
            MatrixPipe::D => (11, 11, 18),
        };
        let mut need = 0;
        if then.registers.iter().any(|r| self.is_read_as(r)) {
            need = if then.is_memory() { memory_reads } else { valu_reads };
        }
        // The manual speaks of the vector ALU alone where something is overwritten; LLVM means loads, too.
        if self.by == Authority::Both && then.is_memory() {
            return need;
        }
        if then.writes().any(|r| r.meets(self.registers)) {
            // LLVM has the number of CDNA3 there.
            let is_less = self.by == Authority::Both && self.pipe == MatrixPipe::D && !self.is_small();
            need = need.max(if is_less { 11 } else { valu_writes });
        }
        need.max(self.before_addend_is_overwritten(then))
    }

    /// Wait states before the registers that it was added to are written.
    fn before_addend_is_overwritten(&self, then: &InstructionView) -> u32 {
        let sparse = matches!(self.first.info.meaning, Meaning::SparseMfma(..));
        let c = addend(self.first).filter(|_| self.pipe == MatrixPipe::X && !sparse);
        if !c.is_some_and(|c| c.is_vector() && then.writes().any(|r| r.meets(&c))) {
            return 0;
        }
        match self.generation {
            Generation::Cdna1 => self.passes.saturating_sub(3),
            // The MI200 guide's number; LLVM keeps four fewer.
            Generation::Cdna2 if self.passes > 2 && self.by == Authority::Either => self.passes + 3,
            _ => self.passes - 1,
        }
    }
}
