//! The data of stores: two waves that store the same data do no harm.

use crate::codegen::isa::{Field, Meaning, MemoryData};

use super::super::execute::store_value;
use super::super::wave::{LANES, VectorRow, Wave};
use super::facts::{CompletionOrder, InstructionFacts};
use super::flight::row_of;

/// The registers that an access takes the bytes from that it stores.
#[derive(Copy, Clone)]
pub(super) struct StoredRegisters {
    /// Number of the first one.
    pub first: u32,
    /// How their bytes get into memory.
    pub kind: MemoryData,
}

impl StoredRegisters {
    /// Those of access number `index` of an instruction; none for data that are converted or copied on the
    /// way.
    pub(super) fn of(facts: &InstructionFacts, index: usize) -> Option<StoredRegisters> {
        let (field, kind, skipped) = match facts.inst.as_ref()?.op.info().meaning {
            // The accesses of a flat store are one access to several memories; those of others are one per
            // component.
            Meaning::Store(kind) if facts.order == CompletionOrder::Flat => (Field::Data0, kind, 0),
            Meaning::Store(kind) => (Field::Data0, kind, index),
            Meaning::StoreAtLane => (Field::Data0, MemoryData::Dwords(1), 0),
            Meaning::StoreTwo(dwords, _) if index == 0 => (Field::Data0, MemoryData::Dwords(dwords), 0),
            Meaning::StoreTwo(dwords, _) => (Field::Data1, MemoryData::Dwords(dwords), 0),
            _ => return None,
        };
        let register = facts.uses.all.iter().find(|r| r.is_read && r.field == Some(field))?;
        Some(StoredRegisters { first: register.first + skipped as u32, kind })
    }
}

/// The bytes that a store takes from registers.
#[derive(Copy, Clone)]
pub(super) struct StoreData<'a> {
    rows: &'a [VectorRow],
    kind: MemoryData,
}

impl<'a> StoreData<'a> {
    /// The data of access number `index` of an instruction; none for data that are converted or copied on the
    /// way.
    pub(super) fn of(
        facts: &InstructionFacts,
        index: usize,
        w: &'a Wave,
        vgprs: usize,
    ) -> Option<StoreData<'a>> {
        let StoredRegisters { first, kind } = StoredRegisters::of(facts, index)?;
        Some(StoreData { rows: w.rows.get(row_of(first, vgprs)?..)?, kind })
    }

    /// What some lanes store, if that is one dword each.
    #[inline(always)]
    pub(super) fn dwords(&self, lane: usize, lanes: usize) -> Option<&'a [u32]> {
        let row = self.rows.first().filter(|_| self.kind == MemoryData::Dwords(1))?;
        row.get(lane..lane + lanes)
    }

    /// The bytes of a cell of `1 << granule` bytes that a lane stores, starting with byte `byte` of its data.
    #[inline(always)]
    pub(super) fn value(&self, lane: usize, byte: usize, granule: u32) -> u32 {
        let Some(row) = self.rows.get(byte / 4) else { return 0 };
        let bits = store_value(self.kind, row[lane % LANES]) >> (byte % 4 * 8);
        bits & (u32::MAX >> (32 - (8 << granule)))
    }
}
