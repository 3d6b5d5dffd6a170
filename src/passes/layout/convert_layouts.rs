//! Conversions of layouts: where an operation needs a value spread over the lanes in another way than the
//! value is, it gets what costs least. Constants, places of elements and comparisons are made again. What
//! every lane has in other registers is renamed. Where every wave keeps its elements, lanes take them from
//! each other, one exchange after the other, if that costs less than a round trip through LDS
//! (`conversion_ways`); anything else is written to an LDS buffer of its own and read back, right in front of
//! the operation, or in front of the loop around it that the value comes from outside of. In the same way all
//! copies of an element learn what an atomic update by the first of them gives back.
//!
//! A product takes a factor with the k that its lanes have, if the other factor can be read likewise
//! (`chained_products`), and in any order of pieces. A value that is renamed or moved across lanes is an
//! `Op::Rearrange` node; a round trip through LDS is an ordinary write and read, with a barrier if elements
//! change their waves, or if the kernel shares LDS otherwise (`place_barriers`). `ir/layout/within_wave`
//! finds the steps, `codegen/target/lane_moves` says by what instruction lanes take registers of each other,
//! and `codegen/lower/operations/rearrange` makes them. The report lists conversions.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::conversion_ways::{BestWay, ConversionCosts, ConversionWay};
use super::element_layouts::{LayoutNodes, projected};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Layout;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::NodeBundle;
use crate::ir::op::OpClass;
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, LayoutConversion};

/// A value that a node needs in a layout.
pub(super) struct LayoutDemand {
    /// The node, or the loop that hands the value on.
    pub(super) user: Entity,
    pub(super) slot: DemandSlot,
    pub(super) value: Entity,
    pub(super) layout: Layout,
}

/// Which of its values a node needs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DemandSlot {
    /// An operand.
    Operand(usize),
    /// A value that the body of a loop yields.
    Yield(usize),
}

/// What conversions look at.
pub(super) struct ConversionSite<'a, 'w, 's> {
    pub(super) root: Entity,
    pub(super) nodes: &'a LayoutNodes<'w, 's>,
    pub(super) bodies: &'a Query<'w, 's, &'static Body>,
    pub(super) yields: &'a Query<'w, 's, &'static Yields>,
    pub(super) geometry: &'a Geometry,
    pub(super) costs: &'a ConversionCosts,
    /// The layouts of values, by node.
    pub(super) layouts: &'a dyn Fn(Entity) -> Option<Layout>,
}

/// Gives all nodes what they demand; `demands` are in program order.
pub(super) fn convert_layouts(
    site: &ConversionSite,
    demands: Vec<LayoutDemand>,
    commands: &mut Commands,
) -> PassResult {
    let mut converter = Converter {
        site,
        region_of: NodeMap::default(),
        home: site.root,
        made: Vec::new(),
        allocations: NodeList::new(),
        before: NodeMap::default(),
        at_end: NodeMap::default(),
        operands: Vec::new(),
        yields: Vec::new(),
    };
    converter.note_regions(site.root);
    for demand in demands {
        converter.satisfy(demand, commands)?;
    }
    converter.finish(commands)
}

struct Converter<'a, 'w, 's> {
    site: &'a ConversionSite<'a, 'w, 's>,
    /// The region that a node stands in.
    region_of: NodeMap<Entity>,
    /// The region in which the nodes are put that are made at the moment: that of the value that is asked
    /// for.
    home: Entity,
    /// Conversions so far: the value, its layout, and the node that has it with its region.
    made: Vec<(Entity, Layout, [Entity; 2])>,
    allocations: NodeList,
    /// New nodes in front of a node, and at the end of a loop's body.
    before: NodeMap<NodeList>,
    at_end: NodeMap<NodeList>,
    operands: Vec<(Entity, Operands)>,
    yields: Vec<(Entity, Yields)>,
}

