//! The instructions that decide which addresses a wave accesses and where it branches.
//!
//! Time asks for no data: what a load brings and what a product computes changes nothing unless an address,
//! a branch or EXEC depends on it. The slice is found backwards from these over the registers of the code, as
//! the dead instructions of a compiler are. A wave that executes the slice alone goes the same way, in a
//! fraction of the time of the host, and needs no contents of memory but those that the slice loads.

use crate::codegen::isa::{BranchCondition, Effect, Field, Format, Inst, Meaning, Unit};
use crate::codegen::rules::{EXEC, InstructionView, UsedRegisters};
use crate::codegen::target::CostKind;

use super::super::error::Stopped;
use super::super::execute::{ExecutionContext, step};
use super::super::program::{NOWHERE, Program};
use super::super::register_bits::{FIRST_VECTOR, RegisterBits, insert, meet};
use super::super::start::LaunchContext;
use super::super::wave::Wave;
use super::costs::StepCost;

/// Why a launch has no slice that is worth it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum NoSlice {
    /// The code jumps to addresses in registers, or numbers registers by values.
    Indirect,
    /// Addresses or branches depend on what workgroups tell each other.
    Polls,
    /// They depend on results of matrix instructions.
    Products,
}

impl NoSlice {
    /// As a reason in a sentence about a launch.
    pub(super) const fn text(self) -> &'static str {
        match self {
            NoSlice::Indirect => "its code jumps to computed addresses",
            NoSlice::Polls => "its workgroups wait for each other",
            NoSlice::Products => "its branches depend on what it computes",
        }
    }
}

/// The steps of a kernel that its addresses and branches depend on.
pub(super) struct AddressSlice {
    /// Of each step, true if it is one of them.
    needed: Vec<bool>,
    /// Rows of vector registers that a wave has to start with.
    rows: Vec<usize>,
    /// They depend on what is in memory.
    pub reads_memory: bool,
    /// They depend on what is in LDS.
    pub reads_lds: bool,
}

/// The effects of a step on registers and memory.
#[derive(Clone, Default)]
struct StepFacts {
    /// Registers without which its address, its direction or its EXEC is not known.
    decides: RegisterBits,
    reads: RegisterBits,
    writes: RegisterBits,
    /// Those of `writes` of which nothing is left.
    replaces: RegisterBits,
    /// It changes what comes next or what others see of the wave, so it is executed in any case.
    is_control: bool,
    access: MemoryTouch,
    /// The steps that may come after it.
    next: [Option<u32>; 2],
}

/// The effect of a step on memory.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
enum MemoryTouch {
    #[default]
    None,
    /// Loads arguments of the kernel.
    Arguments,
    ReadsLds,
    WritesLds,
    ReadsMemory,
    Stores,
    Exchanges,
}

/// Contents that the slice needs: of LDS, and of what the wave itself stores.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
struct NeededContents {
    lds: bool,
    stores: bool,
}

/// Whose slice is looked for.
pub(super) struct SlicedCode<'a> {
    pub program: &'a Program,
    /// The step that waves begin with.
    pub entry: usize,
    /// The first register of the address of the kernel arguments.
    pub arguments: Option<u32>,
    /// Waves have memory of their own, which stores may go to.
    pub has_scratch: bool,
}

impl AddressSlice {
    /// That of a kernel with these costs; `instruction` gives the instruction of a step.
    pub(super) fn of(
        code: &SlicedCode<'_>,
        costs: &[StepCost],
        instruction: impl Fn(usize) -> Option<Inst>,
    ) -> Result<AddressSlice, NoSlice> {
        let program = code.program;
        let mut facts = vec![StepFacts::default(); program.steps.len()];
        let order = reachable(program, code.entry, |step| {
            let inst = instruction(step)?;
            facts[step] = StepFacts::of(&inst, code.arguments)?;
            facts[step].next = successors(program, step, inst.op.info().meaning);
            Some(facts[step].next)
        });
        let mut order = order.ok_or(NoSlice::Indirect)?;
        // From the end, so that most of what comes after a step is known before it.
        order.sort_unstable_by(|a, b| b.cmp(a));
        if order.iter().any(|&step| facts[step].writes_exec()) {
            // A lane that is switched off keeps what its registers had.
            order.iter().for_each(|&step| facts[step].keep_vectors());
        }
        let mut slice = Slice::new(&order, &facts);
        let mut contents = NeededContents::default();
        loop {
            slice.find(contents);
            let reads = |access| slice.accesses(access);
            let now = NeededContents {
                lds: reads(MemoryTouch::ReadsLds),
                stores: code.has_scratch && reads(MemoryTouch::ReadsMemory),
            };
            if now == contents {
                break;
            }
            contents = now;
        }
        let reads_memory = slice.accesses(MemoryTouch::ReadsMemory);
        let exchanges = order.iter().any(|&step| facts[step].access == MemoryTouch::Exchanges);
        if reads_memory && exchanges || slice.accesses(MemoryTouch::Exchanges) {
            return Err(NoSlice::Polls);
        }
        let is_product = |&&step: &&usize| matches!(costs[step].instruction.kind, CostKind::Matrix { .. });
        if order.iter().filter(is_product).any(|&step| slice.needed[step]) {
            return Err(NoSlice::Products);
        }
        let rows = (0..512).filter(|&row| has(&slice.ever_live, FIRST_VECTOR + row as u32));
        let rows = rows.filter_map(|row| row_of(program, row)).collect();
        Ok(AddressSlice { needed: slice.needed, rows, reads_memory, reads_lds: contents.lds })
    }

