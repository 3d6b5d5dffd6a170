//! The hot loops over lanes, compiled twice: for the baseline of the host's architecture and, on x86-64, for
//! AVX2 with FMA.
//!
//! Both give the same bits. Measured: the loop of a 16x16x16 f16 matrix instruction takes 600 ns with SSE2
//! and 200 ns with AVX2 and FMA; an f32 fused multiply-add of 64 lanes is three times as fast (without FMA it
//! is a library call per lane). That pays for the `unsafe` in this file, the only one in the simulator:
//! calling a function that needs CPU features, right after the test that the CPU has them.

use crate::codegen::isa::{Calc, Condition, Element, Meaning};

use super::super::error::Stopped;
use super::super::program::Step;
use super::super::wave::{LANES, VectorRow, Wave};
use super::compare::{self, Writes};
use super::extent;
use super::fast::{self, Fast};
use super::multiply::{self, Arithmetic, BlockTile, Sparse};
use super::widen::{self, SourceFormat};
use super::{moves, packed, valu};

macro_rules! twice {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?
        = $narrow:path, $wide:path;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub(super) fn $name($($argument: $type),*) $(-> $result)? {
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the features were tested in the line before; the function does nothing else
                    // that is unsafe.
                    #[allow(unsafe_code)]
                    return unsafe { avx2::$name($($argument),*) };
                }
                narrow::$name($($argument),*)
            }
        )*

        /// Functions of their own: their frames are large.
        mod narrow {
            use super::*;

            $(
                #[inline(never)]
                pub(super) fn $name($($argument: $type),*) $(-> $result)? {
                    $narrow($($argument),*)
                }
            )*
        }

        #[cfg(target_arch = "x86_64")]
        mod avx2 {
            use super::*;

            $(
                #[target_feature(enable = "avx2,fma")]
                pub(super) fn $name($($argument: $type),*) $(-> $result)? {
                    $wide($($argument),*)
                }
            )*
        }
    };
}

twice! {
    /// See [`multiply::accumulate`].
    accumulate(m: usize, arithmetic: Arithmetic, tile: &BlockTile, a: &[VectorRow], b: &[VectorRow], d: &mut [VectorRow])
        = multiply::accumulate::<false>, multiply::accumulate::<true>;
    /// See [`multiply::accumulate_sparse`].
    accumulate_sparse(m: usize, arithmetic: Arithmetic, sparse: &Sparse<'_>, b: &[VectorRow], d: &mut [VectorRow])
        = multiply::accumulate_sparse::<false>, multiply::accumulate_sparse::<true>;
    /// See [`multiply::accumulate_scaled`].
    accumulate_scaled(m: usize, scales: &[[f64; LANES]; 2], a: &[VectorRow], b: &[VectorRow], d: &mut [VectorRow])
        = multiply::accumulate_scaled, multiply::accumulate_scaled;
    /// See [`widen::widen`].
    widen(format: SourceFormat, source: &[VectorRow], wide: &mut [VectorRow]) = widen::widen, widen::widen;
    /// See [`fast::vector`].
    fast(w: &mut Wave, s: &Step, fast: Fast) = fast::vector, fast::vector;
    /// See [`vector::calculate`](super::vector::calculate).
    float32(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> = valu::float32, valu::float32;
    /// See [`vector::calculate`](super::vector::calculate).
    float16(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> = valu::float16, valu::float16;
    /// See [`vector::calculate`](super::vector::calculate).
    float64(w: &mut Wave, s: &Step, calc: Calc) -> Result<(), Stopped> = valu::float64, valu::float64;
    /// See [`vector::calculate`](super::vector::calculate).
    wide(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> = valu::wide, valu::wide;
    /// See [`vector::calculate`](super::vector::calculate).
    short(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped>
        = valu::short, valu::short;
    /// See [`vector::calculate`](super::vector::calculate).
    integer(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped>
        = valu::integer, valu::integer;
    /// See [`compare::compare`].
    compare(w: &mut Wave, s: &Step, condition: Condition, element: Element, writes: Writes) -> Result<(), Stopped>
        = compare::compare, compare::compare;
    /// See [`moves::execute`].
    moves(w: &mut Wave, s: &Step, meaning: Meaning) -> Result<(), Stopped> = moves::execute, moves::execute;
    /// See [`packed::packed`].
    packed(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped>
        = packed::packed, packed::packed;
    /// See [`extent::extent`].
    extent(address: &[u64; LANES], bytes: &[u16; LANES], lanes: u64) -> (u64, u64)
        = extent::extent, extent::extent;
    /// See [`extent::joints`].
    joints(address: &[u64; LANES], bytes: &[u16; LANES]) -> [u64; 2] = extent::joints, extent::joints;
    /// See [`extent::range`].
    range(address: &[u64; LANES]) -> (u64, u64, u64) = extent::range, extent::range;
    /// See [`extent::highest`].
    highest(address: &VectorRow) -> (u32, u32) = extent::highest, extent::highest;
}
