//! Quoted strings with escapes, read and written.

use crate::codegen::isa::LineError;
use crate::codegen::isa::parse::cursor::StatementCursor;

/// Reads a quoted string: `\n`, `\t`, `\r`, `\b`, `\f`, `\"`, `\\`, up to three octal digits, `\x` and
/// hexadecimal digits.
pub(super) fn parse(cursor: &mut StatementCursor) -> Result<Vec<u8>, LineError> {
    let start = *cursor;
    let bytes = cursor.rest().as_bytes();
    if bytes.first() != Some(&b'"') {
        return Err(cursor.expected("a string in quotes"));
    }
    let mut out = Vec::new();
    let mut at = 1;
    let unfinished = || start.expected("a string with a closing quote");
    loop {
        let byte = *bytes.get(at).ok_or_else(unfinished)?;
        at += 1;
        match byte {
            b'"' => break,
            b'\\' => {}
            _ => {
                out.push(byte);
                continue;
            }
        }
        let escape = *bytes.get(at).ok_or_else(unfinished)?;
        at += 1;
        out.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'"' | b'\\' => escape,
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                let end = at + 2;
                while let Some(digit @ b'0'..=b'7') = bytes.get(at).filter(|_| at < end) {
                    value = value * 8 + u32::from(digit - b'0');
                    at += 1;
                }
                value as u8
            }
            b'x' | b'X' => {
                let mut value = 0u32;
                let from = at;
                while let Some(digit) = bytes.get(at).and_then(|b| char::from(*b).to_digit(16)) {
                    value = (value << 4 | digit) & 0xff;
                    at += 1;
                }
                if at == from {
                    return Err(start.expected("a string whose `\\x` has digits"));
                }
                value as u8
            }
            _ => return Err(start.expected("a string with known escapes")),
        });
    }
    cursor.advance(at);
    Ok(out)
}

/// Writes a string that reads back as these bytes.
pub(super) fn write(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_read_back() {
        let all: Vec<u8> = (0..=255).chain(*b"07").collect();
        let mut text = String::new();
        write(&mut text, &all);
        assert_eq!(parse(&mut StatementCursor::new(&text)), Ok(all));
        assert_eq!(parse(&mut StatementCursor::new(r#""\x41\101\1z\0""#)), Ok(b"AA\x01z\0".to_vec()));
        for text in ["", "\"", "\"a", "\"\\", "\"\\q\"", "\"\\xg\""] {
            assert!(parse(&mut StatementCursor::new(text)).is_err(), "{text}");
        }
    }
}
