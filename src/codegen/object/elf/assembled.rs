//! The object that an assembler makes: any sections and symbols, laid out as those of our own kernels are.
//!
//! Read-only sections lie before the code, writable ones after it, sections that are not loaded at the end.
//! Addresses are known as soon as the sizes are ([`PlacedFile`]), the contents follow
//! ([`PlacedFile::write`]). The only relocations are those of whole addresses in writable data, which
//! depend on where the object is loaded; the caller has resolved everything else in the contents.

use std::borrow::Cow;

use super::image::{
    ALLOC, EXECUTE, ElfImage, ElfSegment, Index, OutputBytes, PAGE, SectionHeader, SectionKind, SectionPlace,
    SymbolTable, WRITE,
};
use super::loadable::{
    DYNAMIC, DYNAMIC_ENTRIES, DYNSTR, DYNSYM, ET_DYN, HASH, PT_DYNAMIC, PT_LOAD, PT_NOTE, READ, RELA_SIZE,
    RELOCATION_ENTRIES, RUN, dynamic_entries, hash_table,
};
use super::{NOTE, STRTAB, SYMTAB, image};
use crate::codegen::target::{ObjectVersion, TargetId};

/// A section as far as layout goes.
#[derive(Clone, Debug)]
pub(in crate::codegen) struct AssemblySection {
    /// Its name.
    pub name: String,
    /// `sh_flags`.
    pub flags: u64,
    /// `sh_entsize`.
    pub entry_size: u64,
    /// Its alignment.
    pub align: u64,
    /// Its size.
    pub size: u64,
    /// All of it is zero, and not in the file.
    pub is_zero: bool,
}

/// Where a symbol is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::codegen) enum SymbolHome {
    /// In a section, by its number in the list of sections, at an offset.
    Section(usize, u64),
    /// At no place: a number.
    Absolute(u64),
}

/// A symbol.
#[derive(Clone, Debug)]
pub(in crate::codegen) struct AssemblySymbol {
    /// Its name.
    pub name: String,
    /// `st_info`: binding in the high half, type in the low one.
    pub info: u8,
    /// `st_other`: visibility.
    pub other: u8,
    /// Where it is.
    pub home: SymbolHome,
    /// Its size.
    pub size: u64,
}

impl AssemblySymbol {
    /// True for symbols that other objects do not see.
    pub(crate) fn is_local(&self) -> bool {
        self.info >> 4 == 0
    }
}

/// Everything that an object consists of, without the contents of its sections.
#[derive(Clone, Debug)]
pub(in crate::codegen) struct Assembly {
    /// The chip and its modes.
    pub target: TargetId,
    /// Version of the format.
    pub version: ObjectVersion,
    /// The metadata in MessagePack: a note each.
    pub metadata: Vec<Vec<u8>>,
    /// Sections in the order of the file.
    pub sections: Vec<AssemblySection>,
    /// Symbols, local ones first.
    pub symbols: Vec<AssemblySymbol>,
    /// How many addresses there are in writable data.
    pub relocations: usize,
}

/// An address in writable data.
#[derive(Copy, Clone, Debug)]
pub(in crate::codegen) struct AddressRelocation {
    /// Where it is, before loading.
    pub place: u64,
    /// What it is, before loading.
    pub value: u64,
}

const RELA: SectionHeader = SectionHeader {
    name: Cow::Borrowed(".rela.dyn"),
    kind: SectionKind::Rela,
    flags: ALLOC,
    align: 8,
    entry_size: RELA_SIZE,
};

/// A file whose sections have their places.
pub(in crate::codegen) struct PlacedFile {
    assembly: Assembly,
    image: ElfImage,
    note: Option<Index>,
    dynsym: Index,
    hash: Index,
    dynstr: Index,
    dynamic: Index,
    rela: Option<Index>,
    /// Of the assembly's sections.
    indices: Vec<Index>,
}

/// The segment that a section belongs to.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SegmentKind {
    Read,
    Run,
    Write,
    /// Zeros at the end of what is written to.
    Zero,
    NotLoaded,
}

const PARTS: [SegmentKind; 5] =
    [SegmentKind::Read, SegmentKind::Run, SegmentKind::Write, SegmentKind::Zero, SegmentKind::NotLoaded];

