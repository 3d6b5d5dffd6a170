//! Layouts of values as such: how a tile that no matrix instruction reaches is spread over lanes and waves
//! (lanes access consecutive bytes, and a tile with fewer elements than a wave has lanes is held by several
//! lanes at once), and how a value with fewer dimensions is.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::codegen::target::LANES;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, Layout, LayoutError, Mode, Source};
use crate::ir::node::{Dims, Op, Operands, Origin, ValueType};
use crate::ir::types::DType;
use crate::passes::facts::Geometry;

/// What layouts are decided by, of each node.
pub(super) type LayoutNodes<'w, 's> =
    Query<'w, 's, (&'static Op, &'static Operands, &'static ValueType, &'static Origin)>;

/// Widest memory instruction, in bytes.
pub(crate) const MAX_ACCESS_BYTES: u32 = 16;

/// The most elements of so many bytes that one instruction accesses. Those of 16 bits are updated in pairs.
pub(crate) fn most_elements(op: Op, bytes: u32) -> u32 {
    let most = if op.updates() { 4 } else { MAX_ACCESS_BYTES };
    (most / bytes).max(1)
}

/// Modes of the wave digits of a value with dimensions `dims`.
pub(crate) fn wave_modes(geometry: &Geometry, dims: &[Dim]) -> impl Iterator<Item = Mode> {
    let dims: Dims = Dims::from_slice(dims);
    (0..3u32).filter(|&axis| geometry.waves[axis as usize] > 1).map(move |axis| {
        let (dim, stride) = match geometry.wave_dim(axis) {
            Some(divided) => match geometry.walked(&dims, divided) {
                Some(dim) => (Some(dim), geometry.dim(dim).wave.unwrap_or(1)),
                None => (None, 0),
            },
            None => (None, 0),
        };
        Mode { source: Source::Wave, extent: geometry.waves[axis as usize], dim, stride }
    })
}

/// The layout of values that no matrix instruction reaches: a wave tile spread so that lanes access
/// consecutive bytes.
pub(super) fn element_layout(
    geometry: &Geometry,
    dims: &[Dim],
    dtype: Option<DType>,
    names: &DimTable,
) -> Result<Layout, Diagnostic> {
    let tile = wave_tile(geometry, dims, names)?;
    let lanes = spread(&tile, widest(dtype), LANES).map_err(|error| {
        let shape: Vec<_> = tile.iter().map(|t| format!("{}={}", names.name(t.0), t.1)).collect();
        let text = format!("a wave tile of {} cannot be spread over {LANES} lanes", shape.join(" "));
        let fault = Diagnostic::invalid(text)
            .note(error.to_string(), None)
            .help("use tiles whose product is a multiple of 64, in powers of two");
        tile.iter().fold(fault, |fault, t| fault.about(geometry.dim(t.0).symbol))
    })?;
    let modes = lanes.modes().iter().copied().chain(wave_modes(geometry, dims));
    Layout::new(modes).map_err(too_large)
}

/// Elements along each of `dims` that a wave has.
fn wave_tile(geometry: &Geometry, dims: &[Dim], names: &DimTable) -> Result<WaveTile, Diagnostic> {
    let mut tile = WaveTile::new();
    for &dim in dims {
        let Some(extent) = geometry.dim(dim).wave_extent() else {
            let name = names.name(dim);
            return Err(Diagnostic::invalid(format!("the dynamic dimension {name} is not tiled"))
                .help(format!("add workgroup({name}, ..) or tile({name}, ..)")));
        };
        tile.push((dim, extent));
    }
    Ok(tile)
}

/// True for a dimension whose part in a tile is its size, because no constraint names it.
fn is_open(geometry: &Geometry, dim: Dim) -> bool {
    let dim = geometry.dim(dim);
    dim.workgroup.is_none() && dim.tiling.is_none() && dim.wave.is_none()
}

/// True if a value has dimensions besides `folded` whose sizes would change how [`element_layout`] spreads
/// it.
pub(super) fn keeps_open_dims(geometry: &Geometry, dims: &[Dim], folded: Dim) -> bool {
    dims.iter().any(|&dim| dim != folded && is_open(geometry, dim))
}

