//! Numbers of narrow floats from codes, and codes of numbers, in texts of kernels that passes have made them
//! in.
//!
//! ```text
//! "%x = decode" ("elements" | "bytes" | dtype) value "," scales ["along" dimension] dtype
//! "%x = encode" dtype value
//! ```

use bevy_ecs::prelude::Entity;

use super::cursor::Parsed;
use super::parser::Parser;
use crate::ir::node::*;
use crate::ir::types::DType;

impl Parser<'_> {
    /// The rest of a `decode`.
    pub(super) fn decoding(&mut self) -> Parsed<(Op, Vec<Entity>, ValueType)> {
        let form = if self.cursor.take_word(CodeForm::Elements.word()) {
            CodeForm::Elements
        } else if self.cursor.take_word(CodeForm::Bytes.word()) {
            CodeForm::Bytes
        } else {
            CodeForm::Integers(self.cursor.dtype()?)
        };
        let operands = self.values(2)?;
        let along = match self.cursor.take_word("along") {
            true => Some(self.dim("the dimension of pairs")?),
            false => None,
        };
        let ty = ValueType { dims: Dims::new(), dtype: Some(self.cursor.dtype()?) };
        Ok((Op::Decode(Decoding { form, along }), operands, ty))
    }

    /// The rest of an `encode`.
    pub(super) fn encoding(&mut self) -> Parsed<(Op, Vec<Entity>, ValueType)> {
        let dtype = self.cursor.dtype()?;
        let ty = ValueType { dims: Dims::new(), dtype: Some(DType::I8) };
        Ok((Op::Encode(dtype), self.values(1)?, ty))
    }
}
