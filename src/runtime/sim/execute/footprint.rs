//! Which bytes a memory instruction is about to touch, lane by lane, computed before it executes and without side effects:
//! what check mode judges and what time mode counts banks and cache lines from.

use crate::codegen::isa::{Format, Meaning};

use super::super::error::{Access, Stopped};
use super::super::program::Step;
use super::super::wave::{LANES, M0, PRIVATE_APERTURE, SHARED_APERTURE, Wave};
use super::address::{self, Roles, Targets, atomic_return_roles, load_roles, store_roles};
use super::{lds, smem, vmem};

/// A memory that lanes address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in super::super) enum Space {
    /// LDS of the workgroup.
    Lds,
    /// Device memory.
    Device,
    /// Private memory of the lane.
    Private,
}

/// One access of an instruction: at most one run of bytes per lane. Instructions that touch two places make two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct Footprint {
    /// Which memory.
    pub space: Space,
    /// Which way.
    pub access: Access,
    /// Lanes that access anything: active, and not dropped by a range check. Scalar accesses are lane 0's.
    pub lanes: u64,
    /// First byte of each lane.
    pub address: [u64; LANES],
    /// Number of bytes of each lane.
    pub bytes: [u16; LANES],
}

/// Collects what `s` would touch if `w` executed it now; nothing for instructions that touch no memory.
pub(in super::super) fn footprints(w: &Wave, s: &Step, found: &mut Vec<Footprint>) -> Result<(), Stopped> {
    use Meaning::*;
    let super::super::program::Action::Do(meaning) = s.action else { return Ok(()) };
    let is_lds = s.format == Format::Ds;
    match meaning {
        Load(kind) if is_lds => shared(w, found, Access::Load, lds::addresses(w, s, 1, s.imm), kind.bytes()),
        Store(kind) if is_lds => {
            shared(w, found, Access::Store, lds::addresses(w, s, 0, s.imm), kind.bytes());
        }
        Atomic(_, element) if is_lds => {
            let bytes = 4 * u32::from(element.registers());
            shared(w, found, Access::Atomic, lds::addresses(w, s, 0, s.imm), bytes);
        }
        AtomicReturn(_, element) if is_lds => {
            let bytes = 4 * u32::from(element.registers());
            shared(w, found, Access::Atomic, lds::addresses(w, s, 1, s.imm), bytes);
        }
        LoadTwo(dwords, scale) => two(w, s, found, Access::Load, (1, dwords, scale)),
        StoreTwo(dwords, scale) => two(w, s, found, Access::Store, (0, dwords, scale)),
        Load(kind) => vector(w, s, found, Access::Load, &load_roles(s.format), vmem::components(kind))?,
        Store(kind) => vector(w, s, found, Access::Store, &store_roles(s.format), vmem::components(kind))?,
        Atomic(_, element) => {
            let size = (1, 4 * u32::from(element.registers()));
            vector(w, s, found, Access::Atomic, &store_roles(s.format), size)?;
        }
        AtomicReturn(_, element) => {
            let size = (1, 4 * u32::from(element.registers()));
            vector(w, s, found, Access::Atomic, &atomic_return_roles(s.format), size)?;
        }
        LoadToLds(kind) => {
            vector(w, s, found, Access::Load, &load_roles(s.format), vmem::components(kind))?;
            let base = (w.s[M0] & 0xffff) + s.imm;
            shared(w, found, Access::Store, std::array::from_fn(|l| base + 4 * l as u32), 4);
        }
        ScalarLoad(_) | ScalarBufferLoad(_) => {
            let (address, bytes) = smem::range(w, s, meaning);
            if bytes != 0 {
                let (address, bytes) = ([address; LANES], [bytes as u16; LANES]);
                found.push(Footprint {
                    space: Space::Device,
                    access: Access::Load,
                    lanes: 1,
                    address,
                    bytes,
                });
            }
        }
        _ => {}
    }
    Ok(())
}

fn shared(w: &Wave, found: &mut Vec<Footprint>, access: Access, address: [u32; LANES], bytes: u32) {
    found.push(Footprint {
        space: Space::Lds,
        access,
        lanes: w.exec(),
        address: address.map(u64::from),
        bytes: [bytes as u16; LANES],
    });
}

/// Two elements of `dwords` dwords; offsets count elements times `scale`.
fn two(
    w: &Wave,
    s: &Step,
    found: &mut Vec<Footprint>,
    access: Access,
    (operand, dwords, scale): (usize, u8, u8),
) {
    for number in 0..2 {
        let addresses = lds::addresses(w, s, operand, lds::offset_of(s, number, dwords, scale));
        shared(w, found, access, addresses, 4 * u32::from(dwords));
    }
}

/// Vector memory; flat addresses are told apart by their apertures.
fn vector(
    w: &Wave,
    s: &Step,
    found: &mut Vec<Footprint>,
    access: Access,
    roles: &Roles,
    (components, bytes): (u8, u32),
) -> Result<(), Stopped> {
    let Targets { space, address, valid } = address::targets(w, s, roles, components, bytes)?;
    let in_range = lanes(|l| valid[l] != 0) & w.exec();
    let bytes = valid.map(|n| u16::from(n) * bytes as u16);
    let mut push = |space, lanes, address| {
        if lanes != 0 {
            found.push(Footprint { space, access, lanes, address, bytes });
        }
    };
    match space {
        address::Space::Device => push(Space::Device, in_range, address),
        address::Space::Private => push(Space::Private, in_range, address),
        address::Space::Flat => {
            let of = |aperture: u32| lanes(|l| (address[l] >> 32) as u32 == aperture) & in_range;
            let (shared, private) = (of(SHARED_APERTURE), of(PRIVATE_APERTURE));
            let low = address.map(|a| a & 0xffff_ffff);
            push(Space::Lds, shared, low);
            push(Space::Private, private, low);
            push(Space::Device, in_range & !shared & !private, address);
        }
    }
    Ok(())
}

fn lanes(test: impl Fn(usize) -> bool) -> u64 {
    (0..LANES).filter(|&l| test(l)).fold(0, |mask, l| mask | 1 << l)
}
