//! Sources of layouts: matrix products, then what reductions and scans fold, then what is written, and last
//! what is read for nobody. Each stage gives its nodes a layout and lets it spread; two more change layouts
//! of single accesses for the better.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::access_costs::access_clocks;
use super::conversion_ways::ConversionCosts;
use super::element_layouts::{LayoutNodes, MAX_ACCESS_BYTES, element_layout, folded_layout, keeps_open_dims};
use super::layout_spread::{ACCUMULATOR, Spread, Wanted};
use super::lds_tiles::{AccessedMemories, LdsTiles};
use super::mma_layouts::MmaSource;
use super::store_columns::{
    FactorOrder, ProductUses, StoredProducts, cast_from, factor_order, held_in_rows, ordered_dims,
    side_by_side,
};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::{DimTable, Locations};
use crate::ir::layout::{Dim, Layout, Mma, Mode, Source};
use crate::ir::node::*;
use crate::ir::op::{AlongDimOp, LayoutRule, OpFamily};
use crate::ir::type_rules::contraction::MmaDims;
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, Settings, TransposingRead};

/// Only where so many times fewer instructions are possible is it worth looking what they cost.
const WIDER: u32 = 8;

/// The largest tile, in bytes, that goes through LDS only to be accessed in a better way.
const LARGEST_TURNED: u64 = 32 << 10;

/// The nodes that decide about layouts, each kind in program order.
#[derive(Default)]
pub(super) struct SourceKinds {
    /// Matrix products.
    products: NodeList,
    /// Reductions and scans.
    folds: NodeList,
    /// Reads, writes and atomics.
    accesses: NodeList,
}

/// The same, with what they are judged by.
pub(super) struct LayoutSources<'a, 'w, 's> {
    pub(super) nodes: &'a LayoutNodes<'w, 's>,
    pub(super) uses: ProductUses<'a, 'w, 's>,
    pub(super) accessed: &'a AccessedMemories<'w, 's>,
    pub(super) settings: &'a Settings,
    pub(super) geometry: &'a Geometry,
    pub(super) dims: &'a DimTable,
    pub(super) locations: &'a Locations,
    pub(super) costs: &'a ConversionCosts,
    pub(super) kinds: SourceKinds,
}

/// A layout of sums, by number, and the columns and rows side by side in it.
struct SummedLayout {
    layout: Wanted,
    mma: Mma,
    columns: u32,
    rows: u32,
}

impl SourceKinds {
    /// Sorts the nodes of `order` by what they decide.
    ///
    /// # Errors
    /// A node lacks what nodes have.
    pub(super) fn of(order: &[Entity], nodes: &LayoutNodes) -> Result<SourceKinds, Diagnostic> {
        let mut kinds = SourceKinds::default();
        for &node in order {
            let own = match nodes.get(node)?.0.layout_rule() {
                LayoutRule::OfInstruction => &mut kinds.products,
                LayoutRule::Along(_) => &mut kinds.folds,
                LayoutRule::WithValues(_) => &mut kinds.accesses,
                LayoutRule::None
                | LayoutRule::OfUsers
                | LayoutRule::Own
                | LayoutRule::WithOperands
                | LayoutRule::Carries
                | LayoutRule::Carried(_) => continue,
            };
            own.push(node);
        }
        Ok(kinds)
    }
}

