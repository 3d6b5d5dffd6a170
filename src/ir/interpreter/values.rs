//! The values of the interpreter: how operations find those of their operands, and take the part of a memory
//! that an iteration accesses.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::tensor::{self, MAX_ELEMENTS, Tensor, TensorElement, for_each_dtype};
use super::window::{self, Axes, Axis};
use super::{InterpretedValue, Interpreter, ValueContent, malformed, untyped};
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::facts::{DimGeometry, Geometry};
use crate::ir::kernel::{DimTable, Locations};
use crate::ir::layout::Dim;
use crate::ir::node::*;

impl<'a> Interpreter<'a> {
    /// The part of a memory that the current iterations access.
    pub(super) fn slice(&self, dims: &Dims, shape: &[usize]) -> Axes {
        let strides = window::strides(shape);
        let axis = |at: usize| {
            let (limit, stride) = (shape[at], strides[at]);
            let within = self.loops.iter().find(|l| l.dim == dims[at]);
            let (extent, start) = within.map_or((limit, 0), |l| (l.tile, l.start));
            Axis { extent, start, limit, stride }
        };
        (0..dims.len()).map(axis).collect()
    }

    /// The value of an operand, if it may be used in the current loops.
    pub(super) fn value(&self, node: Entity) -> Result<&InterpretedValue, Diagnostic> {
        let value = self.values.get(&node).ok_or_else(malformed)?;
        let inner = self.loops.get(value.depth..).unwrap_or_default();
        if let Some(around) = inner.iter().find(|l| value.dims.contains(&l.dim)) {
            let name = self.name(around.dim);
            return Err(Diagnostic::invalid(format!(
                "a value with all of {name} is used inside the loop over {name}"
            ))
            .note("the value comes from here", self.location(node))
            .help("move the value into the loop"));
        }
        Ok(value)
    }

    pub(super) fn memory(&self, node: Entity) -> Result<&InterpretedValue, Diagnostic> {
        self.memories.get(&node).ok_or_else(malformed)
    }

    pub(super) fn tensor<'v>(&self, value: &'v InterpretedValue) -> Result<&'v Rc<Tensor>, Diagnostic> {
        match &value.content {
            ValueContent::Tensor(tensor) => Ok(tensor),
            ValueContent::Untyped(_) => Err(untyped()),
        }
    }

    /// How passes have spread a dimension.
    pub(super) fn geometry(&self, dim: Dim) -> Option<&'a DimGeometry> {
        self.world.get::<Geometry>(self.root)?.dims.get(dim)
    }

    /// Elements of a dimension.
    pub(super) fn size(&self, dim: Dim) -> Result<usize, Diagnostic> {
        if let Some(size) = self.geometry(dim).and_then(|dim| dim.static_size) {
            return Ok(size as usize);
        }
        let symbol = self.get::<DimTable>(self.root)?.0.get(dim).copied().ok_or_else(malformed)?;
        let name = symbol.name();
        match symbol.value_where(self.sizes) {
            None => Err(Diagnostic::invalid(format!("{name} has no size"))),
            Some(size) if size < 0 => {
                Err(Diagnostic::invalid(format!("{name} is {size}: a size cannot be negative")))
            }
            Some(size) => usize::try_from(size).ok().filter(|&s| s <= MAX_ELEMENTS).ok_or_else(|| {
                Diagnostic::new(Kind::Limit, format!("{name} is {size}: more than {MAX_ELEMENTS} elements"))
            }),
        }
    }

    /// Elements along a dimension of a value that is made here.
    pub(super) fn extent(&self, dim: Dim) -> Result<usize, Diagnostic> {
        match self.loops.iter().find(|l| l.dim == dim) {
            Some(within) => Ok(within.tile),
            None => self.size(dim),
        }
    }

    /// How many of these exist: they come first.
    pub(super) fn existing(&self, dim: Dim) -> Result<usize, Diagnostic> {
        let size = self.size(dim)?;
        let within = self.loops.iter().find(|l| l.dim == dim);
        Ok(within.map_or(size, |l| size.saturating_sub(l.start).min(l.tile)))
    }

    pub(super) fn shape(&self, dims: &Dims) -> Result<Vec<usize>, Diagnostic> {
        dims.iter().map(|&d| self.extent(d)).collect()
    }

    pub(super) fn get<T: Component>(&self, node: Entity) -> Result<&'a T, Diagnostic> {
        self.world.get::<T>(node).ok_or_else(malformed)
    }

    pub(super) fn name(&self, dim: Dim) -> &'static str {
        self.world.get::<DimTable>(self.root).map_or("?", |t| t.name(dim))
    }

    pub(super) fn names(&self, dims: &[Dim]) -> String {
        format!("[{}]", dims.iter().map(|&d| self.name(d)).collect::<Vec<_>>().join(", "))
    }

    pub(super) fn locations(&self) -> Option<&Locations> {
        self.world.get::<Locations>(self.root)
    }

    pub(super) fn location(&self, node: Entity) -> Option<Location> {
        self.world.get::<Origin>(node).and_then(|origin| self.locations()?.get(origin.0))
    }

    /// Anchors the fault at the node, unless it already has a place.
    pub(super) fn anchor(&self, node: Entity, fault: Diagnostic) -> Diagnostic {
        if fault.location.is_some() { fault } else { fault.at(self.location(node)) }
    }
}

pub(super) fn gather(tensor: &Tensor, axes: &Axes) -> Result<Tensor, Diagnostic> {
    let shape: Vec<usize> = axes.iter().map(|a| a.extent).collect();
    tensor::count(&shape)?;
    let data = for_each_dtype!(tensor.data(), v => TensorElement::into_data(window::gather(v, axes)));
    Ok(Tensor::filled(shape, data))
}

pub(super) fn scatter(tensor: &mut Tensor, axes: &Axes, window: &Tensor) -> Result<(), Diagnostic> {
    for_each_dtype!(tensor.data_mut(), v => {
        window::scatter(v, axes, window.as_slice().ok_or_else(malformed)?);
    });
    Ok(())
}
