//! Inserts `s_waitcnt`: each wait as late as the first instruction that needs it, and for no more than it
//! needs.
//!
//! Loads and stores count up vmcnt or lgkmcnt when they issue and down when they are done. What completes in
//! issue order (vector memory among itself, LDS among itself) can be waited for by number: `vmcnt(3)` is "all
//! but the last three". Scalar loads, messages and flat accesses complete in any order, so while one of them
//! is in flight only a wait for zero is meaningful. The pass keeps, for every register, how many counted
//! instructions were issued since the one that will write it, goes over the blocks in layout order, joins
//! states where control flow joins, and goes back to a loop header when the end of the loop brings something
//! new, so that every path is covered and nothing is waited for twice.
//!
//! Barriers: LDS instructions in flight are waited for, so that other waves see what was written, and no wave
//! overwrites what is still being read; the same goes for loads to LDS. A barrier that does not hand over LDS
//! data ([`BARRIER_WITHOUT_WAITS`] as its immediate) gets no wait. Up to gfx908 every barrier waits for
//! everything: a wave that has a memory exception cannot back off from a barrier there.
//!
//! Loads to LDS count in vmcnt, LDS instructions in lgkmcnt, and nothing says which LDS instruction touches
//! the data of which load. So each waits for the other, unless the kernel promises with
//! [`LdsLoads::AfterBarriers`] that whatever a wave loads to LDS is read after a barrier.
//!
//! Also here: the global data share and exports (expcnt until their registers have been read; GWS has a full
//! wait after it), cache writebacks (over before the next store or barrier), cache invalidations (after all
//! loads), and `s_dcache_wb` at the end of a wave that has stored through the scalar cache.
//!
//! Sources: CDNA3 ISA guide, section 4.4; LLVM SIInsertWaitcnts.cpp, SIMemoryLegalizer.cpp.

use super::access::{
    RegisterRange, TouchedRegisters, changes_indexing, is_gds, is_lds_dma, is_valu, is_vmem, leaves_body,
    writes_memory,
};
use super::body::{InstId, MachineBody, MachineInst};
use super::dataflow::{Dataflow, News, Rewrite, State};
use crate::codegen::isa::{
    Arch, Counter, Generation, Inst, Meaning, OpInfo, Opcode, Operand, Unit, WaitCounts,
};
use cranelift_entity::PrimaryMap;

/// Immediate of an `s_barrier` after which no wave looks at LDS data of other waves; cleared when the waits
/// are inserted.
pub const BARRIER_WITHOUT_WAITS: u32 = 1;

/// The largest count that is ever waited for: with more in flight the counters say less than they should
/// (LLVM caps at the same values).
const CAP: WaitCounts = WaitCounts { vm: 62, lgkm: 14, ..WaitCounts::NONE };

const REGISTERS: usize = Operand::END as usize;
/// Age of a register without an instruction in flight that writes it.
const IDLE: u8 = u8::MAX;
/// Ages from here on make no difference: no counter goes higher.
const OLDEST: u8 = 62;

/// Where a kernel reads what its waves load to LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum LdsLoads {
    /// Anywhere: an LDS instruction waits for the loads to LDS before it, and the other way round.
    #[default]
    Anywhere,
    /// Only after a barrier that comes after the load, which waits for it.
    AfterBarriers,
}

/// Kinds of instructions that share a counter, one bit each; those of one ordered kind are done in order.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
struct CounterKinds(u8);

impl CounterKinds {
    const VMEM: CounterKinds = CounterKinds(1);
    const LDS: CounterKinds = CounterKinds(2);
    const GDS: CounterKinds = CounterKinds(4);
    const MESSAGE: CounterKinds = CounterKinds(8);
    /// Scalar memory, out of order in itself.
    const SCALAR: CounterKinds = CounterKinds(16);
    /// Flat, which is two kinds at once.
    const FLAT: CounterKinds = CounterKinds(32);

    fn of(inst: &Inst) -> CounterKinds {
        match inst.op.info().unit {
            Unit::Vmem => CounterKinds::VMEM,
            Unit::Lds if is_gds(inst) => CounterKinds::GDS,
            Unit::Lds => CounterKinds::LDS,
            Unit::Flat => CounterKinds::FLAT,
            Unit::Smem => CounterKinds::SCALAR,
            _ => CounterKinds::MESSAGE,
        }
    }

