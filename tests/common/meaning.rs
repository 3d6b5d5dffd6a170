//! What a kernel means after every pass, compared with what it meant before, so that a sweep that finds a
//! wrong result names the pass that made it.

use groundswell::compile::{PIPELINE, Verify, compile_uncached};
use groundswell::internals::{KernelResults, run_compared, with_workspace};
use groundswell::prelude::*;
use groundswell::text::Detail;

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

/// The text of the kernel after every pass is the same kernel, and compiles to the same code.
pub fn reads_back(name: &str, kernel: &Kernel, options: &Options) {
    let whole = compile_uncached(kernel, options, Verify::Off).unwrap_or_else(|e| panic!("{name}: {e}"));
    for pass in PIPELINE {
        reads_back_after(pass.name, kernel, options, &whole).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// The same after one pass, of a kernel that compiles to `whole`.
pub fn reads_back_after(
    pass: &str,
    kernel: &Kernel,
    options: &Options,
    whole: &Executable,
) -> Result<(), String> {
    let text = with_workspace(|workspace| {
        workspace.load(kernel, options);
        workspace.run(Some(pass), Verify::Off, &mut Vec::new()).map_err(|fault| fault.to_string())?;
        Ok::<_, String>(workspace.text(Detail::Stage))
    })?;
    let again = Kernel::parse(&text, "printed").map_err(|faults| format!("{text}\n{faults:?}"))?;
    let twice = again.text(Detail::Stage);
    if twice != text {
        return Err(format!("printed after {pass}:\n{text}\nread and printed again:\n{twice}"));
    }
    let resumed =
        compile_uncached(&again, options, Verify::Off).map_err(|fault| format!("{text}\n{fault}"))?;
    match resumed.object() == whole.object() {
        true => Ok(()),
        false => Err(format!("after {pass} another object than from a whole compilation:\n{text}")),
    }
}
