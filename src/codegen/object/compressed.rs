//! Bundles that are compressed as a whole.
//!
//! ```text
//! magic    4        CCOB
//! version  2        1, 2 or 3
//! method   2        0 zlib, 1 zstd
//! end      - 4 8    of the file, in versions 2 and 3
//! size     4 4 8    of the bundle
//! hash     8        first half of the MD5 of the bundle
//! data
//! ```
//!
//! Numbers are little-endian. Source: Clang's "Offload Bundler" (docs/ClangOffloadBundler.rst, "Compression
//! and Decompression") and llvm/lib/Object/OffloadBundle.cpp. Version 2 is what LLVM 19 writes; version 3
//! came later.

use std::borrow::Cow;
use std::io::Read;

use miniz_oxide::deflate::{CompressionLevel, compress_to_vec_zlib};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use ruzstd::decoding::StreamingDecoder;

use super::bundle::{BundleError, COMPRESSED};
use super::read::MAX_OBJECT_BYTES;

/// Bytes of the numbers in front of the hash: of the file's end, which the first version lacks, and of the
/// bundle's size.
const WIDTHS: [(u16, Option<usize>, usize); 3] = [(1, None, 4), (2, Some(4), 4), (3, Some(8), 8)];
/// The version that is written.
const WRITTEN: u16 = 2;
const ZLIB: u16 = 0;
const ZSTD: u16 = 1;
/// What a decoder of zstd should be able to look back at least (RFC 8878, section 3.1.1.1.2).
const LEAST_WINDOW: usize = 8 << 20;

/// A bundle, or whatever the bytes are, as it was before it was compressed; the bytes themselves if they are
/// not compressed. What is after the end of the file that the head promises does not count.
///
/// # Errors
/// It is cut off or damaged, of an unknown version or method, or larger than [`MAX_OBJECT_BYTES`].
pub fn decompress_bundle(bytes: &[u8]) -> Result<Cow<'_, [u8]>, BundleError> {
    let Some(mut rest) = bytes.strip_prefix(COMPRESSED) else { return Ok(Cow::Borrowed(bytes)) };
    let [version, method] = [number(&mut rest, 2)? as u16, number(&mut rest, 2)? as u16];
    let widths = WIDTHS.iter().find(|row| row.0 == version);
    let &(_, end_width, size_width) = widths.ok_or(BundleError::Version { version })?;
    let end = end_width.map(|width| number(&mut rest, width)).transpose()?;
    let promised = number(&mut rest, size_width)?;
    let hash = number(&mut rest, 8)?;
    let head = bytes.len() - rest.len();
    let data = match end {
        None => rest,
        Some(end) => {
            let end = usize::try_from(end).map_err(|_| BundleError::CutOff)?;
            bytes.get(head..end).ok_or(BundleError::CutOff)?
        }
    };
    let size = usize::try_from(promised).ok().filter(|&size| size <= MAX_OBJECT_BYTES);
    let size = size.ok_or(BundleError::TooLarge { bytes: promised })?;
    let bundle = match method {
        ZLIB => decompress_to_vec_zlib_with_limit(data, size).map_err(|_| BundleError::Damaged)?,
        ZSTD => zstd(data, size)?,
        method => return Err(BundleError::Method { method }),
    };
    if bundle.len() != size || hash_of(&bundle) != hash {
        return Err(BundleError::Damaged);
    }
    Ok(Cow::Owned(bundle))
}

/// A bundle as a compressed one, by zlib, which every build of LLVM and of HIP can read.
///
/// # Errors
/// It is larger than what [`decompress_bundle`] takes.
pub fn compress_bundle(bundle: &[u8]) -> Result<Vec<u8>, BundleError> {
    if bundle.len() > MAX_OBJECT_BYTES {
        return Err(BundleError::TooLarge { bytes: bundle.len() as u64 });
    }
    let data = compress_to_vec_zlib(bundle, CompressionLevel::BestCompression as u8);
    let head = COMPRESSED.len() + 2 + 2 + 4 + 4 + 8;
    let mut bytes = Vec::with_capacity(head + data.len());
    bytes.extend_from_slice(COMPRESSED);
    bytes.extend(WRITTEN.to_le_bytes());
    bytes.extend(ZLIB.to_le_bytes());
    // Both are below the limit, and data that cannot be made shorter grow by less than a thousandth.
    bytes.extend(((head + data.len()) as u32).to_le_bytes());
    bytes.extend((bundle.len() as u32).to_le_bytes());
    bytes.extend(hash_of(bundle).to_le_bytes());
    bytes.extend(data);
    Ok(bytes)
}

/// What a frame holds, if it is no more than `size` bytes: one more is enough to see that it is.
fn zstd(data: &[u8], size: usize) -> Result<Vec<u8>, BundleError> {
    let window = size.next_power_of_two().max(LEAST_WINDOW) as u64;
    let decoder = StreamingDecoder::new_with_max_window_size(data, window);
    let mut bundle = Vec::new();
    let read = decoder.map_err(|_| BundleError::Damaged)?.take(size as u64 + 1).read_to_end(&mut bundle);
    read.map_err(|_| BundleError::Damaged).map(|_| bundle)
}

fn hash_of(bundle: &[u8]) -> u64 {
    md5::compute(bundle).first_chunk().map_or(0, |&half| u64::from_le_bytes(half))
}

/// The next number, which has `width` bytes.
fn number(rest: &mut &[u8], width: usize) -> Result<u64, BundleError> {
    let (bytes, after) = rest.split_at_checked(width).ok_or(BundleError::CutOff)?;
    *rest = after;
    Ok(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}
