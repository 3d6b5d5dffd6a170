//! Workgroup barriers, only where an LDS hazard between waves needs one: before a read of what another wave
//! may just have written, and before a write over what another wave may still read. Loop bodies are walked
//! until nothing new comes around the back edge, and a kernel of one wave needs none: a wave's LDS operations
//! are executed in order.
//!
//! Elements of LDS that one wave alone writes and reads need none, as when values change their lanes,
//! unless other buffers need barriers anyway.
//!
//! The same goes for a global memory that waves of a workgroup both read and write, or write twice, unless
//! every element is always accessed by the same wave. There a barrier alone is enough: vector memory
//! operations of a workgroup's waves go through one first-level cache, which keeps their order (LLVM's AMDGPU
//! usage page, memory models of gfx90a and gfx942, without tg_split).
//!
//! Accesses of pipelined and unrolled loops use the copy of their buffer that belongs to their iteration, so
//! two of them use the same copy only if their iterations differ by a multiple of the number of copies.
//!
//! In a loop whose waves do not run in step, one half of them a barrier late, none may be added: there its
//! schedule counts barriers for both halves and proves every pair of accesses ordered, or names the two that
//! are not (`schedule/judge/wave_groups`). Such a loop is [`Settled`] if its accesses are over when its waves
//! meet after it, and [`EnteredInOrder`] if those in front of it are over in time without another barrier;
//! this pass puts none there then. One that is [`EnteredWithLoads`] waits by itself for loads of later trips:
//! waves that enter it wait for the others alone. Barriers between the prologue, the loop and the epilogue of
//! a pipeline know whole buffers alone, and not their parts.
//!
//! Each barrier says which access waits for which one of all waves ([`OrderedAccesses`]): the reason why it
//! is there.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;
use smallvec::SmallVec;

use super::allocate_lds::{LdsNodes, accessed};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::{KernelName, Locations};
use crate::ir::layout::{Mode, Source};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::NodeBundle;
use crate::ir::op::OpClass;
use crate::ir::types::AddressSpace;
use crate::passes::PassResult;
use crate::passes::facts::{
    EnteredInOrder, EnteredWithLoads, Geometry, LdsBuffer, LogicalBody, OrderedAccesses, Settled, Staggered,
    Synchronised,
};
use crate::passes::loops::expand::{Base, Expansion, Iteration};

/// A part of LDS: the copy of a buffer that belongs to one iteration, counted from the running trip. Or what
/// an access touches of a global memory, which has no place in LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Area {
    /// The LDS buffer or the global memory.
    buffer: Entity,
    space: AddressSpace,
    /// Which wave accesses which element. Accesses of equal sharing are no hazard.
    sharing: WaveSharing,
    /// The logical node that accesses it, where it matters which.
    logical: Entity,
    /// The same for the reason of a barrier, where no hazard depends on it.
    accessed_by: Entity,
    start: u32,
    end: u32,
    copies: i32,
    /// `None`: may be any copy.
    ahead: Option<i32>,
    /// Written at coordinates: what a wave writes in one iteration, another one may write in the next.
    scattered: bool,
}

impl Area {
    /// True if a write of this area may come between another wave's write of the other and its readers: not
    /// if one node does both, whose parts lie side by side, each always written by the same wave.
    fn overwrites(&self, other: &Area) -> bool {
        self.logical != other.logical && self.meets(other)
    }

    fn meets(&self, other: &Area) -> bool {
        if self.buffer != other.buffer {
            return self.start < other.end && other.start < self.end;
        }
        if let (WaveSharing::Divided(one), WaveSharing::Divided(another)) = (self.sharing, other.sharing)
            && one == another
        {
            return false;
        }
        match (self.ahead, other.ahead) {
            (Some(a), Some(b)) => (a - b) % self.copies == 0,
            _ => true,
        }
    }

    /// True if every area that meets the one meets the other.
    fn is_same_place(&self, other: &Area) -> bool {
        self.ahead == other.ahead
            && (self.start, self.end, self.copies) == (other.start, other.end, other.copies)
            && self.sharing == other.sharing
            && (self.ahead.is_none() && self.is_shared_lds() || self.buffer == other.buffer)
    }

