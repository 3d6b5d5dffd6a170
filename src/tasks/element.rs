//! What an element of a tensor is: a small arena of nodes over reads, numbers and the operations of the
//! language.

use cranelift_entity::{PrimaryMap, entity_impl};

use crate::prelude::*;

/// A node of the arena.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ElementId(u32);
entity_impl!(ElementId, "e");

/// A tensor of a task: an input or a computed one.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TensorId(u32);
entity_impl!(TensorId, "t");

/// A number without a dtype of its own: it takes that of what it is combined with.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum ElementNumber {
    Float(f64),
    Integer(i64),
}

/// How a reduction joins elements, where it begins, and what it gives.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ReduceKind {
    /// The sum; zero of nothing.
    Sum,
    /// The product; one of nothing.
    Product,
    /// The largest element, without regard to NaNs; of nothing minus infinity, or the least integer.
    Max,
    /// The smallest element, without regard to NaNs; of nothing infinity, or the largest integer.
    Min,
    /// The sum divided by the number of elements; NaN of nothing. Of floats.
    Average,
    /// True if all conditions hold; they do if there are none.
    And,
    /// True if one of the conditions holds; none does if there are none.
    Or,
}

impl ReduceKind {
    /// Every kind.
    pub const ALL: [ReduceKind; 7] = [
        ReduceKind::Sum,
        ReduceKind::Product,
        ReduceKind::Max,
        ReduceKind::Min,
        ReduceKind::Average,
        ReduceKind::And,
        ReduceKind::Or,
    ];

    /// True if it joins conditions, and not numbers.
    pub(super) const fn is_of_conditions(self) -> bool {
        matches!(self, ReduceKind::And | ReduceKind::Or)
    }
}

/// Which element the place of is asked for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ArgReduceKind {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// An axis of a computed tensor or of a reduction, and how many indices it has.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct TaskAxis {
    pub(super) index: Symbol,
    pub(super) extent: SymExpr,
}

/// An index of a read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum ReadIndex {
    /// An expression of axes and sizes.
    Affine(SymExpr),
    /// The value of an integer element: a gather.
    Element(ElementId),
}

/// The way to compute an element.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ElementNode {
    Number(ElementNumber),
    /// An index expression as an i32 element.
    Index(SymExpr),
    Read {
        tensor: TensorId,
        indices: Box<[ReadIndex]>,
    },
    Unary(UnaryOp, ElementId),
    Binary(BinaryOp, ElementId, ElementId),
    Ternary(TernaryOp, [ElementId; 3]),
    Compare(Predicate, ElementId, ElementId),
    Select([ElementId; 3]),
    Cast(DType, ElementId),
    Reduce {
        kind: ReduceKind,
        accumulate: DType,
        axes: Box<[TaskAxis]>,
        body: ElementId,
    },
    ArgReduce {
        extreme: ArgReduceKind,
        axis: TaskAxis,
        body: ElementId,
    },
}

impl ElementNode {
    /// Calls `see` with each element that it is made of.
    pub(super) fn operands(&self, mut see: impl FnMut(ElementId)) {
        match self {
            ElementNode::Number(_) | ElementNode::Index(_) => {}
            ElementNode::Read { indices, .. } => indices.iter().for_each(|index| match index {
                ReadIndex::Affine(_) => {}
                ReadIndex::Element(element) => see(*element),
            }),
            ElementNode::Unary(_, a) | ElementNode::Cast(_, a) => see(*a),
            ElementNode::Binary(_, a, b) | ElementNode::Compare(_, a, b) => {
                see(*a);
                see(*b);
            }
            ElementNode::Ternary(_, operands) | ElementNode::Select(operands) => {
                operands.iter().copied().for_each(see);
            }
            ElementNode::Reduce { body, .. } | ElementNode::ArgReduce { body, .. } => see(*body),
        }
    }
}

/// Most operations in a chain, and most reductions inside one another: walks go from operand to operand.
const MAX_DEPTH: [u32; 2] = [256, 6];

/// A node with its dtype, the operations below it, and the reductions around one another in it.
#[derive(Clone, Debug)]
struct ElementRecord {
    node: ElementNode,
    dtype: Option<DType>,
    depth: [u32; 2],
}

/// The nodes of a task with their dtypes; numbers have none.
#[derive(Clone, Default, Debug)]
pub(super) struct Elements {
    nodes: PrimaryMap<ElementId, ElementRecord>,
}

impl Elements {
    pub(super) fn push(&mut self, node: ElementNode, dtype: Option<DType>) -> ElementId {
        let reduces = matches!(node, ElementNode::Reduce { .. } | ElementNode::ArgReduce { .. });
        let mut depth = [0; 2];
        node.operands(|operand| {
            let below = self.nodes[operand].depth;
            depth = [depth[0].max(below[0]), depth[1].max(below[1])];
        });
        let depth = [depth[0] + 1, depth[1] + u32::from(reduces)];
        self.nodes.push(ElementRecord { node, dtype, depth })
    }

    /// True if walks over an element would go too deep.
    pub(super) fn is_too_deep(&self, element: ElementId) -> bool {
        let [depth, reductions] = self.nodes[element].depth;
        depth > MAX_DEPTH[0] || reductions > MAX_DEPTH[1]
    }

    pub(super) fn node(&self, element: ElementId) -> &ElementNode {
        &self.nodes[element].node
    }

    pub(super) fn dtype(&self, element: ElementId) -> Option<DType> {
        self.nodes[element].dtype
    }

    /// True if a walk over an element and all that it is made of, except through reads of computed tensors,
    /// meets a node of which `is` holds.
    pub(super) fn any(&self, element: ElementId, is: &mut impl FnMut(&ElementNode) -> bool) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        let mut next = vec![element];
        while let Some(element) = next.pop() {
            if !seen.insert(element) {
                continue;
            }
            if is(self.node(element)) {
                return true;
            }
            self.node(element).operands(|operand| next.push(operand));
        }
        false
    }
}
