//! Values of YAML, and what a scalar's text says: an integer, a Boolean or a string, depending on its form,
//! in quotes or not; `!str` makes it a string (LLVM, MsgPackDocumentYAML.cpp).

use super::error::other;
use crate::codegen::isa::parse::InstructionFault;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ScalarNode {
    Unsigned(u64),
    Signed(i64),
    Boolean(bool),
    Text(String),
    Sequence(Vec<ScalarNode>),
    Mapping(Vec<(String, ScalarNode)>),
}

/// A fault and the number of its line, from 0.
pub(super) type YamlError = (usize, InstructionFault);

/// Metadata nests a kernel's arguments in kernels.
pub(super) const MOST_DEPTH: usize = 16;

/// The type of a scalar without a tag follows from its form.
pub(super) fn scalar(text: &str, number: usize) -> Result<ScalarNode, YamlError> {
    let (text, is_string) = scalar_text(text, number)?;
    Ok(if is_string { ScalarNode::Text(text) } else { implied(text) })
}

/// The value of a scalar without a tag.
pub(super) fn implied(text: String) -> ScalarNode {
    let unsigned = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok().filter(|_| !text.starts_with('+')),
    };
    if let Some(value) = unsigned {
        return ScalarNode::Unsigned(value);
    }
    if let Ok(value) = text.parse::<i64>() {
        return ScalarNode::Signed(value);
    }
    match text.as_str() {
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => {
            ScalarNode::Boolean(true)
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => {
            ScalarNode::Boolean(false)
        }
        _ => ScalarNode::Text(text),
    }
}

/// The text of a scalar without quotes, and whether a tag says that it is a string.
pub(super) fn scalar_text(text: &str, number: usize) -> Result<(String, bool), YamlError> {
    let (is_string, text) = match text.strip_prefix("!str") {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text),
    };
    let unquoted = match text.chars().next() {
        Some('"') => {
            let inside = text[1..].strip_suffix('"').filter(|_| text.len() > 1);
            unescape(inside.ok_or((number, other("a quote is not closed")))?, number)?
        }
        Some('\'') => {
            let inside = text[1..].strip_suffix('\'').filter(|_| text.len() > 1);
            inside.ok_or((number, other("a quote is not closed")))?.replace("''", "'")
        }
        Some('!' | '&' | '*' | '|' | '>' | '{' | '%' | '@' | '`') => {
            return Err((number, other("this kind of YAML is not read")));
        }
        _ => text.to_owned(),
    };
    Ok((unquoted, is_string))
}

fn unescape(text: &str, number: usize) -> Result<String, YamlError> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    let wrong = || (number, other("a string in quotes has an unknown escape"));
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let digits = match chars.next().ok_or_else(wrong)? {
            'n' => {
                out.push('\n');
                continue;
            }
            't' => {
                out.push('\t');
                continue;
            }
            '0' => {
                out.push('\0');
                continue;
            }
            plain @ ('"' | '\\' | '/' | ' ') => {
                out.push(plain);
                continue;
            }
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return Err(wrong()),
        };
        let mut value = 0;
        for _ in 0..digits {
            let digit = chars.next().and_then(|c| c.to_digit(16)).ok_or_else(wrong)?;
            value = value << 4 | digit;
        }
        out.push(char::from_u32(value).ok_or_else(wrong)?);
    }
    Ok(out)
}
