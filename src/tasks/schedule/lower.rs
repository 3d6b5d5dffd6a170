//! The values of a planned kernel: each node becomes what the language has for it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::define::AXIS;
use super::super::element::{
    ArgReduceKind, ElementId, ElementNode, ElementNumber, ReadIndex, ReduceKind, TaskAxis, TensorId,
};
use super::distribution::Distribution;
use super::expand::KernelPlan;
use super::ranks;
use crate::prelude::*;

impl KernelPlan<'_> {
    /// The dimensions of each element, in the order of the kernel.
    pub(super) fn dims_of_all(&self) -> BTreeMap<ElementId, Vec<Symbol>> {
        let mut found: BTreeMap<ElementId, BTreeSet<usize>> = BTreeMap::new();
        let place = |dim: Symbol| self.dims.iter().position(|own| own.index == dim);
        for own in self.used() {
            let mut dims = BTreeSet::new();
            let node = self.elements.node(own);
            node.operands(|operand| dims.extend(found.get(&operand).into_iter().flatten().copied()));
            let mut see = |e: &SymExpr| e.visit(&mut |symbol| dims.extend(place(symbol)));
            match node {
                ElementNode::Index(e) => see(e),
                ElementNode::Read { indices, .. } => indices.iter().for_each(|index| match index {
                    ReadIndex::Affine(e) => see(e),
                    ReadIndex::Element(_) => {}
                }),
                ElementNode::Reduce { axes, .. } => {
                    dims.retain(|&dim| axes.iter().all(|axis| axis.index != self.dims[dim].index));
                }
                ElementNode::ArgReduce { axis, .. } => {
                    dims.retain(|&dim| axis.index != self.dims[dim].index);
                }
                _ => {}
            }
            found.insert(own, dims);
        }
        let name = |dim: usize| self.dims[dim].index;
        found.into_iter().map(|(element, dims)| (element, dims.into_iter().map(name).collect())).collect()
    }

    /// Traces the kernel.
    pub(super) fn trace(
        &self,
        name: &str,
        distribution: &Distribution,
        size: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<Kernel, Diagnostic> {
        Kernel::trace(name, |w| {
            w.distribute(distribution.constraints.iter().cloned());
            let mut lowering = Lowering {
                plan: self,
                w,
                size,
                memories: BTreeMap::new(),
                values: BTreeMap::new(),
                dims: self.dims_of_all(),
            };
            lowering.declare_inputs(distribution);
            if distribution.loops.is_empty() {
                lowering.read_all();
            } else {
                lowering.reduce_in_loops(&distribution.loops);
            }
            lowering.write_outputs();
        })
    }

    /// The sizes of the memory of an input as dimensions: those of the kernel where a read has them as they
    /// are, and others of its own.
    pub(super) fn memory_dims(&self, tensor: TensorId) -> Vec<Symbol> {
        let reads = self.reads().into_iter().filter(|read| read.0 == tensor);
        let plain = reads.map(|(_, indices)| {
            let mut dims = self.plain_indices(tensor, indices);
            for at in 1..dims.len() {
                if dims[..at].contains(&dims[at]) {
                    dims[at] = None;
                }
            }
            dims
        });
        // The first of those with the most.
        let count = |dims: &Vec<Option<Symbol>>| dims.iter().flatten().count();
        let most = plain.reduce(|most, dims| if count(&dims) > count(&most) { dims } else { most });
        let own = |at: usize| Symbol::new(&format!("{AXIS}{at}_of_{}", self.task.tensors[tensor].name));
        let most = most.unwrap_or_default().into_iter().enumerate();
        most.map(|(at, dim)| dim.unwrap_or_else(|| own(at))).collect()
    }
}

/// The way of a plan's nodes into values.
struct Lowering<'p, 'w> {
    plan: &'p KernelPlan<'p>,
    w: &'w Tracer,
    size: &'p dyn Fn(Symbol) -> Option<i64>,
    memories: BTreeMap<TensorId, (MemoryRef, Vec<Symbol>)>,
    values: BTreeMap<ElementId, Value>,
    dims: BTreeMap<ElementId, Vec<Symbol>>,
}

