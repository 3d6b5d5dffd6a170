//! Parts of an LDS buffer that no access has in common.
//!
//! All waves and lanes of one expanded access together touch some coordinates of the buffer along each of its
//! dimensions. Coordinates that one access touches belong together, and so do those of accesses that share
//! any; what is left apart are the buffer's parts. Accesses of different parts never touch the same element,
//! and each element has bytes of its own, however rows are padded and swizzled: so nothing has to order such
//! accesses. Finding the parts takes a few steps for each coordinate that a logical node touches and for each
//! access.
//!
//! Dependences, copies and barriers are judged by whole buffers first. If that forbids a schedule they are
//! judged again by parts, so other schedules cost nothing more and stay as they were, and no part is named
//! anywhere: `multi_buffer_count` in an author's schedule asks for as few copies as parts allow. Waves that
//! do not run in step are told apart as well, because what early waves write and what late ones read may be
//! different rows.

use bevy_ecs::prelude::*;

use super::view::SchedulerView;
use crate::ir::layout::{Dim, Layout, Place, Source};
use crate::ir::mapping::Mapping;
use crate::ir::nodes::Bug;

/// For each of these accesses of an LDS buffer, which are all whose order is in question, the number of the
/// part that it touches: from 0 on, and 0 alone where accesses are made at coordinates that the kernel
/// computes.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn parts_of(view: SchedulerView, buffer: Entity, accesses: &[Entity]) -> Result<Vec<u32>, Bug> {
    parts_with(view, buffer, accesses, None)
}

/// The same if a logical node had another layout.
///
/// # Errors
/// As [`parts_of`].
pub(crate) fn parts_with(
    view: SchedulerView,
    buffer: Entity,
    accesses: &[Entity],
    other: Option<(Entity, &Layout)>,
) -> Result<Vec<u32>, Bug> {
    numbered(view, buffer, accesses, other, &[AccessingWaves::All])
}

/// The same for what each of several groups of waves touches: the accesses of the first group, then those of
/// the next one.
///
/// # Errors
/// As [`parts_of`].
pub(crate) fn parts_of_groups<'w>(
    view: SchedulerView,
    buffer: Entity,
    accesses: &[Entity],
    groups: impl IntoIterator<Item = &'w [u32]>,
) -> Result<Vec<u32>, Bug> {
    let groups: Vec<AccessingWaves> = groups.into_iter().map(AccessingWaves::These).collect();
    numbered(view, buffer, accesses, None, &groups)
}

/// The waves whose accesses are looked at.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum AccessingWaves<'a> {
    All,
    These(&'a [u32]),
}

fn numbered(
    view: SchedulerView,
    buffer: Entity,
    accesses: &[Entity],
    other: Option<(Entity, &Layout)>,
    groups: &[AccessingWaves],
) -> Result<Vec<u32>, Bug> {
    let lds = view.buffer(buffer)?;
    let mut pieces = Vec::with_capacity(groups.len() * accesses.len());
    for &waves in groups {
        for &access in accesses {
            let piece = view.node(access)?.piece(access);
            if view.world.get::<Mapping>(piece.logical).is_some() {
                return Ok(vec![0; groups.len() * accesses.len()]);
            }
            let own = || view.layout(piece.logical);
            let layout = other.filter(|other| other.0 == piece.logical).map(|other| other.1).or_else(own);
            pieces.push(Piece {
                logical: piece.logical,
                replica: piece.replica,
                waves,
                layout: layout.ok_or(Bug::new("an access of LDS without layout"))?,
            });
        }
    }
    Ok(parts(&pieces, lds.dims.iter().copied().zip(lds.extents.iter().copied())))
}

/// The number of each access's part in a tile of these dimensions and extents.
fn parts(pieces: &[Piece], tile: impl Iterator<Item = (Dim, u32)>) -> Vec<u32> {
    let mut keys = vec![0u64; pieces.len()];
    for (dim, extent) in tile {
        // Accesses are apart if they are so along any dimension.
        for (key, own) in keys.iter_mut().zip(along(pieces, dim, extent)) {
            *key = *key * u64::from(extent) + u64::from(own);
        }
    }
    let mut distinct = keys.clone();
    distinct.sort_unstable();
    distinct.dedup();
    keys.iter().map(|key| distinct.partition_point(|known| known < key) as u32).collect()
}

