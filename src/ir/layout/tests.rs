//! The layout algebra against plain enumeration.
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const M: Dim = Dim(0);
const N: Dim = Dim(1);
const K: Dim = Dim(2);

/// Coordinates over the three dimensions the tests use.
fn held(layout: &Layout, place: Place) -> [u32; 3] {
    [M, N, K].map(|dim| layout.coordinate(dim, place))
}

/// The coordinate by definition: digits of each source in order, stride times digit.
fn by_definition(layout: &Layout, dim: Dim, place: Place) -> u32 {
    let sources = [
        (Source::Register, place.register),
        (Source::Replica, place.replica),
        (Source::Lane, place.lane),
        (Source::Wave, place.wave),
    ];
    let mut sum = 0;
    for (source, index) in sources {
        let mut weight = 1;
        for mode in layout.modes().iter().filter(|mode| mode.source == source) {
            if mode.dim == Some(dim) {
                sum += index / weight % mode.extent * mode.stride;
            }
            weight *= mode.extent;
        }
    }
    sum
}

fn modes() -> impl Strategy<Value = Vec<Mode>> {
    let mode = (0usize..4, 1u32..=4, proptest::option::weighted(0.85, 0u8..3), 0u32..=6).prop_map(
        |(source, extent, dim, stride)| Mode {
            source: Source::ALL[source],
            extent,
            dim: dim.map(Dim),
            stride,
        },
    );
    proptest::collection::vec(mode, 0..6)
}

