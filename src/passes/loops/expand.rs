//! Expansion: every logical node becomes one node per replica of its layout, each of the size of one machine
//! instruction (or a few).
//!
//! Expanded nodes are entities of one archetype, spawned with all components at once. They keep [`Op`] and
//! [`Operands`] and add [`Expansion`]; everything that all replicas share stays on the logical node. A
//! [`Body`] has the order as before. `mma` nodes are also replicated along the contracted dimension, chained
//! through the accumulator: all accumulators of a step before the next step, so that dependent matrix
//! instructions are as far apart as the tile allows.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::early_writes::AfterRegions;
use super::late_reads::read_late;
use crate::ir::diagnostic::{Diagnostic, Kind};
pub(crate) use crate::ir::facts::{Arguments, Base, ExpandedCount, Expansion, Iteration, LogicalBody};
use crate::ir::kernel::{Locations, MAX_OPERATIONS};
use crate::ir::layout::within_wave::Gathering;
use crate::ir::layout::{Dim, Layout, Mma, Place, SCALED_BLOCK, Source};
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, Side};
use crate::ir::nodes::{self, Bug, NodeBundle};
use crate::ir::op::{CarriedOp, ExpansionRule, OpClass};
use crate::ir::type_rules::contraction::MmaDims;
use crate::ir::walk;
use crate::passes::facts::Geometry;
use crate::passes::{PassResult, kernel_entity};

/// Expanded nodes of each logical node, by entity index.
struct ExpandedCopies {
    first: Side<u32>,
    nodes: Vec<Entity>,
}

impl ExpandedCopies {
    fn of(&self, node: Entity, replica: u32) -> Entity {
        self.nodes[(self.first[node] + replica) as usize]
    }
}

/// The pass itself; see the module. It makes thousands of nodes, written in place, so it takes the whole
/// world.
pub(crate) fn expand(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let order = walk::nodes(world, root);
    let mut expander = Expander {
        root,
        layouts: Layouts::of(world, &order),
        copies: ExpandedCopies { first: Side::of(&order, 0), nodes: Vec::with_capacity(512) },
        count: 0,
        carried: NodeMap::default(),
        locations: nodes::fact::<Locations>(world, root, "a kernel without locations")?.clone(),
        mma: nodes::fact::<Geometry>(world, root, "a kernel without geometry")?.instruction(),
    };
    expander.judge(world, &order)?;
    let mut arguments = Vec::new();
    for &node in &order {
        if nodes::op(world, node)?.is_argument() {
            arguments.push(node);
        }
    }
    let body = expander.region(world, root)?;
    let mut logical = nodes::fact_mut::<Body>(world, root, "a kernel without body")?;
    let logical = std::mem::take(&mut logical.0);
    let found = (Arguments(arguments), ExpandedCount(expander.count), LogicalBody(logical));
    world.entity_mut(root).insert((Body(body), found));
    Ok(())
}

/// The layouts of logical nodes. Nodes of one layout share it, so that numbers are compared in their stead.
struct Layouts {
    /// Number of each node's layout; `u32::MAX` for nodes that have none.
    number: Side<u32>,
    distinct: SmallVec<[Layout; 8]>,
}

impl Layouts {
    fn of(world: &World, order: &[Entity]) -> Layouts {
        let mut layouts = Layouts { number: Side::of(order, u32::MAX), distinct: SmallVec::new() };
        for &node in order {
            let Some(Placement(layout)) = world.get::<Placement>(node) else { continue };
            let known = layouts.distinct.iter().position(|other| other == layout);
            layouts.number[node] = known.unwrap_or(layouts.distinct.len()) as u32;
            if known.is_none() {
                layouts.distinct.push(layout.clone());
            }
        }
        layouts
    }

    fn get(&self, node: Entity) -> Option<&Layout> {
        self.distinct.get(self.number[node] as usize)
    }

    fn are_equal(&self, one: Entity, other: Entity) -> bool {
        self.number[one] == self.number[other]
    }
}

struct Expander {
    /// The kernel entity.
    root: Entity,
    layouts: Layouts,
    copies: ExpandedCopies,
    count: u32,
    /// Replicas of the carried values in front of each carried value of a loop.
    carried: NodeMap<SmallVec<[u32; 4]>>,
    locations: Locations,
    /// Matrix instruction of nodes that do not choose.
    mma: Option<Mma>,
}

