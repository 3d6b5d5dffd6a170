//! The reference interpreter: what a kernel means, computed on whole tensors straight from the logical nodes.
//!
//! It knows nothing of tiles per workgroup, waves, layouts or schedules and shares no code with any pass, so
//! it is the oracle for all of them, and users check their kernels against it. In short:
//!
//! - `read` gives the whole memory, `write` replaces it, in program order. `register` and broadcasts fill all
//!   dims. `barrier` does nothing. An LDS allocation is a memory whose contents are undefined until they are
//!   written; reading them before is a fault.
//! - A read or write with coordinates gives or stores, element by element, what its expressions say. Outside
//!   of the memory, along any dimension, is zero and is not stored.
//! - Operands of element-wise arithmetic are matched by dims, in any order; one operand has all the dims of
//!   the others and gives the result its dims. What lies along K/32 is repeated along K. A constant without
//!   a dtype takes that of the other operand.
//! - A loop over K runs once per tile of K, as its `tile` constraint says. Inside, everything with dim K is
//!   the iteration's slice: reads beyond the end of K give zero, writes there are dropped, registers are
//!   full, and what stands beyond the end takes no part in products and reductions along K. A value with dim
//!   K from outside the loop cannot be used inside, and carried values cannot have dim K. A loop without
//!   tiles returns its initial values.
//! - Where the constraint `iterations` chooses among the tiles, the loop runs once for each of those that
//!   exist. If the choice depends on the workgroup, the kernel means what its workgroups do one after the
//!   other.
//! - `mma` adds its products to the accumulator one by one, in the order of K: in f32 for f16, bf16 and f32,
//!   in wrapping i32 for i8. Only elements of K that exist are added.
//! - Arithmetic on f16 and bf16 computes in f32 and rounds once; nothing is fused and denormals are kept. The
//!   behaviour of integers, NaNs and casts is documented at [`BinaryOp`], [`Predicate`] and [`Conversion`],
//!   that of constants at [`Constant::bits`].
//! - A reduction along K folds the elements that exist: those beyond the end of K take no part, in loops over
//!   K as well. Its numerics are described in its module: f64 for floats, rounded once.
//! - A scalar argument is a value without dimensions.
//! - Sizes may be zero. Constraints other than `tile` have no influence.
//!
//! The order of operations is fixed, so results are the same bits on every run.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

mod align;
mod arithmetic;
mod atomic;
mod blocks;
mod conditions;
pub(crate) mod constants;
mod contraction;
mod debug_log;
mod encoding;
mod iterate;
mod mapped;
mod memories;
mod operations;
mod packed;
mod placed;
mod product;
mod reduce;
mod scan;
mod sort;
mod special;
mod tensor;
#[cfg(test)]
mod tests;
mod turned_units;
mod values;
mod window;
mod workgroups;

use std::rc::Rc;

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub(crate) use debug_log::{own_coordinate, unwritten};
pub use tensor::{Data, MAX_ELEMENTS, Tensor, TensorElement};

use super::diagnostic::{Diagnostic, Kind};
use super::expr::Symbol;
use super::facts::{Expressions, Geometry, LogicalBody};
use super::kernel::{DimTable, Kernel, KernelName, ScaledDim};
use super::layout::Dim;
use super::memory_layout::DebugLog;
use super::node::{Name, *};
use super::op::{CarriedOp, OpFamily, OrderOp, Runs};
use super::types::DType;
use super::walk;
use values::{gather, scatter};
use workgroups::Workgroup;

