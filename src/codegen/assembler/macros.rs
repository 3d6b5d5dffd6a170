//! Macros and repetitions: their parameters, the arguments of a call, and the lines that come of it.
//!
//! The rules are those of LLVM's AsmParser (`parseDirectiveMacro`, `parseMacroArguments`, `expandMacro`):
//! arguments are parted by commas or, where no operator stands on either side, by spaces; what is not known
//! after a backslash stays as it is.

use std::rc::Rc;

use super::error::other;
use super::input::MOST_EXPANDED;
use crate::codegen::isa::LineError;
use crate::codegen::isa::parse::InstructionFault;
use crate::codegen::isa::parse::cursor::StatementCursor;

/// A macro.
#[derive(Clone, Debug)]
pub(super) struct Macro {
    pub name: Rc<str>,
    pub parameters: Vec<MacroParameter>,
    pub body: Rc<str>,
}

/// A parameter of a macro.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MacroParameter {
    pub name: String,
    pub kind: ParameterKind,
    /// Its value where a call gives none.
    pub default: String,
}

/// What a call has to give for a parameter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ParameterKind {
    Optional,
    /// `:req`
    Required,
    /// `:vararg`: all the rest of the line.
    Rest,
}

/// How macros are written.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum MacroSyntax {
    #[default]
    Usual,
    /// `.altmacro`: parameters need no backslash, `%` before an argument stands for its value, and angle
    /// brackets are quotes.
    Alternate,
}

/// Reads the number after a `%`.
pub(super) type ReadNumber<'a> = dyn Fn(&mut StatementCursor) -> Result<i64, LineError> + 'a;

/// Whether `\@` is replaced, by the number of macros that were expanded before.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Counting {
    By(usize),
    Not,
}

/// Reads `name a, b:req, c=1` after `.macro`.
pub(super) fn header(cursor: &mut StatementCursor) -> Result<(Rc<str>, Vec<MacroParameter>), LineError> {
    let name = cursor.take_name().ok_or_else(|| cursor.expected("the name of a macro"))?;
    cursor.eat(",");
    let mut parameters: Vec<MacroParameter> = Vec::new();
    while !cursor.is_at_end() {
        let start = *cursor;
        if parameters.last().is_some_and(|last| last.kind == ParameterKind::Rest) {
            return Err(start.fault(other("a `:vararg` parameter is the last one")));
        }
        let name = cursor.take_name().ok_or_else(|| cursor.expected("the name of a parameter"))?.to_owned();
        if parameters.iter().any(|known| known.name == name) {
            return Err(start.fault(InstructionFault::Twice { name }));
        }
        let mut kind = ParameterKind::Optional;
        if cursor.eat(":") {
            kind = match cursor.name() {
                Some("req") => ParameterKind::Required,
                Some("vararg") => ParameterKind::Rest,
                _ => return Err(cursor.expected("`req` or `vararg`")),
            };
            cursor.take_name();
        }
        let default = if cursor.eat("=") { argument(cursor, None)? } else { String::new() };
        parameters.push(MacroParameter { name, kind, default });
        cursor.eat(",");
    }
    Ok((name.into(), parameters))
}

impl Macro {
    /// The arguments of a call, one for each parameter.
    pub(super) fn arguments(
        &self,
        cursor: &mut StatementCursor,
        alternate: Option<&ReadNumber>,
    ) -> Result<Vec<String>, LineError> {
        let mut values = vec![String::new(); self.parameters.len()];
        let mut are_named = false;
        for at in 0..self.parameters.len() {
            let start = *cursor;
            let name = named(cursor);
            are_named |= name.is_some();
            let at = match name {
                None if are_named => {
                    return Err(start.fault(other("arguments with names come after the others")));
                }
                None => at,
                Some(name) => {
                    let found = self.parameters.iter().position(|parameter| parameter.name == name);
                    found.ok_or_else(|| {
                        start.fault(other(format!("macro `{}` has no parameter `{name}`", self.name)))
                    })?
                }
            };
            let value = match self.parameters[at].kind {
                ParameterKind::Rest => {
                    let rest = cursor.rest();
                    cursor.advance(rest.len());
                    rest.trim_end().to_owned()
                }
                _ => argument(cursor, alternate)?,
            };
            if !value.is_empty() {
                values[at] = value;
            }
            if cursor.is_at_end() {
                break;
            }
            cursor.eat(",");
        }
        if !cursor.is_at_end() {
            let count = self.parameters.len();
            return Err(cursor.fault(other(format!("macro `{}` has {count} parameters", self.name))));
        }
        for (value, parameter) in values.iter_mut().zip(&self.parameters) {
            if !value.is_empty() {
                continue;
            }
            if parameter.kind == ParameterKind::Required {
                let name = &parameter.name;
                return Err(cursor.fault(other(format!("macro `{}` needs a value for `{name}`", self.name))));
            }
            value.clone_from(&parameter.default);
        }
        Ok(values)
    }
}

