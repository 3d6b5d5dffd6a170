//! Dimensions that lie one after the other in every memory become one: rows of any rank are then rows of a
//! matrix, and a tensor that is only gone through is a vector.

use std::collections::BTreeMap;

use super::super::element::{ElementId, ElementNode, Elements, ReadIndex, TaskAxis, TensorId};
use super::expand::KernelPlan;
use crate::prelude::*;

impl KernelPlan<'_> {
    /// Merges all dimensions that can be.
    pub(super) fn merge_dims(&mut self) {
        while let Some((outer, inner)) = self.mergeable() {
            self.merge(outer, inner);
        }
    }

    fn mergeable(&self) -> Option<(Symbol, Symbol)> {
        let names = || self.dims.iter().map(|dim| dim.index);
        let mut pairs = names().flat_map(|outer| names().map(move |inner| (outer, inner)));
        pairs.find(|&(outer, inner)| outer != inner && self.lie_together(outer, inner))
    }

    /// True if two dimensions occur only together, the one right before the other.
    fn lie_together(&self, outer: Symbol, inner: Symbol) -> bool {
        let follow = |dims: &[Option<Symbol>]| {
            let at = |dim: Symbol| dims.iter().position(|own| *own == Some(dim));
            match (at(outer), at(inner)) {
                (None, None) => true,
                (Some(outer), Some(inner)) => inner == outer + 1,
                _ => false,
            }
        };
        let plain = |dims: &[Symbol]| follow(&dims.iter().copied().map(Some).collect::<Vec<_>>());
        let mut places = BTreeMap::new();
        let reads = self.reads().into_iter().all(|(tensor, indices)| {
            let dims = self.plain_indices(tensor, indices);
            // Every read of a tensor has the same form, so that its memory has.
            let place = dims.iter().position(|dim| *dim == Some(outer));
            let alike = *places.entry(tensor).or_insert(place) == place;
            let hidden = indices.iter().zip(&dims).any(|(index, dim)| match index {
                ReadIndex::Affine(e) if dim.is_none() => uses(e, outer) || uses(e, inner),
                ReadIndex::Affine(_) | ReadIndex::Element(_) => false,
            });
            let once = |dim: Symbol| dims.iter().filter(|own| **own == Some(dim)).count() <= 1;
            alike && !hidden && once(outer) && once(inner) && follow(&dims)
        });
        let nodes = self.used().into_iter().all(|element| match self.elements.node(element) {
            ElementNode::Index(e) => !uses(e, outer) && !uses(e, inner),
            ElementNode::Reduce { axes, .. } => {
                plain(&axes.iter().map(|axis| axis.index).collect::<Vec<Symbol>>())
            }
            ElementNode::ArgReduce { axis, .. } => axis.index != outer && axis.index != inner,
            ElementNode::Number(_)
            | ElementNode::Read { .. }
            | ElementNode::Unary(..)
            | ElementNode::Binary(..)
            | ElementNode::Ternary(..)
            | ElementNode::Compare(..)
            | ElementNode::Select(_)
            | ElementNode::Cast(..) => true,
        });
        reads && nodes && self.outputs.iter().all(|(_, dims, _)| plain(dims))
    }

    /// For each index of a read the dimension that it is, if the memory has that size there.
    pub(super) fn plain_indices(&self, tensor: TensorId, indices: &[ReadIndex]) -> Vec<Option<Symbol>> {
        let shape = self.shapes.get(&tensor);
        let plain = indices.iter().enumerate().map(|(at, index)| {
            let ReadIndex::Affine(e) = index else { return None };
            let dim = e.as_symbol()?;
            (self.extent(dim) == Some(shape?.get(at)?)).then_some(dim)
        });
        plain.collect()
    }

    /// Puts both dimensions in place of the inner one.
    fn merge(&mut self, outer: Symbol, inner: Symbol) {
        let extent =
            |dim: Symbol, plan: &KernelPlan<'_>| plan.extent(dim).cloned().unwrap_or_else(|| 1.into());
        let whole = extent(outer, self) * extent(inner, self);
        let mut merged_shapes = BTreeMap::new();
        for (tensor, indices) in self.reads() {
            let place = self.plain_indices(tensor, indices).iter().position(|dim| *dim == Some(outer));
            if let (Some(place), Some(shape)) = (place, self.shapes.get(&tensor)) {
                let mut merged = shape.clone();
                merged[place + 1] = whole.clone();
                merged.remove(place);
                merged_shapes.insert(tensor, merged);
            }
        }
        self.shapes.append(&mut merged_shapes);
        self.dims.retain(|dim| dim.index != outer);
        self.dims.iter_mut().filter(|dim| dim.index == inner).for_each(|dim| dim.extent = whole.clone());
        self.outputs.iter_mut().for_each(|(_, dims, _)| dims.retain(|dim| *dim != outer));
        let mut nodes = Elements::default();
        let mut renamed: BTreeMap<ElementId, ElementId> = BTreeMap::new();
        for element in self.used() {
            let dtype = self.elements.dtype(element);
            let node = without(self.elements.node(element), outer, (inner, &whole), &renamed);
            renamed.insert(element, nodes.push(node, dtype));
        }
        self.elements = nodes;
        self.outputs.iter_mut().for_each(|output| output.2 = renamed[&output.2]);
    }
}

