//! The costs of the steps of a program: those of their instructions, with registers and places of code.

use smallvec::SmallVec;

use super::super::program::{OperandPlace, Program, Step};
use crate::codegen::isa::{Inst, Meaning, Unit};
use crate::codegen::target::{
    CODE_LINE, CostKind, DeviceModel, DeviceParameter, InstructionCost, VectorKind,
};

/// Vector registers from one on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Rows {
    pub first: u16,
    pub count: u16,
}

impl Rows {
    #[inline]
    pub(super) fn overlaps(self, other: Rows) -> bool {
        self.first < other.first + other.count && other.first < self.first + self.count
    }
}

/// One step of the program, as the model sees it.
#[derive(Clone, Debug)]
pub(super) struct StepCost {
    /// The cost of its instruction.
    pub instruction: InstructionCost,
    /// Eight bytes at 4 mod 8.
    pub misaligned: bool,
    /// First and last line of code that hold it.
    pub lines: [u64; 2],
    /// Vector registers that it reads or writes; for a matrix instruction without result and addend.
    pub rows: SmallVec<[Rows; 4]>,
    /// Result of a matrix instruction.
    pub result: Option<Rows>,
    /// Addend of a matrix instruction.
    pub addend: Option<Rows>,
    /// Identity of the opcode: results are forwarded between equal ones.
    pub opcode: u32,
    /// Where `s_memtime` writes the clock.
    pub clock_to: Option<OperandPlace>,
    /// Target of a branch.
    pub target: u32,
}

impl StepCost {
    /// True of matrix instructions and of what stores: hardly any address or branch depends on them, so that
    /// they are left out where only these are looked for.
    pub(super) fn moves_no_address(&self) -> bool {
        use VectorKind::{Atomic, Store};
        match self.instruction.kind {
            CostKind::Vector { kind, .. } => matches!(kind, Store | Atomic),
            kind => matches!(kind, CostKind::Matrix { .. }),
        }
    }
}

/// Costs of all steps. `instruction` gives the decoded instruction of a step.
pub(super) fn costs(
    program: &Program,
    device: &DeviceModel,
    instruction: impl Fn(usize) -> Option<Inst>,
) -> Vec<StepCost> {
    program
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| cost(program, device, step, instruction(index).as_ref()))
        .collect()
}

fn cost(program: &Program, device: &DeviceModel, step: &Step, inst: Option<&Inst>) -> StepCost {
    let address = program.address + u64::from(step.offset);
    let is_row = |place: &OperandPlace| matches!(place, OperandPlace::Row(_) | OperandPlace::None);
    let only_vectors = || step.operands.iter().all(is_row);
    let instruction = inst.map_or(InstructionCost::NOTHING, |inst| {
        InstructionCost::of(device, program.arch, inst, only_vectors)
    });
    let mut cost = StepCost {
        instruction,
        misaligned: step.bytes == 8 && address % 8 == 4,
        lines: [address / CODE_LINE, (address + u64::from(step.bytes.max(1)) - 1) / CODE_LINE],
        rows: SmallVec::new(),
        result: None,
        addend: None,
        opcode: inst.map_or(0, |inst| inst.op as u32),
        clock_to: None,
        target: step.target,
    };
    let Some(inst) = inst else { return cost };
    let info = inst.op.info();
    let rows = |index: usize| {
        let first = step.operands.get(index)?.row()? as u16;
        Some(Rows { first, count: inst.width(index).into() })
    };
    if let CostKind::Matrix { sparse, .. } = instruction.kind {
        // Operands are D, A, B, C, or D (which is C too), A, B, index.
        cost.result = rows(0);
        cost.addend = if sparse { rows(0) } else { rows(3) };
        let sources = (1..info.operands.len()).filter(|&index| sparse || index != 3);
        cost.rows.extend(sources.filter_map(rows));
    } else {
        cost.rows.extend((0..info.operands.len()).filter_map(rows));
    }
    if let (Unit::Smem, Meaning::ReadTime | Meaning::ReadRealTime) = (info.unit, info.meaning) {
        cost.clock_to = Some(step.operands[0]);
    }
    if cost.misaligned {
        cost.instruction.used.mark(DeviceParameter::MisalignedRun);
    }
    cost
}
