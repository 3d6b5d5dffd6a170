//! Kernels after each of their passes: they mean what they meant before, and a text printed in between
//! compiles to the same code.

use crate::meaning::reads_back_after;
use groundswell::compile::PIPELINE;
use groundswell::diagnostic::{Diagnostic, Kind};
use groundswell::internals::with_workspace;
use groundswell::internals::{KernelResults, run_compared};
use groundswell::prelude::*;

/// Compares what a kernel means after every pass with what it meant before, and names the pass that changes
/// it. Sizes that are too large for the interpreter are not compared.
pub fn compare(
    kernel: &Kernel,
    options: &Options,
    meaning: Result<KernelResults, Diagnostic>,
) -> Result<(), String> {
    let Ok(meaning) = meaning else { return Ok(()) };
    let compared = with_workspace(|workspace| {
        workspace.load(kernel, options);
        run_compared(workspace, &meaning, None, &mut |_, _, _| {})
    });
    match compared {
        Err(fault) if fault.kind != Kind::Limit => Err(fault.to_string()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reads a kernel that compiles to `executable` back after the pass with a number, and compares some kernels
/// after every pass; all of them would take too long.
pub fn check(
    kernel: &Kernel,
    options: &Options,
    executable: &Executable,
    value: &dyn Fn(Symbol) -> Option<i64>,
    number: usize,
) -> Result<(), String> {
    let pass = PIPELINE[number % PIPELINE.len()].name;
    if number.is_multiple_of(8) {
        compare(kernel, options, KernelResults::of(kernel, options, value, number as u64))?;
    }
    reads_back_after(pass, kernel, options, executable)
}
