//! Where instructions come from: the author's file and line of each.

use std::sync::Arc;

/// The author's locations of one kernel's code.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct SourceLines {
    /// File names as the author's locations have them.
    pub files: Vec<Arc<str>>,
    /// Where the kernel itself begins.
    pub declaration: Option<SourcePlace>,
    /// Rows by rising offset; each holds up to the next.
    pub rows: Vec<LineRow>,
}

/// A row of a line table.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct LineRow {
    /// Byte offset in the kernel's code, a multiple of four.
    pub offset: u32,
    /// Where the code from there on was written; none for code without an author.
    pub place: Option<SourcePlace>,
}

/// A place in one of the files of [`SourceLines`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct SourcePlace {
    /// Index of the file.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl SourceLines {
    /// The index of a file, entering it if it is new. A kernel has few files.
    pub fn file(&mut self, name: &Arc<str>) -> u32 {
        let known = self.files.iter().position(|file| Arc::ptr_eq(file, name) || file == name);
        let at = known.unwrap_or_else(|| {
            self.files.push(name.clone());
            self.files.len() - 1
        });
        at as u32
    }

    /// Appends a row unless it repeats the last one.
    pub fn push(&mut self, offset: u32, place: Option<SourcePlace>) {
        if self.rows.last().is_none_or(|last| last.place != place) {
            self.rows.push(LineRow { offset, place });
        }
    }
}
