//! Loops in pieces: copies of a loop that take the iterations after its own, each of which starts from what
//! the piece before it hands on.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::MAX_OPERATIONS;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::Bug;
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::facts::{
    LayoutConversion, MaskedPart, PaddedFactors, Remainder, TransposingRead, TurnedUnits, Unshared,
};
use crate::passes::kernel_editor::KernelEditor;

/// A kernel whose loops are divided.
pub(super) struct LoopPieces<'w> {
    pub(super) editor: KernelEditor<'w>,
    /// The users of each result of a loop; found when a loop is copied for the first time.
    users: Option<NodeMap<SmallVec<[Entity; 2]>>>,
    /// The copies of the nodes in the loop that is being copied.
    copies: NodeMap<Entity>,
    /// Nodes copied so far.
    copied: usize,
}

/// The results of a loop that was divided, and the nodes that come right after it.
struct DividedLoop {
    results: SmallVec<[Entity; 4]>,
    after: Vec<Entity>,
}

impl<'w> LoopPieces<'w> {
    pub(super) fn new(editor: KernelEditor<'w>) -> LoopPieces<'w> {
        LoopPieces { editor, users: None, copies: NodeMap::default(), copied: 0 }
    }

    /// Divides all loops, inner ones first: the copy of an outer loop includes their copies. A step makes the
    /// copies of a loop (see [`LoopPieces::copy`]) and returns them in the order of their iterations.
    pub(super) fn divide(
        &mut self,
        step: &mut impl FnMut(&mut Self, Entity) -> Result<SmallVec<[Entity; 2]>, Diagnostic>,
    ) -> PassResult {
        for region in self.editor.regions().into_iter().rev() {
            self.region(region, step)?;
        }
        Ok(())
    }

    /// Divides the loops of a region, the last one first, and puts what they become into its body.
    fn region(
        &mut self,
        region: Entity,
        step: &mut impl FnMut(&mut Self, Entity) -> Result<SmallVec<[Entity; 2]>, Diagnostic>,
    ) -> PassResult {
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
        let mut moved = NodeSet::default();
        let mut divided: NodeMap<Vec<Entity>> = NodeMap::default();
        for &node in loops.iter().rev() {
            let copies = step(self, node)?;
            if !copies.is_empty() {
                let own = results.get(node).cloned().unwrap_or_default();
                let DividedLoop { results, after } = self.join(node, &copies, own)?;
                results.into_iter().for_each(|result| moved.insert(result));
                divided.insert(node, after);
            }
        }
        if divided.is_empty() {
            return Ok(());
        }
        let mut new = NodeList::new();
        for node in body.into_iter().filter(|&node| !moved.contains(node)) {
            new.push(node);
            new.extend_from_slice(divided.get(node).map(|after| &after[..]).unwrap_or_default());
        }
        self.editor.set_body(region, &new);
        Ok(())
    }

    /// Lets each copy of the loop `node` start from the results of the piece before it, and makes all users
    /// of the loop's results use those of the last copy.
    fn join(
        &mut self,
        node: Entity,
        copies: &[Entity],
        results: SmallVec<[Entity; 4]>,
    ) -> Result<DividedLoop, Diagnostic> {
        // Every carried value needs a result, used or not: the copies continue all of them.
        let inits = self.editor.node(node)?.operands.clone();
        let mut known: SmallVec<[Option<Entity>; 4]> = smallvec::smallvec![None; inits.0.len()];
        for &result in &results {
            if let Op::LoopResult(number) = self.editor.op(result)? {
                known[number as usize].get_or_insert(result);
            }
        }
        self.editor.model_on(node)?;
        // Results of the first piece stay right after it, then the next piece, then its results.
        let mut after = results.to_vec();
        let mut before = node;
        for &copy in copies {
            let mut continued = SmallVec::<[Entity; 4]>::new();
            let mut news: SmallVec<[Option<Entity>; 4]> = SmallVec::new();
            for (number, result) in known.into_iter().enumerate() {
                let result = match result {
                    Some(result) => result,
                    None => {
                        let result = self.result(before, number, inits.at(number)?)?;
                        after.push(result);
                        result
                    }
                };
                continued.push(result);
                let of_copy = self.result(copy, number, result)?;
                news.push(Some(of_copy));
                self.move_users(result, of_copy);
            }
            self.editor.attach(copy, Operands(continued));
            after.push(copy);
            after.extend(news.iter().flatten());
            (known, before) = (news, copy);
        }
        Ok(DividedLoop { results, after })
    }

    /// Lets all users of a result use another one.
    fn move_users(&mut self, from: Entity, to: Entity) {
        let Some(all) = &mut self.users else { return };
        let users = all.get_mut(from).map(std::mem::take).unwrap_or_default();
        for &user in &users {
            self.editor.rename(user, |used| *used = if *used == from { to } else { *used });
        }
        all.insert(to, users);
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
    ///
    /// # Errors
    /// If the kernel becomes too large.
    pub(super) fn copy(&mut self, node: Entity) -> Result<Entity, Diagnostic> {
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

    /// The copy of a node in the loop that was copied last.
    pub(super) fn copy_of(&self, node: Entity) -> Entity {
        self.copies.get(node).copied().unwrap_or(node)
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
        editor.copy::<MaskedPart>(node, new);
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
