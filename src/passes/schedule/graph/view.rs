//! The kernel under scheduling, and what schedulers see of it.

use std::cell::OnceCell;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::lds_use::LdsUse;
use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, Layout, Source};
use crate::ir::mapping::Mapping;
use crate::ir::node::{Body, Control, Op, Placement, Trip};
use crate::ir::nodes::{self, Bug, ExpandedNode, ExpandedNodeItem, ExpandedNodes};
use crate::passes::facts::{
    Expressions, Geometry, LdsBuffer, MaskedPart, OnDemand, Settings, UnitFactor, UnmaskedTiles,
};
use crate::passes::lds::lds_lifetimes::{Grain, LdsLifetimes, LdsProgram};
use crate::passes::loops::expand::Expansion;
use crate::passes::options::Options;
use crate::passes::workspace::Workspace;

/// A kernel whose loops are being rebuilt. Nodes are found through a query whose state is the pass's own, so
/// that it lives as long as the world.
pub struct Scheduling<'w> {
    /// The world of the kernel.
    pub(crate) world: &'w mut World,
    /// The kernel entity.
    pub(crate) root: Entity,
    /// The states of the queries.
    pub(crate) nodes: &'w mut QueryState<ExpandedNode>,
    pub(crate) ops: &'w mut QueryState<&'static Op>,
    /// Bytes of all LDS buffers with their copies, once somebody has added them up: a kernel of many loops
    /// asks for every one of them.
    pub(crate) lds_bytes: Option<u64>,
    /// What LDS holds at each place, once somebody has asked: only kernels do whose buffers do not fit beside
    /// each other.
    pub(crate) lds_use: OnceCell<LdsUse>,
    /// LDS buffers on whose number of copies a scheduled loop relies, in the order of their entities. Parts
    /// of a loop share those of the loops in it.
    pub(crate) settled: SmallVec<[Entity; 8]>,
}

impl<'w> Scheduling<'w> {
    /// The kernel in a workspace.
    pub(crate) fn of(workspace: &'w mut Workspace) -> Scheduling<'w> {
        let Workspace { world, root, expanded: nodes, ops, .. } = workspace;
        let (lds_use, settled) = (OnceCell::new(), SmallVec::new());
        Scheduling { world, root: *root, nodes, ops, lds_bytes: None, lds_use, settled }
    }
}

impl Scheduling<'_> {
    /// The kernel as it stands.
    pub(crate) fn view(&mut self) -> SchedulerView<'_> {
        SchedulerView {
            world: self.world,
            root: self.root,
            nodes: self.nodes.query(self.world),
            ops: self.ops.query(self.world),
            lds_bytes: self.lds_bytes,
            lds_use: Some(&self.lds_use),
        }
    }
}

/// A kernel that nobody changes at the moment.
#[derive(Copy, Clone)]
pub struct SchedulerView<'w> {
    /// The world of the kernel.
    pub(crate) world: &'w World,
    /// The kernel entity.
    pub(crate) root: Entity,
    nodes: ExpandedNodes<'w, 'w>,
    /// What nodes do, for those who ask for nothing else.
    ops: Query<'w, 'w, &'static Op>,
    /// Bytes of all LDS buffers with their copies, if they are known.
    pub(crate) lds_bytes: Option<u64>,
    /// Where what LDS holds is kept.
    lds_use: Option<&'w OnceCell<LdsUse>>,
}

/// Why an operation is left out most of the time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Seldom {
    /// A product with a factor that is one: where schedules ask for the branch.
    UnitFactor,
    /// A mask that hides nothing.
    Mask,
}

impl Seldom {
    /// The control that a schedule puts in front of such operations.
    pub(crate) fn control(self) -> Option<Control> {
        match self {
            Seldom::UnitFactor => Some(Control::SkipUnitFactors),
            Seldom::Mask => None,
        }
    }
}

impl<'w> SchedulerView<'w> {
    /// True of a logical loop that takes the tiles in which masks hide something.
    pub(crate) fn is_masked_part(&self, looped: Entity) -> bool {
        self.world.get::<MaskedPart>(looped).is_some()
    }

