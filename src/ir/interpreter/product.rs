//! The matrix product of the reference interpreter: plain loops, rows in parallel, every sum in the order of
//! k.

use crate::ir::layout::Mma;
use crate::workers;

use super::arithmetic::{ArithmeticFault, widened};
use super::tensor::Data;

/// Extents of one product: lhs is `[batch, m, k]`, rhs `[batch, n, k]`, acc `[batch, m, n]`.
#[derive(Copy, Clone, Debug)]
pub(super) struct Extents {
    pub batch: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// `acc + lhs . rhs`. f64 multiply and add with one rounding, other floats in f32 (products of narrower
/// floats are exact there), i8 in wrapping i32; the products are added to the accumulator one by one in the
/// order of k.
pub(super) fn multiply_add(
    lhs: &Data,
    rhs: &Data,
    acc: &Data,
    extents: Extents,
) -> Result<Data, ArithmeticFault> {
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
    Ok(match (acc, widened(lhs), widened(rhs), lhs, rhs) {
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

fn rows<T: Copy + Send + Sync>(
    lhs: &[T],
    rhs: &[T],
    acc: &[T],
    extents: Extents,
    step: impl Fn(T, T, T) -> T + Sync,
) -> Vec<T> {
    let Extents { batch, m, n, k } = extents;
    let mut out = acc.to_vec();
    if out.is_empty() || k == 0 {
        return out;
    }
    // rhs as [batch, k, n]: the inner loop then runs along the row of the result, and every element still
    // sees k in order.
    let mut columns = Vec::with_capacity(rhs.len());
    for b in 0..batch {
        for x in 0..k {
            columns.extend((0..n).map(|column| rhs[(b * n + column) * k + x]));
        }
    }
    // Starting a thread costs as much as some ten thousand elements of the sum.
    let most = (batch * m * n * k) as u64 / 50_000;
    workers::for_each(out.chunks_mut(n).enumerate(), most, |(row, out)| {
        let columns = &columns[row / m * n * k..][..n * k];
        for (&x, column) in lhs[row * k..][..k].iter().zip(columns.chunks_exact(n)) {
            for (out, &y) in out.iter_mut().zip(column) {
                *out = step(*out, x, y);
            }
        }
    });
    out
}
