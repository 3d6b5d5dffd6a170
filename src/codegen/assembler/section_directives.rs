//! Directives that choose the section into which the lines after them go.

use super::directives::SectionDirective;
use super::error::other;
use super::sections::{ALLOC, EXECUTE, LETTERS, MERGE, WRITE, flags_of};
use super::walk::{TextAssembler, is_name, symbol_name};
use crate::codegen::isa::LineError;
use crate::codegen::isa::parse::cursor::StatementCursor;

/// Flags, size of entries and type that a `.section` names.
struct SectionLetters {
    /// `sh_flags`
    flags: u64,
    /// `sh_entsize`
    entry_size: u64,
    /// True for `@nobits`; nothing if it does not say.
    is_nobits: Option<bool>,
}

impl TextAssembler {
    /// Goes on in the section that a directive at `start` says.
    pub(super) fn section_directive(
        &mut self,
        directive: SectionDirective,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        match directive {
            SectionDirective::Into(section) => {
                let switched = self.sections.switch(section, None);
                switched.map_err(|fault| start.fault(fault))?;
                self.symbols.section(section, self.sections.index());
            }
            SectionDirective::Section => self.section(cursor)?,
            SectionDirective::Push => {
                self.sections.push().map_err(|fault| start.fault(fault))?;
                self.section(cursor)?;
            }
            SectionDirective::Pop if !self.sections.pop() => {
                return Err(start.fault(other("`.popsection` without `.pushsection`")));
            }
            SectionDirective::Pop => {}
            SectionDirective::Previous => self.sections.switch_back(),
        }
        Ok(())
    }

    /// `.section name,"flags",@progbits,size`
    fn section(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let start = *cursor;
        let name = section_name(cursor)?;
        let (mut told, mut is_nobits) = (None, None);
        if cursor.eat(",") {
            told = Some(match cursor.peek() {
                Some(b'#') => (section_words(cursor)?, 0),
                _ => {
                    let letters = self.section_letters(cursor)?;
                    is_nobits = letters.is_nobits;
                    (letters.flags, letters.entry_size)
                }
            });
        }
        // A section that exists keeps its flags if none are given.
        let told = told.or_else(|| {
            let exists = self.sections.all.iter().any(|section| section.name == name);
            (!exists).then(|| (flags_of(&name), 0))
        });
        self.sections.switch(&name, told).map_err(|fault| start.fault(fault))?;
        if let Some(is_nobits) = is_nobits {
            self.sections.set_nobits(is_nobits).map_err(|fault| start.fault(fault))?;
        }
        self.symbols.section(&name, self.sections.index());
        Ok(())
    }

    /// `"axG",@progbits,4,group,comdat`: flags, and the size of an entry. Groups of which a linker would keep
    /// one stay as they are, because this is the only object.
    fn section_letters(&mut self, cursor: &mut StatementCursor) -> Result<SectionLetters, LineError> {
        let at = *cursor;
        let letters = cursor.take_quoted().ok_or_else(|| at.expected("flags in quotes"))?;
        let (mut flags, mut has_group) = (0, false);
        for letter in letters.chars() {
            let known = LETTERS.iter().find(|(known, _)| *known == letter);
            match (known, letter) {
                (Some((_, flag)), _) => flags |= flag,
                (None, 'G') => has_group = true,
                (None, 'R') => {}
                _ => return Err(at.expected("flags of `a`, `w`, `x`, `M`, `S`, `G` and `R`")),
            }
        }
        let (mut entry_size, mut is_nobits) = (0, None);
        if cursor.eat(",") {
            if !(cursor.eat("@") || cursor.eat("%")) {
                return Err(cursor.expected("`@progbits`, `@nobits` or `@note`"));
            }
            match cursor.take_name() {
                Some(kind @ ("progbits" | "nobits" | "note")) => is_nobits = Some(kind == "nobits"),
                _ => return Err(cursor.expected("`progbits`, `nobits` or `note`")),
            }
            if flags & MERGE != 0 && cursor.eat(",") {
                entry_size = self.number(cursor, 0, 1 << 16)? as u64;
            }
            if has_group {
                cursor.expect(",")?;
                symbol_name(cursor)?;
                if cursor.eat(",") && !cursor.eat_name("comdat") {
                    return Err(cursor.expected("`comdat`"));
                }
            }
        }
        Ok(SectionLetters { flags, entry_size, is_nobits })
    }
}

/// `#alloc,#execinstr`: flags of a section as words.
fn section_words(cursor: &mut StatementCursor) -> Result<u64, LineError> {
    const WORDS: [(&str, u64); 3] = [("alloc", ALLOC), ("execinstr", EXECUTE), ("write", WRITE)];
    let mut flags = 0;
    while cursor.eat("#") {
        let known = WORDS.iter().find(|(word, _)| cursor.name() == Some(word));
        flags |= known.ok_or_else(|| cursor.expected("`alloc`, `execinstr` or `write`"))?.1;
        cursor.take_name();
        if !cursor.eat(",") {
            break;
        }
    }
    Ok(flags)
}

/// The name of a section, which has more characters than other names.
fn section_name(cursor: &mut StatementCursor) -> Result<String, LineError> {
    let start = *cursor;
    let name = match cursor.take_quoted() {
        Some(name) => name,
        None => {
            let rest = cursor.rest();
            let end = rest.find(|c: char| c == ',' || c == '"' || c.is_whitespace()).unwrap_or(rest.len());
            cursor.advance(end);
            &rest[..end]
        }
    };
    if is_name(name) { Ok(name.to_owned()) } else { Err(start.expected("the name of a section")) }
}
