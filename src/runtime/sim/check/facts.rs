//! Facts about every instruction that check mode needs, computed once per launch: the registers that it uses
//! as bits, how it is counted, how far its hazards extend.

use std::ops::Range;

use smallvec::SmallVec;

use crate::codegen::isa::{
    Arch, Counter, Effect, Format, Implicit, Inst, Meaning, MemoryData, Opcode, Operand, Unit, WaitCounts,
    decode,
};
use crate::codegen::rules::{
    EXEC, InstructionView, MatrixPipe, UsedRegisters, VCC, class, is_acc_move, pending,
};

use super::super::error::MemoryAccess;
use super::super::program::{Program, Step};
use super::super::register_bits::{FIRST_VECTOR, RegisterBits, SCC, insert};
use super::super::wave::M0;
use super::model::{self, SyncScope};

/// A few registers: the words of their bits that are not zero.
#[derive(Default)]
pub(super) struct RegisterWords {
    words: SmallVec<[(u8, u64); 4]>,
}

impl RegisterWords {
    fn of(bits: &RegisterBits) -> RegisterWords {
        let words = (0..).zip(bits).filter(|&(_, &bits)| bits != 0);
        RegisterWords { words: words.map(|(word, &bits)| (word, bits)).collect() }
    }

    /// True for each of two sets if it has a register in common with these.
    #[inline(always)]
    pub(super) fn meet(&self, a: &RegisterBits, b: &RegisterBits) -> [bool; 2] {
        let mut any = [0; 2];
        for &(word, bits) in &self.words {
            // There are twelve words; the mask spares a check.
            let word = usize::from(word) % 12;
            any[0] |= a[word] & bits;
            any[1] |= b[word] & bits;
        }
        any.map(|any| any != 0)
    }
}

/// Order in which memory operations complete.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum CompletionOrder {
    /// Vector memory: in order among itself.
    Vector,
    /// LDS: in order among itself.
    Lds,
    /// Global data share: in order among itself.
    Gds,
    /// Messages: in order among themselves.
    Message,
    /// Scalar memory: in no order.
    Scalar,
    /// Flat: in no order, counted by both counters.
    Flat,
}

/// What the checker does with an instruction in addition to executing it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Treatment {
    /// Executes at once: scalar and vector ALU, branches, the rest.
    Plain,
    /// Is counted and completes later.
    Memory,
    /// Waits for counters.
    Wait(WaitCounts),
    /// Workgroup barrier.
    Barrier,
    /// Barrier of all workgroups.
    GridBarrier,
    /// End of the wave.
    End,
    /// The bytes are no instruction.
    Undecodable,
}

/// Facts about one instruction.
pub(super) struct InstructionFacts {
    /// The instruction; none for undecodable bytes.
    pub inst: Option<Inst>,
    /// Its registers.
    pub uses: RegisterUse,
    /// Its kind.
    pub kind: Treatment,
    /// The counters that it increments.
    pub counter: Counter,
    /// The order in which it completes.
    pub order: CompletionOrder,
    /// What hazards make of it.
    pub wait_states: HazardFacts,
    /// What it says about the order of accesses.
    pub sync: Synchronisation,
    /// Earlier steps that a replay after a page fault would get wrong together with it, and its own if even
    /// that alone; see `replay`.
    pub apart_from: Box<[u32]>,
    /// The earlier step whose half of a register it clears by loading the other one, see `halves`.
    pub clears: Option<u32>,
    /// It loads into LDS.
    pub to_lds: bool,
    /// Its effect depends on EXEC.
    pub is_masked: bool,
    /// Its effect depends on EXEC, and each lane uses vector registers of its own alone.
    pub stays_in_lanes: bool,
}

/// The registers of an instruction.
#[derive(Default)]
pub(super) struct RegisterUse {
    /// Those that it reads or writes.
    pub touched: RegisterWords,
    /// Those that it writes.
    pub written: RegisterBits,
    /// All, one by one.
    pub all: Box<[UsedRegisters]>,
    /// It touches VCC.
    pub touches_vcc: bool,
    /// What a memory operation has to keep if it is performed later: the registers that it reads and M0,
    /// without EXEC.
    pub sources: Box<[u16]>,
    /// One past the last VGPR, AGPR and SGPR that it names.
    pub ends: [u32; 3],
}

