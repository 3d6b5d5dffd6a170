//! Every fact about the machines, in one place: what a chip has (`chips`), how fast the products with it are
//! (`parameters`, `older_devices`, `device_model`) at which clock (`clock`), what instructions cost by that
//! (`instruction_costs`), how LDS serves them (`lds_ports`, with `path_queue`) and which lanes it serves
//! together (`lds`), how lanes take registers of each other (`lane_moves`), which matrix instructions exist
//! and which others (`matrix`, `instructions`, read off the instruction table).
//!
//! A target is data: code asks the record for a size, a limit or a [`Feature`] and never compares names.
//! Sources of the numbers: LLVM's "User Guide for AMDGPU Backend" (sections "Processors", "Code Object V3 and
//! Above Kernel Descriptor", "VGPR/SGPR allocation"), `AMDGPUBaseInfo.cpp` and `AMDGPU.td` of LLVM (register
//! file limits, LDS sizes, features), and AMD's Vega 7nm, CDNA, CDNA2, CDNA3 and CDNA4 instruction set
//! guides.
//!
//! A chip of a known generation is a row in `codegen/arch.rs`, a data sheet in `chips` and a handle here; if
//! it has been measured, also a column in `parameters` and a device in `device_model`. Instructions, hazards
//! and meanings are those of the generation; descriptors, metadata and occupancy follow from the record. A
//! new generation also takes rows that it alone has in `codegen/isa/rows`, a column in
//! `codegen/machine/hazard_rows.rs` and `matrix_rows.rs`, and the same rules as conditions in
//! `codegen/rules`.
//!
//! A generic target, whose code runs on several chips, is a data sheet with the chips in `generic`, and the
//! least that any of them has. [`TargetInfo::executes`] and [`TargetInfo::matrix_instruction`] say what all
//! of them do alike, which is what lowering asks; `HazardResolver::also_for` keeps the distances of each,
//! and the machine verifier looks for those of all. [`Target::ALL`] are chips; [`Target::every`] has generic
//! ones, too.

mod abi;
mod chips;
mod clock;
mod compute_unit;
mod device_model;
#[cfg(feature = "compiler")]
mod instruction_costs;
#[cfg(feature = "compiler")]
mod instructions;
#[cfg(feature = "compiler")]
mod lane_moves;
mod lds;
#[cfg(feature = "compiler")]
mod lds_ports;
#[cfg(feature = "compiler")]
mod matrix;
mod occupancy;
mod older_devices;
#[cfg(feature = "compiler")]
mod parameter_set;
mod parameters;
#[cfg(feature = "compiler")]
mod path_queue;
mod triples;

pub(crate) use abi::MOST_WORKGROUPS;
pub use abi::{FeatureSetting, ObjectVersion, TargetId, TargetIdError};
pub use clock::ClockChoice;
pub(crate) use compute_unit::{
    CODE_LINE, LDS_PAIR, LDS_PORTS, SCALAR_LINE, SHARED_LINE, SHARED_WAYS, SIMDS, TURN, WAVE_ORDER,
};
pub use device_model::DeviceModel;
#[cfg(feature = "compiler")]
pub(crate) use instruction_costs::{CLASSES, CostKind, InstructionCost, IssueClass, LdsKind, VectorKind};
#[cfg(feature = "compiler")]
pub(crate) use lane_moves::{LaneMove, RowSwap};
pub use lds::{Conflicts, LdsAccess, LdsGrouping, LdsRules};
#[cfg(feature = "compiler")]
pub(crate) use lds_ports::{LdsCourse, LdsDemand, LdsPorts};
#[cfg(feature = "compiler")]
pub use matrix::MatrixInstruction;
pub use occupancy::{Occupancy, OccupancyLimit};
#[cfg(feature = "compiler")]
pub(crate) use parameter_set::ParameterSet;
pub use parameters::{Confidence, DeviceParameter, ParameterValue};
#[cfg(feature = "compiler")]
pub(crate) use path_queue::{PathQueue, whole};

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use super::arch::Arch;
pub(crate) use crate::ir::lanes::LANES;

