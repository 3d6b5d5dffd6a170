//! The operations. One row of a table says everything about an operation except its meaning
//! (`ir/interpreter`) and its instructions (`codegen/lower`): its word, operands and result, the rule of its
//! type, whether it can be moved, what it does to memory, and which unit it occupies. The builder, the
//! printer, the parser, the verifier, passes and schedules read the row.
//!
//! All that can be said of a class of operations is in the row (`OpRow`: operands, rule of the result's
//! type, purity, effect on memory, unit), and passes ask for that. Where they have to know the operation
//! itself, they name all of them, so the compiler points at each place for a new one
//! (`clippy::wildcard_enum_match_arm` is denied in passes, lowering and verifier).

mod arithmetic;
mod atomic;
mod control;
mod decoding;
mod family;
mod reduction;
mod row;
mod scan;
mod sort;
mod traits;

use bevy_ecs::prelude::*;

use super::constant::Constant;
use super::expr::Symbol;
use super::layout::{Dim, MatrixShape, Mma, MmaType};
use super::types::DType;
pub use arithmetic::{BinaryOp, Conversion, Predicate, TernaryOp, UnaryOp};
pub(in crate::ir) use arithmetic::{
    binary_operations, conversions, predicates, ternary_operations, unary_operations,
};
pub use atomic::AtomicOp;
pub use control::{Control, WaveBound, WaveCondition};
pub use decoding::{CodeForm, Decoding};
pub(crate) use family::{
    AccessOp, AlongDimOp, CarriedOp, ConstantOp, ContractionOp, DeclarationOp, ElementWiseOp, OpFamily,
    OrderOp, RegionOp,
};
pub(in crate::ir) use reduction::reductions;
pub use reduction::{Reduction, ReductionOp};
pub use row::ResultType;
pub(crate) use row::{DTypes, Exactness, MemoryEffect, NodeRole, OpClass, OpRow, OpUnit, Purity};
pub(in crate::ir) use scan::scans;
pub use scan::{Scan, ScanOp};
pub(in crate::ir) use sort::sorts;
pub use sort::{Sort, SortOp};
pub(crate) use traits::KernelTraits;

