//! Tasks while they are defined: a closure adds inputs, computed tensors and outputs; the first fault is kept
//! with the author's line.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::Location as Caller;

use cranelift_entity::PrimaryMap;

use super::element::{ArgReduceKind, ElementId, ElementNode, Elements, ReadIndex, ReduceKind, TaskAxis};
use super::inverse::{InverseMap, check_inverse};
use super::tracer::{DTYPES, TaskElement, TaskState, TaskTensor, TaskTracer};
use super::{Task, TaskAssertion, TaskAttribute, TensorDefinition};
use crate::prelude::*;

/// Most dimensions of a tensor.
const MAX_RANK: usize = 5;

/// Names of axes, and of the dimensions of kernels, begin so; those of sizes do not.
pub(super) const AXIS: &str = "axis_";

impl Task {
    /// Defines a task: `body` adds its inputs, what it computes of them, and its outputs.
    ///
    /// # Errors
    /// The first fault of the body, with its line: dtypes that differ, indices that are not bound, shapes of
    /// other ranks, two tensors of one name, no output, an inverse map that does not invert, an assertion
    /// that does not hold.
    #[track_caller]
    pub fn define(name: &str, body: impl for<'t> FnOnce(&'t TaskTracer)) -> Result<Task, Diagnostic> {
        let caller = Caller::caller();
        let tracer = TaskTracer {
            state: RefCell::new(TaskState {
                elements: Elements::default(),
                tensors: PrimaryMap::new(),
                outputs: Vec::new(),
                attributes: Vec::new(),
                assertions: Vec::new(),
                inverse_maps: Vec::new(),
                axes: 0,
                fault: None,
            }),
        };
        body(&tracer);
        let state = tracer.state.into_inner();
        if let Some(fault) = state.fault {
            return Err(fault);
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let fault = if name.is_empty() || !name.chars().all(is_name) {
            Some(format!("`{name}` is no name of a task: use letters, digits and underscores"))
        } else if state.outputs.is_empty() {
            Some(format!("the task {name} has no output"))
        } else {
            None
        };
        if let Some(fault) = fault {
            return Err(Diagnostic::invalid(fault).at(Some(caller.into())));
        }
        let task = Task {
            name: name.to_owned(),
            elements: state.elements,
            tensors: state.tensors,
            outputs: state.outputs,
            attributes: state.attributes,
            assertions: state.assertions,
            inverse_maps: state.inverse_maps,
        };
        for inverse in &task.inverse_maps {
            check_inverse(&task, inverse).map_err(|fault| fault.at(Some(caller.into())))?;
        }
        Ok(task)
    }
}

