//! DLPack: the structure by which libraries hand over tensors (dlpack.h of version 1.1, `DLManagedTensor`).

use std::ffi::c_void;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::types::DType;
use crate::runtime::buffer::Buffer;
use crate::runtime::device::Device;

/// Where a tensor is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct DLDevice {
    /// `kDLCPU` is 1, `kDLROCM` 10, `kDLROCMHost` 11.
    pub device_type: i32,
    /// Which one of several.
    pub device_id: i32,
}

/// The type of elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct DLDataType {
    /// Integers 0, unsigned ones 1, floats 2, bf16 4, 8-bit floats from 7 on.
    pub code: u8,
    /// Bits of one.
    pub bits: u8,
    /// One, unless elements are vectors.
    pub lanes: u16,
}

/// A tensor.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct DLTensor {
    /// Its memory.
    pub data: *mut c_void,
    /// Where that is.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of elements.
    pub dtype: DLDataType,
    /// As many sizes.
    pub shape: *mut i64,
    /// As many strides, in elements; null if the elements lie row after row.
    pub strides: *mut i64,
    /// Where the first element is, in bytes from `data`.
    pub byte_offset: u64,
}

/// A tensor that is released once nobody needs it.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// Whatever the owner needs.
    pub manager_ctx: *mut c_void,
    /// Releases it.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// DLPack's code and bits of a dtype: elements of whole bytes alone.
const DTYPES: &[(DType, u8, u8)] = &[
    (DType::I8, 0, 8),
    (DType::I16, 0, 16),
    (DType::I32, 0, 32),
    (DType::I64, 0, 64),
    (DType::F16, 2, 16),
    (DType::F32, 2, 32),
    (DType::F64, 2, 64),
    (DType::Bf16, 4, 16),
    (DType::F8E4M3Fn, 10, 8),
    (DType::F8E4M3Fnuz, 11, 8),
    (DType::F8E5M2, 12, 8),
    (DType::F8E5M2Fnuz, 13, 8),
    (DType::F8E8M0, 14, 8),
];

const CPU: i32 = 1;
const ROCM: i32 = 10;
const ROCM_HOST: i32 = 11;

/// A tensor that was handed to us, released when this is dropped.
struct Imported(*mut DLManagedTensor);

// SAFETY: DLPack lets a consumer release a tensor from any thread.
unsafe impl Send for Imported {}
// SAFETY: nothing is done with it through a shared reference.
unsafe impl Sync for Imported {}

impl Drop for Imported {
    fn drop(&mut self) {
        // SAFETY: it is the tensor that the caller of `import` has handed over, and this is its only release.
        unsafe {
            if let Some(release) = (*self.0).deleter {
                release(self.0);
            }
        }
    }
}

/// The values that a pointer of a tensor leads to.
///
/// # Safety
/// There are that many.
unsafe fn values(pointer: *const i64, count: usize) -> Vec<i64> {
    // SAFETY: the caller vouches for it.
    (0..count).map(|at| unsafe { pointer.add(at).read() }).collect()
}