fn part(section: &AssemblySection) -> SegmentKind {
    match section.flags {
        flags if flags & ALLOC == 0 => SegmentKind::NotLoaded,
        flags if flags & WRITE != 0 && section.is_zero => SegmentKind::Zero,
        flags if flags & WRITE != 0 => SegmentKind::Write,
        flags if flags & EXECUTE != 0 => SegmentKind::Run,
        _ => SegmentKind::Read,
    }
}

/// `R_AMDGPU_RELATIVE64` (LLVM's "User Guide for AMDGPU Backend", "Relocation Records"): the value plus the
/// load address.
fn relocation_entries(relocations: &[AddressRelocation]) -> Vec<u8> {
    const RELATIVE_64: u64 = 13;
    let mut entries = OutputBytes(Vec::with_capacity(relocations.len() * RELA_SIZE as usize));
    relocations
        .iter()
        .for_each(|&AddressRelocation { place, value }| entries.u64(&[place, RELATIVE_64, value]));
    entries.0
}

impl PlacedFile {
    /// Places everything.
    pub(crate) fn new(assembly: Assembly) -> PlacedFile {
        let has = |wanted| assembly.sections.iter().any(|section| part(section) == wanted);
        let segments = 2
            + usize::from(has(SegmentKind::Run))
            + usize::from(has(SegmentKind::Write) || has(SegmentKind::Zero))
            + usize::from(!assembly.metadata.is_empty());
        let in_file = |section: &&AssemblySection| part(section) != SegmentKind::Zero;
        let contents = assembly.sections.iter().filter(in_file).map(|section| section.size as usize).sum();
        let mut image = ElfImage::new(segments, contents);
        let notes: Vec<u8> = assembly.metadata.iter().flat_map(|metadata| super::note_of(metadata)).collect();
        let note = (!notes.is_empty()).then(|| image.add(NOTE, &notes));
        let globals = assembly.symbols.iter().filter(|symbol| !symbol.is_local());
        let count = globals.clone().count();
        let strings: usize = 1 + globals.map(|symbol| symbol.name.len() + 1).sum::<usize>();
        let dynsym = image.reserve(DYNSYM, SymbolTable::size(count));
        let hash = image.add(HASH, &hash_table(1 + count as u32));
        let dynstr = image.reserve(DYNSTR, strings as u64);
        let relocations = assembly.relocations as u64;
        let rela = (relocations > 0).then(|| image.reserve(RELA, relocations * RELA_SIZE));
        let more = if rela.is_some() { RELOCATION_ENTRIES } else { 0 };
        let dynamic = image.reserve(DYNAMIC, (DYNAMIC_ENTRIES + more) * 16);
        let mut indices = vec![dynamic; assembly.sections.len()];
        for wanted in PARTS {
            for (index, section) in assembly.sections.iter().enumerate() {
                if part(section) == wanted {
                    let header = SectionHeader {
                        name: Cow::Owned(section.name.clone()),
                        kind: match wanted {
                            SegmentKind::Zero => SectionKind::NoBits,
                            _ => SectionKind::ProgBits,
                        },
                        flags: section.flags,
                        align: section.align,
                        entry_size: section.entry_size,
                    };
                    indices[index] = image.reserve(header, section.size);
                }
            }
        }
        image.link(dynsym, dynstr, 1);
        image.link(hash, dynsym, 0);
        image.link(dynamic, dynstr, 0);
        if let Some(rela) = rela {
            image.link(rela, dynsym, 0);
        }
        PlacedFile { assembly, image, note, dynsym, hash, dynstr, dynamic, rela, indices }
    }

    /// Address of a section; 0 if it is not loaded.
    pub(crate) fn address(&self, section: usize) -> u64 {
        self.image.place(self.indices[section]).address
    }