/// `name =` before a value.
fn named<'a>(cursor: &mut StatementCursor<'a>) -> Option<&'a str> {
    let mut after = *cursor;
    let name = after.take_name()?;
    if !after.rest().starts_with('=') || after.rest().starts_with("==") {
        return None;
    }
    after.advance(1);
    *cursor = after;
    Some(name)
}

/// All values in the rest of a line.
pub(super) fn values(
    cursor: &mut StatementCursor,
    alternate: Option<&ReadNumber>,
) -> Result<Vec<String>, LineError> {
    let mut values = Vec::new();
    while !cursor.is_at_end() {
        let value = argument(cursor, alternate)?;
        if !value.is_empty() {
            values.push(value);
        }
        cursor.eat(",");
    }
    Ok(values)
}

/// Signs that join what stands on both sides of them, the longer ones first.
const OPERATORS: [&str; 21] = [
    "==", "||", "&&", "!=", "<=", "<<", "<>", ">=", ">>", "+", "-", "~", "/", "*", ".", "|", "^", "&", "!",
    "<", ">",
];

/// The operator that comes next; a percent sign is none.
fn operator(cursor: &StatementCursor) -> Option<&'static str> {
    if cursor.name().is_some_and(|name| name != ".") {
        return None;
    }
    OPERATORS.into_iter().find(|text| cursor.rest().starts_with(text))
}

/// One value; quotes around a string are not part of it. `alternate` is there while macros are written in
/// the other way.
fn argument(cursor: &mut StatementCursor, alternate: Option<&ReadNumber>) -> Result<String, LineError> {
    let start = *cursor;
    if let Some(number) = alternate {
        if cursor.eat("%") {
            return Ok(number(cursor)?.to_string());
        }
        if let Some((value, length)) = in_angle_brackets(cursor.rest()) {
            cursor.advance(length);
            return Ok(value);
        }
    }
    let (mut value, mut depth) = (String::new(), 0u32);
    // The cursor has skipped the spaces after each piece, which are seen by where it stands.
    let mut end = cursor.at();
    loop {
        let has_space = cursor.at() > end;
        if cursor.is_at_end() {
            break;
        }
        if cursor.peek() == Some(b'=') && !cursor.rest().starts_with("==") {
            return Err(cursor.expected("a value"));
        }
        if depth == 0 {
            if cursor.peek() == Some(b',') {
                break;
            }
            if let Some(text) = operator(cursor) {
                value.push_str(text);
                cursor.advance(text.len());
                end = cursor.at();
                continue;
            }
            if has_space {
                break;
            }
        } else if has_space {
            value.push(' ');
        }
        let piece = piece(cursor).ok_or_else(|| cursor.expected("a string with a closing quote"))?;
        match piece {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        value.push_str(piece.strip_prefix('"').and_then(|piece| piece.strip_suffix('"')).unwrap_or(piece));
        end = cursor.at() + piece.len();
        cursor.advance(piece.len());
    }
    if depth > 0 {
        return Err(start.fault(other("a parenthesis is not closed")));
    }
    Ok(value)
}

/// The text between `<` and `>`, where an exclamation mark takes the meaning of the next character away,
/// and the length of it all.
fn in_angle_brackets(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.strip_prefix('<')?.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '>' => return Some((value, at + 2)),
            '!' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// The next word, string or sign; nothing if a string has no end.
fn piece<'a>(cursor: &StatementCursor<'a>) -> Option<&'a str> {
    let rest = cursor.rest();
    if rest.starts_with('"') {
        let mut is_escaped = false;
        let end = rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        return end.map(|(at, _)| &rest[..=at]);
    }
    if let Some(operator) = OPERATORS.iter().find(|text| text.len() > 1 && rest.starts_with(**text)) {
        return Some(operator);
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '@' | '\\');
    let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    let length = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
    Some(&rest[..length])
}

