//! `.amdhsa_kernel` blocks: descriptors as directives, read and written.
//!
//! Directives, defaults and checks are those of LLVM ("User Guide for AMDGPU Backend", table "AMDHSA Kernel
//! Assembler Directives"; `AMDGPUAsmParser::ParseDirectiveAMDHSAKernel`). Bit fields with a directive of
//! their own come from the descriptor's table; the rest are sizes and register counts.

use std::fmt::Write;

use super::error::other;
use crate::codegen::isa::parse::InstructionFault;
use crate::codegen::object::{DescriptorField, KernelDescriptor};
use crate::codegen::target::{AccumulationFile, Feature, FlatScratch, TargetId};

/// Directives that are not bit fields: name, largest value.
const SIZES: [(&str, i64); 9] = [
    ("group_segment_fixed_size", u32::MAX as i64),
    ("private_segment_fixed_size", u32::MAX as i64),
    ("kernarg_size", u32::MAX as i64),
    ("next_free_vgpr", 512),
    ("next_free_sgpr", 102),
    ("accum_offset", 256),
    ("reserve_vcc", 1),
    ("reserve_flat_scratch", 1),
    ("reserve_xnack_mask", 1),
];

/// User SGPRs of each field, in the order in which they are assigned.
const USER_SGPRS: [(DescriptorField, u32); 7] = [
    (DescriptorField::PrivateSegmentBuffer, 4),
    (DescriptorField::DispatchPtr, 2),
    (DescriptorField::QueuePtr, 2),
    (DescriptorField::KernargSegmentPtr, 2),
    (DescriptorField::DispatchId, 2),
    (DescriptorField::FlatScratchInit, 2),
    (DescriptorField::PrivateSegmentSize, 1),
];

/// A block while its lines are read.
#[derive(Clone, Debug)]
pub(super) struct KernelBlock {
    /// The kernel.
    pub name: String,
    target: TargetId,
    seen: Vec<String>,
    /// By the order of [`SIZES`].
    sizes: [Option<i64>; SIZES.len()],
    descriptor: KernelDescriptor,
}

impl KernelBlock {
    /// A block with the default values.
    pub(super) fn new(name: String, target: TargetId) -> KernelBlock {
        let mut descriptor = KernelDescriptor::default();
        for (field, value) in [
            (DescriptorField::DenormMode16And64, 3),
            (DescriptorField::Dx10Clamp, 1),
            (DescriptorField::IeeeMode, 1),
            (DescriptorField::WorkgroupIdX, 1),
        ] {
            descriptor.set(field, value);
        }
        KernelBlock { name, target, seen: Vec::new(), sizes: [None; SIZES.len()], descriptor }
    }

    /// Checks that such a directive exists on this target, and is given once.
    pub(super) fn check(&mut self, directive: &str) -> Result<(), InstructionFault> {
        let unknown = || other(format!("`{directive}` is not a directive of a kernel descriptor"));
        let name = directive.strip_prefix(".amdhsa_").ok_or_else(unknown)?;
        let target = self.target.target();
        let is_field = KernelDescriptor::directive_fields(target).any(|(known, ..)| known == name);
        let is_size = SIZES.iter().any(|(known, _)| *known == name);
        if !is_field && !is_size {
            return Err(match KernelDescriptor::is_directive(name) {
                true => other(format!("{target} has no `{directive}`")),
                false => unknown(),
            });
        }
        let lacks = match name {
            "accum_offset" => self.accum_granule().is_none(),
            "reserve_flat_scratch" => target.flat_scratch == FlatScratch::Architected,
            "reserve_xnack_mask" => !target.has(Feature::Xnack),
            _ => false,
        };
        if lacks {
            return Err(other(format!("{target} has no `{directive}`")));
        }
        if self.seen.iter().any(|seen| seen == name) {
            return Err(InstructionFault::Twice { name: directive.to_owned() });
        }
        self.seen.push(name.to_owned());
        Ok(())
    }

    /// Takes the value of a directive that was checked.
    pub(super) fn set(&mut self, directive: &str, value: i64) -> Result<(), InstructionFault> {
        let name = directive.strip_prefix(".amdhsa_").unwrap_or(directive);
        let range = |high| InstructionFault::Range { what: "the value", low: 0, high, found: value };
        if let Some(index) = SIZES.iter().position(|(known, _)| *known == name) {
            if !(0..=SIZES[index].1).contains(&value) {
                return Err(range(SIZES[index].1));
            }
            if name == "reserve_xnack_mask" && (value != 0) != self.target.may_retry() {
                return Err(other(format!("the target id {} says otherwise", self.target)));
            }
            self.sizes[index] = Some(value);
            return Ok(());
        }
        let target = self.target.target();
        let mut fields = KernelDescriptor::directive_fields(target);
        let Some((_, field, width)) = fields.find(|(known, ..)| *known == name) else {
            return Err(other(format!("`{directive}` is not a directive of a kernel descriptor")));
        };
        let high = match field {
            // There are only three coordinates.
            DescriptorField::WorkitemId => 2,
            _ => (1 << width) - 1,
        };
        if !(0..=high).contains(&value) {
            return Err(range(high));
        }
        self.descriptor.set(field, value as u32);
        Ok(())
    }

