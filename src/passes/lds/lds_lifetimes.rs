//! When LDS buffers hold data: buffers that never do at the same time can share memory.
//!
//! Positions count the nodes of a kernel in program order. A buffer lives from its first to its last access,
//! in as many spans as there are regions after one another that fill it anew before they read it. In a loop
//! it lives for as long as each iteration needs it if none reads what another one has left, and otherwise for
//! the whole loop. What a pipeline's loops find in a buffer comes from the iterations before, whatever their
//! first access is, so it lives for the whole loop.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::node::Op;
use crate::ir::node_map::NodeMap;
use crate::ir::op::OpClass;

/// How finely lifetimes are distinguished.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Grain {
    /// A buffer that an outermost loop uses lives as long as that loop.
    Loops,
    /// A buffer that an innermost loop uses lives as long as that loop.
    InnermostLoops,
    /// A buffer that each iteration fills anew lives from its first to its last access.
    Accesses,
}

/// First and last position of a time in which a buffer holds data.
pub(crate) type LdsSpan = [u32; 2];

/// Spans of a buffer, in their order.
pub(crate) type LdsSpans = SmallVec<[LdsSpan; 2]>;

/// Where the lifetimes of a kernel come from.
pub(crate) trait LdsProgram {
    /// What it fails with.
    type Fault;

    /// The nodes of a region.
    fn body(&self, region: Entity) -> Result<&[Entity], Self::Fault>;

    /// What a node does, and the LDS buffer that it accesses.
    fn look(&self, node: Entity) -> Result<(Op, Option<Entity>), Self::Fault>;

    /// True if an access is at coordinates, so that it fills only some of its buffer.
    fn is_mapped(&self, access: Entity) -> bool;

    /// True if a loop is known to have a trip.
    fn surely_runs(&self, looped: Entity) -> bool;
}

/// What becomes of what a buffer holds when something begins that accesses it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Before {
    /// It is overwritten.
    Overwritten,
    /// It is overwritten before it is read, if anything happens at all.
    Unread,
    /// It may be read.
    Read,
}

impl Before {
    /// That of this and then `later`.
    fn then(self, later: Before) -> Before {
        match (self, later) {
            (Before::Unread, Before::Read) => Before::Read,
            _ => self,
        }
    }
}

/// When a buffer holds data, as far as it was followed.
#[derive(Clone, Debug)]
struct Lifetime {
    spans: LdsSpans,
    /// From when to when it holds what something reads later that does not fill it: in a loop of which some
    /// iteration may leave it as it is, as long as the loop.
    kept: LdsSpan,
    before: Before,
}

/// One per buffer.
type Lifetimes = NodeMap<Lifetime>;

/// The lifetimes of the buffers of a kernel.
#[derive(Debug)]
pub(crate) struct LdsLifetimes {
    /// The spans of each buffer that is accessed.
    pub spans: NodeMap<LdsSpans>,
    /// The number of positions.
    pub positions: u32,
}

impl LdsLifetimes {
    /// Those of the kernel `root`.
    ///
    /// # Errors
    /// As the program's.
    pub(crate) fn of<P: LdsProgram>(
        program: &P,
        root: Entity,
        grain: Grain,
    ) -> Result<LdsLifetimes, P::Fault> {
        let mut walk = LifetimeWalk { program, grain, clock: 0, spare: Vec::new() };
        let mut found = Lifetimes::default();
        walk.region(root, Enclosing::Other, &mut found)?;
        let mut spans = NodeMap::default();
        for (buffer, life) in found.iter() {
            spans.insert(buffer, life.spans.clone());
        }
        Ok(LdsLifetimes { spans, positions: walk.clock + 1 })
    }
}

/// What a region stands in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Enclosing {
    /// A pipeline: its loops go on with what iterations before them have left in LDS.
    Pipeline,
    /// Anything else.
    Other,
}

/// A walk through a kernel that finds lifetimes.
struct LifetimeWalk<'a, P> {
    program: &'a P,
    grain: Grain,
    /// Counts positions.
    clock: u32,
    /// Memory for the lifetimes in inner regions.
    spare: Vec<Lifetimes>,
}

impl<P: LdsProgram> LifetimeWalk<'_, P> {
    /// Adds the lifetimes of the buffers that a region uses; true if there is a loop in it.
    fn region(&mut self, region: Entity, around: Enclosing, found: &mut Lifetimes) -> Result<bool, P::Fault> {
        let program = self.program;
        let mut has_loops = false;
        for &node in program.body(region)? {
            self.clock += 1;
            let (op, buffer) = program.look(node)?;
            if let Some(buffer) = buffer {
                let before = match op.is_write() && !program.is_mapped(node) {
                    true => Before::Overwritten,
                    false => Before::Read,
                };
                let kept = [self.clock; 2];
                add(found, buffer, Lifetime { spans: smallvec![kept], kept, before }, Filling::Piece);
            }
            if op.row().class != OpClass::Region {
                continue;
            }
            let begin = self.clock;
            let mut inner = self.spare.pop().unwrap_or_default();
            let inside = if let Op::Pipeline(_) = op { Enclosing::Pipeline } else { Enclosing::Other };
            let holds_loops = self.region(node, inside, &mut inner)?;
            self.clock += 1;
            has_loops |= holds_loops || !matches!(op, Op::Conditional);
            let runs = matches!(op, Op::Iterate(_)) && program.surely_runs(node);
            let region = InnerRegion { op, around, holds_loops, runs };
            for (buffer, life) in inner.iter() {
                let life = self.outside(region, life.clone(), [begin, self.clock]);
                add(found, buffer, life, Filling::Region);
            }
            inner.truncate(0);
            self.spare.push(inner);
        }
        Ok(has_loops)
    }

    /// The lifetime of a buffer in a region as what is around that region sees it.
    fn outside(&self, region: InnerRegion, mut life: Lifetime, whole: LdsSpan) -> Lifetime {
        let InnerRegion { op, around, holds_loops, runs } = region;
        let repeats = op.repeats();
        if repeats && around == Enclosing::Pipeline {
            life.before = Before::Read;
        }
        let is_whole = match self.grain {
            Grain::Loops => true,
            Grain::InnermostLoops => !holds_loops,
            Grain::Accesses => false,
        };
        if is_whole || (repeats && life.before == Before::Read) {
            life.spans = smallvec![whole];
        }
        if is_whole || (repeats && life.before != Before::Overwritten) {
            life.kept = whole;
        }
        if life.before == Before::Overwritten && !runs {
            life.before = Before::Unread;
        }
        life
    }
}

/// A region in another one.
#[derive(Copy, Clone)]
struct InnerRegion {
    op: Op,
    around: Enclosing,
    /// True if there are loops in it.
    holds_loops: bool,
    /// True if it is known to run; a pipeline also needs iterations enough.
    runs: bool,
}

/// How much of a buffer something writes that overwrites it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Filling {
    /// Some of it: other accesses do the rest.
    Piece,
    /// All that is read of it afterwards.
    Region,
}

/// Adds what comes later of a buffer's life. Between two spans a buffer holds nothing, so that what may read
/// it makes one of all before.
fn add(found: &mut Lifetimes, buffer: Entity, later: Lifetime, filling: Filling) {
    let Some(known) = found.get_mut(buffer) else {
        found.insert(buffer, later);
        return;
    };
    known.before = known.before.then(later.before);
    known.kept[1] = later.kept[1];
    match filling == Filling::Region && later.before != Before::Read {
        true => known.spans.extend(later.spans),
        false => known.spans = smallvec![known.kept],
    }
}
