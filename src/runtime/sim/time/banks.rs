//! Banks of LDS: which lanes of an access are served together, and how long the banks are busy with it.
//!
//! Lanes fall into groups that are served together; inside a group a bank gives one dword per clk, and lanes that want the
//! same dword share it. Groups were measured: gfx942 by PYHIP (and AMD's article on Composable Kernel bank conflicts),
//! gfx950 by the Wave compiler's documentation and HipKittens; the others are inferred.

use crate::codegen::isa::Arch;

use super::super::wave::LANES;
use super::costs::LdsKind;

/// Lanes of each group as masks, and the number of banks.
#[derive(Debug)]
pub(super) struct Grouping {
    groups: &'static [u64],
    banks: u32,
}

const fn consecutive<const N: usize>() -> [u64; N] {
    let (mut groups, mut index) = ([0; N], 0);
    while index < N {
        groups[index] = (u64::MAX >> (64 - 64 / N)) << (index * 64 / N);
        index += 1;
    }
    groups
}

const fn lanes(ranges: &[(u32, u32)]) -> u64 {
    let (mut mask, mut index) = (0, 0);
    while index < ranges.len() {
        let (first, last) = ranges[index];
        mask |= (u64::MAX >> (63 - (last - first))) << first;
        index += 1;
    }
    mask
}

static TWO: [u64; 2] = consecutive();
static FOUR: [u64; 4] = consecutive();
static EIGHT: [u64; 8] = consecutive();
static READ_B128: [u64; 8] = [
    lanes(&[(0, 3), (20, 23)]),
    lanes(&[(4, 7), (16, 19)]),
    lanes(&[(8, 11), (28, 31)]),
    lanes(&[(12, 15), (24, 27)]),
    lanes(&[(32, 35), (52, 55)]),
    lanes(&[(36, 39), (48, 51)]),
    lanes(&[(40, 43), (60, 63)]),
    lanes(&[(44, 47), (56, 59)]),
];
static READ_B128_GFX950: [u64; 4] = [
    lanes(&[(0, 3), (12, 15), (20, 27)]),
    lanes(&[(4, 11), (16, 19), (28, 31)]),
    lanes(&[(32, 35), (44, 47), (52, 59)]),
    lanes(&[(36, 43), (48, 51), (60, 63)]),
];

impl Grouping {
    /// Groups of an access of `dwords` dwords per lane.
    pub fn of(arch: Arch, kind: LdsKind, dwords: u32) -> Grouping {
        let reads = matches!(kind, LdsKind::Read);
        let (groups, banks): (&[u64], u32) = match (dwords, reads, arch) {
            (0 | 1, ..) => (&TWO, 32),
            (2, true, Arch::Gfx950) => (&TWO, 64),
            (2, ..) => (&FOUR, 32),
            (4, true, Arch::Gfx950) => (&READ_B128_GFX950, 64),
            (_, true, _) => (&READ_B128, 32),
            (_, false, _) => (&EIGHT, 32),
        };
        Grouping { groups, banks }
    }

    /// Clk that the banks are busy, and how many it would be if no two lanes of a group were in each other's way.
    pub fn busy(&self, active: u64, address: &[u64; LANES], dwords: u32) -> (u32, u32) {
        let (mut busy, mut ideal) = (0, 0);
        for &group in self.groups {
            let mut left = group & active;
            if left == 0 {
                continue;
            }
            // Distinct dwords per bank as chains of entries.
            let mut heads = [0u8; 64];
            let mut counts = [0u32; 64];
            let mut entries = [(0u64, 0u8); 129];
            let (mut used, mut most) = (0usize, 1);
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                left &= left - 1;
                for dword in 0..u64::from(dwords) {
                    let dword = address[lane] / 4 + dword;
                    let bank = (dword % u64::from(self.banks)) as usize;
                    let mut at = heads[bank];
                    while at != 0 && entries[usize::from(at)].0 != dword {
                        at = entries[usize::from(at)].1;
                    }
                    if at == 0 && used < 128 {
                        used += 1;
                        entries[used] = (dword, heads[bank]);
                        heads[bank] = used as u8;
                        counts[bank] += 1;
                        most = most.max(counts[bank]);
                    }
                }
            }
            busy += most;
            ideal += (used as u32).div_ceil(self.banks).max(1);
        }
        (busy, ideal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stride(dwords: u64) -> [u64; LANES] {
        std::array::from_fn(|lane| 4 * dwords * lane as u64)
    }

    #[test]
    fn groups_cover_each_lane_once() {
        for arch in [Arch::Gfx90a, Arch::Gfx942, Arch::Gfx950] {
            for kind in [LdsKind::Read, LdsKind::Write] {
                for dwords in 1..=4 {
                    let groups = Grouping::of(arch, kind, dwords).groups;
                    assert_eq!(groups.iter().map(|g| g.count_ones()).sum::<u32>(), 64);
                    assert_eq!(groups.iter().fold(0, |all, g| all | g), u64::MAX);
                }
            }
        }
    }

    #[test]
    fn strides_of_dwords_conflict_by_their_power_of_two() {
        let grouping = Grouping::of(Arch::Gfx942, LdsKind::Read, 1);
        for (dwords, expected) in [(1, 2), (2, 4), (3, 2), (4, 8), (8, 16), (16, 32), (32, 64)] {
            assert_eq!(grouping.busy(u64::MAX, &stride(dwords), 1).0, expected, "stride {dwords}");
        }
        assert_eq!(grouping.busy(u64::MAX, &[8; LANES], 1).0, 2, "the same dword is read once");
        assert_eq!(grouping.busy(1, &stride(32), 1).0, 1, "one lane");
    }

    #[test]
    fn consecutive_b128_is_free_of_conflicts() {
        for (arch, expected) in [(Arch::Gfx942, 8), (Arch::Gfx950, 4)] {
            let grouping = Grouping::of(arch, LdsKind::Read, 4);
            assert_eq!(grouping.busy(u64::MAX, &stride(4), 4), (expected, expected));
        }
        let write = Grouping::of(Arch::Gfx942, LdsKind::Write, 4);
        assert_eq!(write.busy(u64::MAX, &stride(4), 4), (8, 8));
        assert_eq!(write.busy(u64::MAX, &stride(32), 4), (64, 8), "all lanes of a group in four banks");
    }
}
