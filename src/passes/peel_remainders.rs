//! Remainders: a loop over a dimension that its tile does not divide becomes a loop over the whole tiles and, behind it, a copy that
//! runs at most once for the rest. Only the copy has to mask; the steady state stays as clean as for a dividing shape.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::bind_symbols::bug;
use super::facts::{Expressions, Geometry, Remainder};
use super::{PassResult, kernel_entity};
use crate::ir::node::*;
use crate::ir::walk;

/// The pass; see the module.
pub fn peel_remainders(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let loops: SmallVec<[(Entity, Entity); 8]> = walk::regions(world, root)
        .into_iter()
        .flat_map(|region| walk::body(world, region).into_iter().map(move |node| (region, node)))
        .filter(|&(_, node)| matches!(world.get::<Op>(node), Some(Op::Iterate(_))))
        .collect();
    for (region, node) in loops.into_iter().rev() {
        peel(world, root, region, node)?;
    }
    Ok(())
}

fn peel(world: &mut World, root: Entity, region: Entity, node: Entity) -> PassResult {
    let Some(&Op::Iterate(axis)) = world.get::<Op>(node) else { return Ok(()) };
    let Some(geometry) = world.get::<Geometry>(root) else { return Ok(()) };
    let (size, tile) = (geometry.dim(axis).size, geometry.dim(axis).tiling.unwrap_or(1));
    let Some(mut expressions) = world.get_mut::<Expressions>(root) else { return Ok(()) };
    let arena = &mut expressions.0;
    let zero = arena.int(0);
    let tile = arena.int(i64::from(tile));
    let whole = arena.floor_div(size, tile).map_err(|e| bug(&e))?;
    let total = arena.ceil_div(size, tile).map_err(|e| bug(&e))?;
    if whole == total {
        world.entity_mut(node).insert(Trip { start: zero, end: total });
        return Ok(());
    }
    if whole == zero {
        world.entity_mut(node).insert((Trip { start: zero, end: total }, Remainder));
        return Ok(());
    }
    world.entity_mut(node).insert(Trip { start: zero, end: whole });
    let copy = copy_loop(world, node);
    world.entity_mut(copy).insert((Trip { start: whole, end: total }, Remainder));
    insert_behind(world, root, region, node, copy);
    Ok(())
}

/// Puts `copy` behind the loop `node`: it starts from the results of `node`, and everybody else takes its results.
fn insert_behind(world: &mut World, root: Entity, region: Entity, node: Entity, copy: Entity) {
    let Some(body) = world.get::<Body>(region).map(|b| b.0.clone()) else { return };
    let mut results: Vec<Entity> = Vec::new();
    for &other in &body {
        if matches!(world.get::<Op>(other), Some(Op::LoopResult(_)))
            && world.get::<Operands>(other).is_some_and(|o| o.0[0] == node)
        {
            results.push(other);
        }
    }
    // Every carried value needs a result, used or not: the copy continues all of them.
    let count = world.get::<Operands>(node).map_or(0, |o| o.0.len());
    let mut first: Vec<Option<Entity>> = vec![None; count];
    for &result in &results {
        if let Some(&Op::LoopResult(number)) = world.get::<Op>(result) {
            first[number as usize].get_or_insert(result);
        }
    }
    let mut created = Vec::new();
    let mut continued = smallvec::SmallVec::new();
    let mut renames: Vec<(Entity, Entity)> = Vec::new();
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
        renames.push((of_main, of_copy));
    }
    for user in walk::nodes(world, root) {
        if let Some(mut operands) = world.get_mut::<Operands>(user) {
            operands.0.iter_mut().for_each(|o| replace(o, &renames));
        }
        if let Some(mut yields) = world.get_mut::<Yields>(user) {
            yields.0.iter_mut().for_each(|o| replace(o, &renames));
        }
    }
    if let Some(mut operands) = world.get_mut::<Operands>(copy) {
        operands.0 = continued;
    }
    let Some(mut body) = world.get_mut::<Body>(region) else { return };
    let Some(at) = body.0.iter().position(|&n| n == node) else { return };
    // Results of the first loop stay right behind it, then the copy, then its results.
    body.0.retain(|n| !results.contains(n));
    let news = renames.iter().map(|r| r.1);
    let behind = results.iter().copied().chain(created).chain([copy]).chain(news);
    body.0.splice(at + 1..at + 1, behind);
}

fn replace(entity: &mut Entity, renames: &[(Entity, Entity)]) {
    if let Some(&(_, new)) = renames.iter().find(|r| r.0 == *entity) {
        *entity = new;
    }
}

/// A loop like `node` with copies of everything inside.
fn copy_loop(world: &mut World, node: Entity) -> Entity {
    let mut map: Vec<(Entity, Entity)> = Vec::new();
    let copy = copy_node(world, node, &mut map);
    for &(_, new) in &map.clone() {
        if let Some(mut operands) = world.get_mut::<Operands>(new) {
            operands.0.iter_mut().for_each(|o| replace(o, &map));
        }
        if let Some(mut yields) = world.get_mut::<Yields>(new) {
            yields.0.iter_mut().for_each(|o| replace(o, &map));
        }
    }
    copy
}

fn copy_node(world: &mut World, node: Entity, map: &mut Vec<(Entity, Entity)>) -> Entity {
    let new = world.spawn_empty().id();
    map.push((node, new));
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
        let body = body.0.into_iter().map(|inner| copy_node(world, inner, map)).collect();
        world.entity_mut(new).insert(Body(body));
    }
    new
}

fn copy_component<C: Component + Clone>(world: &mut World, from: Entity, to: Entity) {
    if let Some(component) = world.get::<C>(from).cloned() {
        world.entity_mut(to).insert(component);
    }
}
