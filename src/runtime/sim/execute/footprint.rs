//! Which bytes a memory instruction is about to access, lane by lane, computed before it executes and without
//! side effects: check mode judges them, and time mode counts banks and cache lines from them.

use crate::codegen::isa::{Format, Meaning};

use super::super::error::{MemoryAccess, Stopped};
use super::super::program::Step;
use super::super::wave::{LANES, PRIVATE_APERTURE, SHARED_APERTURE, VectorRow, Wave};
use super::address::{
    self, CONTIGUOUS, OperandRoles, Targets, atomic_return_roles, from_lds_roles, lds_roles, load_roles,
    store_roles,
};
use super::{formatted, host, lds, lds_forms, private, smem, to_lds, vmem};

/// A memory that lanes address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in super::super) enum MemorySpace {
    /// LDS of the workgroup.
    Lds,
    /// Device memory.
    Device,
    /// Private memory of the lane.
    Private,
}

/// One access of an instruction: at most one run of bytes per lane. Instructions that touch two places make
/// two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct Footprint {
    /// Which memory.
    pub space: MemorySpace,
    /// Load, store or atomic.
    pub access: MemoryAccess,
    /// Lanes that access anything: active, and not dropped by a range check. Scalar accesses belong to lane
    /// 0.
    pub lanes: u64,
    /// First byte of each lane.
    pub address: [u64; LANES],
    /// Number of bytes of each lane.
    pub bytes: [u16; LANES],
}

impl Footprint {
    /// Lowest byte of the lanes `lanes`, and the one after the highest.
    #[inline]
    pub(in super::super) fn extent(&self, lanes: u64) -> (u64, u64) {
        if lanes.is_power_of_two() {
            let lane = lanes.trailing_zeros() as usize;
            return (self.address[lane], self.address[lane].saturating_add(self.bytes[lane].into()));
        }
        host::extent(&self.address, &self.bytes, lanes)
    }

    /// Lanes that access what the lane before them does, and lanes that access the same number of bytes right
    /// after it.
    #[inline]
    pub(in super::super) fn joints(&self) -> [u64; 2] {
        host::joints(&self.address, &self.bytes)
    }
}

/// Collects the accesses that `s` would make if `w` executed it now; none for instructions that do not access
/// memory. Loads come before the stores of the same instruction.
pub(in super::super) fn footprints(w: &Wave, s: &Step, found: &mut Vec<Footprint>) -> Result<(), Stopped> {
    use Meaning::*;
    use MemoryAccess::{Load as Loads, Store as Stores};
    let super::super::program::Action::Do(meaning) = s.action else { return Ok(()) };
    if s.format == Format::Ds {
        ds(w, s, meaning, found);
        return Ok(());
    }
    match meaning {
        Load(kind) => vector(w, s, found, Loads, &load_roles(s.format), vmem::components(kind))?,
        Store(kind) => vector(w, s, found, Stores, &store_roles(s.format), vmem::components(kind))?,
        Atomic(_, element) => {
            let size = (1, 4 * u32::from(element.registers()));
            vector(w, s, found, MemoryAccess::Atomic, &store_roles(s.format), size)?;
        }
        AtomicReturn(_, element) => {
            let size = (1, 4 * u32::from(element.registers()));
            vector(w, s, found, MemoryAccess::Atomic, &atomic_return_roles(s.format), size)?;
        }
        LoadFormat(_) | LoadFormatHalf(_) | LoadFormatHigh => {
            format(w, s, found, Loads, &load_roles(s.format))?
        }
        StoreFormat(_) | StoreFormatHalf(_) | StoreFormatHigh => {
            format(w, s, found, Stores, &load_roles(s.format))?;
        }
        LoadToLds(kind) => {
            vector(w, s, found, Loads, &lds_roles(), vmem::components(kind))?;
            let bytes = to_lds::place_bytes(kind);
            shared(w, found, Stores, lds_forms::own_addresses(w, s, bytes), bytes);
        }
        LoadFormatToLds => {
            format(w, s, found, Loads, &lds_roles())?;
            shared(w, found, Stores, lds_forms::own_addresses(w, s, 4), 4);
        }
        StoreFromLdsToMemory => {
            shared(w, found, Loads, lds_forms::own_addresses(w, s, 4), 4);
            vector(w, s, found, Stores, &from_lds_roles(), (1, 4))?;
        }
        _ => scalar(w, s, meaning, found),
    }
    Ok(())
}

/// LDS instructions.
fn ds(w: &Wave, s: &Step, meaning: Meaning, found: &mut Vec<Footprint>) {
    use Meaning::*;
    use MemoryAccess::{Atomic as Atomics, Load as Loads, Store as Stores};
    let at = |operand| lds::addresses(w, s, operand, s.imm);
    match meaning {
        Load(kind) => shared(w, found, Loads, at(1), kind.bytes()),
        Store(kind) => shared(w, found, Stores, at(0), kind.bytes()),
        Atomic(_, element) => shared(w, found, Atomics, at(0), 4 * u32::from(element.registers())),
        AtomicReturn(_, element) => shared(w, found, Atomics, at(1), 4 * u32::from(element.registers())),
        LoadTwo(dwords, scale) => two(w, s, found, Loads, (1, dwords, scale)),
        StoreTwo(dwords, scale) => two(w, s, found, Stores, (0, dwords, scale)),
        ExchangeTwo(dwords, scale) => two(w, s, found, Atomics, (1, dwords, scale)),
        AtomicFromLds(_, element) => {
            let [to, from] = lds_forms::two_places(w, s);
            shared(w, found, Loads, from, 4 * u32::from(element.registers()));
            shared(w, found, Atomics, to, 4 * u32::from(element.registers()));
        }
        StoreFromLds(dwords) => {
            let [to, from] = lds_forms::two_places(w, s);
            shared(w, found, Loads, from, 4 * u32::from(dwords));
            shared(w, found, Stores, to, 4 * u32::from(dwords));
        }
        ConditionalExchange => shared(w, found, Atomics, at(1), 8),
        LoadAtLane => shared(w, found, Loads, lds_forms::own_addresses(w, s, 4), 4),
        StoreAtLane => shared(w, found, Stores, lds_forms::own_addresses(w, s, 4), 4),
        CountLanes(_) => {
            shared(w, found, Atomics, [lds_forms::m0_address(w, s); LANES], 4);
            // One access for all of them.
            if let Some(one) = found.last_mut() {
                one.lanes &= one.lanes.wrapping_neg();
            }
            found.retain(|footprint| footprint.lanes != 0);
        }
        LoadTransposed(_, registers) => shared(w, found, Loads, at(1), 4 * u32::from(registers)),
        _ => {}
    }
}