    /// True if a wave at that step has to execute it.
    #[inline]
    pub(super) fn needs(&self, step: usize) -> bool {
        self.needed.get(step).copied().unwrap_or(true)
    }
}

/// The waves of a launch, which execute all of their instructions or those of a slice.
#[derive(Copy, Clone)]
pub(super) struct WaveWalk<'a> {
    pub launch: &'a LaunchContext<'a>,
    pub slice: Option<&'a AddressSlice>,
}

impl WaveWalk<'_> {
    /// Puts a wave before its first instruction.
    pub(super) fn start(&self, wave: &mut Wave, index: usize, ids: [u32; 3]) {
        match self.slice {
            Some(slice) => self.launch.start_with_rows(wave, index, ids, &slice.rows),
            None => self.launch.start(wave, index, ids),
        }
    }

    /// Moves a wave over the instruction that it stands at.
    #[inline]
    pub(super) fn step(&self, wave: &mut Wave, context: &mut ExecutionContext<'_>) -> Result<(), Stopped> {
        if self.slice.is_none_or(|slice| slice.needs(wave.pc)) {
            return step(wave, context);
        }
        (wave.pc, wave.executed) = (wave.pc + 1, wave.executed + 1);
        Ok(())
    }
}

/// A slice that is being found.
struct Slice<'a> {
    order: &'a [usize],
    facts: &'a [StepFacts],
    needed: Vec<bool>,
    /// Of each step, the registers that what comes from it on needs.
    live: Vec<RegisterBits>,
    /// Registers that are in one of these.
    ever_live: RegisterBits,
}

impl<'a> Slice<'a> {
    fn new(order: &'a [usize], facts: &'a [StepFacts]) -> Slice<'a> {
        let (needed, live) = (vec![false; facts.len()], vec![[0; 12]; facts.len()]);
        Slice { order, facts, needed, live, ever_live: [0; 12] }
    }

    /// True if a step of the slice does that to memory.
    fn accesses(&self, access: MemoryTouch) -> bool {
        self.order.iter().any(|&step| self.needed[step] && self.facts[step].access == access)
    }

    /// Adds steps until all that others need are there.
    fn find(&mut self, contents: NeededContents) {
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for &step in self.order {
                let facts = &self.facts[step];
                let mut live = [0; 12];
                for next in facts.next.into_iter().flatten() {
                    join(&mut live, &self.live[next as usize]);
                }
                let needed = facts.is_control || facts.fills(contents) || meet(&facts.writes, &live);
                if needed {
                    live.iter_mut().zip(&facts.replaces).for_each(|(live, gone)| *live &= !gone);
                    join(&mut live, &facts.reads);
                }
                join(&mut live, &facts.decides);
                insert(&mut live, EXEC, EXEC + 2);
                if live != self.live[step] || needed != self.needed[step] {
                    has_changed = true;
                    join(&mut self.ever_live, &live);
                    (self.live[step], self.needed[step]) = (live, needed);
                }
            }
        }
    }
}

fn has(bits: &RegisterBits, number: u32) -> bool {
    bits[number as usize / 64] >> (number % 64) & 1 != 0
}

fn join(bits: &mut RegisterBits, other: &RegisterBits) {
    bits.iter_mut().zip(other).for_each(|(bits, other)| *bits |= other);
}

/// The row of a wave that is VGPR or AGPR number `register`, counted together as operands are.
fn row_of(program: &Program, register: usize) -> Option<usize> {
    let row = match register {
        0..256 => register,
        _ => program.vgprs() + register - 256,
    };
    (row < program.rows()).then_some(row)
}

