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
    let Some(from) = class(first, arch) else { return 0 };
    let Some(d) = first.writes().find(|r| r.field == Some(Field::Dst)) else { return 0 };
    let p = u32::from(first.inst.passes(arch));
    let generation = arch.generation();
    let cdna4 = u32::from(generation == Generation::Cdna4);
    let late = u32::from(generation == Generation::Cdna4 && p != 2);
    let small = p == 4;
    let reads = |r: &&UsedRegisters| r.is_read && r.meets(d);
    if let Some(to) = class(then, arch) {
        let c = addend(then);
        let factor = then.registers.iter().filter(reads).any(|r| Some(*r) != c);
        let any_factor = match from {
            MatrixPipe::X if generation == Generation::Cdna1 => 4,
            MatrixPipe::X => p + 3 + late,
            MatrixPipe::S => p + 2,
            MatrixPipe::D if small => 6,
            MatrixPipe::D => {
                if generation == Generation::Cdna4 {
                    19
                } else {
                    11
                }
            }
        };
        let adding = c.filter(|c| c.meets(d)).map_or(0, |c| {
            let same_registers = (c.first, c.end) == (d.first, d.end);
            // From gfx942 on a chain forwards its accumulator only while it stays on one opcode.
            let one_chain = generation < Generation::Cdna3 || first.inst.op == then.inst.op;
            let same = same_registers && one_chain && p == u32::from(then.inst.passes(arch));
            let forwarded = if p == 2 && generation >= Generation::Cdna3 { 2 } else { 0 };
            // LLVM compares the registers alone, and knows no wait of the XDL pipe for an SGEMM's result.
            let by_llvm = match (from, to) {
                (MatrixPipe::X, _) | (MatrixPipe::S, MatrixPipe::S) if same_registers && one_chain => {
                    forwarded
                }
                (MatrixPipe::S, MatrixPipe::X) if same_registers => forwarded,
                (MatrixPipe::S, MatrixPipe::X) => 0,
                _ => u32::MAX,
            };
            let by_any = match (from, to) {
                (MatrixPipe::X, MatrixPipe::X) if same => forwarded,
                (MatrixPipe::X, _) if generation == Generation::Cdna1 => 2,
                (MatrixPipe::X, MatrixPipe::X) if generation == Generation::Cdna2 => p,
                (MatrixPipe::X, MatrixPipe::X) => p + 1 + cdna4,
                (MatrixPipe::X, _) => p + 1 + late,
                (MatrixPipe::S, MatrixPipe::S) if same => forwarded,
                (MatrixPipe::S, MatrixPipe::X) if generation == Generation::Cdna4 && same_registers => {
                    forwarded
                }
                (MatrixPipe::S, MatrixPipe::X) if generation == Generation::Cdna4 => 0,
                (MatrixPipe::S, _) => p,
                (MatrixPipe::D, MatrixPipe::X) => 0,
                (MatrixPipe::D, MatrixPipe::D) if same && !small => 0,
                (MatrixPipe::D, _) if small => 4,
                (MatrixPipe::D, _) => {
                    if generation == Generation::Cdna4 {
                        17
                    } else {
                        9
                    }
                }
            };
            if by == Authority::Both { by_any.min(by_llvm) } else { by_any }
        });
        return adding.max(if factor { any_factor } else { 0 });
    }
    if !then.is_valu() && !then.is_memory() {
        return 0;
    }
    let (valu_reads, valu_writes, memory_reads) = match from {
        MatrixPipe::X if generation == Generation::Cdna1 => (p + 2, p - 1, 0),
        MatrixPipe::X => (p + 3 + late, p + 3 + late, p + 3 + late),
        MatrixPipe::S => (p + 2, p + 2, p + 2),
        MatrixPipe::D if small => (6, 6, 9),
        MatrixPipe::D if generation == Generation::Cdna4 => (19, 19, 18),
        MatrixPipe::D => (11, 11, 18),
    };
    let mut need = 0;
    if then.registers.iter().any(|r| reads(&r)) {
        need = if then.is_memory() { memory_reads } else { valu_reads };
    }
    // The manual speaks of the vector ALU alone where something is overwritten; LLVM means loads, too.
    if by == Authority::Both && then.is_memory() {
        return need;
    }
    if then.writes().any(|r| r.meets(d)) {
        // LLVM has the number of CDNA3 there.
        let is_less = by == Authority::Both && from == MatrixPipe::D && !small;
        need = need.max(if is_less { 11 } else { valu_writes });
    }
    let sparse = matches!(first.info.meaning, Meaning::SparseMfma(..));
    let c = addend(first).filter(|_| from == MatrixPipe::X && !sparse);
    if c.is_some_and(|c| c.is_vector() && then.writes().any(|r| r.meets(&c))) {
        need = need.max(match generation {
            Generation::Cdna1 => p.saturating_sub(3),
            // The MI200 guide's number; LLVM keeps four fewer.
            Generation::Cdna2 if p > 2 && by == Authority::Either => p + 3,
            _ => p - 1,
        });
    }
    need
}