/// The body with values in place of parameters, appended.
pub(super) fn expand<'a>(
    out: &mut String,
    body: &str,
    parameters: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    (syntax, counting): (MacroSyntax, Counting),
) -> Result<(), InstructionFault> {
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        words(out, &rest[..at], parameters.clone(), syntax);
        let after = &rest[at + 1..];
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.')));
        let name = &after[..end.unwrap_or(after.len())];
        let value = parameters.clone().find(|(known, _)| *known == name).map(|(_, value)| value);
        rest = match (value, counting) {
            (Some(value), _) if !name.is_empty() => {
                out.push_str(value);
                joined(&after[name.len()..], syntax)
            }
            (_, Counting::By(count)) if after.starts_with('@') => {
                out.push_str(&count.to_string());
                &after[1..]
            }
            _ if after.starts_with("()") => &after[2..],
            _ => {
                out.push('\\');
                out.push_str(name);
                &after[name.len()..]
            }
        };
        limited(out)?;
    }
    words(out, rest, parameters, syntax);
    limited(out)
}

fn limited(out: &str) -> Result<(), InstructionFault> {
    match out.len() > MOST_EXPANDED {
        true => Err(other(format!("an expansion has more than {} MiB", MOST_EXPANDED >> 20))),
        false => Ok(()),
    }
}

/// The rest of a line after a parameter: in the alternate syntax an ampersand parts it from the next word.
fn joined(rest: &str, syntax: MacroSyntax) -> &str {
    match syntax {
        MacroSyntax::Usual => rest,
        MacroSyntax::Alternate => rest.strip_prefix('&').unwrap_or(rest),
    }
}

/// Text without backslashes, appended: the alternate syntax replaces words that are parameters.
fn words<'a>(
    out: &mut String,
    text: &str,
    parameters: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    syntax: MacroSyntax,
) {
    if syntax == MacroSyntax::Usual {
        return out.push_str(text);
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let mut rest = text;
    while let Some(at) = rest.find(is_word) {
        out.push_str(&rest[..at]);
        let after = &rest[at..];
        let (word, others) = after.split_at(after.find(|c| !is_word(c)).unwrap_or(after.len()));
        rest = match parameters.clone().find(|(known, _)| *known == word) {
            Some((_, value)) if out.len() <= MOST_EXPANDED => {
                out.push_str(value);
                joined(others, syntax)
            }
            // The caller says that it is too much.
            Some(_) => return,
            None => {
                out.push_str(word);
                others
            }
        };
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values_of(text: &str) -> Vec<String> {
        values(&mut StatementCursor::new(text), None).unwrap()
    }

    #[test]
    fn arguments_are_parted_by_commas_and_spaces() {
        for (text, expected) in [
            ("a, b c", &["a", "b", "c"][..]),
            ("a + b c", &["a+b", "c"]),
            ("(a + b) -c", &["(a + b)-c"]),
            ("v[0:3] s[1 + 2], \"x y\"", &["v[0:3]", "s[1+2]", "x y"]),
            ("1.5 .x .", &["1.5", ".x."]),
            ("a == b, -1", &["a==b", "-1"]),
            ("(a == b) (c << 1)", &["(a == b)", "(c << 1)"]),
        ] {
            assert_eq!(values_of(text), expected, "{text}");
        }
        assert!(values(&mut StatementCursor::new("(a"), None).is_err());
        assert!(values(&mut StatementCursor::new("\"a"), None).is_err());
    }

    #[test]
    fn parameters_are_replaced_and_the_rest_stays() {
        let mut out = String::new();
        let pairs = [("a", "1"), ("ab", "2")];
        expand(
            &mut out,
            "\\a \\ab \\abc \\a\\()b x\\@ \\",
            pairs.into_iter(),
            (MacroSyntax::Usual, Counting::By(7)),
        )
        .unwrap();
        assert_eq!(out, "1 2 \\abc 1b x7 \\");
        out.clear();
        expand(&mut out, "\\@", pairs.into_iter(), (MacroSyntax::Usual, Counting::Not)).unwrap();
        assert_eq!(out, "\\@");
    }

    #[test]
    fn calls_fill_in_defaults_and_names() {
        let (name, parameters) = header(&mut StatementCursor::new("m a:req b=2, c:vararg")).unwrap();
        let it = Macro { name, parameters, body: "".into() };
        let call =
            |text: &str| it.arguments(&mut StatementCursor::new(text), None).map_err(|e| e.fault.to_string());
        assert_eq!(call("1"), Ok(vec!["1".into(), "2".into(), String::new()]));
        assert_eq!(call("1 3 x, y z"), Ok(vec!["1".into(), "3".into(), "x, y z".into()]));
        assert_eq!(call("b=5, a=4"), Ok(vec!["4".into(), "5".into(), String::new()]));
        assert_eq!(call("b=5"), Err("macro `m` needs a value for `a`".into()));
        assert_eq!(call("d=5"), Err("macro `m` has no parameter `d`".into()));
    }
}
