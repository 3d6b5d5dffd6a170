//! Takes registers out of their file: rewrites a body so that a register that has left is loaded into a
//! short-lived register before each instruction that reads it, and stored after each instruction that writes
//! it.
//!
//! | register | new home | loaded and stored by |
//! | --- | --- | --- |
//! | VGPR | scratch memory | `scratch_load_dword*`, `scratch_store_dword*` at a fixed offset |
//! | AGPR | scratch memory | the same, on gfx908 by way of VGPRs |
//! | VGPR | AGPRs | the operand itself where it can be an AGPR, else `v_accvgpr_read_b32` and `_write_b32` |
//! | SGPR | lanes of VGPRs that hold nothing else | `v_readlane_b32`, `v_writelane_b32` |
//! | any | nowhere | its move of a constant, or its XOR of a base with one, repeated |
//!
//! Why this is right while lanes are off: scratch accesses and moves obey EXEC exactly like the instruction
//! that they serve. A write of some lanes stores these lanes and leaves the others in memory as they were, as
//! it would in a register; a read sees the lanes that it looks at. There is no write to EXEC between an
//! instruction and the code inserted for it. Registers of instructions that look at all lanes are not chosen
//! (see `evict`). `v_readlane` and `v_writelane` ignore EXEC. Whether the AGPR moves do is not documented, so
//! while lanes may be off a write to a register in AGPRs loads it first and then stores all of it, which is
//! right in either case.
//!
//! None of the inserted instructions touches SCC, VCC or M0. A load after a store of the same slot needs no
//! wait: vector memory instructions of one wave reach memory in order (LLVM inserts no wait for its spills
//! either).

use smallvec::SmallVec;

use super::access::{ExecWrite, as_copy, exec_write, ignores_exec};
use super::agpr::{accumulates, becomes_agpr_write, may_be_agpr};
use super::allocation_error::{AllocationError, Spills};
use super::body::{BlockId, InstId, MachineBody, MachineInst, Origins, RegisterFile, VirtualRegister};
use super::liveness::{Liveness, Position, SegmentId};
use crate::codegen::isa::{Inst, MAX_OPERANDS, Opcode, Operand, Role, VReg};
use crate::codegen::target::{AccumulationFile, FlatScratch, LANES};
use crate::index::{Links, Neighbours};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, iter_entity_range};

/// Scratch offsets below this fit into the instruction (13 bits, signed; CDNA3 ISA guide, "Flat Scratch").
const OFFSET_REACH: u32 = 4096;

/// Where a register is kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Home {
    /// In its file.
    #[default]
    Register,
    /// Moved to the AGPRs.
    Agpr,
    /// In scratch, from this byte on.
    Scratch(u32),
    /// In lanes of VGPRs, from this lane on, counted over all VGPRs that hold SGPRs.
    Lanes(u32),
    /// Nowhere: this instruction is repeated.
    MadeAgain(InstId),
}

/// What a round has changed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Rewritten {
    /// Files of operands; instructions kept their numbers.
    OperandsOnly,
    /// Instructions were inserted or removed.
    Instructions,
}

impl Spills {
    /// True if values are kept outside registers of their kind.
    pub fn any(&self) -> bool {
        self.to_scratch > 0 || self.to_lanes > 0
    }
}

/// The rewriter and what it keeps from round to round.
#[derive(Default)]
pub(super) struct Spiller {
    /// Counts.
    pub spills: Spills,
    /// What the instructions of the body were before allocation.
    pub origins: Origins,
    /// Registers that may not leave again.
    pub temporary: SecondaryMap<VReg, bool>,
    begun: bool,
    flat_scratch: FlatScratch,
    accumulation: AccumulationFile,
    /// VGPRs whose lanes hold SGPRs.
    carriers: Vec<VReg>,
    /// Homes of this round.
    homes: SecondaryMap<VReg, Home>,
    /// How far each register's live segments have been followed.
    cursors: PrimaryMap<VReg, PackedOption<SegmentId>>,
    /// Registers that stood for operands of the previous instruction, and still hold their values.
    standing: SmallVec<[Stand; 4]>,
    spare_origins: Origins,
}

/// A short-lived register that stands for an operand.
#[derive(Copy, Clone)]
struct Stand {
    id: VReg,
    first: u32,
    width: u32,
    temporary: Operand,
    reads: bool,
    writes: bool,
}

