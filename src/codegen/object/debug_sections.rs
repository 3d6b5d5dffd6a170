//! The debug sections of an object: where its instructions come from, as DWARF 5. Written
//! straight into the sections, because every compilation does it.
//!
//! Debuggers and profilers map addresses with one compile unit, a subprogram per kernel, and a line table
//! with a sequence per kernel. File names are those of the author's locations and nothing else: there is no
//! compilation directory, so objects hold nothing of the host. Source: the DWARF 5 standard, sections 3.1,
//! 3.3 and 6.2.

use gimli::write::{Address, Error, Result, Sections, Writer};
use gimli::{DwLnct, DwLne, DwLns, LittleEndian, SectionId, constants as dw};

use smallvec::SmallVec;

use super::kernel_code::KernelCode;
use super::lines::{SourceLines, SourcePlace};

const VERSION: u16 = 5;
const ADDRESS_SIZE: u8 = 8;
/// Bytes of an offset into another section, and of a length.
const WORD: u8 = 4;
/// Offsets in the line table count words.
const INSTRUCTION_BYTES: u64 = 4;
/// Special opcodes change the line by this to [`LINE_BASE`] + [`LINE_RANGE`] - 1.
const LINE_BASE: i64 = -5;
const LINE_RANGE: i64 = 14;
/// Number of operands of the standard opcodes; special ones begin after them.
const STANDARD_OPERANDS: [u8; 12] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
const SPECIAL_BASE: i64 = STANDARD_OPERANDS.len() as i64 + 1;

const PRODUCER: &str = concat!("groundswell ", env!("CARGO_PKG_VERSION"));

/// Kind of an entry: number, tag, whether entries are inside, attributes with their forms.
type Abbreviation = (u8, dw::DwTag, bool, &'static [(dw::DwAt, dw::DwForm)]);

const ABBREVIATIONS: [Abbreviation; 3] = [
    (
        UNIT,
        dw::DW_TAG_compile_unit,
        true,
        &[
            (dw::DW_AT_producer, dw::DW_FORM_strp),
            (dw::DW_AT_name, dw::DW_FORM_strp),
            (dw::DW_AT_low_pc, dw::DW_FORM_addr),
            (dw::DW_AT_high_pc, dw::DW_FORM_udata),
            (dw::DW_AT_stmt_list, dw::DW_FORM_sec_offset),
        ],
    ),
    (
        DECLARED,
        dw::DW_TAG_subprogram,
        false,
        &[
            (dw::DW_AT_name, dw::DW_FORM_strp),
            (dw::DW_AT_low_pc, dw::DW_FORM_addr),
            (dw::DW_AT_high_pc, dw::DW_FORM_udata),
            (dw::DW_AT_external, dw::DW_FORM_flag_present),
            (dw::DW_AT_decl_file, dw::DW_FORM_udata),
            (dw::DW_AT_decl_line, dw::DW_FORM_udata),
        ],
    ),
    (
        UNDECLARED,
        dw::DW_TAG_subprogram,
        false,
        &[
            (dw::DW_AT_name, dw::DW_FORM_strp),
            (dw::DW_AT_low_pc, dw::DW_FORM_addr),
            (dw::DW_AT_high_pc, dw::DW_FORM_udata),
            (dw::DW_AT_external, dw::DW_FORM_flag_present),
        ],
    ),
];
const UNIT: u8 = 1;
const DECLARED: u8 = 2;
const UNDECLARED: u8 = 3;

/// Bytes of one debug section. Most need less than what the first write reserves, so they are allocated once.
#[derive(Clone, Default)]
pub(super) struct DebugSection(Vec<u8>);

const RESERVED: usize = 1024;

impl DebugSection {
    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// True if nothing was written.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Writer for DebugSection {
    type Endian = LittleEndian;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.0.capacity() == 0 {
            self.0.reserve(RESERVED);
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        let end = offset.checked_add(bytes.len()).ok_or(Error::LengthOutOfBounds)?;
        self.0.get_mut(offset..end).ok_or(Error::LengthOutOfBounds)?.copy_from_slice(bytes);
        Ok(())
    }
}

/// The debug sections of an object whose kernels begin at `offsets` of the text section; `address` turns
/// offsets in it into what is written for them.
pub(super) fn write<W: Writer + Clone>(
    kernels: &[KernelCode<'_>],
    offsets: &[u64],
    empty: W,
    address: impl Fn(u64) -> Address,
) -> Result<Sections<W>> {
    let mut sections = Sections::new(empty);
    write_abbreviations(&mut sections.debug_abbrev.0)?;
    let files = SourceFiles::of(kernels);
    write_info(&mut sections, kernels, offsets, &files, &address)?;
    write_line_table(&mut sections, kernels, offsets, &files, &address)?;
    Ok(sections)
}

/// The files of all kernels, each once; the first is the unit's own.
struct SourceFiles<'a>(SmallVec<[&'a str; 4]>);

