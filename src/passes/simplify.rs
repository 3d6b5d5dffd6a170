//! Cleaning up logical nodes: loop-invariant hoisting, common subexpressions, dead code. Three systems over the same small facts
//! about operations.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::{PassResult, kernel_entity};
use crate::ir::node::*;
use crate::ir::walk::{self, NodeList};

/// True for nodes without effects whose result depends on their operands alone.
fn is_pure(op: &Op) -> bool {
    match op {
        Op::Register(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select
        | Op::Cast
        | Op::Mma(_) => true,
        Op::Memory
        | Op::Allocate
        | Op::Read
        | Op::Write
        | Op::GlobalToShared
        | Op::Iterate(_)
        | Op::Pipeline(_)
        | Op::IterArg(_)
        | Op::LoopResult(_)
        | Op::Barrier
        | Op::Control(_) => false,
    }
}

/// Memories that some node of the kernel writes.
fn written(world: &World, root: Entity) -> NodeList {
    walk::nodes(world, root)
        .into_iter()
        .filter(|&n| world.get::<Op>(n) == Some(&Op::Write))
        .filter_map(|n| world.get::<Operands>(n).map(|o| o.0[1]))
        .collect()
}

/// A read of a memory that nothing writes is as good as pure.
fn is_repeatable(world: &World, node: Entity, written: &[Entity]) -> bool {
    let Some(op) = world.get::<Op>(node) else { return false };
    is_pure(op)
        || (*op == Op::Read && world.get::<Operands>(node).is_some_and(|o| !written.contains(&o.0[0])))
}

/// Moves nodes out of loops whose operands are all outside and whose tile does not change from iteration to iteration.
pub fn hoist_invariants(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let written = written(world, root);
    let regions = walk::regions(world, root);
    // Inner loops first, so that what leaves an inner loop can leave the outer one, too.
    for &parent in regions.iter().rev() {
        let mut out = NodeList::new();
        for node in walk::body(world, parent) {
            if let Some(&Op::Iterate(axis)) = world.get::<Op>(node) {
                let inner = walk::body(world, node);
                let mut inside = inner.clone();
                let mut stay = NodeList::new();
                for candidate in inner {
                    let moves = is_repeatable(world, candidate, &written)
                        && world
                            .get::<Operands>(candidate)
                            .is_some_and(|o| o.0.iter().all(|operand| !inside.contains(operand)))
                        && world.get::<ValueType>(candidate).is_some_and(|t| !t.dims.contains(&axis));
                    if moves {
                        inside.retain(|n| *n != candidate);
                        out.push(candidate);
                    } else {
                        stay.push(candidate);
                    }
                }
                walk::set_body(world, node, &stay);
            }
            out.push(node);
        }
        walk::set_body(world, parent, &out);
    }
    Ok(())
}

/// Merges nodes of one region that compute the same value.
pub fn merge_common(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let written = written(world, root);
    let mut replaced: Vec<(Entity, Entity)> = Vec::new();
    for region in walk::regions(world, root) {
        let mut kept = NodeList::new();
        for node in walk::body(world, region) {
            rename(world, node, &replaced);
            let twin = is_repeatable(world, node, &written)
                .then(|| kept.iter().copied().find(|&other| same_value(world, node, other)))
                .flatten();
            match twin {
                Some(twin) => replaced.push((node, twin)),
                None => kept.push(node),
            }
        }
        walk::set_body(world, region, &kept);
    }
    for node in walk::nodes(world, root) {
        rename(world, node, &replaced);
    }
    Ok(())
}

/// Equal operations; constants bit by bit, because -0.0 equals 0.0 and is another value.
fn same_op(a: Option<&Op>, b: Option<&Op>) -> bool {
    match (a, b) {
        (Some(Op::Register(Constant::Float(a))), Some(Op::Register(Constant::Float(b)))) => {
            a.to_bits() == b.to_bits()
        }
        _ => a == b,
    }
}

fn same_value(world: &World, a: Entity, b: Entity) -> bool {
    same_op(world.get::<Op>(a), world.get::<Op>(b))
        && world.get::<Operands>(a) == world.get::<Operands>(b)
        && world.get::<ValueType>(a) == world.get::<ValueType>(b)
        && world.get::<Tag>(a) == world.get::<Tag>(b)
}

fn rename(world: &mut World, node: Entity, replaced: &[(Entity, Entity)]) {
    let fix = |entity: &mut Entity| {
        if let Some(&(_, new)) = replaced.iter().find(|r| r.0 == *entity) {
            *entity = new;
        }
    };
    if let Some(mut operands) = world.get_mut::<Operands>(node)
        && operands.0.iter().any(|o| replaced.iter().any(|r| r.0 == *o))
    {
        operands.0.iter_mut().for_each(fix);
    }
    if let Some(mut yields) = world.get_mut::<Yields>(node)
        && yields.0.iter().any(|o| replaced.iter().any(|r| r.0 == *o))
    {
        yields.0.iter_mut().for_each(fix);
    }
}

/// Drops nodes that no effect depends on, and carried values that nothing depends on but what they become.
pub fn remove_dead(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let regions = walk::regions(world, root);
    let order = walk::nodes(world, root);
    let size = order.iter().map(|n| n.index_u32() as usize + 1).max().unwrap_or(0);
    let mut uses =
        Uses { region_of: smallvec![root; size], live: smallvec![false; size], pending: NodeList::new() };
    for &region in &regions {
        for &node in world.get::<Body>(region).map(|b| &b.0[..]).unwrap_or_default() {
            uses.region_of[node.index_u32() as usize] = region;
            let op = world.get::<Op>(node);
            if matches!(op, Some(Op::Write | Op::Barrier | Op::Control(_) | Op::Memory)) {
                uses.note(node);
            }
        }
    }
    uses.follow(world, root);
    renumber_carried(world, &regions, &order, &uses);
    for &region in &regions {
        let body = walk::body(world, region);
        if let Some(mut init) = world.get_mut::<Operands>(region) {
            uses.retain_carried(&body, &mut init.0);
        }
        if let Some(mut yields) = world.get_mut::<Yields>(region) {
            uses.retain_carried(&body, &mut yields.0);
        }
        let kept: NodeList = body.into_iter().filter(|&n| uses.is_live(n)).collect();
        walk::set_body(world, region, &kept);
    }
    Ok(())
}

/// What effects depend on.
struct Uses {
    /// The region that each node stands in, by entity index.
    region_of: SmallVec<[Entity; 256]>,
    live: SmallVec<[bool; 256]>,
    /// Nodes whose operands are still to be noted.
    pending: NodeList,
}

impl Uses {
    fn is_live(&self, node: Entity) -> bool {
        self.live[node.index_u32() as usize]
    }

    fn note(&mut self, node: Entity) {
        if !std::mem::replace(&mut self.live[node.index_u32() as usize], true) {
            self.pending.push(node);
        }
    }

    /// Notes everything that the noted nodes depend on.
    fn follow(&mut self, world: &World, root: Entity) {
        while let Some(node) = self.pending.pop() {
            let region = self.region_of[node.index_u32() as usize];
            if region != root {
                self.note(region);
            }
            let operands = world.get::<Operands>(node).map(|o| &o.0[..]).unwrap_or_default();
            match (world.get::<Op>(node), operands) {
                (Some(&Op::IterArg(number)), _) => self.carried(world, region, number),
                (Some(&Op::LoopResult(number)), &[owner]) => {
                    self.note(owner);
                    self.carried(world, owner, number);
                }
                // Its initial values are noted with what they become.
                (Some(Op::Iterate(_) | Op::Pipeline(_)), _) => {}
                _ => operands.iter().for_each(|&used| self.note(used)),
            }
        }
    }

    /// Notes a carried value: what it starts with, what it is in the body, and what the body makes of it.
    fn carried(&mut self, world: &World, owner: Entity, number: u32) {
        let at = number as usize;
        let init = world.get::<Operands>(owner).and_then(|o| o.0.get(at));
        let argument = world.get::<Body>(owner).and_then(|b| b.0.get(at));
        let next = world.get::<Yields>(owner).and_then(|y| y.0.get(at));
        [init, argument, next].into_iter().flatten().for_each(|&node| self.note(node));
    }

    /// Keeps the parts of a list of carried values whose arguments, which a loop's body begins with, are used.
    fn retain_carried(&self, body: &[Entity], values: &mut SmallVec<[Entity; 4]>) {
        let mut arguments = body.iter();
        values.retain(|_| arguments.next().is_some_and(|&argument| self.is_live(argument)));
    }
}

/// Numbers the carried values that are left anew, in the bodies of their loops and behind these.
fn renumber_carried(world: &mut World, regions: &[Entity], order: &[Entity], uses: &Uses) {
    for &region in regions {
        let mut number = 0;
        for node in walk::body(world, region).into_iter().filter(|&node| uses.is_live(node)) {
            let Some(mut op) = world.get_mut::<Op>(node).filter(|op| matches!(**op, Op::IterArg(_))) else {
                break;
            };
            *op = Op::IterArg(number);
            number += 1;
        }
    }
    for &node in order.iter().filter(|&&node| uses.is_live(node)) {
        if let Some(&Op::LoopResult(number)) = world.get::<Op>(node)
            && let Some(owner) = world.get::<Operands>(node).and_then(|o| o.0.first())
            && let Some(argument) = world.get::<Body>(*owner).and_then(|b| b.0.get(number as usize))
            && let Some(&Op::IterArg(new)) = world.get::<Op>(*argument)
        {
            world.entity_mut(node).insert(Op::LoopResult(new));
        }
    }
}
