//! The lowest and the highest byte that lanes access, and which lanes lie side by side: asked of every access
//! in check mode, so compiled for the host's vector unit, too (`host`).

use super::super::wave::{LANES, VectorRow};

/// The lowest of the bytes that `lanes` access, each from its address on so many, and the one after the
/// highest.
#[inline(always)]
pub(super) fn extent(address: &[u64; LANES], bytes: &[u16; LANES], lanes: u64) -> (u64, u64) {
    let (mut low, mut high) = (u64::MAX, 0);
    // Usually all lanes access equally many bytes.
    if lanes == u64::MAX && are_equal(bytes) {
        for &start in address {
            (low, high) = (low.min(start), high.max(start));
        }
        return (low, high.saturating_add(bytes[0].into()));
    }
    for l in 0..LANES {
        let (start, active) = (address[l], lanes >> l & 1 != 0);
        let end = start.saturating_add(bytes[l].into());
        low = low.min(if active { start } else { u64::MAX });
        high = high.max(if active { end } else { 0 });
    }
    (low, high)
}

/// True if all lanes access equally many bytes.
#[inline(always)]
fn are_equal(bytes: &[u16; LANES]) -> bool {
    bytes.iter().fold(0, |different, size| different | (size ^ bytes[0])) == 0
}

/// Lanes that access what the one before them does, and lanes that access the same number of bytes right
/// after it.
#[inline(always)]
pub(super) fn joints(address: &[u64; LANES], bytes: &[u16; LANES]) -> [u64; 2] {
    let [mut same, mut beside] = [0, 0];
    // Usually all lanes access equally many bytes.
    if are_equal(bytes) {
        for l in 1..LANES {
            let distance = address[l].wrapping_sub(address[l - 1]);
            same |= u64::from(distance == 0) << l;
            beside |= u64::from(distance == u64::from(bytes[0])) << l;
        }
        return [same, beside];
    }
    for l in 1..LANES {
        let (distance, size) = (address[l].wrapping_sub(address[l - 1]), bytes[l - 1]);
        let alike = bytes[l] == size;
        same |= u64::from(alike & (distance == 0)) << l;
        beside |= u64::from(alike & (distance == u64::from(size))) << l;
    }
    [same, beside]
}

/// The lowest and the highest of some addresses, and all their bits.
#[inline(always)]
pub(super) fn range(address: &[u64; LANES]) -> (u64, u64, u64) {
    let range = (u64::MAX, 0, 0);
    address.iter().fold(range, |(low, high, bits), &a| (low.min(a), high.max(a), bits | a))
}

/// All bits of some addresses, and the highest address.
#[inline(always)]
pub(super) fn highest(address: &VectorRow) -> (u32, u32) {
    address.iter().fold((0, 0), |(bits, high), &a| (bits | a, high.max(a)))
}