    fn accum_granule(&self) -> Option<u32> {
        match self.target.agprs {
            AccumulationFile::Unified { granule } => Some(granule),
            AccumulationFile::None | AccumulationFile::Separate => None,
        }
    }

    fn size(&self, name: &str) -> Option<u32> {
        let index = SIZES.iter().position(|(known, _)| *known == name)?;
        self.sizes[index].map(|value| value as u32)
    }

    fn required(&self, name: &str) -> Result<u32, InstructionFault> {
        self.size(name).ok_or_else(|| other(format!("`.amdhsa_{name}` is missing")))
    }

    /// The descriptor; its entry offset remains 0.
    pub(super) fn descriptor(&self) -> Result<KernelDescriptor, InstructionFault> {
        let mut descriptor = self.descriptor;
        let target = self.target;
        descriptor.group_segment_fixed_size = self.size("group_segment_fixed_size").unwrap_or(0);
        descriptor.private_segment_fixed_size = self.size("private_segment_fixed_size").unwrap_or(0);
        descriptor.kernarg_size = self.size("kernarg_size").unwrap_or(0);

        let vgprs = self.required("next_free_vgpr")?.max(1);
        let sgprs = self.required("next_free_sgpr")? + self.reserved_sgprs();
        let granules = |what: &str, count: u32, granule: u32, most: u32| {
            let granules = count.div_ceil(granule).max(1) - 1;
            if granules > most {
                Err(other(format!("{target} does not have that many {what}")))
            } else {
                Ok(granules)
            }
        };
        let (_, vgpr_limit) = self.vgpr_limits();
        if vgprs > vgpr_limit {
            let what = "`.amdhsa_next_free_vgpr`";
            return Err(InstructionFault::Range {
                what,
                low: 0,
                high: vgpr_limit.into(),
                found: vgprs.into(),
            });
        }
        descriptor.set(DescriptorField::VgprGranules, granules("VGPRs", vgprs, target.vgpr_granule, 0x3f)?);
        descriptor
            .set(DescriptorField::SgprGranules, granules("SGPRs", sgprs, target.sgpr_encoding_granule, 0xf)?);
        if let Some(granule) = self.accum_granule() {
            let offset = self.required("accum_offset")?;
            if offset < granule || !offset.is_multiple_of(granule) {
                return Err(other(format!(
                    "`.amdhsa_accum_offset` is a multiple of {granule}, from {granule} on"
                )));
            }
            if offset > vgprs.next_multiple_of(4) {
                return Err(other("`.amdhsa_accum_offset` is more than `.amdhsa_next_free_vgpr`"));
            }
            descriptor.set(DescriptorField::AccumOffset, offset / granule - 1);
        }
        self.user_sgprs(&mut descriptor)?;
        Ok(descriptor)
    }

    /// VGPRs of one file, and the most that a wave can have.
    fn vgpr_limits(&self) -> (u32, u32) {
        let one = self.target.addressable_vgprs;
        (one, if self.accum_granule().is_some() { 2 * one } else { one })
    }

    /// SGPRs that the kernel pays for in addition to the named ones (LLVM, `getNumExtraSGPRs`).
    fn reserved_sgprs(&self) -> u32 {
        let architected = self.target.flat_scratch == FlatScratch::Architected;
        reserved(
            self.target,
            self.size("reserve_vcc") != Some(0),
            architected || self.size("reserve_flat_scratch") != Some(0),
        )
    }

    fn user_sgprs(&self, descriptor: &mut KernelDescriptor) -> Result<(), InstructionFault> {
        let asked = USER_SGPRS.iter().filter(|(field, _)| descriptor.get(*field) != 0);
        let length = descriptor.get(DescriptorField::KernargPreloadLength);
        let implied = asked.map(|(_, count)| count).sum::<u32>() + length;
        let told = self.seen.iter().any(|seen| seen == "user_sgpr_count");
        let count = if told { descriptor.get(DescriptorField::UserSgprCount) } else { implied };
        if count < implied {
            return Err(other(format!("`.amdhsa_user_sgpr_count` is {count}, but {implied} are asked for")));
        }
        let most = self.target.max_user_sgprs;
        if count > most {
            return Err(other(format!("{count} user SGPRs are asked for, there are {most}")));
        }
        let preloaded =
            4 * (u64::from(length) + u64::from(descriptor.get(DescriptorField::KernargPreloadOffset)));
        let told = self.size("kernarg_size");
        if length > 0 && told.is_some_and(|told| told > 0 && preloaded > told.into()) {
            return Err(other("more of the kernel arguments is preloaded than `.amdhsa_kernarg_size`"));
        }
        descriptor.set(DescriptorField::UserSgprCount, count);
        Ok(())
    }
}

