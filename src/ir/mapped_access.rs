//! Tracing of accesses: reads, writes and atomic updates, at coordinates and without.

use std::panic::Location as Caller;

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::access_flags::MemoryAccessFlags;
use super::assemble::derived::Deriver;
use super::builder::{MemoryRef, Tracer, Value, with};
use super::coordinates::{Coordinate, IntoCoordinates, TracedValue, mapping_of};
use super::diagnostic::Diagnostic;
use super::expr::Symbol;
use super::node::*;

impl From<Value> for Coordinate {
    fn from(value: Value) -> Coordinate {
        Coordinate::of_value((value.node, value.trace))
    }
}

impl Coordinate {
    /// The coordinate with an i32 value in place of a symbol: how an expression that is given becomes one of
    /// values.
    #[must_use]
    pub fn with_value(self, symbol: impl Into<Symbol>, value: Value) -> Coordinate {
        self.with_traced(symbol.into(), (value.node, value.trace))
    }
}

impl MemoryRef {
    /// The same memory, whose accesses by this reference are *volatile*: each is made exactly as often as the
    /// kernel says, in this order among all volatile ones, and sees and shows what other devices and the host
    /// do while the kernel runs. Of reads and writes of kernel arguments.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let n = Symbol::new("N");
    /// let twice = Kernel::trace("twice", |w| {
    ///     w.distribute([workgroup(n, 64, 0)]);
    ///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [n], Global, F32));
    ///     // Two reads: another device may write in between.
    ///     w.write(w.read(a.volatile()) - w.read(a.volatile()), b);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn volatile(self) -> MemoryRef {
        MemoryRef { flags: MemoryAccessFlags { volatile: true, ..self.flags }, ..self }
    }

    /// The same memory, whose accesses by this reference are *non-temporal*: caches are told that nobody will
    /// want the data again soon (`nt`), and keep other data instead. Of reads and writes of kernel arguments.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let copy = Kernel::trace("copy", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
    ///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
    ///     w.write(w.read(a.non_temporal()), b.non_temporal());
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn non_temporal(self) -> MemoryRef {
        MemoryRef { flags: MemoryAccessFlags { non_temporal: true, ..self.flags }, ..self }
    }
}

impl Value {
    /// Elements of this value in other places: a value of dimensions `dims` whose elements are those at the
    /// coordinates `at`, which are written as those of [`Tracer::read_at`]. Elements outside are zero. So
    /// elements change places inside of a workgroup, through LDS: one of them is taken out, rows are cut,
    /// turned, reversed or exchanged. Along a dimension that is divided among workgroups or iterations, the
    /// coordinate is the dimension itself.
    ///
    /// # Example
    /// The difference of neighbours, and each element divided by the first one of its row:
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let differences = Kernel::trace("differences", |w| {
    ///     w.distribute([workgroup(m, 4, 0)]);
    ///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
    ///     let e = w.read(a).exp();
    ///     let first = e.at((m, 0), [m]);
    ///     w.write((e - e.at((m, n - 1), [m, n])) / first, b);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn at<const N: usize>(self, at: impl IntoCoordinates, dims: [Symbol; N]) -> Value {
        let tracer = Tracer { trace: self.trace };
        tracer.elements(Caller::caller(), MemoryRef::new(Some(self.node), self.trace), at, dims)
    }
}

impl Tracer {
    /// Reads the tile of `memory` that the distribution gives. Elements outside the memory are zero.
    #[doc(alias("load"))]
    #[track_caller]
    pub fn read(&self, memory: MemoryRef) -> Value {
        self.access(Caller::caller(), Op::Read, &[], memory)
    }

    /// Writes `value` to its tile of `memory`. Elements outside the memory are dropped.
    #[doc(alias("store"))]
    #[track_caller]
    pub fn write(&self, value: Value, memory: MemoryRef) {
        self.access(Caller::caller(), Op::Write, &[value], memory);
    }

