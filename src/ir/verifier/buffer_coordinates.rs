//! Accesses of LDS buffers at coordinates. A workgroup has the part of a buffer that its own tile is: along a
//! dimension that is spread over workgroups, or that a loop walks along, the coordinate is the dimension
//! itself. What is written to a buffer that lacks a dimension which is spread over workgroups is the same in
//! all of them.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::facts::Geometry;
use crate::ir::kernel::{Constraints, DimTable, Locations};
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::walk;

/// A dimension of which a workgroup has a part at a time.
#[derive(Copy, Clone)]
struct Divided {
    dim: Dim,
    how: Division,
    /// Where the author says so.
    origin: u32,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Division {
    Workgroups,
    Loop,
}

/// Every fault of the accesses of LDS at coordinates in the author's kernel `root`, in program order.
pub(crate) fn check(world: &World, root: Entity) -> Vec<Diagnostic> {
    let mapped = world.try_query_filtered::<&Operands, With<Mapping>>();
    let is_buffer = |node: Entity| world.get::<Op>(node) == Some(&Op::Allocate);
    let concerned = mapped.is_some_and(|accesses| {
        let mut accesses = accesses.query_manual(world).iter_inner();
        accesses.any(|operands| operands.0.last().is_some_and(|&memory| is_buffer(memory)))
    });
    if !concerned || world.get::<Geometry>(root).is_some() {
        return Vec::new();
    }
    let Some(dims) = world.get::<DimTable>(root) else { return Vec::new() };
    let mut divided: SmallVec<[Divided; 4]> = SmallVec::new();
    for (constraint, origin) in world.get::<Constraints>(root).iter().flat_map(|c| &c.0) {
        let (dim, how) = if let Constraint::Workgroup { dim, .. } = constraint {
            (dim, Division::Workgroups)
        } else if let Constraint::Tiling { dim, .. } = constraint {
            (dim, Division::Loop)
        } else {
            continue;
        };
        if let Some(dim) = dim.as_dimension().and_then(|symbol| dims.find(symbol)) {
            divided.push(Divided { dim, how, origin: *origin });
        }
    }
    let judge = CoordinateJudge { world, root, dims, divided };
    let nodes = walk::nodes(world, root);
    nodes
        .iter()
        .filter(|node| world.get::<Mapping>(**node).is_some())
        .filter_map(|&node| judge.fault(node))
        .collect()
}

struct CoordinateJudge<'w> {
    world: &'w World,
    root: Entity,
    dims: &'w DimTable,
    divided: SmallVec<[Divided; 4]>,
}

impl CoordinateJudge<'_> {
    fn fault(&self, access: Entity) -> Option<Diagnostic> {
        let (mapping, operands) = (self.world.get::<Mapping>(access)?, self.world.get::<Operands>(access)?);
        let buffer = *operands.0.last()?;
        if self.world.get::<Op>(buffer) != Some(&Op::Allocate) {
            return None;
        }
        let own = &self.world.get::<ValueType>(buffer)?.dims;
        for (coordinate, &dim) in mapping.0.iter().zip(own) {
            let Some(divided) = self.divided.iter().find(|divided| divided.dim == dim) else { continue };
            let name = self.dims.name(dim);
            if coordinate.as_symbol().is_some_and(|symbol| symbol.name() == name) {
                continue;
            }
            let (whose, way) = match divided.how {
                Division::Workgroups => ("another workgroup's part", "workgroup"),
                Division::Loop => ("the part of another iteration", "tile"),
            };
            let text = format!("this coordinate along {name} may lie in {whose} of an LDS buffer");
            return Some(
                Diagnostic::invalid(text)
                    .at(self.location(access))
                    .note(format!("{name} is divided here"), self.constraint(divided.origin))
                    .help(format!(
                        "the coordinate along {name} is `{name}`, or the kernel has no {way}({name}, ..)"
                    )),
            );
        }
        None
    }

    fn location(&self, node: Entity) -> Option<Location> {
        self.constraint(self.world.get::<Origin>(node)?.0)
    }

    fn constraint(&self, origin: u32) -> Option<Location> {
        self.world.get::<Locations>(self.root)?.get(origin)
    }
}
