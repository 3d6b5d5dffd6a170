//! Whether passes preserve what a kernel means: the interpreter runs it on test data as its author wrote it,
//! and again after each pass.
//!
//! It names the first pass that changes the meaning. `compile --verify`, the fuzz targets and a share of the
//! cases of the sweeps in `tests` ask for it.

use bevy_ecs::prelude::*;

use super::PIPELINE;
use super::options::Options;
use super::workspace::{Verify, Workspace};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Symbol;
use crate::ir::interpreter::{InterpretedRun, Interpreter, Tensor};
use crate::ir::kernel::Kernel;
use crate::ir::memory_layout::DebugLog;
use crate::ir::node::{Body, Name, Op, ValueType};
use crate::ir::walk;

/// How far floats may be apart, relative to the expected value: passes may sum in another order, and a result
/// is rounded to 16 bits.
const TOLERANCE: f64 = 1.0 / 128.0;

/// Scalars of kernels with while loops are below this.
const MOST_TRIPS: i32 = 8;

/// The results of a kernel for some data.
pub struct KernelResults {
    sizes: Vec<(Symbol, i64)>,
    names: Vec<String>,
    inputs: Vec<Tensor>,
    expected: InterpretedRun,
}

/// The arguments of a kernel, in their order, and its logs.
fn arguments(kernel: &Kernel) -> [Vec<Entity>; 2] {
    let body = kernel.world.get::<Body>(kernel.root).map(|body| &body.0[..]).unwrap_or_default();
    let is_argument = |node: &Entity| kernel.world.get::<Op>(*node).is_some_and(|op| op.is_argument());
    let is_log = |node: &Entity| kernel.world.get::<DebugLog>(*node).is_some();
    let (logs, arguments): (Vec<Entity>, Vec<Entity>) =
        body.iter().copied().filter(is_argument).partition(is_log);
    [arguments, logs]
}

impl KernelResults {
    /// Runs a kernel as it stands on test data. `open` gives sizes that the options leave open until launch.
    ///
    /// # Errors
    /// The faults of the interpreter, including sizes that are too large for it.
    pub fn of(
        kernel: &Kernel,
        options: &Options,
        open: &dyn Fn(Symbol) -> Option<i64>,
        seed: u64,
    ) -> Result<KernelResults, Diagnostic> {
        let value = |symbol: Symbol| options.value(symbol).or_else(|| open(symbol));
        let mut inputs = Vec::new();
        let is_while = |node: &Entity| kernel.world.get::<Op>(*node).is_some_and(|op| op.yields_condition());
        let loops = walk::nodes(&kernel.world, kernel.root).iter().any(is_while);
        let [arguments, _] = arguments(kernel);
        for node in arguments {
            let Some(ty) = kernel.world.get::<ValueType>(node) else { continue };
            let shape = kernel.shape(&ty.dims, &value)?;
            let dtype = ty.dtype.ok_or_else(|| Diagnostic::new(Kind::Bug, "an argument without dtype"))?;
            let input = Tensor::random(&shape, dtype, seed.wrapping_add(inputs.len() as u64))?;
            // Random numbers of iterations would mostly be more than anybody waits for.
            let small = || input.as_slice::<i32>()?.first().map(|value| value.rem_euclid(MOST_TRIPS));
            inputs.push(match small() {
                Some(value) if loops && shape.is_empty() => Tensor::scalar(value),
                _ => input,
            });
        }
        KernelResults::on(kernel, options, open, inputs)
    }

    /// The same on other data: a tensor for each argument.
    ///
    /// # Errors
    /// As [`KernelResults::of`].
    pub fn on(
        kernel: &Kernel,
        options: &Options,
        open: &dyn Fn(Symbol) -> Option<i64>,
        inputs: Vec<Tensor>,
    ) -> Result<KernelResults, Diagnostic> {
        let value = |symbol: Symbol| options.value(symbol).or_else(|| open(symbol));
        let sizes: Vec<(Symbol, i64)> =
            kernel.symbols().into_iter().filter_map(|symbol| Some((symbol, value(symbol)?))).collect();
        let name = |node| kernel.world.get::<Name>(node).map_or(String::new(), |name| name.0.to_string());
        let names = arguments(kernel).into_iter().flatten().map(name).collect();
        let expected = Interpreter::run_logged(kernel, &value, inputs.clone())?;
        Ok(KernelResults { sizes, names, inputs, expected })
    }

    /// Whether a kernel still means the same.
    ///
    /// # Errors
    /// The first difference, or the fault of the interpreter for the kernel as it stands.
    pub fn check(&self, world: &World, root: Entity) -> Result<(), Diagnostic> {
        let value = |symbol: Symbol| self.sizes.iter().find(|size| size.0 == symbol).map(|size| size.1);
        let found = Interpreter::run_world(world, root, &value, &self.inputs)?;
        for ((name, expected), found) in self.names.iter().zip(self.expected.all()).zip(found.all()) {
            // A kernel that no pass has seen does not know what it would have logged.
            let Some(expected) = expected else { continue };
            let Some(found) = found else {
                return Err(Diagnostic::new(Kind::Bug, format!("nothing is written to `{name}`")));
            };
            let (expected, found) = (expected.to_f64(), found.to_f64());
            let differs = |at: &usize| {
                let (expected, found) = (expected[*at], found[*at]);
                let same = expected == found || (expected.is_nan() && found.is_nan());
                let close = (expected - found).abs() <= TOLERANCE * expected.abs().max(1.0);
                !same && !close
            };
            if let Some(at) = (0..expected.len()).find(differs) {
                let text = format!("element {at} of `{name}` is {}, not {}", found[at], expected[at]);
                return Err(Diagnostic::new(Kind::Bug, text));
            }
        }
        Ok(())
    }
}

/// Runs the remaining passes of the loaded kernel, up to `last` or all of them, and compares after each pass
/// what the kernel means with what it meant before. `edit` is called after each pass, before the kernel is
/// looked at: tests plant faults with it.
///
/// # Errors
/// The fault of a pass; or the first difference, with the name of the pass that made it.
pub fn run_compared(
    workspace: &mut Workspace,
    meaning: &KernelResults,
    last: Option<&str>,
    edit: &mut dyn FnMut(&'static str, &mut World, Entity),
) -> Result<(), Diagnostic> {
    let done = workspace.stage().and_then(|stage| PIPELINE.iter().position(|pass| pass.name == stage));
    for pass in PIPELINE.iter().skip(done.map_or(0, |at| at + 1)) {
        workspace.run(Some(pass.name), Verify::Off, &mut Vec::new())?;
        edit(pass.name, &mut workspace.world, workspace.root);
        let judged = workspace.verified().and_then(|()| meaning.check(&workspace.world, workspace.root));
        if let Err(mut fault) = judged {
            fault.message = format!("pass {} changed what the kernel means: {}", pass.name, fault.message);
            return Err(fault);
        }
        if last == Some(pass.name) {
            break;
        }
    }
    Ok(())
}