/// Sum of the replica digits of `replica` along `dim`.
fn replica_coordinate(layout: &Layout, replica: u32, dim: Dim) -> u32 {
    layout.coordinate(dim, Place { replica, ..Place::default() })
}

/// The coordinate along `dim` of the first of its elements in number `number` of the replicas along it.
fn along(layout: &Layout, mut number: u32, dim: Dim) -> u32 {
    let mut coordinate = 0;
    for mode in layout.of_source(Source::Replica).filter(|mode| mode.dim == Some(dim)) {
        coordinate += number % mode.extent * mode.stride;
        number /= mode.extent;
    }
    coordinate
}

/// The replica of `layout` that holds the coordinates.
fn replica_at(layout: &Layout, coordinate: impl Fn(Dim) -> u32) -> u32 {
    let mut replica = 0;
    let mut weight = 1;
    for mode in layout.of_source(Source::Replica) {
        if let Some(dim) = mode.dim {
            replica += coordinate(dim) / mode.stride % mode.extent * weight;
        }
        weight *= mode.extent;
    }
    replica
}

impl Expander {
    fn layout(&self, node: Entity) -> Option<&Layout> {
        self.layouts.get(node)
    }

    fn replicas(&self, node: Entity) -> u32 {
        self.layout(node).map_or(1, |l| l.extent(Source::Replica))
    }

    /// The copy of operand `operand` that replica `replica` of `node` uses.
    fn operand(&self, node: Entity, replica: u32, operand: Entity) -> Entity {
        let at = match (self.layout(node), self.layout(operand)) {
            (Some(own), Some(other)) if !self.layouts.are_equal(node, operand) => {
                replica_at(other, |dim| replica_coordinate(own, replica, dim))
            }
            (Some(_), Some(_)) => replica,
            _ => 0,
        };
        self.copies.of(operand, at)
    }

    /// The copies of an operand that a replica takes elements of, in the order of its own.
    fn sources(&self, gathering: &Gathering, replica: u32, registers: u32, value: Entity) -> Operands {
        let mut found: SmallVec<[u32; 16]> = SmallVec::new();
        for register in 0..registers {
            let place = gathering.place(replica, register);
            for choice in gathering.choices() {
                let at = gathering.chosen(place, choice).replica;
                if !found.contains(&at) {
                    found.push(at);
                }
            }
        }
        Operands(found.into_iter().map(|at| self.copies.of(value, at)).collect())
    }

    /// The copies of an operand that replica `replica` of `node` folds: all those along a dimension.
    fn pieces(
        &self,
        node: Entity,
        replica: u32,
        folded: Dim,
        value: Entity,
    ) -> Result<SmallVec<[Entity; 4]>, Bug> {
        let Some(from) = self.layout(value) else { return Ok(smallvec![self.copies.of(value, 0)]) };
        let kept = |dim: Dim| match self.layout(node) {
            Some(own) if dim != folded => replica_coordinate(own, replica, dim),
            _ => 0,
        };
        let mut found: SmallVec<[u32; 4]> = smallvec![replica_at(from, kept)];
        let mut weight = 1;
        for mode in from.of_source(Source::Replica) {
            if mode.dim == Some(folded) {
                let before = found.clone();
                found.extend(
                    (1..mode.extent).flat_map(|digit| before.iter().map(move |at| at + digit * weight)),
                );
            }
            weight *= mode.extent;
        }
        Ok(found.into_iter().map(|at| self.copies.of(value, at)).collect())
    }

    /// The operands of a replica of a scan, whose replicas before it are `made`.
    fn scan_pieces(
        &self,
        node: Entity,
        replica: u32,
        scan: Scan,
        operands: &Operands,
        made: &[Entity],
    ) -> Result<SmallVec<[Entity; 4]>, Bug> {
        let value = operands.at(0)?;
        let mut pieces: SmallVec<[Entity; 4]> = smallvec![self.operand(node, replica, value)];
        let own = self.layout(node).ok_or(Bug::new("a scan without layout"))?;
        let place = replica_coordinate(own, replica, scan.dim);
        if place == 0 {
            if let Some(parts) = scan.by_wave {
                pieces.extend(self.pieces(node, replica, parts, operands.at(1)?)?);
            }
            return Ok(pieces);
        }
        let steps = own.of_source(Source::Replica).filter(|mode| mode.dim == Some(scan.dim));
        let step = steps.map(|mode| mode.stride).min().unwrap_or(1);
        let coordinate = |dim: Dim| match dim == scan.dim {
            true => place - step,
            false => replica_coordinate(own, replica, dim),
        };
        let before = replica_at(own, coordinate);
        pieces.push(*made.get(before as usize).ok_or(Bug::new("a scan out of order"))?);
        if scan.op.is_exclusive() {
            pieces.push(self.operand(node, before, value));
        }
        Ok(pieces)
    }

