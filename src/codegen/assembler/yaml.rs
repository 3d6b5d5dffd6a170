//! The part of YAML that metadata is written in: block mappings and sequences, flow ones (`flow`), quoted and
//! plain scalars, the tag `!str`.
//!
//! A scalar is an integer, a Boolean or a string, depending on its form, in quotes or not; `!str` makes it a
//! string (LLVM, MsgPackDocumentYAML.cpp).

use super::error::other;
use super::flow::{self, Brackets};
use super::scalar::{MOST_DEPTH, ScalarNode, YamlError, implied, scalar, scalar_text};
use crate::codegen::isa::parse::InstructionFault;

/// A line with something in it.
struct YamlLine<'a> {
    /// Its number, from 0.
    number: usize,
    indent: usize,
    text: &'a str,
}

/// Reads a document.
pub(super) fn parse(lines: &[String]) -> Result<ScalarNode, YamlError> {
    let mut all = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let text = without_comment(line).trim_end();
        let content = text.trim_start_matches(' ');
        match content {
            "" | "---" => continue,
            "..." => break,
            _ => all.push(YamlLine { number, indent: text.len() - content.len(), text: content }),
        }
    }
    let mut reader = YamlReader { lines: &all, at: 0 };
    let Some(first) = all.first() else { return Err((0, other("the metadata is empty"))) };
    let node = reader.block(first.indent, 0)?;
    match reader.peek() {
        None => Ok(node),
        Some(line) => Err((line.number, other("a key at this depth belongs to nothing"))),
    }
}

/// A `#` after a space begins a comment, outside quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some(c),
            (None, '#') if before == ' ' => return &line[..at],
            _ => {}
        }
        before = c;
    }
    line
}

struct YamlReader<'a> {
    lines: &'a [YamlLine<'a>],
    at: usize,
}

impl<'a> YamlReader<'a> {
    fn peek(&self) -> Option<&'a YamlLine<'a>> {
        self.lines.get(self.at)
    }

    /// A sequence or mapping whose entries begin at this column.
    fn block(&mut self, indent: usize, depth: usize) -> Result<ScalarNode, YamlError> {
        let Some(line) = self.peek() else { return Ok(ScalarNode::Text(String::new())) };
        if depth > MOST_DEPTH {
            return Err((line.number, InstructionFault::TooLong));
        }
        match (is_dash(line.text), flow::begins(line.text)) {
            (true, _) => self.sequence(indent, depth),
            (_, true) => {
                self.at += 1;
                self.value(line.text, line.number, depth)
            }
            _ => self.mapping(indent, depth, None),
        }
    }

    /// The value after a key or dash. A value in brackets goes on for more lines until all brackets are
    /// closed.
    fn value(&mut self, text: &'a str, number: usize, depth: usize) -> Result<ScalarNode, YamlError> {
        if !flow::begins(text) {
            return scalar(text, number);
        }
        let mut brackets = Brackets::default();
        let mut whole = text.to_owned();
        brackets.add(text);
        while brackets.are_open()
            && let Some(line) = self.peek()
        {
            self.at += 1;
            whole.push(' ');
            whole.push_str(line.text);
            brackets.add(" ");
            brackets.add(line.text);
        }
        flow::parse(&whole, depth).map_err(|fault| (number, fault))
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Result<ScalarNode, YamlError> {
        let mut all = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.indent == indent && is_dash(line.text)) {
            let rest = line.text[1..].trim_start_matches(' ');
            let column = indent + line.text.len() - rest.len();
            self.at += 1;
            if rest.is_empty() {
                let inner = self.peek().filter(|inner| inner.indent > indent).map(|inner| inner.indent);
                all.push(match inner {
                    Some(inner) => self.block(inner, depth + 1)?,
                    None => ScalarNode::Text(String::new()),
                });
            } else if is_dash(rest) {
                return Err((line.number, other("a sequence directly in a sequence is not read")));
            } else if !flow::begins(rest) && split_key(rest).is_some() {
                all.push(self.mapping(column, depth + 1, Some((line.number, rest)))?);
            } else {
                all.push(self.value(rest, line.number, depth + 1)?);
            }
        }
        Ok(ScalarNode::Sequence(all))
    }

