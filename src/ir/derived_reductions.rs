//! Reductions that are made of other operations: places of extrema, conditions on all elements, means.

use std::panic::Location as Caller;

use super::builder::Value;
use super::expr::Symbol;
use super::reduced_dims::ReducedDims;
use super::types::DType;

impl Value {
    /// The place of the largest element along a dimension, the first of equal ones, as i32; the result lacks
    /// the dimension. NaNs are passed over; the place is 0 where there is nothing else. Along several
    /// dimensions it is the place in the row-major order of these.
    #[track_caller]
    #[must_use]
    pub fn argmax(self, dims: impl ReducedDims) -> Value {
        let dims = dims.symbols();
        self.first_equal(self.max(&dims[..]), &dims)
    }

    /// The place of the smallest element along a dimension, as [`Value::argmax`] otherwise.
    #[track_caller]
    #[must_use]
    pub fn argmin(self, dims: impl ReducedDims) -> Value {
        let dims = dims.symbols();
        self.first_equal(self.min(&dims[..]), &dims)
    }

    /// The first place of elements along `dims` that are equal to `extremum`, or 0.
    #[track_caller]
    fn first_equal(self, extremum: Value, dims: &[Symbol]) -> Value {
        let w = self.tracer();
        let mut place = None;
        for (at, &dim) in dims.iter().enumerate() {
            let own = w.self_index(dim);
            place = Some(match place {
                None => own,
                Some(before) => {
                    let rows: Value = before * w.size(dim);
                    rows.broadcast_to(Caller::caller(), &dims[..=at]) + own
                }
            });
        }
        let place = place.unwrap_or_else(|| w.register([], DType::I32, 0.0));
        let first = w.select(self.equal(extremum), place, i32::MAX).min(dims);
        w.select(first.equal(i32::MAX), 0, first)
    }

    /// Whether a condition (i1) holds for any element along dimensions, which the result lacks.
    #[track_caller]
    #[must_use]
    pub fn any(self, dims: impl ReducedDims) -> Value {
        self.tracer().select(self, 1, 0).max(dims).not_equal(0)
    }

    /// Whether a condition (i1) holds for all elements along dimensions, which the result lacks.
    #[track_caller]
    #[must_use]
    pub fn all(self, dims: impl ReducedDims) -> Value {
        self.tracer().select(self, 1, 0).min(dims).not_equal(0)
    }

    /// The mean of f32 elements along dimensions, which the result lacks; cast others first.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let centered = Kernel::trace("centered", |w| {
    ///     w.distribute([workgroup(m, 4, 0)]);
    ///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F16));
    ///     let x = w.read(a).cast(F32);
    ///     w.write((x - x.mean(n)).cast(F16), b);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn mean(self, dims: impl ReducedDims) -> Value {
        let dims = dims.symbols();
        let w = self.tracer();
        let sizes = dims.iter().map(|&dim| w.size(dim).cast(DType::F32));
        let sum = self.sum(&dims[..]);
        match sizes.reduce(|product, size| product * size) {
            Some(count) => sum / count,
            None => sum,
        }
    }
}
