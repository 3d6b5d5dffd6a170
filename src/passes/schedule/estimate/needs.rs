//! For how long a trip of a workgroup takes each unit: no order of its instructions is faster than the
//! longest of these times.

use super::load_path::l2_share;
use super::program::{LoadWork, TripProgram, UnitWork};

use crate::codegen::target::{DeviceModel, DeviceParameter, LANES, LDS_PORTS, LdsKind, SIMDS};
use crate::passes::schedule::apply::choice::{TripBound, TripNeeds};

/// A trip that takes this much longer than its longest need waits for something else.
const LATENCY: f64 = 1.1;

/// The needs of a trip that so many waves of a workgroup run, while so many compute units are busy.
pub(crate) fn needs(program: &TripProgram, waves: u32, busy_units: u32, device: &DeviceModel) -> TripNeeds {
    let (mut matrix, mut vector, mut read, mut written, mut loaded) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let bytes = |dwords: u32| f64::from(4 * LANES * dwords);
    for instruction in &program.instructions {
        match instruction.work {
            UnitWork::Matrix(work) => matrix += work.occupancy as f64,
            UnitWork::Vector(work) => vector += work.clk as f64,
            UnitWork::Lds { kind: LdsKind::Write, dwords } => written += bytes(dwords),
            UnitWork::Lds { kind: LdsKind::Read | LdsKind::Atomic | LdsKind::Permute, dwords } => {
                read += bytes(dwords);
            }
            UnitWork::Load(LoadWork { bytes, lines, .. }) => loaded += f64::from(LANES * bytes * lines),
            UnitWork::LoadToLds(LoadWork { bytes, lines, .. }) => {
                loaded += f64::from(LANES * bytes * lines);
                written += f64::from(LANES * bytes);
            }
            UnitWork::Turns(_) | UnitWork::Store(_) | UnitWork::Control(_) => {}
        }
    }
    let waves = f64::from(waves);
    let port = |parameter| f64::from(LDS_PORTS) * device.get(parameter) / waves;
    let [reads, writes] = [(read, DeviceParameter::LdsPortRead), (written, DeviceParameter::LdsPortWrite)]
        .map(|(bytes, parameter)| bytes / port(parameter));
    let [matrix, vector] = [matrix, vector].map(|clk| clk * waves / SIMDS as f64);
    let lds = f64::max(reads, writes);
    let had = l2_share(busy_units, device);
    let fastest = if matrix > 0.0 { matrix } else { vector.max(lds) };
    let bytes = loaded * waves;
    let asked = if fastest > 0.0 { bytes / fastest } else { 0.0 };
    TripNeeds {
        matrix: matrix as u32,
        vector: vector as u32,
        lds: lds as u32,
        loads: (bytes / had) as u32,
        asked: (1000.0 * asked) as u32,
        had: (1000.0 * had) as u32,
    }
}

/// What bounds a trip of so many clk with such needs.
pub(crate) fn bound(needs: &TripNeeds, clk: f64) -> TripBound {
    let needs = [
        (TripBound::Matrix, needs.matrix),
        (TripBound::Vector, needs.vector),
        (TripBound::Lds, needs.lds),
        (TripBound::Loads, needs.loads),
    ];
    let mut longest = needs[0];
    for need in needs {
        if need.1 > longest.1 {
            longest = need;
        }
    }
    if clk > LATENCY * f64::from(longest.1) { TripBound::Latency } else { longest.0 }
}
