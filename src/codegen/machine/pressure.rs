//! How many registers of each file are alive at each position, and where most are.

use super::allocation_error::Peak;
use super::body::MachineBody;
use super::liveness::{Liveness, Position};
use crate::index::Neighbours;
use cranelift_entity::{EntityRef, SecondaryMap};

/// Bits per file in a sum over all files.
const FIELD: u32 = 20;

/// Working memory.
#[derive(Default)]
pub(super) struct Pressure {
    /// Change by position, one field per file.
    changes: SecondaryMap<Position, i64>,
}

impl Pressure {
    /// Peaks of SGPRs, VGPRs and AGPRs.
    pub(super) fn peaks(&mut self, body: &MachineBody, liveness: &Liveness) -> [Peak; 3] {
        self.changes.clear();
        self.changes.resize(Position::end(body).next().next().index());
        for (id, register) in body.registers.iter() {
            for segment in liveness.of(id) {
                let weight = i64::from(segment.parts.count_ones()) << (FIELD * register.file as u32);
                self.changes[segment.start] += weight;
                self.changes[segment.end.next()] -= weight;
            }
        }
        let (mut now, mut peaks, mut at) = (0, [0; 3], [Position::START; 3]);
        for (position, change) in self.changes.iter() {
            now += change;
            if *change == 0 {
                continue;
            }
            for file in 0..3 {
                let registers = (now >> (FIELD * file as u32) & ((1 << FIELD) - 1)) as u32;
                if registers > peaks[file] {
                    (peaks[file], at[file]) = (registers, position);
                }
            }
        }
        [0, 1, 2].map(|file| Peak::at(body, at[file], peaks[file]))
    }
}

impl Peak {
    /// The peak at a position of the liveness analysis.
    pub(super) fn at(body: &MachineBody, position: Position, registers: u32) -> Peak {
        let inst = position.inst();
        let source = body.insts.get(inst).map_or(u32::MAX, |i| i.source);
        Peak { registers, inst, source }
    }
}
