//! Transfers between memory and LDS that bypass registers.
//!
//! Lane `l` has its place in LDS at M0 + instruction offset + l times what it loads, at least a dword (CDNA3
//! ISA guide, "Memory buffer load to LDS"; for three and four dwords CDNA4 ISA guide, same section).

use crate::codegen::isa::MemoryData;

use super::super::error::{MemoryAccess, Stopped};
use super::super::memory::MemoryView;
use super::super::program::Step;
use super::super::wave::Wave;
use super::address::{from_lds_roles, lds_roles, targets};
use super::lds::Lds;
use super::lds_forms::own_addresses;
use super::single::{self, COMPONENTS};
use super::transfer::merge_loaded;
use super::vmem::components;

/// Bytes of each lane in LDS.
pub(super) fn place_bytes(kind: MemoryData) -> u32 {
    kind.bytes().next_multiple_of(4)
}

/// Loads from a buffer, global or scratch address. What is out of a buffer's range is zero.
pub(super) fn load(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    lds: &mut Lds,
    s: &Step,
    kind: MemoryData,
) -> Result<(), Stopped> {
    let (count, bytes) = components(kind);
    let targets = targets(w, s, &lds_roles(), count, bytes)?;
    let places = own_addresses(w, s, place_bytes(kind));
    w.each_lane(|w, l| {
        let values = single::gather(w, memory, &targets, l, bytes)?.map(|v| merge_loaded(kind, 0, v));
        put(lds, l, places[l], &values[..count.into()])
    })
}

/// Stores values of lane `l`.
pub(super) fn put(lds: &mut Lds, l: usize, address: u32, values: &[u32]) -> Result<(), Stopped> {
    lds.check(l, MemoryAccess::Store, address, 4 * values.len() as u32)?;
    for (index, &value) in values.iter().enumerate() {
        lds.store(address + 4 * index as u32, 4, value);
    }
    Ok(())
}

/// Stores a dword of LDS to a buffer.
pub(super) fn store(w: &mut Wave, memory: &MemoryView<'_>, lds: &Lds, s: &Step) -> Result<(), Stopped> {
    let targets = targets(w, s, &from_lds_roles(), 1, 4)?;
    let places = own_addresses(w, s, 4);
    w.each_lane(|w, l| {
        lds.check(l, MemoryAccess::Load, places[l], 4)?;
        let mut values = [0; COMPONENTS];
        values[0] = lds.load(places[l], 4);
        single::scatter(w, memory, &targets, l, 4, values)
    })
}
