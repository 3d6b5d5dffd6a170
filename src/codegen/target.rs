//! The chips we compile for, as a table of data sheets, and the occupancy that follows from them.
//!
//! A target is data: code asks the record for a size, a limit or a property and never compares names. Sources of the
//! numbers: LLVM's "User Guide for AMDGPU Backend" (sections "Processors", "Code Object V3 and Above Kernel
//! Descriptor", "VGPR/SGPR allocation"), `AMDGPUBaseInfo.cpp` of LLVM (register file limits, LDS sizes), and AMD's
//! CDNA2, CDNA3 and CDNA4 instruction set guides.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use super::isa::Arch;

/// Data sheet of one chip. Sizes are in bytes, registers are 32-bit registers per lane (VGPR) or per wave (SGPR).
#[derive(Debug)]
pub struct TargetInfo {
    /// Processor name as LLVM and HIP spell it.
    pub name: &'static str,
    /// Its instruction set.
    pub arch: Arch,
    /// `EF_AMDGPU_MACH` number in the code object's `e_flags`.
    pub elf_machine: u32,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// SIMD units of a compute unit.
    pub simds_per_compute_unit: u32,
    /// Waves that a SIMD unit can hold.
    pub max_waves_per_simd: u32,
    /// VGPRs that a SIMD unit has per lane; one wave may take all of them.
    pub vgpr_file: u32,
    /// VGPRs are allocated in multiples of this.
    pub vgpr_granule: u32,
    /// Architectural VGPRs that an instruction can name; as many AGPRs beside them.
    pub addressable_vgprs: u32,
    /// The first AGPR of a wave sits at a multiple of this behind its architectural VGPRs.
    pub accum_offset_granule: u32,
    /// SGPRs of a SIMD unit.
    pub sgpr_file: u32,
    /// The descriptor counts SGPRs in this unit.
    pub sgpr_encoding_granule: u32,
    /// SGPRs that an instruction can name as `s0`, `s1`, ...
    pub addressable_sgprs: u32,
    /// SGPRs above the named ones that every kernel pays for: VCC, and the XNACK mask because our objects run with
    /// XNACK in either mode.
    pub reserved_sgprs: u32,
    /// The same for a kernel that uses scratch.
    pub reserved_sgprs_with_scratch: u32,
    /// User SGPRs that a kernel can ask for.
    pub max_user_sgprs: u32,
    /// How scratch memory is found.
    pub flat_scratch: FlatScratch,
    /// LDS of a compute unit.
    pub lds_bytes: u32,
    /// LDS is allocated in multiples of this.
    pub lds_granule: u32,
    /// LDS that one workgroup may have.
    pub max_lds_per_workgroup: u32,
    /// Work-items that one workgroup may have.
    pub max_workgroup_size: u32,
    /// Workgroups of more than one wave that a compute unit can hold (each needs a barrier).
    pub barriers_per_compute_unit: u32,
}

/// How a wave finds its scratch memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FlatScratch {
    /// The hardware knows the base: no register, no prologue.
    Architected,
    /// The kernel receives base and wave offset in SGPRs and adds them in its prologue.
    Absolute,
}

const GFX90A: TargetInfo = TargetInfo {
    name: "gfx90a",
    arch: Arch::Gfx90a,
    elf_machine: 0x3f,
    wave_size: 64,
    simds_per_compute_unit: 4,
    max_waves_per_simd: 8,
    vgpr_file: 512,
    vgpr_granule: 8,
    addressable_vgprs: 256,
    accum_offset_granule: 4,
    sgpr_file: 800,
    sgpr_encoding_granule: 8,
    addressable_sgprs: 102,
    reserved_sgprs: 4,
    reserved_sgprs_with_scratch: 6,
    max_user_sgprs: 16,
    flat_scratch: FlatScratch::Absolute,
    lds_bytes: 65_536,
    lds_granule: 512,
    max_lds_per_workgroup: 65_536,
    max_workgroup_size: 1024,
    barriers_per_compute_unit: 16,
};

