//! The operations. One row of a table says everything about an operation except its meaning
//! (`ir/interpreter`) and its instructions (`codegen/lower`): its word, operands and result, the rule of its
//! type, whether it can be moved, what it does to memory, and which unit it occupies. The builder, the
//! printer, the parser, the verifier, passes and schedules read the row.
//!
//! A file per family has the rows and what else tells its operations apart: what an access moves (`access`),
//! what decides how often a region runs (`region`), the choice of a matrix instruction (`contraction`).
//! All that can be said of a class of operations is in the row (`OpRow`: operands, rule of the result's
//! type, purity, effect on memory, unit), and passes ask for that. Where they have to know the operation
//! itself, they name all of them, so the compiler points at each place for a new one
//! (`clippy::wildcard_enum_match_arm` is denied in passes, lowering and verifier).

mod access;
mod arithmetic;
mod atomic;
mod contraction;
mod control;
mod declaration;
mod decoding;
mod family;
mod placement;
mod reduction;
mod region;
mod row;
mod scan;
mod sort;
mod traits;

use bevy_ecs::prelude::*;

use super::constant::Constant;
use super::expr::Symbol;
use super::layout::Dim;
use super::types::DType;
pub(crate) use access::{DataMovement, LOADS, STORES};
pub use arithmetic::{BinaryOp, Conversion, Predicate, TernaryOp, UnaryOp};
pub(in crate::ir) use arithmetic::{
    binary_operations, conversions, predicates, ternary_operations, unary_operations,
};
pub use atomic::AtomicOp;
pub(crate) use contraction::{MmaChoice, PRODUCTS};
pub use control::{Control, WaveBound, WaveCondition};
pub use decoding::{CodeForm, Decoding};
pub(crate) use placement::{ExpansionRule, LayoutRule};
pub(in crate::ir) use reduction::reductions;
pub use reduction::{Reduction, ReductionOp};
pub(crate) use region::{RegionHead, Runs};
pub use row::ResultType;
pub(crate) use row::{DTypes, MemoryEffect, NodeRole, OpClass, OpRow, OpUnit, Purity};
pub(in crate::ir) use scan::scans;
pub use scan::{Scan, ScanOp};
pub(in crate::ir) use sort::sorts;
pub use sort::{Sort, SortOp};
pub(crate) use traits::KernelTraits;

