//! What lanes load so that a transposing read of LDS gives them their elements.
//!
//! Sixteen lanes load rows of sixteen elements together, each lane a part of one row, and lane `l` gets the
//! elements of column `l`, those of the first row in front (CDNA4 ISA guide, "LDS transpose loads"). So of
//! what a lane is to hold the first digit of its registers counts rows and the first of its lanes columns,
//! and what it loads has parts of these exchanged.
use super::{Dim, Layout, Mode, Source};
use smallvec::SmallVec;

/// Lanes that transpose among themselves, and elements of a row that they load.
const GROUP: u32 = 16;

/// What elements lie along that share units, bytes of two, and what the units lie along.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnitDims {
    /// The dimension of the elements.
    pub elements: Dim,
    /// That of the units.
    pub units: Dim,
}

impl Layout {
    /// The layout of the elements of which this is the layout of the units: those of a unit are side by side
    /// in a lane.
    pub(crate) fn in_elements(&self, dims: UnitDims, of_unit: u32) -> Option<Layout> {
        let of_element = |mode: &Mode| match mode.dim == Some(dims.units) {
            true => Mode { dim: Some(dims.elements), stride: mode.stride * of_unit, ..*mode },
            false => *mode,
        };
        let within = Mode::new(Source::Register, of_unit, dims.elements, 1);
        Layout::new([within].into_iter().chain(self.modes().iter().map(of_element))).ok()
    }

    /// The layout of the units of which this is the layout of the elements. None if a lane does not hold them
    /// whole.
    pub(crate) fn in_units(&self, dims: UnitDims, of_unit: u32) -> Option<Layout> {
        let canonical = self.canonical();
        let along = |mode: &Mode| mode.dim == Some(dims.elements);
        let first = canonical.of_source(Source::Register).next()?;
        let is_whole = along(first) && first.stride == 1 && first.extent.is_multiple_of(of_unit);
        let others = || canonical.modes().iter().filter(|mode| along(mode) && *mode != first);
        if !is_whole || !others().all(|mode| mode.stride.is_multiple_of(of_unit)) {
            return None;
        }
        let of_units = |mode: &Mode| match (along(mode), mode == first) {
            (true, true) => Mode { extent: mode.extent / of_unit, dim: Some(dims.units), ..*mode },
            (true, false) => Mode { stride: mode.stride / of_unit, dim: Some(dims.units), ..*mode },
            (false, _) => *mode,
        };
        let modes = canonical.modes().iter().map(of_units).filter(|mode| mode.extent > 1);
        Layout::new(modes).ok()
    }

