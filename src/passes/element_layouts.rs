//! Layouts of values as such: how a tile that no matrix instruction reaches is spread over lanes and waves
//! (lanes access consecutive bytes, and a tile with fewer elements than a wave has lanes is held by several
//! lanes at once), and how a value with fewer dimensions is.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::facts::Geometry;
use crate::codegen::target::LANES;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, Layout, LayoutError, Mode, Source};
use crate::ir::node::{Dims, Op, Operands, Origin, ValueType};
use crate::ir::types::DType;

/// What layouts are decided by, of each node.
pub(super) type LayoutNodes<'w, 's> =
    Query<'w, 's, (&'static Op, &'static Operands, &'static ValueType, &'static Origin)>;

/// Widest memory instruction, in bytes.
pub(crate) const MAX_ACCESS_BYTES: u32 = 16;

/// Modes of the wave digits of a value with dimensions `dims`.
pub(crate) fn wave_modes(geometry: &Geometry, dims: &[Dim]) -> impl Iterator<Item = Mode> {
    let dims: Dims = Dims::from_slice(dims);
    (0..3u32).filter(|&axis| geometry.waves[axis as usize] > 1).map(move |axis| {
        let (dim, stride) = match geometry.wave_dim(axis) {
            Some(dim) if dims.contains(&dim) => (Some(dim), geometry.dim(dim).wave.unwrap_or(1)),
            _ => (None, 0),
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
    let mut tile: SmallVec<[(Dim, u32); 4]> = SmallVec::new();
    for &dim in dims {
        let Some(extent) = geometry.dim(dim).wave_extent() else {
            let name = names.name(dim);
            return Err(Diagnostic::invalid(format!("the dynamic dimension {name} is not tiled"))
                .help(format!("add workgroup({name}, ..) or tile({name}, ..)")));
        };
        tile.push((dim, extent));
    }
    let lanes = spread(&tile, dtype).map_err(|error| {
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

/// A tile over the lanes of a wave, in as wide accesses as give every lane some. If there are fewer elements
/// than lanes, several lanes hold the same ones.
fn spread(tile: &[(Dim, u32)], dtype: Option<DType>) -> Result<Layout, LayoutError> {
    let widest = MAX_ACCESS_BYTES / dtype.map_or(4, DType::bytes);
    let widths = (0..=widest.ilog2()).rev().map(|power| 1 << power);
    let mut found = Err(LayoutError::ZeroExtent);
    for width in widths.clone() {
        found = Layout::distribute(tile, width, LANES, 1);
        if found.is_ok() {
            return found;
        }
    }
    let count: u64 = tile.iter().map(|&(_, extent)| u64::from(extent)).product();
    if count >= u64::from(LANES) {
        return found;
    }
    for lanes in (0..LANES.ilog2()).rev().map(|power| 1 << power) {
        if let Ok(few) = Layout::distribute(tile, 1, lanes, 1) {
            let copies = Mode::broadcast(Source::Lane, LANES / lanes);
            return Layout::new(few.modes().iter().copied().chain([copies]));
        }
    }
    found
}

pub(super) fn too_large(error: LayoutError) -> Diagnostic {
    Diagnostic::invalid(format!("a tile is too large: {error}")).help("use smaller tiles")
}

/// The layout of a value with fewer dimensions. Lanes and waves still count the digits for which they hold
/// copies; registers and replicas hold one copy.
pub(super) fn projected(layout: &Layout, dims: &[Dim]) -> Result<Layout, Diagnostic> {
    let layout = layout.project(dims);
    let spread = |mode: &Mode| mode.dim.is_some() || matches!(mode.source, Source::Lane | Source::Wave);
    Layout::new(layout.modes().iter().copied().filter(spread)).map_err(too_large)
}
