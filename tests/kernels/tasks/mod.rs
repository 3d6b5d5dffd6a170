//! Tasks: the kernels that the rule-based scheduler writes for them compute on the simulator what the tasks
//! mean, and take about as long as the ready kernels of their classes.

mod as_fast;
mod faults;
mod random_tasks;
mod reductions;
mod values;

use groundswell::prelude::*;
use groundswell::tasks::Task;

/// How far a result may be from the task's meaning: relative to the result, and at least absolutely.
#[derive(Copy, Clone)]
pub struct Tolerance(pub f64);

pub const EXACT: Tolerance = Tolerance(0.0);
pub const OF_F32: Tolerance = Tolerance(2e-5);
pub const OF_F16: Tolerance = Tolerance(4e-3);

/// Runs the kernels of a task on the simulator, in check mode's device, and compares every output with what
/// the task means for these inputs. Returns how many kernels there are.
#[track_caller]
pub fn judge(
    task: &Task,
    sizes: &[(Symbol, i64)],
    open: &[Symbol],
    inputs: &[Tensor],
    tolerance: Tolerance,
) -> usize {
    let known: Vec<(Symbol, i64)> = sizes.iter().copied().filter(|size| !open.contains(&size.0)).collect();
    let title = format!("{} {sizes:?}, open {open:?}", task.name());
    let program = task.kernels(Target::GFX942, &known).unwrap_or_else(|fault| panic!("{title}: {fault:?}"));
    let device = Device::simulator(Target::GFX942);
    let found = program.run(&device, inputs).unwrap_or_else(|fault| {
        let kernels: Vec<String> =
            program.kernels().iter().map(|kernel| kernel.kernel().to_string()).collect();
        panic!("{title}: {fault:?}\n{}", kernels.join("\n"))
    });
    let expected = task.evaluate(sizes, inputs).unwrap_or_else(|fault| panic!("{title}: {fault:?}"));
    assert_eq!(found.len(), expected.len());
    for ((found, expected), name) in found.iter().zip(&expected).zip(task.outputs()) {
        let (found, expected) = (found.to_f64(), expected.to_f64());
        assert_eq!(found.len(), expected.len());
        for (at, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
            let close = found == expected
                || (found.is_nan() && expected.is_nan())
                || (found - expected).abs() <= tolerance.0 * expected.abs().max(1.0);
            let kernels: Vec<String> = match close {
                true => Vec::new(),
                false => program.kernels().iter().map(|kernel| kernel.kernel().to_string()).collect(),
            };
            assert!(close, "{title}: {name}[{at}] is {found}, not {expected}\n{}", kernels.join("\n"));
        }
    }
    program.kernels().len()
}

/// Random elements.
pub fn random(shape: &[usize], dtype: DType, seed: u64) -> Tensor {
    Tensor::random(shape, dtype, seed).expect("a tensor")
}