/// Modes whose strides nest, as those of real layouts do.
fn dense() -> impl Strategy<Value = Layout> {
    proptest::collection::vec((0usize..4, 1u32..=4, 0u8..3), 0..6).prop_map(|digits| {
        let mut strides = [1u32; 3];
        let modes = digits.into_iter().map(|(source, extent, dim)| {
            let stride = strides[dim as usize];
            strides[dim as usize] *= extent;
            Mode::new(Source::ALL[source], extent, Dim(dim), stride)
        });
        Layout::new(modes).expect("small")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn queries_agree_with_enumeration(modes in modes(), tile in [1u32..6, 1u32..6, 1u32..6]) {
        let layout = Layout::new(modes).expect("small");
        let mut holders: BTreeMap<[u32; 3], u32> = BTreeMap::new();
        for place in layout.places() {
            for dim in [M, N, K] {
                prop_assert_eq!(layout.coordinate(dim, place), by_definition(&layout, dim, place));
            }
            *holders.entry(held(&layout, place)).or_default() += 1;
        }
        prop_assert_eq!(layout.is_injective(), holders.values().all(|count| *count == 1));
        for (at, dim) in [M, N, K].into_iter().enumerate() {
            let greatest = holders.keys().map(|element| element[at]).max().unwrap_or(0);
            prop_assert_eq!(layout.tile_extent(dim), greatest + 1);
        }
        let all = (0..tile[0]).flat_map(|m| (0..tile[1]).flat_map(move |n| (0..tile[2]).map(move |k| [m, n, k])));
        let covered = all.into_iter().all(|element| holders.contains_key(&element));
        prop_assert_eq!(layout.covers(&[(M, tile[0]), (N, tile[1]), (K, tile[2])]), covered);
    }

    #[test]
    fn canonical_form_is_the_same_function_and_decides_equivalence(modes in modes(), more in modes()) {
        let layout = Layout::new(modes).expect("small");
        let canonical = layout.canonical();
        for source in Source::ALL {
            prop_assert_eq!(layout.extent(source), canonical.extent(source));
        }
        prop_assert!(layout.places().all(|place| held(&layout, place) == held(&canonical, place)));
        prop_assert_eq!(canonical.canonical(), canonical.clone());
        let other = Layout::new(more).expect("small");
        let same = Source::ALL.iter().all(|source| layout.extent(*source) == other.extent(*source))
            && layout.places().all(|place| held(&layout, place) == held(&other, place));
        prop_assert_eq!(layout.equivalent(&other), same);
    }

    #[test]
    fn splitting_a_digit_changes_nothing(layout in dense(), which in 0usize..6, inner in 1u32..=4) {
        let mut modes = layout.modes().to_vec();
        if which < modes.len() && modes[which].extent.is_multiple_of(inner) {
            let mode = modes[which];
            modes[which].extent = inner;
            let outer = Mode { extent: mode.extent / inner, stride: mode.stride * inner, ..mode };
            modes.insert(which + 1, outer);
        }
        prop_assert!(Layout::new(modes).expect("small").equivalent(&layout));
    }

    #[test]
    fn contiguous_runs_are_as_long_as_enumeration_finds(layout in dense()) {
        let at = |register| held(&layout, Place { register, ..Place::default() });
        let registers = layout.extent(Source::Register);
        for dim in [M, N, K] {
            let advances = |register: u32| {
                let mut next = at(register - 1);
                next[dim.0 as usize] += 1;
                at(register) == next
            };
            let run = 1 + (1..registers).take_while(|register| advances(*register)).count() as u32;
            prop_assert_eq!(layout.contiguous_run(dim), run);
            prop_assert!((0..registers).all(|register| register % run == 0 || advances(register)));
        }
    }

    #[test]
    fn blocks_of_lanes_hold_every_element_once(
        logs in [0u32..=7, 0u32..=7], elements in 0u32..=4, block in [0u32..=6, 0u32..=6], waves in 0u32..=2
    ) {
        let tile = [(M, 1 << logs[0]), (N, 1 << logs[1])];
        let workers = [64, 1 << waves];
        let block = [(N, 1 << block[0]), (M, 1 << block[1])];
        let plain = Layout::distribute(&tile, 1 << elements, workers[0], workers[1]);
        let blocks = Layout::distribute_in_blocks(&tile, 1 << elements, workers, &block);
        prop_assert_eq!(plain.is_ok(), blocks.is_ok());
        let Ok(layout) = blocks else { return Ok(()) };
        let mut seen = BTreeSet::new();
        for wave in 0..workers[1] {
            for lane in 0..workers[0] {
                for replica in 0..layout.extent(Source::Replica) {
                    for register in 0..layout.extent(Source::Register) {
                        let place = Place { register, replica, lane, wave };
                        prop_assert!(seen.insert(held(&layout, place)), "held twice");
                    }
                }
            }
        }
        prop_assert_eq!(seen.len(), 1 << (logs[0] + logs[1]));
        // The first lanes are side by side along the block's first dimension.
        let first = block[0].1.min(tile[1].1 >> elements);
        for lane in 0..first {
            prop_assert_eq!(held(&layout, Place { lane, ..Place::default() }), [0, lane << elements, 0]);
        }
    }

    #[test]
    fn lanes_hold_parts_of_several_rows(
        logs in [0u32..=7, 0u32..=7], each in [0u32..=4, 0u32..=2], waves in 0u32..=2
    ) {
        let tile = [(M, 1 << logs[0]), (N, 1 << logs[1])];
        let workers = [64, 1 << waves];
        let rows = (M, 1 << each[1]);
        let block = [(N, 8), (M, 4)];
        let found = Layout::distribute_rows_in_blocks(&tile, (1 << each[0], rows), workers, &block);
        let fits = each[0] <= logs[1] && each[1] <= logs[0];
        prop_assert_eq!(found.is_ok(), fits && each[0] + each[1] + 6 + waves <= logs[0] + logs[1]);
        let Ok(layout) = found else { return Ok(()) };
        prop_assert!(layout.is_injective() && layout.covers(&tile));
        prop_assert!(layout.contiguous_run(N) >= 1 << each[0]);
        // The same elements in the same lanes, a row of them after the other.
        let turned = layout.with_registers_along(M).expect("as small");
        prop_assert!(turned.holds_registers_of(&layout));
        if each[1] > 0 {
            prop_assert!(turned.contiguous_run(M) >= 1 << each[1]);
        }
        let all = |layout: &Layout, lane: u32, wave: u32| -> BTreeSet<_> {
            let registers = 0..layout.extent(Source::Register);
            let places = registers.flat_map(|register| {
                let replicas = 0..layout.extent(Source::Replica);
                replicas.map(move |replica| Place { register, replica, lane, wave })
            });
            places.map(|place| held(layout, place)).collect()
        };
        for (lane, wave) in [(0, 0), (1, 0), (37, workers[1] - 1)] {
            prop_assert_eq!(all(&layout, lane, wave), all(&turned, lane, wave));
        }
    }

    #[test]
    fn composition_puts_inner_tiles_side_by_side(outer in dense(), inner in dense(), third in dense()) {
        let product = outer.compose(&inner).expect("small");
        let extents = Source::ALL.map(|source| inner.extent(source));
        let split = |place: Place| {
            let index = [place.register, place.replica, place.lane, place.wave];
            let part = |at: usize, low: bool| if low { index[at] % extents[at] } else { index[at] / extents[at] };
            [true, false].map(|low| Place {
                register: part(0, low),
                replica: part(1, low),
                lane: part(2, low),
                wave: part(3, low),
            })
        };
        for place in product.places().take(2000) {
            let [low, high] = split(place);
            let expected = [M, N, K].map(|dim| {
                outer.coordinate(dim, high) * inner.tile_extent(dim) + inner.coordinate(dim, low)
            });
            prop_assert_eq!(held(&product, place), expected);
        }
        let left = product.compose(&third);
        let right = inner.compose(&third).and_then(|rest| outer.compose(&rest));
        prop_assert_eq!(left, right);
        prop_assert!(product.is_injective());
        let tile = [M, N, K].map(|dim| (dim, product.tile_extent(dim)));
        prop_assert!(product.covers(&tile));
    }

    #[test]
    fn projection_forgets_the_other_dimensions(layout in dense()) {
        let projected = layout.project(&[M, K]);
        for place in layout.places() {
            let [m, _, k] = held(&layout, place);
            prop_assert_eq!(held(&projected, place), [m, 0, k]);
        }
        let moved = |source| layout.of_source(source).any(|mode| mode.extent > 1 && mode.dim == Some(N));
        prop_assert!(Source::ALL.into_iter().all(|source| projected.is_replicated(source) == moved(source)));
    }

    #[test]
    fn distribution_holds_every_element_once_and_in_row_major_order_or_says_why_not(
        extents in [1u32..=12, 1u32..=12, 1u32..=24],
        vector in 1u32..=8,
        lanes in 1u32..=16,
        waves in 1u32..=4,
    ) {
        let tile = [(M, extents[0]), (N, extents[1]), (K, extents[2])];
        let chunks = extents.iter().product::<u32>() / vector;
        match Layout::distribute(&tile, vector, lanes, waves) {
            Ok(layout) => {
                let elements: BTreeSet<[u32; 3]> = layout.places().map(|place| held(&layout, place)).collect();
                prop_assert_eq!(elements.len() as u32, extents.iter().product::<u32>());
                prop_assert!(layout.covers(&tile) && layout.is_injective());
                let counts = [Source::Register, Source::Lane, Source::Wave].map(|source| layout.extent(source));
                prop_assert_eq!(counts, [vector, lanes, waves]);
                prop_assert!(layout.contiguous_run(K) >= vector);
            }
            Err(LayoutError::VectorDoesNotDivide { .. }) => prop_assert!(!extents[2].is_multiple_of(vector)),
            Err(LayoutError::TooFewChunks { .. }) => prop_assert!(chunks < lanes * waves),
            Err(LayoutError::WorkersDoNotDivide { .. }) => prop_assert!(!chunks.is_multiple_of(lanes * waves)),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn distribution_with_copies_holds_every_element_as_often_as_every_other(
        extents in [1u32..=12, 1u32..=12, 1u32..=24],
        vector in 1u32..=8,
        lanes in 1u32..=16,
        waves in 1u32..=4,
    ) {
        let tile = [(M, extents[0]), (N, extents[1]), (K, extents[2])];
        match Layout::distribute_copies(&tile, vector, lanes, waves) {
            Ok(layout) => {
                let mut times = BTreeMap::new();
                for place in layout.places() {
                    *times.entry(held(&layout, place)).or_insert(0u32) += 1;
                }
                prop_assert_eq!(times.len() as u32, extents.iter().product::<u32>());
                let first = times.values().next();
                prop_assert!(times.values().all(|count| Some(count) == first));
                let counts = [Source::Register, Source::Lane, Source::Wave].map(|source| layout.extent(source));
                prop_assert_eq!(counts, [vector, lanes, waves]);
                let whole = Layout::distribute(&tile, vector, lanes, waves);
                prop_assert!(whole.is_err() || whole == Ok(layout));
            }
            Err(error) => {
                prop_assert!(!extents[2].is_multiple_of(vector), "{}", error);
            }
        }
    }
}

#[test]
fn distribution_of_a_gemm_tile_walks_rows() {
    // 128 x 32 halves, 8 to a thread: 4 threads a row, 16 rows a wave, 64 rows for 4 waves, twice.
    let layout = Layout::distribute(&[(M, 128), (K, 32)], 8, 64, 4).unwrap();
    let place = |lane, wave, replica, register| held(&layout, Place { register, replica, lane, wave });
    assert_eq!(place(0, 0, 0, 7), [0, 0, 7]);
    assert_eq!(place(3, 0, 0, 0), [0, 0, 24]);
    assert_eq!(place(4, 0, 0, 0), [1, 0, 0]);
    assert_eq!(place(63, 1, 0, 1), [31, 0, 25]);
    assert_eq!(place(0, 0, 1, 0), [64, 0, 0]);
    assert_eq!(
        layout.to_string(),
        "register: d2*8:1; replica: d0*2:64; lane: d2*4:8, d0*16:1; wave: d0*4:16"
    );
    assert_eq!(
        Layout::distribute(&[(M, 16), (K, 32)], 8, 64, 4),
        Err(LayoutError::TooFewChunks { chunks: 64, threads: 256 })
    );
    let error = Layout::distribute(&[(M, 41), (K, 16)], 8, 64, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "64 workers (lanes) do not spread evenly over the tile: 32 is left over and does not divide extent 41 (dimension 0)"
    );
}

#[test]
fn task_mappings_compose_as_in_the_literature() {
    // spatial(2, 1) * repeat(1, 2) * spatial(1, 2) over a 2 x 4 tile: each worker's tasks in order.
    let outer = Layout::spatial(Source::Lane, &[(M, 2), (N, 1)]).unwrap();
    let middle = Layout::repeat(&[(M, 1), (N, 2)]).unwrap();
    let inner = Layout::spatial(Source::Lane, &[(M, 1), (N, 2)]).unwrap();
    let mapping = outer.compose(&middle).and_then(|rest| rest.compose(&inner)).unwrap();
    let tasks = |lane| {
        [0, 1].map(|replica| {
            let place = Place { lane, replica, ..Place::default() };
            (mapping.coordinate(M, place), mapping.coordinate(N, place))
        })
    };
    assert_eq!(tasks(0), [(0, 0), (0, 2)]);
    assert_eq!(tasks(1), [(0, 1), (0, 3)]);
    assert_eq!(tasks(3), [(1, 1), (1, 3)]);
    // Cyclic and blocked orders differ.
    let two = Layout::repeat(&[(M, 2), (N, 1)]).unwrap();
    let four = Layout::spatial(Source::Lane, &[(M, 2), (N, 2)]).unwrap();
    assert!(!two.compose(&four).unwrap().equivalent(&four.compose(&two).unwrap()));
}

#[test]
fn impossible_layouts_are_refused() {
    let huge = [Mode::new(Source::Lane, 1 << 16, M, 1), Mode::new(Source::Lane, 1 << 16, N, 1)];
    assert_eq!(Layout::new(huge), Err(LayoutError::TooLarge));
    assert_eq!(Layout::new([Mode::new(Source::Lane, 4, M, u32::MAX / 2)]), Err(LayoutError::TooLarge));
    assert_eq!(Layout::new([Mode::broadcast(Source::Lane, 0)]), Err(LayoutError::ZeroExtent));
    assert_eq!(Layout::repeat(&[(M, 2), (M, 2)]), Err(LayoutError::DuplicateDim(M)));
    assert_eq!(Layout::distribute(&[(M, 0)], 1, 1, 1), Err(LayoutError::ZeroExtent));
    let strides_two_and_three = [Mode::new(Source::Lane, 3, M, 2), Mode::new(Source::Wave, 2, M, 3)];
    assert!(Layout::new(strides_two_and_three).unwrap().is_injective());
}
