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

/// Drops nodes that no effect depends on.
pub fn remove_dead(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let order = walk::nodes(world, root);
    let size = order.iter().map(|n| n.index_u32() as usize + 1).max().unwrap_or(0);
    let mut live: SmallVec<[bool; 256]> = smallvec![false; size];
    // Carried values make uses point backwards, so sweep until nothing changes; nests are shallow and so are the sweeps.
    loop {
        let mut changed = false;
        for &node in order.iter().rev() {
            let Some(op) = world.get::<Op>(node) else { continue };
            let effect = matches!(op, Op::Write | Op::Barrier | Op::Control(_) | Op::Memory)
                || world
                    .get::<Body>(node)
                    .is_some_and(|body| body.0.iter().any(|n| live[n.index_u32() as usize]));
            if !effect && !live[node.index_u32() as usize] {
                continue;
            }
            changed |= !std::mem::replace(&mut live[node.index_u32() as usize], true);
            let operands = world.get::<Operands>(node).map(|o| &o.0[..]).unwrap_or_default();
            let yields = world.get::<Yields>(node).map(|y| &y.0[..]).unwrap_or_default();
            for used in operands.iter().chain(yields) {
                changed |= !std::mem::replace(&mut live[used.index_u32() as usize], true);
            }
        }
        if !changed {
            break;
        }
    }
    for region in walk::regions(world, root) {
        // A loop keeps all its carried values, used or not: their numbers are positions.
        let keep =
            |n: &Entity| live[n.index_u32() as usize] || matches!(world.get::<Op>(*n), Some(Op::IterArg(_)));
        let kept: NodeList = walk::body(world, region).into_iter().filter(keep).collect();
        walk::set_body(world, region, &kept);
    }
    Ok(())
}
