//! Buffer descriptors under check: accesses that a descriptor lets through have to stay in the allocation
//! that its base lies in. What lies in another allocation depends on where the launch puts it.
//!
//! A descriptor that spans more than its allocation is not a fault in itself: compilers that mask lanes on
//! their own give every buffer 2 GiB. Other sizes that extend beyond the allocation are noted, as they may
//! have wrapped around. A base that lies in no allocation is not a fault either: libraries put it in front of
//! a tensor. The accesses are judged.

use std::ops::RangeInclusive;

use crate::codegen::isa::Field;

use super::super::execute::{Footprint, MemorySpace};
use super::super::program::OperandPlace;
use super::super::wave::LANES;
use super::access::Issue;
use super::checker::{CheckWorker, LaunchChecker, Runner};
use super::finding::FindingKind;

impl LaunchChecker<'_> {
    /// Reports lanes of an access through a buffer descriptor that leave the allocation of the descriptor's
    /// base for another one; `lanes` are those that lie in some allocation.
    pub(super) fn leaves_buffer(
        &self,
        issue: &Issue<'_>,
        footprint: &Footprint,
        lanes: u64,
        runner: &Runner,
        worker: &mut CheckWorker,
    ) {
        if footprint.space != MemorySpace::Device || lanes == 0 {
            return;
        }
        let Some(Descriptor { address: descriptor, records }) = descriptor_of(issue, runner) else { return };
        let Some((base, size)) = self.allocation_of(descriptor) else { return };
        if let Some(records) = records
            && !UNLIMITED.contains(&records)
            && descriptor + u64::from(records) > base + size
        {
            let kind = FindingKind::WideDescriptor { descriptor, records, base, size };
            worker.found.add(issue.who.raw(kind, base, lanes));
        }
        let (low, high) = footprint.extent(lanes);
        if low >= base && high <= base + size {
            return;
        }
        let strays = |l: usize| lanes >> l & 1 != 0 && footprint.address[l].wrapping_sub(base) >= size;
        let stray: u64 = (0..LANES).filter(|&l| strays(l)).fold(0, |mask, l| mask | 1 << l);
        if stray == 0 {
            return;
        }
        let l = stray.trailing_zeros() as usize;
        let kind = FindingKind::LeavesBuffer {
            access: footprint.access,
            address: footprint.address[l],
            bytes: footprint.bytes[l].into(),
            descriptor,
            base,
            size,
        };
        worker.found.add(issue.who.raw(kind, base, stray));
    }

    /// Start and size of the allocation that holds an address.
    fn allocation_of(&self, address: u64) -> Option<(u64, u64)> {
        let index = self.extents.partition_point(|extent| extent.0 <= address).checked_sub(1)?;
        let (base, size) = self.extents[index];
        (address - base < size).then_some((base, size))
    }
}

/// Sizes that mean "no limit": from about 2 GiB, so that larger offsets mask lanes.
const UNLIMITED: RangeInclusive<u32> = 0x7fff_fff0..=0x8000_0000;

/// A decoded buffer descriptor.
struct Descriptor {
    address: u64,
    /// Its size in bytes; `None` if it has none or counts elements.
    records: Option<u32>,
}

/// The buffer descriptor of an instruction that has one.
fn descriptor_of(issue: &Issue<'_>, runner: &Runner) -> Option<Descriptor> {
    let inst = issue.facts.inst.as_ref()?;
    if !inst.op.info().format.is_mubuf() {
        return None;
    }
    let first = issue.facts.uses.all.iter().find(|r| r.field == Some(Field::Base))?.first;
    let word = |n: u32| runner.w.scalar(OperandPlace::Scalar((first + n) as u8));
    // Bits 0 to 47, 48 to 61 and 64 to 95 (CDNA3 ISA guide, table "Buffer resource descriptor").
    let (low, high, records) = (word(0), word(1), word(2));
    let has_stride = high >> 16 & 0x3fff != 0;
    Some(Descriptor {
        address: u64::from(low) | u64::from(high & 0xffff) << 32,
        records: (!has_stride && records != u32::MAX).then_some(records),
    })
}
