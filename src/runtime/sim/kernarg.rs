//! The kernel argument segment and the dispatch packet of a launch.

use crate::codegen::object::ArgumentKind;

use super::launch_config::LaunchConfig;
use super::module::LoadedKernel;

/// Largest kernel argument segment.
const LARGEST: u32 = 1 << 20;

/// The kernel argument segment: the bytes that the caller gives, then zeros, with the values that the
/// metadata asks the runtime for (LLVM, "User Guide for AMDGPU Backend", "Code Object V5 Metadata", hidden
/// kernel arguments).
pub(super) fn fill(
    kernel: &LoadedKernel,
    config: &LaunchConfig,
    given: &[u8],
    queue: u64,
) -> Result<Vec<u8>, String> {
    let listed = kernel.metadata.as_ref().map_or(0, |m| m.kernarg_segment_size);
    let size = kernel.descriptor.kernarg_size.max(listed);
    if size > LARGEST {
        return Err(format!("{size} bytes of kernel arguments"));
    }
    let mut segment = given.to_vec();
    segment.resize(given.len().max(size as usize), 0);
    let arguments = kernel.metadata.as_ref().map_or(&[][..], |m| &m.arguments);
    for argument in arguments {
        let start = argument.offset as usize;
        let end = start.saturating_add(argument.size as usize);
        match &argument.kind {
            ArgumentKind::Other(kind) if kind.starts_with("hidden_") => {
                let value = hidden(kind, config, queue).to_le_bytes();
                if let Some(place) = segment.get_mut(start..end) {
                    place.fill(0);
                    let bytes = place.len().min(value.len());
                    place[..bytes].copy_from_slice(&value[..bytes]);
                }
            }
            _ if end > given.len() => {
                let name = &argument.name;
                return Err(format!("argument `{name}` ends at byte {end}, {} bytes are given", given.len()));
            }
            _ => {}
        }
    }
    Ok(segment)
}

/// Value of a hidden argument; what the simulator lacks (buffers of `printf`, other queues) is zero.
fn hidden(kind: &str, config: &LaunchConfig, queue: u64) -> u64 {
    match kind {
        "hidden_grid_dims" => return 3,
        "hidden_dynamic_lds_size" => return config.dynamic_lds.into(),
        "hidden_shared_base" => return super::wave::SHARED_APERTURE.into(),
        "hidden_private_base" => return super::wave::PRIVATE_APERTURE.into(),
        "hidden_queue_ptr" => return queue,
        "hidden_hostcall_buffer" => return config.host_calls,
        "hidden_heap_v1" => return config.heap,
        "hidden_multigrid_sync_arg" => return config.grid_sync,
        _ => {}
    }
    let Some((kind, axis)) = kind.rsplit_once('_') else { return 0 };
    let Some(axis) = ["x", "y", "z"].iter().position(|&name| name == axis) else { return 0 };
    match kind {
        // Partial workgroups do not count.
        "hidden_block_count" => u64::from(config.grid[axis] - u32::from(config.remainder[axis] != 0)),
        "hidden_group_size" => config.block[axis].into(),
        "hidden_remainder" => config.remainder[axis].into(),
        "hidden_global_offset" => config.global_offset[axis],
        _ => 0,
    }
}

/// The AQL dispatch packet (HSA Platform System Architecture Specification, "AQL kernel dispatch packet").
pub(super) fn packet(
    kernel: &LoadedKernel,
    config: &LaunchConfig,
    [lds, private]: [u32; 2],
    kernarg: u64,
) -> [u8; 64] {
    let mut packet = [0; 64];
    let mut put = |at: usize, bytes: &[u8]| packet[at..at + bytes.len()].copy_from_slice(bytes);
    // Kernel dispatch, three dimensions.
    put(0, &[2, 0, 3, 0]);
    for (axis, &block) in config.block.iter().enumerate() {
        let missing = if config.remainder[axis] == 0 { 0 } else { block - config.remainder[axis] };
        let items = config.grid[axis].wrapping_mul(block).wrapping_sub(missing);
        put(4 + 2 * axis, &(block as u16).to_le_bytes());
        put(12 + 4 * axis, &items.to_le_bytes());
    }
    put(24, &private.to_le_bytes());
    put(28, &lds.to_le_bytes());
    put(32, &kernel.descriptor_address.to_le_bytes());
    put(40, &kernarg.to_le_bytes());
    packet
}
