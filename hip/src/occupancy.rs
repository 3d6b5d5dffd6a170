//! How many workgroups of a kernel a compute unit holds, by the chip's own limits.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use crate::error::{HipResult, invalid};
use crate::ffi::{Out, exports};
use crate::handles::Handle;
use crate::modules::LoadedFunction;
use crate::registration;
use crate::runtime::{Runtime, runtime};

/// Workgroups of a kernel that a compute unit holds.
fn workgroups(
    runtime: &Runtime,
    function: &LoadedFunction,
    block: u32,
    dynamic_lds: usize,
) -> HipResult<u32> {
    let kernel = function.metadata()?;
    let target = runtime.target.target();
    if block == 0 {
        return Err(invalid("the block has no work-items"));
    }
    if block > kernel.workgroup_size.max().min(target.max_workgroup_size) {
        return Ok(0);
    }
    let lds = u32::try_from(dynamic_lds).unwrap_or(u32::MAX).saturating_add(kernel.group_segment_fixed_size);
    if lds > target.max_lds_per_workgroup {
        return Ok(0);
    }
    let waves = block.div_ceil(target.wave_size);
    let fit = target.occupancy(kernel.vgpr_count, kernel.sgpr_count, lds, waves);
    Ok(fit.workgroups_per_compute_unit)
}

/// Workgroups of a kernel that the device holds at the same time.
///
/// # Errors
/// As [`workgroups`].
pub(crate) fn resident(
    runtime: &Runtime,
    function: &LoadedFunction,
    block: u32,
    dynamic_lds: usize,
) -> HipResult<u64> {
    let units = crate::properties::DeviceFacts::new(runtime.target, 0).attribute(63)?;
    Ok(u64::from(workgroups(runtime, function, block, dynamic_lds)?) * u64::try_from(units).unwrap_or(0))
}

/// The block with which a compute unit holds the most waves, and how many blocks fill the device.
fn best(
    runtime: &Runtime,
    function: &LoadedFunction,
    dynamic_lds: usize,
    most: c_int,
) -> HipResult<[c_int; 2]> {
    let target = runtime.target.target();
    let limit = match u32::try_from(most) {
        Ok(0) | Err(_) => target.max_workgroup_size,
        Ok(most) => most.min(target.max_workgroup_size),
    };
    let limit = limit.min(function.metadata()?.workgroup_size.max());
    let (mut waves, mut best) = (0, [0, 0]);
    for block in (target.wave_size..=limit).step_by(target.wave_size as usize) {
        let groups = workgroups(runtime, function, block, dynamic_lds)?;
        // Of equals the largest.
        if groups * block >= waves {
            (waves, best) = (groups * block, [block, groups]);
        }
    }
    let units = crate::properties::DeviceFacts::new(runtime.target, 0).attribute(63)?;
    Ok([best[1] as c_int * units, best[0] as c_int])
}

fn active(
    count: Out<c_int>,
    function: HipResult<Arc<LoadedFunction>>,
    block: c_int,
    lds: usize,
) -> HipResult {
    let block = u32::try_from(block).map_err(|_| invalid("the block has less than no work-items"))?;
    let function = function?;
    count.put(workgroups(runtime()?, &function, block, lds)? as c_int)
}

fn potential(
    grid: Out<c_int>,
    block: Out<c_int>,
    function: HipResult<Arc<LoadedFunction>>,
    lds: usize,
    most: c_int,
) -> HipResult {
    let function = function?;
    let [blocks, items] = best(runtime()?, &function, lds, most)?;
    grid.put(blocks)?;
    block.put(items)
}

fn of_host(function: u64) -> HipResult<Arc<LoadedFunction>> {
    registration::function(runtime()?, function)
}

fn of_module(function: Handle) -> HipResult<Arc<LoadedFunction>> {
    runtime()?.functions.get(function)
}

exports! {
    fn hipOccupancyMaxActiveBlocksPerMultiprocessor(count: Out<c_int>, f: u64, block: c_int, lds: usize) {
        active(count, of_host(f), block, lds)
    }
    fn hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<c_int>,
        f: u64,
        block: c_int,
        lds: usize,
        _flags: c_uint,
    ) {
        active(count, of_host(f), block, lds)
    }
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Out<c_int>,
        f: Handle,
        block: c_int,
        lds: usize,
    ) {
        active(count, of_module(f), block, lds)
    }
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<c_int>,
        f: Handle,
        block: c_int,
        lds: usize,
        _flags: c_uint,
    ) {
        active(count, of_module(f), block, lds)
    }
    fn hipOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>,
        block: Out<c_int>,
        f: u64,
        lds: usize,
        most: c_int,
    ) {
        potential(grid, block, of_host(f), lds, most)
    }
    fn hipModuleOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>,
        block: Out<c_int>,
        f: Handle,
        lds: usize,
        most: c_int,
    ) {
        potential(grid, block, of_module(f), lds, most)
    }
    fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>,
        block: Out<c_int>,
        f: Handle,
        lds: usize,
        most: c_int,
        _flags: c_uint,
    ) {
        potential(grid, block, of_module(f), lds, most)
    }
}