/// The part of an instruction in hazards.
pub(super) struct HazardFacts {
    /// Wait states that it supplies.
    pub states: u32,
    /// No hazard rule asks for more wait states after it.
    pub reach: u32,
    /// Wait states of all steps before it.
    pub position: u32,
    /// After it and the steps before it no hazard rule asks for more wait states.
    pub pending: u32,
    /// It is an f64 matrix instruction; it moves values between register files.
    pub passes_by: [bool; 2],
}

/// What an instruction says about the order of its wave's accesses and those of others.
pub(super) struct Synchronisation {
    /// For a memory instruction whose access counts as atomic, because it is an atomic or has scope bits: its
    /// scope.
    pub scope: SyncScope,
    /// It loads what a compare-and-swap verifies afterwards.
    pub is_guess: bool,
    /// The steps of the loop in which it waits, see `polls`.
    pub polls: Option<Range<u32>>,
    /// An access to device memory that hands over the accesses before it.
    pub releases: bool,
    /// Which of the vector caches it invalidates for the wave.
    pub invalidates: SyncScope,
    /// It writes L2 back.
    pub writes_back: bool,
}

impl InstructionFacts {
    fn undecodable() -> InstructionFacts {
        InstructionFacts {
            inst: None,
            uses: RegisterUse::default(),
            kind: Treatment::Undecodable,
            counter: Counter::None,
            order: CompletionOrder::Message,
            wait_states: HazardFacts { states: 1, reach: 0, position: 0, pending: 0, passes_by: [false; 2] },
            sync: Synchronisation {
                scope: SyncScope::Wave,
                is_guess: false,
                polls: None,
                releases: false,
                invalidates: SyncScope::Wave,
                writes_back: false,
            },
            apart_from: Box::new([]),
            clears: None,
            to_lds: false,
            is_masked: false,
            stays_in_lanes: false,
        }
    }

    /// Facts about one instruction.
    pub(super) fn of(inst: Inst, arch: Arch) -> InstructionFacts {
        let mut view = InstructionView::new(&inst, false);
        // A tuple that extends past the last register is a fault when it executes; here it ends with the
        // registers.
        view.registers.iter_mut().for_each(|r| r.end = r.end.min(Operand::END));
        let info = view.info;
        let (touched, written, ends) = register_sets(&view.registers);
        let counted = info.counter != Counter::None && info.meaning != Meaning::LdsNop;
        // LLVM counts it since pull request 220694. Waits that we insert do not rely on that.
        let invalidates = info.meaning == Meaning::CacheInvalidate && arch.has_scope_bits();
        let counter = match counted {
            true => info.counter,
            false if invalidates => Counter::Vm,
            false => Counter::None,
        };
        let atomic = info.meaning.effect() == Effect::Atomic;
        let scope = match info.unit {
            _ if atomic || view.is_vmem() => model::scope(&inst, arch),
            Unit::Smem => model::scalar_scope(&inst),
            _ => SyncScope::Wave,
        };
        // Without scope bits every store may set a flag.
        let stores = view.is_vmem() && info.may_store() && !arch.has_scope_bits();
        InstructionFacts {
            kind: treatment(&inst).unwrap_or(if counted { Treatment::Memory } else { Treatment::Plain }),
            counter,
            order: completion_order(&view),
            wait_states: HazardFacts {
                states: if inst.op == Opcode::SNop { (inst.imm & 15) + 1 } else { 1 },
                reach: pending(&view, arch),
                position: 0,
                pending: 0,
                passes_by: [class(&view, arch) == Some(MatrixPipe::D), is_acc_move(&view)],
            },
            sync: Synchronisation {
                scope,
                is_guess: false,
                polls: None,
                releases: scope > SyncScope::Wave && info.may_store() || stores,
                invalidates: model::invalidates(&inst, arch),
                writes_back: model::writes_back(&inst),
            },
            apart_from: Box::new([]),
            clears: None,
            to_lds: info.may_store_to_lds(),
            is_masked: info.reads.contains(Implicit::EXEC),
            stays_in_lanes: info.reads.contains(Implicit::EXEC) && !crosses_lanes(&inst),
            uses: RegisterUse {
                touched: RegisterWords::of(&touched),
                written,
                touches_vcc: view.registers.iter().any(|r| r.has(VCC) || r.has(VCC + 1)),
                sources: if counted { sources(&view.registers) } else { Box::new([]) },
                ends,
                all: view.registers.into_boxed_slice(),
            },
            inst: Some(inst),
        }
    }