    fn with(self, other: CounterKinds) -> CounterKinds {
        CounterKinds(self.0 | other.0)
    }

    fn are_ordered(self) -> bool {
        self.0 & (Self::SCALAR.0 | Self::FLAT.0) == 0 && self.0.count_ones() < 2
    }
}

/// What is in flight where a block starts or ends. An age is the number of counted instructions issued since.
struct BlockWaits {
    vm: [u8; REGISTERS],
    lgkm: [u8; REGISTERS],
    /// Youngest of each mark, in its counter.
    marks: [u8; MARKS],
    /// Kinds in flight by vmcnt and by lgkmcnt.
    kinds: [CounterKinds; 2],
    /// Registers that the global data share may still read.
    locked: Vec<RegisterRange>,
    flags: Flags,
}

/// What is true on at least one path.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
struct Flags {
    /// VGPRs may be indexed.
    indexing: bool,
    /// The scalar cache may hold data that memory does not have yet.
    scalar_stores: bool,
}

/// Instructions of which the youngest is remembered.
#[derive(Copy, Clone, PartialEq, Eq)]
#[repr(usize)]
enum WaitMark {
    /// LDS instructions, in lgkmcnt.
    Lds,
    /// Vector memory instructions that touch LDS, in vmcnt.
    LdsDma,
    /// Loads and atomics with result, in vmcnt.
    Load,
    /// Cache writebacks, in vmcnt.
    WriteBack,
}

const MARKS: usize = 4;

impl Default for BlockWaits {
    fn default() -> BlockWaits {
        BlockWaits {
            vm: [IDLE; REGISTERS],
            lgkm: [IDLE; REGISTERS],
            marks: [IDLE; MARKS],
            kinds: [CounterKinds::default(); 2],
            locked: Vec::new(),
            flags: Flags::default(),
        }
    }
}

impl State for BlockWaits {
    fn clear(&mut self) {
        self.vm.fill(IDLE);
        self.lgkm.fill(IDLE);
        self.marks.fill(IDLE);
        self.kinds = [CounterKinds::default(); 2];
        self.locked.clear();
        self.flags = Flags::default();
    }

    /// Takes the worse of both.
    fn join(&mut self, other: &BlockWaits) -> News {
        let mut changed = false;
        for (own, other) in [(&mut self.vm, &other.vm), (&mut self.lgkm, &other.lgkm)] {
            let mut lower = 0;
            for (age, &than) in own.iter_mut().zip(other) {
                lower |= u8::from(than < *age);
                *age = (*age).min(than);
            }
            changed |= lower != 0;
        }
        for (own, &other) in self.marks.iter_mut().zip(&other.marks) {
            changed |= other < *own;
            *own = (*own).min(other);
        }
        for (own, &other) in self.kinds.iter_mut().zip(&other.kinds) {
            changed |= own.with(other) != *own;
            *own = own.with(other);
        }
        for &range in &other.locked {
            if !self.locked.contains(&range) {
                self.locked.push(range);
                changed = true;
            }
        }
        let flags = Flags {
            indexing: self.flags.indexing | other.flags.indexing,
            scalar_stores: self.flags.scalar_stores | other.flags.scalar_stores,
        };
        changed |= flags != self.flags;
        self.flags = flags;
        if changed { News::Anew } else { News::None }
    }
}

/// One counter inside a block: every counted instruction gets the next number, and a register remembers the
/// number of the last instruction that will write it. Numbers up to `done` are over.
struct Scoreboard {
    issued: u32,
    done: u32,
    registers: [u32; REGISTERS],
    kinds: CounterKinds,
}

impl Scoreboard {
    const START: u32 = 64;
    const IDLE: Scoreboard =
        Scoreboard { issued: 0, done: 0, registers: [0; REGISTERS], kinds: CounterKinds(0) };

    fn number(age: u8) -> u32 {
        if age == IDLE { 0 } else { Self::START - u32::from(age) }
    }

