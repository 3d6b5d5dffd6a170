//! Global-load widening and redistribution: the workgroup loads each promoted tile together, every lane with
//! the widest access that keeps all lanes busy, instead of every wave loading the fragments that its matrix
//! instructions need.
//!
//! Where readers hold elements side by side across the rows of the memory, the tile is turned: by the reads
//! of LDS, if the chip has such reads and they give all readers their layout, or else by the writes.
//!
//! Of a tile that is turned by writes the first lanes load a block, so that one LDS write of single elements
//! fills a unit of one row and the same unit of other rows. All elements of a lane have one address, and
//! immediate offsets, if two things hold: lanes of the readers are as many rows apart as the lane has
//! elements (`store_columns`), so that these rows share a phase of the swizzle; and waves divide the summed
//! dimension, so that replicas of the load are whole periods apart.
//!
//! Where the tile is large enough, a lane loads parts of two rows of 16-bit elements, of four of 8-bit ones,
//! and exchanges them between its registers (`v_perm_b32`), so that an LDS write puts down a register instead
//! of an element: in a loop of attention on gfx942 the 16 writes of a tile of V took 90 clk of the matrix
//! cores' time, and its 8 take none.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::arrange_lds::is_free_of_conflicts;
use crate::codegen::target::{LANES, Target};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::{KernelName, Locations};
use crate::ir::layout::{Dim, Layout};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::{Bug, Node, NodeItem};
use crate::ir::types::DType;
use crate::ir::walk;
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, Settings, TransposingRead, TurnedUnits};
use crate::passes::layout::element_layouts::{MAX_ACCESS_BYTES, projected, too_large};

/// The pass itself; see the module.
pub(crate) fn distribute_loads(
    kernel: Single<(Entity, &Geometry, &Locations, &Settings), With<KernelName>>,
    bodies: Query<&Body>,
    nodes: LoadNodes,
    mapped: Query<(), With<Mapping>>,
    mut commands: Commands,
) -> PassResult {
    let (root, geometry, locations, settings) = *kernel;
    let mut stores: SmallVec<[Entity; 4]> = SmallVec::new();
    let mut readers: SmallVec<[Reader; 4]> = SmallVec::new();
    for id in walk::order(&bodies, root) {
        let (node, placement, units) = nodes.get(id)?;
        match (*node.op, placement) {
            (Op::Write, None) => stores.push(id),
            (Op::Read, Some(Placement(layout))) => {
                let across = units.map_or_else(|| turned(node.ty, layout), |units| Some(units.held.elements));
                let by_read = across.and_then(|_| by_reads(settings.0.target(), node.ty, layout, units));
                let by_read = by_read.filter(|_| !mapped.contains(id));
                if let (Some(units), None) = (units, by_read) {
                    let fault = not_turned(settings.0.target(), units);
                    return Err(fault.at(locations.get(node.origin.0)));
                }
                let spacing = by_read.and_then(|by_read| by_read.spacing(units));
                let words = units.map_or(1, |units| units.size().words);
                let together = spacing.map(|spacing| [words, spacing.together]);
                let layout = (!mapped.contains(id)).then_some(layout);
                readers.push(Reader { read: id, buffer: node.memory()?, layout, across, by_read, together });
            }
            _ => {}
        }
    }
    for id in stores {
        let store = nodes.get(id)?.0;
        let (load, buffer) = (store.operand(0)?, store.memory()?);
        let of_buffer: SmallVec<[&Reader; 2]> =
            readers.iter().filter(|reader| reader.buffer == buffer).collect();
        if of_buffer.iter().all(|reader| reader.keeps_order()) {
            for (read, by_read) in of_buffer.iter().filter_map(|reader| Some((reader.read, reader.by_read?)))
            {
                commands.entity(read).insert(by_read);
            }
        }
        let load_node = nodes.get(load)?.0;
        let rows = rows_of_values(&nodes, &load_node)?;
        let [loaded, written] =
            loaded_and_written(geometry, load_node.ty, &of_buffer, (rows, settings.0.target()))
                .map_err(|fault| fault.at(locations.get(store.origin.0)))?;
        if rows.is_some() {
            spread_to_coordinates(&nodes, load, &loaded, &mut commands)?;
        }
        commands.entity(load).insert(Placement(loaded));
        commands.entity(id).insert(Placement(written));
    }
    Ok(())
}

/// The dimension along which values say where the rows of a load are, if they do.
fn rows_of_values(nodes: &LoadNodes, load: &NodeItem) -> Result<Option<Dim>, Diagnostic> {
    let (_, values) = load.operands.0.split_last().ok_or(Bug::new("a load without memory"))?;
    let mut of_values = Dims::new();
    for &value in values {
        of_values.extend_from_slice(&nodes.get(value)?.0.ty.dims);
    }
    Ok(innermost_row(&load.ty.dims, &of_values))
}

