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
        let text = with_workspace(|workspace| {
            workspace.load(kernel, options);
            workspace.run(Some(pass.name), Verify::Off, &mut Vec::new())?;
            Ok::<_, Diagnostic>(workspace.text(Detail::Stage))
        });
        let text = text.unwrap_or_else(|e| panic!("{name}: {e}"));
        let again = Kernel::parse(&text, "again.gsw").unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        assert_eq!(again.text(Detail::Stage), text, "{name}");
        let resumed =
            compile_uncached(&again, options, Verify::Off).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(resumed.object() == whole.object(), "{name} after {}: another object\n{text}", pass.name);
    }
}
