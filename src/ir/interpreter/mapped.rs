//! Mapped accesses of whole tensors: the expressions are evaluated for each element.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::tensor::{Tensor, TensorElement, for_each_dtype};
use super::{InterpretedValue, Interpreter, ValueContent, malformed};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::layout::Dim;
use crate::ir::mapping::{CoordinateProgram, Mapping, SymbolMeaning, operand_number};
use crate::ir::node::*;

impl Interpreter<'_> {
    /// A mapped read; `values` are the operands of its mapping.
    pub(super) fn read_mapped(
        &mut self,
        node: Entity,
        mapping: &Mapping,
        values: &[Entity],
        from: Entity,
    ) -> Result<(), Diagnostic> {
        let dims = self.get::<ValueType>(node)?.dims.clone();
        let places = self.places(mapping, &dims, values, from)?;
        self.check_defined(from, &places)?;
        let tensor = self.tensor(self.source(from)?)?;
        let data = for_each_dtype!(tensor.data(), v => {
            let read = |place: &Option<usize>| place.map_or_else(Default::default, |at| v[at]);
            TensorElement::into_data(places.iter().map(read).collect())
        });
        let content = ValueContent::Tensor(Rc::new(Tensor::filled(self.shape(&dims)?, data)));
        let depth = self.loops.len();
        self.values.insert(node, InterpretedValue { dims, content, depth });
        Ok(())
    }

    /// A mapped write of `value`.
    pub(super) fn write_mapped(
        &mut self,
        mapping: &Mapping,
        value: Entity,
        values: &[Entity],
        to: Entity,
    ) -> Result<(), Diagnostic> {
        let value = self.value(value)?;
        let (dims, tensor) = (value.dims.clone(), self.tensor(value)?.clone());
        self.write_elements(mapping, (&dims, &tensor), values, to)
    }

    /// Writes the elements of a tensor with these dimensions to their coordinates.
    pub(super) fn write_elements(
        &mut self,
        mapping: &Mapping,
        (dims, tensor): (&Dims, &Tensor),
        values: &[Entity],
        to: Entity,
    ) -> Result<(), Diagnostic> {
        let places = self.places(mapping, dims, values, to)?;
        if let Some(undefined) = self.undefined.get_mut(&to) {
            places.iter().flatten().for_each(|&at| undefined[at] = false);
        }
        let Some(InterpretedValue { content: ValueContent::Tensor(into), .. }) = self.memories.get_mut(&to)
        else {
            return Err(malformed());
        };
        if tensor.dtype() != into.dtype() {
            let text = format!("a value {} cannot be written to a memory {}", tensor.dtype(), into.dtype());
            return Err(Diagnostic::invalid(text).help("cast the value"));
        }
        // Copied only if a value still refers to the former content.
        for_each_dtype!(Rc::make_mut(into).data_mut(), v => {
            let written = tensor.as_slice().ok_or_else(malformed)?;
            for (place, &element) in places.iter().zip(written) {
                if let Some(at) = *place {
                    v[at] = element;
                }
            }
        });
        Ok(())
    }

    /// What an access at coordinates takes its elements from: a memory or a value.
    fn source(&self, node: Entity) -> Result<&InterpretedValue, Diagnostic> {
        match self.memories.get(&node) {
            Some(memory) => Ok(memory),
            None => self.value(node),
        }
    }

    /// What a memory, or a value in the loops around it, holds along each of its dimensions.
    fn spans(&self, node: Entity) -> Result<Vec<Span>, Diagnostic> {
        let source = self.source(node)?;
        let shape = self.tensor(source)?.shape().to_vec();
        let is_memory = self.memories.contains_key(&node);
        let span = |(&dim, extent): (&Dim, usize)| {
            let within = self.loops.iter().find(|l| l.dim == dim && !is_memory);
            let size = if is_memory { extent } else { self.size(dim)? };
            Ok(Span { start: within.map_or(0, |l| l.start), extent, size })
        };
        source.dims.iter().zip(shape).map(span).collect()
    }

    /// Where the elements of a value with dimensions `dims` are in a memory, in row-major order; `None` for
    /// elements that are outside.
    pub(super) fn places(
        &self,
        mapping: &Mapping,
        dims: &Dims,
        values: &[Entity],
        memory: Entity,
    ) -> Result<Vec<Option<usize>>, Diagnostic> {
        let spans = self.spans(memory)?;
        let shape = self.shape(dims)?;
        let count = super::tensor::count(&shape)?;
        let names: Vec<&str> = dims.iter().map(|&dim| self.name(dim)).collect();
        let programs = programs(mapping, &names, values.len(), &|symbol| (self.sizes)(symbol))?;
        if programs.len() != spans.len() {
            let text = format!("{} coordinates are given for {} dimensions", programs.len(), spans.len());
            return Err(Diagnostic::invalid(text).help("give one for each dimension of the memory"));
        }
        let mut used = Vec::new();
        for &value in values {
            let value = self.value(value)?;
            used.push(self.align(&value.dims, self.tensor(value)?, dims)?);
        }
        let used = used.iter().map(|tensor| tensor.as_slice::<i32>()).collect::<Option<Vec<_>>>();
        let used = used.ok_or_else(|| {
            Diagnostic::invalid("a coordinate is made of a value that is not i32").help("cast it")
        })?;
        let mut starts = Vec::new();
        for &dim in dims {
            let start = self.loops.iter().find(|l| l.dim == dim).map_or(0, |l| l.start);
            starts.push((start, self.size(dim)?));
        }
        let mut index = vec![0usize; dims.len()];
        let mut slots = vec![0i64; dims.len() + used.len()];
        let (mut places, mut stack) = (Vec::with_capacity(count), Vec::new());
        for at in 0..count {
            let mut inside = true;
            for (position, (&own, &(start, size))) in index.iter().zip(&starts).enumerate() {
                slots[position] = (start + own) as i64;
                inside &= start + own < size;
            }
            for (slot, values) in slots[dims.len()..].iter_mut().zip(&used) {
                *slot = i64::from(values[at]);
            }
            places.push(if inside { element(&programs, &spans, &slots, &mut stack)? } else { None });
            for (own, &extent) in index.iter_mut().zip(&shape).rev() {
                *own += 1;
                if *own < extent {
                    break;
                }
                *own = 0;
            }
        }
        Ok(places)
    }
}

