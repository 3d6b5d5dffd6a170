//! Kernels after each of their passes: they mean what they meant, and a text printed in between goes on to
//! the same code.

use groundswell::compile::PIPELINE;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::diagnostic::Kind;
use groundswell::internals::with_workspace;
use groundswell::internals::{Meaning, run_compared};
use groundswell::prelude::*;
use groundswell::text::Detail;

/// Reads a kernel that compiles to `executable` back after the pass with a number, and compares some kernels
/// after every pass: lane by lane takes its time. Sizes that are too large for the interpreter are left to
/// the simulator.
pub fn check(
    kernel: &Kernel,
    options: &Options,
    executable: &Executable,
    value: &dyn Fn(Symbol) -> Option<i64>,
    number: usize,
) -> Result<(), String> {
    let pass = PIPELINE[number % PIPELINE.len()].name;
    let compared = number.is_multiple_of(8);
    let meaning = compared.then(|| Meaning::of(kernel, options, value, number as u64));
    let text = with_workspace(|workspace| {
        workspace.load(kernel, options);
        if let Some(Ok(meaning)) = &meaning {
            match run_compared(workspace, meaning, None, &mut |_, _, _| {}) {
                Err(fault) if fault.kind != Kind::Limit => return Err(format!("{fault}")),
                Ok(()) | Err(_) => {}
            }
        }
        workspace.load(kernel, options);
        workspace.run(Some(pass), Verify::Off, &mut Vec::new()).map_err(|fault| fault.to_string())?;
        Ok(workspace.text(Detail::Stage))
    })?;
    let again = Kernel::parse(&text, "printed").map_err(|faults| format!("{text}\n{faults:?}"))?;
    let twice = again.text(Detail::Stage);
    if twice != text {
        return Err(format!("printed after {pass}:\n{text}\nread and printed again:\n{twice}"));
    }
    let resumed =
        compile_uncached(&again, options, Verify::Off).map_err(|fault| format!("{text}\n{fault}"))?;
    match resumed.object() == executable.object() {
        true => Ok(()),
        false => Err(format!("another object than from the whole way:\n{text}")),
    }
}
