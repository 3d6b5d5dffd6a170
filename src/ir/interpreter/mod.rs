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

mod arithmetic;
mod atomic;
mod blocks;
mod conditions;
pub(crate) mod constants;
mod debug_log;
mod encoding;
mod iterate;
mod mapped;
mod memories;
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
mod window;
mod workgroups;

use std::cmp::Reverse;
use std::rc::Rc;

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub(crate) use debug_log::{own_coordinate, unwritten};
pub use tensor::{Data, MAX_ELEMENTS, Tensor, TensorElement};

use super::diagnostic::{Diagnostic, Kind, Location};
use super::expr::Symbol;
use super::facts::{DimGeometry, Expressions, Geometry, LogicalBody, TurnedUnits};
use super::kernel::{DimTable, Kernel, KernelName, Locations, ScaledDim};
use super::layout::Dim;
use super::mapping::Mapping;
use super::memory_layout::DebugLog;
use super::node::{Name, *};
use super::types::DType;
use super::walk;
use product::Extents;
use tensor::for_each_dtype;
use window::{Axes, Axis};
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
        let body = world.get::<Body>(root).map_or(&[][..], |body| &body.0);
        let is_argument = |node: &Entity| world.get::<Op>(*node).is_some_and(|op| op.is_argument());
        let is_log = |node: &Entity| world.get::<DebugLog>(*node).is_some();
        let (logs, arguments): (Vec<Entity>, Vec<Entity>) =
            body.iter().copied().filter(is_argument).partition(is_log);
        if arguments.len() != inputs.len() {
            let is_scalar = |node: &&Entity| world.get::<Op>(**node) == Some(&Op::Scalar);
            let scalars = match arguments.iter().filter(is_scalar).count() {
                0 => String::new(),
                count => format!(" and {count} scalars"),
            };
            let text = format!(
                "kernel `{}` has {} memories{scalars}, but {} tensors are given",
                world.get::<KernelName>(root).map_or("", |name| &name.0),
                arguments.iter().filter(|node| !is_scalar(node)).count(),
                inputs.len()
            );
            return Err(Diagnostic::invalid(text));
        }
        let passed: Vec<(Vec<usize>, DType)> =
            inputs.iter().map(|input| (input.shape().to_vec(), input.dtype())).collect();
        let inputs = arguments.iter().zip(inputs).map(|(&node, input)| packed::stored(world, node, input));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let mut interpreter = Interpreter {
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
        if is_placed {
            let mut given = arguments.iter().zip(inputs).collect::<FxHashMap<_, _>>();
            let mut all = Vec::new();
            for node in body.iter().filter(|node| is_argument(node)) {
                all.push(match given.remove(node) {
                    Some(input) => input,
                    None => interpreter.unwritten(*node)?,
                });
            }
            let after = placed::run(world, root, sizes, &all)?;
            let after = body.iter().copied().filter(is_argument).zip(after.into_iter().map(Rc::new));
            let (logs, arguments): (Vec<_>, Vec<_>) = after.partition(|(node, _)| is_log(node));
            let arguments =
                arguments.iter().zip(&passed).map(|((_, tensor), given)| packed::shown(tensor, given));
            let arguments = arguments.collect::<Result<_, _>>()?;
            let logs = logs.into_iter().map(|(_, tensor)| Some(tensor)).collect();
            return Ok(InterpretedRun { arguments, logs });
        }
        for (&node, input) in arguments.iter().zip(inputs) {
            interpreter.bind(node, input).map_err(|fault| interpreter.anchor(node, fault))?;
        }
        for &log in &logs {
            if !interpreter.is_untyped_log(log) {
                let unwritten = interpreter.unwritten(log)?;
                interpreter.bind(log, unwritten).map_err(|fault| interpreter.anchor(log, fault))?;
            }
        }
        interpreter.check_cover()?;
        interpreter.body(body)?;
        let after = |(node, given)| {
            let argument = interpreter.memories.get(node).or_else(|| interpreter.values.get(node));
            packed::shown(interpreter.tensor(argument.ok_or_else(malformed)?)?, given)
        };
        let arguments = arguments.iter().zip(&passed).map(after).collect::<Result<_, Diagnostic>>()?;
        // Nothing is known of a log that the kernel wrote nothing to.
        let written = |log: &Entity| Some(interpreter.tensor(interpreter.memories.get(log)?).ok()?.clone());
        Ok(InterpretedRun { arguments, logs: logs.iter().map(written).collect() })
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
        let depth = self.loops.len();
        let (dims, tensor) = match (*self.get::<Op>(node)?, operands) {
            (Op::Memory, []) if self.memories.contains_key(&node) || self.is_untyped_log(node) => {
                return Ok(());
            }
            (Op::Memory, []) => {
                return Err(Diagnostic::invalid("a memory is declared inside a loop")
                    .help("declare the kernel's memories before its loops"));
            }
            (Op::Scalar, []) if self.values.contains_key(&node) => return Ok(()),
            (Op::Barrier | Op::Control(_), []) => return Ok(()),
            (Op::SetSymbol(symbol), &[value]) => return self.set_symbol(symbol, value),
            (Op::Allocate, []) => return self.allocate(node),
            (Op::Register(constant), []) => {
                let ty = self.get::<ValueType>(node)?;
                let Some(dtype) = ty.dtype else {
                    let content = ValueContent::Untyped(constant);
                    self.values.insert(node, InterpretedValue { dims: ty.dims.clone(), content, depth });
                    return Ok(());
                };
                (ty.dims.clone(), Tensor::splat(&self.shape(&ty.dims)?, dtype, constant)?)
            }
            (Op::SelfIndex(dim), []) => (SmallVec::from_slice(&[dim]), self.places_along(dim)?),
            (Op::Size(dim), []) => (Dims::new(), Tensor::scalar(self.size(dim)? as i32)),
            (Op::WorkgroupId(axis), []) => (Dims::new(), Tensor::scalar(self.workgroup.along(axis) as i32)),
            (Op::Iteration(dim), []) => {
                let within = self.loops.iter().find(|l| l.dim == dim);
                let number = within.map(|within| (within.start / within.tile) as i32);
                (Dims::new(), Tensor::scalar(number.ok_or_else(malformed)?))
            }
            (Op::Broadcast, &[x]) => {
                let dims = self.get::<ValueType>(node)?.dims.clone();
                let value = self.value(x)?;
                let tensor = self.align(&value.dims, self.tensor(value)?, &dims)?;
                let content = ValueContent::Tensor(tensor);
                self.values.insert(node, InterpretedValue { dims, content, depth });
                return Ok(());
            }
            (Op::Rearrange, &[x]) => {
                let value = self.values.get(&x).cloned();
                self.values.insert(node, value.ok_or_else(malformed)?);
                return Ok(());
            }
            (Op::Reduce(reduction), &[x]) => self.reduce(reduction, x)?,
            (Op::Scan(scan), &[x]) => self.scan(scan, x)?,
            (Op::Sort(sort), &[x]) => self.sort(sort, x)?,
            (Op::Read, &[ref values @ .., memory]) if let Some(mapping) = self.world.get::<Mapping>(node) => {
                return self.read_mapped(node, mapping, values, memory);
            }
            (Op::Write, &[value, ref values @ .., log]) if self.is_untyped_log(log) => {
                return self.log(self.world.get::<Mapping>(node), value, values, log);
            }
            (Op::Write, &[value, ref values @ .., memory])
                if let Some(mapping) = self.world.get::<Mapping>(node) =>
            {
                return self.write_mapped(mapping, value, values, memory);
            }
            (Op::Atomic(op), &[ref values @ .., memory]) => {
                return self.atomic(node, op, values, memory);
            }
            (Op::Read, &[memory]) => {
                return match self.world.get::<TurnedUnits>(node) {
                    Some(turned) => self.read_turned(node, turned, memory),
                    None => self.read(node, memory),
                };
            }
            (Op::Write, &[value, memory]) => return self.write(value, memory),
            (Op::Mma(choice), &[lhs, rhs, acc]) => self.mma(choice, [lhs, rhs, acc], None)?,
            (Op::ScaledMma(choice), &[lhs, rhs, acc, lhs_scale, rhs_scale]) => {
                self.mma(choice, [lhs, rhs, acc], Some([lhs_scale, rhs_scale]))?
            }
            (Op::Iterate(dim), init) => return self.iterate(node, dim, init),
            (op @ (Op::Conditional | Op::While), operands) => {
                return self.under_condition(node, op, operands);
            }
            (Op::IterArg(number), []) => {
                let carried = self.carried.last().and_then(|values| values.get(number as usize)).cloned();
                self.values.insert(node, carried.ok_or_else(malformed)?);
                return Ok(());
            }
            (Op::LoopResult(number), &[of]) => {
                let value = self.results.get(&of).and_then(|r| r.get(number as usize)).cloned();
                self.values.insert(node, value.ok_or_else(malformed)?);
                return Ok(());
            }
            (Op::Unary(op), &[x]) => {
                let (dims, [x]) = self.broadcast([x], 0)?;
                (dims, x.map(|x| arithmetic::unary(op, x))?)
            }
            (Op::Convert(op), &[x]) => {
                let to = self.get::<ValueType>(node)?.dtype.ok_or_else(malformed)?;
                if op == Conversion::Bitcast
                    && let Some((dims, tensor)) = self.repacked(x, to)?
                {
                    let content = ValueContent::Tensor(Rc::new(tensor));
                    self.values.insert(node, InterpretedValue { dims, content, depth });
                    return Ok(());
                }
                let (dims, [x]) = self.broadcast([x], 0)?;
                (dims, x.map(|x| arithmetic::convert(op, x, to))?)
            }
            (Op::Decode(decoding), &[codes, scales]) => self.decode(node, decoding, codes, scales)?,
            (Op::Encode(dtype), &[x]) => {
                let (dims, [x]) = self.broadcast([x], 0)?;
                (dims, x.map(|x| encoding::encode(x, dtype))?)
            }
            (Op::Binary(op), &[x, y]) => {
                let (dims, [x, y]) = self.broadcast([x, y], 0)?;
                (dims, x.map(|x| arithmetic::binary(op, x, y.data()))?)
            }
            (Op::Ternary(op), &[x, y, z]) => {
                let (dims, [x, y, z]) = self.broadcast([x, y, z], 0)?;
                (dims, x.map(|x| arithmetic::ternary(op, x, y.data(), z.data()))?)
            }
            (Op::Compare(predicate), &[x, y]) => {
                let (dims, [x, y]) = self.broadcast([x, y], 0)?;
                (dims, x.map(|x| arithmetic::comparison(predicate, x, y.data()))?)
            }
            (Op::Select, &[condition, yes, no]) => {
                // The condition has a dtype of its own, which literals among the others do not take.
                let (dims, [condition, yes, no]) = self.broadcast([condition, yes, no], 1)?;
                (dims, condition.map(|c| arithmetic::select(c, yes.data(), no.data()))?)
            }
            _ => return Err(malformed()),
        };
        self.values
            .insert(node, InterpretedValue { dims, content: ValueContent::Tensor(Rc::new(tensor)), depth });
        Ok(())
    }

    fn mma(
        &self,
        choice: MmaChoice,
        [lhs, rhs, acc]: [Entity; 3],
        scales: Option<[Entity; 2]>,
    ) -> Result<(Dims, Tensor), Diagnostic> {
        let [lhs, rhs, acc] = [self.value(lhs)?, self.value(rhs)?, self.value(acc)?];
        let shapes = || {
            let [l, r, a] = [lhs, rhs, acc].map(|v| self.names(&v.dims));
            Diagnostic::invalid(format!("mma of {l} and {r} into {a}"))
                .help("mma takes m and k, n and k into [.., m, n], and all of them the same other dimensions")
        };
        let &[ref batch @ .., m, n] = &*acc.dims else { return Err(shapes()) };
        // The contracted dimension is the one that both factors have and the sum lacks, or what their units
        // lie along; their dims may be in any order.
        let summed =
            |dims: &Dims| -> Dims { dims.iter().copied().filter(|d| !acc.dims.contains(d)).collect() };
        let along = [summed(&lhs.dims), summed(&rhs.dims)];
        let base = |dims: &Dims| {
            let units = dims.first()?;
            Some(self.scaled.iter().find(|scaled| scaled.dim == *units).map_or(*units, |scaled| scaled.base))
        };
        let k = base(&along[0]).filter(|k| base(&along[1]) == Some(*k)).ok_or_else(shapes)?;
        let [left, right]: [Dims; 2] = [(m, 0), (n, 1)].map(|(own, factor)| {
            batch.iter().copied().chain([own]).chain(along[factor].iter().copied()).collect()
        });
        let same = |a: &Dims, b: &Dims| a.len() == b.len() && a.iter().all(|d| b.contains(d));
        if m == n || !same(&lhs.dims, &left) || !same(&rhs.dims, &right) {
            return Err(shapes());
        }
        let l = self.align(&lhs.dims, self.tensor(lhs)?, &left)?;
        let r = self.align(&rhs.dims, self.tensor(rhs)?, &right)?;
        let a = self.tensor(acc)?;
        let extents = Extents {
            batch: a.shape()[..batch.len()].iter().product(),
            m: self.extent(m)?,
            n: self.extent(n)?,
            k: self.extent(k)?,
            taken: self.existing(k)?,
        };
        let inputs = match choice {
            MmaChoice::Explicit(mma) => mma.inputs(),
            MmaChoice::Kernel | MmaChoice::Shape(_) => [l.dtype(), r.dtype()],
        };
        let unpacked = |factor: &Tensor, at: usize| {
            let own = &factor.shape()[batch.len() + 1..];
            let held = [own.first().copied().unwrap_or(1), own.get(1).copied().unwrap_or(1)];
            product::unpacked(factor.data(), inputs[at], held, extents.k)
        };
        let [unpacked_l, unpacked_r] = [unpacked(&l, 0), unpacked(&r, 1)];
        let (l, r) = (unpacked_l.as_ref().unwrap_or(l.data()), unpacked_r.as_ref().unwrap_or(r.data()));
        if (l.len(), r.len())
            != (extents.batch * extents.m * extents.k, extents.batch * extents.n * extents.k)
        {
            return Err(shapes());
        }
        let data = match scales {
            None => product::multiply_add(l, r, a.data(), extents),
            Some([lhs_scale, rhs_scale]) => {
                let [x, y] = [self.value(lhs_scale)?, self.value(rhs_scale)?];
                let block =
                    x.dims.iter().copied().find(|dim| y.dims.contains(dim) && !acc.dims.contains(dim));
                let block = block.ok_or_else(shapes)?;
                let [left, right] =
                    [m, n].map(|own| batch.iter().copied().chain([own, block]).collect::<Dims>());
                let x = self.align(&x.dims, self.tensor(x)?, &left)?;
                let y = self.align(&y.dims, self.tensor(y)?, &right)?;
                let factors = [(l, x.data()), (r, y.data())];
                product::multiply_add_scaled(factors, a.data(), extents, self.extent(block)?)
            }
        };
        let data = data.map_err(Diagnostic::invalid)?;
        Ok((acc.dims.clone(), Tensor::filled(a.shape().to_vec(), data)))
    }

    /// Folds a value along a dimension; elements beyond the end of the dimension take no part.
    fn reduce(&self, reduction: Reduction, value: Entity) -> Result<(Dims, Tensor), Diagnostic> {
        let value = self.value(value)?;
        let tensor = self.tensor(value)?;
        let at = value.dims.iter().position(|&dim| dim == reduction.dim).ok_or_else(|| {
            let (word, dims) = (reduction.op.row().word, self.names(&value.dims));
            Diagnostic::invalid(format!("{word} along {} of a value {dims}", self.name(reduction.dim)))
                .help("reduce along a dimension that the value has")
        })?;
        let (mut dims, mut shape) = (value.dims.clone(), tensor.shape().to_vec());
        let extent = shape[at];
        let taken = self.existing(reduction.dim)?;
        let outer = shape[..at].iter().product();
        let inner = shape[at + 1..].iter().product();
        dims.remove(at);
        shape.remove(at);
        let fold = reduce::Fold { outer, extent, taken, inner };
        let data = reduce::reduce(reduction.op, tensor.data(), fold).map_err(Diagnostic::invalid)?;
        Ok((dims, Tensor::filled(shape, data)))
    }

    /// The operands with the dims of the one that has the most, which are returned as well. Untyped constants
    /// take the dtype of the typed operand, starting with operand number `typed`.
    fn broadcast<const N: usize>(
        &self,
        operands: [Entity; N],
        typed: usize,
    ) -> Result<(Dims, [AlignedOperand; N]), Diagnostic> {
        let mut values: SmallVec<[&InterpretedValue; 3]> = SmallVec::new();
        for &operand in &operands {
            values.push(self.value(operand)?);
        }
        // The first of those with all dims determines the order.
        let plain = |dims: &Dims| dims.iter().filter(|&&dim| !self.is_scaled(dim)).count();
        let widest = values.iter().min_by_key(|v| Reverse((v.dims.len(), plain(&v.dims))));
        let widest = widest.ok_or_else(malformed)?;
        let dtype = values[typed..].iter().find_map(|v| match &v.content {
            ValueContent::Tensor(tensor) => Some(tensor.dtype()),
            ValueContent::Untyped(_) => None,
        });
        let mut aligned: SmallVec<[AlignedOperand; 3]> = SmallVec::new();
        for value in &values {
            let tensor = match &value.content {
                ValueContent::Tensor(tensor) => tensor.clone(),
                ValueContent::Untyped(constant) => {
                    let dtype = dtype.unwrap_or(constant.dtype_alone());
                    Rc::new(Tensor::splat(&self.shape(&value.dims)?, dtype, *constant)?)
                }
            };
            aligned.push(AlignedOperand(self.align(&value.dims, &tensor, &widest.dims)?));
        }
        let aligned = <[AlignedOperand; N]>::try_from(aligned.into_vec()).map_err(|_| malformed())?;
        Ok((widest.dims.clone(), aligned))
    }

    /// The tensor with dims `from` as one with dims `to`: missing dims repeat it.
    fn align(&self, from: &Dims, tensor: &Rc<Tensor>, to: &Dims) -> Result<Rc<Tensor>, Diagnostic> {
        if from == to {
            return Ok(tensor.clone());
        }
        let repeated = |dim: &Dim| self.scaled.iter().any(|s| s.dim == *dim && to.contains(&s.base));
        if from.iter().any(|dim| !to.contains(dim) && repeated(dim)) {
            return self.repeat_blocks(from, tensor, to);
        }
        if let Some(&extra) = from.iter().find(|d| !to.contains(d)) {
            let text =
                format!("values with dims {} and {} do not fit together", self.names(from), self.names(to));
            return Err(Diagnostic::invalid(text)
                .note(format!("the one with more dims lacks {}", self.name(extra)), None)
                .help("one of the values must have all the dims of the other"));
        }
        let strides = window::strides(tensor.shape());
        let mut axes = Axes::new();
        for &dim in to {
            let extent = self.extent(dim)?;
            let stride = from.iter().position(|&d| d == dim).map_or(0, |at| strides[at]);
            axes.push(Axis { extent, start: 0, limit: extent, stride });
        }
        Ok(Rc::new(gather(tensor, &axes)?))
    }

    /// The part of a memory that the current iterations access.
    fn slice(&self, dims: &Dims, shape: &[usize]) -> Axes {
        let strides = window::strides(shape);
        let axis = |at: usize| {
            let (limit, stride) = (shape[at], strides[at]);
            let within = self.loops.iter().find(|l| l.dim == dims[at]);
            let (extent, start) = within.map_or((limit, 0), |l| (l.tile, l.start));
            Axis { extent, start, limit, stride }
        };
        (0..dims.len()).map(axis).collect()
    }

    /// The value of an operand, if it may be used in the current loops.
    fn value(&self, node: Entity) -> Result<&InterpretedValue, Diagnostic> {
        let value = self.values.get(&node).ok_or_else(malformed)?;
        let inner = self.loops.get(value.depth..).unwrap_or_default();
        if let Some(around) = inner.iter().find(|l| value.dims.contains(&l.dim)) {
            let name = self.name(around.dim);
            return Err(Diagnostic::invalid(format!(
                "a value with all of {name} is used inside the loop over {name}"
            ))
            .note("the value comes from here", self.location(node))
            .help("move the value into the loop"));
        }
        Ok(value)
    }

    fn memory(&self, node: Entity) -> Result<&InterpretedValue, Diagnostic> {
        self.memories.get(&node).ok_or_else(malformed)
    }

    fn tensor<'v>(&self, value: &'v InterpretedValue) -> Result<&'v Rc<Tensor>, Diagnostic> {
        match &value.content {
            ValueContent::Tensor(tensor) => Ok(tensor),
            ValueContent::Untyped(_) => Err(untyped()),
        }
    }

    /// How passes have spread a dimension.
    fn geometry(&self, dim: Dim) -> Option<&'a DimGeometry> {
        self.world.get::<Geometry>(self.root)?.dims.get(dim)
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

    /// Elements of a dimension.
    fn size(&self, dim: Dim) -> Result<usize, Diagnostic> {
        if let Some(size) = self.geometry(dim).and_then(|dim| dim.static_size) {
            return Ok(size as usize);
        }
        let symbol = self.get::<DimTable>(self.root)?.0.get(dim).copied().ok_or_else(malformed)?;
        let name = symbol.name();
        match symbol.value_where(self.sizes) {
            None => Err(Diagnostic::invalid(format!("{name} has no size"))),
            Some(size) if size < 0 => {
                Err(Diagnostic::invalid(format!("{name} is {size}: a size cannot be negative")))
            }
            Some(size) => usize::try_from(size).ok().filter(|&s| s <= MAX_ELEMENTS).ok_or_else(|| {
                Diagnostic::new(Kind::Limit, format!("{name} is {size}: more than {MAX_ELEMENTS} elements"))
            }),
        }
    }

    /// Elements along a dimension of a value that is made here.
    fn extent(&self, dim: Dim) -> Result<usize, Diagnostic> {
        match self.loops.iter().find(|l| l.dim == dim) {
            Some(within) => Ok(within.tile),
            None => self.size(dim),
        }
    }

    /// How many of these exist: they come first.
    fn existing(&self, dim: Dim) -> Result<usize, Diagnostic> {
        let size = self.size(dim)?;
        let within = self.loops.iter().find(|l| l.dim == dim);
        Ok(within.map_or(size, |l| size.saturating_sub(l.start).min(l.tile)))
    }

    fn shape(&self, dims: &Dims) -> Result<Vec<usize>, Diagnostic> {
        dims.iter().map(|&d| self.extent(d)).collect()
    }

    fn get<T: Component>(&self, node: Entity) -> Result<&'a T, Diagnostic> {
        self.world.get::<T>(node).ok_or_else(malformed)
    }

    fn name(&self, dim: Dim) -> &'static str {
        self.world.get::<DimTable>(self.root).map_or("?", |t| t.name(dim))
    }

    fn names(&self, dims: &[Dim]) -> String {
        format!("[{}]", dims.iter().map(|&d| self.name(d)).collect::<Vec<_>>().join(", "))
    }

    fn locations(&self) -> Option<&Locations> {
        self.world.get::<Locations>(self.root)
    }

    fn location(&self, node: Entity) -> Option<Location> {
        self.world.get::<Origin>(node).and_then(|origin| self.locations()?.get(origin.0))
    }

    /// Anchors the fault at the node, unless it already has a place.
    fn anchor(&self, node: Entity, fault: Diagnostic) -> Diagnostic {
        if fault.location.is_some() { fault } else { fault.at(self.location(node)) }
    }
}