/// Data sheet of one chip. Sizes are in bytes, registers are 32-bit registers per lane (VGPR) or per wave
/// (SGPR).
#[derive(Debug)]
pub struct TargetInfo {
    /// Processor name as LLVM and HIP spell it.
    pub name: &'static str,
    /// Its instruction set; of a generic target, that of the oldest chip that it stands for.
    pub arch: Arch,
    /// The chips that it stands for, if it is a generic target.
    pub generic: Option<GenericTarget>,
    /// `EF_AMDGPU_MACH` number in the code object's `e_flags`.
    pub elf_machine: u32,
    /// Its features that others lack.
    pub features: &'static [Feature],
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
    /// Architectural VGPRs that an instruction can name.
    pub addressable_vgprs: u32,
    /// Where accumulation VGPRs live; an instruction can name as many as architectural ones.
    pub agprs: AccumulationFile,
    /// SGPRs of a SIMD unit.
    pub sgpr_file: u32,
    /// The descriptor counts SGPRs in this unit.
    pub sgpr_encoding_granule: u32,
    /// SGPRs that an instruction can name as `s0`, `s1`, ...
    pub addressable_sgprs: u32,
    /// SGPRs above the named ones that a kernel may have to pay for.
    pub reserved_sgprs: ReservedSgprs,
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
    /// Bytes per lane that loads straight into LDS can have, most first.
    pub lds_load_widths: &'static [u32],
    /// Work-items that one workgroup may have.
    pub max_workgroup_size: u32,
    /// Workgroups of more than one wave that a compute unit can hold (each needs a barrier).
    pub barriers_per_compute_unit: u32,
    /// Which lanes of an LDS access are served together, and by how many banks.
    pub lds_rules: &'static LdsRules,
}

/// A processor whose code runs on several chips. It has what all of them have, and keeps the rules of each
/// (LLVM's "User Guide for AMDGPU Backend", "AMDGPU Generic Processors").
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct GenericTarget {
    /// What the code relies on, as a number that grows if more chips join it: the upper eight bits of
    /// `e_flags`.
    pub version: u8,
    /// The chips, oldest first.
    pub chips: &'static [Arch],
}

/// A feature that a target may have.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Feature {
    /// Matrix instructions.
    Mfma,
    /// The work-item's coordinates start packed into `v0`; elsewhere they are in `v0`, `v1` and `v2`.
    PackedWorkitemIds,
    /// Firmware can load kernel arguments into SGPRs.
    KernargPreload,
    /// Waves of a workgroup can be spread over compute units (`TG_SPLIT`).
    ThreadgroupSplit,
    /// Retry of memory accesses after a page fault, which is switched on or off when the chip is set up.
    Xnack,
    /// Error correction of on-chip memories, which is switched on or off when the chip is set up.
    SramEcc,
}

impl Feature {
    /// Its display name; for features that a target id selects, the name there.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::Mfma => "matrix instructions",
            Feature::PackedWorkitemIds => "packed work-item ids",
            Feature::KernargPreload => "kernarg preload",
            Feature::ThreadgroupSplit => "threadgroup split",
            Feature::Xnack => "xnack",
            Feature::SramEcc => "sramecc",
        }
    }

    /// Names of the targets that have it, for messages.
    pub(crate) fn owners(self) -> String {
        let owners: Vec<&str> = Target::ALL.iter().filter(|t| t.has(self)).map(|t| t.name).collect();
        owners.join(", ")
    }
}

/// Where accumulation VGPRs live.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum AccumulationFile {
    /// There is none.
    #[default]
    None,
    /// In a file of their own, of the same size as that of the architectural VGPRs; a wave gets as many of
    /// each.
    Separate,
    /// In the same file, after the architectural VGPRs, from a multiple of `granule` on.
    Unified {
        /// The first one's index is a multiple of this.
        granule: u32,
    },
}

/// SGPRs above the named ones that a kernel pays for: each number includes those before it (LLVM,
/// `getNumExtraSGPRs`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ReservedSgprs {
    /// With VCC.
    pub vcc: u32,
    /// With the XNACK mask, which the hardware writes when a page fault is retried.
    pub xnack_mask: u32,
    /// With `FLAT_SCRATCH`. Architected flat scratch always has it.
    pub flat_scratch: u32,
}

/// How a wave finds its scratch memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum FlatScratch {
    /// The hardware knows the base: no register, no prologue.
    #[default]
    Architected,
    /// The kernel receives base and wave offset in SGPRs and adds them in its prologue.
    Absolute,
}

