//! The rule-based scheduler: kernels of the language for a task.
//!
//! Everything that can be is put into one kernel ([`expand`]); dimensions that lie together are one
//! ([`merge`]); how they are spread follows from what is reduced ([`distribution`]); and each node becomes
//! what the language has for it ([`lower`]). Where one kernel does not do, every computed tensor with a
//! reduction is stored by a kernel of its own, and read by the next.

mod distribution;
mod expand;
mod lower;
mod merge;
mod ranks;

use std::collections::BTreeMap;

use super::Task;
use super::define::AXIS;
use super::element::{ElementNode, ReadIndex, TaskAxis, TensorId};
use crate::prelude::*;
use expand::KernelPlan;

/// Most dimensions of a kernel.
const MAX_DIMS: usize = 5;

/// One kernel of a task.
pub struct TaskKernel {
    kernel: Kernel,
    options: Options,
    arguments: Vec<TensorId>,
    /// Dimensions whose sizes are known at the launch, and what they are.
    launched: Vec<(Symbol, SymExpr)>,
}

impl TaskKernel {
    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Options of its compilation: the target, and the sizes that are known. The others are dynamic.
    pub fn options(&self) -> &Options {
        &self.options
    }
}

/// The kernels of a task for a target, in the order in which they run.
pub struct TaskProgram {
    task: Task,
    target: TargetId,
    sizes: Vec<(Symbol, i64)>,
    kernels: Vec<TaskKernel>,
}

impl Task {
    /// Kernels that compute the task on a target, for sizes of which some may be left open: these are given
    /// at the launch. It is one kernel where that reads and writes everything once.
    ///
    /// - Element-wise tasks, gathers and what else reduces nothing: a tile of 4096 elements for four waves,
    ///   with accesses of 16 bytes; where a memory is read the other way round, tiles of 64 x 64 that are
    ///   turned.
    /// - Reductions along the last dimension, and what is computed of them and their rows: rows in the
    ///   registers of waves, up to 65536 elements.
    /// - Other reductions, and longer or open rows: loops over what is reduced, if that takes one pass.
    ///
    /// # Errors
    /// An assertion that does not hold for the sizes; a task of none of these classes, or an operation that
    /// the language does not have for a dtype, with the reason.
    pub fn kernels(
        &self,
        target: impl Into<TargetId>,
        sizes: &[(Symbol, i64)],
    ) -> Result<TaskProgram, Diagnostic> {
        let target = target.into();
        let sizes = sizes.to_vec();
        let size = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol).map(|size| size.1);
        self.check_assertions(&size)?;
        let around = (target, &size as &dyn Fn(Symbol) -> Option<i64>);
        let kernels = match self.kernel(&self.outputs, &|_| false, around) {
            Ok(kernel) => vec![kernel],
            Err(_) => match self.staged(&|tensor| self.reduces(tensor), around) {
                Ok(kernels) => kernels,
                Err(_) => self.staged(&|_| true, around)?,
            },
        };
        Ok(TaskProgram { task: self.clone(), target, sizes, kernels })
    }

    /// True if the element of a tensor has a reduction of its own.
    fn reduces(&self, tensor: TensorId) -> bool {
        let reduces =
            |node: &ElementNode| matches!(node, ElementNode::Reduce { .. } | ElementNode::ArgReduce { .. });
        self.tensors[tensor].value.is_some_and(|value| self.elements.any(value, &mut { reduces }))
    }

    /// A kernel for each tensor that is stored, and for each output.
    fn staged(
        &self,
        stored: expand::Stored<'_>,
        around: (TargetId, &dyn Fn(Symbol) -> Option<i64>),
    ) -> Result<Vec<TaskKernel>, Diagnostic> {
        let is_stage = |tensor: &TensorId| stored(*tensor) || self.outputs.contains(tensor);
        let stages = self.reached().into_iter().filter(is_stage);
        stages
            .map(|stage| self.kernel(&[stage], &|tensor| tensor != stage && stored(tensor), around))
            .collect()
    }

    fn kernel(
        &self,
        outputs: &[TensorId],
        stored: expand::Stored<'_>,
        (target, size): (TargetId, &dyn Fn(Symbol) -> Option<i64>),
    ) -> Result<TaskKernel, Diagnostic> {
        let mut plan = KernelPlan::of(self, outputs, stored, size)?;
        plan.merge_dims();
        plan.give_scalars_a_dim();
        plan.check_outputs()?;
        let distribution = plan.distribution(size)?;
        let name = match outputs {
            [output] if self.outputs.len() > 1 || !self.outputs.contains(output) => {
                format!("{}_{}", self.name, self.tensors[*output].name)
            }
            _ => self.name.clone(),
        };
        let kernel = plan.trace(&name, &distribution, size)?;
        let mut launched: Vec<(Symbol, SymExpr)> = Vec::new();
        let mut options = Options::new(target);
        for TaskAxis { index, extent } in plan.sizes() {
            match extent.value(&|symbol| size(symbol)) {
                // A size in expressions is a number there.
                Some(_) if extent.as_symbol() == Some(index) => {}
                Some(extent) => options = options.set(index, extent),
                None => {
                    options = options.dynamic(index);
                    launched.push((index, extent));
                }
            }
        }
        let inputs = plan.inputs().into_iter().map(|input| input.0);
        let arguments = inputs.chain(plan.outputs.iter().map(|output| output.0)).collect();
        Ok(TaskKernel { kernel, options, arguments, launched })
    }
}