/// An operand with the dims of its operation's result.
struct AlignedOperand(Rc<Tensor>);

impl AlignedOperand {
    fn data(&self) -> &Data {
        self.0.data()
    }

    /// A tensor of the same shape, with the result of `f` for the elements.
    fn map(
        &self,
        f: impl FnOnce(&Data) -> Result<Data, arithmetic::ArithmeticFault>,
    ) -> Result<Tensor, Diagnostic> {
        let data = f(self.data()).map_err(Diagnostic::invalid)?;
        Ok(Tensor::filled(self.0.shape().to_vec(), data))
    }
}

fn gather(tensor: &Tensor, axes: &Axes) -> Result<Tensor, Diagnostic> {
    let shape: Vec<usize> = axes.iter().map(|a| a.extent).collect();
    tensor::count(&shape)?;
    let data = for_each_dtype!(tensor.data(), v => TensorElement::into_data(window::gather(v, axes)));
    Ok(Tensor::filled(shape, data))
}

fn scatter(tensor: &mut Tensor, axes: &Axes, window: &Tensor) -> Result<(), Diagnostic> {
    for_each_dtype!(tensor.data_mut(), v => {
        window::scatter(v, axes, window.as_slice().ok_or_else(malformed)?);
    });
    Ok(())
}

fn malformed() -> Diagnostic {
    Diagnostic::new(Kind::Bug, "the interpreter met a malformed node")
        .help("the verifier says what is wrong with it")
}

fn untyped() -> Diagnostic {
    Diagnostic::invalid("a constant without a dtype is used where nothing gives it one")
}
