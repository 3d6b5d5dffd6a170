//! Dimensions that passes make: they count what holds parts of an author's dimension.

use super::bind_symbols;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Symbol;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::passes::facts::{DimGeometry, Expressions, Geometry};
use crate::passes::kernel_editor::KernelEditor;

/// The dimension of a name and size, made if there is none yet; a wave has `of_wave` of it, or all.
pub(in crate::passes) fn counted_dim(
    editor: &mut KernelEditor<'_>,
    name: &str,
    size: u32,
    of_wave: Option<u32>,
) -> Result<Dim, Diagnostic> {
    let symbol = Symbol::new(name);
    let mut table = editor.kernel_mut::<DimTable>()?;
    if let Some(known) = table.find(symbol) {
        return Ok(known);
    }
    let Some(dim) = table.enter(symbol) else {
        let text = "a kernel has at most 256 dimensions, with those that count the parts of reductions";
        return Err(Diagnostic::new(Kind::Limit, text));
    };
    let count = editor.kernel_mut::<Expressions>()?.0.int(i64::from(size));
    let made = DimGeometry { wave: of_wave, ..DimGeometry::new(symbol, count, Some(size)) };
    editor.kernel_mut::<Geometry>()?.dims.push(made);
    Ok(dim)
}

/// The dimension that counts blocks of `by` elements of another one, made if there is none yet; it is spread
/// as that one is. None if tiles hold parts of blocks, or if it follows another one or is a number.
pub(in crate::passes) fn block_dim(
    editor: &mut KernelEditor<'_>,
    base: Dim,
    by: u32,
) -> Result<Option<Dim>, Diagnostic> {
    let of_base = editor.kernel::<Geometry>()?.dim(base).clone();
    // Packed elements do not lie along numbers and blocks, where a memory declares its units.
    if of_base.symbol.value().is_some() || of_base.scaled_from.is_some() {
        return Ok(None);
    }
    let symbol = of_base.symbol.scaled(by);
    let mut table = editor.kernel_mut::<DimTable>()?;
    if let Some(known) = table.find(symbol) {
        return Ok(Some(known));
    }
    let tiles = [of_base.workgroup.map(|(_, tile)| tile), of_base.tiling, of_base.wave];
    if !tiles.iter().flatten().all(|tile| tile.is_multiple_of(by)) {
        return Ok(None);
    }
    let Some(dim) = table.enter(symbol) else { return Ok(None) };
    let arena = &mut editor.kernel_mut::<Expressions>()?.0;
    let each = arena.int(i64::from(by));
    let size = arena.ceil_div(of_base.size, each).map_err(|error| bind_symbols::bug(&error))?;
    let static_size = of_base.static_size.map(|size| size.div_ceil(by));
    let covered = of_base.covered.map(|elements| elements.div_ceil(by));
    let made = DimGeometry {
        scaled_from: Some((base, by)),
        workgroup: of_base.workgroup.map(|(axis, tile)| (axis, tile / by)),
        tiling: of_base.tiling.map(|tile| tile / by),
        wave: of_base.wave.map(|tile| tile / by),
        covered: covered.filter(|&covered| static_size.is_some_and(|size| covered > size)),
        origin: of_base.origin,
        ..DimGeometry::new(symbol, size, static_size)
    };
    editor.kernel_mut::<Geometry>()?.dims.push(made);
    Ok(Some(dim))
}

/// The name of a dimension of the kernel.
pub(in crate::passes) fn dim_name(editor: &KernelEditor<'_>, dim: Dim) -> Result<&'static str, Diagnostic> {
    Ok(editor.kernel::<DimTable>()?.name(dim))
}
