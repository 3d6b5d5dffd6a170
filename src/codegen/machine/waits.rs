//! Inserts `s_waitcnt`: each wait as late as the first instruction that needs it, and for no more than it needs.
//!
//! Loads and stores count up vmcnt or lgkmcnt when they issue and down when they are done. What completes in issue
//! order (vector memory among itself, LDS among itself) can be waited for by number: `vmcnt(3)` is "all but the last
//! three". Scalar loads, messages and flat accesses complete in any order, so while one of them is in flight only zero
//! says anything. The pass keeps, for every register, how many counted instructions were issued since the one that
//! will write it, goes over the blocks in layout order, joins states where control flow joins, and goes back to a loop
//! header when the end of the loop brings something new, so that every path is covered and nothing is waited for twice.
//!
//! Barriers: LDS instructions in flight are waited for, so that other waves find what was written, and nobody overwrites
//! what is still being read; the same for loads to LDS. A barrier that does not hand over LDS data
//! ([`BARRIER_WITHOUT_WAITS`] as its immediate) gets no wait. A wave that reads what its own loads to LDS brought must
//! have a barrier or an explicit wait in between: which LDS instruction reads what is not known here.
//!
//! Sources: CDNA3 ISA guide, section 4.4; LLVM SIInsertWaitcnts.cpp.

use super::access::{Range, Touched, is_vmem};
use super::body::{Body, MachineInst};
use crate::codegen::isa::{Counter, Inst, Meaning, Opcode, Operand, Unit, WaitCounts};

/// Immediate of an `s_barrier` behind which nobody looks at LDS data of other waves; cleared when the waits are in.
pub const BARRIER_WITHOUT_WAITS: u32 = 1;

/// Most that is ever waited for by number: with more in flight the counters say less than they should (LLVM caps at the
/// same values).
const CAP: WaitCounts = WaitCounts { vm: 62, lgkm: 14, ..WaitCounts::NONE };

const REGISTERS: usize = Operand::END as usize;
/// Age of a register that nothing is in flight for.
const IDLE: u8 = u8::MAX;
/// Ages from here on make no difference: no counter says more.
const OLDEST: u8 = 62;

/// What is in flight at a block start. An age is the number of counted instructions issued since.
#[derive(Clone)]
struct Entry {
    vm: [u8; REGISTERS],
    lgkm: [u8; REGISTERS],
    /// Youngest LDS instruction, in lgkmcnt.
    lds: u8,
    /// Youngest load to LDS, in vmcnt.
    to_lds: u8,
    /// Something in flight completes out of order.
    unordered: Unordered,
}

/// Which counters only zero can be trusted of.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
struct Unordered {
    vm: bool,
    lgkm: bool,
}

impl Entry {
    const EMPTY: Entry = Entry {
        vm: [IDLE; REGISTERS],
        lgkm: [IDLE; REGISTERS],
        lds: IDLE,
        to_lds: IDLE,
        unordered: Unordered { vm: false, lgkm: false },
    };

    /// Takes the worse of both; true if that is worse than before.
    fn join(&mut self, other: &Entry) -> bool {
        let mut changed = false;
        for (own, other) in [(&mut self.vm, &other.vm), (&mut self.lgkm, &other.lgkm)] {
            let mut lower = 0;
            for (age, &than) in own.iter_mut().zip(other) {
                lower |= u8::from(than < *age);
                *age = (*age).min(than);
            }
            changed |= lower != 0;
        }
        let unordered = Unordered {
            vm: self.unordered.vm | other.unordered.vm,
            lgkm: self.unordered.lgkm | other.unordered.lgkm,
        };
        changed |= unordered != self.unordered || other.lds < self.lds || other.to_lds < self.to_lds;
        self.unordered = unordered;
        self.lds = self.lds.min(other.lds);
        self.to_lds = self.to_lds.min(other.to_lds);
        changed
    }
}

/// One counter inside a block: every counted instruction gets the next number, and a register remembers the number of
/// the last instruction that will write it. Numbers up to `done` are over.
struct Scoreboard {
    issued: u32,
    done: u32,
    registers: [u32; REGISTERS],
    /// The last instruction that a barrier waits for.
    barrier: u32,
    unordered: bool,
}

