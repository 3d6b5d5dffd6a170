//! What a task means: each element computed on the host, on its own, in f64 and exact integers.

use std::collections::BTreeMap;

use super::element::{ArgReduceKind, ElementNode, ElementNumber, ReadIndex, ReduceKind, TaskAxis, TensorId};
use super::float_functions::{binary, of_integers, unary};
use super::{ElementId, Task};
use crate::prelude::*;

/// Most elements of a tensor that is evaluated.
const MAX_ELEMENTS: usize = 1 << 26;

/// The elements of a tensor, row-major: floats as f64, integers exactly.
#[derive(Clone, PartialEq, Debug)]
pub enum TaskValues {
    /// Of a float dtype.
    Floats(Vec<f64>),
    /// Of an integer dtype.
    Integers(Vec<i64>),
}

impl TaskValues {
    /// The elements as f64; integers beyond 2^53 are rounded.
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            TaskValues::Floats(values) => values.clone(),
            TaskValues::Integers(values) => values.iter().map(|&value| value as f64).collect(),
        }
    }
}

/// One element.
#[derive(Copy, Clone, PartialEq, Debug)]
enum ElementValue {
    Float(f64),
    Integer(i64),
    Condition(bool),
}

impl ElementValue {
    fn float(self) -> f64 {
        match self {
            ElementValue::Float(value) => value,
            ElementValue::Integer(value) => value as f64,
            ElementValue::Condition(value) => f64::from(u8::from(value)),
        }
    }

    fn integer(self) -> i64 {
        match self {
            // As casts of the language: truncated, and saturated by Rust.
            ElementValue::Float(value) => value as i64,
            ElementValue::Integer(value) => value,
            ElementValue::Condition(value) => value.into(),
        }
    }
}

/// An integer in so many bits.
fn wrapped(value: i64, dtype: DType) -> i64 {
    let unused = 64 - dtype.bits();
    value << unused >> unused
}

/// A float rounded to a dtype.
fn rounded(value: f64, dtype: DType) -> f64 {
    match dtype {
        F32 => f64::from(value as f32),
        F16 => f64::from(f16::from_f64(value)),
        Bf16 => f64::from(bf16::from_f64(value)),
        _ => value,
    }
}

/// A tensor with its elements.
struct Filled {
    extents: Vec<i64>,
    values: TaskValues,
}

impl Task {
    /// The outputs for these sizes and inputs: the meaning of the task, which every kernel of it is judged
    /// by. Floats are computed in f64 and rounded only where the task casts them; integers wrap as those of
    /// their dtype do. Reductions visit their indices in row-major order, and begin with what they give of
    /// nothing.
    ///
    /// # Errors
    /// A size without a value, or of less than zero; an assertion that does not hold; inputs of other
    /// numbers, dtypes or shapes; a tensor of more than 2^26 elements.
    pub fn evaluate(
        &self,
        sizes: &[(Symbol, i64)],
        inputs: &[Tensor],
    ) -> Result<Vec<TaskValues>, Diagnostic> {
        let size = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol).map(|size| size.1);
        self.check_assertions(&size)?;
        let mut evaluation = TaskEvaluation { task: self, size: &size, filled: BTreeMap::new() };
        let mut given = inputs.iter();
        let reached = self.reached();
        for (id, definition) in &self.tensors {
            let extents = self.extents(id, &size)?;
            let values = match definition.value {
                None => {
                    let Some(tensor) = given.next() else {
                        return Err(Diagnostic::invalid(format!("the input {} is missing", definition.name)));
                    };
                    self.check_input(id, &extents, tensor)?;
                    read_tensor(tensor)
                }
                Some(_) if !reached.contains(&id) => continue,
                Some(value) => evaluation.fill(id, value, &extents),
            };
            evaluation.filled.insert(id, Filled { extents, values });
        }
        if given.next().is_some() {
            return Err(Diagnostic::invalid(format!("{} has fewer inputs than are given", self.name)));
        }
        let taken = self.outputs.iter().map(|output| evaluation.filled[output].values.clone());
        Ok(taken.collect())
    }

    /// The extents of a tensor for sizes.
    pub(super) fn extents(
        &self,
        tensor: TensorId,
        size: &impl Fn(Symbol) -> Option<i64>,
    ) -> Result<Vec<i64>, Diagnostic> {
        let definition = &self.tensors[tensor];
        let mut elements = 1usize;
        let mut extents = Vec::new();
        for axis in &definition.axes {
            let extent = axis.extent.value(size).filter(|extent| *extent >= 0);
            let Some(extent) = extent else {
                let text = format!("an extent of {} has no value, or a negative one", definition.name);
                return Err(Diagnostic::invalid(text).help("give every size of the task a value"));
            };
            elements = elements.saturating_mul(usize::try_from(extent).unwrap_or(usize::MAX));
            extents.push(extent);
        }
        if elements > MAX_ELEMENTS {
            let text = format!("{} has more than {MAX_ELEMENTS} elements", definition.name);
            return Err(Diagnostic::invalid(text));
        }
        Ok(extents)
    }

    pub(super) fn check_input(
        &self,
        id: TensorId,
        extents: &[i64],
        tensor: &Tensor,
    ) -> Result<(), Diagnostic> {
        let definition = &self.tensors[id];
        let shape: Vec<i64> = tensor.shape().iter().map(|&extent| extent as i64).collect();
        if shape != extents || tensor.dtype() != definition.dtype {
            return Err(Diagnostic::invalid(format!(
                "the input {} is {} of shape {extents:?}, and {} of shape {shape:?} is given",
                definition.name,
                definition.dtype,
                tensor.dtype()
            )));
        }
        Ok(())
    }
}

