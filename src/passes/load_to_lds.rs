//! Loads straight into LDS: a global read that only fills an LDS buffer becomes one operation, with no register between.
//!
//! The hardware puts what the lanes of a wave load side by side into LDS, a dword (or more, by target) per lane, behind an address that all
//! lanes share (CDNA3 ISA guide, "Memory buffer load to LDS"). So the buffer keeps the order of the memory, its rows have no padding, a
//! swizzle changes which column a lane loads, and no element of a lane may be masked alone. What such loads cannot bring
//! goes through registers as before.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;
use thiserror::Error;

use super::arrange_lds::{Accessing, keeps_order};
use super::assign_layouts::LANES;
use super::facts::{Bounds, DirectLoads, Geometry, Settings};
use super::options::{GlobalToShared, Schedule};
use super::promote_to_lds::workgroup_tile;
use super::{PassResult, kernel_entity};
use crate::ir::layout::{Dim, Layout, Place, Source};
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::types::DType;
use crate::ir::walk;

/// Why a tile is not loaded straight into LDS.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Unsuitable {
    /// Readers want other elements side by side than the memory has.
    #[error("its readers want the tile transposed")]
    Transposed,
    /// An element is not a part of a dword.
    #[error("an element takes {0} bytes, which are not a part of a dword")]
    Element(u32),
    /// Some elements of a load may be outside of the tensor.
    #[error("a load of {0} bytes may be in part outside of the tensor")]
    Ragged(u32),
    /// Rows or tile are no multiple of what a wave loads at once.
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

/// A global read and the LDS write of what it brings.
struct Pair {
    region: Entity,
    read: Entity,
    write: Entity,
    /// How the lanes load.
    layout: Layout,
    bounds: Bounds,
}

/// The pass; see the module.
pub fn load_to_lds(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let Some(options) = world.get::<Settings>(root).map(|s| &s.0) else { return Ok(()) };
    let schedule = options.requested_schedule();
    if options.requested_global_to_shared() == GlobalToShared::Off {
        return Ok(());
    }
    let order = walk::nodes(world, root);
    let accessing = Accessing::find(world, &order);
    let uses = count_uses(world, &order);
    let mut why_not = None;
    let mut pairs = Vec::new();
    for region in walk::regions(world, root) {
        for write in walk::body(world, region) {
            let Some(read) = filled_by(world, &uses, write) else { continue };
            match spread(world, root, &accessing, read, write) {
                Ok((layout, bounds)) => pairs.push(Pair { region, read, write, layout, bounds }),
                Err(why) => why_not = why_not.or(Some(why)),
            }
        }
    }
    if schedule != Schedule::None
        && let Some(why) = too_large(world, root, &order)
    {
        pairs.clear();
        why_not = Some(why);
    }
    let why = why_not.as_ref().map(ToString::to_string).unwrap_or_default();
    let direct = DirectLoads { tiles: pairs.len() as u32, why };
    let mut gone = NodeSet::default();
    let mut changed: Vec<Entity> = Vec::new();
    for pair in pairs {
        gone.insert(pair.read);
        if changed.last() != Some(&pair.region) {
            changed.push(pair.region);
        }
        join(world, pair);
    }
    for region in changed {
        let body: walk::NodeList =
            walk::body(world, region).into_iter().filter(|&node| !gone.contains(node)).collect();
        walk::set_body(world, region, &body);
    }
    world.entity_mut(root).insert(direct);
    Ok(())
}

/// How many nodes use each node's value.
fn count_uses(world: &World, order: &[Entity]) -> NodeMap<u32> {
    let mut uses = NodeMap::default();
    for &node in order {
        let operands = world.get::<Operands>(node).map(|o| &o.0[..]).unwrap_or_default();
        for (at, &operand) in operands.iter().enumerate() {
            if !operands[..at].contains(&operand) {
                match uses.get_mut(operand) {
                    Some(count) => *count += 1,
                    None => uses.insert(operand, 1),
                }
            }
        }
    }
    uses
}