/// Runs kernels on whole tensors. See the module for what a kernel means.
pub struct Interpreter<'a> {
    world: &'a World,
    root: Entity,
    sizes: &'a dyn Fn(Symbol) -> Option<i64>,
    values: FxHashMap<Entity, InterpretedValue>,
    /// The values that each finished loop carried out.
    results: FxHashMap<Entity, Vec<InterpretedValue>>,
    memories: FxHashMap<Entity, InterpretedValue>,
    /// Which elements of an LDS allocation have not been written yet.
    undefined: FxHashMap<Entity, Vec<bool>>,
    /// Dimensions that follow others.
    scaled: SmallVec<[ScaledDim; 2]>,
    /// What symbols of iterations were set to, the last ones last.
    symbols: Vec<(Symbol, i64)>,
    /// Loops around the current node, innermost last.
    loops: Vec<Loop>,
    /// What each loop and conditional around the current node carries, innermost last.
    carried: Vec<Vec<InterpretedValue>>,
    /// The workgroup that runs, if they differ.
    workgroup: Workgroup,
}

/// What a kernel leaves: the contents of its arguments, and of its logs, both in their order. A log that was
/// not written to may be missing.
pub(crate) struct InterpretedRun {
    pub(crate) arguments: Vec<Rc<Tensor>>,
    pub(crate) logs: Vec<Option<Rc<Tensor>>>,
}

impl InterpretedRun {
    /// The arguments, and after them the logs.
    pub(crate) fn all(&self) -> impl Iterator<Item = Option<&Tensor>> {
        let arguments = self.arguments.iter().map(|tensor| Some(&**tensor));
        arguments.chain(self.logs.iter().map(|log| log.as_deref()))
    }
}

/// The shape and the dtype of what is passed for an argument.
type PassedShape = (Vec<usize>, DType);

/// An argument, and what is passed for it: as it is, and as the argument's memory stores it.
struct GivenArgument {
    node: Entity,
    passed: PassedShape,
    stored: Tensor,
}

/// A value or the content of a memory.
#[derive(Clone)]
struct InterpretedValue {
    dims: Dims,
    content: ValueContent,
    /// How many loops were around its node.
    depth: usize,
}

#[derive(Clone)]
enum ValueContent {
    Tensor(Rc<Tensor>),
    /// A constant that takes the dtype of the other operand.
    Untyped(Constant),
}

/// One iteration of a loop.
struct Loop {
    dim: Dim,
    /// First element of the iteration's tile.
    start: usize,
    tile: usize,
}

impl<'a> Interpreter<'a> {
    /// Runs `kernel`. `sizes` binds its symbols: its dimensions that are not numbers, those in the tile sizes
    /// of the dimensions that it loops over and, if `iterations` chooses among these tiles, those in its
    /// workgroup tiles. `inputs` are its arguments in the order of their declaration: the contents of
    /// memories before the run, and scalars as tensors without dimensions
    /// ([`Tensor::scalar`]). The result is the contents after it.
    ///
    /// # Errors
    /// When a symbol has no value, a size is negative, a tensor is too large, an input does not have its
    /// memory's shape or dtype, or the kernel itself is wrong: each with the author's line of the node.
    ///
    /// # Example
    /// ```
    /// use groundswell::author::AddressSpace::Global;
    /// use groundswell::author::DType::F32;
    /// use groundswell::author::{Kernel, Tracer, symbols};
    /// use groundswell::interpreter::{Interpreter, Tensor};
    ///
    /// let [n] = symbols(["N"]);
    /// let double = Kernel::trace("double", |w: &Tracer| {
    ///     let a = w.memory("a", [n], Global, F32);
    ///     let b = w.memory("b", [n], Global, F32);
    ///     let x = w.read(a);
    ///     w.write(x + x, b);
    /// })?;
    /// let a = Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0])?;
    /// let b = Tensor::zeros(&[3], F32)?;
    /// let after = Interpreter::run(&double, &|_| Some(3), &[a, b])?;
    /// assert_eq!(after[1].as_slice::<f32>(), Some(&[2.0, 4.0, 6.0][..]));
    /// # Ok::<(), groundswell::diagnostic::Diagnostic>(())
    /// ```
    pub fn run(
        kernel: &'a Kernel,
        sizes: &'a dyn Fn(Symbol) -> Option<i64>,
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, Diagnostic> {
        let after = Interpreter::run_on(kernel, sizes, inputs.to_vec())?;
        Ok(after.into_iter().map(Rc::unwrap_or_clone).collect())
    }

    /// The same with inputs that are no longer needed; memories with the same contents share them. For large
    /// tensors.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_on(
        kernel: &'a Kernel,
        sizes: &'a dyn Fn(Symbol) -> Option<i64>,
        inputs: Vec<Tensor>,
    ) -> Result<Vec<Rc<Tensor>>, Diagnostic> {
        Ok(Interpreter::run_logged(kernel, sizes, inputs)?.arguments)
    }

