//! Global-load widening and redistribution: the workgroup loads each promoted tile together, every lane with
//! the widest access that keeps all lanes busy, instead of every wave loading the fragments that its matrix
//! instructions need.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::PassResult;
use super::element_layouts::{MAX_ACCESS_BYTES, too_large};
use super::facts::Geometry;
use super::promote_to_lds::workgroup_tile;
use crate::codegen::target::LANES;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::{KernelName, Locations};
use crate::ir::layout::{Dim, Layout};
use crate::ir::node::*;
use crate::ir::nodes::Node;
use crate::ir::types::DType;
use crate::ir::walk;

/// The pass itself; see the module.
pub(crate) fn distribute_loads(
    kernel: Single<(Entity, &Geometry, &Locations), With<KernelName>>,
    bodies: Query<&Body>,
    nodes: Query<(Node, Has<Placement>)>,
    mut commands: Commands,
) -> PassResult {
    let (root, geometry, locations) = *kernel;
    for node in walk::order(&bodies, root) {
        let (store, placed) = nodes.get(node)?;
        if *store.op != Op::Write || placed {
            continue;
        }
        let load = store.operand(0)?;
        let layout = spread(geometry, nodes.get(load)?.0.ty)
            .map_err(|fault| fault.at(locations.get(store.origin.0)))?;
        commands.entity(load).insert(Placement(layout.clone()));
        commands.entity(node).insert(Placement(layout));
    }
    Ok(())
}

fn spread(geometry: &Geometry, ty: &ValueType) -> Result<Layout, Diagnostic> {
    let extents = workgroup_tile(geometry, &ty.dims).ok_or_else(|| {
        Diagnostic::invalid("a shared memory has a dynamic dimension without a tile")
            .help("add a workgroup or loop tile for each of its dimensions")
    })?;
    let tile: SmallVec<[(Dim, u32); 4]> = ty.dims.iter().copied().zip(extents).collect();
    let waves = geometry.wave_count();
    let bytes = ty.dtype.map_or(4, DType::bytes);
    let mut elements = MAX_ACCESS_BYTES / bytes;
    while elements > 0 {
        if let Ok(layout) = Layout::distribute(&tile, elements, LANES, waves) {
            return Ok(layout);
        }
        elements /= 2;
    }
    // Too small for all lanes, or no multiple of them: some hold copies. Whole registers, if the tile has
    // them, so that few do.
    let registers = (DWORD / bytes).max(1);
    Layout::distribute_copies(&tile, registers, LANES, waves)
        .or_else(|_| Layout::distribute_copies(&tile, 1, LANES, waves))
        .map_err(too_large)
}

/// Bytes of a register.
const DWORD: u32 = 4;
