//! The parser's place in its tokens: looking, stepping, and saying what was expected instead of the token
//! that is there.

use std::sync::Arc;

use super::foreign;
use super::lex::{Lexeme, Lexer, Token};
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::node::Constant;
use crate::ir::types::DType;

/// What was read, or a fault.
pub(super) type Parsed<T> = Result<T, Diagnostic>;

/// The number of faults after which the rest of the text is not looked at.
const MAX_FAULTS: usize = 20;

/// The faults of a text, in the order in which they were found.
#[derive(Default)]
pub(super) struct TextFaults(pub(super) Vec<Diagnostic>, Further);

/// Whether further faults are accepted.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
enum Further {
    #[default]
    Taken,
    Dropped,
}

impl TextFaults {
    /// Adds one; the last one that is accepted ends the text for `cursor`.
    pub(super) fn add(&mut self, fault: Diagnostic, cursor: &mut Cursor<'_>) {
        if self.1 == Further::Taken {
            self.0.push(fault);
        }
        if self.0.len() == MAX_FAULTS {
            self.1 = Further::Dropped;
            cursor.stop();
        }
    }

    /// As many of the faults as are reported.
    pub(super) fn first(mut faults: Vec<Diagnostic>) -> Vec<Diagnostic> {
        faults.truncate(MAX_FAULTS);
        faults
    }

    /// Adds one that ends the text for `cursor`.
    pub(super) fn add_last(&mut self, fault: Diagnostic, cursor: &mut Cursor<'_>) {
        self.add(fault, cursor);
        self.1 = Further::Dropped;
        cursor.stop();
    }
}

