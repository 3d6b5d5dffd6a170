//! Keeps dependent instructions as far apart as the hardware requires: moves an independent instruction into
//! the gap if there is one near by, and fills the rest with `s_nop`.
//!
//! Every emitted instruction is one wait state. The pass goes over the blocks in layout order with a short
//! list of the producers that may still matter and of how far back they are; at a join every producer counts
//! with its shortest distance, and a loop header is done again when the end of the loop brings something new
//! that its code is too near to.
//! The tables of `hazard_rows` and `matrix_rows` say what is a hazard.
//!
//! Where control leaves the body for unknown code (calls, returns, traps) nothing may be pending: each side
//! clears what it has begun before it hands over control.
//!
//! In addition to wait states, the pass breaks runs of memory instructions that a replay would execute
//! wrongly (`replay`), unless XNACK is known to be off, and repairs errata that wait states do not solve
//! (`repairs`).

use super::access::{
    Ranges, RegisterRange, TouchedRegisters, accesses, changes_indexing, is_valu, is_vmem, leaves_body,
};
use super::body::{InstId, MachineBody, MachineInst};
use super::dataflow::{Dataflow, News, Rewrite, State};
use super::hazard_rows::{CountedRegisters, HazardClass, HazardRow, LONGEST_ROW, ROWS, When};
use super::matrix_rows::{
    COLUMNS, LONGEST_MATRIX_ROW, MATRIX_ROWS, MATRIX_USES, MatrixClass, MatrixUse, forwards, matrix_class,
    passes_column,
};
use super::register_set::TouchedSet;
use super::repairs::{changes_vccz, copy_vcc, end_of_vgprs, reads_vccz, replaced_shift};
use super::replay::MemoryRun;
use crate::codegen::isa::{Arch, Field, Inst, MAX_OPERANDS, Meaning, Opcode, Operand, Role, Unit};
use cranelift_entity::PrimaryMap;

/// How many instructions ahead the pass looks for one to move into a gap.
const WINDOW: usize = 12;

/// Once so many instructions are remembered, those too far back are forgotten.
const MANY: usize = 128;

/// After so many wait states nothing is pending any more.
const LONGEST: i32 = (if LONGEST_ROW > LONGEST_MATRIX_ROW { LONGEST_ROW } else { LONGEST_MATRIX_ROW }) as i32;

/// Number of VGPRs and AGPRs.
const VECTORS: usize = (Operand::END - Operand::FIRST_VGPR) as usize;

/// Indexes of vector registers, counted from v0.
fn vectors(range: RegisterRange) -> std::ops::Range<usize> {
    let first = usize::from(range.start).saturating_sub(Operand::FIRST_VGPR as usize);
    first..first + usize::from(range.len)
}

/// Whether a page fault may be retried, by issuing the run of memory instructions around it again.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Xnack {
    /// The code must run in either mode.
    #[default]
    MayBeOn,
    /// It never is.
    Off,
}

/// An earlier instruction that later ones may have to keep away from.
#[derive(Copy, Clone)]
struct Recent {
    inst: Inst,
    /// Clock when it was emitted.
    at: i32,
    /// Rows of the table whose first instruction it is.
    rows: u64,
    /// Its VGPRs may have been indexed.
    indexed: bool,
}

/// A recent matrix instruction with what the check needs of it.
#[derive(Copy, Clone)]
struct RecentMatrix {
    inst: Inst,
    at: i32,
    class: MatrixClass,
    passes: u8,
    d: RegisterRange,
    /// C if it is in registers of its own, else empty.
    c: RegisterRange,
}

/// What a later instruction does with vector registers, as matrix hazards distinguish it.
#[derive(Copy, Clone, PartialEq, Eq)]
enum HazardTouch {
    AOrB,
    C,
    Reads,
    Writes,
    Both,
}

/// A producer that is still near where a block starts, and the wait states since then. Equal instructions
/// count as one here.
#[derive(Copy, Clone, PartialEq, Eq)]
struct PendingProducer {
    inst: Inst,
    indexed: bool,
    elapsed: u32,
}

/// What matters where a block starts.
#[derive(Default)]
struct BlockHazards {
    pending: Vec<PendingProducer>,
    run: MemoryRun,
    /// VGPRs may be indexed.
    indexing: bool,
    /// VCCZ may not be what VCC says.
    stale_vccz: bool,
}

