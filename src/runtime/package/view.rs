//! Buffers as tensors: what the typed functions of a package take.

use std::marker::PhantomData;

use crate::ir::diagnostic::Diagnostic;
use crate::runtime::buffer::{Buffer, DeviceElement};

/// A buffer as a tensor with elements of type `T` and `RANK` dimensions, outermost first.
///
/// # Example
/// ```
/// # #[cfg(feature = "compiler")] {
/// use groundswell::prelude::*;
/// let device = Device::open()?;
/// let buffer = device.upload(&[0f32; 6])?;
/// let matrix = buffer.view::<f32, 2>([2, 3])?;
/// assert_eq!(matrix.shape(), [2, 3]);
/// assert!(buffer.view::<f32, 2>([2, 4]).is_err());
/// assert!(buffer.view::<i32, 1>([6]).is_err());
/// # }
/// # Ok::<(), groundswell::diagnostic::Diagnostic>(())
/// ```
#[derive(Debug)]
pub struct TensorView<'a, T, const RANK: usize> {
    buffer: &'a Buffer,
    shape: [u32; RANK],
    element: PhantomData<T>,
}

impl<T, const RANK: usize> Copy for TensorView<'_, T, RANK> {}

impl<T, const RANK: usize> Clone for TensorView<'_, T, RANK> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Buffer {
    /// The buffer as a tensor of that shape.
    ///
    /// # Errors
    /// It was declared to hold elements of another type, or has fewer.
    pub fn view<T: DeviceElement, const RANK: usize>(
        &self,
        shape: [u32; RANK],
    ) -> Result<TensorView<'_, T, RANK>, Diagnostic> {
        if let Some(dtype) = self.dtype()
            && dtype != T::DTYPE
        {
            let text = format!("the buffer holds {dtype}, not {}", T::DTYPE);
            return Err(Diagnostic::invalid(text).help("view it as what was uploaded"));
        }
        let elements = shape.iter().try_fold(1u64, |all, &size| all.checked_mul(size.into()));
        let needed = elements.and_then(|count| count.checked_mul(T::DTYPE.bytes().into()));
        if needed.is_none_or(|needed| needed > self.bytes()) {
            let text = format!("a tensor {shape:?} of {} does not fit into {} bytes", T::DTYPE, self.bytes());
            return Err(Diagnostic::invalid(text).help("allocate a larger buffer, or view less of it"));
        }
        Ok(TensorView { buffer: self, shape, element: PhantomData })
    }
}

impl<'a, T, const RANK: usize> TensorView<'a, T, RANK> {
    /// The buffer.
    pub fn buffer(&self) -> &'a Buffer {
        self.buffer
    }

    /// The sizes of the dimensions, outermost first.
    pub fn shape(&self) -> [u32; RANK] {
        self.shape
    }

    /// Checks sizes that are known by now: for each dimension its name and, where it is known, its size. What
    /// the functions of a package call.
    ///
    /// # Errors
    /// A size is another one.
    pub fn expect(&self, name: &str, sizes: [(&str, Option<u32>); RANK]) -> Result<(), Diagnostic> {
        for (at, (&size, (dim, known))) in self.shape.iter().zip(sizes).enumerate() {
            let Some(known) = known.filter(|&known| known != size) else { continue };
            let text = format!("dimension {at} ({dim}) of `{name}` is {size}, and {dim} is {known}");
            return Err(match dim.parse::<u32>() {
                Ok(_) => Diagnostic::invalid(format!(
                    "dimension {at} of `{name}` is {size}, and was built as {known}"
                ))
                .help("pass a tensor of that shape, or build the kernel with the size left open"),
                Err(_) => Diagnostic::invalid(text).help("pass tensors whose shapes go together"),
            });
        }
        Ok(())
    }
}
