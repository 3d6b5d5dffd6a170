//! MessagePack, the encoding of the metadata note: writing values in their shortest form, as LLVM does, and a
//! reader for any bytes that are found in an object. The forms are those of the crate `rmp`.
//!
//! The reader borrows from its input, allocates in proportion to it (every element costs at least one byte)
//! and gives up on nesting deeper than any metadata has, so that no input can exhaust memory or stack.

use rmp::{Marker, encode};

/// Metadata nests root map, kernel array, kernel map, argument array, argument map.
const MAX_DEPTH: u32 = 16;

/// A MessagePack value.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::codegen) enum MessagePackValue<'a> {
    Integer(i128),
    Text(&'a str),
    Array(Vec<MessagePackValue<'a>>),
    Map(Vec<(MessagePackValue<'a>, MessagePackValue<'a>)>),
    Boolean(bool),
    /// Nil, a float, raw bytes or an extension, whose contents are not needed.
    Other,
}

/// The fault of the bytes, and its offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::codegen) struct Malformed {
    pub offset: usize,
    pub what: &'static str,
}

impl<'a> MessagePackValue<'a> {
    /// The value at the start of the bytes.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<MessagePackValue<'a>, Malformed> {
        MessagePackReader { bytes, at: 0 }.value(0)
    }

    /// The value of a map's key.
    pub(crate) fn get(&self, key: &str) -> Option<&MessagePackValue<'a>> {
        let MessagePackValue::Map(entries) = self else { return None };
        entries.iter().find(|(k, _)| *k == MessagePackValue::Text(key)).map(|(_, value)| value)
    }
}

struct MessagePackReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> MessagePackReader<'a> {
    fn fail<T>(&self, what: &'static str) -> Result<T, Malformed> {
        Err(Malformed { offset: self.at, what })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let Some(taken) = self.bytes[self.at..].get(..count) else { return self.fail("value is cut off") };
        self.at += count;
        Ok(taken)
    }

    fn big_endian<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    /// A length of `width` bytes.
    fn length(&mut self, width: usize) -> Result<usize, Malformed> {
        Ok(self.take(width)?.iter().fold(0, |length, byte| (length << 8) | usize::from(*byte)))
    }

    fn text(&mut self, length: usize) -> Result<MessagePackValue<'a>, Malformed> {
        let offset = self.at;
        let malformed = |_| Malformed { offset, what: "string is not UTF-8" };
        std::str::from_utf8(self.take(length)?).map(MessagePackValue::Text).map_err(malformed)
    }

    fn skip(&mut self, length: usize) -> Result<MessagePackValue<'a>, Malformed> {
        self.take(length)?;
        Ok(MessagePackValue::Other)
    }

    fn array(&mut self, length: usize, depth: u32) -> Result<MessagePackValue<'a>, Malformed> {
        let mut elements = Vec::new();
        for _ in 0..length {
            elements.push(self.value(depth + 1)?);
        }
        Ok(MessagePackValue::Array(elements))
    }

    fn map(&mut self, length: usize, depth: u32) -> Result<MessagePackValue<'a>, Malformed> {
        let mut entries = Vec::new();
        for _ in 0..length {
            entries.push((self.value(depth + 1)?, self.value(depth + 1)?));
        }
        Ok(MessagePackValue::Map(entries))
    }

    fn value(&mut self, depth: u32) -> Result<MessagePackValue<'a>, Malformed> {
        if depth > MAX_DEPTH {
            return self.fail("nested too deeply");
        }
        let marker = Marker::from_u8(self.take(1)?[0]);
        Ok(match marker {
            Marker::FixPos(value) => MessagePackValue::Integer(value.into()),
            Marker::FixNeg(value) => MessagePackValue::Integer(value.into()),
            Marker::U8 => MessagePackValue::Integer(u8::from_be_bytes(self.big_endian()?).into()),
            Marker::U16 => MessagePackValue::Integer(u16::from_be_bytes(self.big_endian()?).into()),
            Marker::U32 => MessagePackValue::Integer(u32::from_be_bytes(self.big_endian()?).into()),
            Marker::U64 => MessagePackValue::Integer(u64::from_be_bytes(self.big_endian()?).into()),
            Marker::I8 => MessagePackValue::Integer(i8::from_be_bytes(self.big_endian()?).into()),
            Marker::I16 => MessagePackValue::Integer(i16::from_be_bytes(self.big_endian()?).into()),
            Marker::I32 => MessagePackValue::Integer(i32::from_be_bytes(self.big_endian()?).into()),
            Marker::I64 => MessagePackValue::Integer(i64::from_be_bytes(self.big_endian()?).into()),
            Marker::FixStr(length) => self.text(length.into())?,
            Marker::Str8 => self.length(1).and_then(|n| self.text(n))?,
            Marker::Str16 => self.length(2).and_then(|n| self.text(n))?,
            Marker::Str32 => self.length(4).and_then(|n| self.text(n))?,
            Marker::FixArray(length) => self.array(length.into(), depth)?,
            Marker::Array16 => self.length(2).and_then(|n| self.array(n, depth))?,
            Marker::Array32 => self.length(4).and_then(|n| self.array(n, depth))?,
            Marker::FixMap(length) => self.map(length.into(), depth)?,
            Marker::Map16 => self.length(2).and_then(|n| self.map(n, depth))?,
            Marker::Map32 => self.length(4).and_then(|n| self.map(n, depth))?,
            Marker::False => MessagePackValue::Boolean(false),
            Marker::True => MessagePackValue::Boolean(true),
            Marker::Null => MessagePackValue::Other,
            Marker::F32 => self.skip(4)?,
            Marker::F64 => self.skip(8)?,
            Marker::Bin8 => self.length(1).and_then(|n| self.skip(n))?,
            Marker::Bin16 => self.length(2).and_then(|n| self.skip(n))?,
            Marker::Bin32 => self.length(4).and_then(|n| self.skip(n))?,
            // Extensions have a type byte before their data.
            Marker::Ext8 => self.length(1).and_then(|n| self.skip(n + 1))?,
            Marker::Ext16 => self.length(2).and_then(|n| self.skip(n + 1))?,
            Marker::Ext32 => self.length(4).and_then(|n| self.skip(n.saturating_add(1)))?,
            Marker::FixExt1 => self.skip(2)?,
            Marker::FixExt2 => self.skip(3)?,
            Marker::FixExt4 => self.skip(5)?,
            Marker::FixExt8 => self.skip(9)?,
            Marker::FixExt16 => self.skip(17)?,
            Marker::Reserved => return self.fail("byte 0xc1 starts no value"),
        })
    }
}