    /// The layout in which lanes load what a read gives them in this one that transposes groups of sixteen
    /// lanes with `elements` each; those of a row are side by side along `along`. None if this layout is not
    /// what such a read gives.
    pub(crate) fn before_transposing(&self, elements: u32, along: Dim) -> Option<Layout> {
        let canonical = self.canonical();
        let first = |source| canonical.of_source(source).next();
        let (rows, columns) = (first(Source::Register)?, first(Source::Lane)?);
        let across = rows.dim?;
        let fits = across != along
            && (rows.stride, columns.dim, columns.stride) == (1, Some(along), 1)
            && rows.extent.is_multiple_of(elements)
            && columns.extent.is_multiple_of(GROUP)
            && GROUP.is_multiple_of(elements);
        if !fits {
            return None;
        }
        let registers = [
            Mode::new(Source::Register, elements, along, 1),
            Mode::new(Source::Register, rows.extent / elements, across, elements),
        ];
        let lanes = [
            Mode::new(Source::Lane, GROUP / elements, along, elements),
            Mode::new(Source::Lane, elements, across, 1),
            Mode::new(Source::Lane, columns.extent / GROUP, along, GROUP),
        ];
        let mut modes: SmallVec<[Mode; 12]> = registers.into_iter().chain(lanes).collect();
        for source in Source::ALL {
            let exchanged = matches!(source, Source::Register | Source::Lane);
            modes.extend(canonical.of_source(source).skip(usize::from(exchanged)).copied());
        }
        modes.retain(|mode| mode.extent > 1);
        Layout::new(modes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LANES, Mma, Place};
    use super::*;

    const M: Dim = Dim(0);
    const K: Dim = Dim(1);

    /// A lane's element number `k` is that of the row's lane and number which AMD's guide says.
    fn holds(layout: &Layout, elements: u32) {
        let loaded = layout.before_transposing(elements, M).expect("a factor of a matrix instruction");
        assert_eq!(loaded.contiguous_run(M), elements);
        for place in layout.places() {
            let (group, lane) = (place.lane / 16 * 16, place.lane % 16);
            let k = place.register % elements;
            let from = Place {
                lane: group + k * (16 / elements) + lane / elements,
                register: place.register - k + lane % elements,
                ..place
            };
            assert_eq!(layout.coordinates(place), loaded.coordinates(from), "{place:?}");
        }
    }

    /// A lane's element number `k` of 4 bits is that of lane `k` which has the lane's own number.
    fn holds_units(layout: &Layout) {
        let held = UnitDims { elements: Dim(2), units: K };
        let stored = UnitDims { elements: M, units: Dim(3) };
        let elements = layout.in_elements(held, 2).expect("bytes of two");
        let loaded = elements.before_transposing(GROUP, M).expect("a factor of a matrix instruction");
        let units = loaded.in_units(stored, 2).expect("bytes of two");
        assert_eq!(units.contiguous_run(stored.units), GROUP / 2);
        for place in elements.places() {
            let k = place.register % GROUP;
            let column = place.lane % GROUP;
            let from =
                Place { lane: place.lane - column + k, register: place.register - k + column, ..place };
            assert_eq!(elements.coordinates(place), loaded.coordinates(from), "{place:?}");
            // Two elements share a place of the layouts of units.
            let of_units = |layout: &Layout, own: UnitDims, place: Place| {
                let unit = Place { register: place.register / 2, ..place };
                layout.coordinate(own.units, unit) * 2 + place.register % 2
            };
            assert_eq!(of_units(layout, held, place), elements.coordinate(held.elements, place));
            assert_eq!(of_units(&units, stored, from), loaded.coordinate(M, from));
        }
    }

    #[test]
    fn factors_of_matrix_instructions_are_what_columns_of_rows_are() {
        for mma in Mma::all() {
            let bits = mma.input().bits();
            let layout = mma.a_layout(M, K);
            // Lanes hold too few elements of k, or multiply one by one.
            let is_other = mma.input_elements(0) * bits < 64 || mma.is_of_lanes();
            match bits {
                8 | 16 if !is_other => {
                    holds(&layout, 64 / bits);
                    let waves = Layout::new(
                        [
                            Mode::new(Source::Replica, 4, M, mma.m()),
                            Mode::new(Source::Replica, 2, K, mma.k()),
                            Mode::new(Source::Wave, 2, M, 4 * mma.m()),
                        ]
                        .into_iter()
                        .chain(layout.modes().iter().copied()),
                    );
                    holds(&waves.expect("a layout"), 64 / bits);
                }
                4 => holds_units(&layout),
                6 => {}
                _ => assert_eq!(layout.before_transposing(64 / bits, M), None, "{mma}"),
            }
            // Rows are no columns.
            assert_eq!(layout.before_transposing(4, K), None, "{mma}");
        }
    }

    #[test]
    fn units_that_lanes_share_have_no_layout() {
        let pairs = UnitDims { elements: M, units: Dim(3) };
        let layout = |registers, lanes: u32| {
            Layout::new([
                Mode::new(Source::Register, registers, M, 1),
                Mode::new(Source::Lane, LANES, M, lanes),
                Mode::new(Source::Replica, 2, K, 1),
            ])
            .expect("a layout")
        };
        let units = layout(4, 4).in_units(pairs, 2).expect("whole units");
        assert_eq!(units.in_elements(pairs, 2).expect("as before").canonical(), layout(4, 4).canonical());
        assert_eq!(layout(1, 1).in_units(pairs, 2), None, "an element for each lane");
        assert_eq!(layout(3, 3).in_units(pairs, 2), None, "one and a half units for each lane");
    }

    #[test]
    fn lanes_that_leave_columns_out_have_no_such_read() {
        let layout = |stride| {
            Layout::new([
                Mode::new(Source::Register, 8, K, 1),
                Mode::new(Source::Lane, 16, M, stride),
                Mode::new(Source::Lane, LANES / 16, K, 8),
            ])
        };
        assert!(layout(1).expect("a layout").before_transposing(4, M).is_some());
        assert!(layout(4).expect("a layout").before_transposing(4, M).is_none());
    }
}
