//! Memory and streams that somebody else owns: raw pointers, and tensors of DLPack (`dlpack`), by which
//! candle, burn, PyTorch and numpy hand theirs over.
//!
//! What others own cannot be checked, so this is the other place of the runtime with `unsafe`, each with its
//! reason.
#![allow(unsafe_code)]

mod dlpack;

use std::ffi::c_void;

use super::buffer::Buffer;
use super::device::Device;
use super::hip::HipStream;
use super::stream::Stream;
use crate::ir::diagnostic::Diagnostic;

pub use dlpack::{DLDataType, DLDevice, DLManagedTensor, DLTensor};

impl Device {
    /// A buffer over memory that somebody else owns and frees: device memory of this GPU, or memory of the
    /// host for the simulator, at an address that is a multiple of 4.
    ///
    /// # Errors
    /// The simulator has memory at that address already, or it is not a multiple of 4.
    ///
    /// # Safety
    /// The `bytes` bytes at `address` may be read and written by the device until the buffer and its clones
    /// are dropped, and on the simulator nothing in this process holds a Rust reference to them meanwhile.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let device = Device::simulator(Target::GFX942);
    /// let mut numbers = vec![1f32, 2.0];
    /// let address = numbers.as_mut_ptr() as u64;
    /// // SAFETY: `numbers` outlives the buffer, and is not touched before that is dropped.
    /// let buffer = unsafe { device.buffer_from_raw(address, 8) }?.typed(F32);
    /// assert_eq!(buffer.download::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    pub unsafe fn buffer_from_raw(&self, address: u64, bytes: u64) -> Result<Buffer, Diagnostic> {
        // SAFETY: the caller vouches for it.
        unsafe { self.borrow(address, bytes, Box::new(|| ())) }
    }

    /// The same, with what is called once the device has done with the memory.
    ///
    /// # Safety
    /// As [`buffer_from_raw`](Self::buffer_from_raw), until `release` is called.
    unsafe fn borrow(
        &self,
        address: u64,
        bytes: u64,
        release: Box<dyn FnOnce() + Send + Sync>,
    ) -> Result<Buffer, Diagnostic> {
        #[cfg(feature = "compiler")]
        if self.is_simulator() && bytes > 0 {
            // SAFETY: the caller vouches for the memory; the buffer gives it back when it is dropped.
            self.with_simulator(|simulator| unsafe { simulator.lend(address as *mut u8, bytes) })?;
        }
        Ok(Buffer::borrowed(self.clone(), address, bytes, release))
    }

    /// A stream that somebody else has made (`hipStream_t`), such as that of a framework; it is left to its
    /// owner. On the simulator, which has none, any value gives a stream.
    ///
    /// # Safety
    /// On a GPU it is a stream of this device, or null for the default one, and lives as long as what is
    /// returned.
    pub unsafe fn stream_from_raw(&self, stream: *mut c_void) -> Stream {
        // SAFETY: the caller vouches for it.
        let hip = self.shared.backend.hip().map(|device| unsafe { HipStream::borrowed(device, stream) });
        Stream::of_hip(self, hip)
    }

    /// A buffer over the memory of a DLPack tensor, which is released once the buffer and its clones are
    /// dropped; with the tensor's shape. On a GPU tensors of that GPU, on the simulator tensors of the host.
    ///
    /// # Errors
    /// The tensor is of another device, its elements do not lie row after row, or their type is none of the
    /// kernel language. It is released then as well.
    ///
    /// # Safety
    /// `tensor` points to a tensor as DLPack describes it, which nobody else releases, and whose memory
    /// nobody else uses while the device does.
    pub unsafe fn buffer_from_dlpack(
        &self,
        tensor: *mut DLManagedTensor,
    ) -> Result<(Buffer, Vec<usize>), Diagnostic> {
        // SAFETY: the caller vouches for it.
        unsafe { dlpack::import(self, tensor) }
    }
}

impl Buffer {
    /// The buffer as a DLPack tensor of that shape, which keeps its memory until it is released. Only of
    /// GPUs: other libraries cannot reach the memory of the simulator.
    ///
    /// # Errors
    /// The device is the simulator, the dtype was not declared or has no counterpart, or the shape has
    /// another number of elements.
    pub fn to_dlpack(&self, shape: &[usize]) -> Result<*mut DLManagedTensor, Diagnostic> {
        dlpack::export(self, shape)
    }
}