impl Lowering<'_, '_> {
    fn declare_inputs(&mut self, distribution: &Distribution) {
        for (tensor, _) in self.plan.inputs() {
            let dims = self.plan.memory_dims(tensor);
            let definition = &self.plan.task.tensors[tensor];
            // As the ready kernel turns tiles: narrow elements by a conversion of layouts, others in LDS.
            let is_turned = distribution.turned.is_some() && dims.last() == distribution.turned.as_ref();
            let space = if is_turned && definition.dtype.bytes() >= 4 { Shared } else { Global };
            let memory = ranks::memory(self.w, &definition.name, &dims, (space, definition.dtype));
            self.memories.insert(tensor, (memory, dims));
        }
    }

    /// Reads first, so that their loads are under way together.
    fn read_all(&mut self) {
        for element in self.plan.used() {
            if let ElementNode::Read { indices, .. } = self.plan.elements.node(element)
                && indices.iter().all(|index| matches!(index, ReadIndex::Affine(_)))
            {
                self.value(element);
            }
        }
    }

    fn write_outputs(&mut self) {
        for (tensor, dims, element) in self.plan.outputs.clone() {
            let definition = &self.plan.task.tensors[tensor];
            let memory = ranks::memory(self.w, &definition.name, &dims, (Global, definition.dtype));
            let value = self.typed(element, definition.dtype);
            let has_all = dims.iter().all(|dim| self.dims[&element].contains(dim));
            self.w.write(if has_all { value } else { ranks::broadcast(value, &dims) }, memory);
        }
    }

    /// An element as a value of a dtype; numbers have none of their own.
    fn typed(&mut self, element: ElementId, dtype: DType) -> Value {
        let ElementNode::Number(number) = self.plan.elements.node(element) else {
            return self.value(element);
        };
        match *number {
            ElementNumber::Integer(value) if !dtype.is_float() => {
                ranks::register_integer(self.w, &[], dtype, value)
            }
            ElementNumber::Integer(value) => ranks::register_float(self.w, &[], dtype, value as f64),
            ElementNumber::Float(value) => ranks::register_float(self.w, &[], dtype, value),
        }
    }

    /// The dtype of the operands of an operation.
    fn common(&self, operands: &[ElementId]) -> DType {
        let dtype = |operand: &ElementId| self.plan.elements.dtype(*operand);
        let is_float = |operand: &ElementId| {
            matches!(self.plan.elements.node(*operand), ElementNode::Number(ElementNumber::Float(_)))
        };
        let alone = if operands.iter().any(is_float) { F32 } else { I32 };
        operands.iter().find_map(dtype).unwrap_or(alone)
    }

    /// The operands of an operation as values of one dtype, of which one has all dimensions of the result.
    fn all_typed<const N: usize>(&mut self, operands: [ElementId; N], result: ElementId) -> [Value; N] {
        let dtype = self.common(&operands);
        let mut values = operands.map(|operand| self.typed(operand, dtype));
        let counts = operands.map(|operand| self.dims[&operand].len());
        let most = (0..N).max_by_key(|&at| counts[at]).unwrap_or(0);
        let dims = &self.dims[&result];
        if counts[most] < dims.len() {
            values[most] = ranks::broadcast(values[most], dims);
        }
        values
    }

