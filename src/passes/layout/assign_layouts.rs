//! Index analysis: which element of its tile each lane, wave, register and replica of a value holds.
//!
//! Sources are `mma` nodes (the matrix instruction dictates the layouts of its operands) and, where no `mma`
//! reaches, what reductions fold, and then writes (spread so that lanes access consecutive bytes). From a
//! source the layout spreads to everything that must agree with it: through element-wise operations, carried
//! values and writes. The first source that reaches a value decides; where an operation needs the value in
//! another layout, it is converted ([`convert_layouts`](super::convert_layouts)).

use bevy_ecs::prelude::*;

use super::conversion_ways::ConversionCosts;
use super::convert_layouts::{ConversionSite, DemandSlot, LayoutDemand, convert_layouts};
use super::element_layouts::{LayoutNodes, projected};
use super::layout_sources::{LayoutSources, SourceKinds};
use super::layout_spread::{ACCUMULATOR, Spread, Wanted};
use super::lds_tiles::{AccessedMemories, LdsTiles};
use super::store_columns::ProductUses;
use crate::codegen::target::DeviceModel;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::{DimTable, KernelName, Locations};
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::op::{CarriedOp, LayoutRule};
use crate::ir::walk::{self, NodeList};
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, Settings};

/// The pass itself; see the module.
pub(crate) fn assign_layouts(
    kernel: Single<(Entity, &Body, &DimTable, &Locations, &Geometry), With<KernelName>>,
    settings: Single<&Settings, With<KernelName>>,
    nodes: LayoutNodes,
    bodies: Query<&'static Body>,
    yields: Query<&'static Yields>,
    accessed: AccessedMemories,
    mut commands: Commands,
) -> PassResult {
    let (root, body, dims, locations, geometry) = *kernel;
    let costs = ConversionCosts::new(DeviceModel::nearest(settings.0.target()), geometry);
    let mut order = NodeList::new();
    walk::preorder(body, &|node| bodies.get(node).ok(), &mut order);
    let sources = LayoutSources {
        nodes: &nodes,
        uses: ProductUses { nodes: &nodes, yields: &yields },
        accessed: &accessed,
        settings: &settings,
        geometry,
        dims,
        locations,
        costs: &costs,
        kinds: SourceKinds::of(&order, &nodes)?,
    };
    let mut spread = Spread::new(&order, &nodes, &yields)?;
    let stored = sources.stored_products()?;
    sources.give_products(&mut spread, &stored)?;
    sources.give_folds(&mut spread)?;
    sources.give_writes(&mut spread)?;
    sources.give_unused_reads(&mut spread)?;
    sources.store_in_rows(&mut spread, &stored)?;
    sources.read_in_rows(&mut spread)?;
    sources.widen_accesses(&mut spread)?;
    spread.settle(&order, &bodies)?;
    let demands = spread.demands(&order, &bodies, &yields, sources.tiles())?;
    for &node in &order {
        if let Some(found) = spread.found[node] {
            commands.entity(node).insert(Placement(spread.layout(found).clone()));
        }
    }
    if demands.is_empty() {
        return Ok(());
    }
    let layouts = |node: Entity| Some(spread.layout(spread.found[node]?).clone());
    let site = ConversionSite {
        root,
        tiles: sources.tiles(),
        nodes: &nodes,
        bodies: &bodies,
        yields: &yields,
        layouts: &layouts,
        geometry,
        costs: &costs,
    };
    convert_layouts(&site, demands, &mut commands)
}

/// The last node inside of a region; the region itself if it holds none.
fn last_inside(region: Entity, bodies: &Query<&'static Body>) -> Entity {
    let mut last = region;
    while let Ok(body) = bodies.get(last)
        && let Some(&inner) = body.0.last()
    {
        last = inner;
    }
    last
}

