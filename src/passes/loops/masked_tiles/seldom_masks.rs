//! Masks that stand under a branch: a loop of several products asks once per iteration and wave whether its
//! tile is one in which they hide something.
//!
//! A selection gets the tiles in which it selects its first value for every element, and its condition, with
//! arithmetic that nothing else needs, is computed where the selection is made: in the other tiles. Nothing
//! but time depends on that.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::multiplies_repeatedly;
use super::tile_spans::{LoopTiles, SpanFinder, TileSpan};
use super::value_symbols::ValueSymbols;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, ExprArena, ExprError};
use crate::ir::node::*;
use crate::ir::node_map::NodeSet;
use crate::ir::op::OpClass;
use crate::passes::PassResult;
use crate::passes::analysis::bind_symbols::bug;
use crate::passes::facts::{Geometry, OnDemand, Settings, UnmaskedTiles};
use crate::passes::kernel_editor::KernelEditor;
use crate::passes::options::MaskedTiles;

/// The pass itself; see the module. It looks at nodes as they refer to each other, so it takes the whole
/// world.
pub(crate) fn find_seldom_masks(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    if editor.kernel::<Settings>()?.0.requested_masked_tiles() == MaskedTiles::Visit {
        return Ok(());
    }
    let mut values = ValueSymbols::of(&editor)?;
    for region in editor.regions() {
        let Some(&Op::Iterate(axis)) = editor.get::<Op>(region) else { continue };
        let body = editor.body(region);
        if !multiplies_repeatedly(&editor, &body)? {
            continue;
        }
        let Some(tile) = editor.kernel::<Geometry>()?.loop_tile(axis) else { continue };
        let tiles = LoopTiles { axis, tile, body: &body };
        let mut masks: SmallVec<[(Entity, Trip); 2]> = SmallVec::new();
        for &node in &body {
            let of_node = |editor: &mut _, arena: &mut _| unmasked(editor, arena, (node, tiles), &mut values);
            let tiles = editor.with_expressions(of_node)??;
            masks.extend(tiles.map(|tiles| (node, tiles)));
        }
        let on_demand = on_demand(&editor, region, &masks)?;
        for &(mask, tiles) in &masks {
            editor.attach(mask, UnmaskedTiles(tiles));
            let known = &mut editor.kernel_mut::<Geometry>()?.dims[axis].masks.unmasked;
            if !known.contains(&(tiles.start, tiles.end)) {
                known.push((tiles.start, tiles.end));
            }
        }
        on_demand.into_iter().for_each(|node| editor.attach(node, OnDemand));
    }
    Ok(())
}

/// The tiles of a loop in which a node of it selects its first value everywhere, if it is a
/// selection of numbers of 32 bits and if that is known of any tile.
fn unmasked(
    editor: &KernelEditor<'_>,
    arena: &mut ExprArena,
    (node, tiles): (Entity, LoopTiles<'_>),
    values: &mut ValueSymbols,
) -> Result<Option<Trip>, Diagnostic> {
    let selection = editor.node(node)?;
    if *selection.op != Op::Select || selection.ty.dtype.is_none_or(|dtype| dtype.bits() != 32) {
        return Ok(None);
    }
    let geometry = editor.kernel::<Geometry>()?;
    let read = |node: Entity| editor.node(node);
    let mut finder = SpanFinder::new(&read, (geometry, &mut *arena), tiles, values);
    let everywhere = finder.condition(selection.operand(0)?)?.and_then(|spans| spans.everywhere);
    let Some(everywhere) = everywhere else { return Ok(None) };
    let (size, tile) = (geometry.dim(tiles.axis).size, i64::from(tiles.tile));
    between(arena, everywhere, (size, tile)).map(Some).map_err(|e| bug(&e))
}

/// Tiles as numbers, of a dimension of so many elements.
fn between(
    arena: &mut ExprArena,
    TileSpan { from, end }: TileSpan,
    (size, tile): (Expr, i64),
) -> Result<Trip, ExprError> {
    let tile = arena.int(tile);
    let whole = arena.floor_div(size, tile)?;
    let start = from.unwrap_or(Expr::ZERO);
    let end = end.map_or(Ok(whole), |end| arena.min(end, whole))?;
    Ok(Trip { start, end: arena.max(start, end)? })
}

/// The arithmetic in a loop that only conditions of these selections need.
fn on_demand(
    editor: &KernelEditor<'_>,
    region: Entity,
    masks: &[(Entity, Trip)],
) -> Result<Vec<Entity>, Diagnostic> {
    // Values that something else needs, and those that conditions need. Users come after what they use.
    let (mut elsewhere, mut conditions) = (NodeSet::default(), NodeSet::default());
    let yields = editor.get::<Yields>(region).map(|yields| &yields.0[..]).unwrap_or_default();
    yields.iter().for_each(|&value| elsewhere.insert(value));
    let mut found = Vec::new();
    for &node in editor.body(region).iter().rev() {
        let read = editor.node(node)?;
        let is_mask = masks.iter().any(|mask| mask.0 == node);
        let is_condition = conditions.contains(node) && !elsewhere.contains(node);
        for (at, &operand) in read.operands.0.iter().enumerate() {
            let is_asked = if is_mask { at == 0 } else { is_condition };
            if is_asked {
                conditions.insert(operand)
            } else {
                elsewhere.insert(operand)
            };
        }
        let is_arithmetic =
            matches!(*read.op, Op::SelfIndex(_)) || read.op.row().class == OpClass::ElementWise;
        if is_condition && is_arithmetic {
            found.push(node);
        }
    }
    found.reverse();
    Ok(found)
}