/// Elements of a dimension in front of the innermost one that a lane folds before it leaves some to others.
const COLUMN: u64 = 32;

/// The layout of a value that no matrix instruction reaches, and that is folded along `folded`: as
/// [`element_layout`], but dimensions that are kept and have no tile get the lanes that the others leave
/// over. So the place of an element among those that it is folded with does not depend on their sizes, and
/// neither does the result.
pub(super) fn folded_layout(
    geometry: &Geometry,
    dims: &[Dim],
    folded: Dim,
    dtype: Option<DType>,
    names: &DimTable,
) -> Result<Layout, Diagnostic> {
    if !keeps_open_dims(geometry, dims, folded) {
        return element_layout(geometry, dims, dtype, names);
    }
    let tile = wave_tile(geometry, dims, names)?;
    let (open, fixed): (WaveTile, WaveTile) =
        tile.iter().copied().partition(|(dim, _)| *dim != folded && is_open(geometry, *dim));
    let inner_is_open = open.last() == tile.last();
    let count: u64 = fixed.iter().map(|&(_, extent)| u64::from(extent)).product();
    // Powers of two that divide the tile.
    let width = match fixed.last() {
        Some(&(_, extent)) if !inner_is_open => 1 << extent.trailing_zeros().min(widest(dtype).ilog2()),
        _ => 1,
    };
    let chunks = count / u64::from(width);
    let most = if inner_is_open { (chunks / COLUMN).max(1).next_power_of_two() } else { chunks };
    let lanes = 1 << chunks.trailing_zeros().min(LANES.ilog2()).min(most.ilog2());
    let own = Layout::distribute(&fixed, width, lanes, 1).map_err(too_large)?;
    let others = spread(&open, if inner_is_open { widest(dtype) } else { 1 }, LANES / lanes);
    let others = others.map_err(too_large)?;
    let (first, second) = if inner_is_open { (&others, &own) } else { (&own, &others) };
    let modes = first.modes().iter().chain(second.modes()).copied();
    Layout::new(modes.chain(wave_modes(geometry, dims))).map_err(too_large)
}

/// Elements along dimensions that a wave has, outermost dimension first.
type WaveTile = SmallVec<[(Dim, u32); 4]>;

/// Elements of the widest access.
fn widest(dtype: Option<DType>) -> u32 {
    MAX_ACCESS_BYTES / dtype.map_or(4, DType::bytes)
}

/// A tile over lanes, in as wide accesses as give every lane some. If there are fewer elements than lanes,
/// several lanes hold the same ones.
fn spread(tile: &[(Dim, u32)], widest: u32, all: u32) -> Result<Layout, LayoutError> {
    let widths = (0..=widest.ilog2()).rev().map(|power| 1 << power);
    let mut found = Err(LayoutError::ZeroExtent);
    for width in widths.clone() {
        found = Layout::distribute(tile, width, all, 1);
        if found.is_ok() {
            return found;
        }
    }
    let count: u64 = tile.iter().map(|&(_, extent)| u64::from(extent)).product();
    if count >= u64::from(all) {
        return found;
    }
    for lanes in (0..all.ilog2()).rev().map(|power| 1 << power) {
        if let Ok(few) = Layout::distribute(tile, 1, lanes, 1) {
            let copies = Mode::broadcast(Source::Lane, all / lanes);
            return Layout::new(few.modes().iter().copied().chain([copies]));
        }
    }
    found
}

pub(in crate::passes) fn too_large(error: LayoutError) -> Diagnostic {
    Diagnostic::invalid(format!("a tile is too large: {error}")).help("use smaller tiles")
}

/// The layout of a value with fewer dimensions. Lanes and waves still count the digits for which they hold
/// copies; registers and replicas hold one copy.
pub(in crate::passes) fn projected(layout: &Layout, dims: &[Dim]) -> Result<Layout, Diagnostic> {
    let layout = layout.project(dims);
    let spread = |mode: &Mode| mode.dim.is_some() || matches!(mode.source, Source::Lane | Source::Wave);
    Layout::new(layout.modes().iter().copied().filter(spread)).map_err(too_large)
}