impl KernelPlan<'_> {
    /// The tensors that are read, with the sizes of their memories.
    fn inputs(&self) -> Vec<(TensorId, Vec<SymExpr>)> {
        let mut inputs = BTreeMap::new();
        for (tensor, _) in self.reads() {
            inputs.insert(tensor, self.shapes.get(&tensor).cloned().unwrap_or_default());
        }
        inputs.into_iter().collect()
    }

    /// Outputs without dimensions are tensors of one element.
    fn give_scalars_a_dim(&mut self) {
        let one = Symbol::new(&format!("{AXIS}one"));
        let scalars = self.outputs.iter_mut().filter(|(_, dims, _)| dims.is_empty());
        let mut found = false;
        for (_, dims, _) in scalars {
            dims.push(one);
            found = true;
        }
        if found {
            self.dims.push(TaskAxis { index: one, extent: 1.into() });
        }
    }

    /// Outputs of one kernel have the same dimensions, apart from those that are reduced; and a kernel has
    /// few.
    fn check_outputs(&self) -> Result<(), Diagnostic> {
        let reduced = self.reduced();
        let kept = |dims: &[Symbol]| -> std::collections::BTreeSet<&str> {
            dims.iter().filter(|dim| !reduced.contains(dim)).map(|dim| dim.name()).collect()
        };
        let mut all = self.outputs.iter().map(|(_, dims, _)| kept(dims));
        let first = all.next().unwrap_or_default();
        if all.any(|dims| dims != first) {
            return Err(Diagnostic::invalid("outputs of different shapes are not of one kernel"));
        }
        if self.dims.len() > MAX_DIMS {
            let text = format!("{} has a kernel of {} dimensions", self.task.name, self.dims.len());
            return Err(
                Diagnostic::invalid(text).help(format!("tasks have at most {MAX_DIMS}, after merging"))
            );
        }
        Ok(())
    }

    /// All dimensions that memories have, and sizes that stand in expressions.
    fn sizes(&self) -> Vec<TaskAxis> {
        let mut sizes = self.dims.clone();
        let mut see = |e: &SymExpr| {
            e.visit(&mut |size| {
                if sizes.iter().all(|own| own.index != size) {
                    sizes.push(TaskAxis { index: size, extent: size.into() });
                }
            });
        };
        for element in self.used() {
            match self.elements.node(element) {
                ElementNode::Index(e) => see(e),
                ElementNode::Read { indices, .. } => indices.iter().for_each(|index| match index {
                    ReadIndex::Affine(e) => see(e),
                    ReadIndex::Element(_) => {}
                }),
                _ => {}
            }
        }
        for (tensor, shape) in self.inputs() {
            for (dim, extent) in self.memory_dims(tensor).into_iter().zip(shape) {
                if sizes.iter().all(|own| own.index != dim) {
                    sizes.push(TaskAxis { index: dim, extent });
                }
            }
        }
        sizes
    }
}