/// What a node does. Operands are in [`Operands`](super::node::Operands), in the order given here.
#[derive(Component, Copy, Clone, PartialEq, Debug)]
pub enum Op {
    /// A kernel argument: a tensor. No operands. Its space is a component, `Space`.
    Memory,
    /// A kernel argument: one number, the same for all workgroups, passed by value. No operands, no dims; its
    /// dtype is one of [`Op::SCALAR_DTYPES`].
    Scalar,
    /// An LDS buffer of the workgroup; what it holds is undefined until it is written. No operands.
    Allocate,
    /// A value whose elements are all the same constant. No operands.
    Register(Constant),
    /// The tile of a memory that the node's place in the distribution names. Operand: memory.
    Read,
    /// Stores a value to a memory. Operands: value, memory. No result.
    Write,
    /// Joins each element of a value with one of a memory, in one step that nothing comes between. The order
    /// of several updates of one element is not defined. Operands: value, memory. The result is what the
    /// memory held before.
    Atomic(AtomicOp),
    /// Copies the tile of a memory to an LDS buffer without going through registers. Operands: memory,
    /// buffer. No result. Made by passes.
    GlobalToShared,
    /// `acc + lhs . rhs` over the elements that exist of the dimension that lhs and rhs share and acc lacks.
    /// Operands: lhs with m and k, rhs with n and k (dims in any order), acc `[.., m, n]`.
    Mma(MmaChoice),
    /// The same with a scale for each 32 elements of k: each
    /// element of lhs and rhs counts as its product with that of its block. Operands: those of `Mma`, then
    /// the scales of lhs, with m and k/32, and those of rhs, with n and k/32.
    ScaledMma(MmaChoice),
    /// A loop over the tiles of a dimension. Operands: initial values. Its body is in
    /// [`Body`](super::node::Body), its trip count in [`Trip`](super::node::Trip), what one iteration
    /// hands to the next in [`Yields`](super::node::Yields).
    Iterate(Dim),
    /// A region that runs once if its condition holds, and otherwise not at all. Operands: initial values,
    /// and the condition: i1 without dimensions, so that all lanes and waves of a workgroup agree. Its
    /// results are what its body yields, or the initial values.
    Conditional,
    /// A loop that runs as long as its condition holds. Operands: as those of `Conditional`. What its body
    /// yields is the next values, and whether there is one more iteration.
    While,
    /// A pipelined loop: the operations in front of the steady state, its loop, and those after it. Operands:
    /// initial values. It runs once if the loop that it was made of has at least as many iterations as its
    /// `Pipelined` needs, and otherwise not at all. Made by scheduling, of expanded
    /// nodes.
    Pipeline(Dim),
    /// A loop-carried value as the body sees it: number `0` of the loop's carried values. No operands.
    IterArg(u32),
    /// A loop-carried value after the loop. Operand: the loop.
    LoopResult(u32),
    /// Element-wise arithmetic on one value.
    Unary(UnaryOp),
    /// Element-wise arithmetic on two values of one dtype; dims broadcast.
    Binary(BinaryOp),
    /// Element-wise arithmetic on three values of one dtype; dims broadcast.
    Ternary(TernaryOp),
    /// Element-wise comparison of two values of one dtype, giving i1; dims broadcast.
    Compare(Predicate),
    /// Operands: condition (i1), value if true, value if false.
    Select,
    /// The dtype becomes that of the node's type, which is not i1. Casts of floats to integers truncate and
    /// saturate, NaN gives zero; integers to narrower ones wrap; to floats rounds to nearest even, for
    /// f16 and bf16 by way of f32.
    Convert(Conversion),
    /// Numbers of narrow floats times their scales, rounded once to the dtype that the node states: f32, f16
    /// or bf16. Operands: what holds the numbers, and their scales, which are f8e8m0. Made by passes.
    Decode(Decoding),
    /// The codes of the nearest numbers of a dtype of 4 or 6 bits, i8. Operand: f32 numbers, none of them a
    /// NaN. Made by passes.
    Encode(DType),
    /// The place of each element along a dimension of the whole tensor: a value of that dimension, i32. No
    /// operands.
    SelfIndex(Dim),
    /// The number of elements of a dimension: a value without dimensions, i32. No operands.
    Size(Dim),
    /// The place of the workgroup along an axis of the grid: a value without dimensions, i32. No operands.
    WorkgroupId(u32),
    /// The number of the running iteration of the loop over a dimension: a value without dimensions, i32. No
    /// operands.
    Iteration(Dim),
    /// From here to the end of the region around it, a symbol in the iterations of loops is the operand, of
    /// -2³⁰ to 2³⁰ - 1 the nearest. Operand: an i32 value without dimensions. No result.
    SetSymbol(Symbol),
    /// The operand with the dimensions that the node states, in that order: those that it lacks repeat it.
    Broadcast,
    /// The operand in other registers, or in other lanes of its wave. Operand: a value; of an expanded node,
    /// the pieces of that value that it takes elements of. Made by passes.
    Rearrange,
    /// Folds the elements along a dimension. Operand: a value that has it; of an expanded node, the pieces of
    /// that value.
    Reduce(Reduction),
    /// Sums up the elements along a dimension in front of each. Operand: a value that has it; of a scan that
    /// waves share also the sums of their parts. An expanded node has the replica of the value and what comes
    /// before it: the pieces of those sums, or the replica of the scan before it, and that of the value if
    /// the scan leaves out the element itself.
    Scan(Scan),
    /// The elements along a dimension in order, or their places. Operand: a value that has the dimension. The
    /// result has its dimensions. `sort_rows` makes other operations of it.
    Sort(Sort),
    /// LDS fence and workgroup barrier. No operands, no result.
    Barrier,
    /// Affects order and time, and computes nothing. No operands, no result.
    Control(Control),
}

