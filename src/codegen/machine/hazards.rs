//! Keeps dependent instructions as far apart as the hardware asks for: moves an independent instruction into the gap if
//! there is one near by, and fills the rest with `s_nop`.
//!
//! Every emitted instruction is one wait state. The pass goes over the blocks in layout order with a short list of the
//! producers that may still matter and how far back they are; at a join every producer counts with its shortest
//! distance, and a loop header is done again when the end of the loop brings something new. What is a hazard stands in
//! the tables of `hazard_rows`.
//!
//! Apart from wait states, runs of memory instructions are broken where a replay after a page fault (XNACK) would read a
//! source that the run has overwritten, or mix loads and stores (LLVM GCNHazardRecognizer, `checkSoftClauseHazards`);
//! our code objects promise to run in either XNACK mode.

use super::access::{Range, Touched, accesses, is_valu, is_vmem};
use super::body::{Body, MachineInst};
use super::hazard_rows::column;
use super::hazard_rows::{
    LONGEST_MATRIX_ROW, LONGEST_ROW, MATRIX_ROWS, MATRIX_USES, MatrixClass, MatrixUse, ROWS, When,
    matrix_class, passes_column,
};
use crate::codegen::isa::{Arch, Field, Inst, MAX_OPERANDS, Meaning, OpInfo, Opcode, Operand, Role, Unit};

/// How many instructions ahead an instruction for a gap is looked for.
const WINDOW: usize = 12;

/// Number of VGPRs and AGPRs.
const VECTORS: usize = (Operand::END - Operand::FIRST_VGPR) as usize;

/// Places of vector registers among themselves.
fn vectors(range: Range) -> std::ops::Range<usize> {
    let first = usize::from(range.start).saturating_sub(Operand::FIRST_VGPR as usize);
    first..first + usize::from(range.len)
}

/// An earlier instruction that later ones may have to keep away from.
#[derive(Copy, Clone)]
struct Recent {
    inst: Inst,
    /// Index in the body, which names it in block entry states.
    index: u32,
    /// Clock when it was emitted.
    at: i32,
    /// Rows of the table that it can begin.
    rows: u32,
}

/// A recent matrix instruction with what the check needs of it.
#[derive(Copy, Clone)]
struct RecentMatrix {
    index: u32,
    at: i32,
    class: MatrixClass,
    passes: u8,
    d: Range,
    /// C if it is in registers, else empty.
    c: Range,
}

/// What a later instruction does with vector registers, as matrix hazards tell apart.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Touch {
    AOrB,
    C,
    Reads,
    Writes,
    Both,
}

/// A producer that is still near at a block start: index in the body and wait states since.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Pending {
    index: u32,
    elapsed: u32,
}

/// Registers by operand number.
type RegisterSet = [u64; Operand::END as usize / 64];

/// A run of scalar or of vector memory instructions.
#[derive(Copy, Clone, Default, PartialEq, Eq)]
struct Run {
    kind: RunKind,
    defs: RegisterSet,
    uses: RegisterSet,
}

#[derive(Copy, Clone, Default, PartialEq, Eq)]
enum RunKind {
    #[default]
    None,
    Scalar,
    Vector,
}

/// State of a block start.
#[derive(Clone, Default)]
struct Entry {
    pending: Vec<Pending>,
    run: Run,
}

/// The pass and its memory, which is reused from body to body.
pub struct HazardResolver {
    target: Arch,
    /// By opcode: rows that it can begin, rows that it can end.
    begins: Vec<u32>,
    ends: Vec<u32>,
    /// Wait states by class, use and passes.
    matrix: [[[u8; 4]; MATRIX_USES]; 3],
    entries: Vec<Entry>,
    recent: Vec<Recent>,
    matrices: Vec<RecentMatrix>,
    /// When each vector register was last D or C of a matrix instruction.
    matrix_at: Vec<i32>,
    clock: i32,
    run: Run,
    /// Instructions of the current block that have gone into a gap before them.
    moved: Vec<bool>,
    passed: Vec<Touched>,
    /// New block ranges.
    ranges: Vec<(u32, u32)>,
}

const _: () = assert!(ROWS.len() <= 32);

