//! The accesses of an instruction as runs: neighbouring lanes that access neighbouring bytes form one, as
//! they usually do.

use super::super::execute::Footprint;
use super::super::wave::LANES;

/// Lanes that access bytes one after the other.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LaneRun {
    /// First lane.
    pub lane: usize,
    /// How many lanes.
    pub lanes: usize,
    /// First byte.
    pub address: u64,
    /// Bytes of each lane.
    pub bytes: u64,
}

impl LaneRun {
    /// Byte after the last one.
    pub(super) fn end(&self) -> u64 {
        self.address + self.bytes * self.lanes as u64
    }

    /// The lane that accesses a byte, and the number of the byte among those of the lane; bytes before the
    /// run belong to its first byte.
    pub(super) fn lane_of(&self, address: u64) -> (usize, u64) {
        let distance = address.saturating_sub(self.address);
        (self.lane + (distance / self.bytes) as usize, distance % self.bytes)
    }

    /// Calls `f` for the part of a cell of `1 << granule` bytes that each lane accesses: the lane, the number
    /// of the first byte among those of the lane, its address, and a mask of the bits from there on.
    pub(super) fn pieces(&self, cell: usize, granule: u32, mut f: impl FnMut(usize, u64, u64, u32)) {
        let mut at = (cell as u64).max(self.address);
        let end = (cell as u64 + (1 << granule)).min(self.end());
        while at < end {
            let (lane, byte) = self.lane_of(at);
            let bytes = (self.bytes - byte).min(end - at);
            f(lane % LANES, byte, at, u32::MAX >> (32 - 8 * bytes.min(4)));
            at += bytes;
        }
    }
}

/// Calls `f` for every run of the lanes `lanes`; lanes without bytes are in none.
#[inline(always)]
pub(super) fn runs(footprint: &Footprint, lanes: u64, mut f: impl FnMut(LaneRun)) {
    let [_, beside] = footprint.joints();
    groups(lanes, beside, |lane, last| {
        let (address, bytes) = (footprint.address[lane], footprint.bytes[lane]);
        if bytes != 0 {
            f(LaneRun { lane, lanes: last + 1 - lane, address, bytes: bytes.into() });
        }
    });
}

/// Calls `f` for the bytes that some lanes access, without regard to which lane accesses what: for their
/// start and end. Lanes that access what the one before them does, or bytes beside those, add to what it
/// does, so some bytes may be named more than once but every one is.
#[inline(always)]
pub(super) fn spans(footprint: &Footprint, lanes: u64, mut f: impl FnMut(u64, u64)) {
    let (mut start, mut end) = (0, 0);
    let [same, beside] = footprint.joints();
    groups(lanes, same | beside, |lane, last| {
        let low = footprint.address[lane];
        let high = footprint.address[last] + u64::from(footprint.bytes[last]);
        if low <= end && high >= start {
            (start, end) = (start.min(low), end.max(high));
            return;
        }
        if start < end {
            f(start, end);
        }
        (start, end) = (low, high);
    });
    if start < end {
        f(start, end);
    }
}

/// Calls `f` for the first and the last lane of every group of lanes that are joined to the one before them,
/// except the first of each.
#[inline(always)]
fn groups(lanes: u64, joined: u64, mut f: impl FnMut(usize, usize)) {
    let joined = joined & lanes & lanes << 1;
    let mut firsts = lanes & !joined;
    while firsts != 0 {
        let first = firsts.trailing_zeros() as usize;
        firsts &= firsts - 1;
        // The first one itself is not joined, so a zero is shifted out at the latest with it.
        let more = (joined >> first >> 1).trailing_ones() as usize;
        f(first, first + more);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::error::MemoryAccess;
    use super::super::super::execute::MemorySpace;
    use super::*;

    #[test]
    fn neighbours_are_joined() {
        let mut address: [u64; LANES] = std::array::from_fn(|l| 4 * l as u64);
        address[10] = 1000;
        let footprint = Footprint {
            space: MemorySpace::Lds,
            access: MemoryAccess::Load,
            lanes: u64::MAX,
            address,
            bytes: [4; LANES],
        };
        let mut found = Vec::new();
        runs(&footprint, !(1 << 63) & !(1 << 5), |run| found.push((run.lane, run.lanes, run.address)));
        assert_eq!(found, [(0, 5, 0), (6, 4, 24), (10, 1, 1000), (11, 52, 44)]);
        assert_eq!((footprint.extent(0b110), footprint.extent(0b1000)), ((4, 12), (12, 16)));
        let mut found = Vec::new();
        spans(&footprint, !(1 << 63) & !(1 << 5), |start, end| found.push((start, end)));
        assert_eq!(found, [(0, 20), (24, 40), (1000, 1004), (44, 252)]);
        let (mut found, address) = (Vec::new(), std::array::from_fn(|l| 100 - 4 * (l / 16) as u64));
        spans(&Footprint { address, ..footprint }, u64::MAX, |start, end| found.push((start, end)));
        assert_eq!(found, [(88, 104)]);
        let run = LaneRun { lane: 6, lanes: 4, address: 24, bytes: 4 };
        assert_eq!((run.end(), run.lane_of(33), run.lane_of(20)), (40, (8, 1), (6, 0)));
    }
}
