//! Walks back from every instruction along every path and compares the wait states it passes with what the hazard rules
//! ask for between the two. The rules are written out here once more, as conditions instead of tables.

use super::Fault;
use crate::codegen::isa::{
    Arch, Calc, Element, Field, Format, Implicit, Inst, Meaning, Opcode, Operand, Role, Unit,
};
use crate::codegen::machine::access::{Range, Ranges, Touched, accesses};
use crate::codegen::machine::body::Body;

/// No rule asks for more.
const FARTHEST: u32 = 20;

/// Finds instructions that come too soon behind another.
pub fn check_hazards(body: &Body, target: Arch) -> Vec<Fault> {
    let mut predecessors = vec![Vec::new(); body.blocks.len()];
    for (block, data) in body.blocks.iter().enumerate() {
        for &successor in data.successors.iter().flatten() {
            predecessors[successor as usize].push(block);
        }
    }
    let mut faults = Vec::new();
    for (block, data) in body.blocks.iter().enumerate() {
        for index in data.start as usize..data.end as usize {
            let mut walk = Walk { body, target, predecessors: &predecessors, index, faults: &mut faults };
            let mut best = vec![u32::MAX; body.blocks.len()];
            walk.back(block, index, 0, false, &mut best);
            check_run(body, data.start as usize, index, &mut faults);
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

struct Walk<'a> {
    body: &'a Body,
    target: Arch,
    predecessors: &'a [Vec<usize>],
    index: usize,
    faults: &'a mut Vec<Fault>,
}

impl Walk<'_> {
    fn back(&mut self, block: usize, from: usize, mut states: u32, mut dgemm: bool, best: &mut [u32]) {
        let then = &self.body.insts[self.index].inst;
        for earlier in (self.body.blocks[block].start as usize..from).rev() {
            if states >= FARTHEST {
                return;
            }
            let first = &self.body.insts[earlier].inst;
            let need = required(first, then, self.target, dgemm);
            if need > states {
                let message = format!("`{then}` needs {need} wait states behind `{first}`, has {states}");
                self.faults.push(Fault::new(self.index, message));
            }
            let is_nop = first.op == Opcode::SNop;
            states += if is_nop { first.imm + 1 } else { 1 };
            dgemm |= class(first, self.target) == Some(Class::D);
        }
        if states >= FARTHEST {
            return;
        }
        for &predecessor in &self.predecessors[block] {
            // A shorter way to the end of a block shows everything that a longer one does.
            if states < best[predecessor] {
                best[predecessor] = states;
                let end = self.body.blocks[predecessor].end as usize;
                self.back(predecessor, end, states, dgemm, best);
            }
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Class {
    X,
    S,
    D,
}

fn class(inst: &Inst, target: Arch) -> Option<Class> {
    match inst.op.info().meaning {
        Meaning::Mfma(_, Element::F64, ..) => Some(Class::D),
        Meaning::Mfma(_, Element::F32, ..) if target >= Arch::Gfx942 => Some(Class::S),
        Meaning::Mfma(..) => Some(Class::X),
        _ => None,
    }
}

fn collect(inst: &Inst, keep: impl Fn(Field, Role, Range) -> bool) -> Ranges {
    let mut ranges = Ranges::EMPTY;
    for access in accesses(inst) {
        if let Some(range) = access.range().filter(|&range| keep(access.field, access.role, range)) {
            ranges.push(range);
        }
    }
    ranges
}

/// Wait states that must lie between `first` and `then`.
fn required(first: &Inst, then: &Inst, target: Arch, dgemm_between: bool) -> u32 {
    let mut need = 0;
    let mut at_least = |states: u32, condition: bool| {
        if condition {
            need = need.max(states);
        }
    };
    let (f, t) = (first.op.info(), then.op.info());
    let newer = target >= Arch::Gfx942;
    let valu = |unit| matches!(unit, Unit::Valu | Unit::Trans);
    let vmem = matches!(t.unit, Unit::Vmem | Unit::Flat);
    let memory = vmem || t.unit == Unit::Lds;
    let matrix = matches!(t.unit, Unit::Mfma(_));
    let (one, two) = (Touched::of(first), Touched::of(then));
    let scalar = |range: Range| range.start < 108;
    let written_vectors = collect(first, |_, role, range| role != Role::Use && range.is_vector());
    let any_vectors = collect(then, |_, _, range| range.is_vector());
    let read_vectors = collect(then, |_, role, range| role != Role::Def && range.is_vector());
    let defined_vectors = collect(then, |_, role, range| role != Role::Use && range.is_vector());
    let lane_number = collect(then, |field, _, _| field == Field::Src1);
    let is_lane_select = matches!(t.meaning, Meaning::ReadLane | Meaning::WriteLane);
    let is_lane = is_lane_select || t.meaning == Meaning::ReadFirstLane;
    let to_lds = matches!(t.meaning, Meaning::LoadToLds(_));
    let dot = matches!(f.meaning, Meaning::Dot(_));

    if valu(f.unit) {
        let mut scalars = collect(first, |_, role, range| role != Role::Use && scalar(range));
        if f.writes.contains(Implicit::VCC) {
            scalars.push(Range::VCC);
        }
        let named = collect(then, |_, role, range| role != Role::Def && scalar(range));
        let exec = one.defs.touches(Range::EXEC);
        let vcc = one.defs.touches(Range::VCC);
        let m0 = one.defs.touches(Range::M0);
        at_least(5, vmem && scalars.overlaps(&named));
        at_least(5, m0 && to_lds);
        at_least(5, exec && vmem);
        at_least(
            4,
            is_lane_select && (scalars.overlaps(&lane_number) || m0 && lane_number.touches(Range::M0)),
        );
        at_least(4, vcc && matches!(t.meaning, Meaning::Vector(Calc::DivFmas, _)));
        at_least(5, valu(t.unit) && vcc && then.operands.contains(&Operand::VCCZ));
        at_least(5, valu(t.unit) && exec && then.operands.contains(&Operand::EXECZ));
        at_least(2, newer && valu(t.unit) && scalars.overlaps(&named));
        let lane_read = matches!(t.meaning, Meaning::ReadLane | Meaning::ReadFirstLane);
        at_least(1, newer && lane_read && written_vectors.overlaps(&read_vectors));
        at_least(4, newer && exec && is_lane);
        let reads_exec_value =
            collect(then, |_, role, range| role != Role::Def && range.overlaps(Range::EXEC));
        at_least(2, newer && exec && valu(t.unit) && !reads_exec_value.as_slice().is_empty());
        let trans = f.unit == Unit::Trans && t.unit == Unit::Valu;
        at_least(1, newer && trans && written_vectors.overlaps(&read_vectors));
        let plain = !matches!(f.format, Format::Vop3p | Format::Vop3pMix);
        let high = f.meaning == Meaning::FmaMixHigh || plain && first.modifiers.get_op_sel() >= 8;
        at_least(1, newer && high && valu(t.unit) && written_vectors.overlaps(&any_vectors));
        at_least(2, !newer && dgemm_between && memory && written_vectors.overlaps(&read_vectors));
        at_least(2, matrix && !dot && written_vectors.overlaps(&read_vectors));
        at_least(4, matrix && exec);
        if dot && first.op == then.op {
            let factors = collect(then, |field, _, range| {
                range.is_vector() && matches!(field, Field::Src0 | Field::Src1)
            });
            at_least(3, written_vectors.overlaps(&factors));
        } else if dot {
            at_least(3, written_vectors.overlaps(&any_vectors));
        }
    }
    if matches!(f.unit, Unit::Vmem | Unit::Flat) && f.may_store() {
        let data = collect(first, |field, _, range| field == Field::Data0 && range.len > 2);
        let scalar_offset = f.format.is_mubuf()
            && accesses(first).any(|a| a.field == Field::Offset && a.operand.is_scalar_register());
        let overwritten = !scalar_offset && data.overlaps(&defined_vectors);
        at_least(if newer { 2 } else { 1 }, overwritten && (valu(t.unit) || matrix));
        at_least(1, overwritten && memory);
    }
    if f.unit == Unit::Salu && one.defs.touches(Range::M0) {
        at_least(1, to_lds || t.meaning == Meaning::SendMessage);
    }
    if f.meaning == Meaning::SetHardwareRegister
        && matches!(t.meaning, Meaning::SetHardwareRegister | Meaning::GetHardwareRegister)
    {
        let id = |inst: &Inst| {
            let long = inst.op == Opcode::SSetregImm32B32;
            (if long { inst.modifiers.get_hwreg() } else { inst.imm }) & 63
        };
        at_least(2, id(first) == id(then));
    }
    let fma64 = valu(t.unit) && t.meaning == Meaning::Vector(Calc::Fma, Element::F64);
    at_least(2, class(first, target) == Some(Class::D) && fma64);
    need.max(behind_matrix(first, then, &two, target))
}

/// Rules for results of matrix instructions, by formula.
fn behind_matrix(first: &Inst, then: &Inst, touched: &Touched, target: Arch) -> u32 {
    let (Some(from), Unit::Mfma(p)) = (class(first, target), first.op.info().unit) else { return 0 };
    let p = u32::from(p);
    let gfx950 = target == Arch::Gfx950;
    let gfx90a = target == Arch::Gfx90a;
    let small = p == 4;
    // A and B, or the vector ALU; memory; C of the F32 and F64 ones.
    let (use_any, use_memory) = match from {
        Class::D if small => (6, 9),
        Class::D => (if gfx950 { 19 } else { 11 }, 18),
        Class::S => (p + 2, p + 2),
        Class::X if gfx90a => (p + 3, p + 3),
        Class::X => {
            let more = if gfx950 && p != 2 { 1 } else { 0 };
            (p + 3 + more, p + 3 + more)
        }
    };
    let range = |inst: &Inst, index: usize| {
        let number = inst.operands[index].number().filter(|_| !inst.operands[index].is_constant())?;
        Some(Range { start: number as u16, len: inst.width(index).into() })
    };
    let Some(d) = range(first, 0) else { return 0 };
    let mut need = 0;
    if let (Some(to), Unit::Mfma(p2)) = (class(then, target), then.op.info().unit) {
        for index in [1, 2] {
            if range(then, index).is_some_and(|r| r.overlaps(d)) {
                need = need.max(use_any);
            }
        }
        if let Some(c) = range(then, 3).filter(|c| c.overlaps(d)) {
            let same_registers = c == d;
            let same = same_registers && p == u32::from(p2);
            let short = if p == 2 && !gfx90a { 2 } else { 0 };
            let states = match (from, to) {
                (Class::X, Class::X) if same => short,
                (Class::X, Class::X) if gfx90a => p,
                (Class::X, Class::X) => p + 1 + u32::from(gfx950),
                (Class::X, _) => p + 1 + u32::from(gfx950 && p != 2),
                (Class::S, Class::S | Class::X) if same => short,
                (Class::S, Class::X) if gfx950 => {
                    if same_registers {
                        short
                    } else {
                        0
                    }
                }
                (Class::S, _) => p,
                (Class::D, Class::X) => 0,
                (Class::D, Class::D) if same => {
                    if small {
                        4
                    } else {
                        0
                    }
                }
                (Class::D, _) if small => 4,
                (Class::D, _) => {
                    if gfx950 {
                        17
                    } else {
                        9
                    }
                }
            };
            need = need.max(states);
        }
        return need;
    }
    let memory = matches!(then.op.info().unit, Unit::Vmem | Unit::Flat | Unit::Lds);
    if touched.uses.touches(d) {
        need = need.max(if memory { use_memory } else { use_any });
    }
    if touched.defs.touches(d) {
        need = need.max(use_any);
    }
    if from == Class::X && range(first, 3).is_some_and(|c| touched.defs.touches(c)) {
        need = need.max(if gfx90a && p > 2 { p + 3 } else { p - 1 });
    }
    need
}

/// Runs of memory instructions that a replay would get wrong.
fn check_run(body: &Body, start: usize, index: usize, faults: &mut Vec<Fault>) {
    let inst = &body.insts[index].inst;
    let is_memory = |unit| matches!(unit, Unit::Vmem | Unit::Flat);
    let unit = inst.op.info().unit;
    if unit != Unit::Smem && !is_memory(unit) {
        return;
    }
    let same_run = |other: Unit| if unit == Unit::Smem { other == Unit::Smem } else { is_memory(other) };
    let own = Touched::of(inst);
    let run = body.insts[start..index].iter().rev().take_while(|i| same_run(i.inst.op.info().unit));
    for earlier in run {
        let other = Touched::of(&earlier.inst);
        let loads = !other.defs.as_slice().is_empty();
        let clash = own.defs.overlaps(&other.uses) || other.defs.overlaps(&own.uses);
        if clash || loads && inst.op.info().may_store() {
            faults.push(Fault::new(index, format!("`{inst}` may not be in one run with `{}`", earlier.inst)));
        }
    }
}