impl HazardResolver {
    /// For one target.
    pub fn new(target: Arch) -> HazardResolver {
        let rows = |side: &dyn Fn(usize, &OpInfo) -> bool| -> Vec<u32> {
            let of = |op: &Opcode| {
                let applies = |&n: &usize| ROWS[n].waits[column(target)] > 0 && side(n, op.info());
                (0..ROWS.len()).filter(applies).fold(0, |bits, n| bits | 1 << n)
            };
            Opcode::ALL.iter().map(of).collect()
        };
        let mut matrix = [[[0; 4]; MATRIX_USES]; 3];
        for row in MATRIX_ROWS {
            matrix[row.first as usize][row.then.index()] = row.waits[column(target)];
        }
        HazardResolver {
            target,
            begins: rows(&|n, info| ROWS[n].first.0.contains(info) && ROWS[n].first.1.possible(info)),
            ends: rows(&|n, info| ROWS[n].then.0.contains(info) && ROWS[n].then.1.possible(info)),
            matrix,
            entries: Vec::new(),
            recent: Vec::new(),
            matrices: Vec::new(),
            matrix_at: Vec::new(),
            clock: 0,
            run: Run::default(),
            moved: Vec::new(),
            passed: Vec::new(),
            ranges: Vec::new(),
        }
    }

    /// Resolves all hazards of `body`, which has physical registers and its waits.
    pub fn resolve(&mut self, body: &mut Body) {
        self.entries.truncate(body.blocks.len());
        for entry in &mut self.entries {
            entry.pending.clear();
            entry.run = Run::default();
        }
        self.entries.resize(body.blocks.len(), Entry::default());
        self.ranges.clear();
        body.spare.clear();
        let mut block = 0;
        while block < body.blocks.len() {
            self.ranges.truncate(block);
            body.spare.truncate(self.ranges.last().map_or(0, |range| range.1 as usize));
            self.enter(body, block);
            let start = body.spare.len() as u32;
            let range = body.blocks[block];
            self.emit_block(&body.insts, range.start as usize, range.end as usize, &mut body.spare);
            self.ranges.push((start, body.spare.len() as u32));
            block = self.leave(body, block);
        }
        for (block, range) in body.blocks.iter_mut().zip(&self.ranges) {
            (block.start, block.end) = *range;
        }
        std::mem::swap(&mut body.insts, &mut body.spare);
    }

    fn enter(&mut self, body: &Body, block: usize) {
        self.clock = 0;
        self.recent.clear();
        self.matrices.clear();
        self.matrix_at.clear();
        self.matrix_at.resize(VECTORS, i32::MIN);
        let mut entry = std::mem::take(&mut self.entries[block]);
        // Oldest first, as if they had just been emitted.
        entry.pending.sort_unstable_by_key(|p| (std::cmp::Reverse(p.elapsed), p.index));
        for pending in &entry.pending {
            let inst = body.insts[pending.index as usize].inst;
            self.remember(inst, pending.index, -1 - pending.elapsed as i32);
        }
        self.run = entry.run;
        self.entries[block] = entry;
    }

    /// Hands the state on to the successors; the next block to do, which is an earlier one if a loop brought news.
    fn leave(&mut self, body: &Body, block: usize) -> usize {
        let mut next = block + 1;
        for &successor in body.blocks[block].successors.iter().flatten() {
            let entry = &mut self.entries[successor as usize];
            let mut changed = join_run(&mut entry.run, &self.run);
            let since = |at: i32| (self.clock - at - 1) as u32;
            let rows = self.recent.iter().map(|r| (r.index, since(r.at), LONGEST_ROW));
            let matrices = self.matrices.iter().map(|r| (r.index, since(r.at), LONGEST_MATRIX_ROW));
            for (index, elapsed, longest) in rows.chain(matrices) {
                if elapsed >= longest {
                    continue;
                }
                match entry.pending.iter_mut().find(|p| p.index == index) {
                    Some(known) if known.elapsed <= elapsed => continue,
                    Some(known) => known.elapsed = elapsed,
                    None => entry.pending.push(Pending { index, elapsed }),
                }
                changed = true;
            }
            if changed {
                next = next.min(successor as usize);
            }
        }
        next
    }

    fn emit_block(&mut self, insts: &[MachineInst], start: usize, end: usize, out: &mut Vec<MachineInst>) {
        self.moved.clear();
        self.moved.resize(end - start, false);
        for index in start..end {
            if self.moved[index - start] {
                continue;
            }
            let i = insts[index];
            let mut need = self.needed(&i.inst);
            while need > 0 {
                match self.find_filler(insts, start, end, index) {
                    Some(filler) => {
                        self.moved[filler - start] = true;
                        self.emit(insts[filler], filler as u32, out);
                        need = self.needed(&i.inst);
                    }
                    None => {
                        while need > 0 {
                            let states = need.min(16);
                            let nop = Inst::new(Opcode::SNop, &[]).imm(states - 1);
                            self.emit(MachineInst { inst: nop, source: i.source }, u32::MAX, out);
                            need -= states;
                        }
                    }
                }
            }
            self.emit(i, index as u32, out);
        }
    }

