//! Several code objects in one file, one for each chip: the offload bundle that HIP's module functions load,
//! as well as a bare object.
//!
//! ```text
//! magic   24 bytes  __CLANG_OFFLOAD_BUNDLE__
//! count    8        entries
//! entry    8 8 8    offset and size of the object, length of the id, and the id:
//!                   hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-
//! object            at a multiple of 4096
//! ```
//!
//! Numbers are little-endian. The first entry is the host's and empty, as HIP's own bundles have it. Source:
//! Clang's "Offload Bundler" (docs/ClangOffloadBundler.rst). Bundles that are compressed are made such ones
//! before they are read ([`super::decompress_bundle`]).

use std::borrow::Cow;

use super::read::MAX_OBJECT_BYTES;
use crate::codegen::target::TargetId;

/// What one begins with.
pub(super) const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
/// What a compressed one begins with.
pub(super) const COMPRESSED: &[u8; 4] = b"CCOB";
/// Objects are loaded as they lie in a bundle that is mapped into memory.
const ALIGNMENT: usize = 4096;
const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const DEVICE: &str = "hipv4-amdgcn-amd-amdhsa--";
/// The kinds of offloading before the triple: HIP's, and what older compilers call the same.
const KINDS: [&str; 2] = ["hipv4-", "hip-"];

/// An object in a bundle.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BundleEntry<'a> {
    /// What it is for.
    pub target: TargetId,
    /// The object.
    pub bytes: &'a [u8],
}

/// What is wrong with a bundle.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BundleError {
    /// It ends before what it promises.
    #[error("the bundle is cut off")]
    CutOff,
    /// It is compressed, where such ones are not read: inside of another one, or without the feature
    /// `compression`.
    #[error(
        "the bundle is compressed, and is not read like that; clang-offload-bundler takes the objects out"
    )]
    Compressed,
    /// It is compressed in a way of which the head is not known.
    #[error("the bundle is compressed in version {version} of the format; 1, 2 and 3 are known")]
    Version {
        /// The version.
        version: u16,
    },
    /// It is compressed by an unknown method.
    #[error("the bundle is compressed by method {method}; 0 (zlib) and 1 (zstd) are known")]
    Method {
        /// Its number.
        method: u16,
    },
    /// It would be larger than what is read.
    #[error("the bundle has {bytes} bytes without compression, and may have {MAX_OBJECT_BYTES}")]
    TooLarge {
        /// The size that it has, or claims.
        bytes: u64,
    },
    /// What was compressed has not the size or the hash that it should have, or cannot be decompressed.
    #[error("the compressed bundle is damaged")]
    Damaged,
    /// All compressed bundles of one file would be larger together than what is read.
    #[error("the compressed bundle has {bytes} bytes, more than is read of all in a file of this size")]
    Growth {
        /// Its size.
        bytes: u64,
    },
    /// Its entries name the same bytes more than once.
    #[error("the objects of the bundle have more bytes together than the bundle")]
    Shared,
    /// It has no object for a chip that is known here.
    #[error("the bundle has no object for an AMD chip that is known here")]
    Empty,
    /// No object runs on the chip.
    #[error("the bundle has code for {}, not for {device}", has.join(", "))]
    Lacks {
        /// The ids of its objects.
        has: Vec<String>,
        /// The chip and its modes.
        device: TargetId,
    },
}

