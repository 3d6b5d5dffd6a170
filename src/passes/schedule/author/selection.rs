//! Lists of nodes: by tag, type, address space, dimension, part of a pipeline.

use bevy_ecs::prelude::*;

use super::manual::{Evaluation, Which};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::schedule::{Group, NodeType, ValueId};
use crate::ir::text::suggest::closest;
use crate::ir::types::AddressSpace;
use crate::passes::allocate_lds::buffer_of;
use crate::passes::expand::{Base, Expansion};
use crate::passes::facts::Remainder;
use crate::passes::schedule::apply::unroll::Rest;
use crate::passes::schedule::graph::coordinates::coordinate;
use crate::passes::schedule::graph::words::describe;

/// What a tag names.
pub(super) enum Tagged {
    /// These nodes, in program order.
    Nodes(Vec<Entity>),
    /// Only nodes of a loop's remainder, such as this one: the loop itself has no iteration.
    Remainder(Entity),
    /// Nothing; perhaps this tag was meant.
    Nothing(Option<String>),
}

/// All tagged nodes of a kernel as it stands.
pub(super) struct TagIndex {
    rows: Vec<TagRow>,
}

/// The nodes of one tag.
struct TagRow {
    tag: Box<str>,
    nodes: Vec<Entity>,
    /// A node of a loop's remainder that has the tag.
    remainder: Option<Entity>,
}

impl TagIndex {
    pub(super) fn of(world: &World, root: Entity) -> TagIndex {
        let mut index = TagIndex { rows: Vec::new() };
        let mut last = (root, None);
        index.walk(world, root, false, &mut last);
        index
    }

    /// `last` remembers the row of the previous logical node, which is usually that of the next node as well.
    fn walk(
        &mut self,
        world: &World,
        region: Entity,
        in_remainder: bool,
        last: &mut (Entity, Option<usize>),
    ) {
        for &node in world.get::<Body>(region).map(|b| &b.0[..]).unwrap_or_default() {
            if world.get::<Rest>(node).is_some() {
                continue;
            }
            let own = Expansion::at(world, node).logical;
            let is_region = world.get::<Body>(node).is_some();
            let in_remainder = in_remainder || (is_region && world.get::<Remainder>(own).is_some());
            // The results and carried values of a loop belong to it.
            let op = world.get::<Op>(node);
            if !matches!(
                op,
                Some(Op::IterArg(_) | Op::LoopResult(_) | Op::Memory | Op::Scalar | Op::Allocate)
            ) {
                if last.0 != own {
                    *last = (own, self.row_of(world, own));
                }
                if let Some(row) = last.1.map(|row| &mut self.rows[row]) {
                    match in_remainder {
                        true => row.remainder = row.remainder.or(Some(node)),
                        false => row.nodes.push(node),
                    }
                }
            }
            if is_region {
                self.walk(world, node, in_remainder, last);
            }
        }
    }

    fn row_of(&mut self, world: &World, logical: Entity) -> Option<usize> {
        let tag = &world.get::<Tag>(logical)?.0;
        let known = self.rows.iter().position(|row| row.tag == *tag);
        Some(known.unwrap_or_else(|| {
            self.rows.push(TagRow { tag: tag.clone(), nodes: Vec::new(), remainder: None });
            self.rows.len() - 1
        }))
    }

    /// All nodes with a tag, except those in loops' remainders and in the loops that unrolling leaves, which
    /// no schedule touches.
    pub(super) fn get(&self, wanted: &str) -> Tagged {
        match self.rows.iter().find(|row| *row.tag == *wanted) {
            Some(row) if !row.nodes.is_empty() => Tagged::Nodes(row.nodes.clone()),
            Some(TagRow { remainder: Some(node), .. }) => Tagged::Remainder(*node),
            _ => {
                let known = self.rows.iter().map(|row| &row.tag[..]);
                Tagged::Nothing(closest(wanted, known).map(str::to_owned))
            }
        }
    }
}

/// Nodes of one type.
pub(super) fn of_type(world: &World, nodes: &[Entity], wanted: NodeType) -> Vec<Entity> {
    let is = |node: &Entity| world.get::<Op>(*node).and_then(|op| NodeType::of(*op)) == Some(wanted);
    nodes.iter().copied().filter(is).collect()
}

/// Copies that unrolling made for one iteration of a trip; if there are none, the number of iterations that
/// the nodes have.
pub(super) fn of_iteration(world: &World, nodes: &[Entity], iteration: u32) -> Result<Vec<Entity>, u32> {
    let copy = |node: &Entity| world.get::<Expansion>(*node).map_or(0, |e| e.copy);
    let found: Vec<Entity> = nodes.iter().copied().filter(|node| copy(node) == iteration).collect();
    if found.is_empty() { Err(nodes.iter().map(copy).max().map_or(0, |last| last + 1)) } else { Ok(found) }
}

