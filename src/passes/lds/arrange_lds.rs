//! LDS layout: gives every buffer the arrangement (padding of rows or XOR swizzle) with the fewest bank
//! conflicts, found by computing the conflicts of all its accesses from their layouts.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::codegen::target::{LANES, LdsAccess, LdsRules, Target};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::KernelName;
use crate::ir::layout::{Dim, Layout, Place, Source};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{Bug, Node, NodeItem};
use crate::ir::op::MemoryEffect;
use crate::ir::walk;
use crate::passes::PassResult;
use crate::passes::facts::{
    BankConflicts, Geometry, LdsBuffer, Settings, Swizzle, TransposingRead, TurnedUnits, WordSpacing,
};
use crate::passes::layout::element_layouts::MAX_ACCESS_BYTES;

/// Accesses of a buffer that are spread in the same way: an arrangement suits all of them equally.
struct BufferAccess {
    nodes: SmallVec<[Entity; 2]>,
    /// Which elements lanes access: those that they hold or, of a read that turns them, load.
    layout: Layout,
    kind: AccessKind,
    /// Of a read that turns elements among lanes the bytes that a lane loads.
    turns: Option<u32>,
    /// At coordinates.
    is_mapped: bool,
}

/// An access whose elements have their order in a buffer, which all arrangements of it share.
#[derive(Copy, Clone)]
struct OrderedAccess<'a> {
    access: &'a BufferAccess,
    /// Consecutive elements that a lane accesses along rows.
    run: u32,
}

/// The accesses of a buffer whose dimensions have their order.
fn ordered<'a>(buffer: &LdsBuffer, accesses: &'a [BufferAccess]) -> SmallVec<[OrderedAccess<'a>; 4]> {
    accesses.iter().map(|access| OrderedAccess { access, run: run_in(buffer, &access.layout) }).collect()
}

/// How a buffer is accessed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum AccessKind {
    /// By LDS instructions.
    Instruction(LdsAccess),
    /// By loads from global memory, which put the data of a wave's lanes side by side and have no
    /// conflicts.
    Load,
}