    fn begin(&mut self, node: Entity) {
        self.copies.first[node] = self.copies.nodes.len() as u32;
    }

    fn spawn(&mut self, world: &mut World, node: NodeBundle, expansion: Expansion) -> Entity {
        self.count += 1;
        node.spawn(world, expansion)
    }

    /// The nodes from place `first` of a body on have been made, and are the copies of a logical node.
    fn note_copies(&mut self, out: &[Entity], first: usize) {
        self.count += (out.len() - first) as u32;
        self.copies.nodes.extend_from_slice(&out[first..]);
    }

    /// Counts the nodes that expansion will make, before it makes any.
    fn judge(&self, world: &World, order: &[Entity]) -> PassResult {
        let mut count = 0usize;
        for &node in order {
            let op = nodes::op(world, node)?;
            let made = match op.expansion_rule() {
                ExpansionRule::Shared => 0,
                ExpansionRule::Region => 1,
                ExpansionRule::Steps => {
                    let steps = self.steps(world, op, nodes::node(world, node)?.operands)?;
                    self.replicas(node) as usize * (steps.k_replicas * steps.side_by_side) as usize
                }
                ExpansionRule::Carried(_)
                | ExpansionRule::Pieces
                | ExpansionRule::Gathered
                | ExpansionRule::Folded(_)
                | ExpansionRule::Chained(_) => self.replicas(node) as usize,
            };
            count = count.saturating_add(made);
            if count > MAX_OPERATIONS {
                let text = format!("the tiles of one wave take more than {MAX_OPERATIONS} operations");
                let origin = nodes::node(world, node)?.origin.0;
                return Err(Diagnostic::new(Kind::Limit, text)
                    .at(self.locations.get(origin))
                    .help("use smaller tiles, or more waves"));
            }
        }
        Ok(())
    }

    fn region(&mut self, world: &mut World, region: Entity) -> Result<Vec<Entity>, Diagnostic> {
        let region_nodes = walk::body(world, region);
        let mut out = Vec::with_capacity(256);
        let mut after = AfterRegions::default();
        for node in region_nodes {
            let NodeBundle { op, operands, ty, origin } = nodes::node(world, node)?.bundle();
            let logical = LogicalNode { node, op, operands, ty, origin };
            self.begin(node);
            let first = out.len();
            match op.expansion_rule() {
                ExpansionRule::Shared => {
                    self.copies.nodes.push(node);
                    out.push(node);
                    continue;
                }
                ExpansionRule::Region => {
                    out.push(self.iterate(world, &logical)?);
                    after.note(OpClass::Region, first..out.len());
                    continue;
                }
                ExpansionRule::Steps => {
                    self.mma(world, &logical, &mut out)?;
                    continue;
                }
                ExpansionRule::Carried(carried) => {
                    self.carried(world, region, &logical, carried, &mut out)?;
                }
                ExpansionRule::Folded(dim) => self.reduction(world, &logical, dim, &mut out)?,
                ExpansionRule::Gathered => self.rearrangement(world, &logical, &mut out)?,
                ExpansionRule::Chained(scan) => self.scan(world, &logical, scan, &mut out)?,
                ExpansionRule::Pieces => {
                    let operands = (0..self.replicas(node)).map(|replica| {
                        let mapped = logical.operands.0.iter().map(|&o| self.operand(node, replica, o));
                        (op, Operands(mapped.collect()))
                    });
                    out.extend(NodeBundle::spawn_all(world, copies(&logical, operands)));
                }
            }
            self.note_copies(&out, first);
            after.note(op.row().class, first..out.len());
        }
        // Schedules order what is inside of loops.
        if region == self.root {
            after.write_early(world, &mut out)?;
        }
        Ok(out)
    }