/// Rows of the operations that are in no table of their own: for each pattern its row.
macro_rules! rows {
    ($($pattern:pat => $row:expr;)*) => {
        /// Rows of all operations except reductions, scans, sorts, atomic updates, conversions, and the
        /// element-wise ones of one to three operands, in the order of the text's words.
        const OTHERS: &[OpRow] = &[$($row),*];

        impl Op {
            /// What is known of the operation.
            pub const fn row(&self) -> &'static OpRow {
                match self {
                    $($pattern => const { &$row },)*
                    Op::Unary(op) => op.row(),
                    Op::Binary(op) => op.row(),
                    Op::Ternary(op) => op.row(),
                    Op::Convert(op) => op.row(),
                    Op::Reduce(reduction) => reduction.op.row(),
                    Op::Scan(scan) => scan.op.row(),
                    Op::Sort(sort) => sort.op.row(),
                    Op::Atomic(op) => op.row(),
                }
            }
        }
    };
}

/// The values that most rows have.
const ROW: OpRow = OpRow {
    word: "",
    class: OpClass::Declaration,
    takes: Some(&[]),
    gives: NodeRole::Nothing,
    operands: DTypes::Any,
    result: ResultType::None,
    purity: Purity::Unmoved,
    memory: MemoryEffect::None,
    unit: OpUnit::None,
    exactness: Exactness::Exact,
    raises: KernelTraits::empty(),
    doc: "",
};

const DECLARATION: OpRow = OpRow { gives: NodeRole::Memory, result: ResultType::Declared, ..ROW };

const CONSTANT: OpRow = OpRow {
    class: OpClass::Constant,
    gives: NodeRole::Value,
    result: ResultType::Declared,
    purity: Purity::Pure,
    ..ROW
};

const ACCESS: OpRow = OpRow {
    class: OpClass::Access,
    takes: None,
    purity: Purity::Effect,
    memory: MemoryEffect::Writes,
    unit: OpUnit::Memory,
    ..ROW
};

const REGION: OpRow = OpRow { class: OpClass::Region, takes: None, gives: NodeRole::Loop, ..ROW };

const CARRIED: OpRow =
    OpRow { class: OpClass::Carried, gives: NodeRole::Value, result: ResultType::Carried, ..ROW };

const ORDER: OpRow =
    OpRow { class: OpClass::Order, purity: Purity::Effect, memory: MemoryEffect::Fence, ..ROW };

