//! Bounds: which accesses of global memory can leave the tensor, along which dimensions that matters, and how wide an access may be.
//!
//! Elements of a read outside along a dimension that no operation contracts only reach results that are
//! outside as well, and those are never stored; so such reads need no mask (the buffer descriptor keeps them
//! inside the tensor's memory). A contracted dimension must read zeros outside. A read of a memory that the
//! kernel writes has a mask along all dimensions: what lies beyond the end of a row is the next row's, which
//! another workgroup may be writing.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::assign_layouts::MAX_ACCESS_BYTES;
use super::facts::{Bounds, DimGeometry, Expressions, Geometry, Remainder};
use super::{PassResult, kernel_entity};
use crate::ir::layout::{Dim, Source};
use crate::ir::node::*;
use crate::ir::op::OpClass;
use crate::ir::types::DType;
use crate::ir::walk;

/// Loops around a point, outermost first: the dimension, and whether the loop is over a remainder.
type Loops = SmallVec<[(Dim, bool); 4]>;

/// The pass; see the module.
pub fn mark_bounds(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let masked = Masked::of(world, root);
    let mut loops = Loops::new();
    mark_region(world, root, root, &mut loops, &masked)
}

/// What decides which reads need a mask.
struct Masked {
    /// Dimensions that an `mma` sums over or that a loop walks along.
    contracted: SmallVec<[Dim; 4]>,
    /// Whether the kernel writes a memory, by the index of its entity.
    written: SmallVec<[bool; 256]>,
}

impl Masked {
    fn of(world: &World, root: Entity) -> Masked {
        let mut masked = Masked { contracted: SmallVec::new(), written: SmallVec::new() };
        for node in walk::nodes(world, root) {
            let (Some(op), Some(operands)) = (world.get::<Op>(node), world.get::<Operands>(node)) else {
                continue;
            };
            if let Op::Iterate(axis) | Op::Pipeline(axis) = *op {
                masked.contract(axis);
            }
            if op.row().class == OpClass::Contraction
                && let Some(result) = world.get::<ValueType>(node)
            {
                for ty in operands.0.iter().filter_map(|&operand| world.get::<ValueType>(operand)) {
                    let summed = ty.dims.iter().filter(|dim| !result.dims.contains(dim));
                    summed.for_each(|&dim| masked.contract(dim));
                }
            }
            if op.is_write()
                && let Some(memory) = operands.0.last()
            {
                let at = memory.index_u32() as usize;
                masked.written.resize(masked.written.len().max(at + 1), false);
                masked.written[at] = true;
            }
        }
        masked
    }

    fn contract(&mut self, dim: Dim) {
        if !self.contracted.contains(&dim) {
            self.contracted.push(dim);
        }
    }

    /// True if an access of `memory` may touch nothing outside of it along `dim`.
    fn applies(&self, op: Op, memory: Entity, dim: Dim) -> bool {
        let written = self.written.get(memory.index_u32() as usize).copied().unwrap_or(false);
        op == Op::Write || written || self.contracted.contains(&dim)
    }
}

fn mark_region(
    world: &mut World,
    root: Entity,
    region: Entity,
    loops: &mut Loops,
    masked: &Masked,
) -> PassResult {
    for node in walk::body(world, region) {
        match world.get::<Op>(node) {
            Some(&Op::Iterate(axis)) => {
                loops.push((axis, world.get::<Remainder>(node).is_some()));
                mark_region(world, root, node, loops, masked)?;
                loops.pop();
            }
            Some(&op @ (Op::Read | Op::Write)) => {
                if let Some(bounds) = bounds_of(world, root, node, op, loops, masked) {
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
    masked: &Masked,
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
    let masks = leaves.iter().copied().filter(|&dim| masked.applies(op, memory, dim)).collect();
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
