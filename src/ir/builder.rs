//! Tracing: a kernel is written as Rust closures over [`Tracer`] and operators on [`Value`], and every call
//! becomes a node.
//!
//! The kernel being traced lives in a thread-local stack, so that operators (`a * b + c`) need no builder
//! argument, and calls can be nested (`w.write(w.read(a), b)`): a [`Tracer`] only names a trace, and all of
//! its methods take `&self`. Nothing here panics: a mistake is remembered with the author's line, the call
//! returns a placeholder, and [`Kernel::trace`] returns the first mistake.

use std::cell::RefCell;
use std::ops;
use std::panic::Location as Caller;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::access_flags::MemoryAccessFlags;
use super::assemble::{KernelAssembler, check_register, is_identifier};
use super::constraint::Constraint;
use super::control::HardwareConstraint;
use super::diagnostic::{Diagnostic, Kind, Location};
use super::expr::Symbol;
use super::kernel::Kernel;
use super::layout::{Dim, MmaType};
use super::memory_layout::MemoryLayout;
use super::node::*;
use super::op::{
    binary_operations, conversions, predicates, reductions, ternary_operations, unary_operations,
};
use super::reduced_dims::ReducedDims;
use super::types::{AddressSpace, DType};

/// The result of a node, while its kernel is traced. Operators on it trace arithmetic.
#[derive(Copy, Clone, Debug)]
pub struct Value {
    pub(super) node: Entity,
    pub(super) trace: u32,
}

/// A tensor of the kernel, while it is traced.
#[derive(Copy, Clone, Debug)]
pub struct MemoryRef {
    pub(super) node: Entity,
    pub(super) trace: u32,
    /// Those of accesses by this reference.
    pub(super) flags: MemoryAccessFlags,
}

impl MemoryRef {
    /// A reference without flags to a node, if there is one.
    pub(super) fn new(node: Option<Entity>, trace: u32) -> MemoryRef {
        let node = node.unwrap_or(Entity::PLACEHOLDER);
        MemoryRef { node, trace, flags: MemoryAccessFlags::default() }
    }
}

/// The kernel that is being traced. All of its calls record the caller's file and line, and may be arguments
/// of each other.
pub struct Tracer {
    pub(super) trace: u32,
}

pub(super) struct Frame {
    id: u32,
    pub(super) nodes: KernelAssembler,
    last_caller: Option<(&'static Caller<'static>, Origin)>,
    error: Option<Diagnostic>,
}

thread_local! {
    static STACK: RefCell<(u32, Vec<Frame>)> = const { RefCell::new((0, Vec::new())) };
}

/// Pops the frame even when the author's closure panics.
struct PopOnDrop;

impl Drop for PopOnDrop {
    fn drop(&mut self) {
        STACK.with_borrow_mut(|(_, frames)| drop(frames.pop()));
    }
}

/// Runs `f` on the frame `id`, if it is still open on this thread.
pub(super) fn with<R>(id: u32, f: impl FnOnce(&mut Frame) -> R) -> Option<R> {
    STACK.with_borrow_mut(|(_, frames)| frames.iter_mut().rev().find(|frame| frame.id == id).map(f))
}

impl Frame {
    pub(super) fn location(&mut self, caller: &'static Caller<'static>) -> Origin {
        if let Some((last, at)) = self.last_caller
            && std::ptr::eq(last, caller)
        {
            return at;
        }
        let file = match self.nodes.last_location() {
            Some(l) if &*l.file == caller.file() => l.file.clone(),
            _ => Arc::from(caller.file()),
        };
        let at = self.nodes.location(Location { file, line: caller.line(), column: caller.column() });
        self.last_caller = Some((caller, at));
        at
    }

    fn fail(&mut self, caller: &'static Caller<'static>, diagnostic: Diagnostic) {
        let at = self.location(caller);
        // Beyond the limit of operations values are missing, which is not a mistake in itself.
        if self.error.is_none() && self.nodes.excess().is_none() {
            self.error = Some(diagnostic.at(self.nodes.location_of(at)));
        }
    }

    /// The value of a result; an error is remembered.
    pub(super) fn check<T>(
        &mut self,
        caller: &'static Caller<'static>,
        result: Result<T, Diagnostic>,
    ) -> Option<T> {
        result.map_err(|diagnostic| self.fail(caller, diagnostic)).ok()
    }

