//! Reads the printed form, and the operators that people write: `+ - * /` (exact, by a constant), `//` and
//! `%`.
use super::{Expr, ExprArena, ExprError, Symbol};

/// Text that is not an expression.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {offset}: {kind}")]
pub struct ParseError {
    /// Where in the text, in bytes.
    pub offset: usize,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}

/// What is wrong with the text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseErrorKind {
    /// Something else is expected here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A function that does not exist.
    #[error("no function `{0}`: there are floordiv, ceildiv, mod, min, max")]
    UnknownFunction(String),
    /// A number beyond 64 bits.
    #[error("the number does not fit in 64 bits")]
    NumberTooLarge,
    /// `/` by something that is not an integer constant.
    #[error("`/` is exact division and takes an integer constant; `//` rounds down")]
    DivisorNotConstant,
    /// Brackets are nested too deeply.
    #[error("nested too deeply")]
    TooDeep,
    /// The text is well formed but its value cannot be built.
    #[error(transparent)]
    Value(#[from] ExprError),
}

type Function = fn(&mut ExprArena, Expr, Expr) -> Result<Expr, ExprError>;

const MAX_NESTING: u32 = 256;

impl ExprArena {
    /// The expression that a text stands for; names are symbols.
    pub fn parse(&mut self, text: &str) -> Result<Expr, ParseError> {
        let mut parser = ExprParser { arena: self, text, at: 0, nesting: 0 };
        let e = parser.sum()?;
        parser.skip_spaces();
        if parser.at == text.len() {
            Ok(e)
        } else {
            parser.fail(ParseErrorKind::Expected("an operator or the end"))
        }
    }
}

struct ExprParser<'a> {
    arena: &'a mut ExprArena,
    text: &'a str,
    at: usize,
    nesting: u32,
}

impl ExprParser<'_> {
    fn fail<T>(&self, kind: ParseErrorKind) -> Result<T, ParseError> {
        Err(ParseError { offset: self.at, kind })
    }

    fn built(&self, offset: usize, e: Result<Expr, ExprError>) -> Result<Expr, ParseError> {
        e.map_err(|error| ParseError { offset, kind: error.into() })
    }

    fn skip_spaces(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Takes the longest prefix whose characters are accepted.
    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn sum(&mut self) -> Result<Expr, ParseError> {
        let mut left = self.product()?;
        loop {
            self.skip_spaces();
            let offset = self.at;
            let e = if self.take("+") {
                let right = self.product()?;
                self.arena.add(left, right)
            } else if self.take("-") {
                let right = self.product()?;
                self.arena.sub(left, right)
            } else {
                return Ok(left);
            };
            left = self.built(offset, e)?;
        }
    }

    fn product(&mut self) -> Result<Expr, ParseError> {
        let mut left = self.unary()?;
        loop {
            self.skip_spaces();
            let offset = self.at;
            let e = if self.take("*") {
                let right = self.unary()?;
                self.arena.mul(left, right)
            } else if self.take("//") {
                let right = self.unary()?;
                self.arena.floor_div(left, right)
            } else if self.take("/") {
                let right = self.unary()?;
                match self.arena.as_integer(right) {
                    Some(divisor) => self.arena.div_exact(left, divisor),
                    None => return Err(ParseError { offset, kind: ParseErrorKind::DivisorNotConstant }),
                }
            } else if self.take("%") {
                let right = self.unary()?;
                self.arena.modulo(left, right)
            } else {
                return Ok(left);
            };
            left = self.built(offset, e)?;
        }
    }

    fn unary(&mut self) -> Result<Expr, ParseError> {
        let mut negative = false;
        loop {
            self.skip_spaces();
            let offset = self.at;
            if self.take("-") {
                negative = !negative;
                continue;
            }
            if self.text[self.at..].starts_with(|c: char| c.is_ascii_digit()) {
                return self.number(negative);
            }
            let e = self.primary()?;
            return if negative {
                let e = self.arena.neg(e);
                self.built(offset, e)
            } else {
                Ok(e)
            };
        }
    }

    /// The sign belongs to the number: the least integer has no positive counterpart.
    fn number(&mut self, negative: bool) -> Result<Expr, ParseError> {
        let offset = self.at;
        let magnitude = self.take_while(|c| c.is_ascii_digit()).parse::<i128>().ok();
        let value = magnitude.and_then(|m| i64::try_from(if negative { -m } else { m }).ok());
        match value {
            Some(value) => Ok(self.arena.int(value)),
            None => Err(ParseError { offset, kind: ParseErrorKind::NumberTooLarge }),
        }
    }

    fn primary(&mut self) -> Result<Expr, ParseError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return self.fail(ParseErrorKind::TooDeep);
        }
        let e = if self.take("(") {
            let e = self.sum()?;
            self.expect(")", "`)`")?;
            e
        } else if self.take("\"") {
            let name = self.quoted()?;
            self.arena.symbol(Symbol::new(&name))
        } else {
            let offset = self.at;
            let name = self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '.')).to_owned();
            if name.is_empty() {
                return self.fail(ParseErrorKind::Expected("a number, a name or `(`"));
            }
            if self.take("(") { self.call(offset, &name)? } else { self.arena.symbol(Symbol::new(&name)) }
        };
        self.nesting -= 1;
        Ok(e)
    }

    /// The rest of a quoted name, with the escapes of [`char::escape_default`].
    fn quoted(&mut self) -> Result<String, ParseError> {
        let mut name = String::new();
        let mut chars = self.text[self.at..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(name);
                }
                '\\' => name.extend(match chars.next().map(|c| c.1) {
                    Some('n') => Some('\n'),
                    Some('r') => Some('\r'),
                    Some('t') => Some('\t'),
                    Some('u') => {
                        let digits: String =
                            chars.by_ref().map(|c| c.1).skip(1).take_while(|&c| c != '}').collect();
                        u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
                    }
                    other => other,
                }),
                other => name.push(other),
            }
        }
        self.fail(ParseErrorKind::Expected("the end of a quoted name"))
    }

    fn call(&mut self, offset: usize, name: &str) -> Result<Expr, ParseError> {
        let (operation, more): (Function, bool) = match name {
            "floordiv" => (ExprArena::floor_div, false),
            "ceildiv" => (ExprArena::ceil_div, false),
            "mod" => (ExprArena::modulo, false),
            "min" => (ExprArena::min, true),
            "max" => (ExprArena::max, true),
            _ => return Err(ParseError { offset, kind: ParseErrorKind::UnknownFunction(name.to_owned()) }),
        };
        let mut value = self.sum()?;
        self.expect(",", "`,`")?;
        loop {
            let operand = self.sum()?;
            let result = operation(self.arena, value, operand);
            value = self.built(offset, result)?;
            if !(more && self.take(",")) {
                break;
            }
        }
        self.expect(")", "`)`")?;
        Ok(value)
    }

    fn expect(&mut self, token: &str, name: &'static str) -> Result<(), ParseError> {
        if self.take(token) { Ok(()) } else { self.fail(ParseErrorKind::Expected(name)) }
    }
}
