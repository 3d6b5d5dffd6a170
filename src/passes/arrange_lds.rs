//! LDS layout: gives every buffer the arrangement (padding of rows or XOR swizzle) with the fewest bank
//! conflicts, found by computing the conflicts of all its accesses from their layouts.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::PassResult;
use super::element_layouts::MAX_ACCESS_BYTES;
use super::facts::{BankConflicts, Geometry, LdsBuffer, Settings, Swizzle};
use crate::codegen::target::{LANES, LdsAccess, LdsRules};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::KernelName;
use crate::ir::layout::{Dim, Layout, Place, Source};
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{Node, NodeItem};
use crate::ir::op::MemoryEffect;
use crate::ir::walk;

/// Accesses of a buffer that are spread in the same way: an arrangement suits all of them equally.
struct BufferAccess {
    nodes: SmallVec<[Entity; 2]>,
    layout: Layout,
    kind: AccessKind,
}

/// How a buffer is accessed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum AccessKind {
    /// By LDS instructions.
    Instruction(LdsAccess),
    /// By loads from global memory, which put the data of a wave's lanes side by side and have no conflicts.
    Load,
}

/// The pass itself; see the module.
pub(crate) fn arrange_lds(
    kernel: Single<(Entity, &Geometry, &Settings), With<KernelName>>,
    bodies: Query<&Body>,
    nodes: Query<Node>,
    placements: Query<&Placement>,
    mut commands: Commands,
) -> PassResult {
    let (root, geometry, settings) = *kernel;
    let target = settings.0.target();
    let order = walk::order(&bodies, root);
    let accessing = Accessing::find(&nodes, &order)?;
    let mut taken = 0u32;
    for &node in &order {
        let NodeItem { op, ty, .. } = nodes.get(node)?;
        if *op != Op::Allocate {
            continue;
        }
        let accesses = accessing.of(&placements, node)?;
        let mut buffer = plain_buffer(geometry, ty, &accesses);
        let degrees = choose_arrangement(
            &mut buffer,
            &accesses,
            target.lds_rules,
            target.max_lds_per_workgroup - taken,
        );
        taken = taken.saturating_add(buffer.all_bytes()).min(target.max_lds_per_workgroup);
        for (access, degree) in accesses.iter().zip(degrees) {
            for &node in &access.nodes {
                commands.entity(node).insert(BankConflicts(degree));
            }
        }
        commands.entity(node).insert(buffer);
    }
    Ok(())
}

/// The accesses of every buffer, in order.
pub(super) struct Accessing(NodeMap<SmallVec<[(Entity, AccessKind); 2]>>);

impl Accessing {
    pub(super) fn find(nodes: &Query<Node>, order: &[Entity]) -> Result<Accessing, Diagnostic> {
        let mut by_buffer: NodeMap<SmallVec<[(Entity, AccessKind); 2]>> = NodeMap::default();
        for &id in order {
            let node = nodes.get(id)?;
            if *node.op == Op::Allocate {
                by_buffer.insert(id, SmallVec::new());
                continue;
            }
            let kind = match node.op.row().memory {
                MemoryEffect::Reads => AccessKind::Instruction(LdsAccess::Read),
                MemoryEffect::Writes | MemoryEffect::Updates => AccessKind::Instruction(LdsAccess::Write),
                MemoryEffect::Copies => AccessKind::Load,
                MemoryEffect::None | MemoryEffect::Fence => continue,
            };
            if let Some(accesses) = by_buffer.get_mut(node.memory()?) {
                accesses.push((id, kind));
            }
        }
        Ok(Accessing(by_buffer))
    }

    /// Those of one buffer, with equal ones combined.
    fn of(
        &self,
        placements: &Query<&Placement>,
        buffer: Entity,
    ) -> Result<SmallVec<[BufferAccess; 4]>, Diagnostic> {
        let mut accesses: SmallVec<[BufferAccess; 4]> = SmallVec::new();
        for &(node, kind) in self.0.get(buffer).map(|nodes| &nodes[..]).unwrap_or_default() {
            let layout = &placements.get(node)?.0;
            match accesses.iter_mut().find(|a| a.kind == kind && a.layout == *layout) {
                Some(known) => known.nodes.push(node),
                None => accesses.push(BufferAccess {
                    nodes: SmallVec::from_slice(&[node]),
                    layout: layout.clone(),
                    kind,
                }),
            }
        }
        Ok(accesses)
    }
}

