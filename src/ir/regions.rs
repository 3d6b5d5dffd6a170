//! Loops and conditionals as authors trace them, and the numbers that decide what they do.

use std::panic::Location as Caller;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::builder::{Frame, Tracer, Value, with};
use super::constraint::{MAX_AXES, no_axis};
use super::expr::Symbol;
use super::node::*;
use super::types::DType;

impl Frame {
    /// [`Frame::own`], of values.
    fn own_values(&mut self, caller: &'static Caller<'static>, values: &[Value]) -> bool {
        let values: SmallVec<[_; 4]> = values.iter().map(|v| (v.node, v.trace)).collect();
        self.own(caller, &values)
    }
}

impl Tracer {
    /// The place of the workgroup along grid axis `axis` (0 to 4), as an i32 value without dimensions. What a
    /// kernel writes depends on it, so it has the dimension that is spread over that axis.
    #[track_caller]
    pub fn workgroup_id(&self, axis: u32) -> Value {
        let caller = Caller::caller();
        let axis = with(self.trace, |f| {
            f.check(caller, if (axis as usize) < MAX_AXES { Ok(axis) } else { Err(no_axis()) })
        });
        let Some(axis) = axis.flatten() else {
            return Value { node: Entity::PLACEHOLDER, trace: self.trace };
        };
        let ty = ValueType { dims: Dims::new(), dtype: Some(DType::I32) };
        self.node(caller, Op::WorkgroupId(axis), &[], ty)
    }

    /// The number of the running iteration of the loop over `dim`, as an i32 value without dimensions: the
    /// first tile of the dimension is number 0.
    #[track_caller]
    pub fn iteration(&self, dim: impl Into<Symbol>) -> Value {
        self.about(Caller::caller(), dim.into(), |dim| (Op::Iteration(dim), Dims::new()))
    }

    /// A loop over the tiles of `axis`. `body` is traced once; its parameters are the carried values, its
    /// results the next ones. Returns the values carried out of the last iteration (`init` if there is
    /// none).
    #[track_caller]
    pub fn iterate<const N: usize>(
        &self,
        axis: impl Into<Symbol>,
        init: [Value; N],
        body: impl FnOnce(&Tracer, [Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let caller = Caller::caller();
        let axis = axis.into();
        let op = with(self.trace, |f| {
            let dim = f.nodes.dim(axis);
            f.check(caller, dim).map(Op::Iterate)
        });
        let Some(op) = op.flatten() else { return init };
        self.carrying(caller, op, init, None, |w, args| (body(w, args), None))
    }

    /// Runs `body` if `condition` holds: i1 without dimensions, from numbers that the whole workgroup has in
    /// common (sizes, scalars, [`Tracer::workgroup_id`], [`Tracer::iteration`], reductions over all
    /// dimensions). Returns what `body` returns, or `init` if the condition does not hold.
    ///
    /// # Example
    /// ```
    /// # use groundswell::prelude::*;
    /// let n = Symbol::new("N");
    /// let kernel = Kernel::trace("square_or_not", |w| {
    ///     w.distribute([workgroup(n, 64, 0)]);
    ///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [n], Global, F32));
    ///     let power = w.scalar("power", I32);
    ///     let [y] = w.conditional(power.equal(2), [w.read(a)], |_, [x]| [x * x]);
    ///     w.write(y, b);
    /// })?;
    /// # kernel.compile(&Options::new(Target::GFX942).set(n, 100))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn conditional<const N: usize>(
        &self,
        condition: Value,
        init: [Value; N],
        body: impl FnOnce(&Tracer, [Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let caller = Caller::caller();
        self.carrying(caller, Op::Conditional, init, Some(condition), |w, args| (body(w, args), None))
    }

    /// A loop that runs as long as `condition` holds of the carried values, as in [`Tracer::conditional`].
    /// Both closures are traced: `condition` for the initial values and for the next ones. Returns the values
    /// of which the condition does not hold; without any iteration these are `init`.
    ///
    /// # Example
    /// ```
    /// # use groundswell::prelude::*;
    /// let m = Symbol::new("M");
    /// let kernel = Kernel::trace("next_power_of_two", |w| {
    ///     w.distribute([workgroup(m, 64, 0)]);
    ///     let least = w.scalar("least", I32);
    ///     let out = w.memory("out", [m], Global, I32);
    ///     let one = w.register([], I32, 1.0);
    ///     let [power] = w.iterate_while([one], |_, [x]| x.less(least), |_, [x]| [x + x]);
    ///     w.write(power.broadcast([m]), out);
    /// })?;
    /// # kernel.compile(&Options::new(Target::GFX942).set(m, 100))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn iterate_while<const N: usize>(
        &self,
        init: [Value; N],
        condition: impl Fn(&Tracer, [Value; N]) -> Value,
        body: impl FnOnce(&Tracer, [Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let caller = Caller::caller();
        let first = condition(self, init);
        self.carrying(caller, Op::While, init, Some(first), |w, args| {
            let next = body(w, args);
            (next, Some(condition(w, next)))
        })
    }

    /// A node with a region: its arguments, what `body` makes of them, and its results.
    fn carrying<const N: usize>(
        &self,
        caller: &'static Caller<'static>,
        op: Op,
        init: [Value; N],
        condition: Option<Value>,
        body: impl FnOnce(&Tracer, [Value; N]) -> ([Value; N], Option<Value>),
    ) -> [Value; N] {
        let operands: SmallVec<[Value; 4]> = init.into_iter().chain(condition).collect();
        let node = with(self.trace, |f| {
            if !f.own_values(caller, &operands) {
                return None;
            }
            let origin = f.location(caller);
            let operands: SmallVec<[Entity; 4]> = operands.iter().map(|v| v.node).collect();
            Some(f.nodes.open_region(origin, op, &operands))
        });
        let Some(node) = node.flatten() else { return init };
        let mut number = 0;
        let args = init.map(|_| {
            number += 1;
            self.node(caller, Op::IterArg(number - 1), &[], ValueType::unknown())
        });
        let (next, again) = body(self, args);
        let yields: SmallVec<[Value; 4]> = next.into_iter().chain(again).collect();
        with(self.trace, |f| {
            f.own_values(caller, &yields);
            let yields: SmallVec<[Entity; 4]> = yields.iter().map(|v| v.node).collect();
            f.nodes.close_loop(node, &yields);
        });
        let mut number = 0;
        init.map(|_| {
            number += 1;
            self.node(caller, Op::LoopResult(number - 1), &[(node, self.trace)], ValueType::unknown())
        })
    }
}