impl Spiller {
    /// Starts with a new body for a chip with scratch and AGPRs of these kinds.
    pub(super) fn start(
        &mut self,
        body: &MachineBody,
        flat_scratch: FlatScratch,
        accumulation: AccumulationFile,
    ) {
        (self.flat_scratch, self.accumulation) = (flat_scratch, accumulation);
        self.spills = Spills::default();
        self.origins.clear();
        self.origins.extend(body.insts.keys().map(PackedOption::from));
        self.temporary.clear();
        self.begun = false;
        self.carriers.clear();
    }

    /// True once a register has been chosen to leave its file, or inputs have been released.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// True if a register may not leave its file.
    pub(super) fn is_temporary(&self, id: VReg) -> bool {
        self.temporary[id]
    }

    /// Moves inputs in `fixed` places to registers of their own at the start, so that they can be spilled
    /// later; not possible if control comes back to the start.
    pub(super) fn release_inputs(&mut self, body: &mut MachineBody, fixed: &[(VReg, Operand)]) {
        self.begun = true;
        let counted = self.spills.inserted;
        let looped = body.blocks.values().any(|block| block.successors.contains(&Some(BlockId::from_u32(0))));
        if looped || body.blocks.is_empty() {
            return;
        }
        let mut renamed = SecondaryMap::<VReg, Option<Operand>>::new();
        renamed.resize(body.registers.len());
        self.open(body);
        for &(id, _) in fixed {
            let Some(&register) = body.registers.get(id) else { continue };
            if renamed[id].is_some() {
                continue;
            }
            let copy = Operand::virtual_register(body.registers.push(register), 0);
            renamed[id] = Some(copy);
            let op = if register.file == RegisterFile::Sgpr { Opcode::SMovB32 } else { Opcode::VMovB32 };
            for part in 0..register.width.into() {
                let from = Operand::virtual_register(id, part);
                self.insert(body, Inst::new(op, &[copy.offset(part), from]), u32::MAX);
            }
        }
        let inserted = body.spare.next_key();
        for index in body.insts.keys() {
            let mut i = body.insts[index];
            for operand in &mut i.inst.operands {
                if let Some((id, first)) = operand.as_virtual()
                    && let Some(copy) = renamed[id]
                {
                    *operand = copy.offset(first);
                }
            }
            body.spare.push(i);
            self.spare_origins.push(self.origins[index]);
        }
        let moved = |inst: InstId| InstId::from_u32(inst.as_u32() + inserted.as_u32());
        for (index, block) in body.blocks.iter_mut() {
            block.start = if index == BlockId::from_u32(0) { block.start } else { moved(block.start) };
            block.end = moved(block.end);
        }
        self.finish(body);
        self.spills.inserted = counted;
    }

    /// Starts choosing homes for a body.
    pub(super) fn start_round(&mut self, body: &MachineBody) {
        self.homes.clear();
        self.homes.resize(body.registers.len());
        self.temporary.resize(body.registers.len());
    }

    /// Puts a register into scratch or lanes.
    pub(super) fn move_to_memory(&mut self, body: &mut MachineBody, id: VReg) {
        let VirtualRegister { file, width } = body.registers[id];
        let width = u32::from(width);
        self.homes[id] = if file == RegisterFile::Sgpr {
            let first = self.spills.to_lanes;
            self.spills.to_lanes += width;
            while self.carriers.len() as u32 * LANES < self.spills.to_lanes {
                let carrier = VirtualRegister { file: RegisterFile::Vgpr, width: 1 };
                let carrier = body.registers.push(carrier);
                self.carriers.push(carrier);
                self.temporary[carrier] = true;
            }
            Home::Lanes(first)
        } else {
            let at = self.spills.scratch_bytes;
            self.spills.scratch_bytes += 4 * width;
            self.spills.to_scratch += width;
            Home::Scratch(at)
        };
    }

    /// Puts a register into AGPRs.
    pub(super) fn move_to_agprs(&mut self, body: &mut MachineBody, id: VReg) {
        let register = &mut body.registers[id];
        register.file = RegisterFile::Agpr;
        self.spills.to_agprs += u32::from(register.width);
        self.homes[id] = Home::Agpr;
    }

