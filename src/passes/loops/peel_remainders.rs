//! Remainders: a loop over a dimension that its tile does not divide becomes a loop over the whole tiles,
//! followed by a copy that runs at most once for the rest. Only the copy needs masks; the steady state is the
//! same as for a shape that divides.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::ExprArena;
use crate::ir::kernel::{Locations, MAX_OPERATIONS};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::{self, NodeBundle};
use crate::ir::walk::{self, NodeList};
use crate::passes::analysis::bind_symbols::bug;
use crate::passes::facts::{
    Expressions, Geometry, LayoutConversion, PaddedFactors, Remainder, TransposingRead, TurnedUnits, Unshared,
};
use crate::passes::{PassResult, kernel_entity};

/// The pass itself; see the module. It copies loops that it looks at again, so it takes the whole world.
pub(crate) fn peel_remainders(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let mut peeler = Peeler { root, users: None, copies: NodeMap::default(), copied: 0 };
    // Inner loops first: the copy of an outer loop includes their copies.
    for region in walk::regions(world, root).into_iter().rev() {
        peeler.region(world, region)?;
    }
    Ok(())
}

struct Peeler {
    root: Entity,
    /// The users of each result of a loop; found when a loop is peeled for the first time.
    users: Option<NodeMap<SmallVec<[Entity; 2]>>>,
    /// The copies of the nodes in the loop that is being copied.
    copies: NodeMap<Entity>,
    /// Nodes copied so far.
    copied: usize,
}

/// The values that replace the results of a peeled loop, and the nodes that come right after it.
struct Peeled {
    results: SmallVec<[Entity; 4]>,
    after: Vec<Entity>,
}

impl Peeler {
    /// Peels the loops of a region, the last one first, and puts what they become into its body.
    fn region(&mut self, world: &mut World, region: Entity) -> PassResult {
        let body = walk::body(world, region);
        let mut loops: SmallVec<[Entity; 4]> = SmallVec::new();
        let mut results: NodeMap<SmallVec<[Entity; 4]>> = NodeMap::default();
        for &id in &body {
            let node = nodes::node(world, id)?;
            if node.op.over_tiles().is_some() {
                loops.push(id);
                results.insert(id, SmallVec::new());
            }
            if node.op.carried_result().is_some()
                && let Some(of_loop) = results.get_mut(node.operand(0)?)
            {
                of_loop.push(id);
            }
        }
        if loops.is_empty() {
            return Ok(());
        }
        let mut moved = NodeSet::default();
        let mut peeled: NodeMap<Vec<Entity>> = NodeMap::default();
        for &node in loops.iter().rev() {
            let own = results.get(node).cloned().unwrap_or_default();
            if let Some(Peeled { results, after }) = self.peel(world, node, own)? {
                results.into_iter().for_each(|result| moved.insert(result));
                peeled.insert(node, after);
            }
        }
        if peeled.is_empty() {
            return Ok(());
        }
        let mut new = NodeList::new();
        for node in body.into_iter().filter(|&node| !moved.contains(node)) {
            new.push(node);
            new.extend_from_slice(peeled.get(node).map(|after| &after[..]).unwrap_or_default());
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
        let Some(axis) = nodes::op(world, node)?.over_tiles() else { return Ok(None) };
        let geometry = nodes::fact::<Geometry>(world, self.root, "a kernel without geometry")?;
        let (size, tile) = (geometry.dim(axis).size, geometry.dim(axis).tiling.unwrap_or(1));
        let (chosen, steps) = (geometry.dim(axis).iterations, geometry.dim(axis).step);
        let mut expressions =
            nodes::fact_mut::<Expressions>(world, self.root, "a kernel without expressions")?;
        let arena = &mut expressions.0;
        let zero = arena.int(0);
        let tile = arena.int(i64::from(tile));
        let whole = arena.floor_div(size, tile).map_err(|e| bug(&e))?;
        let total = arena.ceil_div(size, tile).map_err(|e| bug(&e))?;
        let (start, end) = chosen.unwrap_or((zero, total));
        if whole == total {
            world.entity_mut(node).insert(Trip { start, end });
            return Ok(None);
        }
        // Of one iteration nothing is gained by a second loop without masks.
        if whole == zero || arena.range(total).at_most(1) {
            world.entity_mut(node).insert((Trip { start, end }, Remainder));
            return Ok(None);
        }
        let (mut main, mut rest) = (Trip { start, end: whole }, Trip { start: whole, end });
        if let Some((first, step)) = steps {
            // Iterations whose tiles are whole come before the one that takes the last tile.
            let split = |arena: &mut ExprArena| {
                let tiles = arena.sub(whole, first)?;
                let tiles = arena.max(tiles, zero)?;
                let step = arena.int(i64::from(step));
                let count = arena.ceil_div(tiles, step)?;
                arena.min(count, end)
            };
            let split = split(arena).map_err(|e| bug(&e))?;
            (main, rest) = (Trip { start, end: split }, Trip { start: split, end });
        } else if chosen.is_some() {
            main = Trip {
                start: arena.min(start, whole).map_err(|e| bug(&e))?,
                end: arena.min(end, whole).map_err(|e| bug(&e))?,
            };
            rest = Trip {
                start: arena.max(start, whole).map_err(|e| bug(&e))?,
                end: arena.max(end, whole).map_err(|e| bug(&e))?,
            };
        }
        world.entity_mut(node).insert(main);
        let copy = self.copy_loop(world, node)?;
        world.entity_mut(copy).insert((rest, Remainder));
        self.join(world, node, copy, results).map(Some)
    }

    /// Lets `copy` start from the results of the loop `node`, and makes all users of these use its results.
    fn join(
        &mut self,
        world: &mut World,
        node: Entity,
        copy: Entity,
        results: SmallVec<[Entity; 4]>,
    ) -> Result<Peeled, Diagnostic> {
        // Every carried value needs a result, used or not: the copy continues all of them.
        let inits = nodes::node(world, node)?.operands.clone();
        let mut first: Vec<Option<Entity>> = vec![None; inits.0.len()];
        for &result in &results {
            if let Some(number) = nodes::op(world, result)?.carried_result() {
                first[number as usize].get_or_insert(result);
            }
        }
        let origin = *nodes::node(world, node)?.origin;
        let mut created = Vec::new();
        let mut continued = SmallVec::new();
        let mut news = Vec::new();
        for (number, result) in first.into_iter().enumerate() {
            let source = result.map_or_else(|| inits.at(number), Ok)?;
            let ty = nodes::node(world, source)?.ty.clone();
            // Values without dimensions have no layout.
            let placement = world.get::<Placement>(source).cloned();
            let spawn = |world: &mut World, owner: Entity| {
                let operands = Operands(smallvec::smallvec![owner]);
                let result =
                    NodeBundle { op: Op::LoopResult(number as u32), operands, ty: ty.clone(), origin };
                let id = result.spawn(world, ());
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
        nodes::fact_mut::<Operands>(world, copy, "a loop without operands")?.0 = continued;
        // Results of the first loop stay right after it, then the copy, then its results.
        let after = results.iter().copied().chain(created).chain([copy]).chain(news).collect();
        Ok(Peeled { results, after })
    }

    /// Makes all users of a loop's result use another one.
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
            for node in walk::nodes(world, self.root) {
                note_uses(world, node, &mut users)?;
            }
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
                note_uses(world, new, users)?;
            }
        }
        Ok(copy)
    }

