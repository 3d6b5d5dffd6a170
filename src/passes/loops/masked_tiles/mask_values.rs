//! Values without dimensions that masks compare places with: a symbol is set to each of them where it is
//! made, and limits of tiles depend on that as they do on sizes.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::tile_spans::{LoopTiles, SpanFinder};
use super::value_symbols::ValueSymbols;
use super::{is_pure, multiplies_repeatedly};
use crate::ir::constraint::SCALARS_OF_ITERATIONS;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::node::{Name, *};
use crate::passes::PassResult;
use crate::passes::analysis::bind_symbols::bug;
use crate::passes::facts::{Expressions, Geometry};
use crate::passes::kernel_editor::KernelEditor;

/// Sets symbols to the values on which the tiles of masks depend.
pub(super) fn set_mask_values(editor: &mut KernelEditor<'_>) -> PassResult {
    let values = values_of_masks(editor)?;
    if values.is_empty() {
        return Ok(());
    }
    let symbols = free_names(editor, values.len())?;
    for &symbol in &symbols {
        let arena = &mut editor.kernel_mut::<Expressions>()?.0;
        arena.assume_range(symbol, SCALARS_OF_ITERATIONS).map_err(|e| bug(&e))?;
    }
    editor.rewrite(|editor, node| {
        if let Some(number) = values.iter().position(|&value| value == node) {
            editor.put_down();
            editor.add(Op::SetSymbol(symbols[number]), &[node], ValueType::unknown(), ());
        }
        Ok(())
    })?;
    editor.kernel_mut::<Geometry>()?.mask_values = symbols;
    Ok(())
}

/// The values on which the tiles of masks depend.
fn values_of_masks(editor: &mut KernelEditor<'_>) -> Result<SmallVec<[Entity; 2]>, Diagnostic> {
    let mut values = ValueSymbols::Asked(SmallVec::new());
    for region in editor.regions() {
        let Some(&Op::Iterate(axis)) = editor.get::<Op>(region) else { continue };
        let geometry = editor.kernel::<Geometry>()?;
        let (Some(tile), size) = (geometry.loop_tile(axis), geometry.dim(axis).size) else { continue };
        let body = editor.body(region);
        let is_one_tile = editor.kernel::<Expressions>()?.0.range(size).at_most(i64::from(tile));
        if is_one_tile || !(is_pure(editor, &body)? || multiplies_repeatedly(editor, &body)?) {
            continue;
        }
        for &mask in &body {
            if editor.op(mask)? != Op::Select {
                continue;
            }
            let condition = editor.node(mask)?.operand(0)?;
            let before = values.count();
            let tiles = LoopTiles { axis, tile, body: &body };
            let is_known = editor.with_expressions(|editor, arena| {
                let read = |node: Entity| editor.node(node);
                let geometry = editor.kernel::<Geometry>()?;
                SpanFinder::new(&read, (geometry, arena), tiles, &mut values).condition(condition)
            })??;
            if is_known.is_none() {
                values.forget(before);
            }
        }
    }
    match values {
        ValueSymbols::Asked(values) => Ok(values),
        ValueSymbols::Set(_) => Ok(SmallVec::new()),
    }
}

/// Names of symbols that nothing in the kernel has.
fn free_names(editor: &KernelEditor<'_>, count: usize) -> Result<Vec<Symbol>, Diagnostic> {
    let geometry = editor.kernel::<Geometry>()?;
    let mut taken = geometry.dynamic.clone();
    taken.extend(geometry.dims.values().map(|dim| dim.symbol));
    for node in editor.nodes() {
        if let Op::SetSymbol(symbol) = editor.op(node)? {
            taken.push(symbol);
        }
        taken.extend(editor.get::<Name>(node).map(|name| Symbol::new(&name.0)));
    }
    let names = (0..).map(|number| Symbol::new(&format!("mask_value_{number}")));
    Ok(names.filter(|name| !taken.contains(name)).take(count).collect())
}