/// # Safety
/// As `Device::buffer_from_dlpack`.
pub(super) unsafe fn import(
    device: &Device,
    managed: *mut DLManagedTensor,
) -> Result<(Buffer, Vec<usize>), Diagnostic> {
    if managed.is_null() {
        return Err(Diagnostic::invalid("the DLPack tensor is null").help("pass what `__dlpack__` has made"));
    }
    let imported = Imported(managed);
    // SAFETY: the caller vouches for the tensor.
    let tensor = unsafe { (*managed).dl_tensor };
    let dimensions = usize::try_from(tensor.ndim).map_err(|_| {
        Diagnostic::invalid(format!("a DLPack tensor cannot have {} dimensions", tensor.ndim))
            .help("pass what `__dlpack__` has made")
    })?;
    // SAFETY: a tensor has as many sizes, and strides if the pointer is not null.
    let shape = unsafe { values(tensor.shape, dimensions) };
    // SAFETY: as above.
    let strides = (!tensor.strides.is_null()).then(|| unsafe { values(tensor.strides, dimensions) });
    check_place(device, tensor.device)?;
    let dtype = dtype_of(tensor.dtype)?;
    let sizes: Option<Vec<usize>> = shape.iter().map(|&size| usize::try_from(size).ok()).collect();
    let elements =
        sizes.as_ref().and_then(|sizes| sizes.iter().try_fold(1u64, |n, &s| n.checked_mul(s as u64)));
    let bytes = elements.and_then(|elements| elements.checked_mul(dtype.bytes().into()));
    let (Some(sizes), Some(bytes)) = (sizes, bytes) else {
        return Err(
            Diagnostic::invalid(format!("{shape:?} is no shape of a tensor")).help("pass another tensor")
        );
    };
    if strides.is_some_and(|strides| !lies_in_rows(&shape, &strides)) {
        return Err(Diagnostic::invalid("the elements of the DLPack tensor do not lie row after row")
            .help("pass a contiguous copy"));
    }
    let address = (tensor.data as u64).wrapping_add(tensor.byte_offset);
    // SAFETY: the caller vouches for the memory, which is the tensor's until that is released.
    let buffer = unsafe { device.borrow(address, bytes, Box::new(move || drop(imported))) }?;
    Ok((buffer.typed(dtype), sizes))
}

/// Whether strides are those of rows that follow each other; those of dimensions of one element do not
/// matter.
fn lies_in_rows(shape: &[i64], strides: &[i64]) -> bool {
    let mut next = 1;
    let mut in_rows = true;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        in_rows &= size == 1 || stride == next;
        next *= size;
    }
    in_rows || shape.contains(&0)
}

fn check_place(device: &Device, place: DLDevice) -> Result<(), Diagnostic> {
    let fits = match device.hip_ordinal() {
        None => place.device_type == CPU || place.device_type == ROCM_HOST,
        Some(ordinal) => place == DLDevice { device_type: ROCM, device_id: ordinal },
    };
    match fits {
        true => Ok(()),
        false => {
            let DLDevice { device_type, device_id } = place;
            let text =
                format!("the DLPack tensor is on device {device_type}:{device_id}, not on {}", device.name());
            Err(Diagnostic::invalid(text)
                .help("the simulator takes tensors of the host (1), a GPU its own (10)"))
        }
    }
}

fn dtype_of(dtype: DLDataType) -> Result<DType, Diagnostic> {
    let known =
        DTYPES.iter().find(|&&(_, code, bits)| (code, bits, 1) == (dtype.code, dtype.bits, dtype.lanes));
    known.map(|&(dtype, ..)| dtype).ok_or_else(|| {
        let DLDataType { code, bits, lanes } = dtype;
        let text =
            format!("elements of DLPack's type {code} with {bits} bits and {lanes} lanes are not known");
        Diagnostic::invalid(text).help("convert the tensor to a dtype of the kernel language")
    })
}

/// What an exported tensor keeps.
struct Exported {
    _buffer: Buffer,
    tensor: DLManagedTensor,
    shape: Vec<i64>,
}