    /// True for a part of LDS whose elements several waves may access.
    fn is_shared_lds(&self) -> bool {
        self.space == AddressSpace::Shared && self.sharing == WaveSharing::Any
    }

    /// The same area as the next trip sees it, `iterations` later.
    fn next_trip(mut self, iterations: u32) -> Area {
        if self.scattered {
            self.logical = Entity::PLACEHOLDER;
        }
        let passed = (iterations % self.copies.unsigned_abs()) as i32;
        self.ahead = self.ahead.map(|ahead| (ahead - passed).rem_euclid(self.copies));
        self
    }
}

/// Which waves access which elements of a memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum WaveSharing {
    /// Each element is one wave's: a number for each way to divide them.
    Divided(u32),
    /// Several waves may access one element.
    Any,
}

/// How each access of contended memories shares the elements among waves: memories that two nodes access and
/// at least one of them writes.
#[derive(Default)]
struct ContendedMemories {
    /// Those outside of LDS.
    global: NodeSet,
    /// By logical node.
    accesses: NodeMap<WaveSharing>,
}

impl ContendedMemories {
    fn sharing(&self, logical: Entity) -> WaveSharing {
        self.accesses.get(logical).copied().unwrap_or(WaveSharing::Any)
    }
}

/// Parts of LDS touched since the last barrier.
#[derive(Clone, Default, PartialEq)]
struct TouchedLds {
    written: Areas,
    read: Areas,
}

/// Parts of LDS and the nodes that touch them. Areas that do not belong to one iteration are distinguished by
/// their places alone: buffers of different loops share memory, and there are few places.
#[derive(Clone, Default, PartialEq)]
struct Areas(SmallVec<[Area; 8]>);

impl Areas {
    fn add(&mut self, area: Area) {
        if !self.covers(&area) {
            self.0.push(area);
        }
    }

    /// True if whatever meets or overwrites the area also meets or overwrites one in the list. An area that
    /// two nodes touch can be overwritten by any node.
    fn covers(&self, area: &Area) -> bool {
        let mut toucher = None;
        self.0.iter().filter(|known| known.is_same_place(area)).any(|known| {
            known.logical == area.logical
                || toucher.replace(known.logical).is_some_and(|one| one != known.logical)
        })
    }

    /// Which node touches an area that meets this one.
    fn meeting(&self, area: &Area) -> Option<Entity> {
        self.0.iter().find(|known| area.meets(known)).map(|known| known.accessed_by)
    }
}

impl TouchedLds {
    fn add(&mut self, area: Area, effect: AreaEffect) {
        match effect {
            AreaEffect::Write => self.written.add(area),
            // It does not matter which node reads.
            AreaEffect::Read => self.read.add(Area { logical: Entity::PLACEHOLDER, ..area }),
        }
    }

    /// The logical node whose access all waves have to be done with before a node touches an area.
    fn hazard(&self, area: &Area, effect: AreaEffect) -> Option<Entity> {
        match effect {
            AreaEffect::Write => {
                let overwritten = self.written.0.iter().find(|other| area.overwrites(other));
                overwritten.map(|other| other.accessed_by).or_else(|| self.read.meeting(area))
            }
            AreaEffect::Read => self.written.meeting(area),
        }
    }

    /// The node of any access.
    fn any(&self) -> Option<Entity> {
        self.written.0.iter().chain(&self.read.0).map(|area| area.accessed_by).next()
    }

    fn has_reads_of_lds_alone(&self) -> bool {
        self.written.0.is_empty() && self.read.0.iter().all(|area| area.space == AddressSpace::Shared)
    }

    fn join(&mut self, other: &TouchedLds) {
        other.written.0.iter().for_each(|&area| self.written.add(area));
        other.read.0.iter().for_each(|&area| self.read.add(area));
    }

    fn map(&mut self, change: impl Fn(Area) -> Area) {
        for list in [&mut self.written, &mut self.read] {
            let old = std::mem::take(list);
            old.0.into_iter().for_each(|area| list.add(change(area)));
        }
    }

    fn clear(&mut self) {
        self.written.0.clear();
        self.read.0.clear();
    }

