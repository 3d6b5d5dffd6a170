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

use super::late_reads::read_late;
use crate::ir::diagnostic::{Diagnostic, Kind};
pub(crate) use crate::ir::facts::{Arguments, Base, ExpandedCount, Expansion, Iteration, LogicalBody};
use crate::ir::kernel::{Locations, MAX_OPERATIONS};
use crate::ir::layout::within_wave::Gathering;
use crate::ir::layout::{Dim, Layout, Mma, Place, SCALED_BLOCK, Source};
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, Side};
use crate::ir::nodes::{self, Bug, NodeBundle};
use crate::ir::op::OpClass;
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
            let made = match op.row().class {
                OpClass::Declaration => 0,
                OpClass::Region => 1,
                OpClass::Contraction => {
                    let steps = self.steps(world, op, nodes::node(world, node)?.operands)?;
                    self.replicas(node) as usize * (steps.k_replicas * steps.side_by_side) as usize
                }
                OpClass::Constant
                | OpClass::Access
                | OpClass::ElementWise
                | OpClass::Rearrangement
                | OpClass::Reduction
                | OpClass::Scan
                | OpClass::Carried
                | OpClass::Order => self.replicas(node) as usize,
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
        for node in region_nodes {
            let NodeBundle { op, operands, ty, origin } = nodes::node(world, node)?.bundle();
            self.begin(node);
            match op.row().class {
                // One for all replicas of their accesses and uses.
                OpClass::Declaration => {
                    self.copies.nodes.push(node);
                    out.push(node);
                }
                OpClass::Region => {
                    let copy = self.iterate(world, node, op, &operands, origin)?;
                    out.push(copy);
                }
                OpClass::Contraction => self.mma(world, node, op, &operands, origin, &mut out)?,
                // The copies of carried values are made with their loop.
                OpClass::Carried => {
                    let before = self.carried_before(world, region, node, op)?;
                    self.begin(node);
                    let owner = if let Op::LoopResult(_) = op {
                        Some(self.copies.of(operands.at(0)?, 0))
                    } else {
                        None
                    };
                    let copies = (0..self.replicas(node)).map(|replica| {
                        let (op, operands) = match owner {
                            Some(owner) => (Op::LoopResult(before + replica), Operands(smallvec![owner])),
                            None => (Op::IterArg(before + replica), Operands::default()),
                        };
                        let expansion = Expansion { replica, ..Expansion::of(node) };
                        (NodeBundle { op, operands, ty: ty.clone(), origin }, expansion)
                    });
                    let first = out.len();
                    out.extend(NodeBundle::spawn_all(world, copies));
                    self.note_copies(&out, first);
                }
                OpClass::Reduction => {
                    let copies: SmallVec<[_; 4]> = (0..self.replicas(node))
                        .map(|replica| {
                            let Op::Reduce(reduction) = op else { return Err(Bug::new("not a reduction")) };
                            let pieces = self.pieces(node, replica, reduction.dim, operands.at(0)?)?;
                            let expansion = Expansion { replica, ..Expansion::of(node) };
                            Ok((
                                NodeBundle { op, operands: Operands(pieces), ty: ty.clone(), origin },
                                expansion,
                            ))
                        })
                        .collect::<Result<_, Bug>>()?;
                    let first = out.len();
                    out.extend(NodeBundle::spawn_all(world, copies.into_iter()));
                    self.note_copies(&out, first);
                }
                OpClass::Rearrangement => {
                    let value = operands.at(0)?;
                    let (Some(own), Some(from)) = (self.layout(node), self.layout(value)) else {
                        return Err(Bug::new("a value without layout is rearranged").into());
                    };
                    let (gathering, registers) = (Gathering::new(own, from), own.extent(Source::Register));
                    let copies: SmallVec<[_; 16]> = (0..self.replicas(node))
                        .map(|replica| {
                            let operands = self.sources(&gathering, replica, registers, value);
                            let expansion = Expansion { replica, ..Expansion::of(node) };
                            (NodeBundle { op, operands, ty: ty.clone(), origin }, expansion)
                        })
                        .collect();
                    let first = out.len();
                    out.extend(NodeBundle::spawn_all(world, copies.into_iter()));
                    self.note_copies(&out, first);
                }
                OpClass::Scan => {
                    let Op::Scan(scan) = op else { return Err(Bug::new("not a scan").into()) };
                    let first = out.len();
                    for replica in 0..self.replicas(node) {
                        let pieces = self.scan_pieces(node, replica, scan, &operands, &out[first..])?;
                        let expansion = Expansion { replica, ..Expansion::of(node) };
                        let copy = NodeBundle { op, operands: Operands(pieces), ty: ty.clone(), origin };
                        out.push(copy.spawn(world, expansion));
                    }
                    self.note_copies(&out, first);
                }
                OpClass::Constant | OpClass::Access | OpClass::ElementWise | OpClass::Order => {
                    let copies = (0..self.replicas(node)).map(|replica| {
                        let mapped = operands.0.iter().map(|&o| self.operand(node, replica, o)).collect();
                        let expansion = Expansion { replica, ..Expansion::of(node) };
                        (NodeBundle { op, operands: Operands(mapped), ty: ty.clone(), origin }, expansion)
                    });
                    let first = out.len();
                    out.extend(NodeBundle::spawn_all(world, copies));
                    self.note_copies(&out, first);
                }
            }
        }
        Ok(out)
    }

    /// Replicas of the values that a loop carries in front of a carried value.
    fn carried_before(
        &mut self,
        world: &World,
        region: Entity,
        node: Entity,
        op: Op,
    ) -> Result<u32, Diagnostic> {
        let (owner, number) = if let Op::IterArg(number) = op {
            (region, number)
        } else if let Op::LoopResult(number) = op {
            (nodes::node(world, node)?.operand(0)?, number)
        } else {
            return Err(Bug::new("not a carried value").into());
        };
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

    fn iterate(
        &mut self,
        world: &mut World,
        node: Entity,
        op: Op,
        operands: &Operands,
        origin: Origin,
    ) -> Result<Entity, Diagnostic> {
        let flatten = |expander: &Expander, values: &[Entity]| -> SmallVec<[Entity; 4]> {
            let count: u32 = values.iter().map(|&v| expander.replicas(v)).sum();
            let mut all = SmallVec::with_capacity(count as usize);
            for &value in values {
                all.extend((0..expander.replicas(value)).map(|replica| expander.copies.of(value, replica)));
            }
            all
        };
        let inits = Operands(flatten(self, &operands.0));
        let expansion = Expansion::of(node);
        let copy = NodeBundle { operands: inits, ..NodeBundle::effect(op, origin) };
        let copy = self.spawn(world, copy, expansion);
        self.begin(node);
        self.copies.nodes.push(copy);
        let body = self.region(world, node)?;
        let yields = nodes::fact::<Yields>(world, node, "a loop that hands nothing on")?.clone();
        let yields = Yields(flatten(self, &yields.0));
        world.entity_mut(copy).insert((Body(body), yields));
        if op.walks().is_some() {
            let trip = *nodes::fact::<Trip>(world, node, "a loop without trip count")?;
            world.entity_mut(copy).insert(trip);
        }
        Ok(copy)
    }

    fn mma(
        &mut self,
        world: &mut World,
        node: Entity,
        op: Op,
        operands: &Operands,
        origin: Origin,
        out: &mut Vec<Entity>,
    ) -> PassResult {
        let Some((&[lhs, rhs, acc], scales)) = operands.0.split_first_chunk() else {
            return Err(Bug::new("an mma without three operands").into());
        };
        let Steps { mma, k, step_elements, side_by_side, k_replicas } = self.steps(world, op, operands)?;
        let op = op.with_instruction(MmaChoice::Explicit(mma));
        let ty = nodes::node(world, node)?.ty.clone();
        let (left, right, result) = (self.layout_of(lhs)?, self.layout_of(rhs)?, self.layout_of(node)?);
        let replicas = self.replicas(node);
        let mut current: SmallVec<[Entity; 64]> =
            (0..replicas).map(|replica| self.operand(node, replica, acc)).collect();
        // Replicas of the factors: what the place in the tile says, and what the step along k adds.
        let of_replica = |factor: &Layout, replica: u32| {
            let coordinate =
                |dim: Dim| if k.contains(&dim) { 0 } else { replica_coordinate(result, replica, dim) };
            replica_at(factor, coordinate)
        };
        let factors: SmallVec<[[u32; 2]; 64]> =
            (0..replicas).map(|r| [of_replica(left, r), of_replica(right, r)]).collect();
        let products = out.len();
        // Scales lie along blocks of k, which neither the result nor its other dimensions have.
        let mut of_scales: SmallVec<[ScalePieces; 2]> = SmallVec::new();
        for &scale in scales {
            let (layout, dims) = (self.layout_of(scale)?, &nodes::node(world, scale)?.ty.dims);
            let block = dims.iter().copied().find(|dim| !ty.dims.contains(dim));
            let block = block.ok_or(Bug::new("scales of no blocks"))?;
            let row = |dim: Dim, r: u32| if dim == block { 0 } else { replica_coordinate(result, r, dim) };
            let replicas = (0..replicas).map(|r| replica_at(layout, |dim| row(dim, r))).collect();
            of_scales.push(ScalePieces { scale, layout, block, replicas });
        }
        for step in 0..k_replicas * side_by_side {
            let element = along(left, step / side_by_side, k[0]) * mma.held(0).elements;
            let factor_slice = step % side_by_side * step_elements;
            let [left, right] = [(left, 0), (right, 1)].map(|(layout, factor)| {
                let along_k = element / mma.held(factor).elements;
                replica_at(layout, |dim| if dim == k[factor] { along_k } else { 0 })
            });
            let block = element / SCALED_BLOCK;
            let of_block = |pieces: &ScalePieces| {
                replica_at(pieces.layout, |dim| if dim == pieces.block { block } else { 0 })
            };
            let next: SmallVec<[u32; 2]> = of_scales.iter().map(of_block).collect();
            // Lanes hold consecutive scales of both factors.
            let held = of_scales.first().map_or(1, |pieces| pieces.layout.extent(Source::Register));
            let slice = if of_scales.is_empty() { factor_slice } else { block % held };
            let products = (0..replicas).map(|replica| {
                let [a, b] = factors[replica as usize];
                let (a, b) = (self.copies.of(lhs, a + left), self.copies.of(rhs, b + right));
                let expansion = Expansion { replica, slice, ..Expansion::of(node) };
                let mut chained = Operands(smallvec![a, b, current[replica as usize]]);
                chained.0.extend(of_scales.iter().zip(&next).map(|(pieces, next)| {
                    self.copies.of(pieces.scale, pieces.replicas[replica as usize] + next)
                }));
                (NodeBundle { op, operands: chained, ty: ty.clone(), origin }, expansion)
            });
            let first = out.len();
            out.extend(NodeBundle::spawn_all(world, products));
            current.copy_from_slice(&out[first..]);
        }
        drop(of_scales);
        self.count += replicas * k_replicas * side_by_side;
        if mma.is_of_lanes() {
            read_late(world, out, products)?;
        }
        self.begin(node);
        self.copies.nodes.extend(current);
        Ok(())
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