rows! {
    Op::Register(_) => OpRow {
        word: "register",
        doc: "A value whose elements are all the same constant.",
        ..CONSTANT
    };
    Op::SelfIndex(_) => OpRow {
        word: "self_index",
        unit: OpUnit::Vector,
        raises: KernelTraits::PLACES,
        doc: "The place of each element along a dimension, i32.",
        ..CONSTANT
    };
    Op::Size(_) => OpRow {
        word: "size",
        doc: "The number of elements of a dimension, i32.",
        ..CONSTANT
    };
    Op::WorkgroupId(_) => OpRow {
        word: "workgroup_id",
        doc: "The place of the workgroup along an axis of the grid, i32.",
        ..CONSTANT
    };
    Op::Iteration(_) => OpRow {
        word: "iteration",
        doc: "The number of the running iteration of the loop over a dimension, i32.",
        ..CONSTANT
    };
    Op::Broadcast => OpRow {
        word: "broadcast",
        takes: Some(&[NodeRole::Value]),
        operands: DTypes::Any,
        result: ResultType::Repeated,
        doc: "The value with the stated dimensions, repeated along those that it lacks.",
        ..arithmetic::ELEMENT_WISE
    };
    Op::Decode(_) => OpRow {
        word: "decode",
        takes: Some(&[NodeRole::Value, NodeRole::Value]),
        result: ResultType::Converted(row::Sizes::AnySize),
        doc: "Numbers of narrow floats times their scales.",
        ..arithmetic::ELEMENT_WISE
    };
    Op::Encode(_) => OpRow {
        word: "encode",
        takes: Some(&[NodeRole::Value]),
        operands: DTypes::Floats,
        result: ResultType::Converted(row::Sizes::AnySize),
        doc: "Codes of narrow floats, i8.",
        ..arithmetic::ELEMENT_WISE
    };
    Op::Rearrange => OpRow {
        word: "rearrange",
        class: OpClass::Rearrangement,
        result: ResultType::OfOperand(0),
        doc: "The value in other registers or lanes.",
        ..arithmetic::ELEMENT_WISE
    };
    Op::Allocate => OpRow { word: "allocate", doc: "An LDS buffer of the workgroup.", ..DECLARATION };
    Op::Read => OpRow {
        word: "read",
        takes: Some(&[NodeRole::Memory]),
        gives: NodeRole::Value,
        result: ResultType::OfOperand(0),
        purity: Purity::OfMemory,
        memory: MemoryEffect::Reads,
        doc: "The tile of a memory that the node's place in the distribution names.",
        ..ACCESS
    };
    Op::Mma(_) => OpRow {
        word: "mma",
        class: OpClass::Contraction,
        takes: Some(&[NodeRole::Value, NodeRole::Value, NodeRole::Value]),
        result: ResultType::OfOperand(2),
        unit: OpUnit::Matrix,
        exactness: Exactness::Ordered,
        raises: KernelTraits::PRODUCTS,
        doc: "`acc + lhs . rhs` over the elements that exist of the dimension that lhs and rhs share and acc lacks.",
        ..arithmetic::ELEMENT_WISE
    };
    Op::ScaledMma(_) => OpRow {
        word: "scaled_mma",
        class: OpClass::Contraction,
        takes: Some(&[NodeRole::Value; 5]),
        result: ResultType::OfOperand(2),
        unit: OpUnit::Matrix,
        exactness: Exactness::Ordered,
        raises: KernelTraits::PRODUCTS.union(KernelTraits::SCALED_PRODUCTS),
        doc: "`mma` of factors with a scale for each 32 elements: lhs, its scales, rhs, its scales, acc.",
        ..arithmetic::ELEMENT_WISE
    };
    Op::Compare(_) => OpRow {
        word: "compare",
        takes: Some(&[NodeRole::Value, NodeRole::Value]),
        operands: DTypes::Numbers,
        result: ResultType::Condition,
        doc: "Comparison of two values of one dtype, giving i1.",
        ..arithmetic::ELEMENT_WISE
    };
    Op::Select => OpRow {
        word: "select",
        takes: Some(&[NodeRole::Value, NodeRole::Value, NodeRole::Value]),
        operands: DTypes::Numbers,
        result: ResultType::Chosen,
        doc: "The second operand where the first one, which is i1, holds, and the third elsewhere.",
        ..arithmetic::ELEMENT_WISE
    };
    Op::Iterate(_) => OpRow { word: "iterate", doc: "A loop over the tiles of a dimension.", ..REGION };
    Op::Conditional => OpRow {
        word: "conditional",
        doc: "A region that runs if a condition holds, which all lanes of the workgroup have in common.",
        ..REGION
    };
    Op::While => OpRow { word: "while", doc: "A loop that runs as long as a condition holds.", ..REGION };
    Op::Memory => OpRow { word: "memory", purity: Purity::Effect, doc: "A kernel argument: a tensor.", ..DECLARATION };
    // Two scalars are two arguments, even if everything else about them is the same.
    Op::Scalar => OpRow {
        word: "scalar",
        gives: NodeRole::Value,
        purity: Purity::Effect,
        doc: "A kernel argument: a number.",
        ..DECLARATION
    };
    Op::Write => OpRow {
        word: "write",
        takes: Some(&[NodeRole::Value, NodeRole::Memory]),
        doc: "Stores a value to a memory.",
        ..ACCESS
    };
    Op::GlobalToShared => OpRow {
        word: "global_to_shared",
        takes: Some(&[NodeRole::Memory, NodeRole::Memory]),
        memory: MemoryEffect::Copies,
        doc: "Copies the tile of a memory to an LDS buffer through no register.",
        ..ACCESS
    };
    Op::SetSymbol(_) => OpRow {
        word: "set_symbol",
        takes: Some(&[NodeRole::Value]),
        memory: MemoryEffect::None,
        doc: "The value of a symbol in the iterations of loops, from here to the end of the region around it.",
        ..ORDER
    };
    Op::Barrier => OpRow { word: "barrier", doc: "LDS fence and workgroup barrier.", ..ORDER };
    Op::Pipeline(_) => OpRow { word: "pipeline", doc: "A pipelined loop, with what runs before and after it.", ..REGION };
    Op::IterArg(_) => OpRow { word: "argument", doc: "A carried value as the loop's body sees it.", ..CARRIED };
    Op::LoopResult(_) => OpRow {
        word: "result",
        takes: Some(&[NodeRole::Loop]),
        doc: "A carried value after the loop.",
        ..CARRIED
    };
    Op::Control(Control::WorkgroupBarrier) => OpRow {
        word: "workgroup_barrier",
        doc: "Waits for all waves of the workgroup, and for no memory.",
        ..ORDER
    };
    Op::Control(Control::ConditionalBarrier(_)) => OpRow {
        word: "conditional_barrier",
        doc: "A workgroup barrier for some of the waves.",
        ..ORDER
    };
    Op::Control(Control::SetWavePriority(_)) => OpRow {
        word: "set_wave_priority",
        doc: "Priority of the wave from here on.",
        ..ORDER
    };
    Op::Control(Control::SchedulingBarrier) => OpRow {
        word: "scheduling_barrier",
        doc: "Nothing moves across.",
        ..ORDER
    };
    Op::Control(Control::WaitForLoads(_)) => OpRow {
        word: "wait_for_loads",
        doc: "Waits until at most so many loads are under way.",
        ..ORDER
    };
    Op::Control(Control::WaitForShared(_)) => OpRow {
        word: "wait_for_shared",
        doc: "Waits until at most so many accesses of LDS are under way.",
        ..ORDER
    };
}

