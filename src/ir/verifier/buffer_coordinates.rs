//! Accesses of LDS buffers. A workgroup has the part of a buffer that its own tile is: along a dimension
//! that is spread over workgroups, or that a loop walks along, the coordinate is the dimension itself, and no
//! other loop along it finds what the first one has left. What is written to a buffer that lacks a dimension
//! which is spread over workgroups is the same in all of them.
//!
//! So a buffer of the whole tensor, which is what the interpreter has, and the parts of the workgroups are
//! the same.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::facts::Geometry;
use crate::ir::kernel::{Constraints, DimTable, Locations};
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;

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

/// Every fault of the accesses of LDS in the author's kernel `root`, in program order.
pub(crate) fn check(world: &World, root: Entity) -> Vec<Diagnostic> {
    let is_buffer = |node: &Entity| world.get::<Op>(*node) == Some(&Op::Allocate);
    let concerned = world.get::<Body>(root).is_some_and(|body| body.0.iter().any(is_buffer));
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
    let mut seen = SeenAccesses::default();
    judge.region(root, &mut seen);
    seen.faults
}

/// What a walk through a kernel has seen.
#[derive(Default)]
struct SeenAccesses {
    /// The loops that stand around, with their dimensions.
    around: Vec<(Dim, Entity)>,
    /// For each buffer the loop along a dimension in which it was accessed first, and that access.
    first: NodeMap<SmallVec<[(Dim, Entity, Entity); 2]>>,
    faults: Vec<Diagnostic>,
}

struct CoordinateJudge<'w> {
    world: &'w World,
    root: Entity,
    dims: &'w DimTable,
    divided: SmallVec<[Divided; 4]>,
}

impl CoordinateJudge<'_> {
    fn region(&self, region: Entity, seen: &mut SeenAccesses) {
        for &node in self.world.get::<Body>(region).into_iter().flat_map(|body| &body.0) {
            let Some(op) = self.world.get::<Op>(node) else { continue };
            if let Some(buffer) = self.buffer(node, *op) {
                seen.faults.extend(self.at_coordinates(node, buffer));
                self.in_another_loop(node, buffer, seen);
            }
            if let Some(dim) = op.over_tiles() {
                seen.around.push((dim, node));
                self.region(node, seen);
                seen.around.pop();
            } else {
                self.region(node, seen);
            }
        }
    }

    /// The LDS buffer that a node accesses.
    fn buffer(&self, node: Entity, op: Op) -> Option<Entity> {
        let memory = *self.world.get::<Operands>(node)?.0.last()?;
        (op.is_access() && self.world.get::<Op>(memory) == Some(&Op::Allocate)).then_some(memory)
    }

    /// Notes an access, and the fault of one in another loop along a dimension of the buffer than the first.
    fn in_another_loop(&self, access: Entity, buffer: Entity, seen: &mut SeenAccesses) {
        let Some(ValueType { dims, .. }) = self.world.get(buffer) else { return };
        if seen.first.get(buffer).is_none() {
            seen.first.insert(buffer, SmallVec::new());
        }
        let Some(first) = seen.first.get_mut(buffer) else { return };
        for &(dim, walked) in seen.around.iter().filter(|(dim, _)| dims.contains(dim)) {
            let Some(&(_, known, before)) = first.iter().find(|known| known.0 == dim) else {
                first.push((dim, walked, access));
                continue;
            };
            if known != walked {
                let name = self.dims.name(dim);
                let text = format!(
                    "an LDS buffer holds a tile of {name} at a time, and this is another loop over {name}"
                );
                let help =
                    format!("use the buffer in one loop over {name}, or give it a dimension without tiles");
                seen.faults.push(
                    Diagnostic::invalid(text)
                        .at(self.location(access))
                        .note("the buffer is used here first", self.location(before))
                        .help(help),
                );
            }
        }
    }

    /// The fault of an access at coordinates, if it is one.
    fn at_coordinates(&self, access: Entity, buffer: Entity) -> Option<Diagnostic> {
        let mapping = self.world.get::<Mapping>(access)?;
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