impl LayoutSources<'_, '_, '_> {
    /// Products that are written, whose columns and rows may be chosen for the writes.
    ///
    /// # Errors
    /// A node lacks what nodes have.
    pub(super) fn stored_products(&self) -> Result<StoredProducts, Diagnostic> {
        if self.kinds.products.is_empty() {
            return Ok(StoredProducts::default());
        }
        let inner = |write| side_by_side(write, self.nodes, self.accessed, self.geometry);
        self.uses.stored(&self.kinds.accesses, self.kinds.products.iter().chain(&self.kinds.folds), inner)
    }

    /// The matrix instruction of a product dictates the layouts of its operands.
    ///
    /// # Errors
    /// A product without a matrix instruction, or with one that does not fit its tiles.
    pub(super) fn give_products(
        &self,
        spread: &mut Spread<'_, '_, '_>,
        stored: &StoredProducts,
    ) -> PassResult {
        let mut sums: SmallVec<[SummedLayout; 4]> = SmallVec::new();
        for &node in &self.kinds.products {
            let (op, operands, ty, origin) = self.nodes.get(node)?;
            let Some(choice) = op.product() else { continue };
            let source = self.product_source(spread, node, choice, stored, &sums)?;
            let layouts = self
                .product_layouts(spread, &source, operands, ty)
                .map_err(|d| d.at(self.locations.get(origin.0)))?;
            let mut wanted: SmallVec<[Wanted; 5]> =
                layouts.into_iter().map(|layout| spread.wanted(layout)).collect();
            for scales in source.scale_layouts(self.nodes, operands)? {
                wanted.push(spread.wanted(scales));
            }
            for (at, &wanted) in wanted.iter().enumerate() {
                spread.assign(operands.0[at], wanted)?;
            }
            // That of the accumulator, which another source may have given it, if both are the same.
            let own = wanted[ACCUMULATOR];
            let own = spread.found[operands.0[ACCUMULATOR]]
                .filter(|&found| spread.agree(found, own))
                .unwrap_or(own);
            spread.assign(node, own)?;
            if let Err(at) = sums.binary_search_by_key(&own, |sum| sum.layout) {
                let MmaSource { mma, columns, rows, .. } = source;
                sums.insert(at, SummedLayout { layout: own, mma, columns, rows });
            }
            spread.products.insert(node, wanted);
            for (at, together) in [source.rows, source.columns].into_iter().enumerate() {
                if together > 1 && self.order_in_memory(&source, operands, at)? == FactorOrder::TurnedInLanes
                {
                    spread.turned.push(cast_from(operands.at(at)?, self.nodes)?);
                }
            }
            spread.run()?;
        }
        spread.of_matrix = spread.layouts.len();
        Ok(())
    }

    /// A product as a source, with the columns and rows that a lane is to hold side by side; `sums` are the
    /// layouts of the products before.
    fn product_source(
        &self,
        spread: &Spread<'_, '_, '_>,
        node: Entity,
        choice: MmaChoice,
        stored: &StoredProducts,
        sums: &[SummedLayout],
    ) -> Result<MmaSource<'_>, Diagnostic> {
        let (_, operands, ty, origin) = self.nodes.get(node)?;
        let ty_of = |at: usize| self.nodes.get(operands.0[at]).map(|n| n.2);
        let roles = MmaDims::held(ty_of(0)?, ty_of(1)?, ty_of(2)?)
            .map_err(|text| Diagnostic::new(Kind::Bug, text))?;
        let mma = match choice {
            MmaChoice::Explicit(mma) => Some(mma),
            MmaChoice::Kernel => self.geometry.instruction(),
            MmaChoice::Shape(_) => None,
        };
        let mma = mma.ok_or_else(|| without_instruction().at(self.locations.get(origin.0)))?;
        let held = [0, 1].map(|at| mma.held(at));
        let words = held.map(|held| held.words);
        let Self { nodes, geometry, dims, .. } = *self;
        let mut source =
            MmaSource { mma, roles, geometry, dims, columns: 1, rows: 1, words, run: None, blocks: 1 };
        source.check(nodes, operands, ty).map_err(|d| d.at(self.locations.get(origin.0)))?;
        let has_scales = operands.0.len() > ACCUMULATOR + 1;
        if has_scales {
            source.blocks = source.blocks_held()?;
        }
        let [left, right] =
            [self.order_in_memory(&source, operands, 0)?, self.order_in_memory(&source, operands, 1)?];
        for (at, order) in [left, right].into_iter().enumerate() {
            if order == FactorOrder::TurnedByReads {
                source.words[at] = held[at].taken;
            }
        }
        let tiles = [source.extent(roles.m)? / mma.m(), source.extent(roles.n)? / mma.n()];
        source.columns = stored.columns(node, roles.n, tiles[1], right, (mma, self.costs.device));
        source.rows = stored.rows(node, tiles[0], left, mma.held(0).dtype.bytes());
        // What a product adds to keeps the layout of the product before: in a loop it would be converted
        // twice in each iteration.
        let before = spread.found[operands.0[ACCUMULATOR]];
        if let Some(before) = before
            && let Ok(at) = sums.binary_search_by_key(&before, |sum| sum.layout)
            && sums[at].mma == mma
        {
            let reads_turn = |order| order == FactorOrder::TurnedByReads;
            source.columns = if reads_turn(right) { source.columns } else { sums[at].columns };
            source.rows = if reads_turn(left) { source.rows } else { sums[at].rows };
        }
        if [left, right] == [FactorOrder::TurnedByReads; 2] && !has_scales && source.has_runs() {
            source.run = Some(TransposingRead::elements_of(mma.input().bits()));
        }
        Ok(source)
    }

    /// How factor number `at` of a product lies in its memory. Where reads of LDS turn it, nothing is gained
    /// by rows of it side by side.
    pub(super) fn order_in_memory(
        &self,
        source: &MmaSource<'_>,
        operands: &Operands,
        at: usize,
    ) -> Result<FactorOrder, Diagnostic> {
        let row = [source.roles.m, source.roles.n][at];
        let dims = [row, source.roles.k[at].innermost()];
        let mut order = factor_order(operands.at(at)?, dims, self.tiles())?;
        let bits = source.mma.inputs()[at].bits();
        let target = self.settings.0.target();
        if order == FactorOrder::TurnedInLanes && source.mma.is_of_lanes() {
            // Lanes that multiply one by one hold so many rows already.
            return Ok(FactorOrder::Straight);
        }
        if order == FactorOrder::Turned {
            if target.transposing_read(bits).is_some() {
                order = FactorOrder::TurnedByReads;
            } else if self.is_multiplied_straight(operands.at(at)?)? {
                order = FactorOrder::TurnedInLanes;
            }
        }
        Ok(order)
    }

    /// True for a tile of LDS that another product takes as it lies in memory: it is not turned there.
    fn is_multiplied_straight(&self, factor: Entity) -> Result<bool, Diagnostic> {
        let read = cast_from(factor, self.nodes)?;
        if !self.tiles().are_read_again_by(read)? {
            return Ok(false);
        }
        for &product in &self.kinds.products {
            let (_, operands, ..) = self.nodes.get(product)?;
            let ty_of = |at: usize| self.nodes.get(operands.0[at]).map(|n| n.2);
            let roles = MmaDims::held(ty_of(0)?, ty_of(1)?, ty_of(2)?)
                .map_err(|text| Diagnostic::new(Kind::Bug, text))?;
            for (at, row) in [roles.m, roles.n].into_iter().enumerate() {
                if cast_from(operands.at(at)?, self.nodes)? == read {
                    let order = factor_order(operands.at(at)?, [row, roles.k[at].innermost()], self.tiles())?;
                    if order == FactorOrder::Straight {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Reads of shared memories, as these nodes have them.
    pub(super) fn tiles(&self) -> LdsTiles<'_, '_, '_> {
        LdsTiles { nodes: self.nodes, accessed: self.accessed, geometry: self.geometry }
    }

    /// Reductions and scans spread what they fold so that the order of sums is that of the source.
    ///
    /// # Errors
    /// A value that has no layout along what is folded.
    pub(super) fn give_folds(&self, spread: &mut Spread<'_, '_, '_>) -> PassResult {
        // The first layout that was chosen for a reduction or scan of values of some dimensions.
        let mut before: SmallVec<[(Dims, Wanted); 4]> = SmallVec::new();
        for &node in &self.kinds.folds {
            let (op, operands, _, origin) = self.nodes.get(node)?;
            let OpFamily::AlongDim(op) = op.family() else { continue };
            let (folded, reduction) = match op {
                AlongDimOp::Reduce(reduction) => (reduction.dim, Some(reduction.op)),
                AlongDimOp::Scan(scan) => (scan.dim, None),
                AlongDimOp::Sort(_) => continue,
            };
            let value = operands.at(0)?;
            let ty = self.nodes.get(value)?.2;
            let is_scan = reduction.is_none();
            // Where every order gives the same bits, no layout is better than the one that is there.
            let is_ordered = reduction.is_none_or(|op| op.depends_on_order(ty.dtype));
            let keeps_open = is_ordered && keeps_open_dims(self.geometry, &ty.dims, folded);
            let found = spread.found[value];
            if let Some(found) = found
                && (!keeps_open || (found as usize) < spread.of_matrix)
                && (!is_scan || is_in_order(spread.layout(found), folded))
            {
                // In layouts of matrix instructions, dimensions do not depend on each other.
                if keeps_open || is_scan {
                    spread.folds.insert(node, found);
                }
                continue;
            }
            // Then values of the same dimensions are best all held alike.
            if let (None, false) = (found, is_ordered)
                && let Some(alike) = before.iter().find(|before| before.0 == ty.dims)
            {
                spread.give(value, alike.1)?;
                continue;
            }
            let narrowest = spread.narrowest_read(value)?.or(ty.dtype);
            let layout = folded_layout(self.geometry, &ty.dims, folded, narrowest, self.dims)
                .map_err(|d| d.at(self.locations.get(origin.0)))?;
            let wanted = match found {
                Some(found) if is_same_along(spread.layout(found), &layout, folded) => found,
                _ => spread.wanted(layout),
            };
            if keeps_open || is_scan {
                spread.folds.insert(node, wanted);
            }
            if !before.iter().any(|before| before.0 == ty.dims) {
                before.push((ty.dims.clone(), wanted));
            }
            spread.give(value, wanted)?;
        }
        Ok(())
    }

    /// Written values are spread so that lanes access consecutive bytes.
    ///
    /// # Errors
    /// A value that cannot be spread over the waves.
    pub(super) fn give_writes(&self, spread: &mut Spread<'_, '_, '_>) -> PassResult {
        for &node in &self.kinds.accesses {
            let (op, operands, _, origin) = self.nodes.get(node)?;
            if !op.is_write() || spread.found[node].is_some() {
                continue;
            }
            // What is written has the memory's dimensions in another order, or, with a mapping, dimensions of
            // its own, in an order that the mapping may say.
            let mapping = self.accessed.get(node)?.0;
            let written = if mapping.is_some() { operands.at(0)? } else { operands.last()? };
            let written = self.nodes.get(written)?.2;
            let strides = self.accessed.get(operands.last()?)?.2;
            let ordered =
                mapping.and_then(|mapping| ordered_dims(mapping, strides, &written.dims, self.geometry));
            let written_dims = ordered.as_ref().unwrap_or(&written.dims);
            self.give_elements(spread, node, (written_dims, written.dtype), origin)?;
        }
        Ok(())
    }

    /// Reads that nobody uses have a layout, too: they are done all the same, if they are volatile.
    ///
    /// # Errors
    /// A value that cannot be spread over the waves.
    pub(super) fn give_unused_reads(&self, spread: &mut Spread<'_, '_, '_>) -> PassResult {
        for &node in &self.kinds.accesses {
            let (op, _, ty, origin) = self.nodes.get(node)?;
            if op.loads() && spread.found[node].is_none() {
                self.give_elements(spread, node, (&ty.dims, ty.dtype), origin)?;
            }
        }
        Ok(())
    }

    /// Gives an access a layout in which lanes access consecutive bytes of a value of these dimensions.
    fn give_elements(
        &self,
        spread: &mut Spread<'_, '_, '_>,
        node: Entity,
        (dims, dtype): (&Dims, Option<DType>),
        origin: &Origin,
    ) -> PassResult {
        let layout = element_layout(self.geometry, dims, dtype, self.dims)
            .map_err(|d| d.at(self.locations.get(origin.0)))?;
        let wanted = spread.wanted(layout);
        spread.give(node, wanted)
    }

    /// Results of products leave in rows where a lane holds consecutive elements of these.
    ///
    /// # Errors
    /// A layout that is too large.
    pub(super) fn store_in_rows(
        &self,
        spread: &mut Spread<'_, '_, '_>,
        stored: &StoredProducts,
    ) -> PassResult {
        for result in &stored.writes {
            let Some(made) = spread.found[result.write] else { continue };
            let Some(layout) = result.in_rows(spread.layout(made))? else { continue };
            let rows = spread.wanted(layout);
            for node in self.uses.epilogue_of(result.write)? {
                if spread.found[node].is_some() {
                    spread.found[node] = Some(spread.projected(rows, node)?);
                }
            }
        }
        Ok(())
    }

    /// What a lane reads of several rows it reads along them where that pays, and turns it in its registers.
    ///
    /// # Errors
    /// A layout that is too large.
    pub(super) fn read_in_rows(&self, spread: &mut Spread<'_, '_, '_>) -> PassResult {
        for node in std::mem::take(&mut spread.turned) {
            let (op, _, ty, _) = self.nodes.get(node)?;
            let Some(found) = spread.found[node] else { continue };
            let Some(inner) = side_by_side(node, self.nodes, self.accessed, self.geometry) else {
                continue;
            };
            let used = spread.layout(found);
            let Some(rows) = held_in_rows(used, inner)? else { continue };
            let bytes = ty.dtype.map_or(4, DType::bytes);
            let clocks = |layout: &Layout| access_clocks(self.costs.device, *op, layout, inner, bytes);
            if clocks(&rows) + self.costs.best_way(&rows, used, ty).cost.clk < clocks(used) {
                spread.found[node] = Some(spread.wanted(rows));
            }
        }
        Ok(())
    }

    /// Accesses take another layout than their values where that pays, conversion included.
    ///
    /// # Errors
    /// A node lacks what nodes have.
    pub(super) fn widen_accesses(&self, spread: &mut Spread<'_, '_, '_>) -> PassResult {
        for &node in &self.kinds.accesses {
            let (op, operands, ..) = self.nodes.get(node)?;
            if !op.is_access() {
                continue;
            }
            let memory = operands.last()?;
            let ty = self.nodes.get(memory)?.2;
            // Elements of 16 bits are updated in pairs, all others one by one.
            let in_pairs = ty.dtype.is_some_and(|dtype| dtype.bytes() == 2);
            if op.updates() && !in_pairs {
                continue;
            }
            let (_, space, strides, ..) = self.accessed.get(memory)?;
            let is_global = space.is_some_and(|space| space.0 == AddressSpace::Global);
            let ordered;
            let ty = match self.accessed.get(node)?.0 {
                None => ty,
                Some(mapping) => {
                    let value = if op.loads() { node } else { operands.at(0)? };
                    let value = &self.nodes.get(value)?.2.dims;
                    let Some(dims) = ordered_dims(mapping, strides, value, self.geometry) else { continue };
                    ordered = ValueType { dims, dtype: ty.dtype };
                    &ordered
                }
            };
            if let Some(found) = spread.found[node]
                && is_global
                && may_pay(spread.layout(found), ty)
                && let Ok(layout) = element_layout(self.geometry, &ty.dims, ty.dtype, self.dims)
                && pays(spread.layout(found), &layout, ty, *op, self.costs)
            {
                spread.found[node] = Some(spread.wanted(layout));
            }
        }
        Ok(())
    }
}

fn without_instruction() -> Diagnostic {
    Diagnostic::invalid("this mma has no matrix instruction").help(
        "choose a shape for the kernel, `mma 16x16` (in Rust, `mma_type(MatrixShape::M16x16)`), or for this \
         product alone, `mma_with(..)`",
    )
}

/// Whether any layout could be so much better than this one that it pays to convert.
fn may_pay(layout: &Layout, ty: &ValueType) -> bool {
    let Some(&inner) = ty.dims.last() else { return false };
    let widest = MAX_ACCESS_BYTES / ty.dtype.map_or(4, DType::bytes);
    layout.contiguous_run(inner) * WIDER <= widest || is_strided(layout, inner)
}

/// Whether it pays to access a memory with the layout `best` and to convert between that and `layout`. What
/// is updated in pairs has to have its neighbours together, whatever that costs.
fn pays(layout: &Layout, best: &Layout, ty: &ValueType, access: Op, costs: &ConversionCosts) -> bool {
    let Some(&inner) = ty.dims.last() else { return false };
    let each = ty.dtype.map_or(4, DType::bytes);
    let elements: u64 = ty.dims.iter().map(|&dim| u64::from(best.tile_extent(dim))).product();
    // Waves that have the same elements would all write them to LDS.
    let copies = best.of_source(Source::Wave).any(|mode| mode.dim.is_none() && mode.extent > 1);
    if copies || elements * u64::from(each) > LARGEST_TURNED {
        return false;
    }
    if access.updates() && !layout.contiguous_run(inner).is_multiple_of(2) {
        return true;
    }
    let (from, to) = if access.loads() { (best, layout) } else { (layout, best) };
    let clocks = |layout: &Layout| access_clocks(costs.device, access, layout, inner, each);
    let saved = clocks(layout) - clocks(best);
    // The way through LDS is soon judged, and the best one costs no more.
    costs.through_lds(from, to, ty).cost.clk < saved || costs.best_way(from, to, ty).cost.clk < saved
}

/// True if neighbouring lanes and registers are never at neighbouring elements along `inner`, although there
/// are some: every lane needs a cache line of its own.
fn is_strided(layout: &Layout, inner: Dim) -> bool {
    let beside = |mode: &Mode| {
        let within = matches!(mode.source, Source::Lane | Source::Register);
        mode.dim == Some(inner) && mode.stride == 1 && mode.extent > 1 && within
    };
    layout.tile_extent(inner) > 1 && !layout.modes().iter().any(beside)
}

/// Whether two layouts spread a dimension in the same way over registers, replicas, lanes and waves.
fn is_same_along(one: &Layout, other: &Layout, dim: Dim) -> bool {
    let along = |layout: &Layout| {
        let own = layout.modes().iter().filter(|mode| mode.dim == Some(dim) && mode.extent > 1);
        Layout::new(own.copied()).map(|layout| layout.canonical())
    };
    along(one) == along(other)
}

/// Whether the elements along a dimension lie in their order in registers, then lanes, replicas and waves, so
/// that sums over what is in front of an element can be taken in this order.
fn is_in_order(layout: &Layout, dim: Dim) -> bool {
    let sources = [Source::Register, Source::Lane, Source::Replica, Source::Wave];
    let modes = sources.into_iter().flat_map(|source| layout.of_source(source));
    let mut next = 1;
    modes.filter(|mode| mode.dim == Some(dim) && mode.extent > 1).all(|mode| {
        let is_next = mode.stride == next;
        next = mode.stride * mode.extent;
        is_next
    })
}
