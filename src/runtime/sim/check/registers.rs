//! Which bits of a wave's registers are defined.
//!
//! An undefined value may be moved and computed with; it is reported where it makes a difference. Until then
//! it remembers where it came from.
//!
//! Most lanes of vector registers are either defined or undefined as a whole, which takes a bit per lane.
//! Only lanes with some defined bits are looked up in a row with all bits.

use super::super::register_bits::{FIRST_VECTOR, RegisterBits, SCC, insert};
use super::super::wave::{LANES, VectorRow};
use super::finding::Memory;

/// Where an undefined value came from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct UndefinedOrigin {
    /// The step that read it.
    pub step: u32,
    /// What it read.
    pub what: Unwritten,
}

impl UndefinedOrigin {
    /// What tells it from others of the same step.
    pub(super) fn place(&self) -> u64 {
        match self.what {
            Unwritten::Register(number) => number.into(),
            Unwritten::Memory(memory, _) => memory as u64,
        }
    }
}

/// Something that was never written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Unwritten {
    /// A register.
    Register(u32),
    /// Memory, by its first such byte.
    Memory(Memory, u64),
}

/// Definedness of the registers of one wave.
pub(super) struct RegisterShadow {
    /// Lanes of vector registers that are fully defined, by number after the first VGPR.
    vectors: Box<[u64; 512]>,
    /// Lanes that are not, whose undefined bits are those in `bits`; all bits of the other lanes are
    /// undefined.
    mixed: Box<[u64; 512]>,
    /// Undefined bits of the mixed lanes; as many registers as have ever had such lanes.
    bits: Vec<VectorRow>,
    /// Bits of scalar registers.
    scalars: [u32; 128],
    scc: bool,
    /// Registers that are not fully defined.
    pub partial: RegisterBits,
    /// For each block of vector registers, as a bit, whether anything is known of one of them.
    used: u8,
    /// Index of the origin of the undefined part of a register, plus one; 0: the register was never written.
    origin: Box<[u16; 768]>,
    origins: Vec<UndefinedOrigin>,
}

impl RegisterShadow {
    /// Only EXEC and the registers that the hardware sets are defined.
    pub(super) fn new() -> RegisterShadow {
        let mut registers = RegisterShadow {
            vectors: Box::new([0; 512]),
            mixed: Box::new([0; 512]),
            bits: Vec::new(),
            scalars: [0; 128],
            scc: false,
            partial: [0; 12],
            used: u8::MAX,
            origin: Box::new([0; 768]),
            origins: Vec::new(),
        };
        registers.reset();
        registers
    }

