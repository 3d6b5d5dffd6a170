//! Banks of LDS: which lanes of an access are served together, and how long the banks are busy with it.
//!
//! Lanes fall into groups that are served together ([`LdsRules`](crate::codegen::target::LdsRules)); inside a
//! group a bank gives one dword per clk, and lanes that want the same dword share it. Accesses of four dwords
//! whose addresses are no multiples of their size go one lane per clk (GT, measured on gfx950 for reads).

use crate::codegen::target::{LdsAccess, LdsGrouping, Target};

use super::super::wave::LANES;
use crate::codegen::target::LdsKind;

/// Lanes of each group as masks, and the number of banks.
#[derive(Debug)]
pub(super) struct Grouping(LdsGrouping);

impl Grouping {
    /// Groups of an access of `dwords` dwords per lane.
    pub(super) fn of(target: Target, kind: LdsKind, dwords: u32) -> Grouping {
        let access = match kind {
            LdsKind::Read => LdsAccess::Read,
            LdsKind::Write | LdsKind::Atomic | LdsKind::Permute => LdsAccess::Write,
        };
        Grouping(target.lds_rules.grouping(access, 4 * dwords))
    }

    /// Clk for which the banks are busy, and for how many they would be busy without conflicts within a
    /// group.
    pub(super) fn busy(&self, active: u64, address: &[u64; LANES], dwords: u32) -> (u32, u32) {
        let (mut busy, mut ideal) = (0, 0);
        let lanes = || (0..LANES).filter(|lane| active >> lane & 1 != 0);
        let misaligned = dwords == 4 && lanes().any(|lane| !address[lane].is_multiple_of(16));
        for &group in self.0.groups {
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
                    let bank = (dword % u64::from(self.0.banks)) as usize;
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
            ideal += (used as u32).div_ceil(self.0.banks).max(1);
        }
        (if misaligned { active.count_ones() } else { busy }, ideal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::target::Target;

    fn stride(dwords: u64) -> [u64; LANES] {
        std::array::from_fn(|lane| 4 * dwords * lane as u64)
    }

    #[test]
    fn strides_of_dwords_conflict_by_their_power_of_two() {
        let grouping = Grouping::of(Target::GFX942, LdsKind::Read, 1);
        for (dwords, expected) in [(1, 2), (2, 4), (3, 2), (4, 8), (8, 16), (16, 32), (32, 64)] {
            assert_eq!(grouping.busy(u64::MAX, &stride(dwords), 1).0, expected, "stride {dwords}");
        }
        assert_eq!(grouping.busy(u64::MAX, &[8; LANES], 1).0, 2, "the same dword is read once");
        assert_eq!(grouping.busy(1, &stride(32), 1).0, 1, "one lane");
    }

    #[test]
    fn consecutive_b128_is_free_of_conflicts() {
        for (target, expected) in [(Target::GFX942, 8), (Target::GFX950, 4)] {
            let grouping = Grouping::of(target, LdsKind::Read, 4);
            assert_eq!(grouping.busy(u64::MAX, &stride(4), 4), (expected, expected));
        }
        let write = Grouping::of(Target::GFX942, LdsKind::Write, 4);
        assert_eq!(write.busy(u64::MAX, &stride(4), 4), (8, 8));
        assert_eq!(write.busy(u64::MAX, &stride(32), 4), (64, 8), "all lanes of a group in four banks");
    }
}