    fn enter(&mut self, ages: &[u8; REGISTERS], kinds: CounterKinds) {
        self.kinds = kinds;
        if !self.is_busy() {
            // Nothing is in flight: whatever numbers registers have, they are over.
            self.done = self.issued;
            return;
        }
        (self.issued, self.done) = (Self::START, 0);
        self.registers.iter_mut().zip(ages).for_each(|(register, &age)| *register = Self::number(age));
    }

    fn age(&self, number: u32) -> u8 {
        if number > self.done { (self.issued - number).min(u32::from(OLDEST)) as u8 } else { IDLE }
    }

    fn leave(&self, ages: &mut [u8; REGISTERS]) {
        if !self.is_busy() {
            ages.fill(IDLE);
            return;
        }
        ages.iter_mut().zip(&self.registers).for_each(|(age, &number)| *age = self.age(number));
    }

    fn is_busy(&self) -> bool {
        self.kinds != CounterKinds::default()
    }

    /// The youngest in flight, if any, else 0.
    fn youngest(&self) -> u32 {
        if self.is_busy() { self.issued } else { 0 }
    }

    /// `number` if it is not over, else 0.
    fn open(&self, number: u32) -> u32 {
        if number > self.done { number } else { 0 }
    }

    /// Last number that touching `range` has to wait for, if any.
    fn blocking(&self, range: RegisterRange) -> u32 {
        if !self.is_busy() {
            return 0;
        }
        self.open(self.registers[range.numbers()].iter().copied().max().unwrap_or(0))
    }

    fn issue(&mut self, kinds: CounterKinds, defs: &[RegisterRange]) {
        self.issued += 1;
        self.kinds = self.kinds.with(kinds);
        for range in defs {
            self.registers[range.numbers()].fill(self.issued);
        }
    }

    /// Counter value that means "number is over".
    fn wait_for(&self, number: u32, cap: u8) -> u8 {
        if self.kinds.are_ordered() { (self.issued - number).min(u32::from(cap)) as u8 } else { 0 }
    }

    /// The counter was seen at `count` or below.
    fn waited(&mut self, count: u8) {
        if count == 0 {
            self.done = self.issued;
            self.kinds = CounterKinds::default();
        } else if self.kinds.are_ordered() {
            self.done = self.done.max(self.issued.saturating_sub(u32::from(count)));
        }
    }
}

/// The pass and its memory, which is reused from body to body.
pub struct WaitInserter {
    arch: Arch,
    lds_loads: LdsLoads,
    flow: Dataflow<BlockWaits>,
    vm: Scoreboard,
    lgkm: Scoreboard,
    /// Youngest of each mark, by number.
    marks: [u32; MARKS],
    locked: Vec<RegisterRange>,
    flags: Flags,
}

impl WaitInserter {
    /// For one chip.
    pub fn new(arch: Arch) -> WaitInserter {
        WaitInserter {
            arch,
            lds_loads: LdsLoads::default(),
            flow: Dataflow::default(),
            vm: Scoreboard::IDLE,
            lgkm: Scoreboard::IDLE,
            marks: [0; MARKS],
            locked: Vec::new(),
            flags: Flags::default(),
        }
    }

    /// Sets where the following kernels read what they load to LDS.
    pub fn set_lds_loads(&mut self, lds_loads: LdsLoads) {
        self.lds_loads = lds_loads;
    }

    /// Inserts all waits that `body`, which has physical registers, needs in addition to those that it
    /// already has.
    pub fn insert(&mut self, body: &mut MachineBody) {
        let mut flow = std::mem::take(&mut self.flow);
        flow.rewrite(body, self);
        self.flow = flow;
    }

    fn enter(&mut self, entry: &BlockWaits) {
        self.vm.enter(&entry.vm, entry.kinds[0]);
        self.lgkm.enter(&entry.lgkm, entry.kinds[1]);
        self.marks = entry.marks.map(Scoreboard::number);
        self.locked.clear();
        self.locked.extend_from_slice(&entry.locked);
        self.flags = entry.flags;
    }

