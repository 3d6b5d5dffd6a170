//! In which order a kernel adds up: a hash for each reduction, matrix product and loop that accumulates.
//!
//! Two compilations of one kernel whose hashes are equal give the same bits for the same data. So a hash has
//! what the order follows from (the places of the reduced elements in registers, lanes, waves and tiles) and
//! nothing else: no sizes, no other dimensions, and no order at all where every order has the same result.
//! Orders that are the same by different ways have the same hash, as far as that can be told.
//!
//! The order is fixed by the program, its tiles and the target. Kept dimensions without a tile get the lanes
//! that the others leave over, and nothing that a lane folds depends on them
//! (`element_layouts::folded_layout`). A value in another layout is converted, unless every order gives the
//! same bits, as of extrema and integers. Layouts of matrix instructions give each dimension digits of its
//! own. The hashes are made from the layouts of the logical nodes.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{LastingName, lasting_name};
use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, Layout, Mma, Mode, Source};
use crate::ir::node::*;
use crate::ir::nodes::{self, Bug};
use crate::ir::op::{AlongDimOp, OpClass, OpFamily};
use crate::ir::type_rules::contraction::MmaDims;
use crate::passes::facts::{Expressions, Geometry, LogicalBody};

/// The order of one reduction.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ReductionTree {
    /// The word of the operation: of a reduction, `mma`, or `iterate`.
    #[serde(with = "lasting_name")]
    pub operation: LastingName,
    /// The dimension that is folded.
    #[serde(with = "lasting_name")]
    pub dim: LastingName,
    /// Equal for equal orders.
    pub hash: u64,
}

/// The orders of a kernel in program order; those that a loop and its remainder share are told once.
pub(crate) fn reduction_trees(
    world: &World,
    root: Entity,
    target: &str,
) -> Result<Vec<ReductionTree>, Diagnostic> {
    let mut finder = TreeFinder {
        world,
        geometry: nodes::fact(world, root, "a kernel without geometry")?,
        dims: nodes::fact(world, root, "a kernel without dims")?,
        expressions: nodes::fact(world, root, "a kernel without expressions")?,
        target,
        by_wave: None,
        trees: Vec::new(),
        origins: SmallVec::new(),
    };
    match world.get::<LogicalBody>(root) {
        Some(body) => finder.region(&body.0, None)?,
        None => finder.region(&nodes::fact::<Body>(world, root, "a kernel without body")?.0, None)?,
    }
    Ok(finder.trees)
}

/// FNV-1a of 64 bits, which is the same in every process and on every machine.
#[derive(Copy, Clone)]
struct OrderHash(u64);

impl OrderHash {
    fn of(word: &str) -> OrderHash {
        let mut hash = OrderHash(0xcbf2_9ce4_8422_2325);
        hash.bytes(word.as_bytes());
        hash
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn add(&mut self, numbers: &[u32]) {
        self.bytes(&(numbers.len() as u32).to_le_bytes());
        for number in numbers {
            self.bytes(&number.to_le_bytes());
        }
    }
}

/// How elements are joined, one level after the other. Distances are those of the elements' coordinates.
#[derive(Clone, PartialEq, Eq, Debug)]
enum JoinLevel {
    /// Two parts that are this far apart.
    Pair(u32),
    /// A list, in pairs of neighbours, that is no sequence of such levels: how many in what distance, the
    /// nearest first.
    Pairs(SmallVec<[[u32; 2]; 4]>),
    /// What a loop adds to what it carries, trip after trip.
    Carried,
}

type JoinLevels = SmallVec<[JoinLevel; 16]>;

struct TreeFinder<'a> {
    world: &'a World,
    geometry: &'a Geometry,
    dims: &'a DimTable,
    expressions: &'a Expressions,
    target: &'a str,
    /// What each wave does of the reduction that several waves share, whose last part comes next: the
    /// dimension that counts the waves, the one that they share, and its levels.
    by_wave: Option<(Dim, Dim, JoinLevels)>,
    trees: Vec<ReductionTree>,
    /// Where each of them comes from.
    origins: SmallVec<[Origin; 8]>,
}