impl Spread<'_, '_, '_> {
    /// Gives results of products, reductions and loops the layouts that follow from how they are made,
    /// whatever their users want.
    fn settle(&mut self, order: &[Entity], bodies: &Query<&'static Body>) -> PassResult {
        for &node in order {
            let (op, operands, ty, _) = self.nodes.get(node)?;
            if let Some(own) = self.products.get(node).map(|wanted| wanted[ACCUMULATOR])
                && self.found[node].is_some_and(|found| !self.agree(found, own))
            {
                self.found[node] = Some(own);
            } else if op.runs_along().is_some() {
                match self.folds.get(node).copied() {
                    Some(found) => self.force(node, found, &ty.dims)?,
                    None => self.follow(node, operands.at(0)?, &ty.dims)?,
                }
            } else if let LayoutRule::Carried(CarriedOp::LoopResult(number)) = op.layout_rule() {
                let argument = bodies.get(operands.at(0)?)?.at(number as usize)?;
                self.follow(node, argument, &ty.dims)?;
            }
        }
        Ok(())
    }

    /// What nodes need in other layouts than values have, in program order: what a loop hands on it needs
    /// after its body.
    fn demands(
        &mut self,
        order: &[Entity],
        bodies: &Query<&'static Body>,
        yields: &Query<&'static Yields>,
        tiles: LdsTiles,
    ) -> Result<Vec<LayoutDemand>, Diagnostic> {
        let mut demands = Vec::new();
        // The last nodes of loops that are open, and what these hand on.
        let mut open: Vec<(Entity, Vec<LayoutDemand>)> = Vec::new();
        for &node in order {
            let (op, operands, ..) = self.nodes.get(node)?;
            match op.layout_rule() {
                LayoutRule::OfInstruction => {
                    if let Some(wanted) = self.products.get(node) {
                        for (at, wanted) in wanted.clone().into_iter().enumerate() {
                            let value = operands.at(at)?;
                            // Expansion finds the pieces of factors and scales by their coordinates.
                            if at != ACCUMULATOR
                                && self.has_pieces(value, wanted)
                                && !self.is_learned_once(value)?
                            {
                                continue;
                            }
                            self.demand(node, DemandSlot::Operand(at), value, wanted, &mut demands)?;
                        }
                    }
                }
                LayoutRule::Carries => {
                    let arguments = &bodies.get(node)?.0;
                    let carried = operands.0.iter().zip(&yields.get(node)?.0).zip(arguments);
                    let mut handed_on = Vec::new();
                    for (at, ((&init, &next), &argument)) in carried.enumerate() {
                        let Some(own) = self.found[argument] else { continue };
                        self.demand(node, DemandSlot::Operand(at), init, own, &mut demands)?;
                        self.demand(node, DemandSlot::Yield(at), next, own, &mut handed_on)?;
                    }
                    open.push((last_inside(node, bodies), handed_on));
                }
                LayoutRule::WithOperands | LayoutRule::WithValues(_) => {
                    let Some(own) = self.found[node] else { continue };
                    let values = tiles.values_held_alike(node)?;
                    for (at, &value) in operands.0[..values].iter().enumerate() {
                        self.demand(node, DemandSlot::Operand(at), value, own, &mut demands)?;
                    }
                }
                LayoutRule::Along(_) => {
                    let value = operands.at(0)?;
                    if let Some(wanted) = self.folds.get(node).copied().or(self.found[value]) {
                        self.demand(node, DemandSlot::Operand(0), value, wanted, &mut demands)?;
                    }
                }
                LayoutRule::None | LayoutRule::OfUsers | LayoutRule::Own | LayoutRule::Carried(_) => {}
            }
            while let Some((_, handed_on)) = open.pop_if(|(last, _)| *last == node) {
                demands.extend(handed_on);
            }
        }
        Ok(demands)
    }

    /// Gives `node` the layout of `from`, projected on its dimensions.
    fn follow(&mut self, node: Entity, from: Entity, dims: &[Dim]) -> PassResult {
        match self.found[from] {
            Some(found) => self.force(node, found, dims),
            None => Ok(()),
        }
    }

    /// Gives `node` the layout `found`, projected on its dimensions.
    fn force(&mut self, node: Entity, found: Wanted, dims: &[Dim]) -> PassResult {
        let Some(own) = self.found[node] else { return Ok(()) };
        if own != found {
            let forced = projected(self.layout(found), dims)?;
            let forced = self.wanted(forced);
            if !self.agree(own, forced) {
                self.found[node] = Some(forced);
            }
        }
        Ok(())
    }

    /// Whether a value has the pieces that are wanted, in whatever order.
    fn has_pieces(&self, value: Entity, wanted: Wanted) -> bool {
        self.found[value]
            .is_some_and(|found| found == wanted || self.layout(found).holds_pieces_of(self.layout(wanted)))
    }

    /// Whether one of the lanes and waves that hold the same elements learns what the others have to be told:
    /// of copies of an element only the first updates a memory.
    fn is_learned_once(&self, value: Entity) -> Result<bool, Diagnostic> {
        let updates = self.nodes.get(value)?.0.updates();
        Ok(updates && self.found[value].is_some_and(|found| self.layout(found).has_copies()))
    }

    /// Notes what a node needs if a value does not have it.
    fn demand(
        &mut self,
        user: Entity,
        slot: DemandSlot,
        value: Entity,
        wanted: Wanted,
        demands: &mut Vec<LayoutDemand>,
    ) -> PassResult {
        let Some(found) = self.found[value] else { return Ok(()) };
        let learned_once = self.is_learned_once(value)?;
        if !learned_once && (found == wanted || self.layout(found) == self.layout(wanted)) {
            return Ok(());
        }
        let layout = projected(self.layout(wanted), &self.nodes.get(value)?.2.dims)?;
        if learned_once || *self.layout(found) != layout && !self.layout(found).equivalent(&layout) {
            demands.push(LayoutDemand { user, slot, value, layout });
        }
        Ok(())
    }
}
