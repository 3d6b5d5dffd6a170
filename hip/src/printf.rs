//! The text of a `printf` of a kernel: the format and its arguments as words of 64 bits.
//!
//! The first word says where the text goes (bit 0: standard error). After it come the format, padded to whole
//! words, and the arguments: a word each, strings padded like the format. Source: LLVM,
//! `AMDGPUEmitPrintf.cpp`; ROCm clr, `devhcprintf.cpp`, which says what the host makes of it.

use std::ffi::{CString, c_double, c_longlong, c_void};

/// Where text goes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    Output,
    Error,
}

/// A conversion of a format: what stands between `%` and the letter, and the letter.
struct Conversion {
    flags: String,
    /// `hh`, `h`, `l`, ...
    length: String,
    letter: char,
}

/// The words of a message that are still to be read.
struct Words<'a>(&'a [u64]);

impl Words<'_> {
    fn next(&mut self) -> Option<u64> {
        let (&word, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(word)
    }

    /// A string that ends with a zero, and the padding after it.
    fn text(&mut self) -> Vec<u8> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        self.0 = self.0.get(length / 8 + 1..).unwrap_or_default();
        bytes[..length].to_vec()
    }
}

/// The text of a message; nothing if it is none.
pub(crate) fn message(words: &[u64]) -> Option<(Stream, Vec<u8>)> {
    let mut words = Words(words);
    let stream = match words.next()? {
        0 => Stream::Output,
        1 => Stream::Error,
        _ => return None,
    };
    let format = words.text();
    let mut text = Vec::new();
    let mut rest = format.as_slice();
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        text.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((conversion, after)) = conversion(rest, &mut words) else { return Some((stream, text)) };
        rest = after;
        append(&mut text, &conversion, &mut words);
    }
    text.extend_from_slice(rest);
    Some((stream, text))
}

/// Reads a conversion; widths and precisions that are arguments are put in.
fn conversion<'a>(format: &'a [u8], words: &mut Words<'_>) -> Option<(Conversion, &'a [u8])> {
    let end = format.iter().position(|byte| b"diouxXcsfFeEgGaApn%".contains(byte))?;
    let (before, rest) = format.split_at(end);
    let (&letter, rest) = rest.split_first()?;
    let before: Vec<char> = before.iter().map(|&byte| char::from(byte)).collect();
    let length: String = before.iter().filter(|c| "hljztL".contains(**c)).collect();
    let mut flags = String::new();
    for c in before {
        match c {
            '*' => match words.next()? as i32 {
                // A negative precision counts as none; a negative width says left, which the sign says, too.
                precision if precision < 0 && flags.ends_with('.') => drop(flags.pop()),
                number => flags.push_str(&number.to_string()),
            },
            '-' | '+' | ' ' | '#' | '0'..='9' | '.' => flags.push(c),
            _ => {}
        }
    }
    Some((Conversion { flags, length, letter: char::from(letter) }, rest))
}

fn append(text: &mut Vec<u8>, conversion: &Conversion, words: &mut Words<'_>) {
    let Conversion { flags, length, letter } = conversion;
    match letter {
        's' => {
            let Ok(string) = CString::new(words.text()) else { return };
            // SAFETY: `%s` takes a string that ends with a zero.
            print(text, &format!("%{flags}s"), |to, size, format| unsafe {
                libc::snprintf(to, size, format, string.as_ptr())
            });
        }
        '%' => text.push(b'%'),
        'n' => drop(words.next()),
        _ => {
            // Arguments that the kernel has not sent are not made up.
            let Some(word) = words.next() else { return };
            match letter {
                'd' | 'i' => {
                    let value = match length.as_str() {
                        "hh" => (word as i8).into(),
                        "h" => (word as i16).into(),
                        "" => (word as i32).into(),
                        _ => word as c_longlong,
                    };
                    // SAFETY: `%lld` takes a `long long`.
                    print(text, &format!("%{flags}ll{letter}"), |to, size, format| unsafe {
                        libc::snprintf(to, size, format, value)
                    });
                }
                'o' | 'u' | 'x' | 'X' => {
                    let value = match length.as_str() {
                        "hh" => (word as u8).into(),
                        "h" => (word as u16).into(),
                        "" => (word as u32).into(),
                        _ => word,
                    };
                    // SAFETY: `%llu` and its like take an `unsigned long long`.
                    print(text, &format!("%{flags}ll{letter}"), |to, size, format| unsafe {
                        libc::snprintf(to, size, format, value)
                    });
                }
                'c' => {
                    // SAFETY: `%c` takes an `int`.
                    print(text, &format!("%{flags}c"), |to, size, format| unsafe {
                        libc::snprintf(to, size, format, word as libc::c_int)
                    });
                }
                'p' => {
                    // SAFETY: `%p` takes a pointer, which is only printed.
                    print(text, &format!("%{flags}p"), |to, size, format| unsafe {
                        libc::snprintf(to, size, format, word as *const c_void)
                    });
                }
                _ => {
                    let value: c_double = f64::from_bits(word);
                    // SAFETY: `%f` and its like take a `double`.
                    print(text, &format!("%{flags}{letter}"), |to, size, format| unsafe {
                        libc::snprintf(to, size, format, value)
                    });
                }
            }
        }
    }
}

