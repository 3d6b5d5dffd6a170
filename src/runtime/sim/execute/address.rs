//! Addresses of vector memory instructions: buffer descriptors, global, flat and scratch forms.
//!
//! Range checking of buffers (CDNA3 ISA guide, section 9.1.5 "Buffer addressing", "Range checking"): a raw
//! buffer is checked per dword: the access of a component is out of range if its offset (instruction offset
//! plus the offset from the VGPR, without the scalar offset) plus its size exceeds `num_records - scalar
//! offset`. A structured buffer is out of range if the index is not below `num_records`. From gfx9 on a
//! buffer is structured if it has a stride and the instruction an index; without an index `num_records`
//! counts bytes (LLVM, IntrinsicsAMDGPU.td, raw and struct buffer intrinsics). Loads from out of range are
//! zero, stores are dropped.
//!
//! Further rules are those that were compared with a gfx950 (ROCm/rocm-systems, pull requests 10928 and
//! 11240): the sum of VGPR and instruction offset wraps at 32 bits before the scalar one is added; a
//! descriptor that adds the lane's number (ADD_TID_ENABLE) has no range check, and it alone can be swizzled.

use crate::codegen::isa::{Format, MAX_OPERANDS};

use super::super::error::{FaultKind, Stopped};
use super::super::program::{OperandPlace, Step};
use super::super::wave::{LANES, Wave};
use super::private;

/// Which memory the addresses mean.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AddressedMemory {
    /// Device memory.
    Device,
    /// Device memory, LDS or private memory, by the upper half of each address.
    Flat,
    /// Private memory of the lane.
    Private,
}

/// Where the access of each lane goes.
pub(super) struct Targets {
    /// Which memory.
    pub space: AddressedMemory,
    /// First byte.
    pub address: [u64; LANES],
    /// Number of leading components (dwords, or the one smaller element) that are in range.
    pub valid: [u8; LANES],
    /// Bytes from one component to the next: more than a dword in swizzled buffers.
    pub step: u64,
}

/// Bytes from one component to the next where they lie side by side.
pub(super) const CONTIGUOUS: u64 = 4;

impl Targets {
    /// First byte of component `index` of lane `l`.
    #[inline(always)]
    pub(super) fn component(&self, l: usize, index: usize) -> u64 {
        self.address[l].wrapping_add(self.step * index as u64)
    }

    /// The same where all components of a lane are in range or none is.
    #[must_use]
    pub(super) fn whole(mut self, components: u8) -> Targets {
        self.valid.iter_mut().filter(|valid| **valid != components).for_each(|valid| *valid = 0);
        self
    }
}

/// Which operand has which role.
pub(super) struct OperandRoles {
    /// Vector address.
    pub address: usize,
    /// Data of a store or atomic.
    pub data: usize,
    /// Scalar base, or descriptor (its scalar offset is the next operand).
    pub base: usize,
}

/// Operands of loads.
pub(super) fn load_roles(format: Format) -> OperandRoles {
    match format {
        Format::MubufLds => lds_roles(),
        _ => OperandRoles { address: 1, data: 0, base: 2 },
    }
}

/// Operands of loads to LDS.
pub(super) fn lds_roles() -> OperandRoles {
    OperandRoles { address: 0, data: 0, base: 1 }
}

/// Operands of stores from LDS, which have no vector address.
pub(super) fn from_lds_roles() -> OperandRoles {
    OperandRoles { address: MAX_OPERANDS - 1, data: 0, base: 0 }
}

/// Operands of stores and of atomics without result.
pub(super) fn store_roles(format: Format) -> OperandRoles {
    match format {
        Format::Mubuf | Format::Mtbuf => OperandRoles { address: 1, data: 0, base: 2 },
        _ => OperandRoles { address: 0, data: 1, base: 2 },
    }
}

/// Operands of atomics with a result (which is operand 0).
pub(super) fn atomic_return_roles(format: Format) -> OperandRoles {
    match format {
        Format::MubufRtn => OperandRoles { address: 1, data: 0, base: 2 },
        _ => OperandRoles { address: 1, data: 2, base: 3 },
    }
}

/// Addresses of an access of `components` components of `bytes` bytes each.
pub(super) fn targets(
    w: &Wave,
    s: &Step,
    roles: &OperandRoles,
    components: u8,
    bytes: u32,
) -> Result<Targets, Stopped> {
    if s.format.is_mubuf() {
        return buffer(w, s, roles, components, bytes);
    }
    let imm = i64::from(s.imm as i32) as u64;
    let (address, base) = (s.operands[roles.address], s.operands[roles.base]);
    let (space, address) = match s.format {
        Format::Scratch | Format::ScratchLds => {
            let base = if base == OperandPlace::None { 0 } else { w.scalar(base) };
            let lanes = if address == OperandPlace::None { [0; LANES] } else { w.lanes(address) };
            // Private offsets are 32 bits wide.
            let offset = base.wrapping_add(imm as u32);
            (AddressedMemory::Private, lanes.map(|a| u64::from(a.wrapping_add(offset))))
        }
        Format::Flat | Format::FlatRtn => (AddressedMemory::Flat, wide_addresses(w, address, imm)),
        _ if base == OperandPlace::None => (AddressedMemory::Device, wide_addresses(w, address, imm)),
        _ => {
            let base = w.scalar_wide(base).wrapping_add(imm);
            let mut addresses = [base; LANES];
            match address {
                OperandPlace::Row(row) => {
                    let offsets = addresses.iter_mut().zip(&w.rows[usize::from(row)]);
                    offsets.for_each(|(address, &offset)| *address = base.wrapping_add(offset.into()));
                }
                _ => addresses.fill(base.wrapping_add(w.scalar(address).into())),
            }
            (AddressedMemory::Device, addresses)
        }
    };
    Ok(Targets { space, address, valid: [components; LANES], step: CONTIGUOUS })
}