impl<'a> SourceFiles<'a> {
    fn of(kernels: &[KernelCode<'a>]) -> SourceFiles<'a> {
        let mut files = SourceFiles(SmallVec::new());
        for name in kernels.iter().filter_map(|kernel| kernel.lines).flat_map(|lines| &lines.files) {
            if files.position(name).is_none() {
                files.0.push(path(name));
            }
        }
        if files.0.is_empty() {
            files.0.push("");
        }
        files
    }

    fn position(&self, name: &str) -> Option<u64> {
        self.0.iter().position(|known| *known == path(name)).map(|index| index as u64)
    }

    /// Numbers of the files of one kernel, by their places in its list.
    fn numbers(&self, lines: &SourceLines) -> SmallVec<[Option<u64>; 4]> {
        lines.files.iter().map(|name| self.position(name)).collect()
    }
}

/// Number of the file of a place, of those of its kernel.
fn number(of_kernel: &[Option<u64>], place: SourcePlace) -> Option<u64> {
    of_kernel.get(place.file as usize).copied().flatten()
}

fn write_abbreviations<W: Writer>(w: &mut W) -> Result<()> {
    for (number, tag, has_children, attributes) in ABBREVIATIONS {
        w.write_u8(number)?;
        w.write_uleb128(tag.0.into())?;
        w.write_u8(has_children.into())?;
        for (attribute, form) in attributes {
            w.write_uleb128(attribute.0.into())?;
            w.write_uleb128(form.0.into())?;
        }
        w.write(&[0, 0])?;
    }
    w.write_u8(0)
}

/// Appends a string and returns where it begins.
fn write_string<W: Writer>(w: &mut W, text: &str) -> Result<usize> {
    let at = w.len();
    w.write(text.as_bytes())?;
    w.write_u8(0)?;
    Ok(at)
}

/// Writes the number of bytes after the word at `at` into that word.
fn patch_length<W: Writer>(w: &mut W, at: usize) -> Result<()> {
    let length = w.len() - at - usize::from(WORD);
    w.write_udata_at(at, length as u64, WORD)
}

fn write_info<W: Writer>(
    sections: &mut Sections<W>,
    kernels: &[KernelCode<'_>],
    offsets: &[u64],
    files: &SourceFiles<'_>,
    address: &impl Fn(u64) -> Address,
) -> Result<()> {
    let (w, strings) = (&mut sections.debug_info.0, &mut sections.debug_str.0);
    let end = kernels.iter().zip(offsets).map(|(kernel, start)| start + kernel.code.len() as u64).max();
    let start = offsets.first().copied().unwrap_or(0);
    let mut write_name = |w: &mut W, text: &str| {
        let at = write_string(strings, text)?;
        w.write_offset(at, SectionId::DebugStr, WORD)
    };
    w.write_u32(0)?;
    w.write_u16(VERSION)?;
    w.write(&[dw::DW_UT_compile.0, ADDRESS_SIZE])?;
    w.write_offset(0, SectionId::DebugAbbrev, WORD)?;
    w.write_u8(UNIT)?;
    write_name(w, PRODUCER)?;
    write_name(w, files.0[0])?;
    w.write_address(address(start), ADDRESS_SIZE)?;
    w.write_uleb128(end.unwrap_or(start) - start)?;
    w.write_offset(0, SectionId::DebugLine, WORD)?;
    for (kernel, &offset) in kernels.iter().zip(offsets) {
        let declaration = kernel.lines.and_then(|lines| {
            let place = lines.declaration?;
            Some((number(&files.numbers(lines), place)?, place.line))
        });
        w.write_u8(if declaration.is_some() { DECLARED } else { UNDECLARED })?;
        write_name(w, path(&kernel.info.name))?;
        w.write_address(address(offset), ADDRESS_SIZE)?;
        w.write_uleb128(kernel.code.len() as u64)?;
        if let Some((file, line)) = declaration {
            w.write_uleb128(file)?;
            w.write_uleb128(line.into())?;
        }
    }
    w.write_u8(0)?;
    patch_length(w, 0)
}

fn write_line_table<W: Writer>(
    sections: &mut Sections<W>,
    kernels: &[KernelCode<'_>],
    offsets: &[u64],
    files: &SourceFiles<'_>,
    address: &impl Fn(u64) -> Address,
) -> Result<()> {
    let (w, strings) = (&mut sections.debug_line.0, &mut sections.debug_line_str.0);
    w.write_u32(0)?;
    w.write_u16(VERSION)?;
    // No segments.
    w.write(&[ADDRESS_SIZE, 0])?;
    let header = w.len();
    w.write_u32(0)?;
    // One operation per instruction; every row is a statement.
    w.write(&[INSTRUCTION_BYTES as u8, 1, 1, LINE_BASE as u8, LINE_RANGE as u8, SPECIAL_BASE as u8])?;
    w.write(&STANDARD_OPERANDS)?;
    write_entry_format(w, &[(dw::DW_LNCT_path, dw::DW_FORM_line_strp)])?;
    w.write_uleb128(1)?;
    let here = write_string(strings, "")?;
    w.write_offset(here, SectionId::DebugLineStr, WORD)?;
    write_entry_format(
        w,
        &[(dw::DW_LNCT_path, dw::DW_FORM_line_strp), (dw::DW_LNCT_directory_index, dw::DW_FORM_udata)],
    )?;
    w.write_uleb128(files.0.len() as u64)?;
    for file in &files.0 {
        let at = write_string(strings, file)?;
        w.write_offset(at, SectionId::DebugLineStr, WORD)?;
        w.write_uleb128(0)?;
    }
    patch_length(w, header)?;
    for (kernel, &offset) in kernels.iter().zip(offsets) {
        let Some(lines) = kernel.lines.filter(|lines| !lines.rows.is_empty()) else { continue };
        write_extended(w, dw::DW_LNE_set_address, 1 + ADDRESS_SIZE)?;
        w.write_address(address(offset), ADDRESS_SIZE)?;
        let mut sequence = Sequence { address: 0, file: 1, line: 1, column: 0 };
        let size = kernel.code.len() as u64;
        let numbers = files.numbers(lines);
        for row in &lines.rows {
            // A row after the end of the code or before the last one cannot be expressed in a sequence.
            let at = u64::from(row.offset & !3).clamp(sequence.address, size);
            let place = row.place.and_then(|place| Some((number(&numbers, place)?, place)));
            let (file, line, column) = match place {
                Some((file, place)) => (file, place.line, place.column),
                None => (sequence.file, 0, 0),
            };
            sequence.row(w, at, file, line.into(), column.into())?;
        }
        sequence.end(w, size)?;
    }
    patch_length(w, 0)
}

fn write_entry_format<W: Writer>(w: &mut W, format: &[(DwLnct, dw::DwForm)]) -> Result<()> {
    w.write_u8(format.len() as u8)?;
    for (kind, form) in format {
        w.write_uleb128(kind.0.into())?;
        w.write_uleb128(form.0.into())?;
    }
    Ok(())
}

fn write_extended<W: Writer>(w: &mut W, opcode: DwLne, length: u8) -> Result<()> {
    w.write(&[0, length, opcode.0])
}

/// Registers of the machine that a line table is a program of.
struct Sequence {
    address: u64,
    file: u64,
    line: i64,
    column: u64,
}

impl Sequence {
    fn row<W: Writer>(&mut self, w: &mut W, address: u64, file: u64, line: i64, column: u64) -> Result<()> {
        if file != self.file {
            write_standard(w, dw::DW_LNS_set_file, file)?;
        }
        if column != self.column {
            write_standard(w, dw::DW_LNS_set_column, column)?;
        }
        let mut lines = line - self.line;
        if !(LINE_BASE..LINE_BASE + LINE_RANGE).contains(&lines) {
            w.write_u8(dw::DW_LNS_advance_line.0)?;
            w.write_sleb128(lines)?;
            lines = 0;
        }
        let mut words = (address - self.address) / INSTRUCTION_BYTES;
        let special = |words: u64| lines - LINE_BASE + LINE_RANGE * words as i64 + SPECIAL_BASE;
        // The largest distance that any special opcode can go.
        if words > (255 / LINE_RANGE) as u64 || special(words) > 255 {
            write_standard(w, dw::DW_LNS_advance_pc, words)?;
            words = 0;
        }
        w.write_u8(special(words) as u8)?;
        *self = Sequence { address, file, line, column };
        Ok(())
    }

    fn end<W: Writer>(&mut self, w: &mut W, size: u64) -> Result<()> {
        write_standard(w, dw::DW_LNS_advance_pc, (size - self.address) / INSTRUCTION_BYTES)?;
        write_extended(w, dw::DW_LNE_end_sequence, 1)
    }
}

fn write_standard<W: Writer>(w: &mut W, opcode: DwLns, operand: u64) -> Result<()> {
    w.write_u8(opcode.0)?;
    w.write_uleb128(operand)
}

/// A file name as DWARF can hold it: up to the first zero byte.
fn path(name: &str) -> &str {
    name.split('\0').next().unwrap_or_default()
}
