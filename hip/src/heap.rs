//! The heap of `malloc` and `free` in kernels. Device code keeps it itself: all it needs is a zeroed
//! structure of its own, and memory for slabs and large pieces, which it asks the host for.
//!
//! A launch sees the memory that there was when it began, so all of the heap is there before. The system
//! gives it pages as they are touched.
//!
//! Source: ROCm device libraries, `ockl/src/dm.cl`; ROCm clr, `devhostcall.cpp`.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::HipResult;
use crate::runtime::Runtime;
use crate::space::MemoryKind;

/// Bytes of the device's own structure (rocclr, `HeapBufferSize`), and of all that it hands out.
const STRUCTURE: u64 = 128 << 10;
pub(crate) const BYTES: u64 = 256 << 20;
/// Pieces begin at pages. A slab is found by the upper bits of an address in it.
const PAGE: u64 = 4096;
const SLAB: u64 = 2 << 20;

/// The heap of the process.
struct Heap {
    structure: u64,
    /// First address of the pieces.
    start: u64,
    pieces: Mutex<Pieces>,
}

/// What is free, as ends by starts, and what is in use, as sizes by starts.
struct Pieces {
    free: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
}

static HEAP: OnceLock<HipResult<Heap>> = OnceLock::new();

/// The structure of the heap, which is made at the first call.
///
/// # Errors
/// There is no memory for it.
pub(crate) fn for_launch(runtime: &Runtime) -> HipResult<u64> {
    let heap = HEAP.get_or_init(|| {
        let mut simulator = runtime.simulator_to_change();
        let mut allocate = |bytes| runtime.space.allocate(&mut simulator, bytes, MemoryKind::Host, 0);
        let (structure, start) = (allocate(STRUCTURE)?, allocate(BYTES)?);
        Ok(Heap { structure, start, pieces: Mutex::new(Pieces::new(start, start + BYTES)) })
    });
    heap.as_ref().map(|heap| heap.structure).map_err(Clone::clone)
}

/// True for an address of the heap: pieces that kernels take from it are nobody else's.
pub(crate) fn owns(address: u64) -> bool {
    let Some(Ok(heap)) = HEAP.get() else { return false };
    address.wrapping_sub(heap.structure) < STRUCTURE || address.wrapping_sub(heap.start) < BYTES
}

/// Answers device code: without an address it wants that many bytes, and gets zero if there are none left;
/// with one it gives back what lies there.
pub(crate) fn request(address: u64, bytes: u64) -> u64 {
    let Some(Ok(heap)) = HEAP.get() else { return 0 };
    let mut pieces = heap.pieces.lock().unwrap_or_else(PoisonError::into_inner);
    match address {
        0 => pieces.take(bytes).unwrap_or(0),
        _ => {
            pieces.give(address);
            0
        }
    }
}

impl Pieces {
    fn new(start: u64, end: u64) -> Pieces {
        Pieces { free: BTreeMap::from([(start, end)]), used: BTreeMap::new() }
    }

    /// The first piece that is large enough.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let alignment = if bytes == SLAB { SLAB } else { PAGE };
        let (start, place, end) = self.free.iter().find_map(|(&start, &end)| {
            let place = start.next_multiple_of(alignment);
            (place.checked_add(bytes)? <= end).then_some((start, place, end))
        })?;
        self.free.remove(&start);
        for (start, end) in [(start, place), (place + bytes, end)] {
            if start < end {
                self.free.insert(start, end);
            }
        }
        self.used.insert(place, bytes);
        Some(place)
    }

    /// Takes a piece back, and joins it with its free neighbours. Anything else is ignored.
    fn give(&mut self, address: u64) {
        let Some(bytes) = self.used.remove(&address) else { return };
        let (mut start, mut end) = (address, address + bytes);
        if let Some(after) = self.free.remove(&end) {
            end = after;
        }
        if let Some((&before, _)) = self.free.range(..start).next_back().filter(|(_, end)| **end == start) {
            start = before;
        }
        self.free.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_as_one() {
        let mut pieces = Pieces::new(PAGE, 4 * SLAB);
        let small = pieces.take(5).expect("there is room");
        let slab = pieces.take(SLAB).expect("there is room");
        assert_eq!((small, slab), (PAGE, SLAB));
        assert_eq!(pieces.take(3 * SLAB), None);
        let rest = pieces.take(2 * SLAB + 1 - SLAB).expect("there is room");
        assert_eq!(rest, 2 * SLAB);
        for address in [slab, small, rest, rest, 12345] {
            pieces.give(address);
        }
        assert_eq!(pieces.free, BTreeMap::from([(PAGE, 4 * SLAB)]));
    }
}