impl Converter<'_, '_, '_> {
    fn note_regions(&mut self, region: Entity) {
        let Ok(body) = self.site.bodies.get(region) else { return };
        for &node in &body.0 {
            self.region_of.insert(node, region);
            self.note_regions(node);
        }
    }

    fn satisfy(&mut self, demand: LayoutDemand, commands: &mut Commands) -> PassResult {
        let LayoutDemand { user, slot, value, layout } = demand;
        let mut new = NodeList::new();
        let (op, _, _, origin) = self.site.nodes.get(user)?;
        let asking = (op.row().word, *origin);
        let home = self.region(value);
        self.home = home;
        let converted = self.bring(value, &layout, asking, &mut new, commands)?;
        match slot {
            DemandSlot::Operand(at) => {
                self.place_before(user, home, new);
                let known = match self.operands.iter().position(|known| known.0 == user) {
                    Some(known) => known,
                    None => {
                        self.operands.push((user, self.site.nodes.get(user)?.1.clone()));
                        self.operands.len() - 1
                    }
                };
                self.operands[known].1.0[at] = converted;
            }
            DemandSlot::Yield(at) => {
                // What comes from outside of the loop is converted in front of it.
                match home == user {
                    true => add(&mut self.at_end, user, new),
                    false => self.place_before(user, home, new),
                }
                let known = match self.yields.iter().position(|known| known.0 == user) {
                    Some(known) => known,
                    None => {
                        self.yields.push((user, self.site.yields.get(user)?.clone()));
                        self.yields.len() - 1
                    }
                };
                self.yields[known].1.0[at] = converted;
            }
        }
        Ok(())
    }

    /// Puts new nodes in front of `user`, or of the node around it that stands in the region `home`.
    fn place_before(&mut self, user: Entity, home: Entity, new: NodeList) {
        let mut anchor = user;
        while let Some(&region) = self.region_of.get(anchor)
            && region != home
            && region != self.site.root
        {
            anchor = region;
        }
        add(&mut self.before, anchor, new);
    }

    /// The region that a value stands in.
    fn region(&self, value: Entity) -> Entity {
        self.region_of.get(value).copied().unwrap_or(self.site.root)
    }

    /// A node made before that has a value in such a layout. An operand that was brought along with a
    /// condition stands in the region of that, and is not there for a loop beside it.
    fn made_before(&self, value: Entity, is_it: &impl Fn(&Layout) -> bool) -> Option<Entity> {
        let is_there = |region: Entity| region == self.home || region == self.region(value);
        let known = self
            .made
            .iter()
            .find(|(of, layout, [_, region])| *of == value && is_there(*region) && is_it(layout));
        known.map(|(.., [made, _])| *made)
    }

    /// A node that has `value` in `layout`, for an operation with a word and an origin.
    fn bring(
        &mut self,
        value: Entity,
        layout: &Layout,
        user: (&'static str, Origin),
        new: &mut NodeList,
        commands: &mut Commands,
    ) -> Result<Entity, Diagnostic> {
        let is_it = |own: &Layout| own == layout || own.equivalent(layout);
        let Some(own) = (self.site.layouts)(value) else { return Ok(value) };
        let (op, operands, ty, origin) = self.site.nodes.get(value)?;
        let learned_once = op.updates() && own.has_copies();
        if is_it(&own) && !learned_once {
            return Ok(value);
        }
        if let Some(known) = self.made_before(value, &is_it) {
            return Ok(known);
        }
        let again = op.row().class == OpClass::Constant || ty.dtype == Some(DType::I1);
        let made = if again {
            let mut brought: SmallVec<[Entity; 4]> = SmallVec::new();
            for &operand in &operands.0 {
                let dims = &self.site.nodes.get(operand)?.2.dims;
                brought.push(self.bring(operand, &projected(layout, dims)?, user, new, commands)?);
            }
            let node = NodeBundle { op: *op, operands: Operands(brought), ty: ty.clone(), origin: *origin };
            let made = commands.spawn((node, Placement(layout.clone()))).id();
            new.push(made);
            made
        } else {
            let costs = self.site.costs;
            let best = match learned_once {
                true => costs.through_lds(&own, layout, ty),
                false => costs.best_way(&own, layout, ty),
            };
            let BestWay { way, steps, cost } = best;
            let (vector, lds) = (cost.vector, cost.lds);
            let why = LayoutConversion { user: user.0, origin: user.1, vector, lds };
            match way {
                ConversionWay::Renamed | ConversionWay::AcrossLanes => {
                    let (mut made, last) = (value, steps.len().saturating_sub(1));
                    for (at, step) in steps.into_iter().enumerate() {
                        let operands = Operands(smallvec![made]);
                        let node =
                            NodeBundle { op: Op::Rearrange, operands, ty: ty.clone(), origin: *origin };
                        let mut node = commands.spawn((node, Placement(step)));
                        if at == last {
                            node.insert(why);
                        }
                        made = node.id();
                        new.push(made);
                    }
                    made
                }
                ConversionWay::ThroughLds => {
                    let buffer = NodeBundle { ty: ty.clone(), ..NodeBundle::effect(Op::Allocate, *origin) };
                    let buffer = commands.spawn((buffer, Space(AddressSpace::Shared))).id();
                    self.allocations.push(buffer);
                    let operands = Operands(smallvec![value, buffer]);
                    let write = NodeBundle { operands, ..NodeBundle::effect(Op::Write, *origin) };
                    let mut write = commands.spawn((write, Placement(own)));
                    if learned_once {
                        // At coordinates, where the lanes that know nothing are switched off.
                        let symbols = ty.dims.iter().map(|&dim| self.site.geometry.dim(dim).symbol);
                        write.insert(Mapping::identity(symbols));
                    }
                    let write = write.id();
                    let operands = Operands(smallvec![buffer]);
                    let read = NodeBundle { op: Op::Read, operands, ty: ty.clone(), origin: *origin };
                    let read = commands.spawn((read, Placement(layout.clone()), why)).id();
                    new.extend([write, read]);
                    read
                }
            }
        };
        self.made.push((value, layout.clone(), [made, self.home]));
        Ok(made)
    }

    /// Rewrites bodies, operands and yields.
    fn finish(self, commands: &mut Commands) -> PassResult {
        self.body(self.site.root, commands)?;
        for (user, operands) in self.operands {
            commands.entity(user).insert(operands);
        }
        for (user, yields) in self.yields {
            commands.entity(user).insert(yields);
        }
        Ok(())
    }

    fn body(&self, region: Entity, commands: &mut Commands) -> PassResult {
        let old = &self.site.bodies.get(region)?.0;
        let mut body = Vec::with_capacity(old.len());
        if region == self.site.root {
            body.extend_from_slice(&self.allocations);
        }
        for &node in old {
            body.extend(self.before.get(node).into_iter().flatten());
            body.push(node);
            if self.site.bodies.contains(node) {
                self.body(node, commands)?;
            }
        }
        body.extend(self.at_end.get(region).into_iter().flatten());
        commands.entity(region).insert(Body(body));
        Ok(())
    }
}

fn add(lists: &mut NodeMap<NodeList>, at: Entity, new: NodeList) {
    match lists.get_mut(at) {
        Some(list) => list.extend(new),
        None => lists.insert(at, new),
    }
}