family::operations! {
    /// Arguments of the kernel, and LDS buffers.
    Declaration DeclarationOp {
        /// A kernel argument: a tensor. No operands. Its space is a component, `Space`.
        Memory = declaration::MEMORY;
        /// A kernel argument: one number, the same for all workgroups, passed by value. No operands, no dims;
        /// its dtype is one of [`Op::SCALAR_DTYPES`].
        Scalar = declaration::SCALAR;
        /// An LDS buffer of the workgroup; what it holds is undefined until it is written. No operands.
        Allocate = declaration::ALLOCATE;
    }
    /// Values without operands.
    Constant ConstantOp {
        /// A value whose elements are all the same constant. No operands.
        Register(constant: Constant) = declaration::REGISTER;
        /// The place of each element along a dimension of the whole tensor: a value of that dimension, i32.
        /// No operands.
        SelfIndex(dim: Dim) = declaration::SELF_INDEX;
        /// The number of elements of a dimension: a value without dimensions, i32. No operands.
        Size(dim: Dim) = declaration::SIZE;
        /// The place of the workgroup along an axis of the grid: a value without dimensions, i32. No
        /// operands.
        WorkgroupId(axis: u32) = declaration::WORKGROUP_ID;
        /// The number of the running iteration of the loop over a dimension: a value without dimensions, i32.
        /// No operands.
        Iteration(dim: Dim) = declaration::ITERATION;
    }
    /// Operations that read or write a memory.
    Access AccessOp {
        /// The tile of a memory that the node's place in the distribution names. Operand: memory.
        Read = access::READ;
        /// Stores a value to a memory. Operands: value, memory. No result.
        Write = access::WRITE;
        /// Joins each element of a value with one of a memory, in one step that nothing comes between. The
        /// order of several updates of one element is not defined. Operands: value, memory. The result is
        /// what the memory held before.
        Atomic(op: AtomicOp): op;
        /// Copies the tile of a memory to an LDS buffer without going through registers. Operands: memory,
        /// buffer. No result. Made by passes.
        GlobalToShared = access::GLOBAL_TO_SHARED;
    }
    /// Operations that make an element of those at the same coordinates.
    ElementWise ElementWiseOp: Hash {
        /// Element-wise arithmetic on one value.
        Unary(op: UnaryOp): op;
        /// Element-wise arithmetic on two values of one dtype; dims broadcast.
        Binary(op: BinaryOp): op;
        /// Element-wise arithmetic on three values of one dtype; dims broadcast.
        Ternary(op: TernaryOp): op;
        /// Element-wise comparison of two values of one dtype, giving i1; dims broadcast.
        Compare(predicate: Predicate) = arithmetic::COMPARE;
        /// Operands: condition (i1), value if true, value if false.
        Select = arithmetic::SELECT;
        /// The dtype becomes that of the node's type, which is not i1. Casts of floats to integers truncate
        /// and saturate, NaN gives zero; integers to narrower ones wrap; to floats rounds to nearest even,
        /// for f16 and bf16 by way of f32.
        Convert(conversion: Conversion): conversion;
        /// Numbers of narrow floats times their scales, rounded once to the dtype that the node states: f32,
        /// f16 or bf16. Operands: what holds the numbers, and their scales, which are f8e8m0. Made by passes.
        Decode(decoding: Decoding) = decoding::DECODE;
        /// The codes of the nearest numbers of a dtype of 4 or 6 bits, i8. Operand: f32 numbers, none of them
        /// a NaN. Made by passes.
        Encode(dtype: DType) = decoding::ENCODE;
        /// The operand with the dimensions that the node states, in that order: those that it lacks repeat
        /// it.
        Broadcast = arithmetic::BROADCAST;
    }
    /// Operations that leave elements as they are, and move them to other places.
    Rearrangement RearrangementOp {
        /// The operand in other registers, or in other lanes of its wave. Operand: a value; of an expanded
        /// node, the pieces of that value that it takes elements of. Made by passes.
        Rearrange = arithmetic::REARRANGE;
    }
    /// Products of matrices.
    Contraction ContractionOp {
        /// `acc + lhs . rhs` over the elements that exist of the dimension that lhs and rhs share and acc
        /// lacks. Operands: lhs with m and k, rhs with n and k (dims in any order), acc `[.., m, n]`.
        Mma(choice: MmaChoice) = contraction::MMA;
        /// The same with a scale for each 32 elements of k: each element of lhs and rhs counts as its product
        /// with that of its block. Operands: those of `Mma`, then the scales of lhs, with m and k/32, and
        /// those of rhs, with n and k/32.
        ScaledMma(choice: MmaChoice) = contraction::SCALED_MMA;
    }
    /// Operations that run along a dimension.
    AlongDim AlongDimOp: Hash {
        /// Folds the elements along a dimension. Operand: a value that has it; of an expanded node, the
        /// pieces of that value.
        Reduce(reduction: Reduction): reduction.op;
        /// Sums up the elements along a dimension in front of each. Operand: a value that has it; of a scan
        /// that waves share also the sums of their parts. An expanded node has the replica of the value and
        /// what comes before it: the pieces of those sums, or the replica of the scan before it, and that of
        /// the value if the scan leaves out the element itself.
        Scan(scan: Scan): scan.op;
        /// The elements along a dimension in order, or their places. Operand: a value that has the dimension.
        /// The result has its dimensions. `sort_rows` makes other operations of it.
        Sort(sort: Sort): sort.op;
    }
    /// Operations that hold nodes of their own.
    Region RegionOp {
        /// A loop over the tiles of a dimension. Operands: initial values. Its body is in
        /// [`Body`](super::node::Body), its trip count in [`Trip`](super::node::Trip), what one iteration
        /// hands to the next in [`Yields`](super::node::Yields).
        Iterate(dim: Dim) = region::ITERATE;
        /// A region that runs once if its condition holds, and otherwise not at all. Operands: initial
        /// values, and the condition: i1 without dimensions, so that all lanes and waves of a workgroup
        /// agree. Its results are what its body yields, or the initial values.
        Conditional = region::CONDITIONAL;
        /// A loop that runs as long as its condition holds. Operands: as those of `Conditional`. What its
        /// body yields is the next values, and whether there is one more iteration.
        While = region::WHILE;
        /// A pipelined loop: the operations in front of the steady state, its loop, and those after it.
        /// Operands: initial values. It runs once if the loop that it was made of has at least as many
        /// iterations as its `Pipelined` needs, and otherwise not at all. Made by scheduling, of expanded
        /// nodes.
        Pipeline(dim: Dim) = region::PIPELINE;
    }
    /// Values that a region carries, inside of it or after it.
    Carried CarriedOp: Eq {
        /// A loop-carried value as the body sees it: number `0` of the loop's carried values. No operands.
        IterArg(number: u32) = region::ITER_ARG;
        /// A loop-carried value after the loop. Operand: the loop.
        LoopResult(number: u32) = region::LOOP_RESULT;
    }
    /// Operations that affect order and time, and compute nothing.
    Order OrderOp {
        /// LDS fence and workgroup barrier. No operands, no result.
        Barrier = control::BARRIER;
        /// From here to the end of the region around it, a symbol in the iterations of loops is the operand,
        /// of -2³⁰ to 2³⁰ - 1 the nearest. Operand: an i32 value without dimensions. No result.
        SetSymbol(symbol: Symbol) = control::SET_SYMBOL;
        /// Affects order and time, and computes nothing. No operands, no result.
        Control(control: Control): control;
    }
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

    /// The traits of a kernel that has the operation with a result of this dtype.
    pub(crate) fn raises(self, dtype: Option<DType>) -> KernelTraits {
        let mut traits = self.row().raises;
        traits.set(KernelTraits::MATRIX_SHAPES, matches!(self.product(), Some(MmaChoice::Shape(_))));
        traits.set(KernelTraits::PACKED_FLOATS, dtype.is_some_and(|dtype| dtype.packing().is_some()));
        traits
    }

    /// The constant that is each element of a value.
    pub(crate) const fn constant(self) -> Option<Constant> {
        match self.family() {
            OpFamily::Constant(ConstantOp::Register(constant)) => Some(constant),
            _ => None,
        }
    }

    /// The reduction that it is.
    pub(crate) const fn reduction(self) -> Option<Reduction> {
        match self.family() {
            OpFamily::AlongDim(AlongDimOp::Reduce(reduction)) => Some(reduction),
            _ => None,
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
        let others = OTHERS.iter().copied().chain(Control::ROWS).filter(|row| row.word != "select");
        let atomics = AtomicOp::ALL.iter().map(|op| op.row());
        others.chain(Op::element_wise().map(|op| op.row())).chain(reductions).chain(atomics)
    }
}