impl TaskProgram {
    /// The kernels, in the order in which they run.
    pub fn kernels(&self) -> &[TaskKernel] {
        &self.kernels
    }

    /// Names of the tensors that a kernel takes, in the order of its arguments.
    pub fn arguments(&self, kernel: &TaskKernel) -> Vec<&str> {
        kernel.arguments.iter().map(|&tensor| &*self.task.tensors[tensor].name).collect()
    }

    /// Compiles and runs the kernels on a device for these inputs, and gives the outputs. Sizes that were
    /// left open are those of the inputs.
    ///
    /// # Errors
    /// Inputs of other numbers, dtypes or shapes; a fault of the device.
    pub fn run(&self, device: &Device, inputs: &[Tensor]) -> Result<Vec<Tensor>, Diagnostic> {
        let sizes = self.sizes_with(inputs)?;
        let size = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol).map(|size| size.1);
        self.task.check_assertions(&size)?;
        let mut launched = self.kernels.iter().flat_map(|kernel| &kernel.launched);
        if launched.any(|(_, extent)| extent.value(&size) == Some(0)) {
            // Results that nothing is read for are those of kernels that know it.
            return self.task.kernels(self.target, &sizes)?.run(device, inputs);
        }
        let mut buffers: BTreeMap<TensorId, (Buffer, Vec<i64>)> = BTreeMap::new();
        let mut given = inputs.iter();
        let reached = self.task.reached();
        for (id, definition) in &self.task.tensors {
            let extents = self.task.extents(id, &size)?;
            let bytes = extents.iter().product::<i64>().unsigned_abs() * u64::from(definition.dtype.bytes());
            let buffer = match definition.value {
                Some(_) if !reached.contains(&id) => continue,
                Some(_) => device.allocate(bytes.max(1))?,
                None => {
                    let Some(tensor) = given.next() else {
                        return Err(Diagnostic::invalid(format!("the input {} is missing", definition.name)));
                    };
                    self.task.check_input(id, &extents, tensor)?;
                    let buffer = device.allocate(bytes.max(1))?;
                    if bytes > 0 {
                        buffer.write_bytes(&tensor.to_bytes())?;
                    }
                    buffer
                }
            };
            buffers.insert(id, (buffer.typed(definition.dtype), extents));
        }
        for kernel in &self.kernels {
            let is_written = |tensor: &&TensorId| self.task.tensors[**tensor].value.is_some();
            let outputs = kernel.arguments.iter().filter(is_written);
            if outputs.clone().all(|output| buffers[output].1.contains(&0)) {
                continue;
            }
            let executable = kernel.kernel.compile(&kernel.options)?;
            let mut launch = device.launch(&executable);
            for (dim, extent) in &kernel.launched {
                launch = launch.set(*dim, extent.value(&size).unwrap_or(0));
            }
            kernel.arguments.iter().fold(launch, |launch, tensor| launch.buffer(&buffers[tensor].0)).run()?;
        }
        let outputs = self.task.outputs.iter().map(|output| {
            let (buffer, extents) = &buffers[output];
            let shape: Vec<usize> = extents.iter().map(|&extent| extent as usize).collect();
            let dtype = self.task.tensors[*output].dtype;
            let count = shape.iter().product::<usize>() * dtype.bytes() as usize;
            Tensor::from_bytes(&shape, dtype, &buffer.read_bytes()?[..count])
        });
        outputs.collect()
    }

    /// The sizes, with those that follow from the shapes of inputs.
    fn sizes_with(&self, inputs: &[Tensor]) -> Result<Vec<(Symbol, i64)>, Diagnostic> {
        let mut sizes = self.sizes.clone();
        let definitions = self.task.tensors.values().filter(|tensor| tensor.value.is_none());
        for (definition, tensor) in definitions.zip(inputs) {
            for (axis, &extent) in definition.axes.iter().zip(tensor.shape()) {
                if let Some(symbol) = axis.extent.as_symbol()
                    && sizes.iter().all(|known| known.0 != symbol)
                {
                    sizes.push((symbol, extent as i64));
                }
            }
        }
        Ok(sizes)
    }
}