    /// The copies of carried values are made with their loop.
    fn carried(
        &mut self,
        world: &mut World,
        region: Entity,
        logical: &LogicalNode,
        carried: CarriedOp,
        out: &mut Vec<Entity>,
    ) -> PassResult {
        let (owner, number, after) = match carried {
            CarriedOp::IterArg(number) => (region, number, false),
            CarriedOp::LoopResult(number) => (logical.operands.at(0)?, number, true),
        };
        let before = self.carried_before(world, owner, number)?;
        self.begin(logical.node);
        let owner = after.then(|| self.copies.of(owner, 0));
        let values = (0..self.replicas(logical.node)).map(|replica| match owner {
            Some(owner) => (Op::LoopResult(before + replica), Operands(smallvec![owner])),
            None => (Op::IterArg(before + replica), Operands::default()),
        });
        out.extend(NodeBundle::spawn_all(world, copies(logical, values)));
        Ok(())
    }

    fn reduction(
        &self,
        world: &mut World,
        logical: &LogicalNode,
        folded: Dim,
        out: &mut Vec<Entity>,
    ) -> PassResult {
        let value = logical.operands.at(0)?;
        let pieces =
            (0..self.replicas(logical.node)).map(|replica| self.pieces(logical.node, replica, folded, value));
        let pieces = pieces.collect::<Result<SmallVec<[_; 4]>, Bug>>()?;
        let operands = pieces.into_iter().map(|pieces| (logical.op, Operands(pieces)));
        out.extend(NodeBundle::spawn_all(world, copies(logical, operands)));
        Ok(())
    }

    fn rearrangement(&self, world: &mut World, logical: &LogicalNode, out: &mut Vec<Entity>) -> PassResult {
        let value = logical.operands.at(0)?;
        let (Some(own), Some(from)) = (self.layout(logical.node), self.layout(value)) else {
            return Err(Bug::new("a value without layout is rearranged").into());
        };
        let (gathering, registers) = (Gathering::new(own, from), own.extent(Source::Register));
        let sources = |replica: u32| (logical.op, self.sources(&gathering, replica, registers, value));
        let operands = (0..self.replicas(logical.node)).map(sources);
        out.extend(NodeBundle::spawn_all(world, copies(logical, operands)));
        Ok(())
    }

    fn scan(
        &self,
        world: &mut World,
        logical: &LogicalNode,
        scan: Scan,
        out: &mut Vec<Entity>,
    ) -> PassResult {
        let first = out.len();
        for replica in 0..self.replicas(logical.node) {
            let pieces = self.scan_pieces(logical.node, replica, scan, &logical.operands, &out[first..])?;
            let copy = copy(logical, logical.op, Operands(pieces));
            out.push(copy.spawn(world, Expansion { replica, ..Expansion::of(logical.node) }));
        }
        Ok(())
    }

    /// Replicas of the values that a loop carries in front of one.
    fn carried_before(&mut self, world: &World, owner: Entity, number: u32) -> Result<u32, Diagnostic> {
        if self.carried.get(owner).is_none() {
            let inits = nodes::node(world, owner)?.operands;
            let mut before = SmallVec::with_capacity(inits.0.len());
            let mut sum = 0;
            for &init in &inits.0 {
                before.push(sum);
                sum += self.replicas(init);
            }
            self.carried.insert(owner, before);
        }
        let before = self.carried.get(owner).and_then(|before| before.get(number as usize));
        Ok(before.copied().ok_or(Bug::new("a carried value that its loop does not have"))?)
    }

    fn iterate(&mut self, world: &mut World, logical: &LogicalNode) -> Result<Entity, Diagnostic> {
        let flatten = |expander: &Expander, values: &[Entity]| -> SmallVec<[Entity; 4]> {
            let count: u32 = values.iter().map(|&v| expander.replicas(v)).sum();
            let mut all = SmallVec::with_capacity(count as usize);
            for &value in values {
                all.extend((0..expander.replicas(value)).map(|replica| expander.copies.of(value, replica)));
            }
            all
        };
        let inits = Operands(flatten(self, &logical.operands.0));
        let expansion = Expansion::of(logical.node);
        let copy = NodeBundle { operands: inits, ..NodeBundle::effect(logical.op, logical.origin) };
        let copy = self.spawn(world, copy, expansion);
        self.begin(logical.node);
        self.copies.nodes.push(copy);
        let body = self.region(world, logical.node)?;
        let yields = nodes::fact::<Yields>(world, logical.node, "a loop that hands nothing on")?.clone();
        let yields = Yields(flatten(self, &yields.0));
        world.entity_mut(copy).insert((Body(body), yields));
        if logical.op.walks().is_some() {
            let trip = *nodes::fact::<Trip>(world, logical.node, "a loop without trip count")?;
            world.entity_mut(copy).insert(trip);
        }
        Ok(copy)
    }

