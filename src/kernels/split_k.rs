//! Products whose sums are long and whose results are small: K is shared among workgroups, which fill the
//! machine where the tiles of C alone would not.

use std::panic::Location as Caller;

use super::Waves;
use crate::prelude::*;

/// The two kernels of a product in parts, with the same bits in every launch.
pub struct SplitK {
    /// `parts[s] = A Bᵀ` over the s-th part of K: for `a` of shape `[M, K]`, `b` of shape `[N, K]` and f32
    /// `parts` of shape `[SPLITS, M, N]`.
    pub product: Kernel,
    /// `c = sum of parts[s]`, of the same shapes, into f32 `c` of shape `[M, N]`.
    pub sum: Kernel,
}

/// The tile that [`SplitK::options`] chooses.
const TILE: [(&str, i64); 3] = [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 64)];

/// Elements of C that a workgroup of the second kernel adds, and parts that it adds at a time.
const SUM_TILE: [(&str, i64); 3] = [("BLOCK_M", 1), ("BLOCK_N", 1024), ("BLOCK_S", 8)];

impl SplitK {
    /// Options for both kernels that bind all symbols, for a product of `[m, n, k]` in `splits` parts. The
    /// tile of the product is 64 x 64 x 64, its loop is prefetched.
    pub fn options(target: impl Into<TargetId>, size: [u32; 3], splits: u32) -> (Options, Options) {
        SplitK::bound(target.into(), size, splits, TILE, &SetBy::Default)
    }

    /// The same with another tile of the product: rows, columns, and elements of K per iteration.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::SplitK;
    /// use groundswell::prelude::*;
    ///
    /// let (product, _) = SplitK::tiled_options(Target::GFX942, [16, 512, 4096], 8, [16, 64, 128]);
    /// assert_eq!((product.value("BLOCK_K"), product.value("PART")), (Some(128), Some(512)));
    /// ```
    #[track_caller]
    pub fn tiled_options(
        target: impl Into<TargetId>,
        size: [u32; 3],
        splits: u32,
        tile: [u32; 3],
    ) -> (Options, Options) {
        let mut named = TILE;
        named.iter_mut().zip(tile).for_each(|(named, side)| named.1 = side.into());
        SplitK::bound(target.into(), size, splits, named, &SetBy::Call(Caller::caller()))
    }

