//! How long an image is: HIP's functions take code objects and bundles by their addresses alone.

use groundswell::object::{ContainerKind, MAX_OBJECT_BYTES};

use crate::error::{Code, HipError, HipResult};
use crate::ffi::{In, host_bytes};

/// What is said of bytes that are neither an object nor a bundle.
const NO_IMAGE: &str = "the image is neither a code object nor an offload bundle";

fn refuse(reason: &str) -> HipError {
    HipError::new(Code::InvalidImage, reason)
}

/// The bytes at the beginning of an image that show what it is.
pub const BEGIN: usize = ContainerKind::BEGIN;

/// An error unless bytes begin as an object for AMD's chips or a bundle does.
///
/// # Errors
/// They do not.
pub fn check_begin(image: &[u8]) -> HipResult {
    ContainerKind::of(image).map(|_| ()).ok_or_else(|| refuse(NO_IMAGE))
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
    let kind = ContainerKind::at(byte).ok_or_else(|| refuse(NO_IMAGE))?;
    let bytes = kind.extent(byte).map_err(|version| {
        refuse(&format!(
            "the bundle is compressed in version {version} of the format, which does not say how long it is; \
             compile with -mcompress-offload-version=3 or without compression"
        ))
    })?;
    usize::try_from(bytes)
        .ok()
        .filter(|&bytes| bytes <= MAX_OBJECT_BYTES)
        .ok_or_else(|| refuse("the image says of itself that it is larger than any is read"))
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