    fn mma(&mut self, world: &mut World, logical: &LogicalNode, out: &mut Vec<Entity>) -> PassResult {
        let product = self.product(world, logical)?;
        let Steps { mma, side_by_side, k_replicas, .. } = product.steps;
        let op = logical.op.with_instruction(MmaChoice::Explicit(mma));
        let replicas = self.replicas(logical.node);
        let acc = logical.operands.at(2)?;
        let mut current: SmallVec<[Entity; 64]> =
            (0..replicas).map(|replica| self.operand(logical.node, replica, acc)).collect();
        let products = out.len();
        for step in 0..k_replicas * side_by_side {
            let step = product.step(step);
            let chained = (0..replicas).map(|replica| {
                let operands = product.operands(&self.copies, replica, &step, current[replica as usize]);
                let expansion = Expansion { replica, slice: step.slice, ..Expansion::of(logical.node) };
                (copy(logical, op, operands), expansion)
            });
            let first = out.len();
            out.extend(NodeBundle::spawn_all(world, chained));
            current.copy_from_slice(&out[first..]);
        }
        drop(product);
        self.count += replicas * k_replicas * side_by_side;
        if mma.is_of_lanes() {
            read_late(world, self.root, mma, (out, products))?;
        }
        self.begin(logical.node);
        self.copies.nodes.extend(current);
        Ok(())
    }

    /// The replicas of its operands that those of a product take.
    fn product(&self, world: &World, logical: &LogicalNode) -> Result<ExpandedProduct<'_>, Diagnostic> {
        let Some((&[lhs, rhs, _], scales)) = logical.operands.0.split_first_chunk() else {
            return Err(Bug::new("an mma without three operands").into());
        };
        let steps = self.steps(world, logical.op, &logical.operands)?;
        let (left, right, result) =
            (self.layout_of(lhs)?, self.layout_of(rhs)?, self.layout_of(logical.node)?);
        let of_replica = |factor: &Layout, replica: u32| {
            let coordinate =
                |dim: Dim| if steps.k.contains(&dim) { 0 } else { replica_coordinate(result, replica, dim) };
            replica_at(factor, coordinate)
        };
        let replicas = 0..self.replicas(logical.node);
        let of_factors = replicas.clone().map(|r| [of_replica(left, r), of_replica(right, r)]).collect();
        // Scales lie along blocks of k, which neither the result nor its other dimensions have.
        let mut of_scales: SmallVec<[ScalePieces; 2]> = SmallVec::new();
        for &scale in scales {
            let (layout, dims) = (self.layout_of(scale)?, &nodes::node(world, scale)?.ty.dims);
            let block = dims.iter().copied().find(|dim| !logical.ty.dims.contains(dim));
            let block = block.ok_or(Bug::new("scales of no blocks"))?;
            let row = |dim: Dim, r: u32| if dim == block { 0 } else { replica_coordinate(result, r, dim) };
            let replicas = replicas.clone().map(|r| replica_at(layout, |dim| row(dim, r))).collect();
            of_scales.push(ScalePieces { scale, layout, block, replicas });
        }
        Ok(ExpandedProduct { steps, factors: [lhs, rhs], layouts: [left, right], of_factors, of_scales })
    }

    fn layout_of(&self, node: Entity) -> Result<&Layout, Diagnostic> {
        Ok(self.layout(node).ok_or(Bug::new("an operand without layout"))?)
    }

    /// The matrix instructions of a product along the dimension that it sums over.
    fn steps(&self, world: &World, op: Op, operands: &Operands) -> Result<Steps, Diagnostic> {
        let &[lhs, rhs, acc, ..] = operands.0.as_slice() else {
            return Err(Bug::new("an mma without three operands").into());
        };
        let ty = |node: Entity| nodes::node(world, node).map(|node| node.ty);
        let MmaDims { k, .. } = MmaDims::held(ty(lhs)?, ty(rhs)?, ty(acc)?).map_err(Diagnostic::bug)?;
        let k = k.map(|summed| summed.dim);
        let mma = match op.product() {
            Some(MmaChoice::Explicit(mma)) => mma,
            _ => self.mma.ok_or(Bug::new("an mma without matrix instruction"))?,
        };
        let left = self.layout(lhs).ok_or(Bug::new("an operand without layout"))?;
        let step_elements = mma.input_elements(0);
        // Units of several words are held one by one, in as many registers or more.
        let side_by_side = (left.extent(Source::Register) / step_elements).max(1);
        let of_k = left.of_source(Source::Replica).filter(|mode| mode.dim == Some(k[0]));
        Ok(Steps { mma, k, step_elements, side_by_side, k_replicas: of_k.map(|mode| mode.extent).product() })
    }
}

