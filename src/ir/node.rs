//! The components of a kernel's nodes: what a logical node is.
//!
//! A logical node is one operation that the author wrote (or that a pass put beside it). Every node carries [`Op`], [`Operands`],
//! [`ValueType`] and [`Origin`]; the other components are optional facts. Structure lives in [`Body`]: the kernel entity and
//! every loop own an ordered list of nodes, and nothing else decides order.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

pub use super::constant::Constant;
use super::expr::Expr;
use super::layout::{Dim, Layout, Mma};
use super::types::{AddressSpace, DType};

/// Dimensions of a value or memory, outermost first.
pub type Dims = SmallVec<[Dim; 4]>;

/// What a node does. Operands are in [`Operands`], in the order given here.
#[derive(Component, Copy, Clone, PartialEq, Debug)]
pub enum Op {
    /// A kernel argument: a tensor. No operands. Its space is in [`Space`].
    Memory,
    /// A kernel argument: one number, the same for all workgroups, passed by value. No operands, no dims; its dtype is
    /// one of [`Op::SCALAR_DTYPES`].
    Scalar,
    /// An LDS buffer of the workgroup; what it holds is undefined until it is written. No operands.
    Allocate,
    /// A value whose elements are all the same constant. No operands.
    Register(Constant),
    /// The tile of a memory that the node's place in the distribution names. Operand: memory.
    Read,
    /// Stores a value to a memory. Operands: value, memory. No result.
    Write,
    /// Copies the tile of a memory to an LDS buffer through no register. Operands: memory, buffer. No result. Made by passes.
    GlobalToShared,
    /// `acc + lhs . rhs` over the dimension that lhs and rhs share and acc lacks. Operands: lhs with
    /// m and k, rhs with n and k (dims in any order), acc `[.., m, n]`.
    Mma(MmaChoice),
    /// A loop over the tiles of a dimension. Operands: initial values. Its body is in [`Body`], its trip count in [`Trip`],
    /// what one iteration hands to the next in [`Yields`].
    Iterate(Dim),
    /// A pipelined loop: the operations in front of the steady state, its loop, and those behind it. Operands: initial values. Runs
    /// once, if the loop that it was made of has at least as many iterations as its [`Pipelined`] needs, else not at all. Made
    /// by scheduling, of expanded nodes.
    Pipeline(Dim),
    /// A loop-carried value as the body sees it: number `0` of the loop's carried values. No operands.
    IterArg(u32),
    /// A loop-carried value after the loop. Operand: the loop.
    LoopResult(u32),
    /// Element-wise arithmetic on one value.
    Unary(UnaryOp),
    /// Element-wise arithmetic on two values of one dtype; dims broadcast.
    Binary(BinaryOp),
    /// Element-wise comparison of two values of one dtype, giving i1; dims broadcast.
    Compare(Predicate),
    /// Operands: condition (i1), value if true, value if false.
    Select,
    /// Numeric conversion to the dtype of the node's type, which is not i1. Floats to integers truncate and saturate, NaN gives
    /// zero; integers to narrower ones wrap; to floats rounds to nearest even, for f16 and bf16 by way of f32.
    Cast,
    /// LDS fence and workgroup barrier. No operands, no result.
    Barrier,
    /// What says something about order and time, and computes nothing. No operands, no result.
    Control(Control),
}

impl Op {
    /// What arguments by value can be: what arithmetic computes in. Others are cast from these.
    pub const SCALAR_DTYPES: [DType; 2] = [DType::F32, DType::I32];

    /// True for the arguments of a kernel.
    pub fn is_argument(self) -> bool {
        matches!(self, Op::Memory | Op::Scalar)
    }

    /// True for what reads or writes a memory: its last operand.
    pub fn is_access(self) -> bool {
        matches!(self, Op::Read | Op::Write | Op::GlobalToShared)
    }

    /// True for what writes a memory: its last operand.
    pub fn is_write(self) -> bool {
        matches!(self, Op::Write | Op::GlobalToShared)
    }
}

/// Operations that hold waves, memory and the scheduler of the hardware to an order.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Control {
    /// Waits for all waves of the workgroup, and for no memory.
    WorkgroupBarrier,
    /// A workgroup barrier for the waves that the condition names; the others go on.
    ConditionalBarrier(WaveCondition),
    /// Priority of the wave from here on, 0 to 3.
    SetWavePriority(u8),
    /// Nothing moves across. No instruction.
    SchedulingBarrier,
    /// Waits until at most so many loads from global memory are under way.
    WaitForLoads(u8),
}

/// A condition on the number of a wave in its workgroup.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct WaveCondition {
    /// How the wave's number compares with the bound.
    pub predicate: Predicate,
    /// What it is compared with.
    pub bound: WaveBound,
}

impl WaveCondition {
    /// True for wave number `wave` of `waves`.
    pub fn holds(&self, wave: u32, waves: u32) -> bool {
        let bound = match self.bound {
            WaveBound::Wave(number) => number,
            WaveBound::WavesOver(divisor) => waves / divisor.max(1),
        };
        match self.predicate {
            Predicate::Eq => wave == bound,
            Predicate::Ne => wave != bound,
            Predicate::Lt => wave < bound,
            Predicate::Le => wave <= bound,
            Predicate::Gt => wave > bound,
            Predicate::Ge => wave >= bound,
        }
    }
}

