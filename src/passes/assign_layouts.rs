//! Index analysis: which element of its tile each lane, wave, register and replica of a value holds.
//!
//! Sources are `mma` nodes (the matrix instruction dictates the layouts of its operands) and, where no `mma`
//! reaches, what reductions fold, and then writes (spread so that lanes access consecutive bytes). From a
//! source the layout spreads to everything that must agree with it: through element-wise operations, carried
//! values and writes. The first source that reaches a value decides; where an operation needs the value in
//! another layout, it is converted ([`convert_layouts`](super::convert_layouts)).

use std::collections::VecDeque;

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::PassResult;
use super::access_costs::access_clocks;
use super::conversion_ways::ConversionCosts;
use super::convert_layouts::{ConversionSite, DemandSlot, LayoutDemand, convert_layouts};
use super::element_layouts::{
    LayoutNodes, MAX_ACCESS_BYTES, element_layout, folded_layout, keeps_open_dims, projected,
};
use super::facts::{Geometry, Settings, TransposingRead};
use super::mma_layouts::MmaSource;
use super::product_types::MmaDims;
use super::store_columns::{
    AccessedMemories, FactorOrder, ProductUses, StoredProducts, factor_order, ordered_dims,
    stored_side_by_side,
};
use crate::codegen::target::DeviceModel;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::{DimTable, KernelName, Locations};
use crate::ir::layout::{Dim, Layout, Mma, Mode, Source};
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet, Side};
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk::{self, NodeList};

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
    let mut spread = Spread {
        nodes: &nodes,
        links: links(&order, &nodes, &yields)?,
        layouts: SmallVec::new(),
        of_matrix: 0,
        products: NodeMap::default(),
        folds: NodeMap::default(),
        found: Side::of(&order, None),
        queue: VecDeque::new(),
    };
    let uses = ProductUses { nodes: &nodes, yields: &yields };
    let stored = match geometry.mma.is_some() || has_products(&order, &nodes) {
        true => uses.stored(&order, |write| stored_side_by_side(write, &nodes, &accessed, geometry))?,
        false => StoredProducts::default(),
    };
    let mut sums: SmallVec<[SummedLayout; 4]> = SmallVec::new();
    for &node in &order {
        let (op, operands, ty, origin) = nodes.get(node)?;
        let Some(choice) = op.product() else { continue };
        let roles = spread.mma_roles(operands)?;
        let Some(mma) = (match choice {
            MmaChoice::Explicit(mma) => Some(mma),
            MmaChoice::Kernel => geometry.instruction(),
            MmaChoice::Shape(_) => None,
        }) else {
            return Err(Diagnostic::invalid("this mma has no matrix instruction")
                .at(locations.get(origin.0))
                .help(
                    "choose a shape for the kernel, `mma 16x16` (in Rust, `mma_type(MatrixShape::M16x16)`), or for \
                     this product alone, `mma_with(..)`",
                ));
        };
        let held = [0, 1].map(|at| mma.held(at));
        let words = held.map(|held| held.words);
        let mut source =
            MmaSource { mma, roles, geometry, dims, columns: 1, rows: 1, words, run: None, blocks: 1 };
        source.check(&nodes, operands, ty).map_err(|d| d.at(locations.get(origin.0)))?;
        let has_scales = operands.0.len() > ACCUMULATOR + 1;
        if has_scales {
            source.blocks = source.blocks_held()?;
        }
        // Where reads of LDS turn a factor, nothing is gained by rows of it side by side.
        let lies = |at: usize| {
            let order = factor_order(operands.at(at)?, roles.k[at].innermost(), &nodes, &accessed)?;
            let bits = mma.inputs()[at].bits();
            let turned = order == FactorOrder::Turned && settings.0.target().transposing_read(bits).is_some();
            Ok::<_, Diagnostic>(if turned { FactorOrder::TurnedByReads } else { order })
        };
        let tiles = [source.extent(roles.m)? / mma.m(), source.extent(roles.n)? / mma.n()];
        let [left, right] = [lies(0)?, lies(1)?];
        for (at, order) in [left, right].into_iter().enumerate() {
            if order == FactorOrder::TurnedByReads {
                source.words[at] = held[at].taken;
            }
        }
        source.columns = stored.columns(node, roles.n, tiles[1], right, (mma, costs.device));
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
        // Scales belong to the k that the instruction has a lane hold, and so do factors of other widths. Of
        // 6-bit floats a lane holds one unit.
        let [width, other] = mma.inputs().map(DType::bits);
        let has_runs = !has_scales && width == other && held[0].words == 1;
        if [left, right] == [FactorOrder::TurnedByReads; 2] && has_runs {
            source.run = Some(TransposingRead::elements_of(width));
        }
        let layouts = spread.product(&source, operands, ty).map_err(|d| d.at(locations.get(origin.0)))?;
        let mut wanted: SmallVec<[Wanted; 5]> =
            layouts.into_iter().map(|layout| spread.wanted(layout)).collect();
        for scales in source.scale_layouts(&nodes, operands)? {
            wanted.push(spread.wanted(scales));
        }
        for (at, &wanted) in wanted.iter().enumerate() {
            spread.assign(operands.0[at], wanted)?;
        }
        // That of the accumulator, which another source may have given it, if both are the same.
        let own = wanted[ACCUMULATOR];
        let own = spread.found[operands.0[2]].filter(|&found| spread.agree(found, own)).unwrap_or(own);
        spread.assign(node, own)?;
        if let Err(at) = sums.binary_search_by_key(&own, |sum| sum.layout) {
            let MmaSource { columns, rows, .. } = source;
            sums.insert(at, SummedLayout { layout: own, mma, columns, rows });
        }
        spread.products.insert(node, wanted);
        spread.run()?;
    }
    spread.of_matrix = spread.layouts.len();
    // The first layout that was chosen for a reduction or scan of values of some dimensions.
    let mut folded_before: SmallVec<[(Dims, u32); 4]> = SmallVec::new();
    for &node in &order {
        let (op, operands, _, origin) = nodes.get(node)?;
        let (folded, reduction) = if let Op::Reduce(reduction) = op {
            (reduction.dim, Some(reduction.op))
        } else if let Op::Scan(scan) = op {
            (scan.dim, None)
        } else {
            continue;
        };
        let value = operands.at(0)?;
        let ty = nodes.get(value)?.2;
        let is_scan = reduction.is_none();
        // Where every order gives the same bits, no layout is better than the one that is there.
        let is_ordered = reduction.is_none_or(|op| op.depends_on_order(ty.dtype));
        let keeps_open = is_ordered && keeps_open_dims(geometry, &ty.dims, folded);
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
            && let Some(alike) = folded_before.iter().find(|before| before.0 == ty.dims)
        {
            spread.assign(value, alike.1)?;
            spread.run()?;
            continue;
        }
        let narrowest = spread.narrowest_read(value)?.or(ty.dtype);
        let layout = folded_layout(geometry, &ty.dims, folded, narrowest, dims)
            .map_err(|d| d.at(locations.get(origin.0)))?;
        let wanted = match found {
            Some(found) if is_same_along(spread.layout(found), &layout, folded) => found,
            _ => spread.wanted(layout),
        };
        if keeps_open || is_scan {
            spread.folds.insert(node, wanted);
        }
        if !folded_before.iter().any(|before| before.0 == ty.dims) {
            folded_before.push((ty.dims.clone(), wanted));
        }
        spread.assign(value, wanted)?;
        spread.run()?;
    }
    for &node in &order {
        let (op, operands, _, origin) = nodes.get(node)?;
        if !matches!(op, Op::Write | Op::Atomic(_)) || spread.found[node].is_some() {
            continue;
        }
        // What is written has the memory's dimensions in another order, or, with a mapping, dimensions of its
        // own, in an order that the mapping may say.
        let mapping = accessed.get(node)?.0;
        let written = nodes.get(if mapping.is_some() { operands.at(0)? } else { operands.last()? })?.2;
        let strides = accessed.get(operands.last()?)?.2;
        let ordered = mapping.and_then(|mapping| ordered_dims(mapping, strides, &written.dims, geometry));
        let written_dims = ordered.as_ref().unwrap_or(&written.dims);
        let layout = element_layout(geometry, written_dims, written.dtype, dims)
            .map_err(|d| d.at(locations.get(origin.0)))?;
        let wanted = spread.wanted(layout);
        spread.assign(node, wanted)?;
        spread.run()?;
    }
    // What nobody uses is read all the same, if it is volatile.
    for &node in &order {
        let (op, _, ty, origin) = nodes.get(node)?;
        if *op == Op::Read && spread.found[node].is_none() {
            let layout = element_layout(geometry, &ty.dims, ty.dtype, dims)
                .map_err(|d| d.at(locations.get(origin.0)))?;
            let wanted = spread.wanted(layout);
            spread.assign(node, wanted)?;
            spread.run()?;
        }
    }
    for result in &stored.writes {
        let Some(made) = spread.found[result.write] else { continue };
        let Some(layout) = result.in_rows(spread.layout(made))? else { continue };
        let rows = spread.wanted(layout);
        for node in uses.epilogue_of(result.write)? {
            if spread.found[node].is_some() {
                spread.found[node] = Some(spread.projected(rows, node)?);
            }
        }
    }
    for &node in &order {
        let (op, operands, ..) = nodes.get(node)?;
        if !matches!(op, Op::Read | Op::Write | Op::Atomic(_)) {
            continue;
        }
        let memory = operands.last()?;
        // Elements of 16 bits are updated in pairs, all others one by one.
        let in_pairs = nodes.get(memory)?.2.dtype.is_some_and(|dtype| dtype.bytes() == 2);
        if matches!(op, Op::Atomic(_)) && !in_pairs {
            continue;
        }
        let (_, space, strides, _) = accessed.get(memory)?;
        let is_global = space.is_some_and(|space| space.0 == AddressSpace::Global);
        let ty = nodes.get(memory)?.2;
        let ordered;
        let ty = match accessed.get(node)?.0 {
            None => ty,
            Some(mapping) => {
                let value = if *op == Op::Read { node } else { operands.at(0)? };
                let value = &nodes.get(value)?.2.dims;
                let Some(dims) = ordered_dims(mapping, strides, value, geometry) else { continue };
                ordered = ValueType { dims, dtype: ty.dtype };
                &ordered
            }
        };
        if let Some(found) = spread.found[node]
            && is_global
            && may_pay(spread.layout(found), ty)
            && let Ok(layout) = element_layout(geometry, &ty.dims, ty.dtype, dims)
            && pays(spread.layout(found), &layout, ty, *op, &costs)
        {
            spread.found[node] = Some(spread.wanted(layout));
        }
    }
    spread.settle(&order, &bodies)?;
    let demands = spread.demands(&order, &bodies, &yields)?;
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
        nodes: &nodes,
        bodies: &bodies,
        yields: &yields,
        layouts: &layouts,
        geometry,
        costs: &costs,
    };
    convert_layouts(&site, demands, &mut commands)
}

