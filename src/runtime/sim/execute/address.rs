//! Addresses of vector memory instructions: buffer descriptors, global, flat and scratch forms.
//!
//! Range checking of buffers (CDNA3 ISA guide, section 9.1.5 "Buffer addressing", "Range checking"): a raw buffer (stride
//! zero) is checked per dword: the access of a component is out of range if its offset (instruction offset plus the
//! offset from the VGPR, without the scalar offset) plus its size exceeds `num_records - scalar offset`. A structured
//! buffer (stride not zero) is out of range if the index is not below `num_records`. Loads from out of range are zero,
//! stores are dropped.

use crate::codegen::isa::Format;

use super::super::error::{FaultKind, Stopped};
use super::super::program::{Place, Step};
use super::super::wave::{LANES, Wave};

/// Which memory the addresses mean.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Space {
    /// Device memory.
    Device,
    /// Device memory, LDS or private memory, by the upper half of each address.
    Flat,
    /// Private memory of the lane.
    Private,
}

/// Where each lane's access goes.
pub(super) struct Targets {
    /// Which memory.
    pub space: Space,
    /// First byte.
    pub address: [u64; LANES],
    /// Number of leading components (dwords, or the one smaller element) that are in range.
    pub valid: [u8; LANES],
}

/// Which operands say what.
pub(super) struct Roles {
    /// Vector address.
    pub address: usize,
    /// Data of a store or atomic.
    pub data: usize,
    /// Scalar base, or descriptor (its scalar offset is the next operand).
    pub base: usize,
}

/// Operands of loads.
pub(super) fn load_roles(format: Format) -> Roles {
    match format {
        Format::MubufLds => Roles { address: 0, data: 0, base: 1 },
        _ => Roles { address: 1, data: 0, base: 2 },
    }
}

/// Operands of stores and of atomics without result.
pub(super) fn store_roles(format: Format) -> Roles {
    match format {
        Format::Mubuf => Roles { address: 1, data: 0, base: 2 },
        _ => Roles { address: 0, data: 1, base: 2 },
    }
}

/// Operands of atomics with a result (which is operand 0).
pub(super) fn atomic_return_roles(format: Format) -> Roles {
    match format {
        Format::MubufRtn => Roles { address: 1, data: 0, base: 2 },
        _ => Roles { address: 1, data: 2, base: 3 },
    }
}

/// Addresses of an access of `components` components of `bytes` bytes each.
pub(super) fn targets(
    w: &Wave,
    s: &Step,
    roles: &Roles,
    components: u8,
    bytes: u32,
) -> Result<Targets, Stopped> {
    if s.format.is_mubuf() {
        return buffer(w, s, roles, components, bytes);
    }
    let imm = i64::from(s.imm as i32) as u64;
    let (address, base) = (s.operands[roles.address], s.operands[roles.base]);
    let (space, address) = match s.format {
        Format::Scratch => {
            let base = if base == Place::None { 0 } else { w.scalar(base) };
            let lanes = if address == Place::None { [0; LANES] } else { w.lanes(address) };
            // Private offsets are 32 bits wide.
            let offset = base.wrapping_add(imm as u32);
            (Space::Private, lanes.map(|a| u64::from(a.wrapping_add(offset))))
        }
        Format::Flat => (Space::Flat, w.lanes_wide(address).map(|a| a.wrapping_add(imm))),
        _ if base == Place::None => (Space::Device, w.lanes_wide(address).map(|a| a.wrapping_add(imm))),
        _ => {
            let base = w.scalar_wide(base).wrapping_add(imm);
            (Space::Device, w.lanes(address).map(|a| base.wrapping_add(a.into())))
        }
    };
    Ok(Targets { space, address, valid: [components; LANES] })
}

fn buffer(w: &Wave, s: &Step, roles: &Roles, components: u8, bytes: u32) -> Result<Targets, Stopped> {
    let descriptor = s.operands[roles.base];
    let word = |n: usize| w.scalar(descriptor.offset(n));
    let base = u64::from(word(0)) | u64::from(word(1) & 0xffff) << 32;
    let (stride, records) = (u64::from(word(1) >> 16 & 0x3fff), u64::from(word(2)));
    if word(1) >> 31 != 0 || word(3) >> 23 & 1 != 0 {
        return Err(Stopped::wave(FaultKind::Unsupported("swizzled or lane-indexed buffers")));
    }
    let scalar_offset = u64::from(w.scalar(s.operands[roles.base + 1]));
    let address = s.operands[roles.address];
    let zero = [0; LANES];
    let (index, offset) = match (s.modifiers.has_idxen(), s.modifiers.has_offen()) {
        (false, false) => (zero, zero),
        (false, true) => (zero, w.lanes(address)),
        (true, false) => (w.lanes(address), zero),
        (true, true) => (w.lanes(address), w.lanes(address.offset(1))),
    };
    let offset: [u64; LANES] = offset.map(|o| u64::from(o) + u64::from(s.imm));
    let limit = records.saturating_sub(scalar_offset);
    let valid = if stride == 0 {
        offset.map(|o| {
            // Sizes are powers of two; a division per lane would cost more than the access.
            let left = limit.saturating_sub(o) >> bytes.trailing_zeros();
            left.min(components.into()) as u8
        })
    } else {
        index.map(|i| if u64::from(i) < records { components } else { 0 })
    };
    let start = base + scalar_offset;
    let address = std::array::from_fn(|l| start + offset[l] + u64::from(index[l]) * stride);
    Ok(Targets { space: Space::Device, address, valid })
}