impl BlockHazards {
    /// Notes a producer, whose shortest distance counts; true if that is news.
    fn note(&mut self, new: PendingProducer) -> bool {
        match self.pending.iter_mut().find(|p| p.inst == new.inst && p.indexed == new.indexed) {
            Some(known) if known.elapsed <= new.elapsed => return false,
            Some(known) => known.elapsed = new.elapsed,
            None => self.pending.push(new),
        }
        true
    }
}

impl State for BlockHazards {
    fn clear(&mut self) {
        self.pending.clear();
        (self.run, self.indexing, self.stale_vccz) = (MemoryRun::default(), false, false);
    }

    fn join(&mut self, other: &BlockHazards) -> News {
        let mut anew = self.run.join(&other.run);
        anew |= self.indexing.join(&other.indexing) == News::Anew;
        anew |= self.stale_vccz.join(&other.stale_vccz) == News::Anew;
        let mut closer = false;
        for &pending in &other.pending {
            closer |= self.note(pending);
        }
        match (anew, closer) {
            (true, _) => News::Anew,
            (false, true) => News::MayHold,
            (false, false) => News::None,
        }
    }
}

/// The pass and its memory, which is reused from body to body.
pub struct HazardResolver {
    target: Arch,
    xnack: Xnack,
    known: KnownSides,
    matrices: MatrixHistory,
    flow: Dataflow<BlockHazards>,
    recent: Vec<Recent>,
    /// The state at the instruction that comes next; its producers are those where the block starts, oldest
    /// first.
    state: BlockHazards,
    clock: i32,
    /// First VGPR that the body does not touch, where that matters.
    end_of_vgprs: Option<u16>,
    /// Instructions of the current block that have been moved into a gap before them.
    moved: Vec<bool>,
    looked_at: LookedAt,
}

/// The sides of the opcodes that have occurred: most opcodes never occur, and finding the sides of all of
/// them takes longer than a compilation.
struct KnownSides {
    sides: Vec<Sides>,
    /// For every opcode its number among these plus one; 0 before its first use.
    numbers: Vec<u16>,
    /// Rows whose first or second instruction depends on more than its opcode.
    begins_by_form: u64,
    ends_by_form: u64,
}

/// The matrix instructions whose results others may have to wait for.
struct MatrixHistory {
    /// Wait states by class, use and passes.
    waits: [[[u8; 4]; MATRIX_USES]; 3],
    recent: Vec<RecentMatrix>,
    /// When each vector register was last D or C of one.
    last_use: Vec<i32>,
}

/// What instructions of a block touch, for those that have been looked at: gaps that are near each other look
/// at the same ones.
#[derive(Default)]
struct LookedAt {
    touched: Vec<TouchedRegisters>,
    /// By instruction of the block: its place in that list.
    places: Vec<Option<u32>>,
}

impl LookedAt {
    /// Begins with a block of so many instructions.
    fn begin(&mut self, insts: usize) {
        self.touched.clear();
        self.places.clear();
        self.places.resize(insts, None);
    }

    fn touched(&mut self, insts: &[MachineInst], index: usize) -> &TouchedRegisters {
        let place = *self.places[index].get_or_insert_with(|| {
            self.touched.push(TouchedRegisters::of(&insts[index].inst));
            self.touched.len() as u32 - 1
        });
        &self.touched[place as usize]
    }
}

const _: () = assert!(ROWS.len() <= 64);

/// Rows, one bit each, whose kind of instruction satisfies `holds`.
fn rows_where(holds: impl Fn(usize) -> bool) -> u64 {
    (0..ROWS.len()).filter(|&n| holds(n)).fold(0, |bits, n| bits | 1 << n)
}

/// The rows of `rows` that are left when the form of the instruction is taken into account.
#[inline]
fn by_form(rows: u64, by_form: u64, who: impl Fn(usize) -> HazardClass, inst: &Inst) -> u64 {
    let mut open = rows & by_form;
    let mut left = rows;
    while open != 0 {
        let row = open.trailing_zeros() as usize;
        open &= open - 1;
        if !who(row).holds(inst) {
            left &= !(1 << row);
        }
    }
    left
}