    /// The bytes of the file, given those of each section and as many addresses as were announced.
    pub(crate) fn write(mut self, contents: Vec<Vec<u8>>, relocations: &[AddressRelocation]) -> Vec<u8> {
        let (dynamic_symbols, dynamic_names) = self.symbols(|symbol| !symbol.is_local());
        let locals = self.assembly.symbols.iter().filter(|symbol| symbol.is_local()).count();
        let (all_symbols, all_names) = self.symbols(|_| true);
        self.image.fill(self.dynsym, &dynamic_symbols);
        self.image.fill(self.dynstr, &dynamic_names);
        let place = |index| self.image.place(index);
        let rela = self.rela.map(place);
        let entries = dynamic_entries(place(self.hash), place(self.dynsym), place(self.dynstr), rela);
        if let Some(rela) = self.rela {
            self.image.fill(rela, &relocation_entries(relocations));
        }
        self.image.fill(self.dynamic, &entries);
        let sections = self.indices.iter().zip(&self.assembly.sections);
        for ((index, section), data) in sections.zip(contents) {
            if part(section) != SegmentKind::Zero {
                self.image.fill(*index, &data);
            }
        }
        let symtab = self.image.add(SYMTAB, &all_symbols);
        let strtab = self.image.add(STRTAB, &all_names);
        self.image.link(symtab, strtab, 1 + locals as u32);
        let segments = self.segments();
        let header = image::Header {
            abi_version: self.assembly.version.abi_version(),
            e_type: ET_DYN,
            e_flags: self.assembly.target.elf_flags(),
        };
        self.image.finish(&header, &segments)
    }

    /// A symbol table of the symbols that `wanted` selects, and their names.
    fn symbols(&self, wanted: impl Fn(&AssemblySymbol) -> bool) -> (Vec<u8>, Vec<u8>) {
        const ABSOLUTE: u16 = 0xfff1;
        let mut symbols = SymbolTable::new(self.assembly.symbols.len());
        let mut names = vec![0];
        for symbol in self.assembly.symbols.iter().filter(|symbol| wanted(symbol)) {
            let (section, value) = match symbol.home {
                SymbolHome::Section(section, offset) => {
                    let index = self.indices[section];
                    (index.0, self.image.place(index).address + offset)
                }
                SymbolHome::Absolute(value) => (ABSOLUTE, value),
            };
            symbols.push_entry(
                names.len() as u32,
                [symbol.info, symbol.other],
                section,
                [value, symbol.size],
            );
            names.extend_from_slice(symbol.name.as_bytes());
            names.push(0);
        }
        (symbols.bytes, names)
    }

    fn segments(&self) -> Vec<ElfSegment> {
        let span = |wanted: SegmentKind| {
            let places = self.assembly.sections.iter().zip(&self.indices);
            let mut places = places.filter(|(section, _)| part(section) == wanted);
            let first = self.image.place(*places.next()?.1);
            let last = places.next_back().map_or(first, |(_, index)| self.image.place(*index));
            let size = last.offset + last.size - first.offset;
            Some(SectionPlace { offset: first.offset, address: first.address, size })
        };
        let dynamic = self.image.place(self.dynamic);
        let end =
            span(SegmentKind::Read).map_or(dynamic.offset + dynamic.size, |place| place.offset + place.size);
        let read = SectionPlace { offset: 0, address: 0, size: end };
        let mut segments =
            vec![ElfSegment { kind: PT_LOAD, flags: READ, place: read, zeros: 0, align: PAGE }];
        if let Some(place) = span(SegmentKind::Run) {
            segments.push(ElfSegment { kind: PT_LOAD, flags: READ | RUN, place, zeros: 0, align: PAGE });
        }
        let (written, zero) = (span(SegmentKind::Write), span(SegmentKind::Zero));
        if let Some(first) = written.or(zero) {
            const WRITES: u32 = 2;
            let is_code = |section: &AssemblySection| {
                part(section) == SegmentKind::Write && section.flags & EXECUTE != 0
            };
            let run = if self.assembly.sections.iter().any(is_code) { RUN } else { 0 };
            // Zeros alone are nowhere in the file; addresses and offsets agree in their pages all the same.
            let place = written.unwrap_or(SectionPlace {
                offset: first.address % PAGE,
                address: first.address,
                size: 0,
            });
            let end = zero.map_or(first.address + first.size, |zero| zero.address + zero.size);
            let zeros = end - first.address - place.size;
            segments.push(ElfSegment {
                kind: PT_LOAD,
                flags: READ | WRITES | run,
                place,
                zeros,
                align: PAGE,
            });
        }
        segments.push(ElfSegment { kind: PT_DYNAMIC, flags: READ, place: dynamic, zeros: 0, align: 8 });
        if let Some(note) = self.note {
            let place = self.image.place(note);
            segments.push(ElfSegment { kind: PT_NOTE, flags: READ, place, zeros: 0, align: 4 });
        }
        segments
    }
}