impl TaskTracer {
    /// An input of the task: a tensor of up to five dimensions.
    #[track_caller]
    pub fn input<const N: usize>(
        &self,
        name: &str,
        shape: [impl Into<SymExpr>; N],
        dtype: DType,
    ) -> TaskTensor<'_> {
        let caller = Caller::caller();
        let shape: Vec<SymExpr> = shape.into_iter().map(Into::into).collect();
        if !DTYPES.contains(&dtype) {
            self.fail(caller, format!("tasks do not compute with {dtype}: cast it outside, or use f32"));
        }
        let axes = self.axes(&shape);
        let definition = TensorDefinition { name: name.to_owned(), axes, dtype, value: None };
        self.tensor(caller, definition)
    }

    /// A computed tensor: each of its elements is what `element` gives for its indices. It may be read by
    /// others, and be an output.
    #[track_caller]
    pub fn compute<'t, const N: usize>(
        &'t self,
        name: &str,
        shape: [impl Into<SymExpr>; N],
        element: impl FnOnce([Symbol; N]) -> TaskElement<'t>,
    ) -> TaskTensor<'t> {
        let caller = Caller::caller();
        let shape: Vec<SymExpr> = shape.into_iter().map(Into::into).collect();
        let axes = self.axes(&shape);
        let value = element(std::array::from_fn(|dim| axes[dim].index));
        let dtype = self.dtype(value).unwrap_or(F32);
        if dtype == DType::I1 {
            self.fail(caller, format!("the elements of {name} are conditions: cast them, to i8 or i32"));
        }
        self.check_bound(caller, value.id, &axes);
        self.tensor(caller, TensorDefinition { name: name.to_owned(), axes, dtype, value: Some(value.id) })
    }

    /// The reduction of `element` over a box of indices, accumulated in `accumulate`, which is also the dtype
    /// of the result. Elements of other dtypes are cast to it; [`ReduceKind::And`] and [`ReduceKind::Or`]
    /// take conditions and give one, whatever it says.
    #[track_caller]
    pub fn reduce<'t, const N: usize>(
        &'t self,
        shape: [impl Into<SymExpr>; N],
        kind: ReduceKind,
        accumulate: DType,
        element: impl FnOnce([Symbol; N]) -> TaskElement<'t>,
    ) -> TaskElement<'t> {
        let caller = Caller::caller();
        let shape: Vec<SymExpr> = shape.into_iter().map(Into::into).collect();
        let axes = self.axes(&shape);
        let mut body = element(std::array::from_fn(|dim| axes[dim].index));
        let is_condition = self.dtype(body) == Some(DType::I1);
        if kind.is_of_conditions() != is_condition {
            let wanted =
                if is_condition { "numbers: cast the condition" } else { "conditions: compare first" };
            self.fail(caller, format!("a reduction of this kind takes {wanted}"));
        }
        if !DTYPES.contains(&accumulate) || (kind == ReduceKind::Average && !accumulate.is_float()) {
            self.fail(caller, format!("this reduction does not accumulate in {accumulate}: use f32"));
        }
        let dtype = if is_condition { DType::I1 } else { accumulate };
        if !is_condition && self.dtype(body) != Some(accumulate) {
            body = self.cast(caller, body, accumulate);
        }
        let node = ElementNode::Reduce { kind, accumulate, axes: axes.into(), body: body.id };
        self.push(caller, node, Some(dtype))
    }

    /// The index, as i32, of the largest or smallest element along an axis of `extent` indices: the first of
    /// equal ones. NaNs are passed over; it is 0 where there is nothing else.
    #[track_caller]
    pub fn arg_reduce<'t>(
        &'t self,
        extent: impl Into<SymExpr>,
        extreme: ArgReduceKind,
        element: impl FnOnce(Symbol) -> TaskElement<'t>,
    ) -> TaskElement<'t> {
        let caller = Caller::caller();
        let axes = self.axes(&[extent.into()]);
        let axis = axes[0].clone();
        let body = element(axis.index);
        if self.dtype(body).is_none_or(|dtype| dtype == DType::I1) {
            self.fail(caller, "the largest or smallest element is asked for of numbers of a dtype");
        }
        self.push(caller, ElementNode::ArgReduce { extreme, axis, body: body.id }, Some(I32))
    }

    /// An index, or an expression of indices and sizes, as an i32 element.
    #[track_caller]
    pub fn index(&self, index: impl Into<SymExpr>) -> TaskElement<'_> {
        self.push(Caller::caller(), ElementNode::Index(index.into()), Some(I32))
    }

    /// Makes a computed tensor an output; outputs are in the order of these calls.
    #[track_caller]
    pub fn output(&self, tensor: TaskTensor<'_>) {
        let caller = Caller::caller();
        self.check_own(caller, tensor.task);
        let mut state = self.state.borrow_mut();
        let is_input = state.tensors.get(tensor.id).is_some_and(|tensor| tensor.value.is_none());
        if !is_input && !state.outputs.contains(&tensor.id) {
            state.outputs.push(tensor.id);
            return;
        }
        drop(state);
        self.fail(caller, "an output is a computed tensor, and an output once");
    }

    /// A fact about the task that templates read.
    pub fn attribute(&self, name: &str, value: impl Into<TaskAttribute>) {
        self.state.borrow_mut().attributes.push((name.to_owned(), value.into()));
    }

    /// A condition on sizes. It is checked here if both sides are numbers, and with the sizes otherwise.
    #[track_caller]
    pub fn require(
        &self,
        left: impl Into<SymExpr>,
        predicate: Predicate,
        right: impl Into<SymExpr>,
        message: &str,
    ) {
        let caller = Caller::caller();
        let assertion =
            TaskAssertion { left: left.into(), predicate, right: right.into(), message: message.to_owned() };
        if let Some(false) = assertion.holds(&|_| None) {
            self.fail(caller, format!("the task does not hold what it requires: {message}"));
        }
        self.state.borrow_mut().assertions.push(assertion);
    }

    /// The map from indices of an input to the index of the output element that reads it: what makes a task
    /// bijective. It is checked by evaluation when the task is complete.
    #[track_caller]
    pub fn inverse_map<const N: usize, const M: usize>(
        &self,
        input: TaskTensor<'_>,
        map: impl FnOnce([Symbol; N]) -> [SymExpr; M],
    ) {
        let caller = Caller::caller();
        self.check_own(caller, input.task);
        let axes: Vec<Symbol> = self.axes(&vec![SymExpr::from(1); N]).iter().map(|axis| axis.index).collect();
        let results = map(std::array::from_fn(|dim| axes[dim])).to_vec();
        let inverse = InverseMap { input: input.id, axes, results };
        self.state.borrow_mut().inverse_maps.push(inverse);
    }

    fn axes(&self, shape: &[SymExpr]) -> Vec<TaskAxis> {
        let mut state = self.state.borrow_mut();
        let mut axis = |extent: &SymExpr| {
            state.axes += 1;
            TaskAxis { index: Symbol::new(&format!("{AXIS}{}", state.axes)), extent: extent.clone() }
        };
        shape.iter().map(&mut axis).collect()
    }

    fn tensor(&self, caller: &'static Caller<'static>, definition: TensorDefinition) -> TaskTensor<'_> {
        let name = definition.name.clone();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut state = self.state.borrow_mut();
        let is_new = state.tensors.values().all(|tensor| tensor.name != name);
        let rank = definition.axes.len();
        let mut sizes = Vec::new();
        definition.axes.iter().for_each(|axis| axis.extent.visit(&mut |symbol| sizes.push(symbol)));
        let id = state.tensors.push(definition);
        drop(state);
        if name.is_empty() || !name.chars().all(is_name) {
            self.fail(
                caller,
                format!("`{name}` is no name of a tensor: use letters, digits and underscores"),
            );
        } else if !is_new {
            self.fail(caller, format!("two tensors have the name {name}"));
        } else if rank > MAX_RANK {
            self.fail(caller, format!("{name} has {rank} dimensions; tensors have at most {MAX_RANK}"));
        } else if let Some(size) = sizes.iter().find(|size| size.name().starts_with(AXIS)) {
            self.fail(caller, format!("the shape of {name} has {size}, which is an index and no size"));
        }
        TaskTensor { task: self, id }
    }

    /// Every index in an element is one of its tensor's, or of a reduction around it.
    fn check_bound(&self, caller: &'static Caller<'static>, element: ElementId, axes: &[TaskAxis]) {
        let state = self.state.borrow();
        let unbound = unbound_index(&state.elements, element, &mut axes.to_vec());
        drop(state);
        if let Some(index) = unbound {
            let text = format!("{index} is an index of another tensor or reduction, and not bound here");
            self.fail(caller, text);
        }
    }
}

