//! What lanes load so that a transposing read of LDS gives them their elements.
//!
//! Sixteen lanes load rows of sixteen elements together, each lane a part of one row, and lane `l` gets the
//! elements of column `l`, those of the first row in front (CDNA4 ISA guide, "LDS transpose loads"). So of
//! what a lane is to hold the first digit of its registers counts rows and the first of its lanes columns,
//! and what it loads has parts of these exchanged.
//!
//! A read keeps the `Placement` of its value; what its lanes load is `Layout::before_transposing`, which
//! `arrange_lds` and lowering take in its place. Its lanes load four or eight neighbouring rows, and others
//! the same a power of two further on, for which `for_transposing` in `arrange_lds` has swizzles of wider
//! units. Replicas are side by side along rows, so a swizzle takes an address register for each unit; where
//! both factors are turned, lanes take k in runs of one read (`MmaSource::run`), so that all rows are
//! neighbours and padding keeps them apart with one register.
use super::{Dim, Layout, Mode, Source};
use smallvec::SmallVec;

/// Lanes that transpose among themselves, and elements of a row that they load.
const GROUP: u32 = 16;

/// What elements lie along that share units, and what the units lie along: bytes of two, or several words of
/// more.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnitDims {
    /// The dimension of the elements.
    pub elements: Dim,
    /// That of the units.
    pub units: Dim,
    /// That of the words of a unit, if it has several.
    pub words: Option<Dim>,
}

/// Elements of a unit, and words.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnitSize {
    /// Elements that share it.
    pub elements: u32,
    /// 1 where units are bytes.
    pub words: u32,
}

impl UnitSize {
    /// The words that so many elements fill, which are a part of a unit; none if they share one with others.
    fn words_of(self, elements: u32) -> Option<u32> {
        let words = elements * self.words;
        (self.elements.is_multiple_of(elements) && words.is_multiple_of(self.elements))
            .then(|| words / self.elements)
    }
}

impl Layout {
    /// The layout of the elements of which this is the layout of the units: those of a unit are side by side
    /// in a lane. None if a lane does not hold all words of a unit, in their order.
    pub(crate) fn in_elements(&self, dims: UnitDims, size: UnitSize) -> Option<Layout> {
        let is_word = |mode: &Mode| mode.dim.is_some() && mode.dim == dims.words;
        if let Some(words) = dims.words {
            let first = self.of_source(Source::Register).next()?;
            let is_whole = *first == Mode::new(Source::Register, size.words, words, 1);
            if !is_whole || self.modes().iter().filter(|mode| is_word(mode)).count() > 1 {
                return None;
            }
        }
        let of_element = |mode: &Mode| match mode.dim == Some(dims.units) {
            true => Mode { dim: Some(dims.elements), stride: mode.stride * size.elements, ..*mode },
            false => *mode,
        };
        let within = Mode::new(Source::Register, size.elements, dims.elements, 1);
        let others = self.modes().iter().filter(|mode| !is_word(mode)).map(of_element);
        Layout::new([within].into_iter().chain(others)).ok()
    }

    /// The layout of the units of which this is the layout of the elements. None if a lane does not hold
    /// whole ones, or whole words of them.
    pub(crate) fn in_units(&self, dims: UnitDims, size: UnitSize) -> Option<Layout> {
        let canonical = self.canonical();
        let mut modes: SmallVec<[Mode; 16]> = SmallVec::new();
        let first = canonical.of_source(Source::Register).next()?;
        if first.dim != Some(dims.elements) || first.stride != 1 {
            return None;
        }
        for mode in canonical.modes() {
            if mode.dim != Some(dims.elements) {
                modes.push(*mode);
                continue;
            }
            let (apart, units) = (mode.stride, Some(dims.units));
            if apart.is_multiple_of(size.elements) {
                modes.push(Mode { stride: apart / size.elements, dim: units, ..*mode });
                continue;
            }
            // As far as the digit stays inside of a unit it counts words, and beyond that units.
            let within = mode.extent.min(size.elements / apart).max(1);
            let words = match mode == first {
                true => Mode { extent: size.words_of(within)?, ..*mode },
                false => Mode { extent: within, stride: size.words_of(apart)?, ..*mode },
            };
            if !mode.extent.is_multiple_of(within) || dims.words.is_none() && words.extent > 1 {
                return None;
            }
            modes.push(Mode { dim: dims.words, ..words });
            modes.push(Mode { extent: mode.extent / within, stride: 1, dim: units, ..*mode });
        }
        modes.retain(|mode| mode.extent > 1);
        Layout::new(modes).ok()
    }