/// Rows, one bit each, whose first or second instruction an opcode can be.
#[derive(Copy, Clone)]
struct Sides {
    begins: u64,
    ends: u64,
}

/// By generation and [`HazardClass`]: the rows that ask for an instruction of the class on either side.
/// Several ask for the same one.
static ROWS_ASKING: [[Sides; HazardClass::COUNT]; COLUMNS] = {
    let mut asking = [[Sides::NONE; HazardClass::COUNT]; COLUMNS];
    let mut n = 0;
    while n < COLUMNS * ROWS.len() {
        let (column, row) = (n / ROWS.len(), n % ROWS.len());
        if ROWS[row].waits[column] > 0 {
            asking[column][ROWS[row].first.0 as usize].begins |= 1 << row;
            asking[column][ROWS[row].then.0 as usize].ends |= 1 << row;
        }
        n += 1;
    }
    asking
};

/// Those of `rows` that satisfy `holds`.
fn rows_of(rows: u64, holds: impl Fn(&HazardRow) -> bool) -> u64 {
    let (mut open, mut left) = (rows, rows);
    while open != 0 {
        if !holds(&ROWS[open.trailing_zeros() as usize]) {
            left &= !(open & open.wrapping_neg());
        }
        open &= open - 1;
    }
    left
}

impl Sides {
    const NONE: Sides = Sides { begins: 0, ends: 0 };

    #[cold]
    fn of(op: Opcode, target: Arch) -> Sides {
        let info = op.info();
        let mut sides = Sides::NONE;
        for asking in &ROWS_ASKING[target.generation() as usize] {
            let class = match (asking.begins, asking.ends) {
                (0, 0) => continue,
                (0, ends) => ROWS[ends.trailing_zeros() as usize].then.0,
                (begins, _) => ROWS[begins.trailing_zeros() as usize].first.0,
            };
            if class.contains(info) {
                sides.begins |= asking.begins;
                sides.ends |= asking.ends;
            }
        }
        sides.begins = rows_of(sides.begins, |row| row.first.1.possible(info));
        sides.ends = rows_of(sides.ends, |row| row.then.1.possible(info));
        sides
    }
}

impl HazardResolver {
    /// For one chip, with XNACK possible.
    pub fn new(target: Arch) -> HazardResolver {
        let column = target.generation() as usize;
        let mut matrix = [[[0; 4]; MATRIX_USES]; 3];
        for row in MATRIX_ROWS {
            matrix[row.first as usize][row.then.index()] = row.waits[column];
        }
        HazardResolver {
            target,
            xnack: Xnack::default(),
            known: KnownSides {
                sides: Vec::new(),
                numbers: vec![0; Opcode::ALL.len()],
                begins_by_form: rows_where(|n| ROWS[n].first.0.depends_on_form()),
                ends_by_form: rows_where(|n| ROWS[n].then.0.depends_on_form()),
            },
            matrices: MatrixHistory { waits: matrix, recent: Vec::new(), last_use: Vec::new() },
            flow: Dataflow::default(),
            recent: Vec::new(),
            state: BlockHazards::default(),
            clock: 0,
            end_of_vgprs: None,
            moved: Vec::new(),
            looked_at: LookedAt::default(),
        }
    }

    /// The same for code that also runs on a newer chip: of each number of wait states the larger one counts.
    ///
    /// Elsewhere than in results of matrix instructions the numbers of the newer chip are the larger ones, as
    /// are its passes, by which results are found in their table.
    #[must_use]
    pub fn also_for(mut self, newer: Arch) -> HazardResolver {
        let columns = [self.target, newer].map(|arch| arch.generation() as usize);
        assert!(ROWS.iter().all(|row| row.waits[columns[0]] <= row.waits[columns[1]]));
        for row in MATRIX_ROWS {
            let known = &mut self.matrices.waits[row.first as usize][row.then.index()];
            for (known, wait) in known.iter_mut().zip(row.waits[columns[1]]) {
                *known = wait.max(*known);
            }
        }
        HazardResolver { target: newer, ..self }
    }

    /// Sets how the following code runs with XNACK.
    pub fn set_xnack(&mut self, xnack: Xnack) {
        self.xnack = xnack;
    }

