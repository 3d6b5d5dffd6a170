//! Costs of instructions for a wave that is alone on its SIMD.

use crate::codegen::target::{
    CostKind, DeviceModel, DeviceParameter, LANES, LDS_PORTS, LdsKind, SIMDS, TURN, VectorKind,
};

/// The unit that an instruction needs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum IssueUnit {
    /// The matrix core.
    Matrix,
    /// The vector ALU.
    Vector,
    /// LDS.
    Lds,
    /// The way to the caches.
    Memory,
    /// None that matters.
    Other,
}

/// Number of units.
pub(crate) const ISSUE_UNITS: usize = IssueUnit::Other as usize + 1;

/// Times of an instruction in clk, counted from its issue.
#[derive(Copy, Clone, Debug)]
pub(crate) struct IssueCost {
    /// The unit that it needs.
    pub unit: IssueUnit,
    /// Until the wave issues the next instruction.
    pub held: u32,
    /// Until its unit takes the next one.
    pub busy: u32,
    /// For as long the units that all SIMDs share are taken by it in the long run, by a wave on each.
    pub served: u32,
    /// So long before its unit takes it a queue does.
    pub queued: u32,
    /// Until a vector instruction, and an access of memory, may follow a matrix instruction.
    pub blocks: [u32; 2],
    /// Until its result may be used, and until a matrix instruction may accumulate on it.
    pub results: [u32; 2],
}

/// Numbers of a device in the form in which costs are made of them.
#[derive(Copy, Clone, Debug)]
pub(crate) struct IssueRates {
    /// Clk for a dword per lane that a wave of each SIMD reads and writes in LDS.
    lds: [f64; 2],
    /// Accesses of LDS that a queue takes from a SIMD.
    queue: u32,
    /// Clk until data come from LDS to a wave that is alone, and from memory.
    latencies: [u32; 2],
    /// Clk between two vector memory instructions of a wave, whose path all SIMDs share, and between two
    /// loads to LDS in the long run.
    memory: u32,
    direct: u32,
    /// Bytes per clk from the caches to registers.
    memory_bytes: u32,
    /// The least clk that an access of LDS takes in the long run.
    least_lds: u32,
}

impl IssueRates {
    /// Those of a device.
    pub(crate) fn of(device: &DeviceModel) -> IssueRates {
        let clk = |parameter| device.count(parameter) as u32;
        let lds = [DeviceParameter::LdsPortRead, DeviceParameter::LdsPortWrite]
            .map(|port| f64::from(4 * LANES) * SIMDS as f64 / (f64::from(LDS_PORTS) * device.get(port)));
        IssueRates {
            lds,
            // Two SIMDs share it.
            queue: clk(DeviceParameter::LdsQueue) / 2,
            latencies: [DeviceParameter::LdsLatencyWide, DeviceParameter::LoadedLatency].map(clk),
            memory: clk(DeviceParameter::VectorInterval) * SIMDS as u32,
            direct: clk(DeviceParameter::DirectLds) * SIMDS as u32,
            memory_bytes: clk(DeviceParameter::VectorBytes),
            // Two SIMDs issue in turns.
            least_lds: 2 * clk(DeviceParameter::LdsPairInterval),
        }
    }

    /// The cost of an instruction.
    pub(crate) fn cost(&self, kind: &CostKind, turns: u64) -> IssueCost {
        let held = (TURN * turns) as u32;
        let plain = |unit, busy, result| IssueCost {
            unit,
            held,
            busy,
            served: busy,
            queued: 0,
            blocks: [0; 2],
            results: [result; 2],
        };
        let in_lds = |clk: f64, latency: u32| {
            let busy = clk as u32;
            IssueCost {
                queued: self.queue * busy,
                served: busy.max(self.least_lds),
                ..plain(IssueUnit::Lds, busy, latency + busy)
            }
        };
        let in_memory = |kind: VectorKind, bytes: u32| {
            let latency = if kind == VectorKind::Load { self.latencies[1] } else { 0 };
            let served = match kind {
                VectorKind::LoadToLds => self.direct,
                _ => self.memory.max(LANES * SIMDS as u32 * bytes / self.memory_bytes),
            };
            IssueCost { served, ..plain(IssueUnit::Memory, self.memory, latency) }
        };
        match *kind {
            CostKind::Valu { clk, .. } => {
                let clk = clk as u32;
                IssueCost { held: clk, ..plain(IssueUnit::Vector, clk, clk) }
            }
            CostKind::Matrix { occupancy, blocks, memory, result, accumulate, .. } => IssueCost {
                blocks: [blocks, memory].map(|clk| clk as u32),
                results: [result, accumulate].map(|clk| clk as u32),
                ..plain(IssueUnit::Matrix, occupancy as u32, 0)
            },
            CostKind::Lds { kind: LdsKind::Write, dwords } => {
                IssueCost { results: [0; 2], ..in_lds(self.lds[1] * f64::from(dwords), 0) }
            }
            CostKind::Lds { dwords, .. } => in_lds(self.lds[0] * f64::from(dwords), self.latencies[0]),
            CostKind::Vector { kind, bytes, .. } => in_memory(kind, bytes),
            CostKind::Nop { clk } | CostKind::Sleep { clk } => {
                IssueCost { held: held + clk as u32, ..plain(IssueUnit::Other, 0, 0) }
            }
            CostKind::Scalar
            | CostKind::ScalarMemory
            | CostKind::Branch
            | CostKind::Wait { .. }
            | CostKind::Barrier
            | CostKind::Priority { .. }
            | CostKind::End => plain(IssueUnit::Other, 0, held),
        }
    }
}