    fn emit(&mut self, i: MachineInst, index: u32, out: &mut Vec<MachineInst>) {
        out.push(i);
        self.remember(i.inst, index, self.clock);
        self.clock += wait_states(&i.inst) as i32;
        self.continue_run(&i.inst);
    }

    fn remember(&mut self, inst: Inst, index: u32, at: i32) {
        let rows = self.begins[inst.op as usize];
        if rows != 0 {
            self.recent.retain(|r| at - r.at <= LONGEST_ROW as i32);
            self.recent.push(Recent { inst, index, at, rows });
        }
        if let Some((class, passes)) = matrix_class(inst.op.info(), self.target) {
            self.matrices.retain(|r| at - r.at <= LONGEST_MATRIX_ROW as i32);
            let range = |operand: usize| {
                let number =
                    inst.operands[operand].number().filter(|_| !inst.operands[operand].is_constant());
                let len = if number.is_some() { inst.width(operand).into() } else { 0 };
                Range { start: number.unwrap_or(0) as u16, len }
            };
            let (d, c) = (range(0), range(3));
            self.matrix_at[vectors(d)].fill(at);
            self.matrix_at[vectors(c)].fill(at);
            self.matrices.push(RecentMatrix { index, at, class, passes, d, c });
        }
    }

    /// Wait states that are missing before `inst`.
    fn needed(&self, inst: &Inst) -> u32 {
        let mut need = u32::from(self.breaks_run(inst));
        let ends = self.ends[inst.op as usize];
        for r in self.recent.iter().rev() {
            let elapsed = (self.clock - r.at - 1) as u32;
            if elapsed >= LONGEST_ROW {
                break;
            }
            let mut rows = r.rows & ends;
            while rows != 0 {
                let row = rows.trailing_zeros() as usize;
                rows &= rows - 1;
                let waits = u32::from(ROWS[row].waits[column(self.target)]);
                if waits > elapsed + need && self.applies(row, r, inst) {
                    need = waits - elapsed;
                }
            }
        }
        if !self.matrices.is_empty() {
            need = need.max(self.needed_by_matrices(inst));
        }
        need
    }

    fn applies(&self, row: usize, first: &Recent, then: &Inst) -> bool {
        let row = &ROWS[row];
        let when = match row.when {
            When::Always => true,
            When::SameOpcode => first.inst.op == then.op,
            When::OtherOpcode => first.inst.op != then.op,
            When::DgemmBetween => {
                self.matrices.iter().any(|m| m.class == MatrixClass::Dgemm && m.at > first.at)
            }
        };
        when && match (row.first.1.of(&first.inst), row.then.1.of(then)) {
            (Some(one), Some(other)) => one.overlaps(&other),
            (Some(some), None) | (None, Some(some)) => !some.as_slice().is_empty(),
            (None, None) => true,
        }
    }

    fn needed_by_matrices(&self, inst: &Inst) -> u32 {
        let info = inst.op.info();
        let own = matrix_class(info, self.target);
        let memory = is_vmem(info) || info.unit == Unit::Lds;
        if own.is_none() && !memory && !is_valu(info) {
            return 0;
        }
        // What the instruction does with vector registers.
        let mut touches = [(Range { start: 0, len: 0 }, Touch::Writes); MAX_OPERANDS];
        let mut count = 0;
        for access in accesses(inst) {
            let Some(range) = access.range().filter(|range| range.is_vector()) else { continue };
            touches[count] = match (access.role, own) {
                (Role::Def, Some(_)) => continue,
                (_, Some(_)) if access.field == Field::Src2 => (range, Touch::C),
                (_, Some(_)) => (range, Touch::AOrB),
                (Role::Use, None) => (range, Touch::Reads),
                (Role::Def, None) => (range, Touch::Writes),
                (Role::DefUse, None) => (range, Touch::Both),
            };
            count += 1;
        }
        let touches = &touches[..count];
        let recent = self.clock - LONGEST_MATRIX_ROW as i32;
        if touches.iter().all(|(range, _)| self.matrix_at[vectors(*range)].iter().all(|&at| at < recent)) {
            return 0;
        }
        let mut need = 0;
        for r in self.matrices.iter().rev() {
            let elapsed = (self.clock - r.at - 1) as u32;
            if elapsed >= LONGEST_MATRIX_ROW {
                break;
            }
            let mut check = |then: MatrixUse| {
                let waits = self.matrix[r.class as usize][then.index()][passes_column(r.passes)];
                need = need.max(u32::from(waits).saturating_sub(elapsed));
            };
            for &(range, touch) in touches {
                if matches!(touch, Touch::Writes | Touch::Both) && r.c.len > 0 && range.overlaps(r.c) {
                    check(MatrixUse::WritesC);
                }
                if !range.overlaps(r.d) {
                    continue;
                }
                if touch == Touch::Both && memory {
                    check(MatrixUse::Memory);
                }
                check(match (touch, own) {
                    (Touch::C, Some((class, _))) if range != r.d => MatrixUse::COverlap(class),
                    (Touch::C, Some((class, passes))) if passes != r.passes => {
                        MatrixUse::CSameRegisters(class)
                    }
                    (Touch::C, Some((class, _))) => MatrixUse::CSame(class),
                    (Touch::AOrB | Touch::C, _) => MatrixUse::AOrB,
                    (Touch::Reads, _) if memory => MatrixUse::Memory,
                    (Touch::Reads | Touch::Writes | Touch::Both, _) => MatrixUse::Valu,
                });
            }
        }
        need
    }

