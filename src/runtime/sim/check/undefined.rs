//! The undefined part of the data that memory instructions load and store, bit by bit.

use super::super::execute::store_value;
use super::super::register_bits::FIRST_VECTOR;
use super::super::wave::{LANES, VectorRow};
use super::data::StoredRegisters;
use super::facts::InstructionFacts;
use super::registers::{RegisterShadow, UndefinedOrigin};

/// The undefined part of what an instruction loads.
#[derive(Default)]
pub(super) struct UndefinedLoad {
    /// As many dwords of each lane as have anything undefined in or after them.
    dwords: Vec<UndefinedDword>,
}

/// One dword of each lane.
#[derive(Copy, Clone)]
struct UndefinedDword {
    bits: VectorRow,
    /// Where the first undefined bits came from.
    origin: Option<UndefinedOrigin>,
}

impl UndefinedLoad {
    /// Adds undefined bits of a lane, counted from byte `byte` of its data.
    pub(super) fn add(&mut self, lane: usize, byte: u64, bits: u32, origin: Option<UndefinedOrigin>) {
        let bits = u64::from(bits) << (8 * (byte % 4));
        let first = (byte / 4) as usize;
        for (dword, bits) in [(first, bits as u32), (first + 1, (bits >> 32) as u32)] {
            if bits != 0 {
                let dword = self.dword(dword);
                dword.bits[lane % LANES] |= bits;
                dword.origin = dword.origin.or(origin);
            }
        }
    }

    fn dword(&mut self, dword: usize) -> &mut UndefinedDword {
        if self.dwords.len() <= dword {
            self.dwords.resize(dword + 1, UndefinedDword { bits: [0; LANES], origin: None });
        }
        &mut self.dwords[dword]
    }

    /// Adds what another access of the instruction loads, whose data start at dword `first`.
    pub(super) fn merge(&mut self, other: &UndefinedLoad, first: usize) {
        for (index, more) in other.dwords.iter().enumerate() {
            let dword = self.dword(first + index);
            dword.bits.iter_mut().zip(&more.bits).for_each(|(bits, more)| *bits |= more);
            dword.origin = dword.origin.or(more.origin);
        }
    }

    /// Calls `f` for every dword of a lane that has undefined bits: the lane, the number of the first byte,
    /// the bits.
    pub(super) fn for_each(&self, mut f: impl FnMut(usize, u64, u32)) {
        for (index, dword) in self.dwords.iter().enumerate() {
            for (lane, &bits) in dword.bits.iter().enumerate().filter(|(_, bits)| **bits != 0) {
                f(lane, 4 * index as u64, bits);
            }
        }
    }

    /// True if everything is defined.
    pub(super) fn is_empty(&self) -> bool {
        self.dwords.is_empty()
    }

    /// Undefined bits of a dword; none if it is defined in all lanes.
    pub(super) fn bits(&self, dword: usize) -> Option<&VectorRow> {
        self.dwords.get(dword).map(|dword| &dword.bits)
    }

    /// Lanes in which a dword is not fully defined.
    pub(super) fn lanes(&self, dword: usize) -> u64 {
        let bits = |row: &VectorRow| (0..LANES).fold(0, |lanes, l| lanes | u64::from(row[l] != 0) << l);
        self.bits(dword).map_or(0, bits)
    }

    /// Where the undefined bits of a dword came from.
    pub(super) fn origin(&self, dword: usize) -> Option<UndefinedOrigin> {
        self.dwords.get(dword)?.origin
    }

    /// Where the first undefined bits came from, and the lanes that have any.
    pub(super) fn first(&self) -> Option<(UndefinedOrigin, u64)> {
        let lanes = (0..self.dwords.len()).fold(0, |lanes, dword| lanes | self.lanes(dword));
        Some((self.dwords.iter().find_map(|dword| dword.origin)?, lanes))
    }
}

/// The undefined part of what an access stores.
pub(super) enum UndefinedStore<'a> {
    /// Registers whose bytes go to memory as they are.
    Registers { stored: StoredRegisters, lanes: u64, registers: &'a RegisterShadow, step: u32 },
    /// Registers whose data are computed with or converted on the way: all of it is undefined in these lanes.
    Computed { lanes: u64, origin: UndefinedOrigin },
    /// What the instruction has loaded from another memory.
    Loaded(&'a UndefinedLoad),
}

impl<'a> UndefinedStore<'a> {
    /// Of access number `index` of an instruction that stores something undefined in `lanes`; none if all of
    /// it is defined.
    pub(super) fn of_registers(
        facts: &InstructionFacts,
        index: usize,
        lanes: u64,
        registers: &'a RegisterShadow,
        step: u32,
    ) -> Option<UndefinedStore<'a>> {
        if lanes == 0 {
            return None;
        }
        if let Some(stored) = StoredRegisters::of(facts, index).filter(|s| s.first >= FIRST_VECTOR) {
            return Some(UndefinedStore::Registers { stored, lanes, registers, step });
        }
        let mut read = facts.uses.all.iter().filter(|r| r.is_read).flat_map(|r| r.first..r.end);
        let number = read.find(|&number| number >= FIRST_VECTOR && !registers.is_defined(number, lanes))?;
        Some(UndefinedStore::Computed { lanes, origin: registers.origin(number, step) })
    }

    /// Lanes that may store something undefined.
    pub(super) fn lanes(&self) -> u64 {
        match self {
            UndefinedStore::Registers { lanes, .. } | UndefinedStore::Computed { lanes, .. } => *lanes,
            UndefinedStore::Loaded(loaded) => loaded.first().map_or(0, |(_, lanes)| lanes),
        }
    }

    /// Undefined bits of the cell of `1 << granule` bytes that starts with byte `byte` of a lane's data.
    pub(super) fn cell(&self, lane: usize, byte: usize, granule: u32) -> u32 {
        let bits = |at: usize| self.byte(lane, byte + at).map_or(0, |(bits, _)| u32::from(bits) << (8 * at));
        (0..1 << granule).map(bits).sum()
    }

    /// Undefined bits of a byte that a lane stores, and where they came from.
    pub(super) fn byte(&self, lane: usize, byte: usize) -> Option<(u8, UndefinedOrigin)> {
        let (bits, origin) = match self {
            _ if self.lanes() >> lane & 1 == 0 => return None,
            UndefinedStore::Computed { origin, .. } => (0xff, *origin),
            UndefinedStore::Registers { stored, registers, step, .. } => {
                let number = stored.first + byte as u32 / 4;
                let bits = store_value(stored.kind, registers.undefined_bits_of(number, lane));
                ((bits >> (8 * (byte % 4))) as u8, registers.origin(number, *step))
            }
            UndefinedStore::Loaded(loaded) => {
                let bits = loaded.bits(byte / 4)?[lane % LANES];
                ((bits >> (8 * (byte % 4))) as u8, loaded.origin(byte / 4)?)
            }
        };
        (bits != 0).then_some((bits, origin))
    }
}
