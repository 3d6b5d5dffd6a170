//! Cleaning up logical nodes: loop-invariant hoisting, common subexpressions, dead code. Three systems over
//! the same small facts about operations.

use std::hash::{Hash, Hasher};

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::addresses::{judge_memories, most_memories};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::InternTable;
use crate::ir::kernel::{KernelName, Locations};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet, Side};
use crate::ir::nodes::Bug;
use crate::ir::op::{ConstantOp, OpClass, OpFamily, Purity};
use crate::ir::walk::{self, NodeList};
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, Settings, TurnedUnits};
use cranelift_entity::{EntityRef, entity_impl};

/// Memories that some node of the kernel writes.
fn written(nodes: &SimplifiedNodes, order: &[Entity]) -> Result<NodeSet, Diagnostic> {
    let mut written = NodeSet::default();
    for &node in order {
        let (op, operands, ..) = nodes.get(node)?;
        if op.is_write() {
            written.insert(operands.last()?);
        }
    }
    Ok(written)
}

/// Reading a memory that is never written is as good as pure, unless the author says that others write it.
fn is_repeatable(op: Op, operands: &Operands, flags: Option<&MemoryAccessFlags>, written: &NodeSet) -> bool {
    match op.row().purity {
        Purity::OfMemory if is_volatile(flags) => false,
        Purity::Pure => true,
        Purity::OfMemory => !operands.0.iter().any(|&memory| written.contains(memory)),
        Purity::Unmoved | Purity::Effect => false,
    }
}

/// Whether an access is one that stays as it is written.
fn is_volatile(flags: Option<&MemoryAccessFlags>) -> bool {
    flags.is_some_and(|flags| flags.volatile)
}

/// Nodes, with the components that these passes read of most of them.
type SimplifiedNodes<'w, 's> =
    Query<'w, 's, (&'static Op, &'static Operands, &'static ValueType, Option<&'static MemoryAccessFlags>)>;

/// Moves nodes out of loops if all their operands are outside and their tile does not change from iteration
/// to iteration.
pub(crate) fn hoist_invariants(
    kernel: Single<(Entity, &Geometry), With<KernelName>>,
    mut bodies: Query<&mut Body>,
    nodes: SimplifiedNodes,
) -> PassResult {
    let (root, geometry) = *kernel;
    let order = walk::order(&bodies.as_readonly(), root);
    let written = written(&nodes, &order)?;
    let regions = walk::regions_of(&bodies.as_readonly(), root);
    // Inner loops first, so that nodes that leave an inner loop can leave the outer one as well.
    for &parent in regions.iter().rev() {
        let mut out = NodeList::new();
        for node in NodeList::from_slice(&bodies.get(parent)?.0) {
            let op = *nodes.get(node)?.0;
            let axis = if let Op::Iterate(axis) = op { Some(axis) } else { None };
            if axis.is_some() || op == Op::While {
                let inner = NodeList::from_slice(&bodies.get(node)?.0);
                let mut inside: NodeSet = inner.iter().copied().collect();
                let mut stay = NodeList::new();
                for candidate in inner {
                    let (&op, operands, ty, flags) = nodes.get(candidate)?;
                    let moves = is_repeatable(op, operands, flags, &written)
                        && operands.0.iter().all(|&operand| !inside.contains(operand))
                        && axis.is_none_or(|axis| {
                            geometry.walked(&ty.dims, axis).is_none() && op != Op::Iteration(axis)
                        });
                    if moves {
                        inside.remove(candidate);
                        out.push(candidate);
                    } else {
                        stay.push(candidate);
                    }
                }
                bodies.get_mut(node)?.set(&stay);
            }
            out.push(node);
        }
        bodies.get_mut(parent)?.set(&out);
    }
    Ok(())
}

/// Merges nodes of one region that compute the same value.
pub(crate) fn merge_common(
    kernel: Single<Entity, With<KernelName>>,
    bodies: Query<&mut Body>,
    values: Values,
) -> PassResult {
    merge_counted(kernel, bodies, values).map(drop)
}