/// An expanded access.
struct Piece<'a> {
    logical: Entity,
    replica: u32,
    waves: AccessingWaves<'a>,
    layout: &'a Layout,
}

/// For each access the least coordinate of its part along one dimension.
fn along(pieces: &[Piece], dim: Dim, extent: u32) -> Vec<u32> {
    // A value may have other dimensions than the buffer that it is read from, as bytes of two 4-bit floats do
    // that a read turns.
    let has_dim = |piece: &Piece| piece.layout.modes().iter().any(|mode| mode.dim == Some(dim));
    if extent > 1 && !pieces.iter().all(has_dim) {
        return vec![0; pieces.len()];
    }
    let mut joined = Joined((0..extent).collect());
    let mut own = Vec::with_capacity(pieces.len());
    // Coordinates of the first replica of a logical node, whose pieces follow each other, and which of the
    // others have been seen.
    let mut first: Option<(&Piece, Vec<u32>, Vec<bool>)> = None;
    for piece in pieces {
        let known = match first.take() {
            Some(known) if (known.0.logical, known.0.waves) == (piece.logical, piece.waves) => known,
            _ => (piece, within(piece, dim), vec![false; extent as usize]),
        };
        let (_, coordinates, seen) = first.insert(known);
        let offset = piece.layout.coordinate(dim, Place { replica: piece.replica, ..Place::default() });
        let least = offset + coordinates.first().copied().unwrap_or(0);
        own.push(least);
        // What leaves the tile is in no part of it.
        if coordinates.last().is_none_or(|last| offset + last >= extent) {
            return vec![0; pieces.len()];
        }
        if !std::mem::replace(&mut seen[offset as usize], true) {
            coordinates.iter().for_each(|&more| joined.join(least, offset + more));
        }
    }
    own.into_iter().map(|coordinate| joined.least(coordinate)).collect()
}

/// The coordinates along a dimension that the waves of a piece, and all lanes and registers, have in the
/// first replica of its layout.
fn within(piece: &Piece, dim: Dim) -> Vec<u32> {
    let layout = piece.layout;
    let (mut coordinates, kept) = match piece.waves {
        AccessingWaves::All => (vec![0], &[Source::Replica][..]),
        AccessingWaves::These(waves) => {
            let of = |&wave| layout.coordinate(dim, Place { wave, ..Place::default() });
            (waves.iter().map(of).collect(), &[Source::Replica, Source::Wave][..])
        }
    };
    coordinates.sort_unstable();
    coordinates.dedup();
    let modes = layout.modes().iter().filter(|mode| mode.dim == Some(dim));
    for mode in modes.filter(|mode| !kept.contains(&mode.source)) {
        let before = coordinates.clone();
        for digit in 1..mode.extent {
            coordinates.extend(before.iter().map(|at| at + digit * mode.stride));
        }
        coordinates.sort_unstable();
        coordinates.dedup();
    }
    coordinates
}

/// Coordinates that belong together: each knows a lesser one, or none.
struct Joined(Vec<u32>);

impl Joined {
    fn least(&mut self, mut coordinate: u32) -> u32 {
        while self.0[coordinate as usize] != coordinate {
            let above = self.0[self.0[coordinate as usize] as usize];
            self.0[coordinate as usize] = above;
            coordinate = above;
        }
        coordinate
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.least(one), self.least(other));
        self.0[one.max(other) as usize] = one.min(other);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ir::layout::Mode;

    const M: Dim = Dim(0);
    const K: Dim = Dim(1);

    /// The elements of a tile of 16 columns that an access touches.
    fn touched(piece: &Piece) -> BTreeSet<(u32, u32)> {
        let is_own = |wave| match piece.waves {
            AccessingWaves::All => true,
            AccessingWaves::These(waves) => waves.contains(&wave),
        };
        let places = piece.layout.places().filter(|place| place.replica == piece.replica);
        places
            .filter(|place| is_own(place.wave))
            .map(|place| (piece.layout.coordinate(M, place), piece.layout.coordinate(K, place)))
            .collect()
    }

