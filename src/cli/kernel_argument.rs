//! Arguments of a kernel on the command line: for `sim`, buffers from and to files, and numbers, and the
//! place of each in the kernel argument segment; for `run`, scalars by name.

use std::path::PathBuf;
use std::str::FromStr;

use groundswell::compile::Parameter;
use groundswell::object::{ArgumentKind, KernelMetadata};
use groundswell::prelude::*;

/// One argument, as given.
#[derive(Clone, PartialEq, Debug)]
pub enum KernelArgument {
    /// `in:FILE`: a buffer with the bytes of a file.
    In(PathBuf),
    /// `out:FILE:BYTES`: a buffer whose bytes are written to a file.
    Out(PathBuf, u64),
    /// `io:FILE`: both, one file.
    InOut(PathBuf),
    /// `i32:V`, `i64:V`, `f32:V`: the little-endian bytes of a number; `hex:BYTES`: those of anything else,
    /// as of a struct by value, in their order in memory.
    Value(Vec<u8>),
}

impl KernelArgument {
    /// Bytes that it takes in the kernel argument segment.
    pub fn size(&self) -> usize {
        match self {
            KernelArgument::Value(bytes) => bytes.len(),
            _ => 8,
        }
    }

    /// Its alignment there: that of a number is its size, and no member of a struct asks for more than 8
    /// bytes.
    fn alignment(&self) -> usize {
        1 << self.size().trailing_zeros().min(3)
    }
}

impl FromStr for KernelArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<KernelArgument, String> {
        const FORMS: &str = "expected in:FILE, out:FILE:BYTES, io:FILE, i32:V, i64:V, f32:V or hex:BYTES";
        let (form, rest) = text.split_once(':').ok_or(FORMS)?;
        let number = |what: &str| format!("`{rest}` is not {what}");
        let file = |path: &str| match path {
            "" => Err(format!("`{text}` names no file")),
            path => Ok(PathBuf::from(path)),
        };
        match form {
            "in" => Ok(KernelArgument::In(file(rest)?)),
            "io" => Ok(KernelArgument::InOut(file(rest)?)),
            "out" => {
                let (path, bytes) = rest.rsplit_once(':').ok_or("expected out:FILE:BYTES")?;
                let bytes = bytes.parse().map_err(|_| format!("`{bytes}` is not a number of bytes"))?;
                Ok(KernelArgument::Out(file(path)?, bytes))
            }
            "i32" => {
                let value = integer(rest).ok_or_else(|| number("a 32-bit integer"))?;
                Ok(KernelArgument::Value(value.to_le_bytes().to_vec()))
            }
            "i64" => {
                let value: i128 = rest.parse().map_err(|_| number("an integer"))?;
                let bits = i64::try_from(value).map(|v| v as u64).or_else(|_| u64::try_from(value));
                let bits = bits.map_err(|_| number("a 64-bit integer"))?;
                Ok(KernelArgument::Value(bits.to_le_bytes().to_vec()))
            }
            "f32" => {
                let value: f32 = rest.parse().map_err(|_| number("a number"))?;
                Ok(KernelArgument::Value(value.to_le_bytes().to_vec()))
            }
            "hex" => {
                let bytes = bytes(rest).ok_or_else(|| number("pairs of hexadecimal digits"))?;
                Ok(KernelArgument::Value(bytes))
            }
            _ => Err(FORMS.to_owned()),
        }
    }
}

/// Bytes of two hexadecimal digits each; at least one.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let is_hex = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [_, _] => u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok(),
        _ => None,
    });
    is_hex.then(|| pairs.collect()).flatten()
}

/// An integer of 32 bits. Unsigned numbers are accepted as well: the bits count.
pub fn integer(text: &str) -> Option<i32> {
    let value: i64 = text.parse().ok()?;
    i32::try_from(value).or_else(|_| u32::try_from(value).map(|bits| bits as i32)).ok()
}