    /// The kernel in a workspace.
    pub(crate) fn new(workspace: &'w mut Workspace) -> SchedulerView<'w> {
        let Workspace { world, root, expanded, ops, .. } = workspace;
        SchedulerView {
            world,
            root: *root,
            nodes: expanded.query(world),
            ops: ops.query(world),
            lds_bytes: None,
            lds_use: None,
        }
    }

    /// What `ask` wants to know of what LDS holds at each place of the kernel.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn lds_use<R>(self, ask: impl FnOnce(&LdsUse) -> R) -> Result<R, Bug> {
        match self.lds_use.and_then(OnceCell::get) {
            Some(known) => Ok(ask(known)),
            None => {
                let found = self.find_lds_use()?;
                Ok(ask(match self.lds_use {
                    Some(cell) => cell.get_or_init(|| found),
                    None => &found,
                }))
            }
        }
    }

    /// A node.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn node(self, node: Entity) -> Result<ExpandedNodeItem<'w, 'w>, Bug> {
        self.nodes.get_inner(node).map_err(|_| Bug::new("a schedule lost a node"))
    }

    /// Several nodes.
    ///
    /// # Errors
    /// If one of them is none.
    pub(crate) fn nodes(self, nodes: &[Entity]) -> Result<Vec<ExpandedNodeItem<'w, 'w>>, Bug> {
        let mut seen = Vec::with_capacity(nodes.len());
        for &node in nodes {
            seen.push(self.node(node)?);
        }
        Ok(seen)
    }

    /// What a node does.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn op(self, node: Entity) -> Result<Op, Bug> {
        self.ops.get_inner(node).copied().map_err(|_| Bug::new("a schedule lost a node"))
    }

    /// Why a logical node is left out most of the time, by a branch, if it is.
    pub(crate) fn seldom(self, logical: Entity) -> Option<Seldom> {
        if self.world.get::<UnitFactor>(logical).is_some() {
            return Some(Seldom::UnitFactor);
        }
        self.world.get::<UnmaskedTiles>(logical).is_some().then_some(Seldom::Mask)
    }

    /// True if a logical node is computed where a condition needs it, which takes no time most of the time.
    pub(crate) fn is_on_demand(self, logical: Entity) -> bool {
        self.world.get::<OnDemand>(logical).is_some()
    }

    /// True if a node of the kernel, wherever it stands, does such a thing.
    pub(crate) fn any(self, is: impl Fn(Op) -> bool) -> bool {
        self.ops.iter().any(|op| is(*op))
    }

    /// The nodes of the kernel or of a loop.
    ///
    /// # Errors
    /// If it is no region.
    pub(crate) fn body(self, region: Entity) -> Result<&'w [Entity], Bug> {
        let body = match region == self.root {
            true => self.world.get::<Body>(region),
            false => self.node(region)?.body,
        };
        body.map(|body| &body.0[..]).ok_or(Bug::new("a region without body"))
    }

    /// Elements of a logical node's value that a lane holds in one piece.
    pub(crate) fn elements(self, logical: Entity) -> u32 {
        self.layout(logical).map_or(0, |layout| layout.extent(Source::Register))
    }

    /// The layout of a logical node's value, if it has one.
    pub(crate) fn layout(self, logical: Entity) -> Option<&'w Layout> {
        self.world.get::<Placement>(logical).map(|placement| &placement.0)
    }

    /// Vector registers of a node's value.
    ///
    /// # Errors
    /// If it is no node.
    pub(crate) fn registers(self, node: Entity) -> Result<u32, Bug> {
        let seen = self.node(node)?;
        let bytes = seen.ty.dtype.map_or(0, |dtype| dtype.bytes());
        Ok((self.elements(seen.piece(node).logical) * bytes).div_ceil(4))
    }

    /// An LDS buffer.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn buffer(self, buffer: Entity) -> Result<&'w LdsBuffer, Bug> {
        nodes::fact(self.world, buffer, "LDS that is no buffer")
    }

    /// Copies of an LDS buffer that iterations take in turns; one of other memories.
    pub(crate) fn copies(self, memory: Entity) -> u32 {
        self.world.get::<LdsBuffer>(memory).map_or(1, |lds| lds.copies)
    }

    /// The LDS buffer that a node accesses, if it does.
    ///
    /// # Errors
    /// If it touches what is no node.
    pub(crate) fn buffer_of(self, node: &ExpandedNodeItem) -> Result<Option<Entity>, Bug> {
        if !node.op.is_access() {
            return Ok(None);
        }
        let memory = node.memory()?;
        Ok((self.op(memory)? == Op::Allocate).then_some(memory))
    }

    fn find_lds_use(self) -> Result<LdsUse, Bug> {
        let mut held = LdsUse::of(LdsLifetimes::of(&self, self.root, Grain::InnermostLoops)?);
        for buffer in held.buffers() {
            held.resize(buffer, [0, self.buffer(buffer)?.all_bytes()]);
        }
        Ok(held)
    }

    /// What the kernel is compiled for.
    ///
    /// # Errors
    /// If nobody has said.
    pub(crate) fn settings(self) -> Result<&'w Options, Bug> {
        nodes::fact::<Settings>(self.world, self.root, "a kernel without settings").map(|s| &s.0)
    }

    /// Waves of a workgroup.
    ///
    /// # Errors
    /// If nobody has said.
    pub(crate) fn waves(self) -> Result<u32, Bug> {
        nodes::fact::<Geometry>(self.world, self.root, "a kernel without geometry").map(Geometry::wave_count)
    }

    /// The iterations of a loop, if their number is known.
    ///
    /// # Errors
    /// If it is no loop, or if there are no expressions.
    pub(crate) fn known_iterations(self, node: Entity) -> Result<Option<u32>, Bug> {
        let trip = nodes::fact::<Trip>(self.world, node, "a loop without trip count")?;
        let arena = &nodes::fact::<Expressions>(self.world, self.root, "no expressions")?.0;
        let is_known = [trip.start, trip.end].iter().all(|&limit| arena.as_integer(limit).is_some());
        Ok(self.most_iterations(node)?.filter(|_| is_known))
    }

    /// The most iterations of a loop, if a bound is known.
    ///
    /// # Errors
    /// If it is no loop, or if there are no expressions.
    pub(crate) fn most_iterations(self, node: Entity) -> Result<Option<u32>, Bug> {
        let trip = nodes::fact::<Trip>(self.world, node, "a loop without trip count")?;
        let arena = &nodes::fact::<Expressions>(self.world, self.root, "no expressions")?.0;
        let (start, end) = (arena.range(trip.start).lo, arena.range(trip.end).hi);
        let count = start.zip(end).map(|(start, end)| end.saturating_sub(start).max(0));
        Ok(count.and_then(|count| u32::try_from(count).ok()))
    }

    /// The size of a dimension, if it is known.
    ///
    /// # Errors
    /// If there is no geometry, or if there are no expressions.
    pub(crate) fn size(self, dim: Dim) -> Result<Option<i64>, Bug> {
        let geometry = nodes::fact::<Geometry>(self.world, self.root, "a kernel without geometry")?;
        let arena = &nodes::fact::<Expressions>(self.world, self.root, "no expressions")?.0;
        Ok(geometry.dims.get(dim).and_then(|dim| arena.as_integer(dim.size)))
    }

    /// The dimensions of the kernel.
    ///
    /// # Errors
    /// If it has no table of them.
    pub(crate) fn dims(self) -> Result<&'w DimTable, Bug> {
        nodes::fact(self.world, self.root, "a kernel without dimensions")
    }
}

impl LdsProgram for SchedulerView<'_> {
    type Fault = Bug;

    fn body(&self, region: Entity) -> Result<&[Entity], Bug> {
        SchedulerView::body(*self, region)
    }

    fn look(&self, node: Entity) -> Result<(Op, Option<Entity>), Bug> {
        let seen = self.node(node)?;
        Ok((*seen.op, self.buffer_of(&seen)?))
    }

    fn is_mapped(&self, access: Entity) -> bool {
        self.node(access).is_ok_and(|seen| self.world.get::<Mapping>(seen.piece(access).logical).is_some())
    }

    fn surely_runs(&self, looped: Entity) -> bool {
        let trip = self.world.get::<Trip>(looped);
        let expressions = self.world.get::<Expressions>(self.root);
        trip.zip(expressions).is_some_and(|(trip, expressions)| trip.surely_runs(&expressions.0))
    }
}

impl ExpandedNodeItem<'_, '_> {
    /// What `node`, which this is, is a piece of; what was not expanded is the first of itself.
    pub(crate) fn piece(&self, node: Entity) -> Expansion {
        self.expansion.copied().unwrap_or(Expansion::of(node))
    }
}
