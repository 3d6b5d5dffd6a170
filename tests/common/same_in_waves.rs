//! Stores to LDS that every wave of a workgroup makes alike, by the code alone: neither their addresses nor
//! their data depend on which wave it is.
//!
//! Such a store needs no barrier. A wave that reads what it has stored finds it there, because LDS
//! instructions of a wave are executed in order, and what another wave stores there is the same. That nobody
//! stores anything else before all of them are over is left to check mode, which wants an order between
//! stores of different values.
//!
//! The waves of a workgroup of one dimension differ by their work-items alone: v0 at the entry, of which the
//! low six bits are the lane. What does not come from more of it is the same in all waves, and so is what is
//! loaded from memory by such an address, as the factors of a product are not written.

use std::collections::BTreeSet;

use cranelift_entity::{EntityRef, SecondaryMap};
use groundswell::internals::machine::{BlockId, InstId, MachineBody};
use groundswell::isa::{BranchCondition, Implicit, Inst, Meaning, Opcode, Operand, Role, Unit};

/// What a register holds in the waves of a workgroup, the same lanes compared.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Content {
    Same,
    /// The number of the work-item, or its bits from zero up to some higher than the lane's.
    WorkItem,
    Differs,
}

impl Content {
    fn join(self, other: Content) -> Content {
        if self == other { self } else { Content::Differs }
    }
}

/// Bits of a lane's number.
const LANE: u32 = 63;
/// Numbers of operands: scalar registers and flags, VGPRs, AGPRs.
const REGISTERS: usize = 1024;

/// What instructions read and write without naming it.
const FLAGS: [(Implicit, Operand); 4] = [
    (Implicit::SCC, Operand::SCC),
    (Implicit::VCC, Operand::VCC),
    (Implicit::EXEC, Operand::EXEC),
    (Implicit::M0, Operand::M0),
];

#[derive(Clone, PartialEq)]
struct Registers(Vec<Content>);

impl Registers {
    /// Scalar registers hold arguments and the place of the workgroup, other vector registers nothing.
    fn at_entry() -> Registers {
        let mut all = vec![Content::Same; REGISTERS];
        let v0 = number(Operand::vgpr(0));
        all[v0..].fill(Content::Differs);
        all[v0] = Content::WorkItem;
        // Where scratch lies, for waves that have some.
        all[number(Operand::sgpr(102))..number(Operand::VCC)].fill(Content::Differs);
        Registers(all)
    }

    fn of(&self, register: Operand) -> Content {
        self.0[number(register)]
    }

    fn join(&mut self, other: &Registers) {
        self.0.iter_mut().zip(&other.0).for_each(|(one, &another)| *one = one.join(another));
    }

    /// All that an instruction reads, together.
    fn read(&self, inst: &Inst) -> Content {
        let mut content = None;
        let mut add = |of: Content| content = Some(content.map_or(of, |all: Content| all.join(of)));
        for at in registers(inst, |role| role != Role::Def) {
            add(self.0[at]);
        }
        if inst.operands.iter().any(|o| [Operand::VCCZ, Operand::EXECZ, Operand::SCC].contains(o)) {
            add(Content::Differs);
        }
        let reads = |set: Implicit| inst.op.info().reads.contains(set);
        if FLAGS.iter().any(|&(set, flag)| reads(set) && self.of(flag) != Content::Same) {
            add(Content::Differs);
        }
        content.unwrap_or(Content::Same)
    }

    fn execute(&mut self, inst: &Inst) {
        let result = self.result(inst);
        for at in registers(inst, |role| role != Role::Use) {
            self.0[at] = result;
        }
        let writes = |set: Implicit| inst.op.info().writes.contains(set);
        for (_, flag) in FLAGS.into_iter().filter(|&(set, _)| writes(set)) {
            self.0[number(flag)] = result;
        }
    }

    fn result(&self, inst: &Inst) -> Content {
        let info = inst.op.info();
        let told =
            matches!(info.meaning, Meaning::GetHardwareRegister | Meaning::ReadTime | Meaning::ReadRealTime);
        // What LDS holds may be of any wave.
        if told || matches!(info.unit, Unit::Lds | Unit::Flat) {
            return Content::Differs;
        }
        let mask = mask(inst);
        let of = |content: Content| match (content, mask) {
            (Content::WorkItem, Some(mask)) if mask & !LANE == 0 => Content::Same,
            (Content::WorkItem, Some(mask)) if mask & LANE == LANE => Content::WorkItem,
            (Content::Same, _) => Content::Same,
            (Content::WorkItem | Content::Differs, _) => Content::Differs,
        };
        of(self.read(inst))
    }
}