/// The global read whose value `write` puts into LDS, if that is all it is for.
fn filled_by(world: &World, uses: &NodeMap<u32>, write: Entity) -> Option<Entity> {
    let &[read, buffer] = &world.get::<Operands>(write)?.0[..] else { return None };
    let is = |node: Entity, op: Op| world.get::<Op>(node) == Some(&op);
    let fits = is(write, Op::Write) && is(buffer, Op::Allocate) && is(read, Op::Read);
    (fits && uses.get(read) == Some(&1)).then_some(read)
}

/// How the lanes of the workgroup load the tile together, each with the widest load that fits.
fn spread(
    world: &World,
    root: Entity,
    accessing: &Accessing,
    read: Entity,
    write: Entity,
) -> Result<(Layout, Bounds), Unsuitable> {
    let buffer = world.get::<Operands>(write).and_then(|o| o.0.last().copied()).unwrap_or(write);
    if !keeps_order(world, accessing, buffer) {
        return Err(Unsuitable::Transposed);
    }
    let (Some(geometry), Some(settings), Some(ty), Some(bounds)) = (
        world.get::<Geometry>(root),
        world.get::<Settings>(root),
        world.get::<ValueType>(buffer),
        world.get::<Bounds>(read),
    ) else {
        return Err(Unsuitable::Element(0));
    };
    let bytes = ty.dtype.map_or(4, DType::bytes);
    let extents = workgroup_tile(geometry, &ty.dims).unwrap_or_default();
    let tile: SmallVec<[(Dim, u32); 4]> = ty.dims.iter().copied().zip(extents).collect();
    let waves = geometry.wave_count();
    let mut why = Unsuitable::Element(bytes);
    for &width in settings.0.target().lds_load_widths.iter().filter(|width| width.is_multiple_of(bytes)) {
        let elements = width / bytes;
        match Layout::distribute(&tile, elements, LANES, waves) {
            Ok(layout) if is_side_by_side(&layout, &tile) => {
                if bounds.granule >= elements {
                    return Ok((layout, Bounds { granule: elements, ..bounds.clone() }));
                }
                why = Unsuitable::Ragged(width);
            }
            _ => {
                let all = tile.iter().fold(bytes, |all, t| all.saturating_mul(t.1));
                why = Unsuitable::Parts { bytes: all, each: width * LANES, waves };
            }
        }
    }
    Err(why)
}

/// True if the lanes of a wave have what lies side by side in a dense tile.
fn is_side_by_side(layout: &Layout, tile: &[(Dim, u32)]) -> bool {
    let place = |lane: u32| {
        let place = Place { lane, ..Place::default() };
        tile.iter().fold(0, |at, &(dim, extent)| at * extent + layout.coordinate(dim, place))
    };
    let each = layout.extent(Source::Register);
    (0..LANES).all(|lane| place(lane) == place(0) + lane * each)
}

/// Whether LDS is too small for a pipeline that loads tiles while it reads those before.
fn too_large(world: &World, root: Entity, order: &[Entity]) -> Option<Unsuitable> {
    let (geometry, settings) = (world.get::<Geometry>(root)?, world.get::<Settings>(root)?);
    let limit = settings.0.target().max_lds_per_workgroup;
    let buffers = order.iter().filter(|&&n| world.get::<Op>(n) == Some(&Op::Allocate));
    let bytes = buffers.filter_map(|&n| world.get::<ValueType>(n)).map(|ty| {
        let extents = workgroup_tile(geometry, &ty.dims).unwrap_or_default();
        extents.iter().fold(ty.dtype.map_or(4, DType::bytes), |all, &extent| all.saturating_mul(extent))
    });
    let needed = bytes.fold(0u32, |sum, bytes| sum.saturating_add(bytes)).saturating_mul(2);
    (needed > limit).then_some(Unsuitable::Lds { needed, limit })
}

/// Makes the write a load to LDS; the read is of no more use.
fn join(world: &mut World, pair: Pair) {
    let Pair { read, write, layout, bounds, .. } = pair;
    let memory = world.get::<Operands>(read).and_then(|o| o.0.first().copied());
    if let (Some(memory), Some(mut operands)) = (memory, world.get_mut::<Operands>(write)) {
        operands.0[0] = memory;
    }
    world.entity_mut(write).insert((Op::GlobalToShared, Placement(layout), bounds));
}