const GFX942: TargetInfo = TargetInfo {
    name: "gfx942",
    arch: Arch::Gfx942,
    elf_machine: 0x4c,
    reserved_sgprs: 6,
    flat_scratch: FlatScratch::Architected,
    ..GFX90A
};

const GFX950: TargetInfo = TargetInfo {
    name: "gfx950",
    arch: Arch::Gfx950,
    elf_machine: 0x4f,
    lds_bytes: 163_840,
    lds_granule: 1280,
    max_lds_per_workgroup: 163_840,
    ..GFX942
};

/// A chip to compile for: a handle to its [`TargetInfo`], which it dereferences to. Equality, order and hash are
/// those of the name.
#[derive(Copy, Clone)]
pub struct Target(&'static TargetInfo);

impl Target {
    /// CDNA 2: Instinct MI210, MI250, MI250X.
    pub const GFX90A: Target = Target(&GFX90A);
    /// CDNA 3: Instinct MI300A, MI300X, MI325X.
    pub const GFX942: Target = Target(&GFX942);
    /// CDNA 4: Instinct MI350X, MI355X.
    pub const GFX950: Target = Target(&GFX950);
    /// Every target, oldest first.
    pub const ALL: [Target; 3] = [Self::GFX90A, Self::GFX942, Self::GFX950];

    /// The target of that processor name.
    pub fn from_name(name: &str) -> Option<Target> {
        Self::ALL.into_iter().find(|target| target.name == name)
    }

    /// The target of that `EF_AMDGPU_MACH` number.
    pub fn from_elf_machine(machine: u32) -> Option<Target> {
        Self::ALL.into_iter().find(|target| target.elf_machine == machine)
    }
}

impl Deref for Target {
    type Target = TargetInfo;

    fn deref(&self) -> &TargetInfo {
        self.0
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Target) -> bool {
        self.name == other.name
    }
}

impl Eq for Target {}

impl PartialOrd for Target {
    fn partial_cmp(&self, other: &Target) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Target {
    fn cmp(&self, other: &Target) -> std::cmp::Ordering {
        self.name.cmp(other.name)
    }
}

impl Hash for Target {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What keeps more waves from being resident.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
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
    /// The `e_flags` of an object that loads with XNACK and SRAM-ECC in either mode.
    pub const fn elf_flags(&self) -> u32 {
        const XNACK_ANY: u32 = 0x100;
        const SRAMECC_ANY: u32 = 0x400;
        self.elf_machine | XNACK_ANY | SRAMECC_ANY
    }

    /// The target's name in metadata and assembler text, XNACK and SRAM-ECC left open.
    pub fn target_id(&self) -> String {
        format!("amdgcn-amd-amdhsa--{}", self.name)
    }

    /// VGPRs that a wave takes of the unified file: architectural ones, and behind them, at
    /// [`accum_offset`](Self::accum_offset), the AGPRs.
    pub const fn unified_vgprs(&self, vgprs: u32, agprs: u32) -> u32 {
        if agprs == 0 { at_least_one(vgprs) } else { self.accum_offset(vgprs).saturating_add(agprs) }
    }

    /// Index of the first AGPR in the unified file.
    pub const fn accum_offset(&self, vgprs: u32) -> u32 {
        at_least_one(vgprs).div_ceil(self.accum_offset_granule).saturating_mul(self.accum_offset_granule)
    }

    /// How many workgroups and waves are resident when a wave needs `vgprs` of the unified file and `sgprs` (reserved
    /// ones included), a workgroup `lds_bytes` and `waves_per_workgroup`.
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

const fn at_least_one(n: u32) -> u32 {
    if n == 0 { 1 } else { n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_machine_numbers_find_their_target() {
        for target in Target::ALL {
            assert_eq!(Target::from_name(target.name), Some(target));
            assert_eq!(Target::from_elf_machine(target.elf_machine), Some(target));
        }
        assert_eq!(Target::from_name("gfx1100"), None);
        assert_eq!(Target::GFX942.elf_flags(), 0x54c);
        assert_ne!(Target::GFX942, Target::GFX950);
    }

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
        let small_groups = TargetInfo { barriers_per_compute_unit: 8, ..GFX942 }.occupancy(32, 32, 0, 2);
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
