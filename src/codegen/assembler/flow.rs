//! Flow style of YAML: mappings in braces and sequences in brackets, as in `{ .name: x, .sizes: [ 1, 2 ] }`.

use super::error::other;
use super::scalar::{MOST_DEPTH, ScalarNode, scalar, scalar_text};
use crate::codegen::isa::parse::InstructionFault;

/// True if a value is in flow style.
pub(super) fn begins(text: &str) -> bool {
    text.starts_with(['[', '{'])
}

/// Counts brackets that are open, outside quotes.
#[derive(Default)]
pub(super) struct Brackets {
    depth: usize,
    quote: Option<char>,
    escaped: bool,
    /// Inside a scalar without quotes, in which quotes have no meaning.
    in_plain: bool,
}

impl Brackets {
    pub(super) fn are_open(&self) -> bool {
        self.depth > 0
    }

    /// Adds a piece of text.
    pub(super) fn add(&mut self, text: &str) {
        for c in text.chars() {
            match (self.quote, c) {
                _ if self.escaped => self.escaped = false,
                (Some('"'), '\\') => self.escaped = true,
                (Some(open), _) if c == open => self.quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') if !self.in_plain => self.quote = Some(c),
                (None, '[' | '{') => self.depth += 1,
                (None, ']' | '}') => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.in_plain = self.quote.is_none() && !matches!(c, ' ' | ',' | '[' | '{' | ']' | '}' | ':');
        }
    }
}

/// Reads a value at a nesting depth; there may be nothing after it.
pub(super) fn parse(text: &str, depth: usize) -> Result<ScalarNode, InstructionFault> {
    let mut flow = ListingFlow { rest: text };
    let node = flow.value(depth)?;
    match flow.peek() {
        None => Ok(node),
        Some(c) => Err(other(format!("`{c}` after a value in brackets"))),
    }
}

struct ListingFlow<'a> {
    rest: &'a str,
}

impl<'a> ListingFlow<'a> {
    /// The next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches(' ');
        self.rest.chars().next()
    }

    fn eat(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(sign);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<ScalarNode, InstructionFault> {
        if depth > MOST_DEPTH {
            return Err(InstructionFault::TooLong);
        }
        if self.eat('[') {
            return self.sequence(depth);
        }
        if self.eat('{') {
            return self.mapping(depth);
        }
        scalar(self.scalar(), 0).map_err(|(_, fault)| fault)
    }

    fn sequence(&mut self, depth: usize) -> Result<ScalarNode, InstructionFault> {
        let mut all = Vec::new();
        while !self.eat(']') {
            if self.peek() == Some(',') {
                return Err(other("a value is missing before `,`"));
            }
            all.push(self.value(depth + 1)?);
            self.separator(']')?;
        }
        Ok(ScalarNode::Sequence(all))
    }

    fn mapping(&mut self, depth: usize) -> Result<ScalarNode, InstructionFault> {
        let mut all: Vec<(String, ScalarNode)> = Vec::new();
        while !self.eat('}') {
            self.peek();
            let (key, _) = scalar_text(self.scalar(), 0).map_err(|(_, fault)| fault)?;
            if key.is_empty() {
                return Err(other("a key is missing"));
            }
            if all.iter().any(|(known, _)| *known == key) {
                return Err(InstructionFault::Twice { name: key });
            }
            if !self.eat(':') {
                return Err(other("expected `key: value`"));
            }
            let value = match self.peek() {
                Some(',' | '}') => ScalarNode::Text(String::new()),
                _ => self.value(depth + 1)?,
            };
            all.push((key, value));
            self.separator('}')?;
        }
        Ok(ScalarNode::Mapping(all))
    }

    /// Steps over a comma; the closing bracket stays.
    fn separator(&mut self, closing: char) -> Result<(), InstructionFault> {
        if self.eat(',') || self.peek() == Some(closing) {
            return Ok(());
        }
        Err(match self.peek() {
            None => other(format!("a value has no closing `{closing}`")),
            Some(_) => other(format!("expected `,` or `{closing}`")),
        })
    }

    /// The text of a scalar: its tag, and the text in quotes, or all up to a character that ends it.
    fn scalar(&mut self) -> &'a str {
        let text = self.rest;
        let tag = text.strip_prefix("!str").map_or(0, |rest| text.len() - rest.trim_start_matches(' ').len());
        let end = tag + scalar_end(&text[tag..]);
        self.rest = &text[end..];
        text[..end].trim_end_matches(' ')
    }
}

/// Where a scalar ends, which may be in quotes.
fn scalar_end(text: &str) -> usize {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
    let Some(quote) = quote else {
        let ends = |(at, c): &(usize, char)| match c {
            ',' | '[' | ']' | '{' | '}' => true,
            ':' => text[at + 1..].chars().next().is_none_or(|next| " ,[]{}".contains(next)),
            _ => false,
        };
        return text.char_indices().find(ends).map_or(text.len(), |(at, _)| at);
    };
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote && quote == '\'' && chars.peek().is_some_and(|&(_, next)| next == quote) {
            // Two quotes stand for one.
            chars.next();
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_brackets_are_read() {
        let text = |text: &str| ScalarNode::Text(text.to_owned());
        let map = |entries: &[(&str, ScalarNode)]| {
            ScalarNode::Mapping(
                entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
            )
        };
        let argument = map(&[(".name", text("it's, x")), (".offset", ScalarNode::Unsigned(16))]);
        for (written, expected) in [
            ("{ .name: \"it's, x\", .offset: 0x10 }", argument.clone()),
            ("{.name: 'it''s, x',.offset: 16,}", argument.clone()),
            ("{\".name\":\"it's, x\", .offset: 16}", argument.clone()),
            ("[{.name: !str \"it's, x\", .offset: 16}]", ScalarNode::Sequence(vec![argument])),
            ("[ a:b, gfx942:xnack+, ]", ScalarNode::Sequence(vec![text("a:b"), text("gfx942:xnack+")])),
            ("{ a: , b: }", map(&[("a", text("")), ("b", text(""))])),
            ("[1 2, a]", ScalarNode::Sequence(vec![text("1 2"), text("a")])),
            ("[[], {}]", ScalarNode::Sequence(vec![ScalarNode::Sequence(vec![]), map(&[])])),
        ] {
            assert_eq!(parse(written, 0), Ok(expected), "{written}");
        }
        for wrong in ["[", "{", "{a}", "{a: 1", "{a: 1, a: 2}", "{: 1}", "[1]]", "{a: \"}", "[,]", "{[]: 1}"]
        {
            assert!(parse(wrong, 0).is_err(), "{wrong}");
        }
        assert_eq!(parse(&"[".repeat(100_000), 0), Err(InstructionFault::TooLong));
    }
}
