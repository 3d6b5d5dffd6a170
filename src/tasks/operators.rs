//! What an author combines elements with: the operators of Rust, operations as data, reads at indices.

use std::ops;
use std::panic::Location as Caller;

use super::element::{ElementId, ElementNode, ElementNumber, ReadIndex};
use super::tracer::{TaskElement, TaskIndex, TaskTensor, TaskTracer};
use crate::prelude::*;

/// An operand of arithmetic on elements: an element or a number.
pub trait ElementOperand<'t> {
    /// The operand as an element of a task.
    #[doc(hidden)]
    fn into_element(self, task: &'t TaskTracer) -> TaskElement<'t>;
}

impl<'t> ElementOperand<'t> for TaskElement<'t> {
    fn into_element(self, _: &'t TaskTracer) -> TaskElement<'t> {
        self
    }
}

impl<'t> ElementOperand<'t> for f64 {
    fn into_element(self, task: &'t TaskTracer) -> TaskElement<'t> {
        task.number(ElementNumber::Float(self))
    }
}

impl<'t> ElementOperand<'t> for i32 {
    fn into_element(self, task: &'t TaskTracer) -> TaskElement<'t> {
        task.number(ElementNumber::Integer(self.into()))
    }
}

impl<'t> TaskElement<'t> {
    /// An operation on one element.
    #[track_caller]
    #[must_use]
    pub fn unary(self, op: UnaryOp) -> TaskElement<'t> {
        self.task.same_dtype(Caller::caller(), &[self], |ids| ElementNode::Unary(op, ids[0]), None)
    }

    /// An operation on two elements.
    #[track_caller]
    #[must_use]
    pub fn binary(self, op: BinaryOp, other: impl ElementOperand<'t>) -> TaskElement<'t> {
        let operands = [self, other.into_element(self.task)];
        let node = |ids: &[ElementId]| ElementNode::Binary(op, ids[0], ids[1]);
        self.task.same_dtype(Caller::caller(), &operands, node, None)
    }

    /// An operation on three elements.
    #[track_caller]
    #[must_use]
    pub fn ternary(
        self,
        op: TernaryOp,
        first: impl ElementOperand<'t>,
        second: impl ElementOperand<'t>,
    ) -> TaskElement<'t> {
        let operands = [self, first.into_element(self.task), second.into_element(self.task)];
        let node = |ids: &[ElementId]| ElementNode::Ternary(op, [ids[0], ids[1], ids[2]]);
        self.task.same_dtype(Caller::caller(), &operands, node, None)
    }

    /// A condition: whether the predicate holds for this element and the other one.
    #[track_caller]
    #[must_use]
    pub fn compare(self, predicate: Predicate, other: impl ElementOperand<'t>) -> TaskElement<'t> {
        let operands = [self, other.into_element(self.task)];
        let node = |ids: &[ElementId]| ElementNode::Compare(predicate, ids[0], ids[1]);
        self.task.same_dtype(Caller::caller(), &operands, node, Some(DType::I1))
    }

    /// `yes` where this condition holds, `no` elsewhere.
    #[track_caller]
    #[must_use]
    pub fn select(self, yes: impl ElementOperand<'t>, no: impl ElementOperand<'t>) -> TaskElement<'t> {
        let caller = Caller::caller();
        let (condition, task) = (self.id, self.task);
        task.expect_condition(caller, self);
        let operands = [yes.into_element(task), no.into_element(task)];
        task.same_dtype(caller, &operands, |ids| ElementNode::Select([condition, ids[0], ids[1]]), None)
    }

    /// The element in another dtype, as [`Value::cast`] converts it.
    #[track_caller]
    #[must_use]
    pub fn cast(self, dtype: DType) -> TaskElement<'t> {
        self.task.cast(Caller::caller(), self, dtype)
    }
}

/// Methods of operations that authors need most; the others are given as data.
macro_rules! element_methods {
    ($($method:ident $op:ident $doc:literal;)*) => {
        impl<'t> TaskElement<'t> {
            $(
                #[doc = $doc]
                #[track_caller]
                #[must_use]
                pub fn $method(self) -> TaskElement<'t> {
                    self.unary(UnaryOp::$op)
                }
            )*
        }
    };
}

element_methods! {
    exp Exp "e to the power of the element (floats).";
    log Log "The natural logarithm (floats).";
    sqrt Sqrt "The square root (floats).";
    rsqrt Rsqrt "One over the square root (floats).";
    tanh Tanh "The hyperbolic tangent (floats).";
    sigmoid Sigmoid "`1 / (1 + e^-x)` (floats).";
    silu Silu "The element times its sigmoid (floats).";
    gelu Gelu "`x (1 + erf(x / sqrt 2)) / 2` (floats).";
    abs Abs "The absolute value.";
}

macro_rules! element_operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<'t, T: ElementOperand<'t>> ops::$trait<T> for TaskElement<'t> {
            type Output = TaskElement<'t>;
            #[track_caller]
            fn $method(self, other: T) -> TaskElement<'t> {
                self.binary(BinaryOp::$op, other)
            }
        }
    )*};
}

element_operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
}

impl<'t> ops::Neg for TaskElement<'t> {
    type Output = TaskElement<'t>;
    #[track_caller]
    fn neg(self) -> TaskElement<'t> {
        self.unary(UnaryOp::Neg)
    }
}

impl<T: Into<SymExpr>> From<T> for TaskIndex {
    fn from(index: T) -> TaskIndex {
        TaskIndex(ReadIndex::Affine(index.into()))
    }
}

impl From<TaskElement<'_>> for TaskIndex {
    fn from(element: TaskElement<'_>) -> TaskIndex {
        TaskIndex(ReadIndex::Element(element.id))
    }
}

/// The indices of a read, one for each dimension: an array, or a tuple of whatever becomes a [`TaskIndex`].
pub trait TaskIndices {
    /// As a list.
    #[doc(hidden)]
    fn into_indices(self) -> Vec<TaskIndex>;
}

impl<T: Into<TaskIndex>, const N: usize> TaskIndices for [T; N] {
    fn into_indices(self) -> Vec<TaskIndex> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! index_tuples {
    ($($($name:ident)+;)*) => {$(
        impl<$($name: Into<TaskIndex>),+> TaskIndices for ($($name,)+) {
            #[allow(non_snake_case, reason = "each is called like its type")]
            fn into_indices(self) -> Vec<TaskIndex> {
                let ($($name,)+) = self;
                vec![$($name.into()),+]
            }
        }
    )*};
}

index_tuples! {
    A;
    A B;
    A B C;
    A B C D;
}

impl<'t> TaskTensor<'t> {
    /// The element at these indices; zero if one of them lies outside of the tensor.
    #[track_caller]
    #[must_use]
    pub fn at(self, indices: impl TaskIndices) -> TaskElement<'t> {
        self.task.read(Caller::caller(), self, indices.into_indices())
    }
}
