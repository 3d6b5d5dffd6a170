//! From addresses back to the author's lines: a reader of the line tables of any object.
//!
//! It walks `.debug_line` from front to back and only needs the sections of file names besides, so its work
//! and memory are in proportion to the object whatever the object's units refer to. Code whose tables cannot
//! be read has no lines. Source: the DWARF 5 standard, section 6.2.

use std::borrow::Cow;

use gimli::read::{
    AttributeValue, DebugLine, DebugLineStr, DebugStr, EndianSlice, Error, LineProgramHeader, LineRow,
};
use gimli::{ColumnType, DebugLineOffset, LittleEndian};

type DwarfBytes<'a> = EndianSlice<'a, LittleEndian>;

/// The sections of an object with the information where its code was written.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct LineSections<'a> {
    /// `.debug_line`.
    pub lines: &'a [u8],
    /// `.debug_line_str`.
    pub line_strings: &'a [u8],
    /// `.debug_str`.
    pub strings: &'a [u8],
}

/// Where the code at an address was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLine<'a> {
    /// File, as the object names it.
    pub file: Cow<'a, str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if it is not known.
    pub column: u32,
}

/// The lines of an object's code, by address.
#[derive(Clone, Debug)]
pub struct LineMap<'a> {
    sections: LineSections<'a>,
    headers: Vec<LineProgramHeader<DwarfBytes<'a>>>,
    /// By rising start.
    rows: Vec<LineMapRow>,
}

#[derive(Copy, Clone, Debug)]
struct LineMapRow {
    start: u64,
    end: u64,
    header: u32,
    file: u64,
    line: u32,
    column: u32,
}

impl<'a> LineMap<'a> {
    pub(super) fn new(sections: LineSections<'a>) -> LineMap<'a> {
        let mut map = LineMap { sections, headers: Vec::new(), rows: Vec::new() };
        let mut offset = 0;
        // An unreadable program may be followed by others, but only its header says where.
        while offset < sections.lines.len() {
            match map.program(offset) {
                Ok(size) => offset += size,
                Err(_) => break,
            }
        }
        map.rows.sort_by_key(|row| row.start);
        map
    }

    /// Reads the program at an offset; returns its size.
    fn program(&mut self, offset: usize) -> Result<usize, Error> {
        const ADDRESS_SIZE: u8 = 8;
        let section = DebugLine::new(self.sections.lines, LittleEndian);
        let program = section.program(DebugLineOffset(offset), ADDRESS_SIZE, None, None)?;
        let header = program.header().clone();
        let size = header.unit_length() + usize::from(header.format().initial_length_size());
        let number = self.headers.len() as u32;
        self.headers.push(header);
        let mut rows = program.rows();
        let mut last: Option<LineMapRow> = None;
        // A program that fails in the middle is valid up to that point.
        while let Ok(Some((_, row))) = rows.next_row() {
            if let Some(last) = last.take()
                && row.address() > last.start
            {
                self.rows.push(LineMapRow { end: row.address(), ..last });
            }
            if !row.end_sequence() {
                last = Some(LineMapRow::of(row, number));
            }
        }
        Ok(size)
    }

    /// Where the code at an address was written; none where the object does not say.
    pub fn line_of(&self, address: u64) -> Option<SourceLine<'a>> {
        let end = self.rows.partition_point(|row| row.start <= address);
        let row = self.rows[..end].last().filter(|row| address < row.end && row.line > 0)?;
        let header = self.headers.get(row.header as usize)?;
        let file = header.file(row.file)?;
        let name = self.string(file.path_name())?;
        let directory = file.directory(header).and_then(|directory| self.string(directory));
        let file = match directory {
            Some(directory) if !name.starts_with('/') && !directory.is_empty() => {
                Cow::Owned(format!("{directory}/{name}"))
            }
            _ => name,
        };
        Some(SourceLine { file, line: row.line, column: row.column })
    }

    fn string(&self, value: AttributeValue<DwarfBytes<'a>>) -> Option<Cow<'a, str>> {
        let bytes = match value {
            AttributeValue::String(bytes) => bytes,
            AttributeValue::DebugStrRef(at) => {
                DebugStr::new(self.sections.strings, LittleEndian).get_str(at).ok()?
            }
            AttributeValue::DebugLineStrRef(at) => {
                DebugLineStr::new(self.sections.line_strings, LittleEndian).get_str(at).ok()?
            }
            _ => return None,
        };
        Some(bytes.to_string_lossy())
    }
}

impl LineMapRow {
    fn of(row: &LineRow, header: u32) -> LineMapRow {
        let number = |n: u64| u32::try_from(n).unwrap_or(0);
        let column = match row.column() {
            ColumnType::LeftEdge => 0,
            ColumnType::Column(column) => number(column.get()),
        };
        LineMapRow {
            start: row.address(),
            end: row.address(),
            header,
            file: row.file_index(),
            line: row.line().map_or(0, |line| number(line.get())),
            column,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_give_a_map(
            lines in proptest::collection::vec(any::<u8>(), 0..200),
            strings in proptest::collection::vec(any::<u8>(), 0..20),
            address in any::<u64>(),
        ) {
            let map = LineMap::new(LineSections { lines: &lines, line_strings: &strings, strings: &strings });
            let _ = map.line_of(address);
        }
    }

    /// A directory and file table of more entries than there are bytes.
    #[test]
    fn counts_beyond_the_section_are_no_lines() {
        let mut lines = vec![0, 0, 0, 0, 5, 0, 8, 0, 0, 0, 0, 0, 4, 1, 1, 251, 14, 1];
        // One directory format (path, string), 2^63 directories.
        lines.extend([1, 1, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0]);
        let length = lines.len() as u32 - 4;
        lines[..4].copy_from_slice(&length.to_le_bytes());
        let header = length - 2 - 2 - 4;
        lines[8..12].copy_from_slice(&header.to_le_bytes());
        let map = LineMap::new(LineSections { lines: &lines, ..LineSections::default() });
        assert!(map.rows.is_empty() && map.line_of(0).is_none());
    }
}
