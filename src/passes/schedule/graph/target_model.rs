//! The resource models of the chips.
//!
//! A cycle is a turn of four clocks, in which a SIMD issues for a wave; the model is one wave on its SIMD
//! while all four SIMDs of the compute unit run the same loop. What they share is modelled by a share for
//! each: an access occupies LDS or the path to global memory for its bytes divided by a quarter of the bytes
//! per clock that the compute unit moves. Several waves on a SIMD stretch all busy times alike and leave the
//! delays as they are, so the model asks for more overlap than they need.
//!
//! A class has one cost, so all accesses count as the widest ones, 16 bytes per lane, which tiles are made
//! of. Transcendental functions (four turns), and matrix instructions of f32 and f64, which run on the vector
//! units, cost more than the table says.
//!
//! The numbers are those of the device that stands for the chip ([`DeviceParameter`]), in clk and bytes.

use super::resources::{CLASSES, Class, Cost, RESOURCES, ResourceModel};
use crate::codegen::target::{DeviceModel, DeviceParameter, LDS_PORTS, SIMDS, TURN, Target};

/// Bytes of one access: 64 lanes of 16 bytes each.
const ACCESS: u32 = 64 * 16;
/// Bytes of an access with one register per lane.
const DWORDS: u32 = 64 * 4;

/// Turns for which an access of so many bytes occupies a path that the SIMDs share.
fn share(bytes: u32, rate: u32) -> u16 {
    (bytes * SIMDS as u32).div_ceil(rate * TURN as u32) as u16
}

fn turns(clocks: u32) -> u16 {
    clocks.div_ceil(TURN as u32) as u16
}

impl ResourceModel {
    /// The model of a chip for loops whose matrix instructions take that many passes; 0 if there are none.
    pub(crate) fn of_target(target: Target, mfma_passes: u16) -> ResourceModel {
        let device = DeviceModel::nearest(target);
        let of = |parameter| device.count(parameter) as u32;
        let read_rate = LDS_PORTS * of(DeviceParameter::LdsPortRead);
        let write_rate = LDS_PORTS * of(DeviceParameter::LdsPortWrite);
        let global_rate = of(DeviceParameter::VectorBytes);
        // A compromise between loads that wait and registers that wait: the latency of an idle memory would
        // be too long, that of an idle L2 too short.
        let global_delay = of(DeviceParameter::LoadedLatency);
        let write_delay = of(DeviceParameter::LdsWriteLatency);
        let passes = mfma_passes.max(1);
        let direct = target.lds_load_widths.first().map_or(4, |&bytes| bytes) * 64;
        let cost = |class: Class| -> (u16, [u16; RESOURCES]) {
            match class {
                Class::ReadGlobal => (turns(global_delay), [share(ACCESS, global_rate), 0, 0, 0, 0]),
                // Nothing waits for the data, and the next access to the same place comes much later.
                Class::WriteGlobal => (1, [share(ACCESS, global_rate), 0, 0, 0, 0]),
                Class::ReadShared => {
                    (turns(of(DeviceParameter::LdsLatencyWide)), [0, share(ACCESS, read_rate), 0, 0, 0])
                }
                Class::WriteShared => (turns(write_delay), [0, share(ACCESS, write_rate), 0, 0, 0]),
                // A load of one register per lane takes more than its bytes at the L1's rate, which wider
                // loads are assumed to have.
                Class::GlobalToShared => {
                    let least = turns(of(DeviceParameter::DirectLds) * SIMDS as u32);
                    let loading = share(direct, global_rate).max(least);
                    (turns(global_delay + write_delay), [loading, share(direct, write_rate), 0, 0, 0])
                }
                // A pass is a turn, and the next instruction with the same accumulator follows one turn later
                // (AMD matrix instruction calculator; 16.0 clk measured for four passes). Other instructions
                // wait some turns more (`MatrixResult`), which the machine's waits take care of. The
                // instruction takes the vector unit's issue for one turn (`MatrixWindowLoss`).
                Class::Mma => (passes, [0, 0, passes, 1, 0]),
                // Results are forwarded: dependent instructions follow turn by turn.
                Class::Valu => {
                    (turns(of(DeviceParameter::Valu)), [0, 0, 0, turns(of(DeviceParameter::Valu)), 0])
                }
                // Moves between lanes use the path of LDS without its banks: assumed to be reads of one
                // register, at the rate of any width.
                Class::Shuffle => {
                    (turns(of(DeviceParameter::LdsLatency)), [0, share(DWORDS, write_rate), 0, 0, 1])
                }
                Class::Free => (0, [0; RESOURCES]),
            }
        };
        let mut costs = [Cost { delay: 0, busy: [0; RESOURCES] }; CLASSES];
        for (row, (class, _)) in costs.iter_mut().zip(Class::NAMES) {
            let (delay, busy) = cost(class);
            *row = Cost { delay, busy };
        }
        ResourceModel { name: target.name, units: [1; RESOURCES], costs }
    }
}
