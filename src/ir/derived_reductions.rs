//! Reductions that are made of other operations: places of extrema, largest elements, conditions on all
//! elements, means.

use std::panic::Location as Caller;

use super::builder::Value;
use super::expr::Symbol;
use super::reduced_dims::ReducedDims;
use super::types::DType;

/// One of the largest elements along a dimension.
#[derive(Copy, Clone, Debug)]
pub struct TopElement {
    /// The element; it lacks the dimension.
    pub value: Value,
    /// Its place along the dimension, as i32.
    pub place: Value,
}

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

    /// The `count` largest elements along a dimension in falling order, of float elements; cast integers to
    /// f64 first. Of equal elements the first ones come first. NaNs come after all numbers: once only they
    /// are left, or nothing is, because there are fewer elements than asked for, values are NaN and places 0.
    /// Whether a zero is negative does not count: values that are zero are plus zero.
    ///
    /// Each is made by two reductions, so this is for few of them.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let second = Kernel::trace("second_largest", |w| {
    ///     w.distribute([workgroup(m, 4, 0)]);
    ///     let a = w.memory("a", [m, n], Global, F32);
    ///     let places = w.memory("places", [m], Global, I32);
    ///     w.write(w.read(a).topk(n, 2)[1].place, places);
    /// })?;
    /// # second.compile(&Options::new(Target::GFX942).set(m, 10).set(n, 100))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn topk(self, dim: impl Into<Symbol>, count: u32) -> Vec<TopElement> {
        let w = self.tracer();
        let dim = dim.into();
        let mut left = self;
        let mut found = Vec::new();
        for number in 0..count {
            let value = left.max(dim);
            let places = w.select(left.equal(value), w.self_index(dim), i32::MAX);
            let first = places.min(dim);
            // The maximum may be another zero than the element at the place; the sum has one sign for all.
            let place = w.select(first.equal(i32::MAX), 0, first);
            found.push(TopElement { value: value + 0.0, place });
            if number + 1 < count {
                // Extrema pass over NaNs, so this takes the element out, and leaves infinities in.
                left = w.select(places.equal(first), f64::NAN, left);
            }
        }
        found
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
