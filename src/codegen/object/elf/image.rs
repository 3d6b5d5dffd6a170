//! An ELF file as a list of sections, laid out front to back as they are added.

use std::borrow::Cow;

use smallvec::SmallVec;

/// Size of the file header and of a section header.
pub(super) const HEADER_SIZE: u64 = 64;
const PROGRAM_HEADER_SIZE: u64 = 56;
/// Size of a symbol.
pub(super) const SYMBOL_SIZE: u64 = 24;
/// Code has pages of its own, and so have writable sections.
pub(super) const PAGE: u64 = 0x1000;

pub(super) const WRITE: u64 = 1;
pub(super) const ALLOC: u64 = 2;
pub(super) const EXECUTE: u64 = 4;
pub(super) const MERGE: u64 = 16;
pub(super) const STRINGS: u64 = 32;
pub(super) const INFO_LINK: u64 = 64;

/// The type of a section; the numbers are those of `sh_type`.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum SectionKind {
    ProgBits = 1,
    SymTab = 2,
    StrTab = 3,
    Rela = 4,
    Hash = 5,
    Dynamic = 6,
    Note = 7,
    /// Zeros that are not in the file.
    NoBits = 8,
    DynSym = 11,
}

/// A section header except for its layout. Field names are those of the header.
pub(super) struct SectionHeader {
    pub name: Cow<'static, str>,
    pub kind: SectionKind,
    pub flags: u64,
    pub align: u64,
    pub entry_size: u64,
}

impl SectionHeader {
    /// A section of bytes, without entries.
    pub(super) const fn bytes(
        name: &'static str,
        kind: SectionKind,
        flags: u64,
        align: u64,
    ) -> SectionHeader {
        SectionHeader { name: Cow::Borrowed(name), kind, flags, align, entry_size: 0 }
    }
}

/// Where a section lies.
#[derive(Copy, Clone, Default)]
pub(super) struct SectionPlace {
    pub offset: u64,
    pub address: u64,
    pub size: u64,
}

/// Number of a section in the header table.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) struct Index(pub u16);

struct PlacedSection {
    section: SectionHeader,
    place: SectionPlace,
    link: u32,
    info: u32,
}

/// A part that is loaded, or that is found without sections.
pub(super) struct ElfSegment {
    pub kind: u32,
    pub flags: u32,
    pub place: SectionPlace,
    /// Zeros in memory after what is in the file.
    pub zeros: u64,
    pub align: u64,
}

/// Numbers of the file header.
pub(super) struct Header {
    pub abi_version: u8,
    pub e_type: u16,
    pub e_flags: u32,
}

/// The file so far: contents are put where they stay.
pub(super) struct ElfImage {
    out: OutputBytes,
    sections: SmallVec<[PlacedSection; 16]>,
    segments: usize,
    /// Bytes of memory after the end of the file that sections of zeros take.
    zeros: u64,
}

/// An estimate of the bytes of section names, header tables and small sections; more would only cost another
/// allocation.
const FRAME: usize = 8192;

impl ElfImage {
    /// A file with room for this many program headers, and for contents of about this many bytes.
    pub(super) fn new(segments: usize, contents: usize) -> ElfImage {
        let mut out = OutputBytes(Vec::with_capacity(contents + FRAME));
        out.0.resize(HEADER_SIZE as usize + PROGRAM_HEADER_SIZE as usize * segments, 0);
        ElfImage { out, sections: SmallVec::new(), segments, zeros: 0 }
    }

    /// Appends a section of `size` bytes, which are given to [`ElfImage::fill`]. In a file that is loaded,
    /// addresses are those of its offsets, for code one page further on, for writable sections two.
    ///
    /// Sections of zeros come after all others that are loaded.
    pub(super) fn reserve(&mut self, section: SectionHeader, size: u64) -> Index {
        let is_zero = section.kind == SectionKind::NoBits;
        let end = self.out.0.len() as u64;
        let offset = (end + if is_zero { self.zeros } else { 0 }).next_multiple_of(section.align);
        let address = match section.flags {
            flags if flags & ALLOC == 0 || self.segments == 0 => 0,
            flags if flags & WRITE != 0 => offset + 2 * PAGE,
            flags if flags & EXECUTE != 0 => offset + PAGE,
            _ => offset,
        };
        match is_zero {
            true => self.zeros = offset + size - end,
            false => self.out.0.resize((offset + size) as usize, 0),
        }
        let place = SectionPlace { offset, address, size };
        self.sections.push(PlacedSection { section, place, link: 0, info: 0 });
        Index(self.sections.len() as u16)
    }

    /// Appends a section with its contents.
    pub(super) fn add(&mut self, section: SectionHeader, data: &[u8]) -> Index {
        let index = self.reserve(section, data.len() as u64);
        self.fill(index, data);
        index
    }

    /// The contents of a section that was reserved.
    pub(super) fn fill(&mut self, index: Index, data: &[u8]) {
        let place = self.place(index);
        self.out.0[place.offset as usize..][..place.size as usize].copy_from_slice(data);
    }

    /// Sets `sh_link` and `sh_info`.
    pub(super) fn link(&mut self, index: Index, link: Index, info: u32) {
        let placed = &mut self.sections[usize::from(index.0) - 1];
        (placed.link, placed.info) = (link.0.into(), info);
    }

    /// Where a section lies.
    pub(super) fn place(&self, index: Index) -> SectionPlace {
        self.sections[usize::from(index.0) - 1].place
    }