    fn leave(&self, exit: &mut BlockWaits) {
        self.vm.leave(&mut exit.vm);
        self.lgkm.leave(&mut exit.lgkm);
        for (mark, &number) in self.marks.iter().enumerate() {
            let counter = if mark == WaitMark::Lds as usize { &self.lgkm } else { &self.vm };
            exit.marks[mark] = counter.age(number);
        }
        exit.kinds = [self.vm.kinds, self.lgkm.kinds];
        exit.locked.clear();
        exit.locked.extend_from_slice(&self.locked);
        exit.flags = self.flags;
    }

    /// Goes on with an instruction; `touched` is memory for the registers that it touches.
    fn step(
        &mut self,
        mut i: MachineInst,
        touched: &mut TouchedRegisters,
        out: &mut PrimaryMap<InstId, MachineInst>,
    ) {
        let info = i.inst.op.info();
        if self.is_busy() || info.counter != Counter::None || info.meaning == Meaning::Export {
            touched.refill(&i.inst);
            if self.flags.indexing && is_valu(info) {
                touched.uses.widen(RegisterRange::indexed);
                touched.defs.widen(RegisterRange::indexed);
            }
        }
        let need = self.needed(&i.inst, touched);
        if need != WaitCounts::NONE {
            self.emit_wait(need, i.source, out);
        }
        match info.meaning {
            Meaning::Wait => self.waited(WaitCounts::from_imm(i.inst.imm)),
            Meaning::Barrier => i.inst.imm = 0,
            Meaning::EndProgram if self.flags.scalar_stores => {
                out.push(MachineInst { inst: Inst::new(Opcode::SDcacheWb, &[]), source: i.source });
            }
            _ => self.issue(&i.inst, touched),
        }
        out.push(i);
        if matches!(info.meaning, Meaning::GlobalWaveSync | Meaning::GlobalBarrier) {
            self.emit_wait(WaitCounts { vm: 0, exp: 0, lgkm: 0 }, i.source, out);
        }
        if info.unit == Unit::Salu {
            self.flags.indexing = changes_indexing(&i.inst).unwrap_or(self.flags.indexing);
        }
    }

    fn emit_wait(&mut self, counts: WaitCounts, source: u32, out: &mut PrimaryMap<InstId, MachineInst>) {
        out.push(MachineInst { inst: Inst::new(Opcode::SWaitcnt, &[]).imm(counts.to_imm()), source });
        self.waited(counts);
    }

    fn waited(&mut self, count: WaitCounts) {
        if count.vm < WaitCounts::NONE.vm {
            self.vm.waited(count.vm);
        }
        if count.lgkm < WaitCounts::NONE.lgkm {
            self.lgkm.waited(count.lgkm);
        }
        if count.exp == 0 {
            self.locked.clear();
        }
    }

    /// True if anything may have to be waited for.
    fn is_busy(&self) -> bool {
        self.vm.is_busy() || self.lgkm.is_busy() || !self.locked.is_empty()
    }

    /// What has to be waited for before `inst`, which touches these registers.
    fn needed(&self, inst: &Inst, touched: &TouchedRegisters) -> WaitCounts {
        let mut need = WaitCounts::NONE;
        if !self.is_busy() {
            return need;
        }
        let info = inst.op.info();
        let (mut vm, mut lgkm) = self.needed_by_order(inst, info);
        if info.unit != Unit::Barrier {
            // Vector memory returns in order among itself, so a load may follow a load into the same
            // register.
            let in_order = info.unit == Unit::Vmem && self.vm.kinds.are_ordered();
            for &range in touched.uses.as_slice() {
                vm = vm.max(self.vm.blocking(range));
                lgkm = lgkm.max(self.lgkm.blocking(range));
            }
            for &range in touched.defs.as_slice() {
                vm = vm.max(if in_order { 0 } else { self.vm.blocking(range) });
                lgkm = lgkm.max(self.lgkm.blocking(range));
                if self.locked.iter().any(|locked| locked.overlaps(range)) {
                    need.exp = 0;
                }
            }
        }
        if vm > 0 {
            need.vm = self.vm.wait_for(vm, CAP.vm);
        }
        if lgkm > 0 {
            need.lgkm = self.lgkm.wait_for(lgkm, CAP.lgkm);
        }
        if leaves_body(info) && !self.locked.is_empty() {
            need.exp = 0;
        }
        need
    }