/// Values of the scalars of a kernel, of the types that it declares.
///
/// # Errors
/// A scalar that the kernel does not have, or a value that is not a number of its type.
pub fn scalars(
    given: &[(String, String)],
    executable: &Executable,
) -> Result<Vec<(String, ScalarValue)>, Diagnostic> {
    let known = executable.parameters().iter().filter_map(|parameter| match parameter {
        Parameter::Scalar { name, dtype, .. } => Some((&**name, *dtype)),
        _ => None,
    });
    let known: Vec<(&str, DType)> = known.collect();
    let value = |(name, text): &(String, String)| {
        let Some((_, dtype)) = known.iter().find(|row| row.0 == name) else {
            let names: Vec<&str> = known.iter().map(|row| row.0).collect();
            let help = match names.is_empty() {
                true => "leave out --arg".to_owned(),
                false => format!("its scalars are {}", names.join(", ")),
            };
            return Err(Diagnostic::invalid(format!("the kernel has no scalar {name}")).help(help));
        };
        let value = match dtype {
            I32 => integer(text).map(ScalarValue::from),
            I64 => text.parse::<i64>().ok().map(ScalarValue::from),
            F64 => text.parse::<f64>().ok().map(ScalarValue::from),
            _ => text.parse::<f32>().ok().map(ScalarValue::from),
        };
        match value {
            Some(value) => Ok((name.clone(), value)),
            None => Err(Diagnostic::invalid(format!("--arg {name}={text}: `{text}` is not {dtype}"))
                .help(format!("the scalar {name} is {dtype}"))),
        }
    };
    given.iter().map(value).collect()
}

/// Byte offset of each argument: from the kernel's metadata or, without any, in order at natural alignment.
pub fn offsets(given: &[KernelArgument], metadata: Option<&KernelMetadata>) -> Result<Vec<usize>, String> {
    let Some(metadata) = metadata else {
        let mut end = 0usize;
        let place = |argument: &KernelArgument| {
            let offset = end.next_multiple_of(argument.alignment());
            end = offset + argument.size();
            offset
        };
        return Ok(given.iter().map(place).collect());
    };
    let is_hidden =
        |kind: &ArgumentKind| matches!(kind, ArgumentKind::Other(name) if name.starts_with("hidden_"));
    let wanted: Vec<_> = metadata.arguments.iter().filter(|a| !is_hidden(&a.kind)).collect();
    let list = || {
        let one = |(index, a): (usize, &&groundswell::object::ArgumentInfo)| {
            let name = if a.name.is_empty() { format!("#{index}") } else { a.name.clone() };
            format!("{name} ({} bytes, {})", a.size, a.kind.name())
        };
        wanted.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    };
    if wanted.len() != given.len() {
        let (takes, has) = (wanted.len(), given.len());
        return Err(format!("the kernel takes {takes} arguments, {has} are given; it wants {}", list()));
    }
    for (number, (argument, info)) in given.iter().zip(&wanted).enumerate() {
        if argument.size() != info.size as usize {
            let (has, takes) = (argument.size(), info.size);
            let which = number + 1;
            return Err(format!(
                "argument {which} has {has} bytes, the kernel takes {takes} there: {}",
                list()
            ));
        }
    }
    Ok(wanted.iter().map(|info| info.offset as usize).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let read = |text: &str| text.parse::<KernelArgument>();
        assert_eq!(read("in:a.bin"), Ok(KernelArgument::In("a.bin".into())));
        assert_eq!(read("out:dir:x/b.bin:4096"), Ok(KernelArgument::Out("dir:x/b.bin".into(), 4096)));
        assert_eq!(read("io:c.bin"), Ok(KernelArgument::InOut("c.bin".into())));
        assert_eq!(read("i32:-1"), Ok(KernelArgument::Value(vec![255; 4])));
        assert_eq!(read("i32:4294967295"), Ok(KernelArgument::Value(vec![255; 4])));
        assert_eq!(read("i64:-2"), Ok(KernelArgument::Value((-2i64).to_le_bytes().to_vec())));
        assert_eq!(read("f32:0.5"), Ok(KernelArgument::Value(0.5f32.to_le_bytes().to_vec())));
        assert_eq!(read("hex:0200fF"), Ok(KernelArgument::Value(vec![2, 0, 255])));
        for wrong in ["hex:", "hex:0", "hex:+1", "hex:0x", "hex:é"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for wrong in
            ["", "in", "in:", "out:x", "out:x:y", "out::4", "i32:4294967296", "i64:x", "f32:", "u8:1"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_metadata_arguments_are_packed_at_their_alignment() {
        let given: Vec<KernelArgument> = [
            "i32:1",
            "in:x",
            "f32:1",
            "hex:000000000000000000000000",
            "hex:00000000000000000000000000000000",
        ]
        .iter()
        .map(|a| a.parse().expect("well-formed"))
        .collect();
        assert_eq!(offsets(&given, None), Ok(vec![0, 8, 16, 20, 32]));
    }
}