    fn is_subset(&self, other: &TouchedLds) -> bool {
        self.written.0.iter().all(|area| other.written.covers(area))
            && self.read.0.iter().all(|area| other.read.covers(area))
    }
}

/// The pass itself; see the module.
pub(crate) fn place_barriers(
    kernel: Single<(Entity, &Geometry, &LogicalBody), With<KernelName>>,
    bodies: Query<&'static mut Body>,
    found: BarrierNodes,
    mut commands: Commands,
) -> PassResult {
    let (root, geometry, logical) = *kernel;
    commands.entity(root).insert(Synchronised);
    if geometry.wave_count() == 1 {
        return Ok(());
    }
    let contended = found.contended(&bodies, logical)?;
    let mut placer = Placer {
        bodies,
        found,
        contended,
        commands,
        walked: NodeMap::default(),
        new: NodeSet::default(),
        others: NodeSet::default(),
        placed: 0,
    };
    placer.region(root, &mut TouchedLds::default())
}

/// What the pass looks at of a loop.
#[derive(QueryData)]
pub(crate) struct WalkedLoop {
    staggered: Option<&'static Staggered>,
    entered_in_order: Has<EnteredInOrder>,
    entered_with_loads: Option<&'static EnteredWithLoads>,
    settled: Has<Settled>,
    unrolled: Option<&'static Unrolled>,
}

/// The components that the pass reads.
#[derive(SystemParam)]
pub(crate) struct BarrierNodes<'w, 's> {
    nodes: LdsNodes<'w, 's>,
    expansions: Query<'w, 's, &'static Expansion>,
    buffers: Query<'w, 's, &'static LdsBuffer>,
    loops: Query<'w, 's, WalkedLoop>,
    placements: Query<'w, 's, (&'static Placement, Has<Mapping>)>,
    locations: Query<'w, 's, &'static Locations>,
}

/// What a node does to an area.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum AreaEffect {
    Read,
    Write,
}

impl AreaEffect {
    /// What an access does to the memory that it writes, if it writes one, and otherwise to the one it reads.
    fn of(op: Op) -> AreaEffect {
        if op.is_write() { AreaEffect::Write } else { AreaEffect::Read }
    }
}

/// What one node touches.
type Touches = SmallVec<[(Area, AreaEffect); 2]>;

impl BarrierNodes<'_, '_> {
    /// The part of LDS that a node accesses.
    fn area(
        &self,
        node: Entity,
        op: Op,
        operands: &Operands,
        contended: &ContendedMemories,
    ) -> Result<Option<Area>, Diagnostic> {
        let Some(buffer) = accessed(&self.nodes, op, operands)? else { return Ok(None) };
        let place = self.buffers.get(buffer)?;
        let Expansion { logical, iteration, .. } = *self.expansions.get(node)?;
        let copies = place.copies as i32;
        let ahead = match iteration.base {
            Base::Written => None,
            Base::Start | Base::Trip | Base::End => Some(iteration.ahead as i32 % copies),
        };
        let (start, end) = (place.offset, place.offset + place.all_bytes());
        let scattered = op == Op::Write && self.placements.get(logical)?.1;
        let (space, sharing) = (AddressSpace::Shared, contended.sharing(logical));
        Ok(Some(Area {
            buffer,
            space,
            logical,
            accessed_by: logical,
            sharing,
            start,
            end,
            copies,
            ahead,
            scattered,
        }))
    }

    /// True if an access touches what the `last` one did, a piece of the same node in the same iteration:
    /// then it needs no other barrier and adds nothing.
    fn touches_as_before(&self, node: Entity, last: &mut Option<(Entity, Iteration)>) -> bool {
        let own = self.expansions.get(node).ok().map(|expansion| (expansion.logical, expansion.iteration));
        own.is_some() && std::mem::replace(last, own) == own
    }

