//! The parts of an object that the loader does not look at: its sections and symbols.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use object::elf;
use object::read::elf::{ElfFile64, SectionHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable};

/// A section with contents.
#[derive(Clone, Debug)]
pub(super) struct ImageSection<'a> {
    pub name: &'a str,
    /// Number in the header table.
    pub index: usize,
    /// `sh_flags`
    pub flags: u64,
    /// `sh_entsize`
    pub entry_size: u64,
    pub align: u64,
    pub address: u64,
    pub size: usize,
    /// Its bytes; none where it is zeros that are not in the file.
    pub data: &'a [u8],
    pub is_nobits: bool,
}

/// A symbol that is neither a section nor a file.
#[derive(Clone, Debug)]
pub(super) struct ImageSymbol<'a> {
    pub name: &'a str,
    /// Its name in a text, where local symbols of several files cannot share one.
    pub label: Cow<'a, str>,
    pub kind: u8,
    pub binding: u8,
    pub visibility: u8,
    /// Number of its section in the header table; none for numbers.
    pub section: Option<usize>,
    pub value: u64,
    pub size: u64,
}

/// Sections and symbols of an object, and its metadata.
#[derive(Clone, Debug)]
pub(super) struct ObjectImage<'a> {
    /// Sections, except those that the writer makes: symbols, strings, hashes, notes.
    pub sections: Vec<ImageSection<'a>>,
    pub symbols: Vec<ImageSymbol<'a>>,
    /// MessagePack, as many as there are notes: linkers put those of their inputs after each other.
    pub metadata: Vec<&'a [u8]>,
}

/// Made by linkers for their own purposes.
const LINKERS: [&str; 2] = [".comment", ".relro_padding"];

impl<'a> ObjectImage<'a> {
    /// Reads them.
    pub(super) fn read(data: &'a [u8]) -> Result<ObjectImage<'a>, object::Error> {
        const PROGBITS: u32 = 1;
        const NOBITS: u32 = 8;
        const NT_AMDGPU_METADATA: u32 = 32;
        let file = ElfFile64::<LittleEndian>::parse(data)?;
        let (mut sections, mut metadata) = (Vec::new(), Vec::new());
        for section in file.sections() {
            let header = section.elf_section_header();
            if let Some(mut notes) = header.notes(LittleEndian, data)? {
                while let Some(note) = notes.next()? {
                    if note.name() == b"AMDGPU" && note.n_type(LittleEndian).0 == NT_AMDGPU_METADATA {
                        metadata.push(note.desc());
                    }
                }
            }
            let name = section.name()?;
            let (kind, flags) = (header.sh_type(LittleEndian).0, header.sh_flags(LittleEndian).0);
            let is_nobits = kind == NOBITS && flags & elf::SHF_ALLOC.0 != 0;
            if kind != PROGBITS && !is_nobits || LINKERS.contains(&name) {
                continue;
            }
            sections.push(ImageSection {
                name,
                index: section.index().0,
                flags,
                entry_size: header.sh_entsize(LittleEndian),
                align: section.align().max(1),
                address: section.address(),
                size: section.size() as usize,
                data: if is_nobits { &[] } else { section.data()? },
                is_nobits,
            });
        }
        let mut symbols = Vec::new();
        let table = file.symbol_table().or_else(|| file.dynamic_symbol_table());
        for symbol in table.iter().flat_map(|table| table.symbols()) {
            let raw = symbol.elf_symbol();
            let kind = raw.st_type();
            if kind == elf::STT_SECTION || kind == elf::STT_FILE || symbol.is_undefined() {
                continue;
            }
            let name = symbol.name()?;
            symbols.push(ImageSymbol {
                name,
                label: Cow::Borrowed(name),
                kind: kind.0,
                binding: raw.st_bind().0,
                visibility: raw.st_visibility().0,
                section: symbol.section_index().map(|index| index.0),
                value: symbol.address(),
                size: symbol.size(),
            });
        }
        tell_apart(&mut symbols);
        Ok(ObjectImage { sections, symbols, metadata })
    }
}

/// Gives local symbols whose name another one has a number after it. The first one keeps the name, and so
/// does one that others see.
fn tell_apart(symbols: &mut [ImageSymbol<'_>]) {
    let mut taken: BTreeSet<String> =
        symbols.iter().filter(|symbol| symbol.binding != 0).map(|symbol| symbol.name.to_owned()).collect();
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for symbol in symbols.iter_mut().filter(|symbol| symbol.binding == 0) {
        while !taken.insert(symbol.label.to_string()) {
            let number = numbers.entry(symbol.name).or_default();
            *number += 1;
            symbol.label = Cow::Owned(format!("{}.{number}", symbol.name));
        }
    }
}
