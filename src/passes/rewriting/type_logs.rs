//! Logs: each gets the dimensions and the dtype of the value that is written to it, in front of them its
//! slots, and writes get the coordinates that their author did not write. From here on a log is a memory like
//! others. Where the options ask for checks of bounds, the kernel gets a log of its own for them.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::check_bounds::check_bounds;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::SymExpr;
use crate::ir::interpreter::own_coordinate;
use crate::ir::kernel::{DimTable, Locations};
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::DebugLog;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{self, NodeBundle};
use crate::ir::type_rules::{TypeRules, TypedAccess, TypedNode, WrittenBy};
use crate::ir::types::DType;
use crate::ir::walk;
use crate::passes::facts::{Geometry, Settings};
use crate::passes::options::BoundsChecking;
use crate::passes::{PassResult, kernel_entity};

/// The pass itself; see the module.
pub(crate) fn type_logs(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let order = walk::nodes(world, root);
    let untyped = |world: &World, node: Entity| {
        let is_log = world.get::<DebugLog>(node).is_some();
        Ok::<_, Diagnostic>(is_log && nodes::node(world, node)?.ty.dtype.is_none())
    };
    let mut slots: NodeMap<usize> = NodeMap::default();
    for &node in &order {
        if untyped(world, node)? {
            slots.insert(node, nodes::node(world, node)?.ty.dims.len());
        }
    }
    for &node in &order {
        if nodes::op(world, node)? != Op::Write {
            continue;
        }
        let log = nodes::node(world, node)?.memory()?;
        let Some(&slots) = slots.get(log) else { continue };
        type_write(world, root, node, log, slots).map_err(|fault| fault.at(place(world, root, node)))?;
    }
    for &node in &order {
        if untyped(world, node)? {
            let fault = Diagnostic::invalid("nothing is written to this log").at(place(world, root, node));
            return Err(fault.help("write a value to it, or remove it"));
        }
    }
    let options = &nodes::fact::<Settings>(world, root, "a kernel without options")?.0;
    match options.requested_bounds_checks() {
        BoundsChecking::Off => Ok(()),
        BoundsChecking::Coordinates => check_bounds(world, root),
    }
}

fn place(world: &World, root: Entity, node: Entity) -> Option<Location> {
    world.get::<Locations>(root)?.get(world.get::<Origin>(node)?.0)
}

/// Gives the log of a write its type, or checks that the write fits the type that it has.
fn type_write(world: &mut World, root: Entity, write: Entity, log: Entity, slots: usize) -> PassResult {
    let value = with_dims(world, root, write)?;
    let ty = nodes::node(world, value)?.ty.clone();
    let own = nodes::node(world, log)?.ty.clone();
    let dims = nodes::fact::<DimTable>(world, root, "a kernel without dimensions")?.clone();
    let rules = TypeRules { dims: &dims, written_by: WrittenBy::Author };
    match ty.dtype {
        None => {
            let text = "a number without dtype is logged";
            return Err(Diagnostic::invalid(text).help("log a value, or a register with a dtype"));
        }
        Some(DType::I1) => {
            let text = format!("a condition {} is logged", rules.show(&ty));
            return Err(Diagnostic::invalid(text).help("make it a number with `select`, and log that"));
        }
        Some(DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2) => {
            let text = format!("a value {} is logged", rules.show(&ty));
            return Err(Diagnostic::invalid(text).help("cast it to a wider float, and log that"));
        }
        Some(_) => {}
    }
    if own.dtype.is_none() {
        if let Some(&dim) = ty.dims.iter().find(|dim| own.dims.contains(dim)) {
            let name = rules.dims.name(dim);
            let text = format!("a log of {name} slots has a value with a dimension {name}");
            return Err(
                Diagnostic::invalid(text).help("equal numbers are one dimension: ask for one slot more")
            );
        }
        let dims: Dims = own.dims.iter().chain(&ty.dims).copied().collect();
        *nodes::fact_mut::<ValueType>(world, log, "a memory without type")? =
            ValueType { dims, dtype: ty.dtype };
    } else if own.dtype != ty.dtype
        || own.dims.len() != slots + ty.dims.len()
        || own.dims[slots..].iter().any(|dim| !ty.dims.contains(dim))
    {
        let held = ValueType { dims: own.dims[slots..].into(), dtype: own.dtype };
        let text = format!("a value {} is logged where {} was logged", rules.show(&ty), rules.show(&held));
        return Err(Diagnostic::invalid(text).help("log it under another name"));
    }
    let written = world.get::<Mapping>(write).map_or(0, |mapping| mapping.0.len());
    if written != slots {
        let given = match written {
            1 => "1 coordinate is".to_owned(),
            count => format!("{count} coordinates are"),
        };
        let text = format!("{given} given for a log with {slots} for its slots");
        let help = "a log without slots is written without coordinates, one with slots `at [slot]`";
        return Err(Diagnostic::invalid(text).help(help));
    }
    complete(world, root, write, log, slots)
}

