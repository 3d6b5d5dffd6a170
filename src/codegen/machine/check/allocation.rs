//! Follows every virtual register through the allocated body: whenever it is read, its place must still hold what was
//! last written to it, on every path.

use super::Fault;
use crate::codegen::isa::{Implicit, Inst, Operand, Role, Unit};
use crate::codegen::machine::access::{ExecWrite, as_copy, exec_write};
use crate::codegen::machine::body::{Body, RegisterFile};

/// Compares a body before and after allocation; `place` is the first register of a virtual register.
pub fn check_allocation(before: &Body, after: &Body, place: impl Fn(u32) -> Option<Operand>) -> Vec<Fault> {
    let mut checker = Checker::new(before, &place);
    let mut faults = checker.compare_text(before, after, &place);
    checker.follow_values(before, &mut faults);
    faults.sort();
    faults.dedup();
    faults
}

struct Checker {
    /// First part of each virtual register among all parts.
    first_part: Vec<usize>,
    /// Operand number of each part.
    number: Vec<u32>,
    /// Parts that live at each operand number.
    at_number: Vec<Vec<usize>>,
    /// Parts that more than one instruction writes.
    rewritten: Vec<bool>,
}

/// True for each part whose place holds its value; and whether lanes may be off.
#[derive(Clone, PartialEq)]
struct State {
    held: Vec<bool>,
    masked: bool,
}

impl Checker {
    fn new(before: &Body, place: &impl Fn(u32) -> Option<Operand>) -> Checker {
        let (mut first_part, mut number) = (Vec::new(), Vec::new());
        let mut at_number = vec![Vec::new(); Operand::END as usize + 32];
        for (id, register) in before.registers.iter().enumerate() {
            first_part.push(number.len());
            for part in 0..u32::from(register.width) {
                let at = place(id as u32).and_then(Operand::number).map(|n| n + part);
                if let Some(at) = at {
                    at_number[at as usize].push(number.len());
                }
                number.push(at.unwrap_or(0));
            }
        }
        let mut checker = Checker { first_part, rewritten: vec![false; number.len()], number, at_number };
        let mut written = vec![false; checker.number.len()];
        for i in &before.insts {
            for (parts, role, _) in checker.operands(&i.inst) {
                for part in parts.filter(|_| role != Role::Use) {
                    checker.rewritten[part] |= std::mem::replace(&mut written[part], true);
                }
            }
        }
        checker
    }

    /// Parts, role and index of each virtual operand.
    fn operands(&self, inst: &Inst) -> Vec<(std::ops::Range<usize>, Role, usize)> {
        let specs = inst.op.info().operands.iter().enumerate();
        specs
            .filter_map(|(index, spec)| {
                let (id, first) = inst.operands[index].as_virtual()?;
                let start = self.first_part[id as usize] + first as usize;
                Some((start..start + usize::from(inst.width(index)), spec.role, index))
            })
            .collect()
    }

    /// The body after must be the body before with places put in, copies onto themselves left out.
    fn compare_text(
        &self,
        before: &Body,
        after: &Body,
        place: &impl Fn(u32) -> Option<Operand>,
    ) -> Vec<Fault> {
        let mut faults = Vec::new();
        for block in 0..before.blocks.len() {
            let mut rest = after.block(block).iter();
            let start = before.blocks[block].start as usize;
            for (index, i) in before.block(block).iter().enumerate() {
                let mut expected = i.inst;
                for operand in &mut expected.operands {
                    if let Some((id, first)) = operand.as_virtual() {
                        match place(id) {
                            Some(base) => *operand = base.offset(first),
                            None => faults.push(Fault::new(start + index, format!("%{id} has no place"))),
                        }
                    }
                }
                if as_copy(&expected).is_some_and(|(to, from)| to == from) {
                    continue;
                }
                if rest.next().map(|i| i.inst) != Some(expected) {
                    faults.push(Fault::new(start + index, format!("expected `{expected}` after allocation")));
                    return faults;
                }
                faults.extend(overlaps(&expected).map(|message| Fault::new(start + index, message)));
            }
            if rest.next().is_some() {
                faults.push(Fault::new(start, format!("bb{block} has instructions too many")));
            }
        }
        faults
    }

