//! Loads straight into LDS: a global read that only fills an LDS buffer becomes one operation, without a
//! register in between.
//!
//! The hardware puts the data of a wave's lanes side by side into LDS, a dword (or more, by target) per lane,
//! starting at an address that all lanes share (CDNA3 ISA guide, "Memory buffer load to LDS"). So the buffer
//! keeps the order of the memory, its rows have no padding, a swizzle changes which column a lane loads, and
//! no element of a lane can be masked alone. Tiles that such loads cannot bring go through registers as
//! before, and so do scales of block floats, which are too few for wide loads and often lie in an order of
//! their own.
//!
//! A swizzle may also exchange the rows that one instruction loads together. Only the wait in front of the
//! next barrier says that the data has arrived: the waits of the machine code rely on every wave reading
//! after a barrier (`LdsLoads::AfterBarriers`), unless there is one wave.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use smallvec::SmallVec;
use thiserror::Error;

use super::arrange_lds::{AccessLayouts, Accessing, keeps_order};
use crate::codegen::target::{LANES, Target};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::KernelName;
use crate::ir::layout::{Dim, Layout, Place, Source};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::{Node, NodeItem};
use crate::ir::types::DType;
use crate::ir::walk;
use crate::passes::PassResult;
use crate::passes::facts::{Bounds, DirectLoads, Geometry, Settings};
use crate::passes::options::{GlobalToShared, Options, Schedule};

/// Why a tile is not loaded straight into LDS.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum UnsuitableTile {
    /// Readers need elements side by side that are not side by side in the memory.
    #[error("its readers want the tile transposed")]
    Transposed,
    /// Elements come from places that a mapping computes.
    #[error("its elements come from coordinates that the kernel computes")]
    Mapped,
    /// Readers turn elements of 6 bits, which have room between them in LDS.
    #[error("its readers turn elements whose words do not lie side by side in LDS")]
    Apart,
    /// An element is not a part of a dword.
    #[error("an element takes {0} bytes, which are not a part of a dword")]
    Element(u32),
    /// Some elements of a load may be outside of the tensor.
    #[error("a load of {0} bytes may be in part outside of the tensor")]
    Ragged(u32),
    /// Rows or tile are not a multiple of what a wave loads at once.
    #[error("a tile of {bytes} bytes does not fall into loads of {each} bytes for each of {waves} waves")]
    Parts {
        /// Bytes of the tile.
        bytes: u32,
        /// Bytes that a wave loads with one instruction.
        each: u32,
        /// Waves of the workgroup.
        waves: u32,
    },
    /// A pipeline loads the next tile while this one is read.
    #[error("two copies of the tiles would take {needed} bytes of LDS, and a workgroup has {limit}")]
    Lds {
        /// Bytes of all tiles twice.
        needed: u32,
        /// Bytes of the target.
        limit: u32,
    },
}

/// A global read and the LDS write of its value.
struct Pair {
    region: Entity,
    read: Entity,
    write: Entity,
    /// How the lanes load.
    layout: Layout,
    bounds: Bounds,
}

