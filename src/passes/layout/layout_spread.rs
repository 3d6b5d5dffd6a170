//! The wave front of index analysis: which layout each node has so far, and how it spreads from a node to
//! everything that must agree with it.

use std::collections::VecDeque;

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::element_layouts::{LayoutNodes, projected};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Layout;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet, Side};
use crate::ir::op::{CarriedOp, LayoutRule};
use crate::ir::types::DType;
use crate::passes::PassResult;

/// For each node (by entity index) the nodes whose layout must agree with it.
type LayoutLinks = Side<SmallVec<[Entity; 4]>>;

/// The links of all nodes.
fn links(
    order: &[Entity],
    nodes: &LayoutNodes,
    yields: &Query<&'static Yields>,
) -> Result<LayoutLinks, Diagnostic> {
    let mut links: LayoutLinks = Side::of(order, SmallVec::new());
    let join = |links: &mut LayoutLinks, a: Entity, b: Entity| {
        links[a].push(b);
        links[b].push(a);
    };
    // The values in the coordinates of a mapped access are spread as the access is, which does not depend on
    // them.
    let follow =
        |links: &mut LayoutLinks, access: Entity, values: &[Entity]| links[access].extend_from_slice(values);
    let mut loops: NodeMap<(&Operands, &Yields)> = NodeMap::default();
    for &node in order {
        let (op, operands, ..) = nodes.get(node)?;
        match op.layout_rule() {
            LayoutRule::WithOperands => operands.0.iter().for_each(|&o| join(&mut links, node, o)),
            LayoutRule::OfInstruction => join(&mut links, node, operands.at(ACCUMULATOR)?),
            LayoutRule::Along(_) => join(&mut links, node, operands.at(0)?),
            LayoutRule::WithValues(joined) => {
                let values = operands.0.len() - 1;
                let (joined, others) = operands.0[..values].split_at(joined.min(values));
                joined.iter().for_each(|&value| join(&mut links, node, value));
                follow(&mut links, node, others);
            }
            LayoutRule::Carries => loops.insert(node, (operands, yields.get(node)?)),
            LayoutRule::Carried(CarriedOp::IterArg(number)) => {
                // The innermost loop seen last is the one whose body begins here.
                if let Some((_, (init, next))) = loops.iter().next_back() {
                    join(&mut links, node, init.0[number as usize]);
                    join(&mut links, node, next.0[number as usize]);
                }
            }
            LayoutRule::Carried(CarriedOp::LoopResult(number)) => {
                if let Some((init, _)) = loops.get(operands.at(0)?) {
                    join(&mut links, node, init.0[number as usize]);
                }
            }
            LayoutRule::None | LayoutRule::OfUsers | LayoutRule::Own => {}
        }
    }
    Ok(links)
}

/// The accumulator among the operands of a product.
pub(super) const ACCUMULATOR: usize = 2;

/// A layout that a source asks for, by its number in [`Spread::layouts`].
pub(super) type Wanted = u32;

/// Layouts found so far.
pub(super) struct Spread<'a, 'w, 's> {
    pub(super) nodes: &'a LayoutNodes<'w, 's>,
    links: LayoutLinks,
    /// Layouts are large, and most nodes share theirs with others.
    pub(super) layouts: SmallVec<[Layout; 4]>,
    /// So many of them come from matrix instructions.
    pub(super) of_matrix: usize,
    /// What matrix products need: the layouts of their operands.
    pub(super) products: NodeMap<SmallVec<[Wanted; 5]>>,
    /// What reductions need that keep dimensions without a tile: layouts of their operands that do not depend
    /// on how large these are.
    pub(super) folds: NodeMap<Wanted>,
    pub(super) found: Side<Option<Wanted>>,
    /// Reads of factors that lanes turn in their registers.
    pub(super) turned: SmallVec<[Entity; 2]>,
    queue: VecDeque<Entity>,
}

