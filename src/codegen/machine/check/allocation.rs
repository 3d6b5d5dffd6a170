//! Follows every value through the allocated body: whenever a virtual register was read, the place that is
//! read now must hold what was last written to the register, on every path and in every lane that the
//! instruction looks at.
//!
//! The bodies before and after allocation are executed side by side on symbols. An instruction before that
//! has a counterpart after says which registers its operands have become; one without must be a move, whose
//! target from then on is the same value as its source. An instruction after without a counterpart before
//! must move values: between registers, to or from scratch or a lane of a VGPR, or a constant into a
//! register; or it repeats an XOR of a register with a constant, which makes the same value as long as the
//! register holds the same. Nothing the allocator claims about places is trusted; a value is in every place
//! that moves have brought it to and that has not been written since.
//!
//! Contents of places are known for active and inactive lanes separately: a masked write changes only the
//! active lanes of a place, and what is known of active lanes alone is forgotten when EXEC changes.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::MachineFault;
use super::places::{
    ACTIVE, ALL, AllocationState, FIRST_SLOT, LaneSets, ValueLocation, ValueNumber, lane_of,
};
use crate::codegen::isa::{
    Calc, Element, Format, Implicit, Inst, Meaning, Opcode, Operand, Role, Unit, VReg,
};
use crate::codegen::machine::body::{BlockId, InstId, MachineBody, Origins, RegisterFile};
use crate::codegen::rules::{EXEC, InstructionView, UsedRegisters};
use crate::index::Neighbours;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, iter_entity_range};

/// What is needed to check an allocation.
#[derive(Copy, Clone, Debug)]
pub struct Allocated<'a> {
    /// The body with virtual registers.
    pub before: &'a MachineBody,
    /// The body with physical ones.
    pub after: &'a MachineBody,
    /// For every instruction after: which one it was before, if any.
    pub origins: &'a Origins,
    /// Virtual registers that hold something at the start, and where.
    pub inputs: &'a [(VReg, Operand)],
    /// Bytes of scratch per work-item.
    pub scratch_bytes: u32,
}