    /// What a node touches of LDS and of contended global memories.
    fn touches(
        &self,
        node: Entity,
        op: Op,
        operands: &Operands,
        contended: &ContendedMemories,
    ) -> Result<Touches, Diagnostic> {
        let mut touches = Touches::new();
        if let Some(area) = self.area(node, op, operands, contended)? {
            touches.push((area, AreaEffect::of(op)));
        }
        for (memory, effect) in accessed_memories(op, operands)? {
            if contended.global.contains(memory) {
                let logical = self.expansions.get(node)?.logical;
                let sharing = contended.sharing(logical);
                let scattered = op == Op::Write && self.placements.get(logical)?.1;
                touches.push((
                    Area {
                        buffer: memory,
                        space: AddressSpace::Global,
                        logical,
                        accessed_by: logical,
                        sharing,
                        start: 0,
                        end: 0,
                        copies: 1,
                        ahead: None,
                        scattered,
                    },
                    effect,
                ));
            }
        }
        Ok(touches)
    }

    /// Finds the accesses of memories, in a loop and outside of them.
    fn accessed(
        &self,
        bodies: &Query<&'static mut Body>,
        logical: &LogicalBody,
    ) -> Result<LogicalAccesses, Diagnostic> {
        let mut found = LogicalAccesses::default();
        let mut pending: SmallVec<[&[Entity]; 4]> = SmallVec::from_slice(&[&logical.0[..]]);
        while let Some(nodes) = pending.pop() {
            for &node in nodes {
                let (&op, operands, _) = self.nodes.get(node)?;
                if op.row().class == OpClass::Region {
                    pending.push(&bodies.get(node)?.0);
                }
                for (memory, effect) in accessed_memories(op, operands)? {
                    found.accesses.push((node, memory));
                    if effect == AreaEffect::Write {
                        found.written.insert(memory);
                        if op.copies() {
                            found.loaded.insert(memory);
                        }
                    }
                    found.nodes_of.count(memory);
                }
            }
        }
        Ok(found)
    }

    /// Finds the contended memories and who accesses which element of them.
    fn contended(
        &self,
        bodies: &Query<&'static mut Body>,
        logical: &LogicalBody,
    ) -> Result<ContendedMemories, Diagnostic> {
        let LogicalAccesses { accesses, written, loaded, nodes_of } = self.accessed(bodies, logical)?;
        let mut found = ContendedMemories::default();
        // Where other buffers need barriers anyway, these serve all: elsewhere they would only come later, in
        // the middle of the writes of a tile.
        let (mut shares_lds, mut divided_lds) = (false, SmallVec::<[(Entity, WaveSharing); 4]>::new());
        let mut sharing_of: NodeMap<WaveSharing> = NodeMap::default();
        let mut divisions: SmallVec<[SmallVec<[Mode; 4]>; 4]> = SmallVec::new();
        for (node, memory) in accesses {
            if !written.contains(memory) || nodes_of.get(memory).is_none_or(|&count| count < 2) {
                continue;
            }
            let is_global = *self.nodes.get(memory)?.0 == Op::Memory;
            if is_global {
                found.global.insert(memory);
            }
            let (Placement(layout), mapped) = self.placements.get(node)?;
            if mapped || loaded.contains(memory) || layout.is_replicated(Source::Wave) {
                shares_lds |= !is_global;
                continue;
            }
            let layout = layout.canonical();
            let modes: SmallVec<[Mode; 4]> = layout.of_source(Source::Wave).copied().collect();
            let known = divisions.iter().position(|known| *known == modes);
            let number = known.unwrap_or_else(|| {
                divisions.push(modes);
                divisions.len() - 1
            });
            let sharing = WaveSharing::Divided(number as u32);
            match is_global {
                true => found.accesses.insert(node, sharing),
                false => divided_lds.push((node, sharing)),
            }
            match sharing_of.get(memory) {
                None => sharing_of.insert(memory, sharing),
                Some(known) => shares_lds |= !is_global && *known != sharing,
            }
        }
        if !shares_lds {
            divided_lds.iter().for_each(|&(node, sharing)| found.accesses.insert(node, sharing));
        }
        Ok(found)
    }

    /// Whether an expanded access is one at coordinates.
    fn is_mapped(&self, access: Entity) -> bool {
        let placement =
            self.expansions.get(access).and_then(|expansion| self.placements.get(expansion.logical));
        placement.is_ok_and(|(_, mapped)| mapped)
    }