    /// Moves C and D of all matrix instructions to the AGPRs, where nothing else takes them.
    ///
    /// # Errors
    /// An instruction other than those looks at lanes of them that are off.
    pub(super) fn accumulate_in_agprs(
        &mut self,
        body: &mut MachineBody,
        liveness: &Liveness,
    ) -> Result<Rewritten, AllocationError> {
        self.start_round(body);
        let mut moved = false;
        for index in body.insts.keys() {
            let inst = body.insts[index].inst;
            for operand in (0..inst.op.info().operands.len()).filter(|&operand| accumulates(&inst, operand)) {
                if let Some((id, _)) = inst.operands[operand].as_virtual()
                    && body.registers[id].file == RegisterFile::Vgpr
                {
                    self.move_to_agprs(body, id);
                    moved = true;
                }
            }
        }
        if !moved {
            return Ok(Rewritten::OperandsOnly);
        }
        let is_wrong = |&index: &InstId| {
            let inst = &body.insts[index].inst;
            let copied = |at: usize| {
                let home = self.home(inst.operands[at]);
                home == Home::Agpr && !may_be_agpr(inst, at, self.accumulation, |_| true)
            };
            liveness.is_masked(index) && ignores_exec(inst) && (0..MAX_OPERANDS).any(copied)
        };
        if let Some(inst) = body.insts.keys().find(is_wrong) {
            return Err(AllocationError::LanesOfAccumulator { inst });
        }
        let rewritten = self.rewrite(body, liveness);
        // This is their file: nothing has left its own.
        self.spills = Spills::default();
        Ok(rewritten)
    }

    /// Makes a register again wherever it is read, as instruction `index` makes it.
    pub(super) fn rematerialise(&mut self, body: &MachineBody, id: VReg, index: InstId) {
        self.spills.rematerialised += u32::from(body.registers[id].width);
        self.homes[id] = Home::MadeAgain(index);
    }

    /// Rewrites the body for the homes chosen. The next instruction uses what one instruction has loaded or
    /// made.
    pub(super) fn rewrite(&mut self, body: &mut MachineBody, liveness: &Liveness) -> Rewritten {
        let before = (self.spills.inserted, body.registers.len());
        let dropped = self.homes.values().any(|home| matches!(home, Home::MadeAgain(_)));
        self.open(body);
        self.cursors.clear();
        self.cursors.extend(liveness.first.values().copied());
        for block in body.blocks.keys() {
            let old = body.blocks[block];
            body.blocks[block].start = body.spare.next_key();
            self.standing.clear();
            for index in old.insts() {
                let last = index.next() == old.end;
                let i = body.insts[index];
                let concerned = i.inst.operands.iter().any(|operand| self.home(*operand) != Home::Register);
                if !concerned {
                    self.standing.clear();
                    self.keep(body, i, self.origins[index]);
                } else if self.rewrite_move(body, &i, liveness.is_masked(index)) {
                    self.standing.clear();
                } else {
                    let dead = |spiller: &mut Self, stand: &Stand| {
                        !last && spiller.is_dead(liveness, stand, Position::read(index.next()))
                    };
                    self.rewrite_instruction(body, i, self.origins[index], liveness.is_masked(index), dead);
                }
            }
            body.blocks[block].end = body.spare.next_key();
        }
        self.finish(body);
        for added in iter_entity_range(VReg::new(before.1)..body.registers.next_key()) {
            self.temporary[added] = true;
        }
        match before == (self.spills.inserted, body.registers.len()) && !dropped {
            true => Rewritten::OperandsOnly,
            false => Rewritten::Instructions,
        }
    }

    fn open(&mut self, body: &mut MachineBody) {
        body.spare.clear();
        self.spare_origins.clear();
    }

    fn finish(&mut self, body: &mut MachineBody) {
        std::mem::swap(&mut body.insts, &mut body.spare);
        std::mem::swap(&mut self.origins, &mut self.spare_origins);
    }

    fn keep(&mut self, body: &mut MachineBody, i: MachineInst, origin: PackedOption<InstId>) {
        body.spare.push(i);
        self.spare_origins.push(origin);
    }

    fn insert(&mut self, body: &mut MachineBody, inst: Inst, source: u32) {
        self.spills.inserted += 1;
        self.keep(body, MachineInst { inst, source }, PackedOption::default());
    }

    fn home(&self, operand: Operand) -> Home {
        operand.as_virtual().map(|(id, _)| self.homes[id]).unwrap_or_default()
    }