/// What `v_and_b32` leaves, if that stands in the instruction.
fn mask(inst: &Inst) -> Option<u32> {
    if inst.op != Opcode::VAndB32 {
        return None;
    }
    match inst.operands[1] {
        Operand::LITERAL => Some(inst.imm),
        mask => (0..=64).find(|&n| Operand::inline_integer(n) == Some(mask)).map(|n| n as u32),
    }
}

fn number(register: Operand) -> usize {
    register.number().expect("a physical register") as usize
}

/// Numbers of the registers that an instruction names in some roles.
fn registers(inst: &Inst, is_asked: impl Fn(Role) -> bool) -> impl Iterator<Item = usize> {
    let named = (0..inst.op.info().operands.len()).filter(move |&index| is_asked(inst.role(index)));
    named.flat_map(move |index| {
        let operand = inst.operands[index];
        let first = operand.number().filter(|_| !operand.is_constant());
        first
            .into_iter()
            .flat_map(move |first| (0..u32::from(inst.width(index))).map(move |n| (first + n) as usize))
    })
}

/// Stores to LDS that all waves make alike; none where it cannot be followed which waves execute what.
pub fn stores_of_all_waves(body: &MachineBody) -> BTreeSet<InstId> {
    let mut entries: SecondaryMap<BlockId, Option<Registers>> = SecondaryMap::new();
    entries[BlockId::new(0)] = Some(Registers::at_entry());
    let mut work = vec![BlockId::new(0)];
    let mut divided = false;
    while let Some(block) = work.pop() {
        let mut registers = entries[block].clone().expect("only reached blocks are walked");
        let range = body.blocks[block];
        for at in range.insts() {
            let inst = &body.insts[at].inst;
            let info = inst.op.info();
            divided |= match info.meaning {
                Meaning::Branch(BranchCondition::Always) => false,
                Meaning::Branch(condition) => {
                    registers.of(flag(condition)) != Content::Same && !skips_barriers_only(body, block)
                }
                _ => info.writes.contains(Implicit::EXEC) || writes_exec(inst) || leaves(info.meaning),
            };
            registers.execute(inst);
        }
        for &successor in range.successors.iter().flatten() {
            let mut joined = registers.clone();
            let entry = &mut entries[successor];
            entry.iter().for_each(|known| joined.join(known));
            if entry.as_ref() != Some(&joined) {
                *entry = Some(joined);
                work.push(successor);
            }
        }
    }
    let mut found = BTreeSet::new();
    for (block, entry) in entries.iter() {
        let Some(mut registers) = entry.clone().filter(|_| !divided) else { continue };
        for at in body.blocks[block].insts() {
            let inst = &body.insts[at].inst;
            let info = inst.op.info();
            let stores = info.unit == Unit::Lds && matches!(info.meaning, Meaning::Store(_));
            if stores && registers.read(inst) == Content::Same {
                found.insert(at);
            }
            registers.execute(inst);
        }
    }
    found
}

fn flag(condition: BranchCondition) -> Operand {
    match condition {
        BranchCondition::VccZero | BranchCondition::VccNotZero => Operand::VCC,
        BranchCondition::ExecZero | BranchCondition::ExecNotZero => Operand::EXEC,
        _ => Operand::SCC,
    }
}

/// True if what a branch may skip is the next block, and that only holds waves back.
fn skips_barriers_only(body: &MachineBody, block: BlockId) -> bool {
    let [Some(next), Some(target)] = body.blocks[block].successors else { return false };
    let skipped = body.blocks[next];
    let is_barrier = |at: InstId| body.insts[at].inst.op.info().meaning == Meaning::Barrier;
    skipped.end == body.blocks[target].start && skipped.insts().all(is_barrier)
}

fn writes_exec(inst: &Inst) -> bool {
    registers(inst, |role| role != Role::Use)
        .any(|at| at == number(Operand::EXEC) || at == number(Operand::EXEC) + 1)
}

/// Code that is not part of the body runs.
fn leaves(meaning: Meaning) -> bool {
    matches!(meaning, Meaning::Call | Meaning::SetPc | Meaning::SwapPc)
}
