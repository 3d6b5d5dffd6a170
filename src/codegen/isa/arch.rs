//! The instruction sets that the table knows, and sets of them: which chip has which row.

use std::fmt;

/// Instruction set of one chip, oldest first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Arch {
    /// Vega 20: no matrix instructions.
    Gfx906,
    /// CDNA 1.
    Gfx908,
    /// CDNA 2.
    Gfx90a,
    /// CDNA 3.
    Gfx942,
    /// CDNA 4.
    Gfx950,
}

impl Arch {
    /// All of them.
    pub const ALL: [Arch; 5] = [Arch::Gfx906, Arch::Gfx908, Arch::Gfx90a, Arch::Gfx942, Arch::Gfx950];

    /// Processor name as LLVM spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::Gfx906 => "gfx906",
            Arch::Gfx908 => "gfx908",
            Arch::Gfx90a => "gfx90a",
            Arch::Gfx942 => "gfx942",
            Arch::Gfx950 => "gfx950",
        }
    }

    /// The instruction set of that processor.
    pub fn from_name(name: &str) -> Option<Arch> {
        Self::ALL.into_iter().find(|arch| arch.name() == name)
    }

    /// VGPRs and AGPRs are one file: AGPRs may be data of memory instructions and results of matrix instructions may be
    /// VGPRs, and tuples of either start at even numbers (LLVM, FeatureGFX90AInsts).
    pub(super) fn has_unified_registers(self) -> bool {
        self >= Arch::Gfx90a
    }

    /// A scratch instruction can add a vector and a scalar address (LLVM, FeatureFlatScratchSVSMode).
    pub(super) fn adds_scratch_addresses(self) -> bool {
        self >= Arch::Gfx942
    }

    /// Cache policy bits are called sc0, sc1 and nt; before they are glc, scc and slc (LLVM, FeatureGFX940Insts).
    pub(super) fn has_scope_bits(self) -> bool {
        self >= Arch::Gfx942
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
    pub const ALL: Arches = Arches(0b11111);
    /// None.
    pub(super) const NONE: Arches = Arches(0);
    /// Without the older ones.
    pub(super) const FROM_GFX908: Arches = Arches(0b11110);
    /// Without the older ones.
    pub(super) const FROM_GFX90A: Arches = Arches(0b11100);
    /// Without the older ones.
    pub(super) const FROM_GFX942: Arches = Arches(0b11000);
    /// gfx950 alone.
    pub(super) const GFX950: Arches = Arches(0b10000);
    /// gfx942 alone.
    pub(super) const GFX942: Arches = Arches(0b01000);
    /// gfx90a alone.
    pub(super) const GFX90A: Arches = Arches(0b00100);
    /// gfx906 and gfx908.
    pub(super) const TO_GFX908: Arches = Arches(0b00011);
    /// gfx906, gfx908 and gfx90a.
    pub(super) const TO_GFX90A: Arches = Arches(0b00111);
    /// gfx908 and gfx90a.
    pub(super) const GFX908_GFX90A: Arches = Arches(0b00110);

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
