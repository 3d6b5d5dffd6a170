//! Expressions as values, and symbols that are set to values, as authors trace them.

use std::panic::Location as Caller;

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::assemble::derived::Deriver;
use super::assemble::following::FollowingDim;
use super::builder::{Tracer, Value, with};
use super::coordinates::{Coordinate, mapping_of};
use super::diagnostic::Diagnostic;
use super::expr::{SymExpr, Symbol};
use super::types::DType;

impl Tracer {
    /// The value of an expression over symbols and values: i32, with the dimensions of its values. A symbol
    /// is what it was set to ([`Tracer::set_symbol`]), the place of the workgroup or the size of the grid
    /// along an axis ([`workgroup_id`](crate::prelude::workgroup_id),
    /// [`grid_size`](crate::prelude::grid_size)), and otherwise a size. It is computed like arithmetic on
    /// values: in 32 bits, and what is divided by zero is zero.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let middle = Kernel::trace("from_the_middle", |w| {
    ///     w.distribute([workgroup(m, 64, 0)]);
    ///     let out = w.memory("out", [m], Global, I32);
    ///     let place = Coordinate::from(w.self_index(m));
    ///     w.write(w.apply_expr((place + m / 2) % m), out);
    /// })?;
    /// # middle.compile(&Options::new(Target::GFX942).set(m, 100))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn apply_expr(&self, expression: impl Into<Coordinate>) -> Value {
        self.of_expression(Caller::caller(), expression.into(), |derive, e, values| {
            derive.expression(e, values)
        })
    }

    /// A value of the given shape whose elements are all the value of an expression, as of
    /// [`Tracer::apply_expr`].
    #[track_caller]
    pub fn register_of<const N: usize>(
        &self,
        shape: [Symbol; N],
        dtype: DType,
        expression: impl Into<Coordinate>,
    ) -> Value {
        self.of_expression(Caller::caller(), expression.into(), |derive, e, values| {
            derive.register_of(&shape, dtype, e, values)
        })
    }

    fn of_expression(
        &self,
        caller: &'static Caller<'static>,
        expression: Coordinate,
        derive: impl FnOnce(&mut Deriver<'_>, &SymExpr, &[Entity]) -> Result<Entity, Diagnostic>,
    ) -> Value {
        let node = with(self.trace, |f| {
            let (mapping, values) = mapping_of([expression]);
            if !f.own(caller, &values) {
                return None;
            }
            let nodes: SmallVec<[Entity; 2]> = values.iter().map(|value| value.0).collect();
            let origin = f.location(caller);
            let e = mapping.0.first()?;
            let node = derive(&mut Deriver::new(&mut f.nodes, origin), e, &nodes);
            f.check(caller, node)
        });
        Value { node: node.flatten().unwrap_or(Entity::PLACEHOLDER), trace: self.trace }
    }

    /// The dimension `dim` of memories goes with dimensions of values: reads, writes and updates of a memory
    /// that has it, without coordinates, take the place `place` along it, an expression over the dimensions
    /// `dims`, which values have instead, over sizes and i32 values. Below this no value has `dim`. A memory
    /// that is written is at a place of its own for each element along `dims`.
    ///
    /// # Example
    /// Four heads of queries share one of keys:
    /// ```
    /// use groundswell::prelude::*;
    /// let [h, kv, m, k] = symbols(["H", "KV", "M", "K"]);
    /// let scores = Kernel::trace("scores", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(h, 1, 1)]);
    ///     w.follow(kv, h / 4, [h]);
    ///     let queries = w.memory("queries", [h, m, k], Global, F32);
    ///     let keys = w.memory("keys", [kv, k], Global, F32);
    ///     let scores = w.memory("scores", [h, m], Global, F32);
    ///     w.write((w.read(queries) * w.read(keys)).sum(k), scores);
    /// })?;
    /// # scores.compile(&Options::new(Target::GFX942).set(h, 8).set(kv, 2).set(m, 20).set(k, 64))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn follow<const N: usize>(
        &self,
        dim: impl Into<Symbol>,
        place: impl Into<Coordinate>,
        dims: [Symbol; N],
    ) {
        let caller = Caller::caller();
        let (symbol, (mapping, values)) = (dim.into(), mapping_of([place.into()]));
        with(self.trace, |f| {
            if !f.own(caller, &values) {
                return;
            }
            let origin = f.location(caller);
            let values = values.iter().map(|value| value.0).collect();
            let dims = SmallVec::from_slice(&dims);
            let Some(place) = mapping.0.into_iter().next() else { return };
            let followed = f.nodes.follow(FollowingDim { symbol, place, values, dims, origin });
            f.check(caller, followed);
        });
    }

    /// From here on, up to the end of the loop or conditional around it, `symbol` stands for an i32 value in
    /// coordinates and in expressions; one without dimensions also in the
    /// [`iterations`](crate::prelude::iterations) of loops, where of -2³⁰ to 2³⁰ - 1 the nearest counts, if
    /// these are stated above. So a scalar argument is bound to a symbol, and coordinates speak of
    /// what was computed or read.
    ///
    /// # Example
    /// Rows that begin where the launch says:
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, rows, n, start] = symbols(["M", "ROWS", "N", "START"]);
    /// let part = Kernel::trace("part", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
    ///     let all = w.memory("all", [rows, n], Global, F32);
    ///     let out = w.memory("out", [m, n], Global, F32);
    ///     w.set_symbol(start, w.scalar("start", I32));
    ///     w.write(w.read_at(all, (start + m, n), [m, n]), out);
    /// })?;
    /// # part.compile(&Options::new(Target::GFX942).set(m, 20).set(n, 70).set(rows, 50))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn set_symbol(&self, symbol: impl Into<Symbol>, value: Value) {
        let caller = Caller::caller();
        let symbol = symbol.into();
        with(self.trace, |f| {
            if f.own(caller, &[(value.node, value.trace)]) {
                let origin = f.location(caller);
                let set = f.nodes.set_symbol(origin, symbol, value.node);
                f.check(caller, set);
            }
        });
    }
}