/// [`merge_common`], with the number of comparisons of two nodes.
pub(crate) fn merge_counted(
    kernel: Single<Entity, With<KernelName>>,
    mut bodies: Query<&mut Body>,
    mut values: Values,
) -> Result<usize, Diagnostic> {
    let order = walk::order(&bodies.as_readonly(), *kernel);
    let mut written = NodeSet::default();
    for &node in &order {
        let value = values.get(node)?;
        if value.op.is_write() {
            written.insert(value.operands.last()?);
        }
    }
    let mut merger = Merger::default();
    for region in walk::regions_of(&bodies.as_readonly(), *kernel) {
        let first = MergedId::new(merger.values.len());
        let mut kept = NodeList::new();
        for &node in &bodies.get(region)?.0 {
            merger.rename(&mut values, node)?;
            let value = values.get(node)?;
            let repeatable = is_repeatable(*value.op, value.operands, value.flags, &written);
            if !repeatable || !merger.merge(&values, node, first)? {
                kept.push(node);
            }
        }
        bodies.get_mut(region)?.set(&kept);
    }
    for node in walk::order(&bodies.as_readonly(), *kernel) {
        merger.rename(&mut values, node)?;
    }
    Ok(merger.compared)
}

/// The components that decide whether values are the same, and those that name them.
#[derive(QueryData)]
#[query_data(mutable)]
pub(crate) struct MergedValue {
    op: &'static Op,
    ty: &'static ValueType,
    tag: Option<&'static Tag>,
    mapping: Option<&'static Mapping>,
    turned: Option<&'static TurnedUnits>,
    flags: Option<&'static MemoryAccessFlags>,
    operands: &'static mut Operands,
    yields: Option<&'static mut Yields>,
}

type Values<'w, 's> = Query<'w, 's, MergedValue>;

/// The number of a value that merging has seen.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct MergedId(u32);
entity_impl!(MergedId, "");

/// Values that have been seen, and the nodes that have been merged with them.
#[derive(Default)]
struct Merger {
    /// Nodes that compute a value for the first time in their region, region by region, and the place of each
    /// by its hash.
    values: SmallVec<[Entity; 64]>,
    table: InternTable<MergedId>,
    /// Merged nodes, and the node that now stands for each of them.
    replaced: NodeMap<Entity>,
    /// How often two nodes were compared.
    compared: usize,
}

