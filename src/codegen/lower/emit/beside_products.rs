//! Scalar instructions that prepare the next trip of a loop, moved between the last matrix instructions of
//! this one.
//!
//! A matrix instruction keeps the matrix core busy for longer than its wave needs to issue it (16 clk and 4
//! for `v_mfma_f32_16x16x16_f16`), and a scalar one between two of them costs nothing. After the last one it
//! stands before the first LDS reads of the next trip. A few may stand there: in ping-pong the clks are
//! better spent there than between matrix instructions (AMD's tutorials on Gluon for gfx950, attention: 24
//! idle clk at the head of memory clusters gain 1 %; a loop of 256 x 256 x 64 on MI300X takes 4128 clk in the
//! time model with its three there, 4136 clk with none). Those of buffers with three copies are too many.

use smallvec::SmallVec;

use super::emitter::Emitter;
use crate::codegen::isa::{Format, Opcode};
use crate::codegen::machine::{InstId, MachineInst, RegisterFile};
use crate::index::Stretches;
use cranelift_entity::iter_entity_range;

impl Emitter<'_> {
    /// Moves the instructions from `first` to the end of the block, which write scalar registers and SCC,
    /// between the matrix instructions before them, as far as nothing else stands between them: one beside
    /// each, because a second one may have to wait for scalar instructions of other waves.
    pub(crate) fn move_beside_products(&mut self, first: InstId) {
        if self.keeps_nodes() {
            return;
        }
        let end = self.body.insts.next_key();
        let mut wanted = iter_entity_range(first..end).len();
        let start = self.body.blocks.last().map_or(first, |(_, block)| block.start);
        let mut from = first;
        for id in iter_entity_range(start..first).rev() {
            let inst = &self.body.insts[id];
            if wanted == 0 || !self.may_be_passed(inst) {
                break;
            }
            if is_product(inst) {
                (from, wanted) = (id, wanted - 1);
            }
        }
        let passed: SmallVec<[MachineInst; 64]> = SmallVec::from_slice(self.body.insts.range(from..first));
        let mut counts: SmallVec<[MachineInst; 8]> = SmallVec::from_slice(self.body.insts.range(first..end));
        counts.reverse();
        let mut order: SmallVec<[MachineInst; 64]> = SmallVec::new();
        for inst in passed {
            order.push(inst);
            if is_product(&inst) {
                order.extend(counts.pop());
            }
        }
        order.extend(counts.into_iter().rev());
        self.body.insts.range_mut(from..end).copy_from_slice(&order);
    }

    /// Whether scalar instructions that write general registers and SCC may stand before this one as well.
    fn may_be_passed(&self, inst: &MachineInst) -> bool {
        let op = inst.inst.op;
        // Most copies of carried values will not stay.
        let copies_vectors = op == Opcode::VMovB32
            && inst.inst.operands.iter().all(|&operand| self.file(operand) == RegisterFile::Vgpr);
        copies_vectors || matches!(op, Opcode::SBarrier | Opcode::SSetprio) || is_product(inst)
    }
}

pub(crate) fn is_product(inst: &MachineInst) -> bool {
    matches!(inst.inst.op.info().format, Format::Mai | Format::MaiScaled)
}
