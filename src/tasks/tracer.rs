//! The tracer of tasks and what it hands out: elements and tensors with which closures compute. The first
//! fault is kept with the author's line.

use std::cell::RefCell;
use std::panic::Location as Caller;

use cranelift_entity::PrimaryMap;

use super::element::{ElementId, ElementNode, ElementNumber, Elements, ReadIndex, TensorId};
use super::inverse::InverseMap;
use super::{TaskAssertion, TaskAttribute, TensorDefinition};
use crate::prelude::*;

/// Element types that tasks compute with.
pub(super) const DTYPES: [DType; 8] = [F64, F32, F16, Bf16, I8, I16, I32, I64];

/// A task that is being defined: what the closure of [`Task::define`](super::Task::define) is given.
pub struct TaskTracer {
    pub(super) state: RefCell<TaskState>,
}

pub(super) struct TaskState {
    pub(super) elements: Elements,
    pub(super) tensors: PrimaryMap<TensorId, TensorDefinition>,
    pub(super) outputs: Vec<TensorId>,
    pub(super) attributes: Vec<(String, TaskAttribute)>,
    pub(super) assertions: Vec<TaskAssertion>,
    pub(super) inverse_maps: Vec<InverseMap>,
    pub(super) axes: u32,
    pub(super) fault: Option<Diagnostic>,
}

/// An element of a tensor while its task is defined: what a closure over indices gives. It has the operators
/// of Rust, and the operations of the language as data ([`TaskElement::unary`] and so on).
///
/// Both sides of an operation have one dtype; numbers take it from the other side.
#[derive(Copy, Clone)]
pub struct TaskElement<'t> {
    pub(super) task: &'t TaskTracer,
    pub(super) id: ElementId,
}

/// A tensor of a task while it is defined.
#[derive(Copy, Clone)]
pub struct TaskTensor<'t> {
    pub(super) task: &'t TaskTracer,
    pub(super) id: TensorId,
}

/// An index of a read: an expression of the indices in scope and of sizes, or an integer element.
#[derive(Clone)]
pub struct TaskIndex(pub(super) ReadIndex);

impl TaskTracer {
    pub(super) fn number(&self, number: ElementNumber) -> TaskElement<'_> {
        self.push(Caller::caller(), ElementNode::Number(number), None)
    }

    pub(super) fn push(
        &self,
        caller: &'static Caller<'static>,
        node: ElementNode,
        dtype: Option<DType>,
    ) -> TaskElement<'_> {
        let mut state = self.state.borrow_mut();
        let mut id = state.elements.push(node, dtype);
        if state.elements.is_too_deep(id) {
            let text = "an element has more than 256 operations in a chain, or 6 reductions in one another";
            let fault = Diagnostic::invalid(text).at(Some(caller.into()));
            state.fault.get_or_insert(fault.help("compute a part of it as a tensor of its own"));
            id = state.elements.push(ElementNode::Number(ElementNumber::Integer(0)), dtype);
        }
        TaskElement { task: self, id }
    }

    pub(super) fn dtype(&self, element: TaskElement<'_>) -> Option<DType> {
        self.state.borrow().elements.dtype(element.id)
    }

    pub(super) fn fail(&self, caller: &'static Caller<'static>, text: impl Into<String>) {
        let fault = Diagnostic::invalid(text).at(Some(caller.into()));
        self.state.borrow_mut().fault.get_or_insert(fault);
    }

    /// Elements and tensors of another task are refused. Their numbers mean nothing here.
    pub(super) fn check_own(&self, caller: &'static Caller<'static>, task: &TaskTracer) -> bool {
        let own = std::ptr::eq(self, task);
        if !own {
            self.fail(caller, "an element or a tensor of another task is used here");
        }
        own
    }

    /// An operation on operands of one dtype, which is that of its result unless `result` is another.
    pub(super) fn same_dtype(
        &self,
        caller: &'static Caller<'static>,
        operands: &[TaskElement<'_>],
        node: impl FnOnce(&[ElementId]) -> ElementNode,
        result: Option<DType>,
    ) -> TaskElement<'_> {
        if !operands.iter().all(|operand| self.check_own(caller, operand.task)) {
            return self.number(ElementNumber::Integer(0));
        }
        let dtypes: Vec<DType> = operands.iter().filter_map(|&operand| self.dtype(operand)).collect();
        if let Some(other) = dtypes.iter().find(|dtype| **dtype != dtypes[0]) {
            self.fail(caller, format!("{} and {other} are combined: cast one of them first", dtypes[0]));
        }
        let ids: Vec<ElementId> = operands.iter().map(|operand| operand.id).collect();
        self.push(caller, node(&ids), result.or(dtypes.first().copied()))
    }

    pub(super) fn expect_condition(&self, caller: &'static Caller<'static>, condition: TaskElement<'_>) {
        if self.check_own(caller, condition.task) && self.dtype(condition) != Some(DType::I1) {
            self.fail(caller, "what is chosen by is no condition: compare first");
        }
    }

    pub(super) fn cast(
        &self,
        caller: &'static Caller<'static>,
        element: TaskElement<'_>,
        dtype: DType,
    ) -> TaskElement<'_> {
        if !self.check_own(caller, element.task) {
            return self.number(ElementNumber::Integer(0));
        }
        if !DTYPES.contains(&dtype) {
            self.fail(caller, format!("tasks do not compute with {dtype}: cast it outside, or use f32"));
        }
        if self.dtype(element) == Some(dtype) {
            return TaskElement { task: self, id: element.id };
        }
        self.push(caller, ElementNode::Cast(dtype, element.id), Some(dtype))
    }

    pub(super) fn read(
        &self,
        caller: &'static Caller<'static>,
        tensor: TaskTensor<'_>,
        indices: Vec<TaskIndex>,
    ) -> TaskElement<'_> {
        if !self.check_own(caller, tensor.task) {
            return self.number(ElementNumber::Integer(0));
        }
        let (name, rank, dtype) = {
            let state = self.state.borrow();
            let definition = &state.tensors[tensor.id];
            (definition.name.clone(), definition.axes.len(), definition.dtype)
        };
        if rank != indices.len() {
            self.fail(
                caller,
                format!("{name} has {rank} dimensions, and {} indices are given", indices.len()),
            );
        }
        let indices: Box<[ReadIndex]> = indices.into_iter().map(|index| index.0).collect();
        let has_floats = indices.iter().any(|index| match index {
            ReadIndex::Affine(_) => false,
            ReadIndex::Element(element) => self.state.borrow().elements.dtype(*element) != Some(I32),
        });
        if has_floats {
            self.fail(caller, format!("an index of {name} is an element that is not i32: cast it"));
        }
        self.push(caller, ElementNode::Read { tensor: tensor.id, indices }, Some(dtype))
    }
}
