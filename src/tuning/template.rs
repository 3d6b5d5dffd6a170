//! What a template has to say about itself.

use super::point::Point;
use super::space::{SearchLevel, TuningSpace};
use crate::codegen::target::{DeviceModel, Target, TargetId};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::kernel::Kernel;
use crate::passes::options::Options;

/// A kernel of an instance, with everything that compiling and timing it takes.
pub struct InstanceKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// How it is compiled.
    pub options: Options,
    /// Sizes that the options leave open, as it is timed with them.
    pub sizes: Vec<(Symbol, i64)>,
}

/// A function from a target and hyper-parameters to kernels for one task. A value of a type with this trait
/// knows the task: sizes, dtypes, layouts.
///
/// # Example
/// A template for one kernel, with one choice:
/// ```
/// use groundswell::prelude::*;
/// use groundswell::tuning::{InstanceKernel, Point, Search, SearchLevel, TuningSpace, Template, Tuner};
///
/// struct Doubled(i64);
///
/// impl Template for Doubled {
///     fn name(&self) -> &str {
///         "doubled"
///     }
///
///     fn task(&self) -> String {
///         format!("f32:{}", self.0)
///     }
///
///     fn space(&self, _: Target, _: SearchLevel) -> Result<TuningSpace, Diagnostic> {
///         Ok(TuningSpace::new().choice("block", [256, 1024, 4096]))
///     }
///
///     fn instantiate(&self, target: TargetId, point: &Point) -> Result<Vec<InstanceKernel>, Diagnostic> {
///         let [m, block] = symbols(["M", "BLOCK"]);
///         let kernel = Kernel::trace("doubled", |w| {
///             w.distribute([workgroup(m, block, 0), wave(m, block)]);
///             let (a, b) = (w.memory("a", [m], Global, F32), w.memory("b", [m], Global, F32));
///             let x = w.read(a);
///             w.write(x + x, b);
///         })?;
///         let size = point.number("block").unwrap_or(256);
///         let options = Options::new(target).set(m, self.0).set(block, size);
///         Ok(vec![InstanceKernel { kernel, options, sizes: Vec::new() }])
///     }
/// }
///
/// let tuned = Tuner::new(Target::GFX942)?.search(Search::Exhaustive).tune(&Doubled(1 << 20))?;
/// assert_eq!(tuned.candidates().len(), 3);
/// # Ok::<(), Diagnostic>(())
/// ```
pub trait Template: Sync {
    /// Its name, without blanks.
    fn name(&self) -> &str;

    /// The task, without blanks: what results are kept under, with the name and the target.
    fn task(&self) -> String;

    /// The choices for a target.
    ///
    /// # Errors
    /// The task cannot be done there.
    fn space(&self, target: Target, level: SearchLevel) -> Result<TuningSpace, Diagnostic>;

    /// The kernels of a point of one of its spaces, in the order in which they are launched.
    ///
    /// # Errors
    /// Choices that do not go together; the candidate is refused then.
    fn instantiate(&self, target: TargetId, point: &Point) -> Result<Vec<InstanceKernel>, Diagnostic>;

    /// Microseconds that a point may be expected to take on a device, by a formula: the model that a guided
    /// search starts from. Without one it takes points in the order of the space.
    fn expected(&self, _device: &DeviceModel, _point: &Point) -> Option<f64> {
        None
    }
}