/// The value that a write logs, along a dimension of one element if it has none.
fn with_dims(world: &mut World, root: Entity, write: Entity) -> Result<Entity, Diagnostic> {
    let node = nodes::node(world, write)?;
    let (value, origin) = (node.operands.at(0)?, *node.origin);
    let ty = nodes::node(world, value)?.ty.clone();
    if !ty.dims.is_empty() || ty.dtype.is_none_or(|dtype| dtype == DType::I1) {
        return Ok(value);
    }
    let one = nodes::fact::<DimTable>(world, root, "a kernel without dimensions")?.find(1u32.into());
    let one = one.ok_or_else(|| Diagnostic::bug("a kernel with logs has no dimension 1"))?;
    let broadcast = NodeBundle {
        op: Op::Broadcast,
        operands: Operands(smallvec![value]),
        ty: ValueType { dims: smallvec![one], dtype: ty.dtype },
        origin,
    };
    let broadcast = broadcast.spawn(world, ());
    let region =
        walk::region_of(world, root, write).ok_or_else(|| Diagnostic::bug("a write in no region"))?;
    let mut body = nodes::fact_mut::<Body>(world, region, "a region without body")?;
    let at = body.0.iter().position(|&node| node == write).unwrap_or(0);
    body.0.insert(at, broadcast);
    let mut operands = nodes::fact_mut::<Operands>(world, write, "a write without operands")?;
    operands.0[0] = broadcast;
    Ok(broadcast)
}

/// Adds the coordinates of the value to that of the slot.
fn complete(world: &mut World, root: Entity, write: Entity, log: Entity, slots: usize) -> PassResult {
    if slots == 0 {
        return Ok(());
    }
    let dims = nodes::node(world, log)?.ty.dims.clone();
    let geometry = nodes::fact::<Geometry>(world, root, "a kernel without geometry")?;
    let mut own: SmallVec<[SymExpr; 4]> = SmallVec::new();
    for &dim in &dims[slots..] {
        own.push(own_coordinate(geometry.dim(dim).symbol)?);
    }
    nodes::fact_mut::<Mapping>(world, write, "a write without coordinates")?.0.extend(own);
    let mapping = nodes::fact::<Mapping>(world, write, "a write without coordinates")?;
    let node = nodes::node(world, write)?;
    let mut operands: SmallVec<[&ValueType; 5]> = SmallVec::new();
    for &operand in &node.operands.0 {
        operands.push(nodes::fact::<ValueType>(world, operand, "a node without type")?);
    }
    let dims = nodes::fact::<DimTable>(world, root, "a kernel without dimensions")?;
    let access = TypedAccess { mapping: Some(mapping), ..TypedAccess::default() };
    let typed = TypedNode { op: Op::Write, stated: node.ty, operands, access };
    let result = TypeRules { dims, written_by: WrittenBy::Author }.result(&typed);
    result.map(|_| ()).map_err(|fault| fault.diagnostic)
}
