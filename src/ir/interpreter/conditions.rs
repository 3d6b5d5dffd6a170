//! Regions that run under a condition: conditionals, and loops that go on as long as theirs holds.

use bevy_ecs::prelude::*;

use super::{InterpretedValue, Interpreter, malformed};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::node::*;
use crate::ir::types::DType;

/// The most iterations of one loop that goes on under a condition.
pub(super) const MAX_TRIPS: u32 = 1 << 16;

impl Interpreter<'_> {
    pub(super) fn under_condition(
        &mut self,
        node: Entity,
        op: Op,
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let body = &self.get::<Body>(node)?.0;
        let yields = &self.get::<Yields>(node)?.0;
        let next = op.handed_on(yields);
        let mut holds = match op.condition(operands) {
            Some(condition) => self.holds(op, condition)?,
            None => !op.takes_condition(),
        };
        let mut carried = Vec::with_capacity(next.len());
        for (number, &init) in op.initial(operands).iter().enumerate() {
            let value = self.value(init)?.clone();
            if self.tensor(&value)?.dtype() == DType::I1 {
                let text =
                    format!("a {} carries i1{} as value {number}", op.row().word, self.names(&value.dims));
                return Err(Diagnostic::invalid(text).help(
                    "carry a number: `select` makes one of a condition, and `compare` the condition again",
                ));
            }
            carried.push(value);
        }
        if next.len() != carried.len() {
            return Err(malformed());
        }
        let mut trips = 0;
        while holds {
            self.carried.push(carried);
            self.region(body)?;
            let before = self.carried.pop().unwrap_or_default();
            carried = next.iter().map(|&y| self.value(y).cloned()).collect::<Result<Vec<_>, _>>()?;
            for (number, (old, new)) in before.iter().zip(&carried).enumerate() {
                self.same_type(number, old, new)?;
            }
            holds = match yields.get(next.len()) {
                Some(&again) => self.holds(op, again)?,
                None => false,
            };
            trips += 1;
            if holds && trips == MAX_TRIPS {
                return Err(endless());
            }
        }
        let depth = self.loops.len();
        for value in &mut carried {
            value.depth = depth;
        }
        self.results.insert(node, carried);
        Ok(())
    }

    /// Whether a condition holds.
    fn holds(&self, op: Op, condition: Entity) -> Result<bool, Diagnostic> {
        let value = self.value(condition)?;
        let tensor = self.tensor(value)?;
        if !value.dims.is_empty() || tensor.dtype() != DType::I1 {
            let (word, dims) = (op.row().word, self.names(&value.dims));
            let text = format!("the condition of a {word} is {}{dims}", tensor.dtype());
            let fault = Diagnostic::invalid(text);
            return Err(fault.help("a condition is i1 without dimensions, so that all lanes agree on it"));
        }
        let bits = super::tensor::bits_of(tensor.data());
        Ok(bits.first().is_some_and(|&bit| bit != 0))
    }

    /// Checks that a carried value keeps its type.
    pub(super) fn same_type(
        &self,
        number: usize,
        old: &InterpretedValue,
        new: &InterpretedValue,
    ) -> Result<(), Diagnostic> {
        let (old_dtype, new_dtype) = (self.tensor(old)?.dtype(), self.tensor(new)?.dtype());
        if old.dims == new.dims && old_dtype == new_dtype {
            return Ok(());
        }
        let (old_dims, new_dims) = (self.names(&old.dims), self.names(&new.dims));
        Err(Diagnostic::invalid(format!(
            "carried value {number} starts as {old_dtype}{old_dims} and continues as {new_dtype}{new_dims}"
        )))
    }
}

/// The fault of a loop that does not come to its end.
pub(super) fn endless() -> Diagnostic {
    Diagnostic::new(Kind::Limit, format!("a while loop does not end within {MAX_TRIPS} iterations"))
        .help("let each iteration bring the condition closer to its end")
}
