//! Loops whose values are masked by places, as the scores of causal attention are: tiles that are masked
//! entirely and change nothing are not visited, and tiles of which nothing is masked do without the mask.
//!
//! Loops of one product or none are divided for that: into one over the tiles without masks, and others over
//! those of which something is masked. Loops of several products stay whole, because each of their pipelines
//! fills and empties in the time of several tiles; there the mask stands under a branch (`seldom_masks`).
//!
//! A mask is `select(condition, value, other)` whose condition compares places: along the dimension of the
//! loop, and along those that workgroups divide. Which tiles it leaves alone, and in which it holds nowhere,
//! follows from the ranges of the places of a workgroup, as limits on the loop's trips that are computed
//! once.
//!
//! - `tile_spans`: the tiles in which a condition holds everywhere, and those in which it holds somewhere
//! - `idle_tiles`: whether a loop hands on what it carries where a condition holds nowhere
//! - `value_symbols`: symbols of values that places are compared with, such as lengths of sequences;
//!   `mask_values`: which values get one
//! - `seldom_masks`: the tiles in which lowering leaves the masks of a loop out
//!
//! A product of factors that are all zero counts as zero there: what a tile that is not visited has of
//! infinities and NaN is not seen (docs/numerics.md). Compilations that ask for it
//! ([`MaskedTiles::Visit`](crate::passes::options::MaskedTiles)) keep their loops as they are.

mod idle_tiles;
mod mask_values;
mod seldom_masks;
mod tile_spans;
mod value_symbols;

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::loop_pieces::LoopPieces;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, ExprArena, ExprError};
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::op::{OpClass, Purity};
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::analysis::bind_symbols::bug;
use crate::passes::analysis::positive_values::KnownSizes;
use crate::passes::facts::{Expressions, Geometry, MaskedPart, Remainder, Settings};
use crate::passes::kernel_editor::KernelEditor;
use crate::passes::options::MaskedTiles;
use idle_tiles::LoopIteration;
use mask_values::set_mask_values;
pub(crate) use seldom_masks::find_seldom_masks;
use tile_spans::{LoopTiles, SpanFinder, TileSpan};
use value_symbols::ValueSymbols;

/// The pass itself; see the module. It copies loops that it looks at again, so it takes the whole world.
pub(crate) fn divide_masked_loops(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    if editor.kernel::<Settings>()?.0.requested_masked_tiles() == MaskedTiles::Visit {
        return Ok(());
    }
    set_mask_values(&mut editor)?;
    LoopPieces::new(editor).divide(&mut divide)
}

/// The trips of a loop that its masks divide.
struct MaskedLoop {
    /// Selections that are masks of no element in the tiles without masks.
    masks: SmallVec<[Entity; 2]>,
    /// Trips before those without masks, these, those after them, and the one that may reach beyond the end
    /// of the dimension.
    trips: [Trip; 4],
}

/// Those of [`MaskedLoop::trips`] without masks.
const PLAIN: usize = 1;
/// The last of them.
const REMAINDER: usize = 3;

/// Gives a loop the trips of its first part, and makes copies for the others.
fn divide(pieces: &mut LoopPieces<'_>, node: Entity) -> Result<SmallVec<[Entity; 2]>, Diagnostic> {
    let Op::Iterate(axis) = pieces.editor.op(node)? else { return Ok(smallvec![]) };
    let found = pieces.editor.with_expressions(|editor, arena| find(editor, arena, (node, axis)))??;
    let Some(MaskedLoop { masks, trips }) = found else { return Ok(smallvec![]) };
    let arena = &mut pieces.editor.kernel_mut::<Expressions>()?.0;
    let mut runs: SmallVec<[(usize, Trip); 4]> = SmallVec::new();
    for (part, trip) in trips.into_iter().enumerate() {
        let count = arena.sub(trip.end, trip.start).map_err(|e| bug(&e))?;
        if !arena.range(count).at_most(0) {
            runs.push((part, trip));
        }
    }
    let has_plain = runs.iter().any(|&(part, _)| part == PLAIN) && !masks.is_empty();
    // All copies are made of the loop as it is, each with its masks.
    let mut parts: SmallVec<[(Entity, SmallVec<[Entity; 2]>); 4]> = smallvec![(node, masks.clone())];
    for _ in 1..runs.len() {
        let copy = pieces.copy(node)?;
        parts.push((copy, masks.iter().map(|&mask| pieces.copy_of(mask)).collect()));
    }
    for ((own, masks), &(part, trip)) in parts.iter().zip(&runs) {
        pieces.editor.attach(*own, trip);
        if has_plain && part != PLAIN {
            pieces.editor.attach(*own, MaskedPart);
        }
        if part == REMAINDER {
            pieces.editor.attach(*own, Remainder);
        }
        if part == PLAIN {
            masks.iter().try_for_each(|&mask| unmask(&mut pieces.editor, *own, mask))?;
        }
    }
    let divided = runs.iter().map(|&(_, Trip { start, end })| (start, end));
    pieces.editor.kernel_mut::<Geometry>()?.dims[axis].masks.divided.extend(divided);
    Ok(parts.into_iter().skip(1).map(|(copy, _)| copy).collect())
}

