//! Accesses of LDS buffers. A workgroup has the part of a buffer that its own tile is: along a dimension
//! that is spread over workgroups, or that a loop walks along, the coordinate is the dimension itself, and no
//! other loop along it finds what the first one has left. What is written to a buffer that lacks a dimension
//! which is spread over workgroups is the same in all of them.

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
    let mut faults: Vec<Diagnostic> = judge.in_other_loops(root, &mut Vec::new(), &mut NodeMap::default());
    faults.extend(walk::nodes(world, root).iter().filter_map(|&node| judge.fault(node)));
    faults
}

/// The loop along a dimension in which a buffer was accessed first, and that access.
type FirstUses = NodeMap<SmallVec<[(Dim, Entity, Entity); 2]>>;

struct CoordinateJudge<'w> {
    world: &'w World,
    root: Entity,
    dims: &'w DimTable,
    divided: SmallVec<[Divided; 4]>,
}

impl CoordinateJudge<'_> {
    /// The faults of accesses in a region that `around`, loops with their dimensions, stand around.
    fn in_other_loops(
        &self,
        region: Entity,
        around: &mut Vec<(Dim, Entity)>,
        first: &mut FirstUses,
    ) -> Vec<Diagnostic> {
        let mut faults = Vec::new();
        for &node in self.world.get::<Body>(region).into_iter().flat_map(|body| &body.0) {
            let op = self.world.get::<Op>(node);
            if op.is_some_and(|op| op.is_access()) {
                faults.extend(self.in_another_loop(node, around, first));
            }
            let walked = if let Some(Op::Iterate(dim)) = op { Some((*dim, node)) } else { None };
            around.extend(walked);
            faults.extend(self.in_other_loops(node, around, first));
            around.truncate(around.len() - usize::from(walked.is_some()));
        }
        faults
    }

    fn in_another_loop(
        &self,
        access: Entity,
        around: &[(Dim, Entity)],
        first: &mut FirstUses,
    ) -> Option<Diagnostic> {
        let buffer = *self.world.get::<Operands>(access)?.0.last()?;
        if self.world.get::<Op>(buffer) != Some(&Op::Allocate) {
            return None;
        }
        let own = &self.world.get::<ValueType>(buffer)?.dims;
        let mut uses = first.get(buffer).cloned().unwrap_or_default();
        let mut fault = None;
        for &(dim, walked) in around.iter().filter(|(dim, _)| own.contains(dim)) {
            match uses.iter().find(|known| known.0 == dim) {
                None => uses.push((dim, walked, access)),
                Some(&(_, known, before)) if known != walked => {
                    let name = self.dims.name(dim);
                    let text = format!(
                        "an LDS buffer holds a tile of {name} at a time, and this is another loop over {name}"
                    );
                    fault = Some(
                        Diagnostic::invalid(text)
                            .at(self.location(access))
                            .note("the buffer is used here first", self.location(before))
                            .help(format!(
                                "use the buffer in one loop over {name}, or give it a dimension without tiles"
                            )),
                    );
                }
                Some(_) => {}
            }
        }
        first.insert(buffer, uses);
        fault
    }

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