fn uses(e: &SymExpr, dim: Symbol) -> bool {
    let mut found = false;
    e.visit(&mut |symbol| found |= symbol == dim);
    found
}

/// A node without the outer dimension, of other elements.
fn without(
    node: &ElementNode,
    outer: Symbol,
    (inner, whole): (Symbol, &SymExpr),
    renamed: &BTreeMap<ElementId, ElementId>,
) -> ElementNode {
    let axis = |axis: &TaskAxis| match axis.index == inner {
        true => TaskAxis { index: inner, extent: whole.clone() },
        false => axis.clone(),
    };
    match node {
        ElementNode::Number(number) => ElementNode::Number(*number),
        ElementNode::Index(e) => ElementNode::Index(e.clone()),
        ElementNode::Read { tensor, indices } => {
            let is_kept = |index: &&ReadIndex| match index {
                ReadIndex::Affine(e) => e.as_symbol() != Some(outer),
                ReadIndex::Element(_) => true,
            };
            let of = |index: &ReadIndex| match index {
                ReadIndex::Affine(e) => ReadIndex::Affine(e.clone()),
                ReadIndex::Element(element) => ReadIndex::Element(renamed[element]),
            };
            ElementNode::Read { tensor: *tensor, indices: indices.iter().filter(is_kept).map(of).collect() }
        }
        ElementNode::Unary(op, a) => ElementNode::Unary(*op, renamed[a]),
        ElementNode::Binary(op, a, b) => ElementNode::Binary(*op, renamed[a], renamed[b]),
        ElementNode::Ternary(op, operands) => ElementNode::Ternary(*op, operands.map(|o| renamed[&o])),
        ElementNode::Compare(op, a, b) => ElementNode::Compare(*op, renamed[a], renamed[b]),
        ElementNode::Select(operands) => ElementNode::Select(operands.map(|o| renamed[&o])),
        ElementNode::Cast(dtype, a) => ElementNode::Cast(*dtype, renamed[a]),
        ElementNode::Reduce { kind, accumulate, axes, body } => ElementNode::Reduce {
            kind: *kind,
            accumulate: *accumulate,
            axes: axes.iter().filter(|own| own.index != outer).map(axis).collect(),
            body: renamed[body],
        },
        ElementNode::ArgReduce { extreme, axis: own, body } => {
            ElementNode::ArgReduce { extreme: *extreme, axis: axis(own), body: renamed[body] }
        }
    }
}
