//! Conversions of layouts: where an operation needs a value spread over the lanes in another way than the
//! value is, it gets what costs least. Constants, places of elements and comparisons are made again. What
//! every lane has in other registers is renamed. Where every wave keeps its elements, lanes take them from
//! each other, one exchange after the other, if that costs less than a round trip through LDS
//! (`conversion_ways`); anything else is written to an LDS buffer of its own and read back, right in front of
//! the operation, or in front of the loop around it that the value comes from outside of. In the same way all
//! copies of an element learn what an atomic update by the first of them gives back.
//!
//! A tile that goes through LDS is read there once more instead, in the layout that is wanted.
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
use super::lds_tiles::LdsTiles;
use super::store_columns::{cast_from, held_in_rows};
use crate::ir::access_flags::MemoryAccessFlags;
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
    pub(super) tiles: LdsTiles<'a, 'w, 's>,
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
        let tiles = self.site.tiles;
        let again = op.row().class == OpClass::Constant
            || ty.dtype == Some(DType::I1)
            || !op.is_access() && tiles.are_read_again_by(cast_from(value, self.site.nodes)?)?;
        let made = if tiles.are_read_again_by(value)? {
            self.read_again(value, layout, user, new, commands)?
        } else if again {
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
                    self.rearranged((value, value), steps, why, new, commands)?
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

    /// A value that is `like` another one, with its elements in other places, step by step.
    fn rearranged(
        &self,
        (value, like): (Entity, Entity),
        steps: SmallVec<[Layout; 4]>,
        why: LayoutConversion,
        new: &mut NodeList,
        commands: &mut Commands,
    ) -> Result<Entity, Diagnostic> {
        let (_, _, ty, &origin) = self.site.nodes.get(like)?;
        let (mut made, last) = (value, steps.len().saturating_sub(1));
        for (at, step) in steps.into_iter().enumerate() {
            let operands = Operands(smallvec![made]);
            let node = NodeBundle { op: Op::Rearrange, operands, ty: ty.clone(), origin };
            let mut node = commands.spawn((node, Placement(step)));
            if at == last {
                node.insert(why);
            }
            made = node.id();
            new.push(made);
        }
        Ok(made)
    }

    /// Another read of a tile that goes through LDS: in the layout that is wanted, or else, where no read of
    /// LDS turns elements, along the rows of the tile, which lanes then turn in their registers.
    fn read_again(
        &self,
        read: Entity,
        layout: &Layout,
        user: (&'static str, Origin),
        new: &mut NodeList,
        commands: &mut Commands,
    ) -> Result<Entity, Diagnostic> {
        let (&op, operands, ty, &origin) = self.site.nodes.get(read)?;
        let along_rows = self.along_rows(layout, ty)?;
        let (held, turning) = match along_rows {
            Some((rows, turning)) => (rows, Some(turning)),
            None => (layout.clone(), None),
        };
        let node = NodeBundle { op, operands: operands.clone(), ty: ty.clone(), origin };
        let again = commands.spawn((node, Placement(held))).id();
        commands.entity(read).clone_components::<(Mapping, MemoryAccessFlags, Tag)>(again);
        new.push(again);
        let Some(BestWay { steps, cost, .. }) = turning else { return Ok(again) };
        let why = LayoutConversion { user: user.0, origin: user.1, vector: cost.vector, lds: cost.lds };
        self.rearranged((again, read), steps, why, new, commands)
    }

    /// The layout in which a lane reads what it needs of a tile along its rows, and the way from there, if
    /// that costs less than single elements do, and no read of LDS turns the tile.
    fn along_rows(&self, layout: &Layout, ty: &ValueType) -> Result<Option<(Layout, BestWay)>, Diagnostic> {
        let costs = self.site.costs;
        let dtype = ty.dtype.unwrap_or(DType::F32);
        let (Some(&inner), None) = (ty.dims.last(), costs.device.target.transposing_read(dtype.bits()))
        else {
            return Ok(None);
        };
        let Some(rows) = held_in_rows(layout, inner)? else { return Ok(None) };
        let turning = costs.best_way(&rows, layout, ty);
        let reads = |layout: &Layout| costs.lds_reads(layout, inner, dtype.bytes());
        let pays =
            turning.way != ConversionWay::ThroughLds && reads(&rows) + turning.cost.clk < reads(layout);
        Ok(pays.then_some((rows, turning)))
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