    /// An instruction behind `index` that can go before it without anybody noticing, and that is no hazard there.
    fn find_filler(
        &mut self,
        insts: &[MachineInst],
        start: usize,
        end: usize,
        index: usize,
    ) -> Option<usize> {
        let mut passed = std::mem::take(&mut self.passed);
        passed.clear();
        passed.push(Touched::of(&insts[index].inst));
        let mut found = None;
        if !stays(&insts[index].inst) {
            let window = insts[..end].iter().enumerate().skip(index + 1).take(WINDOW);
            for (candidate, MachineInst { inst, .. }) in window {
                if self.moved[candidate - start] {
                    continue;
                }
                if stays(inst) {
                    break;
                }
                let touched = Touched::of(inst);
                let free = is_movable(inst) && !passed.iter().any(|other| touched.depends_on(other));
                if free && self.needed(inst) == 0 {
                    found = Some(candidate);
                    break;
                }
                passed.push(touched);
            }
        }
        self.passed = passed;
        found
    }

    fn breaks_run(&self, inst: &Inst) -> bool {
        let info = inst.op.info();
        if self.run.kind == RunKind::None || run_kind(info) != self.run.kind {
            return false;
        }
        if info.may_store() && self.run.defs != RegisterSet::default() {
            return true;
        }
        let mut own = Run::default();
        add_to_run(&mut own, inst);
        let meet = |a: &RegisterSet, b: &RegisterSet| a.iter().zip(b).any(|(a, b)| a & b != 0);
        meet(&own.defs, &self.run.uses) || meet(&own.uses, &self.run.defs)
    }

    fn continue_run(&mut self, inst: &Inst) {
        let kind = run_kind(inst.op.info());
        if kind != self.run.kind {
            self.run = Run { kind, ..Run::default() };
        }
        if kind != RunKind::None {
            add_to_run(&mut self.run, inst);
        }
    }
}

fn run_kind(info: &OpInfo) -> RunKind {
    match info.unit {
        Unit::Smem => RunKind::Scalar,
        Unit::Vmem | Unit::Flat => RunKind::Vector,
        _ => RunKind::None,
    }
}

fn add_to_run(run: &mut Run, inst: &Inst) {
    let touched = Touched::of(inst);
    for (set, ranges) in [(&mut run.defs, &touched.defs), (&mut run.uses, &touched.uses)] {
        for range in ranges.as_slice() {
            range.numbers().for_each(|number| set[number / 64] |= 1 << (number % 64));
        }
    }
}

/// Joins runs that reach a block on several paths; true if that made more of it.
fn join_run(own: &mut Run, other: &Run) -> bool {
    let before = *own;
    if other.kind != RunKind::None {
        // Of two kinds the vector one is kept: scalar loads and vector memory meet at a join without a branch
        // between only if both paths fall through, which they cannot.
        own.kind = if own.kind == RunKind::None { other.kind } else { own.kind };
        for (set, more) in [(&mut own.defs, &other.defs), (&mut own.uses, &other.uses)] {
            set.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
        }
    }
    *own != before
}

/// Wait states that an instruction counts for.
pub(super) fn wait_states(inst: &Inst) -> u32 {
    if inst.op.info().meaning == Meaning::Nop { (inst.imm & 15) + 1 } else { 1 }
}

/// True for instructions that nothing is moved across.
fn stays(inst: &Inst) -> bool {
    let info = inst.op.info();
    matches!(info.unit, Unit::Branch | Unit::Barrier | Unit::Wait | Unit::Nop | Unit::Other)
        || matches!(
            info.meaning,
            Meaning::SetHardwareRegister | Meaning::GetHardwareRegister | Meaning::GetPc
        )
}

/// True for instructions that may go into a gap: arithmetic that leaves EXEC alone.
fn is_movable(inst: &Inst) -> bool {
    let info = inst.op.info();
    matches!(info.unit, Unit::Salu | Unit::Valu | Unit::Trans | Unit::Mfma(_))
        && !Touched::of(inst).defs.touches(Range::EXEC)
}
