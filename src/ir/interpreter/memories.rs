//! Memories and LDS buffers of whole tensors: reads and writes without coordinates, and what of a buffer has
//! been written.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::tensor::Tensor;
use super::window;
use super::{InterpretedValue, Interpreter, ValueContent, gather, malformed, scatter};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;

impl Interpreter<'_> {
    /// An LDS buffer; it keeps its content from one iteration to the next.
    pub(super) fn allocate(&mut self, node: Entity) -> Result<(), Diagnostic> {
        if !self.memories.contains_key(&node) {
            let ty = self.get::<ValueType>(node)?;
            let shape = ty.dims.iter().map(|&d| self.size(d)).collect::<Result<Vec<_>, _>>()?;
            let zeros = Tensor::zeros(&shape, ty.dtype.ok_or_else(malformed)?)?;
            self.undefined.insert(node, vec![true; zeros.data().len()]);
            let content = ValueContent::Tensor(Rc::new(zeros));
            self.memories.insert(node, InterpretedValue { dims: ty.dims.clone(), content, depth: 0 });
        }
        Ok(())
    }

    pub(super) fn read(&mut self, node: Entity, from: Entity) -> Result<(), Diagnostic> {
        let memory = self.memory(from)?;
        let tensor = self.tensor(memory)?;
        let axes = self.slice(&memory.dims, tensor.shape());
        if let Some(undefined) = self.undefined.get(&from)
            && window::gather(undefined, &axes).contains(&true)
        {
            return Err(self.reads_undefined(from));
        }
        let tensor = match window::is_whole(&axes) {
            true => tensor.clone(),
            false => Rc::new(gather(tensor, &axes)?),
        };
        let (dims, depth) = (memory.dims.clone(), self.loops.len());
        self.values.insert(node, InterpretedValue { dims, content: ValueContent::Tensor(tensor), depth });
        Ok(())
    }

    /// Checks that the elements of a memory at these places, if it is an LDS buffer, have been written.
    pub(super) fn check_defined(&self, memory: Entity, places: &[Option<usize>]) -> Result<(), Diagnostic> {
        match self.undefined.get(&memory) {
            Some(undefined) if places.iter().flatten().any(|&at| undefined[at]) => {
                Err(self.reads_undefined(memory))
            }
            _ => Ok(()),
        }
    }

    fn reads_undefined(&self, buffer: Entity) -> Diagnostic {
        Diagnostic::invalid("an LDS buffer is read where it was not written")
            .note("the buffer is allocated here, with undefined contents", self.location(buffer))
            .help("write the buffer before it is read: all that the read covers")
    }

    pub(super) fn write(&mut self, value: Entity, memory: Entity) -> Result<(), Diagnostic> {
        let value = self.value(value)?;
        let (dims, tensor) = (value.dims.clone(), self.tensor(value)?.clone());
        self.write_tensor((&dims, &tensor), memory)
    }

    /// Writes a tensor with these dimensions.
    pub(super) fn write_tensor(
        &mut self,
        (dims, tensor): (&Dims, &Rc<Tensor>),
        memory: Entity,
    ) -> Result<(), Diagnostic> {
        let target = self.memory(memory)?;
        let into = self.tensor(target)?;
        let same_dims = dims.len() == target.dims.len() && dims.iter().all(|d| target.dims.contains(d));
        if !same_dims || tensor.dtype() != into.dtype() {
            let text = format!(
                "a value {}{} cannot be written to a memory {}{}",
                tensor.dtype(),
                self.names(dims),
                into.dtype(),
                self.names(&target.dims)
            );
            return Err(Diagnostic::invalid(text).help("cast the value, or give it all dims of the memory"));
        }
        let tensor = self.align(dims, tensor, &target.dims)?;
        let axes = self.slice(&target.dims, into.shape());
        let whole = window::is_whole(&axes);
        if let Some(undefined) = self.undefined.get_mut(&memory) {
            window::scatter(undefined, &axes, &vec![false; tensor.data().len()]);
        }
        let Some(InterpretedValue { content: ValueContent::Tensor(into), .. }) =
            self.memories.get_mut(&memory)
        else {
            return Err(malformed());
        };
        if whole {
            *into = tensor;
            return Ok(());
        }
        // Copied only if a value still refers to the former content.
        scatter(Rc::make_mut(into), &axes, &tensor)
    }
}
