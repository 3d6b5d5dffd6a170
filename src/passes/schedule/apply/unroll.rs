//! Unrolling: one trip of a loop becomes several iterations, and a loop after it runs the iterations that are
//! left.
//!
//! The body is repeated, and each copy begins with what the copy before it yields. Every node knows its
//! iteration, counted from the first of the trip, so that addresses and LDS copies follow from it; where the
//! number of LDS copies divides the number of iterations, a node uses the same copy in every trip. The number
//! of trips is rounded down. The loop after it is a copy of the original loop for the remaining iterations:
//! it takes over the carried values. In a pipeline it is a copy of the steady state, so the epilogue is not
//! affected.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::ExprError;
use crate::ir::kernel::MAX_OPERATIONS;
use crate::ir::node::*;
use crate::ir::walk;
use crate::passes::expand::{Base, Expansion, Iteration};
use crate::passes::facts::Expressions;
pub(crate) use crate::passes::facts::Rest;
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

impl From<Diagnostic> for NotUnrolled {
    fn from(fault: Diagnostic) -> NotUnrolled {
        NotUnrolled::Fault(fault)
    }
}

/// The copies of every node of a body, the first of which is the node itself.
pub(crate) type NodeCopies = FxHashMap<Entity, Vec<Entity>>;

/// Merges `factor` trips of the loop `node` in `region` into one. There must be no other loop in it.
///
/// # Errors
/// Why it is not unrolled; then nothing has changed, unless the kernel is broken.
pub(crate) fn unroll(
    world: &mut World,
    root: Entity,
    [region, node]: [Entity; 2],
    factor: u32,
) -> Result<NodeCopies, NotUnrolled> {
    let operations = walk::body(world, node).len().saturating_mul(factor as usize);
    if operations > MAX_OPERATIONS {
        let text = format!("the loop would have {operations} operations, and {MAX_OPERATIONS} is the most");
        return Err(Diagnostic::new(Kind::Limit, text).help("unroll it less, or use smaller tiles").into());
    }
    let trip = *world.get::<Trip>(node).ok_or_else(|| bug("a loop without trip count"))?;
    let before = Unrolled::of(world, node);
    let per_trip = before.saturating_mul(factor);
    let mut expressions = world.get_mut::<Expressions>(root).ok_or_else(|| bug("no expressions"))?;
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
        let rest = copy_loop(world, node, Trip { start: middle, end: trip.end })?;
        install_rest(world, region, node, rest)?;
    }
    let copies = repeat_body(world, node, before, factor)?;
    world.entity_mut(node).insert((Trip { start: trip.start, end: middle }, Unrolled(per_trip)));
    Ok(copies)
}

/// A copy of one node with other operands.
fn copy_node(world: &mut World, node: Entity, operands: Operands) -> Result<Entity, Diagnostic> {
    let op = *world.get::<Op>(node).ok_or_else(|| bug("a node without operation"))?;
    let ty = world.get::<ValueType>(node).cloned().unwrap_or_else(ValueType::unknown);
    let origin = world.get::<Origin>(node).copied().unwrap_or(Origin(u32::MAX));
    let expansion = world.get::<Expansion>(node).copied();
    let mut copy = world.spawn((op, operands, ty, origin));
    if let Some(expansion) = expansion {
        copy.insert(expansion);
    }
    Ok(copy.id())
}

/// The values that stand for those of a body in a copy of it; values from outside stay the same.
fn renamed(values: &[Entity], names: &FxHashMap<Entity, Entity>) -> SmallVec<[Entity; 4]> {
    values.iter().map(|value| names.get(value).copied().unwrap_or(*value)).collect()
}

fn operands(world: &World, node: Entity) -> SmallVec<[Entity; 4]> {
    world.get::<Operands>(node).map(|o| o.0.clone()).unwrap_or_default()
}

fn yields(world: &World, node: Entity) -> SmallVec<[Entity; 4]> {
    world.get::<Yields>(node).map(|y| y.0.clone()).unwrap_or_default()
}

/// The same loop for another trip count.
fn copy_loop(world: &mut World, node: Entity, trip: Trip) -> Result<Entity, Diagnostic> {
    let mut names = FxHashMap::default();
    let mut body = Vec::new();
    for inner in walk::body(world, node) {
        let copy = copy_node(world, inner, Operands(renamed(&operands(world, inner), &names)))?;
        names.insert(inner, copy);
        body.push(copy);
    }
    let made = Yields(renamed(&yields(world, node), &names));
    let copy = copy_node(world, node, Operands(operands(world, node)))?;
    world.entity_mut(copy).insert((Body(body), made, trip, Rest));
    if let Some(&unrolled) = world.get::<Unrolled>(node) {
        world.entity_mut(copy).insert(unrolled);
    }
    Ok(copy)
}

/// Puts the loop `rest` after the loop `node`: it goes on with the values of `node`, and users of these now
/// use those of `rest`.
fn install_rest(world: &mut World, region: Entity, node: Entity, rest: Entity) -> Result<(), Diagnostic> {
    let body = walk::body(world, region);
    for &other in &body {
        if matches!(world.get::<Op>(other), Some(Op::LoopResult(_)))
            && let Some(mut of) = world.get_mut::<Operands>(other)
        {
            of.0.iter_mut().filter(|o| **o == node).for_each(|o| *o = rest);
        }
    }
    let mut news: SmallVec<[Entity; 64]> = SmallVec::new();
    for (number, value) in yields(world, node).into_iter().enumerate() {
        let result = copy_node(world, value, Operands(smallvec![node]))?;
        world.entity_mut(result).insert(Op::LoopResult(number as u32));
        news.push(result);
    }
    world.entity_mut(rest).insert(Operands(SmallVec::from_slice(&news)));
    news.push(rest);
    let at = body.iter().position(|&n| n == node).ok_or_else(|| bug("a loop that its region lacks"))?;
    let mut nodes = body;
    nodes.insert_many(at + 1, news);
    walk::set_body(world, region, &nodes);
    Ok(())
}

/// Repeats the body of a loop whose trips have `before` iterations each.
fn repeat_body(world: &mut World, node: Entity, before: u32, factor: u32) -> Result<NodeCopies, Diagnostic> {
    let old = walk::body(world, node);
    let mut body = old.to_vec();
    let mut copies: NodeCopies = old.iter().map(|&inner| (inner, vec![inner])).collect();
    let made = yields(world, node);
    // The value in the latest copy that stands for a value of the first one.
    let mut names: FxHashMap<Entity, Entity> = FxHashMap::default();
    for copy in 1..factor {
        let carried = renamed(&made, &names);
        let mut next: FxHashMap<Entity, Entity> = FxHashMap::default();
        for &inner in &old {
            if let Some(&Op::IterArg(number)) = world.get::<Op>(inner) {
                let &value = carried.get(number as usize).ok_or_else(|| bug("a loop yields too little"))?;
                next.insert(inner, value);
                continue;
            }
            let new = copy_node(world, inner, Operands(renamed(&operands(world, inner), &next)))?;
            move_on(world, new, before, copy);
            next.insert(inner, new);
            copies.entry(inner).or_default().push(new);
            body.push(new);
        }
        names = next;
    }
    for &inner in &old {
        move_on(world, inner, before, 0);
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
