//! LDS bank conflicts, computed from the addresses a wave presents.
//!
//! LDS serves the lanes of an access in groups; inside a group each bank serves one dword per cycle, and lanes
//! that touch the same dword are served together. Which lanes form a group depends on target, width and direction.

/// Direction of an LDS access.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum LdsAccess {
    /// `ds_read_*`
    Read,
    /// `ds_write_*`
    Write,
}

/// Which lanes are served together.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Groups {
    /// So many consecutive lanes.
    Consecutive(u32),
    /// Runs of four lanes, by their number (`lane / 4`); each inner list is one group.
    Quads(&'static [&'static [u32]]),
}

/// How a target serves one kind of access.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Rule {
    access: LdsAccess,
    /// The widest access that this row is for, in bytes; narrower ones have rows before it.
    width: u32,
    banks: u32,
    groups: Groups,
}

/// The bank rules of a target.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LdsRules {
    rows: &'static [Rule],
}

const fn rule(access: LdsAccess, width: u32, banks: u32, groups: Groups) -> Rule {
    Rule { access, width, banks, groups }
}

/// Lanes {0-3, 20-23}, {4-7, 16-19}, {8-11, 28-31}, {12-15, 24-27}, and the same 32 lanes on.
const READ_B128_GFX942: Groups =
    Groups::Quads(&[&[0, 5], &[1, 4], &[2, 7], &[3, 6], &[8, 13], &[9, 12], &[10, 15], &[11, 14]]);

/// Lanes {0-3, 12-15, 20-27}, {4-11, 16-19, 28-31}, and the same 32 lanes on.
const READ_B128_GFX950: Groups =
    Groups::Quads(&[&[0, 3, 5, 6], &[1, 2, 4, 7], &[8, 11, 13, 14], &[9, 10, 12, 15]]);

impl LdsRules {
    /// gfx942, and gfx90a by analogy. The lane groups of 16-byte accesses were measured on MI300 and stand in
    /// composable_kernel; 8-byte reads were measured; 12-byte accesses are taken to be served as 16-byte ones.
    pub const GFX942: LdsRules = LdsRules {
        rows: &[
            rule(LdsAccess::Read, 4, 32, Groups::Consecutive(32)),
            rule(LdsAccess::Read, 8, 32, Groups::Consecutive(16)),
            rule(LdsAccess::Read, 16, 32, READ_B128_GFX942),
            rule(LdsAccess::Write, 4, 32, Groups::Consecutive(32)),
            rule(LdsAccess::Write, 8, 32, Groups::Consecutive(16)),
            rule(LdsAccess::Write, 16, 32, Groups::Consecutive(8)),
        ],
    };

    /// gfx950: 64 banks for 8-byte and 16-byte reads, 32 otherwise.
    pub const GFX950: LdsRules = LdsRules {
        rows: &[
            rule(LdsAccess::Read, 4, 32, Groups::Consecutive(32)),
            rule(LdsAccess::Read, 8, 64, Groups::Consecutive(32)),
            rule(LdsAccess::Read, 12, 32, READ_B128_GFX942),
            rule(LdsAccess::Read, 16, 64, READ_B128_GFX950),
            rule(LdsAccess::Write, 4, 32, Groups::Consecutive(32)),
            rule(LdsAccess::Write, 8, 32, Groups::Consecutive(16)),
            rule(LdsAccess::Write, 16, 32, Groups::Consecutive(8)),
        ],
    };