/// A place in the tokens of a text. It never moves past [`Token::End`].
pub(super) struct Cursor<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The next token, and the one after it.
    next: Lexeme<'a>,
    second: Lexeme<'a>,
    file: Arc<str>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, file: &str) -> Cursor<'a> {
        let mut lexer = Lexer::new(text);
        let (next, second) = (lexer.next(), lexer.next());
        Cursor { text, lexer, next, second, file: file.into() }
    }

    pub(super) fn peek(&self) -> &Token<'a> {
        &self.next.token
    }

    /// True if the next token is this sign.
    pub(super) fn at(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    /// True if the token after the next is this sign.
    pub(super) fn at_second(&self, sign: &str) -> bool {
        matches!(self.second.token, Token::Sign(found) if found == sign)
    }

    /// True if the token after the next one is this word.
    pub(super) fn at_second_name(&self, word: &str) -> bool {
        matches!(self.second.token, Token::Name(found) if found == word)
    }

    /// True if the next token is this word.
    pub(super) fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Name(found) if *found == word)
    }

    pub(super) fn bump(&mut self) {
        self.next = std::mem::replace(&mut self.second, self.lexer.next());
    }

    /// Steps over a sign if it is next.
    pub(super) fn take(&mut self, sign: &str) -> bool {
        let found = self.at(sign);
        if found {
            self.bump();
        }
        found
    }

    /// Steps over a word if it is next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
    }

    /// Where the next token stands.
    pub(super) fn location(&self) -> Location {
        let lexeme = &self.next;
        Location { file: self.file.clone(), line: lexeme.line, column: lexeme.column }
    }

    /// A fault at the next token.
    pub(super) fn fault(&self, diagnostic: Diagnostic) -> Diagnostic {
        diagnostic.at(Some(self.location()))
    }

    /// The fault that something else is expected here.
    pub(super) fn expected(&self, what: &str) -> Diagnostic {
        let lexeme = &self.next;
        let fault = match &lexeme.token {
            Token::End => Diagnostic::invalid(format!("expected {what}, found the end of the text")),
            Token::Newline => Diagnostic::invalid(format!("expected {what}, found the end of the line")),
            Token::BadQuote => Diagnostic::invalid("this quoted name does not end, or has an unknown escape")
                .help("names are quoted like Rust's string literals, on one line"),
            Token::Unknown(c) => {
                let fault = Diagnostic::invalid(format!("expected {what}, found the character {c:?}"));
                if *c == '#' { fault.help("comments start with `;`, tags with `@`") } else { fault }
            }
            Token::Sign("//") => Diagnostic::invalid(format!("expected {what}, found `//`"))
                .help("comments start with `;`; `//` divides and rounds down"),
            _ => {
                let found = &self.text[lexeme.start..lexeme.end];
                let short: String = found.chars().take(40).collect();
                let dots = if short.len() < found.len() { "..." } else { "" };
                Diagnostic::invalid(format!("expected {what}, found `{short}{dots}`"))
            }
        };
        self.fault(fault)
    }

    /// Steps over a sign that has to be next.
    pub(super) fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.take(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// Steps over the end of a statement; the brackets after it stay.
    pub(super) fn end_of_statement(&mut self) -> Parsed<()> {
        match self.peek() {
            Token::Newline => self.bump(),
            Token::End | Token::Sign("}") => {}
            _ => return Err(self.expected("the end of the line")),
        }
        Ok(())
    }

    pub(super) fn skip_newlines(&mut self) {
        while *self.peek() == Token::Newline {
            self.bump();
        }
    }

    /// Skips the rest of a statement after a fault, including a block that it opens.
    pub(super) fn recover(&mut self) {
        let mut depth = 0u32;
        loop {
            match self.peek() {
                Token::End => return,
                Token::Newline if depth == 0 => return self.bump(),
                Token::Sign("{") => depth += 1,
                Token::Sign("}") if depth == 0 => return,
                Token::Sign("}") => depth -= 1,
                _ => {}
            }
            self.bump();
        }
    }

    /// Gives up on the rest of the text.
    pub(super) fn stop(&mut self) {
        self.lexer.stop();
        (self.next, self.second) = (self.lexer.next(), self.lexer.next());
    }

    /// The name of a value, with its `%`.
    pub(super) fn value_name(&mut self) -> Parsed<&'a str> {
        if !self.at("%") {
            return Err(self.expected("a value like `%x`"));
        }
        let (sign, word) = (&self.next, &self.second);
        let (start, end) = (sign.start, word.end);
        let decimal = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let named = match word.token {
            Token::Name(_) => true,
            Token::Integer(text) => decimal(text),
            _ => false,
        };
        if !named || word.start != sign.end {
            let fault = Diagnostic::invalid("`%` without a name");
            return Err(self.fault(fault.help("a value is written `%x` or `%3`")));
        }
        self.bump();
        self.bump();
        Ok(&self.text[start..end])
    }

    /// Steps over the text of an expression in the arena's own form: up to a comma, bracket or `..` that is
    /// not part of it.
    pub(super) fn expression(&mut self) -> &'a str {
        let (start, mut end, mut depth) = (self.next.start, self.next.start, 0u32);
        loop {
            match self.peek() {
                Token::Newline | Token::End | Token::Sign("{" | "}" | "!") => break,
                Token::Sign("," | ")") if depth == 0 => break,
                Token::Sign(".") if self.at_second(".") => break,
                Token::Sign("(") => depth += 1,
                Token::Sign(")") => depth -= 1,
                _ => {}
            }
            end = self.next.end;
            self.bump();
        }
        &self.text[start..end]
    }

    /// A tag, if there is one.
    pub(super) fn tag(&mut self) -> Parsed<Option<String>> {
        if !self.take("@") {
            return Ok(None);
        }
        let tag = match self.peek() {
            Token::Name(name) => (*name).to_owned(),
            Token::Quoted(name) => name.clone(),
            _ => return Err(self.expected("the tag's name")),
        };
        self.bump();
        Ok(Some(tag))
    }

    /// A dtype.
    pub(super) fn dtype(&mut self) -> Parsed<DType> {
        let Token::Name(name) = *self.peek() else { return Err(self.expected("a dtype")) };
        let Some(dtype) = DType::from_name(name) else {
            let fault = Diagnostic::invalid(format!("there is no dtype `{name}`"));
            let help = foreign::dtype(name).unwrap_or_else(|| {
                let names: Vec<_> = DType::all().map(DType::name).collect();
                format!("the dtypes are {}", names.join(", "))
            });
            return Err(self.fault(fault.help(help)));
        };
        self.bump();
        Ok(dtype)
    }

    /// A decimal integer literal times `sign`, which is 1 or -1 and was already read.
    pub(super) fn integer(&mut self, sign: i128) -> Parsed<i64> {
        let Token::Integer(digits) = *self.peek() else { return Err(self.expected("an integer")) };
        let value = digits.parse::<i128>().ok().and_then(|value| i64::try_from(sign * value).ok());
        let Some(value) = value else {
            return Err(
                self.fault(Diagnostic::invalid(format!("`{digits}` is not a decimal integer of 64 bits")))
            );
        };
        self.bump();
        Ok(value)
    }

    /// An integer, perhaps with a sign.
    pub(super) fn signed_integer(&mut self) -> Parsed<i64> {
        let negative = self.take("-");
        self.integer(if negative { -1 } else { 1 })
    }

    /// True if a number comes next.
    pub(super) fn at_number(&self) -> bool {
        self.at("-")
            || matches!(self.peek(), Token::Integer(_) | Token::Float(_) | Token::Name("inf" | "nan"))
    }

    /// A constant: floats have a point, an exponent or a name.
    pub(super) fn number(&mut self) -> Parsed<Constant> {
        let negative = self.take("-");
        let sign = if negative { -1.0 } else { 1.0 };
        let float = match *self.peek() {
            Token::Integer(_) => return self.integer(if negative { -1 } else { 1 }).map(Constant::Integer),
            Token::Float(text) => match text.parse::<f64>() {
                Ok(value) if value.is_finite() => value,
                _ => {
                    let fault = Diagnostic::invalid(format!("`{text}` is too large for a 64-bit float"));
                    return Err(self.fault(fault.help("write `inf` for infinity")));
                }
            },
            Token::Name("inf") => f64::INFINITY,
            Token::Name("nan") if !negative => return self.nan(),
            _ => return Err(self.expected("a number")),
        };
        self.bump();
        Ok(Constant::Float(sign * float))
    }

    fn nan(&mut self) -> Parsed<Constant> {
        self.bump();
        if !self.take("(") {
            return Ok(Constant::Float(f64::NAN));
        }
        let bits = match *self.peek() {
            Token::Integer(text) => {
                text.strip_prefix("0x").and_then(|text| u64::from_str_radix(text, 16).ok())
            }
            _ => None,
        };
        let Some(value) = bits.map(f64::from_bits).filter(|value| value.is_nan()) else {
            return Err(self.expected("the bits of a NaN like `0x7ff8000000000001`"));
        };
        self.bump();
        self.expect(")")?;
        Ok(Constant::Float(value))
    }
}