    /// Resolves all hazards of `body`, which has physical registers and its waits.
    pub fn resolve(&mut self, body: &mut MachineBody) {
        self.end_of_vgprs = end_of_vgprs(body, self.target);
        let mut flow = std::mem::take(&mut self.flow);
        flow.rewrite(body, self);
        self.flow = flow;
    }

    fn enter(&mut self, entry: &BlockHazards) {
        self.clock = 0;
        self.recent.clear();
        self.matrices.recent.clear();
        self.matrices.last_use.clear();
        self.matrices.last_use.resize(VECTORS, i32::MIN);
        // Oldest first, as if they had just been emitted.
        let mut pending = std::mem::take(&mut self.state.pending);
        pending.clear();
        pending.extend_from_slice(&entry.pending);
        pending.sort_by_key(|p| std::cmp::Reverse(p.elapsed));
        for pending in &pending {
            self.state.indexing = pending.indexed;
            self.remember(pending.inst, -1 - pending.elapsed as i32);
        }
        self.state.pending = pending;
        (self.state.run, self.state.indexing, self.state.stale_vccz) =
            (entry.run, entry.indexing, entry.stale_vccz);
    }

    fn leave(&self, exit: &mut BlockHazards) {
        (exit.run, exit.indexing, exit.stale_vccz) =
            (self.state.run, self.state.indexing, self.state.stale_vccz);
        exit.pending.clear();
        let since = |at: i32| (self.clock - at - 1) as u32;
        let rows = self.recent.iter().map(|r| (r.inst, r.indexed, since(r.at), LONGEST_ROW));
        let matrices = self.matrices.recent.iter().map(|r| (r.inst, false, since(r.at), LONGEST_MATRIX_ROW));
        for (inst, indexed, elapsed, longest) in rows.chain(matrices) {
            if elapsed < longest {
                exit.note(PendingProducer { inst, indexed, elapsed });
            }
        }
    }

    fn emit_block(&mut self, insts: &[MachineInst], out: &mut PrimaryMap<InstId, MachineInst>) {
        self.moved.clear();
        self.moved.resize(insts.len(), false);
        self.looked_at.begin(insts.len());
        for (index, &i) in insts.iter().enumerate() {
            if self.moved[index] {
                continue;
            }
            if self.state.stale_vccz && reads_vccz(&i.inst) {
                self.emit(MachineInst { inst: copy_vcc(), source: i.source }, out);
            }
            if let Some(instead) = self.end_of_vgprs.and_then(|end| replaced_shift(&i.inst, end)) {
                for inst in instead {
                    let need = self.needed(&inst);
                    self.emit_nops(need, i.source, out);
                    self.emit(MachineInst { inst, source: i.source }, out);
                }
                continue;
            }
            let mut need = self.needed(&i.inst);
            while need > 0 {
                let Some(filler) = self.find_filler(insts, index) else {
                    self.emit_nops(need, i.source, out);
                    break;
                };
                self.moved[filler] = true;
                self.emit(insts[filler], out);
                need = self.needed(&i.inst);
            }
            self.emit(i, out);
        }
    }

    /// True if `inst` is emitted as more than itself.
    fn is_repaired(&self, inst: &Inst) -> bool {
        reads_vccz(inst) || self.end_of_vgprs.is_some_and(|end| replaced_shift(inst, end).is_some())
    }

    fn emit_nops(&mut self, mut need: u32, source: u32, out: &mut PrimaryMap<InstId, MachineInst>) {
        while need > 0 {
            let states = need.min(16);
            let nop = Inst::new(Opcode::SNop, &[]).imm(states - 1);
            self.emit(MachineInst { inst: nop, source }, out);
            need -= states;
        }
    }

    fn emit(&mut self, i: MachineInst, out: &mut PrimaryMap<InstId, MachineInst>) {
        out.push(i);
        self.pass(&i);
    }

    /// Goes on with an instruction that has been emitted.
    fn pass(&mut self, i: &MachineInst) {
        self.remember(i.inst, self.clock);
        self.clock += wait_states(&i.inst) as i32;
        if self.xnack == Xnack::MayBeOn {
            self.state.run.pass(&i.inst);
        }
        self.state.stale_vccz = changes_vccz(&i.inst).unwrap_or(self.state.stale_vccz);
        self.state.indexing = changes_indexing(&i.inst).unwrap_or(self.state.indexing);
    }