/// Only where so many times fewer instructions are possible is it worth looking what they cost.
const WIDER: u32 = 8;

/// The largest tile, in bytes, that goes through LDS only to be accessed in a better way.
const LARGEST_TURNED: u64 = 32 << 10;

fn has_products(order: &[Entity], nodes: &LayoutNodes) -> bool {
    order
        .iter()
        .any(|&node| nodes.get(node).is_ok_and(|(op, ..)| matches!(op, Op::Mma(_) | Op::ScaledMma(_))))
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
    if matches!(access, Op::Atomic(_)) && !layout.contiguous_run(inner).is_multiple_of(2) {
        return true;
    }
    let (from, to) = if access == Op::Read { (best, layout) } else { (layout, best) };
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
        match op {
            Op::Unary(_)
            | Op::Convert(_)
            | Op::Decode(_)
            | Op::Encode(_)
            | Op::Binary(_)
            | Op::Ternary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Broadcast => {
                operands.0.iter().for_each(|&o| join(&mut links, node, o));
            }
            Op::Mma(_) | Op::ScaledMma(_) => join(&mut links, node, operands.0[2]),
            Op::Reduce(_) | Op::Scan(_) => join(&mut links, node, operands.0[0]),
            Op::Write | Op::Atomic(_) => {
                let values = operands.0.len() - 1;
                let (joined, others) = operands.0[..values].split_at(op.values_in_front().min(values));
                joined.iter().for_each(|&value| join(&mut links, node, value));
                follow(&mut links, node, others);
            }
            Op::Read => follow(&mut links, node, &operands.0[..operands.0.len() - 1]),
            Op::Iterate(_) | Op::Conditional | Op::While => loops.insert(node, (operands, yields.get(node)?)),
            Op::IterArg(number) => {
                // The innermost loop seen last is the one whose body begins here.
                if let Some((_, (init, next))) = loops.iter().next_back() {
                    join(&mut links, node, init.0[*number as usize]);
                    join(&mut links, node, next.0[*number as usize]);
                }
            }
            Op::LoopResult(number) => {
                if let Some((init, _)) = loops.get(operands.0[0]) {
                    join(&mut links, node, init.0[*number as usize]);
                }
            }
            Op::Memory | Op::Scalar | Op::Allocate | Op::Register(_) => {}
            Op::SelfIndex(_) | Op::Size(_) | Op::WorkgroupId(_) | Op::Iteration(_) => {}
            Op::Rearrange | Op::Sort(_) => {}
            // Loads to LDS are made later, and pipelines are made of expanded nodes, which need no layout.
            Op::GlobalToShared | Op::Pipeline(_) | Op::Barrier | Op::Control(_) => {}
            Op::SetSymbol(_) => {}
        }
    }
    Ok(links)
}

