//! Tasks over the dimensions of one kernel: computed tensors are put in place of their reads, and every index
//! becomes a dimension or an expression of dimensions.

use std::collections::BTreeMap;

use super::super::Task;
use super::super::define::AXIS;
use super::super::element::{
    ElementId, ElementNode, ElementNumber, Elements, ReadIndex, ReduceKind, TaskAxis, TensorId,
};
use crate::prelude::*;

/// Most elements of one kernel: tensors that are read at many places multiply.
const MAX_EXPANDED: usize = 4096;

/// Most operations in a chain of one kernel.
const MAX_DEPTH: u32 = 400;

/// A kernel that is planned: what is read and written, over which dimensions.
pub(super) struct KernelPlan<'a> {
    pub(super) task: &'a Task,
    pub(super) elements: Elements,
    /// The dimensions with their sizes, in the order in which they were found.
    pub(super) dims: Vec<TaskAxis>,
    /// Tensors that are written, with the dimensions of their indices and the element.
    pub(super) outputs: Vec<(TensorId, Vec<Symbol>, ElementId)>,
    /// Sizes of the memory of each tensor that is read: those of the tensor, unless dimensions were merged.
    pub(super) shapes: BTreeMap<TensorId, Vec<SymExpr>>,
    /// Nodes that are there, by what they are.
    known: BTreeMap<String, ElementId>,
    /// Elements of the task that have been expanded, by number and by what their indices are.
    expanded: BTreeMap<String, ElementId>,
    /// Elements that are being expanded.
    depth: u32,
}

/// Indices of a tensor or reduction as the kernel has them.
type AxisPlaces = BTreeMap<Symbol, SymExpr>;

/// The tensors that stay in memory between kernels.
pub(super) type Stored<'s> = &'s dyn Fn(TensorId) -> bool;

impl<'a> KernelPlan<'a> {
    /// The plan of a kernel that computes some tensors of a task; it reads those that are `stored`.
    ///
    /// # Errors
    /// A read that no kernel of this form makes.
    pub(super) fn of(
        task: &'a Task,
        outputs: &[TensorId],
        stored: Stored<'_>,
        size: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<KernelPlan<'a>, Diagnostic> {
        let mut plan = KernelPlan {
            task,
            elements: Elements::default(),
            dims: Vec::new(),
            outputs: Vec::new(),
            shapes: BTreeMap::new(),
            known: BTreeMap::new(),
            expanded: BTreeMap::new(),
            depth: 0,
        };
        for &output in outputs {
            let definition = &task.tensors[output];
            let mut dims = Vec::new();
            let mut places = AxisPlaces::new();
            for axis in &definition.axes {
                let dim = plan.dim(&axis.extent, &dims);
                dims.push(dim);
                places.insert(axis.index, dim.into());
            }
            if let Some(value) = definition.value {
                let value = plan.expand(value, &places, (stored, size))?;
                plan.outputs.push((output, dims, value));
            }
        }
        Ok(plan)
    }

    /// A dimension of this size that is not among those in use.
    fn dim(&mut self, extent: &SymExpr, used: &[Symbol]) -> Symbol {
        let is_free = |dim: &&TaskAxis| dim.extent == *extent && !used.contains(&dim.index);
        if let Some(dim) = self.dims.iter().find(is_free) {
            return dim.index;
        }
        let index = Symbol::new(&format!("{AXIS}{}", self.dims.len()));
        self.dims.push(TaskAxis { index, extent: extent.clone() });
        index
    }

    /// The size of a dimension.
    pub(super) fn extent(&self, dim: Symbol) -> Option<&SymExpr> {
        self.dims.iter().find(|own| own.index == dim).map(|own| &own.extent)
    }

    /// The node, which is there once.
    fn node(&mut self, node: ElementNode, dtype: Option<DType>) -> ElementId {
        let key = format!("{node:?} {dtype:?}");
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let element = self.elements.push(node, dtype);
        self.known.insert(key, element);
        element
    }