    /// Checks that values belong to this trace.
    pub(super) fn own(&mut self, caller: &'static Caller<'static>, values: &[(Entity, u32)]) -> bool {
        let own = values.iter().all(|&(node, trace)| trace == self.id && self.nodes.contains(node));
        if !own {
            let text = "a value of another kernel is used here";
            self.fail(
                caller,
                Diagnostic::invalid(text).help("use only values traced inside this kernel's closure"),
            );
        }
        own
    }
}

impl Kernel {
    /// Traces a kernel: runs `body` once and records what it does.
    ///
    /// # Errors
    /// The first mistake made while tracing, with the author's line.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let double = Kernel::trace("double", |w| {
    ///     w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1)]);
    ///     let a = w.memory("a", [m, n], Global, F32);
    ///     let b = w.memory("b", [m, n], Global, F32);
    ///     w.write(2.0 * w.read(a), b);
    /// })?;
    /// assert_eq!(double.name(), "double");
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn trace(name: &str, body: impl FnOnce(&Tracer)) -> Result<Kernel, Diagnostic> {
        let caller = Caller::caller();
        let declaration = Location::from(caller);
        let id = STACK.with_borrow_mut(|(next, frames)| {
            *next += 1;
            frames.push(Frame { id: *next, nodes: KernelAssembler::new(), last_caller: None, error: None });
            *next
        });
        let guard = PopOnDrop;
        if !is_identifier(name) {
            let text = format!("`{name}` is not a kernel name");
            with(id, |f| {
                f.fail(caller, Diagnostic::invalid(text).help("use letters, digits and underscores"))
            });
        }
        body(&Tracer { trace: id });
        let frame = STACK.with_borrow_mut(|(_, frames)| frames.pop());
        std::mem::forget(guard);
        match frame {
            None => Err(Diagnostic::new(Kind::Bug, "the trace was closed twice")),
            Some(Frame { error: Some(error), .. }) => Err(error),
            Some(frame) => frame.nodes.finish(name, declaration).map_err(|faults| {
                let none = || Diagnostic::new(Kind::Bug, "a kernel was refused without a fault");
                faults.into_iter().next().unwrap_or_else(none)
            }),
        }
    }
}

impl Tracer {
    pub(super) fn node(
        &self,
        caller: &'static Caller<'static>,
        op: Op,
        operands: &[(Entity, u32)],
        ty: ValueType,
    ) -> Value {
        let nodes: SmallVec<[Entity; 4]> = operands.iter().map(|o| o.0).collect();
        let node = with(self.trace, |f| {
            if !f.own(caller, operands) {
                return Entity::PLACEHOLDER;
            }
            let origin = f.location(caller);
            f.nodes.push(origin, op, &nodes, ty)
        });
        Value { node: node.unwrap_or(Entity::PLACEHOLDER), trace: self.trace }
    }

    /// Adds distribution constraints and assumptions; all of them hold for the whole kernel.
    #[track_caller]
    pub fn distribute(&self, constraints: impl IntoIterator<Item = Constraint>) {
        let caller = Caller::caller();
        // Collected first, because the iterator is the author's code and may trace.
        let constraints: Vec<_> = constraints.into_iter().collect();
        with(self.trace, |f| {
            let at = f.location(caller);
            for constraint in constraints {
                f.nodes.constrain(constraint, at);
            }
        });
    }

    /// Sets the matrix instruction of all `mma` calls that do not choose their own: an
    /// [`Mma`](super::layout::Mma), or a [`MatrixShape`](super::layout::MatrixShape) for the chip's best one
    /// of that shape.
    #[track_caller]
    pub fn mma_type(&self, mma: impl Into<MmaType>) {
        self.distribute([Constraint::MmaType(mma.into())]);
    }