    fn value(&mut self, element: ElementId) -> Value {
        if let Some(value) = self.values.get(&element) {
            return *value;
        }
        let plan = self.plan;
        let value = match plan.elements.node(element) {
            ElementNode::Number(_) => self.typed(element, self.common(&[element])),
            ElementNode::Index(e) => self.index(e),
            ElementNode::Read { tensor, indices } => self.read(*tensor, indices, element),
            ElementNode::Unary(op, a) => self.all_typed([*a], element)[0].unary(*op),
            ElementNode::Binary(op, a, b) => {
                let [a, b] = self.all_typed([*a, *b], element);
                a.binary(*op, b)
            }
            ElementNode::Ternary(op, operands) => {
                let [a, b, c] = self.all_typed(*operands, element);
                a.ternary(*op, b, c)
            }
            ElementNode::Compare(predicate, a, b) => {
                let [a, b] = self.all_typed([*a, *b], element);
                a.compare(*predicate, b)
            }
            ElementNode::Select([condition, yes, no]) => {
                let dims = self.dims[condition].clone();
                let condition = self.value(*condition);
                let [yes, no] = self.all_typed([*yes, *no], element);
                let condition = match dims.len() < self.dims[&element].len() {
                    true => ranks::broadcast(condition, &self.dims[&element]),
                    false => condition,
                };
                self.w.select(condition, yes, no)
            }
            ElementNode::Cast(dtype, a) => self.cast(*a, *dtype),
            ElementNode::Reduce { kind, accumulate, axes, body } => {
                let body = self.with_axes(*body, axes, *accumulate);
                let dims: Vec<Symbol> = axes.iter().map(|axis| axis.index).collect();
                let folded = self.folded(*kind, body, &dims);
                self.finished(*kind, folded, axes, *accumulate)
            }
            ElementNode::ArgReduce { extreme, axis, body } => {
                let dtype = self.common(&[*body]);
                let body = self.with_axes(*body, std::slice::from_ref(axis), dtype);
                match extreme {
                    ArgReduceKind::Max => body.argmax(axis.index),
                    ArgReduceKind::Min => body.argmin(axis.index),
                }
            }
        };
        self.values.insert(element, value);
        value
    }

    fn cast(&mut self, element: ElementId, dtype: DType) -> Value {
        match self.plan.elements.dtype(element) {
            None => self.typed(element, dtype),
            Some(DType::I1) => {
                let condition = self.value(element);
                let [yes, no] = [1, 0].map(|value| match dtype.is_float() {
                    true => ranks::register_float(self.w, &[], dtype, value as f64),
                    false => ranks::register_integer(self.w, &[], dtype, value),
                });
                self.w.select(condition, yes, no)
            }
            Some(_) => self.value(element).cast(dtype),
        }
    }

    /// The reduced value, with all of the dimensions that it is reduced along.
    fn with_axes(&mut self, body: ElementId, axes: &[TaskAxis], dtype: DType) -> Value {
        let value = self.typed(body, dtype);
        let mut dims = self.dims[&body].clone();
        let missing = axes.iter().map(|axis| axis.index).filter(|dim| !dims.contains(dim));
        let missing: Vec<Symbol> = missing.collect();
        if missing.is_empty() {
            return value;
        }
        dims.extend(missing);
        ranks::broadcast(value, &dims)
    }

    /// A value folded along dimensions; conditions are numbers from here on.
    fn folded(&self, kind: ReduceKind, value: Value, dims: &[Symbol]) -> Value {
        let as_number = |value: Value| self.w.select(value, 1, 0);
        match kind {
            ReduceKind::Sum | ReduceKind::Average => value.fold(ReductionOp::Sum, dims),
            ReduceKind::Product => value.fold(ReductionOp::Product, dims),
            ReduceKind::Max => value.fold(ReductionOp::Max, dims),
            ReduceKind::Min => value.fold(ReductionOp::Min, dims),
            ReduceKind::And => as_number(value).fold(ReductionOp::Min, dims),
            ReduceKind::Or => as_number(value).fold(ReductionOp::Max, dims),
        }
    }