/// Number of a wave.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum WaveBound {
    /// This number.
    Wave(u32),
    /// The waves of a workgroup, divided by this number.
    WavesOver(u32),
}

/// Which matrix instruction an `mma` node uses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MmaChoice {
    /// The kernel's default.
    Kernel,
    /// This one, chosen for the node alone.
    Explicit(Mma),
}

/// Rows of one-operand arithmetic. Integers wrap and have `neg` and `abs` only. How exact the others are
/// stands in docs/numerics.md.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum UnaryOp {
    Neg,
    Abs,
    Exp,
    Exp2,
    Log2,
    Sqrt,
    Reciprocal,
    Tanh,
}

/// Rows of two-operand arithmetic. Integers wrap; their division truncates, and division by zero gives zero. `min` and `max` of
/// floats give the other operand when one is NaN, and take -0 to be less than +0.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

/// Comparison predicates: signed for integers, ordered for floats (false when an operand is NaN, except `Ne`, which is true).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Predicate {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl UnaryOp {
    /// All rows with their text names.
    pub const NAMES: &'static [(UnaryOp, &'static str)] = &[
        (UnaryOp::Neg, "neg"),
        (UnaryOp::Abs, "abs"),
        (UnaryOp::Exp, "exp"),
        (UnaryOp::Exp2, "exp2"),
        (UnaryOp::Log2, "log2"),
        (UnaryOp::Sqrt, "sqrt"),
        (UnaryOp::Reciprocal, "reciprocal"),
        (UnaryOp::Tanh, "tanh"),
    ];
}

impl BinaryOp {
    /// All rows with their text names.
    pub const NAMES: &'static [(BinaryOp, &'static str)] = &[
        (BinaryOp::Add, "add"),
        (BinaryOp::Sub, "sub"),
        (BinaryOp::Mul, "mul"),
        (BinaryOp::Div, "div"),
        (BinaryOp::Min, "min"),
        (BinaryOp::Max, "max"),
    ];
}

impl Predicate {
    /// All rows with their text names.
    pub const NAMES: &'static [(Predicate, &'static str)] = &[
        (Predicate::Eq, "eq"),
        (Predicate::Ne, "ne"),
        (Predicate::Lt, "lt"),
        (Predicate::Le, "le"),
        (Predicate::Gt, "gt"),
        (Predicate::Ge, "ge"),
    ];
}

/// Nodes whose results (or memories) a node uses, in the order that its [`Op`] states.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
pub struct Operands(pub SmallVec<[Entity; 4]>);

/// Type of a node's result, or of a memory: dims outermost first, and dtype. Nodes without a result have no dims. Logical
/// nodes other than memories, registers and casts get theirs from type inference; until then [`ValueType::unknown`].
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub struct ValueType {
    /// Dimensions, outermost first.
    pub dims: Dims,
    /// Element type; `None` until it is inferred.
    pub dtype: Option<DType>,
}

impl ValueType {
    /// A type that is not known yet.
    pub fn unknown() -> ValueType {
        ValueType { dims: Dims::new(), dtype: None }
    }
}

/// Where the author wrote the node: index into [`super::kernel::Locations`], or `u32::MAX`.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub struct Origin(pub u32);

/// Name of a memory or scalar (it is the argument's name in the code object).
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub struct Name(pub Arc<str>);

/// The author's tag.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub struct Tag(pub Box<str>);

/// Address space of a memory: `Shared` asks for promotion to LDS.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub struct Space(pub AddressSpace);

/// Ordered nodes of a region: of the kernel (on the kernel entity) or of a loop body.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
pub struct Body(pub Vec<Entity>);

/// Values that a loop body hands to its next iteration, in the order of the carried values.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
pub struct Yields(pub SmallVec<[Entity; 4]>);

/// Range of a loop's induction variable, in tiles; set when symbols are bound.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub struct Trip {
    /// First iteration.
    pub start: Expr,
    /// Behind the last iteration.
    pub end: Expr,
}

/// On a pipelined loop: how its iterations overlap.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pipelined {
    /// Iterations that are under way in the steady state, apart from the newest: the number of stages less one.
    pub ahead: u32,
    /// How the last iterations end.
    pub drain: Drain,
}

impl Pipelined {
    /// Iterations that the loop must have.
    pub fn needed(&self) -> u32 {
        match self.drain {
            Drain::Epilogue => self.ahead,
            Drain::Loop => self.ahead.min(1),
        }
    }
}

/// On a loop, and on the pipelined loop made of it: so many iterations are one pass of it. Its trip count, in iterations, is a multiple.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub struct Unrolled(pub u32);

impl Unrolled {
    /// Iterations of one pass of a loop.
    pub fn of(world: &World, node: Entity) -> u32 {
        world.get::<Unrolled>(node).map_or(1, |unrolled| unrolled.0)
    }
}

/// How the last iterations of a pipelined loop end.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Drain {
    /// Behind the steady state.
    #[default]
    Epilogue,
    /// In the steady state, which runs once for every iteration. What it loads for iterations that do not exist is the last one's once
    /// more, and is not used.
    Loop,
}

/// Which element of a node's tile each (replica, wave, lane, register) holds; set by index analysis. For an access it is also
/// the place in the memory's tile.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub struct Placement(pub Layout);