/// The pass itself; see the module.
pub(crate) fn load_to_lds(
    kernel: Single<(Entity, &Geometry, &Settings), With<KernelName>>,
    mut bodies: Query<&mut Body>,
    nodes: Query<Node>,
    tiles: Tiles,
    mut commands: Commands,
) -> PassResult {
    let (root, geometry, settings) = *kernel;
    let order = walk::order(&bodies.as_readonly(), root);
    let accessing = Accessing::find(&nodes, &order)?;
    let uses = count_uses(&nodes, &order)?;
    let mut why_not = None;
    let mut pairs = Vec::new();
    let asked = settings.0.requested_global_to_shared();
    if asked == GlobalToShared::Automatic && !pays(geometry, &settings.0) {
        return Ok(());
    }
    for region in walk::regions_of(&bodies.as_readonly(), root) {
        for &write in &bodies.get(region)?.0 {
            let Some(read) = filled_by(&nodes, &uses, write)? else { continue };
            let buffer = nodes.get(write)?.memory()?;
            let ty = nodes.get(buffer)?.ty;
            if ty.dtype == Some(DType::F8E8M0) {
                continue;
            }
            if let Some(why) = unsuitable(&nodes, &tiles, &accessing, read, buffer)? {
                why_not = why_not.or(Some(why));
                continue;
            }
            // Reads of LDS have none: they bring nothing from global memory.
            let Ok(bounds) = tiles.bounds.get(read) else { continue };
            // The schedules do not suit them; see `Unsuitable::VectorAlu` of ping-pong.
            if asked == GlobalToShared::Automatic && ty.dtype == Some(DType::F32) {
                return Ok(());
            }
            match spread(geometry, &settings.0, ty, bounds) {
                Ok((layout, bounds)) => pairs.push(Pair { region, read, write, layout, bounds }),
                Err(why) => why_not = why_not.or(Some(why)),
            }
        }
    }
    // Schedules take all tiles in the same way.
    if asked == GlobalToShared::Automatic && why_not.is_some() {
        pairs.clear();
    }
    if *settings.0.requested_schedule() != Schedule::None
        && let Some(why) = too_large(geometry, &settings.0, &nodes, &order)?
    {
        pairs.clear();
        why_not = Some(why);
    }
    let why = why_not.as_ref().map(ToString::to_string).unwrap_or_default();
    commands.entity(root).insert(DirectLoads { tiles: pairs.len() as u32, why });
    become_loads(pairs, &mut bodies, &nodes, &tiles.flags, commands)
}

/// Why the accesses of a buffer do not suit a load that fills it, if they do not.
fn unsuitable(
    nodes: &Query<Node>,
    tiles: &Tiles,
    accessing: &Accessing,
    read: Entity,
    buffer: Entity,
) -> Result<Option<UnsuitableTile>, Diagnostic> {
    if tiles.mappings.contains(read) || accessing.is_mapped(&tiles.mappings, buffer) {
        return Ok(Some(UnsuitableTile::Mapped));
    }
    if !keeps_order(nodes, &tiles.placements, &tiles.mappings, accessing, buffer)? {
        return Ok(Some(UnsuitableTile::Transposed));
    }
    Ok(accessing.lies_apart(&tiles.placements, buffer)?.then_some(UnsuitableTile::Apart))
}

/// Makes the write of each pair the load; its read is no longer needed.
fn become_loads(
    pairs: Vec<Pair>,
    bodies: &mut Query<&mut Body>,
    nodes: &Query<Node>,
    flags: &Query<&'static MemoryAccessFlags>,
    mut commands: Commands,
) -> PassResult {
    let gone: NodeSet = pairs.iter().map(|pair| pair.read).collect();
    let mut changed: Vec<Entity> = pairs.iter().map(|pair| pair.region).collect();
    changed.dedup();
    for region in changed {
        bodies.get_mut(region)?.0.retain(|&node| !gone.contains(node));
    }
    for Pair { read, write, layout, bounds, .. } in pairs {
        let operands = [nodes.get(read)?.operand(0)?, nodes.get(write)?.memory()?];
        let operands = Operands(SmallVec::from_slice(&operands));
        commands.entity(write).insert((Op::GlobalToShared, operands, Placement(layout), bounds));
        if let Ok(&flags) = flags.get(read) {
            commands.entity(write).insert(flags);
        }
    }
    Ok(())
}

/// True if such loads pay for the waves of a workgroup.
fn pays(geometry: &Geometry, options: &Options) -> bool {
    // Loads are known to be over after a barrier. A wave alone has none, so each of its reads would wait for
    // all loads that are under way, those of the next tile among them.
    let is_alone = geometry.wave_count() == 1;
    let only_in_turns = matches!(options.requested_schedule(), Schedule::PingPong | Schedule::Quadrants);
    !is_alone && (!only_in_turns || take_turns(geometry, options.target()))
}

/// True if the waves of a workgroup can take turns on every SIMD.
fn take_turns(geometry: &Geometry, target: Target) -> bool {
    let waves = geometry.wave_count();
    waves > 0 && waves.is_multiple_of(2 * target.simds_per_compute_unit)
}

