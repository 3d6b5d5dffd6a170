//! The matrix product of the reference interpreter: plain loops, rows in parallel, every sum in the order of
//! k, over the elements that exist.
//!
//! Elements with scales are multiplied in f64, where they are exact, and each sum is rounded to f32.

use smallvec::SmallVec;

use crate::float8::f8e8m0;
use crate::ir::layout::{Mma, SCALED_BLOCK};
use crate::ir::op::ContractionOp;
use crate::ir::types::DType;
use crate::small_float::code_in;
use crate::workers;

use super::arithmetic::{ArithmeticFault, widened};
use super::tensor::{Data, bits_of, data_of};

/// Extents of one product: lhs is `[batch, m, k]`, rhs `[batch, n, k]`, acc `[batch, m, n]`.
#[derive(Copy, Clone, Debug)]
pub(super) struct Extents {
    pub batch: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Of k, the first so many elements exist and are summed up.
    pub taken: usize,
}

/// The scales of both factors, and how many there are to a row.
pub(super) type FactorScales<'a> = ([&'a Data; 2], usize);

/// The result of a contraction of two factors, the sum that it begins with, and the scales of the factors.
pub(super) fn contracted(
    op: ContractionOp,
    [lhs, rhs, acc]: [&Data; 3],
    scales: Option<FactorScales<'_>>,
    extents: Extents,
) -> Result<Data, ArithmeticFault> {
    match (op, scales) {
        (ContractionOp::Mma(_), _) => multiply_add(lhs, rhs, acc, extents),
        (ContractionOp::ScaledMma(_), Some(([x, y], blocks))) => {
            multiply_add_scaled([(lhs, x), (rhs, y)], acc, extents, blocks)
        }
        (ContractionOp::ScaledMma(_), None) => Err("scaled_mma of factors without scales".to_owned()),
    }
}

/// `acc + lhs . rhs`. f64 multiply and add with one rounding, other floats in f32 (products of narrower
/// floats are exact there), i8 in wrapping i32; the products are added to the accumulator one by one in the
/// order of k.
fn multiply_add(lhs: &Data, rhs: &Data, acc: &Data, extents: Extents) -> Result<Data, ArithmeticFault> {
    let refusal = || {
        let [l, r, a] = [lhs, rhs, acc].map(Data::dtype);
        format!(
            "mma of {l} and {r} into {a}: it multiplies two floats of one dtype, or two 8-bit ones of a chip, into f32, two f64 into f64, or two i8 \
             into i32"
        )
    };
    if lhs.dtype() != rhs.dtype() && !Mma::all().any(|mma| mma.inputs() == [lhs.dtype(), rhs.dtype()]) {
        return Err(refusal());
    }
    let [l, r] = [lhs, rhs].map(widened);
    Ok(match (acc, l, r, lhs, rhs) {
        (Data::F64(acc), _, _, Data::F64(l), Data::F64(r)) => {
            Data::F64(rows(l, r, acc, extents, |acc, x, y| x.mul_add(y, acc)))
        }
        (Data::F32(acc), Some(l), Some(r), ..) => {
            Data::F32(rows(&l, &r, acc, extents, |acc, x, y| acc + x * y))
        }
        (Data::I32(acc), _, _, Data::I8(l), Data::I8(r)) => {
            let [l, r] = [l, r].map(|v| v.iter().map(|&x| i32::from(x)).collect::<Vec<_>>());
            Data::I32(rows(&l, &r, acc, extents, |acc, x, y| acc.wrapping_add(x.wrapping_mul(y))))
        }
        _ => return Err(refusal()),
    })
}

