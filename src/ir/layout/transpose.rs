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

impl Layout {
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
                4 | 6 => {}
                _ => assert_eq!(layout.before_transposing(64 / bits, M), None, "{mma}"),
            }
            // Rows are no columns.
            assert_eq!(layout.before_transposing(4, K), None, "{mma}");
        }
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