    fn op(&self, node: Entity) -> Result<Op, Diagnostic> {
        Ok(*self.nodes.get(node)?.0)
    }
}

/// The memories that a node accesses, and what it does to them.
fn accessed_memories(op: Op, operands: &Operands) -> Result<SmallVec<[(Entity, AreaEffect); 2]>, Diagnostic> {
    let mut found = SmallVec::new();
    if op.is_access() {
        if let (true, Some(&from)) = (op.copies(), operands.0.first()) {
            found.push((from, AreaEffect::Read));
        }
        found.push((operands.last()?, AreaEffect::of(op)));
    }
    Ok(found)
}

/// Barriers that a region gets, and the places that they go to.
type NewBarriers = SmallVec<[(usize, Entity); 8]>;

/// Walks regions; it remembers what it has found in loops.
struct Placer<'w, 's> {
    bodies: Query<'w, 's, &'static mut Body>,
    found: BarrierNodes<'w, 's>,
    contended: ContendedMemories,
    commands: Commands<'w, 's>,
    /// The areas touched in front of a loop when it was last walked, and those touched after it.
    walked: NodeMap<(TouchedLds, TouchedLds)>,
    /// Barriers placed so far, which no query finds yet.
    new: NodeSet,
    /// Nodes seen so far that have nothing to do with LDS, which are most of them: loops are walked again.
    others: NodeSet,
    placed: usize,
}

impl Placer<'_, '_> {
    /// A barrier before a node, which all waves reach after another one.
    fn barrier(&mut self, before: Entity, after: Option<Entity>) -> Result<Entity, Diagnostic> {
        self.barrier_of(Op::Barrier, before, after)
    }

    /// The same by an operation of this kind.
    fn barrier_of(&mut self, op: Op, before: Entity, after: Option<Entity>) -> Result<Entity, Diagnostic> {
        let origin = *self.found.nodes.get(before)?.2;
        let later = self.found.expansions.get(before).ok().map(|expansion| expansion.logical);
        let bundle = NodeBundle::effect(op, origin);
        let barrier = match (later, after) {
            (Some(later), Some(earlier)) => self.commands.spawn((bundle, OrderedAccesses { later, earlier })),
            _ => self.commands.spawn(bundle),
        };
        let barrier = barrier.id();
        self.new.insert(barrier);
        self.placed += 1;
        Ok(barrier)
    }

    /// True if a loop that keeps its accesses in order by itself finds nothing under way but loads for which
    /// it waits: those since the waves have last met, no more than a trip leaves, and reads that are over
    /// before it writes there.
    fn only_later_loads(
        &self,
        node: Entity,
        before: &[Entity],
        touched: &TouchedLds,
    ) -> Result<bool, Diagnostic> {
        let entered = self.found.loops.get(node)?;
        let Some(left) = entered.entered_with_loads else { return Ok(false) };
        let reads_are_over = touched.read.0.is_empty()
            || entered.entered_in_order
                && touched.read.0.iter().all(|area| area.space == AddressSpace::Shared);
        if !reads_are_over || !self.writes_are_loads(touched)? {
            return Ok(false);
        }
        let mut loads = 0;
        for &other in before.iter().rev() {
            let op = self.found.op(other)?;
            if op == Op::Barrier {
                return Ok(loads <= left.0);
            } else if op.row().class == OpClass::Region {
                break;
            }
            loads += u32::from(op.copies());
        }
        Ok(false)
    }

