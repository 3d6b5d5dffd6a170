//! What a kernel means after every pass, compared with what it meant before, so that a sweep that finds a
//! wrong result names the pass that made it.

use groundswell::internals::{KernelResults, run_compared, with_workspace};
use groundswell::prelude::*;

/// Runs all passes of a kernel that compiles, and compares on small data after each. `value` gives the sizes
/// that the options leave open.
pub fn compare(
    kernel: &Kernel,
    options: &Options,
    value: &dyn Fn(Symbol) -> Option<i64>,
) -> Result<(), String> {
    let meaning = KernelResults::of(kernel, options, value, 1).map_err(|fault| fault.to_string())?;
    with_workspace(|workspace| {
        workspace.load(kernel, options);
        run_compared(workspace, &meaning, None, &mut |_, _, _| {}).map_err(|fault| fault.to_string())
    })
}