    /// A tensor argument of the kernel. Dims are outermost first, row-major; a number is a dimension of that
    /// size, and equal numbers are the same dimension: `[m, 64.into()]`. `Shared` asks for promotion to
    /// LDS: reads go through a tile that the workgroup loads together.
    #[track_caller]
    pub fn memory<const N: usize>(
        &self,
        name: &str,
        shape: [Symbol; N],
        space: AddressSpace,
        dtype: DType,
    ) -> MemoryRef {
        let caller = Caller::caller();
        let node = with(self.trace, |f| {
            let origin = f.location(caller);
            let node = f.nodes.memory(origin, name, &shape, space, dtype);
            f.check(caller, node)
        });
        MemoryRef::new(node.flatten(), self.trace)
    }

    /// An LDS buffer of the workgroup, whose contents are undefined until they are written. It holds what the
    /// workgroup has of its dimensions, and stays from one iteration of a loop to the next. It is read and
    /// written like a memory, at coordinates too, and the compiler places the barriers.
    ///
    /// # Example
    /// Rows from their last element to their first:
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let reversed = Kernel::trace("reversed", |w| {
    ///     w.distribute([workgroup(m, 4, 0), wave(n, 64)]);
    ///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
    ///     let rows = w.allocate([m, n], F32);
    ///     w.write(w.read(a).exp(), rows);
    ///     let last = Coordinate::from(w.size(n)) - 1;
    ///     w.write(w.read_at(rows, (m, last - n), [m, n]), b);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn allocate<const N: usize>(&self, shape: [Symbol; N], dtype: DType) -> MemoryRef {
        let caller = Caller::caller();
        let node = with(self.trace, |f| {
            let origin = f.location(caller);
            let node = f.nodes.allocate(origin, &shape, dtype);
            f.check(caller, node)
        });
        MemoryRef::new(node.flatten(), self.trace)
    }

    /// As [`Tracer::memory`], with elements that lie as `layout` says.
    #[track_caller]
    pub fn memory_in<const N: usize>(
        &self,
        name: &str,
        shape: [Symbol; N],
        layout: &MemoryLayout,
        space: AddressSpace,
        dtype: DType,
    ) -> MemoryRef {
        let caller = Caller::caller();
        let node = with(self.trace, |f| {
            let origin = f.location(caller);
            let node = f.nodes.memory(origin, name, &shape, space, dtype);
            let node = f.check(caller, node)?;
            let laid_out = f.nodes.lay_out(node, &layout.of_rank(N));
            f.check(caller, laid_out).map(|()| node)
        });
        MemoryRef::new(node.flatten(), self.trace)
    }

    /// A number that the launch gives, as an argument of the kernel: f32, f64, i32 or i64. It stands in
    /// arithmetic, comparisons and `select` beside values of its dtype, on either side; cast it for others.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let m = Symbol::new("M");
    /// let axpy = Kernel::trace("axpy", |w| {
    ///     w.distribute([workgroup(m, 64, 0)]);
    ///     let alpha = w.scalar("alpha", F32);
    ///     let [x, y] = ["x", "y"].map(|name| w.memory(name, [m], Global, F32));
    ///     w.write(alpha * w.read(x) + w.read(y), y);
    /// })?;
    /// let axpy = axpy.compile(&Options::new(Target::GFX942).set(m, 64))?;
    /// let device = Device::open()?;
    /// let [x, y] = [device.upload(&[2.0f32; 64])?, device.upload(&[1.0f32; 64])?];
    /// device.launch(&axpy).scalar(1.5f32).buffer(&x).buffer(&y).run()?;
    /// assert_eq!(y.download::<f32>()?, [4.0; 64]);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn scalar(&self, name: &str, dtype: DType) -> Value {
        let caller = Caller::caller();
        let node = with(self.trace, |f| {
            let origin = f.location(caller);
            let node = f.nodes.scalar(origin, name, dtype);
            f.check(caller, node)
        });
        Value { node: node.flatten().unwrap_or(Entity::PLACEHOLDER), trace: self.trace }
    }