    /// An element of the task where its indices are these.
    fn expand(
        &mut self,
        element: ElementId,
        places: &AxisPlaces,
        around: (Stored<'_>, &dyn Fn(Symbol) -> Option<i64>),
    ) -> Result<ElementId, Diagnostic> {
        let key = format!("{element} {places:?}");
        if let Some(&known) = self.expanded.get(&key) {
            return Ok(known);
        }
        if self.depth > MAX_DEPTH || self.expanded.len() > MAX_EXPANDED {
            let text = format!("a kernel of {} would have too many operations", self.task.name);
            return Err(Diagnostic::invalid(text));
        }
        self.depth += 1;
        let expanded = self.expand_new(element, places, around)?;
        self.depth -= 1;
        self.expanded.insert(key, expanded);
        Ok(expanded)
    }

    /// The same for one that has not been expanded.
    fn expand_new(
        &mut self,
        element: ElementId,
        places: &AxisPlaces,
        around: (Stored<'_>, &dyn Fn(Symbol) -> Option<i64>),
    ) -> Result<ElementId, Diagnostic> {
        let task = self.task;
        let dtype = task.elements.dtype(element);
        let replace = |symbol: Symbol| places.get(&symbol).cloned();
        let of = |plan: &mut Self, operand: ElementId| plan.expand(operand, places, around);
        let node = match task.elements.node(element) {
            ElementNode::Number(number) => ElementNode::Number(*number),
            ElementNode::Index(e) => ElementNode::Index(e.replaced(&replace)),
            ElementNode::Read { tensor, indices } => {
                let mut at = Vec::new();
                for index in indices {
                    at.push(match index {
                        ReadIndex::Affine(e) => ReadIndex::Affine(e.replaced(&replace)),
                        ReadIndex::Element(element) => ReadIndex::Element(of(self, *element)?),
                    });
                }
                return self.read(*tensor, at, around);
            }
            ElementNode::Unary(op, a) => ElementNode::Unary(*op, of(self, *a)?),
            ElementNode::Binary(op, a, b) => ElementNode::Binary(*op, of(self, *a)?, of(self, *b)?),
            ElementNode::Ternary(op, [a, b, c]) => {
                ElementNode::Ternary(*op, [of(self, *a)?, of(self, *b)?, of(self, *c)?])
            }
            ElementNode::Compare(op, a, b) => ElementNode::Compare(*op, of(self, *a)?, of(self, *b)?),
            ElementNode::Select([a, b, c]) => {
                ElementNode::Select([of(self, *a)?, of(self, *b)?, of(self, *c)?])
            }
            ElementNode::Cast(dtype, a) => ElementNode::Cast(*dtype, of(self, *a)?),
            ElementNode::Reduce { kind, accumulate, axes, body } => {
                let is_empty =
                    axes.iter().any(|axis| axis.extent.value(&|symbol| (around.1)(symbol)) == Some(0));
                if is_empty {
                    return Ok(self.of_nothing(*kind, *accumulate));
                }
                let (axes, body) = self.bound(axes, *body, places, around)?;
                ElementNode::Reduce { kind: *kind, accumulate: *accumulate, axes, body }
            }
            ElementNode::ArgReduce { extreme, axis, body } => {
                let (axes, body) = self.bound(std::slice::from_ref(axis), *body, places, around)?;
                ElementNode::ArgReduce { extreme: *extreme, axis: axes[0].clone(), body }
            }
        };
        Ok(self.node(node, dtype))
    }

    /// The axes of a reduction as dimensions, and what it reduces. A dimension that the body does not use
    /// otherwise may stand for an axis of its size: so a row that is reduced and then read is one row.
    fn bound(
        &mut self,
        axes: &[TaskAxis],
        body: ElementId,
        places: &AxisPlaces,
        around: (Stored<'_>, &dyn Fn(Symbol) -> Option<i64>),
    ) -> Result<(Box<[TaskAxis]>, ElementId), Diagnostic> {
        let own: Vec<Symbol> = axes.iter().map(|axis| axis.index).collect();
        let mut used: Vec<Symbol> = Vec::new();
        let mut use_of = |e: &SymExpr| {
            e.visit(&mut |symbol| {
                if let Some(place) = places.get(&symbol) {
                    place.visit(&mut |dim| used.push(dim));
                }
            });
        };
        self.task.elements.any(body, &mut |node| {
            match node {
                ElementNode::Index(e) => use_of(e),
                ElementNode::Read { indices, .. } => indices.iter().for_each(|index| match index {
                    ReadIndex::Affine(e) => use_of(e),
                    ReadIndex::Element(_) => {}
                }),
                _ => {}
            }
            false
        });
        let mut inner = places.clone();
        let mut dims = Vec::new();
        for (axis, own) in axes.iter().zip(own) {
            let dim = self.dim(&axis.extent, &used);
            used.push(dim);
            inner.insert(own, dim.into());
            dims.push(TaskAxis { index: dim, extent: axis.extent.clone() });
        }
        let body = self.expand(body, &inner, around)?;
        Ok((dims.into(), body))
    }

    /// The result of a reduction over nothing.
    fn of_nothing(&mut self, kind: ReduceKind, accumulate: DType) -> ElementId {
        let least = i64::MIN >> (64 - accumulate.bits());
        let is_float = accumulate.is_float();
        let number = match kind {
            ReduceKind::Sum => ElementNumber::Integer(0),
            ReduceKind::Product => ElementNumber::Integer(1),
            ReduceKind::Max if is_float => ElementNumber::Float(f64::NEG_INFINITY),
            ReduceKind::Max => ElementNumber::Integer(least),
            ReduceKind::Min if is_float => ElementNumber::Float(f64::INFINITY),
            ReduceKind::Min => ElementNumber::Integer(-(least + 1)),
            ReduceKind::Average => ElementNumber::Float(f64::NAN),
            ReduceKind::And | ReduceKind::Or => {
                let zero = self.node(ElementNode::Number(ElementNumber::Integer(0)), Some(I32));
                let predicate = if kind == ReduceKind::And { Predicate::Eq } else { Predicate::Ne };
                return self.node(ElementNode::Compare(predicate, zero, zero), Some(DType::I1));
            }
        };
        self.node(ElementNode::Number(number), Some(accumulate))
    }

    /// A read: of memory, or what the tensor's element is.
    fn read(
        &mut self,
        tensor: TensorId,
        at: Vec<ReadIndex>,
        around: (Stored<'_>, &dyn Fn(Symbol) -> Option<i64>),
    ) -> Result<ElementId, Diagnostic> {
        let task = self.task;
        let definition = &task.tensors[tensor];
        let dtype = Some(definition.dtype);
        let Some(value) = definition.value.filter(|_| !(around.0)(tensor)) else {
            let shape = definition.axes.iter().map(|axis| axis.extent.clone()).collect();
            self.shapes.insert(tensor, shape);
            return Ok(self.node(ElementNode::Read { tensor, indices: at.into() }, dtype));
        };
        let mut places = AxisPlaces::new();
        let mut within: Option<ElementId> = None;
        for (index, axis) in at.iter().zip(&definition.axes) {
            let ReadIndex::Affine(e) = index else {
                let text =
                    format!("{} is computed, and read at an index that is an element", definition.name);
                return Err(Diagnostic::invalid(text).help("gather from an input"));
            };
            let is_plain = e.as_symbol().and_then(|dim| self.extent(dim)) == Some(&axis.extent);
            if !is_plain {
                let inside = self.inside(e, &axis.extent);
                within = Some(match within {
                    Some(others) => {
                        self.node(ElementNode::Binary(BinaryOp::And, others, inside), Some(DType::I1))
                    }
                    None => inside,
                });
            }
            places.insert(axis.index, e.clone());
        }
        let reduces =
            |node: &ElementNode| matches!(node, ElementNode::Reduce { .. } | ElementNode::ArgReduce { .. });
        if within.is_some() && task.elements.any(value, &mut { reduces }) {
            let text = format!(
                "{} is a reduction, and read at other indices than those of its kernel",
                definition.name
            );
            return Err(Diagnostic::invalid(text));
        }
        let value = self.expand(value, &places, around)?;
        let Some(within) = within else { return Ok(value) };
        let zero = self.node(ElementNode::Number(ElementNumber::Integer(0)), dtype);
        Ok(self.node(ElementNode::Select([within, value, zero]), dtype))
    }

    /// The condition that an index lies in an extent.
    fn inside(&mut self, index: &SymExpr, extent: &SymExpr) -> ElementId {
        let index = self.node(ElementNode::Index(index.clone()), Some(I32));
        let zero = self.node(ElementNode::Number(ElementNumber::Integer(0)), Some(I32));
        let extent = self.node(ElementNode::Index(extent.clone()), Some(I32));
        let above = self.node(ElementNode::Compare(Predicate::Ge, index, zero), Some(DType::I1));
        let below = self.node(ElementNode::Compare(Predicate::Lt, index, extent), Some(DType::I1));
        self.node(ElementNode::Binary(BinaryOp::And, above, below), Some(DType::I1))
    }

    /// The nodes that outputs are made of, each once, operands first.
    pub(super) fn used(&self) -> Vec<ElementId> {
        let mut used = std::collections::BTreeSet::new();
        let mut next: Vec<ElementId> = self.outputs.iter().map(|output| output.2).collect();
        while let Some(element) = next.pop() {
            if used.insert(element) {
                self.elements.node(element).operands(|operand| next.push(operand));
            }
        }
        used.into_iter().collect()
    }

    /// The reads among them.
    pub(super) fn reads(&self) -> Vec<(TensorId, &[ReadIndex])> {
        let read = |element: ElementId| match self.elements.node(element) {
            ElementNode::Read { tensor, indices } => Some((*tensor, &indices[..])),
            _ => None,
        };
        self.used().into_iter().filter_map(read).collect()
    }
}