/// Facts about accesses that earlier passes have found.
#[derive(SystemParam)]
pub(crate) struct Tiles<'w, 's> {
    placements: AccessLayouts<'w, 's>,
    bounds: Query<'w, 's, &'static Bounds>,
    mappings: Query<'w, 's, (), With<Mapping>>,
    flags: Query<'w, 's, &'static MemoryAccessFlags>,
}

/// How many nodes use each node's value.
fn count_uses(nodes: &Query<Node>, order: &[Entity]) -> Result<NodeMap<u32>, Diagnostic> {
    let mut uses = NodeMap::default();
    for &node in order {
        let operands = &nodes.get(node)?.operands.0;
        for (at, &operand) in operands.iter().enumerate() {
            if !operands[..at].contains(&operand) {
                uses.count(operand);
            }
        }
    }
    Ok(uses)
}

/// The global read whose value `write` puts into LDS, if it has no other use.
fn filled_by(nodes: &Query<Node>, uses: &NodeMap<u32>, write: Entity) -> Result<Option<Entity>, Diagnostic> {
    let store = nodes.get(write)?;
    if *store.op != Op::Write {
        return Ok(None);
    }
    let read = store.operand(0)?;
    let fits = *nodes.get(read)?.op == Op::Read && *nodes.get(store.memory()?)?.op == Op::Allocate;
    Ok((fits && uses.get(read) == Some(&1)).then_some(read))
}

/// How the lanes of the workgroup load the tile of an LDS buffer together, each with the widest load that
/// fits.
fn spread(
    geometry: &Geometry,
    options: &Options,
    ty: &ValueType,
    bounds: &Bounds,
) -> Result<(Layout, Bounds), UnsuitableTile> {
    let bytes = ty.dtype.map_or(4, DType::bytes);
    let extents = geometry.workgroup_tile(&ty.dims).unwrap_or_default();
    let tile: SmallVec<[(Dim, u32); 4]> = ty.dims.iter().copied().zip(extents).collect();
    let waves = geometry.wave_count();
    let mut why = UnsuitableTile::Element(bytes);
    for &width in options.target().lds_load_widths.iter().filter(|width| width.is_multiple_of(bytes)) {
        let elements = width / bytes;
        match Layout::distribute(&tile, elements, LANES, waves) {
            Ok(layout) if is_side_by_side(&layout, &tile) => {
                if bounds.granule >= elements {
                    return Ok((layout, Bounds { granule: elements, narrowed: None, ..bounds.clone() }));
                }
                why = UnsuitableTile::Ragged(width);
            }
            _ => {
                let all = tile.iter().fold(bytes, |all, t| all.saturating_mul(t.1));
                why = UnsuitableTile::Parts { bytes: all, each: width * LANES, waves };
            }
        }
    }
    Err(why)
}

/// True if the lanes of a wave hold consecutive elements of a dense tile.
fn is_side_by_side(layout: &Layout, tile: &[(Dim, u32)]) -> bool {
    let place = |lane: u32| {
        let place = Place { lane, ..Place::default() };
        tile.iter().fold(0, |at, &(dim, extent)| at * extent + layout.coordinate(dim, place))
    };
    let each = layout.extent(Source::Register);
    (0..LANES).all(|lane| place(lane) == place(0) + lane * each)
}

/// Whether LDS is too small for a pipeline that loads tiles while it reads the previous ones.
fn too_large(
    geometry: &Geometry,
    options: &Options,
    nodes: &Query<Node>,
    order: &[Entity],
) -> Result<Option<UnsuitableTile>, Diagnostic> {
    let limit = options.target().max_lds_per_workgroup;
    let mut needed = 0u32;
    for &node in order {
        let NodeItem { op, ty, .. } = nodes.get(node)?;
        if *op == Op::Allocate {
            let extents = geometry.workgroup_tile(&ty.dims).unwrap_or_default();
            let element = ty.dtype.map_or(4, DType::bytes);
            let bytes = extents.iter().fold(element, |all, &extent| all.saturating_mul(extent));
            needed = needed.saturating_add(bytes);
        }
    }
    // A tile that is read quadrant by quadrant can be loaded anew in parts.
    if *options.requested_schedule() != Schedule::Quadrants {
        needed = needed.saturating_mul(2);
    }
    Ok((needed > limit).then_some(UnsuitableTile::Lds { needed, limit }))
}
