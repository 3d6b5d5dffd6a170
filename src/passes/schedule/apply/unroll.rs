//! Unrolling: one trip of a loop becomes several iterations, and a loop after it runs the iterations that are
//! left.
//!
//! The body is repeated, and each copy begins with what the copy before it yields. Every node knows its
//! iteration, counted from the first of the trip, so that addresses and LDS copies follow from it; where the
//! number of LDS copies divides the number of iterations, a node uses the same copy in every trip. The number
//! of trips is rounded down. The loop after it is a copy of the original loop for the remaining iterations:
//! it takes over the carried values. In a pipeline it is a copy of the steady state, so the epilogue is not
//! affected.
//!
//! Trip counts, and how far ahead of the trip an access is, stay counted in iterations. So pipelining an
//! unrolled loop, unrolling the steady state of a pipeline, and unrolling again are the same operation.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::pipeline::take_results;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::ExprError;
use crate::ir::kernel::MAX_OPERATIONS;
use crate::ir::node::*;
use crate::ir::nodes::{self, Bug, NodeBundle};
use crate::ir::walk::{self, NodeList};
use crate::passes::facts::Expressions;
pub(crate) use crate::passes::facts::Rest;
use crate::passes::loops::expand::{Base, Expansion, Iteration};
use crate::passes::schedule::graph::view::{SchedulerView, Scheduling};
use crate::passes::schedule::graph::words::bug;

/// Why a loop is not unrolled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NotUnrolled {
    /// It has fewer iterations than one trip would have, and stays as it is.
    TooShort {
        /// Its trip count.
        count: i64,
    },
    /// The kernel is broken, or becomes too large.
    Fault(Diagnostic),
}

impl From<Bug> for NotUnrolled {
    fn from(bug: Bug) -> NotUnrolled {
        NotUnrolled::Fault(bug.into())
    }
}

impl From<Diagnostic> for NotUnrolled {
    fn from(fault: Diagnostic) -> NotUnrolled {
        NotUnrolled::Fault(fault)
    }
}

/// The copies of every node of a body, the first of which is the node itself.
pub(crate) type UnrolledCopies = FxHashMap<Entity, Vec<Entity>>;

/// Merges `factor` trips of the loop `node` in `region` into one. There must be no other loop in it.
///
/// # Errors
/// Why it is not unrolled; then nothing has changed, unless the kernel is broken.
pub(crate) fn unroll(
    kernel: &mut Scheduling,
    [region, node]: [Entity; 2],
    factor: u32,
) -> Result<UnrolledCopies, NotUnrolled> {
    let operations = kernel.view().body(node)?.len().saturating_mul(factor as usize);
    if operations > MAX_OPERATIONS {
        let text = format!("the loop would have {operations} operations, and {MAX_OPERATIONS} is the most");
        return Err(Diagnostic::new(Kind::Limit, text).help("unroll it less, or use smaller tiles").into());
    }
    let (world, root) = (&mut *kernel.world, kernel.root);
    let trip = *nodes::fact::<Trip>(world, node, "a loop without trip count")?;
    let before = Unrolled::of(world, node);
    let per_trip = before.saturating_mul(factor);
    let mut expressions = nodes::fact_mut::<Expressions>(world, root, "a kernel without expressions")?;
    let arena = &mut expressions.0;
    let whole = (|| {
        let count = arena.sub(trip.end, trip.start)?;
        let (zero, divisor) = (arena.int(0), arena.int(i64::from(per_trip)));
        // The trip count of a short loop, less what its pipeline takes, may be negative.
        let count = if arena.range(count).at_least(0) { count } else { arena.max(count, zero)? };
        let trips = arena.floor_div(count, divisor)?;
        let whole = arena.mul(trips, divisor)?;
        let rest = arena.sub(count, whole)?;
        Ok((arena.as_integer(count), arena.add(trip.start, whole)?, rest != zero))
    })();
    let (count, middle, left) =
        whole.map_err(|e: ExprError| bug(&format!("the trip count of an unrolled loop: {e}")))?;
    if let Some(count) = count.filter(|&count| count < i64::from(per_trip)) {
        return Err(NotUnrolled::TooShort { count });
    }
    if left {
        let rest = copy_loop(kernel, node, Trip { start: middle, end: trip.end })?;
        install_rest(kernel, region, node, rest)?;
    }
    let copies = repeat_body(kernel, node, before, factor)?;
    kernel.world.entity_mut(node).insert((Trip { start: trip.start, end: middle }, Unrolled(per_trip)));
    Ok(copies)
}

/// A node that is copied, apart from the world.
struct Original {
    entity: Entity,
    node: NodeBundle,
    expansion: Option<Expansion>,
}

impl Original {
    fn of(view: SchedulerView, node: Entity) -> Result<Original, Bug> {
        let seen = view.node(node)?;
        Ok(Original { entity: node, node: seen.bundle(), expansion: seen.expansion.copied() })
    }

    /// All nodes of a region.
    fn of_body(view: SchedulerView, region: Entity) -> Result<Vec<Original>, Bug> {
        view.body(region)?.iter().map(|&node| Original::of(view, node)).collect()
    }

