//! The results of lowering apart from the code.

use std::ops::Range;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::codegen::isa::{Operand, VReg};
use crate::codegen::machine::{BlockId, InstId};
use crate::ir::expr::{Expr, Symbol};
use crate::ir::facts::SplitAccess;
use crate::ir::node_map::NodeSet;

/// One kernel argument in the kernarg segment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ArgumentSlot {
    /// Pointer to a memory, 8 bytes.
    Pointer {
        /// The memory node.
        memory: Entity,
        /// Byte offset in the segment.
        offset: u32,
    },
    /// A number by value.
    Scalar {
        /// The scalar node.
        scalar: Entity,
        /// Its bytes: 4 or 8.
        bytes: u32,
        /// Byte offset in the segment.
        offset: u32,
    },
    /// A dynamic symbol, 4 bytes.
    Symbol {
        /// The symbol.
        symbol: Symbol,
        /// Byte offset in the segment.
        offset: u32,
    },
}

impl ArgumentSlot {
    /// Byte offset after it.
    pub(super) fn end(&self) -> u32 {
        match *self {
            ArgumentSlot::Pointer { offset, .. } => offset + 8,
            ArgumentSlot::Scalar { offset, bytes, .. } => offset + bytes,
            ArgumentSlot::Symbol { offset, .. } => offset + 4,
        }
    }
}

/// The instructions that a node has become.
#[derive(Clone, Debug)]
pub(crate) struct NodeSpan {
    /// The node; a loop has those of its body, too.
    pub node: Entity,
    /// The instructions.
    pub insts: Range<InstId>,
}

/// The code of loops.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopCode {
    /// Machine blocks that are loop bodies, outermost first.
    pub bodies: Vec<Range<BlockId>>,
    /// Which of these take the tiles in which masks hide something.
    pub masked: Vec<usize>,
    /// Blocks that are left out most of the time.
    pub seldom: Vec<BlockId>,
    /// How many of them are masks.
    pub mask_branches: u32,
    /// The first instructions of regions that are ordered by cost.
    pub interleaved: Vec<InstId>,
}

/// Code that has reasons, by the nodes that keep them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReasonedCode {
    /// Accesses, by their logical nodes, whose instructions move fewer elements than a lane has side by side.
    pub splits: Vec<(Entity, SplitAccess)>,
    /// Accesses, by their logical nodes, that leave elements out, and the memory that these are outside of.
    pub masked: Vec<(Entity, Entity)>,
    /// The node of each barrier in the order of the code; a persistent kernel's between its tiles have none.
    pub barriers: SmallVec<[Option<Entity>; 8]>,
}

/// The results of lowering apart from the code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lowered {
    /// Registers that are set when the kernel starts: virtual register and physical register number.
    pub fixed: Vec<(VReg, Operand)>,
    /// Kernel arguments in order.
    pub arguments: Vec<ArgumentSlot>,
    /// Memories that the code stores to.
    pub written: NodeSet,
    /// Bytes of the kernarg segment.
    pub kernarg_bytes: u32,
    /// Leading dwords of the segment that are in SGPRs when the kernel starts.
    pub preloaded_dwords: u32,
    /// The code has `v_min_f32` or `v_max_f32`, which treat any NaN as the lesser operand only where IEEE
    /// mode is off.
    pub float_extremum: bool,
    /// Grid axes whose workgroup id the kernel reads.
    pub workgroup_ids: [bool; 3],
    pub loops: LoopCode,
    /// Largest byte offsets inside one descriptor that must stay below 2^31, as expressions to check at
    /// launch.
    pub reaches: Vec<(Entity, Expr)>,
    pub reasons: ReasonedCode,
    /// The instructions of each node, in the order in which nodes end, if they are asked for: none then
    /// stands among those of another node.
    pub nodes: Option<Vec<NodeSpan>>,
}
