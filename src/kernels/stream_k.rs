//! Products whose tiles do not fill a whole number of rounds of the machine: a fixed number of workgroups
//! shares the steps of all tiles evenly.

use std::panic::Location as Caller;

use super::Waves;
use super::split_k::matrix_for_parts;
use super::table_symbols::{STREAM_K, STREAM_K_DERIVED, STREAM_K_SUM, STREAM_K_SUM_DERIVED, SymbolDefault};
use crate::prelude::*;

/// The two kernels of a product whose steps are shared evenly, with the same bits in every launch.
pub struct StreamK {
    /// Sums over runs of steps: for `a` of shape `[M, K]`, `b` of shape `[N, K]` and f32 `parts` of shape
    /// `[WORKERS, SEGMENTS, TILE_M, TILE_N]`.
    pub product: Kernel,
    /// `C = A Bᵀ` from the sums of the runs, into f32 `c` of shape `[M, N]`.
    pub sum: Kernel,
}

/// Workgroups of the second kernel for a tile, one below the other.
const SUM_WORKGROUPS: i64 = 16;

impl StreamK {
    /// Options for both kernels that bind all symbols, for a product of `[m, n, k]` by so many workers. The
    /// tile is 64 x 64 x 64, the loop is prefetched.
    pub fn options(target: impl Into<TargetId>, [m, n, k]: [u32; 3], workers: u32) -> (Options, Options) {
        let sizes = [("M", m), ("N", n), ("K", k), ("WORKERS", workers)];
        let mut values: Vec<(&str, i64)> = sizes.map(|(name, size)| (name, size.into())).to_vec();
        let given = values.len();
        values.extend([("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 64)]);
        for (name, value) in STREAM_K_DERIVED.iter().chain(STREAM_K_SUM_DERIVED) {
            if values.iter().all(|known| known.0 != *name) {
                let before = |name: &str| values.iter().find(|known| known.0 == name).map_or(0, |v| v.1);
                let value = value(&before);
                values.push((name, value));
            }
        }
        let bound = |options: Options, symbols: &[SymbolDefault]| {
            let known = values.iter().enumerate().filter(|(_, v)| symbols.iter().any(|s| s.name == v.0));
            known.fold(options, |options, (at, &(name, value))| {
                if at < given {
                    options.set(name, value)
                } else {
                    options.set_by(name, value, SetBy::Default)
                }
            })
        };
        let options = Options::new(target);
        (bound(options.clone().schedule(Schedule::Prefetch), STREAM_K), bound(options, STREAM_K_SUM))
    }
}

/// C = A Bᵀ in two kernels, for inputs of f16, bf16 or f32 and f32 sums, where `WORKERS` workgroups run
/// whatever the shape is, and each computes as much as the others.
///
/// The steps of `BLOCK_K` along K, of one tile of `BLOCK_M` x `BLOCK_N` elements of C after the other, are
/// one row; each workgroup of the first kernel takes `SHARE` of them. It writes its sums for each tile that
/// it touches, at most `SEGMENTS`; they are zero in a segment without steps. The loop is tagged `k_loop`. The
/// second kernel adds the parts of a tile in the order of K; they come from at most `CONTRIBUTIONS` workers,
/// and the loop over them is tagged `part_loop`. The order of the additions follows from the symbols alone.
///
/// [`StreamK::options`] computes what follows from the sizes: `COLUMN_TILES` is the number of tiles along N,
/// `STEPS` that of a tile along K, `TILE_M` and `TILE_N` are `BLOCK_M` and `BLOCK_N`, and `WORKERS * SHARE`
/// is at least the number of all steps.
///
/// # Errors
/// Inputs of another dtype, or no wave along a dimension.
///
/// # Example
/// ```
/// use groundswell::kernels::{StreamK, Waves, stream_k};
/// use groundswell::prelude::*;
///
/// let kernels = stream_k(F32, Waves::new(2, 2))?;
/// // Three tiles of two steps each, by two workers: each takes one and a half tiles.
/// let (product, sum) = StreamK::options(Target::GFX942, [1, 150, 100], 2);
/// let product = kernels.product.compile(&product)?;
/// let sum = kernels.sum.compile(&sum)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32; 100])?;
/// let b = device.upload(&[0.5f32; 150 * 100])?;
/// let parts = device.upload(&[0f32; 2 * 2 * 64 * 64])?;
/// let c = device.upload(&[0f32; 150])?;
/// device.launch(&product).buffer(&a).buffer(&b).buffer(&parts).run()?;
/// device.launch(&sum).buffer(&parts).buffer(&c).run()?;
/// assert_eq!(c.download::<f32>()?, [50.0; 150]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn stream_k(inputs: DType, waves: Waves) -> Result<StreamK, Diagnostic> {
    let caller = Caller::caller();
    let product = waves.asked_by(caller, |waves| shares_of_products(inputs, waves))?;
    let sum = sum_of_shares()?.told_at(Some(Location::from(caller)));
    Ok(StreamK { product, sum })
}

fn shares_of_products(inputs: DType, waves: Waves) -> Result<Kernel, Diagnostic> {
    let matrix = matrix_for_parts(inputs)?;
    let [m, n, k, workers, segments] = symbols(["M", "N", "K", "WORKERS", "SEGMENTS"]);
    let [tile_m, tile_n] = symbols(["TILE_M", "TILE_N"]);
    let [block_m, block_n, block_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    let [share, steps, column_tiles] = symbols(["SHARE", "STEPS", "COLUMN_TILES"]);
    Kernel::trace("stream_k_gemm", |w| {
        // The grid has a place for each segment of each worker, and a persistent workgroup takes all the
        // segments of one.
        w.distribute([
            workgroup(workers, 1, 0),
            workgroup(tile_m, block_m, 1),
            workgroup(tile_n, block_n, 2),
            workgroup(segments, 1, 3),
            persistent(workers),
            tile(k, block_k),
            // Counted from the first step of the segment's tile: those before and after it do not exist.
            iterations(k, workgroup_id(0) * share % steps - workgroup_id(3) * steps, share),
            wave(tile_m, block_m / i64::from(waves.m)),
            wave(tile_n, block_n / i64::from(waves.n)),
        ]);
        w.mma_type(matrix);
        let a = w.memory("a", [m, k], Shared, inputs);
        let b = w.memory("b", [n, k], Shared, inputs);
        let tile = || workers * share / steps + segments;
        let row = tile() / column_tiles * block_m + tile_m;
        let column = tile() % column_tiles * block_n + tile_n;
        let zero = w.register([workers, segments, tile_m, tile_n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let rows = w.read_at(a, [row, k.into()], [workers, segments, tile_m, k]).tag("read_a");
            let columns = w.read_at(b, [column, k.into()], [workers, segments, tile_n, k]).tag("read_b");
            [w.mma(rows, columns, sum).tag("mma")]
        });
        let parts = w.memory("parts", [workers, segments, tile_m, tile_n], Global, F32);
        w.write(sum.tag_loop("k_loop"), parts);
    })
}

fn sum_of_shares() -> Result<Kernel, Diagnostic> {
    let [m, n, workers, segments] = symbols(["M", "N", "WORKERS", "SEGMENTS"]);
    let [tile_m, tile_n, block_m, block_n] = symbols(["TILE_M", "TILE_N", "BLOCK_M", "BLOCK_N"]);
    let [share, steps, column_tiles] = symbols(["SHARE", "STEPS", "COLUMN_TILES"]);
    let contributions = Symbol::new("CONTRIBUTIONS");
    Kernel::trace("stream_k_sum", |w| {
        let tile_of_workgroup = || workgroup_id(0) / SUM_WORKGROUPS * column_tiles + workgroup_id(1);
        let first_worker = || tile_of_workgroup() * steps / share;
        let last_worker = || ((tile_of_workgroup() + 1) * steps - 1) / share;
        w.distribute([
            assume_divisible(block_m, SUM_WORKGROUPS as u32),
            workgroup(m, block_m / SUM_WORKGROUPS, 0),
            workgroup(n, block_n, 1),
            tile(contributions, 1),
            iterations(contributions, 0, last_worker() - first_worker() + 1),
        ]);
        let parts = w.memory("parts", [workers, segments, tile_m, tile_n], Global, F32);
        let c = w.memory("c", [m, n], Global, F32);
        let tile = || m / block_m * column_tiles + n / block_n;
        let worker = || tile() * steps / share + contributions;
        let segment = || tile() - worker() * share / steps;
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(contributions, [zero], |w, [sum]| {
            let place = [worker(), segment(), m % block_m, n % block_n];
            let part = w.read_at(parts, place, [contributions, m, n]).tag("read_parts");
            [sum + part.sum(contributions)]
        });
        w.write(sum.tag_loop("part_loop"), c);
    })
}