/// The elements of a tensor; integers exactly.
fn read_tensor(tensor: &Tensor) -> TaskValues {
    if tensor.dtype().is_float() {
        return TaskValues::Floats(tensor.to_f64());
    }
    TaskValues::Integers(match tensor.as_slice::<i64>() {
        Some(values) => values.to_vec(),
        // f64 holds every narrower integer.
        None => tensor.to_f64().into_iter().map(|value| value as i64).collect(),
    })
}

/// Values of bound indices, the innermost last.
type BoundIndices = Vec<(Symbol, i64)>;

struct TaskEvaluation<'a, S> {
    task: &'a Task,
    size: &'a S,
    filled: BTreeMap<TensorId, Filled>,
}

impl<S: Fn(Symbol) -> Option<i64>> TaskEvaluation<'_, S> {
    /// All elements of a computed tensor.
    fn fill(&self, tensor: TensorId, value: ElementId, extents: &[i64]) -> TaskValues {
        let definition = &self.task.tensors[tensor];
        let mut bound: BoundIndices = definition.axes.iter().map(|axis| (axis.index, 0)).collect();
        let mut elements = Vec::new();
        self.for_each(extents, &mut bound, |this, bound| {
            elements.push(this.element(value, bound, &mut BTreeMap::new()));
        });
        match definition.dtype.is_float() {
            true => TaskValues::Floats(elements.into_iter().map(ElementValue::float).collect()),
            false => TaskValues::Integers(
                elements.into_iter().map(|value| wrapped(value.integer(), definition.dtype)).collect(),
            ),
        }
    }

    /// Runs through a box of indices in row-major order; they are the last of those that are bound.
    fn for_each(
        &self,
        extents: &[i64],
        bound: &mut BoundIndices,
        mut see: impl FnMut(&Self, &mut BoundIndices),
    ) {
        let first = bound.len() - extents.len();
        let count: i64 = extents.iter().product();
        for number in 0..count {
            let mut rest = number;
            for (at, extent) in extents.iter().enumerate().rev() {
                bound[first + at].1 = rest % extent;
                rest /= extent;
            }
            see(self, bound);
        }
    }

    fn index(&self, e: &SymExpr, bound: &BoundIndices) -> i64 {
        let value = |symbol: Symbol| {
            let bound = bound.iter().rev().find(|index| index.0 == symbol).map(|index| index.1);
            bound.or_else(|| (self.size)(symbol))
        };
        e.value(&value).unwrap_or(-1)
    }

    /// An element; `known` are those that have been computed for the same indices.
    fn element(
        &self,
        element: ElementId,
        bound: &mut BoundIndices,
        known: &mut BTreeMap<ElementId, ElementValue>,
    ) -> ElementValue {
        if let Some(value) = known.get(&element) {
            return *value;
        }
        let dtype = self.task.elements.dtype(element);
        let mut of = |operand: ElementId| self.element(operand, bound, known);
        let value = match self.task.elements.node(element) {
            ElementNode::Number(ElementNumber::Float(value)) => ElementValue::Float(*value),
            ElementNode::Number(ElementNumber::Integer(value)) => ElementValue::Integer(*value),
            ElementNode::Index(e) => ElementValue::Integer(wrapped(self.index(e, bound), I32)),
            ElementNode::Read { tensor, indices } => {
                let at = indices.iter().map(|index| match index {
                    ReadIndex::Affine(e) => self.index(e, bound),
                    ReadIndex::Element(element) => self.element(*element, bound, known).integer(),
                });
                let at: Vec<i64> = at.collect();
                self.read(*tensor, &at)
            }
            ElementNode::Unary(op, a) => of_one(*op, of(*a), dtype),
            ElementNode::Binary(op, a, b) => of_two(*op, of(*a), of(*b), dtype),
            ElementNode::Ternary(TernaryOp::Fma, [a, b, c]) => {
                ElementValue::Float(of(*a).float().mul_add(of(*b).float(), of(*c).float()))
            }
            ElementNode::Compare(predicate, a, b) => {
                ElementValue::Condition(compare(*predicate, of(*a), of(*b)))
            }
            ElementNode::Select([condition, yes, no]) => match of(*condition) {
                ElementValue::Condition(true) => of(*yes),
                _ => of(*no),
            },
            ElementNode::Cast(dtype, a) => cast(of(*a), *dtype),
            ElementNode::Reduce { kind, accumulate, axes, body } => {
                self.reduce((*kind, *accumulate), axes, *body, bound)
            }
            ElementNode::ArgReduce { extreme, axis, body } => self.place(*extreme, axis, *body, bound),
        };
        known.insert(element, value);
        value
    }

    fn read(&self, tensor: TensorId, at: &[i64]) -> ElementValue {
        let filled = &self.filled[&tensor];
        let mut place = Some(0i64);
        for (index, extent) in at.iter().zip(&filled.extents) {
            place = place.filter(|_| (0..*extent).contains(index)).map(|place| place * extent + index);
        }
        let place = place.and_then(|place| usize::try_from(place).ok());
        match &filled.values {
            TaskValues::Floats(values) => ElementValue::Float(place.map_or(0.0, |place| values[place])),
            TaskValues::Integers(values) => ElementValue::Integer(place.map_or(0, |place| values[place])),
        }
    }

    fn reduce(
        &self,
        (kind, accumulate): (ReduceKind, DType),
        axes: &[TaskAxis],
        body: ElementId,
        bound: &mut BoundIndices,
    ) -> ElementValue {
        let extents: Vec<i64> = axes.iter().map(|axis| self.index(&axis.extent, bound).max(0)).collect();
        let mut value = initial(kind, accumulate);
        let outer = bound.len();
        bound.extend(axes.iter().map(|axis| (axis.index, 0)));
        self.for_each(&extents, bound, |this, bound| {
            let element = this.element(body, bound, &mut BTreeMap::new());
            let joined = |op| of_two(op, value, element, Some(accumulate));
            value = match kind {
                ReduceKind::Sum | ReduceKind::Average => joined(BinaryOp::Add),
                ReduceKind::Product => joined(BinaryOp::Mul),
                ReduceKind::Max => joined(BinaryOp::Max),
                ReduceKind::Min => joined(BinaryOp::Min),
                ReduceKind::And => ElementValue::Condition(value.integer() != 0 && element.integer() != 0),
                ReduceKind::Or => ElementValue::Condition(value.integer() != 0 || element.integer() != 0),
            };
        });
        bound.truncate(outer);
        match kind {
            ReduceKind::Average => {
                ElementValue::Float(value.float() / extents.iter().product::<i64>() as f64)
            }
            _ => value,
        }
    }

    /// The place of the first largest or smallest element.
    fn place(
        &self,
        extreme: ArgReduceKind,
        axis: &TaskAxis,
        body: ElementId,
        bound: &mut BoundIndices,
    ) -> ElementValue {
        let extent = self.index(&axis.extent, bound).max(0);
        let mut best: Option<(ElementValue, i64)> = None;
        bound.push((axis.index, 0));
        self.for_each(&[extent], bound, |this, bound| {
            let at = bound.last().map_or(0, |index| index.1);
            let element = this.element(body, bound, &mut BTreeMap::new());
            let predicate = match extreme {
                ArgReduceKind::Max => Predicate::Gt,
                ArgReduceKind::Min => Predicate::Lt,
            };
            let is_number = !element.float().is_nan();
            if is_number && best.is_none_or(|(best, _)| compare(predicate, element, best)) {
                best = Some((element, at));
            }
        });
        bound.pop();
        ElementValue::Integer(best.map_or(0, |(_, at)| at))
    }
}

