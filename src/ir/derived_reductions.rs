//! Reductions that are made of other operations, as authors trace them: places of extrema, largest elements,
//! conditions on all elements, means.

use std::panic::Location as Caller;

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::assemble::derived::{DerivedReduction, Deriver};
use super::builder::{Value, with};
use super::expr::Symbol;
use super::layout::Dim;
use super::reduced_dims::ReducedDims;

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
        self.reduced(Caller::caller(), DerivedReduction::ArgMax, dims)
    }

    /// The place of the smallest element along a dimension, as [`Value::argmax`] otherwise.
    #[track_caller]
    #[must_use]
    pub fn argmin(self, dims: impl ReducedDims) -> Value {
        self.reduced(Caller::caller(), DerivedReduction::ArgMin, dims)
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
        let caller = Caller::caller();
        let dim = dim.into();
        let found = with(self.trace, |f| {
            if !f.own(caller, &[(self.node, self.trace)]) {
                return None;
            }
            let entered = f.nodes.dim(dim);
            let dim = f.check(caller, entered)?;
            let origin = f.location(caller);
            Some(Deriver::new(&mut f.nodes, origin).topk(self.node, dim, count))
        });
        let value = |node| Value { node, trace: self.trace };
        match found.flatten() {
            Some(found) => {
                let elements = found.into_iter();
                elements.map(|(node, place)| TopElement { value: value(node), place: value(place) }).collect()
            }
            None => (0..count).map(|_| TopElement { value: self, place: self }).collect(),
        }
    }

    /// Whether a condition (i1) holds for any element along dimensions, which the result lacks.
    #[track_caller]
    #[must_use]
    pub fn any(self, dims: impl ReducedDims) -> Value {
        self.reduced(Caller::caller(), DerivedReduction::Any, dims)
    }

    /// Whether a condition (i1) holds for all elements along dimensions, which the result lacks.
    #[track_caller]
    #[must_use]
    pub fn all(self, dims: impl ReducedDims) -> Value {
        self.reduced(Caller::caller(), DerivedReduction::All, dims)
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
        self.reduced(Caller::caller(), DerivedReduction::Mean, dims)
    }

    fn reduced(
        self,
        caller: &'static Caller<'static>,
        op: DerivedReduction,
        dims: impl ReducedDims,
    ) -> Value {
        let symbols = dims.symbols();
        let dims = with(self.trace, |f| {
            let dims = symbols.iter().map(|&dim| f.nodes.dim(dim)).collect::<Result<SmallVec<[Dim; 4]>, _>>();
            f.check(caller, dims)
        });
        match dims.flatten() {
            Some(dims) => self.derived(caller, |derive| derive.reduction(op, self.node, &dims)),
            None => self,
        }
    }
}

impl Value {
    /// The value of what is derived of this one.
    fn derived(
        self,
        caller: &'static Caller<'static>,
        derive: impl FnOnce(&mut Deriver<'_>) -> Entity,
    ) -> Value {
        let node = with(self.trace, |f| {
            if !f.own(caller, &[(self.node, self.trace)]) {
                return Entity::PLACEHOLDER;
            }
            let origin = f.location(caller);
            derive(&mut Deriver::new(&mut f.nodes, origin))
        });
        Value { node: node.unwrap_or(Entity::PLACEHOLDER), trace: self.trace }
    }
}
