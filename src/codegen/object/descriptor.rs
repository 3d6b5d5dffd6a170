//! The kernel descriptor: 64 bytes from which the packet processor sets up a kernel's waves.
//!
//! [`KernelDescriptor::new`] derives every bit from [`KernelResources`]. The bit fields are one table,
//! [`DescriptorField`], which reading, writing, the check of reserved bits and the assembler directives use.
//! Layout: LLVM's "User Guide for AMDGPU Backend", section "Code Object V3 and Above Kernel Descriptor".
//!
//! To add a field, add a row of [`DescriptorField`], and what it follows from in `resources`.

use super::resources::{KernelResources, ResourceError};
use crate::codegen::target::{AccumulationFile, Feature, FlatScratch, Target, TargetId};
use std::fmt::Write;

/// Size of a descriptor, and its alignment.
pub(crate) const DESCRIPTOR_SIZE: usize = 64;

/// A kernel descriptor: four plain numbers and the bit fields of [`DescriptorField`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelDescriptor {
    /// Static LDS of a workgroup.
    pub group_segment_fixed_size: u32,
    /// Scratch of a work-item.
    pub private_segment_fixed_size: u32,
    /// Size of the kernarg segment, 0 for unspecified.
    pub kernarg_size: u32,
    /// Address of the first instruction minus address of the descriptor.
    pub entry_byte_offset: i64,
    words: [u32; 4],
}

/// The words that hold bit fields; they follow each other from byte 44 on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Word {
    Rsrc3,
    Rsrc1,
    Rsrc2,
    /// `KERNEL_CODE_PROPERTIES`, and `KERNARG_PRELOAD_SPEC` in the upper half.
    Properties,
}