/// The value that a reduction begins with.
fn initial(kind: ReduceKind, accumulate: DType) -> ElementValue {
    let least = i64::MIN >> (64 - accumulate.bits());
    match (kind, accumulate.is_float()) {
        (ReduceKind::Sum | ReduceKind::Average, true) => ElementValue::Float(0.0),
        (ReduceKind::Sum | ReduceKind::Average, false) => ElementValue::Integer(0),
        (ReduceKind::Product, true) => ElementValue::Float(1.0),
        (ReduceKind::Product, false) => ElementValue::Integer(1),
        (ReduceKind::Max, true) => ElementValue::Float(f64::NEG_INFINITY),
        (ReduceKind::Max, false) => ElementValue::Integer(least),
        (ReduceKind::Min, true) => ElementValue::Float(f64::INFINITY),
        (ReduceKind::Min, false) => ElementValue::Integer(-(least + 1)),
        (ReduceKind::And, _) => ElementValue::Condition(true),
        (ReduceKind::Or, _) => ElementValue::Condition(false),
    }
}

fn of_one(op: UnaryOp, a: ElementValue, dtype: Option<DType>) -> ElementValue {
    match a {
        ElementValue::Float(value) => ElementValue::Float(unary(op, value).unwrap_or(f64::NAN)),
        ElementValue::Condition(value) => ElementValue::Condition(!value),
        ElementValue::Integer(value) => {
            let result = match op {
                UnaryOp::Neg => value.wrapping_neg(),
                UnaryOp::Abs => value.wrapping_abs(),
                UnaryOp::Not => !value,
                _ => value,
            };
            ElementValue::Integer(wrapped(result, dtype.unwrap_or(I32)))
        }
    }
}