    /// The same with what the kernel's logs hold.
    pub(crate) fn run_logged(
        kernel: &'a Kernel,
        sizes: &'a dyn Fn(Symbol) -> Option<i64>,
        inputs: Vec<Tensor>,
    ) -> Result<InterpretedRun, Diagnostic> {
        let after = Interpreter::evaluate(&kernel.world, kernel.root, sizes, inputs);
        after.map_err(|fault| kernel.told(fault))
    }

    /// Runs the kernel `root` of `world` as it stands, after any pass: on whole tensors as long as its values
    /// have no places, then wave by wave and lane by lane.
    ///
    /// # Errors
    /// As [`run`](Self::run); and what a kernel with places must not do, such as storing what it read outside
    /// of a tensor.
    pub(crate) fn run_world(
        world: &'a World,
        root: Entity,
        sizes: &'a dyn Fn(Symbol) -> Option<i64>,
        inputs: &[Tensor],
    ) -> Result<InterpretedRun, Diagnostic> {
        Interpreter::evaluate(world, root, sizes, inputs.to_vec())
    }

    fn evaluate(
        world: &'a World,
        root: Entity,
        sizes: &'a dyn Fn(Symbol) -> Option<i64>,
        inputs: Vec<Tensor>,
    ) -> Result<InterpretedRun, Diagnostic> {
        let has_place = |node: &Entity| world.get::<Placement>(*node).is_some();
        let is_placed =
            world.get::<LogicalBody>(root).is_some() || walk::nodes(world, root).iter().any(has_place);
        let interpreter = Interpreter {
            world,
            root,
            sizes,
            values: FxHashMap::default(),
            results: FxHashMap::default(),
            memories: FxHashMap::default(),
            undefined: FxHashMap::default(),
            scaled: world.get::<DimTable>(root).map(DimTable::scaled).unwrap_or_default(),
            symbols: Vec::new(),
            loops: Vec::new(),
            carried: Vec::new(),
            workgroup: Workgroup::default(),
        };
        match is_placed {
            true => interpreter.run_placed(inputs),
            false => interpreter.run_whole(inputs),
        }
    }