/// The buffer without padding or swizzle. The dimension along which readers hold consecutive elements is
/// innermost.
fn plain_buffer(geometry: &Geometry, ty: &ValueType, accesses: &[BufferAccess]) -> LdsBuffer {
    let mut dims = ty.dims.clone();
    if let Some(inner) = innermost(&dims, accesses) {
        dims.retain(|d| *d != inner);
        dims.push(inner);
    }
    let extents: SmallVec<[u32; 4]> =
        dims.iter().filter_map(|&d| geometry.dim(d).workgroup_extent()).collect();
    let element_bytes = ty.dtype.map_or(4, crate::ir::types::DType::bytes);
    let pitch = extents.last().copied().unwrap_or(1).saturating_mul(element_bytes);
    let mut buffer =
        LdsBuffer { dims, extents, element_bytes, pitch, swizzle: None, offset: 0, bytes: 0, copies: 1 };
    buffer.bytes = size(&buffer);
    buffer
}

/// The dimension along which readers hold consecutive elements.
fn innermost(dims: &[Dim], accesses: &[BufferAccess]) -> Option<Dim> {
    let reads = |access: &&BufferAccess| access.kind == AccessKind::Instruction(LdsAccess::Read);
    let reader = accesses.iter().find(reads)?;
    dims.iter().copied().max_by_key(|&dim| run_key(&reader.layout, dims, dim))
}

/// True if a buffer lies in LDS in the order of the memory that it is filled from, apart from swizzles and
/// padding.
pub(super) fn keeps_order(
    nodes: &Query<Node>,
    placements: &Query<&Placement>,
    accessing: &Accessing,
    buffer: Entity,
) -> Result<bool, Diagnostic> {
    let dims = &nodes.get(buffer)?.ty.dims;
    Ok(innermost(dims, &accessing.of(placements, buffer)?) == dims.last().copied())
}

/// Prefers the longest run; among equals the memory's own innermost dimension.
fn run_key(layout: &Layout, dims: &[Dim], dim: Dim) -> (u32, usize) {
    (layout.contiguous_run(dim), dims.iter().position(|&d| d == dim).unwrap_or(0))
}

fn rows(buffer: &LdsBuffer) -> u32 {
    let (_, outer) = buffer.extents.split_last().unwrap_or((&1, &[]));
    outer.iter().fold(1u32, |product, &e| product.saturating_mul(e))
}

fn size(buffer: &LdsBuffer) -> u32 {
    rows(buffer).saturating_mul(buffer.pitch)
}

/// The cost of an access in an arrangement.
struct ArrangementCost {
    /// Time relative to conflict-free instructions of the plain arrangement's width.
    time: u32,
    /// Bank conflict degree.
    degree: u32,
}

/// Cost of each access in an arrangement; `None` if lowering could not address one of them in it, or if one
/// takes more than `most` time.
fn costs(
    plain: &LdsBuffer,
    buffer: &LdsBuffer,
    accesses: &[BufferAccess],
    rules: &LdsRules,
    most: u32,
) -> Option<SmallVec<[ArrangementCost; 4]>> {
    let cost = |access: &BufferAccess| {
        let kind = match access.kind {
            AccessKind::Instruction(kind) => kind,
            AccessKind::Load => {
                return takes_loads(plain, buffer, &access.layout)
                    .then_some(ArrangementCost { time: 1, degree: 1 });
            }
        };
        // Padding may misalign rows, so that several instructions are needed where the plain arrangement
        // needs one.
        let run = run_in(plain, &access.layout);
        let width = width_of_run(buffer, run);
        let pieces = width_of_run(plain, run) / width;
        let pieces = pieces.max(1);
        let degree = degree_of(buffer, access, (kind, width), rules, most / pieces)?;
        Some(ArrangementCost { time: degree * pieces, degree }).filter(|cost| cost.time <= most)
    };
    accesses.iter().map(cost).collect()
}