/// Compares a body before and after allocation.
pub fn check_allocation(allocated: &Allocated) -> Vec<MachineFault> {
    let Allocated { before, after, origins, .. } = *allocated;
    if before.blocks.len() != after.blocks.len() || origins.len() != after.insts.len() {
        return vec![MachineFault::new(InstId::new(0), "blocks or instructions are not accounted for")];
    }
    let checker = AllocationChecker::new(allocated);
    let mut faults = Vec::new();
    let mut entries = SecondaryMap::<BlockId, Option<AllocationState>>::new();
    entries.resize(before.blocks.len());
    if !before.blocks.is_empty() {
        entries[BlockId::new(0)] = Some(checker.start());
    }
    // One nest of loops after the other, or a block that is in none: what is known at the start of blocks is
    // as large as the kernel, so nothing of a nest is kept when it has been judged.
    for nest in nests(before) {
        let mut changed = true;
        while changed {
            changed = false;
            for block in iter_entity_range(nest.clone()) {
                let Some(entry) = entries[block].clone() else { continue };
                let exit = checker.follow_block(block, entry, &mut Vec::new());
                for &successor in before.blocks[block].successors.iter().flatten() {
                    let is_inside = nest.contains(&successor);
                    match &mut entries[successor] {
                        Some(entry) => changed |= entry.join(&exit) && is_inside,
                        entry => {
                            *entry = Some(exit.clone());
                            changed |= is_inside;
                        }
                    }
                }
            }
        }
        for block in iter_entity_range(nest) {
            // Blocks without predecessors start with nothing known.
            let entry = entries[block].take().unwrap_or_else(|| checker.start());
            checker.follow_block(block, entry, &mut faults);
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

/// All blocks in order, in stretches that no later block jumps back into.
fn nests(body: &MachineBody) -> Vec<Range<BlockId>> {
    // The last block that jumps back to each block.
    let mut last = PrimaryMap::<BlockId, BlockId>::default();
    for block in body.blocks.keys() {
        last.push(block);
        for &successor in body.blocks[block].successors.iter().flatten().filter(|to| **to <= block) {
            last[successor] = block;
        }
    }
    let mut nests = Vec::new();
    let (mut start, mut end) = (BlockId::new(0), BlockId::new(0));
    for block in body.blocks.keys() {
        end = end.max(last[block]);
        if block == end {
            nests.push(start..block.next());
            start = block.next();
        }
    }
    nests
}

/// A constant that moves bring into registers: source, literal, whether it is 64 bits wide, which half.
type MovedConstant = (Operand, u32, bool, u32);

/// A value that an XOR of another one with a constant makes.
#[derive(Copy, Clone)]
struct Xor {
    result: ValueNumber,
    base: ValueNumber,
    /// The constant and its literal.
    constant: (Operand, u32),
}

struct AllocationChecker<'a> {
    allocated: Allocated<'a>,
    /// The first part of each virtual register, among all values.
    first_part: PrimaryMap<VReg, ValueNumber>,
    first_physical: ValueNumber,
    first_constant: ValueNumber,
    constants: BTreeMap<MovedConstant, ValueNumber>,
    xors: Vec<Xor>,
    /// The XORs that each value takes part in.
    xors_of: BTreeMap<ValueNumber, SmallVec<[usize; 2]>>,
    count: usize,
    /// Values that more than one instruction writes; inputs that at least one writes.
    rewritten: Vec<bool>,
}

impl<'a> AllocationChecker<'a> {
    fn new(allocated: &Allocated<'a>) -> AllocationChecker<'a> {
        let mut first_part = PrimaryMap::default();
        let mut count = 0;
        for register in allocated.before.registers.values() {
            first_part.push(count);
            count += usize::from(register.width);
        }
        let first_constant = count + Operand::END as usize;
        let mut checker = AllocationChecker {
            allocated: *allocated,
            first_part,
            first_physical: count,
            first_constant,
            constants: BTreeMap::new(),
            xors: Vec::new(),
            xors_of: BTreeMap::new(),
            count: first_constant,
            rewritten: vec![false; first_constant],
        };
        for i in allocated.before.insts.values().chain(allocated.after.insts.values()) {
            for constant in moved_constant(&i.inst) {
                let next = checker.count;
                checker.count += usize::from(*checker.constants.entry(constant).or_insert(next) == next);
            }
        }
        let mut written = vec![false; first_constant];
        for &(id, _) in allocated.inputs {
            let register = allocated.before.registers.get(id);
            if let (Some(&first), Some(register)) = (checker.first_part.get(id), register) {
                written[first..first + usize::from(register.width)].fill(true);
            }
        }
        for i in allocated.before.insts.values() {
            for index in 0..i.inst.op.info().operands.len() {
                for value in checker.values(&i.inst, index).filter(|_| i.inst.role(index) != Role::Use) {
                    checker.rewritten[value] |= std::mem::replace(&mut written[value], true);
                }
            }
        }
        for i in allocated.before.insts.values() {
            let Some(constant) = xored_constant(&i.inst) else { continue };
            let values = [0, 2].map(|operand| checker.values(&i.inst, operand).next());
            let [Some(result), Some(base)] = values else { continue };
            for value in [result, base] {
                checker.xors_of.entry(value).or_default().push(checker.xors.len());
            }
            checker.xors.push(Xor { result, base, constant });
        }
        // A physical register holds something from the start.
        checker.rewritten[checker.first_physical..].fill(true);
        checker
    }

    /// Inputs and physical registers are in their places; everything else may be anything.
    fn start(&self) -> AllocationState {
        let mut state = AllocationState {
            at: vec![SmallVec::new(); self.count],
            values: BTreeMap::new(),
            free: vec![ALL; self.count],
            known: vec![None; self.count],
            repeatable: vec![0; self.xors.len()],
            masked: false,
            lanes_kept: false,
            divided: Vec::new(),
        };
        state.free[self.first_physical..].fill(0);
        for number in 0..Operand::END {
            state.set(self.first_physical + number as usize, number, ALL);
        }
        for &(id, place) in self.allocated.inputs {
            let (Some(&first), Some(number)) = (self.first_part.get(id), place.number()) else {
                continue;
            };
            for part in 0..u32::from(self.allocated.before.registers[id].width) {
                state.free[first + part as usize] = 0;
                state.set(first + part as usize, number + part, ALL);
            }
        }
        state
    }

    /// The values that a register operand of the body before names.
    fn values(&self, inst: &Inst, index: usize) -> std::ops::Range<ValueNumber> {
        let operand = inst.operands[index];
        let start = match (operand.as_virtual(), operand.number()) {
            (Some((id, first)), _) => self.first_part[id] + first as usize,
            (_, Some(number)) if !operand.is_constant() => self.first_physical + number as usize,
            _ => return 0..0,
        };
        start..start + usize::from(inst.width(index))
    }

    fn follow_block(
        &self,
        block: BlockId,
        mut state: AllocationState,
        faults: &mut Vec<MachineFault>,
    ) -> AllocationState {
        let Allocated { before, after, origins, .. } = self.allocated;
        let (old, new) = (before.blocks[block], after.blocks[block]);
        let (mut next, mut kept) = (old.start, new.start);
        for index in new.insts() {
            let inst = &after.insts[index].inst;
            let Some(origin) = origins[index].expand() else {
                if xored_constant(inst).is_some() {
                    // It may make again, in its place, the value of an XOR that is gone.
                    kept = kept.max(index);
                    while kept < new.end && origins[kept].expand().is_none() {
                        kept = kept.next();
                    }
                    let end = if kept < new.end { origins[kept].expand() } else { Some(old.end) };
                    let gone = iter_entity_range(next..end.unwrap_or(next));
                    let mut xors = gone.filter(|index| xored_constant(&before.insts[*index].inst).is_some());
                    if let Some(last) = xors.next_back() {
                        self.skip(next..last.next(), &mut state, faults);
                        next = last.next();
                    }
                }
                if let Err(message) = self.transfer(inst, &mut state) {
                    faults.push(MachineFault::new(index, message));
                }
                continue;
            };
            if origin < next || origin >= old.end {
                faults.push(MachineFault::new(index, format!("`{inst}` is out of order")));
                continue;
            }
            self.skip(next..origin, &mut state, faults);
            self.image(origin, inst, &mut state, faults);
            next = origin.next();
        }
        self.skip(next..old.end, &mut state, faults);
        state
    }

    /// Lanes of a vector register that an instruction writes.
    fn cover(&self, inst: &Inst, state: &AllocationState, location: ValueLocation) -> LaneSets {
        let vector = location >= Operand::FIRST_VGPR;
        if state.masked && vector && inst.op.info().reads.contains(Implicit::EXEC) { ACTIVE } else { ALL }
    }

    /// Instructions that are gone after allocation: moves only change which value has which name, and an XOR
    /// makes a value that is in no place yet.
    fn skip(
        &self,
        range: std::ops::Range<InstId>,
        state: &mut AllocationState,
        faults: &mut Vec<MachineFault>,
    ) {
        for index in iter_entity_range(range) {
            let inst = &self.allocated.before.insts[index].inst;
            if !self.move_by_name(inst, state) && !self.xor_by_name(inst, state) {
                faults.push(MachineFault::new(index, format!("`{inst}` is missing after allocation")));
            }
        }
    }

    /// Executes a move of the body before; false if the instruction is not a move.
    fn move_by_name(&self, inst: &Inst, state: &mut AllocationState) -> bool {
        let to = self.values(inst, 0);
        let vector = match inst.operands[0].as_virtual() {
            Some((id, _)) => self.allocated.before.registers[id].file != RegisterFile::Sgpr,
            None => inst.operands[0].number() >= Some(Operand::FIRST_VGPR),
        };
        let lanes = self.cover(inst, state, if vector { Operand::FIRST_VGPR } else { 0 });
        if moved_registers(inst).is_some() {
            let from = self.values(inst, 1);
            for (to, from) in to.zip(from) {
                self.forget_xors(to, state, lanes);
                state.rename(to, from, lanes, self.rewritten[to]);
            }
            return true;
        }
        let constants = moved_constant(inst);
        for (to, constant) in to.zip(&constants) {
            self.renew(to, state, lanes);
            state.know(to, Some((self.constants[constant] as u32, lanes)));
        }
        !constants.is_empty()
    }

    /// Executes an XOR with a constant of the body before; false if the instruction is none.
    fn xor_by_name(&self, inst: &Inst, state: &mut AllocationState) -> bool {
        let result = xored_constant(inst).and_then(|_| self.values(inst, 0).next());
        if let Some(result) = result {
            self.renew(result, state, self.cover(inst, state, Operand::FIRST_VGPR));
            self.note_xor(inst, state);
        }
        result.is_some()
    }

    /// From now on, doing an XOR again makes the same value, until its base changes.
    fn note_xor(&self, inst: &Inst, state: &mut AllocationState) {
        let Some(constant) = xored_constant(inst) else { return };
        let lanes = self.cover(inst, state, Operand::FIRST_VGPR);
        let [Some(result), Some(base)] = [0, 2].map(|operand| self.values(inst, operand).next()) else {
            return;
        };
        for &index in self.xors_of.get(&result).into_iter().flatten() {
            let xor = self.xors[index];
            if xor.result == result && xor.base == base && xor.constant == constant && result != base {
                state.repeatable[index] |= lanes;
            }
        }
    }

    /// A value changes in `lanes`.
    fn renew(&self, value: ValueNumber, state: &mut AllocationState, lanes: LaneSets) {
        self.forget_xors(value, state, lanes);
        state.renew(value, lanes, self.rewritten[value]);
    }

    /// The result or the base of XORs changes.
    fn forget_xors(&self, value: ValueNumber, state: &mut AllocationState, lanes: LaneSets) {
        for &index in self.xors_of.get(&value).into_iter().flatten() {
            state.repeatable[index] &= !lanes;
        }
    }

    /// An inserted XOR with a constant: its target holds every value that it is known to make.
    fn transfer_xor(&self, inst: &Inst, constant: (Operand, u32), state: &mut AllocationState) {
        let [to, from] = [0, 2].map(|operand| inst.operands[operand].number().unwrap_or(0));
        let lanes = self.cover(inst, state, to);
        let makes = |index: usize| {
            let xor = self.xors[index];
            let made = lanes & state.repeatable[index] & state.reads_as(xor.base, from);
            (xor.constant == constant && made != 0).then_some((xor.result, made))
        };
        let made: SmallVec<[(ValueNumber, LaneSets); 2]> = (0..self.xors.len()).filter_map(makes).collect();
        state.overwrite(to, lanes);
        for (value, lanes) in made {
            let kept = state.lanes(value, to);
            state.set(value, to, kept | lanes);
        }
    }

    /// An instruction that was there before allocation.
    fn image(
        &self,
        origin: InstId,
        after: &Inst,
        state: &mut AllocationState,
        faults: &mut Vec<MachineFault>,
    ) {
        let before = &self.allocated.before.insts[origin].inst;
        let mut fault = |message: String| faults.push(MachineFault::new(origin, message));
        let mut expected = *before;
        for (operand, &now) in expected.operands.iter_mut().zip(&after.operands) {
            if operand.is_virtual() && !now.is_virtual() && !now.is_none() && !now.is_constant() {
                *operand = now;
            }
        }
        if expected != *after {
            fault(format!("`{before}` has become `{after}`"));
            return;
        }
        if let Some(message) = overlaps(after) {
            fault(message);
        }
        let info = after.op.info();
        for index in 0..info.operands.len() {
            let operand = after.operands[index];
            let Some(number) = operand.number().filter(|_| after.role(index) != Role::Def) else { continue };
            let needed = if looks_at_all_lanes(after) { ALL } else { self.cover(after, state, number) };
            for (part, value) in self.values(before, index).enumerate() {
                if needed & !state.reads_as(value, number + part as u32) != 0 {
                    let text = before.operands[index];
                    fault(format!("{operand:?} in `{after}` holds something else than {text:?}"));
                    break;
                }
            }
        }
        let view = InstructionView::new(after, false);
        let implicit = |r: &&UsedRegisters| r.field.is_none();
        for number in view.reads().filter(implicit).flat_map(|r| r.first as usize..r.end as usize) {
            if state.reads_as(self.first_physical + number, number as u32) != ALL {
                fault(format!("`{after}` reads an implicit register that was overwritten"));
            }
        }
        if let Err(message) = self.image_results(before, after, state) {
            fault(message);
        }
        for number in view.writes().filter(implicit).flat_map(|r| r.first as usize..r.end as usize) {
            let value = self.first_physical + number;
            self.forget_xors(value, state, ALL);
            state.renew(value, ALL, true);
            state.overwrite(number as u32, ALL);
            state.set(value, number as u32, ALL);
        }
        if view.writes_register(EXEC) || view.writes_register(EXEC + 1) {
            let switches_all_on =
                after.op == Opcode::SMovB64 && Some(after.operands[1]) == Operand::inline_integer(-1);
            state.change_exec(!switches_all_on);
        }
    }

    /// The results that an instruction writes by its operands.
    fn image_results(&self, before: &Inst, after: &Inst, state: &mut AllocationState) -> Result<(), String> {
        // Moves: by name and by place.
        if self.move_by_name(before, state) {
            self.transfer_move(after, state)?;
            for (part, value) in self.values(before, 0).enumerate() {
                let location = after.operands[0].number().unwrap_or(0) + part as u32;
                let kept = state.lanes(value, location);
                state.set(value, location, kept | self.cover(after, state, location));
            }
        } else {
            for index in 0..after.op.info().operands.len() {
                let Some(number) = after.operands[index].number().filter(|_| after.role(index) != Role::Use)
                else {
                    continue;
                };
                for (part, value) in self.values(before, index).enumerate() {
                    let location = number + part as u32;
                    let lanes = self.cover(after, state, location);
                    self.renew(value, state, lanes);
                    state.overwrite(location, lanes);
                    let kept = state.lanes(value, location);
                    state.set(value, location, kept | lanes);
                }
            }
            self.note_xor(before, state);
        }
        Ok(())
    }

    /// An instruction that the allocator has inserted: it must move something.
    fn transfer(&self, inst: &Inst, state: &mut AllocationState) -> Result<(), String> {
        let info = inst.op.info();
        let number = |index: usize| inst.operands[index].number().unwrap_or(0);
        let allocatable = |number: u32| number < 102 || (Operand::FIRST_VGPR..Operand::END).contains(&number);
        let lane = |index: usize| {
            let lane = inst.operands[index].number().filter(|n| (128..192).contains(n)).map(|n| n - 128);
            lane.ok_or_else(|| format!("`{inst}` names no fixed lane"))
        };
        match info.meaning {
            Meaning::ReadLane if allocatable(number(0)) => {
                let vgpr = number(1).wrapping_sub(Operand::FIRST_VGPR);
                state.copy(number(0), lane_of(vgpr, lane(2)?), ALL);
                Ok(())
            }
            Meaning::WriteLane => {
                let vgpr = number(0) - Operand::FIRST_VGPR;
                state.clobber(number(0), ALL);
                state.lanes_kept = true;
                state.copy(lane_of(vgpr, lane(2)?), number(1), ALL);
                Ok(())
            }
            Meaning::Load(_) | Meaning::Store(_) if info.format == Format::Scratch => {
                let load = matches!(info.meaning, Meaning::Load(_));
                let (data, address) = if load { (0, 1) } else { (1, 0) };
                let width = u32::from(inst.width(data));
                let at = self.scratch_offset(inst, inst.operands[address], inst.operands[2], state)?;
                if at % 4 != 0 || at + 4 * width > self.allocated.scratch_bytes {
                    return Err(format!("`{inst}` is outside the scratch memory of the kernel"));
                }
                for part in 0..width {
                    let (register, slot) = (number(data) + part, FIRST_SLOT + at / 4 + part);
                    let lanes = self.cover(inst, state, register);
                    match load {
                        true => state.copy(register, slot, lanes),
                        false => state.copy(slot, register, lanes),
                    }
                }
                Ok(())
            }
            _ if allocatable(number(0)) => self.transfer_move(inst, state),
            _ => Err(format!("`{inst}` was inserted and is no move")),
        }
    }

    fn scratch_offset(
        &self,
        inst: &Inst,
        address: Operand,
        base: Operand,
        state: &AllocationState,
    ) -> Result<u32, String> {
        let unknown = || format!("the address of `{inst}` is not known");
        if !address.is_none() {
            return Err(unknown());
        }
        let Some(base) = base.number() else { return Ok(inst.imm) };
        let zero = Operand::constant(0);
        let known = self.constants.iter().find(|((constant, _, wide, _), value)| {
            [Operand::LITERAL, zero].contains(constant) && !wide && state.lanes(**value, base) == ALL
        });
        known.map(|(&(_, literal, ..), _)| literal + inst.imm).ok_or_else(unknown)
    }

    /// A move between registers, or of a constant.
    fn transfer_move(&self, inst: &Inst, state: &mut AllocationState) -> Result<(), String> {
        let Some(to) = inst.operands[0].number() else {
            return Err(format!("`{inst}` writes nothing"));
        };
        let lanes = self.cover(inst, state, to);
        if let Some((_, from)) = moved_registers(inst) {
            let from = from.number().ok_or_else(|| format!("`{inst}` reads nothing"))?;
            for part in 0..u32::from(inst.width(0)) {
                state.copy(to + part, from + part, lanes);
            }
            return Ok(());
        }
        if let Some(constant) = xored_constant(inst) {
            self.transfer_xor(inst, constant, state);
            return Ok(());
        }
        let constants = moved_constant(inst);
        if constants.is_empty() {
            return Err(format!("`{inst}` was inserted and is no move"));
        }
        for (part, constant) in constants.iter().enumerate() {
            let location = to + part as u32;
            state.overwrite(location, lanes);
            let value = self.constants[constant];
            let kept = state.lanes(value, location);
            state.set(value, location, kept | lanes);
        }
        debug_assert!(self.constants.values().all(|value| *value >= self.first_constant));
        Ok(())
    }
}

/// Destination and source of an instruction that moves registers as they are.
fn moved_registers(inst: &Inst) -> Option<(Operand, Operand)> {
    use Opcode::*;
    let moves = matches!(
        inst.op,
        SMovB32 | SMovB64 | VMovB32 | VMovB64 | VAccvgprMovB32 | VAccvgprReadB32 | VAccvgprWriteB32
    );
    let [to, from, ..] = inst.operands;
    let registers = [to, from].iter().all(|operand| operand.is_virtual() || operand.number().is_some());
    (moves && registers && !from.is_constant() && inst.modifiers.is_empty()).then_some((to, from))
}

/// The constant that an instruction moves to a register, by its 32-bit parts; empty if it does not do that.
fn moved_constant(inst: &Inst) -> SmallVec<[MovedConstant; 2]> {
    let source = inst.operands[1];
    let literal = if source == Operand::LITERAL { inst.imm } else { 0 };
    let variable = matches!(source, Operand::VCCZ | Operand::EXECZ | Operand::SCC) || !source.is_constant();
    match inst.op.info().meaning {
        Meaning::MoveImmediate if inst.op == Opcode::SMovkI32 => {
            let value = i32::from(inst.imm as u16 as i16) as u32;
            smallvec::smallvec![(Operand::LITERAL, value, false, 0)]
        }
        Meaning::Scalar(Calc::Mov, element) | Meaning::Vector(Calc::Mov, element)
            if !variable && inst.modifiers.is_empty() =>
        {
            let wide = element == Element::B64;
            (0..u32::from(inst.width(0))).map(|part| (source, literal, wide, part)).collect()
        }
        _ => SmallVec::new(),
    }
}

/// The constant that an instruction XORs with a vector register, and its literal.
fn xored_constant(inst: &Inst) -> Option<(Operand, u32)> {
    let [_, constant, base, ..] = inst.operands;
    let register = base.is_virtual() || base.number() >= Some(Operand::FIRST_VGPR);
    let fits = inst.op == Opcode::VXorB32 && constant.is_constant() && inst.modifiers.is_empty() && register;
    let literal = if constant == Operand::LITERAL { inst.imm } else { 0 };
    fits.then_some((constant, literal))
}

/// True for instructions that read lanes which may be off.
fn looks_at_all_lanes(inst: &Inst) -> bool {
    let info = inst.op.info();
    !info.reads.contains(Implicit::EXEC) || info.meaning == Meaning::ReadFirstLane
}

/// Results that must not share registers with sources or with each other, but do.
fn overlaps(inst: &Inst) -> Option<String> {
    let info = inst.op.info();
    let matrix = matches!(info.unit, Unit::Mfma(_));
    let replayed = info.unit == Unit::Smem && !info.operands.is_empty() && inst.width(0) > 1;
    let range = |index: usize| {
        let first = inst.operands[index].number().filter(|_| !inst.operands[index].is_constant())?;
        Some((first, first + u32::from(inst.width(index))))
    };
    let count = info.operands.len();
    for a in (0..count).filter(|&index| inst.role(index) != Role::Use) {
        for b in 0..count {
            let (Some(x), Some(y)) = (range(a), range(b)) else { continue };
            let meet = a != b && x.0 < y.1 && y.0 < x.1;
            let two_results = inst.role(b) != Role::Use;
            let exact_c = matrix && b == 3 && x == y;
            if meet && (two_results || (matrix || replayed) && !exact_c) {
                return Some(format!("operands {a} and {b} of `{inst}` overlap"));
            }
        }
    }
    None
}
