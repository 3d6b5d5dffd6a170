//! LDS bank conflicts, computed from the addresses that a wave presents.
//!
//! LDS serves the lanes of an access in groups; inside a group each bank serves one dword per cycle, and
//! lanes that touch the same dword are served together. Which lanes form a group depends on target, width and
//! direction; the tables here are read by the passes that arrange LDS and by time mode.

use super::Confidence;

/// Direction of an LDS access.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum LdsAccess {
    /// `ds_read_*`
    Read,
    /// `ds_write_*`
    Write,
}

/// How a target serves one kind of access.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct LdsServiceRule {
    access: LdsAccess,
    /// The widest access of this row, in bytes; narrower ones have rows before it.
    width: u32,
    grouping: LdsGrouping,
    /// How far the lane groups can be trusted, and where they come from.
    origin: (Confidence, &'static str),
}

/// Lanes that are served together, and the banks that serve them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LdsGrouping {
    /// The lanes of each group as a mask.
    pub groups: &'static [u64],
    /// Banks of a dword each.
    pub banks: u32,
}

/// The bank rules of a target.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LdsRules {
    rows: &'static [LdsServiceRule],
}

const fn rule<const N: usize>(
    access: LdsAccess,
    width: u32,
    banks: u32,
    groups: &'static [u64; N],
    confidence: Confidence,
    source: &'static str,
) -> LdsServiceRule {
    LdsServiceRule { access, width, grouping: LdsGrouping { groups, banks }, origin: (confidence, source) }
}

/// Groups of consecutive lanes.
const fn consecutive<const N: usize>() -> [u64; N] {
    let (mut groups, mut index) = ([0; N], 0);
    while index < N {
        groups[index] = (u64::MAX >> (64 - 64 / N)) << (index * 64 / N);
        index += 1;
    }
    groups
}

/// Groups of ranges of the first 32 lanes, and the same of the last 32.
const fn twice<const R: usize, const N: usize, const ALL: usize>(ranges: [[(u32, u32); R]; N]) -> [u64; ALL] {
    assert!(ALL == 2 * N);
    let (mut groups, mut index) = ([0; ALL], 0);
    while index < N {
        let mut range = 0;
        while range < R {
            let (first, last) = ranges[index][range];
            groups[index] |= (u64::MAX >> (63 - (last - first))) << first;
            range += 1;
        }
        groups[index + N] = groups[index] << 32;
        index += 1;
    }
    groups
}

static TWO: [u64; 2] = consecutive();
static FOUR: [u64; 4] = consecutive();
static EIGHT: [u64; 8] = consecutive();
static EIGHT_OF_QUADS: [u64; 8] =
    twice([[(0, 3), (20, 23)], [(4, 7), (16, 19)], [(8, 11), (28, 31)], [(12, 15), (24, 27)]]);
static FOUR_OF_QUADS: [u64; 4] = twice([[(0, 3), (12, 15), (20, 27)], [(4, 11), (16, 19), (28, 31)]]);

use Confidence::{High as H, Low as L, Medium as M, Unknown as U};
use LdsAccess::{Read, Write};

/// 32 banks. The groups were measured on gfx942; for older chips they are assumed. CK: AMD's article on bank
/// conflicts in Composable Kernel.
pub(super) static BANKS_32: LdsRules = LdsRules {
    rows: &[
        rule(Read, 4, 32, &TWO, M, "PYHIP"),
        rule(Read, 8, 32, &FOUR, M, "PYHIP"),
        rule(Read, 12, 32, &EIGHT_OF_QUADS, U, "assumed"),
        rule(Read, 16, 32, &EIGHT_OF_QUADS, H, "PYHIP, CK"),
        rule(Write, 4, 32, &TWO, M, "PYHIP"),
        rule(Write, 8, 32, &FOUR, L, "as reads"),
        rule(Write, 12, 32, &EIGHT, U, "assumed"),
        rule(Write, 16, 32, &EIGHT, H, "PYHIP, CK"),
    ],
};

/// 64 banks for reads of 8 and 16 bytes, 32 otherwise. Wave: documentation of the Wave compiler; HK:
/// HipKittens.
pub(super) static BANKS_64: LdsRules = LdsRules {
    rows: &[
        rule(Read, 4, 32, &TWO, M, "ROCR"),
        rule(Read, 8, 64, &TWO, M, "HK, Wave"),
        rule(Read, 12, 32, &EIGHT_OF_QUADS, M, "HK"),
        rule(Read, 16, 64, &FOUR_OF_QUADS, H, "HK, Wave"),
        rule(Write, 4, 32, &TWO, M, "ROCR"),
        rule(Write, 8, 32, &FOUR, M, "HK"),
        rule(Write, 12, 32, &EIGHT, U, "assumed"),
        rule(Write, 16, 32, &EIGHT, U, "assumed"),
    ],
};

