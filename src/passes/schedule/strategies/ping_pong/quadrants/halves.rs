//! Which rows a load straight into LDS brings: those of one half of the waves' tiles, where lanes can stay as
//! they are and waves take other rows.
//!
//! A load whose waves would bring rows of both halves gets another layout together with this schedule,
//! the only one that changes a layout. Authors pick loads from those that there are.

use bevy_ecs::prelude::*;

use crate::ir::layout::{Dim, Layout, Mode, Source};
use crate::ir::node::Placement;
use crate::ir::nodes::{self, Bug};
use crate::passes::facts::Geometry;
use crate::passes::schedule::graph::view::SchedulerView;

/// The layout in which each of the loads at the logical node `load` brings rows along `dim` that belong to
/// one half of the tile of every wave that reads them; none if it has that already, or cannot have it with
/// the same lanes.
pub(super) fn apart(view: SchedulerView, load: Entity, dim: Dim) -> Result<Option<Layout>, Bug> {
    let layout = &nodes::fact::<Placement>(view.world, load, "a load without layout")?.0;
    let geometry = nodes::fact::<Geometry>(view.world, view.root, "a kernel without geometry")?;
    let half = geometry.dim(dim).wave_extent().map_or(0, |extent| extent / 2);
    Ok(with_halves_apart(layout, dim, half))
}

/// The same for halves of so many rows: the waves that would load rows beyond the first half take them with
/// another replica, and in their place those of the first half of the next wave's tile.
fn with_halves_apart(layout: &Layout, dim: Dim, half: u32) -> Option<Layout> {
    let only = |source| {
        let mut modes = layout.of_source(source);
        modes.next().copied().filter(|mode| modes.next().is_none() && mode.dim == Some(dim))
    };
    let (waves, replicas) = (only(Source::Wave)?, only(Source::Replica)?);
    let rows = half.checked_div(waves.stride).filter(|rows| rows * waves.stride == half && *rows > 0)?;
    let is_whole = rows < waves.extent
        && waves.extent.is_multiple_of(rows)
        && replicas.stride == waves.stride * waves.extent
        && replicas.extent.is_multiple_of(2);
    if !is_whole {
        return None;
    }
    let others = layout.modes().iter().filter(|mode| ![Source::Wave, Source::Replica].contains(&mode.source));
    let apart = [
        Mode::new(Source::Wave, rows, dim, waves.stride),
        Mode::new(Source::Replica, 2, dim, half),
        Mode::new(Source::Wave, waves.extent / rows, dim, 2 * half),
        Mode::new(Source::Replica, replicas.extent / 2, dim, 2 * replicas.stride),
    ];
    Layout::new(others.copied().chain(apart).filter(|mode| mode.extent > 1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::layout::{LANES, Place};

    const M: Dim = Dim(0);
    const K: Dim = Dim(1);

    /// Eight waves load 8 rows each at once: 64 of 256.
    #[test]
    fn a_load_brings_rows_of_one_half() {
        let layout = Layout::distribute(&[(M, 256), (K, 64)], 8, LANES, 8).expect("a layout");
        for half in [32, 16, 8] {
            let apart = with_halves_apart(&layout, M, half).expect("waves can take other rows");
            let mut rows: Vec<u32> = Vec::new();
            for replica in 0..4 {
                let places = apart.places().filter(|place| place.replica == replica);
                let own: Vec<u32> = places.map(|place| apart.coordinate(M, place)).collect();
                let halves: Vec<u32> = own.iter().map(|row| row / half % 2).collect();
                assert!(halves.iter().all(|other| *other == halves[0]), "{half}: {own:?}");
                rows.extend(own);
            }
            rows.sort_unstable();
            rows.dedup();
            assert_eq!(rows, (0..256).collect::<Vec<u32>>());
            // A wave fills LDS with rows that follow each other, as before.
            let lanes = |layout: &Layout| {
                (0..LANES)
                    .map(|lane| layout.coordinate(M, Place { lane, ..Place::default() }))
                    .collect::<Vec<u32>>()
            };
            assert_eq!(lanes(&apart), lanes(&layout));
        }
        // All waves load a half as they are; what a wave loads at once is not cut.
        assert_eq!(with_halves_apart(&layout, M, 64), None);
        assert_eq!(with_halves_apart(&layout, M, 4), None);
        assert_eq!(with_halves_apart(&layout, M, 0), None);
    }
}