    /// A value of the given shape whose elements are all `value`, rounded once to `dtype`; integer dtypes
    /// only take values that they hold. Integers of 64 bits are given as such: `1i64 << 60`.
    #[doc(alias("full", "ones", "zeros"))]
    #[track_caller]
    pub fn register<const N: usize>(
        &self,
        shape: [Symbol; N],
        dtype: DType,
        value: impl Into<Constant>,
    ) -> Value {
        let caller = Caller::caller();
        let dims = with(self.trace, |f| {
            let dims = f.nodes.dims(&shape);
            f.check(caller, dims)
        });
        let constant = match (dtype.is_float(), value.into()) {
            (false, Constant::Float(value)) if value.fract() == 0.0 && value.abs() < i64::MAX as f64 => {
                Constant::Integer(value as i64)
            }
            (_, constant) => constant.read_as(dtype),
        };
        with(self.trace, |f| f.check(caller, check_register(constant, dtype)));
        self.node(
            caller,
            Op::Register(constant),
            &[],
            ValueType { dims: dims.flatten().unwrap_or_default(), dtype: Some(dtype) },
        )
    }

    /// The place of each element along `dim` in the whole tensor: 0, 1, 2, ... as an i32 value of that
    /// dimension. Masks and positions are made of it.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let lower = Kernel::trace("lower_triangle", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
    ///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
    ///     let row = w.self_index(m).broadcast([m, n]);
    ///     w.write(w.select(w.self_index(n).less_equal(row), w.read(a), 0.0), b);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[doc(alias("arange"))]
    #[track_caller]
    pub fn self_index(&self, dim: impl Into<Symbol>) -> Value {
        self.about(Caller::caller(), dim.into(), |dim| (Op::SelfIndex(dim), smallvec![dim]))
    }

    /// The number of elements of `dim`, as an i32 value without dimensions.
    #[track_caller]
    pub fn size(&self, dim: impl Into<Symbol>) -> Value {
        self.about(Caller::caller(), dim.into(), |dim| (Op::Size(dim), Dims::new()))
    }

    /// A node about a dimension, i32.
    pub(super) fn about(
        &self,
        caller: &'static Caller<'static>,
        symbol: Symbol,
        node: impl FnOnce(Dim) -> (Op, Dims),
    ) -> Value {
        let dim = with(self.trace, |f| {
            let dim = f.nodes.dim(symbol);
            f.check(caller, dim)
        });
        let Some(dim) = dim.flatten() else {
            return Value { node: Entity::PLACEHOLDER, trace: self.trace };
        };
        let (op, dims) = node(dim);
        self.node(caller, op, &[], ValueType { dims, dtype: Some(DType::I32) })
    }

    /// Matrix product: `acc[m, n] + sum over k of lhs[m, k] * rhs[n, k]`, accumulated in acc's dtype.
    #[doc(alias("dot", "matmul"))]
    #[track_caller]
    pub fn mma(&self, lhs: Value, rhs: Value, acc: Value) -> Value {
        let operands = [(lhs.node, lhs.trace), (rhs.node, rhs.trace), (acc.node, acc.trace)];
        self.node(Caller::caller(), Op::Mma(MmaChoice::Kernel), &operands, ValueType::unknown())
    }

    /// [`Tracer::mma`] with a matrix instruction, or a shape, of its own.
    #[track_caller]
    pub fn mma_with(&self, mma: impl Into<MmaType>, lhs: Value, rhs: Value, acc: Value) -> Value {
        let operands = [(lhs.node, lhs.trace), (rhs.node, rhs.trace), (acc.node, acc.trace)];
        self.node(Caller::caller(), Op::Mma(mma.into().into()), &operands, ValueType::unknown())
    }

    /// An LDS fence and a barrier for the waves of the workgroup.
    #[track_caller]
    pub fn shared_memory_barrier(&self) {
        self.node(Caller::caller(), Op::Barrier, &[], ValueType::unknown());
    }

    /// A barrier for the waves of the workgroup, without waiting for memory.
    #[track_caller]
    pub fn workgroup_barrier(&self) {
        self.control(Caller::caller(), Control::WorkgroupBarrier);
    }

