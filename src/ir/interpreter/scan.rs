//! Scans: sums of floats are taken in f64, in the order of the elements, and each is rounded once. Integers
//! wrap.

use bevy_ecs::prelude::*;

use super::Interpreter;
use super::arithmetic::{ArithmeticFault, widened};
use super::reduce::Fold;
use super::tensor::{Data, Tensor, data_of};
use crate::ir::constant::Constant;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{Dims, Scan};
use crate::ir::op::ScanOp;

impl Interpreter<'_> {
    /// Sums up a value along a dimension.
    pub(super) fn scan(&self, scan: Scan, value: Entity) -> Result<(Dims, Tensor), Diagnostic> {
        let value = self.value(value)?;
        let tensor = self.tensor(value)?;
        let at = value.dims.iter().position(|&dim| dim == scan.dim).ok_or_else(|| {
            let (word, dims) = (scan.op.row().word, self.names(&value.dims));
            Diagnostic::invalid(format!("{word} along {} of a value {dims}", self.name(scan.dim)))
                .help("sum up along a dimension that the value has")
        })?;
        let shape = tensor.shape();
        let (outer, inner) = (shape[..at].iter().product(), shape[at + 1..].iter().product());
        let fold = Fold { outer, extent: shape[at], taken: shape[at], inner };
        let data = sum_up(scan.op, tensor.data(), fold).map_err(Diagnostic::invalid)?;
        Ok((value.dims.clone(), Tensor::filled(shape.to_vec(), data)))
    }
}

/// The elements of `data`, summed up along a dimension. The extents are those of `fold`.
pub(super) fn sum_up(op: ScanOp, data: &Data, fold: Fold) -> Result<Data, ArithmeticFault> {
    if let Some(wide) = widened(data) {
        let wide: Vec<f64> = wide.iter().map(|&x| f64::from(x)).collect();
        let sums = sums(op, &wide, fold, op.start(), |sum, element| sum + element);
        let bits: Result<Vec<u64>, _> =
            sums.into_iter().map(|sum| Constant::Float(sum).bits(data.dtype())).collect();
        return Ok(data_of(data.dtype(), &bits.map_err(|fault| fault.message)?));
    }
    Ok(match data {
        Data::F64(v) => Data::F64(sums(op, v, fold, op.start(), |sum, element| sum + element)),
        Data::I64(v) => Data::I64(sums(op, v, fold, 0, i64::wrapping_add)),
        Data::I32(v) => Data::I32(sums(op, v, fold, 0, i32::wrapping_add)),
        Data::I16(v) => Data::I16(sums(op, v, fold, 0, i16::wrapping_add)),
        Data::I8(v) => Data::I8(sums(op, v, fold, 0, i8::wrapping_add)),
        _ => return Err(format!("{} is not defined for {}", op.row().word, data.dtype())),
    })
}

fn sums<T: Copy>(op: ScanOp, elements: &[T], fold: Fold, start: T, add: impl Fn(T, T) -> T) -> Vec<T> {
    let mut out = elements.to_vec();
    for outer in 0..fold.outer {
        for inner in 0..fold.inner {
            let mut sum = start;
            for at in 0..fold.extent {
                let index = (outer * fold.extent + at) * fold.inner + inner;
                let next = add(sum, elements[index]);
                out[index] = match op {
                    ScanOp::Inclusive => next,
                    ScanOp::Exclusive => sum,
                };
                sum = next;
            }
        }
    }
    out
}
