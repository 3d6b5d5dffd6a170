//! After which matrix instructions of an iteration its memory operations come.
//!
//! Measured kernels of AMD lose most where reads, writes and loads stand in clumps, and run best with one LDS
//! read per 32 clk of matrix instructions on gfx942 and per 16 on gfx950, which is what LDS serves four SIMDs
//! in, one LDS write in as many as it takes, and one global load per 64, with the matrix instructions that
//! are left over where waves wait for each other (ROCm/gfx950-gluon-tutorials, `gemm/gfx942/intra_wave`,
//! `gemm/intra_wave/a16w16`).

use bevy_ecs::prelude::*;

use super::super::products::operations::Operations;
use super::HALVES;
use crate::codegen::target::{DeviceModel, DeviceParameter};
use crate::ir::control::MAX_LOADS;
use crate::ir::nodes::Bug;
use crate::passes::schedule::graph::node_costs::{NodeCosts, per_simd};
use crate::passes::schedule::graph::resources::Class;

/// The most copies of tiles in LDS.
const MOST_COPIES: u32 = 3;

/// Places among the matrix instructions of an iteration, counted from its first one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Spacing {
    /// Matrix instructions from one LDS read to the next.
    pub reads: u32,
    /// After which matrix instruction the next iteration's first half is read.
    pub first_read: u32,
    /// Matrix instructions from one global load to the next.
    pub loads: u32,
    /// After which matrix instruction loads begin.
    pub first_load: u32,
    /// How tiles come into LDS.
    pub moves: Moves,
}

/// How tiles come into LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Moves {
    /// By global loads and LDS writes.
    ThroughRegisters {
        /// Matrix instructions from one LDS write to the next.
        writes: u32,
        /// After which matrix instruction writes begin.
        first_write: u32,
    },
    /// By loads straight into LDS.
    Direct {
        /// Copies of the tiles in LDS.
        copies: u32,
        /// Loads that may be under way when the next iteration is read.
        under_way: u32,
    },
}

/// Operations of a wave in an iteration.
pub(super) struct WaveWork {
    /// Matrix instructions.
    products: u32,
    /// LDS reads of a half.
    reads: u32,
    writes: u32,
    loads: u32,
}

impl WaveWork {
    pub(super) fn of(operations: &Operations, mma: Entity, factors: &[[Entity; 3]; 2]) -> WaveWork {
        let count = |role: usize| factors.iter().map(|of| operations.count(of[role])).sum::<u32>();
        let (reads, writes, loads) = (count(0) / HALVES, count(1), count(2));
        WaveWork { products: operations.count(mma), reads, writes, loads }
    }

    /// LDS reads and matrix instructions of half an iteration.
    pub(super) fn of_a_half(&self) -> (u32, u32) {
        (self.reads, self.products / HALVES)
    }
}

/// What operations take, in matrix instructions of a wave.
pub(super) struct Paces {
    read: u32,
    write: u32,
    load: u32,
    /// From an LDS read to its data.
    latency: u32,
    /// From a global load to its data while all compute units load.
    loaded_latency: u32,
}

impl Paces {
    /// LDS serves all waves of the workgroup in turn, and so does the vector cache; waves of a SIMD share its
    /// matrix core as they share the rest.
    pub(super) fn of(operations: &Operations) -> Result<Paces, Bug> {
        let (view, found) = (operations.view, operations.found);
        let device = DeviceModel::nearest(view.settings()?.target());
        let mut costs = NodeCosts::of(view, found)?;
        let [mut product, mut read, mut write, mut load] = [0; 4];
        for node in found.body() {
            let (class, Some(cost)) = costs.cost(node)? else { continue };
            match class {
                Class::Mma => product = cost.served.max(product),
                Class::ReadShared => read = cost.served.max(read),
                Class::WriteShared => write = cost.served.max(write),
                Class::ReadGlobal | Class::GlobalToShared => load = cost.served.max(load),
                Class::WriteGlobal | Class::Valu | Class::Shuffle | Class::Free => {}
            }
        }
        let products = |clk: u32| clk.div_ceil(product.max(1)).max(1);
        // At the greatest clock, at which a latency is the most clk.
        let loaded_latency = device.value(DeviceParameter::MemoryLatencyLoaded).value as u32;
        let per_simd = per_simd(view.waves()?);
        let [latency, loaded_latency] =
            [costs.latency_in_cluster(), loaded_latency].map(|clk| products(clk.div_ceil(per_simd)));
        Ok(Paces {
            read: products(read),
            write: products(write),
            load: products(load),
            latency,
            loaded_latency,
        })
    }

    /// Copies of tiles with which loads are over when their data are needed, a trip for each but one; at most
    /// three, because more only make the pipeline longer.
    pub(super) fn copies_that_hide_loads(&self, work: &WaveWork) -> u32 {
        (1 + self.loaded_latency.div_ceil(work.products.max(1))).clamp(2, MOST_COPIES)
    }
}

impl Spacing {
    /// Tiles that go through registers: reads of the second half, LDS writes of the next iteration and reads
    /// of its first half come one after the other, with the matrix instructions that are left over in equal
    /// parts after each, where waves wait for LDS and for each other. Loads begin with the writes, whose
    /// registers they take.
    pub(super) fn through_registers(work: &WaveWork, paces: &Paces) -> Spacing {
        let &WaveWork { products, reads, writes, .. } = work;
        let fits = |read: u32, write: u32| 2 * reads * read + writes * write <= products;
        let (read, write) = match fits(paces.read, paces.write) {
            true => (paces.read, paces.write),
            // All of LDS's time is taken; nothing is gained by keeping to its pace.
            false => (1, 1),
        };
        let left = products.saturating_sub(2 * reads * read + writes * write);
        let first_write = reads * read + left / 3;
        // The registers of the first half are in use until the second one begins.
        let first_read = (first_write + writes * write + left / 3).max(products / HALVES);
        let moves = Moves::ThroughRegisters { writes: write, first_write };
        Spacing { reads: read, first_read, loads: paces.load, first_load: first_write + 1, moves }
    }

    /// Tiles that are loaded straight into LDS: loads begin when the tile whose place they take has been
    /// read, and are spread over the rest of the iteration. The next one is read as late as LDS allows.
    pub(super) fn straight_to_lds(work: &WaveWork, paces: &Paces, copies: u32) -> Spacing {
        let &WaveWork { products, reads, loads, .. } = work;
        let read = if 2 * reads * paces.read <= products { paces.read } else { 1 };
        let pause = paces.latency.min(products.saturating_sub(2 * reads * read) / 2);
        let first_load = reads * read + pause;
        let first_read = products.saturating_sub(reads * read + pause).max(products / HALVES);
        let load = (products.saturating_sub(first_load) / loads.max(1)).max(1);
        let before = first_read.saturating_sub(first_load).div_ceil(load).min(loads);
        let moves =
            Moves::Direct { copies, under_way: (before + (copies - 2) * loads).min(MAX_LOADS as u32) };
        Spacing { reads: read, first_read, loads: load, first_load, moves }
    }
}
