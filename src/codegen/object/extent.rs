//! What device code begins as, and how long it is by its own tables: HIP's functions take objects and bundles
//! by their addresses alone, and files of the host hold them without saying where they end.

use super::bundle::{COMPRESSED, MAGIC};

/// The form in which device code lies somewhere.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ContainerKind {
    /// One code object by itself.
    Object,
    /// An offload bundle of several objects.
    Bundle,
    /// A bundle that is compressed as a whole.
    CompressedBundle,
}

/// The first bytes of an ELF file.
const ELF: [u8; 4] = *b"\x7fELF";
/// Where an ELF file says for which system and machine it is, and what AMD's say there: `ELFOSABI_AMDGPU_HSA`
/// and `EM_AMDGPU`.
const SYSTEM: (u64, u8) = (7, 64);
const MACHINE: (u64, [u8; 2]) = (18, [224, 0]);
/// `SHT_NOBITS`: a section with a size, and without bytes in the file.
const NOBITS: u64 = 8;
/// The most entries of a bundle that are looked at.
const MOST_ENTRIES: u64 = 1024;

impl ContainerKind {
    /// The bytes at a beginning that show what it is.
    pub const BEGIN: usize = 32;

    /// What bytes begin as; none if they are neither an object for AMD's chips nor a bundle
    /// (hipamd/src/hip_fatbin.cpp).
    pub fn of(bytes: &[u8]) -> Option<ContainerKind> {
        let first = bytes.first()?;
        // Nearly every place is none, and is seen to be by its first byte.
        [ELF[0], MAGIC[0], COMPRESSED[0]].contains(first).then_some(())?;
        ContainerKind::at(&mut |at| bytes.get(at as usize).copied().unwrap_or_default())
    }

    /// The same of bytes that are read one by one, none after the first one that shows that it is nothing.
    pub fn at(byte: &mut dyn FnMut(u64) -> u8) -> Option<ContainerKind> {
        let mut has = |at: u64, what: &[u8]| what.iter().zip(at..).all(|(&wanted, at)| byte(at) == wanted);
        if has(0, MAGIC) {
            Some(ContainerKind::Bundle)
        } else if has(0, COMPRESSED) {
            Some(ContainerKind::CompressedBundle)
        } else {
            let is_object = has(0, &ELF) && has(SYSTEM.0, &[SYSTEM.1]) && has(MACHINE.0, &MACHINE.1);
            is_object.then_some(ContainerKind::Object)
        }
    }

    /// Its name in listings.
    pub const fn name(self) -> &'static str {
        match self {
            ContainerKind::Object => "object",
            ContainerKind::Bundle => "bundle",
            ContainerKind::CompressedBundle => "compressed bundle",
        }
    }

    /// How many bytes it has by its own tables, whose bytes are read one by one from its beginning.
    ///
    /// # Errors
    /// It does not say: only compressed bundles of the first version of the format, which is given, and of
    /// versions that are not known do not.
    pub fn extent(self, byte: &mut dyn FnMut(u64) -> u8) -> Result<u64, u16> {
        let mut read = |offset: u64, count: u64| -> u64 {
            (0..count).fold(0, |all, at| all | u64::from(byte(offset.wrapping_add(at))) << (8 * at))
        };
        match self {
            ContainerKind::Object => Ok(elf(&mut read)),
            ContainerKind::Bundle => Ok(bundle(&mut read)),
            ContainerKind::CompressedBundle => match read(4, 2) {
                2 => Ok(read(8, 4)),
                3 => Ok(read(8, 8)),
                version => Err(version as u16),
            },
        }
    }
}

/// An ELF file ends with its tables or with the last thing that they name (System V ABI, "ELF Header",
/// "Program Header" and "Section Header", 64 bits).
fn elf(read: &mut impl FnMut(u64, u64) -> u64) -> u64 {
    let programs = [read(0x20, 8), read(0x36, 2), read(0x38, 2)];
    let sections = [read(0x28, 8), read(0x3a, 2), read(0x3c, 2)];
    let mut end = 64;
    for [start, size, count] in [programs, sections] {
        end = end.max(start.saturating_add(size.saturating_mul(count)));
    }
    for entry in (0..programs[2]).map(|index| programs[0].wrapping_add(index * programs[1])) {
        end = end.max(read(entry.wrapping_add(0x08), 8).saturating_add(read(entry.wrapping_add(0x20), 8)));
    }
    for entry in (0..sections[2]).map(|index| sections[0].wrapping_add(index * sections[1])) {
        if read(entry.wrapping_add(0x04), 4) != NOBITS {
            end =
                end.max(read(entry.wrapping_add(0x18), 8).saturating_add(read(entry.wrapping_add(0x20), 8)));
        }
    }
    end
}

/// A bundle ends with the last of its objects (Clang, "Offload Bundler").
fn bundle(read: &mut impl FnMut(u64, u64) -> u64) -> u64 {
    let (mut at, mut end) = (32u64, 32u64);
    for _ in 0..read(24, 8).min(MOST_ENTRIES) {
        let [start, size, name] = [0, 8, 16].map(|field| read(at.wrapping_add(field), 8));
        at = at.saturating_add(24).saturating_add(name);
        end = end.max(start.saturating_add(size));
    }
    end.max(at)
}