/// The accumulator among the operands of a product.
const ACCUMULATOR: usize = 2;

/// A layout that a source asks for, by its number in [`Spread::layouts`].
type Wanted = u32;

/// The wave front: layouts found so far.
struct Spread<'a, 'w, 's> {
    nodes: &'a LayoutNodes<'w, 's>,
    links: LayoutLinks,
    /// Layouts are large, and most nodes share theirs with others.
    layouts: SmallVec<[Layout; 4]>,
    /// So many of them come from matrix instructions.
    of_matrix: usize,
    /// What matrix products need: the layouts of their operands.
    products: NodeMap<SmallVec<[Wanted; 5]>>,
    /// What reductions need that keep dimensions without a tile: layouts of their operands that do not depend
    /// on how large these are.
    folds: NodeMap<Wanted>,
    found: Side<Option<Wanted>>,
    queue: VecDeque<Entity>,
}

/// A layout of sums, by number, and the columns and rows side by side in it.
struct SummedLayout {
    layout: Wanted,
    mma: Mma,
    columns: u32,
    rows: u32,
}

impl Spread<'_, '_, '_> {
    fn mma_roles(&self, operands: &Operands) -> Result<MmaDims, Diagnostic> {
        let ty = |at: usize| self.nodes.get(operands.0[at]).map(|n| n.2);
        MmaDims::held(ty(0)?, ty(1)?, ty(2)?).map_err(|text| Diagnostic::new(Kind::Bug, text))
    }

    /// Notes a layout that a source wants.
    fn wanted(&mut self, layout: Layout) -> Wanted {
        self.layouts.push(layout);
        self.layouts.len() as Wanted - 1
    }

    /// A layout as a node has it that may lack some of its dimensions.
    fn projected(&mut self, wanted: Wanted, node: Entity) -> Result<Wanted, Diagnostic> {
        let (op, _, ty, _) = self.nodes.get(node)?;
        if *op == Op::Write {
            return Ok(wanted);
        }
        let layout = projected(self.layout(wanted), &ty.dims)?;
        Ok(if layout == *self.layout(wanted) { wanted } else { self.wanted(layout) })
    }

    fn layout(&self, wanted: Wanted) -> &Layout {
        &self.layouts[wanted as usize]
    }

    /// Layouts of lhs, rhs and accumulator of a product. Which k a lane holds is free as long as both factors
    /// agree: a factor that has a layout already, as the result of another product has, keeps it if the
    /// instruction can take it so.
    fn product(
        &self,
        source: &MmaSource,
        operands: &Operands,
        acc: &ValueType,
    ) -> Result<[Layout; 3], Diagnostic> {
        let widest = source.widening()?;
        let factors = [operands.at(0)?, operands.at(1)?];
        let made = factors.map(|factor| self.found[factor].map(|found| self.layout(found)));
        if made.iter().any(Option::is_some) {
            let mut widen = widest;
            while widen > 0 {
                let layouts = source.layouts(self.nodes, operands, acc, widen)?;
                let takes = |(made, layout): (&Option<&Layout>, &Layout)| {
                    made.is_none_or(|made| made.holds_pieces_of(layout))
                };
                if made.iter().zip(&layouts).all(takes) {
                    return Ok(layouts);
                }
                widen /= 2;
            }
        }
        source.layouts(self.nodes, operands, acc, widest)
    }

    /// The narrowest dtype of the reads that the layout of a value will reach: lanes are to hold as many
    /// consecutive elements as one of their accesses moves, whatever the elements are converted to.
    fn narrowest_read(&self, value: Entity) -> Result<Option<DType>, Diagnostic> {
        let dims = self.nodes.get(value)?.2.dims.len();
        let mut narrowest: Option<DType> = None;
        let mut seen = NodeSet::default();
        let mut queue: SmallVec<[Entity; 16]> = smallvec![value];
        while let Some(node) = queue.pop() {
            let (op, _, ty, _) = self.nodes.get(node)?;
            if *op == Op::Write || ty.dims.len() != dims || seen.contains(node) {
                continue;
            }
            seen.insert(node);
            if *op == Op::Read
                && let Some(dtype) = ty.dtype
                && narrowest.is_none_or(|known| dtype.bytes() < known.bytes())
            {
                narrowest = Some(dtype);
            }
            queue.extend((0..self.links[node].len()).map(|at| self.links[node][at]));
        }
        Ok(narrowest)
    }

    fn agree(&self, one: Wanted, other: Wanted) -> bool {
        let (left, right) = (self.layout(one), self.layout(other));
        one == other || left == right || left.equivalent(right)
    }

    /// Gives a node a layout, unless it has one: the first source that reaches it decides.
    fn assign(&mut self, node: Entity, wanted: Wanted) -> PassResult {
        let (op, _, ty, _) = self.nodes.get(node)?;
        if (!ty.dims.is_empty() || *op == Op::Write) && self.found[node].is_none() {
            self.found[node] = Some(wanted);
            self.queue.push_back(node);
        }
        Ok(())
    }

    fn run(&mut self) -> PassResult {
        while let Some(node) = self.queue.pop_front() {
            let Some(found) = self.found[node] else { continue };
            let own = self.nodes.get(node)?;
            let own_dims = if *own.0 == Op::Write { None } else { Some(&own.2.dims) };
            for at in 0..self.links[node].len() {
                let other = self.links[node][at];
                let (op, _, ty, _) = self.nodes.get(other)?;
                let smaller = *op != Op::Write && own_dims.is_none_or(|own| ty.dims.len() < own.len());
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
            } else if let Op::Reduce(_) | Op::Scan(_) = op {
                match self.folds.get(node).copied() {
                    Some(found) => self.force(node, found, &ty.dims)?,
                    None => self.follow(node, operands.at(0)?, &ty.dims)?,
                }
            } else if let Op::LoopResult(number) = op {
                let argument = bodies.get(operands.at(0)?)?.at(*number as usize)?;
                self.follow(node, argument, &ty.dims)?;
            }
        }
        Ok(())
    }

    /// What nodes need in other layouts than values have, in program order.
    fn demands(
        &mut self,
        order: &[Entity],
        bodies: &Query<&'static Body>,
        yields: &Query<&'static Yields>,
    ) -> Result<Vec<LayoutDemand>, Diagnostic> {
        let mut demands = Vec::new();
        for &node in order {
            let (op, operands, ..) = self.nodes.get(node)?;
            match op {
                Op::Mma(_) | Op::ScaledMma(_) => {
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
                Op::Iterate(_) | Op::Conditional | Op::While => {
                    let arguments = &bodies.get(node)?.0;
                    let carried = operands.0.iter().zip(&yields.get(node)?.0).zip(arguments);
                    for (at, ((&init, &next), &argument)) in carried.enumerate() {
                        let Some(own) = self.found[argument] else { continue };
                        self.demand(node, DemandSlot::Operand(at), init, own, &mut demands)?;
                        self.demand(node, DemandSlot::Yield(at), next, own, &mut demands)?;
                    }
                }
                Op::Unary(_)
                | Op::Convert(_)
                | Op::Decode(_)
                | Op::Encode(_)
                | Op::Binary(_)
                | Op::Ternary(_)
                | Op::Compare(_)
                | Op::Select
                | Op::Broadcast
                | Op::Read
                | Op::Write
                | Op::Atomic(_) => {
                    let Some(own) = self.found[node] else { continue };
                    // The last operand of an access is its memory.
                    let values = operands.0.len() - usize::from(op.is_access());
                    for (at, &value) in operands.0[..values].iter().enumerate() {
                        self.demand(node, DemandSlot::Operand(at), value, own, &mut demands)?;
                    }
                }
                Op::Reduce(_) | Op::Scan(_) => {
                    let value = operands.at(0)?;
                    if let Some(wanted) = self.folds.get(node).copied().or(self.found[value]) {
                        self.demand(node, DemandSlot::Operand(0), value, wanted, &mut demands)?;
                    }
                }
                Op::Memory | Op::Scalar | Op::Allocate | Op::Register(_) => {}
                Op::SelfIndex(_) | Op::Size(_) | Op::IterArg(_) | Op::LoopResult(_) => {}
                Op::WorkgroupId(_) | Op::Iteration(_) | Op::Rearrange | Op::Sort(_) => {}
                Op::GlobalToShared | Op::Pipeline(_) | Op::Barrier | Op::Control(_) => {}
                Op::SetSymbol(_) => {}
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
        let updates = matches!(self.nodes.get(value)?.0, Op::Atomic(_));
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
