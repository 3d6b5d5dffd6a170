//! Which bits of private memory are defined, lane by lane.

use std::collections::BTreeMap;

use super::super::error::MemoryAccess;
use super::super::execute::Footprint;
use super::super::wave::LANES;
use super::finding::Memory;
use super::registers::{UndefinedOrigin, Unwritten};
use super::undefined::{UndefinedLoad, UndefinedStore};

/// Private memory of one wave.
pub(super) struct Scratch {
    /// Lanes of each byte that are fully defined.
    bytes: Vec<u64>,
    /// Undefined bits of each byte in the others; empty as long as all of them are undefined.
    bits: Vec<[u8; LANES]>,
    /// By byte: lanes that have stored something undefined, and where that came from.
    stored: BTreeMap<usize, (u64, UndefinedOrigin)>,
}

impl Scratch {
    /// None.
    pub(super) fn new() -> Scratch {
        Scratch { bytes: Vec::new(), bits: Vec::new(), stored: BTreeMap::new() }
    }

    /// Resets it to this many bytes per lane, undefined.
    pub(super) fn reset(&mut self, bytes: usize) {
        self.bytes.clear();
        self.bits.clear();
        self.stored.clear();
        self.bytes.resize(bytes, 0);
    }

    /// Notes an access of step `step` whose `lanes` lie inside, and the undefined part of what it stores.
    /// Returns that of what it loads.
    pub(super) fn access(
        &mut self,
        footprint: &Footprint,
        lanes: u64,
        undefined: Option<&UndefinedStore<'_>>,
        step: u32,
    ) -> UndefinedLoad {
        let mut found = UndefinedLoad::default();
        let mut left = lanes;
        while left != 0 {
            let l = left.trailing_zeros();
            let address = footprint.address[l as usize];
            // All lanes at one address are handled together, which is the usual case.
            let mut same = 0;
            let mut others = left;
            while others != 0 {
                let m = others.trailing_zeros();
                others &= others - 1;
                same |= u64::from(footprint.address[m as usize] == address) << m;
            }
            left &= !same;
            let start = address as usize;
            let end = (start + usize::from(footprint.bytes[l as usize])).min(self.bytes.len());
            for (index, at) in (start.min(end)..end).enumerate() {
                match footprint.access {
                    MemoryAccess::Load if same & !self.bytes[at] != 0 => {
                        let missing = same & !self.bytes[at];
                        for l in (0..LANES).filter(|l| missing >> l & 1 != 0) {
                            let bits = self.bits.get(at).map_or(0xff, |bits| bits[l]);
                            let stored = self.stored.get(&at).filter(|stored| stored.0 >> l & 1 != 0);
                            let what = Unwritten::Memory(Memory::Scratch, address + index as u64);
                            let origin = stored.map_or(UndefinedOrigin { step, what }, |stored| stored.1);
                            found.add(l, index as u64, bits.into(), Some(origin));
                        }
                    }
                    MemoryAccess::Load => {}
                    _ => self.store(at, index, same, undefined),
                }
            }
        }
        found
    }

    /// Stores byte `index` of the data of some lanes.
    fn store(&mut self, at: usize, index: usize, lanes: u64, undefined: Option<&UndefinedStore<'_>>) {
        let mut bad = 0;
        let mut left = lanes & undefined.map_or(0, UndefinedStore::lanes);
        while left != 0 {
            let l = left.trailing_zeros() as usize;
            left &= left - 1;
            let found = undefined.and_then(|stored| stored.byte(l, index));
            let bits = found.map_or(0, |found| found.0);
            bad |= u64::from(bits != 0) << l;
            if let Some((_, origin)) = found {
                let stored = self.stored.entry(at).or_insert((0, origin));
                *stored = (stored.0 | 1 << l, origin);
            }
            if self.bits.is_empty() && bits != 0 && bits != 0xff {
                self.bits.resize(self.bytes.len(), [0xff; LANES]);
            }
            if let Some(known) = self.bits.get_mut(at) {
                known[l] = bits;
            }
        }
        self.bytes[at] = self.bytes[at] & !lanes | lanes & !bad;
    }
}
