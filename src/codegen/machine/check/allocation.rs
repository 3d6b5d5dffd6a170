//! Follows every value through the allocated body: whenever a virtual register was read, the place that is
//! read now must hold what was last written to the register, on every path and in every lane that the
//! instruction looks at.
//!
//! The bodies before and after allocation are executed side by side on symbols. An instruction before that
//! has a counterpart after says which registers its operands have become; one without must be a move, whose
//! target from then on is the same value as its source. An instruction after without a counterpart before
//! must move values: between registers, to or from scratch or a lane of a VGPR, or a constant into a
//! register. Nothing the allocator claims about places is trusted; a value is in every place that moves have
//! brought it to and that has not been written since.
//!
//! Contents of places are known for active and inactive lanes separately: a masked write changes only the
//! active lanes of a place, and what is known of active lanes alone is forgotten when EXEC changes.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::MachineFault;
use crate::codegen::isa::{
    Calc, Element, Format, Implicit, Inst, Meaning, Opcode, Operand, Role, Unit, VReg,
};
use crate::codegen::machine::body::{BlockId, InstId, MachineBody, Origins, RegisterFile};
use crate::codegen::rules::{EXEC, InstructionView, UsedRegisters};
use crate::index::{Id, IndexVec, ids};

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
    let mut entries = IndexVec::<BlockId, Option<AllocationState>>::default();
    entries.resize(before.blocks.next_id(), None);
    if let Some(first) = entries.get_mut(BlockId::new(0)) {
        *first = Some(checker.start());
    }
    // One nest of loops after the other, or a block that is in none: what is known at the start of blocks is
    // as large as the kernel, so nothing of a nest is kept when it has been judged.
    for nest in nests(before) {
        let mut changed = true;
        while changed {
            changed = false;
            for block in ids(nest.clone()) {
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
        for block in ids(nest) {
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
    let mut last = IndexVec::<BlockId, BlockId>::default();
    for block in body.blocks.ids() {
        last.push(block);
        for &successor in body.blocks[block].successors.iter().flatten().filter(|to| **to <= block) {
            last[successor] = block;
        }
    }
    let mut nests = Vec::new();
    let (mut start, mut end) = (BlockId::new(0), BlockId::new(0));
    for block in body.blocks.ids() {
        end = end.max(last[block]);
        if block == end {
            nests.push(start..block.next());
            start = block.next();
        }
    }
    nests
}

/// A set of lanes: the active ones, the inactive ones.
type LaneSets = u8;
const ACTIVE: LaneSets = 1;
const INACTIVE: LaneSets = 2;
const ALL: LaneSets = 3;

/// A 32-bit place: a register by its number, a dword of scratch, a lane of a VGPR.
type ValueLocation = u32;
const FIRST_SLOT: ValueLocation = 1 << 12;
const FIRST_LANE: ValueLocation = 1 << 24;

fn lane_of(vgpr: u32, lane: u32) -> ValueLocation {
    FIRST_LANE + vgpr * 64 + lane
}

/// A constant that moves bring into registers: source, literal, whether it is 64 bits wide, which half.
type MovedConstant = (Operand, u32, bool, u32);

/// Dense numbers of values: parts of virtual registers, then physical registers named in the body, then
/// constants.
type ValueNumber = usize;

#[derive(Clone)]
struct AllocationState {
    /// Where each value is.
    at: Vec<SmallVec<[(ValueLocation, LaneSets); 2]>>,
    /// Values that have been at each place, and may still be there.
    values: BTreeMap<ValueLocation, SmallVec<[u32; 4]>>,
    /// Lanes in which a value may be anything, because it has not been written there.
    free: Vec<LaneSets>,
    /// Lanes in which a value is known to be a constant.
    known: Vec<Option<(u32, LaneSets)>>,
    /// Lanes may be off.
    masked: bool,
    /// Something is kept in a lane of a VGPR.
    lanes_kept: bool,
}

impl AllocationState {
    fn lanes(&self, value: ValueNumber, location: ValueLocation) -> LaneSets {
        self.at[value].iter().find(|(at, _)| *at == location).map_or(0, |(_, lanes)| *lanes)
    }

    /// Lanes in which reading `location` gives `value`.
    fn reads_as(&self, value: ValueNumber, location: ValueLocation) -> LaneSets {
        let constant =
            self.known[value].map_or(0, |(constant, lanes)| self.lanes(constant as usize, location) & lanes);
        self.lanes(value, location) | self.free[value] | constant
    }

    /// Places that hold a value in some lanes, or a constant that it is known to be. Constants have larger
    /// numbers than the values that they are constants of, so going through all values in order sees what was
    /// known of constants before.
    fn locations(&self, value: ValueNumber) -> SmallVec<[ValueLocation; 4]> {
        let constant = self.known[value].map(|(constant, _)| constant as usize);
        let all = [Some(value), constant].into_iter().flatten().flat_map(|value| &self.at[value]);
        let mut locations = SmallVec::new();
        for (location, _) in all {
            if !locations.contains(location) {
                locations.push(*location);
            }
        }
        locations
    }

    fn set(&mut self, value: ValueNumber, location: ValueLocation, lanes: LaneSets) {
        let list = &mut self.at[value];
        match list.iter().position(|(at, _)| *at == location) {
            Some(index) if lanes == 0 => {
                list.swap_remove(index);
            }
            Some(index) => list[index].1 = lanes,
            None if lanes == 0 => {}
            None => {
                list.push((location, lanes));
                let values = self.values.entry(location).or_default();
                if !values.contains(&(value as u32)) {
                    values.push(value as u32);
                }
            }
        }
    }

    /// The contents of a place are lost in `lanes`.
    fn clobber(&mut self, location: ValueLocation, lanes: LaneSets) {
        let mut values = self.values.remove(&location).unwrap_or_default();
        values.retain(|value| {
            let left = self.lanes(*value as usize, location) & !lanes;
            let list = &mut self.at[*value as usize];
            list.retain(|(at, _)| *at != location);
            if left != 0 {
                list.push((location, left));
            }
            left != 0
        });
        if !values.is_empty() {
            self.values.insert(location, values);
        }
    }

    /// A register is written: so are the lanes kept in it.
    fn overwrite(&mut self, location: ValueLocation, lanes: LaneSets) {
        self.clobber(location, lanes);
        if self.lanes_kept && (Operand::FIRST_VGPR..Operand::FIRST_AGPR).contains(&location) {
            let vgpr = location - Operand::FIRST_VGPR;
            (0..64).for_each(|lane| self.clobber(lane_of(vgpr, lane), ALL));
        }
    }

    /// `lanes` of a place take the contents of another one.
    fn copy(&mut self, to: ValueLocation, from: ValueLocation, lanes: LaneSets) {
        if to == from {
            return;
        }
        let values = self.values.get(&from).cloned().unwrap_or_default();
        let arriving: SmallVec<[(u32, LaneSets); 4]> =
            values.iter().map(|&value| (value, self.lanes(value as usize, from) & lanes)).collect();
        self.overwrite(to, lanes);
        for (value, lanes) in arriving {
            let kept = self.lanes(value as usize, to);
            self.set(value as usize, to, kept | lanes);
        }
    }

    /// A value changes in `lanes`: no place holds the new one yet.
    fn renew(&mut self, value: ValueNumber, lanes: LaneSets, rewritten: bool) {
        for (_, held) in &mut self.at[value] {
            *held &= !lanes;
        }
        self.at[value].retain(|(_, held)| *held != 0);
        self.free[value] &= !lanes;
        if lanes != ALL && !rewritten {
            self.free[value] |= INACTIVE;
        }
        self.known[value] =
            self.known[value].map(|(c, held)| (c, held & !lanes)).filter(|known| known.1 != 0);
    }

    /// A value becomes another one in `lanes`: it is now wherever the other one is.
    fn rename(&mut self, to: ValueNumber, from: ValueNumber, lanes: LaneSets, rewritten: bool) {
        if to == from {
            return;
        }
        let (at, free, known) = (self.at[from].clone(), self.free[from] & lanes, self.known[from]);
        self.renew(to, lanes, rewritten);
        self.free[to] |= free;
        for (location, held) in at {
            let kept = self.lanes(to, location);
            self.set(to, location, kept | held & lanes);
        }
        self.know(to, known.map(|(constant, held)| (constant, held & lanes)));
    }

    fn know(&mut self, value: ValueNumber, known: Option<(u32, LaneSets)>) {
        let Some((constant, lanes)) = known.filter(|known| known.1 != 0) else { return };
        let kept = self.known[value].filter(|(other, _)| *other == constant).map_or(0, |(_, lanes)| lanes);
        self.known[value] = Some((constant, kept | lanes));
    }

    /// EXEC changes: only what holds in all lanes is still known.
    fn change_exec(&mut self, masked: bool) {
        for value in 0..self.at.len() {
            let free = self.free[value];
            for location in self.locations(value) {
                let everywhere = self.reads_as(value, location) == ALL;
                self.set(value, location, if everywhere { ALL } else { 0 });
            }
            self.known[value] =
                self.known[value].filter(|(_, lanes)| *lanes | free == ALL).map(|k| (k.0, ALL));
            self.free[value] = if free == ALL { ALL } else { 0 };
        }
        self.masked = masked;
    }

    /// Keeps what both states know; true if that is less than before.
    fn join(&mut self, other: &AllocationState) -> bool {
        let mut changed = other.masked && !self.masked;
        self.masked |= other.masked;
        self.lanes_kept |= other.lanes_kept;
        for value in 0..self.at.len() {
            let (own_free, other_free) = (self.free[value], other.free[value]);
            let (own, others) = (self.locations(value), other.locations(value));
            let new = others.iter().filter(|location| !own.contains(location));
            for &location in own.iter().chain(new) {
                let old = self.lanes(value, location);
                let both = self.reads_as(value, location) & other.reads_as(value, location);
                changed |= old | own_free != both | own_free & other_free;
                self.set(value, location, both);
            }
            let known = match (self.known[value], other.known[value]) {
                (Some((a, x)), Some((b, y))) if a == b => Some((a, (x | own_free) & (y | other_free))),
                (Some((a, x)), _) => Some((a, x & other_free)),
                (_, Some((b, y))) => Some((b, y & own_free)),
                (None, None) => None,
            };
            let known = known.filter(|known| known.1 != 0);
            changed |= known != self.known[value] || own_free & other_free != own_free;
            self.known[value] = known;
            self.free[value] = own_free & other_free;
        }
        changed
    }
}

struct AllocationChecker<'a> {
    allocated: Allocated<'a>,
    /// The first part of each virtual register, among all values.
    first_part: IndexVec<VReg, ValueNumber>,
    first_physical: ValueNumber,
    first_constant: ValueNumber,
    constants: BTreeMap<MovedConstant, ValueNumber>,
    count: usize,
    /// Values that more than one instruction writes; inputs that at least one writes.
    rewritten: Vec<bool>,
}

impl<'a> AllocationChecker<'a> {
    fn new(allocated: &Allocated<'a>) -> AllocationChecker<'a> {
        let mut first_part = IndexVec::default();
        let mut count = 0;
        for register in &allocated.before.registers {
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
            count: first_constant,
            rewritten: vec![false; first_constant],
        };
        for i in allocated.before.insts.iter().chain(&allocated.after.insts) {
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
        for i in &allocated.before.insts {
            for index in 0..i.inst.op.info().operands.len() {
                for value in checker.values(&i.inst, index).filter(|_| i.inst.role(index) != Role::Use) {
                    checker.rewritten[value] |= std::mem::replace(&mut written[value], true);
                }
            }
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
            masked: false,
            lanes_kept: false,
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
        let mut next = old.start;
        for index in new.insts() {
            let inst = &after.insts[index].inst;
            let Some(origin) = origins[index].get() else {
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

    /// Instructions that are gone after allocation: moves only change which value has which name.
    fn skip(
        &self,
        range: std::ops::Range<InstId>,
        state: &mut AllocationState,
        faults: &mut Vec<MachineFault>,
    ) {
        for index in ids(range) {
            let inst = &self.allocated.before.insts[index].inst;
            if !self.move_by_name(inst, state) {
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
                state.rename(to, from, lanes, self.rewritten[to]);
            }
            return true;
        }
        let constants = moved_constant(inst);
        for (to, constant) in to.zip(&constants) {
            state.renew(to, lanes, self.rewritten[to]);
            state.know(to, Some((self.constants[constant] as u32, lanes)));
        }
        !constants.is_empty()
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
        // Moves: by name and by place.
        if self.move_by_name(before, state) {
            if let Err(message) = self.transfer_move(after, state) {
                fault(message);
            }
            for (part, value) in self.values(before, 0).enumerate() {
                let location = after.operands[0].number().unwrap_or(0) + part as u32;
                let kept = state.lanes(value, location);
                state.set(value, location, kept | self.cover(after, state, location));
            }
        } else {
            for index in 0..info.operands.len() {
                let Some(number) = after.operands[index].number().filter(|_| after.role(index) != Role::Use)
                else {
                    continue;
                };
                for (part, value) in self.values(before, index).enumerate() {
                    let location = number + part as u32;
                    let lanes = self.cover(after, state, location);
                    state.renew(value, lanes, self.rewritten[value]);
                    state.overwrite(location, lanes);
                    let kept = state.lanes(value, location);
                    state.set(value, location, kept | lanes);
                }
            }
        }
        for number in view.writes().filter(implicit).flat_map(|r| r.first as usize..r.end as usize) {
            let value = self.first_physical + number;
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
        let known = self.constants.iter().find(|(constant, value)| {
            constant.0 == Operand::LITERAL && !constant.2 && state.lanes(**value, base) == ALL
        });
        known.map(|(constant, _)| constant.1 + inst.imm).ok_or_else(unknown)
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
