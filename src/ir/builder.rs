//! Tracing: a kernel is written as Rust closures over [`Tracer`] and operators on [`Value`], and every call becomes a node.
//!
//! The kernel being traced lives in a thread-local stack, so that operators (`a * b + c`) need no builder argument. Nothing here
//! panics: a mistake is remembered with the author's line, the call returns a placeholder, and [`Kernel::trace`] returns the
//! first mistake.

use std::cell::RefCell;
use std::ops;
use std::panic::Location as Caller;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::constraint::Constraint;
use super::diagnostic::{Diagnostic, Location};
use super::expr::Symbol;
use super::kernel::{Constraints, DimTable, Kernel, KernelName, Locations};
use super::layout::Mma;
use super::node::{Name, *};
use super::text;
use super::types::{AddressSpace, DType};

/// The result of a node, while its kernel is traced. Operators on it trace arithmetic.
#[derive(Copy, Clone, Debug)]
pub struct Value {
    node: Entity,
    trace: u32,
}

/// A tensor of the kernel, while it is traced.
#[derive(Copy, Clone, Debug)]
pub struct MemoryRef {
    node: Entity,
    trace: u32,
}

/// The kernel that is being traced. All of its calls record the caller's file and line.
pub struct Tracer {
    trace: u32,
}

struct Frame {
    id: u32,
    world: World,
    root: Entity,
    /// Open regions, innermost last: the nodes traced so far.
    regions: Vec<Vec<Entity>>,
    dims: DimTable,
    constraints: Constraints,
    locations: Vec<Location>,
    last_caller: Option<(&'static Caller<'static>, u32)>,
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
fn with<R>(id: u32, f: impl FnOnce(&mut Frame) -> R) -> Option<R> {
    STACK.with_borrow_mut(|(_, frames)| frames.iter_mut().rev().find(|frame| frame.id == id).map(f))
}

impl Frame {
    fn location(&mut self, caller: &'static Caller<'static>) -> u32 {
        if let Some((last, at)) = self.last_caller
            && std::ptr::eq(last, caller)
        {
            return at;
        }
        let file = match self.locations.last() {
            Some(l) if &*l.file == caller.file() => l.file.clone(),
            _ => Arc::from(caller.file()),
        };
        self.locations.push(Location { file, line: caller.line(), column: caller.column() });
        let at = self.locations.len() as u32 - 1;
        self.last_caller = Some((caller, at));
        at
    }

    fn fail(&mut self, caller: &'static Caller<'static>, diagnostic: Diagnostic) {
        let at = self.location(caller);
        if self.error.is_none() {
            self.error = Some(diagnostic.at(self.locations.get(at as usize).cloned()));
        }
    }

    fn push(&mut self, caller: &'static Caller<'static>, op: Op, operands: &[Entity], ty: ValueType) -> Entity {
        let origin = Origin(self.location(caller));
        let node = self.world.spawn((op, Operands(SmallVec::from_slice(operands)), ty, origin)).id();
        if let Some(region) = self.regions.last_mut() {
            region.push(node);
        }
        node
    }

    fn dims(&mut self, caller: &'static Caller<'static>, symbols: &[Symbol]) -> Dims {
        let mut dims = Dims::new();
        for &symbol in symbols {
            match self.dims.enter(symbol) {
                Some(dim) if dims.contains(&dim) => {
                    let text = format!("dimension {} occurs twice in one shape", symbol.name());
                    self.fail(caller, Diagnostic::invalid(text).help("use a different symbol for each dimension"));
                }
                Some(dim) => dims.push(dim),
                None => self.fail(caller, Diagnostic::invalid("a kernel has at most 256 dimensions")),
            }
        }
        dims
    }