impl Merger {
    /// Enters a value, or merges it with an equal one of its region, whose values begin at `first`.
    fn merge(&mut self, values: &Values, node: Entity, first: MergedId) -> Result<bool, Diagnostic> {
        let hash = hash_value(values, node, first)?;
        let mut fault = None;
        let twin = self.table.find(hash, |at| {
            self.compared += 1;
            at >= first
                && same_value(values, node, self.values[at.index()]).unwrap_or_else(|bug| {
                    fault = Some(bug);
                    false
                })
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        match twin {
            Some(twin) => self.replaced.insert(node, self.values[twin.index()]),
            None => {
                self.table.insert(hash, MergedId::new(self.values.len()));
                self.values.push(node);
            }
        }
        Ok(twin.is_some())
    }

    /// Replaces operands that were merged.
    fn rename(&self, values: &mut Values, node: Entity) -> PassResult {
        if self.replaced.is_empty() {
            return Ok(());
        }
        let replace = |used: &mut Entity| *used = self.replaced.get(*used).copied().unwrap_or(*used);
        let mut value = values.get_mut(node)?;
        value.operands.0.iter_mut().for_each(replace);
        // Only loops hand values on.
        if let Some(yields) = &mut value.yields {
            yields.0.iter_mut().for_each(replace);
        }
        Ok(())
    }
}

/// Equal operations; constants bit by bit, because -0.0 equals 0.0 and is another value.
fn same_op(a: &Op, b: &Op) -> bool {
    match (a, b) {
        (Op::Register(Constant::Float(a)), Op::Register(Constant::Float(b))) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn same_value(values: &Values, a: Entity, b: Entity) -> Result<bool, Diagnostic> {
    let (a, b) = (values.get(a)?, values.get(b)?);
    Ok(same_op(a.op, b.op)
        && a.operands == b.operands
        && a.ty == b.ty
        && a.tag == b.tag
        && a.mapping == b.mapping
        && a.turned == b.turned
        && a.flags == b.flags)
}

/// A hash of what [`same_value`] compares, and of the region.
fn hash_value(values: &Values, node: Entity, region: MergedId) -> Result<u32, Diagnostic> {
    let mut hasher = FxHasher::default();
    region.hash(&mut hasher);
    let MergedValueReadOnlyItem { op, ty, tag, mapping, operands, .. } = values.get(node)?;
    std::mem::discriminant(op).hash(&mut hasher);
    match op.family() {
        OpFamily::Constant(ConstantOp::Register(constant)) => match constant {
            Constant::Float(value) => value.to_bits().hash(&mut hasher),
            Constant::Integer(value) => value.hash(&mut hasher),
        },
        OpFamily::Constant(ConstantOp::WorkgroupId(axis)) => axis.hash(&mut hasher),
        OpFamily::Constant(
            ConstantOp::SelfIndex(dim) | ConstantOp::Size(dim) | ConstantOp::Iteration(dim),
        ) => dim.hash(&mut hasher),
        OpFamily::ElementWise(op) => op.hash(&mut hasher),
        OpFamily::AlongDim(op) => op.hash(&mut hasher),
        // The other parts of the operation are compared.
        OpFamily::Declaration(_)
        | OpFamily::Access(_)
        | OpFamily::Rearrangement(_)
        | OpFamily::Contraction(_)
        | OpFamily::Region(_)
        | OpFamily::Carried(_)
        | OpFamily::Order(_) => {}
    }
    operands.0.iter().for_each(|operand| operand.index_u32().hash(&mut hasher));
    ty.dtype.hash(&mut hasher);
    ty.dims.iter().for_each(|dim| dim.0.hash(&mut hasher));
    if let Some(tag) = tag {
        tag.0.hash(&mut hasher);
    }
    if let Some(mapping) = mapping {
        mapping.hash(&mut hasher);
    }
    Ok(hasher.finish() as u32)
}

/// Drops nodes that no effect depends on, and carried values that only themselves depend on.
pub(crate) fn remove_dead(
    kernel: Single<(Entity, &Settings, &Locations), With<KernelName>>,
    mut graph: Graph,
) -> PassResult {
    let (root, settings, locations) = *kernel;
    let regions = walk::regions_of(&graph.bodies.as_readonly(), root);
    let order = walk::order(&graph.bodies.as_readonly(), root);
    let mut uses =
        Uses { region_of: Side::of(&order, root), live: Side::of(&order, false), pending: NodeList::new() };
    for &region in &regions {
        for &node in &graph.bodies.get(region)?.0 {
            uses.region_of[node] = region;
            let is_effect = graph.nodes.get(node)?.0.row().purity == Purity::Effect;
            if is_effect || is_volatile(graph.flags.get(node).ok()) {
                uses.note(node);
            }
        }
    }
    uses.follow(&graph, root)?;
    renumber_carried(&mut graph, &regions, &order, &uses)?;
    for &region in &regions {
        let mut body = graph.bodies.get_mut(region)?;
        // The kernel itself carries nothing.
        if region != root {
            let (op, mut operands, _) = graph.nodes.get_mut(region)?;
            let carried = op.initial(&operands.0).len();
            uses.retain_carried(&body.0, carried, &mut operands.0);
            uses.retain_carried(&body.0, carried, &mut graph.yields.get_mut(region)?.0);
        }
        body.0.retain(|&node| uses.is_live(node));
    }
    let most = most_memories(&settings.0);
    if order.len() <= most {
        return Ok(());
    }
    let is_memory = |node: Entity| graph.nodes.get(node).is_ok_and(|node| *node.0 == Op::Memory);
    let live = order.iter().filter(|node| uses.is_live(**node));
    let operands = live.filter_map(|&node| graph.nodes.get(node).ok()).flat_map(|node| &node.1.0);
    let memories = operands.copied().filter(|&node| is_memory(node));
    judge_memories(memories, most, |node| locations.get(graph.nodes.get(node).ok()?.2.0))
}

/// Nodes with their operands and where they were written, and regions.
#[derive(SystemParam)]
pub(crate) struct Graph<'w, 's> {
    nodes: Query<'w, 's, (&'static mut Op, &'static mut Operands, &'static Origin)>,
    flags: Query<'w, 's, &'static MemoryAccessFlags>,
    yields: Query<'w, 's, &'static mut Yields>,
    bodies: Query<'w, 's, &'static mut Body>,
}

/// The nodes that effects depend on.
struct Uses {
    /// The region that each node stands in, by entity index.
    region_of: Side<Entity>,
    live: Side<bool>,
    /// Nodes whose operands are still to be noted.
    pending: NodeList,
}

impl Uses {
    fn is_live(&self, node: Entity) -> bool {
        self.live[node]
    }

    fn note(&mut self, node: Entity) {
        if !std::mem::replace(&mut self.live[node], true) {
            self.pending.push(node);
        }
    }

    /// Notes everything that the noted nodes depend on.
    fn follow(&mut self, graph: &Graph, root: Entity) -> PassResult {
        while let Some(node) = self.pending.pop() {
            let region = self.region_of[node];
            if region != root {
                self.note(region);
            }
            let (op, operands, _) = graph.nodes.get(node)?;
            if let Op::IterArg(number) = *op {
                self.carried(graph, region, number)?;
            } else if let Op::LoopResult(number) = *op {
                let owner = operands.at(0)?;
                self.note(owner);
                self.carried(graph, owner, number)?;
            } else if op.row().class == OpClass::Region {
                // Its initial values are noted together with the values that they become.
                op.condition(&operands.0).into_iter().for_each(|condition| self.note(condition));
                if let (Op::While, Some(&again)) = (op, graph.yields.get(node)?.0.last()) {
                    self.note(again);
                }
            } else {
                operands.0.iter().for_each(|&used| self.note(used));
            }
        }
        Ok(())
    }

    /// Notes a carried value: its initial value, its argument in the body, and the value that the body
    /// yields.
    fn carried(&mut self, graph: &Graph, owner: Entity, number: u32) -> PassResult {
        let at = number as usize;
        self.note(graph.nodes.get(owner)?.1.at(at)?);
        self.note(graph.bodies.get(owner)?.at(at)?);
        self.note(graph.yields.get(owner)?.at(at)?);
        Ok(())
    }

    /// Keeps the entries of a list of carried values whose arguments, which a loop's body begins with, are
    /// used.
    fn retain_carried(&self, body: &[Entity], carried: usize, values: &mut SmallVec<[Entity; 4]>) {
        // A condition comes after them.
        let mut arguments = body[..carried.min(body.len())].iter();
        values.retain(|_| arguments.next().is_none_or(|&argument| self.is_live(argument)));
    }
}

/// Renumbers the remaining carried values, in the bodies of their loops and after these.
fn renumber_carried(graph: &mut Graph, regions: &[Entity], order: &[Entity], uses: &Uses) -> PassResult {
    for &region in regions {
        let left = graph.bodies.get(region)?.0.iter().filter(|&&node| uses.is_live(node));
        for (number, &node) in (0..).zip(left) {
            let (mut op, ..) = graph.nodes.get_mut(node)?;
            if !matches!(*op, Op::IterArg(_)) {
                break;
            }
            *op = Op::IterArg(number);
        }
    }
    for &node in order.iter().filter(|&&node| uses.is_live(node)) {
        let (op, operands, _) = graph.nodes.get(node)?;
        if let Op::LoopResult(number) = *op {
            let owner = operands.at(0)?;
            let argument = graph.bodies.get(owner)?.at(number as usize)?;
            let Op::IterArg(new) = *graph.nodes.get(argument)?.0 else {
                return Err(Bug::new("a loop does not begin with what it carries").into());
            };
            *graph.nodes.get_mut(node)?.0 = Op::LoopResult(new);
        }
    }
    Ok(())
}
