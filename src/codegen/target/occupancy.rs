//! Occupancy: how much of a kernel a compute unit holds at a time, and what limits it.
//!
//! Source of the limits: LLVM's "User Guide for AMDGPU Backend" and `AMDGPUSubtarget.cpp`,
//! `getOccupancyWithNumSGPRs` and `getOccupancyWithNumVGPRs`.

use std::fmt;

use super::{TargetInfo, at_least_one};

/// What limits the number of resident waves.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum OccupancyLimit {
    /// The wave slots of the SIMD units.
    Waves,
    /// Vector registers.
    Vgprs,
    /// Scalar registers.
    Sgprs,
    /// Local data share.
    Lds,
    /// Barriers of the compute unit: too many small workgroups.
    Barriers,
}

impl fmt::Display for OccupancyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OccupancyLimit::Waves => "wave slots",
            OccupancyLimit::Vgprs => "VGPRs",
            OccupancyLimit::Sgprs => "SGPRs",
            OccupancyLimit::Lds => "LDS",
            OccupancyLimit::Barriers => "barriers",
        })
    }
}

/// How much of a kernel a compute unit holds at a time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// Workgroups resident on a compute unit; 0 when not even one fits.
    pub workgroups_per_compute_unit: u32,
    /// Waves resident on the fullest SIMD unit.
    pub waves_per_simd: u32,
    /// The resource that runs out first (in the order of [`OccupancyLimit`] when several do).
    pub limited_by: OccupancyLimit,
}

impl TargetInfo {
    /// How many workgroups and waves are resident when a wave needs `vgprs` (as
    /// [`total_vgprs`](Self::total_vgprs) counts them) and `sgprs` (reserved ones included), a workgroup
    /// `lds_bytes` and `waves_per_workgroup`.
    pub fn occupancy(&self, vgprs: u32, sgprs: u32, lds_bytes: u32, waves_per_workgroup: u32) -> Occupancy {
        let waves_per_workgroup = at_least_one(waves_per_workgroup);
        let workgroups =
            |waves_per_simd: u32| waves_per_simd * self.simds_per_compute_unit / waves_per_workgroup;
        let allocated_vgprs = u64::from(at_least_one(vgprs)).next_multiple_of(self.vgpr_granule.into());
        let by_vgprs = u64::from(self.vgpr_file) / allocated_vgprs;
        let by_lds = match u64::from(lds_bytes).next_multiple_of(self.lds_granule.into()) {
            0 => u32::MAX,
            allocated => (u64::from(self.lds_bytes) / allocated) as u32,
        };
        let by_barriers = if waves_per_workgroup > 1 { self.barriers_per_compute_unit } else { u32::MAX };
        let limits = [
            (OccupancyLimit::Waves, workgroups(self.max_waves_per_simd)),
            (OccupancyLimit::Vgprs, workgroups(by_vgprs as u32)),
            (OccupancyLimit::Sgprs, workgroups(self.sgpr_file / at_least_one(sgprs))),
            (OccupancyLimit::Lds, by_lds),
            (OccupancyLimit::Barriers, by_barriers),
        ];
        let (mut limited_by, mut least) = limits[0];
        for (limit, workgroups) in limits {
            if workgroups < least {
                (limited_by, least) = (limit, workgroups);
            }
        }
        Occupancy {
            workgroups_per_compute_unit: least,
            waves_per_simd: (least * waves_per_workgroup).div_ceil(self.simds_per_compute_unit),
            limited_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::target::Target;

    /// Breakpoints of the User Guide's occupancy table for a 512 VGPR file with granule 8.
    #[test]
    fn vgpr_breakpoints() {
        let table = [(64, 8), (72, 7), (80, 6), (96, 5), (128, 4), (168, 3), (256, 2), (512, 1)];
        let mut first = 1;
        for (last, waves) in table {
            for vgprs in first..=last {
                let occupancy = Target::GFX942.occupancy(vgprs, 32, 0, 4);
                assert_eq!(occupancy.waves_per_simd, waves, "{vgprs} VGPRs");
                let expected = if waves == 8 { OccupancyLimit::Waves } else { OccupancyLimit::Vgprs };
                assert_eq!(occupancy.limited_by, expected, "{vgprs} VGPRs");
            }
            first = last + 1;
        }
        assert_eq!(Target::GFX942.occupancy(513, 32, 0, 4).workgroups_per_compute_unit, 0);
    }

    /// The same table for a 256 VGPR file with granule 4.
    #[test]
    fn vgpr_breakpoints_of_smaller_files() {
        let table =
            [(24, 10), (28, 9), (32, 8), (36, 7), (40, 6), (48, 5), (64, 4), (84, 3), (128, 2), (256, 1)];
        let mut first = 1;
        for (last, waves) in table {
            for vgprs in first..=last {
                assert_eq!(Target::GFX908.occupancy(vgprs, 32, 0, 1).waves_per_simd, waves, "{vgprs} VGPRs");
            }
            first = last + 1;
        }
        for (sgprs, waves) in [(80, 10), (88, 9), (100, 8), (108, 7)] {
            assert_eq!(Target::GFX906.occupancy(1, sgprs, 0, 1).waves_per_simd, waves, "{sgprs} SGPRs");
        }
    }

    #[test]
    fn sgprs_lds_and_barriers_limit() {
        let t = Target::GFX942;
        assert_eq!(t.occupancy(32, 100, 0, 4).waves_per_simd, 8);
        let by_sgprs = t.occupancy(32, 108, 0, 4);
        assert_eq!((by_sgprs.waves_per_simd, by_sgprs.limited_by), (7, OccupancyLimit::Sgprs));
        let by_lds = t.occupancy(32, 32, 32_768, 4);
        assert_eq!((by_lds.workgroups_per_compute_unit, by_lds.waves_per_simd), (2, 2));
        assert_eq!(by_lds.limited_by, OccupancyLimit::Lds);
        assert_eq!(t.occupancy(32, 32, 32_769, 4).workgroups_per_compute_unit, 1);
        assert_eq!(t.occupancy(32, 32, 65_537, 4).workgroups_per_compute_unit, 0);
        assert_eq!(Target::GFX950.occupancy(32, 32, 65_537, 4).workgroups_per_compute_unit, 2);
        assert_eq!(t.occupancy(32, 32, 0, 1).limited_by, OccupancyLimit::Waves);
        let small_groups =
            TargetInfo { barriers_per_compute_unit: 8, ..*Target::GFX942 }.occupancy(32, 32, 0, 2);
        assert_eq!((small_groups.waves_per_simd, small_groups.limited_by), (4, OccupancyLimit::Barriers));
    }

    /// Two waves at least: more than the slots of one SIMD unit hold when a workgroup is odd.
    #[test]
    fn whole_workgroups_only() {
        let occupancy = Target::GFX942.occupancy(256, 32, 0, 5);
        assert_eq!(occupancy.workgroups_per_compute_unit, 1);
        assert_eq!(occupancy.waves_per_simd, 2);
        assert_eq!(occupancy.limited_by, OccupancyLimit::Vgprs);
        assert_eq!(Target::GFX942.occupancy(512, 32, 0, 5).workgroups_per_compute_unit, 0);
    }

    #[test]
    fn absurd_requests_do_not_overflow() {
        let occupancy = Target::GFX942.occupancy(u32::MAX, u32::MAX, u32::MAX, u32::MAX);
        assert_eq!(occupancy.workgroups_per_compute_unit, 0);
        assert_eq!(Target::GFX942.occupancy(0, 0, 0, 0).waves_per_simd, 8);
    }
}
