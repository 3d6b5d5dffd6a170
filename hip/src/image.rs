//! How long an image is: HIP's functions take code objects and bundles by their addresses alone.

use groundswell::object::MAX_OBJECT_BYTES;

use crate::error::{Code, HipError, HipResult};
use crate::ffi::{In, host_bytes};

/// The first bytes of an offload bundle.
const BUNDLE: [u8; 24] = *b"__CLANG_OFFLOAD_BUNDLE__";
/// The first bytes of a compressed one.
const COMPRESSED: [u8; 4] = *b"CCOB";
/// The first bytes of an ELF file.
const ELF: [u8; 4] = *b"\x7fELF";

/// What is said of bytes that are none of these.
const NO_IMAGE: &str = "the image is neither a code object nor an offload bundle";

fn refuse(reason: &str) -> HipError {
    HipError::new(Code::InvalidImage, reason)
}

/// Where an ELF file says for which system and machine it is, and what AMD's say there: `ELFOSABI_AMDGPU_HSA`
/// and `EM_AMDGPU`.
const SYSTEM: (usize, u8) = (7, 64);
const MACHINE: (usize, [u8; 2]) = (18, [224, 0]);

/// The bytes at the beginning of an image that show what it is.
pub const BEGIN: usize = 32;

/// An error unless bytes begin as an object for AMD's chips or a bundle does (hipamd/src/hip_fatbin.cpp).
///
/// # Errors
/// They do not.
pub fn check_begin(image: &[u8]) -> HipResult {
    let is_object = || {
        image.starts_with(&ELF)
            && image.get(SYSTEM.0) == Some(&SYSTEM.1)
            && image.get(MACHINE.0..).is_some_and(|rest| rest.starts_with(&MACHINE.1))
    };
    match is_object() || image.starts_with(&BUNDLE) || image.starts_with(&COMPRESSED) {
        true => Ok(()),
        false => Err(refuse(NO_IMAGE)),
    }
}

/// The bytes of the object or the bundle that begins at an address: what its own tables say that it has.
///
/// # Errors
/// It is neither, or its tables say more than an object may have.
///
/// # Safety
/// The image is complete, stays where it is and is not written as long as the slice is used, as HIP asks of
/// its callers.
pub unsafe fn image_at<'a>(image: In<u8>) -> HipResult<&'a [u8]> {
    if image.address() == 0 {
        return Err(HipError::new(Code::InvalidValue, "the image is null"));
    }
    let bytes = length(&mut |offset| image.after(offset as usize).get().unwrap_or_default())?;
    // SAFETY: the caller vouches for the image, and its own tables say that it has that many bytes.
    Ok(unsafe { host_bytes(image.address(), bytes) })
}

/// The length of an image whose bytes are read one by one.
fn length(byte: &mut dyn FnMut(u64) -> u8) -> HipResult<usize> {
    let mut read = |offset: u64, count: u64| -> u64 {
        (0..count).fold(0, |all, at| all | u64::from(byte(offset.wrapping_add(at))) << (8 * at))
    };
    let mut begins = |with: &[u8]| with.iter().zip(0..).all(|(&b, at)| read(at, 1) == u64::from(b));
    let bytes = if begins(&ELF) {
        elf(&mut read)
    } else if begins(&BUNDLE) {
        bundle(&mut read)
    } else if begins(&COMPRESSED) {
        compressed(&mut read)?
    } else {
        return Err(refuse(NO_IMAGE));
    };
    usize::try_from(bytes)
        .ok()
        .filter(|&bytes| bytes <= MAX_OBJECT_BYTES)
        .ok_or_else(|| refuse("the image says of itself that it is larger than any is read"))
}

/// An ELF file ends with its tables or with the last thing that they name (System V ABI, "ELF Header",
/// "Program Header" and "Section Header", 64 bits).
fn elf(read: &mut impl FnMut(u64, u64) -> u64) -> u64 {
    let programs = [read(0x20, 8), read(0x36, 2), read(0x38, 2)];
    let sections = [read(0x28, 8), read(0x3a, 2), read(0x3c, 2)];
    let mut end = 64;
    for [start, size, count] in [programs, sections] {
        end = end.max(start.saturating_add(size.saturating_mul(count)));
    }
    for entry in (0..programs[2]).map(|index| programs[0].wrapping_add(index * programs[1])) {
        end = end.max(read(entry.wrapping_add(0x08), 8).saturating_add(read(entry.wrapping_add(0x20), 8)));
    }
    for entry in (0..sections[2]).map(|index| sections[0].wrapping_add(index * sections[1])) {
        // One of type `SHT_NOBITS` has a size, and no bytes in the file.
        if read(entry.wrapping_add(0x04), 4) != 8 {
            end =
                end.max(read(entry.wrapping_add(0x18), 8).saturating_add(read(entry.wrapping_add(0x20), 8)));
        }
    }
    end
}

/// A bundle ends with the last of its objects (Clang, "Offload Bundler").
fn bundle(read: &mut impl FnMut(u64, u64) -> u64) -> u64 {
    let (mut at, mut end) = (32u64, 32u64);
    for _ in 0..read(24, 8).min(1024) {
        let [start, size, name] = [0, 8, 16].map(|field| read(at + field, 8));
        at = at.saturating_add(24).saturating_add(name);
        end = end.max(start.saturating_add(size));
    }
    end.max(at)
}

/// A compressed bundle says its size, from version 2 of the format on.
fn compressed(read: &mut impl FnMut(u64, u64) -> u64) -> HipResult<u64> {
    match read(4, 2) {
        2 => Ok(read(8, 4)),
        3 => Ok(read(8, 8)),
        version => Err(refuse(&format!(
            "the bundle is compressed in version {version} of the format, which does not say how long it is; \
             compile with -mcompress-offload-version=3 or without compression"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use groundswell::kernels::Gemm;
    use groundswell::object::{BundleEntry, write_bundle};
    use groundswell::prelude::*;

    fn length_of(bytes: &[u8]) -> HipResult<usize> {
        length(&mut |offset| bytes.get(offset as usize).copied().unwrap_or(0xee))
    }

    #[test]
    fn objects_and_bundles_say_how_long_they_are() {
        let gemm = Gemm::new(64, 64, 32);
        let executable = gemm
            .kernel()
            .and_then(|kernel| kernel.compile(&gemm.options(Target::GFX942)))
            .expect("it is a ready kernel");
        let object = executable.object().to_vec();
        let mut followed = object.clone();
        followed.extend([0xaa; 64]);
        assert_eq!(length_of(&followed).expect("an object"), object.len());
        let entry = BundleEntry { target: executable.target_id(), bytes: &object };
        let bundle = write_bundle(&[entry, entry]);
        let mut followed = bundle.clone();
        followed.extend([0xaa; 64]);
        assert_eq!(length_of(&followed).expect("a bundle"), bundle.len());
    }

    #[test]
    fn other_bytes_are_no_image() {
        for bytes in [&b"\x7fELG"[..], b"hello", b"CCOB\x01\x00\x01\x00", b""] {
            assert_eq!(length_of(bytes).expect_err("no image").code, Code::InvalidImage);
        }
        let mut endless = b"\x7fELF".to_vec();
        endless.resize(64, 0xff);
        assert_eq!(length_of(&endless).expect_err("no image").code, Code::InvalidImage);
    }
}