/// Addresses in pairs of registers. A loop instead of a map of an array, which is not always inlined.
#[inline(always)]
fn wide_addresses(w: &Wave, address: OperandPlace, imm: u64) -> [u64; LANES] {
    let mut addresses = w.lanes_wide(address);
    addresses.iter_mut().for_each(|address| *address = address.wrapping_add(imm));
    addresses
}

/// Elements of this many bytes stay together in a swizzled buffer; gfx9 has no other (LLVM,
/// SIISelLowering.cpp, getScratchRsrcWords23).
const ELEMENT: u64 = 4;

fn buffer(w: &Wave, s: &Step, roles: &OperandRoles, components: u8, bytes: u32) -> Result<Targets, Stopped> {
    let descriptor = s.operands[roles.base];
    let word = |n: usize| w.scalar(descriptor.offset(n));
    let base = u64::from(word(0)) | u64::from(word(1) & 0xffff) << 32;
    let (mut stride, records) = (u64::from(word(1) >> 16 & 0x3fff), u64::from(word(2)));
    let adds_lane = word(3) >> 23 & 1 != 0;
    let swizzled = adds_lane && word(1) >> 31 != 0;
    let scalar_offset = u64::from(w.scalar(s.operands[roles.base + 1]));
    let address = s.operands[roles.address];
    let zero = [0; LANES];
    let (index, offset) = match (s.modifiers.has_idxen(), s.modifiers.has_offen()) {
        (false, false) => (zero, zero),
        (false, true) => (zero, w.lanes(address)),
        (true, false) => (w.lanes(address), zero),
        (true, true) => (w.lanes(address), w.lanes(address.offset(1))),
    };
    let mut index = index.map(u64::from);
    if adds_lane {
        // The data format holds more bits of the stride (CDNA3 ISA guide, table "Buffer resource
        // descriptor").
        stride |= u64::from(word(3) >> 15 & 0xf) << 14;
        (0..LANES).for_each(|l| index[l] += l as u64);
    }
    let offset: [u64; LANES] = offset.map(|o| u64::from(o.wrapping_add(s.imm)));
    let limit = records.saturating_sub(scalar_offset);
    let start = base + scalar_offset;
    let valid = if adds_lane {
        [components; LANES]
    } else if stride != 0 && s.modifiers.has_idxen() {
        index.map(|i| if i < records { components } else { 0 })
    } else if components == 1 {
        offset.map(|o| u8::from(o + u64::from(bytes) <= limit))
    } else {
        offset.map(|o| {
            // Several components are dwords; a division per lane would cost more than the access.
            let left = limit.saturating_sub(o) >> 2;
            left.min(components.into()) as u8
        })
    };
    if swizzled {
        let lanes = 8 << (word(3) >> 21 & 3);
        return swizzle(w, BufferSwizzle { start, stride, lanes }, &index, &offset, valid);
    }
    let address = std::array::from_fn(|l| start + offset[l] + index[l] * stride);
    Ok(Targets { space: AddressedMemory::Device, address, valid, step: CONTIGUOUS })
}

/// What addresses in a swizzled buffer are made from.
struct BufferSwizzle {
    start: u64,
    stride: u64,
    /// Indices whose elements of the same number lie side by side.
    lanes: u64,
}

/// Addresses in a swizzled buffer (CDNA3 ISA guide, "Swizzled buffer addressing"); those in the window of
/// private memory become private ones.
fn swizzle(
    w: &Wave,
    buffer: BufferSwizzle,
    index: &[u64; LANES],
    offset: &[u64; LANES],
    valid: [u8; LANES],
) -> Result<Targets, Stopped> {
    let BufferSwizzle { start, stride, lanes } = buffer;
    let device: [u64; LANES] = std::array::from_fn(|l| {
        let group = index[l] / lanes * stride + offset[l] / ELEMENT * ELEMENT;
        start + group * lanes + index[l] % lanes * ELEMENT + offset[l] % ELEMENT
    });
    let step = ELEMENT * lanes;
    if private::through_window(start).is_none() {
        return Ok(Targets { space: AddressedMemory::Device, address: device, valid, step });
    }
    let exec = w.exec();
    let mut address = [0; LANES];
    for l in (0..LANES).filter(|&l| exec >> l & 1 != 0 && valid[l] != 0) {
        match private::through_window(device[l]) {
            Some((owner, byte)) if owner == l && lanes == LANES as u64 => address[l] = byte,
            _ => {
                let what = FaultKind::Unsupported("a buffer that reaches scratch of another lane");
                return Err(Stopped::lane(l, what));
            }
        }
    }
    Ok(Targets { space: AddressedMemory::Private, address, valid, step: CONTIGUOUS })
}
