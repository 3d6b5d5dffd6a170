//! Building layouts: row-major factors, products, projections.
use super::{Dim, Layout, LayoutError, Mode, Source};
use smallvec::SmallVec;

impl Layout {
    /// The indices of `source` walk the tile in row-major order (the last dimension fastest).
    pub(crate) fn row_major(source: Source, tile: &[(Dim, u32)]) -> Result<Layout, LayoutError> {
        for (at, (dim, _)) in tile.iter().enumerate() {
            if tile[..at].iter().any(|(other, _)| other == dim) {
                return Err(LayoutError::DuplicateDim(*dim));
            }
        }
        Layout::new(tile.iter().rev().map(|(dim, extent)| Mode::new(source, *extent, *dim, 1)))
    }

    /// One element for each worker of `source` (lanes or waves), row major.
    pub fn spatial(source: Source, tile: &[(Dim, u32)]) -> Result<Layout, LayoutError> {
        Layout::row_major(source, tile)
    }

    /// Every worker holds the whole tile, as replicas in row-major order.
    pub fn repeat(tile: &[(Dim, u32)]) -> Result<Layout, LayoutError> {
        Layout::row_major(Source::Replica, tile)
    }

    /// `self` outside, `inner` inside: each element of `self` becomes a tile of `inner`. Inner digits are the
    /// less significant ones, and outer strides count whole inner tiles. Associative, not commutative;
    /// the layout without modes is neutral.
    pub fn compose(&self, inner: &Layout) -> Result<Layout, LayoutError> {
        let mut modes: SmallVec<[Mode; 12]> = inner.modes.clone();
        for mode in &self.modes {
            let scale = mode.dim.map_or(1, |dim| inner.tile_extent(dim));
            let stride = mode.stride.checked_mul(scale).ok_or(LayoutError::TooLarge)?;
            modes.push(Mode { stride, ..*mode });
        }
        Layout::new(modes)
    }

    /// The same with the lanes in groups of `lanes`, which are waves. Nothing if no digit ends, or can be
    /// cut, there.
    pub(crate) fn with_waves(&self, lanes: u32) -> Option<Layout> {
        let mut modes: SmallVec<[Mode; 12]> = SmallVec::new();
        let mut below = 1;
        for mode in &self.modes {
            if mode.source != Source::Lane {
                modes.push(*mode);
                continue;
            }
            let of_lanes = mode.extent.min(lanes / below);
            if !lanes.is_multiple_of(below) || !mode.extent.is_multiple_of(of_lanes) {
                return None;
            }
            let (waves, stride) = (mode.extent / of_lanes, mode.stride.checked_mul(of_lanes)?);
            modes.push(Mode { extent: of_lanes, ..*mode });
            modes.push(Mode { source: Source::Wave, extent: waves, stride, ..*mode });
            below *= of_lanes;
        }
        (below == lanes).then_some(Layout { modes })
    }

    /// The layout of the first wave alone.
    pub(crate) fn of_one_wave(&self) -> Layout {
        Layout { modes: self.modes.iter().filter(|mode| mode.source != Source::Wave).copied().collect() }
    }

    /// The modes of `self`, then those of `more` as they stand: `more` takes the more significant digits.
    pub fn concat(&self, more: &Layout) -> Result<Layout, LayoutError> {
        Layout::new(self.modes.iter().chain(&more.modes).copied())
    }

    /// The layout of `dims` alone: digits that moved another dimension are consumed without effect.
    pub fn project(&self, dims: &[Dim]) -> Layout {
        let kept = |mode: &Mode| mode.dim.is_some_and(|dim| dims.contains(&dim));
        let project =
            |mode: &Mode| if kept(mode) { *mode } else { Mode::broadcast(mode.source, mode.extent) };
        Layout { modes: self.modes.iter().map(project).collect() }
    }

    /// The same layout over other dimensions.
    pub fn rename(&self, mut new: impl FnMut(Dim) -> Dim) -> Layout {
        let rename = |mode: &Mode| Mode { dim: mode.dim.map(&mut new), ..*mode };
        Layout { modes: self.modes.iter().map(rename).collect() }
    }

    /// The same places with the elements along a dimension first in the registers of each lane.
    ///
    /// # Errors
    /// None that a layout can have.
    pub(crate) fn with_registers_along(&self, dim: Dim) -> Result<Layout, LayoutError> {
        let is_first = |mode: &&Mode| mode.source == Source::Register && mode.dim == Some(dim);
        let first = self.modes().iter().filter(is_first);
        let others = self.modes().iter().filter(|mode| !is_first(mode));
        Layout::new(first.chain(others).copied())
    }

    /// The one shortest form of a layout: grouped by source, no digit of extent one, digits that continue
    /// the one before merged into it.
    pub fn canonical(&self) -> Layout {
        let mut modes: SmallVec<[Mode; 12]> = SmallVec::new();
        for source in Source::ALL {
            let first = modes.len();
            for mode in self.of_source(source).filter(|mode| mode.extent > 1) {
                let moves = mode.dim.is_some() && mode.stride != 0;
                let mode = if !moves { Mode::broadcast(source, mode.extent) } else { *mode };
                match modes[first..].last_mut() {
                    Some(last) if continues(last, &mode) => last.extent *= mode.extent,
                    _ => modes.push(mode),
                }
            }
        }
        Layout { modes }
    }

    /// Whether both hold the same element in every place (and have the same places).
    pub(crate) fn equivalent(&self, other: &Layout) -> bool {
        self.canonical() == other.canonical()
    }

    /// Whether both hold the same pieces, which may have other numbers: [`Layout::equivalent`] but for the
    /// order of replicas.
    pub(crate) fn holds_pieces_of(&self, other: &Layout) -> bool {
        self.without_order_of(Source::Replica) == other.without_order_of(Source::Replica)
    }

    /// True if both hold the same elements in the same lanes and pieces, if in other registers.
    pub(crate) fn holds_registers_of(&self, other: &Layout) -> bool {
        self.without_order_of(Source::Register) == other.without_order_of(Source::Register)
    }

    /// The form that all layouts have which differ in the order of the modes of a source.
    fn without_order_of(&self, any: Source) -> Layout {
        let mut layout = self.canonical();
        // Their order among the modes of other sources means nothing.
        layout.modes.sort_by_key(|mode| match mode.source {
            source if source == any => (source, mode.dim, mode.stride),
            source => (source, None, 0),
        });
        layout.canonical()
    }
}

fn continues(last: &Mode, next: &Mode) -> bool {
    last.dim == next.dim && last.stride.checked_mul(last.extent) == Some(next.stride)
}
