//! Bounds: which accesses of global memory can leave the tensor, along which dimensions that matters, and how wide an access may be.
//!
//! Elements of a read outside along a dimension that no operation contracts only reach results that are outside as well, and those
//! are never stored; so such reads need no mask (the buffer descriptor keeps them inside the tensor's memory). A contracted dimension
//! must read zeros outside.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::assign_layouts::MAX_ACCESS_BYTES;
use super::facts::{Bounds, DimGeometry, Expressions, Geometry, Remainder};
use super::infer_types::MmaDims;
use super::{PassResult, kernel_entity};
use crate::ir::layout::{Dim, Source};
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::ir::walk;

/// Loops around a point, outermost first: the dimension, and whether the loop is over a remainder.
type Loops = SmallVec<[(Dim, bool); 4]>;

/// The pass; see the module.
pub fn mark_bounds(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let contracted = contracted_dims(world, root);
    let mut loops = Loops::new();
    mark_region(world, root, root, &mut loops, &contracted)
}

/// Dimensions that an `mma` sums over or that a loop walks along.
fn contracted_dims(world: &World, root: Entity) -> SmallVec<[Dim; 4]> {
    let mut dims = SmallVec::new();
    for node in walk::nodes(world, root) {
        let (Some(op), Some(operands)) = (world.get::<Op>(node), world.get::<Operands>(node)) else {
            continue;
        };
        match *op {
            Op::Iterate(axis) => dims.push(axis),
            Op::Mma(_) => {
                let ty = |at: usize| world.get::<ValueType>(operands.0[at]);
                if let (Some(a), Some(b), Some(c)) = (ty(0), ty(1), ty(2))
                    && let Ok(roles) = MmaDims::of(a, b, c)
                {
                    dims.push(roles.k);
                }
            }
            _ => {}
        }
    }
    dims
}

fn mark_region(
    world: &mut World,
    root: Entity,
    region: Entity,
    loops: &mut Loops,
    contracted: &[Dim],
) -> PassResult {
    for node in walk::body(world, region) {
        match world.get::<Op>(node) {
            Some(&Op::Iterate(axis)) => {
                loops.push((axis, world.get::<Remainder>(node).is_some()));
                mark_region(world, root, node, loops, contracted)?;
                loops.pop();
            }
            Some(&op @ (Op::Read | Op::Write)) => {
                if let Some(bounds) = bounds_of(world, root, node, op, loops, contracted) {
                    world.entity_mut(node).insert(bounds);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn bounds_of(
    world: &mut World,
    root: Entity,
    node: Entity,
    op: Op,
    loops: &[(Dim, bool)],
    contracted: &[Dim],
) -> Option<Bounds> {
    let memory = *world.get::<Operands>(node)?.0.last()?;
    if *world.get::<Op>(memory)? != Op::Memory {
        return None;
    }
    let ValueType { dims, dtype } = world.get::<ValueType>(memory)?.clone();
    let widest = MAX_ACCESS_BYTES / dtype.map_or(1, DType::bytes);
    let layout = world.get::<Placement>(node)?.0.clone();
    let geometry = world.get::<Geometry>(root)?;
    let entries: SmallVec<[DimGeometry; 4]> = dims.iter().map(|&dim| geometry.dim(dim).clone()).collect();
    let entry_of = |dim: Dim| entries.iter().zip(&dims).find(|e| *e.1 == dim).map(|e| e.0);
    let arena = &mut world.get_mut::<Expressions>(root)?.into_inner().0;
    let can_leave = |dim: Dim| {
        let Some(entry) = entry_of(dim) else { return false };
        if let Some(tile) = entry.tiling {
            match loops.iter().rev().find(|l| l.0 == dim) {
                Some(&(_, remainder)) => remainder,
                None => !arena.is_multiple_of(entry.size, i64::from(tile)),
            }
        } else if let Some((_, tile)) = entry.workgroup {
            !arena.is_multiple_of(entry.size, i64::from(tile))
        } else {
            false
        }
    };
    let leaves: SmallVec<[Dim; 4]> = dims.iter().copied().filter(|&dim| can_leave(dim)).collect();
    let must = |dim: &Dim| op == Op::Write || contracted.contains(dim);
    let masks = leaves.iter().copied().filter(must).collect();
    let innermost = *dims.last()?;
    let mut granule = layout.contiguous_run(innermost).clamp(1, widest);
    if let Some(size) = entry_of(innermost).map(|e| e.size).filter(|_| leaves.contains(&innermost)) {
        while !arena.is_multiple_of(size, i64::from(granule)) && granule > 1 {
            granule /= 2;
        }
    }
    debug_assert!(granule <= layout.extent(Source::Register));
    Some(Bounds { leaves, masks, granule })
}