impl TreeFinder<'_> {
    /// The nodes of a region: the kernel's, or those of a loop over a dimension.
    fn region(&mut self, body: &[Entity], region: Option<(Entity, Dim)>) -> Result<(), Diagnostic> {
        for &node in body {
            let op = nodes::op(self.world, node)?;
            if let OpFamily::AlongDim(along) = op.family() {
                let seen = nodes::node(self.world, node)?;
                match along {
                    AlongDimOp::Reduce(reduction) => {
                        self.reduce(reduction, seen.operand(0)?, *seen.origin)?
                    }
                    AlongDimOp::Scan(scan) => self.scan(scan, seen.operand(0)?, *seen.origin)?,
                    // Nothing is joined, so there is no order in which it is.
                    AlongDimOp::Sort(_) => {}
                }
            } else if let Some(choice) = op.product() {
                self.product(node, choice, region)?;
            } else if op.row().class == OpClass::Region {
                let mut inner = None;
                if let Some(dim) = op.over_tiles() {
                    self.iterate(node, dim)?;
                    inner = Some((node, dim));
                }
                // How often other regions run is up to the data, the sizes and the iterations around them.
                let body = nodes::fact::<Body>(self.world, node, "a region without body")?;
                self.region(&body.0, inner)?;
            }
        }
        Ok(())
    }

    fn layout(&self, node: Entity) -> Option<&Layout> {
        self.world.get::<Placement>(node).map(|placement| &placement.0)
    }

    fn reduce(&mut self, reduction: Reduction, value: Entity, origin: Origin) -> Result<(), Diagnostic> {
        let Reduction { op, dim, parts } = reduction;
        let own = match self.layout(value) {
            Some(layout) => levels(layout, dim),
            None => JoinLevels::new(),
        };
        let (dim, levels) = match (self.carried_parts(value, dim)?, self.by_wave.take()) {
            (Some(carried), _) => carried,
            (None, Some((parts, shared, mut levels))) if parts == dim => {
                let apart = self.geometry.dim(shared).wave.ok_or(Bug::new("a dimension without waves"))?;
                let scaled = |level| match level {
                    JoinLevel::Pair(distance) => JoinLevel::Pair(distance * apart),
                    JoinLevel::Pairs(lists) => {
                        JoinLevel::Pairs(lists.into_iter().map(|[count, far]| [count, far * apart]).collect())
                    }
                    JoinLevel::Carried => JoinLevel::Carried,
                };
                levels.extend(own.into_iter().map(scaled));
                (shared, levels)
            }
            _ => (dim, own),
        };
        if let Some(parts) = parts {
            self.by_wave = Some((parts, dim, levels));
            return Ok(());
        }
        let ty = nodes::node(self.world, value)?.ty;
        let mut hash = OrderHash::of(op.row().word);
        if op.depends_on_order(ty.dtype) {
            for level in &levels {
                match level {
                    JoinLevel::Pair(distance) => hash.add(&[1, *distance]),
                    JoinLevel::Pairs(lists) => {
                        hash.add(&[2]);
                        lists.iter().for_each(|list| hash.add(list));
                    }
                    JoinLevel::Carried => hash.add(&[5]),
                }
            }
        }
        self.note(op.row().word, dim, origin, hash);
        Ok(())
    }

    /// If the value is what a loop leaves of parts that `parts` counts: the dimension that the loop folds,
    /// and its levels up to the lanes.
    fn carried_parts(&self, value: Entity, parts: Dim) -> Result<Option<(Dim, JoinLevels)>, Diagnostic> {
        let result = nodes::node(self.world, value)?;
        let Some(number) = result.op.carried_result() else { return Ok(None) };
        let yields = nodes::fact::<Yields>(self.world, result.operand(0)?, "a loop that hands nothing on")?;
        for &joined in &nodes::node(self.world, yields.at(number as usize)?)?.operands.0 {
            let made = nodes::node(self.world, joined)?;
            if let Some(reduction) = made.op.reduction()
                && reduction.parts == Some(parts)
            {
                let Some(layout) = self.layout(made.operand(0)?) else { return Ok(None) };
                let mut levels = levels_in_lane(layout, reduction.dim);
                levels.push(JoinLevel::Carried);
                levels.extend(levels_of_lanes(layout, reduction.dim));
                return Ok(Some((reduction.dim, levels)));
            }
        }
        Ok(None)
    }

    /// A scan: which elements along the dimension lanes, replicas and waves sum up by themselves.
    fn scan(&mut self, scan: Scan, value: Entity, origin: Origin) -> Result<(), Diagnostic> {
        let word = scan.op.row().word;
        let mut hash = OrderHash::of(word);
        let ty = nodes::node(self.world, value)?.ty;
        if ty.dtype.is_some_and(|dtype| dtype.is_float()) {
            for source in [Source::Register, Source::Lane] {
                hash.add(&[source as u32]);
                for mode in self.layout(value).iter().flat_map(|layout| along(layout, source, scan.dim)) {
                    hash.add(&[mode.extent, mode.stride]);
                }
            }
            let by_rows = self.layout(value).is_some_and(|layout| layout.scans_rows(scan.dim));
            hash.add(&[by_rows.into()]);
            if scan.by_wave.is_some() {
                hash.add(&[self.geometry.dim(scan.dim).wave.unwrap_or(0)]);
                self.by_wave = None;
            }
        }
        self.note(word, scan.dim, origin, hash);
        Ok(())
    }

    /// A product: which elements one instruction takes, and in which order the instructions add theirs up.
    fn product(
        &mut self,
        node: Entity,
        choice: MmaChoice,
        region: Option<(Entity, Dim)>,
    ) -> Result<(), Diagnostic> {
        let seen = nodes::node(self.world, node)?;
        let (lhs, acc) = (seen.operand(0)?, seen.operand(2)?);
        let ty = |at: usize| Ok::<_, Diagnostic>(nodes::node(self.world, seen.operand(at)?)?.ty);
        let MmaDims { k: [k, _], .. } = MmaDims::held(ty(0)?, ty(1)?, ty(2)?).map_err(Diagnostic::bug)?;
        let k = k.dim;
        let Some(mma) = (match choice {
            MmaChoice::Explicit(mma) => Some(mma),
            MmaChoice::Kernel => self.geometry.instruction(),
            MmaChoice::Shape(_) => None,
        }) else {
            return Ok(());
        };
        let word = seen.op.row().word;
        let mut hash = OrderHash::of(word);
        if mma.accumulator().is_float() {
            self.order_of_product(&mut hash, mma, self.layout(lhs), k);
            // A loop goes on where the steps of one iteration end.
            if !region.is_some_and(|(owner, dim)| dim == k && self.carries(owner, acc, node)) {
                hash.add(&[4, self.geometry.dim(k).workgroup_extent().unwrap_or(0)]);
            }
        }
        self.note(word, k, *seen.origin, hash);
        Ok(())
    }

    fn order_of_product(&self, hash: &mut OrderHash, mma: Mma, layout: Option<&Layout>, k: Dim) {
        // How an instruction adds up is the chip's affair.
        hash.bytes(self.target.as_bytes());
        hash.bytes(mma.name().as_bytes());
        for source in [Source::Register, Source::Lane] {
            hash.add(&[source as u32]);
            for mode in layout.iter().flat_map(|layout| along(layout, source, k)) {
                hash.add(&[mode.extent, mode.stride]);
            }
        }
    }

    /// Whether `next` is what a loop hands on in place of its carried value `argument`.
    fn carries(&self, owner: Entity, argument: Entity, next: Entity) -> bool {
        let number = self.world.get::<Op>(argument).and_then(|op| op.carried_argument());
        let Some(number) = number else { return false };
        self.world.get::<Yields>(owner).is_some_and(|yields| yields.0.get(number as usize) == Some(&next))
    }

    /// A loop that accumulates: its tile, unless all that it carries is sums of products, and the iterations
    /// that it is limited to.
    fn iterate(&mut self, node: Entity, dim: Dim) -> Result<(), Diagnostic> {
        let seen = nodes::node(self.world, node)?;
        let yields = &nodes::fact::<Yields>(self.world, node, "a loop that hands nothing on")?.0;
        if yields.is_empty() {
            return Ok(());
        }
        let is_product = |&next: &Entity| {
            let Ok(made) = nodes::node(self.world, next) else { return false };
            made.op.is_product() && made.operands.0.get(2).is_some_and(|&acc| self.carries(node, acc, next))
        };
        let word = seen.op.row().word;
        let mut hash = OrderHash::of(word);
        if !yields.iter().all(is_product) {
            hash.add(&[self.geometry.dim(dim).tiling.unwrap_or(0)]);
        }
        if let Some((first, end)) = self.geometry.dim(dim).iterations {
            for expr in [first, end] {
                hash.bytes(self.expressions.0.display(expr).to_string().as_bytes());
            }
        }
        self.note(word, dim, *seen.origin, hash);
        Ok(())
    }

    fn note(&mut self, operation: &'static str, dim: Dim, origin: Origin, hash: OrderHash) {
        let tree = ReductionTree { operation, dim: self.dims.name(dim), hash: hash.0 };
        // The remainder of a loop has the same nodes once more.
        let known = self.trees.iter().zip(&self.origins).any(|known| known == (&tree, &origin));
        if !known {
            self.trees.push(tree);
            self.origins.push(origin);
        }
    }
}