/// Rows whose parts contradict each other do not compile.
const _: () = {
    let mut at = 0;
    while at < OTHERS.len() {
        assert!(OTHERS[at].is_consistent());
        at += 1;
    }
};

impl Op {
    /// The dtypes of arguments by value: those that arithmetic computes in. Others are cast from these.
    pub const SCALAR_DTYPES: [DType; 4] = [DType::F32, DType::I32, DType::F64, DType::I64];

    /// True for the arguments of a kernel.
    pub(crate) fn is_argument(self) -> bool {
        self.row().class == OpClass::Declaration && self.row().purity == Purity::Effect
    }

    /// The initial values of a region, among its operands: the condition, if there is one, comes after them.
    pub(crate) fn initial(self, operands: &[Entity]) -> &[Entity] {
        match self.condition(operands) {
            Some(_) => &operands[..operands.len() - 1],
            None => operands,
        }
    }

    /// The condition under which a region runs, among its operands.
    pub(crate) fn condition(self, operands: &[Entity]) -> Option<Entity> {
        operands.last().copied().filter(|_| self.runs_under_condition())
    }

    /// The values that a region hands on, among those that it yields: a `while` yields its next condition
    /// after them.
    pub(crate) fn handed_on(self, yields: &[Entity]) -> &[Entity] {
        match (self, yields) {
            (Op::While, [values @ .., _]) => values,
            _ => yields,
        }
    }

    /// The traits of a kernel that has the operation with a result of this dtype.
    pub(crate) fn raises(self, dtype: Option<DType>) -> KernelTraits {
        let mut traits = self.row().raises;
        traits.set(KernelTraits::MATRIX_SHAPES, matches!(self.product(), Some(MmaChoice::Shape(_))));
        traits.set(KernelTraits::PACKED_FLOATS, dtype.is_some_and(|dtype| dtype.packing().is_some()));
        traits
    }

    /// What a product says of its matrix instruction.
    pub(crate) fn product(self) -> Option<MmaChoice> {
        match self.family() {
            OpFamily::Contraction(op) => Some(op.choice()),
            _ => None,
        }
    }

    /// A product with this matrix instruction; other operations as they are.
    pub(crate) fn with_instruction(self, choice: MmaChoice) -> Op {
        if let Op::Mma(_) = self {
            Op::Mma(choice)
        } else if let Op::ScaledMma(_) = self {
            Op::ScaledMma(choice)
        } else {
            self
        }
    }

    /// True for products of matrices.
    pub(crate) const fn is_product(self) -> bool {
        matches!(self.row().class, OpClass::Contraction)
    }

    /// True for products whose factors have scales.
    pub(crate) const fn takes_scales(self) -> bool {
        self.row().raises.contains(KernelTraits::SCALED_PRODUCTS)
    }

    /// True for what reads and writes a memory in one step.
    pub(crate) const fn updates(self) -> bool {
        matches!(self.row().memory, MemoryEffect::Updates)
    }

