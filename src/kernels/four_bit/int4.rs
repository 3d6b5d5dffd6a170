//! The product with integers of 4 bits.
//!
//! A block of 128 elements of a row has 32 halfwords: halfword t holds the elements t, t + 32, t + 64 and
//! t + 96, the first in its lowest bits. So the elements that one shift and one mask give are 32 neighbours,
//! whose sum one product makes, and groups of 32, 64 and 128 have sums of their own, which are multiplied
//! with their scales. An integer below the last bits of 128 (or of 1024 in f16) is that number and itself, so
//! it takes no conversion; a second product takes the excess away, and the group's zero with it. Both are
//! exact in f32 up to the rounding of sums, which are 17 times (or 129 times) those of the elements at most.

use super::parts::{BLOCK, FourBitAxes, FourBitResults};
use crate::prelude::*;

/// The zero of groups that have none of their own: integers are from -8 to 7.
const MIDDLE: i32 = 8;

/// Elements that have a halfword.
const HALFWORD: i64 = 4;

/// Neighbours that one shift and one mask give.
const NEIGHBOURS: i64 = BLOCK / HALFWORD;

/// The zeros of groups.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Zeros {
    /// 8 for all.
    Middle,
    /// In a memory.
    OfGroups,
}

/// What a product with integers is made of.
#[derive(Copy, Clone)]
pub(super) struct Int4Product {
    pub(super) inputs: DType,
    /// Elements of K with one scale: 32, 64 or 128.
    pub(super) group: u32,
    pub(super) zeros: Zeros,
}

impl Int4Product {
    /// The bits of a number, of whose last bits integers take the place.
    fn excess(self) -> i32 {
        if self.inputs == F16 { 0x6400 } else { 0x4300 }
    }

    pub(super) fn trace(self, results: FourBitResults) -> Result<Kernel, Diagnostic> {
        let name = match results {
            FourBitResults::Whole => "int4_gemm",
            FourBitResults::Parts => "int4_gemm_parts",
        };
        let axes @ FourBitAxes { m, n, k, splits, waves, .. } = FourBitAxes::new(results);
        let halfwords = Symbol::new("HALFWORDS");
        Kernel::trace(name, |w| {
            axes.distribute(w);
            w.distribute([tile(halfwords, NEIGHBOURS)]);
            let a = w.memory("a", [m, k], Global, self.inputs);
            let blocks = k.scaled(BLOCK as u32);
            let weights = w.memory("w", [blocks, 4.into(), n, 8.into()], Global, I16);
            let groups = k.scaled(self.group);
            let scales = w.memory("scales", [groups, n], Global, self.inputs);
            let zeros = match self.zeros {
                Zeros::Middle => None,
                Zeros::OfGroups => Some(w.memory("zeros", [groups, n], Global, I8)),
            };
            let nothing = w.register([splits, waves, m, n], F32, 0.0);
            let [sums] = w.iterate(halfwords, [nothing], |w, [sums]| {
                let of_tile = TileOfWeights { product: self, axes, halfwords };
                [of_tile.added(w, (a, weights), (scales, zeros), (nothing, sums))]
            });
            axes.write(w, sums.tag_loop("k_loop"), self.inputs);
        })
    }
}

/// An iteration: a block of each row of weights.
struct TileOfWeights {
    product: Int4Product,
    axes: FourBitAxes,
    halfwords: Symbol,
}

impl TileOfWeights {
    /// The sums with those of the tile. All loads come first, so that they are under way together.
    fn added(
        &self,
        w: &Tracer,
        (a, weights): (MemoryRef, MemoryRef),
        (scales, zeros): (MemoryRef, Option<MemoryRef>),
        (nothing, sums): (Value, Value),
    ) -> Value {
        let TileOfWeights { product, axes, halfwords } = *self;
        let FourBitAxes { m, n, splits, waves, .. } = axes;
        let block = axes.start(BLOCK) + halfwords / NEIGHBOURS;
        let (piece, place) = (halfwords / 8 % 4, halfwords % 8);
        let dims = [splits, waves, n, halfwords];
        let packed = w.read_at(weights, [block, piece, n.into(), place], dims).tag("read_w");
        let rows: [Value; HALFWORD as usize] = std::array::from_fn(|at| {
            let first = axes.start(BLOCK) * BLOCK + halfwords / NEIGHBOURS * BLOCK;
            let place = first + NEIGHBOURS * at as i64 + halfwords % NEIGHBOURS;
            w.read_at(a, [m.into(), place], [splits, waves, m, halfwords]).tag("read_a")
        });
        let group = i64::from(product.group);
        let of_groups: Vec<(Value, Option<Value>)> = (0..BLOCK / group)
            .map(|at| {
                // A tile has one block, and a value along blocks one element.
                let blocks = halfwords.scaled(NEIGHBOURS as u32);
                let place = (axes.start(BLOCK) + blocks) * (BLOCK / group) + at;
                let read = |memory| w.read_at(memory, [place.clone(), n.into()], [splits, waves, n, blocks]);
                let scale = read(scales).tag("read_scales").cast(F32).sum(blocks);
                (scale, zeros.map(|zeros| read(zeros).tag("read_zeros").cast(I16).max(blocks)))
            })
            .collect();
        let mut sums = sums;
        for (number, (scale, zero)) in of_groups.into_iter().enumerate() {
            let taken = self.taken_away(w, zero, dims);
            let mut of_group = nothing;
            let in_group = (group / NEIGHBOURS) as usize;
            for (at, &row) in rows.iter().enumerate().skip(number * in_group).take(in_group) {
                let moved = if at == 0 { packed } else { packed >> (4 * at as i32) };
                let bits = (moved & 15) | product.excess();
                of_group = w.mma(row, bits.bitcast(product.inputs), of_group).tag("mma");
                of_group = w.mma(row, taken, of_group).tag("mma_zeros");
            }
            sums = of_group.fma(scale, sums);
        }
        sums
    }

    /// The number that each element of a group has too much, negative.
    fn taken_away(&self, w: &Tracer, zero: Option<Value>, dims: [Symbol; 4]) -> Value {
        let product = self.product;
        // The sign is the first of 16 bits.
        let negative = product.excess() - 0x8000;
        match zero {
            Some(zero) => (zero | negative).bitcast(product.inputs).broadcast(dims),
            None => w.register(dims, I16, f64::from(negative | MIDDLE)).bitcast(product.inputs),
        }
    }
}
