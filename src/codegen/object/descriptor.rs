//! The kernel descriptor: 64 bytes from which the packet processor sets up a kernel's waves.
//!
//! [`KernelDescriptor::new`] derives every bit from [`KernelResources`]. The bit fields are one table, [`Field`], from
//! which come reading, writing, the check of reserved bits and the assembler directives. Layout: LLVM's "User Guide for
//! AMDGPU Backend", section "Code Object V3 and Above Kernel Descriptor".

use super::resources::{KernelResources, ResourceError};
use crate::codegen::target::{FlatScratch, Target};
use std::fmt::Write;

/// Size of a descriptor, and its alignment.
pub const DESCRIPTOR_SIZE: usize = 64;

/// A kernel descriptor: four plain numbers and the bit fields of [`Field`].
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

/// The assembler directive of a field, which may depend on how the target finds scratch. None where the assembler
/// derives the field from register counts or refuses it.
struct Directive {
    architected: Option<&'static str>,
    absolute: Option<&'static str>,
}

const DERIVED: Directive = Directive { architected: None, absolute: None };

const fn always(name: &'static str) -> Directive {
    Directive { architected: Some(name), absolute: Some(name) }
}

const fn only_absolute(name: &'static str) -> Directive {
    Directive { architected: None, absolute: Some(name) }
}

struct Row {
    field: Field,
    word: Word,
    low: u32,
    width: u32,
    directive: Directive,
}