    /// Values of another trace cannot be used; this checks and substitutes nothing.
    fn own(&mut self, caller: &'static Caller<'static>, values: &[(Entity, u32)]) -> bool {
        let own = values.iter().all(|&(node, trace)| trace == self.id && self.world.get_entity(node).is_ok());
        if !own {
            let text = "a value of another kernel is used here";
            self.fail(caller, Diagnostic::invalid(text).help("use only values traced inside this kernel's closure"));
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
    ///     let x = w.read(a);
    ///     w.write(x + x, b);
    /// })?;
    /// assert_eq!(double.name(), "double");
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn trace(name: &str, body: impl FnOnce(&mut Tracer)) -> Result<Kernel, Diagnostic> {
        let mut world = World::new();
        let root = world.spawn_empty().id();
        let id = STACK.with_borrow_mut(|(next, frames)| {
            *next += 1;
            frames.push(Frame {
                id: *next,
                world,
                root,
                regions: vec![Vec::new()],
                dims: DimTable::default(),
                constraints: Constraints::default(),
                locations: Vec::new(),
                last_caller: None,
                error: None,
            });
            *next
        });
        let guard = PopOnDrop;
        if !is_identifier(name) {
            let text = format!("`{name}` is not a kernel name");
            let caller = Caller::caller();
            with(id, |f| f.fail(caller, Diagnostic::invalid(text).help("use letters, digits and underscores")));
        }
        body(&mut Tracer { trace: id });
        let frame = STACK.with_borrow_mut(|(_, frames)| frames.pop());
        std::mem::forget(guard);
        let Some(mut frame) = frame else {
            return Err(Diagnostic::new(super::diagnostic::Kind::Bug, "the trace was closed twice"));
        };
        if let Some(error) = frame.error {
            return Err(error);
        }
        let nodes = frame.regions.pop().unwrap_or_default();
        let mut world = frame.world;
        world.entity_mut(root).insert((
            KernelName(name.into()),
            Body(nodes),
            frame.dims,
            frame.constraints,
            Locations(Arc::new(frame.locations)),
        ));
        Ok(Kernel::finish(world, root))
    }

    /// Gives a complete world its identity.
    pub(crate) fn finish(world: World, root: Entity) -> Kernel {
        let identity = super::kernel::Identity::new(text::print(&world, root, text::Detail::Identity));
        Kernel::new(world, root, identity)
    }
}

/// True for a name that can stand in text kernels and as a symbol of a code object.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl Tracer {
    fn node(&mut self, caller: &'static Caller<'static>, op: Op, operands: &[(Entity, u32)], ty: ValueType) -> Value {
        let nodes: SmallVec<[Entity; 4]> = operands.iter().map(|o| o.0).collect();
        let node = with(self.trace, |f| {
            if !f.own(caller, operands) {
                return Entity::PLACEHOLDER;
            }
            f.push(caller, op, &nodes, ty)
        });
        Value { node: node.unwrap_or(Entity::PLACEHOLDER), trace: self.trace }
    }

    /// Adds distribution constraints and assumptions; all of them hold for the whole kernel.
    #[track_caller]
    pub fn distribute(&mut self, constraints: impl IntoIterator<Item = Constraint>) {
        let caller = Caller::caller();
        with(self.trace, |f| {
            let at = f.location(caller);
            f.constraints.0.extend(constraints.into_iter().map(|c| (c, at)));
        });
    }

    /// Sets the matrix instruction of all `mma` calls that do not choose their own.
    #[track_caller]
    pub fn mma_type(&mut self, mma: Mma) {
        self.distribute([Constraint::MmaType(mma)]);
    }

    /// A tensor argument of the kernel. Dims are outermost first, row-major. `Shared` asks for promotion to LDS: reads go through
    /// a tile that the workgroup loads together.
    #[track_caller]
    pub fn memory<const N: usize>(
        &mut self,
        name: &str,
        shape: [Symbol; N],
        space: AddressSpace,
        dtype: DType,
    ) -> MemoryRef {
        let caller = Caller::caller();
        let node = with(self.trace, |f| {
            let dims = f.dims(caller, &shape);
            if !is_identifier(name) {
                let text = format!("`{name}` is not an argument name");
                f.fail(caller, Diagnostic::invalid(text).help("use letters, digits and underscores"));
            }
            if N == 0 {
                f.fail(caller, Diagnostic::invalid(format!("memory `{name}` has no dimension")));
            }
            if space == AddressSpace::Register || dtype == DType::I1 {
                let text = format!("memory `{name}` cannot be {dtype} in {} space", space.name());
                f.fail(caller, Diagnostic::invalid(text).help("memories are global or shared, and not i1"));
            }
            if f.world.query::<&Name>().iter(&f.world).any(|n| &*n.0 == name) {
                f.fail(caller, Diagnostic::invalid(format!("two arguments are called `{name}`")));
            }
            let node = f.push(caller, Op::Memory, &[], ValueType { dims, dtype: Some(dtype) });
            f.world.entity_mut(node).insert((Name(name.into()), Space(space)));
            node
        });
        MemoryRef { node: node.unwrap_or(Entity::PLACEHOLDER), trace: self.trace }
    }

    /// A value of the given shape whose elements are all `value`.
    #[track_caller]
    pub fn register<const N: usize>(&mut self, shape: [Symbol; N], dtype: DType, value: f64) -> Value {
        let caller = Caller::caller();
        let dims = with(self.trace, |f| f.dims(caller, &shape)).unwrap_or_default();
        let constant =
            if dtype.is_float() { Constant::Float(value) } else { Constant::Integer(value as i64) };
        if !dtype.is_float() && (value.fract() != 0.0 || !value.is_finite()) {
            with(self.trace, |f| f.fail(caller, Diagnostic::invalid(format!("{value} is not an integer"))));
        }
        self.node(caller, Op::Register(constant), &[], ValueType { dims, dtype: Some(dtype) })
    }

    /// Reads the tile of `memory` that the distribution gives. Elements outside the memory are zero.
    #[track_caller]
    pub fn read(&mut self, memory: MemoryRef) -> Value {
        self.node(Caller::caller(), Op::Read, &[(memory.node, memory.trace)], ValueType::unknown())
    }

    /// Writes `value` to its tile of `memory`. Elements outside the memory are dropped.
    #[track_caller]
    pub fn write(&mut self, value: Value, memory: MemoryRef) {
        let operands = [(value.node, value.trace), (memory.node, memory.trace)];
        self.node(Caller::caller(), Op::Write, &operands, ValueType::unknown());
    }

    /// Matrix product: `acc[m, n] + sum over k of lhs[m, k] * rhs[n, k]`, accumulated in acc's dtype.
    #[track_caller]
    pub fn mma(&mut self, lhs: Value, rhs: Value, acc: Value) -> Value {
        let operands = [(lhs.node, lhs.trace), (rhs.node, rhs.trace), (acc.node, acc.trace)];
        self.node(Caller::caller(), Op::Mma(MmaChoice::Kernel), &operands, ValueType::unknown())
    }

    /// [`Tracer::mma`] with a matrix instruction of its own.
    #[track_caller]
    pub fn mma_with(&mut self, mma: Mma, lhs: Value, rhs: Value, acc: Value) -> Value {
        let operands = [(lhs.node, lhs.trace), (rhs.node, rhs.trace), (acc.node, acc.trace)];
        self.node(Caller::caller(), Op::Mma(MmaChoice::Explicit(mma)), &operands, ValueType::unknown())
    }

    /// A loop over the tiles of `axis`. `body` is traced once; its parameters are the carried values, its results the next ones.
    /// Returns the values carried out of the last iteration (`init` if there is none).
    #[track_caller]
    pub fn iterate<const N: usize>(
        &mut self,
        axis: Symbol,
        init: [Value; N],
        body: impl FnOnce(&mut Tracer, [Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let caller = Caller::caller();
        let operands = init.map(|v| (v.node, v.trace));
        let dim = with(self.trace, |f| f.dims(caller, &[axis]).first().copied()).flatten();
        let Some(dim) = dim else { return init };
        let node = self.node(caller, Op::Iterate(dim), &operands, ValueType::unknown());
        if node.node == Entity::PLACEHOLDER {
            return init;
        }
        with(self.trace, |f| f.regions.push(Vec::new()));
        let mut number = 0;
        let args = init.map(|_| {
            number += 1;
            self.node(caller, Op::IterArg(number - 1), &[], ValueType::unknown())
        });
        let yields = body(self, args);
        with(self.trace, |f| {
            f.own(caller, &yields.map(|v| (v.node, v.trace)));
            let nodes = f.regions.pop().unwrap_or_default();
            let yields = yields.iter().map(|v| v.node).collect();
            f.world.entity_mut(node.node).insert((Body(nodes), Yields(yields)));
        });
        let mut number = 0;
        init.map(|_| {
            number += 1;
            self.node(caller, Op::LoopResult(number - 1), &[(node.node, node.trace)], ValueType::unknown())
        })
    }

    /// `yes` where `condition` (an i1 value) holds, `no` elsewhere.
    #[track_caller]
    pub fn select(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        let operands =
            [(condition.node, condition.trace), (yes.node, yes.trace), (no.node, no.trace)];
        self.node(Caller::caller(), Op::Select, &operands, ValueType::unknown())
    }
}

/// What arithmetic on values accepts as its second operand: a value, or a number that takes the first operand's dtype.
pub trait Operand {
    /// The operand as a value of trace `trace`.
    #[doc(hidden)]
    fn into_value(self, trace: u32, caller: &'static Caller<'static>) -> Value;
}

impl Operand for Value {
    fn into_value(self, _: u32, _: &'static Caller<'static>) -> Value {
        self
    }
}

fn scalar(trace: u32, caller: &'static Caller<'static>, constant: Constant) -> Value {
    Tracer { trace }.node(caller, Op::Register(constant), &[], ValueType { dims: smallvec![], dtype: None })
}

impl Operand for f64 {
    fn into_value(self, trace: u32, caller: &'static Caller<'static>) -> Value {
        scalar(trace, caller, Constant::Float(self))
    }
}

impl Operand for f32 {
    fn into_value(self, trace: u32, caller: &'static Caller<'static>) -> Value {
        scalar(trace, caller, Constant::Float(f64::from(self)))
    }
}

impl Operand for i32 {
    fn into_value(self, trace: u32, caller: &'static Caller<'static>) -> Value {
        scalar(trace, caller, Constant::Integer(i64::from(self)))
    }
}

impl Value {
    fn unary(self, caller: &'static Caller<'static>, op: Op, ty: ValueType) -> Value {
        Tracer { trace: self.trace }.node(caller, op, &[(self.node, self.trace)], ty)
    }

    fn binary(self, caller: &'static Caller<'static>, op: Op, other: impl Operand) -> Value {
        let other = other.into_value(self.trace, caller);
        let operands = [(self.node, self.trace), (other.node, other.trace)];
        Tracer { trace: self.trace }.node(caller, op, &operands, ValueType::unknown())
    }

    /// Names the value's node for schedules and listings.
    #[track_caller]
    pub fn tag(self, tag: &str) -> Value {
        let caller = Caller::caller();
        with(self.trace, |f| {
            if f.own(caller, &[(self.node, self.trace)]) {
                f.world.entity_mut(self.node).insert(Tag(tag.into()));
            }
        });
        self
    }

    /// Numeric conversion: to integers truncating and saturating, to floats rounding to nearest even.
    #[track_caller]
    pub fn cast(self, dtype: DType) -> Value {
        self.unary(Caller::caller(), Op::Cast, ValueType { dims: Dims::new(), dtype: Some(dtype) })
    }
}

macro_rules! unary_methods {
    ($($method:ident $op:ident $doc:literal;)*) => {
        impl Value {
            $(
                #[doc = $doc]
                #[track_caller]
                #[must_use]
                pub fn $method(self) -> Value {
                    self.unary(Caller::caller(), Op::Unary(UnaryOp::$op), ValueType::unknown())
                }
            )*
        }
    };
}

unary_methods! {
    abs Abs "Absolute value, per element.";
    exp2 Exp2 "Two to the power of each element (floats).";
    log2 Log2 "Logarithm to base two of each element (floats).";
    sqrt Sqrt "Square root of each element (floats).";
    reciprocal Reciprocal "One over each element (floats).";
}

macro_rules! binary_methods {
    ($($method:ident $op:expr, $doc:literal;)*) => {
        impl Value {
            $(
                #[doc = $doc]
                #[track_caller]
                #[must_use]
                pub fn $method(self, other: impl Operand) -> Value {
                    self.binary(Caller::caller(), $op, other)
                }
            )*
        }
    };
}

binary_methods! {
    minimum Op::Binary(BinaryOp::Min), "The smaller of each pair of elements.";
    maximum Op::Binary(BinaryOp::Max), "The larger of each pair of elements.";
    equal Op::Compare(Predicate::Eq), "i1: equal.";
    not_equal Op::Compare(Predicate::Ne), "i1: not equal.";
    less Op::Compare(Predicate::Lt), "i1: less than.";
    less_equal Op::Compare(Predicate::Le), "i1: less than or equal.";
    greater Op::Compare(Predicate::Gt), "i1: greater than.";
    greater_equal Op::Compare(Predicate::Ge), "i1: greater than or equal.";
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {
        $(
            impl<T: Operand> ops::$trait<T> for Value {
                type Output = Value;
                #[track_caller]
                fn $method(self, other: T) -> Value {
                    self.binary(Caller::caller(), Op::Binary(BinaryOp::$op), other)
                }
            }
        )*
    };
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
}

impl ops::Neg for Value {
    type Output = Value;
    #[track_caller]
    fn neg(self) -> Value {
        self.unary(Caller::caller(), Op::Unary(UnaryOp::Neg), ValueType::unknown())
    }
}
