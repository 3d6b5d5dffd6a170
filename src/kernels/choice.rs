//! The default choices for a matrix product of a given shape: tile, waves and schedule.
//!
//! [`CANDIDATES`] are tiles with the results of time mode for them on MI300X (f16, in clk). Small tiles
//! spread a small product over more compute units, deep ones wait for fewer loads, large ones read less. A
//! shape gets the candidate whose workgroups, distributed over the compute units, end first. Costs follow
//! bytes rather than elements, so the `k` of a candidate is in bytes.

use super::{Tile, Waves};
use crate::prelude::{Schedule, Target};

/// The choices for a shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ShapeChoices {
    pub(super) tile: Tile,
    pub(super) waves: Waves,
    pub(super) schedule: Schedule,
}

/// A way to compute a tile, and its costs.
struct Candidate {
    m: u32,
    n: u32,
    /// Bytes of a row of A that one step takes.
    k_bytes: u32,
    waves: Waves,
    schedule: Schedule,
    /// Workgroups that fit on a compute unit at once.
    resident: u32,
    /// clk before the first step and after the last one.
    ends: u32,
    /// clk of a step of a workgroup that has the compute unit to itself: from its loads to their use.
    alone: u32,
    /// clk of a step of each of several workgroups: the time that the units take.
    full: u32,
}

const fn candidate(
    [m, n, k_bytes]: [u32; 3],
    [waves_m, waves_n]: [u32; 2],
    schedule: Schedule,
    resident: u32,
    [ends, alone, full]: [u32; 3],
) -> Candidate {
    Candidate { m, n, k_bytes, waves: Waves::new(waves_m, waves_n), schedule, resident, ends, alone, full }
}

const CANDIDATES: &[Candidate] = &[
    candidate([16, 16, 256], [1, 1], Schedule::Prefetch, 8, [1158, 1488, 284]),
    candidate([16, 16, 512], [1, 1], Schedule::Prefetch, 3, [916, 2150, 641]),
    candidate([16, 32, 512], [1, 2], Schedule::Prefetch, 2, [900, 2220, 1065]),
    candidate([32, 16, 512], [2, 1], Schedule::Prefetch, 2, [920, 2220, 1080]),
    candidate([32, 32, 256], [2, 2], Schedule::Prefetch, 3, [1700, 1580, 590]),
    candidate([32, 32, 512], [2, 2], Schedule::Prefetch, 1, [1260, 2390, 2640]),
    candidate([32, 64, 256], [2, 4], Schedule::Prefetch, 2, [1900, 1580, 1006]),
    candidate([64, 64, 128], [2, 2], Schedule::Prefetch, 4, [2400, 1322, 635]),
    candidate([64, 64, 256], [2, 4], Schedule::Prefetch, 1, [2200, 1795, 2465]),
    candidate([64, 128, 128], [2, 4], Schedule::Prefetch, 2, [2400, 1455, 1098]),
    candidate([128, 128, 128], [2, 4], Schedule::PingPong, 2, [3066, 2000, 1400]),
    candidate([128, 256, 128], [2, 4], Schedule::PingPong, 1, [4600, 2286, 3018]),
    candidate([256, 256, 128], [2, 4], Schedule::PingPong, 1, [6350, 4384, 4670]),
];

/// The factors of a product.
#[derive(Copy, Clone)]
pub(super) struct Factors {
    /// Bytes of an element.
    pub(super) bytes: u32,
    /// How many of the two are turned on their way into LDS.
    pub(super) turned: u32,
}

/// The choice for `size` (M, N, K) times `batches` of such factors, with matrix instructions of `edge` x
/// `edge`.
pub(super) fn choose(size: [i128; 3], batches: i128, factors: Factors, edge: u32) -> ShapeChoices {
    let Factors { bytes, turned } = factors;
    // For the largest tile there are too few registers with elements of 32 bits, and with bytes that are
    // turned, one by one to 16 rows.
    let largest_fits = if turned > 0 { bytes == 2 } else { bytes < 4 };
    let fits = |c: &&Candidate| {
        let whole = (c.m / c.waves.m).is_multiple_of(edge) && (c.n / c.waves.n).is_multiple_of(edge);
        whole && (largest_fits || c.m * c.n < 256 * 256)
    };
    let [m, n, k] = size.map(|size| size.clamp(1, 1 << 31));
    let compute_units = i128::from(Target::USUAL.compute_units());
    let cost = |c: &Candidate| {
        let [ends, alone, full] = [c.ends, c.alone, c.full].map(i128::from);
        let workgroups = div_ceil(m, c.m.into()) * div_ceil(n, c.n.into()) * batches.clamp(1, 1 << 31);
        let per_unit = div_ceil(workgroups, compute_units);
        let rounds = div_ceil(per_unit, c.resident.into());
        let steps = div_ceil(k * i128::from(bytes), c.k_bytes.into());
        rounds * ends + steps * (rounds * alone).max(per_unit * full)
    };
    // The first of equals: they are ordered by size. Instructions of 16 x 16 and of 32 x 32 fit some.
    let best = CANDIDATES.iter().filter(fits).min_by_key(|c| cost(c)).unwrap_or(&CANDIDATES[0]);
    ShapeChoices {
        tile: Tile { m: best.m, n: best.n, k: best.k_bytes / bytes },
        waves: best.waves,
        schedule: best.schedule.clone(),
    }
}

/// Waves for a tile that the author chose: up to two along each side, as many as cover whole matrix
/// instructions; a large one has up to four along N.
pub(super) fn waves_for(tile: Tile, edge: u32) -> Waves {
    let along = |size: u32, most: u32| if size.is_multiple_of(most * edge) { most } else { 1 };
    match u64::from(tile.m) * u64::from(tile.n) {
        0..0x4000 => Waves::new(along(tile.m, 2), along(tile.n, 2)),
        _ => Waves::new(along(tile.m, 2), along(tile.n, 4)),
    }
}

fn div_ceil(a: i128, b: i128) -> i128 {
    (a + b - 1) / b
}
