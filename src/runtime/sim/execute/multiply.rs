//! The inner loops of matrix instructions, compiled twice: for the baseline and, on x86-64, for AVX2 with FMA.
//!
//! Both give the same bits. Measured on one 16x16x16 f16 instruction: 650 ns with SSE2, 210 ns with AVX2 and FMA, which is
//! what pays for the `unsafe` in this file, its only one: calling a function that needs CPU features, right behind the
//! test that the CPU has them.

use crate::codegen::isa::Element;

use super::super::wave::{LANES, Row};
use super::mfma::{self, Wide};

/// How a product is added.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Arithmetic {
    /// f32 whose products are exact: fused or not is the same.
    ExactProduct,
    /// f32, fused.
    Fused,
    /// i32, wrapping.
    Integer,
}

/// Blocks of an instruction and which block of A they take: `block_mask` clears the low bits of the block's number, which
/// become `block`.
pub(super) struct Tile {
    pub blocks: usize,
    pub block_mask: usize,
    pub block: usize,
}

trait Accumulate: Copy {
    fn from_bits(bits: u32) -> Self;
    fn to_bits(self) -> u32;
    fn add_product(self, a: Self, b: Self) -> Self;
}

#[derive(Copy, Clone)]
struct Unfused(f32);
#[derive(Copy, Clone)]
struct Fused(f32);
#[derive(Copy, Clone)]
struct Integer(u32);

macro_rules! accumulate {
    ($type:ident, $from:expr, $to:expr, $add:expr) => {
        impl Accumulate for $type {
            #[inline(always)]
            fn from_bits(bits: u32) -> Self {
                $type($from(bits))
            }
            #[inline(always)]
            fn to_bits(self) -> u32 {
                $to(self.0)
            }
            #[inline(always)]
            fn add_product(self, a: Self, b: Self) -> Self {
                $type($add(self.0, a.0, b.0))
            }
        }
    };
}

accumulate!(Unfused, f32::from_bits, f32::to_bits, |d: f32, a: f32, b: f32| d + a * b);
accumulate!(Fused, f32::from_bits, f32::to_bits, |d: f32, a: f32, b: f32| a.mul_add(b, d));
accumulate!(Integer, |v: u32| v, |v: u32| v, |d: u32, a: u32, b: u32| d.wrapping_add(a.wrapping_mul(b)));

/// Adds the product to `d`; `R` rows of the result at a time stay in registers. Layout: see [`mfma`].
#[inline(always)]
fn tiles<T: Accumulate, const M: usize, const R: usize>(tile: &Tile, a: &[Row], b: &[Row], d: &mut [Row]) {
    let groups = LANES / M;
    for block in 0..tile.blocks {
        let a_block = block & !tile.block_mask | tile.block;
        for i in (0..M).step_by(R) {
            let four = (block * M + i) / 4;
            let (register, lane) = (four / groups * 4 + i % 4, four % groups * M);
            let mut sums = [[T::from_bits(0); M]; R];
            for (sums, row) in sums.iter_mut().zip(&d[register..register + R]) {
                for (sum, bits) in sums.iter_mut().zip(&row[lane..lane + M]) {
                    *sum = T::from_bits(*bits);
                }
            }
            for group in (0..groups).step_by(tile.blocks) {
                let (a_lane, b_lane) = ((group + a_block) * M + i, (group + block) * M);
                for (a, b) in a.iter().zip(b) {
                    let (a, b) = (&a[a_lane..a_lane + R], &b[b_lane..b_lane + M]);
                    for r in 0..R {
                        let value = T::from_bits(a[r]);
                        for j in 0..M {
                            sums[r][j] = sums[r][j].add_product(value, T::from_bits(b[j]));
                        }
                    }
                }
            }
            for (sums, row) in sums.iter().zip(&mut d[register..register + R]) {
                for (sum, bits) in sums.iter().zip(&mut row[lane..lane + M]) {
                    *bits = sum.to_bits();
                }
            }
        }
    }
}

/// How many rows of the result fit into the vector registers: eight 256-bit accumulators (or 128-bit ones for the small
/// shapes).
#[inline(always)]
fn shapes<T: Accumulate, const R16: usize, const R32: usize>(
    m: usize,
    tile: &Tile,
    a: &[Row],
    b: &[Row],
    d: &mut [Row],
) {
    match m {
        32 => tiles::<T, 32, R32>(tile, a, b, d),
        16 => tiles::<T, 16, R16>(tile, a, b, d),
        _ => tiles::<T, 4, 4>(tile, a, b, d),
    }
}

/// Adds A * B to D: `a` and `b` hold element e of every lane in row e, `d` the result registers.
pub(super) fn accumulate(m: usize, arithmetic: Arithmetic, tile: &Tile, a: &[Row], b: &[Row], d: &mut [Row]) {
    #[cfg(target_arch = "x86_64")]
    if fast::available() {
        return fast::accumulate(m, arithmetic, tile, a, b, d);
    }
    match arithmetic {
        Arithmetic::ExactProduct => shapes::<Unfused, 2, 1>(m, tile, a, b, d),
        Arithmetic::Fused => shapes::<Fused, 2, 1>(m, tile, a, b, d),
        Arithmetic::Integer => shapes::<Integer, 2, 1>(m, tile, a, b, d),
    }
}

/// Widens a source, see [`mfma::widen`].
pub(super) fn widen(element: Element, source: &[Row], wide: &mut Wide) {
    #[cfg(target_arch = "x86_64")]
    if fast::available() {
        return fast::widen(element, source, wide);
    }
    mfma::widen(element, source, wide);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod fast {
    use super::*;

    #[inline(always)]
    pub fn available() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    #[target_feature(enable = "avx2,fma")]
    fn accumulate_avx2(m: usize, arithmetic: Arithmetic, tile: &Tile, a: &[Row], b: &[Row], d: &mut [Row]) {
        match arithmetic {
            Arithmetic::ExactProduct | Arithmetic::Fused => shapes::<Fused, 4, 2>(m, tile, a, b, d),
            Arithmetic::Integer => shapes::<Integer, 4, 2>(m, tile, a, b, d),
        }
    }

    #[target_feature(enable = "avx2,fma")]
    fn widen_avx2(element: Element, source: &[Row], wide: &mut Wide) {
        mfma::widen(element, source, wide);
    }

    pub fn accumulate(m: usize, arithmetic: Arithmetic, tile: &Tile, a: &[Row], b: &[Row], d: &mut [Row]) {
        assert!(available());
        // SAFETY: the features were tested the line before; the function does nothing else that is unsafe.
        unsafe { accumulate_avx2(m, arithmetic, tile, a, b, d) }
    }

    pub fn widen(element: Element, source: &[Row], wide: &mut Wide) {
        assert!(available());
        // SAFETY: the features were tested the line before; the function does nothing else that is unsafe.
        unsafe { widen_avx2(element, source, wide) }
    }
}