    fn file(body: &MachineBody, operand: Operand) -> Option<RegisterFile> {
        match operand.as_virtual() {
            Some((id, _)) => Some(body.registers[id].file),
            None => super::operands::file_and_number(operand).map(|(file, _)| file),
        }
    }

    /// Moves need no register in between: true if this one was rewritten, or has become superfluous.
    fn rewrite_move(&mut self, body: &mut MachineBody, i: &MachineInst, masked: bool) -> bool {
        use RegisterFile::{Agpr, Sgpr, Vgpr};
        let [to, from, ..] = i.inst.operands;
        let home = self.home(to);
        if let Home::MadeAgain(_) = home {
            return self.is_own_move(body, to, i);
        }
        let is_separate = self.accumulation == AccumulationFile::Separate;
        let in_vector_file = |home: Home| matches!(home, Home::Register | Home::Agpr);
        if becomes_agpr_write(&i.inst) && !masked && in_vector_file(home) && in_vector_file(self.home(from)) {
            let mut from = from;
            let op = match (Self::file(body, to), Self::file(body, from)) {
                (Some(Agpr), Some(Agpr)) if is_separate => {
                    let between = vgprs(body, 1);
                    self.insert(body, Inst::new(Opcode::VAccvgprReadB32, &[between, from]), i.source);
                    from = between;
                    Opcode::VAccvgprWriteB32
                }
                (Some(Agpr), Some(Agpr)) => Opcode::VAccvgprMovB32,
                (Some(Agpr), Some(Vgpr) | None) => Opcode::VAccvgprWriteB32,
                (Some(Vgpr), Some(Agpr)) => Opcode::VAccvgprReadB32,
                _ => return false,
            };
            self.insert(body, Inst::new(op, &[to, from]), i.source);
            self.spills.inserted -= 1;
            return true;
        }
        if as_copy(&i.inst).is_none() {
            return false;
        }
        let width = u32::from(i.inst.width(0));
        let files = [to, from].map(|operand| Self::file(body, operand));
        // Memory takes and gives VGPRs, wherever the other operand is.
        let same_file = files[0] == files[1] || is_separate && !files.contains(&Some(Sgpr));
        match (home, self.home(from)) {
            (Home::Register, Home::Scratch(at)) if same_file => {
                self.load(body, to, at + 4 * part(from), width, i.source);
            }
            (Home::Scratch(at), Home::Register) if same_file => {
                self.store(body, at + 4 * part(to), from, width, i.source);
            }
            (Home::Register, Home::Lanes(lane)) if to.is_virtual() && Self::file(body, to) == Some(Sgpr) => {
                self.read_lanes(body, to, lane + part(from), width, i.source);
            }
            (Home::Lanes(lane), Home::Register)
                if from.is_virtual() && Self::file(body, from) == Some(Sgpr) =>
            {
                self.write_lanes(body, lane + part(to), from, width, i.source);
            }
            _ => return false,
        }
        true
    }

    /// True for the one write of a constant, which is not needed where it stands.
    fn is_own_move(&self, body: &MachineBody, to: Operand, i: &MachineInst) -> bool {
        let Home::MadeAgain(index) = self.home(to) else { return false };
        body.insts[index] == *i
    }

    /// True if no part of an operand holds a value at a position; positions must not decrease.
    fn is_dead(&mut self, liveness: &Liveness, stand: &Stand, position: Position) -> bool {
        let cursor = &mut self.cursors[stand.id];
        while let Some(segment) = liveness.segments.at(*cursor).filter(|s| s.end < position) {
            *cursor = segment.next;
        }
        let parts = (((1u64 << stand.width) - 1) << stand.first) as u32;
        let segment = liveness.segments.at(*cursor);
        segment.is_none_or(|s| s.start > position || s.parts & parts == 0)
    }

