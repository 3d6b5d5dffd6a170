//! LDS writes of one tile that stand between matrix instructions, one beside each.
//!
//! A tile that is turned on its way into LDS takes many writes of few bytes, and one after the other they
//! keep a wave from its matrix instructions: each takes 8 clk and more to issue, and beside a matrix
//! instruction of 16 clk one of them costs nothing. So all but the first are put off until matrix
//! instructions follow, or anything else but a constant or a read of another buffer. Buffers that share
//! bytes of LDS have a barrier between their accesses, so a read of another buffer cannot meet what is put
//! off.
//!
//! Writes of a second tile do not join those that are put off: later reads would wait for all of them (a GEMM
//! of f16 on gfx90a whose first factor is turned takes 1500 clk a trip with modulo scheduling then, and 1476
//! otherwise).

use std::collections::VecDeque;

use bevy_ecs::prelude::*;

use crate::codegen::machine::{InstId, MachineBody, MachineInst};
use crate::index::{Neighbours, Stretches};

/// Writes that are put off.
#[derive(Default)]
pub(crate) struct LateWrites {
    /// The buffer that they write to.
    buffer: Option<Entity>,
    /// In their order.
    insts: VecDeque<MachineInst>,
}

impl LateWrites {
    /// True if none is put off.
    pub(crate) fn is_empty(&self) -> bool {
        self.insts.is_empty()
    }

    /// True if they write to this buffer.
    pub(crate) fn are_of(&self, buffer: Entity) -> bool {
        self.buffer == Some(buffer)
    }

    /// Puts off writes to a buffer, all but the first of the instructions of `body` from `first` on. Nothing
    /// else is put off at that time.
    pub(super) fn put_off(&mut self, body: &mut MachineBody, buffer: Entity, first: InstId) {
        let end = body.insts.next_key();
        let second = first.next().min(end);
        self.buffer = Some(buffer);
        self.insts.extend(body.insts.range(second..end));
        body.insts.truncate(second);
    }

    /// Appends one of them to `body`.
    pub(super) fn write_one(&mut self, body: &mut MachineBody) {
        body.insts.extend(self.insts.pop_front());
    }

    /// Appends all of them to `body`.
    pub(super) fn write_all(&mut self, body: &mut MachineBody) {
        body.insts.extend(self.insts.drain(..));
    }
}
