//! Reading files: a file that is too large is rejected by its size, before it is read. `-` is standard input.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use groundswell::assembler::MAX_TEXT_BYTES;
use groundswell::diagnostic::Kind;
use groundswell::object::{
    ContainerKind, DeviceCode, MAX_OBJECT_BYTES, ObjectFile, decompress_bundle, object_for, read_bundle,
};
use groundswell::prelude::Diagnostic;
use groundswell::text::MAX_KERNEL_BYTES;

use super::arguments::target_named;
use super::failure::Failure;
use super::host_code::{HostListing, ObjectChoice};
use super::standard_input;

/// What a file should hold, and how large it may be.
#[derive(Copy, Clone, Debug)]
pub struct Expected {
    what: &'static str,
    most: usize,
}

/// A text kernel with its schedule.
pub const KERNEL: Expected = Expected { what: "a text kernel", most: MAX_KERNEL_BYTES };

/// A schedule that was written as a table.
pub const TABLE: Expected = Expected { what: "a schedule table", most: MAX_KERNEL_BYTES };

/// What a package holds.
pub const MANIFEST: Expected = Expected { what: "a manifest of kernels", most: MAX_KERNEL_BYTES };

/// Assembler text.
pub const ASSEMBLY: Expected = Expected { what: "an assembler text", most: MAX_TEXT_BYTES };

/// A code object, or a bundle of them.
const OBJECT: Expected = Expected { what: "a code object", most: MAX_OBJECT_BYTES };

/// A program or library of the host: AMD's largest have about four GiB.
const HOST: Expected = Expected { what: "a program or library", most: 8 << 30 };

/// A file with device code.
pub enum DeviceFile {
    /// An object or a bundle, which is not compressed any more.
    Objects(Vec<u8>),
    /// A file with device code inside.
    Host(Vec<u8>),
}

/// The bytes of a file.
///
/// # Errors
/// It cannot be read, or is larger than expected.
pub fn read(path: &Path, expected: Expected) -> Result<Vec<u8>, Failure> {
    read_as(path, |_| expected)
}

/// The same, where what is expected depends on how the file begins.
fn read_as(path: &Path, expect: impl Fn(&[u8]) -> Expected) -> Result<Vec<u8>, Failure> {
    let fail = |error: std::io::Error| Failure::file("read", path, &error);
    let file = match standard_input::is_named(path) {
        true => standard_input::open()?,
        false => File::open(path).map_err(fail)?,
    };
    let metadata = file.metadata().map_err(fail)?;
    let mut bytes = Vec::new();
    (&file).take(BEGIN as u64).read_to_end(&mut bytes).map_err(fail)?;
    let expected = expect(&bytes);
    let most = expected.most as u64;
    if metadata.is_file() && metadata.len() > most {
        return Err(too_large(path, &format!("has {} bytes", metadata.len()), expected));
    }
    // Pipes have no size, and files may grow.
    bytes.reserve_exact((metadata.len().min(most) as usize).saturating_sub(bytes.len()));
    let left = most + 1 - (bytes.len() as u64).min(most);
    file.take(left).read_to_end(&mut bytes).map_err(fail)?;
    match bytes.len() > expected.most {
        true => Err(too_large(path, "goes on", expected)),
        false => Ok(bytes),
    }
}

/// The bytes at the beginning of a file that show what to expect: the header of an ELF file.
const BEGIN: usize = 64;

/// True if a file begins as an ELF file for another machine than AMD's chips (`e_machine`, `EM_AMDGPU`).
fn begins_as_host(begin: &[u8]) -> bool {
    begin.starts_with(b"\x7fELF") && begin.get(18..20).is_some_and(|machine| machine != [224, 0])
}

