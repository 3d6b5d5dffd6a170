//! Private memory of lanes, and the window of device addresses through which buffer descriptors and scalar
//! memory access it.
//!
//! A wave has its private memory to itself, so all waves see theirs through the same window. Inside, dword
//! `n` of lane `l` is dword `64 n + l`: the swizzle of the private segment's buffer descriptor maps an offset
//! in this way (LLVM, "User Guide for AMDGPU Backend", "Private Segment Buffer").

use crate::codegen::isa::Arch;

use super::super::error::{FaultKind, MemoryAccess, Stopped};
use super::super::wave::{LANES, Wave};

/// First address of the window.
pub(in super::super) const SCRATCH_WINDOW: u64 = 1 << 46;
/// What a kernel adds to the address that all its waves are given. Not 0, so that a kernel that forgets it,
/// or its carry, does not find its scratch.
pub(in super::super) const WAVE_OFFSET: u32 = 1 << 16;
/// The address that all waves are given.
pub(in super::super) const SCRATCH_OF_WAVES: u64 = SCRATCH_WINDOW - WAVE_OFFSET as u64;
/// FLAT_SCRATCH_LO; the other half is the next register.
pub(super) const FLAT_SCRATCH: usize = 102;
/// The logarithm of the window's size in bytes.
const WINDOW_BITS: u32 = 36;
/// Bytes of one dword of all lanes.
const SLICE: u64 = 4 * LANES as u64;

/// Buffer descriptor of private memory at an address: swizzled, with the lane as index, of any size.
pub(in super::super) fn private_descriptor(address: u64) -> [u32; 4] {
    const SWIZZLE: u32 = 1 << 31;
    const LANES_OF_INDEX: u32 = 3 << 21;
    const ADD_LANE: u32 = 1 << 23;
    [address as u32, (address >> 32) as u32 | SWIZZLE, u32::MAX, LANES_OF_INDEX | ADD_LANE]
}

/// Scratch accesses of a chip that reads FLAT_SCRATCH reach the wave's own scratch only if it is there.
pub(super) fn check_flat_scratch(w: &Wave, arch: Arch) -> Result<(), Stopped> {
    let address = u64::from(w.s[FLAT_SCRATCH]) | u64::from(w.s[FLAT_SCRATCH + 1]) << 32;
    match arch.reads_flat_scratch() && address != SCRATCH_WINDOW {
        true => Err(Stopped::wave(FaultKind::Unsupported("FLAT_SCRATCH that is not the wave's scratch"))),
        false => Ok(()),
    }
}

/// Lane and byte address in its private memory for a device address in the window.
pub(super) fn through_window(address: u64) -> Option<(usize, u64)> {
    let inside = address >> WINDOW_BITS == SCRATCH_WINDOW >> WINDOW_BITS;
    let byte = address.wrapping_sub(SCRATCH_WINDOW);
    inside.then_some(((byte % SLICE / 4) as usize, byte / SLICE * 4 + byte % 4))
}

/// Index of the word of lane `l` that holds the byte, and the shift of the byte in it.
fn place(w: &Wave, l: usize, address: u64) -> Option<(usize, u32)> {
    let word = address / 4;
    let inside = word < u64::from(w.private_words);
    inside.then(|| (l * w.private_words as usize + word as usize, (address % 4 * 8) as u32))
}

#[cold]
fn outside(l: usize, access: MemoryAccess, address: u64, bytes: u32) -> Stopped {
    Stopped::lane(l, FaultKind::Memory { access, address, bytes })
}

/// Up to four bytes of lane `l`.
pub(super) fn load(w: &Wave, l: usize, address: u64, bytes: u32) -> Result<u32, Stopped> {
    if address.is_multiple_of(4) && bytes == 4 {
        let (index, _) =
            place(w, l, address).ok_or_else(|| outside(l, MemoryAccess::Load, address, bytes))?;
        return Ok(w.private[index]);
    }
    let mut value = 0;
    for byte in 0..bytes {
        let (index, shift) = place(w, l, address + u64::from(byte))
            .ok_or_else(|| outside(l, MemoryAccess::Load, address, bytes))?;
        value |= (w.private[index] >> shift & 0xff) << (8 * byte);
    }
    Ok(value)
}

/// Stores up to four bytes of lane `l`.
pub(super) fn store(w: &mut Wave, l: usize, address: u64, bytes: u32, value: u32) -> Result<(), Stopped> {
    if address.is_multiple_of(4) && bytes == 4 {
        let (index, _) =
            place(w, l, address).ok_or_else(|| outside(l, MemoryAccess::Store, address, bytes))?;
        w.private[index] = value;
        return Ok(());
    }
    for byte in 0..bytes {
        let (index, shift) = place(w, l, address + u64::from(byte))
            .ok_or_else(|| outside(l, MemoryAccess::Store, address, bytes))?;
        w.private[index] = w.private[index] & !(0xff << shift) | (value >> (8 * byte) & 0xff) << shift;
    }
    Ok(())
}
