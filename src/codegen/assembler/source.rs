//! Lines of a text without their comments: `//`, `;`, `/* */`, and `#` at the beginning of a line.

use std::borrow::Cow;

/// Removes comments line by line; a block comment may extend over several.
#[derive(Default)]
pub(super) struct Comments {
    in_block: bool,
}

impl Comments {
    /// The line with spaces in place of comments, so that columns are kept.
    pub(super) fn strip<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        if !self.in_block {
            if line.trim_start().starts_with('#') {
                return Cow::Borrowed("");
            }
            if !line.contains("/*") {
                return Cow::Borrowed(&line[..line_comment(line)]);
            }
        }
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while !rest.is_empty() {
            if self.in_block {
                let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
                self.in_block = !rest[..end].ends_with("*/");
                out.extend(rest[..end].chars().map(|_| ' '));
                rest = &rest[end..];
                continue;
            }
            let comment = line_comment(rest);
            let block = outside_quotes(rest, |rest| rest.starts_with("/*"));
            if block >= comment {
                out.push_str(&rest[..comment]);
                break;
            }
            out.push_str(&rest[..block]);
            out.push_str("  ");
            rest = &rest[block + 2..];
            self.in_block = true;
        }
        Cow::Owned(out)
    }

    /// True inside a block comment that has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.in_block
    }
}

fn line_comment(line: &str) -> usize {
    outside_quotes(line, |rest| rest.starts_with("//") || rest.starts_with(';'))
}

/// Offset of the first place outside quotes for which `is_it` is true; the end if there is none.
fn outside_quotes(line: &str, is_it: impl Fn(&str) -> bool) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if !quoted && is_it(&line[at..]) => return at,
            _ => {}
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_columns_stay() {
        let mut comments = Comments::default();
        for (line, expected) in [
            ("a ; b", "a "),
            ("a // b", "a "),
            ("# a", ""),
            ("a /* b */ c /* d */ // e", "a         c         "),
            (".ascii \"a;b//c\" ; d", ".ascii \"a;b//c\" "),
            (".ascii \"a\\\";b\" ; d", ".ascii \"a\\\";b\" "),
            ("a /* b", "a     "),
            ("; still */ c", "           c"),
            ("; not /* a block", ""),
            ("d", "d"),
        ] {
            assert_eq!(comments.strip(line), expected);
        }
        assert!(!comments.is_open());
    }
}