/// Modes of a source along a dimension.
fn along(layout: &Layout, source: Source, dim: Dim) -> impl Iterator<Item = &Mode> {
    layout.of_source(source).filter(move |mode| mode.dim == Some(dim) && mode.extent > 1)
}

/// How lowering joins the elements along a dimension: those of a lane in pairs of neighbours, replicas after
/// registers, then lanes bit by bit.
fn levels(layout: &Layout, dim: Dim) -> JoinLevels {
    let mut levels = levels_in_lane(layout, dim);
    levels.extend(levels_of_lanes(layout, dim));
    levels
}

/// Levels of a power of two of elements, or parts, that a mode holds.
fn pairs(mode: &Mode) -> impl Iterator<Item = JoinLevel> + use<> {
    let Mode { extent, stride, .. } = *mode;
    (0..extent.ilog2()).map(move |bit| JoinLevel::Pair(stride << bit))
}

fn levels_in_lane(layout: &Layout, dim: Dim) -> JoinLevels {
    let mut levels = JoinLevels::new();
    let in_lane = || along(layout, Source::Register, dim).chain(along(layout, Source::Replica, dim));
    if in_lane().all(|mode| mode.extent.is_power_of_two()) {
        levels.extend(in_lane().flat_map(pairs));
    } else {
        let mut lists: SmallVec<[[u32; 2]; 4]> = SmallVec::new();
        for mode in in_lane() {
            match lists.last_mut() {
                Some([count, far]) if *count * *far == mode.stride => *count *= mode.extent,
                _ => lists.push([mode.extent, mode.stride]),
            }
        }
        match lists[..] {
            // What is missing at the end changes nothing.
            [[count, far]] => {
                let bits = count.next_power_of_two().ilog2();
                levels.extend((0..bits).map(|bit| JoinLevel::Pair(far << bit)));
            }
            _ => levels.push(JoinLevel::Pairs(lists)),
        }
    }
    levels
}

fn levels_of_lanes(layout: &Layout, dim: Dim) -> JoinLevels {
    along(layout, Source::Lane, dim).flat_map(pairs).collect()
}
