//! The inner loops of matrix instructions with 32-bit results. Layout and numerics: see
//! [`mfma`](super::mfma).

use super::super::wave::{LANES, VectorRow};

/// How a product is added.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Arithmetic {
    /// f32 whose products are exact: fused or not is the same.
    ExactProduct,
    /// f32, fused.
    Fused,
    /// i32 from sources that are 8-bit integers held as f32.
    Integer(OverflowMode),
}

/// The effect of results that are too large (FP16_OVFL of the MODE register).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum OverflowMode {
    /// Floats become infinite, integers wrap.
    Usual,
    /// The largest number of that sign.
    Clamped,
}

/// Blocks of an instruction and the block of A that they use: `block_mask` clears the low bits of the block's
/// number, which become `block`.
pub(super) struct BlockTile {
    pub blocks: usize,
    pub block_mask: usize,
    pub block: usize,
}

const FITS: &str = "the slice has the length of the array";

/// `d + a * b`, with one rounding or with two.
#[inline(always)]
fn add_product<const FUSED: bool>(d: f32, a: f32, b: f32) -> f32 {
    if FUSED { a.mul_add(b, d) } else { d + a * b }
}

/// Adds the product to `d`; `R` rows of the result at a time stay in registers. References to arrays, not
/// slices, let the compiler see that.
#[inline(always)]
fn tiles<const FUSED: bool, const M: usize, const R: usize>(
    tile: &BlockTile,
    a: &[VectorRow],
    b: &[VectorRow],
    d: &mut [VectorRow],
) {
    let groups = LANES / M;
    for block in 0..tile.blocks {
        let a_block = block & !tile.block_mask | tile.block;
        for i in (0..M).step_by(R) {
            let four = (block * M + i) / 4;
            let (register, lane) = (four / groups * 4 + i % 4, four % groups * M);
            let rows: &mut [VectorRow; R] = (&mut d[register..register + R]).try_into().expect(FITS);
            let mut sums = [[0.0f32; M]; R];
            for r in 0..R {
                let row: &[u32; M] = rows[r][lane..lane + M].try_into().expect(FITS);
                for j in 0..M {
                    sums[r][j] = f32::from_bits(row[j]);
                }
            }
            let mut group = 0;
            while group < groups {
                let (a_lane, b_lane) = ((group + a_block) * M + i, (group + block) * M);
                for (a, b) in a.iter().zip(b) {
                    let a: &[u32; R] = a[a_lane..a_lane + R].try_into().expect(FITS);
                    let b: &[u32; M] = b[b_lane..b_lane + M].try_into().expect(FITS);
                    for r in 0..R {
                        let value = f32::from_bits(a[r]);
                        for j in 0..M {
                            sums[r][j] = add_product::<FUSED>(sums[r][j], value, f32::from_bits(b[j]));
                        }
                    }
                }
                group += tile.blocks;
            }
            for r in 0..R {
                let row: &mut [u32; M] = (&mut rows[r][lane..lane + M]).try_into().expect(FITS);
                for j in 0..M {
                    row[j] = sums[r][j].to_bits();
                }
            }
        }
    }
}

/// `R16` and `R32`: how many rows of the result of these shapes fit into the vector registers (eight
/// accumulators).
#[inline(always)]
fn shapes<const FUSED: bool, const R16: usize, const R32: usize>(
    m: usize,
    tile: &BlockTile,
    a: &[VectorRow],
    b: &[VectorRow],
    d: &mut [VectorRow],
) {
    match m {
        32 => tiles::<FUSED, 32, R32>(tile, a, b, d),
        16 => tiles::<FUSED, 16, R16>(tile, a, b, d),
        _ => tiles::<FUSED, 4, 4>(tile, a, b, d),
    }
}

/// Products are exact, so this does what is cheaper on the host.
#[inline(always)]
fn accumulate_exact<const WIDE: bool>(
    m: usize,
    tile: &BlockTile,
    a: &[VectorRow],
    b: &[VectorRow],
    d: &mut [VectorRow],
) {
    if WIDE { shapes::<true, 4, 2>(m, tile, a, b, d) } else { shapes::<false, 2, 1>(m, tile, a, b, d) }
}

/// Adds A * B to D: `a` and `b` hold element e of every lane in row e, `d` the result registers. `WIDE` says
/// that the code is compiled for vectors of eight with fused multiply-add.
#[inline(always)]
pub(super) fn accumulate<const WIDE: bool>(
    m: usize,
    arithmetic: Arithmetic,
    tile: &BlockTile,
    a: &[VectorRow],
    b: &[VectorRow],
    d: &mut [VectorRow],
) {
    match arithmetic {
        Arithmetic::ExactProduct => accumulate_exact::<WIDE>(m, tile, a, b, d),
        Arithmetic::Fused if WIDE => shapes::<true, 4, 2>(m, tile, a, b, d),
        Arithmetic::Fused => shapes::<true, 2, 1>(m, tile, a, b, d),
        Arithmetic::Integer(overflow) => {
            integers(overflow, d, |sums| accumulate_exact::<WIDE>(m, tile, a, b, sums));
        }
    }
}

/// The most result registers of an instruction.
const RESULTS: usize = 32;

