//! Waits, barriers and priorities that the kernel or its schedule asks for.

use bevy_ecs::prelude::*;

use super::OperationLayer;
use crate::codegen::isa::{Inst, Opcode, WaitCounts};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::machine::waits::BARRIER_WITHOUT_WAITS;
use crate::ir::node::*;

impl OperationLayer<'_> {
    pub(crate) fn synchronize(&mut self, node: Entity, control: Control) {
        match control {
            Control::WorkgroupBarrier => self.emitter.barrier(Some(node), BARRIER_WITHOUT_WAITS),
            Control::SetWavePriority(priority) => {
                self.emitter.push(Inst::new(Opcode::SSetprio, &[]).imm(u32::from(priority)));
            }
            // The order of the nodes is the order of the code.
            Control::SchedulingBarrier => {}
            Control::InterleaveByCost => self.emitter.note_interleaved(),
            // The region looks for it in front of such products.
            Control::SkipUnitFactors => {}
            Control::WaitForLoads(count) => {
                self.wait(WaitCounts { vm: count.min(WaitCounts::NONE.vm), ..WaitCounts::NONE });
            }
            Control::WaitForShared(count) => {
                self.wait(WaitCounts { lgkm: count.min(WaitCounts::NONE.lgkm), ..WaitCounts::NONE });
            }
            Control::ConditionalBarrier(condition) => self.conditional_barrier(node, condition),
        }
    }

    fn wait(&mut self, counts: WaitCounts) {
        self.emitter.push(Inst::new(Opcode::SWaitcnt, &[]).imm(counts.to_imm()));
    }

    /// A barrier in a block of its own, which the other waves jump over.
    fn conditional_barrier(&mut self, node: Entity, condition: WaveCondition) {
        let waves = self.kernel.geometry.wave_count();
        let bound = match condition.bound {
            WaveBound::Wave(number) => number,
            WaveBound::WavesOver(divisor) => waves / divisor.max(1),
        };
        // The opposite comparison jumps.
        let op = match condition.predicate {
            Predicate::Eq => Opcode::SCmpLgU32,
            Predicate::Ne => Opcode::SCmpEqU32,
            Predicate::Lt => Opcode::SCmpGeU32,
            Predicate::Le => Opcode::SCmpGtU32,
            Predicate::Gt => Opcode::SCmpLeU32,
            Predicate::Ge => Opcode::SCmpLtU32,
        };
        let wave = self.thread.wave;
        let wave = self.emitter.in_sgpr(wave);
        let (bound, literal) = Scalar::Const(i64::from(bound)).source();
        self.emitter.push(Inst::new(op, &[wave, bound]).imm(literal));
        let branch = self.emitter.branch_ahead(Opcode::SCbranchScc1);
        self.emitter.barrier(Some(node), BARRIER_WITHOUT_WAITS);
        let after = self.emitter.next_block(None);
        self.emitter.patch(branch, after);
    }
}