    /// A copy with other operands.
    fn copy(&self, world: &mut World, operands: SmallVec<[Entity; 4]>) -> Entity {
        let copy = NodeBundle { operands: Operands(operands), ..self.node.clone() };
        match self.expansion {
            Some(expansion) => copy.spawn(world, expansion),
            None => copy.spawn(world, ()),
        }
    }
}

/// The values that stand for those of a body in a copy of it; values from outside stay the same.
fn renamed(values: &[Entity], names: &FxHashMap<Entity, Entity>) -> SmallVec<[Entity; 4]> {
    values.iter().map(|value| names.get(value).copied().unwrap_or(*value)).collect()
}

fn yields(world: &World, node: Entity) -> Result<SmallVec<[Entity; 4]>, Bug> {
    Ok(nodes::fact::<Yields>(world, node, "a loop that hands nothing on")?.0.clone())
}

/// The same loop for another trip count.
fn copy_loop(kernel: &mut Scheduling, node: Entity, trip: Trip) -> Result<Entity, Diagnostic> {
    let (own, originals) = (Original::of(kernel.view(), node)?, Original::of_body(kernel.view(), node)?);
    let world = &mut *kernel.world;
    let mut names = FxHashMap::default();
    let mut body = Vec::with_capacity(originals.len());
    for inner in &originals {
        let copy = inner.copy(world, renamed(&inner.node.operands.0, &names));
        names.insert(inner.entity, copy);
        body.push(copy);
    }
    let made = Yields(renamed(&yields(world, node)?, &names));
    let copy = own.copy(world, own.node.operands.0.clone());
    world.entity_mut(copy).insert((Body(body), made, trip, Rest));
    if let Some(&unrolled) = world.get::<Unrolled>(node) {
        world.entity_mut(copy).insert(unrolled);
    }
    Ok(copy)
}

/// Puts the loop `rest` after the loop `node`: it goes on with the values of `node`, and users of these now
/// use those of `rest`.
fn install_rest(
    kernel: &mut Scheduling,
    region: Entity,
    node: Entity,
    rest: Entity,
) -> Result<(), Diagnostic> {
    let mut nodes: NodeList = kernel.view().body(region)?.into();
    take_results(kernel, &nodes, node, rest)?;
    let mut news: SmallVec<[Entity; 64]> = SmallVec::new();
    for (number, value) in (0..).zip(yields(kernel.world, node)?) {
        let mut value = Original::of(kernel.view(), value)?;
        value.node.op = Op::LoopResult(number);
        news.push(value.copy(kernel.world, smallvec![node]));
    }
    kernel.world.entity_mut(rest).insert(Operands(SmallVec::from_slice(&news)));
    news.push(rest);
    let at = nodes.iter().position(|&n| n == node).ok_or_else(|| bug("a loop that its region lacks"))?;
    nodes.insert_many(at + 1, news);
    walk::set_body(kernel.world, region, &nodes);
    Ok(())
}

/// Repeats the body of a loop whose trips have `before` iterations each.
fn repeat_body(
    kernel: &mut Scheduling,
    node: Entity,
    before: u32,
    factor: u32,
) -> Result<UnrolledCopies, Diagnostic> {
    let old = Original::of_body(kernel.view(), node)?;
    let world = &mut *kernel.world;
    let mut body: Vec<Entity> = old.iter().map(|inner| inner.entity).collect();
    let mut copies: UnrolledCopies = body.iter().map(|&inner| (inner, vec![inner])).collect();
    let made = yields(world, node)?;
    // What a value of the first copy is in the last one so far.
    let mut names: FxHashMap<Entity, Entity> = FxHashMap::default();
    for copy in 1..factor {
        let carried = renamed(&made, &names);
        let mut next: FxHashMap<Entity, Entity> = FxHashMap::default();
        for inner in &old {
            if let Op::IterArg(number) = inner.node.op {
                let &value = carried.get(number as usize).ok_or_else(|| bug("a loop yields too little"))?;
                next.insert(inner.entity, value);
                continue;
            }
            let new = inner.copy(world, renamed(&inner.node.operands.0, &next));
            move_on(world, new, before, copy);
            next.insert(inner.entity, new);
            copies.entry(inner.entity).or_default().push(new);
            body.push(new);
        }
        names = next;
    }
    for inner in &old {
        move_on(world, inner.entity, before, 0);
    }
    let made = Yields(renamed(&made, &names));
    world.entity_mut(node).insert((Body(body), made));
    Ok(copies)
}

/// Moves a node to the iteration that is `copy` old trips, of `before` iterations each, later in the new
/// trip.
fn move_on(world: &mut World, node: Entity, before: u32, copy: u32) {
    let Some(mut expansion) = world.get_mut::<Expansion>(node) else { return };
    let Iteration { base, ahead } = expansion.iteration;
    let base = if base == Base::Written { Base::Trip } else { base };
    expansion.iteration = Iteration { base, ahead: ahead + copy * before };
    expansion.copy += copy * before;
}
