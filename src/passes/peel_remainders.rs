//! Remainders: a loop over a dimension that its tile does not divide becomes a loop over the whole tiles and, behind it, a copy that
//! runs at most once for the rest. Only the copy has to mask; the steady state stays as clean as for a dividing shape.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::bind_symbols::bug;
use super::facts::{Expressions, Geometry, Remainder};
use super::{PassResult, kernel_entity};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::{Locations, MAX_OPERATIONS};
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::walk::{self, NodeList};

/// The pass; see the module.
pub fn peel_remainders(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let mut peeler = Peeler { root, users: None, copies: NodeMap::default(), copied: 0 };
    // Inner loops first: the copy of an outer loop has their copies too.
    for region in walk::regions(world, root).into_iter().rev() {
        peeler.region(world, region)?;
    }
    Ok(())
}

struct Peeler {
    root: Entity,
    /// Who uses each result of a loop; found when a loop is peeled for the first time.
    users: Option<NodeMap<SmallVec<[Entity; 2]>>>,
    /// The copies of the nodes in the loop that is being copied.
    copies: NodeMap<Entity>,
    /// Nodes copied so far.
    copied: usize,
}

/// What replaces the results of a peeled loop, and the nodes that come right after it.
struct Peeled {
    results: SmallVec<[Entity; 4]>,
    behind: Vec<Entity>,
}

impl Peeler {
    /// Peels the loops of a region, the last one first, and puts what they become into its body.
    fn region(&mut self, world: &mut World, region: Entity) -> PassResult {
        let body = walk::body(world, region);
        let is_loop = |node: &Entity| matches!(world.get::<Op>(*node), Some(Op::Iterate(_)));
        let loops: SmallVec<[Entity; 4]> = body.iter().copied().filter(is_loop).collect();
        if loops.is_empty() {
            return Ok(());
        }
        let mut results: NodeMap<SmallVec<[Entity; 4]>> = NodeMap::default();
        loops.iter().for_each(|&node| results.insert(node, SmallVec::new()));
        for &node in &body {
            if let (Some(Op::LoopResult(_)), Some(operands)) =
                (world.get::<Op>(node), world.get::<Operands>(node))
                && let Some(of_loop) = results.get_mut(operands.0[0])
            {
                of_loop.push(node);
            }
        }
        let mut moved = NodeSet::default();
        let mut peeled: NodeMap<Vec<Entity>> = NodeMap::default();
        for &node in loops.iter().rev() {
            let own = results.get(node).cloned().unwrap_or_default();
            if let Some(Peeled { results, behind }) = self.peel(world, node, own)? {
                results.into_iter().for_each(|result| moved.insert(result));
                peeled.insert(node, behind);
            }
        }
        if peeled.is_empty() {
            return Ok(());
        }
        let mut new = NodeList::new();
        for node in body.into_iter().filter(|&node| !moved.contains(node)) {
            new.push(node);
            new.extend_from_slice(peeled.get(node).map(|behind| &behind[..]).unwrap_or_default());
        }
        walk::set_body(world, region, &new);
        Ok(())
    }

    fn peel(
        &mut self,
        world: &mut World,
        node: Entity,
        results: SmallVec<[Entity; 4]>,
    ) -> Result<Option<Peeled>, Diagnostic> {
        let Some(&Op::Iterate(axis)) = world.get::<Op>(node) else { return Ok(None) };
        let Some(geometry) = world.get::<Geometry>(self.root) else { return Ok(None) };
        let (size, tile) = (geometry.dim(axis).size, geometry.dim(axis).tiling.unwrap_or(1));
        let Some(mut expressions) = world.get_mut::<Expressions>(self.root) else { return Ok(None) };
        let arena = &mut expressions.0;
        let zero = arena.int(0);
        let tile = arena.int(i64::from(tile));
        let whole = arena.floor_div(size, tile).map_err(|e| bug(&e))?;
        let total = arena.ceil_div(size, tile).map_err(|e| bug(&e))?;
        if whole == total {
            world.entity_mut(node).insert(Trip { start: zero, end: total });
            return Ok(None);
        }
        if whole == zero {
            world.entity_mut(node).insert((Trip { start: zero, end: total }, Remainder));
            return Ok(None);
        }
        world.entity_mut(node).insert(Trip { start: zero, end: whole });
        let copy = self.copy_loop(world, node)?;
        world.entity_mut(copy).insert((Trip { start: whole, end: total }, Remainder));
        Ok(Some(self.join(world, node, copy, results)))
    }