    fn pieces<'a>(layout: &'a Layout, waves: AccessingWaves<'a>, number: u32, all: &mut Vec<Piece<'a>>) {
        let logical = Entity::from_raw_u32(number).expect("a small number");
        let replicas = 0..layout.extent(Source::Replica);
        all.extend(replicas.map(|replica| Piece { logical, replica, waves, layout }));
    }

    /// Reads of 16 rows by each of two waves, and loads of `rows` of them, `apart` from each other.
    fn layouts(rows: u32, [first, second]: [u32; 2]) -> [Layout; 2] {
        let reads = Layout::new([
            Mode::new(Source::Lane, 16, M, 1),
            Mode::new(Source::Lane, 4, K, 4),
            Mode::new(Source::Register, 4, K, 1),
            Mode::new(Source::Replica, 4, M, 16),
            Mode::new(Source::Wave, 2, M, 64),
        ]);
        let loads = Layout::new([
            Mode::new(Source::Lane, rows, M, 1),
            Mode::new(Source::Register, 16, K, 1),
            Mode::new(Source::Wave, 2, M, first),
            Mode::new(Source::Replica, 64 / rows, M, second),
        ]);
        [reads.expect("a layout"), loads.expect("a layout")]
    }

    #[test]
    fn accesses_of_different_parts_have_no_element_in_common() {
        let mut counts = Vec::new();
        for (rows, strides) in [(32, [32, 64]), (32, [64, 32]), (16, [64, 16]), (16, [16, 32]), (64, [64, 1])]
        {
            let [reads, loads] = layouts(rows, strides);
            let mut all = Vec::new();
            pieces(&reads, AccessingWaves::All, 1, &mut all);
            pieces(&loads, AccessingWaves::All, 2, &mut all);
            counts.push(count_of_parts(&all));
        }
        // Loads of a wave's half of the rows leave two halves, those of 16 rows of each wave four parts.
        assert_eq!(counts, [1, 2, 4, 2, 1]);
    }

    /// How many parts there are, which have no element in common.
    fn count_of_parts(all: &[Piece]) -> usize {
        let numbers = parts(all, [(M, 128), (K, 16)].into_iter());
        for (one, number) in all.iter().zip(&numbers) {
            for (other, another) in all.iter().zip(&numbers) {
                assert!(number == another || touched(one).is_disjoint(&touched(other)));
            }
        }
        let mut distinct = numbers;
        distinct.sort_unstable();
        distinct.dedup();
        distinct.len()
    }

    /// Loads of 32 rows by each wave join both halves of what a wave reads, but those of one wave do not.
    #[test]
    fn what_a_group_of_waves_touches_is_told_apart() {
        let [reads, loads] = layouts(32, [32, 64]);
        let mut all = Vec::new();
        for waves in [&[0], &[1]].map(|waves| AccessingWaves::These(waves)) {
            pieces(&reads, waves, 1, &mut all);
            pieces(&loads, waves, 2, &mut all);
        }
        assert_eq!(count_of_parts(&all), 4);
    }

    #[test]
    fn columns_are_parts_as_rows_are() {
        let layout = Layout::new([
            Mode::new(Source::Lane, 64, M, 1),
            Mode::new(Source::Replica, 2, M, 64),
            Mode::new(Source::Replica, 4, K, 4),
            Mode::new(Source::Register, 4, K, 1),
        ]);
        let layout = layout.expect("a layout");
        let mut all = Vec::new();
        pieces(&layout, AccessingWaves::All, 1, &mut all);
        assert_eq!(parts(&all, [(M, 128), (K, 16)].into_iter()), [0, 4, 1, 5, 2, 6, 3, 7]);
        // In a tile that does not hold all of them nothing is known.
        assert_eq!(parts(&all, [(M, 100), (K, 8)].into_iter()), [0; 8]);
        // Nor along a dimension that they do not have.
        assert_eq!(parts(&all, [(Dim(2), 128)].into_iter()), [0; 8]);
    }
}