    /// Resets it to that state.
    pub(super) fn reset(&mut self) {
        let (scalars, vectors) = self.origin.split_at_mut(FIRST_VECTOR as usize);
        scalars.fill(0);
        // Most programs use few of the vector registers.
        for block in (0..8).filter(|block| self.used >> block & 1 != 0) {
            let registers = block * BLOCK..(block + 1) * BLOCK;
            self.vectors[registers.clone()].fill(0);
            self.mixed[registers.clone()].fill(0);
            vectors[registers].fill(0);
        }
        self.used = 0;
        self.scalars = [0; 128];
        self.scc = false;
        self.origins.clear();
        // All but the numbers of constants between the scalar and the vector registers.
        self.partial = [u64::MAX; 12];
        self.partial[2..4].fill(0);
        insert(&mut self.partial, SCC, SCC + 1);
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

    /// Lanes of a vector register that are fully defined, by operand number.
    #[inline]
    pub(super) fn vector(&self, number: u32) -> u64 {
        self.vectors[index(number)]
    }

    /// Undefined bits of every lane of a vector register.
    pub(super) fn undefined_bits(&self, number: u32) -> VectorRow {
        let at = index(number);
        let (defined, mixed) = (self.vectors[at], self.mixed[at]);
        match self.bits.get(at).filter(|_| mixed != 0) {
            None => std::array::from_fn(|l| if defined >> l & 1 != 0 { 0 } else { u32::MAX }),
            Some(bits) => std::array::from_fn(|l| match (defined >> l & 1, mixed >> l & 1) {
                (0, 0) => u32::MAX,
                (0, _) => bits[l],
                _ => 0,
            }),
        }
    }

    /// Undefined bits of one lane.
    pub(super) fn undefined_bits_of(&self, number: u32, lane: usize) -> u32 {
        let at = index(number);
        match (self.vectors[at] >> lane & 1, self.mixed[at] >> lane & 1) {
            (0, 0) => u32::MAX,
            (0, _) => self.bits.get(at).map_or(u32::MAX, |row| row[lane % LANES]),
            _ => 0,
        }
    }

    /// Sets the undefined bits of the lanes `exec` of a vector register.
    pub(super) fn write_bits(&mut self, number: u32, exec: u64, undefined: &VectorRow) {
        let (mut defined, mut mixed) = (0, 0);
        for (l, &bits) in undefined.iter().enumerate() {
            defined |= u64::from(bits == 0) << l;
            mixed |= u64::from(bits != 0 && bits != u32::MAX) << l;
        }
        let at = index(number);
        mixed &= exec;
        if mixed != 0 {
            if self.bits.len() <= at {
                self.bits.resize(at + 1, [0; LANES]);
            }
            for (l, (row, &bits)) in self.bits[at].iter_mut().zip(undefined).enumerate() {
                *row = if mixed >> l & 1 != 0 { bits } else { *row };
            }
        }
        let kept = self.mixed[at] & !exec;
        self.write_vector(number, exec, defined);
        self.mixed[at] = kept | mixed;
    }

    /// Defined bits of a scalar register.
    #[inline]
    pub(super) fn scalar(&self, number: u32) -> u32 {
        self.scalars[number as usize % 128]
    }

    /// Defined bits of a pair of scalar registers.
    pub(super) fn pair(&self, number: u32) -> u64 {
        u64::from(self.scalar(number)) | u64::from(self.scalar(number + 1)) << 32
    }

    /// SCC is defined.
    pub(super) fn scc(&self) -> bool {
        self.scc
    }

    /// Sets the lanes of a vector register that are fully defined; the others are undefined.
    pub(super) fn set_vector(&mut self, number: u32, lanes: u64) {
        self.write_vector(number, u64::MAX, lanes);
    }

    /// The same among the lanes `exec`.
    pub(super) fn write_vector(&mut self, number: u32, exec: u64, defined: u64) {
        let at = index(number);
        if exec & !(self.vectors[at] & defined) == 0 {
            return;
        }
        self.used |= 1 << (at / BLOCK);
        let lanes = self.vectors[at] & !exec | exec & defined;
        self.vectors[at] = lanes;
        self.mixed[at] &= !exec;
        // A tuple that starts at the last register extends past the file, where register numbers wrap.
        self.mark(FIRST_VECTOR + at as u32, lanes == u64::MAX);
    }

    /// Sets the defined bits of a scalar register.
    pub(super) fn set_scalar(&mut self, number: u32, bits: u32) {
        self.scalars[number as usize % 128] = bits;
        self.mark(number % 128, bits == u32::MAX);
    }

    /// Says whether SCC is defined.
    pub(super) fn set_scc(&mut self, defined: bool) {
        self.scc = defined;
        self.mark(SCC, defined);
    }

    /// Makes a register defined throughout.
    pub(super) fn define(&mut self, number: u32) {
        match number {
            0..128 => self.set_scalar(number, u32::MAX),
            SCC => self.set_scc(true),
            FIRST_VECTOR.. => self.set_vector(number, u64::MAX),
            _ => {}
        }
    }

    /// Makes all vector registers defined throughout.
    pub(super) fn define_vectors(&mut self) {
        self.used = u8::MAX;
        self.vectors.fill(u64::MAX);
        self.mixed.fill(0);
        self.partial[4..].fill(0);
    }

    /// True if the part of a register that `lanes` see is fully defined.
    pub(super) fn is_defined(&self, number: u32, lanes: u64) -> bool {
        match number {
            0..128 => self.scalar(number) == u32::MAX,
            SCC => self.scc,
            FIRST_VECTOR.. => lanes & !self.vector(number) == 0,
            _ => true,
        }
    }

    /// Where the undefined part of a register, which `step` reads, came from.
    pub(super) fn origin(&self, number: u32, step: u32) -> UndefinedOrigin {
        match self.origin[number as usize % 768] {
            0 => UndefinedOrigin { step, what: Unwritten::Register(number) },
            index => self.origins[usize::from(index) - 1],
        }
    }

    /// Remembers where the undefined part of a register came from.
    pub(super) fn set_origin(&mut self, number: u32, origin: UndefinedOrigin) {
        // One origin of memory per step is enough.
        let same = |known: &UndefinedOrigin| match (known.what, origin.what) {
            (Unwritten::Memory(..), Unwritten::Memory(..)) => known.step == origin.step,
            _ => *known == origin,
        };
        let index = self.origins.iter().position(same).unwrap_or_else(|| {
            self.origins.push(origin);
            self.origins.len() - 1
        });
        if number >= FIRST_VECTOR {
            self.used |= 1 << (self::index(number) / BLOCK);
        }
        // Beyond what the index holds, the last origin stands for the rest.
        self.origin[number as usize % 768] = (index + 1).min(self.origins.len()).min(u16::MAX.into()) as u16;
    }
}

/// Vector registers of a block.
const BLOCK: usize = 64;

/// Place of a vector register among them.
fn index(number: u32) -> usize {
    (number - FIRST_VECTOR) as usize % 512
}
