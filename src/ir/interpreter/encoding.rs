//! Numbers of narrow floats from their codes, and the codes of numbers.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::arithmetic::{ArithmeticFault, convert, widened};
use super::tensor::{Data, Tensor, bits_of, data_of};
use super::{Interpreter, malformed};
use crate::ir::constant::Constant;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::types::DType;

/// The numbers of codes times their scales, rounded once: the product of both is exact in f64. `places` are
/// those of the elements along the dimension in which bytes hold two.
pub(super) fn decode(
    form: CodeForm,
    codes: &Data,
    scales: &Data,
    places: &[u64],
    to: DType,
) -> Result<Data, ArithmeticFault> {
    let integers = |dtype: DType| {
        let mask = (1 << dtype.bits()) - 1;
        data_of(dtype, &bits_of(codes).into_iter().map(|code| code & mask).collect::<Vec<_>>())
    };
    let elements = match form {
        CodeForm::Elements => codes.clone(),
        CodeForm::Integers(dtype) => integers(dtype),
        CodeForm::Bytes => {
            let halves =
                bits_of(codes).into_iter().zip(places).map(|(byte, place)| byte >> (place % 2 * 4) & 15);
            data_of(DType::F4E2M1, &halves.collect::<Vec<_>>())
        }
    };
    let (Some(numbers), Some(scales)) = (widened(&elements), widened(scales)) else {
        return Err(format!("{} is no narrow float", codes.dtype()));
    };
    let products = numbers.iter().zip(scales.iter()).map(|(x, scale)| f64::from(*x) * f64::from(*scale));
    let bits = products.map(|x| Constant::Float(x).bits(to)).collect::<Result<Vec<_>, _>>();
    Ok(data_of(to, &bits.map_err(|fault| fault.message)?))
}

/// The codes of the nearest numbers of a dtype.
pub(super) fn encode(numbers: &Data, dtype: DType) -> Result<Data, ArithmeticFault> {
    Ok(data_of(DType::I8, &bits_of(&convert(Conversion::Cast, numbers, dtype)?)))
}

impl Interpreter<'_> {
    /// The numbers of codes.
    pub(super) fn decode(
        &self,
        node: Entity,
        decoding: Decoding,
        codes: Entity,
        scales: Entity,
    ) -> Result<(Dims, Tensor), Diagnostic> {
        let to = self.get::<ValueType>(node)?.dtype.ok_or_else(malformed)?;
        let (dims, [codes, scales]) = self.broadcast([codes, scales], 0)?;
        let places = match decoding.along {
            Some(dim) => {
                let places = Rc::new(self.places_along(dim)?);
                bits_of(self.align(&Dims::from_slice(&[dim]), &places, &dims)?.data())
            }
            None => Vec::new(),
        };
        let numbers = codes.map(|codes| decode(decoding.form, codes, scales.data(), &places, to))?;
        Ok((dims, numbers))
    }

    /// The place of each element along a dimension in the whole tensor.
    pub(super) fn places_along(&self, dim: Dim) -> Result<Tensor, Diagnostic> {
        let start = self.loops.iter().find(|l| l.dim == dim).map_or(0, |l| l.start);
        let places = (start..start + self.extent(dim)?).map(|at| at as i32).collect::<Vec<_>>();
        Tensor::from_slice(&[places.len()], &places)
    }
}