    /// A barrier for the waves that `condition` names; the others go on.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let kernel = Kernel::trace("late_half", |w| {
    ///     let hardware = w.get_hardware_constraint();
    ///     w.conditional_barrier(hardware.wave_id.greater_equal(hardware.waves_per_block / 2));
    ///     w.set_wave_priority(1);
    /// })?;
    /// let text = "kernel late_half {\n  conditional_barrier ge waves / 2\n  set_wave_priority 1\n}\n";
    /// assert_eq!(kernel.to_string(), text);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn conditional_barrier(&self, condition: WaveCondition) {
        self.control(Caller::caller(), Control::ConditionalBarrier(condition));
    }

    /// Sets the priority of the wave from here on: 0, as waves start, to 3.
    #[track_caller]
    pub fn set_wave_priority(&self, priority: u8) {
        self.control(Caller::caller(), Control::SetWavePriority(priority));
    }

    /// Keeps the scheduler from moving any instruction across this place.
    #[track_caller]
    pub fn scheduling_barrier(&self) {
        self.control(Caller::caller(), Control::SchedulingBarrier);
    }

    /// Waits until at most `left` loads from global memory are under way: 0 to 62.
    #[track_caller]
    pub fn wait_for_loads(&self, left: u8) {
        self.control(Caller::caller(), Control::WaitForLoads(left));
    }

    /// Waits until at most `left` accesses of LDS are under way: 0 to 14.
    #[track_caller]
    pub fn wait_for_shared(&self, left: u8) {
        self.control(Caller::caller(), Control::WaitForShared(left));
    }

    /// The values that conditions on waves are made of.
    pub fn get_hardware_constraint(&self) -> HardwareConstraint {
        HardwareConstraint::default()
    }

    fn control(&self, caller: &'static Caller<'static>, control: Control) {
        let control = with(self.trace, |f| f.check(caller, control.checked())).flatten();
        if let Some(control) = control {
            self.node(caller, Op::Control(control), &[], ValueType::unknown());
        }
    }

    /// `yes` where `condition` (an i1 value) holds, `no` elsewhere. Both may be numbers: a number next to a
    /// value has the value's dtype, two numbers are f32, or i32 if they are integers.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let m = Symbol::new("M");
    /// let clipped = Kernel::trace("clipped", |w| {
    ///     w.distribute([workgroup(m, 64, 0)]);
    ///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [m], Global, F32));
    ///     let x = w.read(a);
    ///     w.write(w.select(x.greater(6.0), 6.0, x), b);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[doc(alias("where"))]
    #[track_caller]
    pub fn select(&self, condition: Value, yes: impl ValueOperand, no: impl ValueOperand) -> Value {
        let caller = Caller::caller();
        let [yes, no] = [yes.into_value(self.trace, caller), no.into_value(self.trace, caller)];
        let operands = [(condition.node, condition.trace), (yes.node, yes.trace), (no.node, no.trace)];
        self.node(caller, Op::Select, &operands, ValueType::unknown())
    }
}

/// What arithmetic on values accepts: a value, or a number, which takes the dtype of the value that it is
/// combined with.
pub trait ValueOperand {
    /// The operand as a value of trace `trace`.
    #[doc(hidden)]
    fn into_value(self, trace: u32, caller: &'static Caller<'static>) -> Value;
}

impl ValueOperand for Value {
    fn into_value(self, _: u32, _: &'static Caller<'static>) -> Value {
        self
    }
}

fn number(trace: u32, caller: &'static Caller<'static>, constant: Constant) -> Value {
    Tracer { trace }.node(caller, Op::Register(constant), &[], ValueType { dims: smallvec![], dtype: None })
}

impl ValueOperand for f64 {
    fn into_value(self, trace: u32, caller: &'static Caller<'static>) -> Value {
        number(trace, caller, Constant::Float(self))
    }
}

impl ValueOperand for f32 {
    fn into_value(self, trace: u32, caller: &'static Caller<'static>) -> Value {
        number(trace, caller, Constant::Float(f64::from(self)))
    }
}

impl ValueOperand for i32 {
    fn into_value(self, trace: u32, caller: &'static Caller<'static>) -> Value {
        number(trace, caller, Constant::Integer(i64::from(self)))
    }
}

impl Value {
    fn unary_node(self, caller: &'static Caller<'static>, op: Op, ty: ValueType) -> Value {
        Tracer { trace: self.trace }.node(caller, op, &[(self.node, self.trace)], ty)
    }

    fn binary_node(self, caller: &'static Caller<'static>, op: Op, other: impl ValueOperand) -> Value {
        let other = other.into_value(self.trace, caller);
        let operands = [(self.node, self.trace), (other.node, other.trace)];
        Tracer { trace: self.trace }.node(caller, op, &operands, ValueType::unknown())
    }