fn of_two(op: BinaryOp, a: ElementValue, b: ElementValue, dtype: Option<DType>) -> ElementValue {
    match (a, b) {
        (ElementValue::Float(_), _) | (_, ElementValue::Float(_)) => {
            ElementValue::Float(binary(op, a.float(), b.float()).unwrap_or(f64::NAN))
        }
        (ElementValue::Condition(a), ElementValue::Condition(b)) => ElementValue::Condition(match op {
            BinaryOp::And => a && b,
            BinaryOp::Or => a || b,
            _ => a != b,
        }),
        _ => {
            let dtype = dtype.unwrap_or(I32);
            let value = of_integers(op, a.integer(), b.integer(), dtype.bits());
            ElementValue::Integer(wrapped(value.unwrap_or(0), dtype))
        }
    }
}

fn compare(predicate: Predicate, a: ElementValue, b: ElementValue) -> bool {
    let order = match (a, b) {
        (ElementValue::Float(_), _) | (_, ElementValue::Float(_)) => a.float().partial_cmp(&b.float()),
        _ => Some(a.integer().cmp(&b.integer())),
    };
    match predicate {
        Predicate::Eq => order.is_some_and(std::cmp::Ordering::is_eq),
        Predicate::Ne => order.is_none_or(std::cmp::Ordering::is_ne),
        Predicate::Lt => order.is_some_and(std::cmp::Ordering::is_lt),
        Predicate::Le => order.is_some_and(std::cmp::Ordering::is_le),
        Predicate::Gt => order.is_some_and(std::cmp::Ordering::is_gt),
        Predicate::Ge => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}

fn cast(value: ElementValue, dtype: DType) -> ElementValue {
    match (value, dtype.is_float()) {
        (value, true) => ElementValue::Float(rounded(value.float(), dtype)),
        (ElementValue::Float(value), false) => {
            let least = i64::MIN >> (64 - dtype.bits());
            ElementValue::Integer((value as i64).clamp(least, -(least + 1)))
        }
        (value, false) => ElementValue::Integer(wrapped(value.integer(), dtype)),
    }
}