impl Evaluation<'_> {
    pub(super) fn partition_by_space(
        &self,
        list: ValueId,
        space: AddressSpace,
    ) -> Result<(Vec<Entity>, Vec<Entity>), Diagnostic> {
        let nodes = self.nodes(list)?;
        if let Some(&node) =
            nodes.iter().find(|&&n| !self.world.get::<Op>(n).is_some_and(|op| op.is_access()))
        {
            let text = format!("{} has no address space", describe(self.world, self.root, node));
            return Err(self.fault(text).help("partition reads and writes"));
        }
        let in_space = |node: &Entity| {
            let shared = buffer_of(self.world, *node).is_some();
            shared == (space == AddressSpace::Shared)
        };
        Ok(nodes.iter().partition(|node| in_space(node)))
    }

    pub(super) fn partition_by_dim(
        &self,
        list: ValueId,
        symbol: Symbol,
        parts: u32,
    ) -> Result<Vec<Vec<Entity>>, Diagnostic> {
        let dims = self.world.get::<DimTable>(self.root).map(|d| &d.0[..]).unwrap_or_default();
        let dim = dims.iter().position(|&d| d == symbol).and_then(|at| u8::try_from(at).ok()).map(Dim);
        let dim = dim.ok_or_else(|| {
            let names: Vec<&str> = dims.iter().map(|dim| dim.name()).collect();
            let fault = self.fault(format!("the kernel has no dimension {symbol}"));
            fault.help(format!("its dimensions are {}", names.join(", ")))
        })?;
        let nodes = self.nodes(list)?;
        let places: Vec<(u32, u32)> = nodes.iter().map(|&n| coordinate(self.world, n, dim)).collect();
        let mut distinct = places.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let count = distinct.len();
        if count < parts as usize {
            let text = format!("{parts} parts along {symbol}, and the nodes have {count} places along it");
            return Err(self.fault(text).help("use fewer parts, or larger tiles"));
        }
        // Larger parts first.
        let (whole, more) = (count / parts as usize, count % parts as usize);
        let part_of = |at: usize| {
            let large = more * (whole + 1);
            if at < large { at / (whole + 1) } else { more + (at - large) / whole }
        };
        let mut out = vec![Vec::new(); parts as usize];
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by_key(|&at| places[at]);
        for at in order {
            let place = distinct.binary_search(&places[at]).unwrap_or(0);
            out[part_of(place)].push(nodes[at]);
        }
        Ok(out)
    }

    pub(super) fn filter(
        &self,
        list: ValueId,
        stage: Option<ValueId>,
        node_type: Option<NodeType>,
    ) -> Result<Vec<Entity>, Diagnostic> {
        let nodes = self.nodes(list)?;
        let nodes = if let Some(stage) = stage {
            let part = self.part(stage)?.ok_or_else(|| self.fault("this is not a part of a pipeline"))?;
            let base = match part.which {
                Which::Prologue => Base::Start,
                Which::Kernel => Base::Trip,
                Which::Epilogue => Base::End,
            };
            let inside = |&n: &Entity| {
                let own = self.world.get::<Expansion>(n).map(|e| e.iteration.base);
                // A loop of one stage is its own steady state.
                own == Some(base) || (part.whole == part.steady && part.which == Which::Kernel)
            };
            nodes.iter().copied().filter(inside).collect()
        } else {
            nodes.to_vec()
        };
        Ok(match node_type {
            Some(node_type) => of_type(self.world, &nodes, node_type),
            None => nodes,
        })
    }

    /// The nodes of `base` with those of `groups` between them; `interleave_ops` documents the rule.
    pub(super) fn interleave(&self, base: &[ValueId], groups: &[Group]) -> Result<Vec<Entity>, Diagnostic> {
        let flat = |lists: &[ValueId]| -> Result<Vec<Entity>, Diagnostic> {
            let mut all = Vec::new();
            for &list in lists {
                all.extend(self.nodes(list)?);
            }
            Ok(all)
        };
        let lists = groups.iter().map(|group| flat(&group.lists)).collect::<Result<Vec<_>, _>>()?;
        let mut next = vec![0usize; groups.len()];
        let mut out = Vec::new();
        for (at, node) in flat(base)?.into_iter().enumerate() {
            out.push(node);
            for (number, group) in groups.iter().enumerate() {
                let waits = group.start_after_groups.iter().any(|&other| {
                    let other = other as usize;
                    lists.get(other).is_some_and(|list| next[other] < list.len())
                });
                let turn = at.checked_sub(group.start_offset as usize);
                let turn = turn.is_some_and(|since| since % group.interval.max(1) as usize == 0);
                if turn && !waits && next[number] < lists[number].len() {
                    out.push(lists[number][next[number]]);
                    next[number] += 1;
                }
            }
        }
        for (list, next) in lists.iter().zip(next) {
            out.extend_from_slice(&list[next..]);
        }
        Ok(out)
    }
}