/// `acc + lhs . rhs` of factors with a scale for each block of [`SCALED_BLOCK`] of k, `blocks` to a row: the
/// products of scaled elements are exact in f64, and are added to the accumulator one by one in the order of
/// k, each time with one rounding to f32.
fn multiply_add_scaled(
    [(lhs, lhs_scale), (rhs, rhs_scale)]: [(&Data, &Data); 2],
    acc: &Data,
    extents: Extents,
    blocks: usize,
) -> Result<Data, ArithmeticFault> {
    let scaled = |factor: &Data, scales: &Data| -> Option<Vec<f64>> {
        let (numbers, Data::F8E8M0(scales)) = (widened(factor)?, scales) else { return None };
        let rows = numbers.chunks(extents.k.max(1)).zip(scales.chunks(blocks.max(1)));
        let row = |(row, scales): (&[f32], &[f8e8m0])| {
            let block = |(at, x): (usize, &f32)| {
                scales.get(at / SCALED_BLOCK as usize).map(|scale| f64::from(*x) * scale.to_f64())
            };
            row.iter().enumerate().map(block).collect::<Option<Vec<f64>>>()
        };
        Some(rows.map(row).collect::<Option<Vec<_>>>()?.concat())
    };
    let (Data::F32(sums), Some(l), Some(r)) = (acc, scaled(lhs, lhs_scale), scaled(rhs, rhs_scale)) else {
        let [l, x, r, y, a] = [lhs, lhs_scale, rhs, rhs_scale, acc].map(Data::dtype);
        return Err(format!(
            "scaled_mma of {l} with scales {x} and {r} with scales {y} into {a}: it multiplies 8-bit, \
             6-bit or 4-bit floats with scales f8e8m0 into f32"
        ));
    };
    Ok(Data::F32(rows(&l, &r, sums, extents, |acc, x, y| (f64::from(acc) + x * y) as f32)))
}

/// A factor whose elements share units, as elements of `dtype`: rows of so many units, each of which takes
/// `words` elements of the factor, become rows of `k`. Nothing of factors that are not packed.
pub(super) fn unpacked(factor: &Data, dtype: DType, [units, words]: [usize; 2], k: usize) -> Option<Data> {
    let packing = dtype.packing().filter(|packing| packing.word == factor.dtype())?;
    let bits = bits_of(factor);
    let word_bytes = packing.word.bytes() as usize;
    let bytes_of = |unit: &[u64]| -> SmallVec<[u8; 32]> {
        unit.iter().flat_map(|word| word.to_le_bytes().into_iter().take(word_bytes)).collect()
    };
    let row = |row: &[u64]| {
        let codes = row.chunks(words.max(1)).flat_map(|unit| {
            let bytes = bytes_of(unit);
            let code = move |at: u32| u64::from(code_in(&bytes, at as usize, packing.bits()));
            (0..packing.elements).map(code)
        });
        codes.take(k).collect()
    };
    let codes: Vec<Vec<u64>> = bits.chunks((units * words).max(1)).map(row).collect();
    Some(data_of(dtype, &codes.concat()))
}

fn rows<F: Copy + Send + Sync, T: Copy + Send + Sync>(
    lhs: &[F],
    rhs: &[F],
    acc: &[T],
    extents: Extents,
    step: impl Fn(T, F, F) -> T + Sync,
) -> Vec<T> {
    let Extents { batch, m, n, k, taken } = extents;
    let mut out = acc.to_vec();
    if out.is_empty() || taken == 0 {
        return out;
    }
    // rhs as [batch, taken, n]: the inner loop then runs along the row of the result, and every element still
    // sees k in order.
    let mut columns = Vec::with_capacity(batch * n * taken);
    for b in 0..batch {
        for x in 0..taken {
            columns.extend((0..n).map(|column| rhs[(b * n + column) * k + x]));
        }
    }
    // Starting a thread costs as much as some ten thousand elements of the sum.
    let most = (batch * m * n * taken) as u64 / 50_000;
    workers::for_each(out.chunks_mut(n).enumerate(), most, |(row, out)| {
        let columns = &columns[row / m * n * taken..][..n * taken];
        for (&x, column) in lhs[row * k..][..taken].iter().zip(columns.chunks_exact(n)) {
            for (out, &y) in out.iter_mut().zip(column) {
                *out = step(*out, x, y);
            }
        }
    });
    out
}