impl Scoreboard {
    const START: u32 = 64;

    fn enter(&mut self, ages: &[u8; REGISTERS], barrier: u8, unordered: bool) {
        let number = |age: u8| if age == IDLE { 0 } else { Self::START - u32::from(age) };
        (self.issued, self.done) = (Self::START, 0);
        self.registers.iter_mut().zip(ages).for_each(|(register, &age)| *register = number(age));
        self.barrier = number(barrier);
        self.unordered = unordered;
    }

    fn age(&self, number: u32) -> u8 {
        if number > self.done { (self.issued - number).min(u32::from(OLDEST)) as u8 } else { IDLE }
    }

    fn leave(&self, ages: &mut [u8; REGISTERS]) {
        ages.iter_mut().zip(&self.registers).for_each(|(age, &number)| *age = self.age(number));
    }

    fn is_busy(&self) -> bool {
        self.issued > self.done
    }

    /// Last number that touching `range` has to wait for, if any.
    fn blocking(&self, range: Range) -> u32 {
        if !self.is_busy() {
            return 0;
        }
        let last = self.registers[range.numbers()].iter().copied().max().unwrap_or(0);
        if last > self.done { last } else { 0 }
    }

    /// Counter value that means "number is over".
    fn wait_for(&self, number: u32, cap: u8) -> u8 {
        if self.unordered { 0 } else { (self.issued - number).min(u32::from(cap)) as u8 }
    }

    /// The counter was seen at `count` or below.
    fn waited(&mut self, count: u8) {
        if count == 0 {
            self.done = self.issued;
            self.unordered = false;
        } else if !self.unordered {
            self.done = self.done.max(self.issued.saturating_sub(u32::from(count)));
        }
    }
}

/// The pass and its memory, which is reused from body to body.
pub struct WaitInserter {
    entries: Vec<Entry>,
    exit: Entry,
    vm: Scoreboard,
    lgkm: Scoreboard,
    /// New block ranges.
    ranges: Vec<(u32, u32)>,
}

impl Default for WaitInserter {
    fn default() -> WaitInserter {
        let idle =
            || Scoreboard { issued: 0, done: 0, registers: [0; REGISTERS], barrier: 0, unordered: false };
        WaitInserter { entries: Vec::new(), exit: Entry::EMPTY, vm: idle(), lgkm: idle(), ranges: Vec::new() }
    }
}

impl WaitInserter {
    /// Inserts all waits that `body`, which has physical registers, needs beside those that it already has.
    pub fn insert(&mut self, body: &mut Body) {
        self.entries.clear();
        self.entries.resize(body.blocks.len(), Entry::EMPTY);
        self.ranges.clear();
        body.spare.clear();
        let mut block = 0;
        while block < body.blocks.len() {
            self.ranges.truncate(block);
            body.spare.truncate(self.ranges.last().map_or(0, |range| range.1 as usize));
            self.enter(block);
            let start = body.spare.len() as u32;
            let range = body.blocks[block];
            for &i in &body.insts[range.start as usize..range.end as usize] {
                self.step(i, &mut body.spare);
            }
            self.ranges.push((start, body.spare.len() as u32));
            block = self.leave(body, block);
        }
        for (block, range) in body.blocks.iter_mut().zip(&self.ranges) {
            (block.start, block.end) = *range;
        }
        std::mem::swap(&mut body.insts, &mut body.spare);
    }

    fn enter(&mut self, block: usize) {
        let entry = &self.entries[block];
        self.vm.enter(&entry.vm, entry.to_lds, entry.unordered.vm);
        self.lgkm.enter(&entry.lgkm, entry.lds, entry.unordered.lgkm);
    }

