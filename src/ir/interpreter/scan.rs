//! Scans: sums of floats are taken in f64, in the order of the elements, and each is rounded once. Integers
//! wrap.

use bevy_ecs::prelude::*;

use super::Interpreter;
use super::arithmetic::{ArithmeticFault, widened};
use super::reduce::{Fold, floats, long_integers};
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
    let joins = op.joins();
    let (float, integer) = match op.start(data.dtype()) {
        Constant::Float(start) => (start, 0),
        Constant::Integer(start) => (0.0, start),
    };
    let join_floats = |a, b| floats(joins, &mut [a, b].into_iter());
    if let Some(wide) = widened(data) {
        let wide: Vec<f64> = wide.iter().map(|&x| f64::from(x)).collect();
        let sums = sums(op, &wide, fold, float, join_floats);
        let bits: Result<Vec<u64>, _> =
            sums.into_iter().map(|sum| Constant::Float(sum).bits(data.dtype())).collect();
        return Ok(data_of(data.dtype(), &bits.map_err(|fault| fault.message)?));
    }
    /// Integers are joined in 64 bits and wrap.
    macro_rules! integers {
        ($data:ident $v:ident $ty:ty) => {
            Data::$data(sums(op, $v, fold, integer as $ty, |a, b| {
                long_integers(joins, &mut [i64::from(a), i64::from(b)].into_iter()) as $ty
            }))
        };
    }
    Ok(match data {
        Data::F64(v) => Data::F64(sums(op, v, fold, float, join_floats)),
        Data::I64(v) => integers!(I64 v i64),
        Data::I32(v) => integers!(I32 v i32),
        Data::I16(v) => integers!(I16 v i16),
        Data::I8(v) => integers!(I8 v i8),
        _ => return Err(format!("{} is not defined for {}", op.row().word, data.dtype())),
    })
}

fn sums<T: Copy>(op: ScanOp, elements: &[T], fold: Fold, start: T, join: impl Fn(T, T) -> T) -> Vec<T> {
    let mut out = elements.to_vec();
    for outer in 0..fold.outer {
        for inner in 0..fold.inner {
            let mut sum = start;
            for at in 0..fold.extent {
                let index = (outer * fold.extent + at) * fold.inner + inner;
                let next = join(sum, elements[index]);
                out[index] = if op.is_exclusive() { sum } else { next };
                sum = next;
            }
        }
    }
    out
}