/// The innermost of a tile's dimensions that values have.
pub(super) fn innermost_row(tile: &[Dim], of_values: &[Dim]) -> Option<Dim> {
    tile.iter().rev().copied().find(|dim| of_values.contains(dim))
}

/// Gives the values in the coordinates of a load, which were made again for it, the layout of their parts of
/// the tile.
fn spread_to_coordinates(
    nodes: &LoadNodes,
    user: Entity,
    layout: &Layout,
    commands: &mut Commands,
) -> PassResult {
    let user = nodes.get(user)?.0;
    let values = user.operands.0.len() - usize::from(user.op.is_access());
    for &value in &user.operands.0[..values] {
        let (NodeItem { ty, .. }, placement, _) = nodes.get(value)?;
        if placement.is_none() && !ty.dims.is_empty() {
            let own = projected(layout, &ty.dims)?;
            spread_to_coordinates(nodes, value, &own, commands)?;
            commands.entity(value).insert(Placement(own));
        }
    }
    Ok(())
}

/// Nodes, with the layouts that they have so far.
type LoadNodes<'w, 's> = Query<'w, 's, (Node, Option<&'static Placement>, Option<&'static TurnedUnits>)>;

/// A read of a tile.
struct Reader<'a> {
    read: Entity,
    buffer: Entity,
    /// How it holds what it reads, unless that is at coordinates.
    layout: Option<&'a Layout>,
    /// The dimension along which it holds several elements, if it is not the memory's innermost one: the tile
    /// is turned on its way through LDS.
    across: Option<Dim>,
    /// How it turns the tile itself, if it can.
    by_read: Option<TransposingRead>,
    /// Words of a unit and how many of them lie side by side in LDS, where not all do.
    together: Option<[u32; 2]>,
}

impl Reader<'_> {
    /// True if the tile may lie in LDS as it does in the memory.
    fn keeps_order(&self) -> bool {
        self.by_read.is_some() || self.layout.is_some() && self.across.is_none()
    }
}

/// True if a read in a layout takes a tile that lies in LDS as it does in the memory.
pub(super) fn takes_memory_order(target: Target, ty: &ValueType, layout: &Layout) -> bool {
    turned(ty, layout).is_none() || by_reads(target, ty, layout, None).is_some()
}

/// The dimension along which a reader holds several elements, if it is not the memory's innermost one.
fn turned(ty: &ValueType, layout: &Layout) -> Option<Dim> {
    let outer = ty.dims.split_last()?.1;
    outer.iter().copied().find(|&dim| layout.contiguous_run(dim) > 1)
}

/// How reads give a layout to a tile that lies in LDS as it does in the memory.
fn by_reads(
    target: Target,
    ty: &ValueType,
    layout: &Layout,
    units: Option<&TurnedUnits>,
) -> Option<TransposingRead> {
    let (along, bits) = match units {
        Some(units) => (units.stored.elements, units.bits),
        None => (*ty.dims.last()?, ty.dtype?.bits()),
    };
    target.transposing_read(bits)?;
    let reads = TransposingRead { along, elements: TransposingRead::elements_of(bits) };
    reads.loaded(layout, units).map(|_| reads)
}

/// A factor whose units no read of LDS turns: of a text from before this pass, for another chip.
fn not_turned(target: Target, units: &TurnedUnits) -> Diagnostic {
    let text = format!("{target} has no reads of LDS that turn elements of {} bits so", units.bits);
    let help = "compile the kernel itself for the chip, or its text from before `pack_small_floats`";
    Diagnostic::new(Kind::Unsupported, text).help(help)
}

/// How the workgroup loads a tile that has these readers, and how it writes it to LDS.
fn loaded_and_written(
    geometry: &Geometry,
    ty: &ValueType,
    readers: &[&Reader],
    (rows, target): (Option<Dim>, Target),
) -> Result<[Layout; 2], Diagnostic> {
    let by_reads = readers.iter().all(|reader| reader.keeps_order());
    let across = readers.iter().find_map(|reader| reader.across).filter(|_| !by_reads);
    let together = readers.iter().find_map(|reader| reader.together).filter(|_| by_reads);
    let read_so: Option<SmallVec<[&Layout; 2]>> = readers.iter().map(|reader| reader.layout).collect();
    if let (Some(across), Some(read_so)) = (across, read_so)
        && let Some(found) = rows_together(geometry, ty, across, &read_so, target)?
    {
        return Ok(found);
    }
    let block = match (across, rows, ty.dims.last()) {
        (Some(across), _, Some(&along)) => Some(LaneBlock::Turning([along, across])),
        (None, Some(rows), Some(&along)) => Some(LaneBlock::Rows([along, rows])),
        _ => None,
    };
    let layout = spread(geometry, ty, block, together)?;
    Ok([layout.clone(), layout])
}