    /// The places along `dim` of what it has there, if `together` elements are followed by room for others up
    /// to `apart`. None if a digit counts some of several such groups.
    pub(crate) fn spaced(&self, dim: Dim, [together, apart]: [u32; 2]) -> Option<Layout> {
        let spaced = |mode: &Mode| {
            if mode.dim != Some(dim) {
                return Some(*mode);
            }
            match mode.stride.is_multiple_of(together) {
                true => Some(Mode { stride: (mode.stride / together).checked_mul(apart)?, ..*mode }),
                false => ((mode.extent - 1).checked_mul(mode.stride)? < together).then_some(*mode),
            }
        };
        let modes: Option<SmallVec<[Mode; 12]>> = self.modes().iter().map(spaced).collect();
        Layout::new(modes?).ok()
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
        let held = UnitDims { elements: Dim(2), units: K, words: None };
        let stored = UnitDims { elements: M, units: Dim(3), words: None };
        let size = UnitSize { elements: 2, words: 1 };
        let elements = layout.in_elements(held, size).expect("bytes of two");
        let loaded = elements.before_transposing(GROUP, M).expect("a factor of a matrix instruction");
        let units = loaded.in_units(stored, size).expect("bytes of two");
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

    /// The same of 6-bit floats, of which a lane loads half a unit, in three words.
    fn holds_words(mma: Mma) {
        let (units, six) = (Dim(3), Dim(4));
        let size = UnitSize { elements: 32, words: 6 };
        let held = UnitDims { elements: Dim(2), units: K, words: Some(six) };
        let stored = UnitDims { elements: M, units, words: Some(six) };
        let words = Mode::new(Source::Register, size.words, six, 1);
        let layout = Layout::new([words].into_iter().chain(mma.a_layout(M, K).modes().iter().copied()));
        let elements = layout.expect("a layout").in_elements(held, size).expect("blocks of 32");
        let loaded = elements.before_transposing(GROUP, M).expect("a factor of a matrix instruction");
        let of_words = loaded.in_units(stored, size).expect("half a block for each lane");
        assert_eq!(of_words.contiguous_run(six), 3, "{mma}");
        for place in of_words.places() {
            // The first element that begins in the word.
            let of_run = place.register % 3;
            let register = place.register / 3 * GROUP + (of_run * 16).div_ceil(3);
            let element = loaded.coordinate(M, Place { register, ..place });
            let unit = of_words.coordinate(units, place);
            let word = of_words.coordinate(six, place);
            assert_eq!(element / 32, unit, "{mma} {place:?}");
            assert_eq!(element % 32, (word * 16).div_ceil(3), "{mma} {place:?}");
            assert_eq!(
                of_words.coordinate(held.elements, place),
                loaded.coordinate(held.elements, Place { register, ..place })
            );
        }
    }

    #[test]
    fn elements_with_room_after_them() {
        let six = Dim(4);
        let layout = |register: Mode| Layout::new([register, Mode::new(Source::Lane, 2, six, 3)]);
        let of_three = layout(Mode::new(Source::Register, 3, six, 1)).expect("a layout");
        let spaced = of_three.spaced(six, [3, 4]).expect("groups of three");
        let places: Vec<u32> = spaced.places().map(|place| spaced.coordinate(six, place)).collect();
        assert_eq!(places, [0, 1, 2, 4, 5, 6]);
        let of_four = layout(Mode::new(Source::Register, 4, six, 1)).expect("a layout");
        assert_eq!(of_four.spaced(six, [3, 4]), None, "one more than a group");
        assert_eq!(of_four.spaced(M, [3, 4]), Some(of_four), "no such dimension");
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
                6 => holds_words(mma),
                _ => assert_eq!(layout.before_transposing(64 / bits, M), None, "{mma}"),
            }
            // Rows are no columns.
            assert_eq!(layout.before_transposing(4, K), None, "{mma}");
        }
    }

    #[test]
    fn units_that_lanes_share_have_no_layout() {
        let pairs = UnitDims { elements: M, units: Dim(3), words: None };
        let size = UnitSize { elements: 2, words: 1 };
        let layout = |registers, lanes: u32| {
            Layout::new([
                Mode::new(Source::Register, registers, M, 1),
                Mode::new(Source::Lane, LANES, M, lanes),
                Mode::new(Source::Replica, 2, K, 1),
            ])
            .expect("a layout")
        };
        let units = layout(4, 4).in_units(pairs, size).expect("whole units");
        assert_eq!(units.in_elements(pairs, size).expect("as before").canonical(), layout(4, 4).canonical());
        assert_eq!(layout(1, 1).in_units(pairs, size), None, "an element for each lane");
        assert_eq!(layout(3, 3).in_units(pairs, size), None, "one and a half units for each lane");
        let words = UnitDims { words: Some(Dim(4)), ..pairs };
        let size = UnitSize { elements: 32, words: 6 };
        assert!(layout(16, 16).in_units(words, size).is_some(), "three words for each lane");
        assert!(layout(64, 64).in_units(words, size).is_some(), "two units for each lane");
        assert_eq!(layout(8, 8).in_units(words, size), None, "one and a half words for each lane");
        assert_eq!(layout(16, 48).in_units(words, size), None, "halves of units that are three apart");
        assert_eq!(layout(4, 4).in_elements(words, size), None, "no words");
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
