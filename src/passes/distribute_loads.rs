//! Global-load widening and redistribution: the workgroup loads each promoted tile together, every lane with the widest access that
//! keeps all lanes busy, instead of every wave loading the fragments that its matrix instructions want.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::assign_layouts::{LANES, MAX_ACCESS_BYTES};
use super::facts::Geometry;
use super::promote_to_lds::workgroup_tile;
use super::{PassResult, kernel_entity};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::{DimTable, Locations};
use crate::ir::layout::{Dim, Layout};
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::ir::walk;

/// The pass; see the module.
pub fn distribute_loads(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    for node in walk::nodes(world, root) {
        if world.get::<Op>(node) != Some(&Op::Write) || world.get::<Placement>(node).is_some() {
            continue;
        }
        let Some(load) = world.get::<Operands>(node).map(|o| o.0[0]) else { continue };
        let layout = {
            let (Some(geometry), Some(names), Some(ty)) =
                (world.get::<Geometry>(root), world.get::<DimTable>(root), world.get::<ValueType>(load))
            else {
                continue;
            };
            let at = world.get::<Origin>(node).zip(world.get::<Locations>(root));
            spread(geometry, names, ty).map_err(|d| d.at(at.and_then(|(o, l)| l.get(o.0))))?
        };
        world.entity_mut(load).insert(Placement(layout.clone()));
        world.entity_mut(node).insert(Placement(layout));
    }
    Ok(())
}

fn spread(geometry: &Geometry, names: &DimTable, ty: &ValueType) -> Result<Layout, Diagnostic> {
    let extents = workgroup_tile(geometry, &ty.dims).ok_or_else(|| {
        Diagnostic::invalid("a shared memory has a dynamic dimension without a tile")
            .help("add a workgroup or loop tile for each of its dimensions")
    })?;
    let tile: SmallVec<[(Dim, u32); 4]> = ty.dims.iter().copied().zip(extents).collect();
    let waves = geometry.wave_count();
    let mut elements = MAX_ACCESS_BYTES / ty.dtype.map_or(4, DType::bytes);
    loop {
        match Layout::distribute(&tile, elements, LANES, waves) {
            Ok(layout) => return Ok(layout),
            Err(_) if elements > 1 => elements /= 2,
            Err(error) => {
                let shape: Vec<_> = tile.iter().map(|t| format!("{}={}", names.name(t.0), t.1)).collect();
                let text = format!(
                    "a tile of {} cannot be loaded by {} lanes together",
                    shape.join(" "),
                    waves * LANES
                );
                return Err(Diagnostic::invalid(text)
                    .note(error.to_string(), None)
                    .help("use larger tiles, fewer waves, or tiles in powers of two"));
            }
        }
    }
}
