//! How kernels over two dimensions that fold or scan one of them spread both.

use groundswell::prelude::*;
use rand::Rng;
use rand::rngs::StdRng;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Tile {
    /// Of a workgroup.
    Workgroup(i64),
    /// Of a loop.
    Loop(i64),
    /// The workgroup has the whole dimension.
    Whole,
}

/// Sizes of M and N, and the parts that workgroups, iterations and waves have of them.
#[derive(Clone, Debug)]
pub struct Spread {
    pub sizes: [i64; 2],
    pub tiles: [Tile; 2],
    pub waves: [Option<i64>; 2],
    /// The dimension that is folded or scanned.
    pub along: usize,
}

impl Spread {
    /// A random one that a kernel can have; each `waves`th dimension is split among waves.
    pub fn random(rng: &mut StdRng, along: usize, waves: u32) -> Spread {
        let sizes = [rng.random_range(1..80), rng.random_range(1..300)];
        let mut spread = Spread { sizes, tiles: [Tile::Whole; 2], waves: [None; 2], along };
        for at in 0..2 {
            let elements = 1 << rng.random_range(0..if at == 0 { 7 } else { 8 });
            spread.tiles[at] = match rng.random_range(0..3) {
                0 => Tile::Whole,
                _ if at == along => Tile::Loop(elements),
                _ => Tile::Workgroup(elements),
            };
            if rng.random_range(0..waves) == 0 {
                // A workgroup has at most sixteen.
                let most = if spread.waves == [None; 2] { 4 } else { 2 };
                let waves = 1 << rng.random_range(0..most);
                let of = match spread.tiles[at] {
                    Tile::Whole => (spread.sizes[at] as u64).next_power_of_two() as i64,
                    Tile::Workgroup(elements) | Tile::Loop(elements) => elements,
                };
                spread.waves[at] = Some((of / waves).max(1));
            }
        }
        spread
    }

    /// One whose workgroups have 4 x 64 elements, but all of the dimension `along`.
    pub fn whole(along: usize) -> Spread {
        let mut tiles = [Tile::Workgroup(4), Tile::Workgroup(64)];
        tiles[along] = Tile::Whole;
        Spread { sizes: [12, 100], tiles, waves: [None; 2], along }
    }

    pub fn distribute(&self, w: &Tracer) {
        for (at, dim) in symbols(["M", "N"]).into_iter().enumerate() {
            match self.tiles[at] {
                Tile::Workgroup(elements) => w.distribute([workgroup(dim, elements, at as u32)]),
                Tile::Loop(elements) => w.distribute([tile(dim, elements)]),
                Tile::Whole => {}
            }
            if let Some(elements) = self.waves[at] {
                w.distribute([wave(dim, elements)]);
            }
        }
    }

    /// Whether iterations of a loop share the dimension.
    pub fn is_looped(&self) -> bool {
        matches!(self.tiles[self.along], Tile::Loop(_))
    }

    pub fn size(&self, symbol: Symbol) -> Option<i64> {
        ["M", "N"].iter().position(|&name| name == symbol.name()).map(|at| self.sizes[at])
    }

    pub fn shape(&self) -> [usize; 2] {
        self.sizes.map(|size| size as usize)
    }
}

/// What an integer dtype keeps of a result.
pub fn wrapped(dtype: DType, x: f64) -> f64 {
    match dtype {
        I8 => f64::from(x as i64 as i8),
        I32 => f64::from((x as i128) as i32),
        _ => x,
    }
}
