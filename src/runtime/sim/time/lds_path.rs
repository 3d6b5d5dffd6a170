//! LDS with the addresses of lanes: the banks that an access keeps busy, in front of the ports.

use super::super::execute::Footprint;
use super::banks::Grouping;
use super::patterns::Patterns;
use crate::codegen::target::{DeviceModel, LdsCourse, LdsDemand, LdsKind, LdsPorts, Target};

/// LDS of a compute unit.
#[derive(Debug)]
pub(super) struct LdsPath {
    target: Target,
    pub ports: LdsPorts,
    patterns: Patterns<(u32, u32)>,
}

impl LdsPath {
    pub(super) fn new(device: &DeviceModel, steps: usize) -> LdsPath {
        LdsPath { target: device.target, ports: LdsPorts::new(device), patterns: Patterns::new(steps) }
    }

    /// Serves an instruction of step `step` issued at `clk` by a SIMD; returns its course, and the clk that
    /// bank conflicts have added.
    pub(super) fn access(
        &mut self,
        clk: u64,
        simd: usize,
        (kind, dwords): (LdsKind, u32),
        step: usize,
        footprints: &[Footprint],
    ) -> (LdsCourse, u32) {
        let (mut bank_clk, mut ideal) = (0, 0);
        // Whether four dwords are aligned matters.
        let phase = if dwords == 4 { 16 } else { 4 };
        let grouping = Grouping::of(self.target, kind, dwords);
        for (number, f) in footprints.iter().enumerate().filter(|(_, f)| f.lanes != 0) {
            let compute = || grouping.busy(f.lanes, &f.address, dwords);
            let (busy, least) = *self.patterns.cost(step, number, f, phase, compute);
            bank_clk += busy;
            ideal += least;
        }
        let demand = LdsDemand { kind, dwords, accesses: footprints.len(), bank_clk };
        (self.ports.serve(clk, simd, demand), bank_clk - ideal.min(bank_clk))
    }
}