/// Puts what a selection selects where its condition holds in its place.
fn unmask(editor: &mut KernelEditor<'_>, own: Entity, mask: Entity) -> PassResult {
    let selected = editor.node(mask)?.operand(1)?;
    if editor.dims(selected)? != editor.dims(mask)? {
        editor.turn_into(mask, Op::Broadcast, &[selected]);
        return Ok(());
    }
    let body: NodeList = editor.body(own).into_iter().filter(|&node| node != mask).collect();
    for &node in body.iter().chain([&own]) {
        let replace = |used: &mut Entity| *used = if *used == mask { selected } else { *used };
        editor.rename(node, replace);
    }
    editor.set_body(own, &body);
    Ok(())
}

/// The trips of a loop, if masks divide them.
fn find(
    editor: &KernelEditor<'_>,
    arena: &mut ExprArena,
    (node, axis): (Entity, Dim),
) -> Result<Option<MaskedLoop>, Diagnostic> {
    let body = editor.body(node);
    if !is_pure(editor, &body)? {
        return Ok(None);
    }
    let geometry = editor.kernel::<Geometry>()?;
    let Some(tile) = geometry.loop_tile(axis) else { return Ok(None) };
    let mut values = ValueSymbols::of(editor)?;
    let tiles = LoopTiles { axis, tile, body: &body };
    let read = |node: Entity| editor.node(node);
    let iteration =
        LoopIteration::new(&read, editor.get::<Yields>(node), &editor.node(node)?.operands.0, &body);
    let stays_whole = multiplies_repeatedly(editor, &body)?;
    let mut visible = TileSpan::default();
    let mut plain = TileSpan::default();
    let mut masks = SmallVec::new();
    for &mask in &body {
        if editor.op(mask)? != Op::Select {
            continue;
        }
        let condition = editor.node(mask)?.operand(0)?;
        let mut finder = SpanFinder::new(&read, (geometry, &mut *arena), tiles, &mut values);
        let Some(spans) = finder.condition(condition)? else { continue };
        if let Some(everywhere) = spans.everywhere.filter(|_| !stays_whole) {
            plain = plain.within(arena, everywhere).map_err(|e| bug(&e))?;
            masks.push(mask);
        }
        if iteration.is_idle_without(mask, KnownSizes { geometry, arena })? {
            visible = visible.within(arena, spans.somewhere).map_err(|e| bug(&e))?;
        }
    }
    if masks.is_empty() && visible.is_all() {
        return Ok(None);
    }
    let trips = trips(arena, geometry, axis, (visible, plain)).map_err(|e| bug(&e))?;
    Ok(trips.map(|trips| MaskedLoop { masks, trips }))
}

/// True for the body of a loop that may be divided: it has no regions, and does nothing but hand on values.
fn is_pure(editor: &KernelEditor<'_>, body: &[Entity]) -> Result<bool, Diagnostic> {
    for &node in body {
        let row = editor.op(node)?.row();
        if row.class == OpClass::Region || row.purity == Purity::Effect {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True for the body of a loop of several products: schedules overlap what stands between them.
fn multiplies_repeatedly(editor: &KernelEditor<'_>, body: &[Entity]) -> Result<bool, Diagnostic> {
    let mut products = 0;
    for &node in body {
        products += u32::from(editor.op(node)?.is_product());
    }
    Ok(products > 1)
}

/// The trips of the parts of a loop; nothing for a loop of one tile.
fn trips(
    arena: &mut ExprArena,
    geometry: &Geometry,
    axis: Dim,
    (visible, plain): (TileSpan, TileSpan),
) -> Result<Option<[Trip; 4]>, ExprError> {
    let entry = geometry.dim(axis);
    let tile = arena.int(i64::from(entry.tiling.unwrap_or(1)));
    let (whole, total) = (arena.floor_div(entry.size, tile)?, arena.ceil_div(entry.size, tile)?);
    if arena.range(total).at_most(1) {
        return Ok(None);
    }
    let (start, end) = entry.iterations.unwrap_or((Expr::ZERO, total));
    let first = match visible.from {
        Some(from) => limited(arena, from, (start, end))?,
        None => start,
    };
    let last = match visible.end {
        Some(visible) => limited(arena, visible, (first, end))?,
        None => end,
    };
    let end = arena.min(last, whole)?;
    let plain_first = match plain.from {
        Some(from) => limited(arena, from, (first, end))?,
        None => first,
    };
    let end = plain.end.map_or(Ok(end), |plain| arena.min(plain, end))?;
    let plain_end = arena.max(end, plain_first)?;
    let whole_end = if whole == total { last } else { limited(arena, whole, (plain_end, last))? };
    let ends = [first, plain_first, plain_end, whole_end, last];
    Ok(Some(std::array::from_fn(|part| Trip { start: ends[part], end: ends[part + 1] })))
}

/// The number between two others that is nearest to one; the lower one where there is none.
fn limited(arena: &mut ExprArena, number: Expr, (low, high): (Expr, Expr)) -> Result<Expr, ExprError> {
    let limited = arena.min(number, high)?;
    arena.max(limited, low)
}