impl<'a, 'w, 's> Spread<'a, 'w, 's> {
    /// No node has a layout.
    ///
    /// # Errors
    /// A node lacks what nodes have.
    pub(super) fn new(
        order: &[Entity],
        nodes: &'a LayoutNodes<'w, 's>,
        yields: &Query<&'static Yields>,
    ) -> Result<Self, Diagnostic> {
        Ok(Spread {
            nodes,
            links: links(order, nodes, yields)?,
            layouts: SmallVec::new(),
            of_matrix: 0,
            products: NodeMap::default(),
            folds: NodeMap::default(),
            found: Side::of(order, None),
            turned: SmallVec::new(),
            queue: VecDeque::new(),
        })
    }

    /// Notes a layout that a source wants.
    pub(super) fn wanted(&mut self, layout: Layout) -> Wanted {
        self.layouts.push(layout);
        self.layouts.len() as Wanted - 1
    }

    /// A layout as a node has it that may lack some of its dimensions.
    pub(super) fn projected(&mut self, wanted: Wanted, node: Entity) -> Result<Wanted, Diagnostic> {
        let (op, _, ty, _) = self.nodes.get(node)?;
        if op.stores() {
            return Ok(wanted);
        }
        let layout = projected(self.layout(wanted), &ty.dims)?;
        Ok(if layout == *self.layout(wanted) { wanted } else { self.wanted(layout) })
    }

    pub(super) fn layout(&self, wanted: Wanted) -> &Layout {
        &self.layouts[wanted as usize]
    }

    /// The narrowest dtype of the reads that the layout of a value will reach: lanes are to hold as many
    /// consecutive elements as one of their accesses moves, whatever the elements are converted to.
    pub(super) fn narrowest_read(&self, value: Entity) -> Result<Option<DType>, Diagnostic> {
        let dims = self.nodes.get(value)?.2.dims.len();
        let mut narrowest: Option<DType> = None;
        let mut seen = NodeSet::default();
        let mut queue: SmallVec<[Entity; 16]> = smallvec![value];
        while let Some(node) = queue.pop() {
            let (op, _, ty, _) = self.nodes.get(node)?;
            if op.stores() || ty.dims.len() != dims || seen.contains(node) {
                continue;
            }
            seen.insert(node);
            if op.loads()
                && let Some(dtype) = ty.dtype
                && narrowest.is_none_or(|known| dtype.bytes() < known.bytes())
            {
                narrowest = Some(dtype);
            }
            queue.extend((0..self.links[node].len()).map(|at| self.links[node][at]));
        }
        Ok(narrowest)
    }

    pub(super) fn agree(&self, one: Wanted, other: Wanted) -> bool {
        let (left, right) = (self.layout(one), self.layout(other));
        one == other || left == right || left.equivalent(right)
    }

    /// Gives a node a layout, unless it has one: the first source that reaches it decides.
    pub(super) fn assign(&mut self, node: Entity, wanted: Wanted) -> PassResult {
        let (op, _, ty, _) = self.nodes.get(node)?;
        if (!ty.dims.is_empty() || op.stores()) && self.found[node].is_none() {
            self.found[node] = Some(wanted);
            self.queue.push_back(node);
        }
        Ok(())
    }

    /// Gives a node a layout, unless it has one, and lets it spread as far as it goes.
    pub(super) fn give(&mut self, node: Entity, wanted: Wanted) -> PassResult {
        self.assign(node, wanted)?;
        self.run()
    }

    /// Lets the layouts spread that have not yet.
    pub(super) fn run(&mut self) -> PassResult {
        while let Some(node) = self.queue.pop_front() {
            let Some(found) = self.found[node] else { continue };
            let own = self.nodes.get(node)?;
            let own_dims = if own.0.stores() { None } else { Some(&own.2.dims) };
            for at in 0..self.links[node].len() {
                let other = self.links[node][at];
                let (op, _, ty, _) = self.nodes.get(other)?;
                let smaller = !op.stores() && own_dims.is_none_or(|own| ty.dims.len() < own.len());
                let larger = own_dims.is_some_and(|own| ty.dims.len() > own.len());
                if larger {
                    // A value with fewer dims leaves the others open.
                    continue;
                }
                let wanted = match smaller {
                    true => {
                        let projected = projected(self.layout(found), &ty.dims)?;
                        self.wanted(projected)
                    }
                    false => found,
                };
                self.assign(other, wanted)?;
            }
        }
        Ok(())
    }
}
