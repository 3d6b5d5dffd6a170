//! Masks of reductions: where the tile of a value reaches beyond the end of the dimension that is folded, the
//! elements outside are replaced by the one that changes nothing. So padding never takes part, whatever it
//! holds, and loops have masks in their remainders alone.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::facts::{Expressions, Geometry, ReductionsMasked, Remainder};
use super::mark_bounds::{Loops, can_leave};
use super::{PassResult, kernel_entity};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{Dim, Layout};
use crate::ir::node::*;
use crate::ir::nodes::{self, Bug, NodeBundle};
use crate::ir::types::DType;
use crate::ir::walk;

/// The pass itself; see the module. It makes nodes that use one another, so it takes the whole world.
pub(crate) fn mask_reductions(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let mut any = false;
    for node in walk::nodes(world, root) {
        any |= matches!(nodes::op(world, node)?, Op::Reduce(_));
    }
    if any {
        region(world, root, root, &mut Loops::new())?;
        world.entity_mut(root).insert(ReductionsMasked);
    }
    Ok(())
}

fn region(world: &mut World, root: Entity, region: Entity, loops: &mut Loops) -> PassResult {
    let mut body = Vec::new();
    for node in walk::body(world, region) {
        let op = nodes::op(world, node)?;
        if let Op::Iterate(axis) = op {
            loops.push((axis, world.get::<Remainder>(node).is_some()));
            self::region(world, root, node, loops)?;
            loops.pop();
        }
        if let Op::Conditional | Op::While = op {
            self::region(world, root, node, loops)?;
        }
        if let Op::Reduce(reduction) = op
            && leaves(world, root, loops, reduction.dim)?
        {
            mask(world, node, reduction, &mut body)?;
        }
        body.push(node);
    }
    walk::set_body(world, region, &body);
    Ok(())
}

fn leaves(world: &mut World, root: Entity, loops: &Loops, dim: Dim) -> Result<bool, Diagnostic> {
    // Both are on one entity: the arena is taken out while it is asked.
    let mut arena = {
        let mut expressions = nodes::fact_mut::<Expressions>(world, root, "a kernel without expressions")?;
        std::mem::take(&mut expressions.0)
    };
    let geometry = nodes::fact::<Geometry>(world, root, "a kernel without geometry");
    let leaves = geometry.map(|geometry| can_leave(geometry, &mut arena, loops, dim));
    nodes::fact_mut::<Expressions>(world, root, "a kernel without expressions")?.0 = arena;
    Ok(leaves?)
}

/// Puts a masked value in place of a reduction's operand; its nodes go to `body`.
fn mask(world: &mut World, node: Entity, reduction: Reduction, body: &mut Vec<Entity>) -> Result<(), Bug> {
    let origin = *nodes::node(world, node)?.origin;
    let value = nodes::node(world, node)?.operand(0)?;
    let ty = nodes::node(world, value)?.ty.clone();
    let dtype = ty.dtype.ok_or(Bug::new("a value without dtype"))?;
    let layout = nodes::fact::<Placement>(world, value, "a reduced value without layout")?.0.clone();
    let along = projection(&layout, &[reduction.dim])?;
    let mut push = |op: Op, operands: &[Entity], ty: ValueType, layout: Option<&Layout>| {
        let operands = Operands(SmallVec::from_slice(operands));
        let made = NodeBundle { op, operands, ty, origin }.spawn(world, ());
        if let Some(layout) = layout {
            world.entity_mut(made).insert(Placement(layout.clone()));
        }
        body.push(made);
        made
    };
    let dims: Dims = smallvec![reduction.dim];
    let typed = |dims: &Dims, dtype: DType| ValueType { dims: dims.clone(), dtype: Some(dtype) };
    let place = push(Op::SelfIndex(reduction.dim), &[], typed(&dims, DType::I32), Some(&along));
    let size = push(Op::Size(reduction.dim), &[], typed(&Dims::new(), DType::I32), None);
    let inside = push(Op::Compare(Predicate::Lt), &[place, size], typed(&dims, DType::I1), Some(&along));
    let identity = Op::Register(reduction.op.identity(dtype));
    let identity = push(identity, &[], typed(&Dims::new(), dtype), None);
    let masked = push(Op::Select, &[inside, value, identity], ty, Some(&layout));
    nodes::fact_mut::<Operands>(world, node, "a reduction without operands")?.0[0] = masked;
    Ok(())
}

fn projection(layout: &Layout, dims: &[Dim]) -> Result<Layout, Bug> {
    super::element_layouts::projected(layout, dims).map_err(|_| Bug::new("a layout that became too large"))
}
