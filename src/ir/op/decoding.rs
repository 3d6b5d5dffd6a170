//! What passes make of casts from and to narrow floats for chips that convert them with a scale (gfx950's
//! V_CVT_SCALEF32): numbers from codes, and codes from numbers.

use super::arithmetic::ELEMENT_WISE;
use super::row::{DTypes, NodeRole, OpRow, ResultType, Sizes};
use crate::ir::layout::Dim;
use crate::ir::types::DType;

pub(super) const DECODE: OpRow = OpRow {
    word: "decode",
    takes: Some(&[NodeRole::Value, NodeRole::Value]),
    result: ResultType::Converted(Sizes::AnySize),
    doc: "Numbers of narrow floats times their scales.",
    ..ELEMENT_WISE
};

pub(super) const ENCODE: OpRow = OpRow {
    word: "encode",
    takes: Some(&[NodeRole::Value]),
    operands: DTypes::Floats,
    result: ResultType::Converted(Sizes::AnySize),
    doc: "Codes of narrow floats, i8.",
    ..ELEMENT_WISE
};

/// Numbers of narrow floats times their scales.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Decoding {
    /// What holds the numbers.
    pub form: CodeForm,
    /// A dimension along which the 32 elements of each block have one scale and, if bytes hold two numbers,
    /// those with places `2i` and `2i + 1` one byte.
    pub along: Option<Dim>,
}

/// What holds numbers of narrow floats.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum CodeForm {
    /// Elements of their own dtype of at most 8 bits.
    Elements,
    /// Integers, whose lowest bits are codes of this dtype.
    Integers(DType),
    /// Bytes of two f4e2m1, of which elements with even places are the lower one, others the upper one.
    Bytes,
}

impl CodeForm {
    /// The word of it in the text form.
    pub fn word(self) -> &'static str {
        match self {
            CodeForm::Elements => "elements",
            CodeForm::Bytes => "bytes",
            CodeForm::Integers(dtype) => dtype.name(),
        }
    }
}