    /// True if it may acquire what another wave has released through device memory.
    fn acquires(&self) -> bool {
        let Some(inst) = &self.inst else { return false };
        let info = inst.op.info();
        let device = matches!(info.unit, Unit::Vmem | Unit::Flat) || self.sync.scope > SyncScope::Wave;
        let returns = matches!(info.meaning, Meaning::AtomicReturn(..));
        let looks = self.is_atomic() || self.sync.polls.is_some();
        let at_once = matches!(info.meaning, Meaning::CacheInvalidate | Meaning::GlobalBarrier);
        at_once || device && (returns || looks && info.may_load())
    }

    /// The same through LDS.
    fn acquires_in_lds(&self) -> bool {
        let Some(inst) = &self.inst else { return false };
        let info = inst.op.info();
        let lds = matches!(info.unit, Unit::Lds | Unit::Flat);
        let looks = self.sync.is_guess || self.is_atomic() || self.sync.polls.is_some();
        lds && (matches!(info.meaning, Meaning::AtomicReturn(..)) || looks && info.may_load())
    }
}

/// The registers that are touched and written, and the ends of those of each file.
fn register_sets(registers: &[UsedRegisters]) -> (RegisterBits, RegisterBits, [u32; 3]) {
    let (mut touched, mut written, mut ends) = ([0; 12], [0; 12], [0; 3]);
    for r in registers {
        insert(&mut touched, r.first, r.end);
        if r.is_written {
            insert(&mut written, r.first, r.end);
        }
        let (file, start) = match r.first {
            256..512 => (0, 256),
            512.. => (1, 512),
            _ => (2, 0),
        };
        if file < 2 || r.first < 102 && r.field.is_some() {
            ends[file] = ends[file].max(r.end - start);
        }
    }
    (touched, written, ends)
}

/// How a check treats an instruction that is neither a plain one nor one of memory.
fn treatment(inst: &Inst) -> Option<Treatment> {
    Some(match inst.op.info().meaning {
        Meaning::Wait => Treatment::Wait(WaitCounts::from_imm(inst.imm)),
        Meaning::Barrier => Treatment::Barrier,
        Meaning::GlobalBarrier => Treatment::GridBarrier,
        Meaning::EndProgram | Meaning::EndProgramSaved => Treatment::End,
        _ => return None,
    })
}

fn completion_order(view: &InstructionView<'_>) -> CompletionOrder {
    match view.info.unit {
        Unit::Vmem => CompletionOrder::Vector,
        Unit::Lds if view.is_gds() => CompletionOrder::Gds,
        Unit::Lds => CompletionOrder::Lds,
        Unit::Smem => CompletionOrder::Scalar,
        Unit::Flat => CompletionOrder::Flat,
        _ => CompletionOrder::Message,
    }
}

/// True if lanes use vector registers of others.
fn crosses_lanes(inst: &Inst) -> bool {
    inst.modifiers.has_dpp()
        || matches!(
            inst.op.info().meaning,
            Meaning::ReadFirstLane
                | Meaning::ReadLane
                | Meaning::WriteLane
                | Meaning::SwapRows(_)
                | Meaning::LanePermute(_)
                | Meaning::LaneSwizzle
                | Meaning::LoadTransposed(..)
                | Meaning::Mfma(..)
                | Meaning::SparseMfma(..)
                | Meaning::FormattedMfma(_)
        )
}

/// The registers that an operation keeps; one that is named twice is kept once.
fn sources(registers: &[UsedRegisters]) -> Box<[u16]> {
    let mut bits = [0; 12];
    insert(&mut bits, M0 as u32, M0 as u32 + 1);
    registers.iter().filter(|r| r.is_read).for_each(|r| insert(&mut bits, r.first, r.end));
    bits[EXEC as usize / 64] &= !(0b11 << (EXEC % 64));
    (0..768).filter(|&number| bits[usize::from(number) / 64] >> (number % 64) & 1 != 0).collect()
}

/// Facts of a whole program.
pub(super) struct Table {
    /// By step.
    pub facts: Vec<InstructionFacts>,
    /// Instruction set.
    pub arch: Arch,
    /// Some instruction acquires what other waves release through device memory.
    pub hands_over: bool,
    /// Some instruction waits for all workgroups.
    pub meets: bool,
    /// Some instruction acquires what other waves release through LDS.
    pub lds_hands_over: bool,
    /// Some instruction indexes VGPRs.
    pub indexes: bool,
    /// Logarithm of the least number of bytes that a store to LDS and to device memory writes, at most 2.
    pub granules: [u32; 2],
}

