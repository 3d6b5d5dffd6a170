//! What accesses of global memory cost a wave: clk of the path between its registers and the caches, from the
//! table of the nearest device, as often as there are SIMDs, which share it. Lanes are taken in groups of 64
//! bytes, each of which takes a clk for every cache line in it (measured on MI210; time mode counts in the
//! same way).
//!
//! If the layout of a value would take many more instructions to access memory, or access it lane by lane
//! (transposes, narrow outputs), the access gets the best layout for the memory and the value is converted,
//! as long as the tile is small and both together cost less. Of a mapped access this is known where the last
//! coordinate is a dimension of the value, and each dimension is a part of some coordinate.

use crate::codegen::target::{DeviceModel, DeviceParameter, LANES, SIMDS};
use crate::ir::layout::{Dim, Layout, Source};
use crate::ir::node::Op;

use super::element_layouts::MAX_ACCESS_BYTES;

/// Bytes of the lanes that are taken together, and the most lanes.
const GROUP_BYTES: u32 = 64;
const GROUP_LANES: u32 = 16;

/// SIMDs that share the path.
const SHARING: f64 = SIMDS as f64;

/// clk of an instruction of `width` bytes for each lane, whose lanes access a run of bytes. Only loads are
/// known to be slow at 8 bytes.
pub(super) fn run_clocks(device: &DeviceModel, access: Op, width: u32) -> f64 {
    let rate = match width {
        8 if access.loads() => DeviceParameter::VectorBytesPair,
        _ => DeviceParameter::VectorBytes,
    };
    let bytes = f64::from(LANES * width) / device.get(rate);
    SHARING * bytes.max(device.get(DeviceParameter::VectorInterval))
}

/// clk of all accesses of elements of `bytes` in a layout; those along `inner` lie side by side in memory.
pub(super) fn access_clocks(
    device: &DeviceModel,
    access: Op,
    layout: &Layout,
    inner: Dim,
    bytes: u32,
) -> f64 {
    let width = (layout.contiguous_run(inner) * bytes).min(MAX_ACCESS_BYTES);
    let instructions =
        layout.extent(Source::Replica) * (layout.extent(Source::Register) * bytes).div_ceil(width);
    let line = device.count(DeviceParameter::L1Line) as u32;
    let together = (GROUP_BYTES / width).clamp(1, GROUP_LANES);
    // Lanes that differ along other dimensions are in different rows.
    let (mut rows, mut weight) = (0, 1);
    for mode in layout.of_source(Source::Lane) {
        if mode.dim.is_some_and(|dim| dim != inner) {
            rows |= weight * mode.extent - weight;
        }
        weight *= mode.extent;
    }
    let place = |lane: u32| {
        let mut weight = 1;
        let mut column = 0;
        for mode in layout.of_source(Source::Lane) {
            if mode.dim == Some(inner) {
                column += lane / weight % mode.extent * mode.stride;
            }
            weight *= mode.extent;
        }
        (lane & rows, column * bytes / line)
    };
    let begins = |lane: &u32| lane.is_multiple_of(together) || place(*lane) != place(lane - 1);
    let lines = (0..LANES).filter(begins).count() as f64;
    f64::from(instructions) * run_clocks(device, access, width).max(SHARING * lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_cost_more_than_rows() {
        let (m, n) = (Dim(0), Dim(1));
        let device = DeviceModel::MI300X;
        let rows = Layout::distribute(&[(m, 64), (n, 64)], 8, 64, 1).expect("small");
        // 64 elements of a lane in stores of 16 bytes, each 1024 bytes in eight rows.
        assert_eq!(access_clocks(device, Op::Write, &rows, n, 2), 4.0 * 8.0 * 16.0);
        // One by one, each in a line of its own.
        assert_eq!(access_clocks(device, Op::Write, &rows, m, 2), 4.0 * 64.0 * 64.0);
        // A dword of each lane, 16 lanes side by side.
        let squares = Layout::distribute(&[(m, 4), (n, 16)], 1, 64, 1).expect("small");
        assert_eq!(access_clocks(device, Op::Write, &squares, n, 4), 4.0 * 4.0);
    }
}
