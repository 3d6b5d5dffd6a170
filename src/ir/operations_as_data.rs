//! Arithmetic on values by the operation as data, for those who make kernels of something that they have
//! read.

use std::panic::Location as Caller;

use super::builder::{Tracer, Value, ValueOperand};
use super::node::ValueType;
use super::op::{BinaryOp, Op, Predicate, ReductionOp, TernaryOp, UnaryOp};
use super::reduced_dims::ReducedDims;

impl Value {
    /// The value of an operation on one value: `x.unary(UnaryOp::Exp)` is `x.exp()`.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let n = Symbol::new("N");
    /// for op in [UnaryOp::Exp, UnaryOp::Neg] {
    ///     let kernel = Kernel::trace("unary", |w| {
    ///         w.distribute([workgroup(n, 256, 0)]);
    ///         let [a, b] = ["a", "b"].map(|name| w.memory(name, [n], Global, F32));
    ///         w.write(w.read(a).unary(op).binary(BinaryOp::Add, 1.0), b);
    ///     })?;
    /// #   kernel.compile(&Options::new(Target::GFX942).set(n, 100))?;
    /// }
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn unary(self, op: UnaryOp) -> Value {
        self.by_data(Caller::caller(), Op::Unary(op), &[])
    }

    /// The value of an operation on two values.
    #[track_caller]
    #[must_use]
    pub fn binary(self, op: BinaryOp, other: impl ValueOperand) -> Value {
        let caller = Caller::caller();
        self.by_data(caller, Op::Binary(op), &[other.into_value(self.trace, caller)])
    }

    /// The value of an operation on three values.
    #[track_caller]
    #[must_use]
    pub fn ternary(self, op: TernaryOp, first: impl ValueOperand, second: impl ValueOperand) -> Value {
        let caller = Caller::caller();
        let others = [first.into_value(self.trace, caller), second.into_value(self.trace, caller)];
        self.by_data(caller, Op::Ternary(op), &others)
    }

    /// An i1 value: where the predicate holds for the value and the other one.
    #[track_caller]
    #[must_use]
    pub fn compare(self, predicate: Predicate, other: impl ValueOperand) -> Value {
        let caller = Caller::caller();
        self.by_data(caller, Op::Compare(predicate), &[other.into_value(self.trace, caller)])
    }

    /// The reduction of the value along dimensions: `x.fold(ReductionOp::Sum, n)` is `x.sum(n)`.
    #[track_caller]
    #[must_use]
    pub fn fold(self, op: ReductionOp, dims: impl ReducedDims) -> Value {
        match op {
            ReductionOp::Sum => self.sum(dims),
            ReductionOp::Product => self.product(dims),
            ReductionOp::Min => self.min(dims),
            ReductionOp::Max => self.max(dims),
        }
    }

    fn by_data(self, caller: &'static Caller<'static>, op: Op, others: &[Value]) -> Value {
        let operands = std::iter::once(&self).chain(others).map(|value| (value.node, value.trace));
        let operands: Vec<_> = operands.collect();
        Tracer { trace: self.trace }.node(caller, op, &operands, ValueType::unknown())
    }
}