impl Table {
    /// Facts about a program whose code is `code`, for a kernel with the steps `kernel` (and the code that it
    /// calls); `mark` marks what guesses and what waits in a loop.
    pub(super) fn new(
        program: &Program,
        code: &[u8],
        kernel: Range<usize>,
        mark: impl FnOnce(&mut [InstructionFacts], &Program),
    ) -> Table {
        let mut facts: Vec<InstructionFacts> =
            program.steps.iter().map(|step| facts_of(step, code, program.arch)).collect();
        let (mut position, mut pending) = (0, 0u32);
        for facts in &mut facts {
            pending = facts.wait_states.reach.max(pending.saturating_sub(facts.wait_states.states));
            (facts.wait_states.position, facts.wait_states.pending) = (position, pending);
            position += facts.wait_states.states;
        }
        mark(&mut facts, program);
        let own = facts.get(kernel).unwrap_or(&facts);
        let leaves = |f: &InstructionFacts| {
            f.inst.as_ref().is_some_and(|inst| InstructionView::new(inst, false).is_border())
        };
        let own = if own.iter().any(leaves) { &facts } else { own };
        let insts = || own.iter().filter_map(|f| f.inst.as_ref());
        let granule = |is: fn(Unit) -> bool| {
            let stored =
                insts().filter(|i| is(i.op.info().unit)).filter_map(|i| stored_bytes(i.op.info().meaning));
            stored.fold(4, u32::min).trailing_zeros()
        };
        Table {
            arch: program.arch,
            hands_over: own.iter().any(InstructionFacts::acquires),
            meets: own.iter().any(|facts| facts.kind == Treatment::GridBarrier),
            lds_hands_over: own.iter().any(InstructionFacts::acquires_in_lds),
            indexes: insts()
                .any(|i| matches!(i.op.info().meaning, Meaning::SetGprIndexOn | Meaning::SetGprIndexMode)),
            granules: [
                granule(|unit| matches!(unit, Unit::Lds | Unit::Flat)),
                granule(|unit| matches!(unit, Unit::Vmem | Unit::Flat)),
            ],
            facts,
        }
    }
}

/// Least number of bytes that an instruction stores per lane.
fn stored_bytes(meaning: Meaning) -> Option<u32> {
    match meaning {
        Meaning::Store(MemoryData::Dwords(_)) => Some(4),
        Meaning::Store(kind) => Some(kind.bytes()),
        Meaning::StoreFormat(_) | Meaning::StoreFormatHalf(_) | Meaning::StoreFormatHigh => Some(1),
        _ => None,
    }
}

fn facts_of(step: &Step, code: &[u8], arch: Arch) -> InstructionFacts {
    let bytes = code.get(step.offset as usize..).and_then(|c| c.get(..step.bytes as usize)).unwrap_or(&[]);
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    match decode(&words[..(bytes.len() / 4).min(4)], arch) {
        Ok((inst, _)) if step.format != Format::Sopp || inst.op.info().format == Format::Sopp => {
            InstructionFacts::of(inst, arch)
        }
        _ => InstructionFacts::undecodable(),
    }
}

/// Assembler's name of a register.
pub(super) fn name(number: u32) -> String {
    match number {
        102 => "flat_scratch_lo".to_owned(),
        103 => "flat_scratch_hi".to_owned(),
        104 => "xnack_mask_lo".to_owned(),
        105 => "xnack_mask_hi".to_owned(),
        106 => "vcc_lo".to_owned(),
        107 => "vcc_hi".to_owned(),
        108..124 => format!("ttmp{}", number - 108),
        124 => "m0".to_owned(),
        126 => "exec_lo".to_owned(),
        127 => "exec_hi".to_owned(),
        SCC => "scc".to_owned(),
        FIRST_VECTOR..512 => format!("v{}", number - 256),
        512.. => format!("a{}", number - 512),
        _ => format!("s{number}"),
    }
}

impl InstructionFacts {
    /// True if an access of it, of a scope, may be a flag that hands over data to other waves.
    pub(super) fn may_be_flag(&self, access: MemoryAccess, scope: SyncScope) -> bool {
        if access == MemoryAccess::Load { scope > SyncScope::Wave } else { self.sync.releases }
    }

    /// True if its access counts as atomic.
    pub(super) fn is_atomic(&self) -> bool {
        self.sync.scope > SyncScope::Wave
    }

    /// True if it writes the register of that operand number.
    pub(super) fn writes(&self, number: u32) -> bool {
        self.uses.written[number as usize / 64 % 12] >> (number % 64) & 1 != 0
    }
}
