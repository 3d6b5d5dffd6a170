//! The dimensions of a tensor in another order.

use std::panic::Location as Caller;

use super::Waves;
use crate::prelude::*;

/// Names of the dimensions of `a`.
const DIMS: [&str; 4] = ["D0", "D1", "D2", "D3"];

/// `b` has the dimensions of `a` in another order: dimension i of `b` is dimension `order[i]` of `a`. So
/// `[0, 2, 1]` turns each matrix of a batch, and `[0, 2, 1, 3]` swaps the heads and tokens of attention.
///
/// The sizes of `a` are `D0`, `D1` and so on. A workgroup has a tile of two dimensions: the last one of `a`,
/// of which it takes `BLOCK_X`, and the last one of `b` or, if that is the same, the one before it in `b`, of
/// which it takes `BLOCK_Y`. Each combination of the others has workgroups of its own. With four dimensions
/// `OTHERS` is the number of combinations: the product of the two other sizes ([`permute_others`] says which
/// they are). `waves` are those along `BLOCK_Y` and `BLOCK_X`. The read is tagged `read_a`.
///
/// # Errors
/// An order that is none of two to four dimensions, or no wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, permute};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("D0", 2).set("D1", 1).set("D2", 3);
/// let options = options.set("BLOCK_X", 64).set("BLOCK_Y", 64);
/// let executable = permute(I32, &[2, 1, 0], Waves::new(2, 2))?.compile(&options)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1i32, 2, 3, 4, 5, 6])?;
/// let b = device.upload(&[0i32; 6])?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<i32>()?, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn permute(dtype: DType, order: &[usize], waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(dtype, order, waves))
}

/// The dimensions of `a` that [`permute()`] has no tiles of, whose sizes multiply to `OTHERS`, for an order
/// of four dimensions; of fewer dimensions there is at most one, which needs no symbol.
///
/// # Example
/// ```
/// use groundswell::kernels::permute_others;
/// assert_eq!(permute_others(&[0, 2, 1, 3]), [0, 2]);
/// ```
pub fn permute_others(order: &[usize]) -> Vec<usize> {
    let (x, y) = tile_dims(order);
    (0..order.len()).filter(|&dim| dim != x && Some(dim) != y).collect()
}

/// The dimensions of `a` along which a tile lies: the last one of `a`, and another one.
fn tile_dims(order: &[usize]) -> (usize, Option<usize>) {
    let x = order.len().saturating_sub(1);
    (x, order.iter().rev().copied().find(|&dim| dim != x))
}

fn trace(dtype: DType, order: &[usize], waves: Waves) -> Result<Kernel, Diagnostic> {
    let rank = order.len();
    let known = (0..rank).all(|dim| order.contains(&dim));
    let ((x, Some(y)), 2..=4, true) = (tile_dims(order), rank, known) else {
        return Err(Diagnostic::invalid(format!("{order:?} is no order of two to four dimensions"))
            .help("name each dimension once, counted from zero, as in [0, 2, 1]"));
    };
    let dims = symbols(DIMS);
    let [others, block_x, block_y] = symbols(["OTHERS", "BLOCK_X", "BLOCK_Y"]);
    // As in `transpose`: narrow elements are turned by a conversion of layouts, others as tiles in LDS.
    let turns = order.last() != Some(&x);
    let space = if turns && dtype.bytes() >= 4 { Shared } else { Global };
    Kernel::trace("permute", |w| {
        w.distribute([
            workgroup(dims[x], block_x, 0),
            workgroup(dims[y], block_y, 1),
            wave(dims[x], block_x / i64::from(waves.n)),
            wave(dims[y], block_y / i64::from(waves.m)),
        ]);
        let [of_a, of_b] = ["a", "b"];
        let ordered = |at: usize| dims[order[at]];
        match (rank, &permute_others(order)[..]) {
            (4, &[outer, inner]) => {
                w.distribute([workgroup(others, 1, 2)]);
                let a = w.memory(of_a, dims, space, dtype);
                let b = w.memory(of_b, [0, 1, 2, 3].map(ordered), Global, dtype);
                let place = |dim: usize| match dim {
                    _ if dim == outer => others / dims[inner],
                    _ if dim == inner => others % dims[inner],
                    _ => dims[dim].into(),
                };
                let tile = w.read_at(a, [0, 1, 2, 3].map(place), [others, dims[y], dims[x]]);
                w.write_at(tile.tag("read_a"), b, [0, 1, 2, 3].map(|at| place(order[at])));
            }
            (3, &[other]) => {
                w.distribute([workgroup(dims[other], 1, 2)]);
                let a = w.memory(of_a, [dims[0], dims[1], dims[2]], space, dtype);
                let b = w.memory(of_b, [0, 1, 2].map(ordered), Global, dtype);
                w.write(w.read(a).tag("read_a"), b);
            }
            _ => {
                let a = w.memory(of_a, [dims[0], dims[1]], space, dtype);
                let b = w.memory(of_b, [0, 1].map(ordered), Global, dtype);
                w.write(w.read(a).tag("read_a"), b);
            }
        }
    })
}