    /// Reads elements of `memory` as a value of other dimensions: the element at `dims` is the one at the
    /// coordinates `at`, an expression for each dimension of the memory. In the expressions a dimension of
    /// the value is the coordinate along it, any other symbol is a size, and an i32 value is its element at
    /// the same coordinates (its dimensions are among `dims`). Elements outside the memory are zero, along
    /// each of its dimensions. Without dimensions it is one element, which all lanes have.
    ///
    /// # Example
    /// Rows of a table, chosen by an index for each, and a transposed read:
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n, rows] = symbols(["M", "N", "ROWS"]);
    /// let gather = Kernel::trace("gather", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
    ///     let table = w.memory("table", [rows, n], Global, F32);
    ///     let ids = w.memory("ids", [m], Global, I32);
    ///     let out = w.memory("out", [m, n], Global, F32);
    ///     w.write(w.read_at(table, (w.read(ids), n), [m, n]), out);
    /// })?;
    /// let transpose = Kernel::trace("transpose", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
    ///     let x = w.memory("x", [n, m], Global, F32);
    ///     let y = w.memory("y", [m, n], Global, F32);
    ///     w.write(w.read_at(x, [n, m], [m, n]), y);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn read_at<const N: usize>(
        &self,
        memory: MemoryRef,
        at: impl IntoCoordinates,
        dims: [Symbol; N],
    ) -> Value {
        self.elements(Caller::caller(), memory, at, dims)
    }

    fn elements<const N: usize>(
        &self,
        caller: &'static Caller<'static>,
        memory: MemoryRef,
        at: impl IntoCoordinates,
        dims: [Symbol; N],
    ) -> Value {
        // One element has no dimension, but is accessed along one of one element.
        if N == 0 {
            let value = self.elements(caller, memory, at, [Symbol::from(1u32)]);
            let one = with(self.trace, |f| {
                let origin = f.location(caller);
                let one = Deriver::new(&mut f.nodes, origin).only_element(value.node);
                f.check(caller, one)
            });
            return Value { node: one.flatten().unwrap_or(Entity::PLACEHOLDER), trace: self.trace };
        }
        let dims = with(self.trace, |f| {
            let dims = f.nodes.dims(&dims);
            f.check(caller, dims)
        });
        let ty = ValueType { dims: dims.flatten().unwrap_or_default(), dtype: None };
        self.mapped(caller, Op::Read, &[], memory, at, ty)
    }

    /// Writes each element of `value` to the coordinates `at` of `memory`, which are written as those of
    /// [`Tracer::read_at`]; the dimensions are those of the value. Elements outside the memory are dropped.
    /// If several elements are written to one place, it holds one of them afterwards.
    #[track_caller]
    pub fn write_at(&self, value: Value, memory: MemoryRef, at: impl IntoCoordinates) {
        let written = [(value.node, value.trace)];
        self.mapped(Caller::caller(), Op::Write, &written, memory, at, ValueType::unknown());
    }

    /// Joins each element of `value` with its element of `memory`, in one step that nothing comes between,
    /// and gives what the memory held before. Other elements are joined in no defined order.
    ///
    /// # Example
    /// The sum of all elements of each column, by as many workgroups as there are tiles:
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let sums = Kernel::trace("sums", |w| {
    ///     w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1)]);
    ///     let x = w.memory("x", [m, n], Global, F32);
    ///     let sums = w.memory("sums", [n], Global, F32);
    ///     w.atomic_at(AtomicOp::Add, w.read(x), sums, [n]);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn atomic(&self, op: AtomicOp, value: Value, memory: MemoryRef) -> Value {
        self.update(Caller::caller(), op, &[value], memory)
    }

    /// As [`Tracer::atomic`], at the coordinates `at` of `memory`, which are written as those of
    /// [`Tracer::read_at`]: several elements may be joined with one of the memory, as in a histogram.
    /// Elements outside the memory are dropped, and the result has zeros for them.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [n, bins] = symbols(["N", "BINS"]);
    /// let histogram = Kernel::trace("histogram", |w| {
    ///     w.distribute([workgroup(n, 1024, 0)]);
    ///     let x = w.memory("x", [n], Global, I32);
    ///     let counts = w.memory("counts", [bins], Global, I32);
    ///     w.atomic_at(AtomicOp::Add, w.register([n], I32, 1.0), counts, [w.read(x)]);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn atomic_at(
        &self,
        op: AtomicOp,
        value: Value,
        memory: MemoryRef,
        at: impl IntoCoordinates,
    ) -> Value {
        self.update_at(Caller::caller(), op, &[value], memory, at)
    }

    /// Puts each element of `new` in place of its element of `memory`, in one step, if the memory holds that
    /// of `expected`, and gives what it held before: where that is the expected element, it was exchanged.
    /// All three have one dtype, i32 or i64; for others, exchange their bits ([`Value::bitcast`]).
    ///
    /// # Example
    /// Each element takes the first of the slots in its row that nobody has:
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, slots] = symbols(["M", "SLOTS"]);
    /// let taken = Kernel::trace("taken", |w| {
    ///     w.distribute([workgroup(m, 64, 0)]);
    ///     let owners = w.memory("owners", [slots], Global, I32);
    ///     let wanted = w.memory("wanted", [m], Global, I32);
    ///     let is_mine = w.memory("is_mine", [m], Global, I32);
    ///     let nobody = w.register([m], I32, 0.0);
    ///     let before = w.compare_exchange_at(nobody, w.self_index(m) + 1, owners, [w.read(wanted)]);
    ///     w.write(w.select(before.equal(0), w.register([m], I32, 1.0), 0), is_mine);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn compare_exchange(&self, expected: Value, new: Value, memory: MemoryRef) -> Value {
        self.update(Caller::caller(), AtomicOp::CompareExchange, &[expected, new], memory)
    }

    /// As [`Tracer::compare_exchange`], at the coordinates `at` of `memory`, which are written as those of
    /// [`Tracer::read_at`]. Elements outside the memory are dropped, and the result has zeros for them.
    #[track_caller]
    pub fn compare_exchange_at(
        &self,
        expected: Value,
        new: Value,
        memory: MemoryRef,
        at: impl IntoCoordinates,
    ) -> Value {
        self.update_at(Caller::caller(), AtomicOp::CompareExchange, &[expected, new], memory, at)
    }

    fn update(
        &self,
        caller: &'static Caller<'static>,
        op: AtomicOp,
        values: &[Value],
        memory: MemoryRef,
    ) -> Value {
        self.check_values(caller, op, values);
        let update = self.access(caller, Op::Atomic(op), values, memory);
        with(self.trace, |f| f.nodes.map_to_itself(update.node, memory.node));
        update
    }

    pub(super) fn update_at(
        &self,
        caller: &'static Caller<'static>,
        op: AtomicOp,
        values: &[Value],
        memory: MemoryRef,
        at: impl IntoCoordinates,
    ) -> Value {
        self.check_values(caller, op, values);
        let joined: SmallVec<[TracedValue; 2]> = values.iter().map(|v| (v.node, v.trace)).collect();
        self.mapped(caller, Op::Atomic(op), &joined, memory, at, ValueType::unknown())
    }

    /// Refuses an update by another number of values than it takes.
    fn check_values(&self, caller: &'static Caller<'static>, op: AtomicOp, values: &[Value]) {
        if values.len() != op.values() {
            let text = format!("`{}` takes {} values", op.row().word, op.values());
            let help = "the second one comes where the memory holds the first: `w.compare_exchange(..)`";
            with(self.trace, |f| f.check::<()>(caller, Err(Diagnostic::invalid(text).help(help))));
        }
    }

    /// An access of a memory's own tile.
    fn access(&self, caller: &'static Caller<'static>, op: Op, values: &[Value], memory: MemoryRef) -> Value {
        let mut operands: SmallVec<[TracedValue; 4]> = values.iter().map(|v| (v.node, v.trace)).collect();
        operands.push((memory.node, memory.trace));
        let node = with(self.trace, |f| {
            if !f.own(caller, &operands) {
                return None;
            }
            let front: SmallVec<[Entity; 2]> = values.iter().map(|value| value.node).collect();
            let origin = f.location(caller);
            let node = f.nodes.access(origin, op, &front, memory.node);
            f.check(caller, node)
        });
        let access = Value { node: node.flatten().unwrap_or(Entity::PLACEHOLDER), trace: self.trace };
        self.flag(caller, access, memory);
        access
    }

    /// Gives an access the flags of the reference by which it is made.
    fn flag(&self, caller: &'static Caller<'static>, access: Value, memory: MemoryRef) {
        if !memory.flags.is_empty() {
            with(self.trace, |f| {
                let flagged = f.nodes.flag(access.node, memory.flags);
                f.check(caller, flagged)
            });
        }
    }

    fn mapped(
        &self,
        caller: &'static Caller<'static>,
        op: Op,
        front: &[TracedValue],
        memory: MemoryRef,
        at: impl IntoCoordinates,
        ty: ValueType,
    ) -> Value {
        let (mapping, values) = mapping_of(at);
        let resolved = with(self.trace, |f| {
            let mapping = f.check(caller, mapping.checked(values.len()))?;
            if !f.own(caller, &values) {
                return None;
            }
            let mut values = values.iter().map(|value| value.0).collect();
            let origin = f.location(caller);
            let mapping = Deriver::new(&mut f.nodes, origin).coordinates(mapping, &mut values);
            f.check(caller, mapping).map(|mapping| (mapping, values))
        });
        let Some((mapping, values)) = resolved.flatten() else {
            return Value { node: Entity::PLACEHOLDER, trace: self.trace };
        };
        let mut operands: SmallVec<[TracedValue; 4]> = SmallVec::from_slice(front);
        operands.extend(values.into_iter().map(|node| (node, self.trace)));
        operands.push((memory.node, memory.trace));
        let access = self.node(caller, op, &operands, ty);
        with(self.trace, |f| f.nodes.map(access.node, mapping));
        self.flag(caller, access, memory);
        access
    }
}