    /// A mapping; its first entry may stand after a dash.
    fn mapping(
        &mut self,
        indent: usize,
        depth: usize,
        first: Option<(usize, &'a str)>,
    ) -> Result<ScalarNode, YamlError> {
        let mut all: Vec<(String, ScalarNode)> = Vec::new();
        let mut next = first;
        loop {
            let (number, text) = match next.take() {
                Some(first) => first,
                None => match self.peek().filter(|line| line.indent == indent && !is_dash(line.text)) {
                    Some(line) => {
                        self.at += 1;
                        (line.number, line.text)
                    }
                    None => break,
                },
            };
            if depth > MOST_DEPTH {
                return Err((number, InstructionFault::TooLong));
            }
            let (key, rest) = split_key(text).ok_or((number, other("expected `key: value`")))?;
            let key = match scalar_text(key, number)? {
                (key, _) if key.is_empty() => return Err((number, other("a key is missing"))),
                (key, _) => key,
            };
            if all.iter().any(|(known, _)| *known == key) {
                return Err((number, InstructionFault::Twice { name: key }));
            }
            let value = if rest.is_empty() {
                // Entries of a sequence may be at the column of the key itself.
                let inner = self
                    .peek()
                    .filter(|inner| inner.indent > indent || inner.indent == indent && is_dash(inner.text));
                match inner.map(|inner| inner.indent) {
                    Some(inner) => self.block(inner, depth + 1)?,
                    None => ScalarNode::Text(String::new()),
                }
            } else {
                self.value(rest, number, depth + 1)?
            };
            all.push((key, value));
        }
        Ok(ScalarNode::Mapping(all))
    }
}

fn is_dash(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// `key: value` at the colon after the key.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let mut before = ' ';
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        let begins = before == ' ';
        before = c;
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') if begins => quote = Some(c),
            (None, ':') if text[at + 1..].is_empty() || text[at + 1..].starts_with(' ') => {
                return Some((text[..at].trim_end(), text[at + 1..].trim_start()));
            }
            _ => {}
        }
    }
    None
}

/// Writes a document with keys at the given column.
pub(super) fn write(out: &mut String, node: &ScalarNode) {
    out.push_str("---");
    write_node(out, node, 0, false);
    out.push_str("\n...\n");
}

fn write_node(out: &mut String, node: &ScalarNode, indent: usize, after_dash: bool) {
    let pad = " ".repeat(indent);
    match node {
        ScalarNode::Mapping(entries) if !entries.is_empty() => {
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 || !after_dash {
                    out.push('\n');
                    out.push_str(&pad);
                }
                write_text(out, key);
                out.push(':');
                write_node(out, value, indent + 2, false);
            }
        }
        ScalarNode::Sequence(elements) if !elements.is_empty() => {
            for element in elements {
                out.push('\n');
                out.push_str(&pad);
                out.push_str("- ");
                write_node(out, element, indent + 2, true);
            }
        }
        scalar => {
            if !after_dash {
                out.push(' ');
            }
            match scalar {
                ScalarNode::Unsigned(value) => out.push_str(&value.to_string()),
                ScalarNode::Signed(value) => out.push_str(&value.to_string()),
                ScalarNode::Boolean(value) => out.push_str(&value.to_string()),
                ScalarNode::Text(text) => write_text(out, text),
                ScalarNode::Sequence(_) => out.push_str("[]"),
                ScalarNode::Mapping(_) => out.push_str("{}"),
            }
        }
    }
}