/// Appends an unsigned integer.
pub(in crate::codegen) fn write_unsigned(out: &mut Vec<u8>, value: u64) {
    written(encode::write_uint(out, value));
}

/// Appends a signed integer; a non-negative one is written as an unsigned one.
pub(in crate::codegen) fn write_signed(out: &mut Vec<u8>, value: i64) {
    written(encode::write_sint(out, value));
}

/// Appends a truth value.
pub(in crate::codegen) fn write_boolean(out: &mut Vec<u8>, value: bool) {
    written(encode::write_bool(out, value));
}

/// Appends a string.
pub(in crate::codegen) fn write_text(out: &mut Vec<u8>, text: &str) {
    written(encode::write_str(out, text));
}

/// Appends the beginning of an array; its elements follow. Metadata of 4 GiB does not fit into an object of
/// ours.
pub(in crate::codegen) fn write_array(out: &mut Vec<u8>, length: usize) {
    written(encode::write_array_len(out, length as u32));
}

/// Appends the beginning of a map; keys and values follow alternately.
pub(in crate::codegen) fn write_map(out: &mut Vec<u8>, length: usize) {
    written(encode::write_map_len(out, length as u32));
}

/// A vector takes everything, so there is no fault to look at.
fn written<T, E>(_: Result<T, E>) {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_of_value_is_read_to_its_end() {
        let mut bytes = vec![0xdc, 0, 14];
        for value in [
            &[0x7f][..],
            &[0xff],
            &[0xcd, 1, 2],
            &[0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
            &[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xd9, 1, b'a'],
            &[0xdb, 0, 0, 0, 1, b'b'],
            &[0x81, 0xa1, b'k', 0x05],
            &[0xde, 0, 0],
            &[0xca, 0, 0, 0, 0],
            &[0xc4, 2, 9, 9],
            &[0xd5, 7, 1, 2],
            &[0xc7, 1, 7, 1],
            &[0xc3],
        ] {
            bytes.extend_from_slice(value);
        }
        let MessagePackValue::Array(values) = MessagePackValue::parse(&bytes).unwrap() else {
            panic!("not an array")
        };
        let integer = MessagePackValue::Integer;
        assert_eq!(
            values[..5],
            [integer(127), integer(-1), integer(258), integer(-2), integer(u64::MAX.into())]
        );
        assert_eq!(values[5..7], [MessagePackValue::Text("a"), MessagePackValue::Text("b")]);
        assert_eq!(values[7].get("k"), Some(&integer(5)));
        assert_eq!(values[8], MessagePackValue::Map(vec![]));
        assert!(values[9..13].iter().all(|value| *value == MessagePackValue::Other));
        assert_eq!(values[13], MessagePackValue::Boolean(true));
    }

    #[test]
    fn malformed_bytes_are_located() {
        let fault = |bytes: &[u8]| MessagePackValue::parse(bytes).unwrap_err();
        assert_eq!(fault(&[]), Malformed { offset: 0, what: "value is cut off" });
        assert_eq!(
            fault(&[0xdd, 0xff, 0xff, 0xff, 0xff, 1]),
            Malformed { offset: 6, what: "value is cut off" }
        );
        assert_eq!(fault(&[0xa1, 0xff]), Malformed { offset: 1, what: "string is not UTF-8" });
        assert_eq!(fault(&[0x91; 100]).what, "nested too deeply");
        assert_eq!(fault(&[0xc1]).what, "byte 0xc1 starts no value");
    }

    /// Values as they are written: `write` takes one apart.
    fn written(value: &MessagePackValue) -> Vec<u8> {
        fn write(out: &mut Vec<u8>, value: &MessagePackValue) {
            match value {
                MessagePackValue::Integer(value) => match u64::try_from(*value) {
                    Ok(value) => write_unsigned(out, value),
                    Err(_) => write_signed(out, *value as i64),
                },
                MessagePackValue::Text(text) => write_text(out, text),
                MessagePackValue::Boolean(value) => write_boolean(out, *value),
                MessagePackValue::Array(elements) => {
                    write_array(out, elements.len());
                    elements.iter().for_each(|element| write(out, element));
                }
                MessagePackValue::Map(entries) => {
                    write_map(out, entries.len());
                    entries.iter().for_each(|(key, value)| {
                        write(out, key);
                        write(out, value);
                    });
                }
                MessagePackValue::Other => out.push(Marker::Null.to_u8()),
            }
        }
        let mut out = Vec::new();
        write(&mut out, value);
        out
    }

    #[test]
    fn integers_take_their_shortest_form_and_are_read_back() {
        let forms =
            [(-0x20..=0x7f, 1), (-0x80..=0xff, 2), (-0x8000..=0xffff, 3), (-0x8000_0000..=0xffff_ffff, 5)];
        let bits = (0..=64).map(|bit| 1i128 << bit);
        let edges = bits.flat_map(|power| [power - 1, power, -power / 2, -power / 2 - 1]);
        for value in edges.filter(|value| (i64::MIN.into()..=u64::MAX.into()).contains(value)) {
            let bytes = written(&MessagePackValue::Integer(value));
            assert_eq!(MessagePackValue::parse(&bytes), Ok(MessagePackValue::Integer(value)));
            let expected = forms.iter().find(|(range, _)| range.contains(&value)).map_or(9, |form| form.1);
            assert_eq!(bytes.len(), expected, "{value}");
        }
    }

    #[test]
    fn lengths_at_the_edges_of_their_forms_are_read_back() {
        for length in [0, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
            let text = "x".repeat(length);
            for value in [
                MessagePackValue::Text(&text),
                MessagePackValue::Array(vec![MessagePackValue::Boolean(true); length]),
                MessagePackValue::Map(vec![(MessagePackValue::Integer(1), MessagePackValue::Other); length]),
            ] {
                assert_eq!(MessagePackValue::parse(&written(&value)), Ok(value));
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = MessagePackValue::parse(&bytes);
        }
    }
}
