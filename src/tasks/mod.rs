//! Tasks: what an operator computes, apart from how.
//!
//! A [`Task`] has tensors as inputs and says what each element of its outputs is: an expression of elements
//! at indices ([`TaskTracer::compute`]), reductions over boxes of indices ([`TaskTracer::reduce`],
//! [`TaskTracer::arg_reduce`]), and of other computed tensors. [`Task::evaluate`] is its meaning, on the host
//! and without any kernel. [`Task::kernels`] is the rule-based scheduler, which writes kernels of the
//! language for every task of its classes: with wide accesses, reductions by waves, and tiles that are turned
//! in LDS.
//!
//! Everything here is written with the public API: an author could have written it.
//!
//! # Example
//! Softmax over rows, in one kernel that reads each element once:
//! ```
//! use groundswell::prelude::*;
//! use groundswell::tasks::{ReduceKind, Task};
//!
//! let [m, n] = symbols(["M", "N"]);
//! let softmax = Task::define("softmax", |t| {
//!     let x = t.input("x", [m, n], F32);
//!     let largest = t.compute("largest", [m], |[i]| {
//!         t.reduce([n], ReduceKind::Max, F32, |[j]| x.at([i, j]))
//!     });
//!     let power = t.compute("power", [m, n], |[i, j]| (x.at([i, j]) - largest.at([i])).exp());
//!     let sum = t.compute("sum", [m], |[i]| t.reduce([n], ReduceKind::Sum, F32, |[j]| power.at([i, j])));
//!     t.output(t.compute("y", [m, n], |[i, j]| power.at([i, j]) / sum.at([i])));
//! })?;
//! let program = softmax.kernels(Target::GFX942, &[(m, 2), (n, 3)])?;
//! assert_eq!(program.kernels().len(), 1);
//!
//! let x = Tensor::from_slice(&[2, 3], &[1f32, 1.0, 1.0, 0.0, f32::NEG_INFINITY, f32::NEG_INFINITY])?;
//! let y = program.run(&Device::open()?, &[x])?;
//! assert_eq!(y[0].to_f64(), [1f32 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0, 0.0, 0.0].map(f64::from));
//! # Ok::<(), Diagnostic>(())
//! ```

mod define;
mod element;
mod evaluate;
mod float_functions;
mod inverse;
mod operators;
mod schedule;
mod tracer;

use cranelift_entity::PrimaryMap;

use crate::prelude::*;
use element::{ElementId, ElementNode, Elements, ReadIndex, TaskAxis, TensorId};
use inverse::InverseMap;

pub use element::{ArgReduceKind, ReduceKind};
pub use evaluate::TaskValues;
pub use operators::{ElementOperand, TaskIndices};
pub use schedule::{TaskKernel, TaskProgram};
pub use tracer::{TaskElement, TaskIndex, TaskTensor, TaskTracer};

/// A tensor of a task.
#[derive(Clone, Debug)]
struct TensorDefinition {
    name: String,
    axes: Vec<TaskAxis>,
    dtype: DType,
    /// Nothing for an input.
    value: Option<ElementId>,
}

/// A fact about a task that templates read.
#[derive(Clone, PartialEq, Debug)]
pub enum TaskAttribute {
    /// A word.
    Text(String),
    /// A number.
    Float(f64),
    /// An integer or a size.
    Size(SymExpr),
    /// A switch.
    Flag(bool),
}

impl From<&str> for TaskAttribute {
    fn from(text: &str) -> TaskAttribute {
        TaskAttribute::Text(text.to_owned())
    }
}

impl From<f64> for TaskAttribute {
    fn from(value: f64) -> TaskAttribute {
        TaskAttribute::Float(value)
    }
}

impl From<bool> for TaskAttribute {
    fn from(value: bool) -> TaskAttribute {
        TaskAttribute::Flag(value)
    }
}

impl From<i64> for TaskAttribute {
    fn from(value: i64) -> TaskAttribute {
        TaskAttribute::Size(value.into())
    }
}

impl From<Symbol> for TaskAttribute {
    fn from(size: Symbol) -> TaskAttribute {
        TaskAttribute::Size(size.into())
    }
}

/// A condition on sizes.
#[derive(Clone, Debug)]
struct TaskAssertion {
    left: SymExpr,
    predicate: Predicate,
    right: SymExpr,
    message: String,
}

