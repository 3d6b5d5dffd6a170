//! The instruction sets that the table knows, and sets of them: which chip has which row.

use std::fmt;

/// What chips have in common: hazards, encodings and meanings belong to a generation, and its guide describes
/// them.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Generation {
    /// GCN 5.1: Vega 20. No matrix instructions.
    Gcn5,
    /// Matrix instructions, with accumulation registers in a file of their own.
    Cdna1,
    /// One file for both kinds of vector registers.
    Cdna2,
    /// Several dies, and scope bits in memory instructions.
    Cdna3,
    /// OCP formats of 8, 6 and 4 bits.
    Cdna4,
}

impl Generation {
    /// Number of generations: the tables of hazards have a column for each.
    pub const COUNT: usize = Generation::Cdna4 as usize + 1;
}

macro_rules! chips {
    ($($arch:ident $name:literal $generation:ident;)*) => {
        /// Instruction set of one chip, oldest first.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Arch {
            $(#[doc = $name] $arch,)*
        }

        impl Arch {
            /// All of them.
            pub const ALL: [Arch; [$($name),*].len()] = [$(Arch::$arch),*];

            /// Processor name as LLVM spells it.
            pub const fn name(self) -> &'static str {
                match self { $(Arch::$arch => $name,)* }
            }

            /// The generation that the chip is of.
            #[inline]
            pub const fn generation(self) -> Generation {
                match self { $(Arch::$arch => Generation::$generation,)* }
            }
        }
    };
}

// A chip is a row; without a row of its own in the instruction table it has that of its generation.
chips! {
    Gfx906 "gfx906" Gcn5;
    Gfx908 "gfx908" Cdna1;
    Gfx90a "gfx90a" Cdna2;
    Gfx942 "gfx942" Cdna3;
    Gfx950 "gfx950" Cdna4;
}

impl Arch {
    /// The chip whose spelling is used where no chip is given, and for virtual registers.
    pub const USUAL: Arch = Arch::Gfx942;

    /// The instruction set of that processor.
    pub fn from_name(name: &str) -> Option<Arch> {
        Self::ALL.into_iter().find(|arch| arch.name() == name)
    }

    /// There are matrix instructions (CDNA ISA guide, "Matrix Arithmetic Instructions").
    pub(crate) const fn has_matrix_instructions(self) -> bool {
        self.generation() as u8 >= Generation::Cdna1 as u8
    }

    /// VGPRs and AGPRs are one file: AGPRs may be data of memory instructions and results of matrix
    /// instructions may be VGPRs, and tuples of either start at even numbers (LLVM, FeatureGFX90AInsts).
    pub(crate) fn has_unified_registers(self) -> bool {
        self.generation() >= Generation::Cdna2
    }

    /// A scratch instruction can add a vector and a scalar address (LLVM, FeatureFlatScratchSVSMode).
    pub(super) fn adds_scratch_addresses(self) -> bool {
        self.generation() >= Generation::Cdna3
    }

    /// A wave keeps the address of its scratch in FLAT_SCRATCH, where its kernel has put it; on later chips
    /// the hardware knows it (LLVM, FeatureArchitectedFlatScratch).
    pub(crate) fn reads_flat_scratch(self) -> bool {
        self.generation() < Generation::Cdna3
    }

    /// Cache policy bits are called sc0, sc1 and nt; on older chips glc, scc and slc (LLVM,
    /// FeatureGFX940Insts).
    pub(crate) fn has_scope_bits(self) -> bool {
        self.generation() >= Generation::Cdna3
    }

    /// Memory instructions can have the scope of the whole system: sc1, which gfx90a calls scc (LLVM,
    /// FeatureGFX90AInsts).
    pub(crate) fn has_system_scope(self) -> bool {
        self.generation() >= Generation::Cdna2
    }

    /// Matrix instructions on f32 run on the vector ALU, beside those on f64 (CDNA3 ISA guide, "Dependency
    /// resolution").
    pub(crate) fn multiplies_f32_on_valu(self) -> bool {
        self.generation() >= Generation::Cdna3
    }

    /// 8-bit floats are OCP's, not FNUZ (one zero, 0x80 is NaN, no infinities) (CDNA4 ISA guide).
    pub(crate) const fn has_ocp_floats(self) -> bool {
        self.generation() as u8 >= Generation::Cdna4 as u8
    }

    /// Matrix instructions treat denormal f16 and bf16 as zeros (MIOpen, "MI200 MFMA behavior specifics").
    pub(crate) fn flushes_matrix_denormals(self) -> bool {
        self.generation() == Generation::Cdna2
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of instruction sets.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Arches(u8);

impl Arches {
    /// Every one.
    pub const ALL: Arches = Arches::between(Generation::Gcn5, Generation::Cdna4);
    /// None.
    pub(super) const NONE: Arches = Arches(0);
    /// From the generation of gfx908 on.
    pub(super) const FROM_GFX908: Arches = Arches::between(Generation::Cdna1, Generation::Cdna4);
    /// From the generation of gfx90a on.
    pub(super) const FROM_GFX90A: Arches = Arches::between(Generation::Cdna2, Generation::Cdna4);
    /// From the generation of gfx942 on.
    pub(super) const FROM_GFX942: Arches = Arches::between(Generation::Cdna3, Generation::Cdna4);
    /// The generation of gfx950 alone.
    pub(super) const GFX950: Arches = Arches::between(Generation::Cdna4, Generation::Cdna4);
    /// The generation of gfx942 alone.
    pub(super) const GFX942: Arches = Arches::between(Generation::Cdna3, Generation::Cdna3);
    /// The generation of gfx90a alone.
    pub(super) const GFX90A: Arches = Arches::between(Generation::Cdna2, Generation::Cdna2);
    /// Up to the generation of gfx908.
    pub(super) const TO_GFX908: Arches = Arches::between(Generation::Gcn5, Generation::Cdna1);
    /// Up to the generation of gfx90a.
    pub(super) const TO_GFX90A: Arches = Arches::between(Generation::Gcn5, Generation::Cdna2);
    /// The generations of gfx908 and gfx90a.
    pub(super) const GFX908_GFX90A: Arches = Arches::between(Generation::Cdna1, Generation::Cdna2);

    /// The chips of these generations and of those between them.
    const fn between(first: Generation, last: Generation) -> Arches {
        let (mut set, mut at) = (Arches::NONE, 0);
        while at < Arch::ALL.len() {
            let generation = Arch::ALL[at].generation() as u8;
            if first as u8 <= generation && generation <= last as u8 {
                set = set.with(Arch::ALL[at]);
            }
            at += 1;
        }
        set
    }

    /// True if `arch` is in the set.
    #[inline]
    pub const fn contains(self, arch: Arch) -> bool {
        self.0 >> arch as u8 & 1 != 0
    }

    /// The set with one more.
    pub(super) const fn with(self, arch: Arch) -> Arches {
        Arches(self.0 | 1 << arch as u8)
    }

    /// Those of both.
    pub(super) const fn union(self, other: Arches) -> Arches {
        Arches(self.0 | other.0)
    }

    /// Those in the set, oldest first.
    pub fn iter(self) -> impl Iterator<Item = Arch> {
        Arch::ALL.into_iter().filter(move |&arch| self.contains(arch))
    }
}

/// The names, separated by commas.
impl fmt::Display for Arches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, arch) in self.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            f.write_str(arch.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Arches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}
