//! The object that runtimes load.
//!
//! Two segments are loaded: everything that is read (headers, note, symbols, descriptors), and the code on a
//! page of its own. Kernels are in both symbol tables because the HSA loader walks `.symtab` and HIP walks
//! `.dynsym`.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::super::debug_sections::{self, DebugSection};
use super::super::descriptor::DESCRIPTOR_SIZE;
use super::image::{
    ALLOC, ElfImage, ElfSegment, HEADER_SIZE, OutputBytes, PAGE, SYMBOL_SIZE, SectionHeader, SectionKind,
    SectionPlace, SymbolKind, SymbolTable,
};
use super::{NOTE, ObjectParts, RODATA, STRTAB, SYMTAB, TEXT, debug_section};
use gimli::write::Address;

pub(super) const DYNSYM: SectionHeader = SectionHeader {
    name: Cow::Borrowed(".dynsym"),
    kind: SectionKind::DynSym,
    flags: ALLOC,
    align: 8,
    entry_size: SYMBOL_SIZE,
};
pub(super) const HASH: SectionHeader = SectionHeader {
    name: Cow::Borrowed(".hash"),
    kind: SectionKind::Hash,
    flags: ALLOC,
    align: 4,
    entry_size: 4,
};
pub(super) const DYNSTR: SectionHeader = SectionHeader::bytes(".dynstr", SectionKind::StrTab, ALLOC, 1);
pub(super) const DYNAMIC: SectionHeader = SectionHeader {
    name: Cow::Borrowed(".dynamic"),
    kind: SectionKind::Dynamic,
    flags: ALLOC,
    align: 8,
    entry_size: 16,
};
pub(super) const DYNAMIC_ENTRIES: u64 = 6;
/// So many more if there are relocations.
pub(super) const RELOCATION_ENTRIES: u64 = 3;
/// Size of a relocation with its addend.
pub(super) const RELA_SIZE: u64 = 24;

pub(super) const ET_DYN: u16 = 3;
pub(super) const PT_LOAD: u32 = 1;
pub(super) const PT_DYNAMIC: u32 = 2;
pub(super) const PT_NOTE: u32 = 4;
pub(super) const RUN: u32 = 1;
pub(super) const READ: u32 = 4;

pub(super) fn write(parts: ObjectParts<'_>) -> gimli::write::Result<Vec<u8>> {
    let has_lines = parts.has_lines();
    let header = parts.header(ET_DYN);
    let count = 2 * parts.kernels.len();
    let mut image = ElfImage::new(4, parts.size());
    let note = image.add(NOTE, &parts.note);
    let dynsym = image.reserve(DYNSYM, SymbolTable::size(count));
    let hash = image.add(HASH, &hash_table(1 + count as u32));
    let dynstr = image.add(DYNSTR, &parts.strings);
    let dynamic = image.reserve(DYNAMIC, DYNAMIC_ENTRIES * 16);
    let rodata = image.reserve(RODATA, (parts.kernels.len() * DESCRIPTOR_SIZE) as u64);
    let text = image.add(TEXT, &parts.text);
    image.link(dynsym, dynstr, 1);
    image.link(hash, dynsym, 0);
    image.link(dynamic, dynstr, 0);

    let (descriptors, code) = (image.place(rodata), image.place(text));
    let mut symbols = SymbolTable::new(count);
    let mut contents: SmallVec<[u8; DESCRIPTOR_SIZE]> = SmallVec::with_capacity(descriptors.size as usize);
    let kernels = parts.kernels.iter().zip(&parts.descriptors).zip(&parts.offsets).zip(parts.names());
    for (((kernel, descriptor), offset), (function_name, descriptor_name)) in kernels {
        let entry = code.address + offset;
        let address = descriptors.address + contents.len() as u64;
        let mut descriptor = *descriptor;
        descriptor.entry_byte_offset = entry as i64 - address as i64;
        contents.extend_from_slice(&descriptor.to_bytes());
        symbols.push(SymbolKind::Function, function_name, text, entry, kernel.code.len() as u64);
        symbols.push(SymbolKind::Object, descriptor_name, rodata, address, DESCRIPTOR_SIZE as u64);
    }
    image.fill(rodata, &contents);
    image.fill(dynsym, &symbols.bytes);
    image.fill(dynamic, &dynamic_entries(image.place(hash), image.place(dynsym), image.place(dynstr), None));

    if has_lines {
        let address = |offset| Address::Constant(code.address + offset);
        let empty = DebugSection::default();
        let mut sections = debug_sections::write(parts.kernels, &parts.offsets, empty, address)?;
        sections.for_each_mut(|id, data| {
            if !data.is_empty() {
                image.add(debug_section(id), data.bytes());
            }
            gimli::write::Result::Ok(())
        })?;
    }
    let symtab = image.add(SYMTAB, &symbols.bytes);
    let strtab = image.add(STRTAB, &parts.strings);
    image.link(symtab, strtab, 1);

    let read = SectionPlace { offset: 0, address: 0, size: descriptors.offset + descriptors.size };
    debug_assert!(read.size > HEADER_SIZE);
    let segments = [
        ElfSegment { kind: PT_LOAD, flags: READ, place: read, zeros: 0, align: PAGE },
        ElfSegment { kind: PT_LOAD, flags: READ | RUN, place: code, zeros: 0, align: PAGE },
        ElfSegment { kind: PT_DYNAMIC, flags: READ, place: image.place(dynamic), zeros: 0, align: 8 },
        ElfSegment { kind: PT_NOTE, flags: READ, place: image.place(note), zeros: 0, align: 4 },
    ];
    Ok(image.finish(&header, &segments))
}

/// A hash table of one bucket: all symbols follow each other, so no hash is ever computed.
pub(super) fn hash_table(symbols: u32) -> SmallVec<[u8; 64]> {
    let next = |index: u32| if index + 1 < symbols { index + 1 } else { 0 };
    let words = [1, symbols, next(0), 0].into_iter().chain((1..symbols).map(next));
    words.flat_map(u32::to_le_bytes).collect()
}

pub(super) fn dynamic_entries(
    hash: SectionPlace,
    symbols: SectionPlace,
    strings: SectionPlace,
    relocations: Option<SectionPlace>,
) -> Vec<u8> {
    const HASH: u64 = 4;
    const STRTAB: u64 = 5;
    const SYMTAB: u64 = 6;
    const RELA: u64 = 7;
    const RELASZ: u64 = 8;
    const RELAENT: u64 = 9;
    const STRSZ: u64 = 10;
    const SYMENT: u64 = 11;
    let mut entries = OutputBytes(Vec::with_capacity(16 * (DYNAMIC_ENTRIES + RELOCATION_ENTRIES) as usize));
    entries.u64(&[HASH, hash.address, SYMTAB, symbols.address, SYMENT, SYMBOL_SIZE]);
    entries.u64(&[STRTAB, strings.address, STRSZ, strings.size]);
    if let Some(place) = relocations {
        entries.u64(&[RELA, place.address, RELASZ, place.size, RELAENT, RELA_SIZE]);
    }
    entries.u64(&[0, 0]);
    entries.0
}
