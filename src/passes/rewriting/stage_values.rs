//! Values that are read at coordinates: each is written to an LDS buffer of its own as soon as it exists, and
//! the reads are reads of the buffer. So elements change places among the lanes and waves of a workgroup.
//!
//! It is done before any layout is chosen, and later passes see buffers alone. The reference interpreter
//! takes the elements from the value.

use bevy_ecs::prelude::*;
use smallvec::smallvec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, SymNode, SymOp};
use crate::ir::kernel::Locations;
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{self, NodeBundle};
use crate::ir::op::OpClass;
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk::{self, NodeList};
use crate::passes::analysis::mapped_accesses::block_of;
use crate::passes::facts::{DimGeometry, Geometry};
use crate::passes::{PassResult, kernel_entity};

/// The pass itself; see the module.
pub(crate) fn stage_values(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let mut staged = Staged::default();
    for node in walk::nodes(world, root) {
        if world.get::<Mapping>(node).is_none() || nodes::op(world, node)? != Op::Read {
            continue;
        }
        let value = nodes::node(world, node)?.memory()?;
        if nodes::op(world, value)?.row().class == OpClass::Declaration {
            continue;
        }
        judge(world, root, node, value)?;
        let buffer = staged.buffer_of(world, node, value)?;
        let mut operands = nodes::fact_mut::<Operands>(world, node, "a read without operands")?;
        if let Some(last) = operands.0.last_mut() {
            *last = buffer;
        }
    }
    for region in walk::regions(world, root) {
        let body = walk::body(world, region);
        let with_writes = staged.with_writes(world, &body)?;
        nodes::fact_mut::<Body>(world, region, "a region without body")?.0 = with_writes;
    }
    let mut body = nodes::fact_mut::<Body>(world, root, "a kernel without body")?;
    body.0.splice(0..0, staged.buffers);
    Ok(())
}

/// Refuses what LDS cannot hold, and coordinates in what another workgroup or iteration has of a value.
fn judge(world: &World, root: Entity, read: Entity, value: Entity) -> PassResult {
    let at = || {
        let origin = nodes::node(world, read).ok()?.origin.0;
        world.get::<Locations>(root)?.get(origin)
    };
    let ty = nodes::node(world, value)?.ty;
    if ty.dtype == Some(DType::I1) {
        let help = "read a number at coordinates: `select` makes one of a condition, and `compare` the \
                    condition again";
        return Err(Diagnostic::invalid("a condition is read at coordinates").at(at()).help(help));
    }
    let geometry = nodes::fact::<Geometry>(world, root, "a kernel without geometry")?;
    let mapping = nodes::fact::<Mapping>(world, read, "a read without coordinates")?;
    for (coordinate, &dim) in mapping.0.iter().zip(&ty.dims) {
        let entry = geometry.dim(dim);
        let whose = match (entry.tiling, entry.workgroup) {
            (Some(_), _) => "the part of another iteration",
            (None, Some(_)) => "another workgroup's part",
            (None, None) => continue,
        };
        let is_own = || is_own_block(coordinate, entry, geometry) || is_in_block(coordinate, dim, geometry);
        if coordinate.as_symbol() != Some(entry.symbol) && !is_own() {
            let name = entry.symbol.name();
            let text = format!("this coordinate along {name} may lie in {whose} of the value");
            let help = format!("the coordinate along {name} is `{name}`, or {name} is not divided");
            return Err(Diagnostic::invalid(text).at(at()).help(help));
        }
    }
    Ok(())
}

/// Whether a coordinate is that of the block in which an element of the base lies.
fn is_own_block(coordinate: &SymExpr, entry: &DimGeometry, geometry: &Geometry) -> bool {
    entry.scaled_from.is_some_and(|(base, by)| *coordinate == block_of(geometry.dim(base).symbol, by))
}

/// Whether a coordinate along `dim` is that of an element of a block, `K/2 * 2 + 1` or `K/32 * 32 + x % 32`:
/// the workgroup that has a block has all of its elements.
fn is_in_block(coordinate: &SymExpr, dim: Dim, geometry: &Geometry) -> bool {
    geometry.dims.values().any(|entry| match entry.scaled_from {
        Some((base, by)) if base == dim => {
            let first = SymExpr::from(entry.symbol) * i64::from(by);
            let is_place = |place: &SymExpr| {
                let is_number = matches!(place.node(), SymNode::Int(at) if (0..i128::from(by)).contains(at));
                let is_within = matches!(place.node(), SymNode::Operation(SymOp::Mod, _, within)
                    if *within.node() == SymNode::Int(by.into()));
                is_number || is_within
            };
            *coordinate == first
                || matches!(coordinate.node(), SymNode::Operation(SymOp::Add, block, place)
                    if *block == first && is_place(place))
        }
        _ => false,
    })
}

/// Buffers and writes so far.
#[derive(Default)]
struct Staged {
    buffers: NodeList,
    /// The buffer of a value, and the write that fills it.
    of_value: NodeMap<[Entity; 2]>,
}

impl Staged {
    /// The buffer that a value is read from.
    fn buffer_of(&mut self, world: &mut World, read: Entity, value: Entity) -> Result<Entity, Diagnostic> {
        if let Some(&[buffer, _]) = self.of_value.get(value) {
            return Ok(buffer);
        }
        let origin = *nodes::node(world, read)?.origin;
        let ty = nodes::node(world, value)?.ty.clone();
        let buffer = NodeBundle { ty, ..NodeBundle::effect(Op::Allocate, origin) };
        let buffer = buffer.spawn(world, Space(AddressSpace::Shared));
        let operands = Operands(smallvec![value, buffer]);
        let write = NodeBundle { operands, ..NodeBundle::effect(Op::Write, origin) }.spawn(world, ());
        self.buffers.push(buffer);
        self.of_value.insert(value, [buffer, write]);
        Ok(buffer)
    }

    /// The nodes of a region with the writes of its values. Carried values stay side by side.
    fn with_writes(&self, world: &World, body: &[Entity]) -> Result<Vec<Entity>, Diagnostic> {
        let mut nodes = Vec::with_capacity(body.len());
        let mut pending = NodeList::new();
        for &node in body {
            if nodes::op(world, node)?.row().class != OpClass::Carried {
                nodes.append(&mut pending.drain(..).collect());
            }
            nodes.push(node);
            pending.extend(self.of_value.get(node).map(|made| made[1]));
        }
        nodes.extend(pending);
        Ok(nodes)
    }
}
