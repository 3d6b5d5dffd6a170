//! Wide stores of matrix products with narrow results. A matrix instruction gives a lane elements of one
//! column of its result, and neighbouring lanes the columns beside it, so that a row leaves in stores of
//! single elements. Which columns of a tile one instruction computes is free, as long as its right factor
//! has the same ones: lane `l` takes the columns from `c * l` on, one in each of `c` replicas. Then a lane
//! holds `c` consecutive elements of every row, in registers of different instructions, and the epilogue
//! takes them from there ([`Op::Rearrange`]): a row leaves in stores of `c` elements, and neighbouring lanes
//! store side by side.
//!
//! This costs nothing in the loop: as many reads of the right factor as before, of other rows of its buffer,
//! for which `arrange_lds` has swizzles; and nothing in the epilogue, where conversion to the narrow dtype
//! writes other registers anyway. Turning the tile in LDS would take a write of LDS for every element, and
//! an instruction with swapped factors stores parts of 16 rows at a time in place of 4.
//!
//! A factor that is turned on its way through LDS gains for another reason: a lane writes one element of
//! each of several neighbouring rows of the buffer. Where lanes of the readers are as many rows apart, these
//! rows share a phase of the swizzle, so that one register addresses all of the elements. This goes for the
//! columns of the right factor and for the rows of the left one. Where reads of LDS turn tiles, lanes keep to
//! neighbouring columns, which such reads give: in a loop that counts more than how the result is stored.
//!
//! One that is read without LDS and lies across (`[K, M]` of a left factor) gains most: with `r` rows side by
//! side a lane reads `r` elements at a time in place of one, and neighbouring lanes the elements beside
//! these; registers of several reads then make the instruction's factors, two elements by a `v_perm_b32`.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::access_costs::run_clocks;
use super::element_layouts::{LayoutNodes, MAX_ACCESS_BYTES, too_large};
use super::lds_tiles::{AccessedMemories, LdsTiles};
use crate::codegen::target::{DeviceModel, DeviceParameter};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{Dim, Layout, Mma, Mode, Source};
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::op::LayoutRule;
use crate::passes::analysis::memory_strides::in_memory_order;
use crate::passes::facts::Geometry;

/// Bytes of a register: wider stores of elements that fill one take copies, because their registers belong to
/// different instructions.
const REGISTER_BYTES: u32 = 4;

/// The fewest rows or columns side by side that help a turned factor: with two, a lane still needs an address
/// for each pair of its rows, and the readers need more of them.
const FEWEST_TURNED: u32 = 4;

/// A write of results of products.
pub(super) struct StoredResult {
    pub(super) write: Entity,
    /// The dimension whose elements lie side by side in memory.
    inner: Dim,
}

/// How a factor of a product lies in the memory from which it goes through LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum FactorOrder {
    /// Elements of the summed dimension are side by side, or it does not go through LDS.
    Straight,
    /// Elements of its other dimension are: a lane brings a part of several rows of the LDS buffer.
    Turned,
    /// The same, but the chip's reads of LDS turn tiles, of lanes that take neighbouring columns and rows.
    TurnedByReads,
    /// Elements of its other dimension are, and it does not go through LDS: a lane reads a part of several
    /// rows of the memory, and turns it in its registers.
    TurnedInLanes,
}

impl FactorOrder {
    /// Whether so many rows or columns of the factor side by side in a lane help to turn it.
    fn gains_by(self, together: u32) -> bool {
        match self {
            FactorOrder::Straight | FactorOrder::TurnedByReads => false,
            FactorOrder::Turned => together >= FEWEST_TURNED,
            FactorOrder::TurnedInLanes => together > 1,
        }
    }
}

/// Products whose results are written to memory, and those writes.
#[derive(Default)]
pub(super) struct StoredProducts {
    pub(super) writes: SmallVec<[StoredResult; 2]>,
    /// For each product the dimension whose elements lie side by side, and the bytes of one; of those that
    /// nothing may rearrange zero.
    elements: NodeMap<(Dim, u32)>,
}