    /// The result of a reduction from what is folded.
    fn finished(&mut self, kind: ReduceKind, folded: Value, axes: &[TaskAxis], dtype: DType) -> Value {
        match kind {
            ReduceKind::Sum | ReduceKind::Product => folded,
            // The language's own extremes are NaN where there is no number.
            ReduceKind::Max if dtype.is_float() => folded.binary(BinaryOp::Max, f64::NEG_INFINITY),
            ReduceKind::Min if dtype.is_float() => folded.binary(BinaryOp::Min, f64::INFINITY),
            ReduceKind::Max | ReduceKind::Min => folded,
            ReduceKind::Average => axes.iter().fold(folded, |value, axis| {
                match axis.extent.value(&|symbol| (self.size)(symbol)) {
                    Some(extent) => value / extent as f64,
                    None => value / self.w.size(axis.index).cast(dtype),
                }
            }),
            // Of nothing, folding gives the neutral element of integers.
            ReduceKind::And => folded.compare(Predicate::Ne, 0),
            ReduceKind::Or => folded.compare(Predicate::Gt, 0),
        }
    }

    /// An expression with the sizes that are known.
    fn sized(&self, e: &SymExpr) -> SymExpr {
        let known =
            |symbol: Symbol| self.plan.extent(symbol).is_none().then(|| (self.size)(symbol)).flatten();
        e.replaced(&|symbol| known(symbol).map(SymExpr::from))
    }

    fn index(&self, e: &SymExpr) -> Value {
        let e = self.sized(e);
        let mut used = BTreeSet::new();
        e.visit(&mut |symbol| {
            used.insert(symbol.name());
        });
        let dims = self.plan.dims.iter().map(|dim| dim.index);
        let dims: Vec<Symbol> = dims.filter(|dim| used.contains(dim.name())).collect();
        let coordinate = dims.iter().fold(Coordinate::from(&e), |coordinate, &dim| {
            let place = self.w.self_index(dim);
            let place = if dims.len() > 1 { ranks::broadcast(place, &dims) } else { place };
            coordinate.with_value(dim, place)
        });
        self.w.apply_expr(coordinate)
    }

    fn read(&mut self, tensor: TensorId, indices: &[ReadIndex], element: ElementId) -> Value {
        let (memory, dims) = self.memories[&tensor].clone();
        let plain = self.plan.plain_indices(tensor, indices);
        if plain.into_iter().eq(dims.iter().map(|&dim| Some(dim))) {
            return self.w.read(memory);
        }
        let at = indices.iter().map(|index| match index {
            ReadIndex::Affine(e) => Coordinate::from(self.sized(e)),
            ReadIndex::Element(element) => Coordinate::from(self.value(*element)),
        });
        let at: Vec<Coordinate> = at.collect();
        ranks::read_at(self.w, memory, at, &self.dims[&element].clone())
    }

    /// All reductions, by loops over their dimensions that carry what is folded so far.
    fn reduce_in_loops(&mut self, loops: &[Symbol]) {
        let reductions: Vec<ElementId> = self
            .plan
            .used()
            .into_iter()
            .filter(|&element| {
                matches!(
                    self.plan.elements.node(element),
                    ElementNode::Reduce { .. } | ElementNode::ArgReduce { .. }
                )
            })
            .collect();
        let initial: Vec<Value> = reductions.iter().flat_map(|&element| self.initial(element)).collect();
        let carried = self.nested(loops, &reductions, &initial);
        // Values of the loop do not live after it.
        self.values.clear();
        let mut carried = carried.into_iter();
        for &element in &reductions {
            let folded = carried.next();
            let value = match self.plan.elements.node(element) {
                ElementNode::Reduce { kind, accumulate, axes, .. } => {
                    folded.map(|folded| self.finished(*kind, folded, axes, *accumulate))
                }
                _ => carried.next(),
            };
            self.values.extend(value.map(|value| (element, value)));
        }
    }

    fn nested(&mut self, loops: &[Symbol], reductions: &[ElementId], carried: &[Value]) -> Vec<Value> {
        let [outer, inner @ ..] = loops else {
            let mut carried = carried.iter().copied();
            let mut next = Vec::new();
            for &element in reductions {
                next.extend(self.step(element, &mut carried));
            }
            return next;
        };
        ranks::iterate(self.w, *outer, carried, |_, carried| self.nested(inner, reductions, carried))
    }