    fn rewrite_instruction(
        &mut self,
        body: &mut MachineBody,
        mut i: MachineInst,
        origin: PackedOption<InstId>,
        masked: bool,
        dead: impl Fn(&mut Self, &Stand) -> bool,
    ) {
        let mut stands = self.stand_in(body, &mut i.inst, masked);
        for stand in &mut stands {
            let same =
                |other: &&Stand| (other.id, other.first, other.width) == (stand.id, stand.first, stand.width);
            match self.standing.iter().find(same) {
                Some(standing) if stand.reads => {
                    for operand in i.inst.operands.iter_mut().filter(|operand| **operand == stand.temporary) {
                        *operand = standing.temporary;
                    }
                    stand.temporary = standing.temporary;
                }
                _ if stand.reads => self.fetch(body, stand, i.source),
                _ => {}
            }
        }
        self.keep(body, i, origin);
        for stand in stands.iter().filter(|stand| stand.writes) {
            if !dead(self, stand) {
                self.put_away(body, stand, i.source);
            }
        }
        // What overlaps a written register holds an old value now, and so does everything once other lanes
        // become active.
        let exec = exec_write(&i.inst) != ExecWrite::None;
        let stale = |stand: &Stand| {
            let meets = |other: &Stand| {
                other.id == stand.id
                    && other.first < stand.first + stand.width
                    && stand.first < other.first + other.width
            };
            exec || stands
                .iter()
                .any(|other| other.writes && other.temporary != stand.temporary && meets(other))
        };
        self.standing.clear();
        let standing: SmallVec<[Stand; 4]> = stands.iter().filter(|stand| !stale(stand)).copied().collect();
        self.standing.extend(standing);
    }

    /// Lets registers of the width of an instruction's operands stand for those that have left theirs.
    fn stand_in(&self, body: &mut MachineBody, inst: &mut Inst, masked: bool) -> SmallVec<[Stand; 4]> {
        let original = *inst;
        let mut stands: SmallVec<[Stand; 4]> = SmallVec::new();
        let in_agpr =
            |body: &MachineBody, operand: Operand| Self::file(body, operand) == Some(RegisterFile::Agpr);
        for index in 0..original.op.info().operands.len() {
            let operand = original.operands[index];
            let home = self.home(operand);
            let Some((id, first)) = operand.as_virtual().filter(|_| home != Home::Register) else { continue };
            let accumulation = self.accumulation;
            if home == Home::Agpr && may_be_agpr(&original, index, accumulation, |other| in_agpr(body, other))
            {
                continue;
            }
            let width = u32::from(original.width(index));
            let same = |stand: &Stand| stand.id == id && stand.first == first && stand.width == width;
            let at = stands.iter().position(same).unwrap_or_else(|| {
                let file = match home {
                    Home::Agpr => RegisterFile::Vgpr,
                    _ => body.registers[id].file,
                };
                let register = VirtualRegister { file, width: width as u8 };
                let temporary = Operand::virtual_register(body.registers.push(register), 0);
                stands.push(Stand { id, first, width, temporary, reads: false, writes: false });
                stands.len() - 1
            });
            let role = inst.role(index);
            let stand = &mut stands[at];
            stand.reads |= role != Role::Def || masked && home == Home::Agpr;
            stand.writes |= role != Role::Use;
            inst.operands[index] = stand.temporary;
        }
        stands
    }

    fn fetch(&mut self, body: &mut MachineBody, stand: &Stand, source: u32) {
        let Stand { id, first, width, temporary, .. } = *stand;
        match self.homes[id] {
            Home::Register => {}
            Home::Agpr => {
                for part in 0..width {
                    let from = Operand::virtual_register(id, first + part);
                    let read = Inst::new(Opcode::VAccvgprReadB32, &[temporary.offset(part), from]);
                    self.insert(body, read, source);
                }
            }
            Home::Scratch(at) => self.load(body, temporary, at + 4 * first, width, source),
            Home::Lanes(lane) => self.read_lanes(body, temporary, lane + first, width, source),
            Home::MadeAgain(index) => {
                let mut inst = body.insts[index].inst;
                inst.operands[0] = temporary;
                self.insert(body, inst, source);
            }
        }
    }

    fn put_away(&mut self, body: &mut MachineBody, stand: &Stand, source: u32) {
        let Stand { id, first, width, temporary, .. } = *stand;
        match self.homes[id] {
            Home::Register | Home::MadeAgain(_) => {}
            Home::Agpr => {
                for part in 0..width {
                    let to = Operand::virtual_register(id, first + part);
                    let write = Inst::new(Opcode::VAccvgprWriteB32, &[to, temporary.offset(part)]);
                    self.insert(body, write, source);
                }
            }
            Home::Scratch(at) => self.store(body, at + 4 * first, temporary, width, source),
            Home::Lanes(lane) => self.write_lanes(body, lane + first, temporary, width, source),
        }
    }