/// The bytes of an object or of a bundle, or of a file of the host that has them inside.
///
/// # Errors
/// It cannot be read or decompressed, or is larger than expected.
pub fn read_device_file(path: &Path) -> Result<DeviceFile, Failure> {
    let bytes = read_as(path, |begin| if begins_as_host(begin) { HOST } else { OBJECT })?;
    let found = DeviceCode::find(&bytes);
    let is_inside = match (ContainerKind::of(&bytes), &found.containers[..]) {
        (None, []) => begins_as_host(&bytes),
        (None, [_, ..]) => true,
        // Several one after the other, such as a section that was copied out of a library.
        (Some(_), [first, _, ..]) => first.offset == 0,
        (Some(_), _) => false,
    };
    match is_inside {
        true => Ok(DeviceFile::Host(bytes)),
        false => decompressed(bytes, path).map(DeviceFile::Objects),
    }
}

/// The bytes of an object or of a bundle, which may be compressed.
fn decompressed(bytes: Vec<u8>, path: &Path) -> Result<Vec<u8>, Failure> {
    let decompressed = match decompress_bundle(&bytes) {
        Ok(Cow::Owned(bundle)) => Some(bundle),
        Ok(Cow::Borrowed(_)) => None,
        Err(error) => return Err(Failure::file("read", path, &error)),
    };
    Ok(decompressed.unwrap_or(bytes))
}

/// The object that is meant in a file: all of it, what a bundle has for a target, or one of those inside.
///
/// # Errors
/// It is a bundle that is cut off or lacks the target, or there are several that could be meant; it is an
/// object for another target than the one that is named.
pub fn object_of<'a>(
    file: &'a DeviceFile,
    path: &Path,
    choice: ObjectChoice<'_>,
) -> Result<Cow<'a, [u8]>, Failure> {
    let bytes = match file {
        // Only there is more than one way to choose.
        DeviceFile::Objects(bytes) if choice.number.is_none() => bytes,
        DeviceFile::Objects(bytes) | DeviceFile::Host(bytes) => {
            return HostListing::new(path, DeviceCode::find(bytes)).choose(choice).map(Cow::Owned);
        }
    };
    object_of_bundle(bytes, path, choice.target).map(Cow::Borrowed)
}

fn object_of_bundle<'a>(bytes: &'a [u8], path: &Path, target: Option<&str>) -> Result<&'a [u8], Failure> {
    let fail = |error| Failure::file("read", path, &error);
    let entries = read_bundle(bytes).map_err(fail)?;
    match (entries.as_deref(), target) {
        (None, None) => Ok(bytes),
        (Some([only]), None) => Ok(only.bytes),
        (Some(_), Some(id)) => object_for(bytes, target_named(id)?).map_err(fail),
        (None, Some(id)) => {
            let wanted = target_named(id)?;
            let object = ObjectFile::parse(bytes).map_err(|error| Failure::file("read", path, &error))?;
            let is = object.target_id();
            match is.runs_on(wanted) {
                true => Ok(bytes),
                false => {
                    let text = format!("{} has code for {is}, not for {wanted}", path.display());
                    Err(Failure::usage(Diagnostic::invalid(text)))
                }
            }
        }
        (Some(entries), None) => {
            let ids: Vec<String> = entries.iter().map(|entry| entry.target.to_string()).collect();
            let text = format!("{} is a bundle of {} objects", path.display(), ids.len());
            let help = format!("choose one with --target: {}", ids.join(", "));
            Err(Failure::usage(Diagnostic::invalid(text).help(help)))
        }
    }
}

/// The text of a file.
///
/// # Errors
/// It cannot be read, is larger than expected, or is not text.
pub fn read_text(path: &Path, expected: Expected) -> Result<String, Failure> {
    let bytes = read(path, expected)?;
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::file("read", path, &format!("it is not text: byte {place} is not UTF-8"))
    })
}

fn too_large(path: &Path, found: &str, Expected { what, most }: Expected) -> Failure {
    let message = format!("{} {found}, and {what} may have {most} ({} MiB)", path.display(), most >> 20);
    Diagnostic::new(Kind::Limit, message).into()
}
