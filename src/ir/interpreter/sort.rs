//! Sorts: places in the order of their elements, and the elements at these places. A NaN becomes the usual
//! one.

use std::cmp::Ordering;

use bevy_ecs::prelude::*;

use super::Interpreter;
use super::arithmetic::widened;
use super::tensor::{Data, Tensor, bits_of, data_of};
use crate::ir::constant::Constant;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{Dims, Sort};

impl Interpreter<'_> {
    /// Sorts a value along a dimension.
    pub(super) fn sort(&self, sort: Sort, value: Entity) -> Result<(Dims, Tensor), Diagnostic> {
        let value = self.value(value)?;
        let tensor = self.tensor(value)?;
        let at = value.dims.iter().position(|&dim| dim == sort.dim).ok_or_else(|| {
            let (word, dims) = (sort.op.row().word, self.names(&value.dims));
            Diagnostic::invalid(format!("{word} along {} of a value {dims}", self.name(sort.dim)))
                .help("sort along a dimension that the value has")
        })?;
        let shape = tensor.shape();
        let outers: usize = shape[..at].iter().product();
        let (row, inners) = (shape[at], shape[at + 1..].iter().product::<usize>());
        let keys = keys(tensor.data()).ok_or_else(|| {
            Diagnostic::invalid(format!("{} is not defined for {}", sort.op.row().word, tensor.dtype()))
        })?;
        let (bits, nan) = (bits_of(tensor.data()), Constant::Float(f64::NAN));
        let (mut places, mut elements) = (vec![0i32; bits.len()], vec![0u64; bits.len()]);
        for outer in 0..outers {
            for inner in 0..inners {
                let index = |at: usize| (outer * row + at) * inners + inner;
                let mut order: Vec<usize> = (0..row).collect();
                order.sort_by(|&one, &other| {
                    let (one, other) = (keys[index(one)], keys[index(other)]);
                    // What is no number has no key, and comes last.
                    match (one, other) {
                        (Some(one), Some(other)) if sort.op.is_descending() => other.cmp(&one),
                        (Some(one), Some(other)) => one.cmp(&other),
                        (Some(_), None) => Ordering::Less,
                        (None, Some(_)) => Ordering::Greater,
                        (None, None) => Ordering::Equal,
                    }
                });
                for (at, &from) in order.iter().enumerate() {
                    places[index(at)] = from as i32;
                    elements[index(at)] = match keys[index(from)] {
                        Some(_) => bits[index(from)],
                        None => nan.bits(tensor.dtype())?,
                    };
                }
            }
        }
        let data = match sort.op.gives_places() {
            true => Data::I32(places),
            false => data_of(tensor.dtype(), &elements),
        };
        Ok((value.dims.clone(), Tensor::filled(shape.to_vec(), data)))
    }
}

/// Integers in the order of the elements, of which -0 is less than +0; none of NaNs.
fn keys(data: &Data) -> Option<Vec<Option<i64>>> {
    if let Some(wide) = widened(data) {
        return Some(wide.iter().map(|&x| float_key(x.into())).collect());
    }
    Some(match data {
        Data::F64(v) => v.iter().map(|&x| float_key(x)).collect(),
        Data::I64(v) => v.iter().map(|&x| Some(x)).collect(),
        Data::I32(v) => v.iter().map(|&x| Some(x.into())).collect(),
        Data::I16(v) => v.iter().map(|&x| Some(x.into())).collect(),
        Data::I8(v) => v.iter().map(|&x| Some(x.into())).collect(),
        _ => return None,
    })
}

fn float_key(x: f64) -> Option<i64> {
    let bits = x.to_bits() as i64;
    // The order of negative numbers is that of their magnitudes, turned round.
    (!x.is_nan()).then_some(if bits < 0 { bits ^ i64::MAX } else { bits })
}
