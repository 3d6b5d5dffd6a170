//! The inner loops of matrix instructions with 32-bit results. Layout: see [`mfma`](super::mfma).

use super::super::wave::{LANES, Row};

/// How a product is added.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Arithmetic {
    /// f32 whose products are exact: fused or not is the same.
    ExactProduct,
    /// f32, fused.
    Fused,
    /// i32, wrapping, from sources that are integers of 8 bits held as f32.
    Integer,
}

/// Blocks of an instruction and which block of A they take: `block_mask` clears the low bits of the block's number, which
/// become `block`.
pub(super) struct Tile {
    pub blocks: usize,
    pub block_mask: usize,
    pub block: usize,
}

/// `d + a * b`, with one rounding or with two.
#[inline(always)]
fn add_product<const FUSED: bool>(d: f32, a: f32, b: f32) -> f32 {
    if FUSED { a.mul_add(b, d) } else { d + a * b }
}

/// Adds the product to `d`; `R` rows of the result at a time stay in registers. References to arrays, not slices, let the
/// compiler see that.
#[inline(always)]
fn tiles<const FUSED: bool, const M: usize, const R: usize>(
    tile: &Tile,
    a: &[Row],
    b: &[Row],
    d: &mut [Row],
) {
    const FITS: &str = "the slice has the length of the array";
    let groups = LANES / M;
    for block in 0..tile.blocks {
        let a_block = block & !tile.block_mask | tile.block;
        for i in (0..M).step_by(R) {
            let four = (block * M + i) / 4;
            let (register, lane) = (four / groups * 4 + i % 4, four % groups * M);
            let rows: &mut [Row; R] = (&mut d[register..register + R]).try_into().expect(FITS);
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

/// `R16` and `R32`: how many rows of the result of these shapes fit into the vector registers (eight accumulators).
#[inline(always)]
fn shapes<const FUSED: bool, const R16: usize, const R32: usize>(
    m: usize,
    tile: &Tile,
    a: &[Row],
    b: &[Row],
    d: &mut [Row],
) {
    match m {
        32 => tiles::<FUSED, 32, R32>(tile, a, b, d),
        16 => tiles::<FUSED, 16, R16>(tile, a, b, d),
        _ => tiles::<FUSED, 4, 4>(tile, a, b, d),
    }
}

/// Products are exact: what is cheaper on the host.
#[inline(always)]
fn accumulate_exact<const WIDE: bool>(m: usize, tile: &Tile, a: &[Row], b: &[Row], d: &mut [Row]) {
    if WIDE { shapes::<true, 4, 2>(m, tile, a, b, d) } else { shapes::<false, 2, 1>(m, tile, a, b, d) }
}

/// Result registers that an instruction has at most.
const RESULTS: usize = 32;

/// Adds A * B to D: `a` and `b` hold element e of every lane in row e, `d` the result registers. `WIDE` says that the code
/// is compiled for vectors of eight with fused multiply-add.
#[inline(always)]
pub(super) fn accumulate<const WIDE: bool>(
    m: usize,
    arithmetic: Arithmetic,
    tile: &Tile,
    a: &[Row],
    b: &[Row],
    d: &mut [Row],
) {
    match arithmetic {
        Arithmetic::ExactProduct => accumulate_exact::<WIDE>(m, tile, a, b, d),
        Arithmetic::Fused if WIDE => shapes::<true, 4, 2>(m, tile, a, b, d),
        Arithmetic::Fused => shapes::<true, 2, 1>(m, tile, a, b, d),
        Arithmetic::Integer => {
            // The sums of one instruction stay far below 2^22, so f32 holds them exactly.
            let mut sums = [[0; LANES]; RESULTS];
            let sums = &mut sums[..d.len()];
            accumulate_exact::<WIDE>(m, tile, a, b, sums);
            const SHIFT: f32 = 12_582_912.0;
            for (row, sums) in d.iter_mut().zip(sums) {
                for l in 0..LANES {
                    let sum = (f32::from_bits(sums[l]) + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits());
                    row[l] = row[l].wrapping_add(sum);
                }
            }
        }
    }
}
