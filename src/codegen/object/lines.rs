//! Where instructions come from: the author's file and line of each, as DWARF 5 in the object.
//!
//! One compile unit, a subprogram per kernel, and a line table with a sequence per kernel are what debuggers and profilers map
//! addresses with. File names are those of the author's locations and nothing else: there is no compilation directory, so
//! objects hold nothing of the host. Source: the DWARF 5 standard, sections 3.1, 3.3 and 6.2.

use std::sync::Arc;

use gimli::write::{Address, AttributeValue, DwarfUnit, FileId, LineProgram, LineString, Sections, Writer};
use gimli::{Encoding, Format, LineEncoding, constants as dw};

use super::elf::KernelCode;

/// The author's locations of one kernel's code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceLines {
    /// File names as the author's locations have them.
    pub files: Vec<Arc<str>>,
    /// Where the kernel itself begins.
    pub declaration: Option<SourcePlace>,
    /// Rows by rising offset; each holds up to the next.
    pub rows: Vec<LineRow>,
}

/// A row of a line table.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LineRow {
    /// Byte offset in the kernel's code, a multiple of four.
    pub offset: u32,
    /// Where the code from there on was written; none for code that nobody wrote.
    pub place: Option<SourcePlace>,
}

/// A place in one of the files of [`SourceLines`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// Index of the file.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl SourceLines {
    /// The index of a file, entering it if it is new. Few files make a kernel.
    pub fn file(&mut self, name: &Arc<str>) -> u32 {
        let known = self.files.iter().position(|file| Arc::ptr_eq(file, name) || file == name);
        let at = known.unwrap_or_else(|| {
            self.files.push(name.clone());
            self.files.len() - 1
        });
        at as u32
    }

    /// Appends a row unless it says what the last one says.
    pub fn push(&mut self, offset: u32, place: Option<SourcePlace>) {
        if self.rows.last().is_none_or(|last| last.place != place) {
            self.rows.push(LineRow { offset, place });
        }
    }
}

/// The encoding of everything here.
const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 5, address_size: 8 };

/// Instructions are words; special opcodes reach five lines back and eight ahead.
const LINES: LineEncoding = LineEncoding {
    minimum_instruction_length: 4,
    maximum_operations_per_instruction: 1,
    default_is_stmt: true,
    line_base: -5,
    line_range: 14,
};

const PRODUCER: &str = concat!("groundswell ", env!("CARGO_PKG_VERSION"));

/// The debug sections of an object whose kernels begin at `offsets` of the text section; `address` turns offsets in it into what
/// is written for them.
pub(super) fn write<W: Writer + Clone>(
    kernels: &[KernelCode<'_>],
    offsets: &[u64],
    empty: W,
    address: impl Fn(u64) -> Address,
) -> gimli::write::Result<Sections<W>> {
    let mut dwarf = DwarfUnit::new(ENCODING);
    let primary = kernels.iter().find_map(|kernel| kernel.lines?.files.first());
    let primary = LineString::new(path(primary.map_or("", |name| name)), ENCODING, &mut dwarf.line_strings);
    let here = LineString::new("", ENCODING, &mut dwarf.line_strings);
    let mut program = LineProgram::new(ENCODING, LINES, here, None, primary.clone(), None);

    let end = kernels.iter().zip(offsets).map(|(kernel, start)| start + kernel.code.len() as u64).max();
    let start = offsets.first().copied().unwrap_or(0);
    let root = dwarf.unit.root();
    let producer = dwarf.strings.add(PRODUCER);
    let name = dwarf.strings.add(dwarf.get_line_string(&primary).to_vec());
    let unit = dwarf.unit.get_mut(root);
    unit.reserve(5);
    unit.set(dw::DW_AT_producer, AttributeValue::StringRef(producer));
    unit.set(dw::DW_AT_name, AttributeValue::StringRef(name));
    unit.set(dw::DW_AT_low_pc, AttributeValue::Address(address(start)));
    unit.set(dw::DW_AT_high_pc, AttributeValue::Udata(end.unwrap_or(start) - start));
    unit.set(dw::DW_AT_stmt_list, AttributeValue::LineProgramRef);

    let mut files: Vec<FileId> = Vec::new();
    for (kernel, &offset) in kernels.iter().zip(offsets) {
        let size = kernel.code.len() as u64;
        let name = dwarf.strings.add(kernel.info.name.as_str());
        let entry = dwarf.unit.add(root, dw::DW_TAG_subprogram);
        let entry = dwarf.unit.get_mut(entry);
        entry.reserve(6);
        entry.set(dw::DW_AT_name, AttributeValue::StringRef(name));
        entry.set(dw::DW_AT_low_pc, AttributeValue::Address(address(offset)));
        entry.set(dw::DW_AT_high_pc, AttributeValue::Udata(size));
        entry.set(dw::DW_AT_external, AttributeValue::Flag(true));
        let Some(lines) = kernel.lines else { continue };
        files.clear();
        for file in &lines.files {
            let name = LineString::new(path(file), ENCODING, &mut dwarf.line_strings);
            files.push(program.add_file(name, program.default_directory(), None));
        }
        if let Some(place) = lines.declaration {
            entry
                .set(dw::DW_AT_decl_file, AttributeValue::FileIndex(files.get(place.file as usize).copied()));
            entry.set(dw::DW_AT_decl_line, AttributeValue::Udata(place.line.into()));
        }
        if lines.rows.is_empty() {
            continue;
        }
        program.begin_sequence(Some(address(offset)));
        let mut at = 0;
        for row in &lines.rows {
            // What is behind the code or goes back cannot be said in a sequence.
            at = u64::from(row.offset & !3).clamp(at, size);
            let entry = program.row();
            entry.address_offset = at;
            let place = row.place.and_then(|place| Some((*files.get(place.file as usize)?, place)));
            (entry.line, entry.column) = (0, 0);
            if let Some((file, place)) = place {
                (entry.file, entry.line, entry.column) = (file, place.line.into(), place.column.into());
            }
            program.generate_row();
        }
        program.end_sequence(size);
    }
    dwarf.unit.line_program = program;
    let mut sections = Sections::new(empty);
    dwarf.write(&mut sections)?;
    Ok(sections)
}

/// A file name as DWARF can hold it: up to the first zero byte.
fn path(name: &str) -> &str {
    name.split('\0').next().unwrap_or_default()
}
