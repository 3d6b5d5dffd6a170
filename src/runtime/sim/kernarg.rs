//! The kernel argument segment and the dispatch packet of a launch.

use crate::codegen::object::ArgumentKind;

use super::module::LoadedKernel;
use super::start::LaunchConfig;

/// Largest kernel argument segment.
const LARGEST: u32 = 1 << 20;

/// The kernel argument segment: what the caller gives, then zeros, with the values that the metadata asks the runtime for
/// (LLVM, "User Guide for AMDGPU Backend", "Code Object V5 Metadata", hidden kernel arguments).
pub(super) fn fill(kernel: &LoadedKernel, config: &LaunchConfig, given: &[u8]) -> Result<Vec<u8>, String> {
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
                let value = hidden(kind, config).to_le_bytes();
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

/// Value of a hidden argument; what the simulator has no use for is zero.
fn hidden(kind: &str, config: &LaunchConfig) -> u64 {
    let ([gx, gy, gz], [bx, by, bz]) = (config.grid, config.block);
    u64::from(match kind {
        "hidden_block_count_x" => gx,
        "hidden_block_count_y" => gy,
        "hidden_block_count_z" => gz,
        "hidden_group_size_x" => bx,
        "hidden_group_size_y" => by,
        "hidden_group_size_z" => bz,
        "hidden_grid_dims" => 3,
        "hidden_dynamic_lds_size" => config.dynamic_lds,
        "hidden_shared_base" => super::wave::SHARED_APERTURE,
        "hidden_private_base" => super::wave::PRIVATE_APERTURE,
        _ => 0,
    })
}

/// The AQL dispatch packet (HSA Platform System Architecture Specification, "AQL kernel dispatch packet").
pub(super) fn packet(kernel: &LoadedKernel, config: &LaunchConfig, lds: u32, kernarg: u64) -> [u8; 64] {
    let mut packet = [0; 64];
    let mut put = |at: usize, bytes: &[u8]| packet[at..at + bytes.len()].copy_from_slice(bytes);
    // Kernel dispatch, three dimensions.
    put(0, &[2, 0, 3, 0]);
    for (axis, (&grid, &block)) in config.grid.iter().zip(&config.block).enumerate() {
        put(4 + 2 * axis, &(block as u16).to_le_bytes());
        put(12 + 4 * axis, &grid.wrapping_mul(block).to_le_bytes());
    }
    put(24, &kernel.descriptor.private_segment_fixed_size.to_le_bytes());
    put(28, &lds.to_le_bytes());
    put(32, &kernel.descriptor_address.to_le_bytes());
    put(40, &kernarg.to_le_bytes());
    packet
}
