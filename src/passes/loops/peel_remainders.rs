//! Remainders: a loop over a dimension that its tile does not divide becomes a loop over the whole tiles,
//! followed by a copy that runs at most once for the rest. Only the copy needs masks; the steady state is the
//! same as for a shape that divides.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::ExprArena;
use crate::ir::kernel::MAX_OPERATIONS;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::Bug;
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::analysis::bind_symbols::bug;
use crate::passes::facts::{
    Expressions, Geometry, LayoutConversion, PaddedFactors, Remainder, TransposingRead, TurnedUnits, Unshared,
};
use crate::passes::kernel_editor::KernelEditor;

/// The pass itself; see the module. It copies loops that it looks at again, so it takes the whole world.
pub(crate) fn peel_remainders(world: &mut World) -> PassResult {
    let editor = KernelEditor::new(world)?;
    let regions = editor.regions();
    let mut peeler = Peeler { editor, users: None, copies: NodeMap::default(), copied: 0 };
    // Inner loops first: the copy of an outer loop includes their copies.
    for region in regions.into_iter().rev() {
        peeler.region(region)?;
    }
    Ok(())
}

struct Peeler<'w> {
    editor: KernelEditor<'w>,
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

impl Peeler<'_> {
    /// Peels the loops of a region, the last one first, and puts what they become into its body.
    fn region(&mut self, region: Entity) -> PassResult {
        let body = self.editor.body(region);
        let mut loops: SmallVec<[Entity; 4]> = SmallVec::new();
        let mut results: NodeMap<SmallVec<[Entity; 4]>> = NodeMap::default();
        for &id in &body {
            let op = self.editor.op(id)?;
            if let Op::Iterate(_) = op {
                loops.push(id);
                results.insert(id, SmallVec::new());
            }
            if let Op::LoopResult(_) = op
                && let Some(of_loop) = results.get_mut(self.editor.node(id)?.operand(0)?)
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
            if let Some(Peeled { results, after }) = self.peel(node, own)? {
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
        self.editor.set_body(region, &new);
        Ok(())
    }

    fn peel(&mut self, node: Entity, results: SmallVec<[Entity; 4]>) -> Result<Option<Peeled>, Diagnostic> {
        let Op::Iterate(axis) = self.editor.op(node)? else { return Ok(None) };
        let geometry = self.editor.kernel::<Geometry>()?;
        let (size, tile) = (geometry.dim(axis).size, geometry.dim(axis).tiling.unwrap_or(1));
        let (chosen, steps) = (geometry.dim(axis).iterations, geometry.dim(axis).step);
        let mut expressions = self.editor.kernel_mut::<Expressions>()?;
        let arena = &mut expressions.0;
        let zero = arena.int(0);
        let tile = arena.int(i64::from(tile));
        let whole = arena.floor_div(size, tile).map_err(|e| bug(&e))?;
        let total = arena.ceil_div(size, tile).map_err(|e| bug(&e))?;
        let (start, end) = chosen.unwrap_or((zero, total));
        if whole == total {
            self.editor.attach(node, Trip { start, end });
            return Ok(None);
        }
        // Of one iteration nothing is gained by a second loop without masks.
        if whole == zero || arena.range(total).at_most(1) {
            self.editor.attach(node, (Trip { start, end }, Remainder));
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
        self.editor.attach(node, main);
        let copy = self.copy_loop(node)?;
        self.editor.attach(copy, (rest, Remainder));
        self.join(node, copy, results).map(Some)
    }

    /// Lets `copy` start from the results of the loop `node`, and makes all users of these use its results.
    fn join(
        &mut self,
        node: Entity,
        copy: Entity,
        results: SmallVec<[Entity; 4]>,
    ) -> Result<Peeled, Diagnostic> {
        // Every carried value needs a result, used or not: the copy continues all of them.
        let inits = self.editor.node(node)?.operands.clone();
        let mut first: Vec<Option<Entity>> = vec![None; inits.0.len()];
        for &result in &results {
            if let Op::LoopResult(number) = self.editor.op(result)? {
                first[number as usize].get_or_insert(result);
            }
        }
        let mut created = Vec::new();
        let mut continued = SmallVec::<[Entity; 4]>::new();
        let mut news = Vec::new();
        self.editor.model_on(node)?;
        for (number, result) in first.into_iter().enumerate() {
            let of_main = match result {
                Some(result) => result,
                None => {
                    let result = self.result(node, number, inits.at(number)?)?;
                    created.push(result);
                    result
                }
            };
            continued.push(of_main);
            let of_copy = self.result(copy, number, of_main)?;
            news.push(of_copy);
            for &user in self.users.as_ref().and_then(|users| users.get(of_main)).into_iter().flatten() {
                self.editor.rename(user, |used| *used = if *used == of_main { of_copy } else { *used });
            }
        }
        self.editor.attach(copy, Operands(continued));
        // Results of the first loop stay right after it, then the copy, then its results.
        let after = results.iter().copied().chain(created).chain([copy]).chain(news).collect();
        Ok(Peeled { results, after })
    }

    /// A result of a loop, with the type and layout of another value.
    fn result(&mut self, owner: Entity, number: usize, like: Entity) -> Result<Entity, Bug> {
        let ty = self.editor.node(like)?.ty.clone();
        let result = self.editor.make(Op::LoopResult(number as u32), &[owner], ty, ());
        // Values without dimensions have no layout.
        self.editor.copy::<Placement>(like, result);
        Ok(result)
    }

    /// Makes a loop like `node` with copies of everything inside.
    fn copy_loop(&mut self, node: Entity) -> Result<Entity, Diagnostic> {
        if self.users.is_none() {
            let mut users = NodeMap::default();
            for node in self.editor.nodes() {
                note_uses(&self.editor, node, &mut users)?;
            }
            self.users = Some(users);
        }
        self.copies.truncate(0);
        let copy = self.copy_node(node)?;
        for (_, &new) in self.copies.iter() {
            self.editor.rename(new, |used| *used = self.copies.get(*used).copied().unwrap_or(*used));
            if let Some(users) = &mut self.users {
                note_uses(&self.editor, new, users)?;
            }
        }
        Ok(copy)
    }

    fn copy_node(&mut self, node: Entity) -> Result<Entity, Diagnostic> {
        self.copied += 1;
        let editor = &mut self.editor;
        if self.copied > MAX_OPERATIONS {
            let text =
                format!("the remainders of this kernel's loops take more than {MAX_OPERATIONS} operations");
            return Err(Diagnostic::new(Kind::Limit, text)
                .at(editor.location(node))
                .help("choose tiles of the loops that divide the sizes, or nest fewer loops"));
        }
        let new = editor.make_like(node)?;
        self.copies.insert(node, new);
        editor.copy::<Tag>(node, new);
        editor.copy::<Mapping>(node, new);
        editor.copy::<MemoryAccessFlags>(node, new);
        editor.copy::<Placement>(node, new);
        editor.copy::<TurnedUnits>(node, new);
        editor.copy::<TransposingRead>(node, new);
        editor.copy::<PaddedFactors>(node, new);
        editor.copy::<LayoutConversion>(node, new);
        editor.copy::<Unshared>(node, new);
        editor.copy::<Trip>(node, new);
        editor.copy::<Remainder>(node, new);
        editor.copy::<Yields>(node, new);
        if let Some(body) = editor.get::<Body>(node).cloned() {
            let mut copies = Vec::with_capacity(body.0.len());
            for inner in body.0 {
                copies.push(self.copy_node(inner)?);
            }
            self.editor.attach(new, Body(copies));
        }
        Ok(new)
    }
}

/// Notes which results of loops a node uses.
fn note_uses(
    editor: &KernelEditor<'_>,
    node: Entity,
    users: &mut NodeMap<SmallVec<[Entity; 2]>>,
) -> PassResult {
    // Only loops hand values on.
    let yields = editor.get::<Yields>(node).map(|yields| &yields.0[..]).unwrap_or_default();
    for &used in editor.node(node)?.operands.0.iter().chain(yields) {
        if matches!(editor.op(used)?, Op::LoopResult(_)) {
            match users.get_mut(used) {
                Some(known) => known.push(node),
                None => users.insert(used, smallvec::smallvec![node]),
            }
        }
    }
    Ok(())
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