/// Picks the first arrangement without conflicts, otherwise the one whose slowest access takes the least
/// time, then the one with the fewest bytes; returns the conflict degree of each access.
fn choose_arrangement(
    buffer: &mut LdsBuffer,
    accesses: &[BufferAccess],
    rules: &LdsRules,
    limit: u32,
) -> SmallVec<[u32; 4]> {
    let plain = buffer.clone();
    let fits = |candidate: &LdsBuffer| candidate.bytes <= limit || candidate.bytes == plain.bytes;
    let degrees = |costs: SmallVec<[ArrangementCost; 4]>| costs.into_iter().map(|cost| cost.degree).collect();
    for candidate in candidates(&plain, rules.row_bytes()).filter(fits) {
        if let Some(costs) = costs(&plain, &candidate, accesses, rules, 1) {
            *buffer = candidate;
            return degrees(costs);
        }
    }
    let all = candidates(&plain, rules.row_bytes())
        .filter(fits)
        .filter_map(|c| Some((costs(&plain, &c, accesses, rules, u32::MAX)?, c)));
    match all.min_by_key(|(costs, c)| (costs.iter().map(|cost| cost.time).max(), c.bytes)) {
        Some((costs, found)) => {
            *buffer = found;
            degrees(costs)
        }
        None => SmallVec::new(),
    }
}

/// Arrangements worth trying, cheapest in LDS first. All banks together hold `row` bytes side by side.
fn candidates(plain: &LdsBuffer, row: u32) -> impl Iterator<Item = LdsBuffer> + '_ {
    const PADS: [u32; 6] = [4, 8, 16, 32, 48, 64];
    const UNITS: [u32; 2] = [16, 8];
    let swizzled = UNITS.into_iter().filter_map(move |unit| {
        let units = plain.pitch / unit;
        if !plain.pitch.is_multiple_of(unit) || !units.is_power_of_two() || units == 1 {
            return None;
        }
        let group = (row / plain.pitch).max(1);
        let phases = units.min(row / unit);
        Some(LdsBuffer { swizzle: Some(Swizzle { unit, group, phases }), ..plain.clone() })
    });
    let padded = PADS.into_iter().map(|pad| {
        let mut buffer = plain.clone();
        buffer.pitch += pad;
        buffer.bytes = size(&buffer);
        buffer
    });
    [plain.clone()].into_iter().chain(swizzled).chain(padded)
}

/// Width in bytes of the instructions that an access uses in this buffer.
pub(crate) fn access_width(buffer: &LdsBuffer, layout: &Layout) -> u32 {
    width_of_run(buffer, run_in(buffer, layout))
}

/// Consecutive elements that a lane accesses along the rows of a buffer, whatever their arrangement.
fn run_in(buffer: &LdsBuffer, layout: &Layout) -> u32 {
    buffer.dims.last().map_or(1, |&inner| layout.contiguous_run(inner))
}

/// Width in bytes of the instructions that an access of `run` consecutive elements uses in this buffer.
fn width_of_run(buffer: &LdsBuffer, run: u32) -> u32 {
    let mut width = (run * buffer.element_bytes).clamp(1, MAX_ACCESS_BYTES);
    if !width.is_power_of_two() {
        width = 1 << width.ilog2();
    }
    while width > buffer.element_bytes && !buffer.pitch.is_multiple_of(width) {
        width /= 2;
    }
    buffer.swizzle.map_or(width, |swizzle| width.min(swizzle.unit))
}

/// Worst conflict degree of an access, or the first degree above `most` that is found; `None` if lowering
/// could not address it in this arrangement.
fn degree_of(
    buffer: &LdsBuffer,
    access: &BufferAccess,
    (kind, width): (LdsAccess, u32),
    rules: &LdsRules,
    most: u32,
) -> Option<u32> {
    let layout = &access.layout;
    if let Some(swizzle) = buffer.swizzle
        && !swizzle_is_lane_only(buffer, layout, swizzle, width)
    {
        return None;
    }
    // One replica shows the pattern of all: replicas move all lanes by the same number of bytes. With a
    // swizzle these are whole periods of rows, which start in the same bank, and units that no lane has
    // (`swizzle_is_lane_only`), which change the banks of all lanes by the same bits.
    rules.degree(kind, width, &lane_addresses(buffer, layout, Place::default()), most)
}