/// An index that is used outside of what binds it, in an element or what it is made of.
fn unbound_index(elements: &Elements, element: ElementId, bound: &mut Vec<TaskAxis>) -> Option<Symbol> {
    let mut seen = BTreeSet::new();
    let mut next = vec![element];
    while let Some(element) = next.pop() {
        if !seen.insert(element) {
            continue;
        }
        let mut found = None;
        let mut check = |e: &SymExpr| {
            e.visit(&mut |symbol| {
                let is_bound = bound.iter().any(|axis| axis.index == symbol);
                if symbol.name().starts_with(AXIS) && !is_bound {
                    found = Some(symbol);
                }
            });
        };
        let node = elements.node(element);
        match node {
            ElementNode::Index(e) => check(e),
            ElementNode::Read { indices, .. } => indices.iter().for_each(|index| match index {
                ReadIndex::Affine(e) => check(e),
                ReadIndex::Element(_) => {}
            }),
            _ => {}
        }
        // What is reduced has more indices, and is looked at with these.
        let (axes, body) = match node {
            ElementNode::Reduce { axes, body, .. } => (&axes[..], Some(*body)),
            ElementNode::ArgReduce { axis, body, .. } => (std::slice::from_ref(axis), Some(*body)),
            _ => (&[][..], None),
        };
        match body {
            Some(body) => {
                let outer = bound.len();
                bound.extend_from_slice(axes);
                found = unbound_index(elements, body, bound);
                bound.truncate(outer);
            }
            None => node.operands(|operand| next.push(operand)),
        }
        if found.is_some() {
            return found;
        }
    }
    None
}
