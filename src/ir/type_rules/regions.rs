//! Regions: the condition under which one runs is a single i1, so that all lanes and waves of a workgroup
//! agree, and what it carries keeps its type. Symbols of its iterations are a single i32.

use super::{TypeFault, TypeRules, TypedNode, WrittenBy};
use crate::ir::expr::Symbol;
use crate::ir::node::*;
use crate::ir::types::DType;

impl TypeRules<'_> {
    /// Checks that all lanes and waves of a workgroup agree on a condition: it is one value, and has no
    /// elements.
    pub(crate) fn condition(&self, region: Op, ty: &ValueType) -> Result<(), TypeFault> {
        let of = region.in_words();
        if ty.dtype != Some(DType::I1) {
            let text = format!("the condition of a {of} is {}, and has to be i1", self.show(ty));
            return Err(TypeFault::dtypes(text, "compare something: comparisons are i1"));
        }
        if !ty.dims.is_empty() {
            let text = format!(
                "the condition of a {of} is {}: it differs from element to element, and with it from lane to lane",
                self.show(ty)
            );
            let help = "choose between elements with `select`, or make one condition of all of them: reduce \
                        numbers over all dimensions, and compare the result";
            return Err(TypeFault::dims(text, help));
        }
        Ok(())
    }

    /// The type of a carried value, as its initial one has it.
    pub(crate) fn carried(&self, region: Op, initial: &ValueType) -> Result<ValueType, TypeFault> {
        if self.written_by == WrittenBy::Author && initial.dtype == Some(DType::I1) {
            let text = format!("a {} carries {}", region.in_words(), self.show(initial));
            let help = "carry a number: `select` makes one of a condition, and `compare` the condition again";
            return Err(TypeFault::dtypes(text, help));
        }
        Ok(initial.clone())
    }

    /// Checks that a region hands on what it starts with.
    pub(crate) fn handed_on(
        &self,
        region: Op,
        initial: &ValueType,
        next: &ValueType,
    ) -> Result<(), TypeFault> {
        if initial == next {
            return Ok(());
        }
        let what = match region.walks() {
            Some(axis) => format!("the loop over {}", self.dims.name(axis)),
            None => format!("the {}", region.in_words()),
        };
        let text = format!("{what} starts with {} but hands on {}", self.show(initial), self.show(next));
        Err(TypeFault::dtypes(text, "carried values keep their type"))
    }

    pub(super) fn set_symbol(&self, symbol: Symbol, node: &TypedNode) -> Result<(), TypeFault> {
        let &[ty] = &node.operands[..] else { return Err(TypeFault::operands()) };
        if ty.dtype == Some(DType::I32) && ty.dims.is_empty() {
            return Ok(());
        }
        let text = format!(
            "iterations depend on {symbol}, which is set to {}, and has to be an i32 without dimensions",
            self.show(ty)
        );
        let help = "read one element, `read counts at [%number] as []`, or make one of all by a reduction";
        Err(TypeFault::dtypes(text, help))
    }
}