/// The pass itself; see the module.
pub(crate) fn arrange_lds(
    kernel: Single<(Entity, &Geometry, &Settings), With<KernelName>>,
    bodies: Query<&Body>,
    nodes: Query<Node>,
    placements: AccessLayouts,
    mappings: Query<(), With<Mapping>>,
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
        let mut accesses = accessing.of(&placements, &mappings, node)?;
        // Coordinates count on rows of the declared order that lie one after the other.
        let is_plain = accessing.is_mapped(&mappings, node);
        accesses.retain(|access| !access.is_mapped);
        let order = if is_plain { &[] } else { &accesses[..] };
        let mut buffer = plain_buffer(geometry, ty, order);
        if let Some(spacing) = accessing.spacing(&placements, node)? {
            space_words(&mut buffer, spacing, geometry, &mut accesses)?;
        }
        let degrees = match is_plain {
            true => {
                let ordered = ordered(&buffer, &accesses);
                cost(&buffer, &buffer, &ordered, target.lds_rules).unwrap_or_default().degrees
            }
            false => {
                let left = target.max_lds_per_workgroup - taken;
                choose_arrangement(&mut buffer, &accesses, target.lds_rules, left)
            }
        };
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

/// Which elements accesses have, and how reads turn them.
pub(super) type AccessLayouts<'w, 's> =
    Query<'w, 's, (&'static Placement, Option<&'static TransposingRead>, Option<&'static TurnedUnits>)>;

/// True if a buffer of so many elements has an arrangement, without padding, in which neither reads that hold
/// it so nor writes of this layout have bank conflicts.
pub(super) fn is_free_of_conflicts(
    geometry: &Geometry,
    ty: &ValueType,
    readers: &[&Layout],
    written: &Layout,
    target: Target,
) -> bool {
    let access = |layout: &Layout, access: LdsAccess| BufferAccess {
        nodes: SmallVec::new(),
        layout: layout.clone(),
        kind: AccessKind::Instruction(access),
        turns: None,
        is_mapped: false,
    };
    let reads = readers.iter().map(|layout| access(layout, LdsAccess::Read));
    let accesses: SmallVec<[BufferAccess; 4]> = reads.chain([access(written, LdsAccess::Write)]).collect();
    let buffer = plain_buffer(geometry, ty, &accesses);
    free_arrangement(&buffer, &accesses, target.lds_rules, buffer.bytes).is_some()
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

    /// Whether a buffer is accessed at coordinates.
    pub(super) fn is_mapped(&self, mappings: &Query<(), With<Mapping>>, buffer: Entity) -> bool {
        self.0.get(buffer).is_some_and(|accesses| accesses.iter().any(|access| mappings.contains(access.0)))
    }

    /// How words of a buffer have to lie for the reads that turn what is in it.
    fn spacing(&self, placements: &AccessLayouts, buffer: Entity) -> Result<Option<WordSpacing>, Diagnostic> {
        for &(node, _) in self.0.get(buffer).map(|nodes| &nodes[..]).unwrap_or_default() {
            let (_, transposing, units) = placements.get(node)?;
            if let Some(spacing) = transposing.and_then(|by| by.spacing(units)) {
                return Ok(Some(spacing));
            }
        }
        Ok(None)
    }

    /// Whether some words of a buffer do not lie side by side.
    pub(super) fn lies_apart(&self, placements: &AccessLayouts, buffer: Entity) -> Result<bool, Diagnostic> {
        Ok(self.spacing(placements, buffer)?.is_some())
    }

    /// Those of one buffer, with equal ones combined.
    fn of(
        &self,
        placements: &AccessLayouts,
        mappings: &Query<(), With<Mapping>>,
        buffer: Entity,
    ) -> Result<SmallVec<[BufferAccess; 4]>, Diagnostic> {
        let mut accesses: SmallVec<[BufferAccess; 4]> = SmallVec::new();
        for &(node, kind) in self.0.get(buffer).map(|nodes| &nodes[..]).unwrap_or_default() {
            let (Placement(held), transposing, units) = placements.get(node)?;
            let loaded = |by: &TransposingRead| by.loaded(held, units);
            let turned = transposing.map(|by| loaded(by).ok_or(Bug::new("a read that turns nothing")));
            let turned = turned.transpose()?;
            let layout = turned.as_ref().unwrap_or(held);
            let turns = transposing.map(|by| by.width(units));
            let same = |a: &&mut BufferAccess| {
                (a.kind, a.turns, a.is_mapped) == (kind, turns, mappings.contains(node))
                    && a.layout == *layout
            };
            match accesses.iter_mut().find(same) {
                Some(known) => known.nodes.push(node),
                None => accesses.push(BufferAccess {
                    nodes: SmallVec::from_slice(&[node]),
                    layout: layout.clone(),
                    kind,
                    turns,
                    is_mapped: mappings.contains(node),
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
    let (spacing, swizzle) = (None, None);
    let mut buffer =
        LdsBuffer { dims, extents, element_bytes, pitch, spacing, swizzle, offset: 0, bytes: 0, copies: 1 };
    buffer.bytes = size(&buffer);
    buffer
}

/// Gives words of rows their room, and says of the accesses where in rows their elements lie.
fn space_words(
    buffer: &mut LdsBuffer,
    spacing: WordSpacing,
    geometry: &Geometry,
    accesses: &mut [BufferAccess],
) -> PassResult {
    buffer.spacing = Some(spacing);
    // Nobody has the elements that cover a row to a power of two: the words of a unit are few.
    if let (Some(&inner), Some(extent)) = (buffer.dims.last(), buffer.extents.last_mut()) {
        *extent = geometry.dim(inner).static_size.unwrap_or(*extent);
        buffer.pitch = buffer.element_bytes * extent.div_ceil(spacing.together) * spacing.apart;
    }
    buffer.bytes = size(buffer);
    for access in accesses {
        let placed = buffer.places_in_rows(access.layout.clone());
        access.layout = placed.ok_or(Bug::new("an access of words that lie apart"))?;
    }
    Ok(())
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
    placements: &AccessLayouts,
    mappings: &Query<(), With<Mapping>>,
    accessing: &Accessing,
    buffer: Entity,
) -> Result<bool, Diagnostic> {
    let dims = &nodes.get(buffer)?.ty.dims;
    let accesses = accessing.of(placements, mappings, buffer)?;
    Ok(innermost(dims, &accesses) == dims.last().copied())
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

/// What the accesses of a buffer cost a wave in an arrangement.
#[derive(Default)]
struct ArrangementCost {
    /// Cycles in which the banks are busy.
    cycles: u32,
    instructions: u32,
    /// Bank conflict degree of each access.
    degrees: SmallVec<[u32; 4]>,
}

/// A wave issues one instruction in so many cycles.
const ISSUE_CYCLES: u32 = 4;

/// Bank conflict degree of each access, if the arrangement has no conflicts and takes no more instructions
/// than the plain one, and lowering can address all of them in it.
fn without_conflicts(
    plain: &LdsBuffer,
    buffer: &LdsBuffer,
    accesses: &[OrderedAccess],
    rules: &LdsRules,
) -> Option<SmallVec<[u32; 4]>> {
    let free = |&OrderedAccess { access, run }: &OrderedAccess| match access.kind {
        AccessKind::Load => takes_loads(plain, buffer, &access.layout),
        AccessKind::Instruction(kind) => {
            let width = width_of_run(buffer, run);
            width == width_of_run(plain, run)
                && is_addressable(buffer, &access.layout, width)
                && rules.degree(kind, width, &lane_addresses(buffer, access), 1) == Some(1)
        }
    };
    accesses.iter().all(free).then(|| SmallVec::from_elem(1, accesses.len()))
}

/// What an arrangement costs; `None` if lowering could not address an access in it. A misaligned row or
/// small unit may take several instructions where the plain arrangement takes one.
fn cost(
    plain: &LdsBuffer,
    buffer: &LdsBuffer,
    accesses: &[OrderedAccess],
    rules: &LdsRules,
) -> Option<ArrangementCost> {
    let mut cost = ArrangementCost::default();
    for &OrderedAccess { access, run } in accesses {
        let AccessKind::Instruction(kind) = access.kind else {
            takes_loads(plain, buffer, &access.layout).then(|| cost.degrees.push(1))?;
            continue;
        };
        let layout = &access.layout;
        let width = width_of_run(buffer, run);
        if !is_addressable(buffer, layout, width) {
            return None;
        }
        let conflicts = rules.conflicts(kind, width, &lane_addresses(buffer, access))?;
        let bytes = layout.extent(Source::Register) * buffer.element_bytes;
        let instructions = layout.extent(Source::Replica).saturating_mul(bytes.div_ceil(width));
        let cycles = conflicts.cycles.max(ISSUE_CYCLES);
        cost.cycles = cost.cycles.saturating_add(instructions.saturating_mul(cycles));
        cost.instructions = cost.instructions.saturating_add(instructions);
        cost.degrees.push(conflicts.degree);
    }
    Some(cost)
}

/// True if there is room for an arrangement, which there is for the plain one.
fn fits(plain: &LdsBuffer, candidate: &LdsBuffer, limit: u32) -> bool {
    keeps_spacing(candidate) && (candidate.bytes <= limit || candidate.bytes == plain.bytes)
}

/// The first arrangement without conflicts, and the bank conflict degree of each access.
fn free_arrangement(
    plain: &LdsBuffer,
    accesses: &[BufferAccess],
    rules: &LdsRules,
    limit: u32,
) -> Option<(LdsBuffer, SmallVec<[u32; 4]>)> {
    let ordered = ordered(plain, accesses);
    let mut fitting = candidates(plain, accesses, rules).filter(|candidate| fits(plain, candidate, limit));
    fitting.find_map(|candidate| {
        let degrees = without_conflicts(plain, &candidate, &ordered, rules)?;
        Some((candidate, degrees))
    })
}

/// Picks the first arrangement without conflicts, otherwise the one whose accesses take the fewest
/// cycles, then instructions, then bytes; returns the conflict degree of each access.
fn choose_arrangement(
    buffer: &mut LdsBuffer,
    accesses: &[BufferAccess],
    rules: &LdsRules,
    limit: u32,
) -> SmallVec<[u32; 4]> {
    let plain = buffer.clone();
    if let Some((found, degrees)) = free_arrangement(&plain, accesses, rules, limit) {
        *buffer = found;
        return degrees;
    }
    let ordered = ordered(&plain, accesses);
    let all = candidates(&plain, accesses, rules)
        .filter(|candidate| fits(&plain, candidate, limit))
        .filter_map(|c| Some((cost(&plain, &c, &ordered, rules)?, c)));
    match all.min_by_key(|(cost, c)| (cost.cycles, cost.instructions, c.bytes)) {
        Some((cost, found)) => {
            *buffer = found;
            cost.degrees
        }
        None => SmallVec::new(),
    }
}

/// Whether words that lie together stay so, at multiples of the room that they have.
fn keeps_spacing(buffer: &LdsBuffer) -> bool {
    let keeps = |room: u32| {
        buffer.pitch.is_multiple_of(room) && buffer.swizzle.is_none_or(|swizzle| swizzle.unit >= room)
    };
    buffer.spacing.is_none_or(|spacing| keeps(spacing.apart * buffer.element_bytes))
}

/// Arrangements worth trying, cheapest in LDS and in address registers first. Those for the banks that wide
/// reads find come after them, where these are more than writes find, and last those that move single dwords,
/// for rows of a few bytes.
fn candidates<'a>(
    plain: &'a LdsBuffer,
    accesses: &'a [BufferAccess],
    rules: &LdsRules,
) -> impl Iterator<Item = LdsBuffer> + use<'a> {
    let row = rules.row_bytes();
    let of_reads = 4 * rules.grouping(LdsAccess::Read, MAX_ACCESS_BYTES).banks;
    let wider = (of_reads > row).then_some(of_reads);
    let wide = wider.into_iter().flat_map(move |row| {
        let row_blocks = blocks(plain, accesses);
        let steps = [1].into_iter().chain(lane_steps(plain, accesses));
        steps.flat_map(move |step| across_rows(plain, step, row, &row_blocks, &UNITS))
    });
    let dwords = across_rows(plain, 1, row, &[], &[4]);
    narrow_candidates(plain, accesses, rules).chain(wide).chain(dwords)
}

/// Bytes that a swizzle moves as a whole: what wide accesses take, and half of it.
const UNITS: [u32; 2] = [16, 8];

/// Arrangements for the banks that writes find.
fn narrow_candidates<'a>(
    plain: &'a LdsBuffer,
    accesses: &'a [BufferAccess],
    rules: &LdsRules,
) -> impl Iterator<Item = LdsBuffer> + use<'a> {
    const PADS: [u32; 6] = [4, 8, 16, 32, 48, 64];
    // All banks together hold so many bytes side by side.
    let row = rules.row_bytes();
    let mut turned = SmallVec::new();
    if let Some(width) = accesses.iter().find_map(|access| access.turns) {
        let row = 4 * rules.grouping(LdsAccess::Read, width).banks;
        turned = for_transposing(plain, row);
        if plain.spacing.is_some() {
            // Lanes read rows that are all units of a row of the tile apart.
            let step = plain.extents.iter().rev().nth(1).copied().filter(|step| step.is_power_of_two());
            turned.extend(across_rows(plain, step.unwrap_or(1), row, &[], &UNITS));
        }
    }
    let swizzled = move |block: Option<u32>| {
        UNITS.into_iter().filter_map(move |unit| {
            let units = plain.pitch / unit;
            if !plain.pitch.is_multiple_of(unit) || !units.is_power_of_two() || units == 1 {
                return None;
            }
            let group = (row / plain.pitch).max(1);
            let phases = units.min(row / unit);
            Some(LdsBuffer { swizzle: Some(Swizzle { unit, group, phases, block }), ..plain.clone() })
        })
    };
    // Rows begin at whole elements.
    let pads = PADS.into_iter().filter(|pad| pad.is_multiple_of(plain.element_bytes));
    let padded = pads.map(|pad| {
        let mut buffer = plain.clone();
        buffer.pitch += pad;
        buffer.bytes = size(&buffer);
        buffer
    });
    // Replicas of reads that turn elements are side by side along rows, where each unit of a swizzle takes an
    // address register.
    let is_turned = !turned.is_empty();
    let padded_first = padded.clone().filter(move |_| is_turned);
    let steps = lane_steps(plain, accesses);
    let row_blocks = blocks(plain, accesses);
    let skipping = steps.into_iter().flat_map(move |step| across_rows(plain, step, row, &row_blocks, &UNITS));
    let in_blocks = blocks(plain, accesses).into_iter().flat_map(move |block| swizzled(Some(block)));
    let all = [plain.clone()].into_iter().chain(padded_first).chain(turned);
    let all = all.chain(skipping).chain(swizzled(None));
    all.chain(padded).chain(in_blocks)
}

/// Swizzles for reads that turn elements among sixteen lanes: these load parts of a few neighbouring rows,
/// and other lanes the same of rows that are a power of two further on. So a row's phase has the bits of its
/// number and those of the number of its block.
fn for_transposing(plain: &LdsBuffer, row: u32) -> SmallVec<[LdsBuffer; 12]> {
    let beside = (row / plain.pitch).max(1);
    let mut found = SmallVec::new();
    for unit in [64, 32, 16] {
        let phases = plain.pitch.min(row) / unit;
        if !plain.pitch.is_power_of_two() || phases < 2 {
            continue;
        }
        for block in [None, Some(2), Some(4), Some(8)] {
            let block = block.map(|block| block * beside);
            let swizzle = Swizzle { unit, group: beside, phases, block };
            found.push(LdsBuffer { swizzle: Some(swizzle), ..plain.clone() });
        }
    }
    found
}

/// Swizzles for readers whose lanes leave rows out: the phase changes with the rows that they read, and units
/// are exchanged through all rows that fill the banks once.
fn across_rows(
    plain: &LdsBuffer,
    step: u32,
    row: u32,
    blocks: &[u32],
    units: &[u32],
) -> SmallVec<[LdsBuffer; 8]> {
    let mut found = SmallVec::new();
    let (pitch, beside) = (plain.pitch, (row / plain.pitch).max(1));
    let blocks = [None].into_iter().chain(blocks.iter().map(|&block| Some(block)));
    for block in blocks {
        for &unit in units {
            let moves_elements = unit >= plain.element_bytes && pitch >= unit;
            if !moves_elements || !pitch.is_power_of_two() || !plain.bytes.is_multiple_of(row) {
                continue;
            }
            let swizzle = Swizzle { unit, group: step.max(beside), phases: row / unit, block };
            found.push(LdsBuffer { swizzle: Some(swizzle), ..plain.clone() });
        }
    }
    found
}

/// Rows from one lane to the next, where readers leave rows out: other replicas read these.
fn lane_steps(buffer: &LdsBuffer, accesses: &[BufferAccess]) -> SmallVec<[u32; 2]> {
    let Some(&dim) = buffer.dims.iter().rev().nth(1) else { return SmallVec::new() };
    let reads = accesses.iter().filter(|access| access.kind == AccessKind::Instruction(LdsAccess::Read));
    let steps = reads.filter_map(|access| {
        let of_rows = access.layout.of_source(Source::Lane).filter(|mode| mode.dim == Some(dim));
        of_rows.map(|mode| mode.stride).min()
    });
    steps.filter(|&step| step > 1 && step.is_power_of_two()).collect()
}

/// Rows that a lane writes columns of, where it writes more than one row.
fn blocks(buffer: &LdsBuffer, accesses: &[BufferAccess]) -> SmallVec<[u32; 2]> {
    let Some(&dim) = buffer.dims.iter().rev().nth(1) else { return SmallVec::new() };
    let writes = accesses.iter().filter(|access| access.kind == AccessKind::Instruction(LdsAccess::Write));
    let rows = writes.map(|access| access.layout.contiguous_run(dim));
    rows.filter(|rows| *rows > 1 && rows.is_power_of_two()).collect()
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
    let bytes = run * buffer.element_bytes;
    if buffer.spacing.is_some_and(|spacing| spacing.together == run) {
        return bytes;
    }
    let mut width = bytes.clamp(1, MAX_ACCESS_BYTES);
    if !width.is_power_of_two() {
        width = 1 << width.ilog2();
    }
    // Runs and rows are whole numbers of accesses.
    let divides = |width: u32| bytes.is_multiple_of(width) && buffer.pitch.is_multiple_of(width);
    while width > buffer.element_bytes && !divides(width) {
        width /= 2;
    }
    buffer.swizzle.map_or(width, |swizzle| width.min(swizzle.unit))
}

/// Byte address inside the buffer of the first element that each lane holds, for all lanes at once. One
/// replica shows the pattern of all: replicas move all lanes by the same number of bytes. With a swizzle
/// these are rows and units that no lane has (`is_addressable`), which change the banks of all lanes by
/// the same bits.
fn lane_addresses(buffer: &LdsBuffer, access: &BufferAccess) -> [u32; LANES as usize] {
    let (layout, place) = (&access.layout, Place::default());
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
        let moved = buffer.swizzle.map_or(0, |s| s.phase(row) * s.unit);
        *address = (row * buffer.pitch + column) ^ moved;
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
/// only whole loads of a lane, within the part of a row that one replica loads, or within whole rows that one
/// instruction loads together.
fn takes_loads(plain: &LdsBuffer, buffer: &LdsBuffer, layout: &Layout) -> bool {
    let of_lane = layout.extent(Source::Register) * buffer.element_bytes;
    let apart = |swizzle: Swizzle| {
        let mut columns =
            layout.of_source(Source::Replica).filter(|mode| mode.dim == buffer.dims.last().copied());
        columns.all(|mode| (mode.stride * buffer.element_bytes).is_multiple_of(swizzle.unit * swizzle.phases))
    };
    let together = |s: Swizzle| {
        let rows = buffer.extents.iter().rev().nth(1).copied().unwrap_or(1);
        (LANES * of_lane).is_multiple_of(s.span()) && rows.is_multiple_of(s.span() / buffer.pitch)
    };
    let fits = |s: Swizzle| s.unit >= of_lane && apart(s) && (s.span() <= buffer.pitch || together(s));
    buffer.pitch == plain.pitch && buffer.swizzle.is_none_or(fits)
}

/// True if waves add rows of an access that are no whole periods of the buffer's swizzle.
pub(crate) fn waves_change_phases(buffer: &LdsBuffer, layout: &Layout) -> bool {
    let changes = |swizzle: Swizzle| {
        let of_wave = layout.of_source(Source::Wave);
        let mut rows = of_wave.filter_map(|mode| row_stride(buffer, mode.dim?, mode.stride));
        rows.any(|rows| rows % swizzle.period() != 0)
    };
    buffer.swizzle.is_some_and(changes)
}

/// Rows from a coordinate to the one `stride` further along `dim`; `None` for the innermost dimension.
fn row_stride(buffer: &LdsBuffer, dim: Dim, stride: u32) -> Option<u32> {
    let (&inner, outer) = buffer.dims.split_last()?;
    let inside = outer.iter().zip(&buffer.extents).skip_while(|(d, _)| **d != dim).skip(1);
    (dim != inner).then(|| inside.fold(stride, |stride, (_, &extent)| stride * extent))
}

/// True if lowering can address an access in instructions of `width` bytes. It computes the phase of a
/// row once per lane, and XORs into it what replicas and registers add: neither the rows that these add
/// nor their units may carry into those of the lanes.
fn is_addressable(buffer: &LdsBuffer, layout: &Layout, width: u32) -> bool {
    let Some(swizzle) = buffer.swizzle else { return true };
    let period = swizzle.period();
    let [mut lane_columns, mut other_columns, mut lane_rows, mut other_rows] = [0; 4];
    for mode in layout.modes() {
        let Some(dim) = mode.dim else { continue };
        let reach = |step: u32| step * (mode.extent.next_power_of_two() - 1);
        match row_stride(buffer, dim, mode.stride) {
            None => {
                let bits = (reach(mode.stride) * buffer.element_bytes) & !(width.next_power_of_two() - 1);
                match mode.source {
                    Source::Lane | Source::Register => lane_columns |= bits,
                    Source::Replica | Source::Wave => other_columns |= bits,
                }
            }
            Some(rows) if rows % period == 0 && mode.source != Source::Lane => {}
            Some(rows) => {
                let bits = if rows.is_power_of_two() { reach(rows) } else { u32::MAX };
                match mode.source {
                    Source::Lane | Source::Wave => lane_rows |= bits,
                    Source::Replica | Source::Register => other_rows |= bits,
                }
            }
        }
    }
    lane_columns & other_columns == 0 && lane_rows & other_rows & (period - 1) == 0
}
