//! What taking turns gains, and for which loads there is no register.

use bevy_ecs::prelude::*;

use super::super::products::operations::Operations;
use super::unsuitable::Unsuitable;
use crate::codegen::target::{DeviceModel, DeviceParameter};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::passes::schedule::apply::pressure;
use crate::passes::schedule::graph::node_costs::{NodeCosts, per_simd};
use crate::passes::schedule::graph::resources::Class;

/// Memory regions of a trip that runs quadrant by quadrant, and as many compute regions.
pub const REGIONS: usize = 4;

/// Clocks that the operations of an iteration take, by the costs of their instructions, for one half of the
/// waves where nothing else is said. A global load counts as one from idle memory, an LDS access as one in
/// the queue that a whole cluster makes.
pub(super) struct LoopWork {
    /// Matrix instructions of a SIMD.
    compute: u32,
    /// LDS reads and writes.
    reads: u32,
    writes: u32,
    /// The reads of each factor.
    factor_reads: [u32; 2],
    /// Loads straight into LDS, all of them and one of each wave.
    direct_loads: u32,
    direct_load: u32,
    global_latency: u32,
    /// Of a global load while all compute units load, at the greatest clock, at which it is the most clk.
    loaded_latency: u32,
    lds_latency: u32,
}

impl LoopWork {
    /// That of a loop whose factors' logical reads are `factors`, with halves of so many waves.
    pub(super) fn of(operations: &Operations, factors: [Entity; 2], half: u32) -> Result<LoopWork, Bug> {
        let (view, found) = (operations.view, operations.found);
        let device = DeviceModel::nearest(view.settings()?.target());
        let mut costs = NodeCosts::of(view, found)?;
        let mut work = LoopWork {
            compute: 0,
            reads: 0,
            writes: 0,
            factor_reads: [0; 2],
            direct_loads: 0,
            direct_load: 0,
            global_latency: device.count(DeviceParameter::MemoryLatency) as u32,
            loaded_latency: device.value(DeviceParameter::MemoryLatencyLoaded).value as u32,
            lds_latency: costs.latency_in_cluster(),
        };
        for node in found.body() {
            let (class, Some(cost)) = costs.cost(node)? else { continue };
            let clk = cost.served * per_simd(half);
            match class {
                Class::Mma => work.compute += clk,
                Class::ReadShared => {
                    work.reads += clk;
                    let logical = found.nodes[node].expansion.logical;
                    if let Some(side) = factors.iter().position(|read| *read == logical) {
                        work.factor_reads[side] += clk;
                    }
                }
                Class::WriteShared => work.writes += clk,
                Class::GlobalToShared => {
                    work.direct_loads += clk;
                    work.direct_load = clk;
                }
                Class::ReadGlobal | Class::WriteGlobal | Class::Valu | Class::Shuffle | Class::Free => {}
            }
        }
        Ok(work)
    }

    /// An iteration in turns: four epochs, each as long as its memory cluster or half of the matrix
    /// instructions.
    fn in_turns(&self, memory: [u32; 2]) -> u32 {
        let epoch = |memory: u32| (memory + self.lds_latency).max(self.compute / 2);
        2 * epoch(memory[0]) + 2 * epoch(memory[1])
    }

    /// In turns, with tiles that go through registers: loads have two epochs.
    pub(super) fn through_registers(&self) -> u32 {
        self.in_turns([self.reads, self.writes]).max(2 * self.global_latency)
    }

    /// The same where registers are left in which loads can wait: they have all four epochs.
    pub(super) fn loaded_early(&self) -> u32 {
        self.in_turns([self.reads, self.writes]).max(self.global_latency)
    }

    /// In turns, with tiles that are loaded straight into LDS and read in halves: loads have two epochs.
    pub(super) fn in_halves(&self, read_parts: [u32; 2]) -> u32 {
        let memory = match read_parts {
            [1, 1] => [self.reads + self.direct_loads, 0],
            _ => [self.reads / 2 + self.direct_loads, self.reads / 2],
        };
        self.in_turns(memory).max(2 * self.global_latency)
    }