    fn follow_values(&mut self, body: &Body, faults: &mut Vec<Fault>) {
        let blocks = body.blocks.len();
        let top = State { held: vec![true; self.number.len()], masked: false };
        let mut entries = vec![top; blocks];
        let mut changed = true;
        while changed {
            changed = false;
            for block in 0..blocks {
                let exit = self.follow_block(body, block, entries[block].clone(), &mut Vec::new());
                for &successor in body.blocks[block].successors.iter().flatten() {
                    let entry = &mut entries[successor as usize];
                    let old = entry.clone();
                    entry.held.iter_mut().zip(&exit.held).for_each(|(own, other)| *own &= other);
                    entry.masked |= exit.masked;
                    changed |= *entry != old;
                }
            }
        }
        for (block, entry) in entries.into_iter().enumerate() {
            self.follow_block(body, block, entry, faults);
        }
    }

    fn follow_block(&self, body: &Body, block: usize, mut state: State, faults: &mut Vec<Fault>) -> State {
        let start = body.blocks[block].start as usize;
        for (index, i) in body.block(block).iter().enumerate() {
            let inst = &i.inst;
            for (parts, role, operand) in self.operands(inst) {
                if role != Role::Def && parts.clone().any(|part| !state.held[part]) {
                    let text = inst.operands[operand];
                    faults.push(Fault::new(
                        start + index,
                        format!("the place of {text:?} holds something else"),
                    ));
                }
            }
            self.write(body, inst, &mut state);
            match exec_write(inst) {
                ExecWrite::None => {}
                ExecWrite::All => state.masked = false,
                ExecWrite::Some => state.masked = true,
            }
        }
        state
    }

    fn write(&self, body: &Body, inst: &Inst, state: &mut State) {
        let copied = as_copy(inst).and_then(|(to, from)| {
            let part = |operand: Operand| {
                let (id, first) = operand.as_virtual()?;
                Some(self.first_part[id as usize] + first as usize)
            };
            Some((part(to)?, part(from)?))
        });
        let before = state.held.clone();
        for (index, spec) in inst.op.info().operands.iter().enumerate() {
            if spec.role == Role::Use || inst.operands[index].is_none() {
                continue;
            }
            let Some((id, first)) = inst.operands[index].as_virtual() else {
                // A register named directly.
                let number = inst.operands[index].number().unwrap_or(0) as usize;
                for at in number..number + usize::from(inst.width(index)) {
                    self.at_number[at].iter().for_each(|&part| state.held[part] = false);
                }
                continue;
            };
            let masked = state.masked
                && body.registers[id as usize].file != RegisterFile::Sgpr
                && inst.op.info().reads.contains(Implicit::EXEC);
            let start = self.first_part[id as usize] + first as usize;
            let written = before.iter().enumerate().skip(start).take(inst.width(index).into());
            for (part, &held) in written {
                for &other in &self.at_number[self.number[part] as usize] {
                    let same_value = copied.is_some_and(|(to, from)| other + to == part + from);
                    if other != part && !same_value {
                        state.held[other] = false;
                    }
                }
                // Lanes that are off keep what was there, which must have been an older value of the same register.
                state.held[part] = if masked && self.rewritten[part] { held } else { true };
            }
        }
    }
}

/// Results that must not share registers with sources or with each other but do.
fn overlaps(inst: &Inst) -> Option<String> {
    let info = inst.op.info();
    let matrix = matches!(info.unit, Unit::Mfma(_));
    let replayed = info.unit == Unit::Smem && !info.operands.is_empty() && inst.width(0) > 1;
    let range = |index: usize| {
        let first = inst.operands[index].number().filter(|_| !inst.operands[index].is_constant())?;
        Some((first, first + u32::from(inst.width(index))))
    };
    for (a, first) in info.operands.iter().enumerate().filter(|(_, spec)| spec.role != Role::Use) {
        for (b, second) in info.operands.iter().enumerate() {
            let (Some(x), Some(y)) = (range(a), range(b)) else { continue };
            let meet = a != b && x.0 < y.1 && y.0 < x.1;
            let two_results = second.role != Role::Use && first.role != Role::Use;
            let exact_c = matrix && b == 3 && x == y;
            if meet && (two_results || (matrix || replayed) && !exact_c) {
                return Some(format!("operands {a} and {b} of `{inst}` overlap"));
            }
        }
    }
    None
}