/// Appends what C's formatting makes of one conversion, called with a place, its size and the format.
fn print(
    text: &mut Vec<u8>,
    format: &str,
    call: impl Fn(*mut libc::c_char, usize, *const libc::c_char) -> libc::c_int,
) {
    let Ok(format) = CString::new(format) else { return };
    let bytes = call(std::ptr::null_mut(), 0, format.as_ptr());
    let Ok(bytes) = usize::try_from(bytes) else { return };
    let mut buffer = vec![0u8; bytes + 1];
    call(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr());
    text.extend_from_slice(&buffer[..bytes]);
}

/// Writes text to a stream of C, so that it stands among what the program itself prints.
pub(crate) fn write(stream: Stream, text: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        static stderr: *mut libc::FILE;
    }
    // SAFETY: both are the C library's own streams, which take text from any thread.
    unsafe {
        let file = match stream {
            Stream::Output => stdout,
            Stream::Error => stderr,
        };
        libc::fwrite(text.as_ptr().cast(), 1, text.len(), file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(text: &str) -> Vec<u64> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() / 8 + 1) * 8, 0);
        bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect()
    }

    fn text(format: &str, arguments: &[u64]) -> String {
        let words = [&[0], &padded(format)[..], arguments].concat();
        let (stream, text) = message(&words).expect("it is one");
        assert_eq!(stream, Stream::Output);
        String::from_utf8(text).expect("ASCII")
    }

    #[test]
    fn conversions_are_those_of_c() {
        let minus = -5i64 as u64;
        assert_eq!(text("plain\n", &[]), "plain\n");
        assert_eq!(text("%d %u %x|%5d|%-5d|", &[minus, minus, 255, 7, 7]), "-5 4294967291 ff|    7|7    |");
        assert_eq!(text("%lld %llu %hhd", &[minus, minus, 0x1ff]), "-5 18446744073709551611 -1");
        assert_eq!(
            text("%.3f %g %e", &[2.5f64.to_bits(), 0.5f64.to_bits(), 1f64.to_bits()]),
            "2.500 0.5 1.000000e+00"
        );
        assert_eq!(text("%c%%%*d", &[65, 4, 9]), "A%   9");
        assert_eq!(text("%.*f|%-*d|%5%|", &[-1i64 as u64, 1.5f64.to_bits(), 3, 7]), "1.500000|7  |%|");
        assert_eq!(text("%p", &[0x1234]), "0x1234");
        let string = padded("exactly8");
        assert_eq!(text("<%s> %d", &[&string[..], &[3]].concat()), "<exactly8> 3");
        assert_eq!(text("%d and no more", &[]), " and no more");
    }

    #[test]
    fn other_words_are_no_message() {
        assert_eq!(message(&[]), None);
        assert_eq!(message(&[7, 0]), None);
        let error = message(&[&[1], &padded("x")[..]].concat()).expect("it is one");
        assert_eq!(error, (Stream::Error, b"x".to_vec()));
    }
}