/// Byte address inside the buffer of the first element that each lane holds, for all lanes at once.
fn lane_addresses(buffer: &LdsBuffer, layout: &Layout, place: Place) -> [u32; LANES as usize] {
    let mut addresses = [0; LANES as usize];
    let Some((&inner, outer)) = buffer.dims.split_last() else { return addresses };
    let mut rows = [0; LANES as usize];
    for (&dim, &extent) in outer.iter().zip(&buffer.extents) {
        let coordinates = lane_coordinates(layout, dim, place);
        for (row, coordinate) in rows.iter_mut().zip(coordinates) {
            *row = *row * extent + coordinate;
        }
    }
    let columns = lane_coordinates(layout, inner, place).map(|column| column * buffer.element_bytes);
    for ((address, row), column) in addresses.iter_mut().zip(rows).zip(columns) {
        let moved = buffer.swizzle.map_or(0, |s| row / s.group % s.phases * s.unit);
        *address = row * buffer.pitch + (column ^ moved);
    }
    addresses
}

/// The coordinates of all lanes along one dimension, for lane 0's place. Each digit of the lane number
/// repeats the coordinates of the lanes below it, moved by its stride.
fn lane_coordinates(layout: &Layout, dim: Dim, place: Place) -> [u32; LANES as usize] {
    let mut all = [layout.coordinate(dim, place); LANES as usize];
    let mut weight = 1;
    for mode in layout.of_source(Source::Lane) {
        let stride = if mode.dim == Some(dim) { mode.stride } else { 0 };
        let end = (weight * mode.extent as usize).min(all.len());
        for lane in weight..end {
            all[lane] = all[lane - weight] + stride;
        }
        weight = end;
    }
    all
}

/// True if loads from global memory can fill an arrangement: rows without padding, and a swizzle that moves
/// only whole loads of a lane, within the part of a row that one replica loads.
fn takes_loads(plain: &LdsBuffer, buffer: &LdsBuffer, layout: &Layout) -> bool {
    let of_lane = layout.extent(Source::Register) * buffer.element_bytes;
    let apart = |swizzle: Swizzle| {
        let mut columns =
            layout.of_source(Source::Replica).filter(|mode| mode.dim == buffer.dims.last().copied());
        columns.all(|mode| (mode.stride * buffer.element_bytes).is_multiple_of(swizzle.unit * swizzle.phases))
    };
    buffer.pitch == plain.pitch && buffer.swizzle.is_none_or(|s| s.unit >= of_lane && apart(s))
}

/// Rows from a coordinate to the one `stride` further along `dim`; `None` for the innermost dimension.
fn row_stride(buffer: &LdsBuffer, dim: Dim, stride: u32) -> Option<u32> {
    let (&inner, outer) = buffer.dims.split_last()?;
    let inside = outer.iter().zip(&buffer.extents).skip_while(|(d, _)| **d != dim).skip(1);
    (dim != inner).then(|| inside.fold(stride, |stride, (_, &extent)| stride * extent))
}

/// Lowering computes the phase of a row once per lane: rows that waves and replicas add must be whole periods
/// of the swizzle, and the units that they add must not carry into those of the lanes.
fn swizzle_is_lane_only(buffer: &LdsBuffer, layout: &Layout, swizzle: Swizzle, width: u32) -> bool {
    let period = swizzle.group * swizzle.phases;
    let mut lane_columns = 0;
    let mut other_columns = 0;
    for mode in layout.modes() {
        let Some(dim) = mode.dim else { continue };
        match row_stride(buffer, dim, mode.stride) {
            None => {
                let reach = mode.stride * (mode.extent.next_power_of_two() - 1) * buffer.element_bytes;
                let bits = reach & !(width - 1);
                match mode.source {
                    Source::Lane | Source::Register => lane_columns |= bits,
                    Source::Replica | Source::Wave => other_columns |= bits,
                }
            }
            Some(rows) if mode.source != Source::Lane && rows % period != 0 => return false,
            Some(_) => {}
        }
    }
    lane_columns & other_columns == 0
}
