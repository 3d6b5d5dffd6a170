//! The hardware resources of a kernel: the input from which descriptor and metadata are derived.

use crate::codegen::target::{Feature, FlatScratch, Target, TargetId};
use thiserror::Error;

/// The hardware resources of a kernel when it starts and while it runs.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct KernelResources {
    /// Architectural VGPRs: highest used plus one.
    pub vgprs: u32,
    /// AGPRs: highest used plus one.
    pub agprs: u32,
    /// SGPRs: highest of `s0` to `s101` used plus one. The target adds those above.
    pub sgprs: u32,
    /// VCC is read or written.
    pub vcc: bool,
    /// Static LDS of a workgroup.
    pub lds_bytes: u32,
    /// Scratch of a work-item.
    pub scratch_bytes: u32,
    /// Size of the kernarg segment; the kernel gets a pointer to it unless it is empty.
    pub kernarg_bytes: u32,
    /// Leading dwords of the kernarg segment that firmware loads into SGPRs. The kernel then starts with a
    /// 256-byte prologue that does the same for firmware that cannot.
    pub kernarg_preload_dwords: u32,
    /// Which of the workgroup's coordinates the kernel needs in SGPRs (x, y, z).
    pub workgroup_ids: [bool; 3],
    /// How many of the work-item's coordinates the kernel needs.
    pub workitem_ids: WorkitemIds,
    /// Rounding and denormals.
    pub float_mode: FloatMode,
    /// The `clamp` modifier turns NaN into 0.
    pub dx10_clamp: bool,
    /// Minimum and maximum quiet signalling NaNs as IEEE 754-2008 requires.
    pub ieee_mode: bool,
    /// What an fp16 or fp8 result becomes if it is too large.
    pub fp16_overflow: Fp16Overflow,
}

impl Default for KernelResources {
    /// A kernel that takes no more than its x coordinates, with the float mode that compilers choose.
    fn default() -> Self {
        KernelResources {
            vgprs: 0,
            agprs: 0,
            sgprs: 0,
            vcc: false,
            lds_bytes: 0,
            scratch_bytes: 0,
            kernarg_bytes: 0,
            kernarg_preload_dwords: 0,
            workgroup_ids: [true, false, false],
            workitem_ids: WorkitemIds::X,
            float_mode: FloatMode::default(),
            dx10_clamp: true,
            ieee_mode: true,
            fp16_overflow: Fp16Overflow::Infinity,
        }
    }
}

/// Work-item coordinates: packed into `v0` (x in bits 9:0, y in 19:10, z in 29:20), on older targets in `v0`,
/// `v1`, `v2`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum WorkitemIds {
    #[default]
    X = 0,
    Xy = 1,
    Xyz = 2,
}

/// Rounding of results.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum RoundMode {
    #[default]
    NearestEven = 0,
    PlusInfinity = 1,
    MinusInfinity = 2,
    Zero = 3,
}

/// The treatment of denormal numbers.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum DenormMode {
    FlushSourcesAndResults = 0,
    FlushResults = 1,
    FlushSources = 2,
    #[default]
    Keep = 3,
}

/// What an fp16 or fp8 result becomes if it is too large.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum Fp16Overflow {
    #[default]
    Infinity = 0,
    LargestFinite = 1,
}

/// The float part of the MODE register at the start of a wave. The default rounds to nearest even and keeps
/// denormals.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub struct FloatMode {
    pub round_32: RoundMode,
    pub round_16_64: RoundMode,
    pub denorm_32: DenormMode,
    pub denorm_16_64: DenormMode,
}

