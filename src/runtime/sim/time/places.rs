//! Where memories lie for the caches. Their addresses depend on what the process has allocated before, and
//! memory that the host lends on where its system puts it; sets of caches are chosen by addresses, so the
//! same launch would take longer in one process than in another. Time mode therefore counts with places of
//! its own: the memories that the arguments name, in their order, as if they were the first ones of a device.

use super::super::execute::{Footprint, MemorySpace};
use super::super::memory::{ALIGNMENT, FIRST_ADDRESS, GUARD};
use super::super::start::LaunchContext;

/// Where private memory lies for the caches: an address range of its own.
const PRIVATE_BASE: u64 = 1 << 60;

/// A memory that lies elsewhere for the caches.
#[derive(Copy, Clone)]
struct MovedMemory {
    start: u64,
    bytes: u64,
    /// How much higher it lies, wrapping.
    by: u64,
}

/// The places of all memories of a launch.
pub(super) struct ModelledPlaces {
    /// In order of their addresses; without those that stay.
    moved: Vec<MovedMemory>,
}

impl ModelledPlaces {
    /// Places of the memories that a launch sees. The image of its code follows those that arguments name,
    /// and what else there is in the order of addresses; what belongs to the launch itself stays.
    pub(super) fn of(launch: &LaunchContext<'_>) -> ModelledPlaces {
        let mut left: Vec<(u64, u64)> =
            launch.memory.extents().filter(|&(start, _)| start >= FIRST_ADDRESS).collect();
        let mut ordered = Vec::with_capacity(left.len());
        for address in launch.argument_words().chain([launch.program.address]) {
            let holds = |&(start, bytes): &(u64, u64)| address.wrapping_sub(start) < bytes;
            if let Some(at) = left.iter().position(holds) {
                ordered.push(left.remove(at));
            }
        }
        ordered.append(&mut left);
        let mut next = FIRST_ADDRESS;
        let mut moved = Vec::new();
        for (start, bytes) in ordered {
            // Lines begin where they did.
            let place = next + start % ALIGNMENT;
            if place != start {
                moved.push(MovedMemory { start, bytes, by: place.wrapping_sub(start) });
            }
            next = (place + bytes + GUARD).next_multiple_of(ALIGNMENT);
        }
        moved.sort_unstable_by_key(|memory| memory.start);
        ModelledPlaces { moved }
    }

    /// Moves the addresses of an access of device memory.
    pub(super) fn apply(&self, f: &mut Footprint) {
        if self.moved.is_empty() {
            return;
        }
        let mut near = MovedMemory { start: 0, bytes: 0, by: 0 };
        let mut left = f.lanes;
        while left != 0 {
            let address = &mut f.address[left.trailing_zeros() as usize];
            left &= left - 1;
            if address.wrapping_sub(near.start) >= near.bytes {
                let after = self.moved.partition_point(|memory| memory.start <= *address);
                let Some(&memory) = after.checked_sub(1).and_then(|at| self.moved.get(at)) else { continue };
                if *address - memory.start >= memory.bytes {
                    continue;
                }
                near = memory;
            }
            *address = address.wrapping_add(near.by);
        }
    }
}

/// Private memory as it lies in device memory: dwords of the lanes side by side.
pub(super) fn privatise(f: &mut Footprint, age: u64) {
    for (lane, address) in f.address.iter_mut().enumerate() {
        let (dword, byte) = (*address / 4, *address % 4);
        *address = PRIVATE_BASE + (age << 32) + dword * 256 + 4 * lane as u64 + byte;
    }
    f.space = MemorySpace::Device;
}