/// Programs for the coordinates of a mapping: their slots are the coordinates along the dimensions of these
/// names, and then the operands.
pub(super) fn programs(
    mapping: &Mapping,
    names: &[&str],
    operands: usize,
    size: &dyn Fn(Symbol) -> Option<i64>,
) -> Result<Vec<CoordinateProgram>, Diagnostic> {
    let meaning = |symbol: Symbol| {
        if let Some(at) = names.iter().position(|name| *name == symbol.name()) {
            return Ok(SymbolMeaning::Slot(at));
        }
        if let Some(number) = operand_number(symbol) {
            return if number < operands {
                Ok(SymbolMeaning::Slot(names.len() + number))
            } else {
                Err(malformed())
            };
        }
        let value = symbol.value_where(size);
        value
            .map(SymbolMeaning::Constant)
            .ok_or_else(|| Diagnostic::invalid(format!("{symbol} stands in a coordinate and has no value")))
    };
    mapping.0.iter().map(|coordinate: &SymExpr| CoordinateProgram::new(coordinate, &meaning)).collect()
}

/// What a tensor holds along a dimension.
pub(super) struct Span {
    /// The first coordinate.
    start: usize,
    /// How many there are.
    extent: usize,
    /// All coordinates of the dimension are below this.
    size: usize,
}

/// The index of the element at the coordinates in a row-major tensor; `None` if they are outside.
fn element(
    programs: &[CoordinateProgram],
    spans: &[Span],
    slots: &[i64],
    stack: &mut Vec<i64>,
) -> Result<Option<usize>, Diagnostic> {
    let mut index = Some(0);
    for (program, span) in programs.iter().zip(spans) {
        let coordinate = usize::try_from(program.value(slots, stack)?).ok().filter(|&at| at < span.size);
        let within = match coordinate.map(|at| at.checked_sub(span.start)) {
            None => None,
            Some(Some(within)) if within < span.extent => Some(within),
            Some(_) => {
                let text = "a coordinate lies in the part of another iteration of a value";
                return Err(Diagnostic::invalid(text)
                    .help("along the dimension of the loop, the coordinate is the dimension"));
            }
        };
        index = index.zip(within).map(|(index, within)| index * span.extent + within);
    }
    Ok(index)
}