    /// Numbers of vmcnt and lgkmcnt that must be over before `inst`, whatever its registers.
    fn needed_by_order(&self, inst: &Inst, info: &OpInfo) -> (u32, u32) {
        let vm = |mark: WaitMark| self.vm.open(self.marks[mark as usize]);
        let lds = self.lgkm.open(self.marks[WaitMark::Lds as usize]);
        let all = (self.vm.youngest(), self.lgkm.youngest());
        if leaves_body(info) {
            return all;
        }
        if info.unit == Unit::Barrier {
            return match inst.imm {
                _ if self.arch.generation() <= Generation::Cdna1 => all,
                BARRIER_WITHOUT_WAITS => (vm(WaitMark::WriteBack), 0),
                _ => (vm(WaitMark::LdsDma).max(vm(WaitMark::WriteBack)), lds),
            };
        }
        let mut before = (0, 0);
        let stores = (is_vmem(info) || info.unit == Unit::Smem) && writes_memory(info);
        if stores || info.meaning == Meaning::SendMessage {
            before.0 = vm(WaitMark::WriteBack);
        }
        if info.meaning == Meaning::CacheInvalidate {
            before.0 = vm(WaitMark::Load);
        }
        if self.lds_loads == LdsLoads::Anywhere {
            if is_lds_dma(info) {
                before.1 = lds;
            } else if touches_lds(inst) {
                before.0 = before.0.max(vm(WaitMark::LdsDma));
            }
        }
        before
    }

    /// Counts `inst`, which touches these registers, and notes those that it will write.
    fn issue(&mut self, inst: &Inst, touched: &TouchedRegisters) {
        let info = inst.op.info();
        if info.meaning == Meaning::Export {
            self.lock(touched);
        }
        if info.counter == Counter::None || info.meaning == Meaning::LdsNop {
            return;
        }
        let (defs, kinds) = (touched.defs.as_slice(), CounterKinds::of(inst));
        if is_vmem(info) {
            self.vm.issue(kinds, defs);
            let mut mark = |mark: WaitMark, holds: bool| {
                self.marks[mark as usize] = if holds { self.vm.issued } else { self.marks[mark as usize] };
            };
            mark(WaitMark::LdsDma, is_lds_dma(info));
            mark(WaitMark::Load, !defs.is_empty());
            mark(WaitMark::WriteBack, info.meaning == Meaning::CacheWriteBack);
        }
        if matches!(info.counter, Counter::Lgkm | Counter::VmAndLgkm) {
            self.lgkm.issue(kinds, defs);
            if touches_lds(inst) {
                self.marks[WaitMark::Lds as usize] = self.lgkm.issued;
            }
            if kinds == CounterKinds::GDS {
                self.lock(touched);
            }
            match info.meaning {
                Meaning::ScalarCacheWriteBack => self.flags.scalar_stores = false,
                _ => self.flags.scalar_stores |= info.unit == Unit::Smem && writes_memory(info),
            }
        }
    }
}

impl WaitInserter {
    /// Notes registers that are read some time after the instruction was issued.
    fn lock(&mut self, touched: &TouchedRegisters) {
        let late = |range: &&RegisterRange| range.is_vector() || **range == RegisterRange::EXEC;
        self.locked.extend(touched.uses.as_slice().iter().filter(late));
    }
}

impl Rewrite<BlockWaits> for WaitInserter {
    fn rewrite(
        &mut self,
        insts: &[MachineInst],
        entry: &BlockWaits,
        exit: &mut BlockWaits,
        out: &mut PrimaryMap<InstId, MachineInst>,
    ) {
        self.enter(entry);
        let mut touched = TouchedRegisters::NONE;
        insts.iter().for_each(|&i| self.step(i, &mut touched, out));
        self.leave(exit);
    }
}

/// True for instructions that read or write LDS memory through its own path: not lane permutations, which
/// only use the hardware, nor the global data share.
fn touches_lds(inst: &Inst) -> bool {
    let info = inst.op.info();
    let only_lanes = matches!(info.meaning, Meaning::LaneSwizzle | Meaning::LanePermute(_) | Meaning::LdsNop);
    matches!(info.unit, Unit::Lds | Unit::Flat) && !only_lanes && !is_gds(inst)
}