/// What the search looks at.
pub(super) struct ProductUses<'a, 'w, 's> {
    pub(super) nodes: &'a LayoutNodes<'w, 's>,
    pub(super) yields: &'a Query<'w, 's, &'static Yields>,
}

impl ProductUses<'_, '_, '_> {
    /// Finds the products whose results nothing but element-wise operations see before they are written.
    /// `inner` is the dimension along which the elements of a written value lie side by side in memory, and
    /// `folding` are all products, reductions and scans.
    pub(super) fn stored<'n>(
        &self,
        accesses: &[Entity],
        folding: impl Iterator<Item = &'n Entity>,
        inner: impl Fn(Entity) -> Option<Dim>,
    ) -> Result<StoredProducts, Diagnostic> {
        let mut found = StoredProducts::default();
        for &write in accesses {
            let (op, operands, ..) = self.nodes.get(write)?;
            if !op.stores() {
                continue;
            }
            let (Some(inner), value) = (inner(write), operands.at(0)?) else { continue };
            let bytes = self.nodes.get(value)?.2.dtype.map_or(MAX_ACCESS_BYTES, |dtype| dtype.bytes());
            let mut products: SmallVec<[Entity; 4]> = SmallVec::new();
            self.products_of(value, &mut NodeSet::default(), &mut |product| products.push(product))?;
            for &product in &products {
                // The narrowest elements gain most.
                match found.elements.get(product) {
                    Some(&(_, narrower)) if narrower < bytes => {}
                    _ => found.elements.insert(product, (inner, bytes)),
                }
            }
            if !products.is_empty() {
                found.writes.push(StoredResult { write, inner });
            }
        }
        if found.writes.is_empty() {
            return Ok(found);
        }
        // What is multiplied or folded afterwards stays as the instruction gives it. These values share what
        // has been seen, so that each node is looked at once.
        let mut known = NodeSet::default();
        for &node in folding {
            let (op, operands, ..) = self.nodes.get(node)?;
            let seen = if op.is_product() { &operands.0[..2] } else { &operands.0[..] };
            for &value in seen {
                self.products_of(value, &mut known, &mut |product| {
                    found.elements.insert(product, (Dim(0), 0));
                })?;
            }
        }
        Ok(found)
    }

    /// Notes the products that a value is made of by element-wise operations, apart from what has been seen.
    fn products_of(
        &self,
        value: Entity,
        seen: &mut NodeSet,
        note: &mut dyn FnMut(Entity),
    ) -> Result<(), Diagnostic> {
        let mut queue: SmallVec<[Entity; 16]> = smallvec![value];
        while let Some(node) = queue.pop() {
            if seen.contains(node) {
                continue;
            }
            seen.insert(node);
            let (op, operands, ..) = self.nodes.get(node)?;
            if op.is_product() {
                note(node);
                queue.push(operands.at(2)?);
            } else if let Some(number) = op.carried_result() {
                // What a loop begins with is in the sum as well.
                let (region, number) = (operands.at(0)?, number as usize);
                let (op, operands, ..) = self.nodes.get(region)?;
                queue.extend(op.initial(&operands.0).get(number).copied());
                queue.extend(self.yields.get(region).ok().and_then(|yields| yields.0.get(number).copied()));
            } else if op.layout_rule() == LayoutRule::WithOperands {
                queue.extend_from_slice(&operands.0);
            }
        }
        Ok(())
    }

    /// A write, and what is computed in front of it from results of products: all of one layout.
    pub(super) fn epilogue_of(&self, write: Entity) -> Result<SmallVec<[Entity; 8]>, Diagnostic> {
        let mut epilogue: SmallVec<[Entity; 8]> = smallvec![write];
        let mut known = NodeSet::default();
        let mut at = 0;
        while let Some(&node) = epilogue.get(at) {
            at += 1;
            let (op, operands, ..) = self.nodes.get(node)?;
            let values = if op.stores() {
                &operands.0[..1]
            } else if op.layout_rule() == LayoutRule::WithOperands {
                &operands.0[..]
            } else {
                continue;
            };
            for &value in values {
                let rule = self.nodes.get(value)?.0.layout_rule();
                let follows = matches!(
                    rule,
                    LayoutRule::WithOperands | LayoutRule::OfUsers | LayoutRule::WithValues(_)
                );
                if follows && !known.contains(value) {
                    known.insert(value);
                    epilogue.push(value);
                }
            }
        }
        Ok(epilogue)
    }
}

