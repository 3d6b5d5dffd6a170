//! Writes the keys and values of new tokens into a paged cache.

use std::panic::Location as Caller;

use super::paged::{CacheScale, PagedAxes};
use crate::kernels::asked::asked_at;
use crate::prelude::*;

/// Tokens of a workgroup.
const TOKENS: i64 = 16;

/// Appends new tokens to a paged cache: `k_cache[page, token] = k[b, i]`, and likewise for values, where
/// token `i` of the last `NEW` ones of sequence `b` is key `n = lengths[b] - NEW + i`, `page` is
/// `page_table[b, n / PAGE]` and `token` is `n % PAGE`.
///
/// - `k` and `v` are `[B, NEW, KV, D]`
/// - `page_table` is `[B, MAX_PAGES]` and `lengths` `[B]` of i32: keys after the new ones have joined. Tokens
///   that would come before the first key are left out, so sequences may have fewer than `NEW` new ones;
///   those for which the table has no room, or no page, are left out, too
/// - `k_scale` and `v_scale` stand here if the cache is narrow, as [`super::PagedDecode::cache`] has them
/// - `k_cache` and `v_cache` are `[PAGES, PAGE, KV, D]`
///
/// A narrow cache has the elements divided by their scale, rounded to nearest even; what is beyond its
/// largest number becomes that. The reads are tagged `read_k` and `read_v`.
///
/// # Errors
/// New tokens that are no f16 or bf16, or a cache that they are not multiplied with.
///
/// # Example
/// ```
/// use groundswell::kernels::paged_append;
/// use groundswell::prelude::*;
///
/// // One new token of one sequence, whose key 2 is token 0 of page 3.
/// let sizes = [("B", 1), ("NEW", 1), ("KV", 1), ("D", 2), ("PAGES", 4), ("PAGE", 2), ("MAX_PAGES", 2)];
/// let options = sizes.iter().fold(Options::new(Target::GFX942), |o, &(name, size)| o.set(name, size));
/// let executable = paged_append(F16, F16)?.compile(&options)?;
///
/// let device = Device::open()?;
/// let halves = |numbers: &[f32]| numbers.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
/// let [k, v] = [device.upload(&halves(&[1.0, 2.0]))?, device.upload(&halves(&[3.0, 4.0]))?];
/// let (page_table, lengths) = (device.upload(&[1i32, 3])?, device.upload(&[3i32])?);
/// let [k_cache, v_cache] = [device.upload(&halves(&[0.0; 16]))?, device.upload(&halves(&[0.0; 16]))?];
/// let launch = device.launch(&executable).buffer(&k).buffer(&v).buffer(&page_table).buffer(&lengths);
/// launch.buffer(&k_cache).buffer(&v_cache).run()?;
/// assert_eq!(v_cache.download::<f16>()?[12..], halves(&[3.0, 4.0, 0.0, 0.0]));
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn paged_append(inputs: DType, cache: DType) -> Result<Kernel, Diagnostic> {
    let scales = CacheScale::of(cache, inputs);
    asked_at(Caller::caller(), scales.and_then(|scales| trace(inputs, cache, scales)))
}

fn trace(inputs: DType, cache: DType, scales: CacheScale) -> Result<Kernel, Diagnostic> {
    let axes @ PagedAxes { batch, new, kv, dim, page, .. } = PagedAxes::new();
    Kernel::trace("paged_append", |w| {
        w.distribute([workgroup(new, TOKENS, 0), workgroup(kv, 1, 1), workgroup(batch, 1, 2)]);
        let [k, v] = ["k", "v"].map(|name| w.memory(name, [batch, new, kv, dim], Global, inputs));
        let [page_table, lengths] = axes.tables(w);
        let scales = scales.of_keys_and_values(w, kv);
        let caches = ["k_cache", "v_cache"].map(|name| axes.cache(w, name, (Global, cache)));
        let length = w.read_at(lengths, [w.workgroup_id(2)], []).tag("read_lengths");
        let place = w.self_index(new) + (length - w.size(new));
        let number = w.read_at(page_table, (batch, Coordinate::from(place) / page), [batch, new]);
        // A place outside of the table would be read as page 0.
        let room = w.size(axes.max_pages) * w.size(page);
        let has_place = place.greater_equal(0) & place.less(room);
        let number = w.select(has_place.broadcast([batch, new]), number.tag("read_page_table"), -1);
        for (at, (rows, cache_rows)) in [(k, caches[0]), (v, caches[1])].into_iter().enumerate() {
            let rows = w.read(rows).tag(["read_k", "read_v"][at]);
            let stored = scales.map_or(rows, |scales| quantised(rows, scales[at], cache));
            w.write_at(stored, cache_rows, (number, Coordinate::from(place) % page, kv, dim));
        }
    })
}

/// The numbers of a narrow dtype that are nearest to `rows / scale`.
fn quantised(rows: Value, scale: Value, dtype: DType) -> Value {
    let quotients = rows.cast(F32) / scale;
    match largest(dtype) {
        Some(most) => quotients.minimum(most).maximum(-most).cast(dtype),
        // Casts to integers truncate, and saturate.
        None => quotients.round_even().cast(dtype),
    }
}

/// The largest number of an 8-bit float.
fn largest(dtype: DType) -> Option<f64> {
    match dtype {
        F8E4M3Fnuz => Some(240.0),
        F8E4M3Fn => Some(448.0),
        F8E5M2Fnuz | F8E5M2 => Some(57344.0),
        _ => None,
    }
}
