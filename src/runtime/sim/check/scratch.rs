//! Which bits of private memory are defined, lane by lane.

use super::super::error::MemoryAccess;
use super::super::execute::Footprint;
use super::super::wave::{LANES, VectorRow};

/// Undefined bits of the data of a load: rows of lanes, dword after dword.
pub(super) type LoadedBits = Vec<VectorRow>;

/// Private memory of one wave.
pub(super) struct Scratch {
    /// Lanes of each byte that are fully defined.
    bytes: Vec<u64>,
    /// Undefined bits of each byte in the others; empty as long as all of them are undefined.
    bits: Vec<[u8; LANES]>,
}

impl Scratch {
    /// None.
    pub(super) fn new() -> Scratch {
        Scratch { bytes: Vec::new(), bits: Vec::new() }
    }

    /// Resets it to this many bytes per lane, undefined.
    pub(super) fn reset(&mut self, bytes: usize) {
        self.bytes.clear();
        self.bits.clear();
        self.bytes.resize(bytes, 0);
    }

    /// Notes an access whose `lanes` lie inside. `undefined` are the undefined bits of stored data, by lane
    /// (of `partial`) and byte. Returns, for a load, the undefined bits and the first undefined byte.
    pub(super) fn access(
        &mut self,
        footprint: &Footprint,
        lanes: u64,
        partial: u64,
        undefined: impl Fn(usize, usize) -> u8,
    ) -> (LoadedBits, Option<u64>) {
        let mut found = (LoadedBits::new(), None);
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
                        if found.0.len() <= index / 4 {
                            found.0.resize(index / 4 + 1, [0; LANES]);
                        }
                        let missing = same & !self.bytes[at];
                        for l in (0..LANES).filter(|l| missing >> l & 1 != 0) {
                            let bits = self.bits.get(at).map_or(0xff, |bits| bits[l]);
                            found.0[index / 4][l] |= u32::from(bits) << (8 * (index % 4));
                        }
                        found.1.get_or_insert(address + index as u64);
                    }
                    MemoryAccess::Load => {}
                    _ => self.store(at, same, partial, |lane| undefined(lane, index)),
                }
            }
        }
        found
    }

    /// Stores a byte of some lanes; those in `partial` may store something undefined.
    fn store(&mut self, at: usize, lanes: u64, partial: u64, undefined: impl Fn(usize) -> u8) {
        let mut bad = 0;
        let mut left = lanes & partial;
        while left != 0 {
            let l = left.trailing_zeros() as usize;
            left &= left - 1;
            let bits = undefined(l);
            bad |= u64::from(bits != 0) << l;
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
