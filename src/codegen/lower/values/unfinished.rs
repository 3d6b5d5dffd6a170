//! Loaded values that are not finished: narrow loads fill registers of their own, which are joined in front
//! of the first use, so that loads overlap.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::ValueLayer;
use crate::codegen::isa::{Inst, Opcode, Operand};

/// Registers that single memory instructions fill, and the instructions that join them.
pub(crate) struct LoadedParts {
    pub(crate) registers: SmallVec<[Operand; 16]>,
    pub(crate) joins: Vec<Inst>,
}

/// The most joins of narrow loads that may wait, so that loads overlap without filling the registers.
const MOST_UNFINISHED: usize = 24;

impl ValueLayer<'_> {
    /// Registers for pieces of `part` bytes of a value of `total` bytes in `value`, and the instructions that
    /// join them.
    pub(crate) fn parts(&mut self, value: Operand, total: u32, part: u32) -> LoadedParts {
        let count = total / part;
        if part >= 4 {
            let registers = (0..count).map(|at| value.offset(at * part / 4)).collect();
            return LoadedParts { registers, joins: Vec::new() };
        }
        let per_register = (4 / part).min(count);
        let mut parts = LoadedParts { registers: SmallVec::new(), joins: Vec::new() };
        for dword in 0..total.div_ceil(4) {
            let dst = value.offset(dword);
            if per_register == 1 {
                parts.registers.push(dst);
                continue;
            }
            let pieces: SmallVec<[Operand; 4]> = (0..per_register).map(|_| self.emitter.vgpr(1)).collect();
            let mut pending = pieces.clone();
            let mut shift = part * 8;
            // Neighbours join to pairs, pairs to quadruples.
            while pending.len() > 1 {
                let last = pending.len() == 2;
                pending = pending
                    .chunks(2)
                    .map(|pair| {
                        let joined = if last { dst } else { self.emitter.vgpr(1) };
                        let amount = Operand::constant(shift);
                        let operands = [joined, pair[1], amount, pair[0]];
                        parts.joins.push(Inst::new(Opcode::VLshlOrB32, &operands));
                        joined
                    })
                    .collect();
                shift *= 2;
            }
            parts.registers.extend(pieces);
        }
        parts
    }

    /// The same where each element of `bytes` bytes that is loaded is `repeats` elements of the value.
    pub(crate) fn repeated_parts(
        &mut self,
        value: Operand,
        total: u32,
        part: u32,
        [bytes, repeats]: [u32; 2],
    ) -> LoadedParts {
        let count = total / (part * repeats);
        let registers: SmallVec<[Operand; 16]> =
            (0..count).map(|_| self.emitter.vgpr(part.div_ceil(4))).collect();
        let mut joins = Vec::new();
        // The register and the byte in it that a byte of the value is.
        let source = |at: u32| {
            let byte = at / (bytes * repeats) * bytes + at % bytes;
            (registers[(byte / part) as usize].offset(byte % part / 4), byte % part % 4)
        };
        for dword in 0..total.div_ceil(4) {
            let places = 4 * dword..(4 * dword + 4).min(total);
            let (first, last) = (source(places.start).0, source(places.end - 1).0);
            // Bytes of the second operand, those of the first one from 4 on, and zero (ISA, V_PERM_B32).
            let mut selector = 0x0c0c_0c0c;
            for (at, place) in places.enumerate() {
                let (register, byte) = source(place);
                let chosen = if register == first { byte } else { 4 + byte };
                selector = selector & !(0xff << (8 * at)) | chosen << (8 * at);
            }
            let selector = self.constant_sgpr(selector);
            joins.push(Inst::new(Opcode::VPermB32, &[value.offset(dword), last, first, selector]));
        }
        LoadedParts { registers, joins }
    }

    /// Notes instructions that finish the value of `node` before its first use. When too many registers wait
    /// for that, the values loaded first are finished now.
    pub(crate) fn finish_later(&mut self, node: Entity, joins: Vec<Inst>) {
        if joins.is_empty() {
            return;
        }
        self.places.unfinished[node.index_u32() as usize] = joins;
        self.places.finishing.push_back(node);
        let mut waiting: usize =
            self.places.finishing.iter().map(|n| self.places.unfinished[n.index_u32() as usize].len()).sum();
        while waiting > MOST_UNFINISHED
            && self.places.finishing.len() > 1
            && let Some(first) = self.places.finishing.pop_front()
        {
            waiting -= self.places.unfinished[first.index_u32() as usize].len();
            self.finish(first);
        }
    }

    /// Emits the remaining instructions for the value of `node`.
    pub(crate) fn finish(&mut self, node: Entity) {
        for inst in std::mem::take(&mut self.places.unfinished[node.index_u32() as usize]) {
            self.emitter.push(inst);
        }
    }

    /// Emits what remains for all values. What follows may be left out or repeated, and a value is finished
    /// once for all of its uses.
    pub(crate) fn finish_all(&mut self) {
        while let Some(node) = self.places.finishing.pop_front() {
            self.finish(node);
        }
    }

    /// Forgets what would finish values that nothing uses any more.
    pub(crate) fn drop_unfinished(&mut self) {
        while let Some(first) = self.places.finishing.pop_front() {
            self.places.unfinished[first.index_u32() as usize].clear();
        }
    }
}
