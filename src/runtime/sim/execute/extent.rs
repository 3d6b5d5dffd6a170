//! The lowest and the highest byte that lanes access: asked of every access in check mode, so compiled for
//! the host's vector unit, too (`host`).

use super::super::wave::LANES;

/// The lowest of the bytes that `lanes` access, each from its address on so many, and the one after the
/// highest.
#[inline(always)]
pub(super) fn extent(address: &[u64; LANES], bytes: &[u16; LANES], lanes: u64) -> (u64, u64) {
    let (mut low, mut high) = (u64::MAX, 0);
    // Usually all lanes access equally many bytes.
    if lanes == u64::MAX && *bytes == [bytes[0]; LANES] {
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