/// A chip to compile for: a handle to its [`TargetInfo`], which it dereferences to. Equality, order and hash
/// are those of the name. The modes of the chip in which an object runs are part of a [`TargetId`].
#[derive(Copy, Clone)]
pub struct Target(&'static TargetInfo);

impl Target {
    /// Vega 20: Instinct MI50, MI60.
    pub const GFX906: Target = Target(&chips::GFX906);
    /// CDNA 1: Instinct MI100.
    pub const GFX908: Target = Target(&chips::GFX908);
    /// CDNA 2: Instinct MI210, MI250, MI250X.
    pub const GFX90A: Target = Target(&chips::GFX90A);
    /// CDNA 3: Instinct MI300A, MI300X, MI325X.
    pub const GFX942: Target = Target(&chips::GFX942);
    /// CDNA 4: Instinct MI350X, MI355X.
    pub const GFX950: Target = Target(&chips::GFX950);
    /// Every target, oldest first.
    pub const ALL: [Target; 5] = [Self::GFX906, Self::GFX908, Self::GFX90A, Self::GFX942, Self::GFX950];

    /// One object for gfx942 and gfx950: no 8-bit floats and nothing that gfx950 alone has.
    pub const GFX9_4_GENERIC: Target = Target(&chips::GFX9_4_GENERIC);
    /// Every generic target.
    pub const GENERIC: [Target; 1] = [Self::GFX9_4_GENERIC];

    /// Samples of gfx942 that were never products: objects and assembler text for them are read and written,
    /// nothing is compiled for them, and gfx942 stands for them where they run.
    pub(crate) const SAMPLES: [Target; 2] = [Target(&chips::GFX940), Target(&chips::GFX941)];

    /// The target that is used where none is named.
    pub const USUAL: Target = Self::GFX942;

    /// Compute units of the product that stands for the target.
    pub(crate) fn compute_units(self) -> u32 {
        DeviceModel::nearest(self).count(DeviceParameter::ComputeUnits) as u32
    }

    /// Every chip, and every generic target after them.
    pub fn every() -> impl Iterator<Item = Target> {
        Self::ALL.into_iter().chain(Self::GENERIC)
    }

    /// All that have a name, samples included.
    fn named() -> impl Iterator<Item = Target> {
        Self::every().chain(Self::SAMPLES)
    }

    /// The target of that processor name.
    pub fn from_name(name: &str) -> Option<Target> {
        Self::named().find(|target| target.name == name)
    }

    /// The target of that `EF_AMDGPU_MACH` number.
    pub(crate) fn from_elf_machine(machine: u32) -> Option<Target> {
        Self::named().find(|target| target.elf_machine == machine)
    }

    /// True if code for this target runs on that chip: it is the chip, or stands for it.
    pub fn covers(self, chip: Target) -> bool {
        self == chip || chip.generic.is_none() && self.instruction_sets().contains(&chip.arch)
    }

    /// The oldest version of the format that an object for it can have, which is the usual one.
    pub(crate) fn object_version(self) -> ObjectVersion {
        match self.generic {
            None => ObjectVersion::V5,
            Some(_) => ObjectVersion::V6,
        }
    }

    /// The chips that its code runs on, oldest first: itself, or those that it stands for.
    pub fn chips(self) -> impl Iterator<Item = Target> {
        Self::ALL.into_iter().filter(move |chip| self.covers(*chip))
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

impl TargetInfo {
    /// True if the chip has the feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// The instruction sets that its code is written for: its own, or those of the chips that it stands for.
    pub const fn instruction_sets(&self) -> &[Arch] {
        match &self.generic {
            None => std::slice::from_ref(&self.arch),
            Some(generic) => generic.chips,
        }
    }

    /// User SGPRs that a kernel with scratch is given to find it.
    pub(crate) const fn scratch_user_sgprs(&self) -> u32 {
        match self.flat_scratch {
            FlatScratch::Absolute => 2,
            FlatScratch::Architected => 0,
        }
    }

    /// VGPRs that a wave takes of a file: where the files are one, architectural ones and after them, at
    /// [`accum_offset`](Self::accum_offset), the AGPRs.
    pub const fn total_vgprs(&self, vgprs: u32, agprs: u32) -> u32 {
        let vgprs = at_least_one(vgprs);
        match self.accum_offset(vgprs) {
            Some(offset) if agprs > 0 => offset.saturating_add(agprs),
            None if agprs > vgprs => agprs,
            _ => vgprs,
        }
    }

    /// Index of the first AGPR in the file that it shares with the architectural VGPRs; none if there is no
    /// such file.
    pub const fn accum_offset(&self, vgprs: u32) -> Option<u32> {
        match self.agprs {
            AccumulationFile::Unified { granule } => {
                Some(at_least_one(vgprs).div_ceil(granule).saturating_mul(granule))
            }
            AccumulationFile::None | AccumulationFile::Separate => None,
        }
    }

    /// AGPRs that an instruction can name.
    pub const fn addressable_agprs(&self) -> u32 {
        match self.agprs {
            AccumulationFile::None => 0,
            AccumulationFile::Separate | AccumulationFile::Unified { .. } => self.addressable_vgprs,
        }
    }
}

const fn at_least_one(n: u32) -> u32 {
    if n == 0 { 1 } else { n }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::isa::Opcode;

    #[test]
    fn names_and_machine_numbers_find_their_target() {
        for target in Target::every() {
            assert_eq!(Target::from_name(target.name), Some(target));
            assert_eq!(Target::from_elf_machine(target.elf_machine), Some(target));
        }
        assert_eq!(Target::from_name("gfx1100"), None);
        assert_ne!(Target::GFX942, Target::GFX950);
    }

    #[test]
    fn features_know_their_owners() {
        assert_eq!(Feature::KernargPreload.owners(), "gfx90a, gfx942, gfx950");
        assert_eq!(Feature::Mfma.owners(), "gfx908, gfx90a, gfx942, gfx950");
        assert!(Target::GFX906.has(Feature::SramEcc) && !Target::GFX906.has(Feature::PackedWorkitemIds));
    }

    #[test]
    fn a_generic_target_has_what_all_of_its_chips_have() {
        let generic = Target::GFX9_4_GENERIC;
        assert_eq!(generic.chips().collect::<Vec<_>>(), [Target::GFX942, Target::GFX950]);
        assert_eq!(Target::GFX950.chips().collect::<Vec<_>>(), [Target::GFX950]);
        assert!(!generic.covers(Target::GFX90A) && !Target::GFX942.covers(generic));
        for chip in generic.chips() {
            assert!(generic.features.iter().all(|&feature| chip.has(feature)), "{chip}");
            assert!(generic.max_lds_per_workgroup <= chip.max_lds_per_workgroup, "{chip}");
            assert!(
                generic.lds_load_widths.iter().all(|width| chip.lds_load_widths.contains(width)),
                "{chip}"
            );
            let same = |of: fn(&TargetInfo) -> u32| of(&generic) == of(&chip);
            assert!(same(|of| of.vgpr_file) && same(|of| of.vgpr_granule) && same(|of| of.max_user_sgprs));
            assert!(same(|of| of.sgpr_encoding_granule) && same(|of| of.addressable_sgprs));
            assert_eq!((generic.agprs, generic.flat_scratch), (chip.agprs, chip.flat_scratch));
        }
        let has = |op| generic.executes(op);
        assert!(has(Opcode::VMfmaF64_16x16x4F64) && has(Opcode::VPkMulF32) && has(Opcode::DsReadB128));
        // Of other formats on each, of gfx942 alone, of gfx950 alone.
        assert!(!has(Opcode::VCvtPkFp8F32) && !has(Opcode::VMfmaF32_16x16x32Bf8Fp8));
        assert!(!has(Opcode::VMfmaF32_16x16x8Xf32) && !has(Opcode::VPermlane16SwapB32));
    }

    #[test]
    fn accumulation_registers_count_where_they_live() {
        assert_eq!(Target::GFX942.total_vgprs(37, 64), 40 + 64);
        assert_eq!(Target::GFX942.total_vgprs(37, 0), 37);
        assert_eq!(Target::GFX908.total_vgprs(37, 64), 64);
        assert_eq!(Target::GFX908.total_vgprs(65, 64), 65);
        assert_eq!((Target::GFX906.total_vgprs(0, 0), Target::GFX906.addressable_agprs()), (1, 0));
        assert_eq!((Target::GFX908.accum_offset(9), Target::GFX90A.accum_offset(9)), (None, Some(12)));
    }
}
