//! The object that a linker takes.
//!
//! Nothing has an address yet. The descriptors' entry offsets and the references of debug sections to
//! addresses and to each other are relocations, numbered as in LLVM's "User Guide for AMDGPU Backend", table
//! "AMDGPU ELF Relocation Records".

use std::borrow::Cow;

use super::super::debug_sections::{self, DebugSection};
use super::super::descriptor::DESCRIPTOR_SIZE;
use super::image::{
    ElfImage, INFO_LINK, Index, OutputBytes, SectionHeader, SectionKind, SymbolKind, SymbolTable,
};
use super::{NOTE, ObjectParts, RODATA, STRTAB, SYMTAB, TEXT, debug_section};
use gimli::SectionId;
use gimli::write::{Address, RelocateWriter, Relocation, RelocationTarget};

const ET_REL: u16 = 1;
const R_AMDGPU_ABS64: u32 = 3;
const R_AMDGPU_REL64: u32 = 5;
const R_AMDGPU_ABS32: u32 = 6;
const RELOCATION_SIZE: u64 = 24;
/// Where the descriptor holds the distance of its entry.
const ENTRY_OFFSET: u64 = 16;

/// Stands for the text section in [`Address::Symbol`].
const TEXT_START: usize = 0;

/// A debug section and what is relocated in it.
#[derive(Clone)]
struct Relocated {
    bytes: DebugSection,
    relocations: Vec<Relocation>,
}

impl RelocateWriter for Relocated {
    type Writer = DebugSection;

    fn writer(&self) -> &Self::Writer {
        &self.bytes
    }

    fn writer_mut(&mut self) -> &mut Self::Writer {
        &mut self.bytes
    }

    fn relocate(&mut self, relocation: Relocation) {
        self.relocations.push(relocation);
    }
}

pub(super) fn write(parts: ObjectParts<'_>) -> gimli::write::Result<Vec<u8>> {
    let has_lines = parts.has_lines();
    let header = parts.header(ET_REL);
    let mut image = ElfImage::new(0, parts.size());
    image.add(NOTE, &parts.note);
    let descriptors: Vec<u8> = parts.descriptors.iter().flat_map(|d| d.to_bytes()).collect();
    let rodata = image.add(RODATA, &descriptors);
    let text = image.add(TEXT, &parts.text);

    // Sections have local symbols, which come first.
    let mut debug: Vec<(SectionId, Index, Vec<Relocation>)> = Vec::new();
    if has_lines {
        let address = |offset| Address::Symbol { symbol: TEXT_START, addend: offset as i64 };
        let empty = Relocated { bytes: DebugSection::default(), relocations: Vec::new() };
        let mut sections = debug_sections::write(parts.kernels, &parts.offsets, empty, address)?;
        sections.for_each_mut(|id, data| {
            if !data.bytes.is_empty() {
                let index = image.add(debug_section(id), data.bytes.bytes());
                debug.push((id, index, std::mem::take(&mut data.relocations)));
            }
            gimli::write::Result::Ok(())
        })?;
    }
    let mut symbols = SymbolTable::new(2 * parts.kernels.len() + 1 + debug.len());
    let text_symbol = symbols.push(SymbolKind::Section, 0, text, 0, 0);
    let debug_symbols: Vec<u32> =
        debug.iter().map(|&(_, index, _)| symbols.push(SymbolKind::Section, 0, index, 0, 0)).collect();
    let locals = symbols.count;

    let mut entries = OutputBytes(Vec::new());
    let kernels = parts.kernels.iter().zip(&parts.offsets).zip(parts.names());
    for (number, ((kernel, &offset), (function_name, descriptor_name))) in kernels.enumerate() {
        let size = kernel.code.len() as u64;
        let function = symbols.push(SymbolKind::Function, function_name, text, offset, size);
        let descriptor = (number * DESCRIPTOR_SIZE) as u64;
        symbols.push(SymbolKind::Object, descriptor_name, rodata, descriptor, DESCRIPTOR_SIZE as u64);
        // Relative to the field, whose own offset is added because the descriptor begins before it.
        let place = descriptor + ENTRY_OFFSET;
        relocation(&mut entries, place, R_AMDGPU_REL64, function, ENTRY_OFFSET as i64);
    }
    let mut tables = vec![(".rela.rodata", rodata, entries.0)];
    let symbol_of = |target: RelocationTarget| {
        let section = debug.iter().position(|(id, ..)| target == RelocationTarget::Section(*id));
        section.map_or(text_symbol, |section| debug_symbols[section])
    };
    for (id, index, relocations) in debug.iter().filter(|(.., relocations)| !relocations.is_empty()) {
        tables.push((table_name(*id), *index, relocation_table(relocations, symbol_of)));
    }
    // Every table names the symbol table that follows them all.
    let symtab = Index(image.next().0 + tables.len() as u16);
    for (name, of, table) in tables {
        let index = image.add(table_header(name), &table);
        image.link(index, symtab, of.0.into());
    }
    let added = image.add(SYMTAB, &symbols.bytes);
    debug_assert!(added == symtab);
    let strtab = image.add(STRTAB, &parts.strings);
    image.link(symtab, strtab, locals);
    Ok(image.finish(&header, &[]))
}

fn table_header(name: &'static str) -> SectionHeader {
    SectionHeader {
        name: Cow::Borrowed(name),
        kind: SectionKind::Rela,
        flags: INFO_LINK,
        align: 8,
        entry_size: RELOCATION_SIZE,
    }
}

/// The relocations of a debug section.
fn relocation_table(relocations: &[Relocation], symbol: impl Fn(RelocationTarget) -> u32) -> Vec<u8> {
    let mut table = OutputBytes(Vec::new());
    for at in relocations {
        let kind = if at.size == 8 { R_AMDGPU_ABS64 } else { R_AMDGPU_ABS32 };
        relocation(&mut table, at.offset as u64, kind, symbol(at.target), at.addend);
    }
    table.0
}

fn relocation(table: &mut OutputBytes, place: u64, kind: u32, symbol: u32, addend: i64) {
    table.u64(&[place]);
    table.u32(&[kind, symbol]);
    table.u64(&[addend as u64]);
}

/// Name of the relocations of a debug section; only these two have any.
fn table_name(id: SectionId) -> &'static str {
    match id {
        SectionId::DebugInfo => ".rela.debug_info",
        SectionId::DebugLine => ".rela.debug_line",
        _ => ".rela.debug",
    }
}