    fn load(&mut self, body: &mut MachineBody, to: Operand, at: u32, width: u32, source: u32) {
        for (part, registers) in accesses(width) {
            let op = [
                Opcode::ScratchLoadDword,
                Opcode::ScratchLoadDwordx2,
                Opcode::ScratchLoadDwordx3,
                Opcode::ScratchLoadDwordx4,
            ][registers as usize - 1];
            let (base, offset) = self.base(body, at + 4 * part, source);
            let own = to.offset(part);
            let data = if self.is_memory_data(body, to) { own } else { vgprs(body, registers) };
            self.insert(body, Inst::new(op, &[data, Operand::NONE, base]).imm(offset), source);
            for at in (0..registers).filter(|_| data != own) {
                let write = Inst::new(Opcode::VAccvgprWriteB32, &[own.offset(at), data.offset(at)]);
                self.insert(body, write, source);
            }
        }
    }

    fn store(&mut self, body: &mut MachineBody, at: u32, from: Operand, width: u32, source: u32) {
        for (part, registers) in accesses(width) {
            let op = [
                Opcode::ScratchStoreDword,
                Opcode::ScratchStoreDwordx2,
                Opcode::ScratchStoreDwordx3,
                Opcode::ScratchStoreDwordx4,
            ][registers as usize - 1];
            let (base, offset) = self.base(body, at + 4 * part, source);
            let own = from.offset(part);
            let data = if self.is_memory_data(body, from) { own } else { vgprs(body, registers) };
            for at in (0..registers).filter(|_| data != own) {
                let read = Inst::new(Opcode::VAccvgprReadB32, &[data.offset(at), own.offset(at)]);
                self.insert(body, read, source);
            }
            self.insert(body, Inst::new(op, &[Operand::NONE, data, base]).imm(offset), source);
        }
    }

    /// True if memory instructions take a register as data: AGPRs in a file of their own they do not.
    fn is_memory_data(&self, body: &MachineBody, register: Operand) -> bool {
        self.accumulation != AccumulationFile::Separate
            || Self::file(body, register) != Some(RegisterFile::Agpr)
    }

    /// Scalar base and immediate offset of a byte of scratch. Chips with absolute scratch have no accesses
    /// without any register in their address (LLVM, `GCNSubtarget::hasFlatScratchSTMode`).
    fn base(&mut self, body: &mut MachineBody, at: u32, source: u32) -> (Operand, u32) {
        if at < OFFSET_REACH && self.flat_scratch == FlatScratch::Architected {
            return (Operand::NONE, at);
        }
        let register = VirtualRegister { file: RegisterFile::Sgpr, width: 1 };
        let base = Operand::virtual_register(body.registers.push(register), 0);
        let bits = at / OFFSET_REACH * OFFSET_REACH;
        self.insert(body, Inst::new(Opcode::SMovB32, &[base, Operand::constant(bits)]).imm(bits), source);
        (base, at % OFFSET_REACH)
    }

    fn carrier(&self, lane: u32) -> (Operand, Operand) {
        let carrier = Operand::virtual_register(self.carriers[(lane / LANES) as usize], 0);
        (carrier, Operand::constant(lane % LANES))
    }

    fn read_lanes(&mut self, body: &mut MachineBody, to: Operand, first: u32, width: u32, source: u32) {
        for part in 0..width {
            let (carrier, lane) = self.carrier(first + part);
            self.insert(body, Inst::new(Opcode::VReadlaneB32, &[to.offset(part), carrier, lane]), source);
        }
    }

    fn write_lanes(&mut self, body: &mut MachineBody, first: u32, from: Operand, width: u32, source: u32) {
        for part in 0..width {
            let (carrier, lane) = self.carrier(first + part);
            self.insert(body, Inst::new(Opcode::VWritelaneB32, &[carrier, from.offset(part), lane]), source);
        }
    }
}

/// New VGPRs that follow each other.
fn vgprs(body: &mut MachineBody, width: u32) -> Operand {
    let register = VirtualRegister { file: RegisterFile::Vgpr, width: width as u8 };
    Operand::virtual_register(body.registers.push(register), 0)
}

/// First part of a virtual operand.
fn part(operand: Operand) -> u32 {
    operand.as_virtual().map_or(0, |(_, first)| first)
}

/// Splits a tuple into accesses: first part and number of registers.
fn accesses(width: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..width).step_by(4).map(move |part| (part, (width - part).min(4)))
}
