//! Tensors of the reference interpreter: a shape and typed elements, row-major.

use std::ops::Range;

use crate::float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0};
use crate::float16::{bf16, f16};
use crate::small_float::{f4e2m1, f6e2m3, f6e3m2, packed_rows, unpacked_rows};
use crate::workers;

use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::node::Constant;
use crate::ir::types::DType;

/// The most elements that one tensor may have: a fault beyond this, instead of an exhausted machine.
pub const MAX_ELEMENTS: usize = 1 << 28;

/// A whole tensor, row-major. It always holds as many elements as its shape says.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Data,
}

/// The elements of a tensor, in the storage of their dtype.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Data {
    F32(Vec<f32>),
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
    I32(Vec<i32>),
    I16(Vec<i16>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    I8(Vec<i8>),
    I1(Vec<bool>),
    F8E4M3Fnuz(Vec<f8e4m3fnuz>),
    F8E5M2Fnuz(Vec<f8e5m2fnuz>),
    F8E4M3Fn(Vec<f8e4m3fn>),
    F8E5M2(Vec<f8e5m2>),
    F8E8M0(Vec<f8e8m0>),
    F4E2M1(Vec<f4e2m1>),
    F6E2M3(Vec<f6e2m3>),
    F6E3M2(Vec<f6e3m2>),
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values are elements of one dtype.
pub trait TensorElement: Copy + Default + sealed::Sealed {
    /// The dtype.
    const DTYPE: DType;
    /// Elements as tensor data.
    fn into_data(elements: Vec<Self>) -> Data;
    /// The elements, if the data is of this type.
    fn slice(data: &Data) -> Option<&[Self]>;
}

macro_rules! elements {
    ($($type:ty, $variant:ident;)*) => {
        $(
            impl sealed::Sealed for $type {}

            impl TensorElement for $type {
                const DTYPE: DType = DType::$variant;
                fn into_data(elements: Vec<Self>) -> Data {
                    Data::$variant(elements)
                }
                fn slice(data: &Data) -> Option<&[Self]> {
                    match data {
                        Data::$variant(elements) => Some(elements),
                        _ => None,
                    }
                }
            }
        )*

        impl Data {
            /// The dtype of the elements.
            pub fn dtype(&self) -> DType {
                match self {
                    $(Data::$variant(_) => DType::$variant,)*
                }
            }

            /// How many elements there are.
            pub fn len(&self) -> usize {
                match self {
                    $(Data::$variant(elements) => elements.len(),)*
                }
            }

            /// True when there is no element.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
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
    bool, I1;
    f8e4m3fnuz, F8E4M3Fnuz;
    f8e5m2fnuz, F8E5M2Fnuz;
    f8e4m3fn, F8E4M3Fn;
    f8e5m2, F8E5M2;
    f8e8m0, F8E8M0;
    f4e2m1, F4E2M1;
    f6e2m3, F6E2M3;
    f6e3m2, F6E3M2;
}

/// Evaluates `$body` with `$elements` bound to the vector of `$data`, whatever its dtype.
macro_rules! for_each_dtype {
    ($data:expr, $elements:ident => $body:expr) => {
        match $data {
            $crate::ir::interpreter::Data::F32($elements) => $body,
            $crate::ir::interpreter::Data::F16($elements) => $body,
            $crate::ir::interpreter::Data::Bf16($elements) => $body,
            $crate::ir::interpreter::Data::I32($elements) => $body,
            $crate::ir::interpreter::Data::I16($elements) => $body,
            $crate::ir::interpreter::Data::I64($elements) => $body,
            $crate::ir::interpreter::Data::F64($elements) => $body,
            $crate::ir::interpreter::Data::I8($elements) => $body,
            $crate::ir::interpreter::Data::I1($elements) => $body,
            $crate::ir::interpreter::Data::F8E4M3Fnuz($elements) => $body,
            $crate::ir::interpreter::Data::F8E5M2Fnuz($elements) => $body,
            $crate::ir::interpreter::Data::F8E4M3Fn($elements) => $body,
            $crate::ir::interpreter::Data::F8E5M2($elements) => $body,
            $crate::ir::interpreter::Data::F8E8M0($elements) => $body,
            $crate::ir::interpreter::Data::F4E2M1($elements) => $body,
            $crate::ir::interpreter::Data::F6E2M3($elements) => $body,
            $crate::ir::interpreter::Data::F6E3M2($elements) => $body,
        }
    };
}
pub(super) use for_each_dtype;

/// Number of elements of a shape, if a tensor may have that many.
pub(super) fn count(shape: &[usize]) -> Result<usize, Diagnostic> {
    let count = shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent));
    count.filter(|&n| n <= MAX_ELEMENTS).ok_or_else(|| {
        let text = format!("a tensor of shape {shape:?} has more than {MAX_ELEMENTS} elements");
        Diagnostic::new(Kind::Limit, text).help("check the kernel at a smaller size")
    })
}

impl Tensor {
    /// A tensor of the given elements, row-major.
    ///
    /// # Errors
    /// When the number of elements is not the product of the shape, or is too large.
    pub fn new(shape: &[usize], data: Data) -> Result<Tensor, Diagnostic> {
        let expected = count(shape)?;
        if data.len() != expected {
            let text = format!("{} elements cannot fill the shape {shape:?} of {expected}", data.len());
            return Err(Diagnostic::invalid(text));
        }
        Ok(Tensor { shape: shape.to_vec(), data })
    }

    /// A tensor with a copy of `elements`, whose type gives the dtype.
    ///
    /// # Errors
    /// As [`Tensor::new`].
    pub fn from_slice<T: TensorElement>(shape: &[usize], elements: &[T]) -> Result<Tensor, Diagnostic> {
        Tensor::new(shape, T::into_data(elements.to_vec()))
    }

    /// One number as a tensor without dimensions: a scalar argument.
    ///
    /// # Example
    /// ```
    /// use groundswell::interpreter::Tensor;
    /// assert_eq!(Tensor::scalar(1.5f32).as_slice::<f32>(), Some(&[1.5][..]));
    /// ```
    pub fn scalar<T: TensorElement>(value: T) -> Tensor {
        Tensor { shape: Vec::new(), data: T::into_data(vec![value]) }
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// When it would be too large.
    pub fn zeros(shape: &[usize], dtype: DType) -> Result<Tensor, Diagnostic> {
        let constant = if dtype.is_float() { Constant::Float(0.0) } else { Constant::Integer(0) };
        Tensor::splat(shape, dtype, constant)
    }

    /// A tensor whose elements all are `constant`, as [`Constant::bits`] says.
    ///
    /// # Errors
    /// When the constant is not a value of the dtype, or the tensor would be too large.
    pub fn splat(shape: &[usize], dtype: DType, constant: Constant) -> Result<Tensor, Diagnostic> {
        let n = count(shape)?;
        let bits = constant.bits(dtype)?;
        let data = data_of(dtype, &vec![bits; n]);
        Ok(Tensor { shape: shape.to_vec(), data })
    }

    /// A tensor of reproducible test data. Integers range over the whole dtype. Floats are sixteenths from -1
    /// to 1, so that wider dtypes hold them, and sums of up to 65536 products of two of them are exact in
    /// f32 in whatever order they are added; those of `f8e8m0` are powers of two, and of 4-bit and
    /// 6-bit floats any.
    ///
    /// # Errors
    /// When the tensor would be too large.
    pub fn random(shape: &[usize], dtype: DType, seed: u64) -> Result<Tensor, Diagnostic> {
        let n = count(shape)?;
        let sixteenths: [f32; 33] = std::array::from_fn(|i| i as f32 / 16.0 - 1.0);
        let sixteenth = |bits: u64| ((bits >> 32) % 33) as usize;
        let data = match dtype {
            DType::F32 => Data::F32(numbers(n, seed, |bits| sixteenths[sixteenth(bits)])),
            DType::F16 => {
                let sixteenths = sixteenths.map(f16::from_f32);
                Data::F16(numbers(n, seed, |bits| sixteenths[sixteenth(bits)]))
            }
            DType::Bf16 => {
                let sixteenths = sixteenths.map(bf16::from_f32);
                Data::Bf16(numbers(n, seed, |bits| sixteenths[sixteenth(bits)]))
            }
            DType::I32 => Data::I32(numbers(n, seed, |bits| (bits >> 32) as i32)),
            DType::I16 => Data::I16(numbers(n, seed, |bits| (bits >> 48) as i16)),
            DType::I64 => Data::I64(numbers(n, seed, |bits| bits as i64)),
            DType::F64 => Data::F64(numbers(n, seed, |bits| f64::from(sixteenths[sixteenth(bits)]))),
            DType::I8 => Data::I8(numbers(n, seed, |bits| (bits >> 56) as i8)),
            DType::I1 => Data::I1(numbers(n, seed, |bits| bits >> 63 == 1)),
            DType::F8E4M3Fnuz => {
                Data::F8E4M3Fnuz(numbers(n, seed, |bits| f8e4m3fnuz::from_f32(sixteenths[sixteenth(bits)])))
            }
            DType::F8E5M2Fnuz => {
                Data::F8E5M2Fnuz(numbers(n, seed, |bits| f8e5m2fnuz::from_f32(sixteenths[sixteenth(bits)])))
            }
            DType::F8E4M3Fn => {
                Data::F8E4M3Fn(numbers(n, seed, |bits| f8e4m3fn::from_f32(sixteenths[sixteenth(bits)])))
            }
            DType::F8E5M2 => {
                Data::F8E5M2(numbers(n, seed, |bits| f8e5m2::from_f32(sixteenths[sixteenth(bits)])))
            }
            // Powers of two from a 256th to 256.
            DType::F8E8M0 => {
                Data::F8E8M0(numbers(n, seed, |bits| f8e8m0::from_bits(119 + (bits >> 32) as u8 % 17)))
            }
            // All of them.
            DType::F4E2M1 => Data::F4E2M1(numbers(n, seed, |bits| f4e2m1::from_bits((bits >> 60) as u8))),
            DType::F6E2M3 => Data::F6E2M3(numbers(n, seed, |bits| f6e2m3::from_bits((bits >> 58) as u8))),
            DType::F6E3M2 => Data::F6E3M2(numbers(n, seed, |bits| f6e3m2::from_bits((bits >> 58) as u8))),
        };
        Ok(Tensor { shape: shape.to_vec(), data })
    }

    /// A tensor from the bytes of a buffer: little-endian elements, row-major; `i1` takes a byte, and
    /// each row along the last dimension begins with a byte. Elements of `f4e2m1` lie two in a byte, the
    /// earlier one in its lower half; 32 of `f6e2m3` and `f6e3m2` are 192 bits, the earliest one the lowest,
    /// and what is left of them at the end of a row is not used.
    ///
    /// # Errors
    /// When the number of bytes does not fit the shape and dtype, or is too large.
    pub fn from_bytes(shape: &[usize], dtype: DType, bytes: &[u8]) -> Result<Tensor, Diagnostic> {
        let expected = bytes_of_shape(shape, dtype, count(shape)?);
        if bytes.len() != expected {
            let text = format!("{} bytes cannot fill {dtype} elements of shape {shape:?}", bytes.len());
            return Err(Diagnostic::invalid(text).help(format!("they take {expected} bytes")));
        }
        let codes = |dtype: DType| match dtype.packing() {
            Some(packing) => unpacked_rows(bytes, row_length(shape), packing).into_iter(),
            None => Vec::new().into_iter(),
        };
        let data = match dtype {
            DType::F32 => Data::F32(words(bytes).map(f32::from_le_bytes).collect()),
            DType::F16 => Data::F16(words(bytes).map(f16::from_le_bytes).collect()),
            DType::Bf16 => Data::Bf16(words(bytes).map(bf16::from_le_bytes).collect()),
            DType::I32 => Data::I32(words(bytes).map(i32::from_le_bytes).collect()),
            DType::I16 => Data::I16(words(bytes).map(i16::from_le_bytes).collect()),
            DType::I64 => Data::I64(words(bytes).map(i64::from_le_bytes).collect()),
            DType::F64 => Data::F64(words(bytes).map(f64::from_le_bytes).collect()),
            DType::I8 => Data::I8(words(bytes).map(i8::from_le_bytes).collect()),
            DType::I1 => Data::I1(bytes.iter().map(|&b| b != 0).collect()),
            DType::F8E4M3Fnuz => Data::F8E4M3Fnuz(words(bytes).map(f8e4m3fnuz::from_le_bytes).collect()),
            DType::F8E5M2Fnuz => Data::F8E5M2Fnuz(words(bytes).map(f8e5m2fnuz::from_le_bytes).collect()),
            DType::F8E4M3Fn => Data::F8E4M3Fn(words(bytes).map(f8e4m3fn::from_le_bytes).collect()),
            DType::F8E5M2 => Data::F8E5M2(words(bytes).map(f8e5m2::from_le_bytes).collect()),
            DType::F8E8M0 => Data::F8E8M0(words(bytes).map(f8e8m0::from_le_bytes).collect()),
            DType::F4E2M1 => Data::F4E2M1(codes(dtype).map(f4e2m1::from_bits).collect()),
            DType::F6E2M3 => Data::F6E2M3(codes(dtype).map(f6e2m3::from_bits).collect()),
            DType::F6E3M2 => Data::F6E3M2(codes(dtype).map(f6e3m2::from_bits).collect()),
        };
        Ok(Tensor { shape: shape.to_vec(), data })
    }

    /// The elements as the bytes of a buffer, as [`Tensor::from_bytes`] reads them. What a row of
    /// 4-bit or 6-bit elements leaves over at its end is 0.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.bytes_of(0..self.data.len(), &mut bytes);
        bytes
    }

    /// The number of bytes of a buffer with the elements.
    pub(crate) fn byte_count(&self) -> u64 {
        bytes_of_shape(&self.shape, self.dtype(), self.data.len()) as u64
    }

    /// The bytes of some elements, in the same form, in place of what `bytes` holds: where elements share
    /// bytes, of whole rows.
    pub(crate) fn bytes_of(&self, elements: Range<usize>, bytes: &mut Vec<u8>) {
        match &self.data {
            Data::F32(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::F16(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::Bf16(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::I32(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::I16(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::I64(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::F64(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::I8(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::I1(v) => put(&v[elements], bytes, |x| [u8::from(x)]),
            Data::F8E4M3Fnuz(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::F8E5M2Fnuz(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::F8E4M3Fn(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::F8E5M2(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::F8E8M0(v) => put(&v[elements], bytes, |x| x.to_le_bytes()),
            Data::F4E2M1(v) => self.pack(v[elements].iter().map(|x| x.to_bits()), bytes),
            Data::F6E2M3(v) => self.pack(v[elements].iter().map(|x| x.to_bits()), bytes),
            Data::F6E3M2(v) => self.pack(v[elements].iter().map(|x| x.to_bits()), bytes),
        }
    }

    /// Encodings of whole rows as memory has them.
    fn pack(&self, codes: impl Iterator<Item = u8>, bytes: &mut Vec<u8>) {
        bytes.clear();
        if let Some(packing) = self.dtype().packing() {
            bytes.extend(packed_rows(&codes.collect::<Vec<_>>(), row_length(&self.shape), packing));
        }
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// The elements, row-major.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The elements, row-major, if `T` is their type.
    pub fn as_slice<T: TensorElement>(&self) -> Option<&[T]> {
        T::slice(&self.data)
    }

    /// The elements as f64, row-major: exact for every dtype but i64, whose elements are rounded. For
    /// comparisons with a tolerance.
    pub fn to_f64(&self) -> Vec<f64> {
        self.f64_of(0..self.data.len())
    }

    /// Some elements, in the same form.
    pub(crate) fn f64_of(&self, elements: Range<usize>) -> Vec<f64> {
        match &self.data {
            Data::F32(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::F16(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::Bf16(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::I32(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::I16(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::I64(v) => v[elements].iter().map(|&x| x as f64).collect(),
            Data::F64(v) => v[elements].to_vec(),
            Data::I8(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::I1(v) => v[elements].iter().map(|&x| f64::from(u8::from(x))).collect(),
            Data::F8E4M3Fnuz(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::F8E5M2Fnuz(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::F8E4M3Fn(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::F8E5M2(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::F8E8M0(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::F4E2M1(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::F6E2M3(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
            Data::F6E3M2(v) => v[elements].iter().map(|&x| f64::from(x)).collect(),
        }
    }

    /// A tensor whose element count is known to fit.
    pub(super) fn filled(shape: Vec<usize>, data: Data) -> Tensor {
        debug_assert_eq!(shape.iter().product::<usize>(), data.len(), "elements fill the shape");
        Tensor { shape, data }
    }

    pub(super) fn data_mut(&mut self) -> &mut Data {
        &mut self.data
    }
}

/// Elements of a row, along the last dimension.
fn row_length(shape: &[usize]) -> usize {
    shape.last().copied().unwrap_or(1)
}

/// The bytes of a buffer with so many elements, which a shape has.
fn bytes_of_shape(shape: &[usize], dtype: DType, count: usize) -> usize {
    match dtype.packing() {
        Some(packing) => {
            let length = row_length(shape);
            let units = length.div_ceil(packing.elements as usize);
            count.checked_div(length).unwrap_or(0) * units * packing.bytes() as usize
        }
        None => count * dtype.bytes() as usize,
    }
}

/// The bits of elements, those of narrower ones with zeros above them.
pub(super) fn bits_of(data: &Data) -> Vec<u64> {
    match data {
        Data::F32(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::F16(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::Bf16(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::I32(v) => v.iter().map(|&x| u64::from(x as u32)).collect(),
        Data::I16(v) => v.iter().map(|&x| u64::from(x as u16)).collect(),
        Data::I64(v) => v.iter().map(|&x| x as u64).collect(),
        Data::F64(v) => v.iter().map(|&x| x.to_bits()).collect(),
        Data::I8(v) => v.iter().map(|&x| u64::from(x as u8)).collect(),
        Data::I1(v) => v.iter().map(|&x| u64::from(x)).collect(),
        Data::F8E4M3Fnuz(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::F8E5M2Fnuz(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::F8E4M3Fn(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::F8E5M2(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::F8E8M0(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::F4E2M1(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::F6E2M3(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::F6E3M2(v) => v.iter().map(|x| u64::from(x.to_bits())).collect(),
    }
}

/// Elements from their bits.
pub(super) fn data_of(dtype: DType, bits: &[u64]) -> Data {
    match dtype {
        DType::F32 => Data::F32(bits.iter().map(|&x| f32::from_bits(x as u32)).collect()),
        DType::F16 => Data::F16(bits.iter().map(|&x| f16::from_bits(x as u16)).collect()),
        DType::Bf16 => Data::Bf16(bits.iter().map(|&x| bf16::from_bits(x as u16)).collect()),
        DType::I32 => Data::I32(bits.iter().map(|&x| x as i32).collect()),
        DType::I16 => Data::I16(bits.iter().map(|&x| x as i16).collect()),
        DType::I64 => Data::I64(bits.iter().map(|&x| x as i64).collect()),
        DType::F64 => Data::F64(bits.iter().map(|&x| f64::from_bits(x)).collect()),
        DType::I8 => Data::I8(bits.iter().map(|&x| x as i8).collect()),
        DType::I1 => Data::I1(bits.iter().map(|&x| x != 0).collect()),
        DType::F8E4M3Fnuz => Data::F8E4M3Fnuz(bits.iter().map(|&x| f8e4m3fnuz::from_bits(x as u8)).collect()),
        DType::F8E5M2Fnuz => Data::F8E5M2Fnuz(bits.iter().map(|&x| f8e5m2fnuz::from_bits(x as u8)).collect()),
        DType::F8E4M3Fn => Data::F8E4M3Fn(bits.iter().map(|&x| f8e4m3fn::from_bits(x as u8)).collect()),
        DType::F8E5M2 => Data::F8E5M2(bits.iter().map(|&x| f8e5m2::from_bits(x as u8)).collect()),
        DType::F8E8M0 => Data::F8E8M0(bits.iter().map(|&x| f8e8m0::from_bits(x as u8)).collect()),
        DType::F4E2M1 => Data::F4E2M1(bits.iter().map(|&x| f4e2m1::from_bits(x as u8)).collect()),
        DType::F6E2M3 => Data::F6E2M3(bits.iter().map(|&x| f6e2m3::from_bits(x as u8)).collect()),
        DType::F6E3M2 => Data::F6E3M2(bits.iter().map(|&x| f6e3m2::from_bits(x as u8)).collect()),
    }
}

/// The bytes in groups of one element.
fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// The elements one after the other.
fn put<T: Copy, const N: usize>(elements: &[T], bytes: &mut Vec<u8>, of: impl Fn(T) -> [u8; N]) {
    bytes.clear();
    bytes.resize(N * elements.len(), 0);
    for (bytes, &element) in bytes.as_chunks_mut::<N>().0.iter_mut().zip(elements) {
        *bytes = of(element);
    }
}

/// Elements that one thread makes at a time.
const PART: usize = 1 << 16;

/// `n` numbers of a seed, on all threads: each follows from its index.
fn numbers<T: Copy + Default + Send>(n: usize, seed: u64, of: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let mut all = vec![T::default(); n];
    let fill = |(part, elements): (usize, &mut [T])| {
        let mut state = SplitMix64::after(seed, (part * PART) as u64);
        elements.iter_mut().for_each(|element| *element = of(state.next()));
    };
    workers::for_each(all.chunks_mut(PART).enumerate(), n.div_ceil(PART) as u64, fill);
    all
}

/// Steele, Lea and Flood's SplitMix64: one addition and three xor-multiplies per number.
struct SplitMix64(u64);

impl SplitMix64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The state after the first `count` numbers of a seed.
    fn after(seed: u64, count: u64) -> SplitMix64 {
        SplitMix64(seed.wrapping_add(count.wrapping_mul(SplitMix64::STEP)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(SplitMix64::STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