impl TaskAssertion {
    /// True if it holds, if both sides have values.
    fn holds(&self, size: &impl Fn(Symbol) -> Option<i64>) -> Option<bool> {
        let order = self.left.value(size)?.cmp(&self.right.value(size)?);
        Some(match self.predicate {
            Predicate::Eq => order.is_eq(),
            Predicate::Ne => order.is_ne(),
            Predicate::Lt => order.is_lt(),
            Predicate::Le => order.is_le(),
            Predicate::Gt => order.is_gt(),
            Predicate::Ge => order.is_ge(),
        })
    }
}

/// The computation of an operator: see the [introduction](self).
#[derive(Clone, Debug)]
pub struct Task {
    name: String,
    elements: Elements,
    tensors: PrimaryMap<TensorId, TensorDefinition>,
    outputs: Vec<TensorId>,
    attributes: Vec<(String, TaskAttribute)>,
    assertions: Vec<TaskAssertion>,
    inverse_maps: Vec<InverseMap>,
}

impl Task {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of its inputs, in the order in which they were added.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.tensors.values().filter(|tensor| tensor.value.is_none()).map(|tensor| &*tensor.name)
    }

    /// Names of its outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().map(|&output| &*self.tensors[output].name)
    }

    /// An attribute, if it has one of this name.
    pub fn attribute(&self, name: &str) -> Option<&TaskAttribute> {
        self.attributes.iter().find(|attribute| attribute.0 == name).map(|attribute| &attribute.1)
    }

    /// The sizes in its shapes that are symbols, in the order of their names.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut symbols = Vec::new();
        for axis in self.tensors.values().flat_map(|tensor| &tensor.axes) {
            axis.extent.visit(&mut |symbol| symbols.push(symbol));
        }
        symbols.sort_by_key(|symbol| symbol.name());
        symbols.dedup();
        symbols
    }

    /// The computed tensors that outputs depend on, themselves among them, by number.
    fn reached(&self) -> Vec<TensorId> {
        let mut reached = std::collections::BTreeSet::new();
        let mut next = self.outputs.clone();
        while let Some(tensor) = next.pop() {
            let Some(value) = self.tensors[tensor].value.filter(|_| reached.insert(tensor)) else { continue };
            self.elements.any(value, &mut |node| {
                if let ElementNode::Read { tensor, .. } = node {
                    next.push(*tensor);
                }
                false
            });
        }
        reached.into_iter().collect()
    }

    /// True if no output depends on a reduction: every element is a function of some elements of inputs.
    pub fn is_injective(&self) -> bool {
        let reduces =
            |node: &ElementNode| matches!(node, ElementNode::Reduce { .. } | ElementNode::ArgReduce { .. });
        let mut values = self.reached().into_iter().filter_map(|tensor| self.tensors[tensor].value);
        !values.any(|value| self.elements.any(value, &mut { reduces }))
    }

    /// True if it is injective and has an inverse map: each element of some input goes to one element of the
    /// output.
    pub fn is_bijective(&self) -> bool {
        self.is_injective() && !self.inverse_maps.is_empty()
    }

    /// True if it is injective and each tensor is read only at the indices of the element that is computed:
    /// all of them in their order, or some of them where the others are repeated.
    pub fn is_elementwise(&self) -> bool {
        self.is_injective()
            && self.reached().into_iter().all(|tensor| {
                let definition = &self.tensors[tensor];
                let is_elsewhere = |node: &ElementNode| {
                    let ElementNode::Read { tensor, indices } = node else { return false };
                    !reads_in_order(&definition.axes, &self.tensors[*tensor].axes, indices)
                };
                definition.value.is_none_or(|value| !self.elements.any(value, &mut { is_elsewhere }))
            })
    }

    /// The faults of assertions that do not hold for sizes; one whose symbols have no value does not count.
    fn check_assertions(&self, size: &impl Fn(Symbol) -> Option<i64>) -> Result<(), Diagnostic> {
        let broken = self.assertions.iter().find(|assertion| assertion.holds(size) == Some(false));
        match broken {
            Some(assertion) => {
                let text =
                    format!("the task {} does not hold what it requires: {}", self.name, assertion.message);
                Err(Diagnostic::invalid(text).help("choose sizes for which it does"))
            }
            None => Ok(()),
        }
    }
}

/// True if indices are axes of the reader in their order, each of the extent that the tensor has there.
fn reads_in_order(reader: &[TaskAxis], read: &[TaskAxis], indices: &[ReadIndex]) -> bool {
    let mut from = 0;
    indices.iter().zip(read).all(|(index, own)| {
        let ReadIndex::Affine(index) = index else { return false };
        let place = reader.iter().skip(from).position(|axis| index.as_symbol() == Some(axis.index));
        let Some(place) = place else { return false };
        let axis = &reader[from + place];
        from += place + 1;
        axis.extent == own.extent
    })
}