    /// The nodes of the kernel's own body.
    fn root_body(&self) -> &'a [Entity] {
        self.world.get::<Body>(self.root).map_or(&[][..], |body| &body.0)
    }

    fn is_argument(&self, node: Entity) -> bool {
        self.world.get::<Op>(node).is_some_and(|op| op.is_argument())
    }

    fn is_log(&self, node: Entity) -> bool {
        self.world.get::<DebugLog>(node).is_some()
    }

    /// The arguments with what they hold before the run.
    fn given(&self, inputs: Vec<Tensor>) -> Result<Vec<GivenArgument>, Diagnostic> {
        let all = self.root_body().iter().copied().filter(|&node| self.is_argument(node));
        let arguments: Vec<Entity> = all.filter(|&node| !self.is_log(node)).collect();
        if arguments.len() != inputs.len() {
            let is_scalar = |node: &&Entity| self.world.get::<Op>(**node) == Some(&Op::Scalar);
            let scalars = match arguments.iter().filter(is_scalar).count() {
                0 => String::new(),
                count => format!(" and {count} scalars"),
            };
            let text = format!(
                "kernel `{}` has {} memories{scalars}, but {} tensors are given",
                self.world.get::<KernelName>(self.root).map_or("", |name| &name.0),
                arguments.iter().filter(|node| !is_scalar(node)).count(),
                inputs.len()
            );
            return Err(Diagnostic::invalid(text));
        }
        let given = arguments.into_iter().zip(inputs).map(|(node, input)| {
            let passed = (input.shape().to_vec(), input.dtype());
            Ok(GivenArgument { node, passed, stored: packed::stored(self.world, node, input)? })
        });
        given.collect()
    }

    /// Runs a kernel whose values have places.
    fn run_placed(self, inputs: Vec<Tensor>) -> Result<InterpretedRun, Diagnostic> {
        let mut given = self.given(inputs)?.into_iter().peekable();
        let (mut all, mut passed) = (Vec::new(), Vec::new());
        let arguments = || self.root_body().iter().copied().filter(|&node| self.is_argument(node));
        for node in arguments() {
            all.push(match given.next_if(|given| given.node == node) {
                Some(given) => {
                    passed.push(given.passed);
                    given.stored
                }
                None => self.unwritten(node)?,
            });
        }
        let after = placed::run(self.world, self.root, self.sizes, &all)?;
        let after = arguments().zip(after.into_iter().map(Rc::new));
        let (logs, arguments): (Vec<_>, Vec<_>) = after.partition(|(node, _)| self.is_log(*node));
        let shown = arguments.iter().zip(&passed).map(|((_, tensor), given)| packed::shown(tensor, given));
        let arguments = shown.collect::<Result<_, _>>()?;
        Ok(InterpretedRun { arguments, logs: logs.into_iter().map(|(_, tensor)| Some(tensor)).collect() })
    }

    /// Runs a kernel on whole tensors.
    fn run_whole(mut self, inputs: Vec<Tensor>) -> Result<InterpretedRun, Diagnostic> {
        let mut passed = Vec::new();
        for GivenArgument { node, passed: given, stored } in self.given(inputs)? {
            self.bind(node, stored).map_err(|fault| self.anchor(node, fault))?;
            passed.push((node, given));
        }
        let body = self.root_body();
        let logs: Vec<Entity> =
            body.iter().copied().filter(|&node| self.is_argument(node) && self.is_log(node)).collect();
        for &log in &logs {
            if !self.is_untyped_log(log) {
                let unwritten = self.unwritten(log)?;
                self.bind(log, unwritten).map_err(|fault| self.anchor(log, fault))?;
            }
        }
        self.check_cover()?;
        self.body(body)?;
        let after = |(node, given): &(Entity, PassedShape)| {
            let argument = self.memories.get(node).or_else(|| self.values.get(node));
            packed::shown(self.tensor(argument.ok_or_else(malformed)?)?, given)
        };
        let arguments = passed.iter().map(after).collect::<Result<_, Diagnostic>>()?;
        // Nothing is known of a log that the kernel wrote nothing to.
        let written = |log: &Entity| Some(self.tensor(self.memories.get(log)?).ok()?.clone());
        Ok(InterpretedRun { arguments, logs: logs.iter().map(written).collect() })
    }

    /// Checks that the workgroups of the grid, and the waves of each, cover all elements.
    fn check_cover(&self) -> Result<(), Diagnostic> {
        let (Some(geometry), Some(expressions)) =
            (self.world.get::<Geometry>(self.root), self.world.get::<Expressions>(self.root))
        else {
            return Ok(());
        };
        for dim in geometry.dims.values() {
            let Some((axis, tile)) = dim.workgroup else { continue };
            let value = |expr| expressions.0.evaluate(expr, &|symbol| (self.sizes)(symbol));
            let count = geometry.grid.get(axis as usize).copied().and_then(|count| value(count).ok());
            let covered = count.unwrap_or(0).saturating_mul(i64::from(tile));
            let size = value(dim.size).unwrap_or(i64::MAX);
            let waves = geometry.waves.get(axis as usize).copied().unwrap_or(1);
            if covered < size || dim.wave.is_some_and(|wave| wave.saturating_mul(waves) != tile) {
                let text = format!("the grid covers {covered} of {size} elements of {}", dim.symbol);
                return Err(Diagnostic::new(Kind::Bug, text)
                    .note(format!("a workgroup has {tile} of them, for {waves} waves"), None));
            }
        }
        Ok(())
    }

    /// What a log of a known type holds at first.
    fn unwritten(&self, log: Entity) -> Result<Tensor, Diagnostic> {
        let ty = self.get::<ValueType>(log)?;
        debug_log::unwritten(&self.shape(&ty.dims)?, ty.dtype.ok_or_else(malformed)?)
    }

    /// Gives a memory its first content, or a scalar its value.
    fn bind(&mut self, node: Entity, input: Tensor) -> Result<(), Diagnostic> {
        let ty = self.get::<ValueType>(node)?;
        let shape = self.shape(&ty.dims)?;
        tensor::count(&shape)?;
        let is_scalar = *self.get::<Op>(node)? == Op::Scalar;
        if input.shape() != shape || ty.dtype != Some(input.dtype()) {
            let text = format!(
                "{} `{}` is {}{shape:?}, but its tensor is {}{:?}",
                if is_scalar { "scalar" } else { "memory" },
                self.world.get::<Name>(node).map_or("?", |n| &n.0),
                ty.dtype.map_or("?", DType::name),
                input.dtype(),
                input.shape()
            );
            return Err(
                Diagnostic::invalid(text).note(format!("its dims are {}", self.names(&ty.dims)), None)
            );
        }
        let content = ValueContent::Tensor(Rc::new(input));
        let value = InterpretedValue { dims: ty.dims.clone(), content, depth: 0 };
        if is_scalar { &mut self.values } else { &mut self.memories }.insert(node, value);
        Ok(())
    }

    fn region(&mut self, nodes: &[Entity]) -> Result<(), Diagnostic> {
        nodes.iter().try_for_each(|&node| self.node(node).map_err(|fault| self.anchor(node, fault)))
    }

    fn node(&mut self, node: Entity) -> Result<(), Diagnostic> {
        let operands = &*self.get::<Operands>(node)?.0;
        let op = *self.get::<Op>(node)?;
        match op.family() {
            OpFamily::Declaration(op) => self.declaration(node, op),
            OpFamily::Constant(op) => self.constant_value(node, op),
            OpFamily::Access(op) => self.access(node, op, operands),
            OpFamily::ElementWise(op) => self.element_wise(node, op, operands),
            OpFamily::Rearrangement(_) => {
                let moved = operands.first().and_then(|value| self.values.get(value)).cloned();
                self.hand_on(node, moved)
            }
            OpFamily::Region(region) => match region.runs() {
                Runs::ForTiles(dim) => self.iterate(node, dim, operands),
                Runs::UnderConditions { .. } => self.under_condition(node, op, operands),
                // Scheduling makes it of nodes that have places.
                Runs::ForStages(_) => Err(malformed()),
            },
            OpFamily::Carried(CarriedOp::IterArg(number)) => {
                let carried = self.carried.last().and_then(|values| values.get(number as usize)).cloned();
                self.hand_on(node, carried)
            }
            OpFamily::Carried(CarriedOp::LoopResult(number)) => {
                let results = operands.first().and_then(|of| self.results.get(of));
                let value = results.and_then(|results| results.get(number as usize)).cloned();
                self.hand_on(node, value)
            }
            OpFamily::Order(OrderOp::Barrier | OrderOp::Control(_)) => Ok(()),
            OpFamily::Order(OrderOp::SetSymbol(symbol)) => {
                let &[value] = operands else { return Err(malformed()) };
                self.set_symbol(symbol, value)
            }
            OpFamily::Contraction(op) => {
                let sums = self.product(op, operands)?;
                self.set_tensor(node, sums)
            }
            OpFamily::AlongDim(op) => {
                let made = self.along_dim(op, operands)?;
                self.set_tensor(node, made)
            }
        }
    }
}

fn malformed() -> Diagnostic {
    Diagnostic::new(Kind::Bug, "the interpreter met a malformed node")
        .help("the verifier says what is wrong with it")
}

fn untyped() -> Diagnostic {
    Diagnostic::invalid("a constant without a dtype is used where nothing gives it one")
}