impl LdsRules {
    fn row(&self, access: LdsAccess, width: u32) -> Option<&'static LdsServiceRule> {
        self.rows.iter().find(|row| row.access == access && width <= row.width)
    }

    /// How lanes are served in an access of this many bytes per lane; wider accesses than exist count as the
    /// widest.
    pub fn grouping(&self, access: LdsAccess, width: u32) -> LdsGrouping {
        let row = self.row(access, width.min(16));
        row.map_or(LdsGrouping { groups: &EIGHT, banks: 32 }, |row| row.grouping)
    }

    /// Bytes that all banks hold side by side, as writes of a dword find them.
    pub(crate) fn row_bytes(&self) -> u32 {
        4 * self.grouping(LdsAccess::Write, 4).banks
    }

    /// The cost of an access of `width` bytes (1, 2, 4, 8, 12 or 16) by a wave, from the byte address of each
    /// lane. `None` if there is no access of that width.
    pub fn conflicts(&self, access: LdsAccess, width: u32, addresses: &[u32; 64]) -> Option<Conflicts> {
        let grouping = self.known(access, width)?;
        let mut banks = Banks::new(grouping, width, addresses);
        let mut conflicts = Conflicts { degree: 1, cycles: 0 };
        for &group in grouping.groups {
            let busiest = banks.serve(group, addresses, u32::MAX);
            conflicts.degree = conflicts.degree.max(busiest);
            conflicts.cycles += busiest;
        }
        Some(conflicts)
    }

    /// The degree of [`Conflicts`], or the first above `most` that is found.
    pub fn degree(&self, access: LdsAccess, width: u32, addresses: &[u32; 64], most: u32) -> Option<u32> {
        let grouping = self.known(access, width)?;
        let mut banks = Banks::new(grouping, width, addresses);
        let mut degree = 1;
        for &group in grouping.groups {
            degree = degree.max(banks.serve(group, addresses, most));
            if degree > most {
                break;
            }
        }
        Some(degree)
    }

    fn known(&self, access: LdsAccess, width: u32) -> Option<LdsGrouping> {
        let row = self.row(access, width).filter(|_| matches!(width, 1 | 2 | 4 | 8 | 12 | 16))?;
        Some(row.grouping)
    }
}

/// The distinct pieces of LDS that one group of lanes needs from each bank, as chains.
struct Banks {
    width: u32,
    /// Bytes of a piece, as a power of two: a dword, or the whole access where all of them are aligned. Their
    /// dwords are in the same banks then, so one stands for all.
    piece: u32,
    /// Banks that a piece can begin in, less one.
    mask: u32,
    /// Last entry of each bank, by number from one on.
    last: [u8; 64],
    /// Entries: piece, depth in its chain, the one before. A lane has at most four pieces, and a group at
    /// most 32 lanes.
    entries: [(u32, u8, u8); 129],
}

impl Banks {
    fn new(grouping: LdsGrouping, width: u32, addresses: &[u32; 64]) -> Banks {
        let bits = addresses.iter().fold(0, |bits, address| bits | address);
        let whole = width.is_power_of_two() && width > 4 && bits & (width - 1) == 0;
        let piece = if whole { width.ilog2() } else { 2 };
        let mask = ((grouping.banks * 4) >> piece) - 1;
        Banks { width, piece, mask, last: [0; 64], entries: [(0, 0, 0); 129] }
    }

    /// The most pieces that a group of lanes needs from one bank, or the first number above `most` that is
    /// reached.
    fn serve(&mut self, group: u64, addresses: &[u32; 64], most: u32) -> u32 {
        self.last = [0; 64];
        let (mut used, mut busiest, mut left) = (0u8, 0, group);
        while left != 0 {
            let address = addresses[left.trailing_zeros() as usize];
            left &= left - 1;
            for piece in address >> self.piece..=address.saturating_add(self.width - 1) >> self.piece {
                let last = &mut self.last[(piece & self.mask) as usize];
                let mut at = *last;
                while at != 0 && self.entries[usize::from(at)].0 != piece {
                    at = self.entries[usize::from(at)].2;
                }
                if at == 0 {
                    let depth = self.entries[usize::from(*last)].1 + 1;
                    used += 1;
                    self.entries[usize::from(used)] = (piece, depth, *last);
                    *last = used;
                    busiest = busiest.max(u32::from(depth));
                    if busiest > most {
                        return busiest;
                    }
                }
            }
        }
        busiest
    }
}