    /// Lets `copy` start from the results of the loop `node`, and everybody else take its results.
    fn join(
        &mut self,
        world: &mut World,
        node: Entity,
        copy: Entity,
        results: SmallVec<[Entity; 4]>,
    ) -> Peeled {
        // Every carried value needs a result, used or not: the copy continues all of them.
        let count = world.get::<Operands>(node).map_or(0, |o| o.0.len());
        let mut first: Vec<Option<Entity>> = vec![None; count];
        for &result in &results {
            if let Some(&Op::LoopResult(number)) = world.get::<Op>(result) {
                first[number as usize].get_or_insert(result);
            }
        }
        let mut created = Vec::new();
        let mut continued = SmallVec::new();
        let mut news = Vec::new();
        for (number, result) in first.into_iter().enumerate() {
            let source = result.or_else(|| world.get::<Operands>(node).map(|o| o.0[number]));
            let Some(source) = source else { continue };
            let ty = world.get::<ValueType>(source).cloned().unwrap_or_else(ValueType::unknown);
            let placement = world.get::<Placement>(source).cloned();
            let origin = world.get::<Origin>(node).copied().unwrap_or(Origin(u32::MAX));
            let spawn = |world: &mut World, operand: Entity| {
                let operands = Operands(smallvec::smallvec![operand]);
                let id = world.spawn((Op::LoopResult(number as u32), operands, ty.clone(), origin)).id();
                if let Some(placement) = &placement {
                    world.entity_mut(id).insert(placement.clone());
                }
                id
            };
            let of_main = match result {
                Some(result) => result,
                None => {
                    let id = spawn(world, node);
                    created.push(id);
                    id
                }
            };
            continued.push(of_main);
            let of_copy = spawn(world, copy);
            news.push(of_copy);
            self.rename(world, of_main, of_copy);
        }
        if let Some(mut operands) = world.get_mut::<Operands>(copy) {
            operands.0 = continued;
        }
        // Results of the first loop stay right after it, then the copy, then its results.
        let behind = results.iter().copied().chain(created).chain([copy]).chain(news).collect();
        Peeled { results, behind }
    }

    /// Lets all users of a loop's result use another one.
    fn rename(&mut self, world: &mut World, from: Entity, to: Entity) {
        let users = self.users.as_ref().and_then(|users| users.get(from)).cloned().unwrap_or_default();
        for user in users {
            let replace = |used: &mut Entity| *used = if *used == from { to } else { *used };
            if let Some(mut operands) = world.get_mut::<Operands>(user) {
                operands.0.iter_mut().for_each(replace);
            }
            if let Some(mut yields) = world.get_mut::<Yields>(user) {
                yields.0.iter_mut().for_each(replace);
            }
        }
    }

    /// Makes a loop like `node` with copies of everything inside.
    fn copy_loop(&mut self, world: &mut World, node: Entity) -> Result<Entity, Diagnostic> {
        if self.users.is_none() {
            let mut users = NodeMap::default();
            walk::nodes(world, self.root).into_iter().for_each(|node| note_uses(world, node, &mut users));
            self.users = Some(users);
        }
        self.copies.truncate(0);
        let copy = self.copy_node(world, node)?;
        let copies: SmallVec<[Entity; 64]> = self.copies.iter().map(|(_, copy)| *copy).collect();
        for new in copies {
            let replace = |used: &mut Entity| *used = self.copies.get(*used).copied().unwrap_or(*used);
            if let Some(mut operands) = world.get_mut::<Operands>(new) {
                operands.0.iter_mut().for_each(replace);
            }
            if let Some(mut yields) = world.get_mut::<Yields>(new) {
                yields.0.iter_mut().for_each(replace);
            }
            if let Some(users) = &mut self.users {
                note_uses(world, new, users);
            }
        }
        Ok(copy)
    }

    fn copy_node(&mut self, world: &mut World, node: Entity) -> Result<Entity, Diagnostic> {
        self.copied += 1;
        if self.copied > MAX_OPERATIONS {
            let text =
                format!("the remainders of this kernel's loops take more than {MAX_OPERATIONS} operations");
            let at = world.get::<Origin>(node).zip(world.get::<Locations>(self.root));
            return Err(Diagnostic::new(Kind::Limit, text)
                .at(at.and_then(|(origin, locations)| locations.get(origin.0)))
                .help("choose tiles of the loops that divide the sizes, or nest fewer loops"));
        }
        let new = world.spawn_empty().id();
        self.copies.insert(node, new);
        copy_component::<Op>(world, node, new);
        copy_component::<Operands>(world, node, new);
        copy_component::<ValueType>(world, node, new);
        copy_component::<Origin>(world, node, new);
        copy_component::<Tag>(world, node, new);
        copy_component::<Placement>(world, node, new);
        copy_component::<Trip>(world, node, new);
        copy_component::<Remainder>(world, node, new);
        copy_component::<Yields>(world, node, new);
        if let Some(body) = world.get::<Body>(node).cloned() {
            let mut copies = Vec::with_capacity(body.0.len());
            for inner in body.0 {
                copies.push(self.copy_node(world, inner)?);
            }
            world.entity_mut(new).insert(Body(copies));
        }
        Ok(new)
    }
}

/// Notes that a node uses results of loops.
fn note_uses(world: &World, node: Entity, users: &mut NodeMap<SmallVec<[Entity; 2]>>) {
    let operands = world.get::<Operands>(node).map(|o| &o.0[..]).unwrap_or_default();
    let yields = world.get::<Yields>(node).map(|y| &y.0[..]).unwrap_or_default();
    for &used in operands.iter().chain(yields) {
        if matches!(world.get::<Op>(used), Some(Op::LoopResult(_))) {
            match users.get_mut(used) {
                Some(known) => known.push(node),
                None => users.insert(used, smallvec::smallvec![node]),
            }
        }
    }
}

fn copy_component<C: Component + Clone>(world: &mut World, from: Entity, to: Entity) {
    if let Some(component) = world.get::<C>(from).cloned() {
        world.entity_mut(to).insert(component);
    }
}
