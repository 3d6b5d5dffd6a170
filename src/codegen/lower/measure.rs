//! What nodes become, before loops are scheduled: the kernel is lowered as it was written, and each node gets
//! the costs of its instructions and what they read. Schedules change the order of nodes and hardly what
//! becomes of one.

use std::ops::Range;

use bevy_ecs::prelude::Entity;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{SecondaryMap, iter_entity_range};
use smallvec::SmallVec;

use super::lower_noting;
use super::lowered::Lowered;
use crate::codegen::isa::{Operand, size_in_bytes};
use crate::codegen::machine::interleave::{is_fixed, made_registers};
use crate::codegen::machine::register_parts::{PartAccess, RegisterPart, RegisterPartNumbers};
use crate::codegen::machine::{InstId, MachineBody, RegisterFile, as_copy};
use crate::codegen::target::{DeviceModel, InstructionCost, Target};
use crate::ir::node::Op;
use crate::ir::nodes;
use crate::passes::PassResult;
use crate::passes::facts::Settings;
use crate::passes::schedule::estimate::node_code::{CodeId, CodeOperand, NodeCode, NodeInstruction};
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
    let is_loop = |node: Entity| world.get::<Op>(node).is_some_and(|op| op.over_tiles().is_some());
    let mut writer = CodeWriter::new(&body, target);
    for (at, span) in spans.iter().enumerate() {
        let inner = spans[..at].iter().rev().take_while(|inner| inner.insts.start >= span.insts.start);
        match inner.clone().next().filter(|_| is_loop(span.node)) {
            Some(last) => {
                let first = writer.write(last.insts.end..span.insts.end);
                writer.code.end_loop(span.node, first);
                let body = inner.clone().last().map_or(last, |first| first).insts.start..span.insts.end;
                if !inner.clone().any(|inner| is_loop(inner.node)) {
                    writer.follow(body);
                }
            }
            None => {
                let first = writer.write(span.insts.clone());
                writer.code.enter(span.node, first);
            }
        }
    }
    let code = writer.code;
    world.entity_mut(root).insert(code);
    Ok(())
}

/// The instruction that has made what is in a part of a register, in one trip of a loop or the next.
#[derive(Copy, Clone, Default)]
struct PartMaker {
    id: PackedOption<CodeId>,
    trip: u32,
}

/// Writes the instructions of nodes, without copies, most of which do not stay.
struct CodeWriter<'a> {
    body: &'a MachineBody,
    target: Target,
    device: &'static DeviceModel,
    code: NodeCode,
    /// The instructions that have been written.
    ids: SecondaryMap<InstId, PackedOption<CodeId>>,
    parts: RegisterPartNumbers,
    makers: SecondaryMap<RegisterPart, PartMaker>,
}

impl<'a> CodeWriter<'a> {
    fn new(body: &'a MachineBody, target: Target) -> CodeWriter<'a> {
        let mut parts = RegisterPartNumbers::default();
        parts.number(body);
        CodeWriter {
            body,
            target,
            device: DeviceModel::nearest(target),
            code: NodeCode::default(),
            ids: SecondaryMap::with_capacity(body.insts.len()),
            parts,
            makers: SecondaryMap::new(),
        }
    }

    /// Writes instructions, and returns the number of the first.
    fn write(&mut self, insts: Range<InstId>) -> CodeId {
        let first = self.code.next();
        for id in iter_entity_range(insts) {
            let inst = &self.body.insts[id].inst;
            if as_copy(inst).is_none() {
                let only_vectors = || inst.operands.iter().all(|&operand| self.is_vector(operand));
                let cost = InstructionCost::of(self.device, self.target.arch, inst, only_vectors);
                self.ids[id] = self
                    .code
                    .push(NodeInstruction {
                        kind: cost.kind,
                        turns: cost.turns as u32,
                        bytes: size_in_bytes(inst) as u8,
                        registers: made_registers(self.body, inst),
                        is_fixed: is_fixed(inst),
                        operands: SmallVec::new(),
                    })
                    .into();
            }
        }
        first
    }

    fn is_vector(&self, operand: Operand) -> bool {
        match operand.as_virtual() {
            Some((register, _)) => self.body.registers[register].file == RegisterFile::Vgpr,
            None => operand == Operand::NONE,
        }
    }

    /// Follows results through the registers of a loop's body for two trips: in the second one instructions
    /// read what the first has left.
    fn follow(&mut self, insts: Range<InstId>) {
        let CodeWriter { body, code, ids, parts, makers, .. } = self;
        makers.clear();
        makers.resize(parts.count());
        for trip in 0..2 {
            for id in iter_entity_range(insts.clone()) {
                let inst = &body.insts[id];
                let Some(own) = ids[id].expand() else {
                    for [to, from] in parts.copied(std::slice::from_ref(inst)) {
                        makers[to] = makers[from];
                    }
                    continue;
                };
                parts.visit(&inst.inst, |part, access| {
                    let maker = &mut makers[part];
                    match access {
                        PartAccess::Write => *maker = PartMaker { id: own.into(), trip },
                        PartAccess::Read | PartAccess::Addend => {
                            if trip == 1
                                && let Some(from) = maker.id.expand()
                            {
                                let accumulates = access == PartAccess::Addend;
                                code.read(own, CodeOperand { from, trips: trip - maker.trip, accumulates });
                            }
                        }
                    }
                });
            }
        }
    }
}