impl StoredProducts {
    /// How many consecutive columns of the result of a product a lane is to hold, where its wave has `tiles`
    /// tiles of an instruction side by side along `n`: so many that storing an element takes the least time,
    /// and among these the most, because more of them fill a line at once. Of a turned right factor the
    /// most, for the sake of its loads, if these are enough for them.
    pub(super) fn columns(
        &self,
        product: Entity,
        n: Dim,
        tiles: u32,
        right: FactorOrder,
        (mma, device): (Mma, &DeviceModel),
    ) -> u32 {
        let Some((inner, bytes)) = self.rearranged(product) else { return 1 };
        if inner != n || right == FactorOrder::TurnedByReads {
            return 1;
        }
        let most = (MAX_ACCESS_BYTES / bytes).min(1 << tiles.trailing_zeros());
        if right.gains_by(most) {
            return most;
        }
        let clocks = |columns: u32| {
            // Sums of lanes are registers of their own, which can stand side by side from the beginning.
            let is_in_place = bytes < REGISTER_BYTES || columns == 1 || mma.is_of_lanes();
            let copies = if is_in_place { 0 } else { columns * bytes / REGISTER_BYTES };
            let copies = f64::from(copies) * device.get(DeviceParameter::Valu);
            (run_clocks(device, Op::Write, columns * bytes) + copies) / f64::from(columns)
        };
        let possible = (0..=most.ilog2()).map(|power| 1 << power);
        let best = possible.reduce(|best, more| if clocks(more) <= clocks(best) { more } else { best });
        best.unwrap_or(1)
    }

    /// The same of rows, for the loads of a left factor with elements of `bytes`.
    pub(super) fn rows(&self, product: Entity, tiles: u32, left: FactorOrder, bytes: u32) -> u32 {
        let most = (MAX_ACCESS_BYTES / bytes).min(1 << tiles.trailing_zeros());
        if left.gains_by(most) && self.rearranged(product).is_some() { most } else { 1 }
    }

    /// Of a product whose columns and rows may change places: the dimension whose elements lie side by side,
    /// and the bytes of one.
    fn rearranged(&self, product: Entity) -> Option<(Dim, u32)> {
        self.elements.get(product).copied().filter(|&(_, bytes)| bytes > 0)
    }
}

impl StoredResult {
    /// The layout in which a result leaves that is made in `layout`.
    pub(super) fn in_rows(&self, layout: &Layout) -> Result<Option<Layout>, Diagnostic> {
        held_in_rows(layout, self.inner)
    }
}

/// The same elements in each lane as in `layout`, those along `inner` in consecutive registers. Nothing if a
/// lane holds no consecutive ones in its replicas.
pub(super) fn held_in_rows(layout: &Layout, inner: Dim) -> Result<Option<Layout>, Diagnostic> {
    let beside = |mode: &Mode| mode.source == Source::Replica && mode.dim == Some(inner) && mode.stride == 1;
    let Some(columns) = layout.modes().iter().find(|mode| beside(mode)) else { return Ok(None) };
    let moved = |mode: &Mode, source: Source| Mode { source, ..*mode };
    let registers = layout.of_source(Source::Register).map(|mode| moved(mode, Source::Replica));
    let others = layout.modes().iter().filter(|mode| mode.source != Source::Register && !beside(mode));
    let modes = [moved(columns, Source::Register)].into_iter().chain(registers).chain(others.copied());
    Layout::new(modes).map(Some).map_err(too_large)
}