/// Why a kernel of the target cannot have these resources.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ResourceError {
    /// More than the target has.
    #[error("{target} kernels have at most {limit} {what}, {wanted} wanted")]
    Limit {
        /// The resource.
        what: &'static str,
        /// How much the kernel wants.
        wanted: u32,
        /// How much there is.
        limit: u32,
        /// The target.
        target: Target,
    },
    /// A feature that the target does not have.
    #[error("{target} has no {feature}, which {owners} have", feature = feature.name(), owners = feature.owners())]
    Feature {
        /// The feature.
        feature: Feature,
        /// The target.
        target: Target,
    },
    /// Preloaded dwords that are not arguments.
    #[error("{dwords} dwords of a kernarg segment of {bytes} bytes cannot be preloaded")]
    Preload {
        /// Dwords to preload.
        dwords: u32,
        /// Size of the segment.
        bytes: u32,
    },
}

impl KernelResources {
    /// VGPRs that a wave takes, including those that it is started with: of the unified file with AGPRs, or
    /// of the larger file.
    pub fn total_vgprs(&self, target: impl Into<TargetId>) -> u32 {
        let target = target.into();
        target.total_vgprs(self.arch_vgprs(target), self.agprs)
    }

    /// Architectural VGPRs, including those that the wave is started with.
    pub(super) fn arch_vgprs(&self, target: TargetId) -> u32 {
        let initial = match target.has(Feature::PackedWorkitemIds) {
            true => 1,
            false => 1 + self.workitem_ids as u32,
        };
        self.vgprs.max(initial)
    }

    /// SGPRs that a wave takes: the named ones and the reserved ones.
    pub(crate) fn total_sgprs(&self, target: impl Into<TargetId>) -> u32 {
        let target = target.into();
        let reserved = target.reserved_sgprs;
        let scratch = self.scratch_bytes > 0 || target.flat_scratch == FlatScratch::Architected;
        let above = match (scratch, target.may_retry(), self.vcc) {
            (true, ..) => reserved.flat_scratch,
            (_, true, _) => reserved.xnack_mask,
            (.., true) => reserved.vcc,
            (false, false, false) => 0,
        };
        self.named_sgprs(target).saturating_add(above)
    }

    /// SGPRs among `s0` to `s101`, including those that the wave is started with.
    pub(super) fn named_sgprs(&self, target: TargetId) -> u32 {
        let ids = self.workgroup_ids.iter().filter(|wanted| **wanted).count() as u32;
        let initial = self.user_sgprs(*target).saturating_add(ids + self.scratch_sgprs(*target).1);
        self.sgprs.max(initial)
    }

    /// User SGPRs: kernarg pointer, flat scratch where the target needs it, preloaded kernarg dwords.
    pub(super) fn user_sgprs(&self, target: Target) -> u32 {
        let pointer = if self.kernarg_bytes > 0 { 2 } else { 0 };
        (pointer + self.scratch_sgprs(target).0).saturating_add(self.kernarg_preload_dwords)
    }

    /// User and system SGPRs that scratch costs.
    fn scratch_sgprs(&self, target: Target) -> (u32, u32) {
        match target.scratch_user_sgprs() {
            0 => (0, 0),
            user if self.scratch_bytes > 0 => (user, 1),
            _ => (0, 0),
        }
    }

    /// Checks that the target has all of it.
    pub(super) fn check(&self, target: Target) -> Result<(), ResourceError> {
        let limits = [
            ("user SGPRs", self.user_sgprs(target), target.max_user_sgprs),
            ("VGPRs", self.vgprs, target.addressable_vgprs),
            ("AGPRs", self.agprs, target.addressable_agprs()),
            ("SGPRs", self.sgprs, target.addressable_sgprs),
            ("bytes of LDS", self.lds_bytes, target.max_lds_per_workgroup),
        ];
        for (what, wanted, limit) in limits {
            if wanted > limit {
                return Err(ResourceError::Limit { what, wanted, limit, target });
            }
        }
        if self.kernarg_preload_dwords > 0 {
            let feature = Feature::KernargPreload;
            if !target.has(feature) {
                return Err(ResourceError::Feature { feature, target });
            }
            if self.kernarg_preload_dwords > self.kernarg_bytes / 4 {
                let (dwords, bytes) = (self.kernarg_preload_dwords, self.kernarg_bytes);
                return Err(ResourceError::Preload { dwords, bytes });
            }
        }
        Ok(())
    }
}
