//! Cleaning up logical nodes: loop-invariant hoisting, common subexpressions, dead code. Three systems over the same small facts
//! about operations.

use std::hash::{Hash, Hasher};

use bevy_ecs::prelude::*;
use rustc_hash::FxHasher;
use smallvec::{SmallVec, smallvec};

use super::{PassResult, kernel_entity};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::InternTable;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::op::Purity;
use crate::ir::walk::{self, NodeList};

/// Memories that some node of the kernel writes.
fn written(world: &World, root: Entity) -> NodeSet {
    walk::nodes(world, root)
        .into_iter()
        .filter(|&n| world.get::<Op>(n) == Some(&Op::Write))
        .filter_map(|n| world.get::<Operands>(n).map(|o| o.0[1]))
        .collect()
}

/// A read of a memory that nothing writes is as good as pure.
fn is_repeatable(world: &World, node: Entity, written: &NodeSet) -> bool {
    let Some(op) = world.get::<Op>(node) else { return false };
    match op.row().purity {
        Purity::Pure => true,
        Purity::OfMemory => world.get::<Operands>(node).is_some_and(|o| !written.contains(o.0[0])),
        Purity::Unmoved | Purity::Effect => false,
    }
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
                let mut inside: NodeSet = inner.iter().copied().collect();
                let mut stay = NodeList::new();
                for candidate in inner {
                    let moves = is_repeatable(world, candidate, &written)
                        && world
                            .get::<Operands>(candidate)
                            .is_some_and(|o| o.0.iter().all(|&operand| !inside.contains(operand)))
                        && world.get::<ValueType>(candidate).is_some_and(|t| !t.dims.contains(&axis));
                    if moves {
                        inside.remove(candidate);
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
    merge_counted(world).map(drop)
}

/// [`merge_common`], and how often it compared two nodes.
pub(crate) fn merge_counted(world: &mut World) -> Result<usize, Diagnostic> {
    let root = kernel_entity(world)?;
    let written = written(world, root);
    let mut merger = Merger::default();
    for region in walk::regions(world, root) {
        let first = merger.values.len() as u32;
        let mut kept = NodeList::new();
        for node in walk::body(world, region) {
            merger.rename(world, node);
            if !is_repeatable(world, node, &written) || !merger.merge(world, node, first) {
                kept.push(node);
            }
        }
        walk::set_body(world, region, &kept);
    }
    for node in walk::nodes(world, root) {
        merger.rename(world, node);
    }
    Ok(merger.compared)
}

/// Values that have been seen, and what has been merged with them.
#[derive(Default)]
struct Merger {
    /// Nodes that compute a value for the first time in their region, region by region, and where each is by its hash.
    values: SmallVec<[Entity; 64]>,
    table: InternTable,
    /// Merged nodes, and which node each of them is now.
    replaced: NodeMap<Entity>,
    /// How often two nodes were compared.
    compared: usize,
}

impl Merger {
    /// Enters a value, or merges it with an equal one of its region, whose values begin at `first`.
    fn merge(&mut self, world: &World, node: Entity, first: u32) -> bool {
        let hash = hash_value(world, node, first);
        let twin = self.table.find(hash, |at| {
            self.compared += 1;
            at >= first && same_value(world, node, self.values[at as usize])
        });
        match twin {
            Some(twin) => self.replaced.insert(node, self.values[twin as usize]),
            None => {
                self.table.insert(hash, self.values.len() as u32);
                self.values.push(node);
            }
        }
        twin.is_some()
    }

    /// Lets a node use what its operands were merged with.
    fn rename(&self, world: &mut World, node: Entity) {
        if self.replaced.is_empty() {
            return;
        }
        let is_replaced = |used: &Entity| self.replaced.get(*used).is_some();
        let replace = |used: &mut Entity| *used = self.replaced.get(*used).copied().unwrap_or(*used);
        if let Some(mut operands) = world.get_mut::<Operands>(node)
            && operands.0.iter().any(is_replaced)
        {
            operands.0.iter_mut().for_each(replace);
        }
        if let Some(mut yields) = world.get_mut::<Yields>(node)
            && yields.0.iter().any(is_replaced)
        {
            yields.0.iter_mut().for_each(replace);
        }
    }
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

/// A hash of what [`same_value`] compares, and of the region.
fn hash_value(world: &World, node: Entity, region: u32) -> u32 {
    let mut hasher = FxHasher::default();
    region.hash(&mut hasher);
    if let Some(op) = world.get::<Op>(node) {
        std::mem::discriminant(op).hash(&mut hasher);
        match op {
            Op::Register(Constant::Float(value)) => value.to_bits().hash(&mut hasher),
            Op::Register(Constant::Integer(value)) => value.hash(&mut hasher),
            Op::Unary(op) => op.hash(&mut hasher),
            Op::Binary(op) => op.hash(&mut hasher),
            Op::Convert(op) => op.hash(&mut hasher),
            Op::Compare(predicate) => predicate.hash(&mut hasher),
            // What else there is to them is compared.
            Op::Memory | Op::Scalar | Op::Allocate => {}
            Op::Read | Op::Write | Op::GlobalToShared | Op::Mma(_) => {}
            Op::Iterate(_) | Op::Pipeline(_) | Op::IterArg(_) | Op::LoopResult(_) => {}
            Op::Select | Op::Barrier | Op::Control(_) => {}
        }
    }
    if let Some(operands) = world.get::<Operands>(node) {
        operands.0.iter().for_each(|operand| operand.index_u32().hash(&mut hasher));
    }
    if let Some(ty) = world.get::<ValueType>(node) {
        ty.dtype.hash(&mut hasher);
        ty.dims.iter().for_each(|dim| dim.0.hash(&mut hasher));
    }
    if let Some(tag) = world.get::<Tag>(node) {
        tag.0.hash(&mut hasher);
    }
    hasher.finish() as u32
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
            if op.is_some_and(|op| op.row().purity == Purity::Effect) {
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

/// Numbers the carried values that are left anew, in the bodies of their loops and after these.
fn renumber_carried(world: &mut World, regions: &[Entity], order: &[Entity], uses: &Uses) {
    for &region in regions {
        let left = walk::body(world, region).into_iter().filter(|&node| uses.is_live(node));
        for (number, node) in (0..).zip(left) {
            let Some(mut op) = world.get_mut::<Op>(node).filter(|op| matches!(**op, Op::IterArg(_))) else {
                break;
            };
            *op = Op::IterArg(number);
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