    /// In turns, with tiles that are loaded straight into LDS: the loads of one factor are alone, but for the
    /// LDS writes of scales and `late` reads, and those of the other come after the other reads, and run
    /// beside them. They have all trips but one between two uses of a copy.
    pub(super) fn whole(&self, copies: u32, loads: [u32; 2], late: u32) -> u32 {
        let [alone, after_reads] = loads.map(|count| count * self.direct_load);
        let turns = self.in_turns([(self.reads - late).max(after_reads), self.writes + late + alone]);
        turns.max(self.global_latency / (copies.max(2) - 1))
    }

    /// In turns, quadrant by quadrant, where the halves of the first of these factors share registers. Writes
    /// fall into two regions.
    pub(super) fn in_quadrants(&self, sides: [usize; 2]) -> u32 {
        let [shared, kept] = sides.map(|side| self.half_of_reads(side));
        let scales = self.reads - self.factor_reads[0] - self.factor_reads[1];
        let writes = self.writes / 2;
        let epoch = |memory: u32| (memory + self.lds_latency).max(self.compute / REGIONS as u32);
        let regions = [shared + scales, kept, shared + writes, kept + writes];
        regions.into_iter().map(|memory| 2 * epoch(memory)).sum()
    }

    /// Copies of tiles in LDS with which loads, quadrant by quadrant, are over when their data are needed: as
    /// many trips later as there are copies, but for the region that reads and the one that waits.
    pub(super) fn copies_of_quadrants(&self) -> u32 {
        let region = (2 * self.compute / REGIONS as u32).max(1);
        (self.loaded_latency.div_ceil(region) + 2).div_ceil(REGIONS as u32)
    }

    /// The reads of half of a factor's tile.
    pub(super) fn half_of_reads(&self, side: usize) -> u32 {
        self.factor_reads[side] / 2
    }

    /// Copies of tiles that are read whole with which loads are over when their data are needed.
    pub(super) fn copies_that_hide_loads(&self) -> u32 {
        1 + self.loaded_latency.div_ceil((2 * self.compute).max(1)).max(1)
    }

    /// Whether loads that come together with reads, half a trip later than the others, take longer than they
    /// may with so many copies.
    pub(super) fn are_late_beside_reads(&self, copies: u32) -> bool {
        self.loaded_latency > (2 * copies).saturating_sub(3) * self.compute
    }

    /// Compares an iteration in turns with the LDS reads and matrix instructions of both halves one after the
    /// other.
    ///
    /// # Errors
    /// If it gains nothing.
    pub(super) fn gain(&self, turns: u32) -> Result<(), Unsuitable> {
        let together = (2 * self.reads + 2 * self.compute)
            .max(self.global_latency + 3 * self.lds_latency)
            .max(2 * self.direct_loads);
        if turns < together { Ok(()) } else { Err(Unsuitable::NoGain { turns, together }) }
    }
}

/// How many global loads of each factor have no register while all factors of a tile are in registers: first
/// those of the right factor. `loads` are the logical nodes of the two factors' loads.
pub(super) fn late_loads(operations: &Operations, loads: [Entity; 2]) -> Result<[u32; 2], Bug> {
    let mut all = 0;
    let (mut counts, mut registers) = ([0u32; 2], [0u32; 2]);
    for (node, own) in operations.body.iter().zip(operations.found.nodes.values()) {
        let is_read = matches!(node.class, Class::ReadShared | Class::ReadGlobal);
        if !is_read && !matches!(own.op, Op::IterArg(_)) {
            continue;
        }
        let width = own.registers;
        all += width;
        if let Some(side) = loads.iter().position(|load| *load == own.expansion.logical) {
            counts[side] += 1;
            registers[side] += width;
        }
    }
    let mut excess = all.saturating_sub(pressure::available(operations.view)?);
    let mut late = [0; 2];
    for side in [1, 0] {
        let each = (registers[side] / counts[side].max(1)).max(1);
        late[side] = excess.div_ceil(each).min(counts[side]);
        excess = excess.saturating_sub(late[side] * each);
    }
    Ok(late)
}