    /// The value with the dimensions `shape`, in that order; it is repeated along those that it lacks.
    #[doc(alias("broadcast_to", "expand"))]
    #[track_caller]
    #[must_use]
    pub fn broadcast<const N: usize>(self, shape: [Symbol; N]) -> Value {
        self.broadcast_to(Caller::caller(), &shape)
    }

    /// As [`Value::broadcast`].
    pub(super) fn broadcast_to(self, caller: &'static Caller<'static>, shape: &[Symbol]) -> Value {
        let dims = with(self.trace, |f| {
            let dims = f.nodes.dims(shape);
            f.check(caller, dims)
        });
        self.unary_node(
            caller,
            Op::Broadcast,
            ValueType { dims: dims.flatten().unwrap_or_default(), dtype: None },
        )
    }

    fn reduce(self, caller: &'static Caller<'static>, op: ReductionOp, dims: impl ReducedDims) -> Value {
        dims.symbols().into_iter().fold(self, |value, dim| value.reduce_one(caller, op, dim))
    }

    fn reduce_one(self, caller: &'static Caller<'static>, op: ReductionOp, dim: Symbol) -> Value {
        self.along(caller, dim, |dim| Op::Reduce(Reduction { op, dim, parts: None }))
    }

    /// An operation on the value along one of its dimensions.
    pub(super) fn along(
        self,
        caller: &'static Caller<'static>,
        dim: Symbol,
        op: impl FnOnce(Dim) -> Op,
    ) -> Value {
        let dim = with(self.trace, |f| {
            let dim = f.nodes.dim(dim);
            f.check(caller, dim)
        });
        match dim.flatten() {
            Some(dim) => self.unary_node(caller, op(dim), ValueType::unknown()),
            None => self,
        }
    }

    /// Names the value's node for schedules and listings.
    #[track_caller]
    pub fn tag(self, tag: &str) -> Value {
        let caller = Caller::caller();
        with(self.trace, |f| {
            if f.own(caller, &[(self.node, self.trace)]) {
                f.nodes.tag(self.node, tag);
            }
        });
        self
    }

    /// Names the loop that carries the value, for schedules and listings; names the value's node if the value
    /// is not a loop's result.
    #[track_caller]
    pub fn tag_loop(self, tag: &str) -> Value {
        let caller = Caller::caller();
        with(self.trace, |f| {
            if f.own(caller, &[(self.node, self.trace)]) {
                let node = f.nodes.loop_of(self.node);
                f.nodes.tag(node, tag);
            }
        });
        self
    }
}

/// The methods of the rows of a table; a row with `operator` has no method, but an implementation of one of
/// Rust's operators below.
macro_rules! unary_methods {
    ($($op:ident $word:literal $method:ident $dtypes:ident $exactness:ident $doc:literal;)*) => {
        $(unary_methods!(@ $method $op $doc);)*
    };
    (@ operator $op:ident $doc:literal) => {};
    (@ $method:ident $op:ident $doc:literal) => {
        impl Value {
            #[doc = $doc]
            #[track_caller]
            #[must_use]
            pub fn $method(self) -> Value {
                self.unary_node(Caller::caller(), Op::Unary(UnaryOp::$op), ValueType::unknown())
            }
        }
    };
}
unary_operations!(unary_methods);

macro_rules! conversion_methods {
    ($($op:ident $word:literal $method:ident $dtypes:ident $result:ident $exactness:ident $doc:literal;)*) => {
        impl Value {
            $(
                #[doc = $doc]
                #[track_caller]
                #[must_use]
                pub fn $method(self, dtype: DType) -> Value {
                    let ty = ValueType { dims: Dims::new(), dtype: Some(dtype) };
                    self.unary_node(Caller::caller(), Op::Convert(Conversion::$op), ty)
                }
            )*
        }
    };
}
conversions!(conversion_methods);

macro_rules! binary_methods {
    ($($op:ident $word:literal $method:ident $dtypes:ident $exactness:ident $doc:literal;)*) => {
        $(binary_methods!(@ $method Op::Binary(BinaryOp::$op), $doc);)*
    };
    (@ operator $op:expr, $doc:literal) => {};
    (@ $method:ident $op:expr, $doc:literal) => {
        impl Value {
            #[doc = $doc]
            #[track_caller]
            #[must_use]
            pub fn $method(self, other: impl ValueOperand) -> Value {
                self.binary_node(Caller::caller(), $op, other)
            }
        }
    };
}
binary_operations!(binary_methods);

