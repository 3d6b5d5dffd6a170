//! Device memory with typed upload and download.

use std::sync::Arc;

use crate::float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0};
use crate::float16::{bf16, f16};

use super::device::Device;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::types::DType;

/// Element types that buffers hold, by their Rust type. 4-bit and 6-bit floats are not among them, as those
/// of a row share bytes: a tensor of the interpreter knows its rows.
pub trait DeviceElement: Copy {
    /// The dtype of the kernel language.
    const DTYPE: DType;
    /// Little-endian bytes of elements.
    fn to_bytes(elements: &[Self]) -> Vec<u8>;
    /// Elements from little-endian bytes; trailing bytes that are not a whole element are dropped.
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! elements {
    ($($ty:ty, $dtype:ident;)*) => {
        $(
            impl DeviceElement for $ty {
                const DTYPE: DType = DType::$dtype;
                fn to_bytes(elements: &[Self]) -> Vec<u8> {
                    elements.iter().flat_map(|e| e.to_le_bytes()).collect()
                }
                fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                    const SIZE: usize = size_of::<$ty>();
                    bytes
                        .chunks_exact(SIZE)
                        .map(|chunk| {
                            let mut raw = [0; SIZE];
                            raw.copy_from_slice(chunk);
                            <$ty>::from_le_bytes(raw)
                        })
                        .collect()
                }
            }
        )*
    };
}

elements! {
    f32, F32;
    f16, F16;
    bf16, Bf16;
    i32, I32;
    i16, I16;
    i64, I64;
    f64, F64;
    i8, I8;
    f8e4m3fnuz, F8E4M3Fnuz;
    f8e5m2fnuz, F8E5M2Fnuz;
    f8e4m3fn, F8E4M3Fn;
    f8e5m2, F8E5M2;
    f8e8m0, F8E8M0;
}

#[cfg(feature = "half")]
elements! {
    half::f16, F16;
    half::bf16, Bf16;
}

/// Memory of a device; given back when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Buffer {
    memory: Arc<BufferMemory>,
    dtype: Option<DType>,
}

struct BufferMemory {
    device: Device,
    address: u64,
    bytes: u64,
    owner: MemoryOwner,
}

/// Whose memory it is.
enum MemoryOwner {
    /// The device's.
    Device,
    /// Somebody else's, who is told when the device has done with it.
    Lender(Option<Box<dyn FnOnce() + Send + Sync>>),
}

impl std::fmt::Debug for BufferMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:#x} of {:?}", self.bytes, self.address, self.device)
    }
}

impl Drop for BufferMemory {
    fn drop(&mut self) {
        match &mut self.owner {
            MemoryOwner::Device => self.device.shared.backend.free(self.address, self.bytes),
            MemoryOwner::Lender(release) => {
                self.device.shared.backend.give_back(self.address, self.bytes);
                if let Some(release) = release.take() {
                    release();
                }
            }
        }
    }
}

impl Device {
    /// An uninitialised buffer of `bytes` bytes.
    pub fn allocate(&self, bytes: u64) -> Result<Buffer, Diagnostic> {
        let address = self.shared.backend.allocate(bytes)?;
        Ok(Buffer::of(self.clone(), address, bytes, MemoryOwner::Device))
    }

    /// A buffer with the given elements.
    pub fn upload<T: DeviceElement>(&self, elements: &[T]) -> Result<Buffer, Diagnostic> {
        let bytes: Vec<u8> = T::to_bytes(elements);
        let buffer = self.allocate(bytes.len() as u64)?;
        buffer.write_bytes(&bytes)?;
        Ok(buffer.typed(T::DTYPE))
    }
}

impl Buffer {
    fn of(device: Device, address: u64, bytes: u64, owner: MemoryOwner) -> Buffer {
        Buffer { memory: Arc::new(BufferMemory { device, address, bytes, owner }), dtype: None }
    }

    /// A buffer over memory of somebody else, who is told when the last clone is gone.
    pub(super) fn borrowed(
        device: Device,
        address: u64,
        bytes: u64,
        release: Box<dyn FnOnce() + Send + Sync>,
    ) -> Buffer {
        Buffer::of(device, address, bytes, MemoryOwner::Lender(Some(release)))
    }

    /// An error if so many bytes do not fit.
    pub(super) fn check_room(&self, bytes: u64) -> Result<(), Diagnostic> {
        if bytes > self.bytes() {
            let text = format!("{bytes} bytes do not fit into a buffer of {}", self.bytes());
            return Err(Diagnostic::invalid(text).help("allocate a larger buffer"));
        }
        Ok(())
    }

    /// An error if the buffer is on another device.
    pub(super) fn check_device(&self, device: &Device) -> Result<(), Diagnostic> {
        match Arc::ptr_eq(&self.device().shared, &device.shared) {
            true => Ok(()),
            false => {
                let text =
                    format!("the buffer is on another device than the stream: {}", self.device().name());
                Err(Diagnostic::invalid(text).help("use a stream of the buffer's device"))
            }
        }
    }

    /// The same memory, declared to hold elements of `dtype`, which launches check.
    #[must_use]
    pub fn typed(mut self, dtype: DType) -> Buffer {
        self.dtype = Some(dtype);
        self
    }

    /// Element type, if it was declared.
    pub fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// Address on the device.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// Writes bytes from the beginning.
    ///
    /// # Errors
    /// More bytes than the buffer has.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(), Diagnostic> {
        self.check_room(bytes.len() as u64)?;
        self.memory.device.shared.backend.write(self.address(), bytes)
    }

    /// All bytes.
    pub fn read_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        let mut bytes = vec![0; self.bytes() as usize];
        self.memory.device.shared.backend.read(self.address(), &mut bytes)?;
        Ok(bytes)
    }

    /// All elements.
    ///
    /// # Errors
    /// A buffer of another dtype.
    pub fn download<T: DeviceElement>(&self) -> Result<Vec<T>, Diagnostic> {
        if let Some(dtype) = self.dtype
            && dtype != T::DTYPE
        {
            let text = format!("the buffer holds {dtype}, not {}", T::DTYPE);
            return Err(Diagnostic::invalid(text).help("download the type that was uploaded"));
        }
        Ok(T::from_bytes(&self.read_bytes()?))
    }
}
