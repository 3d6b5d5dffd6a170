//! Reductions that are made of other operations: places of extrema, conditions on all elements, means.

use super::builder::Value;
use super::expr::Symbol;
use super::types::DType;

impl Value {
    /// The place of the largest element along a dimension, the first of equal ones, as i32; the result lacks
    /// the dimension. NaNs are passed over; the place is 0 where there is nothing else.
    #[track_caller]
    #[must_use]
    pub fn argmax(self, dim: impl Into<Symbol>) -> Value {
        let dim = dim.into();
        self.first_equal(self.max(dim), dim)
    }

    /// The place of the smallest element along a dimension, as [`Value::argmax`] otherwise.
    #[track_caller]
    #[must_use]
    pub fn argmin(self, dim: impl Into<Symbol>) -> Value {
        let dim = dim.into();
        self.first_equal(self.min(dim), dim)
    }

    /// The first place of elements along `dim` that are equal to `extremum`, or 0.
    #[track_caller]
    fn first_equal(self, extremum: Value, dim: Symbol) -> Value {
        let w = self.tracer();
        let first = w.select(self.equal(extremum), w.self_index(dim), i32::MAX).min(dim);
        w.select(first.equal(i32::MAX), 0, first)
    }

    /// Whether a condition (i1) holds for any element along a dimension, which the result lacks.
    #[track_caller]
    #[must_use]
    pub fn any(self, dim: impl Into<Symbol>) -> Value {
        self.tracer().select(self, 1, 0).max(dim).not_equal(0)
    }

    /// Whether a condition (i1) holds for all elements along a dimension, which the result lacks.
    #[track_caller]
    #[must_use]
    pub fn all(self, dim: impl Into<Symbol>) -> Value {
        self.tracer().select(self, 1, 0).min(dim).not_equal(0)
    }

    /// The mean of f32 elements along a dimension, which the result lacks; cast others first.
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
    pub fn mean(self, dim: impl Into<Symbol>) -> Value {
        let dim = dim.into();
        self.sum(dim) / self.tracer().size(dim).cast(DType::F32)
    }
}