/// A bundle of objects, in order.
pub fn write_bundle(entries: &[BundleEntry<'_>]) -> Vec<u8> {
    let ids: Vec<String> = entries.iter().map(|entry| format!("{DEVICE}{}", entry.target)).collect();
    let names = || std::iter::once(HOST).chain(ids.iter().map(String::as_str));
    let head = MAGIC.len() + 8 + names().map(|name| 24 + name.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(head);
    bytes.extend_from_slice(MAGIC);
    let number = |bytes: &mut Vec<u8>, value: usize| bytes.extend((value as u64).to_le_bytes());
    number(&mut bytes, entries.len() + 1);
    let objects = std::iter::once(&[][..]).chain(entries.iter().map(|entry| entry.bytes));
    let mut end = head;
    for (name, object) in names().zip(objects) {
        let start = end.next_multiple_of(ALIGNMENT);
        number(&mut bytes, start);
        number(&mut bytes, object.len());
        number(&mut bytes, name.len());
        bytes.extend_from_slice(name.as_bytes());
        end = if object.is_empty() { end } else { start + object.len() };
    }
    for entry in entries {
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes.extend_from_slice(entry.bytes);
    }
    bytes
}

/// An entry of a bundle, for whatever it may be.
#[derive(Clone, Debug)]
pub(super) struct BundleItem<'a> {
    /// The name that the bundle gives it.
    pub id: Cow<'a, str>,
    /// Where its bytes begin in the bundle.
    pub offset: usize,
    /// The object; nothing for the host.
    pub bytes: &'a [u8],
}

impl BundleItem<'_> {
    /// What it is for, if it is HIP's and for a chip that is known here.
    pub(super) fn target(&self) -> Option<TargetId> {
        let triple = KINDS.into_iter().find_map(|kind| self.id.strip_prefix(kind))?;
        TargetId::after_triple(triple)?.parse().ok()
    }
}

/// All entries of a bundle, in order; none if the bytes are no bundle.
///
/// # Errors
/// It is cut off or still compressed.
pub(super) fn bundle_items(bytes: &[u8]) -> Result<Option<Vec<BundleItem<'_>>>, BundleError> {
    if bytes.starts_with(COMPRESSED) {
        return Err(BundleError::Compressed);
    }
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else { return Ok(None) };
    let mut items = Vec::new();
    for _ in 0..number(&mut rest)? {
        let [offset, size, length] = [number(&mut rest)?, number(&mut rest)?, number(&mut rest)?];
        let (id, after) = rest.split_at_checked(length).ok_or(BundleError::CutOff)?;
        rest = after;
        let end = offset.checked_add(size).ok_or(BundleError::CutOff)?;
        // An empty one, such as the host's, may lie anywhere.
        let bytes = if size == 0 { &[] } else { bytes.get(offset..end).ok_or(BundleError::CutOff)? };
        items.push(BundleItem { id: String::from_utf8_lossy(id), offset, bytes });
    }
    Ok(Some(items))
}

/// The objects in a bundle that are for chips known here, at least one, in order; none if the bytes are no
/// bundle.
///
/// # Errors
/// It is cut off, still compressed, or has none of them.
pub fn read_bundle(bytes: &[u8]) -> Result<Option<Vec<BundleEntry<'_>>>, BundleError> {
    let Some(items) = bundle_items(bytes)? else { return Ok(None) };
    let known =
        items.iter().filter_map(|item| Some(BundleEntry { target: item.target()?, bytes: item.bytes }));
    let entries: Vec<BundleEntry<'_>> = known.collect();
    match entries.is_empty() {
        true => Err(BundleError::Empty),
        false => Ok(Some(entries)),
    }
}

/// The bytes themselves, because this build is without the feature `compression`.
///
/// # Errors
/// They are a compressed bundle.
#[cfg(not(feature = "compression"))]
pub fn decompress_bundle(bytes: &[u8]) -> Result<Cow<'_, [u8]>, BundleError> {
    match bytes.starts_with(COMPRESSED) {
        true => Err(BundleError::Compressed),
        false => Ok(Cow::Borrowed(bytes)),
    }
}

/// The object that a device loads: that of a bundle which runs on it, or the bytes themselves if they are no
/// bundle. One for the device's own processor is preferred to one for a generic target; of several, which a
/// device whose modes are open has, it is the first.
///
/// # Errors
/// As those of [`read_bundle`], or the bundle has none for the device.
pub fn object_for(bytes: &[u8], device: TargetId) -> Result<&[u8], BundleError> {
    let Some(entries) = read_bundle(bytes)? else { return Ok(bytes) };
    match device.best_of(entries.iter().map(|entry| (entry.target, entry.bytes))) {
        Some(bytes) => Ok(bytes),
        None => {
            let has = entries.iter().map(|entry| entry.target.to_string()).collect();
            Err(BundleError::Lacks { has, device })
        }
    }
}

fn number(rest: &mut &[u8]) -> Result<usize, BundleError> {
    let (bytes, after) = rest.split_first_chunk::<8>().ok_or(BundleError::CutOff)?;
    *rest = after;
    usize::try_from(u64::from_le_bytes(*bytes)).map_err(|_| BundleError::CutOff)
}