/// How a factor with the dimensions `row` and `k`, which is summed over, lies in its memory.
pub(super) fn factor_order(
    factor: Entity,
    [row, k]: [Dim; 2],
    tiles: LdsTiles,
) -> Result<FactorOrder, Diagnostic> {
    let LdsTiles { nodes, accessed, geometry } = tiles;
    let factor = cast_from(factor, nodes)?;
    let (op, operands, ..) = nodes.get(factor)?;
    let (mapping, .., turns_units, _) = accessed.get(factor)?;
    if !op.loads() {
        return Ok(FactorOrder::Straight);
    }
    let memory = operands.last()?;
    if !tiles.are_read_by(factor)? {
        let turned = !turns_units && side_by_side(factor, nodes, accessed, geometry) == Some(row);
        return Ok(if turned { FactorOrder::TurnedInLanes } else { FactorOrder::Straight });
    }
    // A tile of a mapped read has the dimensions of the value. Words of units are innermost in both.
    let of_tile = if mapping.is_some() { factor } else { memory };
    let turned = mapping.is_none() && turns_units || nodes.get(of_tile)?.2.dims.last() != Some(&k);
    Ok(if turned { FactorOrder::Turned } else { FactorOrder::Straight })
}

/// What a value is cast from, or itself.
pub(super) fn cast_from(mut value: Entity, nodes: &LayoutNodes) -> Result<Entity, Diagnostic> {
    loop {
        let (op, operands, ..) = nodes.get(value)?;
        match (op.layout_rule(), &operands.0[..]) {
            (LayoutRule::WithOperands, &[of]) => value = of,
            _ => return Ok(value),
        }
    }
}

/// The dimension along which elements that are read of a global memory or written to it lie side by side.
pub(super) fn side_by_side(
    access: Entity,
    nodes: &LayoutNodes,
    accessed: &AccessedMemories,
    geometry: &Geometry,
) -> Option<Dim> {
    let (op, operands, ty, _) = nodes.get(access).ok()?;
    let memory = operands.last().ok()?;
    let (of_memory, _, memory_type, _) = nodes.get(memory).ok()?;
    if *of_memory != Op::Memory {
        return None;
    }
    let Some(mapping) = accessed.get(access).ok()?.0 else { return memory_type.dims.last().copied() };
    let inner = in_memory_order(mapping, accessed.get(memory).ok()?.2).last()?.as_symbol()?;
    let value = if op.loads() { ty } else { nodes.get(operands.at(0).ok()?).ok()?.2 };
    value.dims.iter().copied().find(|&dim| geometry.dim(dim).symbol == inner)
}

/// The dimensions of a mapped value in the order in which they lie in the memory, as far as the mapping says:
/// each goes with the last coordinate that it is a part of. Nothing if the last coordinate is not a dimension
/// of the value, so that nobody can say which elements are side by side.
pub(super) fn ordered_dims(
    mapping: &Mapping,
    strides: Option<&Strides>,
    dims: &[Dim],
    geometry: &Geometry,
) -> Option<Dims> {
    let dim_of = |symbol| dims.iter().copied().find(|&dim| geometry.dim(dim).symbol == symbol);
    let coordinates = in_memory_order(mapping, strides);
    let inner = dim_of(coordinates.last()?.as_symbol()?)?;
    let mut ordered = Dims::new();
    for coordinate in &coordinates {
        let part = Mapping(SmallVec::from_elem(coordinate.clone(), 1));
        part.visit(&mut |symbol| {
            if let Some(dim) = dim_of(symbol) {
                ordered.retain(|&mut other| other != dim);
                ordered.push(dim);
            }
        });
    }
    let complete = ordered.len() == dims.len() && ordered.last() == Some(&inner);
    complete.then_some(ordered)
}
