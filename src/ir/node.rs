//! The components of a kernel's nodes: what a logical node is.
//!
//! A logical node is one operation that the author wrote (or that a pass added). Every node carries [`Op`],
//! [`Operands`], [`ValueType`] and [`Origin`]; the other components are optional facts. Structure lives in
//! [`Body`]: the kernel entity and every loop own an ordered list of nodes, and nothing else decides their
//! order.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

pub(crate) use super::constant::Constant;
use super::expr::{Expr, ExprArena};
use super::layout::{Dim, Layout};
pub(crate) use super::op::{
    AtomicOp, BinaryOp, CodeForm, Control, Conversion, Decoding, MmaChoice, Op, Predicate, Reduction,
    ReductionOp, Scan, ScanOp, Sort, SortOp, TernaryOp, UnaryOp, WaveBound, WaveCondition,
};
use super::types::{AddressSpace, DType};

/// Dimensions of a value or memory, outermost first.
pub(crate) type Dims = SmallVec<[Dim; 4]>;

/// Nodes whose results (or memories) a node uses, in the order that its [`Op`] states.
#[derive(Component, PartialEq, Eq, Default, Debug)]
pub struct Operands(pub SmallVec<[Entity; 4]>);

/// As a piece of memory, not one element after the other: passes copy nodes all the time.
impl Clone for Operands {
    fn clone(&self) -> Operands {
        Operands(SmallVec::from_slice(&self.0))
    }
}

/// Type of a node's result, or of a memory: dims outermost first, and dtype. Nodes without a result have no
/// dims. Logical nodes other than memories, registers and casts get theirs from type inference; until then it
/// is [`ValueType::unknown`].
#[derive(Component, PartialEq, Eq, Debug)]
pub struct ValueType {
    /// Dimensions, outermost first.
    pub dims: Dims,
    /// Element type; `None` until it is inferred.
    pub dtype: Option<DType>,
}

/// As that of [`Operands`].
impl Clone for ValueType {
    fn clone(&self) -> ValueType {
        ValueType { dims: Dims::from_slice(&self.dims), dtype: self.dtype }
    }
}

impl ValueType {
    /// A type that is not known yet.
    pub fn unknown() -> ValueType {
        ValueType { dims: Dims::new(), dtype: None }
    }
}

/// Where the author wrote the node: index into [`super::kernel::Locations`], or `u32::MAX`.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin(pub u32);

/// Name of a memory or scalar (it is the argument's name in the code object).
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Name(pub Arc<str>);

/// The author's tag.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub struct Tag(pub Box<str>);

/// Address space of a memory: `Shared` asks for promotion to LDS.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Space(pub AddressSpace);

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
    /// One past the last iteration.
    pub end: Expr,
}

impl Trip {
    /// True if there is an iteration for all values of the symbols.
    pub(crate) fn surely_runs(&self, arena: &ExprArena) -> bool {
        let (start, end) = (arena.range(self.start).hi, arena.range(self.end).lo);
        start.zip(end).is_some_and(|(start, end)| start < end)
    }
}

/// On a pipelined loop: how its iterations overlap.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pipelined {
    /// Iterations that are under way in the steady state, not counting the newest: the number of stages less
    /// one.
    pub ahead: u32,
    /// How the last iterations end.
    pub drain: Drain,
}

impl Pipelined {
    /// Iterations that the loop must have.
    pub(crate) fn needed(&self) -> u32 {
        match self.drain {
            Drain::Epilogue => self.ahead,
            Drain::Loop => self.ahead.min(1),
        }
    }
}

/// On a loop, and on the pipelined loop made of it: so many iterations are one trip. Its trip count, in
/// iterations, is a multiple of that.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unrolled(pub u32);

impl Unrolled {
    /// Iterations of one trip of a loop.
    pub(crate) fn of(world: &World, node: Entity) -> u32 {
        world.get::<Unrolled>(node).map_or(1, |unrolled| unrolled.0)
    }
}

/// How the last iterations of a pipelined loop end.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Drain {
    /// After the steady state.
    #[default]
    Epilogue,
    /// In the steady state, which runs once for every iteration. For iterations that do not exist it loads
    /// the data of the last one again, and does not use it.
    Loop,
}

/// Which element of a node's tile each (replica, wave, lane, register) holds; set by index analysis. For an
/// access it is also the place in the memory's tile.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub struct Placement(pub Layout);