    /// The value with which a loop begins a reduction.
    fn initial(&self, element: ElementId) -> Vec<Value> {
        let dims = &self.dims[&element];
        match self.plan.elements.node(element) {
            ElementNode::Reduce { kind, accumulate, .. } => {
                let least = i64::MIN >> (64 - accumulate.bits());
                let float = |number: f64| ranks::register_float(self.w, dims, *accumulate, number);
                let integer = |number: i64| ranks::register_integer(self.w, dims, *accumulate, number);
                vec![match (kind, accumulate.is_float()) {
                    (ReduceKind::Sum | ReduceKind::Average, true) => float(0.0),
                    (ReduceKind::Sum | ReduceKind::Average, false) => integer(0),
                    (ReduceKind::Product, true) => float(1.0),
                    (ReduceKind::Product, false) => integer(1),
                    (ReduceKind::Max, true) => float(f64::NEG_INFINITY),
                    (ReduceKind::Max, false) => integer(least),
                    (ReduceKind::Min, true) => float(f64::INFINITY),
                    (ReduceKind::Min, false) => integer(-(least + 1)),
                    (ReduceKind::And, _) => ranks::register_integer(self.w, dims, I32, 1),
                    (ReduceKind::Or, _) => ranks::register_integer(self.w, dims, I32, 0),
                }]
            }
            ElementNode::ArgReduce { extreme, body, .. } => {
                let dtype = self.common(&[*body]);
                let least = i64::MIN >> (64 - dtype.bits());
                let best = match (extreme, dtype.is_float()) {
                    // No number yet.
                    (_, true) => ranks::register_float(self.w, dims, dtype, f64::NAN),
                    (ArgReduceKind::Max, false) => ranks::register_integer(self.w, dims, dtype, least),
                    (ArgReduceKind::Min, false) => ranks::register_integer(self.w, dims, dtype, -(least + 1)),
                };
                vec![best, ranks::register_integer(self.w, dims, I32, 0)]
            }
            _ => Vec::new(),
        }
    }

    /// A reduction joined with what one iteration has of it.
    fn step(&mut self, element: ElementId, carried: &mut impl Iterator<Item = Value>) -> Vec<Value> {
        let plan = self.plan;
        let mut folded = || carried.next();
        match plan.elements.node(element) {
            ElementNode::Reduce { kind, accumulate, axes, body } => {
                let Some(so_far) = folded() else { return Vec::new() };
                let body = self.with_axes(*body, axes, *accumulate);
                let dims: Vec<Symbol> = axes.iter().map(|axis| axis.index).collect();
                let own = self.folded(*kind, body, &dims);
                let op = match kind {
                    ReduceKind::Sum | ReduceKind::Average => BinaryOp::Add,
                    ReduceKind::Product => BinaryOp::Mul,
                    ReduceKind::Max | ReduceKind::Or => BinaryOp::Max,
                    ReduceKind::Min | ReduceKind::And => BinaryOp::Min,
                };
                vec![so_far.binary(op, own)]
            }
            ElementNode::ArgReduce { extreme, axis, body } => {
                let (Some(best), Some(place)) = (folded(), folded()) else { return Vec::new() };
                let dtype = self.common(&[*body]);
                let body = self.with_axes(*body, std::slice::from_ref(axis), dtype);
                let (op, predicate) = match extreme {
                    ArgReduceKind::Max => (ReductionOp::Max, Predicate::Gt),
                    ArgReduceKind::Min => (ReductionOp::Min, Predicate::Lt),
                };
                let own = body.fold(op, axis.index);
                let is_it = body.compare(Predicate::Eq, own);
                let far = ranks::register_integer(self.w, &[], I32, i64::from(i32::MAX));
                let first = self.w.select(is_it, self.w.self_index(axis.index), far).min(axis.index);
                let mut better = own.compare(predicate, best);
                if dtype.is_float() {
                    let is_first = best.compare(Predicate::Ne, best);
                    better |= is_first & own.compare(Predicate::Eq, own);
                }
                vec![self.w.select(better, own, best), self.w.select(better, first, place)]
            }
            _ => Vec::new(),
        }
    }
}
