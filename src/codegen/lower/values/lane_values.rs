//! Values that depend on the lane alone and are computed once, and registers of other lanes by them.

use std::collections::BTreeMap;

use super::ValueLayer;
use crate::codegen::isa::{Dpp, Inst, Modifiers, Opcode, Operand};
use crate::codegen::lower::arithmetic::lane_moves::shift;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::target::{LANES, LaneMove};
use crate::ir::layout::within_wave::LaneMap;

/// What depends on the lane alone, and is computed once.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum LaneValue {
    /// The address of the lane that a lane takes something from, as `ds_bpermute` has it.
    Source(LaneMap),
    /// One of two constants, by a bit of the lane number.
    Choice { bit: u32, constants: [u32; 2] },
}

/// Registers of other lanes that a piece of a value takes several elements from.
pub(crate) type MovedRegisters = BTreeMap<(Operand, LaneMove), Operand>;

impl ValueLayer<'_> {
    /// A register as each lane finds it in another lane.
    pub(crate) fn moved(&mut self, known: &mut MovedRegisters, from: Operand, way: LaneMove) -> Operand {
        if way == LaneMove::Stay {
            return from;
        }
        if let Some(&moved) = known.get(&(from, way)) {
            return moved;
        }
        let to = self.emitter.vgpr(1);
        match way {
            LaneMove::Stay => {}
            LaneMove::Quad(lanes) => self.moved_by_lanes([to, from], Dpp::quad_perm(lanes)),
            LaneMove::Shift(by) => self.moved_by_lanes([to, from], shift(by)),
            LaneMove::HalfRow => self.moved_by_lanes([to, from], shift(8)),
            LaneMove::QuarterRow => {
                // The second and the fourth four lanes of a row take it from the other side.
                self.moved_by_lanes([to, from], shift(4));
                let back = Dpp { bank_mask: 0b1010, ..Dpp::new(shift(-4)) };
                let moved = Inst::new(Opcode::VMovB32, &[to, from]).imm(back.to_imm());
                self.emitter.push(moved.modifiers(Modifiers::new().dpp()));
            }
            // Bits 4:0 of the offset are an AND mask, 9:5 an OR mask, 14:10 an XOR mask (CDNA3 ISA guide,
            // `DS_SWIZZLE_B32`). Bits of the lane number that are not kept are set by OR, as LLVM's assembler
            // does for the text of such an offset.
            LaneMove::Swizzle { and, xor } => {
                self.moved_by_swizzle(to, from, 1, (xor & and) << 10 | (xor & !and) << 5 | and);
            }
            LaneMove::Permute(map) => {
                let address = self.lane_value(LaneValue::Source(map));
                self.emitter.op(Opcode::DsBpermuteB32, &[to, address, from]);
            }
        }
        known.insert((from, way), to);
        to
    }

    /// One of two constants in each lane, by the one bit of `choosing` in its number.
    pub(crate) fn constant_by_lane(&mut self, constants: [u32; 2], choosing: u32) -> Operand {
        self.lane_value(LaneValue::Choice { bit: choosing.trailing_zeros(), constants })
    }

    fn lane_value(&mut self, value: LaneValue) -> Operand {
        if let Some(&(_, known)) = self.lane_values.iter().find(|known| known.0 == value) {
            return known;
        }
        let made = match value {
            LaneValue::Source(map) => self.source_address(&map),
            LaneValue::Choice { bit, constants } => {
                let [no, yes] = constants.map(|bits| self.vector_copy(Scalar::Const(i64::from(bits))));
                let (chosen, mask) = (self.emitter.vgpr(1), self.lanes_with_bit(bit));
                self.emitter.op(Opcode::VCndmaskB32, &[chosen, no, yes, mask]);
                chosen
            }
        };
        self.lane_values.push((value, made));
        made
    }

    /// Four times the number of the lane that each lane takes something from.
    fn source_address(&mut self, map: &LaneMap) -> Operand {
        if map.first != 0 && map.bits.iter().any(|&adds| adds != 0) {
            let others = self.lane_value(LaneValue::Source(LaneMap { first: 0, ..*map }));
            let first = Scalar::Const(i64::from(4 * map.first));
            return self.vop2(Opcode::VXorB32, first, Scalar::Reg(others));
        }
        // Bits of the number that move equally far move together.
        let reach = LANES.ilog2() as i32;
        let mut sum: Option<Operand> = None;
        for far in 1 - reach..reach {
            let moves = |at: &u32| {
                let to = *at as i32 + far;
                to >= 0 && map.bits[*at as usize] >> to & 1 == 1
            };
            let bits = (0..LANES.ilog2()).filter(moves).fold(0, |bits, at| bits | 1 << at);
            if bits == 0 {
                continue;
            }
            let lane = Scalar::Reg(self.thread.lane);
            let part = match bits {
                _ if bits == LANES - 1 => self.thread.lane,
                _ => self.vop2(Opcode::VAndB32, Scalar::Const(bits.into()), lane),
            };
            // In bytes.
            let far = far + 2;
            let part = match far {
                0 => part,
                1.. => self.vop2(Opcode::VLshlrevB32, Scalar::Const(far.into()), Scalar::Reg(part)),
                _ => self.vop2(Opcode::VLshrrevB32, Scalar::Const((-far).into()), Scalar::Reg(part)),
            };
            sum = Some(match sum {
                Some(sum) => self.vop2(Opcode::VOrB32, Scalar::Reg(sum), Scalar::Reg(part)),
                None => part,
            });
        }
        sum.unwrap_or_else(|| self.vector_copy(Scalar::Const(i64::from(4 * map.first))))
    }
}