    /// True if all that has been written to LDS comes straight from memory.
    fn writes_are_loads(&self, touched: &TouchedLds) -> Result<bool, Diagnostic> {
        for area in &touched.written.0 {
            if !self.found.op(area.accessed_by)?.copies() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What waves do in front of a loop that keeps its accesses in order by itself: they meet once they are
    /// done with everything, or with everything but loads straight into LDS for which the loop waits.
    fn enter_settled(
        &mut self,
        node: Entity,
        touched: &TouchedLds,
    ) -> Result<SmallVec<[Entity; 2]>, Diagnostic> {
        let only_loads = touched.read.0.is_empty() && self.writes_are_loads(touched)?;
        let left = self.found.loops.get(node)?.entered_with_loads.filter(|_| only_loads);
        match left.and_then(|left| u8::try_from(left.0).ok()) {
            Some(left) => {
                let origin = *self.found.nodes.get(node)?.2;
                let wait = NodeBundle::effect(Op::Control(Control::WaitForLoads(left)), origin);
                let wait = self.commands.spawn(wait).id();
                self.others.insert(wait);
                let meet = Op::Control(Control::WorkgroupBarrier);
                Ok([wait, self.barrier_of(meet, node, touched.any())?].into_iter().collect())
            }
            None => Ok([self.barrier(node, touched.any())?].into_iter().collect()),
        }
    }

    fn region(&mut self, region: Entity, touched: &mut TouchedLds) -> PassResult {
        // Nothing inside looks at the list of a region around it.
        let mut body = std::mem::take(&mut self.bodies.get_mut(region)?.0);
        let new = self.nodes(region, &body, touched)?;
        new.into_iter().rev().for_each(|(at, barrier)| body.insert(at, barrier));
        self.bodies.get_mut(region)?.0 = body;
        Ok(())
    }

    /// Walks the nodes of a region; new barriers and the places that they go to.
    fn nodes(
        &mut self,
        region: Entity,
        body: &[Entity],
        touched: &mut TouchedLds,
    ) -> Result<NewBarriers, Diagnostic> {
        let mut new = NewBarriers::new();
        let mut last = None;
        for (at, &node) in body.iter().enumerate() {
            if self.new.contains(node) {
                touched.clear();
                last = None;
                continue;
            }
            if self.others.contains(node) {
                continue;
            }
            let (&op, operands, _) = self.found.nodes.get(node)?;
            match op.row().class {
                // Its schedule has proved its own barriers, and one more would pair up with others.
                OpClass::Region if self.found.loops.get(node)?.staggered.is_some() => {
                    last = None;
                    new.extend(self.staggered_loop(node, &body[..at], touched)?);
                }
                OpClass::Region => {
                    last = None;
                    self.inner_region(region, node, op, touched)?;
                }
                OpClass::Access if self.found.touches_as_before(node, &mut last) => {}
                OpClass::Access => {
                    let touches = self.found.touches(node, op, operands, &self.contended)?;
                    let hazard = touches.iter().find_map(|(area, effect)| touched.hazard(area, *effect));
                    if hazard.is_some() {
                        new.push((at, self.barrier(node, hazard)?));
                        touched.clear();
                    }
                    touches.into_iter().for_each(|(area, effect)| touched.add(area, effect));
                }
                OpClass::Order if op == Op::Barrier => {
                    touched.clear();
                    last = None;
                }
                OpClass::Declaration
                | OpClass::Constant
                | OpClass::ElementWise
                | OpClass::Rearrangement
                | OpClass::Contraction
                | OpClass::Reduction
                | OpClass::Scan
                | OpClass::Carried
                | OpClass::Order => self.others.insert(node),
            }
        }
        Ok(new)
    }

    /// Walks a loop that keeps its accesses in order by itself; barriers in front of it.
    fn staggered_loop(
        &mut self,
        node: Entity,
        before: &[Entity],
        touched: &mut TouchedLds,
    ) -> Result<NewBarriers, Diagnostic> {
        let mut new = NewBarriers::new();
        let walked = self.found.loops.get(node)?;
        let is_in_step = walked.staggered.is_none_or(|groups| groups.0.iter().all(|&late| late == 0));
        let is_open = match walked.entered_in_order {
            true => !touched.has_reads_of_lds_alone(),
            false => *touched != TouchedLds::default(),
        };
        if is_open && self.only_later_loads(node, before, touched)? {
            touched.clear();
        } else if is_open {
            // In front of the barriers that put the waves out of step. Controls in front of a loop that is
            // entered in step belong to what was before.
            let place = match is_in_step {
                true => before.len(),
                false => before.len() - self.controls_before(before)?,
            };
            let entry = self.enter_settled(node, touched)?;
            new.extend(entry.into_iter().map(|own| (place, own)));
            touched.clear();
        }
        self.note_accesses(node, touched)?;
        Ok(new)
    }

    /// Walks a region among the nodes of another one, whose waves run in step.
    fn inner_region(&mut self, around: Entity, node: Entity, op: Op, touched: &mut TouchedLds) -> PassResult {
        if op.repeats() {
            self.iterate(node, touched)?;
            // After a pipeline's loop its iterations go on; elsewhere another loop counts its own.
            if !self.is_pipeline(around) {
                touched.map(|area| Area { ahead: None, ..area });
            }
            return Ok(());
        }
        // It may not run, and all waves of the workgroup take the same way.
        let before = touched.clone();
        self.region(node, touched)?;
        if let Op::Pipeline(_) = op {
            touched.map(|area| Area { ahead: None, ..area });
        }
        touched.join(&before);
        Ok(())
    }

    /// The kernel entity is a region as well, but not a node.
    fn is_pipeline(&self, region: Entity) -> bool {
        self.found.nodes.get(region).is_ok_and(|(op, ..)| matches!(op, Op::Pipeline(_)))
    }

    /// How many nodes at the end of these are controls.
    fn controls_before(&self, nodes: &[Entity]) -> Result<usize, Diagnostic> {
        let mut count = 0;
        for &node in nodes.iter().rev() {
            if self.new.contains(node) || !matches!(self.found.op(node)?, Op::Control(_)) {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    /// Walks a loop first with the accesses before it, then also with those that its iterations leave, until
    /// there are no new ones.
    fn iterate(&mut self, node: Entity, touched: &mut TouchedLds) -> PassResult {
        if let Some((before, after)) = self.walked.get(node)
            && before == touched
        {
            touched.clone_from(after);
            return Ok(());
        }
        let (before, placed) = (touched.clone(), self.placed);
        let mut entry = touched.clone();
        let per_trip = self.found.loops.get(node)?.unrolled.map_or(1, |unrolled| unrolled.0);
        loop {
            *touched = entry.clone();
            self.region(node, touched)?;
            touched.map(|area| area.next_trip(per_trip));
            if touched.is_subset(&entry) {
                break;
            }
            entry.join(touched);
        }
        // The loop may not run at all.
        *touched = entry;
        // With new barriers inside, the same walk may find less.
        if placed == self.placed {
            self.walked.insert(node, (before, touched.clone()));
        }
        Ok(())
    }

    fn out_of_step(&self, node: Entity) -> Diagnostic {
        let origin = self.found.nodes.get(node).ok().map(|(.., origin)| origin.0);
        let at = self.found.locations.iter().next().and_then(|all| all.get(origin?));
        let text = "waves that run out of step read and write this memory, and nothing orders them";
        Diagnostic::new(Kind::Limit, text).at(at).help("use a schedule whose waves run in step")
    }

    /// Adds everything that a loop touches, in any iteration, and that is not over after it.
    fn note_accesses(&self, node: Entity, touched: &mut TouchedLds) -> PassResult {
        let is_settled = self.found.loops.get(node)?.settled;
        let mut last = None;
        for &inner in &self.bodies.get(node)?.0 {
            let (&op, operands, _) = self.found.nodes.get(inner)?;
            if !op.is_access() || self.found.touches_as_before(inner, &mut last) {
                continue;
            }
            for (area, effect) in self.found.touches(inner, op, operands, &self.contended)? {
                // Schedules order accesses of LDS between their barriers, and know nothing of global memory.
                let is_fault = match area.space == AddressSpace::Global {
                    true => touched.hazard(&area, effect).is_some(),
                    false => self.found.is_mapped(inner),
                };
                if is_fault {
                    return Err(self.out_of_step(inner));
                }
                if !is_settled || area.space == AddressSpace::Global {
                    touched.add(Area { ahead: None, ..area }, effect);
                }
            }
        }
        Ok(())
    }
}

/// The logical accesses of a kernel.
#[derive(Default)]
struct LogicalAccesses {
    /// Nodes, each with a memory that it accesses.
    accesses: SmallVec<[(Entity, Entity); 16]>,
    /// Memories that something writes.
    written: NodeSet,
    /// Buffers that loads fill: only a barrier says that they have.
    loaded: NodeSet,
    /// How many nodes access each memory.
    nodes_of: NodeMap<u32>,
}