fn reserved(target: TargetId, vcc: bool, flat_scratch: bool) -> u32 {
    let reserved = target.reserved_sgprs;
    let mut count = if vcc { reserved.vcc } else { 0 };
    if target.may_retry() {
        count = count.max(reserved.xnack_mask);
    }
    if flat_scratch { count.max(reserved.flat_scratch) } else { count }
}

/// The block that makes this descriptor. Register counts are those of the allocation, because the descriptor
/// does not hold exact ones.
pub(super) fn write(out: &mut String, name: &str, descriptor: &KernelDescriptor, target: TargetId) {
    let architected = target.flat_scratch == FlatScratch::Architected;
    let reserved = reserved(target, false, architected);
    let sgprs = descriptor.allocated_sgprs(*target).saturating_sub(reserved).min(target.addressable_sgprs);
    // Writing to a string cannot fail.
    let _ = writeln!(out, ".amdhsa_kernel {name}");
    let mut line = |name: &str, value: u32| {
        let _ = writeln!(out, "  .amdhsa_{name} {value}");
    };
    line("group_segment_fixed_size", descriptor.group_segment_fixed_size);
    line("private_segment_fixed_size", descriptor.private_segment_fixed_size);
    line("kernarg_size", descriptor.kernarg_size);
    line("next_free_vgpr", descriptor.allocated_vgprs(*target));
    if let Some(offset) = descriptor.accum_offset(*target) {
        line("accum_offset", offset);
    }
    line("next_free_sgpr", sgprs);
    line("reserve_vcc", 0);
    if !architected {
        line("reserve_flat_scratch", 0);
    }
    if target.has(Feature::Xnack) {
        line("reserve_xnack_mask", target.may_retry().into());
    }
    for (name, field, _) in KernelDescriptor::directive_fields(*target) {
        line(name, descriptor.get(field));
    }
    out.push_str(".end_amdhsa_kernel\n");
}

/// The descriptor that such a block makes: for a foreign object it may be another one.
pub(super) fn round_trip(descriptor: &KernelDescriptor, target: TargetId) -> Option<KernelDescriptor> {
    let mut text = String::new();
    write(&mut text, "k", descriptor, target);
    let mut block = KernelBlock::new("k".to_owned(), target);
    for line in text.lines() {
        if let Some((name, value)) = line.trim().split_once(' ').filter(|(name, _)| *name != ".amdhsa_kernel")
        {
            block.check(name).ok()?;
            block.set(name, value.parse().ok()?).ok()?;
        }
    }
    let mut again = block.descriptor().ok()?;
    again.entry_byte_offset = descriptor.entry_byte_offset;
    Some(again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::target::Target;

    fn block(target: Target, lines: &[(&str, i64)]) -> Result<KernelDescriptor, InstructionFault> {
        let mut block = KernelBlock::new("k".to_owned(), target.into());
        for (name, value) in lines {
            let name = format!(".amdhsa_{name}");
            block.check(&name)?;
            block.set(&name, *value)?;
        }
        block.descriptor()
    }

    /// `store_one` as LLVM 19 assembles it: 3 VGPRs, 3 SGPRs, 8 bytes of arguments, all else by default.
    #[test]
    fn what_is_not_said_is_what_llvm_takes_it_for() {
        let lines = [
            ("kernarg_size", 8),
            ("user_sgpr_kernarg_segment_ptr", 1),
            ("next_free_vgpr", 3),
            ("next_free_sgpr", 3),
            ("accum_offset", 4),
        ];
        let mut expected = [0; 64];
        expected[8] = 8;
        expected[48..57].copy_from_slice(&[0x40, 0x00, 0xac, 0x00, 0x84, 0x00, 0x00, 0x00, 0x08]);
        assert_eq!(block(Target::GFX942, &lines).map(|d| d.to_bytes()), Ok(expected));
    }

    #[test]
    fn every_register_count_comes_back() {
        for target in Target::ALL {
            let unified = matches!(target.agprs, AccumulationFile::Unified { .. });
            for sgprs in 0..=102 {
                for vgprs in [0, 1, 4, 8, 9, 255, 256, 257, 512] {
                    let mut lines = vec![("next_free_vgpr", vgprs), ("next_free_sgpr", sgprs)];
                    lines.extend(unified.then_some(("accum_offset", 4)));
                    let Ok(descriptor) = block(target, &lines) else {
                        assert!(vgprs > 256 && !unified, "{target}: {vgprs} VGPRs, {sgprs} SGPRs");
                        continue;
                    };
                    assert_eq!(
                        round_trip(&descriptor, target.into()),
                        Some(descriptor),
                        "{target} {sgprs} {vgprs}"
                    );
                }
            }
        }
    }
}
