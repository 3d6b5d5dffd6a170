//! Lists of nodes: by tag, type, address space, dimension, part of a pipeline.

use bevy_ecs::prelude::*;

use super::evaluation::{Evaluation, Which};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::layout::Dim;
use crate::ir::nodes::Bug;
use crate::ir::schedule::{Group, NodeType, ValueId};
use crate::ir::types::AddressSpace;
use crate::passes::loops::expand::{Base, Expansion};
use crate::passes::schedule::graph::coordinates::PlacesAlong;
use crate::passes::schedule::graph::view::SchedulerView;

/// Nodes of one type.
pub(super) fn of_type(view: SchedulerView, nodes: &[Entity], wanted: NodeType) -> Result<Vec<Entity>, Bug> {
    let mut found = Vec::new();
    for &node in nodes {
        if NodeType::of(view.op(node)?) == Some(wanted) {
            found.push(node);
        }
    }
    Ok(found)
}

/// Copies that unrolling made for one iteration of a trip; if there are none, the number of iterations that
/// the nodes have.
pub(super) fn of_iteration(
    view: SchedulerView,
    nodes: &[Entity],
    iteration: u32,
) -> Result<Result<Vec<Entity>, u32>, Bug> {
    let (mut found, mut count) = (Vec::new(), 0);
    for &node in nodes {
        let copy = view.node(node)?.piece(node).copy;
        count = count.max(copy + 1);
        if copy == iteration {
            found.push(node);
        }
    }
    Ok(if found.is_empty() { Err(count) } else { Ok(found) })
}

impl Evaluation<'_, '_> {
    pub(super) fn partition_by_space(
        &mut self,
        list: ValueId,
        space: AddressSpace,
    ) -> Result<(Vec<Entity>, Vec<Entity>), Diagnostic> {
        let nodes = self.nodes(list)?.to_vec();
        let view = self.kernel.view();
        let (mut inside, mut others) = (Vec::new(), Vec::new());
        for &node in &nodes {
            let seen = view.node(node)?;
            if !seen.op.is_access() {
                let text = format!("{} has no address space", self.describe(node));
                return Err(self.fault(text).help("partition reads and writes"));
            }
            let is_inside = view.buffer_of(&seen)?.is_some() == (space == AddressSpace::Shared);
            if is_inside { inside.push(node) } else { others.push(node) }
        }
        Ok((inside, others))
    }

    pub(super) fn partition_by_dim(
        &mut self,
        list: ValueId,
        symbol: Symbol,
        parts: u32,
    ) -> Result<Vec<Vec<Entity>>, Diagnostic> {
        let dims = self.kernel.view().dims()?.0.clone();
        let dim = dims.values().position(|&d| d == symbol).and_then(|at| u8::try_from(at).ok()).map(Dim);
        let dim = dim.ok_or_else(|| {
            let names: Vec<&str> = dims.values().map(|dim| dim.name()).collect();
            let fault = self.fault(format!("the kernel has no dimension {symbol}"));
            fault.help(format!("its dimensions are {}", names.join(", ")))
        })?;
        let nodes = self.nodes(list)?.to_vec();
        let mut along = PlacesAlong::new(self.kernel.view(), dim);
        let places = nodes.iter().map(|&node| along.of(node));
        let places = places.collect::<Result<Vec<(u32, u32)>, Bug>>()?;
        divided(&nodes, &places, parts).map_err(|count| {
            let text = format!("{parts} parts along {symbol}, and the nodes have {count} places along it");
            self.fault(text).help("use fewer parts, or larger tiles")
        })
    }

    pub(super) fn filter(
        &mut self,
        list: ValueId,
        stage: Option<ValueId>,
        node_type: Option<NodeType>,
    ) -> Result<Vec<Entity>, Diagnostic> {
        let mut nodes = self.nodes(list)?.to_vec();
        if let Some(stage) = stage {
            let part = self.part(stage)?.ok_or_else(|| self.fault("this is not a part of a pipeline"))?;
            let base = match part.which {
                Which::Prologue => Base::Start,
                Which::Kernel => Base::Trip,
                Which::Epilogue => Base::End,
            };
            // A loop of one stage is its own steady state.
            if part.whole != part.steady || part.which != Which::Kernel {
                let world = self.kernel.view().world;
                let base_of = |node: Entity| world.get::<Expansion>(node).map(|e| e.iteration.base);
                nodes.retain(|&node| base_of(node) == Some(base));
            }
        }
        Ok(match node_type {
            Some(node_type) => of_type(self.kernel.view(), &nodes, node_type)?,
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
        Ok(interleaved(&flat(base)?, &lists, groups))
    }
}

/// Equal parts of `nodes` by their places along a dimension, larger parts first; the number of places if
/// there are fewer of them than parts.
pub(crate) fn divided<T: Copy>(nodes: &[T], places: &[(u32, u32)], parts: u32) -> Result<Vec<Vec<T>>, usize> {
    let mut distinct = places.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let count = distinct.len();
    if count < parts as usize {
        return Err(count);
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

/// The nodes of `base` with those of the `lists` of groups between them; `interleave_ops` documents the rule.
pub(crate) fn interleaved<T: Copy>(base: &[T], lists: &[Vec<T>], groups: &[Group]) -> Vec<T> {
    let mut next = vec![0usize; groups.len()];
    let mut out = Vec::new();
    for (at, &node) in base.iter().enumerate() {
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
    out
}
