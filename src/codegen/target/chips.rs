//! The data sheets, oldest chip first; each says what it has otherwise than its predecessor. What is measured
//! of the products with these chips stands in [`parameters`](super::parameters). Sources are named in the
//! folder's documentation.
//!
//! The test `object_descriptors` compares what follows from a record with LLVM; `chips` executes every ready
//! kernel for each chip beside gfx942 and compares its object with LLVM's; `generic` runs one object on
//! every chip of a generic target.

use super::lds::{BANKS_32, BANKS_64};
use super::{AccumulationFile, Feature, FlatScratch, GenericTarget, ReservedSgprs, TargetInfo};
use crate::codegen::arch::Arch;
use crate::ir::lanes::LANES;

pub(super) const GFX906: TargetInfo = TargetInfo {
    name: "gfx906",
    arch: Arch::Gfx906,
    generic: None,
    elf_machine: 0x2f,
    features: &[Feature::Xnack, Feature::SramEcc],
    wave_size: LANES,
    simds_per_compute_unit: 4,
    max_waves_per_simd: 10,
    vgpr_file: 256,
    vgpr_granule: 4,
    addressable_vgprs: 256,
    agprs: AccumulationFile::None,
    sgpr_file: 800,
    sgpr_encoding_granule: 8,
    addressable_sgprs: 102,
    reserved_sgprs: ReservedSgprs { vcc: 2, xnack_mask: 4, flat_scratch: 6 },
    max_user_sgprs: 16,
    flat_scratch: FlatScratch::Absolute,
    lds_bytes: 65_536,
    lds_granule: 512,
    max_lds_per_workgroup: 65_536,
    // Bytes and shorts take a dword in LDS as well, so they bring no tile as it is.
    lds_load_widths: &[4],
    max_workgroup_size: 1024,
    barriers_per_compute_unit: 16,
    lds_rules: &BANKS_32,
};

pub(super) const GFX908: TargetInfo = TargetInfo {
    name: "gfx908",
    arch: Arch::Gfx908,
    elf_machine: 0x30,
    features: &[Feature::Mfma, Feature::Xnack, Feature::SramEcc],
    agprs: AccumulationFile::Separate,
    ..GFX906
};

pub(super) const GFX90A: TargetInfo = TargetInfo {
    name: "gfx90a",
    arch: Arch::Gfx90a,
    elf_machine: 0x3f,
    features: &[
        Feature::Mfma,
        Feature::PackedWorkitemIds,
        Feature::KernargPreload,
        Feature::ThreadgroupSplit,
        Feature::Xnack,
        Feature::SramEcc,
    ],
    max_waves_per_simd: 8,
    vgpr_file: 512,
    vgpr_granule: 8,
    agprs: AccumulationFile::Unified { granule: 4 },
    ..GFX908
};

pub(super) const GFX942: TargetInfo = TargetInfo {
    name: "gfx942",
    arch: Arch::Gfx942,
    elf_machine: 0x4c,
    flat_scratch: FlatScratch::Architected,
    ..GFX90A
};

pub(super) const GFX950: TargetInfo = TargetInfo {
    name: "gfx950",
    arch: Arch::Gfx950,
    elf_machine: 0x4f,
    lds_bytes: 163_840,
    lds_granule: 1280,
    max_lds_per_workgroup: 163_840,
    // Three dwords per lane (`buffer_load_dwordx3 ... lds`) exist, too; no tile of a power of two is made of
    // them.
    lds_load_widths: &[16, 4],
    lds_rules: &BANKS_64,
    ..GFX942
};

/// The first samples of gfx942, with its instructions under names of their own (LLVM, FeatureISAVersion9_4_0
/// and 9_4_1). On them every store needs both scope bits, which an assembler's text says and a compiler would
/// have to.
pub(super) const GFX940: TargetInfo = TargetInfo { name: "gfx940", elf_machine: 0x40, ..GFX942 };
/// See [`GFX940`].
pub(super) const GFX941: TargetInfo = TargetInfo { name: "gfx941", elf_machine: 0x4b, ..GFX942 };

/// What gfx942 and gfx950 have in common: in everything that is counted here gfx942 has the less (LLVM,
/// FeatureISAVersion9_4_Generic).
pub(super) const GFX9_4_GENERIC: TargetInfo = TargetInfo {
    name: "gfx9-4-generic",
    elf_machine: 0x5f,
    generic: Some(GenericTarget { version: 1, chips: &[Arch::Gfx942, Arch::Gfx950] }),
    ..GFX942
};