    /// Hands the state on to the successors; the next block to look at, which is an earlier one if a loop brought news.
    fn leave(&mut self, body: &Body, block: usize) -> usize {
        self.vm.leave(&mut self.exit.vm);
        self.lgkm.leave(&mut self.exit.lgkm);
        self.exit.to_lds = self.vm.age(self.vm.barrier);
        self.exit.lds = self.lgkm.age(self.lgkm.barrier);
        self.exit.unordered = Unordered { vm: self.vm.unordered, lgkm: self.lgkm.unordered };
        let mut next = block + 1;
        for &successor in body.blocks[block].successors.iter().flatten() {
            if self.entries[successor as usize].join(&self.exit) {
                next = next.min(successor as usize);
            }
        }
        next
    }

    fn step(&mut self, mut i: MachineInst, out: &mut Vec<MachineInst>) {
        let need = self.needed(&i.inst);
        if need != WaitCounts::NONE {
            out.push(MachineInst {
                inst: Inst::new(Opcode::SWaitcnt, &[]).imm(need.to_imm()),
                source: i.source,
            });
            self.waited(need);
        }
        match i.inst.op.info().meaning {
            Meaning::Wait => self.waited(WaitCounts::from_imm(i.inst.imm)),
            Meaning::Barrier => i.inst.imm = 0,
            _ => self.issue(&i.inst),
        }
        out.push(i);
    }

    fn waited(&mut self, count: WaitCounts) {
        if count.vm < WaitCounts::NONE.vm {
            self.vm.waited(count.vm);
        }
        if count.lgkm < WaitCounts::NONE.lgkm {
            self.lgkm.waited(count.lgkm);
        }
    }

    /// What has to be waited for before `inst`.
    fn needed(&self, inst: &Inst) -> WaitCounts {
        let (mut vm, mut lgkm) = (0, 0);
        let info = inst.op.info();
        if info.unit == Unit::Barrier {
            if inst.imm != BARRIER_WITHOUT_WAITS {
                vm = if self.vm.barrier > self.vm.done { self.vm.barrier } else { 0 };
                lgkm = if self.lgkm.barrier > self.lgkm.done { self.lgkm.barrier } else { 0 };
            }
        } else if self.vm.is_busy() || self.lgkm.is_busy() {
            let touched = Touched::of(inst);
            // Vector memory returns in order among itself, so a load may follow a load into the same register.
            let in_order = info.unit == Unit::Vmem && !self.vm.unordered;
            for &range in touched.uses.as_slice() {
                vm = vm.max(self.vm.blocking(range));
                lgkm = lgkm.max(self.lgkm.blocking(range));
            }
            for &range in touched.defs.as_slice() {
                vm = vm.max(if in_order { 0 } else { self.vm.blocking(range) });
                lgkm = lgkm.max(self.lgkm.blocking(range));
            }
        }
        let mut need = WaitCounts::NONE;
        if vm > 0 {
            need.vm = self.vm.wait_for(vm, CAP.vm);
        }
        if lgkm > 0 {
            need.lgkm = self.lgkm.wait_for(lgkm, CAP.lgkm);
        }
        need
    }

    /// Counts `inst` and notes the registers that it will write.
    fn issue(&mut self, inst: &Inst) {
        let info = inst.op.info();
        if info.counter == Counter::None {
            return;
        }
        let touched = Touched::of(inst);
        if is_vmem(info) {
            self.vm.issued += 1;
            self.vm.unordered |= info.unit == Unit::Flat;
            if matches!(info.meaning, Meaning::LoadToLds(_)) {
                self.vm.barrier = self.vm.issued;
            }
            for range in touched.defs.as_slice() {
                self.vm.registers[range.numbers()].fill(self.vm.issued);
            }
        }
        if matches!(info.counter, Counter::Lgkm | Counter::VmAndLgkm) {
            self.lgkm.issued += 1;
            self.lgkm.unordered |= info.unit != Unit::Lds;
            // Permutes use the LDS hardware but not LDS memory.
            let moves_lanes = matches!(info.meaning, Meaning::LaneSwizzle | Meaning::LanePermute(_));
            if matches!(info.unit, Unit::Lds | Unit::Flat) && !moves_lanes {
                self.lgkm.barrier = self.lgkm.issued;
            }
            for range in touched.defs.as_slice() {
                self.lgkm.registers[range.numbers()].fill(self.lgkm.issued);
            }
        }
    }
}
