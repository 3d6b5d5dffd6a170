//! What nodes become, before loops are scheduled: the kernel is lowered as it was written, and each node gets
//! the costs of its instructions. Schedules change the order of nodes and hardly what becomes of one.

use smallvec::SmallVec;

use super::lower_noting;
use super::lowered::{Lowered, NodeSpan};
use crate::codegen::isa::{Operand, VReg, size_in_bytes};
use crate::codegen::machine::{MachineBody, MachineInst, RegisterFile, as_copy};
use crate::codegen::target::{CostKind, DeviceModel, InstructionCost, LdsKind};
use crate::index::Stretches;
use crate::ir::node::Op;
use crate::ir::nodes;
use crate::passes::PassResult;
use crate::passes::facts::Settings;
use crate::passes::schedule::estimate::node_code::{NodeCode, NodeInstruction};
use crate::passes::workspace::{self, Workspace};

/// Runs `body` with a workspace from the pool, in which schedules can be compared.
pub fn with_workspace<R>(body: impl FnOnce(&mut Workspace) -> R) -> R {
    workspace::with_workspace(|workspace| {
        workspace.measure = Some(measure);
        body(workspace)
    })
}

/// Lowers the kernel as it stands and enters what its nodes become into its [`NodeCode`].
///
/// # Errors
/// Kernels that the target or this back end cannot compile.
fn measure(workspace: &mut Workspace) -> PassResult {
    let mut body = MachineBody::default();
    let noting = Lowered { nodes: Some(Vec::new()), ..Lowered::default() };
    let spans = lower_noting(workspace, &mut body, noting)?.nodes.unwrap_or_default();
    let (world, root) = (&mut workspace.world, workspace.root);
    let target = nodes::fact::<Settings>(world, root, "a kernel without settings")?.0.target();
    let device = DeviceModel::nearest(target);
    let is_vector = |&operand: &Operand| match operand.as_virtual() {
        Some((register, _)) => body.registers[register].file == RegisterFile::Vgpr,
        None => operand == Operand::NONE,
    };
    let costs = |inst: &MachineInst| {
        let only_vectors = || inst.inst.operands.iter().all(is_vector);
        InstructionCost::of(device, target.arch, &inst.inst, only_vectors)
    };
    let mut code = NodeCode::default();
    let mut before = None::<&NodeSpan>;
    for span in &spans {
        let is_loop = world.get::<Op>(span.node).is_some_and(|op| matches!(op, Op::Iterate(_)));
        // The end of a trip follows the last node of the body.
        match before.filter(|last| is_loop && last.insts.start >= span.insts.start) {
            Some(last) => {
                let tail = body.insts.range(last.insts.end..span.insts.end);
                code.end_loop(span.node, instructions(tail, costs));
            }
            None => code.enter(span.node, instructions(body.insts.range(span.insts.clone()), costs)),
        }
        before = Some(span);
    }
    world.entity_mut(root).insert(code);
    Ok(())
}

/// The instructions without copies, most of which do not stay, each with the LDS instruction that it waits
/// for.
fn instructions<'a>(
    insts: &'a [MachineInst],
    costs: impl Fn(&MachineInst) -> InstructionCost + 'a,
) -> impl Iterator<Item = NodeInstruction> + 'a {
    let mut results: SmallVec<[(VReg, u32); 8]> = SmallVec::new();
    let stays = insts.iter().filter(|inst| as_copy(&inst.inst).is_none());
    stays.zip(0u32..).map(move |(inst, number)| {
        let InstructionCost { kind, turns, .. } = costs(inst);
        // The first operand is a result, or an address.
        let mut operands = inst.inst.operands[1..].iter().filter_map(|operand| Some(operand.as_virtual()?.0));
        let is_result = |register: VReg| results.iter().rposition(|result| result.0 == register);
        let after = operands.find_map(is_result).map(|at| number - results[at].1);
        if let CostKind::Lds { kind: LdsKind::Read | LdsKind::Permute, .. } = kind
            && let Some((register, _)) = inst.inst.operands[0].as_virtual()
        {
            results.push((register, number));
        }
        NodeInstruction { kind, turns: turns as u32, bytes: size_in_bytes(&inst.inst) as u8, after }
    })
}
