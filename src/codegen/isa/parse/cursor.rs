//! A place in one statement of assembler text, and the small steps that every part of the parser takes.

use super::error::{InstructionFault, LineError};

/// A statement and how far it has been read.
#[derive(Copy, Clone, Debug)]
pub(in crate::codegen) struct StatementCursor<'a> {
    text: &'a str,
    at: usize,
}

/// True for bytes that names begin with.
pub(in crate::codegen) const fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b'$')
}

const fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$')
}

impl<'a> StatementCursor<'a> {
    /// The beginning of a statement.
    pub(crate) fn new(text: &'a str) -> StatementCursor<'a> {
        let mut cursor = StatementCursor { text, at: 0 };
        cursor.skip_space();
        cursor
    }

    /// Byte offset of the next character.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The text that has not been read.
    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The next byte.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// True after the last character.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Skips this many bytes, and the space after them.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.skip_space();
    }

    /// Takes this text if it comes next.
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.advance(text.len());
        }
        found
    }

    /// Takes this text or says that it was expected.
    pub(crate) fn expect(&mut self, text: &'static str) -> Result<(), LineError> {
        if self.eat(text) { Ok(()) } else { Err(self.expected(text)) }
    }

    /// The name that comes next, without taking it.
    pub(crate) fn name(&self) -> Option<&'a str> {
        let rest = self.rest();
        rest.bytes().next().filter(|&byte| begins_name(byte))?;
        let end = rest.bytes().position(|byte| !continues_name(byte)).unwrap_or(rest.len());
        Some(&rest[..end])
    }

    /// Takes the name that comes next.
    pub(crate) fn take_name(&mut self) -> Option<&'a str> {
        let name = self.name()?;
        self.advance(name.len());
        Some(name)
    }

    /// Takes this name if it comes next.
    pub(crate) fn eat_name(&mut self, name: &str) -> bool {
        let found = self.name() == Some(name);
        if found {
            self.advance(name.len());
        }
        found
    }

    /// True if this name comes next with `then` right after it.
    pub(crate) fn is_call(&self, name: &str, then: u8) -> bool {
        self.name() == Some(name) && {
            let mut next = *self;
            next.advance(name.len());
            next.peek() == Some(then)
        }
    }

    /// Takes a quoted string without escapes.
    pub(crate) fn take_quoted(&mut self) -> Option<&'a str> {
        let inside = self.rest().strip_prefix('"')?;
        let end = inside.find('"')?;
        self.advance(end + 2);
        Some(&inside[..end])
    }

    /// A fault at the next character.
    pub(crate) fn fault(&self, fault: InstructionFault) -> LineError {
        LineError::new(self.text, self.at, fault)
    }

    /// A fault at an earlier place.
    pub(crate) fn fault_at(&self, at: usize, fault: InstructionFault) -> LineError {
        LineError::new(self.text, at, fault)
    }

    /// The fault that something else was expected at an earlier place.
    pub(crate) fn expected_at(&self, at: usize, what: &'static str) -> LineError {
        StatementCursor { text: self.text, at }.expected(what)
    }

    /// The fault that something else was expected next.
    pub(crate) fn expected(&self, what: &'static str) -> LineError {
        let word = self.name().map(str::to_owned);
        let found = word.or_else(|| self.rest().chars().next().map(String::from));
        self.fault(InstructionFault::Expected { what, found })
    }
}