/// Which assembler directive sets a field, if there is one on a target.
enum FieldDirective {
    /// None: the assembler derives the field from register counts.
    Derived,
    /// The same on every target.
    Always(&'static str),
    /// On targets with the feature.
    With(Feature, &'static str),
    /// On targets with absolute flat scratch.
    Absolute(&'static str),
    /// One name with architected flat scratch, another with absolute.
    Scratch { architected: &'static str, absolute: &'static str },
}

use FieldDirective::{Absolute, Always, Derived, With};

impl FieldDirective {
    /// Its name on a target.
    fn name(&self, target: Target) -> Option<&'static str> {
        match (self, target.flat_scratch) {
            (Derived, _) | (Absolute(_), FlatScratch::Architected) => None,
            (Always(name), _) | (Absolute(name), FlatScratch::Absolute) => Some(name),
            (With(feature, name), _) => target.has(*feature).then_some(name),
            (FieldDirective::Scratch { architected, .. }, FlatScratch::Architected) => Some(architected),
            (FieldDirective::Scratch { absolute, .. }, FlatScratch::Absolute) => Some(absolute),
        }
    }
}

struct FieldRow {
    field: DescriptorField,
    word: Word,
    low: u32,
    width: u32,
    directive: FieldDirective,
}

macro_rules! fields {
    ($($(#[$doc:meta])* $field:ident: $word:ident $low:literal, $width:literal, $directive:expr;)*) => {
        /// A bit field of the descriptor.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub enum DescriptorField { $($(#[$doc])* $field,)* }

        const ROWS: &[FieldRow] = &[$(FieldRow {
            field: DescriptorField::$field, word: Word::$word, low: $low, width: $width, directive: $directive
        },)*];
    };
}

fields! {
    /// First AGPR's index in the unified file, in fours, less one.
    AccumOffset: Rsrc3 0, 6, Derived;
    /// Waves of a workgroup may sit on different compute units.
    TgSplit: Rsrc3 16, 1, With(Feature::ThreadgroupSplit, "tg_split");
    /// VGPRs in granules, less one.
    VgprGranules: Rsrc1 0, 6, Derived;
    /// SGPRs in eights, less one.
    SgprGranules: Rsrc1 6, 4, Derived;
    /// Rounding of f32.
    RoundMode32: Rsrc1 12, 2, Always("float_round_mode_32");
    /// Rounding of f16 and f64.
    RoundMode16And64: Rsrc1 14, 2, Always("float_round_mode_16_64");
    /// Denormals of f32.
    DenormMode32: Rsrc1 16, 2, Always("float_denorm_mode_32");
    /// Denormals of f16 and f64.
    DenormMode16And64: Rsrc1 18, 2, Always("float_denorm_mode_16_64");
    /// `clamp` turns NaN into 0.
    Dx10Clamp: Rsrc1 21, 1, Always("dx10_clamp");
    /// Signalling NaNs are quieted.
    IeeeMode: Rsrc1 23, 1, Always("ieee_mode");
    /// fp16 results that overflow become the largest finite number.
    Fp16Overflow: Rsrc1 26, 1, Always("fp16_overflow");
    /// The kernel uses scratch, architected or with a wave offset in a system SGPR.
    PrivateSegment: Rsrc2 0, 1, FieldDirective::Scratch {
        architected: "enable_private_segment",
        absolute: "system_sgpr_private_segment_wavefront_offset",
    };
    /// Number of user SGPRs.
    UserSgprCount: Rsrc2 1, 5, Always("user_sgpr_count");
    /// Workgroup coordinate x in a system SGPR.
    WorkgroupIdX: Rsrc2 7, 1, Always("system_sgpr_workgroup_id_x");
    /// Workgroup coordinate y in a system SGPR.
    WorkgroupIdY: Rsrc2 8, 1, Always("system_sgpr_workgroup_id_y");
    /// Workgroup coordinate z in a system SGPR.
    WorkgroupIdZ: Rsrc2 9, 1, Always("system_sgpr_workgroup_id_z");
    /// Workgroup information in a system SGPR.
    WorkgroupInfo: Rsrc2 10, 1, Always("system_sgpr_workgroup_info");
    /// Work-item coordinates in VGPRs: 0 for x, 1 for x and y, 2 for all.
    WorkitemId: Rsrc2 11, 2, Always("system_vgpr_workitem_id");
    /// Trap on an invalid operation.
    TrapInvalid: Rsrc2 24, 1, Always("exception_fp_ieee_invalid_op");
    /// Trap on a denormal source.
    TrapDenormal: Rsrc2 25, 1, Always("exception_fp_denorm_src");
    /// Trap on a division by zero.
    TrapDivideByZero: Rsrc2 26, 1, Always("exception_fp_ieee_div_zero");
    /// Trap on overflow.
    TrapOverflow: Rsrc2 27, 1, Always("exception_fp_ieee_overflow");
    /// Trap on underflow.
    TrapUnderflow: Rsrc2 28, 1, Always("exception_fp_ieee_underflow");
    /// Trap on an inexact result.
    TrapInexact: Rsrc2 29, 1, Always("exception_fp_ieee_inexact");
    /// Trap on an integer division by zero.
    TrapIntegerDivideByZero: Rsrc2 30, 1, Always("exception_int_div_zero");
    /// Buffer descriptor of scratch in four user SGPRs.
    PrivateSegmentBuffer: Properties 0, 1, Absolute("user_sgpr_private_segment_buffer");
    /// Dispatch packet's address in two user SGPRs.
    DispatchPtr: Properties 1, 1, Always("user_sgpr_dispatch_ptr");
    /// Queue's address in two user SGPRs.
    QueuePtr: Properties 2, 1, Always("user_sgpr_queue_ptr");
    /// Kernarg segment's address in two user SGPRs.
    KernargSegmentPtr: Properties 3, 1, Always("user_sgpr_kernarg_segment_ptr");
    /// Dispatch id in two user SGPRs.
    DispatchId: Properties 4, 1, Always("user_sgpr_dispatch_id");
    /// Start value of FLAT_SCRATCH in two user SGPRs.
    FlatScratchInit: Properties 5, 1, Absolute("user_sgpr_flat_scratch_init");
    /// Scratch size in a user SGPR.
    PrivateSegmentSize: Properties 6, 1, Always("user_sgpr_private_segment_size");
    /// The kernel's stack need is unknown.
    DynamicStack: Properties 11, 1, Always("uses_dynamic_stack");
    /// Dwords of the kernarg segment that are loaded into user SGPRs.
    KernargPreloadLength: Properties 16, 7, With(Feature::KernargPreload, "user_sgpr_kernarg_preload_length");
    /// First of those dwords.
    KernargPreloadOffset: Properties 23, 9, With(Feature::KernargPreload, "user_sgpr_kernarg_preload_offset");
}

impl FieldRow {
    const fn mask(&self) -> u32 {
        (((1u64 << self.width) - 1) << self.low) as u32
    }
}

/// The places of the values that a wave finds in SGPRs when it starts: the first SGPR of each, if it was
/// asked for.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct InitialSgprs {
    pub private_segment_buffer: Option<u32>,
    pub dispatch_ptr: Option<u32>,
    pub queue_ptr: Option<u32>,
    pub kernarg_segment_ptr: Option<u32>,
    pub dispatch_id: Option<u32>,
    pub flat_scratch_init: Option<u32>,
    pub private_segment_size: Option<u32>,
    pub kernarg_preload: Option<u32>,
    pub workgroup_ids: [Option<u32>; 3],
    pub workgroup_info: Option<u32>,
    pub scratch_wave_offset: Option<u32>,
    /// First SGPR after all of them.
    pub end: u32,
}

impl KernelDescriptor {
    /// The descriptor of a kernel with these resources; the entry offset remains 0 until the object's layout
    /// is known.
    pub fn new(
        target: impl Into<TargetId>,
        resources: &KernelResources,
    ) -> Result<KernelDescriptor, ResourceError> {
        let target = target.into();
        resources.check(*target)?;
        let scratch = resources.scratch_bytes > 0;
        let absolute_scratch = scratch && target.flat_scratch == FlatScratch::Absolute;
        let granules = |count: u32, granule: u32| count.div_ceil(granule) - 1;
        let accum_offset = match target.agprs {
            AccumulationFile::Unified { granule } => granules(resources.arch_vgprs(target), granule),
            AccumulationFile::None | AccumulationFile::Separate => 0,
        };
        let float = resources.float_mode;
        let [x, y, z] = resources.workgroup_ids;
        let mut descriptor = KernelDescriptor {
            group_segment_fixed_size: resources.lds_bytes,
            private_segment_fixed_size: resources.scratch_bytes,
            kernarg_size: resources.kernarg_bytes,
            ..KernelDescriptor::default()
        };
        for (field, value) in [
            (DescriptorField::AccumOffset, accum_offset),
            (DescriptorField::VgprGranules, granules(resources.total_vgprs(target), target.vgpr_granule)),
            (
                DescriptorField::SgprGranules,
                granules(resources.total_sgprs(target), target.sgpr_encoding_granule),
            ),
            (DescriptorField::RoundMode32, float.round_32 as u32),
            (DescriptorField::RoundMode16And64, float.round_16_64 as u32),
            (DescriptorField::DenormMode32, float.denorm_32 as u32),
            (DescriptorField::DenormMode16And64, float.denorm_16_64 as u32),
            (DescriptorField::Dx10Clamp, resources.dx10_clamp.into()),
            (DescriptorField::IeeeMode, resources.ieee_mode.into()),
            (DescriptorField::Fp16Overflow, resources.fp16_overflow as u32),
            (DescriptorField::PrivateSegment, scratch.into()),
            (DescriptorField::UserSgprCount, resources.user_sgprs(*target)),
            (DescriptorField::WorkgroupIdX, x.into()),
            (DescriptorField::WorkgroupIdY, y.into()),
            (DescriptorField::WorkgroupIdZ, z.into()),
            (DescriptorField::WorkitemId, resources.workitem_ids as u32),
            (DescriptorField::KernargSegmentPtr, (resources.kernarg_bytes > 0).into()),
            (DescriptorField::FlatScratchInit, absolute_scratch.into()),
            (DescriptorField::KernargPreloadLength, resources.kernarg_preload_dwords),
        ] {
            descriptor.set(field, value);
        }
        Ok(descriptor)
    }

    /// The value of a bit field.
    pub fn get(&self, field: DescriptorField) -> u32 {
        let row = &ROWS[field as usize];
        (self.words[row.word as usize] & row.mask()) >> row.low
    }

    pub(in crate::codegen) fn set(&mut self, field: DescriptorField, value: u32) {
        let row = &ROWS[field as usize];
        debug_assert!(value <= row.mask() >> row.low, "{field:?} cannot hold {value}");
        let word = &mut self.words[row.word as usize];
        *word = (*word & !row.mask()) | ((value << row.low) & row.mask());
    }

    /// The fields that have a directive on a target: its name, the field, its bits.
    pub(in crate::codegen) fn directive_fields(
        target: Target,
    ) -> impl Iterator<Item = (&'static str, DescriptorField, u32)> {
        ROWS.iter().filter_map(move |row| Some((row.directive.name(target)?, row.field, row.width)))
    }

    /// Whether some target has a directive of that name.
    pub(in crate::codegen) fn is_directive(name: &str) -> bool {
        Target::ALL.iter().any(|&target| Self::directive_fields(target).any(|(known, ..)| known == name))
    }

    /// VGPRs that a wave gets: of the unified file, or of each.
    pub(crate) fn allocated_vgprs(&self, target: Target) -> u32 {
        (self.get(DescriptorField::VgprGranules) + 1) * target.vgpr_granule
    }

    /// Index of the first AGPR in the unified file; none where there is no such file.
    pub fn accum_offset(&self, target: Target) -> Option<u32> {
        match target.agprs {
            AccumulationFile::Unified { granule } => {
                Some((self.get(DescriptorField::AccumOffset) + 1) * granule)
            }
            AccumulationFile::None | AccumulationFile::Separate => None,
        }
    }

    /// SGPRs that a wave gets, reserved ones included.
    pub(crate) fn allocated_sgprs(&self, target: Target) -> u32 {
        (self.get(DescriptorField::SgprGranules) + 1) * target.sgpr_encoding_granule
    }

    /// Which values SGPRs hold when a wave starts: user SGPRs in the order of their property bits, then,
    /// after the user SGPR count, system SGPRs.
    pub fn initial_sgprs(&self, target: Target) -> InitialSgprs {
        let mut next = 0;
        let mut take = |field: DescriptorField, width: u32| {
            let wanted = self.get(field) != 0;
            let first = wanted.then_some(next);
            next += if wanted { width } else { 0 };
            first
        };
        let user = InitialSgprs {
            private_segment_buffer: take(DescriptorField::PrivateSegmentBuffer, 4),
            dispatch_ptr: take(DescriptorField::DispatchPtr, 2),
            queue_ptr: take(DescriptorField::QueuePtr, 2),
            kernarg_segment_ptr: take(DescriptorField::KernargSegmentPtr, 2),
            dispatch_id: take(DescriptorField::DispatchId, 2),
            flat_scratch_init: take(DescriptorField::FlatScratchInit, 2),
            private_segment_size: take(DescriptorField::PrivateSegmentSize, 1),
            kernarg_preload: take(DescriptorField::KernargPreloadLength, 0),
            ..InitialSgprs::default()
        };
        next = self.get(DescriptorField::UserSgprCount);
        let mut take = |field: DescriptorField| {
            let wanted = self.get(field) != 0;
            let first = wanted.then_some(next);
            next += u32::from(wanted);
            first
        };
        let workgroup_ids =
            [DescriptorField::WorkgroupIdX, DescriptorField::WorkgroupIdY, DescriptorField::WorkgroupIdZ]
                .map(&mut take);
        let workgroup_info = take(DescriptorField::WorkgroupInfo);
        let scratch_wave_offset = match target.flat_scratch {
            FlatScratch::Absolute => take(DescriptorField::PrivateSegment),
            FlatScratch::Architected => None,
        };
        InitialSgprs { workgroup_ids, workgroup_info, scratch_wave_offset, end: next, ..user }
    }

    /// The 64 bytes.
    pub fn to_bytes(&self) -> [u8; DESCRIPTOR_SIZE] {
        let mut bytes = [0; DESCRIPTOR_SIZE];
        bytes[0..4].copy_from_slice(&self.group_segment_fixed_size.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.private_segment_fixed_size.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.kernarg_size.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.entry_byte_offset.to_le_bytes());
        for (place, word) in bytes[WORDS].chunks_exact_mut(4).zip(self.words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The descriptor in these 64 bytes, or the offset of a byte in which a bit is set that is reserved or
    /// that no kernel sets.
    pub fn from_bytes(bytes: &[u8; DESCRIPTOR_SIZE]) -> Result<KernelDescriptor, usize> {
        let dword = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let descriptor = KernelDescriptor {
            group_segment_fixed_size: dword(0),
            private_segment_fixed_size: dword(4),
            kernarg_size: dword(8),
            entry_byte_offset: ((u64::from(dword(20)) << 32) | u64::from(dword(16))) as i64,
            words: [dword(44), dword(48), dword(52), dword(56)],
        };
        let mut known = descriptor;
        for (index, word) in known.words.iter_mut().enumerate() {
            *word &=
                ROWS.iter().filter(|row| row.word as usize == index).fold(0, |all, row| all | row.mask());
        }
        match known.to_bytes().iter().zip(bytes).position(|(known, given)| known != given) {
            None => Ok(descriptor),
            Some(offset) => Err(offset),
        }
    }

    /// The `.amdhsa_kernel` block from which an assembler makes this descriptor, which is that of a kernel
    /// with these resources: the block counts registers exactly, the descriptor in granules.
    pub(super) fn directives(&self, target: TargetId, symbol: &str, resources: &KernelResources) -> String {
        let mut text = format!(".amdhsa_kernel {symbol}\n");
        let mut line = |name: &str, value: u32| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  .amdhsa_{name} {value}");
        };
        line("group_segment_fixed_size", self.group_segment_fixed_size);
        line("private_segment_fixed_size", self.private_segment_fixed_size);
        line("kernarg_size", self.kernarg_size);
        line("next_free_vgpr", resources.total_vgprs(target));
        if let Some(offset) = self.accum_offset(*target) {
            line("accum_offset", offset);
        }
        line("next_free_sgpr", resources.named_sgprs(target));
        line("reserve_vcc", resources.vcc.into());
        if target.flat_scratch == FlatScratch::Absolute {
            line("reserve_flat_scratch", (resources.scratch_bytes > 0).into());
        }
        if target.has(Feature::Xnack) {
            line("reserve_xnack_mask", target.may_retry().into());
        }
        for row in ROWS {
            if let Some(name) = row.directive.name(*target) {
                line(name, self.get(row.field));
            }
        }
        text.push_str(".end_amdhsa_kernel\n");
        text
    }
}

/// Bytes of the words that hold bit fields.
const WORDS: std::ops::Range<usize> = 44..60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::object::resources::{DenormMode, FloatMode, WorkitemIds};

    #[test]
    fn rows_are_in_order_and_do_not_overlap() {
        let mut seen = [0u32; 4];
        for (index, row) in ROWS.iter().enumerate() {
            assert_eq!(row.field as usize, index);
            assert_eq!(seen[row.word as usize] & row.mask(), 0, "{:?} overlaps", row.field);
            seen[row.word as usize] |= row.mask();
        }
    }

    /// `store_one` as LLVM 19 assembles it: 3 VGPRs, 3 SGPRs, 8 bytes of arguments, f32 denormals flushed.
    #[test]
    fn store_one() {
        let resources = KernelResources {
            vgprs: 3,
            sgprs: 3,
            kernarg_bytes: 8,
            float_mode: FloatMode { denorm_32: DenormMode::FlushSourcesAndResults, ..FloatMode::default() },
            ..KernelResources::default()
        };
        let mut descriptor = KernelDescriptor::new(Target::GFX942, &resources).unwrap();
        descriptor.entry_byte_offset = 0x1080;
        let mut expected = [0; 64];
        expected[8] = 8;
        expected[16..18].copy_from_slice(&[0x80, 0x10]);
        expected[48..57].copy_from_slice(&[0x40, 0x00, 0xac, 0x00, 0x84, 0x00, 0x00, 0x00, 0x08]);
        assert_eq!(descriptor.to_bytes(), expected);
        assert_eq!(KernelDescriptor::from_bytes(&expected), Ok(descriptor));
        let sgprs = descriptor.initial_sgprs(Target::GFX942);
        assert_eq!((sgprs.kernarg_segment_ptr, sgprs.workgroup_ids), (Some(0), [Some(2), None, None]));
        assert_eq!(sgprs.end, 3);
    }

    /// User SGPRs s0 to s7, six preloaded dwords, group x in s14; the bytes come from LLVM.
    #[test]
    fn foreign_descriptor_with_preload() {
        let mut bytes = [0; 64];
        bytes[48..60].copy_from_slice(&[0x80, 0, 0xaf, 0, 0x9c, 0x13, 0, 0, 0x1e, 0, 6, 0]);
        let descriptor = KernelDescriptor::from_bytes(&bytes).unwrap();
        let sgprs = descriptor.initial_sgprs(Target::GFX942);
        assert_eq!(sgprs.dispatch_ptr, Some(0));
        assert_eq!(sgprs.queue_ptr, Some(2));
        assert_eq!(sgprs.kernarg_segment_ptr, Some(4));
        assert_eq!(sgprs.dispatch_id, Some(6));
        assert_eq!(sgprs.kernarg_preload, Some(8));
        assert_eq!(sgprs.workgroup_ids, [Some(14), Some(15), Some(16)]);
        assert_eq!(descriptor.get(DescriptorField::WorkitemId), 2);
        assert_eq!(descriptor.get(DescriptorField::KernargPreloadLength), 6);
    }

    #[test]
    fn agprs_follow_the_architectural_registers() {
        let resources = KernelResources { vgprs: 37, agprs: 64, ..KernelResources::default() };
        let descriptor = KernelDescriptor::new(Target::GFX942, &resources).unwrap();
        assert_eq!(descriptor.accum_offset(Target::GFX942), Some(40));
        assert_eq!(descriptor.allocated_vgprs(Target::GFX942), 104);
        assert_eq!(resources.total_vgprs(Target::GFX942), 104);
    }

    #[test]
    fn initial_registers_count_as_used() {
        let resources = KernelResources {
            kernarg_bytes: 56,
            kernarg_preload_dwords: 14,
            workgroup_ids: [true; 3],
            workitem_ids: WorkitemIds::Xyz,
            ..KernelResources::default()
        };
        assert_eq!(resources.total_sgprs(Target::GFX942), 2 + 14 + 3 + 6);
        let descriptor = KernelDescriptor::new(Target::GFX942, &resources).unwrap();
        assert_eq!(descriptor.initial_sgprs(Target::GFX942).end, 19);
        assert_eq!(descriptor.allocated_sgprs(Target::GFX942), 32);
    }

    #[test]
    fn scratch_costs_registers_where_it_is_absolute() {
        let resources = KernelResources { scratch_bytes: 16, kernarg_bytes: 8, ..KernelResources::default() };
        let sgprs = |target| KernelDescriptor::new(target, &resources).unwrap().initial_sgprs(target);
        assert_eq!(sgprs(Target::GFX942).end, 3);
        let absolute = sgprs(Target::GFX90A);
        assert_eq!(absolute.flat_scratch_init, Some(2));
        assert_eq!(absolute.workgroup_ids[0], Some(4));
        assert_eq!(absolute.scratch_wave_offset, Some(5));
    }

    #[test]
    fn too_much_is_refused() {
        let refused = |target: Target, resources: KernelResources| {
            KernelDescriptor::new(target, &resources).unwrap_err().to_string()
        };
        let base = KernelResources::default();
        for (resources, expected) in [
            (KernelResources { vgprs: 257, ..base.clone() }, "256 VGPRs, 257 wanted"),
            (KernelResources { agprs: 257, ..base.clone() }, "256 AGPRs, 257 wanted"),
            (KernelResources { sgprs: 103, ..base.clone() }, "102 SGPRs, 103 wanted"),
            (KernelResources { lds_bytes: 65_537, ..base.clone() }, "65536 bytes of LDS, 65537 wanted"),
            (
                KernelResources { kernarg_bytes: 60, kernarg_preload_dwords: 15, ..base.clone() },
                "16 user SGPRs, 17 wanted",
            ),
            (
                KernelResources { kernarg_preload_dwords: u32::MAX, ..base.clone() },
                "16 user SGPRs, 4294967295 wanted",
            ),
        ] {
            let expected = format!("gfx942 kernels have at most {expected}");
            assert_eq!(refused(Target::GFX942, resources), expected);
        }
        let preload = KernelResources { kernarg_bytes: 8, kernarg_preload_dwords: 3, ..base.clone() };
        assert_eq!(
            refused(Target::GFX908, preload.clone()),
            "gfx908 has no kernarg preload, which gfx90a, gfx942, gfx950 have"
        );
        assert_eq!(
            refused(Target::GFX942, preload),
            "3 dwords of a kernarg segment of 8 bytes cannot be preloaded"
        );
        assert_eq!(
            refused(Target::GFX906, KernelResources { agprs: 1, ..base }),
            "gfx906 kernels have at most 0 AGPRs, 1 wanted"
        );
    }

    #[test]
    fn the_xnack_mask_is_paid_for_where_retries_may_happen() {
        let total = |id: &str, vcc: bool, scratch_bytes: u32| {
            let resources = KernelResources { sgprs: 10, vcc, scratch_bytes, ..KernelResources::default() };
            resources.total_sgprs(id.parse::<TargetId>().unwrap())
        };
        for (id, totals) in [
            ("gfx908", [14, 14, 16]),
            ("gfx90a:xnack+", [14, 14, 16]),
            ("gfx90a:xnack-", [10, 12, 16]),
            ("gfx942:xnack-", [16, 16, 16]),
        ] {
            assert_eq!([total(id, false, 0), total(id, true, 0), total(id, false, 4)], totals, "{id}");
        }
    }

    #[test]
    fn older_targets_start_with_a_register_per_coordinate() {
        let resources = KernelResources { workitem_ids: WorkitemIds::Xyz, ..KernelResources::default() };
        assert_eq!(resources.total_vgprs(Target::GFX906), 3);
        assert_eq!(resources.total_vgprs(Target::GFX90A), 1);
    }

    #[test]
    fn a_kernel_without_arguments_wants_no_pointer_to_them() {
        let descriptor = KernelDescriptor::new(Target::GFX942, &KernelResources::default()).unwrap();
        assert_eq!(descriptor.initial_sgprs(Target::GFX942).kernarg_segment_ptr, None);
        assert_eq!(descriptor.initial_sgprs(Target::GFX942).workgroup_ids[0], Some(0));
    }

    #[test]
    fn reserved_bits_are_refused_with_their_offset() {
        for offset in [12, 24, 43, 45, 51, 54, 60, 63] {
            let mut bytes = [0; 64];
            bytes[offset] = 0x80;
            assert_eq!(KernelDescriptor::from_bytes(&bytes), Err(offset));
        }
    }
}
