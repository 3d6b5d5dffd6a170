//! `.include`: the lines of another file in place of the line that names it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::assemble::MAX_TEXT_BYTES;
use super::error::other;
use super::input::TextExpansion;
use super::walk::TextAssembler;
use crate::codegen::isa::LineError;
use crate::codegen::isa::parse::InstructionFault;
use crate::codegen::isa::parse::cursor::StatementCursor;

impl TextAssembler {
    /// `.include "name"`, which goes on with the lines of that file; they go through the same walk.
    pub(super) fn include(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let start = *cursor;
        let name = cursor.take_quoted().ok_or_else(|| start.expected("the name of a file in quotes"))?;
        super::walk::end(cursor)?;
        let folder = self.source.folder.as_deref();
        let text = folder.ok_or_else(|| other("`.include` in a text that is not a file"));
        let text = text.and_then(|folder| read(folder, name)).map_err(|fault| start.fault(fault))?;
        let conditions = self.source.conditions.open();
        let expansion = TextExpansion { name: name.into(), conditions, is_macro: false };
        self.source.input.enter(text, expansion).map_err(|fault| start.fault(fault))
    }
}

/// The text of a file, if it is one of ordinary size: devices have no end.
fn read(folder: &Path, name: &str) -> Result<String, InstructionFault> {
    let unread = |error: std::io::Error| other(format!("`{name}` cannot be read: {error}"));
    let path = folder.join(name);
    if !std::fs::metadata(&path).map_err(unread)?.is_file() {
        return Err(other(format!("`{name}` is not a file")));
    }
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(unread)?;
    file.take(MAX_TEXT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(other(format!("`{name}` has more than the {MAX_TEXT_BYTES} bytes of a text")));
    }
    String::from_utf8(bytes).map_err(|_| other(format!("`{name}` is not a text in UTF-8")))
}
