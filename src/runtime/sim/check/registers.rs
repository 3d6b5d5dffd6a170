//! Which registers of a wave hold something: a bit per lane of vector registers, per bit of scalar ones.
//!
//! What nobody has written may be moved and computed with; it is reported where it makes a difference. Until then it
//! remembers where it came from.

use super::super::wave::LANES;
use super::facts::{Bits, FIRST_VECTOR, SCC, insert};
use super::finding::Memory;

/// Where an undefined value came from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Origin {
    /// The step that read it.
    pub step: u32,
    /// What it read.
    pub what: What,
}

/// Something that nobody has written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// A register.
    Register(u32),
    /// Memory, by its first such byte.
    Memory(Memory, u64),
}

/// Definedness of the registers of one wave.
pub(super) struct Registers {
    /// Lanes of vector registers, by number behind the first VGPR.
    vectors: Box<[u64; 512]>,
    /// Bits of scalar registers.
    scalars: [u32; 128],
    scc: bool,
    /// Registers that are not defined throughout.
    pub partial: Bits,
    /// Index of the origin of what is undefined in a register, plus one; 0: the register was never written.
    origin: Box<[u16; 768]>,
    origins: Vec<Origin>,
}

impl Registers {
    /// Nothing is defined but EXEC and what the hardware keeps for itself.
    pub fn new() -> Registers {
        let mut registers = Registers {
            vectors: Box::new([0; 512]),
            scalars: [0; 128],
            scc: false,
            partial: [0; 12],
            origin: Box::new([0; 768]),
            origins: Vec::new(),
        };
        registers.reset();
        registers
    }

    /// The same again.
    pub fn reset(&mut self) {
        self.vectors.fill(0);
        self.scalars = [0; 128];
        self.scc = false;
        self.origin.fill(0);
        self.origins.clear();
        self.partial = [0; 12];
        insert(&mut self.partial, 0, 128);
        insert(&mut self.partial, SCC, SCC + 1);
        insert(&mut self.partial, FIRST_VECTOR, 768);
        for number in (102..106).chain(108..124).chain(125..128) {
            self.set_scalar(number, u32::MAX);
        }
    }

    fn mark(&mut self, number: u32, whole: bool) {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if whole {
            self.partial[word] &= !bit;
        } else {
            self.partial[word] |= bit;
        }
    }

    /// Defined lanes of a vector register, by operand number.
    #[inline]
    pub fn vector(&self, number: u32) -> u64 {
        self.vectors[(number - FIRST_VECTOR) as usize % 512]
    }

    /// Defined bits of a scalar register.
    #[inline]
    pub fn scalar(&self, number: u32) -> u32 {
        self.scalars[number as usize % 128]
    }

    /// Defined bits of a pair of scalar registers.
    pub fn pair(&self, number: u32) -> u64 {
        u64::from(self.scalar(number)) | u64::from(self.scalar(number + 1)) << 32
    }

    /// SCC is defined.
    pub fn scc(&self) -> bool {
        self.scc
    }

    /// Sets the defined lanes of a vector register.
    pub fn set_vector(&mut self, number: u32, lanes: u64) {
        self.vectors[(number - FIRST_VECTOR) as usize % 512] = lanes;
        self.mark(number, lanes == u64::MAX);
    }

    /// Sets the defined lanes of a vector register among `exec`.
    pub fn write_vector(&mut self, number: u32, exec: u64, defined: u64) {
        let old = self.vector(number);
        self.set_vector(number, old & !exec | exec & defined);
    }

    /// Sets the defined bits of a scalar register.
    pub fn set_scalar(&mut self, number: u32, bits: u32) {
        self.scalars[number as usize % 128] = bits;
        self.mark(number % 128, bits == u32::MAX);
    }

    /// Says whether SCC is defined.
    pub fn set_scc(&mut self, defined: bool) {
        self.scc = defined;
        self.mark(SCC, defined);
    }

    /// Makes a register defined throughout.
    pub fn define(&mut self, number: u32) {
        match number {
            0..128 => self.set_scalar(number, u32::MAX),
            SCC => self.set_scc(true),
            FIRST_VECTOR.. => self.set_vector(number, u64::MAX),
            _ => {}
        }
    }

    /// Makes all vector registers defined throughout.
    pub fn define_vectors(&mut self) {
        self.vectors.fill(u64::MAX);
        self.partial[4..].fill(0);
    }

    /// True if nothing in a register is undefined that `lanes` see.
    pub fn is_defined(&self, number: u32, lanes: u64) -> bool {
        match number {
            0..128 => self.scalar(number) == u32::MAX,
            SCC => self.scc,
            FIRST_VECTOR.. => lanes & !self.vector(number) == 0,
            _ => true,
        }
    }

    /// Where what is undefined in a register, which `step` reads, came from.
    pub fn origin(&self, number: u32, step: u32) -> Origin {
        match self.origin[number as usize % 768] {
            0 => Origin { step, what: What::Register(number) },
            index => self.origins[usize::from(index) - 1],
        }
    }

    /// Remembers where the undefined part of a register came from.
    pub fn set_origin(&mut self, number: u32, origin: Origin) {
        // One origin of memory per step is enough.
        let same = |known: &Origin| match (known.what, origin.what) {
            (What::Memory(..), What::Memory(..)) => known.step == origin.step,
            _ => *known == origin,
        };
        let index = self.origins.iter().position(same).unwrap_or_else(|| {
            self.origins.push(origin);
            self.origins.len() - 1
        });
        // Beyond what the index holds the last one has to do.
        self.origin[number as usize % 768] = (index + 1).min(self.origins.len()).min(u16::MAX.into()) as u16;
    }

    /// True if a lane of a vector register is defined.
    pub fn lane(&self, number: u32, lane: usize) -> bool {
        self.vector(number) >> (lane % LANES) & 1 != 0
    }
}