    /// True for what reads one memory, its first operand, and writes another one.
    pub(crate) const fn copies(self) -> bool {
        matches!(self.row().memory, MemoryEffect::Copies)
    }

    /// True for values that regions carry.
    pub(crate) const fn is_carried(self) -> bool {
        matches!(self.row().class, OpClass::Carried)
    }

    /// True for regions that have a condition, their last operand.
    pub(crate) const fn runs_under_condition(self) -> bool {
        matches!(self.family(), OpFamily::Region(RegionOp::Conditional | RegionOp::While))
    }

    /// True for regions that may run several times.
    pub(crate) const fn repeats(self) -> bool {
        matches!(self.family(), OpFamily::Region(RegionOp::Iterate(_) | RegionOp::While))
    }

    /// The dimension that a region walks along, if it is a loop over one.
    pub(crate) const fn walks(self) -> Option<Dim> {
        match self.family() {
            OpFamily::Region(RegionOp::Iterate(dim) | RegionOp::Pipeline(dim)) => Some(dim),
            _ => None,
        }
    }

    /// A region as messages call it.
    pub(crate) const fn in_words(self) -> &'static str {
        match self.family() {
            OpFamily::Region(RegionOp::Conditional) => "conditional",
            OpFamily::Region(RegionOp::While) => "while loop",
            _ => "loop",
        }
    }

    /// The dimension that a reduction, a scan or a sort runs along.
    pub(crate) const fn runs_along(self) -> Option<Dim> {
        match self.family() {
            OpFamily::AlongDim(AlongDimOp::Reduce(reduction)) => Some(reduction.dim),
            OpFamily::AlongDim(AlongDimOp::Scan(scan)) => Some(scan.dim),
            OpFamily::AlongDim(AlongDimOp::Sort(sort)) => Some(sort.dim),
            _ => None,
        }
    }

    /// True for operations that read or write a memory: their last operand.
    pub(crate) fn is_access(self) -> bool {
        self.row().class == OpClass::Access
    }

    /// How many values an access takes in front of those that its coordinates are made of.
    pub(crate) fn values_in_front(self) -> usize {
        let takes = self.row().takes.unwrap_or_default();
        takes.iter().filter(|role| **role == NodeRole::Value).count()
    }

    /// True for operations that write a memory: their last operand.
    pub fn is_write(self) -> bool {
        self.row().memory.writes()
    }

    /// Element-wise operations that one word fully names: arithmetic, conversions and `select`.
    pub fn element_wise() -> impl Iterator<Item = Op> {
        let unary = UnaryOp::ALL.iter().copied().map(Op::Unary);
        let binary = BinaryOp::ALL.iter().copied().map(Op::Binary);
        let conversions = Conversion::ALL.iter().copied().map(Op::Convert);
        let ternary = TernaryOp::ALL.iter().copied().map(Op::Ternary);
        conversions.chain([Op::Select]).chain(unary).chain(binary).chain(ternary)
    }

    /// Every row.
    pub fn rows() -> impl Iterator<Item = &'static OpRow> {
        let reductions = ReductionOp::ALL.iter().map(|op| op.row());
        let reductions = reductions.chain(ScanOp::ALL.iter().map(|op| op.row()));
        let reductions = reductions.chain(SortOp::ALL.iter().map(|op| op.row()));
        let others = OTHERS.iter().filter(|row| row.word != "select");
        let atomics = AtomicOp::ALL.iter().map(|op| op.row());
        others.chain(Op::element_wise().map(|op| op.row())).chain(reductions).chain(atomics)
    }
}

/// Which matrix instruction an `mma` node uses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MmaChoice {
    /// The kernel's default.
    Kernel,
    /// The chip's own of this shape, chosen for the node alone.
    Shape(MatrixShape),
    /// This one, chosen for the node alone or because the kernel says its shape.
    Explicit(Mma),
}

impl From<MmaType> for MmaChoice {
    fn from(ty: MmaType) -> MmaChoice {
        match ty {
            MmaType::Instruction(mma) => MmaChoice::Explicit(mma),
            MmaType::Shape(shape) => MmaChoice::Shape(shape),
        }
    }
}
