//! Repetition along dimensions that follow others: where an operation joins a value along K/32 with one along
//! K, the value is read at the coordinates `K // 32`, so that each of its elements stands for its block.
//!
//! A value that is itself read from a memory which the kernel does not write, is read from the memory in this
//! way. Others go through LDS, as values at coordinates do.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::SymExpr;
use crate::ir::kernel::{DimTable, Locations, ScaledDim};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::{self, NodeBundle};
use crate::ir::op::OpClass;
use crate::ir::walk;
use crate::passes::analysis::mapped_accesses::block_of;
use crate::passes::analysis::read_sources::ReadSources;
use crate::passes::facts::Geometry;
use crate::passes::{PassResult, kernel_entity};

/// The pass itself; see the module.
pub(crate) fn repeat_blocks(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let scaled = nodes::fact::<DimTable>(world, root, "a kernel without dimensions")?.scaled();
    let sources = ReadSources::of(world, root)?;
    let mut repeater = BlockRepeater { root, scaled, sources };
    for region in walk::regions(world, root) {
        repeater.region(world, region)?;
    }
    Ok(())
}

struct BlockRepeater {
    root: Entity,
    scaled: SmallVec<[ScaledDim; 2]>,
    sources: ReadSources,
}

impl BlockRepeater {
    fn region(&mut self, world: &mut World, region: Entity) -> PassResult {
        let body = walk::body(world, region);
        let mut out = Vec::with_capacity(body.len());
        // Operations of one region share the repetition of a value.
        let mut made: Vec<(Entity, Dims, Entity)> = Vec::new();
        for node in body {
            if nodes::op(world, node)?.row().class == OpClass::ElementWise {
                let seen = nodes::node(world, node)?;
                let (operands, result, origin) =
                    (seen.operands.0.clone(), seen.ty.dims.clone(), *seen.origin);
                for (at, &value) in operands.iter().enumerate() {
                    let Some(dims) = self.repeated(&nodes::node(world, value)?.ty.dims, &result) else {
                        continue;
                    };
                    let known = made.iter().find(|made| made.0 == value && made.1 == dims).map(|made| made.2);
                    let read = match known {
                        Some(read) => read,
                        None => {
                            let read = self.read(world, value, &dims, origin)?;
                            out.push(read);
                            made.push((value, dims, read));
                            read
                        }
                    };
                    nodes::fact_mut::<Operands>(world, node, "an operation without operands")?.0[at] = read;
                }
            }
            out.push(node);
        }
        walk::set_body(world, region, &out);
        Ok(())
    }

    /// The dimensions of an operand with those in place of which its result has their bases; nothing if there
    /// are none.
    fn repeated(&self, operand: &Dims, result: &Dims) -> Option<Dims> {
        let base_of = |dim| {
            let follows = |scaled: &&ScaledDim| scaled.dim == dim && !result.contains(&dim);
            self.scaled.iter().find(follows).map_or(dim, |scaled| scaled.base)
        };
        let dims: Dims = operand.iter().map(|&dim| base_of(dim)).collect();
        (dims != *operand).then_some(dims)
    }

    /// The read of a value at the blocks of `dims`.
    fn read(
        &self,
        world: &mut World,
        value: Entity,
        dims: &Dims,
        origin: Origin,
    ) -> Result<Entity, Diagnostic> {
        let node = nodes::node(world, value)?;
        let own = node.ty.clone();
        let geometry = nodes::fact::<Geometry>(world, self.root, "a kernel without geometry")?;
        let number = |dim: &&_| geometry.dim(**dim).symbol.value().is_some_and(|size| size > 1);
        if let Some(&dim) = own.dims.iter().find(number) {
            let size = geometry.dim(dim).symbol;
            let at = nodes::fact::<Locations>(world, self.root, "a kernel without locations")?.get(origin.0);
            let text =
                format!("a value with the dimension {size} is repeated along the elements of its blocks");
            let help = format!("give the dimension {size} a name, and bind it to the number");
            return Err(Diagnostic::invalid(text).at(at).help(help));
        }
        let coordinate = |(&own, &base): (&_, &_)| {
            let by = geometry.dim(own).scaled_from.map_or(1, |(_, by)| by);
            let symbol = geometry.dim(base).symbol;
            match symbol.value() {
                Some(_) => SymExpr::from(0),
                None if own == base => symbol.into(),
                None => block_of(symbol, by),
            }
        };
        let mapping = Mapping(own.dims.iter().zip(dims).map(coordinate).collect());
        let source = self.sources.source(world, value)?;
        let ty = ValueType { dims: dims.clone(), dtype: own.dtype };
        let read = NodeBundle { op: Op::Read, operands: Operands(smallvec![source]), ty, origin };
        let tag = world.get::<Tag>(value).filter(|_| source != value).cloned();
        let read = read.spawn(world, mapping);
        if let Some(tag) = tag {
            world.entity_mut(read).insert(tag);
        }
        Ok(read)
    }
}