    fn remember(&mut self, inst: Inst, at: i32) {
        let rows = self.sides(inst.op).begins;
        let rows = by_form(rows, self.known.begins_by_form, |row| ROWS[row].first.0, &inst);
        if rows != 0 {
            if self.recent.len() >= MANY {
                self.recent.retain(|r| at - r.at <= LONGEST_ROW as i32);
            }
            let indexed = self.state.indexing && is_valu(inst.op.info());
            self.recent.push(Recent { inst, at, rows, indexed });
        }
        if let Some(class) = matrix_class(inst.op.info(), self.target) {
            if self.matrices.recent.len() >= MANY {
                self.matrices.recent.retain(|r| at - r.at <= LONGEST_MATRIX_ROW as i32);
            }
            let range = |operand: usize| {
                let number =
                    inst.operands[operand].number().filter(|_| !inst.operands[operand].is_constant());
                let len = if number.is_some() { inst.width(operand).into() } else { 0 };
                RegisterRange { start: number.unwrap_or(0) as u16, len }
            };
            let is_sparse = matches!(inst.op.info().meaning, Meaning::SparseMfma(..));
            let (d, c) = (range(0), if is_sparse { RegisterRange { start: 0, len: 0 } } else { range(3) });
            self.matrices.last_use[vectors(d)].fill(at);
            self.matrices.last_use[vectors(c)].fill(at);
            let passes = inst.passes(self.target);
            self.matrices.recent.push(RecentMatrix { inst, at, class, passes, d, c });
        }
    }