/// A string, without quotes if it cannot be mistaken for something else.
fn write_text(out: &mut String, text: &str) {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '.')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.$-".contains(c))
        && implied(text.to_owned()) == ScalarNode::Text(text.to_owned())
        && text != "..."
        && !["null", "Null", "NULL", ".nan", ".inf", "nan", "inf", "infinity"]
            .contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        out.push_str(text);
        return;
    }
    out.push_str("!str \"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\x1f' | '\x7f' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<ScalarNode, YamlError> {
        parse(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_llvm_prints_is_read() {
        let text = "---\n\
            amdhsa.kernels:\n\
            \x20 - .args:\n\
            \x20     - .name:           'it''s'\n\
            \x20       .offset:         0x10   # a comment\n\
            \x20   .uses_dynamic_stack: false\n\
            \x20   .language_version:\n\
            \x20     - 2\n\
            \x20     - 0\n\
            \x20   .name:           !str \"12\"\n\
            \x20   .symbol: \"a\\x41: #b\"\n\
            amdhsa.version: [ 1, -2 ]\n\
            ...\n\
            ignored";
        let text_of = |text: &str| ScalarNode::Text(text.to_owned());
        let map = |entries: Vec<(&str, ScalarNode)>| {
            ScalarNode::Mapping(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        };
        let argument = map(vec![(".name", text_of("it's")), (".offset", ScalarNode::Unsigned(16))]);
        let kernel = map(vec![
            (".args", ScalarNode::Sequence(vec![argument])),
            (".uses_dynamic_stack", ScalarNode::Boolean(false)),
            (
                ".language_version",
                ScalarNode::Sequence(vec![ScalarNode::Unsigned(2), ScalarNode::Unsigned(0)]),
            ),
            (".name", text_of("12")),
            (".symbol", text_of("aA: #b")),
        ]);
        let expected = map(vec![
            ("amdhsa.kernels", ScalarNode::Sequence(vec![kernel])),
            ("amdhsa.version", ScalarNode::Sequence(vec![ScalarNode::Unsigned(1), ScalarNode::Signed(-2)])),
        ]);
        assert_eq!(read(text), Ok(expected));
    }

    fn nodes() -> impl Strategy<Value = ScalarNode> {
        let text =
            prop_oneof![any::<String>(), "[a-z.\"'#:!\\-\\\\ 0-9]{0,6}", "(true|n|0x1|\\.\\.\\.|---|null)"];
        let leaf = prop_oneof![
            any::<u64>().prop_map(ScalarNode::Unsigned),
            (i64::MIN..0).prop_map(ScalarNode::Signed),
            any::<bool>().prop_map(ScalarNode::Boolean),
            text.prop_map(ScalarNode::Text),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            // Metadata has no sequence directly in another.
            let entries = prop::collection::btree_map("[^\\p{C}]{1,6}", inner, 1..4);
            let mapping = entries.prop_map(|entries| ScalarNode::Mapping(entries.into_iter().collect()));
            let elements = prop::collection::vec(mapping.clone(), 0..4).prop_map(ScalarNode::Sequence);
            prop_oneof![mapping, elements]
        })
    }

    /// The same in brackets; `space` stands where spaces are optional.
    fn write_flow(out: &mut String, node: &ScalarNode, space: &str) {
        match node {
            ScalarNode::Mapping(entries) => {
                out.push_str(&format!("{{{space}"));
                for (key, value) in entries {
                    write_text(out, key);
                    out.push_str(": ");
                    write_flow(out, value, space);
                    out.push_str(&format!("{space},{space}"));
                }
                out.push('}');
            }
            ScalarNode::Sequence(elements) => {
                out.push_str(&format!("[{space}"));
                for (index, element) in elements.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    write_flow(out, element, space);
                }
                out.push_str(&format!("{space}]"));
            }
            scalar => write_node(out, scalar, 0, true),
        }
    }

    proptest! {
        #[test]
        fn what_is_in_brackets_reads_back(
            root in prop::collection::btree_map("[^\\p{C}]{1,6}", nodes(), 1..4),
            space in "( {0,2}|\n )",
        ) {
            let root = ScalarNode::Mapping(root.into_iter().collect());
            let mut text = String::new();
            write_flow(&mut text, &root, &space);
            prop_assert_eq!(read(&text), Ok(root.clone()), "{}", text);
            let (after_key, after_dash) = (format!("key: {text}"), format!("- {text}"));
            prop_assert_eq!(read(&after_key), Ok(ScalarNode::Mapping(vec![("key".to_owned(), root.clone())])));
            prop_assert_eq!(read(&after_dash), Ok(ScalarNode::Sequence(vec![root])));
        }

        #[test]
        fn what_is_written_reads_back(root in prop::collection::btree_map("[^\\p{C}]{1,6}", nodes(), 1..4)) {
            let root = ScalarNode::Mapping(root.into_iter().collect());
            let mut text = String::new();
            write(&mut text, &root);
            prop_assert_eq!(read(&text), Ok(root), "{}", text);
        }

        #[test]
        fn any_lines_are_a_document_or_not(text in "[-a:\"'#!\\[\\]{}, \\\\\n]{0,60}") {
            let _ = read(&text);
        }
    }
}