impl StepFacts {
    /// Those of an instruction; nothing if where the wave goes on, or which registers it uses, is in a
    /// register.
    fn of(inst: &Inst, arguments: Option<u32>) -> Option<StepFacts> {
        use Meaning::{
            Call, Fork, ForkIf, JoinFork, MoveFromRelative, MoveToRelative, SetGprIndexOn,
            SetHardwareRegister, SetPc, SetVskip, SwapPc,
        };
        let view = InstructionView::new(inst, false);
        let info = view.info;
        match info.meaning {
            Call | Fork | ForkIf | JoinFork | SetPc | SwapPc | SetVskip | SetGprIndexOn
            | MoveFromRelative(_) | MoveToRelative(_) => return None,
            // LDS, memory and scratch are told apart by the address.
            _ if matches!(info.format, Format::Flat | Format::FlatRtn) => return None,
            _ => {}
        }
        let mut facts = StepFacts {
            is_control: matches!(info.unit, Unit::Branch | Unit::Barrier | Unit::Other)
                || matches!(info.meaning, Meaning::EndProgram | SetHardwareRegister),
            access: access(info.unit, info.meaning.effect()),
            ..StepFacts::default()
        };
        let loads_arguments =
            |used: &UsedRegisters| used.field == Some(Field::Base) && Some(used.first) == arguments;
        if info.unit == Unit::Smem && view.registers.iter().any(loads_arguments) {
            facts.access = MemoryTouch::Arguments;
        }
        for used in &view.registers {
            let is_data = matches!(used.field, Some(Field::Data0 | Field::Data1));
            let moves_data = facts.access != MemoryTouch::None || info.unit == Unit::Lds;
            if used.is_read {
                insert(&mut facts.reads, used.first, used.end);
                if facts.is_control || moves_data && !is_data {
                    insert(&mut facts.decides, used.first, used.end);
                }
            }
            if used.is_written {
                insert(&mut facts.writes, used.first, used.end);
                if !used.is_read {
                    insert(&mut facts.replaces, used.first, used.end);
                }
            }
        }
        Some(facts)
    }

    fn writes_exec(&self) -> bool {
        has(&self.writes, EXEC) || has(&self.writes, EXEC + 1)
    }

    /// Something may be left of all vector registers that it writes.
    fn keep_vectors(&mut self) {
        self.replaces[FIRST_VECTOR as usize / 64..].fill(0);
    }

    /// True if it puts contents where the slice looks for them.
    fn fills(&self, contents: NeededContents) -> bool {
        match self.access {
            MemoryTouch::WritesLds => contents.lds,
            MemoryTouch::Stores => contents.stores,
            _ => false,
        }
    }
}

fn access(unit: Unit, effect: Effect) -> MemoryTouch {
    match (unit, effect) {
        (_, Effect::None) => MemoryTouch::None,
        (Unit::Lds, Effect::Load) => MemoryTouch::ReadsLds,
        (Unit::Lds, _) | (_, Effect::LoadToLds) => MemoryTouch::WritesLds,
        (_, Effect::Load) => MemoryTouch::ReadsMemory,
        (_, Effect::Store | Effect::StoreFromLds) => MemoryTouch::Stores,
        (_, Effect::Atomic) => MemoryTouch::Exchanges,
    }
}

/// The steps that a wave may come to from step `entry` on; nothing if `look`, which is called once for each
/// and gives the steps after it, has no answer.
fn reachable(
    program: &Program,
    entry: usize,
    mut look: impl FnMut(usize) -> Option<[Option<u32>; 2]>,
) -> Option<Vec<usize>> {
    let mut is_seen = vec![false; program.steps.len()];
    let (mut found, mut left) = (Vec::new(), vec![entry]);
    while let Some(step) = left.pop() {
        if std::mem::replace(is_seen.get_mut(step)?, true) {
            continue;
        }
        found.push(step);
        left.extend(look(step)?.into_iter().flatten().map(|next| next as usize));
    }
    Some(found)
}

/// The steps that may come after one of that meaning.
fn successors(program: &Program, step: usize, meaning: Meaning) -> [Option<u32>; 2] {
    let target = Some(program.steps[step].target).filter(|&target| target != NOWHERE);
    let after = Some(step as u32 + 1);
    match meaning {
        Meaning::EndProgram | Meaning::EndProgramSaved => [None, None],
        Meaning::Branch(BranchCondition::Always) => [None, target],
        Meaning::Branch(_) => [after, target],
        _ => [after, None],
    }
}