/// The block of a tile that the lanes of a wave load, where it is none of whole rows.
#[derive(Copy, Clone)]
enum LaneBlock {
    /// Of a tile that is turned: along its rows, and across them.
    Turning([Dim; 2]),
    /// Of rows that stand where values say: a cache line of each, so that a lane needs the places of few.
    Rows([Dim; 2]),
}

impl LaneBlock {
    /// Lanes along both dimensions, where one loads so many elements of so many bytes.
    fn extents(self, elements: u32, bytes: u32) -> [(Dim, u32); 2] {
        match self {
            LaneBlock::Turning(dims) => turning_block(bytes, dims),
            LaneBlock::Rows([along, rows]) => {
                let beside = (LINE / (elements * bytes)).clamp(1, LANES);
                [(along, beside), (rows, LANES / beside)]
            }
        }
    }
}

/// How the workgroup loads a tile whose rows along a dimension stand where values say, if it lies in LDS as
/// in the memory.
pub(super) fn rows_loaded(geometry: &Geometry, ty: &ValueType, rows: Dim) -> Result<Layout, Diagnostic> {
    let block = ty.dims.last().map(|&along| LaneBlock::Rows([along, rows]));
    spread(geometry, ty, block, None)
}

/// Bytes of a cache line.
const LINE: u32 = 128;

/// How the workgroup loads a tile, of which the lanes of a wave take a block if there is one. Of rows of so
/// many words of which some lie `together` in LDS lanes load those.
fn spread(
    geometry: &Geometry,
    ty: &ValueType,
    block: Option<LaneBlock>,
    together: Option<[u32; 2]>,
) -> Result<Layout, Diagnostic> {
    let extents = geometry.workgroup_tile(&ty.dims).ok_or_else(|| {
        Diagnostic::invalid("a shared memory has a dynamic dimension without a tile")
            .help("add a workgroup or loop tile for each of its dimensions")
    })?;
    let mut tile: SmallVec<[(Dim, u32); 4]> = ty.dims.iter().copied().zip(extents).collect();
    let waves = geometry.wave_count();
    if let (Some([words, together]), Some(row)) = (together, tile.last_mut()) {
        row.1 = words;
        return Layout::distribute(&tile, together, LANES, waves)
            .or_else(|_| Layout::distribute_copies(&tile, together, LANES, waves))
            .map_err(too_large);
    }
    let bytes = ty.dtype.map_or(4, DType::bytes);
    let mut elements = MAX_ACCESS_BYTES / bytes;
    while elements > 0 {
        let layout = match block {
            Some(block) => {
                let block = block.extents(elements, bytes);
                Layout::distribute_in_blocks(&tile, elements, [LANES, waves], &block)
            }
            None => Layout::distribute(&tile, elements, LANES, waves),
        };
        if let Ok(layout) = layout {
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

/// How the workgroup loads a tile whose readers hold several elements side by side `across` the rows of its
/// memory, and how it writes it to LDS, where a lane loads parts of so many rows that their elements fill a
/// register: its elements change registers then, and each write puts down a register of them. None if the
/// tile is too small for that, or if no arrangement of LDS keeps such writes and the reads from meeting a
/// bank twice: these would gain nothing.
fn rows_together(
    geometry: &Geometry,
    ty: &ValueType,
    across: Dim,
    readers: &[&Layout],
    target: Target,
) -> Result<Option<[Layout; 2]>, Diagnostic> {
    let bytes = ty.dtype.map_or(DWORD, DType::bytes);
    let (Some(extents), Some(&along)) = (geometry.workgroup_tile(&ty.dims), ty.dims.last()) else {
        return Ok(None);
    };
    if bytes >= DWORD {
        return Ok(None);
    }
    let tile: SmallVec<[(Dim, u32); 4]> = ty.dims.iter().copied().zip(extents).collect();
    let each = (MAX_ACCESS_BYTES / bytes, (across, DWORD / bytes));
    let (workers, block) = ([LANES, geometry.wave_count()], turning_block(DWORD, [along, across]));
    let Ok(loaded) = Layout::distribute_rows_in_blocks(&tile, each, workers, &block) else { return Ok(None) };
    let written = loaded.with_registers_along(across).map_err(too_large)?;
    let is_free = is_free_of_conflicts(geometry, ty, readers, &written, target);
    Ok(is_free.then_some([loaded, written]))
}

/// Lanes whose elements an LDS write puts down at the same time, along both dimensions of a tile that is
/// turned. Those across the rows of memory are side by side in LDS: they fill a unit of a swizzle, and
/// the others, which are rows of LDS apart, fill the other banks.
fn turning_block(element_bytes: u32, [along, across]: [Dim; 2]) -> [(Dim, u32); 2] {
    let side_by_side = MAX_ACCESS_BYTES / element_bytes;
    [(along, LANES / 2 / side_by_side), (across, side_by_side)]
}

/// Bytes of a register.
const DWORD: u32 = 4;