    fn bound(
        target: TargetId,
        [m, n, k]: [u32; 3],
        splits: u32,
        tile: [(&'static str, i64); 3],
        by: &SetBy,
    ) -> (Options, Options) {
        let part = part_of(k.into(), splits.into(), tile[2].1);
        let bind = |schedule: Schedule, sizes: &[(&str, i64)], tile: [(&str, i64); 3], by: &SetBy| {
            let options = Options::new(target).schedule(schedule);
            let options = sizes.iter().fold(options, |options, &(name, size)| options.set(name, size));
            tile.iter().fold(options, |options, &(name, size)| options.set_by(name, size, by.clone()))
        };
        let all = [("M", m), ("N", n), ("SPLITS", splits), ("K", k)].map(|(name, size)| (name, size.into()));
        let [m, n, splits, k] = all;
        (
            bind(Schedule::Prefetch, &[m, n, splits, k, ("PART", part), ("PART_STRIDE", part)], tile, by),
            bind(Schedule::None, &[m, n, splits], SUM_TILE, &SetBy::Default),
        )
    }
}

/// The elements of a part: whole steps of the loop.
pub(super) fn part_of(k: i64, splits: i64, block_k: i64) -> i64 {
    let ceil_div = |a: i64, b: i64| a.max(0) / b + i64::from(a.max(0) % b != 0);
    ceil_div(ceil_div(k, splits.max(1)), block_k.max(1)).saturating_mul(block_k.max(1))
}

/// C = A Bᵀ in two kernels, for inputs of f16, bf16 or f32 and f32 sums.
///
/// Workgroups of the first one compute `BLOCK_M` x `BLOCK_N` elements over one of `SPLITS` parts of K, of
/// `PART` elements each, in steps of `BLOCK_K`; a part begins `PART_STRIDE` elements after the one before,
/// which has to be `PART`, too, and `PART * SPLITS` at least K. The loop is tagged `k_loop`. Workgroups of
/// the second one add `BLOCK_M` x `BLOCK_N` elements of `BLOCK_S` parts at a time; the loop is tagged
/// `part_loop`. The order of the additions follows from `SPLITS` and the tiles alone.
///
/// # Errors
/// Inputs of another dtype, or no wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{SplitK, Waves, split_k};
/// use groundswell::prelude::*;
///
/// let kernels = split_k(F32, Waves::new(2, 2))?;
/// let (product, sum) = SplitK::options(Target::GFX942, [1, 1, 100], 2);
/// let product = kernels.product.compile(&product)?;
/// let sum = kernels.sum.compile(&sum)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32; 100])?;
/// let b = device.upload(&[0.5f32; 100])?;
/// let parts = device.upload(&[0f32; 2])?;
/// let c = device.upload(&[0f32; 1])?;
/// device.launch(&product).buffer(&a).buffer(&b).buffer(&parts).run()?;
/// device.launch(&sum).buffer(&parts).buffer(&c).run()?;
/// assert_eq!(parts.download::<f32>()?, [32.0, 18.0]);
/// assert_eq!(c.download::<f32>()?, [50.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn split_k(inputs: DType, waves: Waves) -> Result<SplitK, Diagnostic> {
    split_k_into(inputs, F32, waves)
}

/// The same with sums that the second kernel converts to the dtype of `c`: f16, bf16 or f32.
///
/// # Errors
/// As [`split_k`]; an output of another dtype.
///
/// # Example
/// ```
/// use groundswell::kernels::{Waves, split_k_into};
/// use groundswell::prelude::*;
///
/// let kernels = split_k_into(DType::Bf16, DType::Bf16, Waves::new(1, 1))?;
/// assert!(kernels.sum.to_string().contains("bf16"));
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn split_k_into(inputs: DType, output: DType, waves: Waves) -> Result<SplitK, Diagnostic> {
    let caller = Caller::caller();
    let asked = Some(Location::from(caller));
    if ![DType::F16, DType::Bf16, DType::F32].contains(&output) {
        let text = format!("products in parts have results of f16, bf16 or f32, not of {output}");
        return Err(Diagnostic::invalid(text)
            .help("choose one of these, and convert it afterwards")
            .at(asked));
    }
    let product = waves.asked_by(caller, |waves| trace(inputs, waves, PartSum::SecondKernel))?;
    let sum = sum_of_parts(output)?.told_at(asked);
    Ok(SplitK { product, sum })
}

/// C += A Bᵀ in one kernel, for inputs of f16, bf16 or f32 and f32 `c`, which the caller sets to zero:
/// every part of K adds its sums to it by atomic updates. As the product of [`split_k`] otherwise, but the
/// parts are added in any order, so the last bits may differ from one launch to the next.
///
/// # Errors
/// Inputs of another dtype, or no wave along a dimension.
#[track_caller]
pub fn split_k_atomic(inputs: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    waves.asked_by(Caller::caller(), |waves| trace(inputs, waves, PartSum::Atomic))
}

/// How the parts come together.
#[derive(Copy, Clone, PartialEq, Eq)]
enum PartSum {
    SecondKernel,
    Atomic,
}

/// The matrix instructions of products in parts, whose sums are f32.
pub(super) fn matrix_for_parts(inputs: DType) -> Result<MmaType, Diagnostic> {
    let matrix = MmaType::default();
    match matrix.accumulator(inputs) {
        Some(F32) => Ok(matrix),
        _ => Err(Diagnostic::invalid(format!("a product in parts takes f16, bf16 and f32, not {inputs}"))
            .help("use other inputs, or Gemm")),
    }
}

fn trace(inputs: DType, waves: Waves, joining: PartSum) -> Result<Kernel, Diagnostic> {
    let matrix = matrix_for_parts(inputs)?;
    let [m, n, k, splits, part, stride] = symbols(["M", "N", "K", "SPLITS", "PART", "PART_STRIDE"]);
    let [block_m, block_n, block_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    let name = match joining {
        PartSum::SecondKernel => "split_k_gemm",
        PartSum::Atomic => "split_k_gemm_atomic",
    };
    Kernel::trace(name, |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            workgroup(splits, 1, 2),
            tile(part, block_k),
            wave(m, block_m / i64::from(waves.m)),
            wave(n, block_n / i64::from(waves.n)),
            cached_order(),
        ]);
        w.mma_type(matrix);
        let a = w.memory("a", [m, k], Shared, inputs);
        let b = w.memory("b", [n, k], Shared, inputs);
        // In a coordinate, a dimension is the place along it, so the size of a part needs a symbol of its
        // own.
        let along_k = || splits * stride + part;
        let zero = w.register([splits, m, n], F32, 0.0);
        let [sum] = w.iterate(part, [zero], |w, [sum]| {
            let rows = w.read_at(a, [m.into(), along_k()], [splits, m, part]).tag("read_a");
            let columns = w.read_at(b, [n.into(), along_k()], [splits, n, part]).tag("read_b");
            [w.mma(rows, columns, sum).tag("mma")]
        });
        let sum = sum.tag_loop("k_loop");
        match joining {
            PartSum::SecondKernel => w.write(sum, w.memory("parts", [splits, m, n], Global, F32)),
            PartSum::Atomic => {
                w.atomic_at(AtomicOp::Add, sum, w.memory("c", [m, n], Global, F32), [m, n]);
            }
        }
    })
}

fn sum_of_parts(output: DType) -> Result<Kernel, Diagnostic> {
    let [m, n, splits, block_m, block_n] = symbols(["M", "N", "SPLITS", "BLOCK_M", "BLOCK_N"]);
    let block_s = Symbol::new("BLOCK_S");
    Kernel::trace("split_k_sum", |w| {
        w.distribute([
            workgroup(m, block_m, 0),
            workgroup(n, block_n, 1),
            tile(splits, block_s),
            wave(n, 256),
        ]);
        let parts = w.memory("parts", [splits, m, n], Global, F32);
        let c = w.memory("c", [m, n], Global, output);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(splits, [zero], |w, [sum]| [sum + w.read(parts).tag("read_parts").sum(splits)]);
        let sum = sum.tag_loop("part_loop");
        w.write(if output == F32 { sum } else { sum.cast(output) }, c);
    })
}