    fn row(&self, access: LdsAccess, width: u32) -> Option<&'static Rule> {
        self.rows.iter().find(|row| row.access == access && width <= row.width)
    }

    /// What an access of `width` bytes (1, 2, 4, 8, 12 or 16) by a wave costs. `address` gives the byte address of each
    /// of the 64 lanes, or nothing for an inactive one. `None` if there is no access of that width.
    pub fn conflicts(
        &self,
        access: LdsAccess,
        width: u32,
        mut address: impl FnMut(u32) -> Option<u32>,
    ) -> Option<Conflicts> {
        let rule = self.row(access, width).filter(|_| matches!(width, 1 | 2 | 4 | 8 | 12 | 16))?;
        let addresses: [Option<u32>; 64] = std::array::from_fn(|lane| address(lane as u32));
        let mut conflicts = Conflicts { degree: 1, cycles: 0 };
        let mut banks = Banks { count: rule.banks, dwords: [[0; 32]; 64], counts: [0; 64], busiest: 0 };
        let mut end = |banks: &mut Banks| {
            conflicts.degree = conflicts.degree.max(banks.busiest);
            conflicts.cycles += banks.busiest;
            (banks.counts, banks.busiest) = ([0; 64], 0);
        };
        match rule.groups {
            Groups::Consecutive(size) => {
                for lanes in addresses.chunks_exact(size as usize) {
                    banks.serve(lanes, width);
                    end(&mut banks);
                }
            }
            Groups::Quads(groups) => {
                for quads in groups {
                    for &quad in *quads {
                        banks.serve(&addresses[4 * quad as usize..][..4], width);
                    }
                    end(&mut banks);
                }
            }
        }
        Some(conflicts)
    }
}

/// The distinct dwords that one group of lanes wants of each bank.
struct Banks {
    count: u32,
    /// No group has more than 32 lanes, and a lane takes at most one dword of a bank.
    dwords: [[u32; 32]; 64],
    counts: [u8; 64],
    /// The most of one bank.
    busiest: u32,
}

impl Banks {
    /// Adds what these lanes want to that of the others of their group.
    fn serve(&mut self, lanes: &[Option<u32>], width: u32) {
        for address in lanes.iter().flatten() {
            for dword in address / 4..=address.saturating_add(width - 1) / 4 {
                let bank = (dword % self.count) as usize;
                let known = self.counts[bank] as usize;
                if !self.dwords[bank][..known].contains(&dword) {
                    self.dwords[bank][known] = dword;
                    self.counts[bank] += 1;
                    self.busiest = self.busiest.max(known as u32 + 1);
                }
            }
        }
    }
}

/// What bank conflicts cost one access of one wave.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Conflicts {
    /// The most distinct dwords that one group of lanes wants of one bank: 1 is free of conflicts.
    pub degree: u32,
    /// Cycles the banks need: for each group its degree, summed.
    pub cycles: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: LdsRules = LdsRules::GFX942;

    fn degree(access: LdsAccess, width: u32, address: impl Fn(u32) -> u32) -> u32 {
        RULES.conflicts(access, width, |lane| Some(address(lane))).expect("a width there is").degree
    }

    #[test]
    fn dword_strides_conflict_by_their_common_factor_with_the_banks() {
        for (stride, expected) in [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1)] {
            assert_eq!(degree(LdsAccess::Read, 4, |lane| lane * stride * 4), expected, "stride {stride}");
        }
        // Measured: a fully conflicting read takes 64 cycles.
        let worst = RULES.conflicts(LdsAccess::Read, 4, |lane| Some(lane * 128));
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
        assert_eq!(RULES.conflicts(LdsAccess::Read, 5, Some), None);
        let idle = RULES.conflicts(LdsAccess::Read, 4, |_| None);
        assert_eq!(idle, Some(Conflicts { degree: 1, cycles: 0 }));
    }

    #[test]
    fn every_lane_is_in_exactly_one_group() {
        for rule in LdsRules::GFX942.rows.iter().chain(LdsRules::GFX950.rows) {
            if let Groups::Quads(groups) = rule.groups {
                let mut quads: Vec<u32> = groups.iter().flat_map(|quads| quads.iter().copied()).collect();
                quads.sort_unstable();
                assert_eq!(quads, (0..16).collect::<Vec<_>>());
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
        // Each lane of a 32x32x8 operand of f16 reads 8 bytes: rows go with the lane, the upper half of the lanes is one unit on.
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