/// Adds to the integers in `d` what `accumulate` adds to zeros as f32: the sums of one instruction are at
/// most 2^21, so f32 holds them exactly. Called at one place only, so that `accumulate` becomes part of the
/// caller and has its CPU features.
#[inline(always)]
fn integers(overflow: OverflowMode, d: &mut [VectorRow], accumulate: impl FnOnce(&mut [VectorRow])) {
    let mut sums = [[0; LANES]; RESULTS];
    let sums = &mut sums[..d.len()];
    accumulate(sums);
    const SHIFT: f32 = 12_582_912.0;
    for (row, sums) in d.iter_mut().zip(sums) {
        for l in 0..LANES {
            let sum = (f32::from_bits(sums[l]) + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits());
            row[l] = match overflow {
                OverflowMode::Usual => row[l].wrapping_add(sum),
                OverflowMode::Clamped => (row[l] as i32).saturating_add(sum as i32) as u32,
            };
        }
    }
}

/// Which lanes and register hold row `i` of the result of an instruction of one block.
#[inline(always)]
fn place(m: usize, i: usize) -> (usize, usize) {
    let groups = LANES / m;
    (i / 4 / groups * 4 + i % 4, i / 4 % groups * m)
}

/// A sparse A: of every four elements in a row of k, the two that are stored.
pub(super) struct Sparse<'a> {
    /// Stored elements.
    pub a: &'a [VectorRow],
    /// Two bits for each stored element of a lane: which of the four it is.
    pub index: &'a VectorRow,
    /// Stored elements of a lane before k jumps to the lane group's next part.
    pub part: usize,
}

/// Adds A * B to D for a sparse A; lanes of A choose rows of B.
#[inline(always)]
pub(super) fn accumulate_sparse<const WIDE: bool>(
    m: usize,
    arithmetic: Arithmetic,
    sparse: &Sparse<'_>,
    b: &[VectorRow],
    d: &mut [VectorRow],
) {
    match arithmetic {
        Arithmetic::ExactProduct => sparse_exact::<WIDE>(m, sparse, b, d),
        Arithmetic::Fused if m == 32 => sparse_rows::<true, 32>(sparse, b, d),
        Arithmetic::Fused => sparse_rows::<true, 16>(sparse, b, d),
        Arithmetic::Integer(overflow) => {
            integers(overflow, d, |sums| sparse_exact::<WIDE>(m, sparse, b, sums));
        }
    }
}

/// Products are exact, so this does what is cheaper on the host.
#[inline(always)]
fn sparse_exact<const WIDE: bool>(m: usize, sparse: &Sparse<'_>, b: &[VectorRow], d: &mut [VectorRow]) {
    match (WIDE, m) {
        (true, 32) => sparse_rows::<true, 32>(sparse, b, d),
        (true, _) => sparse_rows::<true, 16>(sparse, b, d),
        (false, 32) => sparse_rows::<false, 32>(sparse, b, d),
        (false, _) => sparse_rows::<false, 16>(sparse, b, d),
    }
}

#[inline(always)]
fn sparse_rows<const FUSED: bool, const M: usize>(sparse: &Sparse<'_>, b: &[VectorRow], d: &mut [VectorRow]) {
    for i in 0..M {
        let (register, lane) = place(M, i);
        let row: &mut [u32; M] = (&mut d[register][lane..lane + M]).try_into().expect(FITS);
        let mut sums = row.map(f32::from_bits);
        for first in (0..sparse.a.len()).step_by(sparse.part) {
            for group in (0..LANES).step_by(M) {
                let index = sparse.index[group + i];
                for e in first..first + sparse.part {
                    let value = f32::from_bits(sparse.a[e][group + i]);
                    let which = (index >> (2 * e) & 3) as usize;
                    let b: &[u32; M] = b[e / 2 * 4 + which][group..group + M].try_into().expect(FITS);
                    for j in 0..M {
                        sums[j] = add_product::<FUSED>(sums[j], value, f32::from_bits(b[j]));
                    }
                }
            }
        }
        *row = sums.map(f32::to_bits);
    }
}

/// Adds A * B to D with a power of two for each lane of A and of B. Products are exact in f32 and, scaled, in
/// f64; the sum in f64 is exact wherever it matters for rounding to f32, as a product has 8 bits.
#[inline(always)]
pub(super) fn accumulate_scaled(
    m: usize,
    scales: &[[f64; LANES]; 2],
    a: &[VectorRow],
    b: &[VectorRow],
    d: &mut [VectorRow],
) {
    match m {
        32 => scaled_rows::<32>(scales, a, b, d),
        _ => scaled_rows::<16>(scales, a, b, d),
    }
}

#[inline(always)]
fn scaled_rows<const M: usize>(
    scales: &[[f64; LANES]; 2],
    a: &[VectorRow],
    b: &[VectorRow],
    d: &mut [VectorRow],
) {
    for i in 0..M {
        let (register, lane) = place(M, i);
        let row: &mut [u32; M] = (&mut d[register][lane..lane + M]).try_into().expect(FITS);
        let mut sums = row.map(f32::from_bits);
        for group in (0..LANES).step_by(M) {
            let scale: [f64; M] = std::array::from_fn(|j| scales[0][group + i] * scales[1][group + j]);
            for (a, b) in a.iter().zip(b) {
                let value = f32::from_bits(a[group + i]);
                let b: &[u32; M] = b[group..group + M].try_into().expect(FITS);
                for j in 0..M {
                    let product = f64::from(value * f32::from_bits(b[j])) * scale[j];
                    sums[j] = (f64::from(sums[j]) + product) as f32;
                }
            }
        }
        *row = sums.map(f32::to_bits);
    }
}
