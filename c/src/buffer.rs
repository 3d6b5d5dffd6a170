//! Buffers: memory of a device, or somebody else's by DLPack.

use std::ffi::{c_char, c_int, c_void};

use groundswell::device::{Buffer, DLManagedTensor};

use crate::device::GroundswellDevice;
use crate::failure::{Failure, object, pointer, status};
use crate::text::{changed, dtype_named, free, object_of, text_of};

/// Memory of a device.
pub struct GroundswellBuffer {
    pub(crate) buffer: Buffer,
}

/// A buffer of so many bytes, whose contents are undefined.
///
/// # Safety
/// `device` is a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_buffer_new(
    device: *const GroundswellDevice,
    bytes: u64,
) -> *mut GroundswellBuffer {
    object(|| {
        // SAFETY: as the caller says.
        let device = &unsafe { object_of(device, "the device") }?.device;
        Ok(GroundswellBuffer { buffer: device.allocate(bytes)? })
    })
}

/// Declares what a buffer holds (`f16`, `bf16`, `f32`, ...), which launches then check.
///
/// # Safety
/// `buffer` is a buffer that nobody else uses meanwhile, and `dtype` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_buffer_set_dtype(
    buffer: *mut GroundswellBuffer,
    dtype: *const c_char,
) -> c_int {
    status(|| {
        // SAFETY: as the caller says.
        let (own, name) = unsafe { (changed(buffer, "the buffer")?, text_of(dtype, "the dtype")?) };
        own.buffer = own.buffer.clone().typed(dtype_named(name)?);
        Ok(())
    })
}

/// Writes bytes from the beginning of a buffer on.
///
/// # Safety
/// `buffer` is a buffer, and `bytes` bytes can be read at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_buffer_write(
    buffer: *const GroundswellBuffer,
    from: *const c_void,
    bytes: usize,
) -> c_int {
    status(|| {
        // SAFETY: as the caller says.
        let own = &unsafe { object_of(buffer, "the buffer") }?.buffer;
        if bytes == 0 {
            return Ok(());
        }
        if from.is_null() {
            return Err(Failure::null("the memory to write from"));
        }
        // SAFETY: as the caller says.
        let data = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
        Ok(own.write_bytes(data)?)
    })
}

/// Reads bytes from the beginning of a buffer on.
///
/// # Safety
/// `buffer` is a buffer, and `bytes` bytes can be written at `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_buffer_read(
    buffer: *const GroundswellBuffer,
    to: *mut c_void,
    bytes: usize,
) -> c_int {
    status(|| {
        // SAFETY: as the caller says.
        let own = &unsafe { object_of(buffer, "the buffer") }?.buffer;
        if bytes == 0 {
            return Ok(());
        }
        if to.is_null() {
            return Err(Failure::null("the memory to read to"));
        }
        if bytes as u64 > own.bytes() {
            return Err(format!("a buffer of {} bytes has no {bytes}", own.bytes()).into());
        }
        let data = own.read_bytes()?;
        // SAFETY: as the caller says; what was read is memory of its own.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to.cast::<u8>(), bytes) };
        Ok(())
    })
}

/// Bytes of a buffer; 0 for NULL.
///
/// # Safety
/// `buffer` is a buffer, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_buffer_bytes(buffer: *const GroundswellBuffer) -> u64 {
    // SAFETY: as the caller says.
    unsafe { buffer.as_ref() }.map_or(0, |own| own.buffer.bytes())
}

/// The address of a buffer on its device; 0 for NULL.
///
/// # Safety
/// `buffer` is a buffer, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_buffer_address(buffer: *const GroundswellBuffer) -> u64 {
    // SAFETY: as the caller says.
    unsafe { buffer.as_ref() }.map_or(0, |own| own.buffer.address())
}

/// A buffer over the memory of a DLPack tensor (`DLManagedTensor *`): of the GPU, or of the host for the
/// simulator. The tensor is released when the buffer has gone, and at once if this fails.
///
/// # Safety
/// `device` is a device, `tensor` is a tensor as DLPack describes it, which nobody else releases and whose
/// memory nobody else uses while the device does, nor is it given to another function of this interface
/// meanwhile. On the simulator the memory reaches to the end of its last word of four bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_buffer_from_dlpack(
    device: *const GroundswellDevice,
    tensor: *mut c_void,
) -> *mut GroundswellBuffer {
    object(|| {
        if tensor.is_null() {
            return Err(Failure::null("the tensor"));
        }
        // SAFETY: as the caller says.
        let Some(device) = (unsafe { device.as_ref() }) else {
            // SAFETY: nobody else releases it, as the caller says.
            unsafe { release(tensor.cast::<DLManagedTensor>()) };
            return Err(Failure::null("the device"));
        };
        let device = &device.device;
        // SAFETY: as the caller says.
        let (buffer, _) = unsafe { device.buffer_from_dlpack(tensor.cast::<DLManagedTensor>()) }?;
        Ok(GroundswellBuffer { buffer })
    })
}

/// Releases a tensor that nobody took.
///
/// # Safety
/// `tensor` is a tensor as DLPack describes it, which is released once.
unsafe fn release(tensor: *mut DLManagedTensor) {
    // SAFETY: as the caller says.
    unsafe {
        if let Some(deleter) = (*tensor).deleter {
            deleter(tensor);
        }
    }
}

/// A DLPack tensor (`DLManagedTensor *`) of that shape over a buffer of a GPU, whose dtype was declared. It
/// keeps the memory until its `deleter` is called.
///
/// # Safety
/// `buffer` is a buffer, and `shape` has `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_buffer_to_dlpack(
    buffer: *const GroundswellBuffer,
    shape: *const usize,
    rank: usize,
) -> *mut c_void {
    pointer(|| {
        // SAFETY: as the caller says.
        let own = &unsafe { object_of(buffer, "the buffer") }?.buffer;
        let shape = match (rank, shape.is_null()) {
            (0, _) => &[][..],
            (_, true) => return Err(Failure::null("the shape")),
            // SAFETY: as the caller says.
            (_, false) => unsafe { std::slice::from_raw_parts(shape, rank) },
        };
        Ok(own.to_dlpack(shape)?.cast::<c_void>())
    })
}

/// Frees a buffer; launches that are under way keep what they need.
///
/// # Safety
/// `buffer` is a buffer that is freed once, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_buffer_free(buffer: *mut GroundswellBuffer) {
    // SAFETY: as the caller says.
    unsafe { free(buffer) };
}
