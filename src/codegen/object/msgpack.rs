//! MessagePack, the encoding of the metadata note: a reader for whatever bytes are found in an object.
//!
//! The reader borrows from its input, allocates in proportion to it (every element costs at least one byte) and gives up
//! on nesting deeper than any metadata has, so that no input can exhaust memory or stack.

use rmp::Marker;

/// Metadata nests root map, kernel array, kernel map, argument array, argument map.
const MAX_DEPTH: u32 = 16;

/// A MessagePack value.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::codegen) enum Value<'a> {
    Integer(i128),
    Text(&'a str),
    Array(Vec<Value<'a>>),
    Map(Vec<(Value<'a>, Value<'a>)>),
    Boolean(bool),
    /// Nil, a float, raw bytes or an extension: nothing that we look into.
    Other,
}

/// What is wrong with the bytes, and at which offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::codegen) struct Malformed {
    pub offset: usize,
    pub what: &'static str,
}

impl<'a> Value<'a> {
    /// The value that the bytes start with.
    pub fn parse(bytes: &'a [u8]) -> Result<Value<'a>, Malformed> {
        Reader { bytes, at: 0 }.value(0)
    }

    /// The value of a map's key.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        let Value::Map(entries) = self else { return None };
        entries.iter().find(|(k, _)| *k == Value::Text(key)).map(|(_, value)| value)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
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

    fn text(&mut self, length: usize) -> Result<Value<'a>, Malformed> {
        let offset = self.at;
        let malformed = |_| Malformed { offset, what: "string is not UTF-8" };
        std::str::from_utf8(self.take(length)?).map(Value::Text).map_err(malformed)
    }

    fn skip(&mut self, length: usize) -> Result<Value<'a>, Malformed> {
        self.take(length)?;
        Ok(Value::Other)
    }

    fn array(&mut self, length: usize, depth: u32) -> Result<Value<'a>, Malformed> {
        let mut elements = Vec::new();
        for _ in 0..length {
            elements.push(self.value(depth + 1)?);
        }
        Ok(Value::Array(elements))
    }

    fn map(&mut self, length: usize, depth: u32) -> Result<Value<'a>, Malformed> {
        let mut entries = Vec::new();
        for _ in 0..length {
            entries.push((self.value(depth + 1)?, self.value(depth + 1)?));
        }
        Ok(Value::Map(entries))
    }

    fn value(&mut self, depth: u32) -> Result<Value<'a>, Malformed> {
        if depth > MAX_DEPTH {
            return self.fail("nested too deeply");
        }
        let marker = Marker::from_u8(self.take(1)?[0]);
        Ok(match marker {
            Marker::FixPos(n) => Value::Integer(n.into()),
            Marker::FixNeg(n) => Value::Integer(n.into()),
            Marker::U8 => Value::Integer(u8::from_be_bytes(self.big_endian()?).into()),
            Marker::U16 => Value::Integer(u16::from_be_bytes(self.big_endian()?).into()),
            Marker::U32 => Value::Integer(u32::from_be_bytes(self.big_endian()?).into()),
            Marker::U64 => Value::Integer(u64::from_be_bytes(self.big_endian()?).into()),
            Marker::I8 => Value::Integer(i8::from_be_bytes(self.big_endian()?).into()),
            Marker::I16 => Value::Integer(i16::from_be_bytes(self.big_endian()?).into()),
            Marker::I32 => Value::Integer(i32::from_be_bytes(self.big_endian()?).into()),
            Marker::I64 => Value::Integer(i64::from_be_bytes(self.big_endian()?).into()),
            Marker::FixStr(n) => self.text(n.into())?,
            Marker::Str8 => self.length(1).and_then(|n| self.text(n))?,
            Marker::Str16 => self.length(2).and_then(|n| self.text(n))?,
            Marker::Str32 => self.length(4).and_then(|n| self.text(n))?,
            Marker::FixArray(n) => self.array(n.into(), depth)?,
            Marker::Array16 => self.length(2).and_then(|n| self.array(n, depth))?,
            Marker::Array32 => self.length(4).and_then(|n| self.array(n, depth))?,
            Marker::FixMap(n) => self.map(n.into(), depth)?,
            Marker::Map16 => self.length(2).and_then(|n| self.map(n, depth))?,
            Marker::Map32 => self.length(4).and_then(|n| self.map(n, depth))?,
            Marker::False => Value::Boolean(false),
            Marker::True => Value::Boolean(true),
            Marker::Null => Value::Other,
            Marker::F32 => self.skip(4)?,
            Marker::F64 => self.skip(8)?,
            Marker::Bin8 => self.length(1).and_then(|n| self.skip(n))?,
            Marker::Bin16 => self.length(2).and_then(|n| self.skip(n))?,
            Marker::Bin32 => self.length(4).and_then(|n| self.skip(n))?,
            // Extensions have a type byte before their data.
            Marker::FixExt1 => self.skip(2)?,
            Marker::FixExt2 => self.skip(3)?,
            Marker::FixExt4 => self.skip(5)?,
            Marker::FixExt8 => self.skip(9)?,
            Marker::FixExt16 => self.skip(17)?,
            Marker::Ext8 => self.length(1).and_then(|n| self.skip(n + 1))?,
            Marker::Ext16 => self.length(2).and_then(|n| self.skip(n + 1))?,
            Marker::Ext32 => self.length(4).and_then(|n| self.skip(n.saturating_add(1)))?,
            Marker::Reserved => return self.fail("byte 0xc1 starts no value"),
        })
    }
}

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
        let Value::Array(values) = Value::parse(&bytes).unwrap() else { panic!("not an array") };
        let integer = Value::Integer;
        assert_eq!(
            values[..5],
            [integer(127), integer(-1), integer(258), integer(-2), integer(u64::MAX.into())]
        );
        assert_eq!(values[5..7], [Value::Text("a"), Value::Text("b")]);
        assert_eq!(values[7].get("k"), Some(&integer(5)));
        assert_eq!(values[8], Value::Map(vec![]));
        assert!(values[9..13].iter().all(|value| *value == Value::Other));
        assert_eq!(values[13], Value::Boolean(true));
    }

    #[test]
    fn malformed_bytes_are_located() {
        let fault = |bytes: &[u8]| Value::parse(bytes).unwrap_err();
        assert_eq!(fault(&[]), Malformed { offset: 0, what: "value is cut off" });
        assert_eq!(
            fault(&[0xdd, 0xff, 0xff, 0xff, 0xff, 1]),
            Malformed { offset: 6, what: "value is cut off" }
        );
        assert_eq!(fault(&[0xa1, 0xff]), Malformed { offset: 1, what: "string is not UTF-8" });
        assert_eq!(fault(&[0x91; 100]).what, "nested too deeply");
        assert_eq!(fault(&[0xc1]).what, "byte 0xc1 starts no value");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Value::parse(&bytes);
        }
    }
}