pub(super) fn export(buffer: &Buffer, shape: &[usize]) -> Result<*mut DLManagedTensor, Diagnostic> {
    let Some(device_id) = buffer.device().hip_ordinal() else {
        return Err(Diagnostic::invalid("other libraries cannot reach the memory of the simulator")
            .help("download the buffer"));
    };
    let known = DTYPES.iter().find(|&&(dtype, ..)| Some(dtype) == buffer.dtype());
    let Some(&(dtype, code, bits)) = known else {
        return Err(match buffer.dtype() {
            Some(dtype) => Diagnostic::invalid(format!("DLPack has no type for {dtype}"))
                .help("hand over the bytes as elements of another dtype"),
            None => Diagnostic::invalid("the buffer does not say what its elements are")
                .help("say it (`Buffer::typed`), or upload elements instead of bytes"),
        });
    };
    let elements = shape.iter().try_fold(u64::from(dtype.bytes()), |n, &size| n.checked_mul(size as u64));
    if elements != Some(buffer.bytes()) {
        let text = format!("{shape:?} of {dtype} is not a buffer of {} bytes", buffer.bytes());
        return Err(Diagnostic::invalid(text).help("pass the shape of the whole buffer"));
    }
    let tensor = DLTensor {
        data: buffer.address() as *mut c_void,
        device: DLDevice { device_type: ROCM, device_id },
        ndim: shape.len() as i32,
        dtype: DLDataType { code, bits, lanes: 1 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let tensor =
        DLManagedTensor { dl_tensor: tensor, manager_ctx: std::ptr::null_mut(), deleter: Some(release) };
    let shape = shape.iter().map(|&size| size as i64).collect();
    let exported = Box::leak(Box::new(Exported { _buffer: buffer.clone(), tensor, shape }));
    exported.tensor.dl_tensor.shape = exported.shape.as_mut_ptr();
    exported.tensor.manager_ctx = (&raw mut *exported).cast();
    Ok(&raw mut exported.tensor)
}

/// Releases an exported tensor.
unsafe extern "C" fn release(tensor: *mut DLManagedTensor) {
    // SAFETY: a consumer passes the tensor that `export` has made, once; its context is the box around it.
    unsafe { drop(Box::from_raw((*tensor).manager_ctx.cast::<Exported>())) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::target::Target;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    static RELEASED: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn count(_: *mut DLManagedTensor) {
        RELEASED.fetch_add(1, Relaxed);
    }

    #[test]
    fn tensors_of_the_host_are_those_of_the_simulator_until_they_are_released() {
        let device = Device::simulator(Target::GFX942);
        let mut data = vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let (mut shape, mut strides) = ([2i64, 3], [3i64, 1]);
        let mut managed = DLManagedTensor {
            dl_tensor: DLTensor {
                data: data.as_mut_ptr().cast(),
                device: DLDevice { device_type: CPU, device_id: 0 },
                ndim: 2,
                dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
                shape: shape.as_mut_ptr(),
                strides: strides.as_mut_ptr(),
                byte_offset: 0,
            },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(count),
        };
        let mut import = |change: fn(&mut DLManagedTensor)| {
            change(&mut managed);
            // SAFETY: the tensor and its memory outlive the buffer, and nothing else uses them meanwhile.
            unsafe { import(&device, &raw mut managed) }
        };
        let (buffer, found) = import(|_| ()).expect("it is a tensor of the host");
        assert_eq!(
            (found, buffer.download::<f32>().expect("it is f32")),
            (vec![2, 3], vec![1., 2., 3., 4., 5., 6.])
        );
        assert!(buffer.to_dlpack(&[6]).is_err());
        assert_eq!(RELEASED.load(Relaxed), 0);
        drop(buffer);
        assert_eq!(RELEASED.load(Relaxed), 1);
        let wrong = [
            import(|tensor| tensor.dl_tensor.device.device_type = 2),
            import(|tensor| {
                tensor.dl_tensor.device.device_type = CPU;
                tensor.dl_tensor.dtype.lanes = 4;
            }),
            import(|tensor| {
                tensor.dl_tensor.dtype.lanes = 1;
                // SAFETY: the tensor has two strides.
                unsafe { *tensor.dl_tensor.strides = 4 };
            }),
        ];
        let messages = wrong.map(|result| result.err().map_or(String::new(), |error| error.to_string()));
        for (message, says) in messages.iter().zip(["on device 2:0", "4 lanes", "row after row"]) {
            assert!(message.contains(says), "{message}");
        }
        assert_eq!(RELEASED.load(Relaxed), 4);
    }
}