macro_rules! ternary_methods {
    ($($op:ident $word:literal $method:ident $dtypes:ident $exactness:ident $doc:literal;)*) => {
        impl Value {
            $(
                #[doc = $doc]
                #[track_caller]
                #[must_use]
                pub fn $method(self, first: impl ValueOperand, second: impl ValueOperand) -> Value {
                    let caller = Caller::caller();
                    let [first, second] =
                        [first.into_value(self.trace, caller), second.into_value(self.trace, caller)];
                    let operands = [self, first, second].map(|value| (value.node, value.trace));
                    let op = Op::Ternary(TernaryOp::$op);
                    Tracer { trace: self.trace }.node(caller, op, &operands, ValueType::unknown())
                }
            )*
        }
    };
}
ternary_operations!(ternary_methods);

macro_rules! reduction_methods {
    ($($op:ident $word:literal $method:ident $joins:ident $dtypes:ident $exactness:ident $doc:literal;)*) => {
        impl Value {
            $(
                #[doc = $doc]
                ///
                /// The result lacks the dimension. Elements beyond the end of the dimension take no part.
                /// Several dimensions are folded one after the other.
                #[track_caller]
                #[must_use]
                pub fn $method(self, dims: impl ReducedDims) -> Value {
                    self.reduce(Caller::caller(), ReductionOp::$op, dims)
                }
            )*
        }
    };
}
reductions!(reduction_methods);

macro_rules! predicate_methods {
    ($($op:ident $word:literal $method:ident $doc:literal;)*) => {
        $(binary_methods!(@ $method Op::Compare(Predicate::$op), $doc);)*
    };
}
predicates!(predicate_methods);

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:ident [$($number:ty),*];)*) => {
        $(
            impl<T: ValueOperand> ops::$trait<T> for Value {
                type Output = Value;
                #[track_caller]
                fn $method(self, other: T) -> Value {
                    self.binary_node(Caller::caller(), Op::Binary(BinaryOp::$op), other)
                }
            }

            impl<T: ValueOperand> ops::$assign<T> for Value {
                #[track_caller]
                fn $assign_method(&mut self, other: T) {
                    *self = self.binary_node(Caller::caller(), Op::Binary(BinaryOp::$op), other);
                }
            }

            operators!(@number $trait $method $op $($number)*);
        )*
    };
    // A number in front. One type for each kind of literal: with f32 and f64, Rust would not know what `(1.0
    // + x).sqrt()` is.
    (@number $trait:ident $method:ident $op:ident $($number:ty)*) => {
        $(
            impl ops::$trait<Value> for $number {
                type Output = Value;
                #[track_caller]
                fn $method(self, other: Value) -> Value {
                    let caller = Caller::caller();
                    self.into_value(other.trace, caller).binary_node(caller, Op::Binary(BinaryOp::$op), other)
                }
            }
        )*
    };
}

operators! {
    Add add AddAssign add_assign Add [f64, i32];
    Sub sub SubAssign sub_assign Sub [f64, i32];
    Mul mul MulAssign mul_assign Mul [f64, i32];
    Div div DivAssign div_assign Div [f64, i32];
    Rem rem RemAssign rem_assign Rem [f64, i32];
    BitAnd bitand BitAndAssign bitand_assign And [i32];
    BitOr bitor BitOrAssign bitor_assign Or [i32];
    BitXor bitxor BitXorAssign bitxor_assign Xor [i32];
    Shl shl ShlAssign shl_assign ShiftLeft [i32];
    Shr shr ShrAssign shr_assign ShiftRight [i32];
}

impl ops::Neg for Value {
    type Output = Value;
    #[track_caller]
    fn neg(self) -> Value {
        self.unary_node(Caller::caller(), Op::Unary(UnaryOp::Neg), ValueType::unknown())
    }
}

impl ops::Not for Value {
    type Output = Value;
    #[track_caller]
    fn not(self) -> Value {
        self.unary_node(Caller::caller(), Op::Unary(UnaryOp::Not), ValueType::unknown())
    }
}
