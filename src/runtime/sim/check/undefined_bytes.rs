//! Undefined data that stores have brought to device memory: who loads them gets something undefined, and
//! what of them is left when the launch has ended counts as never written. As long as nobody reads them, they
//! do no harm: the last block of a library's algorithm may store what it would hand over to a next one.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::error::MemoryAccess;
use super::super::execute::Footprint;
use super::super::memory::MemoryView;
use super::super::wave::LANES;
use super::registers::UndefinedOrigin;
use super::undefined::{UndefinedLoad, UndefinedStore};

/// An undefined byte.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct UndefinedByte {
    /// Its undefined bits.
    bits: u8,
    /// Where they came from.
    origin: UndefinedOrigin,
}

/// The addresses where undefined values are that were stored, by the step and the place that they came from;
/// none where they cannot be told.
pub(super) type StoredUndefined = BTreeMap<(u32, u64), Option<Vec<Range<u64>>>>;

/// The undefined bytes of device memory, by allocation and offset.
#[derive(Default)]
pub(super) struct UndefinedBytes {
    bytes: BTreeMap<(usize, u64), UndefinedByte>,
}

impl UndefinedBytes {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Notes an access of `lanes` to an allocation that starts at `base`, and adds to `loaded` what of it is
    /// undefined.
    #[cold]
    pub(super) fn access(
        &mut self,
        (allocation, base): (usize, u64),
        (footprint, lanes): (&Footprint, u64),
        stored: Option<&UndefinedStore<'_>>,
        loaded: &mut UndefinedLoad,
    ) {
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            let start = footprint.address[lane] - base;
            let end = start + u64::from(footprint.bytes[lane]);
            let is_known = self.bytes.range((allocation, start)..(allocation, end)).next().is_some();
            if !is_known && stored.is_none() {
                continue;
            }
            for at in start..end {
                let (place, byte) = ((allocation, at), at - start);
                if footprint.access != MemoryAccess::Store {
                    if let Some(known) = self.bytes.get(&place) {
                        loaded.add(lane, byte, known.bits.into(), Some(known.origin));
                    }
                } else if let Some((bits, origin)) = stored.and_then(|it| it.byte(lane, byte as usize)) {
                    self.bytes.insert(place, UndefinedByte { bits, origin });
                } else {
                    self.bytes.remove(&place);
                }
            }
        }
    }

    /// Takes what another one has.
    pub(super) fn append(&mut self, other: &mut UndefinedBytes) {
        self.bytes.append(&mut other.bytes);
    }

    /// The launch has ended: what is undefined counts as never written, down to a byte. Returns
    /// where what is; bits of a byte that is defined in part cannot be told apart once the launch has ended,
    /// so values that have left such bytes are nowhere.
    pub(super) fn leave(&self, memory: &MemoryView<'_>) -> StoredUndefined {
        let bases: Vec<u64> = memory.extents().map(|(base, _)| base).collect();
        let mut stored = StoredUndefined::new();
        for (&(allocation, offset), byte) in &self.bytes {
            let address = bases[allocation] + offset;
            let origin = (byte.origin.step, byte.origin.place());
            let known = stored.entry(origin).or_insert_with(|| Some(Vec::new()));
            let Some(ranges) = known.as_mut().filter(|_| byte.bits == u8::MAX) else {
                *known = None;
                continue;
            };
            memory.note_unwritten(allocation, offset, offset + 1);
            match ranges.last_mut().filter(|range| range.end == address) {
                Some(last) => last.end += 1,
                None => ranges.push(address..address + 1),
            }
        }
        stored
    }
}
