//! Tensors of the reference interpreter on their way to devices and back: whole buffers, elements with
//! strides, scalars.

use std::ops::Range;

use super::buffer::Buffer;
use super::device::Device;
use super::launch::ScalarValue;
use super::placement::BufferPlacement;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::interpreter::{Data, Tensor};

/// The number of elements that are copied at a time.
const PART: usize = 1 << 18;

/// A tensor in parts: elements, and the byte at which they begin.
fn parts(tensor: &Tensor) -> impl Iterator<Item = (Range<usize>, u64)> + use<> {
    let (count, dtype) = (tensor.data().len(), tensor.dtype());
    let (elements, bytes) = match dtype.packing() {
        // They share bytes with others of their row.
        Some(packing) => {
            let length = tensor.shape().last().map_or(1, |&length| length.max(1));
            let rows = (PART / length).max(1);
            let units = length.div_ceil(packing.elements as usize);
            (rows * length, rows * units * packing.bytes() as usize)
        }
        None => (PART, PART * dtype.bytes() as usize),
    };
    let starts = (0u64..).step_by(bytes);
    (0..count).step_by(elements).zip(starts).map(move |(at, byte)| (at..count.min(at + elements), byte))
}

impl Device {
    /// A buffer with the elements of a tensor.
    pub fn upload_tensor(&self, tensor: &Tensor) -> Result<Buffer, Diagnostic> {
        let buffer = self.allocate(tensor.byte_count())?;
        buffer.write_tensor(tensor)?;
        Ok(buffer.typed(tensor.dtype()))
    }
}

impl Buffer {
    /// Writes a tensor from the beginning, part by part.
    fn write_tensor(&self, tensor: &Tensor) -> Result<(), Diagnostic> {
        let mut bytes = Vec::new();
        for (elements, start) in parts(tensor) {
            tensor.bytes_of(elements, &mut bytes);
            self.device().shared.backend.write(self.address() + start, &bytes)?;
        }
        Ok(())
    }

    /// True if it holds exactly the elements of a tensor.
    pub(super) fn equals(&self, tensor: &Tensor) -> Result<bool, Diagnostic> {
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        for (elements, start) in parts(tensor) {
            tensor.bytes_of(elements, &mut expected);
            found.resize(expected.len(), 0);
            self.device().shared.backend.read(self.address() + start, &mut found)?;
            if expected != found {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl ScalarValue {
    /// The only element of a tensor without dimensions, if a scalar has its dtype.
    pub(super) fn of_tensor(tensor: &Tensor) -> Option<ScalarValue> {
        match tensor.data() {
            Data::F32(elements) => elements.first().map(|&value| ScalarValue::F32(value)),
            Data::F64(elements) => elements.first().map(|&value| ScalarValue::F64(value)),
            Data::I32(elements) => elements.first().map(|&value| ScalarValue::I32(value)),
            Data::I64(elements) => elements.first().map(|&value| ScalarValue::I64(value)),
            _ => None,
        }
    }

    /// The value for the reference interpreter.
    pub fn to_tensor(self) -> Tensor {
        match self {
            ScalarValue::F32(value) => Tensor::scalar(value),
            ScalarValue::F64(value) => Tensor::scalar(value),
            ScalarValue::I32(value) => Tensor::scalar(value),
            ScalarValue::I64(value) => Tensor::scalar(value),
        }
    }
}

impl BufferPlacement {
    /// The bytes of a buffer with the elements of a row-major `tensor`; what lies between them is a pattern
    /// that is no usual number.
    pub(super) fn spread(&self, tensor: &Tensor) -> Result<Vec<u8>, Diagnostic> {
        let width = tensor.dtype().bytes() as usize;
        let span = self.span().and_then(|span| usize::try_from(span).ok()?.checked_mul(width));
        let span = span.ok_or_else(|| Diagnostic::invalid("a buffer is too large for this machine"))?;
        let mut bytes: Vec<u8> = (0..span).map(|at| 0xa5 ^ at as u8).collect();
        let (mut own, mut index) = (Vec::new(), vec![0u64; self.sizes.len()]);
        tensor.bytes_of(0..tensor.data().len(), &mut own);
        for element in own.chunks_exact(width) {
            let place: u64 = index.iter().zip(&self.strides).map(|(&at, &stride)| at * stride).sum();
            let place = place as usize * width;
            if let Some(slot) = bytes.get_mut(place..place + width) {
                slot.copy_from_slice(element);
            }
            for (at, &size) in index.iter_mut().zip(&self.sizes).rev() {
                *at += 1;
                if *at < size {
                    break;
                }
                *at = 0;
            }
        }
        Ok(bytes)
    }

    /// The elements in the bytes of a buffer, as a row-major tensor.
    pub(super) fn gathered(&self, like: &Tensor, bytes: &[u8]) -> Result<Tensor, Diagnostic> {
        let width = like.dtype().bytes() as usize;
        let (mut own, mut index) = (Vec::new(), vec![0u64; self.sizes.len()]);
        for _ in 0..like.data().len() {
            let place: u64 = index.iter().zip(&self.strides).map(|(&at, &stride)| at * stride).sum();
            let place = place as usize * width;
            own.extend_from_slice(bytes.get(place..place + width).unwrap_or_default());
            for (at, &size) in index.iter_mut().zip(&self.sizes).rev() {
                *at += 1;
                if *at < size {
                    break;
                }
                *at = 0;
            }
        }
        Tensor::from_bytes(like.shape(), like.dtype(), &own)
    }
}