    /// Number of the section that comes next.
    pub(super) fn next(&self) -> Index {
        Index(self.sections.len() as u16 + 1)
    }

    /// The bytes of the file, section names and header table after everything else.
    pub(super) fn finish(mut self, header: &Header, segments: &[ElfSegment]) -> Vec<u8> {
        debug_assert_eq!(self.segments, segments.len());
        let own = ".shstrtab";
        let mut names = Vec::with_capacity(16 * self.sections.len() + 16);
        names.push(0);
        for name in self.sections.iter().map(|placed| placed.section.name.as_ref()).chain([own]) {
            names.extend(name.bytes().chain([0]));
        }
        let name_section = self.add(SectionHeader::bytes(own, SectionKind::StrTab, 0, 1), &names);
        let headers = (self.out.0.len() as u64).next_multiple_of(8);
        let count = self.sections.len() as u16 + 1;
        // The names are in place; their memory is used for what comes in front of everything.
        names.clear();
        let mut front = OutputBytes(names);
        front.header(header, segments.len(), headers, count, name_section);
        for segment in segments {
            let SectionPlace { offset, address, size } = segment.place;
            front.u32(&[segment.kind, segment.flags]);
            front.u64(&[offset, address, address, size, size + segment.zeros, segment.align]);
        }
        let mut out = self.out;
        out.0[..front.0.len()].copy_from_slice(&front.0);
        out.0.resize((headers + HEADER_SIZE) as usize, 0);
        let mut name = 1;
        for PlacedSection { section, place, link, info, .. } in &self.sections {
            out.u32(&[name, section.kind as u32]);
            // Zeros may lie past the end of the file.
            out.u64(&[section.flags, place.address, place.offset.min(headers), place.size]);
            out.u32(&[*link, *info]);
            out.u64(&[section.align, section.entry_size]);
            name += section.name.len() as u32 + 1;
        }
        out.0
    }
}

/// Bytes that grow, little endian.
pub(super) struct OutputBytes(pub Vec<u8>);

impl OutputBytes {
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn u16(&mut self, values: &[u16]) {
        values.iter().for_each(|value| self.bytes(&value.to_le_bytes()));
    }

    pub(super) fn u32(&mut self, values: &[u32]) {
        values.iter().for_each(|value| self.bytes(&value.to_le_bytes()));
    }

    pub(super) fn u64(&mut self, values: &[u64]) {
        values.iter().for_each(|value| self.bytes(&value.to_le_bytes()));
    }

    fn header(&mut self, header: &Header, segments: usize, sections: u64, count: u16, names: Index) {
        const CLASS_64: u8 = 2;
        const LITTLE_ENDIAN: u8 = 1;
        const VERSION: u8 = 1;
        const OSABI_AMDGPU_HSA: u8 = 64;
        const EM_AMDGPU: u16 = 224;
        self.bytes(b"\x7fELF");
        self.bytes(&[CLASS_64, LITTLE_ENDIAN, VERSION, OSABI_AMDGPU_HSA, header.abi_version]);
        self.bytes(&[0; 7]);
        self.u16(&[header.e_type, EM_AMDGPU]);
        self.u32(&[VERSION.into()]);
        let segment_headers = if segments > 0 { HEADER_SIZE } else { 0 };
        self.u64(&[0, segment_headers, sections]);
        self.u32(&[header.e_flags]);
        let segment_size = if segments > 0 { PROGRAM_HEADER_SIZE } else { 0 };
        self.u16(&[HEADER_SIZE as u16, segment_size as u16, segments as u16]);
        self.u16(&[HEADER_SIZE as u16, count, names.0]);
    }
}

/// Kinds of symbols: `STT_OBJECT`, `STT_FUNC`, `STT_SECTION`.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum SymbolKind {
    Object = 1,
    Function = 2,
    Section = 3,
}

/// A symbol table. It begins with the null symbol.
pub(super) struct SymbolTable {
    pub bytes: Vec<u8>,
    pub count: u32,
}

impl SymbolTable {
    /// Size of a table with this many symbols after the first.
    pub(super) const fn size(symbols: usize) -> u64 {
        (1 + symbols as u64) * SYMBOL_SIZE
    }

    pub(super) fn new(symbols: usize) -> SymbolTable {
        let mut bytes = Vec::with_capacity(SymbolTable::size(symbols) as usize);
        bytes.resize(SYMBOL_SIZE as usize, 0);
        SymbolTable { bytes, count: 1 }
    }

    /// Appends a symbol: sections are local, everything else is global and protected.
    pub(super) fn push(&mut self, kind: SymbolKind, name: u32, section: Index, value: u64, size: u64) -> u32 {
        const GLOBAL: u8 = 1;
        const PROTECTED: u8 = 3;
        let (bind, visibility) = if kind == SymbolKind::Section { (0, 0) } else { (GLOBAL, PROTECTED) };
        self.push_entry(name, [(bind << 4) | kind as u8, visibility], section.0, [value, size])
    }

    /// Appends an entry with these values of `st_info` and `st_other`, `st_value` and `st_size`.
    pub(super) fn push_entry(&mut self, name: u32, info: [u8; 2], section: u16, values: [u64; 2]) -> u32 {
        self.bytes.extend_from_slice(&name.to_le_bytes());
        self.bytes.extend_from_slice(&info);
        self.bytes.extend_from_slice(&section.to_le_bytes());
        values.iter().for_each(|value| self.bytes.extend_from_slice(&value.to_le_bytes()));
        self.count += 1;
        self.count - 1
    }
}