    /// The rows whose first or second instruction an opcode can be.
    #[inline(always)]
    fn sides(&mut self, op: Opcode) -> Sides {
        match self.known.sides.get(usize::from(self.known.numbers[op as usize]).wrapping_sub(1)) {
            Some(&known) => known,
            None => self.find_sides(op),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_sides(&mut self, op: Opcode) -> Sides {
        let sides = Sides::of(op, self.target);
        self.known.sides.push(sides);
        self.known.numbers[op as usize] = self.known.sides.len() as u16;
        sides
    }

    /// Wait states that are missing before `inst`.
    fn needed(&mut self, inst: &Inst) -> u32 {
        let info = inst.op.info();
        if leaves_body(info) {
            return self.needed_by_anything();
        }
        let mut need = u32::from(self.state.run.breaks_at(inst));
        let ends = self.sides(inst.op).ends;
        let mut ends = by_form(ends, self.known.ends_by_form, |row| ROWS[row].then.0, inst);
        let mut counted: Option<(CountedRegisters, Option<Ranges>)> = None;
        for r in self.recent.iter().rev() {
            let elapsed = (self.clock - r.at - 1) as u32;
            if elapsed >= LONGEST_ROW {
                break;
            }
            let mut rows = r.rows & ends;
            while rows != 0 {
                let row = rows.trailing_zeros() as usize;
                rows &= rows - 1;
                let waits = u32::from(ROWS[row].waits[self.target.generation() as usize]);
                if waits <= elapsed + need {
                    continue;
                }
                // Rows that hold for an instruction mostly look at the same registers of it.
                let kind = ROWS[row].then.1;
                let counted = match counted {
                    Some((known, ranges)) if known == kind => ranges,
                    _ => counted.insert((kind, kind.of(inst))).1,
                };
                if counted.is_some_and(|ranges| ranges.as_slice().is_empty()) {
                    ends &= !(1 << row);
                } else if self.applies(row, r, inst, counted) {
                    need = waits - elapsed;
                }
            }
        }
        need.max(self.needed_by_matrices(inst))
    }

    /// Wait states until nothing is pending.
    fn needed_by_anything(&self) -> u32 {
        let left = |waits: u8, at: i32| u32::from(waits).saturating_sub((self.clock - at - 1) as u32);
        let rows = self.recent.iter().map(|r| {
            let longest = (0..ROWS.len()).filter(|row| r.rows >> row & 1 != 0);
            left(
                longest.map(|row| ROWS[row].waits[self.target.generation() as usize]).max().unwrap_or(0),
                r.at,
            )
        });
        let matrices = self.matrices.recent.iter().map(|r| {
            let uses = self.matrices.waits[r.class as usize].iter();
            left(uses.map(|waits| waits[passes_column(r.passes)]).max().unwrap_or(0), r.at)
        });
        rows.chain(matrices).max().unwrap_or(0)
    }

    /// Whether a row holds between two instructions; `counted` are the registers of the second one that it is
    /// about.
    fn applies(&self, row: usize, first: &Recent, then: &Inst, counted: Option<Ranges>) -> bool {
        let row = &ROWS[row];
        let same = || first.inst.op == then.op && first.inst.modifiers.has_dpp() == then.modifiers.has_dpp();
        // At a join, an instruction that stands between two may be as far away as the first, but on another
        // path.
        let when = match row.when {
            When::Always => true,
            When::SameOpcode => same(),
            When::OtherOpcode => !same(),
            When::DgemmBetween => {
                self.matrices.recent.iter().any(|m| m.class == MatrixClass::Dgemm && m.at >= first.at)
            }
            When::AccBetween => self.recent.iter().any(|r| {
                let acc = matches!(r.inst.op, Opcode::VAccvgprReadB32 | Opcode::VAccvgprWriteB32);
                acc && r.at >= first.at && r.inst != first.inst
            }),
        };
        if !when {
            return false;
        }
        let mut counted = counted;
        if self.state.indexing && is_valu(then.op.info()) {
            counted.iter_mut().for_each(|ranges| ranges.widen(RegisterRange::indexed));
        }
        if row.first.1 == CountedRegisters::Itself {
            return counted.is_none_or(|ranges| !ranges.as_slice().is_empty());
        }
        let mut meets = false;
        row.first.1.visit(&first.inst, &mut |range| {
            let range = if first.indexed { range.indexed() } else { range };
            meets |= counted.as_ref().is_none_or(|ranges| ranges.touches(range));
        });
        meets
    }

    fn needed_by_matrices(&self, inst: &Inst) -> u32 {
        // Without a matrix instruction near by there is nothing to keep away from.
        let oldest = self.clock - LONGEST_MATRIX_ROW as i32;
        if self.matrices.recent.last().is_none_or(|last| last.at < oldest) {
            return 0;
        }
        let info = inst.op.info();
        let own = matrix_class(info, self.target).map(|class| (class, inst.passes(self.target)));
        let memory = is_vmem(info) || info.unit == Unit::Lds;
        if own.is_none() && !memory && !is_valu(info) {
            return 0;
        }
        let mut touches = [(RegisterRange { start: 0, len: 0 }, HazardTouch::Writes); MAX_OPERANDS];
        let (touches, last) = self.touched_vectors(inst, own.is_some(), oldest, &mut touches);
        if touches.is_empty() {
            return 0;
        }
        let mut need = 0;
        for r in self.matrices.recent.iter().rev().skip_while(|r| r.at > last) {
            let elapsed = (self.clock - r.at - 1) as u32;
            if elapsed >= LONGEST_MATRIX_ROW {
                break;
            }
            let mut check = |then: MatrixUse| {
                let waits = self.matrices.waits[r.class as usize][then.index()][passes_column(r.passes)];
                need = need.max(u32::from(waits).saturating_sub(elapsed));
            };
            for &(range, touch) in touches {
                if matches!(touch, HazardTouch::Writes | HazardTouch::Both)
                    && r.c.len > 0
                    && range.overlaps(r.c)
                {
                    check(MatrixUse::WritesC);
                }
                if !range.overlaps(r.d) {
                    continue;
                }
                if touch == HazardTouch::Both {
                    check(MatrixUse::ValuWrites);
                }
                check(match (touch, own) {
                    (HazardTouch::C, Some((class, _))) if range != r.d => MatrixUse::COverlap(class),
                    (HazardTouch::C, Some((class, passes)))
                        if passes != r.passes || !forwards(self.target, r.inst.op, inst.op) =>
                    {
                        MatrixUse::CSameRegisters(class)
                    }
                    (HazardTouch::C, Some((class, _))) => MatrixUse::CSame(class),
                    (HazardTouch::AOrB | HazardTouch::C, _) => MatrixUse::AOrB,
                    (HazardTouch::Reads | HazardTouch::Both, _) if memory => MatrixUse::Memory,
                    (HazardTouch::Reads | HazardTouch::Both, _) => MatrixUse::ValuReads,
                    (HazardTouch::Writes, _) => MatrixUse::ValuWrites,
                });
            }
        }
        need
    }

    /// The uses that an instruction makes of those of its vector registers that were D or C of a matrix
    /// instruction since `oldest`, and when the last one that had them was.
    fn touched_vectors<'t>(
        &self,
        inst: &Inst,
        is_matrix: bool,
        oldest: i32,
        touches: &'t mut [(RegisterRange, HazardTouch); MAX_OPERANDS],
    ) -> (&'t [(RegisterRange, HazardTouch)], i32) {
        let info = inst.op.info();
        let is_sparse = matches!(info.meaning, Meaning::SparseMfma(..));
        let mut count = 0;
        for access in accesses(inst) {
            let Some(range) = access.range().filter(|range| range.is_vector()) else { continue };
            let indexed = self.state.indexing && is_valu(info);
            let range = if indexed { range.indexed() } else { range };
            let addend = if is_sparse { Field::Dst } else { Field::Src2 };
            touches[count] = match (access.role, is_matrix) {
                (Role::Def, true) => continue,
                (_, true) if access.field == addend => (range, HazardTouch::C),
                (_, true) => (range, HazardTouch::AOrB),
                (Role::Use, false) => (range, HazardTouch::Reads),
                (Role::Def, false) => (range, HazardTouch::Writes),
                (Role::DefUse, false) => (range, HazardTouch::Both),
            };
            count += 1;
        }
        // Most registers have not been D or C of a matrix instruction for long, and instructions after the
        // last one that had them are not looked at.
        let (mut touched, mut last) = (0, i32::MIN);
        for index in 0..count {
            let at =
                self.matrices.last_use[vectors(touches[index].0)].iter().copied().max().unwrap_or(i32::MIN);
            if at >= oldest {
                touches[touched] = touches[index];
                touched += 1;
                last = last.max(at);
            }
        }
        (&touches[..touched], last)
    }

    /// An instruction after `index` that can go before it without changing any result, and that is no hazard
    /// there.
    fn find_filler(&mut self, insts: &[MachineInst], index: usize) -> Option<usize> {
        if stays(&insts[index].inst) || self.state.indexing {
            return None;
        }
        let mut looked_at = std::mem::take(&mut self.looked_at);
        let mut passed = TouchedSet::default();
        passed.add(looked_at.touched(insts, index));
        let mut found = None;
        for (candidate, MachineInst { inst, .. }) in insts.iter().enumerate().skip(index + 1).take(WINDOW) {
            if self.moved[candidate] {
                continue;
            }
            if stays(inst) {
                break;
            }
            let touched = looked_at.touched(insts, candidate);
            let free = is_movable(inst, touched) && !passed.is_needed_by(touched) && !self.is_repaired(inst);
            if free && self.needed(inst) == 0 {
                found = Some(candidate);
                break;
            }
            passed.add(touched);
        }
        self.looked_at = looked_at;
        found
    }
}

impl Rewrite<BlockHazards> for HazardResolver {
    fn rewrite(
        &mut self,
        insts: &[MachineInst],
        entry: &BlockHazards,
        exit: &mut BlockHazards,
        out: &mut PrimaryMap<InstId, MachineInst>,
    ) {
        self.enter(entry);
        self.emit_block(insts, out);
        self.leave(exit);
    }

    /// The code keeps all distances from what is newly pending, and nothing of that is pending at its end.
    fn still_holds(&mut self, code: &[MachineInst], entry: &BlockHazards) -> bool {
        self.enter(entry);
        for i in code {
            if self.clock > LONGEST {
                return true;
            }
            if self.needed(&i.inst) > 0 {
                return false;
            }
            self.pass(i);
        }
        false
    }
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
            Meaning::SetHardwareRegister
                | Meaning::GetHardwareRegister
                | Meaning::GetPc
                | Meaning::SetVskip
                | Meaning::SetGprIndex
                | Meaning::SetGprIndexOn
                | Meaning::SetGprIndexMode
                | Meaning::SetGprIndexOff
        )
}

/// True for instructions that may go into a gap: arithmetic that leaves EXEC alone.
fn is_movable(inst: &Inst, touched: &TouchedRegisters) -> bool {
    let info = inst.op.info();
    matches!(info.unit, Unit::Salu | Unit::Valu | Unit::Trans | Unit::Mfma(_))
        && !touched.defs.touches(RegisterRange::EXEC)
}