    fn copy_node(&mut self, world: &mut World, node: Entity) -> Result<Entity, Diagnostic> {
        self.copied += 1;
        if self.copied > MAX_OPERATIONS {
            let text =
                format!("the remainders of this kernel's loops take more than {MAX_OPERATIONS} operations");
            let locations = nodes::fact::<Locations>(world, self.root, "a kernel without locations")?;
            return Err(Diagnostic::new(Kind::Limit, text)
                .at(locations.get(nodes::node(world, node)?.origin.0))
                .help("choose tiles of the loops that divide the sizes, or nest fewer loops"));
        }
        let new = nodes::node(world, node)?.bundle().spawn(world, ());
        self.copies.insert(node, new);
        copy_component::<Tag>(world, node, new);
        copy_component::<Mapping>(world, node, new);
        copy_component::<MemoryAccessFlags>(world, node, new);
        copy_component::<Placement>(world, node, new);
        copy_component::<TurnedUnits>(world, node, new);
        copy_component::<TransposingRead>(world, node, new);
        copy_component::<PaddedFactors>(world, node, new);
        copy_component::<LayoutConversion>(world, node, new);
        copy_component::<Unshared>(world, node, new);
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

/// Notes which results of loops a node uses.
fn note_uses(world: &World, node: Entity, users: &mut NodeMap<SmallVec<[Entity; 2]>>) -> PassResult {
    let operands = &nodes::node(world, node)?.operands.0;
    // Only loops hand values on.
    let yields = world.get::<Yields>(node).map(|y| &y.0[..]).unwrap_or_default();
    for &used in operands.iter().chain(yields) {
        if nodes::op(world, used)?.carried_result().is_some() {
            match users.get_mut(used) {
                Some(known) => known.push(node),
                None => users.insert(used, smallvec::smallvec![node]),
            }
        }
    }
    Ok(())
}

fn copy_component<C: Component + Clone>(world: &mut World, from: Entity, to: Entity) {
    if let Some(component) = world.get::<C>(from).cloned() {
        world.entity_mut(to).insert(component);
    }
}

#[cfg(test)]
mod tests {
    use crate::codegen::target::Target;
    use crate::ir::kernel::Kernel;
    use crate::ir::verifier::distribution;
    use crate::passes::PIPELINE;
    use crate::passes::options::{Options, Schedule};
    use crate::passes::workspace::{Verify, with_workspace};

    /// All workgroups along N store the same to `b`, in a loop over a dimension that it has.
    const STORED: &str = "kernel stored {
  workgroup M, 16, 0
  workgroup N, 64, 1
  tile K, 16
  a = memory [M, K] global f32
  b = memory [M, K] global f32
  c = memory [M, N] global f32
  iterate K () {
    %x = read a
    write %x, b
  }
}";

    #[test]
    fn a_write_divided_among_loops_stays_one_write_after_every_pass() {
        let kernel = Kernel::parse(STORED, "stored.gsw").expect("all workgroups store the same value");
        for schedule in [Schedule::None, Schedule::Prefetch] {
            let options = Options::new(Target::GFX942)
                .set("M", 32)
                .set("N", 128)
                .set("K", 40)
                .schedule(schedule.clone());
            for pass in PIPELINE {
                with_workspace(|workspace| {
                    workspace.load(&kernel, &options);
                    workspace.run(Some(pass.name), Verify::AfterEachPass, &mut Vec::new()).unwrap();
                    let faults = distribution::check(&workspace.world, workspace.root);
                    assert!(faults.is_empty(), "{} with {schedule:?}: {}", pass.name, faults[0]);
                });
            }
        }
    }
}