/// Scalar memory instructions.
fn scalar(w: &Wave, s: &Step, meaning: Meaning, found: &mut Vec<Footprint>) {
    let Some(range) = smem::range(w, s, meaning).filter(|range| range.inside > 0) else { return };
    let mut push = |space, lanes, address: u64, dwords: u8| {
        let (address, bytes) = ([address; LANES], [4 * u16::from(dwords); LANES]);
        found.push(Footprint { space, access: range.access, lanes, address, bytes });
    };
    if private::through_window(range.address).is_none() {
        return push(MemorySpace::Device, 1, range.address, range.inside);
    }
    // Dwords that lie side by side belong to different lanes.
    for dword in 0..u64::from(range.inside) {
        if let Some((lane, byte)) = private::through_window(range.address + 4 * dword) {
            push(MemorySpace::Private, 1 << lane, byte, 1);
        }
    }
}

fn shared(w: &Wave, found: &mut Vec<Footprint>, access: MemoryAccess, address: VectorRow, bytes: u32) {
    if w.exec() == 0 {
        return;
    }
    let mut wide = [0; LANES];
    wide.iter_mut().zip(&address).for_each(|(wide, &address)| *wide = address.into());
    let (space, bytes) = (MemorySpace::Lds, [bytes as u16; LANES]);
    found.push(Footprint { space, access, lanes: w.exec(), address: wide, bytes });
}

/// Two elements of `dwords` dwords; offsets count elements times `scale`.
fn two(
    w: &Wave,
    s: &Step,
    found: &mut Vec<Footprint>,
    access: MemoryAccess,
    (operand, dwords, scale): (usize, u8, u8),
) {
    for number in 0..2 {
        let addresses = lds::addresses(w, s, operand, lds::offset_of(s, number, dwords, scale));
        shared(w, found, access, addresses, 4 * u32::from(dwords));
    }
}

/// Vector memory in the format of a buffer.
fn format(
    w: &Wave,
    s: &Step,
    found: &mut Vec<Footprint>,
    access: MemoryAccess,
    roles: &OperandRoles,
) -> Result<(), Stopped> {
    let (format, targets) = formatted::place(w, s, roles)?;
    collect(w, found, access, &targets, format.pieces().1);
    Ok(())
}

/// Vector memory.
fn vector(
    w: &Wave,
    s: &Step,
    found: &mut Vec<Footprint>,
    access: MemoryAccess,
    roles: &OperandRoles,
    (components, bytes): (u8, u32),
) -> Result<(), Stopped> {
    collect(w, found, access, &address::targets(w, s, roles, components, bytes)?, bytes);
    Ok(())
}

/// Accesses to targets whose components have `bytes` bytes each; flat addresses are told apart by their
/// apertures.
fn collect(w: &Wave, found: &mut Vec<Footprint>, access: MemoryAccess, targets: &Targets, bytes: u32) {
    let Targets { space, ref address, valid, step } = *targets;
    let all = valid.iter().fold(1, |all, &n| all & u8::from(n != 0)) != 0;
    let in_range = if all { w.exec() } else { lanes(|l| valid[l] != 0) & w.exec() };
    if step != CONTIGUOUS {
        for component in 0..valid.iter().copied().max().unwrap_or(0) {
            let lanes = lanes(|l| component < valid[l]) & w.exec();
            let address = std::array::from_fn(|l| targets.component(l, component.into()));
            if lanes != 0 {
                let bytes = [bytes as u16; LANES];
                found.push(Footprint { space: MemorySpace::Device, access, lanes, address, bytes });
            }
        }
        return;
    }
    let mut sizes = [0; LANES];
    sizes.iter_mut().zip(&valid).for_each(|(size, &n)| *size = u16::from(n) * bytes as u16);
    let bytes = sizes;
    let mut push = |space, lanes, address| {
        if lanes != 0 {
            found.push(Footprint { space, access, lanes, address, bytes });
        }
    };
    match space {
        address::AddressedMemory::Device => push(MemorySpace::Device, in_range, *address),
        address::AddressedMemory::Private => push(MemorySpace::Private, in_range, *address),
        address::AddressedMemory::Flat => {
            let of = |aperture: u32| lanes(|l| (address[l] >> 32) as u32 == aperture) & in_range;
            let (shared, private) = (of(SHARED_APERTURE), of(PRIVATE_APERTURE));
            let low = address.map(|a| a & 0xffff_ffff);
            push(MemorySpace::Lds, shared, low);
            push(MemorySpace::Private, private, low);
            push(MemorySpace::Device, in_range & !shared & !private, *address);
        }
    }
}

fn lanes(test: impl Fn(usize) -> bool) -> u64 {
    (0..LANES).filter(|&l| test(l)).fold(0, |mask, l| mask | 1 << l)
}