/// The cost of bank conflicts for one access of one wave.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Conflicts {
    /// The most distinct dwords that one group of lanes needs from one bank: 1 means no conflicts.
    pub degree: u32,
    /// Cycles that the banks need: the sum of the degrees of all groups.
    pub cycles: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: LdsRules = BANKS_32;

    fn degree(access: LdsAccess, width: u32, address: impl Fn(u32) -> u32) -> u32 {
        let addresses = std::array::from_fn(|lane| address(lane as u32));
        let conflicts = RULES.conflicts(access, width, &addresses).expect("a width there is");
        let most = RULES.degree(access, width, &addresses, u32::MAX);
        assert_eq!(most, Some(conflicts.degree));
        // The shortcut gives the same result.
        assert!((1..=33).all(|most| {
            let found = RULES.degree(access, width, &addresses, most).expect("a width there is");
            found == conflicts.degree || (found > most && conflicts.degree > most)
        }));
        conflicts.degree
    }

    #[test]
    fn dword_strides_conflict_by_their_common_factor_with_the_banks() {
        for (stride, expected) in [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1)] {
            assert_eq!(degree(LdsAccess::Read, 4, |lane| lane * stride * 4), expected, "stride {stride}");
        }
        // Measured: a fully conflicting read takes 64 cycles.
        let worst = RULES.conflicts(LdsAccess::Read, 4, &std::array::from_fn(|lane| lane as u32 * 128));
        assert_eq!(worst, Some(Conflicts { degree: 32, cycles: 64 }));
    }

    #[test]
    fn one_dword_for_all_lanes_is_a_broadcast() {
        assert_eq!(degree(LdsAccess::Read, 4, |_| 64), 1);
        assert_eq!(degree(LdsAccess::Read, 2, |lane| lane * 2), 1);
        assert_eq!(degree(LdsAccess::Read, 1, |lane| lane % 2 * 128), 2);
    }

    #[test]
    fn consecutive_lanes_are_free_at_every_width() {
        for access in [LdsAccess::Read, LdsAccess::Write] {
            for width in [1, 2, 4, 8, 16] {
                assert_eq!(degree(access, width, |lane| lane * width), 1, "{access:?} of {width} bytes");
            }
        }
        // Lanes 0-3 and 20-23 of a 12-byte read share banks; eight consecutive lanes do not.
        assert_eq!(degree(LdsAccess::Read, 12, |lane| lane * 12), 2);
        assert_eq!(degree(LdsAccess::Write, 12, |lane| lane * 12), 1);
        assert_eq!(RULES.conflicts(LdsAccess::Read, 5, &[0; 64]), None);
    }

    #[test]
    fn every_lane_is_in_exactly_one_group() {
        for rule in BANKS_32.rows.iter().chain(BANKS_64.rows) {
            let groups = rule.grouping.groups;
            assert_eq!(groups.iter().map(|group| group.count_ones()).sum::<u32>(), 64);
            assert_eq!(groups.iter().fold(0, |all, group| all | group), u64::MAX);
            let (confidence, source) = rule.origin;
            assert_eq!(source == "assumed", confidence == Confidence::Unknown, "{rule:?}");
        }
    }

    /// Against a count of dwords per bank, for aligned and other addresses of every width.
    #[test]
    fn random_addresses_cost_what_counting_says() {
        let mut random = 1u32;
        for round in 0..2000 {
            let mut next = |below: u32| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (random >> 8) % below
            };
            let width = [1, 2, 4, 8, 12, 16][next(6) as usize];
            let step = [1, 4, width, 64, 128][next(5) as usize];
            let addresses: [u32; 64] = std::array::from_fn(|_| next(512) * step);
            let access = if next(2) == 0 { LdsAccess::Read } else { LdsAccess::Write };
            for rules in [&BANKS_32, &BANKS_64] {
                let LdsGrouping { groups, banks } = rules.grouping(access, width);
                let mut cycles = 0;
                for group in groups {
                    let lanes = (0..64).filter(|lane| group >> lane & 1 != 0);
                    let mut dwords: Vec<u32> = lanes
                        .flat_map(|lane| addresses[lane] / 4..=(addresses[lane] + width - 1) / 4)
                        .collect();
                    dwords.sort_unstable();
                    dwords.dedup();
                    let of = |bank: u32| dwords.iter().filter(|&&dword| dword % banks == bank).count();
                    cycles += (0..banks).map(of).max().unwrap_or(0) as u32;
                }
                let found = rules.conflicts(access, width, &addresses).expect("a width there is");
                assert_eq!(found.cycles, cycles, "round {round}: {access:?} of {width} bytes");
            }
        }
    }

    #[test]
    fn groups_of_wide_reads_are_not_consecutive_lanes() {
        // Lane quads 0 and 5 are served together, so they must not meet in a bank; 0 and 4 may.
        let quads = |address: [u32; 8]| {
            move |lane: u32| lane / 32 * 512 + address[(lane / 4 % 8) as usize] + lane % 4 * 16
        };
        assert_eq!(degree(LdsAccess::Read, 16, quads([0, 0, 0, 0, 128, 128, 128, 128].map(|a| a * 4))), 2);
        assert_eq!(degree(LdsAccess::Read, 16, quads([0, 64, 0, 64, 0, 64, 0, 64])), 1);
    }

    #[test]
    fn a_swizzle_makes_fragment_reads_free_where_plain_rows_conflict() {
        // Each lane of a 32x32x8 operand of f16 reads 8 bytes: rows go with the lane, the upper half of the
        // lanes is one unit on.
        let cost = |pitch: u32, phases: u32| {
            degree(LdsAccess::Read, 8, |lane| {
                let (row, column) = (lane % 32, lane / 32 * 8);
                row * pitch + (column ^ (row % phases * 8))
            })
        };
        assert_eq!(cost(128, 1), 16);
        assert_eq!(cost(136, 1), 1);
        assert_eq!(cost(128, 16), 1);
        assert_eq!(cost(64, 1), 8);
        assert_eq!(cost(64, 8), 2);
    }
}