macro_rules! fields {
    ($($(#[$doc:meta])* $field:ident: $word:ident $low:literal, $width:literal, $directive:expr;)*) => {
        /// A bit field of the descriptor.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub enum Field { $($(#[$doc])* $field,)* }

        const ROWS: &[Row] = &[$(Row {
            field: Field::$field, word: Word::$word, low: $low, width: $width, directive: $directive
        },)*];
    };
}

fields! {
    /// First AGPR's index in the unified file, in fours, less one.
    AccumOffset: Rsrc3 0, 6, DERIVED;
    /// Waves of a workgroup may sit on different compute units.
    TgSplit: Rsrc3 16, 1, always("tg_split");
    /// VGPRs in granules, less one.
    VgprGranules: Rsrc1 0, 6, DERIVED;
    /// SGPRs in eights, less one.
    SgprGranules: Rsrc1 6, 4, DERIVED;
    /// Rounding of f32.
    RoundMode32: Rsrc1 12, 2, always("float_round_mode_32");
    /// Rounding of f16 and f64.
    RoundMode16And64: Rsrc1 14, 2, always("float_round_mode_16_64");
    /// Denormals of f32.
    DenormMode32: Rsrc1 16, 2, always("float_denorm_mode_32");
    /// Denormals of f16 and f64.
    DenormMode16And64: Rsrc1 18, 2, always("float_denorm_mode_16_64");
    /// `clamp` turns NaN into 0.
    Dx10Clamp: Rsrc1 21, 1, always("dx10_clamp");
    /// Signalling NaNs are quieted.
    IeeeMode: Rsrc1 23, 1, always("ieee_mode");
    /// fp16 results that overflow become the largest finite number.
    Fp16Overflow: Rsrc1 26, 1, always("fp16_overflow");
    /// The kernel uses scratch, architected or with a wave offset in a system SGPR.
    PrivateSegment: Rsrc2 0, 1, Directive {
        architected: Some("enable_private_segment"),
        absolute: Some("system_sgpr_private_segment_wavefront_offset"),
    };
    /// Number of user SGPRs.
    UserSgprCount: Rsrc2 1, 5, always("user_sgpr_count");
    /// Workgroup coordinate x in a system SGPR.
    WorkgroupIdX: Rsrc2 7, 1, always("system_sgpr_workgroup_id_x");
    /// Workgroup coordinate y in a system SGPR.
    WorkgroupIdY: Rsrc2 8, 1, always("system_sgpr_workgroup_id_y");
    /// Workgroup coordinate z in a system SGPR.
    WorkgroupIdZ: Rsrc2 9, 1, always("system_sgpr_workgroup_id_z");
    /// Workgroup information in a system SGPR.
    WorkgroupInfo: Rsrc2 10, 1, always("system_sgpr_workgroup_info");
    /// Work-item coordinates in `v0`: 0 for x, 1 for x and y, 2 for all.
    WorkitemId: Rsrc2 11, 2, always("system_vgpr_workitem_id");
    /// Trap on an invalid operation.
    TrapInvalid: Rsrc2 24, 1, always("exception_fp_ieee_invalid_op");
    /// Trap on a denormal source.
    TrapDenormal: Rsrc2 25, 1, always("exception_fp_denorm_src");
    /// Trap on a division by zero.
    TrapDivideByZero: Rsrc2 26, 1, always("exception_fp_ieee_div_zero");
    /// Trap on overflow.
    TrapOverflow: Rsrc2 27, 1, always("exception_fp_ieee_overflow");
    /// Trap on underflow.
    TrapUnderflow: Rsrc2 28, 1, always("exception_fp_ieee_underflow");
    /// Trap on an inexact result.
    TrapInexact: Rsrc2 29, 1, always("exception_fp_ieee_inexact");
    /// Trap on an integer division by zero.
    TrapIntegerDivideByZero: Rsrc2 30, 1, always("exception_int_div_zero");
    /// Buffer descriptor of scratch in four user SGPRs.
    PrivateSegmentBuffer: Properties 0, 1, only_absolute("user_sgpr_private_segment_buffer");
    /// Dispatch packet's address in two user SGPRs.
    DispatchPtr: Properties 1, 1, always("user_sgpr_dispatch_ptr");
    /// Queue's address in two user SGPRs.
    QueuePtr: Properties 2, 1, always("user_sgpr_queue_ptr");
    /// Kernarg segment's address in two user SGPRs.
    KernargSegmentPtr: Properties 3, 1, always("user_sgpr_kernarg_segment_ptr");
    /// Dispatch id in two user SGPRs.
    DispatchId: Properties 4, 1, always("user_sgpr_dispatch_id");
    /// Start value of FLAT_SCRATCH in two user SGPRs.
    FlatScratchInit: Properties 5, 1, only_absolute("user_sgpr_flat_scratch_init");
    /// Scratch size in a user SGPR.
    PrivateSegmentSize: Properties 6, 1, always("user_sgpr_private_segment_size");
    /// The kernel's stack need is unknown.
    DynamicStack: Properties 11, 1, always("uses_dynamic_stack");
    /// Dwords of the kernarg segment that are loaded into user SGPRs.
    KernargPreloadLength: Properties 16, 7, always("user_sgpr_kernarg_preload_length");
    /// First of those dwords.
    KernargPreloadOffset: Properties 23, 9, always("user_sgpr_kernarg_preload_offset");
}

impl Row {
    const fn mask(&self) -> u32 {
        (((1u64 << self.width) - 1) << self.low) as u32
    }
}

/// Where the values are that a wave finds in SGPRs when it starts: the first SGPR of each, if it was asked for.
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
    /// First SGPR behind all of them.
    pub end: u32,
}

impl KernelDescriptor {
    /// The descriptor of a kernel with these resources; the entry offset remains 0 until the object's layout is known.
    pub fn new(target: Target, resources: &KernelResources) -> Result<KernelDescriptor, ResourceError> {
        resources.check(target)?;
        let scratch = resources.scratch_bytes > 0;
        let absolute_scratch = scratch && target.flat_scratch == FlatScratch::Absolute;
        let granules = |count: u32, granule: u32| count.div_ceil(granule) - 1;
        let float = resources.float_mode;
        let [x, y, z] = resources.workgroup_ids;
        let mut descriptor = KernelDescriptor {
            group_segment_fixed_size: resources.lds_bytes,
            private_segment_fixed_size: resources.scratch_bytes,
            kernarg_size: resources.kernarg_bytes,
            ..KernelDescriptor::default()
        };
        for (field, value) in [
            (Field::AccumOffset, granules(target.accum_offset(resources.vgprs), target.accum_offset_granule)),
            (Field::VgprGranules, granules(resources.total_vgprs(target), target.vgpr_granule)),
            (Field::SgprGranules, granules(resources.total_sgprs(target), target.sgpr_encoding_granule)),
            (Field::RoundMode32, float.round_32 as u32),
            (Field::RoundMode16And64, float.round_16_64 as u32),
            (Field::DenormMode32, float.denorm_32 as u32),
            (Field::DenormMode16And64, float.denorm_16_64 as u32),
            (Field::Dx10Clamp, resources.dx10_clamp.into()),
            (Field::IeeeMode, resources.ieee_mode.into()),
            (Field::Fp16Overflow, resources.fp16_overflow as u32),
            (Field::PrivateSegment, scratch.into()),
            (Field::UserSgprCount, resources.user_sgprs(target)),
            (Field::WorkgroupIdX, x.into()),
            (Field::WorkgroupIdY, y.into()),
            (Field::WorkgroupIdZ, z.into()),
            (Field::WorkitemId, resources.workitem_ids as u32),
            (Field::KernargSegmentPtr, 1),
            (Field::FlatScratchInit, absolute_scratch.into()),
            (Field::KernargPreloadLength, resources.kernarg_preload_dwords),
        ] {
            descriptor.set(field, value);
        }
        Ok(descriptor)
    }

    /// The value of a bit field.
    pub fn get(&self, field: Field) -> u32 {
        let row = &ROWS[field as usize];
        (self.words[row.word as usize] & row.mask()) >> row.low
    }

    fn set(&mut self, field: Field, value: u32) {
        let row = &ROWS[field as usize];
        debug_assert!(value <= row.mask() >> row.low, "{field:?} cannot hold {value}");
        let word = &mut self.words[row.word as usize];
        *word = (*word & !row.mask()) | ((value << row.low) & row.mask());
    }

    /// VGPRs that a wave gets of the unified file.
    pub fn allocated_vgprs(&self, target: Target) -> u32 {
        (self.get(Field::VgprGranules) + 1) * target.vgpr_granule
    }

    /// Index of the first AGPR in the unified file.
    pub fn accum_offset(&self, target: Target) -> u32 {
        (self.get(Field::AccumOffset) + 1) * target.accum_offset_granule
    }

    /// SGPRs that a wave gets, reserved ones included.
    pub fn allocated_sgprs(&self, target: Target) -> u32 {
        (self.get(Field::SgprGranules) + 1) * target.sgpr_encoding_granule
    }

    /// Which SGPRs hold what when a wave starts: user SGPRs in the order of their property bits, then, behind the user
    /// SGPR count, system SGPRs.
    pub fn initial_sgprs(&self, target: Target) -> InitialSgprs {
        let mut next = 0;
        let mut take = |field: Field, width: u32| {
            let wanted = self.get(field) != 0;
            let first = wanted.then_some(next);
            next += if wanted { width } else { 0 };
            first
        };
        let user = InitialSgprs {
            private_segment_buffer: take(Field::PrivateSegmentBuffer, 4),
            dispatch_ptr: take(Field::DispatchPtr, 2),
            queue_ptr: take(Field::QueuePtr, 2),
            kernarg_segment_ptr: take(Field::KernargSegmentPtr, 2),
            dispatch_id: take(Field::DispatchId, 2),
            flat_scratch_init: take(Field::FlatScratchInit, 2),
            private_segment_size: take(Field::PrivateSegmentSize, 1),
            kernarg_preload: take(Field::KernargPreloadLength, 0),
            ..InitialSgprs::default()
        };
        next = self.get(Field::UserSgprCount);
        let mut take = |field: Field| {
            let wanted = self.get(field) != 0;
            let first = wanted.then_some(next);
            next += u32::from(wanted);
            first
        };
        let workgroup_ids = [Field::WorkgroupIdX, Field::WorkgroupIdY, Field::WorkgroupIdZ].map(&mut take);
        let workgroup_info = take(Field::WorkgroupInfo);
        let scratch_wave_offset = match target.flat_scratch {
            FlatScratch::Absolute => take(Field::PrivateSegment),
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

    /// The descriptor in these 64 bytes, or the offset of a byte with a bit set that is reserved or that no kernel sets.
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

    /// The `.amdhsa_kernel` block from which an assembler makes this descriptor. Register counts are those of the
    /// allocation, because the exact ones are not part of the descriptor.
    pub fn directives(&self, target: Target, symbol: &str) -> String {
        // The assembler adds the reserved SGPRs to what it is told, and refuses more than can be named.
        let reserved = match target.flat_scratch {
            FlatScratch::Architected => target.reserved_sgprs_with_scratch,
            FlatScratch::Absolute => target.reserved_sgprs,
        };
        let sgprs = self.allocated_sgprs(target).saturating_sub(reserved).min(target.addressable_sgprs);
        let mut text = format!(".amdhsa_kernel {symbol}\n");
        let mut line = |name: &str, value: u32| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  .amdhsa_{name} {value}");
        };
        line("group_segment_fixed_size", self.group_segment_fixed_size);
        line("private_segment_fixed_size", self.private_segment_fixed_size);
        line("kernarg_size", self.kernarg_size);
        line("next_free_vgpr", self.allocated_vgprs(target));
        line("accum_offset", self.accum_offset(target));
        line("next_free_sgpr", sgprs);
        line("reserve_vcc", 0);
        if target.flat_scratch == FlatScratch::Absolute {
            line("reserve_flat_scratch", 0);
        }
        for row in ROWS {
            let name = match target.flat_scratch {
                FlatScratch::Architected => row.directive.architected,
                FlatScratch::Absolute => row.directive.absolute,
            };
            if let Some(name) = name {
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
        assert_eq!(descriptor.get(Field::WorkitemId), 2);
        assert_eq!(descriptor.get(Field::KernargPreloadLength), 6);
    }

    #[test]
    fn agprs_follow_the_architectural_registers() {
        let resources = KernelResources { vgprs: 37, agprs: 64, ..KernelResources::default() };
        let descriptor = KernelDescriptor::new(Target::GFX942, &resources).unwrap();
        assert_eq!(descriptor.accum_offset(Target::GFX942), 40);
        assert_eq!(descriptor.allocated_vgprs(Target::GFX942), 104);
        assert_eq!(resources.total_vgprs(Target::GFX942), 104);
    }

    #[test]
    fn initial_registers_count_as_used() {
        let resources = KernelResources {
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
        let resources = KernelResources { scratch_bytes: 16, ..KernelResources::default() };
        let sgprs = |target| KernelDescriptor::new(target, &resources).unwrap().initial_sgprs(target);
        assert_eq!(sgprs(Target::GFX942).end, 3);
        let absolute = sgprs(Target::GFX90A);
        assert_eq!(absolute.flat_scratch_init, Some(2));
        assert_eq!(absolute.workgroup_ids[0], Some(4));
        assert_eq!(absolute.scratch_wave_offset, Some(5));
    }

    #[test]
    fn too_much_is_refused() {
        let refused =
            |resources: KernelResources| KernelDescriptor::new(Target::GFX942, &resources).unwrap_err().what;
        let base = KernelResources::default();
        assert_eq!(refused(KernelResources { vgprs: 257, ..base.clone() }), "VGPRs");
        assert_eq!(refused(KernelResources { agprs: 257, ..base.clone() }), "AGPRs");
        assert_eq!(refused(KernelResources { sgprs: 103, ..base.clone() }), "SGPRs");
        assert_eq!(refused(KernelResources { lds_bytes: 65_537, ..base.clone() }), "bytes of LDS");
        assert_eq!(refused(KernelResources { kernarg_preload_dwords: 15, ..base.clone() }), "user SGPRs");
        assert_eq!(refused(KernelResources { kernarg_preload_dwords: u32::MAX, ..base }), "user SGPRs");
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