/// A logical node while its copies are made.
struct LogicalNode {
    node: Entity,
    op: Op,
    operands: Operands,
    ty: ValueType,
    origin: Origin,
}

/// A node of the type and the place of a logical one.
fn copy(logical: &LogicalNode, op: Op, operands: Operands) -> NodeBundle {
    NodeBundle { op, operands, ty: logical.ty.clone(), origin: logical.origin }
}

/// The replicas of a node, with an operation and operands of each one's own.
fn copies(
    logical: &LogicalNode,
    operands: impl ExactSizeIterator<Item = (Op, Operands)>,
) -> impl ExactSizeIterator<Item = (NodeBundle, Expansion)> {
    operands.enumerate().map(move |(replica, (op, operands))| {
        (copy(logical, op, operands), Expansion { replica: replica as u32, ..Expansion::of(logical.node) })
    })
}

/// The replicas of its operands that those of a product take: what the place in the tile says, and what the
/// step along k adds.
struct ExpandedProduct<'a> {
    steps: Steps,
    factors: [Entity; 2],
    layouts: [&'a Layout; 2],
    /// For each replica of the product those of the factors, at the first step.
    of_factors: SmallVec<[[u32; 2]; 64]>,
    of_scales: SmallVec<[ScalePieces<'a>; 2]>,
}

impl ExpandedProduct<'_> {
    fn step(&self, step: u32) -> ProductStep {
        let Steps { mma, k, step_elements, side_by_side, .. } = self.steps;
        let element = along(self.layouts[0], step / side_by_side, k[0]) * mma.held(0).elements;
        let factors = [0, 1].map(|factor| {
            let along_k = element / mma.held(factor).elements;
            replica_at(self.layouts[factor], |dim| if dim == k[factor] { along_k } else { 0 })
        });
        let block = element / SCALED_BLOCK;
        let of_block = |pieces: &ScalePieces| {
            replica_at(pieces.layout, |dim| if dim == pieces.block { block } else { 0 })
        };
        let slice = match self.of_scales.first() {
            // Lanes hold consecutive scales of both factors.
            Some(pieces) => block % pieces.layout.extent(Source::Register),
            None => step % side_by_side * step_elements,
        };
        ProductStep { factors, scales: self.of_scales.iter().map(of_block).collect(), slice }
    }

    /// What a replica multiplies in a step, and the sum that it adds to.
    fn operands(&self, copies: &ExpandedCopies, replica: u32, step: &ProductStep, sum: Entity) -> Operands {
        let of_factor = self.of_factors[replica as usize];
        let [a, b] = [0, 1].map(|at| copies.of(self.factors[at], of_factor[at] + step.factors[at]));
        let mut operands = Operands(smallvec![a, b, sum]);
        operands.0.extend(
            self.of_scales
                .iter()
                .zip(&step.scales)
                .map(|(pieces, next)| copies.of(pieces.scale, pieces.replicas[replica as usize] + next)),
        );
        operands
    }
}

/// What a step along k adds to the replicas of the first step.
struct ProductStep {
    factors: [u32; 2],
    scales: SmallVec<[u32; 2]>,
    /// The part that its instructions take of what an operand holds.
    slice: u32,
}

/// The scales of a factor.
struct ScalePieces<'a> {
    scale: Entity,
    layout: &'a Layout,
    /// The dimension that counts blocks.
    block: Dim,
    /// For each replica of the product the one of the scales for its rows, at the first blocks.
    replicas: SmallVec<[u32; 64]>,
}

/// The matrix instructions of a product along the dimension that it sums over.
struct Steps {
    mma: Mma,
    /// The dimension as lhs and as rhs hold it.
    k: [Dim; 2],
    /// Elements of lhs per lane that one instruction multiplies.
    step_elements: u32,
    /// How many such steps an operand holds side by side.
    side_by_side: u32,
    /// Replicas of lhs along the dimension.
    k_replicas: u32,
}
