//! Bounds checks, on request: in front of each access at coordinates that may leave its memory, the kernel
//! notes what left it, in a log of its own with an element for each coordinate of each such access. The
//! launch reads it and says which access went where.
//!
//! What is noted is the largest coordinate that is outside, so it does not depend on who comes first. All of
//! it is ordinary arithmetic and an atomic update, so neither lowering nor the simulator knows of it.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::node_maker::NodeMaker;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Symbol;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::mapping::{Mapping, operand_symbol};
use crate::ir::memory_layout::DebugLog;
use crate::ir::node::{Name, *};
use crate::ir::nodes::{self, NodeBundle};
use crate::ir::op::OpClass;
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk::{self, NodeList};
use crate::passes::PassResult;
use crate::passes::analysis::mapped_accesses::outside;
use crate::passes::facts::{
    BOUNDS_BIAS, BoundsChecks, CheckedCoordinate, DimGeometry, Expressions, Geometry,
};

/// Adds the checks; see the module. It makes nodes in front of others, so it takes the whole world.
pub(super) fn check_bounds(world: &mut World, root: Entity) -> PassResult {
    let mut found = Vec::new();
    for region in walk::regions(world, root) {
        for access in walk::body(world, region) {
            for dim in leaving(world, root, access)? {
                found.push((access, dim));
            }
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let log = declare(world, root, found.len())?;
    let mut checks = BoundsChecks::default();
    let mut left = found.into_iter().peekable();
    for region in walk::regions(world, root) {
        let mut body = Vec::new();
        for node in walk::body(world, region) {
            while let Some((_, dim)) = left.next_if(|check| check.0 == node) {
                checks.0.push(check(world, root, (node, dim), (log, checks.0.len()), &mut body)?);
            }
            body.push(node);
        }
        walk::set_body(world, region, &body);
    }
    world.entity_mut(log).insert(checks);
    Ok(())
}

/// The dimensions of the memory of an access along which its coordinates may be outside.
fn leaving(world: &mut World, root: Entity, access: Entity) -> Result<SmallVec<[Dim; 4]>, Diagnostic> {
    let Some(mapping) = world.get::<Mapping>(access).cloned() else { return Ok(SmallVec::new()) };
    let memory = nodes::node(world, access)?.memory()?;
    // Elements that a log has no slot for are dropped on purpose.
    if nodes::op(world, memory)? != Op::Memory || world.get::<DebugLog>(memory).is_some() {
        return Ok(SmallVec::new());
    }
    let dims = value_dims(world, access)?;
    let memory_dims = nodes::node(world, memory)?.ty.dims.clone();
    let arena = &mut *nodes::fact_mut::<Expressions>(world, root, "a kernel without expressions")?;
    let mut arena = std::mem::take(arena);
    let geometry = nodes::fact::<Geometry>(world, root, "a kernel without geometry");
    let outside = geometry.map(|geometry| outside(&mut arena.0, geometry, &mapping, &dims, &memory_dims));
    *nodes::fact_mut::<Expressions>(world, root, "a kernel without expressions")? = arena;
    Ok(outside?)
}

/// The dimensions of the value of an access.
fn value_dims(world: &World, access: Entity) -> Result<Dims, Diagnostic> {
    let node = nodes::node(world, access)?;
    let typed = if node.op.is_write() { node.operands.at(0)? } else { access };
    Ok(nodes::node(world, typed)?.ty.dims.clone())
}

/// Declares the log, of so many elements.
fn declare(world: &mut World, root: Entity, count: usize) -> Result<Entity, Diagnostic> {
    let count = u32::try_from(count).map_err(|_| Diagnostic::bug("more checks than operations"))?;
    let symbol = Symbol::new("bounds checks");
    let mut table = nodes::fact_mut::<DimTable>(world, root, "a kernel without dims")?;
    let Some(dim) = table.enter(symbol) else {
        let text = "a kernel has at most 256 dimensions, with the one that counts checks of bounds";
        return Err(Diagnostic::new(Kind::Limit, text).help("compile it without checks of bounds"));
    };
    let size =
        nodes::fact_mut::<Expressions>(world, root, "a kernel without expressions")?.0.int(count.into());
    let mut geometry = nodes::fact_mut::<Geometry>(world, root, "a kernel without geometry")?;
    geometry.dims.push(DimGeometry::new(symbol, size, Some(count)));
    let body = walk::body(world, root);
    let is_named =
        |name: &str| body.iter().any(|&node| world.get::<Name>(node).is_some_and(|known| &*known.0 == name));
    let mut name = "bounds_checks".to_owned();
    while is_named(&name) {
        name.push('_');
    }
    let ty = ValueType { dims: smallvec![dim], dtype: Some(DType::I64) };
    let log =
        NodeBundle { op: Op::Memory, operands: Operands(SmallVec::new()), ty, origin: Origin(u32::MAX) };
    let log = log.spawn(world, (Name(name.as_str().into()), Space(AddressSpace::Global)));
    world.entity_mut(log).insert(DebugLog);
    // After the logs of the author.
    let is_declaration =
        |node: &&Entity| world.get::<Op>(**node).is_some_and(|op| op.row().class == OpClass::Declaration);
    let declared = body.iter().take_while(is_declaration).count();
    nodes::fact_mut::<Body>(world, root, "a kernel without body")?.0.insert(declared, log);
    Ok(log)
}

/// Adds the check of one coordinate to the body that its access comes in next.
fn check(
    world: &mut World,
    root: Entity,
    (access, dim): (Entity, Dim),
    (log, number): (Entity, usize),
    body: &mut Vec<Entity>,
) -> Result<CheckedCoordinate, Diagnostic> {
    let node = nodes::node(world, access)?;
    let (memory, origin, front) = (node.memory()?, *node.origin, node.op.values_in_front());
    let operands = node.operands.0.clone();
    let values = operands.get(front..operands.len() - 1).unwrap_or_default();
    let at = nodes::node(world, memory)?.ty.dims.iter().position(|&own| own == dim);
    let mapping = nodes::fact::<Mapping>(world, access, "an access without coordinates")?;
    let coordinate = at.and_then(|at| mapping.0.get(at)).cloned();
    let coordinate = coordinate.ok_or_else(|| Diagnostic::bug("a coordinate that is not there"))?;
    let dims = value_dims(world, access)?;
    let mut maker = NodeMaker { world, root, dims: dims.clone(), origin, values, new: NodeList::new() };
    let place = maker.value_of(&coordinate)?;
    let (zero, size) = (maker.number(0, DType::I32), maker.size(dim));
    let (low, high) = (maker.compare(Predicate::Lt, place, zero), maker.compare(Predicate::Ge, place, size));
    let mut leaves = maker.binary(BinaryOp::Or, low, high, DType::I1);
    // Elements that the value does not have are nowhere.
    for &own in &dims {
        let (index, size) = (maker.index(own), maker.size(own));
        let exists = maker.compare(Predicate::Lt, index, size);
        leaves = maker.binary(BinaryOp::And, leaves, exists, DType::I1);
    }
    let own = i32::try_from(number).map_err(|_| Diagnostic::bug("more checks than operations"))?;
    let (own, nowhere) = (maker.number(i64::from(own), DType::I32), maker.number(-1, DType::I32));
    let slot = maker.made(Op::Select, &[leaves, own, nowhere], DType::I32);
    let wide = maker.converted(Conversion::Cast, place, DType::I64);
    let noted = maker.with(BinaryOp::Add, wide, BOUNDS_BIAS, DType::I64);
    let update = maker.made(Op::Atomic(AtomicOp::Max), &[noted, slot, log], DType::I64);
    body.extend(maker.new);
    world.entity_mut(update).insert(Mapping(smallvec![operand_symbol(0).into()]));
    let name = nodes::fact::<Name>(world, memory, "a memory without name")?.0.clone();
    Ok(CheckedCoordinate { memory: name, dim, origin })
}
